"""Elementwise operators."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from .builder import MICROSOFT, ONNX_TYPES
from .registry import SHORT, TABLE, Once, Translator, arguments_of, op


def _unary(name: str, onnx: str) -> None:
    def translation(t: Translator, n: Node, x: Node) -> str:
        return t.b.node(onnx, t.value(x, t.dtype(n)))

    op(name)(translation)


for _name, _onnx in {
    "neg": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs", "sin": "Sin", "cos": "Cos", "tan": "Tan", "tanh": "Tanh",
    "sigmoid": "Sigmoid", "erf": "Erf", "reciprocal": "Reciprocal",
    "relu": "Relu", "sinh": "Sinh", "cosh": "Cosh", "asin": "Asin", "acos": "Acos", "atan": "Atan", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "hardswish": "HardSwish", "mish": "Mish",
}.items():  # fmt: skip
    _unary(_name, _onnx)


@op("sign")
def sign(t: Translator, n: Node, x: Node) -> str:
    """PyTorch's sign of NaN is 0; that of ONNX is NaN."""
    v = t.value(x)
    of_number = t.b.node("Sign", v)
    if not t.dtype(x).is_floating_point:
        return of_number
    return t.b.node("Where", t.b.node("IsNaN", v), t.value(0.0, t.dtype(x)), of_number)


@op("round.default", "floor", "ceil", "trunc")
def rounded(t: Translator, n: Node, x: Node) -> str:
    name, v = n.target._schema.name.removeprefix("aten::"), t.value(x)
    if not t.dtype(n).is_floating_point:
        return v
    return _truncated(t, v) if name == "trunc" else t.b.node(name.capitalize(), v)


def _truncated(t: Translator, value: str) -> str:
    return t.b.node("Mul", t.b.node("Sign", value), t.b.node("Floor", t.b.node("Abs", value)))


@op("rsqrt", once=True)
def rsqrt(t: Translator, n: Node, x: Node) -> str:
    return t.b.node("Reciprocal", t.b.node("Sqrt", t.value(x, t.dtype(n))))


@op("log2", "log10", once=True)
def log_of_base(t: Translator, n: Node, x: Node) -> str:
    base = math.log(2 if "log2" in str(n.target) else 10)
    return t.b.node("Div", t.b.node("Log", t.value(x, t.dtype(n))), t.value(base, t.dtype(n)))


@op("log1p", once=True)
def log1p(t: Translator, n: Node, x: Node) -> str:
    """The logarithm of u = 1 + x, corrected by the part of x that the sum has lost.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, problem 1.5.
    """
    d, b = t.dtype(n), t.b
    v, one = t.value(x, d), t.value(1.0, d)
    u = b.node("Add", one, v)
    log, lost = b.node("Log", u), b.node("Sub", u, one)
    exact = b.node("Mul", log, b.node("Div", v, lost))
    near = b.node("Where", b.node("Equal", u, one), v, exact)
    return b.node("Where", b.node("Less", v, one), near, log)


@op("expm1", once=True)
def expm1(t: Translator, n: Node, x: Node) -> str:
    """u - 1 of the exponential u, corrected by its rounding error where x is small.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 1.14.1.
    """
    d, b = t.dtype(n), t.b
    v, one = t.value(x, d), t.value(1.0, d)
    u = b.node("Exp", v)
    less = b.node("Sub", u, one)
    exact = b.node("Mul", less, b.node("Div", v, b.node("Log", u)))
    near = b.node("Where", b.node("Equal", u, one), v, exact)
    return b.node("Where", b.node("Less", b.node("Abs", v), one), near, less)


def _binary(name: str, onnx: str, once: bool | Once = False) -> None:
    def translation(t: Translator, n: Node, a: Any, b: Any) -> str:
        d = t.dtype(n)
        name = onnx if d != torch.bool else "Or" if onnx == "Max" else "And"
        return t.b.node(name, t.value(a, d), t.value(b, d))

    op(name, once=once)(translation)


for _name, _onnx in {"maximum": "Max", "minimum": "Min"}.items():
    _binary(_name, _onnx)


def _by_number(t: Translator, n: Node) -> bool:
    """Whether a short float is multiplied or divided by a number that is none: PyTorch takes the number in single precision."""
    b, d = n.args[1], t.dtype(n)
    if isinstance(b, Node):
        return not t.shape(b) and t.dtype(b) not in SHORT and t.dtype(b).is_floating_point
    return float(torch.tensor(float(b), dtype=d)) != b


_binary("mul", "Mul", _by_number)


def _scaled(t: Translator, value: str, alpha: float, dtype: torch.dtype) -> str:
    return value if alpha == 1 else t.b.node("Mul", value, t.value(alpha, dtype))


def _has_factor(t: Translator, n: Node) -> bool:
    return arguments_of(n)["alpha"] != 1


@op("add", once=_has_factor)
def add(t: Translator, n: Node, a: Any, b: Any, *, alpha: float = 1) -> str:
    if t.dtype(n) == torch.bool:
        return t.b.node("Or", t.value(a, torch.bool), t.value(b, torch.bool))
    return _sum(t, n, "Add", a, b, alpha)


@op("sub", once=_has_factor)
def sub(t: Translator, n: Node, a: Any, b: Any, *, alpha: float = 1) -> str:
    return _sum(t, n, "Sub", a, b, alpha)


@op("rsub", once=_has_factor)
def rsub(t: Translator, n: Node, a: Any, b: Any, alpha: float = 1) -> str:
    return _sum(t, n, "Sub", b, a, alpha)


def _sum(t: Translator, n: Node, onnx: str, a: Any, b: Any, alpha: float) -> str:
    """A sum. Beside short floats, PyTorch rounds the numbers in it to their type first, other than those of a product."""
    term = t.rounded(n, b)
    return t.b.node(onnx, t.rounded(n, a), term if alpha == 1 else t.b.node("Mul", term, t.rounded(n, alpha)))


@op("div", once=lambda t, n: n.kwargs.get("rounding_mode") is not None or _by_number(t, n))
def div(t: Translator, n: Node, a: Any, b: Any, *, rounding_mode: str | None = None) -> str:
    d = t.dtype(n)
    if rounding_mode is None:
        return t.b.node("Div", t.value(a, d), t.value(b, d))
    x, y = t.rounded(n, a), t.rounded(n, b)
    if rounding_mode == "floor":
        return _floor_divided(t, x, y, d)
    q = t.b.node("Div", x, y)
    return _truncated(t, q) if d.is_floating_point else q


@op("floor_divide", once=True)
def floor_divide(t: Translator, n: Node, a: Any, b: Any) -> str:
    return _floor_divided(t, t.rounded(n, a), t.rounded(n, b), t.dtype(n))


def _floor_divided(t: Translator, x: str, y: str, d: torch.dtype) -> str:
    """The quotient without the remainder: the quotient of 1 and 0.1 is 9, as in Python."""
    b = t.b
    whole = b.node("Div", b.node("Sub", x, _modulo(t, x, y, d)), y)
    if not d.is_floating_point:
        return whole
    near = b.node("Floor", b.node("Add", whole, t.value(0.5, d)))
    return b.node("Where", b.node("Equal", y, t.value(0.0, d)), b.node("Div", x, y), near)


def _modulo(t: Translator, x: str, y: str, d: torch.dtype) -> str:
    """The remainder of a division, with the sign of the divisor."""
    b = t.b
    if not d.is_floating_point:
        return b.node("Mod", x, y)
    rest, zero = b.node("Mod", x, y, fmod=1), t.value(0.0, d)
    other = b.node("Xor", b.node("Less", rest, zero), b.node("Less", y, zero))
    moved = b.node("And", other, b.node("Not", b.node("Equal", rest, zero)))
    return b.node("Where", moved, b.node("Add", rest, y), rest)


@op("remainder")
def remainder(t: Translator, n: Node, a: Any, b: Any) -> str:
    d = t.dtype(n)
    return _modulo(t, t.value(a, d), t.value(b, d), d)


@op("fmod")
def fmod(t: Translator, n: Node, a: Any, b: Any) -> str:
    return t.b.node("Mod", t.value(a, t.dtype(n)), t.value(b, t.dtype(n)), fmod=1)


@op("pow", once=lambda t, n: n.args[1] == -0.5 or n.args[1] in (3, -2) and t.dtype(n) == torch.float16)
def power(t: Translator, n: Node, a: Any, b: Any) -> str:
    d = t.dtype(n)
    x = t.value(a, d)
    if b == 1:
        return x
    if b in (2, -2):
        square = t.b.node("Mul", x, x)
        return square if b == 2 else t.b.node("Reciprocal", square)
    if b == 3:
        return t.b.node("Mul", t.b.node("Mul", x, x), x)
    if b == 0.5:
        return t.b.node("Sqrt", x)
    if b in (-1, -0.5):
        return t.b.node("Reciprocal", x if b == -1 else t.b.node("Sqrt", x))
    return t.b.node("Pow", x, t.value(b, d))


@op("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar")
def where(t: Translator, n: Node, c: Node, a: Any, b: Any) -> str:
    return t.b.node("Where", t.value(c, torch.bool), t.value(a, t.dtype(n)), t.value(b, t.dtype(n)))


@op("masked_fill")
def masked_fill(t: Translator, n: Node, x: Node, mask: Node, value: Any) -> str:
    return t.b.node("Where", t.value(mask, torch.bool), t.value(value, t.dtype(n)), t.value(x))


@op("clamp", "clip")
def clamp(t: Translator, n: Node, x: Node, low: Any = None, high: Any = None) -> str:
    d = t.dtype(n)
    v = t.value(x, d)
    # A Clip without a bound has the largest float for it, which would replace an infinity.
    if not any(bound is None or isinstance(bound, Node) for bound in (low, high)):
        return t.b.node("Clip", v, t.value(low, d), t.value(high, d))
    v = v if low is None else t.b.node("Max", v, t.value(low, d))
    return v if high is None else t.b.node("Min", v, t.value(high, d))


@op("hardtanh")
def hardtanh(t: Translator, n: Node, x: Node, low: float = -1, high: float = 1) -> str:
    d = t.dtype(n)
    return t.b.node("Clip", t.value(x), t.value(low, d), t.value(high, d))


def _compare(name: str, onnx: str, negate: bool = False) -> None:
    def translation(t: Translator, n: Node, a: Node, b: Any) -> str:
        d = torch.result_type(t.meta(a), t.meta(b) if isinstance(b, Node) else b)
        if d == torch.bool and onnx != "Equal":
            d = torch.int32
        v = t.b.node(onnx, t.value(a, d), t.value(b, d))
        return t.b.node("Not", v) if negate else v

    op(name)(translation)


for _name, _onnx in {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}.items():
    _compare(_name, _onnx)
_compare("ne", "Equal", negate=True)


def _logical(name: str, on_bool: str, on_int: str | None) -> None:
    def translation(t: Translator, n: Node, a: Any, b: Any) -> str:
        d = t.dtype(n)
        return t.b.node(on_bool if d == torch.bool or on_int is None else on_int, t.value(a, d), t.value(b, d))

    op(name)(translation)


@op("logical_not", "bitwise_not")
def negation(t: Translator, n: Node, x: Node) -> str:
    d = t.dtype(n)
    return t.b.node("Not" if d == torch.bool else "BitwiseNot", t.value(x, d))


@op("bitwise_and.Scalar", "__and__.Scalar")
def bitwise_and_scalar(t: Translator, n: Node, x: Node, mask: Any) -> str:
    d = t.dtype(n)
    if d == torch.bool:
        return t.value(x) if mask else t.b.node("Expand", t.value(False, d), t.b.ints(t.shape(n)))
    if mask >= 0 and mask & (mask + 1) == 0:
        # The lowest bits are the remainder of a division, also for negative numbers.
        return t.b.node("Mod", t.value(x, d), t.value(mask + 1, d))
    return t.b.node("BitwiseAnd", t.value(x, d), t.value(mask, d))


for _name in ("and", "or", "xor"):
    _logical(f"logical_{_name}", _name.capitalize(), None)
    _logical(f"bitwise_{_name}", _name.capitalize(), f"Bitwise{_name.capitalize()}")


@op("isnan", "isinf")
def unusual(t: Translator, n: Node, x: Node) -> str:
    if not t.dtype(x).is_floating_point:
        return t.b.node("Expand", t.value(False, torch.bool), t.b.ints(t.shape(n)))
    return t.b.node("IsNaN" if "isnan" in str(n.target) else "IsInf", t.value(x))


def _is_negative(t: Translator, v: str, d: torch.dtype) -> str:
    """Whether the sign is set, of zero, too."""
    zero = t.value(0.0, d)
    return t.b.node("Or", t.b.node("Less", v, zero), t.b.node("Less", t.b.node("Reciprocal", v), zero))


@op("atan2", once=True)
def atan2(t: Translator, n: Node, y: Node, x: Node) -> str:
    """The angle by the arc tangent of a quotient of at most 1; zeros and infinities have their angles by their signs."""
    d, b = t.dtype(n), t.b
    vy, vx = t.value(y, d), t.value(x, d)
    ay, ax, zero, one = b.node("Abs", vy), b.node("Abs", vx), t.value(0.0, d), t.value(1.0, d)
    steep = b.node("Greater", ay, ax)
    small, large = b.node("Where", steep, ax, ay), b.node("Where", steep, ay, ax)
    quotient = b.node("Where", b.node("Equal", small, large), one, b.node("Div", small, large))
    angle = b.node("Atan", b.node("Where", b.node("Equal", small, zero), zero, quotient))
    angle = b.node("Where", steep, b.node("Sub", t.value(math.pi / 2, d), angle), angle)
    angle = b.node("Where", _is_negative(t, vx, d), b.node("Sub", t.value(math.pi, d), angle), angle)
    angle = b.node("Where", _is_negative(t, vy, d), b.node("Neg", angle), angle)
    return b.node("Where", b.node("Or", b.node("IsNaN", vy), b.node("IsNaN", vx)), b.node("Add", vy, vx), angle)


@op("_to_copy", "prims::convert_element_type", seen="dtype")
def to_copy(t: Translator, n: Node, x: Node) -> str:
    return t.value(x, t.dtype(n))


@op("clone", "alias", "detach", "detach_", "lift_fresh_copy", "lift_fresh", "contiguous", "positive", "prims::view_of",
    "prims::copy_strided", seen="stride")  # fmt: skip
def identity(t: Translator, n: Node, x: Node) -> str:
    return t.value(x)


@op("silu", once=lambda t, n: not t.compact)
def silu(t: Translator, n: Node, x: Node) -> str:
    v = t.value(x)
    if t.compact:
        return t.b.node("QuickGelu", v, domain=MICROSOFT, alpha=1.0)
    return t.b.node("Mul", v, t.b.node("Sigmoid", v))


@op("silu_backward")
def silu_backward(t: Translator, n: Node, dy: Node, x: Node) -> str:
    return t.b.node("QuickGeluGrad", t.value(dy), t.value(x), domain=MICROSOFT, alpha=1.0)


@op("gelu")
def gelu(t: Translator, n: Node, x: Node, *, approximate: str = "none") -> str:
    return t.b.node("Gelu", t.value(x), approximate=approximate)


@op("gelu_backward")
def gelu_backward(t: Translator, n: Node, dy: Node, x: Node, *, approximate: str = "none") -> str:
    return t.b.node("FastGeluGrad" if approximate == "tanh" else "GeluGrad", t.value(dy), t.value(x), domain=MICROSOFT)


@op("threshold_backward")
def threshold_backward(t: Translator, n: Node, dy: Node, x: Node, threshold: float) -> str:
    if threshold == 0:
        return t.b.node("ReluGrad", t.value(dy), t.value(x), domain=MICROSOFT)
    d = t.dtype(n)
    return t.b.node("Where", t.b.node("Greater", t.value(x), t.value(threshold, d)), t.value(dy), t.value(0.0, d))


@op("sigmoid_backward", "tanh_backward")
def gradient_by_result(t: Translator, n: Node, dy: Node, y: Node) -> str:
    return t.b.node("TanhGrad" if "tanh" in str(n.target) else "SigmoidGrad", t.value(dy), t.value(y), domain=MICROSOFT)


@op("leaky_relu")
def leaky_relu(t: Translator, n: Node, x: Node, slope: float = 0.01) -> str:
    return t.b.node("LeakyRelu", t.value(x), alpha=float(slope))


@op("leaky_relu_backward", once=True)
def leaky_relu_backward(t: Translator, n: Node, dy: Node, x: Node, slope: float, self_is_result: bool) -> str:
    if self_is_result and slope < 0:
        raise t.refusal("leaky_relu_backward of a result with a negative slope")
    d = t.dtype(n)
    steep = t.b.node("Greater", t.value(x), t.value(0.0, d))
    return t.b.node("Where", steep, t.value(dy), t.b.node("Mul", t.value(dy), t.value(float(slope), d)))


@op("elu", once=True)
def elu(t: Translator, n: Node, x: Node, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> str:
    d, b, v = t.dtype(n), t.b, t.value(x)
    y = b.node("Elu", _scaled(t, v, input_scale, d), alpha=float(alpha))
    if input_scale != 1:
        y = b.node("Where", b.node("Greater", v, t.value(0.0, d)), v, y)
    return _scaled(t, y, scale, d)


@op("hardsigmoid")
def hardsigmoid(t: Translator, n: Node, x: Node) -> str:
    return t.b.node("HardSigmoid", t.value(x), alpha=1 / 6, beta=0.5)


@op("softplus", once=True)
def softplus(t: Translator, n: Node, x: Node, beta: float = 1, threshold: float = 20) -> str:
    d, v = t.dtype(n), t.value(x)
    scaled = _scaled(t, v, beta, d)
    y = t.b.node("Softplus", scaled)
    y = y if beta == 1 else t.b.node("Div", y, t.value(beta, d))
    # From 20 on, the function and its operand are the same number.
    return y if threshold >= 20 else t.b.node("Where", t.b.node("Greater", scaled, t.value(threshold, d)), v, y)


def _uniform(t: Translator, n: Node, low: float = 0.0, high: float = 1.0) -> str:
    draw = t.b.node("RandomUniform", shape=t.shape(n), low=float(low), high=float(high), dtype=ONNX_TYPES[torch.float32])
    return draw if t.dtype(n) == torch.float32 else t.cast(draw, t.dtype(n))


def _normal(t: Translator, n: Node, mean: float = 0.0, std: float = 1.0) -> str:
    draw = t.b.node("RandomNormal", shape=t.shape(n), mean=float(mean), scale=float(std), dtype=ONNX_TYPES[torch.float32])
    return draw if t.dtype(n) == torch.float32 else t.cast(draw, t.dtype(n))


@op("bernoulli.p", seen="self")
def bernoulli(t: Translator, n: Node, p: float = 0.5) -> str:
    draw = t.b.node("RandomUniform", shape=t.shape(n), dtype=ONNX_TYPES[torch.float32])
    return t.cast(t.b.node("Less", draw, t.value(p, torch.float32)), t.dtype(n))


@op("bernoulli.default")
def bernoulli_of(t: Translator, n: Node, x: Node) -> str:
    draw = t.b.node("RandomUniform", shape=t.shape(n), dtype=ONNX_TYPES[torch.float32])
    return t.cast(t.b.node("Less", draw, t.value(x, torch.float32)), t.dtype(n))


@op("rand.default", "rand_like.default", seen="self size dtype")
def rand(t: Translator, n: Node) -> str:
    return _uniform(t, n)


@op("uniform.default", seen="self")
def uniform(t: Translator, n: Node, from_: float = 0, to: float = 1) -> str:
    return _uniform(t, n, from_, to)


@op("randn.default", "randn_like.default", seen="self size dtype")
def randn(t: Translator, n: Node) -> str:
    return _normal(t, n)


@op("normal_functional.default", seen="self")
def normal(t: Translator, n: Node, mean: float = 0, std: float = 1) -> str:
    return _normal(t, n, mean, std)


@op("normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor")
def normal_of(t: Translator, n: Node, mean: Any, std: Any = 1) -> str:
    d = t.dtype(n)
    return t.b.node("Add", t.value(mean, d), t.b.node("Mul", t.value(std, d), _normal(t, n)))


@op("randint.default", "randint_like.default", seen="self size dtype")
def randint(t: Translator, n: Node, high: int) -> str:
    return randint_between(t, n, 0, high)


@op("randint.low", "randint_like.low_dtype", seen="self size dtype")
def randint_between(t: Translator, n: Node, low: int, high: int) -> str:
    count = high - low
    if count > 1 << 24:
        raise t.refusal(f"randint over {count} numbers, of which a float32 draws at most 2^24,")
    draw = t.b.node("RandomUniform", shape=t.shape(n), high=float(count), dtype=ONNX_TYPES[torch.float32])
    draw = t.b.node("Min", t.b.node("Floor", draw), t.value(float(count - 1), torch.float32))
    v = t.cast(draw, t.dtype(n))
    return v if low == 0 else t.b.node("Add", v, t.value(low, t.dtype(n)))


@op("native_dropout")
def native_dropout(t: Translator, n: Node, x: Node, p: float, train: bool | None) -> list[str]:
    if train is False or p in (0, 1):
        kept = t.b.node("Expand", t.value(train is False or p == 0, torch.bool), t.b.ints(t.shape(x)))
        return [t.value(x) if p != 1 or train is False else t.b.node("Mul", t.value(x), t.value(0.0, t.dtype(x))), kept]
    training = t.value(True, torch.bool)
    return t.b.node("Dropout", t.value(x), t.value(float(p), torch.float32), training, outputs=2)


@op("native_dropout_backward")
def native_dropout_backward(t: Translator, n: Node, dy: Node, mask: Node, scale: float) -> str:
    if t.compact:
        ratio, training = t.value(1 - 1 / scale, torch.float32), t.value(True, torch.bool)
        return t.b.node("DropoutGrad", t.value(dy), t.value(mask), ratio, training, domain=MICROSOFT)
    d = t.dtype(n)
    return t.b.node("Mul", t.b.node("Mul", t.value(dy), t.value(scale, d)), t.value(mask, d))


@op("_assert_async", "_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range_for_size",
    seen="self a size stride dtype assert_msg min max")  # fmt: skip
def nothing(t: Translator, n: Node) -> None:
    """Assertions are not computed."""
    return None


assert TABLE
