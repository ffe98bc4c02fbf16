//! Variables leave where that pays: what a step changes must be copied both ways in every step, what it only computes
//! can be computed again.

use super::{DoesNotFit, Granularity, Plan, Request};
use crate::bound;
use crate::problem::Problem;

/// A plan is good enough if it is this part of the bound above it.
const ENOUGH: u64 = 400;

/// Variables of less than this part of the budget make no room worth looking for: where planning is quick, and where it
/// searches for what to compute again.
const LITTLE: [u64; 2] = [200, 20];

/// The problem in which variables stay.
fn still(problem: &Problem) -> Problem {
    let mut still = problem.clone();
    still
        .tensors
        .values_mut()
        .filter(|tensor| tensor.is_variable_that_leaves())
        .for_each(|tensor| tensor.swappable = false);
    still
}

/// The less of what a look at a request finds where variables stay, and where they may leave.
pub(super) fn staying_and_leaving(request: &Request, look: impl Fn(&Request) -> Option<u64>) -> Option<u64> {
    let leaving = look(request);
    if !request.problem.any_variable_leaves() {
        return leaving;
    }
    let staying = look(&Request { problem: &still(request.problem), ..*request });
    leaving.into_iter().chain(staying).min()
}

/// The better of two plans, each for half of the effort: one in which variables stay, and one in which they may leave.
/// The second is not made where the first is good enough or variables are small, and the first cannot be where only the
/// second fits.
pub(super) fn staying_or_leaving(
    request: &Request,
    run: impl Fn(&Request) -> Result<Plan, DoesNotFit>,
) -> Result<Plan, DoesNotFit> {
    let problem = request.problem;
    if !problem.any_variable_leaves() {
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
    let little = movable < request.budget / LITTLE[usize::from(request.recompute)];
    let effort = if little { request.effort } else { half.effort };
    let Ok(mut staying) = run(&Request { problem: &still, effort, ..half }) else {
        return leaving(request, &run);
    };
    for (tensor, facts) in &mut staying.problem.tensors {
        facts.swappable = problem.tensors[staying.tensor_origin[tensor]].swappable;
    }
    let is_good = |least: u64| staying.schedule.makespan() <= least + least / ENOUGH;
    // The bound for whole tensors says little more than that for ranges, and takes much longer.
    let least = Request { granularity: Granularity::Ranges, ..*request };
    if little || is_good(problem.compute_nanos()) || is_good(bound::quick(&least).nanos) {
        return Ok(staying);
    }
    let leaving = leaving(&half, &run).ok();
    let leaving = leaving.filter(|plan| plan.schedule.makespan() < staying.schedule.makespan());
    Ok(leaving.unwrap_or(staying))
}

/// The plan in which variables may leave. Of whole tensors, too, where ranges may travel: it is among these that is
/// searched for the variables that leave best.
fn leaving(
    request: &Request,
    run: impl Fn(&Request) -> Result<Plan, DoesNotFit>,
) -> Result<Plan, DoesNotFit> {
    let asked = run(request)?;
    if request.granularity == Granularity::Whole {
        return Ok(asked);
    }
    let whole = run(&Request { granularity: Granularity::Whole, ..*request }).ok();
    Ok(whole.into_iter().chain([asked]).min_by_key(|plan| plan.schedule.makespan()).expect("one at least"))
}
