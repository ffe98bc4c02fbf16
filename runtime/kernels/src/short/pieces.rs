//! Runs kernels for `f32` on short floats piece by piece, so that the room for `f32` values does not grow with the tensors.

use std::mem::take;

use lmsc_ir::Type;
use rayon::prelude::*;

use super::cuts::{self, Cut, Part};
use super::{ALIGNMENT, Short, Wide};
use crate::host::Made;
use crate::kernel::{Io, Kernel, StepContext};
use crate::spec::Spec;

/// Number of elements that a piece widens or rounds, if its slices are not larger: 4 MiB of `f32`, which a cache of the last level
/// holds. With half as many, small kernels start more threads than they need; twice as many save nothing.
pub(super) const PIECE: usize = 1 << 20;

/// A tensor of which a piece has slices: `outer` groups, of `inner` elements for each slice.
#[derive(Clone, Copy, Debug)]
struct Sliced {
    outer: usize,
    slices: usize,
    inner: usize,
    /// Bytes of an element.
    width: usize,
}

impl Sliced {
    fn of(part: Part, ty: &Type, slices: usize) -> Option<Sliced> {
        let (outer, extent, inner) = part.shape(ty)?;
        let width = match ty {
            Type::Tensor(tensor) => tensor.element.bits(),
            Type::Sequence(list) => list.first()?.element.bits(),
        };
        (extent == slices && width % 8 == 0).then_some(Sliced {
            outer,
            slices,
            inner,
            width: width as usize / 8,
        })
    }

    /// The bytes of the slices from `start` on, which follow each other.
    fn range(self, start: usize, count: usize) -> std::ops::Range<usize> {
        let slice = self.inner * self.width;
        start * slice..(start + count) * slice
    }

    /// Elements of a piece.
    fn elements(self, count: usize) -> usize {
        self.outer * count * self.inner
    }
}

/// Where a piece finds an operand, or leaves a result.
#[derive(Clone, Copy, Debug)]
enum Lies {
    /// In the tensor, all of it.
    Whole,
    /// In the tensor, the slices of the piece.
    Direct(Sliced),
    /// In a room for all its elements as `f32`.
    Wide(Short),
    /// In a room for the elements of the piece as `f32`.
    Piece(Short, Sliced),
    /// In a room for the indices of the piece, which count from its first slice on. The number is that of the elements of a slice.
    Indices(Sliced, usize),
    /// In a room for all its elements, which are added to a sum; it is rounded if the result is short.
    Sum(usize, Option<Short>),
}

impl Lies {
    fn operand(part: Part, ty: &Type, short: Option<Short>, slices: usize) -> Option<Lies> {
        let sliced = || Sliced::of(part, ty, slices);
        Some(match (part, short) {
            (Part::Whole, None) => Lies::Whole,
            (Part::Whole, Some(short)) => Lies::Wide(short),
            (Part::Places(_, unit), _) => Lies::Indices(sliced()?, unit),
            (Part::Sum, _) => return None,
            (_, Some(short)) => Lies::Piece(short, sliced()?),
            (_, None) => Lies::Direct(sliced().filter(|sliced| sliced.outer == 1)?),
        })
    }

    fn result(part: Part, ty: &Type, short: Option<Short>, slices: usize) -> Option<Lies> {
        match (part, short) {
            (Part::Sum, short) => {
                let bytes = ty.byte_size()?.0 as usize;
                Some(Lies::Sum(short.map_or(bytes / size_of::<f32>(), |short| short.elements), short))
            }
            (Part::Whole, Some(_)) => None,
            _ => Lies::operand(part, ty, short, slices),
        }
    }

    /// Bytes of its rooms that hold for all pieces, and bytes of its room in a piece.
    fn rooms(self, count: usize) -> (usize, usize) {
        let room = |elements: usize| (elements * size_of::<f32>()).next_multiple_of(ALIGNMENT);
        match self {
            Lies::Whole | Lies::Direct(_) => (0, 0),
            Lies::Wide(short) => (room(short.elements), 0),
            Lies::Piece(_, sliced) => (0, room(sliced.elements(count))),
            Lies::Indices(sliced, _) => (0, room(2 * sliced.elements(count))),
            Lies::Sum(elements, _) => (room(elements), room(elements)),
        }
    }
}

/// The operator cut into pieces.
struct Pieces {
    slices: usize,
    /// Slices of a piece.
    count: usize,
    operands: Vec<Lies>,
    results: Vec<Lies>,
    /// For each operand, the result whose buffer it is in.
    in_result: Vec<Option<usize>>,
    kernel: Kernel,
    /// The kernel of the last piece, if it has fewer slices.
    last: Option<Kernel>,
    /// Bytes of the rooms that hold for all pieces, and of those of a piece.
    rooms: (usize, usize),
}

/// The kernel of a node, made by `make` for `f32` and run piece by piece; none if the operator cannot be cut, or needs no cut.
pub(super) fn piecewise(
    spec: &Spec<'_>,
    wide: &Wide,
    whole: &Kernel,
    make: fn(&Spec<'_>) -> Made,
    most: usize,
) -> Option<Kernel> {
    let widened = wide.spec(spec);
    let cut = cuts::cut(&widened)?;
    let stored = |list: &[Option<&Type>], index: usize| list.get(index).copied().flatten().cloned();
    let operand_types: Vec<Option<&Type>> = spec.operands.iter().map(|o| o.map(|o| o.ty)).collect();
    let in_result: Vec<Option<usize>> = (0..spec.operands.len())
        .map(|index| spec.in_place.iter().find(|pair| pair.0 == index).map(|pair| pair.1))
        .collect();
    let part = |parts: &[Part], index: usize| parts.get(index).copied().unwrap_or(Part::Whole);
    let lies_of = |index: usize| match stored(&operand_types, index) {
        Some(ty) => Lies::operand(part(&cut.operands, index), &ty, wide.operands[index], cut.slices),
        None => Some(Lies::Whole),
    };
    let operands: Vec<Lies> = (0..spec.operands.len()).map(lies_of).collect::<Option<_>>()?;
    let written = |index: usize| spec.in_place.iter().find(|pair| pair.1 == index).map(|pair| pair.0);
    let result_type =
        |index: usize| stored(&spec.results, index).or_else(|| stored(&operand_types, written(index)?));
    let lies_of = |index: usize| match result_type(index) {
        Some(ty) => Lies::result(part(&cut.results, index), &ty, wide.results[index], cut.slices),
        None => Some(Lies::Whole),
    };
    let results: Vec<Lies> = (0..wide.results.len()).map(lies_of).collect::<Option<_>>()?;
    // Overwritten operands are read piece by piece.
    let is_in_pieces = |lies: Lies| matches!(lies, Lies::Direct(_) | Lies::Piece(..));
    let fits = |pair: &(usize, usize)| is_in_pieces(operands[pair.0]) && is_in_pieces(results[pair.1]);
    if !spec.in_place.iter().all(fits) {
        return None;
    }
    let per_slice: usize = (operands.iter().chain(&results))
        .map(|lies| if let Lies::Piece(_, sliced) = lies { sliced.elements(1) } else { 0 })
        .sum();
    let count = (most / per_slice.max(1)).max(cut.least.min(most)).max(1);
    if per_slice == 0 || count >= cut.slices {
        return None;
    }
    let kernel = piece(&widened, &cut, count, make)?;
    let left_over = cut.slices % count;
    let last = if left_over > 0 { Some(piece(&widened, &cut, left_over, make)?) } else { None };
    let rooms = (operands.iter().chain(&results)).map(|lies| lies.rooms(count));
    let rooms = rooms.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let inner = kernel.workspace().0.max(last.as_ref().map_or(0, |last| last.workspace().0)) as usize;
    let check = whole.own_check();
    let pieces = Pieces { slices: cut.slices, count, operands, results, in_result, kernel, last, rooms };
    let workspace = rooms.0.saturating_add(rooms.1).saturating_add(inner);
    let run = move |io: Io<'_>, step: StepContext| pieces.run(io, step);
    Some(Kernel::random(run).with_workspace::<u8>(workspace).checked_as(check))
}

/// The kernel of a piece with `count` slices.
fn piece(widened: &Spec<'_>, cut: &Cut, count: usize, make: fn(&Spec<'_>) -> Made) -> Option<Kernel> {
    let of = |parts: &[Part], index: usize, ty: &Type| {
        parts.get(index).copied().unwrap_or(Part::Whole).of(ty, count)
    };
    let operands: Vec<Option<Type>> = (widened.operands.iter().enumerate())
        .map(|(index, operand)| operand.as_ref().map(|operand| of(&cut.operands, index, operand.ty)))
        .collect();
    let results: Vec<Option<Type>> = (widened.results.iter().enumerate())
        .map(|(index, ty)| ty.map(|ty| of(&cut.results, index, ty)))
        .collect();
    let mut spec = widened.clone();
    for (index, operand) in spec.operands.iter_mut().enumerate() {
        if let (Some(operand), Some(ty)) = (operand, &operands[index]) {
            operand.ty = ty;
            if cut.operands.get(index).is_some_and(|part| *part != Part::Whole) {
                operand.constant = None;
            }
        }
    }
    spec.results = results.iter().map(Option::as_ref).collect();
    make(&spec).ok()
}

/// A piece of a node on short floats.
#[derive(Clone, Debug)]
pub struct ShortPiece {
    /// By operand and by result, the type of the part that the piece reads or writes.
    types: [Vec<Option<Type>>; 2],
    /// By operand and by result, the distance in bytes of this part from the tensor's first element.
    pub offsets: [Vec<u64>; 2],
}

impl ShortPiece {
    /// The node with the parts in place of its tensors.
    pub fn spec<'a>(&'a self, spec: &Spec<'a>) -> Spec<'a> {
        let [operands, results] = &self.types;
        let mut part = spec.clone();
        for (operand, ty) in part.operands.iter_mut().zip(operands) {
            if let (Some(operand), Some(ty)) = (operand, ty) {
                operand.constant = operand.constant.filter(|_| operand.ty == ty);
                operand.ty = ty;
            }
        }
        part.results = results.iter().map(Option::as_ref).collect();
        part
    }
}

/// The largest number of pieces that are listed one by one; larger tensors have larger pieces.
const MOST_PIECES: usize = 1 << 10;

/// The node in pieces whose tensors' parts are contiguous, of at most `most` short elements where slices are not larger; none if the
/// operator cannot be cut so, needs no cut, or is one of a library's.
pub fn contiguous(spec: &Spec<'_>, most: usize) -> Option<Vec<ShortPiece>> {
    let wide = Wide::of(spec)?;
    let cut = cuts::cut(&wide.spec(spec)).filter(|cut| !cut.by_library)?;
    let part = |parts: &[Part], index: usize| parts.get(index).copied().unwrap_or(Part::Whole);
    let operands: Vec<(Part, Option<&Type>, bool)> = (spec.operands.iter().enumerate())
        .map(|(i, operand)| (part(&cut.operands, i), operand.map(|o| o.ty), wide.operands[i].is_some()))
        .collect();
    let results: Vec<(Part, Option<&Type>, bool)> = (spec.results.iter().enumerate())
        .map(|(i, ty)| (part(&cut.results, i), *ty, wide.results.get(i).is_some_and(Option::is_some)))
        .collect();
    let mut per_slice = 0;
    for (is_result, &(part, ty, is_short)) in
        operands.iter().map(|o| (false, o)).chain(results.iter().map(|r| (true, r)))
    {
        let Some(ty) = ty else { continue };
        match part {
            Part::Whole if is_result && is_short => return None,
            Part::Whole => {}
            Part::Sum | Part::Places(..) => return None,
            part => {
                let sliced = Sliced::of(part, ty, cut.slices).filter(|sliced| sliced.outer == 1)?;
                per_slice += if is_short { sliced.inner } else { 0 };
            }
        }
    }
    let count = (most / per_slice.max(1)).max(1).max(cut.slices.div_ceil(MOST_PIECES));
    if per_slice == 0 || count >= cut.slices {
        return None;
    }
    let piece = |start: usize| {
        let count = count.min(cut.slices - start);
        let of = |list: &[(Part, Option<&Type>, bool)]| {
            let one = |&(part, ty, _): &(Part, Option<&Type>, bool)| {
                let offset =
                    ty.and_then(|ty| Sliced::of(part, ty, cut.slices)).map_or(0, |s| s.range(start, 0).start);
                (ty.map(|ty| part.of(ty, count)), offset as u64)
            };
            list.iter().map(one).unzip::<_, _, Vec<_>, Vec<_>>()
        };
        let ((operands, of_operands), (results, of_results)) = (of(&operands), of(&results));
        ShortPiece { types: [operands, results], offsets: [of_operands, of_results] }
    };
    Some((0..cut.slices).step_by(count).map(piece).collect())
}

/// The next bytes of a room.
fn next<'a>(left: &mut &'a mut [u8], bytes: usize) -> &'a mut [u8] {
    let (room, rest) = take(left).split_at_mut(bytes.next_multiple_of(ALIGNMENT));
    *left = rest;
    &mut room[..bytes]
}

fn as_floats(bytes: &mut [u8]) -> &mut [f32] {
    if bytes.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(bytes) }
}

impl Pieces {
    fn run(&self, mut io: Io<'_>, step: StepContext) {
        let (mut fixed, rest) = io.workspace::<u8>().split_at_mut(self.rooms.0);
        let (pieces, inner) = rest.split_at_mut(self.rooms.1);
        let operands = io.operands();
        let mut results: Vec<&mut [u8]> = io.results().iter_mut().map(take).collect();
        let mut whole: Vec<&[u8]> = Vec::with_capacity(self.operands.len());
        for (index, lies) in self.operands.iter().enumerate() {
            whole.push(match *lies {
                Lies::Wide(short) => {
                    let room = as_floats(next(&mut fixed, short.elements * size_of::<f32>()));
                    short.widen(operands[index], room);
                    bytemuck::cast_slice(room)
                }
                _ => operands[index],
            });
        }
        let mut sums: Vec<&mut [f32]> = Vec::new();
        for lies in &self.results {
            if let Lies::Sum(elements, _) = *lies {
                let sum = as_floats(next(&mut fixed, elements * size_of::<f32>()));
                sum.fill(0.0);
                sums.push(sum);
            }
        }
        for start in (0..self.slices).step_by(self.count) {
            self.piece(start, &whole, &mut results, &mut sums, &mut *pieces, &mut *inner, step);
        }
        let mut sums = sums.into_iter();
        for (lies, result) in self.results.iter().zip(results) {
            if let (Lies::Sum(_, short), Some(sum)) = (*lies, sums_if(lies, &mut sums)) {
                match short {
                    _ if result.is_empty() => {}
                    Some(short) => short.round(sum, result),
                    None => result.copy_from_slice(bytemuck::cast_slice(sum)),
                }
            }
        }
    }

    /// Runs the piece whose first slice is `start`.
    #[expect(clippy::too_many_arguments, reason = "they are the state of one run")]
    fn piece(
        &self,
        start: usize,
        whole: &[&[u8]],
        results: &mut [&mut [u8]],
        sums: &mut [&mut [f32]],
        mut rooms: &mut [u8],
        workspace: &mut [u8],
        step: StepContext,
    ) {
        let count = self.count.min(self.slices - start);
        let mut given: Vec<&[u8]> = Vec::with_capacity(whole.len());
        for (index, lies) in self.operands.iter().enumerate() {
            given.push(match *lies {
                Lies::Whole | Lies::Wide(_) | Lies::Sum(..) => whole[index],
                Lies::Direct(sliced) if !whole[index].is_empty() => &whole[index][sliced.range(start, count)],
                Lies::Direct(_) => &[],
                Lies::Piece(short, sliced) => {
                    let room = as_floats(next(&mut rooms, sliced.elements(count) * size_of::<f32>()));
                    match self.in_result[index] {
                        Some(result) => widen(short, sliced, results[result], room, start, count),
                        None => widen(short, sliced, whole[index], room, start, count),
                    }
                    bytemuck::cast_slice(room)
                }
                Lies::Indices(sliced, unit) => {
                    let room = next(&mut rooms, sliced.elements(count) * size_of::<i64>());
                    let room: &mut [i64] = bytemuck::cast_slice_mut(room);
                    let given: &[i64] = bytemuck::cast_slice(&whole[index][sliced.range(start, count)]);
                    let shift = (start * unit) as i64;
                    room.iter_mut().zip(given).for_each(|(out, at)| *out = at.wrapping_sub(shift));
                    bytemuck::cast_slice(room)
                }
            });
        }
        let mut held: Vec<&mut [u8]> = Vec::new();
        for lies in &self.results {
            let bytes = match *lies {
                Lies::Piece(_, sliced) => sliced.elements(count) * size_of::<f32>(),
                Lies::Indices(sliced, _) => sliced.elements(count) * size_of::<i64>(),
                Lies::Sum(elements, _) => elements * size_of::<f32>(),
                _ => continue,
            };
            held.push(next(&mut rooms, bytes));
        }
        let mut wanted: Vec<&mut [u8]> = Vec::with_capacity(results.len());
        let mut rooms_held = held.iter_mut();
        for (lies, result) in self.results.iter().zip(results.iter_mut()) {
            let is_wanted = !result.is_empty();
            wanted.push(match *lies {
                Lies::Direct(sliced) if is_wanted => &mut result[sliced.range(start, count)],
                Lies::Whole | Lies::Wide(_) | Lies::Direct(_) => result,
                Lies::Piece(..) | Lies::Indices(..) | Lies::Sum(..) => match rooms_held.next() {
                    Some(room) if is_wanted => room,
                    _ => &mut [],
                },
            });
        }
        let kernel = self.last.as_ref().filter(|_| count < self.count).unwrap_or(&self.kernel);
        kernel.run(Io::new(&given, &mut wanted, workspace), step);
        let (mut held, mut sums) = (held.into_iter(), sums.iter_mut());
        for (lies, result) in self.results.iter().zip(results) {
            let is_wanted = !result.is_empty();
            match *lies {
                Lies::Piece(short, sliced) => {
                    if let Some(room) = held.next().filter(|_| is_wanted) {
                        round(short, sliced, as_floats(room), result, start, count);
                    }
                }
                Lies::Indices(sliced, unit) => {
                    if let Some(room) = held.next().filter(|_| is_wanted) {
                        let out: &mut [i64] =
                            bytemuck::cast_slice_mut(&mut result[sliced.range(start, count)]);
                        let shift = (start * unit) as i64;
                        out.iter_mut()
                            .zip(bytemuck::cast_slice::<_, i64>(room))
                            .for_each(|(o, at)| *o = at + shift);
                    }
                }
                Lies::Sum(..) => {
                    if let (Some(room), Some(sum)) = (held.next(), sums.next())
                        && is_wanted
                    {
                        sum.iter_mut().zip(&*as_floats(room)).for_each(|(sum, part)| *sum += part);
                    }
                }
                Lies::Whole | Lies::Wide(_) | Lies::Direct(_) => {}
            }
        }
    }
}

/// The next sum, if the result is one.
fn sums_if<'a>(lies: &Lies, sums: &mut impl Iterator<Item = &'a mut [f32]>) -> Option<&'a mut [f32]> {
    if matches!(lies, Lies::Sum(..)) { sums.next() } else { None }
}

/// Widens the slices from `start` on; groups of slices lie apart in the tensor, and together in the room.
fn widen(short: Short, sliced: Sliced, from: &[u8], to: &mut [f32], start: usize, count: usize) {
    if sliced.outer == 1 {
        return short.widen(&from[sliced.range(start, count)], to);
    }
    let group = sliced.slices * sliced.inner * sliced.width;
    let parts = to.par_chunks_mut((count * sliced.inner).max(1)).enumerate();
    parts.with_min_len(crate::host::least(count * sliced.inner)).for_each(|(i, to)| {
        short.widen_here(&from[i * group..][sliced.range(start, count)], to);
    });
}

/// Rounds the slices from `start` on.
fn round(short: Short, sliced: Sliced, from: &[f32], to: &mut [u8], start: usize, count: usize) {
    if sliced.outer == 1 {
        return short.round(from, &mut to[sliced.range(start, count)]);
    }
    let group = (sliced.slices * sliced.inner * sliced.width).max(1);
    let parts = to.par_chunks_mut(group).zip(from.par_chunks((count * sliced.inner).max(1)));
    parts.with_min_len(crate::host::least(count * sliced.inner)).for_each(|(to, from)| {
        short.round_here(from, &mut to[sliced.range(start, count)]);
    });
}

#[cfg(test)]
mod tests {
    use lmsc_ir::rng::{Rng, Source};
    use lmsc_ir::{Graph, Storages};

    use super::*;
    use crate::short::around;
    use crate::table::constructor;

    /// Inputs, results and a node, whose result of this index, if any, is a sum over pieces.
    const CASES: &[(&str, &str, &str, bool)] = &[
        ("bfloat16[9,5] a, bfloat16[5,7] b", "bfloat16[9,7] y", "MatMul(a, b)", false),
        ("bfloat16[5,3] a, bfloat16[3,17] b, bfloat16[17] c", "bfloat16[5,17] y", "Gemm(a, b, c)", false),
        (
            "bfloat16[9,5] a, bfloat16[4,5] b, bfloat16[9,1] c",
            "bfloat16[9,4] y",
            "Gemm<transB = 1>(a, b, c)",
            false,
        ),
        ("bfloat16[2,3,4,5] a, bfloat16[2,3,5,4] b", "bfloat16[2,3,4,4] y", "MatMul(a, b)", false),
        ("bfloat16[2,13,5] a, bfloat16[5,4] b", "bfloat16[2,13,4] y", "MatMul(a, b)", false),
        (
            "bfloat16[7,9] a, bfloat16[7,4] b",
            "bfloat16[9,4] y",
            "com.microsoft.FusedMatMul<transA = 1>(a, b)",
            false,
        ),
        (
            "float16[7,4] a, float16[11,4] b",
            "float16[7,11] y",
            "com.microsoft.FusedMatMul<transB = 1>(a, b)",
            false,
        ),
        ("bfloat16[3,2,5,5] x, bfloat16[4,2,3,3] w", "bfloat16[3,4,3,3] y", "Conv(x, w)", false),
        (
            "bfloat16[3,4,3,3] dy, bfloat16[3,2,5,5] x, bfloat16[4,2,3,3] w",
            "bfloat16[3,2,5,5] dx, bfloat16[4,2,3,3] dw, bfloat16[4] db",
            "com.microsoft.ConvGrad(dy, x, w)",
            true,
        ),
        ("bfloat16[7,3,5] x", "bfloat16[7,3,5] y", "Softmax(x)", false),
        ("bfloat16[7,3,5] x", "bfloat16[7,3,5] y", "LogSoftmax<axis = 1>(x)", false),
        (
            "bfloat16[7,3,5] dy, bfloat16[7,3,5] y",
            "bfloat16[7,3,5] dx",
            "com.microsoft.SoftmaxGrad_13(dy, y)",
            false,
        ),
        (
            "bfloat16[7,3,5] x, bfloat16[5] s, bfloat16[5] b",
            "bfloat16[7,3,5] y, float[7,3,1] m, float[7,3,1] i",
            "LayerNormalization(x, s, b)",
            false,
        ),
        (
            "bfloat16[21,5] dy, bfloat16[21,5] x, bfloat16[5] s, float[21] m, float[21] i",
            "bfloat16[21,5] dx, bfloat16[5] ds, bfloat16[5] db",
            "com.microsoft.LayerNormalizationGrad(dy, x, s, m, i)",
            true,
        ),
        (
            "bfloat16[3,4,5] x, float[4] s, float[4] b, float[4] m, float[4] v",
            "bfloat16[3,4,5] y, float[4] mean, float[4] var",
            "BatchNormalization<training_mode = 1>(x, s, b, m, v)",
            false,
        ),
        (
            "bfloat16[3,4,5] dy, bfloat16[3,4,5] x, float[4] s, float[4] m, float[4] i",
            "bfloat16[3,4,5] dx, float[4] ds, float[4] db",
            "com.microsoft.BatchNormalizationGrad(dy, x, s, m, i)",
            false,
        ),
        (
            "bfloat16[3,4,5] x, bfloat16[4] s, bfloat16[4] b",
            "bfloat16[3,4,5] y",
            "InstanceNormalization(x, s, b)",
            false,
        ),
        (
            "bfloat16[2,3,6,5] x",
            "bfloat16[2,3,3,2] y, int64[2,3,3,2] i",
            "MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)",
            false,
        ),
        ("bfloat16[2,3,6,5] x", "bfloat16[2,3,1,1] y", "GlobalAveragePool(x)", false),
        (
            "bfloat16[9,4] x, int64[9] l",
            "bfloat16[9] y, bfloat16[9,4] p",
            "SoftmaxCrossEntropyLoss<reduction = \"none\">(x, l)",
            false,
        ),
        (
            "bfloat16[9,4] dy, bool[9,4] m, float[] r",
            "bfloat16[9,4] dx",
            "com.microsoft.DropoutGrad(dy, m, r)",
            false,
        ),
        (
            "float[1] r, int64[1] t, float[9,4] w, bfloat16[9,4] g, float[9,4] m, float[9,4] v",
            "float[9,4] w1, float[9,4] m1, float[9,4] v1",
            "ai.lmsc.AdamWOptimizer(r, t, w, g, m, v)",
            false,
        ),
    ];

    /// Zeroed bytes at a multiple of 64, in words.
    fn room(bytes: usize) -> Vec<[u64; 8]> {
        vec![[0; 8]; bytes.div_ceil(64)]
    }

    fn run(
        kernel: &Kernel,
        operands: &[Vec<[u64; 8]>],
        lengths: &[usize],
        results: &[usize],
    ) -> Vec<Vec<u8>> {
        let given: Vec<&[u8]> = operands
            .iter()
            .zip(lengths)
            .map(|(room, &n)| &bytemuck::cast_slice::<_, u8>(room)[..n])
            .collect();
        let mut rooms: Vec<Vec<[u64; 8]>> = results.iter().map(|&n| room(n)).collect();
        let mut wanted: Vec<&mut [u8]> = (rooms.iter_mut().zip(results))
            .map(|(room, &n)| &mut bytemuck::cast_slice_mut::<_, u8>(room)[..n])
            .collect();
        let mut workspace = room(kernel.workspace().0 as usize);
        let workspace = bytemuck::cast_slice_mut::<_, u8>(&mut workspace);
        kernel.run(Io::new(&given, &mut wanted, workspace), StepContext::default());
        rooms
            .iter()
            .zip(results)
            .map(|(room, &n)| bytemuck::cast_slice::<_, u8>(room)[..n].to_vec())
            .collect()
    }

    #[test]
    fn pieces_compute_what_the_whole_computes() {
        for &(inputs, outputs, call, sums) in CASES {
            let result_names: Vec<&str> =
                outputs.split(", ").map(|o| o.rsplit(' ').next().unwrap()).collect();
            let text = format!(
                "<opset: \"\" = 17, \"com.microsoft\" = 1, \"ai.lmsc\" = 1>\ng ({inputs}) => ({outputs}) {{ [n] {outputs} = {call} }}"
            );
            let graph = Graph::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"));
            let spec = Spec::of(&graph, &Storages::of(&graph), graph.order()[0], |_| None);
            let spec = Spec { in_place: Vec::new(), ..spec };
            let make = constructor(spec.op);
            let wide = Wide::of(&spec).unwrap();
            let kernel = make(&wide.spec(&spec)).unwrap_or_else(|e| panic!("{call}: {}", e.0));
            let pieces =
                piecewise(&spec, &wide, &kernel, make, 2).unwrap_or_else(|| panic!("{call} is not cut"));
            let whole = around(kernel, &wide, &[]);
            let mut rng = Rng::new(3);
            let lengths: Vec<usize> =
                spec.operands.iter().map(|o| o.unwrap().ty.byte_size().unwrap().0 as usize).collect();
            let operands: Vec<Vec<[u64; 8]>> = spec
                .operands
                .iter()
                .zip(&lengths)
                .map(|(operand, &length)| {
                    let mut bytes = room(length);
                    let element = operand.unwrap().ty.as_tensor().unwrap().element;
                    let mut number = || rng.below(1 << 10) as f32 / 512.0 - 0.5;
                    let out = &mut bytemuck::cast_slice_mut::<_, u8>(&mut bytes)[..length];
                    match element {
                        lmsc_ir::ElementType::Float => {
                            out.as_chunks_mut().0.iter_mut().for_each(|b| *b = number().abs().to_le_bytes())
                        }
                        lmsc_ir::ElementType::Bfloat16 => {
                            out.as_chunks_mut()
                                .0
                                .iter_mut()
                                .for_each(|b| *b = half::bf16::from_f32(number()).to_le_bytes());
                        }
                        lmsc_ir::ElementType::Float16 => {
                            out.as_chunks_mut()
                                .0
                                .iter_mut()
                                .for_each(|b| *b = half::f16::from_f32(number()).to_le_bytes());
                        }
                        lmsc_ir::ElementType::Int64 => out
                            .as_chunks_mut()
                            .0
                            .iter_mut()
                            .enumerate()
                            .for_each(|(i, b)| *b = (1 + i as i64 % 3).to_le_bytes()),
                        _ => out.iter_mut().enumerate().for_each(|(i, b)| *b = (i % 2) as u8),
                    }
                    bytes
                })
                .collect();
            let results: Vec<usize> =
                spec.results.iter().map(|r| r.unwrap().byte_size().unwrap().0 as usize).collect();
            let expected = run(&whole, &operands, &lengths, &results);
            let found = run(&pieces, &operands, &lengths, &results);
            for (index, (expected, found)) in expected.iter().zip(&found).enumerate() {
                if sums && index > 0 {
                    let floats = |bytes: &[u8]| -> Vec<f32> {
                        bytes.as_chunks().0.iter().map(|b| half::bf16::from_le_bytes(*b).to_f32()).collect()
                    };
                    let close = floats(expected)
                        .into_iter()
                        .zip(floats(found))
                        .all(|(a, b)| (a - b).abs() <= 0.01 * a.abs().max(1.0));
                    assert!(close, "{call}: {}", result_names[index]);
                } else {
                    assert_eq!(expected, found, "{call}: {}", result_names[index]);
                }
            }
        }
    }
}
