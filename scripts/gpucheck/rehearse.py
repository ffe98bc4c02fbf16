"""The whole check over a driver that computes nothing, so that no minute of a GPU is spent on a mistake of the scripts.

Values mean nothing there. Every comparison is made, so its inputs are proven to be there, but none is judged; that a wrong
value is seen is tested by itself, as is that a missing library, a missing plan and a command that fails are red.
"""

import json
import os
import struct
import sys
import tempfile
from pathlib import Path

from . import report, tensors
from .check import Failed

TOOLS = {
    "nvidia-smi": """
import sys
fields = sys.argv[1].split("=")[1].split(",")
known = {"name": "Null H100", "driver_version": "0.0", "memory.total": "80896", "memory.used": "512"}
print(", ".join(known[field] for field in fields))
""",
    "compute-sanitizer": """
import os, sys
at = sys.argv.index("--error-exitcode") + 2
open(sys.argv[sys.argv.index("--log-file") + 1], "w").write("========= ERROR SUMMARY: 0 errors")
os.execv(sys.argv[at], sys.argv[at:])
""",
    "ncu": """
import subprocess, sys
at = sys.argv.index("--page") + 2
metrics = sys.argv[sys.argv.index("--metrics") + 1].split(",")
done = subprocess.run(sys.argv[at:], capture_output=True)
print("==PROF== Connected")
print('"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"')
for metric in metrics:
    print(f'"0","kernel","{metric}","us","1,234.5"')
sys.exit(done.returncode)
""",
}


def tools(folder: Path) -> None:
    """The vendor's tools, as far as the check uses them."""
    folder.mkdir(parents=True)
    for name, text in TOOLS.items():
        path = folder / name
        path.write_text(f"#!{sys.executable}{text}")
        path.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def safetensors(path: Path, values: dict[str, list[float]]) -> Path:
    head, at = {}, 0
    for name, numbers in values.items():
        head[name] = {"dtype": "F32", "shape": [len(numbers)], "data_offsets": [at, at + 4 * len(numbers)]}
        at += 4 * len(numbers)
    text = json.dumps(head).encode()
    data = b"".join(struct.pack(f"<{len(numbers)}f", *numbers) for numbers in values.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Failed(f"the check does not see it: {what}")


def wrong_values_are_seen() -> None:
    """Values that are right, wrong by a little, wrong in one tile, and NaN."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        right = {"a": [1.0, -2.0, 0.5, 0.0], "b": [1e-6 * at for at in range(20_000)]}
        known = tensors.digest(safetensors(folder / "host", right))
        tensors.write(folder / "host.digest", known)
        expect(tensors.read(folder / "host.digest") == known, "a digest is not read as it was written")

        def of(**changed: list[float]) -> tuple[float, list[tensors.Difference]]:
            return tensors.compare(tensors.digest(safetensors(folder / "gpu", right | changed)), known)

        expect(of() == (0.0, []), "equal values differ")
        expect(not of(a=[1.0, -2.001, 0.5, 0.0])[1], "a rounding error is told")
        worst, found = of(a=[1.0, -2.01, 0.5, 0.0])
        expect(worst > 1 and [it.element for it in found] == [1], "a wrong element")
        expect(of(a=[1.0, float("nan"), 0.5, 0.0])[0] == float("inf"), "what is no number")
        expect(bool(of(b=right["b"][:10_000] + [1.0] * 10_000)[1]), "a wrong half")
        other = tensors.digest(safetensors(folder / "gpu", right | {"b": right["b"][:-1] + [0.0]}))
        expect(tensors.changed(other, known) == ["b"], "another bit outside of the sample")
        try:
            tensors.compare({"a": known["a"]}, known)
            expect(False, "a tensor that is missing")
        except ValueError:
            pass


def everything_was_done(lines: list[report.Line], names: str) -> None:
    """Whether every part of the call ran to its end, with nothing left out but PyTorch."""
    done = {line["part"]: line for line in report.parts(lines)}
    missing = [name for name in names if name not in done]
    if missing:
        raise Failed(f"parts {', '.join(missing)} did not run")
    for name, line in done.items():
        if line["red"]:
            raise Failed(f"part {name}: {line['red'][0]}")
        rest = [text for text in line["skipped"] if not text.startswith("PyTorch: ")]
        if rest:
            raise Failed(f"part {name} left out: {rest[0]}")
