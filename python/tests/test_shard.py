"""`lmsc.torch.shard`: the same module, whose parameters are parts."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator

import lmsc
import lmsc.torch
import pytest
import torch
import torch.distributed as dist
from lmsc.torch.backend import backend
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor
from torch.nn import functional as F
from torch.testing._internal.distributed.fake_pg import FakeStore


@pytest.fixture
def mesh() -> Iterator[DeviceMesh]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()
    torch._dynamo.reset()


class Tied(nn.Module):
    """A weight of two modules, a frozen one, one without dimensions, one of a weight norm, and a list."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(11, 8), nn.Linear(8, 11, bias=False)
        self.out.weight = self.words.weight
        self.middle = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))
        self.norm, self.scale = nn.BatchNorm1d(8), nn.Parameter(torch.tensor(0.5))
        self.norm.weight.requires_grad_(False)
        self.more = nn.ParameterList([nn.Parameter(torch.randn(8)), nn.Parameter(torch.randn(8, 8))])

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(self.middle(self.words(x))) * self.scale + self.more[0]
        return self.out(h @ self.more[1])


def trained(model: nn.Module, call: nn.Module) -> list[float]:
    optimizer, losses = torch.optim.AdamW(model.parameters(), lr=1e-2), []
    for step in range(3):
        x = torch.arange(6) + step
        loss = F.cross_entropy(call(x), (x + 1) % 11)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def test_a_sharded_module_trains_as_the_whole_one(mesh: DeviceMesh) -> None:
    torch.manual_seed(0)
    whole = Tied()
    model = lmsc.torch.shard(copy.deepcopy(whole), mesh)
    assert list(model.state_dict()) == list(whole.state_dict())
    assert [n for n, p in model.named_parameters() if not p.requires_grad] == ["norm.weight"]
    assert all(isinstance(p, DTensor) for p in model.parameters())
    assert model.out._parameters["weight"] is model.words._parameters["weight"]
    planned = copy.deepcopy(model)
    wanted = trained(whole, whole)
    assert trained(model, model) == pytest.approx(wanted, abs=1e-6)
    compiled = torch.compile(planned, backend=functools.partial(backend, options={"budget": "smallest"}))
    assert trained(planned, compiled) == pytest.approx(wanted, abs=1e-6)
    for one, other in ((whole, model), (model, planned)):
        for (name, p), q in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
            p, q = (v.full_tensor() if isinstance(v, DTensor) else v for v in (p, q))
            assert torch.allclose(p, q, atol=1e-5), name


def test_what_cannot_be_sharded_is_refused_and_stays_as_it_was(mesh: DeviceMesh) -> None:
    recurrent = nn.Sequential(nn.Linear(4, 4), nn.LSTM(4, 4))
    with pytest.raises(lmsc.InputError, match=r"`1` \(LSTM\)"):
        lmsc.torch.shard(recurrent, mesh)
    assert not any(isinstance(p, DTensor) for p in recurrent.parameters())
    with pytest.raises(lmsc.InputError, match="a placement for each axis"):
        lmsc.torch.shard(nn.Linear(2, 2), mesh, [])
    model = lmsc.torch.shard(nn.Linear(2, 2), mesh)
    with pytest.raises(lmsc.InputError, match="distributed already"):
        lmsc.torch.shard(model, mesh)


def test_a_mesh_of_two_axes_has_copies_of_shards() -> None:
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=8)
    try:
        model = lmsc.torch.shard(nn.Linear(8, 8), init_device_mesh("cpu", (2, 4)))
        assert model._parameters["weight"].to_local().shape == (2, 8)
        with pytest.raises(lmsc.InputError, match="one or two axes"):
            lmsc.torch.shard(nn.Linear(8, 8), init_device_mesh("cpu", (2, 2, 2)))
    finally:
        dist.destroy_process_group()
