"""The swaps, recomputed nodes and functions of lmsc's files that other programs keep.

Each program optimizes a planned training step in both forms; `lmsc verify --survives` counts the kept ones. The table is
docs/survival.md: --write writes it, without it the script fails where the table differs from the file. The form `ort` must
keep every swap of whole tensors in every program, and no result may be other than the original's where the program's output
can be run.
"""

import contextlib
import importlib.metadata
import io
import json
import logging
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.compose
import onnx.version_converter
import onnxruntime as ort
import onnxscript.optimizer
import onnxsim
import onnxslim
from onnx import TensorProto, helper

Model = onnx.ModelProto
TABLE = Path("docs/survival.md")
FORMS = ["ort", "function"]
OPSET = 18


def training_step(layers: int = 4, width: int = 32) -> Model:
    """A step of gradient descent in standard operators: layers of MatMul, Add and activations that the backward pass reads."""
    make, value = helper.make_node, helper.make_tensor_value_info
    nodes = []
    for k in range(layers):
        nodes.append(make("MatMul", [f"x{k}", f"w{k}"], [f"h{k}"]))
        nodes.append(make("Add", [f"h{k}", f"b{k}"], [f"a{k}"]))
        nodes.append(make("Tanh" if k % 2 else "Sigmoid", [f"a{k}"], [f"x{k + 1}"]))
    nodes.append(make("ReduceSumSquare", [f"x{layers}"], ["loss"], keepdims=0))
    nodes.append(make("Add", [f"x{layers}", f"x{layers}"], [f"dx{layers}"]))
    for k in reversed(range(layers)):
        # Of a sigmoid y (1 - y), of a hyperbolic tangent 1 - y².
        nodes.append(make("Mul", [f"x{k + 1}", f"x{k + 1}"], [f"q{k}"]))
        nodes.append(make("Sub", ["one" if k % 2 else f"x{k + 1}", f"q{k}"], [f"s{k}"]))
        nodes.append(make("Mul", [f"dx{k + 1}", f"s{k}"], [f"da{k}"]))
        nodes.append(make("Transpose", [f"x{k}"], [f"xt{k}"], perm=[1, 0]))
        nodes.append(make("MatMul", [f"xt{k}", f"da{k}"], [f"dw{k}"]))
        nodes.append(make("ReduceSum", [f"da{k}", "zeroth"], [f"db{k}"], keepdims=0))
        for name in ("w", "b"):
            nodes.append(make("Mul", [f"d{name}{k}", "rate"], [f"r{name}{k}"]))
            nodes.append(make("Sub", [f"{name}{k}", f"r{name}{k}"], [f"{name}{k}_new"]))
        if k > 0:
            nodes.append(make("Transpose", [f"w{k}"], [f"wt{k}"], perm=[1, 0]))
            nodes.append(make("MatMul", [f"da{k}", f"wt{k}"], [f"dx{k}"]))
    for k, node in enumerate(nodes):
        node.name = f"n{k}"
    weights = [(f"w{k}", [width, width]) for k in range(layers)] + [(f"b{k}", [width]) for k in range(layers)]
    declare = lambda name, extents: value(name, TensorProto.FLOAT, extents)
    constants = [
        onnx.numpy_helper.from_array(np.float32(1), "one"),
        onnx.numpy_helper.from_array(np.float32(0.01), "rate"),
        onnx.numpy_helper.from_array(np.array([0]), "zeroth"),
    ]
    inputs = [declare("x0", [16384, width])] + [declare(*weight) for weight in weights]
    outputs = [declare("loss", [])] + [declare(f"{name}_new", extents) for name, extents in weights]
    graph = helper.make_graph(nodes, "step", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def runtime(level: str) -> Callable[[Model], Model]:
    def optimized(model: Model) -> Model:
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.log_severity_level = 3
        with tempfile.TemporaryDirectory() as folder:
            options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
            ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
            return onnx.load(options.optimized_model_filepath)

    return optimized


def version(package: str) -> str:
    return f"{package} {importlib.metadata.version(package)}"


PROGRAMS: dict[str, Callable[[Model], Model]] = {
    f"{version('onnxruntime')}, BASIC": runtime("ORT_ENABLE_BASIC"),
    f"{version('onnxruntime')}, ALL": runtime("ORT_ENABLE_ALL"),
    version("onnxsim"): lambda model: onnxsim.simplify(model)[0],
    version("onnxslim"): onnxslim.slim,
    f"{version('onnxscript')}, optimizer": onnxscript.optimizer.optimize,
    f"{version('onnx')}, version converter to 21": lambda model: onnx.version_converter.convert_version(model, 21),
    f"{version('onnx')}, inliner": lambda model: onnx.inliner.inline_local_functions(model),
    f"{version('onnx')}, prefix of all names": lambda model: onnx.compose.add_prefix(model, "other/"),
}


def lmsc(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([os.environ["LMSC"], *map(str, arguments)], capture_output=True, text=True, check=False)


# The plans, and their budgets as a share of the way from the resident bytes to the peak.
PLANS = {
    "swaps": (0.8, ["--planner", "swap-only"]),
    "ranges": (0.83, ["--planner", "swap-only", "--ranges", "--addresses", "off"]),
    "recomputed": (0.8, ["--planner", "memonger"]),
}


def planned(folder: Path, original: Path, plan: str, form: str) -> Path:
    inspected = lmsc("inspect", original, "--json")
    memory = json.loads(inspected.stdout)["memory"]
    share, arguments = PLANS[plan]
    budget = memory["resident"] + int(share * memory["transient_peak"])
    output = folder / f"{plan}-{form}.onnx"
    done = lmsc(original, "--budget", budget, "--form", form, "-o", output, *arguments)
    if done.returncode != 0:
        sys.exit(f"{plan}, {form}: {done.stderr}")
    return output


def values(model: Model) -> list[np.ndarray] | None:
    """The model's results for numbers that follow from the inputs' positions; None where it does not run."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:
        return None
    fed = {}
    for index, described in enumerate(session.get_inputs()):
        random = np.random.default_rng(index)
        fed[described.name] = random.uniform(-0.5, 0.5, described.shape).astype(np.float32)
    return session.run(None, fed)


def survived(planned: Path, optimize: Callable[[Model], Model], expected: list[np.ndarray], failures: list[str]) -> str:
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            optimized = optimize(onnx.load(planned))
    except Exception as error:
        failures.append(f"{planned.stem}: fails with {type(error).__name__}")
        return "fails"
    path = planned.with_suffix(".optimized.onnx")
    onnx.save(optimized, path)
    found = lmsc("verify", "--survives", planned, path, "--json")
    if found.returncode not in (0, 1):
        sys.exit(f"verify --survives: {found.stderr}")
    left = json.loads(found.stdout)
    computed = values(optimized)
    if computed is None:
        failures.append(f"{planned.stem}: the optimized file does not run")
    elif not all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(computed, expected, strict=True)):
        failures.append(f"{planned.stem}: the optimized file computes something else")
    if planned.stem == "swaps-ort" and left["gone"]:
        failures.append(f"{planned.stem}: gone are {left['gone']}")
    swaps = f"{left['swap_outs_left'] + left['swap_ins_left']} of {left['swap_outs'] + left['swap_ins']}"
    again = f"{left['recomputed_left']} of {left['recomputed']}"
    functions = f"{left['functions_left']} of {left['functions']}"
    cell = again if planned.stem.startswith("recomputed") else swaps
    return f"{cell}; functions {functions}" if left["functions"] else cell


def table() -> tuple[str, list[str]]:
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        original = folder / "original.onnx"
        onnx.save(training_step(), original)
        expected = values(onnx.load(original))
        assert expected is not None
        files = {form: [planned(folder, original, plan, form) for plan in PLANS] for form in FORMS}
        lines = []
        for form, plans in files.items():
            lines += [f"## `--form {form}`", "", "| program | swaps | swaps of ranges | recomputed nodes |", "|---|---|---|---|"]
            for program, optimize in PROGRAMS.items():
                said: list[str] = []
                cells = [survived(plan, optimize, expected, said) for plan in plans]
                failures += [f"{program}: {what}" for what in said]
                lines.append(f"| {program} | {' | '.join(cells)} |")
            lines.append("")
    lines += ["## Failures", ""]
    lines += [f"- {failure}" for failure in failures] or ["Nothing."]
    return INTRODUCTION + "\n".join(lines) + "\n", failures


INTRODUCTION = f"""# Plans in files that other programs optimize

Written by `scripts/check-survival --write`: a training step of standard operators (opset {OPSET}) is planned, another program
optimizes the file, and `lmsc verify --survives` counts the swaps, recomputed nodes and functions that are
left. A function counts if it is still called and defined; an inlined one counts by its copies.

Recomputed nodes are pure functions of the operands of their origins, so every program that merges common subexpressions merges
them with their origins, in either form. A range is copied by a function for tensors of any type, whose last node in the form `ort`
is a Concat of one tensor: programs that inline it may remove that.

"""


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    text, failures = table()
    if "--write" in sys.argv[1:]:
        TABLE.write_text(text)
    print(text)
    if TABLE.read_text() != text:
        sys.exit(f"{TABLE} says something else: run scripts/check-survival --write")
    if any("swaps-ort" in failure for failure in failures):
        sys.exit("the form ort loses swaps")


if __name__ == "__main__":
    main()
