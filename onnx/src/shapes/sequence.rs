//! Sequences, with a known type for each element.

use lmsc_ir::{ElementType, TensorType, Type};

use super::constant::Const;
use super::{Answer, Cx, Refusal, extents, folded, one, product, show, unknown, wrong};

fn sequence<'a>(cx: &Cx<'a>, index: usize) -> Result<&'a [TensorType], Refusal> {
    match cx.operand(index).map(|o| o.ty) {
        Some(Type::Sequence(elements)) => Ok(elements),
        Some(Type::Tensor(_)) => wrong(format!("{} is not a sequence", cx.typed(index))),
        None => wrong(format!("operand {index} is missing")),
    }
}

fn of(elements: Vec<TensorType>) -> Answer {
    Ok(vec![Some(Type::Sequence(elements).into())])
}

/// The position in a sequence of `count` elements that operand `at` gives; `None` if the operand is left out.
fn position(cx: &Cx<'_>, at: usize, count: usize) -> Result<Option<usize>, Refusal> {
    let Some(i) = cx.maybe_scalar(at)? else { return Ok(None) };
    let signed = count as i64;
    if (-signed..signed).contains(&i) {
        Ok(Some((if i < 0 { i + signed } else { i }) as usize))
    } else {
        let positions = lmsc_ir::words::count(count, "position");
        wrong(format!("{} is {i}, out of range for {positions}", cx.called(at)))
    }
}

/// `SequenceConstruct`.
pub(super) fn construct(cx: &Cx<'_>) -> Answer {
    of((0..cx.operand_count()).map(|i| cx.tensor(i).cloned()).collect::<Result<_, _>>()?)
}

/// `SequenceEmpty`.
pub(super) fn empty(_: &Cx<'_>) -> Answer {
    of(Vec::new())
}

/// `SequenceAt`.
pub(super) fn at(cx: &Cx<'_>) -> Answer {
    let elements = sequence(cx, 0)?;
    match position(cx, 1, elements.len()) {
        Ok(Some(i)) => Ok(vec![Some(elements[i].clone().into())]),
        Ok(None) => wrong("operand 1 is missing"),
        Err(Refusal::Unknown(reason)) => match elements.split_first() {
            Some((first, rest)) if rest.iter().all(|e| e == first) => Ok(vec![Some(first.clone().into())]),
            _ => unknown(reason),
        },
        Err(wrong) => Err(wrong),
    }
}

/// `SequenceInsert`.
pub(super) fn insert(cx: &Cx<'_>) -> Answer {
    let mut elements = sequence(cx, 0)?.to_vec();
    let at = position(cx, 2, elements.len() + 1)?.unwrap_or(elements.len());
    elements.insert(at, cx.tensor(1)?.clone());
    of(elements)
}

/// `SequenceErase`.
pub(super) fn erase(cx: &Cx<'_>) -> Answer {
    let mut elements = sequence(cx, 0)?.to_vec();
    if elements.is_empty() {
        return wrong(format!("{} is empty", cx.called(0)));
    }
    let at = position(cx, 1, elements.len())?.unwrap_or(elements.len() - 1);
    elements.remove(at);
    of(elements)
}

/// `SequenceLength`.
pub(super) fn length(cx: &Cx<'_>) -> Answer {
    let count = sequence(cx, 0)?.len();
    folded(ElementType::Int64, [], |_| Const::ints(ElementType::Int64, [i64::try_from(count).ok()]))
}

/// `SplitToSequence`.
pub(super) fn split(cx: &Cx<'_>) -> Answer {
    const MOST: u64 = 1 << 16;
    let x = cx.tensor(0)?;
    let at = cx.axis(0)?;
    let whole = x.dims[at];
    let mut keep = true;
    let lengths: Vec<u64> = match cx.ints(1)? {
        None => {
            keep = cx.int("keepdims")? != 0;
            if whole > MOST {
                return unknown("it has too many elements");
            }
            vec![1; whole as usize]
        }
        Some(&[chunk]) if cx.dims(1)?.is_empty() => {
            let chunk = super::extent(chunk, || cx.called(1))?;
            if chunk == 0 || whole.div_ceil(chunk) > MOST {
                return unknown("it has too many elements");
            }
            (0..whole.div_ceil(chunk)).map(|i| chunk.min(whole - i * chunk)).collect()
        }
        Some(lengths) => extents(lengths, || cx.called(1))?,
    };
    if lengths.iter().try_fold(0u64, |n, &l| n.checked_add(l)) != Some(whole) {
        let (x, parts) = (cx.typed(0), show(&lengths));
        return wrong(format!("parts of {parts} do not make the extent of axis {at} of {x}"));
    }
    let element = |&length: &u64| {
        let mut dims = x.dims.clone();
        if keep {
            dims[at] = length;
        } else {
            dims.remove(at);
        }
        TensorType::new(x.element, dims)
    };
    of(lengths.iter().map(element).collect())
}

/// `ConcatFromSequence`.
pub(super) fn concat(cx: &Cx<'_>) -> Answer {
    let elements = sequence(cx, 0)?;
    let Some(first) = elements.first() else { return unknown("the sequence is empty") };
    let fresh = cx.flag("new_axis")?;
    let rank = first.dims.len() + usize::from(fresh);
    let at = cx.axis_of(rank, &"result 0")?;
    let fits = |e: &TensorType| {
        e.dims.len() == first.dims.len()
            && e.dims.iter().zip(&first.dims).enumerate().all(|(i, (a, b))| a == b || (!fresh && i == at))
    };
    if let Some(other) = elements.iter().find(|e| !fits(e)) {
        let sequence = cx.called(0);
        return wrong(format!(
            "{sequence} holds {first} and {other}, which cannot be joined along axis {at}"
        ));
    }
    let mut dims = first.dims.clone();
    if fresh {
        dims.insert(at, elements.len() as u64);
    } else {
        let total = elements.iter().try_fold(0u64, |n, e| n.checked_add(e.dims[at]));
        dims[at] = super::result_extent(at, total.map_or(i128::MAX, i128::from))?;
    }
    product(&dims)?;
    one(first.element, dims)
}
