"""Calls of PyTorch's operators, made from their schemas: each value of each argument of each operator that has a translation.

A call that PyTorch refuses is none. Where a schema alone does not say how a call must look, `BASES` has one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from lmsc.torch.gradients import lowering_table
from lmsc.torch.translate import registry
from torch import Tensor

aten = torch.ops.aten
INF = float("inf")


@dataclass
class Case:
    """One call, and the argument that it tries."""

    overload: Any
    arguments: dict[str, Any]
    tried: str

    def __str__(self) -> str:
        def short(v: Any) -> str:
            if isinstance(v, Tensor):
                return f"{str(v.dtype).removeprefix('torch.')}{list(v.shape)}"
            return f"[{', '.join(map(short, v))}]" if isinstance(v, (list, tuple)) else repr(v)

        return f"{self.overload}({', '.join(f'{k}={short(v)}' for k, v in self.arguments.items())})"


def floats(*shape: int, seed: int = 0, kind: str = "normal") -> Tensor:
    """Numbers of one kind, the same ones for the same arguments."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(17 * seed + sum(shape)))
    return {
        "normal": x, "ties": (x * 2).round() / 2 + 0.0, "tiny": x * 1e-6, "large": x * 40, "positive": x.abs() + 0.1, "unit": x.sigmoid(),
    }[kind]  # fmt: skip


def ints(*shape: int, high: int = 3, low: int = 0, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(sum(shape) + high)).to(dtype)


def _b(**arguments: Any) -> dict[str, Any]:
    return arguments


def _pooled(rank: int) -> list[dict[str, Any]]:
    image = floats(2, 3, *(7, 8, 5)[:rank])
    return [
        _b(self=image, kernel_size=[3, 2, 2][:rank], stride=[2, 3, 2][:rank], padding=[1, 1, 1][:rank], ceil_mode=c)
        for c in (False, True)
    ] + [_b(self=image[0], kernel_size=[2] * rank)]


def _convolved() -> list[dict[str, Any]]:
    every = []
    for rank, transposed, groups in itertools.product((1, 2), (False, True), (1, 2)):
        weight = floats(4, 6 // groups, *[3, 2][:rank]) if transposed else floats(6, 4 // groups, *[3, 2][:rank])
        every.append(_b(
            input=floats(2, 4, *(7, 6)[:rank]), weight=weight, bias=floats(6), stride=[1] * rank, padding=[0] * rank, dilation=[1] * rank,
            transposed=transposed, output_padding=[0] * rank, groups=groups,
        ))  # fmt: skip
        every.append({**every[-1], "stride": [2] * rank, "padding": [1] * rank})
    return every


_IMAGE = floats(2, 3, 4, 5)
_CLASSES = floats(4, 5).log_softmax(1)
_PLACES = torch.tensor([[0, 2, 2, 1], [1, 0, 2, 2]])
_STATS = _b(running_mean=floats(3), running_var=floats(3, kind="positive"))

BASES: dict[str, list[dict[str, Any]]] = {
    "convolution": _convolved(),
    **{f"max_pool{k}d_with_indices": _pooled(k) for k in (2, 3)},
    **{f"avg_pool{k}d": _pooled(k) for k in (1, 2, 3)},
    "embedding": [_b(weight=floats(5, 3), indices=torch.tensor([[0, 2, 2], [4, 1, 0]]))],
    "gather": [_b(self=floats(3, 4), dim=0, index=_PLACES)],
    "index_select": [_b(self=floats(3, 4), dim=0, index=torch.tensor([0, 2, 2]))],
    "scatter.src": [_b(self=floats(3, 4), dim=0, index=torch.tensor([[0, 2, 1, 1], [1, 0, 2, 2]]), src=floats(3, 4, seed=1))],
    "scatter.value": [_b(self=floats(3, 4), dim=0, index=_PLACES, value=0.5)],
    "scatter.reduce": [_b(self=floats(3, 4), dim=0, index=_PLACES, src=floats(2, 4, seed=1), reduce="add")],
    "scatter.value_reduce": [_b(self=floats(3, 4), dim=0, index=_PLACES, value=2.0, reduce="add")],
    "scatter_add": [_b(self=floats(3, 4), dim=0, index=_PLACES, src=floats(2, 4, seed=1))],
    "scatter_reduce": [
        _b(self=floats(3, 4), dim=0, index=_PLACES, src=floats(3, 4, seed=1), reduce="sum", include_self=i) for i in (True, False)
    ] + [_b(self=ints(3, 4, high=9), dim=0, index=_PLACES, src=ints(3, 4, high=7, low=-7), reduce="mean", include_self=False)],
    "index_add": [_b(self=floats(3, 4), dim=0, index=torch.tensor([0, 2, 2]), source=floats(3, 4, seed=1))],
    "index.Tensor": [
        _b(self=floats(3, 4, 2), indices=i) for i in (
            [torch.tensor([0, -1])], [None, torch.tensor([[3, 0]])], [torch.tensor([0, 2]), torch.tensor([1, -1])],
            [torch.tensor([0, 2]), None, torch.tensor([1, 0])], [None, torch.tensor([[1], [3]]), torch.tensor([0, 1])],
        )
    ],
    "index_put": [
        _b(self=floats(3, 4, 2), indices=i, values=v, accumulate=a) for a in (False, True) for i, v in (
            ([torch.tensor([0, -1])], floats(2, 4, 2)), ([None, torch.tensor([3, 0])], floats(3, 2, 2)),
            ([torch.tensor([0, 2]), torch.tensor([1, -1])], floats(2)), ([torch.tensor([0, 2]), None, torch.tensor([1, 0])], floats(2, 4)),
            ([floats(3) > 0], floats()), ([floats(3) > 0], floats(4, 2)), ([floats(3, 4) > 0], floats(1)), ([None, floats(4) > 0], floats()),
            ([None, floats(4) > 0], floats(1)), ([floats(3, 4) > 0], floats(2)),
        )
    ],
    "native_layer_norm": [_b(input=floats(2, 3, 4), normalized_shape=[3, 4], weight=floats(3, 4), bias=floats(3, 4, seed=1), eps=1e-5)],
    "native_batch_norm": [_b(input=_IMAGE, weight=floats(3), bias=floats(3, seed=1), training=True, momentum=0.1, eps=1e-5, **_STATS)],
    "native_group_norm": [_b(input=floats(2, 4, 3), weight=floats(4), bias=floats(4, seed=1), N=2, C=4, HxW=3, group=2, eps=1e-5)],
    "addmm": [_b(self=floats(4), mat1=floats(3, 2), mat2=floats(2, 4))],
    "baddbmm": [_b(self=floats(2, 3, 4), batch1=floats(2, 3, 2), batch2=floats(2, 2, 4))],
    "mm": [_b(self=floats(3, 2), mat2=floats(2, 4))],
    "bmm": [_b(self=floats(2, 3, 2), mat2=floats(2, 2, 4))],
    "matmul": [_b(self=floats(3, 2), other=floats(2, 4)), _b(self=floats(2), other=floats(2)), _b(self=floats(2, 1, 3, 2), other=floats(3, 2, 4))],
    "mv": [_b(self=floats(3, 2), vec=floats(2))],
    "dot": [_b(self=floats(3), tensor=floats(3, seed=1))],
    "cat": [_b(tensors=[floats(2, 3), floats(2, 3, seed=1)]), _b(tensors=[floats(2, 3), torch.zeros(0), floats(2, 3, seed=1)])],
    "stack": [_b(tensors=[floats(2, 3), floats(2, 3, seed=1)])],
    "split_with_sizes": [_b(self=floats(4, 3), split_sizes=[1, 3])],
    "split.sizes": [_b(self=floats(4, 3), split_size=[1, 3])],
    "split.Tensor": [_b(self=floats(4, 3), split_size=3)],
    "slice": [_b(self=floats(5, 6))],
    "slice_scatter": [_b(self=floats(5, 6), src=floats(5, 6, seed=1)), _b(self=floats(5, 6), src=floats(2, 6), start=1, end=5, step=2)],
    "select_scatter": [_b(self=floats(3, 4), src=floats(4), dim=0, index=1)],
    "diagonal_scatter": [_b(self=floats(4, 4), src=floats(4)), _b(self=floats(4, 4), src=floats(3), offset=1)],
    "as_strided": [_b(self=floats(4, 5), size=[2, 3], stride=[5, 2], storage_offset=1)],
    "as_strided_scatter": [_b(self=floats(4, 5), src=floats(2, 3), size=[2, 3], stride=[5, 2], storage_offset=1)],
    "constant_pad_nd": [_b(self=floats(3, 4), pad=[1, 2, 0, 1]), _b(self=floats(3, 4), pad=[-1, 2])],
    **{f"{m}_pad{k}d": [_b(self=floats(2, 3, *(4, 5, 6)[:k]), padding=[1, 2, 2, 1, 1, 1][: 2 * k])] for m in ("reflection", "replication") for k in (1, 2, 3)},
    "view.default": [_b(self=floats(4, 3), size=[2, 6]), _b(self=floats(4, 3), size=[-1])],
    "view.dtype": [_b(self=floats(4, 4), dtype=torch.float32)],
    "view_copy": [_b(self=floats(4, 3), size=[2, 6]), _b(self=floats(4, 4), dtype=torch.float32)],
    "_unsafe_view": [_b(self=floats(4, 3), size=[2, 6])],
    "_reshape_copy": [_b(self=floats(4, 3), size=[2, 6])],
    "reshape": [_b(self=floats(4, 3), shape=[2, 6])],
    "permute": [_b(self=floats(2, 3, 4), dims=[2, 0, 1]), _b(self=floats(2, 3, 4), dims=[-1, 0, -2])],
    "expand": [_b(self=floats(3, 1), size=[2, 3, 4]), _b(self=floats(3, 1), size=[-1, 4])],
    "repeat": [_b(self=floats(2, 3), repeats=[2, 1, 3]), _b(self=floats(2, 3), repeats=[0, 1])],
    "roll": [_b(self=floats(4, 3), shifts=[1, -2], dims=[0, 1]), _b(self=floats(4, 3), shifts=[5])],
    "flip": [_b(self=floats(4, 3), dims=[0]), _b(self=floats(4, 3), dims=[-1, 0])],
    "unfold": [_b(self=floats(3, 8), dimension=1, size=3, step=2)],
    "bucketize": [_b(self=floats(3, 4, kind="ties"), boundaries=torch.tensor([-1.0, 0.0, 0.5, 0.5, 1.0]))],
    "searchsorted": [
        _b(sorted_sequence=torch.tensor([-1.0, 0.0, 0.5]), self=floats(3, 4, kind="ties")),
        _b(sorted_sequence=floats(2, 5, kind="ties").sort(1).values, self=floats(2, 4, kind="ties", seed=1)),
    ],
    "upsample_nearest1d": [_b(self=floats(2, 3, 5), output_size=[8])],
    "_upsample_nearest_exact1d": [_b(self=floats(2, 3, 5), output_size=[8])],
    "upsample_linear1d": [_b(self=floats(2, 3, 5), output_size=[8], align_corners=False)],
    **{
        f"{n}.default": [_b(self=_IMAGE, output_size=s, scales_h=h, scales_w=w) for s, h, w in (
            ([8, 10], None, None), ([8, 10], 2.0, 2.0), ([6, 8], 1.7, 1.7), ([7, 9], None, None), ([2, 3], 0.6, 0.7), ([7, 9], 1.9, 1.8),
        )] for n in ("upsample_nearest2d", "_upsample_nearest_exact2d")
    },
    **{
        n: [_b(self=_IMAGE, output_size=s, align_corners=a, scales_h=h, scales_w=w) for a in (False, True) for s, h, w in (
            ([8, 10], None, None), ([6, 8], 1.7, 1.7), ([2, 3], 0.6, 0.7), ([4, 5], None, None), ([1, 1], None, None),
        )] for n in ("upsample_bilinear2d.default", "upsample_bicubic2d.default")
    },
    "nll_loss_forward": [
        _b(self=_CLASSES, target=torch.tensor([0, 4, 2, 2]), weight=w, reduction=r, ignore_index=i)
        for w in (None, floats(5, kind="positive")) for r in (0, 1, 2) for i in (-100, 2)
    ],
    "nll_loss2d_forward": [
        _b(self=floats(2, 3, 2, 2).log_softmax(1), target=ints(2, 2, 2), weight=w, reduction=r, ignore_index=i)
        for w in (None, floats(3, kind="positive")) for r in (0, 1, 2) for i in (-100, 2)
    ],
    "_softmax": [_b(self=floats(2, 3, 4), dim=1, half_to_float=False)],
    "_log_softmax": [_b(self=floats(2, 3, 4), dim=1, half_to_float=False)],
    "_safe_softmax": [_b(self=torch.tensor([[1.0, -INF, 2.0], [-INF, -INF, -INF]]), dim=1)],
    "histc": [_b(self=floats(9), bins=5, min=-1, max=1)],
    "topk": [_b(self=floats(4, 5), k=2)],
    "native_dropout": [_b(input=floats(3, 4), p=0.0, train=True), _b(input=floats(3, 4), p=0.5, train=False)],
    "where.self": [_b(condition=floats(3, 4) > 0, self=floats(3, 4), other=floats(4, seed=1))],
    "where.ScalarSelf": [_b(condition=floats(3, 4) > 0, self=1.5, other=floats(4, seed=1))],
    "where.ScalarOther": [_b(condition=floats(3, 4) > 0, self=floats(3, 4), other=-2)],
    "where.Scalar": [_b(condition=floats(3, 4) > 0, self=1, other=2.5)],
    "masked_fill": [_b(self=floats(3, 4), mask=floats(3, 4) > 0, value=1.5), _b(self=floats(3, 4), mask=floats(3, 4) > 0, value=floats())],
    "softplus": [_b(self=floats(3, 4) * 3)],
    "elu": [_b(self=floats(3, 4) * 2)],
    "atan2": [
        _b(self=floats(3, 4, kind="ties"), other=floats(3, 4, kind="ties", seed=1)),
        _b(self=torch.tensor([0.0, -0.0, 0.0, -0.0, INF, -INF, 1.0, 1.0]), other=torch.tensor([0.0, 0.0, -0.0, -0.0, INF, -INF, INF, -INF])),
    ],
    "log1p": [_b(self=torch.tensor([1e-9, -1e-9, 1e-4, 0.0, 0.5, -0.5, 3.0, 1e20]))],
    "expm1": [_b(self=torch.tensor([1e-9, -1e-9, 1e-4, 0.0, 0.5, -0.5, 3.0, -100.0, 80.0]))],
    "remainder": [_b(self=torch.tensor([1.0, -1.0, 0.7, 5.5]), other=torch.tensor([0.1, 0.3, -0.2, 2.0]))],
    "fmod": [_b(self=torch.tensor([1.0, -1.0, 0.7, 5.5]), other=torch.tensor([0.1, 0.3, -0.2, 2.0]))],
    "floor_divide": [_b(self=torch.tensor([1.0, -1.0, 0.7, 5.5]), other=torch.tensor([0.1, 0.3, -0.2, 2.0])), _b(self=ints(6, high=9, low=-9), other=3)],
    "div.Tensor_mode": [_b(self=torch.tensor([1.0, -1.0, 0.7, 5.5]), other=torch.tensor([0.1, 0.3, -0.2, 2.0]), rounding_mode=m) for m in ("floor", "trunc", None)]
    + [_b(self=ints(6, high=9, low=-9), other=torch.tensor([2, -2, 3, -3, 4, 5]), rounding_mode=m) for m in ("floor", "trunc", None)],
    "pow.Tensor_Scalar": [_b(self=floats(3, 4, kind="positive"), exponent=e) for e in (-2, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4)],
    "pow.Tensor_Tensor": [_b(self=floats(3, 4, kind="positive"), exponent=floats(4))],
    "pow.Scalar": [_b(self=2.5, exponent=floats(3, 4))],
    "fake_quantize_per_tensor_affine_cachemask": [_b(self=floats(3, 4), scale=0.1, zero_point=3, quant_min=-8, quant_max=7)],
    "fake_quantize_per_channel_affine_cachemask": [
        _b(self=floats(3, 4), scale=torch.tensor([0.1, 0.2, 0.05]), zero_point=torch.tensor([0, 1, 2]), axis=0, quant_min=-8, quant_max=7)
    ],
    "linspace": [_b(start=-1, end=2, steps=5)],
    "tril_indices": [_b(row=3, col=4)],
    "triu_indices": [_b(row=3, col=4)],
    "max_unpool2d": [_b(self=floats(2, 2, 2, 2), indices=F_INDICES, output_size=[4, 4]) for F_INDICES in [torch.nn.functional.max_pool2d(floats(2, 2, 4, 4), 2, return_indices=True)[1]]],
    "threshold_backward": [_b(grad_output=floats(3, 4), self=floats(3, 4, seed=1), threshold=v) for v in (0, 0.5)],
    "leaky_relu_backward": [_b(grad_output=floats(3, 4), self=floats(3, 4, seed=1), negative_slope=0.1, self_is_result=False)],
}  # fmt: skip

BY_NAME: dict[str, list[Any]] = {
    "reduce": ["sum", "mean", "prod", "amax", "amin", "add", "multiply"], "rounding_mode": [None, "floor", "trunc"],
    "approximate": ["none", "tanh"], "side": ["left", "right"], "dtype": [torch.float32, torch.int64, torch.bool],
    "divisor_override": [3, 1], "count_include_pad": [False, True], "threshold": [0, 1, 30], "alpha": [2, -1, 0], "beta": [0, 0.5, 2],
    "kernel_size": [[2], [3, 3], [1, 1]], "stride": [[], [1], [2, 1], [2, 2, 1]], "padding": [[0], [1], [1, 0]],
    "dilation": [[2], [1, 2]], "output_padding": [[1], [1, 0]], "groups": [1, 2], "ord": [0, 1, 2, 3, 0.5, -1, INF, -INF],
    "size": [], "shape": [], "repeats": [], "split_sizes": [], "normalized_shape": [[4]], "p": [0.0], "scale": [0.5, 2.0, 1.0], "input_scale": [0.5, 2.0],
    "output_size": [], "bins": [1, 7], "shifts": [[-1], [2]], "storage_offset": [0, 2], "zero_point": [0, 5], "eps": [1e-3, 0.1], "momentum": [0.0, 0.3, 1.0],
}  # fmt: skip
BY_TYPE: dict[str, list[Any]] = {
    "bool": [False, True], "int": [-2, -1, 0, 1, 2, 3], "Optional[int]": [None, -1, 0, 1, 2], "float": [0.0, 0.5, 1.0, 2.0],
    "Optional[float]": [None, 0.5, 2.0], "number": [0, 1, 2, -1, 0.5], "Optional[number]": [None, 0, -0.5, 1], "Optional[bool]": [None, False, True],
    "List[int]": [[0], [1], [-1], [0, 1], [1, 0], [1, -1], []], "Optional[List[int]]": [None, [0], [-1], [0, 1], []],
}  # fmt: skip
RANDOM = ("bernoulli", "rand", "uniform", "normal", "exponential", "cauchy", "log_normal", "geometric", "multinomial", "empty", "new_empty")
EXTRA = (
    "native_group_norm", "native_batch_norm", "nll_loss_forward", "nll_loss2d_forward", "unfold", "bucketize", "searchsorted", "upsample_nearest1d", "upsample_linear1d",
    "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "upsample_bilinear2d", "upsample_bicubic2d", "max_unpool2d", "glu", "huber_loss",
    "smooth_l1_loss", "mse_loss", "binary_cross_entropy", "logsumexp", "std_mean", "var_mean", "var", "std", "logit", "nan_to_num", "celu",
    "hardshrink", "softshrink", "threshold", "addcmul", "addcdiv", "lerp", "xlogy", "frac", "heaviside", "hypot", "logaddexp", "erfc", "exp2",
    "cumprod", "logcumsumexp", "trace", "take", "index_fill", "index_copy", "masked_scatter", "rot90", "tile", "narrow", "diag_embed", "norm", "renorm", "dist", "aminmax", "count_nonzero",
    "fake_quantize_per_tensor_affine_cachemask", "fake_quantize_per_channel_affine_cachemask", "special_xlog1py", "sinc", "copysign", "clamp_min", "clamp_max", "rsub", "square", "addmv", "addr", "outer",
)  # fmt: skip
"""Operators without a translation of their own that are written with others."""


def every_overload() -> list[Any]:
    """The operators that are tried: those with a translation, and those that are taken apart."""
    found = {str(o): o for o in registry.overloads() if str(o).startswith("aten.")}
    for name in EXTRA:
        packet = getattr(aten, name)
        for one in packet.overloads():
            made = getattr(packet, one)
            s = made._schema
            if not s.is_mutable and not any(a.is_out for a in s.arguments) and "Dimname" not in str(s) and "Tensor" in str(s).split("->")[1]:
                found[str(made)] = made
    table = lowering_table(True)
    assert table
    return [o for _, o in sorted(found.items()) if "_backward" not in str(o) and "assert" not in str(o) and "names" not in str(o)]


def _generic(overload: Any) -> list[dict[str, Any]]:
    """Calls on plain tensors, of which the first that PyTorch takes is the base."""
    tries = []
    for first in (floats(3, 4), floats(3, 4, kind="unit"), ints(3, 4, high=5, low=-5), floats(3, 4) > 0, floats(2, 3, 4), floats(2, 3, 4, 4)):
        for number in (1, 0, 2, 0.5):
            arguments, seed = {}, 0
            for a in overload._schema.arguments:
                if a.has_default_value() or a.name == "generator":
                    continue
                kind = str(a.type)
                if "Tensor" in kind:
                    same = first if seed == 0 else floats(*first.shape, seed=seed) if first.is_floating_point() else first
                    arguments[a.name] = [same, same] if kind.startswith("List") else same
                    seed += 1
                elif a.name in ("dtype", "out_dtype"):
                    arguments[a.name] = torch.float32
                elif kind == "List[int]":
                    arguments[a.name] = [3, 4] if a.name == "size" else [int(number)]
                elif kind == "bool":
                    arguments[a.name] = bool(number)
                elif kind == "str":
                    arguments[a.name] = BY_NAME.get(a.name, ["none"])[0]
                else:
                    arguments[a.name] = int(number) if kind == "int" else number
            tries.append(arguments)
    return tries


def called(case: Case) -> Any:
    """PyTorch's results, or None if it refuses the call or its gradient, or if they are random."""
    try:
        torch.manual_seed(1)
        again = _results(case)
        torch.manual_seed(0)
        results = _results(case)
        if not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(results, again)):
            return None
        for r in results:
            if r.requires_grad:
                r.sum().backward(retain_graph=True)
        return results if results and all(r.numel() < 4096 and not r.is_complex() for r in results) else None
    except Exception:  # PyTorch refuses the call
        return None


def _results(case: Case) -> list[Tensor]:
    result = case.overload(**{k: _copy(v) for k, v in case.arguments.items()})
    return [r for r in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(r, Tensor)]


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.clone().requires_grad_(value.dtype == torch.float32)
    return [_copy(v) for v in value] if isinstance(value, list) else value


def bases(overload: Any) -> list[dict[str, Any]]:
    """Calls from which one argument at a time is varied."""
    packet, _, one = str(overload).removeprefix("aten.").partition(".")
    table = BASES.get(f"{packet}.{one}") or BASES.get(packet)
    names = {a.name for a in overload._schema.arguments}
    if table:
        return [b for b in table if set(b) <= names and called(Case(overload, b, ""))]
    return next(([b] for b in _generic(overload) if called(Case(overload, b, ""))), [])


def values_of(argument: Any) -> list[Any]:
    """The values tried for an argument that is not an operand."""
    if argument.name in registry.PLACE or argument.name in ("generator", "sparse", "sparse_grad", "half_to_float", "N", "C", "HxW"):
        return []
    if argument.name in BY_NAME:
        return BY_NAME[argument.name]
    return BY_TYPE.get(str(argument.type), [])


def cases_of(overload: Any) -> Iterator[Case]:
    """The base calls, each value of each argument, and operands of other values, ranks and types."""
    for base in bases(overload):
        yield Case(overload, base, "base")
        for argument in overload._schema.arguments:
            for value in values_of(argument):
                yield Case(overload, {**base, argument.name: value}, argument.name)
            if str(argument.type) == "Optional[Tensor]" and base.get(argument.name) is not None:
                yield Case(overload, {**base, argument.name: None}, argument.name)
        tensors = [k for k, v in base.items() if isinstance(v, Tensor)]
        if "topk" in str(overload):
            continue  # which of equal elements PyTorch takes is its own choice
        for name in tensors[:1]:
            if name == "sorted_sequence":
                continue  # of one that is not sorted the place of a number is not defined
            x = base[name]
            if x.is_floating_point():
                for kind in ("ties", "tiny", "large", "positive"):
                    yield Case(overload, {**base, name: floats(*x.shape, kind=kind)}, name)
                yield Case(overload, {**base, name: ints(*x.shape, high=4, low=-3)}, name)
                yield Case(overload, {**base, name: x > 0}, name)
            yield Case(overload, {k: v.flatten()[0].clone() if k in tensors and v.numel() else v for k, v in base.items()}, name)
            yield Case(overload, {**base, name: x.unsqueeze(-1)}, name)
            yield Case(overload, {**base, name: x[:0]}, name)


def every_case() -> list[Case]:
    """All calls that PyTorch takes, without those whose results are random, in a fixed order, none twice."""
    found: dict[str, Case] = {}
    for overload in every_overload():
        if str(overload).removeprefix("aten.").startswith(RANDOM):
            continue
        for case in cases_of(overload):
            key = f"{case} {[v.flatten()[:4].tolist() for v in case.arguments.values() if isinstance(v, Tensor)]}"
            if key not in found and called(case) is not None:
                found[key] = case
    return list(found.values())


def scaled_by(result: Tensor) -> Tensor:
    """Weights by which the elements of a result count in a loss."""
    return torch.linspace(-1, 1.5, max(result.numel(), 1))[: result.numel()].reshape(result.shape) / math.sqrt(max(result.numel(), 1))
