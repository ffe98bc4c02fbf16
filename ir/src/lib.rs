//! The intermediate representation of `lmsc`: a graph of a training step, its text form, its invariants.
//!
//! Knows no file format, no planner and no device API.
//!
//! A [`Graph`] has nodes in the order in which they run, values, and the edges between them: data, control and update edges.
//! [`verify()`] checks its invariants, I1 to I8. [`equiv::check`] tells whether two graphs compute the same. A
//! [`program::Program`] is a graph lowered to commands in three streams, and [`program::check`] shows that no timing of them
//! goes wrong.
//!
//! ```
//! use lmsc_ir::Graph;
//!
//! let text = "step (float[2] x) => (float[2] y)\n{\n   [a] float[2] h = Relu(x)\n   [b] float[2] y = Tanh(h)\n}\n";
//! let graph = Graph::parse(text)?;
//! lmsc_ir::verify(&graph).expect("it keeps the invariants");
//! let relu = graph.node_named("a").expect("there is such a node");
//! assert_eq!(graph.successor_lists().of(relu), [graph.node_named("b").unwrap()]);
//! # Ok::<(), lmsc_ir::ParseError>(())
//! ```

#![forbid(unsafe_code)]

mod attr;
mod constants;
pub mod contract;
mod digest;
pub mod domains;
pub mod equiv;
mod graph;
mod level;
mod message;
pub mod nhwc;
pub mod ops;
mod phase;
pub mod program;
mod ranges;
mod reach;
pub mod rng;
mod storage;
mod text;
mod types;
mod units;
mod verify;
pub mod words;

// A dependency on `lmsc-testing` would bring a second copy of this crate, with other types: its sources are compiled here, too.
#[cfg(test)]
#[path = "../../testing/src/damage.rs"]
pub mod damage;
#[cfg(test)]
extern crate self as lmsc_ir;
#[cfg(test)]
#[path = "../../testing/src/graphs.rs"]
pub mod graphs;

pub use attr::{Attr, Data, Float};
pub use constants::Constants;
pub use digest::{Digest, NoDigest};
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
pub use text::{ParseError, PrintOptions};
pub use types::{ElementType, Place, TensorType, Type};
pub use units::{Bytes, ParseBytesError};
pub use verify::{Invariant, Violation, Violations, verify};
