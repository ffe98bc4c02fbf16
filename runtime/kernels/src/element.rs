//! Element types: storage, and the type used in computations.

use bytemuck::Pod;
use half::{bf16, f16};

/// A storage type of tensor elements.
pub(crate) trait Stored: Pod + Send + Sync {
    /// The type used in computations: `f32` for the short floats, otherwise the type itself.
    type Math: Pod + Send + Sync + PartialOrd;

    fn read(self) -> Self::Math;
    fn write(value: Self::Math) -> Self;
    /// The elements themselves, if the storage type is the computation type.
    fn direct(elements: &[Self]) -> Option<&[Self::Math]>;
    fn direct_mut(elements: &mut [Self]) -> Option<&mut [Self::Math]>;
}

macro_rules! stored_as_is {
    ($($t:ty)*) => { $(
        impl Stored for $t {
            type Math = $t;
            #[inline(always)]
            fn read(self) -> $t { self }
            #[inline(always)]
            fn write(value: $t) -> $t { value }
            fn direct(elements: &[$t]) -> Option<&[$t]> { Some(elements) }
            fn direct_mut(elements: &mut [$t]) -> Option<&mut [$t]> { Some(elements) }
        }
    )* };
}

stored_as_is!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! stored_short {
    ($($t:ty)*) => { $(
        impl Stored for $t {
            type Math = f32;
            fn read(self) -> f32 { self.to_f32() }
            fn write(value: f32) -> $t { <$t>::from_f32(value) }
            fn direct(_: &[$t]) -> Option<&[f32]> { None }
            fn direct_mut(_: &mut [$t]) -> Option<&mut [f32]> { None }
        }
    )* };
}

stored_short!(f16 bf16);

/// Runs the body with `$T` as the type that stores the element, one of the listed groups, or refuses.
macro_rules! dispatch {
    (@ $element:expr, $T:ident, $body:expr, [$($variant:ident $t:ty),*]) => {
        match $element {
            $(lmsc_ir::ElementType::$variant => { type $T = $t; $body })*
            other => $crate::spec::refuse(format!("there is no kernel for elements of type {other}")),
        }
    };
    (float $element:expr, $T:ident => $body:expr) => {
        dispatch!(@ $element, $T, $body, [Float f32, Double f64, Float16 half::f16, Bfloat16 half::bf16])
    };
    (integer $element:expr, $T:ident => $body:expr) => {
        dispatch!(@ $element, $T, $body,
            [Int64 i64, Int32 i32, Int16 i16, Int8 i8, Uint64 u64, Uint32 u32, Uint16 u16, Uint8 u8])
    };
    (number $element:expr, $T:ident => $body:expr) => {
        dispatch!(@ $element, $T, $body,
            [Float f32, Double f64, Float16 half::f16, Bfloat16 half::bf16,
             Int64 i64, Int32 i32, Int16 i16, Int8 i8, Uint64 u64, Uint32 u32, Uint16 u16, Uint8 u8])
    };
    // Numbers whose storage type is the computation type: running sums in the result are rounded each time.
    (direct $element:expr, $T:ident => $body:expr) => {
        dispatch!(@ $element, $T, $body, [Float f32, Double f64, Int64 i64, Int32 i32, Int8 i8, Uint8 u8])
    };
    (index $element:expr, $T:ident => $body:expr) => {
        dispatch!(@ $element, $T, $body, [Int64 i64, Int32 i32])
    };
    // Kernels that only move elements depend on their width alone.
    (width $element:expr, $T:ident => $body:expr) => {
        match $element.bits() {
            8 => { type $T = u8; $body }
            16 => { type $T = u16; $body }
            32 => { type $T = u32; $body }
            64 => { type $T = u64; $body }
            _ => $crate::spec::refuse(format!("there is no kernel for elements of type {}", $element)),
        }
    };
}

pub(crate) use dispatch;

/// Arithmetic that wraps where integers overflow.
pub(crate) trait Number: Pod + Send + Sync + PartialOrd {
    const ZERO: Self;
    const ONE: Self;
    /// The least value: the start of a maximum.
    const LEAST: Self;
    const LARGEST: Self;
    /// Whether loops are compiled for wider vectors, too.
    const IS_VECTORIZED: bool;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// The quotient; 0 where an integer is divided by 0, which ONNX leaves open.
    fn over(self, other: Self) -> Self;
    fn magnitude(self) -> Self;
    fn to_power(self, exponent: f64) -> Self;
    fn of_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
    /// The remainder of a division that rounds towards 0; 0 where an integer is divided by 0, which ONNX leaves open.
    fn rest(self, other: Self) -> Self;
    /// The same magnitude with the sign of the other, for types with a signed 0.
    fn signed_as(self, other: Self) -> Self;
    /// The larger one, or NaN if one is.
    fn larger(self, other: Self) -> Self;
    fn smaller(self, other: Self) -> Self;
}

macro_rules! float_number {
    ($($t:ident $vectorized:literal)*) => { $(
        impl Number for $t {
            const ZERO: $t = 0.0;
            const ONE: $t = 1.0;
            const LEAST: $t = $t::NEG_INFINITY;
            const LARGEST: $t = $t::INFINITY;
            const IS_VECTORIZED: bool = $vectorized;
            #[inline(always)]
            fn plus(self, other: $t) -> $t { self + other }
            #[inline(always)]
            fn minus(self, other: $t) -> $t { self - other }
            #[inline(always)]
            fn times(self, other: $t) -> $t { self * other }
            #[inline(always)]
            fn over(self, other: $t) -> $t { self / other }
            #[inline(always)]
            fn magnitude(self) -> $t { self.abs() }
            #[inline(always)]
            fn to_power(self, exponent: f64) -> $t { self.powf(exponent as $t) }
            #[inline(always)]
            fn rest(self, other: $t) -> $t { self % other }
            #[inline(always)]
            fn signed_as(self, other: $t) -> $t { self.copysign(other) }
            #[inline(always)]
            fn of_f64(value: f64) -> $t { value as $t }
            #[inline(always)]
            fn to_f64(self) -> f64 { f64::from(self) }
            #[inline(always)]
            fn larger(self, other: $t) -> $t { if self >= other || self.is_nan() { self } else { other } }
            #[inline(always)]
            fn smaller(self, other: $t) -> $t { if self <= other || self.is_nan() { self } else { other } }
        }
    )* };
}

float_number!(f32 true f64 false);

macro_rules! integer_number {
    (|$x:ident| $magnitude:expr; $($t:ident)*) => { $(
        impl Number for $t {
            const ZERO: $t = 0;
            const ONE: $t = 1;
            const LEAST: $t = $t::MIN;
            const LARGEST: $t = $t::MAX;
            const IS_VECTORIZED: bool = false;
            fn plus(self, other: $t) -> $t { self.wrapping_add(other) }
            fn minus(self, other: $t) -> $t { self.wrapping_sub(other) }
            fn times(self, other: $t) -> $t { self.wrapping_mul(other) }
            fn over(self, other: $t) -> $t { if other == 0 { 0 } else { self.wrapping_div(other) } }
            fn magnitude(self) -> $t { let $x = self; $magnitude }
            fn to_power(self, exponent: f64) -> $t {
                if exponent >= 0.0 && exponent.fract() == 0.0 && exponent <= f64::from(u32::MAX) {
                    self.wrapping_pow(exponent as u32)
                } else {
                    (self as f64).powf(exponent) as $t
                }
            }
            fn rest(self, other: $t) -> $t { if other == 0 { 0 } else { self.wrapping_rem(other) } }
            fn signed_as(self, _: $t) -> $t { self }
            fn of_f64(value: f64) -> $t { value as $t }
            fn to_f64(self) -> f64 { self as f64 }
            fn larger(self, other: $t) -> $t { self.max(other) }
            fn smaller(self, other: $t) -> $t { self.min(other) }
        }
    )* };
}

integer_number!(|x| x.wrapping_abs(); i8 i16 i32 i64);
integer_number!(|x| x; u8 u16 u32 u64);
