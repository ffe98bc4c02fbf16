"""`scaled_dot_product_attention` of many shapes and masks: result and gradients are those of PyTorch's products in double precision.

PyTorch's fused operator for processors has other gradients where a number that is large beside the scores is added to a whole row.
Twenty cases in each run; 240 where LMSC_THOROUGH is set.
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import lmsc
from lmsc.torch import export_step

F = nn.functional
CASES = 240 if "LMSC_THOROUGH" in os.environ else 20
MASKS = ("none", "causal", "truth", "empty rows", "added", "lowest", "window", "heads")


def case_of(seed: int) -> dict[str, Any]:
    """Shapes and options: every mask in turn, and everything else by chance."""
    draw = random.Random(seed)
    mask = MASKS[seed % len(MASKS)]
    long = seed % 10 == 9
    groups = draw.choice([1, 2, 3])
    gqa = draw.random() < 0.4
    rows = draw.choice([65, 129, 200]) if long else draw.choice([1, 2, 5, 8, 17])
    keys = draw.choice([257, 300]) if long else draw.choice([rows, 1, 3, 9, 20])
    lead = draw.choice([(), (1,), (2,), (2, 2)]) if not long else (1,)
    return {
        "mask": mask, "lead": lead, "groups": groups, "heads": groups * (draw.choice([2, 3]) if gqa else 1), "gqa": gqa, "rows": rows,
        "keys": keys, "width": draw.choice([1, 4, 8, 33]), "value_width": draw.choice([1, 4, 7]), "scale": draw.choice([None, 0.3, 1.0]),
    }  # fmt: skip


def mask_of(case: dict[str, Any]) -> Tensor | None:
    rows, keys, lead, heads = case["rows"], case["keys"], case["lead"], case["heads"]
    at = torch.arange(rows)[:, None], torch.arange(keys)
    match case["mask"]:
        case "truth":
            return (torch.rand(rows, keys) < 0.6) | (at[1] == 0)
        case "empty rows":
            return (torch.rand(*lead, 1, rows, keys) < 0.5) & (at[0] % 3 > 0)
        case "added":
            return torch.where(torch.rand(*lead, heads, rows, keys) < 0.2, float("-inf"), torch.randn(*lead, heads, rows, keys))
        case "lowest":
            # Nothing is left of the scores beside it: all keys of a row count alike.
            return torch.where(at[0] % 2 == 0, torch.finfo(torch.float32).min, 0.0).expand(rows, keys).clone()
        case "window":
            return ((at[0] - at[1]).abs() <= 2).expand(*[1] * len(lead), 1, rows, keys).clone()
        case "heads":
            return -torch.rand(heads, 1, 1) * (at[0] - at[1]).abs()
        case _:
            return None


class Attended(nn.Module):
    """Queries, keys and values as parameters; a loss in which each element of the result counts another part."""

    def __init__(self, case: dict[str, Any], dtype: torch.dtype) -> None:
        super().__init__()
        lead = case["lead"]
        self.q = nn.Parameter(torch.randn(*lead, case["heads"], case["rows"], case["width"]).to(dtype))
        self.k = nn.Parameter(torch.randn(*lead, case["groups"], case["keys"], case["width"]).to(dtype))
        self.v = nn.Parameter(torch.randn(*lead, case["groups"], case["keys"], case["value_width"]).to(dtype))
        self.mask = mask_of(case)
        self.options = {"is_causal": case["mask"] == "causal", "scale": case["scale"], "enable_gqa": case["gqa"]}

    def forward(self, by: Tensor) -> tuple[Tensor, Tensor]:
        y = F.scaled_dot_product_attention(self.q, self.k, self.v, attn_mask=self.mask, **self.options)
        return (y.float() * by).sum(), y


def started(compiled: lmsc.Compiled, model: nn.Module) -> lmsc.Session:
    """A session with the values of the model, and zeros for the optimizer's."""
    session = compiled.session()
    parameters = {n: p.detach() for n, p in model.named_parameters()}
    session.load_state({n: parameters.get(n, np.zeros_like(v)) for n, v in session.state().items()})
    return session


def check(case: dict[str, Any], dtype: torch.dtype, allowed: float) -> None:
    torch.manual_seed(0)
    model = Attended(case, dtype)
    by = torch.randn(*case["lead"], case["heads"], case["rows"], case["value_width"])
    # In double precision with the same operands, which are the values of the parameters.
    exact = Attended(case, torch.float64)
    with torch.no_grad():
        for p, of in zip(exact.parameters(), model.parameters()):
            p.copy_(of)
    exact.mask = model.mask if model.mask is None or model.mask.dtype == torch.bool else model.mask.double()
    with sdpa_kernel(SDPBackend.MATH):
        exact_loss, exact_y = exact(by.double())
    exact_loss.backward()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.5)
    step = export_step(model, None, optimizer, (by,), lr_input=False)
    assert {"Attention", "AttentionGrad"} <= {n.op_type for n in step.graph.node}
    session = started(lmsc.compile(step, target="host"), model)
    out = session.step({"by": by})
    state = session.state()
    found = [("y", out["output_1"], exact_y.detach())]
    # The first momentum is the gradient, which the update would round away.
    found += [(n, state[f"{n}.momentum_buffer"], p.grad) for n, p in exact.named_parameters()]
    for name, have, want in found:
        have = torch.from_numpy(have.astype(np.float64))
        scale = max(1.0, float(want.abs().max()) if want.numel() else 0.0)
        apart = float((have - want).abs().max()) / scale if want.numel() else 0.0
        assert apart <= allowed, f"{case}: {name} is {apart} off"


@pytest.mark.parametrize("seed", range(CASES))
def test_results_and_gradients_are_those_of_pytorch(seed: int) -> None:
    check(case_of(seed), torch.float32, 1e-5)


@pytest.mark.parametrize("seed", range(0, CASES, 5))
def test_short_floats_are_rounded_once(seed: int) -> None:
    check(case_of(seed), torch.bfloat16, 2e-2)


class Block(nn.Module):
    """A layer of a language model with long rows of scores."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, rows, width = x.shape
        q, k, v = self.qkv(x).view(batch, rows, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(batch, rows, width))


def layers(batch: int, rows: int, width: int, count: int) -> tuple[nn.Module, bytes]:
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(width, 4) for _ in range(count)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    example = torch.randn(batch, rows, width), torch.randn(batch, rows, width)
    return model, export_step(model, F.mse_loss, optimizer, example, lr_input=False).SerializeToString()


def test_scores_are_never_in_memory_as_a_whole() -> None:
    rows = 1024
    _, step = layers(1, rows, 16, 3)
    compiled = lmsc.compile(step, target="host")
    assert compiled.report["before"]["peak"] < 4 * 4 * rows * rows / 2, "less than half the scores of one layer"


def test_a_planned_step_has_the_bits_of_the_step_as_it_came() -> None:
    model, step = layers(8, 32, 64, 4)
    batch = {"input": torch.randn(8, 32, 64), "target": torch.randn(8, 32, 64)}

    def trained(**options: Any) -> list[Any]:
        session = started(lmsc.compile(step, target="host", **options), model)
        losses = [session.step(batch)["loss"].tobytes() for _ in range(3)]
        return [losses, *(v.tobytes() for _, v in sorted(session.state().items()))]

    plain = trained()
    for options in ({"budget": "smallest"}, {"budget": "0.7x"}, {"budget": "0.8x"}):
        assert trained(**options) == plain, options


def test_attention_under_autocast_has_short_floats_as_in_pytorch() -> None:
    class Cast(nn.Module):
        def __init__(self, dropout: float) -> None:
            super().__init__()
            self.x, self.dropout = nn.Parameter(torch.randn(1, 2, 4, 8)), dropout

        def forward(self, by: Tensor) -> tuple[Tensor, Tensor]:
            with torch.autocast("cpu", torch.bfloat16):
                y = F.scaled_dot_product_attention(self.x, self.x, self.x, dropout_p=self.dropout)
            assert y.dtype == torch.bfloat16
            return (y * by).sum(), y

    for dropout in (0.0, 0.5):
        model = Cast(dropout)
        export_step(model, None, torch.optim.SGD(model.parameters(), lr=1.0), (torch.ones(()),))


@pytest.mark.parametrize("standard", [False, True], ids=["compact", "standard"])
def test_a_gradient_of_a_gradient_goes_through_attention(standard: bool) -> None:
    class Penalized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k = (nn.Parameter(torch.randn(1, 2, 5, 4)) for _ in range(2))

        def forward(self, v: Tensor) -> Tensor:
            with sdpa_kernel(SDPBackend.MATH):
                y = F.scaled_dot_product_attention(self.q, self.k, v, is_causal=True)
                slope, = torch.autograd.grad(y.square().sum(), self.q, create_graph=True)
            return slope.square().sum()

    torch.manual_seed(0)
    model, v = Penalized(), torch.randn(1, 2, 5, 4)
    step = export_step(model, None, torch.optim.SGD(model.parameters(), lr=1.0), (v,), lr_input=False, standard=standard)
    session = lmsc.compile(step, target="host").session()
    session.load_state({n: p.detach() for n, p in model.named_parameters()})
    session.step({"v": v})
    model(v).backward()
    for n, p in model.named_parameters():
        torch.testing.assert_close(p.detach() - torch.from_numpy(session.state()[n].copy()), p.grad, rtol=1e-4, atol=1e-4)


def test_what_the_operator_does_not_take_is_products_and_a_softmax() -> None:
    def operators(function: Any, mask: Tensor | None = None) -> set[str]:
        class Called(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.x = nn.Parameter(torch.randn(1, 2, 4, 8))
                self.mask = None if mask is None else nn.Parameter(mask)

            def forward(self, by: Tensor) -> Tensor:
                return (function(self.x, self.mask) * by).sum()

        model = Called()
        step = export_step(model, None, torch.optim.SGD(model.parameters(), lr=1.0), (torch.ones(()),))
        return {n.op_type for n in step.graph.node}

    attend = F.scaled_dot_product_attention
    assert "Attention" in operators(lambda x, m: attend(x, x, x))
    assert "Attention" in operators(lambda x, m: torch.ops.aten.scaled_dot_product_attention(x, x, x))
    assert "Attention" not in operators(lambda x, m: attend(x, x, x, dropout_p=0.1))
    assert "Attention" not in operators(lambda x, m: attend(x, x, x, attn_mask=m), torch.zeros(4, 4))


@pytest.mark.parametrize("norm_first", [False, True])
def test_attention_within_a_layer_of_pytorch_is_one_operator(norm_first: bool) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first)
            self.head = nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.layer(x)).square().mean()

    torch.manual_seed(0)
    model, x = Model(), torch.randn(2, 5, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = export_step(model, None, optimizer, (x,), lr_input=False)
    assert {"Attention", "AttentionGrad"} <= {n.op_type for n in step.graph.node}
    session = lmsc.compile(step, target="host").session()
    session.load_state({n: p.detach() for n, p in model.named_parameters()})
    for _ in range(2):
        session.step({"x": x})
        optimizer.zero_grad()
        model(x).backward()
        optimizer.step()
    for n, p in model.named_parameters():
        torch.testing.assert_close(torch.from_numpy(session.state()[n].copy()), p.detach(), rtol=1e-4, atol=1e-5)
