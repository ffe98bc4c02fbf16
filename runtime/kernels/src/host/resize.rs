//! `Resize`, `Upsample` and the gradient: each element of the result is a weighted sum of elements of the operand.

use std::sync::OnceLock;

use rayon::prelude::*;

use super::movement::Mapped;
use super::{Made, least};
use crate::element::dispatch;
use crate::kernel::{Io, Kernel};
use crate::meaning::{count, strides};
use crate::spec::{Spec, SpecError, refuse};

/// The elements of the operand that each index of the result combines, along one dimension.
pub struct Axis {
    /// Number of elements that each index combines.
    pub taps: usize,
    /// By index of the result and tap, the operand's index and its weight.
    pub from: Vec<(usize, f32)>,
}

/// A resized tensor: an axis for each dimension behind the leading ones, which do not change.
pub struct Resized {
    coordinates: Coordinates,
    /// Number of leading dimensions that do not change.
    lead: usize,
    /// Number of elements that each index combines, along each axis.
    pub taps: Vec<usize>,
    /// Extents of the result along the axes.
    pub extents: Vec<usize>,
    /// Strides of the operand along these axes.
    pub strides: Vec<usize>,
    /// Number of elements of an unchanged leading part, in operand and result.
    pub sizes: (usize, usize),
}

/// Coordinates of the result's elements in the operand: the attributes, and by dimension the extents and the scale.
struct Coordinates {
    mode: String,
    transformation: String,
    rounding: String,
    cubic: f64,
    excludes_outside: bool,
    dims: Vec<usize>,
    out: Vec<usize>,
    scales: Vec<f32>,
}

/// Whether the node is of a version without attributes for coordinates and rounding.
fn is_old(spec: &Spec<'_>) -> bool {
    spec.op.name() == "Upsample" || spec.op.domain().is_empty() && spec.opset < 11
}

impl Coordinates {
    fn new(
        spec: &Spec<'_>,
        dims: &[usize],
        out: &[usize],
        scales_at: Option<usize>,
    ) -> Result<Coordinates, SpecError> {
        let is_old = is_old(spec);
        // Before version 11 the nearest element was the previous one, or the next one when elements were dropped.
        let (transformation, rounding) = if is_old {
            ("asymmetric".to_owned(), "by_scale".to_owned())
        } else {
            (spec.string("coordinate_transformation_mode")?, spec.string("nearest_mode")?)
        };
        if !is_old && spec.int("antialias")? != 0 {
            return refuse("attribute `antialias` is not supported");
        }
        let found = Coordinates {
            mode: spec.string("mode")?,
            transformation,
            rounding,
            // `Upsample` has no such interpolation.
            cubic: if spec.knows("cubic_coeff_a") { spec.float("cubic_coeff_a")?.into() } else { 0.0 },
            excludes_outside: !is_old && spec.flag("exclude_outside")?,
            dims: dims.to_vec(),
            out: out.to_vec(),
            scales: scales(spec, dims, out, scales_at)?,
        };
        let fraction = |d: usize| dims[d] as f32 * found.scales[d] - out[d] as f32;
        if found.transformation == "align_corners"
            && let Some(d) = (0..dims.len()).find(|&d| out[d] > 1 && fraction(d).abs() > 1e-3)
        {
            // ONNX's definition divides by the extent before rounding, runtimes by the extent after rounding.
            return refuse(format!(
                "attribute `coordinate_transformation_mode` is `align_corners`, and a scale of {} makes no whole number \
                 of {} elements; give `sizes`",
                found.scales[d], dims[d]
            ));
        }
        Ok(found)
    }

    /// The coordinate in the operand of the `i`-th element along dimension `d`, in 32 bits, as every runtime computes it.
    fn place(&self, d: usize, i: usize) -> Result<f64, SpecError> {
        let (n, m, i, s) = (self.dims[d] as f32, self.out[d] as f32, i as f32, self.scales[d]);
        Ok(f64::from(match &*self.transformation {
            "half_pixel" => (i + 0.5) / s - 0.5,
            "pytorch_half_pixel" if m > 1.0 => (i + 0.5) / s - 0.5,
            "half_pixel_symmetric" => n / 2.0 * (1.0 - m / (s * n)) + (i + 0.5) / s - 0.5,
            "align_corners" if m > 1.0 => i * (n - 1.0) / (m - 1.0),
            "pytorch_half_pixel" | "align_corners" => 0.0,
            "asymmetric" => i / s,
            other => {
                return refuse(format!(
                    "attribute `coordinate_transformation_mode` is `{other}`, which is not supported"
                ));
            }
        }))
    }

    /// The nearest integer coordinate.
    fn nearest(&self, d: usize, x: f64) -> Result<f64, SpecError> {
        Ok(match &*self.rounding {
            "round_prefer_floor" => (x - 0.5).ceil(),
            "round_prefer_ceil" => (x + 0.5).floor(),
            "by_scale" if self.scales[d] < 1.0 => x.ceil(),
            "floor" | "by_scale" => x.floor(),
            "ceil" => x.ceil(),
            other => return refuse(format!("attribute `nearest_mode` is `{other}`; no such mode is known")),
        })
    }

    /// The weights of the four elements around x, the first of which is `first`.
    ///
    /// # Source
    /// Keys, *Cubic convolution interpolation*, IEEE TASSP 29(6), 1981.
    fn cubic(&self, d: usize, x: f64, first: f64) -> [f64; 4] {
        let (t, a) = (x - x.floor(), self.cubic);
        let near = |t: f64| ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0;
        let far = |t: f64| ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a;
        let mut weights = [far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)];
        if self.excludes_outside {
            let is_outside = |k: usize| !(0.0..self.dims[d] as f64).contains(&(first + k as f64));
            (0..4).filter(|&k| is_outside(k)).for_each(|k| weights[k] = 0.0);
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w /= sum);
        }
        weights
    }

    /// Whether the dimension stays as it is.
    fn stays(&self, d: usize) -> bool {
        self.dims[d] == self.out[d] && self.scales[d] == 1.0
    }

    /// Number of elements that each index along the dimension combines.
    fn taps(&self, d: usize) -> Result<usize, SpecError> {
        // Attributes that are not known are refused before the first run.
        self.nearest(d, self.place(d, 0)?)?;
        match &*self.mode {
            _ if self.stays(d) => Ok(1),
            "nearest" => Ok(1),
            "linear" | "bilinear" | "trilinear" => Ok(2),
            "cubic" => Ok(4),
            other => refuse(format!("attribute `mode` is `{other}`; no such mode is known")),
        }
    }

    fn axis(&self, d: usize) -> Result<Axis, SpecError> {
        let (dims, out) = (&self.dims, &self.out);
        if self.stays(d) {
            return Ok(Axis { taps: 1, from: (0..out[d]).map(|i| (i, 1.0)).collect() });
        }
        let within = |i: f64| (i.max(0.0) as usize).min(dims[d].saturating_sub(1));
        let mut from = Vec::with_capacity(self.taps(d)?.saturating_mul(out[d]));
        for i in 0..out[d] {
            let x = self.place(d, i)?;
            match &*self.mode {
                "nearest" => from.push((within(self.nearest(d, x)?), 1.0)),
                "linear" | "bilinear" | "trilinear" => {
                    let x = x.clamp(0.0, (dims[d].max(1) - 1) as f64);
                    let part = x - x.floor();
                    from.push((within(x.floor()), (1.0 - part) as f32));
                    from.push((within(x.floor() + 1.0), part as f32));
                }
                "cubic" => {
                    let first = x.floor() - 1.0;
                    let taps = self.cubic(d, x, first).into_iter().enumerate();
                    from.extend(taps.map(|(k, w)| (within(first + k as f64), w as f32)));
                }
                other => return refuse(format!("attribute `mode` is `{other}`; no such mode is known")),
            }
        }
        Ok(Axis { taps: self.taps(d)?, from })
    }
}

/// For each dimension, the scale of the result: from an operand or an attribute, or from the extents.
fn scales(
    spec: &Spec<'_>,
    dims: &[usize],
    out: &[usize],
    scales_at: Option<usize>,
) -> Result<Vec<f32>, SpecError> {
    let rank = dims.len();
    let listed = if spec.knows("scales") { spec.floats("scales")? } else { None };
    let given = match listed {
        Some(scales) => Some(scales),
        None => scales_at.map_or(Ok(None), |at| spec.constant_floats(at))?,
    };
    let some = if spec.knows("axes") { spec.ints("axes")? } else { None };
    let axes: Vec<usize> = match some {
        Some(axes) => axes.iter().map(|&a| spec.axis(a, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect(),
    };
    let ratio = |d: usize, extent: f64| (extent / dims[d].max(1) as f64) as f32;
    let mut scales: Vec<f32> = (0..rank).map(|d| ratio(d, out[d] as f64)).collect();
    if let Some(given) = given {
        axes.iter().zip(given).for_each(|(&d, scale)| scales[d] = scale);
        return Ok(scales);
    }
    // The requested extents need not be the result's: one scale applies to all axes.
    let has_policy = spec.knows("keep_aspect_ratio_policy");
    let policy = if has_policy { spec.string("keep_aspect_ratio_policy")? } else { "stretch".into() };
    if policy != "stretch" {
        let sizes = spec.constants(3)?.unwrap_or_default();
        let ratios = axes.iter().zip(&sizes).map(|(&d, &size)| ratio(d, size as f64));
        let scale = match &*policy {
            "not_larger" => ratios.min_by(f32::total_cmp),
            "not_smaller" => ratios.max_by(f32::total_cmp),
            _ => None,
        };
        let Some(scale) = scale else {
            return refuse(format!(
                "attribute `keep_aspect_ratio_policy` is `{policy}`; no such policy is known"
            ));
        };
        axes.iter().for_each(|&d| scales[d] = scale);
    }
    Ok(scales)
}

/// From the extents of the forward operator's operand and result, and its operand of scales.
pub fn resized(
    spec: &Spec<'_>,
    dims: &[usize],
    out: &[usize],
    scales_at: Option<usize>,
) -> Result<Resized, SpecError> {
    let rank = dims.len();
    if out.len() != rank {
        return refuse(format!("extents {dims:?} are not resized to {out:?}"));
    }
    spec.expect_result(0, spec.element(0)?)?;
    if dims.contains(&0) && !out.contains(&0) {
        return refuse("there is nothing to resize in an operand without elements");
    }
    let coordinates = Coordinates::new(spec, dims, out, scales_at)?;
    let lead = (0..rank).take_while(|&d| coordinates.stays(d)).count();
    Ok(Resized {
        lead,
        taps: (lead..rank).map(|d| coordinates.taps(d)).collect::<Result<_, _>>()?,
        extents: out[lead..].to_vec(),
        strides: strides(&dims[lead..]),
        sizes: (count(&dims[lead..]), count(&out[lead..])),
        coordinates,
    })
}

impl Resized {
    /// The axes that change. They have the size of the extents, so that they are made when the kernel runs for the first
    /// time.
    pub fn axes(&self) -> Vec<Axis> {
        let axis = |d| self.coordinates.axis(d).expect("its attributes are known");
        (self.lead..self.coordinates.out.len()).map(axis).collect()
    }

    /// The map of a tensor of which each element is one of the operand.
    pub fn map(&self) -> Mapped {
        let map = |axis: Axis| axis.from.into_iter().map(|tap| tap.0).collect();
        Mapped { maps: self.axes().into_iter().map(map).collect(), strides: self.strides.clone() }
    }

    /// Calls `f` with an index of the result, and each index of the operand that it combines with its weight.
    fn each(
        &self,
        axes: &[Axis],
        index: usize,
        base: usize,
        weight: f32,
        f: &mut impl FnMut(usize, usize, f32),
    ) {
        let d = self.strides.len() - axes.len();
        let [axis, rest @ ..] = axes else { return f(index, base, weight) };
        for i in 0..axis.from.len() / axis.taps.max(1) {
            let extent = axis.from.len() / axis.taps;
            for &(from, w) in &axis.from[i * axis.taps..][..axis.taps] {
                self.each(rest, index * extent + i, base + from * self.strides[d], weight * w, f);
            }
        }
    }
}

/// The operand with the scales.
pub fn scales_at(spec: &Spec<'_>) -> Option<usize> {
    Some(if is_old(spec) { 1 } else { 2 }).filter(|&at| spec.has(at))
}

/// `Resize` and `Upsample`.
pub(crate) fn forward(spec: &Spec<'_>) -> Made {
    let plan = resized(spec, &spec.dims(0)?, &spec.result_dims(0)?, scales_at(spec))?;
    if plan.coordinates.out.contains(&0) {
        return Ok(Kernel::new(|_| {}));
    }
    if plan.taps.iter().all(|&taps| taps == 1) {
        let (from, to) = plan.sizes;
        let map = OnceLock::new();
        return dispatch!(width spec.element(0)?, T => Ok(Kernel::new(move |mut io: Io<'_>| {
            let map = map.get_or_init(|| plan.map());
            let x = io.get::<T>(0);
            let parts = io.take::<T>(0).chunks_mut(to.max(1)).enumerate();
            parts.for_each(|(i, out)| map.run(&x[i * from..][..from], out));
        })));
    }
    spec.expect_floats([0])?;
    let axes = OnceLock::new();
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (from, to) = plan.sizes;
        let axes = axes.get_or_init(|| plan.axes());
        let x = io.get::<f32>(0);
        let parts = io.take::<f32>(0).par_chunks_mut(to.max(1)).enumerate();
        parts.with_min_len(least(8 * to)).for_each(|(i, out)| {
            let x = &x[i * from..][..from];
            out.fill(0.0);
            plan.each(axes, 0, 0, 1.0, &mut |index, at, weight| out[index] += x[at] * weight);
        });
    }))
}

/// `ResizeGrad(dY, X, roi, scales → dX)`.
pub(crate) fn gradient(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0])?;
    let scales = Some(3).filter(|&at| spec.has(at));
    let plan = resized(spec, &spec.result_dims(0)?, &spec.dims(0)?, scales)?;
    let axes = OnceLock::new();
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let (from, to) = plan.sizes;
        if to == 0 {
            return io.take::<f32>(0).fill(0.0);
        }
        let axes = axes.get_or_init(|| plan.axes());
        let dy = io.get::<f32>(0);
        let parts = io.take::<f32>(0).par_chunks_mut(from.max(1)).enumerate();
        parts.with_min_len(least(8 * to)).for_each(|(i, dx)| {
            let dy = &dy[i * to..][..to];
            dx.fill(0.0);
            plan.each(axes, 0, 0, 1.0, &mut |index, at, weight| dx[at] += dy[index] * weight);
        });
    }))
}
