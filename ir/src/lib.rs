//! The intermediate representation of `lmsc`: a graph of a training step, its text form, its invariants.
//!
//! Knows no file format, no planner and no device API.

mod attr;
mod graph;
pub mod ops;
mod text;
mod types;
mod units;

pub use attr::{Attr, Data, Float};
pub use graph::{Def, Graph, Initializer, LMSC_DOMAIN, Name, Node, NodeId, Op, Update, Value, ValueId};
pub use text::ParseError;
pub use types::{ElementType, Place, TensorType, Type};
pub use units::{Bytes, ParseBytesError};
