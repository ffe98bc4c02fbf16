"""Shared by the checks of forms for other compilers: lmsc, the recorded steps, and comparing with them."""

import json
import os
import re
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper

TESTDATA = Path(__file__).resolve().parent.parent / "testdata"
MODELS = TESTDATA / "models"
# Graphs whose text is compared, too, by mlir/tests/stablehlo.rs, and those that are only computed.
CASES = sorted([*TESTDATA.glob("stablehlo/*.lms"), *TESTDATA.glob("stablehlo/computed/*.lms")])
LMSC = os.environ.get("LMSC", "lmsc")

# As in tests/kernels.rs: errors count relative to the largest element of a tensor, or to a share of the largest of its kind.
ALLOWED = 1e-4
FLOORS = {"features.norm0.weight": 1e-2}
ADAM_FLOOR = 1e-1

# The seed of a run and the number of the step, counted from 0, for models that draw.
DRAWS = {"lms.seed": 7, "lms.step": 2}

# The optimizers of the models, without weight decay, and their inputs.
EPSILON, RATE = 1e-6, 1e-3

Arrays = dict[str, np.ndarray]


# --- lmsc ------------------------------------------------------------------------------------------------------------


@dataclass
class Compiled:
    """lmsc's output file and report."""

    text: str
    # The nodes in the plan's order, each with those that have completed when it starts by a control edge.
    order: dict[str, list[str]]
    report: dict


def lmsc(*arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([LMSC, *map(str, arguments)], capture_output=True, text=True, timeout=300)


# A budget in which every step fits as it is.
PLENTY = "1TiB"


def compiled(form: str, reading: list, budget: str, *more: str) -> Compiled:
    with tempfile.TemporaryDirectory() as name:
        texts = []
        plan = Path(name) / "plan.json"
        asked = ["--budget", budget, *more]
        # The text shows the plan of the form, in which more tensors may have to stay. A step that fits may contain copies, and then it has no plan.
        ways = [asked, asked] if budget == PLENTY else [[*asked, "--save-plan", plan], ["--plan", plan]]
        for emit, planned in zip((form, "lms"), ways, strict=True):
            file = Path(name) / emit
            done = lmsc(*reading, *planned, "--emit", emit, "-o", file, "--json")
            if done.returncode != 0:
                raise RuntimeError(f"lmsc exits with {done.returncode}: {done.stderr.strip()}")
            texts.append(file.read_text())
        nodes = re.findall(r"^   \[([^\]]*)\] (?:.* after \[(.*)\]$)?", texts[1], re.MULTILINE)
        order = {name: after.split(", ") if after else [] for name, after in nodes}
        return Compiled(texts[0], order, json.loads(done.stdout))


def smallest(reading: list, form: str) -> int:
    """The smallest budget of a plan that is written in the form, where bytes are counted."""
    with tempfile.TemporaryDirectory() as name:
        done = lmsc(*reading, "--budget", "1", "--addresses", "off", "--emit", form, "-o", Path(name) / form, "--json")
    assert done.returncode == 1, done.stderr
    return json.loads(done.stdout)["error"]["smallest_budget"]


def reading(model: str, dims: dict[str, int], optimizer: bool = False) -> list:
    folder = MODELS / model
    named = [argument for name, value in dims.items() for argument in ("--dim", f"{name}={value}")]
    step = ["--optimizer", folder / "optimizer_model.onnx"] if optimizer else []
    return [folder / "training_model.onnx", *step, *named]


# --- recorded steps --------------------------------------------------------------------------------------------------


def recorded(path: Path) -> Arrays:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, data = json.loads(data[8 : 8 + length]), data[8 + length :]
    types = {"F32": np.float32, "I64": np.int64, "I32": np.int32, "BOOL": np.bool_, "U8": np.uint8}
    found = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            start, end = tensor["data_offsets"]
            flat = np.frombuffer(data[start:end], types[tensor["dtype"]])
            found[name] = flat.reshape(tensor["shape"])
    return found


def write_tensors(path: Path, tensors: Arrays) -> None:
    kinds = {np.float32: "F32", np.int64: "I64", np.int32: "I32", np.bool_: "BOOL"}
    header, data = {}, b""
    for name, value in tensors.items():
        end = len(data) + value.nbytes
        header[name] = {"dtype": kinds[value.dtype.type], "shape": value.shape, "data_offsets": [len(data), end]}
        data += value.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def compare(model: str, recording: Arrays, found: Arrays, roles: tuple[str, ...]) -> tuple[int, float]:
    """How many tensors agree, and the worst error."""
    worst, count = 0.0, 0
    for key, expected in recording.items():
        role, name = key.split("/", 1)
        names = (f"{name}'", f"{name}.accumulation.buffer'", name)
        got = next((found[n] for n in names if n in found), None)
        if role not in roles or got is None:
            continue
        count += 1
        if not np.issubdtype(expected.dtype, np.floating):
            assert np.array_equal(got.reshape(expected.shape), expected), f"{model}: {key} differs"
            continue
        of_role = max(np.abs(v).max(initial=0) for k, v in recording.items() if k.startswith(role + "/"))
        floor = next((f for n, f in FLOORS.items() if name.startswith(n)), 1e-3)
        floor = ADAM_FLOOR if role.startswith("adamw") else floor
        scale = max(np.abs(expected).max(initial=0), floor * of_role, np.finfo(np.float64).tiny)
        error = float(np.abs(got.reshape(expected.shape).astype(np.float64) - expected).max(initial=0) / scale)
        assert error <= ALLOWED, f"{model}: {key} is off by {error:.1e}"
        worst = max(worst, error)
    return count, worst


def adamw(recording: Arrays) -> Arrays:
    """The parameters after the first step, by the definition of AdamW with the attributes of the models' optimizers."""
    found = {}
    for key, gradient in recording.items():
        name = key.removeprefix("grad/").removesuffix("_grad")
        if key.startswith("grad/"):
            old, g = recording[f"feed/{name}"].astype(np.float64), gradient.astype(np.float64)
            # Moments are 0 before, and corrected for that: they become the gradient and its square.
            change = g / (np.abs(g) + EPSILON / np.sqrt(1 - 0.999))
            found[f"adamw1/{name}"] = (old - RATE * change).astype(np.float32)
    return found


# Of an argument or a result: extents, element, kind of its name, name, and the variable whose next value it is.
SIGNATURE = re.compile(
    r'tensor<((?:\d+x)*)(\w+)> \{(onnx\.name|lms\.initializer|lms\.seed|lms\.step)(?: = "((?:[^"\\]|\\.)*)")?'
    r'(?:, lms\.new_value_of = "((?:[^"\\]|\\.)*)")?'
)
ELEMENTS = {"f32": np.float32, "f64": np.float64, "i1": np.bool_, "i32": np.int32, "i64": np.int64}


def signature(text: str) -> re.Match:
    """The arguments and the results of the module's function, on as many lines as they take."""
    head = r"@main\((.*?)\) -> \((.*?)\)(?: attributes \{[^{}]*\})? \{$"
    return re.search(head, text, re.MULTILINE | re.DOTALL)


def named(text: str, results: list[np.ndarray]) -> Arrays:
    """The function's results by name; new values are named after their variables."""
    names = [new and f"{new}'" or name for *_, name, new in SIGNATURE.findall(signature(text)[2])]
    return dict(zip(names, results, strict=True))


def run_by_lmsc(reading: list, text: str, arguments: list[np.ndarray], fetch: str = "all") -> Arrays:
    """Values of a step, that which DRAWS says if it draws, on lmsc's own host runtime, with the module's arguments."""
    given = list(zip(SIGNATURE.findall(signature(text)[1]), arguments, strict=True))
    last = DRAWS["lms.step"] if any(kind in DRAWS for (_, _, kind, _, _), _ in given) else 0
    with tempfile.TemporaryDirectory() as name:
        fed, fetched = Path(name) / "feeds", Path(name) / "fetched"
        write_tensors(fed, {name: value for (_, _, kind, name, _), value in given if kind not in DRAWS})
        steps = ["--seed", DRAWS["lms.seed"], "--steps", last + 1]
        done = lmsc("run", *reading, "--feeds", fed, *steps, "--fetch", fetch, "--out", fetched)
        assert done.returncode == 0, done.stderr
        return recorded(fetched)


class Case:
    """A graph of testdata/stablehlo: with random inputs, its results are those of lmsc's own host runtime."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def arguments(self, text: str) -> list[np.ndarray]:
        random = np.random.default_rng(1)
        found = []
        for extents, element, kind, _, _ in SIGNATURE.findall(signature(text)[1]):
            shape = [int(extent) for extent in extents.split("x")[:-1]]
            # Between 0 and 1, as a ratio is; truth values are true.
            value = DRAWS.get(kind, random.uniform(0.1, 0.9, shape) if element != "i1" else np.ones(shape))
            found.append(np.array(value, ELEMENTS[element]))
        return found

    def agrees(self, text: str, found: Arrays) -> float:
        """The worst error."""
        names = [name for _, _, _, name, _ in SIGNATURE.findall(signature(text)[2])]
        expected = run_by_lmsc([self.path], text, self.arguments(text), ",".join(names))
        worst = 0.0
        for name, value in zip(names, found.values(), strict=True):
            known = expected[name]
            error = float(np.abs(value.astype(np.float64) - known.reshape(value.shape)).max(initial=0))
            assert error <= ALLOWED, f"{self.path.stem}: {name} is off by {error:.1e}"
            worst = max(worst, error)
        return worst


class Step:
    """A model with its recorded step."""

    def __init__(self, model: str) -> None:
        folder = MODELS / model
        self.model = model
        self.recording = recorded(folder / "training_model.recorded.safetensors")
        self.dims = json.loads((folder / "training_model.shapes.json").read_text())["runs"][0]
        proto = onnx.load(folder / "training_model.onnx")
        self.weights = {w.name: onnx.numpy_helper.to_array(w) for w in proto.graph.initializer}
        self.feeds = {key[5:]: value for key, value in self.recording.items() if key.startswith("feed/")}
        self.feeds |= {"learning_rate": np.float32([RATE]), "step": np.int64([1])}

    def reading(self, optimizer: bool = False) -> list:
        return reading(self.model, self.dims, optimizer)

    def plain(self, form: str) -> Compiled:
        """The step as it is."""
        found = compiled(form, self.reading(), PLENTY)
        self.draws(found.text)
        return found

    def tight(self, form: str) -> Compiled:
        """The step with its optimizer, rewritten for the smallest budget there is."""
        step = self.reading(optimizer=True)
        return compiled(form, step, str(smallest(step, form)), "--addresses", "off", "--effort", "5")

    def arguments(self, text: str) -> list[np.ndarray]:
        """The arguments of the module's function; those without a feed are 0."""
        found = []
        for extents, element, kind, name, _ in SIGNATURE.findall(signature(text)[1]):
            shape = [int(extent) for extent in extents.split("x")[:-1]]
            if kind in DRAWS:
                value = DRAWS[kind]
            elif kind == "lms.initializer":
                value = self.weights[name]
            else:
                value = self.feeds.get(name, np.zeros(shape, ELEMENTS[element]))
            found.append(np.array(value, ELEMENTS[element]).reshape(shape))
        return found

    def draws(self, text: str) -> None:
        """Expects the results of lmsc's own host runtime from a model with random operators, whose recording is of another draw."""
        if not any(kind in DRAWS for _, _, kind, _, _ in SIGNATURE.findall(signature(text)[1])):
            return
        values = run_by_lmsc(self.reading(), text, self.arguments(text))
        for key in self.recording:
            role, name = key.split("/", 1)
            if role in ("result", "grad", "state"):
                known = next(n for n in (name, f"{name}.accumulation.buffer") if n in values)
                self.recording[key] = values[known].reshape(self.recording[key].shape)

    def agrees(self, found: Arrays, optimizer: bool = False) -> tuple[int, float]:
        """How many of the module's results agree with the recording, and the worst error."""
        if not optimizer:
            return compare(self.model, self.recording, found, ("result", "grad", "state"))
        expected = self.recording | adamw(self.recording)
        return compare(self.model, expected, found, ("result", "grad", "state", "adamw1"))


# --- telling ---------------------------------------------------------------------------------------------------------


def failures(checks: dict[str, Callable[[], str]], selected: list[str]) -> int:
    """How many of the checks fail, of those selected by their names or of all; prints a line each."""
    failed = 0
    for name, check in checks.items():
        started = time.monotonic()
        if selected and name not in selected:
            continue
        try:
            print(f"ok      {name}: {check()}, {time.monotonic() - started:.1f} s", flush=True)
        except (AssertionError, RuntimeError) as error:
            failed += 1
            print(f"FAILED  {name}: {error}", flush=True)
    return failed
