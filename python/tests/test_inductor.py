"""`torch.compile(model, backend="lmsc", options={"inner": "inductor"})`: plans over Inductor's kernels, which Inductor keeps.

Kernels are compiled for few tests: a compiler of C++ takes long. The others generate them only, which gives the bytes, but no values.
"""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator
from typing import Any

import lmsc
import lmsc.torch
import pytest
import torch
from backend_models import MODELS, Layers, Model, WithLoss, labels, next_word, rows, words
from backend_tools import Meter, compiled, difference, train
from inductor_tools import KernelMeter, losses_differ, without_kernels
from lmsc.torch import backend as lmsc_backend
from torch import nn
from torch._inductor import config
from torch._dynamo.utils import counters
from torch.nn import functional as F

THOROUGH = bool(os.environ.get("LMSC_THOROUGH"))

inductor = pytest.importorskip("lmsc.torch.backend.inductor")


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    torch.set_num_threads(1)
    # Kernels that are not optimized are compiled in less time.
    with config.patch({"compile_threads": 1, "aot_inductor.debug_compile": True}):
        yield
    torch._dynamo.reset()
    gc.collect()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The plans that are made."""
    found: list[Any] = []
    keep = lmsc_backend._Compilation._keep
    monkeypatch.setattr(lmsc_backend._Compilation, "_keep", lambda self, plan: (found.append(plan), keep(self, plan))[1])
    return found


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.heads, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
        self.after, self.wide, self.narrow = nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.heads(self.before(x)).view(*x.shape[:2], 3, 2, 16).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.wide(self.after(x))))


def small_gpt() -> Model:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Embedding(100, 32), Block(), nn.LayerNorm(32), nn.Linear(32, 100))
    return Model(WithLoss(net, next_word), lambda i: (words(i, length=16),) * 2)


def small_cnn() -> Model:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
    return Model(WithLoss(net), lambda i: (torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(i)), labels(i, 4)))


class Views(Layers):
    """Views of a result are written to, and so is a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        x = self.layers[0](x)
        x[:, :8].mul_(0.5)
        x.t()[3].neg_()
        return self.out(F.gelu(self.layers[1](F.relu_(x))) / self.count)


def views() -> Model:
    torch.manual_seed(0)
    return Model(WithLoss(Views()), lambda i: (rows(i), labels(i)))


def short() -> Model:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 5))
    return Model(WithLoss(net), lambda i: (rows(i), labels(i)))


def within(model: Model, budget: str, **options: Any) -> tuple[list[float], dict[str, torch.Tensor], int]:
    try:
        with KernelMeter() as meter:
            return train(model, compiled(model, lmsc_backend.backend, budget=budget, inner="inductor", **options), meter)
    except lmsc.Refusal as refusal:
        assert refusal.smallest_budget > refusal.budget
        return within(model, "smallest", **options)


# With compiled kernels.

#: Kinds of graphs that were not tried with Inductor's kernels.
NOT_TRIED = {"effects", "chosen_rows", "region", "condition", "recurrent", "views_as_results"}
OF_ALL = {name: make for name, make in MODELS.items() if name not in NOT_TRIED}

COMPILED = {"dropout": MODELS["dropout"], "views": views, "cnn": small_cnn, "gpt": small_gpt}


@pytest.mark.parametrize("name", list(OF_ALL | COMPILED) if THOROUGH else ["dropout", "views"])
def test_losses_are_those_of_plain_inductor_within_the_planned_bytes(name: str, made: list[Any]) -> None:
    model = (MODELS | COMPILED)[name]()
    # PyTorch's own partitioner computes the counter of `views` again from the one that has advanced, so plain Inductor's gradients are wrong there.
    want = train(model, (lambda module: module) if name == "views" else compiled(model, "inductor"))
    found = within(model, "0.7x")
    assert losses_differ(want[0], found[0]) < 1e-6
    assert made and all(plan.inner == "inductor" for plan in made)
    if name != "graph_break":  # Its graphs are alive at once.
        assert found[2] <= 1.05 * made[-1].peak
    # Single parameters may differ by a step of AdamW, where their gradient is the noise of rounding.
    for key, value in want[1].items():
        if key.startswith("gradient"):
            assert (found[1][key] - value).norm() <= 1e-3 * value.norm() + 1e-6


# With generated kernels.


@pytest.mark.parametrize("name", ["in_place", "complex_numbers", "inference", *(OF_ALL if THOROUGH else ())])
def test_the_bytes_are_those_of_the_plan(name: str, made: list[Any]) -> None:
    model = MODELS[name]()
    with without_kernels():
        measured = within(model, "0.6x")[2]
    assert made[-1].inner == "inductor"
    if name != "graph_break":
        assert measured <= 1.05 * made[-1].peak


def graphs_of(model: Model, budget: str, monkeypatch: pytest.MonkeyPatch) -> list[torch.fx.Graph]:
    """The written graphs."""
    found: list[torch.fx.Graph] = []
    write = inductor.FusedWriter.write

    def writing(self: Any) -> Any:
        graphs = write(self)
        found.extend(module.graph for module in graphs)
        return graphs

    monkeypatch.setattr(inductor.FusedWriter, "write", writing)
    with without_kernels():
        within(model, budget)
    return found


def test_seeds_are_drawn_once_and_dropout_runs_again_with_them(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    forward, backward = graphs_of(MODELS["dropout"](), "0.6x", monkeypatch)
    names = [str(node.target) for graph in (forward, backward) for node in graph.nodes]
    assert names.count("prims.inductor_seeds.default") == 1
    assert names.count("prims.inductor_random.default") > 4


def test_runs_of_generated_kernels_are_one_stretch_where_the_peak_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = [0, 0]
    for graph in graphs_of(MODELS["plain"](), "1x", monkeypatch):
        marks = [(node.meta[inductor.RUN], node.meta[inductor.STRETCH]) for node in graph.nodes if inductor.RUN in node.meta]
        assert marks == sorted(marks)
        counts = [count + len({mark[place] for mark in marks}) for place, count in enumerate(counts)]
    assert counts[1] < counts[0]


def test_a_result_that_no_kernel_stores_is_not_read_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker finds a writer that forgets to store."""
    monkeypatch.setattr(inductor.FusedWriter, "_store", lambda self, value: value)
    with pytest.raises(lmsc_backend.Unsound, match="which its kernel does not store"), without_kernels():
        within(MODELS["dropout"](), "1x")


def test_an_operator_that_is_inlined_from_another_value_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker that shares no code with the writer compares what the graphs compute."""
    copy = inductor.FusedWriter._copy

    def wrong(self: Any, node: torch.fx.Node, where: Any) -> torch.fx.Node:
        written = copy(self, node, where)
        if self.local is not None and self.now is self.backward and written.target is torch.ops.aten.mul.Tensor:
            written.args = (written.args[0], written.args[0])
        return written

    monkeypatch.setattr(inductor.FusedWriter, "_copy", wrong)
    with pytest.raises(lmsc_backend.Unsound, match="computes what the step does not"), without_kernels():
        within(MODELS["plain"](), "1x")


def test_the_key_of_the_cache_tells_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = []
    write = inductor._Partition.write

    def writing(self: Any, *args: Any) -> Any:
        graphs = write(self, *args)
        digests.append(self.uuid())
        return graphs

    monkeypatch.setattr(inductor._Partition, "write", writing)
    with without_kernels():
        for budget in ("1x", "smallest", "1x"):
            within(short(), budget)
        monkeypatch.setattr(inductor.Stretches, "_begin", lambda self, nodes, storages: [n.meta.update({inductor.STRETCH: 1}) for n in nodes])
        monkeypatch.setattr(inductor, "_peak", lambda *_: 0)
        within(short(), "1x")
    assert digests[0] == digests[2] and len(set(digests)) == 3


def test_a_second_compilation_plans_again_and_takes_the_kernels_from_the_cache(made: list[Any]) -> None:
    model = views()
    first = within(model, "0.7x")
    counters.clear()
    second = within(model, "0.7x")
    assert counters["inductor"]["fxgraph_cache_hit"] >= 2
    assert difference(first, second) is None
    assert len(made) == 2 and made[0].peak == made[1].peak


# What Inductor does not compile, and options.


def logged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr(lmsc_backend.log, "warning", lambda text, *args: lines.append(text % args))
    return lines


def test_what_inductor_does_not_compile_is_run_by_pytorch_and_said_in_one_line(made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = logged(monkeypatch)

    def fails(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("no kernel\nfor this")

    monkeypatch.setattr(inductor, "compile_fx_inner", fails)
    model = MODELS["dropout"]()
    want = train(model, compiled(model, "aot_eager"))
    with Meter() as meter:
        found = train(model, compiled(model, lmsc_backend.backend, budget="0.6x", inner="inductor"), meter)
    assert difference(want, found) is None
    assert found[2] <= 1.02 * made[-1].peak and made[-1].inner == "eager"
    (line,) = lines
    assert "is not compiled by Inductor, but run by PyTorch's own operators" in line and "no kernel" in line and "\n" not in line
    assert lmsc.torch.plans()[-1].inner == "eager"


def test_a_refusal_is_no_reason_to_run_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = logged(monkeypatch)
    options = {"budget": "100KiB", "inner": "inductor"}
    with pytest.raises(lmsc.Refusal, match="the smallest budget that has a plan"):
        torch.compile(WithLoss(Layers()), backend=lmsc_backend.backend, options=options)(rows(0), labels(0))
    assert not lines


def test_a_plan_tells_that_it_is_one_of_kernels() -> None:
    with without_kernels():
        (plan,) = lmsc.torch.plan(WithLoss(Layers()), (rows(0), labels(0)), "0.8x", inner="inductor")
    assert "kernels of Inductor within" in str(plan)


def test_an_unknown_compiler_is_named() -> None:
    with pytest.raises(lmsc.InputError, match="compiled by \"inductor\""):
        torch.compile(Layers(), backend=lmsc_backend.backend, options={"budget": "1x", "inner": "xla"})(rows(0))
