"""Options of the backend, and the plan of a graph: asked of the library, written, checked."""

from __future__ import annotations

import collections
import dataclasses
import functools
import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._functorch.partitioners import is_rng_op

from ... import _lmsc
from ..._compile import picture, save_page
from ..._lmsc import InputError, Refusal
from . import ranks
from .check import Checker, Unsound, peak
from .costs import Target, bytes_of, tensors
from .late import later
from .measured import MeasuredTarget
from .problem import Problem, device_of, drop_unread_arguments
from .shares import Costs, Share, spare
from .waits import later_waits
from .write import Ends, Writer

log = logging.getLogger("lmsc.torch")

#: The effort for a graph of at most this number of operators. The time of a search grows with the square of their number, so that of larger graphs gets
#: less effort: 6 for 750 operators. Of six models of 552 to 829 operators, plans take at most 3.5 seconds of the processor in place of 7.3, and the modelled
#: time of a step is at most 2.7 % longer. Twice the number of operators has four times the time.
_EFFORT, _OPERATORS = 20, 400

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


@dataclass(frozen=True)
class Options:
    """What `torch.compile(…, backend="lmsc", options={…})` takes."""

    #: Bytes, with a unit or as a number, a share of the device's memory ("90%") or of the graph's own peak ("0.6x"), "smallest", or
    #: "3% slower": the smallest memory whose plan takes at most that much longer.
    budget: str
    #: The machine that plans are made for, as of `lmsc targets`; if left out, the device of the graph.
    target: str | None = None
    #: The effort of the search in percent; if left out, as of `effort_of`.
    effort: int | None = None
    #: The compiler that runs the written graphs.
    inner: str = "eager"
    #: Whether the times of operators are those that they take on the device, instead of modelled ones.
    profile: bool = False
    #: Optimizers whose state rests on the host between their steps.
    optimizer: tuple[torch.optim.Optimizer, ...] = ()
    #: Of a graph with collectives, how many seconds a process waits for the others to compile it, too.
    wait: float = 20
    #: Whether the step has further graphs, although nothing tells it when the first is compiled.
    several: bool = False

    @classmethod
    def of(cls, given: dict[str, Any] | None) -> Options:
        given = dict(given or {})
        if "budget" not in given:
            raise InputError(
                'options={"budget": …} is missing: bytes ("20GiB"), a share of the device\'s memory ("90%") or of the graph\'s own '
                'peak ("0.6x"), "smallest", or "3% slower"'
            )
        if "offload_parameters" in given:
            raise InputError(
                "option 'offload_parameters': code between two calls may read a parameter at any moment, so it stays on the device; "
                'TrainStep(…, kernels="torch"), which knows when its caller reads, moves parameters'
            )
        unknown = sorted(set(given) - set(cls.__dataclass_fields__))
        if unknown:
            raise InputError(f"option {unknown[0]!r}: the backend takes {', '.join(cls.__dataclass_fields__)}")
        if given.get("inner", "eager") not in ("eager", "inductor"):
            raise InputError(f'option inner={given["inner"]!r}: written graphs are run by "eager" or compiled by "inductor"')
        profile = given.get("profile", False)
        if not isinstance(profile, bool) or profile and given.get("inner") == "inductor":
            of = "times of Inductor's kernels are not measured" if profile is True else "True or False"
            raise InputError(f"option profile={profile!r}: {of}")
        if not isinstance(given.get("several", False), bool):
            raise InputError(f"option several={given['several']!r}: True or False")
        effort = given.get("effort")
        if effort is not None and (not isinstance(effort, int) or isinstance(effort, bool) or not 0 <= effort < 1 << 32):
            raise InputError(f"option effort={effort!r}: an effort is a whole number of percent")
        wait = given.get("wait", 20)
        if not isinstance(wait, (int, float)) or isinstance(wait, bool) or not 0 < wait <= 86_400:
            raise InputError(f"option wait={wait!r}: a number of seconds, at most a day")
        optimizers = given.get("optimizer") or ()
        optimizers = tuple(optimizers) if isinstance(optimizers, (list, tuple)) else (optimizers,)
        if not all(isinstance(one, torch.optim.Optimizer) for one in optimizers):
            raise InputError("option optimizer: an optimizer of PyTorch, or a list of them")
        return cls(**{**given, "budget": str(given["budget"]), "optimizer": optimizers})

    @property
    def of_the_machine(self) -> bool:
        """Whether the budget is a number of bytes or a share of the device's: then it is that of all graphs of a step together."""
        return self.budget != "smallest" and not self.budget.endswith(("x", "slower"))

    def machine(self, device: torch.device) -> Target:
        default = "host" if device.type == "cpu" else f"{device.type}:{device.index or 0}"
        target = Target.named(self.target or default)
        return MeasuredTarget.over(target, device) if self.profile else target


@dataclass(frozen=True)
class Plan:
    """The plan of one graph. Bytes include those that are resident."""

    name: str
    budget: int
    as_it_is: int
    peak: int
    resident: int
    operators: int
    #: The sizes of the copies to the host, in the order in which they leave.
    out: tuple[int, ...]
    #: The operators that run again, with how often.
    again: dict[str, int]
    random_again: int
    seconds: float
    seconds_as_it_is: float
    target: str
    #: The bytes that stay between the passes, results included.
    held: int = 0
    #: The bytes of the results alone.
    results: int = 0
    #: The bytes of the budget that other graphs of the step hold while this one runs.
    beside: int = 0
    #: Whether it holds until all graphs of the step are known.
    first: bool = False
    #: The bytes of the optimizer's state that rest on the host, and the most bytes of the device while the optimizer updates.
    state: int = 0
    update: int = 0
    symbolic: bool = False
    inner: str = "eager"

    @property
    def slower(self) -> float:
        """By how much the plan takes longer than the graph as it is, modelled, in percent."""
        return 100 * (self.seconds / self.seconds_as_it_is - 1) if self.seconds_as_it_is else 0.0

    def cells(self) -> tuple[str, ...]:
        """The row of the plan in the table of `Plans`."""
        leave = f"{len(self.out)} ({size(sum(self.out))})" if self.out else "0"
        bytes_ = (size(count) for count in (self.as_it_is, self.budget, self.beside, self.peak, self.resident))
        return self.name, str(self.operators), *bytes_, leave, str(sum(self.again.values())), f"{self.slower:.1f} %"

    def __str__(self) -> str:
        """One line."""
        copies = f"{len(self.out)} tensors ({size(sum(self.out))}) leave" if self.out else "nothing leaves"
        again = f"{sum(self.again.values())} operators run again" if self.again else "nothing runs again"
        beside = f" beside {size(self.beside)} that other graphs of the step hold" if self.beside else ""
        first = "; until all graphs of the step are known" if self.first else ""
        sizes = "; for the first sizes only" if self.symbolic else ""
        state = f"; {size(self.state)} of the optimizer's state rest on the host, an update takes {size(self.update)}" if self.update else ""
        operators = "operators" if self.inner == "eager" else f"kernels of {self.inner.capitalize()}"
        return (
            f"{self.name}: {self.operators} {operators} within {size(self.budget)}{beside}, as they are {size(self.as_it_is)}: planned peak "
            f"{size(self.peak)}, of which {size(self.resident)} are parameters and inputs; {copies}, {again}; modelled {self.slower:.1f} % "
            f"slower on {self.target}{sizes}{state}{first}"
        )

    def _repr_html_(self) -> str:
        rows = [("as it is", self.as_it_is, "#8a8f98"), ("planned", self.peak, "#3b7ddd"), ("budget", self.budget, "#c9ced6")]
        facts = [
            ("to the host", f"{len(self.out)} tensors, {size(sum(self.out))}"),
            ("run again", f"{sum(self.again.values())} operators"),
            ("modelled", f"{self.seconds * 1e3:.3f} ms, {self.seconds_as_it_is * 1e3:.3f} ms as it is, on {self.target}"),
        ]
        return picture(rows, facts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture and the line of the plan as a page, such as `plan.html`."""
        save_page(path, self)


class Plans(list[Plan]):
    """The plans of several graphs. `print` shows a table, a notebook the picture of each."""

    def __str__(self) -> str:
        heads = ("graph", "operators", "as it is", "budget", "beside", "planned", "resident", "leave", "run again", "slower")
        rows = [heads, *(plan.cells() for plan in self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)

    def _repr_html_(self) -> str:
        return "".join(f"<h4>{plan.name}</h4>{plan._repr_html_()}" for plan in self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the pictures and the table as a page, such as `plans.html`."""
        save_page(path, self)


def size(number: int) -> str:
    """The bytes with a unit, rounded up in the second digit after the point."""
    for unit, name in _UNITS:
        if number >= unit:
            return f"{-(-number * 100 // unit) / 100:g} {name}"
    return f"{number} bytes"


@dataclass(frozen=True)
class Written:
    """The graphs of a plan."""

    plan: Plan
    forward: fx.GraphModule
    backward: fx.GraphModule
    #: What it costs within shares of the step's budget; None for a graph that keeps its plan.
    costs: Costs | None


@dataclass(frozen=True)
class Form:
    """What the operators of a problem are: how a graph becomes a problem, how a plan is written, and how the bytes of written graphs are counted."""

    problem: Callable[..., Problem] = Problem
    #: Further problems of the same graph, which are planned where the plan of the first one costs time, or there is none.
    others: tuple[Callable[..., Problem], ...] = ()
    writer: Callable[..., Writer] = Writer
    peak: Callable[..., int] = peak
    inner: str = "eager"


def planned(
    joint: fx.GraphModule,
    ends: Ends,
    options: Options,
    name: str,
    lasting: Set[int] = frozenset(),
    earlier: int = 0,
    beside: int = 0,
    form: Form = Form(),  # noqa: B008 (it is frozen)
    portion: Portion | None = None,
) -> Written:
    """The graphs that compute what the joint graph computes, within the budget; checked.

    `lasting`, `beside`: as of `Problem`. `earlier`: the bytes that other graphs of the step hold; they count if the budget is one of the machine.
    `portion`: of a graph that has a backward pass and no collectives, its portion of the step's budget.

    Raises:
        Refusal: No plan keeps within the budget.
        Unsound: A bug of lmsc: what was written is not that.
    """
    _one_plan_a_size(joint.graph)
    ranks.wait_for_each(joint.graph)
    drop_unread_arguments(joint.graph)
    joint.graph.eliminate_dead_code()
    target = options.machine(device_of(joint.graph))
    facts = joint.graph, ends.forward, ends.forward_descriptions, target, lasting, beside
    problem = form.problem(*facts)
    if isinstance(target, MeasuredTarget):
        target.keep()
    agreement = ranks.agreed(problem, options, name, earlier if options.of_the_machine else 0)
    earlier = agreement.earlier
    costs = None
    if ends.backward and not problem.collectives:
        costs = Costs(problem, functools.partial(_asked_within, problem, options, name))
    if portion is not None and costs is not None:
        return _planned_portion(joint, ends, options, name, form, facts, costs, portion)
    ask, of_the_step = _ask if ends.backward else _ask_at_least, {"name": name, "earlier": earlier}
    if problem.collectives:
        answer, named = agreement.asked(functools.partial(_started_and_awaited, problem, ask, facts=of_the_step), options)
    else:
        problem, answer, named = _best(problem, (other(*facts) for other in form.others), options, functools.partial(ask, **of_the_step))
    agreement.settle(problem, answer)
    written = _written(joint, ends, name, form, problem, answer, named)
    agreement.confirm(written.forward.graph, written.backward.graph)
    return dataclasses.replace(written, plan=dataclasses.replace(written.plan, beside=earlier), costs=costs)


def _written(
    joint: fx.GraphModule, ends: Ends, name: str, form: Form, problem: Problem, answer: dict[str, Any], named: list[int]
) -> Written:
    """The graphs of a plan, checked."""
    forward, backward = form.writer(joint, problem, answer["plan"], named, ends).write()
    graphs = forward, backward if ends.backward else None
    found = check(joint, problem, ends, graphs, answer["peak_bytes"], form.peak)
    facts = {
        "peak": found if problem.spare else answer["peak_bytes"],
        "held": _bytes_held(forward.graph, problem) if ends.backward else 0,
        "results": sum(problem.bytes[s] for s in problem.pinned - problem.resident),
        "inner": form.inner,
    }
    return Written(dataclasses.replace(_facts(problem, answer, name), **facts), forward, backward, None)


@dataclass(frozen=True)
class Portion:
    """What one graph of a step gets of its budget."""

    #: The share that the graph may take; None for its smallest.
    share: Share | None
    #: The budget of the step; None for one that is not known before its graphs.
    budget: int | None


def _planned_portion(
    joint: fx.GraphModule, ends: Ends, options: Options, name: str, form: Form, facts: tuple[Any, ...], costs: Costs, portion: Portion
) -> Written:
    """The graphs of a plan within a share of the step's budget."""
    problem = costs.problem
    share = portion.share or costs.smallest.share
    within = dataclasses.replace(options, budget=f"{share.bytes}B")
    others = (other(*facts) for other in form.others)

    def ask(of: Problem, asked: Options) -> tuple[dict[str, Any], list[int]]:
        of.spare = spare(share, costs.resident)
        return _ask(of, asked, name, 0, costs.whole.bytes)

    problem, answer, named = _best(problem, others, within, ask)
    written = _written(joint, ends, name, form, problem, answer, named)
    budget = share.bytes if portion.budget is None else portion.budget
    plan = dataclasses.replace(written.plan, budget=budget, beside=budget - share.bytes if portion.share else 0, first=portion.share is None)
    return dataclasses.replace(written, plan=plan, costs=costs)


def _asked_within(problem: Problem, options: Options, name: str, budget: str, free: int) -> dict[str, Any]:
    """The library's answer within a share of the step's budget."""
    before, problem.spare = problem.spare, free
    try:
        return _ask(problem, dataclasses.replace(options, budget=budget), name, 0)[0]
    finally:
        problem.spare = before


def budget_of_a_step(options: Options, target: Target, as_it_is: int) -> int:
    """The bytes of the budget, for a step whose peak without a plan is this; 0 for one that is not a number of bytes."""
    nothing = {"format": "lmsc-planner-dag-1", "name": "nothing", "bw_d2h": 1, "bw_h2d": 1}
    lists = dict.fromkeys(("kinds", "tensor_bytes", "ops", "given", "kept", "changes", "swappable"), ())
    machine = {"device": target.facts["device_bytes"], "host": target.facts["host_bytes"]}
    asked = {"budget": options.budget, "as_it_is": as_it_is, "resident": 0, "effort": 0, **machine}
    return json.loads(_lmsc.plan_problem(json.dumps({**nothing, **lists}), asked))["budget_bytes"]


def check(
    joint: fx.GraphModule,
    problem: Problem,
    ends: Ends,
    graphs: tuple[fx.GraphModule, fx.GraphModule | None],
    allowed: int,
    count: Callable[..., int] = peak,
) -> int:
    """The bytes of the graphs. Raises `Unsound` unless they compute what the joint graph computes, within the bytes allowed."""
    forward, backward = (None if graph is None else graph.graph for graph in graphs)
    Checker(joint.graph, problem.forward, (ends.forward, ends.backward), ends.forward_descriptions).check(forward, backward)
    found = problem.resident_bytes() + count(forward, backward, problem.device, ends.forward_descriptions)
    if found > allowed:
        raise Unsound(f"the written graphs take {found} bytes, the plan {allowed}")
    return found


def _started_and_awaited(problem: Problem, ask: Callable[..., Any], options: Options, facts: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """The library's answer to the problem whose waits for collectives come late. Where that has no plan, or the smallest is asked for, to the problem as
    it was traced: it needs less. A share of the peak is one of the graph as it was traced."""
    if not problem.lanes() or options.budget == "smallest":
        return ask(problem, options, **facts)
    traced, as_it_is = problem.ops, problem.as_it_is_bytes()
    problem.ops = later_waits(problem)
    try:
        return _ask(problem, options, **facts, as_it_is=as_it_is)
    except Refusal:
        problem.ops = traced
        return ask(problem, options, **facts)


def _best(
    problem: Problem, others: Iterable[Problem], options: Options, ask: Callable[..., Any]
) -> tuple[Problem, dict[str, Any], list[int]]:
    """The problem whose plan takes the least time, its answer, and the storages of its tensors. The others keep within the bytes of the first."""
    found: list[tuple[Problem, dict[str, Any], list[int]]] = []
    refused: list[Refusal] = []
    try:
        answer, named = _asked_again(problem, options, functools.partial(ask, problem))
        found.append((problem, answer, named))
        if options.budget.endswith("slower") or options.budget != "smallest" and answer["makespan_ns"] <= answer["as_it_is_ns"]:
            return found[0]
        bytes_ = answer["budget_bytes"]
    except Refusal as refusal:
        refused.append(refusal)
        bytes_ = refusal.budget
    same = dataclasses.replace(options, budget=f"{bytes_}B") if options.budget.endswith("x") and bytes_ is not None else options
    for other in others:
        try:
            found.append((other, *_asked_again(other, same, functools.partial(ask, other))))
        except Refusal as refusal:
            refused.append(refusal)
    if not found:
        raise min(refused, key=lambda refusal: refusal.smallest_budget or math.inf)
    best = min(found, key=lambda one: _cost(one[1], options))
    return best[0], best[1] | {"as_it_is_bytes": found[0][1]["as_it_is_bytes"]}, best[2]


def _asked_again(problem: Problem, options: Options, ask: Any) -> tuple[dict[str, Any], list[int]]:
    """The better of two answers: the second is that of the problem whose operators come as late as the first plan reads them.

    Where the problem as it was traced has no plan within the budget, its smallest plan is the first.
    """
    try:
        answer, named = ask(options)
        refusal = None
    except Refusal as error:
        refusal = error
        answer, named = ask(dataclasses.replace(options, budget="smallest"))
    found = later(problem, answer["plan"], named)
    if refusal is not None and (found is None or refusal.budget is None):
        raise refusal
    if found is None:
        return answer, named
    before = problem.ops
    problem.ops, unread = found
    # A share of the peak is one of the graph as it was traced.
    bytes_ = answer["budget_bytes"] if refusal is None else refusal.budget
    again = dataclasses.replace(options, budget=f"{bytes_}B") if options.budget.endswith("x") else options
    try:
        second, second_named = ask(again)
    except Refusal:
        if refusal is not None:
            raise
    else:
        # The runs that nobody reads are not written.
        if refusal is not None or _cost(second, options) < _cost(answer | {"makespan_ns": answer["makespan_ns"] - unread}, options):
            return second | {"as_it_is_bytes": answer["as_it_is_bytes"]}, second_named
    problem.ops = before
    return answer, named


def effort_of(problem: Problem, options: Options) -> int:
    """The effort of the search in percent."""
    if options.effort is not None:
        return options.effort
    return max(round(_EFFORT * min(1.0, (_OPERATORS / max(len(problem.ops), 1)) ** 2)), 1)


def _cost(answer: dict[str, Any], options: Options) -> tuple[int, int]:
    """Time and bytes, first the one that the goal leaves open."""
    costs = answer["makespan_ns"], answer["peak_bytes"]
    return costs[::-1] if options.budget == "smallest" or options.budget.endswith("slower") else costs


def _ask(problem: Problem, options: Options, name: str, earlier: int, as_it_is: int | None = None) -> tuple[dict[str, Any], list[int]]:
    """The library's answer, and the storage of each tensor of its problem. Its bytes are those of this graph, but for the budget, which contains
    those that other graphs hold. `as_it_is`: the peak of the graph, where that is not the problem's."""
    instance, named = problem.instance()
    facts = problem.target.facts
    asked = {
        "budget": options.budget,
        "as_it_is": None if as_it_is is None else as_it_is + earlier,
        "resident": problem.outside_bytes() + earlier,
        "device": facts["device_bytes"],
        "host": facts["host_bytes"],
        "effort": effort_of(problem, options),
    }
    try:
        answer = json.loads(_lmsc.plan_problem(instance, asked))
    except Refusal as refusal:
        raise _in_one_sentence(refusal, problem, options, name, earlier) from None
    return answer | {fact: answer[fact] - earlier for fact in ("as_it_is_bytes", "peak_bytes")}, named


def _ask_at_least(problem: Problem, options: Options, name: str, earlier: int) -> tuple[dict[str, Any], list[int]]:
    """As `_ask`, for a graph without a backward pass: of a share of its own peak, which may have nothing to leave, its smallest plan keeps what can be
    kept."""
    try:
        return _ask(problem, options, name, earlier)
    except Refusal:
        if not options.budget.endswith("x"):
            raise
        return _ask(problem, dataclasses.replace(options, budget="smallest"), name, earlier)


def _bytes_held(forward: fx.Graph, problem: Problem) -> int:
    """The bytes of the device that the results of the forward graph and what it saves take, without parameters and inputs."""
    results = [node for node in next(iter(forward.find_nodes(op="output"))).args[0] if isinstance(node, fx.Node)]
    inputs = {tensor.untyped_storage()._cdata for node in forward.find_nodes(op="placeholder") for tensor in _on_device(node, problem)}
    made = {
        tensor.untyped_storage()._cdata: bytes_of(tensor)
        for node in results
        if node.target is not torch.ops.lmsc.offload.default
        for tensor in _on_device(node, problem)
    }
    return sum(bytes_ for storage, bytes_ in made.items() if storage not in inputs)


def _on_device(node: fx.Node, problem: Problem) -> list[torch.Tensor]:
    found = tensors(node.meta.get("val"))
    return [tensor for tensor in found if tensor.layout == torch.strided and tensor.device.type == problem.device.type]


def _in_one_sentence(refusal: Refusal, problem: Problem, options: Options, name: str, earlier: int) -> Refusal:
    smallest = refusal.smallest_budget
    help_ = f"the smallest budget that has a plan is {size(smallest)} ({smallest} bytes)" if smallest else str(refusal)
    beside = f" and {size(earlier)} are held by other graphs of the step" if earlier else ""
    resident = size(problem.resident_bytes())
    budget = size(int(options.budget[:-1])) if options.budget[:-1].isdigit() and options.budget.endswith("B") else options.budget
    said = Refusal(f"{refusal.code}: {name} does not fit {budget}: {help_}, of which {resident} are parameters and inputs{beside}")
    for fact in ("code", "node", "needed", "budget", "smallest_budget"):
        setattr(said, fact, getattr(refusal, fact))
    return said


def _facts(problem: Problem, answer: dict[str, Any], name: str) -> Plan:
    plan = answer["plan"]
    runs = [problem.ops[run["op"]] for run in plan["ops"]]
    times = collections.Counter(op.node for op in runs if op.kind == "run")
    again = {node: count - 1 for node, count in times.items() if count > 1}
    left = [plan["pieces"][step["out"]] for step in plan["steps"] if "out" in step]
    return Plan(
        name=name,
        budget=answer["budget_bytes"],
        as_it_is=answer["as_it_is_bytes"],
        peak=answer["peak_bytes"],
        resident=problem.resident_bytes(),
        operators=len(problem.ops),
        out=tuple(end - begin for _, begin, end in left),
        again={node.name: count for node, count in again.items()},
        random_again=sum(map(is_rng_op, again)),
        seconds=answer["makespan_ns"] * 1e-9,
        seconds_as_it_is=answer["as_it_is_ns"] * 1e-9,
        target=problem.target.name,
        symbolic=_symbols(problem.graph),
    )


def _symbols(graph: fx.Graph) -> bool:
    return any(isinstance(node.meta.get("val"), torch.SymInt) for node in graph.nodes)


def _one_plan_a_size(graph: fx.Graph) -> None:
    """Ties the graph to the sizes for which it was traced: for others PyTorch compiles, and lmsc plans, anew."""
    values = [node.meta.get("val") for node in graph.find_nodes(op="placeholder")]
    empty = {str(extent) for value in values if isinstance(value, torch.Tensor) and bytes_of(value) == 0 for extent in value.shape}
    for value in values:
        for size_ in (value,) if isinstance(value, torch.SymInt) else getattr(value, "shape", ()):
            # Of tensors without bytes only the shape counts: PyTorch keeps the lengths of ragged rows so. They may not be tied.
            if isinstance(size_, torch.SymInt) and size_.node.has_hint() and not size_.node.is_nested_int() and str(size_) not in empty:
                int(size_)
