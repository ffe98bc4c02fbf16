//! Planners: they choose which tensors are swapped out of device memory, and when. Nothing here changes a graph: planners
//! take one and return a plan, a value that `lmsc-passes` applies.

#![forbid(unsafe_code)]

pub mod address;
pub mod bound;
pub mod bridge;
pub mod chain;
pub mod cost;
pub mod env;
pub mod execution;
mod floors;
pub mod host;
pub mod instance;
pub mod memory;
pub mod offsets;
pub mod order;
pub mod pages;
pub mod planners;
pub mod problem;
#[cfg(any(test, feature = "random"))]
pub mod random;
mod refusal;
pub mod remat;
pub mod saved;
pub mod schedule;
mod segment_tree;
pub mod service;
pub mod target;
pub mod tflms;
pub mod threads;

pub use bridge::Bridge;
pub use cost::Costs;
pub use execution::Execution;
pub use floors::Floors;
pub use memory::Memory;
pub use refusal::Refusal;
pub use target::Target;
