"""Opens the pages that lmsc writes in a browser, as a reader would.

Each page is shown at two widths, in light and in dark. Nothing may be wider than the window, nothing may be fetched, no script may
fail, no canvas may be empty; and the picture, at a quarter of its size, must be that in testdata/pages, but for changes by fonts
and times of planning. Then a mouse and a keyboard use the page.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image, ImageChops, ImageFilter
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "testdata/pages"

# Pages show the names of files as they are called, so these are the same everywhere.
STEP = "testdata/models/{0}/training_model.onnx --optimizer testdata/models/{0}/optimizer_model.onnx"
RESNET, TINY = STEP.format("resnet18"), STEP.format("tiny_mlp/static")
# The command that writes a page, and whether the page depends on the model alone.
PAGES = {
    "plan": (f"plan {RESNET} --dim batch=32 --budget 0.6x --effort 5 --compare all", True),
    "sweep": (f"sweep {RESNET} --dim batch=8..32 --budget 0.3x..1x --steps 6 --effort 5", True),
    "fit": (f"fit {RESNET} --effort 5", True),
    "run": (f"run {TINY} --steps 2", False),
}

# The kept pictures have a quarter of the screenshot's width and height. Both are blurred before they are compared.
SHRINK = 4
# The largest difference of a colour, of 255, that a pixel may have, and the share of the pixels that may differ more.
DISTANCE = 48
SHARE = 0.02

failures: list[str] = []


def check(holds: bool, what: str) -> None:
    """Notes a failure unless it holds."""
    if not holds:
        failures.append(what)
        print(f"FAILED {what}", flush=True)


def small(shot: bytes) -> Image.Image:
    """The picture at a quarter of its size."""
    image = Image.open(BytesIO(shot)).convert("RGB")
    return image.resize((image.width // SHRINK, image.height // SHRINK), Image.Resampling.BOX)


def differs(kept: Image.Image, now: Image.Image) -> str | None:
    """The difference between the two, if it is more than fonts change."""
    if kept.width != now.width or abs(kept.height - now.height) > 0.03 * kept.height:
        return f"{now.width}x{now.height} pixels instead of {kept.width}x{kept.height}"
    now = now.crop((0, 0, kept.width, kept.height))
    blurred = [image.filter(ImageFilter.BoxBlur(3)) for image in (kept, now)]
    far = [max(cell) > DISTANCE for cell in ImageChops.difference(*blurred).get_flattened_data()]
    share = sum(far) / len(far)
    return f"{share:.1%} of it is different" if share > SHARE else None


def look(browser: Browser, name: str, file: Path, is_fixed: bool, write: bool) -> None:
    """Shows the page at both widths and in both schemes."""
    for width in (1400, 800):
        for scheme in ("light", "dark"):
            title = f"{name}-{width}-{scheme}"
            page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
            fetched: list[str] = []
            page.on("request", lambda request: fetched.append(request.url))
            page.on("pageerror", lambda error: check(False, f"{title}: {error}"))
            page.on("console", lambda message: check(message.type != "error", f"{title}: {message.text}"))
            page.goto(file.as_uri())
            check(fetched == [file.as_uri()], f"{title}: fetches {fetched[1:]}")
            wide = page.evaluate("document.documentElement.scrollWidth")
            check(wide <= width, f"{title}: {wide} pixels wide")
            for canvas in page.query_selector_all("canvas"):
                colors = canvas.evaluate(
                    "c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size"
                )
                check(colors > 4, f"{title}: the canvas {canvas.get_attribute('id')} is empty")
            shot = page.screenshot(full_page=True)
            (ROOT / "target/pages" / f"{title}.png").write_bytes(shot)
            kept = KEPT / f"{title}.png"
            if write and is_fixed:
                small(shot).quantize(64).save(kept, optimize=True)
            elif is_fixed:
                difference = differs(Image.open(kept).convert("RGB"), small(shot)) if kept.exists() else "not kept"
                check(difference is None, f"{title}: {difference}; see target/pages/{title}.png, or --write")
            page.close()


def over(page: Page, canvas: str, share: float, y: float) -> str:
    """The text beside the mouse at a share of the canvas's width, `y` pixels below its top."""
    box = page.locator(f"#{canvas}").bounding_box()
    page.locator(f"#{canvas}").hover(position={"x": share * box["width"], "y": y})
    return page.inner_text("#tip") if page.is_visible("#tip") else ""


def use_plan(browser: Browser, file: Path) -> None:
    """Mouse, keyboard, filter and address of the page of a plan."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(file.as_uri())
    check("activations" in over(page, "memory", 0.5, 150), "plan: the memory says nothing under the mouse")
    check(" ms from " in over(page, "lanes", 0.5, 25), "plan: an operator says nothing under the mouse")
    check("auto, this plan: " in over(page, "plans", 0.3, 90), "plan: a planner's operator says nothing under the mouse")
    page.mouse.move(0, 0)
    page.keyboard.press("+")
    address = page.evaluate("location.hash")
    check(address.startswith("#t="), "plan: the address does not say what is looked at")
    again = browser.new_page()
    again.goto(file.as_uri() + address)
    # The address has three places.
    views = zip(again.evaluate("view"), page.evaluate("view"), strict=True)
    check(all(abs(a - b) <= 0.001 for a, b in views), "plan: the address does not lead to what was looked at")
    page.keyboard.press("0")
    check(page.evaluate("location.hash") == "", "plan: 0 does not show all")
    rows = page.locator("#tensors tr").count()
    page.fill("#filter", "swapped")
    fewer = page.locator("#tensors tr").count()
    check(1 < fewer < rows, f"plan: the filter leaves {fewer} of {rows} rows")
    page.click("#planners th:nth-child(2)")
    page.click("#planners th:nth-child(2)")
    first = page.inner_text("#planners tr:nth-child(2) td:first-child")
    check(first.startswith("auto"), f"plan: {first} is first by makespan")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="replace the pictures in testdata/pages")
    write = parser.parse_args().write
    (ROOT / "target/pages").mkdir(parents=True, exist_ok=True)
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as player:
        folder = Path(temporary)
        (folder / "testdata").symlink_to(ROOT / "testdata")
        for name, (arguments, _) in PAGES.items():
            call = [os.environ["LMSC"], *arguments.split(), "--report", f"{name}.html"]
            subprocess.run(call, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        flags = ["--no-sandbox", "--hide-scrollbars", "--font-render-hinting=none", "--disable-lcd-text"]
        browser = player.chromium.launch(executable_path=os.environ["CHROMIUM"], args=flags)
        for name, (_, is_fixed) in PAGES.items():
            look(browser, name, folder / f"{name}.html", is_fixed, write)
        use_plan(browser, folder / "plan.html")
        browser.close()
    compared = 4 * sum(is_fixed for _, is_fixed in PAGES.values())
    print(f"{len(PAGES)} pages, {compared} pictures compared: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
