"""Runs ONNX's own backend test suite on lmsc's host: every case is computed right, or refused by name.

The cases are those of the package `onnx`: from its generators for each operator, and the models in its data. A case
is one step of `lmsc run`, with the inputs in a safetensors file and the outputs fetched into another. Operands that lmsc
wants to know before the step, such as a shape, are inputs of the suite's models, so a case that is refused is run once
more with its short inputs as initializers.

- right: every output has the type and shape that the suite expects, and its values within the suite's tolerances; random outputs by
  type and shape alone, as every runtime has numbers of its own;
- refused: exit code 1 or 2, and the message names an operator, an input or an output of the model;
- wrong: other values, or a refusal that names nothing;
- crash: any other end, or none within 20 seconds.

Prints a line for each operator whose cases are not all right, with the reasons, and the sums; fails if a case is wrong
or crashes. LMSC names the program; arguments select cases by parts of their names, and --verbose prints every case.
--sample writes small cases that are right to testdata/onnx_suite.safetensors, which tests/suite.rs runs.
"""

import collections
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx.numpy_helper
from onnx.backend.test.loader import DATA_DIR, load_model_tests

LMSC = os.environ.get("LMSC", "lmsc")
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
SECONDS = 20

# Inputs of at most so many elements and dimensions become initializers where the case is refused otherwise.
SHORT_ELEMENTS, SHORT_RANK = 64, 1

# Operators that draw random numbers; Dropout does where an operand says that it trains.
RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}

# Two units in the last place: the suite's own tolerance for bfloat16. For float16 it has one unit, but the reference
# rounds each sum to 16 bits, and a result that is rounded once, as in ONNX Runtime, is up to two away.
ROUNDING = {"BF16": 2**-6, "F16": 2**-9}

TYPES = {
    "F64": np.dtype(np.float64), "F32": np.dtype(np.float32), "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16), "I64": np.dtype(np.int64), "I32": np.dtype(np.int32),
    "I16": np.dtype(np.int16), "I8": np.dtype(np.int8), "U64": np.dtype(np.uint64), "U32": np.dtype(np.uint32),
    "U16": np.dtype(np.uint16), "U8": np.dtype(np.uint8), "BOOL": np.dtype(np.bool_),
}  # fmt: skip
NAMES = {dtype: name for name, dtype in TYPES.items()}

# The file of small cases: at most so many of an operator, of so many bytes each, in names, numbers and model.
SAMPLE = Path(__file__).resolve().parent.parent / "testdata" / "onnx_suite.safetensors"
SAMPLED, SAMPLED_BYTES = 3, 4096

Arrays = dict[str, np.ndarray]


@dataclass
class Case:
    """A model of the suite, and for each of its data sets inputs and expected outputs, by position."""

    name: str
    model: onnx.ModelProto
    data_sets: list[tuple[list, list]]
    rtol: float
    atol: float

    @property
    def operators(self) -> list[str]:
        return sorted({node.op_type for node in self.model.graph.node})

    @property
    def draws(self) -> bool:
        """Whether the values of its outputs are random."""
        trains = any(node.op_type == "Dropout" and len(node.input) > 2 for node in self.model.graph.node)
        return trains or bool(RANDOM & set(self.operators))

    @property
    def operator(self) -> str:
        """The operator that the suite names the case after, or the only one."""
        return self.operators[0] if len(self.operators) == 1 else f"several ({self.operators[0]}, ...)"


@dataclass
class Verdict:
    kind: str
    why: str = ""
    # If the case is right: the model in the form that ran, its inputs, and the expected outputs.
    ran: tuple | None = None


# --- tensors in files --------------------------------------------------------------------------------------------------


def write_tensors(path: Path, tensors: Arrays, metadata: dict[str, str] | None = None) -> None:
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, value in tensors.items():
        end = len(data) + value.nbytes
        header[name] = {"dtype": NAMES[value.dtype], "shape": value.shape, "data_offsets": [len(data), end]}
        data += value.tobytes()
    text = json.dumps(header, separators=(",", ":")).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_tensors(path: Path) -> Arrays:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, data = json.loads(data[8 : 8 + length]), data[8 + length :]
    found = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            start, end = tensor["data_offsets"]
            found[name] = np.frombuffer(data[start:end], TYPES[tensor["dtype"]]).reshape(tensor["shape"])
    return found


# --- the suite ---------------------------------------------------------------------------------------------------------


def suite() -> list[Case]:
    """Every case of the package, by name."""
    found = []
    for kind in KINDS:
        for test in load_model_tests(kind=kind):
            if test.model is not None:
                model, data_sets = test.model, [(list(inputs), list(outputs)) for inputs, outputs in test.data_sets]
            elif test.model_dir:
                model, data_sets = stored(Path(test.model_dir))
            else:
                model, data_sets = light(Path(DATA_DIR) / "light" / Path(test.url).name)
            found.append(Case(test.name, model, data_sets, test.rtol, test.atol))
    return sorted(found, key=lambda case: case.name)


def stored(folder: Path) -> tuple[onnx.ModelProto, list]:
    """A model in a folder with its data sets."""
    model = onnx.load(folder / "model.onnx")
    data_sets = []
    for data in sorted(folder.glob("test_data_set_*")):
        sides = []
        for side, values in (("input", model.graph.input), ("output", model.graph.output)):
            files = [data / f"{side}_{i}.pb" for i in range(len(values))]
            sides.append([parsed(file, value.type) for file, value in zip(files, values) if file.exists()])
        data_sets.append((sides[0], sides[1]))
    return model, data_sets


def parsed(file: Path, kind: onnx.TypeProto) -> np.ndarray | None:
    """The tensor in the file; nothing if it is of another kind."""
    if kind.WhichOneof("value") != "tensor_type":
        return None
    tensor = onnx.TensorProto()
    tensor.ParseFromString(file.read_bytes())
    return onnx.numpy_helper.to_array(tensor)


def light(path: Path) -> tuple[onnx.ModelProto, list]:
    """A large model without its weights, fed as the suite's runner does."""
    model = onnx.load(path)
    held = {initializer.name for initializer in model.graph.initializer}
    inputs = []
    for value in model.graph.input:
        if value.name not in held:
            shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            inputs.append((np.arange(count).reshape(shape) / count).astype(np.float32))
    outputs = []
    for i in range(len(model.graph.output)):
        tensor = onnx.TensorProto()
        tensor.ParseFromString(path.with_name(f"{path.stem}_output_{i}.pb").read_bytes())
        outputs.append(onnx.numpy_helper.to_array(tensor))
    return model, [(inputs, outputs)]


# --- running -----------------------------------------------------------------------------------------------------------


def arrays(values: list, names: list[str]) -> Arrays | str:
    """Tensors by name, or the first that the format safetensors does not have."""
    found = {}
    for name, value in zip(names, values):
        if isinstance(value, onnx.TensorProto):
            value = onnx.numpy_helper.to_array(value)
        if not isinstance(value, (np.ndarray, np.generic)) or value.dtype not in NAMES:
            return name
        found[name] = np.asarray(value)
    return found


def with_initializers(model: onnx.ModelProto, held: Arrays) -> onnx.ModelProto:
    """A copy whose inputs of these names are initializers instead."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    rest = [value for value in copy.graph.input if value.name not in held]
    del copy.graph.input[:]
    copy.graph.input.extend(rest)
    copy.graph.initializer.extend(onnx.numpy_helper.from_array(value, name) for name, value in held.items())
    return copy


def run(case: Case, folder: Path) -> Verdict:
    """The worst verdict of the data sets, each of the better of the two forms unless one of them is wrong."""
    order = ("right", "refused", "wrong", "crash")
    verdicts = [run_data(case, inputs, outputs, folder) for inputs, outputs in case.data_sets]
    return max(verdicts, key=lambda verdict: order.index(verdict.kind))


def run_data(case: Case, inputs: list, outputs: list, folder: Path) -> Verdict:
    graph = case.model.graph
    held = {initializer.name for initializer in graph.initializer}
    names = [value.name for value in graph.input]
    if len(inputs) < len(names):
        names = [name for name in names if name not in held]
    fed = arrays(inputs, names)
    expected = arrays(outputs, [value.name for value in graph.output])
    if isinstance(fed, str) or isinstance(expected, str):
        # It cannot be fed, or not be compared; that lmsc says so is all there is to see.
        verdict = step(case, case.model, {}, None, folder)
        return Verdict("refused", f"not run: {fed if isinstance(fed, str) else expected} is no plain tensor") if (
            verdict.kind == "right"
        ) else verdict
    verdict = step(case, case.model, fed, expected, folder)
    short = {n: v for n, v in fed.items() if v.size <= SHORT_ELEMENTS and v.ndim <= SHORT_RANK and n not in held}
    if verdict.kind != "refused" or not short:
        return verdict
    rest = {name: value for name, value in fed.items() if name not in short}
    again = step(case, with_initializers(case.model, short), rest, expected, folder)
    return verdict if again.kind == "refused" else again


def write_sample(cases: list[Case], verdicts: list[Verdict]) -> None:
    """Writes small cases that are right, a few of each operator, into one file."""
    by_operator = collections.defaultdict(list)
    for case, verdict in zip(cases, verdicts):
        if verdict.kind == "right" and verdict.ran and not case.draws:
            model, fed, expected = verdict.ran
            tensors = {"model": np.frombuffer(model.SerializeToString(), np.uint8)}
            tensors |= {f"in {name}": value for name, value in fed.items()}
            tensors |= {f"out {name}": value for name, value in expected.items()}
            size = sum(value.nbytes for value in tensors.values())
            by_operator[case.operator].append((size, case.name, case, tensors))
    sample, tolerances = {}, {}
    for found in by_operator.values():
        for size, name, case, tensors in sorted(found, key=lambda entry: entry[:2])[:SAMPLED]:
            if size <= SAMPLED_BYTES:
                sample |= {f"{name} {key}": value for key, value in tensors.items()}
                tolerances[name] = f"{case.rtol} {case.atol}"
    write_tensors(SAMPLE, dict(sorted(sample.items())), dict(sorted(tolerances.items())))
    print(f"{len(tolerances)} cases are in {SAMPLE.name}, {SAMPLE.stat().st_size} bytes")


def step(case: Case, model: onnx.ModelProto, fed: Arrays, expected: Arrays | None, folder: Path) -> Verdict:
    """The verdict on one step of the model; without expected values, only whether it runs."""
    path, feeds, out = (folder / f"{case.name}{end}" for end in (".onnx", ".in", ".out"))
    path.write_bytes(model.SerializeToString())
    write_tensors(feeds, fed)
    arguments = [LMSC, "run", path, "--steps", "1", *(["--feeds", feeds] if fed else [])]
    if expected is not None:
        arguments += ["--fetch", ",".join(expected), "--out", out]
    try:
        done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Verdict("crash", f"does not end within {SECONDS} s")
    finally:
        path.unlink()
        feeds.unlink()
    message = " ".join(done.stderr.split()).replace(f"{path}", "MODEL")
    if done.returncode in (1, 2):
        return Verdict("refused" if names_something(model, message) else "wrong", message)
    if done.returncode != 0:
        return Verdict("crash", f"exit code {done.returncode}: {message}")
    if expected is None:
        return Verdict("right")
    found = read_tensors(out)
    out.unlink()
    for name, value in expected.items():
        if difference := differs(value, found.get(name), case):
            return Verdict("wrong", f"`{name}`: {difference}")
    return Verdict("right", ran=(model, fed, expected))


def names_something(model: onnx.ModelProto, message: str) -> bool:
    """Whether the message names an operator of the model, or one of its values."""
    words = set(re.findall(r"[\w:/-]+", message))
    graph = model.graph
    operators = {node.op_type for node in graph.node} | {node.op_type for f in model.functions for node in f.node}
    values = {value.name for value in [*graph.input, *graph.output]}
    return bool(words & (operators | values))


def differs(expected: np.ndarray, found: np.ndarray | None, case: Case) -> str:
    """How they differ, by the rules of the suite's runner; nothing if they do not."""
    if found is None:
        return "not computed"
    if found.shape != expected.shape:
        return f"shape {list(found.shape)}, expected {list(expected.shape)}"
    if found.dtype != expected.dtype:
        return f"elements of {found.dtype}, expected {expected.dtype}"
    if case.draws:
        return ""
    rtol = max(case.rtol, ROUNDING.get(NAMES[expected.dtype], 0))
    if expected.dtype == TYPES["BF16"]:
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    near = np.isclose(found, expected, rtol=rtol, atol=case.atol, equal_nan=True)
    if near.all():
        return ""
    at = tuple(int(i) for i in np.argwhere(~near)[0]) if near.ndim else ()
    return f"{(~near).sum()} of {near.size} elements, first at {list(at)}: {found[at]}, expected {expected[at]}"


# --- telling -----------------------------------------------------------------------------------------------------------


def reason(verdict: Verdict) -> str:
    """The message without the parts that differ from case to case."""
    text = re.sub(r"help: .*", "", verdict.why)
    return re.sub(r"^error: |MODEL( cannot run here)?: ?|node `[^`]*`:? ?", "", text).strip()[:160]


def main() -> int:
    started = time.monotonic()
    verbose = "--verbose" in sys.argv[1:]
    selected = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = suite()
    cases = [case for case in cases if not selected or any(part in case.name for part in selected)]
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        verdicts = list(pool.map(lambda case: run(case, Path(name)), cases))
    sums = collections.Counter(verdict.kind for verdict in verdicts)
    by_operator = collections.defaultdict(list)
    for case, verdict in zip(cases, verdicts):
        by_operator[case.operator].append((case, verdict))
        if verbose or verdict.kind in ("wrong", "crash"):
            print(f"{verdict.kind:8}{case.name}: {verdict.why}", flush=True)
    for operator, found in sorted(by_operator.items()):
        counts = collections.Counter(verdict.kind for _, verdict in found)
        if counts["right"] == len(found):
            continue
        print(f"{operator}: " + ", ".join(f"{count} {kind}" for kind, count in counts.items()))
        whys = collections.Counter(reason(verdict) for _, verdict in found if verdict.kind == "refused")
        for why, count in whys.most_common():
            print(f"    {count} x {why}")
    kinds = ("right", "refused", "wrong", "crash")
    drawn = sum(verdict.kind == "right" and case.draws for case, verdict in zip(cases, verdicts))
    print(f"{drawn} of the right ones draw random numbers: their types and shapes are compared")
    print(f"{len(cases)} cases in {time.monotonic() - started:.0f} s: " + ", ".join(f"{sums[k]} {k}" for k in kinds))
    if "--sample" in sys.argv[1:]:
        write_sample(cases, verdicts)
    return 1 if sums["wrong"] or sums["crash"] or not sums["right"] else 0


if __name__ == "__main__":
    sys.exit(main())
