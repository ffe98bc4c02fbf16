//! Inlines control flow that is known when a model is read: an `If` with a constant condition becomes the nodes of its branch, a
//! `Loop` or a `Scan` with a known number of iterations becomes the nodes of all of them.

use foldhash::{HashMap, HashSet, HashSetExt};

use lmsc_ir::TensorType;

use crate::Dims;
use crate::file::Model;
use crate::import::{Decided, decided};
use crate::proto::{
    AttributeProto, AttributeType, DataType, GraphProto, NodeProto, SparseTensorProto, TensorProto,
    ValueInfoProto,
};
use crate::shapes::data_type;

/// Maximum number of nodes that all loops of a model may become. Planning takes seconds for ten thousand nodes.
const MOST_NODES: usize = 10_000;
/// Maximum nesting of decided nodes.
const MOST_ROUNDS: usize = 32;

/// Replaces decided nodes, also those nested in other decided nodes. Returns whether there were any.
pub fn inline_decided(model: &mut Model, dims: &Dims) -> bool {
    let is_candidate =
        |node: &NodeProto| matches!(node.op_type(), "If" | "Loop" | "Scan") && node.domain().is_empty();
    let mut any = false;
    let mut room = MOST_NODES;
    for _ in 0..MOST_ROUNDS {
        if !model.proto.graph.iter().flat_map(|graph| &graph.node).any(is_candidate) {
            break;
        }
        let mut found = decided(model, dims);
        found.retain(|(_, decided)| match decided {
            Decided::Branch(_) | Decided::Skipped { .. } => true,
            Decided::Iterations { nodes, .. } if *nodes <= room => {
                room -= nodes;
                true
            }
            Decided::Iterations { .. } => false,
        });
        if found.is_empty() {
            break;
        }
        any = true;
        replace(model, found);
    }
    any
}

/// Replaces the nodes at these positions, which are sorted.
fn replace(model: &mut Model, found: Vec<(usize, Decided)>) {
    let opset = model.proto.opset_import.iter().find(|o| o.domain().is_empty()).map_or(1, |o| o.version());
    let graph = model.proto.graph.get_or_insert_default();
    let mut inliner = Inliner { opset, ..Inliner::of(graph) };
    let mut found = found.into_iter().peekable();
    for (i, node) in std::mem::take(&mut graph.node).into_iter().enumerate() {
        match found.next_if(|&(at, _)| at == i) {
            Some((_, Decided::Branch(taken))) => inliner.branch(node, taken),
            Some((_, Decided::Iterations { count, .. })) if node.op_type() == "Scan" => {
                inliner.scan(node, count)
            }
            Some((_, Decided::Iterations { count, .. })) => inliner.iterations(node, count),
            Some((_, Decided::Skipped { carried, scans })) => inliner.skipped(node, carried, &scans),
            None => inliner.nodes.push(node),
        }
    }
    graph.node = inliner.nodes;
    graph.initializer.extend(inliner.initializers);
    graph.sparse_initializer.extend(inliner.sparse);
    graph.value_info.extend(inliner.value_info);
}

/// By name inside of a subgraph, the name outside.
pub(crate) type Renamed = HashMap<String, String>;

pub(crate) struct Inliner {
    taken: HashSet<String>,
    opset: i64,
    initializers: Vec<TensorProto>,
    sparse: Vec<SparseTensorProto>,
    pub(crate) value_info: Vec<ValueInfoProto>,
    pub(crate) nodes: Vec<NodeProto>,
}

impl Inliner {
    /// One whose new names are not in the graph, nor in its subgraphs.
    pub(crate) fn of(graph: &GraphProto) -> Inliner {
        let mut taken = HashSet::new();
        add_names(graph, &mut taken);
        Inliner {
            taken,
            opset: 1,
            initializers: Vec::new(),
            sparse: Vec::new(),
            value_info: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// A name that no scope of the model has.
    fn fresh(&mut self, base: String) -> String {
        let mut name = base.clone();
        let mut suffix = 1;
        while !self.taken.insert(name.clone()) {
            suffix += 1;
            name = format!("{base}_{suffix}");
        }
        name
    }

    fn branch(&mut self, node: NodeProto, taken: bool) {
        let name = if taken { "then_branch" } else { "else_branch" };
        let Some(body) = subgraph(&node, name) else { return self.nodes.push(node) };
        let prefix = prefix(&node);
        let mut renamed = self.constants(&prefix, body);
        let outside = node.output.iter().zip(&body.output).filter(|(name, _)| !name.is_empty());
        let outside: Vec<(&str, &str)> =
            outside.map(|(name, inside)| (inside.name(), name.as_str())).collect();
        self.body(&prefix, body, &mut renamed, &outside);
    }

    fn iterations(&mut self, node: NodeProto, count: usize) {
        let Some(body) = subgraph(&node, "body") else { return self.nodes.push(node) };
        let prefix = prefix(&node);
        let carried = node.input.len().saturating_sub(2);
        let mut state: Vec<String> = node.input.iter().skip(2).cloned().collect();
        let scanned = body.output.len().saturating_sub(1 + carried);
        let mut scans: Vec<Vec<String>> = vec![Vec::new(); scanned];
        let constants = self.constants(&prefix, body);
        let yes = self.fresh(format!("{prefix}.true"));
        self.initializers.push(constant(&yes, DataType::Bool, &[], vec![1]));
        for k in 0..count {
            let inside = format!("{prefix}.{k}");
            let number = self.fresh(format!("{inside}.number"));
            self.initializers.push(constant(
                &number,
                DataType::Int64,
                &[],
                (k as i64).to_le_bytes().to_vec(),
            ));
            let given = [number, yes.clone()].into_iter().chain(state.iter().cloned());
            let mut renamed = constants.clone();
            renamed.extend(body.input.iter().map(|i| i.name().to_owned()).zip(given));
            self.body(&inside, body, &mut renamed, &[]);
            let outside = |info: &ValueInfoProto| {
                renamed.get(info.name()).cloned().unwrap_or_else(|| info.name().to_owned())
            };
            state = body.output.iter().skip(1).take(carried).map(outside).collect();
            for (scan, info) in scans.iter_mut().zip(body.output.iter().skip(1 + carried)) {
                scan.push(outside(info));
            }
        }
        for (from, to) in state.iter().zip(&node.output) {
            self.push(&prefix, "Identity", vec![from.clone()], to);
        }
        for (elements, to) in scans.into_iter().zip(node.output.iter().skip(carried)) {
            self.stack(&prefix, elements, 0, to);
        }
    }

    /// A loop of no iteration: its first results are the values that it would carry, the others are empty.
    fn skipped(&mut self, node: NodeProto, carried: usize, scans: &[TensorType]) {
        let prefix = prefix(&node);
        let before = node.input.len().min(if node.op_type() == "Loop" { 2 } else { 0 });
        for (from, to) in node.input[before..].iter().zip(node.output.iter().take(carried)) {
            self.push(&prefix, "Identity", vec![from.clone()], to);
        }
        for (ty, to) in scans.iter().zip(node.output.iter().skip(carried)) {
            let empty = self.fresh(format!("{prefix}.{to}.empty"));
            let mut tensor = constant(&empty, DataType::Float, &[], Vec::new());
            tensor.dims = ty.dims.iter().map(|&extent| extent as i64).collect();
            tensor.data_type = Some(data_type(ty.element));
            self.initializers.push(tensor);
            self.push(&prefix, "Identity", vec![empty], to);
        }
    }

    fn scan(&mut self, node: NodeProto, count: usize) {
        let Some(body) = subgraph(&node, "body") else { return self.nodes.push(node) };
        let prefix = prefix(&node);
        let list = |name: &str| node.attribute.iter().find(|a| a.name() == name).map_or(&[][..], |a| &a.ints);
        let scanned =
            node.attribute.iter().find(|a| a.name() == "num_scan_inputs").map_or(0, |a| a.i() as usize);
        let states = node.input.len().saturating_sub(scanned);
        let mut state: Vec<String> = node.input[..states].to_vec();
        let mut scans: Vec<Vec<String>> = vec![Vec::new(); body.output.len().saturating_sub(states)];
        let constants = self.constants(&prefix, body);
        let numbers: Vec<String> = (0..count)
            .map(|k| {
                let number = self.fresh(format!("{prefix}.{k}.number"));
                let bytes = (k as i64).to_le_bytes().to_vec();
                self.initializers.push(constant(&number, DataType::Int64, &[], bytes));
                number
            })
            .collect();
        for k in 0..count {
            let inside = format!("{prefix}.{k}");
            let mut given = state.clone();
            for (i, sequence) in node.input[states..].iter().enumerate() {
                let backward = list("scan_input_directions").get(i) == Some(&1);
                let number = numbers[if backward { count - 1 - k } else { k }].clone();
                let element = self.fresh(format!("{inside}.{sequence}"));
                self.push(&inside, "Gather", vec![sequence.clone(), number], &element);
                let axis = list("scan_input_axes").get(i).copied().unwrap_or(0);
                self.nodes.last_mut().expect("it was just added").attribute.push(int("axis", axis));
                given.push(element);
            }
            let mut renamed = constants.clone();
            renamed.extend(body.input.iter().map(|i| i.name().to_owned()).zip(given));
            self.body(&inside, body, &mut renamed, &[]);
            let outside = |info: &ValueInfoProto| {
                renamed.get(info.name()).cloned().unwrap_or_else(|| info.name().to_owned())
            };
            state = body.output.iter().take(states).map(outside).collect();
            for (scan, info) in scans.iter_mut().zip(body.output.iter().skip(states)) {
                scan.push(outside(info));
            }
        }
        for (from, to) in state.iter().zip(&node.output) {
            self.push(&prefix, "Identity", vec![from.clone()], to);
        }
        for (i, (mut elements, to)) in scans.into_iter().zip(node.output.iter().skip(states)).enumerate() {
            if list("scan_output_directions").get(i) == Some(&1) {
                elements.reverse();
            }
            let axis = list("scan_output_axes").get(i).copied().unwrap_or(0);
            self.stack(&prefix, elements, axis, to);
        }
    }

    /// Stacks the elements along a new axis.
    fn stack(&mut self, prefix: &str, elements: Vec<String>, axis: i64, to: &str) {
        if to.is_empty() {
            return;
        }
        let mut rows = Vec::with_capacity(elements.len());
        for (k, element) in elements.into_iter().enumerate() {
            let row = self.fresh(format!("{to}.row.{k}"));
            self.push(prefix, "Unsqueeze", vec![element], &row);
            let unsqueeze = self.nodes.last_mut().expect("it was just added");
            if self.opset >= 13 {
                let axes = format!("{to}.axes");
                unsqueeze.input.push(axes.clone());
                if self.taken.insert(axes.clone()) {
                    self.initializers.push(constant(
                        &axes,
                        DataType::Int64,
                        &[1],
                        axis.to_le_bytes().to_vec(),
                    ));
                }
            } else {
                unsqueeze.attribute.push(ints("axes", &[axis]));
            }
            rows.push(row);
        }
        self.push(prefix, "Concat", rows, to);
        self.nodes.last_mut().expect("it was just added").attribute.push(int("axis", axis));
    }

    fn push(&mut self, prefix: &str, op: &str, input: Vec<String>, to: &str) {
        if !to.is_empty() {
            let name = Some(self.fresh(format!("{prefix}.{to}")));
            let (op_type, output) = (Some(op.to_owned()), vec![to.to_owned()]);
            self.nodes.push(NodeProto { name, op_type, input, output, ..NodeProto::default() });
        }
    }

    /// The constants of a body, under new names.
    fn constants(&mut self, prefix: &str, body: &GraphProto) -> Renamed {
        let mut renamed = Renamed::default();
        for tensor in &body.initializer {
            let name = self.fresh(format!("{prefix}.{}", tensor.name()));
            renamed.insert(tensor.name().to_owned(), name.clone());
            self.initializers.push(TensorProto { name: Some(name), ..tensor.clone() });
        }
        for tensor in &body.sparse_initializer {
            let Some(values) = &tensor.values else { continue };
            let name = self.fresh(format!("{prefix}.{}", values.name()));
            renamed.insert(values.name().to_owned(), name.clone());
            let values = Some(TensorProto { name: Some(name), ..values.clone() });
            self.sparse.push(SparseTensorProto { values, ..tensor.clone() });
        }
        renamed
    }

    /// Adds the nodes of a body. `renamed` has the names of the existing values, and gets those of the values that the nodes
    /// define; `outside` has the body's results with their names outside.
    pub(crate) fn body(
        &mut self,
        prefix: &str,
        body: &GraphProto,
        renamed: &mut Renamed,
        outside: &[(&str, &str)],
    ) {
        let mut left: Vec<(&str, &str)> = Vec::new();
        let defined: HashSet<&str> = body.node.iter().flat_map(|n| &n.output).map(|o| &**o).collect();
        for &(inside, name) in outside {
            if defined.contains(inside) && !renamed.contains_key(inside) {
                renamed.insert(inside.to_owned(), name.to_owned());
            } else {
                left.push((inside, name));
            }
        }
        for output in body.node.iter().flat_map(|n| &n.output).filter(|o| !o.is_empty()) {
            if !renamed.contains_key(output) {
                let name = self.fresh(format!("{prefix}.{output}"));
                renamed.insert(output.clone(), name);
            }
        }
        for (i, node) in body.node.iter().enumerate() {
            let mut node = node.clone();
            let own = if node.name().is_empty() {
                format!("{}_{i}", node.op_type())
            } else {
                node.name().to_owned()
            };
            node.name = Some(self.fresh(format!("{prefix}.{own}")));
            for name in node.input.iter_mut().chain(&mut node.output) {
                rename(name, renamed);
            }
            rename_in_attributes(&mut node, renamed);
            self.nodes.push(node);
        }
        for info in &body.value_info {
            if let Some(name) = renamed.get(info.name()) {
                self.value_info.push(ValueInfoProto { name: Some(name.clone()), ..info.clone() });
            }
        }
        for (inside, name) in left {
            let from = renamed.get(inside).cloned().unwrap_or_else(|| inside.to_owned());
            self.push(prefix, "Identity", vec![from], name);
        }
    }
}

/// The prefix of the names of a node's parts.
pub(crate) fn prefix(node: &NodeProto) -> String {
    let result = || node.output.iter().find(|name| !name.is_empty()).map_or("", |name| name);
    if node.name().is_empty() { result().to_owned() } else { node.name().to_owned() }
}

/// The subgraph in the attribute of this name.
fn subgraph<'n>(node: &'n NodeProto, name: &str) -> Option<&'n GraphProto> {
    node.attribute.iter().find(|a| a.name() == name).and_then(|a| a.g.as_deref())
}

fn rename(name: &mut String, renamed: &Renamed) {
    if let Some(new) = renamed.get(name) {
        name.clone_from(new);
    }
}

/// Renames the values that the subgraphs of the node read from outside.
fn rename_in_attributes(node: &mut NodeProto, renamed: &Renamed) {
    for attribute in &mut node.attribute {
        for graph in attribute.g.as_deref_mut().into_iter().chain(&mut attribute.graphs) {
            let own: HashSet<String> = own_names(graph);
            let seen: Renamed = renamed
                .iter()
                .filter(|(name, _)| !own.contains(*name))
                .map(|(name, new)| (name.clone(), new.clone()))
                .collect();
            for node in &mut graph.node {
                node.input.iter_mut().for_each(|name| rename(name, &seen));
                rename_in_attributes(node, &seen);
            }
            for output in &mut graph.output {
                if let Some(new) = seen.get(output.name()) {
                    output.name = Some(new.clone());
                }
            }
        }
    }
}

/// Adds the names in the graph and in its subgraphs.
fn add_names(graph: &GraphProto, names: &mut HashSet<String>) {
    names.extend(own_names(graph));
    for node in &graph.node {
        names.insert(node.name().to_owned());
        names.extend(node.input.iter().cloned());
        for inner in node.attribute.iter().flat_map(|a| a.g.as_deref().into_iter().chain(&a.graphs)) {
            add_names(inner, names);
        }
    }
}

/// The names that the subgraph itself defines.
fn own_names(graph: &GraphProto) -> HashSet<String> {
    let mut own = HashSet::new();
    own.extend(graph.input.iter().map(|i| i.name().to_owned()));
    own.extend(graph.initializer.iter().map(|t| t.name().to_owned()));
    own.extend(graph.sparse_initializer.iter().filter_map(|t| Some(t.values.as_ref()?.name().to_owned())));
    own.extend(graph.node.iter().flat_map(|n| n.output.iter().cloned()));
    own
}

fn constant(name: &str, element: DataType, dims: &[i64], bytes: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: dims.to_vec(),
        data_type: Some(element as i32),
        raw_data: Some(bytes.into()),
        ..TensorProto::default()
    }
}

fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        i: Some(value),
        r#type: Some(AttributeType::Int as i32),
        ..AttributeProto::default()
    }
}

fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        ints: values.to_vec(),
        r#type: Some(AttributeType::Ints as i32),
        ..AttributeProto::default()
    }
}
