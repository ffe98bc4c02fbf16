//! The name under which a node's cost is measured and found again.

use std::fmt::Write;

use lmsc_ir::{Attr, Graph, Name, Node, ValueId};

/// The properties that determine the time of the node, as text: its operator, the types of its operands and results, and its
/// attributes.
///
/// ```text
/// Conv(float[64,64,56,56], float[64,64,3,3]) -> float[64,64,56,56] {pads = [1, 1, 1, 1], strides = [1, 1]}
/// com.microsoft.ConvGrad(float[8,4,6,6], float[8,3,8,8], float[4,3,3,3]) -> _, float[4,3,3,3] {group = 1}
/// ```
///
/// An omitted operand or result is written as `_`; an empty list as nothing. Attributes are sorted by name and written as in
/// the text form of graphs, so large tensors are given by size and digest; without attributes there are no braces. Names of
/// nodes and values, versions of operator sets, and the values of operands are not included.
pub fn signature(graph: &Graph, node: &Node) -> String {
    let mut text = format!("{}(", node.op);
    types(&mut text, graph, &node.operands);
    text.push_str(") -> ");
    types(&mut text, graph, &node.results);
    let mut attributes: Vec<&(Name, Attr)> = node.attributes.iter().collect();
    attributes.sort_by(|a, b| a.0.cmp(&b.0));
    for (i, (name, attribute)) in attributes.iter().enumerate() {
        let open = if i == 0 { " {" } else { ", " };
        write!(text, "{open}{name} = {attribute}").expect("a String takes everything");
    }
    if !attributes.is_empty() {
        text.push('}');
    }
    text
}

fn types(text: &mut String, graph: &Graph, values: &[Option<ValueId>]) {
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            text.push_str(", ");
        }
        match value {
            Some(value) => write!(text, "{}", graph.value(*value).ty).expect("a String takes everything"),
            None => text.push('_'),
        }
    }
}
