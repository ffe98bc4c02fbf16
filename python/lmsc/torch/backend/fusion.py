"""The kernels that Inductor makes of a graph, as the operators of a planning problem.

Inductor computes several operators in one kernel, so most results take no memory. A problem over single operators would count them, and would not
see that a result which is computed inside of a later kernel keeps its operands alive until then. Here an operator of the problem is a *kernel*: it
reads what its kernel loads, and makes what it stores.

- Operators that Inductor calls as they are (matrix products, convolutions, attention, custom operators), or whose loops it does not share, are
  kernels of their own: they read and make stored results.
- An elementwise operator is *inlined* into each kernel that reads it, unless one of the first kind reads it, it is a result of the step, or it is
  dear and read more than once. It takes no memory, and is computed anew in each.
- The others, elementwise ones and reductions, join the kernel of an operand with the same iteration space, unless a kernel between needs the result.
- The backward pass inlines elementwise operators of the forward pass, but for those that PyTorch's own partitioner would save.

These are the planner's choices as much as a guess about Inductor: `inductor` has each result stored that crosses kernels here, and lets it fuse only
within one run of a kernel.
"""

from __future__ import annotations

import dataclasses
import heapq
import operator
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import tree_leaves

from .costs import flop, number, tensors
from .problem import Op, Problem, changed_operands, changes_operands, is_overload, is_rng_op, is_view, runs_again

aten, prims = torch.ops.aten, torch.ops.prims


def _operators(space: Any, names: str) -> set[Any]:
    return {getattr(space, name) for name in names.split() if hasattr(space, name)}


_REDUCTIONS = _operators(aten, "sum mean amax amin max min var var_mean prod any all argmax argmin") | _operators(prims, "xor_sum")

#: Elementwise operators that PyTorch does not tag as such, by how Inductor computes them.
_ELEMENTWISE = _operators(
    aten,
    "where clone full full_like zeros_like ones_like empty arange index _unsafe_index embedding gather constant_pad_nd slice_scatter select_scatter copy scalar_tensor "
    "triu tril",
) | _operators(
    prims,
    "convert_element_type iota inductor_random inductor_lookup_seed fma",
)

#: Operators of which Inductor stores the result rather than computing it in two kernels.
_DEAR = _operators(aten, "exp log log1p sigmoid tanh log2 log10 erf") | _operators(prims, "inductor_random")

#: Operators without operands.
_CONSTANTS = _operators(aten, "full arange scalar_tensor full_like zeros_like ones_like empty") | _operators(prims, "iota")

#: Operators that Inductor lets write into their first operand, if nobody else reads that.
_SCATTERS = _operators(aten, "index_put _unsafe_index_put scatter scatter_add scatter_reduce index_add") | _operators(prims, "_unsafe_index_put_")

#: Of operators inlined in one another, the most results that are read together; and the most that an operator reads which is inlined twice.
_MOST_READ, _MOST_READ_TWICE = 12, 4


def source(node: fx.Node) -> fx.Node:
    """The node that computes what a view, or a part of a result, shows."""
    while node.op == "call_function" and (is_view(node) or node.target is operator.getitem):
        node = node.args[0]
    return node


def _computes(node: fx.Node) -> bool:
    return node.op == "call_function" and node.target is not operator.getitem and not is_view(node)


def _packet(node: fx.Node) -> Any:
    return getattr(node.target, "overloadpacket", None)


def kind(node: fx.Node) -> str:
    """`elementwise`, `reduction`, or `alone` for what is a kernel of its own."""
    if not is_overload(node) or changes_operands(node) or is_rng_op(node):
        return "alone"
    value = node.meta.get("val")
    if any(map(torch.is_complex, tensors([value, *(o.meta.get("val") for o in node.all_input_nodes)]))):
        return "alone"  # Inductor generates no kernels for complex numbers.
    if _packet(node) in _REDUCTIONS:
        return "reduction"
    if not isinstance(value, torch.Tensor):
        return "alone"
    return "elementwise" if _packet(node) in _ELEMENTWISE or torch.Tag.pointwise in node.target.tags else "alone"


def _space(node: fx.Node) -> int:
    """The number of points of the iteration: of a reduction, those of its operand."""
    values = [operand.meta.get("val") for operand in node.all_input_nodes] if kind(node) == "reduction" else [node.meta.get("val")]
    return max((number(tensor.numel()) for tensor in tensors(values)), default=0)


@dataclass(frozen=True)
class Kernel:
    """Operators that run together, in order, and those whose results are stored."""

    nodes: tuple[fx.Node, ...]
    stored: tuple[fx.Node, ...]


class Kernels:
    """The kernels of one pass.

    `nodes` in order; results of `outputs` are stored; nodes of `fixed` are computed once, at their place. `before` are further nodes that must run
    before a node.
    """

    def __init__(self, nodes: Sequence[fx.Node], outputs: Set[fx.Node], fixed: Set[fx.Node], before: dict[fx.Node, Set[fx.Node]]):
        self.nodes, self.outputs, self.before = nodes, outputs, before
        self.inputs = {node: list(dict.fromkeys(map(source, node.all_input_nodes))) for node in nodes}
        self.users: dict[fx.Node, list[fx.Node]] = {node: [] for node in nodes}
        for node in nodes:
            for operand in self.inputs[node]:
                if operand in self.users:
                    self.users[operand].append(node)
        self.alone = {node for node in nodes if kind(node) == "alone"}
        self.into = {node: base for node in nodes if (base := self._written_into(node)) is not None}
        self.alone |= {*self.into, *self.into.values()}
        self.inlined: set[fx.Node] = set()
        self._inline(fixed)
        self._join()

    def _written_into(self, node: fx.Node) -> fx.Node | None:
        """The constant that a scatter writes into, if nobody else reads it: both are one kernel."""
        if _packet(node) not in _SCATTERS or not isinstance(node.args[0], fx.Node):
            return None
        base = source(node.args[0])
        only = base in self.users and self.users[base] == [node] and base not in self.outputs
        return base if only and base is node.args[0] and _packet(base) in _CONSTANTS else None

    def _inline(self, fixed: Set[fx.Node]) -> None:
        reads: dict[fx.Node, set[fx.Node]] = {}
        for node in self.nodes:
            operands = (operand for operand in self.inputs[node] if operand.op == "placeholder" or _computes(operand))
            reads[node] = set().union(*(reads[operand] if operand in self.inlined else {operand} for operand in operands))
            if node in self.alone or node in self.outputs or node in fixed or kind(node) != "elementwise" or len(reads[node]) > _MOST_READ:
                continue
            if any(user in self.alone for user in self.users[node]):
                continue
            dear = _packet(node) in _DEAR or len(reads[node]) > _MOST_READ_TWICE
            if len(self.users[node]) < 2 or not dear or _packet(node) in _CONSTANTS:
                self.inlined.add(node)

    def _producers(self, node: fx.Node) -> Iterable[fx.Node]:
        """The nodes that are computed before the node, through what is inlined between."""
        for operand in [*self.inputs[node], *self.before.get(node, ())]:
            if operand in self.inlined:
                yield from self._producers(operand)
            elif operand in self.users:
                yield operand

    def _join(self) -> None:
        """Gives each node that is not inlined its group, a number. `above` are the groups that must run before a group, a bit for each."""
        self.group: dict[fx.Node, int] = {}
        self.above: list[int] = []
        self.members: list[list[fx.Node]] = []
        level: dict[fx.Node, int] = {}
        for node in self.nodes:
            level[node] = max((level[i] + (i in self.alone or node in self.alone) for i in self.inputs[node] if i in level), default=0)
            if node in self.inlined:
                continue
            producers = list(dict.fromkeys(self._producers(node)))
            groups = {self.group[producer] for producer in producers}
            chosen = self.group[self.into[node]] if node in self.into else None
            for producer in reversed(producers) if chosen is None and node not in self.alone else ():
                if producer in self.alone or level[producer] != level[node] or _space(producer) != _space(node):
                    continue
                if self._may_join(self.group[producer], groups):
                    chosen = self.group[producer]
                    break
            if chosen is None:
                chosen = len(self.members)
                self.members.append([])
                self.above.append(0)
            self._add(node, chosen, groups)

    def _may_join(self, group: int, groups: Set[int]) -> bool:
        """Whether a node whose operands are of these groups may join the group: none of them needs it."""
        return not any(self.above[other] >> group & 1 for other in groups if other != group)

    def _add(self, node: fx.Node, group: int, groups: Set[int]) -> None:
        self.members[group].append(node)
        self.group[node] = group
        for other in groups - {group}:
            self.above[group] |= self.above[other] | 1 << other
        for other, above in enumerate(self.above):
            if above >> group & 1:
                self.above[other] |= self.above[group]

    def _is_stored(self, node: fx.Node) -> bool:
        return node in self.outputs or any(self.group[reader] != self.group[node] for reader in self._readers(node))

    def _readers(self, node: fx.Node) -> set[fx.Node]:
        """The nodes that read the node, through what is inlined between."""
        found, stack = set(), list(self.users[node])
        while stack:
            user = stack.pop()
            if user in self.inlined:
                stack += self.users[user]
            else:
                found.add(user)
        return found

    def ordered(self) -> list[Kernel]:
        """The kernels, each after those that it needs, else in the order of their last nodes."""
        place = {node: index for index, node in enumerate(self.nodes)}
        needs = [{self.group[p] for node in nodes for p in self._producers(node)} - {group} for group, nodes in enumerate(self.members)]
        waiting = [len(needed) for needed in needs]
        needed_by: list[list[int]] = [[] for _ in needs]
        for group, needed in enumerate(needs):
            for other in needed:
                needed_by[other].append(group)
        ready = [(place[nodes[-1]], group) for group, nodes in enumerate(self.members) if not waiting[group]]
        heapq.heapify(ready)
        found = []
        while ready:
            _, group = heapq.heappop(ready)
            nodes = self.members[group]
            found.append(Kernel(tuple(nodes), tuple(node for node in nodes if self._is_stored(node))))
            for other in needed_by[group]:
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(ready, (place[self.members[other][-1]], other))
        return found


class FusedProblem(Problem):
    """The problem whose operators are kernels. `saved`: forward results that the backward pass reads as they are, rather than inlining them."""

    def __init__(self, *args: Any, saved: Iterable[fx.Node] = (), **kwargs: Any):
        self.saved = {source(node) for node in saved}
        self.kernels: dict[fx.Node, Kernel] = {}  # by the last node of the kernel, which stands for it in `ops`
        super().__init__(*args, **kwargs)

    def _operators(self, order: Sequence[fx.Node]) -> list[Op]:
        nodes = [node for node in order if _computes(node)]
        first, second = ([node for node in nodes if (node in self.forward) == forward] for forward in (True, False))
        fixed = {node for node in nodes if not runs_again(node) or self.reads_what_changes(node)}
        before = self._before(nodes)
        late = self._late(first, second, fixed, before)
        crossing = {i for node in late.nodes for i in late.inputs[node] if i in self.forward and i not in late.inlined}
        early = Kernels(first, crossing.union(map(source, self.outputs)), fixed, before)
        self.inlined = (early.inlined, late.inlined)
        passes = [[op for kernel in kernels.ordered() for op in self._kernel(kernel, phase)] for phase, kernels in enumerate((early, late))]
        return [*passes[0], *self._moments(), *passes[1]]

    def _before(self, nodes: Sequence[fx.Node]) -> dict[fx.Node, set[fx.Node]]:
        """Nodes that must run before a node beside its operands: effects keep their order, and memory is written to between its readers."""
        before: dict[fx.Node, set[fx.Node]] = {}
        effect: fx.Node | None = None
        written: dict[int, fx.Node] = {}
        readers: dict[int, set[fx.Node]] = {}
        for node in nodes:
            changes = self._storages(changed_operands(node)) if changes_operands(node) else set()
            reads = self._storages(node.all_input_nodes) & self.changed
            found = {written[storage] for storage in reads if storage in written}
            found.update(*(readers.get(storage, set()) for storage in changes))
            if not runs_again(node) or is_rng_op(node):
                if effect is not None:
                    found.add(effect)
                effect = node
            for storage in reads:
                readers.setdefault(storage, set()).add(node)
            written |= dict.fromkeys(changes, node)
            before[node] = found - {node}
        return before

    def _late(self, first: Sequence[fx.Node], second: Sequence[fx.Node], fixed: Set[fx.Node], before: dict[fx.Node, set[fx.Node]]) -> Kernels:
        """The backward pass, with the operators of the forward pass that it inlines."""
        while True:
            reached: set[fx.Node] = set()
            stack = list(second)
            while stack:
                for operand in map(source, stack.pop().all_input_nodes):
                    may = operand not in reached and operand in self.forward and _computes(operand) and kind(operand) == "elementwise"
                    if may and operand not in self.saved and operand not in fixed:
                        reached.add(operand)
                        stack.append(operand)
            again = [node for node in first if node in reached]
            late = Kernels([*again, *second], set(map(source, self.outputs)) - set(again), fixed, before)
            stored = {node for node in again if node not in late.inlined}
            if not stored:
                return late
            self.saved |= stored

    def _op(self, node: fx.Node, phase: int) -> Op:
        op = super()._op(node, phase)
        # Inductor draws seeds by an operator of its own, and only where no state is kept for a repeat. They are small, and the numbers drawn from them run
        # again without a state.
        return dataclasses.replace(op, again=op.again and _packet(node) is not prims.inductor_seeds)

    def _loads(self, kernel: Kernel, phase: int) -> set[int]:
        """The storages that a kernel loads."""
        found: set[int] = set()
        seen = set(kernel.nodes)
        stack = list(kernel.nodes)
        while stack:
            for operand in stack.pop().all_input_nodes:
                origin = source(operand)
                if origin in self.inlined[phase]:
                    if origin not in seen:
                        seen.add(origin)
                        stack.append(origin)
                elif origin not in kernel.nodes and operand in self.storage:
                    found.add(self.storage[operand])
        return found

    def _kernel(self, kernel: Kernel, phase: int) -> list[Op]:
        """The operators of a kernel: one, but for a random operator, before which the state of its generator is kept."""
        node = kernel.nodes[-1]
        if len(kernel.nodes) == 1 and kind(node) == "alone":
            return self._ops(node, phase)
        self.kernels[node] = kernel
        loads = self._loads(kernel, phase)
        made = {s for n in kernel.stored for s in [self.storage.get(n), *tree_leaves(self.parts.get(n, []))] if s is not None}
        makes = tuple(sorted(made - loads))
        moved = sum(self.bytes[s] for s in loads | made)
        again = all(map(runs_again, kernel.nodes)) and not self.pinned.intersection(makes)
        if phase == 0 and not self.foreign.isdisjoint(loads) or any(not self.unsteady.isdisjoint(n.all_input_nodes) for n in kernel.nodes):
            again = False
        seconds = self.target.seconds_of(sum(map(flop, kernel.nodes)), moved, node)
        return [Op("run", node, phase, seconds, self._counted(loads), makes, (), again)]
