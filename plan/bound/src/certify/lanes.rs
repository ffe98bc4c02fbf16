//! Checks of [`Proof::Chain`](crate::Proof::Chain).

use lmsc_schedule::problem::Problem;

use super::{NotProven, StepPlace};

/// The total time of the operators, if each must wait for the one before it.
pub(super) fn chain(problem: &Problem, ticks: &[u32]) -> Result<u128, NotProven> {
    let known = |&tick: &u32| problem.ops.get(tick as usize).ok_or(NotProven::Place(StepPlace::Op(tick)));
    let mut nanos = 0;
    for (at, tick) in ticks.iter().enumerate() {
        let op = known(tick)?;
        nanos += u128::from(op.nanos);
        let Some(earlier) = at.checked_sub(1).map(|before| ticks[before]) else { continue };
        let before = known(&earlier)?;
        let mut results = before.produces.iter().chain(&before.changes);
        if earlier >= *tick || (before.lane != op.lane && !results.any(|t| op.reads.contains(t))) {
            return Err(NotProven::Chain(*tick));
        }
    }
    Ok(nanos)
}
