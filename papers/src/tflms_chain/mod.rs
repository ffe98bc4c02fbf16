//! TFLMS: swaps tensors out when the forward phase produces them, and in a number of operators before their use.
//!
//! Nothing waits for memory: the swaps follow from the parameters, and a step that then needs more than the budget is out of
//! memory. So near the floor there is no such plan. If memory is short, a step often fits only because operators wait for
//! copies in between two *forward* uses, which delays the forward phase until the copies out have caught up.
//!
//! # Source
//! Le et al., *TFLMS: Large Model Support in TensorFlow by Graph Rewriting*, arXiv:1807.02037. [`crate::tflms`]
//! rewrites graphs by it; here are its parameters (Table 2) in terms of a [`Problem`], as a planner to compare with:
//!
//! - Distances are counted in operators of the order, not in levels: a problem has no levels.
//! - A use belongs to the phase of its operator; the update counts as backward. An edge lies between two consecutive uses, so
//!   swap-outs of a tensor are always one (§4.2.2).
//! - `threshold` (α, §4.1) holds for edges from the forward phase to the backward phase, `branch_threshold` (§5.1)
//!   for those within the forward phase, `fuse_swapins` (§4.2.3) for those within the backward phase. §4.1 says `≥ α`,
//!   §5.1 says `> branch_threshold`; both are `≥` here. §4.2.3 gives no measure of "close".
//! - `ahead` is the lower bound of §4.3 counted along the order: the copy in is triggered when the operator that many before
//!   the use has ended. If that operator precedes the edge, Algorithm 1 returns nothing and §4.3 leaves the case open; here
//!   the tensor is swapped in as soon as its copy out and its last use before the edge are done.
//! - Variables stay resident (§5.1), and so do tensors changed in place. The batch, given and not kept, is treated as if it
//!   were produced at the start; the paper does not say.
//! - Copies of one direction run in the order in which they could start.
//!
//! §5.2 tunes by hand; `tflms-best` searches.

mod execution;
mod search;

use std::cmp::Reverse;

use cranelift_entity::SecondaryMap;
use execution::Execution;
use lmsc_ir::Phase;
use lmsc_schedule::problem::{Problem, TensorId, Uses};
use lmsc_schedule::{DoesNotFit, Plan, Request, Scheduler};
use search::Search;

use crate::options::Options;
use crate::policy::{Issued, Outcome, Timing};

/// The plan for the parameters in the options; for those not given, the paper's defaults.
///
/// # Errors
/// [`DoesNotFit`] if these parameters need more than the budget.
pub(crate) fn plan(request: &Request, options: &Options) -> Result<Plan, DoesNotFit> {
    let candidates = Candidates::of(request.problem);
    let distances = Distances::default().with(options);
    let swaps = candidates.chosen(options.n_tensors.unwrap_or(u32::MAX), &distances);
    candidates.plan(request, &swaps, distances.ahead)
}

/// The plan for the fastest parameters that fit, of those that the options leave open.
///
/// # Errors
/// [`DoesNotFit`] if no parameters that were tried fit, with the smallest need among them.
pub(crate) fn plan_best(request: &Request, options: &Options) -> Result<Plan, DoesNotFit> {
    Search::new(request, options).plan()
}

/// The parameters that are numbers of operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Distances {
    ahead: u32,
    threshold: u32,
    branch_threshold: u32,
    fuse_swapins: u32,
}

/// Those of Table 2: as late as possible, no branches, nothing fused.
impl Default for Distances {
    fn default() -> Distances {
        Distances { ahead: 1, threshold: 2, branch_threshold: u32::MAX, fuse_swapins: 0 }
    }
}

impl Distances {
    /// The distances with the values given in the options.
    fn with(self, options: &Options) -> Distances {
        Distances {
            ahead: options.ahead.unwrap_or(self.ahead).max(1),
            threshold: options.threshold.unwrap_or(self.threshold),
            branch_threshold: options.branch_threshold.unwrap_or(self.branch_threshold),
            fuse_swapins: options.fuse_swapins.unwrap_or(self.fuse_swapins),
        }
    }
}

/// A swapped tensor and its times.
#[derive(Clone, Debug)]
struct Swap {
    tensor: TensorId,
    /// The tick that produces it; none if it is given.
    produced: Option<u32>,
    /// The pairs of uses between which it is swapped out, by their ticks.
    gaps: Vec<(u32, u32)>,
}

/// The cost of a set of swaps.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// In nanoseconds; 0 if the copies are still to be ordered.
    makespan: u64,
    /// The most bytes at once.
    peak: u64,
    /// The operator that runs at the peak.
    peak_tick: u32,
}

/// The tensors of a problem that can be swapped.
struct Candidates<'a> {
    problem: &'a Problem,
    uses: Uses,
    /// Bytes by tick if nothing is swapped out.
    live: Vec<u64>,
    /// With all their gaps, in the order of production.
    swaps: Vec<Swap>,
}

impl<'a> Candidates<'a> {
    fn of(problem: &'a Problem) -> Candidates<'a> {
        let uses = problem.uses();
        let mut changed: SecondaryMap<TensorId, bool> = SecondaryMap::with_capacity(problem.tensors.len());
        problem.ops.iter().flat_map(|op| &op.changes).for_each(|&tensor| changed[tensor] = true);
        let mut swaps: Vec<Swap> = Vec::new();
        for (tensor, facts) in problem.tensors.iter().filter(|(_, facts)| facts.swappable) {
            let uses = uses.of(tensor);
            let first = uses.first().filter(|&&first| problem.ops[first as usize].phase == Phase::Forward);
            if changed[tensor] || (facts.given && facts.kept) {
                continue;
            }
            let gaps =
                uses.windows(2).map(|pair| (pair[0], pair[1])).filter(|(from, until)| until - from > 1);
            let gaps: Vec<(u32, u32)> = gaps.collect();
            if let Some(&first) = first.filter(|_| !gaps.is_empty()) {
                swaps.push(Swap { tensor, produced: (!facts.given).then_some(first), gaps });
            }
        }
        swaps.sort_by_key(|swap| (swap.produced, swap.tensor));
        Candidates { problem, uses, live: problem.live_bytes(), swaps }
    }

    /// The swaps that the parameters choose.
    fn chosen(&self, n_tensors: u32, distances: &Distances) -> Vec<Swap> {
        let &Distances { threshold, branch_threshold, fuse_swapins, .. } = distances;
        let forward = |tick: u32| self.problem.ops[tick as usize].phase == Phase::Forward;
        let away = |&(from, until): &(u32, u32)| match (forward(from), forward(until)) {
            (_, true) => until - from >= branch_threshold,
            (true, false) => until - from >= threshold,
            (false, false) => until - from > fuse_swapins,
        };
        let swaps = self.swaps.iter().filter(|swap| swap.gaps.iter().any(away)).take(n_tensors as usize);
        swaps.map(|swap| Swap { gaps: swap.gaps.iter().copied().filter(away).collect(), ..*swap }).collect()
    }

    /// The cost of the swaps; if their copies are to be justified, the memory that is needed under any order of them.
    fn cost(&self, request: &Request, swaps: &[Swap], ahead: u32) -> Cost {
        if request.scheduler == Scheduler::Paper {
            return Execution::of(self.problem, &self.uses, swaps, ahead).cost;
        }
        let mut away = vec![0i64; self.live.len() + 1];
        for swap in swaps {
            let bytes = self.problem.tensors[swap.tensor].bytes as i64;
            for &(from, until) in &swap.gaps {
                away[from as usize + 1] += bytes;
                away[until as usize] -= bytes;
            }
        }
        let mut sum = 0;
        let live = self.live.iter().zip(away).map(|(&live, away)| {
            sum += away;
            live - sum as u64
        });
        let given = self.problem.tensors.values().filter(|tensor| tensor.given).map(|tensor| tensor.bytes);
        let at_start = (given.sum(), 0);
        let most = live.zip(0..).chain([at_start]).max_by_key(|&(bytes, tick)| (bytes, Reverse(tick)));
        let (peak, peak_tick) = most.unwrap_or((0, 0));
        Cost { makespan: 0, peak, peak_tick }
    }

    fn plan(&self, request: &Request, swaps: &[Swap], ahead: u32) -> Result<Plan, DoesNotFit> {
        let Cost { peak, peak_tick, .. } = self.cost(request, swaps, ahead);
        if peak > request.budget {
            return Err(DoesNotFit { tick: peak_tick, needed: peak, budget: request.budget });
        }
        match request.scheduler {
            Scheduler::Paper => {
                let execution = Execution::of(self.problem, &self.uses, swaps, ahead);
                Ok(Plan::without_recomputation(self.problem, execution.schedule(self.problem, swaps)))
            }
            Scheduler::Justified => Ok(self.justified(request, swaps)?.plan(self.problem)),
        }
    }

    /// The swaps with their copies justified.
    fn justified(&self, request: &Request, swaps: &[Swap]) -> Result<Outcome, DoesNotFit> {
        // By the tick before which the copy is issued, copies out first.
        let mut copies: Vec<(u32, bool, TensorId)> = Vec::new();
        for swap in swaps {
            copies.push((swap.produced.map_or(0, |tick| tick + 1), false, swap.tensor));
            copies.extend(swap.gaps.iter().map(|&(_, until)| (until, true, swap.tensor)));
        }
        copies.sort_unstable();
        let mut copies = copies.into_iter().peekable();
        let mut issued = Vec::new();
        for tick in 0..self.problem.ticks() {
            while let Some((_, comes, tensor)) = copies.next_if(|copy| copy.0 == tick) {
                issued.push(if comes { Issued::In(tensor) } else { Issued::Out(tensor) });
            }
            issued.push(Issued::Op(tick));
        }
        Outcome::of(request, &issued, Timing::Early)
    }
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Phase::{Backward, Forward};
    use lmsc_testing::small::{op, problem, produced, steps};

    use super::*;
    use crate::testing::{run, run_with};

    /// Three tensors of 10 bytes, produced one after the other and used in reverse order, by operators of 20 ns.
    fn hill() -> Problem {
        let ops = [
            op(Forward, 20, &[], &[0]),
            op(Forward, 20, &[0], &[1]),
            op(Forward, 20, &[1], &[2]),
            op(Backward, 20, &[2], &[]),
            op(Backward, 20, &[1], &[]),
            op(Backward, 20, &[0], &[]),
        ];
        problem(&[produced(10); 3], &ops)
    }

    fn planned(problem: &Problem, budget: u64, options: Options) -> Result<String, DoesNotFit> {
        let scheduler = Scheduler::Paper;
        let request = Request { scheduler, ..Request::new(problem, budget) };
        run_with("tflms-chain", &request, options).map(|schedule| steps(&schedule))
    }

    #[test]
    fn tensors_leave_when_produced_and_come_back_when_an_operator_ahead_has_ended() {
        // TFLMS §4.1 and §4.3; the last possible operator is the default of Table 2 (lb = 1).
        let hill = hill();
        let late = "op0@0 out0@20 op1@20 out1@40 op2@40 op3@60 in1@80 op4@90 in0@110 op5@120";
        assert_eq!(planned(&hill, 20, Options::default()).unwrap(), late);
        let earlier = "op0@0 out0@20 op1@20 out1@40 op2@40 in1@60 op3@60 in0@80 op4@80 op5@100";
        let options = Options { ahead: Some(2), ..Options::default() };
        assert_eq!(planned(&hill, 20, options).unwrap(), earlier);
    }

    #[test]
    fn an_early_swap_in_runs_out_of_memory_and_nothing_waits() {
        let options = Options { ahead: Some(3), ..Options::default() };
        let error = planned(&hill(), 20, options).unwrap_err();
        assert_eq!(error, DoesNotFit { tick: 3, needed: 30, budget: 20 });
    }

    #[test]
    fn n_tensors_counts_from_the_first_produced() {
        let options = Options { n_tensors: Some(1), ..Options::default() };
        let one = "op0@0 out0@20 op1@20 op2@40 op3@60 op4@80 in0@100 op5@110";
        assert_eq!(planned(&hill(), 20, options).unwrap(), one);
    }

    #[test]
    fn thresholds_count_operators_between_two_uses() {
        // α (§4.1): of the two swapped tensors, one is swapped out for two operators, the other for four.
        let options = Options { threshold: Some(3), ..Options::default() };
        let one = "op0@0 out0@20 op1@20 op2@40 op3@60 op4@80 in0@100 op5@110";
        assert_eq!(planned(&hill(), 20, options).unwrap(), one);
        // One tensor, used three operators apart within the forward phase, then within the backward phase.
        let other = |phase| op(phase, 20, &[], &[]);
        let ops = [
            op(Forward, 20, &[], &[0]),
            other(Forward),
            other(Forward),
            op(Forward, 20, &[0], &[]),
            op(Backward, 20, &[0], &[]),
            other(Backward),
            other(Backward),
            op(Backward, 20, &[0], &[]),
        ];
        let problem = problem(&[produced(10)], &ops);
        let copies = |branch_threshold, fuse_swapins| {
            let options = Options { branch_threshold, fuse_swapins, ..Options::default() };
            planned(&problem, 10, options).unwrap().matches("in0").count()
        };
        // §5.1: branches are swapped only on request. §4.2.3: uses close to each other share one copy in.
        assert_eq!(copies(None, None), 1);
        assert_eq!(copies(Some(4), None), 1);
        assert_eq!(copies(Some(3), None), 2);
        assert_eq!(copies(Some(3), Some(2)), 2);
        assert_eq!(copies(Some(3), Some(3)), 1);
    }

    #[test]
    fn the_search_finds_what_hides_every_copy() {
        let hill = hill();
        for scheduler in [Scheduler::Paper, Scheduler::Justified] {
            let request = Request { scheduler, ..Request::new(&hill, 20) };
            assert_eq!(run("tflms-best", &request).unwrap().makespan(), hill.compute_nanos());
        }
        // Parameters given in the options are not searched for.
        let options = Options { ahead: Some(1), ..Options::default() };
        let request = Request { scheduler: Scheduler::Paper, ..Request::new(&hill, 20) };
        assert_eq!(run_with("tflms-best", &request, options).unwrap().makespan(), hill.compute_nanos() + 10);
    }
}
