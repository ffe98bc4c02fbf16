"""The planning problem of a graph of PyTorch: what takes memory, what runs in which order, what may leave or run again.

A *storage* takes memory; nodes are values over storages. Parameters, buffers and inputs are *resident*: their caller holds them, so no plan
can free them. Everything else is made by one operator and freed after its last use. The graph is a joint graph, forward and backward, or
one of inference.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import operator
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import BufferAOTInput, InputMutationAOTOutput, ParamAOTInput
from torch._functorch._aot_autograd.utils import _is_tangent
from torch._functorch.partitioners import is_rng_op
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch.distributed.distributed_c10d import _resolve_process_group
from torch.utils._pytree import tree_leaves, tree_map

from .costs import Target, bytes_of, bytes_of_result, number, tensors

aten = torch.ops.aten

#: Operators that are no views by their schema although their result shares the memory of their first operand.
_ALIASES = {aten._unsafe_view.default}

#: Tensors of fewer bytes stay on the device: a page; a copy takes longer for its start than for these bytes on every target.
_SMALLEST_COPY = 4096

#: Namespaces of operators that speak to other processes.
_COLLECTIVES = {"_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "c10d", "_dtensor", "symm_mem", "fsdp"}

#: Collectives that only move bytes. A second run gives the same, if every process of the group runs it again at the same place. A reduction does
#: not: sums may be formed in another order, and its operand would have to be there again on every process.
_GATHERS = {"all_gather_into_tensor", "all_gather_into_tensor_coalesced", "all_to_all_single", "broadcast"}

#: Operators of these namespaces that speak to no other process.
_LOCAL = {"mesh_get_process_group", "_wrap_tensor_autograd"}


@dataclass(frozen=True)
class OtherForm:
    """The form of an operator that runs where the operator runs again."""

    target: Any
    #: The places of the operator's arguments that the form does without.
    left_out: tuple[int, ...]
    #: The place of the flag that must be True.
    flag: int
    #: The number of first results that the form gives, too.
    results: int


# A batch norm in training reads running statistics only to give new ones. A repeat does without both: else it would read statistics that the
# step has already changed.
OTHER_FORMS = {
    aten._native_batch_norm_legit_functional.default: OtherForm(aten._native_batch_norm_legit.no_stats, (3, 4), 5, 3),
}

#: Arguments that an operator does not read if its flag is set: the flag's place, and the places of the arguments.
_UNREAD = {aten.native_batch_norm_backward.default: (7, (3, 4))}


def is_overload(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload)


def is_wait(node: fx.Node) -> bool:
    """Whether the node waits for the result of a collective. By its schema it is no view, but it returns the memory that it waits for."""
    return is_overload(node) and node.target.namespace in _COLLECTIVES and node.target._opname in ("wait_tensor", "wait_tensors")


def is_collective(node: fx.Node) -> bool:
    """Whether the node speaks to other processes."""
    return is_overload(node) and node.target.namespace in _COLLECTIVES and not is_wait(node) and node.target._opname not in _LOCAL


def is_gather(node: fx.Node) -> bool:
    """Whether the node is a collective that may run again."""
    return is_collective(node) and node.target.namespace == "_c10d_functional" and node.target._opname in _GATHERS


def runs_beside(node: fx.Node) -> bool:
    """Whether the collective runs beside the operators that compute: it only starts there, and nothing but waits reads its results."""

    def is_awaited(of: fx.Node) -> bool:
        return bool(of.users) and all(is_wait(user) or user.target is operator.getitem and is_awaited(user) for user in of.users)

    return is_collective(node) and node.target.namespace == "_c10d_functional" and not changes_operands(node) and is_awaited(node)


def group_of(collective: fx.Node) -> list[int]:
    """The processes that the collective speaks to, by their ranks; without a group that can be told, all."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return [0]
    names = [value for value in (*collective.args, *collective.kwargs.values()) if isinstance(value, str)]
    for name in reversed(names):  # It is the last of the arguments.
        with contextlib.suppress(ValueError, KeyError, RuntimeError, LookupError):
            return torch.distributed.get_process_group_ranks(_resolve_process_group(name))
    return list(range(torch.distributed.get_world_size()))


def started_by(wait: fx.Node) -> list[fx.Node]:
    """The operators whose results the node waits for."""
    found = []
    for operand in wait.all_input_nodes:
        while operand.op == "call_function" and (operand.target is operator.getitem or is_view(operand)):
            operand = operand.args[0]
        found.append(operand)
    return found


def is_view(node: fx.Node) -> bool:
    """Whether the node's result lies in the memory of its first operand."""
    if node.op != "call_function":
        return False
    if is_wait(node) and node.target._opname == "wait_tensor":
        return True
    if node.target is operator.getitem:
        return is_view(node.args[0])
    return node.target in _ALIASES or is_overload(node) and node.target.is_view


def changes_operands(node: fx.Node) -> bool:
    return is_overload(node) and node.target._schema.is_mutable


def changed_operands(node: fx.Node) -> list[fx.Node]:
    """The operands that the operator writes to, by its schema."""
    given = [
        (argument, node.args[place] if place < len(node.args) else node.kwargs.get(argument.name))
        for place, argument in enumerate(node.target._schema.arguments)
    ]
    written = [value for argument, value in given if argument.alias_info is not None and argument.alias_info.is_write]
    return [value for value in tree_leaves(written) if isinstance(value, fx.Node)]


def runs_again(node: fx.Node) -> bool:
    """Whether a second run gives the same values and changes nothing else: a random operator does with the state of its first run."""
    if not is_overload(node):  # The body of a higher-order operator may do anything.
        return False
    if is_rng_op(node):
        return not changes_operands(node)
    impure = changes_operands(node) or node.is_impure() or "unbacked_bindings" in node.meta
    return not impure and (node.target.namespace not in _COLLECTIVES or is_gather(node))


def other_form(node: fx.Node) -> OtherForm | None:
    """The form that a repeat of the node takes, if that is another."""
    form = OTHER_FORMS.get(node.target)
    return form if form is not None and node.args[form.flag] is True else None


def drop_unread_arguments(graph: fx.Graph) -> None:
    """Removes the arguments that their operators do not read, so that no plan keeps or makes them again."""
    for target, (flag, places) in _UNREAD.items():
        for node in graph.find_nodes(op="call_function", target=target):
            for place in places if node.args[flag] is True else ():
                node.update_arg(place, None)


def state_bytes(device: torch.device) -> int:
    """The bytes of a generator's state: a tensor on the processor, whatever the device."""
    return torch.get_rng_state().numel() if device.type == "cpu" else 16


@dataclass(frozen=True)
class Op:
    """An operator over storages.

    `kind` is `run` for one that computes its node; `wait` for one that waits for a collective, whose operands are held until then;
    `state` for the moment before a random one, which keeps the generator's state;
    `once` for the moment before an operator that runs again in another form: it makes the results that the form does not give;
    `between` for the end of the forward pass, when inputs take their new values; `gradients` for the start of the backward pass.
    """

    kind: str
    node: fx.Node | None
    phase: int
    seconds: float = 0.0
    reads: tuple[int, ...] = ()
    makes: tuple[int, ...] = ()
    changes: tuple[int, ...] = ()
    again: bool = False
    #: Bytes that it takes beside its tensors while it runs.
    workspace: int = 0


class Problem:
    """Storages of a graph and the operators over them, the forward pass first."""

    def __init__(
        self, graph: fx.Graph, forward_outputs: Sequence[Any], descriptions: Sequence[Any], target: Target, lasting: Set[int] = frozenset(),
        beside: int = 0,
    ):  # fmt: skip
        """`lasting` are the inputs, by their place in Dynamo's graph, that are parameters or buffers. `beside`: bytes of the device that are there and are
        no inputs of the graph."""
        self.graph, self.target, self.beside = graph, target, beside
        self.spare = 0  # bytes of a plan's peak that are free between the passes, for other graphs of the step
        self.bytes: list[int] = []
        self.owner: list[fx.Node] = []  # by storage, the node that makes it
        self.resident: set[int] = set()
        self.storage: dict[fx.Node, int] = {}
        self.parts: dict[fx.Node, Any] = {}  # of a node with several results, the storage of each
        self.states: dict[fx.Node, int] = {}  # of a random node, the storage of its state
        self.collectives = [node for node in graph.nodes if is_collective(node)]
        self.waits: dict[int, list[fx.Node]] = {}  # by storage that a collective makes, the nodes that wait for it
        self.stands_for: dict[int, int] = {}  # by storage of a decided repeat, that of the first run
        self.device = device_of(graph)
        self.forward_outputs = [node for node in forward_outputs if isinstance(node, fx.Node)]
        self.outputs = next(iter(graph.find_nodes(op="output"))).all_input_nodes
        self.mutated = self._written_after_forward(forward_outputs, descriptions)
        self.forward = self._forward_nodes()
        order = [node for node in graph.nodes if node in self.forward] + [node for node in graph.nodes if node not in self.forward]
        self._give_storages(order)
        for node in filter(is_wait, graph.nodes):
            self.waits.setdefault(self.storage.get(node, -1), []).append(node)
        self.dense = {storage for storage in range(len(self.bytes)) if self._is_dense(storage)}
        self.changed = self._changed(order)
        self.pinned = {self.storage[node] for node in self.forward_outputs if node in self.storage and node not in self.mutated}
        self.foreign = self._foreign(lasting)
        self.unsteady = self._unsteady(lasting)
        self.ops = self._operators(order)

    # Which nodes are of the forward pass.

    def _forward_nodes(self) -> set[fx.Node]:
        """The nodes that the forward outputs need, or that were traced in the forward pass."""
        late: set[fx.Node] = set()
        stack = list(self.forward_outputs)
        for node in self.graph.nodes:
            if _is_tangent(node) or any(operand in late for operand in node.all_input_nodes):
                late.add(node)
            elif node.meta.get("partitioner_tag") in ("is_forward", "must_be_in_forward"):
                stack.append(node)
        needed: set[fx.Node] = set()
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                stack += node.all_input_nodes
                # What is under way at the end of the forward pass could be neither saved nor copied.
                stack += [user for user in node.users if is_wait(user)]
        return needed

    def _written_after_forward(self, outputs: Sequence[Any], descriptions: Sequence[Any]) -> dict[fx.Node, fx.Node]:
        """The outputs whose values PyTorch copies into inputs after the forward graph, with these inputs."""
        inputs = {node.meta.get("desc"): node for node in self.graph.find_nodes(op="placeholder")}
        pairs = zip(outputs, descriptions, strict=False)
        return {
            node: inputs[description.mutated_input]
            for node, description in pairs
            if isinstance(description, InputMutationAOTOutput) and description.mutated_input in inputs
        }

    # Storages.

    def _new(self, node: fx.Node, tensor: Any) -> int | None:
        """A new storage for the tensor; None for what takes no memory of the device."""
        if not isinstance(tensor, torch.Tensor) or tensor.device.type != self.device.type:
            return None
        if bytes_of(tensor) == 0 and not self.collectives:  # A shard without rows is one with rows on another process.
            return None
        self.bytes.append(bytes_of_result(node, tensor))
        self.owner.append(node)
        return len(self.bytes) - 1

    def _give_storages(self, order: Iterable[fx.Node]) -> None:
        inputs: dict[int, int | None] = {}
        for node in order:
            if node.op == "placeholder":
                self._give_input(node, inputs)
            elif node.op == "call_function":
                self._give_result(node)

    def _give_input(self, node: fx.Node, inputs: dict[int, int | None]) -> None:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            return
        # A gradient may leave, and then comes back alone: it has a storage of its own.
        key = value.untyped_storage()._cdata if value.layout == torch.strided and not _is_tangent(node) else id(value)
        if key not in inputs:
            inputs[key] = self._new(node, value)
        self._set(node, inputs[key])
        if not _is_tangent(node) and node in self.storage:
            self.resident.add(self.storage[node])

    def _give_result(self, node: fx.Node) -> None:
        value = node.meta.get("val")
        if node.target is operator.getitem and not is_view(node):
            part = self.parts[node.args[0]][node.args[1]] if node.args[0] in self.parts else None
            if isinstance(part, (list, tuple)):
                self.parts[node] = part
                return
            self._set(node, part)
            if part is not None and self.owner[part] is node.args[0]:
                self.owner[part] = node
        elif is_view(node) or changes_operands(node) and isinstance(value, torch.Tensor):
            self._set(node, self.storage.get(node.args[0]))
        elif isinstance(value, torch.Tensor):
            self._set(node, self._new(node, value))
        elif isinstance(value, (tuple, list)):
            self.parts[node] = tree_map(lambda tensor: self._new(node, tensor), value)

    def _set(self, node: fx.Node, storage: int | None) -> None:
        if storage is not None:
            self.storage[node] = storage

    def _storages(self, nodes: Iterable[fx.Node]) -> set[int]:
        return {self.storage[node] for node in nodes if node in self.storage}

    def _changed(self, order: Iterable[fx.Node]) -> set[int]:
        """The storages that the step writes to after they have been made."""
        writing = [node for node in order if node.op == "call_function" and changes_operands(node)]
        written = {operand for node in writing for operand in changed_operands(node)}
        return self._storages(written) | self._storages(self.mutated.values())

    def _foreign(self, lasting: Set[int]) -> set[int]:
        """The storages that the caller may write to before the backward pass, because the step's own backward pass does not read them.

        These are arguments of the call and results of the forward pass: a loop may fill its batch anew, or scale the scores that it got.
        """
        inputs = self.graph.find_nodes(op="placeholder")
        if not any(_is_tangent(node) for node in inputs):
            return set()
        arguments = self._storages(node for node in inputs if not _is_tangent(node) and not _is_lasting(node, lasting))
        late = (node for node in self.graph.nodes if node not in self.forward and node.op == "call_function" and not is_view(node))
        return (arguments | self.pinned) - self._storages(operand for node in late for operand in node.all_input_nodes)

    def _unsteady(self, lasting: Set[int]) -> set[fx.Node]:
        """The tensors of other devices that are written to in the step, or by the caller before the backward pass. They take no memory of the device, so
        they have no storage here."""

        def base(node: fx.Node) -> fx.Node:
            while is_view(node):
                node = node.args[0]
            return node

        inputs = self.graph.find_nodes(op="placeholder")
        found = set(self.mutated.values())
        if any(map(_is_tangent, inputs)):
            found.update(node for node in inputs if not _is_lasting(node, lasting))
        for node in self.graph.nodes:
            if node.op == "call_function" and changes_operands(node):
                found.update(changed_operands(node))
        bases = set(map(base, found))
        return {node for node in self.graph.nodes if base(node) in bases and any(t.device.type != self.device.type for t in tensors(node.meta.get("val")))}

    def reads_what_changes(self, node: fx.Node) -> bool:
        """Whether the node reads what is written to later, or what the caller may write to before the backward pass."""
        operands = node.all_input_nodes
        return not (self.changed | self.foreign).isdisjoint(self._storages(operands)) or not self.unsteady.isdisjoint(operands)

    def _counted(self, storages: Iterable[int]) -> tuple[int, ...]:
        """Those of which the problem must know: what is resident and never changes only takes its bytes."""
        return tuple(sorted({s for s in storages if s not in self.resident or s in self.changed}))

    # Operators.

    def _operators(self, order: Sequence[fx.Node]) -> list[Op]:
        def computes(node: fx.Node) -> bool:
            return node.op == "call_function" and node.target is not operator.getitem and (is_wait(node) or not is_view(node))

        def of(phase: int) -> list[Op]:
            nodes = [node for node in order if computes(node) and (node not in self.forward) == phase]
            return [op for node in nodes for op in self._ops(node, phase)]

        return [*of(0), *self._moments(), *of(1)]

    def _moments(self) -> list[Op]:
        """The end of the forward pass and the start of the backward pass."""
        new_and_old = self._storages([*self.mutated.keys(), *self.mutated.values()])
        old = self._counted(self._storages(self.mutated.values()))
        between = Op("between", None, 0, reads=self._counted(new_and_old), changes=old)
        arriving = self._storages(node for node in self.graph.find_nodes(op="placeholder") if _is_tangent(node))
        # An operator that runs again between both is one of the forward graph, which holds the new values until its end.
        new = self._counted(self._storages(self.mutated.keys()))
        return [between, Op("gradients", None, 1, reads=new, makes=tuple(sorted(arriving)))]

    def _ops(self, node: fx.Node, phase: int) -> list[Op]:
        """The operator of the node; before a random one, that which keeps the state of its generator."""
        if is_wait(node):
            held = [operand for started in started_by(node) for operand in started.all_input_nodes]
            return [Op("wait", node, phase, reads=self._counted(self._storages([node, *held])))]
        run = self._op(node, phase)
        form = other_form(node)
        if run.again and form is not None:
            once = self._counted(part for part in self.parts[node][form.results :] if part is not None)
            left = tuple(storage for storage in run.makes if storage not in once)
            return [Op("once", node, phase, makes=once), dataclasses.replace(run, makes=left)]
        if not run.again or not is_rng_op(node):
            return [run]
        drawn = tensors(node.meta["val"])[0].device
        # A state lies in the memory of the processor.
        if drawn.type != self.device.type or drawn.type != "cpu":
            return [run]
        self.bytes.append(state_bytes(drawn))
        self.owner.append(node)
        state = self.states[node] = len(self.bytes) - 1
        reading = tuple(sorted((*run.reads, state)))
        return [Op("state", node, phase, makes=(state,)), dataclasses.replace(run, reads=reading)]

    def _op(self, node: fx.Node, phase: int) -> Op:
        form = other_form(node)
        # Statistics of an input change in the step. Those that the step made itself do not: their first reader must find them.
        left_out = {node.args[place] for place in form.left_out if self.storage.get(node.args[place]) in self.resident} if form else set()
        reads = self._counted(self._storages(operand for operand in node.all_input_nodes if operand not in left_out))
        writes = changes_operands(node)
        made = [*tree_leaves(self.parts.get(node, [])), None if writes else self.storage.get(node)]
        makes = tuple(sorted({s for s in made if s is not None} - set(reads)))
        changes = self._counted(self._storages(changed_operands(node))) if writes else ()
        moved = sum(self.bytes[s] for s in self._storages(node.all_input_nodes) | set(makes))
        operands = node.all_input_nodes
        foreign = phase == 0 and not self.foreign.isdisjoint(self._storages(operands)) or not self.unsteady.isdisjoint(operands)
        again = runs_again(node) and not foreign and not self.pinned.intersection(makes)
        seconds = self.target.seconds(node, moved)
        if is_collective(node):
            whole = max(sum(self.bytes[s] for s in storages) for storages in (self._storages(node.all_input_nodes), makes))
            seconds = self.target.collective_seconds(self.device, whole, group_of(node), node.target._opname.startswith("all_reduce"))
        return Op("run", node, phase, seconds, reads, makes, changes, again, node.meta.get("workspace", 0))

    # What the planner is asked.

    def _given(self) -> set[int]:
        return self.changed & self.resident

    def kept(self) -> tuple[int, ...]:
        """The storages that are there at the end: the outputs of both passes, and inputs that were changed."""
        outputs = self._storages(node for node in self.outputs if node not in self.mutated)
        return self._counted(outputs | self.changed)

    def resident_bytes(self) -> int:
        return sum(self.bytes[s] for s in self.resident) + self.beside

    def outside_bytes(self) -> int:
        """The resident bytes that are no tensors of the instance."""
        return self.resident_bytes() - sum(self.bytes[s] for s in self._given())

    def may_leave(self, storage: int) -> bool:
        """Whether a copy on the host can stand for the storage: one dense tensor of it that nobody else holds or changes."""
        if storage in self.resident | self.pinned | self.changed or storage in self.states.values():
            return False
        return storage in self.dense and self.bytes[storage] >= _SMALLEST_COPY

    def _is_dense(self, storage: int) -> bool:
        """Whether one dense tensor fills the storage."""
        tensor = self.owner[storage].meta["val"]
        if not isinstance(tensor, torch.Tensor) or tensor.layout != torch.strided or tensor.is_conj() or tensor.is_neg():
            return False
        whole = number(tensor.numel()) * tensor.element_size() == self.bytes[storage]
        return whole and bool(is_non_overlapping_and_dense_or_false(tensor))

    def lanes(self) -> dict[int, int]:
        """The lane of each operator that does not compute, by its place: collectives have one of their own, on which they keep their order. If one of them
        must run among the operators that compute, all do.
        """
        if not all(map(runs_beside, self.collectives)):
            return {}
        return {place: 1 for place, op in enumerate(self.ops) if op.kind == "run" and is_collective(op.node)}

    def as_it_is_bytes(self) -> int:
        """The most bytes at once, resident ones included, if the operators run in their order and nothing leaves or runs again."""
        given, kept = self._given(), set(self.kept())
        used: dict[int, list[int]] = {}
        for place, op in enumerate(self.ops):
            for storage in (*op.reads, *op.makes):
                used.setdefault(storage, []).append(place)
        change = [0] * (len(self.ops) + 1)
        for storage, places in used.items():
            bytes_ = max(self.bytes[storage], 1)
            change[0 if storage in given else places[0]] += bytes_
            change[len(self.ops) if storage in kept else places[-1] + 1] -= bytes_
        live = itertools.accumulate(change)
        return self.outside_bytes() + max((bytes_ + op.workspace for bytes_, op in zip(live, self.ops, strict=False)), default=0)

    def held_bytes(self) -> int:
        """The bytes of saved tensors and results between the passes, if nothing leaves or runs again."""
        between = next(place for place, op in enumerate(self.ops) if op.kind == "between")
        made, kept = {s for op in self.ops[:between] for s in op.makes}, set(self.kept())
        read = {s for op in self.ops[between:] for s in op.reads}
        return sum(self.bytes[s] for s in made & (read | kept))

    def instance(self) -> tuple[str, list[int]]:
        """The problem as an instance of lmsc, and the storage of each of its tensors."""
        named = sorted({s for op in self.ops for s in (*op.reads, *op.makes)})
        place = {storage: index for index, storage in enumerate(named)}
        kinds: dict[str, int] = {}

        def at(storages: Iterable[int]) -> list[int]:
            return [place[s] for s in sorted(storages) if s in place]

        def kind(op: Op) -> int:
            return kinds.setdefault(str(op.node.target) if op.kind in ("run", "wait") else f"the moment `{op.kind}`", len(kinds))

        def workspace(op: Op) -> int:
            # Until the gradients arrive: else operators would run again before that, in the forward pass.
            arriving = sum(self.bytes[s] for s in op.makes)
            return op.workspace + (max(self.spare - arriving, 0) if op.kind in ("between", "gradients") else 0)

        ops = [[kind(op), op.phase, op.seconds * 1e6, workspace(op), at(op.reads), at(op.makes), int(op.again)] for op in self.ops]
        link = self.target.link
        lanes = self.lanes()
        held = {s for tick in lanes for s in self.ops[tick].reads if not self.ops[tick].again}
        instance = {
            "format": "lmsc-planner-dag-2" if lanes else "lmsc-planner-dag-1",
            "name": "torch",
            "bw_d2h": link["out_bytes_per_second"],
            "bw_h2d": link["in_bytes_per_second"],
            "latency_ns": link["latency_nanos"],
            "half_duplex": link["duplex"] == "half",
            "kinds": list(kinds),
            "tensor_bytes": [max(self.bytes[s], 1) for s in named],
            "ops": ops,
            "given": at(self._given()),
            "kept": at(self.kept()),
            "changes": [(tick, place[s]) for tick, op in enumerate(self.ops) for s in op.changes],
            "swappable": at(s for s in named if self.may_leave(s) and s not in held),
            **({"lanes": [{"name": "comm"}], "on_lane": list(lanes.items())} if lanes else {}),
        }
        return json.dumps(instance), named


def _is_lasting(node: fx.Node, lasting: Set[int]) -> bool:
    """Whether the input is a parameter or a buffer, or a tensor inside of one."""
    description = node.meta.get("desc")
    while hasattr(description, "base"):
        description = description.base
    return isinstance(description, (ParamAOTInput, BufferAOTInput)) or getattr(description, "idx", None) in lasting


def device_of(graph: fx.Graph) -> torch.device:
    """The device whose memory is planned: the accelerator, if any tensor is on one."""
    devices = [tensor.device for node in graph.nodes for tensor in tensors(node.meta.get("val"))]
    return next((device for device in devices if device.type not in ("cpu", "meta")), torch.device("cpu"))
