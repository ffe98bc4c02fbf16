//! From a model's messages to the graph.
//!
//! - A graph input that is also an initializer is an initializer: its bytes are in the file. Whoever feeds another
//!   value for it must feed one that gives the same shapes.
//! - Extents are numbers: symbols of graph inputs are bound by [`Dims`], everything else follows from the inputs
//!   by [`shapes`](crate::shapes). Other symbols, such as `unk__7`, declare nothing: exporters give one size
//!   several names.
//! - Nodes stay in the file's order if that is a topological one, or else in the topological order that is
//!   nearest to it.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::fmt;

use bytes::Bytes;
use lmsc_ir::ops::{self, Effects};
use lmsc_ir::{
    Attr, Data, Def, Float, Graph, LMSC_DOMAIN, Name, Node, NodeId, Op, Place, TensorType, Type, Update,
    ValueId,
};
use prost::Message;

use crate::file::{ExternalError, Model, external_location};
use crate::key;
use crate::proto::{
    AttributeProto, AttributeType, DimValue, Dimension, FunctionProto, GraphProto, NodeProto,
    SparseTensorProto, TensorProto, TypeProto, TypeValue, ValueInfoProto,
};
use crate::shapes::{self, Const, Declared, Fact, Operand, Producer, Query, ShapeError, Wanted};

/// What symbolic dimensions are bound to: `--dim NAME=VALUE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dims(BTreeMap<String, u64>);

impl Dims {
    /// No bindings.
    pub fn none() -> Dims {
        Dims::default()
    }

    /// The bindings in texts of the form `NAME=VALUE`.
    ///
    /// # Errors
    /// [`DimError`] if a text has another form, or a name has two values.
    pub fn parse<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<Dims, DimError> {
        let mut dims = Dims::none();
        for text in texts {
            let text = text.as_ref();
            let parsed = text
                .split_once('=')
                .and_then(|(name, value)| Some((name.trim(), value.trim().parse().ok()?)));
            let Some((name, value)) = parsed.filter(|(name, v)| !name.is_empty() && *v <= i64::MAX as u64)
            else {
                return Err(DimError::Form { text: text.to_owned() });
            };
            if let Some(before) = dims.bind(name, value).filter(|&before| before != value) {
                return Err(DimError::Twice { name: name.to_owned(), values: [before, value] });
            }
        }
        Ok(dims)
    }

    /// Binds `name`; what comes back is the value it had before.
    pub fn bind(&mut self, name: impl Into<String>, value: u64) -> Option<u64> {
        self.0.insert(name.into(), value)
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Every binding, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, &value)| (&**name, value))
    }
}

/// Why a text binds no dimension.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DimError {
    /// It is not `NAME=VALUE`.
    #[error("`{text}` binds no dimension; write NAME=VALUE, for example --dim batch=32")]
    Form {
        /// The text.
        text: String,
    },
    /// Two values for one name.
    #[error("--dim {name} is given twice, as {} and as {}; give it once", values[0], values[1])]
    Twice {
        /// The name.
        name: String,
        /// Its values.
        values: [u64; 2],
    },
}

/// One reason why a model is no graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The model has no graph.
    #[error("the model holds no graph; export it again")]
    NoGraph,
    /// A symbolic extent of an input is not bound.
    #[error(
        "input `{input}`: extent {axis} is `{symbol}`, which has no value; bind it, for example with --dim {symbol}=32"
    )]
    UnboundDim {
        /// The input.
        input: String,
        /// The axis.
        axis: usize,
        /// The dimension's name.
        symbol: String,
    },
    /// An extent of an input has neither a number nor a name.
    #[error(
        "input `{input}`: extent {axis} is not known; give it a number or a name when exporting (a name can be bound with --dim)"
    )]
    UnknownDim {
        /// The input.
        input: String,
        /// The axis.
        axis: usize,
    },
    /// A binding of a symbol that no input has.
    #[error("--dim {symbol}: no input has a dimension of this name; {}", symbols(there_are))]
    NoSuchDim {
        /// The name given.
        symbol: String,
        /// The names there are.
        there_are: Vec<String>,
    },
    /// An input is not a tensor of known rank.
    #[error("input `{input}` is {what}")]
    Input {
        /// The input.
        input: String,
        /// What it is, and what to do.
        what: String,
    },
    /// A constant's bytes are not what its type says.
    #[error("{place} `{tensor}`: {reason}; export the model again")]
    Tensor {
        /// What kind of thing holds the tensor.
        place: String,
        /// Its name.
        tensor: String,
        /// What is wrong.
        reason: String,
    },
    /// A constant's bytes are in a file that cannot be referred to.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// A value is defined twice (I1).
    #[error("value `{value}` is defined twice, by {first} and by {second}; a value has one definition (I1)")]
    DefinedTwice {
        /// The value.
        value: String,
        /// The first definition.
        first: String,
        /// The second one.
        second: String,
    },
    /// A value is read but never defined (I1).
    #[error(
        "value `{value}`, which {reader} reads, is defined by no input, initializer or node (I1); \
         if it was cut out of a larger model, make it a graph input"
    )]
    Undefined {
        /// The value.
        value: String,
        /// Who reads it.
        reader: String,
    },
    /// Data and control edges make a cycle (I2).
    #[error("nodes depend on one another in a cycle (I2): {}", nodes.join(" -> "))]
    Cycle {
        /// The nodes, first one repeated.
        nodes: Vec<String>,
    },
    /// An attribute cannot be read.
    #[error("node `{node}` ({op}), attribute `{attribute}`: {reason}; export the model again")]
    Attribute {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// The attribute.
        attribute: String,
        /// What is wrong.
        reason: String,
    },
    /// Metadata of ours is not as we write it.
    #[error(
        "node `{node}` ({op}), metadata `{key}`: {reason}; let lmsc write the file again, or remove the entry"
    )]
    Metadata {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// The metadata's key.
        key: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Subgraphs stand in subgraphs too deeply.
    #[error("node `{node}` ({op}): subgraphs stand more than {} deep in one another", MOST_DEPTH)]
    TooDeep {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
    },
    /// The type of a result is not known.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// What the file says about an output is not what the value is.
    #[error("output `{output}` is {found}, but the file declares {declared}; correct the output's type")]
    Output {
        /// The output.
        output: String,
        /// Its type.
        found: String,
        /// The declaration.
        declared: String,
    },
}

fn symbols(names: &[String]) -> String {
    match names {
        [] => "the inputs have no symbolic dimensions".to_owned(),
        names => format!("the inputs have {}", names.join(", ")),
    }
}

/// Every reason found why a model is no graph.
#[derive(Debug, thiserror::Error)]
#[error("{name} cannot be imported:{}", Listed(self))]
pub struct ImportErrors {
    /// The model.
    pub name: String,
    /// At least one; no more than [`ImportErrors::MOST`].
    pub errors: Vec<ImportError>,
    /// How many more there are.
    pub more: usize,
}

impl ImportErrors {
    /// The number of errors that are kept.
    pub const MOST: usize = 20;
}

struct Listed<'a>(&'a ImportErrors);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.0.errors {
            write!(f, "\n{error}")?;
        }
        match self.0.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// How deep subgraphs and functions are followed.
const MOST_DEPTH: usize = 32;
/// How many nodes of function bodies and branches are looked at.
const MOST_STEPS: u32 = 1_000_000;
/// How many elements all constants together have; further ones are kept only if they are tiny.
const MOST_ELEMENTS: u64 = 1 << 24;

/// The graph of the model, with the type of every value.
///
/// # Errors
/// [`ImportErrors`] with every violation that does not follow from another one: symbols that are not bound, values
/// without or with two definitions, cycles, nodes that are not valid, results of unknown type.
pub fn import(model: &Model, dims: &Dims) -> Result<Graph, ImportErrors> {
    let mut errors = Errors::default();
    let graph = model.proto.graph.as_ref();
    let graph = match graph {
        Some(graph) => Importer::new(model, graph, dims, &mut errors).and_then(|i| i.run(&mut errors)),
        None => {
            errors.push(ImportError::NoGraph);
            None
        }
    };
    match graph {
        Some(graph) if errors.list.is_empty() => Ok(graph),
        _ => Err(ImportErrors { name: model.name.clone(), errors: errors.list, more: errors.more }),
    }
}

/// The elements of every value of `graph` that shapes may be computed from, by value.
pub fn constants(graph: &Graph) -> Vec<Option<Const>> {
    let mut known = Constants::new(graph.value_capacity());
    let written: HashSet<ValueId> = graph.variables().into_iter().collect();
    for initializer in &graph.initializers {
        if let (Some(ty), false) =
            (graph.value(initializer.value).ty.as_tensor(), written.contains(&initializer.value))
        {
            known.keep(initializer.value, Const::decode(ty, &initializer.data));
        }
    }
    for &id in graph.order() {
        let node = graph.node(id);
        let operands = operands(graph, &known, &node.operands);
        let result = |r: &Option<ValueId>| r.map(|v| Wanted { name: &graph.value(v).name, declared: None });
        let results: Vec<_> = node.results.iter().map(result).collect();
        let producer = |index| producer(graph, &node.operands, index);
        let query = Query {
            node: &node.name,
            op: &node.op,
            version: graph.opsets.get(&*node.op.domain).copied().unwrap_or(1),
            operands: &operands,
            attributes: &node.attributes,
            results: &results,
            producer: &producer,
        };
        let Ok(facts) = shapes::infer(&query) else { continue };
        for (result, fact) in node.results.iter().zip(facts) {
            if let (Some(value), Some(fact)) = (result, fact) {
                known.keep(*value, fact.value);
            }
        }
    }
    known.values
}

#[derive(Default)]
struct Errors {
    list: Vec<ImportError>,
    more: usize,
}

impl Errors {
    fn push(&mut self, error: impl Into<ImportError>) {
        if self.list.len() < ImportErrors::MOST {
            self.list.push(error.into());
        } else {
            self.more += 1;
        }
    }
}

/// The values of constants, by value, within a bound on all of them together.
struct Constants {
    values: Vec<Option<Const>>,
    elements: u64,
}

impl Constants {
    fn new(capacity: usize) -> Constants {
        Constants { values: vec![None; capacity], elements: 0 }
    }

    fn get(&self, value: ValueId) -> Option<&Const> {
        self.values.get(value.as_u32() as usize)?.as_ref()
    }

    fn keep(&mut self, value: ValueId, constant: Option<Const>) {
        let Some(constant) = constant else { return };
        let count = constant.len() as u64;
        if count > 16 && self.elements.saturating_add(count) > MOST_ELEMENTS {
            return;
        }
        self.elements += count;
        let index = value.as_u32() as usize;
        if index >= self.values.len() {
            self.values.resize(index + 1, None);
        }
        self.values[index] = Some(constant);
    }
}

fn operands<'a>(graph: &'a Graph, known: &'a Constants, ids: &[Option<ValueId>]) -> Vec<Option<Operand<'a>>> {
    let operand = |&id: &Option<ValueId>| {
        let id = id?;
        let value = graph.value(id);
        Some(Operand { name: &value.name, ty: &value.ty, value: known.get(id) })
    };
    ids.iter().map(operand).collect()
}

/// The node that computes the operand, seen through copies and `Identity`.
fn producer<'a>(graph: &'a Graph, operands: &[Option<ValueId>], index: usize) -> Option<Producer<'a>> {
    let mut value = operands.get(index).copied().flatten()?;
    loop {
        let Def::Result(node, result) = graph.value(value).def else { return None };
        let node = graph.node(node);
        let first = node.operands.first().copied().flatten();
        if !node.op.is_swap() && node.op.key() != ("", "Identity") {
            return Some(Producer { op: &node.op, result, operand: first.map(|v| &graph.value(v).ty) });
        }
        value = first?;
    }
}

/// Where a value of the file comes from.
#[derive(Clone, Copy)]
enum Source {
    Input(usize),
    Initializer(usize),
    Sparse(usize),
    Node(usize),
}

/// What a node's metadata says, and what else is not read as data.
#[derive(Default)]
struct Extra<'m> {
    /// Nodes that complete before this one starts.
    after: Vec<usize>,
    recomputes: Option<usize>,
    /// Values that subgraphs read.
    captures: Vec<u32>,
    /// `SwapOut` or `SwapIn`, whatever the operator's name.
    swap: Option<&'m str>,
}

/// An operator as it occurs in the file, with what does not change from node to node.
struct KnownOp<'m> {
    op: Op,
    effects: Effects,
    version: i64,
    function: Option<&'m FunctionProto>,
}

struct Importer<'m> {
    model: &'m Model,
    proto: &'m GraphProto,
    dims: &'m Dims,
    /// The number of every value name of the file.
    numbers: HashMap<&'m str, u32>,
    /// Where each comes from, by number.
    sources: Vec<Source>,
    /// What the file declares, by number.
    declared: Vec<Option<Declared>>,
    /// For every node its operands' numbers, one after another; `u32::MAX` where one is left out.
    reads: Vec<u32>,
    /// Where a node's operands begin in `reads`.
    begins: Vec<u32>,
    /// What few nodes have.
    extras: HashMap<usize, Extra<'m>>,
    names: Vec<Name>,
    bodies: Bodies<'m>,
}

const NONE: u32 = u32::MAX;

fn domain(node: &NodeProto) -> &str {
    match node.domain() {
        "ai.onnx" => "",
        domain => domain,
    }
}

fn op_name(node: &NodeProto) -> String {
    match domain(node) {
        "" => node.op_type().to_owned(),
        domain => format!("{domain}.{}", node.op_type()),
    }
}

impl<'m> Importer<'m> {
    /// The file's names resolved; `None` if they cannot be.
    fn new(
        model: &'m Model,
        proto: &'m GraphProto,
        dims: &'m Dims,
        errors: &mut Errors,
    ) -> Option<Importer<'m>> {
        let mut importer = Importer {
            model,
            proto,
            dims,
            numbers: HashMap::with_capacity(proto.node.len() * 2 + proto.input.len()),
            sources: Vec::new(),
            declared: Vec::new(),
            reads: Vec::new(),
            begins: Vec::with_capacity(proto.node.len() + 1),
            extras: HashMap::new(),
            names: unique_names(&proto.node),
            bodies: Bodies::new(model),
        };
        importer.define_all(errors);
        importer.declare_all();
        importer.read_all(errors);
        errors.list.is_empty().then_some(importer)
    }

    fn describe(&self, source: Source) -> String {
        match source {
            Source::Input(_) => "a graph input".to_owned(),
            Source::Initializer(_) | Source::Sparse(_) => "an initializer".to_owned(),
            Source::Node(i) => format!("node `{}` ({})", self.names[i], op_name(&self.proto.node[i])),
        }
    }

    fn define(&mut self, name: &'m str, source: Source, errors: &mut Errors) {
        match self.numbers.entry(name) {
            std::collections::hash_map::Entry::Vacant(vacant) => {
                vacant.insert(self.sources.len() as u32);
                self.sources.push(source);
            }
            std::collections::hash_map::Entry::Occupied(taken) => {
                let first = self.sources[*taken.get() as usize];
                let (first, second) = (self.describe(first), self.describe(source));
                errors.push(ImportError::DefinedTwice { value: name.to_owned(), first, second });
            }
        }
    }

    fn define_all(&mut self, errors: &mut Errors) {
        let proto = self.proto;
        for (i, tensor) in proto.initializer.iter().enumerate() {
            self.define(tensor.name(), Source::Initializer(i), errors);
        }
        for (i, sparse) in proto.sparse_initializer.iter().enumerate() {
            self.define(sparse_name(sparse), Source::Sparse(i), errors);
        }
        let constants = self.sources.len() as u32;
        for (i, input) in proto.input.iter().enumerate() {
            // An input with a default value is that initializer.
            if self.numbers.get(input.name()).is_none_or(|&n| n >= constants) {
                self.define(input.name(), Source::Input(i), errors);
            }
        }
        for (i, node) in proto.node.iter().enumerate() {
            for result in node.output.iter().filter(|r| !r.is_empty()) {
                self.define(result, Source::Node(i), errors);
            }
        }
    }

    fn declare_all(&mut self) {
        self.declared = vec![None; self.sources.len()];
        for info in self.proto.value_info.iter().chain(&self.proto.output) {
            let Some(&number) = self.numbers.get(info.name()) else { continue };
            if let Some(declared) = declaration(info, self.dims) {
                let merged = match self.declared[number as usize].take() {
                    Some(before) => merge(before, declared),
                    None => declared,
                };
                self.declared[number as usize] = Some(merged);
            }
        }
    }

    fn read_all(&mut self, errors: &mut Errors) {
        let proto = self.proto;
        let mut by_name: Option<HashMap<&str, usize>> = None;
        for (i, node) in proto.node.iter().enumerate() {
            self.begins.push(self.reads.len() as u32);
            for name in &node.input {
                let number = if name.is_empty() { Some(NONE) } else { self.numbers.get(&**name).copied() };
                self.reads.push(number.unwrap_or(NONE));
                if number.is_none() {
                    self.undefined(i, name, errors);
                }
            }
            let mut extra = Extra::default();
            let mut special = false;
            if node.attribute.iter().any(|a| a.g.is_some() || !a.graphs.is_empty()) {
                special = true;
                self.capture(i, &mut extra, errors);
            }
            if domain(node) == LMSC_DOMAIN {
                extra.swap = Some(node.op_type()).filter(|t| ["SwapOut", "SwapIn"].contains(t));
                special |= extra.swap.is_some();
            }
            for entry in node.metadata_props.iter().filter(|e| e.key().starts_with("ai.lmsc.")) {
                special = true;
                let by_name = by_name.get_or_insert_with(|| {
                    let mut by_name = HashMap::new();
                    for (i, node) in proto.node.iter().enumerate() {
                        by_name.entry(node.name()).or_insert(i);
                    }
                    by_name
                });
                if let Err((key, reason)) = metadata(entry.key(), entry.value(), by_name, &mut extra) {
                    let (node, op) = (self.names[i].to_string(), op_name(node));
                    errors.push(ImportError::Metadata { node, op, key, reason });
                }
            }
            if special {
                self.extras.insert(i, extra);
            }
        }
        self.begins.push(self.reads.len() as u32);
        for output in &proto.output {
            if !self.numbers.contains_key(output.name()) {
                let (value, reader) = (output.name().to_owned(), "the graph's output list".to_owned());
                errors.push(ImportError::Undefined { value, reader });
            }
        }
    }

    fn undefined(&self, node: usize, value: &str, errors: &mut Errors) {
        let reader = self.describe(Source::Node(node));
        errors.push(ImportError::Undefined { value: value.to_owned(), reader });
    }

    /// What the node's subgraphs read from this graph.
    fn capture(&self, node: usize, extra: &mut Extra<'m>, errors: &mut Errors) {
        let proto = &self.proto.node[node];
        let mut free = Vec::new();
        for attribute in &proto.attribute {
            for graph in attribute.g.as_deref().into_iter().chain(&attribute.graphs) {
                if free_names(graph, 0, &mut free).is_err() {
                    let (node, op) = (self.names[node].to_string(), op_name(proto));
                    errors.push(ImportError::TooDeep { node, op });
                    return;
                }
            }
        }
        let mut seen = HashSet::new();
        for name in free {
            match self.numbers.get(name) {
                Some(&number) if seen.insert(number) => extra.captures.push(number),
                Some(_) => {}
                None => self.undefined(node, name, errors),
            }
        }
    }

    fn operands(&self, node: usize) -> &[u32] {
        &self.reads[self.begins[node] as usize..self.begins[node + 1] as usize]
    }

    /// The nodes that must complete before this one starts.
    fn before(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let extra = self.extras.get(&node);
        let captures = extra.map_or(&[][..], |e| &e.captures);
        let after = extra.map_or(&[][..], |e| &e.after);
        let reads = self.operands(node).iter().chain(captures).filter(|&&n| n != NONE);
        let producer = |&n: &u32| match self.sources[n as usize] {
            Source::Node(i) => Some(i),
            _ => None,
        };
        reads.filter_map(producer).chain(after.iter().copied())
    }

    /// A topological order: the file's, or the nearest.
    fn order(&self, errors: &mut Errors) -> Option<Vec<usize>> {
        let count = self.proto.node.len();
        if (0..count).all(|i| self.before(i).all(|b| b < i)) {
            return Some((0..count).collect());
        }
        let mut waiting = vec![0u32; count];
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); count];
        for (i, waiting) in waiting.iter_mut().enumerate() {
            for b in self.before(i) {
                next[b].push(i as u32);
                *waiting += 1;
            }
        }
        let mut ready: BinaryHeap<Reverse<u32>> =
            (0..count as u32).filter(|&i| waiting[i as usize] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(count);
        while let Some(Reverse(i)) = ready.pop() {
            order.push(i as usize);
            for &n in &next[i as usize] {
                waiting[n as usize] -= 1;
                if waiting[n as usize] == 0 {
                    ready.push(Reverse(n));
                }
            }
        }
        if order.len() == count {
            return Some(order);
        }
        // Every node that still waits has a predecessor that does: walking back must come to a node twice.
        let mut at = waiting.iter().position(|&w| w > 0)?;
        let mut seen = vec![false; count];
        while !std::mem::replace(&mut seen[at], true) {
            at = self.before(at).find(|&b| waiting[b] > 0)?;
        }
        let mut nodes = vec![at];
        loop {
            at = self.before(at).find(|&b| waiting[b] > 0)?;
            nodes.push(at);
            if at == nodes[0] {
                break;
            }
        }
        let nodes = nodes.into_iter().rev();
        let nodes =
            nodes.map(|i| format!("`{}` ({})", self.names[i], op_name(&self.proto.node[i]))).collect();
        errors.push(ImportError::Cycle { nodes });
        None
    }

    fn run(mut self, errors: &mut Errors) -> Option<Graph> {
        let order = self.order(errors)?;
        let mut graph = Graph::new(self.proto.name());
        for import in &self.model.proto.opset_import {
            graph.opsets.insert(import.domain().to_owned(), import.version());
        }
        if self.proto.node.iter().any(|n| domain(n) == LMSC_DOMAIN) {
            graph.opsets.entry(LMSC_DOMAIN.to_owned()).or_insert(1);
        }
        let mut values: Vec<Option<ValueId>> = vec![None; self.sources.len()];
        let mut known = Constants::new(self.sources.len());
        self.add_inputs(&mut graph, &mut values, errors);
        self.add_initializers(&mut graph, &mut values, &mut known, errors);

        let mut ids: Vec<Option<NodeId>> = vec![None; self.proto.node.len()];
        let mut roots: Vec<Option<ValueId>> = Vec::with_capacity(self.sources.len());
        let mut ops: HashMap<(&str, &str, &str), KnownOp<'m>> = HashMap::new();
        let mut attribute_names: HashMap<&str, Name> = HashMap::new();
        for i in order {
            let proto = &self.proto.node[i];
            let extra = self.extras.remove(&i).unwrap_or_default();
            let key = match extra.swap {
                Some(swap) => (LMSC_DOMAIN, swap, ""),
                None => (domain(proto), proto.op_type(), proto.overload()),
            };
            let known_op = ops.entry(key).or_insert_with(|| {
                let op = Op::new(key.0, key.1);
                let effects = ops::effects(&op);
                let spelled = if key.0.is_empty() { "ai.onnx" } else { key.0 };
                let version = graph.opsets.get(key.0).or_else(|| graph.opsets.get(spelled)).copied();
                KnownOp { op, effects, version: version.unwrap_or(1), function: self.bodies.function(key) }
            });
            let mut node = Node::new(self.names[i].clone(), known_op.op.clone());
            node.source = Some(i as u32);
            let attributes = match extra.swap {
                // The operator that stands for the copy is no part of the graph.
                Some(_) if domain(proto) != LMSC_DOMAIN => &[][..],
                _ => &proto.attribute,
            };
            let before = errors.list.len();
            for attribute in attributes {
                match read_attribute(attribute) {
                    Ok(attr) => {
                        let name = attribute_names
                            .entry(attribute.name())
                            .or_insert_with(|| attribute.name().into());
                        node.attributes.push((name.clone(), attr));
                    }
                    Err(reason) => {
                        let (node, op) = (self.names[i].to_string(), op_name(proto));
                        let attribute = attribute.name().to_owned();
                        errors.push(ImportError::Attribute { node, op, attribute, reason });
                    }
                }
            }
            let (data, control) = match extra.swap {
                Some(_) => self.operands(i).split_at(self.operands(i).len().min(1)),
                None => (self.operands(i), &[][..]),
            };
            let mut lost = errors.list.len() > before;
            let mut resolve = |&n: &u32| {
                let value = values.get(n as usize).copied().flatten();
                lost |= n != NONE && value.is_none();
                value
            };
            node.operands = data.iter().map(&mut resolve).collect();
            node.captures = extra.captures.iter().filter_map(&mut resolve).collect();
            if lost {
                // Whatever went wrong upstream has been said.
                continue;
            }
            let control =
                control.iter().filter(|&&n| n != NONE).filter_map(|&n| match self.sources[n as usize] {
                    Source::Node(i) => Some(i),
                    _ => None,
                });
            for id in extra.after.iter().copied().chain(control).filter_map(|b| ids[b]) {
                if !node.after.contains(&id) {
                    node.after.push(id);
                }
            }

            let facts = {
                let operands = operands(&graph, &known, &node.operands);
                let results: Vec<Option<Wanted<'_>>> = proto
                    .output
                    .iter()
                    .map(|name| {
                        let number = *self.numbers.get(&**name).filter(|_| !name.is_empty())?;
                        Some(Wanted { name, declared: self.declared[number as usize].as_ref() })
                    })
                    .collect();
                let producer = |index| producer(&graph, &node.operands, index);
                let query = Query {
                    node: &node.name,
                    op: &node.op,
                    version: known_op.version,
                    operands: &operands,
                    attributes: &node.attributes,
                    results: &results,
                    producer: &producer,
                };
                let outer = |name: &str| {
                    let id = values[*self.numbers.get(name)? as usize]?;
                    Some(Fact { ty: graph.value(id).ty.clone(), value: known.get(id).cloned() })
                };
                self.bodies.infer(proto, known_op.function, &query, &outer, 0)
            };
            let facts = match facts {
                Ok(facts) => facts,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };

            let writes = known_op.effects.writes;
            let place = if node.op.is_swap_out() { Place::Host } else { Place::Device };
            let (types, constants): (Vec<_>, Vec<_>) =
                facts.into_iter().map(|f| f.map_or((None, None), |f| (Some(f.ty), f.value))).unzip();
            let named = proto.output.iter().zip(types).map(|(name, ty)| Some((&**name, ty?, place)));
            let id = graph.add_node(node, named);
            ids[i] = Some(id);
            for (index, constant) in constants.into_iter().enumerate() {
                let Some(value) = graph.node(id).results[index] else { continue };
                if let Some(&number) = self.numbers.get(&*proto.output[index]) {
                    values[number as usize] = Some(value);
                }
                known.keep(value, constant);
            }
            for &(operand, result) in writes {
                let Some(value) = graph.node(id).operands.get(operand).copied().flatten() else { continue };
                let root = match graph.value(value).def {
                    Def::Input | Def::Initializer(_) => Some(value),
                    _ => roots.get(value.as_u32() as usize).copied().flatten(),
                };
                let Some(variable) = root else { continue };
                let after = graph.node(id).results.get(result).copied().flatten();
                graph.add_update(id, Update { variable, result: after.map(|_| result) });
                if let Some(after) = after {
                    let index = after.as_u32() as usize;
                    if roots.len() <= index {
                        roots.resize(index + 1, None);
                    }
                    roots[index] = Some(variable);
                }
            }
            if let Some(origin) = extra.recomputes {
                // The origin may stand behind its copy; all ids are known at the end.
                self.extras.insert(i, Extra { recomputes: Some(origin), ..Extra::default() });
            }
        }
        let recomputed: BTreeMap<usize, Option<usize>> =
            std::mem::take(&mut self.extras).into_iter().map(|(i, e)| (i, e.recomputes)).collect();
        for (i, origin) in recomputed {
            if let (Some(node), Some(origin)) = (ids[i], origin.and_then(|o| ids[o])) {
                graph.set_recomputes(node, origin);
            }
        }
        self.add_outputs(&mut graph, &values, errors);
        Some(graph)
    }

    fn add_inputs(&self, graph: &mut Graph, values: &mut [Option<ValueId>], errors: &mut Errors) {
        let mut there_are = BTreeSet::new();
        for (i, input) in self.proto.input.iter().enumerate() {
            let Some(&number) = self.numbers.get(input.name()) else { continue };
            if !matches!(self.sources[number as usize], Source::Input(index) if index == i) {
                continue;
            }
            let tensor = match input.r#type.as_ref().and_then(TypeProto::value) {
                Some(TypeValue::Tensor(tensor)) => Ok(tensor),
                Some(TypeValue::Sequence(_)) => Err(
                    "a sequence of unknown length; an optimizer's graph is linked to the training graph, which \
                     says what the sequences hold: compile the training graph with --optimizer and this file",
                ),
                Some(TypeValue::Map(_)) => {
                    Err("a map; lmsc knows tensors only: make it an output of the code that feeds the graph")
                }
                Some(TypeValue::Optional(_)) => {
                    Err("optional; export the model with the input, or without it")
                }
                Some(TypeValue::SparseTensor(_)) => Err("a sparse tensor; feed it dense"),
                Some(TypeValue::Opaque(_)) => Err("of an opaque type; lmsc knows tensors only"),
                None => Err("of no type; export the model again"),
            };
            let input_error =
                |what: &str| ImportError::Input { input: input.name().to_owned(), what: what.to_owned() };
            let tensor = match tensor {
                Ok(tensor) => tensor,
                Err(what) => {
                    errors.push(input_error(what));
                    continue;
                }
            };
            let Some(element) = shapes::element_type(tensor.elem_type().into()) else {
                let what = format!(
                    "a tensor of elements of type number {}, which lmsc does not know",
                    tensor.elem_type()
                );
                errors.push(input_error(&what));
                continue;
            };
            let Some(shape) = &tensor.shape else {
                errors.push(input_error("a tensor of unknown rank; export the model with the input's shape"));
                continue;
            };
            let mut dims = Vec::with_capacity(shape.dim.len());
            for (axis, dim) in shape.dim.iter().enumerate() {
                let name = || input.name().to_owned();
                match dim.value() {
                    Some(DimValue::Extent(extent)) => match u64::try_from(extent) {
                        Ok(extent) => dims.push(extent),
                        Err(_) => errors.push(ImportError::UnknownDim { input: name(), axis }),
                    },
                    Some(DimValue::Name(symbol)) if !symbol.is_empty() => {
                        there_are.insert(symbol);
                        match self.dims.get(symbol) {
                            Some(extent) => dims.push(extent),
                            None => {
                                let symbol = symbol.to_owned();
                                errors.push(ImportError::UnboundDim { input: name(), axis, symbol });
                            }
                        }
                    }
                    _ => errors.push(ImportError::UnknownDim { input: name(), axis }),
                }
            }
            if dims.len() < shape.dim.len() {
                continue;
            }
            let ty = Type::from(TensorType::new(element, dims));
            if !shapes::is_possible(&ty) {
                errors.push(input_error(&format!(
                    "{ty}, which has more than 2^60 bytes; check the values of --dim"
                )));
                continue;
            }
            values[number as usize] = Some(graph.add_input(input.name(), ty, Place::Device));
        }
        for (symbol, _) in self.dims.iter().filter(|(name, _)| !there_are.contains(name)) {
            let there_are = there_are.iter().map(|&s| s.to_owned()).collect();
            errors.push(ImportError::NoSuchDim { symbol: symbol.to_owned(), there_are });
        }
    }

    fn add_initializers(
        &self,
        graph: &mut Graph,
        values: &mut [Option<ValueId>],
        known: &mut Constants,
        errors: &mut Errors,
    ) {
        // An initializer that the step writes is a variable: its value in the file is not the one of later steps.
        let mut written: HashSet<u32> = HashSet::new();
        for (i, node) in self.proto.node.iter().enumerate() {
            if domain(node).is_empty() {
                continue;
            }
            let writes = ops::effects(&Op::new(domain(node), node.op_type())).writes;
            written.extend(writes.iter().filter_map(|&(operand, _)| self.operands(i).get(operand)));
        }
        for (i, tensor) in self.proto.initializer.iter().enumerate() {
            let Some(&number) = self.numbers.get(tensor.name()) else { continue };
            if !matches!(self.sources[number as usize], Source::Initializer(index) if index == i) {
                continue;
            }
            match read_tensor(tensor, "initializer") {
                Ok((ty, data)) => {
                    let constant = Const::decode(&ty, &data).filter(|_| !written.contains(&number));
                    let value = graph.add_initializer(tensor.name(), ty, data);
                    known.keep(value, constant);
                    values[number as usize] = Some(value);
                }
                Err(error) => errors.push(error),
            }
        }
        for (i, sparse) in self.proto.sparse_initializer.iter().enumerate() {
            let Some(&number) = self.numbers.get(sparse_name(sparse)) else { continue };
            if !matches!(self.sources[number as usize], Source::Sparse(index) if index == i) {
                continue;
            }
            let element = sparse.values.as_ref().and_then(|v| shapes::element_type(v.data_type().into()));
            let dims = sparse.dims.iter().map(|&d| u64::try_from(d).ok()).collect::<Option<Vec<u64>>>();
            let ty = element.zip(dims).map(|(element, dims)| TensorType::new(element, dims));
            match ty.filter(|ty| shapes::is_possible(&ty.clone().into())) {
                Some(ty) => {
                    let data = Data::Inline(sparse.encode_to_vec().into());
                    values[number as usize] = Some(graph.add_initializer(sparse_name(sparse), ty, data));
                }
                None => errors.push(ImportError::Tensor {
                    place: "sparse initializer".to_owned(),
                    tensor: sparse_name(sparse).to_owned(),
                    reason: "its element type or an extent is not valid".to_owned(),
                }),
            }
        }
    }

    fn add_outputs(&self, graph: &mut Graph, values: &[Option<ValueId>], errors: &mut Errors) {
        for output in &self.proto.output {
            let Some(&number) = self.numbers.get(output.name()) else { continue };
            let Some(value) = values[number as usize] else { continue };
            let ty = &graph.value(value).ty;
            // Results of nodes were checked when they were inferred.
            if let (None, Some(declared)) = (graph.producer(value), &self.declared[number as usize])
                && !declared.agrees(ty)
            {
                let (found, declared) = (ty.to_string(), declared.to_string());
                errors.push(ImportError::Output { output: output.name().to_owned(), found, declared });
            }
            graph.outputs.push(value);
        }
    }
}

fn sparse_name(sparse: &SparseTensorProto) -> &str {
    sparse.values.as_ref().map_or("", |v| v.name())
}

/// A name for every node: its own, or one that says what it is and where it stands.
fn unique_names(nodes: &[NodeProto]) -> Vec<Name> {
    let mut taken: HashSet<&str> = HashSet::with_capacity(nodes.len());
    let own: Vec<bool> = nodes.iter().map(|n| !n.name().is_empty() && taken.insert(n.name())).collect();
    let mut made: HashSet<Name> = HashSet::new();
    let mut next: HashMap<&str, u32> = HashMap::new();
    let mut names = Vec::with_capacity(nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        let name: Name = if own[i] {
            node.name().into()
        } else if node.name().is_empty() {
            let base = format!("{}_{i}", node.op_type());
            let mut name: Name = base.as_str().into();
            let mut suffix = 1;
            while taken.contains(&*name) || made.contains(&*name) {
                suffix += 1;
                name = format!("{base}_{suffix}").into();
            }
            name
        } else {
            let suffix = next.entry(node.name()).or_insert(1);
            loop {
                *suffix += 1;
                let name: Name = format!("{}_{suffix}", node.name()).into();
                if !taken.contains(&*name) && !made.contains(&*name) {
                    break name;
                }
            }
        };
        if !own[i] {
            made.insert(name.clone());
        }
        names.push(name);
    }
    names
}

/// Reads one metadata entry of ours into `extra`.
fn metadata(
    key: &str,
    value: &str,
    by_name: &HashMap<&str, usize>,
    extra: &mut Extra<'_>,
) -> Result<(), (&'static str, String)> {
    let find = |name: &str| by_name.get(name).copied().ok_or_else(|| format!("there is no node `{name}`"));
    match key {
        key::AFTER => {
            let names: Vec<String> = serde_json::from_str(value)
                .map_err(|e| (key::AFTER, format!("`{value}` is no JSON array of node names ({e})")))?;
            for name in &names {
                extra.after.push(find(name).map_err(|e| (key::AFTER, e))?);
            }
        }
        key::RECOMPUTES => extra.recomputes = Some(find(value).map_err(|e| (key::RECOMPUTES, e))?),
        key::KIND => match value {
            "swap_out" => extra.swap = Some("SwapOut"),
            "swap_in" => extra.swap = Some("SwapIn"),
            _ => return Err((key::KIND, format!("`{value}` is neither swap_out nor swap_in"))),
        },
        // Other entries are notes for other readers.
        _ => {}
    }
    Ok(())
}

/// Appends the names that `graph` reads and does not define.
fn free_names<'m>(graph: &'m GraphProto, depth: usize, free: &mut Vec<&'m str>) -> Result<(), ()> {
    if depth > MOST_DEPTH {
        return Err(());
    }
    let mut defined: HashSet<&str> = HashSet::new();
    defined.extend(graph.input.iter().map(|v| v.name()));
    defined.extend(graph.initializer.iter().map(|t| t.name()));
    defined.extend(graph.sparse_initializer.iter().map(sparse_name));
    defined.extend(graph.node.iter().flat_map(|n| &n.output).map(|s| &**s));
    let begin = free.len();
    for node in &graph.node {
        free.extend(node.input.iter().map(|s| &**s));
        for attribute in &node.attribute {
            for inner in attribute.g.as_deref().into_iter().chain(&attribute.graphs) {
                free_names(inner, depth + 1, free)?;
            }
        }
    }
    free.extend(graph.output.iter().map(|v| v.name()));
    let mut seen = HashSet::new();
    let kept: Vec<&str> = free
        .drain(begin..)
        .filter(|name| !name.is_empty() && !defined.contains(name) && seen.insert(*name))
        .collect();
    free.extend(kept);
    Ok(())
}

/// What a declaration says in numbers; `None` if it says nothing about a tensor.
fn declaration(info: &ValueInfoProto, dims: &Dims) -> Option<Declared> {
    let Some(TypeValue::Tensor(tensor)) = info.r#type.as_ref().and_then(TypeProto::value) else {
        return None;
    };
    let extent = |dim: &Dimension| match dim.value()? {
        // Some writers say -1 for what they do not know.
        DimValue::Extent(extent) => u64::try_from(extent).ok(),
        DimValue::Name(name) => dims.get(name),
    };
    Some(Declared {
        element: shapes::element_type(tensor.elem_type().into()),
        dims: tensor.shape.as_ref().map(|s| s.dim.iter().map(extent).collect()),
    })
}

/// Both declarations of one value, the later one first.
fn merge(before: Declared, later: Declared) -> Declared {
    let dims = match (before.dims, later.dims) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            Some(b.into_iter().zip(a).map(|(b, a)| b.or(a)).collect())
        }
        (a, b) => b.or(a),
    };
    Declared { element: later.element.or(before.element), dims }
}

/// The type and the bytes of a tensor of the file.
fn read_tensor(tensor: &TensorProto, place: &str) -> Result<(TensorType, Data), ImportError> {
    let wrong = |reason: String| ImportError::Tensor {
        place: place.to_owned(),
        tensor: tensor.name().to_owned(),
        reason,
    };
    let code = tensor.data_type();
    let element = shapes::element_type(code.into())
        .ok_or_else(|| wrong(format!("its elements are of type number {code}, which lmsc does not know")))?;
    let dims = tensor.dims.iter().map(|&d| u64::try_from(d).ok()).collect::<Option<Vec<u64>>>();
    let ty = TensorType::new(element, dims.ok_or_else(|| wrong("an extent is negative".to_owned()))?);
    let size =
        Some(&ty).filter(|ty| shapes::is_possible(&(*ty).clone().into())).and_then(TensorType::byte_size);
    let Some(size) = size else { return Err(wrong(format!("{ty} has more than 2^60 bytes"))) };
    if tensor.segment.is_some() {
        return Err(wrong("it is one segment of a tensor, which lmsc cannot put together".to_owned()));
    }
    if let Some(external) = external_location(tensor)? {
        let (location, offset) = (external.location, external.offset);
        let length = external.length.unwrap_or(size.0);
        return Ok((ty, Data::External { location, offset, length }));
    }
    if element == lmsc_ir::ElementType::String {
        // Strings have no dense layout: the message itself stands for its bytes.
        return Ok((ty, Data::Inline(tensor.encode_to_vec().into())));
    }
    let bytes = match &tensor.raw_data {
        Some(raw) => raw.clone(),
        None => typed_bytes(tensor, element).map_err(|e| wrong(e.to_string()))?,
    };
    if bytes.len() as u64 != size.0 {
        return Err(wrong(format!("it holds {} bytes, but {ty} has {}", bytes.len(), size.0)));
    }
    Ok((ty, Data::Inline(bytes)))
}

/// The elements of the typed fields as `raw_data` would hold them.
fn typed_bytes(
    tensor: &TensorProto,
    element: lmsc_ir::ElementType,
) -> Result<Bytes, crate::proto::PackedError> {
    use lmsc_ir::ElementType::*;
    let joined = |chunks: &[Bytes]| match chunks {
        [one] => one.clone(),
        many => many.concat().into(),
    };
    Ok(match element {
        // These fields hold little-endian elements already.
        Float | Complex64 => joined(&tensor.float_data),
        Double | Complex128 => joined(&tensor.double_data),
        Int64 => tensor.int64s()?.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Uint64 => tensor.uint64s()?.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Uint32 => tensor.uint64s()?.iter().flat_map(|v| (*v as u32).to_le_bytes()).collect(),
        Int32 => tensor.int32s()?.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Int16 | Uint16 | Float16 | Bfloat16 => {
            tensor.int32s()?.iter().flat_map(|v| (*v as u16).to_le_bytes()).collect()
        }
        _ => tensor.int32s()?.iter().map(|v| *v as u8).collect(),
    })
}

/// The attribute's value. What has no form of its own in the graph is the encoded [`AttributeProto`].
fn read_attribute(attribute: &AttributeProto) -> Result<Attr, String> {
    if !attribute.ref_attr_name().is_empty() {
        return Err(format!("it refers to attribute `{}` of a function's caller", attribute.ref_attr_name()));
    }
    let floats = |list: &[f32]| list.iter().map(|&f| Float(f)).collect();
    let opaque = || Attr::Opaque(Data::Inline(attribute.encode_to_vec().into()));
    Ok(match attribute_kind(attribute) {
        Some(AttributeType::Float) => Attr::Float(Float(attribute.f())),
        Some(AttributeType::Int) => Attr::Int(attribute.i()),
        Some(AttributeType::String) => Attr::String(attribute.s.clone().unwrap_or_default()),
        Some(AttributeType::Floats) => Attr::Floats(floats(&attribute.floats)),
        Some(AttributeType::Ints) => Attr::Ints(attribute.ints.clone()),
        Some(AttributeType::Strings) => Attr::Strings(attribute.strings.clone()),
        Some(AttributeType::Tensor) => match &attribute.t {
            Some(tensor) => {
                let (ty, data) = read_tensor(tensor, "tensor").map_err(|e| e.to_string())?;
                if ty.element == lmsc_ir::ElementType::String { opaque() } else { Attr::Tensor(ty, data) }
            }
            None => return Err("its tensor is missing".to_owned()),
        },
        Some(AttributeType::Undefined) | None => {
            return Err("nothing says what kind of value it holds".to_owned());
        }
        Some(_) => opaque(),
    })
}

/// What the attribute holds; where the file does not say, what is there.
fn attribute_kind(attribute: &AttributeProto) -> Option<AttributeType> {
    if let Some(kind) = attribute.attribute_type().filter(|&k| k != AttributeType::Undefined) {
        return Some(kind);
    }
    let present = [
        (attribute.f.is_some(), AttributeType::Float),
        (attribute.i.is_some(), AttributeType::Int),
        (attribute.s.is_some(), AttributeType::String),
        (attribute.t.is_some(), AttributeType::Tensor),
        (attribute.g.is_some(), AttributeType::Graph),
        (!attribute.floats.is_empty(), AttributeType::Floats),
        (!attribute.ints.is_empty(), AttributeType::Ints),
        (!attribute.strings.is_empty(), AttributeType::Strings),
        (!attribute.tensors.is_empty(), AttributeType::Tensors),
        (!attribute.graphs.is_empty(), AttributeType::Graphs),
    ];
    present.into_iter().find(|(there, _)| *there).map(|(_, kind)| kind)
}

/// Nodes inside of nodes: functions of the model, and branches.
struct Bodies<'m> {
    functions: HashMap<(&'m str, &'m str, &'m str), &'m FunctionProto>,
    opsets: BTreeMap<&'m str, i64>,
    steps: Cell<u32>,
}

/// The types of values that nodes outside define.
type Outer<'a> = &'a dyn Fn(&str) -> Option<Fact>;

impl<'m> Bodies<'m> {
    fn new(model: &'m Model) -> Bodies<'m> {
        let key = |f: &'m FunctionProto| ((f.domain(), f.name(), f.overload()), f);
        let opset = |o: &'m crate::proto::OperatorSetIdProto| (o.domain(), o.version());
        Bodies {
            functions: model.proto.functions.iter().map(key).collect(),
            opsets: model.proto.opset_import.iter().map(opset).collect(),
            steps: Cell::new(0),
        }
    }

    /// The function of this domain, name and overload. Those of our own domain have rules instead.
    fn function(&self, key: (&str, &str, &str)) -> Option<&'m FunctionProto> {
        self.functions.get(&key).copied().filter(|_| key.0 != LMSC_DOMAIN)
    }

    /// What is known about the results of `node`, a call, a branch or an operator.
    fn infer<'a>(
        &self,
        node: &NodeProto,
        function: Option<&'m FunctionProto>,
        query: &'a Query<'a>,
        outer: Outer<'_>,
        depth: usize,
    ) -> Result<Vec<Option<Fact>>, ShapeError> {
        let branches = query.op.key() == ("", "If");
        if function.is_none() && !branches {
            return shapes::infer(query);
        }
        let said =
            |w: &Option<Wanted<'_>>| w.is_none_or(|w| w.declared.is_some_and(|d| d.complete().is_some()));
        if query.results.iter().all(said) {
            return shapes::settle(query, Vec::new(), "");
        }
        let inside = match function {
            Some(function) => self.call(function, query, depth),
            None => self.branch(node, query, outer, depth),
        };
        match inside {
            Ok(facts) => shapes::settle(query, facts, "its body does not say"),
            Err(reason) => shapes::settle(query, Vec::new(), &format!("of its body, {reason}")),
        }
    }

    fn call(
        &self,
        function: &'m FunctionProto,
        query: &Query<'_>,
        depth: usize,
    ) -> Result<Vec<Option<Fact>>, String> {
        let mut facts: HashMap<&str, Fact> = HashMap::new();
        for (name, operand) in function.input.iter().zip(query.operands) {
            if let Some(operand) = operand {
                facts.insert(name, Fact { ty: operand.ty.clone(), value: operand.value.cloned() });
            }
        }
        let mut attributes = query.attributes.to_vec();
        for default in &function.attribute_proto {
            if query.attributes.iter().all(|(name, _)| **name != *default.name()) {
                attributes.push((default.name().into(), read_attribute(default)?));
            }
        }
        let opsets = function.opset_import.iter().map(|o| (o.domain(), o.version())).collect();
        let nothing = |_: &str| None;
        let body = Body {
            nodes: &function.node,
            declared: &function.value_info,
            opsets: &opsets,
            caller: &attributes,
        };
        self.walk(&body, &mut facts, &nothing, depth)?;
        Ok(function.output.iter().map(|name| facts.get(&**name).cloned()).collect())
    }

    fn branch(
        &self,
        node: &NodeProto,
        query: &Query<'_>,
        outer: Outer<'_>,
        depth: usize,
    ) -> Result<Vec<Option<Fact>>, String> {
        let taken =
            query.operands.first().copied().flatten().and_then(|o| o.value?.as_ints()?.first().copied());
        let mut both: Option<Vec<Option<Fact>>> = None;
        for (name, value) in [("then_branch", 1), ("else_branch", 0)] {
            if taken.is_some_and(|t| t != value) {
                continue;
            }
            let graph = node.attribute.iter().find(|a| a.name() == name).and_then(|a| a.g.as_deref());
            let Some(graph) = graph else { return Err(format!("attribute `{name}` is missing")) };
            let mut facts: HashMap<&str, Fact> = HashMap::new();
            for tensor in &graph.initializer {
                let (ty, data) = read_tensor(tensor, "initializer").map_err(|e| e.to_string())?;
                let value = Const::decode(&ty, &data);
                facts.insert(tensor.name(), Fact { ty: ty.into(), value });
            }
            let body =
                Body { nodes: &graph.node, declared: &graph.value_info, opsets: &self.opsets, caller: &[] };
            self.walk(&body, &mut facts, outer, depth)?;
            let results =
                graph.output.iter().map(|o| facts.get(o.name()).cloned().or_else(|| outer(o.name())));
            let results: Vec<Option<Fact>> = results.collect();
            both = Some(match both {
                None => results,
                Some(first) => first
                    .into_iter()
                    .zip(results)
                    .map(|(a, b)| match (a, b) {
                        (Some(a), Some(b)) if a.ty == b.ty => {
                            Some(Fact { value: a.value.filter(|v| b.value.as_ref() == Some(v)), ty: a.ty })
                        }
                        _ => None,
                    })
                    .collect(),
            });
        }
        both.ok_or_else(|| "no branch is taken".to_owned())
    }

    /// Adds what is known about every value of the body to `facts`.
    fn walk<'b>(
        &self,
        body: &Body<'b, '_>,
        facts: &mut HashMap<&'b str, Fact>,
        outer: Outer<'_>,
        depth: usize,
    ) -> Result<(), String> {
        if depth >= MOST_DEPTH {
            return Err(format!("it calls itself, or stands more than {MOST_DEPTH} deep"));
        }
        let declared: HashMap<&str, Declared> =
            body.declared.iter().filter_map(|i| Some((i.name(), declaration(i, &Dims::none())?))).collect();
        let defined: HashSet<&str> = body.nodes.iter().flat_map(|n| &n.output).map(|o| &**o).collect();
        for node in body.nodes {
            self.steps.set(self.steps.get() + 1);
            if self.steps.get() > MOST_STEPS {
                return Err(format!("it has more than {MOST_STEPS} nodes"));
            }
            let mut attributes: Vec<(Name, Attr)> = Vec::with_capacity(node.attribute.len());
            for attribute in &node.attribute {
                match attribute.ref_attr_name() {
                    "" => attributes.push((attribute.name().into(), read_attribute(attribute)?)),
                    // What the caller leaves out, the node leaves out.
                    name => {
                        let given = body.caller.iter().find(|(n, _)| **n == *name);
                        attributes.extend(given.map(|(_, attr)| (attribute.name().into(), attr.clone())));
                    }
                }
            }
            let found = node
                .input
                .iter()
                .map(|name| match &**name {
                    "" => Ok(None),
                    name => match facts.get(name).cloned().or_else(|| outer(name)) {
                        Some(fact) => Ok(Some((name, fact))),
                        // An operand of a function that its caller left out.
                        None if !defined.contains(name) => Ok(None),
                        None => Err(format!("value `{name}` is read before it is defined")),
                    },
                })
                .collect::<Result<Vec<_>, String>>()?;
            let operands: Vec<Option<Operand<'_>>> = found
                .iter()
                .map(|f| {
                    f.as_ref().map(|(name, fact)| Operand { name, ty: &fact.ty, value: fact.value.as_ref() })
                })
                .collect();
            let wanted = |name: &'b String| {
                (!name.is_empty()).then(|| Wanted { name, declared: declared.get(&**name) })
            };
            let results: Vec<_> = node.output.iter().map(wanted).collect();
            let op = Op::new(node.domain(), node.op_type());
            let version = body.opsets.get(node.domain()).copied().unwrap_or(1);
            let producer = |_| None;
            let query = Query {
                node: node.name(),
                op: &op,
                version,
                operands: &operands,
                attributes: &attributes,
                results: &results,
                producer: &producer,
            };
            let function = self.function((domain(node), node.op_type(), node.overload()));
            let here = |name: &str| facts.get(name).cloned().or_else(|| outer(name));
            let inferred = self.infer(node, function, &query, &here, depth + 1).map_err(|e| e.to_string())?;
            for (name, fact) in node.output.iter().zip(inferred) {
                facts.extend(fact.map(|fact| (&**name, fact)));
            }
        }
        Ok(())
    }
}

/// The nodes of a function or a branch, and what they refer to.
struct Body<'b, 'c> {
    nodes: &'b [NodeProto],
    declared: &'b [ValueInfoProto],
    opsets: &'c BTreeMap<&'c str, i64>,
    caller: &'c [(Name, Attr)],
}
