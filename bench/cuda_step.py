"""Estimates what a step's own kernels take on a GPU, from a log of launches.

    python3 bench/cuda_step.py LOG TEXT [rows]

LOG is what a driver that does nothing writes: a line `K kernel blocks stream word...` a launch, with the first words of its
first arguments; of a fused kernel instead the number of lanes, and of each its loop and its elements. A line with `eventsync`
ends a step. TEXT is the source of the fused kernels.

Modelled, not measured: a kernel takes as long as its bytes at BANDWIDTH, its instructions at three quarters of the issue rate,
or its dependent loads at LATENCY each, whichever is longest, and LAUNCH besides. Instructions are those of the disassembly
(bench/cuda_loops.py).
"""

import collections
import re
import sys

BANDWIDTH = 3.0e12
CLOCK = 1.75e9
PROCESSORS = 132
RESIDENT = 8  # blocks of 256 threads
LATENCY = 800  # cycles
FOLD = 1500  # cycles of a block's own sum
LAUNCH = 2e-6
ISSUE = PROCESSORS * 4 * 32 * CLOCK * 0.75
WIDTH = {"u8": 1, "i8": 1, "u16": 2, "f16": 2, "bf16": 2, "f32": 4, "u32": 4, "i32": 4}


def each(n, read_and_written, instructions):
    return max(n * read_and_written / BANDWIDTH, n * instructions / ISSUE), n * read_and_written


def in_blocks(blocks, rounds, n, bytes_of, instructions):
    """A kernel of so many blocks, in each of which a thread waits for `rounds` loads one after the other."""
    waves = -(-blocks // (PROCESSORS * RESIDENT))
    latency = waves * (rounds * LATENCY + FOLD) / CLOCK
    return max(bytes_of / BANDWIDTH, n * instructions / ISSUE, latency), bytes_of


def one_block_each(outputs, iterations, loads, instructions, bytes_of, passes=1):
    """Of one stage: one load is under way at a time."""
    blocks = max(outputs, 1)
    warps = max(1, min(RESIDENT, blocks / PROCESSORS)) * 2
    waves = -(-blocks // (PROCESSORS * RESIDENT))
    return passes * waves * iterations * max(LATENCY, warps * instructions) / CLOCK + 2e-6, bytes_of


def loops(text):
    """By kernel and loop, the bytes that an element costs."""
    lanes, kernels = {}, {}
    for m in re.finditer(r"inline void (lane_\w+)\(.*?\n}\n", text, re.S):
        body, total = m[0], 0
        for element in re.findall(r"const (\w+) r\d+ = a\d+\[i\];", body):
            total += WIDTH.get(element, 8)
        for element in re.findall(r"\(\((\w+)\*\)w\[\d+\]\)\[i\] = ", body):
            total += WIDTH.get(element, 8)
        operators = len(re.findall(r"each_\w+\(", body))
        spread = len(re.findall(r"found\(", body))
        channels = len(re.findall(r"short_channel\(", body))
        lanes[m[1]] = total, 6 * len(re.findall(r"\[i\]", body)) + 8 * operators + 60 * spread + 20 * channels
    for m in re.finditer(r"KERNEL (fused_\w+)\(.*?\n}\n", text, re.S):
        kernels[m[1]] = [lanes[lane] for lane in re.findall(r"return (lane_\w+)", m[0])]
    return kernels


def estimate(name, blocks, w):

    def n3():
        return w[0] * w[1] * w[2]

    # In two stages.
    if name in ("batch_moments", "batch_products") or name == "channel_sums" and two_stages:
        outer, axis, inner, slices, length = w[:5]
        n, operands = outer * axis * inner, 2 if name == "batch_products" else 1
        instructions = {"batch_moments": (10, 28), "batch_products": (12, 33), "channel_sums": (8, 29)}[name]
        rounds = -(-length // 1024)
        return in_blocks(axis * slices, rounds, n, 4 * n * operands, instructions[inner % 4 != 0])
    if name in ("column_sums", "layer_columns"):
        rows, columns, slices, length = w[:4]
        operands, instructions = (2, 19) if name == "layer_columns" else (1, 9)
        width = 4 if columns % 4 == 0 else 1
        tiles = -(-columns // (32 * width))
        n = rows * columns
        parts = slices * columns * 8 * operands
        return in_blocks(tiles * slices, -(-length // 32), n, 4 * n * operands + parts, instructions)
    if name == "part_sums" or name in ("batch_sums", "layer_sums", "batch_statistics") and two_stages:
        return 2 * LATENCY / CLOCK + 1e-6, 0
    if name.startswith("loss_slices"):
        rows = w[0] * w[2]
        return in_blocks(blocks, 2 * -(-rows // (blocks * 1024)), rows, 40 * rows, 40)
    if name in ("batch_apply_f32", "batch_grad_f32"):  # of packs
        n = w[0] * w[1]
        return each(n, 8 if "apply" in name else 12, 10 if w[1] == 4 else 35)
    if name == "merge_runs":
        return 16 * LATENCY / CLOCK, 48 * w[0]
    if name == "sort_runs":
        return 6000 / CLOCK, 24 * w[0]
    if name == "segments":
        return 4 * LATENCY / CLOCK, 16 * w[0]
    if name.startswith("sum_all_whole"):
        return each(w[0], 4 * (w[1] + 1) if len(w) > 1 and 1 < w[1] < 9 else 12, 15)
    # In one stage, as kernels were until commit 05c7819.
    if name == "batch_statistics":
        return one_block_each(w[1], -(-w[0] * w[2] // w[3]), 1, 67, 4 * n3(), 2)
    if name == "batch_sums":
        return one_block_each(w[1], -(-w[0] * w[2] // w[3]), 2, 72, 8 * n3())
    if name == "channel_sums":
        lanes, batch, channels, places = w[:4]
        return one_block_each(channels, -(-batch * places // lanes), 1, 66, 4 * batch * channels * places)
    if name == "layer_sums":
        return one_block_each(blocks, -(-w[0] // w[3]), 4, 30, 8 * w[0] * w[1])
    if name == "reduce_sum_f32":
        return one_block_each(blocks, -(-w[1] // w[2]), 1, 60, 4 * w[0] * w[1])
    if name.startswith("loss_total"):
        return (w[0] * w[2] / 256 * 1700 / CLOCK, 12 * w[0] * w[2]) if not two_stages else (3 * LATENCY / CLOCK, 0)
    if name == "chain":
        return w[1] * 60 / CLOCK, 0
    if name == "batch_apply":
        return each(n3(), 8, 103)
    if name == "batch_grad":
        return each(n3(), 12, 110)
    if name == "sum_all_f32":
        return each(w[0], 12, 60)
    # The same before and after.
    if name == "relu_f32":
        return each(w[0], 8, 25)
    if name in ("relu_grad_f32", "add_f32", "mul_f32", "sub_f32", "div_f32"):
        return each(w[0], 12, 40)
    if name in ("gelu_f32", "fast_gelu_f32"):
        return each(w[0], 8, 60)
    if name in ("gelu_grad_f32", "fast_gelu_grad_f32"):
        return each(w[0], 12, 80)
    if name.startswith("where"):
        return each(w[0], 9, 60)
    if name == "dropout":
        return each(w[0], 9, 40)
    if name == "dropout_grad":
        return each(w[0], 9, 30)
    if name.startswith("copy"):
        return each(w[0] // 16, 32, 30)
    if name.startswith("fill"):
        return each(w[0], 8 if "64" in name else 4, 15)
    if name.startswith("move"):
        return each(w[2], 8 if "u32" in name else 16 if "64" in name else 2, 60)
    if name.startswith("gather"):
        return each(w[0] * w[3] * w[2], 8, 60)
    if name == "layer":
        return w[0] / min(w[0], PROCESSORS * 8) * (3 * max(1, w[1] / 256) * 450 + 1100) / CLOCK, 8 * w[0] * w[1]
    if name == "layer_grad":
        return w[0] / min(w[0], PROCESSORS * 8) * (2 * max(1, w[1] / 256) * 500 + 1100) / CLOCK, 12 * w[0] * w[1]
    if name in ("softmax", "softmax_grad"):
        outer, axis, inner, lanes = w[:4]
        work = outer * inner / (256 / lanes)
        bytes_of = (8 if name == "softmax" else 12) * outer * axis * inner
        round_of = 1450 if name == "softmax" else 1200
        latency = work / min(work, PROCESSORS * 8) * (max(1, axis / lanes) * round_of + 1500) / CLOCK
        return max(latency, bytes_of / BANDWIDTH), bytes_of
    if name.startswith("loss_grad"):
        return each(n3(), 8, 180)
    if name == "add_bias":
        return each(n3(), 8, 80)
    if name.startswith("max_pool"):
        return 18e-6, 0
    return 1e-6, 0


log, text = sys.argv[1:3]
known = loops(open(text).read())
lines = open(log).read().splitlines()
ends = [k for k, line in enumerate(lines) if "eventsync" in line]
step = [line.split() for line in lines[ends[0] + 1 : ends[1]] if line.startswith("K ")]
marks = ("batch_moments", "layer_columns", "column_sums", "loss_slices")
two_stages = any(words[1].startswith(marks) for words in step)
time, floor, count = collections.Counter(), collections.Counter(), collections.Counter()
for _, name, blocks, _, *words in step:
    w = [int(x) for x in words]
    if name.startswith("fused"):
        all_of = [(known[name][which], n) for which, n in zip(w[1::2], w[2::2])]
        moved = sum(n * cost for (cost, _), n in all_of)
        t, b = max(moved / BANDWIDTH, sum(n * i for (_, i), n in all_of) / ISSUE), moved
        name = "fused"
        w = []
    else:
        t, b = estimate(name, int(blocks), w)
    time[name] += t + LAUNCH
    floor[name] += b
    count[name] += 1
print(f"{len(step)} launches, {1e3 * sum(time.values()):.2f} ms, {1e3 * sum(floor.values()) / BANDWIDTH:.2f} ms of bytes")
for name, t in time.most_common(int(sys.argv[3]) if len(sys.argv) > 3 else 12):
    print(f"  {name:24} {count[name]:4} {1e3 * t:7.2f} ms {1e3 * floor[name] / BANDWIDTH:7.2f} ms of bytes")
