//! Plans with addresses: which plans are placed in the arena, and the fallbacks if none of them has addresses.

use lmsc_address::{self as address, AddressSearch, Arena, MOST_COMPARED, Placed};
use lmsc_planners::ours::{Manner, swap_only};
use lmsc_planners::{Configured, Planner, planner};
use lmsc_schedule::problem::Problem;
use lmsc_schedule::tuned::Tunable;
use lmsc_schedule::{CLOSE_GAP, Decision, Granularity, Plan, Request, Schedule};

use crate::Floors;

/// Numbers of pieces that make up the peak in plans of ranges; plans of whole tensors are made, too.
const PIECE_COUNTS: Tunable<[u64; 5]> = Tunable::new([50, 100, 200, 300, 600]);

/// Thousandths by which the budgets of these other plans are smaller.
const SMALLER_BUDGETS: [u64; 5] = [20, 40, 60, 90, 120];

/// Each plan is first placed with one part in this many of the effort; plans for smaller budgets are made with a third of that.
const FIRST_PLACEMENT_SHARE: Tunable<u32> = Tunable::new(10);

/// Number of the best plans whose searches go on with the whole effort, if addresses still cost more than tolerated.
const CONTINUED: usize = 2;

/// Effort of the address search for plans that copy ranges, in percent. It is fixed, because the floor that is
/// reported must not change with `--effort`.
const FLOOR_EFFORT: u32 = 1;

/// The planner's plan with addresses: of its plans for the arena and for smaller budgets, the one with the smallest makespan
/// found that has a placement; none if none is found.
///
/// Where the planner is ours, swap sets are chosen anew for the recomputed operators of `plan`.
pub fn place_plan(planner: &Configured<'_>, request: &Request, plan: &Plan) -> Option<Placed> {
    place_plan_unless(planner, request, plan, |_| false)
}

/// [`place_plan`] without its thorough part, if addresses cost more than they may but `enough` accepts the makespan of the
/// quick part.
pub(crate) fn place_plan_unless(
    planner: &Configured<'_>,
    request: &Request,
    plan: &Plan,
    enough: impl FnOnce(u64) -> bool,
) -> Option<Placed> {
    let arena = Arena::of(request);
    // After the end of the search there is one quick attempt.
    let all = if request.is_ended() { 1 } else { request.effort };
    let again = |budget, effort| planner.plan(&Request { budget, effort, ..*request });
    let nominal = plan.schedule.makespan();
    let satisfying = nominal + nominal / CLOSE_GAP.get();
    let makespan = |placed: &Option<Placed>| placed.as_ref().map_or(u64::MAX, |p| p.plan.schedule.makespan());
    let note = |nanos: u64, placed: &Option<Placed>| {
        if let Some(watch) = request.watch {
            let placed_nanos = placed.as_ref().map(|placed| placed.plan.schedule.makespan());
            watch.decided(|| Decision::Addresses { nanos, placed_nanos });
        }
    };
    if !planner.planner.ours {
        let placed = address::place(arena, all, |budget| again(budget, all).into_iter().collect());
        if makespan(&placed) > satisfying {
            enough(makespan(&placed));
        }
        note(nominal, &placed);
        return placed;
    }
    // With little work first: it soon shows which plan has the best placement.
    let quick = (all / FIRST_PLACEMENT_SHARE.get()).max(1);
    let first = |plan: &Plan| {
        let mut search = AddressSearch::starting_from(arena, plan, covers(plan.clone(), request.granularity));
        let (nanos, placed) = (plan.schedule.makespan(), search.run(quick));
        note(nanos, &placed);
        (placed, nanos, search)
    };
    let mut found = vec![first(plan)];
    let others = if request.recompute && plan.problem.ops.len() <= MOST_COMPARED.get() {
        &SMALLER_BUDGETS[..]
    } else {
        &[]
    };
    for less in others {
        let best = found.iter().map(|(placed, ..)| makespan(placed)).min().unwrap_or(u64::MAX);
        if best <= satisfying || request.is_ended() {
            break;
        }
        let budget = (u128::from(request.budget) * u128::from(1000 - less) / 1000) as u64;
        let plan = again(budget, (all / FIRST_PLACEMENT_SHARE.get() / 3).max(1)).ok();
        let Some(plan) = plan.filter(|plan| plan.schedule.makespan() < best) else { break };
        found.push(first(&plan));
    }
    found.sort_by_key(|(placed, ..)| makespan(placed));
    let mut best = found.first().and_then(|(placed, ..)| placed.clone());
    if makespan(&best) > satisfying && enough(makespan(&best)) {
        return best;
    }
    for (_, nanos, search) in found.iter_mut().take(CONTINUED) {
        if *nanos < makespan(&best) && makespan(&best) > satisfying && !request.is_ended() {
            let placed = search.run(all);
            note(*nanos, &placed);
            best = [best, placed].into_iter().min_by_key(makespan).flatten();
        }
    }
    best
}

/// Plans for a [`AddressSearch`]: the plan itself for the whole arena, and for any budget the operators of the plan with new swap sets,
/// of whole tensors and, unless tensors are copied whole, of ranges.
pub fn covers(plan: Plan, granularity: Granularity) -> impl FnMut(u64) -> Vec<Plan> {
    let mut own = Some(plan.clone());
    let ranges = PIECE_COUNTS.get().into_iter().map(|pieces| swap_only::piece_bytes(&plan.problem, pieces));
    let mut sizes = vec![u64::MAX];
    sizes.extend(ranges.filter(|_| granularity == Granularity::Ranges));
    move |budget| {
        let schedules = sizes
            .iter()
            .filter_map(|&piece| swap_only::covered(&plan.problem, budget, piece, Manner::Gone).ok());
        let anew = schedules.map(|schedule| Plan { schedule, ..plan.clone() });
        anew.chain(own.take()).collect()
    }
}

/// Plans with ranges are searched only if their bytes, without addresses, are below this share of the smallest
/// arena for whole tensors, in percent: the gaps between ranges take the rest.
const RANGES_WORTH_PERCENT: Tunable<u64> = Tunable::new(98);

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
            (budget < larger).then(|| auto.plan(&request).ok())?
        };
        let Floors { whole_tensors, recomputation, ranges } = floors;
        Counted {
            whole: plan(Granularity::Whole, recomputation, whole_tensors),
            ranges: plan(Granularity::Ranges, ranges, recomputation / 100 * RANGES_WORTH_PERCENT.get()),
            ranges_bytes: ranges,
        }
    }

    /// The bytes of the smallest arena that is known with recomputation; `least` is one without.
    pub(crate) fn recomputation(&self, least: u64, alignment: u64) -> u64 {
        self.whole.as_ref().map_or(least, |plan| address::least_of(plan, alignment).min(least))
    }

    /// The bytes of the smallest arena that is known for plans of ranges, if it is smaller than `least`; and its plan.
    pub(crate) fn ranges(&self, least: u64, alignment: u64) -> Option<(u64, Placed)> {
        let plan = self.ranges.as_ref()?;
        let (mut below, mut above, mut found) = (self.ranges_bytes, least, None);
        let mut bytes = below;
        // A smaller gain is not worth the search.
        let least_gain = least / 100 * 100u64.saturating_sub(RANGES_WORTH_PERCENT.get());
        while bytes < above && above - below > least_gain {
            match address::place(
                Arena::with(bytes, alignment),
                FLOOR_EFFORT,
                covers(plan.clone(), Granularity::Ranges),
            ) {
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

/// A plan with addresses for the request's budget, and its arena. There is one for every budget that is at least the floor in
/// [`Floors::in_arena`].
pub(crate) fn at_floor(planner: &Planner, request: &Request) -> Option<(Placed, Arena)> {
    let problem = request.problem;
    let in_arena = |plan: &Plan| address::swaps_placed(request, plan);
    let recomputes = request.recompute && planner.name != "swap-only";
    let swaps_only = in_arena(&Plan::without_recomputation(problem, Schedule::default()));
    if swaps_only.is_some() || !recomputes {
        return swaps_only;
    }
    let counted = Counted::of(problem, Floors::of(problem));
    let found = counted.whole.as_ref().and_then(in_arena);
    if found.is_some() || request.granularity == Granularity::Whole {
        return found;
    }
    let least = counted.recomputation(address::least(problem, request.alignment), request.alignment);
    let (bytes, placed) = counted.ranges(least, request.alignment)?;
    (bytes <= request.budget).then(|| (placed, Arena::with(bytes, request.alignment)))
}
