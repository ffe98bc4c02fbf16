//! Shared by the papers' swapping planners: from a choice of windows to a schedule.

use std::collections::BTreeSet;

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Problem, Window};
use lmsc_schedule::segment_tree::SegmentTree;
use lmsc_schedule::{
    Absences, Acts, DoesNotFit, Granularity, JUSTIFICATION_ROUNDS, Piece, Plan, Request, Schedule, Scheduler,
    Simulator, justify, no_wait,
};

use lmsc_planners::ours::swap_only;
use lmsc_planners::ours::{pieces_of, travels_whole};

/// The plan that swaps the chosen windows, and as many more as the budget requires.
///
/// # Errors
/// [`DoesNotFit`] names the tick that needs the most bytes of those that no window can make fit.
pub(super) fn plan(request: &Request, windows: Vec<Window>) -> Result<Plan, DoesNotFit> {
    let windows = completed(request, windows)?;
    let schedule = schedule(request, &windows).ok_or_else(|| does_not_fit(request, &windows))?;
    Ok(Plan::without_recomputation(request.problem, schedule))
}

/// The refusal of a planner that has no windows beyond these.
pub(super) fn does_not_fit(request: &Request, windows: &[Window]) -> DoesNotFit {
    let (tick, needed) = most(&live_by_moment(request.problem, windows));
    DoesNotFit { tick, needed, budget: request.budget }
}

/// The tick of the moment with the most bytes, and these bytes.
pub(super) fn most(live_by_moment: &[u64]) -> (u32, u64) {
    let moments = 0..live_by_moment.len();
    let most = moments.max_by_key(|&m| (live_by_moment[m], std::cmp::Reverse(m))).unwrap_or(0);
    // The first moment is before the first operator and the last one after the last operator.
    let tick = most.saturating_sub(1).min(live_by_moment.len().saturating_sub(3));
    (tick as u32, live_by_moment[most])
}

/// The schedule that swaps these windows, if it fits the budget.
pub(super) fn schedule(request: &Request, windows: &[Window]) -> Option<Schedule> {
    let (problem, budget) = (request.problem, request.budget);
    let size = match request.granularity {
        Granularity::Whole => u64::MAX,
        Granularity::Ranges => swap_only::piece_bytes(problem, swap_only::PIECES.get()),
    };
    let absences = absences(problem, size, windows);
    let acts = Acts::of(problem, &absences);
    let mut simulator = Simulator::default();
    let (order, times) = match request.scheduler {
        Scheduler::Paper => no_wait(&mut simulator, problem, &absences, &acts, budget),
        Scheduler::Justified => justify(&mut simulator, &acts, &acts.order, budget, JUSTIFICATION_ROUNDS),
    }
    .ok()?;
    Some(acts.schedule(&absences, &order, &times))
}

/// The absences of the windows' tensors, in ranges of at most about `size` bytes.
fn absences(problem: &Problem, size: u64, windows: &[Window]) -> Absences {
    let mut sorted = windows.to_vec();
    sorted.sort_unstable_by_key(|w| (w.tensor, w.until));
    let mut absences = Absences { windows: SecondaryMap::new(), ..Absences::default() };
    for same in sorted.chunk_by(|one, other| one.tensor == other.tensor) {
        let tensor = same[0].tensor;
        let bytes = problem.tensors[tensor].bytes;
        let is_whole = travels_whole(problem, tensor, same.iter());
        let size = if is_whole { bytes } else { pieces_of(&problem.tensors[tensor], size, problem.grain).1 };
        for begin in (0..bytes).step_by(usize::try_from(size).unwrap_or(usize::MAX)) {
            let piece = absences.pieces.push(Piece { tensor, bytes: begin..(begin + size).min(bytes) });
            absences.windows[piece] = same.to_vec();
        }
    }
    absences
}

/// The windows, plus others if some moments do not fit: by their start, the longest first.
fn completed(request: &Request, mut windows: Vec<Window>) -> Result<Vec<Window>, DoesNotFit> {
    DoesNotFit::unless_floor_fits(request)?;
    let (problem, budget) = (request.problem, request.budget);
    let live = live_by_moment(problem, &windows);
    let mut excess = SegmentTree::new(live.iter().map(|&l| l as i64 - budget as i64));
    if excess.max_of_all() <= 0 {
        return Ok(windows);
    }
    let chosen: BTreeSet<Window> = windows.iter().copied().collect();
    let mut others = problem.windows(&problem.uses());
    others.retain(|window| !chosen.contains(window));
    others.sort_by_key(|w| (if w.wraps() { 0 } else { w.from }, std::cmp::Reverse(w.until), w.tensor));
    for window in others {
        let moments = window.moments(problem.ticks());
        if moments.iter().any(|range| excess.exceeds(range.clone(), 0)) {
            let bytes = problem.tensors[window.tensor].bytes as i64;
            moments.into_iter().for_each(|range| excess.add(range, -bytes));
            windows.push(window);
        }
    }
    Ok(windows)
}

/// Whether every moment fits if these windows are swapped.
pub(super) fn fits(request: &Request, windows: &[Window]) -> bool {
    live_by_moment(request.problem, windows).into_iter().all(|live| live <= request.budget)
}

/// For each moment, the live bytes if these windows are swapped.
fn live_by_moment(problem: &Problem, windows: &[Window]) -> Vec<u64> {
    absences(problem, u64::MAX, windows).live_by_moment(problem)
}

#[cfg(test)]
mod tests {
    use lmsc_schedule::check;
    use lmsc_testing::{Rng, Source, random};

    use super::*;
    use lmsc_planners::Planner;
    use lmsc_planners::chain::Chain;

    use crate::{PLANNERS, extract};

    /// The planners of OPT and its baselines, and whether they fit whenever swapping can.
    const NAMES: [(&str, bool); 5] =
        [("greedy", true), ("dynprog", true), ("vdnn", false), ("autoswap", true), ("memonger", false)];

    fn planners() -> impl Iterator<Item = (&'static Planner, bool)> {
        NAMES.iter().map(|&(name, always)| (PLANNERS.iter().find(|p| p.name == name).unwrap(), always))
    }

    /// A budget from the floor to the peak, or one byte below the floor.
    fn budget(u: &mut Rng, problem: &Problem) -> u64 {
        let floor = problem.floor().1;
        let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap();
        match u.below(6) {
            0 => floor.saturating_sub(1),
            share => floor + (peak - floor) * (share as u64 - 1) / 4,
        }
    }

    /// Checks that every plan is valid, that no feasible request is refused, and that planning is deterministic.
    fn assert_sound(problem: &Problem, u: &mut Rng, what: &str) {
        let budget = budget(u, problem);
        for (planner, always) in planners() {
            let request = Request {
                granularity: if u.chance(50) { Granularity::Whole } else { Granularity::Ranges },
                scheduler: if u.chance(50) { Scheduler::Paper } else { Scheduler::Justified },
                effort: [10, 100][u.below(2)],
                ..Request::new(problem, budget)
            };
            let what = format!("{what}, {} at {budget}", planner.name);
            let plan = planner.plan(&request);
            match &plan {
                Ok(plan) => {
                    plan.problem.check().unwrap_or_else(|e| panic!("{what}: {e}"));
                    check(&plan.problem, &plan.schedule, budget)
                        .unwrap_or_else(|flaw| panic!("{what}: {flaw}"));
                }
                Err(refusal) => {
                    assert!(refusal.needed > budget && refusal.budget == budget, "{what}: {refusal}");
                    assert!(!always || problem.floor().1 > budget, "{what}: {refusal}");
                }
            }
            let again = planner.plan(&request);
            assert_eq!(plan.map(|p| p.schedule.steps), again.map(|p| p.schedule.steps), "{what}");
        }
    }

    #[test]
    fn plans_of_random_problems_are_valid() {
        for seed in 0..600 {
            let mut u = Rng::new(seed);
            let ops = 1 + u.below(if seed % 20 == 0 { 60 } else { 14 });
            let problem = random::problem(&mut u, ops);
            assert_sound(&problem, &mut u, &format!("problem {seed}"));
        }
    }

    #[test]
    fn plans_of_random_chains_are_valid() {
        for seed in 0..150 {
            let mut u = Rng::new(seed);
            let n = 2 + u.below(12);
            let mut several = |count: usize, most: usize| -> Vec<u64> {
                (0..count).map(|_| (u.below(most + 1) as u64) << 20).collect()
            };
            let chain = Chain {
                forward_nanos: several(n, 4),
                backward_nanos: several(n, 8),
                activation_bytes: several(n + 1, 8).into_iter().map(|bytes| bytes + 1).collect(),
                gradient_bytes: several(n + 1, 2),
                forward_workspace: several(n, 2),
                backward_workspace: several(n, 2),
                bytes_per_second: 1 << 30,
            };
            let problem = chain.problem();
            assert_eq!(extract::extract(&problem).unwrap().chain, chain, "{seed}");
            assert_sound(&problem, &mut u, &format!("chain {seed}"));
        }
    }

    #[test]
    fn windows_are_added_by_their_start_until_all_fits() {
        let chain = Chain {
            forward_nanos: vec![10; 4],
            backward_nanos: vec![10; 4],
            activation_bytes: vec![10; 5],
            gradient_bytes: vec![0; 5],
            forward_workspace: vec![0; 4],
            backward_workspace: vec![0; 4],
            bytes_per_second: 1 << 30,
        };
        let problem = chain.problem();
        let windows = problem.windows(&problem.uses());
        let completed = |budget, chosen: &[usize]| {
            let chosen = chosen.iter().map(|&i| windows[i]).collect();
            let completed = completed(&Request::new(&problem, budget), chosen).unwrap();
            completed.iter().map(|w| w.tensor.as_u32()).collect::<Vec<_>>()
        };
        assert_eq!(completed(50, &[]), [0u32; 0]);
        assert_eq!(completed(30, &[]), [0, 1]);
        assert_eq!(completed(30, &[1]), [1, 0]);
        assert_eq!(completed(40, &[2]), [2]);
    }
}
