//! Normalizations and their gradients. Statistics are summed in double precision, in two passes.

use rayon::prelude::*;

use super::softmax::sum;
use super::{Made, least};
use crate::kernel::{Io, Kernel};
use crate::meaning::Rows;
use crate::spec::{Spec, SpecError, refuse};

/// Batch, channels and elements of a channel's plane.
pub fn channels(spec: &Spec<'_>, operand: usize) -> Result<Rows, SpecError> {
    let dims = spec.dims(operand)?;
    if dims.len() < 2 {
        return refuse(format!("operand {operand} has extents {dims:?}; expected batch, channels and more"));
    }
    Ok(Rows::at(&dims, 1))
}

/// Mean and biased variance of all elements of the planes.
fn statistics<'a>(planes: impl Iterator<Item = &'a [f32]> + Clone) -> (f64, f64) {
    let count: usize = planes.clone().map(<[f32]>::len).sum();
    let mean = planes.clone().map(|x| sum(x.len(), |i| x[i])).sum::<f64>() / count as f64;
    let about = mean as f32;
    // Deviations are taken from the rounded mean; the effect of the rounding is subtracted afterwards.
    let squares: f64 = planes.map(|x| sum(x.len(), |i| (x[i] - about) * (x[i] - about))).sum();
    let off = mean - f64::from(about);
    (mean, (squares / count as f64 - off * off).max(0.0))
}

/// The planes of one channel.
fn planes(x: &[f32], rows: Rows, channel: usize) -> impl Iterator<Item = &[f32]> + Clone {
    x.chunks_exact((rows.axis * rows.inner).max(1)).map(move |x| &x[channel * rows.inner..][..rows.inner])
}

/// Whether a `BatchNormalization` normalizes by the statistics of the batch: before version 14 of ONNX indicated by the presence
/// of further results, before version 7 by an attribute.
pub fn trains(spec: &Spec<'_>) -> Result<bool, SpecError> {
    let onnx = spec.op.domain().is_empty();
    match spec.opset {
        ..7 if onnx => Ok(!spec.flag("is_test", false)?),
        ..14 if onnx => Ok(spec.results.len() > 1),
        _ => spec.flag("training_mode", false),
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
    let epsilon = f64::from(spec.float("epsilon", 1e-5)?);
    let momentum = f64::from(spec.float("momentum", 0.9)?);
    let training = trains(spec)?;
    let inverts = spec.op.name() == "BatchNormInternal";
    let keeps_running = spec.wants(1) || spec.wants(2);
    if (!training || keeps_running) && !(spec.has(3) && spec.has(4)) {
        return refuse("operands 3 and 4, the running statistics, are missing");
    }
    if spec.int("spatial", 1)? == 0 {
        return refuse("attribute `spatial` is 0; this kernel has statistics of channels");
    }
    let own = [(3, 1), (4, 2)].map(|(o, r)| !spec.is_in_place(o, r));
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let (x, scale, bias) = (io.get::<f32>(0), io.get::<f32>(1), io.get::<f32>(2));
        let running = [io.get::<f32>(3), io.get::<f32>(4)];
        let coefficients = &mut io.workspace::<[f32; 4]>()[..rows.axis];
        let y = io.take::<f32>(0);
        let each = coefficients.par_iter_mut().enumerate().with_min_len(least(rows.outer * rows.inner));
        each.for_each(|(c, out)| {
            let (mean, variance) = if training {
                statistics(planes(x, rows, c))
            } else {
                (f64::from(running[0][c]), f64::from(running[1][c]))
            };
            *out = [mean as f32, variance as f32, (1.0 / (variance + epsilon).sqrt()) as f32, 0.0];
        });
        let coefficients = &*coefficients;
        if rows.inner > 0 {
            let planes = y.par_chunks_mut(rows.inner).zip(x.par_chunks(rows.inner)).enumerate();
            planes.with_min_len(least(rows.inner)).for_each(|(i, (y, x))| {
                let c = i % rows.axis;
                let [mean, _, inverse, _] = coefficients[c];
                let factor = inverse * scale[c];
                let shift = bias[c] - mean * factor;
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = x * factor + shift);
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
        let each = coefficients.par_iter_mut().enumerate().with_min_len(least(rows.outer * rows.inner));
        each.for_each(|(c, out)| {
            let mean = mean[c];
            let (mut total, mut product) = (0.0, 0.0);
            for (dy, x) in planes(dy, rows, c).zip(planes(x, rows, c)) {
                let (a, b) = two_sums(dy, x, mean);
                total += a;
                product += b;
            }
            let inverse = f64::from(inverse[c]);
            let (dscale, dbias) = (product * inverse, total);
            // dX = scale/σ · (dY - mean(dY) - x̂ · mean(dY · x̂)), written as a · dY + b · X + d.
            let a = f64::from(scale[c]) * inverse;
            let b = -a * inverse * dscale / count;
            *out = [dscale as f32, dbias as f32, b as f32, (-a * dbias / count) as f32];
        });
        let coefficients = &*coefficients;
        let dx = io.take::<f32>(0);
        if rows.inner > 0 && !dx.is_empty() {
            let planes = dx.par_chunks_mut(rows.inner).enumerate();
            planes.with_min_len(least(rows.inner)).for_each(|(i, dx)| {
                let at = i * rows.inner..(i + 1) * rows.inner;
                let c = i % rows.axis;
                let [_, _, b, d] = coefficients[c];
                let (a, mean) = (scale[c] * inverse[c], mean[c]);
                let each = dx.iter_mut().zip(&dy[at.clone()]).zip(&x[at]);
                each.for_each(|((dx, &dy), &x)| *dx = (a * dy + d) + b * (x - mean));
            });
        }
        for i in 0..2 {
            io.take::<f32>(1 + i).iter_mut().zip(coefficients).for_each(|(out, c)| *out = c[i]);
        }
    });
    Ok(kernel.with_workspace::<[f32; 4]>(rows.axis))
}

/// Σ dY and Σ dY · (X - mean).
fn two_sums(dy: &[f32], x: &[f32], mean: f32) -> (f64, f64) {
    const LANES: usize = 8;
    let mut sums = ([0.0f64; LANES], [0.0f64; LANES]);
    let (dys, dy_rest) = dy.as_chunks::<LANES>();
    let (xs, x_rest) = x.as_chunks::<LANES>();
    for (dy, x) in dys.iter().zip(xs) {
        for i in 0..LANES {
            sums.0[i] += f64::from(dy[i]);
            sums.1[i] += f64::from(dy[i] * (x[i] - mean));
        }
    }
    for (i, (&dy, &x)) in dy_rest.iter().zip(x_rest).enumerate() {
        sums.0[i] += f64::from(dy);
        sums.1[i] += f64::from(dy * (x - mean));
    }
    (sums.0.iter().sum(), sums.1.iter().sum())
}

/// Some rows of Y and X, and their statistics if these are used.
type Block<'a> = ((&'a mut [f32], &'a [f32]), (&'a mut [f32], &'a mut [f32]));

/// `LayerNormalization(X, scale, bias → Y, mean, 1/σ)`; without mean and bias it is `SimplifiedLayerNormalization(X,
/// scale → Y, 1/σ)`.
pub(crate) fn layer(spec: &Spec<'_>, simplified: bool) -> Made {
    spec.expect_floats(0..3)?;
    spec.expect_like(0, 0)?;
    let dims = spec.dims(0)?;
    let rows = Rows::from(&dims, spec.axis(spec.int("axis", -1)?, dims.len())?);
    spec.need(1)?;
    [1, 2].into_iter().try_for_each(|i| spec.expect_count(i, rows.axis))?;
    let kept = if simplified { 1..2 } else { 1..3 };
    kept.into_iter().try_for_each(|i| spec.expect_float_result(i, rows.outer))?;
    let epsilon = f64::from(spec.float("epsilon", 1e-5)?);
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
        let statistics_of = |x: &[f32]| {
            if simplified {
                (0.0, sum(x.len(), |i| x[i] * x[i]) / x.len() as f64)
            } else {
                statistics(std::iter::once(x))
            }
        };
        let row = |x: &[f32], y: &mut [f32]| {
            let (mean, variance) = statistics_of(x);
            let inverse = (1.0 / (variance + epsilon).sqrt()) as f32;
            let mean = mean as f32;
            if has_bias {
                let each = y.iter_mut().zip(x).zip(scale.iter().zip(bias));
                each.for_each(|((y, &x), (&s, &b))| *y = (x - mean) * inverse * s + b);
            } else {
                let each = y.iter_mut().zip(x).zip(scale);
                each.for_each(|((y, &x), &s)| *y = (x - mean) * inverse * s);
            }
            (mean, inverse)
        };
        let run = |((y, x), (means, inverses)): Block<'_>| {
            for (i, (y, x)) in y.chunks_exact_mut(n).zip(x.chunks_exact(n)).enumerate() {
                let (mean, inverse) = row(x, y);
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
    let rows = Rows::from(&dims, spec.axis(spec.int("axis", -1)?, dims.len())?);
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
            let (mean, inverse) = (mean(row), inverses[row]);
            let g = |i: usize| dy[i] * scale[i];
            let about = sum(n, |i| g(i) * ((x[i] - mean) * inverse)) / n as f64;
            let level = if simplified { 0.0 } else { sum(n, g) / n as f64 };
            let (about, level) = (about as f32, level as f32);
            let each = dx.iter_mut().zip(dy.iter().zip(scale)).zip(x);
            each.for_each(|((dx, (&dy, &s)), &x)| {
                *dx = (dy * s - level - (x - mean) * inverse * about) * inverse
            });
        });
        let (dscale, dbias) = (io.take::<f32>(1), io.take::<f32>(2));
        const COLUMNS: usize = 128;
        let columns = |start: usize, dscale: &mut [f32], dbias: &mut [f32]| {
            let mut sums = ([0.0f64; COLUMNS], [0.0f64; COLUMNS]);
            let width = dscale.len();
            for (row, &inverse) in inverses.iter().enumerate().take(rows.outer) {
                let at = row * n + start;
                let (dy, x) = (&dy[at..at + width], &x[at..at + width]);
                let mean = mean(row);
                for i in 0..width {
                    sums.0[i] += f64::from(dy[i] * ((x[i] - mean) * inverse));
                    sums.1[i] += f64::from(dy[i]);
                }
            }
            dscale.iter_mut().zip(&sums.0).for_each(|(o, &s)| *o = s as f32);
            dbias.iter_mut().zip(&sums.1).for_each(|(o, &s)| *o = s as f32);
        };
        let least = least(COLUMNS * rows.outer);
        if dbias.is_empty() {
            let each = dscale.par_chunks_mut(COLUMNS).enumerate().with_min_len(least);
            each.for_each(|(i, s)| columns(i * COLUMNS, s, &mut []));
        } else {
            let both = dscale.par_chunks_mut(COLUMNS).zip(dbias.par_chunks_mut(COLUMNS)).enumerate();
            both.with_min_len(least).for_each(|(i, (s, b))| columns(i * COLUMNS, s, b));
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
    let Ok(groups @ 1..) = usize::try_from(spec.int("num_groups", 0)?) else {
        return refuse("attribute `num_groups` is not positive");
    };
    if rows.axis % groups != 0 {
        return refuse(format!("{} channels do not divide into {groups} groups", rows.axis));
    }
    grouped(spec, rows, groups, rows.axis / groups * rows.inner)
}

/// Normalizes groups of `size` elements, `groups` groups per sample.
fn grouped(spec: &Spec<'_>, rows: Rows, groups: usize, size: usize) -> Made {
    let epsilon = f64::from(spec.float("epsilon", 1e-5)?);
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
                out.iter_mut().zip(x).for_each(|(o, &x)| *o = (x - mean) * factor + bias[at]);
            }
        });
    }))
}
