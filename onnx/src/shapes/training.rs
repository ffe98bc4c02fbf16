//! Optimizers, accumulators and other operators that occur only in training graphs.

use lmsc_ir::words::count;
use lmsc_ir::{ElementType, TensorType, Type};

use super::{Answer, Cx, Fact, one, wrong};

fn flag() -> Option<Fact> {
    Some(TensorType::new(ElementType::Bool, [1]).into())
}

fn alike(cx: &Cx<'_>, a: usize, b: usize) -> Result<(), super::Refusal> {
    let (Some(first), Some(second)) = (cx.operand(a), cx.operand(b)) else { return Ok(()) };
    let same = match (first.ty, second.ty) {
        (Type::Tensor(x), Type::Tensor(y)) => x.dims == y.dims,
        (Type::Sequence(x), Type::Sequence(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(x, y)| x.dims == y.dims)
        }
        _ => false,
    };
    if !same {
        return wrong(format!(
            "{} and {} have different extents; expected the same",
            cx.typed(a),
            cx.typed(b)
        ));
    }
    Ok(())
}

/// `InPlaceAccumulatorV2(buffer, gradient, overwrite)`: a flag, and the buffer after it.
pub(super) fn accumulate_in_place(cx: &Cx<'_>) -> Answer {
    let buffer = cx.tensor(0)?.clone();
    alike(cx, 0, 1)?;
    cx.expect_one(2)?;
    Ok(vec![flag(), Some(buffer.into())])
}

/// `GradientAccumulator(sum, gradient)`, `InPlaceAccumulator`: the sum.
pub(super) fn accumulate(cx: &Cx<'_>) -> Answer {
    alike(cx, 0, 1)?;
    cx.expect_one(2)?;
    cx.like(&[0])
}

/// `com.microsoft.AdamWOptimizer(lr, step, weights, gradients, moments, moments)`: a flag, then the sequences.
pub(super) fn adamw_sequences(cx: &Cx<'_>) -> Answer {
    (3..6).try_for_each(|i| alike(cx, 2, i))?;
    [0, 1, 6].into_iter().try_for_each(|i| cx.expect_one(i))?;
    let mut facts = vec![flag()];
    facts.extend(cx.like(&[2, 4, 5])?);
    Ok(facts)
}

/// `com.microsoft.SGDOptimizerV2(lr, weights, gradients)`.
pub(super) fn sgd_sequences(cx: &Cx<'_>) -> Answer {
    alike(cx, 1, 2)?;
    [0, 3].into_iter().try_for_each(|i| cx.expect_one(i))?;
    let mut facts = vec![flag()];
    facts.extend(cx.like(&[1])?);
    Ok(facts)
}

/// `com.microsoft.AdamOptimizer(lr, step, w, g, m, v)`: step, moments, weight, gradient, and the weight in half
/// precision.
pub(super) fn adam_single(cx: &Cx<'_>) -> Answer {
    (3..7).try_for_each(|i| alike(cx, 2, i))?;
    [0, 1, 7, 8, 9].into_iter().try_for_each(|i| cx.expect_one(i))?;
    cx.like(&[1, 4, 5, 2, 3, 6])
}

/// `com.microsoft.SGDOptimizer(lr, w, g)`: weight, gradient.
pub(super) fn sgd_single(cx: &Cx<'_>) -> Answer {
    alike(cx, 1, 2)?;
    cx.expect_one(0)?;
    cx.like(&[1, 2])
}

/// `ai.lmsc.AdamWOptimizer(lr, step, w, g, m, v, short w)`: weight and moments, and the weight in the precision of the last operand.
pub(super) fn adamw(cx: &Cx<'_>) -> Answer {
    if cx.operand(6).is_none() {
        exactly(cx, 6, 3)?;
    } else {
        exactly(cx, 7, 4)?;
    }
    (3..7).try_for_each(|i| alike(cx, 2, i))?;
    [0, 1].into_iter().try_for_each(|i| cx.expect_one(i))?;
    cx.like(&[2, 4, 5, 6])
}

/// Refuses missing or superfluous operands, and superfluous results: our own operators have no other forms.
fn exactly(cx: &Cx<'_>, operands: usize, results: usize) -> Result<(), super::Refusal> {
    if cx.operand_count() != operands || cx.result_count() > results {
        let (found, asked) = (cx.operand_count(), cx.result_count());
        let (found, asked) = (count(found, "operand"), count(asked, "result"));
        return wrong(format!("it has {found} and {asked}; expected {operands} and at most {results}"));
    }
    (0..operands).try_for_each(|i| cx.tensor(i).map(|_| ()))
}

/// `ai.lmsc.SGDOptimizer(lr, w, g)`: the weight.
pub(super) fn sgd(cx: &Cx<'_>) -> Answer {
    exactly(cx, 3, 1)?;
    cx.expect_one(0)?;
    alike(cx, 1, 2)?;
    cx.like(&[1])
}

/// ONNX's own optimizers `(rate, count, X…, G…, states…)`: `X…` and each state, updated.
pub(super) fn preview(cx: &Cx<'_>, states: usize) -> Answer {
    let per_tensor = cx.operand_count().saturating_sub(2);
    let groups = states + 2;
    if per_tensor == 0 || !per_tensor.is_multiple_of(groups) {
        let found = count(per_tensor, "operand");
        return wrong(format!(
            "it has {found} behind rate and count; expected {groups} groups of equal size"
        ));
    }
    let n = per_tensor / groups;
    [0, 1].into_iter().try_for_each(|i| cx.expect_one(i))?;
    for (i, state) in (0..n).flat_map(|i| (1..groups).map(move |s| (i, s))) {
        alike(cx, 2 + i, 2 + state * n + i)?;
    }
    let updated = (0..n).chain(2 * n..groups * n);
    cx.like(&updated.map(|i| 2 + i).collect::<Vec<_>>())
}

/// `YieldOp`: for every model output with a gradient, a tensor of its type.
pub(super) fn yield_op(cx: &Cx<'_>) -> Answer {
    let without = cx.int_list("non_differentiable_outputs")?.unwrap_or(&[]);
    let with = (0..cx.operand_count()).filter(|&i| !without.contains(&(i as i64)));
    cx.like(&with.collect::<Vec<_>>())
}

/// `MixedPrecisionScale(scale, X…)`: each X in the element type `to`.
pub(super) fn mixed_precision_scale(cx: &Cx<'_>) -> Answer {
    let to = cx.need_element("to")?;
    if cx.flag("fuse_outputs")? {
        let counts = (1..cx.operand_count()).map(|i| super::product(cx.dims(i)?));
        let mut total = 0u64;
        for count in counts {
            total = total.saturating_add(count?);
        }
        return one(to, [total]);
    }
    let each = |i| Ok(Some(TensorType::new(to, cx.dims(i)?).into()));
    (1..cx.operand_count()).map(each).collect()
}

/// `ReduceAllL2(X…)`: one float.
pub(super) fn norm_of_all(_: &Cx<'_>) -> Answer {
    one(ElementType::Float, [])
}

/// `IsAllFinite(X…)` and flags such as `Group`'s: one Boolean.
pub(super) fn one_flag(_: &Cx<'_>) -> Answer {
    one(ElementType::Bool, [])
}

/// `PassThrough(X…)` and similar operators: each result has the type of its operand.
pub(super) fn pass_through(cx: &Cx<'_>) -> Answer {
    cx.like(&(0..cx.operand_count()).collect::<Vec<_>>())
}

/// `RecordEvent(event, X…)`: each X.
pub(super) fn record_event(cx: &Cx<'_>) -> Answer {
    cx.like(&(1..cx.operand_count()).collect::<Vec<_>>())
}

/// `Gradient`: refused, because it names other values in attributes, so that no edge shows its reads.
pub(super) fn symbolic_gradient(_: &Cx<'_>) -> Answer {
    wrong(
        "it stands for the gradient of other nodes, which it names in attributes; lmsc rewrites graphs whose \
         backward pass is made of nodes (as onnxruntime-training and PyTorch write them)",
    )
}
