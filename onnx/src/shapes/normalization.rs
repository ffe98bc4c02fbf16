//! Normalizations, their statistics and their gradients.

use lmsc_ir::{ElementType, TensorType};

use super::{ANY_VERSION, Answer, Cx, ELEMENT_TYPES, Fact, Refusal, axis, element_type, one, wrong};

/// Refuses a `scale` that does not have one element for each channel of `x`; it may be left out.
fn channels(cx: &Cx<'_>, x: usize, scale: usize) -> Result<(), Refusal> {
    let count = cx.dims(x)?.get(1).copied().unwrap_or(1);
    if cx.operand(scale).is_none() {
        return Ok(());
    }
    if cx.dims(scale)? != [count] {
        let (x, scale) = (cx.typed(x), cx.typed(scale));
        return wrong(format!(
            "{scale} does not have the {count} channels of {x}; expected the extents [{count}]"
        ));
    }
    Ok(())
}

/// Whether a `BatchNormalization` normalizes by the statistics of the batch. Before version 14 this was indicated by the presence
/// of further results, before version 7 by an attribute.
fn trains(cx: &Cx<'_>) -> Result<bool, Refusal> {
    let onnx = cx.query.op.domain().is_empty();
    match cx.version() {
        ..7 if onnx => Ok(!cx.flag("is_test")?),
        ..14 if onnx => Ok(cx.result_count() > 1),
        _ => cx.flag("training_mode"),
    }
}

/// `BatchNormalization` of every version, and `BatchNormInternal`: the data, the running statistics, and the statistics of the
/// batch. A recomputed node has no running statistics.
pub(super) fn batch(cx: &Cx<'_>) -> Answer {
    let (x, scale) = (cx.tensor(0)?, cx.tensor(1)?);
    (1..5).try_for_each(|i| channels(cx, 0, i))?;
    if cx.knows("spatial") && !cx.flag("spatial")? {
        return wrong(
            "attribute `spatial` is 0, which asks for statistics of each element; lmsc knows those of channels",
        );
    }
    if cx.operand(3).is_some() != cx.operand(4).is_some() {
        return wrong("of the running mean and variance, operands 3 and 4, one is left out");
    }
    if cx.operand(3).is_none() && trains(cx)? {
        // For half precision, the file declares their type.
        let same = matches!(scale.element, ElementType::Float | ElementType::Double);
        let saved = || same.then(|| Fact::from(TensorType::new(scale.element, &*scale.dims)));
        return Ok(vec![Some(x.clone().into()), None, None, saved(), saved()]);
    }
    let mean = cx.tensor(3)?;
    let statistic = || Some(Fact::from(TensorType::new(mean.element, &*mean.dims)));
    let saved = || {
        // ORT keeps the statistics of half-precision data in 32 bits, as the running ones.
        Some(Fact::from(TensorType::new(mean.element, &*scale.dims)))
    };
    Ok(vec![Some(x.clone().into()), statistic(), statistic(), saved(), saved()])
}

/// Refuses a dY whose extents differ from those of operand 1.
fn gradient_of_first(cx: &Cx<'_>) -> Result<(), Refusal> {
    if cx.dims(0)? == cx.dims(1)? {
        Ok(())
    } else {
        wrong(format!("dY is {}, of other extents than {}", cx.typed(0), cx.typed(1)))
    }
}

/// `BatchNormalizationGrad(dY, X, scale, mean, inverse deviation)`: gradients of X, scale and bias.
pub(super) fn batch_gradient(cx: &Cx<'_>) -> Answer {
    gradient_of_first(cx)?;
    (2..5).try_for_each(|i| channels(cx, 1, i))?;
    cx.like(&[1, 2, 2])
}

/// Refuses scales and biases that do not broadcast to the axes of `x` that are normalized together.
fn factors(cx: &Cx<'_>, x: usize, of: &[usize]) -> Result<(), Refusal> {
    let normalized = &cx.dims(x)?[cx.axis(x)?..];
    of.iter().try_for_each(|&i| cx.expect_broadcast(i, normalized))
}

/// The type of the statistics of normalized rows: extents from `at` on are 1.
fn rows(cx: &Cx<'_>, x: &TensorType, at: usize, stashed: i64) -> Result<TensorType, Refusal> {
    let element = match stashed {
        code if code == 1 && x.element == ElementType::Double && !cx.query.op.domain().is_empty() => {
            x.element
        }
        code => match element_type(code) {
            Some(element) => element,
            None => {
                return wrong(format!("attribute `stash_type` is {code}, no element type; {ELEMENT_TYPES}"));
            }
        },
    };
    let dims = x.dims.iter().enumerate().map(|(i, &d)| if i < at { d } else { 1 });
    Ok(TensorType::new(element, dims.collect::<Vec<_>>()))
}

/// `LayerNormalization`: the data, the means and the inverse deviations.
pub(super) fn layer(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let row = rows(cx, x, cx.axis(0)?, cx.int("stash_type")?)?;
    factors(cx, 0, &[1, 2])?;
    Ok(vec![Some(x.clone().into()), Some(row.clone().into()), Some(row.into())])
}

/// `SimplifiedLayerNormalization`: the data and the inverse deviations.
pub(super) fn simplified_layer(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    factors(cx, 0, &[1])?;
    Ok(vec![Some(x.clone().into()), Some(rows(cx, x, cx.axis(0)?, cx.int("stash_type")?)?.into())])
}

/// `SkipLayerNormalization`: the data, two statistics, the sum that was normalized.
pub(super) fn skip_layer(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let last = axis(-1, x.dims.len(), &"operand 0", || "the normalized axis".to_owned())?;
    let row = rows(cx, x, last, crate::shapes::data_type(ElementType::Float).into())?;
    Ok(vec![Some(x.clone().into()), Some(row.clone().into()), Some(row.into()), Some(x.clone().into())])
}

/// `LayerNormalizationGrad(dY, X, scale, …, 1/σ)`, with means, or the bias, before the last operand: gradients of X, scale and
/// bias. `kept` are the operands with statistics of the forward pass.
pub(super) fn layer_gradient(cx: &Cx<'_>, kept: &[usize]) -> Answer {
    gradient_of_first(cx)?;
    let x = cx.tensor(1)?;
    let at = cx.axis(1)?;
    cx.expect(2, &x.dims[at..])?;
    if !kept.contains(&3) {
        cx.expect(3, &x.dims[at..])?;
    }
    // The statistics may or may not keep the normalized axes.
    let count = super::product(&x.dims[..at])?;
    for &index in kept {
        if super::product(cx.dims(index)?)? != count {
            return wrong(format!(
                "{} has not one element for each of the {count} rows of {}",
                cx.typed(index),
                cx.typed(1)
            ));
        }
    }
    cx.like(&[1, 2, 2])
}

/// `InstanceNormalization` and `GroupNormalization`.
pub(super) fn instance(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    if x.dims.len() < 2 {
        return wrong(format!("{} has no channels; expected [batch, channels, …]", cx.typed(0)));
    }
    // Before version 21 scale and bias of group normalization belong to groups.
    let groups = if cx.knows("num_groups") { u64::try_from(cx.int("num_groups")?).ok() } else { None };
    let factors = match groups {
        Some(groups) if cx.version() < 21 => groups,
        Some(groups) if cx.version() == ANY_VERSION && cx.dims(1)? == [groups] => groups,
        _ => x.dims[1],
    };
    cx.expect(1, &[factors])?;
    cx.expect(2, &[factors])?;
    one(x.element, &*x.dims)
}

/// `Softmax` and similar operators, which keep the type but need the axis.
pub(super) fn along_axis(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    // Before version 13 the axis could also be behind the last one.
    let behind = x.dims.len() as i64;
    let at = cx.int("axis")?;
    if at != behind && behind > 0 {
        axis(at, x.dims.len(), &"operand 0", || "attribute `axis`".to_owned())?;
    }
    one(x.element, &*x.dims)
}

/// Gradients like that of `LpNormalization` `(dY, Y)`: the type of dY, which has the extents of Y.
pub(super) fn along_axis_gradient(cx: &Cx<'_>) -> Answer {
    gradient_of_first(cx)?;
    along_axis(cx)
}

/// `MeanVarianceNormalization`, `LRN`: the type of operand 0, which has channels.
pub(super) fn local(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    if x.dims.is_empty() {
        return wrong(format!("{} is a scalar, which has no channels", cx.typed(0)));
    }
    one(x.element, &*x.dims)
}
