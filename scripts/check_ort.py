"""Runs lmsc's files in ONNX Runtime, beside the models that they were made from, and compares bit for bit.

For every model of testdata/models that onnxruntime-training 1.19.2 can run on the CPU:

- rewritten models, under several plans and in both forms, compute the same outputs and leave the same bytes in the
  arrays that are written in place (gradient buffers, running statistics);
- onnx.checker accepts them wherever it accepts the original, and onnx's reference evaluator computes the same from
  both;
- the step linked from training and optimizer graph computes the results of the two one after the other, twice in a row;
- a swapped tensor of every element type, scalars too, runs in both forms;
- swaps in the `ort` form survive ONNX Runtime's optimizer, those in the `function` form do not;
- tensors that are copied in ranges of their elements are joined to their old values, variables too;
- indices that are encoded to cross the link come back as they were;
- `lmsc verify` accepts each rewritten model and rejects damaged ones;
- the same call writes the same bytes.

Prints one line a model and the sums. LMSC names the program; arguments select models by parts of their paths, which are checked
under all plans. Without any, a third of the plans of each small model takes its turn, and --third K checks each third model,
beginning with the model K. --tiny adds all variants of small models, and --all those of full-size models, too, some of which
take gigabytes; both try all plans.
"""

import argparse
import contextlib
import functools
import json
import multiprocessing
import multiprocessing.connection
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnx.checker
import onnx.reference
import onnx.reference.op_run
import onnxruntime as ort

MODELS = Path(__file__).resolve().parent.parent / "testdata" / "models"
LMSC = os.environ.get("LMSC", "lmsc")
FORMS = ("function", "ort")
EVERYTHING = ["--planner", "tflms{n-tensors=100000}"]
# The checks do not depend on the quality of a plan.
QUICKLY = ["--effort", "10"]

# Models with more bytes of inputs than this run under one plan only: the others would tell nothing new in minutes.
LARGE = 16 << 20
# Full-size models of which one graph is checked always, and the graphs of small models that are, one of each kind: gradients as
# onnxruntime-training writes them, in two opsets; steps with an optimizer in its operators and in those of ONNX; a symbolic batch.
QUICK = {"charlstm", "densenet121", "resnet18", "resnet50"}
QUICK_GRAPHS = {
    ("training_model.onnx",),
    ("opset14", "training_model.onnx"),
    ("step", "train_step_adamw_std.onnx"),
    ("std", "train_sgd.onnx"),
    ("std", "train_grad_dyn.onnx"),
}
# onnx's reference evaluator computes convolutions in Python.
SLOW_TO_EVALUATE = 200_000

NOT_RUNNABLE = {
    ("com.microsoft", "ConvTransposeGrad"): "has no CPU kernel for ConvTransposeGrad",
    ("com.microsoft", "ResizeGrad"): "has no CPU kernel for ResizeGrad",
    ("com.microsoft", "YieldOp"): "runs YieldOp under ORTModule only",
}
RANDOM = {"Bernoulli", "Dropout", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}

Arrays = dict[str, np.ndarray]


class Skip(Exception):
    """The runtime cannot run the model."""


@dataclass
class Report:
    """The checks of one model, and their failures."""

    checks: int = 0
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def expect(self, holds: bool, failure: str) -> None:
        self.checks += 1
        if not holds:
            self.failures.append(failure)


# --- lmsc ------------------------------------------------------------------------------------------------------------


def lmsc(*arguments: str | Path) -> subprocess.CompletedProcess:
    # onnxruntime's kernels are not those of lmsc, so their workspaces are none of a plan's affair.
    target = ["--target", str(Path(__file__).with_name("elsewhere.toml"))] if "--budget" in arguments else []
    return subprocess.run([LMSC, *map(str, arguments), *target], capture_output=True, text=True, timeout=300)


@dataclass
class Source:
    """A model to compile: its file, how lmsc is told to read it, and its inputs."""

    path: Path
    reading: list[str]
    proto: onnx.ModelProto
    dims: dict[str, int]
    larger: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def compile(self, output: Path, form: str, *plan: str) -> dict:
        """Writes the model rewritten under the plan, and returns lmsc's report.

        Where no addresses are found in the budget, the plan's last argument, it is the larger one that lmsc names.
        """
        arguments = [self.path, *self.reading, "--json", "-o", output, "--form", form]
        done = lmsc(*arguments, *self.larger.get(plan, plan))
        named = r"give --budget (\d+) |no addresses were found.*?\((\d+) bytes\)"
        if found := re.search(named, done.stderr, re.DOTALL):
            self.larger[plan] = (*plan[:-1], found[1] or found[2])
            done = lmsc(*arguments, *self.larger[plan])
        if done.returncode != 0:
            raise RuntimeError(f"lmsc {' '.join(plan)} exits with {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def smallest_budget(self, form: str, *arguments: str) -> int:
        """By the sum of bytes, in the form: in one for ONNX Runtime weights stay. Addresses may need more."""
        done = lmsc(self.path, *self.reading, "--budget", "1", "--addresses", "off", "--form", form, *arguments, "--json")
        if done.returncode != 1:
            raise RuntimeError(f"lmsc --budget 1 exits with {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)["error"]["smallest_budget"]

    def plans(self, form: str) -> Iterator[tuple[str, Callable[[], list[str]]]]:
        """Named plans of the form, from the one that swaps everything to the one that swaps least; each with its arguments."""
        counted = ["--addresses", "off"]
        tflms, memonger = ["--planner", "tflms"], ["--planner", "memonger"]
        ranges = ["--planner", "swap-only", "--ranges", *QUICKLY]
        least = functools.cache(lambda *planner: self.smallest_budget(form, *planner))
        peak = functools.cache(lambda: json.loads(lmsc(self.path, *self.reading, "--json", *EVERYTHING).stdout)["before"]["peak"])
        yield "smallest budget", lambda: [*QUICKLY, *counted, "--budget", str(least())]
        yield "ranges", lambda: [*ranges, *counted, "--budget", str(least(*ranges))]
        yield "tflms", lambda: [*tflms, *counted, "--budget", str(least(*tflms))]
        if byte_count(self) > LARGE:
            return
        yield "everything", lambda: EVERYTHING
        if any(node.op_type == "MaxPool" and len(node.output) > 1 for node in self.proto.graph.node):
            # With room to spare: an encoding needs some.
            yield "encoded", lambda: ["--budget", "1TiB", "--planner", "tflms{encode=true,n-tensors=100000}"]
            yield "encoded, smallest budget", lambda: ["--planner", "tflms{encode=true}", *counted, "--budget", str(least(*tflms))]
        yield "half the way", lambda: [*QUICKLY, "--budget", str((least() + peak()) // 2)]
        yield "tflms, half the way", lambda: [*tflms, "--budget", str((least(*tflms) + peak()) // 2)]
        yield "as much as the original needs", lambda: [*QUICKLY, "--budget", str(peak())]
        yield "memonger", lambda: [*memonger, *counted, "--budget", str((2 * least(*memonger) + peak()) // 3)]
        yield "direct order", lambda: ["--planner", "tflms{ctrld-strategy=direct-order,lb=3}"]
        yield "fused", lambda: ["--planner", "tflms{fuse-swapins=8,swap-branches=true}"]


# --- models and their inputs ------------------------------------------------------------------------------------------


def source(path: Path, scratch: Path, report: Report) -> Source:
    """The model, or a copy that the runtime can run and that gives the same result every time."""
    proto = onnx.load(path)
    dims = known_dims(path)
    operators = {(node.domain, node.op_type) for node in proto.graph.node}
    for operator, reason in NOT_RUNNABLE.items():
        if operator in operators:
            raise Skip(reason)
    symbolic = [d for value in proto.graph.input for d in value.type.tensor_type.shape.dim if d.dim_param]
    copied = False
    if symbolic and ("", "AveragePoolGrad") in operators:
        # The kernel takes the shape of its result from the file, where a symbolic extent counts as 0.
        bind(proto, dims)
        report.note("dimensions bound in a copy, for AveragePoolGrad")
        symbolic, copied = [], True
    draws = [node for node in proto.graph.node if node.domain == "" and node.op_type in RANDOM]
    for seed, node in enumerate(n for n in draws if all(a.name != "seed" for a in n.attribute)):
        # Without a seed a draw depends on the position of its node and on the draws before.
        value = float(seed + 1) if node.op_type != "Dropout" else seed + 1
        node.attribute.append(onnx.helper.make_attribute("seed", value))
        copied = True
    if draws:
        report.note(f"{len(draws)} random nodes seeded in a copy")
    if copied:
        path = scratch / "original.onnx"
        onnx.save(proto, path)
    names = sorted({dim.dim_param for dim in symbolic})
    reading = [argument for name in names for argument in ("--dim", f"{name}={dims[name]}")]
    return Source(path, reading, proto, dims)


def known_dims(path: Path) -> dict[str, int]:
    """Extents of symbolic dimensions with which the model, or the one that it was made from, has been run."""
    beside = [path.with_suffix(".shapes.json"), path.parent.parent / "training_model.shapes.json"]
    found = next((file for file in beside if file.exists()), None)
    return json.loads(found.read_text())["runs"][0] if found else {}


def bind(proto: onnx.ModelProto, dims: dict[str, int]) -> None:
    graph = proto.graph
    for value in [*graph.input, *graph.output, *graph.value_info]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in dims:
                dim.dim_value = dims[dim.dim_param]


def shape(value: onnx.ValueInfoProto, dims: dict[str, int]) -> list[int]:
    extents = value.type.tensor_type.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else dims[dim.dim_param] for dim in extents]


def byte_count(model: Source) -> int:
    return sum(4 * int(np.prod(shape(value, model.dims))) for value in model.proto.graph.input)


def feeds(model: Source) -> Arrays:
    """Reproducible values for every input of the model."""
    inputs = [(value, value.type.tensor_type.elem_type) for value in model.proto.graph.input]
    return {value.name: array(value.name, element, shape(value, model.dims)) for value, element in inputs}


def array(name: str, element: int, extents: list[int]) -> np.ndarray:
    random = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
    if dtype == bool:
        # Gradients are added to the content of the buffers: 0 keeps most of their digits.
        return np.zeros(extents, dtype)
    if name == "step" or name.endswith(".step"):
        return np.ones(extents, dtype)
    if np.issubdtype(dtype, np.integer):
        # Labels and ids; every model has two of each.
        return random.integers(0, 2, extents).astype(dtype)
    if name == "learning_rate":
        return np.full(extents, 1e-2, dtype)
    values = random.standard_normal(extents, dtype) * dtype.type(0.1)
    if name.endswith("running_var"):
        return np.abs(values) + dtype.type(0.5)
    if name.endswith(".exp_avg_sq") or name == "target":
        return np.abs(values)
    return values


# --- running ---------------------------------------------------------------------------------------------------------


def session(model: Path | onnx.ModelProto, by_file_order: bool = False, **options) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    if by_file_order:
        settings.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    for name, value in options.items():
        setattr(settings, name, value)
    return ort.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])


def run(running: ort.InferenceSession, fed: Arrays) -> Arrays:
    """Every output, and every input as the run has left it: in-place operators write into the arrays that are fed."""
    fed = {name: value.copy() for name, value in fed.items()}
    outputs = [output.name for output in running.get_outputs()]
    return dict(zip(outputs, running.run(outputs, fed))) | {f"input {name}": value for name, value in fed.items()}


def difference(expected: Arrays, found: Arrays) -> str:
    """The differences in bits; empty if there are none."""
    if missing := sorted(expected.keys() - found.keys()):
        return f"{missing[0]} is missing"
    different = [name for name, value in expected.items() if not same_bits(value, found[name])]
    return f"{len(different)} of {len(expected)} values differ, {different[0]} first" if different else ""


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# --- checks ----------------------------------------------------------------------------------------------------------


def check_model(path: Path, turn: int | None, report: Report) -> None:
    """Checks a model under all of its plans, or with a turn under a third of those of a small one."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        model = source(path, scratch, report)
        large = byte_count(model) > LARGE
        fed = feeds(model)
        expected = run(session(model.path), fed)
        check_meaning(model, fed, expected, report)
        by_onnx = evaluated(model, fed, report)

        plans = 0
        for form in FORMS:
            for number, (plan, make_arguments) in enumerate(model.plans(form)):
                if large and form == FORMS[0] and plan != "ranges":
                    continue
                if turn is not None and not large and (turn + number + (form == "ort")) % 3:
                    continue
                arguments = make_arguments()
                output = scratch / f"{plan}.{form}.onnx".replace(" ", "-")
                what = f"{plan}, {form}"
                told = model.compile(output, form, *arguments)
                plans += 1
                check_runs(what, output, form, fed, expected, report)
                verified = lmsc("verify", model.path, output, *model.reading)
                report.expect(verified.returncode == 0, f"{what}: verify says {verified.stderr.strip()}")
                if plan == "encoded":
                    encoded = [swap for swap in told["swapped"] if 2 * swap["link_bytes"] == swap["bytes"]]
                    report.expect(bool(encoded), f"{what}: nothing is encoded")
                if plan in ("everything", "encoded", "ranges") and told["swapped"]:
                    check_survival(what, output, form, scratch, report)
                    check_damage(what, model, output, scratch, report)
                    check_onnx(what, model, output, fed, by_onnx, report)
                    again = scratch / "again.onnx"
                    model.compile(again, form, *arguments)
                    report.expect(again.read_bytes() == output.read_bytes(), f"{what}: written twice, two results")
        report.notes.insert(0, f"{plans} rewritten")

        for optimizer in sorted(path.parent.glob("optimizer_model*.onnx")):
            if path.name == "training_model.onnx" and not large:
                check_step(model, optimizer, scratch, report)


def check_meaning(model: Source, fed: Arrays, expected: Arrays, report: Report) -> None:
    """Asserts that the compared values can differ: numbers, and arrays that are written."""
    loss = expected[model.proto.graph.output[0].name]
    report.expect(bool(np.isfinite(loss).all()), f"the original's loss is {loss}")
    if any(node.op_type == "InPlaceAccumulatorV2" for node in model.proto.graph.node):
        written = [name for name, value in fed.items() if not same_bits(value, expected[f"input {name}"])]
        buffers = [name for name in fed if name.endswith("_grad.accumulation.buffer")]
        report.expect(len(set(buffers) & set(written)) * 2 > len(buffers), "the original does not write its buffers")


def check_runs(what: str, output: Path, form: str, fed: Arrays, expected: Arrays, report: Report) -> None:
    for by_file_order in (False, True) if form == "ort" else (False,):
        order = ", in the file's order" if by_file_order else ""
        different = difference(expected, run(session(output, by_file_order), fed))
        report.expect(not different, f"{what}{order}: {different}")


def check_survival(what: str, output: Path, form: str, scratch: Path, report: Report) -> None:
    optimized = scratch / "optimized.onnx"
    for level in ("ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"):
        level_of = getattr(ort.GraphOptimizationLevel, level)
        session(output, graph_optimization_level=level_of, optimized_model_filepath=str(optimized))
        left = json.loads(lmsc("verify", "--survives", output, optimized, "--json").stdout)
        lost = [left[kind] - left[f"{kind}_left"] for kind in ("swap_outs", "swap_ins")]
        if form == "ort":
            # Recomputed nodes are one with their origins afterwards.
            report.expect(lost == [0, 0], f"{what}: after {level} gone are {left['gone']}")
        else:
            # If this changes, the form `ort` has lost its reason.
            report.expect(sum(lost) > 0, f"{what}: all swaps survive {level}")


def check_damage(what: str, model: Source, output: Path, scratch: Path, report: Report) -> None:
    damaged = scratch / "damaged.onnx"
    done = 0
    for damage in DAMAGES:
        proto = onnx.load(output)
        if damage(proto):
            onnx.save(proto, damaged)
            verified = lmsc("verify", model.path, damaged, *model.reading)
            # A view that says that it repeats another one, a copy that is none, a range that is not where it belongs, a
            # copy of a variable that is overwritten meanwhile and one at whose address something else comes are refused
            # before anything is compared.
            claims = (
                *(" recomputes ", "computes more than a copy", "does not compute what", " I8: ", " I4: ", " I7: "),
                "has overwritten it in place",
            )
            false_claim = verified.returncode == 2 and any(claim in verified.stderr for claim in claims)
            refused = verified.returncode == 1 or false_claim
            report.expect(refused, f"{what}: verify exits with {verified.returncode} after {damage.__name__}")
            done += 1
    report.expect(done > 1, f"{what}: nothing to damage")


def other_attribute(model: onnx.ModelProto) -> bool:
    """Changes a number in the attributes of an operator."""
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.FLOAT and node.domain != "ai.lmsc":
                attribute.f += 0.5
                return True
    return False


def other_operator(model: onnx.ModelProto) -> bool:
    """Computes something else of the same operands."""
    others = {"Relu": "Sigmoid", "Sigmoid": "Tanh", "Tanh": "Sigmoid", "Add": "Mul", "Mul": "Add", "Sub": "Div"}
    for node in model.graph.node:
        if node.domain == "" and node.op_type in others:
            node.op_type = others[node.op_type]
            return True
    return False


def other_constant(model: onnx.ModelProto) -> bool:
    """Flips the last bit of every number of an initializer."""
    for initializer in model.graph.initializer:
        if initializer.data_type == onnx.TensorProto.FLOAT:
            bits = onnx.numpy_helper.to_array(initializer).view(np.uint32) ^ np.uint32(1)
            initializer.CopyFrom(onnx.numpy_helper.from_array(bits.view(np.float32), initializer.name))
            return True
    return False


def wrong_copy(model: onnx.ModelProto) -> bool:
    """Lets a tensor come back as another of its type."""
    declared = (*model.graph.value_info, *model.graph.input)
    types = {value.name: value.type.SerializeToString() for value in declared}
    ins = [node for node in model.graph.node if is_swap(node) == "swap_in"]
    for later in reversed(ins):
        for earlier in ins:
            mine, other = later.input[0], earlier.input[0]
            if mine != other and mine in types and types[mine] == types.get(other):
                later.input[0] = other
                return True
    return False


def exchanged_ranges(model: onnx.ModelProto) -> bool:
    """Lets two ranges of a tensor come back in each other's place."""
    types = {value.name: value.type.SerializeToString() for value in model.graph.value_info}
    for node in model.graph.node:
        if node.domain == "ai.lmsc" and node.op_type.startswith("Join") and len(node.input) > 2:
            first, second = node.input[-3:-1]
            if types[first] == types[second]:
                names = {first: second, second: first}
                node.input[:] = [names.get(name, name) for name in node.input]
                return True
    return False


def is_swap(node: onnx.NodeProto) -> str:
    return next((entry.value for entry in node.metadata_props if entry.key == "ai.lmsc.kind"), "")


def no_copy(model: onnx.ModelProto) -> bool:
    """Lets a copy compute something."""
    copies = [node for node in model.graph.node if is_swap(node) and node.op_type in ("Max", "Sum", "Min", "Mean")]
    for node in [*copies, *(node for function in model.functions for node in function.node)]:
        node.op_type = "Relu"
        return True
    return False


DAMAGES: list[Callable[[onnx.ModelProto], bool]] = [
    other_attribute,
    other_operator,
    other_constant,
    wrong_copy,
    exchanged_ranges,
    no_copy,
]


def check_onnx(what: str, model: Source, output: Path, fed: Arrays, expected: Arrays | None, report: Report) -> None:
    rewritten = onnx.load(output)
    if accepts(model.proto) is None:
        refusal = accepts(rewritten)
        report.expect(refusal is None, f"{what}: onnx.checker: {refusal}")
    if expected:
        different = difference(expected, evaluate(rewritten, fed))
        report.expect(not different, f"{what}: onnx's reference evaluator: {different}")


def evaluated(model: Source, fed: Arrays, report: Report) -> Arrays | None:
    """The results of onnx's reference evaluator for the original, where it can and in reasonable time."""
    standard = all(node.domain == "" for node in model.proto.graph.node)
    if not standard or model.reading or len(model.proto.SerializeToString()) >= SLOW_TO_EVALUATE:
        return None
    try:
        return evaluate(model.proto, fed)
    except Exception as error:
        # Its MaxPool, for one, gives indices that nothing can be scattered to.
        report.note(f"onnx's reference evaluator fails: {error}")
        return None


def accepts(proto: onnx.ModelProto) -> str | None:
    """Why onnx.checker refuses the model, if it does."""
    try:
        onnx.checker.check_model(proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as refusal:
        return str(refusal).strip().splitlines()[0]
    return None


class Transpose(onnx.reference.op_run.OpRun):
    """A transposition that moves its elements.

    The evaluator's own gives a view, which numpy multiplies by another path, and so with other roundings, than the copy
    of that view that comes back from the host.
    """

    op_domain = ""

    def _run(self, data: np.ndarray, perm: list[int] | None = None) -> tuple[np.ndarray]:
        return (np.ascontiguousarray(np.transpose(data, perm)),)


def evaluate(proto: onnx.ModelProto, fed: Arrays) -> Arrays:
    evaluator = onnx.reference.ReferenceEvaluator(proto, new_ops=[Transpose])
    with np.errstate(all="ignore"):
        return dict(zip(evaluator.output_names, evaluator.run(None, fed)))


def check_step(model: Source, optimizer: Path, scratch: Path, report: Report) -> None:
    """The linked step against the two graphs, for two steps."""
    linked = Source(model.path, [*model.reading, "--optimizer", str(optimizer)], model.proto, model.dims)
    counted = [*QUICKLY, "--addresses", "off"]
    plans = {
        "linked": lambda _: ["--budget", "1TiB"],
        "linked, smallest budget": lambda form: [*counted, "--budget", str(linked.smallest_budget(form))],
        "linked, everything": lambda _: EVERYTHING,
    }
    expected = two_steps(model, optimizer)
    for plan, arguments in plans.items():
        for form in FORMS:
            what = f"{plan}, {form}, {optimizer.stem}"
            output = scratch / "step.onnx"
            linked.compile(output, form, *arguments(form))
            verified = lmsc("verify", model.path, output, *linked.reading)
            report.expect(verified.returncode == 0, f"{what}: verify says {verified.stderr.strip()}")
            for number, found in enumerate(linked_steps(output, model)):
                different = difference(expected[number], found)
                report.expect(not different, f"{what}, step {number + 1}: {different}")


def two_steps(model: Source, optimizer: Path) -> list[Arrays]:
    """State after each of two steps, by the training graph and then the optimizer graph."""
    training, updating = session(model.path), session(optimizer)
    state = feeds(model) | {"lazy_reset_grad": np.ones(1, bool)}
    parameters = [name for name in state if f"{name}_grad.accumulation.buffer" in state]
    moments = {
        name: array(name, onnx.TensorProto.FLOAT, list(state[parameter].shape))
        for parameter in parameters
        for name in (f"{parameter}.exp_avg", f"{parameter}.exp_avg_sq")
    }
    results = []
    for number in (1, 2):
        outputs = training.run(None, state)
        operands = {
            "params": [state[name] for name in parameters],
            "gradients": [state[f"{name}_grad.accumulation.buffer"] for name in parameters],
            "first_order_moments": [moments[f"{name}.exp_avg"] for name in parameters],
            "second_order_moments": [moments[f"{name}.exp_avg_sq"] for name in parameters],
            "learning_rate": np.full(1, 1e-2, np.float32),
            "step": np.full(1, number, np.int64),
        }
        updating.run(None, {value.name: operands[value.name] for value in updating.get_inputs()})
        has_moments = any(value.name == "second_order_moments" for value in updating.get_inputs())
        after = {"loss": outputs[0]} | state | (moments if has_moments else {})
        results.append({name: value.copy() for name, value in after.items()})
    return results


def linked_steps(step: Path, model: Source) -> Iterator[Arrays]:
    """State after each of two steps, by the linked step."""
    running = session(step)
    loss = model.proto.graph.output[0].name
    state = feeds(model) | {"lazy_reset_grad": np.ones(1, bool)}
    for value in running.get_inputs():
        if value.name not in state:
            state[value.name] = array(value.name, onnx.TensorProto.FLOAT, value.shape)
    for number in (1, 2):
        if "step" in state:
            state["step"] = np.full(1, number, np.int64)
        names = [output.name for output in running.get_outputs()]
        outputs = dict(zip(names, running.run(names, state)))
        state |= {name: outputs[f"{name}_new"] for name in state if f"{name}_new" in outputs}
        yield {"loss": outputs[loss]} | {name: value.copy() for name, value in state.items()}


# --- element types ---------------------------------------------------------------------------------------------------

FLOAT = onnx.TensorProto.FLOAT
TYPES = "DOUBLE FLOAT16 BFLOAT16 BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64".split()
# No operator copies a scalar of these types on the CPU: the operator written instead does not survive.
SCALAR_IS_LOST = {"BFLOAT16", "INT8", "INT16", "UINT8", "UINT16"}


def check_type(element: str, extents: list[int], report: Report) -> None:
    """A value of this type that leaves and comes back twice, within a graph of floating-point numbers."""
    code = onnx.TensorProto.DataType.Value(element)
    what = f"{element.lower()}{extents}"
    make = onnx.helper.make_node
    # All that follows depends on the value, and then on y5: so their nodes stay where they are.
    nodes = [make("Cast", ["x"], ["narrow"], to=code)]
    nodes += [make("CastLike", ["narrow", "x"], ["wide"]), make("Relu", ["wide"], ["r0"])]
    for k in range(12):
        nodes.append(make("Tanh" if k % 2 else "Sigmoid", ["y5" if k == 6 else f"r{k}"], [f"r{k + 1}"]))
        if k in (5, 11):
            nodes.append(make("CastLike", ["narrow", f"r{k + 1}"], [f"wide{k}"]))
            nodes.append(make("Add", [f"r{k + 1}", f"wide{k}"], [f"y{k}"]))
    for k, node in enumerate(nodes):
        node.name = f"n{k}"
    values = [onnx.helper.make_tensor_value_info(name, FLOAT, extents) for name in ("x", "y5", "y11")]
    graph = onnx.helper.make_graph(nodes, "types", values[:1], values[1:])
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        model = Source(Path(folder) / "original.onnx", [], proto, {})
        onnx.save(proto, model.path)
        fed = {"x": np.random.default_rng(1).uniform(-1, 3, extents).astype(np.float32)}
        expected = run(session(model.path), fed)
        for form in FORMS:
            output = Path(folder) / f"{form}.onnx"
            plan = ["--planner", "tflms{swap-branches=true,ctrld-strategy=direct-order,incl-types=Cast}"]
            swapped = model.compile(output, form, *plan)["swapped"]
            back = [swap["swap_ins"] for swap in swapped if swap["value"] == "narrow"]
            report.expect(back == [2], f"{what}: does not come back twice, but {back} times")
            check_runs(f"{what}, {form}", output, form, fed, expected, report)
            refusal = accepts(onnx.load(output))
            report.expect(refusal is None, f"{what}, {form}: onnx.checker: {refusal}")
            if form == "ort" and (extents or element not in SCALAR_IS_LOST):
                check_survival(what, output, form, Path(folder), report)


# --- large variables -------------------------------------------------------------------------------------------------


def check_variables(report: Report) -> None:
    """A step of gradient descent whose weights are so large that they travel in ranges."""
    layers, width = 3, 1024
    make, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    nodes = [make("MatMul", [f"x{k}", f"w{k}"], [f"x{k + 1}"]) for k in range(layers)]
    nodes.append(make("Tanh", [f"x{layers}"], [f"d{layers}"]))
    for k in reversed(range(layers)):
        nodes += [
            make("Gemm", [f"d{k + 1}", f"w{k}"], [f"d{k}"], transB=1),
            make("Gemm", [f"x{k}", f"d{k + 1}"], [f"g{k}"], transA=1),
            make("Mul", [f"g{k}", "rate"], [f"s{k}"]),
            make("Sub", [f"w{k}", f"s{k}"], [f"w{k}_new"]),
        ]
    for k, node in enumerate(nodes):
        node.name = f"n{k}"
    weights = [value(f"w{k}", FLOAT, [width, width]) for k in range(layers)]
    inputs = [value("x0", FLOAT, [4, width]), value("rate", FLOAT, [1]), *weights]
    outputs = [value(f"x{layers}", FLOAT, [4, width])]
    outputs += [value(f"w{k}_new", FLOAT, [width, width]) for k in range(layers)]
    graph = onnx.helper.make_graph(nodes, "variables", inputs, outputs)
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        model = Source(scratch / "original.onnx", [], proto, {})
        onnx.save(proto, model.path)
        fed = feeds(model)
        expected = run(session(model.path), fed)
        plan = ["--planner", "swap-only", "--ranges"]
        for form in FORMS:
            budget = ["--addresses", "off", "--budget", str(model.smallest_budget(form, *plan) * 13 // 10)]
            what, output = f"variables in ranges, {form}", scratch / f"{form}.onnx"
            model.compile(output, form, *plan, *budget)
            written = onnx.load(output)
            came = sum(node.op_type.startswith("SwapInRange") for node in written.graph.node)
            report.expect(came > layers, f"{what}: {came} ranges come from the host")
            check_runs(what, output, form, fed, expected, report)
            check_survival(what, output, form, scratch, report)
            check_damage(what, model, output, scratch, report)
            refusal = accepts(written)
            report.expect(refusal is None, f"{what}: onnx.checker: {refusal}")
            verified = lmsc("verify", model.path, output)
            report.expect(verified.returncode == 0, f"{what}: verify says {verified.stderr.strip()}")


# --- the whole -------------------------------------------------------------------------------------------------------


def models(args: argparse.Namespace) -> list[Path]:
    """The graphs to check, those that take longest first."""
    left_out = ("optimizer_model", "forward")
    found = [path for path in sorted(MODELS.rglob("*.onnx")) if not path.name.startswith(left_out)]
    # ONNX's own cases are of operators that the runtime does not have; the other is wrong and there to be refused.
    found = [path for path in found if not {"onnx_preview_training", "tiny_bert_dynseq_bad"} & set(path.parts)]
    if not args.all:
        found = [path for path in found if is_quick(*(parts := path.relative_to(MODELS).parts)) or args.tiny and "tiny_" in parts[0]]
    if args.selected:
        found = [path for path in found if any(part in str(path.relative_to(MODELS)) for part in args.selected)]
    found.sort(key=lambda path: ("tiny" in str(path), -path.stat().st_size))
    return found if args.third is None else found[args.third :: 3]


def is_quick(model: str, *graph: str) -> bool:
    return graph in QUICK_GRAPHS if model.startswith("tiny_") else model in QUICK and graph == ("training_model.onnx",)


def work(path: Path, turn: int | None, answer: multiprocessing.connection.Connection) -> None:
    """Checks one model in a process of its own: a broken graph may end it."""
    report, skipped = Report(), ""
    with contextlib.suppress(BrokenPipeError):
        try:
            check_model(path, turn, report)
        except Skip as reason:
            skipped = str(reason)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            report.failures.append(f"{type(error).__name__}: {error} ({place.name})")
        answer.send((report, skipped))


def in_parallel(paths: list[Path], are_all_plans: bool, processes: int) -> Iterator[tuple[Path, Report, str, float]]:
    """Reports of all models, as they are ready."""
    running = {}
    waiting = iter(paths)
    while True:
        for path in waiting:
            receiver, sender = multiprocessing.Pipe(duplex=False)
            # The turn of a model does not depend on the other models.
            turn = None if are_all_plans else zlib.crc32(str(path.relative_to(MODELS)).encode())
            process = multiprocessing.Process(target=work, args=(path, turn, sender))
            process.start()
            sender.close()
            running[receiver] = path, process, time.monotonic()
            if len(running) == processes:
                break
        if not running:
            return
        for receiver in multiprocessing.connection.wait(list(running)):
            path, process, started = running.pop(receiver)
            try:
                report, skipped = receiver.recv()
            except EOFError:
                process.join()
                report, skipped = Report(failures=[f"the process ended with {process.exitcode}"]), ""
            process.join()
            yield path, report, skipped, time.monotonic() - started


def main() -> int:
    started = time.monotonic()
    parser = argparse.ArgumentParser(description="Runs lmsc's files in ONNX Runtime, and compares bit for bit.")
    parser.add_argument("selected", nargs="*", help="parts of the paths of models")
    parser.add_argument("--third", type=int, metavar="K", help="each third model, from the model K")
    parser.add_argument("--tiny", action="store_true", help="all variants of small models, under all plans")
    parser.add_argument("--all", action="store_true", help="all models, under all plans")
    args = parser.parse_args()
    paths = models(args)
    passed = failed = checks = 0
    if not args.selected:
        types, variables = Report(), Report()
        for element in TYPES:
            for extents in ([], [2, 3]):
                check_type(element, extents, types)
        check_variables(variables)
        for what, report in ((f"{len(TYPES)} element types", types), ("large variables", variables)):
            print("\n".join([f"{what}: {report.checks} checks", *report.failures]), flush=True)
            checks, failed = checks + report.checks, failed + bool(report.failures)
    for path, report, skipped, seconds in in_parallel(paths, bool(args.all or args.tiny or args.selected), os.cpu_count() or 1):
        name = path.relative_to(MODELS)
        checks += report.checks
        if skipped:
            print(f"skipped {name}: the runtime {skipped}", flush=True)
            continue
        passed, failed = passed + (not report.failures), failed + bool(report.failures)
        verdict = "FAILED " if report.failures else "ok     "
        print(f"{verdict} {name}: {', '.join([*report.notes, f'{report.checks} checks'])}, {seconds:.1f} s")
        for failure in report.failures[:8]:
            print(f"        {failure}")
        sys.stdout.flush()
    print(f"{checks} checks in {time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    sys.exit(main())
