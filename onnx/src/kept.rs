//! Variables that an update would overwrite although the model does not change them.
//!
//! ONNX Runtime's optimizers work in the memory of their operands unless the result is an output of the model, which has its own.
//! If a new value is swapped out and in, the output is the swapped-in copy: the update would then write over the caller's input,
//! or over a value that other nodes read, which ONNX Runtime may run later than the file says, since it fuses nodes and places
//! fused nodes last. In the form for ONNX Runtime the update therefore works on a copy, which has no counterpart in a graph.
//!
//! An operator that by its definition overwrites an operand, and in the graph does not, works on a copy in every form.

use foldhash::{HashMap, HashSet};
use lmsc_ir::{Graph, LMSC_DOMAIN, Node, NodeId, ValueId};

use crate::new_names::NewNames;
use crate::proto::{GraphProto, NodeProto};
use crate::update::Uses;
use crate::{copy, key, metadata_of, set_metadata};

/// The kind of a copy for a node that leaves the variable as it is.
const APART: &str = "apart";

/// The memory that ONNX Runtime's updates write over.
pub(crate) struct Overwritten {
    /// Values that are outputs only after a copy over the host: they overwrite the operand that they are computed from.
    travelled: HashSet<ValueId>,
    /// Inputs of the graph, and values that several nodes read.
    shared: HashSet<ValueId>,
    /// What the caller gives, and the new values of variables.
    variables: HashSet<ValueId>,
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
        let given = graph.inputs.iter().copied().chain(graph.initializers.iter().map(|i| i.value));
        let new = graph.order().iter().map(|&id| graph.node(id)).flat_map(|node| {
            node.updates.iter().filter_map(|update| node.results.get(update.result?).copied().flatten())
        });
        let variables = given.chain(new).collect();
        Overwritten { travelled, shared, variables }
    }

    /// Whether the node leaves an operand as it is that its operator overwrites by definition. A node that runs again has scratch
    /// memory for it.
    fn is_apart(&self, node: &Node, operand: ValueId) -> bool {
        let is_updated = node.updates.iter().any(|update| update.variable == operand);
        self.variables.contains(&operand) && !is_updated && node.recomputes.is_none()
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
    // When it is spelled out, it works on a sequence, which has memory of its own.
    let has_memory = node.op.domain() == LMSC_DOMAIN;
    let opset = graph.opsets.get("").copied().unwrap_or(0);
    let mut copies = Vec::new();
    for &(operand, result) in node.op.effects().writes {
        let result = node.results.get(result).copied().flatten();
        let Some(variable) = node.operands.get(operand).copied().flatten() else { continue };
        let is_travelled = !has_memory && result.is_some_and(|value| overwritten.travelled.contains(&value));
        let is_apart = overwritten.is_apart(node, variable);
        let is_shared = is_travelled && overwritten.shared.contains(&variable);
        if !is_apart && !is_shared {
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
        let why = if is_apart { APART } else { "copy" };
        set_metadata(&mut kept.metadata_props, key::KEPT, Some(why.to_owned()));
        copies.push(kept);
    }
    copies
}

/// Removes the copies again, and notes on a node that it leaves its operands as they are; returns whether there were any copies. An
/// entry whose node is not a copy is kept.
pub(crate) fn gather(graph: &mut GraphProto) -> bool {
    let is_ours = |n: &NodeProto| n.metadata_props.iter().any(|p| p.key() == key::KEPT) && copy::is_copy(n);
    if !graph.node.iter().any(is_ours) {
        return false;
    }
    let uses = Uses::of(graph);
    let read_once = |name: &str| matches!(uses.readers(name), [Some(_)]);
    let is_apart = |n: &NodeProto| metadata_of(&n.metadata_props, key::KEPT) == Some(APART);
    let kept: HashMap<String, (String, bool)> = graph
        .node
        .iter()
        .filter(|n| is_ours(n) && read_once(&n.output[0]))
        .map(|n| (n.output[0].clone(), (n.input[0].clone(), is_apart(n))))
        .collect();
    graph.node.retain(|n| !(is_ours(n) && kept.contains_key(&n.output[0])));
    for node in &mut graph.node {
        for input in &mut node.input {
            let Some((variable, is_apart)) = kept.get(input) else { continue };
            input.clone_from(variable);
            if *is_apart {
                set_metadata(&mut node.metadata_props, key::APART, Some(APART.to_owned()));
            }
        }
    }
    !kept.is_empty()
}
