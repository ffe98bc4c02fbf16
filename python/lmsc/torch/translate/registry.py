"""The table of translations, the contract between a translation and a schema of PyTorch, and how translations get at operands.

A translation takes an argument of a schema by a parameter, or says that the argument shows in the shape and the type of the result
(`seen`). An argument for which neither holds is refused unless it has its default.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx import Node

from ..errors import UnsupportedOperator, line_of_trace
from .builder import ONNX_TYPES, Builder

Translation = Callable[..., Any]
Once = Callable[["Translator", Node], bool]
TABLE: dict[str, tuple[Translation, frozenset[str], Once]] = {}
"""By name: a translation, the arguments whose whole effect is on the shape and the type of the result, and whether short floats are rounded once."""

SHORT = frozenset({torch.bfloat16, torch.float16})

PLACE = frozenset({"device", "layout", "pin_memory", "memory_format", "non_blocking"})
"""Arguments of all operators that say where elements are, and in which order. A graph leaves that to the runtime."""

OPERANDS = frozenset({"Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]", "number", "Optional[number]"})
"""Types of arguments that parameters take by their position. Those of other types have the name that the schema gives them."""


def op(*names: str, seen: str = "", once: bool | Once = False) -> Callable[[Translation], Translation]:
    """Registers a translation for operators by name: `add` for all overloads of `aten.add`, or `add.Tensor` for one.

    `seen` are the arguments that show in the shape and the type of the result, from which the translation takes them. `once`: what is
    written is several nodes, or has a number; for a result of short floats it is computed in float32 and rounded once, as PyTorch does.
    """
    rounds = once if callable(once) else lambda t, n: once

    def register(function: Translation) -> Translation:
        for name in names:
            assert name not in TABLE, name
            TABLE[name] = function, frozenset(seen.split()), rounds
        return function

    return register


def _full_name(overload: torch._ops.OpOverload) -> tuple[str, str]:
    space, packet = overload._schema.name.split("::")
    packet = packet if space == "aten" else f"{space}::{packet}"
    return f"{packet}.{overload._overloadname}", packet


class ContractError(Exception):
    """A translation and a schema do not fit: an argument is neither taken nor listed, or a parameter has no argument."""


@dataclass(frozen=True)
class Contract:
    """How the arguments of one overload reach its translation."""

    function: Translation
    positional: tuple[str, ...]
    """The arguments that are passed by position."""
    named: tuple[tuple[str, str], ...]
    """Parameters that are passed by name, and their arguments."""
    refused: tuple[str, ...]
    """The arguments that must have their defaults."""
    once: Once


def _fits(parameter: str, argument: Any) -> bool:
    return str(argument.type) in OPERANDS or parameter.rstrip("_") == argument.name


@functools.cache
def contract(overload: torch._ops.OpOverload) -> Contract | None:
    """The contract of an operator; none if it has no translation.

    Raises:
        ContractError: The translation does not fit the schema.
    """
    names = _full_name(overload)
    entry = TABLE.get(names[0]) or TABLE.get(names[1])
    if entry is None:
        return None
    function, seen, once = entry
    parameters = list(inspect.signature(function).parameters.values())[2:]
    positional = [p for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD]
    named = {p.name.rstrip("_"): p for p in parameters if p.kind == p.KEYWORD_ONLY}
    if len(positional) + len(named) != len(parameters):
        raise ContractError(f"{names[0]}: a translation lists its arguments one by one")
    taken, by_name, refused = [], [], []
    arguments = [a for a in overload._schema.arguments if a.name not in seen | PLACE]
    for argument in arguments:
        if argument.name in named:
            by_name.append((named.pop(argument.name).name, argument.name))
        elif positional and not (argument.kwarg_only and positional[0].name.rstrip("_") != argument.name):
            if not _fits(positional[0].name, argument):
                raise ContractError(f"{names[0]}: `{positional[0].name}` would take `{argument.name}`")
            taken.append(argument.name)
            positional.pop(0)
        elif argument.has_default_value() or argument.name == "generator":
            refused.append(argument.name)
        else:
            raise ContractError(f"{names[0]}: `{argument.name}` is neither taken nor listed as seen")
    missing = [p.name for p in [*positional, *named.values()] if p.default is p.empty]
    if missing:
        raise ContractError(f"{names[0]}: the schema has no argument for {missing}")
    return Contract(function, tuple(taken), tuple(by_name), tuple(refused), once)


def overloads() -> Iterator[torch._ops.OpOverload]:
    """Every overload of PyTorch's that the table has a translation for: functional ones, of tensors that have no named dimensions."""
    for name in sorted(TABLE):
        space, _, rest = name.rpartition("::")
        packet, _, overload = rest.partition(".")
        found = getattr(getattr(torch.ops, space or "aten"), packet, None)
        for one in [overload] if overload else found.overloads() if found is not None else []:
            made = getattr(found, one, None)
            if made is None or made._schema.is_mutable or any(a.is_out for a in made._schema.arguments):
                continue
            text = str(made._schema)
            if "Tensor" in text.split("->")[1] and "Dimname" not in text or "-> ()" in text:
                yield made


def arguments_of(node: Node) -> dict[str, Any]:
    """The arguments of a node by the names of its schema, with defaults where they are left out."""
    schema, found = node.target._schema, {}
    for k, argument in enumerate(schema.arguments):
        if not argument.kwarg_only and k < len(node.args):
            found[argument.name] = node.args[k]
        else:
            found[argument.name] = node.kwargs.get(argument.name, argument.default_value)
    return found


def _is_short(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.dtype in SHORT


class Translator:
    """The state of a translation. Translations are called with it, the node, and the node's arguments."""

    def __init__(self, builder: Builder, compact: bool) -> None:
        self.b, self.compact = builder, compact
        self.values: dict[Node, Any] = {}
        self.node: Node | None = None
        self._in_single = False
        """Whether short floats are taken as float32, so that the result is rounded once."""
        self.whole: dict[str, str] = {}
        """By value as PyTorch has it, the value as an operator gives it: positions within the whole tensor for those within a plane,
        moments of float32 for short floats."""

    def run(self, node: Node) -> None:
        """Writes one node."""
        self.node = node
        if node.target is operator.getitem:
            self.values[node] = self.values[node.args[0]][node.args[1]]
            self._declare(node)
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise self.refusal(getattr(node.target, "__name__", str(node.target)))
        try:
            found = contract(node.target)
        except ContractError as error:
            raise self.refusal(str(error)) from error
        if found is None:
            raise self.refusal(_full_name(node.target)[0])
        arguments = arguments_of(node)
        self._check(node, found, arguments)
        self.b.at(node.name)
        self._in_single = _is_short(node) and found.once(self, node)
        try:
            value = found.function(self, node, *(arguments[a] for a in found.positional), **{p: arguments[a] for p, a in found.named})
        finally:
            single, self._in_single = self._in_single, False
        self.values[node] = self.cast(value, self.dtype(node)) if single else value
        self._declare(node)

    def _check(self, node: Node, found: Contract, arguments: dict[str, Any]) -> None:
        """Refuses arguments that the translation does not take and that have not their defaults."""
        defaults = {a.name: a.default_value for a in node.target._schema.arguments}
        for name in found.refused:
            if arguments[name] != defaults[name]:
                raise self.refusal(f"{_full_name(node.target)[0]} with {name}={arguments[name]!r}")
        if arguments.get("layout") not in (None, torch.strided, int(0)):
            raise self.refusal(f"{_full_name(node.target)[0]} with layout={arguments['layout']!r}")

    def expected(self, value: str, ok: str, dtype: torch.dtype, words: str) -> str:
        """`value`, in a step that fails with these words if an element of `ok` is false."""
        b = self.b
        count = b.node("ReduceSum", self.cast(b.node("Not", ok), torch.int64), keepdims=0)
        place = self.cast(b.node("Greater", count, b.scalar(0, torch.int64)), torch.int64)
        before = b.at(words)
        # One element, so that the place 1 is an error on every device.
        zero = b.node("Gather", b.tensor(torch.zeros(1, dtype=dtype)), place, axis=0)
        b.at(before)
        return b.node("Add", value, zero)

    def refusal(self, what: str) -> UnsupportedOperator:
        """The error that says that `what` has no translation, with the line of the node that is being translated."""
        return UnsupportedOperator(what, line_of_trace(self.node.meta.get("stack_trace")) if self.node else None)

    def _declare(self, node: Node) -> None:
        value, meta = self.values[node], node.meta.get("val")
        if isinstance(value, str) and isinstance(meta, torch.Tensor):
            if meta.dtype not in ONNX_TYPES:
                raise self.refusal(f"{node.target} of {meta.dtype}")
            self.b.declare(value, meta.dtype, meta.shape)

    def value(self, arg: Any, dtype: torch.dtype | None = None) -> str:
        """The value of an operand, with the type `dtype` if one is given. Numbers become constants."""
        if isinstance(arg, Node):
            name, have = self.values[arg], self.meta(arg).dtype
            dtype = dtype or self.dtype(arg)
            return name if have == dtype else self.cast(name, dtype)
        assert dtype is not None, arg
        return self.b.scalar(arg, dtype)

    def rounded(self, node: Node, arg: Any) -> str:
        """The value of an operand, rounded to the type of the result, where that is computed in float32."""
        short = self.meta(node).dtype
        if self.dtype(node) == short:
            return self.value(arg, short)
        if isinstance(arg, Node):
            value = self.values[arg]
            return self.cast(value if self.meta(arg).dtype == short else self.cast(value, short), self.dtype(node))
        return self.value(float(torch.tensor(float(arg), dtype=short)), self.dtype(node))

    def cast(self, value: str, dtype: torch.dtype) -> str:
        """A value of another type."""
        if dtype not in ONNX_TYPES:
            raise self.refusal(f"tensors of {dtype}")
        return self.b.node("Cast", value, to=ONNX_TYPES[dtype])

    def reshape(self, value: str, shape: Sequence[int]) -> str:
        """A view. Extents of 0 are meant."""
        return self.b.node("Reshape", value, self.b.ints(shape), allowzero=1 if 0 in shape else None)

    @staticmethod
    def meta(arg: Node) -> torch.Tensor:
        """The fake tensor of an operand: its shape and type."""
        return arg.meta["val"]

    def dtype(self, arg: Node) -> torch.dtype:
        """The type of an operand; float32 for short floats where a result is rounded once."""
        have = arg.meta["val"].dtype
        return torch.float32 if self._in_single and have in SHORT else have

    @staticmethod
    def shape(arg: Node) -> list[int]:
        return [int(s) for s in arg.meta["val"].shape]
