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

/// Working memory of the search for a base.
#[derive(Debug, Default)]
pub(super) struct Seeker {
    /// (begin, end, other, excess): a base strictly between overlaps with the other object.
    overlaps: Vec<(i64, i64, ObjectId, u64)>,
    /// By base, where overlaps begin and where they end, and their prices.
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
            self.collect(frame, timing, places, object, mirrored, limit);
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
            // What begins before a base and ends behind it costs there.
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
        self.collect(frame, timing, places, object, place.mirrored, limit);
        let base = place.base as i64;
        let hit = self.overlaps.iter().filter(|&&(begin, end, ..)| begin < base && base < end);
        let mut hit: Vec<ObjectId> = hit.map(|&(_, _, other, _)| other).collect();
        hit.dedup();
        hit
    }

    /// Finds the bases at which the object shares addresses with others at a cost.
    fn collect(
        &mut self,
        frame: &Frame,
        timing: &Timing,
        places: &Places,
        object: ObjectId,
        mirrored: bool,
        limit: u64,
    ) {
        self.overlaps.clear();
        self.work += 2 * frame.movable.len() as u64;
        let facts = &frame.objects.all[object];
        let here = Place { base: 0, mirrored };
        for &other in &frame.movable {
            let Some(place) = places[other] else { continue };
            if other == object || apart(frame, timing, object, other, limit) {
                continue;
            }
            let from = self.overlaps.len();
            let rects = &frame.objects.all[other].rects;
            self.work += 2 * (rects.len() * facts.rects.len()) as u64;
            for theirs in rects {
                let (begin, end) = frame.lies(other, place, theirs.bytes);
                for ours in &facts.rects {
                    let excess = excess(frame, timing, theirs.block, ours.block, limit);
                    if excess > 0 {
                        let ours = frame.lies(object, here, ours.bytes);
                        let (begin, end) = (begin as i64 - ours.1 as i64, end as i64 - ours.0 as i64);
                        self.overlaps.push((begin, end, other, excess));
                    }
                }
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

/// The length of the path through the address edge between the two blocks beyond the limit; [`NEVER`] if both are needed at
/// the same time in the serial order.
fn excess(frame: &Frame, timing: &Timing, a: BlockId, b: BlockId, limit: u64) -> u64 {
    let (x, y) = (frame.positions[a], frame.positions[b]);
    if x.1 < y.0 {
        (timing.free[a] + timing.after[b]).saturating_sub(limit).min(NEVER - 1)
    } else if y.1 < x.0 {
        (timing.free[b] + timing.after[a]).saturating_sub(limit).min(NEVER - 1)
    } else {
        NEVER
    }
}
