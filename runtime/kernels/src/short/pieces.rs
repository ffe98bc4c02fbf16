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
const PIECE: usize = 1 << 20;

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
    /// In a room for the indices of the piece, which count from its first slice on; each slice has so many elements.
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
    /// By operand, the result whose buffer it is in.
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
    // What is overwritten is read piece by piece.
    let is_in_pieces = |lies: Lies| matches!(lies, Lies::Direct(_) | Lies::Piece(..));
    let fits = |pair: &(usize, usize)| is_in_pieces(operands[pair.0]) && is_in_pieces(results[pair.1]);
    if !spec.in_place.iter().all(fits) {
        return None;
    }
    let per_slice: usize = (operands.iter().chain(&results))
        .map(|lies| if let Lies::Piece(_, sliced) = lies { sliced.elements(1) } else { 0 })
        .sum();
    let count = (PIECE / per_slice.max(1)).max(cut.least).max(1);
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

/// The kernel of a piece of so many slices.
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
