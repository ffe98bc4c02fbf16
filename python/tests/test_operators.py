"""Gradients of single functions, in both forms, against PyTorch's. Whole models are compared by scripts/check_torch.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lmsc
import pytest
import torch
from lmsc.torch import CaptureError, UnsupportedOperator, export_step
from torch import Tensor, nn
from torch.nn import functional as F


def diagonal_doubled(x: Tensor) -> Tensor:
    y = x * 1
    y.diagonal().mul_(2)
    return y


def ctc(x: Tensor, **options: Any) -> Tensor:
    # A label twice, so that a blank must stand between; samples and targets of several lengths; padding that is no label.
    targets = torch.tensor([[1, 1, 2], [3, -1, -1], [2, 1, -1]])
    return F.ctc_loss(x.log_softmax(-1), targets, torch.tensor([7, 5, 6]), torch.tensor([3, 1, 2]), reduction="none", **options)


def grid(x: Tensor, mode: str, padding: str) -> Tensor:
    places = torch.stack(torch.meshgrid(torch.linspace(-1.3, 1.2, 5), torch.linspace(-0.9, 1.1, 4), indexing="ij"), -1)
    return F.grid_sample(x, places.expand(2, 5, 4, 2), mode, padding, align_corners=False)


def bags(w: Tensor, mode: str, **options: Any) -> Tensor:
    ids = torch.tensor([0, 2, 2, 4, 0, 1, 3])
    return F.embedding_bag(ids, w, torch.tensor([0, 2, 2, 6]), mode=mode, **options)


FUNCTIONS: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor]]] = {
    "bilinear": ((2, 3, 4, 5), lambda x: F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=False)),
    "bilinear, corners": ((2, 3, 4, 5), lambda x: F.interpolate(x, size=(7, 9), mode="bilinear", align_corners=True)),
    "bilinear, smaller": ((1, 2, 8, 9), lambda x: F.interpolate(x, size=(3, 4), mode="bilinear", align_corners=False)),
    "bilinear by a factor": ((1, 2, 4, 4), lambda x: F.interpolate(x, scale_factor=1.6, mode="bilinear", align_corners=False)),
    "bicubic": ((1, 2, 4, 5), lambda x: F.interpolate(x, size=(7, 9), mode="bicubic", align_corners=False)),
    "linear": ((2, 3, 5), lambda x: F.interpolate(x, size=8, mode="linear", align_corners=False)),
    "nearest, no whole factor": ((1, 2, 4, 5), lambda x: F.interpolate(x, size=(7, 9), mode="nearest")),
    "average pool": ((1, 2, 7, 8), lambda x: F.avg_pool2d(x, 3, 2, 1)),
    "average pool, without padding": ((1, 2, 7, 8), lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
    "average pool, ceiling": ((1, 2, 7, 8), lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True)),
    "average pool, divisor": ((1, 2, 7, 8), lambda x: F.avg_pool2d(x, 2, divisor_override=3)),
    "adaptive largest": ((2, 3, 7, 8), lambda x: F.adaptive_max_pool2d(x, (3, 4))),
    "distances": ((4, 3), lambda x: torch.cdist(x, x.flip(0) * 0.5)),
    "distances, many": ((30, 3), lambda x: torch.cdist(x, x.flip(0) * 0.5 + 1)),
    "distances by absolute values": ((4, 3), lambda x: torch.cdist(x, x.flip(0) * 0.5, p=1.0)),
    "ctc": ((7, 3, 5), ctc),
    "ctc, impossible": ((2, 3, 5), lambda x: F.ctc_loss(
        x.log_softmax(-1), torch.tensor([[1, 1], [2, 3], [1, 2]]), (2, 2, 2), (2, 1, 2), zero_infinity=True, reduction="sum"
    )),
    "grid, bilinear": ((2, 3, 4, 5), lambda x: grid(x, "bilinear", "zeros")),
    "grid, border": ((2, 3, 4, 5), lambda x: grid(x, "bilinear", "border")),
    "grid, bicubic": ((2, 3, 4, 5), lambda x: grid(x, "bicubic", "reflection")),
    "running product": ((3, 7), lambda x: torch.cumprod(x, 1)),
    "running product along rows": ((5, 2), lambda x: x.cumprod(0)),
    "diagonal in place": ((4, 4), diagonal_doubled),
    "lower triangle": ((4, 4), lambda x: x[tuple(torch.tril_indices(4, 4, -1))]),
    "truth values multiplied": ((6,), lambda x: x * ((x > 0) * (x < 1))),
    "nearest by a factor that is no ratio": ((1, 2, 4, 5), lambda x: F.interpolate(x, scale_factor=1.7, mode="nearest")),
    "nearest, exact": ((1, 2, 4, 5), lambda x: F.interpolate(x, size=(7, 3), mode="nearest-exact")),
    "average pool, divisor beyond the edge": ((1, 2, 7, 8), lambda x: F.avg_pool2d(x, 3, 2, 1, True, False, divisor_override=4)),
    "average pool of volumes": ((1, 2, 5, 6, 4), lambda x: F.avg_pool3d(x, 2, 2, 1, ceil_mode=True)),
    "response normalization": ((2, 5, 3, 3), lambda x: F.local_response_norm(x, 3)),
    "unpooling": ((2, 2, 4, 6), lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)),
    "largest of an image without a batch": ((2, 6, 6), lambda x: F.max_pool2d(x, 3, 2, 1)),
    "windows": ((2, 9), lambda x: x.unfold(1, 4, 2)),
    "places among boundaries": ((3, 4), lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.7])) * x),
    "sums of rows that meet": ((4, 3), lambda x: torch.zeros(3, 3).scatter_reduce(0, torch.tensor([0, 0, 2, 0])[:, None].expand(4, 3), x, "mean")),
    "rows by frequency": ((5, 3), lambda x: F.embedding(torch.tensor([0, 0, 3, 3, 3]), x, scale_grad_by_freq=True)),
    "bags": ((5, 3), lambda x: bags(x, "mean", padding_idx=0)),
    "bags, sum": ((5, 3), lambda x: bags(x, "sum", per_sample_weights=torch.linspace(0, 1, 7))),
    "bags, largest": ((5, 3), lambda x: bags(x, "max", padding_idx=2)),
    "bags in a matrix": ((5, 3), lambda x: F.embedding_bag(torch.tensor([[0, 1, 2], [0, 0, 3]]), x, mode="mean", padding_idx=0)),
    "soft plus beyond its threshold": ((9,), lambda x: F.softplus(x * 3, beta=0.5, threshold=1)),
    "CELU": ((9,), lambda x: F.celu(x * 3, alpha=0.5)),
    "small numbers": ((9,), lambda x: torch.log1p(x * 1e-6) * 1e6 + torch.expm1(x * 1e-6) * 1e6),
    "quantized": ((3, 4), lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -8, 7)),
    "a density": ((6,), lambda x: torch.distributions.Normal(x, x.square() + 0.1, validate_args=True).log_prob(x.detach() + 1)),
    "attention with a mask of truth values": ((1, 2, 4, 6), lambda x: F.scaled_dot_product_attention(x, x.flip(2), x, torch.arange(16).reshape(4, 4) % 5 < 3)),
    "attention with a row that sees nothing": ((1, 1, 4, 6), lambda x: F.scaled_dot_product_attention(x, x.flip(2), x, torch.arange(16).reshape(4, 4) > 3)),
    "Gaussian": ((5, 2), lambda x: F.gaussian_nll_loss(x, x.flip(0).detach(), x.square() + 0.1, reduction="none")),
}  # fmt: skip


class Learned(nn.Module):
    """A function of a parameter, whose results count differently."""

    def __init__(self, shape: tuple[int, ...], function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.x, self.function = nn.Parameter(torch.randn(shape)), function

    def forward(self, scale: Tensor) -> Tensor:
        y = self.function(self.x).flatten() * scale
        return (y * torch.linspace(-1, 1.5, y.numel())).sum()


@pytest.mark.parametrize("standard", [False, True], ids=["compact", "standard"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gradient_is_that_of_pytorch(name: str, standard: bool) -> None:
    compare_with_pytorch(*FUNCTIONS[name], standard)


def compare_with_pytorch(shape: tuple[int, ...], function: Callable[[Tensor], Tensor], standard: bool) -> None:
    model, scale = Learned(shape, function), torch.ones(())
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    step = export_step(model, None, optimizer, (scale,), standard=standard, lr_input=False)
    session = lmsc.compile(step, target="host").session()
    session.load_state({"x": model.x.detach()})
    loss = session.step({"scale": scale})["loss"]
    expected = model(scale)
    expected.backward()
    assert float(loss) == pytest.approx(float(expected.detach()), rel=1e-4, abs=1e-5)
    found = model.x.detach() - torch.from_numpy(session.state()["x"].copy())
    torch.testing.assert_close(found, model.x.grad, rtol=1e-4, atol=2e-5)


C, SMALL = 0.123456, torch.tensor(0.123456)
BESIDE_NUMBERS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "product": lambda x, y: x * C, "quotient": lambda x, y: x / C, "quotient of a number": lambda x, y: C / (x.abs() + 1),
    "product with a tensor of one number": lambda x, y: x * SMALL, "tensor of one number first": lambda x, y: SMALL * x,
    "quotient by a tensor of one number": lambda x, y: x / SMALL, "sum": lambda x, y: x + C, "difference": lambda x, y: C - x,
    "sum with a factor": lambda x, y: torch.add(x, y, alpha=C), "sum of numbers with a factor": lambda x, y: torch.add(x, 1.7, alpha=C),
    "difference with a factor": lambda x, y: torch.sub(x, y, alpha=C), "reversed, with a factor": lambda x, y: torch.rsub(x, 1.7, alpha=C),
    "power": lambda x, y: x.abs() ** 1.37, "power of a number": lambda x, y: 1.37**x, "cube": lambda x, y: x**3,
    "inverse square": lambda x, y: (x.abs() + 0.5) ** -2, "inverse root": lambda x, y: (x.abs() + 1).rsqrt().detach() + x,
    "comparison": lambda x, y: torch.where(torch.full_like(x, C) <= C, x, y), "bounds": lambda x, y: x.clamp(-C, C),
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=C), "addcdiv": lambda x, y: torch.addcdiv(x, y, y.abs() + 1, value=C),
    "interpolation": lambda x, y: torch.lerp(x, y, 0.7), "leaky": lambda x, y: F.leaky_relu(x, C), "elu": lambda x, y: F.elu(x, C),
    "softplus": lambda x, y: F.softplus(x), "silu": lambda x, y: F.silu(x), "log1p": lambda x, y: x.abs().log1p(),
    "expm1": lambda x, y: x.expm1(), "log2": lambda x, y: (x.abs() + 1).log2().detach() + x, "angle": torch.atan2, "hypotenuse": torch.hypot,
    "whole quotient": lambda x, y: torch.div(x, C, rounding_mode="floor") * 0.25, "rest": lambda x, y: torch.remainder(x, C),
    "slopes that are not drawn": lambda x, y: F.rrelu(x),
    "matrix and vector": lambda x, y: torch.addmv(y[:8], x.view(8, 16), y[:16], alpha=0.5, beta=2),
}  # fmt: skip


class Short(nn.Module):
    """All of these functions, and gradients of each for itself: every function has a zero of its own added to its operand."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.zeros = nn.Parameter(torch.zeros(len(BESIDE_NUMBERS), 128, dtype=dtype))

    def forward(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        found = [f(x + self.zeros[k], y) for k, f in enumerate(BESIDE_NUMBERS.values())]
        rate = torch.linspace(-1, 1.5, 128)
        loss = torch.stack([(r.float() * rate[: r.numel()]).sum() for r in found]).sum()
        return {"loss": loss, **{f"r{k}": r * 1 for k, r in enumerate(found)}}


def ulps(a: Tensor, b: Tensor) -> Tensor:
    """The distances of elements, in steps from one number of their type to the next."""
    places = [torch.where(v < 0, -(1 << 15) - v, v) for v in (t.contiguous().view(torch.int16).int() for t in (a, b))]
    return torch.where(a == b, 0, (places[0] - places[1]).abs())


@pytest.mark.parametrize(("dtype", "standard"), [(torch.bfloat16, False), (torch.float16, True)], ids=["bfloat16, compact", "float16, standard"])
def test_numbers_beside_short_floats_are_rounded_where_pytorch_rounds_them(dtype: torch.dtype, standard: bool) -> None:
    torch.manual_seed(3)
    model, x, y = Short(dtype), torch.randn(128).to(dtype), torch.randn(128).to(dtype)
    step = export_step(model, None, torch.optim.SGD(model.parameters(), lr=1.0), (x, y), standard=standard, lr_input=False)
    session = lmsc.compile(step, target="host").session()
    session.load_state({"zeros": model.zeros.detach().clone()})
    found = session.step({"x": x, "y": y})
    expected = model(x, y)
    expected["loss"].backward()

    def of(value: Any) -> Tensor:
        return torch.from_numpy(value.view("int16").copy()).view(dtype)

    gradients = -of(session.state()["zeros"])
    for k, name in enumerate(BESIDE_NUMBERS):
        for kind, a, b in (("result", expected[f"r{k}"].detach(), of(found[f"r{k}"])), ("gradient", model.zeros.grad[k], gradients[k])):
            off = ulps(a, b)
            assert off.max() <= 1 and (off > 0).sum() <= 0.03 * off.numel(), (name, kind, off)


def results(model: nn.Module, *batch: Tensor, steps: int = 1) -> tuple[list[Any], dict[str, Any]]:
    """The results of the last of some steps without updates, and the state after it."""
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)
    session = lmsc.compile(export_step(model, None, optimizer, batch, lr_input=False), target="host").session()
    session.load_state({n: v.detach() for n, v in [*model.named_parameters(), *model.named_buffers()] if n in session.state()})
    inputs = dict(zip(lmsc.torch.batch_names(model, batch, False), batch))
    for _ in range(steps):
        found = session.step(inputs)
    return [found[f"output_{k}"] for k in range(1, len(found)) if f"output_{k}" in found], session.state()


class Drawn(nn.Module):
    """Draws of which the distribution is known."""

    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.ones(()))

    def forward(self, chances: Tensor) -> tuple[Tensor, ...]:
        gumbel = F.gumbel_softmax(chances.log().expand(4000, 4), hard=True)
        return (
            self.p * chances.sum(), torch.multinomial(chances.expand(4000, 4), 1), torch.multinomial(chances, 3), torch.randperm(9),
            torch.empty(4000).exponential_(2.0), gumbel.mean(0), torch.randint(5, 8, (4000,)),
            torch.distributions.Categorical(chances).sample((4000,)),
        )  # fmt: skip


def test_draws_have_their_distributions() -> None:
    chances = torch.tensor([0.1, 0.0, 0.6, 0.3])
    (one, three, order, waits, gumbel, between, category), _ = results(Drawn(), chances)
    for drawn in (one, category):
        shares = torch.bincount(torch.from_numpy(drawn.copy()).flatten(), minlength=4) / 4000
        torch.testing.assert_close(shares, chances, atol=0.04, rtol=0)
    assert sorted(three.tolist()) == [0, 2, 3]
    assert sorted(order.tolist()) == list(range(9))
    assert 0 < waits.min() and float(waits.mean()) == pytest.approx(0.5, abs=0.05)
    torch.testing.assert_close(torch.from_numpy(gumbel.copy()), chances, atol=0.04, rtol=0)
    assert set(between.tolist()) == {5, 6, 7}


class Averaged(nn.Module):
    """Batch norm that averages over all batches."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3, momentum=None)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x).square().mean()


def test_batch_norm_averages_over_all_batches_without_a_momentum() -> None:
    model, x = Averaged(), torch.linspace(-1, 2, 12).reshape(4, 3)
    _, state = results(model, x, steps=3)
    for _ in range(3):
        model(x)
    for name, value in model.named_buffers():
        torch.testing.assert_close(torch.from_numpy(state[name].copy()), value)


class Labelled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(4, 3))

    def forward(self, x: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(self.w[:3] @ x, label) + F.embedding(label.clamp(max=3), self.w).sum()


@pytest.mark.parametrize("standard", [False, True], ids=["compact", "standard"])
def test_a_label_out_of_range_is_an_error_that_changes_nothing(standard: bool) -> None:
    model = Labelled()
    batch = torch.ones(3, 3), torch.tensor([0, 2, -100])
    with pytest.raises(lmsc.InputError, match="out of range"):
        run_labels(model, batch, standard, [-100, 0, 0])
    session = run_labels(model, batch, standard, [0, 1, 2])
    before = session.state()["w"].copy()
    for wrong in ([0, 1, 3], [0, -1, 2]):
        with pytest.raises(lmsc.InputError, match=r"out of range"):
            session.step({"x": batch[0], "label": torch.tensor(wrong)})
        assert (session.state()["w"] == before).all()
    session.step({"x": batch[0], "label": torch.tensor([2, 1, 0])})
    assert (session.state()["w"] != before).any()


def run_labels(model: nn.Module, batch: tuple[Tensor, ...], standard: bool, labels: list[int]) -> Any:
    step = export_step(model, None, torch.optim.SGD(model.parameters(), lr=1.0), batch, standard=standard, lr_input=False)
    session = lmsc.compile(step, target="host").session()
    session.load_state({"w": model.w.detach()})
    session.step({"x": batch[0], "label": torch.tensor(labels)})
    return session


@pytest.mark.parametrize(("function", "words"), [
    (lambda x: (x.view(torch.int32) * 1).float() + x, "view of"),
    (lambda x: F.one_hot((x > 0).long()) * x.unsqueeze(-1), "number of classes"),
    (lambda x: F.ctc_loss(x.log_softmax(-1), torch.tensor([1, 2, 1]), (7, 7, 7), (1, 1, 1)), "padded to a matrix"),
    (lambda x: F.grid_sample(x[None, None], torch.zeros(1, 2, 2, 2, 3), align_corners=False), "not for volumes"),
])  # fmt: skip
def test_unsupported_operators_are_refused(function: Callable[[Tensor], Tensor], words: str) -> None:
    model = Learned((7, 3, 5), function)
    with pytest.raises(CaptureError, match=words):
        export_step(model, None, torch.optim.SGD(model.parameters()), (torch.ones(()),))
