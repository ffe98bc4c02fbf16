//! Making room for what found none, by taking others out.

use super::frame::{Frame, Places};
use super::objects::ObjectId;
use super::seek::{NEVER, Price, Seeker, Taste};
use super::timing::Timing;
use cranelift_entity::PrimaryMap;
use lmsc_ir::rng::{Rng, Source};

/// By object, what it costs to take it out: more for the larger, and for those that were hard to place before.
struct Weights(PrimaryMap<ObjectId, u64>);

impl Price for Weights {
    fn of(&self, other: ObjectId, _: u64) -> u64 {
        self.0[other]
    }
}

/// Places everything so that no overlap delays beyond the limit, or as much of it as so many attempts allow.
///
/// An object goes where those in its way weigh least, and these have to find another place. What fails often gets
/// heavy and stays.
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
