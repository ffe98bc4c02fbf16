//! The smallest arenas for which plans with addresses are known, and those plans.

use lmsc_schedule::problem::Problem;
use lmsc_schedule::{Plan, Request, Schedule};

use super::frame::Frame;
use super::improve::Placement;
use super::search::emit;
use super::tight::{tight, unmoved};
use super::{Arena, Placed};

/// The bytes of the smallest arena in which a plan that only swaps whole tensors is known to have addresses.
pub fn least(problem: &Problem, alignment: u64) -> u64 {
    least_of(&Plan::without_recomputation(problem, Schedule::default()), alignment)
}

/// The bytes of the smallest arena found in which everything has an address and nothing is swapped.
pub fn peak(problem: &Problem, alignment: u64) -> u64 {
    smallest(alignment, |arena| unmoved(problem, arena))
}

/// The bytes of the smallest arena in which the plan's operators are known to have addresses, with swap sets chosen anew.
pub fn least_of(plan: &Plan, alignment: u64) -> u64 {
    smallest(alignment, |arena| tight(plan, arena))
}

/// The bytes of the smallest arena that is not refused; a refusal gives the next size to try.
fn smallest<T>(alignment: u64, place: impl Fn(Arena) -> Result<T, u64>) -> u64 {
    // A larger arena may have a larger alignment, which needs more bytes.
    let mut bytes = 0;
    loop {
        match place(Arena::with(bytes, alignment)) {
            Ok(_) => return bytes,
            Err(needed) if needed <= bytes => return u64::MAX,
            Err(needed) => bytes = needed,
        }
    }
}

/// The plan without copies, with addresses, and its arena, which is at most as large as the request's budget.
pub fn at_peak(request: &Request) -> Option<(Placed, Arena)> {
    let Request { problem, budget, alignment, .. } = *request;
    in_arena(request, |arena| unmoved(problem, arena)).or_else(|| {
        // The layout search for a given size may miss a layout of a smaller size.
        let arena = Arena::with(peak(problem, alignment), alignment);
        let (plan, frame, placement) = unmoved(problem, arena).ok().filter(|_| arena.bytes <= budget)?;
        Some((emit(plan, &frame, &placement)?, arena))
    })
}

/// The plan that `place` finds in an arena of the request's budget. If it finds none, the alignment is halved repeatedly: a
/// floor was reported for a smaller arena, and smaller arenas have a smaller alignment.
fn in_arena(
    request: &Request,
    place: impl Fn(Arena) -> Result<(Plan, Frame, Placement), u64>,
) -> Option<(Placed, Arena)> {
    let mut arena = Arena::of(request);
    loop {
        if let Ok((plan, frame, placement)) = place(arena) {
            return Some((emit(plan, &frame, &placement)?, arena));
        }
        arena.alignment /= 2;
        if arena.alignment < super::LEAST_ALIGNMENT {
            return None;
        }
    }
}

/// The operators of the plan with swaps and addresses chosen together, in an arena of the request's budget.
pub fn swaps_placed(request: &Request, plan: &Plan) -> Option<(Placed, Arena)> {
    in_arena(request, |arena| tight(plan, arena))
}
