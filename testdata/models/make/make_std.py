"""Makes training graphs of standard ONNX operators alone (opset 20) with PyTorch's exporter."""

import argparse
import tempfile
from pathlib import Path

import onnx
import torch
from torch import nn
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.fx.experimental.proxy_tensor import make_fx
from torch.func import functional_call, functionalize, grad_and_value
from torch.nn import functional as F

import compare
import models

ROOT = Path(__file__).resolve().parent.parent
KINDS = ("train_grad", "train_sgd", "train_adam", "train_grad_dyn", "train_grad_dropout")
BETA1, BETA2 = 0.9, 0.999
EPSILON = 1e-6  # the exporter's optimizer takes `x + 1e-8` for `x`

aten = torch.ops.aten


def convolution_backward(dy, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask):
    """The gradients of a convolution as convolutions.

    The weight's gradient correlates the input with `dy` as the kernel; stride and dilation change places.
    """
    rank = x.dim() - 2
    assert groups == 1
    swap = [1, 0, *range(2, rank + 2)]
    dx = dw = db = None
    if mask[0] and not transposed:
        extra = [
            x.shape[k + 2] - ((dy.shape[k + 2] - 1) * stride[k] - 2 * padding[k] + dilation[k] * (w.shape[k + 2] - 1) + 1)
            for k in range(rank)
        ]
        dx = aten.convolution(dy, w, None, stride, padding, dilation, True, extra, 1)
    elif mask[0]:
        dx = aten.convolution(dy, w, None, stride, padding, dilation, False, [0] * rank, 1)
    if mask[1]:
        image, kernel = (dy, x) if transposed else (x, dy)
        dw = aten.convolution(image.permute(swap), kernel.permute(swap), None, dilation, padding, stride, False, [0] * rank, 1)
        for k in range(2, rank + 2):
            if dw.shape[k] != w.shape[k]:
                dw = dw.narrow(k, 0, w.shape[k])
        dw = dw.permute(swap)
    if mask[2]:
        db = dy.sum([0, *range(2, rank + 2)])
    return dx, dw, db


def max_pool_backward(dy, x, kernel, stride, padding, dilation, ceil_mode, indices):
    """Adds every element of `dy` at the place that `indices` gives within its channel."""
    n, c = x.shape[:2]
    outputs = (n, c, dy.shape[2:].numel())
    dx = dy.new_zeros((n, c, x.shape[2:].numel())).scatter_add(-1, indices.reshape(outputs), dy.reshape(outputs))
    return dx.reshape(x.shape)


def avg_pool2d_backward(dy, x, kernel, stride, padding, ceil_mode, count_include_pad, divisor):
    """A transposed convolution of every channel with a constant kernel."""
    n, c, h, w = dy.shape
    ones = dy.new_full((1, 1, *kernel), 1.0 / (kernel[0] * kernel[1]))
    flat = dy.reshape(n * c, 1, h, w)
    dx = aten.convolution(flat, ones, None, stride or kernel, padding, [1, 1], True, [0, 0], 1)
    return dx.reshape(x.shape)


def adaptive_avg_pool2d_backward(dy, x):
    """Every element's share, spread over its window; the windows tile the input."""
    n, c, h, w = dy.shape
    kh, kw = x.shape[2] // h, x.shape[3] // w
    share = (dy / float(kh * kw)).reshape(n, c, h, 1, w, 1)
    return share.expand(n, c, h, kh, w, kw).reshape(x.shape)


TABLE = {
    **core_aten_decompositions(),
    **get_decompositions([aten.native_layer_norm, aten.native_batch_norm, aten._native_batch_norm_legit_functional]),
    aten.convolution_backward.default: convolution_backward,
    aten.max_pool2d_with_indices_backward.default: max_pool_backward,
    aten.max_pool3d_with_indices_backward.default: max_pool_backward,
    aten.avg_pool2d_backward.default: avg_pool2d_backward,
    aten._adaptive_avg_pool2d_backward.default: adaptive_avg_pool2d_backward,
}


class WithLoss(nn.Module):
    """A model and its loss: `forward` takes the data and the labels."""

    def __init__(self, model: nn.Module, loss: str):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, x, labels):
        if self.loss == "inmodel":
            return self.model(x, labels)
        if self.loss == "mse":
            return F.mse_loss(self.model(x), labels)
        return F.cross_entropy(self.model(x), labels)


def data(name: str, batch: int) -> tuple[list[str], tuple[torch.Tensor, torch.Tensor]]:
    """Names and samples of a model's data and labels."""
    spec = models.SPECS[name]
    inputs = models.inputs(name, batch)
    if spec.loss == "inmodel":
        return ["input_ids", "labels"], inputs
    with torch.no_grad():
        scores = models.build(name)(*inputs)
    if spec.loss == "mse":
        return ["input", "target"], (*inputs, torch.randn(scores.shape))
    return ["input", "labels"], (*inputs, torch.randint(0, scores.shape[1], (scores.shape[0], *scores.shape[2:])))


def without_dropout(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


class Traced(nn.Module):
    """A traced program as a module, as `torch.export` wants it. Names of symbolic dimensions are hashes of `t`."""

    def __init__(self, program: torch.fx.GraphModule):
        super().__init__()
        self.gm = program

    def forward(self, *t):
        return self.gm(*t)


def static_step(name: str, kind: str, model: nn.Module, batch: int):
    """A traced step of fixed batch: the program, the names of its inputs and those of its outputs.

    Running statistics are inputs and outputs; every other buffer is a constant.
    """
    data_names, samples = data(name, batch)
    whole = WithLoss(model, models.SPECS[name].loss)
    params = {n: p.detach() for n, p in model.named_parameters()}
    buffers = dict(model.named_buffers())
    stats = {n: b for n, b in buffers.items() if n.endswith(("running_mean", "running_var"))}
    np, ns = len(params), len(stats)

    def step(x, labels, *rest):
        weights, seen, state = rest[:np], rest[np : np + ns], rest[np + ns :]

        def loss(weights):
            held = buffers | {n: b.clone() for n, b in zip(stats, seen)}
            held |= {n: b.clone() for n, b in buffers.items() if n.endswith("num_batches_tracked")}
            tensors = {f"model.{n}": t for n, t in {**held, **dict(zip(params, weights))}.items()}
            return functional_call(whole, tensors, (x, labels)), [held[n] for n in stats]

        grads, (value, news) = grad_and_value(loss, has_aux=True)(weights)
        if kind == "train_sgd":
            return value, *(w - state[0] * g for w, g in zip(weights, grads)), *news
        if kind == "train_adam":
            lr, t, m, v = state[0], state[1], state[2 : 2 + np], state[2 + np :]
            m = [BETA1 * a + (1 - BETA1) * g for a, g in zip(m, grads)]
            v = [BETA2 * a + (1 - BETA2) * g * g for a, g in zip(v, grads)]
            c1, c2 = 1 - BETA1**t, 1 - BETA2**t
            weights = [w - lr * (a / c1) / (torch.sqrt(b / c2) + EPSILON) for w, a, b in zip(weights, m, v)]
            return value, *weights, *m, *v, *news
        return value, *grads, *news

    state, state_names = [], []
    suffix = ["_grad"]
    if kind in ("train_sgd", "train_adam"):
        state, state_names, suffix = [torch.tensor(1e-3)], ["learning_rate"], ["_new"]
    if kind == "train_adam":
        state += [torch.tensor(1.0), *(torch.zeros_like(p) for _ in range(2) for p in params.values())]
        state_names += ["step", *(n + ".exp_avg" for n in params), *(n + ".exp_avg_sq" for n in params)]
        suffix = ["_new", ".exp_avg_new", ".exp_avg_sq_new"]
    args = (*samples, *params.values(), *stats.values(), *state)
    functional = step if name in ("tiny_gpt2", "gpt2_small") else functionalize(step)
    program = make_fx(functional, decomposition_table=TABLE)(*args)
    program.graph.eliminate_dead_code()
    program.recompile()
    names_in = [*data_names, *params, *stats, *state_names]
    names_out = ["loss", *(n + s for s in suffix for n in params), *(n + "_new" for n in stats)]
    return torch.export.export(Traced(program), args), names_in, names_out


def symbolic_step(name: str, model: nn.Module):
    """A step with gradients whose batch is symbolic: the forward graph is exported and then differentiated.

    The differentiated program is taken apart into a flat function of parameters, buffers and data, and exported again,
    because the ONNX exporter writes an empty graph for outputs that are gradients.
    """
    from torch.export.experimental import _export_forward_backward

    data_names, samples = data(name, 7)
    whole = WithLoss(model, models.SPECS[name].loss)
    batch = torch.export.Dim("batch", min=2, max=1024)
    rows = {0: batch * (samples[1].shape[0] // samples[0].shape[0])}
    program = torch.export.export(whole, samples, dynamic_shapes=({0: batch}, rows))
    program = _export_forward_backward(program).run_decompositions(TABLE)
    signature, graph = program.graph_signature, program.graph

    results = {}
    output = graph.output_node()
    for spec, node in zip(signature.output_specs, output.args[0]):
        target = (spec.target or "").removeprefix("model.")
        results["loss" if spec.kind.name == "LOSS_OUTPUT" else target] = node
    params = [n for n, _ in model.named_parameters()]
    stats = [n for n, _ in model.named_buffers() if n.endswith(("running_mean", "running_var"))]
    output.args = ([results[n] for n in ("loss", *params, *stats)],)
    for node in list(graph.nodes):
        if node.target is aten.alias.default:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)

    state = {**dict(whole.named_parameters()), **dict(whole.named_buffers())}
    names_in, args = [], []
    for spec in signature.input_specs:
        if spec.kind.name != "USER_INPUT":
            names_in.append(spec.target.removeprefix("model."))
            args.append(state[spec.target].detach())
    names_in += data_names
    flat = Traced(torch.fx.GraphModule(program.graph_module, graph))
    shapes = (*(None for _ in args), {0: batch}, rows)
    exported = torch.export.export(flat, (*args, *samples), dynamic_shapes={"t": shapes})
    exported._guards_code = []  # the exporter's guards name a variable that a module of `*t` does not have
    names_out = ["loss", *(n + "_grad" for n in params), *(n + "_new" for n in stats)]
    return exported, names_in, names_out


def make(name: str, kind: str, path: Path) -> None:
    spec = models.SPECS[name]
    model = models.build(name)
    if kind != "train_grad_dropout":
        without_dropout(model)
    if kind == "train_grad_dyn":
        program, names_in, names_out = symbolic_step(name, model)
    else:
        program, names_in, names_out = static_step(name, kind, model, spec.batch)
    onnx_program = torch.onnx.export(
        program, dynamo=True, input_names=names_in, output_names=names_out, opset_version=20, verbose=False
    )
    graph = onnx_program.model_proto
    drop_unread_inputs(graph.graph)
    strip(graph)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(graph, path)


def drop_unread_inputs(graph: onnx.GraphProto) -> None:
    """Drops inputs that no node reads: the counters of batches that batch normalization keeps."""
    read = {i for node in graph.node for i in node.input}
    kept = [i for i in graph.input if i.name in read or not i.name.endswith("num_batches_tracked")]
    del graph.input[:]
    graph.input.extend(kept)


def strip(model: onnx.ModelProto) -> None:
    """Drops the exporter's metadata: it holds stack traces, with the paths of the machine that traced."""
    graph = model.graph
    for part in (model, graph, *graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        del part.metadata_props[:]
    for node in graph.node:
        node.doc_string = ""


def main() -> None:
    made = {kind: [n for n in models.SPECS if (ROOT / n / "std" / f"{kind}.onnx").exists()] for kind in KINDS}
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="\n\n".join(f"{kind}: {' '.join(names)}" for kind, names in made.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    every = sorted({n for names in made.values() for n in names})
    parser.add_argument("names", nargs="+", metavar="MODEL", choices=[*every, "all"], help="a model below, or all of the kind")
    parser.add_argument("--kind", default="train_grad", choices=KINDS, help="default: train_grad")
    parser.add_argument("--out", type=Path, default=ROOT, help="where <model>/std/ goes; default: in place")
    parser.add_argument("--check", action="store_true", help="write nothing, say how the result differs from what is committed")
    args = parser.parse_args()
    torch.set_num_threads(2)
    torch.backends.mkldnn.enabled = False  # else an LSTM is one opaque operator
    for name in made[args.kind] if "all" in args.names else args.names:
        file = Path(name) / "std" / f"{args.kind}.onnx"
        if not args.check:
            make(name, args.kind, args.out / file)
            continue
        with tempfile.TemporaryDirectory() as scratch:
            make(name, args.kind, Path(scratch) / file)
            compare.report(Path(scratch) / name / "std", ROOT / name / "std", ROOT, file.name)


if __name__ == "__main__":
    main()
