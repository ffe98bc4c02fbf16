//! The smallest arenas for which plans with addresses are known, and those plans.

use super::frame::Frame;
use super::improve::Placement;
use super::search::{covers, emit, place};
use super::tight::{tight, unmoved};
use super::{Arena, Placed};
use crate::Floors;
use crate::planners::{Granularity, Plan, Planner, Request, planner};
use crate::problem::Problem;
use crate::schedule::Schedule;

/// The effort of the address search for plans that copy ranges, in percent. It is fixed, because the floor that is reported
/// must not change with `--effort`.
const EFFORT: u32 = 1;

/// Number of bisection steps between the counted bytes of a plan with ranges and an arena that is known to hold it.
const HALVINGS: u32 = 4;

/// The bytes of the smallest arena in which a plan that only swaps whole tensors is known to have addresses.
pub fn least(problem: &Problem, alignment: u64) -> u64 {
    least_of(&Plan::without_recomputation(problem, Schedule::default()), alignment)
}

/// The bytes of the smallest arena found in which everything has an address and nothing is swapped.
pub fn peak(problem: &Problem, alignment: u64) -> u64 {
    smallest(alignment, |arena| unmoved(problem, arena))
}

/// The bytes of the smallest arena in which the plan's operators are known to have addresses, with swap sets chosen anew.
fn least_of(plan: &Plan, alignment: u64) -> u64 {
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

/// Plans with ranges are searched only if their bytes, without addresses, are below this share of the smallest arena for whole
/// tensors, in percent: the gaps between ranges take the rest.
const WORTH: u64 = 98;

/// The plans of `auto` for the smallest budgets when bytes are counted and nothing has an address. A plan that recomputes, or
/// that copies ranges, is present only if it needs less memory than one that does not.
pub(crate) struct Counted {
    /// With whole tensors.
    whole: Option<Plan>,
    /// With ranges of tensors.
    ranges: Option<Plan>,
    /// The budget of that plan.
    ranges_bytes: u64,
}

impl Counted {
    /// The plans of the problem, whose smallest budgets, with counted bytes, are these floors.
    pub(crate) fn of(problem: &Problem, floors: Floors) -> Counted {
        let auto = planner("auto").expect("it is registered");
        let plan = |granularity, budget, larger: u64| {
            let request =
                Request { granularity, recompute: true, effort: 0, ..Request::new(problem, budget) };
            (budget < larger).then(|| (auto.run)(&request).ok())?
        };
        let Floors { whole_tensors, recomputation, ranges } = floors;
        Counted {
            whole: plan(Granularity::Whole, recomputation, whole_tensors),
            ranges: plan(Granularity::Ranges, ranges, recomputation / 100 * WORTH),
            ranges_bytes: ranges,
        }
    }

    /// The bytes of the smallest arena that is known with recomputation; `least` is one without.
    pub(crate) fn recomputation(&self, least: u64, alignment: u64) -> u64 {
        self.whole.as_ref().map_or(least, |plan| least_of(plan, alignment).min(least))
    }

    /// The bytes of the smallest arena that is known for plans of ranges, if it is smaller than `least`; and its plan.
    pub(crate) fn ranges(&self, least: u64, alignment: u64) -> Option<(u64, Placed)> {
        let plan = self.ranges.as_ref()?;
        let (mut below, mut above, mut found) = (self.ranges_bytes, least, None);
        let mut bytes = below;
        for _ in 0..HALVINGS {
            if bytes >= above {
                break;
            }
            match place(Arena::with(bytes, alignment), EFFORT, covers(plan, Granularity::Ranges)) {
                Some(placed) => {
                    above = bytes;
                    found = Some((bytes, placed));
                }
                None => below = bytes + 1,
            }
            bytes = below.midpoint(above);
        }
        found
    }
}

/// The plan without copies, with addresses, and its arena, which is at most as large as the request's budget.
pub(crate) fn at_peak(request: &Request) -> Option<(Placed, Arena)> {
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

/// A plan with addresses for the request's budget, and its arena. There is one for every budget that is at least the floor in
/// [`Floors::in_arena`](crate::Floors::in_arena).
pub(crate) fn at_floor(planner: &Planner, request: &Request) -> Option<(Placed, Arena)> {
    let problem = request.problem;
    let in_arena = |plan: &Plan| in_arena(request, |arena| tight(plan, arena));
    let recomputes = request.recompute && planner.name != "optimal";
    let swaps_only = in_arena(&Plan::without_recomputation(problem, Schedule::default()));
    if swaps_only.is_some() || !recomputes {
        return swaps_only;
    }
    let counted = Counted::of(problem, Floors::of(problem));
    let found = counted.whole.as_ref().and_then(in_arena);
    if found.is_some() || request.granularity == Granularity::Whole {
        return found;
    }
    let least = counted.recomputation(least(problem, request.alignment), request.alignment);
    let (bytes, placed) = counted.ranges(least, request.alignment)?;
    (bytes <= request.budget).then(|| (placed, Arena::with(bytes, request.alignment)))
}
