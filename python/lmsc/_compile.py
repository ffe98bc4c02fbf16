"""`compile` and its results."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from . import _lmsc
from ._commands import Model, as_bytes
from ._lmsc import Refusal
from ._progress import COMPILE, Choice, within
from ._session import Session


def size(count: float) -> str:
    """A number of bytes, for people.

    >>> size(1536), size(7)
    ('1.5 KiB', '7 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def picture(rows: list[tuple[str, int, str]], facts: list[tuple[str, str]]) -> str:
    """Bars of bytes, each with a name and a colour, over a table of facts, as HTML."""
    most = max(1, *(count for _, count, _ in rows))
    bars = "".join(
        f'<text x="0" y="{18 * k + 13}">{name}</text><rect x="80" y="{18 * k + 3}" width="{300 * count / most:.1f}" height="12" '
        f'fill="{colour}"/><text x="{386 if count > 0 else 84}" y="{18 * k + 13}">{size(count)}</text>'
        for k, (name, count, colour) in enumerate(rows)
    )
    drawn = f'<svg width="480" height="{18 * len(rows) + 6}" font-family="sans-serif" font-size="11">{bars}</svg>'
    table = "".join(f"<tr><td>{html.escape(name)}</td><td>{html.escape(text)}</td></tr>" for name, text in facts)
    return f"<div>{drawn}<table>{table}</table></div>"


def save_page(path: str | os.PathLike[str], shown: Any) -> None:
    """Writes what a notebook shows, and the text, as a page."""
    text = html.escape(str(shown))
    page = f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>Plan of lmsc</title>{shown._repr_html_()}<pre>{text}</pre></html>\n'
    part = f"{os.fspath(path)}.{os.getpid()}"
    with open(part, "w", encoding="utf-8") as file:
        file.write(page)
    os.replace(part, path)


class Plan:
    """Result of a compilation. `print` shows the report; a notebook shows a table.

    Attributes:
        peak_before, peak_after: Device bytes that the step needs, as it came and as it is now.
        budget: Device bytes that it may use; None if it was compiled without a budget.
        bytes_out, bytes_in: Bytes that are copied from the device to the host, and back, in a step.
        host_bytes: Host bytes for swapped tensors.
        makespan_ms, compute_ms: Predicted times of a step, and of its operators alone; None where nothing was planned.
    """

    def __init__(self, report: dict[str, Any], text: str, plan: str | None) -> None:
        self._text = text
        self.peak_before: int = report["before"]["peak"]
        self.peak_after: int = report["after"]["peak"]
        self.budget: int | None = report["budget"]
        self.bytes_out: int = report["bytes_out"]
        self.bytes_in: int = report["bytes_in"]
        self.host_bytes: int = report["after"]["host_peak"]
        self._remarks = [remark for done in report["passes"] for remark in done["remarks"]]
        self.makespan_ms: float | None = None
        self.compute_ms: float | None = None
        if plan is not None:
            found = json.loads(plan)
            # An operator that runs again is not part of the step's own computing.
            times: dict[int, int] = {}
            for step in found["steps"]:
                if "op" in step:
                    times.setdefault(found["ops"][step["op"]]["op"], step["end_ns"] - step["start_ns"])
            self.makespan_ms = max((step["end_ns"] for step in found["steps"]), default=0) / 1e6
            self.compute_ms = sum(times.values()) / 1e6

    @property
    def overhead(self) -> float | None:
        """How much longer a step is predicted to take than its operators alone: 0.1 for a tenth."""
        if not self.makespan_ms or not self.compute_ms:
            return None
        return self.makespan_ms / self.compute_ms - 1

    def __str__(self) -> str:
        return self._text.rstrip()

    def __repr__(self) -> str:
        return f"<lmsc.Plan: {size(self.peak_before)} to {size(self.peak_after)}>"

    def _repr_html_(self) -> str:
        rows = [("as it came", self.peak_before, "#8a8f98"), ("planned", self.peak_after, "#3b7ddd")]
        if self.budget is not None:
            rows.append(("budget", self.budget, "#c9ced6"))
        facts = [("to the host in a step", size(self.bytes_out)), ("from the host in a step", size(self.bytes_in))]
        if self.makespan_ms is not None and self.overhead is not None:
            facts.append(("predicted step", f"{self.makespan_ms:.3f} ms, {100 * self.overhead:.1f} % above its operators alone"))
        facts += [("", remark) for remark in self._remarks]
        return picture(rows, facts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture and the report as a page, such as `plan.html`."""
        save_page(path, self)


class Compiled:
    """A compiled step, proven to compute the model's results within the budget."""

    def __init__(self, compiled: _lmsc.Compiled) -> None:
        self._compiled = compiled
        self._report: dict[str, Any] | None = None

    @property
    def report(self) -> dict[str, Any]:
        """The report, as `lmsc MODEL --json` prints it."""
        if self._report is None:
            self._report = json.loads(self._compiled.report())
        return self._report

    @property
    def plan(self) -> Plan:
        """Peaks, copies and predicted times."""
        return Plan(self.report, self._compiled.text(), self._compiled.plan())

    def save_plan(self, path: str | os.PathLike[str]) -> None:
        """Writes the plan, as `lmsc --save-plan` does, for `plan=` of `compile`.

        Raises:
            Refusal: Nothing was planned.
        """
        text = self._compiled.plan()
        if text is None:
            raise Refusal("nothing was planned that could be saved")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the step: as ONNX, or as text or MLIR where the name ends in `.lms` or `.mlir`. The file is read back and proven."""
        self._compiled.write(path)

    def verify(self) -> None:
        """Proves again that the step computes the model's results within the budget.

        Raises:
            InternalError: It does not.
        """
        self._compiled.verify()

    def session(self, device: str = "host") -> Session:
        """The step on a device, ready to run: `host`, `cuda`, `cuda:1`, with `+graph` to replay steps.

        Raises:
            Refusal: There is no such device, or too little memory.
            InputError: The step was planned for another kind of device.
        """
        return Session(self._compiled.session(device))

    def __repr__(self) -> str:
        report = self.report
        return f"<lmsc.Compiled {report['model']}: {size(report['before']['peak'])} to {size(report['after']['peak'])}>"

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()


def compile(
    model: Model,
    *,
    optimizer: str | os.PathLike[str] | None = None,
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Iterable[int]] | None = None,
    values: Mapping[str, Any] | None = None,
    state: Mapping[str, str] | None = None,
    no_state: Iterable[str] = (),
    budget: str | int | None = None,
    host_budget: str | int | None = None,
    target: str | None = None,
    profile: str | os.PathLike[str] | None = None,
    planner: str | None = None,
    effort: int | None = None,
    ranges: bool = False,
    addresses: str = "auto",
    plan: str | os.PathLike[str] | None = None,
    form: str = "function",
    progress: Choice = None,
) -> Compiled:
    """Fits a training step into a budget of device memory, and proves the result.

    Args:
        model: A path (`.onnx`, `.lms`, `.mlir`), the bytes of such a file, or an `onnx.ModelProto`.
        optimizer: The path of the optimizer graph that onnxruntime-training wrote beside the training graph.
        dims: Values of symbolic dimensions.
        shapes: Extents of inputs, where the file leaves some open.
        values: Values of inputs that are constants of the step.
        state: Inputs that are kept from step to step, and the outputs that are their next values. `X` and `X_new` are found without.
        no_state: Inputs and outputs that are not kept, independently of their names.
        budget: Device memory that the step may use: bytes, `"8GiB"`, `"90%"` of the target's memory, or `"0.7x"` of the step's own
            peak; `"smallest"`, or `"3% slower"`: the smallest memory found whose plan takes at most that much longer. None: nothing is planned.
        host_budget: The same for host memory, for swapped tensors.
        target: The machine, of `targets()`; a path of a TOML file; or `auto` for a GPU of this machine. Default: `a100-pcie4`. A step
            that is to run on the host is planned for `host`.
        profile: The path of a profile that `lmsc calibrate` has written.
        planner: The planner. Default: `auto`.
        effort: How much to search, in percent of the usual.
        ranges: Whether ranges of a tensor may be copied each by itself.
        addresses: How the step keeps within its budget: `on`, by addresses in an arena; `auto`, by pages of mapped memory where
            addresses cost much; `off`, by counting bytes.
        plan: The path of a plan of `save_plan`, which is carried out instead of planning.
        form: How swaps are written in ONNX: `function`, or `ort` for ONNX Runtime.
        progress: Whether a bar is shown (None: if stderr is a terminal and tqdm is installed), or a function that is called with the name
            of a phase and the part of it that is done.

    Raises:
        InputError: The model or an argument is at fault.
        Refusal: The budget cannot be met. `node` needs `needed` bytes at once; `smallest_budget` holds with the same
            arguments, where that is known.
    """
    options = {
        "optimizer": optimizer,
        "dims": list((dims or {}).items()),
        "shapes": [(n, list(extents)) for n, extents in (shapes or {}).items()],
        "values": [(n, _text(value)) for n, value in (values or {}).items()],
        "state": list((state or {}).items()),
        "no_state": list(no_state),
        "budget": None if budget is None else str(budget),
        "host_budget": None if host_budget is None else str(host_budget),
        "target": target,
        "profile": profile,
        "planner": planner,
        "effort": effort,
        "ranges": ranges,
        "addresses": addresses,
        "plan": plan,
        "form": form,
    }
    data = as_bytes(model)
    with within(progress, COMPILE) as at:
        at("plan")
        return Compiled(_lmsc.compile(os.fspath(model) if data is None else data, options, partial(at, "plan")))


def _text(value: Any) -> str:
    """The value of an input, as the command line takes it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
