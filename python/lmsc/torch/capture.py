"""A training step as a graph of PyTorch's operators without side effects.

The step is run once on fake tensors, which have shapes and no elements: the caller's own forward pass, PyTorch's autograd, and the
caller's optimizer. What was run is traced, and traced again to replace what is in place and operators that ONNX has not.
"""

from __future__ import annotations

import contextlib
import inspect
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from .composites import REPLACED, methods_replaced
from .errors import CaptureError, capture_error
from .gradients import lowering_table, tracing_table
from .optimizers import StateTensor, Update, _compiling, update_of


@dataclass
class Captured:
    """A traced step. The placeholders of `graph` are `inputs`, in order, and its results are `outputs`."""

    graph: torch.fx.GraphModule
    inputs: list[str]
    outputs: list[str]
    values: dict[str, Tensor] = field(default_factory=dict)
    """Values of parameters, buffers, state and scalars before the first step, where there are any."""
    constants: dict[str, Tensor] = field(default_factory=dict)
    """Small buffers that the step does not change."""
    sources: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The parameter group and the key in it that a scalar is read from."""


class _Whole(TorchFunctionMode):
    """Keeps dropout one operator, whose parts PyTorch would trace on the processor, and takes functions of `REPLACED` apart."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.fx.traceback.has_preserved_node_meta():
            # Operators that are traced from here on have this line, until there is another one.
            torch.fx.traceback.set_stack_trace(traceback.format_list(traceback.extract_stack()))
        if func in REPLACED:
            return REPLACED[func](*args, **kwargs)
        if func in (torch.dropout, torch.nn.functional.dropout) and not kwargs.get("inplace"):
            bound = inspect.signature(lambda input, p=0.5, training=True, train=None, inplace=False: None).bind(*args, **kwargs)
            a = bound.arguments
            training = a["train"] if a.get("train") is not None else a.get("training", True)
            if not training or a.get("p", 0.5) == 0:
                return a["input"]
            if 0 < a.get("p", 0.5) < 1:
                return torch.native_dropout(a["input"], a.get("p", 0.5), True)[0]
        return func(*args, **kwargs)


@contextlib.contextmanager
def _tracing() -> Iterator[None]:
    """Settings under which everything that runs becomes operators that can be translated.

    Attention is matrix products, an LSTM is its cells, and what a checkpoint would run again is not run: lmsc decides that.
    """
    from torch.utils import checkpoint

    def no_checkpoint(*_: Any, **__: Any) -> Iterator[None]:
        yield

    def run(function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        return function(*args)

    with contextlib.ExitStack() as stack:
        for context in (
            _compiling(),
            torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]),
            _without_mkldnn(),
            *(
                mock.patch.object(checkpoint, n, no_checkpoint)
                for n in dir(checkpoint)
                if n.startswith("_checkpoint_without_reentrant_gen")
            ),
            mock.patch.object(checkpoint.CheckpointFunction, "apply", run),
            methods_replaced(),
            warnings.catch_warnings(),
        ):
            stack.enter_context(context)
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _without_mkldnn() -> Iterator[None]:
    was = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(was)


def _fake(mode: FakeTensorMode, t: Tensor) -> Tensor:
    """A tensor like `t` without elements, on the processor."""
    with mode:
        return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cpu")


def _batch_names(model: nn.Module, leaves: list[tuple[Any, Any]], taken: set[str], positional: bool) -> list[str]:
    """Names for the tensors of the example: parameters of `model.forward`, and `target` for the last of a tuple."""
    parameters = [p.name for p in inspect.signature(model.forward).parameters.values() if p.kind != p.VAR_POSITIONAL]
    count = max((path[0].idx for path, _ in leaves if isinstance(path[0], pytree.SequenceKey)), default=0)
    names: list[str] = []
    for path, _ in leaves:
        head, *rest = path
        if isinstance(head, pytree.MappingKey):
            name = str(head.key)
        elif positional and head.idx == count and count > 0:
            name = "target"
        else:
            name = parameters[head.idx] if head.idx < len(parameters) else f"input_{head.idx}"
        name += "".join(f".{getattr(k, 'key', getattr(k, 'idx', k))}" for k in rest)
        while name in taken or name in names:
            name += "_"
        names.append(name)
    return names


def batch_names(model: nn.Module, example: Any, with_target: bool) -> list[str]:
    """The names of the inputs of a step over `example`, in the order of its tensors.

    `with_target` says that a loss function takes the last element of the tuple.
    """
    paths = [(p, v) for p, v in pytree.tree_flatten_with_path(example)[0] if isinstance(v, Tensor)]
    taken = {n for n, _ in [*model.named_parameters(), *model.named_buffers()]}
    return _batch_names(model, paths, taken, with_target and not isinstance(example, dict))


def _loss_and_more(result: Any) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss and the other outputs of what a loss function returned."""
    if isinstance(result, Tensor):
        return result, {}
    if getattr(result, "loss", None) is not None:
        return result.loss, {}
    if isinstance(result, dict):
        rest = {str(k): v for k, v in result.items() if k != "loss" and isinstance(v, Tensor)}
        return result["loss"], rest
    if isinstance(result, (tuple, list)) and result and isinstance(result[0], Tensor):
        return result[0], {f"output_{i}": v for i, v in enumerate(result[1:], 1) if isinstance(v, Tensor)}
    raise CaptureError(
        f"the loss is a {type(result).__name__}; return a tensor, a tuple whose first element is the loss, "
        "or a dict with the key `loss`"
    )


class _Step:
    """The step as a function over flat tensors."""

    def __init__(
        self, model: nn.Module, forward: Callable[..., Any], update: Update, trained: list[str], example: Any, *,
        clip_grad_norm: float | None, accumulate: int, ema: float | None,
    ) -> None:  # fmt: skip
        self.model, self.forward, self.update, self.trained = model, forward, update, trained
        self.clip_grad_norm, self.accumulate, self.ema = clip_grad_norm, accumulate, ema
        self.params, self.buffers = dict(model.named_parameters()), dict(model.named_buffers())
        self.leaves, self.spec = pytree.tree_flatten(example)
        self.tensors = [k for k, v in enumerate(self.leaves) if isinstance(v, Tensor)]
        self.state = dict(update.state)
        if ema is not None:
            for n in trained:
                p = self.params[n]
                self.state[f"{n}.ema"] = StateTensor(f"{n}.ema", tuple(p.shape), p.dtype, 0.0, p.detach())
        self.extra: list[str] = []
        self.outputs: list[str] = []

    def _losses(self, p: dict[str, Tensor], b: dict[str, Tensor], batch: list[Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        leaves = list(self.leaves)
        for k, t in zip(self.tensors, batch):
            leaves[k] = t
        example = pytree.tree_unflatten(leaves, self.spec)
        with _Whole():
            found = _loss_and_more(self.forward({**p, **b}, example))
        torch.fx.traceback.current_meta.pop("stack_trace", None)
        return found

    def _gradients(
        self, p: dict[str, Tensor], b: dict[str, Tensor], batch: list[Tensor]
    ) -> tuple[Tensor, dict[str, Any], dict[str, Tensor]]:
        """Loss, further outputs and gradients, averaged over the parts of the batch."""
        live = [p[n] for n in self.trained]
        parts = [t.chunk(self.accumulate) if t.dim() else [t] * self.accumulate for t in batch]
        total, sums, more = None, [None] * len(live), {}
        for k in range(self.accumulate):
            loss, more = self._losses(p, b, [part[k] for part in parts] if self.accumulate > 1 else batch)
            if loss.dim():
                raise CaptureError(f"the loss has the shape {tuple(loss.shape)}; reduce it to one number, for example with .mean()")
            loss = loss / self.accumulate if self.accumulate > 1 else loss
            if not loss.requires_grad:
                raise CaptureError("the loss does not depend on a parameter that the optimizer has")
            grads = torch.autograd.grad(loss, live, allow_unused=True)
            total = loss.detach() if total is None else total + loss.detach()
            sums = [g if s is None else s if g is None else s + g for s, g in zip(sums, grads)]
        return total, dict(zip(self.trained, sums)), more

    def __call__(self, *flat: Tensor) -> tuple[Tensor, ...]:
        it = iter(flat)
        p = {n: next(it).detach().clone().requires_grad_(n in set(self.trained)) for n in self.params}
        b = {n: next(it).clone() for n in self.buffers}
        s = {k: next(it) for k in self.state}
        scalars = {k: next(it) for k in self.update.scalars}
        loss, grads, more = self._gradients(p, b, list(it))
        results: dict[str, Tensor] = {"loss": loss, **{k: v.detach() for k, v in more.items()}}
        with torch.no_grad():
            if self.clip_grad_norm is not None:
                have = [g for g in grads.values() if g is not None]
                norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g.float()) for g in have]))
                factor = torch.clamp(self.clip_grad_norm / (norm + 1e-6), max=1.0)
                grads = {n: None if g is None else g * factor.to(g.dtype) for n, g in grads.items()}
                results["grad_norm"] = norm
            old = {n: v.detach() for n, v in p.items()}
            new, state = self.update.apply(old, grads, {k: s[k] for k in self.update.state}, scalars)
            if self.ema is not None:
                state.update({f"{n}.ema": self.ema * s[f"{n}.ema"] + (1 - self.ema) * new[n] for n in self.trained if n in new})
        results.update({f"{n}_new": v.detach() for n, v in {**new, **b, **state}.items()})
        self.outputs = list(results)
        return tuple(results.values())


def _forward_of(model: nn.Module, loss_fn: Callable[..., Any] | None, example: Any) -> Callable[..., Any]:
    """The function from parameters and the example to what `_loss_and_more` takes."""
    call = torch.func.functional_call

    def forward(values: dict[str, Tensor], example: Any) -> Any:
        if isinstance(example, dict):
            out = call(model, values, (), example)
            return out if loss_fn is None else loss_fn(out)
        if loss_fn is None:
            return call(model, values, tuple(example))
        return loss_fn(call(model, values, tuple(example[:-1])), example[-1])

    return forward


def capture(
    model: nn.Module, loss_fn: Callable[..., Any] | None, optimizer: torch.optim.Optimizer, example: Any, *, compact: bool,
    lr_input: bool, clip_grad_norm: float | None, accumulate: int, ema: float | None, places: bool = False,
) -> Captured:  # fmt: skip
    """The step of `model`, `loss_fn` and `optimizer` over a batch like `example`, traced without computing anything.

    With `places`, which takes longer, the operators of the forward pass know the lines that ran them.
    """
    if not isinstance(example, (tuple, list, dict)) or not example:
        raise CaptureError("the example is a tuple (input, …, target) or a dict of the model's keyword arguments")
    names = {id(p): n for n, p in model.named_parameters()}
    update = update_of(optimizer, names, compact=compact, lr_input=lr_input)
    inside = {id(p) for g in optimizer.param_groups for p in g["params"]}
    trained = [n for n, p in model.named_parameters() if p.requires_grad and id(p) in inside]
    step = _Step(
        model, _forward_of(model, loss_fn, example), update, trained, example,
        clip_grad_norm=clip_grad_norm, accumulate=accumulate, ema=ema,
    )  # fmt: skip
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    paths = [(p, v) for p, v in pytree.tree_flatten_with_path(example)[0] if isinstance(v, Tensor)]
    kept = [*step.params, *step.buffers, *step.state, *update.scalars]
    batch = batch_names(model, example, loss_fn is not None)
    with mode:
        state = [torch.empty(s.shape, dtype=s.dtype) for s in step.state.values()]
        scalars = [torch.empty(()) for _ in update.scalars]
    given = [*step.params.values(), *step.buffers.values()]
    args = [*(_fake(mode, t.detach()) for t in given), *state, *scalars, *(_fake(mode, t) for _, t in paths)]
    graph = _trace(step, args, compact, places)
    found = Captured(graph, [*kept, *batch], step.outputs, sources=update.sources)
    _values(found, step)
    _drop_unused(found, step)
    return found


class _Interpreter(torch.fx.Interpreter):
    """Runs a traced graph with tensors whose strides may be others than when it was traced.

    What was a view then may have to be a copy now. Where something writes into the view, that is an error, as it would be in PyTorch.
    """

    def run_node(self, n: torch.fx.Node) -> Any:
        if n.target is torch.ops.aten.view.default and not any(str(u.target).split(".")[1].endswith("_") for u in _users_of_views(n)):
            x, shape = self.fetch_args_kwargs_from_env(n)[0]
            return x.reshape(shape)
        return super().run_node(n)


def _users_of_views(n: torch.fx.Node) -> Iterator[torch.fx.Node]:
    """The operators that read `n` or a view of it."""
    for user in n.users:
        if isinstance(user.target, torch._ops.OpOverload):
            yield user
            if user.target.is_view:
                yield from _users_of_views(user)


def _trace(step: _Step, args: list[Tensor], compact: bool, places: bool) -> torch.fx.GraphModule:
    try:
        with _tracing(), torch.fx.traceback.preserve_node_meta(places):
            raw = make_fx(step, tracing_table(), "fake", _allow_non_fake_inputs=True)(*args)
    except CaptureError:
        raise
    except Exception as error:
        raise capture_error(error) from error
    for node in reversed(raw.graph.nodes):
        if str(node.target).startswith("profiler."):
            raw.graph.erase_node(node)
    raw.graph.eliminate_dead_code()
    raw.recompile()
    functional = torch.func.functionalize(lambda *a: _Interpreter(raw).run(*a), remove="mutations")
    try:
        with _tracing(), torch.no_grad(), torch.fx.traceback.preserve_node_meta(places):
            graph = make_fx(functional, lowering_table(compact), "fake", _allow_non_fake_inputs=True)(*args)
    except CaptureError:
        raise
    except Exception as error:
        raise capture_error(error) from error
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph


def _values(found: Captured, step: _Step) -> None:
    """Fills in the values before the first step, without copying those that exist."""
    real = {**step.params, **step.buffers}
    found.values.update({n: t.detach() for n, t in real.items() if t.device.type != "meta"})
    for n, s in step.state.items():
        if s.value is not None:
            if s.value.device.type != "meta":
                found.values[n] = s.value.detach()
        else:
            # One element, shown everywhere.
            found.values[n] = torch.full((), s.fill, dtype=s.dtype).expand(s.shape)
    for n, v in step.update.scalars.items():
        found.values[n] = torch.tensor(v, dtype=torch.float32)


CONSTANT_BYTES = 1 << 20
"""Buffers up to this size that the step does not change are constants of the graph. Masks and tables of positions are smaller."""


def _drop_unused(found: Captured, step: _Step) -> None:
    """Leaves out inputs that nothing uses, and new values that are the old ones."""
    graph = found.graph.graph
    holders = dict(zip((n for n in graph.nodes if n.op == "placeholder"), found.inputs))
    out = next(n for n in graph.nodes if n.op == "output")
    results = list(zip(found.outputs, out.args[0]))

    def origin(node: Any) -> Any:
        keeps = (torch.ops.aten.clone.default, torch.ops.aten.detach.default, torch.ops.aten.alias.default)
        while node.op == "call_function" and node.target in keeps:
            node = node.args[0]
        return node

    changed = [(n, r) for n, r in results if not (n.endswith("_new") and holders.get(origin(r)) == n[:-4])]
    found.outputs = [n for n, _ in changed]
    out.args = (tuple(r for _, r in changed),)
    graph.eliminate_dead_code()
    new = set(found.outputs)
    for node, name in holders.items():
        value = found.values.get(name)
        if not node.users:
            graph.erase_node(node)
            found.values.pop(name, None)
        elif name in step.buffers and f"{name}_new" not in new and value is not None and value.nbytes <= CONSTANT_BYTES:
            found.constants[name] = found.values.pop(name)
    found.inputs = [n for node, n in holders.items() if node in set(graph.nodes)]
    found.graph.recompile()
