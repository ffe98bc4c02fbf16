//! The joint effect of swapping and recomputation for an operator, derived from the operators.

use std::collections::BTreeMap;

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Problem, TensorId};

use super::there::There;
use super::{NotProven, Plans, Reach, Row, copy_nanos};
use crate::{Interval, StepPlace, Way};

/// The facts about an operator at which not everything fits.
pub(super) struct Trade<'a> {
    problem: &'a Problem,
    tick: u32,
    /// The bytes over the budget.
    excess: u64,
    /// The least time before it starts, and after it ends.
    before: u128,
    after: u128,
    /// The copies of tensors that are absent: the time when some may start, and the bytes that may have been copied before.
    out: Vec<(u128, u64)>,
    back: Vec<(u128, u64)>,
    tensors: Tensors,
    sources: Vec<Source>,
}

/// The uses of tensors, up to the operator of the trade.
#[derive(Default)]
struct Tensors {
    last_use: SecondaryMap<TensorId, Option<u32>>,
    touched: SecondaryMap<TensorId, bool>,
    /// Its producer, and whether that is recomputable.
    producer: SecondaryMap<TensorId, Option<(u32, bool)>>,
    changed: SecondaryMap<TensorId, bool>,
    /// Number of its recomputable readers, for tensors that can be absent or for one another.
    readers: SecondaryMap<TensorId, u32>,
}

/// An earlier operator with outputs that can be absent and recomputed.
struct Source {
    tick: u32,
    bytes: u64,
}

impl Tensors {
    fn of(problem: &Problem, tick: u32) -> Tensors {
        let mut tensors = Tensors::default();
        for (op, at) in problem.ops.iter().zip(0..) {
            let again = op.recomputable;
            op.touches().for_each(|t| tensors.last_use[t] = Some(at));
            op.produces.iter().for_each(|&t| tensors.producer[t] = Some((at, again)));
            op.changes.iter().for_each(|&t| tensors.changed[t] |= at < tick);
        }
        problem.ops[tick as usize].touches().for_each(|t| tensors.touched[t] = true);
        for op in problem.ops[..tick as usize].iter().rev().filter(|op| op.recomputable) {
            let asked_for = |&t: &TensorId| {
                tensors.comes_again(problem, t, tick)
                    || tensors.dead(problem, t, tick) && tensors.readers[t] > 0
            };
            if op.produces.iter().any(asked_for) {
                op.reads_again().for_each(|t| tensors.readers[t] += 1);
            }
        }
        tensors
    }

    /// Whether the tensor existed before the operator and is not used there or later.
    fn dead(&self, problem: &Problem, tensor: TensorId, tick: u32) -> bool {
        !problem.tensors[tensor].kept && self.last_use[tensor].is_some_and(|last| last < tick)
    }

    /// Whether its producer can be recomputed for a tensor that can be absent at the operator.
    fn maker_comes_again(&self, problem: &Problem, tensor: TensorId, tick: u32) -> bool {
        let outputs = self.producer[tensor].filter(|(_, again)| *again);
        let mut outputs = outputs.iter().flat_map(|&(p, _)| &problem.ops[p as usize].produces);
        outputs.any(|&t| self.comes_again(problem, t, tick))
    }

    /// Whether the tensor can be absent at the operator because its producer can be recomputed later.
    fn comes_again(&self, problem: &Problem, tensor: TensorId, tick: u32) -> bool {
        let needed = problem.tensors[tensor].kept || self.last_use[tensor].is_some_and(|last| last > tick);
        let again = self.producer[tensor].is_some_and(|(producer, again)| again && producer < tick);
        needed && again && !self.touched[tensor] && !self.changed[tensor]
    }
}

impl<'a> Trade<'a> {
    pub(super) fn of(
        problem: &'a Problem,
        budget: u64,
        tick: u32,
        starts: &mut Reach,
        lasts: &mut Reach,
    ) -> Result<Trade<'a>, NotProven> {
        let there = There::of(problem, budget, StepPlace::Op(tick), Plans::Swap, Row::Step)?;
        let tensors = Tensors::of(problem, tick);
        let nanos = |ticks: std::ops::Range<usize>| -> u128 {
            problem.ops[ticks].iter().map(|op| u128::from(op.nanos)).sum()
        };
        // When bytes can have been copied out, and when they must be copied in.
        let mut items: Vec<(Option<StepPlace>, Option<StepPlace>, u64)> = Vec::new();
        let mut sources = Vec::new();
        let mut counted: SecondaryMap<TensorId, u64> = SecondaryMap::new();
        let mut rests_on: Vec<Option<StepPlace>> = Vec::new();
        for (op, at) in problem.ops[..tick as usize].iter().zip(0..) {
            let charged = |&t: &TensorId| {
                op.recomputable
                    && tensors.dead(problem, t, tick)
                    && !tensors.maker_comes_again(problem, t, tick)
            };
            let first = op.reads_again().filter(charged).map(|t| match tensors.producer[t] {
                Some((producer, _)) => {
                    rests_on[producer as usize].unwrap_or(StepPlace::End).min(StepPlace::Op(producer))
                }
                None => StepPlace::Start,
            });
            rests_on.push(first.min());
            let again = || op.produces.iter().filter(|&&t| tensors.comes_again(problem, t, tick));
            let bytes: u64 = again().map(|&t| problem.tensors[t].bytes).sum();
            if bytes > 0 {
                sources.push(Source { tick: at, bytes });
            }
            if let (Some(first), 1..) = (rests_on[at as usize], bytes) {
                let next = |t: TensorId| {
                    let later = problem.ops.iter().zip(0..).skip(tick as usize + 1);
                    let mut uses = later.filter(|(op, _)| op.touches().any(|touched| touched == t));
                    uses.next().map_or(StepPlace::End, |(_, at)| StepPlace::Op(at))
                };
                let due = again().map(|&t| next(t)).max();
                let share = |t| problem.tensors[t].bytes.div_ceil(u64::from(tensors.readers[t].max(1)));
                let shares: u64 = op.reads_again().filter(charged).map(share).sum();
                let mut left = shares.min(bytes);
                items.push((Some(first.min(StepPlace::Op(at))), due, left));
                for &tensor in again().filter(|&&t| problem.tensors[t].swappable) {
                    counted[tensor] = left.min(problem.tensors[tensor].bytes);
                    left -= counted[tensor];
                }
            }
        }
        let others =
            there.away.iter().map(|away| (away.release, away.due, away.bytes - counted[away.tensor]));
        items.extend(others.filter(|item| item.2 > 0));
        Ok(Trade {
            problem,
            tick,
            excess: there.live.saturating_sub(budget),
            before: starts.beyond(StepPlace::Op(tick))?,
            after: lasts.beyond(StepPlace::Op(tick))?.max(nanos(tick as usize + 1..problem.ops.len())),
            out: copies(items.iter().map(|item| (item.0, item.2)), |a, b| a < b, starts)?,
            back: copies(items.iter().map(|item| (item.1, item.2)), |a, b| a > b, lasts)?,
            tensors,
            sources,
        })
    }

    /// The least makespan over all cases.
    pub(super) fn least(&self, intervals: &[Interval]) -> Result<u128, NotProven> {
        let ascending = intervals.windows(2).all(|pair| pair[0].recomputed < pair[1].recomputed);
        let covers = intervals[0].recomputed == 0 && intervals.iter().all(|i| i.recomputed <= self.excess);
        if !ascending || !covers {
            return Err(NotProven::Intervals(self.tick));
        }
        let op = &self.problem.ops[self.tick as usize];
        let rest: u128 =
            self.problem.ops[self.tick as usize + 1..].iter().map(|op| u128::from(op.nanos)).sum();
        let mut free: BTreeMap<u64, u128> = BTreeMap::new();
        let untils = intervals[1..].iter().map(|interval| interval.recomputed).chain([self.excess + 1]);
        let cases = intervals.iter().zip(untils).map(|(&Interval { recomputed, price }, until)| {
            let free = *free.entry(price).or_insert_with(|| self.free(price));
            let again = (u128::from(price) * u128::from(recomputed)).saturating_sub(free).div_ceil(1 << 32);
            let swapped = self.excess - (until - 1);
            let before = self.before.max(self.moved(&self.out, Way::Out, swapped));
            let after = self.after.max(self.moved(&self.back, Way::In, swapped)).max(rest + again);
            before + u128::from(op.nanos) + after
        });
        Ok(cases.min().unwrap_or(0))
    }

    /// The earliest time at which this number of bytes has been copied.
    fn moved(&self, copies: &[(u128, u64)], way: Way, bytes: u64) -> u128 {
        let largest = self.problem.tensors.values().map(|t| t.bytes).max().unwrap_or(1);
        let after = copies.iter().filter(|(_, skip)| *skip < bytes).map(|&(from, skip)| {
            from + copy_nanos(self.problem, way, bytes - skip, (bytes - skip).div_ceil(largest))
        });
        after.max().unwrap_or(0)
    }

    /// The total by which the value of recomputation exceeds its cost, at a price per 2^32 bytes, over all operators.
    fn free(&self, price: u64) -> u128 {
        let price = u128::from(price);
        let bytes = |t: TensorId| u128::from(self.problem.tensors[t].bytes);
        let mut costs: Vec<u128> = Vec::new();
        for op in &self.problem.ops[..self.tick as usize] {
            let dead = |t: &TensorId| self.tensors.dead(self.problem, *t, self.tick);
            let shares = op.reads_again().filter(dead).map(|input| {
                let kept = price * bytes(input);
                let again = match self.tensors.producer[input] {
                    Some((producer, true)) => {
                        let outputs = &self.problem.ops[producer as usize].produces;
                        let live = self.tensors.maker_comes_again(self.problem, input, self.tick);
                        let asked_for = |t: &&TensorId| dead(t) && self.tensors.readers[**t] > 0;
                        let shared = outputs.iter().filter(asked_for).count().max(1);
                        if live { 0 } else { costs[producer as usize] / shared as u128 }
                    }
                    _ => u128::MAX,
                };
                kept.min(again) / u128::from(self.tensors.readers[input].max(1))
            });
            let cost = shares.fold(u128::from(op.nanos) << 32, u128::saturating_add);
            costs.push(if op.recomputable { cost } else { 0 });
        }
        let gains = self
            .sources
            .iter()
            .map(|source| (price * u128::from(source.bytes)).saturating_sub(costs[source.tick as usize]));
        gains.fold(0, u128::saturating_add)
    }
}

/// By place that binds copies, the time when these may start, and the bytes that are not bound by it or later ones.
///
/// `before` tells whether copies bound by one place can precede those bound by the other.
fn copies(
    items: impl Iterator<Item = (Option<StepPlace>, u64)> + Clone,
    before: fn(StepPlace, StepPlace) -> bool,
    reach: &mut Reach,
) -> Result<Vec<(u128, u64)>, NotProven> {
    let mut copies = Vec::new();
    let mut places: Vec<StepPlace> = items.clone().filter_map(|(place, _)| place).collect();
    places.sort_unstable();
    places.dedup();
    for place in places {
        let skipped = items.clone().filter(|(other, _)| other.is_none_or(|other| before(other, place)));
        copies.push((reach.until(place)?, skipped.map(|(_, bytes)| bytes).sum()));
    }
    Ok(copies)
}
