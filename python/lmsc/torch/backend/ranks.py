"""Plans on several processes ("ranks"): the same problem everywhere, then the same plan.

A collective is run by all processes of its group, or it hangs. A plan may run gathers again, so the processes whose graphs speak to each other
must have the same plan. They agree through the *store* of the process group: a collective while one of them compiles could hang.

1. All have the same operators, options and versions, or all are told the first difference. Shards may differ in size: of bytes and times the
   largest of any process are planned, and of memory and links the least: an accelerator's target tells the memory that is free on its host now.
   Then each makes the plan, which is the same everywhere.
2. The collectives of the written graphs are compared before their first run.

The lowest rank of a group compares and answers, so the number of messages is that of the processes. Who does not come within the time limit is
named. A graph without collectives concerns nobody else. A frame that a process compiles again, for a smaller batch, keeps the collectives of
its first plan, in number and order, and the rest is planned anew: that needs no agreement.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import hashlib
import itertools
import json
import operator
import time
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed, fx
from torch.utils._pytree import tree_leaves

from ... import _lmsc
from ..._lmsc import InputError, Refusal
from .check import Unsound
from .costs import number, tensors
from .problem import Op, Problem, group_of, is_collective, started_by

if TYPE_CHECKING:
    from .planning import Options

#: How often each group has agreed in this process. It makes the keys of an agreement unlike those of any other, also after a failure.
_AGREEMENTS: collections.Counter[str] = collections.Counter()

#: The first plan of each frame: the order of its collectives (for each pass, their places among those of the step) and the bytes of its budget. The
#: key is the frame with the words of its collectives.
_SETTLED: dict[Any, tuple[tuple[tuple[int, ...], tuple[int, ...]], int]] = {}

#: Seconds that the answer may take after the process that gives it is known to be there.
_ANSWER = 5.0

#: The keys of a target for its memories and its link.
_MEMORIES = ("device_bytes", "host_bytes")
_RATES = ("out_bytes_per_second", "in_bytes_per_second")

#: Collectives whose operands may differ in length between processes.
_UNEVEN = {"all_to_all_single"}


class Disagreement(InputError):
    """The processes do not compile the same step, or one of them does not compile."""


class Agreement:
    """A problem that other processes have, too. This one concerns nobody else."""

    def __init__(self, earlier: int):
        #: The bytes that earlier graphs of the step hold.
        self.earlier = earlier

    def asked(self, ask: Callable[[Options], tuple[dict[str, Any], list[int]]], options: Options) -> tuple[dict[str, Any], list[int]]:
        """The library's answer."""
        return ask(options)

    def settle(self, problem: Problem, answer: dict[str, Any]) -> None:
        """Keeps the order of collectives of the plan, for a frame that is compiled again."""

    def confirm(self, forward: fx.Graph, backward: fx.Graph) -> None:
        """Raises `Disagreement` unless all processes have written the same collectives."""


def wait_for_each(graph: fx.Graph) -> None:
    """Replaces each wait for several tensors by a wait for each of them."""
    for node in graph.find_nodes(op="call_function", target=torch.ops._c10d_functional.wait_tensors.default):
        for user in list(node.users):
            if user.target is not operator.getitem:
                raise InputError(f"`{user.name}` reads the list of `{node.name}`")
        with graph.inserting_before(node):
            waits = [graph.call_function(torch.ops._c10d_functional.wait_tensor.default, (operand,)) for operand in node.args[0]]
        for wait, operand in zip(waits, node.args[0], strict=True):
            wait.meta = {**node.meta, "val": operand.meta.get("val")}
        for user in list(node.users):
            user.replace_all_uses_with(waits[user.args[1]])
            graph.erase_node(user)
        graph.erase_node(node)


def agreed(problem: Problem, options: Options, name: str, earlier: int) -> Agreement:
    """The agreement on the problem, which then has the largest bytes and times of any process; so has the agreement of `earlier`.

    Raises:
        Disagreement: Another process compiles another step, has other options or versions, or compiles nothing within the time limit.
    """
    groups = _groups(problem.collectives)
    if not groups:
        return Agreement(earlier)
    frame, again = _frame()
    key = (frame, _words(problem, sizes=False))
    if again and key in _SETTLED:
        keep(problem, _SETTLED[key][0])
        return _Kept(*_SETTLED[key], earlier)
    found = _Agreed(key, [_Group(group, options.wait, name) for group in groups], earlier)
    for group in found.groups:
        found.earlier = _align(problem, options, group, found.earlier)
    return found


def _frame() -> tuple[Any, bool]:
    """The frame of Dynamo that is compiled, and whether it was compiled before."""
    compiled = torch._guards.CompileContext.current_compile_id()
    if compiled is None or compiled.frame_id is None:
        return None, False
    return (compiled.compiled_autograd_id, compiled.frame_id), bool(compiled.frame_compile_id)


def _groups(collectives: Sequence[fx.Node]) -> list[list[int]]:
    """The groups of processes that must agree, in the order of their first collective; none that lies within another."""
    if not collectives or not distributed.is_initialized() or distributed.get_backend() == "fake":
        return []
    found = list(dict.fromkeys(tuple(sorted(group_of(node))) for node in collectives))
    found = [group for group in found if len(group) > 1]
    return [list(group) for group in found if not any(set(group) < set(other) for other in found)]


# One exchange of messages.


class _Group:
    """The processes of a group, for one graph."""

    def __init__(self, ranks: Sequence[int], wait: float, name: str):
        self.ranks, self.wait, self.name = ranks, wait, name
        self.rank, self.first = distributed.get_rank(), ranks[0]
        members = hashlib.sha256(json.dumps(ranks).encode()).hexdigest()[:16]
        self.prefix = f"lmsc/{members}/{_AGREEMENTS[members]}"
        _AGREEMENTS[members] += 1
        self.store = distributed.distributed_c10d._get_default_store()

    def put(self, kind: str, value: Any, rank: int | None = None) -> None:
        self._of_the_store(lambda: self.store.set(self._key(kind, rank), zlib.compress(json.dumps(value).encode())))

    def get(self, kind: str, rank: int, seconds: float) -> Any:
        """What the process has put; None if it puts nothing within the time."""
        key = self._key(kind, rank)
        if not self._there([key], seconds):
            return None
        return json.loads(zlib.decompress(self._of_the_store(lambda: self.store.get(key))))

    def missing(self, kind: str, seconds: float) -> list[int]:
        """The processes of the group that put nothing within the time."""
        keys = {rank: self._key(kind, rank) for rank in self.ranks}
        if self._there(list(keys.values()), seconds):
            return []
        return [rank for rank, key in keys.items() if not self._of_the_store(lambda key=key: self.store.check([key]))]

    def _key(self, kind: str, rank: int | None) -> str:
        return f"{self.prefix}/{kind}/{self.rank if rank is None else rank}"

    def _there(self, keys: list[str], seconds: float) -> bool:
        try:
            self.store.wait(keys, datetime.timedelta(seconds=max(seconds, 0.01)))
        except distributed.DistStoreError:
            return False
        except RuntimeError as error:
            # Files and hashes tell the end of the time by another error than sockets do.
            if "timeout" in str(error).lower() or "timed out" in str(error).lower():
                return False
            raise self._lost(error) from None
        return True

    def _of_the_store(self, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except RuntimeError as error:
            raise self._lost(error) from None

    def _lost(self, error: RuntimeError) -> Disagreement:
        first = str(error).partition("\n")[0][:200]
        return Disagreement(f"{self.name}: the store of the process group is lost, so the process that holds it has ended: {first}")

    def absent(self, ranks: Sequence[int], seconds: float) -> Disagreement:
        who = f"rank {ranks[0]} does" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks[:8]))}{', …' if len(ranks) > 8 else ''} do"
        return Disagreement(
            f"{self.name} has collectives, which all of ranks {_span(self.ranks)} must compile, but {who} not within {seconds:.0f} seconds. If they "
            'come later, options={"wait": seconds} waits longer'
        )

    def compared(self, kind: str, mine: Any, compare: Callable[[dict[int, Any]], Any], seconds: float) -> Any:
        """The answer of the first process to what all have put. It is the same for all."""
        self.put(kind, mine)
        if self.rank == self.first:
            missing = self.missing(kind, seconds)
            answer = {"missing": missing} if missing else compare({rank: self.get(kind, rank, 1) for rank in self.ranks})
            self.put(f"{kind} answered", answer)
        else:
            if self.get(kind, self.first, seconds) is None:
                raise self.absent([self.first], seconds)
            # It may have come just now, and waits for others as long as this process has waited.
            answer = self.get(f"{kind} answered", self.first, seconds + _ANSWER)
            if answer is None:
                raise self.absent([self.first], seconds)
        if answer.get("missing"):
            raise self.absent(answer["missing"], seconds)
        return answer


def _span(ranks: Sequence[int]) -> str:
    whole = list(ranks) == list(range(ranks[0], ranks[-1] + 1))
    return f"{ranks[0]} to {ranks[-1]}" if whole and len(ranks) > 2 else ", ".join(map(str, ranks))


# The same problem.


def _align(problem: Problem, options: Options, group: _Group, earlier: int) -> int:
    """Gives the problem the numbers that all processes of the group plan with, and returns those for `earlier`."""
    settings, operators = _settings(problem, options), _words(problem, sizes=True)
    numbers = _numbers(problem, earlier)
    mine = {"digest": _digest([settings, operators]), "numbers": _digest(numbers)}
    group.put("numbers", numbers)

    def compare(all_: dict[int, Any]) -> dict[str, Any]:
        other = next((rank for rank, one in all_.items() if one["digest"] != mine["digest"]), None)
        if other is not None:
            group.put("operators", [settings, operators])
            return {"other": other}
        different = {one["numbers"]: rank for rank, one in all_.items() if one["numbers"] != mine["numbers"]}
        each = [numbers, *(group.get("numbers", rank, 1) for rank in different.values())]
        if len(each) == 1:
            return {}
        return {"largest": [[max(values) for values in zip(*kind, strict=True)] for kind in zip(*each, strict=True)]}

    answer = group.compared("problem", mine, compare, group.wait)
    if "other" in answer:
        raise _difference(group, answer["other"], [settings, operators])
    if "largest" not in answer:
        return earlier
    problem.bytes, seconds, sparse, (earlier, *limits) = answer["largest"]
    problem.ops = [dataclasses.replace(op, seconds=most) for op, most in zip(problem.ops, seconds, strict=True)]
    problem.dense = {storage for storage, is_sparse in enumerate(sparse) if not is_sparse}
    _limit(problem, limits)
    return earlier


def _numbers(problem: Problem, earlier: int) -> list[list[Any]]:
    """The numbers of which the largest of any process is planned: bytes, times, which storages cannot be copied, what limits the plan."""
    facts, link = problem.target.facts, problem.target.link
    limits = [earlier, link["latency_nanos"], *(-facts[name] for name in _MEMORIES), *(-link[name] for name in _RATES)]
    return [problem.bytes, [op.seconds for op in problem.ops], [int(s not in problem.dense) for s in range(len(problem.bytes))], limits]


def _limit(problem: Problem, limits: Sequence[Any]) -> None:
    """Gives the problem's target these memories and this link."""
    latency, *least = limits
    memories = {name: -number_ for name, number_ in zip(_MEMORIES, least[: len(_MEMORIES)], strict=True)}
    rates = {name: -number_ for name, number_ in zip(_RATES, least[len(_MEMORIES) :], strict=True)}
    target = problem.target
    problem.target = dataclasses.replace(target, facts={**target.facts, **memories, "link": {**target.link, **rates, "latency_nanos": latency}})


def _difference(group: _Group, other: int, mine: list[Any]) -> Disagreement:
    """The other process compares itself with the first, and tells all."""
    if group.rank == other:
        theirs = group.get("operators", group.first, _ANSWER) or [{}, []]
        group.put("difference", _first_difference(theirs, mine, group.first, other))
    told = group.get("difference", other, _ANSWER) or f"rank {other} compiles another step than rank {group.first}"
    return Disagreement(f"{group.name}: {told}. All ranks must compile the same step with the same options")


def _first_difference(one: list[Any], other: list[Any], rank: int, other_rank: int) -> str:
    for setting in one[0]:
        if one[0][setting] != other[0].get(setting):
            return f"{setting} is {one[0][setting]!r} on rank {rank} and {other[0].get(setting)!r} on rank {other_rank}"
    for place, (a, b) in enumerate(zip(one[1], other[1], strict=False)):
        if a != b:
            same = ", with other operands" if a[0] == b[0] else ""
            return f"operator {place} is {a[0]} on rank {rank} and {b[0]} on rank {other_rank}{same}"
    return f"rank {rank} has {len(one[1])} operators and rank {other_rank} {len(other[1])}"


def _settings(problem: Problem, options: Options) -> dict[str, Any]:
    return {
        **{name: getattr(options, name) for name in options.__dataclass_fields__ if name != "optimizer"},
        "the version of PyTorch": torch.__version__,
        "the version of lmsc": _lmsc.__version__,
        "the duplex of the link": problem.target.link["duplex"],
    }


def _words(problem: Problem, sizes: bool) -> list[Any]:
    """The operators, but for lengths: shards may differ. With `sizes` all operators, otherwise the collectives alone."""
    groups: dict[str, int] = {}
    if not sizes:
        return _frozen([_collective(node, groups) for node in problem.collectives])
    places: dict[int, int] = {}  # of storages, in the order in which operators name them

    def at(storages: Sequence[int]) -> list[int]:
        return [places.setdefault(storage, len(places)) for storage in storages]

    words: list[Any] = [
        [_label(op, groups), op.kind, op.phase, at(op.reads), at(op.makes), at(op.changes), int(op.again)] for op in problem.ops
    ]
    return [*words, ["the end of the step", len(problem.bytes), sorted(problem.resident), sorted(problem.pinned)]]


def _label(op: Op, groups: dict[str, int]) -> str:
    if op.node is None:
        return f"the moment `{op.kind}`"
    if not is_collective(op.node):
        return str(op.node.target)
    target, place, count, reduction, plain, shapes = _collective(op.node, groups, sized=True)
    tensors_ = ", ".join(f"{kind.removeprefix('torch.')}[{','.join(extents)}]" for kind, *extents in shapes)
    return f"{target} of {tensors_} ({', '.join([*reduction, *plain])}) among the {count} ranks of group {place}"


def _collective(node: fx.Node, groups: dict[str, int], sized: bool = False) -> list[Any]:
    """What the processes of a group must have in common. The name of a group differs between groups of the same kind."""
    ranks = group_of(node)
    place = groups.setdefault(str(ranks), len(groups))
    plain = [str(value) for value in tree_leaves((node.args, node.kwargs)) if not isinstance(value, (fx.Node, str, torch.SymInt))]
    reduction = [value for value in node.args if isinstance(value, str) and value in ("sum", "avg", "min", "max", "product")]
    operands = [tensor for operand in node.all_input_nodes for tensor in tensors(operand.meta.get("val"))]
    shapes = [[str(t.dtype), *((str(number(extent)) for extent in t.shape) if sized and node.target._opname not in _UNEVEN else ())] for t in operands]
    even = plain if node.target._opname not in _UNEVEN else []
    return [str(node.target), place, len(ranks), reduction, even, shapes]


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, (list, tuple)) else value


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# The same plan.


class _Agreed(Agreement):
    def __init__(self, key: Any, groups: list[_Group], earlier: int):
        super().__init__(earlier)
        self.key, self.groups, self.since = key, groups, time.monotonic()

    def settle(self, problem: Problem, answer: dict[str, Any]) -> None:
        self.order, self.bytes = _order(problem, answer["plan"]), answer["budget_bytes"]

    def confirm(self, forward: fx.Graph, backward: fx.Graph) -> None:
        groups: dict[str, int] = {}
        words = [[_collective(node, groups, sized=True) for node in filter(is_collective, graph.nodes)] for graph in (forward, backward)]
        # Others may plan for longer than this process has.
        spent = time.monotonic() - self.since
        for group in self.groups:

            def compare(all_: dict[int, Any]) -> dict[str, Any]:
                mine = all_[group.rank]
                return {"other": [rank for rank, one in all_.items() if one != mine]}

            answer = group.compared("plan", [_digest(words), self.order], compare, group.wait + spent)
            if answer["other"]:
                raise Unsound(f"{group.name}: rank {answer['other'][0]} has planned other collectives than rank {group.first}")
        _SETTLED[self.key] = self.order, self.bytes


class _Kept(Agreement):
    def __init__(self, order: tuple[tuple[int, ...], tuple[int, ...]], bytes_: int, earlier: int):
        super().__init__(earlier)
        self.order, self.bytes = order, bytes_

    def asked(self, ask: Callable[[Options], tuple[dict[str, Any], list[int]]], options: Options) -> tuple[dict[str, Any], list[int]]:
        """The library's answer. A share of the peak of a smaller batch may be too little: then the bytes of the first plan are the budget."""
        try:
            return ask(options)
        except Refusal:
            return ask(dataclasses.replace(options, budget=str(self.bytes)))

    def settle(self, problem: Problem, answer: dict[str, Any]) -> None:
        if _order(problem, answer["plan"]) != self.order:
            raise Unsound("a graph that was compiled again does not keep the collectives of its first plan")


def _order(problem: Problem, plan: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The places of the collectives in the step, in the order in which the plan runs them, of each pass."""
    place = {node: index for index, node in enumerate(problem.collectives)}
    found: tuple[list[int], list[int]] = ([], [])
    phase = 0
    for run in plan["ops"]:  # Collectives keep this order.
        op = problem.ops[run["op"]]
        if op.kind == "gradients":
            phase = 1
        elif op.node in place and op.kind == "run":
            found[phase].append(place[op.node])
    return tuple(found[0]), tuple(found[1])


def keep(problem: Problem, order: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    """Decides which collectives run again, and between which others: as in that order. A repeat becomes an operator that runs once."""
    ops = [dataclasses.replace(op, again=False) if op.node is not None and is_collective(op.node) else op for op in problem.ops]
    first = {op.node: op for op in ops if op.kind == "run"}
    waits: dict[fx.Node, list[Op]] = {}
    for op in ops:
        for started in started_by(op.node) if op.kind == "wait" else ():
            waits.setdefault(started, []).append(op)
    now: dict[int, int] = {}  # by storage, the one that stands for it now
    seen: set[fx.Node] = set()
    written: list[Op] = []
    boundary = next(index for index, op in enumerate(ops) if op.kind == "gradients")
    for phase, (part, places) in enumerate(zip((ops[:boundary], ops[boundary:]), order, strict=True)):
        awaited = list(places)

        def repeats(wanted: set[int] | None = None) -> None:
            """Runs again what comes before the next collective that has not run; of that only as much as makes the wanted storages."""
            while awaited and problem.collectives[awaited[0]] in seen and (wanted is None or wanted):
                op = first[problem.collectives[awaited.pop(0)]]
                wanted = None if wanted is None else wanted - set(op.makes)
                for storage in op.makes:
                    now[storage] = _another(problem, storage)
                written.append(dataclasses.replace(op, phase=phase, reads=_now(op.reads, now), makes=tuple(sorted(now[s] for s in op.makes))))
                written.extend(dataclasses.replace(wait, phase=phase, reads=_now(wait.reads, now)) for wait in waits.get(op.node, ()))

        for op in part:
            fresh = op.kind == "run" and op.node is not None and is_collective(op.node)
            if not fresh and op.kind != "wait":
                ahead = itertools.takewhile(seen.__contains__, (problem.collectives[place] for place in awaited))
                repeats({storage for node in ahead for storage in first[node].makes}.intersection(op.reads))
            if fresh:
                repeats()
                if not awaited or problem.collectives[awaited.pop(0)] is not op.node:
                    raise Disagreement("a graph that is compiled again alone has other collectives than its first plan")
                seen.add(op.node)
            written.append(dataclasses.replace(op, reads=_now(op.reads, now)))
        repeats()
        if awaited:
            raise Disagreement("a graph that is compiled again alone has fewer collectives than its first plan")
    problem.ops = written


def _now(storages: Sequence[int], now: dict[int, int]) -> tuple[int, ...]:
    return tuple(sorted(now.get(storage, storage) for storage in storages))


def _another(problem: Problem, storage: int) -> int:
    """A storage for a second result of the operator that makes this one."""
    problem.bytes.append(problem.bytes[storage])
    problem.owner.append(problem.owner[storage])
    problem.stands_for[len(problem.bytes) - 1] = storage
    if storage in problem.dense:
        problem.dense.add(len(problem.bytes) - 1)
    return len(problem.bytes) - 1
