//! Gathering and scattering by indices that are computed data.

use std::fmt::Display;

use bytemuck::Pod;

use super::{Made, chunks, least};
use crate::element::{Number, dispatch};
use crate::kernel::{Io, Kernel};
use crate::meaning::{Rows, count, strides};
use crate::spec::{Spec, refuse};

/// An index: an integer that counts from the end if it is negative.
pub(super) trait Index: Pod + Send + Sync + Display {
    /// The position in an axis of `extent` elements; none if it is out of range.
    fn place(self, extent: usize) -> Option<usize>;
}

impl Index for i64 {
    fn place(self, extent: usize) -> Option<usize> {
        let at = if self < 0 { self.wrapping_add(extent as i64) } else { self };
        usize::try_from(at).ok().filter(|&at| at < extent)
    }
}

impl Index for i32 {
    fn place(self, extent: usize) -> Option<usize> {
        i64::from(self).place(extent)
    }
}

/// The message about an index that is out of range.
pub fn no_index(index: impl Display, extent: usize) -> String {
    format!("index {index} is out of range for {extent} elements")
}

/// Whether all indices of an operand are in range: those of each tuple within these extents, in turn.
fn within<I: Index>(operands: &[&[u8]], operand: usize, extents: &[usize]) -> Result<(), String> {
    let bytes = operands.get(operand).copied().unwrap_or_default();
    if bytes.is_empty() || extents.is_empty() {
        return Ok(());
    }
    for tuple in bytemuck::cast_slice::<u8, I>(bytes).chunks(extents.len()) {
        for (index, &extent) in tuple.iter().zip(extents) {
            if index.place(extent).is_none() {
                return Err(no_index(index, extent));
            }
        }
    }
    Ok(())
}

/// `Gather(data, indices)` along an axis. An index that is out of range fails the check of the kernel, and would give zeros.
pub(crate) fn gather(spec: &Spec<'_>) -> Made {
    let dims = spec.dims(0)?;
    let rows = Rows::at(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    let picks = count(&spec.dims(1)?);
    spec.expect_result(0, spec.element(0)?)?;
    spec.expect_result_count(0, rows.outer * picks * rows.inner)?;
    fn run<T: Pod + Send + Sync, I: Index>(rows: Rows, picks: usize, mut io: Io<'_>) {
        let (data, indices) = (io.get::<T>(0), io.get::<I>(1));
        let Rows { axis, inner, .. } = rows;
        if inner == 0 {
            return;
        }
        chunks(io.take::<T>(0), inner, least(inner), &|i, out| match indices[i % picks].place(axis) {
            Some(at) => out.copy_from_slice(&data[(i / picks * axis + at) * inner..][..inner]),
            None => out.fill(T::zeroed()),
        });
    }
    dispatch!(width spec.element(0)?, T => dispatch!(index spec.element(1)?, I => {
        let kernel = Kernel::new(move |io| run::<T, I>(rows, picks, io));
        Ok(kernel.checked(move |operands| within::<I>(operands, 1, &[rows.axis])))
    }))
}

/// `GatherGrad(shape, indices, dY)`: rows of dY added to the rows that they were gathered from, in order.
pub(crate) fn gather_grad(spec: &Spec<'_>) -> Made {
    let dims = spec.result_dims(0)?;
    spec.expect_floats([2])?;
    let rows = Rows::at(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    let picks = count(&spec.dims(1)?);
    if count(&spec.dims(2)?) != rows.outer * picks * rows.inner {
        return refuse("there are not as many rows of gradients as indices");
    }
    fn run<I: Index>(rows: Rows, picks: usize, mut io: Io<'_>) {
        let (indices, dy) = (io.get::<I>(1), io.get::<f32>(2));
        let Rows { axis, inner, .. } = rows;
        let out = io.take::<f32>(0);
        super::movement::fill(out, 0.0);
        for (i, dy) in dy.chunks(inner.max(1)).enumerate() {
            if let Some(at) = indices[i % picks].place(axis) {
                let out = &mut out[(i / picks * axis + at) * inner..][..inner];
                out.iter_mut().zip(dy).for_each(|(o, d)| *o += d);
            }
        }
    }
    dispatch!(index spec.element(1)?, I => {
        let kernel = Kernel::new(move |io| run::<I>(rows, picks, io));
        Ok(kernel.checked(move |operands| within::<I>(operands, 1, &[rows.axis])))
    })
}

/// Maps each element of a tensor of indices to an offset in the tensor that is indexed along an axis.
pub struct IndexedElements {
    /// Extents of the indices.
    pub dims: Vec<usize>,
    /// Strides of the indexed tensor; 0 along the axis.
    pub strides: Vec<usize>,
    /// Extent and stride of the axis.
    pub axis: (usize, usize),
}

impl IndexedElements {
    /// From the operand with the indices, and the extents that are indexed.
    pub fn new(
        spec: &Spec<'_>,
        indexed: &[usize],
        indices: usize,
    ) -> Result<IndexedElements, crate::spec::SpecError> {
        let dims = spec.dims(indices)?;
        let axis = spec.axis(spec.int("axis")?, indexed.len())?;
        let fits = dims.len() == indexed.len() && (0..dims.len()).all(|d| d == axis || dims[d] <= indexed[d]);
        if !fits {
            return refuse(format!("indices {dims:?} do not fit a tensor of extents {indexed:?}"));
        }
        let mut strides = strides(indexed);
        let along = (indexed[axis], strides[axis]);
        strides[axis] = 0;
        Ok(IndexedElements { dims, strides, axis: along })
    }

    /// The offset that the `i`-th index refers to.
    fn at<I: Index>(&self, i: usize, index: I) -> Option<usize> {
        let mut rest = i;
        let mut offset = 0;
        for d in (0..self.dims.len()).rev() {
            offset += rest % self.dims[d] * self.strides[d];
            rest /= self.dims[d];
        }
        Some(offset + index.place(self.axis.0)? * self.axis.1)
    }
}

/// `GatherElements(data, indices)`.
pub(crate) fn gather_elements(spec: &Spec<'_>) -> Made {
    let plan = IndexedElements::new(spec, &spec.dims(0)?, 1)?;
    spec.expect_result(0, spec.element(0)?)?;
    spec.expect_result_count(0, count(&plan.dims))?;
    let extent = plan.axis.0;
    dispatch!(width spec.element(0)?, T => dispatch!(index spec.element(1)?, I => {
        Ok(Kernel::new(move |mut io: Io<'_>| {
            let (data, indices) = (io.get::<T>(0), io.get::<I>(1));
            super::each::parts(io.take::<T>(0), |start, out| {
                for (i, out) in (start..).zip(out) {
                    *out = plan.at(i, indices[i]).map_or(0, |at| data[at]);
                }
            });
        })
        .checked(move |operands| within::<I>(operands, 1, &[extent])))
    }))
}

/// `GatherElementsGrad(dY, shape, indices)`.
pub(crate) fn gather_elements_grad(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0])?;
    let plan = IndexedElements::new(spec, &spec.result_dims(0)?, 2)?;
    spec.expect_dims(0, &plan.dims)?;
    spec.expect_result(0, spec.element(0)?)?;
    let extent = plan.axis.0;
    dispatch!(index spec.element(2)?, I => Ok(Kernel::new(move |mut io: Io<'_>| {
        let (dy, indices) = (io.get::<f32>(0), io.get::<I>(2));
        let out = io.take::<f32>(0);
        super::movement::fill(out, 0.0);
        for (i, (dy, &index)) in dy.iter().zip(indices).enumerate() {
            if let Some(at) = plan.at(i, index) {
                out[at] += dy;
            }
        }
    })
    .checked(move |operands| within::<I>(operands, 2, &[extent]))))
}

/// Combines an element and an update of it.
type Reduce<T> = fn(T, T) -> T;

fn reduction<T: Number>(name: &str) -> Result<Reduce<T>, crate::spec::SpecError> {
    Ok(match name {
        "none" => |_, new| new,
        "add" => T::plus,
        "mul" => T::times,
        "max" => T::larger,
        "min" => T::smaller,
        other => return refuse(format!("attribute `reduction` is `{other}`; no such reduction is known")),
    })
}

/// Calls the body with `$T` and the function that reduces stored elements of that type.
macro_rules! reducing {
    ($spec:expr, $T:ident, $reduce:ident => $body:expr) => {{
        // Before version 16, and in `Scatter`, the last update stays.
        let name = if $spec.knows("reduction") { $spec.string("reduction")? } else { "none".into() };
        if name == "none" {
            dispatch!(width $spec.element(0)?, $T => {
                let $reduce = |_: $T, new: $T| new;
                $body
            })
        } else {
            dispatch!(direct $spec.element(0)?, $T => {
                let $reduce = reduction::<$T>(&name)?;
                $body
            })
        }
    }};
}

/// `ScatterElements(data, indices, updates)`.
pub(crate) fn scatter_elements(spec: &Spec<'_>) -> Made {
    let dims = spec.dims(0)?;
    let plan = IndexedElements::new(spec, &dims, 1)?;
    spec.need(2)?;
    spec.expect_dims(2, &plan.dims)?;
    spec.expect(2, spec.element(0)?)?;
    spec.expect_like(0, 0)?;
    let axis = spec.axis(spec.int("axis")?, dims.len())?;
    // If all extents before the axis agree, updates of one part of the data are in the same part of the indices.
    let apart = (0..axis).all(|d| plan.dims[d] == dims[d]);
    let parts = if apart { dims[..axis].iter().product::<usize>().max(1) } else { 1 };
    let (size, updates_each) = (count(&dims) / parts, count(&plan.dims) / parts);
    let extent = plan.axis.0;
    reducing!(spec, T, reduce => dispatch!(index spec.element(1)?, I => Ok(Kernel::new(move |mut io: Io<'_>| {
        let (data, indices, updates) = (io.get::<T>(0), io.get::<I>(1), io.get::<T>(2));
        let out = io.take::<T>(0);
        if size == 0 {
            return;
        }
        chunks(out, size, least(size), &|part, out| {
            out.copy_from_slice(&data[part * size..][..size]);
            for i in part * updates_each..(part + 1) * updates_each {
                if let Some(at) = plan.at(i, indices[i]) {
                    let at = &mut out[at - part * size];
                    *at = reduce(*at, updates[i]);
                }
            }
        });
    })
    .checked(move |operands| within::<I>(operands, 1, &[extent])))))
}

/// Slices indexed by tuples: `GatherND` and similar operators.
pub struct Tuples {
    /// Extents and strides of the dimensions that a tuple indexes.
    pub indexed: Vec<(usize, usize)>,
    /// Number of tuples of each part of a batch, and number of elements of a part of the data.
    pub batch: (usize, usize),
    /// Elements of a slice.
    pub inner: usize,
}

impl Tuples {
    /// From the extents of the data and of the indices.
    pub fn new(
        data: &[usize],
        indices: &[usize],
        batch_dims: usize,
    ) -> Result<Tuples, crate::spec::SpecError> {
        let Some((&width, tuples)) = indices.split_last() else { return refuse("indices are a scalar") };
        if batch_dims > tuples.len()
            || batch_dims + width > data.len()
            || data[..batch_dims] != tuples[..batch_dims]
        {
            return refuse(format!("indices {indices:?} do not fit a tensor of extents {data:?}"));
        }
        let own = strides(data);
        let indexed = (batch_dims..batch_dims + width).map(|d| (data[d], own[d])).collect();
        let inner = count(&data[batch_dims + width..]);
        Ok(Tuples { indexed, batch: (count(&tuples[batch_dims..]), count(&data[batch_dims..])), inner })
    }

    /// Extents of the dimensions that a tuple indexes.
    pub fn extents(&self) -> Vec<usize> {
        self.indexed.iter().map(|&(extent, _)| extent).collect()
    }

    fn at<I: Index>(&self, i: usize, indices: &[I]) -> Option<usize> {
        let tuple = &indices[i * self.indexed.len()..][..self.indexed.len()];
        let first = i / self.batch.0.max(1) * self.batch.1;
        tuple
            .iter()
            .zip(&self.indexed)
            .try_fold(first, |at, (i, &(extent, stride))| Some(at + i.place(extent)? * stride))
    }
}

/// Number of tuples of indices in operand 1.
fn tuples(spec: &Spec<'_>) -> Result<usize, crate::spec::SpecError> {
    let dims = spec.dims(1)?;
    Ok(count(&dims[..dims.len().saturating_sub(1)]))
}

/// The attribute `batch_dims`.
pub fn batch_dims(spec: &Spec<'_>) -> Result<usize, crate::spec::SpecError> {
    Ok(spec.int("batch_dims")?.max(0) as usize)
}

/// `GatherND(data, indices)`.
pub(crate) fn gather_nd(spec: &Spec<'_>) -> Made {
    let plan = Tuples::new(&spec.dims(0)?, &spec.dims(1)?, batch_dims(spec)?)?;
    spec.expect_result(0, spec.element(0)?)?;
    spec.expect_result_count(0, tuples(spec)? * plan.inner)?;
    let extents = plan.extents();
    dispatch!(width spec.element(0)?, T => dispatch!(index spec.element(1)?, I => {
        Ok(Kernel::new(move |mut io: Io<'_>| {
            let (data, indices) = (io.get::<T>(0), io.get::<I>(1));
            let inner = plan.inner.max(1);
            chunks(io.take::<T>(0), inner, least(inner), &|i, out| match plan.at(i, indices) {
                Some(at) => out.copy_from_slice(&data[at..at + inner]),
                None => out.fill(0),
            });
        })
        .checked(move |operands| within::<I>(operands, 1, &extents)))
    }))
}

/// `GatherNDGrad(shape, indices, dY)`.
pub(crate) fn gather_nd_grad(spec: &Spec<'_>) -> Made {
    spec.expect_floats([2])?;
    let plan = Tuples::new(&spec.result_dims(0)?, &spec.dims(1)?, batch_dims(spec)?)?;
    spec.need(2)?;
    spec.expect_count(2, tuples(spec)? * plan.inner)?;
    spec.expect_result(0, spec.element(2)?)?;
    let extents = plan.extents();
    dispatch!(index spec.element(1)?, I => Ok(Kernel::new(move |mut io: Io<'_>| {
        let (indices, dy) = (io.get::<I>(1), io.get::<f32>(2));
        let out = io.take::<f32>(0);
        super::movement::fill(out, 0.0);
        for (i, dy) in dy.chunks(plan.inner.max(1)).enumerate() {
            if let Some(at) = plan.at(i, indices) {
                out[at..].iter_mut().zip(dy).for_each(|(o, d)| *o += d);
            }
        }
    })
    .checked(move |operands| within::<I>(operands, 1, &extents))))
}

/// `ScatterND(data, indices, updates)`, one update after the other.
pub(crate) fn scatter_nd(spec: &Spec<'_>) -> Made {
    let plan = Tuples::new(&spec.dims(0)?, &spec.dims(1)?, 0)?;
    spec.need(2)?;
    spec.expect_count(2, tuples(spec)? * plan.inner)?;
    spec.expect(2, spec.element(0)?)?;
    spec.expect_like(0, 0)?;
    let extents = plan.extents();
    reducing!(spec, T, reduce => dispatch!(index spec.element(1)?, I => Ok(Kernel::new(move |mut io: Io<'_>| {
        let (data, indices, updates) = (io.get::<T>(0), io.get::<I>(1), io.get::<T>(2));
        let out = io.take::<T>(0);
        super::movement::copy(data, out);
        for (i, update) in updates.chunks(plan.inner.max(1)).enumerate() {
            if let Some(at) = plan.at(i, indices) {
                out[at..].iter_mut().zip(update).for_each(|(o, &u)| *o = reduce(*o, u));
            }
        }
    })
    .checked(move |operands| within::<I>(operands, 1, &extents)))))
}

/// `OneHot(indices, depth, [off, on])`.
pub(crate) fn one_hot(spec: &Spec<'_>) -> Made {
    let out = spec.result_dims(0)?;
    let rows = Rows::at(&out, spec.axis(spec.int("axis")?, out.len())?);
    spec.expect_count(2, 2)?;
    spec.expect_count(0, rows.outer * rows.inner)?;
    spec.expect_result(0, spec.element(2)?)?;
    dispatch!(width spec.element(2)?, T => dispatch!(index spec.element(0)?, I => {
        Ok(Kernel::new(move |mut io: Io<'_>| {
            let (indices, values) = (io.get::<I>(0), io.get::<T>(2));
            let out = io.take::<T>(0);
            out.fill(values[0]);
            for (i, index) in indices.iter().enumerate() {
                if let Some(class) = index.place(rows.axis) {
                    out[(i / rows.inner * rows.axis + class) * rows.inner + i % rows.inner] = values[1];
                }
            }
        }))
    }))
}
