//! The planners and passes that this build knows. Here alone the feature `papers` makes a difference to planning.

use lmsc_passes::{AnyPlanner, Pass};
use lmsc_plan::planners::Planner;

/// The planners, by name.
#[cfg(feature = "papers")]
pub(crate) use lmsc_papers::ALL as PLANNERS;
#[cfg(not(feature = "papers"))]
pub(crate) use lmsc_passes::OURS as PLANNERS;

/// The passes, in the order in which pipelines run them.
pub(crate) fn passes() -> Vec<&'static dyn Pass> {
    #[cfg(feature = "papers")]
    return lmsc_papers::passes();
    #[cfg(not(feature = "papers"))]
    lmsc_passes::with_passes(&[])
}

/// The planner of problems with this name.
pub(crate) fn planner(name: &str) -> Option<&'static Planner> {
    PLANNERS.named(name).and_then(AnyPlanner::of_problems)
}

/// The planners of all kinds, in their order.
pub(crate) fn planners() -> impl Iterator<Item = AnyPlanner> {
    PLANNERS.iter()
}
