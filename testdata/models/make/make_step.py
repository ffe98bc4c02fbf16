"""Makes `step/` and `ortmodule/`: single graphs of a training step, and the graphs that ORTModule executes.

The graphs in `step/` are made from the committed training_model.onnx: its gradients become outputs instead of being
accumulated, and an optimizer, in one of four spellings, follows them. Those in `ortmodule/` are built by the graph
builder of ORTModule from the model itself.
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from onnxruntime.capi import _pybind_state as native

import compare
import make_ort
import models

ROOT = Path(__file__).resolve().parent.parent
FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64

# The hyperparameters of AdamW, the same in every spelling.
BETA1, BETA2, EPSILON, DECAY = 0.9, 0.999, 1e-6, 0.01


class Step:
    """A step that is being assembled: loss and gradients, and the nodes added to them."""

    def __init__(self, training: onnx.ModelProto):
        self.model = onnx.ModelProto()
        self.model.CopyFrom(training)
        graph = self.graph = self.model.graph
        accumulators = [node for node in graph.node if node.op_type == "InPlaceAccumulatorV2"]
        buffers = {node.input[0] for node in accumulators}
        declared = {value.name: value for value in graph.input}
        self.parameters = [declared[node.input[1].removesuffix("_grad")] for node in accumulators]
        inputs = [i for i in graph.input if i.name not in buffers and i.name != "lazy_reset_grad"]
        outputs = [o for o in graph.output if not o.name.endswith(".accumulation.out")]
        nodes = [node for node in graph.node if node.op_type != "InPlaceAccumulatorV2"]
        for field, kept in ((graph.input, inputs), (graph.output, outputs), (graph.node, nodes)):
            kept = [type(value).FromString(value.SerializeToString()) for value in kept]
            del field[:]
            field.extend(kept)

    def input(self, name: str, element: int, dims: list) -> str:
        self.graph.input.append(helper.make_tensor_value_info(name, element, dims))
        return name

    def output(self, name: str, element: int, dims: list) -> str:
        self.graph.output.append(helper.make_tensor_value_info(name, element, dims))
        return name

    def constant(self, name: str, value: np.ndarray) -> str:
        self.graph.initializer.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op: str, inputs: list[str], outputs: list[str], name: str, **more) -> None:
        self.graph.node.append(helper.make_node(op, inputs, outputs, name, **more))

    def binary(self, op: str, inputs: list[str], output: str) -> str:
        self.node(op, inputs, [output], f"{output}:{op}")
        return output

    def moments(self, parameter: str, dims: list) -> tuple[str, str]:
        return self.input(f"{parameter}.exp_avg", FLOAT, dims), self.input(f"{parameter}.exp_avg_sq", FLOAT, dims)


    def statistics(self) -> None:
        """Makes outputs of the running statistics that batch normalization computes, which it would else overwrite."""
        declared = {value.name: shape(value) for value in self.graph.input}
        for node in self.graph.node:
            if node.op_type == "BatchNormInternal":
                for new, old in zip(node.output[1:3], node.input[3:5]):
                    self.output(new, FLOAT, declared[old])


def shape(value: onnx.ValueInfoProto) -> list[int]:
    return [d.dim_value for d in value.type.tensor_type.shape.dim]


def train_grad(step: Step) -> None:
    for parameter in step.parameters:
        step.output(f"{parameter.name}_grad", FLOAT, shape(parameter))


def train_step_sgd_std(step: Step) -> None:
    rate = step.input("learning_rate", FLOAT, [])
    for parameter in step.parameters:
        name = parameter.name
        update = step.binary("Mul", [f"{name}_grad", rate], f"opt/{name}/upd")
        step.binary("Sub", [name, update], f"{name}_new")
        step.output(f"{name}_new", FLOAT, shape(parameter))


def train_step_adamw_std(step: Step) -> None:
    rate, time = step.input("learning_rate", FLOAT, []), step.input("step", FLOAT, [])
    constants = {"b1": BETA1, "b2": BETA2, "nb1": 1 - BETA1, "nb2": 1 - BETA2, "eps": EPSILON, "wd": DECAY, "one": 1.0}
    b1, b2, nb1, nb2, eps, decay, one = (
        step.constant(f"opt/{name}", np.array(value, np.float32)) for name, value in constants.items()
    )
    c1 = step.binary("Sub", [one, step.binary("Pow", [b1, time], "opt/b1t")], "opt/c1")
    c2 = step.binary("Sub", [one, step.binary("Pow", [b2, time], "opt/b2t")], "opt/c2")
    kept = step.binary("Sub", [one, step.binary("Mul", [rate, decay], "opt/lrwd")], "opt/decay")
    for parameter in step.parameters:
        name, dims = parameter.name, shape(parameter)
        gradient, (m, v) = f"{name}_grad", step.moments(name, dims)

        def binary(op: str, a: str, b: str, output: str) -> str:
            return step.binary(op, [a, b], output)

        def local(op: str, a: str, b: str, output: str) -> str:
            return binary(op, a, b, f"opt/{name}/{output}")

        m = binary("Add", local("Mul", m, b1, "m1"), local("Mul", gradient, nb1, "m2"), f"{name}.exp_avg_new")
        square = local("Mul", gradient, gradient, "g2")
        v = binary("Add", local("Mul", v, b2, "v1"), local("Mul", square, nb2, "v2"), f"{name}.exp_avg_sq_new")
        m_hat, v_hat = local("Div", m, c1, "mh"), local("Div", v, c2, "vh")
        root = step.binary("Sqrt", [v_hat], f"opt/{name}/sq")
        direction = local("Div", m_hat, local("Add", root, eps, "den"), "dir")
        update = local("Mul", direction, rate, "upd")
        binary("Sub", local("Mul", name, kept, "pd"), update, f"{name}_new")
        for suffix in ("", ".exp_avg", ".exp_avg_sq"):
            step.output(f"{name}{suffix}_new", FLOAT, dims)


def train_step_adamw_seq(step: Step) -> None:
    operands = [step.input("learning_rate", FLOAT, [1]), step.input("step", INT64, [1])]
    names = [parameter.name for parameter in step.parameters]
    moments = [step.moments(parameter.name, shape(parameter)) for parameter in step.parameters]
    lists = {"params": names, "grads": [f"{name}_grad" for name in names]}
    lists |= {"m": [m for m, _ in moments], "v": [v for _, v in moments]}
    for name, values in lists.items():
        step.node("SequenceConstruct", values, [f"opt/{name}"], f"opt/{name}")
        operands.append(f"opt/{name}")
    step.node(
        "AdamWOptimizer",
        operands,
        ["opt/flag", "opt/params_new", "opt/m_new", "opt/v_new"],
        "opt/AdamW",
        domain="com.microsoft",
        alpha=BETA1,
        beta=BETA2,
        epsilon=EPSILON,
        weight_decay=DECAY,
        adam_mode=0,
        correct_bias=1,
    )
    for k, parameter in enumerate(step.parameters):
        index = step.constant(f"opt/i{k}", np.array(k, np.int64))
        for suffix, source in (("", "params"), (".exp_avg", "m"), (".exp_avg_sq", "v")):
            output = f"{parameter.name}{suffix}_new"
            step.node("SequenceAt", [f"opt/{source}_new", index], [output], f"opt/at{suffix}_new/{k}")
            step.output(output, FLOAT, shape(parameter))


def train_step_adam_legacy(step: Step) -> None:
    rate = step.input("learning_rate", FLOAT, [1])
    for k, parameter in enumerate(step.parameters):
        name, dims = parameter.name, shape(parameter)
        # The operator counts its step up in place: one shared by all would be wrong from the second on.
        time = step.input(f"{name}.step", INT64, [1])
        m, v = step.moments(name, dims)
        new = {f"{name}.step_new": (INT64, [1]), f"{name}.exp_avg_new": (FLOAT, dims)}
        new |= {f"{name}.exp_avg_sq_new": (FLOAT, dims), f"{name}_new": (FLOAT, dims)}
        step.node(
            "AdamOptimizer",
            [rate, time, name, f"{name}_grad", m, v],
            list(new),
            f"opt/Adam_{k}",
            domain="com.microsoft",
            alpha=BETA1,
            beta=BETA2,
            epsilon=EPSILON,
            **{"lambda": 0.0},
            do_bias_correction=1,
            weight_decay_mode=0,
        )
        for output in (f"{name}.step_new", f"{name}_new", f"{name}.exp_avg_new", f"{name}.exp_avg_sq_new"):
            step.output(output, *new[output])


STEPS: list[Callable[[Step], None]] = [
    train_grad,
    train_step_sgd_std,
    train_step_adamw_std,
    train_step_adamw_seq,
    train_step_adam_legacy,
]


def make_step(name: str, out: Path) -> None:
    training = onnx.load(ROOT / name / "training_model.onnx")
    for make in STEPS:
        step = Step(training)
        make(step)
        step.statistics()
        onnx.save(step.model, out / f"{make.__name__}.onnx")


def make_ortmodule(name: str, out: Path) -> None:
    model = models.build(name)
    with tempfile.TemporaryDirectory() as scratch:
        forward = make_ort.export(name, model, False, 17, Path(scratch) / "forward.onnx", ortmodule=True)
    inputs = {i.name for i in forward.graph.input}
    config = native.OrtModuleGraphBuilderConfiguration()
    config.initializer_names = [n for n, _ in (*model.named_parameters(), *model.named_buffers()) if n in inputs]
    config.initializer_names_to_train = [n for n, _ in model.named_parameters() if n in inputs]
    config.input_names_require_grad = []
    config.build_gradient_graph = True
    builder = native.OrtModuleGraphBuilder()
    builder.initialize(forward.SerializeToString(), config)
    builder.build(native.TrainingGraphTransformerConfiguration())
    (out / "training_model.onnx").write_bytes(builder.get_gradient_model())


KINDS = {"step": make_step, "ortmodule": make_ortmodule}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="models: " + " ".join(models.SPECS))
    parser.add_argument("names", nargs="+", metavar="MODEL", choices=[*models.SPECS, "all"], help="a model, or all")
    parser.add_argument("--kind", choices=list(KINDS), action="append", help="default: both")
    parser.add_argument("--out", type=Path, default=ROOT, help="where <model>/<kind>/ goes; default: in place")
    parser.add_argument(
        "--check", action="store_true", help="write nothing, say how the result differs from what is committed"
    )
    args = parser.parse_args()
    torch.set_num_threads(2)
    for kind in args.kind or KINDS:
        committed = [n for n in models.SPECS if (ROOT / n / kind).is_dir()]
        for name in committed if "all" in args.names else args.names:
            with tempfile.TemporaryDirectory() as scratch:
                made = Path(scratch)
                KINDS[kind](name, made)
                if args.check:
                    compare.report(made, ROOT / name / kind, ROOT)
                    continue
                target = args.out / name / kind
                target.mkdir(parents=True, exist_ok=True)
                for file in made.glob("*.onnx"):
                    (target / file.name).write_bytes(file.read_bytes())


if __name__ == "__main__":
    main()
