//! `Cast`.

use bytemuck::Pod;
use half::{bf16, f16};
use lmsc_ir::ElementType;

use super::{Made, each};
use crate::element::dispatch;
use crate::kernel::{Io, Kernel};
use crate::spec::{Spec, refuse};

/// A number that is converted to another type.
trait Convert: Pod + Send + Sync {
    const IS_FLOAT: bool;
    fn float(self) -> f64;
    fn integer(self) -> i64;
    fn of_float(value: f64) -> Self;
    fn of_integer(value: i64) -> Self;
}

macro_rules! convert {
    ($is_float:literal $($t:ty)*) => { $(
        impl Convert for $t {
            const IS_FLOAT: bool = $is_float;
            fn float(self) -> f64 { self as f64 }
            fn integer(self) -> i64 { self as i64 }
            fn of_float(value: f64) -> $t { value as $t }
            fn of_integer(value: i64) -> $t { value as $t }
        }
    )* };
}

convert!(true f32 f64);
convert!(false i8 i16 i32 i64 u8 u16 u32 u64);

/// A value that rounds to the same short float as the number itself: truncated, with the last bit set if the truncation was not
/// exact. `half` uses the upper bits of an `f64` only.
fn odd(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) == x || near.is_nan() {
        return near;
    }
    let is_beyond = f64::from(near).abs() > x.abs();
    f32::from_bits((near.to_bits() - u32::from(is_beyond)) | 1)
}

macro_rules! convert_short {
    ($($t:ty)*) => { $(
        impl Convert for $t {
            const IS_FLOAT: bool = true;
            fn float(self) -> f64 { f64::from(self) }
            fn integer(self) -> i64 { f64::from(self) as i64 }
            fn of_float(value: f64) -> $t { <$t>::from_f32(odd(value)) }
            fn of_integer(value: i64) -> $t { <$t>::from_f32(odd(value as f64)) }
        }
    )* };
}

convert_short!(f16 bf16);

/// All types that can be cast from or to; truth values are read as 0 and 1.
macro_rules! any {
    ($element:expr, $T:ident => $body:expr) => {
        dispatch!(@ $element, $T, $body,
            [Float f32, Double f64, Float16 f16, Bfloat16 bf16, Int8 i8, Int16 i16, Int32 i32, Int64 i64,
             Uint8 u8, Uint16 u16, Uint32 u32, Uint64 u64, Bool u8])
    };
}

/// Casts to the type of the result. Floats are truncated towards 0; every nonzero value is true.
pub(crate) fn cast(spec: &Spec<'_>) -> Made {
    let (from, to) = (spec.element(0)?, spec.result(0)?.element);
    if from == to {
        return super::shape::view(spec);
    }
    if spec.is_in_place(0, 0) {
        return refuse("the operand is to be overwritten by elements of another type");
    }
    if to == ElementType::Bool {
        return any!(from, A => Ok(Kernel::new(|mut io: Io<'_>| {
            let x = io.get::<A>(0);
            each::parts(io.take::<u8>(0), |start, out| {
                out.iter_mut().zip(&x[start..]).for_each(|(o, x)| *o = u8::from(x.float() != 0.0));
            });
        })));
    }
    any!(from, A => any!(to, B => Ok(Kernel::new(convert::<A, B>))))
}

fn convert<A: Convert, B: Convert>(mut io: Io<'_>) {
    let x = io.get::<A>(0);
    each::parts(io.take::<B>(0), |start, out| {
        let pairs = out.iter_mut().zip(&x[start..]);
        if A::IS_FLOAT || B::IS_FLOAT {
            pairs.for_each(|(o, x)| *o = B::of_float(x.float()))
        } else {
            pairs.for_each(|(o, x)| *o = B::of_integer(x.integer()))
        }
    });
}
