//! Pooling and resizing.

use lmsc_kernels::host::pool as host;
use lmsc_kernels::host::resize::{Resized, resized, scales_at};
use lmsc_kernels::meaning::{Rows, SlidingWindow, count};
use lmsc_kernels::spec::{Spec, SpecError, refuse};

use super::movement::{holds_table, maps};
use super::{Made, image, width};
use crate::engines::ChannelOrder;
use crate::recipe::{Arg, RANK, Recipe, lanes, operand, result};

/// Number of channels where these are last; 0 where they are first.
fn channels(dims: &[usize], order: ChannelOrder) -> usize {
    if order == ChannelOrder::Last { dims[1] } else { 0 }
}

fn words(image: &[usize], order: ChannelOrder, w: &SlidingWindow) -> Arg {
    let mut words = vec![planes(image) as u64, channels(image, order) as u64];
    for list in [w.image, w.positions, w.kernel, w.stride, w.dilation] {
        words.extend(list.map(|n| n as u64));
    }
    for list in [w.before, w.after] {
        words.extend(list.map(|n| n as u64));
    }
    Arg::Words(words)
}

fn planes(dims: &[usize]) -> usize {
    count(&dims[..2])
}

pub(crate) fn max(spec: &Spec<'_>, order: ChannelOrder) -> Made {
    let (image, positions) = (image(spec.dims(0)?, order), image(spec.result_dims(0)?, order));
    let w = host::window(spec, &image, &positions)?;
    let mut recipe = Recipe::default();
    let args = vec![words(&image, order, &w), operand(0).into(), result(0).into(), result(1).into()];
    recipe.each("max_pool", count(&positions), args);
    Ok(recipe)
}

pub(crate) fn max_grad(spec: &Spec<'_>, order: ChannelOrder) -> Made {
    let (positions, image) = (image(spec.dims(0)?, order), image(spec.result_dims(0)?, order));
    let mut recipe = Recipe::default();
    // The gradient is defined without the window's attributes, but models have them.
    match spec.says("kernel_shape").then(|| host::window(spec, &image, &positions)) {
        Some(Ok(w)) => {
            let args = vec![words(&image, order, &w), operand(0).into(), operand(1).into(), result(0).into()];
            recipe.each("max_pool_grad", count(&image), args);
        }
        _ => {
            let (places, pixels) = (count(&positions[2..]), count(&image[2..]));
            let args = vec![
                planes(&image).into(),
                channels(&image, order).into(),
                places.into(),
                pixels.into(),
                operand(0).into(),
                operand(1).into(),
                result(0).into(),
            ];
            recipe.each("max_pool_grad_by_plane", planes(&image), args);
        }
    }
    Ok(recipe)
}

pub(crate) fn average(spec: &Spec<'_>, order: ChannelOrder) -> Made {
    let (image, positions) = (image(spec.dims(0)?, order), image(spec.result_dims(0)?, order));
    let w = host::window(spec, &image, &positions)?;
    let padding = spec.flag("count_include_pad")?;
    let mut recipe = Recipe::default();
    let args = vec![words(&image, order, &w), padding.into(), operand(0).into(), result(0).into()];
    recipe.each("average_pool", count(&positions), args);
    Ok(recipe)
}

pub(crate) fn average_grad(spec: &Spec<'_>, order: ChannelOrder) -> Made {
    let (positions, image) = (image(spec.dims(0)?, order), image(spec.result_dims(0)?, order));
    let w = host::window(spec, &image, &positions)?;
    let padding = spec.flag("count_include_pad")?;
    let mut recipe = Recipe::default();
    let args = vec![words(&image, order, &w), padding.into(), operand(0).into(), result(0).into()];
    recipe.each("average_pool_grad", count(&image), args);
    Ok(recipe)
}

pub(crate) fn global(spec: &Spec<'_>, largest: bool) -> Made {
    let dims = spec.dims(0)?;
    let pixels = Rows::from(&dims, 2).axis;
    let lanes = lanes(pixels);
    let args = vec![
        lanes.into(),
        planes(&dims).into(),
        pixels.into(),
        largest.into(),
        operand(0).into(),
        result(0).into(),
    ];
    let mut recipe = Recipe::default();
    recipe.teams("global_pool", planes(&dims), lanes, args);
    Ok(recipe)
}

/// For each axis, its begin in the lists of all axes.
type Lists = Vec<usize>;

/// The words of a resizing kernel that writes `n` elements of extents `out`, and reads with these strides.
fn resized_words(
    n: usize,
    out: &[usize],
    taps: &[usize],
    lists: &Lists,
    strides: &[usize],
    (from, to): (usize, usize),
) -> Result<Arg, SpecError> {
    if out.len() > RANK {
        return refuse(format!("more than {RANK} dimensions are resized"));
    }
    let mut words = vec![n as u64, out.len() as u64];
    for list in [out, taps, lists, strides] {
        words.extend(list.iter().map(|&n| n as u64).chain(std::iter::repeat(0)).take(RANK));
    }
    words.extend([from as u64, to as u64]);
    Ok(Arg::Words(words))
}

fn taps_bytes<'a>(taps: impl IntoIterator<Item = &'a (usize, f32)>) -> Vec<u8> {
    let word = |&(index, weight): &(usize, f32)| [index as u64, f64::from(weight).to_bits()];
    taps.into_iter().flat_map(word).flat_map(u64::to_le_bytes).collect()
}

pub(crate) fn resize(spec: &Spec<'_>) -> Made {
    let (dims, out) = (spec.dims(0)?, spec.result_dims(0)?);
    let plan = resized(spec, &dims, &out, scales_at(spec))?;
    let (from, to) = plan.sizes;
    let n = count(&out);
    let mut recipe = Recipe::default();
    if n == 0 {
        return Ok(recipe);
    }
    holds_table(&plan.extents)?;
    if plan.taps.iter().all(|&taps| taps == 1) {
        // Its table has an entry for each part, too.
        holds_table(&[n / to.max(1)])?;
        maps(&mut recipe, width(spec.element(0)?)?, &plan.map(), n / to.max(1), from)?;
        return Ok(recipe);
    }
    let axes = plan.axes();
    let mut first = 0;
    let mut lists = Vec::new();
    for axis in &axes {
        lists.push(first);
        first += axis.from.len();
    }
    let words = resized_words(n, &plan.extents, &plan.taps, &lists, &plan.strides, (from, to.max(1)))?;
    let table = recipe.constant(taps_bytes(axes.iter().flat_map(|axis| &axis.from)));
    recipe.each("resize", n, vec![words, table.into(), operand(0).into(), result(0).into()]);
    Ok(recipe)
}

/// By index of the operand, the indices of the result that use it, with their weights.
fn turned(plan: &Resized, dims: &[usize]) -> Vec<Vec<Vec<(usize, f32)>>> {
    let of = |(axis, &extent): (&lmsc_kernels::host::resize::Axis, &usize)| {
        let mut of = vec![Vec::new(); extent];
        for (at, &(index, weight)) in axis.from.iter().enumerate() {
            of[index].push((at / axis.taps.max(1), weight));
        }
        of
    };
    plan.axes().iter().zip(dims).map(of).collect()
}

pub(crate) fn resize_grad(spec: &Spec<'_>) -> Made {
    let (dims, out) = (spec.result_dims(0)?, spec.dims(0)?);
    let plan = resized(spec, &dims, &out, Some(3).filter(|&at| spec.has(at)))?;
    let (from, to) = plan.sizes;
    let n = count(&dims);
    let mut recipe = Recipe::default();
    if n == 0 {
        return Ok(recipe);
    }
    holds_table(&plan.extents)?;
    let lead = dims.len() - plan.extents.len();
    holds_table(&dims[lead..])?;
    let turned = turned(&plan, &dims[lead..]);
    let (mut bounds, mut lists, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for of in &turned {
        lists.push(bounds.len());
        for taps in of {
            bounds.push(all.len());
            all.extend(taps);
        }
        bounds.push(all.len());
    }
    let extents: Vec<usize> = turned.iter().map(Vec::len).collect();
    let strides = lmsc_kernels::meaning::strides(&out[lead..]);
    let words = resized_words(n, &extents, &[], &lists, &strides, (to, from.max(1)))?;
    let bounds = recipe.integers(bounds);
    let table = recipe.constant(taps_bytes(&all));
    let args = vec![words, bounds.into(), table.into(), operand(0).into(), result(0).into()];
    recipe.each("resize_grad", n, args);
    Ok(recipe)
}
