//! Neighbourhood of the search: moves from one choice to another.

use lmsc_ir::rng::{Rng, Source};
use lmsc_schedule::tuned::Tunable;

use super::Search;
use super::candidates::{Choice, Fate};
use crate::ours::mechanisms::ALIKE;

/// Maximum number of tensors exchanged for one.
const MOST_EXCHANGED: Tunable<usize> = Tunable::new(8);

impl Search<'_> {
    /// Applies a random move to the choice.
    pub(super) fn change(&self, choice: &mut Choice, travels: &[bool], rng: &mut Rng) {
        let n = choice.len();
        let flip = |fate: &mut Fate| *fate = if *fate == Fate::Kept { Fate::Dropped } else { Fate::Kept };
        let one_of = |rng: &mut Rng| if rng.chance(50) { Fate::Dropped } else { Fate::Kept };
        match rng.below(11) {
            // Neighbours in the order of cost.
            0 => {
                let at = rng.below(n);
                let end = (at + 1 + rng.below(4)).min(n);
                self.by_cost[at..end].iter().for_each(|&i| flip(&mut choice[i as usize]));
            }
            // A range of the network.
            1 => {
                let (at, fate) = (rng.below(n), one_of(rng));
                let end = (at + length(n, rng)).min(n);
                choice[at..end].fill(fate);
            }
            // Results of consecutive operators of one kind, or of every second, third, … one.
            2 => {
                let (at, fate) = (rng.below(n), one_of(rng));
                let (kind, bytes) = (self.candidates[at].kind, self.candidates[at].bytes);
                let stride = if rng.chance(50) { 1 } else { 1 + rng.below(6) };
                let alike = |&i: &usize| (self.candidates[i].kind, self.candidates[i].bytes) == (kind, bytes);
                let same = (at..n).filter(alike).step_by(stride);
                same.take(length(n, rng)).for_each(|i| choice[i] = fate);
            }
            3 => {
                let at = rng.below(n);
                let end = (at + 1 + rng.below(3)).min(n);
                choice[at..end].iter_mut().for_each(flip);
            }
            4 => {
                let (at, again) = (rng.below(n), rng.chance(50));
                let dropped = (at..n).filter(|&i| choice[i] != Fate::Kept).take(1 + rng.below(4));
                let dropped: Vec<usize> = dropped.collect();
                let fate = if again { Fate::DroppedAgain } else { Fate::Dropped };
                dropped.into_iter().for_each(|i| choice[i] = fate);
            }
            5 => drop(self.add(choice, travels, rng)),
            6 => drop(self.take_away(choice, rng)),
            7 => {
                let mut bytes = self.take_away(choice, rng);
                for _ in 0..MOST_EXCHANGED.get() {
                    bytes = bytes.saturating_sub(self.add(choice, travels, rng));
                    if bytes == 0 {
                        break;
                    }
                }
            }
            8 => self.like_another(choice, rng, |choice, to, from| choice[to] = choice[from]),
            9 => self.like_another(choice, rng, |choice, to, from| choice.swap(to, from)),
            _ => {
                let mut bytes = self.add(choice, travels, rng);
                for _ in 0..MOST_EXCHANGED.get() {
                    bytes = bytes.saturating_sub(self.take_away(choice, rng));
                    if bytes == 0 {
                        break;
                    }
                }
            }
        }
    }

    /// Gives one of these fates to a few dropped candidates in a row, or to any one candidate.
    pub(super) fn place(&self, choice: &mut Choice, fates: &[Fate], rng: &mut Rng) {
        let (n, fate) = (choice.len(), fates[rng.below(fates.len())]);
        let (at, any) = (rng.below(n), rng.chance(30));
        let few =
            (at..n).filter(|&i| any || choice[i] != Fate::Kept).take(if any { 1 } else { 1 + rng.below(4) });
        let few: Vec<usize> = few.collect();
        few.into_iter().for_each(|i| choice[i] = fate);
    }

    /// Applies `does` to each candidate of a range of the network and its counterpart in another range of the same structure.
    fn like_another(&self, choice: &mut Choice, rng: &mut Rng, does: impl Fn(&mut Choice, usize, usize)) {
        let n = choice.len();
        let (at, length) = (rng.below(n), length(n, rng));
        let class = |i: usize| self.candidates.get(i).map(|c| c.class);
        let others: Vec<usize> = (0..n).filter(|&i| i != at && class(i) == class(at)).collect();
        if others.is_empty() || !ALIKE.is_on() {
            return;
        }
        let from = others[rng.below(others.len())];
        let alike = (0..length).take_while(|i| class(at + i).is_some() && class(at + i) == class(from + i));
        alike.for_each(|i| does(choice, at + i, from + i));
    }

    /// Drops one of a few candidates, the cheapest per byte, often one that is swapped now; returns its bytes.
    fn add(&self, choice: &mut Choice, travels: &[bool], rng: &mut Rng) -> u64 {
        let any = rng.chance(50);
        let few = pick(choice.len(), rng, |i| choice[i] == Fate::Kept && (any || travels[i]));
        let Some(one) = few.into_iter().min_by_key(|&i| self.rank[i]) else { return 0 };
        choice[one] = Fate::Dropped;
        self.candidates[one].bytes
    }

    /// Keeps one of a few dropped candidates, the most expensive per byte; returns its bytes.
    fn take_away(&self, choice: &mut Choice, rng: &mut Rng) -> u64 {
        let few = pick(choice.len(), rng, |i| choice[i] != Fate::Kept);
        let Some(one) = few.into_iter().max_by_key(|&i| self.rank[i]) else { return 0 };
        choice[one] = Fate::Kept;
        self.candidates[one].bytes
    }
}

/// A random length up to `most`, with each power of two below it equally likely.
fn length(most: usize, rng: &mut Rng) -> usize {
    let power = 1 << rng.below(most.max(2).ilog2() as usize);
    power + rng.below(power)
}

/// Two to four indices for which the condition holds, or fewer.
fn pick(n: usize, rng: &mut Rng, fits: impl Fn(usize) -> bool) -> Vec<usize> {
    let tries = 2 + rng.below(3);
    let one = |from: usize| (from..n).chain(0..from).find(|&i| fits(i));
    (0..tries).filter_map(|_| one(rng.below(n))).collect()
}
