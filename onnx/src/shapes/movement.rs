//! Operators that move elements without computing any.

use lmsc_ir::{Attr, ElementType, TensorType, words};

use super::constant::{Const, positions, strides};
use super::{
    Answer, Cx, Fact, Refusal, axis, axis_mask, extent, extents, fold, folded, one, product, result_extent,
    show, unknown, wrong,
};

/// The name in messages of the operand that most operators work on.
const X: &str = "operand 0";

/// `Transpose`.
pub(super) fn transpose(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let rank = x.dims.len();
    let perm: Vec<usize> = match cx.int_list("perm")? {
        None => (0..rank).rev().collect(),
        Some(perm) => {
            let source = || "attribute `perm`".to_owned();
            if perm.len() != rank || !axis_mask(perm, rank, &X, source)?.iter().all(|&m| m) {
                let (perm, x) = (show(perm), cx.typed(0));
                return wrong(format!(
                    "attribute `perm` is {perm}, which does not name each axis of {x} once"
                ));
            }
            perm.iter().map(|&p| axis(p, rank, &X, source)).collect::<Result<_, _>>()?
        }
    };
    folded(x.element, perm.iter().map(|&p| x.dims[p]).collect::<Vec<_>>(), |out| {
        let steps = strides(&x.dims);
        let steps: Vec<usize> = perm.iter().map(|&p| steps[p]).collect();
        cx.value(0)?.select(positions(out, &steps, 0))
    })
}

/// The extents of the operands concatenated along `at`, with their element type.
fn joined(cx: &Cx<'_>, all: &[&TensorType], at: usize) -> Result<TensorType, Refusal> {
    let mut out = all[0].clone();
    for (i, ty) in all.iter().enumerate().skip(1) {
        let fits = ty.element == out.element
            && ty.dims.len() == out.dims.len()
            && (0..out.dims.len()).all(|i| i == at || ty.dims[i] == out.dims[i]);
        if !fits {
            let (first, other) = (cx.typed(0), cx.typed(i));
            return wrong(format!(
                "{first} and {other} cannot be joined along axis {at}: they differ elsewhere"
            ));
        }
        out.dims[at] = result_extent(at, i128::from(out.dims[at]) + i128::from(ty.dims[at]))?;
    }
    Ok(out)
}

/// `Concat`, and `ConcatTraining` with the lengths as its result 1.
pub(super) fn concat(cx: &Cx<'_>) -> Answer {
    let all = (0..cx.operand_count()).map(|i| cx.tensor(i)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = all.first() else { return wrong("there are no operands") };
    let at = cx.axis_of(first.dims.len(), &X)?;
    let ty = joined(cx, &all, at)?;
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
    let at = cx.axis(0)?;
    let whole = x.dims[at];
    let lengths = match cx.int_list_or_ints("split", 1)? {
        Some(lengths) => extents(lengths, || cx.attribute_or("split", 1))?,
        None => {
            let count = match cx.int_if_any("num_outputs")? {
                Some(n) => extent(n, || "attribute `num_outputs`".to_owned())?,
                None => cx.result_count() as u64,
            };
            if count == 0 || count > cx.result_count() as u64 {
                let results = words::count(cx.result_count(), "result");
                return wrong(format!("attribute `num_outputs` is {count}, but there are {results}"));
            }
            if cx.version() < 18 && !whole.is_multiple_of(count) {
                let x = cx.typed(0);
                return wrong(format!("axis {at} of {x} cannot be split into {count} equal parts"));
            }
            let chunk = whole.div_ceil(count);
            // The last parts may be smaller, or empty.
            (0..count).map(|i| chunk.min(whole.saturating_sub(chunk.saturating_mul(i)))).collect()
        }
    };
    let total = lengths.iter().try_fold(0u64, |n, &l| n.checked_add(l));
    if total != Some(whole) {
        let (x, parts) = (cx.typed(0), show(&lengths));
        return wrong(format!("parts of {parts} do not make the extent of axis {at} of {x}"));
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
    let Some(starts) = cx.int_list_or_ints("starts", 1)? else {
        return wrong("operand 1 (starts) is missing");
    };
    let Some(ends) = cx.int_list_or_ints("ends", 2)? else { return wrong("operand 2 (ends) is missing") };
    let axes = cx.int_list_or_ints("axes", 3)?;
    let steps = cx.ints(4)?;
    let count = starts.len();
    if ends.len() != count
        || axes.is_some_and(|a| a.len() != count)
        || steps.is_some_and(|s| s.len() != count)
        || count > x.dims.len()
    {
        let of = |n: Option<usize>| n.map_or("no".to_owned(), |n| n.to_string());
        return wrong(format!(
            "there are {count} starts, {} ends, {} axes and {} steps for {}; expected as many of each as there are \
             starts, and at most one for each axis",
            ends.len(),
            of(axes.map(<[i64]>::len)),
            of(steps.map(<[i64]>::len)),
            cx.typed(0)
        ));
    }
    let source = || cx.attribute_or("axes", 3);
    if let Some(axes) = axes {
        axis_mask(axes, x.dims.len(), &X, source)?;
    }
    let mut dims = x.dims.clone();
    let strides = strides(&x.dims);
    let mut walk = strides.clone();
    let mut offset = 0usize;
    for i in 0..count {
        let at = axes.map_or(Ok(i), |a| axis(a[i], x.dims.len(), &X, source))?;
        let step = steps.map_or(1, |s| s[i]);
        let n = i128::from(x.dims[at]);
        let bound = |v: i64| i128::from(v) + if v < 0 { n } else { 0 };
        let (start, end) = match step {
            0 => return wrong(format!("{} holds a step of 0", cx.called(4))),
            1.. => (bound(starts[i]).clamp(0, n), bound(ends[i]).clamp(0, n)),
            _ => (bound(starts[i]).clamp(0, (n - 1).max(0)), bound(ends[i]).clamp(-1, n - 1)),
        };
        let (span, pace) =
            if step < 0 { (start - end, -i128::from(step)) } else { (end - start, step.into()) };
        // An empty axis has no elements for negative steps.
        let length = if n == 0 { 0 } else { (span + pace - 1).div_euclid(pace).max(0) };
        dims[at] = result_extent(at, length)?;
        offset = offset.wrapping_add((start as usize).wrapping_mul(strides[at]));
        walk[at] = strides[at].wrapping_mul(step as usize);
    }
    folded(x.element, dims, |out| cx.value(0)?.select(positions(out, &walk, offset)))
}

/// Refuses indices with more elements than the data along an axis that is not indexed.
fn elements_fit(cx: &Cx<'_>, data: &[u64], indices: usize) -> Result<(), Refusal> {
    let at = cx.axis_of(data.len(), &"the data")?;
    let dims = cx.dims(indices)?;
    if dims.len() == data.len() && (0..data.len()).all(|i| i == at || dims[i] <= data[i]) {
        Ok(())
    } else {
        wrong(format!("{} are no indices along axis {at} of extents {}", cx.typed(indices), show(data)))
    }
}

/// `GatherElementsGrad(dY, shape, indices)`.
pub(super) fn gather_elements_gradient(cx: &Cx<'_>) -> Answer {
    let dims = cx.extents(1)?;
    elements_fit(cx, &dims, 2)?;
    cx.expect(0, cx.dims(2)?)?;
    one(cx.tensor(0)?.element, dims)
}

/// `GatherNDGrad(shape, indices, dY)`.
pub(super) fn gather_nd_gradient(cx: &Cx<'_>) -> Answer {
    let dims = cx.extents(0)?;
    cx.expect(2, &gathered_nd(cx, &dims)?)?;
    one(cx.tensor(2)?.element, dims)
}

/// `SliceGrad(dY, shape, starts, ends, axes, steps)`.
pub(super) fn slice_gradient(cx: &Cx<'_>) -> Answer {
    let dims = cx.extents(1)?;
    let dy = cx.tensor(0)?;
    if dims.len() != dy.dims.len() || dims.iter().zip(&dy.dims).any(|(a, b)| a < b) {
        return wrong(format!("dY is {}, which is no slice of {}", cx.typed(0), show(&dims)));
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
    let at = cx.axis(0)?;
    let n = x.dims[at];
    if let Some(Const::Ints(picked)) = cx.value(1)
        && let Some(i) = picked.iter().find(|&&i| i128::from(i) >= n.into() || i128::from(i) < -i128::from(n))
    {
        let (indices, x) = (cx.called(1), cx.typed(0));
        return wrong(format!("{indices} holds the index {i}, out of range for axis {at} of {x}"));
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
    let dims = cx.extents(0)?;
    let (indices, dy) = (cx.tensor(1)?, cx.tensor(2)?);
    let at = cx.axis_of(dims.len(), &"result 0")?;
    let expected = gathered(&dims, at, &indices.dims);
    if expected != dy.dims {
        return wrong(format!(
            "dY is {}, but {} gathered along axis {at} of {} gives {}: the gradient is not summed over a broadcast \
             axis, or a symbolic dimension was taken for another (exporting with this dimension fixed avoids that)",
            cx.typed(2),
            cx.typed(1),
            show(&dims),
            show(&expected)
        ));
    }
    one(dy.element, dims)
}

/// `GatherElements`.
pub(super) fn gather_elements(cx: &Cx<'_>) -> Answer {
    let (x, indices) = (cx.tensor(0)?, cx.tensor(1)?);
    cx.axis(0)?;
    if indices.dims.len() != x.dims.len() {
        return wrong(format!("the indices are {}, of another rank than {}", cx.typed(1), cx.typed(0)));
    }
    elements_fit(cx, &x.dims, 1)?;
    one(x.element, &*indices.dims)
}

/// `GatherND`.
pub(super) fn gather_nd(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    one(x.element, gathered_nd(cx, &x.dims)?)
}

/// The extents of the slices that the tuples of operand 1 select from a tensor.
fn gathered_nd(cx: &Cx<'_>, x: &[u64]) -> Result<Vec<u64>, Refusal> {
    let indices = cx.tensor(1)?;
    let batch = usize::try_from(cx.int("batch_dims")?).unwrap_or(usize::MAX);
    let Some((&depth, lead)) = indices.dims.split_last() else {
        return wrong(format!("{} is a scalar, which holds no indices", cx.typed(1)));
    };
    let taken = batch.saturating_add(usize::try_from(depth).unwrap_or(usize::MAX));
    if taken > x.len() || batch >= indices.dims.len() || x[..batch] != indices.dims[..batch] {
        let (x, indices) = (show(x), cx.typed(1));
        return wrong(format!(
            "{indices} cannot be indices into extents {x}, with attribute `batch_dims` {batch}"
        ));
    }
    Ok([lead, &x[taken..]].concat())
}

fn no_scatter<T>(cx: &Cx<'_>, expected: &str) -> Result<T, Refusal> {
    let (x, indices, updates) = (cx.typed(0), cx.typed(1), cx.typed(2));
    wrong(format!("{updates} cannot be written into {x} at {indices}; expected that {expected}"))
}

/// `ScatterElements`: indices and updates agree.
pub(super) fn scatter_elements(cx: &Cx<'_>) -> Answer {
    let (x, indices, updates) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    cx.axis(0)?;
    if indices.dims != updates.dims || indices.dims.len() != x.dims.len() {
        return no_scatter(cx, "indices and updates have the same extents, and the rank of the data");
    }
    elements_fit(cx, &x.dims, 1)?;
    super::elementwise::same(cx)
}

/// `ScatterND`.
pub(super) fn scatter_nd(cx: &Cx<'_>) -> Answer {
    let (x, indices, updates) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let Some((&depth, lead)) = indices.dims.split_last() else {
        return wrong(format!("{} is a scalar, which holds no indices", cx.typed(1)));
    };
    let taken = usize::try_from(depth).unwrap_or(usize::MAX);
    if taken > x.dims.len() || [lead, &x.dims[taken..]].concat() != updates.dims {
        return no_scatter(
            cx,
            "the updates' extents are those of the indices but the last, and the data's other ones",
        );
    }
    super::elementwise::same(cx)
}

/// `Pad`.
pub(super) fn pad(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let Some(pads) = cx.int_list_or_ints("pads", 1)? else { return wrong("operand 1 (pads) is missing") };
    cx.expect_one(2)?;
    let rank = x.dims.len();
    let axes: Vec<usize> = match cx.ints(3)? {
        Some(axes) => {
            let source = || cx.called(3);
            axis_mask(axes, rank, &X, source)?;
            axes.iter().map(|&a| axis(a, rank, &X, source)).collect::<Result<_, _>>()?
        }
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        let (source, pads) = (cx.attribute_or("pads", 1), words::count(pads.len(), "pad"));
        return wrong(format!("{source} holds {pads}, not {}: two for each axis", 2 * axes.len()));
    }
    let mut dims = x.dims.clone();
    for (i, &at) in axes.iter().enumerate() {
        let padded = i128::from(dims[at]) + i128::from(pads[i]) + i128::from(pads[i + axes.len()]);
        dims[at] = result_extent(at, padded)?;
    }
    one(x.element, dims)
}

/// `Tile`.
pub(super) fn tile(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let repeats = cx.extents(1)?;
    if repeats.len() != x.dims.len() {
        let found = words::count(repeats.len(), "number");
        return wrong(format!("{} holds {found} of repeats of {}", cx.called(1), cx.typed(0)));
    }
    let times = |(at, (&d, &r)): (usize, (&u64, &u64))| result_extent(at, i128::from(d) * i128::from(r));
    let dims = x.dims.iter().zip(&repeats).enumerate().map(times).collect::<Result<Vec<_>, _>>()?;
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
    let size = cx.int("blocksize")?;
    let &[n, c, h, w] = &*x.dims else {
        return wrong(format!("{} is not [batch, channels, height, width]", cx.typed(0)));
    };
    let positive = u64::try_from(size).ok().filter(|&size| size > 0);
    let Some((block, square)) = positive.and_then(|b| Some((b, b.checked_mul(b)?))) else {
        return wrong(format!("attribute `blocksize` is {size}; it is at least 1, and less than 2^32"));
    };
    if !["", "DCR", "CRD"].contains(&cx.string("mode")?) {
        return wrong(format!("attribute `mode` is `{}`; it is DCR or CRD", cx.string("mode")?));
    }
    let wide = |at: usize, by: u64| result_extent(at, i128::from(x.dims[at]) * i128::from(by));
    if grow && c.is_multiple_of(square) {
        one(x.element, [n, c / square, wide(2, block)?, wide(3, block)?])
    } else if !grow && h.is_multiple_of(block) && w.is_multiple_of(block) {
        one(x.element, [n, wide(1, square)?, h / block, w / block])
    } else {
        let what = if grow { "the channels" } else { "height and width" };
        wrong(format!("{what} of {} are not divisible into blocks of {block} by {block}", cx.typed(0)))
    }
}

/// `Resize` and `Upsample`.
pub(super) fn resize(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let rank = x.dims.len();
    // Two operands before version 11, and in `Upsample`: the data and the scales.
    let scales_at = if cx.operand_count() <= 2 { 1 } else { 2 };
    let some = if cx.knows("axes") { cx.int_list("axes")? } else { None };
    let axes: Vec<usize> = match some {
        Some(axes) => {
            let source = || "attribute `axes`".to_owned();
            axis_mask(axes, rank, &X, source)?;
            axes.iter().map(|&a| axis(a, rank, &X, source)).collect::<Result<_, _>>()?
        }
        None => (0..rank).collect(),
    };
    let mut dims = x.dims.clone();
    let sized = cx.operand(3).is_some_and(|o| o.ty.as_tensor().is_none_or(|t| t.dims != [0]));
    if sized {
        let sizes = cx.extents(3)?;
        if sizes.len() != axes.len() {
            let (found, asked) = (words::count(sizes.len(), "size"), axes.len());
            return wrong(format!("{} holds {found}, not {asked}: one for each axis", cx.called(3)));
        }
        let ratio = |i: usize| sizes[i] as f64 / x.dims[axes[i]] as f64;
        let scale = match cx.string("keep_aspect_ratio_policy")? {
            "" | "stretch" => None,
            "not_larger" => (0..axes.len()).map(ratio).min_by(f64::total_cmp),
            "not_smaller" => (0..axes.len()).map(ratio).max_by(f64::total_cmp),
            other => {
                return wrong(format!(
                    "attribute `keep_aspect_ratio_policy` is `{other}`; it is stretch, not_larger or not_smaller"
                ));
            }
        };
        for (i, &at) in axes.iter().enumerate() {
            dims[at] = match scale {
                Some(scale) => float_extent(at, (scale * x.dims[at] as f64 + 0.5).floor())?,
                None => sizes[i],
            };
        }
        return one(x.element, dims);
    }
    let listed = if cx.knows("scales") { cx.attribute("scales") } else { None };
    let scales: Vec<f64> = match listed {
        Some(Attr::Floats(scales)) => scales.iter().map(|s| s.0.into()).collect(),
        _ => match cx.value(scales_at) {
            Some(scales) => scales.to_f64(),
            None if cx.operand(scales_at).is_none() => {
                return wrong("operands 2 (scales) and 3 (sizes) are missing; one of them is needed");
            }
            None => return unknown("its scales are no constants"),
        },
    };
    if scales.len() != axes.len() {
        let source = cx.attribute_or("scales", scales_at);
        let (found, asked) = (words::count(scales.len(), "scale"), axes.len());
        return wrong(format!("{source} holds {found}, not {asked}: one for each axis"));
    }
    const MODE: &str = "coordinate_transformation_mode";
    if cx.knows(MODE) && cx.string(MODE)? == "tf_crop_and_resize" {
        return unknown("it crops by data");
    }
    for (scale, &at) in scales.iter().zip(&axes) {
        // In 32 bits, as ONNX and every runtime compute it.
        dims[at] = float_extent(at, f64::from((x.dims[at] as f32 * *scale as f32).floor()))?;
    }
    one(x.element, dims)
}

fn float_extent(axis: usize, value: f64) -> Result<u64, Refusal> {
    if (0.0..9e15).contains(&value) {
        Ok(value as u64)
    } else {
        wrong(format!("result 0 would have extent {value} on axis {axis}; extents are 0 to 9e15"))
    }
}

/// `OneHot(indices, depth, values)`.
pub(super) fn one_hot(cx: &Cx<'_>) -> Answer {
    let indices = cx.tensor(0)?;
    let element = cx.tensor(2)?.element;
    cx.expect(2, &[2])?;
    let mut dims = indices.dims.clone();
    let at = cx.axis_of(dims.len() + 1, &"result 0")?;
    let depth = match cx.value(1).map(Const::to_f64).as_deref() {
        Some(&[depth]) => float_extent(at, depth)?,
        Some(_) => return wrong(format!("{} is the depth, which has one element", cx.typed(1))),
        None => return unknown(format!("its depth, {}, is no constant", cx.called(1))),
    };
    dims.insert(at, depth);
    one(element, dims)
}

/// `Compress`, by a constant condition.
pub(super) fn compress(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let kept = cx.need_ints(1)?.iter().filter(|&&c| c != 0).count() as u64;
    match cx.int_if_any("axis")? {
        None => one(x.element, [kept]),
        Some(_) => {
            let mut dims = x.dims.clone();
            dims[cx.axis(0)?] = kept;
            one(x.element, dims)
        }
    }
}

/// `CenterCropPad`.
pub(super) fn center_crop_pad(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let target = cx.extents(1)?;
    let all: Vec<i64> = (0..x.dims.len() as i64).collect();
    let axes = cx.int_list("axes")?.unwrap_or(&all);
    let source = || "attribute `axes`".to_owned();
    axis_mask(axes, x.dims.len(), &X, source)?;
    if axes.len() != target.len() {
        let (found, asked) = (words::count(target.len(), "extent"), axes.len());
        return wrong(format!("{} holds {found}, not {asked}: one for each axis", cx.called(1)));
    }
    let mut dims = x.dims.clone();
    for (&a, t) in axes.iter().zip(target) {
        dims[axis(a, x.dims.len(), &X, source)?] = t;
    }
    one(x.element, dims)
}

/// `GridSample`: batch and channels of the data, the grid's other extents.
pub(super) fn grid_sample(cx: &Cx<'_>) -> Answer {
    let (x, grid) = (cx.tensor(0)?, cx.tensor(1)?);
    if x.dims.len() < 3 || grid.dims.len() != x.dims.len() || grid.dims[0] != x.dims[0] {
        let (x, grid) = (cx.typed(0), cx.typed(1));
        return wrong(format!("{grid} is no grid over {x}; expected [batch, …, axes], of the same rank"));
    }
    one(x.element, [&x.dims[..2], &grid.dims[1..grid.dims.len() - 1]].concat())
}

/// `AffineGrid`: the extents are operand 1's elements, with one axis of coordinates.
pub(super) fn affine_grid(cx: &Cx<'_>) -> Answer {
    let element = cx.tensor(0)?.element;
    let size = cx.extents(1)?;
    match *size {
        [n, _, h, w] => one(element, [n, h, w, 2]),
        [n, _, d, h, w] => one(element, [n, d, h, w, 3]),
        _ => wrong(format!("{} is {}; expected [N,C,H,W] or [N,C,D,H,W]", cx.called(1), show(&size))),
    }
}

/// `MaxRoiPool` and `RoiAlign`: regions, channels, and a fixed output size.
pub(super) fn regions(cx: &Cx<'_>, size: [u64; 2]) -> Answer {
    let (x, rois) = (cx.tensor(0)?, cx.tensor(1)?);
    if x.dims.len() != 4 || rois.dims.len() != 2 {
        let (x, rois) = (cx.typed(0), cx.typed(1));
        return wrong(format!("{rois} are no regions of {x}; expected [regions, corners] and [N,C,H,W]"));
    }
    one(x.element, [rois.dims[0], x.dims[1], size[0], size[1]])
}

/// `RoiAlign`.
pub(super) fn roi_align(cx: &Cx<'_>) -> Answer {
    let size = |name: &str| extent(cx.int(name)?, || format!("attribute `{name}`"));
    regions(cx, [size("output_height")?, size("output_width")?])
}

/// `MaxRoiPool`.
pub(super) fn max_roi_pool(cx: &Cx<'_>) -> Answer {
    match cx.int_list("pooled_shape")? {
        Some(&[h, w]) => {
            let source = || "attribute `pooled_shape`".to_owned();
            regions(cx, [extent(h, source)?, extent(w, source)?])
        }
        Some(other) => wrong(format!("attribute `pooled_shape` is {}, not two integers", show(other))),
        None => wrong("attribute `pooled_shape` is missing"),
    }
}

/// `Trilu`.
pub(super) fn triangle(cx: &Cx<'_>) -> Answer {
    if cx.dims(0)?.len() < 2 {
        return wrong(format!("{} is no matrix", cx.typed(0)));
    }
    cx.expect_one(1)?;
    super::elementwise::same(cx)
}

/// `com.microsoft.PadAndUnflatten` and others whose leading axis is `[product, …]` of operand `at`'s elements.
pub(super) fn unflatten(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let lead = cx.extents(2)?;
    let rest = x.dims.get(1..).unwrap_or(&[]);
    one(x.element, [&lead, rest].concat())
}

/// `com.microsoft.ExpandDims`: one axis, a constant of any shape.
pub(super) fn expand_dims(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let mut dims = x.dims.clone();
    dims.insert(axis(cx.scalar(1)?, x.dims.len() + 1, &"result 0", || cx.called(1))?, 1);
    folded(x.element, dims, |_| cx.value(0).cloned())
}

/// `Col2Im`.
pub(super) fn col_to_image(cx: &Cx<'_>) -> Answer {
    let x = cx.tensor(0)?;
    let (image, block) = (cx.extents(1)?, product(&cx.extents(2)?)?);
    let &[n, c, _] = &*x.dims else {
        return wrong(format!("{} is not [batch, channels * block, blocks]", cx.typed(0)));
    };
    if block == 0 || !c.is_multiple_of(block) {
        return wrong(format!("axis 1 of {} is no multiple of the {block} elements of a block", cx.typed(0)));
    }
    one(x.element, [&[n, c / block], &*image].concat())
}
