"""A compiled step on a device."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from . import _arrays, _lmsc


class Session:
    """A compiled step on a device, with its state, which stays there from step to step.

    Values are given by name: NumPy arrays, any object with DLPack, numbers or lists. They are copied to the device, on a GPU directly
    from arrays that are on the same one, and results come as NumPy arrays. A step runs without the interpreter's lock; Ctrl-C ends a loop after the step.
    """

    def __init__(self, session: _lmsc.Session) -> None:
        self._session = session
        self._inputs, self._variables = ({n: (e, tuple(d)) for n, e, d in t} for t in (session.inputs(), session.variables()))
        self._outputs = [n for n, _, _ in session.outputs()]
        self._gpu = session.gpu()
        self._elements = {n: e for n, (e, _) in {**self._inputs, **self._variables}.items()}

    @property
    def inputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Element type and extents of the inputs that may be set before each step, by name."""
        return dict(self._inputs)

    @property
    def variables(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Element type and extents of the variables that a step changes and keeps, by name."""
        return dict(self._variables)

    @property
    def outputs(self) -> list[str]:
        """The names of a step's outputs."""
        return list(self._outputs)

    @property
    def device(self) -> str:
        """The device that runs the step: `host`, or the vendor's name of a GPU."""
        return self._session.device()

    @property
    def steps(self) -> int:
        """How many steps have been run, those before a checkpoint included."""
        return self._session.steps()

    @steps.setter
    def steps(self, steps: int) -> None:
        self._session.set_steps(steps)

    @property
    def seed(self) -> int:
        """The seed of random operators, which also draw from their node and the number of the step."""
        return self._session.seed()

    @seed.setter
    def seed(self, seed: int) -> None:
        self._session.set_seed(seed)

    def step(self, inputs: Mapping[str, Any] | None = None, *, fetch: Iterable[str] | None = None) -> dict[str, np.ndarray[Any, Any]]:
        """Runs one step and returns its outputs, or the values that `fetch` names.

        An input that is left out keeps the value that it had.

        Raises:
            InputError: An input has the wrong type or extents, or no value; the message names it.
            Refusal: The device fails.
        """
        given = _arrays.given(inputs or {}, self._elements, self._gpu)
        return _arrays.arrays(self._session.step(given, self._outputs if fetch is None else list(fetch)))

    def set(self, values: Mapping[str, Any]) -> None:
        """Sets inputs, variables and parameters that no step changes, until they are set again.

        Raises:
            InputError: The step takes no value of this name and type; the message names it.
        """
        self._session.set(_arrays.given(values, self._elements, self._gpu))

    load_state = set

    def get(self, names: Iterable[str]) -> dict[str, np.ndarray[Any, Any]]:
        """The values of inputs, variables and outputs, by name."""
        return _arrays.arrays(self._session.get(list(names)))

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        """The values of all variables, by name."""
        return self.get(self._variables)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint, as `lmsc run --save` does: variables, seed, number of steps, and the values given to `set`."""
        self._session.save(path)

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Goes on where `save`, or `lmsc run --save`, stopped. Inputs of each step are given by the caller."""
        self._session.resume(path)

    def __repr__(self) -> str:
        return f"<lmsc.Session on {self.device}: {len(self._inputs)} inputs, {len(self._variables)} variables, {self.steps} steps>"
