//! The bound for plans that swap and recompute.
//!
//! Let an operator run at moment `i` for the first time, and let `E` of the bytes that are live then exceed the budget. Some
//! tensors that are live and not used by `i` are absent when it starts, some when it ends. Of them, let `x` be the bytes that
//! are recomputed after `i`, as counted below. The other `S = E - x` have been copied out before `i` starts, and are copied
//! in after it ends:
//!
//! - `i` starts after `max(operators before, out(S))`, and the part of the step after it takes `max(in(S), operators after +
//!   g(x))`,
//! - where `out` and `in` are the times of [`mod@super::swap`]'s links, of all bytes but the `x + slack` best for them,
//! - and `g(x)` is the least time of operators that are recomputed for `x` bytes.
//!
//! Recomputation costs the time of the operator, and its inputs must exist. If an input is dead at `i`, it was either kept on
//! the device all the same (so that more bytes than `E` are absent), or on the host (so that more bytes than `S` are copied),
//! or it is recomputed itself. Let `Q` be the operators that are recomputed after `i`, and `β` the bytes that were kept for
//! them instead:
//!
//! - for an input `s` of `q` that was kept, `bytes(s) / readers`, over all operators in `Q` that may need it,
//! - for an input that `p` recomputes, at most that, and at most `p`'s own `β / outputs`,
//! - for `q` itself the sum, and at most the bytes of its outputs that are absent at `i`.
//!
//! With these shares, no byte is counted twice. The bytes absent at `i` of outputs of `Q` less all `β` are `x`: bytes that
//! were kept on the device add to `E` as much as they take from `x`, bytes that were kept on the host add to `S`. For a price
//! `λ` of a byte, `q` and the operators that it depends on cost at least
//!
//! `V(q) = time(q) + Σ min(λ·bytes(s), V(producer of s) / outputs) / readers`,
//!
//! of which all but `λ·β(q)` is time. An operator with outputs that are absent at `i` is charged for those, and nothing to
//! other operators that read its dead outputs. By weak duality, for every choice of recomputed operators,
//!
//! `g(x) ≥ λ·x - Σ max(0, λ·bytes(q) - V(q))`, over operators `q` whose outputs, `bytes(q)` of them, are absent at `i`.
//!
//! Bytes that were kept on the host may have been copied out as soon as they existed, and copied in as late as the last use
//! of any output of `q`. So up to `β` bytes of `q`'s outputs count for `out` from the first operator that `q` depends on, and
//! for `in` until the last use of its outputs.
//!
//! Any `S` from 0 to `E` is possible, so the bound is a minimum: `out` and `in` grow with `S`, `g` with `x`. The certificate
//! cuts the range into intervals, each with the price that proves `g` for it.
//!
//! The times of links are based on a [`Table`] in which all recomputable tensors may be absent at no cost.

use std::cmp::Reverse;

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Problem, TensorId, Uses};
use lmsc_schedule::tuned::{self, Tunable};

use super::line::{Line, Rate};
use super::swap::Table;
use super::{Certificate, Interval, Proof, StepPlace};

/// Number of operators evaluated coarsely; the best sixteenth of them is evaluated finely, each in four times as many cases.
const SAMPLED_OPERATORS: Tunable<usize> = Tunable::new(128);

/// A coarse evaluation has one price and one case for this many of a fine one.
const COARSENESS: Tunable<usize> = Tunable::new(8);

/// Number of cases in a fine evaluation, and maximum number of intervals in a certificate.
fn cases() -> usize {
    4 * SAMPLED_OPERATORS.get()
}

/// Number of prices of a byte in a fine evaluation.
const FINE_PRICES: Tunable<usize> = Tunable::new(200);

/// A bound on the makespan of every plan that swaps, whole tensors or ranges of bytes, and recomputes.
///
/// Evaluates at most a fixed number of operators, each in time proportional to the problem.
pub(super) fn joint(problem: &Problem, budget: u64) -> Certificate {
    let search = Search::new(problem, budget);
    let last = search.base.len() - 1;
    let alone = Certificate {
        nanos: search.before.start[last as usize],
        proof: Proof::Joint {
            at: StepPlace::End,
            before: search.before.facts(&search.base, [last]),
            after: Vec::new(),
            intervals: Vec::new(),
        },
    };
    let Some(trade) = search.best() else { return alone };
    let (nanos, intervals) = trade.cut();
    if nanos <= alone.nanos {
        return alone;
    }
    let at = [trade.moment];
    let before = at.into_iter().chain(trade.out.moments());
    let after = at.into_iter().chain(trade.back.moments()).map(|moment| last - moment);
    Certificate {
        nanos,
        proof: Proof::Joint {
            at: search.base.place(trade.moment),
            before: search.before.facts(&search.base, before),
            after: search.after.facts(&search.seen, after),
            intervals,
        },
    }
}

struct Search<'a> {
    problem: &'a Problem,
    budget: u64,
    uses: Uses,
    live: Vec<u64>,
    /// The tensors that can be absent if nothing is recomputed.
    line: Line,
    /// The facts about all plans, seen from the start and from the end.
    base: Line,
    seen: Line,
    before: Table,
    after: Table,
    facts: Facts,
}

/// Facts about the operators that hold at every moment.
struct Facts {
    producer: SecondaryMap<TensorId, Option<u32>>,
    /// For each tensor, the first tick at which it is changed in place.
    changed: SecondaryMap<TensorId, Option<u32>>,
}

impl Facts {
    fn of(problem: &Problem) -> Facts {
        let mut facts = Facts { producer: SecondaryMap::new(), changed: SecondaryMap::new() };
        for (tick, op) in problem.ops.iter().enumerate() {
            op.produces.iter().for_each(|&t| facts.producer[t] = Some(tick as u32));
            for &tensor in &op.changes {
                facts.changed[tensor].get_or_insert(tick as u32);
            }
        }
        facts
    }
}

/// An operator before some moment that could be recomputed after it, for its outputs or for another operator.
struct Again {
    tick: u32,
    nanos: u64,
    /// Bytes of its outputs that can be absent at the moment.
    bytes: u64,
    /// The moment of the last of their next uses.
    due: u32,
    /// Its inputs that must be kept or recomputed only for it.
    needs: Vec<Need>,
    /// The first moment after which a dead tensor that it depends on could be copied out.
    rests_on: Option<u32>,
}

/// An input that is dead at some moment, and whose producer has no outputs that can be absent then.
struct Need {
    bytes: u64,
    /// The index of the operator that can recompute it, and the number of that operator's outputs that share its cost.
    producer: Option<(usize, u32)>,
    /// Number of operators that share its cost.
    readers: u32,
}

/// A price is in nanoseconds for `2^PER` bytes.
const PER: u32 = 32;

impl<'a> Search<'a> {
    fn new(problem: &'a Problem, budget: u64) -> Search<'a> {
        let base = Line::recomputing(problem, budget);
        let seen = base.mirrored();
        Search {
            problem,
            budget,
            uses: problem.uses(),
            live: problem.live_bytes(),
            line: Line::of(problem, budget),
            before: Table::of(&base, |_, _| None),
            after: Table::of(&seen, |_, _| None),
            facts: Facts::of(problem),
            base,
            seen,
        }
    }

    /// The trade at the operator that gives the best bound, as far as samples tell.
    fn best(&self) -> Option<Trade> {
        let mut ticks: Vec<u32> =
            (0..self.problem.ticks()).filter(|&t| self.live[t as usize] > self.budget).collect();
        ticks.sort_by_key(|&t| (Reverse(self.live[t as usize]), t));
        // Mostly those with the most live bytes.
        let count = ticks.len();
        let mut chosen: Vec<u32> = (0..SAMPLED_OPERATORS.get())
            .map(|i| i * i * count / (SAMPLED_OPERATORS.get() * SAMPLED_OPERATORS.get()))
            .filter_map(|i| ticks.get(i).copied())
            .collect();
        chosen.dedup();
        let (prices, coarse) = (FINE_PRICES.get() / COARSENESS.get(), cases() / COARSENESS.get());
        chosen.sort_by_cached_key(|&tick| (Reverse(self.trade(tick, prices).sampled(coarse)), tick));
        chosen.truncate(SAMPLED_OPERATORS.get() / 16);
        let trades = chosen.into_iter().map(|tick| self.trade(tick, FINE_PRICES.get()));
        trades.max_by_key(|trade| (trade.sampled(cases()), Reverse(trade.moment)))
    }

    /// Whether the tensor is neither live at the tick nor used by its operator, though it existed before.
    fn dead(&self, tensor: TensorId, tick: u32) -> bool {
        !self.problem.tensors[tensor].kept && self.uses.of(tensor).last().is_some_and(|&last| last < tick)
    }

    fn trade(&self, tick: u32, prices: usize) -> Trade {
        let moment = tick + 2;
        let again = self.again(tick);
        let last = self.base.len() - 1;
        let largest = self.problem.tensors.values().map(|t| t.bytes).max().unwrap_or(1);
        let mut out = Queue::new(self.base.rates[0], largest);
        let mut back = Queue::new(self.base.rates[1], largest);
        let mut counted: SecondaryMap<TensorId, u64> = SecondaryMap::new();
        for source in &again {
            let Some(rests_on) = source.rests_on.filter(|_| source.bytes > 0) else { continue };
            let shares = source.needs.iter().map(|need| need.bytes.div_ceil(u64::from(need.readers)));
            let mut left = shares.sum::<u64>().min(source.bytes);
            out.push(Some(rests_on.min(source.tick + 2)), left);
            back.push(Some(last - source.due), left);
            let leaves = |&&t: &&TensorId| self.problem.tensors[t].swappable && self.again_after(t, tick);
            for &tensor in self.problem.ops[source.tick as usize].produces.iter().filter(leaves) {
                counted[tensor] = left.min(self.problem.tensors[tensor].bytes);
                left -= counted[tensor];
            }
        }
        for span in self.line.spans.iter().filter(|span| span.moments.contains(&moment)) {
            let bytes = span.bytes - counted[span.tensor];
            out.push(span.release, bytes);
            back.push(span.due.map(|due| last - due), bytes);
        }
        out.close(|m| self.before.end(&self.base, m));
        back.close(|m| self.after.end(&self.seen, m));
        back.entries.iter_mut().for_each(|entry| entry.moment = last - entry.moment);
        let rest = self.problem.ops[tick as usize + 1..].iter().map(|op| op.nanos).sum();
        Trade {
            moment,
            excess: self.live[tick as usize].saturating_sub(self.budget),
            front: self.before.start[moment as usize],
            nanos: self.problem.ops[tick as usize].nanos,
            tail: self.after.start[(last - moment) as usize],
            rest,
            out,
            back,
            prices: self.prices(tick, &again, prices),
        }
    }

    /// Whether the tensor can be absent at the tick and be recomputed after it.
    fn again_after(&self, tensor: TensorId, tick: u32) -> bool {
        let uses = self.uses.of(tensor);
        let producer = self.facts.producer[tensor];
        let there = producer.is_some_and(|p| p < tick && self.problem.ops[p as usize].recomputable);
        let later = self.problem.tensors[tensor].kept || uses.last().is_some_and(|&last| last > tick);
        let changed = self.facts.changed[tensor].is_some_and(|changed| changed < tick);
        there && later && !changed && uses.binary_search(&tick).is_err()
    }

    /// The operators that could be recomputed after the tick, in their order.
    fn again(&self, tick: u32) -> Vec<Again> {
        let before = &self.problem.ops[..tick as usize];
        let mut readers: SecondaryMap<TensorId, u32> = SecondaryMap::new();
        let mut wanted = vec![false; before.len()];
        for (op, wanted) in before.iter().zip(&mut wanted).rev() {
            let asked_for = |&t: &TensorId| readers[t] > 0 || self.again_after(t, tick);
            if op.recomputable && op.produces.iter().any(asked_for) {
                *wanted = true;
                op.reads_again().filter(|&t| self.dead(t, tick)).for_each(|t| readers[t] += 1);
            }
        }
        let mut index = vec![None; before.len()];
        let mut all: Vec<Again> = Vec::new();
        for ((op, at), _) in before.iter().zip(0..).zip(&wanted).filter(|(_, wanted)| **wanted) {
            let mut again =
                Again { tick: at, nanos: op.nanos, bytes: 0, due: 0, needs: Vec::new(), rests_on: None };
            for input in op.reads_again().filter(|&t| self.dead(t, tick)) {
                let producer = self.facts.producer[input];
                let maker = producer.and_then(|p| index[p as usize]);
                if maker.is_some_and(|maker: usize| all[maker].bytes > 0) {
                    continue;
                }
                let below = maker.and_then(|maker| all[maker].rests_on);
                let first = producer.map_or(1, |p| p + 2).min(below.unwrap_or(u32::MAX));
                again.rests_on = Some(again.rests_on.map_or(first, |other| other.min(first)));
                let shared = |maker: usize| {
                    let outputs = &before[all[maker].tick as usize].produces;
                    (maker, outputs.iter().filter(|&&t| readers[t] > 0).count() as u32)
                };
                again.needs.push(Need {
                    bytes: self.problem.tensors[input].bytes,
                    producer: maker.map(shared),
                    readers: readers[input],
                });
            }
            for &output in op.produces.iter().filter(|&&t| self.again_after(t, tick)) {
                again.bytes += self.problem.tensors[output].bytes;
                let next = self.uses.of(output).iter().find(|&&t| t > tick);
                again.due = again.due.max(next.map_or(self.problem.ticks(), |&next| next) + 2);
            }
            index[at as usize] = Some(all.len());
            all.push(again);
        }
        all
    }

    /// At most `count` prices, the most informative ones.
    fn prices(&self, tick: u32, again: &[Again], count: usize) -> Vec<Price> {
        tuned::work(again.len() * count);
        let most = costs(again, u64::MAX);
        let mut ratios: Vec<(u64, u64)> = Vec::with_capacity(again.len());
        let mut least = u64::MAX;
        for (source, most) in again.iter().zip(most).filter(|(source, _)| source.bytes > 0) {
            let ratio =
                |nanos: u128| u64::try_from(nanos.div_ceil(u128::from(source.bytes))).unwrap_or(u64::MAX);
            least = least.min(ratio(u128::from(source.nanos) << PER));
            ratios.push((ratio(most), source.bytes));
        }
        ratios.sort_unstable();
        let mut sum = 0;
        let excess = self.live[tick as usize].saturating_sub(self.budget);
        let enough = ratios.iter().find(|&&(_, bytes)| {
            sum += bytes;
            sum > excess
        });
        let most = enough.map_or(u64::MAX, |&(ratio, _)| ratio);
        let mut prices = vec![Price::of(least.max(1).min(most), again), Price::of(most, again)];
        // The part that a price does not pay for is convex in it: between two prices, the middle one gains as much
        // information as it is below the line through the two. `gaps` holds that difference, the middle, and the index of the
        // lower price.
        let mut gaps: Vec<(u128, Price, usize)> = Vec::new();
        let gap = |prices: &[Price], at: usize| {
            let [low, high] = [&prices[at], &prices[at + 1]];
            let middle = (u128::from(low.per) * u128::from(high.per)).isqrt() as u64;
            (low.per < middle && middle < high.per).then(|| {
                let middle = Price::of(middle, again);
                let part = (middle.per - low.per) as f64 / (high.per - low.per) as f64;
                let line = low.free as f64 + part * (high.free as f64 - low.free as f64);
                ((line - middle.free as f64).max(0.0) as u128, middle, at)
            })
        };
        gaps.extend(gap(&prices, 0));
        while prices.len() < count {
            let widest = (0..gaps.len()).max_by_key(|&i| gaps[i].0).filter(|&i| gaps[i].0 > 0);
            let Some(widest) = widest else { break };
            let (_, middle, at) = gaps.swap_remove(widest);
            gaps.iter_mut().filter(|gap| gap.2 > at).for_each(|gap| gap.2 += 1);
            prices.insert(at + 1, middle);
            gaps.extend(gap(&prices, at));
            gaps.extend(gap(&prices, at + 1));
        }
        prices
    }
}

/// By operator that can be recomputed, the cost of that at a price of bytes, in units of `2^-PER` nanoseconds.
fn costs(again: &[Again], per: u64) -> Vec<u128> {
    let mut costs: Vec<u128> = Vec::with_capacity(again.len());
    for op in again {
        let shares = op.needs.iter().map(|need| {
            let kept = u128::from(per) * u128::from(need.bytes);
            let made =
                need.producer.map_or(u128::MAX, |(producer, outputs)| costs[producer] / u128::from(outputs));
            kept.min(made) / u128::from(need.readers)
        });
        costs.push(shares.fold(u128::from(op.nanos) << PER, u128::saturating_add));
    }
    costs
}

/// The lower bound on recomputation that follows from a price of bytes.
struct Price {
    /// Nanoseconds for `2^PER` bytes.
    per: u64,
    /// The part that the price does not pay for, in units of `2^-PER` nanoseconds.
    free: u128,
}

impl Price {
    fn of(per: u64, again: &[Again]) -> Price {
        let gain = |(source, cost): (&Again, u128)| {
            (u128::from(per) * u128::from(source.bytes)).saturating_sub(cost)
        };
        let gains = again.iter().zip(costs(again, per)).map(gain);
        Price { per, free: gains.fold(0, u128::saturating_add) }
    }

    /// Lower bound on the time of recomputing this number of bytes.
    fn nanos(&self, bytes: u64) -> u64 {
        let nanos = (u128::from(self.per) * u128::from(bytes)).saturating_sub(self.free);
        u64::try_from(nanos.div_ceil(1 << PER)).unwrap_or(u64::MAX)
    }
}

/// Copies in one direction of the bytes that are absent at some moment.
struct Queue {
    rate: Rate,
    largest: u64,
    /// Bytes that need no copy.
    free: u64,
    entries: Vec<Entry>,
}

/// Of all bytes that are absent, all but `skip` are copied after the time `from`.
struct Entry {
    moment: u32,
    skip: u64,
    from: u64,
}

impl Queue {
    fn new(rate: Rate, largest: u64) -> Queue {
        Queue { rate, largest, free: 0, entries: Vec::new() }
    }

    /// Adds bytes that are copied after the moment, or need no copy.
    fn push(&mut self, moment: Option<u32>, bytes: u64) {
        match moment {
            Some(moment) => self.entries.push(Entry { moment, skip: bytes, from: 0 }),
            None => self.free += bytes,
        }
    }

    /// Keeps the moments that matter, given the earliest end of each.
    fn close(&mut self, end: impl Fn(u32) -> u64) {
        self.entries.sort_unstable_by_key(|entry| (entry.moment, entry.skip));
        let mut skip = self.free;
        let mut best: Option<f64> = None;
        let mut kept: Vec<Entry> = Vec::new();
        for entry in std::mem::take(&mut self.entries) {
            let from = end(entry.moment);
            let key = from as f64 - self.rate.about(skip as f64, f64::INFINITY);
            if best.is_none_or(|best| key > best) {
                best = Some(key);
                kept.push(Entry { moment: entry.moment, skip, from });
            }
            skip += entry.skip;
        }
        self.entries = kept;
    }

    /// The earliest time at which this number of bytes has been copied.
    fn nanos(&self, bytes: u64) -> u64 {
        let reached = self.entries.partition_point(|entry| entry.skip < bytes);
        reached.checked_sub(1).map_or(0, |last| {
            let Entry { skip, from, .. } = self.entries[last];
            from.saturating_add(self.rate.nanos(bytes - skip, self.largest))
        })
    }

    fn moments(&self) -> impl Iterator<Item = u32> + '_ {
        self.entries.iter().map(|entry| entry.moment)
    }
}

/// The bytes that can be swapped or recomputed at a moment, and the times of both.
struct Trade {
    moment: u32,
    /// The bytes over the budget.
    excess: u64,
    /// The earliest start of the moment, and its duration.
    front: u64,
    nanos: u64,
    /// Lower bound on the time from its end to the end of the step, and the time of the operators after it.
    tail: u64,
    rest: u64,
    out: Queue,
    back: Queue,
    prices: Vec<Price>,
}

impl Trade {
    /// Lower bound on the makespan of a step in which at least `from` and fewer than `until` bytes are recomputed.
    fn nanos(&self, from: u64, until: u64) -> u64 {
        let swapped = self.excess - (until - 1);
        let again = self.price(from).nanos(from);
        let after = self.tail.max(self.back.nanos(swapped)).max(self.rest.saturating_add(again));
        self.front.max(self.out.nanos(swapped)).saturating_add(self.nanos).saturating_add(after)
    }

    /// The price that gives the best bound for this number of bytes.
    fn price(&self, bytes: u64) -> &Price {
        self.prices.iter().rev().max_by_key(|price| price.nanos(bytes)).unwrap_or(&self.prices[0])
    }

    /// The least makespan over `count` sampled cases: no bound, but slightly above the best one.
    fn sampled(&self, count: usize) -> u64 {
        tuned::work(count);
        let count = count as u64;
        let sample = |i: u64| (u128::from(self.excess) * u128::from(i) / u128::from(count)) as u64;
        (0..=count).map(|i| self.nanos(sample(i), sample(i) + 1)).min().unwrap_or(0)
    }

    /// About the largest bound that the allowed number of intervals can prove, and these intervals.
    fn cut(&self) -> (u64, Vec<Interval>) {
        let mut most = self.sampled(cases()) + 1;
        let mut least = self.nanos(0, self.excess + 1);
        let mut best = self.intervals(least, cases()).unwrap_or_default();
        while least + 1 < most {
            let middle = least.midpoint(most);
            match self.intervals(middle, cases()) {
                Some(intervals) => (least, best) = (middle, intervals),
                None => most = middle,
            }
        }
        (least, best)
    }

    /// At most `most` intervals, each of which takes at least `nanos`.
    fn intervals(&self, nanos: u64, most: usize) -> Option<Vec<Interval>> {
        let mut intervals = Vec::new();
        let mut from = 0;
        while from <= self.excess {
            if intervals.len() == most || self.nanos(from, from + 1) < nanos {
                return None;
            }
            let (mut fits, mut fails) = (from + 1, self.excess + 2);
            while fails - fits > 1 {
                let middle = fits.midpoint(fails);
                if self.nanos(from, middle) < nanos { fails = middle } else { fits = middle }
            }
            intervals.push(Interval { recomputed: from, price: self.price(from).per });
            from = fits;
        }
        Some(intervals)
    }
}
