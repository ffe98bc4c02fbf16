//! Operators that compute every element from the elements at its own index.

use lmsc_ir::{ElementType, TensorType};

use super::constant::{Const, broadcast_positions, integer_range};
use super::{Answer, Cx, Fact, Refusal, fold, folded, one, wrong};

/// Result 0 has the type of operand 0.
pub(super) fn same(cx: &Cx<'_>) -> Answer {
    cx.tensor(0)?;
    cx.like(&[0])
}

/// The extents of all operands broadcast with one another, in the element type of operand 0.
pub(super) fn broadcasting(cx: &Cx<'_>) -> Answer {
    let given: Vec<usize> = (0..cx.operand_count()).filter(|&i| cx.operand(i).is_some()).collect();
    let all = given.iter().map(|&i| cx.dims(i)).collect::<Result<Vec<_>, _>>()?;
    one(cx.tensor(0)?.element, cx.broadcast(&given, &all)?)
}

/// An elementwise function of one operand.
pub(super) fn unary(cx: &Cx<'_>, int: fn(i64) -> Option<i64>, float: fn(f64) -> f64) -> Answer {
    let ty = cx.tensor(0)?;
    folded(ty.element, &*ty.dims, |_| match cx.value(0)? {
        Const::Ints(v) => Const::ints(ty.element, v.iter().map(|&i| int(i))),
        Const::Floats(v) => Const::floats(ty.element, v.iter().map(|&f| float(f))),
    })
}

/// An elementwise function of one operand; its integers, if any, are not needed for shapes.
pub(super) fn unary_float(cx: &Cx<'_>, float: fn(f64) -> f64) -> Answer {
    unary(cx, |_| None, float)
}

fn same_element(cx: &Cx<'_>, indices: impl IntoIterator<Item = usize>) -> Result<ElementType, Refusal> {
    let mut indices = indices.into_iter();
    let first = indices.next().unwrap_or(0);
    let element = cx.tensor(first)?.element;
    for i in indices {
        let other = cx.tensor(i)?.element;
        if other != element {
            let (a, b) = (cx.called(first), cx.called(i));
            return wrong(format!(
                "{a} has elements of type {element}, but {b} has elements of type {other}; expected one type"
            ));
        }
    }
    Ok(element)
}

/// Pairs of elements of operands `a` and `b` at the same index of the result.
fn paired<T: Copy>(a: &[T], a_dims: &[u64], b: &[T], b_dims: &[u64], out: &[u64]) -> Option<Vec<(T, T)>> {
    let positions = broadcast_positions(a_dims, out).into_iter().zip(broadcast_positions(b_dims, out));
    positions.map(|(i, j)| Some((*a.get(i)?, *b.get(j)?))).collect()
}

/// Refuses the forms that operators of two operands had before version 7 of ONNX and no longer have: operand 1 was broadcast only
/// on request, and along axes that an attribute could name.
fn older_broadcast(cx: &Cx<'_>) -> Result<(), Refusal> {
    if cx.version() >= 7 || !cx.query.op.domain().is_empty() {
        return Ok(());
    }
    let (a, b) = (cx.dims(0)?, cx.dims(1)?);
    if a != b && !cx.flag("broadcast")? {
        let (a, b) = (cx.typed(0), cx.typed(1));
        return wrong(format!(
            "{a} and {b} differ, and before version 7 attribute `broadcast` says whether they may"
        ));
    }
    let last = a.len().checked_sub(b.len()).map(|lead| lead as i64);
    match cx.int_if_any("axis")? {
        Some(axis) if Some(axis) != last && Some(axis - a.len() as i64) != last && a != b => wrong(format!(
            "attribute `axis` is {axis}: before version 7 it says along which axes {} is broadcast; lmsc knows the last axes alone",
            cx.typed(1)
        )),
        _ if last.is_none() => {
            wrong(format!("{} has more axes than {}, which it is broadcast to", cx.typed(1), cx.typed(0)))
        }
        _ => Ok(()),
    }
}

/// The folded elements of `a ∘ b`.
fn fold_binary(
    element: ElementType,
    a: (&TensorType, &Const),
    b: (&TensorType, &Const),
    out: &[u64],
    int: fn(i64, i64) -> Option<i64>,
    float: fn(f64, f64) -> f64,
) -> Option<Const> {
    match (a.1, b.1) {
        (Const::Ints(x), Const::Ints(y)) => {
            let pairs = paired(x, &a.0.dims, y, &b.0.dims, out)?;
            Const::ints(element, pairs.into_iter().map(|(x, y)| int(x, y)))
        }
        (Const::Floats(x), Const::Floats(y)) => {
            let pairs = paired(x, &a.0.dims, y, &b.0.dims, out)?;
            Const::floats(element, pairs.into_iter().map(|(x, y)| float(x, y)))
        }
        _ => None,
    }
}

/// An elementwise function of two operands of one element type.
pub(super) fn binary(cx: &Cx<'_>, int: fn(i64, i64) -> Option<i64>, float: fn(f64, f64) -> f64) -> Answer {
    let element = same_element(cx, 0..2)?;
    older_broadcast(cx)?;
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    folded(element, cx.broadcast(&[0, 1], &[&a.dims, &b.dims])?, |out| {
        fold_binary(element, (a, cx.value(0)?), (b, cx.value(1)?), out, int, float)
    })
}

/// `Pow`, whose exponent may have another element type.
pub(super) fn pow(cx: &Cx<'_>) -> Answer {
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    older_broadcast(cx)?;
    let int = |x: i64, y: i64| x.checked_pow(u32::try_from(y).ok()?);
    folded(a.element, cx.broadcast(&[0, 1], &[&a.dims, &b.dims])?, |out| {
        fold_binary(a.element, (a, cx.value(0)?), (b, cx.value(1)?), out, int, f64::powf)
    })
}

/// An elementwise function of any number of operands of one element type.
pub(super) fn variadic(cx: &Cx<'_>, int: fn(i64, i64) -> Option<i64>, float: fn(f64, f64) -> f64) -> Answer {
    let element = same_element(cx, 0..cx.operand_count())?;
    let all = (0..cx.operand_count()).map(|i| cx.dims(i)).collect::<Result<Vec<_>, _>>()?;
    let mut total = Fact { ty: cx.tensor(0)?.clone().into(), value: cx.value(0).cloned() };
    for i in 1..cx.operand_count() {
        if total.value.is_none() || cx.value(i).is_none() {
            return one(element, cx.broadcast(&Vec::from_iter(0..all.len()), &all)?);
        }
        let (Some(so_far), other) = (total.ty.as_tensor(), cx.tensor(i)?) else { break };
        total = fold(element, cx.broadcast(&[0, i], &[&so_far.dims, &other.dims])?, |out| {
            let value = total.value.as_ref()?;
            fold_binary(element, (so_far, value), (other, cx.value(i)?), out, int, float)
        });
    }
    Ok(vec![Some(total)])
}

/// A comparison: two operands of one element type, a Boolean result.
pub(super) fn compare(cx: &Cx<'_>, int: fn(&i64, &i64) -> bool, float: fn(&f64, &f64) -> bool) -> Answer {
    same_element(cx, 0..2)?;
    older_broadcast(cx)?;
    let (a, b) = (cx.tensor(0)?, cx.tensor(1)?);
    folded(ElementType::Bool, cx.broadcast(&[0, 1], &[&a.dims, &b.dims])?, |out| {
        let truth: Vec<bool> = match (cx.value(0)?, cx.value(1)?) {
            (Const::Ints(x), Const::Ints(y)) => {
                paired(x, &a.dims, y, &b.dims, out)?.iter().map(|(x, y)| int(x, y)).collect()
            }
            (Const::Floats(x), Const::Floats(y)) => {
                paired(x, &a.dims, y, &b.dims, out)?.iter().map(|(x, y)| float(x, y)).collect()
            }
            _ => return None,
        };
        Const::ints(ElementType::Bool, truth.into_iter().map(|t| Some(i64::from(t))))
    })
}

/// A predicate of each element of one operand.
pub(super) fn predicate(cx: &Cx<'_>) -> Answer {
    one(ElementType::Bool, &*cx.tensor(0)?.dims)
}

/// `Where`.
pub(super) fn select(cx: &Cx<'_>) -> Answer {
    let condition = cx.tensor(0)?;
    let element = same_element(cx, [1, 2])?;
    let (a, b) = (cx.tensor(1)?, cx.tensor(2)?);
    if condition.element != ElementType::Bool {
        return wrong(format!("the condition, {}, is not Boolean", cx.typed(0)));
    }
    let dims: [&[u64]; 3] = [&condition.dims, &a.dims, &b.dims];
    folded(element, cx.broadcast(&[0, 1, 2], &dims)?, |out| {
        let condition =
            cx.value(0)?.select(broadcast_positions(&condition.dims, out)).filter(|c| !c.is_empty())?;
        let a = cx.value(1)?.select(broadcast_positions(&a.dims, out))?;
        let b = cx.value(2)?.select(broadcast_positions(&b.dims, out))?;
        let condition = condition.as_ints()?;
        match (a, b) {
            (Const::Ints(a), Const::Ints(b)) => {
                let picked = condition.iter().zip(a.iter().zip(b.iter()));
                Const::ints(element, picked.map(|(&c, (&a, &b))| Some(if c != 0 { a } else { b })))
            }
            (Const::Floats(a), Const::Floats(b)) => {
                let picked = condition.iter().zip(a.iter().zip(b.iter()));
                Const::floats(element, picked.map(|(&c, (&a, &b))| if c != 0 { a } else { b }))
            }
            _ => None,
        }
    })
}

/// `Cast`, to the element type of an attribute.
pub(super) fn cast(cx: &Cx<'_>) -> Answer {
    cast_to(cx, cx.need_element("to")?)
}

/// `BitCast`: other elements of the same number of bits.
pub(super) fn bit_cast(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let to = cx.need_element("to")?;
    if to.bits() == x.element.bits() {
        return one(to, &*x.dims);
    }
    wrong(format!("attribute `to` is {to}, whose elements have other sizes than those of {}", cx.typed(0)))
}

/// Operand 0 in another element type.
pub(super) fn cast_to(cx: &Cx<'_>, to: ElementType) -> Answer {
    let ty = cx.tensor(0)?;
    folded(to, &*ty.dims, |_| if ty.element == to { cx.value(0).cloned() } else { cx.value(0)?.cast(to) })
}

/// `Mod`: the sign of the divisor, or with `fmod` of the dividend.
pub(super) fn modulo(cx: &Cx<'_>) -> Answer {
    if cx.flag("fmod")? {
        return binary(cx, i64::checked_rem, |a, b| a % b);
    }
    if cx.tensor(0)?.element.is_float() {
        return broadcasting(cx);
    }
    let floored = |a: i64, b: i64| {
        let rest = a.checked_rem(b)?;
        Some(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
    };
    binary(cx, floored, |a, _| a)
}

/// `Clip`, with bounds in attributes or in operands 1 and 2.
pub(super) fn clip(cx: &Cx<'_>) -> Answer {
    let ty = cx.tensor(0)?;
    [1, 2].into_iter().try_for_each(|i| cx.expect_one(i))?;
    folded(ty.element, &*ty.dims, |_| {
        let values = cx.value(0)?.as_ints()?;
        let (least, most) = integer_range(ty.element)?;
        let least = cx.maybe_scalar(1).ok()?.unwrap_or(least);
        let most = cx.maybe_scalar(2).ok()?.unwrap_or(most);
        Const::ints(ty.element, values.iter().map(|&v| Some(v.max(least).min(most))))
    })
}

/// `PRelu` and other operators whose operand 1 broadcasts to operand 0.
pub(super) fn broadcasting_to_first(cx: &Cx<'_>) -> Answer {
    let (x, slope) = (cx.dims(0)?, cx.dims(1)?);
    // Before version 7 a slope of many elements had one for each channel.
    if cx.version() < 7 && super::product(slope)? != 1 {
        cx.expect(1, x.get(1..2).unwrap_or(&[]))?;
        return same(cx);
    }
    if cx.broadcast(&[0, 1], &[x, slope])? != x {
        return wrong(format!("{} does not broadcast to {}", cx.typed(1), cx.typed(0)));
    }
    same(cx)
}

/// A gradient operator `(dY, …) → dX` of a function that keeps the shape: operands 0 and 1 have the same number of elements.
pub(super) fn gradient(cx: &Cx<'_>) -> Answer {
    let dy = cx.tensor(0)?;
    if let Some(saved) = cx.maybe(1)
        && saved.dims != dy.dims
    {
        let (dy, saved) = (cx.typed(0), cx.typed(1));
        return wrong(format!("dY is {dy}, but what was saved of the forward pass is {saved}"));
    }
    same(cx)
}

/// The gradient of a dropout `(dY, mask, ratio, training)`.
pub(super) fn dropout_gradient(cx: &Cx<'_>) -> Answer {
    [2, 3].into_iter().try_for_each(|i| cx.expect_one(i))?;
    gradient(cx)
}

/// A function of data and of a bias, the operand at this position, which has the extent of the data's last axis.
pub(super) fn biased(cx: &Cx<'_>, at: usize) -> Answer {
    let x = cx.dims(0)?;
    cx.expect(at, x.get(x.len().saturating_sub(1)..).unwrap_or(&[]))?;
    if at > 1 { gradient(cx) } else { same(cx) }
}

/// `com.microsoft.Scale`, by one element.
pub(super) fn scale(cx: &Cx<'_>) -> Answer {
    cx.expect_one(1)?;
    same(cx)
}

/// `Dropout`: the data and the mask.
pub(super) fn dropout(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    [1, 2].into_iter().try_for_each(|i| cx.expect_one(i))?;
    if cx.version() < 7 && cx.query.op.domain().is_empty() && !cx.flag("is_test")? {
        return wrong(
            "attribute `is_test` is 0, its default before version 7, which means that it drops; lmsc drops from version 12 \
             on, where operand `training_mode` says so",
        );
    }
    // Before version 10 the mask had the type of the data.
    let in_onnx = cx.query.op.domain().is_empty();
    let mask = if in_onnx && cx.version() < 10 { x.element } else { ElementType::Bool };
    Ok(vec![Some(x.clone().into()), Some(TensorType::new(mask, &*x.dims).into())])
}

/// Dropout with 32 mask elements in a word.
pub(super) fn bitmask_dropout(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let words = super::product(&x.dims)?.div_ceil(32);
    Ok(vec![Some(x.clone().into()), Some(TensorType::new(ElementType::Uint32, [words]).into())])
}

/// Bias, dropout and residual combined.
pub(super) fn bias_dropout(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    Ok(vec![Some(x.clone().into()), Some(TensorType::new(ElementType::Bool, &*x.dims).into())])
}

/// `BiasSplitGelu`: half of the last axis.
pub(super) fn halve_last(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let mut dims = x.dims.clone();
    match dims.last_mut() {
        Some(last) => *last /= 2,
        None => return wrong(format!("{} is a scalar, which cannot be halved", cx.typed(0))),
    }
    one(x.element, dims)
}

/// `DivGrad(dY, A, B)`: the types of A and B.
pub(super) fn div_gradient(cx: &Cx<'_>) -> Answer {
    cx.expect(0, &cx.broadcast(&[1, 2], &[cx.dims(1)?, cx.dims(2)?])?)?;
    cx.like(&[1, 2])
}
