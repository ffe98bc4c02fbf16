//! Shapes as data: what asks for a shape, what is shaped by numbers, what only renames the same elements.

use lmsc_ir::{Attr, ElementType, TensorType};

use super::constant::{Const, broadcast_positions};
use super::{
    Answer, Cx, Fact, axis, axis_mask, broadcast, extent_of, extents, fold, folded, one, product, show,
    unknown, wrong,
};

fn signed(dims: &[u64]) -> Option<Const> {
    Const::ints(ElementType::Int64, dims.iter().map(|&d| i64::try_from(d).ok()))
}

/// `Shape`, from `start` to `end`.
pub(super) fn shape(cx: &Cx<'_>) -> Answer {
    let dims = cx.dims(0)?;
    let rank = dims.len() as i64;
    let bound = |i: i64| (if i < 0 { i.saturating_add(rank) } else { i }).clamp(0, rank) as usize;
    let (start, end) = (bound(cx.int_or("start", 0)?), bound(cx.int_or("end", rank)?));
    let part = if start < end { &dims[start..end] } else { &[] };
    folded(ElementType::Int64, [part.len() as u64], |_| signed(part))
}

/// `Size`.
pub(super) fn size(cx: &Cx<'_>) -> Answer {
    let count = product(cx.dims(0)?)?;
    folded(ElementType::Int64, [], |_| signed(&[count]))
}

/// The same elements under other extents.
fn view(cx: &Cx<'_>, dims: Vec<u64>) -> Answer {
    folded(cx.tensor(0)?.element, dims, |_| cx.value(0).cloned())
}

/// `Identity` and copies: everything about operand 0.
pub(super) fn identity(cx: &Cx<'_>) -> Answer {
    let Some(operand) = cx.operand(0) else { return wrong("operand 0 is missing") };
    Ok(vec![Some(Fact { ty: operand.ty.clone(), value: operand.value.cloned() })])
}

/// `Reshape`.
pub(super) fn reshape(cx: &Cx<'_>) -> Answer {
    let from = cx.dims(0)?;
    let Some(target) = cx.int_list_or_ints("shape", 1)? else { return wrong("operand 1 is missing") };
    let zero_is_zero = cx.flag("allowzero")?;
    let mut rest = None;
    let mut dims = Vec::with_capacity(target.len());
    for (i, &t) in target.iter().enumerate() {
        dims.push(match t {
            0 if !zero_is_zero => match from.get(i) {
                Some(&d) => d,
                None => return wrong(format!("extent {i} is to be copied from {}", show(from))),
            },
            -1 if rest.replace(i).is_some() => return wrong("two extents are -1"),
            -1 => 1,
            _ => super::extent(t)?,
        });
    }
    let (count, known) = (product(from)?, product(&dims)?);
    if let Some(i) = rest {
        if known == 0 || count % known != 0 {
            return wrong(format!("{} cannot be reshaped to {target:?}", show(from)));
        }
        dims[i] = count / known;
    } else if known != count {
        return wrong(format!("{} cannot be reshaped to {target:?}", show(from)));
    }
    view(cx, dims)
}

/// `Flatten`.
pub(super) fn flatten(cx: &Cx<'_>) -> Answer {
    let dims = cx.dims(0)?;
    let at = cx.int_or("axis", 1)?;
    let at = if at == dims.len() as i64 { dims.len() } else { axis(at, dims.len())? };
    view(cx, vec![product(&dims[..at])?, product(&dims[at..])?])
}

/// `Squeeze`.
pub(super) fn squeeze(cx: &Cx<'_>) -> Answer {
    let dims = cx.dims(0)?;
    let Some(axes) = cx.int_list_or_ints("axes", 1)? else {
        return view(cx, dims.iter().copied().filter(|&d| d != 1).collect());
    };
    let mask = axis_mask(axes, dims.len())?;
    if let Some(i) = (0..dims.len()).find(|&i| mask[i] && dims[i] != 1) {
        return wrong(format!("axis {i} of {} is to be squeezed", show(dims)));
    }
    view(cx, dims.iter().zip(&mask).filter(|&(_, &m)| !m).map(|(&d, _)| d).collect())
}

/// `Unsqueeze`, and `com.microsoft.ExpandDims` with its one axis.
pub(super) fn unsqueeze(cx: &Cx<'_>) -> Answer {
    let dims = cx.dims(0)?;
    let Some(axes) = cx.int_list_or_ints("axes", 1)? else { return wrong("the axes are missing") };
    let mask = axis_mask(axes, dims.len().saturating_add(axes.len()))?;
    let mut rest = dims.iter().copied();
    view(cx, mask.iter().map(|&m| if m { 1 } else { rest.next().unwrap_or(1) }).collect())
}

/// `Expand`.
pub(super) fn expand(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let target = extents(cx.need_ints(1)?)?;
    folded(x.element, broadcast(&[&x.dims, &target])?, |out| {
        cx.value(0)?.select(broadcast_positions(&x.dims, out))
    })
}

/// `Constant`, in each of its forms.
pub(super) fn constant(cx: &Cx<'_>) -> Answer {
    let Some((name, attr)) = cx.query.attributes.iter().find(|(n, _)| n.contains("value")) else {
        return wrong("no attribute holds the constant");
    };
    let int = |values: &[i64], dims: &[u64]| {
        folded(ElementType::Int64, dims, |_| Const::ints(ElementType::Int64, values.iter().map(|&v| Some(v))))
    };
    let float = |values: Vec<f64>, dims: &[u64]| {
        folded(ElementType::Float, dims, |_| Const::floats(ElementType::Float, values))
    };
    match attr {
        Attr::Tensor(ty, data) => folded(ty.element, &*ty.dims, |_| Const::decode(ty, data)),
        Attr::Int(i) => int(&[*i], &[]),
        Attr::Ints(list) => int(list, &[list.len() as u64]),
        Attr::Float(f) => float(vec![f.0.into()], &[]),
        Attr::Floats(list) => float(list.iter().map(|f| f.0.into()).collect(), &[list.len() as u64]),
        Attr::String(_) => one(ElementType::String, []),
        Attr::Strings(list) => one(ElementType::String, [list.len() as u64]),
        Attr::Opaque(_) => unknown(format!("attribute `{name}` is not a dense tensor")),
    }
}

/// `ConstantOfShape`.
pub(super) fn constant_of_shape(cx: &Cx<'_>) -> Answer {
    let dims = extents(cx.need_ints(0)?)?;
    let (element, fill) = match cx.attribute("value") {
        None => (ElementType::Float, Const::floats(ElementType::Float, [0.0])),
        Some(Attr::Tensor(ty, data)) => (ty.element, Const::decode(ty, data)),
        Some(_) => return wrong("attribute `value` is not a tensor"),
    };
    folded(element, dims, |out| {
        let count = product(out).ok()? as usize;
        fill?.select(std::iter::repeat_n(0, count))
    })
}

/// `Range`.
pub(super) fn range(cx: &Cx<'_>) -> Answer {
    let element = cx.tensor(0)?.element;
    let (Some(start), Some(limit), Some(delta)) = (cx.value(0), cx.value(1), cx.value(2)) else {
        return unknown("its bounds are no constants");
    };
    match (start, limit, delta) {
        (Const::Ints(start), Const::Ints(limit), Const::Ints(delta)) => {
            let (&[start], &[limit], &[delta]) = (&**start, &**limit, &**delta) else {
                return wrong("a bound is not a scalar");
            };
            if delta == 0 {
                return wrong("the step is zero");
            }
            let step = i128::from(delta);
            let span = (i128::from(limit) - i128::from(start)) * step.signum();
            let count = (span + step.abs() - 1).div_euclid(step.abs());
            folded(element, [extent_of(count.max(0))?], |out| {
                let at = |i: u64| i64::try_from(i128::from(start) + i128::from(i) * step).ok();
                Const::ints(element, (0..out[0]).map(at))
            })
        }
        (Const::Floats(start), Const::Floats(limit), Const::Floats(delta)) => {
            let (&[start], &[limit], &[delta]) = (&**start, &**limit, &**delta) else {
                return wrong("a bound is not a scalar");
            };
            let count = ((limit - start) / delta).ceil();
            if !count.is_finite() || count > 9e15 {
                return wrong(format!("the range from {start} to {limit} by {delta} has no end"));
            }
            folded(element, [count.max(0.0) as u64], |out| {
                Const::floats(element, (0..out[0]).map(|i| start + i as f64 * delta))
            })
        }
        _ => wrong("the bounds have different element types"),
    }
}

/// `BroadcastGradientArgs(shape of A, shape of B)`: the axes over which the gradients of A and of B are summed,
/// last axis first.
pub(super) fn broadcast_gradient_args(cx: &Cx<'_>) -> Answer {
    let (a, b) = (extents(cx.need_ints(0)?)?, extents(cx.need_ints(1)?)?);
    let rank = broadcast(&[&a, &b])?.len();
    let extent = |dims: &[u64], i: usize| i.checked_sub(rank - dims.len()).map(|i| dims[i]);
    let mut axes = [Vec::new(), Vec::new()];
    for i in (0..rank).rev() {
        match (extent(&a, i), extent(&b, i)) {
            (None, _) => axes[0].push(i as i64),
            (_, None) => axes[1].push(i as i64),
            (Some(1), Some(d)) if d != 1 => axes[0].push(i as i64),
            (Some(d), Some(1)) if d != 1 => axes[1].push(i as i64),
            _ => {}
        }
    }
    let fact = |axes: Vec<i64>| {
        fold(ElementType::Int64, [axes.len() as u64], |_| {
            Const::ints(ElementType::Int64, axes.into_iter().map(Some))
        })
    };
    Ok(axes.into_iter().map(|axes| Some(fact(axes))).collect())
}

/// `EyeLike`.
pub(super) fn eye_like(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    if x.dims.len() != 2 {
        return wrong(format!("{x} is no matrix"));
    }
    one(cx.element("dtype")?.unwrap_or(x.element), &*x.dims)
}

/// `HannWindow` and the like.
pub(super) fn window(cx: &Cx<'_>) -> Answer {
    let size = super::extent(cx.scalar(0)?)?;
    one(cx.element("output_datatype")?.unwrap_or(ElementType::Float), [size])
}

/// A Boolean or integer scalar, whatever the operands.
pub(super) fn scalar(element: ElementType) -> Answer {
    Ok(vec![Some(TensorType::new(element, []).into())])
}
