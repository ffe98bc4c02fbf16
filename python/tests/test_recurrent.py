"""Recurrent layers: one operator for each layer and direction, with the results and gradients of PyTorch's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lmsc.torch
import onnx
import pytest
import torch
from torch import Tensor, nn


class Layers(nn.Module):
    """Recurrent layers whose results and, with `last`, last states count, from states that are trained if `given`."""

    def __init__(self, kind: type[nn.RNNBase], last: bool, given: bool, **options: Any) -> None:
        super().__init__()
        self.recurrent, self.last, self.given = kind(5, 6, **options), last, given
        width = 2 if self.recurrent.bidirectional else 1
        states = [torch.randn(width * self.recurrent.num_layers, 3, 6) for _ in range(2 if kind is nn.LSTM else 1)]
        self.states = nn.ParameterList(states)
        self.out = nn.Linear(6 * width, 2)

    def forward(self, x: Tensor) -> Tensor:
        given: Any = tuple(self.states) if len(self.states) > 1 else self.states[0]
        y, last = self.recurrent(x, given if self.given else None)
        loss = self.out(y).square().sum()
        for state in (last if isinstance(last, tuple) else [last]) if self.last else []:
            loss = loss + state.square().sum()
        return loss


CASES: list[dict[str, Any]] = [
    {"last": False, "given": False},
    {"last": True, "given": True, "num_layers": 2, "bidirectional": True},
    {"last": True, "given": False, "bias": False, "batch_first": True},
    {"last": False, "given": True, "bidirectional": True, "bias": False},
]


def operators(model: onnx.ModelProto, name: str) -> int:
    return sum(node.op_type == name for node in model.graph.node)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("options", CASES)
def test_layers_train_as_those_of_pytorch(kind: type[nn.RNNBase], options: dict[str, Any]) -> None:
    torch.manual_seed(1)
    model, twin = Layers(kind, **options), Layers(kind, **options)
    twin.load_state_dict(model.state_dict())
    x = torch.randn(3, 4, 5) if options.get("batch_first") else torch.randn(4, 3, 5)
    optimizer, other = (torch.optim.SGD(m.parameters(), lr=0.02) for m in (model, twin))
    step = lmsc.torch.TrainStep(model, None, optimizer, example=(x,))
    for _ in range(3):
        other.zero_grad()
        loss = twin(x)
        loss.backward()
        other.step()
        assert float(step(x)) == pytest.approx(float(loss.detach()), rel=1e-5)
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("kind", "name"), [(nn.LSTM, "LSTM"), (nn.GRU, "GRU")])
def test_each_layer_and_direction_is_one_operator(tmp_path: Path, kind: type[nn.RNNBase], name: str) -> None:
    model = Layers(kind, last=False, given=False, num_layers=2, bidirectional=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    written = tmp_path / "step.onnx"
    lmsc.torch.export_step(model, None, optimizer, (torch.randn(4, 3, 5),), path=written)
    step = onnx.load(written)
    assert operators(step, f"{name}Training") == operators(step, f"{name}Grad") == 4
    lmsc.torch.export_step(model, None, optimizer, (torch.randn(4, 3, 5),), path=written, standard=True)
    assert {node.domain for node in onnx.load(written).graph.node} == {""}


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_a_gradient_of_a_gradient_is_that_of_the_cells(kind: type[nn.RNNBase]) -> None:
    class Penalty(Layers):
        def forward(self, x: Tensor) -> Tensor:
            x = x.requires_grad_()
            (slope,) = torch.autograd.grad(super().forward(x), x, create_graph=True)
            return slope.square().sum()

    torch.manual_seed(1)
    model, twin = (Penalty(kind, last=True, given=True) for _ in range(2))
    twin.load_state_dict(model.state_dict())
    x = torch.randn(4, 3, 5)
    step = lmsc.torch.TrainStep(model, None, torch.optim.SGD(model.parameters(), lr=1e-3), example=(x,))
    other = torch.optim.SGD(twin.parameters(), lr=1e-3)
    with torch.backends.mkldnn.flags(enabled=False):
        loss = twin(x.clone())
        loss.backward()
    other.step()
    assert float(step(x)) == pytest.approx(float(loss.detach()), rel=1e-4)
    for name, value in twin.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("name", "states"), [("lstm", 2), ("gru", 1)])
def test_operators_on_tensors_have_their_own_gradients(name: str, states: int) -> None:
    torch.manual_seed(1)
    gates = 4 if name == "lstm" else 3
    shapes = [(3, 2, 1), (1, gates * 2, 1), (1, gates * 2, 2), (1, 2 * gates * 2), *[(1, 2, 2)] * states]
    operands = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    operator = getattr(torch.ops.lmsc, name)
    for reverse in (False, True):
        assert torch.autograd.gradcheck(lambda *t: operator(*t, reverse)[: 1 + states], operands)  # noqa: B023
        assert torch.autograd.gradgradcheck(lambda *t: operator(*t, reverse)[: 1 + states], operands)  # noqa: B023
        found = operator(*operands[:3], None, *operands[4:], reverse)
        expected = operator(*operands[:3], torch.zeros(shapes[3], dtype=torch.float64), *operands[4:], reverse)
        torch.testing.assert_close(found, expected)
