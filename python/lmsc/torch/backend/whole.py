"""The graph of a whole step, forward, backward and update: what lasts from step to step takes part in the plan, and may live on the host.

The trace of a step gives gradients and new values (`capture`). Here they become operators that write: `copy_` into what the forward pass
changes, and `lmsc::update`, which lets the caller's own optimizer update some parameters, as soon as their gradients are there and nothing reads
the old values any more. A parameter or a state of the optimizer is a tensor that is given and kept: where the plan has it leave at the end of a
step and come at the start of the next one, it rests on the host.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx
from torch._prims_common import is_non_overlapping_and_dense_or_false

from .check import Checker, Live, Unsound, _results, _Walk
from .costs import Target, bytes_of, tensors
from .planning import Options, Plan, _ask, _asked_again, _facts, log
from .problem import _SMALLEST_COPY, Op, Problem, device_of, drop_unread_arguments, is_view, is_wait
from .write import Ends, Writer, _finish

__all__ = ["Part", "Step", "StepPlan", "WrittenStep", "planned_step", "whole"]

aten = torch.ops.aten

_NOTHING_CHANGES = (aten.detach.default, aten.alias.default)


@dataclass(frozen=True)
class Part:
    """Parameters that the optimizer updates together, and what it keeps of them."""

    #: The number of the object that updates them, as of `copies.known`.
    number: int
    weights: Sequence[str]
    state: Sequence[str]
    #: Bytes that the update takes beside its tensors.
    workspace: int


@dataclass
class Step:
    """A step as a graph whose inputs are `inputs`, in order, and whose results are `outputs`."""

    graph: fx.GraphModule
    inputs: list[str]
    outputs: list[str]
    leaving: set[str] = field(default_factory=set)
    """The inputs that may rest on the host, or leave within the step."""


def whole(
    graph: fx.GraphModule, inputs: Sequence[str], outputs: Sequence[str], pairs: Mapping[str, str], gradients: Mapping[str, str],
    parts: Sequence[Part], state: Mapping[str, Tensor], held: Mapping[str, int], loss: str | None = None,
) -> Step:  # fmt: skip
    """The step of a trace without writes. Behind the result `loss` begins the backward pass.

    `pairs` names the result that is the next value of an input, `gradients` that of a parameter. `state` has tensors like those that the optimizer
    keeps, without elements. `held` gives the numbers of what lasts and may leave, by the names of inputs.
    """
    traced = graph.graph
    given = dict(zip(inputs, traced.find_nodes(op="placeholder"), strict=True))
    results = dict(zip(outputs, next(iter(traced.find_nodes(op="output"))).args[0], strict=True))
    _drop_copies(traced, given.values(), results)
    order = [node for node in traced.nodes if node.op != "output"]
    taken = {*pairs.values(), *gradients.values()}
    apart = _Apart(traced, order)
    ends = {name: apart.own(node) for name, node in results.items() if name not in taken}
    new = {name: apart.own(results[after]) for name, after in pairs.items()}
    wanted = {name for part in parts for name in part.weights}
    if parts:
        grads = {name: apart.own(results[of]) for name, of in gradients.items() if name in wanted}
    else:
        grads = {}
        ends |= {of: apart.own(results[of]) for of in gradients.values()}
    turn = len(order) if loss is None else order.index(results[loss]) if results[loss] in order else len(order)
    return _Build(traced, order, given, held, turn).of(ends, new, grads, parts, state)


def _drop_copies(graph: fx.Graph, inputs: Any, results: dict[str, Any]) -> None:
    """Leaves out copies of inputs, which nothing writes to in a trace without writes, and views that only autograd knows."""
    inputs = set(inputs)
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        same = node.target in _NOTHING_CHANGES
        if node.target is aten.clone.default and node.args[0] in inputs:
            one, other = node.meta["val"], node.args[0].meta["val"]
            same = one.stride() == other.stride()
        if same:
            of = node.args[0]
            node.replace_all_uses_with(of)
            results.update({name: of for name, result in results.items() if result is node})
            graph.erase_node(node)


class _Apart:
    """Gives each result a memory of its own: what is written later must not change it, and an update may write to a gradient."""

    def __init__(self, graph: fx.Graph, order: list[fx.Node]):
        self.graph, self.order = graph, order
        self.taken: set[fx.Node] = {node for node in order if node.op != "call_function"}

    def own(self, node: fx.Node) -> fx.Node:
        base = _base(node)
        if base not in self.taken:
            self.taken.add(base)
            return node
        with self.graph.inserting_before(next(iter(self.graph.find_nodes(op="output")))):
            copy = self.graph.call_function(aten.clone.default, (node,))
        with node.meta["val"].fake_mode:
            copy.meta = {"val": torch.empty_like(node.meta["val"])}
        self.taken.add(copy)
        self.order.append(copy)
        return copy


def _base(node: fx.Node) -> fx.Node:
    """The node that makes the memory of the node."""
    while is_view(node):
        node = node.args[0]
    return node


def _readers(node: fx.Node) -> set[fx.Node]:
    """The nodes that read the memory of the node."""
    found, todo = set(), [node]
    while todo:
        for user in todo.pop().users:
            if user not in found:
                found.add(user)
                if is_view(user):
                    todo.append(user)
    return found


class _Build:
    """Builds the graph: each write stands right behind what it reads, and behind all readers of the old value."""

    def __init__(self, traced: fx.Graph, order: list[fx.Node], given: dict[str, fx.Node], held: Mapping[str, int], turn: int):
        self.traced, self.order, self.given, self.held = traced, order, given, held
        self.turn = turn  # the place of the last operator of the forward pass
        self.place = {node: place for place, node in enumerate(order)}
        self.graph = fx.Graph()
        self.of_old: dict[fx.Node, fx.Node] = {}
        self.inputs: dict[str, fx.Node] = {}

    def of(
        self, ends: dict[str, fx.Node], new: dict[str, fx.Node], grads: dict[str, fx.Node], parts: Sequence[Part], state: Mapping[str, Tensor]
    ) -> Step:
        for name, node in self.given.items():
            self._input(name, node.meta["val"])
            self.of_old[node] = self.inputs[name]
        for name, value in state.items():
            self._input(name, value)
        # What the forward pass changes is written before it is updated.
        last: dict[str, int] = {}
        writes: dict[int, list[Any]] = {}
        for name, value in new.items():
            last[name] = self._after([value], [name])
            writes.setdefault(last[name], []).append((name, value))
        for part in parts:
            at = max(self._after([grads[n] for n in part.weights], part.weights), *(last.get(n, -1) for n in part.weights))
            writes.setdefault(at, []).append(part)
        for write in writes.get(-1, ()):
            self._write(write, grads, False)
        for place, node in enumerate(self.order):
            if node.op != "placeholder":
                written = self.of_old[node] = self.graph.node_copy(node, self.of_old.__getitem__)
                written.meta = node.meta | {"late": place > self.turn}
            for write in writes.get(place, ()):
                self._write(write, grads, place > self.turn)
        self.graph.output(tuple(self.of_old[node] for node in ends.values()))
        self.graph.lint()
        twice = {n for part in parts for n in part.weights} & new.keys()
        leaving = {n for n in self.inputs if n in self.held and n not in twice}
        return Step(fx.GraphModule(self.traced.owning_module, self.graph), list(self.inputs), list(ends), leaving)

    def _input(self, name: str, value: Tensor) -> None:
        node = self.inputs[name] = self.graph.placeholder(f"input_{len(self.inputs)}")
        node.target = node.name
        node.meta = {"val": value, "held": self.held.get(name)}

    def _after(self, operands: Sequence[fx.Node], written: Sequence[str]) -> int:
        nodes = {*operands, *(reader for name in written for reader in _readers(self.given[name]))}
        return max((self.place[node] for node in nodes if node in self.place), default=-1)

    def _write(self, write: Any, grads: dict[str, fx.Node], late: bool) -> None:
        if not isinstance(write, Part):
            name, value = write
            node = self.graph.call_function(aten.copy_.default, (self.inputs[name], self.of_old[value]))
            node.meta = {"val": self.inputs[name].meta["val"], "late": late}
            return
        weights, state = ([self.inputs[n] for n in names] for names in (write.weights, write.state))
        gradients = [self.of_old[grads[n]] for n in write.weights]
        node = self.graph.call_function(torch.ops.lmsc.update.default, (weights, gradients, state, write.number))
        node.meta = {"val": None, "workspace": write.workspace, "late": late}


class StepProblem(Problem):
    """The problem of a step. Its variables are given and kept, and may leave; all of it is one pass."""

    def __init__(self, graph: fx.Graph, outputs: Sequence[Any], target: Target, leaving: Set[fx.Node], beside: int):
        self.leaving = leaving
        self.variables: set[int] = set()
        super().__init__(graph, outputs, [None] * len(outputs), target, beside=beside)

    def _forward_nodes(self) -> set[fx.Node]:
        return set(self.graph.nodes)

    def _operators(self, order: Sequence[fx.Node]) -> list[Op]:
        """The operators in their order. The moment `gradients` only tells the planner where the backward pass begins."""
        ops: list[Op] = []
        begun = False
        for node in order:
            if node.op != "call_function" or node.target is operator.getitem or is_view(node) and not is_wait(node):
                continue
            if node.meta.get("late") and not begun:
                begun = True
                ops.append(Op("gradients", None, 1))
            ops += self._ops(node, int(begun))
        return [*ops, Op("between", None, int(begun)), *([] if begun else [Op("gradients", None, 1)])]

    def _give_input(self, node: fx.Node, inputs: dict[int, int | None]) -> None:
        super()._give_input(node, inputs)
        if node in self.leaving and node in self.storage:
            self.resident.discard(self.storage[node])
            self.variables.add(self.storage[node])

    def _given(self) -> set[int]:
        return super()._given() | self.variables

    def kept(self) -> tuple[int, ...]:
        return tuple(sorted({*super().kept(), *self.variables}))

    def outside_bytes(self) -> int:
        return self.resident_bytes() - sum(self.bytes[s] for s in self.changed & self.resident)

    def may_leave(self, storage: int) -> bool:
        return storage in self.variables or super().may_leave(storage)


class StepWriter(Writer):
    """Writes the plan of a step as one graph. What rests on the host is an input there, and is written back where the step has changed it."""

    def _inputs(self) -> None:
        super()._inputs()
        variables: Set[int] = self.problem.variables
        self.variables = [tensor for tensor, storage in enumerate(self.tensors) if storage in variables and tensor in self.device]
        self.changed: set[int] = set()
        first: dict[int, bool] = {}
        for step in self.plan["steps"]:
            if "op" in step:
                used = self.plan["ops"][step["op"]].get("reads", ())
                first |= {tensor: False for tensor in used if tensor not in first}
            else:
                comes = "in" in step
                first.setdefault(self.plan["pieces"][step["in"] if comes else step["out"]][0], comes)
        self.rests = {tensor for tensor in self.variables if first.get(tensor)}
        for tensor in self.rests:
            self.host[tensor] = self.device.pop(tensor)

    def write(self) -> tuple[fx.GraphModule, fx.GraphModule]:
        """The graph, whose last results are the tensors of `returned`, and an empty one."""
        self._carry_out()
        back = {t: self.device[t] for t in self.variables if t not in self.rests and self.device[t].op != "placeholder"}
        self.returned = [self._name(tensor) for tensor in back]
        _finish(self.forward, [*self.outputs, *back.values()], [None] * (len(self.outputs) + len(back)))
        for anchor in self.anchors.values():
            self.backward.erase_node(anchor)
        return fx.GraphModule(self.joint, self.forward), fx.GraphModule(self.joint, self.backward)

    def _name(self, tensor: int) -> str:
        return self.problem.owner[self.tensors[tensor]].name

    def _run(self, run: dict[str, Any]) -> None:
        super()._run(run)
        self.now = self.forward  # A step has no second pass.
        changes = self.problem.ops[run["op"]].changes
        self.changed |= {tensor for tensor in run.get("reads", ()) if self.tensors[tensor] in changes}

    def _out(self, tensor: int) -> None:
        if tensor not in self.variables:
            super()._out(tensor)
            return
        changed = tensor in self.changed
        self.changed.discard(tensor)
        source = self.device[tensor]
        if tensor in self.rests:
            if changed:
                self.now.call_function(torch.ops.lmsc.keep.default, (source, self.host[tensor])).meta = {"val": None}
        elif changed or tensor not in self.host:
            number = self.problem.owner[self.tensors[tensor]].meta["held"]
            self.host[tensor] = self._transfer(torch.ops.lmsc.leave.default, source, (source, number), torch.device("cpu"))


class StepChecker(Checker):
    """The checker of a step: what lasts is left with the step's values, wherever it rests."""

    def __init__(self, step: fx.Graph, outputs: Sequence[Any]):
        super().__init__(step, set(step.nodes), (outputs, []), [None] * len(outputs))
        self.left = {node.name: self.walk.read(node) for node in step.find_nodes(op="placeholder")}

    def check_step(self, graph: fx.Graph, rests: Set[str], returned: Sequence[str]) -> None:
        """Raises `Unsound` unless the graph computes the step: inputs of the names `rests` are on the host, and further results are those of the names
        `returned` on the device."""
        walk = _Walk(self.table)
        self.place = self.heard = 0
        inputs = {node.name: node for node in graph.find_nodes(op="placeholder")}
        if list(inputs) != list(self.left):
            raise Unsound("the inputs of a graph are not those of the step, in their order")
        for name, node in inputs.items():
            number = self.table.of("input", str(node.target))
            where = ("host", name) if name in rests else ("input", name)
            walk.give(node, self.table.of("on the host", number) if name in rests else number, where)
        self._follow(walk, graph)
        results, count = _results(graph), len(self.outputs[0])
        self._same("output of the graph", walk, results[:count], self.wanted[0])
        back = dict(zip(returned, results[count:], strict=True))
        for name, number in self.left.items():
            if name in rests:
                kind, found = self.table.keys[walk.number[inputs[name]]]
            else:
                kind, found = "on the host", walk.read(back.get(name, inputs[name]))
            if kind != "on the host" or found != number:
                raise Unsound(f"`{name}` is not left with the value of the step")
        if self.heard != len(self.spoken) or self.place != len(self.effects):
            raise Unsound("some collectives, or random or effectful operators of the step never run")

    def _run(self, walk: _Walk, node: fx.Node) -> None:
        if node.target is torch.ops.lmsc.leave.default:
            walk.give(node, self._leaves(walk, node))
        elif node.target is torch.ops.lmsc.keep.default:
            tensor, host = node.args
            if walk.root[host][0] != "host":
                raise Unsound(f"`{node.name}` stores into `{host.name}`, which does not rest on the host")
            walk.give(host, self._leaves(walk, node), walk.root[host])
            walk.give(node, walk.number[tensor], walk.root[tensor])
        else:
            super()._run(walk, node)


def peak_of_step(graph: fx.Graph, device: torch.device, variables: Set[str], rests: Set[str]) -> int:
    """The most bytes at once on the device, variables included, without inputs that are none. Those of the names `rests` are on the host."""
    inputs = list(graph.find_nodes(op="placeholder"))
    live = Live(device)
    gone = {node.args[0] for node in graph.nodes if node.target is torch.ops.lmsc.leave.default}
    there = {node for node in inputs if node.name in variables and node.name not in rests}
    live.run(graph, [{(node, ())} if node in there else set() for node in inputs], [], [node for node in there if node not in gone])
    return live.most


@dataclass(frozen=True)
class StepPlan(Plan):
    """The plan of a whole step. Bytes include those of all that lasts from step to step, where it is on the device."""

    #: The inputs that are on the host between steps.
    rests: tuple[str, ...] = ()
    #: Bytes that come back from the host in a step.
    bytes_in: int = 0

    @property
    def peak_before(self) -> int:
        """Device bytes that the step needs as it is."""
        return self.as_it_is

    @property
    def peak_after(self) -> int:
        """Device bytes that the step needs as it is planned."""
        return self.peak

    @property
    def bytes_out(self) -> int:
        """Bytes that are copied to the host in a step."""
        return sum(self.out)


@dataclass(frozen=True)
class WrittenStep:
    """The graph of a planned step."""

    plan: StepPlan
    graph: fx.GraphModule
    returned: list[str]
    """The inputs whose tensors on the device are further results, behind the outputs."""


def planned_step(step: Step, options: Options, name: str, beside: int) -> WrittenStep:
    """The graph of the step within the budget; checked. `beside`: bytes of the device that are there and are no inputs of the graph.

    Raises:
        Refusal: No plan keeps within the budget.
        Unsound: A bug of lmsc: what was written is not the step.
    """
    graph = step.graph
    drop_unread_arguments(graph.graph)
    outputs = list(next(iter(graph.graph.find_nodes(op="output"))).args[0])
    placeholders = dict(zip(step.inputs, graph.graph.find_nodes(op="placeholder"), strict=True))
    names = {node.name: name for name, node in placeholders.items()}
    leaving = {placeholders[n] for n in step.leaving if _may_rest(placeholders[n])}
    problem = StepProblem(graph.graph, outputs, options.machine(device_of(graph.graph)), leaving, beside)
    answer, named = _asked_again(problem, options, functools.partial(_ask, problem, name=name, earlier=0))
    ends = Ends(outputs, [], [None] * len(outputs), [])
    writer = StepWriter(graph, problem, answer["plan"], named, ends)
    written, _ = writer.write()
    rests = {writer._name(tensor) for tensor in writer.rests}
    StepChecker(graph.graph, outputs).check_step(written.graph, rests, writer.returned)
    found = problem.resident_bytes() + peak_of_step(written.graph, problem.device, {n.name for n in leaving}, rests)
    if found > answer["peak_bytes"]:
        raise Unsound(f"the written graph takes {found} bytes, the plan {answer['peak_bytes']}")
    reloads = (node for node in written.graph.nodes if node.target is torch.ops.lmsc.reload.default)
    plan = StepPlan(
        **_fields(_facts(problem, answer, name)),
        rests=tuple(names[n] for n in names if n in rests),
        bytes_in=sum(bytes_of(tensor) for node in reloads for tensor in tensors(node.meta["val"])),
    )
    log.info("%s", plan)
    return WrittenStep(plan, written, [names[n] for n in writer.returned])


def _fields(plan: Plan) -> dict[str, Any]:
    return {f.name: getattr(plan, f.name) for f in dataclasses.fields(plan)}


def _may_rest(node: fx.Node) -> bool:
    """Whether the input is a dense tensor that is worth a copy."""
    value = node.meta["val"]
    whole_ = value.numel() * value.element_size() == bytes_of(value)
    return bytes_of(value) >= _SMALLEST_COPY and whole_ and bool(is_non_overlapping_and_dense_or_false(value))
