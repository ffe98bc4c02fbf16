//! Calls of the model's own functions become the nodes of their bodies.

use foldhash::{HashMap, HashMapExt};
use lmsc_ir::{Graph, LMSC_DOMAIN};

use crate::file::Model;
use crate::import::faults_of_functions;
use crate::inline::{Inliner, Renamed, prefix};
use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto,
};
use crate::spelling::spelled;
use crate::{import_opset, key};

/// Maximum number of nodes and declarations that all calls of a model may become.
const MOST_NODES: usize = 100_000;
/// Maximum nesting of calls and subgraphs.
const MOST_DEPTH: usize = 32;

/// Replaces calls of functions by the nodes of their bodies, also in subgraphs. Returns whether there were any.
///
/// A call stays if its function is written for another version of a domain than the model imports. All stay if one is nested too
/// deep, or becomes too many nodes: the file that is written would be expanded further where it is read. They also stay in a
/// file that has a plan, whose edges and addresses are about them, and where a function is not valid, which the import refuses.
pub fn inline_functions(model: &mut Model) -> bool {
    let proto = &mut model.proto;
    let is_ours = |function: &FunctionProto| function.domain() == LMSC_DOMAIN;
    let planned = proto.metadata_props.iter().any(|entry| entry.key() == key::ADDRESSES)
        || proto.graph.iter().flat_map(|graph| &graph.node).any(|node| {
            node.domain() == LMSC_DOMAIN
                || node.metadata_props.iter().any(|entry| entry.key().starts_with("ai.lmsc."))
        });
    if planned || proto.functions.iter().all(is_ours) {
        return false;
    }
    let Some(mut graph) = proto.graph.clone() else { return false };
    if !faults_of_functions(&proto.functions, &graph).is_empty() {
        return false;
    }
    let functions = std::mem::take(&mut proto.functions);
    let mut calls = Calls {
        functions: functions.iter().filter(|f| !is_ours(f)).map(|f| (function_key(f), f)).collect(),
        imports: proto
            .opset_import
            .iter()
            .map(|it| (spelled(it.domain()).to_owned(), it.version()))
            .collect(),
        inliner: Inliner::of(&graph),
        room: MOST_NODES,
        replaced: false,
        left: false,
        is_too_large: false,
    };
    calls.expand(&mut graph, 0);
    let Calls { imports, replaced, left, is_too_large, .. } = calls;
    if is_too_large {
        proto.functions = functions;
        return false;
    }
    if replaced {
        add_imports(proto, imports);
    }
    proto.graph = Some(graph);
    proto.functions = if replaced && !left {
        functions.into_iter().filter(|f| f.domain() == LMSC_DOMAIN).collect()
    } else {
        functions
    };
    replaced
}

/// The first node that calls a function of the model: neither the graph nor its text has the function.
pub fn call_of_function(model: &Model, graph: &Graph) -> Option<String> {
    let functions: HashMap<(&str, &str), ()> =
        model.proto.functions.iter().map(|f| ((spelled(f.domain()), f.name()), ())).collect();
    let nodes = graph.order().iter().map(|&id| graph.node(id));
    let mut calls =
        nodes.filter(|node| node.op.domain() != LMSC_DOMAIN && functions.contains_key(&node.op.key()));
    calls.next().map(|node| format!("node `{}` calls function `{}` of the model", node.name, node.op))
}

type Key<'m> = (&'m str, &'m str, &'m str);

fn function_key(function: &FunctionProto) -> Key<'_> {
    (spelled(function.domain()), function.name(), function.overload())
}

fn add_imports(proto: &mut ModelProto, imports: HashMap<String, i64>) {
    let mut imports: Vec<(String, i64)> = imports.into_iter().collect();
    imports.sort();
    let has_onnx = proto.opset_import.iter().any(|it| spelled(it.domain()).is_empty());
    for (domain, version) in imports.into_iter().filter(|it| !(has_onnx && it.0.is_empty())) {
        import_opset(proto, &domain, version);
    }
}

struct Calls<'m> {
    functions: HashMap<Key<'m>, &'m FunctionProto>,
    /// For each domain, the version that the model imports.
    imports: HashMap<String, i64>,
    inliner: Inliner,
    /// The number of nodes that may still be added.
    room: usize,
    replaced: bool,
    /// Whether a call stays.
    left: bool,
    /// Whether a call is nested too deep, or becomes too many nodes.
    is_too_large: bool,
}

impl Calls<'_> {
    fn expand(&mut self, graph: &mut GraphProto, depth: usize) {
        let mut out = Vec::with_capacity(graph.node.len());
        for node in std::mem::take(&mut graph.node) {
            self.node(node, depth, &mut out, &mut graph.value_info);
        }
        graph.node = out;
    }

    fn node(
        &mut self,
        mut node: NodeProto,
        depth: usize,
        out: &mut Vec<NodeProto>,
        infos: &mut Vec<ValueInfoProto>,
    ) {
        let key = (spelled(node.domain()), node.op_type(), node.overload());
        let function = self.functions.get(&key).copied();
        // Without a function to call, depth does not matter.
        if self.is_too_large || depth >= MOST_DEPTH && (function.is_some() || has_subgraph(&node)) {
            self.is_too_large = true;
            return;
        }
        for attribute in &mut node.attribute {
            for graph in attribute.g.as_deref_mut().into_iter().chain(&mut attribute.graphs) {
                self.expand(graph, depth + 1);
            }
        }
        let Some(function) = function else { return out.push(node) };
        // Declarations are copied with each call, too.
        let size = function.node.len() + function.value_info.len();
        if self.room < size {
            self.is_too_large = true;
            return;
        }
        if !self.imports_agree(&function.opset_import) {
            self.left = true;
            return out.push(node);
        }
        self.replaced = true;
        self.room -= size;
        let body = GraphProto {
            node: body(function, &node),
            value_info: function.value_info.clone(),
            ..GraphProto::default()
        };
        let given = node.input.iter().cloned().chain(std::iter::repeat(String::new()));
        let mut renamed: Renamed = function.input.iter().cloned().zip(given).collect();
        let outside: Vec<(&str, &str)> = (function.output.iter().zip(&node.output))
            .filter(|(_, name)| !name.is_empty())
            .map(|(inside, name)| (&**inside, &**name))
            .collect();
        self.inliner.body(&prefix(&node), &body, &mut renamed, &outside);
        infos.append(&mut self.inliner.value_info);
        for node in std::mem::take(&mut self.inliner.nodes) {
            self.node(node, depth + 1, out, infos);
        }
    }

    /// Whether the function's nodes mean the same in the model. A domain that the model does not import is imported.
    fn imports_agree(&mut self, of_function: &[OperatorSetIdProto]) -> bool {
        let other = |it: &OperatorSetIdProto| {
            self.imports.get(spelled(it.domain())).is_some_and(|&version| version != it.version())
        };
        if of_function.iter().any(other) {
            return false;
        }
        let new = of_function.iter().map(|it| (spelled(it.domain()).to_owned(), it.version()));
        self.imports.extend(new);
        true
    }
}

fn has_subgraph(node: &NodeProto) -> bool {
    node.attribute.iter().any(|attribute| attribute.g.is_some() || !attribute.graphs.is_empty())
}

/// The nodes of the function, with the attributes of the call.
fn body(function: &FunctionProto, call: &NodeProto) -> Vec<NodeProto> {
    let mut given: HashMap<&str, &AttributeProto> = HashMap::new();
    given.extend(function.attribute_proto.iter().map(|default| (default.name(), default)));
    given.extend(call.attribute.iter().map(|attribute| (attribute.name(), attribute)));
    let mut nodes = function.node.clone();
    nodes.iter_mut().for_each(|node| resolve(node, &given));
    nodes
}

/// Replaces references to attributes of the caller. An attribute that the caller leaves out is left out.
fn resolve(node: &mut NodeProto, given: &HashMap<&str, &AttributeProto>) {
    let resolved = |mut attribute: AttributeProto| {
        if !attribute.ref_attr_name().is_empty() {
            let value = (*given.get(attribute.ref_attr_name())?).clone();
            return Some(AttributeProto { name: attribute.name, ..value });
        }
        for graph in attribute.g.as_deref_mut().into_iter().chain(&mut attribute.graphs) {
            graph.node.iter_mut().for_each(|node| resolve(node, given));
        }
        Some(attribute)
    };
    node.attribute = std::mem::take(&mut node.attribute).into_iter().filter_map(resolved).collect();
}
