//! Random tensors.

use super::{Answer, Cx, extent, extents, one, wrong};

/// `RandomNormal`, `RandomUniform`: extents and element type from attributes.
pub(super) fn of_shape(cx: &Cx<'_>) -> Answer {
    let Some(shape) = cx.int_list("shape")? else { return wrong("attribute `shape` is missing") };
    one(cx.need_element("dtype")?, extents(shape, || "attribute `shape`".to_owned())?)
}

/// `RandomNormalLike`, `RandomUniformLike`, `Bernoulli`: the extents of operand 0, in the element type of an attribute.
pub(super) fn like(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    one(cx.element("dtype")?.unwrap_or(x.element), &*x.dims)
}

/// `Multinomial`.
pub(super) fn multinomial(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let &[batch, _] = &*x.dims else { return wrong(format!("{} is no matrix", cx.typed(0))) };
    let samples = extent(cx.int("sample_size")?, || "attribute `sample_size`".to_owned())?;
    one(cx.need_element("dtype")?, [batch, samples])
}
