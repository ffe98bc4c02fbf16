//! Plans within a limit of host memory.

use lmsc_schedule::problem::{Problem, TensorId};
use lmsc_schedule::{Piece, Plan, Schedule};

/// The bytes of all swapped ranges. No more are on the host at any time; mostly they are all there at once, when the backward
/// phase begins.
pub fn bytes(schedule: &Schedule) -> u64 {
    schedule.pieces.values().map(Piece::len).sum()
}

/// The result of `run` for the problem, if its plan fits `host_bytes` bytes of host memory; else its result for a problem in
/// which fewer tensors may be swapped out.
///
/// # Errors
/// That of `run`.
pub fn within<T, E>(
    problem: &Problem,
    host_bytes: u64,
    plan_of: impl Fn(&T) -> &Plan,
    mut run: impl FnMut(&Problem) -> Result<T, E>,
) -> Result<T, E> {
    let mut found = run(problem)?;
    let mut allowed = host_bytes;
    loop {
        let over = bytes(&plan_of(&found).schedule).saturating_sub(host_bytes);
        if over == 0 {
            return Ok(found);
        }
        let limited = limited(problem, plan_of(&found), allowed);
        found = run(&limited)?;
        // Recomputed tensors may be swapped out again.
        let over = bytes(&plan_of(&found).schedule).saturating_sub(host_bytes);
        allowed = allowed.saturating_sub(over);
    }
}

/// The problem of the plan, in which only tensors of at most `host_bytes` bytes together may be swapped out: those that the
/// plan swaps, first those that cannot be recomputed, then those with the longest recomputation per byte.
fn limited(problem: &Problem, plan: &Plan, host_bytes: u64) -> Problem {
    let mut price: Vec<Option<u64>> = vec![None; problem.tensors.len()];
    for op in problem.ops.iter().filter(|op| op.recomputable) {
        let bytes: u64 = op.produces.iter().map(|&tensor| problem.tensors[tensor].bytes).sum();
        for &tensor in &op.produces {
            // Nanoseconds per MiB.
            let nanos = (u128::from(op.nanos) << 20) / u128::from(bytes.max(1));
            price[tensor.as_u32() as usize] = Some(nanos.min(u128::from(u64::MAX)) as u64);
        }
    }
    let pieces = plan.schedule.pieces.values();
    let mut leaving: Vec<TensorId> = pieces.map(|piece| plan.tensor_origin[piece.tensor]).collect();
    let cheap_last = |tensor: &TensorId| {
        let price = price[tensor.as_u32() as usize];
        std::cmp::Reverse(price.unwrap_or(u64::MAX))
    };
    leaving.sort_unstable();
    leaving.dedup();
    leaving.sort_by_key(cheap_last);
    let mut limited = problem.clone();
    limited.tensors.values_mut().for_each(|tensor| tensor.swappable = false);
    let mut left = host_bytes;
    for tensor in leaving {
        let bytes = problem.tensors[tensor].bytes;
        if problem.tensors[tensor].swappable && bytes <= left {
            left -= bytes;
            limited.tensors[tensor].swappable = true;
        }
    }
    limited
}

#[cfg(test)]
mod tests {
    use lmsc_planners::planner;
    use lmsc_schedule::Request;
    use lmsc_testing::random::problem;

    use super::*;

    #[test]
    #[ignore = "slow: `cargo xtask ci test` runs it"]
    fn swapped_tensors_of_a_limited_problem_fit_the_host() {
        let (mut plans, mut refused) = (0, 0);
        for seed in 0..300 {
            let problem = problem(&mut lmsc_testing::Rng::new(seed), 12);
            let budget = (problem.floor().1 + problem.live_bytes().into_iter().max().unwrap()) / 2;
            let request = Request { recompute: true, effort: 5, ..Request::new(&problem, budget) };
            let auto = planner("auto").unwrap();
            let run = |problem: &Problem| auto.plan(&Request { problem, ..request });
            let Ok(plan) = run(&problem) else { continue };
            let host_bytes = bytes(&plan.schedule) * 2 / 3;
            match within(&problem, host_bytes, |plan| plan, run) {
                Ok(plan) => {
                    assert!(bytes(&plan.schedule) <= host_bytes, "seed {seed}");
                    plans += 1;
                }
                Err(_) => refused += 1,
            }
        }
        assert!(plans > 25 && refused > 25, "{plans} plans, {refused} refused");
    }
}
