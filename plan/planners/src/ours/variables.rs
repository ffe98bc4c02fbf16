//! Chooses whether variables may be swapped out: a variable that the step changes must be copied both ways in every step,
//! whereas intermediate results can also be recomputed.

use lmsc_bound as bound;
use lmsc_schedule::problem::Problem;
use lmsc_schedule::tuned::Tunable;
use lmsc_schedule::{CLOSE_GAP, DoesNotFit, Granularity, Plan, Request};

use crate::ours::mechanisms::STAYING;

/// Variables stay if they have less than the budget divided by this together: where planning only swaps, and where
/// it also recomputes.
const SMALL_VARIABLES: Tunable<[u64; 2]> = Tunable::new([200, 20]);

/// In problems with more operators than this, plans that recompute do not also try to swap variables whole: layers are
/// decided well by ranges.
const MOST_WHOLE: Tunable<usize> = Tunable::new(1000);

/// The problem with variables pinned to the device.
fn still(problem: &Problem) -> Problem {
    let mut still = problem.clone();
    still
        .tensors
        .values_mut()
        .filter(|tensor| tensor.is_variable_that_leaves())
        .for_each(|tensor| tensor.swappable = false);
    still
}

/// The smaller of two estimates for a request: with variables pinned, and with variables that may be swapped out.
pub(super) fn staying_and_leaving(request: &Request, look: impl Fn(&Request) -> Option<u64>) -> Option<u64> {
    let leaving = look(request);
    if !request.problem.any_variable_leaves() {
        return leaving;
    }
    let staying = look(&Request { problem: &still(request.problem), ..*request });
    leaving.into_iter().chain(staying).min()
}

/// The better of two plans, each at half of the effort: one with variables pinned, and one in which they may be swapped out.
/// The second is not made if the first is close enough to the bound or if the variables are small; the first does not exist
/// if only the second fits.
pub(super) fn staying_or_leaving(
    request: &Request,
    run: impl Fn(&Request) -> Result<Plan, DoesNotFit>,
) -> Result<Plan, DoesNotFit> {
    let problem = request.problem;
    if !problem.any_variable_leaves() || !STAYING.is_on() {
        return run(request);
    }
    let still = still(problem);
    let half = Request { effort: request.effort / 2, ..*request };
    let movable: u64 = problem
        .tensors
        .values()
        .filter(|tensor| tensor.is_variable_that_leaves())
        .map(|tensor| tensor.bytes)
        .sum();
    let little = movable < request.budget / SMALL_VARIABLES.get()[usize::from(request.recompute)];
    let effort = if little { request.effort } else { half.effort };
    let Ok(mut staying) = run(&Request { problem: &still, effort, ..half }) else {
        return leaving(request, &run);
    };
    for (tensor, facts) in &mut staying.problem.tensors {
        facts.swappable = problem.tensors[staying.tensor_origin[tensor]].swappable;
    }
    let is_good = |least: u64| staying.schedule.makespan() <= least + least / (2 * CLOSE_GAP.get());
    // The bound for whole tensors is hardly tighter than the bound for ranges and takes much longer.
    let least = Request { granularity: Granularity::Ranges, ..*request };
    if little || is_good(problem.compute_nanos()) || is_good(bound::quick(&least).nanos) {
        return Ok(staying);
    }
    let leaving = leaving(&half, &run).ok();
    let leaving = leaving.filter(|plan| plan.schedule.makespan() < staying.schedule.makespan());
    Ok(leaving.unwrap_or(staying))
}

/// The plan in which variables may be swapped out. If ranges are allowed, whole tensors are tried, too, because only there
/// the planner searches for the best variables to swap.
fn leaving(
    request: &Request,
    run: impl Fn(&Request) -> Result<Plan, DoesNotFit>,
) -> Result<Plan, DoesNotFit> {
    let asked = run(request)?;
    if request.granularity == Granularity::Whole {
        return Ok(asked);
    }
    if request.recompute && request.problem.ops.len() > MOST_WHOLE.get() {
        return Ok(asked);
    }
    let whole = run(&Request { granularity: Granularity::Whole, ..*request }).ok();
    Ok(whole.into_iter().chain([asked]).min_by_key(|plan| plan.schedule.makespan()).expect("one at least"))
}
