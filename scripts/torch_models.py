"""Small models of many architectures, each with a loss, an optimizer and batches, for check_torch.py: those written by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass
class Case:
    """A model and how it is trained. `batch()` draws a batch."""

    model: nn.Module
    loss: Callable[..., Any] | None
    batch: Callable[[], Any]
    optimizer: Callable[[Any], torch.optim.Optimizer]
    options: dict[str, Any]
    tolerance: float = 1e-4
    """The largest difference that counts as equal. In bfloat16 a number has three digits."""


CASES: dict[str, Callable[[], Case]] = {}


def adamw(params: Any) -> torch.optim.Optimizer:
    # A gradient that is zero but for rounding, such as that of the bias of a key in attention, would otherwise be a whole step of
    # the learning rate up or down.
    return torch.optim.AdamW(params, lr=1e-3, eps=1e-4)


def sgd(params: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(params, lr=0.01, momentum=0.9, weight_decay=1e-4)


def slow_sgd(params: Any) -> torch.optim.Optimizer:
    # For deep networks with batch normalization: their second step in single precision is another one than in double at larger rates.
    return torch.optim.SGD(params, lr=1e-4, momentum=0.9, weight_decay=1e-4)


def case(
    name: str, optimizer: Callable[[Any], torch.optim.Optimizer] = adamw, tolerance: float = 1e-4, **options: Any
) -> Callable[..., Any]:
    """Registers a function that gives model, loss and batch."""

    def register(make: Callable[[], tuple[nn.Module, Any, Any]]) -> Any:
        def build() -> Case:
            torch.manual_seed(0)
            return Case(*make(), optimizer, options, tolerance)

        assert name not in CASES
        CASES[name] = build
        return make

    return register


def images(n: int, size: int, classes: int, channels: int = 3) -> Callable[[], Any]:
    return lambda: (torch.randn(n, channels, size, size), torch.randint(0, classes, (n,)))


def tokens(n: int, length: int, vocabulary: int) -> Callable[[], Any]:
    return lambda: tuple(torch.randint(0, vocabulary, (2, n, length)))


def vectors(n: int, size: int, classes: int) -> Callable[[], Any]:
    return lambda: (torch.randn(n, size), torch.randint(0, classes, (n,)))


def next_token(scores: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(scores.flatten(0, 1), target.flatten())


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 10))


# Optimizers, each over the same network.
for _name, _make in {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-3),
    "Adam": lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=0.01),
    "AMSGrad": lambda p: torch.optim.Adam(p, lr=1e-3, amsgrad=True),
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": sgd,
    "Nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, eps=1e-4, momentum=0.9),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.01),
    "Adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=1e-3),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=1e-3),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=1e-3),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.05),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "Adafactor": lambda p: torch.optim.Adafactor(p, lr=0.01),
    "two groups": lambda p: (lambda q: torch.optim.AdamW([{"params": q[:2], "lr": 1e-2}, {"params": q[2:]}], lr=1e-3))(list(p)),
}.items():
    case(f"MLP, {_name}", _make)(lambda: (mlp(), F.cross_entropy, vectors(8, 16, 10)))
case("MLP, clipped", adamw, clip_grad_norm=0.1)(lambda: (mlp(), F.cross_entropy, vectors(8, 16, 10)))
case("MLP, accumulated", sgd, accumulate=2)(lambda: (mlp(), F.cross_entropy, vectors(8, 16, 10)))


@case("MLP, frozen layer")
def _() -> Any:
    model = mlp()
    model[0].weight.requires_grad_(False)
    return model, F.cross_entropy, vectors(8, 16, 10)


@case("CNN", sgd)
def _() -> Any:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(16), nn.LeakyReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip
    return model, F.cross_entropy, images(4, 16, 10)


@case("depthwise CNN", sgd)
def _() -> Any:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.Hardswish(), nn.Conv2d(8, 8, 3, groups=8, padding=1, bias=False),
        nn.BatchNorm2d(8), nn.ReLU6(), nn.Conv2d(8, 16, 1, groups=2), nn.ELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5),
    )  # fmt: skip
    return model, F.cross_entropy, images(4, 12, 5)


class UNet(nn.Module):
    def __init__(self, up: bool) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up = (
            nn.ConvTranspose2d(16, 8, 2, stride=2) if not up else nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(16, 8, 1))
        )
        self.norm, self.c = nn.GroupNorm(2, 8), nn.Conv2d(16, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        a = F.silu(self.norm(self.a(image)))
        b = F.relu(self.b(F.max_pool2d(a, 2)))
        return self.c(torch.cat([a, self.up(b)], 1))


def masks() -> Any:
    return torch.randn(2, 3, 16, 16), torch.randint(0, 2, (2, 16, 16))


case("U-Net, transposed")(lambda: (UNet(False), F.cross_entropy, masks))
case("U-Net, upsampled")(lambda: (UNet(True), F.cross_entropy, masks))


@case("U-Net 3D")
def _() -> Any:
    model = nn.Sequential(
        nn.Conv3d(1, 4, 3, padding=1), nn.InstanceNorm3d(4, affine=True), nn.ReLU(), nn.Conv3d(4, 8, 3, stride=2, padding=1), nn.ReLU(),
        nn.ConvTranspose3d(8, 4, 2, stride=2), nn.Conv3d(4, 1, 1),
    )  # fmt: skip
    return model, F.mse_loss, lambda: (torch.randn(1, 1, 8, 8, 8), torch.randn(1, 1, 8, 8, 8))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.n1, self.n2, self.heads, self.causal = nn.LayerNorm(width), nn.LayerNorm(width), heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(self.n1(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, c))
        return x + self.down(F.gelu(self.up(self.n2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary: int = 50, width: int = 32, layers: int = 2, length: int = 16, tied: bool = False) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, 4, True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.token.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.token(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


case("GPT")(lambda: (GPT(), next_token, tokens(2, 16, 50)))
case("GPT, tied")(lambda: (GPT(tied=True), next_token, tokens(2, 16, 50)))


@case("GPT, checkpoints")
def _() -> Any:
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(GPT):
        def forward(self, ids: Tensor) -> Tensor:
            x = self.token(ids) + self.place(torch.arange(ids.shape[1]))
            for block in self.blocks:
                x = checkpoint(block, x, use_reentrant=False)
            return self.head(self.norm(x))

    return Checkpointed(), next_token, tokens(2, 16, 50)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], layers: int = 2, both: bool = False) -> None:
        super().__init__()
        self.token = nn.Embedding(30, 16)
        self.cells = kind(16, 16, layers, batch_first=True, bidirectional=both)
        self.head = nn.Linear(32 if both else 16, 30)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.cells(self.token(ids))[0])


case("LSTM")(lambda: (Recurrent(nn.LSTM), next_token, tokens(2, 8, 30)))
case("GRU")(lambda: (Recurrent(nn.GRU, 1), next_token, tokens(2, 8, 30)))
case("RNN, both directions")(lambda: (Recurrent(nn.RNN, 1, True), next_token, tokens(2, 8, 30)))


class Graph(nn.Module):
    """Message passing by index_add over edges that are given."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.node, self.head = nn.Linear(8, 16), nn.Linear(24, 16), nn.Linear(16, 3)

    def forward(self, nodes: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        sent = F.relu(self.message(nodes[sources]))
        received = torch.zeros(nodes.shape[0], 16).index_add(0, targets, sent)
        return self.head(F.relu(self.node(torch.cat([nodes, received], 1))))


@case("graph network")
def _() -> Any:
    def batch() -> Any:
        return torch.randn(12, 8), torch.randint(0, 12, (30,)), torch.randint(0, 12, (30,)), torch.randint(0, 3, (12,))

    return Graph(), F.cross_entropy, batch


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.item = nn.EmbeddingBag(40, 8, mode="mean"), nn.Embedding(20, 8)
        self.top = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, history: Tensor, item: Tensor) -> Tensor:
        return self.top(torch.cat([self.bag(history), self.item(item)], 1)).squeeze(1)


@case("recommender, EmbeddingBag")
def _() -> Any:
    return Recommender(), F.binary_cross_entropy_with_logits, lambda: (
        torch.randint(0, 40, (6, 5)), torch.randint(0, 20, (6,)), torch.rand(6).round(),
    )  # fmt: skip


class Experts(nn.Module):
    """A mixture of experts, each of which sees every token, weighted by the router."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(16, 4)
        self.up, self.down = nn.Parameter(torch.randn(4, 16, 32) * 0.1), nn.Parameter(torch.randn(4, 32, 16) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        weight, chosen = self.router(x).softmax(-1).topk(2)
        gate = torch.zeros(x.shape[0], 4).scatter(1, chosen, weight)
        hidden = F.silu(torch.einsum("td,edh->eth", x, self.up))
        return torch.einsum("eth,ehd,te->td", hidden, self.down, gate)


case("experts, dense routing")(lambda: (Experts(), F.mse_loss, lambda: (torch.randn(10, 16), torch.randn(10, 16))))


class Selective(nn.Module):
    """A state space as in Mamba, scanned step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.project = nn.Conv1d(8, 8, 4, padding=3, groups=8), nn.Linear(8, 8 + 2 * 4)
        self.a, self.out = nn.Parameter(torch.rand(8, 4)), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = F.silu(self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        delta, b, c = self.project(x).split([8, 4, 4], -1)
        delta, h, ys = F.softplus(delta), torch.zeros(x.shape[0], 8, 4), []
        for t in range(x.shape[1]):
            h = torch.exp(-delta[:, t, :, None] * self.a) * h + (delta[:, t] * x[:, t])[..., None] * b[:, t, None]
            ys.append((h * c[:, t, None]).sum(-1))
        return self.out(torch.stack(ys, 1))


case("selective state space")(lambda: (Selective(), F.mse_loss, lambda: (torch.randn(2, 6, 8), torch.randn(2, 6, 8))))


class Rays(nn.Module):
    """A radiance field: positions by sines, colours composed along rays."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, points: Tensor) -> Tensor:
        waves = torch.cat([f(points * 2.0**k) for k in range(4) for f in (torch.sin, torch.cos)], -1)
        colour, density = self.net(waves).split([3, 1], -1)
        alpha = 1 - torch.exp(-F.softplus(density))
        through = torch.exp(torch.cumsum(torch.log(1 - alpha + 1e-6), 1))
        return (torch.sigmoid(colour) * alpha * through).sum(1)


case("radiance field")(lambda: (Rays(), F.mse_loss, lambda: (torch.rand(6, 8, 3), torch.rand(6, 3))))


class Penalty(nn.Module):
    """A critic with a penalty on the norm of its gradient: a second derivative."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = x.detach().requires_grad_()
        y = self.net(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y.mean() + 10 * ((g.norm(dim=1) - 1) ** 2).mean()


case("critic with gradient penalty")(lambda: (Penalty(), None, lambda: (torch.randn(8, 6),)))


class Doubled(torch.autograd.Function):
    """A gradient of its own."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return dy * (1 + 0.1 * x)


@case("custom autograd function")
def _() -> Any:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.b(Doubled.apply(self.a(x)))

    return Net(), F.cross_entropy, vectors(6, 8, 4)


@case("contrastive")
def _() -> Any:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.t = nn.Linear(8, 6), nn.Linear(10, 6), nn.Parameter(torch.tensor(math.log(10.0)))

        def forward(self, image: Tensor, text: Tensor) -> Tensor:
            a, b = F.normalize(self.a(image), dim=-1), F.normalize(self.b(text), dim=-1)
            scores = a @ b.T * self.t.exp()
            places = torch.arange(image.shape[0])
            return (F.cross_entropy(scores, places) + F.cross_entropy(scores.T, places)) / 2

    return Two(), None, lambda: (torch.randn(5, 8), torch.randn(5, 10))


@case("transformer encoder")
def _() -> Any:
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(16, 4))
    return (
        model,
        lambda y, t: F.cross_entropy(y.flatten(0, 1), t.flatten()),
        lambda: (torch.randn(2, 6, 16), torch.randint(0, 4, (2, 6))),
    )


@case("conformer block", sgd)
def _() -> Any:
    class Conformer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.point, self.deep = (
                nn.LayerNorm(16),
                nn.Conv1d(16, 32, 1),
                nn.Conv1d(16, 16, 5, padding=2, groups=16, bias=False),
            )
            self.batch, self.out, self.attend = nn.BatchNorm1d(16), nn.Linear(16, 5), Block(16, 2, False)

        def forward(self, x: Tensor) -> Tensor:
            x = self.attend(x)
            y = F.glu(self.point(self.norm(x).transpose(1, 2)), 1)
            return self.out(x + F.silu(self.batch(self.deep(y))).transpose(1, 2)).mean(1)

    return Conformer(), F.cross_entropy, lambda: (torch.randn(3, 10, 16), torch.randint(0, 5, (3,)))
