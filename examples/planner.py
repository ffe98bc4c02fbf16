"""A planner of one page, in a language of your own: it reads an instance and writes a schedule that `lmsc check` checks.

    python3 examples/planner.py INSTANCE MEMORY_BYTES SCHEDULE

It evicts, of the tensors that the next operator does not touch, the one whose next use is farthest away (Belady's rule). Copies
out begin as soon as a tensor is computed; copies in begin when the memory for them is free, so the computation waits for them.
"""

import json
import math
import sys

instance, memory, target = json.load(open(sys.argv[1])), int(sys.argv[2]), sys.argv[3]
size = instance["tensor_bytes"]
ops = [(round(op[2] * 1000), op[3], op[4], op[5]) for op in instance["ops"]]  # nanoseconds, workspace, inputs, outputs
out_rate, in_rate = instance["bw_d2h"], instance["bw_h2d"]

uses = [[] for _ in size]
for tick, (_, _, inputs, outputs) in enumerate(ops):
    for tensor in {*inputs, *outputs}:
        uses[tensor].append(tick)
produced = {tensor for _, _, _, outputs in ops for tensor in outputs}

steps, ready = [], {}  # when a tensor on the device was written, or has returned
present = {tensor for tensor in range(len(size)) if uses[tensor] and tensor not in produced}
on_host: dict[int, int] = {}  # when its copy out has ended
now = out_free = in_free = 0


def next_use(tensor: int, tick: int) -> float:
    return min((use for use in uses[tensor] if use >= tick), default=math.inf)


def copy(kind: str, tensor: int, start: int, rate: float) -> int:
    end = start + math.ceil(size[tensor] * 10**9 / rate)
    steps.append({"do": kind, "tensor": tensor, "bytes": [0, size[tensor]], "start_ns": start, "end_ns": end})
    return end


for tick, (nanos, workspace, inputs, outputs) in enumerate(ops):
    present = {tensor for tensor in present if next_use(tensor, tick) < math.inf}  # the rest is dead
    touched, missing = {*inputs, *outputs}, [tensor for tensor in inputs if tensor not in present]
    room = now
    while sum(size[t] for t in present | touched) + workspace > memory:
        victims = [t for t in present - touched if size[t] >= 1 << 20]
        if not victims:
            sys.exit(f"operator {tick} does not fit")
        victim = max(victims, key=lambda t: (next_use(t, tick), t))
        present.remove(victim)
        if victim not in on_host:
            out_free = on_host[victim] = copy("out", victim, max(out_free, ready.get(victim, 0)), out_rate)
        room = max(room, on_host[victim])
    for tensor in missing:
        in_free = copy("in", tensor, max(in_free, room, on_host[tensor]), in_rate)
        room = max(room, in_free)
    start, now = room, room + nanos
    steps.append({"do": "op", "op": tick, "start_ns": start, "end_ns": now})
    present |= touched
    ready |= dict.fromkeys(outputs, now)

steps.sort(key=lambda step: (step["start_ns"], step["end_ns"]))
json.dump({"format": "lmsc-schedule-1", "steps": steps}, open(target, "w"))
print(f"makespan {now / 1e6:.3f} ms")
