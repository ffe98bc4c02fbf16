"""Parts A to F, and N: whether the GPU computes the host's results."""

import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import peers, tensors
from .cases import OPERATORS, PLANNERS, Case, case
from .check import Check, Failed, Findings, Stop, found_in_path, python

# Processes at a time: each has a context, and the machine 16 processors.
AT_ONCE = 6
STEPS = 3
# How many differing values are told by name.
TOLD = 20
OPTIMIZERS = {"gradients": None, "sgd": "optimizer_model_sgd.onnx"}
WAYS: dict[str, list[str]] = {
    "cuda": [],
    "again": [],
    "graph": [],
    "own kernels": ["--own-kernels"],
    "chunks": ["--virtual", "2MiB"],
}
# The optimizer of the plans among the ways to run a small model.
PLANNED = "sgd"
# Of models of full size: products are sums of thousands, added in another order. Where the host itself leaves other numbers when
# the last bit of each element of the input is another one, so many times the difference: every operator rounds, not the input
# alone.
ALLOWED_LARGE = 1e-2
ROUNDINGS = 4
# Of three steps of a small network in Python: a loss, and a parameter as a share of its largest element.
ALLOWED_PYTHON = 1e-3
LIBRARIES = ("cuBLAS", "cuDNN")


def smi(check: Check, fields: str) -> list[str]:
    """The report of the driver's own tool on the first GPU."""
    query = [f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    told = check.command(found_in_path("nvidia-smi"), *query, seconds=20)
    return [value.strip() for value in told.splitlines()[0].split(",")]


def torch(
    check: Check, found: Findings, what: str, arguments: dict[str, Any], seconds: float, env: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """The findings of PyTorch in a process of its own, which it also appends to those of the check; none where it is missing."""
    env = {"GPU_CHECK_FINDINGS": str(check.out / "check.jsonl"), "GPU_CHECK_PART": check.part} | (env or {})
    try:
        # It ends before the part does, so that its findings are not lost.
        seconds = min(seconds, check.left() - 2)
        told = check.command(python(), peers.__file__, what, json.dumps(arguments), seconds=seconds, env=env)
    except Failed as error:
        found.skipped.append(f"PyTorch: {what}: {error}")
        told = error.printed
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    found.skipped += [f"PyTorch: {line['skipped']}" for line in lines if "skipped" in line]
    return [line for line in lines if "skipped" not in line]


def environment(check: Check, found: Findings) -> None:
    """Environment: versions, paths, ceilings."""
    try:
        name, driver, memory, used = smi(check, "name,driver_version,memory.total,memory.used")
        found.values |= {"card": name, "driver": driver, "memory_mib": int(memory), "used_mib": int(used)}
    except (Failed, ValueError) as error:
        found.skipped.append(f"nvidia-smi: {error}")
    found.values["lmsc"] = check.lmsc("--version").strip()
    found.values["packed"] = {key: check.about[key] for key in ("commit", "target", "nvrtc")}
    try:
        check.run(*case("tiny_mlp", batch=4).source(), "--steps", "1", "--require-libraries", seconds=30)
        # Its convolutions may be too small for cuDNN, which is loaded all the same.
        gpu = check.run(*case("tiny_cnn", batch=2).source(), "--steps", "1", seconds=30)["gpu"]
    except Failed as error:
        raise Stop(f"the libraries are not all there: {error}") from None
    found.values["gpu"] = gpu
    names = [library["name"] for library in gpu["libraries"]]
    missing = [name for name in LIBRARIES if name not in names]
    if missing:
        raise Stop(f"missing: {', '.join(missing)}; found: {', '.join(names) or 'none'}")
    for line in torch(check, found, "ceilings", {}, 40):
        found.values |= line


def smoke(check: Check, found: Findings) -> None:
    """Smoke: a step of two models, and the memory that stays."""
    for it in (case("tiny_mlp", batch=4), case("tiny_cnn", batch=2)):
        told = check.run(*it.source(), "--steps", "1", seconds=15)
        found.values[it.model] = {key: told[key] for key in ("losses", "peak", "arena", "gpu")}
        check.judge(found, all(math.isfinite(loss) for loss in told["losses"]), f"{it.model}: the loss is no number")
    try:
        found.values["used_mib_afterwards"] = int(smi(check, "memory.used")[0])
    except (Failed, ValueError) as error:
        found.skipped.append(f"nvidia-smi: {error}")


def operators_of(text: str) -> dict[str, str]:
    """The operator that computes each value of a graph in the text form."""
    found = {}
    for results, operator in re.findall(r"^ *\[\w+\] (.+?) = ([\w.]+)[<(]", text, re.MULTILINE):
        # Each is a type and a name.
        for result in results.split(", "):
            found[result.split()[-1]] = operator
    return found


def told(differences: list[tensors.Difference], operators: dict[str, str]) -> list[dict[str, Any]]:
    """The first differences, each with the kernel's operator, the element and both values."""
    first: dict[str, tensors.Difference] = {}
    for it in differences:
        first.setdefault(it.name, it)
    shown = list(first.values())[:TOLD]
    return [
        {"value": it.name, "operator": operators.get(it.name), "element": it.element, "gpu": it.ours, "host": it.theirs}
        for it in shown
    ]


def operators(check: Check, found: Findings) -> None:
    """Operators: every kernel once, by libraries and by own kernels, beside the host."""
    names = operators_of(OPERATORS.read_text())
    expected = check.host("operators")
    # No operator computes the graph's inputs.
    computed = [name for name in expected if name in names]
    if len(computed) < len(names):
        raise Failed(f"{len(names) - len(computed)} of {len(names)} values of operators are not packed")
    for way in ([], ["--own-kernels"]):
        by = "own kernels" if way else "libraries"
        with check.scratch() as folder, check.guarded(found, by):
            out = folder / "values"
            line = [str(OPERATORS), "--steps", "1", *way]
            check.run(*line, "--fetch", "all", "--out", out, seconds=30)
            worst, differences = tensors.compare(tensors.digest(out), expected)
            wrong = sorted({it.name for it in differences})
            values = {"values": len(expected), "worst": worst, "wrong": len(wrong), "first": told(differences, names)}
            check.note(by, values)
            found.values[by] = values if not check.rehearsal else {"values": len(expected)}
            check.judge(found, not wrong, f"by {by}, {len(wrong)} values differ, by up to {worst:.3g} of what is allowed", line)


@dataclass(frozen=True)
class Job:
    """A run whose variables are compared with those of the host."""

    case: Case
    optimizer: str
    way: str
    allowed: float

    @property
    def name(self) -> str:
        return f"{self.case.name}, {self.optimizer}, {self.way}"

    @property
    def host(self) -> str:
        return host_name(self.case, self.optimizer)

    def line(self, check: Check) -> list[str]:
        steps = ["--steps", str(STEPS)]
        if self.way in PLANNERS:
            return [str(check.packed / "plans" / self.case.tight(self.way)), *steps]
        return [*self.case.source(OPTIMIZERS[self.optimizer]), *steps, *WAYS[self.way]]


def host_name(it: Case, optimizer: str) -> str:
    return f"{it.name}-{optimizer}".replace(" ", "-").replace("=", "")


@dataclass(frozen=True)
class Left:
    """The state after a run, its difference from the host's, and the library that convolved."""

    variables: tensors.Digest
    worst: float
    differences: list[tensors.Difference]
    convolutions: str | None


def compared(check: Check, job: Job) -> Left:
    expected = check.host(job.host)
    with check.scratch() as folder:
        out = folder / "left"
        device = "cuda+graph" if job.way == "graph" else "cuda"
        gpu = check.run(*job.line(check), "--save", out, device=device, seconds=40)["gpu"]
        ours = tensors.digest(out)
    return Left(ours, *tensors.compare(ours, expected, job.allowed), gpu["convolutions"])


def at_once(jobs: list[Any], work: Callable[[Any], Any]) -> list[Any]:
    """The outcome of each job, a failure included, several at a time."""

    def one(job: Any) -> Any:
        try:
            return work(job)
        except (Failed, ValueError, KeyError, OSError) as error:
            return error

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, jobs))


def parity(check: Check, found: Findings) -> None:
    """Parity: variables after three steps beside the host's, and the same bits again."""
    jobs = [
        Job(it, optimizer, way, tensors.ALLOWED)
        for it in check.cases.parity for optimizer in OPTIMIZERS for way in WAYS
    ]  # fmt: skip
    planned = [(it, planner) for it in check.cases.parity for planner in PLANNERS]
    planned = [(it, planner) for it, planner in planned if it.tight(planner) not in check.about["unplanned"]]
    jobs += [Job(it, PLANNED, planner, tensors.ALLOWED) for it, planner in planned]

    def allowed(it: Case) -> float:
        return max(ALLOWED_LARGE, ROUNDINGS * check.about["spread"].get(host_name(it, "gradients"), 0.0))

    large = [Job(it, "gradients", way, allowed(it)) for it in check.cases.large for way in ("cuda", "again")]
    # The longest first, so that none is alone at the end.
    jobs = large + jobs
    left: dict[tuple[str, str], tensors.Digest] = {}
    worst: dict[str, float] = {}
    convolved: Counter[str] = Counter()
    for job, result in zip(jobs, at_once(jobs, lambda job: compared(check, job)), strict=True):
        if isinstance(result, Exception):
            found.red.append(f"{job.name}: {result}")
            check.red_runs.append((job.name, job.line(check)))
            check.note(job.name, {"error": str(result)})
            continue
        left[job.host, job.way] = result.variables
        worst[job.name] = by = result.worst
        values = {"worst": by, "first": told(result.differences, {})[:3], "convolutions": result.convolutions}
        check.record({"part": "D", "case": job.name, "values": values})
        check.judge(found, by <= 1.0, f"{job.name}: differs by {by:.3g} of what is allowed", job.line(check))
        convolved[result.convolutions or "nothing"] += 1
    found.values |= {"runs": len(jobs), "planned": len(planned), "compared": len(worst), "convolutions": dict(convolved.most_common(4))}
    same_bits(check, found, jobs, left)
    if not check.rehearsal:
        found.values["worst"] = dict(sorted(worst.items(), key=lambda it: -it[1])[:8])


def same_bits(check: Check, found: Findings, jobs: list[Job], left: dict[tuple[str, str], tensors.Digest]) -> None:
    """Two runs of one program leave the same bits; other ways to give it to the device do, too, which is only told."""
    counts = {"again": [0, 0], "graph": [0, 0], "chunks": [0, 0]} | {planner: [0, 0] for planner in PLANNERS}
    for job in jobs:
        first, other = left.get((job.host, "cuda")), left.get((job.host, job.way))
        if job.way not in counts or first is None or other is None:
            continue
        changed = tensors.changed(other, first)
        counts[job.way][0] += not changed
        counts[job.way][1] += 1
        if job.way == "again":
            check.judge(found, not changed, f"{job.name}: other bits in {', '.join(changed[:3])}", job.line(check))
    found.values["same bits"] = {way: f"{same} of {all_}" for way, (same, all_) in counts.items()}


def sanitizer(check: Check, found: Findings) -> None:
    """Sanitizer: runs that were red, once more under compute-sanitizer."""
    runs = check.red_runs[:3]
    if check.rehearsal:
        runs = [("rehearsal, bits", [*case("tiny_mlp", batch=4).source(), "--steps", "1", "--own-kernels"])]
    if not runs:
        found.skipped.append("nothing was red")
        return
    program = found_in_path("compute-sanitizer")
    for what, line in runs:
        tool = "racecheck" if "bits" in what else "memcheck"
        with check.guarded(found, f"{tool} of {what}"):
            log = check.logs / f"sanitizer-{len(found.values)}.txt"
            own = [] if "--own-kernels" in line or tool == "memcheck" else ["--own-kernels"]
            # Kernels are looked for in one module after the other: that one is not there is no error.
            asked = ["--tool", tool, "--report-api-errors", "no", "--log-file", log, "--error-exitcode", "99"]
            wrapped = [program, *asked, check.lmsc_path]
            try:
                check.command(*wrapped, "run", *line, *own, "--device", "cuda", seconds=25)
                ended = "nothing"
            except Failed as error:
                ended = str(error)
            text = log.read_text(errors="replace") if log.exists() else ""
            values = {"tool": tool, "ended": ended, "log": text.splitlines()[:40]}
            found.values[what] = {"tool": tool, "ended": ended}
            check.note(what, values)


def waits(check: Check, found: Findings) -> None:
    """Waits: a step without some of its waits for copies must leave other bits."""
    plan = check.packed / "plans" / check.cases.waits[1]

    def left(missing: int | None) -> tensors.Digest:
        with check.scratch() as folder:
            out = folder / "left"
            without = [] if missing is None else ["--without-waits", str(missing)]
            check.run(plan, "--steps", "2", *without, "--save", out, seconds=25)
            return tensors.digest(out)

    runs: list[int | None] = [None, None, 1, 2, 4, 8]
    results = at_once(runs, left)
    failed = [str(result) for result in results if isinstance(result, Exception)]
    if failed:
        raise Failed(failed[0])
    changed = [bool(tensors.changed(other, results[0])) for other in results[1:]]
    found.values |= {"plan": plan.name, "left out": len(changed) - 1, "shown": sum(changed[1:])}
    check.judge(found, not changed[0], f"{plan.name}: other bits although no wait is left out", [str(plan), "--steps", "2"])
    check.judge(found, any(changed[1:]), f"{plan.name}: none of the waits left out shows")


def folder_of(path: Path) -> int:
    """Bytes in a folder."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


# --- N ---


def package(check: Check, found: Findings) -> None:
    """Python: steps of `lmsc.torch` on the GPU beside those of PyTorch on the processor."""
    if not (check.packed / "python").is_dir():
        found.skipped.append("PyTorch: no wheel was packed; scripts/check-python builds one")
        return
    # In front of a package that is installed.
    path = os.pathsep.join(filter(None, [str(check.packed / "python"), os.environ.get("PYTHONPATH")]))
    ways = torch(check, found, "package", {"steps": STEPS}, 60, {"PYTHONPATH": path})
    found.values["ways"] = ways
    for way in ways:
        name = f"{way['device']}, budget {way['budget']}"
        check.note(f"Python {name}", way)
        off = max(way.get("losses", math.inf), way.get("parameters", math.inf))
        check.judge(found, off <= ALLOWED_PYTHON, f"{name}: {way.get('error') or f'differs by {off:.3g}'}")
