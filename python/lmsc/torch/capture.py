"""A training step as a graph of PyTorch's operators without side effects.

The step is run once on fake tensors, which have shapes and no elements: the caller's own forward pass, PyTorch's autograd, and the
caller's optimizer. What was run is traced, and traced again to replace what is in place and operators that ONNX has not.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import numbers
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch._dispatch.python import enable_python_dispatcher
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensorMode, dispatch_functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode

from lmsc import InputError

from . import pairs
from .attention import attention
from .composites import REPLACED, methods_replaced
from .errors import CaptureError, capture_error, line_of_trace
from .gradients import lowering_table, native_table, tracing_table
from .optimizers import LOCK, NoUpdate, StateTensor, Update, _compiling, hooks_of, update_of
from .reach import Absent, Reach, Saved, Slot, Tensors, lines_of_draws, refuse_changes
from .recurrent import gru, is_padded, lstm


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
    loss: str = "loss"
    """The output that is the loss."""
    pairs: dict[str, str] = field(default_factory=dict)
    """The output that is the next value of an input."""
    apart: list[str] = field(default_factory=list)
    """Tensors that share memory with another one until the first step puts others in their places."""
    renamed: bool = False
    """Whether a name of the step's own has given way to one of the model, so that names do not tell the pairs."""
    state: dict[str, StateTensor] = field(default_factory=dict)
    """What the optimizer keeps, by the names of inputs."""
    tensors: Tensors | None = None
    """The places of the module's tensors."""
    baked: list[Tensor] = field(default_factory=list)
    """Tensors of closures and globals, whose values the graph holds."""
    attributes: dict[str, tuple[nn.Module, str]] = field(default_factory=dict)
    """Outputs that the forward pass keeps in an attribute of a module, where nothing reads them."""
    assigned: list[tuple[nn.Module, str, Any]] = field(default_factory=list)
    """What the forward pass sets in Python, and does not read."""
    gradients: dict[str, str] = field(default_factory=dict)
    """The outputs that are gradients of parameters, of a step without an update."""


_SET_DATA = Tensor.data.__set__  # type: ignore[attr-defined]


_ATTENTION = (
    torch.nn.functional.scaled_dot_product_attention, torch.ops.aten.scaled_dot_product_attention,
    torch.ops.aten.scaled_dot_product_attention.default,
)  # fmt: skip


_RECURRENT: dict[Any, Callable[..., Any]] = {torch.lstm: lstm, torch.gru: gru}


class _Whole(TorchFunctionMode):
    """Keeps dropout one operator, whose parts PyTorch would trace on the processor, and takes functions of `REPLACED` apart.

    Attention is one operator if `compact`, and so is a layer of an LSTM or GRU. If `native`, PyTorch chooses the operators.
    """

    def __init__(self, compact: bool, native: bool = False) -> None:
        super().__init__()
        self.compact, self.native = compact, native

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.fx.traceback.has_preserved_node_meta():
            # Operators that are traced from here on have this line, until there is another one.
            torch.fx.traceback.set_stack_trace(traceback.format_list(traceback.extract_stack()))
        if func == _SET_DATA and args[0].shape == args[1].shape and args[0].dtype == args[1].dtype:
            # A trace would not see another storage.
            with torch.no_grad():
                args[0].copy_(args[1])
            return None
        if self.native:
            if func is torch.lstm and is_padded(args):
                # The operator of oneDNN cannot be traced.
                return lstm(*args, compact=False)
            return _checked_by_none(func, args, kwargs) if func in REPLACED else func(*args, **kwargs)
        if func in _ATTENTION:
            return attention(*args, **kwargs, compact=self.compact)
        if func in _RECURRENT and is_padded(args):
            return _RECURRENT[func](*args, compact=self.compact)
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
        opened = _opened(func)
        if opened is None:
            return func(*args, **kwargs)
        with self:
            return opened(*args, **kwargs)


def _checked_by_none(func: Any, args: Any, kwargs: Any) -> Any:
    """What PyTorch's function gives, or another one that computes the same where PyTorch's reads a number first, to check it."""
    try:
        return func(*args, **kwargs)
    except (DataDependentOutputException, DynamicOutputShapeException):
        return REPLACED[func](*args, **kwargs)


_GUARDS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
"""Functions by which those of `torch.nn.functional` ask whether a mode takes them as a whole."""


@functools.cache
def _opened(func: Any) -> Any:
    """The function without that question, for what it calls in turn; None for what is no such function.

    A mode is off while it runs what it was asked, so that attention within `multi_head_attention_forward` would pass by it.
    """
    if not isinstance(func, types.FunctionType) or func.__module__ != torch.nn.functional.__name__:
        return None
    if not any(guard in func.__code__.co_names for guard in _GUARDS):
        return None
    names = {**func.__globals__, **dict.fromkeys(_GUARDS, lambda *_: False)}
    opened = types.FunctionType(func.__code__, names, func.__name__, func.__defaults__, func.__closure__)
    opened.__kwdefaults__ = func.__kwdefaults__
    return opened


_SEEDS = ("manual_seed", "seed", "set_rng_state")
"""Functions of PyTorch that say which random numbers come next. A graph has its own, which go on from step to step."""


class _Seeded(Exception):
    """The step has set PyTorch's random numbers."""

    def __init__(self) -> None:
        super().__init__(
            "the step sets PyTorch's random numbers (manual_seed, fork_rng or set_rng_state), so that they are the same in all steps, and those "
            "of a graph are not; draw them once outside, and keep them in a buffer"
        )


@contextlib.contextmanager
def _tracing(native: torch.device | None = None) -> Iterator[None]:
    """Settings under which everything that runs becomes operators that can be translated, or those that PyTorch runs on the device `native`.

    What a checkpoint would run again is not run: lmsc decides that.
    """
    from torch.utils import checkpoint

    thread = threading.get_ident()

    def only_here(function: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
        """`other` in this thread, and `function` in all others."""
        return lambda *a, **k: (other if threading.get_ident() == thread else function)(*a, **k)

    def no_checkpoint(*_: Any, **__: Any) -> Iterator[None]:
        yield

    def no_seed(*_: Any, **__: Any) -> None:
        raise _Seeded

    def run(function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        return function(*args)

    with contextlib.ExitStack() as stack:
        for context in (
            _compiling(),
            *(
                mock.patch.object(checkpoint, n, only_here(getattr(checkpoint, n), no_checkpoint))
                for n in dir(checkpoint)
                if n.startswith("_checkpoint_without_reentrant_gen")
            ),
            *(mock.patch.object(m, n, only_here(getattr(m, n), no_seed)) for m in (torch, torch.random) for n in _SEEDS),
            mock.patch.object(checkpoint.CheckpointFunction, "apply", only_here(checkpoint.CheckpointFunction.apply, run)),
            methods_replaced() if native is None else contextlib.nullcontext(),
            # Kernels of accelerators write statistics without saying so, but for those that PyTorch's own compiler takes.
            enable_python_dispatcher() if native is not None and native.type != "cpu" else contextlib.nullcontext(),
            warnings.catch_warnings(),
        ):
            stack.enter_context(context)
        warnings.simplefilter("ignore")
        yield


def _fake(mode: FakeTensorMode, t: Tensor, device: torch.device | str = "cpu") -> Tensor:
    """A tensor like `t` without elements."""
    with mode:
        return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device)


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


def first_places(tensors: list[Tensor]) -> tuple[int, ...]:
    """For each tensor the place of the first one that is the same object; empty where all are different ones."""
    ids = list(map(id, tensors))
    return () if len(set(ids)) == len(ids) else tuple(map(ids.index, ids))


def _changed_by(hook: Callable[[Tensor], Any], gradient: Tensor, name: str) -> Tensor:
    """The gradient of the parameter behind its hook, of which PyTorch asks for a tensor of the same shape and type."""
    changed = hook(gradient)
    if changed is None:
        return gradient
    if not isinstance(changed, Tensor) or (changed.shape, changed.dtype) != (gradient.shape, gradient.dtype):
        what = f"{changed.dtype} of shape {tuple(changed.shape)}" if isinstance(changed, Tensor) else repr(changed)
        raise CaptureError(f"a hook makes {what} of the gradient of `{name}`, which PyTorch refuses; return a tensor like the gradient, or nothing")
    return changed


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
    """The step as a function over flat tensors, and what tracing it has shown."""

    def __init__(
        self, model: nn.Module, loss_fn: Callable[..., Any] | None, update: Update, trained: list[str], example: Any, reach: Reach, *,
        compact: bool, native: torch.device | None, as_one: bool, clip_grad_norm: float | None, accumulate: int, ema: float | None,
    ) -> None:  # fmt: skip
        self.compact, self.native = compact, native
        self.gradients: dict[str, str] = {}
        self.model, self.loss_fn, self.update, self.trained, self.reach = model, loss_fn, update, trained, reach
        self.clip_grad_norm, self.accumulate, self.ema = clip_grad_norm, accumulate, ema
        self.replaced: set[str] = set()
        """Tensors in whose places the forward pass puts others, without writing into them."""
        self.leaves, self.spec = pytree.tree_flatten(example)
        paths = [(p, v) for p, v in pytree.tree_flatten_with_path(example)[0] if isinstance(v, Tensor)]
        self.places = [k for k, v in enumerate(self.leaves) if isinstance(v, Tensor)]
        self.batch = batch_names(model, example, loss_fn is not None)
        self.example = [v for _, v in paths]
        self.first = (first_places(self.example) if as_one else ()) or tuple(range(len(paths)))
        """For each tensor of the batch the place of the one that stands for it."""
        self.tensors = Tensors(model, reach.modules, self.batch)
        self.real = self.tensors.all()
        self.state = dict(update.state)
        if ema is not None:
            for n in trained:
                p = self.real[n]
                self.state[f"{n}.ema"] = StateTensor(f"{n}.ema", tuple(p.shape), p.dtype, 0.0, p.detach(), n, "ema")
        self.name = self._names()
        self.loss, self.pairs, self.outputs = "loss", {}, []
        self.assigned: list[tuple[nn.Module, str, Any]] = []
        self.attributes: dict[str, tuple[nn.Module, str]] = {}
        self.kept: dict[tuple[int, str], Tensor] = {}
        """Fake tensors that the forward pass has put into attributes, by the module's `id` and the name."""
        self.more: list[Slot] = []
        """Attributes to which the second trace gives tensors before the step."""

    def _names(self) -> dict[str, str]:
        """The inputs of state and scalars. They give way to names of the model and the batch."""
        taken, found = {*self.real, *self.batch}, {}
        for n in (*self.state, *self.update.scalars):
            name = n
            while name in taken:
                name += "_"
            found[n] = name
            taken.add(name)
        return found

    @property
    def inputs(self) -> list[str]:
        """The names of what the step takes, in order."""
        return [*self.real, *self.name.values(), *self.batch]

    def _output(self, name: str) -> str:
        """A name for an output that nothing has yet."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def _call(self, example: Any) -> Any:
        """What `_loss_and_more` takes."""
        if isinstance(example, dict):
            out = self.model(**example)
            return out if self.loss_fn is None else self.loss_fn(out)
        if self.loss_fn is None:
            return self.model(*example)
        return self.loss_fn(self.model(*example[:-1]), example[-1])

    def _losses(self, batch: list[Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        leaves = list(self.leaves)
        for k, t in zip(self.places, batch):
            leaves[k] = t
        with _Whole(self.compact, self.native is not None):
            found = _loss_and_more(self._call(pytree.tree_unflatten(leaves, self.spec)))
        torch.fx.traceback.current_meta.pop("stack_trace", None)
        return found

    def _part(self, loss: Tensor, live: list[Tensor], sums: list[Tensor | None]) -> list[Tensor | None]:
        """The gradients so far and those of a loss, as `backward` adds them up, with the hooks of parameters."""
        grads = list(torch.autograd.grad(loss, live, allow_unused=True))
        found: list[Tensor | None] = []
        for n, p, g, s in zip(self.trained, live, grads, sums):
            real = self.real[n]
            hooks = list((real._backward_hooks or {}).values())
            behind = list((getattr(real, "_post_accumulate_grad_hooks", None) or {}).values())
            inner, p.grad = p.grad, None
            if inner is not None:
                # `backward` inside of a function of autograd, as reversible layers do.
                if hooks or behind:
                    raise CaptureError(f"`{n}` has a hook, and a gradient by `backward()` inside of an autograd function; remove the hook")
                g = inner if g is None else g + inner
            for hook in hooks if g is not None else ():
                g = _changed_by(hook, g, n)
            total = g if s is None else s if g is None else s + g
            if behind and g is not None:
                with torch.no_grad():
                    p.grad = total.detach().clone()
                    for hook in behind:
                        if hook(p) is not None:
                            raise CaptureError(f"a hook behind the gradient of `{n}` returns something, which PyTorch refuses")
                    total, p.grad = p.grad, None
            found.append(total)
        return found

    def _gradients(self, live: list[Tensor], batch: list[Tensor]) -> tuple[Tensor, dict[str, Any], dict[str, Tensor]]:
        """Loss, further outputs and gradients, averaged over the parts of the batch."""
        if self.accumulate > 1:
            uneven = [n for n, t in zip(self.batch, batch) if t.dim() and t.shape[0] % self.accumulate]
            if uneven:
                raise CaptureError(f"`{uneven[0]}` cannot be split into {self.accumulate} equal parts; let `accumulate` divide the batch")
        chunks = {k: batch[k].chunk(self.accumulate) if batch[k].dim() else [batch[k]] * self.accumulate for k in set(self.first)}
        parts = [chunks[k] for k in self.first]
        total, sums, more = None, [None] * len(live), {}
        for k in range(self.accumulate):
            loss, more = self._losses([part[k] for part in parts] if self.accumulate > 1 else batch)
            if loss.dim():
                raise CaptureError(f"the loss has the shape {tuple(loss.shape)}; reduce it to one number, for example with .mean()")
            loss = loss / self.accumulate if self.accumulate > 1 else loss
            if not loss.requires_grad:
                raise CaptureError("the loss does not depend on a parameter that the optimizer has")
            sums = self._part(loss, live, sums)
            total = loss.detach() if total is None else total + loss.detach()
        return total, dict(zip(self.trained, sums)), more

    def __call__(self, *flat: Tensor) -> tuple[Tensor, ...]:
        it = iter(flat)
        trained = set(self.trained)
        live = {n: next(it).detach().clone().requires_grad_(n in trained) for n in self.real}
        s = {k: next(it) for k in self.state}
        scalars = {k: next(it) for k in self.update.scalars}
        given = [next(it) for _ in self.batch]
        batch = [given[k] for k in self.first]
        saved = Saved(self.reach, self.model)
        for slot in self.tensors.slots:
            slot.holder[slot.key] = live[slot.name]
        for slot in self.more:
            slot.holder[slot.key] = next(it).clone()
        try:
            return self._run(live, s, scalars, batch, saved)
        finally:
            for slot in self.tensors.slots:
                slot.holder[slot.key] = self.real[slot.name]
            saved.restore()

    def _run(
        self, live: dict[str, Tensor], s: dict[str, Tensor], scalars: dict[str, Tensor], batch: list[Tensor], saved: Saved
    ) -> tuple[Tensor, ...]:
        for module in self.model.modules():
            # What torch.compile has made of it computes the same.
            vars(module).pop("_compiled_call_impl", None)
        loss, grads, more = self._gradients([live[n] for n in self.trained], batch)
        self._taken = set(self.inputs)
        self.loss = self._output("loss")
        results: dict[str, Tensor] = {self.loss: loss, **{self._output(k): v.detach() for k, v in more.items()}}
        if self.native:
            grads = {n: None if g is None else _laid_out(g, self.real[n]) for n, g in grads.items()}
        with torch.no_grad():
            if self.clip_grad_norm is not None:
                have = [g for g in grads.values() if g is not None]
                if self.native:
                    norm = torch.nn.utils.get_total_norm(have)
                else:
                    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g.float()) for g in have]))
                factor = torch.clamp(self.clip_grad_norm / (norm + 1e-6), max=1.0)
                grads = {n: None if g is None else g * (factor if self.native else factor.to(g.dtype)) for n, g in grads.items()}
                results[self._output("grad_norm")] = norm
            # Hooks of the optimizer may have the parameters from the model.
            old = {n: live[n] if self.update.hooked else live[n].detach() for n in self.tensors.parameters}
            new, state = self.update.apply(old, grads, {k: s[k] for k in self.update.state}, scalars)
            if self.ema is not None:
                state.update({f"{n}.ema": self.ema * s[f"{n}.ema"] + (1 - self.ema) * new[n] for n in self.trained if n in new})
        now = self._kept_by_forward(live)
        self._attributes_after(saved, results)
        self.pairs, self.gradients = {}, {}
        for n, g in grads.items() if self.native else ():
            if g is not None:
                self.gradients[n] = self._output(f"{n}.grad")
                results[self.gradients[n]] = g.detach()
        for n, v in {**{n: v for n, v in now.items() if n not in new}, **new, **{self.name[k]: v for k, v in state.items()}}.items():
            self.pairs[n] = self._output(f"{n}_new")
            results[self.pairs[n]] = v.detach()
        self.outputs = list(results)
        return tuple(results.values())

    def _kept_by_forward(self, live: dict[str, Tensor]) -> dict[str, Tensor]:
        """What is in the places of parameters, buffers and other tensors after the step."""
        now: dict[str, Tensor] = {}
        self.replaced = set()
        for slot in self.tensors.slots:
            n, was = slot.name, live[slot.name]
            try:
                have = slot.holder[slot.key]
            except (KeyError, IndexError):
                have = None
            line = self.reach.line_of(n)
            if not isinstance(have, Tensor) or have is not was and n in self.tensors.parameters:
                raise CaptureError(f"{line}the step replaces `{n}`, or takes it away; write into it: under no_grad, with copy_()")
            if have.shape != was.shape or have.dtype != was.dtype:
                raise CaptureError(
                    f"{line}`{n}` is {_type(was)} before the step and {_type(have)} after it; a graph cannot keep what changes its type: "
                    "make it as large as it becomes"
                )
            if have.untyped_storage()._cdata != was.untyped_storage()._cdata and have is was:
                raise CaptureError(f"{line}`{n}` gets another storage; write into it with copy_() in place of `.data =` or `set_`")
            if n in now and now[n] is not have:
                raise CaptureError(f"{line}`{n}` is in two places of the model, of which the step changes one; write into it with copy_()")
            now[n] = have
            if have is not was and was._version == 0:
                self.replaced.add(n)
        return now

    def _attributes_after(self, saved: Saved, results: dict[str, Tensor]) -> None:
        """Notes what the forward pass has left in attributes, and refuses what a graph cannot keep."""
        places = [(s.holder, s.key) for s in self.tensors.slots]
        slots = {(id(h), k) for h, k in places}
        for slot in self.tensors.slots:
            slot.holder[slot.key] = self.real[slot.name]
        self.assigned, self.attributes, self.kept = [], {}, {}
        for module, key, _, now in saved.changed():
            if (id(vars(module)), key) in slots or key == "_compiled_call_impl":
                continue
            if isinstance(module, nn.RNNBase) and key.startswith("_flat_weight"):
                # References to the parameters, which it makes anew for those of the trace.
                continue
            label = f"{type(module).__name__}.{key}"
            if isinstance(now, Tensor):
                if _depends_on_inputs(now):
                    name = self._output(key)
                    results[name] = now.detach()
                    self.attributes[name], self.kept[id(module), key] = (module, key), now
            elif now is Absent or any(isinstance(v, Tensor) for v in pytree.tree_leaves(now)) or not _is_value(now):
                raise CaptureError(
                    f"{self.reach.line_of(key)}the step changes `{label}`, which is in Python, and a graph cannot: keep tensors as buffers of the "
                    "module (register_buffer), or return them beside the loss"
                )
            else:
                self.assigned.append((module, key, now))
        saved.clean()
        refuse_changes(saved)
        which = saved.drawn()
        if which is not None:
            raise _Drawn(which, lambda: saved.drawn() is not None)


class _Drawn(Exception):
    """Random numbers of Python or NumPy were drawn."""

    def __init__(self, which: str, moved: Callable[[], bool]) -> None:
        super().__init__(which)
        self.moved = moved


def _laid_out(gradient: Tensor, parameter: Tensor) -> Tensor:
    """The gradient as PyTorch keeps it in `.grad`: with the strides of a parameter that is dense, else contiguous."""
    if gradient.layout != torch.strided:
        raise CaptureError("a parameter has a sparse gradient, which a graph does not hold: make it dense, as by Embedding(sparse=False)")
    dense = bool(is_non_overlapping_and_dense_or_false(parameter))
    strides = zip(gradient.shape, gradient.stride(), parameter.stride())
    if all(n == 1 or a == b for n, a, b in strides) if dense else gradient.is_contiguous():
        return gradient
    if not dense:
        return gradient.clone(memory_format=torch.contiguous_format)
    return gradient.new_empty_strided(gradient.shape, parameter.stride()).copy_(gradient)


def _type(t: Tensor) -> str:
    return f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}"


def _is_value(value: Any) -> bool:
    plain = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
    return all(isinstance(v, plain) for v in pytree.tree_leaves(value))


def _depends_on_inputs(t: Tensor) -> bool:
    """Whether a tensor of the trace is computed from what the step takes, and not from constants only."""
    from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot

    mode = get_proxy_mode()
    proxy = get_proxy_slot(t, mode.tracer, None) if mode is not None else None
    if proxy is None:
        return False
    todo, seen = [proxy.proxy.node], set()
    while todo:
        node = todo.pop()
        if node.op == "placeholder":
            return True
        if node not in seen:
            seen.add(node)
            todo += node.all_input_nodes
    return False


def check_arguments(
    model: Any, loss_fn: Any, optimizer: Any, clip_grad_norm: Any = None, accumulate: Any = 1, ema: Any = None
) -> None:
    """Raises `InputError` if an argument of a step is of another kind, such as two that have changed places."""
    kind = type(optimizer).__name__
    if not isinstance(model, nn.Module):
        raise InputError(f"the model is a torch.nn.Module, not {type(model).__name__}")
    if loss_fn is not None and (not callable(loss_fn) or isinstance(loss_fn, torch.optim.Optimizer)):
        raise InputError(f"the loss is a function of the model's result and the target, or None where the model returns it, not {type(loss_fn).__name__}")
    if isinstance(optimizer, type) or not hasattr(optimizer, "param_groups"):
        made = f"{optimizer.__name__}(model.parameters(), …)" if isinstance(optimizer, type) else "torch.optim.AdamW(model.parameters())"
        raise InputError(f"the optimizer is one of torch.optim, such as `{made}`, not {'a class' if isinstance(optimizer, type) else kind}")
    for name, value, is_right, form in (
        ("clip_grad_norm", clip_grad_norm, lambda v: _is_number(v) and v >= 0, "a norm, 0 or more"),
        ("accumulate", accumulate, lambda v: _is_number(v) and isinstance(v, numbers.Integral) and v >= 1, "a number of parts, 1 or more"),
        ("ema", ema, lambda v: _is_number(v) and 0 <= v <= 1, "a decay from 0 to 1"),
    ):
        if value is not None and not is_right(value):
            raise InputError(f"{name}={value!r}: {form}")


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def capture(
    model: nn.Module, loss_fn: Callable[..., Any] | None, optimizer: torch.optim.Optimizer, example: Any, *, compact: bool,
    lr_input: bool, clip_grad_norm: float | None, accumulate: int, ema: float | None, inputs: frozenset[str] = frozenset(),
    places: bool = False, native: torch.device | None = None, of_all: bool = False, as_one: bool = True,
) -> Captured:  # fmt: skip
    """The step of `model`, `loss_fn` and `optimizer` over a batch like `example`, traced without computing anything.

    Buffers of the names `inputs` are inputs even if they are small and the step does not change them. With `places`, which takes
    longer, the operators of the forward pass know the lines that ran them.

    `native`: the step is one of the operators that PyTorch runs on this device, all its tensors are inputs, and it ends with the gradients,
    `of_all` parameters if they are not only for the optimizer.

    Tensors of the example that are one object are one in the step, too, which reads the first of them, unless `as_one` is false.
    """
    check_arguments(model, loss_fn, optimizer, clip_grad_norm, accumulate, ema)
    if not isinstance(example, (tuple, list, dict)) or not example:
        raise CaptureError("the example is a tuple (input, …, target) or a dict of the model's keyword arguments")
    model, loss_fn = plain_module(model), plain_function(loss_fn)
    with LOCK:
        refuse_unknown(optimizer, native is not None)
        reach = reach_of(model, loss_fn, optimizer)
        saved = Saved(reach, model)
        kept = _optimizer_state(optimizer)
        TRACING.on = True
        try:
            return _captured(model, loss_fn, optimizer, example, reach, compact=compact, lr_input=lr_input, inputs=inputs,
                             places=places, native=native, of_all=of_all, as_one=as_one, clip_grad_norm=clip_grad_norm, accumulate=accumulate, ema=ema)  # fmt: skip
        finally:
            TRACING.on = False
            saved.restore()
            _restore_optimizer(optimizer, kept)


TRACING = threading.local()
"""Has `on` while this thread traces a step."""


def _optimizer_state(optimizer: torch.optim.Optimizer) -> tuple[Any, ...]:
    state, groups = optimizer.state, optimizer.param_groups
    return state, {p: dict(s) for p, s in state.items()}, groups, [dict(g) for g in groups], list(groups)


def _restore_optimizer(optimizer: torch.optim.Optimizer, kept: tuple[Any, ...]) -> None:
    state, of, groups, contents, members = kept
    optimizer.state, optimizer.param_groups = state, groups
    groups[:] = members
    for group, content in zip(groups, contents):
        group.clear()
        group.update(content)
    for p in [p for p in state if p not in of]:
        del state[p]
    for p, content in of.items():
        if p not in state or state[p].keys() != content.keys() or any(state[p][k] is not v for k, v in content.items()):
            state[p] = content


def reach_of(
    model: nn.Module, loss_fn: Callable[..., Any] | None, optimizer: torch.optim.Optimizer, without: frozenset[tuple[int, str]] = frozenset()
) -> Reach:
    """What the step can reach, the hooks of parameters and of the optimizer included. `without` names attributes that do not count."""
    hooks: list[tuple[str, Any]] = [(f"hook of {type(optimizer).__name__}", h) for h in hooks_of(optimizer)]
    hooks += [("hook of all modules", h) for of in global_hooks() for h in of.values()]
    for n, p in model.named_parameters():
        for of in (p._backward_hooks, getattr(p, "_post_accumulate_grad_hooks", None)):
            hooks += [(f"hook of {n}", h) for h in (of or {}).values()]
    return Reach(model, loss_fn, hooks, without)


def global_hooks() -> list[dict[int, Any]]:
    """Hooks that all modules have in common."""
    from torch.nn.modules import module

    return [v for k, v in vars(module).items() if k.startswith("_global_") and k.endswith("_hooks") and isinstance(v, dict)]


def plain_module(model: nn.Module) -> nn.Module:
    """The module that computes: what torch.compile has made of it computes the same.

    Raises:
        CaptureError: Several processes or devices share its work.
    """
    inner = getattr(model, "_orig_mod", None)
    if isinstance(inner, nn.Module):
        model = inner
    for m in model.modules():
        kind = type(m).__name__
        if kind == "OptimizedModule":
            raise CaptureError("a part of the model is compiled by torch.compile; compile the whole model, or give it as it was before")
        if isinstance(m, nn.DataParallel):
            raise CaptureError("the model is in DataParallel, and a step runs on one device; give `model.module`")
        if kind in ("DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule") or "FSDP" in kind:
            distributed = torch.distributed
            if distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1:
                raise CaptureError(f"the model is in {kind} over several processes, and a step does not exchange gradients; train in one process")
            raise CaptureError(f"the model is in {kind}; give `model.module`, since a step runs in one process")
    return model


def plain_function(loss_fn: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """The loss function as it was before torch.compile."""
    if isinstance(loss_fn, nn.Module):
        return plain_module(loss_fn)
    return getattr(loss_fn, "_torchdynamo_orig_callable", loss_fn)


def refuse_unknown(optimizer: torch.optim.Optimizer, native: bool = False) -> None:
    """Refuses settings under which PyTorch would do something else, or nothing. `native`: the step is traced for PyTorch's own kernels."""
    if not torch.is_grad_enabled() or torch.is_inference_mode_enabled():
        raise CaptureError("gradients are switched off (no_grad or inference_mode) around the step; leave that block")
    if torch.is_autocast_enabled("cuda") and not native:
        raise CaptureError("a step is traced on the processor, where autocast for `cuda` does nothing; use torch.autocast('cpu', dtype=…)")
    if isinstance(inspect.getattr_static(type(optimizer), "param_groups", None), property):
        raise CaptureError(
            f"{type(optimizer).__name__} hands over to another optimizer; give that one, as `optimizer.optimizer` where accelerate has prepared it"
        )
    own = vars(optimizer).get("step")
    if own is not None and not hasattr(own, "_wrapped_by_lr_sched"):
        raise CaptureError("`step` of this optimizer has been replaced; write a class of its own, or a hook")


def _captured(
    model: nn.Module, loss_fn: Callable[..., Any] | None, optimizer: torch.optim.Optimizer, example: Any, reach: Reach, *,
    compact: bool, lr_input: bool, inputs: frozenset[str], places: bool, native: torch.device | None, of_all: bool, **options: Any,
) -> Captured:  # fmt: skip
    names = {id(p): n for n, p in model.named_parameters()}
    update = NoUpdate() if native else update_of(optimizer, names, compact=compact, lr_input=lr_input)
    inside = {id(p) for g in optimizer.param_groups for p in g["params"]}
    trained = [n for n, p in model.named_parameters() if p.requires_grad and (of_all or id(p) in inside)]
    step = _Step(model, loss_fn, update, trained, example, reach, compact=compact, native=native, **options)
    from .translate.builder import ONNX_TYPES

    for name, t in (*step.real.items(), *zip(step.batch, step.example)):
        constant = name in step.tensors.buffers or name in step.tensors.others
        if (native is None and t.dtype not in ONNX_TYPES and not (t.is_complex() and constant)) or t.layout is not torch.strided or t.is_nested:
            raise _not_dense_and_real(name, t)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        state = [torch.empty(s.shape, dtype=s.dtype) for s in step.state.values()]
        scalars = [torch.empty(()) for _ in update.scalars]
    places_of = _devices(list(step.real.values()), native)
    given = [_fake(mode, t.detach(), device) for t, device in zip(step.real.values(), places_of)]
    args = [*given, *state, *scalars, *(_fake(mode, t, native or "cpu") for t in step.example)]
    raw = _traced(step, args, places)
    found = Captured(
        _lowered(raw, args, None if native else lowering_table(compact), places, native), step.inputs, step.outputs, loss=step.loss, pairs=dict(step.pairs), tensors=step.tensors,
        sources={step.name[k]: v for k, v in update.sources.items()}, state={step.name[k]: v for k, v in step.state.items()},
        attributes=step.attributes, assigned=step.assigned, baked=_baked(raw), gradients=dict(step.gradients),
    )  # fmt: skip
    found.renamed = any(k != v for k, v in step.name.items()) or any(v != f"{k}_new" for k, v in step.pairs.items()) or step.loss != "loss"
    _is_steady(step, raw, args)
    _is_settled(step, raw, args, mode)
    _values(found, step)
    _drop_unused(found, step, inputs)
    (results,) = (n.args[0] for n in raw.graph.nodes if n.op == "output")
    is_complex = {name for name, r in zip(step.outputs, results) if r.meta["val"].is_complex()}
    for name in (n for n in found.outputs if native is None and n in is_complex):
        raise CaptureError(f"`{name}`, which the step computes, is complex, and a graph gives real numbers; make it torch.view_as_real of that")
    for name in found.inputs:
        if native is None and name not in found.constants and name in step.real and step.real[name].is_complex():
            raise _not_dense_and_real(name, step.real[name])
    _separate(found, step)
    return found


def _not_dense_and_real(name: str, t: Tensor) -> CaptureError:
    kind = "nested" if t.is_nested else t.layout
    return CaptureError(
        f"`{name}` is a {kind} tensor of {t.dtype}, and a graph has dense tensors of real numbers, and complex ones as constants of at most 1 MiB "
        "that stay as they are; "
        "give complex numbers as torch.view_as_real, and others as to_dense() or padded"
    )


def _devices(tensors: list[Tensor], native: torch.device | None) -> list[torch.device | str]:
    """The devices on which the tensors are in the step. Those beside the first one's, such as tables on the processor, stay where they are."""
    if native is None:
        return ["cpu"] * len(tensors)
    return [native if t.device == tensors[0].device or t.device.type == "meta" else t.device for t in tensors]


def _separate(found: Captured, step: _Step) -> None:
    """Refuses a tensor that the step changes where another one, in the same memory, is read: that one would not change with it."""
    read = {n for node, n in zip((n for n in found.graph.graph.nodes if n.op == "placeholder"), found.inputs) if node.users}
    places = sorted((*extent, n) for n, t in step.real.items() if (extent := _extent(t)) is not None)
    reach: list[tuple[int, int, str]] = []
    for start, end, name in places:
        reach = [r for r in reach if r[1] > start]
        for _, _, other in reach:
            for a, b in ((name, other), (other, name)):
                if a in found.pairs and a not in step.replaced and b in read:
                    raise CaptureError(
                        f"{step.reach.line_of(a)}the step changes `{a}` and reads `{b}`, which has the same memory, and a graph has two tensors: use "
                        "one of them in both places"
                    )
                if a in found.pairs and a in step.replaced and a not in found.apart:
                    found.apart.append(a)
        reach.append((start, end, name))


def _extent(t: Tensor) -> tuple[int, int] | None:
    """The addresses of a tensor's elements; None for one that has none."""
    if t.device.type == "meta" or not t.numel():
        return None
    try:
        start = t.data_ptr()
    except RuntimeError:
        return None
    last = sum((s - 1) * k for s, k in zip(t.shape, t.stride()))
    return start, start + (last + 1) * t.element_size()


def _baked(raw: torch.fx.GraphModule) -> list[Tensor]:
    """Tensors that were there before the trace and whose values the graph holds. To write into one is refused."""
    found = {}
    for node in raw.graph.nodes:
        if node.op == "get_attr" and isinstance(getattr(raw, node.target, None), Tensor):
            found[node] = getattr(raw, node.target)
    for node in raw.graph.nodes:
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        origin = node.args[0] if node.args else None
        if origin in found and node.target.is_view:
            found[node] = found[origin]
        elif node.target._schema.is_mutable and any(a in found for a in node.args if isinstance(a, torch.fx.Node)):
            written = [a for a, of in zip(node.args, node.target._schema.arguments) if of.alias_info is not None and of.alias_info.is_write]
            if any(w in found for w in written if isinstance(w, torch.fx.Node)):
                raise CaptureError(
                    f"the step writes into a tensor of {_type(found[written[0]])} that is no buffer of the model (a global or a variable of a "
                    "closure); register it as a buffer"
                )
    return list({id(t): t for t in found.values()}.values())


def _is_steady(step: _Step, raw: torch.fx.GraphModule, args: list[Tensor]) -> None:
    """Refuses a step that is another one each time it is traced, since it looks at a clock or draws numbers in a way of its own."""
    if not step.reach.unsteady:
        return
    again = _traced(step, args, False)
    if _operators(again) == _operators(raw):
        return
    placed = _traced(step, args, True)
    nodes = [n for n in placed.graph.nodes if n.op in ("call_function", "get_attr")]
    first = next((n for n, a, b in zip(nodes, _operators(placed), _operators(raw)) if a != b), None)
    users = [n for n in (first, *(first.users if first is not None else ())) if n is not None]
    line = next((f"{at}: " for at in (line_of_trace(n.meta.get("stack_trace")) for n in users) if at), "")
    raise CaptureError(
        f"{line}the step is another one each time it is captured, as it is where it reads a clock, or draws random numbers from the system, and a "
        "graph would keep one value for all steps; give what differs as a part of the batch"
    )


def _is_settled(step: _Step, raw: torch.fx.GraphModule, args: list[Tensor], mode: FakeTensorMode) -> None:
    """Refuses a step that is another one the next time, since the forward pass reads an attribute that it has set."""
    if not step.assigned and not step.attributes:
        return
    first, assigned, attributes = _operators(raw), step.assigned, step.attributes
    saved = Saved(step.reach, step.model)
    more = [t for _, t in sorted(((k, step.kept[id(m), k]) for m, k in attributes.values()), key=lambda pair: pair[0])]
    step.more = [Slot(vars(m), k, k) for m, k in sorted(attributes.values(), key=lambda pair: pair[1])]
    kept = step.outputs, step.pairs
    try:
        for module, key, value in assigned:
            vars(module)[key] = value
        again = _traced(step, [*args, *(_fake(mode, t.detach()) for t in more)], False)
    finally:
        saved.restore()
        step.more = []
    step.outputs, step.pairs = kept
    # What is set to the same value is not found to be set.
    if _operators(again) != first or step.assigned:
        keys = [k for _, k, _ in step.assigned or assigned] + [k for _, k in attributes.values()]
        raise CaptureError(
            f"{step.reach.line_of(keys[0])}the forward pass sets `{keys[0]}` and reads it in the next step, which a graph cannot; keep a tensor "
            "in a buffer (register_buffer), count outside of the step, or run the model once in PyTorch where it is set the first time only"
        )


def _operators(raw: torch.fx.GraphModule) -> list[Any]:
    """The operators of a trace, in a form that does not depend on names."""
    raw.graph.eliminate_dead_code()
    number: dict[torch.fx.Node, Any] = {n: ("input", k) for k, n in enumerate(n for n in raw.graph.nodes if n.op == "placeholder")}
    found = []
    for node in raw.graph.nodes:
        if node.op in ("call_function", "get_attr"):
            number[node] = len(found)
            args = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: number[n])
            what = str(node.target) if node.op == "call_function" else _contents(getattr(raw, node.target))
            found.append((node.op, what, repr(args)))
    return found


def _contents(value: Any) -> Any:
    """What stands for a constant of a graph where two graphs are compared."""
    if not isinstance(value, Tensor) or isinstance(value, FakeTensor) or value.device.type != "cpu" or value.nbytes > CONSTANT_BYTES:
        return "constant"
    return value.dtype, tuple(value.shape), value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


class _Interpreter(torch.fx.Interpreter):
    """Runs a traced graph with tensors whose strides may be others than when it was traced, and pairs in place of complex numbers.

    What was a view then may have to be a copy now. Where something writes into the view, that is an error, as it would be in PyTorch.
    """

    def __init__(self, raw: torch.fx.GraphModule) -> None:
        super().__init__(raw)
        held = {n.target: getattr(raw, n.target) for n in raw.graph.nodes if n.op == "get_attr"}
        pairs.refuse_writes_beside_conjugates(raw.graph)
        self._shown = {k: pairs.shown(t) for k, t in held.items() if isinstance(t, Tensor) and t.is_complex()}

    def run_node(self, n: torch.fx.Node) -> Any:
        if n.op == "get_attr" and n.target in self._shown:
            return pairs.Pair(self._shown[n.target])
        if n.op == "placeholder" and pairs.is_complex(n):
            return pairs.Pair(super().run_node(n))
        if n.op == "output":
            return pytree.tree_map_only(pairs.Pair, lambda p: p.both, super().run_node(n))
        keeps = n.target is torch.ops.aten.view.default and not any(str(u.target).split(".")[1].endswith("_") for u in _users_of_views(n))
        if n.op == "call_function" and isinstance(n.target, torch._ops.OpOverload) and pairs.is_complex(n):
            with torch.fx.traceback.set_current_meta(n):
                return pairs.run(n, *self.fetch_args_kwargs_from_env(n), "reshape" if keeps else n.target._opname)
        if keeps:
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


def _traced(step: _Step, args: list[Tensor], places: bool) -> torch.fx.GraphModule:
    """The step as PyTorch's operators, with those that write in place."""
    def trace() -> torch.fx.GraphModule:
        with _tracing(step.native), torch.fx.traceback.preserve_node_meta(places):
            return make_fx(step, native_table() if step.native else tracing_table(), "fake", _allow_non_fake_inputs=True)(*args)

    try:
        raw = trace()
    except _Drawn as drawn:
        line = ""
        with contextlib.suppress(_Drawn), lines_of_draws(drawn.moved) as lines:
            trace()
        line = f"{lines[0]}: " if lines else ""
        raise CaptureError(
            f"{line}the step draws random numbers from `{drawn}`, which would be the same in all steps; draw them outside and give them as a "
            "part of the batch, or use torch.rand"
        ) from None
    except CaptureError:
        raise
    except Exception as error:
        raise capture_error(error) from error
    for node in reversed(raw.graph.nodes):
        if str(node.target).startswith("profiler."):
            raw.graph.erase_node(node)
    raw.graph.eliminate_dead_code()
    raw.recompile()
    return raw


def _lowered(
    raw: torch.fx.GraphModule, args: list[Tensor], table: dict[Any, Callable[..., Any]] | None, places: bool, native: torch.device | None
) -> torch.fx.GraphModule:
    """The same without writes in place, as operators that the translation knows by the table; without one, as those of PyTorch."""
    if table is None:
        # This one knows operators of others that write into their operands.
        functional = dispatch_functionalize(lambda *a: torch.fx.Interpreter(raw).run(*a), FunctionalTensorMode())
    else:
        interpreter = _Interpreter(raw)
        functional = torch.func.functionalize(lambda *a: interpreter.run(*a), remove="mutations")
        args = [pairs.shown(a) for a in args]
    try:
        with _tracing(native), torch.no_grad(), torch.fx.traceback.preserve_node_meta(places):
            graph = make_fx(functional, table or {}, "fake", _allow_non_fake_inputs=True)(*args)
    except CaptureError as error:
        # PyTorch appends the node of its own graph.
        error.args = (str(error).partition("\n\nWhile executing")[0],)
        raise
    except Exception as error:
        raise capture_error(error) from error
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph


def _values(found: Captured, step: _Step) -> None:
    """Fills in the values before the first step, without copying those that exist."""
    found.values.update({n: t.detach() if step.native else pairs.shown(t.detach()) for n, t in step.real.items() if t.device.type != "meta"})
    for k, s in step.state.items():
        value = value_of(s, step.real)
        if value is not None:
            found.values[step.name[k]] = value
    for n, v in step.update.scalars.items():
        found.values[step.name[n]] = torch.tensor(v, dtype=torch.float32)


def value_of(s: StateTensor, real: dict[str, Tensor]) -> Tensor | None:
    """The value of an optimizer's tensor before the next step; None if it is on the device `meta`."""
    if s.value is not None:
        return s.value.detach() if s.value.device.type != "meta" else None
    if s.is_copy:
        of = real[s.owner].detach()
        return of.to(s.dtype) if of.device.type != "meta" else None
    # One element, shown everywhere.
    return torch.full((), s.fill, dtype=s.dtype).expand(s.shape)


CONSTANT_BYTES = 1 << 20
"""Buffers up to this size that the step does not change are constants of the graph. Masks and tables of positions are smaller."""


def _drop_unused(found: Captured, step: _Step, as_inputs: frozenset[str]) -> None:
    """Leaves out inputs that nothing uses, and new values that are the old ones."""
    graph = found.graph.graph
    holders = dict(zip((n for n in graph.nodes if n.op == "placeholder"), found.inputs))
    out = next(n for n in graph.nodes if n.op == "output")
    results = list(zip(found.outputs, out.args[0]))
    of = {new: old for old, new in found.pairs.items()}

    def origin(node: Any) -> Any:
        keeps = (torch.ops.aten.clone.default, torch.ops.aten.detach.default, torch.ops.aten.alias.default)
        while node.op == "call_function" and node.target in keeps:
            node = node.args[0]
        return node

    changed = [(n, r) for n, r in results if not (n in of and holders.get(origin(r)) == of[n])]
    found.outputs = [n for n, _ in changed]
    found.pairs = {of[n]: n for n in found.outputs if n in of}
    out.args = (tuple(r for _, r in changed),)
    graph.eliminate_dead_code()
    trained = set(step.trained)
    for node, name in holders.items():
        value = found.values.get(name)
        if not node.users and name not in found.pairs:
            graph.erase_node(node)
            found.values.pop(name, None)
        elif (
            not step.native and name in step.real and name not in step.tensors.parameters and name not in found.pairs and name not in trained
            and name not in as_inputs and value is not None and value.nbytes <= CONSTANT_BYTES
        ):  # fmt: skip
            found.constants[name] = found.values.pop(name)
    left = set(graph.nodes)
    found.inputs = [n for node, n in holders.items() if node in left]
    found.sources = {n: v for n, v in found.sources.items() if n in found.inputs}
    found.graph.recompile()
