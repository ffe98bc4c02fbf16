"""One process of test_ranks.py: `ranks_worker.py CASE …`, with its place in the environment. It prints a line of JSON for each case."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmsc.torch
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional_collectives
import torch.distributed.checkpoint as dcp
from backend_tools import Live, Meter
from lmsc import Error
from lmsc.torch import backend as lmsc_backend
from lmsc.torch.backend import planning, ranks
from lmsc.torch.backend.costs import Target
from lmsc.torch.backend.steps import Step, step_of
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, loss_parallel, parallelize_module
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

RANK, RANKS, PORT = (int(os.environ.get(name, default)) for name, default in (("RANK", 0), ("WORLD_SIZE", 2), ("MASTER_PORT", 0)))
FOLDER = Path(os.environ.get("LMSC_FOLDER", "."))
WIDTH, TOKENS, WORDS, BATCH = 48, 32, 64, 4
MIXED = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
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
        self.budget, self.found = budget, []

    def __call__(self, module: nn.Module, **how: Any) -> Any:
        return torch.compile(module, backend=self.backend, **how)

    def backend(self, graph: Any, inputs: Any) -> Any:
        if self.budget is None:
            return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)
        run = lmsc_backend.backend(graph, inputs, options=self.options)
        self.found.append(getattr(run, "_lmsc_plans", []))
        return run

    @property
    def plans(self) -> list[Any]:
        return [plan for plans in self.found for plan in plans]


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


def sharded(module: nn.Module, mode: str = "shard", ranks: int = RANKS) -> nn.Module:
    """The module, whose parameters are gathered in its graph whenever they are read."""
    mesh = init_device_mesh("cpu", (2, ranks // 2) if mode in ("hybrid", "twice") else (ranks,))
    other = {"replicate": [Replicate()], "twice": [Shard(0), Shard(0)]}
    # Cases whose processes have other modules must not wait for each other here.
    return lmsc.torch.shard(module, mesh, other.get(mode), src_data_rank=None)


# The cases.


def smaller_last(step: int) -> int:
    """The rows of a batch: the last batch of the last process is smaller."""
    return 2 if step == 2 and RANK == RANKS - 1 else BATCH


def ddp(outer: bool, optimize: str, budget: str = "smallest", rows: Callable[[int], int] = lambda _: BATCH, hook: Any = None, **how: Any) -> Facts:
    def run(way: Way) -> Facts:
        compiles_backward = optimize == "python_reducer"
        with torch._dynamo.config.patch(optimize_ddp=optimize, compiled_autograd=compiles_backward):
            module = net()
            wrapped = DistributedDataParallel(module if outer else way(module), bucket_cap_mb=0.05, **how)
            if hook:
                wrapped.register_comm_hook(None, hook)
            return train(way(wrapped) if outer else wrapped, list(module.parameters()), batches(rows))

    return compared(run, budget)


def ddp_within() -> Facts:
    """Several graphs of each process within one budget."""

    def run(way: Way) -> Facts:
        with torch._dynamo.config.patch(optimize_ddp="ddp_optimizer"):
            module = net(3)
            call = way(DistributedDataParallel(module, bucket_cap_mb=0.1))
            # Each graph runs more rows than it has parameters.
            return train(call, list(module.parameters()), batches(lambda _: 16))

    as_it_is = run(Way("1GiB"))["peak"]
    want, way = run(Way(None)), Way(f"{as_it_is * 6 // 10}B")
    found = run(way)
    same = want["losses"] == found["losses"] and all(map(torch.equal, want["values"], found["values"]))
    most, _ = step_of(way.options).together()
    facts = {"same": same, "plans": len(way.plans), "planned": [most], "measured": found["peak"]}
    return {**facts, "budget": way.plans[0].budget, "as_it_is": as_it_is}


def joined() -> Facts:
    """One process has fewer batches."""

    def run(way: Way) -> Facts:
        module = net()
        wrapped = DistributedDataParallel(way(module))
        with wrapped.join():
            return train(wrapped, list(module.parameters()), batches(steps=2 if RANK == RANKS - 1 else 3))

    return compared(run, "1x")


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


def fsdp(whole: bool = False, axes: int = 1, **policy: Any) -> Facts:
    """Blocks are compiled, or the whole model."""

    def run(way: Way) -> Facts:
        module = net()
        shape, names = ((RANKS,), ("shard",)) if axes == 1 else ((2, RANKS // 2), ("replicate", "shard"))
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
        for block in module.blocks:
            if not whole:
                block.compile(backend=way.backend)
            fully_shard(block, mesh=mesh, **policy)
        fully_shard(module, mesh=mesh, **policy)
        return train(way(module) if whole else module, list(module.parameters()), batches())

    return compared(run, "0.8x")


def fsdp_over_tensor_parallel() -> Facts:
    def run(way: Way) -> Facts:
        mesh, module = init_device_mesh("cpu", (RANKS // 2, 2), mesh_dim_names=("data", "tensor")), net(1, MLP)
        for block in module.blocks:
            parallelize_module(block, mesh["tensor"], {"u": ColwiseParallel(), "v": RowwiseParallel()})
            block.compile(backend=way.backend)
            fully_shard(block, mesh=mesh["data"])
        fully_shard(module, mesh=mesh["data"])
        return train(module, list(module.parameters()), batches(seed=RANK // 2))

    return compared(run, "0.8x")


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


def parallel_loss() -> Facts:
    """The graph's result is a shard of the scores: its mesh is a result, too, and comes back with the gradient."""

    def run(way: Way) -> Facts:
        mesh, module = init_device_mesh("cpu", (RANKS,)), net(1, MLP)
        parallelize_module(module.blocks[0], mesh, {"u": ColwiseParallel(), "v": RowwiseParallel()})
        parallelize_module(module, mesh, {"out": ColwiseParallel(use_local_output=False)})
        optimizer, call, losses = torch.optim.SGD(module.parameters(), lr=0.1), way(module), []
        for x, y in batches(seed=0):
            with loss_parallel():
                loss = F.cross_entropy(call(x).flatten(0, 1), y.flatten())
                loss.backward()
            losses.append(loss.full_tensor().item())
            optimizer.step()
            optimizer.zero_grad()
        return {"losses": losses, "values": local(module.parameters()), "peak": 0}

    return compared(run, "0.7x")


def gathers(mode: str, budget: str, rows: Callable[[int], int] = lambda _: BATCH, **options: Any) -> Facts:
    def run(way: Way) -> Facts:
        module = sharded(net(), mode)
        with torch._dynamo.config.patch(automatic_dynamic_shapes=False):
            return train(way(module), list(module.parameters()), batches(rows))

    return compared(run, budget, **options)


class Experts(nn.Module):
    """An expert on each process: the tokens go there, and come back."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.out = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.n, self.u, self.v = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embedding(x)
        for _ in range(2):
            there = functional_collectives.all_to_all_single_autograd(self.n(h).flatten(0, 1), None, None, dist.group.WORLD)
            back = functional_collectives.all_to_all_single_autograd(self.v(F.gelu(self.u(there))), None, None, dist.group.WORLD)
            h = h + back.unflatten(0, h.shape[:2])
        return self.out(h)


class Centred(nn.Module):
    """Reductions in the forward pass, one of them in place into a buffer, and random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.net = net()
        self.register_buffer("seen", torch.zeros(WORDS))

    def forward(self, x: Tensor) -> Tensor:
        out = F.dropout(self.net(x), 0.1)
        mean = functional_collectives.all_reduce(out.mean((0, 1)).detach(), "sum", dist.group.WORLD) / RANKS
        with torch.no_grad():
            sums = out.sum((0, 1)).clone()
            dist.all_reduce(sums)
            self.seen.mul_(0.9).add_(sums)
        return out - mean


def speaking(make: Callable[[], nn.Module], budget: str) -> Facts:
    """A model that calls collectives itself."""

    def run(way: Way) -> Facts:
        torch.manual_seed(0)
        module = make()
        torch.manual_seed(RANK)
        found = train(way(module), list(module.parameters()), batches(lambda _: RANKS * 2))
        return {**found, "values": found["values"] + local(module.buffers())}

    return compared(run, budget)


def several_batches(together: bool) -> Facts:
    """Gradients accumulate, of one batch after the other, or of two forward passes before their backward passes; then the model is evaluated."""

    def run(way: Way) -> Facts:
        module = sharded(net())
        call, optimizer, losses = way(module), torch.optim.SGD(module.parameters(), lr=0.1), []
        data = batches(steps=4)
        for pair in (data[:2], data[2:]):
            if together:
                found = [loss_of(call(x), y) for x, y in pair]
                (found[0] + found[1]).backward()
                losses += [loss.item() for loss in found]
            else:
                for x, y in pair:
                    loss = loss_of(call(x), y)
                    loss.backward()
                    losses.append(loss.item())
            optimizer.step()
            optimizer.zero_grad()
        with torch.no_grad():
            losses.append(loss_of(call(data[0][0]), data[0][1]).item())
        return {"losses": losses, "values": local(module.parameters()), "peak": 0}

    return compared(run, "0.8x")


class Stage(nn.Module):
    def __init__(self, whole: Net, place: int, count: int) -> None:
        super().__init__()
        self.first, self.last = place == 0, place == count - 1
        self.embedding = whole.embedding if self.first else None
        self.block = whole.blocks[place]
        self.out = whole.out if self.last else None

    def forward(self, x: Tensor) -> Tensor:
        x = self.block(self.embedding(x) if self.first else x)
        return self.out(x) if self.last else x


def pipeline(kind: Any, each: int = 1) -> Facts:
    """A process has `each` stages."""

    def run(way: Way) -> Facts:
        count = each * RANKS
        whole = net(count)
        places = range(RANK, count, RANKS)
        own = [Stage(whole, place, count) for place in places]
        stages = [PipelineStage(way(stage), place, count, torch.device("cpu")) for stage, place in zip(own, places, strict=True)]
        schedule = kind(stages if each > 1 else stages[0], n_microbatches=4, loss_fn=loss_of)
        parameters = [parameter for stage in own for parameter in stage.parameters()]
        optimizer, found = torch.optim.SGD(parameters, lr=0.1), []
        for x, y in batches(lambda _: 8, seed=0):
            losses: list[Tensor] = []
            schedule.step(*([x] if own[0].first else []), **({"target": y, "losses": losses} if own[-1].last else {}))
            optimizer.step()
            optimizer.zero_grad()
            found += [loss.item() for loss in losses]
        return {"losses": found, "values": local(parameters), "peak": 0}

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

    def asked(problem: Any, options: Any, name: str, earlier: int, **rest: Any) -> Any:
        seen.append((hash(problem.instance()[0]), earlier, problem.target.facts["host_bytes"]))
        return ask(problem, options, name, earlier, **rest)

    planning._ask = asked
    Step.beside = lambda *_: 1000 * (RANK + 1)
    named = Target.named
    Target.named = lambda name: dataclasses.replace(named(name), facts=named(name).facts | {"host_bytes": (9 - RANK) << 30})
    way = Way("4MiB")
    module = sharded(net())
    train(way(module, fullgraph=True), list(module.parameters()), batches(steps=1))
    (_, earlier, host), (plan,) = seen[0], way.plans
    return {"earlier": earlier, "host": host, "peak": plan.peak, "again": plan.again}


def other_versions() -> Facts:
    own = ranks.torch.__version__
    if RANK == RANKS - 1:
        ranks.torch.__version__ = "0.0"
    try:
        return one_step(net())
    finally:
        ranks.torch.__version__ = own


def killed(when: str, rank: int) -> Facts:
    """A process ends before it tells its problem, after it has told it, or between the agreement and the comparison of plans."""
    if rank % RANKS == RANK:
        put = ranks._Group.put

        def told(self: Any, kind: str, *rest: Any) -> None:
            put(self, kind, *rest)
            if kind == "problem":
                os._exit(9)

        if when == "told":
            ranks._Group.put = told
        else:
            setattr(*((ranks, "_align") if when == "before" else (ranks._Agreed, "settle")), lambda *_: os._exit(9))
    began, agreed = [], ranks.agreed
    ranks.agreed = lambda *rest: (began.append(time.monotonic()), agreed(*rest))[1]
    try:
        return one_step(net())
    except Error as error:
        return {"error": type(error).__name__, "says": str(error), "seconds": time.monotonic() - began[0]}


CASES: dict[str, Callable[[], Facts]] = {
    "ddp": lambda: ddp(True, "ddp_optimizer"),
    "ddp_within": ddp_within,
    "ddp_inside": lambda: ddp(False, "ddp_optimizer"),
    "ddp_one_graph": lambda: ddp(True, "no_optimization"),
    "no_sync": no_sync,
    "ddp_smaller_last": lambda: ddp(True, "ddp_optimizer", rows=smaller_last),
    "ddp_static": lambda: ddp(True, "ddp_optimizer", static_graph=True, gradient_as_bucket_view=True),
    "ddp_unused": lambda: ddp(False, "no_optimization", find_unused_parameters=True),
    "ddp_hook": lambda: ddp(True, "ddp_optimizer", hook=bf16_compress_hook),
    "ddp_python_reducer": lambda: ddp(True, "python_reducer"),
    "joined": joined,
    "fsdp": fsdp,
    "fsdp_kept": lambda: fsdp(reshard_after_forward=False),
    "fsdp_whole": lambda: fsdp(whole=True),
    "fsdp_policies": lambda: fsdp(mp_policy=MIXED, offload_policy=CPUOffloadPolicy(pin_memory=False)),
    "fsdp_mixed": lambda: fsdp(mp_policy=MIXED),
    "fsdp_two_axes": lambda: fsdp(axes=2),
    "fsdp_over_tensor_parallel": fsdp_over_tensor_parallel,
    "parallel_loss": parallel_loss,
    "experts": lambda: speaking(Experts, "0.6x"),
    "centred": lambda: speaking(Centred, "0.8x"),
    "accumulated": lambda: several_batches(False),
    "two_in_flight": lambda: several_batches(True),
    "tensor_parallel": lambda: tensor_parallel(False),
    "sequence_parallel": lambda: tensor_parallel(True),
    "replicated": lambda: gathers("replicate", "0.6x"),
    "sharded": lambda: gathers("shard", "0.7x"),
    "sharded_tight": lambda: gathers("shard", "0.5x"),
    "sharded_smallest": lambda: gathers("shard", "smallest"),
    "sharded_uneven": lambda: gathers("shard", "0.6x", lambda _: BATCH - (RANK == RANKS - 1)),
    "sharded_all_smaller": lambda: gathers("shard", "0.6x", lambda step: BATCH - (step == 2)),
    "hybrid": lambda: gathers("hybrid", "0.5x"),
    "sharded_twice": lambda: gathers("twice", "0.5x"),
    "compiled_again_alone": lambda: gathers("shard", "0.5x", smaller_last),
    "gpipe": lambda: pipeline(ScheduleGPipe),
    "1f1b": lambda: pipeline(Schedule1F1B),
    "interleaved": lambda: pipeline(ScheduleInterleaved1F1B, each=2),
    "save": lambda: checkpoint("save"),
    "resume": lambda: checkpoint("resume"),
    "other_model": other_model,
    "other_budget": other_budget,
    "other_width": other_width,
    "compiles_nothing": compiles_nothing,
    "other_bytes_before": other_bytes_before,
    "other_versions": other_versions,
    **{f"killed_{when}_{rank}": functools.partial(killed, when, rank) for when in ("before", "told", "settled") for rank in (0, -1)},
}


#: Cases in which a process may end with an error.
REFUSED = {"other_model", "other_budget", "other_width", "other_versions", "compiles_nothing"}


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
        killed_ = name.startswith("killed")
        if "error" in facts and name not in REFUSED and not killed_:
            os._exit(1)  # The others would wait for this process.
        if name != "compiles_nothing" and not killed_:
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
