"""Written graphs compiled by Inductor: `options={"inner": "inductor"}`.

The plan is one of kernels (`fusion`). Each run of a kernel is written as its operators, with its own copies of those that are inlined in it, and is
marked with the number of the run; a result that crosses runs goes through `lmsc::store`. Successive runs whose bytes at once are within the plan's
peak are a *stretch*. Inductor is held to that: it computes what goes through `lmsc::store` once, fuses nothing of two stretches, and keeps the order of
the graph. So the bytes of a plan are those of the compiled graphs, but for kernels that write over an operand, and results that stay within a
stretch: these need less.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import fx
from torch._functorch import config as functorch_config
from torch._functorch.partitioners import _extract_fwd_bwd_outputs, min_cut_rematerialization_partition
from torch._inductor import ir
from torch._inductor.choices import InductorChoices
from torch._inductor.codegen.cpp import CppScheduling
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._inductor.custom_graph_pass import CustomPartitionerFn
from torch._inductor.lowering import register_lowering
from torch._inductor.virtualized import V

from ..._lmsc import Error
from .check import Live, Unsound, peak
from .costs import bytes_of, tensors
from .fusion import FusedProblem, kind, source
from .planning import Form, Written
from .problem import is_collective, is_view
from .write import Ends, Writer

#: By the name of Inductor's setting, the value that keeps it to a plan. Reuse of buffers holds freed bytes back for a later buffer of the same size.
_SETTINGS = {
    "reorder_for_peak_memory": False,
    "reorder_for_locality": False,
    "allow_buffer_reuse": False,
    "comprehensive_padding": False,
    "combo_kernels": False,
    "layout_optimization": False,
}

#: The keys of a node's `meta` that tell the number of its run, and of the stretch of runs in which Inductor is free.
RUN, STRETCH = "lmsc_run", "lmsc_stretch"

STORE = torch.ops.lmsc.store.default


class FusedWriter(Writer):
    """Writes each run of a kernel as its operators, in order, with what is inlined there."""

    def __init__(self, *args: Any):
        self.local: dict[fx.Node, fx.Node] | None = None  # within a run of a kernel, its operators
        self.inlined: set[fx.Node] = set()
        self.number = 0
        super().__init__(*args)

    def _run(self, run: dict[str, Any]) -> None:
        self.number += 1
        op = self.problem.ops[run["op"]]
        kernel = self.problem.kernels.get(op.node) if op.kind == "run" else None
        if kernel is None:
            super()._run(run)
            self._mark()
            return
        where, produced = ({self.tensors[tensor]: tensor for tensor in run.get(key, [])} for key in ("reads", "produces"))
        self.local, self.inlined = {}, self.problem.inlined[op.phase]
        for node in kernel.nodes:
            self.local[node] = self._copy(node, where)
            if node in kernel.stored:
                self._hold_results(node, self.local[node], produced)
        self.local = None
        self._mark()
        self.ran.add(run["op"])
        self.latest |= produced

    def _hold_results(self, node: fx.Node, written: fx.Node, produced: dict[int, int]) -> None:
        """Has each result stored that later runs read, also within the run: so its other operators load it, rather than computing it again."""
        storage = self.problem.storage.get(node)
        if isinstance(node.meta.get("val"), torch.Tensor) and (storage is None or storage in produced):
            written = self._store(written)
        self.free[self.now][node] = written
        if self.local is not None:
            self.local[node] = written
        super()._hold_results(node, written, produced)

    def _store(self, value: fx.Node) -> fx.Node:
        written = self.now.call_function(STORE, (value,))
        written.meta = value.meta.copy()
        return written

    def value(self, node: fx.Node, where: dict[int, int]) -> Any:
        if self.local is None or node.op != "call_function" or is_view(node):
            return super().value(node, where)
        if node in self.local:
            return self.local[node]
        origin = source(node)
        if origin not in self.local and origin not in self.inlined:
            return super().value(node, where)
        if node is not origin:  # A part of a result.
            return self._once(node, self.value(node.args[0], where), where)
        self.local[node] = self._copy(node, where)
        return self.local[node]

    def write(self) -> tuple[fx.GraphModule, fx.GraphModule]:
        forward, backward = super().write()
        graphs = forward.graph, backward.graph if self.ends.backward else None
        facts = self.problem.device, self.ends.forward_descriptions
        limit = peak(*graphs, *facts, LiveRuns)
        peak(*graphs, *facts, functools.partial(Stretches, limit=limit))
        return forward, backward

    def bring(self, node: fx.Node) -> fx.Node:
        written = super().bring(node)
        if written is not node:
            written.meta.pop(RUN, None)  # An input is of no run.
        return written

    def _out(self, tensor: int) -> None:
        self.number += 1
        super()._out(tensor)
        self._mark()

    def _in(self, tensor: int) -> None:
        self.number += 1
        super()._in(tensor)
        self._mark()

    def _mark(self) -> None:
        """Marks what this run has written. A view is of no run: it is made once for all that read it."""
        for node in reversed(self.now.nodes):
            if node.meta.get(RUN, self.number) != self.number:
                return
            if node.op == "call_function" and not is_view(node):
                node.meta[RUN] = self.number


# The bytes.


class LiveRuns(Live):
    """The storages that are live while runs follow one another: all that a run loads and stores is there at once."""

    #: The key of the number of the runs at once.
    key = RUN

    def _moments(self, graph: fx.Graph) -> list[list[fx.Node]]:
        """The nodes of each number. What has none is of the run before it."""
        found: list[list[fx.Node]] = [[]]
        latest = None
        for node in graph.nodes:
            number = node.meta.get(self.key, latest)
            if number != latest:
                if latest is not None and number < latest:
                    raise Unsound(f"`{node.name}` is not written with the others of its run")
                latest = number
                found.append([])
            found[-1].append(node)
        return found

    def _storages(self, graph: fx.Graph, saved: Sequence[set[Any]]) -> dict[fx.Node, set[Any]]:
        operators = Counter(node.meta[RUN] for node in graph.nodes if RUN in node.meta and node.target not in (STORE, operator.getitem))
        storages: dict[fx.Node, set[Any]] = {}
        inputs = iter(saved)
        for node in graph.nodes:
            if node.op == "call_function" and node.target is STORE:
                storages[node] = storages[node.args[0]] or {(node, ())}
            elif operators[node.meta.get(RUN)] > 1:
                storages[node] = set()  # The kernel does not store it, but for what the next node says.
            else:
                storages[node] = self._of(node, storages, inputs)
        for node in graph.nodes:
            for operand in map(_base, node.all_input_nodes):
                inner = RUN in operand.meta and not storages[operand] and self._has_bytes(operand)
                if inner and not is_view(node) and operand.meta[RUN] != node.meta.get(RUN):
                    raise Unsound(f"`{node.name}` reads `{operand.name}`, which its kernel does not store")
        return storages

    def _has_bytes(self, node: fx.Node) -> bool:
        if node.target is torch.ops.lmsc.offload.default:
            return False
        return any(self._counts(tensor) and bytes_of(tensor) for tensor in tensors(node.meta.get("val")))


def _base(node: fx.Node) -> fx.Node:
    """The node whose memory a view shows."""
    while node.op == "call_function" and is_view(node):
        node = node.args[0]
    return node


class LiveStretches(LiveRuns):
    """As `LiveRuns`, of stretches: all that the runs of a stretch load and store is there at once."""

    key = STRETCH


class Stretches(LiveRuns):
    """Joins successive runs of generated kernels to stretches, as long as their bytes at once are within the limit: in these Inductor is free."""

    def __init__(self, device: torch.device, limit: int):
        super().__init__(device)
        self.limit, self.number = limit, 0
        self.waiting: set[Any] = set()
        self.joins = False

    def _begin(self, nodes: list[fx.Node], storages: dict[fx.Node, set[Any]]) -> None:
        makes = {s for node in nodes for s in storages[node] if s[0] is node and s not in self.bytes}
        generated = not any(node.op != "call_function" or RUN in node.meta and node.target is not STORE and _is_called(node) for node in nodes)
        fits = self.now + sum(bytes_of(_value(storage)) for storage in makes) <= self.limit
        if not (self.joins and generated and fits):
            super()._end(self.waiting)
            self.waiting = set()
            self.number += 1
        self.joins = generated
        for node in nodes:
            if RUN in node.meta:
                node.meta[STRETCH] = self.number

    def _end(self, gone: set[Any]) -> None:
        self.waiting |= gone


def _is_called(node: fx.Node) -> bool:
    """Whether Inductor calls the operator as it is, or may do so."""
    return node.target is not operator.getitem and kind(node) == "alone"


def _value(storage: tuple[fx.Node, Any]) -> torch.Tensor:
    value = storage[0].meta["val"]
    for place in storage[1]:
        value = value[place]
    return value


def _peak(forward: fx.Graph, backward: fx.Graph | None, device: torch.device, descriptions: Sequence[Any]) -> int:
    return peak(forward, backward, device, descriptions, LiveStretches)


# Inductor.


class _OneStretch(InductorChoices):
    """Fuses operators of one stretch, and none of two."""

    @staticmethod
    def can_fuse(scheduler: Any, node1: Any, node2: Any, shared_data_score: int) -> bool:
        return len(_stretches(node1) | _stretches(node2)) < 2 and InductorChoices.can_fuse(scheduler, node1, node2, shared_data_score)


def _stretches(scheduled: Any) -> set[int]:
    """The stretches that a node of Inductor's scheduler is of."""
    origins = (origin for part in scheduled.get_nodes() if part.node is not None for origin in part.node.get_origins())
    return {origin.meta[STRETCH] for origin in origins if STRETCH in origin.meta}


def _generate(scheduling: CppScheduling, node: Any) -> None:
    """Generates the kernel, and ends the function of C++ with the stretch: successive kernels become one function, which has all their buffers at once."""
    _GENERATE(scheduling, node)
    nodes = scheduling.scheduler.nodes
    following = nodes[nodes.index(node) + 1 :][:1] if node in nodes else []
    if not following or not _stretches(node) & _stretches(following[0]):
        scheduling._set_flush_status(True)


_GENERATE = CppScheduling.codegen_node


@register_lowering(STORE, type_promotion_kind=None)
def _stored(tensor: Any) -> Any:
    """The tensor, stored as it is in the graph: else Inductor may choose other strides, and copy it where those of the graph are needed."""
    tensor.realize()
    strides = ir.convert_shape_to_inductor(V.graph.current_node.meta["val"].stride())
    if ir.is_storage_and_layout(tensor) and isinstance(ir.as_storage_and_layout(tensor, freeze=False)[1], ir.FlexibleLayout):
        ir.as_storage_and_layout(tensor, exact_strides=strides)
    return tensor


@contextlib.contextmanager
def _held() -> Iterator[None]:
    """While entered, Inductor keeps to the stretches of the graph that it compiles."""
    with V.set_choices_handler(_OneStretch()), mock.patch.object(CppScheduling, "codegen_node", _generate):
        yield


class NotCompiled(Exception):
    """Why Inductor does not compile a graph."""


class _Partition(CustomPartitionerFn):
    """Writes the planned graphs in place of PyTorch's partitioner."""

    def __init__(self, written: Callable[[fx.GraphModule, Ends, Form], Written]):
        self.written = written
        self.digest = ""

    def __call__(
        self, joint: fx.GraphModule, inputs: Sequence[Any], *, num_fwd_outputs: int, static_lifetime_input_indices: Any = None, **_: Any
    ) -> tuple[fx.GraphModule, fx.GraphModule]:
        saved = _saved_by_pytorch(joint, inputs, num_fwd_outputs, static_lifetime_input_indices)
        return self.write(joint, Ends(*_extract_fwd_bwd_outputs(joint, num_fwd_outputs=num_fwd_outputs)), saved)

    def write(self, graph: fx.GraphModule, ends: Ends, saved: Sequence[fx.Node]) -> tuple[fx.GraphModule, fx.GraphModule]:
        if any(map(is_collective, graph.graph.nodes)):
            raise NotCompiled("it speaks to other processes")
        if any(isinstance(getattr(graph, str(node.target), None), fx.GraphModule) for node in graph.graph.find_nodes(op="get_attr")):
            raise NotCompiled("it has graphs within")
        written = self.written(graph, ends, Form(functools.partial(FusedProblem, saved=saved), (FusedProblem,) if saved else (), FusedWriter, _peak, "inductor"))
        graphs = written.forward, written.backward
        stretches = [(node.name, node.meta.get(STRETCH)) for module in graphs for node in module.graph.nodes]
        self.digest = hashlib.sha256(repr((_SOURCE, stretches)).encode()).hexdigest()
        return graphs

    def uuid(self) -> str:
        """The part of the key of Inductor's cache that the text of a graph does not tell: which operators are of one stretch, and how it is held to that."""
        return self.digest

    def __reduce__(self) -> Any:
        """Inductor also puts its settings into the key, of which this is one."""
        return str, (self.digest,)


_SOURCE = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _saved_by_pytorch(joint: fx.GraphModule, inputs: Sequence[Any], num_fwd_outputs: int, static: Any) -> list[fx.Node]:
    """The nodes that PyTorch's own partitioner would save for the backward pass."""
    graph = fx.Graph()
    result = graph.output(graph.graph_copy(joint.graph, {}))
    result.meta = next(iter(joint.graph.find_nodes(op="output"))).meta.copy()
    with functorch_config.patch(activation_memory_budget=1.0):
        forward, _ = min_cut_rematerialization_partition(
            fx.GraphModule(joint, graph), inputs, num_fwd_outputs=num_fwd_outputs, static_lifetime_input_indices=static
        )
    results = next(iter(forward.graph.find_nodes(op="output"))).args[0][num_fwd_outputs:]
    names = {node.name for node in results if isinstance(node, fx.Node)}
    return [node for node in joint.graph.nodes if node.name in names and node.op == "call_function"]


def compiled(graph: fx.GraphModule, inputs: Sequence[Any], written: Callable[[fx.GraphModule, Ends, Form], Written]) -> Callable[..., Any]:
    """The graph of Dynamo, planned by `written` and compiled by Inductor.

    Raises:
        NotCompiled: Inductor cannot; the graph is as it was.
    """
    partition = _Partition(written)

    def inner(module: fx.GraphModule, examples: Sequence[Any], **kwargs: Any) -> Any:
        if kwargs.get("is_inference"):
            module = _inference(partition, module)
        with _held():
            return compile_fx_inner(module, examples, **kwargs)

    copied = fx.Graph()
    copied.output(copied.graph_copy(graph.graph, {})).meta = next(iter(graph.graph.find_nodes(op="output"))).meta.copy()
    own = fx.GraphModule(graph, copied)
    own.meta = graph.meta.copy()
    try:
        # AOTAutograd's own cache would answer without a plan.
        with functorch_config.patch(enable_autograd_cache=False):
            return compile_fx(own, inputs, inner, {"custom_partitioner_fn": partition, **_SETTINGS})
    except (Error, NotCompiled):
        raise
    except Exception as error:
        lines = str(error).strip().splitlines()
        raise NotCompiled(f"{type(error).__name__}: {lines[0] if lines else ''}") from error


def _inference(partition: _Partition, module: fx.GraphModule) -> fx.GraphModule:
    """A graph without a backward pass meets no partitioner."""
    result = next(iter(module.graph.find_nodes(op="output")))
    outputs = list(result.args[0])
    forward, _ = partition.write(module, Ends(outputs, [], [None] * len(outputs), []), ())
    next(iter(forward.graph.find_nodes(op="output"))).meta |= result.meta
    return forward
