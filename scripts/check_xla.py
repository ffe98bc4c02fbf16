"""Compiles lmsc's modules for XLA, with XLA.

- For the processor: every small model with a recording, as it is and rewritten for a tight budget, computes the loss, the
  gradients and the running statistics that onnxruntime-training recorded, and with the optimizer the parameters after one
  step. Models with random operators compute the results of lmsc's own runtime, as do the graphs of testdata/stablehlo.
- For a GPU, which need not be there: in XLA's schedule every copy is asynchronous, each swap-in starts after all that the
  plan has before it, and the bytes that XLA needs follow the plan's.

Prints a line a model and a table. LMSC names the program; arguments select models by their names, and --table makes the
table of docs/xla.md, of larger models.
"""

import os
import re
import sys
from functools import partial
from pathlib import Path

SITE = next(Path(sys.prefix).glob("lib/python3*/site-packages"))
CUDA = SITE / "nvidia" / "cuda_nvcc"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["PATH"] = f"{CUDA / 'bin'}:{os.environ['PATH']}"
# Nothing can be timed here; and other layouts than the model's cost transposed copies, which no plan knows.
os.environ["XLA_FLAGS"] = (
    f"--xla_gpu_cuda_data_dir={CUDA} --xla_gpu_autotune_level=0 --xla_gpu_force_conv_nchw=true"
    # Without autotuning long sums are cut in parts, for which whole operands are copied with padding.
    " --xla_gpu_experimental_force_split_k=1"
    # Each program runs once.
    " --xla_backend_optimization_level=0"
)

import jax
import numpy as np
from jax.extend.backend import get_backend
from jaxlib import xla_client
from jaxlib.mlir import ir
from jax._src import compiler
from jax._src.interpreters import mlir

from recordings import CASES, MODELS, PLENTY, Arrays, Case, Compiled, Step, compiled, failures, named, reading, smallest

jax.config.update("jax_enable_x64", True)

# The models compiled for a GPU, in CI and for the table, and the limit of XLA's memory in CI, as a multiple of the plan's.
GPU = {"resnet18": {"batch": 32}, "tiny_gpt2": {"batch": 256, "seq": 16}}
TABLE = {
    "resnet18": {"batch": 32},
    "resnet50": {"batch": 16},
    "tiny_gpt2": {"batch": 256, "seq": 16},
    "unet3d": {"batch": 1},
    "gpt2_small": {"batch": 2, "seq": 64},
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

# --- on the processor ------------------------------------------------------------------------------------------------


def run(step: Step | Case, text: str) -> Arrays:
    """The module's results on the processor."""
    backend = get_backend("cpu")
    # A processor has one memory, and no arguments elsewhere.
    text = text.replace(', mhlo.memory_kind = "pinned_host"', "")
    program = backend.compile_and_load(text, backend.devices()[:1], xla_client.CompileOptions())
    results = program.execute([jax.device_put(argument) for argument in step.arguments(text)])
    return named(text, [np.asarray(value) for value in results])


def check_processor(model: str) -> str:
    step = Step(model)
    count, worst = step.agrees(run(step, step.plain("mlir-xla").text))
    tight = step.tight("mlir-xla").text
    more, error = step.agrees(run(step, tight), optimizer=True)
    copies = tight.count('_xla_buffer_placement = "')
    assert more > count and copies, f"{model}: {more} tensors and {copies} copies with the optimizer"
    return f"{count} tensors, off by {worst:.1e} at most; {more} with the optimizer and {copies} copies, {error:.1e}"


def check_case(path: Path) -> str:
    case = Case(path)
    text = compiled("mlir-xla", [path], PLENTY).text
    found = run(case, text)
    assert found
    return f"{len(found)} tensors, off by {case.agrees(text, found):.1e} at most"


# --- for a GPU -------------------------------------------------------------------------------------------------------


def gpu_compiler():
    """The compiler for an H100 that is not here."""
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
    """XLA's own figure for the step's device memory, and its temporary bytes on the host."""
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
    """Rows of the table; with `sizes`, checks that XLA's memory follows the plan."""
    source = reading(model, dims)
    plain = compiled("mlir-xla", source, PLENTY)
    peak, least = plain.report["before"]["peak"], smallest(source, "mlir-xla")
    before, _ = device_bytes(for_gpu(plain.text))
    size = ", ".join(f"{name} {value}" for name, value in dims.items())
    rows = [f"| {model}, {size} | none | {mib(peak)} | {mib(before)} | | |"]
    last = before
    for share in SHARES:
        budget = int(least + share * (peak - least))
        try:
            planned = compiled("mlir-xla", source, str(budget))
        except RuntimeError:
            # There is a plan, but no addresses: XLA has its own.
            planned = compiled("mlir-xla", source, str(budget), "--addresses", "off")
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
    models = [path.parent.name for path in sorted(MODELS.glob("tiny_*/training_model.recorded.safetensors"))]
    checks = {path.stem: partial(check_case, path) for path in CASES}
    checks |= {model: partial(check_processor, model) for model in models}
    failed = failures({} if table else checks, selected)
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
