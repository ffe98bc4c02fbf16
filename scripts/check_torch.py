"""Trains many PyTorch models for three steps, and compares losses and all new values with PyTorch's own steps.

For every model of torch_models.py, with another batch in each step:

- a `TrainStep`: the losses, an evaluation of the model that follows without `sync()`, and parameters, buffers and the optimizer's state
  after `sync()`;
- the exported step in its standard form, in ONNX Runtime;
- a plan of the exported step for half of the peak on the host, which is to give the same bits.

Prints one line a model. `--write FILE` puts the rows into the table of a document, beside those of models that were not tried this
time. LMSC names the program; arguments select models by parts of their names, and `--missing` those that the document lacks. `--third K`
tries the `TrainStep` alone, of each third model that is written by hand, beginning with the model K.
Needs the packages of requirements-torch-models.txt; models of a package that is not there are left out.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
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

importlib.import_module("torch_tasks")
BY_HAND = list(CASES)
importlib.import_module("torch_libraries")

LMSC = os.environ.get("LMSC", "lmsc")
STEPS = 3
TOLERANCE = 1e-4
SHARE = 1e-3
# Draws of the data. Where a rounding error turns one ReLU over, gradients differ by percents; other data has no such element. A
# step that is wrong is wrong for all of them.
DRAWS = 2
# Two sums of the same numbers in other orders: the one may be nearer to the true sum than the other by chance.
ROUNDINGS = 8
# Larger steps are not planned: the planners' own tests have such graphs, and five budgets take minutes.
PLANNED_NODES = 1200


@dataclass
class Row:
    """The findings on one model."""

    name: str
    exported: str = ""
    seconds: float = 0.0
    nodes: int = 0
    imported: str = ""
    planned: str = ""
    compact: str = ""
    standard: str = ""
    own: float | None = None
    """How far PyTorch in single precision is from PyTorch in double, where a form is not equal."""
    verdict: str = ""
    """`equal`; `rounding` or, where the smooth variant tells more, `turned over`, with the number of tensors; or `no`."""
    notes: list[str] = field(default_factory=list)

    def good(self) -> bool:
        return self.verdict not in ("", "no")

    def cells(self) -> list[str]:
        """The row of the table."""
        own = "" if self.own is None else f"{self.own:.0e}"
        cells = [self.name, self.exported, str(self.nodes), f"{self.seconds:.1f}", self.imported, self.planned, self.compact]
        return [*cells, self.standard, own, self.verdict]


Values = dict[str, Any]


@dataclass
class Draw:
    """The steps of one draw of the data: of PyTorch in both precisions, and of the forms, each with losses and new values."""

    truth: tuple[list[float], Values] = ([], {})
    forms: dict[str, tuple[list[float], Values]] = field(default_factory=dict)
    double: tuple[list[float], Values] | None = None


def eager(case: Case, batches: list[Any], last: Any) -> tuple[list[float], dict[str, torch.Tensor]]:
    """Losses of PyTorch's own steps and of an evaluation behind them, and parameters, buffers and state behind the last step."""
    model, optimizer = case.model, case.optimizer(case.model.parameters())
    parts, clip = case.options.get("accumulate", 1), case.options.get("clip_grad_norm")
    decay = case.options.get("ema")
    averages = {n: p.detach().clone() for n, p in model.named_parameters()} if decay is not None else {}
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
        for n, p in model.named_parameters():
            if decay is not None:
                averages[n] = decay * averages[n] + (1 - decay) * p.detach()
    return [*losses, *evaluated(case, last)], present(model, optimizer, averages)


def present(model: torch.nn.Module, optimizer: torch.optim.Optimizer, averages: Values) -> Values:
    """Parameters, buffers, the optimizer's state, and averages of parameters."""
    values = {n: p.detach() for n, p in [*model.named_parameters(), *model.named_buffers()]}
    for n, p in model.named_parameters():
        values.update({f"{n}.{k}": v for k, v in optimizer.state.get(p, {}).items() if torch.is_tensor(v)})
    return {**values, **{f"{n}.ema": v for n, v in averages.items()}}


def evaluated(case: Case, batch: Any) -> list[float]:
    """The loss in evaluation; nothing where the model has no loss there."""
    case.model.eval()
    try:
        with torch.no_grad():
            return [float(loss_of(case, batch))]
    except Exception:
        return []
    finally:
        case.model.train()


def in_train_step(name: str, batches: list[Any], last: Any) -> tuple[list[float], Values]:
    """The same of a `TrainStep`."""
    case = CASES[name]()
    optimizer = case.optimizer(case.model.parameters())
    step = lmsc.torch.TrainStep(case.model, case.loss, optimizer, example=batches[0], **case.options)
    losses = [float(step(**b) if isinstance(b, dict) else step(*b)) for b in batches]
    losses += evaluated(case, last)
    step.sync()
    return losses, present(case.model, optimizer, step.ema())


def loss_of(case: Case, batch: Any) -> torch.Tensor:
    if isinstance(batch, dict):
        out = case.model(**batch)
        result = out if case.loss is None else case.loss(out)
    elif case.loss is None:
        result = case.model(*batch)
    else:
        result = case.loss(case.model(*batch[:-1]), batch[-1])
    return result if torch.is_tensor(result) else result["loss"]


def distances(want: Values, have: Values) -> dict[str, float]:
    """The largest difference of each tensor as a share of its largest element.

    An element as small as SHARE of the largest of all tensors of its kind (weights, moments, …) is rounding: a bias before a
    normalization has the gradient zero.
    """
    values = {n: v for n, v in want.items() if v.is_floating_point() and v.numel()}
    size = {n: float(v.double().abs().max()) for n, v in values.items()}
    kinds: dict[str, float] = {}
    for n, s in size.items():
        kind = n.rpartition(".")[2]
        kinds[kind] = max(kinds.get(kind, 0.0), s)
    found = {}
    for n, a in values.items():
        if n in have:
            b = torch.as_tensor(np.asarray(have[n])).double().reshape(a.shape)
            off = float((a.double() - b).abs().max()) / max(size[n], SHARE * kinds[n.rpartition(".")[2]], 1e-30)
            found[n] = off if off == off else float("inf")
    return found


def all_distances(want: tuple[list[float], Values], have: tuple[list[float], Values]) -> dict[str, float]:
    """The same with that of the losses."""
    pairs = zip(want[0], have[0])
    loss = max(abs(a - b) / max(abs(a), 1e-4) for a, b in pairs) if len(have[0]) in (STEPS, len(want[0])) else float("inf")
    return {**distances(want[1], have[1]), "the losses": loss if loss == loss else float("inf")}


def lmsc_(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LMSC, *args], check=False, capture_output=True, text=True, timeout=600)


def first_line(text: str) -> str:
    """The error in the output of `lmsc`."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and "note:" not in line and "warning[" not in line]
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


def check(name: str, folder: Path, alone: bool) -> Row:
    """The row of a model. Each form is compared by the draw of the data for which it is the nearest to PyTorch."""
    best: dict[str, tuple[float, Draw]] = {}
    tolerance = 0.0
    for number in range(DRAWS):
        row, draw, tolerance = check_draw(name, folder, number, alone)
        for form, found in draw.forms.items():
            off = max(all_distances(draw.truth, found).values())
            best[form] = min(best.get(form, (off, draw)), (off, draw), key=lambda pair: pair[0])
        if row.notes or all(off <= tolerance for off, _ in best.values()):
            break
        draw.double = in_double(name, number)
    verdicts = [judged(row, form, off, draw, tolerance) for form, (off, draw) in best.items()]
    row.verdict = "no" if row.notes or not verdicts else max(verdicts, key=lambda v: (v != "equal", len(v), v))
    if not alone and row.imported == "yes" and row.compact != "no" and row.nodes <= PLANNED_NODES and not name.endswith(", smooth"):
        row.planned = plan(row, folder)
    return row


def judged(row: Row, form: str, off: float, draw: Draw, tolerance: float) -> str:
    """Whether a form is equal, or differs within PyTorch's own error in single precision: its distance from PyTorch is at most
    ROUNDINGS times that of PyTorch from itself in double precision, for each tensor."""
    if form == "TrainStep":
        row.compact = f"{off:.0e}"
    else:
        row.standard = f"{off:.0e}"
    if off <= tolerance:
        return "equal"
    assert draw.double is not None
    own, found = all_distances(draw.double, draw.truth), all_distances(draw.truth, draw.forms[form])
    row.own = max(row.own or 0.0, *own.values())
    beyond = {n: d for n, d in found.items() if d > tolerance}
    wrong = {n: d for n, d in beyond.items() if d > ROUNDINGS * own[n]}
    if wrong and f"{row.name}, smooth" in CASES:
        return f"turned over in {len(beyond)} of {len(found)}"
    if wrong:
        worst = max(wrong, key=lambda n: wrong[n])
        row.notes.append(f"{form}: {worst} {wrong[worst]:.1e}, PyTorch itself {own[worst]:.1e}; {len(wrong)} of {len(found)}")
        return "no"
    return f"rounding in {len(beyond)} of {len(found)}"


def in_double(name: str, draw: int) -> tuple[list[float], Values]:
    """Three steps of PyTorch in double precision."""
    case = CASES[name]()
    *batches, last = drawn(case, draw)
    case.model.double()
    batches, last = pytree.tree_map(lambda v: v.double() if torch.is_tensor(v) and v.is_floating_point() else v, (batches, last))
    return eager(case, batches, last)


def drawn(case: Case, number: int) -> list[Any]:
    """The batches of a draw: of the steps, and one for the evaluation."""
    torch.manual_seed(number + 1)
    return [case.batch() for _ in range(STEPS + 1)]


def check_draw(name: str, folder: Path, number: int, alone: bool) -> tuple[Row, Draw, float]:
    """Trains a model over one draw of the data: by a `TrainStep` and, unless that is `alone`, by exported files."""
    row, draw, case = Row(name), Draw(), CASES[name]()
    *batches, last = drawn(case, number)
    try:
        draw.forms["TrainStep"] = in_train_step(name, batches, last)
    except Exception as error:
        row.compact = "no"
        row.notes.append(f"TrainStep: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
    if not alone:
        draw.forms.update(in_files(row, case, batches, folder))
    draw.truth = eager(case, batches, last)
    lacking = [n for n in draw.truth[1] if "TrainStep" in draw.forms and n not in draw.forms["TrainStep"][1]]
    if lacking:
        row.notes.append(f"TrainStep: {lacking[0]} is not there after sync()")
    return row, draw, case.tolerance


def in_files(row: Row, case: Case, batches: list[Any], folder: Path) -> dict[str, tuple[list[float], Values]]:
    """Writes the step as files, and runs the standard form in ONNX Runtime."""
    optimizer = case.optimizer(case.model.parameters())
    begin = time.process_time()
    try:
        step = lmsc.torch.export_step(case.model, case.loss, optimizer, batches[0], path=folder / "step.onnx",
                                      params=folder / "params.safetensors", **case.options)  # fmt: skip
    except Exception as error:
        row.exported = "no"
        row.notes.append(f"{type(error).__name__}: {str(error).splitlines()[0][:200]}")
        return {}
    row.exported, row.seconds, row.nodes = "yes", time.process_time() - begin, len(step.graph.node)
    inputs = [i.name for i in step.graph.input]
    tensors = [[v for v in pytree.tree_leaves(b) if torch.is_tensor(v)] for b in batches]
    standard: onnx.ModelProto | None = None
    # ONNX Runtime has no kernels for bfloat16 on the processor.
    if case.tolerance == TOLERANCE:
        try:
            standard = lmsc.torch.export_step(case.model, case.loss, optimizer, batches[0], standard=True,
                                              params=folder / "params.standard.safetensors", **case.options)  # fmt: skip
        except Exception as error:
            row.standard = "no"
            row.notes.append(f"standard: {type(error).__name__}: {str(error).splitlines()[0][:200]}")
    # A batch comes last, and a value that the step does not read is not an input.
    names = lmsc.torch.batch_names(case.model, batches[0], case.loss is not None)
    data = [dict(zip(names, t)) for t in tensors]
    save_file({n: torch.stack([d[n] for d in data]).contiguous() for n in names if n in inputs}, folder / "data.safetensors")
    inspected = lmsc_("inspect", str(folder / "step.onnx"))
    row.imported = "yes" if inspected.returncode == 0 else "no"
    if inspected.returncode:
        row.notes.append(f"inspect: {first_line(inspected.stderr)}")
    if standard is None:
        return {}
    try:
        return {"ONNX Runtime": in_onnxruntime(standard, folder, data)}
    except Exception as error:
        row.standard = "no"
        row.notes.append(f"ONNX Runtime: {str(error).splitlines()[0][:200]}")
        return {}


def plan(row: Row, folder: Path) -> str:
    """Whether there is a plan for half of the peak that gives the same bits; else the smallest share with a plan that was tried."""
    try:
        _, free = in_lmsc(folder / "step.onnx", folder, "free")
    except RuntimeError as error:
        row.notes.append(f"lmsc run: {error}")
        return "no"
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
            if "LMS0107" in str(error):
                # Its pages need more than the budget in chunks of the usual size.
                continue
            row.notes.append(f"planned run: {error}")
            return "no"
        differ = [n for n, v in free.items() if n in values and not torch.equal(v, values[n])]
        if differ:
            row.notes.append(f"planned: other bits in {differ[0]}")
        return share if not differ else "other bits"
    return "no"


HEAD = "| model | exported | nodes | seconds | imported | budget | TrainStep | ONNX Runtime | PyTorch | result |\n|---|---|---|---|---|---|---|---|---|---|"


def written(path: Path) -> dict[str, list[str]]:
    """The rows of a document's table, by model."""
    lines = path.read_text().split("<!-- table -->\n")[1].split("<!-- end -->")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    return {row[0]: row for row in rows}


def summary(rows: list[list[str]]) -> str:
    """The sentences above the table."""
    equal = [r[0] for r in rows if r[-1] == "equal"]
    few = [r[0] for r in rows if is_few(r[-1])]
    shown = {n.removesuffix(", smooth") for n in [*equal, *few] if n.endswith(", smooth")}
    many = [r[0] for r in rows if r[0] not in [*equal, *few] and r[-1] != "no"]
    left = [n for n in many if n not in shown]
    wrong = [r[0] for r in rows if r[-1] == "no"]
    text = (
        f"Of {len(rows)} steps, {sum(r[1] == 'yes' for r in rows)} are exported, and {len(equal)} are equal in all values. In {len(few)} at most "
        f"a tenth of the tensors differ, each by at most {ROUNDINGS} times what PyTorch in single precision differs in it from itself in "
        f"double. In {len(many)} more do, and for {len(many) - len(left)} of these the smooth variant is one of the first two kinds."
    )
    text += f" Not shown to be rounding: {', '.join(left)}." if left else ""
    return text + (f" Not exported, or not right: {', '.join(wrong)}." if wrong else "")


def is_few(verdict: str) -> bool:
    """Whether the tensors of a verdict `rounding in K of N` are at most a tenth."""
    if not verdict.startswith("rounding"):
        return False
    some, all_ = verdict.removeprefix("rounding in ").split(" of ")
    return 10 * int(some) <= int(all_)


def write(path: Path, found: list[Row]) -> None:
    """Puts the rows into a document, beside those of models that were not tried."""
    rows = {**written(path), **{r.name: r.cells() for r in found}}
    ordered = [rows[name] for name in CASES if name in rows]
    lines = [HEAD, *(f"| {' | '.join(row)} |" for row in ordered)]
    text = path.read_text()
    for mark, new in (("table", "\n".join(lines)), ("summary", summary(ordered))):
        before, rest = text.split(f"<!-- {mark} -->\n")
        after = rest.split("<!-- end -->", 1)[1]
        text = f"{before}<!-- {mark} -->\n{new}\n<!-- end -->{after}"
    path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", type=Path, metavar="FILE")
    parser.add_argument("--missing", type=Path, metavar="FILE", help="only models that its table lacks")
    parser.add_argument("--keep", type=Path, help="a folder for the files of the last model")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--third", type=int, metavar="K", help="the TrainStep alone, of each third model that is written by hand, from the model K")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    have = written(args.missing) if args.missing else {}
    rows = []
    by_hand = set(BY_HAND[args.third :: 3]) if args.third is not None else None
    for name in CASES:
        if by_hand is not None and name not in by_hand:
            continue
        if name in have or args.names and not any(n in name for n in args.names):
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = args.keep or Path(temporary)
            folder.mkdir(exist_ok=True)
            try:
                row = check(name, folder, by_hand is not None)
            except ModuleNotFoundError as missing:
                print(f"    {name}: left out, since {missing.name} is not installed")
                continue
            except Exception as error:
                row = Row(name, verdict="no", notes=[f"{type(error).__name__}: {str(error)[:200]}"])
        rows.append(row)
        print(f"{'ok ' if row.good() else 'BAD'} {name}: {row.nodes} nodes, {row.seconds:.1f} s, import {row.imported}, "
              f"plan {row.planned}, TrainStep {row.compact}, ort {row.standard}, {row.verdict}" + (f", PyTorch itself {row.own:.0e}" if row.own is not None else ""), flush=True)  # fmt: skip
        if args.json:
            args.json.write_text(json.dumps([vars(r) for r in rows], indent=1))
        if args.write:
            write(args.write, rows)
        for note in row.notes:
            print(f"      {note}", flush=True)
    equal = sum(r.good() for r in rows)
    print(f"{equal} passed, {len(rows) - equal} failed")
    sys.exit(equal < len(rows))


if __name__ == "__main__":
    main()
