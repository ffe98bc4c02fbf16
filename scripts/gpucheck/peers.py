"""The same steps in PyTorch, and the ceilings of the card: one process a model, a line of JSON for each finding.

    python3 peers.py ceilings '{}'
    python3 peers.py link '{"sizes": [1048576]}'
    python3 peers.py steps '{"runs": [["resnet50", {"batch": 64}, "tf32"]], "steps": 8}'
    python3 peers.py package '{"steps": 3}'

GPU_CHECK_FINDINGS names a file to which each finding is appended at once, under the part in GPU_CHECK_PART, so that a process that is
ended at its deadline loses none.

A user of PyTorch would run them so: channels_last for images, `scaled_dot_product_attention` for attention, a fused AdamW,
algorithms of cuDNN by trial. Only `f32` keeps all bits of a product.
"""

import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

MODELS = Path(__file__).resolve().parent.parent.parent / "testdata" / "models"
# Around which modules PyTorch's checkpoints are put.
BLOCKS = {"BasicBlock", "Bottleneck", "GPT2Block", "BertLayer", "DoubleConv"}
WARM = 3


def say(**values: Any) -> None:
    print(json.dumps(values), flush=True)
    if path := os.environ.get("GPU_CHECK_FINDINGS"):
        case = " ".join(["PyTorch", *(str(values[key]) for key in ("model", "dims", "way", "size", "pinned") if key in values)])
        with Path(path).open("a") as file:
            file.write(json.dumps({"part": os.environ["GPU_CHECK_PART"], "case": case, "values": values}) + "\n")


def seconds(device: str, work: Callable[[], object], times: int, warm: int = WARM) -> float:
    """The median time of some work."""
    import torch

    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    for _ in range(warm):
        work()
    found = []
    for _ in range(times):
        wait()
        began = time.perf_counter()
        work()
        wait()
        found.append(time.perf_counter() - began)
    return statistics.median(found)


def ceilings(options: dict[str, Any]) -> None:
    """Bytes of a second that a copy within the device moves, and operations of a second of a large product."""
    import torch

    device = options.get("device", "cuda")
    size = options.get("size", 8192)
    say(torch=torch.__version__, cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version())
    if device == "cuda":
        free, total = torch.cuda.mem_get_info()
        at = torch.cuda.get_device_properties(0)
        say(free_bytes=free, total_bytes=total, processors=at.multi_processor_count, capability=f"{at.major}.{at.minor}")
    source = torch.randn(size * size * 4, device=device)
    target = torch.empty_like(source)
    took = seconds(device, partial(target.copy_, source), 10)
    say(copy_bytes_per_second=2 * source.nbytes / took)
    del source, target
    for name, kind, precision in (
        ("f32", torch.float32, "highest"), ("tf32", torch.float32, "high"), ("bf16", torch.bfloat16, "highest")
    ):  # fmt: skip
        torch.set_float32_matmul_precision(precision)
        a, b = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
        took = seconds(device, partial(torch.matmul, a, b), 5)
        say(**{f"product_{name}_per_second": 2 * size**3 / took})


def link(options: dict[str, Any]) -> None:
    """Bytes of a second over the link, by size, each way and both at once, of memory pinned in each of the two ways."""
    import torch

    for size in options["sizes"]:
        on_device = [torch.empty(size, dtype=torch.uint8, device="cuda") for _ in range(2)]
        for how in ("alloc", "register"):
            on_host = [torch.empty(size, dtype=torch.uint8, pin_memory=how == "alloc").zero_() for _ in range(2)]
            if how == "register":
                failed = [int(torch.cuda.cudart().cudaHostRegister(it.data_ptr(), size, 0)) for it in on_host]
                if any(failed):
                    say(size=size, pinned=how, error=f"cudaHostRegister: {failed}")
                    continue
            streams = [torch.cuda.Stream() for _ in range(2)]

            def copies(ways: tuple[bool, ...], there: list = on_device, here: list = on_host, on: list = streams) -> None:
                for index, is_in in enumerate(ways):
                    with torch.cuda.stream(on[index]):
                        to, of = (there[index], here[index]) if is_in else (here[index], there[index])
                        to.copy_(of, non_blocking=True)

            rate = {}
            for name, ways in (("in", (True,)), ("out", (False,)), ("each of both", (True, False))):
                rate[name] = size / seconds("cuda", partial(copies, ways), 5)
            say(size=size, pinned=how, **rate)
            torch.cuda.synchronize()
            if how == "register":
                for it in on_host:
                    torch.cuda.cudart().cudaHostUnregister(it.data_ptr())


def net_of(model: str, way: str, device: str) -> tuple[Any, Any]:
    """The model as it is trained this way, and the layout of its images."""
    import models
    import torch
    from torch.utils.checkpoint import checkpoint

    net = models.build(model).to(device)
    spec = models.SPECS[model]
    if hasattr(net, "m") and way != "f32":
        net.m.set_attn_implementation("sdpa")
    layout = None
    if "bf16" in way and spec.tokens is None and len(spec.sample) >= 3:
        layout = torch.channels_last if len(spec.sample) == 3 else torch.channels_last_3d
        net = net.to(memory_format=layout)
    if way == "checkpoint":
        for module in net.modules():
            if type(module).__name__ in BLOCKS:
                module.forward = lambda *given, plain=module.forward, **named: checkpoint(
                    plain, *given, use_reentrant=False, **named
                )
    return net, layout


def batch_of(model: str, dims: dict[str, int], net: Any, layout: Any, device: str) -> tuple[Any, Any]:
    """Inputs and labels."""
    import models
    import torch

    spec = models.SPECS[model]
    sample = (dims["seq"],) if "seq" in dims else spec.sample
    if spec.tokens:
        x = torch.randint(0, spec.tokens, (dims["batch"], *sample), device=device)
    else:
        x = torch.randn(dims["batch"], *sample, device=device)
        x = x.to(memory_format=layout) if layout else x
    if spec.loss == "inmodel":
        return x, x
    with torch.no_grad():
        scores = net(x[:2])
    # The first dimension of the scores is the batch, or its multiple for text.
    rows = scores.shape[0] * (x.shape[0] // x[:2].shape[0])
    return x, torch.randint(0, scores.shape[1], (rows, *scores.shape[2:]), device=device)


@contextmanager
def settings(way: str) -> Iterator[None]:
    """The global switches of a way."""
    import torch
    import torch._dynamo
    import torch._functorch.config as functorch

    torch.set_float32_matmul_precision("highest" if way == "f32" else "high")
    torch.backends.cudnn.allow_tf32 = way != "f32"
    torch.backends.cudnn.benchmark = True
    before = functorch.activation_memory_budget
    if "budget" in way:
        functorch.activation_memory_budget = float(way.split()[-1])
    try:
        yield
    finally:
        functorch.activation_memory_budget = before
        torch._dynamo.reset()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def step(model: str, dims: dict[str, int], way: str, steps: int, device: str) -> dict[str, Any]:
    """Seconds and peak of a step."""
    import models
    import torch
    from torch.nn import functional as F

    net, layout = net_of(model, way, device)
    x, labels = batch_of(model, dims, net, layout, device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=device == "cuda")
    in_model = models.SPECS[model].loss == "inmodel"

    def loss() -> Any:
        with torch.autocast(device, torch.bfloat16, enabled="bf16" in way):
            return net(x, labels) if in_model else F.cross_entropy(net(x), labels)

    compute = torch.compile(loss) if "compiled" in way or "budget" in way else loss

    def whole() -> None:
        optimizer.zero_grad(set_to_none=True)
        hooks = torch.autograd.graph.save_on_cpu(pin_memory=device == "cuda") if way == "save_on_cpu" else nullcontext()
        with hooks:
            value = compute()
        value.backward()
        optimizer.step()

    for _ in range(WARM):
        whole()
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    took = seconds(device, whole, steps, warm=0)
    return {"seconds": took, "peak": torch.cuda.max_memory_allocated() if device == "cuda" else None}


def steps(options: dict[str, Any]) -> None:
    """Steps of models, each in its way."""
    sys.path.insert(0, str(MODELS / "make"))
    for model, dims, way in options["runs"]:
        about = {"model": model, "dims": dims, "way": way}
        try:
            with settings(way):
                say(**about, **step(model, dims, way, options["steps"], options.get("device", "cuda")))
        except Exception as error:  # The next way may do.
            say(**about, error=f"{type(error).__name__}: {error}"[:200])


def package(options: dict[str, Any]) -> None:
    """Steps of the Python package on the GPU, beside the same in PyTorch on the processor: the largest difference of a loss, and of a
    parameter as a share of its largest element."""
    import copy

    import torch

    try:
        import lmsc.torch
    except ImportError as error:
        say(skipped=f"no package lmsc: {error}")
        return
    from torch.nn import functional as F

    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.SiLU(), torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.SiLU(), torch.nn.Flatten(),
        torch.nn.Linear(16 * 256, 10),
    )  # fmt: skip
    batches = [(torch.randn(8, 3, 16, 16), torch.randint(0, 10, (8,))) for _ in range(options["steps"])]
    device = options.get("device", "cuda")
    on_gpu = options.get("tensors", device)
    for how, budget in (("cuda", None), ("cuda", "0.8x"), ("cuda+graph", "0.8x")):
        about = {"device": how, "budget": budget}
        try:
            theirs, ours = copy.deepcopy(net), copy.deepcopy(net).to(on_gpu)
            adamw = torch.optim.AdamW(theirs.parameters(), lr=1e-3)
            example = tuple(t.to(on_gpu) for t in batches[0])
            step = lmsc.torch.TrainStep(
                ours, F.cross_entropy, torch.optim.AdamW(ours.parameters(), lr=1e-3), example=example, budget=budget, device=how
            )
            losses = 0.0
            for x, y in batches:
                adamw.zero_grad()
                loss = F.cross_entropy(theirs(x), y)
                loss.backward()
                adamw.step()
                losses = max(losses, abs(float(step(x.to(on_gpu), y.to(on_gpu))) - float(loss.detach())))
            step.sync()
            pairs = zip(ours.parameters(), theirs.parameters(), strict=True)
            worst = max(float((a.detach().cpu() - b.detach()).abs().max() / b.detach().abs().max()) for a, b in pairs)
            say(**about, on=step.session.device, steps=step.steps, losses=losses, parameters=worst)
        except Exception as error:  # The next way may do.
            say(**about, error=f"{type(error).__name__}: {error}"[:300])


def main() -> int:
    what, options = sys.argv[1], json.loads(sys.argv[2])
    try:
        import torch
    except ImportError as error:
        say(skipped=f"no PyTorch: {error}")
        return 0
    if options.get("tensors", options.get("device", "cuda")) == "cuda" and not torch.cuda.is_available():
        say(skipped=f"PyTorch {torch.__version__} finds no GPU")
        return 0
    {"ceilings": ceilings, "link": link, "steps": steps, "package": package}[what](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
