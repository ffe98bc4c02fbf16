"""Progress of long calls: a bar in a terminal, or calls of the caller's function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

Choice: TypeAlias = "bool | Callable[[str, float], object] | Progress | None"
"""None: a bar if stderr is a terminal and tqdm is installed. True: a bar where tqdm is installed. False: nothing. A function is called with
the name of the phase and the part of it that is done, from 0 to 1."""

EXPORT = ("capture", "translate", "write")
"""The phases of `export_step`."""

COMPILE = ("plan",)
"""The phases of `compile`. Its part is that of the search for a plan; reading and proving take little beside it."""


class Progress:
    """The phases of one call, in their order."""

    def __init__(self, choice: Choice, phases: Sequence[str]) -> None:
        self._phases = list(phases)
        self._tell: Callable[[str, float], object] | None = choice if callable(choice) else None
        self._bar: Any = _bar(len(self._phases)) if choice is True or choice is None and _is_terminal() else None

    def __call__(self, phase: str, share: float = 0.0) -> None:
        """Says that so large a part of a phase is done, and that all phases before it have ended."""
        if self._tell is not None:
            self._tell(phase, share)
        if self._bar is not None:
            self._bar.set_description(phase, refresh=False)
            self._bar.n = round(self._phases.index(phase) + share, 2)
            self._bar.refresh()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._phases:
            self(self._phases[-1], 1.0)
        if self._bar is not None:
            self._bar.close()


class _Inner(Progress):
    """Phases that are the last of an outer call."""

    def __init__(self, outer: Progress) -> None:
        super().__init__(outer, ())


def within(choice: Choice, phases: Sequence[str]) -> Progress:
    """The progress of a call that may be part of another, whose phases end with these."""
    return _Inner(choice) if isinstance(choice, Progress) else Progress(choice, phases)


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _bar(phases: int) -> Any:
    """A bar, if tqdm is installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return tqdm(total=phases, leave=False, file=sys.stderr, bar_format="{desc}: {bar} {n:g} of {total} [{elapsed}]")
