//! Variables that an update would overwrite although the model leaves them as they are.
//!
//! ONNX Runtime's optimizers work in the memory of their operands unless the result is an output of the model, which has
//! its own. Where a new value leaves for the host and returns, the output is what returns: the update would write over
//! what is fed, or over what other nodes read, which ONNX Runtime may run later than the file says, as it fuses nodes and gives
//! those their places last. In the form for ONNX Runtime it works on a copy then, which in a graph is nothing.

use foldhash::{HashMap, HashSet};
use lmsc_ir::{Graph, LMSC_DOMAIN, NodeId, ValueId};

use crate::export::NewNames;
use crate::proto::{GraphProto, NodeProto};
use crate::update::Uses;
use crate::{copy, key, set_metadata};

/// What ONNX Runtime writes over.
pub(crate) struct Overwritten {
    /// The values that are outputs only after a way over the host: they are written over what they are computed from.
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

/// The copies to go before the node, which it writes over in place of what others need.
pub(crate) fn spell_out(
    graph: &Graph,
    id: NodeId,
    overwritten: &Overwritten,
    proto: &mut NodeProto,
    names: &mut NewNames<'_>,
) -> Vec<NodeProto> {
    let node = graph.node(id);
    if node.op.domain() == LMSC_DOMAIN {
        // Spelled out, it works on a sequence, which has memory of its own.
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

/// Leaves out the copies again; whether there was any. One that is not what it says it is stays.
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
