//! The activities for a choice of absences: operators and copies, their dependences, and the memory that each needs.

use std::marker::PhantomData;

use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};

use super::{Absences, Instruction, PieceId, Schedule, Step};
use crate::lanes::{ENGINES, Waits, engine_of, engines, first_of_each};
use crate::problem::{Problem, TensorId, Uses};

/// An activity of [`Acts`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActId(u32);
entity_impl!(ActId, "act");

/// A range of bytes that is allocated when the first of its activities starts and freed when the last ends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(u32);
entity_impl!(BlockId, "block");

/// The content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// The workspace of the operator of the tick.
    Workspace(u32),
    /// A piece that is swapped.
    Piece(PieceId),
    /// The bytes of a tensor that are never swapped.
    Rest(TensorId),
}

/// The kind of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Before everything: holds the blocks that are resident when the step starts.
    Start,
    /// An operator or a copy.
    Do(Instruction),
    /// After everything: holds the blocks that must be resident when the step ends.
    End,
}

/// The activities of a problem under a choice of absences.
#[derive(Clone, Debug, Default)]
pub struct Acts {
    /// The kind of each activity. The first is [`Act::Start`], the last [`Act::End`].
    pub what: PrimaryMap<ActId, Act>,
    /// An order that can be executed sequentially if the absences fit: each copy out right after the last use before the
    /// absence, each copy in right before the next use.
    pub order: Vec<ActId>,
    /// For each activity, its duration in nanoseconds.
    pub nanos: Vec<u64>,
    /// For each activity, the number of its engine.
    pub engine: Vec<u8>,
    /// For each engine, the time of its activities together, in nanoseconds.
    pub engine_nanos: [u64; ENGINES],
    /// The number of engines: compute, out, in, and further lanes of operators.
    pub engines: usize,
    /// For each activity, those that end before it starts.
    pub before: Lists<ActId, ActId>,
    /// For each activity, those that start after it has ended.
    pub after: Lists<ActId, ActId>,
    /// For each activity, the blocks of memory that it needs.
    pub blocks: Lists<ActId, BlockId>,
    /// Sizes of the blocks.
    pub block_bytes: PrimaryMap<BlockId, u64>,
    /// Contents of the blocks.
    pub block_contents: PrimaryMap<BlockId, Contents>,
    /// Number of activities that need the block.
    pub block_acts: PrimaryMap<BlockId, u32>,
}

/// Lists by act, or by another kind of id, one after the other in memory.
#[derive(Clone, Debug)]
pub struct Lists<K, T> {
    starts: Vec<u32>,
    items: Vec<T>,
    of: PhantomData<K>,
}

impl<K, T> Default for Lists<K, T> {
    fn default() -> Lists<K, T> {
        Lists { starts: Vec::new(), items: Vec::new(), of: PhantomData }
    }
}

impl<K: EntityRef, T: Copy> Lists<K, T> {
    /// Lists of the items of each of `count` keys, in the order of the pairs.
    pub fn new(count: usize, pairs: &[(K, T)]) -> Lists<K, T> {
        // Until a list is filled, its start is stored one place late; filling moves it to the list's end, the start of the
        // next list.
        let mut starts = vec![0u32; count + 2];
        pairs.iter().for_each(|(key, _)| starts[key.index() + 2] += 1);
        (2..count + 2).for_each(|i| starts[i] += starts[i - 1]);
        let mut items: Vec<T> = pairs.first().map_or(Vec::new(), |&(_, first)| vec![first; pairs.len()]);
        for &(key, item) in pairs {
            let place = &mut starts[key.index() + 1];
            items[*place as usize] = item;
            *place += 1;
        }
        starts.truncate(count + 1);
        Lists { starts, items, of: PhantomData }
    }

    /// The items of the key.
    pub fn of(&self, key: K) -> &[T] {
        &self.items[self.starts[key.index()] as usize..self.starts[key.index() + 1] as usize]
    }
}

impl Lists<TensorId, u32> {
    /// For each tensor, the ticks that produce or change it, ascending.
    pub fn of_changes(problem: &Problem) -> Lists<TensorId, u32> {
        let mut changes = Vec::with_capacity(problem.tensors.len());
        for (op, tick) in problem.ops.iter().zip(0..) {
            changes.extend(op.produces.iter().chain(&op.changes).map(|&t| (t, tick)));
        }
        Lists::new(problem.tensors.len(), &changes)
    }
}

/// The last of the ascending ticks that is less than `before`.
pub fn last_before(ticks: &[u32], before: u32) -> Option<u32> {
    ticks.iter().rev().copied().find(|&tick| tick < before)
}

impl Acts {
    /// The activities of the problem under these absences.
    ///
    /// A copy out may start once the last operator that changes the piece has ended, concurrently with later reads; its bytes
    /// are free when both the copy and the last read before the absence are done. A piece that has not changed since its last
    /// copy out is not copied out again.
    pub fn of(problem: &Problem, absences: &Absences) -> Acts {
        Acts::of_uses(problem, &problem.uses(), absences)
    }

    /// [`Acts::of`] for known uses.
    pub fn of_uses(problem: &Problem, uses: &Uses, absences: &Absences) -> Acts {
        Builder::new(problem, absences).build(uses)
    }

    /// The same activities with additional dependences: pairs of the activity that waits and the activity that it waits for.
    pub fn waiting(mut self, more: &[(ActId, ActId)]) -> Acts {
        let known = self.what.keys().flat_map(|act| self.before.of(act).iter().map(move |&b| (act, b)));
        let waits: Vec<_> = known.chain(more.iter().copied()).collect();
        let reversed: Vec<_> = waits.iter().map(|&(act, before)| (before, act)).collect();
        self.before = Lists::new(self.what.len(), &waits);
        self.after = Lists::new(self.what.len(), &reversed);
        self
    }

    /// The order in which each copy out follows the operator that last changes its piece, before later reads of it.
    ///
    /// Of copies that are due at the same time, those that can start come first; [`Acts::order`] may make an engine wait
    /// there. Expects activities as [`Acts::of`] returns them: each copy out waits for at most one other activity.
    pub fn eager(&self) -> Vec<ActId> {
        let is_out = |act: ActId| matches!(self.what[act], Act::Do(Instruction::Out(_)));
        let mut order = Vec::with_capacity(self.order.len());
        for &act in self.order.iter().filter(|&&act| !is_out(act)) {
            order.push(act);
            order.extend(self.after.of(act).iter().filter(|&&after| is_out(after)));
            if self.what[act] == Act::Start {
                order.extend(self.order.iter().filter(|&&out| is_out(out) && self.before.of(out).is_empty()));
            }
        }
        debug_assert_eq!(order.len(), self.len(), "each stands once");
        order
    }

    /// Whether the activity is a copy.
    pub fn is_copy(&self, act: ActId) -> bool {
        matches!(self.what[act], Act::Do(Instruction::Out(_) | Instruction::In(_)))
    }

    /// Whether `act` must follow `before`.
    pub fn waits_for(&self, act: ActId, before: ActId) -> bool {
        self.before.of(act).contains(&before)
    }

    /// The total time of the busiest engine, in nanoseconds: a lower bound on the makespan.
    pub(crate) fn least_nanos(&self) -> u64 {
        self.engine_nanos.into_iter().max().unwrap_or(0)
    }

    /// The number of activities.
    pub fn len(&self) -> usize {
        self.what.len()
    }

    /// Whether there are no activities; never true, since the start and the end are among them.
    pub fn is_empty(&self) -> bool {
        self.what.is_empty()
    }

    /// The schedule of this order with these times.
    pub fn schedule(&self, absences: &Absences, order: &[ActId], times: &Times) -> Schedule {
        let steps = order.iter().filter_map(|&act| match self.what[act] {
            Act::Do(instruction) => {
                Some(Step { instruction, start: times.start[act.index()], end: times.end[act.index()] })
            }
            Act::Start | Act::End => None,
        });
        Schedule { pieces: absences.pieces.clone(), steps: steps.collect() }
    }
}

struct Builder<'a> {
    problem: &'a Problem,
    absences: &'a Absences,
    acts: Acts,
    /// By tick.
    ops: Vec<ActId>,
    start: ActId,
    /// (the activity that waits, the activity that it waits for)
    waits: Vec<(ActId, ActId)>,
    holds: Vec<(ActId, BlockId)>,
    /// With the tick before which they appear in the order.
    ins: Vec<(u32, ActId)>,
    outs: Vec<(u32, ActId)>,
}

impl<'a> Builder<'a> {
    fn new(problem: &'a Problem, absences: &'a Absences) -> Builder<'a> {
        let mut acts = Acts::default();
        acts.what.reserve(problem.ops.len() + 4 * absences.pieces.len() + 2);
        acts.block_bytes.reserve(problem.ops.len() + problem.tensors.len());
        acts.block_contents.reserve(problem.ops.len() + problem.tensors.len());
        let start = acts.what.push(Act::Start);
        let ops = (0..problem.ticks()).map(|t| acts.what.push(Act::Do(Instruction::Op(t)))).collect();
        let (waits, ins, outs) = Default::default();
        let holds = Vec::with_capacity(6 * problem.ops.len());
        Builder { problem, absences, acts, ops, start, waits, holds, ins, outs }
    }

    fn build(mut self, uses: &Uses) -> Acts {
        let tensors = self.problem.tensors.len();
        let pieces: Vec<_> =
            self.absences.pieces.iter().map(|(piece, facts)| (facts.tensor, piece)).collect();
        let pieces = Lists::new(tensors, &pieces);
        let mut changes = Vec::new();
        for (tick, op) in self.problem.ops.iter().enumerate() {
            let changed = op.produces.iter().chain(&op.changes).filter(|&&t| !pieces.of(t).is_empty());
            changes.extend(changed.map(|&t| (t, tick as u32)));
            if op.workspace > 0 {
                let block = self.block(Contents::Workspace(tick as u32), op.workspace);
                self.holds.push((self.ops[tick], block));
            }
        }
        let changes = Lists::new(tensors, &changes);
        let mut held_at_end = Vec::new();
        for (tensor, facts) in &self.problem.tensors {
            let travels = pieces.of(tensor).iter().filter(|&&p| !self.absences.windows[p].is_empty());
            let mut stays = facts.bytes;
            for &piece in travels {
                stays -= self.absences.pieces[piece].len();
                self.piece(piece, uses.of(tensor), changes.of(tensor), &mut held_at_end);
            }
            if stays > 0 {
                let block = self.block(Contents::Rest(tensor), stays);
                self.holds.extend(facts.given.then_some((self.start, block)));
                self.holds.extend(uses.of(tensor).iter().map(|&t| (self.ops[t as usize], block)));
                held_at_end.extend(facts.kept.then_some(block));
            }
        }
        let end = self.acts.what.push(Act::End);
        self.holds.extend(held_at_end.into_iter().map(|block| (end, block)));
        self.finish(end)
    }

    /// The copies of one piece, and the blocks that it occupies between its absences.
    fn piece(&mut self, id: PieceId, uses: &[u32], changes: &[u32], held_at_end: &mut Vec<BlockId>) {
        let ticks = self.problem.ticks();
        let piece = &self.absences.pieces[id];
        let windows = &self.absences.windows[id];
        let bytes = piece.len();
        let facts = self.problem.tensors[piece.tensor];
        let wraps = windows[0].wraps();
        // The piece is resident between absences: from the use that ends one to the last use before the next.
        let mut from = if wraps { windows[0].until } else { 0 };
        let mut came: Option<ActId> = wraps.then(|| self.add(Instruction::In(id)));
        if let Some(copy) = came {
            self.ins.push((from, copy));
        }
        let mut on_host = wraps;
        let mut left: Option<ActId> = None;
        let inner = windows.iter().filter(|w| !w.wraps());
        let ends = inner.map(|w| (w.from, Some(w))).chain([(ticks, None)]);
        for (until, window) in ends {
            let block = self.block(Contents::Piece(id), bytes);
            let used = within(uses, from, until);
            if let Some(copy) = came {
                self.holds.push((copy, block));
                let first = first_of_each(self.problem, used.iter().copied());
                self.waits.extend(first.into_iter().flatten().map(|t| (self.ops[t as usize], copy)));
            } else if facts.given {
                self.holds.push((self.start, block));
            }
            self.holds.extend(used.iter().map(|&t| (self.ops[t as usize], block)));
            let changed = within(changes, from, until).last();
            let leaves = window.is_some() || wraps;
            if leaves && (!on_host || changed.is_some()) {
                let copy = self.add(Instruction::Out(id));
                self.holds.push((copy, block));
                let waits = changed.map(|&t| self.ops[t as usize]).or(came).or(left);
                self.waits.extend(waits.map(|before| (copy, before)));
                self.outs.push((used.last().map_or(from, |&t| t + 1), copy));
                (on_host, left) = (true, Some(copy));
            }
            let Some(window) = window else {
                held_at_end.extend((facts.kept && !wraps).then_some(block));
                break;
            };
            let copy = self.add(Instruction::In(id));
            self.waits.extend(left.map(|before| (copy, before)));
            let last = first_of_each(self.problem, used.iter().rev().copied());
            self.waits.extend(last.into_iter().flatten().map(|t| (copy, self.ops[t as usize])));
            self.ins.push((window.until, copy));
            came = Some(copy);
            from = window.until;
        }
    }

    fn block(&mut self, contents: Contents, bytes: u64) -> BlockId {
        self.acts.block_contents.push(contents);
        self.acts.block_bytes.push(bytes)
    }

    fn add(&mut self, copy: Instruction) -> ActId {
        self.acts.what.push(Act::Do(copy))
    }

    fn finish(mut self, end: ActId) -> Acts {
        let count = self.acts.what.len();
        let link = self.problem.link;
        self.acts.engines = engines(self.problem);
        self.acts.engine.reserve(count);
        self.acts.nanos.reserve(count);
        for act in self.acts.what.values() {
            let (engine, nanos) = match *act {
                Act::Start | Act::End => (0, 0),
                Act::Do(does) => (
                    engine_of(self.problem, does),
                    match does {
                        Instruction::Op(tick) => self.problem.ops[tick as usize].nanos,
                        Instruction::Out(p) => link.out_nanos(self.absences.pieces[p].len()),
                        Instruction::In(p) => link.in_nanos(self.absences.pieces[p].len()),
                    },
                ),
            };
            self.acts.engine.push(engine as u8);
            self.acts.engine_nanos[engine] += nanos;
            self.acts.nanos.push(nanos);
        }
        let mut waits = Waits::new(self.problem);
        let ops = self.problem.has_lanes().then_some(&self.ops);
        for (tick, &op) in ops.into_iter().flatten().enumerate() {
            self.waits.extend(waits.of(tick as u32).into_iter().map(|t| (op, self.ops[t as usize])));
        }
        self.ins.sort_unstable();
        self.outs.sort_unstable();
        let (mut ins, mut outs) = (self.ins.iter().peekable(), self.outs.iter().peekable());
        self.acts.order.reserve(count);
        self.acts.order.push(self.start);
        for (tick, &op) in self.ops.iter().enumerate() {
            while let Some((_, copy)) = outs.next_if(|(at, _)| *at as usize <= tick) {
                self.acts.order.push(*copy);
            }
            while let Some((_, copy)) = ins.next_if(|(at, _)| *at as usize <= tick) {
                self.acts.order.push(*copy);
            }
            self.acts.order.push(op);
        }
        self.acts.order.extend(outs.chain(ins).map(|(_, copy)| *copy));
        self.acts.order.push(end);
        self.acts.block_acts = self.acts.block_bytes.keys().map(|_| 0).collect();
        for (_, block) in &self.holds {
            self.acts.block_acts[*block] += 1;
        }
        let reversed: Vec<_> = self.waits.iter().map(|&(act, before)| (before, act)).collect();
        self.acts.before = Lists::new(count, &self.waits);
        self.acts.after = Lists::new(count, &reversed);
        self.acts.blocks = Lists::new(count, &self.holds);
        self.acts
    }
}

/// The ticks of an ascending list that lie in the half-open range.
fn within(ticks: &[u32], from: u32, until: u32) -> &[u32] {
    let start = ticks.partition_point(|&t| t < from);
    let end = ticks.partition_point(|&t| t < until);
    &ticks[start..end]
}

/// The start and the end of every activity, by act, in nanoseconds from the origin of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Start times.
    pub start: Vec<u64>,
    /// End times.
    pub end: Vec<u64>,
    /// The largest end.
    pub makespan: u64,
}
