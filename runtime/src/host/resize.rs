//! `Resize`, `Upsample` and the gradient: each element of the result is a weighted sum of some of the operand's.

use rayon::prelude::*;

use super::{Made, least, movement::Mapped};
use crate::element::dispatch;
use crate::kernel::{Io, Kernel};
use crate::meaning::strides;
use crate::spec::{Refusal, Spec, refuse};

/// What each index of the large or small result is made of, along one dimension.
pub(crate) struct Axis {
    /// How many elements one is made of.
    pub(crate) taps: usize,
    /// By index of the result and tap, the operand's index and its weight.
    pub(crate) from: Vec<(usize, f32)>,
}

/// A resized tensor: one axis for each dimension behind the first ones, which stay.
pub(crate) struct Resized {
    pub(crate) axes: Vec<Axis>,
    /// Strides of the operand along these axes.
    pub(crate) strides: Vec<usize>,
    /// Elements of a part that stays one, in operand and result.
    pub(crate) sizes: (usize, usize),
}

/// From extents of the operand and the result of the forward operator, and its operand of scales.
pub(crate) fn resized(
    spec: &Spec<'_>,
    dims: &[usize],
    out: &[usize],
    scales_at: Option<usize>,
) -> Result<Resized, Refusal> {
    let rank = dims.len();
    if out.len() != rank {
        return refuse(format!("extents {dims:?} are not resized to {out:?}"));
    }
    spec.expect_result(0, spec.element(0)?)?;
    let old = spec.op.name() == "Upsample" || spec.op.domain().is_empty() && spec.opset < 11;
    let mode = spec.string("mode", "nearest")?;
    let coordinates =
        spec.string("coordinate_transformation_mode", if old { "asymmetric" } else { "half_pixel" })?;
    let nearest = spec.string("nearest_mode", if old { "floor" } else { "round_prefer_floor" })?;
    let cubic = f64::from(spec.float("cubic_coeff_a", -0.75)?);
    for (name, only) in [("antialias", 0), ("exclude_outside", 0)] {
        if spec.int(name, 0)? != only {
            return refuse(format!("attribute `{name}` is not supported"));
        }
    }
    let scales = match spec.floats("scales")? {
        Some(scales) => Some(scales),
        None => scales_at.map_or(Ok(None), |at| spec.constant_floats(at))?,
    };
    let axes: Vec<usize> = match spec.ints("axes")? {
        Some(axes) => axes.iter().map(|&a| spec.axis(a, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect(),
    };
    let scale = |d: usize| -> f64 {
        let given = scales.as_ref().and_then(|s| s.get(axes.iter().position(|&a| a == d)?));
        given.map_or(out[d] as f64 / dims[d].max(1) as f64, |&s| f64::from(s))
    };
    let place = |d: usize, i: usize| -> Result<f64, Refusal> {
        let (n, m, i, s) = (dims[d] as f64, out[d] as f64, i as f64, scale(d));
        Ok(match &*coordinates {
            "half_pixel" => (i + 0.5) / s - 0.5,
            "pytorch_half_pixel" => {
                if m > 1.0 {
                    (i + 0.5) / s - 0.5
                } else {
                    0.0
                }
            }
            "half_pixel_symmetric" => n / 2.0 * (1.0 - m / (s * n)) + (i + 0.5) / s - 0.5,
            "align_corners" => {
                if m > 1.0 {
                    i * (n - 1.0) / (m - 1.0)
                } else {
                    0.0
                }
            }
            "asymmetric" => i / s,
            other => {
                return refuse(format!(
                    "attribute `coordinate_transformation_mode` is `{other}`, which is not supported"
                ));
            }
        })
    };
    let within = |d: usize, i: f64| (i.max(0.0) as usize).min(dims[d].saturating_sub(1));
    let axis = |d: usize| -> Result<Axis, Refusal> {
        if dims[d] == out[d] && scale(d) == 1.0 {
            return Ok(Axis { taps: 1, from: (0..out[d]).map(|i| (i, 1.0)).collect() });
        }
        let mut from = Vec::new();
        for i in 0..out[d] {
            let x = place(d, i)?;
            match &*mode {
                "nearest" => {
                    let at = match &*nearest {
                        "round_prefer_floor" => (x - 0.5).ceil(),
                        "round_prefer_ceil" => (x + 0.5).floor(),
                        "floor" => x.floor(),
                        "ceil" => x.ceil(),
                        other => {
                            return refuse(format!(
                                "attribute `nearest_mode` is `{other}`; no such mode is known"
                            ));
                        }
                    };
                    from.push((within(d, at), 1.0));
                }
                "linear" | "bilinear" | "trilinear" => {
                    let x = x.clamp(0.0, (dims[d].max(1) - 1) as f64);
                    let part = x - x.floor();
                    from.push((within(d, x.floor()), (1.0 - part) as f32));
                    from.push((within(d, x.floor() + 1.0), part as f32));
                }
                // Keys, *Cubic convolution interpolation*, IEEE TASSP 29(6), 1981.
                "cubic" => {
                    let t = x - x.floor();
                    let near = |t: f64| ((cubic + 2.0) * t - (cubic + 3.0)) * t * t + 1.0;
                    let far = |t: f64| ((cubic * t - 5.0 * cubic) * t + 8.0 * cubic) * t - 4.0 * cubic;
                    let weights = [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)];
                    let taps = weights.iter().enumerate();
                    from.extend(taps.map(|(k, &w)| (within(d, x.floor() - 1.0 + k as f64), w as f32)));
                }
                other => return refuse(format!("attribute `mode` is `{other}`; no such mode is known")),
            }
        }
        Ok(Axis { taps: from.len() / out[d].max(1), from })
    };
    let all = (0..rank).map(axis).collect::<Result<Vec<_>, _>>()?;
    let stays = |d: usize| {
        dims[d] == out[d] && all[d].taps == 1 && all[d].from.iter().enumerate().all(|(i, f)| f.0 == i)
    };
    let lead = (0..rank).take_while(|&d| stays(d)).count();
    Ok(Resized {
        strides: strides(&dims[lead..]),
        sizes: (dims[lead..].iter().product(), out[lead..].iter().product()),
        axes: all.into_iter().skip(lead).collect(),
    })
}

impl Resized {
    /// Calls `f` with an index of the result, and each index of the operand it is made of with its weight.
    fn each(&self, d: usize, index: usize, base: usize, weight: f32, f: &mut impl FnMut(usize, usize, f32)) {
        let Some(axis) = self.axes.get(d) else { return f(index, base, weight) };
        for i in 0..axis.from.len() / axis.taps.max(1) {
            let extent = axis.from.len() / axis.taps;
            for &(from, w) in &axis.from[i * axis.taps..][..axis.taps] {
                self.each(d + 1, index * extent + i, base + from * self.strides[d], weight * w, f);
            }
        }
    }
}

/// Which operand holds the scales.
pub(crate) fn scales_at(spec: &Spec<'_>) -> Option<usize> {
    let old = spec.op.name() == "Upsample" || spec.op.domain().is_empty() && spec.opset < 11;
    Some(if old { 1 } else { 2 }).filter(|&at| spec.has(at))
}

/// `Resize` and `Upsample`.
pub(crate) fn forward(spec: &Spec<'_>) -> Made {
    let plan = resized(spec, &spec.dims(0)?, &spec.result_dims(0)?, scales_at(spec))?;
    if plan.axes.iter().all(|a| a.taps == 1) {
        let maps = plan.axes.iter().map(|a| a.from.iter().map(|f| f.0).collect()).collect();
        let map = Mapped { maps, strides: plan.strides };
        let (from, to) = plan.sizes;
        return dispatch!(width spec.element(0)?, T => Ok(Kernel::new(move |mut io: Io<'_>| {
            let x = io.get::<T>(0);
            let parts = io.take::<T>(0).chunks_mut(to.max(1)).enumerate();
            parts.for_each(|(i, out)| map.run(&x[i * from..][..from], out));
        })));
    }
    spec.expect_floats([0])?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (from, to) = plan.sizes;
        let x = io.get::<f32>(0);
        let parts = io.take::<f32>(0).par_chunks_mut(to.max(1)).enumerate();
        parts.with_min_len(least(8 * to)).for_each(|(i, out)| {
            let x = &x[i * from..][..from];
            out.fill(0.0);
            plan.each(0, 0, 0, 1.0, &mut |index, at, weight| out[index] += x[at] * weight);
        });
    }))
}

/// `ResizeGrad(dY, X, roi, scales → dX)`.
pub(crate) fn gradient(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0])?;
    let scales = Some(3).filter(|&at| spec.has(at));
    let plan = resized(spec, &spec.result_dims(0)?, &spec.dims(0)?, scales)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (from, to) = plan.sizes;
        let dy = io.get::<f32>(0);
        let parts = io.take::<f32>(0).par_chunks_mut(from.max(1)).enumerate();
        parts.with_min_len(least(8 * to)).for_each(|(i, dx)| {
            let dy = &dy[i * to..][..to];
            dx.fill(0.0);
            plan.each(0, 0, 0, 1.0, &mut |index, at, weight| dx[at] += dy[index] * weight);
        });
    }))
}
