//! Adds nodes for rewritten graphs: copies over the link, encodings of tensors that cross it, and recomputed nodes.

use std::ops::Range;

use lmsc_ir::{
    Attr, ElementType, Graph, LMSC_DOMAIN, Name, Node, NodeId, Op, Place, TensorType, Type, ValueId, reaches,
};

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyWay {
    /// From the device to the host.
    Out,
    /// From the host to the device.
    In,
}

/// Adds a copy of `operand` over the link, named after `root`, of all elements or of the given range. Returns the
/// node and its result.
pub fn add_copy(
    graph: &mut Graph,
    way: CopyWay,
    operand: ValueId,
    root: ValueId,
    elements: Option<Range<u64>>,
) -> (NodeId, ValueId) {
    let (op, prefix, suffix, place) = match way {
        CopyWay::Out => ("SwapOut", "out", "_host", Place::Host),
        CopyWay::In => ("SwapIn", "in", "_in", Place::Device),
    };
    let mut ty = graph.value(operand).ty.clone();
    let mut node = Node::new("", Op::new(LMSC_DOMAIN, op));
    if let (Some(range), Type::Tensor(whole)) = (elements, &ty) {
        node.attributes.push(("begin".into(), (range.start as i64).into()));
        node.attributes.push(("end".into(), (range.end as i64).into()));
        ty = TensorType::new(whole.element, [range.end - range.start]).into();
    }
    add_one(graph, node, operand, (ty, place), (prefix, suffix, root))
}

/// The direction of an encoding (TFLMS §4.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// To 32-bit integers.
    Encode,
    /// Back.
    Decode,
}

/// Adds a Cast of `operand` to 32-bit integers or back, named after `root`. Returns the node and its result.
pub fn add_cast(graph: &mut Graph, way: Coding, operand: ValueId, root: ValueId) -> (NodeId, ValueId) {
    // The numbers are those of ONNX's `TensorProto.DataType`.
    let (to, code, prefix, suffix) = match way {
        Coding::Encode => (ElementType::Int32, 6, "encode", "_encoded"),
        Coding::Decode => (ElementType::Int64, 7, "decode", "_decoded"),
    };
    let from = graph.value(operand).ty.as_tensor().expect("only tensors are encoded");
    let ty = TensorType::new(to, from.dims.clone()).into();
    let mut node = Node::new("", Op::new("", "Cast"));
    node.attributes.push(("to".into(), Attr::Int(code)));
    add_one(graph, node, operand, (ty, Place::Device), (prefix, suffix, root))
}

/// Adds the node with one operand and one result.
fn add_one(
    graph: &mut Graph,
    mut node: Node,
    operand: ValueId,
    (ty, place): (Type, Place),
    (prefix, suffix, root): (&str, &str, ValueId),
) -> (NodeId, ValueId) {
    let name = graph.value(root).name.clone();
    node.name = graph.fresh_node_name(&format!("{prefix}_{name}"));
    node.operands.push(Some(operand));
    let result = graph.fresh_value_name(&format!("{name}{suffix}"));
    let id = graph.add_node(node, [Some((result, ty, place))]);
    (id, graph.node(id).results[0].expect("it was just given"))
}

/// Adds a Join of pieces, each with the element at which it begins, and of `base`, the value with the other
/// elements if the pieces are not all. With `CopyWay::In` the whole is on the device, with `CopyWay::Out` on the host. It
/// is named after `root` and has its type.
pub fn add_join(
    graph: &mut Graph,
    root: ValueId,
    base: Option<ValueId>,
    pieces: &[(u64, ValueId)],
    way: CopyWay,
) -> (NodeId, ValueId) {
    let (prefix, suffix, place) = match way {
        CopyWay::Out => ("home", "_home", Place::Host),
        CopyWay::In => ("join", "_whole", Place::Device),
    };
    let (name, ty) = (graph.value(root).name.clone(), graph.value(root).ty.clone());
    let mut node =
        Node::new(graph.fresh_node_name(&format!("{prefix}_{name}")), Op::new(LMSC_DOMAIN, "Join"));
    node.operands.push(base);
    node.operands.extend(pieces.iter().map(|&(_, piece)| Some(piece)));
    let begins: Vec<i64> = pieces.iter().map(|&(begin, _)| begin as i64).collect();
    node.attributes.push(("begins".into(), begins.into()));
    if let (None, Type::Tensor(whole)) = (base, &ty) {
        let dims: Vec<i64> = whole.dims.iter().map(|&dim| dim as i64).collect();
        node.attributes.push(("dims".into(), dims.into()));
    }
    let result = graph.fresh_value_name(&format!("{name}{suffix}"));
    let id = graph.add_node(node, [Some((result, ty, place))]);
    (id, graph.node(id).results[0].expect("it was just given"))
}

/// Adds a clone of `origin` that computes, from these operands, the results for which `asked_for` holds.
pub fn add_again(
    graph: &mut Graph,
    origin: NodeId,
    operands: impl IntoIterator<Item = Option<ValueId>>,
    asked_for: impl Fn(ValueId) -> bool,
) -> NodeId {
    let mut node = graph.node(origin).clone();
    node.name = graph.fresh_node_name(&format!("{}_again", node.name));
    node.operands = operands.into_iter().collect();
    (node.recomputes, node.seed, node.source) = (Some(origin), None, None);
    node.after.clear();
    node.updates.clear();
    let mut results: Vec<Option<(Name, Type, Place)>> = Vec::with_capacity(node.results.len());
    for result in &node.results {
        let result = result.filter(|&value| asked_for(value)).map(|value| graph.value(value));
        results.push(result.map(|value| {
            (graph.fresh_value_name(&format!("{}_again", value.name)), value.ty.clone(), value.place)
        }));
    }
    graph.add_node(node, results)
}

/// Orders computing nodes by control edges: each waits for the one before it.
pub fn order_what_computes(graph: &mut Graph) {
    let computing: Vec<NodeId> = graph
        .order()
        .iter()
        .copied()
        .filter(|&id| !graph.node(id).op.is_swap() && !graph.runs_on_host(id))
        .collect();
    let pairs: Vec<(NodeId, NodeId)> = computing.windows(2).map(|pair| (pair[0], pair[1])).collect();
    for (&(before, node), ordered) in pairs.iter().zip(reaches(graph, &pairs)) {
        if !ordered {
            graph.add_after(node, before);
        }
    }
}
