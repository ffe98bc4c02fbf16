//! Weights that a file writes as `Constant` nodes become initializers, like the file's own initializers.

use std::collections::HashSet;

use lmsc_ir::Bytes;

use crate::proto::{AttributeProto, AttributeType, GraphProto, NodeProto, SparseTensorProto, TensorProto};
use crate::{Model, key, shapes};

/// The size of the smallest tensor that counts as a weight. Smaller constants are mostly arguments of operators, such as shapes and
/// axes; they stay nodes.
pub(crate) const SMALLEST: Bytes = Bytes(256);

/// The first IR version in which an initializer need not be an input.
const IR_WITH_OWN_INITIALIZERS: i64 = 4;

/// Turns the model's `Constant` nodes that hold weights into initializers. Returns whether there were any.
pub(crate) fn gather(model: &mut Model) -> bool {
    if model.proto.ir_version.unwrap_or(0) < IR_WITH_OWN_INITIALIZERS {
        return false;
    }
    let Some(graph) = &mut model.proto.graph else { return false };
    let outputs: HashSet<&str> = graph.output.iter().map(|output| output.name()).collect();
    let waited_for = waited_for(graph);
    let mut weights = Vec::new();
    let mut sparse = Vec::new();
    let mut others = Vec::with_capacity(graph.node.len());
    for mut node in std::mem::take(&mut graph.node) {
        let is_free = !waited_for.contains(node.name());
        match is_free.then(|| weight(&mut node, &outputs)).flatten() {
            Some(tensor) => weights.push(tensor),
            None => match is_free.then(|| sparse_value(&mut node, &outputs)).flatten() {
                Some(tensor) => sparse.push(tensor),
                None => others.push(node),
            },
        }
    }
    graph.node = others;
    let any = !weights.is_empty() || !sparse.is_empty();
    graph.sparse_initializer.extend(sparse);
    graph.initializer.extend(weights);
    any
}

/// The names of nodes at which a control edge of an earlier plan starts.
fn waited_for(graph: &GraphProto) -> HashSet<String> {
    let entries = graph.node.iter().flat_map(|node| &node.metadata_props);
    let after = entries.filter(|entry| entry.key() == key::AFTER);
    // An entry that is not a list of names is reported by the import.
    after.flat_map(|entry| serde_json::from_str::<Vec<String>>(entry.value()).unwrap_or_default()).collect()
}

/// The tensor of the node, if it is a weight: it takes over the name of the node's result, and the node's other properties in the
/// file.
fn weight(node: &mut NodeProto, outputs: &HashSet<&str>) -> Option<TensorProto> {
    let is_constant = node.op_type() == "Constant" && matches!(node.domain(), "" | "ai.onnx");
    let [name] = &node.output[..] else { return None };
    let [attribute] = &mut node.attribute[..] else { return None };
    let AttributeProto {
        name: Some(kind),
        t: Some(tensor),
        r#type,
        doc_string: None,
        ref_attr_name: None,
        ..
    } = attribute
    else {
        return None;
    };
    let is_tensor = r#type.is_none_or(|kind| kind == AttributeType::Tensor as i32);
    // Bytes in another file are read where initializers are.
    let is_large = tensor.data_location() != 0 || byte_count(tensor).is_some_and(|bytes| bytes >= SMALLEST.0);
    let is_weight = is_constant && is_tensor && is_large && kind == "value" && node.input.is_empty();
    let of_both = node.doc_string.is_some() && tensor.doc_string.is_some()
        || !node.metadata_props.is_empty() && !tensor.metadata_props.is_empty();
    let is_ours = node.metadata_props.iter().any(|entry| entry.key().starts_with("ai.lmsc."));
    let stays = of_both || is_ours || !node.device_configurations.is_empty();
    if !is_weight || stays || name.is_empty() || outputs.contains(&**name) {
        return None;
    }
    let mut tensor = std::mem::take(&mut **tensor);
    tensor.name = Some(name.clone());
    tensor.doc_string = node.doc_string.take().or(tensor.doc_string);
    tensor.metadata_props.append(&mut node.metadata_props);
    Some(tensor)
}

/// The tensor of a `Constant` that is sparse, under the name of the node's result.
fn sparse_value(node: &mut NodeProto, outputs: &HashSet<&str>) -> Option<SparseTensorProto> {
    let is_constant = node.op_type() == "Constant" && matches!(node.domain(), "" | "ai.onnx");
    let ([name], [attribute]) = (&node.output[..], &mut node.attribute[..]) else { return None };
    let is_free = is_constant && attribute.name() == "sparse_value" && !outputs.contains(&**name);
    let mut tensor = attribute.sparse_tensor.take_if(|tensor| is_free && tensor.values.is_some())?;
    tensor.values.get_or_insert_default().name = Some(name.clone());
    Some(*tensor)
}

/// The bytes of the tensor's elements. None for strings, and for tensors that the import refuses.
fn byte_count(tensor: &TensorProto) -> Option<u64> {
    let element = shapes::element_type(tensor.data_type().into())?;
    let elements = tensor.dims.iter().try_fold(1u64, |all, &dim| all.checked_mul(dim.try_into().ok()?))?;
    Some(elements.checked_mul(element.bits())? / 8)
}
