//! Lower bounds on the makespan of all plans, with certificates that prove them.
//!
//! Every bound keeps the order of the operators. It returns a [`Certificate`], which [`certify`] checks independently: the
//! checker uses only the meaning of the certificate, not the way it was found. Where operators run on several lanes, all proofs but
//! that of a chain are about those that compute, in a problem of their own (`lanes.rs`). All numbers are integers, and rounding is
//! always downwards.

#![forbid(unsafe_code)]

mod certify;
mod joint;
mod lanes;
mod line;
mod paper;
mod present;
mod prices;
mod swap;
#[cfg(test)]
mod tests;
mod whole;

use std::fmt;

use lmsc_schedule::problem::Problem;
use lmsc_schedule::{CLOSE_GAP, Granularity, Request};
use serde::{Deserialize, Serialize};

pub use certify::{NotProven, certify};

/// A bound on the makespan of every plan that swaps, whole tensors or ranges of bytes, and recomputes.
///
/// Evaluates at most a fixed number of operators, each in time proportional to the problem.
pub fn joint(problem: &Problem, budget: u64) -> Certificate {
    lanes::with_lanes(problem, |problem| joint::joint(problem, budget))
}

/// The larger of the total time of all operators and that of the unavoidable copies, as in the paper.
///
/// Valid for every plan that only swaps, and weaker than [`swap()`].
pub fn paper(problem: &Problem, budget: u64) -> Certificate {
    lanes::with_lanes(problem, |problem| paper::paper(problem, budget))
}

/// A bound on the makespan of every plan that only swaps, at least that of [`swap()`].
///
/// Takes up to about a second for 2,000 operators if the budget makes any operator wait for the link, and a few for 5,000.
pub fn prices(problem: &Problem, budget: u64) -> Certificate {
    lanes::with_lanes(problem, |problem| prices::prices(problem, budget))
}

/// A bound on the makespan of every plan that only swaps.
///
/// Its time is proportional to the operators times the windows that contain one; 5,000 operators take some 100 ms.
pub fn swap(problem: &Problem, budget: u64) -> Certificate {
    lanes::with_lanes(problem, |problem| swap::swap(problem, budget))
}

/// A bound on the makespan of every plan that only swaps whole tensors.
///
/// Evaluates at most a fixed number of moments, each for a fixed time, beyond the time of [`swap()`].
pub fn whole(problem: &Problem, budget: u64) -> Certificate {
    lanes::with_lanes(problem, |problem| whole::whole(problem, budget))
}

/// The best bound on all plans of the requested kind.
///
/// Prices are used if plans only swap and variables may be swapped: for other steps of full size they proved at most 0.2 %
/// more.
pub fn best(request: &Request) -> Certificate {
    let Request { problem, budget, .. } = *request;
    if request.recompute || !problem.any_variable_leaves() {
        return quick(request);
    }
    let prices = prices(problem, budget);
    match request.granularity {
        Granularity::Ranges => prices,
        Granularity::Whole => {
            [prices, whole(problem, budget)].into_iter().max_by_key(|c| c.nanos).expect("two")
        }
    }
}

/// A bound on all plans of the requested kind, found in a fraction of the time of [`best`].
pub fn quick(request: &Request) -> Certificate {
    let Request { problem, budget, .. } = *request;
    match (request.recompute, request.granularity) {
        (true, _) => joint(problem, budget),
        (false, Granularity::Whole) => whole(problem, budget),
        (false, Granularity::Ranges) => swap(problem, budget),
    }
}

/// A proof that plans of some kind take at least this number of nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// The proven bound.
    pub nanos: u64,
    /// The proof.
    pub proof: Proof,
}

impl Certificate {
    /// Whether a makespan is at most 0.5 % above the bound.
    pub fn is_close(&self, makespan: u64) -> bool {
        makespan <= self.nanos + self.nanos / CLOSE_GAP.get()
    }
}

/// The reason why no plan of some kind is faster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Proof {
    /// For every plan that only swaps: the bytes that must be copied at a place, in both directions.
    Paper {
        /// The place; none if all operators together take longer.
        at: Option<StepPlace>,
    },
    /// For every plan that only swaps: the operators and copies before the end.
    Swap {
        /// Facts that bound the starts of places, in their order; links only.
        facts: Vec<Fact>,
    },
    /// For every plan that only swaps: the operators and copies between an operator and itself in the next step.
    Around {
        /// The operator's tick. Places are in the order from here to here: those before it belong to the next step.
        tick: u32,
        /// As in [`Proof::Swap`]; "before" the tick's own operator means before that of the next step, and "after" it means
        /// after that of this step.
        facts: Vec<Fact>,
    },
    /// For every plan that only swaps: prices of memory on the device and of time on the link.
    ///
    /// Edges are the start, then the start and the end of each operator, then the end; stretches lie between them: a pause,
    /// an operator, a pause, and so on to the last pause.
    Prices {
        /// Prices of bytes that are absent at an edge, in nanoseconds per 2^32 bytes, by edge.
        memory: Vec<Price>,
        /// Prices of time in which the link copies out, in units of 2^-32, each from its stretch to the next one named; for
        /// both directions on a half-duplex link. In pauses, both directions together cost no more than the time itself.
        out: Vec<Price>,
        /// Prices of time in which the link copies in; none on a half-duplex link.
        back: Vec<Price>,
    },
    /// For every plan that only swaps whole tensors: the operators and copies before a place ends, and those after it.
    Whole {
        /// The place.
        at: StepPlace,
        /// Facts that bound the starts of places, in their order, up to this place.
        before: Vec<Fact>,
        /// Facts that bound the rest of the step after places, from the last to this place.
        after: Vec<Fact>,
    },
    /// For every plan: operators of several lanes each of which waits for the one before it.
    Chain {
        /// Their ticks, ascending. Each reads a result of the one before it, or is on its lane.
        ticks: Vec<u32>,
    },
    /// For every plan that swaps and recomputes: the same, and the trade between the two at the place.
    Joint {
        /// The place: an operator, or any place if nothing is traded.
        at: StepPlace,
        /// As in [`Proof::Whole`], links only, where recomputable tensors may be absent at no cost.
        before: Vec<Fact>,
        /// As `before`, seen from the end.
        after: Vec<Fact>,
        /// Cases by the number of recomputed bytes among those over the budget; they include all cases. None if nothing is
        /// traded.
        intervals: Vec<Interval>,
    },
}

/// A price of [`Proof::Prices`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The edge, or the first stretch, from 0.
    pub at: u32,
    /// The price.
    pub price: u64,
}

/// A case of [`Proof::Joint`]: at least this number of bytes, and fewer than in the next interval, are recomputed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The smallest number of bytes of the case.
    pub recomputed: u64,
    /// The price of bytes that bounds the time of recomputing them, in nanoseconds per 2^32 bytes.
    pub price: u64,
}

/// Copies that take time before a place starts, or after it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fact {
    /// Copies between two places.
    Link(CopyInterval),
    /// Copies of the best set of whole tensors that can be moved for those absent at the place.
    Whole {
        /// The place, as in [`CopyInterval::at`].
        at: StepPlace,
        /// The quantum, in bytes, to whose multiples sizes are rounded.
        quantum: u64,
    },
}

/// A part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepPlace {
    /// Before the first operator, with all given tensors.
    Start,
    /// The operator of the tick.
    Op(u32),
    /// After the last operator, with all kept tensors.
    End,
}

/// The direction of copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// To the host.
    Out,
    /// To the device.
    In,
}

/// Copies between two places.
///
/// At the place `at`, only part of the bytes that can be absent fit beside the bytes that cannot. Of the tensors that can be
/// absent there and whose copies in this direction start no sooner than the end of `after` and end no later than the start of
/// `before`, the bytes that do not fit are copied between the two.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyInterval {
    /// The direction.
    pub way: Way,
    /// The place at which the tensors are absent: `before` for copies out, `after` for copies in; the start for variables
    /// that are copied out before the end, the end for variables that are copied in before their first use.
    pub at: StepPlace,
    /// The copies start after the end of this place.
    pub after: StepPlace,
    /// The copies end before the start of this place.
    pub before: StepPlace,
}

/// As in a certificate, where it is a `link`.
impl fmt::Debug for CopyInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CopyInterval { way, at, after, before } = self;
        f.debug_struct("Link")
            .field("way", way)
            .field("at", at)
            .field("after", after)
            .field("before", before)
            .finish()
    }
}
