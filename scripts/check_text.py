"""Takes every case of ONNX's backend test suite through `.lms` and `.mlir` and back, and runs both files in ONNX Runtime.

Each model is written as text by `lmsc opt`, and the text as ONNX again. The file that comes back gives the bits of the first one on the
suite's inputs, or one of the two steps says what a text cannot hold (exit status 2). A case whose short inputs shapes depend on is tried
with these as initializers, too, as in check_onnx.py.

- equal: the same bits of all outputs;
- same: ONNX Runtime does not run the first file; the nodes, attributes and constants that come back are those of the first, or lmsc's host
  computes the same bits from both;
- refused: exit status 2;
- wrong: anything else.

Prints a line for each case that is wrong, and the sums; fails if one is wrong. LMSC names the program; arguments select cases by parts
of their names.
"""

import collections
import os
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from check_onnx import LMSC, RANDOM, SECONDS, SHORT_ELEMENTS, SHORT_RANK, Arrays, Case, arrays, read_tensors, suite, with_initializers, write_tensors

FORMS = ("lms", "mlir")
ort.set_default_logger_severity(4)


def results(path: Path, fed: Arrays) -> list[np.ndarray] | None:
    """What ONNX Runtime computes; None if it does not take the model or its inputs."""
    try:
        return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, fed)
    except Exception:
        return None


def bits(value: object) -> object:
    """A value that is equal where all bits are."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes() if value.dtype != object else value.tolist()
    return repr(value)


def array(tensor: onnx.TensorProto) -> object:
    value = onnx.numpy_helper.to_array(tensor)
    return tensor.data_type, value.shape, value.tolist() if value.dtype == object else value.tobytes()


def attribute(a: onnx.AttributeProto) -> object:
    """An attribute, its tensors by their elements: a tensor has several spellings."""
    if a.type == onnx.AttributeProto.TENSOR:
        return a.name, array(a.t)
    if a.type == onnx.AttributeProto.GRAPH:
        return a.name, content(a.g)
    return a.name, a.SerializeToString(deterministic=True)


def content(graph: onnx.GraphProto) -> object:
    """The nodes and constants of a graph, without what a reader adds or leaves out."""
    nodes = [
        (node.op_type, node.domain, list(node.input), list(node.output), sorted(map(attribute, node.attribute), key=repr))
        for node in graph.node
    ]
    return nodes, {i.name: array(i) for i in graph.initializer}, [v.name for v in graph.input], [v.name for v in graph.output]


def on_the_host(path: Path, fed: Arrays, outputs: list[str]) -> list[np.ndarray] | None:
    """What lmsc's host computes; None if it does not run the model."""
    feeds, out = path.with_suffix(".in"), path.with_suffix(".out")
    write_tensors(feeds, fed)
    arguments = [LMSC, "run", path, "--steps", "1", *(["--feeds", feeds] if fed else []), "--fetch", ",".join(outputs), "--out", out]
    done = subprocess.run(list(map(str, arguments)), capture_output=True, timeout=SECONDS)
    return list(read_tensors(out).values()) if done.returncode == 0 else None


def opt(source: Path, target: Path) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run([LMSC, "opt", str(source), "-o", str(target)], capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None


def there_and_back(case: Case, model: onnx.ModelProto, fed: Arrays | None, form: str, folder: Path) -> tuple[str, str]:
    """The verdict on one model and one form of text."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        first, text, back = (Path(name) / file for file in ("first.onnx", f"text.{form}", "back.onnx"))
        first.write_bytes(model.SerializeToString())
        for source, target in (first, text), (text, back):
            done = opt(source, target)
            if done is None:
                return "wrong", f"no end within {SECONDS} s"
            if done.returncode == 2 and done.stderr.startswith("lmsc: error["):
                return "refused", ""
            if done.returncode != 0:
                return "wrong", f"exit status {done.returncode}: {done.stderr[:200]}"
        draws = case.draws or any(node.op_type in RANDOM for f in model.functions for node in f.node)
        expected = None if fed is None or draws else results(first, fed)
        if expected is None:
            returned = onnx.load(back)
            if content(model.graph) == content(returned.graph):
                return "same", ""
            names = [v.name for v in model.graph.output]
            expected, found = (on_the_host(p, fed or {}, names) for p in (first, back))
            same = expected is not None and found is not None and list(map(bits, found)) == list(map(bits, expected))
            return ("same", "") if same else ("wrong", "other nodes, constants, inputs or outputs come back")
        found = results(back, fed)
        if found is None:
            return "wrong", "ONNX Runtime takes the first file, and not the one that comes back"
        return ("equal", "") if list(map(bits, found)) == list(map(bits, expected)) else ("wrong", "other bits")


def run(case: Case, form: str, folder: Path) -> list[tuple[str, str]]:
    graph = case.model.graph
    held = {initializer.name for initializer in graph.initializer}
    inputs = case.data_sets[0][0] if case.data_sets else []
    names = [v.name for v in graph.input if len(inputs) == len(graph.input) or v.name not in held]
    fed = arrays(inputs, names)
    if isinstance(fed, str):
        return [there_and_back(case, case.model, None, form, folder)]
    verdicts = [there_and_back(case, case.model, fed, form, folder)]
    short = {n: v for n, v in fed.items() if v.size <= SHORT_ELEMENTS and v.ndim <= SHORT_RANK and n not in held}
    if short and verdicts[0][0] == "refused":
        rest = {name: value for name, value in fed.items() if name not in short}
        verdicts.append(there_and_back(case, with_initializers(case.model, short), rest, form, folder))
    return verdicts


def main() -> int:
    started = time.monotonic()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = suite()
    cases = [case for case in cases if len(sys.argv) < 2 or any(part in case.name for part in sys.argv[1:])]
    failed = 0
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        for form in FORMS:
            sums: collections.Counter[str] = collections.Counter()
            for case, verdicts in zip(cases, pool.map(lambda c, form=form: run(c, form, Path(name)), cases)):
                for kind, why in verdicts:
                    sums[kind] += 1
                    if kind == "wrong":
                        print(f"wrong   {case.name} through .{form}: {why}", flush=True)
            failed += sums["wrong"]
            print(f"through .{form}: " + ", ".join(f"{sums[kind]} {kind}" for kind in ("equal", "same", "refused", "wrong")), flush=True)
    print(f"{len(cases)} cases in {time.monotonic() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
