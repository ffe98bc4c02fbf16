"""`torch.compile(model, backend="lmsc")` in several processes: the bits of the run without a plan, the same plan everywhere, or the reason."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmsc
import lmsc.torch
import pytest
import torch
import torch.distributed as dist
from lmsc.torch import backend as lmsc_backend
from lmsc.torch.backend import planning
from lmsc.torch.backend.problem import is_collective, is_gather, is_wait
from lmsc.torch.backend.write import Writer
from ranks_worker import sharded
from test_backend import SLOW
from torch import nn
from torch.testing._internal.distributed.fake_pg import FakeStore

HERE = Path(__file__).parent
THOROUGH = pytest.mark.skipif("LMSC_THOROUGH" not in os.environ, reason="takes more than a minute: set LMSC_THOROUGH")
#: Seconds after which processes are taken to hang.
LIMIT = 300


def run(ranks: int, folder: Path, *cases: str) -> dict[tuple[str, int], dict[str, Any]]:
    """The facts of each case and rank."""
    (folder / "slow.toml").write_text(SLOW)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    paths = [str(Path(lmsc.__file__).parents[1]), str(HERE)]
    shared = {"WORLD_SIZE": str(ranks), "MASTER_PORT": str(store.port), "LMSC_FOLDER": str(folder), "OMP_NUM_THREADS": "1"}
    shared |= {"PYTHONPATH": os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, str(HERE / "ranks_worker.py"), *cases]
    outputs = [(folder / f"{rank}.out").open("w+") for rank in range(ranks)]
    errors = [(folder / f"{rank}.err").open("w+") for rank in range(ranks)]
    processes = [
        subprocess.Popen(command, env={**os.environ, **shared, "RANK": str(rank)}, stdout=outputs[rank], stderr=errors[rank])
        for rank in range(ranks)
    ]
    until = time.monotonic() + LIMIT
    try:
        codes: list[int | None] = [None]
        while None in codes:  # The others would wait for a process that has failed.
            codes = [process.poll() for process in processes]
            failed = [rank for rank, code in enumerate(codes) if code not in (None, 0, 9)]
            assert not failed, ((folder / f"{failed[0]}.out").read_text() + (folder / f"{failed[0]}.err").read_text())[-3000:]
            assert time.monotonic() < until, "the processes hang"
            time.sleep(0.1)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    found = {}
    for output in (*outputs, *errors):
        output.seek(0)
        lines = [json.loads(line) for line in output if line.startswith('{"case"')]
        found |= {(facts["case"], facts["rank"]): facts for facts in lines}
        output.close()
    return found


def right(facts: dict[tuple[str, int], dict[str, Any]], counted: tuple[str, ...] = ()) -> None:
    """All ranks have the bits of the run without a plan, and in cases of one graph the bytes of the plan."""
    assert facts
    for (case, rank), found in facts.items():
        assert found.get("same"), (case, rank, found)
        assert found["plans"], (case, rank)
        if case in counted:
            assert found["measured"] <= 1.03 * found["planned"][-1], (case, rank, found)


# Two processes, and three with uneven shards.


def test_two_ranks_have_the_bits_of_the_run_without_a_plan(tmp_path: Path) -> None:
    facts = run(2, tmp_path, *"ddp no_sync fsdp tensor_parallel parallel_loss sharded_tight compiled_again_alone gpipe save".split())
    right(facts, counted=("tensor_parallel", "sharded_tight"))
    for rank in (0, 1):
        found = facts["sharded_tight", rank]
        assert any("all_gather" in name for name in found["again"][0])
        assert found["planned"][0] < found["as_it_is"][0]
    # The smaller last batch of one of them had a plan of its own, with the same collectives.
    assert [facts["compiled_again_alone", rank]["plans"] for rank in (0, 1)] == [1, 2]
    again = run(3, tmp_path, "sharded_tight", "resume", "compiles_nothing")
    for rank in (1, 2):
        found = again.pop(("compiles_nothing", rank))
        assert found["error"] == "Disagreement"
        assert "rank 0 does not within 3 seconds" in found["says"]
    del again["compiles_nothing", 0]
    right(again, counted=("sharded_tight",))


def test_the_graphs_of_each_process_share_its_budget(tmp_path: Path) -> None:
    facts = run(2, tmp_path, "ddp_within")
    right(facts, counted=("ddp_within",))
    for found in facts.values():
        assert found["plans"] > 2 and found["planned"][0] <= found["budget"] < 0.61 * found["as_it_is"]


#: Further modes, by the number of processes and by kind: each group takes some minutes.
FURTHER = {
    "ddp": (2, "ddp_inside ddp_one_graph ddp_smaller_last ddp_static ddp_unused ddp_hook ddp_python_reducer joined"),
    "fsdp": (2, "fsdp_kept fsdp_whole fsdp_mixed fsdp_policies"),
    "in the graph": (2, "replicated sharded sharded_smallest sharded_all_smaller accumulated two_in_flight"),
    "of activations": (2, "sequence_parallel experts centred"),
    "stages": (2, "1f1b interleaved"),
    "three": (3, "ddp sharded_uneven sharded_smallest tensor_parallel experts gpipe"),
    "four": (4, "ddp fsdp sharded_tight tensor_parallel gpipe 1f1b"),
    "axes": (4, "hybrid sharded_twice fsdp_two_axes fsdp_over_tensor_parallel"),
}
COUNTED = ("replicated", "sharded", "sharded_smallest", "sharded_tight", "sequence_parallel", "experts", "hybrid", "sharded_twice")


@THOROUGH
@pytest.mark.parametrize("kind", FURTHER)
def test_further_modes_have_the_bits_of_the_run_without_a_plan(kind: str, tmp_path: Path) -> None:
    count, cases = FURTHER[kind]
    right(run(count, tmp_path, *cases.split()), counted=COUNTED)


@THOROUGH
def test_a_checkpoint_of_two_ranks_goes_on_with_four(tmp_path: Path) -> None:
    right(run(2, tmp_path, "save"))
    right(run(4, tmp_path, "resume"))


def test_other_steps_are_refused_on_all_ranks_with_the_first_difference(tmp_path: Path) -> None:
    facts = run(2, tmp_path, "other_budget", "other_model", "other_width", "other_versions", "killed_settled_-1")
    for rank in (0, 1):
        assert all(facts[case, rank]["error"] == "Disagreement" for case in ("other_budget", "other_model", "other_width"))
        assert "budget is '0.5x' on rank 0 and '0.6x' on rank 1" in facts["other_budget", rank]["says"]
        assert "operator " in facts["other_model", rank]["says"]
        assert "float32[96,48]" in facts["other_width", rank]["says"]
        assert "float32[120,48]" in facts["other_width", rank]["says"]
        assert "the version of PyTorch is" in facts["other_versions", rank]["says"]
    assert "rank 1 does not within" in facts["killed_settled_-1", 0]["says"]


@THOROUGH
@pytest.mark.parametrize("rank", [0, -1])
@pytest.mark.parametrize("when", ["before", "told", "settled"])
def test_when_a_process_ends_the_others_name_it_within_half_a_minute(when: str, rank: int, tmp_path: Path) -> None:
    facts = run(3, tmp_path, f"killed_{when}_{rank}")
    assert len(facts) == 2
    for found in facts.values():
        assert f"rank {rank % 3} does not within" in found["says"]
        assert found["seconds"] < 30


def test_the_bytes_that_earlier_graphs_hold_and_the_memory_of_hosts_are_agreed(tmp_path: Path) -> None:
    facts = run(2, tmp_path, "other_bytes_before")
    one, other = facts["other_bytes_before", 0], facts["other_bytes_before", 1]
    assert (one["earlier"], one["host"]) == (other["earlier"], other["host"]) == (2000, 8 << 30)
    assert (one["peak"], one["again"]) == (other["peak"], other["again"])


# The checker finds a writer's errors with collectives. The graphs never run.


@pytest.fixture
def group() -> Iterator[None]:
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    dist.destroy_process_group()
    torch._dynamo.reset()


def nodes(graph: Any, kind: Any) -> list[Any]:
    return [node for node in graph.graph.nodes if kind(node)]


def reductions(graph: Any) -> list[Any]:
    return [node for node in nodes(graph, is_collective) if not is_gather(node)]


def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The problems that are planned."""
    found: list[Any] = []
    ask = planning._ask

    def noting(problem: Any, *rest: Any, **named: Any) -> Any:
        found.append(json.loads(problem.instance()[0]))
        return ask(problem, *rest, **named)

    monkeypatch.setattr(planning, "_ask", noting)
    return found


@pytest.mark.parametrize("budget", ["1x", "0.7x", "smallest", "5% slower"])
def test_collectives_run_beside_the_operators_and_are_awaited_in_their_pass(budget: str, group: None, monkeypatch: pytest.MonkeyPatch) -> None:
    write, written = Writer.write, []
    monkeypatch.setattr(Writer, "write", lambda self: (written.append(write(self)), written[-1])[1])
    problems = asked(monkeypatch)
    model = sharded(nn.Sequential(*[nn.Linear(16, 16) for _ in range(4)]))
    torch.compile(model, backend=lmsc_backend.backend, options={"budget": budget, "effort": 5}, fullgraph=True)(torch.randn(64, 16))
    assert len(problems) == 1
    assert problems[0]["format"] == "lmsc-planner-dag-2" and len(problems[0]["on_lane"]) == 16
    beside = 0
    for graph in written[-1]:
        order = {node: place for place, node in enumerate(graph.graph.nodes)}
        for node in nodes(graph, is_collective):
            (wait,) = filter(is_wait, node.users)
            beside += order[wait] - order[node] > 1
    assert beside


def test_the_graph_of_one_of_many_ranks_is_planned_alone() -> None:
    """PyTorch's fake process group makes the graph of one process; nothing is sent."""
    peaks = []
    for count in (8, 64, 1024):
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=count)
        try:
            torch.manual_seed(0)
            model = sharded(nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(3)]), ranks=count)
            (plan,) = lmsc.torch.plan(model, torch.randn(64, 1024), "0.8x", effort=5)
        finally:
            dist.destroy_process_group()
            torch._dynamo.reset()
        assert plan.peak <= plan.budget < plan.as_it_is
        peaks.append(plan.peak)
    assert peaks == sorted(peaks, reverse=True)


def reduced_twice(forward: Any, backward: Any) -> bool:
    first = reductions(backward)[0]
    wait = next(user for user in first.users if is_wait(user))
    with backward.graph.inserting_after(wait):
        again = backward.graph.node_copy(first)
    with backward.graph.inserting_after(again):
        waited = backward.graph.node_copy(wait, lambda _: again)
    wait.replace_all_uses_with(waited)
    return True


def other_order(forward: Any, backward: Any) -> bool:
    first, second = nodes(forward, is_collective)[:2]
    if first in second.all_input_nodes:
        return False
    first.prepend(second)
    return True


def read_before_the_wait(forward: Any, backward: Any) -> bool:
    wait = nodes(forward, is_wait)[0]
    wait.replace_all_uses_with(wait.args[0])
    # Before the waiting, not after it: then the result is there under either name.
    forward.graph.erase_node(wait)
    return True


def saved_before_the_wait(forward: Any, backward: Any) -> bool:
    wait = nodes(forward, is_wait)[-1]
    with forward.graph.inserting_before(wait):
        left = forward.graph.call_function(torch.ops.lmsc.offload.default, (wait.args[0],))
    left.meta["val"] = wait.meta["val"]
    return True


def reduction_left_out(forward: Any, backward: Any) -> bool:
    last = reductions(backward)[-1]
    wait = next(user for user in last.users if is_wait(user))
    wait.replace_all_uses_with(reductions(backward)[0])
    backward.graph.erase_node(wait)
    backward.graph.erase_node(last)
    return True


def gathered_of_another(forward: Any, backward: Any) -> bool:
    first, second = [node for node in nodes(forward, is_gather) if node.meta["val"].shape == (16, 16)][:2]
    second.args = (first.args[0], *second.args[1:])
    return True


MUTATIONS = (reduced_twice, other_order, read_before_the_wait, saved_before_the_wait, reduction_left_out, gathered_of_another)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda value: value.__name__)
def test_a_mistake_with_collectives_is_found(mutation: Any, group: None, monkeypatch: pytest.MonkeyPatch) -> None:
    write, done = Writer.write, []

    def mistaken(self: Writer) -> Any:
        graphs = write(self)
        done.append(mutation(*graphs))
        return graphs

    monkeypatch.setattr(Writer, "write", mistaken)
    model = sharded(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)))
    with pytest.raises(lmsc_backend.Unsound):
        torch.compile(model, backend=lmsc_backend.backend, options={"budget": "1.0x"}, fullgraph=True)(torch.randn(4, 16))
    assert done == [True]
