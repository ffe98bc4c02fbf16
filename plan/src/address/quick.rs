//! A placement in nearly linear time: each object goes where there is room when it comes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::frame::{Frame, Place, Places};

/// An object that is there for more than one part in so many of the serial order is there for long.
const LONG: u32 = 16;

/// Each object, in the serial order, at an end of the smallest gap that holds it: at the lower one if it is there for
/// long, at the upper one otherwise. What finds no room is left out.
///
/// It packs less tightly than a construction that compares every object with every other.
pub(super) fn quick(frame: &Frame) -> Places {
    let mut places = frame.nowhere();
    let mut gaps = Gaps::default();
    let round = |bytes: u64| bytes.next_multiple_of(frame.alignment);
    let end = frame.arena / frame.alignment * frame.alignment;
    gaps.add(frame.floor, end.saturating_sub(frame.floor));
    let mut objects = frame.movable.clone();
    objects
        .sort_by_key(|&object| (frame.extents[object].0, Reverse(frame.objects.all[object].bytes), object));
    let mut leaving = BinaryHeap::new();
    for object in objects {
        let (comes, leaves) = frame.extents[object];
        while let Some(&Reverse((left, base, bytes))) = leaving.peek() {
            if left >= comes {
                break;
            }
            leaving.pop();
            gaps.add(base, bytes);
        }
        let bytes = round(frame.objects.all[object].bytes);
        let is_long = leaves - comes > frame.order.len() as u32 / LONG;
        if let Some(base) = gaps.take(bytes, is_long) {
            places[object] = Some(Place { base, mirrored: false });
            leaving.push(Reverse((leaves, base, bytes)));
        }
    }
    places
}

/// What nobody has.
#[derive(Default)]
struct Gaps {
    by_address: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
}

impl Gaps {
    fn add(&mut self, mut base: u64, mut bytes: u64) {
        if bytes == 0 {
            return;
        }
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
        self.by_address.insert(base, bytes);
        self.by_size.insert((bytes, base));
    }

    fn remove(&mut self, base: u64, bytes: u64) {
        self.by_address.remove(&base);
        self.by_size.remove(&(bytes, base));
    }

    /// Takes so many bytes of the smallest gap that has them.
    fn take(&mut self, bytes: u64, low: bool) -> Option<u64> {
        let &(size, base) = self.by_size.range((bytes, 0)..).next()?;
        self.remove(base, size);
        let rest = size - bytes;
        self.add(if low { base + bytes } else { base }, rest);
        Some(if low { base } else { base + rest })
    }
}
