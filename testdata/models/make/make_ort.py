"""Makes training and optimizer graphs with onnxruntime-training from models that PyTorch exports."""

import argparse
import shutil
import tempfile
from pathlib import Path

import onnx
import torch
from onnxruntime.training import artifacts, onnxblock
from onnxruntime.training.onnxblock import _graph_utils

import compare
import models

ROOT = Path(__file__).resolve().parent.parent
FORWARD_LIMIT = 150 * 1024  # bytes; a larger forward.onnx, which holds the weights, is not kept


class VoxelCrossEntropy(onnxblock.Block):
    """Cross entropy of scores `[n, c, d…]` with labels `[n, d…]`.

    onnxblock's own CrossEntropyLoss makes labels by dropping the last dimension of the scores, not the class dimension.
    """

    def build(self, scores: str) -> str:
        graph = self.base.graph
        labels = onnx.ValueInfoProto()
        labels.CopyFrom(_graph_utils.get_output_from_output_name(self.base, scores))
        labels.name = "labels"
        labels.type.tensor_type.elem_type = onnx.TensorProto.INT64
        del labels.type.tensor_type.shape.dim[1]
        graph.input.append(labels)
        name = "SoftmaxCrossEntropyLoss"
        graph.node.append(onnx.helper.make_node(name, [scores, "labels"], ["loss", "log_prob"], name, reduction="mean"))
        graph.value_info.append(onnx.helper.make_tensor_value_info("loss", onnx.TensorProto.FLOAT, []))
        return "loss"


LOSSES = {
    "ce": lambda: artifacts.LossType.CrossEntropyLoss,
    "mse": lambda: artifacts.LossType.MSELoss,
    "ce_nd": VoxelCrossEntropy,
    "inmodel": lambda: None,
}


def export(
    name: str, model: torch.nn.Module, static: bool, opset: int, path: Path, ortmodule: bool = False
) -> onnx.ModelProto:
    """Exports the forward graph with its weights, and gives every LayerNormalization the outputs its gradient reads.

    As ORTModule exports it, parameters are inputs without values, and PyTorch makes up names for the extents of outputs.
    """
    spec = models.SPECS[name]
    inputs = models.inputs(name, spec.static_batch if static else spec.batch)
    in_model = spec.loss == "inmodel"
    axes = {0: "batch", 1: "seq"} if spec.symbolic_length else {0: "batch"}
    names = ["input_ids", "labels"] if in_model else ["input"]
    dynamic = {n: axes for n in names}
    if not in_model and not ortmodule:
        dynamic["output"] = {0: "batch_seq" if spec.tokens else "batch"}
    torch.onnx.export(
        model,
        inputs,
        str(path),
        input_names=names,
        output_names=["loss"] if in_model else ["output"],
        dynamic_axes=None if static else dynamic,
        training=torch.onnx.TrainingMode.TRAINING,
        do_constant_folding=False,
        export_params=not ortmodule,
        opset_version=opset,
    )
    forward = onnx.load(path)
    for node in forward.graph.node:
        if node.op_type == "LayerNormalization" and len(node.output) == 1:
            node.output.extend([f"{node.output[0]}_mean", f"{node.output[0]}_invstd"])
    onnx.save(forward, path)
    return forward


def make(name: str, variant: str, out: Path) -> None:
    """Writes training_model.onnx, optimizer_model.onnx, optimizer_model_sgd.onnx and a small forward.onnx into `out`."""
    spec = models.SPECS[name]
    static = variant == "static"
    opset = int(variant.removeprefix("opset")) if variant.startswith("opset") else 17
    _graph_utils._GRAPH_TOKEN = 0  # generated names count from 1 in every model
    model = models.build(name)
    out.mkdir(parents=True, exist_ok=True)
    forward = export(name, model, static, opset, out / "forward.onnx")
    if variant or (out / "forward.onnx").stat().st_size > FORWARD_LIMIT:
        (out / "forward.onnx").unlink()

    initializers = {i.name for i in forward.graph.initializer}
    trained = [n for n, _ in model.named_parameters() if n in initializers]
    frozen = [n for n, _ in model.named_buffers() if n in initializers]
    with tempfile.TemporaryDirectory() as scratch:
        artifacts.generate_artifacts(
            forward,
            requires_grad=trained,
            frozen_params=frozen,
            loss=LOSSES[spec.loss](),
            optimizer=artifacts.OptimType.AdamW,
            artifact_directory=scratch,
        )
        for file in ("training_model.onnx", "optimizer_model.onnx"):
            shutil.copy(Path(scratch) / file, out / file)

    sgd = onnxblock.optim.SGD()
    with onnxblock.empty_base(opset_version=opset):
        sgd(([p for p in forward.graph.initializer if p.name in trained], []))
        onnx.save(sgd.to_model_proto(), out / "optimizer_model_sgd.onnx")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog="models: " + " ".join(models.SPECS))
    parser.add_argument(
        "names",
        nargs="+",
        metavar="MODEL",
        choices=[*models.SPECS, "all"],
        help="a model below, or all whose graphs of the variant are committed",
    )
    parser.add_argument(
        "--variant", default="", metavar="V", help="static, or opset14, opset20…; default: symbolic batch at opset 17"
    )
    parser.add_argument("--out", type=Path, default=ROOT, help="where <model>/<variant>/ goes; default: in place")
    parser.add_argument("--check", action="store_true", help="write nothing, say how the result differs from what is committed")
    args = parser.parse_args()
    torch.set_num_threads(2)  # one thread sums in another order, and moves running means by a unit in the last place
    committed = [n for n in models.SPECS if (ROOT / n / args.variant / "training_model.onnx").exists()]
    for name in committed if "all" in args.names else args.names:
        if not args.check:
            make(name, args.variant, args.out / name / args.variant)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            make(name, args.variant, Path(scratch))
            compare.report(Path(scratch), ROOT / name / args.variant, ROOT)


if __name__ == "__main__":
    main()
