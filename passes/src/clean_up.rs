//! Shared checks of the clean-up passes: which graphs they take, and which nodes they may change.

use foldhash::HashSet;
use lmsc_ir::{Graph, Node, Phase, ValueId, ops};

use crate::PassError;

/// Refuses a graph that is already planned, for a pass that runs before planning.
pub(crate) fn not_planned(pass: &str, graph: &Graph) -> Result<(), PassError> {
    let nodes = || graph.order().iter().map(|&id| graph.node(id));
    let why = match () {
        () if graph.has_addresses() => "addresses",
        () if nodes().any(|node| node.op.is_swap()) => "swaps",
        () if nodes().any(|node| node.recomputes.is_some()) => "recomputed nodes",
        () => return Ok(()),
    };
    let message = format!("{pass} takes graphs that are not planned yet, and this one has {why}");
    Err(PassError::Call(message.into()))
}

/// Refuses a graph whose standard operators are older than this version, for a pass that writes newer ones.
pub(crate) fn not_older(pass: &str, graph: &Graph, least: i64) -> Result<(), PassError> {
    let version = graph.opsets.get("").copied().unwrap_or_default();
    if version >= least {
        return Ok(());
    }
    let message = format!(
        "{pass} writes operators of version {least} and later, and the graph's are of version {version}"
    );
    Err(PassError::Call(message.into()))
}

/// Whether the node has no effect but its results, which depend only on its operands and attributes.
///
/// False for a random node: on a runtime with one generator for all random nodes, removing one changes the numbers
/// of the others.
pub(crate) fn is_function(node: &Node) -> bool {
    let updates = node.op.effects().phase == Some(Phase::Update);
    ops::is_pure(node) && !updates && !ops::has_subgraph(node) && !node.op.is_swap()
}

/// The values that subgraphs read by name.
pub(crate) fn captured(graph: &Graph) -> HashSet<ValueId> {
    graph.order().iter().flat_map(|&id| &graph.node(id).captures).copied().collect()
}
