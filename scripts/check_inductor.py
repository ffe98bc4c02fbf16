"""Trains small models by Inductor's kernels within budgets, on the processor, beside plain Inductor: `options={"inner": "inductor"}`.

For each model of python/tests/backend_models.py that is named below: three steps of AdamW by `torch.compile(model)`, and by the backend at 1.0 and at 0.6
of its peak as it is, or the smallest budget where that is refused. The losses must be within 1e-6 of those of plain Inductor, relative, and the
measured peak at most 5 % above the planned one. *Time*: the shortest of several steps at 1.0 over that of plain Inductor.

Then, without compiling kernels: PyTorch's `activation_memory_budget` at 0.5, and a plan of lmsc that copies nothing within the same measured
peak: the FLOP and bytes of what each runs again, counted by the same rules on the graphs.

Prints one line a model. `--write FILE` puts the rows into the table of a document, beside those of models that were not tried this time. Arguments
select models. Each has a process of its own; the exit status is 1 if one differs, fails or takes more.
"""

from __future__ import annotations

import argparse
import collections
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "python/tests"), str(ROOT / "scripts")]
MODELS = (
    "plain dropout noise in_place batch_norm batch_norm_twice channels_last buffer_reassigned input_changed own_function custom_operator tied_weights attention "
    "attention_with_dropout encoder checkpoint_inside autocast frozen_layers several_outputs loss_outside experts scan bags inference complex_numbers "
    "growing_batch graph_break"
).split()
MARKS = ("<!-- inductor -->", "<!-- end of inductor -->")
HEAD = (
    "| model | kernels | plain, KiB | 1.0: measured / planned | / plain | time / plain | within | measured / planned | / plain | leave | run again | losses | "
    "`activation_memory_budget` 0.5: KiB, again | the same KiB, again |",
    "|---" * 14 + "|",
)
SLACK, CLOSE, SECONDS, REPEATS = 1.05, 1e-6, 900, 15


def work(graphs: Any) -> tuple[float, int]:
    """The FLOP of graphs and the bytes that their kernels load and store."""
    from lmsc.torch.backend.costs import bytes_of, flop, tensors
    from lmsc.torch.backend.fusion import Kernels, _computes, source

    def size(node: Any) -> int:
        return sum(map(bytes_of, tensors(node.meta.get("val"))))

    done, moved = 0.0, 0
    for graph in graphs:
        nodes = [node for node in graph.nodes if _computes(node)]
        kernels = Kernels(nodes, set(map(source, next(iter(graph.find_nodes(op="output"))).all_input_nodes)), set(), {})

        def loads(node: Any, kernels: Any = kernels) -> Any:
            for operand in kernels.inputs[node]:
                if operand in kernels.inlined:
                    yield from loads(operand)
                else:
                    yield operand

        done += sum(map(flop, nodes))
        for kernel in kernels.ordered():
            read = {operand for node in kernel.nodes for operand in loads(node)} - set(kernel.nodes)
            moved += sum(map(size, read)) + sum(map(size, kernel.stored))
    return done, moved


def work_again(problem: Any, answer: dict[str, Any]) -> tuple[float, int]:
    """The FLOP of what a plan runs again, and the bytes that this loads and stores."""
    from lmsc.torch.backend.costs import flop

    times = collections.Counter(run["op"] for run in answer["plan"]["ops"])
    done, moved = 0.0, 0
    for tick, count in times.items():
        op = problem.ops[tick]
        if count > 1 and op.kind == "run":
            kernel = problem.kernels.get(op.node)
            loads = problem._loads(kernel, op.phase) if kernel else problem._storages(op.node.all_input_nodes)
            done += (count - 1) * sum(map(flop, kernel.nodes if kernel else (op.node,)))
            moved += (count - 1) * sum(problem.bytes[storage] for storage in loads | set(op.makes))
    return done, moved


def fastest(step: Any) -> float:
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return min(times)


def step_of(model: Any, how: Any) -> Any:
    """A function that runs one step, and has run it twice."""
    import copy

    import torch

    module = copy.deepcopy(model.module).train()
    call, batch = how(module), model.batch(0)

    def step() -> None:
        with torch.set_grad_enabled(model.trains):
            out = call(*batch)
            loss = model.loss(out, *batch) if model.loss else out
            if model.trains:
                loss.backward()

    step()
    step()
    return step


def tried(name: str, no_copies: str) -> dict[str, Any]:
    """The row of a model."""
    import lmsc
    import torch
    from backend_models import MODELS as MADE
    from backend_tools import compiled, train
    from inductor_tools import KernelMeter, losses_differ, without_kernels
    from lmsc.torch import backend
    from lmsc.torch.backend import planning
    from torch._functorch import config as functorch_config
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._inductor import config
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    model = MADE[name]()
    plans: list[Any] = []
    answers: list[Any] = []
    keep, facts = backend._Compilation._keep, planning._facts
    backend._Compilation._keep = lambda self, plan: (plans.append(plan), keep(self, plan))[1]
    planning._facts = lambda problem, answer, *rest: (answers.append((problem, answer)), facts(problem, answer, *rest))[1]

    def within(*budgets: str, **options: Any) -> dict[str, Any] | None:
        for budget in budgets:
            plans.clear()
            answers.clear()
            try:
                with KernelMeter() as meter:
                    losses, _, peak = train(model, compiled(model, backend.backend, budget=budget, inner="inductor", **options), meter)
            except lmsc.Refusal:
                continue
            last = [plan for plan in plans if not plan.symbolic] or plans[-1:]
            return {
                "budget": budget,
                "graphs": len(last),
                "compiled": all(plan.inner == "inductor" for plan in last),
                "kernels": sum(plan.operators for plan in last),
                "planned": sum(plan.peak for plan in last),
                "as_it_is": sum(plan.as_it_is for plan in last),
                "measured": peak,
                "out": sum(len(plan.out) for plan in last),
                "again": sum(sum(plan.again.values()) for plan in last),
                "losses": losses,
                "work": [sum(found) for found in zip(*(work_again(*answer) for answer in answers[-len(last) :]), strict=True)],
            }
        return None

    with KernelMeter() as meter:
        losses, _, plain = train(model, compiled(model, "inductor"), meter)
    row: dict[str, Any] = {"plain": plain, "whole": within("1.0x"), "less": within("0.6x", "smallest")}
    for found in filter(None, (row["whole"], row["less"])):
        found["differs"] = losses_differ(losses, found["losses"])
    if model.dynamic is None:
        ours = step_of(model, compiled(model, backend.backend, budget="1.0x", inner="inductor"))
        seconds = [fastest(ours)]
        theirs = step_of(model, lambda module: torch.compile(module, backend="inductor"))
        seconds.append(fastest(theirs))
        row["time"] = min(seconds[0], fastest(ours)) / min(seconds[1], fastest(theirs))

    class Half(CustomPartitionerFn):
        def __init__(self, share: float):
            self.share, self.graphs = share, []

        def __call__(self, joint: Any, inputs: Any, **keywords: Any) -> Any:
            keywords.pop("compiler", None)
            with functorch_config.patch(activation_memory_budget=self.share):
                found = min_cut_rematerialization_partition(joint, inputs, compiler="inductor", **keywords)
            self.done = work(module.graph for module in found)
            return found

        def uuid(self) -> None:
            return None

    # The operator of bags refuses the values that kernels which are not compiled leave.
    if model.trains and row["whole"]["graphs"] == 1 and name != "bags":
        with without_kernels():
            found = {}
            for share in (1.0, 0.5):
                half = Half(share)
                with config.patch(custom_partitioner_fn=half), KernelMeter() as meter:
                    found[share] = train(model, compiled(model, "inductor"), meter)[2], half.done
            peak, done = found[0.5]
            row["half"] = {"peak": peak, "work": [max(a - b, 0) for a, b in zip(done, found[1.0][1], strict=True)]}
            row["same"] = within(f"{peak}B", target=no_copies)
    gc.collect()
    return row


def again(found: dict[str, Any] | None, peak: str) -> str:
    if found is None:
        return "refused"
    done, moved = found["work"]
    return f"{found[peak] / 1024:.0f}; {done / 1e6:.2f} MFLOP, {moved >> 10} KiB"


def line(name: str, row: dict[str, Any]) -> str:
    whole, less = row["whole"], row["less"]
    budget = "0.6" if less["budget"] == "0.6x" else f"{less['planned'] / less['as_it_is']:.2f}, the smallest"
    cells = [
        name, whole["kernels"], row["plain"] >> 10,
        f"{whole['measured'] / whole['planned']:.3f}", f"{whole['measured'] / row['plain']:.3f}", f"{row['time']:.2f}" if "time" in row else "",
        budget, f"{less['measured'] / less['planned']:.3f}", f"{less['measured'] / row['plain']:.3f}", less["out"], less["again"],
        f"{max(whole['differs'], less['differs']):.0e}", again(row["half"], "peak") if "half" in row else "", again(row["same"], "measured") if "same" in row else "",
    ]  # fmt: skip
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def is_wrong(row: dict[str, Any]) -> bool:
    return any(f["differs"] > CLOSE or f["measured"] > SLACK * f["planned"] or not f["compiled"] for f in (row["whole"], row["less"]))


def write(path: Path, lines: dict[str, str]) -> None:
    """Replaces the rows of these models in the table of the document."""
    before, rest = path.read_text().split(MARKS[0])
    old, behind = rest.split(MARKS[1])
    kept = {row.removeprefix("| ").split(" |")[0]: row for row in old.splitlines() if row.startswith("| ") and row not in HEAD} | lines
    path.write_text("\n".join([before + MARKS[0], *HEAD, *(kept[name] for name in sorted(kept)), MARKS[1] + behind]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="MODEL")
    parser.add_argument("--write", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--target", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(tried(args.one, args.target)))
        return 0
    host = (ROOT / "plan/cost/targets/host.toml").read_text()
    wrong, lines = 0, {}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "no-copies.toml")
        target.write_text(host.replace('"host"', '"no-copies"', 1).replace("bytes_per_second = 9e9", "bytes_per_second = 1e3"))
        for name in args.names or MODELS:
            command = [sys.executable, __file__, "--one", name, "--target", str(target)]
            try:
                ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True, env=os.environ)
                row = json.loads(ran.stdout.splitlines()[-1])
                lines[name] = line(name, row)
            except (subprocess.SubprocessError, TypeError, KeyError) as error:
                said = (getattr(error, "stderr", None) or repr(error)).strip().splitlines()
                wrong += 1
                print(f"{name}: {said[-1][:300] if said else 'failed'}", flush=True)
                continue
            wrong += is_wrong(row)
            print(lines[name], flush=True)
            if args.write:
                write(args.write, lines)
    print(f"{len(lines)} models ran, {wrong} are wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
