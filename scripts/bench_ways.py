"""Measures a training step of a small GPT on the host in several ways that save memory: the peak, and the time beside PyTorch's own.

PyTorch's peak is the bytes that exist before the step (parameters, moments, batch) plus the peak of its allocator during the step,
as its profiler records it. That of lmsc is the allocation of its runtime, the whole budget. Both leave out the program itself.
Offloading by `save_on_cpu` is not in the table: on a processor, host and device are one memory.

Needs the package with PyTorch, built with optimization (`pip install ./python[torch]`), and a C++ compiler for torch.compile.
`--write FILE` puts the table into a document between its markers.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import lmsc.torch
import torch
import torch._functorch.config
from bench_torch import GPT
from torch import Tensor
from torch.nn import functional as F
from torch.profiler import ProfilerActivity, profile
from torch.utils.checkpoint import checkpoint

BATCH, CONTEXT, LAYERS, WORDS = 16, 128, 8, 512
ROUNDS = 7
MIB = 1 << 20

Optimizer = torch.optim.Optimizer


class Wrapped(GPT):
    """The same network, each layer recomputed in the backward pass, as its author has to write it."""

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token(ids) + self.place
        for k in range(LAYERS):
            x = checkpoint(self.layer, k, x, use_reentrant=False)
        return self.head(self.norms[-1](x)).flatten(0, 1)

    def layer(self, k: int, x: Tensor) -> Tensor:
        q, key, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv[k](self.norms[2 * k](x)).chunk(3, -1))
        x = x + self.out[k](F.scaled_dot_product_attention(q, key, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down[k](F.gelu(self.up[k](self.norms[2 * k + 1](x))))


def made(kind: type[GPT]) -> tuple[GPT, Optimizer]:
    """The network, the same of each kind, and its optimizer."""
    torch.manual_seed(0)
    model = kind(WORDS, CONTEXT, 256, LAYERS)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)


def in_torch(kind: type[GPT], batch: tuple[Tensor, Tensor], share: float | None = None) -> tuple[Callable[[], float], Callable[[], int]]:
    """A step by PyTorch, which returns its loss; and the bytes that are there between steps."""
    model, optimizer = made(kind)
    forward = model
    if share is not None:
        torch._dynamo.reset()
        torch._functorch.config.activation_memory_budget = share
        forward = torch.compile(model)

    def step() -> float:
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(batch[0]), batch[1])
        loss.backward()
        optimizer.step()
        return loss.item()

    def held() -> int:
        moments = [t for state in optimizer.state.values() for t in state.values() if isinstance(t, Tensor)]
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        return sum(t.nbytes for t in [*model.parameters(), *moments, *gradients, *batch])

    return step, held


def peak(step: Callable[[], object], held: Callable[[], int]) -> int:
    """The most bytes at once in a step that is not the first."""
    before = held()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        step()
    changes = [(e.start_ns(), e.nbytes()) for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    now, most = before, before
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def once(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--write", type=Path)
    file = parser.parse_args().write
    torch.set_num_threads(2)
    ids = torch.randint(0, WORDS, (BATCH, CONTEXT + 1), generator=torch.Generator().manual_seed(1))
    batch = ids[:, :-1].contiguous(), ids[:, 1:].flatten()

    plain, held = in_torch(GPT, batch)
    rows: list[tuple[str, str, Callable[[], object], int]] = []
    losses = [plain() for _ in range(3)]
    whole = peak(plain, held)
    rows.append(("PyTorch", "0", plain, whole))

    wrapped, its = in_torch(Wrapped, batch)
    same = [wrapped() for _ in range(3)] == losses
    rows.append((f"`checkpoint` around each layer{'' if same else ' (other bits)'}", "2", wrapped, peak(wrapped, its)))
    for share in (0.5, 0.2):
        compiled, its = in_torch(GPT, batch, share)
        same = [compiled() for _ in range(3)] == losses
        rows.append((f"`torch.compile`, `activation_memory_budget = {share}`{'' if same else ' (other bits)'}", "2", compiled, peak(compiled, its)))

    model, optimizer = made(GPT)
    free = lmsc.torch.TrainStep(model, F.cross_entropy, optimizer, example=batch)
    alone = [float(free(*batch)) for _ in range(3)]
    rows.append(("lmsc, without a budget", "2", lambda: free(*batch), free.plan.peak_before))
    for share in (0.75, 0.5, 0.35):
        model, optimizer = made(GPT)
        step = lmsc.torch.TrainStep(model, F.cross_entropy, optimizer, example=batch, budget=f"{share}x")
        same = [float(step(*batch)) for _ in range(3)] == alone
        name = f"lmsc, `budget=\"{share}x\"`{'' if same else ' (other bits than lmsc alone)'}"
        rows.append((name, "2", lambda step=step: step(*batch), step.plan.budget))

    times: list[list[float]] = [[] for _ in rows]
    for _ in range(ROUNDS):
        for taken, (_, _, run, _) in zip(times, rows, strict=True):
            taken.append(once(run))
    base = statistics.median(times[0])
    lines = ["| way | lines | peak | of PyTorch's | time of PyTorch's |", "|---|---|---|---|---|"]
    for (name, count, _, most), taken in zip(rows, times, strict=True):
        lines.append(f"| {name} | {count} | {most / MIB:.0f} MiB | {most / whole:.2f} | {statistics.median(taken) / base:.2f} |")
    print("\n".join(lines))
    print(f"losses of PyTorch {losses}, of lmsc {alone}; torch {torch.__version__}; PyTorch's step {base * 1e3:.0f} ms")
    if file:
        text = file.read_text(encoding="utf-8")
        before, rest = text.split("<!-- ways -->\n")[0], text.split("<!-- end of ways -->")[1]
        file.write_text(before + "<!-- ways -->\n" + "\n".join(lines) + "\n<!-- end of ways -->" + rest, encoding="utf-8")


if __name__ == "__main__":
    main()
