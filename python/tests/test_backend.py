"""`torch.compile(model, backend="lmsc")`: the bits of PyTorch's own graphs, within the bytes of the plan."""

from __future__ import annotations

import copy
import functools
import gc
import json
import logging
import re
import subprocess
import sys
import time
import tomllib
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lmsc
import lmsc.torch
import pytest
import torch
from backend_models import MODELS, Layers, Model, WithLoss, labels, rows
from backend_tools import Meter, compiled, difference, train
from lmsc.torch import backend as lmsc_backend
from lmsc.torch.backend import measured, planning, steps
from lmsc.torch.backend.write import Writer
from torch import nn

HERE = Path(__file__).parent

# With a slow link operators run again instead of being copied.
SLOW = """
name = "slow"
description = "A device behind a slow link"
kernels = "host"
device_bytes = "1GiB"
host_bytes = "8GiB"
alignment_bytes = 64
page_bytes = "64KiB"
[link]
duplex = "full"
out_bytes_per_second = 1e8
in_bytes_per_second = 1e8
out_beside_in_bytes_per_second = 1e8
in_beside_out_bytes_per_second = 1e8
latency_nanos = 1000
[compute]
multiprocessors = 2
memory_bytes_per_second = 40e9
launch_nanos = 1000
[compute.flops_per_second]
float64 = 0.27e12
float32 = 0.54e12
float16 = 0.54e12
bfloat16 = 0.54e12
"""


@pytest.fixture(autouse=True)
def _threads() -> Any:
    torch.set_num_threads(1)
    yield
    torch._dynamo.reset()
    gc.collect()


@pytest.fixture
def slow(tmp_path: Path) -> str:
    path = tmp_path / "slow.toml"
    path.write_text(SLOW)
    return str(path)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The plans that are made."""
    found: list[Any] = []
    keep = lmsc_backend._Compilation._keep
    monkeypatch.setattr(lmsc_backend._Compilation, "_keep", lambda self, plan: (found.append(plan), keep(self, plan))[1])
    return found


def trained(model: Model, budget: str, **options: Any) -> Any:
    """As `train`, within the budget or, where that is refused, the smallest."""
    try:
        with Meter() as meter:
            return train(model, compiled(model, lmsc_backend.backend, budget=budget, **options), meter)
    except lmsc.Refusal as refusal:
        assert refusal.smallest_budget > refusal.budget
        return trained(model, "smallest", **options)


# A step of each kind: the same bits, within the planned bytes.



@pytest.mark.parametrize("name", MODELS)
def test_a_step_within_a_budget_has_the_bits_of_aot_eager(name: str, slow: str, made: list[Any]) -> None:
    model = MODELS[name]()
    want = train(model, compiled(model, "aot_eager"))
    found = trained(model, "0.6x", target=slow)
    assert difference(want, found) is None
    assert made
    if name != "graph_break":  # Its graphs are alive at once.
        assert found[2] <= 1.02 * made[-1].peak


def test_nothing_moves_where_everything_fits(made: list[Any]) -> None:
    model = MODELS["dropout"]()
    want = train(model, compiled(model, "aot_eager"))
    assert difference(want, trained(model, "1.0x")) is None
    assert not made[0].out and not made[0].again


def test_random_operators_run_again_with_the_state_of_their_first_run(slow: str, made: list[Any]) -> None:
    model = MODELS["encoder"]()
    want = train(model, compiled(model, "aot_eager"))
    assert difference(want, trained(model, "0.6x", target=slow)) is None
    assert made[-1].random_again > 0


def test_batch_norm_runs_again_without_its_statistics(slow: str, made: list[Any]) -> None:
    model = MODELS["batch_norm"]()
    want = train(model, compiled(model, "aot_eager"))
    found = trained(model, "0.6x", target=slow)
    assert difference(want, found) is None
    assert any("batch_norm" in node for node in made[-1].again)


def test_a_repeat_of_a_batch_norm_gives_no_statistics(slow: str, made: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # The batch norm runs at its place, although nobody reads it there, and again.
    monkeypatch.setattr(planning, "later", lambda *_: None)
    torch.manual_seed(0)
    net = nn.Sequential(nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.Dropout(0.2), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 5))
    model = Model(WithLoss(net), lambda i: (rows(i).requires_grad_(), labels(i)))
    for model in (model, MODELS["batch_norm_twice"]()):
        want = train(model, compiled(model, "aot_eager"))
        for target in ("host", slow):
            made.clear()
            assert difference(want, trained(model, "smallest", target=target)) is None
            assert any("batch_norm" in node for node in made[-1].again)


def test_each_size_has_a_plan_of_its_own(made: list[Any]) -> None:
    model = MODELS["growing_batch"]()
    trained(model, "0.7x")
    assert [plan.symbolic for plan in made] == [True] * 3
    assert made[0].peak < made[1].peak < made[2].peak


def test_a_backward_pass_that_runs_twice_adds_its_gradients() -> None:
    model = Layers()
    run = torch.compile(model, backend=lmsc_backend.backend, options={"budget": "1x"})
    loss = run(rows(0)).square().mean()
    loss.backward(retain_graph=True)
    once = model.layers[0].weight.grad.clone()
    loss.backward()
    assert torch.equal(model.layers[0].weight.grad, 2 * once)


# Habits of loops. Where `aot_eager` is wrong itself, eager is the measure.


def grown(model: nn.Module, how: Any, feed: Any) -> list[torch.Tensor]:
    """The parameters after two steps; `feed(call, i)` gives the loss of step i, and may act like a loop before the backward."""
    model = copy.deepcopy(model)
    call, optimizer = how(model), torch.optim.SGD(model.parameters(), 0.1)
    for i in range(2):
        optimizer.zero_grad()
        torch.manual_seed(i)
        feed(call, i).backward()
        optimizer.step()
    return [value.detach().clone() for value in model.state_dict().values()]


def assert_as_in_eager(model: nn.Module, feed: Any) -> None:
    want = grown(model, lambda module: module, feed)
    for budget in ("0.7x", "smallest"):
        torch._dynamo.reset()
        how = functools.partial(torch.compile, backend=lmsc_backend.backend, options={"budget": budget})
        try:
            found = grown(model, how, feed)
        except lmsc.Refusal:
            continue
        for one, other in zip(want, found, strict=True):
            torch.testing.assert_close(other, one)


class Bent(Layers):
    """Its first operators keep nothing of the input for the backward pass."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.sigmoid().sign() * 0.5 + x.cos())


@pytest.mark.parametrize("way", ["in place", "behind autograd"])
def test_a_batch_that_is_filled_anew_before_the_backward_pass_is_not_read_again(way: str) -> None:
    batch = torch.empty(128, 64)
    memory = batch.numpy()

    def feed(call: Any, i: int) -> torch.Tensor:
        batch.copy_(rows(i))
        loss = call(batch).square().mean()
        if way == "in place":
            batch.copy_(rows(i + 1))
        else:
            memory[:] = 0
        return loss

    assert_as_in_eager(Bent(), feed)


@pytest.mark.parametrize("way", ["in place", "behind autograd"])
def test_a_result_that_the_caller_changes_before_the_backward_pass_is_not_read_again(way: str) -> None:
    class Scores(Layers):
        def forward(self, x: torch.Tensor) -> Any:
            scores = super().forward(x) * 2.0
            return nn.functional.cross_entropy(scores, torch.arange(len(x)) % 5), scores

    def feed(call: Any, i: int) -> torch.Tensor:
        loss, scores = call(rows(i))
        (scores if way == "in place" else scores.data).add_(3.0)
        return loss

    assert_as_in_eager(Scores(), feed)


def test_a_counter_that_the_step_advances_has_the_value_of_the_forward_pass_in_the_backward_pass() -> None:
    """PyTorch's own partitioner computes it again from the counter that has advanced."""

    class Counting(Layers):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("steps", torch.zeros((), dtype=torch.long))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.steps += 1
            return super().forward(x) / self.steps

    assert_as_in_eager(Counting(), lambda call, i: call(rows(i)).square().mean())


def test_ragged_rows_are_planned() -> None:
    def feed(call: Any, i: int) -> torch.Tensor:
        ragged = torch.nested.nested_tensor([rows(i, 50), rows(i + 1, 90)], layout=torch.jagged)
        return call(ragged).values().square().mean()

    assert_as_in_eager(nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)), feed)


# Budgets, options, refusals.


def test_a_refusal_is_one_sentence_with_the_smallest_budget() -> None:
    run = torch.compile(WithLoss(Layers()), backend=lmsc_backend.backend, options={"budget": "100KiB"})
    for _ in range(2):
        with pytest.raises(lmsc.Refusal) as caught:
            run(rows(0), labels(0))
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 250
        assert caught.value.smallest_budget > caught.value.budget == 100 << 10
        assert caught.value.code in str(caught.value)
    torch._dynamo.reset()
    fits = torch.compile(WithLoss(Layers()), backend=lmsc_backend.backend, options={"budget": caught.value.smallest_budget})
    fits(rows(0), labels(0)).backward()


def test_a_bound_on_time_finds_the_smallest_memory(made: list[Any], slow: str) -> None:
    for budget in ("0% slower", "30% slower", "smallest"):
        torch._dynamo.reset()
        run = torch.compile(WithLoss(Layers()), backend=lmsc_backend.backend, options={"budget": budget, "target": slow})
        run(rows(0), labels(0)).backward()
    still, slower, smallest = made
    assert still.seconds <= still.seconds_as_it_is and slower.seconds <= 1.3 * slower.seconds_as_it_is
    assert still.peak > slower.peak > smallest.peak


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, "budget"),
        ({"budget": "3 slower"}, "3% slower"),
        ({"budget": "lots"}, "lots"),
        ({"budget": "1GiB", "speed": 3}, "speed"),
        ({"budget": "1GiB", "inner": "tvm"}, "inner"),
        ({"budget": "1GiB", "offload_parameters": True}, "moves parameters"),
        ({"budget": "1GiB", "effort": -1}, "effort"),
        ({"budget": "1GiB", "target": "abacus"}, "abacus"),
        ({"budget": "1GiB", "profile": "host"}, "profile"),
        ({"budget": "1GiB", "profile": True, "inner": "inductor"}, "Inductor's kernels are not measured"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: dict[str, Any], named: str) -> None:
    run = torch.compile(Layers(), backend=lmsc_backend.backend, options=options)
    with pytest.raises(lmsc.InputError, match=named):
        run(rows(0))


def test_measured_times_are_kept_and_give_the_same_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model, asked = MODELS["dropout"](), {"budget": "smallest", "profile": True}
    (modelled,) = lmsc.torch.plan(model.module, model.batch(0), "smallest")
    torch._dynamo.reset()
    state = torch.get_rng_state()
    (first,) = lmsc.torch.plan(model.module, model.batch(0), **asked)
    assert torch.equal(state, torch.get_rng_state())
    (file,) = (tmp_path / "lmsc").iterdir()
    seconds = json.loads(file.read_text())["seconds"]
    assert {key.split("(")[0] for key in seconds} >= {"aten.addmm.default", "aten.mm.default", "aten.gelu.default", "aten.gelu_backward.default"}
    assert all(0 < value < 10 for value in seconds.values()) and len(seconds) < first.operators
    assert (first.target, first.as_it_is) == ("host, measured", modelled.as_it_is) and first.seconds != modelled.seconds
    want = train(model, compiled(model, "aot_eager"))
    with monkeypatch.context() as patch:
        patch.setattr(measured.Times, "_measured", lambda self, node: pytest.fail("measured twice"))
        assert difference(want, train(model, compiled(model, lmsc_backend.backend, **asked))) is None
    again = lmsc.torch.plans()[-1]
    assert (again.peak, again.out, again.seconds) == (first.peak, first.out, first.seconds)
    for text in ("{", "[]", '{"of": 3}'):
        file.write_text(text)
        assert measured.Times(torch.device("cpu")).seconds == {}


def test_resident_bytes_are_told_and_part_of_the_budget(made: list[Any]) -> None:
    model = WithLoss(Layers())
    torch.compile(model, backend=lmsc_backend.backend, options={"budget": "smallest"})(rows(0), labels(0)).backward()
    (plan,) = made
    parameters = sum(p.untyped_storage().nbytes() for p in model.parameters())
    inputs = rows(0).nbytes + labels(0).nbytes
    # The classifier's bias is not read by the graph's problem, yet it is there.
    assert plan.resident == parameters + inputs
    assert plan.peak <= plan.budget and f"{planning.size(plan.resident)} are parameters and inputs" in str(plan)


def test_plans_lists_what_is_in_force_and_a_compilation_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    model, before = Layers(), lmsc.torch.plans()
    logged: list[str] = []
    monkeypatch.setattr(logging.getLogger("lmsc.torch"), "info", lambda line, *args: logged.append(line % args))
    run = torch.compile(model, backend=lmsc_backend.backend, options={"budget": "1x"})
    run(rows(0))
    assert logged == [str(plan) for plan in lmsc.torch.plans() if plan not in before] and len(logged) == 1


def test_plans_of_a_model_are_its_own() -> None:
    one, other, small = Layers(), Layers(), nn.Linear(4, 4)
    asked = {"budget": "1x"}
    for model, batch in ((one, rows(0)), (other, rows(0)), (small, torch.ones(2, 4))):
        torch.compile(model, backend=lmsc_backend.backend, options=asked)(batch)
    of = [lmsc.torch.plans(model) for model in (one, other, small)]
    assert [len(plans) for plans in of] == [1, 1, 1]
    # PyTorch runs one graph for both models of a class.
    assert of[0][0] is of[1][0] is not of[2][0]
    assert lmsc.torch.plans(torch.compile(one)) == of[0] and lmsc.torch.plans(nn.Linear(4, 4)) == []
    parameter = weakref.ref(one.layers[0].weight)
    del one, model
    gc.collect()
    assert parameter() is None


def test_first_runs_that_nobody_reads_come_at_their_first_use(slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS["bags"]()
    asked = {"budget": "0.6x", "target": slow}
    want = train(model, compiled(model, "aot_eager"))
    with Meter() as meter:
        run = compiled(model, lmsc_backend.backend, **asked)
        found = train(model, run, meter)
    assert difference(want, found) is None
    (late,) = lmsc.torch.plan(model.module, model.batch(0), **asked)
    assert found[2] <= 1.02 * late.peak
    torch._dynamo.reset()
    monkeypatch.setattr(planning, "later", lambda *_: None)
    (first,) = lmsc.torch.plan(model.module, model.batch(0), **asked)
    assert (late.budget, late.as_it_is) == (first.budget, first.as_it_is) and late.seconds < 0.9 * first.seconds


def test_plans_are_a_table_a_picture_and_a_page(tmp_path: Path) -> None:
    found = lmsc.torch.plan(MODELS["graph_break"]().module, MODELS["graph_break"]().batch(0), "smallest")
    head, *rows = str(found).splitlines()
    assert head.split() == "graph operators as it is budget beside planned resident leave run again slower".split()
    assert len(rows) == len(found) > 1 and len({len(row) for row in (head, *rows)}) == 1
    assert all(plan.name in row and planning.size(plan.peak) in row for plan, row in zip(found, rows, strict=True))
    found.save(tmp_path / "plans.html")
    page = (tmp_path / "plans.html").read_text()
    assert page.count("<svg") == len(found) and rows[-1] in page


def test_a_plan_can_be_looked_at_first() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Dropout(0.5), nn.Linear(64, 64))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = torch.get_rng_state()
    (plan,) = lmsc.torch.plan(model, rows(0), "0.9x")
    assert plan.peak <= plan.budget < plan.as_it_is
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(state, torch.get_rng_state())


def test_the_package_names_the_backend_for_torch(tmp_path: Path) -> None:
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    points = project["entry-points"]["torch_dynamo_backends"]
    assert points == {"lmsc": "lmsc.torch.backend:backend"}
    # As an installed package has it, found without an import of lmsc.
    info = tmp_path / "lmsc-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lmsc\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[torch_dynamo_backends]\nlmsc = {points['lmsc']}\n")
    package = Path(lmsc.__file__).parents[1]
    program = (
        f"import sys; sys.path[:0] = {[str(tmp_path), str(package)]}\n"
        "import torch\n"
        "run = torch.compile(torch.nn.Linear(8, 8), backend='lmsc', options={'budget': '1x'})\n"
        "run(torch.randn(4, 8)).sum().backward()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# The checker finds a writer's errors. Each mutation is planted in the writer, and none of the graphs runs.


def planted(name: str, options: dict[str, Any]) -> Any:
    model = MODELS[name]()
    torch._dynamo.reset()
    run = torch.compile(model.module.train(), backend=lmsc_backend.backend, options=options)
    return run(*model.batch(0))


def after(monkeypatch: pytest.MonkeyPatch, change: Any) -> list[int]:
    """Changes the graphs that the writer has written; returns a list that has an entry once something was changed."""
    write, done = Writer.write, []

    def wrong(self: Writer) -> Any:
        graphs = write(self)
        if change(*(graph.graph for graph in graphs)):
            done.append(1)
        return graphs

    monkeypatch.setattr(Writer, "write", wrong)
    return done


def calls(graph: Any, *targets: Any) -> list[Any]:
    return [node for node in graph.nodes if node.op == "call_function" and (not targets or node.target in targets)]


def other_saved_tensor(forward: Any, backward: Any) -> bool:
    """Two saved tensors of the same shape change places."""
    output = next(iter(forward.find_nodes(op="output")))
    results = list(output.args[0])
    shapes = [getattr(node.meta.get("val"), "shape", None) if node is not None else None for node in results]
    for i in range(1, len(results)):
        for j in range(i + 1, len(results)):
            if shapes[i] is not None and shapes[i] == shapes[j] and results[i] is not results[j]:
                results[i], results[j] = results[j], results[i]
                output.args = (tuple(results),)
                return True
    return False


def same_name(forward: Any, backward: Any) -> bool:
    """An input has the target of another value."""
    first, second = list(backward.find_nodes(op="placeholder"))[:2]
    second.target = first.name
    return True


def other_operand(forward: Any, backward: Any) -> bool:
    """An operator reads another value of the same shape."""
    for node in reversed(calls(backward)):
        others = [n for n in backward.find_nodes(op="placeholder") if n not in node.all_input_nodes]
        for operand in node.all_input_nodes:
            for other in others:
                shapes = [getattr(n.meta.get("val"), "shape", None) for n in (operand, other)]
                if shapes[0] is not None and shapes[0] == shapes[1]:
                    node.replace_input_with(operand, other)
                    return True
    return False


def other_number(forward: Any, backward: Any) -> bool:
    """A constant of an operator changes."""
    for node in calls(forward):
        for place, argument in enumerate(node.args):
            if isinstance(argument, float):
                node.update_arg(place, argument / 2)
                return True
    return False


def drawn_anew(forward: Any, backward: Any) -> bool:
    """A repeat draws new numbers."""
    from torch._prims.rng_prims import run_with_rng_state

    for node in calls(backward, run_with_rng_state):
        node.target, node.args = node.args[1], tuple(node.args[2:])
        return True
    return False


def other_state(forward: Any, backward: Any) -> bool:
    """A repeat draws with the state of another operator."""
    from torch._prims.rng_prims import run_with_rng_state

    again = calls(backward, run_with_rng_state)
    if len(again) < 2:
        return False
    again[0].update_arg(0, again[1].args[0])
    return True


def order_of_draws(forward: Any, backward: Any) -> bool:
    """Two random operators change places."""
    from torch._functorch.partitioners import is_rng_op

    drawing = [node for node in calls(forward) if is_rng_op(node)]
    for first, second in zip(drawing, drawing[1:], strict=False):
        if not set(second.all_input_nodes) - set(forward.find_nodes(op="placeholder")):
            first.prepend(second)
            return True
    return False


def not_waited_for(forward: Any, backward: Any) -> bool:
    """The copy on the host is read as if it were back."""
    for node in calls(backward, torch.ops.lmsc.reload.default):
        node.replace_all_uses_with(node.args[0])
        return True
    return False


def other_copy(forward: Any, backward: Any) -> bool:
    """Another tensor comes back."""
    returns = calls(backward, torch.ops.lmsc.reload.default)
    pairs = [(a, b) for a in returns for b in returns if a.args[0] is not b.args[0] and a.meta["val"].shape == b.meta["val"].shape]
    for node, other in pairs:
        node.update_arg(0, other.args[0])
        return True
    return False


def kept_too_long(forward: Any, backward: Any) -> bool:
    """Copies come back as soon as the backward pass begins."""
    first = next(node for node in backward.nodes if node.op == "call_function")
    early = [node for node in calls(backward, torch.ops.lmsc.reload.default) if node.args[0].op == "placeholder"]
    for node in early:
        first.prepend(node)
    return bool(early)


def result_lost(forward: Any, backward: Any) -> bool:
    """A gradient is that of another parameter."""
    output = next(iter(backward.find_nodes(op="output")))
    results = list(output.args[0])
    for i, one in enumerate(results):
        for j, other in enumerate(results[:i]):
            if one is not None and other is not None and one.meta["val"].shape == other.meta["val"].shape:
                results[i], results[j] = other, one
                output.args = (tuple(results),)
                return True
    return False


def statistics_of_a_repeat(forward: Any, backward: Any) -> bool:
    """A result of a repeat is read at a place that only the first run has."""
    for node in calls(backward, torch.ops.aten._native_batch_norm_legit.no_stats):
        next(iter(node.users)).update_arg(1, 3)
        return True
    return False


MUTATIONS = [
    (other_saved_tensor, "dropout"),
    (same_name, "dropout"),
    (other_operand, "dropout"),
    (other_number, "dropout"),
    (drawn_anew, "encoder"),
    (other_state, "encoder"),
    (order_of_draws, "noise"),
    (not_waited_for, "scan"),
    (other_copy, "plain"),
    (kept_too_long, "encoder"),
    (result_lost, "plain"),
    (statistics_of_a_repeat, "batch_norm"),
]


@pytest.mark.parametrize(("mutation", "name"), MUTATIONS, ids=lambda value: getattr(value, "__name__", value))
def test_a_mistake_of_the_writer_is_found(mutation: Any, name: str, slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = after(monkeypatch, mutation)
    options = {"budget": "0.6x", "target": slow} if name == "encoder" and mutation is not kept_too_long else {"budget": "smallest"}
    try:
        planted(name, options)
    except lmsc_backend.Unsound:
        assert done
    else:
        pytest.fail("not found" if done else "the mutation found no place")


def test_threads_may_call_a_graph_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batches = Layers(), [rows(i) for i in range(4)]
    want = [torch.autograd.grad(model(x).square().sum(), list(model.parameters())) for x in batches]
    run = torch.compile(model, backend=lmsc_backend.backend, options={"budget": "smallest"})
    run(batches[0]).sum().backward()
    is_divided = steps._is_divided
    # The first calls of all threads meet while the step is divided.
    monkeypatch.setattr(steps, "_is_divided", lambda chain: (time.sleep(0.05), is_divided(chain))[1])
    with ThreadPoolExecutor(len(batches)) as threads:
        calls = [threads.submit(lambda x: torch.autograd.grad(run(x).square().sum(), list(model.parameters())), x) for x in batches]
    for call, gradients in zip(calls, want, strict=True):
        assert all(map(torch.allclose, call.result(), gradients))


def test_a_copy_from_the_host_takes_the_link_and_runs_again_unless_the_caller_may_change_it() -> None:
    from lmsc.torch.backend.costs import Target
    from lmsc.torch.backend.problem import Problem
    from torch._functorch._aot_autograd.descriptors import ParamAOTInput
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    def step(x: torch.Tensor, weight: torch.Tensor, table: torch.Tensor, tangents: torch.Tensor) -> torch.Tensor:
        y = x @ weight.to(x.device) + table.view(64, 64).to(x.device)
        return y.sin() * tangents

    with FakeTensorMode():
        device = [torch.empty(64, 64, device="cuda") for _ in range(2)]
        host = [torch.empty(64, 64) for _ in range(2)]
        graph = make_fx(step)(device[0], *host, device[1]).graph
    inputs = graph.find_nodes(op="placeholder")
    for node, name in zip(inputs, ("x", "weight", "table", "tangents"), strict=True):
        node.target = name
    inputs[1].meta["desc"] = ParamAOTInput("weight")
    host_target = Target.named("host")
    add = next(node for node in graph.nodes if node.target is torch.ops.aten.add.Tensor)
    problem = Problem(graph, [add], [None], host_target)
    copies = [op for op in problem.ops if op.kind == "run" and op.node.target is torch.ops.aten._to_copy.default]
    assert [op.again for op in copies] == [True, False]
    assert all(op.seconds > 64 * 64 * 4 / host_target.link["in_bytes_per_second"] for op in copies)


@pytest.mark.parametrize("name", ["torch-compile", "gradient-checkpointing", "activation-memory-budget", "torch-faq", "several-gpus"])
def test_the_page_does_what_it_shows(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    from torch._dynamo.backends.registry import list_backends, register_backend

    if "lmsc" not in list_backends():  # The package is not installed, but on the path.
        register_backend(lmsc_backend.backend, name="lmsc")
    page = HERE.parents[1] / f"docs/how-to/{name}.md"
    names: dict[str, Any] = {}
    printed = ""
    for language, code in re.findall(r"^```(python|text)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        if language == "python":
            exec(compile(code, page.name, "exec"), names)
            printed = capsys.readouterr().out
        else:
            assert re.fullmatch(".*".join(re.escape(part) for part in code.split("...")), printed), printed
