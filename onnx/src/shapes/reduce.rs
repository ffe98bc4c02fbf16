//! Operators that reduce axes, or work along one.

use lmsc_ir::{ElementType, TensorType};

use super::constant::{Const, positions, strides};
use super::{Answer, Cx, Refusal, axis_mask, extent, fold, folded, one, unknown, wrong};

/// The mask of reduced axes; `None` if the operator does nothing.
fn reduced(cx: &Cx<'_>) -> Result<Option<Vec<bool>>, Refusal> {
    let rank = cx.dims(0)?.len();
    match cx.int_list_or_ints("axes", 1)? {
        Some(axes) if !axes.is_empty() => {
            axis_mask(axes, rank, &"operand 0", || cx.attribute_or("axes", 1)).map(Some)
        }
        _ if cx.flag("noop_with_empty_axes")? => Ok(None),
        _ => Ok(Some(vec![true; rank])),
    }
}

fn without(dims: &[u64], mask: &[bool], keep: bool) -> Vec<u64> {
    let kept = |(&d, &m): (&u64, &bool)| if !m { Some(d) } else { keep.then_some(1) };
    dims.iter().zip(mask).filter_map(kept).collect()
}

/// `Reduce…`: axes from an attribute or from operand 1.
pub(super) fn reduce(cx: &Cx<'_>) -> Answer {
    fold_reduce(cx, |_| None)
}

/// `Reduce…` on integers that shapes may be computed from.
pub(super) fn fold_reduce(cx: &Cx<'_>, int: fn(&[i64]) -> Option<i64>) -> Answer {
    let x = cx.tensor(0)?;
    let keep = cx.int("keepdims")? != 0;
    let Some(mask) = reduced(cx)? else {
        return folded(x.element, &*x.dims, |_| cx.value(0).cloned());
    };
    folded(x.element, without(&x.dims, &mask, keep), |_| {
        let values = cx.value(0)?.as_ints()?;
        let steps = strides(&x.dims);
        let split = |of: bool| -> (Vec<u64>, Vec<usize>) {
            (0..x.dims.len()).filter(|&i| mask[i] == of).map(|i| (x.dims[i], steps[i])).unzip()
        };
        let ((kept, kept_steps), (gone, gone_steps)) = (split(false), split(true));
        let inner = positions(&gone, &gone_steps, 0);
        let total =
            |at: usize| int(&inner.iter().filter_map(|i| values.get(at + i).copied()).collect::<Vec<_>>());
        Const::ints(x.element, positions(&kept, &kept_steps, 0).into_iter().map(total))
    })
}

/// `ArgMax`, `ArgMin`.
pub(super) fn arg(cx: &Cx<'_>) -> Answer {
    let dims = cx.dims(0)?;
    let mut mask = vec![false; dims.len()];
    mask[cx.axis(0)?] = true;
    one(ElementType::Int64, without(dims, &mask, cx.int("keepdims")? != 0))
}

/// `TopK`: values and indices.
pub(super) fn top_k(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let k = match cx.int_if_any("k")? {
        Some(k) => k,
        None => cx.scalar(1)?,
    };
    let at = cx.axis(0)?;
    let mut dims = x.dims.clone();
    dims[at] = extent(k, || cx.attribute_or("k", 1))?;
    if dims[at] > x.dims[at] {
        let (source, x) = (cx.attribute_or("k", 1), cx.typed(0));
        return wrong(format!("{source} asks for the {k} largest along axis {at} of {x}, which is shorter"));
    }
    let indices = TensorType::new(ElementType::Int64, &*dims);
    Ok(vec![Some(TensorType::new(x.element, dims).into()), Some(indices.into())])
}

/// `CumSum`.
pub(super) fn cumulative(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    cx.expect_one(1)?;
    let plain = !cx.flag("exclusive")? && !cx.flag("reverse")?;
    folded(x.element, &*x.dims, |_| {
        if !plain || x.dims.len() != 1 {
            return None;
        }
        let mut total = 0i64;
        let mut add = |&v: &i64| {
            total = total.checked_add(v)?;
            Some(total)
        };
        Const::ints(x.element, cx.value(0)?.as_ints()?.iter().map(&mut add))
    })
}

/// `NonZero`, of a constant.
pub(super) fn non_zero(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let Some(values) = cx.value(0) else { return unknown("it depends on the data how many there are") };
    let at: Vec<usize> =
        values.to_f64().iter().enumerate().filter(|(_, v)| **v != 0.0).map(|(i, _)| i).collect();
    let rank = x.dims.len();
    let fact = fold(ElementType::Int64, [rank as u64, at.len() as u64], |_| {
        let steps = strides(&x.dims);
        let index = |axis: usize, i: usize| (i / steps[axis].max(1)) as u64 % x.dims[axis].max(1);
        let rows = (0..rank).flat_map(|axis| at.iter().map(move |&i| (axis, i)));
        Const::ints(ElementType::Int64, rows.map(|(axis, i)| i64::try_from(index(axis, i)).ok()))
    });
    Ok(vec![Some(fact)])
}
