"""Writes the steps of a plan as a forward and a backward graph of PyTorch.

The operators stand in the plan's order, with copies to the host and back, and operators that run again. What the backward graph needs of the
forward graph is an output there and an input here, in the order that AOTAutograd expects.
"""

from __future__ import annotations

import collections
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import SavedForBackwardsAOTOutput, SavedForBackwardsNoVcCheckAOTOutput
from torch._functorch._aot_autograd.utils import _is_bwd_seed_offset, _is_tangent
from torch._functorch.partitioners import is_rng_op
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch.fx._lazy_graph_module import _LazyGraphModule
from torch.fx.experimental.symbolic_shapes import find_symbol_binding_fx_nodes, free_symbols

from . import copies as _copies  # noqa: F401 (registers the operators)
from .costs import tensors
from .problem import Op, Problem, changes_operands, is_collective, is_view, is_wait, other_form, state_bytes

#: The kinds of values that cross to the backward graph, in the order of its inputs. As outputs of the forward graph, numbers come last.
_INPUTS = ("numbers", "tensors", "unchecked", "objects")
_OUTPUTS = ("tensors", "unchecked", "objects", "numbers")

_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)


@dataclass(frozen=True)
class Ends:
    """The outputs of a joint graph, those of the forward pass apart, with their descriptions."""

    forward: Sequence[Any]
    backward: Sequence[Any]
    forward_descriptions: Sequence[Any]
    backward_descriptions: Sequence[Any]


class Writer:
    """Writes a plan of the problem, once."""

    def __init__(self, joint: fx.GraphModule, problem: Problem, plan: dict[str, Any], named: Sequence[int], ends: Ends):
        self.joint, self.problem, self.plan, self.ends = joint, problem, plan, ends
        storages = [named[tensor] for tensor in plan["tensors"]]
        self.tensors = [problem.stands_for.get(storage, storage) for storage in storages]  # by tensor of the plan, the storage
        self.forward, self.backward = fx.Graph(), fx.Graph()
        self.now = self.forward
        self.device: dict[int, fx.Node] = {}  # by tensor of the plan, the node that holds it
        self.host: dict[int, fx.Node] = {}
        self.latest: dict[int, int] = {}  # by storage, the tensor of the plan that was made last
        self.free: dict[fx.Graph, dict[fx.Node, fx.Node]] = {self.forward: {}, self.backward: {}}  # values that are made once
        self.made: dict[Any, fx.Node] = {}  # views and constants, by graph and base
        self.brought: dict[fx.Node, fx.Node] = {}
        self.saved: dict[str, list[fx.Node]] = {kind: [] for kind in _INPUTS}
        self.states: dict[fx.Node, fx.Node] = {}  # by random node, the state of its first run
        self.once: dict[fx.Node, dict[int, int]] = {}  # by node that is about to run, the tensors of results that no repeat gives
        self.started: list[int] = []  # tensors that repeats of collectives make
        self.ran: set[int] = set()
        self.outputs: list[Any] = []
        times = collections.Counter(run["op"] for run in plan["ops"])
        self.repeated = {op for op, count in times.items() if count > 1}
        self._inputs()

    def _inputs(self) -> None:
        self.anchors = {kind: self.backward.placeholder(f"anchor_{kind}") for kind in _INPUTS}
        for node in sorted(self.joint.graph.find_nodes(op="placeholder"), key=_is_bwd_seed_offset):
            graph = self._graph_of_input(node)
            written = graph.placeholder(node.target)
            written.meta = node.meta.copy()
            self.free[graph][node] = written
        for index, storage in enumerate(self.tensors):
            owner = self.problem.owner[storage]
            if owner.op == "placeholder" and storage not in self.latest:
                self.device[index] = self.free[self._graph_of_input(owner)][owner]
                self.latest[storage] = index

    def _graph_of_input(self, node: fx.Node) -> fx.Graph:
        return self.backward if _is_tangent(node) or _is_bwd_seed_offset(node) else self.forward

    # The steps.

    def _carry_out(self) -> None:
        """Writes the steps of the plan."""
        runs = self.plan["ops"]
        begins = next(place for place, run in enumerate(runs) if self.problem.ops[run["op"]].kind == "gradients")
        early: list[dict[str, int]] = []
        made: set[int] = set()  # by these steps
        begun = False
        for step in self.plan["steps"]:
            place = step.get("op")
            # What a collective of the backward pass makes while the forward pass still computes could not be saved under way.
            if not begun and (place > begins if place is not None else self._piece(step) in made):
                early.append(step)
                made.update(runs[place].get("produces", ()) if place is not None else ())
                continue
            self._step(step)
            if place == begins:
                begun = True
                for postponed in early:
                    self._step(postponed)

    def _step(self, step: dict[str, int]) -> None:
        if "op" in step:
            self._run(self.plan["ops"][step["op"]])
        elif "out" in step:
            self._out(self._piece(step))
        else:
            self._in(self._piece(step))

    def _piece(self, copy: dict[str, int]) -> int:
        """The tensor of the plan that is copied."""
        return self.plan["pieces"][copy["out" if "out" in copy else "in"]][0]

    def write(self) -> tuple[fx.GraphModule, fx.GraphModule]:
        """The forward and the backward graph."""
        self._carry_out()
        results = self._values(self.ends.backward)
        self._bind_symbols()
        for anchor in self.anchors.values():
            self.backward.erase_node(anchor)
        _finish(self.backward, results, self.ends.backward_descriptions)
        self._drop_unread()
        saved = [node for kind in _OUTPUTS for node in self.saved[kind]]
        described = [
            (SavedForBackwardsNoVcCheckAOTOutput if _is_unchecked(node) else SavedForBackwardsAOTOutput)(place)
            for place, node in enumerate(saved)
        ]
        _finish(self.forward, [*self.outputs, *saved], [*self.ends.forward_descriptions, *described])
        # Their code is generated once they run: the compiler that gets them may want another form of it.
        return _LazyGraphModule(self.joint, self.forward), _LazyGraphModule(self.joint, self.backward)

    def _run(self, run: dict[str, Any]) -> None:
        op = self.problem.ops[run["op"]]
        if op.kind == "state":  # Its random operator writes it, with its first run.
            return
        if op.kind == "between":
            for tensor in self.started:
                self._wait(tensor)
            self.outputs = self._values(self.ends.forward)
            return
        if op.kind == "gradients":
            self.now = self.backward
            return
        where = {self.tensors[tensor]: tensor for tensor in run.get("reads", [])}
        if op.kind == "wait":
            self.value(op.node, where)
            return
        produced = {self.tensors[tensor]: tensor for tensor in run.get("produces", [])}
        if op.kind == "once":
            self.once[op.node] = produced
            return
        produced |= self.once.pop(op.node, {})
        again = op.node in self.free[self.forward] or op.node in self.free[self.backward]
        written = self._written(run["op"], op, where)
        self.ran.add(run["op"])
        self.free[self.now][op.node] = written
        self.latest |= produced
        self._hold_results(op.node, written, produced)
        if again and is_collective(op.node):
            self.started += produced.values()
            # The plan holds operands that the step makes no longer than this.
            for tensor in produced.values() if op.reads else ():
                self._wait(tensor)

    def _wait(self, tensor: int) -> None:
        """Waits for the collective that makes the tensor, unless that is done."""
        storage = self.tensors[tensor]
        for wait in self.problem.waits.get(storage, ()):
            self.value(wait, {storage: tensor})

    def _written(self, tick: int, op: Op, where: dict[int, int]) -> fx.Node:
        if tick in self.repeated and is_rng_op(op.node):
            return self._random(op.node, where)
        return self._repeat(op.node, where) if tick in self.ran else self._copy(op.node, where)

    def _hold_results(self, node: fx.Node, written: fx.Node, produced: dict[int, int]) -> None:
        storage = self.problem.storage.get(node)
        if storage in produced:
            # A tensor without a check of its version stays with the context of autograd until that dies. Nobody else can change what the graph makes
            # itself, so it needs no such mark.
            written.meta.pop("saved_tensor_with_no_vc_check", None)
            self.device[produced[storage]] = written
        form = other_form(node)
        results = form.results if form is not None and written.target is form.target else math.inf
        for user in node.users if node in self.problem.parts else ():
            if user.target is operator.getitem and not is_view(user) and user.args[1] < results:
                part = self.now.node_copy(user, lambda _: written)
                self.free[self.now][user] = part
                self._hold_results(user, part, produced)

    def _out(self, tensor: int) -> None:
        if tensor not in self.host:
            self._wait(tensor)
            source = self.bring(self.device[tensor])
            self.host[tensor] = self._transfer(torch.ops.lmsc.offload.default, source, (source,), torch.device("cpu"))

    def _in(self, tensor: int) -> None:
        source, device = self.bring(self.host[tensor]), self.problem.owner[self.tensors[tensor]].meta["val"].device
        self.device[tensor] = self._transfer(torch.ops.lmsc.reload.default, source, (source, device), device)

    def _transfer(self, target: Any, source: fx.Node, args: tuple[Any, ...], device: torch.device) -> fx.Node:
        written = self.now.call_function(target, args)
        value = source.meta["val"]
        with value.fake_mode:
            written.meta = {"val": torch.empty_like(value, device=device), "tensor_meta": source.meta.get("tensor_meta")}
        return written

    def _repeat(self, node: fx.Node, where: dict[int, int]) -> fx.Node:
        form = other_form(node)
        if form is None:
            return self._copy(node, where)
        kept = [argument for place, argument in enumerate(node.args) if place not in form.left_out]
        written = self.now.call_function(form.target, tuple(self._mapped(kept, where)))
        written.meta = node.meta | {"val": node.meta["val"][: form.results]}
        return written

    def _random(self, node: fx.Node, where: dict[int, int]) -> fx.Node:
        """The first run keeps the generator's state; each repeat draws from that state, and then restores the generator."""
        args, kwargs = self._mapped((node.args, node.kwargs), where)
        if node in self.states:
            state = self.bring(self.states[node])
            written = self.now.call_function(run_with_rng_state, (state, node.target, *args), dict(kwargs))
            written.meta = node.meta.copy()
            return written
        both = self.now.call_function(run_and_save_rng_state, (node.target, *args), dict(kwargs))
        state, written = (self.now.call_function(operator.getitem, (both, place)) for place in (0, 1))
        drawn = tensors(node.meta["val"])[0]
        with drawn.fake_mode:
            state.meta["val"] = torch.empty(state_bytes(drawn.device), dtype=torch.uint8)
        written.meta = node.meta.copy()
        both.meta["val"] = (state.meta["val"], node.meta["val"])
        self.states[node] = state
        return written

    # Values in the graph that is being written.

    def _values(self, nodes: Sequence[Any]) -> list[Any]:
        return [self.value(node, self.latest) if isinstance(node, fx.Node) else node for node in nodes]

    def _mapped(self, arguments: Any, where: dict[int, int]) -> Any:
        return fx.map_arg(arguments, lambda operand: self.value(operand, where))

    def value(self, node: fx.Node, where: dict[int, int]) -> Any:
        """The joint graph's node in the graph of now; `where` says which tensor of the plan holds a storage."""
        if node.op == "get_attr":
            return self._once(node, None, where)
        if is_view(node):
            base = self.value(node.args[0], where)
            if is_wait(node) and not _is_under_way(base):
                return base
            return self._once(node, base, where)
        if changes_operands(node) and node in self.problem.storage:
            return self.value(node.args[0], where)
        storage = self.problem.storage.get(node)
        if storage in self.problem.resident:  # Each input is itself, also where several lie in one storage.
            return self.bring(self.free[self.forward][node])
        if storage is not None and storage in where:
            return self.bring(self.device[where[storage]])
        return self._without_memory(node)

    def _once(self, node: fx.Node, base: Any, where: dict[int, int]) -> fx.Node:
        """A constant, or a view over the node that holds its base now: made once for each base and graph."""
        key = (self.now, node, base)
        if key not in self.made:
            self.made[key] = self._copy(node, where)
        return self.made[key]

    def _without_memory(self, node: fx.Node) -> Any:
        if isinstance(node.meta.get("val"), (int, float, bool)):
            return node.meta["val"]
        here = self.free[self.now]
        return here[node] if node in here else self.bring(self.free[self.forward][node])

    def _copy(self, node: fx.Node, where: dict[int, int]) -> fx.Node:
        written = self.now.node_copy(node, lambda operand: self.value(operand, where))
        if self.now is self.backward:
            written.meta["autograd_backward"] = True
        return written

    def bring(self, node: fx.Node) -> fx.Node:
        """The node itself, or the input of the backward graph that carries it over."""
        if node.graph is self.now:
            return node
        if node not in self.brought:
            kind = _kind(node)
            with self.backward.inserting_before(self.anchors[kind]):
                written = self.backward.placeholder(node.name)
            # The name is unique, the target is not: the generated code would take one input for another.
            written.target = written.name
            written.meta = node.meta.copy()
            self.saved[kind].append(node)
            self.brought[node] = written
        return self.brought[node]

    # The ends.

    def _drop_unread(self) -> None:
        """Removes inputs that no run reads any more: what is saved for none would live through the whole backward pass."""
        for kind in ("tensors", "unchecked", "objects"):
            for node in [node for node in self.saved[kind] if not self.brought[node].users]:
                self.saved[kind].remove(node)
                self.backward.erase_node(self.brought[node])

    def _bind_symbols(self) -> None:
        """Makes each symbol in a size of a saved tensor or a gradient an input of the backward graph, as AOTAutograd requires."""
        bindings = find_symbol_binding_fx_nodes(self.joint.graph)
        self.now = self.backward
        values = [node.meta.get("val") for node in self.backward.find_nodes(op="placeholder")] if bindings else []
        wanted = {symbol for value in values if isinstance(value, (torch.Tensor, torch.SymInt)) for symbol in free_symbols(value)}
        for symbol in sorted(wanted, key=str):
            if symbol in bindings:
                self._without_memory(bindings[symbol])


def _is_under_way(node: fx.Node) -> bool:
    """Whether the node is the result of a collective that may still be under way."""
    while node.op == "call_function" and node.target is operator.getitem:
        node = node.args[0]
    return is_collective(node)


def _is_unchecked(node: fx.Node) -> bool:
    return bool(node.meta.get("saved_tensor_with_no_vc_check"))


def _kind(node: fx.Node) -> str:
    value = node.meta.get("val")
    if isinstance(value, _NUMBERS):
        return "numbers"
    if not isinstance(value, torch.Tensor):
        return "objects"
    return "unchecked" if _is_unchecked(node) else "tensors"


def _finish(graph: fx.Graph, values: Sequence[Any], descriptions: Sequence[Any]) -> None:
    graph.output(tuple(values)).meta["desc"] = list(descriptions)
    # A random operator that keeps its state draws numbers, whether its result is read or not.
    graph.eliminate_dead_code(lambda node: node.is_impure() or node.target is run_and_save_rng_state)
    graph.lint()
