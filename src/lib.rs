//! The driver of `lmsc`: reads a model, runs the passes, proves the result, writes it. The algorithms are in other
//! crates.
//!
//! Programs that use the library start with [`Compiler`], which compiles a step; a [`Session`] runs it. The command line and
//! its commands are in [`cli`] and [`commands`]; nothing else here names them.

#![forbid(unsafe_code)]

pub mod budget;
pub mod cli;
mod codes;
pub mod commands;
mod compile;
mod compiler;
mod context;
mod device;
mod emit;
mod error;
mod excerpt;
mod external;
mod files;
mod interrupt;
mod job;
mod known;
mod link;
mod load;
mod look;
mod planner;
mod problem;
mod progress;
mod proof;
mod refusals;
mod report;
pub mod run;
mod shell;
mod state;
mod targets;
mod term;
mod view;
mod warning;
mod write;

pub use codes::{Code, ErrorKind};
pub use compile::Compiled;
pub use compiler::Compiler;
pub use error::Error;
pub use files::write_atomically;
pub use job::{
    Addresses, Binding, Device, Emit, Form, Input, Job, Look, Machine, Planning, Search, StateOption,
};
pub use lmsc_plan::schedule::{Progress, Watch};
pub use lmsc_runtime::DeviceBytes;
pub use load::{Loaded, check, load};
pub use planner::PlannerCall;
pub use problem::{ProblemPlan, ProblemQuestion, plan_problem};
pub use report::Report;
pub use run::{InputBytes, Session, TensorData};
pub use targets::{list_targets, target, target_names, targets_as_json};
pub use warning::Warning;

/// The planner of calls that name none.
pub const DEFAULT_PLANNER: &str = "auto";
