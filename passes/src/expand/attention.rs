//! `ai.lmsc.Attention` and its gradient, with their scores as tensors.

use lmsc_ir::{Attr, ElementType, TensorType, ValueId};

use super::builder::Builder;

/// The operands, with the heads that share keys on an axis of their own if there are several.
struct Parts {
    q: ValueId,
    k: ValueId,
    v: ValueId,
    /// The products of queries and keys, times the scale, with the mask added.
    scores: ValueId,
    scale: f32,
    /// Extents of `[batch, heads, rows, keys]`.
    extents: [u64; 4],
    /// Heads of keys, and number of heads that share them.
    groups: [u64; 2],
}

impl Parts {
    /// Queries, keys and values are operands `first` to `first + 2`. `None` if a tensor is empty.
    fn of(b: &mut Builder<'_>, first: usize, mask: usize) -> Option<Parts> {
        let [q, k, v] = [0, 1, 2].map(|i| b.floats(first + i));
        let (q, k, v) = (q?, k?, v?);
        let (&[batch, heads, rows, width], &[_, groups, keys, _]) = (&*b.dims(q), &*b.dims(k)) else {
            return None;
        };
        let empty = [b.dims(q), b.dims(k), b.dims(v)].concat().contains(&0);
        let sharing = heads.checked_div(groups).filter(|_| !empty)?;
        let mut parts = Parts {
            q,
            k,
            v,
            scores: q,
            scale: if b.has("scale") { b.float("scale")? } else { 1.0 / (width as f32).sqrt() },
            extents: [batch, heads, rows, keys],
            groups: [groups, sharing],
        };
        parts.q = parts.grouped(b, q)?;
        if sharing > 1 {
            for shared in [&mut parts.k, &mut parts.v] {
                let [batch, groups, keys, width] = b.dims(*shared)[..] else { return None };
                *shared = b.reshape(*shared, &[batch, groups, 1, keys, width])?;
            }
        }
        let turned = swapped(b, parts.k)?;
        let scores = b.product(parts.q, turned)?;
        let scores = b.scaled(scores, parts.scale)?;
        let scores = parts.masked(b, scores, mask)?;
        parts.scores = parts.causal(b, scores)?;
        Some(parts)
    }

    /// A tensor `[batch, heads, …]` with an axis for the heads that share keys.
    fn grouped(&self, b: &mut Builder<'_>, x: ValueId) -> Option<ValueId> {
        let dims = b.dims(x);
        match self.groups {
            [_, 1] => Some(x),
            [groups, sharing] => b.reshape(x, &[&[dims[0], groups, sharing], &dims[2..]].concat()),
        }
    }

    /// The scores with the mask added.
    fn masked(&self, b: &mut Builder<'_>, scores: ValueId, operand: usize) -> Option<ValueId> {
        let Some(mut mask) = b.operand(operand) else { return Some(scores) };
        let (ty, [groups, sharing]) = (b.ty(mask)?, self.groups);
        if sharing > 1 && ty.dims.len() > 2 {
            let at = ty.dims.len() - 3;
            let heads = if ty.dims[at] == 1 { [1, 1] } else { [groups, sharing] };
            mask = b.reshape(mask, &[&ty.dims[..at], &heads, &ty.dims[at + 1..]].concat())?;
        }
        match ty.element {
            ElementType::Float => b.binary("Add", scores, mask),
            ElementType::Bool => {
                let (never, ty) = (b.scalar(f32::NEG_INFINITY), b.ty(scores)?);
                Some(b.add("Where", [], &[mask, scores, never], ty))
            }
            _ => None,
        }
    }

    /// The scores without those of keys behind their query.
    fn causal(&self, b: &mut Builder<'_>, scores: ValueId) -> Option<ValueId> {
        if !b.flag("is_causal")? {
            return Some(scores);
        }
        let [_, _, rows, keys] = self.extents;
        let [queries, keys] = [rows, keys].map(|extent| {
            let ends = [0, extent as i64, 1].map(|end| b.integer(end));
            b.add("Range", [], &ends, TensorType::new(ElementType::Int64, [extent]))
        });
        let queries = b.reshape(queries, &[rows, 1])?;
        let behind = b.binary("Greater", keys, queries)?;
        let (never, ty) = (b.scalar(f32::NEG_INFINITY), b.ty(scores)?);
        Some(b.add("Where", [], &[behind, never, scores], ty))
    }

    /// The exponentials of the scores, relative to the largest one of their row.
    fn exponentials(&self, b: &mut Builder<'_>, maxima: ValueId) -> Option<ValueId> {
        // A row in which no score counts has exponentials of 0.
        let shift = replaced(b, maxima, f32::NEG_INFINITY, 0.0)?;
        let below = b.binary("Sub", self.scores, shift)?;
        b.unary("Exp", below)
    }

    /// The extents of a row's number, as a column beside the scores.
    fn column(&self, b: &mut Builder<'_>, x: ValueId) -> Option<ValueId> {
        let [batch, heads, rows, _] = self.extents;
        let x = b.reshape(x, &[batch, heads, rows, 1])?;
        self.grouped(b, x)
    }

    /// The sum over the heads that share keys.
    fn shared(&self, b: &mut Builder<'_>, x: ValueId) -> Option<ValueId> {
        if self.groups[1] == 1 { Some(x) } else { b.sum(x, &[2], false) }
    }
}

/// The tensor with its last two axes exchanged.
fn swapped(b: &mut Builder<'_>, x: ValueId) -> Option<ValueId> {
    let rank = b.dims(x).len();
    let mut permutation: Vec<usize> = (0..rank).collect();
    permutation.swap(rank.checked_sub(2)?, rank - 1);
    b.transpose(x, &permutation)
}

/// The tensor with one number replaced by another.
fn replaced(b: &mut Builder<'_>, x: ValueId, from: f32, to: f32) -> Option<ValueId> {
    let (from, to, ty) = (b.scalar(from), b.scalar(to), b.ty(x)?);
    let is = b.binary("Equal", x, from)?;
    Some(b.add("Where", [], &[is, to, x], ty))
}

/// The largest element of each row, which stays as an extent of 1.
fn row_maxima(b: &mut Builder<'_>, x: ValueId) -> Option<ValueId> {
    let mut ty = b.ty(x)?;
    *ty.dims.last_mut()? = 1;
    // Since version 18 the axes are an operand.
    let version = b.graph().opsets.get("").copied().unwrap_or_default();
    Some(if version < 18 {
        b.add("ReduceMax", [("axes", Attr::Ints(vec![-1]))], &[x], ty)
    } else {
        let axes = b.list(&[-1]);
        b.add("ReduceMax", [], &[x, axes], ty)
    })
}

/// Replaces a result by the value, with the extents of the result.
fn give(b: &mut Builder<'_>, index: usize, value: ValueId) -> Option<()> {
    let Some(ty) = b.wanted(index) else { return Some(()) };
    let value = if b.dims(value) == ty.dims { value } else { b.reshape(value, &ty.dims)? };
    b.give(index, value)
}

/// `softmax(scale · Q Kᵀ + mask) V`, where rows in which no score counts are 0.
pub(super) fn attention(b: &mut Builder<'_>) -> Option<()> {
    let parts = Parts::of(b, 0, 3)?;
    let maxima = row_maxima(b, parts.scores)?;
    let exponentials = parts.exponentials(b, maxima)?;
    let sums = b.sum(exponentials, &[b.dims(exponentials).len() - 1], true)?;
    if b.wants(0) {
        let divisor = replaced(b, sums, 0.0, 1.0)?;
        let weights = b.binary("Div", exponentials, divisor)?;
        let y = b.product(weights, parts.v)?;
        give(b, 0, y)?;
    }
    give(b, 1, maxima)?;
    give(b, 2, sums)
}

/// `dV = Pᵀ dY`, and with `dS = scale · P ∘ (dY Vᵀ - Σ dY ∘ Y)`: `dQ = dS K`, `dK = dSᵀ Q`.
pub(super) fn attention_grad(b: &mut Builder<'_>) -> Option<()> {
    let parts = Parts::of(b, 1, 7)?;
    let [dy, y, maxima, sums] = [0, 4, 5, 6].map(|i| b.floats(i));
    let (dy, y) = (parts.grouped(b, dy?)?, parts.grouped(b, y?)?);
    let (maxima, sums) = (parts.column(b, maxima?)?, parts.column(b, sums?)?);
    let exponentials = parts.exponentials(b, maxima)?;
    let divisor = replaced(b, sums, 0.0, 1.0)?;
    let weights = b.binary("Div", exponentials, divisor)?;
    if b.wants(2) {
        let turned = swapped(b, weights)?;
        let dv = b.product(turned, dy)?;
        let dv = parts.shared(b, dv)?;
        give(b, 2, dv)?;
    }
    let each = b.binary("Mul", dy, y)?;
    let mean = b.sum(each, &[b.dims(each).len() - 1], true)?;
    let values = swapped(b, parts.v)?;
    let slope = b.product(dy, values)?;
    let slope = b.binary("Sub", slope, mean)?;
    let slope = b.binary("Mul", weights, slope)?;
    let slope = b.scaled(slope, parts.scale)?;
    if b.wants(0) {
        let dq = b.product(slope, parts.k)?;
        give(b, 0, dq)?;
    }
    if b.wants(1) {
        let turned = swapped(b, slope)?;
        let dk = b.product(turned, parts.q)?;
        let dk = parts.shared(b, dk)?;
        give(b, 1, dk)?;
    }
    Some(())
}
