//! The planners of this project: `auto`, which swaps and recomputes, and `swap-only`.

mod annealing;
pub mod auto;
#[cfg(any(test, feature = "random"))]
pub mod exact;
mod nudge;
pub mod remat;
pub(crate) mod split;
pub mod swap_only;
pub mod swap_set;
mod variables;
mod whole;
