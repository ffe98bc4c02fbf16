"""`fit`: the cards and batch sizes that a step of PyTorch fits, as `lmsc fit` finds them for a file."""

from __future__ import annotations

import html
import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

from lmsc import InputError, Refusal, _lmsc
from lmsc._commands import _path, _words
from lmsc._compile import save_page, size

from .export import export_step

_FITS = {"as-it-is": "as it is", "with-a-plan": "with a plan", "no": "no"}
MOST = 1 << 16
"""The largest batch that is tried without `batches`."""


@dataclass(frozen=True)
class FitRow:
    """A batch on a card. Times are modelled; they and the peak are None where it does not fit."""

    gpu: str
    gpu_bytes: int
    batch: int
    fits: str
    """`as it is`, `with a plan` or `no`."""
    needed_bytes: int
    """Bytes of the step as it is."""
    peak_bytes: int | None
    step_ms: float | None
    samples_per_second: float | None
    overhead: float | None
    """How much longer the step takes than its operators alone: 0.1 for a tenth."""

    def _cells(self) -> list[str]:
        if self.step_ms is None or self.peak_bytes is None or self.overhead is None:
            return [str(self.batch), self.fits, size(self.needed_bytes), "-", "-", "-", "-"]
        peak, rate, over = size(self.peak_bytes), f"{self.samples_per_second:.1f}", f"{100 * self.overhead:.1f} %"
        return [str(self.batch), self.fits, size(self.needed_bytes), peak, f"{self.step_ms:.3f}", rate, over]


_HEAD = ["batch", "fits", "needs", "peak", "step ms", "samples/s", "overhead"]


@dataclass(frozen=True)
class Fit:
    """Which batches fit which cards; it prints as a table. Times are those of the model of each card, not measured."""

    rows: tuple[FitRow, ...]

    def largest(self, gpu: str) -> int | None:
        """The largest batch tried that fits the card, with a plan or without; None if none does."""
        return max((row.batch for row in self.rows if row.gpu == gpu and row.fits != "no"), default=None)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the table as a page, such as `fit.html`."""
        save_page(path, self)

    def _by_card(self) -> dict[str, list[FitRow]]:
        found: dict[str, list[FitRow]] = {}
        for row in self.rows:
            found.setdefault(row.gpu, []).append(row)
        return found

    def __str__(self) -> str:
        lines = []
        for gpu, rows in self._by_card().items():
            lines.append(f"{gpu}, {size(rows[0].gpu_bytes)}")
            table = [_HEAD, *(row._cells() for row in rows)]
            widths = [max(len(cells[k]) for cells in table) for k in range(len(_HEAD))]
            lines += ["  " + "  ".join(c.ljust(w) if k == 1 else c.rjust(w) for k, (c, w) in enumerate(zip(cells, widths))) for cells in table]
            lines.append(f"largest batch tried that fits: {self.largest(gpu) or 'none'}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [["card", *_HEAD], *([row.gpu, *row._cells()] for row in self.rows)]
        return "<table>" + "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows) + "</table>"


def fit(
    model: nn.Module,
    loss: Callable[..., Any] | None,
    optimizer: torch.optim.Optimizer,
    example: tuple[Any, ...] | list[Any] | dict[str, Any],
    *,
    gpus: Sequence[str] = ("t4", "rtx4090", "l40s", "h100-sxm"),
    batches: Sequence[int] | None = None,
    **options: Any,
) -> Fit:
    """The table of `lmsc fit` for a training step of PyTorch: which batches fit which cards, as they are or with a plan, and how fast they are.

    Nothing is computed and no card is needed. The step is the one of kernels="lmsc", which `export_step` writes.

    Args:
        model, loss, optimizer, example: As in `export_step`. The first extent of the first tensor of the example is the batch; tensors that begin with
            the same extent are made as long as each batch that is tried.
        gpus: Names that `lmsc targets` lists, or paths of TOML files of that form.
        batches: The batches to try. Default: the batch of the example, doubled while it fits a card, then the largest to within a sixteenth.
        options: Further options: those of `export_step`, such as `accumulate`, and of the command, such as `effort` and `planner`.

    Raises:
        CaptureError: The step cannot be written as one graph.
        lmsc.InputError: There is no such card, or the example has no batch.

    >>> import torch
    >>> model = torch.nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> found = fit(model, torch.nn.functional.mse_loss, optimizer, (torch.ones(4, 3), torch.ones(4, 1)), gpus=["t4"], batches=[4, 8])
    >>> [(row.gpu, row.batch, row.fits) for row in found.rows]
    [('t4', 4, 'as it is'), ('t4', 8, 'as it is')]
    """
    if isinstance(gpus, str):
        gpus = [gpus]
    if not gpus:
        raise InputError("`gpus` names no card; `lmsc.targets()` has those that there are")
    exporting = {name: options.pop(name) for name in ("clip_grad_norm", "accumulate", "ema") if name in options}
    first = next((t for t in pytree.tree_leaves(example) if isinstance(t, Tensor) and t.dim()), None)
    if first is None:
        raise InputError("the example has no tensor with a batch")
    found: dict[int, list[FitRow]] = {}

    def tried(batch: int) -> list[FitRow]:
        if batch not in found:
            step = export_step(model, loss, optimizer, _of(example, first.shape[0], batch), progress=False, **exporting)
            found[batch] = _rows(_answer(step, {"gpu": list(gpus), **options}), batch)
        return found[batch]

    if batches is not None:
        wrong = [b for b in batches if not isinstance(b, int) or isinstance(b, bool) or b < 1]
        if wrong or not batches:
            raise InputError(f"`batches` are whole numbers from 1 on, not {wrong[0]!r}" if wrong else "`batches` is empty")
        for batch in batches:
            tried(batch)
    else:
        _search(tried, first.shape[0], len(gpus))
    order = sorted(found)
    return Fit(tuple(found[batch][card] for card in range(len(gpus)) for batch in order))


def _search(tried: Callable[[int], list[FitRow]], begin: int, cards: int) -> None:
    """Tries batches that are doubled while one card fits, and the largest one of each card to within a sixteenth."""
    batch = begin
    while any(row.fits != "no" for row in tried(batch)) and batch < MOST:
        batch *= 2
    for card in range(cards):
        fits, no = 0, begin
        while no <= batch and tried(no)[card].fits != "no":
            fits, no = no, 2 * no
        while fits and no <= batch and no - fits > max(fits // 16, 1):
            middle = (fits + no) // 2
            fits, no = (middle, no) if tried(middle)[card].fits != "no" else (fits, middle)


def _of(example: Any, before: int, batch: int) -> Any:
    """The example with another batch."""

    def longer(value: Any) -> Any:
        if not isinstance(value, Tensor) or not value.dim() or value.shape[0] != before:
            return value
        return value[:1].expand(batch, *value.shape[1:])

    return pytree.tree_map(longer, tuple(example) if isinstance(example, list) else example)


def _answer(step: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What the command tells, which refuses a step that fits no card, and writes its report before."""
    with _path(step) as path, tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "fit.json")
        try:
            _lmsc.output_of(["fit", path, *_words(options), f"--report={report}"])
        except Refusal:
            if not report.exists():
                raise
        return json.loads(report.read_text(encoding="utf-8"))


def _rows(answer: dict[str, Any], batch: int) -> list[FitRow]:
    rows = []
    for card in answer["cards"]:
        point = card["points"][0]
        step = point.get("step")
        rows.append(FitRow(
            card["target"], card["budget_bytes"], batch, _FITS[point["fits"]], point["needed_bytes"],
            step and step["peak_bytes"], step and step["step_ms"], step and batch * 1000 / step["step_ms"],
            step and step["step_ms"] / point["compute_ms"] - 1 if point["compute_ms"] else None,
        ))  # fmt: skip
    return rows
