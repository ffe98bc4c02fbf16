"""First runs that nobody reads: where a plan drops all results of an operator before their first use and runs it again for that use, the operator
needs no other run. The problem gets it there, so that no plan holds or computes what is dropped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from torch._functorch.partitioners import is_rng_op

from .problem import Op, Problem, is_collective, other_form

__all__ = ["later"]


def later(problem: Problem, plan: dict[str, Any], named: Sequence[int]) -> tuple[list[Op], int] | None:
    """The operators of the problem, those whose first runs the plan does not read at the place of their first run that it reads, and the nanoseconds of
    all runs that it does not read. None if it reads all first runs.
    """
    runs = plan["ops"]
    read = _runs_that_are_read(problem, plan, named)
    places: dict[int, int] = {}
    for place, run in enumerate(runs):
        if place in read:
            places.setdefault(run["op"], place)
    firsts = {run["op"]: place for place, run in reversed(list(enumerate(runs)))}
    if all(places.get(op, place) == place for op, place in firsts.items()):
        return None
    begins = next(place for place, run in enumerate(runs) if problem.ops[run["op"]].kind == "gradients")
    order = sorted((places.get(op, place), op) for op, place in firsts.items())
    unread = sum(problem.ops[run["op"]].seconds for place, run in enumerate(runs) if place not in read)
    return [dataclasses.replace(problem.ops[op], phase=int(place >= begins)) for place, op in order], int(unread * 1e9)


def _runs_that_are_read(problem: Problem, plan: dict[str, Any], named: Sequence[int]) -> set[int]:
    """The places of the runs that a later run needs, or the end of the step, or that must stay where they are."""
    kept = problem.kept()
    lasts = {named[tensor]: index for index, tensor in enumerate(plan["tensors"])}
    needed = {index for storage, index in lasts.items() if storage in kept}
    found = set()
    for place, run in reversed(list(enumerate(plan["ops"]))):
        op = problem.ops[run["op"]]
        if not _may_come_later(op) or not needed.isdisjoint(run.get("produces", ())):
            found.add(place)
            needed.update(run.get("reads", ()))
    return found


def _may_come_later(op: Op) -> bool:
    """Whether nothing but its readers needs the operator's first run: a random one keeps its place among the others, and a collective, too."""
    return op.kind == "run" and op.again and not is_rng_op(op.node) and not is_collective(op.node) and other_form(op.node) is None
