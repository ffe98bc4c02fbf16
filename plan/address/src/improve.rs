//! Local search on placements: moves a few objects at a time to places with less delay.

use std::cmp::Reverse;

use lmsc_ir::rng::{Rng, Source};
use lmsc_schedule::tuned::Tunable;

use super::construct::{Distance, Size, distance, size};
use super::frame::{Frame, Places};
use super::objects::ObjectId;
use super::seek::{Delay, Seeker, Taste};
use super::timing::Timing;

/// A placement with its makespan.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    pub(super) places: Places,
    /// Objects without a place.
    pub(super) left: Vec<ObjectId>,
    pub(super) makespan: u64,
}

impl Placement {
    pub(super) fn of(frame: &Frame, timing: &mut Timing, places: Places) -> Placement {
        timing.run(frame, &places);
        let left = frame.movable.iter().copied().filter(|&o| places[o].is_none()).collect();
        Placement { places, left, makespan: timing.makespan }
    }

    /// The rank of the placement: an object without a place counts for a fiftieth of the makespan.
    pub(super) fn rank(&self) -> u64 {
        self.makespan + self.makespan / 50 * self.left.len() as u64
    }

    fn better_than(&self, other: &Placement) -> bool {
        (self.left.len(), self.makespan) < (other.left.len(), other.makespan)
    }
}

/// Maximum number of objects removed at once besides those of a delaying edge.
const MOST_NEIGHBOURS: Tunable<usize> = Tunable::new(12);

/// Maximum distance between the lifetimes of neighbours, in positions.
const NEIGHBOUR_DISTANCE: Tunable<u32> = Tunable::new(4);

/// Improves the placement until the work limit is reached or nothing is left to improve.
///
/// Removes the objects of an address edge on a longest path, or those without a place, with some others that live at the same
/// time, and reinserts them one by one where they delay least; continues from the result unless it is worse.
///
/// # Source
/// Schrimpf, Schneider, Stamm-Wilbrandt, Dueck, *Record breaking optimization results using the ruin and recreate
/// principle*, Journal of Computational Physics 159(2), 2000.
pub(super) fn improve(
    frame: &Frame,
    timing: &mut Timing,
    seeker: &mut Seeker,
    best: &mut Placement,
    (work, seed): (u64, u64),
) {
    let mut random = Rng::new(seed);
    let nominal = frame.nominal();
    let mut now = best.clone();
    timing.run(frame, &now.places);
    let mut cost = timing.cost(frame) + penalty(frame, &now.left);
    let mut kept = timing.clone();
    let begin = timing.work + seeker.work;
    loop {
        let spent = timing.work + seeker.work - begin;
        if spent >= work || (best.left.is_empty() && best.makespan <= nominal) {
            return;
        }
        let Some(mut out) = ruin(frame, timing, &now, &mut random) else { return };
        let mut places = now.places.clone();
        out.iter().for_each(|&o| places[o] = None);
        timing.run(frame, &places);
        match random.below(4) {
            0 => out.sort_by_key(|&o| {
                (distance(frame, o, Distance::Early), Reverse(size(frame, o, Size::Bytes)))
            }),
            1 => out.sort_by_key(|&o| Reverse(size(frame, o, Size::Bytes))),
            2 => out.sort_by_key(|&o| Reverse(size(frame, o, Size::Area))),
            _ => (1..out.len()).rev().for_each(|i| out.swap(i, random.below(i + 1))),
        }
        let taste = [Taste::Lowest, Taste::Highest, Taste::Any][random.below(3)];
        let limit = if random.below(2) == 0 { nominal } else { best.makespan.max(nominal + 1) - 1 };
        for &object in &out {
            let found = seeker.best(frame, timing, &places, (object, limit), &Delay, (taste, &mut random));
            places[object] = found.map(|(place, _)| place);
        }
        out.retain(|&o| places[o].is_none());
        timing.run(frame, &places);
        let found = Placement { places, left: out, makespan: timing.makespan };
        let found_cost = timing.cost(frame) + penalty(frame, &found.left);
        if found_cost <= cost {
            if found.better_than(best) {
                best.clone_from(&found);
            }
            (now, cost) = (found, found_cost);
            let spent = timing.work;
            kept.clone_from(timing);
            timing.work = spent;
        } else {
            let spent = timing.work;
            timing.clone_from(&kept);
            timing.work = spent;
        }
    }
}

/// The cost of objects without a place.
fn penalty(frame: &Frame, left: &[ObjectId]) -> u64 {
    let nominal = u128::from(frame.nominal());
    let bytes = left.iter().map(|&o| size(frame, o, Size::Bytes));
    bytes.map(|b| (nominal / 100 + nominal * b / u128::from(frame.arena.max(1))) as u64).sum()
}

/// The objects to remove; none if no address edge causes a delay.
fn ruin(frame: &Frame, timing: &Timing, now: &Placement, random: &mut Rng) -> Option<Vec<ObjectId>> {
    let mut out = now.left.clone();
    if out.is_empty() || random.below(4) == 0 {
        let edges = timing.critical_edges(frame);
        if !edges.is_empty() {
            let (owner, act) = edges[random.below(edges.len())];
            let next = frame.objects.allocated_by.of(act).iter().copied();
            for block in std::iter::once(owner).chain(next) {
                let object = frame.objects.spans[block].object;
                if !out.contains(&object) && frame.movable.binary_search(&object).is_ok() {
                    out.push(object);
                }
            }
        }
    }
    if out.is_empty() {
        return None;
    }
    let (first, last) = frame.extents[out[random.below(out.len())]];
    let near = frame.movable.iter().copied().filter(|&o| {
        let lives = frame.extents[o];
        lives.0 <= last + NEIGHBOUR_DISTANCE.get() && first <= lives.1 + NEIGHBOUR_DISTANCE.get()
    });
    let near: Vec<ObjectId> = near.collect();
    for _ in 0..random.below(MOST_NEIGHBOURS.get()) {
        let object = near[random.below(near.len())];
        if !out.contains(&object) {
            out.push(object);
        }
    }
    Some(out)
}
