//! The planners of this project: `auto`, which swaps and recomputes, and `swap-only`.

mod annealing;
pub(crate) mod auto;
mod justified;
pub mod lanes;
mod mechanisms;
pub mod remat;
pub(crate) mod split;
pub mod swap_only;
pub(crate) mod swap_set;
mod variables;
mod whole;

pub use mechanisms::MECHANISMS;
pub use swap_set::{Manner, pieces_of, travels_whole};
