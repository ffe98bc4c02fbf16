//! Nodes that rewriting adds: copies over the link, and nodes that run again.

use lmsc_ir::{Graph, LMSC_DOMAIN, Name, Node, NodeId, Op, Place, Type, ValueId};

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Out,
    In,
}

/// Adds a copy of `operand` over the link, named after `root`. What comes back is the node and its result.
pub(crate) fn add_copy(graph: &mut Graph, way: Way, operand: ValueId, root: ValueId) -> (NodeId, ValueId) {
    let (op, prefix, suffix, place) = match way {
        Way::Out => ("SwapOut", "out", "_host", Place::Host),
        Way::In => ("SwapIn", "in", "_in", Place::Device),
    };
    let root = graph.value(root);
    let (name, ty) = (root.name.clone(), root.ty.clone());
    let mut node = Node::new(graph.fresh_node_name(&format!("{prefix}_{name}")), Op::new(LMSC_DOMAIN, op));
    node.operands.push(Some(operand));
    let result = graph.fresh_value_name(&format!("{name}{suffix}"));
    let id = graph.add_node(node, [Some((result, ty, place))]);
    (id, graph.node(id).results[0].expect("it was just given"))
}

/// Adds a node that computes again, from these operands, those results of `origin` that are asked for.
pub(crate) fn add_again(
    graph: &mut Graph,
    origin: NodeId,
    operands: Vec<Option<ValueId>>,
    asked_for: impl Fn(ValueId) -> bool,
) -> NodeId {
    let mut node = graph.node(origin).clone();
    node.name = graph.fresh_node_name(&format!("{}_again", node.name));
    node.operands = operands;
    (node.recomputes, node.source) = (Some(origin), None);
    node.after.clear();
    let mut results: Vec<Option<(Name, Type, Place)>> = Vec::with_capacity(node.results.len());
    for result in &node.results {
        let result = result.filter(|&value| asked_for(value)).map(|value| graph.value(value));
        results.push(result.map(|value| {
            (graph.fresh_value_name(&format!("{}_again", value.name)), value.ty.clone(), value.place)
        }));
    }
    graph.add_node(node, results)
}
