//! OPT's VDNN: swaps activations whose operator runs long relative to their bytes.

use std::cmp::Ordering;

use lmsc_schedule::problem::{Duplex, Problem, Window};
use lmsc_schedule::{DoesNotFit, Plan, Request, Schedule};

use crate::extract::{turn, window_at_the_turn};
use crate::offload;

/// The best of the plans that offload every activation above a threshold, or every other one of them.
///
/// The threshold applies to the duration of the longest forward operator that reads the tensor, divided by the tensor's
/// bytes. Every ratio that occurs is tried.
///
/// # Errors
/// [`DoesNotFit`] if no threshold makes every operator fit: the budget does not influence the choice. The bytes reported are
/// those with all activations swapped.
///
/// # Source
/// OPT §6.1. The paper does not say which half "half of them" is; here it is the first, the third, and so on. It uses the
/// thresholds in place of vDNN++'s rule that only the inputs of convolutions are offloaded.
pub(crate) fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    let problem = request.problem;
    let candidates = candidates(problem);
    let fitting = choices(&candidates).filter(|choice| offload::fits(request, choice));
    let mut choices: Vec<(u64, Vec<Window>)> =
        fitting.map(|choice| (copy_nanos(problem, &choice), choice)).collect();
    choices.sort_by_key(|(nanos, _)| *nanos);
    let mut best: Option<Schedule> = None;
    for (nanos, choice) in choices {
        if best.as_ref().is_some_and(|b| nanos.max(problem.compute_nanos()) >= b.makespan()) {
            break;
        }
        let found = offload::schedule(request, &choice);
        let better = found.filter(|f| best.as_ref().is_none_or(|b| f.makespan() < b.makespan()));
        best = better.or(best);
    }
    let all: Vec<Window> = candidates.iter().map(|c| c.window).collect();
    let schedule = best.ok_or_else(|| offload::does_not_fit(request, &all))?;
    Ok(Plan::without_recomputation(problem, schedule))
}

struct Candidate {
    window: Window,
    /// Duration of the longest forward operator that reads the tensor; 0 if none does.
    nanos: u64,
    bytes: u64,
}

impl Candidate {
    fn ratio_cmp(&self, other: &Candidate) -> Ordering {
        let one = u128::from(self.nanos) * u128::from(other.bytes);
        one.cmp(&(u128::from(other.nanos) * u128::from(self.bytes)))
    }
}

/// The tensors of the forward pass that the backward pass needs.
fn candidates(problem: &Problem) -> Vec<Candidate> {
    let Some(turn) = turn(problem) else { return Vec::new() };
    let uses = problem.uses();
    let tensors = problem.tensors.iter().filter(|(_, facts)| facts.swappable);
    let candidates = tensors.filter_map(|(tensor, facts)| {
        let window = window_at_the_turn(&uses, tensor, turn)?;
        let before = uses.of(tensor).iter().take_while(|&&tick| tick < turn);
        let readers = before.map(|&tick| &problem.ops[tick as usize]).filter(|op| op.reads.contains(&tensor));
        Some(Candidate { window, nanos: readers.map(|op| op.nanos).max().unwrap_or(0), bytes: facts.bytes })
    });
    candidates.collect()
}

/// The empty choice; and for every threshold the candidates at or above it, and every other one of those.
fn choices(candidates: &[Candidate]) -> impl Iterator<Item = Vec<Window>> {
    let mut thresholds: Vec<&Candidate> = candidates.iter().collect();
    thresholds.sort_by(|one, other| other.ratio_cmp(one));
    thresholds.dedup_by(|one, other| one.ratio_cmp(other).is_eq());
    let choices = thresholds.into_iter().flat_map(|threshold| {
        let above = candidates.iter().filter(|c| c.ratio_cmp(threshold).is_ge());
        let above: Vec<Window> = above.map(|c| c.window).collect();
        [above.iter().step_by(2).copied().collect(), above]
    });
    std::iter::once(Vec::new()).chain(choices)
}

/// Lower bound on the time of the choice's copies on the link, and so on the makespan of its schedules.
fn copy_nanos(problem: &Problem, choice: &[Window]) -> u64 {
    let bytes = choice.iter().map(|window| problem.tensors[window.tensor].bytes);
    let (out, back) = bytes.fold((0, 0), |(out, back), bytes| {
        (out + problem.link.out_nanos(bytes), back + problem.link.in_nanos(bytes))
    });
    match problem.link.duplex {
        Duplex::Half => out + back,
        Duplex::Full => out.max(back),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lmsc_planners::chain::Chain;

    fn chain() -> Chain {
        Chain {
            forward_nanos: vec![30, 10, 20, 20, 1, 1],
            backward_nanos: vec![10; 6],
            activation_bytes: vec![10; 7],
            gradient_bytes: vec![0; 7],
            forward_workspace: vec![0; 6],
            backward_workspace: vec![0; 6],
            bytes_per_second: 1_000_000_000,
        }
    }

    #[test]
    fn tensors_above_each_threshold_are_swapped_or_every_other_one() {
        // x_5 has no window.
        let choices: Vec<Vec<u32>> = choices(&candidates(&chain().problem()))
            .map(|choice| choice.into_iter().map(|window| window.tensor.as_u32()).collect())
            .collect();
        let above = [vec![0], vec![0], vec![0, 3], vec![0, 2, 3], vec![0, 2], vec![0, 1, 2, 3]];
        let all = [vec![0, 2, 4], vec![0, 1, 2, 3, 4]];
        assert_eq!(choices, [&[vec![]], &above[..], &all[..]].concat());
    }

    #[test]
    fn no_threshold_may_make_it_fit() {
        let problem = chain().problem();
        let fits = |budget| plan(&Request::new(&problem, budget)).is_ok();
        assert!(fits(30) && fits(70));
        // Ticks 5 and 6 need only x_5 and x_6, but F_4 needs x_4 and x_5.
        assert_eq!(plan(&Request::new(&problem, 19)).unwrap_err().needed, 20);
    }

    #[test]
    fn the_budget_does_not_choose_but_the_best_counts() {
        // At 50 of 70 bytes two activations must be swapped out; x_0 and x_3, every other one of the three with the largest
        // ratios, are copied without delaying the operators.
        let plan = plan(&Request::new(&chain().problem(), 50)).unwrap();
        assert_eq!(plan.schedule.makespan(), chain().problem().compute_nanos());
        assert_eq!(plan.schedule.copied_bytes(), (20, 20));
    }
}
