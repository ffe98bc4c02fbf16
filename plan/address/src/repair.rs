//! Makes room for objects without a place by removing others.

use cranelift_entity::PrimaryMap;
use lmsc_ir::rng::{Rng, Source};

use super::frame::{Frame, Places};
use super::objects::ObjectId;
use super::seek::{NEVER, Price, Seeker, Taste};
use super::timing::Timing;

/// For each object, the cost of removing it: higher for large objects, and for those that were hard to place before.
struct Weights(PrimaryMap<ObjectId, u64>);

impl Price for Weights {
    fn of(&self, other: ObjectId, _: u64) -> u64 {
        self.0[other]
    }
}

/// Places all objects so that no overlap causes a delay beyond the limit, or as many as the number of attempts allows.
///
/// An object is placed where the objects that obstruct it have the least weight, and these need another place. Objects that
/// fail often become heavy and stay.
///
/// # Source
/// Nagata and Bräysy, *A powerful route minimization heuristic for the vehicle routing problem with time windows*,
/// Operations Research Letters 37(5), 2009, with bytes for vehicles.
pub(super) fn repair(
    frame: &Frame,
    timing: &Timing,
    seeker: &mut Seeker,
    places: &mut Places,
    (limit, attempts, seed): (u64, u32, u64),
) {
    let unit: PrimaryMap<ObjectId, u64> = frame
        .objects
        .all
        .values()
        .map(|object| {
            1 + ((u128::from(object.bytes) * 10_000 / u128::from(frame.arena.max(1))) as u64).isqrt()
        })
        .collect();
    let mut weights = Weights(unit.clone());
    let mut random = Rng::new(seed);
    let mut pool: Vec<ObjectId> = frame.movable.iter().copied().filter(|&o| places[o].is_none()).collect();
    for _ in 0..attempts {
        if pool.is_empty() {
            return;
        }
        let object = pool.swap_remove(random.below(pool.len()));
        let taste = [Taste::Lowest, Taste::Highest, Taste::Any][random.below(3)];
        let Some((place, cost)) =
            seeker.best(frame, timing, places, (object, limit), &weights, (taste, &mut random))
        else {
            return;
        };
        if cost > 0 {
            weights.0[object] = (weights.0[object] + unit[object]).min(NEVER / 2);
            for other in seeker.in_the_way(frame, timing, places, (object, place), limit) {
                places[other] = None;
                pool.push(other);
            }
        }
        places[object] = Some(place);
    }
}
