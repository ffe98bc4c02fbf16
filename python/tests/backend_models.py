"""Small models, one for each thing that a backend of torch.compile can get wrong; for test_backend.py and scripts/check_backend.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op
from torch.nn import functional as F


@dataclass
class Model:
    """A module whose result is a loss, unless `loss` computes it of the result; `batch(i)` gives the arguments of step i."""

    module: nn.Module
    batch: Callable[[int], tuple[Any, ...]]
    loss: Callable[..., Tensor] | None = None
    trains: bool = True
    dynamic: bool | None = None
    #: Settings of Dynamo.
    config: dict[str, Any] = field(default_factory=dict)


MODELS: dict[str, Callable[[], Model]] = {}


def model(make: Callable[[], Any]) -> Any:
    """Registers a function that gives a `Model`, or a module that takes rows and labels."""

    def build() -> Model:
        torch.manual_seed(0)
        made = make()
        return made if isinstance(made, Model) else Model(WithLoss(made), lambda i: (rows(i), labels(i)))

    MODELS[make.__name__] = build
    return make


class WithLoss(nn.Module):
    def __init__(self, net: nn.Module, loss: Callable[..., Tensor] = F.cross_entropy):
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.loss(self.net(x), y)


def draw(i: int) -> torch.Generator:
    return torch.Generator().manual_seed(1000 + i)


def rows(i: int, n: int = 128, width: int = 64) -> Tensor:
    return torch.randn(n, width, generator=draw(i))


def labels(i: int, n: int = 128, classes: int = 5) -> Tensor:
    return torch.randint(0, classes, (n,), generator=draw(i + 7))


def words(i: int, n: int = 4, length: int = 32) -> Tensor:
    return torch.randint(0, 100, (n, length), generator=draw(i))


def next_word(scores: Tensor, text: Tensor) -> Tensor:
    return F.cross_entropy(scores[:, :-1].flatten(0, 1), text[:, 1:].flatten())


def of_text(net: nn.Module, dynamic: bool | None = None, length: Callable[[int], int] = lambda i: 32) -> Model:
    return Model(WithLoss(net, next_word), lambda i: (words(i, length=length(i)),) * 2, dynamic=dynamic)


class Layers(nn.Module):
    """Four layers of 64, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
        self.out = nn.Linear(64, 5)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = self.step(layer(x))
        return self.out(x)

    def step(self, x: Tensor) -> Tensor:
        return F.gelu(x)


@model
def plain() -> Any:
    return Layers()


@model
def dropout() -> Any:
    class Dropout(Layers):
        def step(self, x: Tensor) -> Tensor:
            return F.dropout(F.gelu(x), 0.3)

    return Dropout()


@model
def noise() -> Any:
    class Noise(Layers):
        def step(self, x: Tensor) -> Tensor:
            return F.gelu(x + 0.1 * torch.randn_like(x)) * (torch.rand(x.shape[0], 1) > 0.2)

    return Noise()


@model
def in_place() -> Any:
    class InPlace(Layers):
        def step(self, x: Tensor) -> Tensor:
            x.add_(1.0)
            x[:, :8].mul_(0.5)
            x.t()[3].neg_()
            return F.relu_(x)

    return InPlace()


@model
def batch_norm() -> Any:
    convolutions = [
        layer
        for width in (3, 16, 16, 16)
        for layer in (nn.Conv2d(width, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
    ]
    net = nn.Sequential(*convolutions, nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5))
    return Model(WithLoss(net), lambda i: (torch.randn(4, 3, 24, 24, generator=draw(i)), labels(i, 4)))


@model
def batch_norm_twice() -> Any:
    class Twice(Layers):
        """The second call reads the statistics that the first has made, and so does the loss."""

        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(64)

        def forward(self, x: Tensor) -> Tensor:
            x = F.relu(self.norm(self.layers[0](x)))
            x = F.relu(self.norm(self.layers[1](x)))
            return self.out(x * self.norm.running_var.sigmoid() + self.norm.running_mean)

    return Twice()


@model
def channels_last() -> Any:
    made = MODELS["batch_norm"]()

    def batch(i: int) -> tuple[Any, ...]:
        x, y = made.batch(i)
        return x.contiguous(memory_format=torch.channels_last), y

    return Model(made.module.to(memory_format=torch.channels_last), batch)


@model
def buffer_reassigned() -> Any:
    class Average(Layers):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("average", torch.zeros(64))
            self.register_buffer("count", torch.zeros((), dtype=torch.long))

        def forward(self, x: Tensor) -> Tensor:
            x = F.gelu(self.layers[0](x))
            self.average = 0.9 * self.average + 0.1 * x.detach().mean(0)
            self.count += 1
            return self.out(F.gelu(self.layers[1](x - self.average)))

    return Average()


@model
def input_changed() -> Any:
    class Changes(Layers):
        def forward(self, x: Tensor) -> Tensor:
            before = x.clone()
            x.mul_(0.5)
            x[:, :4].fill_(1.0)
            return self.out(F.gelu(self.layers[1](F.gelu(self.layers[0](before)) + x)))

    return Changes()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        ctx.square = x**2
        return ctx.square * x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient * 3 * ctx.square + 0 * x


@model
def own_function() -> Any:
    class Cubes(Layers):
        def step(self, x: Tensor) -> Tensor:
            return Cube.apply(torch.tanh(x))

    return Cubes()


@torch.library.custom_op("lmsctests::smooth", mutates_args=())
def smooth(x: Tensor) -> Tensor:
    return x.cumsum(-1) / x.shape[-1]


@torch.library.custom_op("lmsctests::bump", mutates_args=("x",))
def bump(x: Tensor) -> None:
    x.add_(1)


@torch.library.custom_op("lmsctests::two", mutates_args=())
def two(x: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    return x * factor, x.sum(-1)


smooth.register_fake(torch.empty_like)
smooth.register_autograd(lambda ctx, gradient: gradient.flip(-1).cumsum(-1).flip(-1) / gradient.shape[-1])
two.register_fake(lambda x, factor: (torch.empty_like(x), x.new_empty(x.shape[:-1])))
two.register_autograd(
    lambda ctx, first, second: (first * ctx.factor + second[..., None], None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
)


@model
def custom_operator() -> Any:
    class Custom(Layers):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(64))

        def forward(self, x: Tensor) -> Tensor:
            bump(self.count)
            x, total = two(F.gelu(smooth(self.layers[0](x))), 3)
            return self.out(F.gelu(self.layers[1](x)) + total[:, None]) + self.count[:5]

    return Custom()


@model
def graph_break() -> Any:
    class Broken(Layers):
        def forward(self, x: Tensor) -> Tensor:
            x = F.gelu(self.layers[1](F.gelu(self.layers[0](x))))
            torch._dynamo.graph_break()
            return self.out(F.gelu(self.layers[3](F.gelu(self.layers[2](x)))))

    return Broken()


@model
def tied_weights() -> Any:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.layer = nn.Embedding(100, 64), nn.Linear(64, 64)
            self.out = nn.Linear(64, 100, bias=False)
            self.out.weight = self.embedding.weight

        def forward(self, text: Tensor) -> Tensor:
            return self.out(F.gelu(self.layer(self.embedding(text))))

    return of_text(Tied())


class Attention(nn.Module):
    def __init__(self, probability: float = 0.0) -> None:
        super().__init__()
        self.embedding, self.heads, self.out = nn.Embedding(100, 64), nn.Linear(64, 192), nn.Linear(64, 100)
        self.probability = probability

    def forward(self, text: Tensor) -> Tensor:
        q, k, v = self.heads(self.embedding(text)).view(*text.shape, 3, 4, 16).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.probability)
        return self.out(x.transpose(1, 2).flatten(2))


@model
def attention() -> Any:
    return of_text(Attention())


@model
def attention_with_dropout() -> Any:
    return of_text(Attention(0.2))


@model
def encoder() -> Any:
    layer = nn.TransformerEncoderLayer(64, 4, 128, 0.1, batch_first=True)
    net = nn.Sequential(
        nn.Embedding(100, 64), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(64, 100)
    )
    return of_text(net)


@model
def checkpoint_inside() -> Any:
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(Layers):
        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = checkpoint(lambda v, layer=layer: F.dropout(F.gelu(layer(v)), 0.2), x, use_reentrant=False)
            return self.out(x)

    return Checkpointed()


@model
def autocast() -> Any:
    def loss(scores: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(scores.float(), y)

    class Autocast(WithLoss):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return super().forward(x, y)

    return Model(Autocast(Layers(), loss), lambda i: (rows(i), labels(i)))


@model
def frozen_layers() -> Any:
    net = Layers()
    for layer in net.layers[::2]:
        layer.requires_grad_(False)
    return net


@model
def several_outputs() -> Any:
    class Several(Layers):
        def forward(self, x: Tensor, y: Tensor) -> Any:
            a = F.gelu(self.layers[0](x))
            b = F.gelu(self.layers[1](a))
            return self.out(b), a, x, b.view(-1), a.detach()

    def loss(out: Any, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(out[0], y) + out[1].square().mean()

    return Model(Several(), lambda i: (rows(i), labels(i)), loss)


@model
def loss_outside() -> Any:
    class Outside(Layers):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return super().forward(x)

    return Model(Outside(), lambda i: (rows(i), labels(i)), lambda out, x, y: F.cross_entropy(out, y))


@model
def unread_inputs() -> Any:
    class Unread(WithLoss):
        def forward(self, x: Tensor, y: Tensor, z: Tensor, nothing: None) -> Tensor:
            return super().forward(x, y)

    return Model(Unread(Layers()), lambda i: (rows(i), labels(i), rows(i), None))


@model
def input_with_gradient() -> Any:
    return Model(WithLoss(Layers()), lambda i: (rows(i).requires_grad_(), labels(i)))


@model
def growing_batch() -> Any:
    return Model(WithLoss(Layers()), lambda i: (rows(i, 96 + 16 * i), labels(i, 96 + 16 * i)), dynamic=True)


@model
def growing_length() -> Any:
    return of_text(Attention(), dynamic=True, length=lambda i: 24 + 8 * i)


@model
def inference() -> Any:
    return Model(WithLoss(Layers()), lambda i: (rows(i), labels(i)), trains=False)


@model
def inference_with_statistics() -> Any:
    made = MODELS["batch_norm"]()
    return Model(made.module, made.batch, trains=False)


@model
def complex_numbers() -> Any:
    class Fourier(Layers):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(33, dtype=torch.complex64))

        def forward(self, x: Tensor) -> Tensor:
            return self.out(torch.fft.irfft(torch.fft.rfft(F.gelu(self.layers[0](x))) * self.weight, n=64).relu())

    return Fourier()


@model
def experts() -> Any:
    class Experts(Layers):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(64, 4)

        def forward(self, x: Tensor) -> Tensor:
            weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
            y = torch.zeros_like(x)
            for place, expert in enumerate(self.layers):
                y = y + F.gelu(expert(x)) * (weights * (chosen == place)).sum(-1, keepdim=True)
            return self.out(y)

    return Experts()


@model
def scan() -> Any:
    class Scan(Layers):
        def forward(self, x: Tensor) -> Tensor:
            state = torch.zeros(x.shape[0], 64)
            for t in range(8):
                state = torch.tanh(self.layers[0](x[:, t * 6 : t * 6 + 4].repeat(1, 16)) + self.layers[1](state))
            return self.out(state)

    return Scan()


@model
def bags() -> Any:
    class Bags(Layers):
        def __init__(self) -> None:
            super().__init__()
            self.bags = nn.EmbeddingBag(200, 64, mode="mean")

        def forward(self, x: Tensor) -> Tensor:
            return super().forward(self.bags(x))

    return Model(
        WithLoss(Bags()), lambda i: (torch.randint(0, 200, (128, 6), generator=draw(i)), labels(i))
    )


#: Sums that `tell` has met, in the order of its calls.
TOLD: list[float] = []


@torch.library.custom_op("lmsctest::tell", mutates_args=())
def tell(x: Tensor) -> Tensor:
    TOLD.append(x.sum().item())
    return x.clone()


@tell.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


tell.register_autograd(lambda ctx, g: 2 * g)
_register_effectful_op("lmsctest::tell", _EffectType.ORDERED)


@model
def effects() -> Any:
    class Effects(Layers):
        """Its operators keep their order by a token that passes through them."""

        def step(self, x: Tensor) -> Tensor:
            return torch.ops.lmsctest.tell(F.gelu(x))

    return Effects()


@model
def chosen_rows() -> Any:
    class Chosen(Layers):
        """A size depends on data, so the operators that read it run once."""

        def forward(self, x: Tensor) -> Tensor:
            x = F.gelu(self.layers[0](x))
            chosen = x[(x[:, 0] > 0).nonzero()[:, 0]]
            return self.out(x) + self.out(F.gelu(self.layers[1](chosen))).mean()

    return Model(WithLoss(Chosen()), lambda i: (rows(i), labels(i)), config={"capture_dynamic_output_shape_ops": True})


@model
def region() -> Any:
    class Region(Layers):
        """Its layers are calls of one graph within the graph."""

        def __init__(self) -> None:
            super().__init__()
            self.one = torch.compiler.nested_compile_region(lambda layer, x: F.gelu(layer(x)))

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = self.one(layer, x)
            return self.out(x)

    return Region()


@model
def condition() -> Any:
    class Condition(Layers):
        def forward(self, x: Tensor) -> Tensor:
            x = F.gelu(self.layers[0](x))
            x = torch.cond(x.sum() > 0, lambda v: v.sin(), lambda v: v.cos(), (x,))
            return self.out(F.gelu(self.layers[1](x)))

    return Condition()


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.layers = nn.Embedding(100, 32), nn.GRU(32, 48, batch_first=True)
        self.out = nn.Linear(48, 100)

    def forward(self, text: Tensor) -> Tensor:
        return self.out(self.layers(self.embedding(text))[0])


@model
def recurrent() -> Any:
    made = of_text(Recurrent(), length=lambda i: 4)
    return Model(made.module, made.batch, config={"allow_rnn": True})


@model
def views_as_results() -> Any:
    class Views(Layers):
        def forward(self, x: Tensor, y: Tensor) -> Any:
            a = F.gelu(self.layers[0](x))
            return a.t()[:5].t(), x[:3], a[:, 8:]

    return Model(Views(), lambda i: (rows(i), labels(i)), lambda out, x, y: (out[0] - y.float()[:, None]).square().mean())
