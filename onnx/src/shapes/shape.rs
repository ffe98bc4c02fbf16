//! Shapes as data: operators that read a shape, that take extents as operands, or that give the same elements other extents.

use lmsc_ir::{Attr, ElementType, TensorType};

use super::constant::{Const, broadcast_positions};
use super::{
    Answer, Cx, Fact, Refusal, axis_mask, broadcast, broadcast_or, fold, folded, kind, one, product,
    result_extent, show, unknown, wrong,
};

fn signed(dims: &[u64]) -> Option<Const> {
    Const::ints(ElementType::Int64, dims.iter().map(|&d| i64::try_from(d).ok()))
}

/// `Shape`, from `start` to `end`.
pub(super) fn shape(cx: &Cx<'_>) -> Answer {
    let dims = cx.dims(0)?;
    let rank = dims.len() as i64;
    let bound = |i: i64| (if i < 0 { i.saturating_add(rank) } else { i }).clamp(0, rank) as usize;
    let (start, end) = (bound(cx.int("start")?), bound(cx.int_if_any("end")?.unwrap_or(rank)));
    let part = if start < end { &dims[start..end] } else { &[] };
    folded(ElementType::Int64, [part.len() as u64], |_| signed(part))
}

/// `Size`.
pub(super) fn size(cx: &Cx<'_>) -> Answer {
    let count = product(cx.dims(0)?)?;
    folded(ElementType::Int64, [], |_| signed(&[count]))
}

/// The same elements with other extents.
fn view(cx: &Cx<'_>, dims: Vec<u64>) -> Answer {
    folded(cx.tensor(0)?.element, dims, |_| cx.value(0).cloned())
}

/// `Identity` and copies: everything about operand 0.
pub(super) fn identity(cx: &Cx<'_>) -> Answer {
    let Some(operand) = cx.operand(0) else { return wrong("operand 0 is missing") };
    Ok(vec![Some(Fact { ty: operand.ty.clone(), value: operand.value.cloned() })])
}

/// Copies over the link: operand 0, or a range of its elements.
pub(super) fn copy(cx: &Cx<'_>) -> Answer {
    match (cx.int_if_any("begin")?, cx.int_if_any("end")?) {
        (None, None) => identity(cx),
        (Some(begin), Some(end)) => {
            let count = product(cx.dims(0)?)?;
            match (u64::try_from(begin), u64::try_from(end)) {
                (Ok(begin), Ok(end)) if begin < end && end <= count => {
                    one(cx.tensor(0)?.element, [end - begin])
                }
                _ => wrong(format!(
                    "attributes `begin` and `end` hold {begin}..{end}, no range of {count} elements"
                )),
            }
        }
        _ => wrong("attributes `begin` and `end` go together"),
    }
}

/// `ai.lmsc.Join`: the type of the base, or the type with extents `dims` and the elements of the pieces.
pub(super) fn join(cx: &Cx<'_>) -> Answer {
    if let Some(stayed) = cx.operand(0) {
        return Ok(vec![Some(stayed.ty.clone().into())]);
    }
    let Some(dims) = cx.int_list("dims")? else { return wrong("attribute `dims` is missing") };
    one(cx.tensor(1)?.element, super::say::extents(dims, || "attribute `dims`".to_owned())?)
}

/// `Reshape`.
pub(super) fn reshape(cx: &Cx<'_>) -> Answer {
    let from = cx.dims(0)?;
    let Some(target) = cx.int_list_or_ints("shape", 1)? else {
        return wrong("operand 1 (the shape) is missing");
    };
    let zero_is_zero = cx.flag("allowzero")?;
    let mut rest = None;
    let mut dims = Vec::with_capacity(target.len());
    for (i, &t) in target.iter().enumerate() {
        dims.push(match t {
            0 if !zero_is_zero => match from.get(i) {
                Some(&d) => d,
                None => {
                    let (target, x) = (cx.attribute_or("shape", 1), cx.typed(0));
                    return wrong(format!(
                        "{target} holds 0 at {i}, which copies axis {i} of {x}; there is no such axis"
                    ));
                }
            },
            -1 if rest.replace(i).is_some() => {
                let source = cx.attribute_or("shape", 1);
                return wrong(format!("{source} is {}, where two extents are -1; one may be", show(target)));
            }
            -1 => 1,
            ..-1 => {
                let source = cx.attribute_or("shape", 1);
                return wrong(format!("{source} holds {t}; extents are at least 0, or one is -1"));
            }
            _ => t as u64,
        });
    }
    let (count, known) = (product(from)?, product(&dims)?);
    if let Some(i) = rest {
        if known == 0 || count % known != 0 {
            return no_reshape(cx, target, count, &format!("{known} times as many as extent {i}"));
        }
        dims[i] = count / known;
    } else if known != count {
        return no_reshape(cx, target, count, &known.to_string());
    }
    view(cx, dims)
}

fn no_reshape<T>(cx: &Cx<'_>, target: &[i64], count: u64, other: &str) -> Result<T, Refusal> {
    let (x, target, source) = (cx.typed(0), show(target), cx.attribute_or("shape", 1));
    wrong(format!("{x} cannot be reshaped to {target}, as {source} says: {count} elements are not {other}"))
}

/// `Flatten`.
pub(super) fn flatten(cx: &Cx<'_>) -> Answer {
    let dims = cx.dims(0)?;
    let behind = cx.int("axis")? == dims.len() as i64;
    let at = if behind { dims.len() } else { cx.axis(0)? };
    view(cx, vec![product(&dims[..at])?, product(&dims[at..])?])
}

/// `Squeeze`.
pub(super) fn squeeze(cx: &Cx<'_>) -> Answer {
    let dims = cx.dims(0)?;
    let Some(axes) = cx.int_list_or_ints("axes", 1)? else {
        return view(cx, dims.iter().copied().filter(|&d| d != 1).collect());
    };
    let source = || cx.attribute_or("axes", 1);
    let mask = axis_mask(axes, dims.len(), &"operand 0", source)?;
    if let Some(i) = (0..dims.len()).find(|&i| mask[i] && dims[i] != 1) {
        let (source, x) = (source(), cx.typed(0));
        return wrong(format!(
            "{source} names axis {i} of {x}, whose extent is {}; only 1 can be squeezed",
            dims[i]
        ));
    }
    view(cx, dims.iter().zip(&mask).filter(|&(_, &m)| !m).map(|(&d, _)| d).collect())
}

/// `Unsqueeze`, and `com.microsoft.ExpandDims` with its one axis.
pub(super) fn unsqueeze(cx: &Cx<'_>) -> Answer {
    let dims = cx.dims(0)?;
    let Some(axes) = cx.int_list_or_ints("axes", 1)? else { return wrong("operand 1 (axes) is missing") };
    let rank = dims.len().saturating_add(axes.len());
    let mask = axis_mask(axes, rank, &"result 0", || cx.attribute_or("axes", 1))?;
    let mut rest = dims.iter().copied();
    view(cx, mask.iter().map(|&m| if m { 1 } else { rest.next().unwrap_or(1) }).collect())
}

/// `Expand`.
pub(super) fn expand(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let target = cx.extents(1)?;
    let to = || {
        format!("{} does not broadcast to {}, the elements of {}", cx.typed(0), show(&target), cx.called(1))
    };
    folded(x.element, broadcast_or(&[&x.dims, &target], |_, _| to())?, |out| {
        cx.value(0)?.select(broadcast_positions(&x.dims, out))
    })
}

/// `Constant`, in each of its forms.
pub(super) fn constant(cx: &Cx<'_>) -> Answer {
    let Some((name, attr)) = cx.query.attributes.iter().find(|(n, _)| n.contains("value")) else {
        return wrong("no attribute holds the constant; expected `value`, `value_ints` or the like");
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
    let dims = cx.extents(0)?;
    let (element, fill) = match cx.attribute("value") {
        None => (ElementType::Float, Const::floats(ElementType::Float, [0.0])),
        Some(Attr::Tensor(ty, data)) => (ty.element, Const::decode(ty, data)),
        Some(other) => return wrong(format!("attribute `value` is {}, not a tensor", kind(other))),
    };
    folded(element, dims, |out| {
        let count = product(out).ok()? as usize;
        fill?.select(std::iter::repeat_n(0, count))
    })
}

/// `Range`.
pub(super) fn range(cx: &Cx<'_>) -> Answer {
    let element = cx.tensor(0)?.element;
    (0..3).try_for_each(|i| cx.expect_one(i))?;
    let (Some(start), Some(limit), Some(delta)) = (cx.value(0), cx.value(1), cx.value(2)) else {
        return unknown("its bounds are no constants");
    };
    match (start, limit, delta) {
        (Const::Ints(start), Const::Ints(limit), Const::Ints(delta)) => {
            let (&[start], &[limit], &[delta]) = (&**start, &**limit, &**delta) else {
                return no_scalars(cx);
            };
            if delta == 0 {
                return wrong(format!("{}, the step, is 0", cx.called(2)));
            }
            let step = i128::from(delta);
            let span = (i128::from(limit) - i128::from(start)) * step.signum();
            let count = (span + step.abs() - 1).div_euclid(step.abs());
            folded(element, [result_extent(0, count.max(0))?], |out| {
                let at = |i: u64| i64::try_from(i128::from(start) + i128::from(i) * step).ok();
                Const::ints(element, (0..out[0]).map(at))
            })
        }
        (Const::Floats(start), Const::Floats(limit), Const::Floats(delta)) => {
            let (&[start], &[limit], &[delta]) = (&**start, &**limit, &**delta) else {
                return no_scalars(cx);
            };
            let count = ((limit - start) / delta).ceil();
            if !count.is_finite() || count > 9e15 {
                return wrong(format!("the range from {start} to {limit} in steps of {delta} has no end"));
            }
            folded(element, [count.max(0.0) as u64], |out| {
                Const::floats(element, (0..out[0]).map(|i| start + i as f64 * delta))
            })
        }
        _ => wrong(format!(
            "{}, {} and {} have elements of different types",
            cx.typed(0),
            cx.typed(1),
            cx.typed(2)
        )),
    }
}

fn no_scalars<T>(cx: &Cx<'_>) -> Result<T, Refusal> {
    let bounds = [0, 1, 2].map(|i| cx.typed(i));
    wrong(format!("start, limit and step are {}; each has one element", bounds.join(", ")))
}

/// `BroadcastGradientArgs(shape of A, shape of B)`: the axes over which the gradients of A and of B are summed,
/// last axis first.
pub(super) fn broadcast_gradient_args(cx: &Cx<'_>) -> Answer {
    let (a, b) = (cx.extents(0)?, cx.extents(1)?);
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
        return wrong(format!("{} is no matrix", cx.typed(0)));
    }
    one(cx.element("dtype")?.unwrap_or(x.element), &*x.dims)
}

/// `HannWindow` and similar operators.
pub(super) fn window(cx: &Cx<'_>) -> Answer {
    let size = super::extent(cx.scalar(0)?, || cx.called(0))?;
    one(cx.need_element("output_datatype")?, [size])
}

/// A Boolean or integer scalar, for any operands.
pub(super) fn scalar(element: ElementType) -> Answer {
    Ok(vec![Some(TensorType::new(element, []).into())])
}
