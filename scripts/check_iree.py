"""Compiles lmsc's modules for IREE, with IREE, for a processor as two devices.

- Every small model with a recording, rewritten for a tight budget: IREE's schedule has every copy of the plan, between the same
  devices, and starts it after everything that the plan has before it.
- Those that IREE compiles fast, or with --all every one, as they are and rewritten, compute the loss, the gradients and the
  running statistics that onnxruntime-training recorded, and with the optimizer the parameters after one step.

Prints a line a model. LMSC names the program; arguments select models by their names, which are run then.
"""

import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import iree.compiler.tools.binaries
import iree.runtime
import numpy as np

from recordings import MODELS, Arrays, Compiled, Step, failures, named

# The models that CI runs: IREE takes a second for ten operations of its own.
FAST = ["tiny_cnn", "tiny_mlp", "tiny_mlp_mse"]

COMPILE = [
    iree.compiler.tools.binaries.find_tool("iree-compile"),
    "--iree-hal-target-device=dev=local[0]",
    "--iree-hal-target-device=host=local[1]",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
    "--iree-stream-affinity-solver-max-iterations=4096",
]

# Global, so that they outlive IREE's objects.
INSTANCE = iree.runtime.VmInstance()
PROCESSORS = [iree.runtime.get_driver("local-task").create_default_device() for _ in range(2)]


def iree_compile(text: str, *options: str) -> bytes:
    with tempfile.TemporaryDirectory() as name:
        source, result = Path(name) / "step.mlir", Path(name) / "step.out"
        source.write_text(text)
        done = subprocess.run([*COMPILE, *options, source, "-o", result], capture_output=True, text=True, timeout=600)
        if done.returncode != 0:
            lines = [line for line in done.stderr.splitlines() if "error:" in line]
            raise RuntimeError(f"iree-compile exits with {done.returncode}: {lines[0][:300] if lines else done.stderr[-300:]}")
        return result.read_bytes()


def run(step: Step, text: str) -> Arrays:
    """The module's results, on two devices that are this processor."""
    hal = iree.runtime.create_hal_module(INSTANCE, devices=PROCESSORS)
    program = iree.runtime.VmModule.copy_buffer(INSTANCE, iree_compile(text))
    context = iree.runtime.VmContext(INSTANCE, [hal, program])
    function = iree.runtime.FunctionInvoker(context, PROCESSORS[0], program.lookup_function("main"))
    results = function(*step.arguments(text))
    # Copied, as IREE owns their memory.
    return named(text, [np.array(value.to_host()) for value in results])


# --- schedule ---------------------------------------------------------------------------------------------------------


def schedule(text: str) -> tuple[list[tuple[str, str, list[str]]], set[str]]:
    """IREE's commands in order, each with its kind, device and nodes; and the nodes whose results both devices reach."""
    stream = iree_compile(text, "--compile-to=stream", "--mlir-print-debuginfo").decode()
    locations = dict(re.findall(r"^(#loc\d+) = loc\((.*)\)$", stream, re.MULTILINE))
    body = stream[stream.index("util.func public @main(") :].splitlines()

    def names(location: str) -> list[str]:
        while inner := re.search(r"#loc\d+", location):
            location = location.replace(inner[0], locations.get(inner[0], ""), 1)
        return [re.sub(r"\\([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), n) for n in re.findall(r'"((?:[^"\\]|\\.)*)"(?!:)', location)]

    found, device, opened, before = [], "", "", ""
    shared: set[str] = set()
    for line in body:
        if reached := re.search(r"alloca .*#hal\.device\.optimal<\[.*@dev>.*@host>.*loc\((.*)\)$", line):
            shared.update(names(reached[1]))
        if on := re.search(r"stream\.cmd\.execute on\(#hal\.device\.affinity<@(\w+)>", line):
            device = on[1]
        elif start := re.search(r"stream\.cmd\.dispatch @\w+::@(\w+)", line):
            opened = start[1]
        elif opened and (end := re.match(r"\s*\} loc\((.*)\)$", line)):
            found.append((opened, device, names(end[1])))
            opened = ""
        elif copy := re.search(r"stream\.cmd\.copy .* loc\((.*)\)$", line):
            # Operators that only move something are copies on one device.
            found.append(("copy" if "stream.cmd.invalidate from(" in before else "move", device, names(copy[1])))
        elif "stream.cmd.flush to(" in line:
            found[-1] = ("copy", *found[-1][1:])
        before = line
        if re.match(r"  \} loc", line):
            break
    return found, shared


def check_schedule(model: str, source: Compiled) -> str:
    """How many copies of the plan IREE has in its schedule, where the plan has them."""
    transfers = re.findall(
        r'^ *%\d+ = "flow\.tensor\.transfer".*#hal\.device\.promise<@(\w+)>.* loc\("(.*)"\)$', source.text, re.MULTILINE
    )
    transfers = {name: device for device, name in transfers}
    events, shared = schedule(source.text)
    place: dict[str, list[int]] = {}
    for at, (what, device, names) in enumerate(events):
        if what == "copy":
            assert any(name in transfers for name in names), f"{model}: a copy of {names} is none of the plan's"
        else:
            assert device == "dev", f"{model}: {what} of {names} runs on the device `{device}`"
        for name in names:
            place.setdefault(name, []).append(at)
    # Where a swapped tensor lies in memory that both devices reach, IREE may read it there instead of copying it back first.
    in_place = {name for name in transfers if name not in place}
    for name in in_place:
        left = re.sub(r"^in_(.*?)(_\d+)?$", r"out_\1", name)
        assert left in shared, f"{model}: IREE has no copy for {name}"
    tick = {name: at for at, name in enumerate(source.order)}
    before = waits = 0
    for name, device in transfers.items():
        if device == "host" or name in in_place:
            continue
        start = min(place[name])
        for at, (what, _, names) in enumerate(events):
            if what != "copy" and names and all(tick.get(other, tick[name]) < tick[name] for other in names):
                before += 1
                assert at < start, f"{model}: {name} starts before {names}"
    for name, after in source.order.items():
        # Waiting for a swap-out frees no memory here.
        if name not in place or transfers.get(name) == "host":
            continue
        for out in after:
            if transfers.get(out) == "host":
                waits += 1
                assert max(place[out]) < min(place[name]), f"{model}: {name} does not wait for {out}"
    assert transfers and before and waits, f"{model}: {len(transfers)} copies, {before} before and {waits} waiting for one"
    outs = sum(device == "host" for device in transfers.values())
    there = f" ({len(in_place)} read where they are)" if in_place else ""
    return f"{outs} copies out and {len(transfers) - outs} in{there}, {waits} waits"


def check(model: str, runs: bool) -> str:
    step = Step(model)
    tight = step.tight("mlir-iree")
    said = check_schedule(model, tight)
    if not runs:
        return said
    count, worst = step.agrees(run(step, step.plain("mlir-iree").text))
    more, error = step.agrees(run(step, tight.text), optimizer=True)
    assert more > count, f"{model}: {more} tensors with the optimizer"
    return f"{said}; {count} tensors, off by {worst:.1e} at most; {more} with the optimizer and copies, {error:.1e}"


def main() -> int:
    selected = [argument for argument in sys.argv[1:] if argument != "--all"]
    models = [path.parent.name for path in sorted(MODELS.glob("tiny_*/training_model.recorded.safetensors"))]
    runs = {model: bool(selected) or "--all" in sys.argv[1:] or model in FAST for model in models}
    return 1 if failures({model: partial(check, model, runs[model]) for model in models}, selected) else 0


if __name__ == "__main__":
    sys.exit(main())
