"""`TrainStep`: a training loop's step, planned within a memory budget and run by lmsc."""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import operator
import os
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

import lmsc
from lmsc import Compiled, InputError, Plan, Session
from lmsc._progress import COMPILE, EXPORT, Choice, Progress

from .capture import (
    TRACING, Captured, batch_names, capture, check_arguments, first_places,
    global_hooks, plain_function, plain_module, reach_of, refuse_unknown, value_of,
)  # fmt: skip
from .errors import CaptureError, StaleError
from .export import exported
from .optimizers import Update, hook_dicts, number_of, update_of
from .reach import Ours, Watch, difference, fingerprint, tensors_in

_Key = tuple[Any, ...]


@dataclass
class _Shape:
    """The step for batches of one shape."""

    found: Captured
    compiled: Compiled
    names: list[str | None]
    """The input of each tensor of the batch; None where the step does not read it."""


class _Fresh(Ours):
    """A hook that brings a module or an optimizer up to date before it is read."""

    def __init__(self, step: TrainStep) -> None:
        self._step = weakref.ref(step)

    def __call__(self, *_: Any) -> None:
        step = self._step()
        if step is not None and not getattr(TRACING, "on", False):
            step._refresh()

    def __reduce__(self) -> Any:
        # A copy of the module has present values, and nothing to do with the step.
        self()
        return _Copied, ()


class _Copied(Ours):
    """The hook in a copy of a module: it does nothing."""

    def __call__(self, *_: Any) -> None:
        return None


_STEPS: weakref.WeakSet[TrainStep] = weakref.WeakSet()
"""All steps, which may have tensors in common."""


class TrainStep:
    """A training step of a module, a loss and a `torch.optim` optimizer that runs in lmsc, within a budget of memory.

    Parameters, buffers and optimizer state are copied once, and are kept by the step from then on; `sync` copies them back into
    the torch objects. Hooks do so before the model or a part of it is called, `state_dict()` of either is taken, or the model is copied
    or saved; a parameter that is read directly has the value of the last `sync`. The learning rate, and a momentum that a scheduler
    moves, are read from `optimizer.param_groups` at each call. The optimizer's own `step` and `zero_grad` are not called.

    A batch of another shape is planned when it comes first; the state moves over. Each call looks at what the step was captured from:
    attributes, flags and hooks of modules, variables that `forward` and the loss function name, numbers in `param_groups`, autocast. If
    one has changed, the step is captured anew. Tensors that were written in PyTorch are taken over.

    Args:
        model: The module, in the mode in which it is to run.
        loss_fn: The loss of the model's result and the target; None where the model returns the loss. See `export_step`.
        optimizer: A `torch.optim` optimizer over the model's parameters.
        example: `(input, …, target)`, or a dict of keyword arguments of the model. Only shapes and types matter.
        budget: Device memory that the step may use: bytes, `"8GiB"`, `"90%"` of the target's memory, `"0.7x"` of the step's own peak,
            `"smallest"`, or `"3% slower"`, the smallest memory found whose plan takes at most that much longer; None: nothing is planned.
        device: What runs it: `host`, or `cuda`, `cuda:1`, with `+graph` to replay steps. Default: `host`; with PyTorch's kernels, the device
            of the model.
        clip_grad_norm, accumulate, ema: As in `export_step`.
        seed: What dropout draws from. Default: torch's initial seed.
        max_shapes: How many shapes of a batch are planned at most.
        cache: A folder in which plans are kept, by the contents of the step. A plan that is there is checked, not made again.
        kernels: `"lmsc"`, or `"torch"`: PyTorch runs the planned step, see `lmsc.torch.native.TorchStep`.
        passes: Passes that change the step before it is planned, as `lmsc.opt` takes them: with `"mixed-precision{type=f16}"` products,
            activations and gradients are float16, weights and moments stay float32, and the step adapts its own loss scale.
        progress: As in `lmsc.compile`, for each shape that is planned. The phases are `capture` and `translate`, then those of `compile`.
        options: Further arguments of `lmsc.compile`, such as `planner`, `effort`, `target` and `host_budget`.

    Raises:
        CaptureError: The step cannot be written as one graph; `code` says of which kind the reason is.
        lmsc.Refusal: It does not fit into the budget, or there is no such device.

    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> model = torch.nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> x, y = torch.ones(4, 3), torch.zeros(4, 1)
    >>> step = TrainStep(model, torch.nn.functional.mse_loss, optimizer, example=(x, y))
    >>> losses = [float(step(x, y)) for _ in range(3)]
    >>> losses[2] < losses[1] < losses[0]
    True
    >>> step.sync()
    """

    _kernels = "lmsc"
    _watches_state = True

    def __new__(cls, *_: Any, kernels: str = "lmsc", **__: Any) -> TrainStep:
        if kernels not in ("lmsc", "torch"):
            raise InputError(f'kernels={kernels!r}: "lmsc", or "torch"')
        if kernels == "torch" and cls._kernels != "torch":
            from .native import TorchStep

            cls = TorchStep
        return super().__new__(cls)

    def __init__(
        self,
        model: nn.Module,
        loss_fn: Callable[..., Any] | None,
        optimizer: torch.optim.Optimizer,
        *,
        example: tuple[Any, ...] | list[Any] | dict[str, Any],
        budget: str | int | None = None,
        device: str | torch.device | None = None,
        kernels: str = "lmsc",
        clip_grad_norm: float | None = None,
        accumulate: int = 1,
        ema: float | None = None,
        seed: int | None = None,
        max_shapes: int = 8,
        cache: str | os.PathLike[str] | None = None,
        passes: str | None = None,
        progress: Choice = None,
        **options: Any,
    ) -> None:
        check_arguments(model, loss_fn, optimizer, clip_grad_norm, accumulate, ema)
        refuse_unknown(optimizer, self._kernels == "torch")
        self.model, self.loss_fn, self.optimizer = model, loss_fn, optimizer
        self._device, self._max_shapes, self._cache, self._progress = _device(device or "host"), max_shapes, cache, progress
        self._passes = passes
        target = "host" if self._device == "host" else self._device.partition("+")[0].replace("cuda", "auto")
        self._options = {"budget": budget, "target": target, **options}
        self._capture = {"clip_grad_norm": clip_grad_norm, "accumulate": accumulate, "ema": ema}
        self._shapes: dict[_Key, _Shape] = {}
        self._seed = torch.initial_seed() % (1 << 63) if seed is None else seed
        self._inputs: frozenset[str] = frozenset()
        self._without: frozenset[tuple[int, str]] = frozenset()
        self._worlds: dict[tuple[Any, ...], int] = {}
        self._is_stale, self._count = False, 0
        self._types: _Key = ()
        self._sizes: list[int] = []
        self._objects: list[Any] = []
        self._numbers: _Key = ()
        self._print: tuple[Any, ...] = ()
        self._before: tuple[Any, ...] = ()
        example = tuple(example) if isinstance(example, list) else example
        self._names = list(example) if isinstance(example, dict) else None
        self._see()
        key, _ = self._key(example)
        self._shape = self._planned(key, example)
        key, _ = self._key(example)
        self._shapes = {key: self._shape}
        self._current = key
        for of in self._shape.found.state.values():
            if of.owner and of.key != "ema":
                # So that it is noticed if the state is cleared before the first `sync`.
                self.optimizer.state.setdefault(self._shape.found.tensors.all()[of.owner], {})
        self._session = self._opened(self._shape, {}, 0)
        self._register()
        self._see()
        _STEPS.add(self)

    def _register(self) -> None:
        """Hooks that bring the torch objects up to date before they are read."""
        fresh, handles = _Fresh(self), []
        for module in plain_module(self.model).modules():
            handles += [module.register_forward_pre_hook(fresh), module.register_state_dict_pre_hook(fresh)]
            for name in ("_parameters", "_buffers"):
                # Behind the hooks: a copy is made in this order.
                vars(module)[name] = vars(module).pop(name)
        handles.append(self.optimizer.register_state_dict_pre_hook(fresh))
        weakref.finalize(self, lambda: [h.remove() for h in handles])

    # What the step was captured from.

    def _see(self) -> None:
        """Takes the present state of all that the step reaches as the one that is known."""
        model, loss_fn = plain_module(self.model), plain_function(self.loss_fn)
        self._reach = reach_of(model, loss_fn, self.optimizer, self._without)
        hooks: list[Any] = [*global_hooks(), *hook_dicts(self.optimizer)]
        for p in model.parameters():
            hooks += [h for h in (p._backward_hooks, getattr(p, "_post_accumulate_grad_hooks", None)) if h is not None]
        kept = [self.optimizer.state, *self.optimizer.state.values()] if self._watches_state else []
        state = [t for s in kept[1:] for t in s.values() if isinstance(t, Tensor)]
        tensors = {id(t): t for t in (*tensors_in(self._reach), *model.parameters(), *model.buffers(), *state)}
        shared = () if self._watches_state else {id(t) for t in (*model.parameters(), *model.buffers())}
        self._watch = Watch(self._reach, list(tensors.values()), [*hooks, *kept], shared)
        self._print = fingerprint(self._reach)
        self._world = self._worlds.setdefault(self._print, len(self._worlds))

    def _look(self) -> None:
        """Notices what has changed in PyTorch since the last step, and takes over tensors that were written.

        Raises:
            StaleError: They were written while the step had newer values.
        """
        self._sync_others()
        state = self.optimizer.state
        kept = tuple(map(id, state.values())), id(state)
        same = self._watch.is_same()
        written = self._watch.written()
        if same and not written and kept == self._kept:
            return
        self._written(written, kept != self._kept)
        if not same or kept != self._kept:
            self._before = self._print
            self._see()
        self._rebase()

    def _sync_others(self) -> None:
        """Lets other steps with the same tensors give their values back."""
        if len(_STEPS) < 2:
            return
        ids = self._shape.found.tensors.all().values()
        for other in list(_STEPS):
            if other is not self and other._is_stale and {id(t) for t in ids} & {id(t) for t in other._shape.found.tensors.all().values()}:
                other.sync()

    def _rebase(self) -> None:
        """The present tensors are those that the step has."""
        self._kept = tuple(map(id, self.optimizer.state.values())), id(self.optimizer.state)
        self._watch.rebase()

    def _written(self, tensors: list[Tensor], new_state: bool) -> None:
        names = {id(t): n for n, t in self._shape.found.tensors.all().items()}
        names.update({id(t): f"{n} of the optimizer" for s in self.optimizer.state.values() for n, t in s.items() if isinstance(t, Tensor)})
        mine = [names[id(t)] for t in tensors if id(t) in names]
        moves = [n for n in mine if n in self._session.variables or n.endswith(" of the optimizer")]
        if new_state and not moves:
            moves = ["the state of the optimizer"]
        if moves and self._is_stale:
            raise StaleError(
                f"`{moves[0]}` was written in PyTorch after step {self.steps}, whose values are in the step: call `sync()` before you write, "
                "or `load()` after it, if all was written"
            )
        fixed = [n for n in mine if any(n in s.found.constants for s in self._shapes.values())]
        baked = {id(t) for s in self._shapes.values() for t in s.found.baked}
        if fixed or any(id(t) in baked for t in tensors):
            # The graphs have the old values.
            self._inputs |= frozenset(fixed)
            self._refuse_further(self._print)
            self._count += 1
            self._shapes = {}
            self._current = ()
        if moves:
            self.load()
        else:
            found = self._shape.found.tensors.all()
            self._session.set({n: found[n].detach() for n in mine if n in self._session.inputs})

    # Planning, once per shape.

    def _key(self, batch: Any) -> tuple[_Key, list[Tensor]]:
        """What the graph depends on besides the model, and the tensors of the batch."""
        if isinstance(batch, tuple) and all(type(v) is Tensor for v in batch):
            tensors: list[Tensor] = list(batch)
            shape: Any = len(batch)
        else:
            leaves, spec = pytree.tree_flatten(batch)
            tensors = [v for v in leaves if isinstance(v, Tensor)]
            shape = (spec, *(None if isinstance(v, Tensor) else _constant(v) for v in leaves))
        try:
            types = tuple(map(_TYPE, tensors))
        except RuntimeError:
            # A nested tensor has no shape.
            raise CaptureError(_NOT_DENSE) from None
        if types != self._types:
            _refuse_batch(tensors)
            self._types = types
        # Code may ask whether two of its arguments are one tensor.
        return (shape, (types, first_places(tensors)), (self._constants(), self._world, _mode())), tensors

    def _constants(self) -> _Key:
        """The numbers of `param_groups` that the graph holds, and which parameters are there."""
        given = self.optimizer.param_groups
        lists = [group["params"] for group in given]
        now = [*chain.from_iterable(given), *chain.from_iterable(map(dict.values, given)), *chain.from_iterable(lists)]
        sizes = [*map(len, given), *map(len, lists)]
        if sizes == self._sizes and all(map(operator.is_, now, self._objects)):
            return self._numbers
        self._sizes, self._objects = sizes, now
        moving = {"lr", "initial_lr", "params", "max_lr", "min_lr", "base_momentum", "max_momentum"}
        groups = []
        for group in given:
            skipped = moving
            if "max_momentum" in group:
                skipped = moving | {"betas" if "betas" in group else "momentum"}
            numbers = tuple((k, v) for k, v in group.items() if k not in skipped and isinstance(v, (int, float, tuple, bool)))
            groups.append((numbers, tuple(map(id, group["params"]))))
        self._numbers = tuple(groups)
        return self._numbers

    def _refuse_further(self, before: tuple[Any, ...]) -> None:
        """Refuses to capture the step again and again."""
        if self._count + len(self._shapes) >= self._max_shapes:
            what = difference(before, self._print) if before != self._print else "the batch, or a constant of the optimizer"
            raise InputError(
                f"the batch has another shape than the {self._max_shapes} that are planned, or something that the graph holds has changed "
                f"({what}); pad batches to few shapes, drop the last one of a loader, give numbers that change as tensors of the batch, or give "
                "a larger max_shapes"
            )

    def _planned(self, key: _Key, batch: Any) -> _Shape:
        self._refuse_further(self._before)
        with Progress(self._progress, (*EXPORT[:2], *COMPILE)) as at:
            shape = self._made(batch, at)
        found = shape.found
        unread = {(id(m), k) for m, k in found.attributes.values()} | {(id(m), k) for m, k, _ in found.assigned}
        if unread - self._without:
            self._without |= unread
            self._see()
        self._shapes[key] = shape
        return shape

    def _made(self, batch: Any, at: Progress) -> _Shape:
        step = functools.partial(
            capture, self.model, self.loss_fn, self.optimizer, batch, compact=True, lr_input=True, inputs=self._inputs, **self._capture
        )
        found, proto = exported(step, compact=True, at=at)
        self._refuse_missing(found, batch)
        model = proto.SerializeToString()
        if self._passes is not None:
            model = lmsc.opt(model, self._passes)
        return _Shape(found, self._compiled(model, at), self._read(found, batch))

    def _refuse_missing(self, found: Captured, batch: Any) -> None:
        have = {*found.values, *found.constants}
        missing = [n for n in found.inputs if n in self._persistent(found, batch) and n not in have]
        if missing:
            raise CaptureError(f"`{missing[0]}` has no value: it is on the device `meta`; materialize the model first")

    def _read(self, found: Captured, batch: Any) -> list[str | None]:
        """The input of each tensor of the batch."""
        taken = set(found.inputs)
        return [n if n in taken else None for n in batch_names(plain_module(self.model), batch, self.loss_fn is not None)]

    def _persistent(self, found: Captured, batch: Any) -> set[str]:
        """The inputs that are no part of a batch."""
        return set(found.inputs) - set(batch_names(plain_module(self.model), batch, self.loss_fn is not None))

    def _compiled(self, model: bytes, progress: Progress) -> Compiled:
        if self._cache is None or self._options["budget"] is None:
            return lmsc.compile(model, progress=progress, **self._options)
        asked = repr((lmsc.__version__, sorted(self._options.items()))).encode()
        path = Path(self._cache, hashlib.sha256(asked + model).hexdigest() + ".plan.json")
        if path.exists():
            kept = {k: self._options[k] for k in ("budget", "host_budget", "target", "profile", "form") if k in self._options}
            try:
                return lmsc.compile(model, plan=path, progress=progress, **kept)
            except (InputError, lmsc.Refusal):
                # The file is damaged; it is written anew.
                pass
        compiled = lmsc.compile(model, progress=progress, **self._options)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        compiled.save_plan(part)
        os.replace(part, path)
        return compiled

    def _opened(self, shape: _Shape, state: Mapping[str, Any], steps: int) -> Session:
        session = shape.compiled.session(self._device)
        session.seed, session.steps = self._seed, steps
        self._fed: dict[str, float] = {}
        values = {**shape.found.values, **state}
        names = {*session.inputs, *session.variables} - set(shape.found.sources)
        session.load_state({n: v for n, v in values.items() if n in names})
        self._rebase()
        return session

    # Running.

    def __call__(self, *batch: Any, **named: Any) -> Tensor:
        """Runs one step with a batch like the example, and returns the loss.

        Raises:
            lmsc.InputError: The batch is not like the example, or there are too many shapes of batches.
            lmsc.Refusal: A new shape does not fit into the budget.
        """
        whole = self._whole(batch, named)
        self._look()
        key, tensors = self._key(whole)
        if key != self._current:
            self._move(key, whole)
        shape, groups = self._shape, self.optimizer.param_groups
        feeds: dict[str, Any] = {n: t for n, t in zip(shape.names, tensors) if n is not None}
        fed = dict(self._fed)
        for name, (index, of) in shape.found.sources.items():
            number = number_of(groups[index], of)
            if fed.get(name) != number:
                feeds[name] = fed[name] = number
        found = shape.found
        self._is_stale = True
        results = self._session.step(feeds, fetch=(found.loss, *found.attributes))
        self._fed = fed
        self._leave(found, {name: _tensor(results[name]) for name in found.attributes})
        # Schedulers warn where they are stepped before the optimizer.
        self.optimizer._opt_called = True  # type: ignore[attr-defined]
        return _tensor(results[found.loss])

    def _whole(self, batch: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The batch in the form of the example."""
        if self._names is None and named or self._names is not None and (batch or named.keys() != set(self._names)):
            raise InputError("the batch is given as the example was: by position for a tuple, by the same keywords for a dict")
        return batch if self._names is None else {n: named[n] for n in self._names}

    def _leave(self, found: Captured, results: Mapping[str, Tensor]) -> None:
        """Sets the attributes that the forward pass sets."""
        for name, (module, attribute) in found.attributes.items():
            vars(module)[attribute] = results[name]
        for module, attribute, value in found.assigned:
            vars(module)[attribute] = value

    def forward_backward(self, *batch: Any, **named: Any) -> Tensor:
        """Runs forward and backward with a batch like the example, adds the gradients to `.grad`, and returns the loss.

        Raises:
            lmsc.InputError: The kernels are those of lmsc, whose gradients PyTorch does not have.
        """
        raise InputError('a step in two halves needs kernels="torch": the gradients of kernels="lmsc" are not in PyTorch')

    def update(self, closure: Callable[[], Any] | None = None) -> Any:
        """Lets the optimizer update the parameters by their `.grad`, and clears that.

        Raises:
            lmsc.InputError: The kernels are those of lmsc.
        """
        raise InputError('a step in two halves needs kernels="torch": the gradients of kernels="lmsc" are not in PyTorch')

    def evaluate(self, *inputs: Any, **named: Any) -> Any:
        """What the model returns in evaluation, within the budget of the step.

        Raises:
            lmsc.InputError: The kernels are those of lmsc; call the model after `sync`.
        """
        raise InputError('evaluate needs kernels="torch"; call the model itself, which has the present parameters then')

    def _move(self, key: _Key, batch: Any) -> None:
        """Goes on with the step for another shape, or of what the model has become."""
        if self._current and key[2] == self._current[2]:
            shape = self._shapes.get(key) or self._planned(key, batch)
            state, steps = self._session.state(), self._session.steps
        else:
            # By way of the torch objects, since the optimizer may keep other things now.
            self._refresh()
            shape = self._shapes.get(key)
            if shape is None or not self._has_form(shape.found):
                shape = self._planned(key, batch)
            # Moving averages, and a loss scale, are the step's alone.
            known = self._shape.found
            kept = {*known.tensors.all(), *(n for n, s in known.state.items() if s.key != "ema")}
            own = [n for n in self._session.variables if n not in kept]
            state, steps = {**self._present(shape.found), **self._session.get(own)}, self._session.steps
        key, _ = self._key(batch)
        self._shapes.setdefault(key, shape)
        # The memory of one step is given back before that of the other is taken.
        del self._session
        self._session = self._opened(shape, state, steps)
        self._shape, self._current = shape, key

    @property
    def outputs(self) -> dict[str, Tensor]:
        """What the last step gave besides the loss: further results of the loss function, and `grad_norm` where gradients are clipped."""
        found = self._shape.found
        names = [n for n in self._session.outputs if n != found.loss and n not in found.attributes]
        return {n: _tensor(a) for n, a in self._session.get(names).items()}

    @property
    def steps(self) -> int:
        """How many steps have been run."""
        return self._session.steps

    @property
    def session(self) -> Session:
        """The session that runs the present shape."""
        return self._session

    @property
    def compiled(self) -> Compiled:
        """The compiled step of the present shape."""
        return self._shape.compiled

    @property
    def plan(self) -> Plan:
        """The plan of the present shape."""
        return self._shape.compiled.plan

    # State.

    def _tensors(self) -> dict[str, Tensor]:
        """All variables as tensors of PyTorch."""
        return {n: _tensor(a) for n, a in self._session.state().items()}

    @torch.no_grad()
    def sync(self) -> None:
        """Copies parameters, buffers and the optimizer's state back into the torch objects, bit for bit."""
        values, found = self._tensors(), self._shape.found
        own = found.tensors.all()
        for name, tensor in own.items():
            if name in values:
                if name in found.apart:
                    tensor.data = torch.empty_like(tensor)
                tensor.copy_(values[name])
        counters = {s.group: values[n] for n, s in found.state.items() if not s.owner and n in values}
        for name, of in found.state.items():
            if not of.owner or of.key == "ema" or name not in values:
                continue
            p = own[of.owner]
            state = self.optimizer.state[p]
            mine = {}
            if of.group in counters:
                mine["step"] = counters[of.group].to(torch.get_default_dtype() if p.dtype != torch.float64 else torch.float64)
            mine[of.key] = values[name]
            for key, tensor in mine.items():
                have = state.get(key)
                if isinstance(have, Tensor) and have.dtype == tensor.dtype and have.shape == tensor.shape:
                    have.copy_(tensor)
                else:
                    state[key] = tensor.to(p.device if key != "step" else "cpu", copy=True)
        self._is_stale = False
        self._see()
        self._rebase()

    def _refresh(self) -> None:
        if self._is_stale:
            self.sync()

    def load(self) -> None:
        """Takes parameters, buffers and the optimizer's state from the torch objects, after they were changed there."""
        if not self._has_form(self._shape.found):
            raise StaleError(
                "the parameters of a group have had different numbers of steps, or the optimizer keeps other things than before; make another "
                "TrainStep"
            )
        fresh = self._present(self._shape.found)
        names = {*self._session.inputs, *self._session.variables}
        self._session.load_state({n: v for n, v in fresh.items() if n in names})
        self._is_stale = False
        self._rebase()

    def _update(self) -> Update:
        """How the optimizer updates now."""
        names = {id(p): n for n, p in plain_module(self.model).named_parameters()}
        return update_of(self.optimizer, names, compact=True, lr_input=True)

    def _has_form(self, found: Captured) -> bool:
        """Whether the optimizer keeps what it kept when the step was captured: one counter for a group, or one for each parameter."""
        return {s.name for s in found.state.values() if s.key != "ema"} == set(self._update().state)

    def _present(self, found: Captured) -> dict[str, Tensor]:
        """The present values of the torch objects, by the names of the inputs of a step."""
        update, real = self._update(), found.tensors.all()
        values = {n: t.detach() for n, t in real.items()}
        for name, of in found.state.items():
            value = value_of(update.state[of.name], real) if of.name in update.state else None
            if value is not None:
                values[name] = value
        return values

    def ema(self) -> dict[str, Tensor]:
        """The moving averages of parameters, by the parameters' names; empty without `ema=`."""
        state = self._shape.found.state
        return {state[n].owner: t for n, t in self._tensors().items() if n in state and state[n].key == "ema"}

    def state_dict(self) -> dict[str, Any]:
        """All that the next step follows from, besides its batch and `param_groups`: variables, number of steps and seed."""
        return {"variables": self._tensors(), "steps": self._session.steps, "seed": self._session.seed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `state_dict` returned.

        Raises:
            lmsc.InputError: It is of another step; the message names what differs.
        """
        missing = [n for n in self._session.variables if n not in state["variables"]]
        if missing:
            raise InputError(f"the state lacks {len(missing)} variables of the step, `{missing[0]}` first")
        seed, steps = int(state["seed"]), int(state["steps"])
        self._session.load_state(state["variables"])
        self._is_stale, self._seed = True, seed
        self._session.steps, self._session.seed = steps, seed

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint, as `lmsc run --save` does."""
        self._session.save(path)

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Goes on from a checkpoint of `save`."""
        self._session.resume(path)
        self._is_stale = True
        self._seed = self._session.seed

    def __reduce_ex__(self, _: Any) -> Any:
        raise TypeError("a TrainStep has a device's state, and is not copied: save `state_dict()`, and make another one from the model")

    def __repr__(self) -> str:
        return f"<lmsc.torch.TrainStep of {type(self.model).__name__} on {self._device}: {self.steps} steps, {self.plan!r}>"

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()


_TYPE = operator.attrgetter("shape", "dtype", "layout", "is_nested", "requires_grad")


_NOT_DENSE = "a tensor of the batch is sparse or nested, and a graph has dense tensors only; give it as to_dense(), or padded"


def _refuse_batch(tensors: list[Tensor]) -> None:
    if any(t.layout is not torch.strided or t.is_nested for t in tensors):
        raise CaptureError(_NOT_DENSE)
    if any(t.requires_grad for t in tensors):
        raise CaptureError("a tensor of the batch requires a gradient, which a step does not give; give it as detach()")


def _constant(value: Any) -> Any:
    """What stands for an element of a batch that is no tensor, and that the graph therefore holds: what is equal has equal contents.

    Raises:
        CaptureError: It is an object whose contents cannot be compared.
    """
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, torch.dtype, torch.device, enum.Enum, slice, range)):
        return type(value), repr(value)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind != "O":
        return value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).digest()
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(map(_constant, value))
    if dataclasses.is_dataclass(value):
        return type(value), tuple((f.name, _constant(getattr(value, f.name))) for f in dataclasses.fields(value))
    raise CaptureError(
        f"the batch has a {type(value).__name__}, of which a step cannot tell whether it is another one than before; give its tensors and numbers, "
        "or register the class with torch.utils._pytree"
    )


def _tensor(array: Any) -> Tensor:
    """A tensor that shares the array's memory."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


def _device(device: str | torch.device) -> str:
    """The name of a device; PyTorch's names count as well."""
    name = str(device)
    return "host" if name in ("cpu", "cpu:0") else name


def _mode() -> _Key:
    """PyTorch's settings around the call that a graph depends on."""
    return (
        torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cuda"), torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(), torch.get_default_dtype(),
    )  # fmt: skip
