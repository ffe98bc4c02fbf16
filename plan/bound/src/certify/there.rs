//! The tensors that can be absent at a place, derived from the operators.

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Problem, TensorId};

use super::{NotProven, Plans, Row, copy_nanos, from};
use crate::{StepPlace, Way};

/// A tensor that can be absent at some place.
pub(super) struct Away {
    pub(super) tensor: TensorId,
    pub(super) bytes: u64,
    /// The place that a copy out must follow, if one is needed.
    pub(super) release: Option<StepPlace>,
    /// The place that a copy in must precede, if one is needed.
    pub(super) due: Option<StepPlace>,
}

/// The tensors that can be absent at a place, and the number of their bytes that fit nonetheless; see
/// [`CopyInterval`](crate::CopyInterval).
pub(super) struct There {
    pub(super) away: Vec<Away>,
    pub(super) fits: u64,
    /// All bytes that are live there, workspace included.
    pub(super) live: u64,
}

/// The uses of a tensor, as seen from some place.
#[derive(Clone, Copy, Default)]
struct Seen {
    first: Option<u32>,
    last: Option<u32>,
    next: Option<u32>,
    /// Its last change before the place, and in the whole step.
    changed: Option<u32>,
    changed_last: Option<u32>,
    touched: bool,
    /// Its producer, if that is recomputable.
    again: Option<u32>,
}

impl There {
    pub(super) fn of(
        problem: &Problem,
        budget: u64,
        at: StepPlace,
        plans: Plans,
        row: Row,
    ) -> Result<There, NotProven> {
        let before = from(problem, at)?;
        let around = row != Row::Step;
        // In a row around an operator, places outside the row are unknown.
        let (since, till) = (row.end(problem, at)?, row.index(problem, at)?);
        let in_row_before =
            |place: &StepPlace| !around || row.index(problem, *place).is_ok_and(|index| index < since);
        let in_row_after =
            |place: &StepPlace| !around || row.end(problem, *place).is_ok_and(|index| index > till);
        let mut seen: SecondaryMap<TensorId, Seen> = SecondaryMap::with_capacity(problem.tensors.len());
        for (tick, op) in problem.ops.iter().enumerate() {
            let here = at == StepPlace::Op(tick as u32);
            for tensor in op.touches() {
                let seen = &mut seen[tensor];
                seen.touched |= here;
                seen.first.get_or_insert(tick as u32);
                seen.last = Some(tick as u32);
                if tick >= before && !here {
                    seen.next.get_or_insert(tick as u32);
                }
            }
            if op.recomputable {
                op.produces.iter().for_each(|&tensor| seen[tensor].again = Some(tick as u32));
            }
            for &tensor in op.produces.iter().chain(&op.changes) {
                seen[tensor].changed_last = Some(tick as u32);
                seen[tensor].changed = Some(tick as u32).filter(|_| tick < before).or(seen[tensor].changed);
            }
        }
        let mut fixed = if let StepPlace::Op(tick) = at { problem.ops[tick as usize].workspace } else { 0 };
        let mut away = Vec::new();
        for (tensor, facts) in &problem.tensors {
            let Seen { first, last, next, mut changed, changed_last, touched, again } = seen[tensor];
            let variable = facts.given && facts.kept;
            // A variable that changes after the start does so before it is copied out for the next step.
            if at == StepPlace::Start || around && variable {
                changed = changed.or(changed_last);
            }
            // It still has the value from its producer.
            let again = plans == Plans::Joint && again.is_some() && again == changed;
            let (live, idle) = match at {
                StepPlace::Start => (facts.given, variable && (first > Some(0) || until_end(problem, last))),
                StepPlace::End => (facts.kept, variable && (first > Some(0) || until_end(problem, last))),
                StepPlace::Op(tick) => {
                    let begun = if facts.given { first.is_some() || facts.kept } else { first <= Some(tick) };
                    (touched || begun && (facts.kept || last > Some(tick)), !touched && first.is_some())
                }
            };
            if live && idle && again {
                away.push(Away { tensor, bytes: facts.bytes, release: None, due: None });
            } else if live && idle && facts.swappable {
                let release =
                    changed.map(StepPlace::Op).or((facts.given && !facts.kept).then_some(StepPlace::Start));
                let due = match at {
                    StepPlace::End => first,
                    _ if around && variable => next.or(first),
                    _ => next,
                };
                let due = due.map(StepPlace::Op).or((facts.kept && !facts.given).then_some(StepPlace::End));
                let (release, due) = (release.filter(in_row_before), due.filter(in_row_after));
                away.push(Away { tensor, bytes: facts.bytes, release, due });
            } else if live {
                fixed += facts.bytes;
            }
        }
        let live = fixed + away.iter().map(|away| away.bytes).sum::<u64>();
        Ok(There { away, fits: budget.saturating_sub(fixed), live })
    }

    /// The least time of the copies in one direction that the place requires and that are bound by such places.
    pub(super) fn nanos(&self, problem: &Problem, way: Way, bound: impl Fn(StepPlace) -> bool) -> u128 {
        let limit: fn(&Away) -> Option<StepPlace> = match way {
            Way::Out => |away| away.release,
            Way::In => |away| away.due,
        };
        let moved = self.away.iter().filter(|away| limit(away).is_some_and(&bound));
        let bytes = moved.clone().map(|away| away.bytes).sum::<u64>().saturating_sub(self.fits);
        // Each copy is of one tensor, so there are at least as many as with the largest tensors.
        let mut sizes: Vec<u64> = moved.map(|away| away.bytes).collect();
        sizes.sort_unstable_by_key(|&bytes| std::cmp::Reverse(bytes));
        let sums = sizes.into_iter().scan(0u64, |sum, size| Some(std::mem::replace(sum, *sum + size)));
        copy_nanos(problem, way, bytes, sums.take_while(|&sum| sum < bytes).count() as u64)
    }
}

/// Whether the last operator comes after this use.
fn until_end(problem: &Problem, last: Option<u32>) -> bool {
    last.is_some_and(|last| (last as usize) + 1 < problem.ops.len())
}
