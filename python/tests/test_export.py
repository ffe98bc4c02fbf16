"""The guarantees of `export_step` to users. scripts/check_torch.py compares the results of many models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lmsc.torch
import numpy as np
import onnxruntime as ort
import pytest
import torch
from lmsc.torch import CaptureError, UnsupportedOperator, export_step
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

import onnx


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 3))


def batches(count: int = 3) -> list[tuple[Tensor, Tensor]]:
    torch.manual_seed(1)
    return [(torch.randn(4, 6), torch.randint(0, 3, (4,))) for _ in range(count)]


def names(values: Any) -> list[str]:
    return [v.name for v in values]


def kinds(model: onnx.ModelProto) -> set[str]:
    return {f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in model.graph.node}


def run(model: onnx.ModelProto, state: dict[str, Any], feeds: dict[str, Any]) -> dict[str, Any]:
    """One step in ONNX Runtime: its results, and `state` brought up to date."""
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results = dict(zip(names(session.get_outputs()), session.run(None, {**state, **feeds})))
    state.update({n.removesuffix("_new"): v for n, v in results.items() if n.endswith("_new")})
    return results


def state_of(path: Path) -> dict[str, Any]:
    return {n: t.numpy() for n, t in load_file(path).items()}


def test_a_schedule_of_the_learning_rate_is_an_input(tmp_path: Path) -> None:
    model = net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    step = export_step(model, F.cross_entropy, optimizer, batches()[0], standard=True, params=tmp_path / "p.safetensors")
    state = state_of(tmp_path / "p.safetensors")
    for x, y in batches():
        state["lr"] = np.array(optimizer.param_groups[0]["lr"], dtype=np.float32)
        mine = run(step, state, {"input": x.numpy(), "target": y.numpy()})["loss"]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        assert abs(float(loss.detach()) - float(mine)) < 1e-5
    for n, p in model.named_parameters():
        np.testing.assert_allclose(state[n], p.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_names_are_those_of_the_module() -> None:
    model = net()
    step = export_step(model, F.cross_entropy, torch.optim.AdamW(model.parameters()), batches()[0])
    params = ["0.weight", "0.bias", "2.weight", "2.bias"]
    moments = [f"{p}.{m}" for p in params for m in ("exp_avg", "exp_avg_sq")]
    assert names(step.graph.input) == [*params, "step", *moments, "lr", "input", "target"]
    assert set(names(step.graph.output)) == {"loss", *(f"{n}_new" for n in [*params, "step", *moments])}
    onnx.checker.check_model(export_step(model, F.cross_entropy, torch.optim.SGD(model.parameters()), batches()[0], standard=True))


def test_adamw_and_sgd_are_one_operator_a_parameter() -> None:
    model = net()
    for optimizer, kind in [(torch.optim.AdamW, "AdamWOptimizer"), (torch.optim.SGD, "SGDOptimizer")]:
        step = export_step(model, F.cross_entropy, optimizer(model.parameters(), lr=0.1), batches()[0])
        assert sum(n.op_type == kind for n in step.graph.node) == 4
        standard = export_step(model, F.cross_entropy, optimizer(model.parameters(), lr=0.1), batches()[0], standard=True)
        assert {n.domain for n in standard.graph.node} == {""}


def test_gradients_are_compact() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.5), nn.Linear(36, 2)
    )
    step = export_step(model, F.cross_entropy, torch.optim.SGD(model.parameters()), (torch.randn(2, 3, 8, 8), torch.tensor([0, 1])))
    wanted = {"ConvGrad", "BatchNormalizationGrad", "ReluGrad", "MaxPoolGrad", "DropoutGrad", "SoftmaxCrossEntropyLossGrad"}
    assert {f"com.microsoft.{w}" for w in wanted} | {"Dropout"} <= kinds(step)


def test_nothing_is_allocated() -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(1 << 16, 1 << 16), nn.ReLU(), nn.Linear(1 << 16, 2))
        example = torch.empty(4, 1 << 16), torch.zeros(4, dtype=torch.int64)
    step = export_step(model, F.cross_entropy, torch.optim.AdamW(model.parameters()), example)
    assert step.ByteSize() < 50_000
    assert [d.dim_value for d in step.graph.input[0].type.tensor_type.shape.dim] == [1 << 16, 1 << 16]


def test_the_model_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    before = {n: t.clone() for n, t in model.state_dict().items()}
    optimizer = torch.optim.AdamW(model.parameters())
    export_step(model, F.cross_entropy, optimizer, batches()[0])
    assert all(torch.equal(t, before[n]) for n, t in model.state_dict().items())
    assert not optimizer.state and all(p.grad is None for p in model.parameters())


def test_an_optimizer_that_has_run_goes_on(tmp_path: Path) -> None:
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    data = batches()
    F.cross_entropy(model(data[0][0]), data[0][1]).backward()
    optimizer.step()
    export_step(model, F.cross_entropy, optimizer, data[0], params=tmp_path / "p.safetensors")
    state = load_file(tmp_path / "p.safetensors")
    assert int(state["step"]) == 1
    assert torch.equal(state["0.weight.exp_avg"], optimizer.state[model[0].weight]["exp_avg"])


def test_tied_weights_are_one_input() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
            self.head.weight = self.token.weight

        def forward(self, ids: Tensor) -> Tensor:
            return self.head(self.token(ids))

    model = Tied()
    step = export_step(model, F.cross_entropy, torch.optim.SGD(model.parameters()), (torch.tensor([1, 2]), torch.tensor([3, 4])))
    assert names(step.graph.input) == ["token.weight", "lr", "ids", "target"]


def test_frozen_parameters_have_no_new_value() -> None:
    model = net()
    model[0].requires_grad_(False)
    step = export_step(model, F.cross_entropy, torch.optim.AdamW(model.parameters()), batches()[0])
    assert "0.weight" in names(step.graph.input)
    assert not [n for n in names(step.graph.output) if n.startswith("0.")]


def test_losses_and_outputs_by_name() -> None:
    model = net()

    def loss(scores: Tensor, target: Tensor) -> dict[str, Tensor]:
        return {"loss": F.cross_entropy(scores, target), "accuracy": (scores.argmax(1) == target).float().mean()}

    step = export_step(model, loss, torch.optim.SGD(model.parameters()), batches()[0], clip_grad_norm=1.0, ema=0.9)
    assert names(step.graph.output)[:3] == ["loss", "accuracy", "grad_norm"]
    assert "0.weight.ema_new" in names(step.graph.output)


class Asks(nn.Module):
    def __init__(self, how: str) -> None:
        super().__init__()
        self.layer, self.how = nn.Linear(6, 3), how

    def forward(self, x: Tensor) -> Tensor:
        y = self.layer(x)
        if self.how == "item":
            return y * y.max().item()
        if self.how == "if":
            return y if y.sum() > 0 else -y
        return y[y[:, 0].nonzero()[:, 0]]


@pytest.mark.parametrize(("how", "line", "remedy"), [
    ("item", "y.max().item()", "torch.where"),
    ("if", "if y.sum() > 0", "torch.where"),
    ("nonzero", "nonzero()", "fixed size"),
])  # fmt: skip
def test_code_that_depends_on_values_is_refused_with_its_line(how: str, line: str, remedy: str) -> None:
    model = Asks(how)
    with pytest.raises(CaptureError) as refusal:
        export_step(model, lambda y, t: y.mean(), torch.optim.SGD(model.parameters()), batches()[0])
    assert __file__ in str(refusal.value) and line in str(refusal.value) and remedy in str(refusal.value)
    assert refusal.value.location and refusal.value.location.startswith(__file__)


def test_an_operator_without_translation_is_named() -> None:
    model = net()

    def loss(scores: Tensor, target: Tensor) -> Tensor:
        return torch.linalg.det(scores[:3] @ scores[:3].T)

    with pytest.raises(UnsupportedOperator, match=r"return torch.linalg.det.*_linalg_det") as refusal:
        export_step(model, loss, torch.optim.SGD(model.parameters()), batches()[0])
    assert refusal.value.location and refusal.value.location.startswith(__file__)


def test_wrong_arguments_are_refused() -> None:
    model = net()
    with pytest.raises(CaptureError, match="reduce it to one number"):
        export_step(model, lambda y, t: y, torch.optim.SGD(model.parameters()), batches()[0])
    with pytest.raises(CaptureError, match="that the model has not"):
        export_step(model, F.cross_entropy, torch.optim.SGD(net().parameters()), batches()[0])
    with pytest.raises(CaptureError, match="the example is"):
        export_step(model, F.cross_entropy, torch.optim.SGD(model.parameters()), batches()[0][0])  # type: ignore[arg-type]
    with pytest.raises(CaptureError, match="LBFGS cannot be part"):
        export_step(model, F.cross_entropy, torch.optim.LBFGS(model.parameters()), batches()[0])
    with pytest.raises(CaptureError, match="does not depend on a parameter"):
        export_step(model, lambda y, t: torch.zeros(()), torch.optim.SGD(model.parameters()), batches()[0])


def test_input_names_are_those_of_forward() -> None:
    model = net()
    assert lmsc.torch.batch_names(model, batches()[0], True) == ["input", "target"]
    assert lmsc.torch.batch_names(model, {"b": torch.ones(1), "a": 3, "c": torch.ones(1)}, False) == ["b", "c"]
