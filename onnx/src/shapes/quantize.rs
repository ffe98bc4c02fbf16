//! Quantization.

use lmsc_ir::{ElementType, TensorType};

use super::{Answer, Cx, Refusal, one};

/// The element type that an attribute of some operators names, which may be 0 for none.
fn named(cx: &Cx<'_>) -> Result<Option<ElementType>, Refusal> {
    let is_named = cx.knows("output_dtype") && cx.int("output_dtype")? != 0;
    if is_named { cx.element("output_dtype") } else { Ok(None) }
}

/// `QuantizeLinear(x, scale, zero)`: elements of the zero point's type.
pub(super) fn quantize(cx: &Cx<'_>) -> Answer {
    let named = named(cx)?;
    let element = cx.maybe(2).map(|z| z.element).or(named).unwrap_or(ElementType::Uint8);
    one(element, cx.dims(0)?)
}

/// `DequantizeLinear(x, scale, zero)`: elements of the scale's type.
pub(super) fn dequantize(cx: &Cx<'_>) -> Answer {
    let element = named(cx)?.map_or_else(|| Ok(cx.tensor(1)?.element), Ok)?;
    one(element, cx.dims(0)?)
}

/// `DynamicQuantizeLinear`: the data, the scale, the zero point.
pub(super) fn dynamic(cx: &Cx<'_>) -> Answer {
    let of = |element, dims: &[u64]| Some(TensorType::new(element, dims).into());
    Ok(vec![of(ElementType::Uint8, cx.dims(0)?), of(ElementType::Float, &[]), of(ElementType::Uint8, &[])])
}
