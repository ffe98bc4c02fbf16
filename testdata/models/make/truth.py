"""The compact form of the true types of a graph's tensors; README.md beside this folder describes it."""

import json

import onnx

# Outputs whose value follows from the shapes of the operands alone, not from their contents.
SHAPE_ONLY = {("", "Shape", 0), ("", "Size", 0), ("com.microsoft", "ConcatTraining", 1)}
RANDOM = {"RandomUniformLike", "RandomNormalLike", "RandomUniform", "RandomNormal", "Dropout", "Bernoulli"}


def data_dependent(graph: onnx.GraphProto) -> set[str]:
    """Names of the values that depend on the contents of the graph's inputs, not only on their sizes."""
    tainted = {i.name for i in graph.input} - {i.name for i in graph.initializer}
    for node in graph.node:
        dependent = node.op_type in RANDOM or any(i in tainted for i in node.input)
        for k, name in enumerate(node.output):
            if dependent and (node.domain, node.op_type, k) not in SHAPE_ONLY:
                tainted.add(name)
    return tainted


def bound_dims(graph: onnx.GraphProto, inputs: dict) -> dict[str, int]:
    """Extents of the symbolic dimensions of the graph's inputs, given the shapes that were fed."""
    dims = {}
    for value in graph.input:
        declared = value.type.tensor_type.shape.dim
        actual = inputs[value.name]["shape"]
        assert len(declared) == len(actual), value.name
        for dim, extent in zip(declared, actual):
            if dim.HasField("dim_value"):
                assert dim.dim_value == extent, value.name
            else:
                assert dim.dim_param and dims.setdefault(dim.dim_param, extent) == extent, value.name
    return dims


def flat(value):
    return [x for part in value for x in flat(part)] if isinstance(value, list) else [value]


def describe(tensor: dict, with_value: bool) -> str:
    """`float[4,16]`, or with the elements of a small integer tensor: `int64[2] = 4,16`."""
    text = f"{tensor['dtype']}[{','.join(map(str, tensor['shape']))}]"
    elements = flat(tensor.get("small_value", []))
    if with_value and elements:
        text += " = " + ",".join(str(x).lower() for x in elements)
    return text


def compact(model: onnx.ModelProto, file_name: str, runs: list[dict]) -> str:
    """The text of `<graph>.shapes.json`.

    `runs` are `{"inputs": {name: tensor}, "tensors": {name: tensor}}`, where a tensor is
    `{"dtype": str, "shape": [int], "small_value": nested list}`, the last only for small integer and bool tensors.
    """
    graph = model.graph
    secret = data_dependent(graph)
    outputs = {o for n in graph.node for o in n.output if o}
    for run in runs:
        assert set(run["inputs"]) == {i.name for i in graph.input}
        assert set(run["tensors"]) <= outputs

    def line(kind: str, name: str) -> str:
        seen = [describe(r[kind][name], name not in secret) for r in runs]
        return json.dumps(seen[0] if len(set(seen)) == 1 else seen)

    text = [f'"graph": {json.dumps(file_name)}']
    bound = [json.dumps(bound_dims(graph, r["inputs"]), sort_keys=True) for r in runs]
    text.append('"runs": [\n  ' + ",\n  ".join(bound) + "\n ]")
    for kind in ("inputs", "tensors"):
        names = sorted(runs[0][kind])
        assert all(sorted(r[kind]) == names for r in runs)
        lines = [f"  {json.dumps(n)}: {line(kind, n)}" for n in names]
        text.append(f'"{kind}": {{\n' + ",\n".join(lines) + "\n }")
    return "{\n " + ",\n ".join(text) + "\n}\n"
