"""Checks the written graphs before they run, by what they compute. It shares no code with the writer.

Each node of the joint graph gets a number by its operator and the numbers of its operands, so nodes that compute the same have the same
number. A random or effectful operator has one by its place in the order of all of them, and an operand that was written to has another one
than before. The written graphs are numbered by the same table. They compute the same step if

- each of their outputs has the number of the joint graph's output,
- their random and effectful operators are those of the joint graph, each once and in the same order,
- their collectives are those of the joint graph, in its order; only what moves bytes runs again, and nothing reads a result before the wait for it,
- a random operator that runs again draws from the state that its first run kept,
- what comes back from the host is what left for it, and nothing else reads that copy,
- each saved tensor reaches the input that stands for it.

The bytes of the written graphs are counted, too: each value from its operator to its last use.
"""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import fx
from torch._functorch._aot_autograd.descriptors import InputMutationAOTOutput
from torch._functorch.partitioners import is_rng_op
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch.utils._pytree import tree_flatten_with_path, tree_leaves

from ... import _lmsc
from .costs import bytes_of_result

aten = torch.ops.aten

#: By the form of a repeat: the operator, the places of the arguments that the form does without, the flag that must be set, and the number of
#: first results that are the same.
_FORMS = {aten._native_batch_norm_legit.no_stats: (aten._native_batch_norm_legit_functional.default, (3, 4), 5, 3)}

_PLAIN = (int, float, bool)

#: The collectives that move bytes, and add nothing.
_MOVES = {"all_gather_into_tensor", "all_gather_into_tensor_coalesced", "all_to_all_single", "broadcast"}


class Unsound(_lmsc.InternalError):
    """A written graph does not compute its step: it is not run."""


class _Table:
    """The numbers: one for each thing that is computed."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.keys: list[Any] = []

    def of(self, *key: Any) -> int:
        if key not in self.numbers:
            self.numbers[key] = len(self.keys)
            self.keys.append(key)
        return self.numbers[key]

    def known(self, *key: Any) -> int | None:
        return self.numbers.get(key)


class _Walk:
    """The numbers of a graph's nodes, and how often the memory of each has been written to."""

    def __init__(self, table: _Table):
        self.table = table
        self.number: dict[fx.Node, int] = {}
        self.root: dict[fx.Node, Any] = {}
        self.writes: dict[Any, tuple[Any, ...]] = collections.defaultdict(tuple)
        self.counts: collections.Counter[int] = collections.Counter()
        self.ran: dict[fx.Node, int] = {}  # the numbers of operators, also of those that return what they write to
        self.under_way: set[Any] = set()  # memory that a collective may still write to

    def give(self, node: fx.Node, number: int, root: Any = None) -> None:
        self.number[node] = number
        self.root[node] = node if root is None else root

    def read(self, operand: fx.Node) -> Any:
        """The operand's number, of its value as it is now."""
        value = operand.meta.get("val")
        if isinstance(value, _PLAIN):
            return _word(value)
        number, writes = self.number[operand], self.writes.get(self.root[operand], ())
        return self.table.of("after", number, writes) if writes else number

    def words(self, arguments: Any) -> Any:
        return _word(arguments, self.read)

    def key(self, target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """What an operator computes. The base of a view is the memory, whatever is written to it later."""
        args = list(args)
        first: tuple[Any, ...] = ()
        if _shares_memory(target) and isinstance(args[0], fx.Node):
            first = ("memory", self.number[args.pop(0)])
        return (target, first, self.words(args), self.words(kwargs))

    def write(self, node: fx.Node, by: Any) -> None:
        for operand in _written_to(node):
            root = self.root[operand]
            self.writes[root] = (*self.writes.get(root, ()), by)


def _word(value: Any, read: Callable[[fx.Node], Any] | None = None) -> Any:
    """The argument as part of a key."""
    if isinstance(value, fx.Node):
        word = read(value)
        return word if isinstance(word, tuple) else ("value", word)
    if isinstance(value, (list, tuple)):
        return ("list", *(_word(item, read) for item in value))
    if isinstance(value, dict):
        return ("dict", *((name, _word(value[name], read)) for name in sorted(value)))
    if isinstance(value, slice):
        return ("slice", *(_word(item, read) for item in (value.start, value.stop, value.step)))
    return (type(value).__name__, str(value) if isinstance(value, float) else value)


def _waits(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target.name().endswith("::wait_tensor")


def _speaks(node: fx.Node) -> bool:
    """Whether the node is an operator that other processes must run, too."""
    if not isinstance(node.target, torch._ops.OpOverload) or _waits(node):
        return False
    namespace, name = node.target.name().split(".")[0].split("::")
    speaking = "c10d" in namespace or namespace in ("_dtensor", "symm_mem", "fsdp")
    return speaking and name not in ("mesh_get_process_group", "_wrap_tensor_autograd")


def _shares_memory(target: Any) -> bool:
    return target is torch.ops._c10d_functional.wait_tensor.default or target is aten._unsafe_view.default or isinstance(target, torch._ops.OpOverload) and target.is_view


def _written_to(node: fx.Node) -> list[fx.Node]:
    """The operands that the schema marks as written."""
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.is_mutable:
        return []
    by_name = dict(zip((argument.name for argument in node.target._schema.arguments), node.args, strict=False)) | node.kwargs
    marked = [by_name.get(a.name) for a in node.target._schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    return [operand for operand in tree_leaves(marked) if isinstance(operand, fx.Node)]


def _has_effect(node: fx.Node) -> bool:
    """Whether its place among other such operators matters: it draws random numbers, writes, or acts on the world."""
    return node.op == "call_function" and (
        is_rng_op(node) or node.is_impure() and not _waits(node) or bool(_written_to(node)) or node.target is run_and_save_rng_state
    )


def _may_repeat(node: fx.Node) -> bool:
    target = node.target
    if target in (torch.ops.lmsc.offload.default, torch.ops.lmsc.reload.default, run_with_rng_state, operator.getitem):
        return True
    if not isinstance(target, torch._ops.OpOverload):
        return not isinstance(target, torch._ops.HigherOrderOperator)
    if _speaks(node):
        return target.namespace == "_c10d_functional" and target._opname in _MOVES
    return "unbacked_bindings" not in node.meta


class Checker:
    """The joint graph, numbered; then what was written for it."""

    def __init__(self, joint: fx.Graph, forward: set[fx.Node], outputs: tuple[Sequence[Any], Sequence[Any]], descriptions: Sequence[Any]):
        self.table, self.joint, self.outputs = _Table(), joint, outputs
        self.inputs = {node.meta.get("desc"): str(node.target) for node in joint.find_nodes(op="placeholder")}
        self.written_after = [
            self.inputs[d.mutated_input] for d in descriptions if isinstance(d, InputMutationAOTOutput) and d.mutated_input in self.inputs
        ]
        effects = sorted((node for node in joint.nodes if _has_effect(node)), key=lambda node: node not in forward)
        place = {node: index for index, node in enumerate(effects)}
        walk = self.walk = _Walk(self.table)
        self.effects: list[int] = [0] * len(effects)
        speaking = sorted(filter(_speaks, joint.nodes), key=lambda node: node not in forward)
        self.forms: dict[Any, int] = {}
        for node in joint.nodes:
            if node.op == "placeholder":
                walk.give(node, self.table.of("input", str(node.target)), ("input", str(node.target)))
            elif node.op == "get_attr":
                walk.give(node, self.table.of("constant", str(node.target)))
            elif node.op == "call_function":
                self._number(walk, node, place)
        self.spoken = [walk.ran[node] for node in speaking]
        self.wanted = [[walk.words(value) for value in values] for values in outputs]

    def _number(self, walk: _Walk, node: fx.Node, place: dict[fx.Node, int]) -> None:
        if _waits(node):
            self._arrives(walk, node)
            return
        key = walk.key(node.target, node.args, node.kwargs)
        if node in place:
            key = ("effect", place[node], *key)
        number = self.table.of(*key)
        if node in place:
            self.effects[place[node]] = number
        self._settle(walk, node, number)
        for form, (target, left_out, flag, _) in _FORMS.items():
            if node.target is target and node.args[flag] is True:
                kept = [argument for index, argument in enumerate(node.args) if index not in left_out]
                self.forms[walk.key(form, kept, {})] = number

    def _settle(self, walk: _Walk, node: fx.Node, number: int) -> None:
        """The node's number and memory, after it has run."""
        walk.counts[number] += 1
        walk.ran[node] = number
        written = _written_to(node)
        walk.write(node, number)
        if written and isinstance(node.meta.get("val"), torch.Tensor):
            walk.give(node, walk.number[written[0]], walk.root[written[0]])
            return
        shares = _shares_memory(node.target) or node.target is operator.getitem and _shares_memory(node.args[0].target)
        walk.give(node, number, walk.root[node.args[0]] if shares and isinstance(node.args[0], fx.Node) else None)

    def _arrives(self, walk: _Walk, node: fx.Node) -> None:
        """A wait returns its operand, which may be read from here on."""
        root = walk.root[node.args[0]]
        walk.under_way.discard(root)
        walk.give(node, walk.number[node.args[0]], root)

    # The written graphs.

    def check(self, forward: fx.Graph, backward: fx.Graph | None) -> None:
        """Raises `Unsound` unless the graphs compute what the joint graph computes."""
        walk = _Walk(self.table)
        self.place = self.heard = 0
        late = _late(self.joint)
        self._inputs(walk, forward, [node for node in self.joint.find_nodes(op="placeholder") if node not in late])
        self._follow(walk, forward)
        results = _results(forward)
        count = len(self.outputs[0])
        self._same("output of the forward graph", walk, results[:count], self.wanted[0])
        if backward is not None:
            for target in self.written_after:
                walk.writes["input", target] = (*walk.writes.get(("input", target), ()), "the end of the forward pass")
            gradients = self._saved(walk, results[count:], backward, late)
            self._inputs(walk, gradients, late)
            self._follow(walk, backward)
            self._same("output of the backward graph", walk, _results(backward), self.wanted[1])
        elif len(results) != count:
            raise Unsound(f"the graph has {len(results)} outputs, the step {count}")
        if self.heard != len(self.spoken):
            raise Unsound(f"{len(self.spoken) - self.heard} collectives of the step never run")
        if self.place != len(self.effects):
            raise Unsound(f"{len(self.effects) - self.place} random or effectful operators of the step never run")

    def _inputs(self, walk: _Walk, graph: fx.Graph | Sequence[fx.Node], expected: Sequence[fx.Node]) -> None:
        found = list(graph.find_nodes(op="placeholder")) if isinstance(graph, fx.Graph) else list(graph)
        if [str(node.target) for node in found] != [str(node.target) for node in expected]:
            raise Unsound("the inputs of a graph are not those of the step, in their order")
        for node in found:
            walk.give(node, self.table.of("input", str(node.target)), ("input", str(node.target)))

    def _saved(self, walk: _Walk, saved: Sequence[fx.Node], backward: fx.Graph, late: Sequence[fx.Node]) -> Sequence[fx.Node]:
        """Gives the inputs of the backward graph the numbers of what is saved for them, and returns the others."""
        inputs = list(backward.find_nodes(op="placeholder"))
        names = {node.name for node in backward.nodes}
        for node in inputs:
            if node.target != node.name and node.target in names:
                raise Unsound(f"the input `{node.name}` takes the name of another value, `{node.target}`")
        for node in saved:
            if walk.root[node] in walk.under_way:
                raise Unsound(f"`{node.name}` is saved before the wait for it")
        numbers = [node for node in saved if not _is_object(node)]
        objects = [node for node in saved if _is_object(node)]
        if list(saved) != objects + numbers or [_order(node) for node in objects] != sorted(_order(node) for node in objects):
            raise Unsound("what is saved is not in the order in which PyTorch takes it")
        if len(inputs) != len(saved) + len(late):
            raise Unsound(f"{len(saved)} values are saved for {len(inputs) - len(late)} inputs of the backward graph")
        for node, source in zip(inputs, numbers + objects, strict=False):
            if not _alike(node.meta.get("val"), source.meta.get("val")):
                raise Unsound(f"`{source.name}` is saved for the input `{node.name}`, which is another tensor")
            walk.give(node, walk.number[source], walk.root[source])
        return inputs[len(saved) :]

    def _follow(self, walk: _Walk, graph: fx.Graph) -> None:
        """Numbers the nodes of a written graph in the order in which they run."""
        for node in graph.nodes:
            if node.op == "get_attr":
                walk.give(node, self.table.of("constant", str(node.target)))
            elif node.op == "call_function":
                self._run(walk, node)
            elif node.op not in ("placeholder", "output"):
                raise Unsound(f"`{node.name}` is a {node.op}")

    def _run(self, walk: _Walk, node: fx.Node) -> None:
        if _waits(node):
            self._arrives(walk, node)
            return
        for operand in node.all_input_nodes if node.target is not operator.getitem else ():
            if walk.root[operand] in walk.under_way:
                raise Unsound(f"`{node.name}` reads `{operand.name}` before the wait for it")
        special = {
            torch.ops.lmsc.offload.default: self._leaves,
            torch.ops.lmsc.reload.default: self._returns,
            torch.ops.lmsc.store.default: lambda walk, node: walk.read(node.args[0]),
            run_with_rng_state: self._draws_again,
        }.get(node.target)
        if special is not None:
            walk.give(node, special(walk, node))
            return
        for operand in node.all_input_nodes:
            if isinstance(walk.number.get(operand), int) and self.table.keys[walk.number[operand]][0] in ("on the host", "state"):
                raise Unsound(f"`{node.name}` reads `{operand.name}`, which is no value of the step")
        if node.target is operator.getitem and node.args[0].target is run_and_save_rng_state:
            run = walk.number[node.args[0]]
            walk.give(node, self.table.of("state", run) if node.args[1] == 0 else run)
            return
        if node.target is operator.getitem and node.args[0].target in _FORMS and node.args[1] >= _FORMS[node.args[0].target][3]:
            raise Unsound(f"`{node.name}` is a result that a repeat does not give")
        number = self._known(walk, node)
        if walk.counts[number] >= self.walk.counts[number] and not _may_repeat(node):
            raise Unsound(f"`{node.name}` ({node.target}) runs more often than in the step")
        if _speaks(node):
            self._in_order(walk, node, number)
        self._settle(walk, node, number)
        source = node.args[0] if node.target is operator.getitem else node
        if _speaks(source) and "c10d" in source.target.namespace:
            walk.under_way.add(walk.root[node])

    def _in_order(self, walk: _Walk, node: fx.Node, number: int) -> None:
        """The collective is the next of the step, or runs again."""
        if self.heard < len(self.spoken) and self.spoken[self.heard] == number:
            self.heard += 1
        elif not walk.counts[number]:
            raise Unsound(f"`{node.name}` ({node.target}) is not the next collective of the step")

    def _known(self, walk: _Walk, node: fx.Node) -> int:
        """The number of an operator that the step has, too."""
        if _has_effect(node):
            key = walk.key(node.target, node.args, node.kwargs)
            if node.target is run_and_save_rng_state:
                key = walk.key(node.args[0], node.args[1:], node.kwargs)
            number = self.table.known("effect", self.place, *key)
            if number is None:
                raise Unsound(f"`{node.name}` ({node.target}) is not the next random or effectful operator of the step")
            self.place += 1
            return number
        key = walk.key(node.target, node.args, node.kwargs)
        number = self.table.known(*key)
        if number is None:
            number = self.forms.get(key)
        if number is None:
            raise Unsound(f"`{node.name}` ({node.target}) computes what the step does not")
        return number

    def _leaves(self, walk: _Walk, node: fx.Node) -> int:
        return self.table.of("on the host", walk.read(node.args[0]))

    def _returns(self, walk: _Walk, node: fx.Node) -> int:
        kind, *content = self.table.keys[walk.number[node.args[0]]]
        if kind != "on the host":
            raise Unsound(f"`{node.name}` brings back what has not left")
        return content[0]

    def _draws_again(self, walk: _Walk, node: fx.Node) -> int:
        kind, *run = self.table.keys[walk.number[node.args[0]]]
        key = walk.key(node.args[1], node.args[2:], node.kwargs)
        if kind != "state" or self.table.keys[run[0]][2:] != key:
            raise Unsound(f"`{node.name}` draws with the state of another operator")
        return run[0]

    def _same(self, what: str, walk: _Walk, found: Sequence[Any], wanted: Sequence[Any]) -> None:
        words = [walk.words(value) for value in found]
        if words != list(wanted):
            place = next((i for i, (a, b) in enumerate(zip(words, wanted, strict=False)) if a != b), min(len(words), len(wanted)))
            raise Unsound(f"{what} {place} is not that of the step")


def _late(graph: fx.Graph) -> list[fx.Node]:
    """The inputs that only the backward pass gets: gradients, then seeds and offsets of its random numbers."""
    inputs = graph.find_nodes(op="placeholder")
    seeds = [node for node in inputs if "bwd_seed" in str(node.target) or "bwd_base_offset" in str(node.target)]
    return [node for node in inputs if "tangents" in str(node.target)] + seeds


def _results(graph: fx.Graph) -> list[Any]:
    return list(next(iter(graph.find_nodes(op="output"))).args[0])


def _is_object(node: fx.Node) -> bool:
    return not isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool, *_PLAIN))


def _order(node: fx.Node) -> int:
    if not isinstance(node.meta.get("val"), torch.Tensor):
        return 2
    return 1 if node.meta.get("saved_tensor_with_no_vc_check") else 0


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and tuple(one.shape) == tuple(other.shape) and one.device == other.device
    return type(one) is type(other)


# The bytes.


def peak(
    forward: fx.Graph, backward: fx.Graph | None, device: torch.device, descriptions: Sequence[Any], kind: Callable[[torch.device], Live] | None = None
) -> int:
    """The most bytes at once that the graphs make on the device, each value until its last use; without inputs of the step, with gradients.

    `descriptions` are those of the forward outputs: new values of inputs end with the forward pass. `kind` counts.
    """
    live = (kind or Live)(device)
    if backward is None:
        live.run(forward, [], [])
        return live.most
    results = _results(forward)
    saved = results[len(descriptions) :]
    ending = [v for v, d in zip(results, descriptions, strict=False) if isinstance(d, InputMutationAOTOutput)]
    storages = live.run(forward, [], ending)
    in_order = [*(node for node in saved if not _is_object(node)), *(node for node in saved if _is_object(node))]
    live.run(backward, [storages[node] for node in in_order], [])
    return live.most


class Live:
    """The storages that are live, each named by the node that makes it and its place among the node's results."""

    def __init__(self, device: torch.device):
        self.device = device
        self.bytes: dict[tuple[fx.Node, Any], int] = {}
        self.now = self.most = 0

    def run(
        self, graph: fx.Graph, saved: Sequence[set[Any]], ending: Sequence[Any], kept: Sequence[fx.Node] = ()
    ) -> dict[fx.Node, set[Any]]:
        """Runs the graph, whose first inputs have these storages; returns the storages of its nodes. Those of `kept` and of results last, but for
        those in `ending`."""
        storages = self._storages(graph, saved)
        held = {s for value in (*_results(graph), *kept) if isinstance(value, fx.Node) for s in storages[value]}
        held -= {s for value in ending if isinstance(value, fx.Node) for s in storages[value]}
        moments = self._moments(graph)
        last: dict[Any, int] = {}
        for place, nodes in enumerate(moments):
            last |= {storage: place for node in nodes for value in _uses(node) for storage in storages[value]}
        for place, nodes in enumerate(moments):
            self._begin(nodes, storages)
            for node in nodes:
                for storage in storages[node]:
                    self._make(storage, node)
            gone = {s for node in nodes for value in _uses(node) for s in storages[value] if last[s] == place and s not in held}
            self._end(gone)
        return storages

    def _begin(self, nodes: list[fx.Node], storages: dict[fx.Node, set[Any]]) -> None:
        """Before the nodes run at once."""

    def _end(self, gone: set[Any]) -> None:
        """After nodes have run that are the last users of these storages."""
        self.now -= sum(self.bytes.pop(storage, 0) for storage in gone)

    def _moments(self, graph: fx.Graph) -> list[list[fx.Node]]:
        """The nodes that run at once."""
        return [[node] for node in graph.nodes]

    def _storages(self, graph: fx.Graph, saved: Sequence[set[Any]]) -> dict[fx.Node, set[Any]]:
        storages: dict[fx.Node, set[Any]] = {}
        inputs = iter(saved)
        for node in graph.nodes:
            storages[node] = self._of(node, storages, inputs)
        return storages

    def _of(self, node: fx.Node, storages: dict[fx.Node, set[Any]], inputs: Iterator[set[Any]]) -> set[Any]:
        """The storages of the node's result."""
        if node.op == "placeholder":
            # The mesh of a distributed tensor comes with its gradient, too.
            return next(inputs, {(node, ())} if "tangents" in str(node.target) and self._counts(node.meta.get("val")) else set())
        if node.op == "output":
            return set()
        if node.target in (torch.ops.lmsc.offload.default, torch.ops.lmsc.leave.default):  # Memory of the host, on the processor, too.
            return set()
        if node.op == "call_function" and (_shares_memory(node.target) or _written_to(node)) and isinstance(node.args[0], fx.Node):
            return storages[node.args[0]]
        if node.op == "call_function" and node.target is operator.getitem:
            whole, place = _path(node)
            return {s for s in storages[whole] if s[0] is not whole or s[1][: len(place)] == place}
        found, _ = tree_flatten_with_path(node.meta.get("val"))
        places = ((tuple(getattr(key, "idx", None) for key in path), leaf) for path, leaf in found)
        return {(node, place) for place, leaf in places if self._counts(leaf)}

    def _counts(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor) and value.device.type == self.device.type

    def _make(self, storage: tuple[fx.Node, Any], node: fx.Node) -> None:
        if storage in self.bytes or storage[0] is not node:
            return
        value = node.meta["val"]
        for place in storage[1]:
            value = value[place]
        self.bytes[storage] = bytes_of_result(node, value)
        self.now += self.bytes[storage]
        self.most = max(self.most, self.now)


def _uses(node: fx.Node) -> list[fx.Node]:
    """The values that must be there when the node runs. A collective holds its operands until the wait for it."""
    started = _path(node.args[0])[0] if node.op == "call_function" and _waits(node) else node
    return [node, *node.all_input_nodes, *(started.all_input_nodes if started.op == "call_function" else ())]


def _path(node: fx.Node) -> tuple[fx.Node, tuple[int, ...]]:
    """The operator whose result the node takes a part of, and the places of the part."""
    place: tuple[int, ...] = ()
    while node.target is operator.getitem:
        place = (node.args[1], *place)
        node = node.args[0]
    return node, place
