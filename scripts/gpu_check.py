"""Fifteen minutes of a GPU: whether it computes the host's results, how fast, and where the time goes.

    scripts/gpu-check pack              on any machine, minutes before: all that needs no GPU, into target/gpu-check
    scripts/gpu-check run OUT --call 1  on the GPU: parts A to F, whether it is right; about 3 minutes
    scripts/gpu-check run OUT --call 2  parts G to N, how fast it is, and the Python package; about 7 minutes
    scripts/gpu-check report OUT…       writes docs/measurements/gpu/CARD.md and .json
    scripts/gpu-check rehearse          all of it with small models over a driver that computes nothing; CI does it

`run` needs python3 alone; PyTorch is measured where it is. Each part has its own time, and adds a line to OUT/check.jsonl when
it ends, and one for each of its cases; logs are in OUT/logs.tar.gz. The exit status is 1 where anything is red, 2 where the
call is at fault. LMSC names the program to pack, LMSC_NULL_DRIVER a folder with the driver that computes nothing.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from gpucheck import correct, measure, rehearse, report
from gpucheck.cases import ROOT
from gpucheck.check import Check, Failed, Part
from gpucheck.pack import pack, unpack

# For each call, its parts: their function, and their limit in seconds.
CALLS = {
    1: (
        Part("A", 70, correct.environment),
        Part("B", 30, correct.smoke),
        Part("C", 60, correct.operators),
        Part("D", 150, correct.parity),
        Part("E", 60, correct.sanitizer),
        Part("F", 40, correct.waits),
    ),
    2: (
        Part("G", 40, measure.link),
        Part("H", 75, measure.kernels),
        Part("I", 170, measure.resnet),
        Part("J", 140, measure.resnet_in_torch),
        Part("K", 110, measure.gpt2),
        Part("L", 60, measure.profiler),
        Part("M", 60, measure.rest),
        Part("N", 60, correct.package),
    ),
}


def run(packed: Path, out: Path, calls: list[int], only: str, seconds: float) -> bool:
    """Runs parts and prints the table; whether all of it is right."""
    check = Check(packed, out, seconds)
    for part in [part for call in calls for part in CALLS[call] if part.name in only or not only]:
        if not check.perform(part):
            break
    known = set(check.about["kernels"])
    new = sum(path.name not in known for path in (packed / "cache").rglob("*.cubin"))
    check.record({"compiled_here": new})
    lines = report.read(out)
    text = report.table(lines) + (f"{new} kernels were compiled here, which were not packed\n" if new else "")
    (out / "table.md").write_text(text)
    print(f"\n{text}", flush=True)
    return not report.is_red(lines)


def rehearsal(folder: Path, lmsc: Path) -> bool:
    """Packs, runs both calls and writes the page, all with small models; then the cases that must be red."""
    rehearse.wrong_values_are_seen()
    rehearse.tools(folder / "tools")
    if not pack(folder / "packed", lmsc, rehearsal=True):
        return False
    packed = unpack(folder / "packed", folder / "work")
    outs = [folder / "out-1", folder / "out-2"]
    for call, out in zip(CALLS, outs, strict=True):
        green = run(packed, out, [call], "", 600)
        lines = report.read(out)
        rehearse.everything_was_done(lines, "".join(part.name for part in CALLS[call]))
        rehearse.expect(green, f"call {call} is red, and no part of it is")
        rehearse.expect({"compiled_here": 0} in lines, f"call {call} compiles kernels that are not packed")
    rehearse.expect((outs[1] / "logs.tar.gz").exists(), "there are no logs")
    files = report.write(outs, folder / "pages")
    rehearse.expect(all(file.stat().st_size > 1000 for file in files), "the page is empty")
    return failures_are_red(folder, packed)


def failures_are_red(folder: Path, packed: Path) -> bool:
    """Whether a missing library stops the check, and a missing plan is red."""
    print("gpu-check: what follows must be red")
    driver = os.environ["LMSC_NULL_DRIVER"]
    without = folder / "without"
    shutil.copytree(driver, without, ignore=shutil.ignore_patterns("libcudnn*", "libcublas*"))
    os.environ["LMSC_NULL_DRIVER"] = str(without)
    out = folder / "out-without"
    rehearse.expect(not run(packed, out, [1], "", 60), "libraries are missing")
    names = [line["part"] for line in report.parts(report.read(out))]
    rehearse.expect(names == ["A"], f"libraries are missing, and parts {names} ran")
    os.environ["LMSC_NULL_DRIVER"] = driver
    next((packed / "plans").iterdir()).unlink()
    rehearse.expect(not run(packed, folder / "out-unplanned", [2], "IKM", 120), "a plan is missing")
    print("gpu-check: the rehearsal is green, and what must be red is")
    return True


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("pack", help="prepare all that needs no GPU")
    running = commands.add_parser("run", help="run on a GPU what was packed")
    running.add_argument("out", type=Path)
    running.add_argument("--call", type=int, choices=list(CALLS), help="A to F or G to N; without, all")
    running.add_argument("--parts", default="", metavar="LETTERS", help="these parts alone")
    running.add_argument("--seconds", type=float, default=560, help="after so many, nothing more is begun")
    commands.add_parser("rehearse", help="all of it over a driver that computes nothing")
    reporting = commands.add_parser("report", help="write the page of a card")
    reporting.add_argument("out", type=Path, nargs="+")
    return parser.parse_args()


def main() -> int:
    options = parse()
    folder = Path(os.environ.get("GPU_CHECK_PACK", ROOT / "target" / "gpu-check"))
    try:
        match options.command:
            case "pack":
                return 0 if pack(folder, Path(os.environ["LMSC"]), rehearsal=False) else 1
            case "run":
                work = Path(tempfile.gettempdir()) / f"lmsc-gpu-check-{os.getuid()}"
                calls = [options.call] if options.call else list(CALLS)
                packed = unpack(folder, work)
                return 0 if run(packed, options.out.resolve(), calls, options.parts, options.seconds) else 1
            case "rehearse":
                with tempfile.TemporaryDirectory() as name:
                    return 0 if rehearsal(Path(name), Path(os.environ["LMSC"])) else 1
            case _:
                print("\n".join(str(file) for file in report.write(options.out)))
                return 0
    except (Failed, ValueError) as error:
        print(f"gpu-check: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
