"""Small models for other kinds of training: other losses, custom optimizers, rare layers."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_models import GPT, Block, adamw, case, images, mlp, next_token, sgd, slow_sgd, tokens, vectors

# How a step is trained.


class Scaled(torch.optim.SGD):
    """SGD over gradients of a loss that was scaled up; a step whose gradients are not finite changes nothing."""

    SCALE = 1024.0

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            for p in group["params"]:
                g = p.grad / self.SCALE
                p.grad = torch.where(torch.isfinite(g).all(), g, torch.zeros_like(g))
        return super().step(closure)


class Lion(torch.optim.Optimizer):
    """Steps by the sign of a momentum, smoothed here: a sign turns rounding errors into steps."""

    def __init__(self, params: Any, lr: float = 1e-3) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                m = state["exp_avg"]
                p.sub_(torch.tanh(100 * (0.9 * m + 0.1 * p.grad)) * group["lr"])
                m.mul_(0.99).add_(p.grad, alpha=0.01)


class Orthogonal(torch.optim.Optimizer):
    """Muon in single precision: a momentum whose singular values are brought to one by five products."""

    def __init__(self, params: Any, lr: float = 1e-2) -> None:
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["momentum_buffer"] = torch.zeros_like(p)
                m = state["momentum_buffer"]
                m.mul_(0.95).add_(p.grad)
                x = m / (m.norm() + 1e-7)
                for _ in range(5):
                    a = x @ x.T
                    x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
                p.sub_(x, alpha=group["lr"])


def matrices() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32, bias=False), nn.SiLU(), nn.Linear(32, 10, bias=False))


case("MLP, Muon", Orthogonal)(lambda: (matrices(), F.cross_entropy, vectors(8, 16, 10)))
case("MLP, Muon of PyTorch in bfloat16", lambda p: torch.optim.Muon(p, lr=1e-3), tolerance=2e-2)(
    lambda: (matrices(), F.cross_entropy, vectors(8, 16, 10))
)
case("MLP, Lion", Lion)(lambda: (mlp(), F.cross_entropy, vectors(8, 16, 10)))
case("MLP, averaged weights", adamw, ema=0.9)(lambda: (mlp(), F.cross_entropy, vectors(8, 16, 10)))
case("MLP, scaled loss", lambda p: Scaled(p, lr=0.1, momentum=0.9))(
    lambda: (mlp(), lambda y, t: F.cross_entropy(y, t) * Scaled.SCALE, vectors(8, 16, 10))
)
case("GPT, clipped and accumulated", adamw, clip_grad_norm=0.5, accumulate=2)(lambda: (GPT(), next_token, tokens(4, 16, 50)))


class Cast(nn.Module):
    """Runs a model under autocast."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.net(x).float()


case("MLP, autocast to bfloat16", tolerance=2e-2)(lambda: (Cast(mlp()), F.cross_entropy, vectors(8, 16, 10)))
case("GPT, autocast to bfloat16", tolerance=2e-2)(lambda: (Cast(GPT()), next_token, tokens(2, 16, 50)))


@case("CNN, autocast to bfloat16", sgd, tolerance=2e-2)
def _() -> Any:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(8 * 49, 10))
    return Cast(model), F.cross_entropy, images(4, 16, 10)


class LoRA(nn.Module):
    def __init__(self, of: nn.Linear) -> None:
        super().__init__()
        self.of = of.requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(4, of.in_features) * 0.1), nn.Parameter(torch.zeros(of.out_features, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.of(x) + x @ self.a.T @ self.b.T


case("LoRA")(lambda: (nn.Sequential(LoRA(nn.Linear(16, 32)), nn.GELU(), LoRA(nn.Linear(32, 10))), F.cross_entropy, vectors(8, 16, 10)))

# Losses.

for _name, _loss in {
    "l1": F.l1_loss,
    "smooth l1": F.smooth_l1_loss,
    "huber": lambda y, t: F.huber_loss(y, t, delta=0.5),
    "KL": lambda y, t: F.kl_div(y.log_softmax(-1), t.softmax(-1), reduction="batchmean"),
    "Gaussian": lambda y, t: F.gaussian_nll_loss(y, t, torch.full_like(y, 0.5) + 0.1 * y.square()),
    "Poisson": F.poisson_nll_loss,
    "cosine": lambda y, t: F.cosine_embedding_loss(y, t, torch.ones(len(y))),
    "soft margin": lambda y, t: F.soft_margin_loss(y, t.sign()),
    "multi-label": lambda y, t: F.multilabel_soft_margin_loss(y, (t > 0).float()),
    "hinge": lambda y, t: F.hinge_embedding_loss(y, t.sign()),
    "margin ranking": lambda y, t: F.margin_ranking_loss(y[:, 0], y[:, 1], t[:, 0].sign(), margin=0.2),
}.items():
    case(f"loss, {_name}")(lambda _loss=_loss: (mlp(), _loss, lambda: (torch.randn(8, 16), torch.randn(8, 10))))
case("loss, label smoothing and weights")(
    lambda: (mlp(), lambda y, t: F.cross_entropy(y, t, torch.linspace(0.5, 1.5, 10), label_smoothing=0.1), vectors(8, 16, 10))
)
case("loss, classes ignored")(lambda: (mlp(), lambda y, t: F.cross_entropy(y, t, ignore_index=3), vectors(16, 16, 10)))


@case("loss, focal")
def _() -> Any:
    def focal(y: Tensor, t: Tensor) -> Tensor:
        hot = F.one_hot(t, 10).float()
        p = torch.sigmoid(y)
        each = F.binary_cross_entropy_with_logits(y, hot, reduction="none")
        return (each * (1 - (p * hot + (1 - p) * (1 - hot))) ** 2).sum() / len(y)

    return mlp(), focal, vectors(8, 16, 10)


class Sounds(nn.Module):
    """Convolutions over samples, then frames."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.ears = nn.Sequential(nn.Conv1d(1, 8, 10, stride=5), nn.GroupNorm(8, 8), nn.GELU(), nn.Conv1d(8, 16, 3, stride=2), nn.GELU())
        self.places = nn.Conv1d(16, 16, 5, padding=2, groups=4)
        self.block, self.head = Block(16, 2, False), nn.Linear(16, classes)

    def forward(self, samples: Tensor) -> Tensor:
        x = self.ears(samples[:, None])
        x = (x + F.gelu(self.places(x))).transpose(1, 2)
        return self.head(self.block(x))


@case("speech, CTC")
def _() -> Any:
    def ctc(scores: Tensor, target: Tensor) -> Tensor:
        frames = scores.log_softmax(-1).transpose(0, 1)
        return F.ctc_loss(frames, target, torch.full((2,), frames.shape[0]), torch.full((2,), target.shape[1]))

    return Sounds(12), ctc, lambda: (torch.randn(2, 160), torch.randint(1, 12, (2, 4)))


@case("triplets")
def _() -> Any:
    class Embed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = matrices()

        def forward(self, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
            return F.triplet_margin_loss(self.net(a), self.net(b), self.net(c), margin=2.0)

    return Embed(), None, lambda: tuple(torch.randn(3, 6, 16))


@case("policy, PPO")
def _() -> Any:
    class Policy(nn.Module):
        """The clipped objective, a value and an entropy, over the collected samples."""

        def __init__(self) -> None:
            super().__init__()
            self.body, self.act, self.value = nn.Sequential(nn.Linear(6, 16), nn.Tanh()), nn.Linear(16, 4), nn.Linear(16, 1)

        def forward(self, seen: Tensor, action: Tensor, old: Tensor, gain: Tensor, reward: Tensor) -> dict[str, Tensor]:
            x = self.body(seen)
            chances = torch.distributions.Categorical(logits=self.act(x), validate_args=False)
            ratio = (chances.log_prob(action) - old).exp()
            gain = (gain - gain.mean()) / (gain.std() + 1e-6)
            won = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
            entropy = chances.entropy().mean()
            return {"loss": -won + 0.5 * F.mse_loss(self.value(x).squeeze(-1), reward) - 0.01 * entropy, "entropy": entropy}

    batch = lambda: (torch.randn(12, 6), torch.randint(0, 4, (12,)), -torch.rand(12) - 1, torch.randn(12), torch.randn(12))  # noqa: E731
    return Policy(), None, batch


@case("values, DQN")
def _() -> Any:
    class Values(nn.Module):
        """The error of values against those of a network that is not trained, which chooses by the trained one."""

        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4))
            self.old = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 4)).requires_grad_(False)

        def forward(self, seen: Tensor, action: Tensor, reward: Tensor, then: Tensor, over: Tensor) -> Tensor:
            q = self.net(seen).gather(1, action[:, None]).squeeze(1)
            with torch.no_grad():
                best = self.net(then).argmax(1, keepdim=True)
                wanted = reward + 0.99 * (1 - over) * self.old(then).gather(1, best).squeeze(1)
            return F.smooth_l1_loss(q, wanted)

    batch = lambda: (torch.randn(9, 6), torch.randint(0, 4, (9,)), torch.randn(9), torch.randn(9, 6), torch.rand(9).round())  # noqa: E731
    return Values(), None, batch


@case("actor, SAC")
def _() -> Any:
    class Actor(nn.Module):
        """A Gaussian through tanh, with noise from outside, against two critics that are not trained."""

        def __init__(self) -> None:
            super().__init__()
            self.body, self.mean, self.spread = nn.Sequential(nn.Linear(6, 16), nn.ELU()), nn.Linear(16, 2), nn.Linear(16, 2)
            self.q1, self.q2 = (nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)).requires_grad_(False) for _ in range(2))

        def forward(self, seen: Tensor, noise: Tensor) -> Tensor:
            x = self.body(seen)
            mean, spread = self.mean(x), self.spread(x).clamp(-5, 2)
            raw = mean + spread.exp() * noise
            log = (-0.5 * noise**2 - spread - 0.5 * math.log(2 * math.pi) - 2 * (math.log(2.0) - raw - F.softplus(-2 * raw))).sum(-1)
            both = torch.cat([seen, torch.tanh(raw)], -1)
            return (0.2 * log - torch.minimum(self.q1(both), self.q2(both)).squeeze(-1)).mean()

    return Actor(), None, lambda: (torch.randn(7, 6), torch.randn(7, 2))


# Generators.


class Generator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.ConvTranspose2d(8, 16, 4, bias=False), nn.BatchNorm2d(16), nn.SiLU(),
            nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1, bias=False), nn.BatchNorm2d(8),
            nn.SiLU(), nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, z: Tensor) -> Tensor:
        return self.net(z[..., None, None])


def critic() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 4, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(8, 16, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(256, 1),
    )  # fmt: skip


class Adversaries(nn.Module):
    """A generator and a critic, of which one is trained."""

    def __init__(self, trained: str) -> None:
        super().__init__()
        self.generator, self.critic, self.trained = Generator(), critic(), trained
        (self.critic if trained == "generator" else self.generator).requires_grad_(False)

    def forward(self, z: Tensor, real: Tensor) -> Tensor:
        false = self.generator(z)
        if self.trained == "generator":
            return F.softplus(-self.critic(false)).mean()
        return (F.softplus(self.critic(false.detach())) + F.softplus(-self.critic(real))).mean()


for _name in ("generator", "critic"):
    case(f"GAN, {_name}")(lambda _name=_name: (Adversaries(_name), None, lambda: (torch.randn(4, 8), torch.randn(4, 3, 16, 16))))


class Modulated(nn.Module):
    """A convolution whose weights are scaled by a style, each image by its own, as groups; then a blur."""

    def __init__(self, inside: int, outside: int, up: bool) -> None:
        super().__init__()
        self.weight, self.style, self.up = nn.Parameter(torch.randn(outside, inside, 3, 3) / 8), nn.Linear(8, inside), up
        self.noise, self.bias = nn.Parameter(torch.tensor(0.1)), nn.Parameter(torch.zeros(outside))
        self.register_buffer("blur", torch.tensor([1.0, 2.0, 1.0])[:, None] * torch.tensor([1.0, 2.0, 1.0]) / 16)

    def forward(self, x: Tensor, w: Tensor, noise: Tensor) -> Tensor:
        n, c, h, _ = x.shape
        kernel = self.weight[None] * (1 + self.style(w))[:, None, :, None, None]
        kernel = kernel * torch.rsqrt(kernel.square().sum([2, 3, 4], keepdim=True) + 1e-8)
        if self.up:
            x, h = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False), 2 * h
        y = F.conv2d(x.reshape(1, n * c, h, h), kernel.reshape(-1, c, 3, 3), padding=1, groups=n).reshape(n, -1, h, h)
        out = y.shape[1]
        y = F.conv2d(F.pad(y, [1, 1, 1, 1], mode="reflect"), self.blur.expand(out, 1, 3, 3), groups=out)
        return F.leaky_relu(y + self.noise * noise[:, :, :h, :h] + self.bias[:, None, None], 0.2) * math.sqrt(2)


@case("StyleGAN, generator")
def _() -> Any:
    class Style(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Sequential(nn.Linear(8, 8), nn.LeakyReLU(0.2), nn.Linear(8, 8), nn.LeakyReLU(0.2))
            self.constant = nn.Parameter(torch.randn(1, 8, 4, 4))
            self.a, self.b, self.rgb = Modulated(8, 8, False), Modulated(8, 6, True), nn.Conv2d(6, 3, 1)
            self.critic = critic().requires_grad_(False)

        def forward(self, z: Tensor, noise: Tensor) -> Tensor:
            w = self.map(z * torch.rsqrt(z.square().mean(1, keepdim=True) + 1e-8))
            x = self.a(self.constant.expand(z.shape[0], -1, -1, -1), w, noise)
            image = F.interpolate(self.rgb(self.b(x, w, noise)), scale_factor=2)
            return F.softplus(-self.critic(image)).mean()

    return Style(), None, lambda: (torch.randn(3, 8), torch.randn(3, 1, 8, 8))


@case("VAE")
def _() -> Any:
    class Variational(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ELU(), nn.Flatten(), nn.Linear(8 * 36, 8))
            self.decode = nn.Sequential(
                nn.Linear(4, 8 * 36), nn.ELU(), nn.Unflatten(1, (8, 6, 6)), nn.ConvTranspose2d(8, 1, 3, stride=2, padding=1, output_padding=1)
            )

        def forward(self, x: Tensor, noise: Tensor) -> Tensor:
            mean, log = self.encode(x).chunk(2, 1)
            y = self.decode(mean + (0.5 * log).exp() * noise)
            kl = -0.5 * (1 + log - mean**2 - log.exp()).sum(1).mean()
            return F.binary_cross_entropy_with_logits(y, x, reduction="none").sum([1, 2, 3]).mean() + kl

    return Variational(), None, lambda: (torch.rand(3, 1, 12, 12), torch.randn(3, 4))


@case("VQ-VAE")
def _() -> Any:
    class Quantized(nn.Module):
        """The nearest code by distances, and a gradient straight through."""

        def __init__(self) -> None:
            super().__init__()
            self.encode, self.codes, self.decode = nn.Linear(8, 4), nn.Embedding(6, 4), nn.Linear(4, 8)

        def forward(self, x: Tensor) -> Tensor:
            z = self.encode(x)
            nearest = torch.cdist(z, self.codes.weight).argmin(-1)
            q = self.codes(nearest)
            loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
            return loss + F.mse_loss(self.decode(z + (q - z).detach()), x)

    return Quantized(), None, lambda: (torch.randn(10, 8),)


@case("normalizing flow")
def _() -> Any:
    class Flow(nn.Module):
        """Affine couplings and a matrix whose determinant counts."""

        def __init__(self) -> None:
            super().__init__()
            self.nets = nn.ModuleList(nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 6)) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            total = torch.zeros(x.shape[0])
            for net in self.nets:
                a, b = x.chunk(2, 1)
                shift, scale = net(a).chunk(2, 1)
                scale = torch.tanh(scale)
                x, total = torch.cat([b * scale.exp() + shift, a], 1), total + scale.sum(1)
            return (0.5 * x.square().sum(1) - total).mean()

    return Flow(), None, lambda: (torch.randn(9, 6),)


@case("diffusion, noise predicted")
def _() -> Any:
    class Denoiser(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.time, self.a, self.b = nn.Linear(16, 8), nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)
            self.norm = nn.GroupNorm(4, 8)
            self.register_buffer("kept", torch.cumprod(1 - torch.linspace(1e-3, 0.2, 20), 0))

        def forward(self, x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
            a = self.kept[t][:, None, None, None]
            x = a.sqrt() * x + (1 - a).sqrt() * noise
            waves = t[:, None] * torch.exp(-math.log(1e4) * torch.arange(8) / 8)
            h = self.a(x) + self.time(torch.cat([waves.sin(), waves.cos()], 1))[:, :, None, None]
            return F.mse_loss(self.b(F.silu(self.norm(h))), noise)

    return Denoiser(), None, lambda: (torch.randn(3, 3, 8, 8), torch.randint(0, 20, (3,)), torch.randn(3, 3, 8, 8))


# Learning without labels.


@case("masked autoencoder")
def _() -> Any:
    class Masked(nn.Module):
        """Encodes a quarter of the patches, chosen by noise from outside, and predicts the others."""

        def __init__(self) -> None:
            super().__init__()
            self.patch, self.place = nn.Linear(12, 16), nn.Parameter(torch.randn(1, 16, 16) * 0.02)
            self.encode, self.decode = Block(16, 2, False), Block(16, 2, False)
            self.mask, self.head = nn.Parameter(torch.zeros(1, 1, 16)), nn.Linear(16, 12)

        def forward(self, image: Tensor, noise: Tensor) -> Tensor:
            n = image.shape[0]
            patches = image.reshape(n, 3, 4, 2, 4, 2).permute(0, 2, 4, 3, 5, 1).reshape(n, 16, 12)
            order = noise.argsort(1)
            back, kept = order.argsort(1), order[:, :4]
            x = self.patch(patches) + self.place
            x = self.encode(x.gather(1, kept[..., None].expand(-1, -1, 16)))
            x = torch.cat([x, self.mask.expand(n, 12, -1)], 1).gather(1, back[..., None].expand(-1, -1, 16)) + self.place
            hidden = (back >= 4).float()
            return ((self.head(self.decode(x)) - patches).square().mean(-1) * hidden).sum() / hidden.sum()

    return Masked(), None, lambda: (torch.randn(2, 3, 8, 8), torch.rand(2, 16))


@case("distillation, BYOL")
def _() -> Any:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.online, self.target = mlp(), mlp().requires_grad_(False)
            self.predict = nn.Linear(10, 10)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            with torch.no_grad():
                wanted = F.normalize(self.target(b), dim=-1)
            return (2 - 2 * F.cosine_similarity(self.predict(self.online(a)), wanted)).mean()

    return Twice(), None, lambda: (torch.randn(6, 16), torch.randn(6, 16))


@case("Barlow twins", sgd)
def _() -> Any:
    class Twins(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.norm = matrices(), nn.BatchNorm1d(10, affine=False)

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            c = self.norm(self.net(a)).T @ self.norm(self.net(b)) / a.shape[0]
            on = torch.diagonal(c).sub(1).square().sum()
            return on + 0.005 * (c.square().sum() - torch.diagonal(c).square().sum())

    return Twins(), None, lambda: (torch.randn(12, 16), torch.randn(12, 16))


# Fields and equations.


@case("SIREN")
def _() -> Any:
    class Sines(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 16), nn.Linear(16, 16), nn.Linear(16, 3)])

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers[:-1]:
                x = torch.sin(5 * layer(x))
            return self.layers[-1](x)

    return Sines(), F.mse_loss, lambda: (torch.rand(20, 2), torch.rand(20, 3))


@case("heat equation, second derivatives")
def _() -> Any:
    class Heat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))

        def forward(self, x: Tensor, t: Tensor) -> Tensor:
            x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
            u = self.net(torch.stack([x, t], -1)).squeeze(-1)
            ux, ut = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
            (uxx,) = torch.autograd.grad(ux.sum(), x, create_graph=True)
            return (ut - 0.1 * uxx).square().mean() + (u - torch.sin(3 * x)).square().mean()

    return Heat(), None, lambda: (torch.rand(10), torch.rand(10))


@case("neural ODE, Runge-Kutta")
def _() -> Any:
    class Flowing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.f = nn.Sequential(nn.Linear(4, 16), nn.Softplus(), nn.Linear(16, 4))

        def forward(self, x: Tensor) -> Tensor:
            h = 0.25
            for _ in range(4):
                a = self.f(x)
                b = self.f(x + h / 2 * a)
                c = self.f(x + h / 2 * b)
                x = x + h / 6 * (a + 2 * b + 2 * c + self.f(x + h * c))
            return x

    return Flowing(), F.mse_loss, lambda: (torch.randn(6, 4), torch.randn(6, 4))


@case("Fourier operator")
def _() -> Any:
    class Spectral(nn.Module):
        """The first frequencies by a matrix of cosines and sines: graphs have no complex numbers."""

        def __init__(self) -> None:
            super().__init__()
            k, x = torch.arange(4.0)[:, None], torch.arange(16.0) * (2 * math.pi / 16)
            self.register_buffer("waves", torch.cat([(k * x).cos(), (k * x).sin()]) / 4)
            self.mix, self.skip, self.head = nn.Parameter(torch.randn(8, 6, 6) * 0.2), nn.Conv1d(6, 6, 1), nn.Conv1d(6, 1, 1)
            self.lift = nn.Conv1d(1, 6, 1)

        def forward(self, x: Tensor) -> Tensor:
            x = self.lift(x)
            y = torch.einsum("bcx,kx,kcd,ky->bdy", x, self.waves, self.mix, self.waves)
            return self.head(F.gelu(y + self.skip(x)))

    return Spectral(), F.mse_loss, lambda: (torch.randn(3, 1, 16), torch.randn(3, 1, 16))


@case("Fourier operator, torch.fft")
def _() -> Any:
    class Spectral(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.Parameter(torch.randn(9) * 0.2)

        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.irfft(torch.fft.rfft(x) * self.mix, 16)

    return Spectral(), F.mse_loss, lambda: (torch.randn(3, 16), torch.randn(3, 16))


# Points, graphs, sets.


@case("PointNet")
def _() -> Any:
    class Points(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.each, self.head = nn.Sequential(nn.Conv1d(3, 16, 1), nn.SiLU(), nn.Conv1d(16, 32, 1)), nn.Linear(32, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.each(x.transpose(1, 2)).max(-1).values)

    return Points(), F.cross_entropy, lambda: (torch.randn(4, 20, 3), torch.randint(0, 4, (4,)))


@case("graph attention")
def _() -> Any:
    class Attending(nn.Module):
        """Softmax over the edges into each node, by the largest and the sum of a scatter."""

        def __init__(self) -> None:
            super().__init__()
            self.lift, self.a, self.head = nn.Linear(6, 8), nn.Linear(16, 1), nn.Linear(8, 3)

        def forward(self, nodes: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
            h = self.lift(nodes)
            e = F.leaky_relu(self.a(torch.cat([h[sources], h[targets]], 1)).squeeze(1), 0.2)
            top = torch.full((nodes.shape[0],), -1e9).scatter_reduce(0, targets, e.detach(), "amax")
            e = (e - top[targets]).exp()
            total = torch.zeros(nodes.shape[0]).index_add(0, targets, e)
            weight = e / (total[targets] + 1e-9)
            return self.head(F.elu(torch.zeros_like(h).index_add(0, targets, weight[:, None] * h[sources])))

    def batch() -> Any:
        return torch.randn(10, 6), torch.randint(0, 10, (25,)), torch.randint(0, 10, (25,)), torch.randint(0, 3, (10,))

    return Attending(), F.cross_entropy, batch


@case("recommender, DLRM")
def _() -> Any:
    class Crossing(nn.Module):
        """Products of all pairs of embeddings."""

        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(20, 8) for _ in range(3))
            self.dense, self.top = nn.Sequential(nn.Linear(5, 8), nn.ReLU()), nn.Sequential(nn.Linear(14, 8), nn.ReLU(), nn.Linear(8, 1))

        def forward(self, dense: Tensor, ids: Tensor) -> Tensor:
            d = self.dense(dense)
            all_ = torch.stack([d, *(t(ids[:, k]) for k, t in enumerate(self.tables))], 1)
            rows, columns = torch.tril_indices(4, 4, -1)
            pairs = (all_ @ all_.transpose(1, 2))[:, rows, columns]
            return self.top(torch.cat([d, pairs], 1)).squeeze(1)

    return Crossing(), F.binary_cross_entropy_with_logits, lambda: (
        torch.randn(6, 5), torch.randint(0, 20, (6, 3)), torch.rand(6).round(),
    )  # fmt: skip


# Layers that are rare.


@case("ResNet, GroupNorm", sgd)
def _() -> Any:
    class Residual(nn.Module):
        def __init__(self, c: int) -> None:
            super().__init__()
            self.a, self.b = nn.Conv2d(c, c, 3, padding=1, bias=False), nn.Conv2d(c, c, 3, padding=1, bias=False)
            self.na, self.nb = nn.GroupNorm(4, c), nn.GroupNorm(4, c)

        def forward(self, x: Tensor) -> Tensor:
            return F.silu(x + self.nb(self.b(F.silu(self.na(self.a(x))))))

    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), Residual(16), nn.Conv2d(16, 32, 3, stride=2, padding=1), Residual(32), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    return model, F.cross_entropy, images(4, 16, 10)


@case("WaveNet, weight normalization")
def _() -> Any:
    class Wave(nn.Module):
        """Causal convolutions that reach further by each layer."""

        def __init__(self) -> None:
            super().__init__()
            norm = torch.nn.utils.parametrizations.weight_norm
            self.first, self.last = nn.Conv1d(1, 8, 1), nn.Conv1d(8, 16, 1)
            self.gates = nn.ModuleList(norm(nn.Conv1d(8, 16, 2, dilation=2**k)) for k in range(3))

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            for k, gate in enumerate(self.gates):
                x = x + F.glu(gate(F.pad(x, [2**k, 0])), 1)
            return self.last(x)

    return Wave(), F.cross_entropy, lambda: (torch.randn(2, 1, 20), torch.randint(0, 16, (2, 20)))


@case("spatial transformer, grid_sample")
def _() -> Any:
    class Spatial(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.place, self.head = nn.Linear(3 * 64, 6), nn.Linear(3 * 64, 4)
            nn.init.normal_(self.place.weight, std=0.01)
            self.place.bias.data = torch.tensor([0.9, 0.1, 0, -0.1, 0.9, 0])

        def forward(self, x: Tensor) -> Tensor:
            grid = F.affine_grid(self.place(x.flatten(1)).reshape(-1, 2, 3), list(x.shape), align_corners=False)
            return self.head(F.grid_sample(x, grid, align_corners=False).flatten(1))

    return Spatial(), F.cross_entropy, lambda: (torch.randn(3, 3, 8, 8), torch.randint(0, 4, (3,)))


@case("adaptive pools and pixel shuffle")
def _() -> Any:
    class Pools(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.head = nn.Conv2d(3, 16, 3, padding=1), nn.Linear(4 * 25 + 16 * 9 + 16 * 4, 5)

        def forward(self, x: Tensor) -> Tensor:
            x = self.a(x)
            shuffled = F.adaptive_avg_pool2d(F.pixel_shuffle(x, 2), (5, 5))
            return self.head(torch.cat([y.flatten(1) for y in (shuffled, F.adaptive_max_pool2d(x, (3, 3)), F.lp_pool2d(x.abs() + 0.1, 2, 4))], 1))

    return Pools(), F.cross_entropy, images(3, 8, 5)


@case("volume rendering, cumprod")
def _() -> Any:
    class Volume(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, 4))

        def forward(self, points: Tensor) -> Tensor:
            y = self.net(points)
            alpha = 1 - torch.exp(-F.softplus(y[..., :1]))
            through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-7], 1), 1)[:, :-1]
            return (torch.sigmoid(y[..., 1:]) * alpha * through).sum(1)

    return Volume(), F.mse_loss, lambda: (torch.rand(6, 8, 3), torch.rand(6, 3))


@case("detection, pyramid of features", slow_sgd)
def _() -> Any:
    class Detector(nn.Module):
        """Three scales, each summed with the coarser one; classes by focal loss, boxes by smooth L1 and overlap."""

        def __init__(self) -> None:
            super().__init__()
            widths = (8, 16, 24)
            self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
            self.down = nn.ModuleList(nn.Conv2d(a, b, 3, stride=2, padding=1) for a, b in zip((8, *widths), widths))
            self.side = nn.ModuleList(nn.Conv2d(c, 8, 1) for c in widths)
            self.smooth = nn.ModuleList(nn.Conv2d(8, 8, 3, padding=1) for _ in widths)
            self.score, self.box = nn.Conv2d(8, 3 * 4, 3, padding=1), nn.Conv2d(8, 3 * 4, 3, padding=1)

        def forward(self, image: Tensor, labels: Tensor, boxes: Tensor) -> Tensor:
            x, found = self.stem(image), []
            for down in self.down:
                x = F.silu(down(x))
                found.append(x)
            top, levels = None, []
            for x, side, smooth in list(zip(found, self.side, self.smooth))[::-1]:
                y = side(x)
                top = y if top is None else y + F.interpolate(top, size=y.shape[-2:], mode="nearest")
                levels.append(smooth(top))
            flat = lambda head: torch.cat([head(v).permute(0, 2, 3, 1).reshape(v.shape[0], -1, 4) for v in levels], 1)  # noqa: E731
            scores, given = flat(self.score), flat(self.box)
            hot = F.one_hot(labels, 5)[..., 1:].float()
            p = torch.sigmoid(scores)
            each = F.binary_cross_entropy_with_logits(scores, hot, reduction="none")
            focal = (each * (1 - (p * hot + (1 - p) * (1 - hot))) ** 2).sum()
            some = (labels > 0).float()
            a, b = F.softplus(given), boxes
            inter = torch.minimum(a[..., :2], b[..., :2]).sum(-1) * torch.minimum(a[..., 2:], b[..., 2:]).sum(-1)
            area = [v[..., :2].sum(-1) * v[..., 2:].sum(-1) for v in (a, b)]
            overlap = 1 - inter / (area[0] + area[1] - inter)
            near = F.smooth_l1_loss(given, boxes, reduction="none", beta=0.1).sum(-1)
            return (focal + ((overlap + near) * some).sum()) / some.sum().clamp(min=1)

    places = 3 * (8 * 8 + 4 * 4 + 2 * 2)
    return Detector(), None, lambda: (torch.randn(2, 3, 32, 32), torch.randint(0, 5, (2, places)), torch.rand(2, places, 4) + 0.1)


@case("DETR, queries")
def _() -> Any:
    layer = nn.TransformerDecoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    class Queries(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch, self.decode = nn.Conv2d(3, 16, 4, stride=4), nn.TransformerDecoder(layer, 2)
            self.queries, self.box = nn.Parameter(torch.randn(1, 5, 16)), nn.Linear(16, 4)

        def forward(self, x: Tensor) -> Tensor:
            memory = self.patch(x).flatten(2).transpose(1, 2)
            return torch.sigmoid(self.box(self.decode(self.queries.expand(x.shape[0], -1, -1), memory)))

    return Queries(), F.l1_loss, lambda: (torch.randn(2, 3, 16, 16), torch.rand(2, 5, 4))
