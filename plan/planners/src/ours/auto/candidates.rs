//! Candidates: tensors that could be recomputed, and tensors that could be kept for recomputation.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Problem, TensorId};
use lmsc_schedule::tuned::Tunable;

use crate::ours::justified::SMALLEST_PIECE;
use crate::ours::remat::{Dropped, Needed, Rematerializer, ReuseReach};
use crate::ours::swap_only::PIECES;

/// The decision for a [`Candidate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Fate {
    /// It stays resident or is swapped.
    #[default]
    Kept,
    /// It is recomputed before its first further use, and stays.
    Dropped,
    /// It is recomputed for the operators that need it, and dropped again.
    DroppedAgain,
    /// It is recomputed for each operator that needs it.
    Renewed,
    /// It is recomputed this number of operators before the use that ends its window, or before an earlier use, and stays.
    Early(u32),
    /// It is recomputed this number of operators before that use, and for each operator that needs it earlier.
    RenewedEarly(u32),
}

/// Numbers of operators by which recomputation may be early.
pub(super) const EARLY: Tunable<[u32; 4]> = Tunable::new([1, 2, 4, 8]);

impl Fate {
    /// The fates that recompute a tensor elsewhere than right before its use, or for each operator that needs it.
    pub(super) fn placed() -> impl Iterator<Item = Fate> {
        let early = EARLY.get().into_iter().flat_map(|early| [Fate::Early(early), Fate::RenewedEarly(early)]);
        std::iter::once(Fate::Renewed).chain(early)
    }

    /// The window under this fate; none for a kept tensor.
    pub(super) fn of(self, dropped: Dropped) -> Option<Dropped> {
        match self {
            Fate::Kept => None,
            Fate::Dropped => Some(dropped),
            Fate::DroppedAgain => Some(Dropped { needed: Needed::GoesAgain, ..dropped }),
            Fate::Renewed => Some(Dropped { needed: Needed::Renewed, ..dropped }),
            Fate::Early(early) => Some(Dropped { early, ..dropped }),
            Fate::RenewedEarly(early) => Some(Dropped { needed: Needed::Renewed, early, ..dropped }),
        }
    }
}

/// A choice: by candidate, its fate; and how long recomputed tensors serve.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Choice {
    fates: Vec<Fate>,
    pub(super) reach: ReuseReach,
}

impl Choice {
    /// The choice of these fates with this reach.
    pub(super) fn new(fates: Vec<Fate>, reach: ReuseReach) -> Choice {
        Choice { fates, reach }
    }
}

impl Deref for Choice {
    type Target = [Fate];

    fn deref(&self) -> &[Fate] {
        &self.fates
    }
}

impl DerefMut for Choice {
    fn deref_mut(&mut self) -> &mut [Fate] {
        &mut self.fates
    }
}

/// A tensor that could be recomputed for the backward phase, or kept for such a recomputation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) tensor: TensorId,
    /// The window in which it could be dropped and recomputed; none if it is dead before the backward phase and only
    /// recomputed operators read it there.
    pub(super) dropped: Option<Dropped>,
    /// The time to recompute it, with its inputs that are dead by then.
    pub(super) nanos: u64,
    pub(super) bytes: u64,
    pub(super) kind: u32,
    pub(super) producer: u32,
    /// Candidates of one class are alike: of the same bytes, and produced and read by operators of the same kinds.
    pub(super) class: u32,
}

/// Tensors that the backward phase uses after a while and that can be recomputed, and the dead tensors that these depend on.
pub(super) fn candidates(remat: &Rematerializer, problem: &Problem, turn: u32) -> Vec<Candidate> {
    let live = problem.live_bytes().into_iter().max().unwrap_or(0);
    // Less than a piece of a small step, or than a sixteenth of a piece of a large one, is not worth a decision.
    let smallest = (live / PIECES.get()).min(SMALLEST_PIECE.get() / 16);
    let mut candidates = Vec::new();
    let mut readers: SecondaryMap<TensorId, Vec<u32>> = SecondaryMap::with_capacity(problem.tensors.len());
    for op in &problem.ops {
        op.reads.iter().for_each(|&tensor| readers[tensor].push(op.kind));
    }
    let mut classes: BTreeMap<(u32, u64, bool, &[u32]), u32> = BTreeMap::new();
    let mut rests_on: SecondaryMap<TensorId, bool> = SecondaryMap::with_capacity(problem.tensors.len());
    let mut add = |tensor: TensorId, dropped: Option<Dropped>, until: u32| {
        let bytes = problem.tensors[tensor].bytes;
        let Some(producer) = remat.producer(tensor).filter(|_| bytes >= smallest) else { return };
        let nanos = nanos_anew(remat, problem, tensor, until);
        let kind = problem.ops[producer as usize].kind;
        let next = classes.len() as u32;
        let class = *classes.entry((kind, bytes, dropped.is_some(), &readers[tensor])).or_insert(next);
        candidates.push(Candidate { tensor, dropped, nanos, bytes, kind, producer, class });
    };
    for window in remat.windows() {
        // Between adjacent operators nothing else runs that would need the memory.
        let is_useful = window.from <= turn || window.until - window.from > 1;
        if window.until >= turn && is_useful {
            add(window.tensor, Some(Dropped::new(window)), window.until);
            rests_on[window.tensor] = true;
        }
    }
    for op in problem.ops[..turn as usize].iter().rev().filter(|op| op.recomputable) {
        if op.produces.iter().any(|&t| rests_on[t]) {
            op.reads_again().for_each(|t| rests_on[t] |= remat.last_use(t) < turn);
        }
    }
    for (tensor, facts) in &problem.tensors {
        let over = !facts.kept && remat.last_use(tensor) < turn;
        if rests_on[tensor] && over && remat.can_repeat(tensor, turn) {
            add(tensor, None, turn);
        }
    }
    candidates.sort_by_key(|c| (c.producer, c.tensor, c.dropped.map(|d| Reverse(d.window.until))));
    candidates
}

/// Number of operators that are visited for the time of recomputing a tensor, which is only a sort key: a
/// limit on the time, since half and double gave the same plans.
const LOOK_BACK: usize = 32;

/// The time to recompute the tensor at a tick, with the inputs of its producer that the source has freed by then.
fn nanos_anew(remat: &Rematerializer, problem: &Problem, tensor: TensorId, tick: u32) -> u64 {
    let mut producers: Vec<u32> = remat.producer(tensor).into_iter().collect();
    let mut next = 0;
    while next < producers.len() && producers.len() < LOOK_BACK {
        let reads = &problem.ops[producers[next] as usize].reads;
        let dead = reads.iter().filter(|&&r| remat.can_repeat(r, tick) && remat.last_use(r) < tick);
        for producer in dead.filter_map(|&r| remat.producer(r)) {
            if !producers.contains(&producer) {
                producers.push(producer);
            }
        }
        next += 1;
    }
    producers.iter().map(|&p| problem.ops[p as usize].nanos).sum()
}
