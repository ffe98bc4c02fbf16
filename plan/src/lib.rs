//! Decides which tensors leave device memory, and when. Nothing here changes a graph: planners return a plan, a value that
//! `lmsc-passes` applies.
//!
//! This crate is the side of planning that knows graphs: a [`Bridge`] makes a [`problem`] of a graph, [`service::plan`] answers a
//! question about it, [`memory`] and [`order`] look at the graph itself, [`ranks`] makes the step of one of several ranks. The rest is in
//! crates of its own, which know only problems and are named here, too:
//!
//! | module | is |
//! |---|---|
//! | [`problem`], [`schedule`] | operators with times, tensors with bytes, a link; times of all activities; edges, replays, a checker |
//! | [`cost`], [`target`] | how long operators and copies take |
//! | [`bound`] | times that no plan beats, with certificates |
//! | [`address`], [`pages`], [`offsets`] | where everything lies |
//! | [`planners`] | functions from a request to a plan, by name |
//!
//! ```
//! use lmsc_ir::Graph;
//! use lmsc_plan::MemoryTimeline;
//!
//! let graph = Graph::parse(
//!     "two (float[256] x) => (float[256] y) { [a] float[256] h = Exp(x)  [b] float[256] y = Relu(h) }",
//! )?;
//! // The input stays where it is.
//! assert_eq!(MemoryTimeline::of(&graph).peak().0, 3 * 1024);
//! # Ok::<(), lmsc_ir::ParseError>(())
//! ```

#![forbid(unsafe_code)]

pub mod bridge;
pub mod execution;
mod floors;
pub mod host;
pub mod memory;
pub mod order;
pub mod placing;
pub mod ranks;
mod refusal;
pub mod robust;
pub mod saved;
mod scope;
pub mod service;

pub use lmsc_address as address;
pub use lmsc_address::{offsets, pages};
pub use lmsc_bound as bound;
pub use lmsc_cost::{self as cost, Costs, target, target::Target};
pub use lmsc_planners::{self as planners, instance};
pub use lmsc_schedule as schedule;
pub use lmsc_schedule::{problem, threads};

pub use bridge::Bridge;
pub use execution::Execution;
pub use floors::Floors;
pub use memory::MemoryTimeline;
pub use refusal::{Cause, MemoryBreakdown, Needs, Otherwise, Reach, Refusal, Smallest};
pub use scope::Scope;
