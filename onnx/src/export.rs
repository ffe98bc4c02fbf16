//! Writes the graph back to ONNX.
//!
//! Everything that no pass has touched is written as it was read: a node that came from the file keeps its attributes, metadata
//! and everything else, and only names of operands are replaced. New are the swaps, in one of two [`SwapForm`]s, updates of single
//! variables, clones of views, and the metadata for facts that ONNX cannot express.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use lmsc_ir::contract::NEWEST;
use lmsc_ir::{Advice, Attr, Data, ElementType, Graph, Node, NodeId, Place, TensorType, Type, ValueId, ops};

use crate::aside::Scratch;
use crate::file::Model;
use crate::functions::{CONTROL_OPERANDS, HOST_LAYER, Ours, SwapForm};
use crate::import::{Dims, declaration};
use crate::new_names::NewNames;
use crate::proto::{
    AttributeProto, AttributeType, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorType as TensorTypeProto, TypeProto,
    ValueInfoProto,
};
use crate::shapes::data_type;
use crate::state::is_copy;
use crate::{
    IR_WITH_FUNCTIONS, IR_WITH_NODE_METADATA, LMSC_DOMAIN, addresses, copy, import_opset, kept, key,
    set_metadata, state, update,
};

/// Why a graph cannot be written as ONNX.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// A tensor's bytes are not at hand.
    #[error("the text form holds only the digest of `{name}`, not its bytes, which the ONNX file needs")]
    NoBytes {
        /// The initializer or attribute.
        name: String,
    },
    /// ONNX has no such type.
    #[error("`{name}` is {ty}, and lmsc writes tensors only")]
    NoType {
        /// The value.
        name: String,
        /// Its type.
        ty: String,
    },
}

impl Advice for ExportError {
    fn helps(&self) -> Vec<String> {
        vec!["start from the .onnx file, or write text (-o x.lms)".to_owned()]
    }
}

/// The model of the graph, its nodes in the graph's order.
///
/// `model` is the file that the graph was imported from, and becomes the result; without one, the graph came from text, and
/// everything is written from the graph.
///
/// # Errors
/// [`ExportError`] if a graph from text lacks bytes.
pub fn export(
    model: Option<Model>,
    graph: &Graph,
    form: SwapForm,
    metadata: &BTreeMap<String, String>,
) -> Result<ModelProto, ExportError> {
    let mut proto = match model {
        Some(model) => model.proto,
        None => from_text(graph)?,
    };
    let source = std::mem::take(&mut proto.graph.get_or_insert_default().node);
    let mut referenced = vec![false; graph.node_capacity()];
    let mut readers = vec![0; source.len()];
    for &id in graph.order() {
        let node = graph.node(id);
        node.after.iter().chain(&node.recomputes).for_each(|n| referenced[n.as_u32() as usize] = true);
        referenced[id.as_u32() as usize] |= node.workspace.is_some();
        if let Some(count) = template(graph, id).and_then(|i| readers.get_mut(i)) {
            *count += 1;
        }
    }
    let mut exporter = Exporter {
        graph,
        outputs: graph.outputs.iter().copied().collect(),
        form,
        source,
        readers,
        referenced,
        swap_ins: HashMap::new(),
        ranges_in: HashMap::new(),
        new_values: Vec::new(),
        has_node_metadata: false,
        called: BTreeSet::new(),
        scratch: Scratch::default(),
        new_names: NewNames::of(graph),
    };
    let travelled: HashSet<ValueId> = match form {
        SwapForm::Function => HashSet::new(),
        SwapForm::Ort => graph
            .outputs
            .iter()
            .filter_map(|&output| Some(exporter.origin(output)).filter(|&origin| origin != output))
            .collect(),
    };
    let overwritten = kept::Overwritten::of(graph, travelled);
    let mut nodes = Vec::with_capacity(graph.order().len());
    for &id in graph.order() {
        let mut proto = exporter.node(id)?;
        let copies = kept::spell_out(graph, id, &overwritten, &mut proto, &mut exporter.new_names);
        exporter.has_node_metadata |= !copies.is_empty();
        nodes.extend(copies);
        nodes.push(proto);
    }
    let (new_values, has_node_metadata) = (exporter.new_values, exporter.has_node_metadata);
    let called = exporter.called;
    let (scratch, mut new_names) = (exporter.scratch, exporter.new_names);
    let calls_functions = !called.is_empty();

    proto.functions.retain(|f| {
        Ours::of_function(f).is_none_or(|ours| form == SwapForm::Function || called.contains(&ours))
    });
    for ours in called {
        let function = ours.function(form, &proto);
        match proto.functions.iter_mut().find(|f| Ours::of_function(f) == Some(ours)) {
            // The two forms of these functions differ.
            Some(there) if ours.attributes().contains(&"begin") => *there = function,
            Some(_) => {}
            None => proto.functions.push(function),
        }
        import_opset(&mut proto, LMSC_DOMAIN, 1);
    }
    let has_node_metadata = has_node_metadata || nodes.iter().any(update::gets_metadata);
    let needed = match (has_node_metadata, calls_functions) {
        (true, _) => IR_WITH_NODE_METADATA,
        (_, true) => IR_WITH_FUNCTIONS,
        _ => 0,
    };
    proto.ir_version = proto.ir_version.max(Some(needed));
    proto.metadata_props.retain(|entry| !key::OF_PLAN.contains(&entry.key()));
    for (key, value) in metadata {
        set_metadata(&mut proto.metadata_props, key, Some(value.clone()));
    }
    set_metadata(&mut proto.metadata_props, key::STATE, Some(state::entry(graph)));
    set_metadata(&mut proto.metadata_props, key::ADDRESSES, addresses::entry(graph));
    let dims = Dims::in_metadata(&proto.metadata_props);
    let body = proto.graph.get_or_insert_default();
    body.node = update::spell_out(nodes, &mut |base| new_names.value(base));
    correct(body, graph, &dims);
    declare(body, graph, &new_values);
    // Inputs, initializers and outputs that a pass has added follow those of the file.
    for &output in graph.outputs.iter().skip(body.output.len()) {
        body.output.push(value_info(graph, output)?);
    }
    let mut known: HashSet<&str> = body.initializer.iter().map(|tensor| tensor.name()).collect();
    known.extend(body.sparse_initializer.iter().filter_map(|sparse| Some(sparse.values.as_ref()?.name())));
    let added = graph.initializers.iter().filter(|i| !known.contains(&*graph.value(i.value).name));
    let added: Vec<TensorProto> = added.map(|i| initializer(graph, i)).collect::<Result<_, _>>()?;
    body.initializer.extend(added);
    let known: HashSet<String> = body.input.iter().map(|input| input.name().to_owned()).collect();
    for &input in graph.inputs.iter().filter(|&&input| !known.contains(&*graph.value(input).name)) {
        body.input.push(value_info(graph, input)?);
    }
    body.initializer.extend(scratch.initializers());
    let uses_onnx = body.node.iter().any(|node| is_onnx(node.domain()));
    // A text need not say which of ONNX's versions it means, and copies of values are written as ONNX's operators.
    if uses_onnx && !proto.opset_import.iter().any(|import| is_onnx(import.domain())) {
        let newest = NEWEST.iter().find(|(domain, _)| is_onnx(domain));
        newest.into_iter().for_each(|&(_, version)| import_opset(&mut proto, "", version));
    }
    Ok(proto)
}

/// Whether the name is that of ONNX's own operators.
fn is_onnx(domain: &str) -> bool {
    matches!(domain, "" | "ai.onnx")
}

/// The position in the file of the node that this one, or its origin, was read from.
fn template(graph: &Graph, id: NodeId) -> Option<usize> {
    let node = graph.node(id);
    let source = node.source.or_else(|| node.recomputes.and_then(|origin| graph.node(origin).source));
    source.map(|i| i as usize)
}

struct Exporter<'a> {
    graph: &'a Graph,
    outputs: HashSet<ValueId>,
    form: SwapForm,
    /// Nodes as in the file.
    source: Vec<NodeProto>,
    /// Number of nodes still to be made from each of them.
    readers: Vec<u32>,
    /// For each node, whether metadata names it.
    referenced: Vec<bool>,
    /// For each host copy, the number of its swap-ins that have been written.
    swap_ins: HashMap<ValueId, usize>,
    /// The same for ranges, by their first element.
    ranges_in: HashMap<(ValueId, i64), usize>,
    /// Values that are not in the file, each with a value of the same type.
    new_values: Vec<(ValueId, ValueId)>,
    has_node_metadata: bool,
    called: BTreeSet<Ours>,
    scratch: Scratch,
    new_names: NewNames<'a>,
}

impl Exporter<'_> {
    fn node(&mut self, id: NodeId) -> Result<NodeProto, ExportError> {
        let node = self.graph.node(id);
        let mut proto = match () {
            () if node.op.is_swap() => self.swap(id)?,
            () if node.op.is_join() => self.join(id)?,
            () if is_copy(self.graph, id) => self.copy(id),
            () => self.compute(id)?,
        };
        // A name that another node of the file also has would refer to either of them.
        if (self.referenced[id.as_u32() as usize] || !proto.name().is_empty()) && proto.name() != &*node.name
        {
            proto.name = Some(node.name.to_string());
        }
        let names = |nodes: &[NodeId]| -> Vec<String> {
            nodes.iter().map(|&n| self.graph.node(n).name.to_string()).collect()
        };
        let after = (!node.after.is_empty()).then(|| serde_json::json!(names(&node.after)).to_string());
        let updates: Vec<(usize, &str)> = node
            .updates
            .iter()
            .filter_map(|u| Some((u.result?, u.variable)))
            .filter(|&(result, variable)| !self.is_told(node, result, variable))
            .map(|(result, variable)| (result, name(self.graph, Some(variable))))
            .collect();
        let updates = (!updates.is_empty()).then(|| serde_json::json!(updates).to_string());
        let recomputes = node.recomputes.map(|origin| self.graph.node(origin).name.to_string());
        // Other programs rename nodes, and the name of an unnamed node depends on its position. A subgraph may hold random
        // nodes, so the node that has it gets a seed unless the file holds the name that gives the seed.
        let has_own_name = node.seed.is_none() && proto.name() == &*node.name;
        let seed = node.op.effects().random || ops::has_subgraph(node) && !has_own_name;
        let seed = seed.then(|| self.graph.seed(id).to_string());
        set_metadata(&mut proto.metadata_props, key::SEED, seed);
        set_metadata(&mut proto.metadata_props, key::AFTER, after);
        set_metadata(&mut proto.metadata_props, key::UPDATES, updates);
        set_metadata(&mut proto.metadata_props, key::RECOMPUTES, recomputes);
        set_metadata(&mut proto.metadata_props, key::APART, None);
        let is_ours = |key: &str| key.starts_with("ai.lmsc.") || key == key::LAYER;
        self.has_node_metadata |= proto.metadata_props.iter().any(|entry| is_ours(entry.key()));
        Ok(proto)
    }

    /// Whether the new value of the variable is implied, by the operator or because the result is an output.
    fn is_told(&self, node: &Node, result: usize, variable: ValueId) -> bool {
        let by_operator = node.op.effects().writes.iter().any(|&(_, written)| written == result);
        let new = node.results.get(result).copied().flatten();
        let is_output = new.is_some_and(|value| self.outputs.contains(&value));
        let travels = node.op.is_swap() || node.op.is_join() || self.graph.producer(variable).is_some();
        !travels && (by_operator || is_output)
    }

    /// The node at this position of the file: it is moved to its last use, and cloned before.
    fn of_file(&mut self, position: usize) -> Option<NodeProto> {
        let source = self.source.get_mut(position)?;
        let readers = &mut self.readers[position];
        *readers -= 1;
        Some(if *readers == 0 { std::mem::take(source) } else { source.clone() })
    }

    /// A node of the file, or one made from a node of the file.
    fn compute(&mut self, id: NodeId) -> Result<NodeProto, ExportError> {
        let node = self.graph.node(id);
        let mut proto = match template(self.graph, id).and_then(|i| self.of_file(i)) {
            Some(source) => source,
            None => NodeProto {
                op_type: Some(node.op.name().to_string()),
                domain: (!node.op.domain().is_empty()).then(|| node.op.domain().to_string()),
                attribute: node.attributes.iter().map(|(n, a)| attribute(n, a)).collect::<Result<_, _>>()?,
                ..NodeProto::default()
            },
        };
        if node.source.is_none() {
            proto.name = Some(node.name.to_string());
        }
        set_metadata(&mut proto.metadata_props, key::KIND, None);
        rename(&mut proto.input, node.operands.iter().map(|v| name(self.graph, *v)));
        rename(&mut proto.output, node.results.iter().map(|v| name(self.graph, *v)));
        self.scratch.spell_out(self.graph, id, &mut proto, &mut self.new_names);
        if node.source.is_none() {
            let origin = node.recomputes.map(|origin| &self.graph.node(origin).results);
            for (index, result) in node.results.iter().enumerate() {
                let like = origin.and_then(|r| r.get(index).copied().flatten());
                self.new_values.extend(result.map(|value| (value, like.unwrap_or(value))));
            }
        }
        Ok(proto)
    }

    fn swap(&mut self, id: NodeId) -> Result<NodeProto, ExportError> {
        let node = self.graph.node(id);
        let operand = node.operands[0].expect("a swap has an operand");
        let result = node.results[0].expect("a swap has a result");
        self.declare_like_origin(result, operand);
        let mut proto = NodeProto {
            name: Some(node.name.to_string()),
            input: vec![name(self.graph, Some(operand)).to_owned()],
            output: vec![name(self.graph, Some(result)).to_owned()],
            ..NodeProto::default()
        };
        let is_range = !node.attributes.is_empty();
        match self.form {
            // No copying operator copies a range.
            _ if is_range && node.op.is_swap_in() => {
                let sibling = match self.form {
                    SwapForm::Function => 0,
                    SwapForm::Ort => self.sibling_of_range(node, operand),
                };
                self.call(&mut proto, Ours::SwapInRange { sibling }, node)?;
            }
            _ if is_range => self.call(&mut proto, Ours::SwapOutRange, node)?,
            SwapForm::Function if node.op.is_swap_in() => {
                self.call(&mut proto, Ours::SwapIn, node)?;
                let controls = node.after.iter().filter_map(|&n| self.graph.node(n).defines().next());
                proto
                    .input
                    .extend(controls.take(CONTROL_OPERANDS).map(|v| name(self.graph, Some(v)).to_owned()));
                proto.input.resize(1 + CONTROL_OPERANDS, String::new());
            }
            SwapForm::Function => self.call(&mut proto, Ours::SwapOut, node)?,
            SwapForm::Ort => {
                let sibling = if node.op.is_swap_in() {
                    let count = self.swap_ins.entry(operand).or_default();
                    std::mem::replace(count, *count + 1)
                } else {
                    0
                };
                let ty = &self.graph.value(operand).ty;
                let transposed = node.op.is_swap_out() && self.is_transposed(operand);
                let opset = self.graph.opsets.get("").copied().unwrap_or(0);
                copy::spell(&mut proto, ty, opset, sibling, transposed);
            }
        }
        let kind = if node.op.is_swap_out() { "swap_out" } else { "swap_in" };
        set_metadata(&mut proto.metadata_props, key::KIND, Some(kind.to_owned()));
        if node.op.is_swap_out() {
            set_metadata(&mut proto.metadata_props, key::LAYER, Some(HOST_LAYER.to_owned()));
        }
        Ok(proto)
    }

    /// Number of swap-ins of the same range that have been written, limited by the number of different copies of its type.
    fn sibling_of_range(&mut self, node: &Node, operand: ValueId) -> usize {
        let element = self.graph.value(operand).ty.as_tensor().map_or(ElementType::Float, |t| t.element);
        let opset = self.graph.opsets.get("").copied().unwrap_or(0);
        let begin = match node.attribute("begin") {
            Some(&Attr::Int(begin)) => begin,
            _ => 0,
        };
        let count = self.ranges_in.entry((operand, begin)).or_default();
        std::mem::replace(count, *count + 1) % copy::of_lists(element, opset)
    }

    fn is_transposed(&self, value: ValueId) -> bool {
        let producer = self.graph.producer(value).map(|node| &self.graph.node(node).op);
        producer.is_some_and(|op| op.domain().is_empty() && op.name() == "Transpose")
    }

    /// A copy within the device: for other runtimes, the identity.
    fn copy(&mut self, id: NodeId) -> NodeProto {
        let node = self.graph.node(id);
        let names = |values: &[Option<ValueId>]| -> Vec<String> {
            values.iter().map(|&value| name(self.graph, value).to_owned()).collect()
        };
        let mut proto = NodeProto {
            name: Some(node.name.to_string()),
            op_type: Some("Identity".to_owned()),
            input: names(&node.operands),
            output: names(&node.results),
            ..NodeProto::default()
        };
        set_metadata(&mut proto.metadata_props, key::KIND, Some("copy".to_owned()));
        if let (&Some(&Some(operand)), &Some(&Some(result))) = (&node.operands.first(), &node.results.first())
        {
            self.new_values.push((result, operand));
            // The node that computes the value had the output's name, and its declaration.
            self.new_values.push((operand, result));
        }
        proto
    }

    fn join(&mut self, id: NodeId) -> Result<NodeProto, ExportError> {
        let node = self.graph.node(id);
        let result = node.results[0].expect("a join has a result");
        let stayed = node.operands[0].is_some();
        let operands: Vec<ValueId> = node.operands.iter().copied().flatten().collect();
        self.declare_like_origin(result, operands[0]);
        let mut proto = NodeProto {
            name: Some(node.name.to_string()),
            input: operands.iter().map(|&value| name(self.graph, Some(value)).to_owned()).collect(),
            output: vec![name(self.graph, Some(result)).to_owned()],
            ..NodeProto::default()
        };
        let pieces = node.operands.len() - 1;
        self.call(&mut proto, Ours::Join { pieces, stayed }, node)?;
        Ok(proto)
    }

    /// Makes the node call a function of ours with the attributes of the graph's node.
    fn call(&mut self, proto: &mut NodeProto, call: Ours, node: &Node) -> Result<(), ExportError> {
        proto.op_type = Some(call.name());
        proto.domain = Some(LMSC_DOMAIN.to_owned());
        proto.attribute = node.attributes.iter().map(|(n, a)| attribute(n, a)).collect::<Result<_, _>>()?;
        self.called.insert(call);
        Ok(())
    }

    /// Declares the result of a copy or join like the value at the origin of the copies, if their types are equal.
    fn declare_like_origin(&mut self, result: ValueId, operand: ValueId) {
        let origin = self.origin(operand);
        let alike = self.graph.value(origin).ty == self.graph.value(result).ty;
        self.new_values.push((result, if alike { origin } else { result }));
    }

    /// The value at the origin of copies and joins.
    fn origin(&self, mut value: ValueId) -> ValueId {
        let names = |&n: &NodeId| self.graph.node(n).op.is_swap() || self.graph.node(n).op.is_join();
        while let Some(producer) = self.graph.producer(value).filter(names) {
            match self.graph.node(producer).operands.iter().flatten().next() {
                Some(&operand) => value = operand,
                None => break,
            }
        }
        value
    }
}

fn name(graph: &Graph, value: Option<ValueId>) -> &str {
    value.map_or("", |v| &graph.value(v).name)
}

/// Replaces names where they differ; positions beyond the list keep the file's empty ones.
fn rename<'a>(names: &mut Vec<String>, new: impl ExactSizeIterator<Item = &'a str>) {
    if names.len() < new.len() {
        names.resize(new.len(), String::new());
    }
    for (slot, name) in names.iter_mut().zip(new) {
        if slot != name {
            *slot = name.to_owned();
        }
    }
}

/// Replaces declarations that contradict the graph.
fn correct(body: &mut GraphProto, graph: &Graph, dims: &Dims) {
    for info in body.value_info.iter_mut().chain(&mut body.output) {
        let Some(value) = graph.value_named(info.name()) else { continue };
        let ty = &graph.value(value).ty;
        if declaration(info, &|name| dims.get(name)).is_some_and(|declared| !declared.agrees(ty)) {
            info.r#type = type_proto(ty);
        }
    }
}

/// Declares the types of values that are not in the file, in the form of the file's declaration of the copied value.
fn declare(body: &mut GraphProto, graph: &Graph, new_values: &[(ValueId, ValueId)]) {
    let declared: HashMap<&str, &TypeProto> = body
        .value_info
        .iter()
        .chain(&body.input)
        .chain(&body.output)
        .filter_map(|info| Some((info.name.as_deref()?, info.r#type.as_ref()?)))
        .collect();
    let info = |&(value, like): &(ValueId, ValueId)| {
        let ty = declared.get(&*graph.value(like).name).map(|&ty| ty.clone());
        Some(ValueInfoProto {
            name: Some(graph.value(value).name.to_string()),
            r#type: Some(ty.or_else(|| type_proto(&graph.value(value).ty))?),
            ..ValueInfoProto::default()
        })
    };
    let new: Vec<ValueInfoProto> = new_values
        .iter()
        .filter(|(value, _)| !declared.contains_key(&*graph.value(*value).name))
        .filter_map(info)
        .collect();
    body.value_info.extend(new);
}

fn type_proto(ty: &Type) -> Option<TypeProto> {
    let tensor = ty.as_tensor()?;
    let dim =
        tensor.dims.iter().map(|&d| Dimension { dim_value: i64::try_from(d).ok(), ..Dimension::default() });
    Some(TypeProto {
        tensor_type: Some(TensorTypeProto {
            elem_type: Some(data_type(tensor.element)),
            shape: Some(TensorShapeProto { dim: dim.collect() }),
        }),
        ..TypeProto::default()
    })
}

fn value_info(graph: &Graph, value: ValueId) -> Result<ValueInfoProto, ExportError> {
    let value = graph.value(value);
    let no_type = || ExportError::NoType { name: value.name.to_string(), ty: value.ty.to_string() };
    Ok(ValueInfoProto {
        name: Some(value.name.to_string()),
        r#type: Some(type_proto(&value.ty).ok_or_else(no_type)?),
        ..ValueInfoProto::default()
    })
}

/// A model without nodes for a graph that did not come from ONNX.
fn from_text(graph: &Graph) -> Result<ModelProto, ExportError> {
    let info = |&value: &ValueId| value_info(graph, value);
    let results = graph.order().iter().flat_map(|&n| graph.node(n).defines());
    let outputs: HashSet<ValueId> = graph.outputs.iter().copied().collect();
    let declared = results.filter(|&v| graph.value(v).place == Place::Device && !outputs.contains(&v));
    let opset = |(domain, version): (&String, &i64)| OperatorSetIdProto {
        domain: Some(domain.clone()),
        version: Some(*version),
    };
    Ok(ModelProto {
        ir_version: Some(IR_WITH_FUNCTIONS),
        producer_name: Some("lmsc".to_owned()),
        opset_import: graph.opsets.iter().map(opset).collect(),
        graph: Some(GraphProto {
            name: Some(graph.name.clone()),
            input: graph.inputs.iter().map(info).collect::<Result<_, _>>()?,
            output: graph.outputs.iter().map(info).collect::<Result<_, _>>()?,
            initializer: graph
                .initializers
                .iter()
                .map(|i| initializer(graph, i))
                .collect::<Result<_, _>>()?,
            value_info: declared.filter_map(|v| info(&v).ok()).collect(),
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    })
}

fn initializer(graph: &Graph, of: &lmsc_ir::Initializer) -> Result<TensorProto, ExportError> {
    let value = graph.value(of.value);
    tensor(&value.name, value.ty.as_tensor().expect("an initializer is a tensor"), &of.data)
}

fn tensor(name: &str, ty: &TensorType, data: &Data) -> Result<TensorProto, ExportError> {
    let mut proto = TensorProto {
        name: Some(name.to_owned()),
        data_type: Some(data_type(ty.element)),
        dims: ty.dims.iter().map(|&d| d as i64).collect(),
        ..TensorProto::default()
    };
    match data {
        Data::Inline(bytes) => proto.raw_data = Some(bytes.clone()),
        Data::External { location, offset, length } => {
            let entry = |key: &str, value: String| StringStringEntryProto {
                key: Some(key.into()),
                value: Some(value),
            };
            proto.external_data = vec![
                entry("location", location.clone()),
                entry("offset", offset.to_string()),
                entry("length", length.to_string()),
            ];
            proto.data_location = Some(1);
        }
        Data::Digest { .. } => return Err(ExportError::NoBytes { name: name.to_owned() }),
    }
    Ok(proto)
}

fn attribute(name: &str, attr: &Attr) -> Result<AttributeProto, ExportError> {
    let mut proto = AttributeProto { name: Some(name.to_owned()), ..AttributeProto::default() };
    let kind = match attr {
        Attr::Int(value) => {
            proto.i = Some(*value);
            AttributeType::Int
        }
        Attr::Float(value) => {
            proto.f = Some(value.0);
            AttributeType::Float
        }
        Attr::String(value) => {
            proto.s = Some(value.clone());
            AttributeType::String
        }
        Attr::Ints(values) => {
            proto.ints = values.clone();
            AttributeType::Ints
        }
        Attr::Floats(values) => {
            proto.floats = values.iter().map(|f| f.0).collect();
            AttributeType::Floats
        }
        Attr::Strings(values) => {
            proto.strings = values.clone();
            AttributeType::Strings
        }
        Attr::Tensor(ty, data) => {
            proto.t = Some(Box::new(tensor(name, ty, data)?));
            AttributeType::Tensor
        }
        Attr::Opaque(_) => return Err(ExportError::NoBytes { name: name.to_owned() }),
    };
    proto.r#type = Some(kind as i32);
    Ok(proto)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_has_a_code() {
        for &element in ElementType::ALL {
            assert_eq!(crate::shapes::element_type(data_type(element).into()), Some(element));
        }
    }
}
