"""What functions make of NaN and infinity is what PyTorch makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lmsc
import pytest
import torch
from lmsc.torch import TrainStep
from torch import Tensor, nn
from torch.nn import functional as F

NAN, INF = float("nan"), float("inf")
ROWS = torch.tensor([[NAN, 1.0, 2.0, 3.0], [INF, 1.0, -1.0, 0.0], [1.0, -INF, 2.0, 0.5], [0.0, -0.0, 1.0, -2.0]])
BOUNDARIES = torch.tensor([-1.0, 0.0, 1.0])

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sign": torch.sign,
    "sgn": torch.sgn,
    "length": lambda x: torch.hypot(x, x.flip(0)),
    "places": lambda x: torch.searchsorted(BOUNDARIES, x).float(),
    "places, right": lambda x: torch.bucketize(x, BOUNDARIES, right=True).float(),
    "layer normalization": lambda x: F.layer_norm(x, (4,)),
    "instance normalization": lambda x: F.instance_norm(x[None]),
    "group normalization": lambda x: F.group_norm(x, 2),
    "root mean square": lambda x: F.rms_norm(x, (4,)),
    "softmax": lambda x: x.softmax(-1),
    "logarithm of softmax": lambda x: x.log_softmax(-1),
    "relu": F.relu,
    "clamp": lambda x: x.clamp(-1, 1),
    "largest": lambda x: x.amax(-1),
    "smallest": lambda x: x.min(-1).values,
    "of two the larger": lambda x: torch.maximum(x, x.flip(0)),
    "sum": lambda x: x.sum(-1),
    "cumulative sum": lambda x: x.cumsum(-1),
    "variance": lambda x: x.var(-1),
    "norm": lambda x: x.norm(dim=-1),
    "without": lambda x: x.nan_to_num(0.5, 3.0, -3.0),
    "gelu": F.gelu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "floor": torch.floor,
    "exponential less 1": torch.expm1,
    "logarithm of 1 more": lambda x: (x * x).log1p(),
    "power": lambda x: x.pow(2),
    "where": lambda x: torch.where(x > 0, x, -x),
    "greater": lambda x: (x > x.flip(0)).float(),
    "arc tangent": lambda x: torch.atan2(x, x.flip(0)),
    "remainder": lambda x: x.remainder(2.0),
    "place of the largest": lambda x: x.flip(-1).argmax(-1).float(),
    "place of the smallest": lambda x: x.flip(-1).min(-1).indices.float(),
    "largest of all": lambda x: x.flip(0).flip(1).argmax().float(),
}


class Seen(nn.Module):
    """Its loss does not see the values, which stay in a buffer."""

    def __init__(self, function: Callable[[Tensor], Tensor], wanted: Tensor):
        super().__init__()
        self.function, self.w = function, nn.Parameter(torch.ones(1))
        self.register_buffer("seen", torch.zeros_like(wanted))

    def forward(self, x: Tensor) -> Any:
        self.seen.copy_(self.function(x))
        return self.w.sum()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nan_and_infinity_are_as_in_pytorch(name: str) -> None:
    # oneDNN, which PyTorch asks on some processors, answers NaN for gelu of infinity; PyTorch's own function does not.
    with torch.backends.mkldnn.flags(enabled=False):
        wanted = FUNCTIONS[name](ROWS)
    model = Seen(FUNCTIONS[name], wanted)
    step = TrainStep(model, None, torch.optim.SGD(model.parameters()), example=(ROWS,))
    step(ROWS)
    step.sync()
    assert torch.allclose(model.seen, wanted, rtol=1e-5, atol=1e-6, equal_nan=True), (model.seen, wanted)


OUTSIDE: dict[str, tuple[Callable[[Tensor], Tensor], Tensor, Tensor]] = {
    "between 0 and 1": (lambda x: F.binary_cross_entropy(x, torch.tensor([1.0, 0.0])), torch.tensor([0.0, 1.0]), torch.tensor([0.5, 1.5])),
    "between 0 and 1 ": (lambda x: F.binary_cross_entropy(x, torch.tensor([1.0, 0.0])), torch.tensor([0.2, 0.5]), torch.tensor([0.5, NAN])),
    "all probabilities": (torch.bernoulli, torch.tensor([0.0, 1.0]), torch.tensor([0.5, -0.5])),
    "no probability": (lambda x: x.multinomial(1).float(), torch.tensor([0.0, 1.0]), torch.tensor([0.5, -0.5])),
    "standard deviation": (lambda x: torch.normal(torch.zeros(2), x), torch.tensor([0.0, 1.0]), torch.tensor([0.5, -0.5])),
    "no divisor": (lambda x: (torch.tensor([6, 7]) // x.long()).float(), torch.tensor([1.0, -2.0]), torch.tensor([0.0, 1.0])),
    "no divisor ": (lambda x: (torch.tensor([6, 7]) % x.long()).float(), torch.tensor([1.0, -2.0]), torch.tensor([0.0, 1.0])),
    "no divisor of": (lambda x: torch.fmod(torch.tensor([6, 7]), x.long()).float(), torch.tensor([3.0, -2.0]), torch.tensor([0.0, 1.0])),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_number_that_a_function_does_not_take_fails_as_in_pytorch(name: str) -> None:
    function, good, bad = OUTSIDE[name]
    model = Seen(function, function(good))
    step = TrainStep(model, None, torch.optim.SGD(model.parameters()), example=(good,))
    step(good)
    with pytest.raises(RuntimeError):
        function(bad)
    with pytest.raises(lmsc.InputError, match=name.strip()):
        step(bad)
    # The step before is still the last one.
    step(good)
