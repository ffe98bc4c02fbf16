//! `Softmax`, `LogSoftmax` and their gradients.

use rayon::prelude::*;

use super::{Made, least};
use crate::element::Number;
use crate::kernel::{Io, Kernel};
use crate::math::exp;
use crate::meaning::Rows;
use crate::spec::{Spec, SpecError};
use crate::vector::{sums, vectorized};

/// The axis along which a row sums up to 1.
///
/// Before version 13 of ONNX, and in the gradients without `_13`, everything from the axis on was one row.
pub fn rows(spec: &Spec<'_>) -> Result<Rows, SpecError> {
    spec.expect_floats(0..spec.operands.len())?;
    let dims = spec.dims(0)?;
    let old = match spec.op.domain() {
        "" => spec.opset < 13,
        _ => !spec.op.name().ends_with("_13") && spec.op.name().ends_with("Grad"),
    };
    spec.expect_float_result(0, crate::meaning::count(&dims))?;
    if dims.is_empty() {
        spec.expect_dims(1, &dims)?;
        return Ok(Rows { outer: 1, axis: 1, inner: 1 });
    }
    // A second operand has the extents of the first.
    spec.expect_dims(1, &dims)?;
    let axis = spec.axis(spec.int("axis")?, dims.len())?;
    Ok(if old { Rows::from(&dims, axis) } else { Rows::at(&dims, axis) })
}

/// Number of neighbouring rows, if rows are not contiguous, that are computed at a time.
const COLUMNS: usize = 64;

/// Calls `f(start, rows)` for each block of rows, on all threads; `out` is split into these blocks.
fn blocks(rows: Rows, out: &mut [f32], f: impl Fn(usize, &mut [f32]) + Sync) {
    let size = rows.axis * rows.inner;
    if size > 0 {
        let each = out.par_chunks_mut(size).enumerate();
        each.with_min_len(least(8 * size)).for_each(|(i, out)| f(i * size, out));
    }
}

/// The largest element; NaN if one is.
pub(super) fn largest(row: &[f32]) -> f32 {
    let most = largest_finite(row);
    // A row that holds a NaN has one in its sum.
    if most.is_finite() { most } else { row.iter().fold(f32::NEG_INFINITY, |m, &x| m.larger(x)) }
}

/// The sum of `f` over indices below `n`, in lanes of double precision.
pub(super) fn sum(n: usize, f: impl Fn(usize) -> f32) -> f64 {
    let mut sums = [0.0f64; 8];
    let whole = n / 8 * 8;
    for start in (0..whole).step_by(8) {
        let values: [f32; 8] = std::array::from_fn(|i| f(start + i));
        sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += f64::from(x));
    }
    sums.iter_mut().zip(whole..n).for_each(|(sum, i)| *sum += f64::from(f(i)));
    sums.iter().sum()
}

vectorized! {
    /// `out` = exp(x - shift), and its sum.
    fn exponentials(x: &[f32], out: &mut [f32], shift: f32) -> f64 {
        out.iter_mut().zip(x).for_each(|(o, &x)| *o = exp(x - shift));
        let [total] = sums([&*out], |x| x);
        total
    }
}

vectorized! {
    /// The largest element, if all are finite.
    fn largest_finite(row: &[f32]) -> f32 {
        const LANES: usize = 32;
        let mut most = [f32::NEG_INFINITY; LANES];
        let (chunks, rest) = row.as_chunks::<LANES>();
        for chunk in chunks {
            most.iter_mut().zip(chunk).for_each(|(m, &x)| *m = if x > *m { x } else { *m });
        }
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                most[i] = if most[i + width] > most[i] { most[i + width] } else { most[i] };
            }
            width /= 2;
        }
        rest.iter().fold(most[0], |m, &x| if x > m { x } else { m })
    }
}

vectorized! {
    /// `out` = x · factor.
    fn scale(out: &mut [f32], factor: f32) {
        out.iter_mut().for_each(|o| *o *= factor);
    }
}

vectorized! {
    /// `out` = (x - first) - second.
    fn shifted(x: &[f32], out: &mut [f32], first: f32, second: f32) {
        out.iter_mut().zip(x).for_each(|(o, &x)| *o = (x - first) - second);
    }
}

/// `out` = softmax(x) of one contiguous row, or its logarithm.
pub(super) fn forward_row(x: &[f32], out: &mut [f32], log: bool) {
    let most = largest(x);
    let total = exponentials(x, out, most);
    if log { shifted(x, out, most, total.ln() as f32) } else { scale(out, (1.0 / total) as f32) }
}

vectorized! {
    /// The gradient of one contiguous row.
    fn gradient_row(dy: &[f32], y: &[f32], out: &mut [f32], log: bool) {
        let each = out.iter_mut().zip(dy).zip(y);
        if log {
            let [total] = sums([dy], |dy| dy);
            let total = total as f32;
            each.for_each(|((o, &dy), &y)| *o = dy - exp(y) * total);
        } else {
            let [total] = sums([dy, y], |[dy, y]| [dy * y]);
            let total = total as f32;
            each.for_each(|((o, &dy), &y)| *o = (dy - total) * y);
        }
    }
}

/// `Softmax`, or `LogSoftmax`.
pub(crate) fn forward(spec: &Spec<'_>, log: bool) -> Made {
    let rows = rows(spec)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let x = io.get::<f32>(0);
        blocks(rows, io.take(0), |start, out| {
            let x = &x[start..start + out.len()];
            if rows.inner == 1 {
                return forward_row(x, out, log);
            }
            for first in (0..rows.inner).step_by(COLUMNS) {
                let width = COLUMNS.min(rows.inner - first);
                let at = |k: usize| k * rows.inner + first..k * rows.inner + first + width;
                let mut most = [f32::NEG_INFINITY; COLUMNS];
                let mut sums = [0.0f64; COLUMNS];
                for k in 0..rows.axis {
                    most.iter_mut().zip(&x[at(k)]).for_each(|(m, &x)| *m = m.larger(x));
                }
                for k in 0..rows.axis {
                    let each = out[at(k)].iter_mut().zip(&x[at(k)]).zip(sums.iter_mut().zip(&most));
                    each.for_each(|((o, &x), (sum, &most))| {
                        *o = exp(x - most);
                        *sum += f64::from(*o);
                    });
                }
                for k in 0..rows.axis {
                    let each = out[at(k)].iter_mut().zip(&x[at(k)]).zip(sums.iter().zip(&most));
                    each.for_each(|((o, &x), (&sum, &most))| {
                        *o = if log { (x - most) - sum.ln() as f32 } else { (f64::from(*o) / sum) as f32 };
                    });
                }
            }
        });
    }))
}

/// The gradient, from dY and the result Y.
pub(crate) fn gradient(spec: &Spec<'_>, log: bool) -> Made {
    let rows = rows(spec)?;
    spec.need(1)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (dy, y) = (io.get::<f32>(0), io.get::<f32>(1));
        blocks(rows, io.take(0), |start, out| {
            let (dy, y) = (&dy[start..start + out.len()], &y[start..start + out.len()]);
            if rows.inner == 1 {
                return gradient_row(dy, y, out, log);
            }
            for column in 0..rows.inner {
                let at = |k: usize| k * rows.inner + column;
                let term = |k: usize| if log { dy[at(k)] } else { dy[at(k)] * y[at(k)] };
                let total = sum(rows.axis, term) as f32;
                for k in 0..rows.axis {
                    let (dy, y) = (dy[at(k)], y[at(k)]);
                    out[at(k)] = if log { dy - exp(y) * total } else { (dy - total) * y };
                }
            }
        });
    }))
}
