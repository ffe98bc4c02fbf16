//! Variables that an update would overwrite although the model does not change them.
//!
//! ONNX Runtime's optimizers work in the memory of their operands unless the result is an output of the model, which has its own.
//! If a new value is swapped out and in, the output is the swapped-in copy: the update would then write over the caller's input,
//! or over a value that other nodes read, which ONNX Runtime may run later than the file says, since it fuses nodes and places
//! fused nodes last. In the form for ONNX Runtime the update therefore works on a copy, which has no counterpart in a graph.

use foldhash::{HashMap, HashSet};
use lmsc_ir::{Graph, LMSC_DOMAIN, NodeId, ValueId};

use crate::new_names::NewNames;
use crate::proto::{GraphProto, NodeProto};
use crate::update::Uses;
use crate::{copy, key, set_metadata};

/// The memory that ONNX Runtime's updates write over.
pub(crate) struct Overwritten {
    /// Values that are outputs only after a copy over the host: they overwrite the operand that they are computed from.
    travelled: HashSet<ValueId>,
    /// Inputs of the graph, and values that several nodes read.
    shared: HashSet<ValueId>,
}

impl Overwritten {
    pub(crate) fn of(graph: &Graph, travelled: HashSet<ValueId>) -> Overwritten {
        let mut shared: HashSet<ValueId> = graph.inputs.iter().copied().collect();
        let mut read = HashSet::default();
        for &id in graph.order() {
            let mut values: Vec<ValueId> = graph.uses(id).collect();
            values.sort_unstable();
            values.dedup();
            shared.extend(values.into_iter().filter(|&value| !read.insert(value)));
        }
        Overwritten { travelled, shared }
    }
}

/// The copies before the node, which it overwrites instead of values that others need.
pub(crate) fn spell_out(
    graph: &Graph,
    id: NodeId,
    overwritten: &Overwritten,
    proto: &mut NodeProto,
    names: &mut NewNames<'_>,
) -> Vec<NodeProto> {
    let node = graph.node(id);
    if node.op.domain() == LMSC_DOMAIN {
        // When it is spelled out, it works on a sequence, which has memory of its own.
        return Vec::new();
    }
    let opset = graph.opsets.get("").copied().unwrap_or(0);
    let mut copies = Vec::new();
    for &(operand, result) in node.op.effects().writes {
        let result = node.results.get(result).copied().flatten();
        let Some(variable) = node.operands.get(operand).copied().flatten() else { continue };
        let is_travelled = result.is_some_and(|value| overwritten.travelled.contains(&value));
        if !is_travelled || !overwritten.shared.contains(&variable) {
            continue;
        }
        let name = names.value(&format!("{}.kept.{operand}", node.name));
        let mut kept = NodeProto {
            name: Some(name.clone()),
            input: vec![std::mem::replace(&mut proto.input[operand], name.clone())],
            output: vec![name],
            ..NodeProto::default()
        };
        copy::spell(&mut kept, &graph.value(variable).ty, opset, 0, false);
        set_metadata(&mut kept.metadata_props, key::KEPT, Some("copy".to_owned()));
        copies.push(kept);
    }
    copies
}

/// Removes the copies again; returns whether there were any. An entry whose node is not a copy is kept.
pub(crate) fn gather(graph: &mut GraphProto) -> bool {
    let is_ours = |n: &NodeProto| n.metadata_props.iter().any(|p| p.key() == key::KEPT) && copy::is_copy(n);
    if !graph.node.iter().any(is_ours) {
        return false;
    }
    let uses = Uses::of(graph);
    let read_once = |name: &str| matches!(uses.readers(name), [Some(_)]);
    let kept: HashMap<String, String> = graph
        .node
        .iter()
        .filter(|n| is_ours(n) && read_once(&n.output[0]))
        .map(|n| (n.output[0].clone(), n.input[0].clone()))
        .collect();
    graph.node.retain(|n| !(is_ours(n) && kept.contains_key(&n.output[0])));
    for input in graph.node.iter_mut().flat_map(|n| &mut n.input) {
        if let Some(variable) = kept.get(input) {
            input.clone_from(variable);
        }
    }
    !kept.is_empty()
}
