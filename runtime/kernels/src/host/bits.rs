//! Operators on the bits of integers.

use super::Made;
use super::each::{self, Parameters};
use crate::element::dispatch;
use crate::spec::{Spec, refuse};

macro_rules! bitwise {
    ($($name:ident($($x:ident),+) = $body:expr;)*) => { $(
        pub(crate) fn $name(spec: &Spec<'_>) -> Made {
            const K: usize = [$(stringify!($x)),+].len();
            dispatch!(integer spec.element(0)?, T => {
                fn each([$($x),+]: [&[T]; K], _: &Parameters, out: &mut [T]) {
                    for i in 0..out.len() {
                        $(let $x = $x[i];)+
                        out[i] = $body;
                    }
                }
                each::kernel::<T, T, K>(spec, [0.0; 3], each)
            })
        }
    )* };
}

bitwise! {
    not(a) = !a;
    and(a, b) = a & b;
    or(a, b) = a | b;
    xor(a, b) = a ^ b;
}

/// `BitShift`: 0 where all bits are shifted out.
pub(crate) fn shift(spec: &Spec<'_>) -> Made {
    let left = match &*spec.string("direction")? {
        "LEFT" => 1.0,
        "RIGHT" => 0.0,
        other => return refuse(format!("attribute `direction` is `{other}`; expected LEFT or RIGHT")),
    };
    dispatch!(@ spec.element(0)?, T, {
        fn each([a, by]: [&[T]; 2], p: &Parameters, out: &mut [T]) {
            for (out, (&a, &by)) in out.iter_mut().zip(a.iter().zip(by)) {
                let by = distance(by);
                let shifted = if p[0] != 0.0 { a.checked_shl(by) } else { a.checked_shr(by) };
                *out = shifted.unwrap_or(0);
            }
        }
        each::kernel::<T, T, 2>(spec, [left, 0.0, 0.0], each)
    }, [Uint8 u8, Uint16 u16, Uint32 u32, Uint64 u64])
}

/// A number of bits; more than there are stay more.
fn distance(by: impl TryInto<u32>) -> u32 {
    by.try_into().unwrap_or(u32::MAX)
}
