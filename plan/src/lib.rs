//! Deciding what leaves device memory and when. Nothing here changes a graph: planners take one and return a
//! plan, a value that `lmsc-passes` applies.
//!
//! | module | is |
//! |---|---|
//! | [`problem`], [`instance`] | operators with times, tensors with bytes, a link; the same as a file |
//! | [`planners`] | functions from a request to a plan, by name |
//! | [`schedule`] | what each engine does when; edges, replays and a checker |
//! | [`bound`] | times that no plan beats, with certificates |
//! | [`address`], [`pages`], [`offsets`] | where everything lies |
//! | [`cost`], [`target`] | how long operators and copies take |
//! | [`service`] | the one place where plans of graphs are made |
//!
//! Planners need no graph:
//!
//! ```
//! use lmsc_plan::planners::{Request, planner};
//!
//! let text = r#"{"format": "lmsc-planner-chain-1", "name": "two", "beta": 1e9, "uF": [1000, 1000], "uB": [2000, 2000],
//!     "x": [0, 4000000, 4000000], "y": [0, 0, 0], "exF": [0, 0], "exB": [0, 0]}"#;
//! let instance = lmsc_plan::instance::Instance::parse(text)?;
//! let request = Request::new(&instance.problem, 8_000_000);
//! let plan = (planner("auto").expect("it is registered").run)(&request).expect("all of it fits");
//! assert_eq!(plan.schedule.makespan(), 6_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub use refusal::{Cause, Needs, Otherwise, Parts, Reach, Refusal, Smallest};
pub use target::Target;
