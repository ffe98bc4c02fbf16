"""Greedy offloading of activations, after DeepCompile (Tanaka and others, arXiv:2504.09983) and its pass for activations.

    lmsc bench --planner 'python3 examples/peers/offload.py {} {memory} {out}' testdata/instances

All activations of at least 5 MiB that the backward phase reads are candidates. With all of them away the step has a floor; the
largest come back to stay, as long as the floor with them fits. Each of the others leaves after its last use in the forward phase and
returns so early that the operators before its use hide the copy, where memory allows. Nothing runs again.
"""

import sys

from common import Instance, Memory, nanos, write

instance, budget, target = Instance(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
size, ops, uses, phase = instance.size, instance.ops, instance.uses, instance.phase
LEAST = 5 << 20

start_of = [0]
for op in ops:
    start_of.append(start_of[-1] + op[0])
candidates = [t for t in instance.saved() if size[t] >= LEAST and t in instance.swappable]
candidates = [t for t in candidates if not any(t in changed for changed in instance.changed.values())]
last_forward = {t: max(k for k in uses[t] if phase[k] == 0) for t in candidates}
first_backward = {t: min(k for k in uses[t] if phase[k] != 0) for t in candidates}


def profile(away):
    """Bytes at each operator if these tensors leave after their last forward use and return for their first backward one."""
    change = [0] * (len(ops) + 1)

    def add(begin, end, bytes_):
        change[begin] += bytes_
        change[end] -= bytes_

    for t, at in enumerate(uses):
        if at:
            begin = at[0] if t in instance.maker else 0
            end = len(ops) if t in instance.kept else at[-1] + 1
            add(begin, end, size[t])
            if t in away:
                add(last_forward[t] + 1, first_backward[t], -size[t])
    for k, (_, workspace, _, _) in enumerate(ops):
        add(k, k + 1, workspace)
    level, levels = 0, []
    for delta in change[:-1]:
        level += delta
        levels.append(level)
    return levels


away = set(candidates)
levels = profile(away)
room = budget - max(levels)
for t in sorted(candidates, key=lambda t: (-size[t], t)):
    if size[t] <= room:
        away.remove(t)
        room -= size[t]
levels = profile(away)

# Before which operator each tensor returns: early enough to hide its copy and those that follow on the link.
returns = {}
need = start_of[-1]
for t in sorted(away, key=lambda t: (-first_backward[t], t)):
    use = first_backward[t]
    need = min(need, start_of[use]) - nanos(size[t], instance.in_rate, instance.latency)
    at = use
    while at > last_forward[t] + 1 and start_of[at] > need and levels[at - 1] + size[t] <= budget:
        at -= 1
        levels[at] += size[t]
    returns.setdefault(at, []).append(t)

steps = []
memory = Memory(budget, sum(size[t] for t in instance.given))
now = out_free = in_free = 0
on_host, back = {}, {}
leaves = {}
for t in away:
    leaves.setdefault(last_forward[t], []).append(t)


def copy(kind, t, start, rate):
    end = start + nanos(size[t], rate, instance.latency)
    steps.append({"do": kind, "tensor": t, "bytes": [0, size[t]], "start_ns": start, "end_ns": end})
    return end


for k, (duration, workspace, inputs, outputs) in enumerate(ops):
    for t in sorted(returns.get(k, []), key=lambda t: (first_backward[t], t)):
        link = max(in_free, out_free) if instance.half_duplex else in_free
        start = memory.allocate(size[t], max(link, on_host[t]))
        if start is None:
            sys.exit(f"tensor {t} does not fit before operator {k}")
        in_free = back[t] = copy("in", t, start, instance.in_rate)
    needed = workspace + sum(size[t] for t in outputs)
    ready = max([now] + [back[t] for t in inputs if t in back])
    start = memory.allocate(needed, ready)
    if start is None:
        sys.exit(f"operator {k} does not fit")
    now = start + duration
    steps.append({"do": "op", "op": k, "start_ns": start, "end_ns": now})
    memory.free(now, workspace)
    for t in {*inputs, *outputs}:
        if uses[t][-1] == k and t not in instance.kept:
            memory.free(now, size[t])
    for t in sorted(leaves.get(k, []), key=lambda t: (first_backward[t], t), reverse=True):
        link = max(in_free, out_free) if instance.half_duplex else out_free
        out_free = on_host[t] = copy("out", t, max(link, now), instance.out_rate)
        memory.free(out_free, size[t])

write(target, steps)
