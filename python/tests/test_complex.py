"""Complex numbers, which a graph has as pairs, and Fourier transforms, against PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from lmsc.torch import CaptureError, TrainStep, export_step
from test_operators import Learned, compare_with_pytorch
from torch import Tensor, nn


def of(x: Tensor) -> Tensor:
    """Complex numbers whose parts differ."""
    return torch.complex(x, 0.5 - x.flip(0))


def rotary(x: Tensor) -> Tensor:
    """Rotary positions as Llama's first code has them."""
    angles = torch.outer(torch.arange(5).float(), 1 / 100 ** (torch.arange(0, 8, 2).float() / 8))
    turns = torch.polar(torch.ones_like(angles), angles).view(1, 5, 1, 4)
    return torch.view_as_real(torch.view_as_complex(x.reshape(2, 5, 3, 4, 2)) * turns).flatten(3)


def written(x: Tensor) -> Tensor:
    z = of(x) * 1
    z[1:].mul_(of(x)[1:])
    z[:, 0] = 0
    z.real.mul_(2)
    z += x
    return torch.view_as_real(z.t())


def fourier_layer(x: Tensor) -> Tensor:
    """A layer of a Fourier neural operator: few frequencies, mixed by channels."""
    frequencies = torch.fft.rfft(x)
    weight = torch.view_as_complex(torch.linspace(-1, 1.5, 90).reshape(3, 3, 5, 2))
    out = torch.zeros(2, 3, 9, dtype=torch.cfloat)
    out[:, :, :5] = torch.einsum("bix,iox->box", frequencies[:, :, :5], weight)
    return torch.fft.irfft(out, n=16)


def spectrum(x: Tensor) -> Tensor:
    return torch.stft(x, 16, 4, window=torch.hann_window(16), return_complex=True).abs()


def there_and_back(x: Tensor, length: int | None = None, win_length: int = 16, **options: Any) -> Tensor:
    window = torch.hann_window(win_length) + 0.1
    frames = torch.stft(x, 16, 4, win_length, window, return_complex=True, **options)
    return torch.istft(frames * (1 + 0.5j), 16, 4, win_length, window, length=length, **options)


real = torch.view_as_real
FUNCTIONS: dict[str, tuple[tuple[int, ...], Callable[[Tensor], Tensor]]] = {
    "there and back": ((8,), lambda x: torch.fft.irfft(torch.fft.rfft(x), 8)),
    "real transform": ((3, 9), lambda x: torch.fft.rfft(x).abs()),
    "phases": ((3, 9), lambda x: torch.fft.rfft(x).angle().sin()),
    "two dimensions": ((2, 6, 10), lambda x: torch.fft.fft2(x).real),
    "by factors": ((2, 300), lambda x: torch.fft.fft(x).imag),
    "a prime length": ((1, 211), lambda x: torch.fft.fft(x, norm="ortho").imag),
    "a length of 4 times a prime": ((1, 524), lambda x: torch.fft.fft(x, norm="ortho").imag),
    "all dimensions": ((2, 3, 4, 5), lambda x: torch.fft.ifftn(torch.fft.fftn(x, norm="forward") * 1j).imag),
    "correlation": ((2, 2, 8, 8), lambda x: torch.fft.irfft2(torch.fft.rfft2(x, norm="ortho") * torch.fft.rfft2(x.flip(1)).conj(), s=(8, 8))),
    "an odd length": ((2, 9), lambda x: torch.fft.irfft(torch.fft.rfft(x), n=9)),
    "fewer results": ((2, 10), lambda x: torch.fft.irfft(torch.fft.rfft(x), n=6)),
    "more results": ((2, 10), lambda x: torch.fft.irfft(torch.fft.rfft(x, n=12), n=16)),
    "Hermitian": ((2, 10), lambda x: torch.fft.hfft(torch.fft.ihfft(x))),
    "shifted": ((2, 10), lambda x: torch.fft.fftshift(torch.fft.fft(x)).real),
    "frames": ((2, 100), spectrum),
    "frames and back": ((2, 128), lambda x: there_and_back(x, center=True)),
    "frames and back, of a length": ((100,), lambda x: there_and_back(x, length=90, normalized=True, win_length=12)),
    "frames and back, padded": ((2, 64), lambda x: there_and_back(x, length=80)),
    "rotary": ((2, 5, 3, 8), rotary),
    "polar": ((2, 5), lambda x: real(torch.polar(x.abs(), x * 3) * torch.polar(x.abs(), x).conj())),
    "quotients": ((4, 6), lambda x: real(of(x) / (of(x) + 3) + 2 / (of(x) + 3) + of(x) / (x.abs() + 1) - 1j * of(x))),
    "exponentials": ((4, 6), lambda x: real(of(x).exp())),
    "logarithms": ((4, 4), lambda x: real(of(x).log())),
    "powers": ((4, 4), lambda x: real(of(x) ** 3 + of(x).square())),
    "roots": ((4, 4), lambda x: real(of(x).sqrt())),
    "signs": ((3, 4), lambda x: real(of(x).sgn())),
    "lengths": ((3, 4), lambda x: of(x).abs() + torch.complex(x * 0, x * 0).abs()),
    "products of matrices": ((4, 4), lambda x: (of(x) @ of(x).mT + of(x) @ torch.ones(4, dtype=torch.cfloat)).abs()),
    "sums": ((3, 4), lambda x: real(of(x).sum(0) * of(x).mean(-1, keepdim=True) + of(x).cumsum(0) + of(x).sum())),
    "joined and taken apart": ((3, 4), lambda x: real(torch.cat([of(x), of(x) * 2], -1)[:, [0, 3, 5]] * torch.stack([of(x)] * 2)[0, :, :3])),
    "moved": ((2, 3, 4), lambda x: real(of(x).permute(2, 0, 1).reshape(4, 6).unsqueeze(-1).expand(4, 6, 2).flip(0).roll(1, 1).transpose(0, -1))),
    "chosen": ((3, 4), lambda x: real(torch.where(x > 0, of(x), of(x) * x).masked_fill(x > 1, 0))),
    "filled": ((3, 4), lambda x: real(of(x) * torch.full((4,), 1 + 2j) + torch.ones_like(of(x)) + torch.zeros(3, 1, dtype=torch.cfloat))),
    "beside a number in double precision": ((3, 4), lambda x: real(of(x) * torch.tensor(0.1, dtype=torch.float64))),
    "double precision": ((3, 4), lambda x: real((of(x.double()) * of(x.double()).conj()).to(torch.cfloat))),
    "written": ((4, 6), written),
    "conjugates": ((3, 4), lambda x: real((of(x).conj() * of(x)).conj().resolve_conj() + of(x).mH.t())),
    "a layer of frequencies": ((2, 3, 16), fourier_layer),
}  # fmt: skip


@pytest.mark.parametrize("standard", [False, True], ids=["compact", "standard"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gradient_is_that_of_pytorch(name: str, standard: bool) -> None:
    compare_with_pytorch(*FUNCTIONS[name], standard)


class Turned(nn.Module):
    """Complex numbers in a buffer, and in an attribute that is none."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(6, 6)
        self.register_buffer("turn", torch.polar(torch.ones(3), torch.tensor([0.1, 0.5, 2.0])))
        self.other = torch.polar(torch.ones(3), torch.tensor([0.3, -0.5, 1.0])).conj()

    def forward(self, x: Tensor) -> Tensor:
        y = torch.view_as_complex(self.line(x).view(-1, 3, 2)) * self.turn * self.other
        return torch.view_as_real(y).square().flatten(1).cumsum(1).mean()


def test_constants_may_be_complex() -> None:
    torch.manual_seed(0)
    model, x = Turned(), torch.randn(4, 6)
    step = TrainStep(model, None, torch.optim.SGD(model.parameters(), lr=0.1), example=(x,))
    other = Turned()
    other.load_state_dict(model.state_dict())
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = other(x)
        loss.backward()
        optimizer.step()
        torch.testing.assert_close(torch.as_tensor(step(x)), loss.detach())
    step.sync()
    torch.testing.assert_close(model.line.weight, other.line.weight)
    torch.testing.assert_close(model.turn, other.turn)
    model.turn.mul_(1j)
    with pytest.raises(CaptureError, match="`turn` is .*complex64"):
        step(x)


def conjugated(x: Tensor) -> Tensor:
    z = of(x) * 1
    y = z.conj()
    z.mul_(2)
    return real(y * 1)


def through_a_conjugate(x: Tensor) -> Tensor:
    z = of(x) * 1
    z.conj().mul_(2j)
    return real(z * 1)


def through_an_imaginary_part(x: Tensor) -> Tensor:
    z = of(x) * 1
    z.conj().imag.add_(1)
    return real(z * 1)


class Kept(nn.Module):
    """Complex numbers that the step changes."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.register_buffer("z", torch.ones(3, dtype=torch.cfloat))

    def forward(self, scale: Tensor) -> Tensor:
        self.z = self.z * 1j
        return (self.z.real * self.w * scale).sum()


@pytest.mark.parametrize(("model", "words"), [
    (Learned((3, 3), lambda x: torch.linalg.eigvals(x).abs()), "linalg_eig"),
    (Learned((1, 2053), lambda x: torch.fft.fft(x).real), "no factors"),
    (Learned((3, 3), conjugated), "beside their conjugate"),
    (Learned((3, 3), through_a_conjugate), "into a conjugate"),
    (Learned((3, 3), through_an_imaginary_part), "into a conjugate"),
    (Kept(), "z_new`, which the step computes, is complex"),
], ids=["eigenvalues", "a long prime", "a conjugate that changes", "a write into a conjugate", "into its imaginary part", "a state"])  # fmt: skip
def test_others_are_refused_by_name(model: nn.Module, words: str) -> None:
    with pytest.raises(CaptureError, match=words):
        export_step(model, None, torch.optim.SGD(model.parameters()), (torch.ones(()),))


def test_a_complex_result_is_refused() -> None:
    class Results(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))

        def forward(self, x: Tensor) -> Any:
            return self.w.sum() * x, torch.fft.fft(self.w)

    model = Results()
    with pytest.raises(CaptureError, match="which the step computes, is complex"):
        export_step(model, None, torch.optim.SGD(model.parameters()), (torch.ones(()),))
