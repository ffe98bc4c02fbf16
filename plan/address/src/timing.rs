//! The times of all activities if they wait only for addresses, engines and operands.

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap};
use lmsc_schedule::{ActId, BlockId, tuned};

use super::frame::{Frame, Places};
use super::objects::ObjectId;

/// The dependence of an act that ends last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Nothing,
    /// Its engine or an operand.
    Act(ActId),
    /// The previous block at its addresses.
    Block(BlockId),
}

/// The latest time at which a block of an object becomes free, and the longest time that must follow the allocation of any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reach {
    pub(super) free: u64,
    pub(super) after: u64,
}

/// Earliest times under address edges: the first user of a range of bytes waits for its last previous user.
#[derive(Clone, Debug)]
pub(super) struct Timing {
    /// For each act, its end, the longest time from there to the end of all, and the dependence that it waits for.
    pub(super) end: PrimaryMap<ActId, u64>,
    tail: PrimaryMap<ActId, u64>,
    cause: PrimaryMap<ActId, Cause>,
    /// For each block, the end of its last act.
    pub(super) free: PrimaryMap<BlockId, u64>,
    /// For each block, the longest time from the start of its first act to the end of all.
    pub(super) after: PrimaryMap<BlockId, u64>,
    pub(super) reach: PrimaryMap<ObjectId, Reach>,
    pub(super) makespan: u64,
    last: ActId,
    /// Address edges: for each position in the serial order, the blocks whose bytes the act at that position takes over.
    pub(super) owners: Vec<BlockId>,
    pub(super) owner_ranges: Vec<(u32, u32)>,
    /// The owner of each byte of the arena: from this address up to that of the next entry.
    sky: Vec<(u64, PackedOption<BlockId>)>,
    /// Computation so far, in units of about a nanosecond.
    pub(super) work: u64,
}

impl Timing {
    /// The times of the plan without addresses, used for a first placement.
    pub(super) fn nominal(frame: &Frame) -> Timing {
        let acts = frame.acts.len();
        let mut timing = Timing {
            end: frame.early.end.iter().copied().collect(),
            tail: frame.acts.what.keys().map(|act| frame.late.start[act.index()]).collect(),
            cause: std::iter::repeat_n(Cause::Nothing, acts).collect(),
            free: PrimaryMap::new(),
            after: PrimaryMap::new(),
            reach: frame.objects.all.values().map(|_| Reach::default()).collect(),
            makespan: frame.nominal(),
            last: frame.order[0],
            owners: Vec::new(),
            owner_ranges: Vec::new(),
            sky: Vec::new(),
            work: 0,
        };
        for span in frame.objects.spans.values() {
            timing.free.push(timing.end[span.last[0]].max(timing.end[span.last[1]]));
            timing.after.push(frame.late.end[span.first.index()]);
        }
        timing.sum_up(frame);
        timing
    }

    /// Computes the times of the placement, from the start and from the end.
    pub(super) fn run(&mut self, frame: &Frame, places: &Places) {
        self.forward(frame, places);
        self.backward(frame);
    }

    /// Times from the start only: ends, causes and the makespan.
    pub(super) fn forward(&mut self, frame: &Frame, places: &Places) {
        self.work += 24 * frame.order.len() as u64;
        tuned::work(frame.order.len());
        self.sky.clear();
        self.sky.push((0, None.into()));
        self.owners.clear();
        self.owner_ranges.clear();
        self.makespan = 0;
        for &act in &frame.order {
            let (mut at, mut cause) = (0, Cause::Nothing);
            for &before in frame.queue[act].iter().chain(frame.acts.before.of(act)) {
                if self.end[before] > at {
                    (at, cause) = (self.end[before], Cause::Act(before));
                }
            }
            let begin = self.owners.len();
            for &block in frame.objects.allocated_by.of(act) {
                self.free[block] = 0;
                self.take(frame, places, block);
            }
            for &owner in &self.owners[begin..] {
                if self.free[owner] > at {
                    (at, cause) = (self.free[owner], Cause::Block(owner));
                }
            }
            self.owner_ranges.push((begin as u32, self.owners.len() as u32));
            let end = at + frame.acts.nanos[act.index()];
            self.end[act] = end;
            self.cause[act] = cause;
            if end > self.makespan {
                (self.makespan, self.last) = (end, act);
            }
            for &block in frame.objects.freed_by.of(act) {
                self.free[block] = self.free[block].max(end);
            }
        }
    }

    /// Makes the block the owner of its addresses and records the previous owners.
    fn take(&mut self, frame: &Frame, places: &Places, block: BlockId) {
        let object = frame.objects.spans[block].object;
        let Some(place) = places[object] else { return };
        for &range in frame.objects.ranges(block) {
            let (begin, end) = frame.lies(object, place, range);
            let mut first = self.sky.partition_point(|entry| entry.0 <= begin) - 1;
            let mut next = first;
            let mut owner = None.into();
            while next < self.sky.len() && self.sky[next].0 < end {
                owner = self.sky[next].1;
                self.owners.extend(owner.expand());
                next += 1;
            }
            let goes_on = self.sky.get(next).is_none_or(|entry| entry.0 > end) && end < frame.arena;
            first += usize::from(self.sky[first].0 < begin);
            let fresh = [(begin, block.into()), (end, owner)];
            let fresh = &fresh[..1 + usize::from(goes_on)];
            if next >= first + fresh.len() {
                self.sky[first..first + fresh.len()].copy_from_slice(fresh);
                self.sky.drain(first + fresh.len()..next);
            } else {
                self.sky.splice(first..next, fresh.iter().copied());
            }
        }
    }

    /// Times from the end, under the edges of the last [`Timing::forward`].
    pub(super) fn backward(&mut self, frame: &Frame) {
        self.work += 10 * frame.order.len() as u64;
        tuned::work(frame.order.len());
        self.tail.values_mut().for_each(|tail| *tail = 0);
        for (&act, &(begin, end)) in frame.order.iter().zip(&self.owner_ranges).rev() {
            let tail = self.tail[act] + frame.acts.nanos[act.index()];
            for &block in frame.objects.allocated_by.of(act) {
                self.after[block] = tail;
            }
            for &before in frame.queue[act].iter().chain(frame.acts.before.of(act)) {
                self.tail[before] = self.tail[before].max(tail);
            }
            for &owner in &self.owners[begin as usize..end as usize] {
                for last in frame.objects.spans[owner].last {
                    self.tail[last] = self.tail[last].max(tail);
                }
            }
        }
        self.sum_up(frame);
    }

    fn sum_up(&mut self, frame: &Frame) {
        self.reach.values_mut().for_each(|reach| *reach = Reach::default());
        for (block, span) in &frame.objects.spans {
            let reach = &mut self.reach[span.object];
            reach.free = reach.free.max(self.free[block]);
            reach.after = reach.after.max(self.after[block]);
        }
    }

    /// The makespan beyond the nominal one, plus a small part of each path beyond it that goes through an address edge, so
    /// that of placements with the same makespan the one with fewer such paths is better.
    pub(super) fn cost(&self, frame: &Frame) -> u64 {
        let nominal = frame.nominal();
        let mut sum = 0;
        for (&act, &(begin, end)) in frame.order.iter().zip(&self.owner_ranges) {
            let after = self.tail[act] + frame.acts.nanos[act.index()];
            for &owner in &self.owners[begin as usize..end as usize] {
                sum += (self.free[owner] + after).saturating_sub(nominal);
            }
        }
        self.makespan.saturating_sub(nominal) + sum / frame.order.len() as u64
    }

    /// The address edges of a longest path: a block, and the act that waits for its bytes.
    pub(super) fn critical_edges(&self, frame: &Frame) -> Vec<(BlockId, ActId)> {
        let mut edges = Vec::new();
        let mut act = self.last;
        loop {
            match self.cause[act] {
                Cause::Nothing => return edges,
                Cause::Act(before) => act = before,
                Cause::Block(owner) => {
                    edges.push((owner, act));
                    let [one, other] = frame.objects.spans[owner].last;
                    act = if self.end[one] >= self.end[other] { one } else { other };
                }
            }
        }
    }
}
