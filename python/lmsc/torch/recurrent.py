"""Recurrent layers as a graph has them: one operator for each layer and direction, or their cells.

The operators `lstm` and `gru` of `torch.ops.lmsc` have ONNX's shapes and order of gates. They keep their gates, from which their gradients
are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .ops import LIBRARY

LIBRARY.define(
    "lstm(Tensor x, Tensor w, Tensor r, Tensor? b, Tensor h, Tensor c, bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)
LIBRARY.define(
    "lstm_backward(Tensor? dy, Tensor? dh, Tensor? dc, Tensor x, Tensor w, Tensor r, Tensor? b, Tensor h, Tensor c, Tensor y, Tensor cells,"
    " Tensor gates, bool reverse) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)
LIBRARY.define("gru(Tensor x, Tensor w, Tensor r, Tensor? b, Tensor h, bool reverse) -> (Tensor, Tensor, Tensor)")
LIBRARY.define(
    "gru_backward(Tensor? dy, Tensor? dh, Tensor x, Tensor w, Tensor r, Tensor? b, Tensor h, Tensor y, Tensor gates, bool reverse)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)"
)

_ORDERS = {4: (0, 3, 1, 2), 3: (1, 0, 2)}
"""By the number of gates: PyTorch's gates i, f, g, o in the order i, o, f, g, and its gates r, z, n in the order z, r, n."""


def is_padded(args: tuple[Any, ...]) -> bool:
    """Whether these are the arguments of `torch.lstm` or `torch.gru` for a tensor, and not for a packed sequence."""
    return len(args) == 9 and isinstance(args[3], bool)


def lstm(
    input: Tensor, hx: Any, params: Any, biases: bool, layers: int, dropout: float, train: bool, both: bool, first: bool, *, compact: bool
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The results of `torch.lstm`. PyTorch would take oneDNN's operator, and its setting for this is one for all threads."""
    if compact and _is_taken(input, hx, params, biases):
        out, (h, c) = _stacked(torch.ops.lmsc.lstm, input, hx, params, biases, layers, dropout, train, both, first)
        return out, h, c
    from torch._decomp import decompositions as d

    cells = d.gather_params(params, biases, hx[0].size(2) != hx[1].size(2))
    hidden = list(zip(hx[0], hx[1]))
    out, last = d._rnn_helper(input, hidden, cells, biases, layers, dropout, train, both, first, d.one_layer_lstm)
    h, c = zip(*last)
    return out, torch.stack(h, 0), torch.stack(c, 0)


def gru(
    input: Tensor, hx: Tensor, params: Any, biases: bool, layers: int, dropout: float, train: bool, both: bool, first: bool, *, compact: bool
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The results of `torch.gru`."""
    if compact and _is_taken(input, [hx], params, biases):
        out, (h,) = _stacked(torch.ops.lmsc.gru, input, [hx], params, biases, layers, dropout, train, both, first)
        return out, h
    return torch.gru(input, hx, params, biases, layers, dropout, train, both, first)


def _is_taken(input: Tensor, states: Any, params: Any, biases: bool) -> bool:
    """Whether the operators take the operands: single precision, no projections of states, and something to compute."""
    tensors = [input, *states, *params]
    if torch.is_autocast_enabled("cpu") or any(t.dtype != torch.float32 or not t.numel() for t in tensors):
        return False
    return input.dim() == 3 and all(s.shape == states[0].shape for s in states) and params[1].shape[1] == states[0].shape[-1]


def _stacked(
    layer: Callable[..., Any], x: Tensor, states: Any, params: Any, biases: bool, layers: int, dropout: float, train: bool, both: bool,
    first: bool,
) -> tuple[Tensor, list[Tensor]]:  # fmt: skip
    """The results of the last layer, and the last states of all layers."""
    lasts: list[list[Tensor]] = [[] for _ in states]
    x = x.transpose(0, 1) if first else x
    each = 4 if biases else 2
    for k in range(layers):
        if k and train and dropout:
            x = torch.native_dropout(x, dropout, True)[0] if dropout < 1 else torch.zeros_like(x)
        results = []
        for direction in range(2 if both else 1):
            at = k * (2 if both else 1) + direction
            w, r, *bias = (_ordered(p, params[1].shape[1]) for p in params[at * each :][:each])
            b = torch.cat(bias, 1) if bias else None
            y, *last = layer(x, w, r, b, *(s[at].unsqueeze(0) for s in states), direction == 1)
            results.append(y.squeeze(1))
            for list_, state in zip(lasts, last):
                list_.append(state)
        x = torch.cat(results, -1) if both else results[0]
    return x.transpose(0, 1) if first else x, [torch.cat(last) for last in lasts]


def _ordered(weights: Tensor, hidden: int) -> Tensor:
    """Weights or biases of all gates in ONNX's order, as those of one direction."""
    gates = weights.split(hidden)
    return torch.cat([gates[k] for k in _ORDERS[len(gates)]]).unsqueeze(0)


def _order(x: Tensor, reverse: bool) -> range:
    return range(x.shape[0])[::-1] if reverse else range(x.shape[0])


def _in_steps(parts: list[Tensor], reverse: bool) -> Tensor:
    """Results of the steps in the order in which they were computed, as one tensor in the order of time."""
    return torch.stack(parts[::-1] if reverse else parts).unsqueeze(1)


def _lstm(
    x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, h: Tensor, c: Tensor, reverse: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Results of all steps, the last state and cell, and all cells and gates i, o, f, c after their activations."""
    bias = 0 if b is None else sum(b[0].chunk(2))
    h, c, kept = h[0], c[0], []
    for t in _order(x, reverse):
        *sigmoids, candidate = (x[t] @ w[0].T + h @ r[0].T + bias).chunk(4, -1)
        i, o, f = (g.sigmoid() for g in sigmoids)
        g = candidate.tanh()
        c = f * c + i * g
        h = o * c.tanh()
        kept.append((h, c, torch.cat([i, o, f, g], -1)))
    y, cells, gates = (_in_steps(list(parts), reverse) for parts in zip(*kept))
    return y, h.unsqueeze(0).clone(), c.unsqueeze(0).clone(), cells, gates


def _lstm_backward(
    dy: Tensor | None, dh: Tensor | None, dc: Tensor | None, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, h: Tensor, c: Tensor,
    y: Tensor, cells: Tensor, gates: Tensor, reverse: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    order = list(_order(x, reverse))
    dx, slopes = torch.empty_like(x), []
    dh, dc = (torch.zeros_like(h[0]) if d is None else d[0] for d in (dh, dc))
    for t, before in zip(order[::-1], [*order[-2::-1], None]):
        i, o, f, g = gates[t, 0].chunk(4, -1)
        dh = dh if dy is None else dh + dy[t, 0]
        cell = cells[t, 0].tanh()
        dc = dc + dh * o * (1 - cell * cell)
        c_before, h_before = (c[0], h[0]) if before is None else (cells[before, 0], y[before, 0])
        parts = dc * g * i * (1 - i), dh * cell * o * (1 - o), dc * c_before * f * (1 - f), dc * i * (1 - g * g)
        slope = torch.cat(parts, -1)
        dx[t] = slope @ w[0]
        dh, dc = slope @ r[0], dc * f
        slopes.append((slope, x[t], h_before))
    slope, inputs, hidden = (torch.cat(list(parts)) for parts in zip(*slopes))
    db = slope.sum(0).repeat(2)
    return dx, (slope.T @ inputs)[None], (slope.T @ hidden)[None], db[None], dh[None].clone(), dc[None].clone()


def _gru(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, h: Tensor, reverse: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Results of all steps, the last state, and all gates z, r, n after their activations."""
    hidden = h.shape[-1]
    of_w, of_r = (torch.zeros(w.shape[1]),) * 2 if b is None else b[0].chunk(2)
    h, kept = h[0], []
    for t in _order(x, reverse):
        inputs, states = x[t] @ w[0].T + of_w, h @ r[0].T + of_r
        z, reset = (inputs + states)[:, : 2 * hidden].sigmoid().chunk(2, -1)
        new = (inputs[:, 2 * hidden :] + reset * states[:, 2 * hidden :]).tanh()
        h = (1 - z) * new + z * h
        kept.append((h, torch.cat([z, reset, new], -1)))
    y, gates = (_in_steps(list(parts), reverse) for parts in zip(*kept))
    return y, h.unsqueeze(0).clone(), gates


def _gru_backward(
    dy: Tensor | None, dh: Tensor | None, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, h: Tensor, y: Tensor, gates: Tensor,
    reverse: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    order, hidden = list(_order(x, reverse)), h.shape[-1]
    dx, slopes = torch.empty_like(x), []
    of_r = torch.zeros(w.shape[1]) if b is None else b[0].chunk(2)[1]
    dh = torch.zeros_like(h[0]) if dh is None else dh[0]
    for t, before in zip(order[::-1], [*order[-2::-1], None]):
        z, reset, new = gates[t, 0].chunk(3, -1)
        dh = dh if dy is None else dh + dy[t, 0]
        last = h[0] if before is None else y[before, 0]
        inner = last @ r[0, 2 * hidden :].T + of_r[2 * hidden :]
        d_new = dh * (1 - z) * (1 - new * new)
        slope = torch.cat([dh * (last - new) * z * (1 - z), d_new * inner * reset * (1 - reset), d_new], -1)
        recurrent = torch.cat([slope[:, : 2 * hidden], d_new * reset], -1)
        dx[t] = slope @ w[0]
        dh = dh * z + recurrent @ r[0]
        slopes.append((slope, recurrent, x[t], last))
    slope, recurrent, inputs, states = (torch.cat(list(parts)) for parts in zip(*slopes))
    db = torch.cat([slope.sum(0), recurrent.sum(0)])
    return dx, (slope.T @ inputs)[None], (recurrent.T @ states)[None], db[None], dh[None].clone()


def _register(name: str, forward: Any, backward: Any, states: int, gates: int) -> None:
    """Registers a recurrent layer with `states` states, its gradient, and the gradient of that."""
    run_backward = getattr(torch.ops.lmsc, f"{name}_backward")
    operands = 4 + states

    def shapes(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, *rest: Any) -> tuple[Tensor, ...]:
        steps = x.new_empty([x.shape[0], 1, *rest[0].shape[1:]])
        kept = x.new_empty([*steps.shape[:-1], gates * steps.shape[-1]])
        return steps, *(torch.empty_like(s) for s in rest[:-1]), *([torch.empty_like(steps)] * (states - 1)), kept

    def backward_shapes(*args: Any) -> tuple[Tensor, ...]:
        x, w, r, _, *rest = args[1 + states :]
        return *(t.new_empty(t.shape) for t in (x, w, r)), w.new_empty([1, 2 * w.shape[1]]), *(s.new_empty(s.shape) for s in rest[:states])

    def keeps(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        *tensors, ctx.reverse = inputs
        ctx.save_for_backward(*tensors, output[0], *output[1 + states :])
        ctx.mark_non_differentiable(*output[1 + states :])
        ctx.set_materialize_grads(False)

    def gradient(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        given = grads[: 1 + states]
        if all(d is None for d in given):
            return (None,) * (operands + 1)
        dx, dw, dr, db, *others = run_backward(*given, *ctx.saved_tensors, ctx.reverse)
        return dx, dw, dr, None if ctx.saved_tensors[3] is None else db, *others, None

    def backward_keeps(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.reverse = inputs[-1]
        ctx.save_for_backward(*inputs[: 1 + states + operands])

    def backward_gradient(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        """The gradient of a gradient is that of its parts: results and gates are functions of the operands."""
        with torch.enable_grad():
            saved = [t if t is None or t.requires_grad else t.detach().requires_grad_() for t in ctx.saved_tensors]
            saved = [t if t is None else t.view_as(t) for t in saved]
            given, inputs = saved[: 1 + states], saved[1 + states :]
            results = forward(*inputs, ctx.reverse)[: 1 + states]
            pairs = [(y, d) for y, d in zip(results, given) if d is not None]
            wanted = [t for t in inputs if t is not None]
            firsts = torch.autograd.grad([y for y, _ in pairs], wanted, [d for _, d in pairs], create_graph=True, materialize_grads=True)
            if inputs[3] is None:
                grads = (*grads[:3], *grads[4:])
            of = [t for t in saved if t is not None]
            found = iter(torch.autograd.grad(firsts, of, grads, allow_unused=True))
        # Results, gates and the direction are no variables.
        return *(None if t is None else next(found) for t in saved), *([None] * (states + 2))

    LIBRARY.impl(name, forward, "CompositeExplicitAutograd")
    LIBRARY.impl(f"{name}_backward", backward, "CompositeExplicitAutograd")
    torch.library.register_fake(f"lmsc::{name}", shapes)
    torch.library.register_fake(f"lmsc::{name}_backward", backward_shapes)
    torch.library.register_autograd(f"lmsc::{name}", gradient, setup_context=keeps)
    torch.library.register_autograd(f"lmsc::{name}_backward", backward_gradient, setup_context=backward_keeps)


_register("lstm", _lstm, _lstm_backward, states=2, gates=4)
_register("gru", _gru, _gru_backward, states=1, gates=3)
