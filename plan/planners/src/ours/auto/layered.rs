//! Choices that decide for whole layers at once.
//!
//! A pattern says which layers are recomputed in the backward phase, between which of them the crossing tensors are kept, how
//! long a recomputed tensor serves, and for each place in a layer, from which copy on its tensor is kept nonetheless. A few dozen
//! evaluations find good ones of a step of any size, where a search over single tensors would need thousands.

use std::collections::{BTreeMap, BTreeSet};

use lmsc_schedule::problem::Uses;
use lmsc_schedule::tuned::Tunable;

use super::candidates::{Choice, Fate};
use super::repeats::{Forward, Layer, last_before};
use super::{Found, Search};
use crate::ours::mechanisms::KEPT_PLACES;
use crate::ours::remat::{ReuseReach, Rewritten};
use crate::ours::swap_only;
use crate::ours::swap_set::Manner;

/// Numbers of layers between kept boundaries that are tried.
const STRIDES: Tunable<[usize; 8]> = Tunable::new([1, 2, 3, 4, 6, 8, 12, 16]);

/// Reaches that are tried after one of all layers between boundaries, in eighths of a layer of the backward phase.
const REACHES: Tunable<[u32; 7]> = Tunable::new([8, 6, 5, 4, 3, 2, 1]);

/// The shortest reach, in operators.
const SHORTEST_REACH: u32 = 8;

/// Limits of a search over patterns.
struct Limits {
    /// Number of reaches tried without gain after which no shorter one is tried.
    idle_reaches: usize,
    /// Number of strides tried without gain after which no longer one is tried.
    idle_strides: usize,
    /// Number of patterns, of different strides, for which manners are compared.
    compared: usize,
    /// Another manner must gain at least the makespan divided by this.
    manner_gain: u64,
    /// Number of the patterns that are improved.
    improved: usize,
}

const LIMITS: Limits =
    Limits { idle_reaches: 5, idle_strides: usize::MAX, compared: 2, manner_gain: u64::MAX, improved: 3 };

/// Of a huge step: in two of 100,000 operators, the other limits gained nothing.
const LIMITS_IF_HUGE: Limits =
    Limits { idle_reaches: 5, idle_strides: 2, compared: 1, manner_gain: 1000, improved: 1 };

/// Number of the patterns that are evaluated again once another manner suits the best of them better.
const REEVALUATED: usize = 12;

/// Number of pieces into which the peak is divided for evaluations of patterns: fewer misjudge them by a percent or two.
const PATTERN_PIECES: Tunable<u64> = Tunable::new(500);

/// Operators that are evaluated for patterns, if the number of operators allows at least [`LEAST_EVALUATIONS`].
const EVALUATED: Tunable<usize> = Tunable::new(1_000_000);

/// The effort from which on all these evaluations are made, and in proportion less below it.
const FULL_EFFORT: u32 = 25;

/// At least this number of evaluations.
const LEAST_EVALUATIONS: usize = 12;

/// Places without gain after which no further ones are tried.
const IDLE_PLACES: usize = 24;

/// A place whose tensors have less than the budget divided by this together is not worth an evaluation.
const SMALL_PLACE: u64 = 5000;

/// Decisions for layers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pattern {
    /// Distance, in layers, between the boundaries that are kept among layers that run again.
    stride: usize,
    reach: ReuseReach,
    /// For each layer, whether it runs again.
    again: Vec<bool>,
    /// For each place, the first copy in which it is kept although the layer runs again.
    kept_from: Vec<u32>,
}

/// Tensors at the same place of copies of a layer.
#[derive(Default)]
struct Place {
    /// Of each tensor, the first of its candidates, and its layer.
    tensors: Vec<(usize, usize)>,
    bytes: u64,
}

/// The place of a candidate.
#[derive(Clone, Copy)]
struct At {
    /// Its layer, and the one that uses it last in the forward phase.
    layer: usize,
    last: usize,
    /// Its place in the layer, and the number of the copy.
    place: usize,
    copy: u32,
}

/// A search over patterns.
pub(super) struct Layered<'a, 'b> {
    search: &'a Search<'b>,
    layers: Vec<Layer>,
    places: Vec<Place>,
    /// By candidate; none if the forward phase does not produce it.
    at: Vec<Option<At>>,
    /// Number of operators of the backward phase for a layer, about.
    late: u32,
    rewritten: Rewritten,
    manner: Manner,
    piece: u64,
    limits: Limits,
    known: BTreeMap<Pattern, u64>,
    evaluations: usize,
}

impl<'a, 'b> Layered<'a, 'b> {
    pub(super) fn new(search: &'a Search<'b>, uses: &Uses) -> Layered<'a, 'b> {
        let (problem, turn) = (search.problem, search.turn as usize);
        let forward = Forward::new(problem, search.remat, uses, turn);
        let layers = forward.layers();
        let mut of = vec![0; turn];
        layers.iter().enumerate().for_each(|(layer, facts)| of[facts.ticks.clone()].fill(layer));
        // The same operator of another copy is an equal one with the same number of equal ones before it.
        let mut numbered = vec![(0, 0); turn];
        for layer in &layers {
            let mut seen: BTreeMap<u32, u32> = BTreeMap::new();
            for tick in layer.ticks.clone() {
                let alike = forward.alike(tick, layer.is_exact);
                let number = seen.entry(alike).or_default();
                numbered[tick] = (alike, *number);
                *number += 1;
            }
        }
        let mut known = BTreeMap::new();
        let mut places: Vec<Place> = Vec::new();
        let mut at = vec![None; search.candidates.len()];
        for (index, candidate) in search.candidates.iter().enumerate() {
            let maker = candidate.producer as usize;
            let Some(last) = last_before(uses.of(candidate.tensor), turn).filter(|_| maker < turn) else {
                continue;
            };
            let layer = of[maker];
            let output = problem.ops[maker].produces.iter().position(|&tensor| tensor == candidate.tensor);
            let key = (layers[layer].class, numbered[maker], output);
            let place = *known.entry(key).or_insert(places.len());
            if place == places.len() {
                places.push(Place::default());
            }
            // Several windows of a tensor are candidates of their own.
            if index == 0 || search.candidates[index - 1].tensor != candidate.tensor {
                places[place].tensors.push((index, layer));
                places[place].bytes += candidate.bytes;
            }
            at[index] = Some(At { layer, last: of[last], place, copy: layers[layer].copy as u32 });
        }
        let late = (problem.ops.len() - turn) / layers.len().max(1);
        Layered {
            search,
            layers,
            places,
            at,
            late: (late as u32).max(SHORTEST_REACH),
            rewritten: Rewritten::default(),
            manner: Manner::ALL[0],
            piece: super::piece_of(problem, search.granularity, PATTERN_PIECES.get()),
            limits: if super::is_huge(problem) { LIMITS_IF_HUGE } else { LIMITS },
            known: BTreeMap::new(),
            evaluations: 0,
        }
    }

    /// The best choices, the best first; none without effort.
    pub(super) fn best(mut self, effort: u32) -> Vec<Found> {
        let all = (EVALUATED.get() / self.search.problem.ops.len().max(1)).clamp(LEAST_EVALUATIONS, 1000);
        let all = all * effort.min(FULL_EFFORT) as usize / FULL_EFFORT as usize;
        if all == 0 {
            return Vec::new();
        }
        let mut found = self.whole_layers(all / 2);
        let least = self.search.problem.compute_nanos();
        for (nanos, pattern) in found.clone().into_iter().take(self.limits.improved) {
            if nanos == u64::MAX || nanos <= least {
                break;
            }
            let most = self.evaluations + all / 6;
            let mut better = (nanos, pattern);
            if KEPT_PLACES.is_on() {
                better = self.places(better, most);
            }
            found.push(better);
        }
        found.retain(|(nanos, _)| *nanos < u64::MAX);
        found.sort();
        found.dedup();
        found.truncate(self.limits.improved);
        let manner = self.manner;
        found.into_iter().map(|(nanos, pattern)| (nanos, manner, self.choice(&pattern))).collect()
    }

    /// The makespan of the best pattern of whole layers that a few evaluations find.
    pub(super) fn glance(mut self, evaluations: usize) -> u64 {
        self.whole_layers(evaluations)[0].0
    }

    /// The pattern in which no layer runs again.
    fn none(&self) -> Pattern {
        Pattern {
            stride: 1,
            reach: ReuseReach::Operators(u32::MAX),
            again: vec![false; self.layers.len()],
            kept_from: vec![u32::MAX; self.places.len()],
        }
    }

    /// The choice of a pattern.
    fn choice(&self, pattern: &Pattern) -> Choice {
        // The number of kept boundaries before each layer: every `stride`-th between layers that run again, and all others.
        let mut kept = vec![0usize; self.layers.len() + 1];
        let mut since = 0;
        for layer in 0..self.layers.len() {
            let is_inside = layer > 0 && pattern.again[layer] && pattern.again[layer - 1];
            since = if is_inside { since + 1 } else { 0 };
            kept[layer + 1] = kept[layer] + usize::from(since % pattern.stride == 0);
        }
        let fate = |at: Option<At>| {
            let is_kept = at.is_none_or(|At { layer, last, place, copy }| {
                let crosses = kept[last + 1] > kept[layer + 1];
                !pattern.again[layer] || crosses || copy >= pattern.kept_from[place]
            });
            if is_kept { Fate::Kept } else { Fate::DroppedAgain }
        };
        Choice::new(self.at.iter().map(|&at| fate(at)).collect(), pattern.reach)
    }

    /// The makespan of a pattern; `u64::MAX` if it does not fit or is not below `most`.
    fn nanos(&mut self, pattern: &Pattern, most: u64) -> u64 {
        if let Some(&known) = self.known.get(pattern) {
            return known;
        }
        let nanos = self.anew(pattern, self.manner, most);
        self.known.insert(pattern.clone(), nanos);
        nanos
    }

    fn anew(&mut self, pattern: &Pattern, manner: Manner, most: u64) -> u64 {
        let Search { follow, budget, .. } = self.search;
        let choice = self.choice(pattern);
        if follow.is_ended() || !self.search.rewrite(&choice, most.saturating_sub(1), &mut self.rewritten) {
            return u64::MAX;
        }
        follow.evaluated();
        self.evaluations += 1;
        let schedule = swap_only::covered(&self.rewritten.problem, *budget, self.piece, manner);
        schedule.map_or(u64::MAX, |schedule| schedule.makespan())
    }

    /// Evaluates with the manner that suits the best of the patterns from now on, of at most `compared` strides the first; the patterns
    /// come sorted, and stay so.
    fn pick_manner(&mut self, found: &mut Vec<(u64, Pattern)>, compared: usize) {
        let mut strides = BTreeSet::new();
        let firsts = found.iter().filter(|(_, pattern)| strides.insert(pattern.stride));
        let firsts: Vec<Pattern> = firsts.take(compared).map(|(_, pattern)| pattern.clone()).collect();
        let before = found[0].0;
        let mut best = (u64::MAX, self.manner);
        for pattern in &firsts {
            for manner in Manner::ALL {
                let is_known = manner == self.manner;
                let nanos = if is_known {
                    self.nanos(pattern, u64::MAX)
                } else {
                    self.anew(pattern, manner, u64::MAX)
                };
                if nanos < best.0 {
                    best = (nanos, manner);
                }
            }
        }
        let gained = before.saturating_sub(best.0);
        if best.1 != self.manner && gained >= before / self.limits.manner_gain {
            self.manner = best.1;
            self.known.clear();
            found.truncate(REEVALUATED);
            for (nanos, pattern) in found.iter_mut() {
                *nanos = self.nanos(pattern, u64::MAX);
            }
            found.sort();
        }
    }

    /// Patterns of whole layers, the best first: strides by reaches, then layers that are spared.
    fn whole_layers(&mut self, most: usize) -> Vec<(u64, Pattern)> {
        let none = self.none();
        let mut found = vec![(self.nanos(&none, u64::MAX), none)];
        if found[0].0 == self.search.problem.compute_nanos() {
            return found;
        }
        self.strides_and_reaches(&mut found, most);
        self.by_price(&mut found, most);
        found.sort();
        self.pick_manner(&mut found, self.limits.compared);
        let starts: Vec<_> = found
            .iter()
            .filter(|(_, pattern)| pattern.again.first() == Some(&true))
            .take(2)
            .cloned()
            .collect();
        // The patterns before do not count: these are few, and the first and the last layer are often better kept.
        let most = self.evaluations + most / 2;
        for start in starts {
            for spared in [Self::all_but_last, Self::all_but_first, Self::all_but_spread] {
                self.spare(&start, spared, &mut found, most);
            }
        }
        found.sort();
        found.dedup();
        self.pick_manner(&mut found, self.limits.compared - 1);
        found.truncate(2 * self.limits.improved);
        found
    }

    /// All layers again: segments of each stride, by reach.
    fn strides_and_reaches(&mut self, found: &mut Vec<(u64, Pattern)>, most: usize) {
        let layers = self.layers.len();
        let mut idle_strides = 0;
        for stride in STRIDES.get().into_iter().filter(|&stride| stride == 1 || 2 * stride <= layers) {
            let before = least(found);
            let layer = self.late;
            let of = |eighths: u32| ReuseReach::Operators((layer * eighths / 8).max(SHORTEST_REACH));
            let long = [8 * stride as u32, 4 * (stride as u32 + 1)].map(of);
            let mut reaches = vec![ReuseReach::Operators(u32::MAX)];
            reaches.extend(long.into_iter().chain(REACHES.get().map(of)));
            reaches.dedup();
            let mut idle = 0;
            for reach in reaches {
                let pattern = Pattern { stride, reach, again: vec![true; layers], ..self.none() };
                let least = least(found);
                let nanos = self.nanos(&pattern, least);
                idle = if nanos < least { 0 } else { idle + 1 };
                found.push((nanos, pattern));
                if idle > self.limits.idle_reaches || self.evaluations >= most {
                    break;
                }
            }
            idle_strides = if least(found) < before { 0 } else { idle_strides + 1 };
            if idle_strides == self.limits.idle_strides {
                break;
            }
        }
    }

    /// All layers again, but for the places whose tensors are the dearest to make for their bytes.
    fn by_price(&mut self, found: &mut Vec<(u64, Pattern)>, most: usize) {
        let search = self.search;
        let late = |place: &Place| place.tensors.iter().any(|&(i, _)| search.candidates[i].dropped.is_some());
        let nanos = |place: usize| -> u128 {
            let tensors = &self.places[place].tensors;
            tensors.iter().map(|&(i, _)| u128::from(search.candidates[i].nanos)).sum()
        };
        let mut places: Vec<(u128, usize)> = (0..self.places.len())
            .filter(|&place| late(&self.places[place]))
            .map(|place| ((nanos(place) << 20) / u128::from(self.places[place].bytes.max(1)), place))
            .collect();
        places.sort_by(|a, b| b.cmp(a));
        let all: u64 = places.iter().map(|&(_, place)| self.places[place].bytes).sum();
        let layers = self.layers.len();
        for stride in [1, layers.max(1)] {
            let mut pattern = Pattern { stride, again: vec![true; layers], ..self.none() };
            let (mut kept, mut next) = (0, 1);
            for &(_, place) in &places {
                pattern.kept_from[place] = 0;
                kept += self.places[place].bytes;
                if kept * 16 >= all * next && self.evaluations < most {
                    next = kept * 16 / all.max(1) + 1;
                    let nanos = self.nanos(&pattern, least(found));
                    found.push((nanos, pattern.clone()));
                }
            }
        }
    }

    fn all_but_last(layers: usize, spared: usize) -> Vec<bool> {
        (0..layers).map(|layer| layer + spared < layers).collect()
    }

    fn all_but_first(layers: usize, spared: usize) -> Vec<bool> {
        (0..layers).map(|layer| layer >= spared).collect()
    }

    fn all_but_spread(layers: usize, spared: usize) -> Vec<bool> {
        (0..layers).map(|layer| (layer + 1) * spared / layers == layer * spared / layers).collect()
    }

    /// The pattern with more and more layers spared, by steps that halve, as long as that gains.
    fn spare(
        &mut self,
        (start, pattern): &(u64, Pattern),
        spared: fn(usize, usize) -> Vec<bool>,
        found: &mut Vec<(u64, Pattern)>,
        most: usize,
    ) {
        let layers = self.layers.len();
        let (mut at, mut step, mut now) = (0usize, layers / 2, *start);
        while step > 0 && self.evaluations < most {
            let before = at;
            for next in [at + step, at.saturating_sub(step)] {
                if next == at || next >= layers {
                    continue;
                }
                let pattern = Pattern { again: spared(layers, next), ..pattern.clone() };
                let nanos = self.nanos(&pattern, now);
                if nanos < now {
                    found.push((nanos, pattern));
                    (now, at) = (nanos, next);
                    break;
                }
            }
            if at == before {
                step /= 2;
            }
        }
    }

    /// The pattern with places kept, in all copies or in the last ones: those first that save the most computing for their
    /// bytes.
    fn places(&mut self, mut best: (u64, Pattern), most: usize) -> (u64, Pattern) {
        for _ in 0..3 {
            let before = best.0;
            let mut idle = 0;
            for place in self.worth_keeping(&best.1) {
                let copies = self.places[place].tensors.len() as u32;
                let (at, now) = (best.0, best.1.kept_from[place].min(copies));
                let step = (copies / 8).max(1);
                let tries = if now == copies {
                    [0, copies / 2, copies - copies.div_ceil(4)]
                } else {
                    [now.saturating_sub(step), (now + step).min(copies), copies]
                };
                for kept_from in tries.into_iter().filter(|&kept_from| kept_from != now) {
                    if self.evaluations >= most {
                        return best;
                    }
                    let mut pattern = best.1.clone();
                    pattern.kept_from[place] = if kept_from < copies { kept_from } else { u32::MAX };
                    self.keep_better(&mut best, pattern);
                }
                idle = if best.0 < at { 0 } else { idle + 1 };
                if idle > IDLE_PLACES {
                    break;
                }
            }
            if best.0 > before - before / 1000 {
                break;
            }
        }
        best
    }

    /// The places of which a change may gain, those first that save the most computing for their bytes if they are kept, and those
    /// last that cost the most if they are not.
    fn worth_keeping(&mut self, pattern: &Pattern) -> Vec<usize> {
        let nanos = self.computing(pattern).unwrap_or(u64::MAX);
        let mut worth: Vec<(i128, usize)> = Vec::new();
        for place in 0..self.places.len() {
            let facts = &self.places[place];
            let bytes = facts.bytes;
            if bytes < self.search.budget / SMALL_PLACE
                || !facts.tensors.iter().any(|&(_, layer)| pattern.again[layer])
            {
                continue;
            }
            let is_kept = pattern.kept_from[place] == 0;
            let mut other = pattern.clone();
            other.kept_from[place] = if is_kept { u32::MAX } else { 0 };
            let Some(changed) = self.computing(&other) else { continue };
            let saved = i128::from(nanos) - i128::from(changed);
            if saved > 0 || is_kept {
                worth.push(((saved << 20) / i128::from(bytes.max(1)), place));
            }
        }
        worth.sort_by(|a, b| b.cmp(a));
        worth.into_iter().map(|(_, place)| place).collect()
    }

    /// The time of all operators under the pattern.
    fn computing(&mut self, pattern: &Pattern) -> Option<u64> {
        let choice = self.choice(pattern);
        let rewritten = &mut self.rewritten;
        self.search.rewrite(&choice, u64::MAX, rewritten).then(|| rewritten.problem.compute_nanos())
    }

    fn keep_better(&mut self, best: &mut (u64, Pattern), pattern: Pattern) {
        let nanos = self.nanos(&pattern, best.0);
        if nanos < best.0 {
            *best = (nanos, pattern);
        }
    }
}

/// The least makespan found.
fn least(found: &[(u64, Pattern)]) -> u64 {
    found.iter().map(|(nanos, _)| *nanos).min().unwrap_or(u64::MAX)
}
