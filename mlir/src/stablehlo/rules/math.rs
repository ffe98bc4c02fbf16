//! Operators that compute numbers from numbers.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use lmsc_ir::Attr;

use super::{Cx, Why};
use crate::stablehlo::writer::Val;

/// Operators that are a single operation, on operands of one shape.
#[rustfmt::skip]
const SAME: &[(&str, &str)] = &[
    ("Abs", "abs"),
    ("Add", "add"),
    ("And", "and"),
    ("Ceil", "ceil"),
    ("Cos", "cosine"),
    ("Div", "divide"),
    ("Exp", "exponential"),
    ("Floor", "floor"),
    ("Log", "log"),
    ("Max", "maximum"),
    ("Mean", "add"),
    ("Min", "minimum"),
    ("Mul", "multiply"),
    ("Neg", "negate"),
    ("Not", "not"),
    ("Or", "or"),
    ("Round", "round_nearest_even"),
    ("Sigmoid", "logistic"),
    ("Sign", "sign"),
    ("Sin", "sine"),
    ("Sqrt", "sqrt"),
    ("Sub", "subtract"),
    ("Sum", "add"),
    ("Tanh", "tanh"),
    ("Xor", "xor"),
];

fn same(cx: &Cx<'_>) -> &'static str {
    let name = cx.node.op.name();
    SAME.iter().find(|row| row.0 == name).expect("operators with these rules have rows").1
}

pub(super) fn unary(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let y = cx.w.elementwise(same(cx), &[&x]);
    cx.give(0, y)
}

pub(super) fn binary(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (a, b) = (cx.operand(0)?, cx.operand(1)?);
    let y = cx.op(same(cx), &a, &b);
    cx.give(0, y)
}

pub(super) fn variadic(cx: &mut Cx<'_>) -> Result<(), Why> {
    let name = same(cx);
    let mut all = cx.all()?.into_iter();
    let count = all.len();
    let mut y = all.next().ok_or("it has no operand")?;
    for x in all {
        y = cx.op(name, &y, &x);
    }
    if cx.node.op.name() == "Mean" {
        y = cx.with("divide", &y, count as f64);
    }
    cx.give(0, y)
}

pub(super) fn compare(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (a, b) = (cx.operand(0)?, cx.operand(1)?);
    let direction = match cx.node.op.name() {
        "Equal" => "EQ",
        "Greater" => "GT",
        "GreaterOrEqual" => "GE",
        "Less" => "LT",
        _ => "LE",
    };
    let [a, b] = cx.alike(&a, &b);
    let y = cx.w.compare(direction, &a, &b);
    cx.give(0, y)
}

pub(super) fn select(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (condition, a, b) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    let dims = cx.ty(0)?.dims;
    let [condition, a, b] = [condition, a, b].map(|x| cx.w.broadcast(&x, &dims));
    let y = cx.w.select(&condition, &a, &b);
    cx.give(0, y)
}

pub(super) fn cast(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, ty) = (cx.operand(0)?, cx.ty(0)?);
    let y = cx.w.convert(&x, ty.element);
    cx.give(0, y)
}

pub(super) fn pow(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, exponent) = (cx.operand(0)?, cx.operand(1)?);
    let exponent = cx.w.convert(&exponent, x.element());
    let y = cx.op("power", &x, &exponent);
    cx.give(0, y)
}

/// A number that differs from itself is none.
pub(super) fn is_nan(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let y = cx.w.compare("NE", &x, &x);
    cx.give(0, y)
}

pub(super) fn hard_sigmoid(cx: &mut Cx<'_>) -> Result<(), Why> {
    let number = |name: &str| match cx.node.attribute(name) {
        Some(&Attr::Float(value)) => Some(f64::from(value.0)),
        _ => None,
    };
    let (alpha, beta) = (number("alpha").unwrap_or(0.2), number("beta").unwrap_or(0.5));
    let x = cx.operand(0)?;
    let scaled = cx.with("multiply", &x, alpha);
    let moved = cx.with("add", &scaled, beta);
    let raised = cx.with("maximum", &moved, 0.0);
    let y = cx.with("minimum", &raised, 1.0);
    cx.give(0, y)
}

pub(super) fn reciprocal(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let one = cx.splat(1.0, &x.ty);
    let y = cx.op("divide", &one, &x);
    cx.give(0, y)
}

pub(super) fn relu(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let y = cx.with("maximum", &x, 0.0);
    cx.give(0, y)
}

pub(super) fn erf(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let y = cx.w.erf(&x);
    cx.give(0, y)
}

/// `X · Φ(X)`, or its approximation by tanh.
pub(super) fn gelu(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let share = if cx.knows("approximate") && cx.text("approximate") == Some(b"tanh") {
        let square = cx.op("multiply", &x, &x);
        let cube = cx.op("multiply", &square, &x);
        let cube = cx.with("multiply", &cube, 0.044_715);
        let inner = cx.op("add", &x, &cube);
        let inner = cx.with("multiply", &inner, (2.0 / PI).sqrt());
        cx.w.elementwise("tanh", &[&inner])
    } else {
        let scaled = cx.with("multiply", &x, FRAC_1_SQRT_2);
        cx.w.erf(&scaled)
    };
    let share = cx.with("add", &share, 1.0);
    let half = cx.with("multiply", &x, 0.5);
    let y = cx.op("multiply", &half, &share);
    cx.give(0, y)
}

pub(super) fn clip(cx: &mut Cx<'_>) -> Result<(), Why> {
    let mut x = cx.operand(0)?;
    for (index, op) in [(1, "maximum"), (2, "minimum")] {
        if let Some(bound) = cx.optional(index) {
            x = cx.op(op, &x, &bound);
        }
    }
    if cx.node.attribute("min").is_some() || cx.node.attribute("max").is_some() {
        return Err("its bounds are attributes, as before version 11".into());
    }
    cx.give(0, x)
}

/// The axes of a reduction, from an operand or an attribute; all axes if there is neither.
fn axes(cx: &Cx<'_>, rank: usize) -> Result<Vec<usize>, Why> {
    let list = match (cx.optional(1), cx.ints("axes")) {
        (Some(_), _) => cx.list(1)?,
        (None, Some(axes)) => axes.to_vec(),
        (None, None) => Vec::new(),
    };
    if !list.is_empty() {
        return list.into_iter().map(|axis| cx.axis(axis, rank)).collect();
    }
    Ok(if cx.flag("noop_with_empty_axes")? { Vec::new() } else { (0..rank).collect() })
}

pub(super) fn reduce(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (mut x, ty) = (cx.operand(0)?, cx.ty(0)?);
    let axes = axes(cx, x.rank())?;
    let count: u64 = axes.iter().map(|&axis| x.dims()[axis]).product();
    let element = x.element();
    let reduced = match cx.node.op.name() {
        "ReduceMax" => {
            let lowest = cx.w.extreme(element, true);
            cx.w.reduce("maximum", &x, &lowest, &axes)
        }
        "ReduceMin" => {
            let highest = cx.w.extreme(element, false);
            cx.w.reduce("minimum", &x, &highest, &axes)
        }
        "ReduceProd" => {
            let one = cx.scalar(1.0, element);
            cx.w.reduce("multiply", &x, &one, &axes)
        }
        name => {
            if name == "ReduceSumSquare" {
                x = cx.op("multiply", &x, &x);
            }
            cx.w.sum(&x, &axes)
        }
    };
    let mut y = cx.w.reshape(&reduced, &ty.dims);
    if cx.node.op.name() == "ReduceMean" {
        y = cx.with("divide", &y, count as f64);
    }
    cx.give(0, y)
}

/// Batched matrix products; leading dimensions that one operand lacks are broadcast.
pub(super) fn matmul(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (mut a, mut b, ty) = (cx.operand(0)?, cx.operand(1)?, cx.ty(0)?);
    if a.rank() == 1 {
        a = cx.w.reshape(&a, &[1, a.dims()[0]]);
    }
    if b.rank() == 1 {
        b = cx.w.reshape(&b, &[b.dims()[0], 1]);
    }
    let y = product(cx, &a, &b, [false, false]);
    let y = cx.w.reshape(&y, &ty.dims);
    cx.give(0, y)
}

/// Batched matrix products, with some operands transposed.
pub(super) fn product(cx: &mut Cx<'_>, a: &Val, b: &Val, exchanged: [bool; 2]) -> Val {
    let (m, n) = (a.rank() - 2, b.rank() - 2);
    let inner = [usize::from(!exchanged[0]), usize::from(exchanged[1])];
    if n == 0 && !exchanged[0] {
        return cx.w.dot(a, b, [&[], &[]], [&[m + 1], &inner[1..]]);
    }
    let batch = super::common(&a.dims()[..m], &b.dims()[..n]);
    let a = cx.w.broadcast(a, &[&batch[..], &a.dims()[m..]].concat());
    let b = cx.w.broadcast(b, &[&batch[..], &b.dims()[n..]].concat());
    let axes: Vec<usize> = (0..batch.len()).collect();
    cx.w.dot(&a, &b, [&axes, &axes], [&[axes.len() + inner[0]], &[axes.len() + inner[1]]])
}

/// `alpha · A · B + beta · C`.
pub(super) fn gemm(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (a, b) = (cx.operand(0)?, cx.operand(1)?);
    let inner = [usize::from(!cx.flag("transA")?), usize::from(cx.flag("transB")?)];
    let mut y = cx.w.dot(&a, &b, [&[], &[]], [&inner[..1], &inner[1..]]);
    let (alpha, beta) = (cx.float("alpha")?, cx.float("beta")?);
    if alpha != 1.0 {
        y = cx.with("multiply", &y, alpha);
    }
    if let Some(mut c) = cx.optional(2) {
        if beta != 1.0 {
            c = cx.with("multiply", &c, beta);
        }
        y = cx.op("add", &y, &c);
    }
    cx.give(0, y)
}

/// The logarithm of the softmax along an axis.
fn log_softmax_along(cx: &mut Cx<'_>, x: &Val, axis: usize) -> Val {
    let lowest = cx.w.extreme(x.element(), true);
    let largest = cx.w.reduce("maximum", x, &lowest, &[axis]);
    let largest = cx.kept(&largest, x.dims(), &[axis]);
    let shifted = cx.op("subtract", x, &largest);
    let exp = cx.w.elementwise("exponential", &[&shifted]);
    let sum = cx.sum_kept(&exp, &[axis]);
    let log = cx.w.elementwise("log", &[&sum]);
    cx.op("subtract", &shifted, &log)
}

/// The axis of a softmax; before version 13 all axes from it on were flattened.
fn softmax_axis(cx: &Cx<'_>, rank: usize) -> Result<usize, Why> {
    let axis = cx.axis(cx.int("axis")?, rank)?;
    if cx.version < 13 && axis + 1 != rank {
        return Err("before version 13 it flattens all axes from `axis` on".into());
    }
    Ok(axis)
}

pub(super) fn log_softmax(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let axis = softmax_axis(cx, x.rank())?;
    let y = log_softmax_along(cx, &x, axis);
    cx.give(0, y)
}

pub(super) fn softmax(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let axis = softmax_axis(cx, x.rank())?;
    let lowest = cx.w.extreme(x.element(), true);
    let largest = cx.w.reduce("maximum", &x, &lowest, &[axis]);
    let largest = cx.kept(&largest, x.dims(), &[axis]);
    let shifted = cx.op("subtract", &x, &largest);
    let exp = cx.w.elementwise("exponential", &[&shifted]);
    let sum = cx.sum_kept(&exp, &[axis]);
    let y = cx.op("divide", &exp, &sum);
    cx.give(0, y)
}

/// The negative log-probability of each label, and all log-probabilities.
pub(super) fn cross_entropy(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, labels) = (cx.operand(0)?, cx.operand(1)?);
    if cx.optional(2).is_some() {
        return Err("there is no rule for weights of classes".into());
    }
    let log = log_softmax_along(cx, &x, 1);
    let hot = cx.hot(&labels, &x.ty, 1);
    let zeros = cx.splat(0.0, &x.ty);
    let chosen = cx.w.select(&hot, &log, &zeros);
    let chosen = cx.w.sum(&chosen, &[1]);
    let mut losses = cx.w.elementwise("negate", &[&chosen]);
    let all: Vec<usize> = (0..labels.rank()).collect();
    let mut count = None;
    if let Some(&Attr::Int(ignored)) = cx.node.attribute("ignore_index") {
        let ignored = cx.splat(ignored as f64, &labels.ty);
        let counts = cx.w.compare("NE", &labels, &ignored);
        let counts = cx.w.convert(&counts, x.element());
        losses = cx.op("multiply", &losses, &counts);
        count = Some(counts);
    }
    let loss = match cx.text("reduction").unwrap_or_default() {
        b"none" => losses,
        b"sum" => cx.w.sum(&losses, &all),
        _ => {
            let sum = cx.w.sum(&losses, &all);
            match count {
                Some(counts) => {
                    let count = cx.w.sum(&counts, &all);
                    cx.op("divide", &sum, &count)
                }
                None => cx.with("divide", &sum, labels.dims().iter().product::<u64>() as f64),
            }
        }
    };
    cx.give(0, loss)?;
    if cx.wanted(1).is_some() {
        cx.give(1, log)?;
    }
    Ok(())
}

/// `X - mean`, the mean and the variance along some dimensions, which are kept.
pub(super) fn moments(cx: &mut Cx<'_>, x: &Val, axes: &[usize]) -> [Val; 3] {
    let count: u64 = axes.iter().map(|&axis| x.dims()[axis]).product();
    let sum = cx.sum_kept(x, axes);
    let mean = cx.with("divide", &sum, count as f64);
    let centred = cx.op("subtract", x, &mean);
    let square = cx.op("multiply", &centred, &centred);
    let sum = cx.sum_kept(&square, axes);
    let variance = cx.with("divide", &sum, count as f64);
    [centred, mean, variance]
}

/// `1 / √(variance + epsilon)`.
pub(super) fn inverse(cx: &mut Cx<'_>, variance: &Val) -> Result<Val, Why> {
    let epsilon = cx.float("epsilon")?;
    let sum = cx.with("add", variance, epsilon);
    Ok(cx.w.elementwise("rsqrt", &[&sum]))
}

pub(super) fn layer_norm(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, scale) = (cx.operand(0)?, cx.operand(1)?);
    let axis = cx.axis(cx.int("axis")?, x.rank())?;
    let axes: Vec<usize> = (axis..x.rank()).collect();
    let [centred, mean, variance] = moments(cx, &x, &axes);
    let inverse = inverse(cx, &variance)?;
    let y = cx.op("multiply", &centred, &inverse);
    let mut y = cx.op("multiply", &y, &scale);
    if let Some(bias) = cx.optional(2) {
        y = cx.op("add", &y, &bias);
    }
    cx.give(0, y)?;
    for (index, val) in [(1, mean), (2, inverse)] {
        cx.give_if_wanted(index, &val)?;
    }
    Ok(())
}

/// A value for each channel, reshaped to broadcast with tensors of this rank.
pub(super) fn beside(cx: &mut Cx<'_>, channels: &Val, rank: usize) -> Val {
    let mut dims = vec![1; rank];
    dims[1] = channels.dims()[0];
    cx.w.reshape(channels, &dims)
}

pub(super) fn batch_norm(cx: &mut Cx<'_>) -> Result<(), Why> {
    let operands = cx.all()?;
    let [x, scale, bias, mean, variance] = &operands[..] else {
        return Err("it has other than five operands".into());
    };
    let rank = x.rank();
    if cx.version < 7 || cx.version < 14 && cx.node.results.len() > 1 {
        return Err("before version 14 of ONNX its results say whether it trains".into());
    }
    let (mean, variance) = if !cx.flag("training_mode")? {
        (beside(cx, mean, rank), beside(cx, variance, rank))
    } else {
        let axes: Vec<usize> = (0..rank).filter(|&axis| axis != 1).collect();
        let [_, level, spread] = moments(cx, x, &axes);
        let momentum = cx.float("momentum")?;
        for (index, running, now) in [(1, mean, &level), (2, variance, &spread)] {
            let kept = cx.with("multiply", running, momentum);
            let now = cx.w.reshape(now, running.dims());
            let now = cx.with("multiply", &now, 1.0 - momentum);
            let new = cx.op("add", &kept, &now);
            cx.give(index, new)?;
        }
        (level, spread)
    };
    let inverse = inverse(cx, &variance)?;
    let [scale, bias] = [scale, bias].map(|channels| beside(cx, channels, rank));
    let centred = cx.op("subtract", x, &mean);
    let factor = cx.op("multiply", &inverse, &scale);
    let y = cx.op("multiply", &centred, &factor);
    let y = cx.op("add", &y, &bias);
    cx.give(0, y)
}
