"""What a step can reach besides its arguments: tensors, attributes, hooks, closures, globals and generators.

A graph knows none of them. So they are compared before and after the step is traced, put back whatever happens, and watched from
step to step.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import dis
import functools
import operator
import random
import sys
import sysconfig
import types
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .errors import CaptureError

Holder = Any
"""A dict, a list or a `_Cell`: values under keys that can be replaced."""

_LIBRARIES = (str(Path(torch.__file__).parent), str(Path(__file__).parent), "<frozen", sysconfig.get_path("stdlib") + "/")
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format)
_MODULE_KEYS = frozenset(vars(nn.Module()))
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD")
_MAKING = frozenset(("__init__", "__new__", "__init_subclass__", "__post_init__", "__repr__", "__str__", "__del__"))
_DYNAMIC = frozenset(("getattr", "vars", "hasattr"))
_UNSTEADY = frozenset((
    "time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "thread_time", "now", "utcnow", "today",
    "urandom", "getrandom", "randbelow", "randbits", "token_bytes", "token_hex", "uuid1", "uuid4", "SystemRandom", "default_rng", "RandomState",
    "Random", "SeedSequence", "PCG64",
))  # fmt: skip
"""Names of functions of clocks, and of random numbers that no generator within reach draws."""
MOST = 50_000
"""Values that are looked at, at most. A model of transformers with a hundred layers has 10,000."""


def _is_library(function: types.FunctionType) -> bool:
    file = function.__code__.co_filename
    return file.startswith(_LIBRARIES) or "site-packages" in file


def _is_of_library(kind: type) -> bool:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or "<frozen"
    return file.startswith(_LIBRARIES) or "site-packages" in file


@functools.lru_cache(maxsize=None)
def _named(code: types.CodeType) -> tuple[frozenset[str], frozenset[str], dict[str, str]]:
    """The globals and the attributes that code names, and the lines that set attributes."""
    names, loads, stored, line = set(), set(), {}, code.co_firstlineno
    for i in dis.get_instructions(code):
        line = (i.positions.lineno if i.positions else None) or line
        if i.opname in ("LOAD_GLOBAL", "STORE_GLOBAL", "LOAD_NAME"):
            names.add(i.argval)
        elif i.opname in _ATTRIBUTE or i.opname == "STORE_ATTR":
            # What belongs to `super()` has several names in one instruction.
            loads.update(i.argval if isinstance(i.argval, tuple) else (i.argval,))
            if i.opname == "STORE_ATTR":
                stored.setdefault(i.argval, f"{code.co_filename}:{line}")
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            more, other, lines = _named(constant)
            names |= more
            loads |= other
            stored = {**lines, **stored}
    return frozenset(names), frozenset(map(str, loads)), stored


class _Member:
    """An attribute of a class, with the interface of a variable of a closure."""

    def __init__(self, kind: type, name: str) -> None:
        self.kind, self.name = kind, name

    @property
    def cell_contents(self) -> Any:
        return vars(self.kind)[self.name]

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        if vars(self.kind)[self.name] is not value:
            setattr(self.kind, self.name, value)


class _Cell:
    """A variable of a closure, or an attribute of a class."""

    def __init__(self, cell: types.CellType | _Member) -> None:
        self.cell = cell

    def __getitem__(self, key: str) -> Any:
        return self.cell.cell_contents

    def __setitem__(self, key: str, value: Any) -> None:
        self.cell.cell_contents = value


@dataclass(frozen=True)
class Slot:
    """A place of a module that holds a tensor, and the name that the tensor has in the step."""

    holder: Holder
    key: Any
    name: str


class Tensors:
    """The tensors of a model and of the modules that its loss function has: parameters, buffers, and other attributes.

    A tensor that is in several places has one name, and a slot for each place.
    """

    def __init__(self, model: nn.Module, others: dict[str, nn.Module], taken: list[str]) -> None:
        self._taken = set(taken)
        self.parameters: dict[str, Tensor] = dict(model.named_parameters())
        self.buffers: dict[str, Tensor] = dict(model.named_buffers())
        self.others: dict[str, Tensor] = {}
        """Tensors that are attributes of modules, and those of the loss function's modules."""
        self.slots: list[Slot] = []
        self._names = {id(t): n for n, t in (self.parameters | self.buffers).items()}
        inside = {id(m) for m in model.modules()}
        for prefix, module in [*model.named_modules(), *((f"{r}.{n}" if n else r, m) for r, o in others.items() for n, m in o.named_modules() if id(m) not in inside)]:
            for holder in (module._parameters, module._buffers):
                for key, value in holder.items():
                    self._add(holder, key, value, f"{prefix}.{key}" if prefix else key)
            for key, value in vars(module).items():
                if key not in _MODULE_KEYS:
                    self._inside(vars(module), key, value, f"{prefix}.{key}" if prefix else key, 3)

    def _add(self, holder: Holder, key: Any, value: Any, name: str) -> None:
        if not isinstance(value, Tensor):
            return
        if id(value) not in self._names:
            while name in self._taken or name in self.all():
                name += "_"
            self._names[id(value)], self.others[name] = name, value
        self.slots.append(Slot(holder, key, self._names[id(value)]))

    def _inside(self, holder: Holder, key: Any, value: Any, name: str, depth: int) -> None:
        self._add(holder, key, value, name)
        if depth and type(value) in (list, dict, collections.OrderedDict):
            for k, v in list(enumerate(value) if isinstance(value, list) else value.items()):
                self._inside(value, k, v, f"{name}.{k}", depth - 1)

    def all(self) -> dict[str, Tensor]:
        """All of them, by name."""
        return {**self.parameters, **self.buffers, **self.others}


class Reach:
    """Everything that a step's functions can read or change, found by their code: only what they name is looked at.

    `holders` has, for each dict, list, object or closure, a label and the keys that matter (None: all of them).
    """

    def __init__(
        self, model: nn.Module, loss_fn: Callable[..., Any] | None, hooks: list[tuple[str, Any]], without: frozenset[tuple[int, str]]
    ) -> None:
        self._without = without
        self.holders: list[tuple[str, Holder, frozenset[str] | None]] = []
        self.fixed: list[tuple[str, Any]] = list(hooks)
        """Values that are in what cannot be changed: tuples and defaults."""
        self.generators: list[tuple[str, Any]] = []
        self.arrays: list[tuple[str, np.ndarray[Any, Any]]] = []
        self.iterators: list[str] = []
        """Iterators of Python's own, of which one cannot see whether they have moved."""
        self.unsteady = False
        """Whether the caller's code names a clock or another source of values that differ each time."""
        self.modules: dict[str, nn.Module] = {}
        """Modules that the loss function reaches and the model has not."""
        self.stored: dict[str, str] = {}
        """The line that sets an attribute, by its name."""
        self._loads, self._dynamic = {"forward", "__call__"}, False
        self._seen: set[int] = set()
        self._alive: list[Any] = []
        self._inside = {id(m) for m in model.modules()}
        self._classes: list[type] = []
        self._todo: list[tuple[str, Any]] = []
        self._todo += [(f"model.{n}" if n else "model", m) for n, m in model.named_modules()]
        if loss_fn is not None:
            self._todo.append(("loss_fn", loss_fn))
        self._todo += hooks
        self._functions: list[tuple[str, types.FunctionType]] = []
        self._objects: list[tuple[str, Any]] = []
        self._noted: dict[int, int] = {}
        """The place in `holders` of an object's attributes."""
        self._members_seen: set[tuple[type, str]] = set()
        self._walk()

    def _walk(self) -> None:
        known = (-1, False, 0)
        while self._todo or known != (known := (len(self._loads), self._dynamic, len(self._objects))):
            while self._todo:
                label, value = self._todo.pop()
                if len(self._seen) < MOST:
                    self._visit(label, value)
            self._methods()
            if not self._todo:
                # With the names that are known by now, also of objects that were looked at when fewer were.
                for label, value in self._objects:
                    self._attributes(label, value)
                for kind in self._classes:
                    self._members(kind)

    def _visit(self, label: str, value: Any) -> None:
        if isinstance(value, (*_PLAIN, Tensor, type, types.ModuleType, types.BuiltinFunctionType)) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._alive.append(value)
        if isinstance(value, types.MethodType):
            self._todo += [(label, value.__func__), (label, value.__self__)]
        elif isinstance(value, types.FunctionType):
            self._function(label, value)
        elif isinstance(value, functools.partial):
            self._todo.append((label, value.func))
            self._contents(f"{label}.args", (*value.args, *value.keywords.values()))
        elif isinstance(value, (tuple, frozenset)):
            self._contents(label, value)
        elif isinstance(value, (list, dict, set, collections.deque)):
            self.holders.append((label, value, None))
            items = dict.items(value) if isinstance(value, dict) else enumerate(value)
            self._todo += [(f"{label}[{k!r}]" if isinstance(k, (int, str)) else label, v) for k, v in items]
        elif isinstance(value, (np.random.Generator, np.random.RandomState, random.Random, torch.Generator)):
            self.generators.append((label, value))
        elif isinstance(value, np.ndarray):
            self.arrays.append((label, value))
        elif isinstance(value, collections.abc.Iterator) and not hasattr(value, "__dict__"):
            self.iterators.append(label)
        elif isinstance(value, nn.Module):
            self._module(label, value)
            self._objects.append((label, value))
        elif isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, (torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler)):
            if not type(value).__module__.startswith(("lmsc", "logging", "threading")):
                call = getattr(type(value), "__call__", None)
                if isinstance(call, types.FunctionType):
                    self._function(label, call)
                self._class(type(value))
                self._objects.append((label, value))

    def _contents(self, label: str, values: Any) -> None:
        self.fixed += [(f"{label}[{k}]", v) for k, v in enumerate(values)]
        self._todo += [(f"{label}[{k}]", v) for k, v in enumerate(values)]

    def _module(self, label: str, module: nn.Module) -> None:
        if id(module) not in self._inside:
            self.modules[label.removeprefix("loss_fn.")] = module
            self._inside.update(id(m) for m in module.modules())
        self.holders.append((label, vars(module), frozenset(("training",))))
        for key, value in vars(module).items():
            if key in _MODULE_KEYS and isinstance(value, dict) and "state_dict" not in key:
                self._visit(f"{label}.{key}", value)
        self._class(type(module))

    def _class(self, kind: type) -> None:
        for base in kind.__mro__:
            if base not in (object, nn.Module) and base not in self._classes:
                self._classes.append(base)

    def _methods(self) -> None:
        """Looks into the methods whose names are known, until no further names come."""
        before = -1
        while before != len(self._loads):
            before = len(self._loads)
            for kind in self._classes:
                for name, value in vars(kind).items():
                    function = getattr(value, "__func__", getattr(value, "fget", value))
                    # Python itself calls special methods; the code does not name them.
                    special = name.startswith("__") and name not in _MAKING and not _is_of_library(kind)
                    if (special or name in self._loads) and isinstance(function, types.FunctionType) and id(function) not in self._seen:
                        self._seen.add(id(function))
                        self._function(f"{kind.__name__}.{name}", function)
                        if not _is_of_library(kind):
                            self.holders.append((f"{kind.__name__}.{name}", _Cell(_Member(kind, name)), frozenset((name,))))

    def _function(self, label: str, function: types.FunctionType) -> None:
        self._functions.append((label, function))
        library = _is_library(function)
        names = self._code(function.__code__)
        if library:
            return
        self.holders.append((label, function.__dict__, None))
        self._todo += [(f"{label}.{k}", v) for k, v in function.__dict__.items()]
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            with contextlib.suppress(ValueError):
                if name != "__class__":
                    self._variable(f"{label}.{name}", _Cell(cell), name)
        for name in sorted(names & function.__globals__.keys()):
            self._variable(name, function.__globals__, name)
        self._contents(f"{label}.defaults", (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()))

    def _variable(self, label: str, holder: Holder, name: str) -> None:
        value = holder[name]
        if isinstance(value, type) and not _is_of_library(value):
            self._class(value)
        if isinstance(value, types.ModuleType):
            return
        self.holders.append((label, holder, frozenset((name,))))
        self._todo.append((label, value))

    def _code(self, code: types.CodeType) -> set[str]:
        """Notes the attributes that the code names, and gives its globals."""
        names, loads, stored = _named(code)
        self._loads |= loads
        for name, line in stored.items():
            self.stored.setdefault(name, line)
        own = not code.co_filename.startswith(_LIBRARIES) and "site-packages" not in code.co_filename
        self._dynamic |= bool(names & _DYNAMIC) and own
        self.unsteady |= own and not _UNSTEADY.isdisjoint(names | loads)
        return set(names)

    def _attributes(self, label: str, value: Any) -> None:
        keys = [k for k in vars(value) if k not in _MODULE_KEYS or not isinstance(value, nn.Module)]
        if not self._dynamic:
            keys = [k for k in keys if k in self._loads]
        keys = [k for k in keys if (id(value), k) not in self._without]
        place = self._noted.setdefault(id(value), len(self.holders))
        before: frozenset[str] = frozenset()
        if place < len(self.holders):
            before = self.holders[place][2] or before
        else:
            self.holders.append((label, vars(value), frozenset()))
        self.holders[place] = self.holders[place][0], vars(value), before.union(keys)
        self._todo += [(f"{label}.{key}", vars(value)[key]) for key in keys if key not in before]

    def _members(self, kind: type) -> None:
        """Notes the values that are attributes of a class of the caller's."""
        if _is_of_library(kind):
            return
        for name, value in vars(kind).items():
            plain = isinstance(value, (*_PLAIN, Tensor, np.ndarray, list, dict, set, collections.deque)) and not name.startswith("__")
            if plain and (name in self._loads or self._dynamic) and (kind, name) not in self._members_seen:
                self._members_seen.add((kind, name))
                self._variable(f"{kind.__name__}.{name}", _Cell(_Member(kind, name)), name)

    def attributes(self) -> list[dict[str, Any]]:
        """The attributes of each object that is reached."""
        return [vars(value) for _, value in self._objects]

    def line_of(self, name: str) -> str:
        """`FILE:LINE: ` of code that sets this attribute, or nothing."""
        place = self.stored.get(name.rpartition(".")[2].partition("[")[0])
        return f"{place}: " if place else ""


def _items(holder: Holder, keys: frozenset[str] | None) -> list[tuple[Any, Any]]:
    if isinstance(holder, _Cell):
        return [(k, holder[k]) for k in keys or ()]
    if isinstance(holder, dict):
        return [(k, v) for k, v in dict.items(holder) if keys is None or k in keys]
    return list(enumerate(holder))


def _copy(holder: Holder) -> Any:
    """The contents of a container. A class of the caller's may make something else of its elements when it is asked for them."""
    if isinstance(holder, dict):
        return dict(dict.items(holder))
    return list(holder) if isinstance(holder, (list, collections.deque)) else set(holder)


def _fill(holder: Holder, contents: Any) -> None:
    """Puts contents back, where they are others."""
    if isinstance(holder, dict):
        if list(dict.keys(holder)) != list(contents) or any(dict.__getitem__(holder, k) is not v for k, v in contents.items()):
            kind = collections.OrderedDict if isinstance(holder, collections.OrderedDict) else dict
            kind.clear(holder)
            for k, v in contents.items():
                kind.__setitem__(holder, k, v)
    elif isinstance(holder, set):
        if holder != contents:
            holder.clear()
            holder.update(contents)
    elif len(holder) != len(contents) or any(map(operator.is_not, holder, contents)):
        holder.clear()
        holder.extend(contents)


def mark(value: Any) -> Any:
    """What stands for a value where two states are compared: itself if it is plain, else which object it is."""
    if isinstance(value, _PLAIN):
        return type(value), repr(value) if isinstance(value, (float, complex)) else value
    if isinstance(value, Tensor):
        return "tensor", id(value), value.requires_grad, value.dtype, tuple(value.shape)
    if isinstance(value, np.generic):
        return "number", value.dtype.str, value.tobytes()
    if isinstance(value, (list, dict, set, tuple, frozenset, collections.deque)):
        return type(value), len(value)
    return "object", id(value)


class Ours:
    """A hook that lmsc has registered, which is no part of what is watched."""


def fingerprint(reach: Reach) -> tuple[Any, ...]:
    """The state of all that is reached, as something that can be compared and hashed."""
    found = [(label, "", mark(v)) for label, v in reach.fixed if not isinstance(v, Ours)]
    for label, holder, keys in reach.holders:
        for k, v in _items(holder, keys):
            if isinstance(v, dict) and any(isinstance(o, Ours) for o in v.values()):
                v = {n: o for n, o in v.items() if not isinstance(o, Ours)}
            if not isinstance(v, Ours):
                found.append((label, k if isinstance(k, str) else "", mark(v)))
    found += [(label, "", a.tobytes()) for label, a in reach.arrays]
    return tuple(found)


def difference(a: tuple[Any, ...], b: tuple[Any, ...]) -> str:
    """The first thing in which two fingerprints differ, for a message."""
    for x, y in zip(a, b):
        if x != y:
            label, key, _ = y
            return label if not key or label.endswith(key) else f"{label}.{key}"
    return a[-1][0] if a else "the model"


class Saved:
    """The state of all that a step reaches, before it is traced."""

    def __init__(self, reach: Reach, model: nn.Module) -> None:
        self.reach = reach
        every = [*model.modules(), *(s for m in reach.modules.values() for s in m.modules())]
        self._attributes = [(m, dict(vars(m))) for m in every]
        self._held: list[tuple[str, Any, Any, frozenset[str] | None]] = []
        known = set()
        for m in every:
            for key in _MODULE_KEYS:
                holder = vars(m).get(key)
                if isinstance(holder, (dict, set)):
                    known.add(id(holder))
                    self._held.append((key, holder, _copy(holder), None))
        for label, holder, keys in reach.holders:
            if id(holder) in known:
                continue
            if isinstance(holder, _Cell) or keys is not None:
                self._held.append((label, holder, dict(_items(holder, keys)), keys))
            else:
                self._held.append((label, holder, _copy(holder), None))
        tensors = [t for m in every for t in chain(m._parameters.values(), m._buffers.values()) if t is not None]
        self._grads = [(t, t.requires_grad, t.grad) for t in tensors]
        self.random = random.getstate(), np.random.get_state(), torch.random.get_rng_state()
        self._own = [(label, g, _state_of(g)) for label, g in reach.generators]
        self._arrays = [(label, a, a.copy()) for label, a in reach.arrays]

    def clean(self) -> None:
        """Forgets the attributes that changed, before contents are compared."""
        for module, before in self._attributes:
            now = vars(module)
            for key in [k for k in now if k not in _MODULE_KEYS and k not in before]:
                del now[key]
            now.update({k: v for k, v in before.items() if now.get(k, Absent) is not v})

    def changed(self) -> list[tuple[nn.Module, str, Any, Any]]:
        """Attributes of modules that are others now: module, name, what was there, what is there. `Absent` is nothing."""
        found = []
        for module, before in self._attributes:
            now = vars(module)
            for key in dict.fromkeys((*before, *now)):
                if key not in _MODULE_KEYS or key == "training":
                    a, b = before.get(key, Absent), now.get(key, Absent)
                    if a is not b and not _same(a, b):
                        found.append((module, key, a, b))
        return found

    def contents_changed(self) -> list[str]:
        """Labels of lists, dicts, objects, closures and globals whose contents are others now."""
        modules = {id(vars(m)) for m, _ in self._attributes}
        found = []
        for label, holder, before, keys in self._held:
            if id(holder) in modules:
                continue
            now = dict(_items(holder, keys)) if keys is not None else _copy(holder)
            if isinstance(before, dict):
                if before.keys() != now.keys() or any(a is not now[k] and not _same(a, now[k]) for k, a in before.items()):
                    found.append(label)
            elif len(before) != len(now) or any(a is not b and not _same(a, b) for a, b in zip(before, now)):
                found.append(label)
        return found + [label for label, a, b in self._arrays if not _is_equal(a, b)]

    def drawn(self) -> str | None:
        """The generator of random numbers that has moved, other than torch's own."""
        if random.getstate() != self.random[0]:
            return "random"
        a, b = np.random.get_state(), self.random[1]
        if any(not np.array_equal(x, y) for x, y in zip(a, b)):
            return "numpy.random"
        return next((label for label, g, s in self._own if repr(_state_of(g)) != repr(s)), None)

    def restore(self) -> None:
        """Puts everything back."""
        for label, holder, before, keys in self._held:
            if isinstance(holder, _Cell) or keys is not None:
                for k, v in before.items():
                    holder[k] = v
            else:
                _fill(holder, before)
        for module, before in self._attributes:
            now = vars(module)
            if now.keys() != before.keys() or any(now[k] is not v for k, v in before.items()):
                now.clear()
                now.update(before)
        for _, a, b in self._arrays:
            if not _is_equal(a, b):
                a[...] = b
        for t, requires_grad, grad in self._grads:
            if t.requires_grad != requires_grad and t.is_leaf:
                t.requires_grad_(requires_grad)
            if t.grad is not grad:
                t.grad = grad
        self.restore_random()

    def restore_random(self) -> None:
        """Puts the generators back."""
        random.setstate(self.random[0])
        np.random.set_state(self.random[1])
        torch.default_generator.set_state(self.random[2])
        for _, g, s in self._own:
            _set_state(g, s)


class Absent:
    """Stands for an attribute that is not there."""


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and isinstance(a, _PLAIN) and mark(a) == mark(b)


def _is_equal(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return a.shape == b.shape and (all(map(operator.is_, a.flat, b.flat)) if a.dtype.hasobject else a.tobytes() == b.tobytes())


def _state_of(g: Any) -> Any:
    if isinstance(g, np.random.Generator):
        return g.bit_generator.state
    return g.getstate() if isinstance(g, random.Random) else g.get_state()


def _set_state(g: Any, state: Any) -> None:
    if isinstance(g, np.random.Generator):
        g.bit_generator.state = state
    elif isinstance(g, random.Random):
        g.setstate(state)
    else:
        g.set_state(state)


@contextlib.contextmanager
def lines_of_draws(drawn: Callable[[], bool]) -> Iterator[list[str]]:
    """Notes the line of the caller's code after which `drawn` is true for the first time. Slow: it looks after each line."""
    found: list[str] = []
    last: list[str] = []
    before = sys.gettrace()

    def look(frame: types.FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if file.startswith((*_LIBRARIES, "<string>")) or "site-packages" in file:
            return None
        if not found:
            if last and drawn():
                found.append(last[0])
            last[:] = [f"{file}:{frame.f_lineno}"]
        return look

    sys.settrace(look)
    try:
        yield found
    finally:
        sys.settrace(before)


def tensors_in(reach: Reach) -> list[Tensor]:
    """All tensors that are reached."""
    found = {id(v): v for _, v in reach.fixed if isinstance(v, Tensor)}
    for _, holder, keys in reach.holders:
        found.update({id(v): v for _, v in _items(holder, keys) if isinstance(v, Tensor)})
    return list(found.values())


class Watch:
    """Whether anything that a step reaches has been changed since the watch was made. Cheap: it compares which objects are there."""

    def __init__(self, reach: Reach, tensors: list[Tensor], more: list[Holder], shared: Collection[int] = ()) -> None:
        """`shared` are the ids of tensors whose contents need not be compared, since the step has these tensors themselves: their memory may be freed."""
        self._whole: list[Holder] = []
        """Dicts and lists of which everything counts."""
        self._parts: list[tuple[Holder, tuple[Any, ...]]] = []
        for _, holder, keys in reach.holders:
            if keys is None and isinstance(holder, (dict, list, set, collections.deque)):
                self._whole.append(holder)
            elif keys:
                self._parts.append((holder, tuple(sorted(keys))))
        self._whole += more
        self._attributes = reach.attributes()
        """Attributes of objects: one that is added may hide one of the class."""
        self._sized = [*self._whole, *self._attributes]
        self._dicts = [h for h in self._whole if h and isinstance(h, dict)]
        self._lists = [h for h in self._whole if h and not isinstance(h, dict)]
        found = [(h, k) for h, k in self._parts if isinstance(h, dict) and all(n in h for n in k)]
        self._single = [(h, k[0]) for h, k in found if len(k) == 1]
        self._getters = [(h, operator.itemgetter(*k)) for h, k in found if len(k) > 1]
        self._cells = [h for h, _ in self._parts if isinstance(h, _Cell)]
        self._values = self._now()
        self._sizes = list(map(len, self._sized))
        self._arrays = [(a, a.copy()) for _, a in reach.arrays]
        self.tensors, self._shared = tensors, shared
        self._flags = self._flags_now()
        self.rebase()

    def rebase(self) -> None:
        """Takes the present contents of the tensors as known."""
        self._versions = self._versions_now()
        self._pieces = [[] if id(t) in self._shared else _pieces(t) for t in self.tensors]
        self._flat = list(chain.from_iterable(self._pieces))
        self._alive = [t.detach() for t in self.tensors if id(t) not in self._shared]
        self._contents = b"".join(self._flat)

    def _now(self) -> list[Any]:
        values: list[Any] = [*chain.from_iterable(map(dict.values, self._dicts)), *chain.from_iterable(self._lists)]
        try:
            values += [holder[key] for holder, key in self._single]
            for holder, get in self._getters:
                values += get(holder)
        except KeyError:
            values.append(object())
        if self._cells:
            values += [c.cell.cell_contents for c in self._cells]
        return values

    def _versions_now(self) -> list[Any]:
        """Versions and addresses of the tensors."""
        try:
            return [*map(_VERSION, self.tensors), *map(_ADDRESS, self.tensors)]
        except RuntimeError:
            # One of them has no memory.
            return [*map(_VERSION, self.tensors), *map(_address, self.tensors)]

    def _flags_now(self) -> list[Any]:
        return list(map(_FLAGS, self.tensors))

    def is_same(self) -> bool:
        """Whether all attributes, hooks, closures and flags are the same objects as before."""
        if list(map(len, self._sized)) != self._sizes:
            return False
        if self._arrays and not all(_is_equal(a, b) for a, b in self._arrays):
            return False
        now = self._now()
        if len(now) != len(self._values):
            return False
        # Tuples may be made anew, of the same objects.
        return (all(map(operator.is_, now, self._values)) or all(map(_alike, now, self._values))) and self._flags_now() == self._flags

    def written(self) -> list[Tensor]:
        """The tensors that have been written since.

        Versions tell; and, since a write by way of `.data` or NumPy has none, all of a small tensor and pieces of a large one.
        """
        now, count = self._versions_now(), len(self.tensors)
        same = now == self._versions
        if same and b"".join(self._flat) == self._contents:
            return []
        pairs = zip(self.tensors, now[:count], self._versions[:count], now[count:], self._versions[count:])
        moved = [(a, c) != (b, d) for _, a, b, c, d in pairs]
        found, at = [], 0
        for t, other, pieces in zip(self.tensors, moved, self._pieces):
            end = at + sum(map(len, pieces))
            if other or b"".join(pieces) != self._contents[at:end]:
                found.append(t)
            at = end
        return found


PIECE = 256
"""Bytes of a piece of a tensor whose contents are compared in each step. A large tensor has three: 300 tensors take about 50 µs."""


def _pieces(t: Tensor) -> list[memoryview]:
    """All elements of a small tensor, or those at the beginning, in the middle and at the end; none of a tensor that is not in this memory as a whole."""
    if t.device.type != "cpu" or t.layout != torch.strided or not (start := _address(t)):
        return []
    if sum((extent - 1) * stride for extent, stride in zip(t.shape, t.stride())) + 1 != t.numel():
        return []
    size = t.numel() * t.element_size()
    places = [(0, size)] if size <= 4 * PIECE else [(k, PIECE) for k in (0, size // 2, size - PIECE)]
    return [memoryview((ctypes.c_char * length).from_address(start + k)).cast("B") for k, length in places]


_VERSION = operator.attrgetter("_version")
_ADDRESS = Tensor.data_ptr
_FLAGS = operator.attrgetter("requires_grad", "dtype", "_backward_hooks", "_post_accumulate_grad_hooks")


def _address(t: Tensor) -> int:
    try:
        return t.data_ptr()
    except RuntimeError:
        return 0


def _alike(a: Any, b: Any) -> bool:
    return a is b or type(a) is tuple and type(b) is tuple and len(a) == len(b) and all(map(operator.is_, a, b))


def refuse_changes(saved: Saved) -> None:
    """Refuses changes of lists, closures and globals, which a graph cannot keep."""
    if saved.reach.iterators:
        raise CaptureError(
            f"the step reaches `{saved.reach.iterators[0]}`, an iterator, and a graph cannot advance it: take the next value outside of the step, "
            "and give it as a part of the batch"
        )
    labels = saved.contents_changed()
    if labels:
        raise CaptureError(
            f"{saved.reach.line_of(labels[0])}the step changes `{labels[0]}`, which is in Python, and a graph cannot: keep it as a buffer of the "
            "module (register_buffer) and write into it, or change it outside of the step; if the first forward pass alone changes it, call the "
            "model once before"
        )
