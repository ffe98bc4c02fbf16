"""One process of test_ranks.py: `ranks_worker.py CASE …`, with its place in the environment. It prints a line of JSON for each case."""

from __future__ import annotations

import copy
import dataclasses
import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from backend_tools import Live, Meter
from lmsc import Error
from lmsc.torch import backend as lmsc_backend
from lmsc.torch.backend import planning, ranks
from lmsc.torch.backend.costs import Target
from lmsc.torch.backend.steps import Step
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

RANK, RANKS, PORT = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 2), ("MASTER_PORT", 0)))
FOLDER = Path(os.environ.get("LMSC_FOLDER", "."))
WIDTH, TOKENS, WORDS, BATCH = 48, 32, 64, 4
Facts = dict[str, Any]


class Block(nn.Module):
    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.a, self.b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.o = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.u, self.v = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.a(x)).unflatten(-1, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.o(((q @ k.transpose(-1, -2)).softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.v(F.gelu(self.u(self.b(x))))


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n, self.u, self.v = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.v(F.gelu(self.u(self.n(x))))


class Net(nn.Module):
    def __init__(self, layers: int = 1, block: Callable[[], nn.Module] = Block) -> None:
        super().__init__()
        self.embedding, self.out = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.blocks = nn.ModuleList(block() for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        h = self.embedding(x)
        for block in self.blocks:
            h = block(h)
        return self.out(h)


def net(layers: int = 1, block: Callable[[], nn.Module] = Block) -> Net:
    torch.manual_seed(0)
    return Net(layers, block)


def loss_of(out: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(out.flatten(0, 1), labels.flatten())


def batches(rows: Callable[[int], int] = lambda _: BATCH, seed: int | None = None, steps: int = 3) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(100 + (RANK if seed is None else seed))
    draw = [torch.randint(0, WORDS, (2, rows(step), TOKENS), generator=generator) for step in range(steps)]
    return [(both[0], both[1]) for both in draw]



def local(values: Any) -> list[Tensor]:
    return [getattr(value, "_local_tensor", value).detach().clone() for value in values]


class Way:
    """A compiler: PyTorch's own graphs, or the plan within a budget."""

    def __init__(self, budget: str | None, **options: Any) -> None:
        torch._dynamo.reset()
        self.options = {"budget": budget, "target": str(FOLDER / "slow.toml"), "wait": 15, **options}
        self.budget, self.plans = budget, []

    def __call__(self, module: nn.Module, **how: Any) -> Any:
        return torch.compile(module, backend=self.backend, **how)

    def backend(self, graph: Any, inputs: Any) -> Any:
        if self.budget is None:
            return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)
        run = lmsc_backend.backend(graph, inputs, options=self.options)
        self.plans += getattr(run, "_lmsc_plans", ())
        return run


def train(call: Any, parameters: list[Any], data: list[tuple[Tensor, Tensor]], before: Callable[[int], Any] | None = None) -> Facts:
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    losses, peak = [], 0
    with Meter() as meter:
        for step, (x, y) in enumerate(data):
            if before:
                before(step)
            meter.live = Live()
            loss = loss_of(call(x), y)
            loss.backward()
            losses.append(loss.item())
            del loss
            peak = meter.live.peak
            optimizer.step()
            optimizer.zero_grad()
    return {"losses": losses, "values": local(parameters), "peak": peak}


def compared(run: Callable[[Way], Facts], budget: str, **options: Any) -> Facts:
    """Whether the run within the budget has the bits of the run without a plan, and its facts."""
    want, way = run(Way(None)), Way(budget, **options)
    found = run(way)
    same = want["losses"] == found["losses"] and all(map(torch.equal, want["values"], found["values"]))
    peaks = [plan.peak for plan in way.plans]
    return {
        "same": same,
        "plans": len(way.plans),
        "as_it_is": [plan.as_it_is for plan in way.plans],
        "planned": peaks,
        "measured": found["peak"],
        "again": [plan.again for plan in way.plans],
        "out": [len(plan.out) for plan in way.plans],
    }


def sharded(module: nn.Module, mode: str = "shard") -> nn.Module:
    """The module, whose parameters are gathered in its graph whenever they are read."""
    mesh = init_device_mesh("cpu", (RANKS,))
    for part in list(module.modules()):
        names = [name for name, _ in part.named_parameters(recurse=False)]
        for name in names:
            placed = distribute_tensor(part._parameters[name].data, mesh, [Shard(0) if mode == "shard" else Replicate()], src_data_rank=None)
            part.register_parameter(name, nn.Parameter(placed))
        if names:
            part.__class__ = type(f"Gathered{type(part).__name__}", (type(part),), {name: gathered(name) for name in names})
    return module


def gathered(name: str) -> property:
    def get(module: nn.Module) -> Tensor:
        return module._parameters[name].redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial("avg")])

    return property(get)


# The cases.


def ddp(outer: bool, optimize: str, budget: str = "smallest") -> Facts:
    def run(way: Way) -> Facts:
        with torch._dynamo.config.patch(optimize_ddp=optimize):
            module = net()
            wrapped = DistributedDataParallel(module if outer else way(module), bucket_cap_mb=0.05)
            return train(way(wrapped) if outer else wrapped, list(module.parameters()), batches())

    return compared(run, budget)


def no_sync() -> Facts:
    def run(way: Way) -> Facts:
        module = net()
        wrapped = DistributedDataParallel(module)
        call, data = way(wrapped), batches(lambda step: 2 if step == 3 and RANK == RANKS - 1 else BATCH, steps=4)
        losses = []
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        for step, (x, y) in enumerate(data):
            if step % 2 == 0:
                with wrapped.no_sync():
                    loss = loss_of(call(x), y)
                    loss.backward()
            else:
                loss = loss_of(call(x), y)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
        return {"losses": losses, "values": local(module.parameters()), "peak": 0}

    return compared(run, "1x")


def fsdp(reshard: bool) -> Facts:
    def run(way: Way) -> Facts:
        module = net()
        for block in module.blocks:
            block.compile(backend=way.backend)
            fully_shard(block, reshard_after_forward=reshard)
        fully_shard(module, reshard_after_forward=reshard)
        return train(module, list(module.parameters()), batches())

    return compared(run, "0.7x")


def tensor_parallel(sequence: bool) -> Facts:
    def run(way: Way) -> Facts:
        mesh, module = init_device_mesh("cpu", (RANKS,)), net(2, MLP)
        for block in module.blocks:
            plan: dict[str, Any] = {"u": ColwiseParallel(), "v": RowwiseParallel()}
            if sequence:
                plan = {
                    "n": SequenceParallel(),
                    "u": ColwiseParallel(input_layouts=Shard(1)),
                    "v": RowwiseParallel(output_layouts=Shard(1)),
                }
            parallelize_module(block, mesh, plan)
        if sequence:
            ends = {
                "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
                "out": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
            }
            parallelize_module(module, mesh, ends)
        return train(way(module), list(module.parameters()), batches(seed=0))

    return compared(run, "0.7x")


def gathers(mode: str, budget: str) -> Facts:
    def run(way: Way) -> Facts:
        module = sharded(net(), mode)
        return train(way(module, fullgraph=True), list(module.parameters()), batches())

    return compared(run, budget)


def compiled_again_alone() -> Facts:
    """The last batch of one process is smaller."""

    def run(way: Way) -> Facts:
        module = sharded(net())
        data = batches(lambda step: 2 if step == 2 and RANK == RANKS - 1 else BATCH)
        with torch._dynamo.config.patch(automatic_dynamic_shapes=False):
            return train(way(module), list(module.parameters()), data)

    return compared(run, "0.5x")


class Stage(nn.Module):
    def __init__(self, whole: Net) -> None:
        super().__init__()
        self.first, self.last = RANK == 0, RANK == RANKS - 1
        self.embedding = whole.embedding if self.first else None
        self.block = whole.blocks[RANK]
        self.out = whole.out if self.last else None

    def forward(self, x: Tensor) -> Tensor:
        x = self.block(self.embedding(x) if self.first else x)
        return self.out(x) if self.last else x


def pipeline(kind: Any) -> Facts:
    def run(way: Way) -> Facts:
        stage = Stage(net(RANKS))
        schedule = kind(PipelineStage(way(stage), RANK, RANKS, torch.device("cpu")), n_microbatches=4, loss_fn=loss_of)
        optimizer, found = torch.optim.SGD(stage.parameters(), lr=0.1), []
        for x, y in batches(lambda _: 8, seed=0):
            losses: list[Tensor] = []
            schedule.step(*([x] if stage.first else []), **({"target": y, "losses": losses} if stage.last else {}))
            optimizer.step()
            optimizer.zero_grad()
            found += [loss.item() for loss in losses]
        return {"losses": found, "values": local(stage.parameters()), "peak": 0}

    return compared(run, "0.9x")


def checkpoint(what: str) -> Facts:
    def run(way: Way) -> Facts:
        module = net()
        for block in module.blocks:
            block.compile(backend=way.backend)
            fully_shard(block)
        fully_shard(module)
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3)
        path = FOLDER / "checkpoint"
        states = dict(zip(("model", "optimizer"), get_state_dict(module, optimizer), strict=True))
        if what == "resume":
            dcp.load(states, checkpoint_id=path)
            set_state_dict(module, optimizer, model_state_dict=states["model"], optim_state_dict=states["optimizer"])
        losses = []
        for x, y in batches(lambda _: 4, seed=0 if what == "save" else 1, steps=2):
            rows = slice(RANK * 4 // RANKS, (RANK + 1) * 4 // RANKS)
            loss = loss_of(module(x[rows]), y[rows])
            loss.backward()
            losses.append(loss.item())
            optimizer.step()
            optimizer.zero_grad()
        if what == "save" and way.budget:
            dcp.save(dict(zip(("model", "optimizer"), get_state_dict(module, optimizer), strict=True)), checkpoint_id=path)
        return {"losses": losses, "values": local(module.parameters()), "peak": 0}

    return compared(run, "0.9x")


# Errors. Each process tells its own.


def one_step(module: nn.Module, **options: Any) -> Facts:
    way = Way(options.pop("budget", "0.5x"), **{"wait": 8, **options})
    train(way(sharded(module), fullgraph=True), list(module.parameters()), batches(steps=1))
    return {}


def other_model() -> Facts:
    torch.manual_seed(0)
    module = Net()
    if RANK == RANKS - 1:
        module.blocks[0] = MLP()
    return one_step(module)


def other_budget() -> Facts:
    return one_step(net(), budget="0.6x" if RANK == RANKS - 1 else "0.5x")


def other_width() -> Facts:
    torch.manual_seed(0)
    module = Net()
    if RANK == RANKS - 1:
        module.blocks[0].u, module.blocks[0].v = nn.Linear(WIDTH, 5 * WIDTH), nn.Linear(5 * WIDTH, WIDTH)
    return one_step(module)


def compiles_nothing() -> Facts:
    return {} if RANK == 0 else one_step(net(), wait=3)


def other_bytes_before() -> Facts:
    """Earlier graphs of the step hold more on one process, and its host has less memory."""
    seen: list[Any] = []
    ask = planning._ask

    def asked(problem: Any, options: Any, name: str, earlier: int) -> Any:
        seen.append((hash(problem.instance()[0]), earlier, problem.target.facts["host_bytes"]))
        return ask(problem, options, name, earlier)

    planning._ask = asked
    Step.held_before = lambda *_: 1000 * (RANK + 1)
    named = Target.named
    Target.named = lambda name: dataclasses.replace(named(name), facts=named(name).facts | {"host_bytes": (9 - RANK) << 30})
    way = Way("4MiB")
    module = sharded(net())
    train(way(module, fullgraph=True), list(module.parameters()), batches(steps=1))
    (_, earlier, host), (plan,) = seen[0], way.plans
    return {"earlier": earlier, "host": host, "peak": plan.peak, "again": plan.again}


def killed() -> Facts:
    """The last process ends between the agreement and the comparison of plans."""
    if RANK == RANKS - 1:
        ranks._Agreed.settle = lambda *_: os._exit(9)
    return one_step(net())


CASES: dict[str, Callable[[], Facts]] = {
    "ddp": lambda: ddp(True, "ddp_optimizer"),
    "ddp_inside": lambda: ddp(False, "ddp_optimizer"),
    "ddp_one_graph": lambda: ddp(True, "no_optimization"),
    "no_sync": no_sync,
    "fsdp": lambda: fsdp(True),
    "fsdp_kept": lambda: fsdp(False),
    "tensor_parallel": lambda: tensor_parallel(False),
    "sequence_parallel": lambda: tensor_parallel(True),
    "replicated": lambda: gathers("replicate", "0.5x"),
    "sharded": lambda: gathers("shard", "0.7x"),
    "sharded_tight": lambda: gathers("shard", "0.5x"),
    "sharded_smallest": lambda: gathers("shard", "smallest"),
    "compiled_again_alone": compiled_again_alone,
    "gpipe": lambda: pipeline(ScheduleGPipe),
    "1f1b": lambda: pipeline(Schedule1F1B),
    "save": lambda: checkpoint("save"),
    "resume": lambda: checkpoint("resume"),
    "other_model": other_model,
    "other_budget": other_budget,
    "other_width": other_width,
    "compiles_nothing": compiles_nothing,
    "other_bytes_before": other_bytes_before,
    "killed": killed,
}


#: Cases in which a process may end with an error.
REFUSED = {"other_model", "other_budget", "other_width", "compiles_nothing", "killed"}


def main() -> None:
    torch.set_num_threads(1)
    dist._DEFAULT_FIRST_BUCKET_BYTES = 1 << 15  # The models are small; with buckets of their own DDP makes several graphs.
    store = dist.TCPStore("127.0.0.1", PORT, is_master=False)
    dist.init_process_group("gloo", store=store, rank=RANK, world_size=RANKS)
    for name in sys.argv[1:]:
        try:
            facts = CASES[name]()
        except Error as error:
            facts = {"error": type(error).__name__, "says": str(error)}
        print(json.dumps({"case": name, "rank": RANK, **facts}), flush=True)
        if "error" in facts and name not in REFUSED:
            os._exit(1)  # The others would wait for this process.
        if name not in ("killed", "compiles_nothing"):
            dist.barrier()
    # Without the destructors of groups: they wait for threads that may wait for Python.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
