//! A search seen from outside: how far it is, and whether it is to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// What a search has found so far, written by the planner and read by another thread, which may end the search.
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
