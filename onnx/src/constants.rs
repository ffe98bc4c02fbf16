//! Weights that a file writes as `Constant` nodes: initializers, like those that it writes as such.

use std::collections::HashSet;

use lmsc_ir::Bytes;

use crate::proto::{AttributeProto, AttributeType, NodeProto, TensorProto};
use crate::{Model, shapes};

/// `Constant` nodes of tensors of at least this size become initializers. What is smaller may say what an operator does, such as a
/// shape, and has its place in the graph.
pub(crate) const SMALLEST: Bytes = Bytes(256);

/// The first IR version in which an initializer need not be an input.
const IR_WITH_OWN_INITIALIZERS: i64 = 4;

/// Makes initializers of the model's `Constant` nodes that hold weights. Whether there was one.
pub(crate) fn gather(model: &mut Model) -> bool {
    if model.proto.ir_version.unwrap_or(0) < IR_WITH_OWN_INITIALIZERS {
        return false;
    }
    let Some(graph) = &mut model.proto.graph else { return false };
    let outputs: HashSet<&str> = graph.output.iter().map(|output| output.name()).collect();
    let mut weights = Vec::new();
    let mut others = Vec::with_capacity(graph.node.len());
    for mut node in std::mem::take(&mut graph.node) {
        match weight(&mut node, &outputs) {
            Some(tensor) => weights.push(tensor),
            None => others.push(node),
        }
    }
    graph.node = others;
    let any = !weights.is_empty();
    graph.initializer.extend(weights);
    any
}

/// The tensor of the node under the name of its result, if it is a weight.
fn weight(node: &mut NodeProto, outputs: &HashSet<&str>) -> Option<TensorProto> {
    let is_constant = node.op_type() == "Constant" && matches!(node.domain(), "" | "ai.onnx");
    let [name] = &node.output[..] else { return None };
    let [AttributeProto { name: Some(attribute), t: Some(tensor), r#type, .. }] = &mut node.attribute[..]
    else {
        return None;
    };
    let is_tensor = r#type.is_none_or(|kind| kind == AttributeType::Tensor as i32);
    let is_large = bytes(tensor).is_some_and(|bytes| bytes >= SMALLEST.0);
    let is_weight = is_constant && is_tensor && is_large && attribute == "value" && node.input.is_empty();
    if !is_weight || name.is_empty() || outputs.contains(&**name) {
        return None;
    }
    let tensor = std::mem::take(&mut **tensor);
    Some(TensorProto { name: Some(name.clone()), ..tensor })
}

/// The bytes of the tensor's elements; none of texts and of what is malformed, which the import refuses.
fn bytes(tensor: &TensorProto) -> Option<u64> {
    let element = shapes::element_type(tensor.data_type().into())?;
    let elements = tensor.dims.iter().try_fold(1u64, |all, &dim| all.checked_mul(dim.try_into().ok()?))?;
    Some(elements.checked_mul(element.bits())? / 8)
}
