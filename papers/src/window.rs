//! A window of bytes that slides over the next uses: tensors that it reaches are swapped in, tensors that it leaves are
//! swapped out.
//!
//! The tensors of all operators, in the order of their use, are the *variable sequence*. Before each operator a queue over
//! that sequence grows until the tensors in it, each counted once, exceed the window. A tensor that enters the queue is
//! swapped in; a tensor that has left the queue after the operator is swapped out. The time of a swap-in so adapts to the
//! memory that the operators until its use touch.
//!
//! # Source
//! Hayakawa and Narihira, *Out-of-core Training for Extremely Large-Scale Neural Networks With Adaptive Window-Based
//! Scheduling*, 2020 (OOC), §3 and Fig. 2. The text leaves open, or leaves out, rules that a scheduler needs;
//! these rules are those of the authors' own scheduler (nnabla, `SwapInOutScheduler`) unless said otherwise:
//!
//! - Fig. 2 (d) "skips" tensors that are already scheduled. This comprises two rules: a tensor in the queue is counted once,
//!   and a tensor whose copy out has not been waited for when the window reaches it again stays resident, its copy cancelled.
//! - The second step waits for copies out, the oldest first, only until the next prefetch fits. The same holds for
//!   the operator's results, which the paper does not mention: they occupy memory from their operator on.
//! - Where no copy is left to wait for and the results do not fit, the latest prefetches are undone and tried again at the
//!   next operator. Without this, plans near the floor are not found. nnabla restarts from the first operator with these
//!   prefetches forbidden until then; here they are undone in place, which differs only in that the copies out for which they
//!   had waited stay waited for.
//! - The queue holds at least the operator's own tensors, however small the window (ours: nnabla reports an error).
//! - Dead tensors are freed without a copy, and so are tensors with a valid host copy.
//! - At the end of a step every variable is moved to the host, and the next step reads it from there; a kept result is on the
//!   device at the end (ours, as if an operator at the end used it).
//! - Tensors that are given at the start are swapped out before the first operator unless the window reaches them.
//!
//! The paper's one parameter is the window; it does not say how to choose it (nnabla: 1.5 times the budget). Here thirty are
//! tried, from a twentieth of the budget to 1.5 times the budget, and an unlimited one, for which the budget alone decides
//! how early a tensor is swapped in.

use std::collections::BTreeSet;

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Problem, TensorId};
use lmsc_schedule::{DoesNotFit, Plan, Request};

use crate::options::Options;
use crate::policy::{Facts, Issued, Outcome, Timing};

/// Number of windows tried at an effort of 100 percent, a twentieth of the budget apart.
const WINDOWS: u64 = 30;

/// The plan of the best window, or of the window that the options give, for whole tensors.
///
/// # Errors
/// [`DoesNotFit`] if the tensors of an operator together with the unswappable ones exceed the budget.
pub(crate) fn plan(request: &Request, options: &Options) -> Result<Plan, DoesNotFit> {
    let facts = Facts::of(request)?;
    let windows = options.window.map_or_else(|| windows(request), |window| vec![window]);
    let mut tried: Vec<Vec<Issued>> = Vec::new();
    let mut best: Option<Outcome> = None;
    let mut refusal = DoesNotFit { tick: 0, needed: request.budget, budget: request.budget };
    for window in windows {
        let issued = Queue::new(request.problem, &facts, request.budget, window).run();
        if tried.contains(&issued) {
            continue;
        }
        match Outcome::of(request, &issued, Timing::Early) {
            Ok(found) if best.as_ref().is_none_or(|best| found.makespan() < best.makespan()) => {
                best = Some(found);
            }
            Ok(_) => {}
            Err(error) => refusal = error,
        }
        tried.push(issued);
    }
    best.map(|best| best.plan(request.problem)).ok_or(refusal)
}

/// The windows to try.
fn windows(request: &Request) -> Vec<u64> {
    let count = (WINDOWS * u64::from(request.effort)).div_ceil(100).max(1);
    let share = |n: u64| u128::from(request.budget) * 3 * u128::from(n) / (2 * u128::from(count));
    (1..=count).map(|n| share(n).min(u64::MAX.into()) as u64).chain([u64::MAX]).collect()
}

/// Where a tensor is once all instructions issued so far have been executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Not written yet, or dead.
    #[default]
    Nowhere,
    Device,
    /// On the host, but its device memory has not been waited for; by its departure.
    Leaving(usize),
    Host,
}

/// The queue over the variable sequence, and the state derived from it.
struct Queue<'a> {
    problem: &'a Problem,
    facts: &'a Facts,
    budget: u64,
    window: u64,
    /// The tensors of all operators, then those that must be resident at the end.
    sequence: Vec<TensorId>,
    /// For each tick, the end of its part of the sequence; one more entry stands for the end of the step.
    ends: Vec<usize>,
    /// The position in the sequence at which the queue ends.
    head: usize,
    /// By position in the sequence up to the head, the copy that was issued when the queue reached it.
    fetched: Vec<Option<usize>>,
    /// Number of occurrences of each tensor in the queue.
    queued: SecondaryMap<TensorId, u32>,
    /// Bytes of the tensors in the queue.
    queued_bytes: u64,
    place: SecondaryMap<TensorId, Place>,
    /// Bytes of movable tensors on the device that are not being swapped out, and of those that are.
    here: u64,
    leaving: u64,
    /// Whether the host lacks a valid copy of the tensor.
    dirty: SecondaryMap<TensorId, bool>,
    /// The issued instructions; none for cancelled ones and for places without one.
    issued: Vec<Option<Issued>>,
    /// For each tensor, the position among the issued instructions of its copy out if it is swapped out after its last use so far.
    departure: SecondaryMap<TensorId, usize>,
    /// The departures that have not been waited for; stale if the tensor stays after all.
    pending: BTreeSet<(usize, TensorId)>,
}

impl<'a> Queue<'a> {
    fn new(problem: &'a Problem, facts: &'a Facts, budget: u64, window: u64) -> Queue<'a> {
        let (mut sequence, mut ends) = (Vec::new(), Vec::with_capacity(problem.ops.len() + 1));
        for op in &problem.ops {
            sequence.extend(op.touches());
            ends.push(sequence.len());
        }
        let results =
            problem.tensors.iter().filter(|&(id, t)| t.kept && facts.movable[id] && !facts.wraps[id]);
        sequence.extend(results.map(|(id, _)| id));
        ends.push(sequence.len());
        let mut queue = Queue {
            problem,
            facts,
            budget,
            window,
            sequence,
            ends,
            head: 0,
            fetched: Vec::new(),
            queued: SecondaryMap::with_capacity(problem.tensors.len()),
            queued_bytes: 0,
            place: SecondaryMap::with_capacity(problem.tensors.len()),
            here: 0,
            leaving: 0,
            dirty: SecondaryMap::with_capacity(problem.tensors.len()),
            issued: Vec::new(),
            departure: SecondaryMap::with_capacity(problem.tensors.len()),
            pending: BTreeSet::new(),
        };
        for (tensor, t) in problem.tensors.iter().filter(|&(id, t)| t.given && facts.movable[id]) {
            if facts.wraps[tensor] {
                queue.place[tensor] = Place::Host;
                continue;
            }
            queue.place[tensor] = Place::Device;
            queue.here += t.bytes;
            queue.dirty[tensor] = true;
            if facts.uses.of(tensor).first() != Some(&0) {
                queue.departs_from_here(tensor);
                queue.leave(tensor);
            }
        }
        queue
    }

    /// The instructions issued during the step.
    fn run(mut self) -> Vec<Issued> {
        for tick in 0..self.ends.len() {
            self.extend(tick);
            self.reserve(tick);
            let Some(op) = self.problem.ops.get(tick) else { break };
            self.issued.push(Some(Issued::Op(tick as u32)));
            for &tensor in op.produces.iter().filter(|&&t| self.facts.movable[t]) {
                self.place[tensor] = Place::Device;
                self.here += self.bytes(tensor);
            }
            op.produces.iter().chain(&op.changes).for_each(|&t| self.dirty[t] = true);
            op.touches().for_each(|tensor| self.release(tick, tensor));
        }
        self.issued.into_iter().flatten().collect()
    }

    fn bytes(&self, tensor: TensorId) -> u64 {
        self.problem.tensors[tensor].bytes
    }

    /// The first two steps of Fig. 2: extends the queue and swaps in the tensors that it reaches.
    fn extend(&mut self, tick: usize) {
        // The operator's own tensors are not waited for; otherwise they would be swapped out and in between two operators.
        for index in self.head..self.ends[tick] {
            let tensor = self.sequence[index];
            if let Place::Leaving(departure) = self.place[tensor] {
                self.stay(tensor, departure);
            }
        }
        while let Some(&tensor) = self.sequence.get(self.head) {
            let bytes = self.bytes(tensor);
            let mut fetched = None;
            if self.queued[tensor] == 0 {
                let own = self.head < self.ends[tick];
                let comes = matches!(self.place[tensor], Place::Leaving(_) | Place::Host);
                let beyond = self.queued_bytes.saturating_add(bytes) > self.window;
                if !own && (beyond || comes && self.here + bytes > self.budget) {
                    break;
                }
                self.queued_bytes += bytes;
                match self.place[tensor] {
                    Place::Leaving(departure) => self.stay(tensor, departure),
                    Place::Host => {
                        while self.here + self.leaving + bytes > self.budget && self.wait() {}
                        fetched = Some(self.issued.len());
                        self.issued.push(Some(Issued::In(tensor)));
                        self.place[tensor] = Place::Device;
                        self.here += bytes;
                    }
                    Place::Nowhere | Place::Device => {}
                }
            }
            self.queued[tensor] += 1;
            self.fetched.push(fetched);
            self.head += 1;
        }
    }

    /// Makes room for the results of the operator and for its workspace.
    fn reserve(&mut self, tick: usize) {
        let results = self.problem.ops.get(tick).map_or(&[][..], |op| &op.produces);
        let results = results.iter().filter(|&&t| self.facts.movable[t]).map(|&t| self.bytes(t));
        let need = self.facts.fixed[tick] + results.sum::<u64>();
        while self.here + self.leaving + need > self.budget && (self.wait() || self.take_back(tick)) {}
    }

    /// The third step of Fig. 2: removes one use of the tensor from the queue, and swaps it out if none is left.
    fn release(&mut self, tick: usize, tensor: TensorId) {
        let bytes = self.bytes(tensor);
        self.queued[tensor] -= 1;
        let last = self.facts.uses.of(tensor).last() == Some(&(tick as u32));
        let dead = last && !self.problem.tensors[tensor].kept;
        if self.facts.movable[tensor] && !dead {
            self.departs_from_here(tensor);
        }
        if self.queued[tensor] > 0 {
            return;
        }
        self.queued_bytes -= bytes;
        if dead && self.facts.movable[tensor] {
            self.here -= bytes;
            self.place[tensor] = Place::Nowhere;
        } else if self.facts.movable[tensor] {
            self.leave(tensor);
        }
    }

    /// Undoes the last extension of the queue; false if only the operator's own tensors are left in it.
    fn take_back(&mut self, tick: usize) -> bool {
        if self.head <= self.ends[tick] {
            return false;
        }
        self.head -= 1;
        let tensor = self.sequence[self.head];
        let fetched = self.fetched.pop().flatten();
        self.queued[tensor] -= 1;
        if self.queued[tensor] == 0 {
            self.queued_bytes -= self.bytes(tensor);
            if let Some(copy) = fetched {
                self.issued[copy] = None;
                self.place[tensor] = Place::Host;
                self.here -= self.bytes(tensor);
            } else if self.place[tensor] == Place::Device {
                self.leave(tensor);
            }
        }
        true
    }

    /// Records that a copy out of the tensor, if it is swapped out before its next use, belongs here.
    fn departs_from_here(&mut self, tensor: TensorId) {
        self.departure[tensor] = self.issued.len();
        self.issued.push(None);
    }

    /// Swaps out a tensor after its last use, with a copy if the host lacks a valid one.
    fn leave(&mut self, tensor: TensorId) {
        let departure = self.departure[tensor];
        if std::mem::replace(&mut self.dirty[tensor], false) {
            self.issued[departure] = Some(Issued::Out(tensor));
        }
        self.place[tensor] = Place::Leaving(departure);
        self.pending.insert((departure, tensor));
        self.here -= self.bytes(tensor);
        self.leaving += self.bytes(tensor);
    }

    /// Cancels a departure.
    fn stay(&mut self, tensor: TensorId, departure: usize) {
        self.dirty[tensor] |= self.issued[departure].take().is_some();
        self.place[tensor] = Place::Device;
        self.pending.remove(&(departure, tensor));
        self.leaving -= self.bytes(tensor);
        self.here += self.bytes(tensor);
    }

    /// Waits for the oldest departure; false where there is none.
    fn wait(&mut self) -> bool {
        let Some((_, tensor)) = self.pending.pop_first() else { return false };
        self.place[tensor] = Place::Host;
        self.leaving -= self.bytes(tensor);
        true
    }
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Phase::{Backward, Forward};
    use lmsc_schedule::Scheduler;
    use lmsc_schedule::problem::{Operator, Problem};
    use lmsc_testing::small::{op, problem, produced, steps, variable};

    use super::*;
    use crate::options::Options;
    use crate::testing::{run, run_with};

    /// Tensors of 10 bytes, produced one after the other and used in reverse order, by operators of 10 ns.
    fn hill(tensors: u32) -> Problem {
        let forward = (0..tensors).map(|n| op(Forward, 10, if n > 0 { &[0] } else { &[] }, &[n]));
        let backward = (0..tensors).rev().map(|n| op(Backward, 10, &[n], &[]));
        let mut ops: Vec<_> = forward.chain(backward).collect();
        (1..tensors).for_each(|n| ops[n as usize].reads = vec![TensorId::from_u32(n - 1)]);
        problem(&vec![produced(10); tensors as usize], &ops)
    }

    fn planned(problem: &Problem, budget: u64, window: u64) -> String {
        let options = Options { window: Some(window), ..Options::default() };
        let scheduler = Scheduler::Paper;
        steps(&run_with("window", &Request { scheduler, ..Request::new(problem, budget) }, options).unwrap())
    }

    #[test]
    fn a_larger_window_brings_tensors_back_earlier_in_the_order() {
        // OOC §3: copies in are triggered by the bytes of the uses ahead.
        let hill = hill(5);
        let forward = "op0@0 op1@10 out0@10 op2@20 out1@20 op3@30 op4@40 op5@50";
        let alone = format!("{forward} op6@60 op7@70 in1@60 op8@80 in0@70 op9@90");
        let two = format!("{forward} op6@60 in1@60 op7@70 in0@70 op8@80 op9@90");
        let three = format!("{forward} in1@60 op6@60 in0@70 op7@70 op8@80 op9@90");
        for (window, expected) in [(0, alone), (20, two), (30, three)] {
            assert_eq!(planned(&hill, 30, window), expected);
        }
    }

    #[test]
    fn tensors_without_a_waiting_reader_stay() {
        // OOC Fig. 2 (d): of five tensors, three fit beside the results, and only two are copied.
        let hill = hill(5);
        assert!(!planned(&hill, 30, 0).contains("out2"));
        // All fit: each tensor leaves the window and re-enters it before its memory is needed.
        let all = planned(&hill, 50, 0);
        assert!(!all.contains("out") && !all.contains("in"), "{all}");
    }

    #[test]
    fn variables_are_on_the_host_between_steps_and_leave_only_if_they_changed() {
        let reads = [op(Forward, 10, &[0], &[]), op(Forward, 10, &[1], &[]), op(Backward, 10, &[2], &[])];
        let mut changes = reads.clone();
        changes[1].changes = vec![TensorId::from_u32(1)];
        let plan = |ops: &[Operator]| planned(&problem(&[variable(10); 3], ops), 20, 20);
        assert_eq!(plan(&reads), "in0@0 in1@10 op0@10 in2@20 op1@20 op2@30");
        assert_eq!(plan(&changes), "in0@0 in1@10 op0@10 in2@20 op1@20 out1@30 op2@30");
    }

    #[test]
    fn the_search_is_no_worse_than_any_of_its_windows() {
        let problem = lmsc_testing::random::problem(&mut lmsc_testing::Rng::new(5), 12);
        let budget = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap();
        for scheduler in [Scheduler::Paper, Scheduler::Justified] {
            let request = Request { scheduler, ..Request::new(&problem, budget) };
            let best = run("window", &request).unwrap().makespan();
            for window in windows(&request) {
                let options = Options { window: Some(window), ..Options::default() };
                assert!(best <= run_with("window", &request, options).unwrap().makespan());
            }
        }
    }
}
