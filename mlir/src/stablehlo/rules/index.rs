//! Operators that move elements, reinterpret them, or generate them from their positions.

use std::ops::Range;

use lmsc_ir::{Attr, Data, ElementType, TensorType};

use super::{Cx, Why};
use crate::stablehlo::int;
use crate::stablehlo::known::shape_range;
use crate::stablehlo::writer::Val;

/// The same elements with the extents of the result.
pub(super) fn view(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, ty) = (cx.operand(0)?, cx.ty(0)?);
    let y = cx.w.reshape(&x, &ty.dims);
    cx.give(0, y)
}

pub(super) fn expand(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, ty) = (cx.operand(0)?, cx.ty(0)?);
    let y = cx.w.broadcast(&x, &ty.dims);
    cx.give(0, y)
}

pub(super) fn transpose(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let permutation: Vec<usize> = match cx.ints("perm") {
        Some(axes) => axes.iter().map(|&axis| axis as usize).collect(),
        None => (0..x.rank()).rev().collect(),
    };
    let y = cx.w.transpose(&x, &permutation);
    cx.give(0, y)
}

pub(super) fn concat(cx: &mut Cx<'_>) -> Result<(), Why> {
    let parts = cx.all()?;
    let axis = cx.axis(cx.int("axis")?, parts.first().map_or(0, Val::rank))?;
    let y = cx.w.concatenate(&parts.iter().collect::<Vec<_>>(), axis);
    cx.give(0, y)
}

/// The bounds of all elements along every dimension, except `axis`, which is limited to `range`.
fn along(x: &Val, axis: usize, range: Range<u64>) -> Vec<(u64, u64, u64)> {
    let mut bounds: Vec<_> = x.dims().iter().map(|&dim| (0, dim, 1)).collect();
    bounds[axis] = (range.start, range.end, 1);
    bounds
}

pub(super) fn split(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let axis = cx.axis(cx.int("axis")?, x.rank())?;
    let mut start = 0;
    for index in 0..cx.types.len() {
        let end = start + cx.ty(index)?.dims[axis];
        let part = cx.w.slice(&x, &along(&x, axis, start..end));
        cx.give(index, part)?;
        start = end;
    }
    Ok(())
}

/// A slice along one axis: the first element, the number of elements, the step, and the direction.
struct Cut {
    axis: usize,
    first: u64,
    count: u64,
    step: u64,
    backwards: bool,
}

/// The slices that the operands from `first` on (starts, ends, axes, steps) take of a tensor of these extents.
fn cuts(cx: &Cx<'_>, dims: &[u64], first: usize) -> Result<Vec<Cut>, Why> {
    let (starts, ends) = (cx.list(first)?, cx.list(first + 1)?);
    let axes = match cx.optional(first + 2) {
        Some(_) => cx.list(first + 2)?,
        None => (0..starts.len() as i64).collect(),
    };
    let steps = match cx.optional(first + 3) {
        Some(_) => cx.list(first + 3)?,
        None => vec![1; starts.len()],
    };
    let lists = starts.into_iter().zip(ends).zip(axes).zip(steps);
    let cut = |(((start, end), axis), step): (((i64, i64), i64), i64)| {
        let axis = cx.axis(axis, dims.len())?;
        let dim = dims[axis] as i64;
        let from_front = |place: i64| if place < 0 { place.saturating_add(dim) } else { place };
        let backwards = step < 0;
        let bounds = if backwards { (-1, dim - 1) } else { (0, dim) };
        let [start, end] = [start, end].map(|place| from_front(place).clamp(bounds.0, bounds.1));
        let span = if backwards { start - end } else { end - start }.max(0) as u64;
        let step = step.unsigned_abs().max(1);
        Ok(Cut { axis, first: start.max(0) as u64, count: span.div_ceil(step), step, backwards })
    };
    lists.map(cut).collect()
}

pub(super) fn slice(cx: &mut Cx<'_>) -> Result<(), Why> {
    let mut x = cx.operand(0)?;
    for cut in cuts(cx, &x.ty.dims, 1)? {
        let dim = x.dims()[cut.axis];
        let mut first = cut.first;
        if cut.backwards {
            x = cx.w.reverse(&x, &[cut.axis]);
            first = dim - 1 - first;
        }
        let limit = if cut.count == 0 { first } else { first + (cut.count - 1) * cut.step + 1 };
        let mut bounds = along(&x, cut.axis, first..limit);
        bounds[cut.axis].2 = cut.step;
        x = cx.w.slice(&x, &bounds);
    }
    cx.give(0, x)
}

/// dY at the place of the slice, 0 elsewhere.
pub(super) fn slice_grad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (dy, ty) = (cx.operand(0)?, cx.ty(0)?);
    let mut edges = vec![(0, 0, 0); dy.rank()];
    for cut in cuts(cx, &ty.dims, 2)? {
        if cut.backwards {
            return Err("the slice goes backwards".into());
        }
        let covered = cut.first + cut.count.saturating_sub(1) * cut.step + u64::from(cut.count > 0);
        edges[cut.axis] = (cut.first as i64, ty.dims[cut.axis] as i64 - covered as i64, cut.step as i64 - 1);
    }
    let zero = cx.scalar(0.0, dy.element());
    let dx = cx.w.pad(&dy, &zero, &edges);
    cx.give(0, dx)
}

pub(super) fn pad(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, pads) = (cx.operand(0)?, cx.list(1)?);
    let axes: Vec<usize> = match cx.optional(3) {
        Some(_) => cx.list(3)?.into_iter().map(|axis| cx.axis(axis, x.rank())).collect::<Result<_, _>>()?,
        None => (0..x.rank()).collect(),
    };
    let mut edges = vec![(0, 0, 0); x.rank()];
    for (i, &axis) in axes.iter().enumerate() {
        edges[axis] = (pads[i], pads[axes.len() + i], 0);
    }
    let y = match cx.text("mode").map(<[u8]>::to_vec).as_deref() {
        None | Some(b"constant") => None,
        Some(mode) => Some(repeated(cx, &x, &edges, mode)?),
    };
    if let Some(y) = y {
        return cx.give(0, y);
    }
    let value = match cx.optional(2) {
        Some(value) => cx.w.reshape(&value, &[]),
        None => cx.scalar(0.0, x.element()),
    };
    let y = cx.w.pad(&x, &value, &edges);
    cx.give(0, y)
}

/// The tensor with its own elements around it: mirrored (`reflect`), the last one (`edge`), or those of the other end (`wrap`).
fn repeated(cx: &mut Cx<'_>, x: &Val, edges: &[(i64, i64, i64)], mode: &[u8]) -> Result<Val, Why> {
    let mut y = x.clone();
    for (axis, &(low, high, _)) in edges.iter().enumerate() {
        let extent = y.dims()[axis];
        let most = match mode {
            b"reflect" => extent.saturating_sub(1),
            b"wrap" => extent,
            b"edge" if extent > 0 => u64::MAX,
            _ => {
                return Err(
                    "there is a rule for its modes `constant`, `reflect`, `edge` and `wrap` only".into()
                );
            }
        };
        let width = |pad: i64| u64::try_from(pad).ok().filter(|&width| width <= most);
        let (Some(low), Some(high)) = (width(low), width(high)) else {
            return Err("it repeats more elements than there are, or cuts some".into());
        };
        let parts = match mode {
            b"reflect" => [1..1 + low, extent - 1 - high..extent - 1],
            b"wrap" => [extent - low..extent, 0..high],
            _ => [0..1, extent - 1..extent],
        };
        let mut around = Vec::new();
        for (part, width) in parts.into_iter().zip([low, high]) {
            let mut bounds: Vec<(u64, u64, u64)> = y.dims().iter().map(|&dim| (0, dim, 1)).collect();
            bounds[axis] = (part.start, part.end, 1);
            let mut dims = y.dims().to_vec();
            dims[axis] = width;
            let part = cx.w.slice(&y, &bounds);
            let part = if mode == b"reflect" { cx.w.reverse(&part, &[axis]) } else { part };
            around.push(if width > 0 { Some(cx.w.broadcast(&part, &dims)) } else { None });
        }
        let parts: Vec<&Val> =
            [around[0].as_ref(), Some(&y), around[1].as_ref()].into_iter().flatten().collect();
        y = if parts.len() == 1 { y } else { cx.w.concatenate(&parts, axis) };
    }
    Ok(y)
}

pub(super) fn tile(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, ty) = (cx.operand(0)?, cx.ty(0)?);
    let pairs = x.dims().iter().zip(&ty.dims).map(|(&dim, &whole)| [whole / dim.max(1), dim]);
    let dims: Vec<u64> = pairs.flatten().collect();
    let places: Vec<usize> = (0..x.rank()).map(|axis| 2 * axis + 1).collect();
    let y = cx.w.broadcast_along(&x, &places, &dims);
    let y = cx.w.reshape(&y, &ty.dims);
    cx.give(0, y)
}

pub(super) fn constant(cx: &mut Cx<'_>) -> Result<(), Why> {
    let ty = cx.ty(0)?;
    let bytes: Vec<u8> = match cx.node.attributes.iter().find(|(name, _)| name.starts_with("value")) {
        Some((_, Attr::Tensor(_, Data::Inline(bytes)))) => bytes.to_vec(),
        Some((_, Attr::Int(int))) => int.to_le_bytes().to_vec(),
        Some((_, Attr::Ints(ints))) => ints.iter().flat_map(|int| int.to_le_bytes()).collect(),
        Some((_, Attr::Float(float))) => float.0.to_le_bytes().to_vec(),
        Some((_, Attr::Floats(floats))) => floats.iter().flat_map(|float| float.0.to_le_bytes()).collect(),
        _ => return Err("its elements are not in the file".into()),
    };
    let value = cx.w.constant(&ty, &bytes).ok_or("MLIR has no literals for its elements")?;
    cx.give(0, value)
}

pub(super) fn constant_of_shape(cx: &mut Cx<'_>) -> Result<(), Why> {
    let ty = cx.ty(0)?;
    let value = match cx.node.attribute("value") {
        None => cx.scalar(0.0, ElementType::Float),
        Some(Attr::Tensor(_, Data::Inline(bytes))) => {
            let bytes = bytes.clone();
            let scalar = cx.w.constant(&TensorType::new(ty.element, []), &bytes);
            scalar.ok_or("MLIR has no literal for its element")?
        }
        Some(_) => return Err("its element is not in the file".into()),
    };
    let y = cx.w.broadcast(&value, &ty.dims);
    cx.give(0, y)
}

pub(super) fn shape(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, ty) = (cx.operand(0)?, cx.ty(0)?);
    let range = shape_range(cx.node, x.rank());
    let dims: Vec<i64> = x.dims()[range].iter().map(|&dim| dim as i64).collect();
    let y = cx.w.integers(&ty, &dims);
    cx.give(0, y)
}

pub(super) fn size(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, ty) = (cx.operand(0)?, cx.ty(0)?);
    let count = x.ty.element_count().ok_or("it has too many elements")?;
    let y = cx.w.integers(&ty, &[count as i64]);
    cx.give(0, y)
}

pub(super) fn range(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (start, step, ty) = (cx.operand(0)?, cx.operand(2)?, cx.ty(0)?);
    let [start, step] = [start, step].map(|x| cx.w.reshape(&x, &[]));
    let counted = cx.w.iota(&ty, 0);
    let y = cx.op("multiply", &counted, &step);
    let y = cx.op("add", &y, &start);
    cx.give(0, y)
}

pub(super) fn one_hot(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (indices, values, ty) = (cx.operand(0)?, cx.operand(2)?, cx.ty(0)?);
    let axis = cx.axis(cx.int("axis")?, ty.dims.len())?;
    let indices = cx.wrapped(&indices, ty.dims[axis]);
    let hot = cx.hot(&indices, &ty, axis);
    let [off, on] = [0, 1].map(|i| {
        let value = cx.w.slice(&values, &[(i, i + 1, 1)]);
        let value = cx.w.reshape(&value, &[]);
        cx.w.broadcast(&value, &ty.dims)
    });
    let y = cx.w.select(&hot, &on, &off);
    cx.give(0, y)
}

pub(super) fn gather(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, indices, ty) = (cx.operand(0)?, cx.operand(1)?, cx.ty(0)?);
    let axis = cx.axis(cx.int("axis")?, x.rank())?;
    let indices = cx.wrapped(&indices, x.dims()[axis]);
    let after = axis + indices.rank();
    let kept: Vec<usize> = (0..axis).chain(after..after + x.rank() - axis - 1).collect();
    let numbers = format!(
        "offset_dims = {kept:?}, collapsed_slice_dims = [{axis}], start_index_map = [{axis}], index_vector_dim = {}",
        indices.rank()
    );
    let mut extents = x.dims().to_vec();
    extents[axis] = 1;
    let y = cx.w.gather([&x, &indices], &numbers, &extents, &ty.dims);
    cx.give(0, y)
}

/// For each index along the axis, the position of its element in all dimensions, as a last dimension.
fn places(cx: &mut Cx<'_>, indices: &Val, axis: usize) -> Val {
    let dims = [indices.dims(), &[1]].concat();
    let parts: Vec<Val> = (0..indices.rank())
        .map(|at| {
            if at == axis {
                cx.w.reshape(indices, &dims)
            } else {
                cx.w.iota(&TensorType::new(indices.element(), &dims[..]), at)
            }
        })
        .collect();
    cx.w.concatenate(&parts.iter().collect::<Vec<_>>(), indices.rank())
}

pub(super) fn gather_elements(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, indices, ty) = (cx.operand(0)?, cx.operand(1)?, cx.ty(0)?);
    let axis = cx.axis(cx.int("axis")?, x.rank())?;
    let indices = cx.wrapped(&indices, x.dims()[axis]);
    let places = places(cx, &indices, axis);
    let all: Vec<usize> = (0..x.rank()).collect();
    let numbers = format!(
        "collapsed_slice_dims = {all:?}, start_index_map = {all:?}, index_vector_dim = {}",
        indices.rank()
    );
    let y = cx.w.gather([&x, &places], &numbers, &vec![1; x.rank()], &ty.dims);
    cx.give(0, y)
}

/// Slices at the positions that the last dimension of the indices gives.
pub(super) fn gather_nd(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, indices, ty) = (cx.operand(0)?, cx.operand(1)?, cx.ty(0)?);
    let batch = usize::try_from(int(cx.node, "batch_dims").unwrap_or(0)).unwrap_or(usize::MAX);
    let (&depth, before) = indices.ty.dims.split_last().ok_or("its indices are a scalar")?;
    let (depth, before) = (depth as usize, before.len());
    if batch > before || batch.checked_add(depth).is_none_or(|end| end > x.rank()) {
        return Err("its indices do not fit its operand".into());
    }
    // Negative ones count from the end.
    let extents: Vec<i64> = x.dims()[batch..batch + depth].iter().map(|&dim| dim as i64).collect();
    let extents = cx.w.integers(&TensorType::new(indices.element(), [depth as u64]), &extents);
    let extents = cx.w.broadcast_along(&extents, &[before], indices.dims());
    let zero = cx.splat(0.0, &indices.ty);
    let negative = cx.w.compare("LT", &indices, &zero);
    let moved = cx.w.elementwise("add", &[&indices, &extents]);
    let indices = cx.w.select(&negative, &moved, &indices);
    let batches: Vec<usize> = (0..batch).collect();
    let found: Vec<usize> = (batch..batch + depth).collect();
    let kept: Vec<usize> = (before..ty.dims.len()).collect();
    let numbers = format!(
        "offset_dims = {kept:?}, collapsed_slice_dims = {found:?}, operand_batching_dims = {batches:?}, start_indices_batching_dims = {batches:?}, start_index_map = {found:?}, index_vector_dim = {before}"
    );
    let mut extents = x.dims().to_vec();
    extents[..batch + depth].fill(1);
    let y = cx.w.gather([&x, &indices], &numbers, &extents, &ty.dims);
    cx.give(0, y)
}

/// The largest elements along an axis, or the smallest, and their places: the first of a stable sort.
pub(super) fn top_k(cx: &mut Cx<'_>) -> Result<(), Why> {
    let x = cx.operand(0)?;
    let k = cx.wanted(0).or(cx.wanted(1)).ok_or("it has no results")?;
    let axis = cx.axis(int(cx.node, "axis").unwrap_or(-1), x.rank())?;
    let largest = int(cx.node, "largest").unwrap_or(1) != 0;
    let counted = cx.w.iota(&TensorType::new(ElementType::Int64, x.dims()), axis);
    let scalar = |element: ElementType| crate::stablehlo::writer::text(&TensorType::new(element, []));
    let (element, place) = (scalar(x.element()), scalar(ElementType::Int64));
    let direction = if largest { "GT" } else { "LT" };
    let attributes = format!(
        "<{{dimension = {axis} : i64, is_stable = true}}> ({{\n    ^bb0(%a: {element}, %b: {element}, %c: {place}, %d: {place}):\n      \
         %p = \"stablehlo.compare\"(%a, %b) <{{comparison_direction = #stablehlo<comparison_direction {direction}>}}> : ({element}, {element}) -> tensor<i1>\n      \
         \"stablehlo.return\"(%p) : (tensor<i1>) -> ()\n    }})"
    );
    let types = [x.ty.clone(), counted.ty.clone()];
    let sorted = cx.w.operation("stablehlo.sort", &[&x, &counted], &attributes, &types);
    for (index, part) in sorted.iter().enumerate() {
        if cx.wanted(index).is_some() {
            let mut bounds: Vec<(u64, u64, u64)> = x.dims().iter().map(|&dim| (0, dim, 1)).collect();
            bounds[axis] = (0, k.dims[axis], 1);
            let part = cx.w.slice(part, &bounds);
            cx.give(index, part)?;
        }
    }
    Ok(())
}

/// The operation that combines existing and scattered elements; none if the scattered element replaces the existing one.
fn reduction(cx: &Cx<'_>) -> Result<Option<&'static str>, Why> {
    match cx.text("reduction") {
        Some(b"none") => Ok(None),
        Some(b"add") => Ok(Some("add")),
        Some(b"mul") => Ok(Some("multiply")),
        Some(b"max") => Ok(Some("maximum")),
        Some(b"min") => Ok(Some("minimum")),
        _ => Err("there is no rule for its reduction".into()),
    }
}

pub(super) fn scatter_elements(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, indices, updates) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    let axis = cx.axis(cx.int("axis")?, x.rank())?;
    let indices = cx.wrapped(&indices, x.dims()[axis]);
    let places = places(cx, &indices, axis);
    let all: Vec<usize> = (0..x.rank()).collect();
    let numbers = format!(
        "inserted_window_dims = {all:?}, scatter_dims_to_operand_dims = {all:?}, index_vector_dim = {}",
        indices.rank()
    );
    let op = reduction(cx)?;
    let y = cx.w.scatter([&x, &places, &updates], &numbers, op);
    cx.give(0, y)
}

pub(super) fn scatter_nd(cx: &mut Cx<'_>) -> Result<(), Why> {
    let (x, indices, updates) = (cx.operand(0)?, cx.operand(1)?, cx.operand(2)?);
    let (&depth, batch) = indices.ty.dims.split_last().ok_or("its indices are a scalar")?;
    let found: Vec<usize> = (0..depth as usize).collect();
    let window: Vec<usize> = (batch.len()..updates.rank()).collect();
    let numbers = format!(
        "update_window_dims = {window:?}, inserted_window_dims = {found:?}, scatter_dims_to_operand_dims = {found:?}, index_vector_dim = {}",
        batch.len()
    );
    let op = reduction(cx)?;
    let y = cx.w.scatter([&x, &indices, &updates], &numbers, op);
    cx.give(0, y)
}

/// Elements of the tensor, in row-major order, as a list.
pub(super) fn range_of(cx: &mut Cx<'_>, x: &Val, elements: Range<u64>) -> Result<Val, Why> {
    let count = x.ty.element_count().ok_or("it has too many elements")?;
    let list = cx.w.reshape(x, &[count]);
    Ok(cx.w.slice(&list, &[(elements.start, elements.end, 1)]))
}

/// The whole tensor of swapped-in ranges and, for the other elements, of the base. On the host, ranges are written into the base:
/// XLA does that in place.
pub(super) fn join(cx: &mut Cx<'_>) -> Result<(), Why> {
    let ty = cx.ty(0)?;
    let count = ty.element_count().ok_or("it has too many elements")?;
    let begins = cx.ints("begins").unwrap_or_default().to_vec();
    let mut pieces = Vec::new();
    for (i, begin) in begins.into_iter().enumerate() {
        pieces.push((begin as u64, cx.operand(i + 1)?));
    }
    pieces.sort_by_key(|(begin, _)| *begin);
    if !cx.node.updates.is_empty() {
        let before = cx.operand(0)?;
        let list = cx.w.reshape(&before, &[count]);
        let list = pieces.iter().fold(list, |list, (begin, piece)| cx.w.with_range(&list, piece, *begin));
        let y = cx.w.reshape(&list, &ty.dims);
        return cx.give(0, y);
    }
    let mut parts = Vec::new();
    let mut end = 0;
    for (begin, piece) in pieces {
        stayed(cx, &mut parts, end..begin)?;
        end = begin + piece.dims()[0];
        parts.push(piece);
    }
    stayed(cx, &mut parts, end..count)?;
    let y = cx.w.concatenate(&parts.iter().collect::<Vec<_>>(), 0);
    let y = cx.w.reshape(&y, &ty.dims);
    cx.give(0, y)
}

/// Adds a range of the base, the first operand, unless it is empty.
fn stayed(cx: &mut Cx<'_>, parts: &mut Vec<Val>, range: Range<u64>) -> Result<(), Why> {
    if !range.is_empty() {
        let whole = cx.optional(0).ok_or("a range of it is missing")?;
        parts.push(range_of(cx, &whole, range)?);
    }
    Ok(())
}
