//! Swapping and recomputation together: a search for what to compute twice, with the best swapping for each choice.
//!
//! A choice says which tensors are dropped after their last use in the forward phase and made anew in the
//! backward phase ([`crate::remat`]). For each, what does not fit then is swapped as [`super::optimal`] does. The
//! search starts from choices of known shapes (the cheapest for their bytes, a stretch of cheap ones, segments
//! between cuts), anneals the best of them, and keeps the best found. It counts evaluations, never time.

use std::cmp::Reverse;

use cranelift_entity::SecondaryMap;
use lmsc_ir::Phase;
use lmsc_ir::rng::{Rng, Source};

use super::{DoesNotFit, Granularity, Plan, Request, optimal};
use crate::problem::{Problem, TensorId};
use crate::remat::{Dropped, Rematerializer, Rewritten};
use crate::schedule::{Acts, ROUNDS, Schedule, Simulator, justify};

/// While searching, so many pieces make the peak.
const SEARCH_PIECES: u64 = 150;

/// Justification rounds while searching; further ones rarely gain.
const SEARCH_ROUNDS: usize = 1;

/// Choices from which annealing starts.
const STARTS: usize = 4;

/// The heat at which annealing starts is one part in so many of the time of all operators: about what one more
/// recomputed operator costs.
const HEAT: u64 = 1400;

/// Tensors below this many bytes are not worth a choice.
const SMALLEST: u64 = 1 << 16;

/// The best plan found.
///
/// # Errors
/// [`DoesNotFit`] if an operator's own tensors, with what may not leave, exceed the budget.
pub fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    let swapping = optimal::plan(&Request { recompute: false, ..*request })?;
    if !request.recompute || swapping.schedule.makespan() == request.problem.compute_nanos() {
        return Ok(swapping);
    }
    let remat = Rematerializer::new(request.problem);
    let search = Search::new(&remat, request);
    let best = search.run().into_iter().map(|choice| search.finish(&choice));
    Ok(best.flatten().chain([swapping]).min_by_key(|plan| plan.schedule.makespan()).expect("one at least"))
}

/// What happens to a [`Candidate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Fate {
    /// It stays, or is swapped.
    #[default]
    Kept,
    /// It is made anew when something first needs it, and stays.
    Dropped,
    /// It is made anew for each that needs it.
    DroppedAgain,
}

/// By candidate, its fate.
type Choice = Vec<Fate>;

/// A tensor that could be made anew for the backward phase.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    dropped: Dropped,
    /// What making it anew takes, with what it reads and is no longer there.
    nanos: u64,
    bytes: u64,
    kind: u32,
    producer: u32,
}

struct Search<'a> {
    remat: &'a Rematerializer<'a>,
    problem: &'a Problem,
    budget: u64,
    piece: u64,
    final_piece: u64,
    /// By tick of the producer.
    candidates: Vec<Candidate>,
    /// Indices of candidates, the cheapest for its bytes first, and the other way round.
    by_cost: Vec<u32>,
    rank: Vec<u32>,
    evaluations: usize,
}

impl<'a> Search<'a> {
    fn new(remat: &'a Rematerializer<'a>, request: &Request<'a>) -> Search<'a> {
        let problem = request.problem;
        let candidates = candidates(remat, problem);
        let mut by_cost: Vec<u32> = (0..candidates.len() as u32).collect();
        by_cost.sort_by(|&a, &b| {
            let (a, b) = (&candidates[a as usize], &candidates[b as usize]);
            (u128::from(a.nanos) * u128::from(b.bytes)).cmp(&(u128::from(b.nanos) * u128::from(a.bytes)))
        });
        let mut rank = vec![0; by_cost.len()];
        by_cost.iter().enumerate().for_each(|(place, &i)| rank[i as usize] = place as u32);
        // Time grows with the operators; so many evaluations take seconds whatever their number is.
        let evaluations =
            (6_000_000 / problem.ops.len().max(1)).clamp(1_000, 20_000) * request.effort as usize / 100;
        let piece = |pieces| match request.granularity {
            Granularity::Whole => u64::MAX,
            Granularity::Ranges => optimal::piece_bytes(problem, pieces),
        };
        Search {
            remat,
            problem,
            budget: request.budget,
            piece: piece(SEARCH_PIECES),
            final_piece: piece(optimal::PIECES),
            candidates,
            by_cost,
            rank,
            evaluations,
        }
    }

    /// The best choices found, the best first.
    fn run(&self) -> Vec<Choice> {
        let mut starts: Vec<(u64, Choice)> = Vec::new();
        let mut simulator = Simulator::default();
        for choice in self.starts() {
            let makespan = self.evaluate(&mut simulator, &choice, u64::MAX).map_or(u64::MAX, |e| e.makespan);
            starts.push((makespan, choice));
        }
        starts.sort();
        starts.dedup();
        starts.truncate(STARTS);
        let share = self.evaluations / starts.len().max(1);
        let mut found: Vec<(u64, Choice)> = std::thread::scope(|scope| {
            let walks: Vec<_> = starts
                .into_iter()
                .enumerate()
                .map(|(index, start)| scope.spawn(move || self.anneal(start, share, Rng::new(index as u64))))
                .collect();
            walks.into_iter().map(|walk| walk.join().expect("annealing does not panic")).collect()
        });
        found.sort();
        found.dedup();
        found.into_iter().map(|(_, choice)| choice).collect()
    }

    /// Choices of known shapes.
    fn starts(&self) -> Vec<Choice> {
        let n = self.candidates.len();
        let of = |indices: &mut dyn Iterator<Item = usize>| {
            let mut choice = vec![Fate::Kept; n];
            indices.for_each(|i| choice[i] = Fate::Dropped);
            choice
        };
        let mut starts = vec![of(&mut std::iter::empty())];
        for step in 1..=24 {
            starts.push(of(&mut self.by_cost[..n * step / 24].iter().map(|&i| i as usize)));
        }
        let link = self.problem.link;
        let is_cheap = |&i: &usize| {
            let c = &self.candidates[i];
            2 * c.nanos < link.out_nanos(c.bytes).max(link.in_nanos(c.bytes))
        };
        let cheap: Vec<usize> = (0..n).filter(is_cheap).collect();
        for step in 1..=10 {
            let count = cheap.len() * step / 10;
            starts.push(of(&mut cheap[..count].iter().copied()));
            starts.push(of(&mut cheap[cheap.len() - count..].iter().copied()));
        }
        for segments in (1..=64).step_by(3) {
            let cuts = self.cuts(segments);
            let inside = |&i: &usize| {
                let c = &self.candidates[i];
                !cuts.iter().any(|&cut| c.producer < cut && cut < c.dropped.window.from)
            };
            starts.push(of(&mut (0..n).filter(inside)));
        }
        starts
    }

    /// Ticks that cut the forward phase into so many segments of about the same bytes, where few tensors cross.
    fn cuts(&self, segments: u64) -> Vec<u32> {
        let ticks = self.problem.ticks() as usize;
        let mut crossing = vec![0i64; ticks + 1];
        let mut produced = vec![0u64; ticks + 1];
        for c in &self.candidates {
            produced[c.producer as usize] += c.bytes;
            crossing[c.producer as usize + 1] += c.bytes as i64;
            crossing[c.dropped.window.from as usize] -= c.bytes as i64;
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

    fn rewrite(&self, choice: &Choice) -> Rewritten {
        let chosen = self.candidates.iter().zip(choice).filter(|(_, fate)| **fate != Fate::Kept);
        let mut dropped: Vec<Dropped> =
            chosen.map(|(c, fate)| Dropped { again: *fate == Fate::DroppedAgain, ..c.dropped }).collect();
        dropped.sort_unstable();
        self.remat.rewrite(&dropped)
    }

    /// What the choice costs, unless its operators alone take longer than the limit.
    fn evaluate(&self, simulator: &mut Simulator, choice: &Choice, limit: u64) -> Option<Evaluated> {
        let rewritten = self.rewrite(choice);
        if rewritten.problem.compute_nanos() > limit {
            return None;
        }
        let absences = optimal::cover(&rewritten.problem, self.budget, self.piece).ok()?;
        let acts = Acts::of(&rewritten.problem, &absences);
        let (_, times) = justify(simulator, &acts, &acts.order, self.budget, SEARCH_ROUNDS).ok()?;
        let mut away: SecondaryMap<TensorId, bool> = SecondaryMap::with_capacity(self.problem.tensors.len());
        absences.pieces.values().for_each(|piece| away[rewritten.tensor_origin[piece.tensor]] = true);
        let travels = self.candidates.iter().map(|c| away[c.dropped.window.tensor]).collect();
        Some(Evaluated { makespan: times.makespan, travels })
    }

    /// The best choice met on a walk that also goes uphill, less and less.
    fn anneal(&self, start: (u64, Choice), evaluations: usize, mut rng: Rng) -> (u64, Choice) {
        let n = self.candidates.len();
        let mut simulator = Simulator::default();
        let mut here = start.clone();
        let mut best = start;
        let mut travels = vec![true; n];
        let hottest = self.problem.compute_nanos() / HEAT;
        for step in 0..evaluations {
            if n == 0 || here.0 == u64::MAX {
                break;
            }
            let mut next = here.1.clone();
            self.change(&mut next, &travels, &mut rng);
            let heat = u128::from(hottest) * (evaluations - step) as u128 / evaluations as u128;
            let limit = here.0 + ((heat * u128::from(exponential(rng.word()))) >> 20) as u64;
            let Some(evaluated) = self.evaluate(&mut simulator, &next, limit) else { continue };
            if evaluated.makespan <= limit {
                here = (evaluated.makespan, next);
                travels = evaluated.travels;
                if here.0 < best.0 {
                    best.clone_from(&here);
                }
            }
        }
        best
    }

    /// Changes the choice a little, at random.
    fn change(&self, choice: &mut Choice, travels: &[bool], rng: &mut Rng) {
        let n = choice.len();
        let flip = |fate: &mut Fate| *fate = if *fate == Fate::Kept { Fate::Dropped } else { Fate::Kept };
        let one_of = |rng: &mut Rng| if rng.chance(50) { Fate::Dropped } else { Fate::Kept };
        match rng.below(9) {
            // Neighbours in cost.
            0 => {
                let at = rng.below(n);
                let end = (at + 1 + rng.below(4)).min(n);
                self.by_cost[at..end].iter().for_each(|&i| flip(&mut choice[i as usize]));
            }
            // A stretch of the network.
            1 => {
                let (at, fate) = (rng.below(n), one_of(rng));
                let end = (at + 3 + rng.below(12)).min(n);
                choice[at..end].fill(fate);
            }
            // Operators of one kind, one after the other.
            2 => {
                let (at, fate) = (rng.below(n), one_of(rng));
                let kind = self.candidates[at].kind;
                let same = (at..n).filter(|&i| self.candidates[i].kind == kind);
                same.take(2 + rng.below(8)).for_each(|i| choice[i] = fate);
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
            5 => self.add(choice, travels, rng),
            6 => self.take_away(choice, rng),
            _ => {
                self.add(choice, travels, rng);
                self.take_away(choice, rng);
            }
        }
    }

    /// Drops one of a few that travel now, the cheapest for its bytes.
    fn add(&self, choice: &mut Choice, travels: &[bool], rng: &mut Rng) {
        let few = pick(choice.len(), rng, |i| choice[i] == Fate::Kept && travels[i]);
        few.into_iter().min_by_key(|&i| self.rank[i]).into_iter().for_each(|i| choice[i] = Fate::Dropped);
    }

    /// Keeps one of a few that are dropped now, the dearest for its bytes.
    fn take_away(&self, choice: &mut Choice, rng: &mut Rng) {
        let few = pick(choice.len(), rng, |i| choice[i] != Fate::Kept);
        few.into_iter().max_by_key(|&i| self.rank[i]).into_iter().for_each(|i| choice[i] = Fate::Kept);
    }

    /// The plan of a choice.
    fn finish(&self, choice: &Choice) -> Option<Plan> {
        let Rewritten { problem, op_origin, tensor_origin } = self.rewrite(choice);
        let absences = optimal::cover(&problem, self.budget, self.final_piece).ok()?;
        let acts = Acts::of(&problem, &absences);
        let (order, times) =
            justify(&mut Simulator::default(), &acts, &acts.order, self.budget, ROUNDS).ok()?;
        let schedule: Schedule = acts.schedule(&absences, &order, &times);
        Some(Plan { problem, op_origin, tensor_origin, schedule })
    }
}

/// An exponentially distributed number of mean 1, in units of 2⁻²⁰, from a uniform word.
///
/// In integers, because the last bits of a logarithm differ between machines. -log₂ of the word as a fraction is
/// its leading zeros and one less what follows its first one, which is linear here.
fn exponential(word: u64) -> u64 {
    const LN_2: u64 = 726_817;
    let zeros = u64::from(word.leading_zeros());
    let rest = word.checked_shl(zeros as u32 + 1).unwrap_or(0) >> 44;
    ((((zeros + 1) << 20) - rest) * LN_2) >> 20
}

struct Evaluated {
    makespan: u64,
    /// By candidate, whether any of its bytes were swapped.
    travels: Vec<bool>,
}

/// Two to four indices for which the condition holds, or fewer.
fn pick(n: usize, rng: &mut Rng, fits: impl Fn(usize) -> bool) -> Vec<usize> {
    let tries = 2 + rng.below(3);
    let one = |from: usize| (from..n).chain(0..from).find(|&i| fits(i));
    (0..tries).filter_map(|_| one(rng.below(n))).collect()
}

/// What the forward phase uses last and the backward phase next, if it can be made anew.
fn candidates(remat: &Rematerializer, problem: &Problem) -> Vec<Candidate> {
    let is_forward = |tick: u32| problem.ops[tick as usize].phase == Phase::Forward;
    let mut candidates = Vec::new();
    for window in remat.windows() {
        let bytes = problem.tensors[window.tensor].bytes;
        let Some(producer) = remat.producer(window.tensor) else { continue };
        if bytes >= SMALLEST && is_forward(window.from - 1) && !is_forward(window.until) {
            let nanos = nanos_anew(remat, problem, window.tensor, window.until);
            let kind = problem.ops[producer as usize].kind;
            candidates.push(Candidate {
                dropped: Dropped { window, again: false },
                nanos,
                bytes,
                kind,
                producer,
            });
        }
    }
    candidates.sort_by_key(|c| (c.producer, c.dropped.window.tensor, Reverse(c.dropped.window.until)));
    candidates
}

/// So many operators are looked at for [`nanos_anew`], which is only a measure to sort by.
const LOOK_BACK: usize = 32;

/// The time to make the tensor anew at a tick, with what its producer reads and the source has freed by then.
fn nanos_anew(remat: &Rematerializer, problem: &Problem, tensor: TensorId, tick: u32) -> u64 {
    let mut producers: Vec<u32> = remat.producer(tensor).into_iter().collect();
    let mut next = 0;
    while next < producers.len() && producers.len() < LOOK_BACK {
        let reads = &problem.ops[producers[next] as usize].reads;
        let dead = reads.iter().filter(|&&r| remat.can_repeat(r, tick) && remat.last_use(r) < tick);
        for producer in dead.filter_map(|&r| remat.producer(r)) {
            if !producers.contains(&producer) {
                producers.push(producer);
            }
        }
        next += 1;
    }
    producers.iter().map(|&p| problem.ops[p as usize].nanos).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_numbers_have_mean_and_variance_one() {
        let mut rng = Rng::new(7);
        let numbers: Vec<f64> =
            (0..100_000).map(|_| exponential(rng.word()) as f64 / (1 << 20) as f64).collect();
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / numbers.len() as f64;
        assert!((mean - 1.0).abs() < 0.06 && (variance - 1.0).abs() < 0.06, "{mean} {variance}");
        assert_eq!(exponential(u64::MAX), 0);
        assert!(exponential(0) > 44 << 20);
    }
}
