//! Elementwise loops: chunks that stay in the first-level cache, of operands that may be broadcast, of a short type, or
//! overwritten.

use std::array::from_fn;

use bytemuck::Zeroable;

use super::{GRAIN, Made, chunks};
use crate::element::Stored;
use crate::kernel::{Io, Kernel};
use crate::meaning::Broadcast;
use crate::spec::{Spec, SpecError, refuse};

/// Number of elements of a chunk.
pub(super) const CHUNK: usize = 1024;

/// Parameters that an operator takes from its attributes.
pub(crate) type Parameters = [f64; 3];

/// Computes a chunk of a result from chunks of K operands.
pub(crate) type Each<M, O, const K: usize> = fn([&[M]; K], &Parameters, &mut [O]);

/// An operand's elements for `length` elements of the result from `start` on: a slice of it, or a copy in `room`.
#[inline]
pub(super) fn view<'a, S: Stored>(
    plan: &Broadcast,
    operand: usize,
    elements: &'a [S],
    start: usize,
    length: usize,
    room: &'a mut [S::Math],
) -> &'a [S::Math] {
    if plan.is_whole(operand)
        && let Some(direct) = S::direct(&elements[start..start + length])
    {
        return direct;
    }
    let mut at = 0;
    plan.walk(operand, start, length, |first, step, n| {
        let room = &mut room[at..at + n];
        if step == 0 {
            room.fill(elements[first].read());
        } else {
            let elements = &elements[first..first + n];
            match S::direct(elements) {
                Some(direct) => room.copy_from_slice(direct),
                None => room.iter_mut().zip(elements).for_each(|(r, e)| *r = e.read()),
            }
        }
        at += n;
    });
    &room[..length]
}

/// Runs `part(start, elements)` over all parts of a result, on all threads if there are many.
pub(super) fn parts<T: Send>(out: &mut [T], part: impl Fn(usize, &mut [T]) + Sync) {
    chunks(out, GRAIN, 1, &|i, out| part(i * GRAIN, out));
}

/// The plan of an operator whose first K operands are broadcast to its first result, and which of them are overwritten.
pub(super) fn plan<S: Stored, O: Stored, const K: usize>(
    spec: &Spec<'_>,
) -> Result<(Broadcast, [bool; K]), SpecError> {
    let element = spec.element(0)?;
    (1..K).try_for_each(|i| spec.expect(i, element))?;
    // A result has the operands' type, or is a truth value.
    if size_of::<S>() != size_of::<O>() || spec.result(0)?.element != element {
        match size_of::<O>() {
            1 => spec.expect_result(0, lmsc_ir::ElementType::Bool)?,
            _ => spec.expect_result(0, element)?,
        }
    }
    let operands = (0..K).map(|i| spec.dims(i)).collect::<Result<Vec<_>, _>>()?;
    let plan = Broadcast::new(&operands, &spec.result_dims(0)?)?;
    let in_place: [bool; K] = from_fn(|i| spec.is_in_place(i, 0));
    check_in_place(&plan, &in_place, size_of::<S>() == size_of::<O>())?;
    Ok((plan, in_place))
}

/// Refuses to overwrite an operand whose size differs from the result's.
pub(super) fn check_in_place(plan: &Broadcast, in_place: &[bool], same_size: bool) -> Result<(), SpecError> {
    let bad = (0..in_place.len()).find(|&i| in_place[i] && !(plan.is_whole(i) && same_size));
    match bad {
        Some(i) => refuse(format!("operand {i} is to be overwritten by a result of another size")),
        None => Ok(()),
    }
}

/// The kernel that computes each element of result 0 from those of the first K operands.
pub(super) fn kernel<S: Stored, O: Stored, const K: usize>(
    spec: &Spec<'_>,
    parameters: Parameters,
    f: Each<S::Math, O::Math, K>,
) -> Made {
    let (plan, in_place) = plan::<S, O, K>(spec)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let sources: [&[S]; K] = from_fn(|i| io.get(i));
        parts(io.take::<O>(0), |start, out| {
            by_chunk::<S, O, K>(&plan, in_place, sources, start, out, |views, out| {
                f(views, &parameters, out)
            });
        });
    }))
}

/// Computes part of a result, chunk by chunk.
#[inline]
pub(super) fn by_chunk<S: Stored, O: Stored, const K: usize>(
    plan: &Broadcast,
    in_place: [bool; K],
    sources: [&[S]; K],
    start: usize,
    out: &mut [O],
    mut f: impl FnMut([&[S::Math]; K], &mut [O::Math]),
) {
    let mut rooms = [[S::Math::zeroed(); CHUNK]; K];
    let mut result = [O::Math::zeroed(); CHUNK];
    let scalar: [bool; K] = from_fn(|i| plan.is_scalar(i) && !in_place[i] && !sources[i].is_empty());
    for i in (0..K).filter(|&i| scalar[i]) {
        rooms[i] = [sources[i][0].read(); CHUNK];
    }
    for (i, out) in out.chunks_mut(CHUNK).enumerate() {
        let (start, n) = (start + i * CHUNK, out.len());
        for (i, room) in rooms.iter_mut().enumerate().filter(|(i, _)| in_place[*i]) {
            debug_assert!(sources[i].is_empty());
            let elements: &[S] = bytemuck::cast_slice(out);
            room.iter_mut().zip(elements).for_each(|(r, e)| *r = e.read());
        }
        let mut rest = rooms.iter_mut();
        let views: [&[S::Math]; K] = from_fn(|i| {
            let room = rest.next().expect("one an operand");
            if in_place[i] || scalar[i] { &room[..n] } else { view(plan, i, sources[i], start, n, room) }
        });
        match O::direct_mut(out) {
            Some(out) => f(views, out),
            None => {
                f(views, &mut result[..n]);
                out.iter_mut().zip(&result).for_each(|(o, &r)| *o = O::write(r));
            }
        }
    }
}

/// The last step of a fold, which gets the number of operands.
type Finish<M> = fn(&mut [M], usize);

/// The kernel that folds any number of operands into result 0, element by element.
pub(super) fn fold<S: Stored>(
    spec: &Spec<'_>,
    step: fn(&mut [S::Math], &[S::Math]),
    finish: Option<Finish<S::Math>>,
) -> Made {
    let element = spec.element(0)?;
    let count = spec.operands.len();
    (1..count).try_for_each(|i| spec.expect(i, element))?;
    spec.expect_result(0, element)?;
    let operands = (0..count).map(|i| spec.dims(i)).collect::<Result<Vec<_>, _>>()?;
    let plan = Broadcast::new(&operands, &spec.result_dims(0)?)?;
    let in_place: Vec<bool> = (0..count).map(|i| spec.is_in_place(i, 0)).collect();
    check_in_place(&plan, &in_place, true)?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let out = io.take::<S>(0);
        parts(out, |start, out| {
            let mut room = [S::Math::zeroed(); CHUNK];
            let mut own = [S::Math::zeroed(); CHUNK];
            let mut sum = [S::Math::zeroed(); CHUNK];
            for (i, out) in out.chunks_mut(CHUNK).enumerate() {
                let (start, n) = (start + i * CHUNK, out.len());
                own.iter_mut().zip(&*out).for_each(|(r, e)| *r = e.read());
                for (i, &in_place) in in_place.iter().enumerate() {
                    let x = if in_place {
                        &own[..n]
                    } else {
                        view(&plan, i, io.get::<S>(i), start, n, &mut room)
                    };
                    match i {
                        0 => sum[..n].copy_from_slice(x),
                        _ => step(&mut sum[..n], x),
                    }
                }
                if let Some(finish) = finish {
                    finish(&mut sum[..n], in_place.len());
                }
                out.iter_mut().zip(&sum).for_each(|(o, &s)| *o = S::write(s));
            }
        });
    }))
}
