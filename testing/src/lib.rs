//! Inputs for the tests and benchmarks of every crate; no product depends on it.
//!
//! | module | is |
//! |---|---|
//! | [`training_graph`] | random training graphs |
//! | [`fn@damage`] | changes to a graph, each of which changes its results |
//! | [`random`] | random planning problems |
//! | [`small`] | planning problems written by hand |
//! | [`exact`] | the best plan that swaps whole tensors, by trying every set of windows |
//! | [`cases`] | how many cases a slow test tries |
//!
//! The crates on which this one depends cannot use it in their unit tests, which are another copy of the crate: `lmsc-ir` and
//! `lmsc-schedule` compile these sources once more there.

#![forbid(unsafe_code)]

mod damage;
pub mod exact;
mod graphs;
pub mod random;
pub mod small;
#[cfg(test)]
mod tests;

pub use damage::{Damage, damage};
pub use graphs::{Size, training_graph};
pub use lmsc_ir::rng::{Rng, Source};

/// How many cases a slow test tries: `few` in `cargo test`; `many` where `LMSC_THOROUGH` is set, as in the gate of CI;
/// `all` where its value is `all`, as in the weekly run.
pub fn cases<T>(few: T, many: T, all: T) -> T {
    match std::env::var("LMSC_THOROUGH").as_deref() {
        Err(_) => few,
        Ok("all") => all,
        Ok(_) => many,
    }
}
