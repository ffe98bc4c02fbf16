"""`TrainStep` with PyTorch's kernels: the planned step is a graph of PyTorch, and its state is that of the torch objects."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from lmsc import InputError, Refusal
from lmsc._progress import Progress

from . import backend
from .backend.copies import known
from .backend.planning import Options
from .backend.whole import Part, Step, StepPlan, WrittenStep, _base, planned_step, whole
from .capture import LOCK, TRACING, Captured, _tracing, capture, capture_error, check_arguments, first_places, make_fx, plain_module
from .errors import CaptureError
from .step import TrainStep, _Key, _Shape
from .updates import Kept, goes_by_parts, is_opaque, kept_by, needs_closure, parts_of, run, signature


class _Lasting:
    """A tensor that lasts from step to step: of the model, or of the optimizer's state."""

    def __init__(self, owner: Tensor, get: Callable[[], Tensor | None]) -> None:
        self.owner, self._get = owner, get
        self.pending: Tensor | None = None
        """Memory for a state that the optimizer has not made yet."""
        self.number = known(self)

    def tensor(self) -> Tensor | None:
        """The torch object, or the memory that waits for it."""
        found = self._get()
        return self.pending if found is None else found

    def put(self, tensor: Tensor) -> None:
        """The values are there from now on."""
        found = self._get()
        if found is None:
            self.pending = tensor
        else:
            found.data = tensor
            self.pending = None


class _Update:
    """The optimizer for some parameters; what `lmsc::update` calls."""

    def __init__(self, step: TorchStep, names: Sequence[str], parameters: Sequence[Tensor], keys: Sequence[tuple[int, str]], by_parts: bool) -> None:
        self._optimizer, self._averages, self._decay = step.optimizer, step._averages, step._capture["ema"]
        self.names, self.parameters, self.keys, self.by_parts = names, parameters, keys, by_parts
        self.rests: frozenset[str] = frozenset()
        self.number = known(self)

    @property
    def state_names(self) -> list[str]:
        """The inputs of the graph that are the state."""
        return [f"{self.names[k]}.{key}" for k, key in self.keys]

    def update(self, weights: Sequence[Tensor], gradients: Sequence[Tensor], state: Sequence[Tensor]) -> None:
        """Updates in place: the parameters are these tensors meanwhile."""
        before = [p.data for p in self.parameters]
        if not self.by_parts:
            for p in (p for g in self._optimizer.param_groups for p in g["params"]):
                p.grad = None
        for p, w, g in zip(self.parameters, weights, gradients, strict=True):
            p.data, p.grad = w, g
        own = list(zip(self.keys, self.state_names, state, strict=True))
        there = {name: self._bind(k, key, t) for (k, key), name, t in own}
        try:
            run(self._optimizer, {id(p) for p in self.parameters} if self.by_parts else None)
            for p, name in zip(self.parameters, self.names):
                if name in self._averages:
                    average = next(t for (k, key), _, t in own if self.names[k] == name and key == "ema")
                    average.mul_(self._decay).add_(p.data, alpha=1 - self._decay)
        finally:
            for (k, key), name, t in own:
                self._unbind(k, key, t, there[name] if name in self.rests else t)
            for p, w, name, was in zip(self.parameters, weights, self.names, before):
                p.grad = None
                p.data = was if name in self.rests else w

    def _holder(self, k: int, key: str) -> tuple[Any, str]:
        if key == "ema":
            return self._averages, self.names[k]
        return self._optimizer.state[self.parameters[k]] if self.parameters[k] in self._optimizer.state else {}, key

    def _bind(self, k: int, key: str, tensor: Tensor) -> Tensor | None:
        """Puts the tensor of the device in the place of the state, and returns what was there."""
        holder, at = self._holder(k, key)
        if not isinstance(holder.get(at), Tensor):
            return None
        was = holder[at].data
        holder[at].data = tensor
        return was

    def _unbind(self, k: int, key: str, tensor: Tensor, rest: Tensor | None) -> None:
        """Takes over what the optimizer has put there anew, and puts the state where it rests."""
        holder, at = self._holder(k, key)
        now = holder.get(at)
        if not isinstance(now, Tensor) or now.shape != tensor.shape or now.dtype != tensor.dtype:
            return
        if now.data_ptr() != tensor.data_ptr():
            tensor.copy_(now)
        now.data = tensor if rest is None else rest


@dataclass
class _Graph:
    """A planned graph of the step, and what it takes and gives."""

    step: Step
    written: WrittenStep
    run: Callable[[list[Any]], Any]
    batch: set[str]
    updates: list[_Update] = field(default_factory=list)
    spec: Any = None
    """The form of the results of an evaluation, and those of them that are no tensors."""

    @property
    def plan(self) -> StepPlan:
        """The plan."""
        return self.written.plan

    def constants(self) -> list[Any]:
        """What the graph reads besides its inputs."""
        return [getattr(self.written.graph, node.target) for node in self.written.graph.graph.find_nodes(op="get_attr")]


class TorchStep(TrainStep):
    """A `TrainStep` whose plan is run by PyTorch, on the device of the model: `TrainStep(…, kernels="torch")`.

    Whatever PyTorch can trace may be in it: complex numbers, Fourier transforms, flash attention, custom operators. Updates are made by the optimizer
    itself, part after part, as soon as gradients are there; so losses, parameters, buffers and the optimizer's state have the bits of PyTorch's own
    loop, with and without a budget. Random numbers are PyTorch's.

    The parameters, the buffers and the optimizer's state are those of the torch objects. Where the plan has one rest on the host between steps,
    it is in the memory of the host until `sync`, which the hooks of `TrainStep` call. What is written in PyTorch counts in the next step.

    Further options are `target` and `effort`. `seed` and `cache` are refused.
    """

    _kernels = "torch"
    _watches_state = False

    def __init__(
        self, model: nn.Module, loss_fn: Callable[..., Any] | None, optimizer: torch.optim.Optimizer, *, example: Any, budget: str | int | None = None,
        device: str | torch.device | None = None, kernels: str = "torch", seed: int | None = None, cache: Any = None, passes: Any = None, **options: Any,
    ) -> None:  # fmt: skip
        instead = {"seed": "; random numbers are those of torch.manual_seed", "cache": "", "passes": "; types are those of torch.autocast"}
        for name, value in (("seed", seed), ("cache", cache), ("passes", passes)):
            if value is not None:
                raise InputError(f'`{name}` has no meaning with kernels="torch"{instead[name]}')
        own = {"clip_grad_norm", "accumulate", "ema", "max_shapes", "progress"}
        unknown = sorted(set(options) - own - {"target", "effort"})
        if unknown:
            raise InputError(f'option {unknown[0]!r}: with kernels="torch" a step takes target and effort')
        check_arguments(model, loss_fn, optimizer, *(options.get(name) for name in ("clip_grad_norm", "accumulate", "ema")))
        self._asked = Options.of({"budget": "1x" if budget is None else budget, **{k: v for k, v in options.items() if k not in own}})
        tensors = [*plain_module(model).parameters(), *plain_module(model).buffers()]
        self._home = tensors[0].device if tensors else torch.device("cpu")
        self._place = _device(device, self._home)
        self._averages: dict[str, Tensor] = {}
        self._lasting: dict[str, _Lasting] = {}
        self._known: dict[Any, Kept] = {}
        self._halves: dict[_Key, tuple[Captured, _Graph]] = {}
        self._evaluations: dict[_Key, _Graph] = {}
        self._ran: _Graph | None = None
        self._done = self._in_state = 0
        self._results: dict[str, Tensor] = {}
        ema = options.get("ema")
        if ema is not None:
            inside = {id(p) for g in optimizer.param_groups for p in g["params"]}
            named = plain_module(model).named_parameters()
            self._averages = {n: p.detach().clone() for n, p in named if p.requires_grad and id(p) in inside}
        super().__init__(model, loss_fn, optimizer, example=example, budget=budget, **{k: v for k, v in options.items() if k in own})
        self._device = str(self._place)

    # Planning.

    def _constants(self) -> _Key:
        """The parameters of the groups: numbers are read by the optimizer itself."""
        return tuple(tuple(map(id, g["params"])) for g in self.optimizer.param_groups)

    def _made(self, batch: Any, at: Progress) -> _Shape:
        at("capture")
        self._refuse_foreign()
        whole_step = not needs_closure(self.optimizer)
        found = capture(
            self.model, self.loss_fn, self.optimizer, batch, compact=True, lr_input=False, native=self._place, of_all=not whole_step,
            **(self._capture if whole_step else {**self._capture, "clip_grad_norm": None, "ema": None}),
        )  # fmt: skip
        self._refuse_missing(found, batch)
        at("plan")
        read = self._read(found, batch)
        made = self._graph(found, {n for n in read if n is not None}, updates=whole_step)
        return _Shape(found, made, read)  # type: ignore[arg-type]

    def _refuse_foreign(self) -> None:
        mine = {id(p) for p in plain_module(self.model).parameters()}
        for p in (p for g in self.optimizer.param_groups for p in g["params"]):
            if id(p) not in mine:
                raise CaptureError(f"the optimizer has a parameter of shape {tuple(p.shape)} that the model has not; give both the same parameters")

    def _graph(self, found: Captured, batch: set[str], updates: bool) -> _Graph:
        """The planned graph of what was captured, with the updates or without."""
        updating, keeping = self._updates(found) if updates else ([], Kept())
        modes = [n.meta["val"].fake_mode for n in found.graph.graph.find_nodes(op="placeholder")]
        state: dict[str, Tensor] = {}
        parts = []
        for update, kept in zip(updating, keeping if updates else ()):
            for (k, key), name in zip(update.keys, update.state_names):
                like = kept[id(update.parameters[k]), key] if key != "ema" else update.parameters[k]
                with modes[0]:
                    state[name] = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=self._place)
            parts.append(Part(update.number, update.names, update.state_names, self._workspace(update)))
        held = self._held(found, batch, updating)
        step = whole(found.graph, found.inputs, found.outputs, found.pairs, found.gradients if updates else {}, parts, state, held, found.loss)
        made = self._planned_graph(step, batch, "step" if updates else "gradients", self._beside(found, step, updates))
        made.updates = updating
        for update in updating:
            update.rests = frozenset(made.plan.rests)
        for name in found.apart:
            # The step writes here and reads another tensor in the same memory, which the forward pass itself leaves alone.
            tensor = found.tensors.all()[name]
            tensor.data = tensor.data.clone()
        return made

    def _planned_graph(self, step: Step, batch: set[str], name: str, beside: int, budget: str | None = None) -> _Graph:
        asked = self._asked if budget is None else dataclasses.replace(self._asked, budget=budget)
        written = planned_step(step, asked, name, beside)
        return _Graph(step, written, backend._boxed(written.graph), batch)

    def _updates(self, found: Captured) -> tuple[list[_Update], list[dict[Any, Tensor]]]:
        """The parts of the parameters in the order in which their gradients come, and what the optimizer keeps of each."""
        real = found.tensors.parameters
        order = {node: place for place, node in enumerate(found.graph.graph.nodes)}
        results = dict(zip(found.outputs, next(iter(found.graph.graph.find_nodes(op="output"))).args[0]))
        names = sorted(found.gradients, key=lambda n: order[_base(results[found.gradients[n]])])
        by_parts = goes_by_parts(self.optimizer)
        split = list(parts_of([(n, real[n]) for n in names])) if by_parts else [names]
        updates, keeping = [], []
        for part in split:
            kept = self._kept_of([real[n] for n in part]) if by_parts else Kept()
            keys = [(k, key) for k, n in enumerate(part) for of, key in kept.tensors if of == id(real[n])]
            keys += [(k, "ema") for k, n in enumerate(part) if n in self._averages]
            updates.append(_Update(self, part, [real[n] for n in part], keys, by_parts))
            keeping.append(kept.tensors)
        return updates, keeping

    def _kept_of(self, part: list[Tensor]) -> Kept:
        """What the optimizer keeps of the parameters, tried once for all parts that are alike."""
        key = signature(self.optimizer, part), self._constants(), repr([{k: v for k, v in g.items() if k != "params"} for g in self.optimizer.param_groups])
        if key not in self._known:
            kept = kept_by(self.optimizer, part, self._place)
            place = {id(p): k for k, p in enumerate(part)}
            self._known[key] = Kept({(place[of], name): t for (of, name), t in kept.tensors.items()}, kept.small, kept.workspace)
        kept = self._known[key]
        return Kept({(id(part[k]), name): t for (k, name), t in kept.tensors.items()}, kept.small, kept.workspace)

    def _workspace(self, update: _Update) -> int:
        if is_opaque(self.optimizer):
            return 0
        kept = self._kept_of(list(update.parameters))
        return kept.workspace + max((p.nbytes for p in update.parameters if self._averages), default=0)

    def _held(self, found: Captured, batch: set[str], updates: list[_Update]) -> dict[str, int]:
        """The numbers of what lasts and may leave: nothing of the model if a hook of the optimizer may read it."""
        real = found.tensors.all()
        for name, t in real.items():
            self._last(name, t, lambda t=t: t)
        for update in updates:
            for (k, key), name in zip(update.keys, update.state_names):
                self._last(name, update.parameters[k], lambda update=update, k=k, key=key: _tensor_at(*update._holder(k, key)))
        if any(not update.by_parts for update in updates):
            return {}
        if not updates and needs_closure(self.optimizer):
            return {}
        state = {name for update in updates for name in update.state_names}
        return {n: self._lasting[n].number for n in (*found.inputs, *state) if n in self._lasting and n not in batch}

    def _last(self, name: str, owner: Tensor, get: Callable[[], Tensor | None]) -> None:
        if name not in self._lasting or self._lasting[name].owner is not owner:
            self._lasting[name] = _Lasting(owner, get)

    def _beside(self, found: Captured, step: Step, updates: bool) -> int:
        """Bytes of the device that are no inputs of the graph: unused tensors of the model, and what the optimizer keeps."""
        real = found.tensors.all()
        beside = sum(t.nbytes for n, t in real.items() if n not in step.inputs and t.device == self._home)
        inside = {id(self._lasting[n].tensor()) for n in step.inputs if n in self._lasting}
        parts = [list(found.tensors.parameters[n] for n in found.gradients)]
        if updates and not is_opaque(self.optimizer):
            parts = [[found.tensors.parameters[n] for n in part] for part in parts_of([(n, found.tensors.parameters[n]) for n in found.gradients])]
            return beside + sum(self._kept_of(part).small for part in parts)
        of = (t for s in self.optimizer.state.values() for t in s.values() if isinstance(t, Tensor) and t.device.type == self._place.type)
        return beside + sum(t.nbytes for t in of if id(t) not in inside and t.dim())

    # Running.

    def _opened(self, shape: _Shape, state: Mapping[str, Any], steps: int) -> Any:
        self._rebase()
        return None

    def _look(self) -> None:
        """Notices what has changed in PyTorch since the last step. Tensors are those of PyTorch: their values need no look."""
        self._sync_others()
        written = self._watch.written()
        if self._watch.is_same() and not written:
            return
        if any(self._is_copied(t) for t in written):
            self._count += len(self._shapes)
            self._refuse_further(self._print)
            self._shapes, self._current = {}, ()
            self._halves, self._evaluations = {}, {}
        self._before = self._print
        self._see()
        self._rebase()

    def _is_copied(self, tensor: Tensor) -> bool:
        """Whether a graph has values of the tensor, which is of a closure or a global, and not the tensor itself."""
        graphs = [*((s.found, s.compiled) for s in self._shapes.values()), *self._halves.values()]
        return any(
            any(tensor is t for t in found.baked) and not any(tensor is t for t in graph.constants())  # type: ignore[attr-defined]
            for found, graph in graphs
        )

    def _move(self, key: _Key, batch: Any) -> None:
        shape = self._shapes.get(key) or self._planned(key, batch)
        key, _ = self._key(batch)
        self._shapes.setdefault(key, shape)
        self._shape, self._current = shape, key

    def __call__(self, *batch: Any, **named: Any) -> Tensor:
        """Runs one step with a batch like the example, and returns the loss. The gradients of the step are in no `.grad`; what was there is dropped.

        Raises:
            lmsc.InputError: The batch is not like the example, there are too many shapes of batches, or the optimizer takes a closure.
            lmsc.Refusal: A new shape does not fit into the budget.
        """
        given = self._whole(batch, named)
        if needs_closure(self.optimizer):
            raise InputError(f"{type(self.optimizer).__name__} computes losses itself: call `update(closure)`, and `forward_backward` in the closure")
        self._look()
        key, tensors = self._key(given)
        if key != self._current:
            self._move(key, given)
        shape = self._shape
        for p in (p for g in self.optimizer.param_groups for p in g["params"]):
            p.grad = None
        results = self._run(shape.compiled, dict(zip(shape.names, tensors)))  # type: ignore[arg-type]
        self.optimizer._opt_called = True  # type: ignore[attr-defined]
        self._done += 1
        self._in_order()
        self._settle(shape.found, results)
        return results[shape.found.loss]

    def _in_order(self) -> None:
        """Puts the optimizer's state in the order of its parameters, in which PyTorch makes it."""
        state, groups = self.optimizer.state, self.optimizer.param_groups
        if len(state) != self._in_state:
            for p in [p for g in groups for p in g["params"] if p in state]:
                state[p] = state.pop(p)
            self._in_state = len(state)

    def _settle(self, found: Captured, results: dict[str, Tensor]) -> None:
        self._leave(found, results)
        self._results = {n: t for n, t in results.items() if n != found.loss and n not in found.attributes and n not in found.gradients.values()}
        self._rebase()

    def _run(self, graph: _Graph, batch: Mapping[Any, Tensor]) -> dict[str, Tensor]:
        """Runs the graph. Whatever fails, each tensor of PyTorch has a value."""
        self._results = {}
        args = [self._given(graph, n, batch[n]) if n in graph.batch else self._there(graph, n) for n in graph.step.inputs]
        self._ran = graph
        away = self._place.type != "cpu" and (bool(graph.plan.rests) or self._place != self._home)
        self._is_stale = away or self._is_stale
        with torch.no_grad(), torch._C._DisableAutocast():
            results = graph.run(args)
        count = len(graph.step.outputs)
        for name, tensor in zip(graph.written.returned, results[count:], strict=True):
            self._lasting[name].put(tensor)
        if away:
            torch.accelerator.synchronize(self._place)
        return dict(zip(graph.step.outputs, results[:count]))

    def _given(self, graph: _Graph, name: str, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self._place, non_blocking=True)

    def _there(self, graph: _Graph, name: str) -> Tensor:
        """The tensor of the model or the optimizer, where the plan has it rest."""
        lasting = self._lasting[name]
        tensor = lasting.tensor()
        rests = name in graph.plan.rests
        if tensor is None:
            like = next(n.meta["val"] for i, n in zip(graph.step.inputs, graph.step.graph.graph.find_nodes(op="placeholder")) if i == name)
            tensor = lasting.pending = torch.empty_strided(
                like.shape, like.stride(), dtype=like.dtype, device="cpu" if rests else self._place, pin_memory=rests and self._place.type != "cpu"
            )
        at = torch.device("cpu") if rests else self._place
        if tensor.device.type != at.type and (rests or tensor.device.type == "cpu" or tensor.device == self._home):
            if name in graph.step.leaving or tensor.device == self._home or not rests:
                moved = torch.empty_like(tensor.data, device=at, pin_memory=rests and self._place.type != "cpu")
                lasting.put(moved.copy_(tensor.data))
                tensor = lasting.tensor()
        return tensor.detach()

    # The step in two halves.

    def forward_backward(self, *batch: Any, **named: Any) -> Tensor:
        """Runs forward and backward with a batch like the example, adds the gradients of all parameters to `.grad`, and returns the loss.

        Gradients are neither clipped nor updated with: `.grad`, the parameters and the optimizer are PyTorch's until the next step. The budget is that
        of the step; it contains the parameters, the optimizer's state, and gradients that are there already. A share such as `"0.6x"` is one of the
        peak of forward and backward.

        Raises:
            lmsc.InputError: The batch is not like the example.
            lmsc.Refusal: Forward and backward do not fit into the budget.
        """
        given = self._whole(batch, named)
        self._look()
        self.sync()
        (*key, world), tensors = self._key(given)
        adds = any(p.grad is not None for p in plain_module(self.model).parameters())
        self._refuse_half(adds)
        place = (*key, world, adds)
        if place not in self._halves:
            self._halves[place] = self._half(given, adds)
            key_now, _ = self._key(given)
            self._halves[(*key_now, adds)] = self._halves[place]
        found, graph = self._halves[place]
        results = self._run(graph, dict(zip(self._read(found, given), tensors)))
        for name, of in found.gradients.items():
            p = found.tensors.parameters[name]
            gradient = results.pop(of)
            p.grad = gradient if p.grad is None else p.grad.add_(gradient)
        self._settle(found, results)
        return results[found.loss]

    def _refuse_half(self, adds: bool) -> None:
        if self._place != self._home:
            raise InputError(f"the model is on `{self._home}` and the step on `{self._place}`, where gradients would be: move the model there")
        behind = [n for n, p in plain_module(self.model).named_parameters() if getattr(p, "_post_accumulate_grad_hooks", None)]
        if adds and behind:
            raise InputError(f"a hook behind the gradient of `{behind[0]}` would see a part of a sum; use accumulate=, or clear `.grad` before")

    def _half(self, batch: Any, adds: bool) -> tuple[Captured, _Graph]:
        found = capture(
            self.model, self.loss_fn, self.optimizer, batch, compact=True, lr_input=False, native=self._place, of_all=True,
            **{**self._capture, "clip_grad_norm": None, "ema": None},
        )  # fmt: skip
        self._held(found, set(), [])
        read = {n for n in self._read(found, batch) if n is not None}
        step = whole(found.graph, found.inputs, found.outputs, found.pairs, found.gradients, [], {}, {}, found.loss)
        beside = self._beside(found, step, False)
        beside += sum(found.tensors.parameters[n].nbytes for n in found.gradients) if adds else 0
        return found, self._planned_graph(step, read, "forward and backward", beside)

    def update(self, closure: Callable[[], Any] | None = None) -> Any:
        """Lets the optimizer update the parameters by their `.grad`, as PyTorch does, clears that, and returns what the optimizer returns.

        `closure` is that of `torch.optim`: it clears `.grad`, calls `forward_backward` and returns the loss.
        """
        self.sync()
        with torch.enable_grad() if closure is not None else contextlib.nullcontext():
            result = self.optimizer.step() if closure is None else self.optimizer.step(closure)
        with torch.no_grad():
            for name, average in self._averages.items():
                average.mul_(self._capture["ema"]).add_(self._shape.found.tensors.parameters[name], alpha=1 - self._capture["ema"])
        self.optimizer.zero_grad()
        self._done += 1
        self._rebase()
        return result

    # Evaluation.

    def evaluate(self, *inputs: Any, **named: Any) -> Any:
        """What the model returns for these arguments in evaluation mode and without gradients, within the budget of the step.

        Raises:
            CaptureError: The model cannot be written as one graph.
            lmsc.Refusal: It does not fit into the budget.
        """
        self._look()
        leaves, spec = pytree.tree_flatten((inputs, named))
        tensors = [v for v in leaves if isinstance(v, Tensor)]
        shape = (spec, *(None if isinstance(v, Tensor) else repr(v) for v in leaves), *((t.shape, t.dtype) for t in tensors), first_places(tensors))
        key = (shape, self._world, torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled(self._place.type))
        if key not in self._evaluations:
            self._evaluations[key] = self._evaluation(leaves, spec)
        graph = self._evaluations[key]
        results = self._run(graph, {f"batch {k}": t for k, t in enumerate(tensors)})
        found, form = graph.spec
        outs = iter(results.values())
        self._rebase()
        return pytree.tree_unflatten([next(outs) if isinstance(v, _Place) else v for v in found], form)

    def _evaluation(self, leaves: list[Any], spec: Any) -> _Graph:
        """The planned graph of the model's forward pass."""
        model, tensors = plain_module(self.model), self._shape.found.tensors
        names = [*tensors.parameters, *tensors.buffers]
        places = [k for k, v in enumerate(leaves) if isinstance(v, Tensor)]
        first = first_places([leaves[k] for k in places]) or range(len(places))
        form: list[Any] = []
        modes = {m: m.training for m in model.modules()}

        def forward(*flat: Tensor) -> list[Tensor]:
            given = list(leaves)
            batch = flat[len(names) :]
            for k, place in enumerate(places):
                given[place] = batch[first[k]]
            args, kwargs = pytree.tree_unflatten(given, spec)
            out, out_form = pytree.tree_flatten(torch.func.functional_call(model, dict(zip(names, flat)), args, kwargs))
            form[:] = [[_Place() if isinstance(v, Tensor) else v for v in out], out_form]
            return [v for v in out if isinstance(v, Tensor)]

        fakes = FakeTensorMode(allow_non_fake_inputs=True)
        real = tensors.all()
        flat = [real[n] for n in names]
        with fakes:
            args = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=self._place) for t in (*flat, *(leaves[k] for k in places))]
        with LOCK:
            TRACING.on = True
            model.eval()
            try:
                with _tracing(self._place), torch.no_grad():
                    graph = make_fx(torch.func.functionalize(forward, remove="mutations"), {}, "fake", _allow_non_fake_inputs=True)(*args)
            except Exception as error:
                raise capture_error(error) from error
            finally:
                TRACING.on = False
                for m, mode in modes.items():
                    m.training = mode
        graph.graph.eliminate_dead_code()
        batch = [f"batch {k}" for k in range(len(places))]
        inputs = [*names, *batch]
        outputs = [f"result {k}" for k in range(sum(isinstance(v, _Place) for v in form[0]))]
        resting = set(self._shape.compiled.plan.rests)  # type: ignore[attr-defined]
        held = {n: self._lasting[n].number for n in names} if not needs_closure(self.optimizer) else {}
        step = whole(graph, inputs, outputs, {}, {}, [], {}, held)
        of = ((f"{n}.{k}", t) for n, p in tensors.parameters.items() for k, t in self.optimizer.state.get(p, {}).items())
        beside = sum(t.nbytes for n, t in of if isinstance(t, Tensor) and t.dim() and n not in resting)
        made = self._planned_graph(step, set(batch), "evaluation", beside, f"{self.plan.budget}B")
        made.spec = form
        return made

    # State.

    @property
    def outputs(self) -> dict[str, Tensor]:
        """What the last step gave besides the loss: further results of the loss function, and `grad_norm` where gradients are clipped."""
        return dict(self._results)

    @property
    def steps(self) -> int:
        """How many steps have been run."""
        return self._done

    @property
    def session(self) -> Any:
        raise InputError('there is no session of lmsc with kernels="torch": the state is that of the model and the optimizer')

    @property
    def compiled(self) -> Any:
        raise InputError('nothing is compiled by lmsc with kernels="torch"; `plan` has the plan')

    @property
    def plan(self) -> StepPlan:  # type: ignore[override]
        """The plan of the present shape."""
        return self._shape.compiled.plan  # type: ignore[return-value]

    @property
    def graph(self) -> torch.fx.GraphModule:
        """The graph of the present shape, as PyTorch runs it."""
        return self._shape.compiled.written.graph  # type: ignore[attr-defined]

    @torch.no_grad()
    def sync(self) -> None:
        """Brings parameters, buffers and the optimizer's state back to the device of the model, where a plan has them rest on the host."""
        if not self._is_stale:
            return
        for lasting in self._lasting.values():
            tensor = lasting.tensor()
            if tensor is not None and tensor.device != self._home and tensor.device.type in ("cpu", self._place.type):
                lasting.put(tensor.data.to(self._home))
        self._is_stale = False
        self._rebase()

    def load(self) -> None:
        """Nothing is to be done: the step has the tensors of PyTorch."""

    def _tensors(self) -> dict[str, Tensor]:
        names = {id(p): n for n, p in self._shape.found.tensors.parameters.items()}
        found = {n: t.detach() for n, t in self._shape.found.tensors.all().items()}
        found |= {f"{names[id(p)]}.{k}": t for p, s in self.optimizer.state.items() if id(p) in names for k, t in s.items() if isinstance(t, Tensor)}
        return found | {f"{n}.ema": t for n, t in self._averages.items()}

    def ema(self) -> dict[str, Tensor]:
        """The moving averages of parameters, by the parameters' names; empty without `ema=`."""
        return {n: t.clone() for n, t in self._averages.items()}

    def state_dict(self) -> dict[str, Any]:
        """All that the next step follows from, besides its batch and `param_groups`: tensors, numbers of the optimizer, steps, and the states of the
        generators of random numbers."""
        names = {id(p): n for n, p in self._shape.found.tensors.parameters.items()}
        numbers = {names[id(p)]: {k: v for k, v in s.items() if not isinstance(v, Tensor)} for p, s in self.optimizer.state.items() if id(p) in names}
        random = {"cpu": torch.get_rng_state()}
        if self._place.type != "cpu":
            random[self._place.type] = torch.get_device_module(self._place).get_rng_state(self._place)
        tensors = {n: t.detach().to("cpu", copy=True) for n, t in self._tensors().items()}
        return {"variables": tensors, "numbers": numbers, "steps": self._done, "random": random}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `state_dict` returned.

        Raises:
            lmsc.InputError: It is of another step; the message names what differs.
        """
        real, given = self._shape.found.tensors.all(), state.get("variables", {})
        missing = [n for n in (*real, *(f"{n}.ema" for n in self._averages)) if n not in given]
        if missing or "random" not in state:
            what = f"{len(missing)} variables of the step, `{missing[0]}` first" if missing else "the states of random numbers"
            raise InputError(f"the state lacks {what}")
        for name, tensor in real.items():
            if given[name].shape != tensor.shape or given[name].dtype != tensor.dtype:
                raise InputError(f"`{name}` is {given[name].dtype} of shape {tuple(given[name].shape)} in the state, and another in the step")
        self.sync()
        for name, tensor in real.items():
            tensor.copy_(given[name])
        for name, average in self._averages.items():
            average.copy_(given[f"{name}.ema"])
        inside = {id(p) for g in self.optimizer.param_groups for p in g["params"]}
        for name, p in self._shape.found.tensors.parameters.items():
            if id(p) in inside:
                self._restore(name, p, {k.removeprefix(f"{name}."): v for k, v in given.items() if k.startswith(f"{name}.") and k not in real}, state)
        for kind, value in state["random"].items():
            torch.set_rng_state(value) if kind == "cpu" else torch.get_device_module(self._place).set_rng_state(value, self._place)
        self._done = int(state["steps"])
        self._rebase()

    def _restore(self, name: str, p: Tensor, tensors: dict[str, Tensor], state: Mapping[str, Any]) -> None:
        numbers = state.get("numbers", {}).get(name, {})
        have = self.optimizer.state.get(p, {})
        new = {k: v for k, v in tensors.items() if k != "ema" and "." not in k}
        if not new and not numbers:
            self.optimizer.state.pop(p, None)
            return
        for key, value in new.items():
            if isinstance(have.get(key), Tensor) and have[key].shape == value.shape and have[key].dtype == value.dtype:
                have[key].copy_(value)
            else:
                have[key] = value.to("cpu" if value.dim() == 0 and key == "step" else p.device, copy=True)
        for key in [k for k in have if k not in new and k not in numbers]:
            del have[key]
        have.update(numbers)
        self.optimizer.state[p] = have

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint of `state_dict` by `torch.save`."""
        part = f"{os.fspath(path)}.{os.getpid()}"
        torch.save(self.state_dict(), part)
        os.replace(part, path)

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Goes on from a checkpoint of `save`."""
        self.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))


class _Place:
    """Stands for a tensor in the form of results."""


def _tensor_at(holder: Any, key: str) -> Tensor | None:
    found = holder.get(key)
    return found if isinstance(found, Tensor) else None


def _device(device: str | torch.device | None, home: torch.device) -> torch.device:
    if device is None:
        return home
    name = "cpu" if str(device) == "host" else str(device)
    try:
        found = torch.device(name)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        raise Refusal(f"PyTorch has no device `{device}` here: {str(error).splitlines()[0]}") from None
    return found
