//! Shared by the planners that decide operator by operator, as a run-time system would.
//!
//! Such a policy issues operators and copies one after the other. These instructions fix which tensors are swapped out when,
//! and an order, which [`Scheduler::Paper`] executes unchanged and from which [`Scheduler::Justified`] starts. Policies move
//! whole tensors and ignore the requested granularity: their papers have no other.

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Problem, TensorId, Uses, Window};
use lmsc_schedule::{
    Absences, Act, ActId, Acts, Direction, DoesNotFit, Instruction, JUSTIFICATION_ROUNDS, Piece, Plan,
    Request, Scheduler, Simulator, Stuck, Times, justify,
};

/// An instruction that a policy issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Issued {
    /// The operator of the tick.
    Op(u32),
    /// A copy to the host.
    Out(TensorId),
    /// A copy to the device.
    In(TensorId),
}

/// The earliest start of a copy that a policy issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    /// As soon as its bytes, its memory and its engine allow: the policy decides ahead of time.
    Early,
    /// Once the operator issued before it has ended: the policy decides when the next operator is due.
    OnDemand,
}

/// The facts of a problem that a policy needs.
pub(super) struct Facts {
    /// The uses of each tensor.
    pub(super) uses: Uses,
    /// Tensors that have a window.
    pub(super) movable: SecondaryMap<TensorId, bool>,
    /// Variables that can be swapped out at the end of a step and at the start of the next.
    pub(super) wraps: SecondaryMap<TensorId, bool>,
    /// For each tick, the workspace and the bytes of tensors that never move; one more entry stands for the end of the step.
    pub(super) fixed: Vec<u64>,
}

impl Facts {
    /// The facts, if neither an operator nor the start or the end of the step needs more than the budget under every swap
    /// set.
    pub(super) fn of(request: &Request) -> Result<Facts, DoesNotFit> {
        DoesNotFit::unless_floor_fits(request)?;
        let problem = request.problem;
        let uses = problem.uses();
        let mut movable: SecondaryMap<TensorId, bool> = SecondaryMap::with_capacity(problem.tensors.len());
        let mut wraps: SecondaryMap<TensorId, bool> = SecondaryMap::with_capacity(problem.tensors.len());
        for window in problem.windows(&uses) {
            movable[window.tensor] = true;
            wraps[window.tensor] |= window.wraps();
        }
        let mut deltas = vec![0i64; problem.ops.len() + 2];
        for (id, tensor) in problem.tensors.iter().filter(|&(id, _)| !movable[id]) {
            let live = problem.live_range(id, &uses);
            deltas[live.start as usize] += tensor.bytes as i64;
            deltas[live.end as usize + usize::from(tensor.kept)] -= tensor.bytes as i64;
        }
        let mut stay = 0;
        let workspace = problem.ops.iter().map(|op| op.workspace).chain([0]);
        let fixed = workspace.zip(&deltas).map(|(workspace, delta)| {
            stay += delta;
            stay as u64 + workspace
        });
        Ok(Facts { fixed: fixed.collect(), uses, movable, wraps })
    }
}

/// A policy's decisions with the times from the requested scheduler.
pub(super) struct Outcome {
    absences: Absences,
    acts: Acts,
    order: Vec<ActId>,
    times: Times,
}

impl Outcome {
    /// The outcome of the issued instructions, in this order, for the request's problem.
    ///
    /// # Errors
    /// [`DoesNotFit`] if the instructions cannot be executed in their order within the budget. It only states that the budget
    /// is too small: a policy that respects [`Facts`] does not reach this case.
    pub(super) fn of(request: &Request, issued: &[Issued], timing: Timing) -> Result<Outcome, DoesNotFit> {
        let absences = absences(request.problem, issued);
        let acts = Acts::of(request.problem, &absences);
        let order = order(&acts, &absences, issued);
        let budget = request.budget;
        let mut simulator = Simulator::default();
        let found = match request.scheduler {
            Scheduler::Paper => {
                let waits = match timing {
                    Timing::Early => Vec::new(),
                    Timing::OnDemand => on_demand(&acts, &order),
                };
                let acts = acts.clone().waiting(&waits);
                simulator.run(&acts, &order, budget, Direction::Forward).map(|times| (order, times))
            }
            Scheduler::Justified => {
                let own = justify(&mut simulator, &acts, &order, budget, JUSTIFICATION_ROUNDS);
                let eager = justify(&mut simulator, &acts, &acts.order, budget, JUSTIFICATION_ROUNDS);
                match (own, eager) {
                    (Ok(own), Ok(eager)) if eager.1.makespan < own.1.makespan => Ok(eager),
                    (own, eager) => own.or(eager),
                }
            }
        };
        match found {
            Ok((order, times)) => Ok(Outcome { absences, acts, order, times }),
            Err(Stuck(act)) => {
                let tick = match acts.what[act] {
                    Act::Do(Instruction::Op(tick)) => tick,
                    _ => 0,
                };
                Err(DoesNotFit { tick, needed: budget.saturating_add(1), budget })
            }
        }
    }

    /// The end of the last activity, in nanoseconds.
    pub(super) fn makespan(&self) -> u64 {
        self.times.makespan
    }

    /// The plan.
    pub(super) fn plan(&self, problem: &Problem) -> Plan {
        let schedule = self.acts.schedule(&self.absences, &self.order, &self.times);
        Plan::without_recomputation(problem, schedule)
    }
}

/// The absences of whole tensors that the copies to the device end.
fn absences(problem: &Problem, issued: &[Issued]) -> Absences {
    let uses = problem.uses();
    let mut ended: Vec<(TensorId, u32)> = Vec::new();
    let mut tick = 0;
    for &issued in issued {
        match issued {
            Issued::Op(done) => tick = done + 1,
            Issued::Out(_) => {}
            Issued::In(tensor) => {
                let uses = uses.of(tensor);
                let next = uses.partition_point(|&t| t < tick);
                ended.push((tensor, uses.get(next).copied().unwrap_or(problem.ticks())));
            }
        }
    }
    ended.sort_unstable();
    let mut windows = problem.windows(&uses);
    windows.retain(|w| ended.binary_search(&(w.tensor, w.until)).is_ok());
    windows.sort_by_key(|w| (w.tensor, w.until));
    let mut absences = Absences::default();
    let mut last: Option<TensorId> = None;
    for window @ Window { tensor, .. } in windows {
        if last.replace(tensor) != Some(tensor) {
            absences.pieces.push(Piece { tensor, bytes: 0..problem.tensors[tensor].bytes });
        }
        let piece = absences.pieces.keys().next_back();
        piece.into_iter().for_each(|piece| absences.windows[piece].push(window));
    }
    absences
}

/// The activities in the order in which they were issued, from the start to the end.
fn order(acts: &Acts, absences: &Absences, issued: &[Issued]) -> Vec<ActId> {
    let mut ops = Vec::new();
    let (mut outs, mut ins): (SecondaryMap<TensorId, Vec<ActId>>, SecondaryMap<TensorId, Vec<ActId>>) =
        Default::default();
    let mut ends = Vec::new();
    for (act, &what) in acts.what.iter().rev() {
        match what {
            Act::Start | Act::End => ends.push(act),
            Act::Do(Instruction::Op(_)) => ops.push(act),
            Act::Do(Instruction::Out(piece)) => outs[absences.pieces[piece].tensor].push(act),
            Act::Do(Instruction::In(piece)) => ins[absences.pieces[piece].tensor].push(act),
        }
    }
    let mut order = Vec::with_capacity(acts.len());
    order.extend(ends.pop());
    order.extend(issued.iter().filter_map(|&issued| match issued {
        Issued::Op(_) => ops.pop(),
        Issued::Out(tensor) => outs[tensor].pop(),
        Issued::In(tensor) => ins[tensor].pop(),
    }));
    order.extend(ends.pop());
    debug_assert_eq!(order.len(), acts.len());
    order
}

/// Every copy, paired with the operator before it in the order.
fn on_demand(acts: &Acts, order: &[ActId]) -> Vec<(ActId, ActId)> {
    let mut waits = Vec::new();
    let mut before = None;
    for &act in order {
        match acts.what[act] {
            Act::Do(Instruction::Op(_)) => before = Some(act),
            Act::Do(_) => waits.extend(before.map(|op| (act, op))),
            Act::Start | Act::End => {}
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use lmsc_schedule::Schedule;
    use lmsc_testing::{Rng, Source, random};

    use super::*;
    use crate::options::Options;
    use crate::testing::{run, run_with};

    /// A random problem, its floor, and a budget with which nothing need be swapped.
    fn problem(seed: u64) -> (Problem, u64, u64) {
        let mut u = Rng::new(seed);
        let ops = 1 + u.below(if seed.is_multiple_of(20) { 60 } else { 14 });
        let problem = random::problem(&mut u, ops);
        let (floor, peak) = (problem.floor().1, problem.live_by_moment(&problem.uses()).into_iter().max());
        (problem, floor, peak.unwrap())
    }

    const POLICIES: [&str; 4] = ["window", "lru", "tflms-chain", "tflms-best"];
    const SCHEDULERS: [Scheduler; 2] = [Scheduler::Paper, Scheduler::Justified];

    #[test]
    fn plans_of_policies_are_valid_and_deterministic() {
        for seed in 0..400 {
            let (problem, floor, peak) = problem(seed);
            let between = (0..5).map(|quarters| floor + (peak - floor) / 4 * quarters);
            for (budget, scheduler) in
                between.chain([floor / 2, peak]).flat_map(|b| SCHEDULERS.map(|s| (b, s)))
            {
                let request = Request { scheduler, ..Request::new(&problem, budget) };
                for name in POLICIES {
                    let (found, again) = (run(name, &request), run(name, &request));
                    let steps =
                        |found: &Result<_, _>| found.as_ref().map(|s: &Schedule| s.steps.clone()).ok();
                    assert_eq!(steps(&found), steps(&again), "{name} {seed}");
                    if let Err(error) = found {
                        assert!(error.needed > budget && error.budget == budget, "{name} {seed}: {error}");
                    }
                }
            }
        }
    }

    #[test]
    fn window_and_lru_have_a_plan_from_the_floor_on_and_tflms_where_nothing_need_leave() {
        for seed in 400..1200 {
            let (problem, floor, peak) = problem(seed);
            for scheduler in SCHEDULERS {
                let request = |budget| Request { scheduler, ..Request::new(&problem, budget) };
                let fits = |name, request| {
                    run(name, &request).unwrap_or_else(|error| panic!("{name} {seed}: {error}"));
                };
                for name in ["window", "lru"] {
                    fits(name, request(floor));
                    let below = floor.checked_sub(1).map(|below| run(name, &request(below)));
                    assert!(below.is_none_or(|refused| refused.is_err()), "{name} {seed}");
                }
                for window in [0, floor / 4, floor / 2, floor, u64::MAX] {
                    let options = Options { window: Some(window), ..Options::default() };
                    run_with("window", &request(floor), options)
                        .unwrap_or_else(|error| panic!("window {seed}: {error}"));
                }
                for name in ["tflms-chain", "tflms-best"] {
                    fits(name, request(peak));
                }
            }
        }
    }

    #[test]
    fn justified_copies_never_take_longer_than_the_policy_s_own() {
        for seed in 1200..1600 {
            let (problem, floor, _) = problem(seed);
            for name in ["window", "lru"] {
                let [own, justified] = SCHEDULERS.map(|scheduler| {
                    let request = Request { scheduler, ..Request::new(&problem, floor + floor / 8) };
                    run(name, &request).unwrap_or_else(|error| panic!("{name} {seed}: {error}")).makespan()
                });
                assert!(justified <= own, "{name} {seed}: {justified} > {own}");
            }
        }
    }
}
