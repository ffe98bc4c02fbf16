"""Waits for collectives that come later: PyTorch's trace waits for each collective right where it starts, so nothing would run beside it.

A collective starts at its place in the trace, or earlier, and is waited for where its first reader stands; a reduction at the place of the next one at
the latest, because it holds its operand until then. So this takes more bytes than the trace, and less time.
"""

from __future__ import annotations

from .problem import Op, Problem, is_collective, is_gather, started_by

__all__ = ["later_waits"]


def later_waits(problem: Problem) -> list[Op]:
    """The operators of the problem, each wait right before the first operator that needs it."""
    found: list[Op] = []
    open_: list[tuple[Op, set[int], bool]] = []  # waits, with the storages that they wait for or hold, and whether for a reduction
    for op in problem.ops:
        if op.kind == "wait":
            started = started_by(op.node)
            open_.append((op, set(op.reads), not all(map(is_gather, started))))
            continue
        reduces = op.kind == "run" and is_collective(op.node) and not is_gather(op.node)
        touched = {*op.reads, *op.makes, *op.changes}
        ends = op.kind in ("between", "gradients")
        for waiting in list(open_):
            wait, storages, for_reduction = waiting
            if ends or reduces and for_reduction or not storages.isdisjoint(touched):
                found.append(wait)
                open_.remove(waiting)
        found.append(op)
    found += (wait for wait, _, _ in open_)
    return found
