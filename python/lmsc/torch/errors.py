"""Errors of capture and translation, and where in the caller's code they come from."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import torch

import lmsc


class CaptureError(lmsc.InputError):
    """The step cannot be written as one graph. The message names the place and the remedy.

    `location` is `FILE:LINE` in the caller's code, or None where no line of it was running.
    """

    code = "LMS0220"

    def __init__(self, message: str, location: str | None = None) -> None:
        super().__init__(message)
        self.location = location


class UnsupportedOperator(CaptureError):
    """No translation to ONNX is known for an operator of the step; `operator` is its name."""

    code = "LMS0221"

    def __init__(self, operator: str, location: str | None) -> None:
        where = f"{location}: " if location else ""
        super().__init__(
            f"{where}there is no translation to ONNX for `{operator}`; write this part with other operators",
            location,
        )
        self.operator = operator


class StaleError(lmsc.InputError):
    """The torch objects have been changed where the step has newer values, or in a way that the step cannot take over."""

    code = "LMS0222"


_LIBRARIES = (str(Path(torch.__file__).parent), str(Path(__file__).parent), "<", "importlib")


def caller_line(error: BaseException) -> str | None:
    """The innermost line of `error`'s traceback that is in neither PyTorch nor this package, as `FILE:LINE: SOURCE`."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_LIBRARIES)]
    if not frames:
        return None
    frame = frames[-1]
    return f"{frame.filename}:{frame.lineno}" + (f": `{frame.line}`" if frame.line else "")


def line_of_trace(trace: str | None) -> str | None:
    """The innermost line of a printed traceback that is in neither PyTorch nor this package, as `FILE:LINE: SOURCE`."""
    found = re.findall(r'File "(.+?)", line (\d+).*(?:\n    (.*))?', trace or "")
    own = [frame for frame in found if not frame[0].startswith(_LIBRARIES)]
    return f"{own[-1][0]}:{own[-1][1]}: `{own[-1][2].strip()}`" if own else None


_REMEDIES = {
    "DataDependentOutputException": "a number is read from a tensor (`.item()`, `float()`, `bool()` or `if tensor:`), and a graph "
    "has no numbers before it runs; keep it a tensor, for example with torch.where",
    "DynamicOutputShapeException": "the size of a result depends on the values of a tensor (nonzero, unique or indexing with a "
    "mask); use an operator whose result has a fixed size, such as torch.where or multiplication with the mask",
    "GuardOnDataDependentSymNode": "a decision depends on the values of a tensor; use torch.where, or take the decision outside of the step",
}


def capture_error(error: Exception) -> CaptureError:
    """`error`, which was raised while the step was traced, as a message with the caller's line and a remedy."""
    if isinstance(error, lmsc.Error):
        return error  # type: ignore[return-value]
    location = caller_line(error)
    remedy = _REMEDIES.get(type(error).__name__, "")
    text = remedy or f"{type(error).__name__}: {error}"
    where = f"{location}: " if location else ""
    return CaptureError(f"{where}the step cannot be captured: {text}", location)
