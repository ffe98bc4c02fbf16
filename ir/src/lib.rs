//! The intermediate representation of `lmsc`: a graph of a training step, its text form, its invariants.
//!
//! Knows no file format, no planner and no device API.

#![forbid(unsafe_code)]

mod attr;
pub mod equiv;
mod graph;
mod level;
mod message;
pub mod ops;
mod phase;
pub mod program;
#[cfg(any(test, feature = "random"))]
pub mod random;
mod ranges;
mod reach;
pub mod rng;
mod storage;
mod text;
mod types;
mod units;
mod verify;
pub mod words;

pub use attr::{Attr, Data, Float};
pub use graph::{
    Adjacency, Def, Graph, Initializer, LMSC_DOMAIN, Name, Node, NodeId, Op, Update, Value, ValueId,
    Workspace,
};
pub use level::levels;
pub use message::{Advice, Message};
pub use phase::{Phase, Phases};
pub use ranges::{Run, RunId, copied_elements, joined_bytes, joined_elements, ranges_at_home};
pub use reach::reaches;
pub use storage::{Moves, Storage, StorageId, Storages};
pub use text::ParseError;
pub use types::{ElementType, Place, TensorType, Type};
pub use units::{Bytes, ParseBytesError};
pub use verify::{Invariant, Violation, Violations, verify};
