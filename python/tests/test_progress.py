"""Reports of the phases of long calls."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import lmsc
import lmsc.torch
import pytest
import torch

MODELS = Path(__file__).parents[2] / "testdata/models"

STEP = b"""step (float[2] x, float[2] w) => (float[] loss, float[2] w_new) {
    [product] float[2] y = Mul(x, w)
    [square] float[2] s = Mul(y, y)
    [loss] float[] loss = ReduceSum<keepdims = 0>(s)
    [two] float[2] d = Add(y, y)
    [gradient] float[2] g = Mul(d, x)
    [update] float[2] w_new = Sub(w, g) updates (w as w_new)
}"""


class Bar:
    """The shown bar, as text."""

    shown: list[str] = []

    def __init__(self, total: int, **_: Any) -> None:
        self.total, self.n = total, 0.0
        Bar.shown = []

    def set_description(self, text: str, refresh: bool) -> None:
        self.text = text

    def refresh(self) -> None:
        Bar.shown.append(f"{self.text} {self.n:g}/{self.total}")

    def close(self) -> None:
        Bar.shown.append("closed")


@pytest.fixture
def tqdm(monkeypatch: pytest.MonkeyPatch) -> type[Bar]:
    auto = ModuleType("tqdm.auto")
    auto.tqdm = Bar  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    Bar.shown = []
    return Bar


def step(progress: Any) -> lmsc.torch.TrainStep:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    example = torch.ones(4, 3), torch.zeros(4, 2)
    return lmsc.torch.TrainStep(model, torch.nn.functional.mse_loss, optimizer, example=example, progress=progress)


def test_a_function_is_called_for_each_phase(tmp_path: Any) -> None:
    told: list[tuple[str, float]] = []

    def tell(phase: str, share: float) -> None:
        # A phase that takes long also tells its share from time to time.
        if share in (0.0, 1.0):
            told.append((phase, share))

    lmsc.compile(STEP, target="host", progress=tell)
    assert told == [("plan", 0.0), ("plan", 1.0)]
    told.clear()
    step(tell)
    assert told == [("capture", 0.0), ("translate", 0.0), ("plan", 0.0), ("plan", 1.0)]
    told.clear()
    model = torch.nn.Linear(3, 2)
    lmsc.torch.export_step(
        model, torch.nn.functional.mse_loss, torch.optim.SGD(model.parameters()), (torch.ones(4, 3), torch.zeros(4, 2)),
        path=tmp_path / "step.onnx", progress=tell,
    )  # fmt: skip
    assert told == [("capture", 0.0), ("translate", 0.0), ("write", 0.0), ("write", 1.0)]


def whole(shown: list[str]) -> list[str]:
    """The lines without the shares of a phase, which a phase that takes long tells from time to time."""
    return [line for line in shown if "." not in line]


def test_the_bar_shows_phases_and_is_closed(tqdm: type[Bar]) -> None:
    step(True)
    assert whole(tqdm.shown) == ["capture 0/3", "translate 1/3", "plan 2/3", "plan 3/3", "closed"]
    with pytest.raises(lmsc.Refusal):
        lmsc.compile(STEP, target="host", budget=1, progress=True)
    assert whole(tqdm.shown) == ["plan 0/1", "closed"]


def test_there_is_no_bar_without_a_terminal(tqdm: type[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    lmsc.compile(STEP, target="host")
    assert tqdm.shown == []
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    lmsc.compile(STEP, target="host")
    assert whole(tqdm.shown) == ["plan 0/1", "plan 1/1", "closed"]
    lmsc.compile(STEP, target="host", progress=False)
    assert whole(tqdm.shown) == ["plan 0/1", "plan 1/1", "closed"]


def test_without_tqdm_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    lmsc.compile(STEP, target="host", progress=True)


def test_an_exception_of_a_function_is_raised() -> None:
    def tell(phase: str, share: float) -> None:
        raise KeyError(phase)

    with pytest.raises(KeyError, match="plan"):
        lmsc.compile(STEP, target="host", progress=tell)


def test_the_part_of_a_search_grows() -> None:
    told: list[float] = []
    model = MODELS / "resnet18/training_model.onnx"
    tell = lambda _, share: told.append(share)  # noqa: E731
    lmsc.compile(model, dims={"batch": 32}, budget="0.5x", addresses="off", progress=tell)
    assert len(told) > 2 and told == sorted(told) and told[-1] == 1.0


def test_an_error_of_the_function_ends_a_search() -> None:
    def tell(phase: str, share: float) -> None:
        if share > 0:
            raise KeyError(share)

    with pytest.raises(KeyError):
        lmsc.compile(MODELS / "resnet18/training_model.onnx", dims={"batch": 32}, budget="0.5x", addresses="off", progress=tell)
