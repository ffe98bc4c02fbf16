//! Stands in for a cost model and a target: times guessed from bytes alone, and a link that many machines have.

use lmsc_ir::{Graph, NodeId};
use lmsc_plan::bridge::Cost;
use lmsc_plan::problem::{Duplex, Link};

/// The link: 12 GB/s in each direction at once, 10 µs a copy.
pub(crate) fn link() -> Link {
    Link {
        out_bytes_per_second: 12_000_000_000,
        in_bytes_per_second: 12_000_000_000,
        latency_nanos: 10_000,
        duplex: Duplex::Full,
    }
}

/// What it takes to run the node: 5 µs, and its operands and results once over memory of 500 GB/s.
pub(crate) fn cost(graph: &Graph, node: NodeId) -> Cost {
    let node = graph.node(node);
    let bytes = |value| graph.value(value).ty.byte_size().map_or(0, |bytes| bytes.0);
    let moved: u64 = node.reads().chain(node.defines()).map(bytes).fold(0, u64::saturating_add);
    Cost { nanos: 5_000 + moved / 500, workspace: 0 }
}
