//! Gradients, and other operators that occur only in training: those of onnxruntime and our own.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use lmsc_ir::{Attr, ElementType, TensorType};

use super::{Cx, Why, index, math};
use crate::stablehlo::writer::Val;

/// `dY` where `Y` is positive, else 0.
pub(super) fn relu_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, y) = (cx.operand(0)?, cx.operand(1)?);
    let zeros = cx.splat(0.0, &y.ty);
    let positive = cx.w.compare("GT", &y, &zeros);
    let dx = cx.w.select(&positive, &dy, &zeros);
    cx.give(0, dx)
}

/// `1 - Y²`.
fn one_minus_square(cx: &mut Cx<'_>, y: &Val) -> Val {
    let one = cx.splat(1.0, &y.ty);
    let square = cx.op("multiply", y, y);
    cx.op("subtract", &one, &square)
}

/// `dY · (1 - Y²)`.
pub(super) fn tanh_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, y) = (cx.operand(0)?, cx.operand(1)?);
    let slope = one_minus_square(cx, &y);
    let dx = cx.op("multiply", &dy, &slope);
    cx.give(0, dx)
}

/// `dY · Y · (1 - Y)`.
pub(super) fn sigmoid_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, y) = (cx.operand(0)?, cx.operand(1)?);
    let one = cx.splat(1.0, &y.ty);
    let rest = cx.op("subtract", &one, &y);
    let slope = cx.op("multiply", &y, &rest);
    let dx = cx.op("multiply", &dy, &slope);
    cx.give(0, dx)
}

/// `dY · (Φ(X) + X · φ(X))`.
pub(super) fn gelu_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, x) = (cx.operand(0)?, cx.operand(1)?);
    let scaled = cx.with("multiply", &x, FRAC_1_SQRT_2);
    let erf = cx.w.erf(&scaled);
    let sum = cx.with("add", &erf, 1.0);
    let share = cx.with("multiply", &sum, 0.5);
    let square = cx.op("multiply", &x, &x);
    let exponent = cx.with("multiply", &square, -0.5);
    let bell = cx.w.elementwise("exponential", &[&exponent]);
    let bell = cx.with("multiply", &bell, 1.0 / (2.0 * PI).sqrt());
    let rest = cx.op("multiply", &x, &bell);
    let slope = cx.op("add", &share, &rest);
    let dx = cx.op("multiply", &dy, &slope);
    cx.give(0, dx)
}

/// √(2/π), and the factor of the cube, of the approximation of Gelu by tanh.
fn fast_gelu_factors() -> (f64, f64) {
    let root = (2.0 / PI).sqrt();
    (root, root * 0.044_715)
}

/// `X`, its square, and `tanh(√(2/π) · (X + 0.044715 · X³))`; X is the operand `index`, plus the operand `index + 1` if it is
/// given.
fn fast_gelu_parts(cx: &mut Cx<'_>, index: usize) -> Result<[Val; 3], Why> {
    let mut x = cx.operand(index)?;
    if let Some(bias) = cx.optional(index + 1) {
        x = cx.op("add", &x, &bias);
    }
    let (linear, cubic) = fast_gelu_factors();
    let square = cx.op("multiply", &x, &x);
    let factor = cx.with("multiply", &square, cubic);
    let factor = cx.with("add", &factor, linear);
    let inner = cx.op("multiply", &x, &factor);
    let tanh = cx.w.elementwise("tanh", &[&inner]);
    Ok([x, square, tanh])
}

pub(super) fn fast_gelu(cx: &mut Cx<'_>) -> Result<(), Why> {
    let [x, _, tanh] = fast_gelu_parts(cx, 0)?;
    let share = cx.with("add", &tanh, 1.0);
    let half = cx.with("multiply", &x, 0.5);
    let y = cx.op("multiply", &half, &share);
    cx.give(0, y)
}

/// `dY · ½ · (1 + t + X · (1 - t²) · (√(2/π) + 3 · c · X²))` with t and c of the approximation.
pub(super) fn fast_gelu_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let dy = cx.operand(0)?;
    let [x, square, tanh] = fast_gelu_parts(cx, 1)?;
    let (linear, cubic) = fast_gelu_factors();
    let inner = cx.with("multiply", &square, 3.0 * cubic);
    let inner = cx.with("add", &inner, linear);
    let slope = one_minus_square(cx, &tanh);
    let rest = cx.op("multiply", &x, &slope);
    let rest = cx.op("multiply", &rest, &inner);
    let sum = cx.with("add", &tanh, 1.0);
    let sum = cx.op("add", &sum, &rest);
    let half = cx.with("multiply", &sum, 0.5);
    let dx = cx.op("multiply", &dy, &half);
    cx.give(0, dx)
}

/// `Y · (dY - Σ dY · Y)`.
pub(super) fn softmax_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, y) = (cx.operand(0)?, cx.operand(1)?);
    let axis = cx.axis(cx.int("axis")?, y.rank())?;
    let product = cx.op("multiply", &dy, &y);
    let sum = cx.sum_kept(&product, &[axis]);
    let rest = cx.op("subtract", &dy, &sum);
    let dx = cx.op("multiply", &y, &rest);
    cx.give(0, dx)
}

/// `dY - exp(Y) · Σ dY`.
pub(super) fn log_softmax_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, y) = (cx.operand(0)?, cx.operand(1)?);
    let axis = cx.axis(cx.int("axis")?, y.rank())?;
    let sum = cx.sum_kept(&dy, &[axis]);
    let probability = cx.w.elementwise("exponential", &[&y]);
    let share = cx.op("multiply", &probability, &sum);
    let dx = cx.op("subtract", &dy, &share);
    cx.give(0, dx)
}

/// `alpha · A · B`, with A or B transposed first if the attributes say so.
pub(super) fn fused_matmul(cx: &mut Cx<'_>) -> Result<(), Why> {
    if cx.flag("transBatchA")? || cx.flag("transBatchB")? {
        return Err("there is no rule for exchanged batches".into());
    }
    let (a, b) = (cx.operand(0)?, cx.operand(1)?);
    if a.rank() < 2 || b.rank() < 2 {
        return Err("there is no rule for vectors".into());
    }
    let exchanged = [cx.flag("transA")?, cx.flag("transB")?];
    let mut y = math::product(cx, &a, &b, exchanged);
    let alpha = cx.float("alpha")?;
    if alpha != 1.0 {
        y = cx.with("multiply", &y, alpha);
    }
    cx.give(0, y)
}

/// `Concat`, and the extents of the parts.
pub(super) fn concat(cx: &mut Cx<'_>) -> Result<(), Why> {
    if let Some(ty) = cx.wanted(1) {
        let parts = cx.all()?;
        let axis = cx.axis(cx.int("axis")?, parts.first().map_or(0, Val::rank))?;
        let extents: Vec<i64> = parts.iter().map(|part| part.dims()[axis] as i64).collect();
        let extents = cx.w.integers(&ty, &extents);
        cx.give(1, extents)?;
    }
    index::concat(cx)
}

/// `(X - mean) · 1/σ`.
fn normalized(cx: &mut Cx<'_>, x: &Val, mean: &Val, inverse: &Val) -> Val {
    let centred = cx.op("subtract", x, mean);
    cx.op("multiply", &centred, inverse)
}

/// `1/σ · (g - mean(g) - x̂ · mean(g · x̂))` with `g = dY · scale`; dscale and dbias are sums over rows.
pub(super) fn layer_norm_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let operands = cx.all()?;
    let [dy, x, scale, mean, inverse] = &operands[..] else {
        return Err("it has other than five operands".into());
    };
    let axis = cx.axis(cx.int("axis")?, x.rank())?;
    let across: Vec<usize> = (axis..x.rank()).collect();
    let rows: Vec<usize> = (0..axis).collect();
    let count = across.iter().map(|&axis| x.dims()[axis]).product::<u64>() as f64;
    let x = normalized(cx, x, mean, inverse);
    if cx.wanted(0).is_some() {
        let g = cx.op("multiply", dy, scale);
        let level = cx.sum_kept(&g, &across);
        let level = cx.with("divide", &level, count);
        let product = cx.op("multiply", &g, &x);
        let about = cx.sum_kept(&product, &across);
        let about = cx.with("divide", &about, count);
        let lean = cx.op("multiply", &x, &about);
        let rest = cx.op("subtract", &g, &level);
        let rest = cx.op("subtract", &rest, &lean);
        let dx = cx.op("multiply", &rest, inverse);
        cx.give(0, dx)?;
    }
    for index in [1, 2] {
        let Some(ty) = cx.wanted(index) else { continue };
        let each = if index == 1 { cx.op("multiply", dy, &x) } else { dy.clone() };
        let sum = cx.w.sum(&each, &rows);
        let sum = cx.w.reshape(&sum, &ty.dims);
        cx.give(index, sum)?;
    }
    Ok(())
}

fn all_but_channels(rank: usize) -> Vec<usize> {
    (0..rank).filter(|&axis| axis != 1).collect()
}

/// In training: normalizes by the statistics of the batch, and updates the running ones unless they are left out, as in a
/// recomputed node.
pub(super) fn batch_norm(cx: &mut Cx<'_>) -> Result<(), Why> {
    if cx.int("training_mode")? != 1 {
        return Err("it does not train".into());
    }
    let (x, scale, bias) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    let [centred, level, spread] = math::moments(cx, &x, &all_but_channels(x.rank()));
    let inverse = math::inverse(cx, &spread)?;
    let [scale, bias] = [scale, bias].map(|channels| math::beside(cx, &channels, x.rank()));
    let factor = cx.op("multiply", &inverse, &scale);
    let y = cx.op("multiply", &centred, &factor);
    let y = cx.op("add", &y, &bias);
    cx.give(0, y)?;
    let momentum = cx.float("momentum")?;
    for (index, now) in [(1, &level), (2, &spread)] {
        let Some(running) = cx.optional(index + 2) else { continue };
        let kept = cx.with("multiply", &running, momentum);
        let now = cx.w.reshape(now, running.dims());
        let now = cx.with("multiply", &now, 1.0 - momentum);
        let new = cx.op("add", &kept, &now);
        cx.give(index, new)?;
    }
    for (index, saved) in [(3, level), (4, inverse)] {
        cx.give_if_wanted(index, &saved)?;
    }
    Ok(())
}

/// `scale/σ · (dY - mean(dY) - x̂ · mean(dY · x̂))`.
pub(super) fn batch_norm_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let operands = cx.all()?;
    let [dy, x, scale, mean, inverse] = &operands[..] else {
        return Err("it has other than five operands".into());
    };
    let others = all_but_channels(x.rank());
    let count = others.iter().map(|&axis| x.dims()[axis]).product::<u64>() as f64;
    let [mean, inverse, scale] = [mean, inverse, scale].map(|value| math::beside(cx, value, x.rank()));
    let x = normalized(cx, x, &mean, &inverse);
    let product = cx.op("multiply", dy, &x);
    let dscale = cx.sum_kept(&product, &others);
    let dbias = cx.sum_kept(dy, &others);
    if cx.wanted(0).is_some() {
        let about = cx.with("divide", &dscale, count);
        let level = cx.with("divide", &dbias, count);
        let lean = cx.op("multiply", &x, &about);
        let rest = cx.op("subtract", dy, &level);
        let rest = cx.op("subtract", &rest, &lean);
        let factor = cx.op("multiply", &scale, &inverse);
        let dx = cx.op("multiply", &rest, &factor);
        cx.give(0, dx)?;
    }
    for (index, sum) in [(1, dscale), (2, dbias)] {
        cx.give_if_wanted(index, &sum)?;
    }
    Ok(())
}

/// `X · scale`, or `X / scale` with `scale_down`.
pub(super) fn scale(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, scale) = (cx.operand(0)?, cx.operand(1)?);
    let scale = cx.w.convert(&scale, x.element());
    let scale = cx.w.reshape(&scale, &[]);
    let op = if cx.flag("scale_down")? { "divide" } else { "multiply" };
    let y = cx.op(op, &x, &scale);
    cx.give(0, y)
}

/// Along the first axis: rows of dY, added at the indices.
pub(super) fn gather_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (indices, dy, ty) = (cx.operand(1)?, cx.operand(2)?, cx.ty(0)?);
    if cx.axis(cx.int("axis")?, ty.dims.len())? != 0 {
        return Err("there is a rule for the first axis only".into());
    }
    let indices = cx.wrapped(&indices, ty.dims[0]);
    let batch = indices.rank();
    let rows = cx.w.reshape(&indices, &[indices.dims(), &[1]].concat());
    let (zeros, dy) = cx.zeros_beside(&dy, &ty);
    let window: Vec<usize> = (batch..dy.rank()).collect();
    let numbers = format!(
        "update_window_dims = {window:?}, inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = {batch}"
    );
    let dx = cx.w.scatter([&zeros, &rows, &dy], &numbers, Some("add"));
    cx.give(0, dx)
}

/// `(exp(log-probabilities) - one-hot(labels)) · dloss` where the label counts, else 0; divided by the number of labels that
/// count if the loss is a mean.
pub(super) fn cross_entropy_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dloss, log, labels) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    if cx.optional(3).is_some() {
        return Err("there is no rule for weights of classes".into());
    }
    let beside = [&log.dims()[..1], &[1], &log.dims()[2..]].concat();
    let mut counts = None;
    if let Some(&Attr::Int(ignored)) = cx.node.attribute("ignore_index") {
        let ignored = cx.splat(ignored as f64, &labels.ty);
        let counted = cx.w.compare("NE", &labels, &ignored);
        counts = Some(cx.w.convert(&counted, log.element()));
    }
    let factor = match (cx.text("reduction").unwrap_or_default(), &counts) {
        (b"none", _) => cx.w.reshape(&dloss, &beside),
        (b"sum", _) => dloss,
        (_, None) => cx.with("divide", &dloss, labels.dims().iter().product::<u64>() as f64),
        (_, Some(counts)) => {
            let all: Vec<usize> = (0..labels.rank()).collect();
            let count = cx.w.sum(counts, &all);
            // If no label counts, all gradients are zero.
            let count = cx.with("maximum", &count, 1.0);
            cx.op("divide", &dloss, &count)
        }
    };
    let probability = cx.w.elementwise("exponential", &[&log]);
    let hot = cx.hot(&labels, &log.ty, 1);
    let hot = cx.w.convert(&hot, log.element());
    let mut rest = cx.op("subtract", &probability, &hot);
    if let Some(counts) = counts {
        let counts = cx.w.reshape(&counts, &beside);
        rest = cx.op("multiply", &rest, &counts);
    }
    let dx = cx.op("multiply", &rest, &factor);
    cx.give(0, dx)
}

/// The sum of buffer and gradient, or the gradient if the flag is set; and a flag that something was added.
pub(super) fn accumulate(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (buffer, gradient) = (cx.operand(0)?, cx.operand(1)?);
    let mut sum = cx.op("add", &buffer, &gradient);
    if let Some(reset) = cx.optional(2) {
        let reset = cx.w.reshape(&reset, &[]);
        let reset = cx.w.broadcast(&reset, sum.dims());
        sum = cx.w.select(&reset, &gradient, &sum);
    }
    cx.give(1, sum)?;
    if let Some(ty) = cx.wanted(0) {
        let flag = cx.splat(1.0, &ty);
        cx.give(0, flag)?;
    }
    Ok(())
}

/// A number given as a tensor of one element.
fn number(cx: &mut Cx<'_>, index: usize) -> Result<Val, Why> {
    let value = cx.operand(index)?;
    Ok(cx.w.reshape(&value, &[]))
}

/// `w - rate · g`.
pub(super) fn sgd(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (rate, w, g) = (number(cx, 0)?, cx.operand(1)?, cx.operand(2)?);
    let change = cx.op("multiply", &g, &rate);
    let new = cx.op("subtract", &w, &change);
    cx.give(0, new)
}

/// `1 - base^step`, or 1 without bias correction.
fn correction(cx: &mut Cx<'_>, base: f64, step: &Val, corrects: bool) -> Val {
    let one = cx.scalar(1.0, ElementType::Float);
    if !corrects {
        return one;
    }
    let base = cx.scalar(base, ElementType::Float);
    let power = cx.op("power", &base, step);
    cx.op("subtract", &one, &power)
}

/// `kept · old + (1 - kept) · new`.
fn following(cx: &mut Cx<'_>, old: &Val, new: &Val, kept: f64) -> Val {
    let old = cx.with("multiply", old, kept);
    let new = cx.with("multiply", new, 1.0 - kept);
    cx.op("add", &old, &new)
}

/// AdamW of one parameter: moments, and a step that is divided by the root of the second one.
pub(super) fn adamw(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (rate, step) = (number(cx, 0)?, number(cx, 1)?);
    let (w, g, m, v) = (cx.operand(2)?, cx.operand(3)?, cx.operand(4)?, cx.operand(5)?);
    let (alpha, beta) = (cx.float("alpha")?, cx.float("beta")?);
    let (epsilon, decay) = (cx.float("epsilon")?, cx.float("weight_decay")?);
    let corrects = cx.flag("correct_bias")?;
    let step = cx.w.convert(&step, ElementType::Float);
    let first = correction(cx, alpha, &step, corrects);
    let second = correction(cx, beta, &step, corrects);
    let root = cx.w.elementwise("sqrt", &[&second]);

    let m = following(cx, &m, &g, alpha);
    let square = cx.op("multiply", &g, &g);
    let v = following(cx, &v, &square, beta);

    let size = cx.w.elementwise("sqrt", &[&v]);
    let fading = cx.with("multiply", &rate, decay);
    let one = cx.splat(1.0, &TensorType::new(ElementType::Float, []));
    let fading = cx.op("subtract", &one, &fading);
    let new = if !cx.flag("adam_mode")? {
        let rate = cx.op("divide", &rate, &first);
        let size = cx.op("divide", &size, &root);
        let size = cx.with("add", &size, epsilon);
        let change = cx.op("divide", &m, &size);
        let change = cx.op("multiply", &change, &rate);
        let faded = cx.op("multiply", &w, &fading);
        cx.op("subtract", &faded, &change)
    } else {
        let rate = cx.op("multiply", &rate, &root);
        let rate = cx.op("divide", &rate, &first);
        let size = cx.with("add", &size, epsilon);
        let change = cx.op("divide", &m, &size);
        let change = cx.op("multiply", &change, &rate);
        let changed = cx.op("subtract", &w, &change);
        cx.op("multiply", &changed, &fading)
    };
    cx.give(0, new)?;
    cx.give(1, m)?;
    cx.give(2, v)
}
