"""The commands `plan`, `sweep`, `inspect` and `targets`, with their results as dictionaries, and `opt`."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _lmsc
from ._lmsc import InputError

if TYPE_CHECKING:
    import onnx

Model: TypeAlias = "str | os.PathLike[str] | bytes | onnx.ModelProto"
"""A path, the bytes of a model, or a model."""


def as_bytes(model: Any) -> bytes | None:
    """The bytes of a model that is no path."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):
        return model.SerializeToString()
    if isinstance(model, (str, os.PathLike)):
        return None
    raise InputError(f"a model is a path, bytes or an onnx.ModelProto, and this is a {type(model).__name__}")


@contextlib.contextmanager
def _path(model: Any) -> Iterator[str]:
    data = as_bytes(model)
    if data is None:
        # A path that begins with a dash is not an option.
        yield os.path.join(".", path) if (path := os.fspath(model)).startswith("-") else path
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx" if not data.lstrip()[:1].isalpha() else "model.lms")
        path.write_bytes(data)
        yield str(path)


def _words(options: Mapping[str, Any]) -> list[str]:
    """The options as words of a command line."""
    words = []
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            # `dims` and so on are given one by one.
            single = option.removesuffix("s") if name != "state" else option
            words += [f"{single}={k}={'x'.join(map(str, v)) if isinstance(v, (list, tuple)) else v}" for k, v in value.items()]
        elif isinstance(value, (list, tuple)):
            words.append(f"{option}={','.join(map(str, value))}")
        else:
            words.append(f"{option}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return words


def _json(command: str, model: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    with _path(model) as path:
        return json.loads(_lmsc.output_of([command, path, *_words(options), "--json"]))


def plan(model: Model, *, budget: str | int, **options: Any) -> dict[str, Any]:
    """The report of `lmsc plan MODEL --json` on a plan within the budget.

    `options` are those of the command: `planner="auto"`, `target="h100-sxm"`, `dims={"batch": 64}`, `compare=["vdnn"]` and so on.

    Raises:
        InputError: The model or an option is at fault.
        Refusal: The budget cannot be met.
    """
    return _json("plan", model, {"memory": budget, **options})


def sweep(model: Model, *, budget: str | int, **options: Any) -> dict[str, Any]:
    """The report of `lmsc sweep MODEL --json` on plans for several budgets and sizes, such as `budget="0.3x..1x"`.

    Raises:
        InputError: The model or an option is at fault.
    """
    return _json("sweep", model, {"budget": budget, **options})


def inspect(model: Model, **options: Any) -> dict[str, Any]:
    """The report of `lmsc inspect MODEL --json` on a model's phases, variables, peak and largest storages.

    Raises:
        InputError: The model or an option is at fault.
    """
    return _json("inspect", model, options)


def opt(model: Model, passes: str, **options: Any) -> bytes:
    """The bytes of an ONNX model after passes, as `lmsc opt MODEL -p PASSES -o FILE` writes it.

    `passes` are names with commas between them, and options in braces: `"fuse-attention,chunk-loss{rows=512}"`. Where a model has its
    weights in files beside it, the bytes belong into the same folder.

    Raises:
        InputError: The model, a pass or an option is at fault.
    """
    with _path(model) as path:
        # Beside the model, where the files with its weights are.
        handle, name = tempfile.mkstemp(suffix=".onnx", dir=os.path.dirname(path) or ".")
        os.close(handle)
        written = Path(name)
        try:
            _lmsc.output_of(["opt", path, f"-p{passes}", f"--output={written}", *_words(options)])
            return written.read_bytes()
        finally:
            written.unlink(missing_ok=True)


def targets() -> dict[str, dict[str, Any]]:
    """The machines that plans can be made for, by name, as `lmsc targets NAME` writes them.

    >>> targets()["h100-sxm"]["kernels"]
    'cuda'
    """
    return {name: tomllib.loads(_lmsc.output_of(["targets", name])) for name in _lmsc.target_names()}
