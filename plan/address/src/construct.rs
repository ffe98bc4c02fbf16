//! Constructive placement heuristics.

use std::cmp::Reverse;

use cranelift_entity::{EntityRef, PrimaryMap};
use lmsc_ir::rng::Rng;
use lmsc_schedule::ActId;

use super::frame::{Frame, Places};
use super::objects::ObjectId;
use super::seek::{Delay, Rival, Seeker, Taste};
use super::timing::Timing;

/// The distance of an object from the operator with the most live bytes. The nearest object is placed first, so that the
/// arena is packed without gaps where there is no spare room, and the gaps occur where less is live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distance {
    /// By the times of the plan with everything as early as possible.
    Early,
    /// By the times of the plan with everything as late as possible.
    Late,
    /// By positions in the serial order.
    Serial,
    /// All distances are equal.
    None,
}

/// The size by which objects at the same distance are sorted, the largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Bytes,
    /// Bytes times positions.
    Area,
    Positions,
}

/// A construction rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) distance: Distance,
    pub(super) size: Size,
    /// The delay that an overlap may cause, in thousandths of the makespan.
    pub(super) slack: u64,
    pub(super) taste: Taste,
}

const fn rule(distance: Distance, size: Size, slack: u64, taste: Taste) -> Rule {
    Rule { distance, size, slack, taste }
}

/// The rules, sorted by how often they are the best.
pub(super) const RULES: [Rule; 11] = {
    use Distance::*;
    use Size::*;
    use Taste::*;
    [
        rule(Early, Bytes, 0, Lowest),
        rule(Serial, Bytes, 0, Lowest),
        rule(Early, Bytes, 3, Lowest),
        rule(Serial, Bytes, 3, Lowest),
        rule(Early, Area, 0, Lowest),
        rule(None, Positions, 0, Lowest),
        rule(Late, Bytes, 0, Lowest),
        rule(None, Bytes, 0, Lowest),
        rule(Early, Bytes, 0, Highest),
        rule(Serial, Area, 0, Lowest),
        rule(None, Bytes, 12, Lowest),
    ]
};

/// Maximum number of rivals that are kept: a limit on the memory.
const MOST_RIVALS: usize = 1 << 22;

/// The rivals of each object, by the times of the plan, which are the same for all rules: found when a rule needs them first.
pub(super) struct Rivals {
    by_object: PrimaryMap<ObjectId, Option<Box<[Rival]>>>,
    kept: usize,
}

impl Rivals {
    pub(super) fn new(frame: &Frame) -> Rivals {
        Rivals { by_object: frame.objects.all.values().map(|_| None).collect(), kept: 0 }
    }

    /// The rivals of the object, of which `found` is the memory where they are too many to keep.
    fn of<'a>(
        &'a mut self,
        frame: &Frame,
        guess: &Timing,
        seeker: &mut Seeker,
        object: ObjectId,
        found: &'a mut Vec<Rival>,
    ) -> &'a [Rival] {
        if self.by_object[object].is_none() {
            seeker.find_rivals(frame, guess, object, frame.nominal(), |_| true, found);
            if self.kept + found.len() > MOST_RIVALS {
                return found;
            }
            self.kept += found.len();
            self.by_object[object] = Some(found.as_slice().into());
        }
        self.by_object[object].as_deref().unwrap_or_default()
    }
}

/// The placement by the rule: each object at the place that delays the plan least, by the times of the plan. Objects without
/// room are left out.
pub(super) fn construct(
    frame: &Frame,
    guess: &Timing,
    rivals: &mut Rivals,
    seeker: &mut Seeker,
    rule: Rule,
) -> Places {
    let nominal = frame.nominal();
    let limit = nominal + nominal / 1000 * rule.slack;
    let keys = frame
        .movable
        .iter()
        .map(|&o| (distance(frame, o, rule.distance), Reverse(size(frame, o, rule.size)), o));
    let mut order: Vec<_> = keys.collect();
    order.sort_unstable();
    let mut places = frame.nowhere();
    let mut random = Rng::new(0);
    let mut found = Vec::new();
    for (_, _, object) in order {
        let rivals = rivals.of(frame, guess, seeker, object, &mut found);
        let choice = (rule.taste, &mut random);
        let best = seeker.best_among(rivals, frame, &places, (object, limit), &Delay, choice);
        places[object] = best.map(|(place, _)| place);
    }
    places
}

/// The distance of the object from the operator with the most live bytes.
pub(super) fn distance(frame: &Frame, object: ObjectId, distance: Distance) -> u64 {
    let (early, late) = (&frame.early, &frame.late);
    let start = |act: ActId| match distance {
        Distance::Late => late.makespan - late.end[act.index()],
        _ => early.start[act.index()],
    };
    let end = |act: ActId| match distance {
        Distance::Late => late.makespan - late.start[act.index()],
        _ => early.end[act.index()],
    };
    let (from, until, top) = match distance {
        Distance::None => return 0,
        Distance::Serial => {
            let (first, last) = frame.extents[object];
            let top = u64::from(frame.top_position);
            (u64::from(first), u64::from(last), top..top)
        }
        Distance::Early | Distance::Late => {
            let (mut from, mut until) = (u64::MAX, 0);
            for rect in &frame.objects.all[object].rects {
                let span = frame.objects.spans[rect.block];
                from = from.min(start(span.first));
                until = until.max(end(span.last[0])).max(end(span.last[1]));
            }
            (from, until, start(frame.top)..end(frame.top))
        }
    };
    from.saturating_sub(top.end).max(top.start.saturating_sub(until))
}

/// The size of the object.
pub(super) fn size(frame: &Frame, object: ObjectId, size: Size) -> u128 {
    let object = &frame.objects.all[object];
    let positions = |block| {
        let (first, last) = frame.positions[block];
        u128::from(last - first + 1)
    };
    match size {
        Size::Bytes => u128::from(object.bytes),
        Size::Area => {
            object.rects.iter().map(|r| u128::from(r.bytes.1 - r.bytes.0) * positions(r.block)).sum()
        }
        Size::Positions => object.rects.iter().map(|r| positions(r.block)).max().unwrap_or(0),
    }
}
