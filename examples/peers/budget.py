"""Recomputation by a knapsack of saved activations, after the activation memory budget of PyTorch's partitioner.

    lmsc bench --recompute --planner 'python3 examples/peers/budget.py {} {memory} {out}' testdata/instances

Each activation that the backward phase reads is saved or made again: the saved ones may take a share of the bytes, and are worth the
time of the operator that makes them. The rest is made again right before its first use in the backward phase, each once. Of 65 shares
the fastest whose peak is within the memory is taken. Nothing is copied to the host.
"""

import sys

from common import Instance, write

SHARES, UNITS = 64, 1024

instance, budget, target = Instance(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
size, ops, maker = instance.size, instance.ops, instance.maker
changed = {t for tensors in instance.changed.values() for t in tensors}
items = [t for t in instance.saved() if instance.repeats[maker[t]] and t not in changed]
total = sum(size[t] for t in items)


def knapsack():
    """For each share of the bytes the tensors whose operators take longest together."""
    weights = [-(-size[t] * UNITS // max(total, 1)) for t in items]
    best, taken = [0] * (UNITS + 1), []
    for t, weight in zip(items, weights):
        value, takes = ops[maker[t]][0], bytearray(UNITS + 1)
        for room in range(UNITS, weight - 1, -1):
            if best[room - weight] + value > best[room]:
                best[room], takes[room] = best[room - weight] + value, 1
        taken.append(takes)
    for share in range(SHARES + 1):
        if share == SHARES:
            yield set(items)
            return
        room, saved = share * UNITS // SHARES, set()
        for t, weight, takes in reversed(list(zip(items, weights, taken))):
            if takes[room]:
                saved.add(t)
                room -= weight
        yield saved


def runs(saved):
    """The runs of operators, each with the versions of tensors that it reads and makes; the tensors of the plan."""
    again, tensors, order = {}, list(range(len(size))), []
    dropped = {t for t in items if t not in saved}

    def version(t):
        return again.get(t, t)

    def is_lost(t):
        """Whether the backward phase has no bytes of the tensor: it was not saved, or only the forward phase reads it."""
        if t in again or t not in maker or instance.phase[maker[t]] != 0:
            return False
        return t in dropped or (t not in saved_or_kept and instance.repeats[maker[t]])

    crossing = set(instance.saved())
    saved_or_kept = (crossing - dropped) | instance.kept | changed
    for k, (_, _, inputs, outputs) in enumerate(ops):
        if instance.phase[k] != 0:
            stack = [t for t in inputs if is_lost(t)]
            while stack:
                t = stack[-1]
                if not is_lost(t):
                    stack.pop()
                    continue
                missing = [s for s in ops[maker[t]][2] if is_lost(s)]
                if missing:
                    stack += missing
                    continue
                stack.pop()
                reads = [version(s) for s in ops[maker[t]][2]]
                makes = []
                for s in ops[maker[t]][3]:
                    makes.append(len(tensors))
                    tensors.append(s)
                # Results that are still there keep their versions.
                for s, new in zip(ops[maker[t]][3], makes):
                    if is_lost(s):
                        again[s] = new
                order.append((maker[t], reads, makes))
        order.append((k, [version(t) for t in inputs], [version(t) for t in outputs]))
    return order, tensors


def peak(order, tensors):
    """The most bytes at once; where a tensor is not read after the last operator, it dies with its last use."""
    last, made = {}, set()
    for at, (_, reads, makes) in enumerate(order):
        for t in (*reads, *makes):
            last[t] = at
        made.update(makes)
    for t in range(len(size)):
        if t in instance.kept:
            last[t] = len(order)
    held = sum(size[t] for t in instance.given)
    most = held
    for at, (k, reads, makes) in enumerate(order):
        held += sum(size[tensors[t]] for t in makes)
        most = max(most, held + ops[k][1])
        held -= sum(size[tensors[t]] for t in {*reads, *makes} if last[t] == at)
    return most


best = None
for saved in knapsack():
    order, tensors = runs(saved)
    duration = sum(ops[k][0] for k, _, _ in order)
    if (best is None or duration < best[0]) and peak(order, tensors) <= budget:
        best = duration, order, tensors
if best is None:
    sys.exit("no share of the activations fits")
_, order, tensors = best
now, steps, listed = 0, [], []
for k, reads, makes in order:
    steps.append({"do": "op", "op": k, "start_ns": now, "end_ns": now + ops[k][0]})
    now += ops[k][0]
    changes = [t for t in reads if tensors[t] in instance.changed.get(k, [])]
    listed.append({"op": k, "reads": reads, "produces": makes, "changes": changes})
write(target, steps, tensors=tensors, ops=listed)
