"""Elementwise operators."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node

from .builder import MICROSOFT, ONNX_TYPES
from .registry import TABLE, Translator, op


def _unary(name: str, onnx: str) -> None:
    def translation(t: Translator, n: Node, x: Node) -> str:
        return t.b.node(onnx, t.value(x, t.dtype(n)))

    op(name)(translation)


for _name, _onnx in {
    "neg": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "abs": "Abs", "sin": "Sin", "cos": "Cos", "tan": "Tan", "tanh": "Tanh",
    "sigmoid": "Sigmoid", "erf": "Erf", "floor": "Floor", "ceil": "Ceil", "sign": "Sign", "reciprocal": "Reciprocal",
    "relu": "Relu", "sinh": "Sinh", "cosh": "Cosh", "asin": "Asin", "acos": "Acos", "atan": "Atan", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "hardswish": "HardSwish", "mish": "Mish",
}.items():  # fmt: skip
    _unary(_name, _onnx)


@op("round.default")
def round_(t: Translator, n: Node, x: Node) -> str:
    return t.b.node("Round", t.value(x))


@op("rsqrt")
def rsqrt(t: Translator, n: Node, x: Node) -> str:
    return t.b.node("Reciprocal", t.b.node("Sqrt", t.value(x, t.dtype(n))))


@op("log2", "log10")
def log_of_base(t: Translator, n: Node, x: Node) -> str:
    base = math.log(2 if "log2" in str(n.target) else 10)
    return t.b.node("Div", t.b.node("Log", t.value(x, t.dtype(n))), t.value(base, t.dtype(n)))


@op("log1p")
def log1p(t: Translator, n: Node, x: Node) -> str:
    return t.b.node("Log", t.b.node("Add", t.value(x, t.dtype(n)), t.value(1.0, t.dtype(n))))


@op("expm1")
def expm1(t: Translator, n: Node, x: Node) -> str:
    return t.b.node("Sub", t.b.node("Exp", t.value(x, t.dtype(n))), t.value(1.0, t.dtype(n)))


@op("trunc")
def trunc(t: Translator, n: Node, x: Node) -> str:
    v = t.value(x)
    return t.b.node("Mul", t.b.node("Sign", v), t.b.node("Floor", t.b.node("Abs", v)))


def _binary(name: str, onnx: str) -> None:
    def translation(t: Translator, n: Node, a: Any, b: Any) -> str:
        d = t.dtype(n)
        return t.b.node("And" if onnx == "Mul" and d == torch.bool else onnx, t.value(a, d), t.value(b, d))

    op(name)(translation)


for _name, _onnx in {"mul": "Mul", "maximum": "Max", "minimum": "Min"}.items():
    _binary(_name, _onnx)


def _scaled(t: Translator, value: str, alpha: float, dtype: torch.dtype) -> str:
    return value if alpha == 1 else t.b.node("Mul", value, t.value(alpha, dtype))


@op("add")
def add(t: Translator, n: Node, a: Any, b: Any, *, alpha: float = 1) -> str:
    d = t.dtype(n)
    if d == torch.bool:
        return t.b.node("Or", t.value(a, d), t.value(b, d))
    return t.b.node("Add", t.value(a, d), _scaled(t, t.value(b, d), alpha, d))


@op("sub")
def sub(t: Translator, n: Node, a: Any, b: Any, *, alpha: float = 1) -> str:
    d = t.dtype(n)
    return t.b.node("Sub", t.value(a, d), _scaled(t, t.value(b, d), alpha, d))


@op("div", "floor_divide")
def div(t: Translator, n: Node, a: Any, b: Any, *, rounding_mode: str | None = None) -> str:
    d = t.dtype(n)
    if "floor_divide" in str(n.target):
        rounding_mode = "floor"
    x, y = t.value(a, d), t.value(b, d)
    if rounding_mode == "floor" and not d.is_floating_point:
        x = t.b.node("Sub", x, t.b.node("Mod", x, y))
    q = t.b.node("Div", x, y)
    if not d.is_floating_point or rounding_mode is None:
        return q
    return (
        t.b.node("Floor", q)
        if rounding_mode == "floor"
        else t.b.node("Mul", t.b.node("Sign", q), t.b.node("Floor", t.b.node("Abs", q)))
    )


@op("remainder")
def remainder(t: Translator, n: Node, a: Any, b: Any) -> str:
    d = t.dtype(n)
    x, y = t.value(a, d), t.value(b, d)
    if not d.is_floating_point:
        return t.b.node("Mod", x, y)
    return t.b.node("Sub", x, t.b.node("Mul", t.b.node("Floor", t.b.node("Div", x, y)), y))


@op("fmod")
def fmod(t: Translator, n: Node, a: Any, b: Any) -> str:
    return t.b.node("Mod", t.value(a, t.dtype(n)), t.value(b, t.dtype(n)), fmod=1)


@op("pow")
def power(t: Translator, n: Node, a: Any, b: Any) -> str:
    d = t.dtype(n)
    x = t.value(a, d)
    if b == 1:
        return x
    if b == 2:
        return t.b.node("Mul", x, x)
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


@op("clamp", "clip", "hardtanh")
def clamp(t: Translator, n: Node, x: Node, low: Any = None, high: Any = None, *, min: Any = None, max: Any = None) -> str:
    if "hardtanh" in str(n.target):
        low, high = (-1.0 if low is None else low), (1.0 if high is None else high)
    low, high, d = (min if low is None else low), (max if high is None else high), t.dtype(n)
    v = t.value(x, d)
    if not isinstance(low, Node) and not isinstance(high, Node):
        return t.b.node("Clip", v, None if low is None else t.value(low, d), None if high is None else t.value(high, d))
    v = v if low is None else t.b.node("Max", v, t.value(low, d))
    return v if high is None else t.b.node("Min", v, t.value(high, d))


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
    def translation(t: Translator, n: Node, *args: Any) -> str:
        d = t.dtype(n)
        return t.b.node(on_bool if d == torch.bool or on_int is None else on_int, *(t.value(a, d) for a in args))

    op(name)(translation)


@op("bitwise_and.Scalar", "__and__.Scalar")
def bitwise_and_scalar(t: Translator, n: Node, x: Node, mask: int) -> str:
    d = t.dtype(n)
    if d == torch.bool:
        return t.value(x) if mask else t.b.node("Expand", t.value(False, d), t.b.ints(t.shape(n)))
    if mask >= 0 and mask & (mask + 1) == 0:
        # The lowest bits are what a division leaves, also of negative numbers.
        return t.b.node("Mod", t.value(x, d), t.value(mask + 1, d))
    return t.b.node("BitwiseAnd", t.value(x, d), t.value(mask, d))


for _name in ("and", "or", "xor"):
    _logical(f"logical_{_name}", _name.capitalize(), None)
    _logical(f"bitwise_{_name}", _name.capitalize(), f"Bitwise{_name.capitalize()}")
_logical("logical_not", "Not", None)
_logical("bitwise_not", "Not", "BitwiseNot")


@op("isnan")
def isnan(t: Translator, n: Node, x: Node) -> str:
    return t.b.node("IsNaN", t.value(x))


@op("isinf")
def isinf(t: Translator, n: Node, x: Node) -> str:
    return t.b.node("IsInf", t.value(x))


@op("atan2")
def atan2(t: Translator, n: Node, y: Node, x: Node) -> str:
    d, b = t.dtype(n), t.b
    vy, vx, zero, pi = t.value(y, d), t.value(x, d), t.value(0.0, d), t.value(math.pi, d)
    turn = b.node("Where", b.node("Less", vy, zero), b.node("Neg", pi), pi)
    base = b.node("Atan", b.node("Div", vy, vx))
    return b.node("Add", base, b.node("Where", b.node("Less", vx, zero), turn, zero))


@op("_to_copy", "prims::convert_element_type", "to")
def to_copy(t: Translator, n: Node, x: Node, *_: Any, **__: Any) -> str:
    return t.value(x, t.dtype(n))


@op("clone", "alias", "detach", "detach_", "lift_fresh_copy", "lift_fresh", "contiguous", "positive", "prims::view_of", "prims::copy_strided")
def identity(t: Translator, n: Node, x: Node, *_: Any, **__: Any) -> str:
    return t.value(x)


@op("silu")
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


@op("leaky_relu_backward")
def leaky_relu_backward(t: Translator, n: Node, dy: Node, x: Node, slope: float, by_result: bool) -> str:
    d = t.dtype(n)
    steep = t.b.node("Greater", t.value(x), t.value(0.0, d))
    return t.b.node("Where", steep, t.value(dy), t.b.node("Mul", t.value(dy), t.value(float(slope), d)))


@op("elu")
def elu(t: Translator, n: Node, x: Node, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> str:
    d = t.dtype(n)
    v = t.b.node("Elu", _scaled(t, t.value(x), input_scale, d), alpha=float(alpha))
    return _scaled(t, v, scale, d)


@op("hardsigmoid")
def hardsigmoid(t: Translator, n: Node, x: Node) -> str:
    return t.b.node("HardSigmoid", t.value(x), alpha=1 / 6, beta=0.5)


@op("softplus")
def softplus(t: Translator, n: Node, x: Node, beta: float = 1, threshold: float = 20) -> str:
    d = t.dtype(n)
    v = t.b.node("Softplus", _scaled(t, t.value(x), beta, d))
    return v if beta == 1 else t.b.node("Div", v, t.value(beta, d))


@op("bernoulli.p")
def bernoulli(t: Translator, n: Node, x: Node, p: float = 0.5, **_: Any) -> str:
    d = t.dtype(n)
    draw = t.b.node("RandomUniform", shape=t.shape(n), dtype=ONNX_TYPES[torch.float32])
    return t.cast(t.b.node("Less", draw, t.value(p, torch.float32)), d)


@op("bernoulli.default")
def bernoulli_of(t: Translator, n: Node, x: Node, **_: Any) -> str:
    draw = t.b.node("RandomUniform", shape=t.shape(n), dtype=ONNX_TYPES[torch.float32])
    return t.cast(t.b.node("Less", draw, t.value(x, torch.float32)), t.dtype(n))


@op("rand", "rand_like", "uniform")
def uniform(t: Translator, n: Node, *args: Any, **_: Any) -> str:
    low, high = args[1:3] if "uniform" in str(n.target) and len(args) > 2 else (0.0, 1.0)
    draw = t.b.node("RandomUniform", shape=t.shape(n), low=float(low), high=float(high), dtype=ONNX_TYPES[torch.float32])
    return draw if t.dtype(n) == torch.float32 else t.cast(draw, t.dtype(n))


@op("randn", "randn_like", "normal_functional")
def normal(t: Translator, n: Node, *args: Any, **_: Any) -> str:
    mean, scale = args[1:3] if "normal_functional" in str(n.target) and len(args) > 2 else (0.0, 1.0)
    draw = t.b.node("RandomNormal", shape=t.shape(n), mean=float(mean), scale=float(scale), dtype=ONNX_TYPES[torch.float32])
    return draw if t.dtype(n) == torch.float32 else t.cast(draw, t.dtype(n))


@op("randint", "randint_like")
def randint(t: Translator, n: Node, *args: Any, **_: Any) -> str:
    numbers = [a for a in args if isinstance(a, int)]
    low, high = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    draw = t.b.node("RandomUniform", shape=t.shape(n), low=float(low), high=float(high), dtype=ONNX_TYPES[torch.float32])
    return t.cast(t.b.node("Floor", draw), t.dtype(n))


@op("native_dropout")
def native_dropout(t: Translator, n: Node, x: Node, p: float, train: bool | None) -> list[str]:
    training = t.value(True, torch.bool)
    return t.b.node("Dropout", t.value(x), t.value(float(p), torch.float32), training, outputs=2)


@op("native_dropout_backward")
def native_dropout_backward(t: Translator, n: Node, dy: Node, mask: Node, scale: float) -> str:
    if t.compact:
        ratio, training = t.value(1 - 1 / scale, torch.float32), t.value(True, torch.bool)
        return t.b.node("DropoutGrad", t.value(dy), t.value(mask), ratio, training, domain=MICROSOFT)
    d = t.dtype(n)
    return t.b.node("Mul", t.b.node("Mul", t.value(dy), t.value(scale, d)), t.value(mask, d))


@op("_assert_async", "_assert_scalar", "_assert_tensor_metadata", "sym_constrain_range_for_size")
def nothing(t: Translator, n: Node, *_: Any, **__: Any) -> None:
    return None


assert TABLE
