//! The search for the fastest parameters that fit.
//!
//! For each choice of distances, bisection finds the smallest number of tensors that fits: more tensors mostly need less
//! memory and take longer. The distances start from a few fixed choices with several values of `ahead`; from the best of
//! these, one distance at a time is changed as long as that gains.

use std::collections::BTreeSet;

use lmsc_schedule::{DoesNotFit, Plan, Request, Scheduler};

use super::{Candidates, Cost, Distances};
use crate::options::Options;

/// Larger than any distance.
const NEVER: u32 = u32::MAX;

/// Starting points: the best, or nearly the best, for some budget of a convolutional network, a transformer or a U-Net;
/// `threshold`, `branch_threshold` and `fuse_swapins`.
const STARTS: [(u32, u32, u32); 10] = [
    (2, NEVER, 4),
    (2, 3, NEVER),
    (2, 3, 4),
    (2, 5, NEVER),
    (2, 5, 4),
    (2, 7, 4),
    (2, 24, 4),
    (16, 16, NEVER),
    (32, 32, 32),
    (32, NEVER, 4),
];

/// Number of starts from which the search continues.
const CLIMBS: usize = 2;

/// Number of evaluations after which no start is continued, at an effort of 100 percent.
const EVALUATIONS: u64 = 1000;

/// Parameters that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    makespan: u64,
    distances: Distances,
    n_tensors: u32,
}

/// The state of the search.
pub(super) struct Search<'a> {
    request: &'a Request<'a>,
    options: &'a Options,
    candidates: Candidates<'a>,
    tried: BTreeSet<Distances>,
    evaluations: u64,
    best: Option<Found>,
    /// The refusal with the smallest need.
    refusal: Option<DoesNotFit>,
}

impl<'a> Search<'a> {
    pub(super) fn new(request: &'a Request<'a>, options: &'a Options) -> Search<'a> {
        let candidates = Candidates::of(request.problem);
        Search {
            request,
            options,
            candidates,
            tried: BTreeSet::new(),
            evaluations: 0,
            best: None,
            refusal: None,
        }
    }

    /// The plan of the best parameters found.
    pub(super) fn plan(mut self) -> Result<Plan, DoesNotFit> {
        let mut found: Vec<Found> = STARTS.into_iter().filter_map(|start| self.start(start)).collect();
        found.sort_unstable();
        if self.request.scheduler == Scheduler::Paper {
            found.into_iter().take(CLIMBS).for_each(|found| self.climb(found));
        }
        let budget = self.request.budget;
        let refusal = self.refusal.unwrap_or(DoesNotFit { tick: 0, needed: budget, budget });
        let Found { distances, n_tensors, .. } = self.best.ok_or(refusal)?;
        let swaps = self.candidates.chosen(n_tensors, &distances);
        self.candidates.plan(self.request, &swaps, distances.ahead)
    }

    /// The best parameters with these distances, over powers of four for `ahead`.
    fn start(&mut self, (threshold, branch_threshold, fuse_swapins): (u32, u32, u32)) -> Option<Found> {
        let mut best = None;
        let mut ahead = 1;
        while ahead <= self.request.problem.ticks().max(1) {
            best = self.better(best, Distances { ahead, threshold, branch_threshold, fuse_swapins });
            if self.request.scheduler == Scheduler::Justified {
                // Justified copies do not depend on their triggers.
                break;
            }
            ahead = ahead.saturating_mul(4);
        }
        best
    }

    /// Changes one distance at a time as long as that gains.
    fn climb(&mut self, mut at: Found) {
        let limit = EVALUATIONS * u64::from(self.request.effort) / 100;
        let ticks = self.request.problem.ticks();
        let fields: [fn(&mut Distances) -> &mut u32; 4] =
            [|d| &mut d.ahead, |d| &mut d.threshold, |d| &mut d.branch_threshold, |d| &mut d.fuse_swapins];
        loop {
            let before = at.makespan;
            for field in fields {
                for change in 0..6 {
                    if self.evaluations >= limit {
                        return;
                    }
                    let mut distances = at.distances;
                    let value = (*field(&mut distances)).min(ticks);
                    let changed = [
                        value / 2,
                        value - value / 4,
                        value.saturating_sub(1),
                        value + 1,
                        value + value / 4 + 1,
                        2 * value,
                    ];
                    *field(&mut distances) = changed[change].min(ticks);
                    at = self.better(Some(at), distances).unwrap_or(at);
                }
            }
            if at.makespan == before {
                return;
            }
        }
    }

    /// These distances with the fewest tensors that fit, if they are faster than `known`; otherwise `known`.
    fn better(&mut self, known: Option<Found>, distances: Distances) -> Option<Found> {
        let distances = distances.with(self.options);
        // No plan is shorter than the operators themselves.
        let least = self.request.problem.compute_nanos();
        let done = self.best.is_some_and(|best| best.makespan <= least);
        if done || !self.tried.insert(distances) {
            return known;
        }
        match self.fewest(known, distances) {
            Some(found) if known.is_none_or(|known| found.makespan < known.makespan) => {
                if self.best.is_none_or(|best| found.makespan < best.makespan) {
                    self.best = Some(found);
                }
                Some(found)
            }
            _ => known,
        }
    }

    /// These distances with the fewest tensors that fit; nothing if none fit or if they cannot beat `known`.
    fn fewest(&mut self, known: Option<Found>, distances: Distances) -> Option<Found> {
        let budget = self.request.budget;
        let all = self.candidates.swaps.len() as u32;
        let given = self.options.n_tensors.map(|n| n.min(all));
        let (mut fewest, mut most) = given.map_or((0, all), |n| (n, n));
        let mut makespan = None;
        if let Some(known) = known {
            let cost = self.cost(known.n_tensors, &distances);
            if cost.peak <= budget {
                (most, makespan) = (known.n_tensors, Some(cost.makespan));
            } else if cost.makespan >= known.makespan {
                return None;
            } else {
                fewest = known.n_tensors.min(most);
            }
        }
        if makespan.is_none() {
            let cost = self.cost(most, &distances);
            if cost.peak > budget {
                let refusal = DoesNotFit { tick: cost.peak_tick, needed: cost.peak, budget };
                if self.refusal.is_none_or(|least| refusal.needed < least.needed) {
                    self.refusal = Some(refusal);
                }
                return None;
            }
            makespan = Some(cost.makespan);
        }
        while fewest < most {
            let middle = fewest.midpoint(most);
            let cost = self.cost(middle, &distances);
            if cost.peak <= budget {
                (most, makespan) = (middle, Some(cost.makespan));
            } else {
                fewest = middle + 1;
            }
        }
        if self.request.scheduler == Scheduler::Justified {
            let swaps = self.candidates.chosen(most, &distances);
            makespan = self.candidates.justified(self.request, &swaps).ok().map(|outcome| outcome.makespan());
        }
        makespan.map(|makespan| Found { makespan, distances, n_tensors: most })
    }

    fn cost(&mut self, n_tensors: u32, distances: &Distances) -> Cost {
        self.evaluations += 1;
        let swaps = self.candidates.chosen(n_tensors, distances);
        self.candidates.cost(self.request, &swaps, distances.ahead)
    }
}
