//! The search for the best place of an object, given the places of the others.

use lmsc_ir::rng::{Rng, Source};
use lmsc_schedule::BlockId;

use super::frame::{Frame, Place, Places};
use super::objects::ObjectId;
use super::timing::Timing;

/// The cost of an overlap of two blocks that are needed at the same time. All other costs are less.
pub(super) const NEVER: u64 = 1 << 50;

/// The choice among equally good bases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taste {
    Lowest,
    Highest,
    Any,
}

/// The cost of sharing addresses with another object.
pub(super) trait Price {
    /// The cost of an overlap with the other object, whose worst pair of blocks lengthens a path to `excess` beyond the
    /// limit; [`NEVER`] if they are needed at the same time.
    fn of(&self, other: ObjectId, excess: u64) -> u64;
}

/// Overlaps cost their delay; blocks that are needed at the same time cannot overlap.
pub(super) struct Delay;

impl Price for Delay {
    fn of(&self, _: ObjectId, excess: u64) -> u64 {
        excess
    }
}

/// Two blocks of different objects that make a path longer than a limit where they share addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rival {
    other: ObjectId,
    /// The indices of the other object's range and of one's own.
    theirs: u32,
    ours: u32,
    /// The length of the path; none if both are needed at the same time.
    path: Option<u64>,
}

/// Working memory of the search for a base.
#[derive(Debug, Default)]
pub(super) struct Seeker {
    rivals: Vec<Rival>,
    /// (begin, end, other, excess): a base strictly between overlaps with the other object.
    overlaps: Vec<(i64, i64, ObjectId, u64)>,
    /// For each base, where overlaps begin and where they end, and their prices.
    begins: Vec<(i64, u64)>,
    ends: Vec<(i64, u64)>,
    /// Computation so far, in units of about a nanosecond.
    pub(super) work: u64,
}

impl Seeker {
    /// The place with the least cost for the object, and that cost; none if the cost is [`NEVER`] everywhere.
    ///
    /// Only places adjacent to others are tried: any other place can be shifted to one of those.
    pub(super) fn best(
        &mut self,
        frame: &Frame,
        timing: &Timing,
        places: &Places,
        (object, limit): (ObjectId, u64),
        price: &impl Price,
        choice: (Taste, &mut Rng),
    ) -> Option<(Place, u64)> {
        let mut rivals = std::mem::take(&mut self.rivals);
        self.find_rivals(frame, timing, object, limit, |other| places[other].is_some(), &mut rivals);
        let best = self.best_among(&rivals, frame, places, (object, limit), price, choice);
        self.rivals = rivals;
        best
    }

    /// [`Seeker::best`] for the object with these rivals, of this limit or a lower one.
    pub(super) fn best_among(
        &mut self,
        rivals: &[Rival],
        frame: &Frame,
        places: &Places,
        (object, limit): (ObjectId, u64),
        price: &impl Price,
        (taste, random): (Taste, &mut Rng),
    ) -> Option<(Place, u64)> {
        let facts = &frame.objects.all[object];
        let highest = frame.arena.checked_sub(facts.bytes)? / frame.alignment * frame.alignment;
        let (lowest, highest) = (frame.floor as i64, highest as i64);
        let align = frame.alignment as i64;
        let settled = facts.tensor().and_then(|tensor| {
            let others = frame.objects.of_tensor[tensor].iter().filter(|&&o| o != object);
            others.filter_map(|&o| places[o]).next()
        });
        let variants: &[bool] = match settled {
            _ if !facts.has_mirror => &[false],
            Some(place) if place.mirrored => &[true],
            Some(_) => &[false],
            None => &[false, true],
        };
        let mut best: Option<(u64, u64, Place)> = None;
        for &mirrored in variants {
            self.collect(rivals, frame, places, (object, mirrored), limit);
            let above = |end: i64| (end + align - 1).div_euclid(align) * align;
            let below = |begin: i64| begin.div_euclid(align) * align;
            self.begins.clear();
            self.ends.clear();
            let mut inside = 0;
            for &(begin, end, other, excess) in &self.overlaps {
                let price = price.of(other, excess);
                self.begins.push((begin, price));
                self.ends.push((end, price));
                inside +=
                    [below(begin), above(end)].iter().filter(|b| (lowest..=highest).contains(b)).count();
            }
            self.work += 40 * (2 * self.overlaps.len() + inside) as u64;
            if lowest > highest {
                continue;
            }
            self.work += 80;
            self.begins.sort_unstable_by_key(|begin| begin.0);
            self.ends.sort_unstable_by_key(|end| end.0);
            // Intervals that begin before a base and end behind it cost there.
            let (mut begins, mut ends) = (self.begins.iter().peekable(), self.ends.iter().peekable());
            let (mut cost, mut never) = (0u64, 0u32);
            let sides = merged(
                self.begins.iter().map(|begin| below(begin.0)),
                self.ends.iter().map(|end| above(end.0)),
            );
            let between = sides.filter(|base| (lowest + 1..highest).contains(base));
            let mut previous = -1;
            for base in std::iter::once(lowest).chain(between).chain(std::iter::once(highest)) {
                if base == previous {
                    continue;
                }
                previous = base;
                while let Some(&(_, price)) = begins.next_if(|(begin, _)| *begin < base) {
                    if price == NEVER { never += 1 } else { cost += price }
                }
                while let Some(&(_, price)) = ends.next_if(|(end, _)| *end <= base) {
                    if price == NEVER { never -= 1 } else { cost -= price }
                }
                if never > 0 || best.as_ref().is_some_and(|b| cost > b.0) {
                    continue;
                }
                let rank = match taste {
                    Taste::Lowest => base as u64,
                    Taste::Highest => (highest - base) as u64,
                    Taste::Any => random.word(),
                };
                if best.as_ref().is_none_or(|b| (cost, rank) < (b.0, b.1)) {
                    best = Some((cost, rank, Place { base: base as u64, mirrored }));
                }
            }
        }
        best.map(|(cost, _, place)| (place, cost))
    }

    /// The objects that obstruct this one at its place.
    pub(super) fn in_the_way(
        &mut self,
        frame: &Frame,
        timing: &Timing,
        places: &Places,
        (object, place): (ObjectId, Place),
        limit: u64,
    ) -> Vec<ObjectId> {
        let mut rivals = std::mem::take(&mut self.rivals);
        self.find_rivals(frame, timing, object, limit, |other| places[other].is_some(), &mut rivals);
        self.collect(&rivals, frame, places, (object, place.mirrored), limit);
        self.rivals = rivals;
        let base = place.base as i64;
        let hit = self.overlaps.iter().filter(|&&(begin, end, ..)| begin < base && base < end);
        let mut hit: Vec<ObjectId> = hit.map(|&(_, _, other, _)| other).collect();
        hit.dedup();
        hit
    }

    /// Replaces `rivals` by those of the object among the movable objects that `is_wanted` accepts.
    pub(super) fn find_rivals(
        &mut self,
        frame: &Frame,
        timing: &Timing,
        object: ObjectId,
        limit: u64,
        is_wanted: impl Fn(ObjectId) -> bool,
        rivals: &mut Vec<Rival>,
    ) {
        rivals.clear();
        self.work += 2 * frame.movable.len() as u64;
        let own = &frame.objects.all[object].rects;
        for &other in &frame.movable {
            if other == object || !is_wanted(other) || apart(frame, timing, object, other, limit) {
                continue;
            }
            let rects = &frame.objects.all[other].rects;
            self.work += 2 * (rects.len() * own.len()) as u64;
            for (theirs, rect) in (0u32..).zip(rects) {
                for (ours, own) in (0u32..).zip(own) {
                    let path = path(frame, timing, rect.block, own.block);
                    if path.is_none_or(|path| path > limit) {
                        rivals.push(Rival { other, theirs, ours, path });
                    }
                }
            }
        }
    }

    /// Finds the bases at which the object shares addresses with rivals that have a place, at a cost.
    fn collect(
        &mut self,
        rivals: &[Rival],
        frame: &Frame,
        places: &Places,
        (object, mirrored): (ObjectId, bool),
        limit: u64,
    ) {
        self.overlaps.clear();
        self.work += 2 * rivals.len() as u64;
        let facts = &frame.objects.all[object];
        let here = Place { base: 0, mirrored };
        for of_other in rivals.chunk_by(|a, b| a.other == b.other) {
            let other = of_other[0].other;
            let Some(place) = places[other] else { continue };
            let rects = &frame.objects.all[other].rects;
            let from = self.overlaps.len();
            for rival in of_other {
                let excess = rival.path.map_or(NEVER, |path| path.saturating_sub(limit).min(NEVER - 1));
                if excess == 0 {
                    continue;
                }
                let theirs = frame.lies(other, place, rects[rival.theirs as usize].bytes);
                let ours = frame.lies(object, here, facts.rects[rival.ours as usize].bytes);
                let (begin, end) = (theirs.0 as i64 - ours.1 as i64, theirs.1 as i64 - ours.0 as i64);
                self.overlaps.push((begin, end, other, excess));
            }
            self.merge(from);
        }
    }

    /// Merges overlapping ranges from this index on, all with one object; the largest excess counts.
    fn merge(&mut self, from: usize) {
        if self.overlaps.len() <= from + 1 {
            return;
        }
        self.overlaps[from..].sort_unstable_by_key(|overlap| overlap.0);
        let mut to = from;
        for index in from + 1..self.overlaps.len() {
            let next = self.overlaps[index];
            let last = &mut self.overlaps[to];
            if next.0 < last.1 {
                (last.1, last.3) = (last.1.max(next.1), last.3.max(next.3));
            } else {
                to += 1;
                self.overlaps[to] = next;
            }
        }
        self.overlaps.truncate(to + 1);
    }
}

/// The numbers of two ascending sequences, ascending.
fn merged(one: impl Iterator<Item = i64>, other: impl Iterator<Item = i64>) -> impl Iterator<Item = i64> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(a), Some(b)) if a <= b => one.next(),
        (Some(_), None) => one.next(),
        _ => other.next(),
    })
}

/// Whether no blocks of the two objects obstruct each other, judged by the objects as wholes.
fn apart(frame: &Frame, timing: &Timing, a: ObjectId, b: ObjectId, limit: u64) -> bool {
    let (x, y) = (frame.extents[a], frame.extents[b]);
    if x.1 < y.0 {
        timing.reach[a].free + timing.reach[b].after <= limit
    } else {
        y.1 < x.0 && timing.reach[b].free + timing.reach[a].after <= limit
    }
}

/// The length of the path through the address edge between the two blocks; none if both are needed at the same time in the
/// serial order.
fn path(frame: &Frame, timing: &Timing, a: BlockId, b: BlockId) -> Option<u64> {
    let (x, y) = (frame.positions[a], frame.positions[b]);
    if x.1 < y.0 {
        Some(timing.free[a] + timing.after[b])
    } else {
        (y.1 < x.0).then(|| timing.free[b] + timing.after[a])
    }
}
