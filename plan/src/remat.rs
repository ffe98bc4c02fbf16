//! Running operators again: a problem rewritten so that tensors are dropped after an early use and made anew
//! before a late one.

use cranelift_entity::{PrimaryMap, SecondaryMap};

use crate::problem::{Op, Problem, TensorId, Uses, Window};

/// A copy that was made for one recomputation serves another within so many operators.
const STILL_THERE: usize = 40;

/// A problem in which some operators run twice.
#[derive(Clone, Debug)]
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
    /// reads is made anew in turn if it is dropped then or no longer there; what cannot be is kept for it.
    pub fn rewrite(&self, dropped: &[Dropped]) -> Rewritten {
        Rewriting::new(self, dropped).run()
    }
}

struct Rewriting<'a> {
    source: &'a Rematerializer<'a>,
    /// Windows that end at each tick, by the tick.
    ends: Vec<(u32, TensorId)>,
    /// By tensor, its windows that are not over and that nothing has ended early.
    windows: SecondaryMap<TensorId, &'a [Dropped]>,
    /// By tensor, what stands for it now.
    version: SecondaryMap<TensorId, Option<TensorId>>,
    /// By tensor, where its last repetition stands.
    made: SecondaryMap<TensorId, Option<usize>>,
    result: Rewritten,
}

impl<'a> Rewriting<'a> {
    fn new(source: &'a Rematerializer<'a>, dropped: &'a [Dropped]) -> Rewriting<'a> {
        let mut windows: SecondaryMap<TensorId, &[Dropped]> = SecondaryMap::new();
        for group in dropped.chunk_by(|a, b| a.window.tensor == b.window.tensor) {
            windows[group[0].window.tensor] = group;
        }
        let mut ends: Vec<_> = dropped.iter().map(|d| (d.window.until, d.window.tensor)).collect();
        ends.sort_unstable();
        let tensors = &source.problem.tensors;
        let problem = Problem {
            ops: Vec::with_capacity(source.problem.ops.len() + dropped.len()),
            tensors: tensors.clone(),
            link: source.problem.link,
            kinds: source.problem.kinds.clone(),
        };
        let result = Rewritten { problem, op_origin: Vec::new(), tensor_origin: tensors.keys().collect() };
        Rewriting { source, ends, windows, version: SecondaryMap::new(), made: SecondaryMap::new(), result }
    }

    fn run(mut self) -> Rewritten {
        let mut ends = std::mem::take(&mut self.ends).into_iter().peekable();
        for (tick, op) in self.source.problem.ops.iter().enumerate() {
            let now = tick as u32;
            while let Some((_, tensor)) = ends.next_if(|(until, _)| *until == now) {
                if self.is_dropped(tensor, now) {
                    self.repeat(tensor, now);
                }
                // Over, whether ended here or early.
                let rest = self.windows[tensor].iter().position(|d| d.window.until > now);
                self.windows[tensor] = rest.map_or(&[], |at| &self.windows[tensor][at..]);
            }
            let rename = |tensors: &[TensorId]| tensors.iter().map(|&t| self.current(t)).collect();
            let renamed = Op {
                reads: rename(&op.reads),
                produces: op.produces.clone(),
                changes: rename(&op.changes),
                ..*op
            };
            self.result.problem.ops.push(renamed);
            self.result.op_origin.push(now);
        }
        self.result
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
        let recent = || self.made[tensor].is_some_and(|at| self.result.problem.ops.len() - at < STILL_THERE);
        (self.is_dropped(tensor, now) || self.is_dead(tensor, now)) && !recent()
    }

    /// Runs the tensor's producer again, after those of what it reads and is not there.
    fn repeat(&mut self, tensor: TensorId, now: u32) {
        let mut stack = vec![(tensor, false)];
        while let Some((tensor, ready)) = stack.pop() {
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
        let reads = op.reads.iter().filter(|r| !op.changes.contains(r)).map(|&r| self.current(r)).collect();
        let mut produces = Vec::with_capacity(op.produces.len());
        for &tensor in &op.produces {
            let new = self.result.problem.tensors.push(self.source.problem.tensors[tensor]);
            self.result.tensor_origin.push(tensor);
            produces.push(new);
            let dropped = self.is_dropped(tensor, now);
            if dropped && !self.windows[tensor][0].again {
                self.windows[tensor] = &self.windows[tensor][1..];
            }
            // What has changed since is not made anew.
            if (dropped || self.is_dead(tensor, now)) && self.source.can_repeat(tensor, now) {
                self.version[tensor] = Some(new);
                self.made[tensor] = Some(self.result.problem.ops.len());
            }
        }
        self.result.problem.ops.push(Op { reads, produces, changes: Vec::new(), ..*op });
        self.result.op_origin.push(tick);
    }
}
