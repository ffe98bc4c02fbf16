"""Times of operators as the device takes them: `options={"profile": True}`.

Each operator of a graph that has no effect runs a few times on tensors of its own shapes and strides; those of the same kind and shapes once. The
times are kept in a file for each device and version of PyTorch, so a second compilation measures nothing and makes the same plan.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from .costs import Target, number
from .problem import runs_again

#: Successive runs between two looks at the clock: of an accelerator, so that the time of a launch is not counted.
_RUNS_OF_AN_ACCELERATOR = 10

#: The shortest time of as many tries counts. With one, a time can be that of another process on the machine.
_TRIES = 3

#: An operator that takes longer than this many seconds is tried once.
_LONG = 0.05


class Times:
    """The measured times of the operators of a device."""

    def __init__(self, device: torch.device):
        self.device = device
        words = [torch.__version__, str(torch.version.cuda or torch.version.hip), _name(device)]
        # The times of a processor are those of this number of threads.
        words += [str(torch.get_num_threads())] if device.type == "cpu" else []
        self.words = words
        folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "lmsc"
        self.path = folder / f"operators-{hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]}.json"
        self.seconds = self._read()
        self.are_new = False

    def _read(self) -> dict[str, float | None]:
        """The times in the file; none if there is no such file, or it is one of something else."""
        try:
            found = json.loads(self.path.read_text())
            seconds = found["seconds"] if found["of"] == self.words else {}
            return {str(key): None if value is None else float(value) for key, value in seconds.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def keep(self) -> None:
        """Writes the times into the file, if there are new ones, and the folder takes it."""
        if not self.are_new:
            return
        self.are_new = False
        text = json.dumps({"of": self.words, "seconds": dict(sorted((self._read() | self.seconds).items()))}, indent=0)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=self.path.parent, delete=False) as file:
                file.write(text)
            os.replace(file.name, self.path)
        except OSError:
            return

    def of(self, node: fx.Node) -> float | None:
        """The seconds of the node, which has no effect; None if it cannot run on made-up values."""
        key = _words(node)
        if key not in self.seconds:
            self.seconds[key] = self._measured(node)
            self.are_new = True
        return self.seconds[key]

    def _measured(self, node: fx.Node) -> float | None:
        devices = [] if self.device.type == "cpu" else [self.device]
        kind = self.device.type if devices else "cuda"
        try:
            with _disable_current_modes(), torch.no_grad(), torch.random.fork_rng(devices, device_type=kind):
                args, kwargs = _made_up((node.args, node.kwargs))
                run = functools.partial(node.target, *args, **kwargs)
                self._timed(run, 1)
                times = [self._timed(run, _RUNS_OF_AN_ACCELERATOR if devices else 1)]
                while times[0] < _LONG and len(times) < _TRIES:
                    times.append(self._timed(run, _RUNS_OF_AN_ACCELERATOR if devices else 1))
                return min(times)
        except (RuntimeError, ValueError, IndexError, TypeError):  # Out of memory, or values that the operator does not take.
            return None

    def _timed(self, run: Any, times: int) -> float:
        self._finish()
        begin = time.perf_counter()
        for _ in range(times):
            run()
        self._finish()
        return (time.perf_counter() - begin) / times

    def _finish(self) -> None:
        if self.device.type != "cpu":
            torch.accelerator.synchronize(self.device)


@dataclass(frozen=True)
class MeasuredTarget(Target):
    """A machine whose operators take the times that were measured; memories, links and collectives are those of the target."""

    times: Times | None = None

    @classmethod
    def over(cls, target: Target, device: torch.device) -> MeasuredTarget:
        return cls(f"{target.name}, measured", target.facts, Times(device))

    def seconds(self, node: fx.Node, moved_bytes: int) -> float:
        plain = isinstance(node.target, torch._ops.OpOverload) and node.target.namespace == "aten" and runs_again(node)
        found = self.times.of(node) if plain and self.times is not None else None
        return super().seconds(node, moved_bytes) if found is None else found

    def keep(self) -> None:
        """Writes new times into their file."""
        if self.times is not None:
            self.times.keep()


def _name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type} {platform.machine()} {platform.processor()}"


def _words(node: fx.Node) -> str:
    """What the time of the node depends on."""

    def of(value: Any) -> str:
        if isinstance(value, fx.Node):
            return of(value.meta.get("val"))
        if isinstance(value, torch.Tensor):
            return f"{value.dtype}{[number(n) for n in value.shape]}{[number(n) for n in value.stride()]}{value.device.type}"
        if isinstance(value, (list, tuple)):
            return f"({', '.join(map(of, value))})"
        if isinstance(value, torch.SymInt):
            return str(number(value))
        return repr(value)

    named = [f"{key}={of(value)}" for key, value in sorted(node.kwargs.items())]
    return f"{node.target}({', '.join([*map(of, node.args), *named])})"


def _made_up(arguments: tuple[Any, Any]) -> tuple[Any, dict[str, Any]]:
    """The arguments with values: halves, and zeros where they may be places in another tensor."""

    def of(value: Any) -> Any:
        if isinstance(value, fx.Node):
            return of(value.meta.get("val"))
        if isinstance(value, torch.Tensor):
            if value.layout != torch.strided:
                raise ValueError("a tensor that is not strided")
            shape, stride = ([number(n) for n in numbers] for numbers in (value.shape, value.stride()))
            made = torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)
            return made.fill_(0.5 if value.dtype.is_floating_point or value.dtype.is_complex else 0)
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            return number(value) if isinstance(value, torch.SymInt) else float(value)
        if isinstance(value, (list, tuple)):
            return tuple(map(of, value)) if isinstance(value, tuple) else list(map(of, value))
        return value

    args, kwargs = arguments
    return of(args), {key: of(value) for key, value in kwargs.items()}
