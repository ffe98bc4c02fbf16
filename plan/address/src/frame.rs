//! The fixed part of the address search for one plan.

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};
use lmsc_schedule::{Absences, ActId, Acts, BlockId, Direction, Plan, Simulator, Times};

use super::objects::{ObjectId, Objects};
use super::{Arena, serial};

/// The address of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The address of its first byte.
    pub(super) base: u64,
    /// Whether its bytes count from the other end. Equal for all objects of a tensor, since copies preserve the order of the
    /// bytes.
    pub(super) mirrored: bool,
}

/// For each object, its place; none if not yet assigned.
pub(super) type Places = PrimaryMap<ObjectId, Option<Place>>;

/// A plan to be placed: its activities, objects and times, and the order in which addresses are assigned.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) absences: Absences,
    pub(super) acts: Acts,
    pub(super) objects: Objects,
    /// The serial order, and by act the previous one of its engine.
    pub(super) order: Vec<ActId>,
    pub(super) queue: SecondaryMap<ActId, Option<ActId>>,
    /// For each block, its first and its last position in that order.
    pub(super) positions: PrimaryMap<BlockId, (u32, u32)>,
    /// For each object, the union of the positions of its blocks.
    pub(super) extents: PrimaryMap<ObjectId, (u32, u32)>,
    /// The times of the plan without addresses, from the start and from the end.
    pub(super) early: Times,
    pub(super) late: Times,
    /// The size of the arena in bytes, and the alignment of bases.
    pub(super) arena: u64,
    pub(super) alignment: u64,
    /// Objects that are always resident, one after the other from address 0, and the address after them.
    pub(super) fixed: Vec<(ObjectId, Place)>,
    pub(super) floor: u64,
    /// The other objects.
    pub(super) movable: Vec<ObjectId>,
    /// The operator with the most live bytes, as an act, and its position.
    pub(super) top: ActId,
    pub(super) top_position: u32,
}

impl Frame {
    /// The frame of a plan that fits `budget` bytes.
    ///
    /// None if its operators run on several lanes, if no choice of absences has exactly its copies, or if the objects that are always resident do not fit the arena.
    pub(super) fn new(plan: &Plan, budget: u64, arena: Arena) -> Option<Frame> {
        let (problem, Arena { bytes: arena, alignment }) = (&plan.problem, arena);
        if problem.has_lanes() {
            return None;
        }
        let absences = Absences::of(problem, &plan.schedule);
        let acts = Acts::of(problem, &absences);
        let order = acts.order_of(&plan.schedule)?;
        let mut simulator = Simulator::default();
        let early = simulator.run(&acts, &order, budget, Direction::Forward).ok()?;
        let mut from_the_end: Vec<ActId> = order.iter().rev().copied().collect();
        from_the_end.sort_by_key(|act| std::cmp::Reverse(early.end[act.index()]));
        let late = simulator.run(&acts, &from_the_end, budget, Direction::Backward).ok()?;
        let objects = Objects::of(problem, &absences, &acts);
        let order = serial::just_in_time(&acts, &order);
        let mut position: SecondaryMap<ActId, u32> = SecondaryMap::with_capacity(acts.len());
        order.iter().zip(0..).for_each(|(&act, at)| position[act] = at);
        let positions: PrimaryMap<BlockId, (u32, u32)> = objects
            .spans
            .values()
            .map(|span| (position[span.first], position[span.last[0]].max(position[span.last[1]])))
            .collect();
        let extents: PrimaryMap<ObjectId, (u32, u32)> = objects
            .all
            .values()
            .map(|object| {
                let spans = object.rects.iter().map(|r| positions[r.block]);
                spans.fold((u32::MAX, 0), |all, span| (all.0.min(span.0), all.1.max(span.1)))
            })
            .collect();
        let always = (0, order.len() as u32 - 1);
        let (mut fixed, mut floor, mut movable) = (Vec::new(), 0u64, Vec::new());
        for (id, object) in &objects.all {
            if object.rects.iter().all(|r| positions[r.block] == always) {
                fixed.push((id, Place { base: floor, mirrored: false }));
                floor = (floor + object.bytes).next_multiple_of(alignment);
            } else {
                movable.push(id);
            }
        }
        if fixed.iter().any(|&(id, place)| place.base + objects.all[id].bytes > arena) {
            return None;
        }
        let live = absences.live_by_moment(problem);
        let top = (0..live.len()).max_by_key(|&m| (live[m], std::cmp::Reverse(m))).unwrap_or(0);
        let queue = serial::queues(&acts, &order);
        // The acts by moment: the start, the operators in their order, the end.
        let top = ActId::new(if top + 1 < live.len() { top } else { acts.len() - 1 });
        Some(Frame {
            absences,
            acts,
            objects,
            order,
            queue,
            positions,
            extents,
            early,
            late,
            arena,
            alignment,
            fixed,
            floor,
            movable,
            top,
            top_position: position[top],
        })
    }

    /// The makespan of the plan without addresses.
    pub(super) fn nominal(&self) -> u64 {
        self.early.makespan
    }

    /// Places for the objects that are always resident, and none for the others.
    pub(super) fn nowhere(&self) -> Places {
        let mut places: Places = self.objects.all.values().map(|_| None).collect();
        for &(object, place) in &self.fixed {
            places[object] = Some(place);
        }
        places
    }

    /// The addresses of a range of the object's bytes.
    pub(super) fn lies(&self, object: ObjectId, place: Place, (begin, end): (u64, u64)) -> (u64, u64) {
        let bytes = self.objects.all[object].bytes;
        let (begin, end) = if place.mirrored { (bytes - end, bytes - begin) } else { (begin, end) };
        (place.base + begin, place.base + end)
    }
}
