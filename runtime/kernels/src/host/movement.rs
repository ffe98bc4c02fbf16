//! Operators that move elements: transpositions, slices, concatenation, padding, repetition.

use std::sync::OnceLock;

use bytemuck::Pod;

use super::{GRAIN, Made, chunks, least};
use crate::element::dispatch;
use crate::kernel::{Io, Kernel};
use crate::meaning::{Rows, Strided, count, strides};
use crate::spec::{Spec, SpecError, is_addressable, refuse};

/// Side of the squares in which a matrix is transposed.
const SIDE: usize = 32;

/// Tensors of more dimensions are moved on one thread.
const RANK: usize = 8;

/// Copies elements, on all threads if there are many.
pub(super) fn copy<T: Pod + Send + Sync>(from: &[T], to: &mut [T]) {
    super::each::parts(to, |start, to| to.copy_from_slice(&from[start..start + to.len()]));
}

/// Fills with one element.
pub(super) fn fill<T: Pod + Send + Sync>(to: &mut [T], value: T) {
    super::each::parts(to, |_, to| to.fill(value));
}

/// Moves elements according to the plan.
pub(super) fn run<T: Pod + Send + Sync>(plan: &Strided, source: &[T], target: &mut [T]) {
    if plan.len() == 0 {
        return;
    }
    let from = plan.from as isize;
    if plan.is_one_piece() {
        let n = plan.len();
        return copy(&source[plan.from..plan.from + n], &mut target[plan.to..plan.to + n]);
    }
    if let ([n], [step], [1]) = (&plan.dims[..], &plan.source[..], &plan.target[..]) {
        super::each::parts(&mut target[plan.to..plan.to + n], |start, target| {
            nest(&[target.len()], &[*step], &[1], source, from + start as isize * step, target, 0);
        });
        return;
    }
    let inner: isize =
        plan.dims[1..].iter().zip(&plan.target[1..]).map(|(&d, &t)| (d as isize - 1) * t).sum();
    let apart = plan.dims.len() <= RANK && plan.target[0] > inner && plan.target[1..].iter().all(|&t| t >= 0);
    if apart && plan.dims[0] > 1 && plan.len() > GRAIN {
        let row = plan.target[0] as usize;
        let end = target.len().min(plan.to + row * plan.dims[0]);
        // Several rows of a matrix are moved together, so that it is transposed in squares.
        let rows = if plan.dims.len() == 2 { SIDE } else { 1 };
        let each = plan.len() / plan.dims[0] * rows;
        chunks(&mut target[plan.to..end], row * rows, least(each), &|i, target| {
            let first = i * rows;
            let from = from + first as isize * plan.source[0];
            let mut dims = [0; RANK];
            let dims = &mut dims[..plan.dims.len()];
            dims.copy_from_slice(&plan.dims);
            dims[0] = rows.min(plan.dims[0] - first);
            nest(dims, &plan.source, &plan.target, source, from, target, 0);
        });
    } else {
        nest(&plan.dims, &plan.source, &plan.target, source, from, target, plan.to as isize);
    }
}

/// Moves a box of elements whose first element goes from `s` to `t`.
fn nest<T: Pod>(
    dims: &[usize],
    ss: &[isize],
    ts: &[isize],
    source: &[T],
    s: isize,
    target: &mut [T],
    t: isize,
) {
    match (dims, ss, ts) {
        ([], ..) => target[t as usize] = source[s as usize],
        (&[n], &[1], &[1]) => {
            let (s, t) = (s as usize, t as usize);
            target[t..t + n].copy_from_slice(&source[s..s + n]);
        }
        (&[n], &[0], &[1]) => target[t as usize..t as usize + n].fill(source[s as usize]),
        (&[n], &[ss], &[1]) => {
            let target = &mut target[t as usize..t as usize + n];
            target.iter_mut().enumerate().for_each(|(i, out)| *out = source[(s + i as isize * ss) as usize]);
        }
        (&[n], &[ss], &[ts]) => {
            (0..n as isize).for_each(|i| target[(t + i * ts) as usize] = source[(s + i * ss) as usize]);
        }
        // Rows of the source are columns of the target: moved square by square, so that cache lines are used completely.
        (&[rows, columns], &[1, across], &[down, 1]) => {
            let mut square = [[T::zeroed(); SIDE]; SIDE];
            for r in (0..rows).step_by(SIDE) {
                let height = SIDE.min(rows - r);
                for c in (0..columns).step_by(SIDE) {
                    let width = SIDE.min(columns - c);
                    for (c, line) in (c..c + width).zip(&mut square) {
                        let first = (s + r as isize + c as isize * across) as usize;
                        line[..height].copy_from_slice(&source[first..first + height]);
                    }
                    for i in 0..height {
                        let first = (t + (r + i) as isize * down) as usize + c;
                        let out = &mut target[first..first + width];
                        out.iter_mut().zip(&square).for_each(|(out, line)| *out = line[i]);
                    }
                }
            }
        }
        _ => {
            for i in 0..dims[0] as isize {
                nest(&dims[1..], &ss[1..], &ts[1..], source, s + i * ss[0], target, t + i * ts[0]);
            }
        }
    }
}

fn signed(strides: &[usize]) -> Vec<isize> {
    strides.iter().map(|&s| s as isize).collect()
}

/// The kernel that moves operand `operand` into result 0; with `clear`, all other elements of the result are set to 0.
fn moving(spec: &Spec<'_>, operand: usize, plan: Strided, clear: bool) -> Made {
    dispatch!(width spec.element(operand)?, T => {
        Ok(Kernel::new(move |mut io: Io<'_>| {
            let out = io.take::<T>(0);
            if clear {
                fill(out, 0);
            }
            run::<T>(&plan, io.get(operand), out);
        }))
    })
}

/// The plan; refused if it reaches outside of the operand or the result.
fn within(spec: &Spec<'_>, operand: usize, result: usize, plan: Strided) -> Result<Strided, SpecError> {
    let (from, to) = (spec.tensor(operand)?, spec.result(result)?);
    if from.element != to.element {
        return refuse(format!(
            "result {result} is {to}, and operand {operand} is {from}; expected one type"
        ));
    }
    if plan.is_within(count(&spec.dims(operand)?), count(&spec.result_dims(result)?)) {
        Ok(plan)
    } else {
        refuse(format!("operand {operand}, {from}, and result {result}, {to}, do not fit one another"))
    }
}

/// The moves of `Transpose`.
pub fn transposed(spec: &Spec<'_>) -> Result<Strided, SpecError> {
    let dims = spec.dims(0)?;
    let rank = dims.len();
    let perm: Vec<usize> = match spec.ints("perm")? {
        Some(perm) => perm.iter().map(|&p| spec.axis(p, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).rev().collect(),
    };
    let mut sorted = perm.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..rank) {
        return refuse(format!("attribute `perm` is {perm:?}; expected each of {rank} dimensions once"));
    }
    let own = strides(&dims);
    let out: Vec<usize> = perm.iter().map(|&p| dims[p]).collect();
    let source: Vec<isize> = perm.iter().map(|&p| own[p] as isize).collect();
    within(spec, 0, 0, Strided::new(&out, &source, &signed(&strides(&out)), 0, 0))
}

/// `Transpose`.
pub fn transpose(spec: &Spec<'_>) -> Made {
    moving(spec, 0, transposed(spec)?, false)
}

/// The moves of `Expand`, from the result's extents.
pub fn expanded(spec: &Spec<'_>) -> Result<Strided, SpecError> {
    let (dims, out) = (spec.dims(0)?, spec.result_dims(0)?);
    let Some(lead) = out.len().checked_sub(dims.len()) else {
        return refuse("the result has fewer dimensions");
    };
    let own = strides(&dims);
    let step = |d: usize| -> Result<isize, SpecError> {
        let Some(i) = d.checked_sub(lead) else { return Ok(0) };
        match (dims[i], out[d]) {
            (a, b) if a == b => Ok(own[i] as isize),
            (1, _) => Ok(0),
            _ => refuse(format!("extents {dims:?} do not broadcast to {out:?}")),
        }
    };
    let source: Vec<isize> = (0..out.len()).map(step).collect::<Result<_, _>>()?;
    within(spec, 0, 0, Strided::new(&out, &source, &signed(&strides(&out)), 0, 0))
}

/// `Expand`.
pub fn expand(spec: &Spec<'_>) -> Made {
    moving(spec, 0, expanded(spec)?, false)
}

/// The moves of `Tile(x, repeats)`.
pub fn tiled(spec: &Spec<'_>) -> Result<Strided, SpecError> {
    let (dims, out) = (spec.dims(0)?, spec.result_dims(0)?);
    if dims.len() != out.len() {
        return refuse(format!("extents {dims:?} are not tiled into {out:?}"));
    }
    let own = strides(&dims);
    let into = strides(&out);
    let mut wide = (Vec::new(), Vec::new(), Vec::new());
    for d in 0..dims.len() {
        let repeats = out[d].checked_div(dims[d]).unwrap_or(0);
        for (extent, source, target) in
            [(repeats, 0, (dims[d] * into[d]) as isize), (dims[d], own[d] as isize, into[d] as isize)]
        {
            wide.0.push(extent);
            wide.1.push(source);
            wide.2.push(target);
        }
    }
    within(spec, 0, 0, Strided::new(&wide.0, &wide.1, &wide.2, 0, 0))
}

/// `Tile`.
pub fn tile(spec: &Spec<'_>) -> Made {
    moving(spec, 0, tiled(spec)?, false)
}

/// The first index and the step of a slice in each dimension.
struct Slice {
    first: Vec<usize>,
    step: Vec<isize>,
}

impl Slice {
    /// The slice of a tensor of extents `dims`, from the lists of starts, axes and steps.
    fn new(
        spec: &Spec<'_>,
        dims: &[usize],
        [starts, axes, steps]: [Option<Vec<i64>>; 3],
    ) -> Result<Slice, SpecError> {
        let starts = starts.unwrap_or_default();
        let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
        let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
        if axes.len() != starts.len() || steps.len() != starts.len() {
            return refuse("starts, axes and steps are not equally many");
        }
        let mut slice = Slice { first: vec![0; dims.len()], step: vec![1; dims.len()] };
        for ((&start, &axis), &step) in starts.iter().zip(&axes).zip(&steps) {
            let d = spec.axis(axis, dims.len())?;
            let extent = dims[d] as i64;
            if step == 0 {
                return refuse("a step is 0");
            }
            let start = if start < 0 { start.saturating_add(extent) } else { start };
            let last = if step > 0 { extent } else { (extent - 1).max(0) };
            slice.first[d] = start.clamp(0, last) as usize;
            slice.step[d] = step as isize;
        }
        Ok(slice)
    }

    /// Offset and strides within the sliced tensor.
    fn place(&self, dims: &[usize]) -> (usize, Vec<isize>) {
        let own = strides(dims);
        let offset = own.iter().zip(&self.first).map(|(s, f)| s * f).sum();
        // A step that overflows occurs only with a single element.
        (offset, own.iter().zip(&self.step).map(|(&s, &step)| (s as isize).wrapping_mul(step)).collect())
    }
}

/// The moves of `Slice`, with its bounds as operands or, up to version 9, as attributes.
pub fn sliced(spec: &Spec<'_>) -> Result<Strided, SpecError> {
    let (dims, out) = (spec.dims(0)?, spec.result_dims(0)?);
    let lists = match spec.ints("starts")? {
        Some(starts) => [Some(starts.to_vec()), spec.ints("axes")?.map(<[i64]>::to_vec), None],
        None => [spec.constants(1)?, spec.constants(3)?, spec.constants(4)?],
    };
    let (from, source) = Slice::new(spec, &dims, lists)?.place(&dims);
    if out.len() != dims.len() {
        return refuse(format!("{out:?} is no slice of extents {dims:?}"));
    }
    within(spec, 0, 0, Strided::new(&out, &source, &signed(&strides(&out)), from, 0))
}

/// `Slice`.
pub fn slice(spec: &Spec<'_>) -> Made {
    moving(spec, 0, sliced(spec)?, false)
}

/// The moves of `SliceGrad(dY, shape, starts, ends, axes, steps)`: dY to the place of the slice.
pub fn slice_returned(spec: &Spec<'_>) -> Result<Strided, SpecError> {
    let (part, dims) = (spec.dims(0)?, spec.result_dims(0)?);
    let lists = [spec.constants(2)?, spec.constants(4)?, spec.constants(5)?];
    let (to, target) = Slice::new(spec, &dims, lists)?.place(&dims);
    if part.len() != dims.len() {
        return refuse(format!("{part:?} is no slice of extents {dims:?}"));
    }
    within(spec, 0, 0, Strided::new(&part, &signed(&strides(&part)), &target, 0, to))
}

/// `SliceGrad`: 0 outside of the slice.
pub fn slice_grad(spec: &Spec<'_>) -> Made {
    moving(spec, 0, slice_returned(spec)?, true)
}

/// The moves of the operands of `Concat`, and their extents along the axis.
pub fn joined(spec: &Spec<'_>) -> Result<(Vec<Strided>, Vec<i64>), SpecError> {
    let out = spec.result_dims(0)?;
    let axis = spec.axis(spec.int("axis")?, out.len())?;
    let whole = Rows::at(&out, axis);
    let element = spec.result(0)?.element;
    let mut plans = Vec::new();
    let mut lengths = Vec::new();
    let mut to = 0;
    for i in 0..spec.operands.len() {
        spec.expect(i, element)?;
        let dims = spec.dims(i)?;
        if dims.len() != out.len() {
            return refuse(format!("operand {i} has extents {dims:?}, which do not go into {out:?}"));
        }
        let piece = dims[axis] * whole.inner;
        let all = (whole.axis * whole.inner) as isize;
        let plan = Strided::new(&[whole.outer, piece], &[piece as isize, 1], &[all, 1], 0, to);
        plans.push(within(spec, i, 0, plan)?);
        lengths.push(dims[axis] as i64);
        to += piece;
    }
    if to != whole.axis * whole.inner {
        return refuse("extents along the axis do not sum up to the result's");
    }
    spec.expect_result_count(1, lengths.len())?;
    Ok((plans, lengths))
}

/// `Concat` and `ConcatTraining`, whose second result is the operands' extents along the axis.
pub fn concat(spec: &Spec<'_>) -> Made {
    let (plans, lengths) = joined(spec)?;
    dispatch!(width spec.result(0)?.element, T => Ok(Kernel::new(move |mut io: Io<'_>| {
        let out = io.take::<T>(0);
        plans.iter().enumerate().for_each(|(i, plan)| run::<T>(plan, io.get(i), out));
        io.take::<i64>(1).iter_mut().zip(&lengths).for_each(|(out, &length)| *out = length);
    })))
}

/// The moves to each result of `Split` that is used, from the results' extents.
pub fn parted(spec: &Spec<'_>) -> Result<Vec<Option<Strided>>, SpecError> {
    let dims = spec.dims(0)?;
    let axis = spec.axis(spec.int("axis")?, dims.len())?;
    let whole = Rows::at(&dims, axis);
    let extent = |i: usize| -> Result<usize, SpecError> {
        if spec.wants(i) {
            let dims = spec.result_dims(i)?;
            return dims.get(axis).copied().map_or_else(|| refuse("a result has fewer dimensions"), Ok);
        }
        match spec.constants(1)?.and_then(|lengths| lengths.get(i).copied()) {
            Some(length) => Ok(length.max(0) as usize),
            None => Ok(whole.axis.div_ceil(spec.results.len())),
        }
    };
    let mut plans = Vec::new();
    let mut from = 0;
    for i in 0..spec.results.len() {
        let piece = extent(i)? * whole.inner;
        if from + piece > whole.axis * whole.inner {
            return refuse("the results are longer than what is split");
        }
        let all = (whole.axis * whole.inner) as isize;
        let plan = Strided::new(&[whole.outer, piece], &[all, 1], &[piece as isize, 1], from, 0);
        plans.push(if spec.wants(i) { Some(within(spec, 0, i, plan)?) } else { None });
        from += piece;
    }
    Ok(plans)
}

/// `Split` and `SplitTraining`.
pub fn split(spec: &Spec<'_>) -> Made {
    let plans = parted(spec)?;
    dispatch!(width spec.element(0)?, T => Ok(Kernel::new(move |mut io: Io<'_>| {
        for (i, plan) in plans.iter().enumerate() {
            if let Some(plan) = plan {
                run::<T>(plan, io.get(0), io.take(i));
            }
        }
    })))
}

/// For each dimension, the index in the operand of each index of the result.
pub struct Mapped {
    /// By dimension of the result, the index of the operand for each index.
    pub maps: Vec<Vec<usize>>,
    /// For each dimension, the stride of the operand.
    pub strides: Vec<usize>,
}

impl Mapped {
    fn row<T: Pod>(&self, source: &[T], out: &mut [T], row: usize) {
        let last = self.maps.len() - 1;
        let mut rest = row;
        let mut base = 0;
        for d in (0..last).rev() {
            base += self.maps[d][rest % self.maps[d].len()] * self.strides[d];
            rest /= self.maps[d].len();
        }
        out.iter_mut()
            .zip(&self.maps[last])
            .for_each(|(out, &i)| *out = source[base + i * self.strides[last]]);
    }

    pub(super) fn run<T: Pod + Send + Sync>(&self, source: &[T], out: &mut [T]) {
        let width = self.maps.last().map_or(1, Vec::len);
        match width {
            _ if self.maps.is_empty() => out.copy_from_slice(source),
            0 => {}
            _ => chunks(out, width, least(width), &|row, out| self.row(source, out, row)),
        }
    }
}

/// The implementation of a `Pad`.
pub enum Padding {
    /// Moves the operand into a result filled with one value: that of an operand, or that of the attribute.
    Constant {
        /// Where the operand's elements go.
        plan: Strided,
        /// The value, unless an operand has it.
        by_attribute: f32,
        /// Whether an operand has the value.
        has_value: bool,
    },
    /// Repeats elements of the operand.
    Repeated(Repeated),
}

/// `Pad`, with its widths as an operand or, up to version 10, as an attribute; negative widths crop.
pub fn padding(spec: &Spec<'_>) -> Result<Padding, SpecError> {
    let (dims, out) = (spec.dims(0)?, spec.result_dims(0)?);
    let rank = dims.len();
    let pads = match spec.ints("pads")? {
        Some(pads) => pads.to_vec(),
        None => spec.constants(1)?.unwrap_or_default(),
    };
    let axes: Vec<usize> = match spec.constants(3)? {
        Some(axes) => axes.iter().map(|&a| spec.axis(a, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return refuse(format!("there are {} widths; expected {}", pads.len(), 2 * axes.len()));
    }
    if out.len() != rank {
        return refuse(format!("extents {dims:?} are not padded to {out:?}"));
    }
    if spec.has(2) && count(&spec.dims(2)?) > 1 {
        return refuse(format!("operand 2 is {}; expected one element", spec.tensor(2)?));
    }
    if spec.has(2) {
        spec.expect(2, spec.element(0)?)?;
    }
    let mut before = vec![0; rank];
    axes.iter().zip(&pads).for_each(|(&d, &width)| before[d] = width);
    let mode = spec.string("mode")?;
    if mode == "constant" {
        let taken = |d: usize| (before[d].max(0) as usize, (-before[d]).max(0) as usize);
        let own = strides(&dims);
        let into = strides(&out);
        let (mut from, mut to) = (0, 0);
        let mut kept = Vec::new();
        for d in 0..rank {
            let (lead, cut) = taken(d);
            kept.push(dims[d].saturating_sub(cut).min(out[d].saturating_sub(lead)));
            from += cut * own[d];
            to += lead * into[d];
        }
        let plan = within(spec, 0, 0, Strided::new(&kept, &signed(&own), &signed(&into), from, to))?;
        let by_attribute = spec.float("value")?;
        let has_value = spec.has(2) && count(&spec.dims(2)?) > 0;
        let element = spec.element(0)?;
        if by_attribute != 0.0 && element != lmsc_ir::ElementType::Float {
            return refuse(format!("attribute `value` is a float, but operand 0 is {element}"));
        }
        return Ok(Padding::Constant { plan, by_attribute, has_value });
    }
    let place = match &*mode {
        "edge" => |i: i64, n: i64| i.clamp(0, n - 1),
        "wrap" => |i: i64, n: i64| i.rem_euclid(n),
        "reflect" => |i: i64, n: i64| {
            let around = i.rem_euclid(2 * (n - 1).max(1));
            around.min(2 * (n - 1) - around).max(0)
        },
        other => return refuse(format!("attribute `mode` is `{other}`; no such padding is known")),
    };
    if dims.contains(&0) {
        return refuse("there is nothing to repeat in an operand without elements");
    }
    Ok(Padding::Repeated(Repeated { before, dims, out, place }))
}

/// A `Pad` that repeats elements of the operand.
pub struct Repeated {
    /// For each dimension, the width before the operand.
    before: Vec<i64>,
    dims: Vec<usize>,
    out: Vec<usize>,
    /// The index in an extent for one outside it.
    place: fn(i64, i64) -> i64,
}

impl Repeated {
    /// The extents of the result.
    pub fn extents(&self) -> &[usize] {
        &self.out
    }

    /// The index in the operand of each index of the result. It has the size of the extents, so that it is made when the
    /// kernel runs for the first time.
    pub fn map(&self) -> Mapped {
        let map = |d: usize| {
            let place = |i: i64| (self.place)(i.saturating_sub(self.before[d]), self.dims[d] as i64) as usize;
            (0..self.out[d] as i64).map(place).collect()
        };
        Mapped { maps: (0..self.out.len()).map(map).collect(), strides: strides(&self.dims) }
    }
}

/// `Pad`.
pub fn pad(spec: &Spec<'_>) -> Made {
    match padding(spec)? {
        Padding::Constant { plan, by_attribute, has_value } => {
            dispatch!(width spec.element(0)?, T => Ok(Kernel::new(move |mut io: Io<'_>| {
                let out = io.take::<T>(0);
                let own: T = bytemuck::try_pod_read_unaligned(&by_attribute.to_le_bytes()).unwrap_or(0);
                let value = if has_value { io.get::<T>(2)[0] } else { own };
                fill(out, value);
                run::<T>(&plan, io.get(0), out);
            })))
        }
        Padding::Repeated(repeated) => dispatch!(width spec.element(0)?, T => {
            let map = OnceLock::new();
            Ok(Kernel::new(move |mut io: Io<'_>| {
                if count(repeated.extents()) > 0 {
                    map.get_or_init(|| repeated.map()).run::<T>(io.get(0), io.take(0));
                }
            }))
        }),
    }
}

/// `Trilu(x, k)`: the upper or lower triangle of each matrix.
pub fn triangle(spec: &Spec<'_>) -> Made {
    let dims = spec.dims(0)?;
    let [.., rows, columns] = dims[..] else { return refuse("operand 0 is no matrix") };
    let upper = spec.flag("upper")?;
    spec.expect_count(1, 1)?;
    spec.expect_like(0, 0)?;
    let k = spec.constants(1)?.and_then(|k| k.first().copied()).unwrap_or(0);
    dispatch!(width spec.element(0)?, T => Ok(Kernel::new(move |mut io: Io<'_>| {
        let (x, out) = (io.get::<T>(0), io.take::<T>(0));
        if x.is_empty() {
            return;
        }
        chunks(out, columns, least(columns), &|row, out| {
            let x = &x[row * columns..][..columns];
            let diagonal = ((row % rows) as i64).saturating_add(k).clamp(-1, columns as i64);
            for (c, (out, &x)) in (0..).zip(out.iter_mut().zip(x)) {
                *out = if (upper && c >= diagonal) || (!upper && c <= diagonal) { x } else { 0 };
            }
        });
    })))
}

/// The moves of `DepthToSpace` and `SpaceToDepth`.
pub fn rearranged(spec: &Spec<'_>, to_space: bool) -> Result<Strided, SpecError> {
    let dims = spec.dims(0)?;
    let [n, c, h, w] = dims[..] else { return refuse("operand 0 has not four dimensions") };
    let Ok(b @ 1..) = usize::try_from(spec.int("blocksize")?) else {
        return refuse("attribute `blocksize` is not positive");
    };
    let Some(area) = b.checked_mul(b) else { return refuse(format!("blocks of {b} are too large")) };
    let depth_first = match &*spec.string("mode")? {
        "DCR" => true,
        "CRD" => false,
        other => return refuse(format!("attribute `mode` is `{other}`; expected `DCR` or `CRD`")),
    };
    // The dimensions in the order of the operand, and the position of each in the result.
    let (wide, order): (Vec<usize>, Vec<usize>) = match (to_space, depth_first) {
        (true, true) => (vec![n, b, b, c / area, h, w], vec![0, 3, 4, 1, 5, 2]),
        (true, false) => (vec![n, c / area, b, b, h, w], vec![0, 1, 4, 2, 5, 3]),
        (false, true) => (vec![n, c, h / b, b, w / b, b], vec![0, 3, 5, 1, 2, 4]),
        (false, false) => (vec![n, c, h / b, b, w / b, b], vec![0, 1, 3, 5, 2, 4]),
    };
    let extents: Vec<u64> = wide.iter().map(|&extent| extent as u64).collect();
    if !is_addressable(&extents) || count(&wide) != count(&dims) {
        return refuse(format!("extents {dims:?} do not divide into blocks of {b}"));
    }
    let own = strides(&wide);
    let out: Vec<usize> = order.iter().map(|&d| wide[d]).collect();
    let source: Vec<isize> = order.iter().map(|&d| own[d] as isize).collect();
    within(spec, 0, 0, Strided::new(&out, &source, &signed(&strides(&out)), 0, 0))
}

/// `DepthToSpace` and `SpaceToDepth`.
pub fn depth_space(spec: &Spec<'_>, to_space: bool) -> Made {
    moving(spec, 0, rearranged(spec, to_space)?, false)
}
