"""Each value of each argument of each translated operator beside PyTorch: results, and gradients of all operands.

A deterministic part runs here; all of it where LMSC_THOROUGH is set, or as `python test_arguments.py [PART]`, which prints the
number of calls that were tried, right, refused and wrong.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from dataclasses import dataclass, field
from typing import Any

import lmsc
import numpy as np
import pytest
import torch
from argument_cases import Case, every_case, scaled_by
from lmsc.torch import CaptureError, export_step
from lmsc.torch.translate import registry
from torch import Tensor, nn

logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)

GROUP = 4
"""Calls in one step. A step that is refused is split until one call is left."""


class Calls(nn.Module):
    """The results of calls, and a loss of all of them. Operands of float32 are parameters, others are given."""

    def __init__(self, cases: list[Case]) -> None:
        super().__init__()
        self.cases, self.given = cases, {"one": torch.ones(())}
        for name, value in ((n, v) for k, case in enumerate(cases) for n, v in _operands(k, case.arguments)):
            if value.dtype == torch.float32:
                self.register_parameter(name, nn.Parameter(value.clone()))
            else:
                self.given[name] = value

    def results(self, given: dict[str, Tensor]) -> list[list[Tensor]]:
        found = []
        for k, case in enumerate(self.cases):
            def operand(name: str, value: Any, k: int = k) -> Any:
                if isinstance(value, list):
                    return [operand(f"{name}_{j}", v) for j, v in enumerate(value)]
                label = f"c{k}_{name}"
                return value if not isinstance(value, Tensor) else given[label] if label in given else getattr(self, label)

            result = case.overload(**{n: operand(n, v) for n, v in case.arguments.items()})
            found.append([r for r in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(r, Tensor)])
        return found

    def forward(self, **given: Tensor) -> dict[str, Tensor]:
        loss, named = given["one"] * 0.0, {}
        for p in self.parameters():
            loss = loss + torch.where(torch.isnan(p), 0.0, p * 0.0).sum() * 0.0 if p.numel() else loss
        for k, results in enumerate(self.results(given)):
            for j, r in enumerate(results):
                if r.is_floating_point() and r.requires_grad:
                    loss = loss + (r.float() * scaled_by(r)).sum()
                named[f"r{k}_{j}"] = r * 1 if r.dtype != torch.bool else r.to(torch.int32)
        return {"loss": loss, **named}


def _operands(k: int, arguments: dict[str, Any]) -> list[tuple[str, Tensor]]:
    found = []

    def add(name: str, value: Any) -> None:
        if isinstance(value, Tensor):
            found.append((name, value))
        elif isinstance(value, list):
            for j, v in enumerate(value):
                add(f"{name}_{j}", v)

    for name, value in arguments.items():
        add(f"c{k}_{name}", value)
    return found


@dataclass
class Tally:
    """Numbers of calls, and lines about those that are not right."""

    right: int = 0
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        tried = self.right + len(self.refused) + len(self.wrong)
        return f"{tried} tried: {self.right} right, {len(self.refused)} refused, {len(self.wrong)} wrong"


def compare(cases: list[Case], standard: bool, tally: Tally) -> None:
    """Runs the calls as one step, or, where it is refused, as two."""
    model = Calls(cases)
    optimizer = torch.optim.SGD([p for p in model.parameters()] or [nn.Parameter(torch.zeros(1))], lr=1.0)
    if not list(model.parameters()):
        model.register_parameter("spare", optimizer.param_groups[0]["params"][0])
    try:
        step = export_step(model, None, optimizer, model.given, standard=standard, lr_input=False)
        session = lmsc.compile(step, target="host").session()
        inputs = {i.name for i in step.graph.input}
        session.load_state({n: p.detach().clone() for n, p in model.named_parameters() if n in inputs})
        found = session.step({n: v for n, v in model.given.items() if n in inputs})
    except Exception as error:
        if len(cases) == 1:
            line = f"{cases[0]}: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
            (tally.refused if isinstance(error, (CaptureError, lmsc.Error)) else tally.wrong).append(line)
            return
        compare(cases[: len(cases) // 2], standard, tally)
        compare(cases[len(cases) // 2 :], standard, tally)
        return
    after = session.state()
    expected = model(**model.given)
    params = dict(model.named_parameters())
    grads = dict(zip(params, torch.autograd.grad(expected["loss"], list(params.values()), allow_unused=True)))
    for k, case in enumerate(cases):
        problems = []
        for name in (n for n in expected if n.startswith(f"r{k}_")):
            problems += _differs("result", expected[name].detach(), torch.from_numpy(np.array(found[name])))
        for name in (n for n in params if n.startswith(f"c{k}_") and n in after):
            gradient = grads[name] if grads[name] is not None else torch.zeros_like(params[name])
            update = torch.where(gradient.isfinite() & params[name].isfinite(), params[name].detach() - gradient, gradient)
            have = torch.from_numpy(np.array(after[name])).reshape(update.shape)
            kept = update.isfinite() & params[name].isfinite()
            problems += _differs(f"gradient of {name}", update[kept], have[kept])
        if problems:
            tally.wrong.append(f"{case} ({case.tried}): {'; '.join(problems)}")
        else:
            tally.right += 1


def _differs(label: str, want: Tensor, have: Tensor) -> list[str]:
    if want.shape != have.shape:
        return [f"{label} has the shape {list(have.shape)} for {list(want.shape)}"]
    if torch.allclose(have.double(), want.double(), rtol=1e-3, atol=2e-6 if label == "result" else 1e-4, equal_nan=True):
        return []
    return [f"{label} is {have.flatten()[:6].tolist()} for {want.flatten()[:6].tolist()}"]


def tried(cases: list[Case], standard: bool, shows: bool = False) -> Tally:
    """The comparison of all calls; `shows`: lines about those that are not right are printed as they are found."""
    tally = Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for start in range(0, len(cases), GROUP):
            before = len(tally.wrong), len(tally.refused)
            compare(cases[start : start + GROUP], standard, tally)
            for line in [f"WRONG {w}" for w in tally.wrong[before[0] :]] + [f"refused {r}" for r in tally.refused[before[1] :]]:
                print(line, flush=True) if shows else None
    return tally


def part(cases: list[Case], index: int, count: int) -> list[Case]:
    return cases[index::count]


def test_every_argument_of_a_schema_is_taken_seen_or_refused() -> None:
    overloads = list(registry.overloads())
    assert len(overloads) > 250
    for overload in overloads:
        assert registry.contract(overload) is not None, overload


@pytest.mark.parametrize("standard", [False, True], ids=["compact", "standard"])
def test_arguments_mean_what_pytorch_means(standard: bool) -> None:
    cases = every_case()
    tally = tried(cases if os.environ.get("LMSC_THOROUGH") else part(cases, 7 + standard, 97), standard)
    print(tally)
    assert not tally.wrong, "\n".join(tally.wrong)
    assert tally.right > 2 * len(tally.refused)


if __name__ == "__main__":
    index, count = (int(v) for v in (sys.argv[1] if len(sys.argv) > 1 else "0/1").split("/"))
    ended = 0
    for form in (False, True):
        tally = tried(part(every_case(), index, count), form, shows=True)
        print("standard:" if form else "compact:", tally, flush=True)
        ended |= bool(tally.wrong)
    sys.exit(ended)
