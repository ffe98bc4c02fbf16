//! Names of element types in MLIR, and texts of types, strings and numbers.

use std::fmt::{self, Write};

use half::{bf16, f16};
use lmsc_ir::{ElementType, TensorType, Type};

/// Element types and their names in MLIR. A string is a type of onnx-mlir's.
#[rustfmt::skip]
const ELEMENTS: &[(ElementType, &str)] = &[
    (ElementType::Float, "f32"),
    (ElementType::Double, "f64"),
    (ElementType::Float16, "f16"),
    (ElementType::Bfloat16, "bf16"),
    (ElementType::Int8, "i8"),
    (ElementType::Int16, "i16"),
    (ElementType::Int32, "i32"),
    (ElementType::Int64, "i64"),
    (ElementType::Uint8, "ui8"),
    (ElementType::Uint16, "ui16"),
    (ElementType::Uint32, "ui32"),
    (ElementType::Uint64, "ui64"),
    (ElementType::Bool, "i1"),
    (ElementType::String, "!onnx.String"),
    (ElementType::Complex64, "complex<f32>"),
    (ElementType::Complex128, "complex<f64>"),
    (ElementType::Float8e4m3fn, "f8E4M3FN"),
    (ElementType::Float8e4m3fnuz, "f8E4M3FNUZ"),
    (ElementType::Float8e5m2, "f8E5M2"),
    (ElementType::Float8e5m2fnuz, "f8E5M2FNUZ"),
    (ElementType::Float8e8m0, "f8E8M0FNU"),
    (ElementType::Float4e2m1, "f4E2M1FN"),
    (ElementType::Int4, "i4"),
    (ElementType::Uint4, "ui4"),
    (ElementType::Int2, "i2"),
    (ElementType::Uint2, "ui2"),
];

/// MLIR's name of the element type.
pub(crate) fn element_name(element: ElementType) -> &'static str {
    ELEMENTS.iter().find(|row| row.0 == element).expect("every element type has a row").1
}

/// The element type of this name in MLIR.
pub(crate) fn element_named(name: &str) -> Option<ElementType> {
    ELEMENTS.iter().find(|row| row.1 == name).map(|row| row.0)
}

/// `tensor<4x8xf32>`.
pub(crate) fn tensor(out: &mut String, ty: &TensorType) {
    out.push_str("tensor<");
    for dim in &ty.dims {
        push(out, format_args!("{dim}x"));
    }
    out.push_str(element_name(ty.element));
    out.push('>');
}

/// A tensor, or a tuple of them for a sequence; `!lms.host<…>` if it is on the host.
pub(crate) fn value(out: &mut String, ty: &Type, host: bool) {
    if host {
        out.push_str("!lms.host<");
    }
    match ty {
        Type::Tensor(ty) => tensor(out, ty),
        Type::Sequence(elements) => {
            out.push_str("tuple<");
            separated(out, elements, tensor);
            out.push('>');
        }
    }
    if host {
        out.push('>');
    }
}

/// The items with commas between them, eight on a line: few operations have more.
pub(crate) fn separated<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut print: impl FnMut(&mut String, T),
) {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push_str(if i % 8 == 0 { NEXT_LINE } else { ", " });
        }
        print(out, item);
    }
}

/// A comma, and a new line where this one is long: the function of a real graph has hundreds of arguments with long attributes.
pub(crate) fn comma(out: &mut String) {
    const LONG: usize = 120;
    let line = out.len() - out.rfind('\n').map_or(0, |at| at + 1);
    out.push_str(if line > LONG { NEXT_LINE } else { ", " });
}

const NEXT_LINE: &str = ",\n      ";

/// A string in quotes: printable ASCII as it is, every other byte in hexadecimal.
pub(crate) fn quoted(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for &byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'"' => out.push_str("\\22"),
            b' '..=b'~' => out.push(byte.into()),
            _ => push(out, format_args!("\\{byte:02X}")),
        }
    }
    out.push('"');
}

/// The number with a point, or its bits in hexadecimal if no decimal number represents it.
pub(crate) fn float(out: &mut String, value: f32) {
    let text = with_point(&format!("{value:?}"));
    // MLIR reads a decimal number as a double first.
    let read = text.parse::<f64>().map(|double| (double as f32).to_bits());
    if value.is_finite() && read == Ok(value.to_bits()) {
        out.push_str(&text)
    } else {
        push(out, format_args!("0x{:08X}", value.to_bits()))
    }
}

/// The same for 64 bits.
pub(crate) fn double(out: &mut String, value: f64) {
    if value.is_finite() {
        out.push_str(&with_point(&format!("{value:?}")))
    } else {
        push(out, format_args!("0x{:016X}", value.to_bits()))
    }
}

/// The same for the 16 bits of a number whose value is `value`.
pub(crate) fn half_float(out: &mut String, bits: u16, value: f64) {
    if value.is_finite() { double(out, value) } else { push(out, format_args!("0x{bits:04X}")) }
}

/// A float in MLIR's grammar has a point, also before an exponent.
fn with_point(text: &str) -> String {
    match text.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => text.to_owned(),
    }
}

/// The bits of a decimal number in this type, least significant byte first; `None` if the type has no such numbers.
pub(crate) fn float_bytes(element: ElementType, text: &str) -> Option<Vec<u8>> {
    Some(match element {
        ElementType::Float => text.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        ElementType::Double => text.parse::<f64>().ok()?.to_le_bytes().to_vec(),
        ElementType::Float16 => f16::from_f64(text.parse().ok()?).to_le_bytes().to_vec(),
        ElementType::Bfloat16 => bf16::from_f64(text.parse().ok()?).to_le_bytes().to_vec(),
        _ => return None,
    })
}

pub(crate) fn push(out: &mut String, value: impl fmt::Display) {
    write!(out, "{value}").expect("a String takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_has_a_name_of_its_own() {
        for &element in ElementType::ALL {
            assert_eq!(element_named(element_name(element)), Some(element));
        }
        assert_eq!(ELEMENTS.len(), ElementType::ALL.len());
    }

    #[test]
    fn floats_have_a_point_and_keep_their_bits() {
        let text = |bits| {
            let mut out = String::new();
            float(&mut out, f32::from_bits(bits));
            out
        };
        let cases = [
            (0x3f80_0000, "1.0"),
            (0x3727_c5ac, "1.0e-5"),
            (0x8000_0000, "-0.0"),
            (0x7f7f_ffff, "3.4028235e38"),
            (0x7f80_0000, "0x7F800000"),
            (0x7fc0_0001, "0x7FC00001"),
            (1, "1.0e-45"),
        ];
        for (bits, expected) in cases {
            assert_eq!(text(bits), expected);
        }
        for bits in (0..=u32::MAX).step_by(99_991).filter(|&bits| f32::from_bits(bits).is_finite()) {
            let read = float_bytes(ElementType::Float, &text(bits));
            assert_eq!(read, Some(bits.to_le_bytes().to_vec()), "{}", text(bits));
        }
    }
}
