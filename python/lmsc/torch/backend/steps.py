"""The graphs of one step, which share its budget: where Dynamo breaks a model, DistributedDataParallel cuts it, or several modules are compiled.

Forward passes follow one another, then the backward passes in the other order. While a pass of one graph runs, the step holds the parameters of
all graphs, whatever the earlier forward passes have saved or given as results, and, in the backward pass, the gradients of the later graphs. The first
step runs within the smallest plans and shows which graphs there are, how often each runs, and which tensors they share. Then the budget is divided:
each graph gets a share, of the bytes at any moment and of those that it holds between its passes, such that no moment of the step exceeds the budget.
"""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..._lmsc import Refusal
from .planning import size
from .shares import Cost, Costs, Fixed, Share

__all__ = ["Call", "Graph", "Moment", "Pass", "Step", "divided", "peak", "refusal", "shares_of", "step_of"]


class Graph(Protocol):
    """A compiled graph, as its step sees it."""

    #: No other graph has it.
    number: int
    #: The budget as it was given.
    goal: str
    #: Whether nothing told of further graphs of the step when it was compiled.
    is_alone: bool
    #: The plan in force.
    plan: Any
    #: What the graph costs within shares; None once it keeps its plan.
    costs: Costs | None
    #: The bytes of the parameters and buffers of its latest call, by their storages.
    lasting: Mapping[int, int]

    def budget(self, as_it_is: int) -> int:
        """The bytes of the step's budget, if the step takes so many without a plan; 0 for a budget that is no number of bytes."""

    def take(self, share: Share, budget: int, seconds: float) -> None:
        """Has the graph planned within the share before its next call, where a plan takes at most these seconds."""


@dataclass(frozen=True)
class Call:
    """One forward pass: the bytes of its tensors, by their storages. A result that is freed may give its memory to an input of a later call: counted as
    one it is right, too."""

    graph: Graph
    lasting: Mapping[int, int]
    inputs: Mapping[int, int]
    gradients: Mapping[int, int]
    results: Mapping[int, int] = field(default_factory=dict)


class Pass:
    """A forward pass whose saved tensors are held, as long as autograd keeps this object and has not begun the backward pass."""

    def __init__(self, call: Call):
        self.call, self.begun = call, False

    def begin(self, *_: Any) -> None:
        self.begun = True


@dataclass(frozen=True)
class Moment:
    """The passes of one call: the graph, and the bytes of others beside it, but for those that earlier graphs hold by their shares."""

    graph: int
    beside: int


def moments(chain: Sequence[Call], others: Iterable[Mapping[int, int]] = ()) -> list[Moment]:
    """The moments of forward passes that follow one another. `others`: the parameters and buffers of further graphs."""
    found = []
    lasting = _union([*others, *(call.lasting for call in chain)])
    for place, call in enumerate(chain):
        own = {**call.lasting, **call.inputs}
        earlier = chain[:place]
        results = _union(one.results for one in earlier)
        given = _union(one.inputs for one in earlier)
        beside = sum(bytes_ for storage, bytes_ in lasting.items() if storage not in own)
        beside += sum(bytes_ for storage, bytes_ in given.items() if storage not in own and storage not in results)
        # Inputs that earlier graphs gave as results are part of what these hold.
        beside -= sum(bytes_ for storage, bytes_ in results.items() if storage in call.inputs)
        beside += sum(_union(one.gradients for one in chain[place + 1 :]).values())
        found.append(Moment(call.graph.number, beside))
    return found


def _union(kinds: Iterable[Mapping[int, int]]) -> dict[int, int]:
    return {storage: bytes_ for kind in kinds for storage, bytes_ in kind.items()}


# The division.


def peaks(chain: Sequence[Moment], shares: Mapping[int, Share]) -> list[int]:
    """The most bytes at once at each moment."""
    held = itertools.accumulate((shares[moment.graph].held for moment in chain), initial=0)
    return [shares[moment.graph].bytes + earlier + moment.beside for moment, earlier in zip(chain, held, strict=False)]


def peak(chain: Sequence[Moment], shares: Mapping[int, Share]) -> int:
    """The most bytes at once of all."""
    return max(peaks(chain, shares))


class Division:
    """The choice of a share for each graph of the calls."""

    def __init__(self, chain: Sequence[Moment], costs: Mapping[int, Costs | Fixed]):
        self.chain, self.costs = chain, costs
        self.runs = Counter(moment.graph for moment in chain)
        self.chosen = {graph: costs[graph].as_it_is for graph in self.runs}

    def shares(self) -> dict[int, Share]:
        return {graph: cost.share for graph, cost in self.chosen.items()}

    def seconds(self) -> float:
        return sum(count * self.chosen[graph].seconds for graph, count in self.runs.items())

    def peak(self) -> int:
        return peak(self.chain, self.shares())

    def fit(self, budget: int) -> bool:
        """Chooses shares with which no moment exceeds the budget: from the smallest, each two graphs take their best ones, until no two have better. Then one
        graph takes a quicker choice, and another gives just what that needs; what is left over goes to the first that gets quicker. Whether there are any."""
        if self.shrink() > budget:
            return False
        pairs = list(itertools.combinations(self.runs, 2)) or [(graph, graph) for graph in self.runs]
        while any([self._improve(first, second, budget) for first, second in pairs]):
            pass
        while any([self._trade(giving, taking, budget) for giving, taking in itertools.permutations(self.runs, 2)]):
            pass
        for graph, costs in self.costs.items():
            cost = costs.within(room(self.chain, self.shares(), budget, graph))
            if cost is not None and cost.seconds < self.chosen[graph].seconds:
                self.chosen[graph] = cost
        return True

    def shrink(self) -> int:
        """Chooses the smallest shares, and returns their peak: of graphs that hold as little as they can, each takes what makes the peak smallest."""
        self.chosen = {graph: self.costs[graph].smallest for graph in self.runs}
        least = self.peak()
        for graph, costs in self.costs.items():
            for cost in costs.choices:
                if (bytes_ := peak(self.chain, self.shares() | {graph: cost.share})) < least:
                    self.chosen[graph], least = cost, bytes_
        return least

    def _improve(self, first: int, second: int, budget: int) -> bool:
        """Takes the best choice for two graphs; whether that is better."""

        def seconds(pair: tuple[Cost, ...]) -> float:
            return sum(self.runs[graph] * cost.seconds for graph, cost in zip(graphs, pair, strict=True))

        graphs = (first,) if first == second else (first, second)
        now = seconds(tuple(self.chosen[graph] for graph in graphs))
        pairs = itertools.product(*(self.costs[graph].choices for graph in graphs))
        for pair in sorted((pair for pair in pairs if seconds(pair) < now), key=seconds):
            trial = self.shares() | {graph: cost.share for graph, cost in zip(graphs, pair, strict=True)}
            if peak(self.chain, trial) <= budget:
                self.chosen |= zip(graphs, pair, strict=True)
                return True
        return False

    def _trade(self, giving: int, taking: int, budget: int) -> bool:
        """Has a graph take its next quicker choice, and another what that leaves; whether that is better."""
        quicker = [cost for cost in self.costs[taking].choices if cost.seconds < self.chosen[taking].seconds]
        if not quicker:
            return False
        trial = self.shares() | {taking: quicker[-1].share, giving: self.costs[giving].smallest.share}
        if peak(self.chain, trial) > budget:
            return False
        cost = self.costs[giving].within(room(self.chain, trial, budget, giving))
        if cost is None:
            return False
        now, then = (self.runs[giving] * a.seconds + self.runs[taking] * b.seconds for a, b in (
            (self.chosen[giving], self.chosen[taking]), (cost, quicker[-1])
        ))  # fmt: skip
        if then < now:
            self.chosen |= {giving: cost, taking: quicker[-1]}
        return then < now


def room(chain: Sequence[Moment], shares: Mapping[int, Share], budget: int, graph: int) -> Share:
    """The most that the graph may take while the others keep their shares, which leave it at least its own."""
    before = 0
    free: list[int] = []
    for moment, bytes_ in zip(chain, peaks(chain, shares), strict=True):
        if before and moment.graph != graph:
            free.append((budget - bytes_) // before)
        before += moment.graph == graph
    runs = before
    own = [bytes_ for moment, bytes_ in zip(chain, peaks(chain, shares), strict=True) if moment.graph == graph]
    # Of a graph that runs several times, half of what its own moments leave goes to what it holds.
    if runs > 1:
        free.append((budget - max(own)) // (2 * (runs - 1)))
    held = shares[graph].held + min(free, default=budget)
    with_held = dict(shares) | {graph: Share(shares[graph].bytes, held if free else shares[graph].held)}
    most = max(bytes_ for moment, bytes_ in zip(chain, peaks(chain, with_held), strict=True) if moment.graph == graph)
    return Share(shares[graph].bytes + budget - most, held)


def divided(chain: Sequence[Moment], costs: Mapping[int, Costs | Fixed], goal: str, budget_of: Callable[[int], int]) -> tuple[Division, int]:
    """The division of the step's budget, and the budget. `budget_of` a peak without a plan: the budget in bytes.

    Raises:
        Refusal: The graphs take more at their smallest.
    """
    division = Division(chain, costs)
    whole, still = division.peak(), division.seconds()
    least = Division(chain, costs).shrink()
    budget = budget_of(whole)
    if goal == "smallest":
        budget = least
    elif goal.endswith("slower"):
        longest = still * (1 + float(goal.split("%")[0]) / 100)
        budget, enough = least, whole
        while enough - budget > max(whole // 1000, 1):  # The smallest that keeps to the time is between both.
            trial = Division(chain, costs)
            middle = (budget + enough) // 2
            if trial.fit(middle) and trial.seconds() <= longest:
                enough = middle
            else:
                budget = middle
        budget = enough
    if not division.fit(budget):
        reason = f"the graphs of the step take {least} bytes at their smallest plans, of a budget of {budget}: {len(chain)} that run"
        raise refusal(reason, least, budget, least)
    return division, budget


def shares_of(division: Division, budget: int) -> dict[int, Share]:
    """The shares of the graphs: what the budget leaves free goes to those that take time, the first first."""
    shares = division.shares()
    for graph, costs in division.costs.items():
        if division.chosen[graph].seconds > costs.as_it_is.seconds and not isinstance(costs, Fixed):
            shares[graph] = room(division.chain, shares, budget, graph)
    return shares


# The step.


@dataclass
class Step:
    """The graphs of one model, or of several that were compiled with the same options."""

    #: The options: while they are there, no other dictionary has their identity.
    options: dict[str, Any] | None
    graphs: list[weakref.ref[Any]] = field(default_factory=list)
    passes: list[weakref.ref[Pass]] = field(default_factory=list)
    #: The calls that were held at once, by their graphs: those of which the budget is not divided yet.
    chains: dict[tuple[int, ...], list[Call]] = field(default_factory=dict)
    #: The graphs of calls of which it is divided.
    settled: set[tuple[int, ...]] = field(default_factory=set)
    #: The calls of which it was divided last, the budget, and the graphs that are not planned anew yet.
    latest: tuple[list[Moment], int, set[int]] = field(default_factory=lambda: ([], 0, set()))

    def add(self, graph: Graph) -> None:
        self.graphs.append(weakref.ref(graph))

    def alive(self) -> list[Any]:
        """The graphs that are still there."""
        found = [(reference, graph) for reference in self.graphs if (graph := reference()) is not None]
        self.graphs = [reference for reference, _ in found]
        return [graph for _, graph in found]

    def lasting(self) -> dict[int, int]:
        """The bytes of the parameters and buffers of all graphs, by their storages."""
        return _union(graph.lasting for graph in self.alive())

    def held(self) -> list[Call]:
        """The calls whose backward passes have not begun, in their order."""
        found = [(reference, one) for reference in self.passes if (one := reference()) is not None and not one.begun]
        self.passes = [reference for reference, _ in found]
        return [one.call for _, one in found]

    def beside(self, call: Call) -> int:
        """The bytes that the other graphs hold while this call runs."""
        held = self.held()
        *_, last = moments([*held, call], [self.lasting()])
        return last.beside + sum(one.graph.plan.held for one in held)

    def begin(self, call: Call, budget: int) -> None:
        """Before a call: divides the budget, if a step has shown new graphs. `budget`: that of the machine, or 0.

        Raises:
            Refusal: The graphs do not fit together.
        """
        held = self.held()
        if not held and self.chains:
            self._divide()
        key = tuple(one.graph.number for one in (*held, call))
        if key in self.settled or not budget:
            return
        chain = [*held, call]
        shares = {one.graph.number: Share(one.graph.plan.peak, one.graph.plan.held) for one in chain}
        most = peak(moments(chain, [self.lasting()]), shares)
        if most > budget and len(chain) > 1:
            whole = [one.graph.plan.name for one in held if one.graph.is_alone]
            raise refusal(
                f"{call.graph.plan.name} does not fit: {len(chain)} graphs of the step take {most} bytes of a budget of {budget}, with those that are "
                "held by other graphs of the step" + (f'; {whole[0]} was planned as if it were alone: the option "several" has it planned with the others' if whole else ""),
                most, budget, most,
            )  # fmt: skip

    def add_pass(self, one: Pass) -> None:
        """After a call."""
        chain = [*self.held(), one.call]
        self.passes.append(weakref.ref(one))
        key = tuple(call.graph.number for call in chain)
        if key not in self.settled:
            self.chains.pop(key[:-1], None)
            self.chains[key] = chain

    def together(self) -> tuple[int, float] | None:
        """The most bytes at once of the calls of which the budget was divided last, by the plans of their graphs, and by how many percent they take longer
        than without plans. None if a graph is gone."""
        plans = {one.number: one.plan for one in self.alive()}
        chain, _, _ = self.latest
        if not chain or not all(moment.graph in plans for moment in chain):
            return None
        most = peak(chain, {moment.graph: Share(plans[moment.graph].peak, plans[moment.graph].held) for moment in chain})
        seconds, still = (sum(getattr(plans[moment.graph], name) for moment in chain) for name in ("seconds", "seconds_as_it_is"))
        return most, 100 * (seconds / still - 1) if still else 0.0

    def told(self, graph: Graph) -> str | None:
        """Of the graph that is planned anew as the last of its step: what the step takes."""
        chain, budget, waiting = self.latest
        waiting.discard(graph.number)
        if waiting or (together := self.together()) is None:
            return None
        most, slower = together
        return f"the step runs {len(chain)} graphs, which together take at most {size(most)} of {size(budget)}; modelled {slower:.1f} % slower"

    def is_undivided(self) -> bool:
        """Whether the next step begins with a division."""
        return any(map(_is_divided, self.chains.values()))

    def _divide(self) -> None:
        alive = {graph.number: graph for graph in self.alive()}
        for key, chain in list(self.chains.items()):
            graphs = {graph: alive[graph] for graph in key if graph in alive}
            if len(graphs) == len(set(key)):
                if _is_divided(chain):
                    self._divide_chain(chain, graphs)
                    for graph in graphs.values():
                        graph.costs = None
                self.settled |= {key[: count + 1] for count in range(len(key))}
            del self.chains[key]  # Not of a step that is refused: it is so with each call.

    def _divide_chain(self, chain: list[Call], graphs: dict[int, Any]) -> None:
        """Gives each graph of the calls its share."""
        known = moments(chain, [self.lasting()])
        costs = {name: graph.costs or _as_planned(graph.plan) for name, graph in graphs.items()}
        division, budget = divided(known, costs, chain[0].graph.goal, chain[0].graph.budget)
        own = {name: share for name, share in shares_of(division, budget).items() if not isinstance(costs[name], Fixed)}
        self.latest = known, budget, set(own)
        for name, share in own.items():
            graphs[name].take(share, budget, division.chosen[name].seconds)


def _is_divided(chain: Sequence[Call]) -> bool:
    """Whether the calls need a division: a graph that runs alone, and was planned so, has the whole budget."""
    return len(chain) > 1 or chain[0].graph.plan.first


def _as_planned(plan: Any) -> Fixed:
    return Fixed(Cost(Share(plan.peak, plan.held), plan.seconds))


def refusal(reason: str, needed: int, budget: int, smallest_budget: int) -> Refusal:
    """The refusal of a step that needs more bytes than the budget."""
    found = Refusal(f"LMS0101: {reason}")
    facts = {"code": "LMS0101", "helps": (), "node": None, "needed": needed, "budget": budget, "smallest_budget": smallest_budget}
    for name, fact in facts.items():
        setattr(found, name, fact)
    return found


_STEPS: weakref.WeakValueDictionary[int, Step] = weakref.WeakValueDictionary()


def step_of(options: dict[str, Any] | None) -> Step:
    """The step of the graphs that were compiled with these options: Dynamo gives the same dictionary for each graph of a model."""
    step = _STEPS.get(id(options))
    if options is None or step is None:
        step = Step(options)
    if options is not None:
        _STEPS[id(options)] = step
    return step
