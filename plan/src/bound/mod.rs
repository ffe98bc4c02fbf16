//! Times that no plan can beat, with certificates that prove them.
//!
//! Every bound keeps the order of the operators. It returns a [`Certificate`], which [`certify`] checks by itself:
//! it knows what the certificate's words mean and nothing of how it was found. All numbers are integers, and
//! rounding is always downwards.

mod certify;
mod joint;
mod line;
mod paper;
mod prices;
mod swap;
#[cfg(test)]
mod tests;
mod whole;

use serde::{Deserialize, Serialize};

use crate::planners::{Granularity, Request};

pub use certify::{NotProven, certify};
pub use joint::joint;
pub use paper::paper;
pub(crate) use prices::losing;
pub use prices::prices;
pub use swap::swap;
pub use whole::whole;

/// The best bound on all plans of the kind that the request asks for.
///
/// Prices are looked at where plans only swap and variables may leave: in other steps of full size they proved at most 0.2 % more.
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

/// A bound on all plans of the kind that the request asks for, found in a fraction of the time that [`best`] takes.
pub fn quick(request: &Request) -> Certificate {
    let Request { problem, budget, .. } = *request;
    match (request.recompute, request.granularity) {
        (true, _) => joint(problem, budget),
        (false, Granularity::Whole) => whole(problem, budget),
        (false, Granularity::Ranges) => swap(problem, budget),
    }
}

/// A proof that plans of some kind take at least so many nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// What is proven.
    pub nanos: u64,
    /// Why it is so.
    pub proof: Proof,
}

impl Certificate {
    /// Whether a makespan is at most 0.5 % above the bound: a longer search could gain little.
    pub fn is_close(&self, makespan: u64) -> bool {
        makespan <= self.nanos + self.nanos / 200
    }
}

/// Why no plan of some kind is faster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Proof {
    /// For every plan that only swaps: what must be copied at a place, in both directions.
    Paper {
        /// The place; none where all operators together take longer.
        at: Option<Place>,
    },
    /// For every plan that only swaps: what lies before the end.
    Swap {
        /// What shows when places start, in their order; links only.
        facts: Vec<Fact>,
    },
    /// For every plan that only swaps: what lies between an operator and itself in the next step.
    Around {
        /// The operator's tick. Places are in the order from here to here: those before it are of the next step.
        tick: u32,
        /// As in [`Proof::Swap`]; before the tick's own operator is before that of the next step, and after it is after
        /// that of this.
        facts: Vec<Fact>,
    },
    /// For every plan that only swaps: what room on the device and time on the link are worth.
    ///
    /// Edges are the start, then the start and the end of each operator, then the end; stretches lie between them: a pause,
    /// an operator, a pause, and so on to the last pause.
    Prices {
        /// Of bytes that are away at an edge, in nanoseconds for 2^32 of them, by edge.
        memory: Vec<Price>,
        /// Of time in which the link copies out, in 2^-32 of itself, each from its stretch to the next that is named; both ways
        /// on a half-duplex link. In pauses both ways cost no more than the time together.
        out: Vec<Price>,
        /// Of time in which the link copies in; none on a half-duplex link.
        back: Vec<Price>,
    },
    /// For every plan that swaps whole tensors only: what lies before a place ends, and what lies after.
    Whole {
        /// The place.
        at: Place,
        /// What shows when places start, in their order, up to this.
        before: Vec<Fact>,
        /// What shows how long the step lasts after places, from the last to this.
        after: Vec<Fact>,
    },
    /// For every plan that swaps and recomputes: the same, and what can be traded at the place.
    Joint {
        /// The place: an operator, or one at which nothing is traded.
        at: Place,
        /// As in [`Proof::Whole`], links only, where what can be computed again is away for nothing.
        before: Vec<Fact>,
        /// As `before`, from the end.
        after: Vec<Fact>,
        /// How many of the bytes that do not fit are computed again: all cases. None where nothing is traded.
        intervals: Vec<Interval>,
    },
}

/// A price of [`Proof::Prices`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Of which edge, or from which stretch on, from 0.
    pub at: u32,
    /// How much.
    pub price: u64,
}

/// A case of [`Proof::Joint`]: so many bytes or more, up to the next interval, are computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The least number of bytes of the case.
    pub recomputed: u64,
    /// The price of bytes that shows how long that takes, in nanoseconds for 2^32 of them.
    pub price: u64,
}

/// Copies that take time before a place starts, or after it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fact {
    /// Between two places.
    Link(Link),
    /// Of the best set of whole tensors that can move for what is away at the place.
    Whole {
        /// The place, as in [`Link::at`].
        at: Place,
        /// The bytes to multiples of which sizes are rounded.
        quantum: u64,
    },
}

/// A part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Before the first operator, with all that is given.
    Start,
    /// The operator of the tick.
    Op(u32),
    /// After the last operator, with all that is kept.
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

/// Copies that lie between two places.
///
/// At the place `at`, only so many bytes fit besides what cannot be away. Of the tensors that can be away there and
/// whose copies in this direction start no sooner than `after` ends and end no later than `before` starts, the rest
/// is copied between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// In which direction.
    pub way: Way,
    /// Where the tensors are away: at `before` if they leave, at `after` if they come back; at the start for
    /// variables that leave before the end, at the end for variables that come before their first use.
    pub at: Place,
    /// The copies start after it.
    pub after: Place,
    /// The copies end before it.
    pub before: Place,
}
