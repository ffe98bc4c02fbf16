//! Choices from which the search starts.

use lmsc_schedule::problem::TensorId;
use lmsc_schedule::tuned::Tunable;

use super::Search;
use super::candidates::{Candidate, Choice, Fate};
use crate::ours::mechanisms::{CUTS, PRICES};
use crate::ours::remat::{Dropped, ReuseReach};

/// Numbers of segments into which the forward phase is cut for initial choices.
const SEGMENTS: Tunable<[u64; 8]> = Tunable::new([2, 4, 7, 11, 16, 24, 36, 64]);

impl Search<'_> {
    /// Constructed choices, each once: the cheapest per byte, the best at a price, and both without the tensors that cross
    /// certain cuts.
    pub(super) fn starts(&self) -> Vec<Choice> {
        let n = self.candidates.len();
        let mut uncut: Vec<Choice> = Vec::new();
        for step in 0..=24 {
            let mut choice = self.nothing();
            self.by_cost[..n * step / 24].iter().for_each(|&i| choice[i as usize] = Fate::Dropped);
            uncut.push(choice);
        }
        let ratio = |c: &Candidate| ((u128::from(c.nanos) << 20) / u128::from(c.bytes)) as u64;
        let least = self.candidates.iter().map(ratio).min().unwrap_or(0).max(1);
        let most = self.candidates.iter().map(ratio).max().unwrap_or(0);
        let mut price = least;
        while PRICES.is_on() && price < most {
            uncut.push(self.at_price(price));
            price += (price / 4).max(1);
        }
        for choice in &mut uncut {
            let late = |c: &Candidate| c.dropped.is_some_and(|d| d.window.from > self.turn);
            choice
                .iter_mut()
                .zip(&self.candidates)
                .filter(|(_, c)| late(c))
                .for_each(|(f, _)| *f = Fate::Kept);
        }
        uncut.sort_unstable();
        uncut.dedup();
        let mut starts = uncut.clone();
        for segments in SEGMENTS.get().into_iter().filter(|_| CUTS.is_on()) {
            let cuts = self.cuts(segments);
            for choice in &uncut {
                let mut choice = choice.clone();
                for (fate, candidate) in choice.iter_mut().zip(&self.candidates) {
                    let crosses =
                        |d: Dropped| cuts.iter().any(|&cut| candidate.producer < cut && cut < d.window.from);
                    if candidate.dropped.is_some_and(crosses) {
                        *fate = Fate::Kept;
                    }
                }
                starts.push(choice);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Ticks that cut the forward phase into `segments` segments of about the same bytes, where few tensors cross.
    fn cuts(&self, segments: u64) -> Vec<u32> {
        let ticks = self.problem.ticks() as usize;
        let mut crossing = vec![0i64; ticks + 1];
        let mut produced = vec![0u64; ticks + 1];
        for c in &self.candidates {
            produced[c.producer as usize] += c.bytes;
            if let Some(dropped) = c.dropped {
                crossing[c.producer as usize + 1] += c.bytes as i64;
                crossing[dropped.window.from as usize] -= c.bytes as i64;
            }
        }
        for tick in 0..ticks {
            produced[tick + 1] += produced[tick];
            crossing[tick + 1] += crossing[tick];
        }
        let last = self.candidates.last().map_or(0, |c| c.producer as usize);
        let at =
            |share: u128| produced.partition_point(|&p| u128::from(p) * (2 * u128::from(segments)) < share);
        let cuts = (1..u128::from(segments)).filter_map(|k| {
            let total = u128::from(produced[ticks]);
            let (low, high) = (at(total * (2 * k - 1)), at(total * (2 * k + 1)).min(last));
            (low..high).min_by_key(|&tick| crossing[tick]).map(|tick| tick as u32)
        });
        cuts.collect()
    }

    /// The choice without recomputation that is not forced, in which no tensor is kept for recomputation.
    fn nothing(&self) -> Choice {
        let fate = |c: &Candidate| if c.dropped.is_some() { Fate::Kept } else { Fate::Dropped };
        self.choice(fate)
    }

    /// The choice of each candidate's fate.
    pub(super) fn choice(&self, fate: impl FnMut(&Candidate) -> Fate) -> Choice {
        Choice::new(self.candidates.iter().map(fate).collect(), ReuseReach::Short)
    }

    /// The best choice at a price of bytes, in nanoseconds per 2^20 bytes, as far as a single price allows.
    fn at_price(&self, price: u64) -> Choice {
        let turn = self.turn as usize;
        let worth = |bytes: u64| ((u128::from(bytes) * u128::from(price)) >> 20) as u64;
        let mut again: Vec<u64> = Vec::with_capacity(turn);
        let making = |again: &[u64], tensor: TensorId| {
            let maker = self.remat.producer(tensor).filter(|_| self.remat.can_repeat(tensor, turn as u32));
            maker.and_then(|tick| again.get(tick as usize).copied()).unwrap_or(u64::MAX)
        };
        for op in &self.problem.ops[..turn] {
            let over = |t: &TensorId| self.remat.last_use(*t) < turn as u32 && !self.problem.tensors[*t].kept;
            let needs = op.reads_again().filter(over);
            let nanos = needs.map(|t| worth(self.problem.tensors[t].bytes).min(making(&again, t)));
            again.push(nanos.fold(op.nanos, u64::saturating_add));
        }
        let fate = |c: &Candidate| {
            if making(&again, c.tensor) <= worth(c.bytes) { Fate::Dropped } else { Fate::Kept }
        };
        self.choice(fate)
    }
}
