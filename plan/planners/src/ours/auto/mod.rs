//! Swapping and recomputation together: a search over sets of recomputed tensors, with a swap set computed for each.
//!
//! A choice determines which tensors are dropped after a use and recomputed in the backward phase ([`crate::ours::remat`]), and
//! which are kept beyond their last use for that. For each choice, the excess over the budget is swapped as in
//! [`super::swap_only`]. Where variables leave, and in problems of many operators, choices for whole layers come first
//! ([`layered`]). The search starts from constructed choices (the cheapest per byte, the best at a price of bytes,
//! segments between cuts), anneals the best of them, and then the best found so far. The choices found are combined by
//! crossover in parts of the step, then changed one tensor at a time and by exchanges of a tensor for cheaper ones, as long
//! as that gains. Up to here, eviction sets only count bytes; from the best choices, further walks use time-aware eviction
//! sets, which recognize choices worth a short wait. The search counts evaluations, never time.

mod candidates;
mod follow;
mod layered;
mod moves;
mod repeats;
mod starts;

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use candidates::{Candidate, Choice, Fate, candidates};
use cranelift_entity::SecondaryMap;
use follow::{Follow, Part};
use layered::Layered;
use lmsc_bound::{self as bound, Certificate};
use lmsc_ir::Phase;
use lmsc_ir::rng::{Rng, Source};
use lmsc_schedule::problem::{Problem, TensorId};
use lmsc_schedule::threads::each;
use lmsc_schedule::tuned::Tunable;
use lmsc_schedule::{
    Acts, Decision, DoesNotFit, Granularity, LITTLE_GAIN, Plan, Request, Schedule, Simulator,
    justified_within,
};

use crate::ours::annealing::{TEMPERATURES, cooled, uphill};
use crate::ours::mechanisms::{
    CROSSOVER, EXCHANGE, LAYERS, PLACEMENT, POLISH, READY_SETS, REFINEMENT, RESTARTS, RETURNS, SEEDS,
    SMALL_PIECES, TIME_AWARE,
};
use crate::ours::remat::{Dead, Rematerializer, Rewritten};
use crate::ours::swap_set::{self, Manner};
use crate::ours::variables::{staying_and_leaving, staying_or_leaving};
use crate::ours::{swap_only, whole};

/// Divisors for the temperatures of walks that start again from the best choices found so far.
const RESTART_TEMPERATURES: Tunable<[u64; 2]> = Tunable::new([2000, 6000]);

/// Size of the crossover pool.
const CROSSOVER_POOL: Tunable<usize> = Tunable::new(8);

/// The numbers of the walks of one round are less than this.
const FIRST_OF_ROUND: u64 = 1 << 32;

/// Numbers of parts into which crossover cuts the step; the best choice may take over a part of another choice.
const CROSSOVER_PARTS: Tunable<[usize; 5]> = Tunable::new([2, 4, 8, 16, 32]);

/// Number of the best choices from which the last walks of a round start, and whose recomputed operators are placed
/// elsewhere.
const ELITE: Tunable<usize> = Tunable::new(3);

/// Number of the best plans that are polished with small pieces, and of the plans found then whose swap sets are
/// chosen anew with regard to copy times.
const REFINED: Tunable<usize> = Tunable::new(5);

/// A walk takes one in this many of the evaluations of a round, and so does the improvement of a choice. Placing recomputed
/// operators elsewhere takes half of that, and polishing with small pieces, which takes longer, a fifth.
const WALK_SHARE: Tunable<usize> = Tunable::new(8);

/// The fates that walks and polishing choose from.
const FATES: [Fate; 3] = [Fate::Kept, Fate::Dropped, Fate::DroppedAgain];

/// Number of choices that an estimate evaluates, and number of evaluations of its walks.
const ESTIMATE_EVALUATIONS: Tunable<usize> = Tunable::new(64);

/// Evaluations times operators at an effort of 100: the time of an evaluation grows with the operators, so that a
/// search takes seconds for any number of them.
const EVALUATIONS: Tunable<usize> = Tunable::new(20_000_000);

/// Divisors for the temperatures of walks with time-aware eviction sets.
const TIME_AWARE_TEMPERATURES: Tunable<[u64; 3]> = Tunable::new([1500, 3000, 6000]);

/// Number of rounds of walks with time-aware eviction sets if the plan is close to its bound, where short waits
/// matter most; otherwise there is one.
const TIME_AWARE_ROUNDS: Tunable<u64> = Tunable::new(4);

/// Walks with time-aware eviction sets take one in this many of the evaluations.
const TIME_AWARE_SHARE: Tunable<usize> = Tunable::new(10);

/// Number of steps of a walk that an evaluation with a time-aware eviction set counts as; each step of other walks
/// counts as one, evaluated or not.
const TIME_AWARE_STEPS: Tunable<usize> = Tunable::new(8);

/// Maximum number of evaluations remembered.
const KNOWN: usize = 100_000;

/// Beyond this number of operators, the evaluations per operator are reduced by the square of the ratio: plans
/// hardly get worse.
const MANY_OPERATORS: Tunable<usize> = Tunable::new(2000);

/// Beyond this number of operators, in a *huge* step, an evaluation takes most of a second: layers alone are decided, by few
/// evaluations ([`layered`]). Measured on steps of 100,000 operators; the largest real ones have 6,000.
const HUGE: usize = 20_000;

fn is_huge(problem: &Problem) -> bool {
    problem.ops.len() > HUGE
}

/// The best plan found.
///
/// # Errors
/// [`DoesNotFit`] if no choice fits, with the bytes of the operator that swapping alone cannot reduce.
pub(crate) fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    if !request.recompute {
        return swap_only::plan(request);
    }
    let is_whole = |tried: &Request| std::ptr::eq(tried.problem, request.problem);
    let has_halves = request.problem.any_variable_leaves();
    let joint = staying_or_leaving(request, |tried| {
        let part = match (has_halves, is_whole(tried)) {
            (false, _) => Part::Whole,
            (true, false) => Part::WithoutVariables,
            (true, true) => Part::WithVariables,
        };
        searched(tried, part)
    });
    if joint.as_ref().is_ok_and(|plan| plan.schedule.makespan() == request.problem.compute_nanos()) {
        return joint;
    }
    let joint = joint.map(|plan| swap_only::in_ranges(request, plan));
    if joint.is_ok() && request.problem.ops.len() > MANY_OPERATORS.get() {
        return joint;
    }
    // The bound takes long to compute, so it is computed only if there is a plan to compare with it.
    let is_best = joint
        .as_ref()
        .is_ok_and(|plan| plan.schedule.makespan() <= bound::swap(request.problem, request.budget).nanos);
    if is_best || !request.problem.any_variable_leaves() {
        return joint;
    }
    // Variables too small to be included in the joint search may be the ones that swapping alone needs.
    match (joint, swap_only::plan(request)) {
        (Ok(joint), Ok(swapping)) if swapping.schedule.makespan() < joint.schedule.makespan() => Ok(swapping),
        (Err(_), swapping) => swapping,
        (joint, _) => joint,
    }
}

/// Upper bound on the makespan from a short search over constructed choices with large pieces; nothing if none of them fits.
pub(crate) fn glance(request: &Request) -> Option<u64> {
    staying_and_leaving(&Request { watch: None, ..*request }, |request| {
        let remat = Rematerializer::new(request.problem);
        let part = if request.problem.any_variable_leaves() { Part::WithVariables } else { Part::Whole };
        let search = Search::new(&remat, request, part);
        let starts = search.started(ESTIMATE_EVALUATIONS.get());
        let walked = search.walks(
            &starts,
            &TEMPERATURES.get(),
            ESTIMATE_EVALUATIONS.get() / TEMPERATURES.get().len(),
            0,
        );
        let walked = walked.first().map(|(makespan, ..)| *makespan);
        let layered = search.decides_by_layer.then(|| {
            let evaluations = ESTIMATE_EVALUATIONS.get() * MANY_OPERATORS.get()
                / request.problem.ops.len().max(MANY_OPERATORS.get());
            Layered::new(&search, &request.problem.uses()).glance(evaluations)
        });
        walked.into_iter().chain(layered).min().filter(|&makespan| makespan < u64::MAX)
    })
}

/// Percentages of the usual number of evaluations at which the rounds of the search end. The last round is the last
/// one that the request's effort allows. Rounds do not depend on the effort, so a search with more effort begins
/// with the same rounds, and its plan is no worse. With the usual effort or less, the search ends after a round if the plan is
/// close to its bound ([`Certificate::is_close`](bound::Certificate::is_close)), or, from the third round on, if the round gained
/// little. A round is half of all evaluations so far or more.
const ROUNDS: Tunable<[u32; 10]> = Tunable::new([1, 3, 10, 25, 50, 100, 200, 400, 800, 1600]);

fn searched(request: &Request, part: Part) -> Result<Plan, DoesNotFit> {
    let Request { effort, .. } = *request;
    let swapping = swapping(request, part);
    let is_done = |plan: &Plan| plan.schedule.makespan() == request.problem.compute_nanos();
    // If swapping does not fit, the other half, in which variables leave, has more room.
    if swapping.as_ref().map_or(part == Part::WithoutVariables, is_done) {
        return swapping;
    }
    if let (Some(watch), Ok(plan)) = (request.watch, &swapping) {
        watch.decided(|| Decision::Swaps {
            nanos: plan.schedule.makespan(),
            swapped_bytes: plan.schedule.copied_bytes().0,
        });
    }
    let remat = Rematerializer::new(request.problem);
    let mut search = Search::new(&remat, request, part);
    // The bound takes long to compute, so it is computed only if something fits.
    let least = LazyCell::new(|| bound::quick(request));
    let all = search.evaluations;
    let mut found = search.layered(effort);
    // Where variables leave, little is left to single tensors once layers are decided; and with many operators, nothing that
    // the evaluations allowed would find.
    let is_huge = is_huge(request.problem);
    let is_decided = (part == Part::WithVariables || is_huge) && !found.is_empty();
    let patience = if is_decided && request.problem.ops.len() > MANY_OPERATORS.get() / 2 { 0 } else { 2 };
    if is_decided && request.problem.ops.len() > MANY_OPERATORS.get() {
        let best = found.swap_remove(0).1;
        search.follow.end(&best, || least.nanos);
        return Ok(swapping.into_iter().chain([best]).min_by_key(|p| p.schedule.makespan()).expect("one"));
    }
    let mut before = found.first().map_or(u64::MAX, |(_, plan)| plan.schedule.makespan());
    let (mut spent, mut placed) = (0, None);
    // Without effort there is one short round.
    for (round, percent) in
        (0u64..).zip(ROUNDS.get()).filter(|&(_, percent)| percent <= effort.max(ROUNDS.get()[0]))
    {
        search.evaluations = all * (percent - spent).min(effort) as usize / 100;
        search.follow.begin(percent);
        spent = percent;
        found = search.round(found, &least, round);
        let Some((_, plan)) = found.first() else { continue };
        let now = plan.schedule.makespan();
        search.follow.end(plan, || least.nanos);
        if request.is_ended() {
            break;
        }
        if PLACEMENT.is_on() && !least.is_close(now) {
            placed = placed.into_iter().chain(search.placed(&found)).min_by_key(|p| p.schedule.makespan());
        }
        let gained = before.saturating_sub(now);
        let is_little = round >= patience && gained < now / LITTLE_GAIN.get();
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
            let schedule = whole::schedule(&best.problem, request, best.schedule);
            Plan { schedule, ..best }
        }
    })
}

/// A plan without recomputation. Where layers are decided first, one eviction set is enough: they also decide on a pattern in which no
/// layer runs again.
fn swapping(request: &Request, part: Part) -> Result<Plan, DoesNotFit> {
    let Request { problem, budget, granularity, .. } = *request;
    if !decides_by_layer(problem, part) {
        return swap_only::plan(request);
    }
    let piece = piece_of(problem, granularity, swap_only::PIECES.get());
    let schedule = swap_only::covered(problem, budget, piece, Manner::InTime)?;
    Ok(Plan::without_recomputation(problem, schedule))
}

/// A choice with its makespan and the kind of its eviction set.
type Found = (u64, Manner, Choice);

struct Search<'a> {
    remat: &'a Rematerializer<'a>,
    problem: &'a Problem,
    /// The first tick after the forward phase.
    turn: u32,
    budget: u64,
    granularity: Granularity,
    piece: u64,
    final_piece: u64,
    /// By tick of the producer.
    candidates: Vec<Candidate>,
    /// Indices of candidates, the cheapest per byte first, and the inverse.
    by_cost: Vec<u32>,
    rank: Vec<u32>,
    /// Maximum number of evaluations of a round; at first the number at an effort of 100.
    evaluations: usize,
    decides_by_layer: bool,
    follow: Follow<'a>,
    /// Results by digest of the rewritten problem: choices that differ only where nothing depends on it have the same digest.
    known: Mutex<HashMap<u64, Known>>,
}

/// The size of the pieces if `pieces` make up the peak.
fn piece_of(problem: &Problem, granularity: Granularity, pieces: u64) -> u64 {
    match granularity {
        Granularity::Whole => u64::MAX,
        Granularity::Ranges => swap_only::piece_bytes(problem, pieces),
    }
}

impl<'a> Search<'a> {
    fn new(remat: &'a Rematerializer<'a>, request: &Request<'a>, part: Part) -> Search<'a> {
        let problem = request.problem;
        // Updates may stand before the backward phase: of a step counter, say.
        let first = |is_first: fn(Phase) -> bool| problem.ops.iter().position(|op| is_first(op.phase));
        let turn = first(|phase| phase == Phase::Backward).or_else(|| first(|phase| phase != Phase::Forward));
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
        let evaluations =
            EVALUATIONS.get() / n * MANY_OPERATORS.get().pow(2) / n.max(MANY_OPERATORS.get()).pow(2);
        let evaluations = evaluations.clamp(500, 60_000);
        let piece = |pieces| piece_of(problem, request.granularity, pieces);
        Search {
            remat,
            problem,
            turn,
            budget: request.budget,
            granularity: request.granularity,
            piece: piece(swap_only::PIECES.get() / 10),
            final_piece: piece(swap_only::PIECES.get()),
            candidates,
            by_cost,
            rank,
            evaluations,
            decides_by_layer: decides_by_layer(problem, part),
            follow: Follow::new(request, part),
            known: Mutex::default(),
        }
    }

    /// The best choices for whole layers and their plans, the best first, where layers are decided first.
    fn layered(&self, effort: u32) -> Vec<(Found, Plan)> {
        if !self.decides_by_layer || !LAYERS.is_on() {
            return Vec::new();
        }
        let mut found = self.finished(Layered::new(self, &self.problem.uses()).best(effort));
        self.refine(&mut found);
        found
    }

    /// The best of at most `most` constructed choices, the best first.
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
        let parts = choices.chunks(choices.len().div_ceil(TEMPERATURES.get().len()));
        let mut starts: Vec<Found> = each(parts, evaluate).into_iter().flatten().collect();
        starts.sort();
        starts.truncate(TEMPERATURES.get().len());
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
        let choices: Vec<Found> =
            found.iter().take(REFINED.get()).map(|(choice, _)| choice.clone()).collect();
        let choices = if SMALL_PIECES.is_on() { choices } else { Vec::new() };
        let polished = self.polished(&choices, self.evaluations / WALK_SHARE.get() / 5, self.final_piece);
        let exchanged = self.exchanged(&polished, self.evaluations / WALK_SHARE.get() / 5, self.final_piece);
        let is_near = found.first().is_some_and(|(_, plan)| least.is_close(plan.schedule.makespan()));
        let in_time = self.in_time(found.iter().map(|(choice, _)| choice.clone()).collect(), is_near);
        found.extend(self.finished([polished, exchanged, in_time].concat()));
        found.sort_by_key(|(_, plan)| plan.schedule.makespan());
        found.truncate(REFINED.get());
        self.refine(&mut found);
        let mut best: Vec<(Found, Plan)> = before.into_iter().chain(found).collect();
        best.sort_by_key(|(_, plan)| plan.schedule.makespan());
        best.truncate(REFINED.get());
        best
    }

    /// The best choices found from the seeds and from constructed choices, the best first.
    fn run(&self, seeds: &[Found], round: u64) -> Vec<Found> {
        let mut starts = self.started((self.evaluations / 2).max(32));
        // Either kind of eviction set may be better for the choices found from a start.
        if READY_SETS.is_on() {
            starts.iter_mut().step_by(2).for_each(|(_, manner, _)| *manner = Manner::Ready);
        }
        // Half of the walks start from the best choices of the previous round, the others from constructed ones.
        let seeds = if SEEDS.is_on() { seeds } else { &[] };
        let again = seeds.iter().take(TEMPERATURES.get().len() / 2).map(|(_, manner, choice)| {
            // Time-aware walks come last, and are few.
            let manner = if *manner == Manner::InTime { Manner::Gone } else { *manner };
            let makespan = self.makespan(&mut Memory::default(), choice, manner, self.piece);
            (makespan, manner, choice.clone())
        });
        starts.splice(0..0, again);
        starts.truncate(TEMPERATURES.get().len());
        let share = self.evaluations / WALK_SHARE.get();
        // Each round draws other random numbers.
        let first = round * FIRST_OF_ROUND;
        let mut found = self.walks(&starts, &TEMPERATURES.get(), share, first);
        // A plan far above the time of its operators alone may have more to gain.
        let far = found.first().is_some_and(|(best, ..)| *best > self.problem.compute_nanos() / 8 * 9);
        for round in 1..=if !RESTARTS.is_on() {
            0
        } else if far {
            4
        } else {
            2
        } {
            let again = self.walks(&found, &RESTART_TEMPERATURES.get(), share, first + round);
            found.extend(again);
            found.sort();
            found.dedup();
        }
        let crossed = self.crossed(&found);
        found.extend(crossed);
        found.sort();
        found.dedup();
        found.truncate(ELITE.get());
        let mut polished = self.polished(&found, share, self.piece);
        if RETURNS.is_on() {
            let again = self.walks(&polished, &RESTART_TEMPERATURES.get(), share, first + 1);
            polished.extend(self.polished(&again, share, self.piece));
        }
        found.extend(polished);
        found.sort();
        found.dedup();
        let crossed = self.crossed(&found);
        found.extend(crossed);
        let exchanged = self.exchanged(&found[..found.len().min(ELITE.get())], share, self.piece);
        found.extend(exchanged);
        found.sort();
        found.dedup();
        found
    }

    /// The best of the choices, with parts of the step taken from others where that is better.
    fn crossed(&self, found: &[Found]) -> Option<Found> {
        if !CROSSOVER.is_on() {
            return None;
        }
        let ((least, manner, best), others) = found[..found.len().min(CROSSOVER_POOL.get())].split_first()?;
        let (mut least, mut choice, n) = (*least, best.clone(), best.len());
        let mut memory = Memory::default();
        for parts in CROSSOVER_PARTS.get() {
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

    /// Improves each of the choices, in parallel.
    fn each(&self, choices: &[Found], better: impl Fn(Found) -> Found + Sync) -> Vec<Found> {
        each(choices.iter().cloned(), better)
    }

    /// Each of the choices, polished by its makespan with pieces of the given size.
    fn polished(&self, choices: &[Found], evaluations: usize, piece: u64) -> Vec<Found> {
        if !POLISH.is_on() {
            return choices.to_vec();
        }
        self.each(choices, |one| self.polish(one, evaluations, piece, &FATES))
    }

    /// The plan of the best of the choices after the search for places of recomputed operators.
    fn placed(&self, found: &[(Found, Plan)]) -> Option<Plan> {
        let choices: Vec<Found> = found.iter().take(ELITE.get()).map(|(choice, _)| choice.clone()).collect();
        let places: Vec<Fate> = Fate::placed().collect();
        let fates = [&FATES[..], &places].concat();
        let evaluations = self.evaluations / WALK_SHARE.get() / 2;
        let starts =
            choices.iter().cycle().zip(TEMPERATURES.get()).map(|(start, heat)| (start.clone(), heat));
        let walk = |(start, heat)| self.anneal(start, evaluations, heat, (Rng::new(heat), &places));
        let mut placed = each(starts, walk);
        placed.extend(choices);
        placed.sort();
        placed.truncate(ELITE.get());
        for piece in [self.piece, self.final_piece] {
            let polished = self.each(&placed, |one| self.polish(one, evaluations, piece, &fates));
            placed.extend(polished);
        }
        let (_, plan) = self.finished(placed).into_iter().next()?;
        Some(self.refined(plan))
    }

    /// The choice after changes of whole classes and of single candidates as long as these gain.
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
        // Number of consecutive changes without gain.
        let (mut at, mut in_vain, mut evaluated) = (0, 0, 0);
        while in_vain < changes.len() && evaluated < evaluations && !self.follow.is_ended() {
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

    /// Each of the choices after exchanges, by its makespan with pieces of the given size.
    fn exchanged(&self, choices: &[Found], evaluations: usize, piece: u64) -> Vec<Found> {
        if !EXCHANGE.is_on() {
            return choices.to_vec();
        }
        self.each(choices, |one| self.exchange(one, evaluations, piece))
    }

    /// The choice after exchanges as long as these gain: a recomputed candidate is kept, and one or two others, together
    /// cheaper, are recomputed in its place.
    fn exchange(&self, (mut least, manner, mut choice): Found, evaluations: usize, piece: u64) -> Found {
        let mut memory = Memory::default();
        if piece != self.piece {
            least = self.makespan(&mut memory, &choice, manner, piece);
        }
        let mut left = evaluations;
        let mut is_better = true;
        while std::mem::take(&mut is_better) {
            for (kept, again) in self.exchanges(&choice, left) {
                if self.follow.is_ended() {
                    break;
                }
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

    /// The choices that walks and exchanges with time-aware eviction sets find from the best choices, after several rounds if
    /// these are near the bound.
    fn in_time(&self, mut found: Vec<Found>, is_near: bool) -> Vec<Found> {
        if !TIME_AWARE.is_on() {
            return Vec::new();
        }
        let evaluations = self.evaluations / TIME_AWARE_SHARE.get();
        found.truncate(ELITE.get());
        found = self.each(&found, |(_, _, choice)| {
            let makespan = self.makespan(&mut Memory::default(), &choice, Manner::InTime, self.piece);
            (makespan, Manner::InTime, choice)
        });
        found.sort();
        for round in 0..if is_near && !self.follow.is_ended() { TIME_AWARE_ROUNDS.get() } else { 1 } {
            let walked = self.walks(&found, &TIME_AWARE_TEMPERATURES.get(), evaluations, round);
            found.extend(walked);
            found.sort();
            found.dedup();
            found.truncate(ELITE.get());
            if round % 2 == 1 || !is_near {
                found = self.exchanged(&found, evaluations / TIME_AWARE_STEPS.get(), self.piece);
                found.sort();
            }
        }
        found
    }

    /// Pairs of a candidate to keep and candidates to recompute in its place, one before two: the most expensive first,
    /// replaced by the cheapest per byte, at most `most`.
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
            // If most cost the same, few pairs are cheaper: only candidates that are cheaper together with the cheapest of
            // all are paired.
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

    /// The best choices of annealing walks from these starts, each with its temperature, the best first.
    fn walks(&self, starts: &[Found], heats: &[u64], evaluations: usize, round: u64) -> Vec<Found> {
        let walk = |(start, &heat): (Found, &u64)| {
            self.anneal(start, evaluations, heat, (Rng::new(heat + round), &[]))
        };
        let mut found = each(starts.iter().cloned().zip(heats), walk);
        found.sort();
        found
    }

    /// Rewrites the problem for the choice; false if its operators take longer than `most_nanos`.
    fn rewrite(&self, choice: &Choice, most_nanos: u64, into: &mut Rewritten) -> bool {
        let (mut dropped, mut lasting, mut renewed) = (Vec::new(), Vec::new(), Vec::new());
        for (candidate, &fate) in self.candidates.iter().zip(choice.iter()) {
            match (candidate.dropped, fate) {
                (Some(window), fate) => dropped.extend(fate.of(window)),
                (None, Fate::Kept) => lasting.push(candidate.tensor),
                (None, Fate::Renewed | Fate::RenewedEarly(_)) => renewed.push(candidate.tensor),
                (None, _) => {}
            }
        }
        dropped.sort_unstable();
        let dead = Dead { lasting: &lasting, renewed: &renewed, reach: choice.reach };
        self.remat.rewrite_within(&dropped, dead, most_nanos, into)
    }

    /// The makespan of the choice; `u64::MAX` if it does not fit.
    fn makespan(&self, memory: &mut Memory, choice: &Choice, manner: Manner, piece: u64) -> u64 {
        self.evaluate(memory, choice, manner, piece, u64::MAX).map_or(u64::MAX, |found| found.makespan)
    }

    /// Evaluates the choice, unless its operators alone take longer than the limit, or the search was ended.
    fn evaluate(
        &self,
        memory: &mut Memory,
        choice: &Choice,
        manner: Manner,
        piece: u64,
        limit: u64,
    ) -> Option<Evaluated> {
        if self.follow.is_ended() {
            return None;
        }
        let Memory { simulator, rewritten, met } = memory;
        self.rewrite(choice, limit, rewritten).then_some(())?;
        let digest = digest(rewritten, manner, piece);
        met.insert(digest);
        if let Some(known) = self.known().get(&digest)
            && (known.evaluated.is_some() || limit <= known.limit)
        {
            return known.evaluated.clone();
        }
        self.follow.evaluated();
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
        let absences = swap_set::cover(&rewritten.problem, &uses, self.budget, piece, manner).ok()?;
        let acts = Acts::of_uses(&rewritten.problem, &uses, &absences);
        let makespan = justified_within(simulator, &acts, &acts.eager(), self.budget, limit).ok()??;
        let mut away: SecondaryMap<TensorId, bool> = SecondaryMap::with_capacity(self.problem.tensors.len());
        absences.pieces.values().for_each(|piece| away[rewritten.tensor_origin[piece.tensor]] = true);
        let travels = self.candidates.iter().map(|c| away[c.tensor]).collect();
        Some(Evaluated { makespan, travels })
    }

    /// The best choice of an annealing walk.
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
        let steps = if manner == Manner::InTime { TIME_AWARE_STEPS.get() } else { 1 };
        let (all, mut spent) = (evaluations * steps, 0);
        while n > 0 && here.0 < u64::MAX && spent < all && !self.follow.is_ended() {
            let heat = cooled(hottest, spent, all);
            spent += 1;
            let mut next = here.1.clone();
            if fates.is_empty() || rng.chance(50) {
                self.change(&mut next, &travels, &mut rng)
            } else {
                self.place(&mut next, fates, &mut rng)
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

    /// The plan of a choice, in small pieces or in those of the search, whichever is better.
    fn finish(&self, (_, manner, choice): &Found) -> Option<Plan> {
        let mut rewritten = Rewritten::default();
        self.rewrite(choice, u64::MAX, &mut rewritten).then_some(())?;
        let Rewritten { problem, op_origin, tensor_origin } = rewritten;
        let in_pieces = |piece| swap_only::covered(&problem, self.budget, piece, *manner).ok();
        let mut pieces = vec![self.final_piece, self.piece];
        pieces.dedup();
        let found = pieces.into_iter().filter_map(in_pieces);
        let schedule = found.min_by_key(Schedule::makespan)?;
        Some(Plan { problem, op_origin, tensor_origin, schedule })
    }

    /// The best of one schedule of each manner, and of some of the best manner with other pieces.
    fn fewer_swaps(&self, problem: &Problem) -> Option<Schedule> {
        let covered = |manner, piece| {
            let schedule = swap_only::covered(problem, self.budget, piece, manner).ok()?;
            Some((schedule.makespan(), manner, schedule))
        };
        let first = Manner::ALL.into_iter().filter_map(|manner| covered(manner, self.final_piece));
        let best = first.min_by_key(|found| (found.0, found.1))?;
        let manner = best.1;
        let others = OTHER_PIECES.get().into_iter();
        let others =
            others.filter_map(|pieces| covered(manner, piece_of(self.problem, self.granularity, pieces)));
        others.chain([best]).min_by_key(|found| found.0).map(|(.., schedule)| schedule)
    }

    /// Refines the plans; with many operators only the best.
    fn refine(&self, found: &mut [(Found, Plan)]) {
        let few = if self.problem.ops.len() > MANY_OPERATORS.get() { 1 } else { found.len() };
        for (_, plan) in found.iter_mut().take(few) {
            *plan = self.refined(std::mem::replace(plan, Plan::without_copies(self.problem)));
        }
    }

    /// The plan with a swap set chosen anew with regard to copy times, if that is better; not in a huge step, where it gains
    /// nothing.
    fn refined(&self, plan: Plan) -> Plan {
        if !REFINEMENT.is_on() || is_huge(self.problem) {
            return plan;
        }
        let swaps = if self.decides_by_layer {
            self.fewer_swaps(&plan.problem)
        } else {
            swap_only::swaps(&plan.problem, self.budget, self.final_piece).ok()
        };
        match swaps.filter(|swaps| swaps.makespan() < plan.schedule.makespan()) {
            Some(schedule) => Plan { schedule, ..plan },
            None => plan,
        }
    }
}

/// Numbers of pieces of the peak that are tried for the best manner of a problem with many operators.
const OTHER_PIECES: Tunable<[u64; 8]> = Tunable::new([150, 600, 300, 1000, 2000, 450, 800, 3000]);

/// Whether layers are decided before single tensors: where variables leave, and in problems of many operators. A search over
/// single tensors has enough evaluations for all others.
fn decides_by_layer(problem: &Problem, part: Part) -> bool {
    part != Part::Whole || problem.ops.len() > MANY_OPERATORS.get()
}

/// Buffers that consecutive evaluations reuse.
#[derive(Default)]
struct Memory {
    simulator: Simulator,
    rewritten: Rewritten,
    /// Digests of the problems evaluated.
    met: HashSet<u64>,
}

#[derive(Clone)]
struct Evaluated {
    makespan: u64,
    /// For each candidate, whether any of its bytes are swapped.
    travels: Vec<bool>,
}

/// The result of an evaluation with a limit.
struct Known {
    evaluated: Option<Evaluated>,
    limit: u64,
}

/// Identifies an evaluation.
fn digest(rewritten: &Rewritten, manner: Manner, piece: u64) -> u64 {
    let mut hasher = foldhash::quality::FixedState::default().build_hasher();
    (manner as u8, piece, &rewritten.op_origin).hash(&mut hasher);
    rewritten.problem.ops.iter().for_each(|op| op.reads.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use lmsc_schedule::{Watch, check};
    use lmsc_testing::random::problem;

    use super::*;

    #[test]
    fn a_search_tells_its_progress_and_ends_when_asked() {
        let mut compared = 0;
        for seed in 0..40 {
            let problem = problem(&mut Rng::new(seed), 24);
            let (floor, peak) =
                (problem.floor().1, problem.live_by_moment(&problem.uses()).into_iter().max().unwrap());
            let budget = floor + (peak - floor) / 3;
            let request = Request { recompute: true, effort: 5, ..Request::new(&problem, budget) };
            let Ok(alone) = plan(&request) else { continue };
            let watch = Watch::default();
            let followed = plan(&Request { watch: Some(&watch), ..request }).unwrap();
            assert_eq!(followed.schedule.steps, alone.schedule.steps, "seed {seed}");
            let ended = Watch::default();
            ended.end();
            let early = plan(&Request { watch: Some(&ended), ..request }).unwrap();
            check(&early.problem, &early.schedule, budget)
                .unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}"));
            assert!(early.schedule.makespan() >= alone.schedule.makespan(), "seed {seed}");
            if let Some(best) = watch.progress().best_nanos {
                assert!(best >= alone.schedule.makespan(), "seed {seed}");
                compared += 1;
            }
        }
        assert!(compared > 10, "{compared}");
    }

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
                if let Some(swapping) = makespan(swap_only::plan(&request)) {
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
