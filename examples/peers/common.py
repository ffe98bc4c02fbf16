"""An instance, and the times of a plan's steps: what the two peers in this folder share."""

import heapq
import json
import math
import sys


class Instance:
    """Operators in their order, with nanoseconds, workspaces, inputs and outputs; tensors with their bytes and uses."""

    def __init__(self, path):
        file = json.load(open(path))
        if file.get("lanes"):
            sys.exit("operators on several lanes are not known here")
        self.size = file["tensor_bytes"]
        self.ops = [(round(op[2] * 1000), op[3], op[4], op[5]) for op in file["ops"]]
        self.phase = [op[1] for op in file["ops"]]
        self.repeats = [op[6] == 1 for op in file["ops"]]
        self.out_rate, self.in_rate = file["bw_d2h"], file["bw_h2d"]
        self.latency = file.get("latency_ns", 0)
        self.half_duplex = file.get("half_duplex", False)
        large = [t for t, size in enumerate(self.size) if size >= 1 << 20]
        self.swappable = set(large if file.get("swappable") is None else file["swappable"])
        self.kept = set(file.get("kept", []))
        self.changed = {}
        for op, tensor in file.get("changes", []):
            self.changed.setdefault(op, []).append(tensor)
        self.maker = {t: k for k, (_, _, _, outputs) in enumerate(self.ops) for t in outputs}
        self.uses = [[] for _ in self.size]
        for k, (_, _, inputs, outputs) in enumerate(self.ops):
            for t in {*inputs, *outputs}:
                self.uses[t].append(k)
        given = [t for t in range(len(self.size)) if t not in self.maker and self.uses[t]]
        self.given = given if file.get("given") is None else file["given"]

    def saved(self):
        """The tensors that the forward phase makes and a later phase reads."""
        first = [t for t in self.maker if self.phase[self.maker[t]] == 0 and t not in self.kept]
        return [t for t in first if any(self.phase[k] != 0 for k in self.uses[t])]


class Memory:
    """Bytes on the device. Allocations come in the order of their times; what is freed later is known when it is."""

    def __init__(self, budget, held):
        self.budget, self.held, self.frees, self.last = budget, held, [], 0

    def free(self, time, size):
        heapq.heappush(self.frees, (time, size))

    def allocate(self, size, earliest):
        """The first time, not before `earliest`, at which the bytes are there; None if they never are."""
        time = max(earliest, self.last)
        while self.frees and (self.frees[0][0] <= time or self.held + size > self.budget):
            freed, freed_size = heapq.heappop(self.frees)
            time, self.held = max(time, freed), self.held - freed_size
        if self.held + size > self.budget:
            return None
        self.held, self.last = self.held + size, time
        return time


def nanos(size, rate, latency):
    return math.ceil(size * 10**9 / rate) + latency


def write(path, steps, **more):
    steps.sort(key=lambda step: (step["start_ns"], step["end_ns"]))
    json.dump({"format": "lmsc-schedule-1", "steps": steps, **more}, open(path, "w"))
    print(f"makespan {max(step['end_ns'] for step in steps) / 1e6:.3f} ms")
