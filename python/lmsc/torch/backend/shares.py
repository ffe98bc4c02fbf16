"""What a graph costs within a share of its step's budget.

A share limits the bytes of a graph at any moment, and those that it holds between its passes. The second limit is stated to the planner as a
workspace at the end of the forward pass: there the plan must leave as many bytes as other graphs get.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..._lmsc import Refusal
from .problem import Problem

__all__ = ["Cost", "Costs", "Fixed", "Share"]


@dataclass(frozen=True)
class Share:
    """The most bytes of a graph at any moment, parameters and inputs included, and those that it holds between its passes: saved tensors and
    results."""

    bytes: int
    held: int


@dataclass(frozen=True)
class Cost:
    """A share, and the modelled seconds of a plan within it."""

    share: Share
    seconds: float


class Fixed:
    """The cost of a graph that keeps its plan."""

    def __init__(self, cost: Cost):
        self.as_it_is = self.smallest = cost
        self.choices = [cost]

    def within(self, _share: Share) -> Cost | None:
        return None


class Costs:
    """The costs of a graph within shares between its smallest (level 0) and the graph as it is (level `levels`), for each of the two limits."""

    #: With twice as many, 59 plans were asked for in place of 27, and no step of two halves within half of its memory was quicker.
    levels = 2

    def __init__(self, problem: Problem, ask: Callable[[str, int], dict[str, Any]]):
        """`ask(budget, spare)`: the library's answer to the problem, whose plan leaves `spare` bytes of its peak free between the passes."""
        self.problem, self.ask, self.ops = problem, ask, problem.ops
        self.resident = problem.resident_bytes()
        self.whole = Share(problem.as_it_is_bytes(), problem.held_bytes())
        self.found: dict[Share, Cost | None] = {}

    @functools.cached_property
    def smallest(self) -> Cost:
        """A plan of few bytes at any moment, which holds as few as it can between the passes."""
        spare = self.whole.bytes
        held = self._asked("smallest", spare)["peak_bytes"] - self.resident - spare
        return self._cost("smallest", max(self._least["peak_bytes"] - self.resident - held, 0))

    @functools.cached_property
    def as_it_is(self) -> Cost:
        """The graph without a plan."""
        return Cost(self.whole, self._least["as_it_is_ns"] * 1e-9)

    @functools.cached_property
    def _least(self) -> dict[str, Any]:
        return self._asked("smallest", 0)

    @functools.cached_property
    def choices(self) -> list[Cost]:
        """The costs that no other beats, the least time first."""
        levels = itertools.product(range(self.levels + 1), repeat=2)
        found = sorted(filter(None, (self.smallest, *itertools.starmap(self.of, levels))), key=lambda cost: (cost.seconds, cost.share.bytes, cost.share.held))
        best: list[Cost] = []
        for cost in found:
            if not any(one.share.bytes <= cost.share.bytes and one.share.held <= cost.share.held for one in best):
                best.append(cost)
        return best

    def of(self, bytes_level: int, held_level: int) -> Cost | None:
        """The cost at these levels; None if there is no plan."""
        limits = (self._least["peak_bytes"], self.whole.bytes, bytes_level), (self.smallest.share.held, self.whole.held, held_level)
        return self.within(Share(*(a + level * max(b - a, 0) // self.levels for a, b, level in limits)))

    def within(self, share: Share) -> Cost | None:
        """The cost of a plan within the share; None if there is none."""
        if share.bytes >= self.whole.bytes and share.held >= self.whole.held:
            return self.as_it_is
        if share not in self.found:
            try:
                self.found[share] = self._cost(f"{share.bytes}B", spare(share, self.resident))
            except Refusal:
                self.found[share] = None
        return self.found[share]

    def _cost(self, budget: str, spare: int) -> Cost:
        answer = self._asked(budget, spare)
        bytes_ = answer["peak_bytes"]
        return Cost(Share(bytes_, bytes_ - self.resident - spare), answer["makespan_ns"] * 1e-9)

    def _asked(self, budget: str, spare: int) -> dict[str, Any]:
        """The answer to the problem as it was traced: its plan may since have moved operators."""
        moved, self.problem.ops = self.problem.ops, self.ops
        try:
            return self.ask(budget, spare)
        finally:
            self.problem.ops = moved


def spare(share: Share, resident: int) -> int:
    """The bytes of the share that a plan leaves free between the passes."""
    return max(share.bytes - resident - share.held, 0)
