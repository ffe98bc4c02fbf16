//! Deciding what leaves device memory and when. Nothing here changes a graph: planners take one and return a
//! plan, a value that `lmsc-passes` applies.

pub mod bridge;
pub mod chain;
pub mod execution;
pub mod instance;
pub mod memory;
pub mod planners;
pub mod problem;
mod refusal;
pub mod schedule;
mod segment_tree;
pub mod tflms;

pub use bridge::Bridge;
pub use execution::Execution;
pub use memory::Memory;
pub use refusal::Refusal;
