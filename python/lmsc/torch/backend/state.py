"""The optimizer's state in the memory of the host between its steps: `options={"optimizer": optimizer}`.

A hook before each step of the optimizer updates its parameters in pieces, by the optimizer's own code: the state of a piece comes to the device, is
updated and leaves, while that of the next piece comes. Then the hook hides the gradients, so that the step itself changes nothing; a hook behind the
step shows them again. Schedulers, gradient scalers and other hooks meet the step that they know, and the loop stays as it is.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._C._dynamo.eval_frame import get_eval_frame_callback
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch.optim import Optimizer
from torch.utils._python_dispatch import is_traceable_wrapper_subclass
from torch.utils.weak import WeakIdKeyDictionary

from ..._lmsc import InputError
from ..optimizers import _without_hooks
from ..updates import SMALLEST, Kept, goes_by_parts, kept_by, needs_closure, parts_of, run, signature

__all__ = ["Costs", "RestingState"]


@dataclass(frozen=True)
class Costs:
    """Bytes of an optimizer's state."""

    #: Those that rest on the host.
    rests: int
    #: Those of tensors that stay on the device.
    stays: int
    #: The most bytes of the device that an update takes beside parameters, gradients and the state that stays.
    update: int


class RestingState:
    """The state of one optimizer. `move` has it rest on the host from then on.

    Raises:
        InputError: The optimizer's update is not one that can be made in pieces.
    """

    def __init__(self, optimizer: Optimizer):
        self.optimizer = optimizer
        self.name = type(optimizer).__name__
        self._refuse()
        self.lanes = _Lanes(self.device)
        self.hosts = WeakIdKeyDictionary()  # by parameter, the tensors on the host, by their keys
        self.leaving: list[Tensor] = []  # tensors of the device that may still be read
        self.hidden: list[tuple[Tensor, Tensor]] = []  # parameters whose gradients are hidden
        self.depth = 0  # of steps within each other, while gradients are hidden
        self.loading: dict[Any, dict[str, Tensor]] = {}  # what `load_state_dict` is to load, by the numbers of parameters

    @classmethod
    def of(cls, optimizer: Optimizer) -> RestingState:
        """That of the optimizer, if it rests already."""
        return vars(optimizer).get("_lmsc_resting") or cls(optimizer)

    def _refuse(self) -> None:
        parameters = self._parameters()
        devices = sorted({str(p.device) for p in parameters})
        if needs_closure(self.optimizer):
            raise self._refusal("it computes losses itself, in the midst of its update")
        if self.optimizer.defaults.get("differentiable"):
            raise self._refusal("`differentiable` keeps the state of each step for a backward pass")
        if any(map(is_traceable_wrapper_subclass, parameters)):
            raise self._refusal("it has distributed parameters")
        if len(devices) != 1 or devices == ["meta"]:
            raise self._refusal(f"its parameters are on {' and '.join(devices) or 'no device'}")
        if not goes_by_parts(self.optimizer, hooks_around=True):
            raise self._refusal("its update is not that of one parameter after another")

    def _refusal(self, reason: str) -> InputError:
        return InputError(f"option optimizer: the state of {self.name} cannot rest on the host: {reason}")

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    @property
    def device(self) -> torch.device:
        return self._parameters()[0].device

    def trained(self) -> list[Tensor]:
        """The parameters that get gradients."""
        return [p for p in self._parameters() if p.requires_grad]

    def costs(self) -> Costs:
        """The bytes, by steps of replicas of the optimizer over tensors like the parameters."""
        known: dict[Any, Kept] = {}
        pieces = _pieces(self.trained())
        for piece in pieces:
            key = signature(self.optimizer, piece)
            if key not in known:
                known[key] = kept_by(self.optimizer, piece, self.device)
        kept = [known[signature(self.optimizer, piece)] for piece in pieces]
        large = [sum(t.numel() * t.element_size() for t in one.tensors.values()) for one in kept]
        updates = (own + following + one.workspace for one, own, following in zip(kept, large, [*large[1:], 0], strict=True))
        return Costs(sum(large), sum(one.small for one in kept), max(updates, default=0))

    # Moving.

    def move(self) -> None:
        """Has the state rest on the host from now on."""
        optimizer = self.optimizer
        if vars(optimizer).get("_lmsc_resting") is self:
            return
        optimizer._lmsc_resting = self
        self.hook = optimizer.register_step_pre_hook(torch._dynamo.disable(self._before, recursive=False))
        last = optimizer.register_step_post_hook(torch._dynamo.disable(self._after, recursive=False))
        optimizer._optimizer_step_post_hooks.move_to_end(last.id, last=False)
        optimizer.register_load_state_dict_pre_hook(self._load)
        optimizer.register_load_state_dict_post_hook(self._loaded)
        self._leave(self._parameters())
        self._finish()

    def _bring(self, piece: Sequence[Tensor]) -> None:
        """Lets the state of the parameters come to the device."""
        coming = []
        for p in piece:
            state, hosts = self._state(p), self.hosts.get(p, {})
            for key, host in hosts.items():
                if state.get(key) is host:
                    state[key] = torch.empty_like(host, device=p.device)
                    coming.append((state[key], host))
        with self.lanes.to_device():
            for tensor, host in coming:
                tensor.copy_(host, non_blocking=True)

    def _leave(self, piece: Iterable[Tensor]) -> None:
        """Lets the state of the parameters leave, as far as it is on the device."""
        with self.lanes.to_host():
            for p in piece:
                for key, tensor in self._state(p).items():
                    if self._may_leave(p, key, tensor):
                        self._state(p)[key] = self._host(p, key, tensor)
                        self.leaving.append(tensor)

    def _host(self, p: Tensor, key: str, tensor: Tensor) -> Tensor:
        """The tensor in the memory of the host."""
        hosts = self.hosts.setdefault(p, {})
        host = hosts.get(key)
        if host is not None and (host.shape, host.stride(), host.dtype) == (tensor.shape, tensor.stride(), tensor.dtype):
            torch.ops.lmsc.keep(tensor, host)
        else:
            host = hosts[key] = torch.ops.lmsc.offload(tensor)
        return host

    def _may_leave(self, p: Tensor, key: str, tensor: Any) -> bool:
        if not isinstance(tensor, Tensor) or tensor.device != p.device or tensor is self.hosts.get(p, {}).get(key):
            return False
        if tensor.nbytes < SMALLEST or tensor.layout != torch.strided or is_traceable_wrapper_subclass(tensor):
            return False
        storage = tensor.untyped_storage()
        own = storage.data_ptr() not in {t.untyped_storage().data_ptr() for t in (p, p.grad) if t is not None and t.layout == torch.strided}
        return own and storage.nbytes() == tensor.nbytes and bool(is_non_overlapping_and_dense_or_false(tensor))

    def _state(self, p: Tensor) -> dict[str, Any]:
        return self.optimizer.state[p] if p in self.optimizer.state else {}

    def _finish(self) -> None:
        """Waits until what leaves is on the host, where anybody may read it."""
        self.lanes.finish()
        self.leaving.clear()

    # The step.

    def _before(self, optimizer: Optimizer, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Makes the step's update, and hides the gradients from the step."""
        if get_eval_frame_callback() is not None:
            raise self._refusal("its step is compiled; leave it out of torch.compile")
        if next(reversed(optimizer._optimizer_step_pre_hooks)) != self.hook.id:
            raise InputError(f"a hook before the steps of {self.name} was registered after the first call of the compiled model; register it before")
        given = inspect.signature(type(optimizer).step).bind(*args, **kwargs).arguments
        closure = given.pop("closure", None)
        unknown = [name for name, value in list(given.items())[1:] if value not in (None, {}, ())]
        if unknown:
            raise self._refusal(f"its step is given `{unknown[0]}`")
        result = None
        if closure is not None:
            if not inspect.unwrap(type(optimizer).step).__module__.startswith("torch.optim."):
                raise self._refusal("its step is given a closure, which it may call in the midst of its update")
            with torch.enable_grad():
                loss = closure()
            result = (optimizer, lambda: loss), {}
        gradients = [(p, p.grad) for p in self._parameters() if p.grad is not None]
        if gradients:
            self._update([p for p, _ in gradients])
            self.hidden, self.depth = gradients, 0
            for p, _ in gradients:
                p.grad = None
        self.depth += 1
        return result

    def _after(self, optimizer: Optimizer, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Shows the gradients again, behind the outermost step: that of a subclass may call its parent's."""
        self.depth -= 1
        if self.depth > 0:
            return
        for p, gradient in self.hidden:
            if p.grad is None:
                p.grad = gradient
        self.hidden = []

    def _update(self, parameters: Sequence[Tensor]) -> None:
        pieces = _pieces(parameters)
        with torch.no_grad(), _without_own_hooks(self.optimizer):
            try:
                self._bring(pieces[0])
                for piece, following in itertools.zip_longest(pieces, pieces[1:]):
                    self.lanes.join()
                    self.leaving.clear()
                    if following is not None:
                        self._bring(following)
                    run(self.optimizer, {id(p) for p in piece})
                    self._leave(piece)
            finally:
                # After an error some of it is still on the device.
                self.lanes.join()
                self._leave(parameters)
                self._finish()

    # Loading.

    def _load(self, optimizer: Optimizer, state_dict: dict[str, Any]) -> dict[str, Any]:
        """Takes out of the dictionary what rests on the host, so that it does not pass through the device."""
        self.loading = {
            number: {key: t for key, t in state.items() if key != "step" and isinstance(t, Tensor) and t.layout == torch.strided and t.nbytes >= SMALLEST}
            for number, state in state_dict["state"].items()
            if isinstance(state, dict)
        }
        self.numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
        without = {
            number: state | {key: t.new_empty(0) for key, t in self.loading[number].items()} if number in self.loading else state
            for number, state in state_dict["state"].items()
        }
        return {**state_dict, "state": without}

    def _loaded(self, optimizer: Optimizer) -> None:
        self.hosts.clear()
        for number, p in zip(self.numbers, self._parameters(), strict=True):
            for key, value in self.loading.get(number, {}).items():
                # The type is the one that PyTorch gives it.
                typed = value.to(p.dtype) if p.is_floating_point() else value
                host = torch.ops.lmsc.offload(typed)
                if p.device.type != "cpu" and not host.is_pinned():
                    host = host.pin_memory()
                self.hosts.setdefault(p, {})[key] = self._state(p)[key] = host
        self.loading = {}
        self._finish()


def _pieces(parameters: Sequence[Tensor]) -> list[list[Tensor]]:
    return list(parts_of([(p, p) for p in parameters]))


@contextlib.contextmanager
def _without_own_hooks(optimizer: Optimizer) -> Iterator[None]:
    """Leaves out all hooks before and behind a step."""
    names = ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")
    kept = {name: vars(optimizer)[name] for name in names}
    vars(optimizer).update({name: OrderedDict() for name in names})
    try:
        with _without_hooks():
            yield
    finally:
        vars(optimizer).update(kept)


class _Lanes:
    """The streams of an accelerator on which copies run beside the kernels. On the processor nothing runs beside."""

    def __init__(self, device: torch.device):
        self.device = device
        self.streams = () if device.type == "cpu" else (torch.Stream(device), torch.Stream(device))

    def to_device(self) -> contextlib.AbstractContextManager[Any]:
        """Copies to the device, which begin when the kernels before them are done."""
        return self._on(0)

    def to_host(self) -> contextlib.AbstractContextManager[Any]:
        """Copies to the host, which begin when the kernels before them are done."""
        return self._on(1)

    def _on(self, lane: int) -> contextlib.AbstractContextManager[Any]:
        if not self.streams:
            return contextlib.nullcontext()
        self.streams[lane].wait_stream(torch.accelerator.current_stream(self.device))
        return self.streams[lane]

    def join(self) -> None:
        """Lets the kernels that follow wait for all copies."""
        for stream in self.streams:
            torch.accelerator.current_stream(self.device).wait_stream(stream)

    def finish(self) -> None:
        """Waits for all copies."""
        self.join()
        for stream in self.streams:
            stream.synchronize()
