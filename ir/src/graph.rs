//! The graph: nodes, values, and the small set of operations through which passes change it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use cranelift_entity::{PrimaryMap, entity_impl};
use foldhash::HashSet;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use smallvec::SmallVec;

use crate::contract::{self, ANY_VERSION, Contract};
use crate::ops::{self, Copying, Effects};
use crate::{Attr, Bytes, Data, Place, Type};

/// A node of a [`Graph`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);
entity_impl!(NodeId, "n");

/// A value of a [`Graph`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(u32);
entity_impl!(ValueId, "v");

/// The domain of the operators that are lmsc's own: `SwapOut`, `SwapIn`, `Join` and the per-parameter optimizers.
pub const LMSC_DOMAIN: &str = crate::domains::LMSC;

/// A cheaply cloned name.
pub type Name = Arc<str>;

/// An operator: its domain (empty for ONNX's own) and its name. Cheaply cloned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op(Arc<Operator>);

#[derive(Debug)]
struct Operator {
    domain: Box<str>,
    name: Box<str>,
    /// Looked up once, since every analysis needs them for every node.
    effects: Effects,
    contract: Option<&'static Contract>,
}

/// Effects and contract follow from domain and name.
impl PartialEq for Operator {
    fn eq(&self, other: &Operator) -> bool {
        (&self.domain, &self.name) == (&other.domain, &other.name)
    }
}

impl Eq for Operator {}

impl Op {
    /// The operator `name` of `domain`.
    pub fn new(domain: &str, name: &str) -> Op {
        let domain = if domain == "ai.onnx" { "" } else { domain };
        let contract = contract::of(domain, name);
        let effects = ops::effects_of(domain, name, contract);
        Op(Arc::new(Operator { domain: domain.into(), name: name.into(), effects, contract }))
    }

    /// The domain; empty for ONNX's own operators.
    pub fn domain(&self) -> &str {
        &self.0.domain
    }

    /// The name within the domain.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The domain and the name, for matching.
    pub fn key(&self) -> (&str, &str) {
        (&self.0.domain, &self.0.name)
    }

    /// The operator's effects on memory.
    pub fn effects(&self) -> &Effects {
        &self.0.effects
    }

    /// The operator's contract, if lmsc knows the operator.
    pub fn contract(&self) -> Option<&'static Contract> {
        self.0.contract
    }

    /// Whether this is `ai.lmsc.SwapOut`.
    pub fn is_swap_out(&self) -> bool {
        self.0.effects.copy == Some(Copying::Out)
    }

    /// Whether this is `ai.lmsc.SwapIn`.
    pub fn is_swap_in(&self) -> bool {
        self.0.effects.copy == Some(Copying::In)
    }

    /// Whether this is `ai.lmsc.Join`.
    pub fn is_join(&self) -> bool {
        self.key() == (LMSC_DOMAIN, "Join")
    }

    /// Whether this is a copy over the link, in either direction.
    pub fn is_swap(&self) -> bool {
        self.0.effects.copy.is_some()
    }
}

/// The name alone distinguishes most operators.
impl Hash for Op {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

/// By domain, then by name.
impl Ord for Op {
    fn cmp(&self, other: &Op) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Op {
    fn partial_cmp(&self, other: &Op) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `Conv`, or `com.microsoft.ConvGrad`.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.domain().is_empty() {
            write!(f, "{}.", self.domain())?;
        }
        f.write_str(self.name())
    }
}

/// The definition of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Def {
    /// The caller provides it.
    Input,
    /// The file holds it, at this index of [`Graph::initializers`].
    Initializer(usize),
    /// A node computes it, as its result of this index.
    Result(NodeId, usize),
    /// Nothing defines it. Only a graph that breaks invariant I1 holds such a value.
    Nothing,
}

/// A tensor (or sequence) that is defined once and read any number of times.
#[derive(Clone, Debug)]
pub struct Value {
    /// Unique within the graph.
    pub name: Name,
    /// Element type and extents.
    pub ty: Type,
    /// The memory that holds it.
    pub place: Place,
}

/// A constant of the file, or the default of an input.
#[derive(Clone, Debug)]
pub struct Initializer {
    /// The value that it defines.
    pub value: ValueId,
    /// Its bytes.
    pub data: Data,
}

/// An update edge: the node writes a variable (TFLMS, Definition 1).
///
/// A variable that is on the host between steps is written by a SwapOut; the node that computes its new value writes the copy
/// that a SwapIn made. A variable that is swapped out during the step and returns to its place is written by the SwapIn that
/// returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The variable: a graph input or an initializer, as the value before the step; or the copy of one that a SwapIn made.
    pub variable: ValueId,
    /// The result of the node that names the value after the update, if there is one. That result and the variable share their
    /// storage.
    pub result: Option<usize>,
}

/// Workspace of a node in the arena: bytes that it needs besides its values while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Offset of the first byte.
    pub address: u64,
    /// Size in bytes.
    pub bytes: Bytes,
}

/// One operation. Its lists are short: most are stored inline.
#[derive(Clone, Debug)]
pub struct Node {
    /// Unique within the graph.
    pub name: Name,
    /// The operator.
    pub op: Op,
    /// Values read, by position; `None` if an optional operand is left out.
    pub operands: SmallVec<[Option<ValueId>; 4]>,
    /// Values that the node's subgraphs read from this graph.
    pub captures: SmallVec<[ValueId; 4]>,
    /// Values defined, by position; `None` if an optional result is unused.
    pub results: SmallVec<[Option<ValueId>; 2]>,
    /// Attributes in the file's order.
    pub attributes: Vec<(Name, Attr)>,
    /// Control edges: the node starts once these have completed.
    pub after: SmallVec<[NodeId; 4]>,
    /// Update edges.
    pub updates: Vec<Update>,
    /// The node that this one recomputes, if any.
    pub recomputes: Option<NodeId>,
    /// Its workspace, if it needs one and the address is decided.
    pub workspace: Option<Workspace>,
    /// Its seed if it is random; `None` if the seed follows from its name. See [`Graph::seed`].
    pub seed: Option<u64>,
    /// The node's position in the file that it was read from.
    pub source: Option<u32>,
}

impl Node {
    /// A node without operands, results, attributes or edges.
    pub fn new(name: impl Into<Name>, op: Op) -> Node {
        Node {
            name: name.into(),
            op,
            operands: SmallVec::new(),
            captures: SmallVec::new(),
            results: SmallVec::new(),
            attributes: Vec::new(),
            after: SmallVec::new(),
            updates: Vec::new(),
            recomputes: None,
            workspace: None,
            seed: None,
            source: None,
        }
    }

    /// Every value read, captures included, in position order; a value read twice is repeated.
    pub fn reads(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.operands.iter().flatten().chain(&self.captures).copied()
    }

    /// Every value defined.
    pub fn defines(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.results.iter().flatten().copied()
    }

    /// The attribute of this name, if it is given; [`Graph::attribute`] knows defaults.
    pub fn attribute(&self, name: &str) -> Option<&Attr> {
        self.attributes.iter().find(|(n, _)| &**n == name).map(|(_, a)| a)
    }
}

/// For every node a list of nodes, all in one allocation.
#[derive(Clone, Debug)]
pub struct Adjacency {
    /// For each node, the begin and the end of its list.
    lists: Vec<(u32, u32)>,
    entries: Vec<NodeId>,
}

impl Adjacency {
    /// The node's list.
    pub fn of(&self, node: NodeId) -> &[NodeId] {
        let (start, end) = self.lists[node.as_u32() as usize];
        &self.entries[start as usize..end as usize]
    }
}

/// A training step (or any other ONNX graph) with a total order.
///
/// ```
/// use lmsc_ir::{ElementType, Graph, Node, Op, Place, TensorType};
/// let mut graph = Graph::new("g");
/// let ty = TensorType::new(ElementType::Float, [4]);
/// let x = graph.add_input("x", ty.clone(), Place::Device);
/// let mut relu = Node::new("n1", Op::new("", "Relu"));
/// relu.operands.push(Some(x));
/// let n1 = graph.add_node(relu, [Some(("y", ty.into(), Place::Device))]);
/// graph.outputs.push(graph.node(n1).results[0].unwrap());
/// assert!(graph.to_text().contains("[n1] float[4] y = Relu(x)"));
/// assert!(lmsc_ir::verify(&graph).is_ok());
/// ```
#[derive(Clone, Debug)]
pub struct Graph {
    /// The graph's name in the file.
    pub name: String,
    /// Version by domain.
    pub opsets: BTreeMap<String, i64>,
    /// Values that the caller provides, in the caller's order. One with a default, which the caller may leave out, is among
    /// `initializers`, too: its bytes there are the default, and no constant of the step.
    pub inputs: Vec<ValueId>,
    /// Values that the caller gets, in the caller's order.
    pub outputs: Vec<ValueId>,
    /// Constants of the file, and defaults of inputs.
    pub initializers: Vec<Initializer>,
    values: PrimaryMap<ValueId, Value>,
    /// For each value, its definition: kept apart, because walks along edges read nothing else.
    defs: PrimaryMap<ValueId, Def>,
    nodes: PrimaryMap<NodeId, Node>,
    order: Vec<NodeId>,
    value_names: Names<ValueId>,
    node_names: Names<NodeId>,
    /// Values and nodes whose names were taken already when they were added, which invariant I1 forbids.
    namesakes: Namesakes,
    /// Names of values and nodes of subgraphs: not names of the graph itself, but not free for new ones.
    inner_names: Arc<HashSet<Name>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Namesakes {
    pub(crate) values: Vec<ValueId>,
    pub(crate) nodes: Vec<NodeId>,
}

/// Ids by name. The names themselves are stored with the values and nodes, so a copy of the graph copies plain numbers here.
///
/// The hasher is a fast one, and no file can make it slow: its seed differs in every process, and the author of a file never sees
/// a hash.
#[derive(Clone, Debug)]
struct Names<I> {
    ids: HashTable<I>,
    hasher: RandomState,
}

impl<I> Default for Names<I> {
    fn default() -> Names<I> {
        Names { ids: HashTable::new(), hasher: RandomState::default() }
    }
}

impl<I: Copy + PartialEq> Names<I> {
    fn get<'g>(&self, name: &str, name_of: impl Fn(I) -> &'g Name) -> Option<I> {
        self.ids.find(self.hasher.hash_one(name), |&id| **name_of(id) == *name).copied()
    }

    fn reserve<'g>(&mut self, more: usize, name_of: impl Fn(I) -> &'g Name) {
        self.ids.reserve(more, |&id| self.hasher.hash_one(&**name_of(id)));
    }

    /// Removes the name of the id.
    fn remove<'g>(&mut self, id: I, name_of: impl Fn(I) -> &'g Name) {
        let hash = self.hasher.hash_one(&**name_of(id));
        if let Ok(entry) = self.ids.find_entry(hash, |&other| other == id) {
            entry.remove();
        }
    }

    /// Assigns the name to the new id; false if it is taken.
    fn insert<'g>(&mut self, id: I, name_of: impl Fn(I) -> &'g Name) -> bool {
        let hash = |id: I| self.hasher.hash_one(&**name_of(id));
        let same = |other: &I| name_of(*other) == name_of(id);
        match self.ids.entry(hash(id), same, |&id| hash(id)) {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                vacant.insert(id);
                true
            }
        }
    }
}

impl Graph {
    /// A graph without values and nodes.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph {
            name: name.into(),
            opsets: BTreeMap::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            initializers: Vec::new(),
            values: PrimaryMap::new(),
            defs: PrimaryMap::new(),
            nodes: PrimaryMap::new(),
            order: Vec::new(),
            value_names: Names::default(),
            node_names: Names::default(),
            namesakes: Namesakes::default(),
            inner_names: Arc::default(),
        }
    }

    /// Reserves room for more nodes and values.
    pub fn reserve(&mut self, nodes: usize, values: usize) {
        self.nodes.reserve(nodes);
        self.order.reserve(nodes);
        self.values.reserve(values);
        self.defs.reserve(values);
        self.value_names.reserve(values, |id| &self.values[id].name);
        self.node_names.reserve(nodes, |id| &self.nodes[id].name);
    }

    /// The node.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node]
    }

    /// The version of the operator's domain; [`ANY_VERSION`] where the graph states none.
    pub fn version_of(&self, op: &Op) -> i64 {
        self.opsets.get(op.domain()).copied().unwrap_or(ANY_VERSION)
    }

    /// The value of the node's attribute: the given one, or else the default of the operator's contract; `None` if it has none.
    ///
    /// # Panics
    /// In debug builds, if the contract does not know the attribute.
    pub fn attribute<'a>(&self, node: &'a Node, name: &str) -> Option<&'a Attr> {
        node.op.attribute(self.version_of(&node.op), &node.attributes, name)
    }

    /// The value.
    pub fn value(&self, value: ValueId) -> &Value {
        &self.values[value]
    }

    /// The nodes, in the order in which they run. A node's position here is its *tick*.
    pub fn order(&self) -> &[NodeId] {
        &self.order
    }

    /// One more than the largest node index ever used; the size of a dense side table.
    pub fn node_capacity(&self) -> usize {
        self.nodes.len()
    }

    /// Every value ever made, in creation order.
    pub fn values(&self) -> impl Iterator<Item = (ValueId, &Value)> {
        self.values.iter()
    }

    /// One more than the largest value index ever used; the size of a dense side table.
    pub fn value_capacity(&self) -> usize {
        self.values.len()
    }

    /// The value of this name.
    pub fn value_named(&self, name: &str) -> Option<ValueId> {
        self.value_names.get(name, |id| &self.values[id].name)
    }

    /// The node of this name.
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.node_names.get(name, |id| &self.nodes[id].name)
    }

    /// The definition of the value.
    pub fn def(&self, value: ValueId) -> Def {
        self.defs[value]
    }

    /// The node that computes the value, if a node does.
    pub fn producer(&self, value: ValueId) -> Option<NodeId> {
        match self.defs[value] {
            Def::Result(node, _) => Some(node),
            _ => None,
        }
    }

    /// The values whose bytes the node needs: the values that it reads, except graph inputs of which it uses only the shape.
    /// Those shapes are known, wherever the bytes are.
    pub fn uses(&self, node: NodeId) -> impl Iterator<Item = ValueId> + '_ {
        let node = &self.nodes[node];
        let looks = node.op.effects().shape_only;
        node.reads().filter(move |&value| !looks || self.defs[value] != Def::Input)
    }

    /// The nodes that must complete before this one starts: producers of the values that it reads, and control edges.
    pub fn predecessors(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let node = &self.nodes[node];
        node.reads().filter_map(|v| self.producer(v)).chain(node.after.iter().copied())
    }

    /// For every node the nodes that must complete before it starts, as in [`Graph::predecessors`].
    pub fn predecessor_lists(&self) -> Adjacency {
        let mut lists = vec![(0, 0); self.nodes.len()];
        let mut entries = Vec::with_capacity(2 * self.order.len());
        for &node in &self.order {
            let start = entries.len() as u32;
            entries.extend(self.predecessors(node));
            lists[node.as_u32() as usize] = (start, entries.len() as u32);
        }
        Adjacency { lists, entries }
    }

    /// For every node the nodes that start after it, in execution order: the inverse of
    /// [`Graph::predecessor_lists`], without repetitions.
    pub fn successor_lists(&self) -> Adjacency {
        let mut lists = vec![(0u32, 0u32); self.nodes.len()];
        for &node in &self.order {
            self.predecessors(node).for_each(|before| lists[before.as_u32() as usize].1 += 1);
        }
        let mut start = 0;
        for list in &mut lists {
            let length = list.1;
            *list = (start, start);
            start += length;
        }
        let mut entries = vec![NodeId(u32::MAX); start as usize];
        for &node in &self.order {
            for before in self.predecessors(node) {
                let (from, to) = &mut lists[before.as_u32() as usize];
                if *from == *to || entries[*to as usize - 1] != node {
                    entries[*to as usize] = node;
                    *to += 1;
                }
            }
        }
        Adjacency { lists, entries }
    }

    /// For every node its tick, its position in the order; `u32::MAX` for a node that was removed.
    pub fn ticks(&self) -> Vec<u32> {
        let mut ticks = vec![u32::MAX; self.nodes.len()];
        for (tick, node) in self.order.iter().enumerate() {
            ticks[node.as_u32() as usize] = tick as u32;
        }
        ticks
    }

    /// Whether the node runs on the host: it is not a copy, and the values that it defines (or else reads) are on the host.
    pub fn runs_on_host(&self, node: NodeId) -> bool {
        let node = &self.nodes[node];
        let decisive = node.defines().next().or_else(|| node.reads().next());
        !node.op.is_swap() && decisive.is_some_and(|v| self.values[v].place.is_host())
    }

    /// The seed of the node if it is random, used together with step and run: its own, or else that of its name. A recomputed
    /// node has the seed of its origin.
    pub fn seed(&self, node: NodeId) -> u64 {
        let mut origin = &self.nodes[node];
        // A chain that is longer than the graph is a cycle, which breaks invariant I6.
        for _ in 0..self.nodes.len() {
            let Some(next) = origin.recomputes else { break };
            origin = &self.nodes[next];
        }
        origin.seed.unwrap_or_else(|| seed_of_name(&origin.name))
    }

    /// Sets the seed of the node.
    pub fn set_seed(&mut self, node: NodeId, seed: u64) {
        let node = &mut self.nodes[node];
        node.seed = (seed != seed_of_name(&node.name)).then_some(seed);
    }

    /// The variables: every graph input or initializer that an update edge writes, in order of their ids.
    pub fn variables(&self) -> Vec<ValueId> {
        let updates = self.order.iter().flat_map(|&n| &self.nodes[n].updates);
        let given = |variable: &ValueId| !matches!(self.defs[*variable], Def::Result(..));
        let mut variables: Vec<ValueId> = updates.map(|u| u.variable).filter(given).collect();
        variables.sort_unstable();
        variables.dedup();
        variables
    }

    /// Adds a value that the caller provides.
    pub fn add_input(&mut self, name: impl Into<Name>, ty: impl Into<Type>, place: Place) -> ValueId {
        let value = self.add_value(Value { name: name.into(), ty: ty.into(), place }, Def::Input);
        self.inputs.push(value);
        value
    }

    /// Adds a constant of the file.
    pub fn add_initializer(&mut self, name: impl Into<Name>, ty: impl Into<Type>, data: Data) -> ValueId {
        let def = Def::Initializer(self.initializers.len());
        let value = Value { name: name.into(), ty: ty.into(), place: Place::Device };
        let value = self.add_value(value, def);
        self.initializers.push(Initializer { value, data });
        value
    }

    /// Adds a value that the caller may provide; these bytes are its default.
    pub fn add_default(&mut self, name: impl Into<Name>, ty: impl Into<Type>, data: Data) -> ValueId {
        let value = self.add_initializer(name, ty, data);
        self.inputs.push(value);
        value
    }

    /// The values whose bytes the caller may replace although the file has some: inputs with a default, in the caller's order.
    pub fn defaults(&self) -> impl Iterator<Item = ValueId> + '_ {
        self.inputs.iter().copied().filter(|&value| matches!(self.defs[value], Def::Initializer(_)))
    }

    /// Adds a node at the end of the order, and its results.
    pub fn add_node<N: Into<Name>>(
        &mut self,
        mut node: Node,
        results: impl IntoIterator<Item = Option<(N, Type, Place)>>,
    ) -> NodeId {
        let id = self.nodes.next_key();
        let define = |(index, result): (usize, Option<(N, Type, Place)>)| {
            let (name, ty, place) = result?;
            Some(self.add_value(Value { name: name.into(), ty, place }, Def::Result(id, index)))
        };
        node.results = results.into_iter().enumerate().map(define).collect();
        self.nodes.push(node);
        self.order.push(id);
        if !self.node_names.insert(id, |id| &self.nodes[id].name) {
            self.namesakes.nodes.push(id);
        }
        id
    }

    /// Makes the node read `value` as its operand `index`, which it may not have yet.
    pub fn set_operand(&mut self, node: NodeId, index: usize, value: ValueId) {
        let operands = &mut self.nodes[node].operands;
        operands.resize(operands.len().max(index + 1), None);
        operands[index] = Some(value);
    }

    /// Adds the control edge `before` → `node`, unless it is there.
    pub fn add_after(&mut self, node: NodeId, before: NodeId) {
        let after = &mut self.nodes[node].after;
        if !after.contains(&before) {
            after.push(before);
        }
    }

    /// Adds an update edge from `node`.
    pub fn add_update(&mut self, node: NodeId, update: Update) {
        self.nodes[node].updates.push(update);
    }

    /// Removes the node's update edges, and returns them.
    pub fn take_updates(&mut self, node: NodeId) -> Vec<Update> {
        std::mem::take(&mut self.nodes[node].updates)
    }

    /// Redirects the node's update edges from `variable` to `copy`.
    pub fn redirect_updates(&mut self, node: NodeId, variable: ValueId, copy: ValueId) {
        let updates = self.nodes[node].updates.iter_mut();
        updates.filter(|update| update.variable == variable).for_each(|update| update.variable = copy);
    }

    /// Replaces the control edge from `before` by edges from `instead`.
    pub fn redirect_after(&mut self, node: NodeId, before: NodeId, instead: &[NodeId]) {
        self.nodes[node].after.retain(|after| *after != before);
        instead.iter().for_each(|&before| self.add_after(node, before));
    }

    /// Renames the value; the new name must be free.
    pub fn rename(&mut self, value: ValueId, name: impl Into<Name>) {
        self.value_names.remove(value, |id| &self.values[id].name);
        self.values[value].name = name.into();
        self.value_names.insert(value, |id| &self.values[id].name);
    }

    /// Records that `node` recomputes `origin`.
    pub fn set_recomputes(&mut self, node: NodeId, origin: NodeId) {
        self.nodes[node].recomputes = Some(origin);
    }

    /// Sets the value's place: an offset of the arena, or one of the two memories.
    pub fn set_place(&mut self, value: ValueId, place: Place) {
        self.values[value].place = place;
    }

    /// Sets the type of a node's result, for a pass that makes the node compute in another precision.
    pub fn set_type(&mut self, value: ValueId, ty: impl Into<Type>) {
        self.values[value].ty = ty.into();
    }

    /// Gives the node this attribute, in place of one of the same name.
    pub fn set_attribute(&mut self, node: NodeId, name: impl Into<Name>, attribute: Attr) {
        let name = name.into();
        self.remove_attribute(node, &name);
        self.nodes[node].attributes.push((name, attribute));
    }

    /// Removes the attribute of this name, if the node has it: it is no longer the file's node.
    pub fn remove_attribute(&mut self, node: NodeId, name: &str) {
        self.nodes[node].attributes.retain(|(other, _)| &**other != name);
        self.nodes[node].source = None;
    }

    /// Makes the bodies of all nodes read `instead` where they read `value`.
    pub fn redirect_captures(&mut self, value: ValueId, instead: ValueId) {
        for node in self.nodes.values_mut() {
            node.captures
                .iter_mut()
                .filter(|capture| **capture == value)
                .for_each(|capture| *capture = instead);
        }
    }

    /// Gives the node a new value as its result of this index. The one before is no node's result any more.
    pub fn replace_result(
        &mut self,
        node: NodeId,
        index: usize,
        name: impl Into<Name>,
        ty: impl Into<Type>,
    ) -> ValueId {
        let value = Value { name: name.into(), ty: ty.into(), place: Place::Device };
        let value = self.add_value(value, Def::Result(node, index));
        self.nodes[node].results[index] = Some(value);
        value
    }

    /// Replaces the node's operator: it is no longer the file's node.
    pub fn set_op(&mut self, node: NodeId, op: Op) {
        self.nodes[node].op = op;
        self.nodes[node].source = None;
    }

    /// Sets the node's workspace.
    pub fn set_workspace(&mut self, node: NodeId, workspace: Workspace) {
        self.nodes[node].workspace = Some(workspace);
    }

    /// Removes every address in the arena, of values and of workspaces.
    pub fn clear_addresses(&mut self) {
        for value in self.values.values_mut() {
            if matches!(value.place, Place::DeviceAt(_)) {
                value.place = Place::Device;
            }
        }
        self.nodes.values_mut().for_each(|node| node.workspace = None);
    }

    /// Removes the record of origins from all recomputed nodes.
    pub fn clear_recomputes(&mut self) {
        self.nodes.values_mut().for_each(|node| node.recomputes = None);
    }

    /// Whether any value has an address in the arena.
    pub fn has_addresses(&self) -> bool {
        self.values.values().any(|value| matches!(value.place, Place::DeviceAt(_)))
    }

    /// Replaces the order. A node that is left out is removed from the graph.
    pub fn set_order(&mut self, order: Vec<NodeId>) {
        self.order = order;
    }

    /// Reserves these names, which the nodes' subgraphs use: a value of the graph must not have the name of one of a subgraph.
    /// The text form, which holds no subgraphs, does not hold these names.
    pub fn set_inner_names(&mut self, names: impl IntoIterator<Item = Name>) {
        self.inner_names = Arc::new(names.into_iter().collect());
    }

    /// A value name that starts with `base` and is taken neither in the graph nor in a subgraph. Takes few look-ups, however many
    /// names there are.
    pub fn fresh_value_name(&self, base: &str) -> Name {
        fresh(base, |name| self.value_named(name).is_some() || self.inner_names.contains(name))
    }

    /// A node name that starts with `base` and is taken neither in the graph nor in a subgraph. Takes few look-ups, however many
    /// names there are.
    pub fn fresh_node_name(&self, base: &str) -> Name {
        fresh(base, |name| self.node_named(name).is_some() || self.inner_names.contains(name))
    }

    /// Adds a value; for the parser, which meets names before their definitions, and for tests that damage graphs.
    #[doc(hidden)]
    pub fn add_value(&mut self, value: Value, def: Def) -> ValueId {
        let id = self.values.push(value);
        self.defs.push(def);
        if !self.value_names.insert(id, |id| &self.values[id].name) {
            self.namesakes.values.push(id);
        }
        id
    }

    /// Values and nodes whose names were taken when they were added.
    pub(crate) fn namesakes(&self) -> &Namesakes {
        &self.namesakes
    }

    /// Mutable access to all of a value, for the parser and for tests that damage graphs: it may break the invariants.
    #[doc(hidden)]
    pub fn value_mut(&mut self, value: ValueId) -> &mut Value {
        &mut self.values[value]
    }

    /// As [`Graph::value_mut`], for the definition of a value.
    #[doc(hidden)]
    pub fn set_def(&mut self, value: ValueId, def: Def) {
        self.defs[value] = def;
    }

    /// As [`Graph::value_mut`], for a node.
    #[doc(hidden)]
    pub fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node]
    }
}

/// The seed of a node without one of its own: FNV-1a of its name, in 64 bits.
fn seed_of_name(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

fn fresh(base: &str, taken: impl Fn(&str) -> bool) -> Name {
    if !taken(base) {
        return base.into();
    }
    // Names of one base are mostly numbered without gaps, so a binary search between a taken and a free number finds the first
    // free one.
    let numbered = |i: u32| format!("{base}_{i}");
    let (mut below, mut free) = (1, 2);
    while taken(&numbered(free)) {
        (below, free) = (free, 2 * free);
    }
    while below + 1 < free {
        let middle = below.midpoint(free);
        if taken(&numbered(middle)) {
            below = middle;
        } else {
            free = middle;
        }
    }
    numbered(free).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_name_is_the_first_that_is_free() {
        let mut graph = Graph::new("g");
        for i in 1..100 {
            let name = graph.fresh_node_name("n");
            assert_eq!(*name, if i == 1 { "n".to_owned() } else { format!("n_{i}") });
            graph.add_node(Node::new(name, Op::new("", "F")), std::iter::empty::<Option<(Name, _, _)>>());
        }
    }
}
