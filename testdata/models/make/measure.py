"""Runs a graph in onnxruntime-training and writes the true type of every tensor beside it."""

import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

import truth

SMALL = 32  # integer and bool tensors of up to so many elements keep their values


def bind(model: onnx.ModelProto, dims: dict[str, int]) -> onnx.ModelProto:
    """A copy with the symbols bound wherever they stand: AveragePoolGrad takes its shape from there, and a symbol for 0."""
    bound = onnx.ModelProto()
    bound.CopyFrom(model)
    for value in (*bound.graph.input, *bound.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in dims:
                dim.dim_value = dims[dim.dim_param]
    return bound


def tensor(value: np.ndarray) -> dict:
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    name = onnx.TensorProto.DataType.Name(kind).lower()
    described = {"dtype": name, "shape": list(value.shape)}
    if value.dtype.kind in "bi" and value.size <= SMALL:
        described["small_value"] = value.tolist()
    return described


def run(model: onnx.ModelProto, dims: dict[str, int]) -> dict:
    """One run on random floats, zeros for integers, `True` for flags; parameters may be overwritten, nobody reads them."""
    bound = bind(model, dims)
    rng = np.random.default_rng(0)
    feeds = {}
    for value in bound.graph.input:
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        fill = rng.random(shape) if dtype.kind == "f" else np.ones(shape) if dtype.kind == "b" else np.zeros(shape)
        feeds[value.name] = fill.astype(dtype)
    inputs = {n: tensor(v) for n, v in feeds.items()}

    names = [o for n in bound.graph.node for o in n.output if o]
    del bound.graph.output[:]
    bound.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(bound.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return {"inputs": inputs, "tensors": dict(zip(names, map(tensor, session.run(names, feeds))))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", type=Path)
    parser.add_argument("runs", nargs="*", metavar="batch=4,seq=8", help="symbols to bind, one argument per run")
    parser.add_argument("--check", action="store_true", help="write nothing, say whether the committed file has the same")
    args = parser.parse_args()
    model = onnx.load(args.graph)
    bindings = [{k: int(v) for k, v in (p.split("=") for p in run.split(","))} for run in args.runs] or [{}]
    text = truth.compact(model, args.graph.name, [run(model, dims) for dims in bindings])
    file = args.graph.with_suffix(".shapes.json")
    if args.check:
        print(f"{args.graph}: {'identical' if file.read_text() == text else 'differs'}", flush=True)
    else:
        file.write_text(text)


if __name__ == "__main__":
    main()
