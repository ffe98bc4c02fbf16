"""Compiles what lmsc writes for XLA, with XLA.

- For the processor: every small model with a recording, as it is and rewritten for a tight budget, computes the loss, the
  gradients and the running statistics that onnxruntime-training recorded, and with the optimizer the parameters after one
  step. What has no rule is refused by name.
- For a GPU, which need not be there: in XLA's schedule every copy is asynchronous, each swap-in starts after all that the
  plan has before it, and the bytes that XLA needs follow the plan's.

Prints a line a model and a table. LMSC names the program; arguments select models by their names, and --table makes the
table of docs/xla.md, of larger models.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

SITE = next(Path(sys.prefix).glob("lib/python3*/site-packages"))
CUDA = SITE / "nvidia" / "cuda_nvcc"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["PATH"] = f"{CUDA / 'bin'}:{os.environ['PATH']}"
# Nothing can be timed here; and other layouts than the model's cost transposed copies, which no plan knows.
os.environ["XLA_FLAGS"] = (
    f"--xla_gpu_cuda_data_dir={CUDA} --xla_gpu_autotune_level=0 --xla_gpu_force_conv_nchw=true"
    # What runs here runs once.
    " --xla_backend_optimization_level=0"
)

import jax
import numpy as np
import onnx
import onnx.numpy_helper
from jax.extend.backend import get_backend
from jaxlib import xla_client
from jaxlib.mlir import ir
from jax._src import compiler
from jax._src.interpreters import mlir

jax.config.update("jax_enable_x64", True)

MODELS = Path(__file__).resolve().parent.parent / "testdata" / "models"
LMSC = os.environ.get("LMSC", "lmsc")

# Operators without a rule, by the model that has them.
REFUSED = {"tiny_charlstm": "com.microsoft.LSTMGrad", "tiny_vgg_dropout": "Dropout"}

# As in tests/kernels.rs: errors count relative to the largest element of a tensor, or to a share of the largest of its kind.
ALLOWED = 1e-4
FLOORS = {"features.norm0.weight": 1e-2}
ADAM_FLOOR = 1e-1

# The optimizers of the models, which let nothing decay, and what they are fed.
EPSILON, RATE = 1e-6, 1e-3

# What is compiled for a GPU, in CI and for the table, and how many times what is planned XLA may need in CI.
GPU = {"resnet18": {"batch": 32}, "tiny_gpt2": {"batch": 256, "seq": 16}}
TABLE = {
    "resnet18": {"batch": 32},
    "resnet50": {"batch": 16},
    "tiny_gpt2": {"batch": 256, "seq": 16},
    "unet3d": {"batch": 1},
}
SHARE = 1.2
SHARES = (0.5, 0.25, 0.05)

H100 = """
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 84978434048
  shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 }
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 8 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""

Arrays = dict[str, np.ndarray]


# --- lmsc ------------------------------------------------------------------------------------------------------------


@dataclass
class Compiled:
    """What lmsc wrote, and what it said of it."""

    text: str
    # The nodes in the plan's order.
    order: list[str]
    report: dict


def lmsc(*arguments: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([LMSC, *map(str, arguments)], capture_output=True, text=True, timeout=300)


def compiled(reading: list, budget: str, *more: str) -> Compiled:
    with tempfile.TemporaryDirectory() as name:
        texts = []
        for emit in ("mlir-xla", "lms"):
            file = Path(name) / emit
            done = lmsc(*reading, "--budget", budget, *more, "--emit", emit, "-o", file, "--json")
            if done.returncode != 0:
                raise RuntimeError(f"lmsc exits with {done.returncode}: {done.stderr.strip()}")
            texts.append(file.read_text())
        order = re.findall(r"^   \[([^\]]*)\] ", texts[1], re.MULTILINE)
        return Compiled(texts[0], order, json.loads(done.stdout))


def smallest(reading: list) -> int:
    done = lmsc(*reading, "--budget", "1")
    found = re.search(r"The smallest budget that the planner `auto` reaches is .*\((\d+) bytes\)", done.stderr)
    assert done.returncode == 1 and found, done.stderr
    return int(found[1])


def reading(model: str, dims: dict[str, int], optimizer: bool = False) -> list:
    folder = MODELS / model
    named = [argument for name, value in dims.items() for argument in ("--dim", f"{name}={value}")]
    step = ["--optimizer", folder / "optimizer_model.onnx"] if optimizer else []
    return [folder / "training_model.onnx", *step, *named]


# --- on the processor ------------------------------------------------------------------------------------------------


def recorded(path: Path) -> Arrays:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header, data = json.loads(data[8 : 8 + length]), data[8 + length :]
    types = {"F32": np.float32, "I64": np.int64, "I32": np.int32, "BOOL": np.bool_, "U8": np.uint8}
    found = {}
    for name, tensor in header.items():
        if name != "__metadata__":
            start, end = tensor["data_offsets"]
            flat = np.frombuffer(data[start:end], types[tensor["dtype"]])
            found[name] = flat.reshape(tensor["shape"])
    return found


SIGNATURE = re.compile(
    r'tensor<((?:\d+x)*)(\w+)> \{(onnx\.name|lms\.initializer) = "((?:[^"\\]|\\.)*)"'
    r'(?:, lms\.new_value_of = "((?:[^"\\]|\\.)*)")?'
)
ELEMENTS = {"f32": np.float32, "f64": np.float64, "i1": np.bool_, "i32": np.int32, "i64": np.int64}


def run(text: str, feeds: Arrays, weights: Arrays) -> Arrays:
    """What the module computes on the processor; what nobody feeds is 0. New values are named after their variables."""
    backend = get_backend("cpu")
    # A processor has one memory, and no arguments elsewhere.
    text = text.replace(', mhlo.memory_kind = "pinned_host"', "")
    program = backend.compile_and_load(text, backend.devices()[:1], xla_client.CompileOptions())
    signature = re.search(r"@main\((.*)\) -> \((.*)\) \{$", text, re.MULTILINE)
    arguments = []
    for extents, element, kind, name, _ in SIGNATURE.findall(signature[1]):
        shape = [int(extent) for extent in extents.split("x")[:-1]]
        if kind == "lms.initializer":
            value = weights[name]
        else:
            value = feeds.get(name, np.zeros(shape, ELEMENTS[element]))
        arguments.append(jax.device_put(np.array(value, ELEMENTS[element]).reshape(shape)))
    results = program.execute(arguments)
    names = [new and f"{new}'" or name for *_, name, new in SIGNATURE.findall(signature[2])]
    return {name: np.asarray(value) for name, value in zip(names, results, strict=True)}


def compare(model: str, recording: Arrays, found: Arrays, roles: tuple[str, ...]) -> tuple[int, float]:
    """How many tensors agree, and the worst error."""
    worst, count = 0.0, 0
    for key, expected in recording.items():
        role, name = key.split("/", 1)
        names = (f"{name}'", f"{name}.accumulation.buffer'", name)
        got = next((found[n] for n in names if n in found), None)
        if role not in roles or got is None:
            continue
        count += 1
        if not np.issubdtype(expected.dtype, np.floating):
            assert np.array_equal(got.reshape(expected.shape), expected), f"{model}: {key} differs"
            continue
        of_role = max(np.abs(v).max(initial=0) for k, v in recording.items() if k.startswith(role + "/"))
        floor = next((f for n, f in FLOORS.items() if name.startswith(n)), 1e-3)
        floor = ADAM_FLOOR if role.startswith("adamw") else floor
        scale = max(np.abs(expected).max(initial=0), floor * of_role, np.finfo(np.float64).tiny)
        error = float(np.abs(got.reshape(expected.shape).astype(np.float64) - expected).max(initial=0) / scale)
        assert error <= ALLOWED, f"{model}: {key} is off by {error:.1e}"
        worst = max(worst, error)
    return count, worst


def adamw(recording: Arrays) -> Arrays:
    """The parameters after the first step, by the definition of AdamW with the attributes of the models' optimizers."""
    found = {}
    for key, gradient in recording.items():
        name = key.removeprefix("grad/").removesuffix("_grad")
        if key.startswith("grad/"):
            old, g = recording[f"feed/{name}"].astype(np.float64), gradient.astype(np.float64)
            # Moments are 0 before, and corrected for that: what is left of them is the gradient, and its square.
            change = g / (np.abs(g) + EPSILON / np.sqrt(1 - 0.999))
            found[f"adamw1/{name}"] = (old - RATE * change).astype(np.float32)
    return found


def check_processor(model: str) -> str:
    folder = MODELS / model
    recording = recorded(folder / "training_model.recorded.safetensors")
    dims = json.loads((folder / "training_model.shapes.json").read_text())["runs"][0]
    if model in REFUSED:
        with tempfile.TemporaryDirectory() as name:
            call = [*reading(model, dims), "--budget", "1TiB", "--emit", "mlir-xla", "-o", Path(name) / "x.mlir"]
            done = lmsc(*call)
        assert done.returncode == 2 and f"({REFUSED[model]})" in done.stderr, done.stderr
        return f"refused, for {REFUSED[model]}"
    proto = onnx.load(folder / "training_model.onnx")
    weights = {w.name: onnx.numpy_helper.to_array(w) for w in proto.graph.initializer}
    feeds = {key[5:]: value for key, value in recording.items() if key.startswith("feed/")}
    feeds |= {"learning_rate": np.float32([RATE]), "step": np.int64([1])}

    plain = compiled(reading(model, dims), "1TiB")
    count, worst = compare(model, recording, run(plain.text, feeds, weights), ("result", "grad", "state"))
    step = reading(model, dims, optimizer=True)
    tight = compiled(step, str(smallest(step)), "--addresses", "off", "--effort", "5")
    rewritten = run(tight.text, feeds, weights)
    more, error = compare(model, recording | adamw(recording), rewritten, ("result", "grad", "state", "adamw1"))
    copies = tight.text.count('_xla_buffer_placement = "')
    assert more > count and copies, f"{model}: {more} tensors and {copies} copies with the optimizer"
    return f"{count} tensors, off by {worst:.1e} at most; {more} with the optimizer and {copies} copies, {error:.1e}"


# --- for a GPU -------------------------------------------------------------------------------------------------------


def gpu_compiler():
    """What compiles for an H100 that is not here."""
    if not xla_client.pjrt_plugin_loaded("cuda"):
        library = SITE / "jax_plugins" / "xla_cuda12" / "xla_cuda_plugin.so"
        xla_client.load_pjrt_plugin_dynamically("cuda", str(library))
        xla_client.initialize_pjrt_plugin("cuda")
    options = {"target_config": H100, "topology": "1x1x1"}
    topology = xla_client._xla.get_default_c_api_topology("cuda", "", options)
    devices = topology._make_compile_only_devices()
    return devices[0].client, xla_client.DeviceList(tuple(devices))


def for_gpu(text: str):
    client, devices = gpu_compiler()
    context = mlir.make_ir_context()
    context.allow_unregistered_dialects = True
    with context:
        module = ir.Module.parse(text)
    return client.compile(module, devices, compiler.get_compile_options(num_replicas=1, num_partitions=1))


def device_bytes(program) -> tuple[int, int]:
    """What the step needs on the device by XLA's own account, and its temporary bytes on the host."""
    stats = program.get_compiled_memory_stats()
    outputs = stats.output_size_in_bytes - stats.alias_size_in_bytes
    return stats.argument_size_in_bytes + stats.temp_size_in_bytes + outputs, stats.host_temp_size_in_bytes


def check_schedule(model: str, source: Compiled, program) -> tuple[int, int, int]:
    """How many copies XLA has in its schedule, out and in, and beside how many something is computed."""
    hlo = program.hlo_modules()[0].to_string()
    lines = re.search(r"^ENTRY .*?\{\n(.*?)^\}", hlo, re.MULTILINE | re.DOTALL)[1].splitlines()
    named = [re.match(r"\s*(?:ROOT )?%(\S+) = ", line) for line in lines]
    place = {match[1]: at for at, match in enumerate(named) if match}
    operator = [(re.search(r'op_name="((?:[^"\\]|\\.)*)"', line) or [None, None])[1] for line in lines]
    tick = {name: at for at, name in enumerate(source.order)}
    heavy = [at for at, line in enumerate(lines) if re.search(r'custom_call_target="__cu|kind=__triton|conv\.|gemm', line)]
    out = into = beside = 0
    for at, line in enumerate(lines):
        start = re.search(r" = \((\S+?), .*\) copy-start\(%([^)]+)\)", line)
        if not start:
            continue
        done = next(i for i, l in enumerate(lines) if f"copy-done(%{named[at][1]})" in l)
        beside += any(" = " in line and "get-tuple-element" not in line for line in lines[at + 1 : done])
        if "S(5)" in start[1]:
            out += 1
            continue
        into += 1
        name = operator[place[start[2]]]
        if name not in tick:
            continue
        for other in heavy:
            before = operator[other] in tick and tick[operator[other]] < tick[name]
            assert not before or other < at, f"{model}: {name} starts before {operator[other]}"
    plain = [line for line in lines if re.search(r"S\(5\)\S* copy\(|copy\(%[^)]*S\(5\)", line)]
    assert not plain, f"{model}: the device waits for a copy: {plain[0].strip()}"
    return out, into, beside


def mib(count: int) -> str:
    return f"{count / 2**20:.1f}"


def check_gpu(model: str, dims: dict[str, int], sizes: bool) -> list[str]:
    """Rows of the table; whether what XLA needs follows the plan is checked if `sizes`."""
    source = reading(model, dims)
    plain = compiled(source, "1TiB")
    peak, least = plain.report["before"]["peak"], smallest(source)
    before, _ = device_bytes(for_gpu(plain.text))
    size = ", ".join(f"{name} {value}" for name, value in dims.items())
    rows = [f"| {model}, {size} | none | {mib(peak)} | {mib(before)} | | |"]
    last = before
    for share in SHARES:
        budget = int(least + share * (peak - least))
        try:
            planned = compiled(source, str(budget))
        except RuntimeError:
            # There is a plan, but no addresses: XLA has its own.
            planned = compiled(source, str(budget), "--addresses", "off")
        program = for_gpu(planned.text)
        out, into, beside = check_schedule(model, planned, program)
        needs, host = device_bytes(program)
        after = planned.report["after"]["peak"]
        rows.append(f"| | {mib(budget)} | {mib(after)} | {mib(needs)} | {out} out, {into} in, {beside} beside others | {mib(host)} |")
        assert not sizes or needs <= SHARE * after, f"{model}: XLA needs {needs} bytes, planned are {after}"
        assert not sizes or needs < last, f"{model}: XLA needs {needs} bytes, and {last} for a larger budget"
        last = needs
        swaps = [planned.text.count(f'_xla_buffer_placement = "{place}"') for place in ("pinned_host", "device")]
        assert [out, into] == swaps, f"{model}: XLA has {out} copies out and {into} in, of {swaps}"
    assert not sizes or last < before, f"{model}: XLA needs {last} bytes, and {before} without a plan"
    return rows


HEAD = [
    "| Model | Budget, MiB | Plan, MiB | XLA, MiB | Copies | On the host, MiB |",
    "|---|---|---|---|---|---|",
]


def main() -> int:
    table = "--table" in sys.argv[1:]
    selected = [argument for argument in sys.argv[1:] if argument != "--table"]
    failed = 0
    models = [path.parent.name for path in sorted(MODELS.glob("tiny_*/training_model.recorded.safetensors"))]
    for model in [] if table else [m for m in models if not selected or m in selected]:
        started = time.monotonic()
        try:
            print(f"ok      {model}: {check_processor(model)}, {time.monotonic() - started:.1f} s", flush=True)
        except (AssertionError, RuntimeError) as error:
            failed += 1
            print(f"FAILED  {model}: {error}", flush=True)
    print("\n".join(HEAD), flush=True)
    for model, dims in (TABLE if table else GPU).items():
        if selected and model not in selected:
            continue
        try:
            print("\n".join(check_gpu(model, dims, sizes=not table)), flush=True)
        except (AssertionError, RuntimeError) as error:
            failed += 1
            print(f"FAILED  {model}: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
