//! Running operators again: a problem rewritten so that tensors are dropped after an early use and made anew
//! before a late one.

use cranelift_entity::{PrimaryMap, SecondaryMap};

use crate::problem::{Op, Problem, TensorId, Uses, Window};

/// A copy that was made for one recomputation serves another within so many operators.
const STILL_THERE: usize = 40;

/// Operators that run again are at most so many times those of the source.
pub const MOST_AGAIN: usize = 3;

/// A problem in which some operators run twice.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    /// What is executed.
    pub problem: Problem,
    /// By tick, the tick that it had, or repeats, in the source.
    pub op_origin: Vec<u32>,
    /// By tensor, the tensor that it is, or repeats, in the source.
    pub tensor_origin: PrimaryMap<TensorId, TensorId>,
}

/// A tensor that is made anew instead of being kept, for one of its windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dropped {
    /// Between the uses around which it is gone.
    pub window: Window,
    /// Whether it goes again if something else needed it earlier than the use that ends the window; otherwise it
    /// stays from then on.
    pub again: bool,
}

/// What rewriting needs to know of a problem, computed once for many rewritings.
#[derive(Debug)]
pub struct Rematerializer<'a> {
    problem: &'a Problem,
    uses: Uses,
    /// By tensor, the operator that brings it into being.
    producer: SecondaryMap<TensorId, Option<u32>>,
    /// By tensor, the ticks at which anything changes it, in their order.
    changes: SecondaryMap<TensorId, Vec<u32>>,
}

impl<'a> Rematerializer<'a> {
    /// The rematerializer of the problem.
    pub fn new(problem: &'a Problem) -> Rematerializer<'a> {
        let mut producer = SecondaryMap::with_capacity(problem.tensors.len());
        let mut changes: SecondaryMap<_, Vec<u32>> = SecondaryMap::with_capacity(problem.tensors.len());
        for (tick, op) in problem.ops.iter().enumerate() {
            op.produces.iter().for_each(|&t| producer[t] = Some(tick as u32));
            op.changes.iter().for_each(|&t| changes[t].push(tick as u32));
        }
        Rematerializer { problem, uses: problem.uses(), producer, changes }
    }

    /// The windows after which the tensor could be made anew, by tensor, then by tick.
    ///
    /// Its producer must be recomputable and nothing may have changed the tensor, or what its producer reads,
    /// since. What the producer itself changes in place it does not depend on ([`Op::recomputable`]).
    pub fn windows(&self) -> Vec<Window> {
        let mut windows = Vec::new();
        for tensor in self.problem.tensors.keys() {
            let uses = self.uses.of(tensor);
            let gaps = uses.windows(2).filter(|pair| pair[0] + 1 < pair[1]);
            let gaps = gaps.filter(|pair| self.can_repeat(tensor, pair[1]));
            windows.extend(gaps.map(|pair| Window { tensor, from: pair[0] + 1, until: pair[1] }));
        }
        windows
    }

    /// The tick at which the tensor is produced.
    pub fn producer(&self, tensor: TensorId) -> Option<u32> {
        self.producer[tensor]
    }

    /// The last tick at which the source uses the tensor.
    pub fn last_use(&self, tensor: TensorId) -> u32 {
        self.uses.of(tensor).last().copied().unwrap_or(0)
    }

    /// Whether the operator that produced the tensor may run again right before the operator of the tick `now`.
    pub fn can_repeat(&self, tensor: TensorId, now: u32) -> bool {
        self.producer[tensor].is_some_and(|tick| {
            let op = &self.problem.ops[tick as usize];
            let same = |t: TensorId| !self.changes[t].iter().any(|change| (tick + 1..now).contains(change));
            op.recomputable && same(tensor) && op.reads.iter().all(|&r| op.changes.contains(&r) || same(r))
        })
    }

    /// The problem in which each of these tensors is dropped for its window and made anew before its end.
    ///
    /// `dropped` are windows of [`Rematerializer::windows`], by tensor, then by tick. What a repeated operator
    /// reads is made anew in turn if it is dropped then or no longer there; what cannot be, and what is among
    /// `lasting`, is kept for it instead.
    ///
    /// None if more than [`MOST_AGAIN`] times the operators would run again: what is made anew for what is made anew
    /// can double at every step back.
    pub fn rewrite(&self, dropped: &[Dropped], lasting: &[TensorId]) -> Option<Rewritten> {
        let mut rewritten = Rewritten::default();
        self.rewrite_into(dropped, lasting, &mut rewritten).then_some(rewritten)
    }

    /// As [`Rematerializer::rewrite`], in the memory of another rewritten problem; whether that is of use.
    pub fn rewrite_into(&self, dropped: &[Dropped], lasting: &[TensorId], result: &mut Rewritten) -> bool {
        Rewriting::new(self, dropped, lasting, result).run()
    }
}

struct Rewriting<'a> {
    source: &'a Rematerializer<'a>,
    /// Windows that end at each tick, by the tick.
    ends: Vec<(u32, TensorId)>,
    /// By tensor, its windows that are not over and that nothing has ended early.
    windows: SecondaryMap<TensorId, &'a [Dropped]>,
    /// By tensor, whether it stays for those that need it again after its last use.
    lasts: SecondaryMap<TensorId, bool>,
    /// By tensor, what stands for it now.
    version: SecondaryMap<TensorId, Option<TensorId>>,
    /// By tensor, where its last repetition stands.
    made: SecondaryMap<TensorId, Option<usize>>,
    result: &'a mut Rewritten,
}

impl<'a> Rewriting<'a> {
    fn new(
        source: &'a Rematerializer<'a>,
        dropped: &'a [Dropped],
        lasting: &[TensorId],
        result: &'a mut Rewritten,
    ) -> Rewriting<'a> {
        let tensors = &source.problem.tensors;
        let mut lasts = SecondaryMap::with_capacity(tensors.len());
        lasting.iter().for_each(|&tensor| lasts[tensor] = true);
        let mut windows: SecondaryMap<TensorId, &[Dropped]> = SecondaryMap::with_capacity(tensors.len());
        for group in dropped.chunk_by(|a, b| a.window.tensor == b.window.tensor) {
            windows[group[0].window.tensor] = group;
        }
        let mut ends: Vec<_> = dropped.iter().map(|d| (d.window.until, d.window.tensor)).collect();
        ends.sort_unstable();
        result.problem.link = source.problem.link;
        result.problem.kinds.clone_from(&source.problem.kinds);
        result.problem.tensors.clear();
        result.tensor_origin.clear();
        result.op_origin.clear();
        for (tensor, &facts) in tensors {
            result.problem.tensors.push(facts);
            result.tensor_origin.push(tensor);
        }
        let (version, made) =
            (SecondaryMap::with_capacity(tensors.len()), SecondaryMap::with_capacity(tensors.len()));
        Rewriting { source, ends, windows, lasts, version, made, result }
    }

    /// Whether it came to an end.
    fn run(mut self) -> bool {
        let most = self.source.problem.ops.len() * (1 + MOST_AGAIN);
        let mut ends = std::mem::take(&mut self.ends).into_iter().peekable();
        for (tick, op) in self.source.problem.ops.iter().enumerate() {
            let now = tick as u32;
            while let Some((_, tensor)) = ends.next_if(|(until, _)| *until == now) {
                if self.is_dropped(tensor, now) {
                    self.repeat(tensor, now, most);
                }
                // Over, whether ended here or early.
                let rest = self.windows[tensor].iter().position(|d| d.window.until > now);
                self.windows[tensor] = rest.map_or(&[], |at| &self.windows[tensor][at..]);
            }
            let mut renamed = self.next_op(op, now);
            renamed.reads.extend(op.reads.iter().map(|&t| self.current(t)));
            renamed.produces.extend_from_slice(&op.produces);
            renamed.changes.extend(op.changes.iter().map(|&t| self.current(t)));
            self.put(renamed);
            if self.result.op_origin.len() > most {
                return false;
            }
        }
        self.result.problem.ops.truncate(self.result.op_origin.len());
        true
    }

    /// An operator like this, without its tensors, to stand next; [`Rewriting::put`] takes it back.
    fn next_op(&mut self, like: &Op, origin: u32) -> Op {
        let at = self.result.op_origin.len();
        self.result.op_origin.push(origin);
        let [reads, produces, changes] = match self.result.problem.ops.get_mut(at) {
            Some(old) => [&mut old.reads, &mut old.produces, &mut old.changes].map(std::mem::take),
            None => Default::default(),
        };
        let [reads, produces, changes] = [reads, produces, changes].map(|mut tensors: Vec<TensorId>| {
            tensors.clear();
            tensors
        });
        let Op { kind, phase, nanos, workspace, recomputable, .. } = *like;
        Op { kind, phase, nanos, workspace, recomputable, reads, produces, changes }
    }

    fn put(&mut self, op: Op) {
        let at = self.result.op_origin.len() - 1;
        match self.result.problem.ops.get_mut(at) {
            Some(old) => *old = op,
            None => self.result.problem.ops.push(op),
        }
    }

    fn current(&self, tensor: TensorId) -> TensorId {
        self.version[tensor].unwrap_or(tensor)
    }

    fn is_dropped(&self, tensor: TensorId, now: u32) -> bool {
        self.windows[tensor].first().is_some_and(|d| d.window.from <= now)
    }

    /// Whether the source would have freed the tensor before the tick.
    fn is_dead(&self, tensor: TensorId, now: u32) -> bool {
        let facts = self.source.problem.tensors[tensor];
        !facts.kept && self.source.last_use(tensor) < now
    }

    /// Whether the tensor has to be made anew before something at this tick reads it.
    fn is_missing(&self, tensor: TensorId, now: u32) -> bool {
        if !self.source.can_repeat(tensor, now) {
            return false;
        }
        let recent = || self.made[tensor].is_some_and(|at| self.result.op_origin.len() - at < STILL_THERE);
        let gone = || self.is_dead(tensor, now) && !self.lasts[tensor];
        (self.is_dropped(tensor, now) || gone()) && !recent()
    }

    /// Runs the tensor's producer again, after those of what it reads and is not there; not all of them, once there
    /// are more than `most` operators.
    fn repeat(&mut self, tensor: TensorId, now: u32, most: usize) {
        let mut stack = vec![(tensor, false)];
        while let Some((tensor, ready)) = stack.pop().filter(|_| self.result.op_origin.len() <= most) {
            let Some(tick) = self.source.producer[tensor].filter(|_| ready || self.is_missing(tensor, now))
            else {
                continue;
            };
            let op = &self.source.problem.ops[tick as usize];
            if !ready {
                stack.push((tensor, true));
                let missing =
                    op.reads.iter().filter(|&&r| !op.changes.contains(&r) && self.is_missing(r, now));
                stack.extend(missing.map(|&r| (r, false)));
                continue;
            }
            self.push_again(tick, now);
        }
    }

    /// Runs the operator again; its results stand for those that are dropped or dead.
    fn push_again(&mut self, tick: u32, now: u32) {
        let op = &self.source.problem.ops[tick as usize];
        let mut again = self.next_op(op, tick);
        let at = self.result.op_origin.len() - 1;
        again.reads.extend(op.reads_again().map(|r| self.current(r)));
        for &tensor in &op.produces {
            let new = self.result.problem.tensors.push(self.source.problem.tensors[tensor]);
            self.result.tensor_origin.push(tensor);
            again.produces.push(new);
            let dropped = self.is_dropped(tensor, now);
            if dropped && !self.windows[tensor][0].again {
                self.windows[tensor] = &self.windows[tensor][1..];
            }
            // What has changed since is not made anew.
            if (dropped || self.is_dead(tensor, now)) && self.source.can_repeat(tensor, now) {
                self.version[tensor] = Some(new);
                self.made[tensor] = Some(at);
            }
        }
        self.put(again);
    }
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Phase::{Backward, Forward};

    use super::*;
    use crate::planners::testing::{op, problem, produced, variable};

    #[test]
    fn what_lasts_is_read_again_and_not_made_anew() {
        let again = |op: Op| Op { recomputable: true, ..op };
        let ops = [
            again(op(Forward, 5, &[0], &[1])),
            again(op(Forward, 1, &[1], &[2])),
            op(Forward, 1, &[2], &[3]),
            op(Backward, 1, &[3], &[4]),
            op(Backward, 1, &[2, 4], &[]),
        ];
        let problem = problem(&[variable(1), produced(1), produced(9), produced(1), produced(1)], &ops);
        let remat = Rematerializer::new(&problem);
        let [small, large] = [1, 2].map(TensorId::from_u32);
        let window = remat.windows().into_iter().find(|window| window.tensor == large).unwrap();
        let dropped = [Dropped { window, again: false }];
        assert_eq!(remat.rewrite(&dropped, &[]).unwrap().op_origin, [0, 1, 2, 3, 0, 1, 4]);
        let lasting = remat.rewrite(&dropped, &[small]).unwrap();
        assert_eq!(lasting.op_origin, [0, 1, 2, 3, 1, 4]);
        assert_eq!(lasting.problem.ops[4].reads, [small]);
        assert_eq!(lasting.problem.check(), Ok(()));

        // In the memory of another.
        let mut rewritten = lasting;
        remat.rewrite_into(&[], &[], &mut rewritten);
        assert_eq!(rewritten.problem.ops, problem.ops);
        assert_eq!(rewritten.problem.tensors.len(), problem.tensors.len());
        assert_eq!(rewritten.op_origin, [0, 1, 2, 3, 4]);
    }
}
