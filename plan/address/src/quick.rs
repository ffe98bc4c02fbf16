//! A placement in nearly linear time: each object is placed in a free gap when it is allocated.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use lmsc_schedule::tuned::{self, Tunable};

use super::frame::{Frame, Place, Places};
use super::timing::Timing;

/// An object is long-lived if it is allocated for more than one part in this many of the serial order.
const LONG_LIVED: Tunable<u32> = Tunable::new(16);

/// Maximum number of places compared for one object: a limit on the time for fragmented arenas.
const COMPARED: usize = 1024;

/// Places each object, in the serial order, at an end of the gap that delays the plan least by the times of the guess; among
/// equal gaps, of the smallest. A long-lived object is placed at the lower end, another at the upper one. An object without
/// room is left out.
///
/// It packs less tightly than a construction that compares every object with every other.
pub(super) fn quick(frame: &Frame, guess: &Timing) -> Places {
    let mut places = frame.nowhere();
    let mut gaps = Gaps::default();
    let round = |bytes: u64| bytes.next_multiple_of(frame.alignment);
    let end = frame.arena / frame.alignment * frame.alignment;
    gaps.add(frame.floor, Segment { bytes: end.saturating_sub(frame.floor), free: 0 });
    let mut objects = frame.movable.clone();
    objects
        .sort_by_key(|&object| (frame.extents[object].0, Reverse(frame.objects.all[object].bytes), object));
    let mut leaving = BinaryHeap::new();
    for object in objects {
        let (comes, leaves) = frame.extents[object];
        while let Some(&Reverse((left, base, gap))) = leaving.peek() {
            if left >= comes {
                break;
            }
            leaving.pop();
            gaps.add(base, gap);
        }
        let bytes = round(frame.objects.all[object].bytes);
        let is_long = leaves - comes > frame.order.len() as u32 / LONG_LIVED.get();
        let reach = guess.reach[object];
        // The latest time at which the bytes may become free without a delay.
        let limit = frame.nominal().saturating_sub(reach.after);
        if let Some(base) = gaps.take(bytes, limit, is_long) {
            places[object] = Some(Place { base, mirrored: false });
            leaving.push(Reverse((leaves, base, Segment { bytes, free: reach.free })));
        }
    }
    places
}

/// Free bytes, and the time at which they become free.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    bytes: u64,
    free: u64,
}

/// The free bytes: gaps, made of segments that became free at different times.
#[derive(Default)]
struct Gaps {
    segments: BTreeMap<u64, Segment>,
    /// For each address, the bytes of each gap.
    by_address: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
}

impl Gaps {
    fn add(&mut self, mut base: u64, segment: Segment) {
        let mut bytes = segment.bytes;
        if bytes == 0 {
            return;
        }
        self.segments.insert(base, segment);
        if let Some(&after) = self.by_address.get(&(base + bytes)) {
            self.remove(base + bytes, after);
            bytes += after;
        }
        if let Some((&below, &its)) = self.by_address.range(..base).next_back()
            && below + its == base
        {
            self.remove(below, its);
            (base, bytes) = (below, its + bytes);
        }
        self.insert(base, bytes);
    }

    fn insert(&mut self, base: u64, bytes: u64) {
        if bytes > 0 {
            self.by_address.insert(base, bytes);
            self.by_size.insert((bytes, base));
        }
    }

    fn remove(&mut self, base: u64, bytes: u64) {
        self.by_address.remove(&base);
        self.by_size.remove(&(bytes, base));
    }

    /// Takes the bytes where they are free by `limit`, or else where they are free first: in the smallest gap, at the lower
    /// or the upper end of one of its segments.
    fn take(&mut self, bytes: u64, limit: u64, low: bool) -> Option<u64> {
        let mut best: Option<(u64, u64, (u64, u64))> = None;
        let mut compared = 0;
        'gaps: for &(size, gap) in self.by_size.range((bytes, 0)..) {
            let end = gap + size;
            let fits = |base: u64| gap <= base && base + bytes <= end;
            let mut segments = self.segments.range(gap..end);
            loop {
                let next = if low { segments.next() } else { segments.next_back() };
                let Some((&segment, facts)) = next else { break };
                let base = if low { Some(segment) } else { (segment + facts.bytes).checked_sub(bytes) };
                let Some(base) = base.filter(|&base| fits(base)) else { break };
                let late = self.free(base, bytes).saturating_sub(limit);
                compared += 1;
                tuned::work(1);
                if best.is_none_or(|(least, ..)| late < least) {
                    best = Some((late, base, (gap, size)));
                }
                if late == 0 || compared == COMPARED {
                    break 'gaps;
                }
            }
        }
        let (_, base, (gap, size)) = best?;
        self.cut(base);
        self.cut(base + bytes);
        let taken: Vec<u64> = self.segments.range(base..base + bytes).map(|(&segment, _)| segment).collect();
        for segment in taken {
            self.segments.remove(&segment);
        }
        self.remove(gap, size);
        self.insert(gap, base - gap);
        self.insert(base + bytes, gap + size - (base + bytes));
        Some(base)
    }

    /// The time at which all of the `bytes` bytes from `base` on, which belong to one gap, are free.
    fn free(&self, base: u64, bytes: u64) -> u64 {
        let first = self.segments.range(..=base).next_back().map_or(base, |(&segment, _)| segment);
        self.segments.range(first..base + bytes).map(|(_, segment)| segment.free).max().unwrap_or(0)
    }

    /// Splits the segment that contains the address.
    fn cut(&mut self, address: u64) {
        let Some((&base, &segment)) = self.segments.range(..address).next_back() else { return };
        let below = address - base;
        if below < segment.bytes {
            self.segments.insert(base, Segment { bytes: below, ..segment });
            self.segments.insert(address, Segment { bytes: segment.bytes - below, ..segment });
        }
    }
}
