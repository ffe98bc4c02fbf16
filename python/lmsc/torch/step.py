"""`TrainStep`: a training loop's step, planned within a memory budget and run by lmsc."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn

import lmsc
from lmsc import Compiled, InputError, Plan, Session
from lmsc._progress import COMPILE, EXPORT, Choice, Progress

from .capture import Captured, batch_names, capture
from .errors import CaptureError
from .optimizers import number_of
from .export import exported

_Key = tuple[Any, ...]


@dataclass
class _Shape:
    """The step for batches of one shape."""

    found: Captured
    compiled: Compiled
    names: list[str | None]
    """The input of each tensor of the batch; None where the step does not read it."""


class TrainStep:
    """A training step of a module, a loss and a `torch.optim` optimizer that runs in lmsc, within a budget of memory.

    Parameters, buffers and optimizer state are copied once, and are kept by the step from then on; `sync` copies them back into
    the torch objects. The learning rate, and a momentum that a scheduler moves, are read from `optimizer.param_groups` at each
    call. The optimizer's own `step` and `zero_grad` are not called.

    A batch of another shape is planned when it comes first; the state moves over. A change of a number in `param_groups` that the
    graph holds as a constant, such as `weight_decay`, or of `model.training`, does the same.

    Args:
        model: The module, in the mode in which it is to run.
        loss_fn: The loss of the model's result and the target; None where the model returns the loss. See `export_step`.
        optimizer: A `torch.optim` optimizer over the model's parameters.
        example: `(input, …, target)`, or a dict of keyword arguments of the model. Only shapes and types matter.
        budget: Device memory that the step may use: bytes, `"8GiB"`, `"90%"` of the target's memory, `"0.7x"` of the step's own peak;
            None: nothing is planned.
        device: What runs it: `host`, or `cuda`, `cuda:1`, with `+graph` to replay steps.
        clip_grad_norm, accumulate, ema: As in `export_step`.
        seed: What dropout draws from. Default: torch's initial seed.
        max_shapes: How many shapes of a batch are planned at most.
        cache: A folder in which plans are kept, by the contents of the step. A plan that is there is checked, not made again.
        progress: As in `lmsc.compile`, for each shape that is planned. The phases are `capture` and `translate`, then those of `compile`.
        options: Further arguments of `lmsc.compile`, such as `planner`, `effort`, `target` and `host_budget`.

    Raises:
        CaptureError: The step cannot be written as one graph.
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

    def __init__(
        self,
        model: nn.Module,
        loss_fn: Callable[..., Any] | None,
        optimizer: torch.optim.Optimizer,
        *,
        example: tuple[Any, ...] | list[Any] | dict[str, Any],
        budget: str | int | None = None,
        device: str = "host",
        clip_grad_norm: float | None = None,
        accumulate: int = 1,
        ema: float | None = None,
        seed: int | None = None,
        max_shapes: int = 8,
        cache: str | os.PathLike[str] | None = None,
        progress: Choice = None,
        **options: Any,
    ) -> None:
        self.model, self.loss_fn, self.optimizer = model, loss_fn, optimizer
        self._device, self._max_shapes, self._cache, self._progress = device, max_shapes, cache, progress
        target = "host" if device == "host" else device.partition("+")[0].replace("cuda", "auto")
        self._options = {"budget": budget, "target": target, **options}
        self._capture = {"clip_grad_norm": clip_grad_norm, "accumulate": accumulate, "ema": ema}
        self._shapes: dict[_Key, _Shape] = {}
        self._seed = torch.initial_seed() % (1 << 63) if seed is None else seed
        example = tuple(example) if isinstance(example, list) else example
        self._names = list(example) if isinstance(example, dict) else None
        key, _ = self._key(example)
        self._shape = self._planned(key, example)
        self._current = key
        self._session = self._opened(self._shape, {}, 0)

    # Planning, once per shape.

    def _key(self, batch: Any) -> tuple[_Key, list[Tensor]]:
        """What the graph depends on besides the model, and the tensors of the batch."""
        if isinstance(batch, tuple) and all(type(v) is Tensor for v in batch):
            tensors: list[Tensor] = list(batch)
            shape: Any = len(batch)
        else:
            leaves, spec = pytree.tree_flatten(batch)
            tensors = [v for v in leaves if isinstance(v, Tensor)]
            shape = (spec, *(None if isinstance(v, Tensor) else repr(v) for v in leaves))
        types = tuple((t.shape, t.dtype) for t in tensors)
        return (shape, types, self._constants(), self.model.training), tensors

    def _constants(self) -> _Key:
        """The numbers of `param_groups` that the graph holds."""
        moving = {"lr", "initial_lr", "params", "max_lr", "min_lr", "base_momentum", "max_momentum"}
        groups = []
        for group in self.optimizer.param_groups:
            skipped = moving
            if "max_momentum" in group:
                skipped = moving | {"betas" if "betas" in group else "momentum"}
            groups.append(tuple((k, v) for k, v in group.items() if k not in skipped and isinstance(v, (int, float, tuple, bool))))
        return tuple(groups)

    def _planned(self, key: _Key, batch: Any) -> _Shape:
        if len(self._shapes) >= self._max_shapes:
            raise InputError(
                f"the batch has another shape than the {len(self._shapes)} that are planned, or a constant of the optimizer has changed; "
                "pad batches to few shapes, drop the last one of a loader, or give a larger max_shapes"
            )
        with Progress(self._progress, (*EXPORT[:2], *COMPILE)) as at:
            step = functools.partial(
                capture, self.model, self.loss_fn, self.optimizer, batch, compact=True, lr_input=True, **self._capture
            )
            found, proto = exported(step, compact=True, at=at)
            have = {*found.values, *found.constants}
            missing = [n for n in found.inputs if n in self._persistent(found, batch) and n not in have]
            if missing:
                raise CaptureError(f"`{missing[0]}` has no value: it is on the device `meta`; materialize the model first")
            model = proto.SerializeToString()
            names = batch_names(self.model, batch, self.loss_fn is not None)
            taken = set(found.inputs)
            self._shapes[key] = shape = _Shape(found, self._compiled(model, at), [n if n in taken else None for n in names])
        return shape

    def _persistent(self, found: Captured, batch: Any) -> set[str]:
        """The inputs that are no part of a batch."""
        return set(found.inputs) - set(batch_names(self.model, batch, self.loss_fn is not None))

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
        return session

    # Running.

    def __call__(self, *batch: Any, **named: Any) -> Tensor:
        """Runs one step with a batch like the example, and returns the loss.

        Raises:
            lmsc.InputError: The batch is not like the example, or there are too many shapes of batches.
            lmsc.Refusal: A new shape does not fit into the budget.
        """
        if self._names is None and named or self._names is not None and (batch or named.keys() != set(self._names)):
            raise InputError("the batch is given as the example was: by position for a tuple, by the same keywords for a dict")
        whole: Any = batch if self._names is None else {n: named[n] for n in self._names}
        key, tensors = self._key(whole)
        if key != self._current:
            self._move(key, whole)
        shape, groups = self._shape, self.optimizer.param_groups
        feeds: dict[str, Any] = {n: t for n, t in zip(shape.names, tensors) if n is not None}
        for name, (index, of) in shape.found.sources.items():
            number = number_of(groups[index], of)
            if self._fed.get(name) != number:
                feeds[name] = self._fed[name] = number
        results = self._session.step(feeds, fetch=("loss",))
        # Schedulers warn where they are stepped before the optimizer.
        self.optimizer._opt_called = True  # type: ignore[attr-defined]
        return _tensor(results["loss"])

    def _move(self, key: _Key, batch: Any) -> None:
        """Goes on with the step for another shape."""
        shape = self._shapes.get(key) or self._planned(key, batch)
        state, steps = self._session.state(), self._session.steps
        # The memory of one step is given back before that of the other is taken.
        del self._session
        self._session = self._opened(shape, state, steps)
        self._shape, self._current = shape, key

    @property
    def outputs(self) -> dict[str, Tensor]:
        """What the last step gave besides the loss: further results of the loss function, and `grad_norm` where gradients are clipped."""
        names = [n for n in self._session.outputs if n != "loss"]
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
        values = self._tensors()
        own = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        for name, tensor in own.items():
            if name in values:
                tensor.copy_(values[name])
        names = {id(p): n for n, p in self.model.named_parameters()}
        single = len(self.optimizer.param_groups) == 1
        for index, group in enumerate(self.optimizer.param_groups):
            counter = values.get("step" if single else f"step.{index}")
            for p in group["params"]:
                prefix = names[id(p)] + "."
                mine = {n[len(prefix) :]: t for n, t in values.items() if n.startswith(prefix) and "." not in n[len(prefix) :]}
                mine = {k: t for k, t in mine.items() if k != "ema" and prefix + k not in own}
                if counter is not None and mine:
                    mine["step"] = counter.to(torch.get_default_dtype() if p.dtype != torch.float64 else torch.float64)
                state = self.optimizer.state[p] if mine else {}
                for key, tensor in mine.items():
                    have = state.get(key)
                    if isinstance(have, Tensor) and have.dtype == tensor.dtype and have.shape == tensor.shape:
                        have.copy_(tensor)
                    else:
                        state[key] = tensor.to(p.device if key != "step" else "cpu", copy=True)

    def load(self) -> None:
        """Takes parameters, buffers and the optimizer's state from the torch objects, after they were changed there."""
        fresh = capture_values(self)
        names = {*self._session.inputs, *self._session.variables}
        self._session.load_state({n: v for n, v in fresh.items() if n in names})

    def ema(self) -> dict[str, Tensor]:
        """The moving averages of parameters, by the parameters' names; empty without `ema=`."""
        return {n.removesuffix(".ema"): t for n, t in self._tensors().items() if n.endswith(".ema")}

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
        self._session.load_state(state["variables"])
        self._seed = int(state["seed"])
        self._session.steps, self._session.seed = int(state["steps"]), self._seed

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint, as `lmsc run --save` does."""
        self._session.save(path)

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Goes on from a checkpoint of `save`."""
        self._session.resume(path)
        self._seed = self._session.seed

    def __repr__(self) -> str:
        return f"<lmsc.torch.TrainStep of {type(self.model).__name__} on {self._device}: {self.steps} steps, {self.plan!r}>"

    def _repr_html_(self) -> str:
        return self.plan._repr_html_()


def _tensor(array: Any) -> Tensor:
    """A tensor that shares the array's memory."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


def capture_values(step: TrainStep) -> dict[str, Tensor]:
    """The present values of the torch objects of a step, by the names of its inputs."""
    from .optimizers import update_of

    names = {id(p): n for n, p in step.model.named_parameters()}
    update = update_of(step.optimizer, names, compact=True, lr_input=True)
    values = {n: t.detach() for n, t in [*step.model.named_parameters(), *step.model.named_buffers()]}
    for name, kept in update.state.items():
        values[name] = kept.value if kept.value is not None else torch.full((), kept.fill, dtype=kept.dtype).expand(kept.shape)
    return values
