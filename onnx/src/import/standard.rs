//! Rules of ONNX's standard that no other part of the import depends on.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::error::Errors;
use super::{ImportError, bodies};
use crate::file::Model;
use crate::proto::{FunctionProto, GraphProto, NodeProto};
use crate::spelling::{op_name, spelled};
use crate::{LMSC_DOMAIN, shapes};

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
    for (what, help) in faults_of_functions(&model.proto.functions, graph) {
        push(what, help);
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

/// The faults of the model's own functions and of the calls of them, each with its advice. No call is replaced by the body of a function
/// where there is one.
pub(crate) fn faults_of_functions(all: &[FunctionProto], graph: &GraphProto) -> Vec<(String, &'static str)> {
    let mut faults: Vec<(String, &'static str)> = Vec::new();
    for how in bodies::recursions(all) {
        faults.push((
            how,
            "a function may not call itself, not even through others: export the model without it",
        ));
    }
    let mut functions = HashMap::new();
    for function in all.iter().filter(|function| function.domain() != LMSC_DOMAIN) {
        let (domain, name) = (spelled(function.domain()), function.name());
        let shown = if domain.is_empty() { name.to_owned() } else { format!("{domain}.{name}") };
        if functions.insert((domain, name, function.overload()), function).is_some() {
            faults.push((format!("function {shown} is defined twice"), "give each function its own name"));
        }
        if domain.is_empty() && shapes::is_known(name) {
            let what = format!(
                "function {shown} has the name of an operator of ONNX: which of both is meant is not defined"
            );
            faults.push((what, "give the function its own domain or name"));
        }
        if let Some(name) = read_from_outside(function) {
            let what = format!(
                "function {shown} reads `{name}`, which is none of its inputs, and none of its nodes defines it"
            );
            faults.push((what, "a function reads its inputs alone: correct it, or export the model again"));
        }
    }
    let mut nodes: Vec<&NodeProto> = graph.node.iter().chain(all.iter().flat_map(|it| &it.node)).collect();
    while let Some(node) = nodes.pop() {
        nodes.extend(subgraphs(node).flat_map(|graph| &graph.node));
        let key = (spelled(node.domain()), node.op_type(), node.overload());
        if let Some(fault) = functions.get(&key).and_then(|function| fault_of_call(node, function)) {
            let result = node.output.first().map_or("", |name| name);
            let called = if node.name().is_empty() { result } else { node.name() };
            faults.push((format!("node `{called}` ({}) {fault}", op_name(node)), AGAIN));
        }
    }
    faults
}

fn subgraphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|attribute| attribute.g.as_deref().into_iter().chain(&attribute.graphs))
}

/// The fault of a call that does not go with its function.
fn fault_of_call(call: &NodeProto, function: &FunctionProto) -> Option<String> {
    for (word, given, of) in [
        ("operands", call.input.len(), function.input.len()),
        ("results", call.output.len(), function.output.len()),
    ] {
        if given > of {
            return Some(format!("has {given} {word}, and its function has {of}"));
        }
    }
    let mut names = HashSet::with_capacity(call.attribute.len());
    let twice = call.attribute.iter().find(|attribute| !names.insert(attribute.name()))?;
    Some(format!("gives its function attribute `{}` twice", twice.name()))
}

/// A name that the function's nodes read, and that neither an input nor a node defines.
fn read_from_outside(function: &FunctionProto) -> Option<&str> {
    let mut own: HashSet<&str> = function.input.iter().map(|name| &**name).collect();
    own.extend(function.node.iter().flat_map(|node| &node.output).map(|name| &**name));
    read_from_outside_of(&function.node, &mut vec![own])
}

/// The first name that the nodes read and that none of the scopes has. The depth is that of the file's messages, which is limited.
fn read_from_outside_of<'m>(nodes: &'m [NodeProto], scopes: &mut Vec<HashSet<&'m str>>) -> Option<&'m str> {
    for node in nodes {
        let unknown = |name: &&str| !name.is_empty() && !scopes.iter().any(|scope| scope.contains(name));
        if let Some(name) = node.input.iter().map(|name| &**name).find(unknown) {
            return Some(name);
        }
        for graph in subgraphs(node) {
            let mut own: HashSet<&str> = graph.input.iter().map(|input| input.name()).collect();
            own.extend(graph.initializer.iter().map(|tensor| tensor.name()));
            own.extend(
                graph.sparse_initializer.iter().filter_map(|tensor| Some(tensor.values.as_ref()?.name())),
            );
            own.extend(graph.node.iter().flat_map(|node| &node.output).map(|name| &**name));
            scopes.push(own);
            let found = read_from_outside_of(&graph.node, scopes);
            scopes.pop();
            if found.is_some() {
                return found;
            }
        }
    }
    None
}
