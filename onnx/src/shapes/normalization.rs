//! Normalizations, their statistics and their gradients.

use lmsc_ir::{ElementType, TensorType};

use super::{Answer, Cx, Fact, Refusal, axis, element_type, one, product, show, wrong};

fn channels(x: &TensorType, scale: &TensorType) -> Result<(), Refusal> {
    let count = x.dims.get(1).copied().unwrap_or(1);
    if scale.dims != [count] {
        return wrong(format!("{scale} for the {count} channels of {x}"));
    }
    Ok(())
}

/// `BatchNormalization` of every version, and `BatchNormInternal`: the data, the running statistics, and the
/// statistics of the batch.
pub(super) fn batch(cx: &Cx<'_>) -> Answer {
    let (x, scale, mean) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(3)?);
    channels(x, scale)?;
    channels(x, mean)?;
    let statistic = || Some(Fact::from(TensorType::new(mean.element, &*mean.dims)));
    let saved = || {
        // ORT keeps the statistics of half-precision data in 32 bits, as the running ones.
        Some(Fact::from(TensorType::new(mean.element, &*scale.dims)))
    };
    Ok(vec![Some(x.clone().into()), statistic(), statistic(), saved(), saved()])
}

/// `BatchNormalizationGrad(dY, X, scale, mean, inverse deviation)`: gradients of X, scale and bias.
pub(super) fn batch_gradient(cx: &Cx<'_>) -> Answer {
    let (dy, x, scale) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    if dy.dims != x.dims {
        return wrong(format!("dY is {dy}, but X is {x}"));
    }
    channels(x, scale)?;
    cx.like(&[1, 2, 2])
}

/// The type of what is kept per normalized row: extents from `at` on are 1.
fn rows(cx: &Cx<'_>, x: &TensorType, default: i64) -> Result<TensorType, Refusal> {
    let at = axis(cx.int_or("axis", default)?, x.dims.len())?;
    let element = match cx.int_or("stash_type", 1)? {
        code if code == 1 && x.element == ElementType::Double && !cx.query.op.domain().is_empty() => {
            x.element
        }
        code => match element_type(code) {
            Some(element) => element,
            None => return wrong(format!("stash_type {code}")),
        },
    };
    let dims = x.dims.iter().enumerate().map(|(i, &d)| if i < at { d } else { 1 });
    Ok(TensorType::new(element, dims.collect::<Vec<_>>()))
}

/// `LayerNormalization`: the data, the means and the inverse deviations.
pub(super) fn layer(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let row = rows(cx, x, -1)?;
    Ok(vec![Some(x.clone().into()), Some(row.clone().into()), Some(row.into())])
}

/// `SimplifiedLayerNormalization`: the data and the inverse deviations.
pub(super) fn simplified_layer(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    Ok(vec![Some(x.clone().into()), Some(rows(cx, x, -1)?.into())])
}

/// `SkipLayerNormalization`: the data, two statistics, the sum that was normalized.
pub(super) fn skip_layer(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let row = rows(cx, x, -1)?;
    Ok(vec![Some(x.clone().into()), Some(row.clone().into()), Some(row.into()), Some(x.clone().into())])
}

/// `LayerNormalizationGrad(dY, X, scale, …)`: gradients of X, scale and bias.
pub(super) fn layer_gradient(cx: &Cx<'_>) -> Answer {
    let (dy, x) = (cx.tensor(0)?, cx.tensor(1)?);
    if dy.dims != x.dims {
        return wrong(format!("dY is {dy}, but X is {x}"));
    }
    cx.tensor(2)?;
    cx.like(&[1, 2, 2])
}

/// `InstanceNormalization` and `GroupNormalization`.
pub(super) fn instance(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    if x.dims.len() < 2 {
        return wrong(format!("{x} has no channels"));
    }
    one(x.element, &*x.dims)
}

/// `Softmax` and its kin, which keep the type but need the axis.
pub(super) fn along_axis(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    // Before version 13 the axis could also stand behind the last one.
    let behind = x.dims.len() as i64;
    if let Some(at) = cx.int("axis")?.filter(|&at| at != behind && behind > 0) {
        axis(at, x.dims.len())?;
    }
    one(x.element, &*x.dims)
}

/// `LpNormalization`-like gradients `(dY, Y)`: as dY, checked against the number of elements of Y.
pub(super) fn along_axis_gradient(cx: &Cx<'_>) -> Answer {
    let (dy, y) = (cx.tensor(0)?, cx.tensor(1)?);
    if dy.dims != y.dims {
        return wrong(format!("dY is {dy}, but Y is {y} ({} elements)", product(&y.dims)?));
    }
    along_axis(cx)
}

/// `MeanVarianceNormalization`, `LRN`: as operand 0, which has channels.
pub(super) fn local(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    if x.dims.is_empty() {
        return wrong(format!("{} has no channels", show(&x.dims)));
    }
    one(x.element, &*x.dims)
}
