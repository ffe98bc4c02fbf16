"""Runs steps that keep state in lmsc, beside ONNX Runtime with each output fed back to the input that it is the next value of.

Each form below is a way in which the next value of an input is computed. For every form:

- four steps of the model give the losses and the state of ONNX Runtime, or of onnx's reference evaluator where that has no
  kernel;
- so do four steps of each plan: planners x {half of the peak, the smallest budget}, from the written file alone;
- `lmsc verify` accepts the written files, and ONNX Runtime computes the same from them;
- which inputs are state, and how they are carried, does not depend on the order of the nodes.

Prints one line a form and the sums. LMSC names the program; arguments select forms by parts of their names.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx.reference
import onnxruntime as ort

LMSC = os.environ.get("LMSC", "lmsc")
PLANNERS = ("auto", "swap-only", "tflms", "memonger")
STEPS = 4
TOLERANCE = {"rtol": 2e-5, "atol": 1e-7}


@dataclass
class Form:
    """A way to compute a next value."""

    name: str
    #: Inputs besides those of every form.
    inputs: str
    #: Outputs besides the loss.
    outputs: str
    #: Nodes besides those of every form, which have the gradient `g` of `w`, and `s`, a small multiple of it.
    nodes: str
    #: Options for lmsc, only where names do not tell the state.
    reading: tuple[str, ...] = ()
    #: The state: by input, its next value. Without it, names tell.
    state: dict[str, str] | None = None
    #: The model's metadata.
    metadata: dict[str, str] = field(default_factory=dict)
    #: Inputs that are initializers, too: their default values.
    defaults: tuple[str, ...] = ()
    opsets: str = '"" : 17, "ai.onnx.preview.training" : 1'


# The first nodes of every form: a forward pass whose results the backward pass reads.
COMMON = """
  y = Mul(x, w)
  a0 = Tanh(y)
  a1 = Sigmoid(a0)
  a2 = Exp(a1)
  a3 = Tanh(a2)
  loss = ReduceMean<keepdims = 0>(a3)
  b2 = Mul(a3, a2)
  b1 = Mul(b2, a1)
  b0 = Mul(b1, a0)
  g = Mul(b0, x)
  s = Mul(g, lr)
"""

W = "float[4096] w_new"
SGD = "w_new = Sub(w, s)"
SQUARE = "square = Constant<value = int64[2] {64, 64}>()\n flat = Constant<value = int64[1] {-1}>()"

FORMS = [
    Form("sub", "", W, SGD),
    Form("identity", "", W, "t = Sub(w, s)\n w_new = Identity(t)"),
    Form("two_identities", "", W, "t = Sub(w, s)\n u = Identity(t)\n w_new = Identity(u)"),
    Form("unchanged", "", W, "w_new = Identity(w)", state={}),
    Form("reshaped", "float[64,64] v", f"{W}, float[64,64] v_new",
         f"{SGD}\n {SQUARE}\n f = Reshape(v, flat)\n t = Add(f, g)\n v_new = Reshape(t, square)"),
    Form("old_value_read_later", "", f"{W}, float dm", f"{SGD}\n d = Sub(w_new, w)\n dm = ReduceMean<keepdims = 0>(d)"),
    Form("old_value_read_beside", "", f"{W}, float dm", f"{SGD}\n d = Mul(w, a1)\n dm = ReduceMean<keepdims = 0>(d)"),
    Form("old_value_is_output", "", f"{W}, float[4096] before", f"{SGD}\n before = Identity(w)"),
    Form("old_value_viewed_later", "", f"{W}, float[64,64] z", f"{SQUARE}\n v = Reshape(w, square)\n {SGD}\n z = Neg(v)"),
    Form("new_value_read_later", "", f"{W}, float n", f"{SGD}\n q = Mul(w_new, w_new)\n n = ReduceMean<keepdims = 0>(q)"),
    Form("batch_norm", "float[8,8,8,8] img, float[8] sc, float[8] bi, float[8] rm, float[8] rv",
         f"{W}, float[8] rm_new, float[8] rv_new, float[8,8,8,8] z",
         f"{SGD}\n z, rm_new, rv_new = BatchNormalization<momentum = 0.5, training_mode = 1>(img, sc, bi, rm, rv)"),
    Form("corrected_statistics", "float[8,8,8,8] img, float[8] sc, float[8] bi, float[8] rm, float[8] rv",
         f"{W}, float[8] rm_new, float[8] rv_new, float[8,8,8,8] z",
         f"{SGD}\n z, rm_new, v = BatchNormalization<momentum = 0.5, training_mode = 1>(img, sc, bi, rm, rv)\n"
         " two = Constant<value = float {2.0}>()\n rv_new = Mul(v, two)"),
    Form("corrected_internal_statistics", "float[8,8,8,8] img, float[8] sc, float[8] bi, float[8] rm, float[8] rv",
         f"{W}, float[8] rm_new, float[8] rv_new, float[8,8,8,8] z",
         f"{SGD}\n z, rm_new, v, sm, si = com.microsoft.BatchNormInternal<momentum = 0.5, training_mode = 1>"
         "(img, sc, bi, rm, rv)\n two = Constant<value = float {2.0}>()\n rv_new = Mul(v, two)",
         opsets='"" : 17, "com.microsoft" : 1'),
    Form("exchanged_internal_statistics", "float[8,8,8,8] img, float[8] sc, float[8] bi, float[8] rm, float[8] rv",
         f"{W}, float[8] rm_new, float[8] rv_new, float[8] v, float[8,8,8,8] z",
         f"{SGD}\n z, m, v, sm, si = com.microsoft.BatchNormInternal<momentum = 0.5, training_mode = 1>"
         "(img, sc, bi, rm, rv)\n rm_new = Identity(v)\n rv_new = Sqrt(m)", opsets='"" : 17, "com.microsoft" : 1'),
    Form("hidden_state", "float[4096] h", f"{W}, float[4096] h_new",
         "hu = Mul(h, w)\n p = Add(hu, x)\n h_new = Tanh(p)\n d = Mul(h_new, h)\n e = Mul(d, lr)\n w_new = Sub(w, e)"),
    Form("lstm", "float[2,4,16] seq, float[1,64,16] lw, float[1,64,16] lr2, float[1,4,16] h, float[1,4,16] c",
         f"{W}, float[1,4,16] h_new, float[1,4,16] c_new",
         f"{SGD}\n ys, h_new, c_new = LSTM<hidden_size = 16>(seq, lw, lr2, , , h, c)"),
    Form("scatter_nd", "float[64,64] table", f"{W}, float[64,64] table_new",
         f"{SGD}\n i = Constant<value = int64[2,1] {{3, 1}}>()\n j = Constant<value = int64[2] {{3, 1}}>()\n"
         " r = Gather<axis = 0>(table, j)\n r2 = Mul(r, lr)\n table_new = ScatterND(table, i, r2)"),
    Form("scatter_elements", "float[64,64] table", f"{W}, float[64,64] table_new",
         f"{SGD}\n i = Constant<value = int64[1,3] {{3, 1, 5}}>()\n u = Constant<value = float[1,3] {{3.0, 1.0, 5.0}}>()\n"
         " table_new = ScatterElements<axis = 1>(table, i, u)"),
    Form("matmul", "float[64,64] m", f"{W}, float[64,64] m_new",
         f"{SGD}\n {SQUARE}\n r = Reshape(s, square)\n m_new = MatMul(m, r)"),
    Form("clip", "", W, "lo = Constant<value = float {-0.5}>()\n hi = Constant<value = float {0.5}>()\n t = Sub(w, g)\n"
         " w_new = Clip(t, lo, hi)"),
    Form("clip_of_the_old", "", W, "lo = Constant<value = float {-0.2}>()\n hi = Constant<value = float {0.2}>()\n"
         " w_new = Clip(w, lo, hi)"),
    Form("transposed", "float[64,64] m", f"{W}, float[64,64] m_new",
         f"{SGD}\n {SQUARE}\n r = Reshape(s, square)\n t = Transpose<perm = [1, 0]>(m)\n u = Add(t, r)\n"
         " m_new = Transpose<perm = [1, 0]>(u)"),
    Form("exchange", "float[4096] a, float[4096] b", f"{W}, float[4096] a_new, float[4096] b_new",
         f"{SGD}\n a_new = Identity(b)\n b_new = Identity(a)"),
    Form("exchange_with_an_update", "float[4096] v", f"{W}, float[4096] v_new", "w_new = Identity(v)\n v_new = Sub(w, s)"),
    Form("three_in_a_circle", "float[4096] a, float[4096] b, float[4096] c",
         f"{W}, float[4096] a_new, float[4096] b_new, float[4096] c_new",
         f"{SGD}\n a_new = Identity(b)\n b_new = Identity(c)\n c_new = Identity(a)"),
    Form("delay_line", "float[4096] d1, float[4096] d2", f"{W}, float[4096] d1_new, float[4096] d2_new",
         f"{SGD}\n d1_new = Identity(g)\n d2_new = Identity(d1)"),
    Form("delay_of_a_parameter", "float[4096] before", f"{W}, float[4096] before_new", f"{SGD}\n before_new = Identity(w)"),
    Form("sum_and_difference", "float[4096] m", f"{W}, float[4096] m_new", "w_new = Add(w, m)\n m_new = Sub(w, m)"),
    Form("doubled", "float[4096] m", f"{W}, float[4096] m_new", f"{SGD}\n m_new = Add(m, m)"),
    Form("one_value_for_two", "float[4096] v", f"{W}, float[4096] v_new",
         "t = Sub(w, s)\n w_new = Identity(t)\n v_new = Identity(t)"),
    Form("constant", "float[2] k", f"{W}, float[2] k_new", f"{SGD}\n k_new = Constant<value = float[2] {{2.0, 3.0}}>()\n"
         " kk = ReduceMean<keepdims = 0>(k)"),
    Form("momentum", "float[4096] m", f"{W}, float[4096] m_new",
         "mo = Constant<value = float {0.9}>()\n mm = Mul(m, mo)\n m_new = Add(mm, g)\n d = Mul(m_new, lr)\n w_new = Sub(w, d)"),
    Form("average", "float[4096] ema", f"{W}, float[4096] ema_new",
         f"{SGD}\n p = Constant<value = float {{0.9}}>()\n q = Constant<value = float {{0.1}}>()\n e = Mul(ema, p)\n"
         " n = Mul(w_new, q)\n ema_new = Add(e, n)"),
    Form("counter", "int64 step", f"{W}, int64 step_new",
         "one = Constant<value = int64 {1}>()\n step_new = Add(step, one)\n f = Cast<to = 1>(step_new)\n"
         " d = Div(s, f)\n w_new = Sub(w, d)"),
    Form("adam", "float[4096] m, float[4096] v, float step",
         f"{W}, float[4096] m_new, float[4096] v_new, float step_new",
         "one = Constant<value = float {1.0}>()\n b1c = Constant<value = float {0.9}>()\n b2c = Constant<value = float {0.99}>()\n"
         " e = Constant<value = float {0.00001}>()\n step_new = Add(step, one)\n i1 = Sub(one, b1c)\n i2 = Sub(one, b2c)\n"
         " m1 = Mul(m, b1c)\n m2 = Mul(g, i1)\n m_new = Add(m1, m2)\n v1 = Mul(v, b2c)\n gg = Mul(g, g)\n v2 = Mul(gg, i2)\n"
         " v_new = Add(v1, v2)\n r = Sqrt(v_new)\n d = Add(r, e)\n u = Div(m_new, d)\n c = Pow(b1c, step_new)\n"
         " k = Sub(one, c)\n uk = Div(u, k)\n ul = Mul(uk, lr)\n w_new = Sub(w, ul)"),
    Form("skipped_step", "bool good", W, "t = Sub(w, s)\n w_new = Where(good, t, w)"),
    Form("half_precision", "float16[4096] h", f"{W}, float16[4096] h_new",
         f"{SGD}\n f = Cast<to = 1>(h)\n t = Sub(f, s)\n h_new = Cast<to = 10>(t)"),
    Form("permuted", "float[8] p", f"{W}, float[8] p_new",
         f"{SGD}\n i = Constant<value = int64[8] {{7, 0, 1, 2, 3, 4, 5, 6}}>()\n p_new = Gather(p, i)"),
    Form("queue", "float[64,64] q", f"{W}, float[64,64] q_new",
         f"{SGD}\n {SQUARE}\n r = Reshape(g, square)\n one = Constant<value = int64[1] {{1}}>()\n"
         " all = Constant<value = int64[1] {64}>()\n zero = Constant<value = int64[1] {0}>()\n old = Slice(q, one, all, zero)\n"
         " row = Slice(r, zero, one, zero)\n q_new = Concat<axis = 0>(old, row)"),
    Form("split", "float[2048] a, float[2048] b", f"{W}, float[2048] a_new, float[2048] b_new",
         f"{SGD}\n a_new, b_new = Split(g)"),
    Form("expanded", "float[64,64] m", f"{W}, float[64,64] m_new",
         f"{SGD}\n {SQUARE}\n mean = ReduceMean<axes = [0]>(m)\n t = Add(mean, loss)\n m_new = Expand(t, square)"),
    Form("named_by_options", "float[4096] v", "float[4096] q, float[4096] r", "t = Sub(w, s)\n q = Identity(t)\n r = Add(v, g)",
         reading=("--state", "w=q", "--state", "v=r"), state={"w": "q", "v": "r"}),
    Form("named_by_a_file", "", "float[4096] q", "q = Sub(w, s)", reading=("--state", "STATE.json"), state={"w": "q"}),
    Form("named_by_metadata", "float[4096] v", "float[4096] q, float[4096] v_new", "q = Sub(w, s)\n v_new = Add(v, g)",
         state={"w": "q"}, metadata={"ai.lmsc.state": '[["w", "q"]]'}),
    Form("said_to_be_none", "float[4096] v", f"{W}, float[4096] v_new", f"{SGD}\n v_new = Add(v, g)",
         reading=("--no-state", "v"), state={"w": "w_new"}),
    Form("no_state", "", W, SGD, reading=("--state", "none"), state={}),
    Form("dotted", "", "float[4096] w_dot_new", "w_dot_new = Sub(w, s)", state={"w": "w.new"}),
    Form("weak_ending", "", "float[4096] w_next", "w_next = Sub(w, s)"),
    Form("weak_ending_of_data", "", f"{W}, float[4096] x_out", f"{SGD}\n x_out = Add(x, a1)", state={"w": "w_new"}),
    Form("default_value", "float[4096] v", f"{W}, float[4096] v_new", f"{SGD}\n t = Add(v, g)\n v_new = Identity(t)",
         defaults=("v",)),
    Form("preview_momentum", "float r, int64 t, float[4096] m", f"{W}, float[4096] m_new",
         "w_new, m_new = ai.onnx.preview.training.Momentum<alpha = 0.9, beta = 1.0, mode = \"standard\", norm_coefficient = 0.0>"
         "(r, t, w, g, m)"),
    Form("preview_adam", "float r, int64 t, float[4096] m, float[4096] v", f"{W}, float[4096] m_new, float[4096] v_new",
         "w_new, m_new, v_new = ai.onnx.preview.training.Adam<alpha = 0.9, beta = 0.99, epsilon = 0.00001, norm_coefficient = 0.0>"
         "(r, t, w, g, m, v)"),
    Form("preview_adagrad", "float r, int64 t, float[4096] h", f"{W}, float[4096] h_new",
         "w_new, h_new = ai.onnx.preview.training.Adagrad<decay_factor = 0.0, epsilon = 0.00001, norm_coefficient = 0.0>"
         "(r, t, w, g, h)"),
]


def model(form: Form) -> onnx.ModelProto:
    inputs = ", ".join(["float[4096] x", "float[4096] w", "float lr", *filter(None, [form.inputs])])
    text = f"<ir_version: 8, opset_import: [{form.opsets}]>\n{form.name} ({inputs}) => (float loss, {form.outputs}) {{{COMMON}\n {form.nodes}\n}}"
    proto = onnx.parser.parse_model(text)
    for index, node in enumerate(proto.graph.node):
        node.name = f"n{index}"
        node.output[:] = [name.replace("_dot_", ".") for name in node.output]
    for output in proto.graph.output:
        output.name = output.name.replace("_dot_", ".")
    for key, value in form.metadata.items():
        proto.metadata_props.add(key=key, value=value)
    values = initial(proto)
    for name in form.defaults:
        proto.graph.initializer.append(onnx.numpy_helper.from_array(values[name], name))
    return proto


def initial(proto: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Values of all inputs."""
    random = np.random.default_rng(7)
    values = {}
    for info in proto.graph.input:
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if np.issubdtype(dtype, np.floating):
            value = np.abs(random.normal(size=shape)) * 0.1 + 0.05
        else:
            value = np.ones(shape)
        values[info.name] = np.asarray(value, dtype)
    return values | {"lr": np.full((), 0.1, np.float32)}


def pairs(form: Form, proto: onnx.ModelProto) -> dict[str, str]:
    if form.state is not None:
        return form.state
    outputs = [output.name for output in proto.graph.output]
    found = {}
    for info in proto.graph.input:
        for suffix in ("_new", ".new", "_next"):
            if info.name + suffix in outputs:
                found[info.name] = info.name + suffix
    return found


def truth(
    form: Form, proto: onnx.ModelProto, feeds: dict[str, np.ndarray]
) -> tuple[list[float], dict[str, np.ndarray]]:
    """Losses, and the state after the last step."""
    names = [output.name for output in proto.graph.output]
    if any(node.domain == "ai.onnx.preview.training" for node in proto.graph.node):
        evaluate = onnx.reference.ReferenceEvaluator(proto).run
    else:
        evaluate = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run
    feeds, losses = dict(feeds), []
    for _ in range(STEPS):
        results = dict(zip(names, evaluate(None, feeds)))
        losses.append(float(results["loss"]))
        feeds |= {name: np.asarray(results[next], feeds[name].dtype) for name, next in pairs(form, proto).items()}
    return losses, {name: feeds[name] for name in pairs(form, proto)}


def write_safetensors(path: Path, tensors: dict[str, np.ndarray]) -> None:
    kinds = {"float32": "F32", "float16": "F16", "int64": "I64", "bool": "BOOL"}
    header, data = {}, b""
    for name, value in tensors.items():
        begin = len(data)
        data += np.ascontiguousarray(value).tobytes()
        header[name] = {"dtype": kinds[str(value.dtype)], "shape": list(value.shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    kinds = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "BOOL": np.bool_}
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    header.pop("__metadata__", None)
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], kinds[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
    }


class Wrong(Exception):
    """Something is not as it should be."""


def lmsc(*arguments: str | Path, fails: bool = False) -> subprocess.CompletedProcess:
    done = subprocess.run([LMSC, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    if done.returncode != 0 and not fails:
        raise Wrong(f"lmsc {' '.join(map(str, arguments))} exits with {done.returncode}: {done.stderr.strip()}")
    return done


def plan(source: Path, reading: list[str], planner: str, budget: int, output: Path) -> bool:
    """Writes a plan of at most this budget, or of the smallest larger one that lmsc names."""
    for _ in range(40):
        arguments = [source, *reading, "--target", "host", "--planner", planner, "--effort", "5", "--budget", str(budget)]
        done = lmsc(*arguments, "-o", output, fails=True)
        if done.returncode == 0:
            return True
        if done.returncode != 1:
            raise Wrong(f"planning for {budget} with {planner} exits with {done.returncode}: {done.stderr.strip()}")
        named = [int(n) for n in re.findall(r"\((\d+) bytes\)|--budget (\d+)", done.stderr) for n in n if n]
        larger = [n for n in named if n > budget]
        budget = min(larger) if larger else budget + budget // 20
    return False


def same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], losses: list[float], expected_losses: list[float]) -> None:
    if not np.allclose(losses, expected_losses, **TOLERANCE):
        raise Wrong(f"losses {losses}, expected {expected_losses}")
    for name, value in expected.items():
        if name not in found:
            raise Wrong(f"the saved state lacks `{name}`")
        tolerance = TOLERANCE if value.dtype != np.float16 else {"rtol": 2e-3, "atol": 1e-4}
        if not np.allclose(found[name].astype(np.float64), value.astype(np.float64), **tolerance):
            difference = np.abs(found[name].astype(np.float64) - value.astype(np.float64)).max()
            raise Wrong(f"`{name}` differs by {difference} after {STEPS} steps")


def steps(path: Path, reading: list[str], params: Path, folder: Path, extra: list[str]) -> tuple[list[float], dict[str, np.ndarray]]:
    saved = folder / "saved.safetensors"
    ran = lmsc("run", path, *reading, "--params", params, "--steps", STEPS, "--save", saved, "--json", *extra)
    return json.loads(ran.stdout)["losses"], read_safetensors(saved)


def state_of(path: Path, reading: list[str]) -> list[tuple]:
    inspection = json.loads(lmsc("inspect", path, *reading, "--json").stdout)
    return [(entry["input"], entry["output"], entry["copied"]) for entry in inspection["state"]]


def shuffled(proto: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with its nodes in another topological order."""
    random = np.random.default_rng(seed)
    rest, defined = list(proto.graph.node), {i.name for i in proto.graph.input} | {i.name for i in proto.graph.initializer}
    order = []
    while rest:
        ready = [node for node in rest if all(name in defined or not name for name in node.input)]
        node = ready[-1] if seed == 0 else ready[random.integers(len(ready))]
        rest.remove(node)
        order.append(node)
        defined |= set(node.output)
    other = onnx.ModelProto()
    other.CopyFrom(proto)
    del other.graph.node[:]
    other.graph.node.extend(order)
    return other


def check(form: Form) -> int:
    """How many runs were compared."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        proto = model(form)
        source, params = folder / "step.onnx", folder / "params.safetensors"
        onnx.save(proto, source)
        (folder / "STATE.json").write_text(json.dumps(form.state))
        reading = [str(folder / part) if part.endswith(".json") else part for part in form.reading]
        write_safetensors(params, {n: v for n, v in initial(proto).items() if n not in form.defaults})
        losses, state = truth(form, proto, initial(proto))
        found, saved = steps(source, reading, params, folder, [])
        same(saved, state, found, losses)
        extra = set(saved) - set(state) - {info.name for info in proto.graph.input}
        if extra:
            raise Wrong(f"the saved state holds {sorted(extra)}, which no input is")
        count = 1
        carried = state_of(source, reading)
        for seed in range(4):
            other = folder / f"order{seed}.onnx"
            onnx.save(shuffled(proto, seed), other)
            if (now := state_of(other, reading)) != carried:
                raise Wrong(f"in another order of nodes the state is {now}, was {carried}")
            found, saved = steps(other, reading, params, folder, [])
            same(saved, state, found, losses)
            count += 1
        peak = json.loads(lmsc("inspect", source, *reading, "--target", "host", "--json").stdout)["memory"]["peak"]
        for planner in PLANNERS:
            for budget in (peak // 2, 1):
                planned = folder / f"{planner}{budget}.onnx"
                if not plan(source, reading, planner, budget, planned):
                    raise Wrong(f"{planner} finds no plan from {budget} bytes on")
                found, saved = steps(planned, [], params, folder, [])
                same(saved, state, found, losses)
                lmsc("verify", source, planned, *reading)
                count += 1
            # Other runtimes compute the same from the written file.
            written = onnx.load(planned)
            losses_elsewhere, state_elsewhere = truth(form, written, initial(proto))
            same(state_elsewhere, state, losses_elsewhere, losses)
        return count


def main() -> int:
    chosen = [form for form in FORMS if not sys.argv[1:] or any(part in form.name for part in sys.argv[1:])]

    def one(form: Form) -> tuple[int, str]:
        try:
            return check(form), ""
        except Exception as wrong:
            return 0, f"{type(wrong).__name__}: {wrong}"

    failed = runs = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for form, (count, wrong) in zip(chosen, pool.map(one, chosen)):
            print(f"{form.name}: {wrong or f'{count} runs'}", flush=True)
            failed += bool(wrong)
            runs += count
    print(f"{runs} runs of {len(chosen)} forms compared")
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
