//! A cache that evicts the least recently used tensor.
//!
//! Before an operator, tensors that it does not touch are evicted, the least recently used first, until the tensors that it
//! touches fit; then its missing tensors are swapped in. There is no prefetching, so every swap-in is waited for.
//!
//! # Source
//! Wang et al., *SuperNeurons: Dynamic GPU Memory Management for Training Deep Neural Networks*, PPoPP 2018, §3.3.2
//! (the tensor cache). The paper's other two techniques, prefetching at the checkpoints and recomputation, are not
//! part of the cache. It defines neither a "use" nor the end of a step. Here an operator uses the tensors that it reads and
//! writes, of tensors used by the same operator the lower id is evicted first, and a step ends where the next one begins:
//! variables that stay are on the device throughout the gap between two steps, the others on the host.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Problem, TensorId};
use lmsc_schedule::{DoesNotFit, Plan, Request};

use crate::policy::{Facts, Issued, Outcome, Timing};

/// The plan of the cache, for whole tensors.
///
/// # Errors
/// [`DoesNotFit`] if the tensors of an operator together with the unswappable ones exceed the budget.
pub(crate) fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    let facts = Facts::of(request)?;
    let mut stays = residents(request.problem, &facts, request.budget);
    // A variable that would be evicted between two steps is not kept between them; each round finds some, or ends.
    let issued = loop {
        let (issued, evicted) = Cache::new(request.problem, &facts, request.budget, &stays).run();
        if evicted.is_empty() {
            break issued;
        }
        evicted.into_iter().for_each(|tensor| stays[tensor] = false);
    };
    Outcome::of(request, &issued, Timing::OnDemand).map(|outcome| outcome.plan(request.problem))
}

/// The variables that can be on the device from one step to the next: the most recently used ones, as many as fit.
fn residents(problem: &Problem, facts: &Facts, budget: u64) -> SecondaryMap<TensorId, bool> {
    let given = problem.tensors.iter().filter(|&(id, t)| t.given && !facts.wraps[id]);
    let mut used: u64 = given.map(|(_, t)| t.bytes).sum();
    let mut variables: Vec<TensorId> = problem.tensors.keys().filter(|&t| facts.wraps[t]).collect();
    variables.sort_by_key(|&t| (Reverse(facts.uses.of(t).last().copied()), t));
    let mut stays = SecondaryMap::new();
    for tensor in variables {
        used += problem.tensors[tensor].bytes;
        if used > budget {
            break;
        }
        stays[tensor] = true;
    }
    stays
}

/// The tensors on the device while operators run one after the other, without those that never move.
struct Cache<'a> {
    problem: &'a Problem,
    facts: &'a Facts,
    budget: u64,
    /// Variables that are on the device between steps.
    stays: &'a SecondaryMap<TensorId, bool>,
    /// By tensor on the device, the tick of its last use; ticks of the previous step are negative.
    used: SecondaryMap<TensorId, Option<i64>>,
    /// The same tensors, by that tick.
    by_use: BTreeSet<(i64, TensorId)>,
    /// Their bytes.
    bytes: u64,
    /// Whether the host lacks a valid copy of the tensor.
    dirty: SecondaryMap<TensorId, bool>,
    issued: Vec<Issued>,
    /// Variables that were to stay between two steps and had to be evicted.
    evicted: Vec<TensorId>,
}

impl<'a> Cache<'a> {
    fn new(
        problem: &'a Problem,
        facts: &'a Facts,
        budget: u64,
        stays: &'a SecondaryMap<TensorId, bool>,
    ) -> Cache<'a> {
        let mut cache = Cache {
            problem,
            facts,
            budget,
            stays,
            used: SecondaryMap::with_capacity(problem.tensors.len()),
            by_use: BTreeSet::new(),
            bytes: 0,
            dirty: SecondaryMap::with_capacity(problem.tensors.len()),
            issued: Vec::new(),
            evicted: Vec::new(),
        };
        for (tensor, t) in problem.tensors.iter().filter(|&(id, t)| t.given && facts.movable[id]) {
            if !facts.wraps[tensor] || stays[tensor] {
                let last = facts.uses.of(tensor).last().map_or(0, |&last| i64::from(last));
                let before = if t.kept { last - i64::from(problem.ticks()) } else { -1 };
                cache.dirty[tensor] = true;
                cache.arrive(tensor, before);
            }
        }
        cache
    }

    /// The instructions issued during a step, and the variables that could not stay.
    fn run(mut self) -> (Vec<Issued>, Vec<TensorId>) {
        for (tick, op) in self.problem.ops.iter().enumerate() {
            let touched: Vec<TensorId> = op.touches().filter(|&t| self.facts.movable[t]).collect();
            self.demand(tick, &touched, &op.produces);
            self.issued.push(Issued::Op(tick as u32));
            op.produces.iter().chain(&op.changes).for_each(|&t| self.dirty[t] = true);
            for tensor in touched {
                let over = self.facts.uses.of(tensor).last() == Some(&(tick as u32));
                if over && !self.problem.tensors[tensor].kept {
                    self.forget(tensor);
                }
            }
        }
        let kept = self.problem.tensors.iter().filter(|&(id, t)| t.kept && self.facts.movable[id]);
        let (variables, results): (Vec<TensorId>, Vec<TensorId>) =
            kept.map(|(id, _)| id).partition(|&tensor| self.facts.wraps[tensor]);
        for tensor in variables {
            if !self.stays[tensor] && self.used[tensor].is_some() {
                self.leave(tensor);
            }
        }
        self.demand(self.problem.ops.len(), &results, &[]);
        (self.issued, self.evicted)
    }

    /// Makes these tensors resident, besides the memory that the tick always needs.
    fn demand(&mut self, tick: usize, touched: &[TensorId], produced: &[TensorId]) {
        let now = tick as i64;
        let absent: Vec<TensorId> = touched.iter().copied().filter(|&t| self.used[t].is_none()).collect();
        for &tensor in touched {
            if let Some(before) = self.used[tensor].replace(now) {
                self.by_use.remove(&(before, tensor));
                self.by_use.insert((now, tensor));
            }
        }
        let comes: u64 = absent.iter().map(|&t| self.problem.tensors[t].bytes).sum();
        while self.bytes + comes + self.facts.fixed[tick] > self.budget {
            let Some(&(_, oldest)) = self.by_use.first().filter(|(used, _)| *used < now) else { break };
            let uses = self.facts.uses.of(oldest);
            let between_steps = uses.first().is_none_or(|&first| tick <= first as usize)
                || uses.last().is_some_and(|&last| (last as usize) < tick);
            if self.facts.wraps[oldest] && self.stays[oldest] && between_steps {
                self.evicted.push(oldest);
            }
            self.leave(oldest);
        }
        for tensor in absent {
            if !produced.contains(&tensor) {
                self.issued.push(Issued::In(tensor));
            }
            self.arrive(tensor, now);
        }
    }

    fn arrive(&mut self, tensor: TensorId, used: i64) {
        self.used[tensor] = Some(used);
        self.by_use.insert((used, tensor));
        self.bytes += self.problem.tensors[tensor].bytes;
    }

    /// Evicts a tensor, with a copy if the host lacks a valid one.
    fn leave(&mut self, tensor: TensorId) {
        if std::mem::replace(&mut self.dirty[tensor], false) {
            self.issued.push(Issued::Out(tensor));
        }
        self.forget(tensor);
    }

    fn forget(&mut self, tensor: TensorId) {
        if let Some(used) = self.used[tensor].take() {
            self.by_use.remove(&(used, tensor));
            self.bytes -= self.problem.tensors[tensor].bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Phase::{Backward, Forward};
    use lmsc_schedule::Scheduler;
    use lmsc_testing::small::{op, problem, produced, steps, variable};

    use super::*;
    use crate::testing::run;

    fn planned(problem: &Problem, budget: u64) -> String {
        let request = Request { scheduler: Scheduler::Paper, ..Request::new(problem, budget) };
        steps(&run("lru", &request).unwrap())
    }

    #[test]
    fn the_least_recently_used_tensor_leaves_and_returns_on_demand() {
        // Operator 3 needs 10 bytes more; of the first two tensors, the first was used last.
        let ops = [
            op(Forward, 10, &[], &[0]),
            op(Forward, 10, &[], &[1]),
            op(Forward, 10, &[0], &[]),
            op(Forward, 10, &[], &[2]),
            op(Backward, 10, &[2], &[]),
            op(Backward, 10, &[1], &[]),
            op(Backward, 10, &[0], &[]),
        ];
        let problem = problem(&[produced(10); 3], &ops);
        let expected = "op0@0 op1@10 op2@20 out1@30 op3@40 op4@50 in1@60 op5@70 op6@80";
        assert_eq!(planned(&problem, 20), expected);
        // Where only one tensor fits, a tensor with a valid host copy is evicted without a copy.
        let expected =
            "op0@0 out0@10 op1@20 out1@30 in0@40 op2@50 op3@60 op4@70 in1@80 op5@90 in0@100 op6@110";
        assert_eq!(planned(&problem, 10), expected);
    }

    #[test]
    fn variables_that_fit_stay_from_step_to_step() {
        let mut ops = [op(Forward, 10, &[0], &[]), op(Forward, 10, &[1], &[]), op(Backward, 10, &[2], &[])];
        ops[1].changes = vec![TensorId::from_u32(1)];
        let problem = problem(&[variable(10); 3], &ops);
        assert_eq!(planned(&problem, 30), "op0@0 op1@10 op2@20");
        // Two of three do not fit: each would be evicted before its use in the next step. Only the changed one is copied out.
        assert_eq!(planned(&problem, 20), "in0@0 op0@10 in1@20 op1@30 in2@40 op2@50 out1@60");
    }
}
