"""Shared by the parts of the check: processes with a deadline, findings that are written at once, and logs."""

import itertools
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import tensors
from .cases import FULL, REHEARSAL, ROOT, Case, Cases

PACKED = "packed.json"


class Failed(Exception):
    """A command that failed, or a check that cannot be made: in words; with the command's output before."""

    def __init__(self, why: str, printed: str = "") -> None:
        super().__init__(why)
        self.printed = printed


class Stop(Failed):
    """Without this nothing else can be checked."""


class NoTool(Failed):
    """A program of the vendor is missing: its findings are left out."""


class OutOfTime(BaseException):
    """The part has used its seconds. Nothing but the runner of parts catches it."""


@dataclass
class Findings:
    """A part's values by name, its failures, its missed speeds, and its skipped checks with their reasons."""

    values: dict[str, Any] = field(default_factory=dict)
    red: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """A part of the check: the first line of the function's documentation is its title."""

    name: str
    timeout: float
    run: Callable[["Check", Findings], None]

    @property
    def title(self) -> str:
        return (self.run.__doc__ or "").splitlines()[0].rstrip(".")


class Check:
    """A run of the check over the packed files."""

    def __init__(self, packed: Path, out: Path, seconds: float = 3600.0) -> None:
        out.mkdir(parents=True, exist_ok=True)
        self.packed, self.out = packed, out
        self.about: dict[str, Any] = json.loads((packed / PACKED).read_text())
        # Values of a driver that computes nothing mean nothing. Every comparison is made, so that its inputs are proven to be
        # there, but none is judged.
        self.rehearsal: bool = self.about["rehearsal"]
        self.cases: Cases = REHEARSAL if self.rehearsal else FULL
        self.lmsc_path = packed / "lmsc"
        self.until = time.monotonic() + seconds
        self.part_until = self.until
        self.part = ""
        # Red commands, with the fault to look for: E runs them again.
        self.red_runs: list[tuple[str, list[str]]] = []
        # Not in the folder that comes back, of which few files do; there they are one file.
        self.logs = packed / "scratch" / f"logs-{out.name}"
        self.lock = threading.Lock()
        self.numbers = itertools.count(1)
        self.environment = environment(packed)
        shutil.rmtree(self.logs, ignore_errors=True)
        self.logs.mkdir()

    # --- processes ---

    def left(self) -> float:
        return min(self.part_until, self.until) - time.monotonic()

    def command(self, *arguments: object, seconds: float = 600.0, env: dict[str, str] | None = None) -> str:
        """The output of a command; its errors go to a log."""
        line = [str(argument) for argument in arguments]
        number = next(self.numbers)
        log = self.logs / f"{self.part}{number:03}.txt"
        began = time.monotonic()
        try:
            done = subprocess.run(
                line, capture_output=True, text=True, timeout=max(min(seconds, self.left()), 0.1),
                env=self.environment | (env or {}), cwd=ROOT, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired as expired:
            printed = text_of(expired.stdout)
            log.write_text(f"{line}\ntimed out\n{printed}\n{text_of(expired.stderr)}")
            if self.left() <= 0:
                raise OutOfTime from None
            raise Failed(f"timed out after {time.monotonic() - began:.0f} s: {brief(line)}", printed) from None
        except OSError as error:
            raise Failed(f"{line[0]}: {error.strerror or error}") from None
        took = time.monotonic() - began
        log.write_text(f"{line}\nexit {done.returncode}, {took:.2f} s\n{done.stderr[-100_000:]}\n{done.stdout[-20_000:]}")
        if done.returncode:
            lines = [text for text in (done.stderr or done.stdout).splitlines() if text.strip()]
            # The log has the other messages of a run.
            lines = [text for text in lines if not text.startswith(("lmsc: note:", "lmsc: warning["))] or lines
            told = " / ".join(lines[:6] if lines and lines[0].startswith("error") else lines[-4:])
            raise Failed(f"exit {done.returncode}: {told or brief(line)}"[:600], done.stdout)
        return done.stdout

    def lmsc(self, *arguments: object, seconds: float = 600.0) -> str:
        return self.command(self.lmsc_path, *arguments, seconds=seconds)

    def run(self, *arguments: object, device: str = "cuda", seconds: float = 600.0) -> dict[str, Any]:
        """The report of `lmsc run` on steps on the GPU."""
        return json.loads(self.lmsc("run", *arguments, "--device", device, "--json", seconds=seconds))

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder that is gone afterwards, on a disk that has room for the variables of a large model."""
        folder = self.packed / "scratch" / f"{next(self.numbers)}"
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # --- packed files ---

    def host(self, name: str) -> tensors.Digest:
        """The host's results."""
        return tensors.read(self.packed / "host" / f"{name}.digest")

    def plan(self, case: Case, budget: str, precision: str = "f32") -> Path:
        path = self.packed / "plans" / case.plan(budget, precision)
        if not path.exists():
            raise Failed(f"{path.name} is not packed: {self.about['failed'].get(path.name, 'run `scripts/gpu-check pack`')}")
        return path

    # --- findings ---

    def judge(self, found: Findings, ok: bool, what: str, line: list[str] | None = None) -> None:
        """Records a failure, unless the result is right, or nothing was computed; the command is run again under a sanitizer."""
        if not ok and not self.rehearsal:
            found.red.append(what)
            if line:
                self.red_runs.append((what, line))

    def record(self, line: dict[str, Any]) -> None:
        with self.lock, (self.out / "check.jsonl").open("a") as file:
            file.write(json.dumps(strict(line), allow_nan=False) + "\n")

    def note(self, case: str, values: dict[str, Any]) -> None:
        """Writes the findings on one case of the part, and shows them."""
        self.record({"part": self.part, "case": case, "values": values})
        print(f"  {case}: {json.dumps(values)[:300]}", flush=True)

    @contextmanager
    def guarded(self, found: Findings, what: str) -> Iterator[None]:
        """A case whose failure ends this case alone."""
        try:
            yield
        except (Failed, ValueError, KeyError, TypeError, IndexError, OSError) as error:
            told = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
            found.red.append(f"{what}: {told}")
            self.note(what, {"error": told})

    def perform(self, part: Part) -> bool:
        """Runs a part within its time, and writes its findings; whether the others can go on."""
        self.part, began = part.name, time.monotonic()
        self.part_until = min(began + part.timeout, self.until)
        print(f"{part.name} {part.title}", flush=True)
        found, goes_on = Findings(), True
        try:
            if self.left() < 5:
                raise OutOfTime
            with alarm(self.left()):
                part.run(self, found)
        except OutOfTime:
            found.skipped.append(f"the rest: no time was left after {time.monotonic() - began:.0f} s")
        except Stop as error:
            found.red.append(str(error))
            goes_on = False
        except NoTool as error:
            found.skipped.append(str(error))
        except Failed as error:
            found.red.append(str(error))
        except Exception as error:  # A fault of this script ends the part, not the check.
            found.red.append(f"{type(error).__name__}: {error}")
        seconds = round(time.monotonic() - began, 2)
        line = {"part": part.name, "title": part.title, "seconds": seconds, "ok": not found.red, "values": found.values}
        self.record(line | {"red": found.red, "missed": found.missed, "skipped": found.skipped})
        for word, texts in (("RED", found.red), ("missed", found.missed), ("skipped", found.skipped)):
            for text in texts:
                print(f"  {word}: {text}", flush=True)
        self.pack_logs()
        return goes_on

    def pack_logs(self) -> None:
        """Logs as one file."""
        with self.lock, tarfile.open(self.out / "logs.tar.gz", "w:gz", compresslevel=4) as archive:
            archive.add(self.logs, "logs")


def environment(packed: Path) -> dict[str, str]:
    """The environment of commands: compiled kernels among the caches, and the null driver where it is requested."""
    found = os.environ | {"XDG_CACHE_HOME": str(packed / "cache"), "PYTHONUNBUFFERED": "1"}
    if null := os.environ.get("LMSC_NULL_DRIVER"):
        found["LMSC_CUDA_PATH"] = ":".join(filter(None, [null, os.environ.get("LMSC_CUDA_PATH")]))
        # Pages that nobody writes take no memory of this machine.
        found["NULLCUDA_REGISTER"] = "0"
    return found


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raises `OutOfTime` in the main thread after so many seconds."""

    def ring(_number: int, _frame: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def strict(value: Any) -> Any:
    """The same with texts for numbers that are not finite: JSON has none."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: strict(it) for key, it in value.items()}
        case list() | tuple():
            return [strict(it) for it in value]
        case _:
            return value


def text_of(output: str | bytes | None) -> str:
    return output.decode(errors="replace") if isinstance(output, bytes) else output or ""


def brief(line: list[str]) -> str:
    return " ".join(Path(part).name if part.startswith("/") else part for part in line)[:200]


def python() -> str:
    return sys.executable


def found_in_path(program: str) -> str:
    """The path of a program.

    Raises `NoTool` where there is none.
    """
    if path := shutil.which(program):
        return path
    raise NoTool(f"no {program} in PATH")
