//! A search seen from outside: how far it is, and whether it is to end.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

/// The best result of a search so far, written by the planner and read by another thread, which may end the search.
///
/// A plan depends on it only if the search is ended: then it is the best one found until then.
///
/// ```
/// use lmsc_schedule::Watch;
///
/// let watch = Watch::default();
/// watch.found(3_000);
/// watch.found(2_000);
/// watch.proved(1_900);
/// let progress = watch.progress();
/// assert_eq!((progress.best_nanos, progress.bound_nanos), (Some(2_000), Some(1_900)));
/// watch.end();
/// assert!(watch.is_ended());
/// ```
#[derive(Debug, Default)]
pub struct Watch {
    /// The makespan of the best plan plus one; zero if there is none.
    best: AtomicU64,
    bound: AtomicU64,
    /// The share of the search that is done, in thousandths.
    done: AtomicU32,
    ended: Arc<AtomicBool>,
    /// The decisions in their order, if they are kept.
    decisions: Option<Mutex<Vec<Decision>>>,
}

/// A decision of a planner, or of the search for addresses: an attempt and its result. Times are in nanoseconds of the
/// step; none of them is a time that the search took, so decisions are the same on every machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "decision", rename_all = "kebab-case")]
pub enum Decision {
    /// A round of the search over recomputed and swapped tensors.
    Round {
        /// Whether variables stay on the device in all plans of the round.
        variables_stay: bool,
        /// The percentage of the usual number of evaluations that is made.
        percent: u32,
        /// The makespan of the best plan so far.
        best_nanos: u64,
        /// The time that no plan of the round beats.
        bound_nanos: u64,
        /// Number of operators that the best plan recomputes.
        recomputed: usize,
        /// Bytes that it copies to the host.
        swapped_bytes: u64,
    },
    /// The plan that only swaps, to which others are compared.
    Swaps {
        /// Its makespan.
        nanos: u64,
        /// Bytes that it copies to the host.
        swapped_bytes: u64,
    },
    /// An attempt to give addresses to a plan.
    Addresses {
        /// The makespan without addresses.
        nanos: u64,
        /// The makespan with addresses; none if no addresses were found.
        placed_nanos: Option<u64>,
    },
    /// The plan in pages, which is made where addresses cost much.
    Pages {
        /// Bytes of a page.
        page: u64,
        /// Its makespan; none if there is no plan in pages.
        nanos: Option<u64>,
    },
}

/// How far a search is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// The makespan of the best plan found, in nanoseconds.
    pub best_nanos: Option<u64>,
    /// The time that no plan beats, in nanoseconds, once it is known.
    pub bound_nanos: Option<u64>,
    /// The share of the search that is done, from 0 to 1. A search that finds nothing better ends earlier.
    pub done: f64,
}

impl Watch {
    /// A watch whose search ends once the flag is set.
    pub fn ended_by(flag: Arc<AtomicBool>) -> Watch {
        Watch { ended: flag, ..Watch::default() }
    }

    /// Ends the search; its planner answers with the best plan found so far.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Whether the search is to end.
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Notes a plan with this makespan.
    pub fn found(&self, nanos: u64) {
        let better = |best: u64| (best == 0 || nanos + 1 < best).then_some(nanos + 1);
        _ = self.best.fetch_update(Ordering::Relaxed, Ordering::Relaxed, better);
    }

    /// Notes a time that no plan beats.
    pub fn proved(&self, nanos: u64) {
        self.bound.fetch_max(nanos, Ordering::Relaxed);
    }

    /// Notes that this share of the search is done, in thousandths.
    pub fn done(&self, thousandths: u32) {
        self.done.fetch_max(thousandths.min(1000), Ordering::Relaxed);
    }

    /// The same watch, which keeps the decisions of the search.
    #[must_use]
    pub fn keeping(self) -> Watch {
        Watch { decisions: Some(Mutex::default()), ..self }
    }

    /// Notes a decision, if decisions are kept.
    pub fn decided(&self, decision: impl FnOnce() -> Decision) {
        if let Some(decisions) = &self.decisions {
            decisions.lock().unwrap_or_else(PoisonError::into_inner).push(decision());
        }
    }

    /// The decisions that were kept so far.
    pub fn decisions(&self) -> Vec<Decision> {
        let decisions = self.decisions.as_ref().map(|all| all.lock().unwrap_or_else(PoisonError::into_inner));
        decisions.map_or_else(Vec::new, |all| all.clone())
    }

    /// How far the search is.
    pub fn progress(&self) -> Progress {
        let bound = self.bound.load(Ordering::Relaxed);
        Progress {
            best_nanos: self.best.load(Ordering::Relaxed).checked_sub(1),
            bound_nanos: (bound > 0).then_some(bound),
            done: f64::from(self.done.load(Ordering::Relaxed)) / 1000.0,
        }
    }
}
