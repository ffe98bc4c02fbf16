//! The schedule of absences: of two orders, each justified, the better one.

use lmsc_schedule::problem::{Problem, Uses};
use lmsc_schedule::threads::both;
use lmsc_schedule::tuned::Tunable;
use lmsc_schedule::{Absences, ActId, Acts, JUSTIFICATION_ROUNDS, Schedule, Simulator, Stuck, justify};

use crate::DoesNotFit;

/// Minimum size of a piece in bytes, so that the latency of a copy is small in comparison.
pub(crate) const SMALLEST_PIECE: Tunable<u64> = Tunable::new(1 << 20);

/// From this number of operators on, independent computations run in parallel. No plan depends on it.
pub(super) const PARALLEL_FROM: usize = 1000;

/// The better of the justified schedules of both orders of these absences.
///
/// Absences that fit at every moment can be executed sequentially, so the activities of an eviction set are never stuck.
pub(super) fn schedule(
    problem: &Problem,
    uses: &Uses,
    budget: u64,
    absences: &Absences,
) -> Result<Schedule, DoesNotFit> {
    let acts = Acts::of_uses(problem, uses, absences);
    let justified = |order: &[ActId]| {
        justify(&mut Simulator::default(), &acts, order, budget, JUSTIFICATION_ROUNDS).map_err(|_: Stuck| {
            let (tick, needed) = problem.floor();
            DoesNotFit { tick, needed, budget }
        })
    };
    let (eager, own) = if problem.ops.len() < PARALLEL_FROM {
        let eager = justified(&acts.eager())?;
        let is_best = eager.1.makespan == problem.compute_nanos();
        (eager, if is_best { None } else { Some(justified(&acts.order)?) })
    } else {
        let (own, eager) = both(|| justified(&acts.order), || justified(&acts.eager()));
        (eager?, Some(own?))
    };
    let best = match own {
        Some(own) if own.1.makespan < eager.1.makespan => own,
        _ => eager,
    };
    let (order, times) = best;
    Ok(acts.schedule(absences, &order, &times))
}
