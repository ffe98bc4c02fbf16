//! Integers that stand for floats: quantization, and products of such integers.

use rayon::prelude::*;

use lmsc_ir::ElementType;

use super::{Made, each, least};
use crate::element::{Number, Stored, dispatch};
use crate::kernel::{Io, Kernel};
use crate::meaning::{BatchedProduct, Rows, count};
use crate::spec::{Spec, SpecError, refuse};

/// Which scale belongs to an element: one for all, one for each place of an axis, or one for each block along an axis.
#[derive(Clone, Copy)]
struct Scales {
    rows: Rows,
    /// Number of neighbours along the axis that share a scale.
    block: usize,
    /// Number of scales along the axis.
    along: usize,
    /// Whether scales differ from place to place off the axis, too.
    blocked: bool,
}

impl Scales {
    fn of(spec: &Spec<'_>) -> Result<Scales, SpecError> {
        let (dims, scales) = (spec.dims(0)?, spec.dims(1)?);
        if spec.has(2) {
            spec.expect_count(2, count(&scales))?;
        }
        if count(&scales) == 1 && spec.int("block_size")? == 0 {
            let rows = Rows { outer: 1, axis: 1, inner: count(&dims) };
            return Ok(Scales { rows, block: 1, along: 1, blocked: false });
        }
        let axis = spec.axis(spec.int("axis")?, dims.len())?;
        let rows = Rows::at(&dims, axis);
        let fits = |along: usize| {
            scales.len() == dims.len()
                && scales
                    .iter()
                    .zip(&dims)
                    .enumerate()
                    .all(|(i, (s, d))| if i == axis { *s == along } else { s == d })
        };
        match usize::try_from(spec.int("block_size")?).unwrap_or(0) {
            0 if scales[..] == [rows.axis] => Ok(Scales { rows, block: 1, along: rows.axis, blocked: false }),
            0 => refuse(format!(
                "operand 1 has the extents {scales:?}; expected one scale, or {} along axis {axis}",
                rows.axis
            )),
            block if fits(rows.axis.div_ceil(block)) => {
                Ok(Scales { rows, block, along: rows.axis.div_ceil(block), blocked: true })
            }
            block => refuse(format!(
                "operand 1 has the extents {scales:?}, which are no blocks of {block} along axis {axis}"
            )),
        }
    }

    /// The index of an element's scale.
    fn at(self, element: usize) -> usize {
        let Rows { axis, inner, .. } = self.rows;
        let place = element / inner.max(1) % axis.max(1) / self.block;
        if self.blocked {
            (element / (axis * inner) * self.along + place) * inner + element % inner
        } else {
            place
        }
    }
}

/// `QuantizeLinear(x, scale, zero point)`: x / scale, rounded to the nearest even integer, plus the zero point, within the type.
pub(crate) fn quantize(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0, 1])?;
    spec.expect_result_count(0, count(&spec.dims(0)?))?;
    let (scales, to) = (Scales::of(spec)?, spec.result(0)?.element);
    if spec.has(2) {
        spec.expect(2, to)?;
    }
    dispatch!(@ to, T, Ok(Kernel::new(move |mut io: Io<'_>| {
        let (x, scale, zero) = (io.get::<f32>(0), io.get::<f32>(1), io.get::<T>(2));
        each::parts(io.take::<T>(0), |start, out| {
            for (i, (out, &x)) in out.iter_mut().zip(&x[start..]).enumerate() {
                let at = scales.at(start + i);
                let zero = zero.get(at).map_or(0.0, |&zero| f64::from(zero));
                *out = (f64::from((x / scale[at]).round_ties_even()) + zero) as T;
            }
        });
    })), [Uint8 u8, Int8 i8, Uint16 u16, Int16 i16])
}

/// `DequantizeLinear(x, scale, zero point)`: (x - zero point) · scale.
pub(crate) fn dequantize(spec: &Spec<'_>) -> Made {
    spec.expect_floats([1])?;
    let scales = Scales::of(spec)?;
    spec.expect_float_result(0, count(&spec.dims(0)?))?;
    let element = spec.element(0)?;
    if spec.has(2) {
        spec.expect(2, element)?;
    }
    dispatch!(@ element, T, Ok(Kernel::new(move |mut io: Io<'_>| {
        let (x, scale, zero) = (io.get::<T>(0), io.get::<f32>(1), io.get::<T>(2));
        each::parts(io.take::<f32>(0), |start, out| {
            for (i, (out, &x)) in out.iter_mut().zip(&x[start..]).enumerate() {
                let at = scales.at(start + i);
                let zero = zero.get(at).map_or(0, |&zero| i64::from(zero));
                *out = (i64::from(x) - zero) as f32 * scale[at];
            }
        });
    })), [Uint8 u8, Int8 i8, Uint16 u16, Int16 i16, Int32 i32])
}

/// `DynamicQuantizeLinear(x → y, scale, zero point)`: 8 bits over the range of the data and 0.
pub(crate) fn dynamic(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0])?;
    spec.expect_result(0, ElementType::Uint8)?;
    spec.expect_result_count(0, count(&spec.dims(0)?))?;
    spec.expect_float_result(1, 1)?;
    spec.expect_result_count(2, 1)?;
    Ok(Kernel::new(|mut io: Io<'_>| {
        let x = io.get::<f32>(0);
        let low = x.iter().fold(0.0f32, |a, &x| a.smaller(x));
        let high = x.iter().fold(0.0f32, |a, &x| a.larger(x));
        let scale = (high - low) / 255.0;
        let within = |x: f32| x.round_ties_even().clamp(0.0, 255.0) as u8;
        let zero = if scale == 0.0 { 0 } else { within(-low / scale) };
        each::parts(io.take::<u8>(0), |start, out| {
            out.iter_mut().zip(&x[start..]).for_each(|(out, &x)| {
                let steps = if scale == 0.0 { 0.0 } else { (x / scale).round_ties_even() };
                *out = (steps + f32::from(zero)).clamp(0.0, 255.0) as u8;
            });
        });
        io.take::<f32>(1).fill(scale);
        io.take::<u8>(2).fill(zero);
    }))
}

/// `MatMulInteger(A, B, zero point of A, zero point of B)`: the product of the differences from the zero points.
pub(crate) fn product(spec: &Spec<'_>) -> Made {
    let plan = BatchedProduct::matmul(spec)?;
    let x = plan.x;
    for (operand, zero, lines) in [(0, 2, x.m), (1, 3, x.n)] {
        if spec.has(zero) {
            spec.expect(zero, spec.element(operand)?)?;
            let dims = spec.dims(zero)?;
            if count(&dims) != 1 && dims[..] != [lines] {
                return refuse(format!(
                    "operand {zero} has the extents {dims:?}; expected one zero point, or {lines} of them"
                ));
            }
        }
    }
    spec.expect_result(0, ElementType::Int32)?;
    spec.expect_result_count(0, plan.offsets.len() * x.m * x.n)?;
    dispatch!(@ spec.element(0)?, A, dispatch!(@ spec.element(1)?, B, Ok(Kernel::new(move |mut io: Io<'_>| {
        let (a, b, of_a, of_b) = (io.get::<A>(0), io.get::<B>(1), io.get::<A>(2), io.get::<B>(3));
        // A single zero point is that of all lines. A batch whose matrices are one tall matrix has more rows than zero points.
        let zero_a = |row: usize| if of_a.len() > 1 { i32::from(of_a[row % of_a.len()]) } else { of_a.first().map_or(0, |&z| i32::from(z)) };
        let zero_b = |column: usize| if of_b.len() > 1 { i32::from(of_b[column]) } else { of_b.first().map_or(0, |&z| i32::from(z)) };
        let lines = io.take::<i32>(0).par_chunks_mut(x.n.max(1)).enumerate();
        lines.with_min_len(least(x.n * x.k)).for_each(|(line, out)| {
            let (row, (left, right)) = (line % x.m, plan.offsets[line / x.m]);
            let zero = zero_a(row);
            for (column, out) in out.iter_mut().enumerate() {
                let other = zero_b(column);
                *out = (0..x.k).fold(0i32, |sum, k| {
                    let a = i32::from(a[left + row * plan.left.0 + k * plan.left.1]) - zero;
                    let b = i32::from(b[right + k * plan.right.0 + column * plan.right.1]) - other;
                    sum.wrapping_add(a * b)
                });
            }
        });
    })), [Uint8 u8, Int8 i8]), [Uint8 u8, Int8 i8])
}

/// `Shrink`: 0 within the threshold, else closer to 0 by the bias.
pub(crate) fn shrink(spec: &Spec<'_>) -> Made {
    fn each<M: Number>([x]: [&[M]; 1], p: &each::Parameters, out: &mut [M]) {
        for (out, &x) in out.iter_mut().zip(x) {
            let value = x.to_f64();
            *out = match value {
                _ if value < -p[0] => M::of_f64(value + p[1]),
                _ if value > p[0] => M::of_f64(value - p[1]),
                _ => M::ZERO,
            };
        }
    }
    let parameters = [f64::from(spec.float("lambd")?), f64::from(spec.float("bias")?), 0.0];
    dispatch!(number spec.element(0)?, T => each::kernel::<T, T, 1>(spec, parameters, each::<<T as Stored>::Math>))
}
