"""Complex numbers of a traced step, written as pairs of real ones: a graph has no others.

A pair stands in one more dimension, the last one, as `torch.view_as_real` shows it. So views of complex tensors stay views, and a write
into one of them shows in the others. Fourier transforms are products with matrices of cosines and sines, by factors of the length.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.utils._pytree as pytree
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from .errors import CaptureError, UnsupportedOperator, line_of_trace

WIDEST = 128
"""Lengths up to this one are transformed by one matrix, longer ones by their factors, where they have any."""
LONGEST = 2048
"""The longest length without factors, whose matrices take 32 MiB."""


class Pair:
    """A complex tensor. `both` has its real and its imaginary part in the last dimension."""

    def __init__(self, both: Tensor) -> None:
        self.both = both

    @property
    def re(self) -> Tensor:
        return self.both.select(-1, 0)

    @property
    def im(self) -> Tensor:
        return self.both.select(-1, 1)

    @property
    def rank(self) -> int:
        return self.both.dim() - 1


Forms = dict[str, Callable[..., Any]]
_FORMS: Forms = {}
"""By the name of an operator: its form over pairs, with the operator's own arguments. Operators that write take the form without the underscore."""


def _form(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _FORMS.update(dict.fromkeys(names, function))
        return function

    return register


_TURNED = frozenset(("transpose_", "swapaxes_", "t_", "squeeze_", "unsqueeze_"))
"""Operators that change the shape of their operand, and no element."""


def is_complex(node: torch.fx.Node) -> bool:
    """Whether an operator of a trace reads or writes complex numbers."""
    if node.target is torch.ops.aten._neg_view.default:
        return True
    values = [node.meta.get("val"), *(n.meta.get("val") for n in node.all_input_nodes)]
    return any(isinstance(v, Tensor) and v.is_complex() for v in pytree.tree_leaves(values))


def shown(t: Tensor) -> Tensor:
    """The numbers of a complex tensor as pairs, in its own memory where that holds them."""
    return torch.view_as_real(t.resolve_conj().resolve_neg()) if t.is_complex() else t


def run(node: torch.fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """The result of an operator of which an operand or a result is complex. `name` is its own, or that of one that gives the same.

    Raises:
        UnsupportedOperator: It has no form over pairs.
    """
    line = line_of_trace(node.stack_trace)
    writes = name.endswith("_") and not name.endswith("__")
    form = _FORMS.get(name.rstrip("_") if writes else name)
    result = form(*args, **kwargs) if form and _takes(form, args, kwargs) else NotImplemented
    if result is NotImplemented:
        raise UnsupportedOperator(f"{node.target} of complex numbers", line)
    if writes:
        result = _written(args[0], result, name in _TURNED)
    if isinstance(result, complex):
        return result
    found, expected = ([x for x in pytree.tree_leaves(v) if isinstance(x, (Tensor, Pair))] for v in (result, node.meta["val"]))
    if len(found) != len(expected) or not all(map(_is_like, found, expected)):
        raise UnsupportedOperator(f"{node.target} of complex numbers of these shapes and types", line)
    return result


def _takes(form: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        inspect.signature(form).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _written(into: Any, result: Any, turned: bool) -> Any:
    """The operand that `result` is written into; if `turned`, it takes over its shape."""
    if not isinstance(into, Pair):
        return NotImplemented if isinstance(result, Pair) else into.copy_(result)
    if turned:
        into.both = result.both
    else:
        into.both.copy_(_pair(result).both)
    return into


def _is_like(x: Tensor | Pair, expected: Tensor) -> bool:
    """Whether a result has the shape and the type of PyTorch's. Parts in double precision become single where PyTorch's are."""
    if isinstance(x, Tensor):
        return x.shape == expected.shape and x.dtype == expected.dtype
    real = expected.dtype.to_real()
    if x.both.dtype == torch.float64 and real == torch.float32:
        x.both = x.both.to(real)
    return expected.is_complex() and x.both.shape[:-1] == expected.shape and x.both.dtype == real


def refuse_writes_beside_conjugates(graph: torch.fx.Graph) -> None:
    """Refuses writes into a tensor of which a conjugate, a view in PyTorch and a copy here, is read later, and writes into a conjugate."""
    root: dict[torch.fx.Node, torch.fx.Node] = {}
    conjugates: list[tuple[torch.fx.Node, set[torch.fx.Node]]] = []
    for node in graph.nodes:
        of = node.args[0] if node.args and isinstance(node.args[0], torch.fx.Node) else None
        target = node.target if isinstance(node.target, torch._ops.OpOverload) else None
        is_write = target is not None and target._schema.is_mutable
        root[node] = root[of] if of is not None and target is not None and (target.is_view or is_write) else node
        if target in (torch.ops.aten._conj.default, torch.ops.aten._neg_view.default):
            conjugates.append((root[node], set()))
        if is_write and of is not None and _is_conjugated(of):
            raise UnsupportedOperator(f"{target} into a conjugate of complex numbers", line_of_trace(node.stack_trace))
        for of_root, written in conjugates:
            if is_write and root[node] is of_root:
                written.add(node)
            elif written and any(root[n] is of_root and _is_conjugated(n) for n in node.all_input_nodes):
                raise UnsupportedOperator(f"{next(iter(written)).target} of complex numbers beside their conjugate", line_of_trace(node.stack_trace))


def _is_conjugated(node: torch.fx.Node) -> bool:
    while isinstance(node.target, torch._ops.OpOverload) and node.target.is_view:
        if node.target in (torch.ops.aten._conj.default, torch.ops.aten._neg_view.default):
            return True
        node = node.args[0]  # type: ignore[assignment]
    return False


def _pair(x: Any, like: Tensor | None = None) -> Pair:
    """`x` as a complex tensor. A number has the type of `like`."""
    if isinstance(x, Pair):
        return x
    if isinstance(x, Tensor):
        return Pair(torch.stack([x, torch.zeros_like(x)], -1))
    assert like is not None
    number = complex(x)
    return Pair(torch.stack([torch.full((), part, dtype=like.dtype) for part in (number.real, number.imag)], -1))


def _pairs(a: Any, b: Any) -> tuple[Pair, Pair]:
    """Two operands of one rank, so that their last dimensions meet."""
    like = next(x.both for x in (a, b) if isinstance(x, Pair)) if isinstance(a, Pair) or isinstance(b, Pair) else None
    x, y = _pair(a, _like(a, b, like)), _pair(b, _like(a, b, like))
    rank = max(x.rank, y.rank)
    return _raised(x, rank), _raised(y, rank)


def _like(a: Any, b: Any, known: Tensor | None) -> Tensor | None:
    if known is not None:
        return known
    return next((x if x.is_floating_point() else torch.empty(()) for x in (a, b) if isinstance(x, Tensor)), None)


def _raised(x: Pair, rank: int) -> Pair:
    both = x.both
    return Pair(both.reshape([1] * (rank - x.rank) + list(both.shape))) if x.rank < rank else x


def _of(re: Tensor, im: Tensor) -> Pair:
    return Pair(torch.stack([re, im], -1))


def _at(x: Pair, dim: int) -> int:
    """A dimension, counted from the front."""
    return dim + x.rank if dim < 0 else dim


def _dims(x: Pair, dims: int | list[int] | None) -> list[int]:
    if dims is None or dims == []:
        return list(range(x.rank))
    return [_at(x, d) for d in ([dims] if isinstance(dims, int) else dims)]


def _scaled(x: Pair, factor: Any, divide: bool = False) -> Pair:
    """The product with real numbers, or the quotient by them."""
    if isinstance(factor, Tensor):
        factor = factor.unsqueeze(-1)
        x = _raised(x, factor.dim() - 1)
        if factor.dim() - 1 < x.rank:
            factor = factor.reshape([1] * (x.rank - factor.dim() + 1) + list(factor.shape))
    return Pair(x.both / factor if divide else x.both * factor)


# Parts


@_form("view_as_complex")
def _view_as_complex(x: Tensor) -> Pair:
    return Pair(x)


@_form("view_as_real")
def _view_as_real(x: Pair) -> Tensor:
    return x.both


@_form("real")
def _real(x: Pair) -> Tensor:
    return x.re


@_form("imag")
def _imag(x: Pair) -> Tensor:
    return x.im


@_form("complex")
def _complex(re: Tensor, im: Tensor) -> Pair:
    return _of(*torch.broadcast_tensors(re, im))


@_form("polar")
def _polar(length: Tensor, angle: Tensor) -> Pair:
    return _of(length * angle.cos(), length * angle.sin())


@_form("_conj", "conj", "conj_physical", "_conj_physical")
def _conj(x: Any) -> Any:
    return _of(x.re, -x.im) if isinstance(x, Pair) else complex(x).conjugate()


@_form("abs")
def _abs(x: Pair) -> Tensor:
    """By the larger part, whose square would be too large or too small where the result is not."""
    size = x.both.abs()
    most = size.amax(-1)
    unit = size / torch.where(most == 0, 1.0, most).unsqueeze(-1)
    return most * (unit * unit).sum(-1).sqrt()


@_form("angle")
def _angle(x: Pair) -> Tensor:
    return torch.atan2(x.im, x.re)


@_form("sgn")
def _sgn(x: Pair) -> Pair:
    size = _abs(x)
    return _scaled(x, torch.where(size == 0, 1.0, size), divide=True)


@_form("linalg_vector_norm")
def _linalg_vector_norm(x: Pair, *args: Any, **kwargs: Any) -> Tensor:
    return torch.ops.aten.linalg_vector_norm(_abs(x), *args, **kwargs)


# Arithmetic


@_form("mul")
def _mul(a: Any, b: Any) -> Pair:
    for x, y in ((a, b), (b, a)):
        if isinstance(x, Pair) and not isinstance(y, (Pair, complex)):
            return _scaled(x, y)
    x, y = _pairs(a, b)
    return _of(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


@_form("div")
def _div(a: Any, b: Any, rounding_mode: str | None = None) -> Any:
    if rounding_mode is not None:
        return NotImplemented
    if isinstance(a, Pair) and not isinstance(b, (Pair, complex)):
        return _scaled(a, b, divide=True)
    x, y = _pairs(a, b)
    most = y.both.abs().amax(-1)
    unit = _scaled(y, most, divide=True)
    return _scaled(_mul(x, _conj(unit)), (unit.both * unit.both).sum(-1) * most, divide=True)


@_form("reciprocal")
def _reciprocal(x: Pair) -> Pair:
    return _div(1.0, x)  # type: ignore[no-any-return]


@_form("add")
def _add(a: Any, b: Any, alpha: Any = 1) -> Pair:
    x, y = _pairs(a, b if alpha == 1 else _mul(_pair(b, _like(a, b, None)), alpha))
    return Pair(x.both + y.both)


@_form("sub")
def _sub(a: Any, b: Any, alpha: Any = 1) -> Pair:
    x, y = _pairs(a, b if alpha == 1 else _mul(_pair(b, _like(a, b, None)), alpha))
    return Pair(x.both - y.both)


@_form("rsub")
def _rsub(a: Any, b: Any, alpha: Any = 1) -> Pair:
    return _sub(b, a) if alpha == 1 else _sub(b, _mul(_pair(a), alpha))


@_form("neg", "_neg_view")
def _neg(x: Any) -> Any:
    return Pair(-x.both) if isinstance(x, Pair) else -x


@_form("exp")
def _exp(x: Pair) -> Pair:
    return _polar(x.re.exp(), x.im)


@_form("log")
def _log(x: Pair) -> Pair:
    return _of(_abs(x).log(), _angle(x))


@_form("sqrt")
def _sqrt(x: Pair) -> Pair:
    return _polar(_abs(x).sqrt(), _angle(x) / 2)


@_form("eq")
def _eq(a: Any, b: Any) -> Tensor:
    x, y = _pairs(a, b)
    return (x.re == y.re) & (x.im == y.im)


@_form("ne")
def _ne(a: Any, b: Any) -> Tensor:
    return ~_eq(a, b)


@_form("pow")
def _pow(x: Any, exponent: Any) -> Any:
    """Whole powers, as products."""
    if not isinstance(x, Pair) or not isinstance(exponent, (int, float)) or exponent != int(exponent) or not 1 <= exponent <= 8:
        return NotImplemented
    return functools.reduce(_mul, [x] * int(exponent))


@_form("mm", "bmm", "mv", "dot")
def _mm(a: Any, b: Any) -> Pair:
    x, y = _pair(a), _pair(b)
    return _of(x.re @ y.re - x.im @ y.im, x.re @ y.im + x.im @ y.re)


# Reductions


def _reduced(x: Pair, reduce: Callable[..., Tensor], dims: Any, keepdim: bool, dtype: torch.dtype | None) -> Any:
    if dtype is not None and dtype.to_real() != x.both.dtype:
        return NotImplemented
    found = _dims(x, dims)
    return Pair(reduce(x.both, found, keepdim) if found else x.both)


@_form("sum")
def _sum(x: Pair, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Any:
    return _reduced(x, torch.sum, dim, keepdim, dtype)


@_form("mean")
def _mean(x: Pair, dim: Any = None, keepdim: bool = False, dtype: torch.dtype | None = None) -> Any:
    return _reduced(x, torch.mean, dim, keepdim, dtype)


@_form("cumsum")
def _cumsum(x: Pair, dim: int) -> Pair:
    return Pair(x.both.cumsum(_at(x, dim)))


# Views and movement


for _name in ("clone", "detach", "alias", "contiguous", "lift_fresh", "lift_fresh_copy", "resolve_conj", "resolve_neg", "zeros_like", "empty_like"):
    _FORMS[_name] = functools.partial(
        lambda packet, x, *, dtype=None, memory_format=None, **_: (
            Pair(packet(x.both)) if isinstance(x, Pair) and dtype in (None, x.both.dtype.to_complex()) else NotImplemented
        ),
        getattr(torch.ops.aten, _name),
    )
for _name in ("view", "reshape", "_unsafe_view", "expand"):
    _FORMS[_name] = functools.partial(
        lambda packet, x, size: Pair(packet(x.both, [*size, 2])) if isinstance(size, (list, tuple)) else NotImplemented,
        getattr(torch.ops.aten, _name),
    )
for _name in ("select", "slice", "index_select", "split", "split_with_sizes", "unbind"):
    _AT = {"index_select": 0, "select": 0, "slice": 0, "unbind": 0, "split": 1, "split_with_sizes": 1}[_name]

    def _moved(packet: Any, at: int, x: Pair, *args: Any, dim: int | None = None) -> Any:
        given = list(args)
        if len(given) <= at:
            given.append(0 if dim is None else dim)
        given[at] = _at(x, given[at])
        return pytree.tree_map_only(Tensor, Pair, packet(x.both, *given))

    _FORMS[_name] = functools.partial(_moved, getattr(torch.ops.aten, _name), _AT)


@_form("view_copy")
def _view_copy(x: Pair, size: list[int]) -> Pair:
    return Pair(x.both.reshape([*size, 2]))


@_form("permute")
def _permute(x: Pair, dims: list[int]) -> Pair:
    return Pair(x.both.permute([*_dims(x, dims), x.rank] if x.rank else [0]))


@_form("transpose", "swapaxes")
def _transpose(x: Pair, a: int, b: int) -> Pair:
    return Pair(x.both.transpose(_at(x, a), _at(x, b)) if x.rank else x.both)


@_form("t")
def _t(x: Pair) -> Pair:
    return Pair(x.both.transpose(0, 1) if x.rank == 2 else x.both)


@_form("unsqueeze")
def _unsqueeze(x: Pair, dim: int) -> Pair:
    return Pair(x.both.unsqueeze(dim + x.rank + 1 if dim < 0 else dim))


@_form("squeeze")
def _squeeze(x: Pair, dim: Any = None) -> Pair:
    extents = x.both.shape
    return Pair(x.both.squeeze([d for d in _dims(x, dim) if x.rank and extents[d] == 1]))


@_form("flip")
def _flip(x: Pair, dims: list[int]) -> Pair:
    return Pair(x.both.flip([_at(x, d) for d in dims]))


@_form("roll")
def _roll(x: Pair, shifts: Any, dims: Any = None) -> Any:
    return Pair(x.both.roll(shifts, _dims(x, dims))) if dims else NotImplemented


@_form("repeat")
def _repeat(x: Pair, repeats: list[int]) -> Pair:
    return Pair(x.both.repeat([*repeats, 1]))


@_form("cat")
def _cat(tensors: list[Any], dim: int = 0) -> Pair:
    parts = [_pair(t) for t in tensors]
    return Pair(torch.cat([p.both for p in parts], _at(parts[0], dim)))


@_form("stack")
def _stack(tensors: list[Any], dim: int = 0) -> Pair:
    parts = [_pair(t) for t in tensors]
    return Pair(torch.stack([p.both for p in parts], dim + parts[0].rank + 1 if dim < 0 else dim))


@_form("index")
def _index(x: Pair, indices: list[Tensor | None]) -> Pair:
    return Pair(torch.ops.aten.index.Tensor(x.both, indices))


@_form("index_put")
def _index_put(x: Pair, indices: list[Tensor | None], values: Any, accumulate: bool = False) -> Pair:
    return Pair(torch.ops.aten.index_put(x.both, indices, _pair(values).both, accumulate))


@_form("gather")
def _gather(x: Pair, dim: int, index: Tensor) -> Pair:
    return Pair(x.both.gather(_at(x, dim), index.unsqueeze(-1).expand([*index.shape, 2])))


@_form("constant_pad_nd")
def _constant_pad_nd(x: Pair, pad: list[int], value: Any = 0) -> Any:
    return Pair(torch.ops.aten.constant_pad_nd(x.both, [0, 0, *pad], 0.0)) if value == 0 else NotImplemented


@_form("select_backward")
def _select_backward(x: Pair, sizes: list[int], dim: int, index: int) -> Pair:
    return Pair(torch.ops.aten.select_backward(x.both, [*sizes, 2], dim + len(sizes) if dim < 0 else dim, index))


@_form("slice_backward")
def _slice_backward(x: Pair, sizes: list[int], dim: int, start: int, end: int, step: int) -> Pair:
    return Pair(torch.ops.aten.slice_backward(x.both, [*sizes, 2], dim + len(sizes) if dim < 0 else dim, start, end, step))


@_form("where")
def _where(condition: Tensor, a: Any, b: Any) -> Pair:
    x, y = _pairs(a, b)
    return Pair(torch.where(condition.unsqueeze(-1), x.both, y.both))


@_form("masked_fill")
def _masked_fill(x: Pair, mask: Tensor, value: Any) -> Pair:
    return _where(mask, value, x)


# Made anew


def _filled(size: list[int], value: Any, dtype: torch.dtype) -> Pair:
    number = complex(value)
    return _of(*(torch.full(size, part, dtype=dtype.to_real()) for part in (number.real, number.imag)))


@_form("zeros", "empty")
def _zeros(size: list[int], *, dtype: torch.dtype, memory_format: Any = None, **_: Any) -> Pair:
    return _filled(size, 0, dtype)


@_form("ones")
def _ones(size: list[int], *, dtype: torch.dtype, **_: Any) -> Pair:
    return _filled(size, 1, dtype)


@_form("full")
def _full(size: list[int], value: Any, *, dtype: torch.dtype = torch.complex64, **_: Any) -> Pair:
    return _filled(size, value, dtype)


@_form("ones_like")
def _ones_like(x: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    return _full_like(x, 1, dtype=dtype)


@_form("full_like", "fill")
def _full_like(x: Any, value: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    if isinstance(value, (Pair, Tensor)):
        return Pair(_pair(value).both.expand_as(x.both))
    if isinstance(x, Pair) and dtype in (None, x.both.dtype.to_complex()):
        return _filled(list(x.both.shape[:-1]), value, x.both.dtype)
    return NotImplemented


@_form("new_zeros", "new_empty")
def _new_zeros(x: Any, size: list[int], *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    return _new_full(x, size, 0, dtype=dtype)


@_form("new_empty_strided")
def _new_empty_strided(x: Any, size: list[int], stride: list[int], **options: Any) -> Any:
    return _new_full(x, size, 0, **options)


@_form("empty_strided")
def _empty_strided(size: list[int], stride: list[int], *, dtype: torch.dtype, **_: Any) -> Pair:
    return _filled(size, 0, dtype)


@_form("scalar_tensor")
def _scalar_tensor(value: Any, *, dtype: torch.dtype, **_: Any) -> Pair:
    return _filled([], value, dtype)


@_form("new_full")
def _new_full(x: Any, size: list[int], value: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    if dtype is not None and not dtype.is_complex:
        return torch.full(size, value, dtype=dtype)
    return _filled(size, value, dtype or x.both.dtype)


@_form("zero")
def _zero(x: Pair) -> Pair:
    return Pair(torch.zeros_like(x.both))


@_form("copy")
def _copy(x: Any, y: Any, non_blocking: bool = False) -> Any:
    if isinstance(x, Pair):
        return Pair(_pair(y).both.to(x.both.dtype).expand_as(x.both))
    return y.re.to(x.dtype).expand_as(x)


@_form("_to_copy")
def _to_copy(x: Any, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
    if dtype is None or dtype.is_complex:
        both = _pair(x).both
        return Pair(both.clone() if dtype is None else both.to(dtype.to_real()))
    return x.re.to(dtype)


# Fourier transforms


def _constant(values: np.ndarray[Any, Any], like: Tensor) -> Tensor:
    with _disable_current_modes():
        return torch.from_numpy(values.astype(np.float64 if like.dtype == torch.float64 else np.float32))


def _turns(rows: int, columns: int, length: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the products of rows and columns, in turns of one `length`th."""
    angle = np.outer(np.arange(rows), np.arange(columns)) % length * (2 * math.pi / length)
    return _constant(np.cos(angle), like), _constant(np.sin(angle), like)


def _transformed(re: Tensor, im: Tensor | None, sign: int) -> tuple[Tensor, Tensor]:
    """The transform along the last dimension, without a factor. `sign` is that of the exponent."""
    length = re.shape[-1]
    first = next((d for d in range(math.isqrt(length), 1, -1) if length % d == 0), 1)
    if length <= WIDEST or first == 1:
        if length > LONGEST:
            raise CaptureError(f"a Fourier transform of length {length}, which has no factors, has no translation; pad it to a length that has some")
        cos, sin = _turns(length, length, length, re)
        if im is None:
            return re @ cos, sign * (re @ sin)
        return re @ cos - sign * (im @ sin), sign * (re @ sin) + im @ cos
    second = length // first
    # Element j1 * second + j2 goes by j1 first, into k1 + first * k2.
    split = [*re.shape[:-1], first, second]
    parts = [None if x is None else x.reshape(split).transpose(-1, -2) for x in (re, im)]
    re, im = (x.transpose(-1, -2) for x in _transformed(parts[0], parts[1], sign))  # type: ignore[arg-type]
    cos, sin = _turns(first, second, length, re)
    re, im = re * cos - sign * (im * sin), sign * (re * sin) + im * cos
    re, im = _transformed(re, im, sign)
    return tuple(x.transpose(-1, -2).reshape([*x.shape[:-2], length]) for x in (re, im))  # type: ignore[return-value]


def _along(x: Pair | Tensor, dim: int, sign: int) -> Pair:
    """The transform of complex or real numbers along one dimension."""
    parts = [x.re, x.im] if isinstance(x, Pair) else [x, None]
    # A vector as a row: its product with a matrix would be no product of matrices.
    rows = [None if p is None else p.unsqueeze(0).transpose(dim + 1, -1) for p in parts]
    re, im = _transformed(rows[0], rows[1], sign)  # type: ignore[arg-type]
    return _of(*(r.transpose(dim + 1, -1).squeeze(0) for r in (re, im)))


def _normalized(x: Any, count: int, mode: int) -> Any:
    if mode == 0:
        return x
    factor = 1 / math.sqrt(count) if mode == 1 else 1 / count
    return x * factor if isinstance(x, Tensor) else _scaled(x, factor)


@_form("_fft_c2c")
def _fft_c2c(x: Pair, dim: list[int], normalization: int, forward: bool) -> Any:
    count, axes = 1, _dims(x, dim) if dim else []
    for d in axes:
        count *= x.both.shape[d]
        x = _along(x, d, -1 if forward else 1)
    return _normalized(x, count, normalization)


@_form("_fft_r2c")
def _fft_r2c(x: Tensor, dim: list[int], normalization: int, onesided: bool) -> Any:
    axes = [d + x.dim() if d < 0 else d for d in dim]
    count = math.prod(x.shape[d] for d in axes)
    result = _along(x, axes[-1], -1)
    if onesided:
        result = Pair(result.both.narrow(axes[-1], 0, x.shape[axes[-1]] // 2 + 1))
    return _normalized(_fft_c2c(result, axes[:-1], 0, True), count, normalization)


@_form("_fft_c2r")
def _fft_c2r(x: Pair, dim: list[int], normalization: int, last_dim_size: int) -> Any:
    """The second half is the first one's conjugate. Imaginary parts of numbers that stand for themselves have no effect."""
    *others, last = _dims(x, dim)
    x = _fft_c2c(x, others, 0, False)
    count = math.prod([last_dim_size, *(x.both.shape[d] for d in others)])
    half = last_dim_size // 2 + 1
    first = x.both.narrow(last, 0, half)
    mirrored = _conj(Pair(x.both.narrow(last, 1, last_dim_size - half).flip([last]))) if last_dim_size > half else None
    whole = Pair(first if mirrored is None else torch.cat([first, mirrored.both], last))
    return _normalized(_along(whole, last, 1).re, count, normalization)
