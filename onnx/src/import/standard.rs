//! Rules of ONNX's standard that no other part of the import depends on.

use foldhash::{HashSet, HashSetExt};

use super::error::Errors;
use super::{ImportError, bodies, op_name};
use crate::file::Model;
use crate::proto::{GraphProto, NodeProto};

const AGAIN: &str = "export the model again";

/// Refuses a model that breaks one of these rules.
pub(super) fn check(model: &Model, errors: &mut Errors) {
    let Some(graph) = &model.proto.graph else { return };
    let mut push = |what: String, help: &'static str| errors.push(ImportError::Standard { what, help });
    let has_version = model.proto.opset_import.iter().any(|it| matches!(it.domain(), "" | "ai.onnx"));
    // Before IR version 3, all operators were those of version 1.
    let uses_onnx = || graph.node.iter().any(|node| matches!(node.domain(), "" | "ai.onnx"));
    if !has_version && model.proto.ir_version() >= 3 && (model.proto.opset_import.is_empty() || uses_onnx()) {
        let what =
            "it imports no version of ONNX's operators: its `opset_import` has no entry for them".to_owned();
        push(what, "export the model with the version of the operators that it uses");
    }
    for (i, training) in model.proto.training_info.iter().enumerate() {
        let updated =
            training.update_binding.iter().chain(&training.initialization_binding).map(|it| it.key());
        let updated: Vec<String> = updated.map(|name| format!("`{name}`")).collect();
        let of = if updated.is_empty() { String::new() } else { format!(" of {}", updated.join(", ")) };
        push(
            format!(
                "its `training_info[{i}]` describes a training{of} apart from the graph, which lmsc does not read"
            ),
            "export the training step as the graph itself, with the new values of its state as outputs",
        );
    }
    let mut outputs = HashSet::new();
    for output in graph.output.iter().filter(|output| !outputs.insert(output.name())) {
        push(
            format!("output `{}` is listed twice", output.name()),
            "list each output once; a copy of it is an `Identity` node",
        );
    }
    for how in bodies::recursions(&model.proto.functions) {
        push(how, "a function may not call itself, not even through others: export the model without it");
    }
    let mut nodes: Vec<&NodeProto> = graph.node.iter().collect();
    nodes.extend(model.proto.functions.iter().flat_map(|function| &function.node));
    while let Some(node) = nodes.pop() {
        let mut names = HashSet::with_capacity(node.attribute.len());
        for attribute in &node.attribute {
            if !names.insert(attribute.name()) {
                let (node, op) = (node.name(), op_name(node));
                push(format!("node `{node}` ({op}) has attribute `{}` twice", attribute.name()), AGAIN);
            }
            let graphs = attribute.g.as_deref().into_iter().chain(&attribute.graphs);
            nodes.extend(graphs.flat_map(|graph: &GraphProto| &graph.node));
        }
    }
}
