"""Parts G to M: its speed, where the time goes, and PyTorch's time."""

import csv
import io
import json
import re
import statistics
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import report
from .cases import FASTER, TARGET, Case, case
from .check import Check, Failed, Findings, found_in_path
from .correct import torch

# A step may take so much longer than it was predicted to.
SLOWER = 1.05
MIB = 1 << 20
METRICS = {
    "gpu__time_duration.sum": "time",
    "dram__bytes.sum": "bytes",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory %",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "processors %",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps %",
    "launch__registers_per_thread": "registers",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": "waits for memory an issue",
}


def link(check: Check, found: Findings) -> None:
    """Link: each way, both at once, latency; memory pinned by registering and by allocating."""
    with check.scratch() as folder:
        profile = folder / "profile.json"
        it = case("tiny_mlp", batch=4)
        told = check.lmsc("calibrate", *it.source(), "--device", "cuda", "-o", profile, seconds=25)
        found.values["lmsc"] = json.loads(profile.read_text())["link"]
        found.values["told"] = told.strip().splitlines()
    sizes = [MIB] if check.rehearsal else [MIB, 16 * MIB, 256 * MIB, 1024 * MIB]
    found.values["torch"] = torch(check, found, "link", {"sizes": sizes}, 20)


# --- H: kernel by kernel ---


@dataclass
class Kernel:
    """The calls of one kernel in a step, or of one library for one kind of extents."""

    name: str
    calls: int = 0
    seconds: float = 0.0
    floor: float = 0.0
    bytes: int = 0
    operations: int = 0
    # The place of the call that loses most among those of this kernel in the order of the step, and its loss.
    worst: int = 0
    loses: float = field(default=0.0)

    @property
    def lost(self) -> float:
        return self.seconds - self.floor


def label(call: dict[str, Any]) -> str:
    if call["kind"] == "kernel":
        return "fused" if call.get("operators", 1) > 1 else call["kernel"]
    if call["kind"] == "convolution":
        # Without the engine's number, whose kernels differ from card to card.
        cores = " on tensor cores" if (call.get("engine") or {}).get("tensor_cores") else ""
        return f"convolution: {call['computes']}{cores}"
    return call["kind"]


def step_of(trace: Path) -> dict[str, float]:
    """The median time of each node in the steps after the first, in seconds."""
    events = json.loads(trace.read_text())["traceEvents"]
    times = defaultdict(list)
    for event in events:
        if event["ph"] == "X" and event["tid"] == 0 and event["args"]["step"] > 0 and "operator" in event["args"]:
            times[event["name"]].append(event["dur"] * 1e-6)
    return {node: statistics.median(all_) for node, all_ in times.items()}


def kernels_of(calls: list[dict[str, Any]], times: dict[str, float]) -> list[Kernel]:
    """The kernels of a step; the time of a node is shared among its calls as their floors are."""
    of_node = defaultdict(list)
    for call in calls:
        if call["stream"] == "compute":
            of_node[call["node"]].append(call)
    found: dict[str, Kernel] = {}
    for node, its in of_node.items():
        whole = sum(call["floor_seconds"] for call in its)
        for call in its:
            kernel = found.setdefault(label(call), Kernel(label(call)))
            share = call["floor_seconds"] / whole if whole else 1 / len(its)
            seconds = times.get(node, 0.0) * share
            if seconds - call["floor_seconds"] > kernel.loses:
                kernel.worst, kernel.loses = kernel.calls, seconds - call["floor_seconds"]
            kernel.calls += 1
            kernel.seconds += seconds
            kernel.floor += call["floor_seconds"]
            kernel.bytes += call["bytes"]
            kernel.operations += call["operations"]
    return sorted(found.values(), key=lambda kernel: -kernel.lost)


def profile_of(check: Check) -> Path:
    return check.packed / "scratch" / "profile.json"


def kernels(check: Check, found: Findings) -> None:
    """Kernels: time, bytes and share of the peak of each, of the first case in f32."""
    it = check.cases.resnet[0]
    with check.scratch() as folder:
        check.lmsc("calibrate", *it.source(), "--device", "cuda", "--steps", "3", "-o", profile_of(check), seconds=40)
        trace = folder / "trace.json"
        told = check.run(*it.source(), "--steps", "3", "--trace", trace, seconds=30)
        times = step_of(trace)
    target = FASTER if "H200" in told["gpu"]["name"] else TARGET
    calls = json.loads(check.lmsc("launches", *it.source(), "--target", target, "--json", seconds=30))["calls"]
    nodes = {call["node"] for call in calls if call["stream"] == "compute"}
    untimed = sorted(nodes - times.keys())
    all_ = kernels_of(calls, times)
    found.values |= {
        "case": it.name,
        "target": target,
        "step_seconds": statistics.median(told["step_seconds"][1:]),
        "kernel_seconds": sum(kernel.seconds for kernel in all_),
        "floor_seconds": sum(kernel.floor for kernel in all_),
        "untimed": len(untimed),
        "timed_elsewhere": len(times.keys() - nodes),
    }
    found.values["kernels"] = [
        {
            "name": kernel.name, "calls": kernel.calls, "seconds": kernel.seconds, "floor_seconds": kernel.floor,
            "bytes": kernel.bytes, "operations": kernel.operations, "worst": kernel.worst,
            "share_of_peak": kernel.floor / kernel.seconds if kernel.seconds else None,
        }
        for kernel in all_
    ]  # fmt: skip
    if len(untimed) > len(nodes) // 10:
        raise Failed(f"{len(untimed)} of {len(nodes)} nodes are not in the trace, such as {untimed[0]}")


# --- I, K, M: steps ---


def ran(told: dict[str, Any]) -> dict[str, Any]:
    """The compared figures of a run."""
    names = {"predicted_step_seconds": "predicted", "peak": "peak", "predicted_peak": "predicted_peak", "budget": "budget"}
    rest = ("arena", "slab", "copied_out", "copied_in", "gpu")
    seconds = told["step_seconds"]
    found = {"seconds": statistics.median(seconds[1:] or seconds), "least": min(seconds)}
    return found | {new: told[old] for old, new in names.items()} | {key: told[key] for key in rest}


def steps_of(check: Check, found: Findings, it: Case, budget: str | None, precision: str, graph: bool = False) -> None:
    """A step without a budget, or as it was planned."""
    name = f"{it.name} {budget or 'in memory'} {precision}{' graph' if graph else ''}"
    with check.guarded(found, name):
        source = [check.plan(it, budget, precision)] if budget else it.source()
        profile = ["--profile", profile_of(check)] if profile_of(check).exists() else []
        line = [*source, "--steps", str(check.cases.steps), "--precision", precision, *profile]
        told = check.run(*line, device="cuda+graph" if graph else "cuda", seconds=60)
        values: dict[str, Any] = {"model": it.name, "by": "lmsc", "way": precision, "graph": graph, "in": budget} | ran(told)
        found.values.setdefault("steps", []).append(values)
        check.note(name, {key: values[key] for key in ("seconds", "predicted", "peak", "predicted_peak", "budget")})
        by_own = [told["gpu"][key] for key in ("products", "convolutions") if "own kernels" in (told["gpu"][key] or "")]
        check.judge(found, values["peak"] <= values["predicted_peak"], f"{name}: more memory is used than was planned")
        check.judge(found, not budget or values["arena"] <= (values["budget"] or 0), f"{name}: the arena is not the plan's")
        check.judge(found, not by_own, f"{name}: {', '.join(by_own)}")
        if values["seconds"] > SLOWER * values["predicted"] and precision == "f32" and not check.rehearsal:
            found.missed.append(f"{name}: {values['seconds']:.4f} s, predicted {values['predicted']:.4f} s")


def stalled(check: Check, found: Findings, it: Case, budget: str, precision: str = "tf32") -> None:
    """The time that computing waits for copies: with a trace, which takes time itself, so in a run of its own."""
    name = f"{it.name} {budget} {precision} stalled"
    with check.guarded(found, name), check.scratch() as folder:
        plan = check.plan(it, budget, precision)
        line = [plan, "--steps", "3", "--precision", precision, "--trace", folder / "trace.json"]
        told = check.run(*line, seconds=60)
        values = {key: told[key] for key in ("stalled_seconds", "hidden_percent")}
        found.values.setdefault("stalled", {})[f"{it.name} {budget}"] = values
        check.note(name, values)


def family(check: Check, found: Findings, cases: tuple[Case, ...], precisions: tuple[str, ...]) -> None:
    """Steps in memory and in each budget; the last one that works is examined."""
    for it in cases:
        for precision in precisions:
            for budget in [None] * it.fits + [*it.budgets]:
                steps_of(check, found, it, budget, precision)
    for it in cases:
        if it.fits:
            steps_of(check, found, it, None, precisions[-1], graph=True)
        for budget in it.budgets:
            stalled(check, found, it, budget)


def resnet(check: Check, found: Findings) -> None:
    """ResNet-50: step, peak, prediction and stall, in memory and within budgets."""
    family(check, found, check.cases.resnet, ("f32", "tf32"))


def in_torch(check: Check, found: Findings, cases: tuple[Case, ...], seconds: float) -> None:
    until = check.left() - seconds
    # A process for each model and for compiled steps, which come last and take most of the time: one that is ended takes no other with it.
    runs: dict[tuple[int, str], list[list[Any]]] = {}
    for it in cases:
        for way in it.peers:
            last = ("compiled" in way) + 2 * ("budget" in way)
            runs.setdefault((last, it.model), []).append([it.model, dict(it.dims), way])
    for _, of_model in sorted(runs.items()):
        options = {"runs": of_model, "steps": check.cases.steps}
        found.values.setdefault("peers", []).extend(torch(check, found, "steps", options, check.left() - until))


def resnet_in_torch(check: Check, found: Findings) -> None:
    """ResNet-50 in PyTorch: with mixed precision, compiled, and with each way to save memory."""
    in_torch(check, found, check.cases.resnet, 135)


def gpt2(check: Check, found: Findings) -> None:
    """GPT-2: the same steps, by lmsc and by PyTorch."""
    family(check, found, check.cases.gpt2, ("f32", "tf32"))
    in_torch(check, found, check.cases.gpt2, 70)


def rest(check: Check, found: Findings) -> None:
    """U-Net in three dimensions and BERT: the same steps, by lmsc and by PyTorch."""
    family(check, found, check.cases.rest, ("tf32",))
    in_torch(check, found, check.cases.rest, 40)


# --- L ---


def counters(text: str) -> dict[str, str]:
    """The counters of `ncu --csv` for a launch."""
    lines = text.splitlines()
    begin = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        raise Failed("ncu tells of no launch")
    found = {}
    for row in csv.DictReader(io.StringIO("\n".join(lines[begin:]))):
        if row["Metric Name"] in METRICS:
            found[METRICS[row["Metric Name"]]] = f"{row['Metric Value']} {row['Metric Unit']}".strip()
    return found


def profiler(check: Check, found: Findings) -> None:
    """Profiler: counters of the five kernels that lose most."""
    program, it = found_in_path("ncu"), check.cases.resnet[0]
    known = [it for it in report.of(report.read(check.out), "H").get("kernels", []) if re.fullmatch(r"\w+", it["name"])]
    chosen = [kernel for kernel in known if kernel["name"] not in ("product", "fused")][:5]
    if not chosen:
        raise Failed("part H has left no kernels")
    for kernel in chosen:
        with check.guarded(found, kernel["name"]):
            only = ["--kernel-name", f"regex:^{kernel['name']}$", "--launch-skip", kernel["worst"], "--launch-count", "1"]
            line = [program, "--clock-control", "none", *only, "--metrics", ",".join(METRICS), "--csv", "--page", "details"]
            told = check.command(*line, check.lmsc_path, "run", *it.source(), "--steps", "1", "--device", "cuda", seconds=20)
            values = counters(told)
            found.values[kernel["name"]] = values
            check.note(kernel["name"], values)
