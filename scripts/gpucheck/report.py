"""The findings, as a short table, and as a page of docs/measurements/gpu."""

import json
import re
from pathlib import Path
from typing import Any

from .cases import ROOT

PAGES = ROOT / "docs" / "measurements" / "gpu"
# Of the output only the table comes back: 12,000 characters.
MOST_CHARACTERS = 11_500
GIB = 1 << 30

Line = dict[str, Any]


def read(folder: Path) -> list[Line]:
    path = folder / "check.jsonl"
    return [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []


def parts(lines: list[Line]) -> list[Line]:
    """The last result of each part."""
    last = {line["part"]: line for line in lines if "title" in line}
    return [last[name] for name in sorted(last)]


def of(lines: list[Line], part: str) -> dict[str, Any]:
    """The values of a part."""
    return next((line["values"] for line in parts(lines) if line["part"] == part), {})


def ms(value: float | None) -> str:
    return "" if value is None else f"{value * 1e3:.2f}"


def gib(value: float | None) -> str:
    return "" if value is None else f"{value / GIB:.2f}"


def grid(head: list[str], rows: list[list[str]]) -> list[str]:
    """Rows of Markdown, in columns of equal width."""
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]

    def line(row: list[str]) -> str:
        return "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"

    return [line(head), "|" + "|".join("-" * (width + 2) for width in widths) + "|", *map(line, rows)]


def verdicts(lines: list[Line]) -> list[str]:
    rows = []
    for line in parts(lines):
        verdict = "RED" if not line["ok"] else "skipped" if line["skipped"] and not line["values"] else "ok"
        rows.append([line["part"], line["title"].split(":")[0], f"{line['seconds']:.0f}", verdict])
    text = grid(["part", "what", "s", "verdict"], rows)
    for line in parts(lines):
        for word, texts in (("RED", line["red"]), ("missed", line["missed"]), ("skipped", line["skipped"])):
            text += [f"- {line['part']} {word}: {it[:240]}" for it in texts[:8]]
            text += [f"- {line['part']} {word}: and {len(texts) - 8} more"] if len(texts) > 8 else []
    return text


def environment(lines: list[Line]) -> list[str]:
    values = of(lines, "A")
    if not values:
        return []
    gpu = values.get("gpu") or {}
    text = [f"- {values.get('card', gpu.get('name', 'no card'))}, driver {values.get('driver', '?')}; {values.get('lmsc', '')}"]
    text += [f"- {library['name']} {library['version']}: {library['path']}" for library in gpu.get("libraries", [])]
    rates = {key: value for key, value in values.items() if key.endswith("_per_second")}
    if rates:
        told = ", ".join(f"{key.removesuffix('_per_second')} {value / 1e12:.2f} T/s" for key, value in rates.items())
        text.append(f"- ceilings by PyTorch {values.get('torch')}: {told}")
    return text


def steps(lines: list[Line]) -> list[str]:
    """Steps of lmsc and of PyTorch, side by side."""
    rows = []
    for part in "IKM":
        values = of(lines, part)
        waits = values.get("stalled", {})
        for it in values.get("steps", []):
            stall = waits.get(f"{it['model']} {it['in']}", {}) if it["way"] == "tf32" else {}
            way = it["way"] + (" graph" if it["graph"] else "")
            rows.append([
                it["model"], f"lmsc {way}", it["in"] or "", ms(it["seconds"]), ms(it["predicted"]), gib(it["peak"]),
                gib(it["predicted_peak"]), ms(stall.get("stalled_seconds")),
            ])  # fmt: skip
        for it in [*values.get("peers", []), *(of(lines, "J").get("peers", []) if part == "I" else [])]:
            dims = " ".join([it["model"], *(f"{name}={value}" for name, value in it["dims"].items())])
            rows.append([dims, f"PyTorch {it['way']}", "", it.get("error", "")[:40] or ms(it["seconds"]), "",
                         gib(it.get("peak")), "", ""])  # fmt: skip
    if not rows:
        return []
    rows.sort(key=lambda row: row[0])
    return grid(["model", "by", "budget", "step ms", "predicted ms", "peak GiB", "predicted GiB", "stall ms"], rows)


def kernels(lines: list[Line], most: int = 14) -> list[str]:
    values = of(lines, "H")
    rows = [
        [it["name"], str(it["calls"]), ms(it["seconds"]), ms(it["floor_seconds"]), ms(it["seconds"] - it["floor_seconds"]),
         "" if it["share_of_peak"] is None else f"{100 * it['share_of_peak']:.0f} %"]
        for it in values.get("kernels", [])[:most]
    ]  # fmt: skip
    if not rows:
        return []
    whole = f"{values['case']}: a step of {ms(values['step_seconds'])} ms, kernels {ms(values['kernel_seconds'])} ms, "
    whole += f"floor {ms(values['floor_seconds'])} ms"
    return [whole, "", *grid(["kernel", "calls", "ms", "floor", "lost", "share"], rows)]


def link(lines: list[Line]) -> list[str]:
    values = of(lines, "G")
    text = [f"- {told}" for told in values.get("told", [])]
    for it in values.get("torch") or []:
        rates = ", ".join(f"{way} {it[way] / 1e9:.1f}" for way in ("in", "out", "each of both") if way in it)
        text.append(f"- {it['size'] >> 20} MiB, pinned by {it['pinned']}: {rates or it.get('error')} GB/s")
    return text


def correct(lines: list[Line]) -> list[str]:
    text = []
    for name, part in (("operators", "C"), ("parity", "D"), ("waits", "F"), ("profiler", "L")):
        if values := of(lines, part):
            short = {key: value for key, value in values.items() if key != "first"}
            for value in short.values():
                if isinstance(value, dict):
                    value.pop("first", None)
            text.append(f"- {name}: {json.dumps(short)[:900]}")
    return text


SECTIONS = (
    ("Verdict", verdicts), ("Environment", environment), ("Steps", steps), ("Kernels", kernels), ("Link", link),
    ("Values and waits", correct),
)  # fmt: skip


def page(lines: list[Line], mark: str = "## ") -> str:
    text = []
    for title, section in SECTIONS:
        if found := section(lines):
            text += [f"{mark}{title}", "", *found, ""]
    return "\n".join(text)


def table(lines: list[Line]) -> str:
    """The end of the output."""
    text = page(lines, "")
    return text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 20] + "\n… cut short\n"


def is_red(lines: list[Line]) -> bool:
    return any(not line["ok"] for line in parts(lines)) or not parts(lines)


def write(folders: list[Path], into: Path = PAGES) -> list[Path]:
    """Writes the page and all findings under the card's name."""
    lines = [line for folder in folders for line in read(folder)]
    if not lines:
        raise ValueError(f"no check.jsonl is in {', '.join(map(str, folders))}")
    values = of(lines, "A")
    card = values.get("card") or (values.get("gpu") or {}).get("name") or "unknown"
    name = re.sub(r"\W+", "-", card).strip("-").lower()
    into.mkdir(parents=True, exist_ok=True)
    head = [f"# {card}", "", "Measured by `scripts/gpu-check run`; `predicted` is modelled, all else is measured.", ""]
    if packed := values.get("packed"):
        head += [f"lmsc at {packed['commit'][:12]}, plans for {packed['target']}.", ""]
    files = [into / f"{name}.md", into / f"{name}.json"]
    files[0].write_text("\n".join(head) + "\n" + page(lines))
    files[1].write_text("[\n" + ",\n".join(json.dumps(line) for line in lines) + "\n]\n")
    return files
