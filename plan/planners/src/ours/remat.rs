//! Recomputation: rewrites a problem so that tensors are dropped after an early use and recomputed before a late one.

use cranelift_entity::{PrimaryMap, SecondaryMap};
use lmsc_schedule::problem::{COMPUTE, Operator, Problem, TensorId, Uses, Window};
use lmsc_schedule::tuned::{self, Tunable};
use smallvec::{SmallVec, smallvec};

/// The number of operators of [`ReuseReach::Short`].
const REUSED_WITHIN: Tunable<usize> = Tunable::new(40);

/// Maximum number of recomputed operators, as a multiple of the operators of the source.
pub const MOST_AGAIN: usize = 3;

/// A problem in which some operators run more than once.
#[derive(Clone, Debug, Default)]
pub struct Rewritten {
    /// The problem that is executed.
    pub problem: Problem,
    /// For each tick, the tick of the source that it is or repeats.
    pub op_origin: Vec<u32>,
    /// For each tensor, the tensor of the source that it is or repeats.
    pub tensor_origin: PrimaryMap<TensorId, TensorId>,
}

/// A tensor that is recomputed instead of being kept, for one of its windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dropped {
    /// The window between the uses, during which the tensor is dropped.
    pub window: Window,
    /// Treatment of an operator that needs it earlier than the use that ends the window.
    pub needed: Needed,
    /// Maximum number of operators that run between its recomputation for the use that ends the window and that use. Earlier,
    /// there may be free memory that is gone at the use.
    pub early: u32,
}

impl Dropped {
    /// The tensor is recomputed right before the use that ends the window, or before an earlier use, and stays.
    pub fn new(window: Window) -> Dropped {
        Dropped { window, needed: Needed::Stays, early: 0 }
    }

    /// The tick before which it is recomputed.
    fn end(&self) -> u32 {
        self.window.until.saturating_sub(self.early).max(self.window.from)
    }
}

/// The handling of a tensor that is dropped for a window and needed within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Needed {
    /// It stays resident from then on.
    Stays,
    /// It is dropped again, and serves other operators within the reach of the rewriting.
    GoesAgain,
    /// It is recomputed for each operator of the source that needs it.
    Renewed,
}

/// Facts about a problem, computed once for many rewritings.
#[derive(Debug)]
pub struct Rematerializer<'a> {
    problem: &'a Problem,
    uses: Uses,
    /// For each tensor, the operator that produces it.
    producer: SecondaryMap<TensorId, Option<u32>>,
    /// For each tensor, the first tick before which its producer can no longer be repeated; 0 if it never can.
    no_more: SecondaryMap<TensorId, u32>,
    compute_nanos: u64,
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
        let mut no_more = SecondaryMap::with_capacity(problem.tensors.len());
        for (tick, op) in problem.ops.iter().enumerate().filter(|(_, op)| problem.may_repeat(op)) {
            let changed = |t: TensorId| changes[t].iter().copied().find(|change| *change > tick as u32);
            let first_read = op.reads_again().filter_map(changed).min();
            for &tensor in &op.produces {
                let first = changed(tensor).into_iter().chain(first_read).min();
                no_more[tensor] = first.map_or(u32::MAX, |change| change + 1);
            }
        }
        // A reduction holds the operand that it was given until its wait, which reads no other.
        for (tick, op) in problem.ops.iter().enumerate().filter(|(_, op)| op.is_reduction()) {
            op.reads.iter().for_each(|&t| no_more[t] = no_more[t].min(tick as u32 + 1));
        }
        Rematerializer {
            problem,
            uses: problem.uses(),
            producer,
            no_more,
            compute_nanos: problem.compute_nanos(),
        }
    }

    /// The windows after which the tensor could be recomputed, by tensor, then by tick.
    ///
    /// Its producer must be recomputable, and neither the tensor nor the inputs of its producer may have changed since. The
    /// results of the producer do not depend on the tensors that it changes in place ([`Operator::recomputable`]).
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
        now < self.no_more[tensor]
    }

    /// The problem in which each of these tensors is dropped for its window and recomputed before its end.
    ///
    /// `dropped` are windows of [`Rematerializer::windows`], by tensor, then by tick. The inputs of a repeated operator are
    /// recomputed in turn if they are dropped or dead at that point; inputs that cannot be recomputed, and those in
    /// `dead.lasting`, are kept for it instead.
    ///
    /// None if more than [`MOST_AGAIN`] times the operators would be recomputed: recomputations for recomputations can double
    /// their number at every step back.
    pub fn rewrite(&self, dropped: &[Dropped], dead: Dead<'_>) -> Option<Rewritten> {
        let mut rewritten = Rewritten::default();
        self.rewrite_into(dropped, dead, &mut rewritten).then_some(rewritten)
    }

    /// As [`Rematerializer::rewrite`], into the memory of another rewritten problem; false if there is no result.
    pub fn rewrite_into(&self, dropped: &[Dropped], dead: Dead<'_>, result: &mut Rewritten) -> bool {
        self.rewrite_within(dropped, dead, u64::MAX, result)
    }

    /// As [`Rematerializer::rewrite_into`]; also false if the operators take longer than `most_nanos`.
    pub fn rewrite_within(
        &self,
        dropped: &[Dropped],
        dead: Dead<'_>,
        most_nanos: u64,
        result: &mut Rewritten,
    ) -> bool {
        Rewriting::new(self, dropped, dead, most_nanos, result).run()
    }
}

/// The handling of tensors that only recomputed operators read after their last use in the source.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dead<'a> {
    /// These are kept until then. The others are recomputed.
    pub lasting: &'a [TensorId],
    /// These are recomputed for each operator of the source that requires recomputation. The others serve other operators
    /// within the reach.
    pub renewed: &'a [TensorId],
    /// For how long these others serve, and dropped tensors that go again.
    pub reach: ReuseReach,
}

/// How long a recomputed tensor serves other operators before it is dropped again, unless it is to be recomputed for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ReuseReach {
    /// For `REUSED_WITHIN` operators from its recomputation, recomputed ones among them.
    #[default]
    Short,
    /// Until this many operators of the source have run since it was used last.
    Operators(u32),
}

struct Rewriting<'a> {
    source: &'a Rematerializer<'a>,
    /// The ends of windows, by tick.
    ends: Vec<(u32, TensorId)>,
    tensors: PrimaryMap<TensorId, State<'a>>,
    /// Total time of all operators, including recomputed ones.
    nanos: u64,
    most_nanos: u64,
    most_ops: usize,
    reach: ReuseReach,
    /// The position of the first operator that is recomputed for the next operator of the source.
    group: usize,
    result: &'a mut Rewritten,
}

/// The state of a tensor of the source.
#[derive(Clone, Copy)]
struct State<'a> {
    /// Its windows that have not ended, neither at their end nor early.
    windows: &'a [Dropped],
    /// The tensor that represents it now.
    version: TensorId,
    /// The position of its last recomputation.
    made: Option<u32>,
    /// Whether it is kept for recomputed operators after its last use.
    lasts: bool,
    /// Whether it is recomputed for each of them.
    is_renewed: bool,
    /// The tick of the operator for which it was recomputed, or at which it was used last since.
    used: u32,
}

impl State<'_> {
    fn is_dropped(&self, now: u32) -> bool {
        self.dropped(now).is_some()
    }

    /// The window in which it is dropped at the tick.
    fn dropped(&self, now: u32) -> Option<&Dropped> {
        self.windows.first().filter(|d| d.window.from <= now)
    }
}

impl<'a> Rewriting<'a> {
    fn new(
        source: &'a Rematerializer<'a>,
        dropped: &'a [Dropped],
        dead: Dead<'_>,
        most_nanos: u64,
        result: &'a mut Rewritten,
    ) -> Rewriting<'a> {
        let problem = source.problem;
        let state =
            |version| State { windows: &[], version, made: None, lasts: false, is_renewed: false, used: 0 };
        let mut tensors: PrimaryMap<TensorId, State> = problem.tensors.keys().map(state).collect();
        dead.lasting.iter().for_each(|&tensor| tensors[tensor].lasts = true);
        dead.renewed.iter().for_each(|&tensor| tensors[tensor].is_renewed = true);
        for group in dropped.chunk_by(|a, b| a.window.tensor == b.window.tensor) {
            tensors[group[0].window.tensor].windows = group;
        }
        let mut ends: Vec<_> = dropped.iter().map(|d| (d.end(), d.window.tensor)).collect();
        ends.sort_unstable();
        (result.problem.link, result.problem.grain) = (problem.link, problem.grain);
        result.problem.kinds.clone_from(&problem.kinds);
        result.problem.lanes.clone_from(&problem.lanes);
        result.problem.tensors.clone_from(&problem.tensors);
        result.tensor_origin.clear();
        result.tensor_origin.extend(problem.tensors.keys());
        result.op_origin.clear();
        let most_ops = problem.ops.len() * (1 + MOST_AGAIN);
        let nanos = source.compute_nanos;
        let reach = dead.reach;
        Rewriting { source, ends, tensors, nanos, most_nanos, most_ops, reach, group: 0, result }
    }

    /// Whether the limits held.
    fn run(mut self) -> bool {
        let mut ends = std::mem::take(&mut self.ends).into_iter().peekable();
        for (tick, op) in self.source.problem.ops.iter().enumerate() {
            let now = tick as u32;
            self.group = self.result.op_origin.len();
            while let Some((_, tensor)) = ends.next_if(|(end, _)| *end == now) {
                if self.tensors[tensor].is_dropped(now) {
                    self.repeat(tensor, now);
                }
                // The window has ended, here or early.
                let windows = &mut self.tensors[tensor].windows;
                let rest = windows.iter().position(|d| d.end() > now);
                *windows = rest.map_or(&[], |at| &windows[at..]);
            }
            let Rewriting { tensors, result, .. } = &mut self;
            let renamed = next_op(&mut result.problem.ops, &mut result.op_origin, op, now);
            renamed.reads.extend(op.reads.iter().map(|&t| tensors[t].version));
            renamed.produces.extend_from_slice(&op.produces);
            renamed.changes.extend(op.changes.iter().map(|&t| tensors[t].version));
            op.reads.iter().for_each(|&t| tensors[t].used = now);
            if self.is_too_much() {
                return false;
            }
        }
        tuned::work(self.result.op_origin.len());
        self.result.problem.ops.truncate(self.result.op_origin.len());
        true
    }

    fn is_too_much(&self) -> bool {
        self.result.op_origin.len() > self.most_ops || self.nanos > self.most_nanos
    }

    /// Whether the source would have freed the tensor before the tick.
    fn is_dead(&self, tensor: TensorId, now: u32) -> bool {
        !self.source.problem.tensors[tensor].kept && self.source.last_use(tensor) < now
    }

    /// Whether the tensor must be recomputed before an operator at this tick reads it.
    fn is_missing(&self, tensor: TensorId, now: u32) -> bool {
        if !self.source.can_repeat(tensor, now) {
            return false;
        }
        let state = &self.tensors[tensor];
        let dropped = state.dropped(now);
        let is_gone = dropped.is_some() || self.is_dead(tensor, now) && !state.lasts;
        let is_renewed = dropped.map_or(state.is_renewed, |d| d.needed == Needed::Renewed);
        let is_recent = |at: u32| match self.reach {
            _ if is_renewed => at as usize >= self.group,
            ReuseReach::Short => self.result.op_origin.len() - (at as usize) < REUSED_WITHIN.get(),
            ReuseReach::Operators(reach) => now - state.used <= reach,
        };
        is_gone && !state.made.is_some_and(is_recent)
    }

    /// Recomputes the tensor, after its missing inputs; stops early once a limit is exceeded.
    fn repeat(&mut self, tensor: TensorId, now: u32) {
        let mut stack: SmallVec<[(TensorId, bool); 16]> = smallvec![(tensor, false)];
        while let Some((tensor, ready)) = stack.pop().filter(|_| !self.is_too_much()) {
            let Some(tick) = self.source.producer[tensor].filter(|_| ready || self.is_missing(tensor, now))
            else {
                continue;
            };
            if ready {
                self.push_again(tick, now);
                continue;
            }
            let op = &self.source.problem.ops[tick as usize];
            stack.push((tensor, true));
            let missing = op.reads_again().filter(|&r| self.is_missing(r, now));
            stack.extend(missing.map(|r| (r, false)));
        }
    }

    /// Repeats the operator; its results replace those that are dropped or dead.
    fn push_again(&mut self, tick: u32, now: u32) {
        let op = &self.source.problem.ops[tick as usize];
        self.nanos += if op.lane == COMPUTE { op.nanos } else { 0 };
        let at = self.result.op_origin.len() as u32;
        let Rewriting { tensors, result, .. } = self;
        let again = next_op(&mut result.problem.ops, &mut result.op_origin, op, tick);
        for read in op.reads_again() {
            again.reads.push(tensors[read].version);
            tensors[read].used = now;
        }
        for &tensor in &op.produces {
            let new = self.result.problem.tensors.push(self.source.problem.tensors[tensor]);
            self.result.tensor_origin.push(tensor);
            self.result.problem.ops[at as usize].produces.push(new);
            let is_dead = self.is_dead(tensor, now);
            let state = &mut self.tensors[tensor];
            let dropped = state.is_dropped(now);
            if dropped && state.windows[0].needed == Needed::Stays {
                state.windows = &state.windows[1..];
            }
            // A tensor that has changed since is not replaced.
            if (dropped || is_dead) && self.source.can_repeat(tensor, now) {
                (state.version, state.made, state.used) = (new, Some(at), now);
            }
        }
    }
}

/// The next operator, like `like` but without tensors so far; reuses the memory of the operator that was at this position.
fn next_op<'a>(
    ops: &'a mut Vec<Operator>,
    origins: &mut Vec<u32>,
    like: &Operator,
    origin: u32,
) -> &'a mut Operator {
    let at = origins.len();
    origins.push(origin);
    let Operator { kind, phase, nanos, workspace, recomputable, lane, .. } = *like;
    if at == ops.len() {
        let [reads, produces, changes] = Default::default();
        ops.push(Operator { kind, phase, nanos, workspace, reads, produces, changes, recomputable, lane });
    }
    let op = &mut ops[at];
    (op.kind, op.phase, op.nanos, op.workspace, op.recomputable, op.lane) =
        (kind, phase, nanos, workspace, recomputable, lane);
    [&mut op.reads, &mut op.produces, &mut op.changes].into_iter().for_each(Vec::clear);
    op
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Phase::{Backward, Forward};
    use lmsc_testing::small::{op, problem, produced, variable};

    use super::*;

    #[test]
    fn a_tensor_that_lasts_is_read_again_and_not_recomputed() {
        let again = |op: Operator| Operator { recomputable: true, ..op };
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
        let dropped = [Dropped::new(window)];
        assert_eq!(remat.rewrite(&dropped, Dead::default()).unwrap().op_origin, [0, 1, 2, 3, 0, 1, 4]);
        let lasting = remat.rewrite(&dropped, Dead { lasting: &[small], ..Dead::default() }).unwrap();
        assert_eq!(lasting.op_origin, [0, 1, 2, 3, 1, 4]);
        assert_eq!(lasting.problem.ops[4].reads, [small]);
        assert_eq!(lasting.problem.check(), Ok(()));

        // In the memory of another rewritten problem.
        let mut rewritten = lasting;
        remat.rewrite_into(&[], Dead::default(), &mut rewritten);
        assert_eq!(rewritten.problem.ops, problem.ops);
        assert_eq!(rewritten.problem.tensors.len(), problem.tensors.len());
        assert_eq!(rewritten.op_origin, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_recomputed_tensor_serves_as_far_as_it_reaches() {
        let again = |op: Operator| Operator { recomputable: true, ..op };
        // Two operators of the backward phase read tensor 1, and four others run between them.
        let ops = [
            again(op(Forward, 5, &[0], &[1])),
            op(Forward, 1, &[1], &[2]),
            op(Backward, 1, &[2], &[3]),
            op(Backward, 1, &[1], &[4]),
            op(Backward, 1, &[4], &[5]),
            op(Backward, 1, &[5], &[6]),
            op(Backward, 1, &[6], &[7]),
            op(Backward, 1, &[1, 7], &[]),
        ];
        let tensors = [&[variable(1)][..], &[produced(1); 7]].concat();
        let problem = problem(&tensors, &ops);
        let remat = Rematerializer::new(&problem);
        let windows = remat.windows().into_iter().filter(|window| window.tensor == TensorId::from_u32(1));
        let dropped: Vec<Dropped> =
            windows.map(|window| Dropped { needed: Needed::GoesAgain, ..Dropped::new(window) }).collect();
        let origin = |reach: u32| {
            let dead = Dead { reach: ReuseReach::Operators(reach), ..Dead::default() };
            remat.rewrite(&dropped, dead).unwrap().op_origin
        };
        assert_eq!(origin(3), [0, 1, 2, 0, 3, 4, 5, 6, 0, 7]);
        assert_eq!(origin(4), [0, 1, 2, 0, 3, 4, 5, 6, 7]);
    }
}
