//! AutoSwap: takes windows by a weighted sum of four scores, with the best weights found.

use std::collections::BTreeSet;
use std::ops::Range;

use lmsc_schedule::problem::{Problem, Window};
use lmsc_schedule::{DoesNotFit, Plan, Request, Schedule};

use crate::offload;

/// Number of weightings tried at an effort of 100.
const WEIGHTINGS: u64 = 100;

/// The best of the plans in which windows are taken by their scores until every operator fits.
///
/// The scores of a window: its length less the time of its two copies (DOA); that times its bytes (AOA); the excess of memory
/// over the budget during the window, integrated over time (WDOA); and the same after the windows already taken (SWDOA). Each
/// is divided by its largest value. Windows without a moment that still exceeds the budget are skipped.
///
/// # Errors
/// [`DoesNotFit`] if the tensors of an operator together with the unswappable ones exceed the budget.
///
/// # Source
/// Zhang et al., *Efficient memory management for GPU-based deep learning systems*, arXiv:1903.06631, as OPT §6.1 compares
/// it. There the weights come from Bayesian optimization, which makes it "very inconsistent" (OPT §6.2); here they come from
/// a fixed sequence of points. Where the copies take longer than the window, AOA is the missing time divided by the bytes, as
/// in the authors' code (Apache SINGA, `swap_gpu.cc`), whose WDOA is always zero because it is summed up in a copy that is
/// discarded.
pub(crate) fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    let problem = request.problem;
    DoesNotFit::unless_floor_fits(request)?;
    let scores = Scores::new(problem, request.budget);
    let mut tried: BTreeSet<Vec<usize>> = BTreeSet::new();
    let mut best: Option<Schedule> = None;
    for index in 0..(WEIGHTINGS * u64::from(request.effort) / 100).max(1) {
        let choice = scores.choice(weights(index));
        if tried.contains(&choice) {
            continue;
        }
        let windows: Vec<Window> = choice.iter().map(|&c| scores.candidates[c].window).collect();
        tried.insert(choice);
        let found = offload::schedule(request, &windows);
        let better = found.filter(|f| best.as_ref().is_none_or(|b| f.makespan() < b.makespan()));
        best = better.or(best);
    }
    let schedule = best.ok_or_else(|| offload::does_not_fit(request, &[]))?;
    Ok(Plan::without_recomputation(problem, schedule))
}

/// The weights of the scores: DOA, AOA, WDOA, SWDOA.
type Weights = [f64; 4];

/// The weights with this index: each score alone, SWDOA first; then points of the Halton sequence.
fn weights(index: u64) -> Weights {
    match index {
        0..4 => std::array::from_fn(|score| if score as u64 == 3 - index { 1.0 } else { 0.0 }),
        _ => [2, 3, 5, 7].map(|base| halton(index - 3, base)),
    }
}

/// The index's digits in the base, mirrored at the point.
fn halton(mut index: u64, base: u64) -> f64 {
    let (mut value, mut place) = (0.0, 1.0);
    while index > 0 {
        place /= base as f64;
        value += place * (index % base) as f64;
        index /= base;
    }
    value
}

struct Candidate {
    window: Window,
    /// The moments of the window.
    moments: [Range<u32>; 2],
    bytes: u64,
    doa: f64,
    aoa: f64,
    wdoa: f64,
}

struct Scores {
    candidates: Vec<Candidate>,
    /// For each moment, the bytes over the budget if nothing is swapped out.
    excess: Vec<i64>,
    /// For each moment, its duration.
    nanos: Vec<u64>,
    /// Of each score, the largest absolute value.
    largest: Weights,
}

impl Scores {
    /// The scores of every window that contains a moment that does not fit.
    fn new(problem: &Problem, budget: u64) -> Scores {
        let uses = problem.uses();
        let excess = problem.live_by_moment(&uses).into_iter().map(|live| live as i64 - budget as i64);
        let excess: Vec<i64> = excess.collect();
        let nanos: Vec<u64> =
            [0].into_iter().chain(problem.ops.iter().map(|op| op.nanos)).chain([0]).collect();
        let over = Over::new(&excess, &nanos);
        let candidates = problem.windows(&uses).into_iter().filter_map(|window| {
            let moments = window.moments(problem.ticks());
            let bytes = problem.tensors[window.tensor].bytes;
            let long: u64 = moments.iter().flat_map(|r| &nanos[r.start as usize..r.end as usize]).sum();
            let doa =
                long as f64 - problem.link.out_nanos(bytes) as f64 - problem.link.in_nanos(bytes) as f64;
            let aoa = if doa >= 0.0 { doa * bytes as f64 } else { doa / bytes as f64 };
            let wdoa = over.integral(&moments);
            over.somewhere(&moments).then_some(Candidate { window, moments, bytes, doa, aoa, wdoa })
        });
        let candidates: Vec<Candidate> = candidates.collect();
        let most =
            |score: fn(&Candidate) -> f64| candidates.iter().map(|c| score(c).abs()).fold(1.0, f64::max);
        let largest = [most(|c| c.doa), most(|c| c.aoa), most(|c| c.wdoa), most(|c| c.wdoa)];
        Scores { candidates, excess, nanos, largest }
    }

    /// The candidates taken with these weights, by index, ascending.
    fn choice(&self, weights: Weights) -> Vec<usize> {
        let part = |score: usize, value: f64| weights[score] * value / self.largest[score];
        let fixed = self.candidates.iter().map(|c| part(0, c.doa) + part(1, c.aoa) + part(2, c.wdoa));
        let fixed: Vec<f64> = fixed.collect();
        let mut excess = self.excess.clone();
        let mut left: Vec<usize> = (0..self.candidates.len()).collect();
        let mut choice = Vec::new();
        loop {
            let over = Over::new(&excess, &self.nanos);
            left.retain(|&c| over.somewhere(&self.candidates[c].moments));
            let score = |c: usize| fixed[c] + part(3, over.integral(&self.candidates[c].moments));
            let scored = left.iter().map(|&c| (score(c), c));
            let best = scored.max_by(|(s, c), (t, d)| s.total_cmp(t).then(d.cmp(c)));
            let Some((_, best)) = best else { break };
            left.retain(|&c| c != best);
            let Candidate { moments, bytes, .. } = &self.candidates[best];
            for range in moments {
                excess[range.start as usize..range.end as usize].iter_mut().for_each(|e| *e -= *bytes as i64);
            }
            choice.push(best);
        }
        choice.sort_unstable();
        choice
    }
}

/// The excess over the budget, summed up from the start to each moment.
struct Over {
    /// Bytes times nanoseconds.
    integral: Vec<f64>,
    /// Number of moments over the budget.
    count: Vec<u32>,
}

impl Over {
    fn new(excess: &[i64], nanos: &[u64]) -> Over {
        let mut over = Over { integral: vec![0.0; excess.len() + 1], count: vec![0; excess.len() + 1] };
        for (at, (&excess, &nanos)) in excess.iter().zip(nanos).enumerate() {
            over.integral[at + 1] = over.integral[at] + excess.max(0) as f64 * nanos as f64;
            over.count[at + 1] = over.count[at] + u32::from(excess > 0);
        }
        over
    }

    fn integral(&self, moments: &[Range<u32>; 2]) -> f64 {
        moments.iter().map(|r| self.integral[r.end as usize] - self.integral[r.start as usize]).sum()
    }

    /// Whether one of the moments exceeds the budget.
    fn somewhere(&self, moments: &[Range<u32>; 2]) -> bool {
        moments.iter().any(|r| self.count[r.end as usize] > self.count[r.start as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lmsc_planners::chain::Chain;

    fn chain() -> Chain {
        Chain {
            forward_nanos: vec![10; 5],
            backward_nanos: vec![20; 5],
            activation_bytes: vec![10, 40, 20, 30, 10, 10],
            gradient_bytes: vec![0; 6],
            forward_workspace: vec![0; 5],
            backward_workspace: vec![0; 5],
            bytes_per_second: 1_000_000_000,
        }
    }

    #[test]
    fn scores_are_those_of_the_paper() {
        // 100 bytes are needed at F_3, 120 at F_4 and B_4, 110 at B_3.
        let scores = Scores::new(&chain().problem(), 100);
        let of = |i: usize| (scores.candidates[i].doa, scores.candidates[i].aoa, scores.candidates[i].wdoa);
        // x_0 is swapped out from the end of F_0 to the start of B_0, for 120 ns, of which its copies take 20.
        assert_eq!(of(0), (100.0, 1000.0, 10.0 * 10.0 + 20.0 * 10.0 + 20.0 * 20.0 + 10.0 * 20.0));
        // x_3 is swapped out only beside F_4 and B_4, for 30 ns; its copies take 60.
        assert_eq!(of(3), (-30.0, -1.0, 20.0 * 10.0 + 20.0 * 20.0));
        assert_eq!(scores.largest, [100.0, 1000.0, 900.0, 900.0]);
    }

    #[test]
    fn windows_are_taken_until_all_fits() {
        let scores = Scores::new(&chain().problem(), 100);
        // 20 bytes must be saved. DOA is 100 for x_0, which has 10 bytes, then 20 for x_2 and 10 for x_1.
        assert_eq!(scores.choice([1.0, 0.0, 0.0, 0.0]), [0, 2]);
        // WDOA is equal for x_0, x_1 and x_2, which are all swapped out throughout the excess.
        assert_eq!(scores.choice([0.0, 0.0, 1.0, 0.0]), [0, 1]);
        assert_eq!(Scores::new(&chain().problem(), 120).choice([1.0, 0.0, 0.0, 0.0]), [0usize; 0]);
    }

    #[test]
    fn swdoa_looks_at_what_is_still_lacking() {
        let candidate = |tensor, from, until, wdoa| Candidate {
            window: Window { tensor: lmsc_schedule::problem::TensorId::from_u32(tensor), from, until },
            moments: [from..until, 0..0],
            bytes: 8,
            doa: 1.0,
            aoa: 1.0,
            wdoa,
        };
        let candidates = vec![candidate(0, 0, 2, 17.0), candidate(1, 0, 2, 17.0), candidate(2, 1, 3, 12.0)];
        let scores =
            Scores { candidates, excess: vec![8, 9, 3], nanos: vec![1; 3], largest: [1.0, 1.0, 17.0, 17.0] };
        assert_eq!(scores.choice([0.0, 0.0, 1.0, 0.0]), [0, 1, 2]);
        // After the first window, the excess is 1 byte at the second tick and 3 at the third.
        assert_eq!(scores.choice([0.0, 0.0, 0.0, 1.0]), [0, 2]);
    }

    #[test]
    fn weights_are_spread_over_the_cube() {
        assert_eq!(weights(0), [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(weights(4), [1.0 / 2.0, 1.0 / 3.0, 1.0 / 5.0, 1.0 / 7.0]);
        assert_eq!([1, 2, 3, 4, 5].map(|index| halton(index, 2)), [0.5, 0.25, 0.75, 0.125, 0.625]);
    }
}
