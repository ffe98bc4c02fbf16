"""The graphs of one step: where Dynamo breaks a model, the budget is that of all its graphs together.

Forward passes run in the order in which the graphs are compiled, backward passes in the other order. While the passes of a graph run, its caller
holds the parameters of all graphs, whatever the forward passes before it have saved, and, in its backward pass, the gradients of the graphs after
it. The first graph is planned before the others are known, so each later one gets the bytes that are left; if all of them do not fit, the step is
refused.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._lmsc import Refusal

__all__ = ["Share", "Step", "refusal", "step_of"]


@dataclass(frozen=True)
class Share:
    """The bytes of a graph that count while another graph of its step runs."""

    name: str
    #: The planned peak and the peak without a plan, the graph's own parameters and inputs included.
    peak: int
    as_it_is: int
    #: The bytes that stay between the passes of the graph: saved tensors and results.
    held: int
    #: The bytes of the gradients.
    gradients: int
    #: The bytes of parameters and buffers, by their storages: graphs may share them.
    lasting: Mapping[int, int]

    def __or__(self, other: Share) -> Share:
        """The larger of both: two graphs of one frame, such as one for each size, do not run in one step."""
        larger = (max(getattr(self, name), getattr(other, name)) for name in ("peak", "as_it_is", "held", "gradients"))
        return Share(other.name, *larger, {**self.lasting, **other.lasting})


@dataclass
class Step:
    """The graphs of one compiled model, by the frames of Python that they were traced from."""

    #: The options of the model: while they are there, no other dictionary has their identity.
    options: dict[str, Any] | None
    shares: dict[int | None, list[tuple[weakref.ref[Any], Share]]] = field(default_factory=dict)

    def add(self, frame: int | None, plan: Any, share: Share) -> None:
        """Adds the graph, which counts as long as its plan is there."""
        self.shares.setdefault(frame, []).append((weakref.ref(plan), share))

    def _alive(self) -> dict[int | None, Share]:
        found: dict[int | None, Share] = {}
        for frame, shares in self.shares.items():
            for plan, share in shares:
                if plan() is not None:
                    found[frame] = found[frame] | share if frame in found else share
        return found

    def held_before(self, frame: int | None, lasting: Mapping[int, int]) -> int:
        """The bytes that the graphs of earlier frames hold while this one runs, which has these parameters and buffers."""
        alive = self._alive()
        return _beside(list(alive.values())[: list(alive).index(frame)] if frame in alive else list(alive.values()), [], lasting)

    def lasting(self) -> dict[int, int]:
        """The bytes of the parameters and buffers of all graphs, by their storages."""
        return {storage: bytes_ for share in self._alive().values() for storage, bytes_ in share.lasting.items()}

    def graphs(self) -> int:
        """The number of graphs."""
        return len(self._alive())

    def peak(self) -> int:
        """The most bytes at once of all graphs, if each forward pass runs before each backward pass."""
        return max(share.peak + beside for share, beside in self._with_others())

    def _with_others(self) -> list[tuple[Share, int]]:
        """Each graph, and the bytes of the others while it runs."""
        alive = list(self._alive().values())
        return [(share, _beside(alive[:place], alive[place + 1 :], share.lasting)) for place, share in enumerate(alive)]

    def check(self, budget: int) -> None:
        """Raises `Refusal` if the graphs together take more than the budget."""
        together = self.peak()
        if together <= budget:
            return
        enough = max(share.as_it_is + beside for share, beside in self._with_others())
        raise refusal(
            f"the step is {self.graphs()} graphs, which together take {together} bytes of a budget of {budget}: the first was planned before "
            f'the others were known; make it one graph (fullgraph=True tells where it breaks), or give "smallest" or {enough} bytes',
            together, budget, enough,
        )  # fmt: skip


def refusal(reason: str, needed: int, budget: int, smallest_budget: int) -> Refusal:
    """The refusal of a step that needs more bytes than the budget."""
    found = Refusal(f"LMS0101: {reason}")
    facts = {"code": "LMS0101", "helps": (), "node": None, "needed": needed, "budget": budget, "smallest_budget": smallest_budget}
    for name, fact in facts.items():
        setattr(found, name, fact)
    return found


def _beside(earlier: list[Share], later: list[Share], lasting: Mapping[int, int]) -> int:
    """The bytes of these graphs while one with these parameters and buffers runs between them."""
    others = {storage: bytes_ for share in (*earlier, *later) for storage, bytes_ in share.lasting.items() if storage not in lasting}
    return sum(others.values()) + sum(share.held for share in earlier) + sum(share.gradients for share in later)


_STEPS: weakref.WeakValueDictionary[int, Step] = weakref.WeakValueDictionary()


def step_of(options: dict[str, Any] | None) -> Step:
    """The step of the model that was compiled with these options: Dynamo gives the same dictionary for each of its graphs."""
    step = _STEPS.get(id(options))
    if options is None or step is None:
        step = Step(options)
    if options is not None:
        _STEPS[id(options)] = step
    return step
