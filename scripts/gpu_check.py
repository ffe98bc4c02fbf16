"""Compares lmsc on a GPU with lmsc on the processor, and with PyTorch on the same GPU; called by scripts/gpu-check.

    python3 scripts/gpu_check.py FOLDER [--minutes 9] [MODEL …]

Writes FOLDER/NAME.json, NAME being the device's, and adds to it as it goes, so that nothing is lost where time runs out:

- `operators`: every kernel once, on the device, by own kernels and with libraries, beside the host: `testdata/operators.lms`;
- `parity`: what three steps of each small model leave on the device, as they are, as a graph of CUDA, by own kernels where
  libraries are found, and in chunks, beside the host: gradients, running statistics, and parameters after SGD, as Adam divides
  gradients by their own size also where they are rounding errors; and `gpu`, with the versions of cuBLAS and cuDNN;
- `link`: bandwidths, latency, and what launches, waits and memory cost, as `lmsc calibrate` measures them;
- `steps`: training steps with AdamW in f32, without a budget and within some: seconds, peak, what was predicted, what
  computing waited; and the same model in PyTorch, as it is, compiled, and with each of its ways to save memory; and what
  multiplies rounded factors, in both.

What takes longer than the minutes that are left is left out. LMSC names the program. PyTorch, torchvision and transformers
are used where they are. Models as arguments stand for those of the steps.
"""

import argparse
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "testdata" / "models"
LMSC = os.environ.get("LMSC", "lmsc")

# Of steps: model, dimensions, and budgets in GiB. What matters most stands first.
CASES = [
    ("resnet50", {"batch": 64}, [4, 2]),
    ("resnet50", {"batch": 256}, [16, 8]),
    ("gpt2_small", {"batch": 8, "seq": 512}, [8, 4]),
    ("unet3d", {"batch": 8}, [4, 2]),
    ("resnet50", {"batch": 1024}, [16]),
]
STEPS = 8
# Largest difference of two variables, by the largest element of the variable, or by so much of the largest of all: some
# gradients are nothing but rounding errors.
ALLOWED = 1e-3
FLOOR = 1e-3
PRECISIONS = ["tf32", "bf16"]
TORCH = ["eager", "compiled", "tf32", "bf16", "save_on_cpu", "checkpoint", "budget 0.5", "budget 0.25"]
# What PyTorch's checkpoints are put around.
BLOCKS = {"BasicBlock", "Bottleneck", "GPT2Block", "BertLayer", "DoubleConv"}


# --- lmsc ------------------------------------------------------------------------------------------------------------


def lmsc(*arguments: object, seconds: float) -> str:
    """What the program prints."""
    done = subprocess.run([LMSC, *map(str, arguments)], capture_output=True, text=True, timeout=max(seconds, 1))
    if done.returncode:
        raise RuntimeError(" ".join(done.stderr.split()) or f"exit {done.returncode}")
    return done.stdout


def reading(model: str, dims: dict[str, int], optimizer: str | None = "optimizer_model.onnx") -> list[str]:
    folder = MODELS / model
    arguments = [str(folder / "training_model.onnx")]
    if optimizer:
        arguments += ["--optimizer", str(folder / optimizer)]
    return arguments + [part for name, value in dims.items() for part in ("--dim", f"{name}={value}")]


def values(path: Path) -> dict[str, tuple[str, list[float] | bytes]]:
    """What a safetensors file holds: floats as such, all else as bytes."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name == "__metadata__":
            continue
        kind, (first, last) = entry["dtype"], entry["data_offsets"]
        content = data[begin + first : begin + last]
        if kind == "BF16":
            content = b"".join(b"\0\0" + content[at : at + 2] for at in range(0, len(content), 2))
        code = {"F32": "f", "BF16": "f", "F64": "d", "F16": "e"}.get(kind)
        each = struct.calcsize(f"<{code}") if code else 1
        found[name] = kind, list(struct.unpack(f"<{len(content) // each}{code}", content)) if code else content
    return found


def operators(seconds: float) -> dict:
    """By way, the largest difference of a value from the host's, by its largest element; and what differs by too much."""
    graph, found, wrong = ROOT / "testdata" / "operators.lms", {}, {}
    with tempfile.TemporaryDirectory() as folder:
        host, file = Path(folder) / "host", Path(folder) / "device"
        run = ["run", graph, "--steps", "1", "--fetch", "all"]
        lmsc(*run, "--out", host, seconds=seconds)
        expected = values(host)
        for way in (["cuda"], ["cuda", "--own-kernels"]):
            lmsc(*run, "--device", *way, "--out", file, seconds=seconds)
            apart = {}
            for name, (kind, ours) in values(file).items():
                theirs = expected[name][1]
                if isinstance(ours, bytes):
                    apart[name] = 0.0 if ours == theirs else float("inf")
                    continue
                scale = max((abs(x) for x in theirs if x == x and abs(x) != float("inf")), default=0.0) or 1.0
                # Half of their last place more than once.
                short = {"F16": 2**-8, "BF16": 2**-5}.get(kind, ALLOWED) / ALLOWED
                same = lambda a, b: a == b or (a != a and b != b)
                far = [0.0 if same(a, b) else abs(a - b) for a, b in zip(ours, theirs, strict=True)]
                worst = max(far, default=0.0) if all(x == x for x in far) else float("inf")
                apart[name] = worst / scale / short
            found[" ".join(way)] = max(apart.values())
            wrong |= {name: by for name, by in apart.items() if by > ALLOWED}
    return found | {"ok": not wrong, "values": len(expected), "wrong": wrong}


def variables(path: Path) -> dict[str, memoryview]:
    """What a safetensors file holds as floats, by name."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    entries = json.loads(data[8:begin])
    floats = {name: entry["data_offsets"] for name, entry in entries.items() if entry.get("dtype") == "F32"}
    return {name: memoryview(data[begin + first : begin + last]).cast("f") for name, (first, last) in floats.items()}


def difference(ours: Path, theirs: Path) -> float:
    """The largest difference of two files, by the largest elements of the variables."""
    ours, theirs = variables(ours), variables(theirs)
    if ours.keys() != theirs.keys():
        raise RuntimeError("other variables are left")
    largest = {name: max(map(abs, known), default=0.0) for name, known in theirs.items()}
    least = FLOOR * max(largest.values(), default=0.0) or 1.0
    worst = 0.0
    for name, known in theirs.items():
        scale = max(largest[name], least)
        # A NaN is in no maximum.
        apart = [abs(a - b) for a, b in zip(ours[name], known, strict=True)]
        worst = max(worst, max(apart, default=0.0) / scale if all(a == a for a in apart) else float("inf"))
    return worst


def parity(model: str, seconds: float) -> dict:
    dims = json.loads((MODELS / model / "training_model.shapes.json").read_text())["runs"][0]
    ways = {
        "cuda": ["cuda"],
        "cuda+graph": ["cuda+graph"],
        "own kernels": ["cuda", "--own-kernels"],
        "chunks": ["cuda", "--virtual", "2MiB"],
    }
    found, gpu = dict.fromkeys(ways, 0.0), None
    with tempfile.TemporaryDirectory() as folder:
        host, file = Path(folder) / "host", Path(folder) / "device"
        for optimizer in (None, "optimizer_model_sgd.onnx"):
            run = ["run", *reading(model, dims, optimizer), "--steps", "3"]
            lmsc(*run, "--save", host, seconds=seconds)
            for way, device in ways.items():
                told = json.loads(lmsc(*run, "--device", *device, "--save", file, "--json", seconds=seconds))
                found[way] = max(found[way], difference(file, host))
                gpu = gpu or told["gpu"]
    return found | {"ok": all(error <= ALLOWED for error in found.values()), "gpu": gpu}


def steps(
    model: str, dims: dict[str, int], budget: int | None, precision: str, profile: Path, seconds: float
) -> dict:
    """A step of lmsc's, within so many GiB."""
    with tempfile.TemporaryDirectory() as folder:
        source, trace = reading(model, dims), Path(folder) / "trace.json"
        if budget:
            planned = Path(folder) / "planned.onnx"
            text = lmsc(*source, "--budget", f"{budget}GiB", "--profile", profile, "-o", planned, seconds=seconds)
            source = [str(planned)]
        run = ["run", *source, "--device", "cuda", "--profile", profile, "--steps", STEPS, "--json"]
        run += ["--precision", precision]
        found = json.loads(lmsc(*run, seconds=seconds))
        # Looking costs time: what computing waited is of other steps.
        traced = json.loads(lmsc(*run, "--trace", trace, seconds=seconds)) if budget else found
    report = {
        "seconds": statistics.median(found["step_seconds"][1:]),
        "predicted": found["predicted_step_seconds"],
        "peak": found["peak"],
        "predicted_peak": found["predicted_peak"],
        "stalled": traced["stalled_seconds"],
        "copied_out": found["copied_out"],
        "copied_in": found["copied_in"],
        "gpu": found["gpu"],
    }
    if budget:
        report["plan"] = next((line for line in text.splitlines() if line.startswith("plan")), "")
    return report


# --- PyTorch ---------------------------------------------------------------------------------------------------------


def torch_step(model: str, dims: dict[str, int], way: str, device: str) -> dict:
    """The same step in PyTorch; runs in a process of its own."""
    sys.path.insert(0, str(MODELS / "make"))
    import models
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.utils.checkpoint import checkpoint

    torch.set_float32_matmul_precision("high" if way == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = way == "tf32"
    spec = models.SPECS[model]
    net = models.build(model).to(device)
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if way == "checkpoint" and type(module).__name__ in BLOCKS:
            module.forward = lambda *given, plain=module.forward, **named: checkpoint(
                plain, *given, use_reentrant=False, **named
            )
    if way.startswith("budget"):
        import torch._functorch.config

        torch._functorch.config.activation_memory_budget = float(way.split()[1])
    sample = (dims["seq"],) if "seq" in dims else spec.sample
    if spec.tokens:
        x = torch.randint(0, spec.tokens, (dims["batch"], *sample), device=device)
    else:
        x = torch.randn(dims["batch"], *sample, device=device)

    def loss(labels: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, torch.bfloat16, enabled=way == "bf16"):
            return forward(labels)

    def forward(labels: torch.Tensor) -> torch.Tensor:
        return net(x, labels) if spec.loss == "inmodel" else F.cross_entropy(net(x), labels)

    with torch.no_grad():
        scores = x if spec.loss == "inmodel" else net(x)
    labels = x if spec.loss == "inmodel" else torch.randint(0, scores.shape[1], (scores.shape[0], *scores.shape[2:]), device=device)
    del scores
    compute = torch.compile(loss) if way == "compiled" or way.startswith("budget") else loss
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        if way == "save_on_cpu":
            with torch.autograd.graph.save_on_cpu(pin_memory=device == "cuda"):
                value = compute(labels)
        else:
            value = compute(labels)
        value.backward()
        optimizer.step()

    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(3):
        step()
    wait()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(STEPS):
        started = time.perf_counter()
        step()
        wait()
        times.append(time.perf_counter() - started)
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else None
    return {"seconds": statistics.median(times), "peak": peak, "torch": torch.__version__}


def by_torch(model: str, dims: dict[str, int], way: str, seconds: float) -> dict:
    arguments = [sys.executable, __file__, "--torch", json.dumps([model, dims, way, "cuda"])]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=max(seconds, 1))
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])


# --- all of it -------------------------------------------------------------------------------------------------------


class Results:
    """What was found, written after each finding."""

    def __init__(self, folder: Path, minutes: float) -> None:
        asked = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
        try:
            name = subprocess.run(asked, capture_output=True, text=True, timeout=60).stdout.strip() or "unknown"
        except OSError:
            name = "unknown"
        self.path = folder / (re.sub(r"\W+", "-", name.split(",")[0]).strip("-").lower() + ".json")
        self.found: dict = {"device": name, "operators": None, "parity": [], "link": None, "steps": []}
        self.until = time.monotonic() + 60 * minutes
        self.failed = 0
        folder.mkdir(parents=True, exist_ok=True)

    def left(self) -> float:
        return self.until - time.monotonic()

    def add(self, kind: str, what: dict, find) -> None:
        """Adds what `find` finds in the seconds that are left, and prints a line of it."""
        if self.left() < 5:
            found = {"left_out": "no time was left"}
        else:
            try:
                found = find(self.left())
            except subprocess.TimeoutExpired:
                found = {"left_out": "no time was left"}
            except (RuntimeError, ValueError, KeyError) as error:
                found = {"error": str(error)}
        # What PyTorch cannot do is no fault of lmsc.
        self.failed += what.get("by") != "PyTorch" and ("error" in found or found.get("ok") is False)
        if kind in ("link", "operators"):
            self.found[kind] = found
        else:
            self.found[kind].append(what | found)
        shown = {key: value for key, value in found.items() if key not in ("gpu", "plan")}
        print(kind, *what.values(), json.dumps(shown), flush=True)
        self.path.write_text(json.dumps(self.found, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "bench" / "gpu")
    parser.add_argument("models", nargs="*", help="only steps of these, in batches of 4")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--torch", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch:
        print(json.dumps(torch_step(*json.loads(options.torch))))
        return 0
    results = Results(options.folder, options.minutes)
    results.add("operators", {}, operators)
    for path in sorted(MODELS.glob("tiny_*/training_model.onnx")):
        model = path.parent.name
        if not model.endswith("_bad"):
            results.add("parity", {"model": model}, lambda seconds: parity(model, seconds))
    small = {"batch": 4}
    cases = [(model, small | ({"seq": 8} if "gpt2" in model else {}), []) for model in options.models] or CASES
    with tempfile.TemporaryDirectory() as folder:
        for case, (model, dims, budgets) in enumerate(cases):
            profile = Path(folder) / f"{case}.json"
            measured = ["calibrate", *reading(model, dims), "--device", "cuda", "-o", profile]

            def link(seconds: float) -> dict:
                told = lmsc(*measured, seconds=seconds)
                return json.loads(profile.read_text())["link"] | {"costs": told.strip().splitlines()[-1]}

            results.add("link", {"model": model, **dims}, link)
            runs = [(budget, "f32") for budget in [None, *budgets]] + [(None, precision) for precision in PRECISIONS]
            for budget, precision in runs:
                what = {"model": model, **dims, "by": "lmsc", "budget_gib": budget, "precision": precision}
                results.add("steps", what, lambda seconds: steps(model, dims, budget, precision, profile, seconds))
            for way in TORCH:
                what = {"model": model, **dims, "by": "PyTorch", "way": way}
                results.add("steps", what, lambda seconds: by_torch(model, dims, way, min(seconds, 120)))
    print(f"{results.failed} failed; written to {results.path}")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
