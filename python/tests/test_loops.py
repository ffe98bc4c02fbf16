"""Training loops as people write them: one changed line, `model.compile(backend="lmsc", …)`, and the numbers of the loop as it was."""

from __future__ import annotations

import copy
import gc
import math
from typing import Any

import lmsc.torch
import pytest
import torch
from backend_models import Layers, rows
from torch import Tensor, nn
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def _threads() -> Any:
    torch.set_num_threads(1)
    yield
    torch._dynamo.reset()
    gc.collect()


class GPT(nn.Module):
    """Tokens to the loss or, without targets, to the scores, as nanoGPT does it."""

    def __init__(self, letters: int = 17, context: int = 32, width: int = 32) -> None:
        super().__init__()
        self.token, self.place, self.drop = nn.Embedding(letters, width), nn.Embedding(context, width), nn.Dropout(0.1)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, letters, bias=False)
        self.token.weight = self.head.weight

    def forward(self, ids: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        x = self.drop(self.token(ids) + self.place(torch.arange(ids.shape[1])))
        q, k, v = (t.unflatten(-1, (4, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0.0, is_causal=True).transpose(1, 2).flatten(2))
        x = x + self.down(F.gelu(self.up(x)))
        if targets is None:
            return self.head(x[:, [-1]]), None
        scores = self.head(x)
        return scores, F.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=-1)


def nanogpt(model: GPT) -> list[float]:
    """The losses of a loop with warm-up and decay of the learning rate, accumulation, clipping, autocast, a scaler and evaluations in between."""
    around = torch.autocast("cpu", torch.bfloat16)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    numbers, losses = torch.Generator().manual_seed(5), []

    def batch() -> tuple[Tensor, Tensor]:
        ids = torch.randint(0, 17, (8, 33), generator=numbers)
        return ids[:, :-1], ids[:, 1:]

    for step in range(3):
        rate = 1e-3 * (step + 1) / 2 if step < 2 else 5e-4 * (1 + math.cos(math.pi * step / 4))
        for group in optimizer.param_groups:
            group["lr"] = rate
        if step % 2 == 0:
            model.eval()
            with torch.no_grad(), around:
                losses.append(float(model(*batch())[1]))
            model.train()
        for _ in range(2):
            with around:
                _, loss = model(*batch())
                loss = loss / 2
            losses.append(loss.item())
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        losses.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
    model.eval()
    with torch.no_grad():
        losses.append(float(model(batch()[0])[0].abs().sum()))
    return losses


def test_a_loop_as_in_nanogpt_is_changed_by_one_line() -> None:
    torch.manual_seed(0)
    model = GPT()
    found = []
    for backend, options in (("aot_eager", {}), ("lmsc", {"options": {"budget": "0.9x"}})):
        torch._dynamo.reset()
        mine = copy.deepcopy(model)
        mine.compile(backend=backend, **options)
        torch.manual_seed(1)
        found.append((nanogpt(mine), mine))
    assert found[0][0] == found[1][0]
    assert all(torch.equal(a, b) for a, b in zip(found[0][1].state_dict().values(), found[1][1].state_dict().values(), strict=True))
    assert lmsc.torch.plans(found[1][1]) and all(p.peak <= p.budget for p in lmsc.torch.plans(found[1][1]))


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        first = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.body = nn.Sequential(*first, nn.Conv2d(8, 8, 3, stride=2), nn.BatchNorm2d(8))
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(F.relu(self.body(x)).mean((2, 3)))


def reference(model: Images) -> list[float]:
    """The losses of a loop as torchvision's reference has it: smoothed labels, a mean of the weights, a scheduler, evaluation of the mean."""
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    scheduler = torch.optim.lr_scheduler.SequentialLR(
        optimizer, [torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=1), torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2)], [1]
    )
    mean = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9), use_buffers=True)
    numbers, losses = torch.Generator().manual_seed(6), []
    for _ in range(3):
        model.train()
        for _ in range(2):
            x, y = torch.randn(4, 3, 8, 8, generator=numbers), torch.randint(0, 5, (4,), generator=numbers)
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean.update_parameters(model)
            losses.append(loss.item())
        scheduler.step()
        for each in (model, mean):
            each.eval()
            with torch.inference_mode():
                losses.append(float(criterion(each(x), y)))
    return losses


def test_a_loop_as_in_torchvision_is_changed_by_one_line() -> None:
    torch.manual_seed(0)
    model = Images()
    found = []
    for backend, options in (("aot_eager", {}), ("lmsc", {"options": {"budget": "smallest"}})):
        torch._dynamo.reset()
        mine = copy.deepcopy(model)
        mine.compile(backend=backend, **options)
        found.append((reference(mine), mine))
    assert found[0][0] == found[1][0]
    assert all(torch.equal(a, b) for a, b in zip(found[0][1].state_dict().values(), found[1][1].state_dict().values(), strict=True))


def test_a_module_that_is_compiled_in_place_is_saved_under_its_own_names(tmp_path: Any) -> None:
    model = Layers()
    model.compile(backend="lmsc", options={"budget": "1x"})
    model(rows(0)).sum().backward()
    torch.save({"model": model.state_dict(), "whole": model}, tmp_path / "a.pt")
    other = Layers()
    other.load_state_dict(torch.load(tmp_path / "a.pt", weights_only=False)["model"])
    whole = torch.load(tmp_path / "a.pt", weights_only=False)["whole"]
    assert torch.equal(other(rows(0)), model(rows(0))) and torch.equal(whole(rows(0)), model(rows(0)))
