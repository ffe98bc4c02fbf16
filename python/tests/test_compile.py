"""The guarantees of `lmsc.compile` and `lmsc.Session` to users."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import lmsc
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

STEP = b"""
step (float[4,8] x, float[8,8] w, float[] lr) => (float[] loss, float[8,8] w_new) {
    [forward] float[4,8] h = MatMul(x, w)
    [act] float[4,8] a = Tanh(h)
    [square] float[4,8] s = Mul(a, a)
    [loss] float[] loss = ReduceSum<keepdims = 0>(s)
    [back_a] float[4,8] da = Add(a, a)
    [one] float[4,8] t = Mul(da, s)
    [back_h] float[4,8] dh = Sub(da, t)
    [xt] float[8,4] xt = Transpose<perm = [1, 0]>(x)
    [grad] float[8,8] g = MatMul(xt, dh)
    [scaled] float[8,8] u = Mul(g, lr)
    [update] float[8,8] w_new = Sub(w, u) updates (w as w_new)
}"""

RNG = np.random.default_rng(0)
W = RNG.normal(size=(8, 8)).astype(np.float32) * 0.3
BATCHES = [RNG.normal(size=(4, 8)).astype(np.float32) for _ in range(6)]


def opened(compiled: lmsc.Compiled) -> lmsc.Session:
    session = compiled.session()
    session.set({"w": W, "lr": 0.05})
    return session


def by_numpy(steps: int) -> tuple[list[float], np.ndarray[Any, Any]]:
    w, losses = W.astype(np.float64), []
    for x in BATCHES[:steps]:
        a = np.tanh(x @ w)
        losses.append(float((a * a).sum()))
        w = w - 0.05 * (x.T @ (2 * a * (1 - a * a)))
    return losses, w


def chain() -> Any:
    """Four layers whose activations are large, so that a budget makes them leave."""
    nodes, width = [], 64
    for k in range(4):
        nodes += [helper.make_node("MatMul", [f"a{k}", f"w{k}"], [f"h{k}"]), helper.make_node("Tanh", [f"h{k}"], [f"a{k + 1}"])]
    nodes.append(helper.make_node("ReduceSum", ["a4"], ["loss"], keepdims=0))
    nodes.append(helper.make_node("Add", ["a1", "a2"], ["b1"]))
    nodes.append(helper.make_node("Add", ["b1", "a3"], ["seen"]))
    of = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    inputs = [of("a0", ["batch", width])] + [of(f"w{k}", [width, width]) for k in range(4)]
    graph = helper.make_graph(nodes, "chain", inputs, [of("loss", []), of("seen", ["batch", width])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def test_steps_are_those_of_numpy() -> None:
    session = opened(lmsc.compile(STEP))
    losses = [float(session.step({"x": x})["loss"]) for x in BATCHES]
    want, w = by_numpy(len(BATCHES))
    np.testing.assert_allclose(losses, want, rtol=1e-5)
    np.testing.assert_allclose(session.state()["w"], w, rtol=1e-4, atol=1e-6)
    assert session.steps == 6 and session.outputs == ["loss"] and session.device == "host"
    assert session.inputs["x"] == ("float", (4, 8)) and list(session.variables) == ["w"]


def test_a_model_is_a_path_bytes_or_a_proto(tmp_path: Path) -> None:
    model, path = chain(), tmp_path / "chain.onnx"
    path.write_bytes(model.SerializeToString())
    hashes = {
        lmsc.compile(m, dims={"batch": 512}, budget="0.9x", target="host").report["hash"]
        for m in (path, str(path), model.SerializeToString(), model)
    }
    assert len(hashes) == 1
    with pytest.raises(lmsc.InputError, match="a model is a path"):
        lmsc.compile(3)  # type: ignore[arg-type]


def test_budgets() -> None:
    free = lmsc.compile(chain(), dims={"batch": 512}, target="host")
    peak = free.plan.peak_after
    assert free.plan.budget is None and free.plan.overhead is None and peak == free.plan.peak_before
    for budget in (int(0.85 * peak), "0.85x", f"{0.85 * peak / 1024:.0f}KiB"):
        plan = lmsc.compile(chain(), dims={"batch": 512}, target="host", budget=budget).plan
        assert plan.budget is not None and plan.peak_after <= plan.budget <= 0.86 * peak
        assert plan.bytes_out > 0 or plan.makespan_ms
        assert plan.overhead is not None and plan.overhead >= 0
    assert "before" in str(plan) and "<svg" in plan._repr_html_() and "http" not in plan._repr_html_()


def test_a_plan_changes_no_bit() -> None:
    values = {f"w{k}": RNG.normal(size=(64, 64)).astype(np.float32) / 8 for k in range(4)}
    values["a0"] = RNG.normal(size=(512, 64)).astype(np.float32)
    free = lmsc.compile(chain(), dims={"batch": 512}).session().step(values)
    tight = lmsc.compile(chain(), dims={"batch": 512}, target="host", budget="0.85x").session().step(values)
    assert free.keys() == tight.keys() == {"loss", "seen"}
    assert all(np.array_equal(free[n], tight[n]) for n in free)


def test_a_compiled_step_is_written_and_planned_once(tmp_path: Path) -> None:
    compiled = lmsc.compile(chain(), dims={"batch": 512}, target="host", budget="0.9x")
    compiled.verify()
    compiled.write(tmp_path / "step.onnx")
    compiled.save_plan(tmp_path / "plan.json")
    again = lmsc.compile(chain(), dims={"batch": 512}, target="host", plan=tmp_path / "plan.json")
    assert again.report["hash"] == compiled.report["hash"]
    assert lmsc.compile(tmp_path / "step.onnx", target="host").plan.peak_before == compiled.plan.peak_after


def test_arrays_of_many_kinds() -> None:
    session = opened(lmsc.compile(STEP))
    want = float(session.step({"x": BATCHES[0]})["loss"])

    class Foreign:
        """An array of another library."""

        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    x = BATCHES[0]
    for value in (x.tolist(), np.asfortranarray(x), x.astype(">f4"), np.repeat(x, 2, 1)[:, ::2], Foreign(x.copy())):
        assert float(opened(lmsc.compile(STEP)).step({"x": value})["loss"]) == want


def test_bfloat16() -> None:
    import ml_dtypes

    step = STEP.replace(b"float[", b"bfloat16[")
    session = lmsc.compile(step).session()
    session.set({"w": W.astype(ml_dtypes.bfloat16), "lr": 0.05})
    result = session.step({"x": BATCHES[0].astype(ml_dtypes.bfloat16)})["loss"]
    assert result.dtype == ml_dtypes.bfloat16
    assert abs(float(result) / by_numpy(1)[0][0] - 1) < 0.05


def test_wrong_calls_are_named() -> None:
    session = lmsc.compile(STEP).session()
    with pytest.raises(lmsc.InputError, match="the input `lr` first"):
        session.step({"x": BATCHES[0]})
    for value, why in [
        (BATCHES[0].astype(np.float64), "`x` is double.4,8.; expected float.4,8."),
        (BATCHES[0][:2], "`x` is float.2,8.; expected float.4,8."),
        (np.array(["a"]), "`x`: elements of <U1"),
        ([[1.0], [1.0, 2.0]], "`x` is no array"),
        (object(), "`x` is no array"),
    ]:
        with pytest.raises(lmsc.InputError, match=why):
            session.step({"x": value})
    with pytest.raises(lmsc.InputError, match="takes no `y`"):
        session.set({"y": 1.0})
    with pytest.raises(lmsc.InputError, match="no share"):
        lmsc.compile(STEP, budget="7xx")
    with pytest.raises(lmsc.InputError, match="there is no planner `best`"):
        lmsc.compile(STEP, planner="best")
    with pytest.raises(lmsc.InputError, match="nothing-there.onnx"):
        lmsc.compile("nothing-there.onnx")
    with pytest.raises(lmsc.InputError, match='"tpu"'):
        lmsc.compile(STEP).session("tpu")


def test_malformed_models_are_the_inputs_fault() -> None:
    whole = chain().SerializeToString()
    for data in (b"", b"\0" * 9, b"step (", whole[: len(whole) // 2], whole[:-1], bytes(reversed(whole))):
        with pytest.raises(lmsc.InputError):
            lmsc.compile(data, dims={"batch": 4})


def test_refusals() -> None:
    with pytest.raises(lmsc.Refusal, match="does not fit 100 B") as refusal:
        lmsc.compile(STEP, budget=100, target="host")
    assert refusal.value.budget == 100 and isinstance(refusal.value, lmsc.Error)
    assert refusal.value.code == "LMS0101" and refusal.value.node in str(refusal.value)
    assert refusal.value.needed > 100
    smallest = refusal.value.smallest_budget
    assert lmsc.compile(STEP, budget=smallest, target="host").plan.peak_after <= smallest
    with pytest.raises(lmsc.Refusal):
        lmsc.compile(STEP, budget=smallest - 1, target="host")
    with pytest.raises(lmsc.Refusal) as refusal:
        lmsc.plan(STEP, budget=100, target="host")
    assert (refusal.value.code, refusal.value.smallest_budget) == ("LMS0101", smallest)
    with pytest.raises(lmsc.Refusal, match="CUDA") as refusal:
        lmsc.compile(STEP).session("cuda:63")
    assert refusal.value.code == "LMS0110" and refusal.value.helps and refusal.value.node is None
    with pytest.raises(lmsc.InputError) as wrong:
        lmsc.compile("nothing-there.onnx")
    assert wrong.value.code == "LMS0201"


def test_a_session_goes_on(tmp_path: Path) -> None:
    first = opened(lmsc.compile(STEP))
    for x in BATCHES[:3]:
        first.step({"x": x})
    first.save(tmp_path / "c.safetensors")
    state = first.state()
    rest = [float(first.step({"x": x})["loss"]) for x in BATCHES[3:]]
    second = opened(lmsc.compile(STEP))
    second.load_state(state)
    third = lmsc.compile(STEP, target="host", budget="1.1x").session()
    third.resume(tmp_path / "c.safetensors")
    assert third.steps == 3
    for session in (second, third):
        assert [float(session.step({"x": x})["loss"]) for x in BATCHES[3:]] == rest


def test_results_are_the_callers() -> None:
    session = opened(lmsc.compile(STEP))
    state = session.state()
    state["w"][:] = 0
    assert np.array_equal(session.state()["w"], W)


def test_steps_run_beside_other_threads() -> None:
    model = chain()
    session = lmsc.compile(model, dims={"batch": 4096}).session()
    session.set({f"w{k}": np.zeros((64, 64), np.float32) for k in range(4)})
    session.step({"a0": np.zeros((4096, 64), np.float32)})
    running, turns = threading.Event(), [0]

    def count() -> None:
        while not running.is_set():
            turns[0] += 1
            time.sleep(0)

    other = threading.Thread(target=count)
    other.start()
    for _ in range(20):
        session.step()
    running.set()
    other.join()
    assert turns[0] > 20


LOOP = """
import lmsc, signal, sys
# A shell that starts the tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
session = lmsc.compile(sys.stdin.buffer.read()).session()
session.set({"w": [[0.1] * 8] * 8, "lr": 0.0, "x": [[1.0] * 8] * 4})
print("begun", flush=True)
try:
    while True:
        session.step()
except KeyboardInterrupt:
    session.step()
    print("ended after", session.steps > 0, flush=True)
"""


def test_ctrl_c_ends_a_loop_after_a_step(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path)
    assert process.stdin and process.stdout
    process.stdin.write(STEP)
    process.stdin.close()
    assert process.stdout.readline() == b"begun\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.stdout.read() == b"ended after True\n"
    assert process.wait(20) == 0


def test_the_command_comes_with_the_package(tmp_path: Path) -> None:
    (tmp_path / "step.lms").write_bytes(STEP)
    command = [os.path.join(os.path.dirname(sys.executable), "lmsc")]
    run = subprocess.run([*command, "run", "step.lms", "--steps", "2"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0 and "step 2: loss" in run.stdout, run.stderr
    wrong = subprocess.run([*command, "nothing.onnx", "--budget", "1GiB"], capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "nothing.onnx" in wrong.stderr


def test_commands_as_dictionaries() -> None:
    model, dims = chain(), {"batch": 512}
    plan = lmsc.plan(model, budget="0.9x", dims=dims, target="host")
    assert plan["peak_bytes"] <= plan["memory_bytes"] and plan["lower_bound_ms"] <= plan["makespan_ms"]
    sweep = lmsc.sweep(model, budget="0.8x..1x", steps=2, dims=dims, target="host")
    assert len(sweep["sizes"][0]["points"]) == 2
    assert lmsc.inspect(STEP)["graph"]["variables"] == 1
    assert lmsc.targets()["host"]["kernels"] == "host"
    with pytest.raises(lmsc.InputError, match="batch"):
        lmsc.inspect(model)
    with pytest.raises(lmsc.InputError, match="--nothing"):
        lmsc.plan(model, budget="1x", nothing=3)


def test_passes_run_on_a_model() -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Exp", ["x"], ["unused"])]
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=opsets)
    assert [node.op_type for node in onnx.load_from_string(lmsc.opt(model, "remove-dead-nodes")).graph.node] == ["Relu"]
    with pytest.raises(lmsc.InputError, match="there is no pass `nothing`"):
        lmsc.opt(model, "nothing")
