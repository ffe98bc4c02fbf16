//! Addresses for a graph that swaps nothing: lifetimes are those of its order.

use lmsc_ir::{Bytes, Graph, NodeId, ValueId};

use super::{Buffer, Effort, pack};
use crate::Memory;
use crate::bridge::only_names;

/// Where everything on the device lies while a graph runs in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphLayout {
    /// The roots of the storages that have bytes on the device, each with its address.
    pub storages: Vec<(ValueId, u64)>,
    /// The nodes that need workspace, each with its address.
    pub workspaces: Vec<(NodeId, u64)>,
    /// Bytes of the arena.
    pub arena: u64,
    /// The most bytes that are live at once, unaligned: no arena is smaller.
    pub load: u64,
}

/// The layout of a graph, with what each node needs besides its values while it runs; none for a graph with copies, whose
/// order alone does not say when they end.
///
/// Nodes must run one after the other in the graph's order: two storages may share bytes where the last use of one
/// comes before the definition of the other.
pub fn lay_out(
    graph: &Graph,
    workspace: impl Fn(NodeId) -> Bytes,
    alignment: u64,
    effort: Effort,
) -> Option<GraphLayout> {
    if graph.order().iter().any(|&node| graph.node(node).op.is_swap()) {
        return None;
    }
    let memory = Memory::with_workspace(graph, &workspace);
    let buffer =
        |bytes, from: u32, until: u32| Buffer { alignment, ..Buffer::new(bytes, from.into()..until.into()) };
    let on_device =
        memory.storages.iter().filter(|(_, storage)| !storage.on_host && storage.bytes > Bytes::ZERO);
    let (mut roots, mut buffers) = (Vec::new(), Vec::new());
    for (id, storage) in on_device {
        let live = &memory.live[id.as_u32() as usize];
        roots.push(storage.root);
        buffers.push(buffer(storage.bytes.0, live.start, live.end));
    }
    let mut working = Vec::new();
    for (&node, tick) in graph.order().iter().zip(0..) {
        let bytes = if only_names(graph, &memory.storages, node) { Bytes::ZERO } else { workspace(node) };
        if bytes > Bytes::ZERO {
            working.push(node);
            buffers.push(buffer(bytes.0, tick, tick + 1));
        }
    }
    let layout = pack(&buffers, effort)?;
    let (storages, workspaces) = layout.addresses.split_at(roots.len());
    Some(GraphLayout {
        storages: roots.into_iter().zip(storages.iter().copied()).collect(),
        workspaces: working.into_iter().zip(workspaces.iter().copied()).collect(),
        arena: layout.bytes,
        load: memory.peak().0,
    })
}
