"""Trains many small models through `torch.compile(model, backend="lmsc")` and compares every bit with PyTorch's own graphs.

For each model of python/tests/backend_models.py, torch_models.py and torch_tasks.py, and of torch_libraries.py and backend_libraries.py where the
libraries of requirements-torch-models.txt are installed: three steps of AdamW, with `aot_eager` and within 0.6 of the
peak, or the smallest budget where that is refused: once with the link of the target `host`, once with one that is 90 times slower, so that
operators run again instead of being copied. Losses, gradients, parameters and buffers must have the same bits, and the measured peak of the last
step at most 2 % above the planned one.

`--planning` measures instead how long the plans of a few large graphs take, in seconds of the processor: the reading of the joint graph, the search, the
written graphs and their check. What PyTorch does before and behind that is not counted.

Prints one line a model. `--write FILE` puts the rows into the table of a document, beside those of models that were not tried this time. Arguments
select models by parts of their names. Each model has a process of its own; the exit status is 1 if one differs, fails or takes more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "python/tests"), str(ROOT / "scripts")]
MARKS = ("<!-- backend -->", "<!-- end of backend -->")
HEAD = (
    "| model | link | graphs | operators | as it is, KiB | within | planned | measured / planned | leave | run again | of them random | bits |",
    "|---" * 12 + "|",
)
PLANNING_MARKS = ("<!-- planning -->", "<!-- end of planning -->")
PLANNING_HEAD = (
    "| model | operators | 0.6: seconds, of the search | smallest: seconds, of the search | by `effort` 20 | the plan's time by `effort` 20, 0.6 / smallest |",
    "|---" * 6 + "|",
)
#: Graphs of 500 to 900 operators.
LARGE = (
    "timm ghostnet_050, smooth", "timm nfnet_l0, smooth", "torchvision regnet_y_400mf, smooth", "torchvision efficientnet_b0, smooth",
    "torchvision LR-ASPP, smooth", "diffusers conditional U-Net",
)  # fmt: skip
SLACK = 1.02
SECONDS = 600


def models() -> dict[str, Any]:
    import importlib.util

    import torch
    from backend_models import MODELS, Model
    from torch_models import CASES

    importlib.import_module("torch_tasks")
    if all(map(importlib.util.find_spec, ("diffusers", "timm", "torchvision", "transformers"))):
        importlib.import_module("torch_libraries")
        of_libraries = importlib.import_module("backend_libraries").CASES
    else:
        of_libraries = {}

    class Whole(torch.nn.Module):
        """A model and its loss."""

        def __init__(self, case: Any):
            super().__init__()
            self.net, self.loss = case.model, case.loss

        def forward(self, *batch: Any) -> Any:
            if isinstance(batch[0], dict):
                found = self.net(**batch[0])
                found = found if self.loss is None else self.loss(found)
            else:
                found = self.net(*batch) if self.loss is None else self.loss(self.net(*batch[:-1]), batch[-1])
            return found["loss"] if isinstance(found, dict) else found

    def of(build: Any) -> Any:
        def make() -> Any:
            case = build()

            def batch(i: int) -> Any:
                torch.manual_seed(1000 + i)
                drawn = case.batch()
                return drawn if isinstance(drawn, tuple) else (drawn,)

            return Model(Whole(case), batch)

        return make

    others = {f"{name}, as in torch_models.py": of(build) for name, build in CASES.items() if not name.startswith("MLP")}
    return MODELS | others | of_libraries


def tried(name: str, slow: str) -> dict[str, Any]:
    """The rows of a model, one for each link."""
    import torch

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    return _tried(name, slow, "0.6x") or _tried(name, slow, "smallest") or {"failed": "its graphs get different budgets"}


def _tried(name: str, slow: str, budget: str) -> dict[str, Any] | None:
    """The rows within the budget, or, where the graph is refused, within the smallest; None if another graph was not refused.

    Dynamo traces the model once for all backends: that takes longest. For a copy of the model it may trace again.
    """
    from backend_tools import Meter, compiled, difference, train
    from lmsc.torch import backend
    from torch._dynamo.backends.registry import lookup_backend

    model = models()[name]()
    links: dict[str, dict[str, Any]] = {"fast": {"budget": budget}, "slow": {"budget": budget, "target": slow}}
    plans: dict[str, list[Any]] = {link: [] for link in links}
    now, traced = "aot_eager", []

    def each(graph: Any, inputs: Any) -> Any:
        runs = {"aot_eager": lookup_backend("aot_eager")(graph, inputs)}
        for link, options in links.items():
            runs[link] = backend.backend(graph, inputs, options=options)
            if not hasattr(runs[link], "_lmsc_plans") and options["budget"] != "smallest":
                # The smallest budget does not depend on the link.
                for others in links.values():
                    others["budget"] = "smallest"
                runs[link] = backend.backend(graph, inputs, options=options)
            if hasattr(runs[link], "_lmsc_plans"):
                plans[link] += runs[link]._lmsc_plans
        traced.append({link: options["budget"] for link, options in links.items()})
        return lambda *args: runs[now](*args)

    rows = {}
    with Meter() as meter:
        how = compiled(model, each)
        want = train(model, how)
        if not any(plans.values()):
            return {"failed": "no graph was compiled"}
        if any(budgets != traced[-1] or len(set(budgets.values())) > 1 for budgets in traced):
            return None
        for now in links:
            before = len(plans[now])
            found = train(model, how, meter)
            made = plans[now][before:] or plans[now]
            # The graphs of the last step: of each size the plan that was made last, of a step of several graphs all.
            last = [plan for plan in made if not plan.symbolic] or made[-1:]
            rows[now] = {
                "budget": links[now]["budget"],
                "graphs": len(last),
                "operators": sum(plan.operators for plan in last),
                "as_it_is": sum(plan.as_it_is for plan in last),
                "planned": sum(plan.peak for plan in last),
                "measured": found[2],
                "out": sum(len(plan.out) for plan in last),
                "again": sum(sum(plan.again.values()) for plan in last),
                "random": sum(plan.random_again for plan in last),
                "differs": difference(want, found),
            }
    return rows


def planning(name: str) -> dict[str, Any]:
    """The seconds that the plan of the model's first graph takes within 0.6 of its peak and at its smallest, by the default effort and by 20."""
    import dataclasses
    import time
    from types import SimpleNamespace

    import lmsc
    import torch
    from lmsc.torch import backend
    from lmsc.torch.backend import planning as module

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    ask, plan = module._lmsc.plan_problem, backend.planned
    searching = [0.0]
    rows: dict[str, Any] = {}

    def asking(*args: Any) -> str:
        begin = time.process_time()
        try:
            return ask(*args)
        finally:
            searching[0] += time.process_time() - begin

    def each(joint: Any, ends: Any, options: Any, *rest: Any, **keywords: Any) -> Any:
        written = None
        for budget in ("0.6x", "smallest") if ends.backward and not rows else ():
            for effort in (None, 20):
                searching[0], begin = 0.0, time.process_time()
                try:
                    written = plan(joint, ends, dataclasses.replace(options, budget=budget, effort=effort), *rest, **keywords)
                    found = {"operators": written.plan.operators, "modelled": written.plan.seconds}
                except lmsc.Refusal:
                    found = {"refused": True}
                rows[f"{budget} {effort}"] = found | {"seconds": time.process_time() - begin, "search": searching[0]}
        return written or plan(joint, ends, options, *rest, **keywords)

    module._lmsc = SimpleNamespace(**{**vars(module._lmsc), "plan_problem": asking})
    backend.planned = each
    model = models()[name]()
    torch.compile(model.module.train(), backend=backend.backend, options={"budget": "smallest"})(*model.batch(0))
    return rows


def planning_line(name: str, rows: dict[str, Any]) -> str:
    def seconds(key: str) -> str:
        return f"{rows[key]['seconds']:.1f}, {rows[key]['search']:.1f}" + (" (refused)" if "refused" in rows[key] else "")

    budgets = "0.6x", "smallest"
    price = (f"{rows[f'{b} 20']['modelled'] / rows[f'{b} None']['modelled']:.3f}" if "modelled" in rows[f"{b} None"] else "" for b in budgets)
    efforts = " / ".join(f"{rows[f'{b} 20']['seconds']:.1f}" for b in budgets)
    cells = name.removesuffix(", as in torch_models.py"), rows["smallest None"]["operators"], *(seconds(f"{b} None") for b in budgets), efforts, " / ".join(price)
    return "| " + " | ".join(map(str, cells)) + " |"


def line(name: str, link: str, row: dict[str, Any]) -> str:
    within = "0.6" if row["budget"] == "0.6x" else f"{row['planned'] / row['as_it_is']:.2f}, the smallest"
    cells = [
        name, link, row["graphs"], row["operators"], row["as_it_is"] >> 10, within, row["planned"] >> 10,
        f"{row['measured'] / row['planned']:.3f}", row["out"], row["again"], row["random"], row["differs"] or "same",
    ]  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def is_wrong(row: dict[str, Any]) -> bool:
    return bool(row["differs"]) or row["measured"] > SLACK * row["planned"]


def write(path: Path, lines: dict[str, list[str]], marks: tuple[str, str] = MARKS, head: tuple[str, str] = HEAD) -> None:
    """Replaces the rows of these models in the table of the document."""
    text = path.read_text()
    before, rest = text.split(marks[0])
    old, behind = rest.split(marks[1])
    kept: dict[str, list[str]] = {}
    for row in (row for row in old.splitlines() if row.startswith("| ") and row not in head):
        kept.setdefault(row.removeprefix("| ").split(" |")[0], []).append(row)
    kept |= lines
    rows = [row for name in sorted(kept, key=str.lower) for row in kept[name]]
    path.write_text("\n".join([before + marks[0], *head, *rows, marks[1] + behind]))


def measure_planning(args: argparse.Namespace) -> int:
    failed = 0
    for name in (f"{large}, as in torch_models.py" for large in LARGE):
        if args.names and not any(part in name for part in args.names):
            continue
        command = [sys.executable, __file__, "--planning", "--one", name]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        if ran.returncode:
            failed += 1
            print(f"{name}: {(ran.stderr.strip().splitlines() or ['failed'])[-1][:200]}", flush=True)
            continue
        row = planning_line(name, json.loads(ran.stdout.splitlines()[-1]))
        print(row, flush=True)
        if args.write:
            write(args.write, {row.removeprefix("| ").split(" |")[0]: [row]}, PLANNING_MARKS, PLANNING_HEAD)
    return int(failed > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--missing", action="store_true", help="only models without a row in the table that is written")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--slow", help=argparse.SUPPRESS)
    parser.add_argument("--planning", action="store_true", help="how long plans of large graphs take")
    args = parser.parse_args()
    if args.one and args.planning:
        print(json.dumps(planning(args.one)))
        return 0
    if args.one:
        print(json.dumps(tried(args.one, args.slow)))
        return 0
    if args.planning:
        return measure_planning(args)
    host = (ROOT / "plan/cost/targets/host.toml").read_text()
    wrong, lines = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        slow = Path(folder, "slow.toml")
        slow.write_text(host.replace('"host"', '"slow"', 1).replace("bytes_per_second = 9e9", "bytes_per_second = 1e8"))
        for name in models():
            if args.names and not any(part in name for part in args.names) or args.missing and f"\n| {name} |" in args.write.read_text():
                continue
            command = [sys.executable, __file__, "--one", name, "--slow", str(slow)]
            try:
                ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True, env=os.environ)
                rows = json.loads(ran.stdout.splitlines()[-1])
            except subprocess.SubprocessError as error:
                said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
                rows = {"failed": said[-1][:200] if said else "failed"}
            if "failed" in rows:
                wrong += 1
                print(f"{name}: {rows['failed']}", flush=True)
                continue
            wrong += any(is_wrong(row) for row in rows.values())
            lines[name] = [line(name, link, row) for link, row in rows.items()]
            print("\n".join(lines[name]), flush=True)
            if args.write:
                write(args.write, lines)
    print(f"{len(lines)} models ran, {wrong} are wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
