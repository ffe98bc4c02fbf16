//! `ai.lmsc.Attention` and its gradient, with their scores as tensors. Short floats are computed as `float`, as kernels do.

use lmsc_ir::{ElementType, TensorType};

use super::super::writer::Val;
use super::{Cx, Why, math};

/// Queries, keys and values, with the heads that share keys on an axis of their own.
struct Parts {
    q: Val,
    k: Val,
    v: Val,
    /// The products of queries and keys, times the scale, with the mask added: `[batch, groups, sharing, rows, keys]`.
    scores: Val,
    scale: f64,
}

/// The axis of the heads that share keys, and that of the keys.
const SHARING: usize = 2;
const KEYS: usize = 4;

impl Parts {
    /// Queries, keys and values are operands `first` to `first + 2`.
    fn of(cx: &mut Cx<'_>, first: usize, mask: usize) -> Result<Parts, Why> {
        let groups = cx.operand(first + 1)?.dims().get(1).copied().unwrap_or(0);
        let [q, k, v] = [0, 1, 2].map(|i| headed(cx, first + i, groups));
        let (q, k, v) = (q?, k?, v?);
        let scale = match cx.attribute("scale") {
            Some(_) => cx.float("scale")?,
            None => (1.0 / (*q.dims().last().unwrap_or(&1) as f32).sqrt()).into(),
        };
        let scores = math::product(cx, &q, &k, [false, true]);
        let scores = cx.with("multiply", &scores, scale);
        let mut parts = Parts { q, k, v, scores, scale };
        parts.mask(cx, mask, groups);
        parts.hide_behind(cx)?;
        Ok(parts)
    }

    /// The scores of keys that count, and -∞ for the others.
    fn only(&mut self, cx: &mut Cx<'_>, counts: &Val) {
        let counts = cx.w.broadcast(counts, self.scores.dims());
        let never = cx.splat(f64::NEG_INFINITY, &self.scores.ty);
        self.scores = cx.w.select(&counts, &self.scores, &never);
    }

    fn mask(&mut self, cx: &mut Cx<'_>, operand: usize, groups: u64) {
        let Some(mut mask) = cx.optional(operand) else { return };
        if let Some(at) = mask.rank().checked_sub(3) {
            let dims = mask.dims();
            let heads = if dims[at] == 1 { [1, 1] } else { [groups, dims[at] / groups.max(1)] };
            let dims = [&dims[..at], &heads, &dims[at + 1..]].concat();
            mask = cx.w.reshape(&mask, &dims);
        }
        if mask.element() == ElementType::Bool {
            return self.only(cx, &mask);
        }
        let mask = cx.w.convert(&mask, ElementType::Float);
        self.scores = cx.op("add", &self.scores, &mask);
    }

    fn hide_behind(&mut self, cx: &mut Cx<'_>) -> Result<(), Why> {
        if cx.flag("is_causal")? {
            let ty = TensorType::new(ElementType::Int64, &self.scores.dims()[KEYS - 1..]);
            let (rows, keys) = (cx.w.iota(&ty, 0), cx.w.iota(&ty, 1));
            let counts = cx.w.compare("LE", &keys, &rows);
            self.only(cx, &counts);
        }
        Ok(())
    }

    /// The exponentials of the scores, relative to the largest of their row, which is 0 where no score counts.
    fn exponentials(&self, cx: &mut Cx<'_>, maxima: &Val) -> Val {
        let shift = replaced(cx, maxima, f64::NEG_INFINITY, 0.0);
        let below = cx.op("subtract", &self.scores, &shift);
        cx.w.elementwise("exponential", &[&below])
    }

    fn weights(&self, cx: &mut Cx<'_>, exponentials: &Val, sums: &Val) -> Val {
        let divisor = replaced(cx, sums, 0.0, 1.0);
        cx.op("divide", exponentials, &divisor)
    }

    /// Gives the sum over the heads that share keys.
    fn give_shared(&self, cx: &mut Cx<'_>, index: usize, x: &Val) -> Result<(), Why> {
        let sum = cx.w.sum(x, &[SHARING]);
        give(cx, index, &sum)
    }
}

/// An operand `[batch, heads, rows, width]` as `[batch, groups, heads of a group, rows, width]`.
fn headed(cx: &mut Cx<'_>, operand: usize, groups: u64) -> Result<Val, Why> {
    let x = cx.operand(operand)?;
    let &[batch, heads, rows, width] = x.dims() else { return Err("its operands have no four axes".into()) };
    let Some(sharing) = heads.checked_div(groups) else { return Err("it has no heads".into()) };
    let x = cx.w.convert(&x, ElementType::Float);
    Ok(cx.w.reshape(&x, &[batch, groups, sharing, rows, width]))
}

/// The numbers of an operand `[batch, heads, rows]` as columns beside the scores.
fn column(cx: &mut Cx<'_>, operand: usize, scores: &Val) -> Result<Val, Why> {
    let x = cx.operand(operand)?;
    Ok(cx.w.reshape(&x, &[&scores.dims()[..KEYS], &[1]].concat()))
}

/// The tensor with one number replaced by another.
fn replaced(cx: &mut Cx<'_>, x: &Val, from: f64, to: f64) -> Val {
    let (from, to) = (cx.splat(from, &x.ty), cx.splat(to, &x.ty));
    let is = cx.w.compare("EQ", x, &from);
    cx.w.select(&is, &to, x)
}

/// Gives a result in its element type, if it is used.
fn give(cx: &mut Cx<'_>, index: usize, x: &Val) -> Result<(), Why> {
    let Some(ty) = cx.wanted(index) else { return Ok(()) };
    let x = cx.w.convert(x, ty.element);
    cx.give_if_wanted(index, &x)
}

/// `softmax(scale · Q Kᵀ + mask) V`, where rows in which no score counts are 0.
pub(super) fn attention(cx: &mut Cx<'_>) -> Result<(), Why> {
    let parts = Parts::of(cx, 0, 3)?;
    let lowest = cx.scalar(f64::NEG_INFINITY, ElementType::Float);
    let maxima = cx.w.reduce("maximum", &parts.scores, &lowest, &[KEYS]);
    let maxima = cx.kept(&maxima, parts.scores.dims(), &[KEYS]);
    let exponentials = parts.exponentials(cx, &maxima);
    let sums = cx.sum_kept(&exponentials, &[KEYS]);
    let weights = parts.weights(cx, &exponentials, &sums);
    let y = math::product(cx, &weights, &parts.v, [false, false]);
    for (index, result) in [y, maxima, sums].iter().enumerate() {
        give(cx, index, result)?;
    }
    Ok(())
}

/// `dV = Pᵀ dY`, and with `dS = scale · P ∘ (dY Vᵀ - Σ dY ∘ Y)`: `dQ = dS K`, `dK = dSᵀ Q`.
pub(super) fn attention_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let parts = Parts::of(cx, 1, 7)?;
    let groups = parts.k.dims()[1];
    let (dy, y) = (headed(cx, 0, groups)?, headed(cx, 4, groups)?);
    let (maxima, sums) = (column(cx, 5, &parts.scores)?, column(cx, 6, &parts.scores)?);
    let exponentials = parts.exponentials(cx, &maxima);
    let weights = parts.weights(cx, &exponentials, &sums);
    let each = cx.op("multiply", &dy, &y);
    let mean = cx.sum_kept(&each, &[KEYS]);
    let slope = math::product(cx, &dy, &parts.v, [false, true]);
    let slope = cx.op("subtract", &slope, &mean);
    let slope = cx.op("multiply", &weights, &slope);
    let slope = cx.with("multiply", &slope, parts.scale);
    let dq = math::product(cx, &slope, &parts.k, [false, false]);
    give(cx, 0, &dq)?;
    let dk = math::product(cx, &slope, &parts.q, [true, false]);
    parts.give_shared(cx, 1, &dk)?;
    let dv = math::product(cx, &weights, &dy, [true, false]);
    parts.give_shared(cx, 2, &dv)
}
