//! Arithmetic on elements that are known: counters of loops, places in buffers, and the conditions on them.

use half::{bf16, f16};
use lmsc_ir::ElementType;

use super::term::Scalar;

/// A known number.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Number {
    Integer(i128),
    Float(f64),
}

fn decode(element: ElementType, bytes: &[u8]) -> Option<Number> {
    macro_rules! read {
        ($t:ty) => {
            <$t>::from_le_bytes(bytes.try_into().ok()?)
        };
    }
    Some(match element {
        ElementType::Bool | ElementType::Uint8 => Number::Integer(read!(u8).into()),
        ElementType::Int8 => Number::Integer(read!(i8).into()),
        ElementType::Int16 => Number::Integer(read!(i16).into()),
        ElementType::Uint16 => Number::Integer(read!(u16).into()),
        ElementType::Int32 => Number::Integer(read!(i32).into()),
        ElementType::Uint32 => Number::Integer(read!(u32).into()),
        ElementType::Int64 => Number::Integer(read!(i64).into()),
        ElementType::Uint64 => Number::Integer(read!(u64).into()),
        ElementType::Float => Number::Float(read!(f32).into()),
        ElementType::Double => Number::Float(read!(f64)),
        ElementType::Float16 => Number::Float(f16::from_bits(read!(u16)).into()),
        ElementType::Bfloat16 => Number::Float(bf16::from_bits(read!(u16)).into()),
        _ => return None,
    })
}

/// The integer in this type; its upper bits are cut off.
fn encode(element: ElementType, value: i128) -> Option<Scalar> {
    let width = (element.bits() / 8) as usize;
    match element {
        ElementType::Bool => Some(Scalar::from_slice(&[u8::from(value != 0)])),
        ElementType::Float => Some(Scalar::from_slice(&(value as f32).to_le_bytes())),
        ElementType::Double => Some(Scalar::from_slice(&(value as f64).to_le_bytes())),
        ElementType::Int8
        | ElementType::Int16
        | ElementType::Int32
        | ElementType::Int64
        | ElementType::Uint8
        | ElementType::Uint16
        | ElementType::Uint32
        | ElementType::Uint64 => Some(Scalar::from_slice(&value.to_le_bytes()[..width])),
        _ => None,
    }
}

/// An integer as an element of this type, where the type has integers, truth values or long floats.
pub(super) fn scalar(element: ElementType, value: i64) -> Option<Scalar> {
    encode(element, value.into())
}

/// The number as an element of a float type.
pub(super) fn float(element: ElementType, value: f64) -> Option<Scalar> {
    Some(match element {
        ElementType::Float => Scalar::from_slice(&(value as f32).to_le_bytes()),
        ElementType::Double => Scalar::from_slice(&value.to_le_bytes()),
        ElementType::Float16 => Scalar::from_slice(&f16::from_f64(value).to_le_bytes()),
        ElementType::Bfloat16 => Scalar::from_slice(&bf16::from_f64(value).to_le_bytes()),
        _ => return None,
    })
}

/// The number that the bytes are, where it is a float.
pub(super) fn as_float(element: ElementType, bytes: &[u8]) -> Option<f64> {
    match decode(element, bytes)? {
        Number::Float(value) => Some(value),
        Number::Integer(_) => None,
    }
}

/// The element that the operator computes of known ones; `None` if that is left to the step.
pub(super) fn operator(name: &str, element: ElementType, operands: &[&Scalar]) -> Option<Scalar> {
    let numbers: Vec<i128> = operands
        .iter()
        .map(|bytes| match decode(element, bytes) {
            Some(Number::Integer(value)) => Some(value),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let is_bool = element == ElementType::Bool;
    let value = match (name, &numbers[..]) {
        ("add" | "or" | "maximum", &[a, b]) if is_bool => a | b,
        ("multiply" | "and" | "minimum", &[a, b]) if is_bool => a & b,
        ("not", &[a]) if is_bool => 1 - a,
        ("subtract" | "divide" | "remainder" | "negate", _) if is_bool => return None,
        ("add", &[a, b]) => a + b,
        ("subtract", &[a, b]) => a - b,
        // The product of two numbers of 64 bits has at most 127.
        ("multiply", &[a, b]) => a.wrapping_mul(b),
        ("divide", &[a, b]) if b != 0 => a / b,
        ("remainder", &[a, b]) if b != 0 => a % b,
        ("maximum", &[a, b]) => a.max(b),
        ("minimum", &[a, b]) => a.min(b),
        ("and", &[a, b]) => a & b,
        ("or", &[a, b]) => a | b,
        ("xor", &[a, b]) => a ^ b,
        ("not", &[a]) => !a,
        ("negate", &[a]) => -a,
        ("clamp", &[low, x, high]) => x.max(low).min(high),
        _ => return None,
    };
    encode(element, value)
}

/// Whether the comparison of two known elements holds.
pub(super) fn comparison(direction: &str, element: ElementType, a: &Scalar, b: &Scalar) -> Option<bool> {
    let (a, b) = (decode(element, a)?, decode(element, b)?);
    Some(match direction {
        "EQ" => a == b,
        "NE" => a != b,
        "LT" => a < b,
        "LE" => a <= b,
        "GT" => a > b,
        "GE" => a >= b,
        _ => return None,
    })
}

/// The known integer or truth value in another type.
pub(super) fn conversion(from: ElementType, to: ElementType, bytes: &Scalar) -> Option<Scalar> {
    match decode(from, bytes)? {
        Number::Integer(value) => encode(to, value),
        Number::Float(_) => None,
    }
}
