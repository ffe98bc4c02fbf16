"""Draws the figures of the documentation, docs/figures/*.svg.

    LMSC=target/release/lmsc python3 scripts/figures.py

Curves, bars and rectangles show plans of that lmsc, which takes some minutes; `--drawn` draws only the figures without numbers.
Colours are variables with values for light and dark pages.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs/figures"
GIB = float(1 << 30)

STYLE = (
    ".plan{--ink:#1f2937;--dim:#5b6472;--line:#a3acb8;--one:#0f766e;--two:#c2410c;--three:#4f46e5;--four:#a16207;"
    "--paper:#f3f6f7;font-family:system-ui,sans-serif;font-size:13px}"
    "@media (prefers-color-scheme:dark){.plan{--ink:#e5e7eb;--dim:#a3acb8;--line:#5b6472;--one:#2dd4bf;--two:#fb923c;"
    "--three:#a5b4fc;--four:#facc15;--paper:#262b36}}"
    ".plan text{fill:var(--ink)}.plan .dim{fill:var(--dim)}.plan .small{font-size:11px}.plan .mid{text-anchor:middle}"
    ".plan .end{text-anchor:end}.plan .bold{font-weight:600}.plan .code{font-family:ui-monospace,monospace}"
    ".plan .axis{stroke:var(--line);fill:none}.plan .arrow{stroke:var(--dim);stroke-width:1.4;fill:none}"
    ".plan .head{fill:var(--dim)}.plan .box{fill:var(--paper);stroke:var(--line)}"
    ".plan .one{stroke:var(--one);fill:none;stroke-width:2}.plan .two{stroke:var(--two);fill:none;stroke-width:2}"
    ".plan .three{stroke:var(--three);fill:none;stroke-width:2}"
    ".plan .f1{fill:var(--one)}.plan .f2{fill:var(--two)}.plan .f3{fill:var(--three)}.plan .f4{fill:var(--four)}"
    ".plan .fl{fill:var(--line)}.plan .pale{fill-opacity:.22}"
)


class Drawing:
    """An SVG under construction."""

    def __init__(self, name: str, width: int, height: int, title: str) -> None:
        self.name, self.parts = name, []
        self.head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="plan" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
            f"<title>{title}</title>\n<style>{STYLE}</style>\n"
        )

    def add(self, element: str) -> None:
        self.parts.append(element)

    def text(self, x: float, y: float, words: str, kind: str = "") -> None:
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        self.add(f'<text x="{x:g}" y="{y:g}" class="{kind}">{words}</text>')

    def rect(self, x: float, y: float, width: float, height: float, kind: str, round_: float = 0) -> None:
        self.add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{round_:g}" class="{kind}"/>')

    def path(self, points: list[tuple[float, float]], kind: str, dash: str = "") -> None:
        way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.add(f'<path d="{way}" class="{kind}"{f" stroke-dasharray={chr(34)}{dash}{chr(34)}" if dash else ""}/>')

    def area(self, points: list[tuple[float, float]], floor: float, kind: str) -> None:
        way = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.add(f'<path d="M{points[0][0]:.1f} {floor:.1f}L{way}L{points[-1][0]:.1f} {floor:.1f}Z" class="{kind}"/>')

    def arrow(self, points: list[tuple[float, float]], kind: str = "arrow", dash: str = "") -> None:
        self.path(points, kind, dash)
        (x0, y0), (x, y) = points[-2:]
        length = max(((x - x0) ** 2 + (y - y0) ** 2) ** 0.5, 1)
        dx, dy = (x - x0) / length, (y - y0) / length
        corners = [(x, y), (x - 8 * dx + 4 * dy, y - 8 * dy - 4 * dx), (x - 8 * dx - 4 * dy, y - 8 * dy + 4 * dx)]
        self.add(f'<path d="M{"L".join(f"{a:.1f} {b:.1f}" for a, b in corners)}Z" class="head"/>')

    def box(self, x: float, y: float, width: float, lines: list[str], height: float = 0) -> None:
        height = height or 16 + 17 * len(lines)
        self.rect(x, y, width, height, "box", 6)
        top = y + height / 2 - 17 * (len(lines) - 1) / 2 + 4.5
        for at, line in enumerate(lines):
            self.text(x + width / 2, top + 17 * at, line, "mid bold" if at == 0 else "mid dim small")

    def write(self) -> None:
        FIGURES.mkdir(parents=True, exist_ok=True)
        (FIGURES / f"{self.name}.svg").write_text(self.head + "\n".join(self.parts) + "\n</svg>\n")


def plan(*arguments: str, report: str = "--report") -> dict:
    """The JSON of `lmsc plan`, or of another command."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        call = [os.environ["LMSC"], *arguments, report, str(path)]
        subprocess.run(call, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return json.loads(path.read_text())


def overview() -> None:
    """Input and output."""
    d = Drawing("overview", 760, 230, "A training step and a budget go in; a planned step comes out")
    d.box(10, 20, 170, ["PyTorch", "module, loss, optimizer"])
    d.box(10, 90, 170, ["ONNX", "a training step"])
    d.box(10, 160, 170, ["budget", "such as 8 GiB"])
    for y in (45, 115, 185):
        d.arrow([(180, y), (238, y if y == 115 else 115 + (y - 115) * 0.25)])
    d.rect(240, 20, 260, 190, "box", 8)
    d.text(370, 44, "lmsc", "mid bold")
    for at, (name, words) in enumerate((("plan", "which tensors leave, and when"), ("rewrite", "copies, edges, addresses"), ("prove", "same values, never over budget"))):
        y = 62 + 48 * at
        d.rect(258, y, 224, 38, "f1 pale", 5)
        d.text(268, y + 16, f"{at + 1}. {name}", "bold")
        d.text(268, y + 31, words, "dim small")
    for at, lines in enumerate((["lmsc run", "host or CUDA"], ["ONNX Runtime"], ["XLA, IREE"], ["report, page, trace"])):
        height = 40 if at == 0 else 30
        y = (20, 72, 114, 156)[at]
        d.box(580, y, 170, lines, height)
        d.arrow([(500, 115), (540, 115), (540, y + height / 2), (578, y + height / 2)])
    d.write()


def life() -> None:
    """One tensor that leaves and returns."""
    d = Drawing("life", 760, 300, "One tensor leaves after its forward use and returns before its backward use")
    left, right = 90, 745
    lanes = {"compute": 60, "copy out": 110, "copy in": 160}
    for name, y in lanes.items():
        d.text(10, y + 15, name, "dim")
        d.path([(left, y + 24), (right, y + 24)], "axis")
    for x, width, words in ((95, 55, "conv1"), (155, 50, "relu1"), (210, 60, "conv2"), (275, 60, "conv3"), (355, 70, "loss"), (430, 65, "dconv3"), (500, 65, "dconv2"), (600, 60, "drelu1"), (665, 60, "dconv1")):
        touches = words in ("relu1", "conv2", "dconv2", "drelu1")
        d.rect(x, lanes["compute"], width, 22, "f1" if touches else "f1 pale", 3)
        d.text(x + width / 2, lanes["compute"] + (-6 if touches else 15), words, "mid small bold" if touches else "mid small")
    d.rect(210, lanes["copy out"], 95, 22, "f2", 3)
    d.rect(405, lanes["copy in"], 93, 22, "f3", 3)
    d.arrow([(183, 82), (212, 108)], dash="4 3")
    d.text(118, 122, "1 when written", "small dim")
    d.arrow([(305, 121), (343, 121), (355, 84)], dash="4 3")
    d.text(364, 112, "2 release edge: the loss", "small dim")
    d.text(364, 125, "needs this memory", "small dim")
    d.arrow([(325, 82), (325, 171), (403, 171)], dash="4 3")
    d.text(180, 175, "3 trigger: conv3 is done", "small dim")
    d.arrow([(498, 171), (512, 171), (520, 84)], dash="4 3")
    d.text(530, 172, "4 back before its use", "small dim")
    y = 220
    d.text(10, y + 17, "device", "dim")
    d.rect(155, y, 150, 24, "f1 pale")
    d.text(230, y + 16, "on the device", "mid small")
    d.rect(405, y, 255, 24, "f1 pale")
    d.text(532, y + 16, "on the device", "mid small")
    d.path([(305, y), (305, y + 24), (405, y + 24), (405, y)], "axis", "3 3")
    d.text(355, y + 16, "free", "mid small dim")
    y = 258
    d.text(10, y + 17, "host", "dim")
    d.rect(210, y, 288, 24, "fl pale")
    d.text(354, y + 16, "host copy", "mid small")
    d.write()


def proofs() -> None:
    """The forms of the step and their checkers."""
    d = Drawing("proofs", 760, 250, "Each form of the step is checked by code that did not make it")
    forms = (("plan", "order, edges, addresses"), ("graph", "copies and clones"), ("file", "as it was written"), ("program", "commands and waits"))
    checks = (
        ("schedule checker", "budget, copies, times"),
        ("verifier, equivalence", "I1 to I8; same values"),
        ("read back", "values, peak, addresses"),
        ("happens-before", "every read, two steps"),
    )
    d.text(10, 20, "the forms of a planned step, and the code that checks each of them", "dim small")
    for at, ((form, words), (check, of)) in enumerate(zip(forms, checks, strict=True)):
        x = 10 + 190 * at
        d.box(x, 32, 150, [form, words])
        if at:
            d.arrow([(x - 40, 57), (x - 2, 57)])
        d.arrow([(x + 75, 160), (x + 75, 86)], dash="4 3")
        d.rect(x, 162, 160, 56, "f1 pale", 6)
        d.text(x + 80, 186, check, "mid bold")
        d.text(x + 80, 204, of, "mid dim small")
    d.text(10, 242, "A check that fails ends lmsc with an error. It never writes a file that it could not prove.", "small dim")
    d.write()


def crates() -> None:
    """Crates and who depends on whom."""
    d = Drawing("crates", 760, 470, "The crates and their dependencies")
    d.box(300, 10, 160, ["python", "the package lmsc"])
    d.box(260, 90, 240, ["lmsc", "library and command line (src/)"])
    row = (("onnx", "files in and out"), ("mlir", "MLIR, StableHLO"), ("cuda, runtime", "host and GPUs"), ("passes", "apply plans"))
    for at, (name, words) in enumerate(row):
        x = 20 + 185 * at
        d.box(x, 170, 160, [name, words])
        d.arrow([(380, 141), (380, 155), (x + 80, 155), (x + 80, 168)])
    d.arrow([(380, 61), (380, 88)])
    d.box(575, 90, 160, ["papers", "their planners"])
    d.arrow([(500, 116), (573, 116)])
    d.arrow([(655, 141), (655, 168)])
    d.box(575, 250, 160, ["plan", "one service"])
    d.arrow([(655, 220), (655, 248)])
    parts = (("cost", "how long it takes"), ("address", "where bytes lie"), ("planners", "who decides"))
    for at, (name, words) in enumerate(parts):
        x = 205 + 185 * at
        d.box(x, 330, 160, [name, words])
        d.arrow([(655, 300), (655, 315), (x + 80, 315), (x + 80, 328)])
    d.box(575, 410, 160, ["bound", "what no plan beats"])
    d.arrow([(655, 380), (655, 408)])
    d.box(205, 410, 345, ["schedule", "problems, schedules, their checker"])
    for x in (285, 470):
        d.arrow([(x, 380), (x, 408)])
    d.arrow([(575, 436), (552, 436)])
    d.box(20, 410, 160, ["ir", "graph, program"])
    d.arrow([(205, 436), (182, 436)])
    d.arrow([(100, 220), (100, 408)])
    d.arrow([(285, 220), (285, 240), (100, 240)])
    d.arrow([(470, 220), (470, 240), (285, 240)])
    d.write()


def axes(d: Drawing, frame: tuple[float, float, float, float], xs: list[tuple[float, str]], ys: list[tuple[float, str]]) -> None:
    """Axes of a chart; ticks stand at places."""
    left, top, right, bottom = frame
    d.path([(left, top), (left, bottom), (right, bottom)], "axis")
    for x, words in xs:
        d.path([(x, bottom), (x, bottom + 4)], "axis")
        d.text(x, bottom + 18, words, "mid small dim")
    for y, words in ys:
        d.path([(left - 4, y), (left, y)], "axis")
        d.text(left - 7, y + 4, words, "end small dim")


RESNET = ["testdata/models/resnet50/training_model.onnx", "--optimizer", "testdata/models/resnet50/optimizer_model.onnx", "--dim", "batch=256"]


def resnet50() -> None:
    """Memory over a step with and without a plan, as `lmsc plan` draws it."""
    call = [os.environ["LMSC"], "plan", *RESNET, "--budget", "8GiB", "--report", str(FIGURES / "resnet50.svg")]
    subprocess.run(call, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def bounds() -> None:
    """Time against memory, and the bound."""
    report = plan("sweep", *RESNET, "--budget", "3GiB..21GiB", "--effort", "25")
    points = [(point["budget_bytes"], point["plan"]) for point in report["sizes"][0]["points"] if "plan" in point]
    d = Drawing("bounds", 760, 310, "Time of a step against its budget, with the lower bound")
    frame = left, top, right, bottom = 60, 20, 745, 260
    low, high = 600, 1400

    def place(count: float, ms: float) -> tuple[float, float]:
        return left + (right - left) * (count / GIB - 2) / 20, bottom - (bottom - top) * (ms - low) / (high - low)

    axes(
        d,
        frame,
        [(place(gib * GIB, low)[0], f"{gib} GiB") for gib in range(2, 23, 4)],
        [(place(2 * GIB, ms)[1], f"{ms}") for ms in range(600, 1401, 200)],
    )
    d.text(left + 8, top + 4, "ms of the step (modelled)", "small dim")
    plans = [place(count, found["makespan_ms"]) for count, found in points]
    lower = [place(count, found["lower_bound_ms"]) for count, found in points]
    d.area(lower, bottom, "fl pale")
    d.path(lower, "axis")
    d.path(plans, "one")
    for x, y in plans:
        d.add(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="f1"/>')
    d.text(place(7 * GIB, 0)[0], place(0, 880)[1], "plans of auto", "small bold")
    d.text(place(7 * GIB, 0)[0], place(0, 665)[1], "below the bound: proven that no plan is here", "small dim")
    d.write()


def planners() -> None:
    """Makespans of all planners on one instance."""
    instance = ["--instance", "testdata/instances/dag_resnet50_224_b64.json", "--budget", "1.5GiB", "--recompute", "--whole"]
    report = plan("plan", *instance, "--compare", "all")
    d = Drawing("planners", 760, 330, "Eleven planners on ResNet-50 at batch 64 in 1.5 GiB")
    left, scale = 110, 520
    most = max(entry["found"]["makespan_ms"] for entry in report["compared"] if "found" in entry)
    for at, entry in enumerate(report["compared"]):
        y = 34 + 25 * at
        d.text(left - 8, y + 13, entry["planner"], "end")
        if "found" not in entry:
            d.text(left + 6, y + 13, "does not fit: it only recomputes", "small dim")
            continue
        found = entry["found"]
        width = scale * found["makespan_ms"] / most
        again = scale * found["recompute_ms"] / most
        compute = scale * report["compute_ms"] / most
        d.rect(left, y, compute, 18, "f1")
        d.rect(left + compute, y, again, 18, "f3")
        d.rect(left + compute + again, y, max(width - compute - again, 0), 18, "f2 pale")
        d.text(left + width + 8, y + 13, f"{found['makespan_ms']:.0f} ms", "small")
    x = left + scale * report["lower_bound_ms"] / most
    d.path([(x, 26), (x, 34 + 25 * len(report["compared"]))], "two", "5 3")
    d.text(x, 18, f"lower bound {report['lower_bound_ms']:.0f} ms", "mid small")
    for place, (kind, words) in enumerate((("f1", "compute"), ("f3", "run again"), ("f2 pale", "waits for copies"))):
        d.rect(300 + 150 * place, 312, 12, 12, kind)
        d.text(318 + 150 * place, 322, words, "small dim")
    d.write()


def addresses() -> None:
    """Where tensors lie in the arena, over time."""
    name = ROOT / "testdata/instances/tiny_chain_resnet50_224_b32_k8.json"
    chain = json.loads(name.read_text())
    schedule = plan("plan", "--instance", str(name), "--budget", "0.62x", "--whole", report="--schedule")
    steps, n = schedule["steps"], len(chain["uF"])
    # Tensors: x_0 … x_n, then y_1 … y_(n-1). Operators: forward, then backward from the last on.
    touched = {f: [f, f + 1] for f in range(n)}
    for at in range(n):
        i = n - 1 - at
        touched[n + at] = [i, i + 1] + [n + j for j in (i, i + 1) if 1 <= j < n]
    span = max(step["end_ns"] for step in steps)
    size = max(spot["address"] + spot["bytes"][1] for spot in schedule["spots"] if "tensor" in spot)
    d = Drawing("addresses", 760, 360, "An arena over time: each rectangle is a tensor at its address")
    frame = left, top, right, bottom = 60, 16, 745, 306

    def across(ns: float) -> float:
        return left + (right - left) * ns / span

    def down(address: float) -> float:
        return bottom - (bottom - top) * address / size

    gib = [0, 0.5, 1.0, 1.5]
    axes(d, frame, [(across(ms * 1e6), f"{ms}") for ms in range(0, int(span / 1e6), 40)], [(down(g * GIB), f"{g:g}") for g in gib])
    d.text(left - 50, top + 4, "GiB", "small dim")
    d.text(right, bottom + 34, "ms of the step (modelled)", "end small dim")
    tensors = [spot for spot in schedule["spots"] if "tensor" in spot]
    for at, spot in enumerate(tensors):
        tensor, first = spot["tensor"], spot["from_step"]
        later = [s["from_step"] for s in tensors[at + 1 :] if s["tensor"] == tensor]
        uses = range(first if first is not None else 0, later[0] if later else len(steps))
        mine = [steps[k] for k in uses if tensor in ([steps[k]["tensor"]] if "tensor" in steps[k] else touched[steps[k]["op"]])]
        start, end = 0 if first is None else steps[first]["start_ns"], max(step["end_ns"] for step in mine)
        gradient = tensor > n
        returned = first is not None and steps[first]["do"] == "in"
        x, width = across(start), across(end) - across(start)
        y, height = down(spot["address"] + spot["bytes"][1]), down(spot["address"]) - down(spot["address"] + spot["bytes"][1])
        kind = "f3" if gradient else "f2" if returned else "f1"
        d.add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" class="{kind} pale" style="stroke:var(--paper)"/>')
        if height > 11 and width > 20:
            d.text(x + width / 2, y + height / 2 + 4, f"y{tensor - n}" if gradient else f"x{tensor}", "mid small bold")
    for at, (kind, words) in enumerate((("f1", "activation"), ("f2", "activation that has returned"), ("f3", "gradient"))):
        d.rect(130 + 130 * at + (70 if at == 2 else 0), 344, 12, 12, f"{kind} pale")
        d.text(148 + 130 * at + (70 if at == 2 else 0), 354, words, "small dim")
    d.write()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these figures")
    parser.add_argument("--drawn", action="store_true", help="only those that need no lmsc")
    arguments = parser.parse_args()
    drawn, planned = [overview, life, proofs, crates], [resnet50, bounds, planners, addresses]
    for figure in drawn if arguments.drawn else [*drawn, *planned]:
        if not arguments.names or figure.__name__ in arguments.names:
            figure()


if __name__ == "__main__":
    main()
