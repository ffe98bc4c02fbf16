"""Says how near a graph that was just made is to the committed one."""

from collections import Counter
from pathlib import Path

import onnx


def signature(values) -> list[str]:
    def dims(v):
        return ",".join(d.dim_param or str(d.dim_value) for d in v.type.tensor_type.shape.dim)

    return [f"{v.name}: {v.type.tensor_type.elem_type}[{dims(v)}]" for v in values]


def difference(ours: onnx.ModelProto, theirs: onnx.ModelProto) -> str:
    """The first of these that differs: interface, operators, wiring, types, initializers, encoding."""
    a, b = ours.graph, theirs.graph
    for what in ("input", "output"):
        x, y = signature(getattr(a, what)), signature(getattr(b, what))
        if x != y:
            return f"{what}s differ: {[p for p in zip(x, y) if p[0] != p[1]][:2] or (len(x), len(y))}"
    x, y = (Counter(f"{n.domain}:{n.op_type}" for n in g.node) for g in (a, b))
    if x != y:
        return f"operators differ: {len(a.node)} and {len(b.node)} nodes, more {dict(x - y)}, fewer {dict(y - x)}"
    for p, q in zip(a.node, b.node):
        if p != q:
            return f"same interface and operators, but nodes differ, first at {p.name} and {q.name}"
    if signature(a.value_info) != signature(b.value_info):
        if sorted(signature(a.value_info)) == sorted(signature(b.value_info)):
            return "same nodes, value_info in another order"
        return "same nodes, value_info differs"
    if list(a.initializer) != list(b.initializer):
        x, y = ([(i.name, tuple(i.dims), i.data_type) for i in g.initializer] for g in (a, b))
        return "same nodes and types, other values in initializers" if x == y else "same nodes and types, initializers differ"
    return "equal up to encoding and metadata"


def report(made: Path, committed: Path, root: Path, only: str = "*.onnx") -> None:
    """Prints one line per committed graph in `committed` whose file name matches `only`."""
    for theirs in sorted(committed.glob(only)):
        ours = made / theirs.name
        if not ours.exists():
            verdict = "not made"
        elif ours.read_bytes() == theirs.read_bytes():
            verdict = "identical"
        else:
            verdict = difference(onnx.load(ours), onnx.load(theirs))
        print(f"{theirs.relative_to(root)}: {verdict}", flush=True)
