"""Exports steps of many PyTorch models, runs them, and compares losses and all new values with PyTorch.

For every model of torch_models.py, three steps with other batches:

- the compact form in lmsc, and the standard form in ONNX Runtime, both against PyTorch;
- a plan for half of the peak on the host, which is to give the same bits.

Prints one line a model. `--write FILE` puts the table into a document between its markers. LMSC names the program; arguments
select models by parts of their names.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lmsc.torch
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch.utils import _pytree as pytree
from torch_models import CASES, Case

import onnx

LMSC = os.environ.get("LMSC", "lmsc")
STEPS = 3
TOLERANCE = 1e-4
SHARE = 1e-3
# Draws of the data. Where a rounding error turns one ReLU over, gradients differ by percents; other data has no such element. A
# step that is wrong is wrong for all of them.
DRAWS = 2


@dataclass
class Row:
    """What was found of one model."""

    name: str
    exported: str = ""
    seconds: float = 0.0
    nodes: int = 0
    imported: str = ""
    planned: str = ""
    compact: str = ""
    standard: str = ""
    draws: int = 1
    own: float | None = None
    """How far PyTorch in single precision is from PyTorch in double, where a form is not equal."""
    first: float | None = None
    """How far lmsc is from PyTorch after the first step, where a form is not equal."""
    close: bool = True
    """Whether all forms are equal, without regard to that."""
    off: dict[str, tuple[float, str]] = field(default_factory=dict)
    """How far a form is from PyTorch, and where."""
    notes: list[str] = field(default_factory=list)

    def good(self) -> bool:
        return not self.notes


def eager(case: Case, batches: list[Any]) -> tuple[list[float], dict[str, torch.Tensor]]:
    """Losses of PyTorch's own steps, and parameters, buffers and state behind the last."""
    model, optimizer = case.model, case.optimizer(case.model.parameters())
    parts, clip = case.options.get("accumulate", 1), case.options.get("clip_grad_norm")
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        total = 0.0
        leaves, spec = pytree.tree_flatten(batch)
        for k in range(parts):
            piece = pytree.tree_unflatten([v.chunk(parts)[k] if torch.is_tensor(v) else v for v in leaves], spec)
            loss = loss_of(case, piece) / parts
            loss.backward()
            total += float(loss.detach())
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(total)
    values = {n: p.detach() for n, p in [*model.named_parameters(), *model.named_buffers()]}
    for n, p in model.named_parameters():
        values.update({f"{n}.{k}": v for k, v in optimizer.state.get(p, {}).items() if torch.is_tensor(v)})
    return losses, values


def loss_of(case: Case, batch: Any) -> torch.Tensor:
    if isinstance(batch, dict):
        out = case.model(**batch)
        return out.loss if case.loss is None else case.loss(out)
    if case.loss is None:
        return case.model(*batch)
    return case.loss(case.model(*batch[:-1]), batch[-1])


def worst(want: dict[str, torch.Tensor], have: dict[str, Any]) -> tuple[float, str]:
    """The largest difference as a share of the tensor's largest element, and where it is.

    An element as small as SHARE of the largest of all tensors of its kind (weights, moments, …) is rounding: a bias before a
    normalization has the gradient zero.
    """
    values = {n: v for n, v in want.items() if v.is_floating_point() and v.numel()}
    size = {n: float(v.double().abs().max()) for n, v in values.items()}
    kinds: dict[str, float] = {}
    for n, s in size.items():
        kind = n.rpartition(".")[2]
        kinds[kind] = max(kinds.get(kind, 0.0), s)
    found = 0.0, ""
    for n, a in values.items():
        if n not in have:
            continue
        b = torch.as_tensor(np.asarray(have[n])).double().reshape(a.shape)
        off = float((a.double() - b).abs().max()) / max(size[n], SHARE * kinds[n.rpartition(".")[2]], 1e-30)
        if not off <= found[0]:
            found = off, n
    return found


def lmsc_(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LMSC, *args], check=False, capture_output=True, text=True, timeout=600)


def first_line(text: str) -> str:
    """The error in what `lmsc` printed."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "note:" not in line and "warning:" not in line]
    return " ".join(lines[:2]).split("/step.onnx")[-1][:200]


def in_lmsc(model: Path, folder: Path, tag: str, steps: int = STEPS) -> tuple[list[float], dict[str, torch.Tensor]]:
    """Losses and variables of steps that `lmsc run` has run."""
    saved = folder / f"{tag}.safetensors"
    run = lmsc_("run", str(model), "--params", str(folder / "params.safetensors"), "--data", str(folder / "data.safetensors"),
                "--steps", str(steps), "--save", str(saved))  # fmt: skip
    if run.returncode:
        raise RuntimeError(first_line(run.stderr))
    losses = [float(line.split("loss ")[1]) for line in run.stdout.splitlines() if line.startswith("step ") and "loss " in line]
    return losses, load_file(saved)


def in_onnxruntime(model: onnx.ModelProto, folder: Path, data: list[dict[str, torch.Tensor]]) -> tuple[list[float], dict[str, Any]]:
    """Losses and new values of steps that ONNX Runtime has run, its outputs fed back."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    state = {n: t.numpy() for n, t in load_file(folder / "params.standard.safetensors").items()}
    losses = []
    for batch in data:
        feeds = {**state, **{n: t.numpy() for n, t in batch.items()}}
        names = [o.name for o in session.get_outputs()]
        wanted = {i.name for i in session.get_inputs()}
        results = dict(zip(names, session.run(None, {n: v for n, v in feeds.items() if n in wanted})))
        losses.append(float(results["loss"]))
        state.update({n.removesuffix("_new"): v for n, v in results.items() if n.endswith("_new")})
    return losses, state


def compare(
    row: Row, form: str, losses: list[float], values: dict[str, Any], truth: tuple[list[float], dict[str, torch.Tensor]]
) -> None:
    """Notes in `row.off` how far losses and values are from PyTorch's."""
    off, where = worst(truth[1], values)
    loss = max(abs(a - b) / max(abs(a), 1e-4) for a, b in zip(truth[0], losses)) if len(losses) == STEPS else float("inf")
    row.off[form] = max(off, loss), f"{form}: {where} {off:.1e}, losses {loss:.1e}"


def check(name: str, folder: Path) -> Row:
    """The row of a model. Each form is compared by the draw of the data for which it is the nearest to PyTorch."""
    best: dict[str, tuple[float, str]] = {}
    own, first = 0.0, float("inf")
    for draw in range(DRAWS):
        row = check_draw(name, folder, draw)
        for form, found in row.off.items():
            best[form] = min(best.get(form, found), found)
        if row.notes or all(off <= TOLERANCE for off, _ in best.values()):
            break
        own = max(own, in_double(name, draw))
        first = min(first, first_step(name, folder, draw))
    row.draws = draw + 1
    for form, (off, text) in best.items():
        if form == "lmsc":
            row.compact = f"{off:.0e}"
        else:
            row.standard = f"{off:.0e}"
        if not off <= TOLERANCE:
            row.close = False
            row.own, row.first = own, first
            if not (first <= TOLERANCE and off <= 2 * own):
                row.notes.append(text)
    if row.imported == "yes" and row.compact != "no":
        row.planned = plan(row, folder)
    return row


def first_step(name: str, folder: Path, draw: int) -> float:
    """How far lmsc is from PyTorch after one step of the draw that was exported last."""
    case = CASES[name]()
    torch.manual_seed(draw + 1)
    values = in_lmsc(folder / "step.onnx", folder, "first", 1)[1]
    return worst(eager(case, [case.batch()])[1], values)[0]


def in_double(name: str, draw: int) -> float:
    """How far three steps of PyTorch in single precision are from those in double."""
    values = []
    for double in (False, True):
        case = CASES[name]()
        torch.manual_seed(draw + 1)
        batches = [case.batch() for _ in range(STEPS)]
        if double:
            case.model.double()
            batches = pytree.tree_map(lambda v: v.double() if torch.is_tensor(v) and v.is_floating_point() else v, batches)
        values.append(eager(case, batches)[1])
    return worst(values[1], values[0])[0]


def check_draw(name: str, folder: Path, draw: int) -> Row:
    row = Row(name)
    case = CASES[name]()
    torch.manual_seed(draw + 1)
    batches = [case.batch() for _ in range(STEPS)]
    optimizer = case.optimizer(case.model.parameters())
    begin = time.process_time()
    try:
        step = lmsc.torch.export_step(case.model, case.loss, optimizer, batches[0], path=folder / "step.onnx",
                                      params=folder / "params.safetensors", **case.options)  # fmt: skip
    except Exception as error:
        row.exported = "no"
        row.notes.append(f"{type(error).__name__}: {str(error).splitlines()[0][:200]}")
        return row
    row.exported, row.seconds, row.nodes = "yes", time.process_time() - begin, len(step.graph.node)
    inputs = [i.name for i in step.graph.input]
    tensors = [[v for v in pytree.tree_leaves(b) if torch.is_tensor(v)] for b in batches]
    standard: onnx.ModelProto | None = None
    try:
        standard = lmsc.torch.export_step(case.model, case.loss, optimizer, batches[0], standard=True,
                                          params=folder / "params.standard.safetensors", **case.options)  # fmt: skip
    except Exception as error:
        row.standard = "no"
        row.notes.append(f"standard: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
    truth = eager(case, batches)
    # A batch comes last, and what the step does not read is no input.
    names = lmsc.torch.batch_names(case.model, batches[0], case.loss is not None)
    data = [dict(zip(names, t)) for t in tensors]
    save_file({n: torch.stack([d[n] for d in data]).contiguous() for n in names if n in inputs}, folder / "data.safetensors")
    inspected = lmsc_("inspect", str(folder / "step.onnx"))
    row.imported = "yes" if inspected.returncode == 0 else "no"
    if inspected.returncode:
        row.notes.append(f"inspect: {first_line(inspected.stderr)}")
    try:
        compare(row, "lmsc", *in_lmsc(folder / "step.onnx", folder, "free"), truth)
    except RuntimeError as error:
        row.compact = "no"
        row.notes.append(f"lmsc run: {error}")
    if standard is not None:
        try:
            compare(row, "ONNX Runtime", *in_onnxruntime(standard, folder, data), truth)
        except Exception as error:
            row.standard = "no"
            row.notes.append(f"ONNX Runtime: {str(error).splitlines()[0][:200]}")
    return row


def plan(row: Row, folder: Path) -> str:
    """Whether there is a plan for half of the peak that gives the same bits; else the smallest share with a plan that was tried."""
    free = load_file(folder / "free.safetensors")
    for share in ("0.5x", "0.6x", "0.7x", "0.8x", "0.9x"):
        out = folder / "plan.onnx"
        planned = lmsc_(
            str(folder / "step.onnx"), "--target", "host", "--budget", share, "-o", str(out), "--force", "--effort", "25"
        )
        if planned.returncode == 1:
            continue
        if planned.returncode:
            row.notes.append(f"plan: {first_line(planned.stderr)}")
            return "no"
        try:
            _, values = in_lmsc(out, folder, "planned")
        except RuntimeError as error:
            row.notes.append(f"planned run: {error}")
            return "no"
        differ = [n for n, v in free.items() if n in values and not torch.equal(v, values[n])]
        if differ:
            row.notes.append(f"planned: other bits in {differ[0]}")
        return share if not differ else "other bits"
    return "no"


def table(rows: list[Row]) -> str:
    lines = [
        "| model | exported | nodes | seconds | imported | budget | lmsc | ONNX Runtime | PyTorch | first step |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        own = "| " if r.own is None else f"{r.own:.0e} | {r.first:.0e}"
        lines.append(
            f"| {r.name} | {r.exported} | {r.nodes} | {r.seconds:.1f} | {r.imported} | {r.planned} | {r.compact} | {r.standard} | {own} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--keep", type=Path, help="a folder for the files of the last model")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    rows = []
    for name in CASES:
        if args.names and not any(n in name for n in args.names):
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = args.keep or Path(temporary)
            folder.mkdir(exist_ok=True)
            try:
                row = check(name, folder)
            except Exception as error:
                row = Row(name, notes=[f"{type(error).__name__}: {str(error)[:200]}"])
        rows.append(row)
        print(f"{'ok ' if row.good() else 'BAD'} {name}: {row.nodes} nodes, {row.seconds:.1f} s, import {row.imported}, "
              f"plan {row.planned}, lmsc {row.compact}, ort {row.standard}" + (f", PyTorch itself {row.own:.0e}, first step {row.first:.0e}" if row.own is not None else ""), flush=True)  # fmt: skip
        if args.json:
            args.json.write_text(json.dumps([vars(r) for r in rows], indent=1))
        if args.write:
            text = args.write.read_text()
            before, rest = text.split("<!-- table -->\n")[0], text.split("<!-- end -->")[1]
            args.write.write_text(f"{before}<!-- table -->\n{table(rows)}\n<!-- end -->{rest}")
        for note in row.notes:
            print(f"      {note}", flush=True)
    equal = sum(r.good() for r in rows)
    near = [r.name for r in rows if r.good() and not r.close]
    print(
        f"equal in the first step, and then no further from PyTorch than twice what PyTorch is from itself in double precision: {', '.join(near) or 'none'}"
    )
    print(f"{equal} passed, {len(rows) - equal} failed")


if __name__ == "__main__":
    main()
