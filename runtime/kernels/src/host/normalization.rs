//! Normalizations and their gradients. Statistics are summed in double precision, in two passes.

use rayon::prelude::*;

use super::{Made, least};
use crate::kernel::{Io, Kernel};
use crate::meaning::Rows;
use crate::spec::{Spec, SpecError, refuse};
use crate::vector::{sums, vectorized};

/// Batch, channels and elements of a channel's plane.
pub fn channels(spec: &Spec<'_>, operand: usize) -> Result<Rows, SpecError> {
    let dims = spec.dims(operand)?;
    if dims.len() < 2 {
        return refuse(format!("operand {operand} has extents {dims:?}; expected batch, channels and more"));
    }
    Ok(Rows::at(&dims, 1))
}

vectorized! {
    /// Σ x.
    fn total(x: &[f32]) -> f64 {
        let [total] = sums([x], |x| x);
        total
    }
}

vectorized! {
    /// Σ (x - about)².
    fn squares(x: &[f32], about: f32) -> f64 {
        let [squares] = sums([x], |[x]| [(x - about) * (x - about)]);
        squares
    }
}

vectorized! {
    /// Σ dy and Σ dy · (x - mean).
    fn two_sums(dy: &[f32], x: &[f32], mean: f32) -> [f64; 2] {
        sums([dy, x], |[dy, x]| [dy, dy * (x - mean)])
    }
}

vectorized! {
    /// y = x · factor + shift.
    fn scaled(x: &[f32], y: &mut [f32], factor: f32, shift: f32) {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = x * factor + shift);
    }
}

vectorized! {
    /// y = (x - mean) · factor + shift.
    fn normalized(x: &[f32], y: &mut [f32], k: [f32; 3]) {
        let [mean, factor, shift] = k;
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = (x - mean) * factor + shift);
    }
}

vectorized! {
    /// dx = (a · dy + d) + b · (x - mean).
    fn scaled_gradient(dy: &[f32], x: &[f32], dx: &mut [f32], k: Linear) {
        let Linear { a, b, d, mean } = k;
        let each = dx.iter_mut().zip(dy).zip(x);
        each.for_each(|((dx, &dy), &x)| *dx = (a * dy + d) + b * (x - mean));
    }
}

/// The gradient of a normalized element, as a linear function of dy and x.
#[derive(Clone, Copy, Default)]
struct Linear {
    a: f32,
    b: f32,
    d: f32,
    mean: f32,
}

/// Mean and biased variance of all elements of the planes.
fn statistics<'a>(planes: impl Iterator<Item = &'a [f32]> + Clone) -> (f64, f64) {
    let count: usize = planes.clone().map(<[f32]>::len).sum();
    let mean = planes.clone().map(total).sum::<f64>() / count as f64;
    let about = mean as f32;
    (mean, variance(planes.map(|x| squares(x, about)).sum(), count, mean))
}

/// The variance of `count` elements, from the squares of their deviations from the mean as it is rounded to 32 bits: the effect of
/// the rounding is subtracted.
fn variance(squares: f64, count: usize, mean: f64) -> f64 {
    let off = mean - f64::from(mean as f32);
    let found = squares / count as f64 - off * off;
    // `max` would take NaN, the variance beside an infinite element, for 0.
    if found < 0.0 { 0.0 } else { found }
}

/// Columns of a matrix that are normalized together: the channels of [`channels`] whose planes are single elements.
const COLUMNS: usize = 64;

vectorized! {
    /// The sums of each column, `width` columns of a matrix with rows of `row` elements.
    fn column_totals(x: &[f32], row: usize, width: usize) -> [f64; COLUMNS] {
        let mut totals = [0.0; COLUMNS];
        for x in x.chunks(row) {
            totals.iter_mut().zip(&x[..width]).for_each(|(total, &x)| *total += f64::from(x));
        }
        totals
    }
}

vectorized! {
    /// Of each column, the squares of its deviations from `about`.
    fn column_squares(x: &[f32], row: usize, width: usize, about: &[f32; COLUMNS]) -> [f64; COLUMNS] {
        let mut squares = [0.0; COLUMNS];
        for x in x.chunks(row) {
            let each = squares.iter_mut().zip(&x[..width]).zip(about);
            each.for_each(|((square, &x), &about)| *square += f64::from((x - about) * (x - about)));
        }
        squares
    }
}

vectorized! {
    /// Of each column, Σ dy and Σ dy · (x - mean).
    fn column_two_sums(dy: &[f32], x: &[f32], row: usize, mean: &[f32]) -> [[f64; COLUMNS]; 2] {
        let [mut totals, mut products] = [[0.0; COLUMNS]; 2];
        for (dy, x) in dy.chunks(row).zip(x.chunks(row)) {
            let each = totals.iter_mut().zip(&mut products).zip(dy.iter().zip(x).zip(mean));
            each.for_each(|((total, product), ((&dy, &x), &mean))| {
                *total += f64::from(dy);
                *product += f64::from(dy * (x - mean));
            });
        }
        [totals, products]
    }
}

vectorized! {
    /// Writes y = x · factor + shift for some columns of a matrix; both begin at the first of them.
    fn scaled_columns(x: &[f32], y: &mut [f32], row: usize, factors: &[[f32; COLUMNS]; 2], width: usize) {
        let [factors, shifts] = factors;
        for (y, x) in y.chunks_mut(row).zip(x.chunks(row)) {
            let each = y[..width].iter_mut().zip(&x[..width]).zip(factors.iter().zip(shifts));
            each.for_each(|((y, &x), (&factor, &shift))| *y = x * factor + shift);
        }
    }
}

vectorized! {
    /// Writes dx = (a · dy + d) + b · (x - mean) for some columns of a matrix; all begin at the first of them.
    fn scaled_gradient_columns(dy: &[f32], x: &[f32], dx: &mut [f32], row: usize, k: &[[f32; COLUMNS]; 4], width: usize) {
        let [a, b, d, mean] = k;
        for ((dx, dy), x) in dx.chunks_mut(row).zip(dy.chunks(row)).zip(x.chunks(row)) {
            let (dx, dy, x) = (&mut dx[..width], &dy[..width], &x[..width]);
            let each = dx.iter_mut().zip(dy.iter().zip(x)).zip(a.iter().zip(b).zip(d.iter().zip(mean)));
            each.for_each(|((dx, (&dy, &x)), ((a, b), (d, mean)))| *dx = (a * dy + d) + b * (x - mean));
        }
    }
}

/// Calls `f(first, elements)` for the rows of each part of a matrix, and for each block of columns in it: `first` is the block's
/// first column, and `elements` begin at it. All calls with the rows of one part are made by one thread.
fn column_blocks(out: &mut [f32], row: usize, f: impl Fn(usize, usize, &mut [f32]) + Sync) {
    let rows = least(row);
    out.par_chunks_mut((rows * row).max(1)).enumerate().for_each(|(part, out)| {
        for first in (0..row).step_by(COLUMNS) {
            f(part * rows * row, first, &mut out[first..]);
        }
    });
}

/// The planes of one channel.
fn planes(x: &[f32], rows: Rows, channel: usize) -> impl Iterator<Item = &[f32]> + Clone {
    x.chunks_exact((rows.axis * rows.inner).max(1)).map(move |x| &x[channel * rows.inner..][..rows.inner])
}

/// Mean and biased variance of `width` columns of a matrix, from the first one on.
fn column_statistics(x: &[f32], rows: Rows, first: usize, width: usize) -> [(f64, f64); COLUMNS] {
    let x = x.get(first..).unwrap_or(&[]);
    let means = column_totals(x, rows.axis, width).map(|total| total / rows.outer as f64);
    let squares = column_squares(x, rows.axis, width, &means.map(|mean| mean as f32));
    std::array::from_fn(|i| (means[i], variance(squares[i], rows.outer, means[i])))
}

/// Whether a `BatchNormalization` normalizes by the statistics of the batch: before version 14 of ONNX indicated by the presence
/// of further results, before version 7 by an attribute.
pub fn trains(spec: &Spec<'_>) -> Result<bool, SpecError> {
    let onnx = spec.op.domain().is_empty();
    match spec.opset {
        ..7 if onnx => Ok(!spec.flag("is_test")?),
        ..14 if onnx => Ok(spec.results.len() > 1),
        _ => spec.flag("training_mode"),
    }
}

/// Refuses operands and results that do not have one element per channel; they may be left out.
fn expect_channels(
    spec: &Spec<'_>,
    rows: Rows,
    operands: impl IntoIterator<Item = usize>,
    results: impl IntoIterator<Item = usize>,
) -> Result<(), SpecError> {
    operands.into_iter().try_for_each(|i| spec.expect_count(i, rows.axis))?;
    results.into_iter().try_for_each(|i| spec.expect_float_result(i, rows.axis))
}

/// `BatchNormInternal` and `BatchNormalization`: in training by the statistics of the batch, keeping running ones;
/// otherwise by the running ones.
///
/// ONNX Runtime's results 3 and 4 are the batch's mean and 1 / √(variance + ε), those of ONNX before version 14 mean and variance.
pub(crate) fn batch(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..5)?;
    let rows = channels(spec, 0)?;
    (0..3).try_for_each(|i| spec.need(i))?;
    expect_channels(spec, rows, 1..5, 1..5)?;
    spec.expect_like(0, 0)?;
    let epsilon = f64::from(spec.float("epsilon")?);
    let momentum = f64::from(spec.float("momentum")?);
    let training = trains(spec)?;
    let inverts = spec.op.name() == "BatchNormInternal";
    let keeps_running = spec.wants(1) || spec.wants(2);
    if (!training || keeps_running) && !(spec.has(3) && spec.has(4)) {
        return refuse("operands 3 and 4, the running statistics, are missing");
    }
    if spec.knows("spatial") && !spec.flag("spatial")? {
        return refuse("attribute `spatial` is 0; this kernel has statistics of channels");
    }
    let own = [(3, 1), (4, 2)].map(|(o, r)| !spec.is_in_place(o, r));
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let (x, scale, bias) = (io.get::<f32>(0), io.get::<f32>(1), io.get::<f32>(2));
        let running = [io.get::<f32>(3), io.get::<f32>(4)];
        let coefficients = &mut io.workspace::<[f32; 4]>()[..rows.axis];
        let y = io.take::<f32>(0);
        let together = if rows.inner == 1 { COLUMNS } else { 1 };
        let blocks = coefficients.par_chunks_mut(together).enumerate();
        blocks.with_min_len(least(together * rows.outer * rows.inner)).for_each(|(block, out)| {
            let first = block * together;
            let of_columns =
                (training && rows.inner == 1).then(|| column_statistics(x, rows, first, out.len()));
            for (i, out) in out.iter_mut().enumerate() {
                let c = first + i;
                let (mean, variance) = match &of_columns {
                    Some(statistics) => statistics[i],
                    None if training => statistics(planes(x, rows, c)),
                    None => (f64::from(running[0][c]), f64::from(running[1][c])),
                };
                *out = [mean as f32, variance as f32, (1.0 / (variance + epsilon).sqrt()) as f32, 0.0];
            }
        });
        let coefficients = &*coefficients;
        let factors = |c: usize| {
            let [mean, _, inverse, _] = coefficients[c];
            let factor = inverse * scale[c];
            [factor, bias[c] - mean * factor]
        };
        if rows.inner == 1 {
            column_blocks(y, rows.axis, |start, first, y| {
                let width = COLUMNS.min(rows.axis - first);
                let of_columns: [[f32; 2]; COLUMNS] =
                    std::array::from_fn(|i| if i < width { factors(first + i) } else { [0.0; 2] });
                let of_columns = [0, 1].map(|k| of_columns.map(|factors| factors[k]));
                scaled_columns(&x[start + first..][..y.len()], y, rows.axis, &of_columns, width);
            });
        } else if rows.inner > 0 {
            let planes = y.par_chunks_mut(rows.inner).zip(x.par_chunks(rows.inner)).enumerate();
            planes.with_min_len(least(rows.inner)).for_each(|(i, (y, x))| {
                let [factor, shift] = factors(i % rows.axis);
                scaled(x, y, factor, shift);
            });
        }
        for (i, own) in own.into_iter().enumerate() {
            let out = io.take::<f32>(1 + i);
            if own && !out.is_empty() {
                out.copy_from_slice(running[i]);
            }
            if training {
                out.iter_mut().zip(coefficients).for_each(|(out, c)| {
                    *out = (momentum * f64::from(*out) + (1.0 - momentum) * f64::from(c[i])) as f32;
                });
            }
        }
        io.take::<f32>(3).iter_mut().zip(coefficients).for_each(|(out, c)| *out = c[0]);
        let spread = if inverts { 2 } else { 1 };
        io.take::<f32>(4).iter_mut().zip(coefficients).for_each(|(out, c)| *out = c[spread]);
    });
    Ok(kernel.with_workspace::<[f32; 4]>(rows.axis))
}

/// `BatchNormalizationGrad(dY, X, scale, mean, 1/σ → dX, dscale, dbias)`.
pub(crate) fn batch_grad(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..5)?;
    let rows = channels(spec, 1)?;
    spec.expect_dims(0, &spec.dims(1)?)?;
    (0..5).try_for_each(|i| spec.need(i))?;
    expect_channels(spec, rows, 2..5, 1..3)?;
    spec.expect_float_result(0, crate::meaning::count(&spec.dims(1)?))?;
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let (dy, x, scale) = (io.get::<f32>(0), io.get::<f32>(1), io.get::<f32>(2));
        let (mean, inverse) = (io.get::<f32>(3), io.get::<f32>(4));
        let coefficients = &mut io.workspace::<[f32; 4]>()[..rows.axis];
        let count = (rows.outer * rows.inner) as f64;
        let together = if rows.inner == 1 { COLUMNS } else { 1 };
        let blocks = coefficients.par_chunks_mut(together).enumerate();
        blocks.with_min_len(least(together * rows.outer * rows.inner)).for_each(|(block, out)| {
            let first = block * together;
            let of_columns = (rows.inner == 1 && rows.outer > 0)
                .then(|| column_two_sums(&dy[first..], &x[first..], rows.axis, &mean[first..][..out.len()]));
            for (i, out) in out.iter_mut().enumerate() {
                let c = first + i;
                let [total, product] = match &of_columns {
                    Some([totals, products]) => [totals[i], products[i]],
                    None => planes(dy, rows, c).zip(planes(x, rows, c)).fold([0.0; 2], |sums, (dy, x)| {
                        let [total, product] = two_sums(dy, x, mean[c]);
                        [sums[0] + total, sums[1] + product]
                    }),
                };
                let inverse = f64::from(inverse[c]);
                let (dscale, dbias) = (product * inverse, total);
                // dX = scale/σ · (dY - mean(dY) - x̂ · mean(dY · x̂)), written as a · dY + b · X + d.
                let a = f64::from(scale[c]) * inverse;
                let b = -a * inverse * dscale / count;
                *out = [dscale as f32, dbias as f32, b as f32, (-a * dbias / count) as f32];
            }
        });
        let coefficients = &*coefficients;
        let linear = |c: usize| {
            let [_, _, b, d] = coefficients[c];
            Linear { a: scale[c] * inverse[c], b, d, mean: mean[c] }
        };
        let dx = io.take::<f32>(0);
        if rows.inner == 1 {
            column_blocks(dx, rows.axis, |start, first, dx| {
                let width = COLUMNS.min(rows.axis - first);
                let of = |i: usize| if i < width { linear(first + i) } else { Linear::default() };
                let k: [Linear; COLUMNS] = std::array::from_fn(of);
                let k = [k.map(|k| k.a), k.map(|k| k.b), k.map(|k| k.d), k.map(|k| k.mean)];
                let at = start + first..start + first + dx.len();
                scaled_gradient_columns(&dy[at.clone()], &x[at], dx, rows.axis, &k, width);
            });
        } else if rows.inner > 0 && !dx.is_empty() {
            let planes = dx.par_chunks_mut(rows.inner).enumerate();
            planes.with_min_len(least(rows.inner)).for_each(|(i, dx)| {
                let at = i * rows.inner..(i + 1) * rows.inner;
                scaled_gradient(&dy[at.clone()], &x[at], dx, linear(i % rows.axis));
            });
        }
        for i in 0..2 {
            io.take::<f32>(1 + i).iter_mut().zip(coefficients).for_each(|(out, c)| *out = c[i]);
        }
    });
    Ok(kernel.with_workspace::<[f32; 4]>(rows.axis))
}

vectorized! {
    /// Normalizes one row; returns its mean and 1/σ. Without the mean (`simplified`), it is 0.
    fn layer_row(x: &[f32], y: &mut [f32], scale: &[f32], bias: &[f32], epsilon: f64, simplified: bool) -> [f32; 2] {
        let count = x.len() as f64;
        let (mean, variance) = if simplified {
            let [squares] = sums([x], |[x]| [x * x]);
            (0.0, squares / count)
        } else {
            let [total] = sums([x], |x| x);
            let mean = total / count;
            let about = mean as f32;
            let [squares] = sums([x], |[x]| [(x - about) * (x - about)]);
            (about, variance(squares, x.len(), mean))
        };
        let inverse = (1.0 / (variance + epsilon).sqrt()) as f32;
        if bias.is_empty() {
            let each = y.iter_mut().zip(x).zip(scale);
            each.for_each(|((y, &x), &s)| *y = (x - mean) * inverse * s);
        } else {
            let each = y.iter_mut().zip(x).zip(scale.iter().zip(bias));
            each.for_each(|((y, &x), (&s, &b))| *y = (x - mean) * inverse * s + b);
        }
        [mean, inverse]
    }
}

vectorized! {
    /// The gradient of one row of x.
    fn layer_grad_row(dy: &[f32], x: &[f32], dx: &mut [f32], scale: &[f32], moments: [f32; 2], simplified: bool) {
        let [mean, inverse] = moments;
        let count = x.len() as f64;
        let [about, level] = sums([dy, x, scale], |[dy, x, s]| [dy * s * ((x - mean) * inverse), dy * s]);
        let (about, level) = ((about / count) as f32, if simplified { 0.0 } else { (level / count) as f32 });
        let each = dx.iter_mut().zip(dy.iter().zip(scale)).zip(x);
        each.for_each(|((dx, (&dy, &s)), &x)| *dx = (dy * s - level - (x - mean) * inverse * about) * inverse);
    }
}

vectorized! {
    /// Adds a row of some columns to the sums of their gradients.
    fn layer_grad_sums(dy: &[f32], x: &[f32], sums: &mut [[f64; LAYER_COLUMNS]; 2], moments: [f32; 2]) {
        let ([scales, biases], [mean, inverse]) = (sums, moments);
        let each = scales.iter_mut().zip(biases).zip(dy.iter().zip(x));
        each.for_each(|((scale, bias), (&dy, &x))| {
            *scale += f64::from(dy * ((x - mean) * inverse));
            *bias += f64::from(dy);
        });
    }
}

/// Number of columns whose gradients a thread sums at a time.
const LAYER_COLUMNS: usize = 128;

/// Some rows of Y and X, and their statistics if these are used.
type Block<'a> = ((&'a mut [f32], &'a [f32]), (&'a mut [f32], &'a mut [f32]));

/// `LayerNormalization(X, scale, bias → Y, mean, 1/σ)`; without mean and bias it is `SimplifiedLayerNormalization(X,
/// scale → Y, 1/σ)`.
pub(crate) fn layer(spec: &Spec<'_>, simplified: bool) -> Made {
    spec.expect_floats(0..3)?;
    spec.expect_like(0, 0)?;
    let dims = spec.dims(0)?;
    let rows = Rows::from(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    spec.need(1)?;
    [1, 2].into_iter().try_for_each(|i| spec.expect_count(i, rows.axis))?;
    let kept = if simplified { 1..2 } else { 1..3 };
    kept.into_iter().try_for_each(|i| spec.expect_float_result(i, rows.outer))?;
    let epsilon = f64::from(spec.float("epsilon")?);
    let has_bias = spec.has(2) && !simplified;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (x, scale, bias) = (io.get::<f32>(0), io.get::<f32>(1), io.get::<f32>(2));
        let y = io.take::<f32>(0);
        let n = rows.axis.max(1);
        let means = io.take::<f32>(1);
        let (means, inverses) = if simplified { (&mut [][..], means) } else { (means, io.take::<f32>(2)) };
        // Statistics of a few rows at a time, so that rows are read once and unused statistics are not stored.
        const BLOCK: usize = 16;
        let blocks = y.par_chunks_mut(BLOCK * n).zip(x.par_chunks(BLOCK * n));
        let blocks = blocks.with_min_len(least(4 * BLOCK * n));
        let bias = if has_bias { bias } else { &[] };
        let run = |((y, x), (means, inverses)): Block<'_>| {
            for (i, (y, x)) in y.chunks_exact_mut(n).zip(x.chunks_exact(n)).enumerate() {
                let [mean, inverse] = layer_row(x, y, scale, bias, epsilon, simplified);
                if let Some(out) = means.get_mut(i) {
                    *out = mean;
                }
                if let Some(out) = inverses.get_mut(i) {
                    *out = inverse;
                }
            }
        };
        // Unused results stay empty.
        match (means.is_empty(), inverses.is_empty()) {
            (true, true) => blocks.for_each(|b| run((b, (&mut [], &mut [])))),
            (true, false) => {
                blocks.zip(inverses.par_chunks_mut(BLOCK)).for_each(|(b, i)| run((b, (&mut [], i))))
            }
            (false, true) => {
                blocks.zip(means.par_chunks_mut(BLOCK)).for_each(|(b, m)| run((b, (m, &mut []))))
            }
            (false, false) => {
                let kept = means.par_chunks_mut(BLOCK).zip(inverses.par_chunks_mut(BLOCK));
                blocks.zip(kept).for_each(run);
            }
        }
    }))
}

/// `LayerNormalizationGrad(dY, X, scale, mean, 1/σ → dX, dscale, dbias)`, or
/// `SimplifiedLayerNormalizationGrad(dY, X, scale, 1/σ → dX, dscale)`.
pub(crate) fn layer_grad(spec: &Spec<'_>, simplified: bool) -> Made {
    spec.expect_floats(0..5)?;
    let dims = spec.dims(1)?;
    let rows = Rows::from(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    let n = rows.axis.max(1);
    spec.expect_dims(0, &dims)?;
    spec.expect_count(2, rows.axis)?;
    let kept = if simplified { 3..4 } else { 3..5 };
    for index in kept.clone() {
        spec.expect_count(index, rows.outer)?;
    }
    (0..kept.end).try_for_each(|i| spec.need(i))?;
    [1, 2].into_iter().try_for_each(|i| spec.expect_float_result(i, rows.axis))?;
    spec.expect_float_result(0, crate::meaning::count(&dims))?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (dy, x, scale) = (io.get::<f32>(0), io.get::<f32>(1), io.get::<f32>(2));
        let (means, inverses) =
            if simplified { (&[][..], io.get::<f32>(3)) } else { (io.get::<f32>(3), io.get::<f32>(4)) };
        let mean = |row: usize| if simplified { 0.0 } else { means[row] };
        let dx = io.take::<f32>(0);
        let each_row = dx.par_chunks_mut(n).enumerate();
        each_row.with_min_len(least(4 * n)).for_each(|(row, dx)| {
            let (dy, x) = (&dy[row * n..][..n], &x[row * n..][..n]);
            layer_grad_row(dy, x, dx, scale, [mean(row), inverses[row]], simplified);
        });
        let (dscale, dbias) = (io.take::<f32>(1), io.take::<f32>(2));
        let columns = |start: usize, dscale: &mut [f32], dbias: &mut [f32]| {
            let mut sums = [[0.0f64; LAYER_COLUMNS]; 2];
            for (row, &inverse) in inverses.iter().enumerate().take(rows.outer) {
                let at = row * n + start..row * n + start + dscale.len();
                layer_grad_sums(&dy[at.clone()], &x[at], &mut sums, [mean(row), inverse]);
            }
            dscale.iter_mut().zip(&sums[0]).for_each(|(o, &s)| *o = s as f32);
            dbias.iter_mut().zip(&sums[1]).for_each(|(o, &s)| *o = s as f32);
        };
        let least = least(LAYER_COLUMNS * rows.outer);
        if dbias.is_empty() {
            let each = dscale.par_chunks_mut(LAYER_COLUMNS).enumerate().with_min_len(least);
            each.for_each(|(i, s)| columns(i * LAYER_COLUMNS, s, &mut []));
        } else {
            let both =
                dscale.par_chunks_mut(LAYER_COLUMNS).zip(dbias.par_chunks_mut(LAYER_COLUMNS)).enumerate();
            both.with_min_len(least).for_each(|(i, (s, b))| columns(i * LAYER_COLUMNS, s, b));
        }
    }))
}

/// `InstanceNormalization(X, scale, bias)`: each plane by its own statistics.
pub(crate) fn instance(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..3)?;
    let rows = channels(spec, 0)?;
    grouped(spec, rows, rows.axis, rows.inner)
}

/// `GroupNormalization(X, scale, bias)`: groups of channels by their statistics; scale and bias belong to channels, or up
/// to version 20 to groups.
pub(crate) fn group(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..3)?;
    let rows = channels(spec, 0)?;
    let Ok(groups @ 1..) = usize::try_from(spec.int("num_groups")?) else {
        return refuse("attribute `num_groups` is not positive");
    };
    if rows.axis % groups != 0 {
        return refuse(format!("{} channels do not divide into {groups} groups", rows.axis));
    }
    grouped(spec, rows, groups, rows.axis / groups * rows.inner)
}

/// Normalizes groups of `size` elements, `groups` groups per sample.
fn grouped(spec: &Spec<'_>, rows: Rows, groups: usize, size: usize) -> Made {
    let epsilon = f64::from(spec.float("epsilon")?);
    spec.expect_like(0, 0)?;
    let factors = spec.dims(1)?.iter().product::<usize>();
    if ![rows.axis, groups].contains(&factors) || spec.dims(2)?.iter().product::<usize>() != factors {
        return refuse("scale and bias have neither one element for each channel nor for each group");
    }
    let per_factor = (rows.axis / factors.max(1)).max(1);
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (x, scale, bias) = (io.get::<f32>(0), io.get::<f32>(1), io.get::<f32>(2));
        let out = io.take::<f32>(0);
        if size == 0 {
            return;
        }
        let parts = out.par_chunks_mut(size).zip(x.par_chunks(size)).enumerate();
        parts.with_min_len(least(size)).for_each(|(i, (out, x))| {
            let (mean, variance) = statistics(std::iter::once(x));
            let inverse = (1.0 / (variance + epsilon).sqrt()) as f32;
            let first = i % groups * (size / rows.inner);
            for (c, (out, x)) in out.chunks_mut(rows.inner).zip(x.chunks(rows.inner)).enumerate() {
                let at = (first + c) / per_factor;
                let factor = inverse * scale[at];
                let mean = mean as f32;
                normalized(x, out, [mean, factor, bias[at]]);
            }
        });
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector::tests::each_form;

    fn numbers(n: usize, seed: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * 7919 + seed * 31) % 201) as f32 / 50.0 - 2.0).collect()
    }

    #[test]
    fn columns_have_the_sums_of_their_elements_in_every_form() {
        for (outer, axis) in [(1, 1), (5, 63), (40, 64), (7, 65), (3, 200), (0, 3)] {
            let (x, dy, means) = (numbers(outer * axis, 1), numbers(outer * axis, 2), numbers(axis, 3));
            let rows = Rows { outer, axis, inner: 1 };
            for first in (0..axis).step_by(COLUMNS) {
                let width = COLUMNS.min(axis - first);
                let sums = || {
                    let (x, dy) = (x.get(first..).unwrap_or(&[]), dy.get(first..).unwrap_or(&[]));
                    let (totals, two) = (
                        column_totals(x, axis, width),
                        column_two_sums(dy, x, axis, &means[first..][..width]),
                    );
                    (totals, column_squares(x, axis, width, &[0.5; COLUMNS]), two)
                };
                for (form, (totals, squares, [level, product])) in each_form(sums) {
                    for i in 0..width {
                        let sum = |f: &dyn Fn(f32, f32) -> f32| -> f64 {
                            (0..outer)
                                .map(|row| row * axis + first + i)
                                .map(|at| f64::from(f(x[at], dy[at])))
                                .sum()
                        };
                        let mean = means[first + i];
                        let expected = [
                            sum(&|x, _| x),
                            sum(&|x, _| (x - 0.5) * (x - 0.5)),
                            sum(&|_, dy| dy),
                            sum(&|x, dy| dy * (x - mean)),
                        ];
                        assert_eq!(
                            [totals[i], squares[i], level[i], product[i]],
                            expected,
                            "{rows:?}, {form:?}"
                        );
                    }
                }
            }
        }
    }
}
