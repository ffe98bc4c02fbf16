//! Control edges from the nodes that read a variable's old value to the node that overwrites it.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};
use lmsc_ir::{Graph, NodeId, StorageId, Storages, ValueId, reaches};

use super::StateError;

/// Adds the control edges that no path of edges implies yet.
///
/// # Errors
/// [`StateError::ReadAfterWrite`] if a node reads an old value after the node that overwrites it.
pub(super) fn order(graph: &mut Graph) -> Result<(), StateError> {
    let storages = Storages::of(graph);
    let ticks = graph.ticks();
    let tick = |n: NodeId| ticks[n.as_u32() as usize];
    // For each storage, its writers in order; a value's version is the number of writers before it.
    let mut writers: BTreeMap<StorageId, Vec<NodeId>> = BTreeMap::new();
    let mut is_written = vec![false; storages.len()];
    let mut version: HashMap<ValueId, usize> = HashMap::new();
    for &id in graph.order() {
        for update in &graph.node(id).updates {
            let storage = storages.storage(update.variable);
            is_written[storage.as_u32() as usize] = true;
            let of_storage = writers.entry(storage).or_default();
            of_storage.push(id);
            if let Some(result) = update.result.and_then(|r| graph.node(id).results.get(r).copied().flatten())
            {
                version.insert(result, of_storage.len());
            }
        }
    }
    let mut pairs: Vec<(NodeId, NodeId)> = Vec::new();
    for &id in graph.order() {
        let node = graph.node(id);
        for value in graph.uses(id) {
            let storage = storages.storage(value);
            // Most storages are never written.
            if !is_written[storage.as_u32() as usize] {
                continue;
            }
            let of_storage = &writers[&storage];
            let old = version.get(&value).copied().unwrap_or(0);
            if node.op.effects().view {
                for view in node.defines() {
                    version.entry(view).or_insert(old);
                }
            }
            let Some(&writer) = of_storage.get(old).filter(|&&w| w != id) else { continue };
            if tick(id) > tick(writer) {
                return Err(StateError::ReadAfterWrite {
                    reader: node.name.to_string(),
                    value: graph.value(value).name.to_string(),
                    writer: graph.node(writer).name.to_string(),
                });
            }
            pairs.push((id, writer));
        }
    }
    for of_storage in writers.values() {
        pairs.extend(of_storage.windows(2).map(|w| (w[0], w[1])));
    }
    let ordered = reaches(graph, &pairs);
    for ((reader, writer), ordered) in pairs.into_iter().zip(ordered) {
        if !ordered {
            graph.add_after(writer, reader);
        }
    }
    Ok(())
}
