//! Operators that move elements without computing any.

use lmsc_ir::{Attr, ElementType, TensorType};

use super::constant::{Const, positions, strides};
use super::{
    Answer, Cx, Fact, Refusal, axis, axis_mask, extent, extent_of, extents, fold, folded, one, product, show,
    unknown, wrong,
};

/// `Transpose`.
pub(super) fn transpose(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let rank = x.dims.len();
    let perm: Vec<usize> = match cx.int_list("perm")? {
        None => (0..rank).rev().collect(),
        Some(perm) => {
            if perm.len() != rank || !axis_mask(perm, rank)?.iter().all(|&m| m) {
                return wrong(format!("perm {perm:?} of {x}"));
            }
            perm.iter().map(|&p| axis(p, rank)).collect::<Result<_, _>>()?
        }
    };
    folded(x.element, perm.iter().map(|&p| x.dims[p]).collect::<Vec<_>>(), |out| {
        let steps = strides(&x.dims);
        let steps: Vec<usize> = perm.iter().map(|&p| steps[p]).collect();
        cx.value(0)?.select(positions(out, &steps, 0))
    })
}

/// The extents of operands joined along `at`, with their element type.
fn joined(all: &[&TensorType], at: usize) -> Result<TensorType, Refusal> {
    let mut out = all[0].clone();
    for ty in &all[1..] {
        let fits = ty.element == out.element
            && ty.dims.len() == out.dims.len()
            && (0..out.dims.len()).all(|i| i == at || ty.dims[i] == out.dims[i]);
        if !fits {
            return wrong(format!("{} and {ty} cannot be joined along axis {at}", all[0]));
        }
        out.dims[at] = match out.dims[at].checked_add(ty.dims[at]) {
            Some(sum) => sum,
            None => return wrong("an extent of more than 2^64"),
        };
    }
    Ok(out)
}

/// `Concat`, and `ConcatTraining` with the lengths as its result 1.
pub(super) fn concat(cx: &Cx<'_>) -> Answer {
    let all = (0..cx.operand_count()).map(|i| cx.tensor(i)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = all.first() else { return wrong("there are no operands") };
    let rank = first.dims.len();
    let at = axis(cx.int_or("axis", 1)?, rank)?;
    let ty = joined(&all, at)?;
    let whole = fold(ty.element, &*ty.dims, |out| {
        let inner: usize = out[at + 1..].iter().product::<u64>() as usize;
        let outer: usize = out[..at].iter().product::<u64>() as usize;
        let pieces: Vec<(&Const, usize)> = all
            .iter()
            .enumerate()
            .map(|(i, ty)| Some((cx.value(i)?, ty.dims[at] as usize * inner)))
            .collect::<Option<_>>()?;
        let rows = (0..outer).flat_map(|row| pieces.iter().map(move |&(v, n)| (v, row * n..(row + 1) * n)));
        join_rows(rows)
    });
    let lengths = fold(ElementType::Int64, [all.len() as u64], |_| {
        Const::ints(ElementType::Int64, all.iter().map(|ty| i64::try_from(ty.dims[at]).ok()))
    });
    Ok(vec![Some(whole), Some(lengths)])
}

/// Ranges of constants, one after another.
fn join_rows<'a>(rows: impl Iterator<Item = (&'a Const, std::ops::Range<usize>)>) -> Option<Const> {
    let mut ints = Vec::new();
    let mut floats = Vec::new();
    for (value, range) in rows {
        match value {
            Const::Ints(v) => ints.extend_from_slice(v.get(range)?),
            Const::Floats(v) => floats.extend_from_slice(v.get(range)?),
        }
    }
    match (ints.is_empty(), floats.is_empty()) {
        (_, true) => Some(Const::Ints(ints.into())),
        (true, false) => Some(Const::Floats(floats.into())),
        (false, false) => None,
    }
}

/// The part of operand 0 from `start` along `at`.
fn part(cx: &Cx<'_>, x: &TensorType, at: usize, start: u64, length: u64) -> Fact {
    let mut dims = x.dims.clone();
    dims[at] = length;
    fold(x.element, dims, |out| {
        let steps = strides(&x.dims);
        cx.value(0)?.select(positions(out, &steps, (start as usize).wrapping_mul(steps[at])))
    })
}

/// `Split` and `SplitTraining`.
pub(super) fn split(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let at = axis(cx.int_or("axis", 0)?, x.dims.len())?;
    let whole = x.dims[at];
    let lengths = match cx.int_list_or_ints("split", 1)? {
        Some(lengths) => extents(lengths)?,
        None => {
            let count = match cx.int("num_outputs")? {
                Some(n) => extent(n)?,
                None => cx.result_count() as u64,
            };
            if count == 0 || count > cx.result_count() as u64 {
                return wrong(format!("{count} parts, but {} results", cx.result_count()));
            }
            if cx.version() < 18 && !whole.is_multiple_of(count) {
                return wrong(format!("an extent of {whole} cannot be split into {count} equal parts"));
            }
            let chunk = whole.div_ceil(count);
            // The last parts may be smaller, or empty.
            (0..count).map(|i| chunk.min(whole.saturating_sub(chunk.saturating_mul(i)))).collect()
        }
    };
    let total = lengths.iter().try_fold(0u64, |n, &l| n.checked_add(l));
    if total != Some(whole) {
        return wrong(format!("parts of {} do not make an extent of {whole}", show(&lengths)));
    }
    let mut start = 0;
    let mut facts = Vec::with_capacity(lengths.len().min(cx.result_count()));
    for &length in lengths.iter().take(cx.result_count()) {
        facts.push(Some(part(cx, x, at, start, length)));
        start += length;
    }
    Ok(facts)
}

/// `Slice`, bounds in attributes or in operands.
pub(super) fn slice(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let Some(starts) = cx.int_list_or_ints("starts", 1)? else { return wrong("the starts are missing") };
    let Some(ends) = cx.int_list_or_ints("ends", 2)? else { return wrong("the ends are missing") };
    let axes = cx.int_list_or_ints("axes", 3)?;
    let steps = cx.ints(4)?;
    let count = starts.len();
    if ends.len() != count
        || axes.is_some_and(|a| a.len() != count)
        || steps.is_some_and(|s| s.len() != count)
        || count > x.dims.len()
    {
        return wrong("starts, ends, axes and steps differ in number, or exceed the rank");
    }
    if let Some(axes) = axes {
        axis_mask(axes, x.dims.len())?;
    }
    let mut dims = x.dims.clone();
    let strides = strides(&x.dims);
    let mut walk = strides.clone();
    let mut offset = 0usize;
    for i in 0..count {
        let at = axes.map_or(Ok(i), |a| axis(a[i], x.dims.len()))?;
        let step = steps.map_or(1, |s| s[i]);
        let n = i128::from(x.dims[at]);
        let bound = |v: i64| i128::from(v) + if v < 0 { n } else { 0 };
        let (start, end) = match step {
            0 => return wrong("a step is zero"),
            1.. => (bound(starts[i]).clamp(0, n), bound(ends[i]).clamp(0, n)),
            _ => (bound(starts[i]).clamp(0, (n - 1).max(0)), bound(ends[i]).clamp(-1, n - 1)),
        };
        let (span, pace) =
            if step < 0 { (start - end, -i128::from(step)) } else { (end - start, step.into()) };
        // An empty axis has nothing to walk back over.
        let length = if n == 0 { 0 } else { (span + pace - 1).div_euclid(pace).max(0) };
        dims[at] = extent_of(length)?;
        offset = offset.wrapping_add((start as usize).wrapping_mul(strides[at]));
        walk[at] = strides[at].wrapping_mul(step as usize);
    }
    folded(x.element, dims, |out| cx.value(0)?.select(positions(out, &walk, offset)))
}

/// A gradient `…Grad` whose result has dY's elements and the extents that the operand `at` holds.
pub(super) fn of_shape(cx: &Cx<'_>, at: usize, dy: usize) -> Answer {
    one(cx.tensor(dy)?.element, extents(cx.need_ints(at)?)?)
}

/// `SliceGrad(dY, shape, starts, ends, axes, steps)`.
pub(super) fn slice_gradient(cx: &Cx<'_>) -> Answer {
    let dims = extents(cx.need_ints(1)?)?;
    let dy = cx.tensor(0)?;
    if dims.len() != dy.dims.len() || dims.iter().zip(&dy.dims).any(|(a, b)| a < b) {
        return wrong(format!("dY is {dy}, which is no slice of {}", show(&dims)));
    }
    one(dy.element, dims)
}

/// The extents of `Gather` from `data` by `indices`.
fn gathered(data: &[u64], at: usize, indices: &[u64]) -> Vec<u64> {
    [&data[..at], indices, &data[at + 1..]].concat()
}

/// `Gather`.
pub(super) fn gather(cx: &Cx<'_>) -> Answer {
    let (x, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    let at = axis(cx.int_or("axis", 0)?, x.dims.len())?;
    let n = x.dims[at];
    if let Some(Const::Ints(picked)) = cx.value(1)
        && let Some(i) = picked.iter().find(|&&i| i128::from(i) >= n.into() || i128::from(i) < -i128::from(n))
    {
        return wrong(format!("index {i} along axis {at} of {x}"));
    }
    folded(x.element, gathered(&x.dims, at, &indices.dims), |_| {
        let picked = cx.value(1)?.as_ints()?;
        let value = cx.value(0)?;
        let inner = x.dims[at + 1..].iter().product::<u64>() as usize;
        let outer = x.dims[..at].iter().product::<u64>() as usize;
        let from_front = |&i: &i64| (if i < 0 { i + n as i64 } else { i }) as usize;
        let rows = (0..outer).flat_map(|o| picked.iter().map(move |i| o * n as usize + from_front(i)));
        value.select(rows.flat_map(|row| row * inner..(row + 1) * inner))
    })
}

/// `GatherGrad(shape, indices, dY)`.
pub(super) fn gather_gradient(cx: &Cx<'_>) -> Answer {
    let dims = extents(cx.need_ints(0)?)?;
    let (indices, dy) = (cx.tensor(1)?, cx.tensor(2)?);
    let at = axis(cx.int_or("axis", 0)?, dims.len())?;
    let expected = gathered(&dims, at, &indices.dims);
    if expected != dy.dims {
        return wrong(format!(
            "dY is {dy}, but gathering {} along axis {at} of {} gives {}: the gradient is not summed over a \
             broadcast axis, or a symbolic dimension was taken for another (exporting with this dimension fixed \
             avoids that)",
            show(&indices.dims),
            show(&dims),
            show(&expected)
        ));
    }
    one(dy.element, dims)
}

/// `GatherElements`.
pub(super) fn gather_elements(cx: &Cx<'_>) -> Answer {
    let (x, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    axis(cx.int_or("axis", 0)?, x.dims.len())?;
    if indices.dims.len() != x.dims.len() {
        return wrong(format!("the indices are {indices}, the data {x}"));
    }
    one(x.element, &*indices.dims)
}

/// `GatherND`.
pub(super) fn gather_nd(cx: &Cx<'_>) -> Answer {
    let (x, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    let batch = usize::try_from(cx.int_or("batch_dims", 0)?).unwrap_or(usize::MAX);
    let Some((&depth, lead)) = indices.dims.split_last() else { return wrong("the indices are a scalar") };
    let taken = batch.saturating_add(usize::try_from(depth).unwrap_or(usize::MAX));
    if taken > x.dims.len() || batch >= indices.dims.len() || x.dims[..batch] != indices.dims[..batch] {
        return wrong(format!("indices {indices} with {batch} batch axes into {x}"));
    }
    one(x.element, [lead, &x.dims[taken..]].concat())
}

/// `ScatterElements`: indices and updates agree.
pub(super) fn scatter_elements(cx: &Cx<'_>) -> Answer {
    let (x, indices, updates) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    axis(cx.int_or("axis", 0)?, x.dims.len())?;
    if indices.dims != updates.dims || indices.dims.len() != x.dims.len() {
        return wrong(format!("indices {indices} and updates {updates} into {x}"));
    }
    super::elementwise::same(cx)
}

/// `ScatterND`.
pub(super) fn scatter_nd(cx: &Cx<'_>) -> Answer {
    let (x, indices, updates) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let Some((&depth, lead)) = indices.dims.split_last() else { return wrong("the indices are a scalar") };
    let taken = usize::try_from(depth).unwrap_or(usize::MAX);
    if taken > x.dims.len() || [lead, &x.dims[taken..]].concat() != updates.dims {
        return wrong(format!("indices {indices} and updates {updates} into {x}"));
    }
    super::elementwise::same(cx)
}

/// `Pad`.
pub(super) fn pad(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let Some(pads) = cx.int_list_or_ints("pads", 1)? else { return wrong("the pads are missing") };
    let rank = x.dims.len();
    let axes: Vec<usize> = match cx.ints(3)? {
        Some(axes) => {
            axis_mask(axes, rank)?;
            axes.iter().map(|&a| axis(a, rank)).collect::<Result<_, _>>()?
        }
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return wrong(format!("{} pads for {} axes", pads.len(), axes.len()));
    }
    let mut dims = x.dims.clone();
    for (i, &at) in axes.iter().enumerate() {
        dims[at] = extent_of(i128::from(dims[at]) + i128::from(pads[i]) + i128::from(pads[i + axes.len()]))?;
    }
    one(x.element, dims)
}

/// `Tile`.
pub(super) fn tile(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let repeats = extents(cx.need_ints(1)?)?;
    if repeats.len() != x.dims.len() {
        return wrong(format!("{} repeats of {x}", repeats.len()));
    }
    let times = |(&d, &r): (&u64, &u64)| extent_of(i128::from(d) * i128::from(r));
    let dims = x.dims.iter().zip(&repeats).map(times).collect::<Result<Vec<_>, _>>()?;
    folded(x.element, dims, |out| {
        // As a tensor [r0, d0, r1, d1, …], of which only the d axes are walked.
        let (steps, count) = (strides(&x.dims), out.len());
        let both: Vec<u64> = (0..count).flat_map(|i| [repeats[i], x.dims[i]]).collect();
        let walk: Vec<usize> = (0..count).flat_map(|i| [0, steps[i]]).collect();
        cx.value(0)?.select(positions(&both, &walk, 0))
    })
}

/// `DepthToSpace` (`grow`) and `SpaceToDepth`.
pub(super) fn depth_space(cx: &Cx<'_>, grow: bool) -> Answer {
    let x = cx.tensor(0)?;
    let block = extent(cx.int_or("blocksize", 0)?)?;
    let &[n, c, h, w] = &*x.dims else { return wrong(format!("{x} is not [N,C,H,W]")) };
    let Some(square) = block.checked_mul(block).filter(|&s| s > 0) else {
        return wrong(format!("a block of {block}"));
    };
    let wide = |v: u64, by: u64| extent_of(i128::from(v) * i128::from(by));
    if grow && c.is_multiple_of(square) {
        one(x.element, [n, c / square, wide(h, block)?, wide(w, block)?])
    } else if !grow && h.is_multiple_of(block) && w.is_multiple_of(block) {
        one(x.element, [n, wide(c, square)?, h / block, w / block])
    } else {
        wrong(format!("{x} is not divisible into blocks of {block}"))
    }
}

/// `Resize` and `Upsample`.
pub(super) fn resize(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let rank = x.dims.len();
    // Two operands before version 11, and in `Upsample`: the data and the scales.
    let scales_at = if cx.operand_count() <= 2 { 1 } else { 2 };
    let axes: Vec<usize> = match cx.int_list("axes")? {
        Some(axes) => {
            axis_mask(axes, rank)?;
            axes.iter().map(|&a| axis(a, rank)).collect::<Result<_, _>>()?
        }
        None => (0..rank).collect(),
    };
    let mut dims = x.dims.clone();
    let sized = cx.operand(3).is_some_and(|o| o.ty.as_tensor().is_none_or(|t| t.dims != [0]));
    if sized {
        let sizes = extents(cx.need_ints(3)?)?;
        if sizes.len() != axes.len() {
            return wrong(format!("{} sizes for {} axes", sizes.len(), axes.len()));
        }
        let ratio = |i: usize| sizes[i] as f64 / x.dims[axes[i]] as f64;
        let scale = match cx.string("keep_aspect_ratio_policy")? {
            "" | "stretch" => None,
            "not_larger" => (0..axes.len()).map(ratio).min_by(f64::total_cmp),
            "not_smaller" => (0..axes.len()).map(ratio).max_by(f64::total_cmp),
            other => return wrong(format!("keep_aspect_ratio_policy `{other}`")),
        };
        for (i, &at) in axes.iter().enumerate() {
            dims[at] = match scale {
                Some(scale) => float_extent((scale * x.dims[at] as f64 + 0.5).floor())?,
                None => sizes[i],
            };
        }
        return one(x.element, dims);
    }
    let scales: Vec<f64> = match cx.attribute("scales") {
        Some(Attr::Floats(scales)) => scales.iter().map(|s| s.0.into()).collect(),
        _ => match cx.value(scales_at) {
            Some(scales) => scales.to_f64(),
            None if cx.operand(scales_at).is_none() => return wrong("neither scales nor sizes are given"),
            None => return unknown("its scales are no constants"),
        },
    };
    if scales.len() != axes.len() {
        return wrong(format!("{} scales for {} axes", scales.len(), axes.len()));
    }
    if cx.string("coordinate_transformation_mode")? == "tf_crop_and_resize" {
        return unknown("it crops by data");
    }
    for (scale, &at) in scales.iter().zip(&axes) {
        // In 32 bits, as ONNX and every runtime compute it.
        dims[at] = float_extent(f64::from((x.dims[at] as f32 * *scale as f32).floor()))?;
    }
    one(x.element, dims)
}

fn float_extent(value: f64) -> Result<u64, Refusal> {
    if (0.0..9e15).contains(&value) { Ok(value as u64) } else { wrong(format!("an extent of {value}")) }
}

/// `OneHot(indices, depth, values)`.
pub(super) fn one_hot(cx: &Cx<'_>) -> Answer {
    let indices = cx.tensor(0)?;
    let element = cx.tensor(2)?.element;
    let depth = match cx.value(1).map(Const::to_f64).as_deref() {
        Some(&[depth]) => float_extent(depth)?,
        Some(_) => return wrong("the depth is not a scalar"),
        None => return unknown("its depth is no constant"),
    };
    let mut dims = indices.dims.clone();
    let at = axis(cx.int_or("axis", -1)?, dims.len() + 1)?;
    dims.insert(at, depth);
    one(element, dims)
}

/// `Compress`, by a constant condition.
pub(super) fn compress(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let kept = cx.need_ints(1)?.iter().filter(|&&c| c != 0).count() as u64;
    match cx.int("axis")? {
        None => one(x.element, [kept]),
        Some(at) => {
            let mut dims = x.dims.clone();
            dims[axis(at, x.dims.len())?] = kept;
            one(x.element, dims)
        }
    }
}

/// `CenterCropPad`.
pub(super) fn center_crop_pad(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let target = extents(cx.need_ints(1)?)?;
    let all: Vec<i64> = (0..x.dims.len() as i64).collect();
    let axes = cx.int_list("axes")?.unwrap_or(&all);
    axis_mask(axes, x.dims.len())?;
    if axes.len() != target.len() {
        return wrong(format!("{} extents for {} axes", target.len(), axes.len()));
    }
    let mut dims = x.dims.clone();
    for (&a, t) in axes.iter().zip(target) {
        dims[axis(a, x.dims.len())?] = t;
    }
    one(x.element, dims)
}

/// `GridSample`: batch and channels of the data, the grid's other extents.
pub(super) fn grid_sample(cx: &Cx<'_>) -> Answer {
    let (x, grid) = (cx.tensor(0)?, cx.tensor(1)?);
    if x.dims.len() < 3 || grid.dims.len() != x.dims.len() || grid.dims[0] != x.dims[0] {
        return wrong(format!("a grid {grid} over {x}"));
    }
    one(x.element, [&x.dims[..2], &grid.dims[1..grid.dims.len() - 1]].concat())
}

/// `AffineGrid`: the extents are operand 1's elements, with one axis of coordinates.
pub(super) fn affine_grid(cx: &Cx<'_>) -> Answer {
    let element = cx.tensor(0)?.element;
    let size = extents(cx.need_ints(1)?)?;
    match *size {
        [n, _, h, w] => one(element, [n, h, w, 2]),
        [n, _, d, h, w] => one(element, [n, d, h, w, 3]),
        _ => wrong(format!("a grid of {}", show(&size))),
    }
}

/// `MaxRoiPool` and `RoiAlign`: regions, channels, and a fixed output size.
pub(super) fn regions(cx: &Cx<'_>, size: [u64; 2]) -> Answer {
    let (x, rois) = (cx.tensor(0)?, cx.tensor(1)?);
    if x.dims.len() != 4 || rois.dims.len() != 2 {
        return wrong(format!("regions {rois} of {x}"));
    }
    one(x.element, [rois.dims[0], x.dims[1], size[0], size[1]])
}

/// `RoiAlign`.
pub(super) fn roi_align(cx: &Cx<'_>) -> Answer {
    regions(cx, [extent(cx.int_or("output_height", 1)?)?, extent(cx.int_or("output_width", 1)?)?])
}

/// `MaxRoiPool`.
pub(super) fn max_roi_pool(cx: &Cx<'_>) -> Answer {
    match cx.int_list("pooled_shape")? {
        Some(&[h, w]) => regions(cx, [extent(h)?, extent(w)?]),
        _ => wrong("attribute `pooled_shape` is not two integers"),
    }
}

/// `Trilu`.
pub(super) fn triangle(cx: &Cx<'_>) -> Answer {
    if cx.dims(0)?.len() < 2 {
        return wrong("operand 0 is no matrix");
    }
    super::elementwise::same(cx)
}

/// `com.microsoft.PadAndUnflatten` and others whose leading axis is `[product, …]` of operand `at`'s elements.
pub(super) fn unflatten(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let lead = extents(cx.need_ints(2)?)?;
    let rest = x.dims.get(1..).unwrap_or(&[]);
    one(x.element, [&lead, rest].concat())
}

/// `com.microsoft.ExpandDims`: one axis, a constant of any shape.
pub(super) fn expand_dims(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let mut dims = x.dims.clone();
    dims.insert(axis(cx.scalar(1)?, x.dims.len() + 1)?, 1);
    folded(x.element, dims, |_| cx.value(0).cloned())
}

/// `Col2Im`.
pub(super) fn col_to_image(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let (image, block) = (extents(cx.need_ints(1)?)?, product(&extents(cx.need_ints(2)?)?)?);
    let &[n, c, _] = &*x.dims else { return wrong(format!("{x} is not [N,C,L]")) };
    if block == 0 || !c.is_multiple_of(block) {
        return wrong(format!("{x} has no blocks of {block} elements"));
    }
    one(x.element, [&[n, c / block], &*image].concat())
}
