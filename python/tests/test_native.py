"""`TrainStep(…, kernels="torch")` has the bits of PyTorch's own loop, with and without a budget, and keeps to its plan."""

from __future__ import annotations

import copy
import gc
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmsc
import pytest
import torch
from backend_models import MODELS
from backend_tools import Live
from lmsc.torch import CaptureError, Fit, TrainStep, fit
from lmsc.torch.backend.check import Unsound
from lmsc.torch.backend.whole import StepChecker, StepWriter
from torch import Tensor, nn
from torch.nn import functional as F

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import torch_habits  # noqa: E402

CARD = "a100-pcie4"
Optimizer = Callable[[Any], torch.optim.Optimizer]


@pytest.fixture
def slow(tmp_path: Path) -> str:
    """A machine whose link is slow, so that operators run again instead of being copied."""
    text = (ROOT / "plan/cost/targets/host.toml").read_text()
    path = tmp_path / "slow.toml"
    path.write_text(text.replace('"host"', '"slow"', 1).replace("bytes_per_second = 9e9", "bytes_per_second = 1e6"))
    return str(path)


class Layer(nn.Module):
    """Statistics, dropout, a write in place and a Fourier transform."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.drop(F.relu(self.norm(self.linear(x)), inplace=True))
        return h + torch.fft.fft(h).real


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(Layer(), Layer(), Layer(), nn.Linear(64, 10))


def data(count: int = 3, size: int = 64) -> list[tuple[Tensor, Tensor]]:
    numbers = torch.Generator().manual_seed(1)
    return [(torch.randn(size, 64, generator=numbers), torch.randint(0, 10, (size,), generator=numbers)) for _ in range(count)]


def adamw(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(parameters, lr=1e-2)


def eager(model: nn.Module, optimizer: torch.optim.Optimizer, batches: Any, clip: float | None = None) -> list[float]:
    torch.manual_seed(5)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
    return losses


def stepped(step: TrainStep, batches: Any) -> list[float]:
    torch.manual_seed(5)
    return [float(step(*batch)) for batch in batches]


def same(a: Any, b: Any) -> bool:
    """Whether both are equal bit for bit."""
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def everything(model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
    return model.state_dict(), optimizer.state_dict()


OPTIMIZERS: dict[str, Optimizer] = {
    "AdamW": adamw,
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "Adafactor": lambda p: torch.optim.Adafactor(p),
    "Rprop": lambda p: torch.optim.Rprop(p),
}


@pytest.mark.parametrize(("name", "budget", "clip"), [
    ("AdamW", None, None), ("AdamW", "smallest", None), ("AdamW", "0.6x", 0.5), ("SGD", "smallest", 0.5), ("Adafactor", "smallest", None),
    ("Rprop", "smallest", None),
])  # fmt: skip
def test_a_step_has_the_bits_of_the_eager_loop(name: str, budget: str | None, clip: float | None) -> None:
    model, batches = net(), data()
    twin = copy.deepcopy(model)
    optimizer, other = OPTIMIZERS[name](model.parameters()), OPTIMIZERS[name](twin.parameters())
    step = TrainStep(
        model, F.cross_entropy, optimizer, example=batches[0], budget=budget, kernels="torch", target=CARD, clip_grad_norm=clip, effort=5
    )
    assert stepped(step, batches) == eager(twin, other, batches, clip)
    assert same(everything(model, optimizer), everything(twin, other))
    assert step.plan.peak_after <= step.plan.budget
    if budget == "smallest":
        assert step.plan.rests and step.plan.peak_after < 0.5 * step.plan.peak_before
    # PyTorch goes on with the same objects.
    assert eager(model, optimizer, batches) == eager(twin, other, batches)


def test_random_operators_run_again_with_the_bits_of_their_first_run(slow: str) -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Dropout(0.2)) for _ in range(4)), nn.Linear(64, 10))
    batches = data(size=512)
    twin = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = TrainStep(model, F.cross_entropy, optimizer, example=batches[0], budget="0.6x", kernels="torch", target=slow)
    assert step.plan.random_again > 0
    assert stepped(step, batches) == eager(twin, torch.optim.SGD(twin.parameters(), lr=0.1), batches)


@pytest.mark.parametrize("name", ["attention_with_dropout", "custom_operator", "channels_last", "tied_weights", "complex_numbers", "checkpoint_inside"])
def test_models_have_the_bits_of_the_eager_loop(name: str) -> None:
    found = []
    for ours in (False, True):
        case = MODELS[name]()
        module = case.module.train()
        optimizer = adamw(module.parameters())
        if ours:
            step = TrainStep(module, None, optimizer, example=case.batch(0), budget="smallest", kernels="torch", target=CARD, effort=5)
        losses = []
        for i in range(2):
            torch.manual_seed(50 + i)
            if ours:
                losses.append(float(step(*case.batch(i))))
            else:
                optimizer.zero_grad()
                loss = module(*case.batch(i))
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        found.append((losses, everything(module, optimizer)))
    assert same(*found)


def test_bernoulli_in_place_draws_in_the_order_of_the_memory() -> None:
    class Mask(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            h = super().forward(x).t()
            return (h * torch.empty_like(h).bernoulli_(0.5)).t()

    torch.manual_seed(0)
    model = nn.Sequential(Mask(64, 64), nn.Linear(64, 10))
    twin, batches = copy.deepcopy(model), data()
    step = TrainStep(model, F.cross_entropy, adamw(model.parameters()), example=batches[0], kernels="torch")
    assert stepped(step, batches) == eager(twin, adamw(twin.parameters()), batches)


def test_the_measured_peak_is_the_planned_one() -> None:
    model, batches = net(), data()
    step = TrainStep(model, F.cross_entropy, adamw(model.parameters()), example=batches[0], budget="smallest", kernels="torch", target=CARD)
    graph = step._shape.compiled
    live, run = Live(), graph.run

    def measured(args: list[Any]) -> Any:
        live.add([t for n, t in zip(graph.step.inputs, args, strict=True) if n not in step.plan.rests])
        with live:
            return run(args)

    stepped(step, batches[:1])
    graph.run = measured
    step(*batches[1])
    assert 0.8 * step.plan.peak < live.peak <= step.plan.peak


HABITS = (
    "a momentum encoder by `.data =`", "a tensor in an attribute", "spectral_norm, evaluated afterwards", "an optimizer that counts in `param_groups`",
    "clipping by value in a hook of the optimizer", "weights clamped in a hook of the optimizer", "accumulation over parts of the batch",
    "a layer frozen, and trained again", "a normalization in eval() of its own", "a number of the module", "a hook of a gradient (clamp)",
    "a hook behind a gradient's accumulation", "a parameter group added", "weights written, without sync()", "back to an earlier state",
    "autocast around some steps", "a batch of another size", "a weight of the loss, annealed in a tensor", "a teacher outside of the module, by EMA",
    "the optimizer's state_dict() without sync()", "OneCycleLR, which moves momentum", "two optimizers by turns (GAN)", "the older spectral_norm",
)  # fmt: skip


@pytest.mark.parametrize("name", HABITS)
def test_habits_of_loops_are_as_in_pytorch(name: str) -> None:
    assert torch_habits.judged(torch_habits.HABITS[name], kernels="torch") == "as PyTorch"


def test_optimizers_that_are_not_the_sum_of_their_parts_update_all_at_once() -> None:
    class Counting(torch.optim.SGD):
        """Half of the rate in each second step."""

        count = 0

        def step(self, closure: Any = None) -> Any:
            self.count += 1
            for group in self.param_groups:
                group["lr"] = 0.1 / self.count
            return super().step(closure)

    model, batches = net(), data()
    twin = copy.deepcopy(model)
    step = TrainStep(model, F.cross_entropy, Counting(model.parameters(), lr=0.1), example=batches[0], kernels="torch")
    assert stepped(step, batches) == eager(twin, Counting(twin.parameters(), lr=0.1), batches)
    assert same(model.state_dict(), twin.state_dict())


def test_a_step_in_halves_accumulates_and_clips_as_pytorch_does() -> None:
    model, batches = net(), data(4)
    twin = copy.deepcopy(model)
    optimizer, other = adamw(model.parameters()), adamw(twin.parameters())
    step = TrainStep(model, F.cross_entropy, optimizer, example=batches[0], budget="smallest", kernels="torch", target=CARD, effort=5)
    losses: list[list[float]] = []
    for module, update, backward in ((model, step.update, step.forward_backward), (twin, other.step, None)):
        torch.manual_seed(5)
        losses.append([])
        for part in (batches[:2], batches[2:]):
            for x, y in part:
                loss = F.cross_entropy(module(x), y) if backward is None else backward(x, y)
                if backward is None:
                    loss.backward()
                losses[-1].append(loss.item())
            nn.utils.clip_grad_value_(module.parameters(), 0.01)
            update()
            assert backward is None or all(p.grad is None for p in module.parameters())
            module.zero_grad()
    assert losses[0] == losses[1]
    assert step.steps == 2 and same(everything(model, optimizer), everything(twin, other))
    # A whole step goes on from there, with state on the host.
    assert stepped(step, batches[:1]) == eager(twin, other, batches[:1])


def test_a_closure_of_lbfgs_computes_its_losses() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 10))
    twin, (x, y) = copy.deepcopy(model), data(1)[0]
    optimizer, other = (torch.optim.LBFGS(m.parameters(), lr=0.1, max_iter=4) for m in (model, twin))
    step = TrainStep(model, F.cross_entropy, optimizer, example=(x, y), kernels="torch")

    def ours() -> Tensor:
        optimizer.zero_grad()
        return step.forward_backward(x, y)

    def theirs() -> Tensor:
        other.zero_grad()
        loss = F.cross_entropy(twin(x), y)
        loss.backward()
        return loss

    for _ in range(2):
        assert step.update(ours).item() == other.step(theirs).item()
    assert same(model.state_dict(), twin.state_dict())
    with pytest.raises(lmsc.InputError, match="LBFGS computes losses itself: call `update"):
        step(x, y)


def test_evaluation_keeps_to_the_budget_and_leaves_the_model_alone() -> None:
    model, batches = net(), data()
    step = TrainStep(model, F.cross_entropy, adamw(model.parameters()), example=batches[0], budget="smallest", kernels="torch", target=CARD, effort=5)
    stepped(step, batches)
    before = copy.deepcopy(model.state_dict())
    found = step.evaluate(batches[0][0][:32])
    assert model.training and not found.requires_grad and same(before, model.state_dict())
    step.sync()
    with torch.no_grad():
        assert torch.equal(found, model.eval()(batches[0][0][:32]))
    (graph,) = step._evaluations.values()
    assert graph.plan.budget == step.plan.budget >= graph.plan.peak_after


def test_a_run_goes_on_from_a_checkpoint_with_the_same_dropout(tmp_path: Path) -> None:
    model, batches = net(), data()
    step = TrainStep(
        model, F.cross_entropy, adamw(model.parameters()), example=batches[0], budget="smallest", kernels="torch", target=CARD, ema=0.9, effort=5
    )
    stepped(step, batches[:2])
    step.save(tmp_path / "step.pt")
    wanted = [float(step(*batch)) for batch in batches]
    other = net()
    again = TrainStep(other, F.cross_entropy, adamw(other.parameters()), example=batches[0], kernels="torch", ema=0.9)
    again.resume(tmp_path / "step.pt")
    assert [float(again(*batch)) for batch in batches] == wanted
    assert again.steps == step.steps == 5 and same(step.state_dict(), again.state_dict()) and same(step.ema(), again.ema())
    state = again.state_dict()
    del state["variables"]["3.bias"]
    before = copy.deepcopy(other.state_dict())
    with pytest.raises(lmsc.InputError, match="lacks 1 variables of the step, `3.bias` first"):
        again.load_state_dict(state)
    assert same(before, other.state_dict())


class _Fails(torch.autograd.Function):
    """Fails in backward where it is told to."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return torch.ops.lmsctests.fail(g)


FAILING = [False]


@torch.library.custom_op("lmsctests::fail", mutates_args=())
def _fail(x: Tensor) -> Tensor:
    if FAILING[0]:
        raise RuntimeError("out of memory, say")
    return x.clone()


_fail.register_fake(torch.empty_like)


def test_a_step_that_fails_leaves_values_in_all_tensors() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = layer(x).tanh()
            return _Fails.apply(x)

    torch.manual_seed(0)
    model, batches = Model(), data()
    step = TrainStep(model, F.cross_entropy, adamw(model.parameters()), example=batches[0], budget="smallest", kernels="torch", target=CARD, effort=5)
    before = copy.deepcopy(model.state_dict())
    FAILING[0] = True
    try:
        with pytest.raises(RuntimeError, match="out of memory"):
            step(*batches[0])
    finally:
        FAILING[0] = False
    assert same(before, model.state_dict()) and step.steps == 0
    twin = copy.deepcopy(model)
    assert stepped(step, batches) == eager(twin, adamw(twin.parameters()), batches)


Damage = Callable[[Any], None]


def _without(target: Any) -> Damage:
    def damage(graph: Any) -> None:
        node = graph.find_nodes(op="call_function", target=target)[-1]
        node.replace_all_uses_with(node.args[0])
        graph.erase_node(node)

    return damage


def _another_state(graph: Any) -> None:
    """An update gets the state in the wrong order."""
    update = next(n for n in reversed(graph.find_nodes(op="call_function", target=torch.ops.lmsc.update.default)) if len(n.args[2]) > 1)
    weights, gradients, state, number = update.args
    update.args = (weights, gradients, list(reversed(state)), number)


@pytest.mark.parametrize("damage", [
    _without(torch.ops.lmsc.keep.default), _without(torch.ops.lmsc.update.default), _without(torch.ops.aten.copy_.default), _another_state,
])  # fmt: skip
def test_a_graph_that_is_written_wrongly_is_not_run(damage: Damage, monkeypatch: pytest.MonkeyPatch) -> None:
    write = StepWriter.write

    def wrong(self: StepWriter) -> Any:
        graph, rest = write(self)
        damage(graph.graph)
        return graph, rest

    model, batches = net(), data()
    monkeypatch.setattr(StepWriter, "write", wrong)
    with pytest.raises(Unsound):
        TrainStep(model, F.cross_entropy, adamw(model.parameters()), example=batches[0], budget="smallest", kernels="torch", target=CARD, effort=5)


def test_an_update_after_which_the_old_weight_is_read_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    check = StepChecker.check_step

    def kept(self: StepChecker, graph: Any, rests: Any, returned: Any) -> None:
        check(self, graph, rests, returned)
        found.append((self.joint, self.outputs[0], graph, rests, returned))

    monkeypatch.setattr(StepChecker, "check_step", kept)
    model, batches = net(), data()
    TrainStep(model, F.cross_entropy, adamw(model.parameters()), example=batches[0], kernels="torch")
    joint, outputs, graph, rests, returned = found[0]
    reader = graph.find_nodes(op="call_function", target=torch.ops.aten.addmm.default)[-1]
    weight = reader.args[2].args[0]
    update = next(user for user in weight.users if user.target is torch.ops.lmsc.update.default)
    with graph.inserting_after(update):
        graph.node_copy(reader)
    with pytest.raises(Unsound):
        check(StepChecker(joint, outputs), graph, rests, returned)


def test_what_has_no_meaning_is_refused_by_name() -> None:
    model, batches = net(), data(1)
    made = lambda **options: TrainStep(model, F.cross_entropy, adamw(model.parameters()), example=batches[0], **options)  # noqa: E731
    for options, text in (
        ({"seed": 1}, "`seed` has no meaning with kernels=\"torch\""), ({"cache": "plans"}, "`cache` has no meaning"),
        ({"planner": "auto"}, "option 'planner': with kernels=\"torch\""), ({"device": "cuda+graph"}, "no device `cuda"), ({"budget": "1KiB"}, "does not fit 1KiB"),
    ):  # fmt: skip
        with pytest.raises((lmsc.InputError, lmsc.Refusal), match=text):
            made(kernels="torch", **options)
    with pytest.raises(lmsc.InputError, match='kernels=\'jax\': "lmsc", or "torch"'):
        made(kernels="jax")
    step = made(kernels="torch")
    for name in ("session", "compiled"):
        with pytest.raises(lmsc.InputError, match='with kernels="torch"'):
            getattr(step, name)
    with pytest.raises(TypeError, match="is not copied"):
        copy.deepcopy(step)
    foreign = torch.optim.SGD([nn.Parameter(torch.zeros(3))], lr=0.1)
    with pytest.raises(CaptureError, match="the model has not"):
        TrainStep(model, F.cross_entropy, foreign, example=batches[0], kernels="torch")


def test_the_kernels_of_lmsc_have_no_halves() -> None:
    model, (x, y) = nn.Linear(64, 10), data(1)[0]
    step = TrainStep(model, F.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.1), example=(x, y))
    for call in (lambda: step.forward_backward(x, y), step.update, lambda: step.evaluate(x)):
        with pytest.raises(lmsc.InputError, match='kernels="torch"'):
            call()


def test_plans_are_saved_as_pages(tmp_path: Path) -> None:
    model, (x, y) = nn.Linear(64, 10), data(1)[0]
    for kernels in ("lmsc", "torch"):
        step = TrainStep(model, F.cross_entropy, torch.optim.SGD(model.parameters(), lr=0.1), example=(x, y), budget="1x", kernels=kernels)
        step.plan.save(tmp_path / "plan.html")
        page = (tmp_path / "plan.html").read_text()
        assert "<svg" in page and "budget" in page and step._repr_html_() in page
        assert f"TrainStep of Linear on {'cpu' if kernels == 'torch' else 'host'}: 0 steps" in repr(step).replace("TorchStep", "TrainStep")


def test_fit_finds_the_cards_and_batches_of_a_module() -> None:
    with torch.device("meta"):
        model = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(16)))
    example = torch.empty(8, 4096, device="meta"), torch.empty(8, 4096, device="meta")
    found = fit(model, F.mse_loss, adamw(model.parameters()), example, gpus=["t4"], batches=[8, 40_000, 400_000], effort=1)
    assert isinstance(found, Fit) and [(r.batch, r.fits) for r in found.rows] == [(8, "as it is"), (40_000, "with a plan"), (400_000, "no")]
    assert found.largest("t4") == 40_000 and found.rows[1].peak_bytes <= found.rows[1].gpu_bytes < found.rows[1].needed_bytes
    assert "40000  with a plan" in str(found) and "largest batch tried that fits: 40000" in str(found)
    with pytest.raises(lmsc.InputError, match="`batches` are whole numbers from 1 on, not 0"):
        fit(model, F.mse_loss, adamw(model.parameters()), example, batches=[0])


@pytest.mark.parametrize(("begin", "end"), [("### PyTorch's kernels\n", "### Habits"), ("## fit\n", "## lmsc.compile")])
def test_the_page_does_what_it_shows(begin: str, end: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs/pytorch.md").read_text().split(begin)[1].split(end)[0]
    names: dict[str, object] = {}
    for language, code in re.findall(r"^```(python|text)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(code, "pytorch.md", "exec"), names)
        else:
            printed = capsys.readouterr().out
            assert re.fullmatch("".join(".*".join(map(re.escape, line.split("..."))) + "\n" for line in code.splitlines()), printed), printed


def test_a_tensor_of_a_closure_may_change_in_each_step() -> None:
    model, batches = nn.Linear(64, 10), data(3) * 4
    twin, losses = copy.deepcopy(model), []
    for module, ours in ((model, True), (twin, False)):
        weight, optimizer = torch.tensor(1.0), adamw(module.parameters())
        loss = lambda z, y, weight=weight: weight * F.cross_entropy(z, y)  # noqa: E731
        step = TrainStep(module, loss, optimizer, example=batches[0], kernels="torch", max_shapes=1) if ours else None
        losses.append([])
        for x, y in batches:
            if step is None:
                optimizer.zero_grad()
                value = loss(module(x), y)
                value.backward()
                optimizer.step()
            else:
                value = step(x, y)
            losses[-1].append(value.item())
            weight.mul_(0.9)
    assert losses[0] == losses[1]


def test_a_sparse_gradient_is_refused_by_name() -> None:
    model, example = nn.Embedding(10, 4, sparse=True), (torch.randint(0, 10, (4,)), torch.zeros(1))
    with pytest.raises(CaptureError, match="a sparse gradient"):
        TrainStep(model, lambda z, y: z.sum(), torch.optim.SGD(model.parameters(), lr=0.1), example=example, kernels="torch")


def test_halves_refuse_hooks_that_would_see_a_part_of_a_sum() -> None:
    model, (x, y) = nn.Linear(64, 10), data(1)[0]
    model.weight.register_post_accumulate_grad_hook(lambda p: None)
    step = TrainStep(model, F.cross_entropy, adamw(model.parameters()), example=(x, y), kernels="torch")
    step.forward_backward(x, y)
    with pytest.raises(lmsc.InputError, match="a hook behind the gradient of `weight` would see a part"):
        step.forward_backward(x, y)


@pytest.fixture(autouse=True)
def _collected() -> Any:
    torch.set_num_threads(1)
    yield
    gc.collect()
