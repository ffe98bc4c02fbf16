//! Swapping and recomputation together: a search for what to compute twice, with the best swapping for each choice.
//!
//! A choice says which tensors are dropped after a use and made anew in the backward phase ([`crate::remat`]), and
//! which are kept beyond their last use for that. For each, what does not fit then is swapped as [`super::optimal`]
//! does. The search starts from choices of known shapes (the cheapest for their bytes, what is best at a price of
//! bytes, segments between cuts), anneals the best of them, then the best that it has found so. What is found is crossed in
//! parts of the step, changed one tensor after the other, and by exchanges of one for cheaper ones, as long as that is better.
//! So far covers look at bytes alone; from the best it walks once more with covers that swap in time, which find what is worth a
//! short wait. It counts evaluations, never time.

mod candidates;
mod moves;
mod starts;

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cranelift_entity::SecondaryMap;
use lmsc_ir::Phase;
use lmsc_ir::rng::{Rng, Source};

use candidates::{Candidate, Choice, Fate, candidates};

use super::annealing::{cooled, uphill};
use super::cover::Manner;
use super::variables::{staying_and_leaving, staying_or_leaving};
use super::{DoesNotFit, Granularity, Plan, Request, cover, optimal, whole};
use crate::bound::{self, Certificate};
use crate::problem::{Problem, TensorId};
use crate::remat::{Dead, Rematerializer, Rewritten};
use crate::schedule::{Acts, Schedule, Simulator, justified_within};
use crate::threads::each;

/// While searching, so many pieces make the peak.
const SEARCH_PIECES: u64 = 150;

/// Annealing starts from as many choices, with heats of one part in so many of the time of all operators. What one
/// more recomputed operator costs is in between.
const HEATS: [u64; 4] = [100, 300, 1000, 4000];

/// It starts again from the best that it has found so, with these heats.
const AGAIN: [u64; 2] = [2000, 6000];

/// So many of the best choices found are crossed.
const CROSSED: usize = 8;

/// The number of walks of a round that start from the best choices of the round before; the others start from choices of known
/// shapes.
const SEEDS: usize = 2;

/// The numbers of walks of one round are less than this.
const FIRST_OF_ROUND: u64 = 1 << 32;

/// Into so many parts the step is cut, so that the best choice may do in one of them as another does.
const PARTS: [usize; 5] = [2, 4, 8, 16, 32];

/// From so many of the best choices found it starts the last time.
const FINISHED: usize = 3;

/// So many of the best plans are polished in small pieces, and of what is found then so many have their swaps chosen in time.
const REFINED: usize = 5;

/// The fates that walks and polishing choose from.
const FATES: [Fate; 3] = [Fate::Kept, Fate::Dropped, Fate::DroppedAgain];

/// At the end of each round, what runs again in this number of the best plans is given other places, and made anew for each that needs
/// it, by one in this number of evaluations.
const PLACED: usize = 3;
const PLACED_SHARE: usize = 16;
const PLACED_HEATS: [u64; 4] = [100, 300, 1000, 4000];

/// They are polished by one in so many of all evaluations, which take as much longer in small pieces.
const FINE: usize = 40;

/// A glance looks at so many choices, and walks as far from the best of them.
const GLANCED: usize = 64;

/// So many evaluations of an operator are made at an effort of 100: time grows with operators, so any number of
/// them takes seconds.
const EVALUATIONS: usize = 20_000_000;

/// Walks that swap in time have these heats, start so often from the best of what was found if that is at most this part of the
/// bound above it, where short waits matter most, and once otherwise, and make one in so many of all evaluations; one counts as
/// many steps as this, where each step of other walks counts as one, evaluated or not.
const IN_TIME_HEATS: [u64; FINISHED] = [1500, 3000, 6000];
const IN_TIME_ROUNDS: u64 = 4;
const NEAR: u64 = 200;
const IN_TIME: usize = 10;
const IN_TIME_STEPS: usize = 8;

/// So many evaluations are remembered.
const KNOWN: usize = 100_000;

/// With more operators than this there are fewer evaluations of each, by the square of how many more: plans hardly get worse.
const MANY: usize = 2000;

/// The best plan found.
///
/// # Errors
/// [`DoesNotFit`] if nothing that was tried fits, with what the operator needs that swapping alone cannot help.
pub fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    if !request.recompute {
        return optimal::plan(request);
    }
    let joint = staying_or_leaving(request, searched);
    if joint.as_ref().is_ok_and(|plan| plan.schedule.makespan() == request.problem.compute_nanos()) {
        return joint;
    }
    let joint = joint.map(|plan| optimal::in_ranges(request, plan));
    // The bound takes long, so it is not asked for where there is no plan to compare with it.
    let is_best = joint
        .as_ref()
        .is_ok_and(|plan| plan.schedule.makespan() <= bound::swap(request.problem, request.budget).nanos);
    if is_best || !request.problem.any_variable_leaves() {
        return joint;
    }
    // Variables that are too small to be searched for with what is computed again may be what swapping alone needs.
    match (joint, optimal::plan(request)) {
        (Ok(joint), Ok(swapping)) if swapping.schedule.makespan() < joint.schedule.makespan() => Ok(swapping),
        (Err(_), swapping) => swapping,
        (joint, _) => joint,
    }
}

/// What a step takes at most, from a short look at choices of known shapes, in large pieces; nothing if none of them fits.
pub fn glance(request: &Request) -> Option<u64> {
    staying_and_leaving(request, |request| {
        let remat = Rematerializer::new(request.problem);
        let search = Search::new(&remat, request);
        let starts = search.started(GLANCED);
        let walked = search.walks(&starts, &HEATS, GLANCED / HEATS.len(), 0);
        walked.first().map(|(makespan, ..)| *makespan).filter(|&makespan| makespan < u64::MAX)
    })
}

/// The percentages of the usual number of evaluations at which the rounds of the search end. The last round is the last one that
/// the request's effort allows. Rounds do not depend on the effort, so a search with more effort begins with the same rounds, and
/// its plan is no worse.
const ROUNDS: [u32; 10] = [1, 3, 10, 25, 50, 100, 200, 400, 800, 1600];

/// With the usual effort or less, the search ends after a round if the plan is close to its bound
/// ([`Certificate::is_close`](bound::Certificate::is_close)), or if at least `ENOUGH_TRIED` percent of the evaluations are made and
/// the round shortened the makespan by less than 1/`LITTLE_GAIN`. A round is half of all evaluations so far or more.
const ENOUGH_TRIED: u32 = 10;
const LITTLE_GAIN: u64 = 1000;

fn searched(request: &Request) -> Result<Plan, DoesNotFit> {
    let Request { budget, effort, .. } = *request;
    let swapping = optimal::covering(request);
    if swapping.as_ref().is_ok_and(|plan| plan.schedule.makespan() == request.problem.compute_nanos()) {
        return swapping;
    }
    let remat = Rematerializer::new(request.problem);
    let mut search = Search::new(&remat, request);
    // The bound takes long, so it is not asked for where nothing fits.
    let least = LazyCell::new(|| bound::quick(request));
    let all = search.evaluations;
    let mut found: Vec<(Found, Plan)> = Vec::new();
    let (mut spent, mut before, mut placed) = (0, u64::MAX, None);
    // Without effort there is one short round.
    for (round, percent) in (0u64..).zip(ROUNDS).filter(|&(_, percent)| percent <= effort.max(ROUNDS[0])) {
        search.evaluations = all * (percent - spent).min(effort) as usize / 100;
        spent = percent;
        found = search.round(found, &least, round);
        let Some((_, plan)) = found.first() else { continue };
        let now = plan.schedule.makespan();
        if !least.is_close(now) {
            placed = placed.into_iter().chain(search.placed(&found)).min_by_key(|p| p.schedule.makespan());
        }
        let gained = before.saturating_sub(now);
        let is_little = percent >= ENOUGH_TRIED && gained < now / LITTLE_GAIN;
        if effort <= 100 && (least.is_close(now) || is_little) {
            break;
        }
        before = now;
    }
    let best = found.into_iter().next().map(|(_, plan)| plan);
    let best = best.into_iter().chain(placed).min_by_key(|plan| plan.schedule.makespan());
    let best = match (best, swapping) {
        (Some(best), Ok(swapping)) if swapping.schedule.makespan() < best.schedule.makespan() => swapping,
        (Some(best), _) => best,
        (None, swapping) => swapping?,
    };
    Ok(match request.granularity {
        Granularity::Ranges => best,
        Granularity::Whole => {
            let schedule = whole::schedule(&best.problem, budget, effort, best.schedule);
            Plan { schedule, ..best }
        }
    })
}

/// The makespan of a choice, and how a cover takes windows for it.
type Found = (u64, Manner, Choice);

struct Search<'a> {
    remat: &'a Rematerializer<'a>,
    problem: &'a Problem,
    /// The first tick that is not of the forward phase.
    turn: u32,
    budget: u64,
    piece: u64,
    final_piece: u64,
    /// By tick of the producer.
    candidates: Vec<Candidate>,
    /// Indices of candidates, the cheapest for its bytes first, and the other way round.
    by_cost: Vec<u32>,
    rank: Vec<u32>,
    /// How many evaluations a round may make; at first those at an effort of 100.
    evaluations: usize,
    /// By digest of what a choice is rewritten to, what came of it: choices that differ in what nothing rests on are one.
    known: Mutex<HashMap<u64, Known>>,
}

impl<'a> Search<'a> {
    fn new(remat: &'a Rematerializer<'a>, request: &Request<'a>) -> Search<'a> {
        let problem = request.problem;
        let turn = problem.ops.iter().position(|op| op.phase != Phase::Forward);
        let turn = turn.unwrap_or(problem.ops.len()) as u32;
        let candidates = candidates(remat, problem, turn);
        let mut by_cost: Vec<u32> = (0..candidates.len() as u32).collect();
        by_cost.sort_by(|&a, &b| {
            let (a, b) = (&candidates[a as usize], &candidates[b as usize]);
            (u128::from(a.nanos) * u128::from(b.bytes)).cmp(&(u128::from(b.nanos) * u128::from(a.bytes)))
        });
        let mut rank = vec![0; by_cost.len()];
        by_cost.iter().enumerate().for_each(|(place, &i)| rank[i as usize] = place as u32);
        let n = problem.ops.len().max(1);
        let evaluations = EVALUATIONS / n * MANY.pow(2) / n.max(MANY).pow(2);
        let evaluations = evaluations.clamp(500, 60_000);
        let piece = |pieces| match request.granularity {
            Granularity::Whole => u64::MAX,
            Granularity::Ranges => optimal::piece_bytes(problem, pieces),
        };
        Search {
            remat,
            problem,
            turn,
            budget: request.budget,
            piece: piece(SEARCH_PIECES),
            final_piece: piece(optimal::PIECES),
            candidates,
            by_cost,
            rank,
            evaluations,
            known: Mutex::default(),
        }
    }

    /// The best of choices of known shapes, of so many at most, the best first.
    fn started(&self, most: usize) -> Vec<Found> {
        let mut choices = self.starts();
        choices = choices.iter().step_by(choices.len().div_ceil(most)).cloned().collect();
        let evaluate = |choices: &[Choice]| -> Vec<Found> {
            let mut memory = Memory::default();
            let found = |choice: &Choice| {
                let makespan = self.makespan(&mut memory, choice, Manner::Gone, self.piece);
                (makespan, Manner::Gone, choice.clone())
            };
            choices.iter().map(found).collect()
        };
        let parts = choices.chunks(choices.len().div_ceil(HEATS.len()));
        let mut starts: Vec<Found> = each(parts, evaluate).into_iter().flatten().collect();
        starts.sort();
        starts.truncate(HEATS.len());
        starts
    }

    /// The best choices and their plans, the best first: those found before, and those that this round finds from them.
    fn round(
        &self,
        before: Vec<(Found, Plan)>,
        least: &LazyCell<Certificate, impl FnOnce() -> Certificate>,
        number: u64,
    ) -> Vec<(Found, Plan)> {
        let seeds: Vec<Found> = before.iter().map(|(choice, _)| choice.clone()).collect();
        let mut found = self.finished(self.run(&seeds, number));
        let choices: Vec<Found> = found.iter().take(REFINED).map(|(choice, _)| choice.clone()).collect();
        let polished = self.polished(&choices, self.evaluations / FINE, self.final_piece);
        let exchanged = self.exchanged(&polished, self.evaluations / FINE, self.final_piece);
        let is_near = found.first().is_some_and(|(_, plan)| {
            let least = least.nanos;
            plan.schedule.makespan() <= least + least / NEAR
        });
        let in_time = self.in_time(found.iter().map(|(choice, _)| choice.clone()).collect(), is_near);
        found.extend(self.finished([polished, exchanged, in_time].concat()));
        found.sort_by_key(|(_, plan)| plan.schedule.makespan());
        found.truncate(REFINED);
        let refined = found.into_iter().map(|(choice, plan)| (choice, self.refined(plan)));
        let mut best: Vec<(Found, Plan)> = before.into_iter().chain(refined).collect();
        best.sort_by_key(|(_, plan)| plan.schedule.makespan());
        best.truncate(REFINED);
        best
    }

    /// The best choices found from these and from those of known shapes, the best first.
    fn run(&self, seeds: &[Found], round: u64) -> Vec<Found> {
        let mut starts = self.started((self.evaluations / 2).max(32));
        // One way or the other may be better for what is found from them.
        starts.iter_mut().step_by(2).for_each(|(_, manner, _)| *manner = Manner::Ready);
        let again = seeds.iter().take(SEEDS).map(|(_, manner, choice)| {
            // Walks that swap in time come last, and are few.
            let manner = if *manner == Manner::InTime { Manner::Gone } else { *manner };
            let makespan = self.makespan(&mut Memory::default(), choice, manner, self.piece);
            (makespan, manner, choice.clone())
        });
        starts.splice(0..0, again);
        starts.truncate(HEATS.len());
        let share = self.evaluations / 8;
        // Each round draws other numbers.
        let first = round * FIRST_OF_ROUND;
        let mut found = self.walks(&starts, &HEATS, share, first);
        // What is far from what operators alone take may have more to gain.
        let far = found.first().is_some_and(|(best, ..)| *best > self.problem.compute_nanos() / 8 * 9);
        for round in 1..=if far { 4 } else { 2 } {
            let again = self.walks(&found, &AGAIN, share, first + round);
            found.extend(again);
            found.sort();
            found.dedup();
        }
        let crossed = self.crossed(&found);
        found.extend(crossed);
        found.sort();
        found.dedup();
        found.truncate(FINISHED);
        let mut polished = self.polished(&found, share, self.piece);
        let again = self.walks(&polished, &AGAIN, share, first + 1);
        polished.extend(self.polished(&again, share, self.piece));
        found.extend(polished);
        found.sort();
        found.dedup();
        let crossed = self.crossed(&found);
        found.extend(crossed);
        let exchanged = self.exchanged(&found[..found.len().min(FINISHED)], share, self.piece);
        found.extend(exchanged);
        found.sort();
        found.dedup();
        found
    }

    /// The best of the choices, with what others do in parts of the step where that is better.
    fn crossed(&self, found: &[Found]) -> Option<Found> {
        let ((least, manner, best), others) = found[..found.len().min(CROSSED)].split_first()?;
        let (mut least, mut choice, n) = (*least, best.clone(), best.len());
        let mut memory = Memory::default();
        for parts in PARTS {
            for (part, (_, _, other)) in (0..parts).flat_map(|part| others.iter().map(move |o| (part, o))) {
                let part = n * part / parts..n * (part + 1) / parts;
                if choice[part.clone()] == other[part.clone()] {
                    continue;
                }
                let mut next = choice.clone();
                next[part.clone()].copy_from_slice(&other[part]);
                let found = self.evaluate(&mut memory, &next, *manner, self.piece, least.saturating_sub(1));
                if let Some(found) = found.filter(|found| found.makespan < least) {
                    (least, choice) = (found.makespan, next);
                }
            }
        }
        Some((least, *manner, choice))
    }

    /// What becomes of each of the choices, at the same time.
    fn each(&self, choices: &[Found], better: impl Fn(Found) -> Found + Sync) -> Vec<Found> {
        each(choices.iter().cloned(), better)
    }

    /// Each of the choices, polished by what it costs in pieces of a size.
    fn polished(&self, choices: &[Found], evaluations: usize, piece: u64) -> Vec<Found> {
        self.each(choices, |one| self.polish(one, evaluations, piece, &FATES))
    }

    /// The best of the choices, in which what runs again has found its place, and its plan.
    fn placed(&self, found: &[(Found, Plan)]) -> Option<Plan> {
        let choices: Vec<Found> = found.iter().take(PLACED).map(|(choice, _)| choice.clone()).collect();
        let places: Vec<Fate> = Fate::placed().collect();
        let fates = [&FATES[..], &places].concat();
        let evaluations = self.evaluations / PLACED_SHARE;
        let starts = choices.iter().cycle().zip(PLACED_HEATS).map(|(start, heat)| (start.clone(), heat));
        let walk = |(start, heat)| self.anneal(start, evaluations, heat, (Rng::new(heat), &places));
        let mut placed = each(starts, walk);
        placed.extend(choices);
        placed.sort();
        placed.truncate(PLACED);
        for piece in [self.piece, self.final_piece] {
            let polished = self.each(&placed, |one| self.polish(one, evaluations, piece, &fates));
            placed.extend(polished);
        }
        let (_, plan) = self.finished(placed).into_iter().next()?;
        Some(self.refined(plan))
    }

    /// The choice, changed for all that are alike and for each candidate by itself as long as that is better.
    fn polish(
        &self,
        (mut least, manner, mut choice): Found,
        evaluations: usize,
        piece: u64,
        fates: &[Fate],
    ) -> Found {
        let mut classes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        self.candidates.iter().enumerate().for_each(|(i, c)| classes.entry(c.class).or_default().push(i));
        let mut groups: Vec<Vec<usize>> = classes.into_values().filter(|class| class.len() > 1).collect();
        groups.extend((0..choice.len()).map(|i| vec![i]));
        let changes: Vec<(&[usize], Fate)> =
            groups.iter().flat_map(|group| fates.iter().map(|&fate| (&group[..], fate))).collect();
        let mut memory = Memory::default();
        if piece != self.piece {
            least = self.makespan(&mut memory, &choice, manner, piece);
        }
        // How many changes in a row were none for the better.
        let (mut at, mut in_vain, mut evaluated) = (0, 0, 0);
        while in_vain < changes.len() && evaluated < evaluations {
            let (group, fate) = changes[at];
            (at, in_vain) = ((at + 1) % changes.len(), in_vain + 1);
            if group.iter().all(|&i| choice[i] == fate) {
                continue;
            }
            let mut next = choice.clone();
            group.iter().for_each(|&i| next[i] = fate);
            evaluated += 1;
            if let Some(found) = self.evaluate(&mut memory, &next, manner, piece, least.saturating_sub(1))
                && found.makespan < least
            {
                (least, choice, in_vain) = (found.makespan, next, 0);
            }
        }
        (least, manner, choice)
    }

    /// Each of the choices, with exchanges by what it costs in pieces of a size.
    fn exchanged(&self, choices: &[Found], evaluations: usize, piece: u64) -> Vec<Found> {
        self.each(choices, |one| self.exchange(one, evaluations, piece))
    }

    /// The choice, with one that is computed again kept and one or two others, which together are cheaper, computed again in
    /// its place, as long as that is better.
    fn exchange(&self, (mut least, manner, mut choice): Found, evaluations: usize, piece: u64) -> Found {
        let mut memory = Memory::default();
        if piece != self.piece {
            least = self.makespan(&mut memory, &choice, manner, piece);
        }
        let mut left = evaluations;
        let mut is_better = true;
        while std::mem::take(&mut is_better) {
            for (kept, again) in self.exchanges(&choice, left) {
                left -= 1;
                let mut next = choice.clone();
                next[kept] = Fate::Kept;
                again.into_iter().flatten().for_each(|i| next[i] = Fate::Dropped);
                let found = self.evaluate(&mut memory, &next, manner, piece, least.saturating_sub(1));
                if let Some(found) = found.filter(|found| found.makespan < least) {
                    (least, choice, is_better) = (found.makespan, next, true);
                    break;
                }
            }
        }
        (least, manner, choice)
    }

    /// What walks and exchanges find from the best of the choices where covers swap in time, after several rounds if they are
    /// near what is the least.
    fn in_time(&self, mut found: Vec<Found>, is_near: bool) -> Vec<Found> {
        let evaluations = self.evaluations / IN_TIME;
        found.truncate(FINISHED);
        found = self.each(&found, |(_, _, choice)| {
            let makespan = self.makespan(&mut Memory::default(), &choice, Manner::InTime, self.piece);
            (makespan, Manner::InTime, choice)
        });
        found.sort();
        for round in 0..if is_near { IN_TIME_ROUNDS } else { 1 } {
            let walked = self.walks(&found, &IN_TIME_HEATS, evaluations, round);
            found.extend(walked);
            found.sort();
            found.dedup();
            found.truncate(FINISHED);
            if round % 2 == 1 || !is_near {
                found = self.exchanged(&found, evaluations / IN_TIME_STEPS, self.piece);
                found.sort();
            }
        }
        found
    }

    /// What may be kept, and what computed again in its place, one before two: the dearest first for the cheapest of their
    /// bytes, so many at most.
    fn exchanges(&self, choice: &Choice, most: usize) -> Vec<(usize, [Option<usize>; 2])> {
        let nanos = |i: usize| self.candidates[i].nanos;
        let all = self.by_cost.iter().map(|&i| i as usize).filter(|&i| self.candidates[i].dropped.is_some());
        let (kept, mut again): (Vec<usize>, Vec<usize>) = all.partition(|&i| choice[i] == Fate::Kept);
        again.sort_by_key(|&i| Reverse(nanos(i)));
        let kept = &kept[..];
        let one = again.iter().flat_map(|&i| {
            kept.iter().filter(move |&&j| nanos(j) < nanos(i)).map(move |&j| (i, [Some(j), None]))
        });
        let two = again.iter().flat_map(|&i| {
            // Where most cost the same, few pairs are cheaper: only what is, with the cheapest of all, is looked at beside others.
            let least = kept.iter().map(|&j| nanos(j)).min().unwrap_or(0);
            let cheap: Vec<usize> = kept.iter().copied().filter(|&j| nanos(j) + least < nanos(i)).collect();
            let pairs = (0..cheap.len()).flat_map(|at| (0..at).map(move |other| (at, other)));
            let pairs: Vec<_> = pairs
                .map(|(at, other)| (cheap[at], cheap[other]))
                .filter(|&(j, k)| nanos(j) + nanos(k) < nanos(i))
                .take(most)
                .collect();
            pairs.into_iter().map(move |(j, k)| (i, [Some(j), Some(k)]))
        });
        one.chain(two).take(most).collect()
    }

    /// The best choices met on walks from these, each with its heat, the best first.
    fn walks(&self, starts: &[Found], heats: &[u64], evaluations: usize, round: u64) -> Vec<Found> {
        let walk = |(start, &heat): (Found, &u64)| {
            self.anneal(start, evaluations, heat, (Rng::new(heat + round), &[]))
        };
        let mut found = each(starts.iter().cloned().zip(heats), walk);
        found.sort();
        found
    }

    /// Whether what is made of the choice is of use: it computes for so many nanoseconds at most.
    fn rewrite(&self, choice: &Choice, most_nanos: u64, into: &mut Rewritten) -> bool {
        let (mut dropped, mut lasting, mut renewed) = (Vec::new(), Vec::new(), Vec::new());
        for (candidate, &fate) in self.candidates.iter().zip(choice) {
            match (candidate.dropped, fate) {
                (Some(window), fate) => dropped.extend(fate.of(window)),
                (None, Fate::Kept) => lasting.push(candidate.tensor),
                (None, Fate::Renewed | Fate::RenewedEarly(_)) => renewed.push(candidate.tensor),
                (None, _) => {}
            }
        }
        dropped.sort_unstable();
        let dead = Dead { lasting: &lasting, renewed: &renewed };
        self.remat.rewrite_within(&dropped, dead, most_nanos, into)
    }

    /// What a step takes with the choice; the most there is if it does not fit.
    fn makespan(&self, memory: &mut Memory, choice: &Choice, manner: Manner, piece: u64) -> u64 {
        self.evaluate(memory, choice, manner, piece, u64::MAX).map_or(u64::MAX, |found| found.makespan)
    }

    /// What the choice costs, unless its operators alone take longer than the limit.
    fn evaluate(
        &self,
        memory: &mut Memory,
        choice: &Choice,
        manner: Manner,
        piece: u64,
        limit: u64,
    ) -> Option<Evaluated> {
        let Memory { simulator, rewritten, met } = memory;
        self.rewrite(choice, limit, rewritten).then_some(())?;
        let digest = digest(rewritten, manner, piece);
        met.insert(digest);
        if let Some(known) = self.known().get(&digest)
            && (known.evaluated.is_some() || limit <= known.limit)
        {
            return known.evaluated.clone();
        }
        let evaluated = self.evaluate_anew(simulator, rewritten, manner, piece, limit);
        let mut known = self.known();
        if known.len() < KNOWN || known.contains_key(&digest) {
            known.insert(digest, Known { evaluated: evaluated.clone(), limit });
        }
        evaluated
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u64, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn evaluate_anew(
        &self,
        simulator: &mut Simulator,
        rewritten: &Rewritten,
        manner: Manner,
        piece: u64,
        limit: u64,
    ) -> Option<Evaluated> {
        let uses = rewritten.problem.uses();
        let absences = cover::cover(&rewritten.problem, &uses, self.budget, piece, manner).ok()?;
        let acts = Acts::of_uses(&rewritten.problem, &uses, &absences);
        let makespan = justified_within(simulator, &acts, &acts.eager(), self.budget, limit).ok()??;
        let mut away: SecondaryMap<TensorId, bool> = SecondaryMap::with_capacity(self.problem.tensors.len());
        absences.pieces.values().for_each(|piece| away[rewritten.tensor_origin[piece.tensor]] = true);
        let travels = self.candidates.iter().map(|c| away[c.tensor]).collect();
        Some(Evaluated { makespan, travels })
    }

    /// The best choice met on a walk that also goes uphill, less and less.
    ///
    /// `fates` are tried besides those of all walks.
    fn anneal(&self, start: Found, evaluations: usize, heat: u64, (mut rng, fates): (Rng, &[Fate])) -> Found {
        let n = self.candidates.len();
        let mut memory = Memory::default();
        let (_, manner, choice) = start.clone();
        let makespan = self.makespan(&mut memory, &choice, manner, self.piece);
        let (mut here, mut best) = ((makespan, choice), start);
        let mut travels = vec![true; n];
        let hottest = self.problem.compute_nanos() / heat;
        let steps = if manner == Manner::InTime { IN_TIME_STEPS } else { 1 };
        let (all, mut spent) = (evaluations * steps, 0);
        while n > 0 && here.0 < u64::MAX && spent < all {
            let heat = cooled(hottest, spent, all);
            spent += 1;
            let mut next = here.1.clone();
            match fates.is_empty() || rng.chance(50) {
                true => self.change(&mut next, &travels, &mut rng),
                false => self.place(&mut next, fates, &mut rng),
            }
            if next == here.1 {
                continue;
            }
            let limit = here.0 + uphill(heat, &mut rng);
            let met = memory.met.len();
            let evaluated = self.evaluate(&mut memory, &next, manner, self.piece, limit);
            spent += (memory.met.len() - met) * (steps - 1);
            let Some(evaluated) = evaluated else { continue };
            if evaluated.makespan <= limit {
                here = (evaluated.makespan, next);
                travels = evaluated.travels;
                if here.0 < best.0 {
                    best = (here.0, manner, here.1.clone());
                }
            }
        }
        best
    }

    /// The choices and their plans, the best first.
    fn finished(&self, choices: Vec<Found>) -> Vec<(Found, Plan)> {
        let plan = |choice: Found| self.finish(&choice).map(|plan| (choice, plan));
        let mut plans: Vec<(Found, Plan)> = choices.into_iter().filter_map(plan).collect();
        plans.sort_by_key(|(_, plan)| plan.schedule.makespan());
        plans
    }

    /// The plan of a choice, in small pieces or in those of the search, whichever are better.
    fn finish(&self, (_, manner, choice): &Found) -> Option<Plan> {
        let mut rewritten = Rewritten::default();
        self.rewrite(choice, u64::MAX, &mut rewritten).then_some(())?;
        let Rewritten { problem, op_origin, tensor_origin } = rewritten;
        let in_pieces = |piece| optimal::covered(&problem, self.budget, piece, *manner).ok();
        let mut pieces = vec![self.final_piece, self.piece];
        pieces.dedup();
        let found = pieces.into_iter().filter_map(in_pieces);
        let schedule = found.min_by_key(Schedule::makespan)?;
        Some(Plan { problem, op_origin, tensor_origin, schedule })
    }

    /// The plan with swaps chosen in time, if these are better.
    fn refined(&self, plan: Plan) -> Plan {
        let swaps = optimal::swaps(&plan.problem, self.budget, self.final_piece).ok();
        match swaps.filter(|swaps| swaps.makespan() < plan.schedule.makespan()) {
            Some(schedule) => Plan { schedule, ..plan },
            None => plan,
        }
    }
}

/// Memory that evaluations use one after the other.
#[derive(Default)]
struct Memory {
    simulator: Simulator,
    rewritten: Rewritten,
    /// Digests of what was evaluated.
    met: HashSet<u64>,
}

#[derive(Clone)]
struct Evaluated {
    makespan: u64,
    /// By candidate, whether any of its bytes were swapped.
    travels: Vec<bool>,
}

/// What came of an evaluation with a limit.
struct Known {
    evaluated: Option<Evaluated>,
    limit: u64,
}

/// What tells one evaluation from another.
fn digest(rewritten: &Rewritten, manner: Manner, piece: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (manner as u8, piece, &rewritten.op_origin).hash(&mut hasher);
    rewritten.problem.ops.iter().for_each(|op| op.reads.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::problem;
    use crate::schedule::check;

    #[test]
    fn to_compute_again_never_loses_to_swapping_alone() {
        let mut compared = 0;
        for seed in 0..100 {
            let problem = problem(&mut Rng::new(seed), 24);
            let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap_or(0);
            let floor = problem.floor().1;
            for share in [10, 40, 80] {
                let budget = floor + (peak - floor) * share / 100;
                let request = Request { effort: 2, ..Request::new(&problem, budget) };
                let makespan = |found: Result<Plan, DoesNotFit>| {
                    let plan = found.ok()?;
                    check(&plan.problem, &plan.schedule, budget)
                        .unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}"));
                    Some(plan.schedule.makespan())
                };
                if let Some(swapping) = makespan(optimal::plan(&request)) {
                    let joint = makespan(plan(&Request { recompute: true, ..request }));
                    assert!(
                        joint.is_some_and(|joint| joint <= swapping),
                        "seed {seed}, {budget}: {joint:?}, {swapping}"
                    );
                    compared += 1;
                }
            }
        }
        assert!(compared > 200, "{compared}");
    }
}
