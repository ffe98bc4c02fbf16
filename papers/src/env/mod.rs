//! Planning as a game: which tensors to offload and which to remove, one decision after the other (DQN §4).
//!
//! An [`Env`] walks over the operations of a step ([`trace`](lmsc_planners::trace)). At a node it may offload a tensor, remove one, so that its
//! operator is recomputed before the next use, or do nothing. The choices are turned into a plan by the rules of §4.5, and
//! its rewards are the losses of that plan: their sum is exactly minus the time by which the plan takes longer than the
//! operators alone.
//!
//! # Choices that the paper leaves open
//!
//! - *Which tensors.* A tensor is offloaded or removed for one of its [windows](lmsc_schedule::problem::Window), so that algorithms
//!   without a forward and a backward phase can be planned as well, and variables may be absent around the end of the step.
//!   H⁰ are the windows for which a tensor may be swapped, H¹ those after which it can be recomputed, since neither it nor the
//!   inputs of its producer have changed, if it is not kept; of both, those that have begun, are not over, are not chosen in either
//!   way, and contain a moment that exceeds the limit: no others make progress towards the terminal state.
//! - *Which nodes stand for actions.* The start of the step for doing nothing; else a node of the tensor (§4.9):
//!   its last access before the window for offloading, the nearest node of the tensor that is free for removing.
//! - *Rewards.* §4.7 gives a removal the time of recomputation and an offload the pauses that it causes, both of which depend
//!   on later choices. Here the reward is minus the increase of the makespan of the plan for the choices so far, in the least
//!   memory that it fits and not less than the limit. So nothing is lost at the start, where nothing is chosen, and at the
//!   end the plan is that for the limit.
//! - *Transition* (§4.6). After an offload the agent goes to the first node at which the copy is done, by the times of a step
//!   without a limit, otherwise to the next. It never passes an operator that exceeds the limit: "we will not malloc new
//!   variables before the GPU memory has enough space". There it must choose until the operator fits, and doing nothing is
//!   not valid. Nodes at which there is no choice, or none but the previous ones, are skipped.
//! - *Recomputation* (§4.5, "a similar procedure"). A removed tensor is recomputed right before the operator that needs it,
//!   as late as possible: that takes the least memory. The inputs of its operator are recomputed in turn if they were
//!   removed, and otherwise kept for it. A removal after which even offloading all remaining windows would
//!   not suffice is refused: nothing changes, the reward is 0, and it is not offered again.
//! - *Prefetching* (§4.5) follows the paper, in the order of next uses; a tensor that could be swapped in at once is not
//!   swapped out.

mod nodes;
mod outcome;
#[cfg(test)]
mod tests;

use lmsc_schedule::problem::Window;
use lmsc_schedule::{DoesNotFit, Plan, Request, Simulator};
use nodes::{Candidate, Nodes};
use outcome::{Outcome, slots, tick_of};

use lmsc_planners::ours::remat::Rematerializer;

pub use nodes::{ActionKind, Lag, NodeAction, OperationNode};

/// The node that stands for doing nothing.
pub const NOTHING: u32 = 0;

/// A problem and a limit as an environment: states, actions and rewards.
#[derive(Debug)]
pub struct Env<'a> {
    request: Request<'a>,
    remat: Rematerializer<'a>,
    nodes: Nodes,
    /// Nodes at which new choices become possible, ascending.
    openings: Vec<u32>,
    simulator: Simulator,
    /// For each candidate, the kind for which it was chosen.
    chosen: Vec<Option<ActionKind>>,
    /// For each candidate, whether its removal was refused.
    refused: Vec<bool>,
    /// The node under execution; the number of nodes at the end of the step.
    at: u32,
    /// When the last copy to the host ends, in the times of a step without a limit.
    out_until: u64,
    /// [`slots`] that exceed the limit, ascending.
    over: Vec<u32>,
    excess: u64,
    overhead: u64,
}

/// The agent's view of an [`Env`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The node under execution.
    pub current: u32,
    /// The nodes that can be chosen, ascending; [`NOTHING`] is among them unless a tensor must be removed or offloaded. Empty
    /// in the terminal state.
    pub valid: Vec<u32>,
}

impl State {
    /// Whether everything fits (§4.10).
    pub fn is_terminal(&self) -> bool {
        self.valid.is_empty()
    }
}

/// An action that the state does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node {0} cannot be chosen in this state; choose one of the valid nodes")]
pub struct NotValid(pub u32);

impl<'a> Env<'a> {
    /// The environment of the request, at the start of an episode.
    ///
    /// # Errors
    /// [`DoesNotFit`] if the tensors of an operator together with the unswappable ones exceed the budget.
    pub fn new(request: &Request<'a>) -> Result<Env<'a>, DoesNotFit> {
        DoesNotFit::unless_floor_fits(request)?;
        let remat = Rematerializer::new(request.problem);
        let nodes = Nodes::of(request.problem, &remat, request.recompute);
        let count = nodes.candidates.len();
        let mut openings: Vec<u32> = nodes.candidates.iter().map(|candidate| candidate.opens).collect();
        openings.sort_unstable();
        openings.dedup();
        let mut env = Env {
            request: *request,
            remat,
            nodes,
            openings,
            simulator: Simulator::default(),
            chosen: vec![None; count],
            refused: vec![false; count],
            at: 0,
            out_until: 0,
            over: Vec::new(),
            excess: 0,
            overhead: 0,
        };
        env.reset();
        Ok(env)
    }

    /// The nodes of the graph, in the order of their times.
    pub fn nodes(&self) -> &[OperationNode] {
        &self.nodes.all
    }

    /// Its edges, each once.
    pub fn lags(&self) -> &[Lag] {
        &self.nodes.lags
    }

    /// Begins another episode.
    pub fn reset(&mut self) {
        self.chosen.fill(None);
        self.refused.fill(false);
        (self.at, self.out_until, self.overhead) = (0, 0, 0);
        let budget = self.request.budget;
        (self.over, self.excess) =
            self.outcome().map_or_else(Default::default, |all| (all.over(budget), all.excess(budget)));
        self.at = self.nearest(0).min(self.full_at());
        self.settle();
    }

    /// The time of the plan for the choices so far beyond that of the operators alone, in nanoseconds.
    pub fn overhead_nanos(&self) -> u64 {
        self.overhead
    }

    /// The bytes over the limit after the choices so far, added up over the moments of the step; none in the terminal state.
    pub fn excess(&self) -> u64 {
        self.excess
    }

    /// The current state.
    pub fn state(&self) -> State {
        let current = self.at.min(self.nodes.all.len() as u32 - 1);
        if self.over.is_empty() {
            return State { current, valid: Vec::new() };
        }
        let mut valid = Vec::new();
        if self.at < self.full_at() {
            valid.push(NOTHING);
        }
        for (index, candidate) in self.nodes.candidates.iter().enumerate() {
            if !self.is_open(index) || !self.is_of_use(&candidate.window) {
                continue;
            }
            let [offload, remove] = candidate.nodes;
            valid.extend(offload);
            valid.extend(remove.filter(|_| !self.refused[index]));
        }
        valid.sort_unstable();
        State { current, valid }
    }

    /// Chooses a node and returns the reward, in nanoseconds; the environment is then in the next state.
    ///
    /// # Errors
    /// [`NotValid`] if the state does not have the node; nothing has changed then.
    pub fn step(&mut self, node: u32) -> Result<i64, NotValid> {
        if self.state().valid.binary_search(&node).is_err() {
            return Err(NotValid(node));
        }
        if node == NOTHING {
            self.at = self.nearest(self.at + 1).min(self.full_at());
            self.settle();
            return Ok(0);
        }
        let (index, kind) = self.candidate_of(node).ok_or(NotValid(node))?;
        self.chosen[index] = Some(kind);
        let before = self.overhead;
        match self.evaluate() {
            Some(found) => (self.over, self.excess, self.overhead) = found,
            None => {
                self.chosen[index] = None;
                self.refused[index] = true;
                self.settle();
                return Ok(0);
            }
        }
        let next = match kind {
            ActionKind::Remove => self.nearest(self.at + 1),
            ActionKind::Offload => {
                let bytes = self.request.problem.tensors[self.nodes.candidates[index].window.tensor].bytes;
                let now = self.nodes.all.get(self.at as usize).map_or(u64::MAX, |node| node.nanos);
                let copy = self.request.problem.link.out_nanos(bytes);
                self.out_until = self.out_until.max(now).saturating_add(copy);
                let done = self.nodes.all.partition_point(|node| node.nanos < self.out_until) as u32;
                self.nearest(done.max(self.at + 1))
            }
        };
        // The agent stays where it is while the limit is exceeded there.
        self.at = next.min(self.full_at()).max(self.at);
        self.settle();
        Ok(before as i64 - self.overhead as i64)
    }

    /// The plan of the episode; none before its terminal state.
    pub fn plan(&mut self) -> Option<Plan> {
        if !self.over.is_empty() {
            return None;
        }
        let Request { budget, scheduler, .. } = self.request;
        self.outcome()?.plan(&mut self.simulator, budget, scheduler).ok()
    }

    /// Skips nodes at which only doing nothing is valid.
    fn settle(&mut self) {
        while self.state().valid == [NOTHING] {
            self.at = self.nearest(self.at + 1).min(self.full_at());
        }
    }

    /// The windows chosen for this kind.
    fn windows(&self, kind: ActionKind) -> Vec<Window> {
        let all = self.nodes.candidates.iter().zip(&self.chosen);
        all.filter(|(_, chosen)| **chosen == Some(kind)).map(|(candidate, _)| candidate.window).collect()
    }

    /// The outcome of the choices so far.
    fn outcome(&self) -> Option<Outcome> {
        Outcome::of(&self.remat, &self.windows(ActionKind::Offload), &self.windows(ActionKind::Remove))
    }

    /// The slots that exceed the limit, their total excess, and the overhead, if the episode can still be finished from here.
    fn evaluate(&mut self) -> Option<(Vec<u32>, u64, u64)> {
        let Request { budget, scheduler, problem, .. } = self.request;
        let outcome = self.outcome()?;
        let over = outcome.over(budget);
        if over.first().is_some_and(|&first| self.first_node(first) < self.at) {
            return None;
        }
        let mut all = self.windows(ActionKind::Offload);
        let left = (0..self.chosen.len()).filter(|&index| self.chosen[index].is_none());
        let left = left.filter(|&index| !self.is_over(index));
        let left = left.map(|index| &self.nodes.candidates[index]).filter(|c| c.nodes[0].is_some());
        all.extend(left.map(|candidate| candidate.window));
        let most = Outcome::of(&self.remat, &all, &self.windows(ActionKind::Remove))?;
        if most.peak() > budget {
            return None;
        }
        let (limit, excess) = (outcome.peak().max(budget), outcome.excess(budget));
        let plan = outcome.plan(&mut self.simulator, limit, scheduler).ok()?;
        Some((over, excess, plan.schedule.makespan().saturating_sub(problem.compute_nanos())))
    }

    /// Whether the window can be chosen at the node under execution.
    fn is_open(&self, index: usize) -> bool {
        let Candidate { window, opens, .. } = &self.nodes.candidates[index];
        let begun = *opens <= self.at || window.wraps() && self.at <= self.next_use(window);
        self.chosen[index].is_none() && begun && !self.is_over(index)
    }

    /// The first node of the operator that ends the window.
    fn next_use(&self, window: &Window) -> u32 {
        self.nodes.first_of[window.until as usize]
    }

    /// Whether the agent has passed the window for good; a window around the end of the step comes again.
    fn is_over(&self, index: usize) -> bool {
        let window = self.nodes.candidates[index].window;
        !window.wraps() && self.at > self.next_use(&window)
    }

    /// Whether the limit is exceeded during the window.
    fn is_of_use(&self, window: &Window) -> bool {
        slots(window, self.request.problem.ticks()).iter().any(|range| {
            let first = self.over.partition_point(|&slot| slot < range.start);
            self.over.get(first).is_some_and(|&slot| slot < range.end)
        })
    }

    /// The first node of a slot.
    fn first_node(&self, slot: u32) -> u32 {
        if slot == 0 { 0 } else { self.nodes.first_of[tick_of(slot) as usize] }
    }

    /// The node that the agent cannot pass until more is removed or offloaded; beyond the last node if there is none.
    fn full_at(&self) -> u32 {
        self.over.first().map_or(self.nodes.all.len() as u32, |&slot| self.first_node(slot))
    }

    /// The first node from this one on at which new choices become possible.
    fn nearest(&self, node: u32) -> u32 {
        let next = self.openings.partition_point(|&opening| opening < node);
        self.openings.get(next).copied().unwrap_or(self.nodes.all.len() as u32)
    }

    /// The candidate and the action of a node.
    fn candidate_of(&self, node: u32) -> Option<(usize, ActionKind)> {
        let action = self.nodes.all[node as usize].action?;
        let is = |candidate: &Candidate| candidate.nodes[action.kind as usize] == Some(node);
        self.nodes.candidates.iter().position(is).map(|index| (index, action.kind))
    }
}
