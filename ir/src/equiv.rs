//! Checks that a rewritten graph computes the same as the graph it was made from.
//!
//! [`check`] assumes nothing about how the rewritten graph was made, and shares no code with passes or planners. It erases swaps
//! (`SwapIn ∘ SwapOut` is the identity) and lossless encodings (a Cast to int32 and back, of a 64-bit integer that by its
//! definition fits 32 bits), merges recomputed twins, and proves that the rest is isomorphic to the original: the same signature,
//! the same nodes, the same updates.
//!
//! The proof is a value numbering. Two values get the same number only if they are the same graph input, constants of the same
//! type and bytes, or the same result of nodes with equal keys. The key of a node contains everything that its meaning depends
//! on: operator and version, attributes, numbers of the operands, types of the results. Keys are compared in full; hashes only
//! find them.
//!
//! - A **pure** node is determined by its key: nodes with equal keys are one node.
//! - A **random** node draws from its *seed* ([`Graph::seed`]), which is a part of its key and must be kept. A node that
//!   `recomputes` it draws from the origin's seed, and is one node with it.
//! - A node that **updates** a variable, or holds a subgraph, runs as often as in the original: the k-th node of
//!   a key corresponds to the k-th node of that key in the other graph. It must not be repeated.
//!
//! - A copied **range** of a tensor is identified by the tensor and the elements. A Join is the tensor of which all its pieces
//!   are ranges, each at its place, and is erased with the copies.
//!
//! Also compared: graph inputs and outputs by position, name and type; which variable a node updates and which result is its new
//! value; the value of each variable after the step, even if copies of variables were updated and copied back. Not compared:
//! names of nodes, unless they determine a seed, names of values within the graph, the order, control edges, places.
//!
//! [`check_cleaned`] also allows the changes of a clean-up: the rewritten graph may lack nodes on which no output and no variable
//! depends, and the computation of an integer that follows from constants and shapes alone may differ: both
//! graphs are evaluated here, by code that shares nothing with the pass that folds constants (`known.rs`). The check still proves that outputs and variables are
//! equal, and that every other node of the rewritten graph is in the original.
//!
//! Equivalence is not sufficient for a correct rewriting. That the old value of a variable is read before the node that
//! overwrites it, that every value is in its reader's memory, and that no byte is reused too early are invariants of a single
//! graph.

mod known;

use std::fmt;
use std::hash::BuildHasher;
use std::ops::Range;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use hashbrown::HashTable;
use smallvec::SmallVec;

use self::known::Known;
use crate::ranges::{copied_elements, joined_elements, range_type};
use crate::words::count;
use crate::{
    Attr, Data, Def, Digest, ElementType, Graph, Name, Node, NodeId, Op, Phase, TensorType, Type, Update,
    ValueId, ops,
};

/// Statistics of the comparison of equivalent graphs.
///
/// The rewritten graph has `nodes + twins + swaps + casts` nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equivalence {
    /// Number of distinct nodes; each is in both graphs, or its result is known in both.
    pub nodes: usize,
    /// Nodes of the rewritten graph that recompute other nodes.
    pub twins: usize,
    /// Copies between device and host in the rewritten graph, and joins of ranges.
    pub swaps: usize,
    /// Casts in the rewritten graph that encode a value, or decode it.
    pub casts: usize,
}

/// One of the two graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The graph before the rewriting.
    Original,
    /// The graph after the rewriting.
    Rewritten,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Original => "original graph",
            Side::Rewritten => "rewritten graph",
        })
    }
}

/// One side of the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Values that the caller provides.
    Input,
    /// Values that the caller gets.
    Output,
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Port::Input => "input",
            Port::Output => "output",
        })
    }
}

/// The first difference between two graphs, in the original's execution order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// The signatures have different lengths.
    #[error("the rewritten graph has {}, the original {original}", count(*rewritten, &port.to_string()))]
    Count {
        /// Inputs or outputs.
        port: Port,
        /// Their number in the original.
        original: usize,
        /// Their number in the rewritten graph.
        rewritten: usize,
    },
    /// An input or output has another name.
    #[error("{port} {index} is `{rewritten}`, was `{original}`")]
    Name {
        /// Input or output.
        port: Port,
        /// Its position.
        index: usize,
        /// Its name in the original.
        original: Name,
        /// Its name in the rewritten graph.
        rewritten: Name,
    },
    /// An input or output has another type.
    #[error("{port} {index} `{name}` is {rewritten}, was {original}")]
    Type {
        /// Input or output.
        port: Port,
        /// Its position.
        index: usize,
        /// Its name in both graphs.
        name: Name,
        /// Its type in the original.
        original: Type,
        /// Its type in the rewritten graph.
        rewritten: Type,
    },
    /// The default value of an input, which the file holds, differs.
    #[error("the default value of input {index} `{name}` is another")]
    Default {
        /// The input's position.
        index: usize,
        /// Its name in both graphs.
        name: Name,
    },
    /// A node differs.
    #[error("node `{node}` ({op}): {change}")]
    Node {
        /// The node's name in the original.
        node: Name,
        /// Its operator in the original.
        op: Op,
        /// The change.
        change: Box<Change>,
    },
    /// The rewritten graph lacks a node.
    #[error("node `{node}` ({op}) is missing from the rewritten graph")]
    Missing {
        /// The node's name in the original.
        node: Name,
        /// Its operator.
        op: Op,
    },
    /// The rewritten graph has a node that computes nothing that the original computes.
    #[error("node `{node}` ({op}) is not in the original graph")]
    Extra {
        /// The node's name in the rewritten graph.
        node: Name,
        /// Its operator.
        op: Op,
    },
    /// A node differs from the node that it is said to recompute.
    #[error("node `{node}` ({op}) recomputes `{origin}`, but differs from it: {change}")]
    Twin {
        /// The recomputed node.
        node: Name,
        /// Its operator.
        op: Op,
        /// The node that it is said to recompute.
        origin: Name,
        /// The change; its "original" is `origin`.
        change: Box<Change>,
    },
    /// An output has a different value.
    #[error("output {index} `{name}` is {rewritten}, was {original}")]
    Output {
        /// The output's position.
        index: usize,
        /// Its name.
        name: Name,
        /// The description of its value in the original.
        original: String,
        /// The description of its value in the rewritten graph.
        rewritten: String,
    },
    /// A variable has a different value after the step.
    #[error("after the step, variable `{name}` holds {rewritten}, was {original}")]
    Variable {
        /// The variable's name.
        name: Name,
        /// Its value after the step of the original.
        original: String,
        /// Its value after the step of the rewritten graph.
        rewritten: String,
    },
    /// A graph is malformed, so that it cannot be compared.
    #[error("{side}: {place}: {why}")]
    Malformed {
        /// The graph.
        side: Side,
        /// The node, or the part of the signature.
        place: String,
        /// The error.
        why: String,
    },
}

/// The difference between a node and its counterpart.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Change {
    /// The operator.
    #[error("the operator is {0} now")]
    Operator(Op),
    /// The version of the operator's domain.
    #[error("version {} of its domain, was {}", or_none(rewritten), or_none(original))]
    Version {
        /// The version that the original imports.
        original: Option<i64>,
        /// The version that the rewritten graph imports.
        rewritten: Option<i64>,
    },
    /// An attribute.
    #[error("attribute `{name}` {}", was(rewritten, original))]
    Attribute {
        /// Its name.
        name: Name,
        /// Its value in the original.
        original: Option<String>,
        /// Its value in the rewritten graph.
        rewritten: Option<String>,
    },
    /// The value that an operand reads.
    #[error("operand {index} reads {} instead of {}", or_none(rewritten), or_none(original))]
    Operand {
        /// Its position.
        index: usize,
        /// The value read in the original.
        original: Option<String>,
        /// The value read in the rewritten graph.
        rewritten: Option<String>,
    },
    /// The bytes or the type of a constant operand.
    #[error("operand {index}: initializer `{name}` holds {rewritten}, was {original}")]
    Initializer {
        /// The operand's position.
        index: usize,
        /// The initializer's name.
        name: Name,
        /// The contents in the original's file.
        original: String,
        /// The contents in the rewritten graph's file.
        rewritten: String,
    },
    /// The values that the node's subgraphs read.
    #[error("its subgraphs read {} instead of {}", or_none(rewritten), or_none(original))]
    Capture {
        /// The value read in the original.
        original: Option<String>,
        /// The value read in the rewritten graph.
        rewritten: Option<String>,
    },
    /// The type of a result, or whether there is one.
    #[error("result {index} is {}, was {}", or_none(rewritten), or_none(original))]
    Result {
        /// Its position.
        index: usize,
        /// Its type in the original.
        original: Option<Type>,
        /// Its type in the rewritten graph.
        rewritten: Option<Type>,
    },
    /// The variables that the node updates.
    #[error("updates {}, was {}", or_none(rewritten), or_none(original))]
    Update {
        /// Updates of the original that the rewritten graph lacks.
        original: Option<String>,
        /// Updates of the rewritten graph that the original lacks.
        rewritten: Option<String>,
    },
    /// The seed of a random node.
    #[error("it is random, and its seed is {rewritten:#018x}, was {original:#018x}")]
    Seed {
        /// Its seed in the original.
        original: u64,
        /// Its seed in the rewritten graph.
        rewritten: u64,
    },
    /// The number of times that the node runs.
    #[error("it may not be repeated or left out, and runs {}, was {original}", count(*rewritten, "time"))]
    Times {
        /// Number of such nodes in the original.
        original: usize,
        /// Number of such nodes in the rewritten graph.
        rewritten: usize,
    },
}

fn or_none(value: &Option<impl fmt::Display>) -> String {
    value.as_ref().map_or_else(|| "nothing".to_owned(), |v| v.to_string())
}

fn was(new: &Option<String>, old: &Option<String>) -> String {
    match (new, old) {
        (Some(new), Some(old)) => format!("is {new}, was {old}"),
        (Some(new), None) => format!("is {new}, was absent"),
        (None, Some(old)) => format!("is absent, was {old}"),
        (None, None) => "is absent".to_owned(),
    }
}

/// Proves that `rewritten` computes the same as `original`.
///
/// Runs in time proportional to the size of both graphs and of their constants.
///
/// # Errors
/// The first [`Difference`] in the original's execution order, or [`Difference::Malformed`] if a graph cannot be compared: a
/// value is read before it is computed, a swap is not a copy.
///
/// ```
/// use lmsc_ir::{Graph, equiv};
/// let a = "g (float[4] x) => (float[4] y) {
///    [n1] float[4] h = Relu(x)
///    [n2] float[4] y = Add(h, x)
/// }";
/// let b = "g (float[4] x) => (float[4] y) {
///    [n1] float[4] h = Relu(x)
///    [out] float[4]@host h_host = ai.lmsc.SwapOut(h)
///    [in] float[4] h_in = ai.lmsc.SwapIn(h_host)
///    [n2] float[4] y = Add(h_in, x)
/// }";
/// let (a, b) = (Graph::parse(a).unwrap(), Graph::parse(b).unwrap());
/// assert_eq!(equiv::check(&a, &b).unwrap().swaps, 2);
/// ```
pub fn check(original: &Graph, rewritten: &Graph) -> Result<Equivalence, Difference> {
    let nothing = Known::default();
    compare((original, &nothing), (rewritten, &nothing), &|_| true)
}

/// The same, of a graph that was cleaned up: see the description of this module.
///
/// # Errors
/// As [`check`].
///
/// ```
/// use lmsc_ir::{Graph, equiv};
/// let a = "g (float[4] x) => (float[4] y) {
///    [n1] float[4] h = Relu(x)
///    [n2] float[4] y = Relu(x)
/// }";
/// let b = "g (float[4] x) => (float[4] y) {
///    [n2] float[4] y = Relu(x)
/// }";
/// let c = "g (float[4] x) => (float[4] y) {
///    [n2] float[4] y = Tanh(x)
/// }";
/// let [a, b, c] = [a, b, c].map(|text| Graph::parse(text).unwrap());
/// assert!(equiv::check_cleaned(&a, &b).is_ok());
/// assert!(equiv::check_cleaned(&a, &c).is_err());
/// ```
pub fn check_cleaned(original: &Graph, rewritten: &Graph) -> Result<Equivalence, Difference> {
    let [known, known_there] = [original, rewritten].map(Known::of);
    let needed = needed(original, &known);
    compare((original, &known), (rewritten, &known_there), &|id| needed[id.as_u32() as usize])
}

/// For each node, whether an output or a variable depends on it, or whether it may have other effects.
fn needed(graph: &Graph, known: &Known) -> Vec<bool> {
    let mut needed = vec![false; graph.node_capacity()];
    let need = |needed: &mut Vec<bool>, value: ValueId| {
        if let Some(producer) = graph.producer(value).filter(|_| !known.is_folded(graph, value)) {
            needed[producer.as_u32() as usize] = true;
        }
    };
    graph.outputs.iter().for_each(|&output| need(&mut needed, output));
    for &id in graph.order().iter().rev() {
        let node = graph.node(id);
        if repeat(node) != Repeat::Pure || needed[id.as_u32() as usize] {
            needed[id.as_u32() as usize] = true;
            node.reads().for_each(|value| need(&mut needed, value));
        }
    }
    needed
}

/// Compares two graphs, each with its known values. Nodes of the original that are not `needed` may be missing.
fn compare<'g>(
    (original, known): (&'g Graph, &'g Known),
    (rewritten, known_there): (&'g Graph, &'g Known),
    needed: &dyn Fn(NodeId) -> bool,
) -> Result<Equivalence, Difference> {
    ports(Port::Input, (original, &original.inputs), (rewritten, &rewritten.inputs))?;
    ports(Port::Output, (original, &original.outputs), (rewritten, &rewritten.outputs))?;
    let mut table = Table::new([original, rewritten]);
    let a = Walk::new(&mut table, (original, known), Side::Original)?;
    let b = Walk::new(&mut table, (rewritten, known_there), Side::Rewritten)?;

    let lost = |n: &&NodeId| needed(**n) && a.is_missing_from(&b, **n);
    if let Some(&node) = original.order().iter().find(lost) {
        return Err(lost_node(&a, node, &b));
    }
    let extra = |n: &&NodeId| b.is_missing_from(&a, **n) && !b.is_known_in(&a, **n);
    if let Some(&node) = rewritten.order().iter().find(extra) {
        return Err(extra_node(&a, &b, node));
    }
    let wrong = |walk: &Walk<'_>| walk.graph.order().iter().find_map(|&node| wrong_twin(walk, node));
    if let Some(difference) = wrong(&b).or_else(|| wrong(&a)) {
        return Err(difference);
    }
    for (index, (&old, &new)) in original.outputs.iter().zip(&rewritten.outputs).enumerate() {
        if a.number(old) != b.number(new) {
            return Err(Difference::Output {
                index,
                name: original.value(old).name.clone(),
                original: describe(original, old),
                rewritten: describe(rewritten, new),
            });
        }
    }
    for value in original.inputs.iter().copied().chain(original.initializers.iter().map(|i| i.value)) {
        let variable = a.number(value);
        let (old, new) = (a.state(variable), b.state(variable));
        if old.number != new.number {
            let describe = |graph: &Graph, state: State| {
                state.value.map_or_else(|| "what it held before".to_owned(), |value| describe(graph, value))
            };
            return Err(Difference::Variable {
                name: original.value(value).name.clone(),
                original: describe(original, old),
                rewritten: describe(rewritten, new),
            });
        }
    }
    let all = || rewritten.order().iter().filter_map(|&node| Some((node, b.class(node)?)));
    let is_shared = |&(node, class): &(NodeId, u32)| a.classes.contains(&class) || b.is_known_in(&a, node);
    let shared = all().filter(is_shared);
    let (shared, nodes) = (shared.clone().count(), shared.map(|it| it.1).collect::<HashSet<u32>>().len());
    Ok(Equivalence {
        nodes,
        twins: shared - nodes,
        swaps: b.swaps,
        casts: b.decodings + all().count() - shared,
    })
}

/// Compares the caller's view of the inputs or of the outputs: number, names, types, default values.
fn ports(
    port: Port,
    (a, original): (&Graph, &[ValueId]),
    (b, rewritten): (&Graph, &[ValueId]),
) -> Result<(), Difference> {
    for (index, (&old, &new)) in original.iter().zip(rewritten).enumerate() {
        let (data, new_data) = (constant(a, old), constant(b, new));
        let (old, new) = (a.value(old), b.value(new));
        if old.name != new.name {
            let (original, rewritten) = (old.name.clone(), new.name.clone());
            return Err(Difference::Name { port, index, original, rewritten });
        }
        let name = old.name.clone();
        if old.ty != new.ty {
            let (original, rewritten) = (old.ty.clone(), new.ty.clone());
            return Err(Difference::Type { port, index, name, original, rewritten });
        }
        if port == Port::Input && data != new_data {
            return Err(Difference::Default { index, name });
        }
    }
    if original.len() != rewritten.len() {
        let (original, rewritten) = (original.len(), rewritten.len());
        return Err(Difference::Count { port, original, rewritten });
    }
    Ok(())
}

fn constant(graph: &Graph, value: ValueId) -> Option<&Data> {
    match graph.def(value) {
        Def::Initializer(index) => graph.initializers.get(index).map(|i| &i.data),
        _ => None,
    }
}

// Tags that distinguish keys of different kinds.
const INPUT: u32 = 0;
const CONSTANT: u32 = 1;
const VARIABLE: u32 = 2;
const NODE: u32 = 3;
const TIME: u32 = 4;
const RANGE: u32 = 5;

/// The numbers of all parts of keys. One table numbers both graphs; equal parts have the same number.
struct Table<'g> {
    /// Operators with the versions of their domains.
    ops: HashMap<(&'g Op, Option<i64>), u32>,
    texts: HashMap<&'g [u8], u32>,
    types: HashMap<&'g Type, u32>,
    tensor_types: HashMap<&'g TensorType, u32>,
    /// Constants seen before, by address and length: the bytes of a mapped file are read once.
    slices: HashMap<(usize, usize), u32>,
    digests: HashMap<(u64, Digest), Vec<(&'g Data, u32)>>,
    files: HashMap<(&'g str, u64, u64), u32>,
    data: u32,
    /// The begin and the end in `words` of each key, and its number.
    keys: HashTable<(usize, usize, u32)>,
    /// The keys, one after another.
    words: Vec<u32>,
    hasher: foldhash::fast::RandomState,
    /// By number of a range of a tensor, the number of the tensor, its type, and the elements.
    ranges: HashMap<u32, (u32, &'g Type, Range<u64>)>,
    /// The next value number.
    next: u32,
    /// Initializers that either graph updates. Two of them are two variables even if their bytes are equal.
    variables: HashSet<&'g str>,
}

impl<'g> Table<'g> {
    fn new(graphs: [&'g Graph; 2]) -> Table<'g> {
        let mut variables = HashSet::new();
        for graph in graphs {
            let updates = graph.order().iter().flat_map(|&n| &graph.node(n).updates);
            let updated = updates.map(|u| u.variable);
            let of_file = updated.filter(|&v| matches!(graph.def(v), Def::Initializer(_)));
            variables.extend(of_file.map(|v| &*graph.value(v).name));
        }
        Table {
            ops: HashMap::new(),
            texts: HashMap::new(),
            types: HashMap::new(),
            tensor_types: HashMap::new(),
            slices: HashMap::new(),
            digests: HashMap::new(),
            files: HashMap::new(),
            data: 0,
            keys: HashTable::with_capacity(graphs[0].value_capacity()),
            words: Vec::new(),
            hasher: foldhash::fast::RandomState::default(),
            ranges: HashMap::new(),
            next: 0,
            variables,
        }
    }

    fn op(&mut self, op: &'g Op, version: Option<i64>) -> u32 {
        let fresh = self.ops.len() as u32;
        *self.ops.entry((op, version)).or_insert(fresh)
    }

    fn text(&mut self, text: &'g [u8]) -> u32 {
        let fresh = self.texts.len() as u32;
        *self.texts.entry(text).or_insert(fresh)
    }

    fn ty(&mut self, ty: &'g Type) -> u32 {
        let fresh = self.types.len() as u32;
        *self.types.entry(ty).or_insert(fresh)
    }

    fn tensor_type(&mut self, ty: &'g TensorType) -> u32 {
        let fresh = self.tensor_types.len() as u32;
        *self.tensor_types.entry(ty).or_insert(fresh)
    }

    fn data(&mut self, data: &'g Data) -> u32 {
        let fresh = self.data;
        let number = match data {
            Data::External { location, offset, length } => {
                *self.files.entry((location, *offset, *length)).or_insert(fresh)
            }
            Data::Inline(bytes) => {
                let slice = (bytes.as_ptr() as usize, bytes.len());
                match self.slices.get(&slice) {
                    Some(&number) => number,
                    None => {
                        let number = self.digested(data, fresh);
                        self.slices.insert(slice, number);
                        number
                    }
                }
            }
            Data::Digest { .. } => self.digested(data, fresh),
        };
        self.data += u32::from(number == fresh);
        number
    }

    fn digested(&mut self, data: &'g Data, fresh: u32) -> u32 {
        let digest = data.digest().expect("only a range of another file has no digest");
        let same_digest = self.digests.entry((data.len(), digest)).or_default();
        match same_digest.iter().find(|(other, _)| *other == data) {
            Some(&(_, number)) => number,
            None => {
                same_digest.push((data, fresh));
                fresh
            }
        }
    }

    /// The number of a constant.
    fn constant(&mut self, ty: &'g Type, data: &'g Data) -> u32 {
        let key = [CONSTANT, self.ty(ty), self.data(data)];
        self.number(&key, 0)
    }

    /// The number of a key. A new key also reserves a number for each of the node's `results` results.
    fn number(&mut self, key: &[u32], results: usize) -> u32 {
        let (words, hasher) = (&self.words, &self.hasher);
        let hash = hasher.hash_one(key);
        if let Some(&(.., number)) = self.keys.find(hash, |&(from, to, _)| words[from..to] == *key) {
            return number;
        }
        let number = self.next;
        self.next += 1 + results as u32;
        let range = (words.len(), words.len() + key.len());
        let rehash = |&(from, to, _): &(usize, usize, u32)| hasher.hash_one(&words[from..to]);
        self.keys.insert_unique(hash, (range.0, range.1, number), rehash);
        self.words.extend(key);
        number
    }

    /// Appends attributes, in the order of their names.
    fn attributes(&mut self, key: &mut Vec<u32>, attributes: &'g [(Name, Attr)]) {
        let mut sorted: SmallVec<[&(Name, Attr); 8]> = attributes.iter().collect();
        sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
        key.push(sorted.len() as u32);
        for (name, attr) in sorted {
            key.push(self.text(name.as_bytes()));
            match attr {
                Attr::Int(value) => {
                    key.push(0);
                    push_u64(key, *value as u64);
                }
                Attr::Float(value) => key.extend([1, value.0.to_bits()]),
                Attr::String(text) => key.extend([2, self.text(text)]),
                Attr::Ints(values) => {
                    key.extend([3, values.len() as u32]);
                    values.iter().for_each(|v| push_u64(key, *v as u64));
                }
                Attr::Floats(values) => {
                    key.extend([4, values.len() as u32]);
                    key.extend(values.iter().map(|v| v.0.to_bits()));
                }
                Attr::Strings(values) => {
                    key.extend([5, values.len() as u32]);
                    key.extend(values.iter().map(|v| self.text(v)));
                }
                Attr::Tensor(ty, data) => key.extend([6, self.tensor_type(ty), self.data(data)]),
                Attr::Opaque(data) => key.extend([7, self.data(data)]),
            }
        }
    }
}

fn push_u64(key: &mut Vec<u32>, value: u64) {
    key.extend([value as u32, (value >> 32) as u32]);
}

/// Whether the node only writes this operand aside ([`ops::aside`]); and the same for a result.
fn is_aside(node: &Node) -> (impl Fn(usize) -> bool, impl Fn(usize) -> bool) {
    let aside = ops::aside(node).unwrap_or_default();
    (move |operand| aside.iter().any(|a| a.0 == operand), move |result| aside.iter().any(|a| a.1 == result))
}

/// How nodes with equal keys are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    /// Any number of them count as one.
    Pure,
    /// They count as one if they have the same seed.
    Seeded,
    /// Each counts by itself.
    Never,
}

fn repeat(node: &Node) -> Repeat {
    let effects = node.op.effects();
    // Optimizers over sequences update operands in place without an update edge.
    let updates = effects.phase == Some(Phase::Update) || !effects.writes.is_empty() && !ops::is_pure(node);
    if updates || !node.updates.is_empty() || ops::has_subgraph(node) {
        Repeat::Never
    } else if effects.random {
        Repeat::Seeded
    } else {
        Repeat::Pure
    }
}

/// The result that names the variable after the update, if there is one: the index of a result that is left out counts as none.
fn new_value(node: &Node, update: &Update) -> Option<usize> {
    update.result.filter(|&r| node.results.get(r).is_some_and(Option::is_some))
}

/// The role of a Cast of bounded integers in an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    /// It goes from int64 to int32.
    Encode,
    /// It goes from int32 to int64.
    Decode,
}

/// The half of an encoding that the node may be: a Cast between these types without any other attribute or edge.
fn half(graph: &Graph, node: &Node) -> Option<Half> {
    let (&[Some(from)], &[Some(to)]) = (&node.operands[..], &node.results[..]) else { return None };
    let (from, to) = (graph.value(from).ty.as_tensor()?, graph.value(to).ty.as_tensor()?);
    let [(name, Attr::Int(code))] = &node.attributes[..] else { return None };
    let alone = node.captures.is_empty() && node.updates.is_empty();
    if !alone || node.op.key() != ("", "Cast") || &**name != "to" || from.dims != to.dims {
        return None;
    }
    // The codes of ONNX's `TensorProto.DataType`.
    match (from.element, to.element, code) {
        (ElementType::Int64, ElementType::Int32, 6) => Some(Half::Encode),
        (ElementType::Int32, ElementType::Int64, 7) => Some(Half::Decode),
        _ => None,
    }
}

/// Whether an int64 value is below 2³¹ in all its elements, for any input of the step: it is an index into a tensor, or an extent
/// of one, or was cast from a smaller integer.
fn is_bounded(graph: &Graph, value: ValueId) -> bool {
    const LIMIT: u64 = 1 << 31;
    let Def::Result(node, result) = graph.def(value) else { return false };
    let node = graph.node(node);
    let operand = node.operands.first().copied().flatten().map(|v| &graph.value(v).ty);
    let Some(of) = operand.and_then(Type::as_tensor) else { return false };
    match (node.op.key(), result) {
        // Indices into the whole tensor.
        (("", "MaxPool"), 1) => of.element_count().is_some_and(|n| n <= LIMIT),
        // Indices along an axis.
        (("", "ArgMax" | "ArgMin" | "NonZero"), 0) | (("", "TopK"), 1) => of.dims.iter().all(|&d| d <= LIMIT),
        // Values that can be as large as these extents themselves.
        (("", "Shape"), 0) => of.dims.iter().all(|&d| d < LIMIT),
        (("", "Size"), 0) => of.element_count().is_some_and(|n| n < LIMIT),
        (("", "Cast"), 0) => {
            use ElementType::*;
            matches!(of.element, Bool | Int8 | Int16 | Int32 | Uint8 | Uint16)
        }
        _ => false,
    }
}

/// The part of a node that a key describes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The whole node.
    Whole,
    /// The node without the operands and results that it writes aside.
    Function,
}

/// Not yet numbered.
const NONE: u32 = u32::MAX;

/// The contents of a variable.
#[derive(Clone, Copy)]
struct State {
    number: u32,
    /// A value that names it, or the variable itself if an update gives it no name; none for the contents before the step.
    value: Option<ValueId>,
}

/// The numbers of a node.
#[derive(Clone, Copy)]
struct Numbers {
    /// That of the nodes that count as one with it.
    class: u32,
    /// That of its key without the writes aside, if it has such.
    function: Option<u32>,
}

/// One graph, numbered.
struct Walk<'g> {
    graph: &'g Graph,
    /// The numbers of the operators that occur.
    ops: HashMap<&'g Op, u32>,
    /// By value.
    numbers: Vec<u32>,
    /// For each value, the value that it is a copy of; itself if it is not a copy, or is a range, or joined.
    wholes: Vec<ValueId>,
    /// By node; `NONE` for swaps, joins and decodings.
    nodes: Vec<u32>,
    /// For each node, the number of its key without the repetition count.
    bases: Vec<u32>,
    /// By node that writes something aside, the number of its key without those writes.
    functions: Vec<u32>,
    /// For each node, its origin; itself if it recomputes nothing.
    origins: Vec<NodeId>,
    /// Every class of nodes in the graph.
    classes: HashSet<u32>,
    /// Classes of nodes that encode a value which another node decodes.
    encodings: HashSet<u32>,
    /// By number of a variable, its contents after the step, if anything wrote it.
    states: HashMap<u32, State>,
    /// Numbers of values that nodes compute and that are known.
    constants: HashSet<u32>,
    swaps: usize,
    decodings: usize,
}

impl<'g> Walk<'g> {
    fn new(
        table: &mut Table<'g>,
        (graph, known): (&'g Graph, &'g Known),
        side: Side,
    ) -> Result<Walk<'g>, Difference> {
        let mut walk = Walk {
            graph,
            ops: HashMap::new(),
            numbers: vec![NONE; graph.value_capacity()],
            wholes: graph.values().map(|(value, _)| value).collect(),
            nodes: vec![NONE; graph.node_capacity()],
            bases: vec![NONE; graph.node_capacity()],
            functions: vec![NONE; graph.node_capacity()],
            origins: origins(graph, side)?,
            classes: HashSet::new(),
            encodings: HashSet::new(),
            states: HashMap::new(),
            constants: HashSet::new(),
            swaps: 0,
            decodings: 0,
        };
        walk.leaves(table, side)?;
        let mut times = HashMap::new();
        let mut key = Vec::new();
        for &id in graph.order() {
            let node = graph.node(id);
            let malformed = |why| Difference::Malformed { side, place: place(node), why };
            if node.op.is_swap() || node.op.is_join() {
                walk.number_copy(table, node).map_err(malformed)?;
            } else if let Some((encoding, whole)) = walk.decoded(node) {
                walk.number_decoding(node, encoding, whole).map_err(malformed)?;
            } else {
                let numbers = walk.number_node(table, &mut key, &mut times, id).map_err(malformed)?;
                walk.define_results(table, known, id, numbers).map_err(malformed)?;
                walk.write_variables(node, numbers.class);
            }
        }
        for (index, &output) in graph.outputs.iter().enumerate() {
            let place = format!("output {index}");
            walk.read(output).map_err(|why| Difference::Malformed { side, place, why })?;
        }
        Ok(walk)
    }

    /// Numbers the result of a swap or of a Join, which is erased.
    fn number_copy(&mut self, table: &mut Table<'g>, node: &'g Node) -> Result<(), String> {
        let number = if node.op.is_join() { self.join(table, node)? } else { self.copy(table, node)? };
        let copy = node.results[0].expect("a copy has a result");
        self.define(copy, number)?;
        if let (&[Some(from)], []) = (&node.operands[..], &node.attributes[..]) {
            self.wholes[copy.as_u32() as usize] = self.wholes[from.as_u32() as usize];
        }
        for update in &node.updates {
            let variable = self.read(update.variable)?;
            self.states.insert(variable, State { number, value: Some(copy) });
        }
        self.swaps += 1;
        Ok(())
    }

    /// Numbers the result of a node that decodes the result of `encoding`: it is `whole`.
    fn number_decoding(&mut self, node: &Node, encoding: NodeId, whole: ValueId) -> Result<(), String> {
        let number = self.read(whole)?;
        self.define(node.results[0].expect("it is decoded"), number)?;
        self.encodings.extend(self.class(encoding));
        self.decodings += 1;
        Ok(())
    }

    /// Numbers a node that stays. `times` counts the nodes so far by key, where each counts by itself.
    fn number_node(
        &mut self,
        table: &mut Table<'g>,
        key: &mut Vec<u32>,
        times: &mut HashMap<u32, u32>,
        id: NodeId,
    ) -> Result<Numbers, String> {
        let node = self.graph.node(id);
        if self.bases[id.as_u32() as usize] != NONE {
            return Err("it stands twice in the order".to_owned());
        }
        self.key(table, key, id, Part::Whole)?;
        let base = table.number(key, node.results.len());
        // The results of such a node without its writes aside have numbers of their own: a recomputed node lacks those writes.
        let function = match ops::aside(node) {
            Some(_) => {
                self.key(table, key, id, Part::Function)?;
                Some(table.number(key, node.results.len()))
            }
            None => None,
        };
        let class = if repeat(node) == Repeat::Never {
            if node.recomputes.is_some() {
                let why = "it updates a variable or holds a subgraph, so it may not be repeated";
                return Err(why.to_owned());
            }
            let time = times.entry(base).and_modify(|t| *t += 1).or_insert(0u32);
            table.number(&[TIME, base, *time], node.results.len())
        } else {
            let origin = self.origins[id.as_u32() as usize].as_u32() as usize;
            match function.filter(|&function| self.functions[origin] == function) {
                Some(_) => self.nodes[origin],
                None => base,
            }
        };
        self.functions[id.as_u32() as usize] = function.unwrap_or(NONE);
        self.classes.insert(class);
        self.bases[id.as_u32() as usize] = base;
        self.nodes[id.as_u32() as usize] = class;
        Ok(Numbers { class, function })
    }

    /// Numbers the results of a node: by their bytes where they are known, by the node where they are not.
    fn define_results(
        &mut self,
        table: &mut Table<'g>,
        known: &'g Known,
        id: NodeId,
        Numbers { class, function }: Numbers,
    ) -> Result<(), String> {
        let node = self.graph.node(id);
        let (_, result_aside) = is_aside(node);
        for (index, result) in node.results.iter().enumerate() {
            let Some(value) = *result else { continue };
            let number = match known.get(value) {
                Some(data) => {
                    let number = table.constant(&self.graph.value(value).ty, data);
                    self.constants.insert(number);
                    number
                }
                None => function.filter(|_| !result_aside(index)).unwrap_or(class) + 1 + index as u32,
            };
            self.define(value, number)?;
        }
        Ok(())
    }

    /// Writes the new values of the variables that the node updates.
    fn write_variables(&mut self, node: &Node, class: u32) {
        for update in &node.updates {
            if self.is_home(update.variable) {
                let new = new_value(node, update).and_then(|result| node.results[result]);
                let number = new.map_or(class, |value| self.number(value));
                let state = State { number, value: new.or(Some(update.variable)) };
                self.states.insert(self.number(update.variable), state);
            }
        }
    }

    /// Numbers inputs and initializers.
    fn leaves(&mut self, table: &mut Table<'g>, side: Side) -> Result<(), Difference> {
        let graph = self.graph;
        for (index, &input) in graph.inputs.iter().enumerate() {
            // Names, types and default values are known to be equal by position.
            let number = table.number(&[INPUT, index as u32], 0);
            let place = format!("input {index}");
            self.define(input, number).map_err(|why| Difference::Malformed { side, place, why })?;
        }
        let mut variables = HashSet::new();
        let inputs = self.numbers.clone();
        for initializer in &graph.initializers {
            if inputs[initializer.value.as_u32() as usize] != NONE {
                continue;
            }
            let value = graph.value(initializer.value);
            let malformed = |why| {
                let place = format!("initializer `{}`", value.name);
                Difference::Malformed { side, place, why }
            };
            let number = if table.variables.contains(&*value.name) {
                if !variables.insert(&*value.name) {
                    return Err(malformed("two initializers have this name, and one is updated".to_owned()));
                }
                let name = table.text(value.name.as_bytes());
                let (ty, data) = (table.ty(&value.ty), table.data(&initializer.data));
                table.number(&[VARIABLE, name, ty, data], 0)
            } else {
                table.constant(&value.ty, &initializer.data)
            };
            self.define(initializer.value, number).map_err(malformed)?;
        }
        Ok(())
    }

    /// Writes everything that the meaning of this part of the node depends on into `key`.
    fn key(
        &mut self,
        table: &mut Table<'g>,
        key: &mut Vec<u32>,
        id: NodeId,
        part: Part,
    ) -> Result<(), String> {
        let graph = self.graph;
        let node = graph.node(id);
        let (operand_aside, result_aside) = is_aside(node);
        let whole = part == Part::Whole;
        key.clear();
        let version = || graph.opsets.get(node.op.domain()).copied();
        let op = *self.ops.entry(&node.op).or_insert_with(|| table.op(&node.op, version()));
        key.extend([NODE, op]);
        table.attributes(key, &node.attributes);
        // Trailing operands and results that are left out are ignored.
        let count = |values: &[Option<ValueId>], aside: &dyn Fn(usize) -> bool| match part {
            Part::Whole => values.len(),
            Part::Function => {
                (0..values.len()).rev().find(|&i| values[i].is_some() && !aside(i)).map_or(0, |i| i + 1)
            }
        };
        let operands = count(&node.operands, &operand_aside);
        key.push(operands as u32);
        for (index, operand) in node.operands[..operands].iter().enumerate() {
            match operand.filter(|_| whole || !operand_aside(index)) {
                Some(value) => key.extend([1, self.read(value)?]),
                None => key.push(0),
            }
        }
        key.push(node.captures.len() as u32);
        for &capture in &node.captures {
            // The subgraph's bytes contain the name.
            let name = table.text(graph.value(capture).name.as_bytes());
            key.extend([name, self.read(capture)?]);
        }
        key.push(node.results.len() as u32);
        for index in 0..node.results.len() {
            match self.result_type(id, index).filter(|_| whole || !result_aside(index)) {
                Some(ty) => key.extend([1, table.ty(ty)]),
                None => key.push(0),
            }
        }
        let updates = if whole { self.updates(node)? } else { Vec::new() };
        key.push(updates.len() as u32);
        for (variable, result) in updates {
            key.push(variable);
            key.push(result.map_or(0, |r| 1 + r as u32));
        }
        if ops::may_draw(node) {
            key.push(1);
            push_u64(key, graph.seed(id));
        } else {
            key.push(0);
        }
        Ok(())
    }

    /// The type of a result. A recomputed node may leave out results that its origin has.
    fn result_type(&self, id: NodeId, index: usize) -> Option<&'g Type> {
        let node = self.graph.node(id);
        let origin = self.graph.node(self.origins[id.as_u32() as usize]);
        let value = node.results[index].or_else(|| {
            let alike = origin.op == node.op && origin.results.len() == node.results.len();
            origin.results.get(index).copied().flatten().filter(|_| alike)
        })?;
        Some(&self.graph.value(value).ty)
    }

    /// The numbers of the variables that the node updates, each with the index of the result that is its new value; sorted.
    fn updates(&self, node: &Node) -> Result<Vec<(u32, Option<usize>)>, String> {
        let mut updates = Vec::with_capacity(node.updates.len());
        for update in &node.updates {
            let copied = |n: NodeId| self.graph.node(n).op.is_swap_in() || self.graph.node(n).op.is_join();
            if !self.graph.producer(update.variable).is_none_or(copied) {
                let name = &self.graph.value(update.variable).name;
                return Err(format!("it updates `{name}`, which is neither an input nor an initializer"));
            }
            updates.push((self.read(update.variable)?, new_value(node, update)));
        }
        updates.sort_unstable();
        Ok(updates)
    }

    /// Whether a write to the variable is visible to the next step: not if it is a copy that must be copied back.
    fn is_home(&self, variable: ValueId) -> bool {
        self.graph.producer(variable).is_none_or(|node| !self.graph.node(node).updates.is_empty())
    }

    /// The contents of the variable of this number after the step.
    fn state(&self, variable: u32) -> State {
        self.states.get(&variable).copied().unwrap_or(State { number: variable, value: None })
    }

    /// Whether all variables that the node updates are given, and become its first result.
    fn updates_given(&self, node: &Node) -> bool {
        node.updates.iter().all(|u| self.graph.producer(u.variable).is_none() && u.result == Some(0))
    }

    /// The number of the value that a swap copies.
    fn copy(&self, table: &mut Table<'g>, node: &Node) -> Result<u32, String> {
        let (&[Some(from)], &[Some(to)]) = (&node.operands[..], &node.results[..]) else {
            return Err("a swap has one operand and one result".to_owned());
        };
        let is_whole = node.updates.is_empty() || node.attributes.is_empty();
        if !node.captures.is_empty() || !is_whole || !self.updates_given(node) {
            return Err("a swap only copies, and what it updates it copies whole".to_owned());
        }
        let number = self.read(from)?;
        let (source, target) = (self.graph.value(from), self.graph.value(to));
        let swapped_out = self.graph.producer(from).is_some_and(|n| self.graph.node(n).op.is_swap_out());
        if node.op.is_swap_in() && !swapped_out && !source.place.is_host() {
            return Err(format!("`{}` was never swapped out", source.name));
        }
        let (number, ty) = match copied_elements(node).filter(|_| node.attributes.len() == 2) {
            Some(elements) => {
                let ty = source.ty.as_tensor().and_then(|whole| range_type(whole, &elements));
                let ty = ty.ok_or_else(|| format!("{elements:?} is no range of `{}`", source.name))?;
                let mut key = vec![RANGE, number, table.ty(&source.ty)];
                push_u64(&mut key, elements.start);
                push_u64(&mut key, elements.end);
                let range = table.number(&key, 0);
                table.ranges.insert(range, (number, &source.ty, elements));
                (range, ty)
            }
            None => match node.attributes.first() {
                Some((name, _)) => return Err(format!("attribute `{name}` of a swap is not understood")),
                None => (number, source.ty.clone()),
            },
        };
        if ty != target.ty {
            return Err(format!("the copy of `{}` is {}, but that is {ty}", source.name, target.ty));
        }
        Ok(number)
    }

    /// The number of a Join's result: the tensor of which all its pieces are ranges, each at its place.
    fn join(&self, table: &Table<'g>, node: &Node) -> Result<u32, String> {
        let (Some((&base, pieces)), &[Some(result)]) = (node.operands.split_first(), &node.results[..])
        else {
            return Err("a join has what stayed, pieces, and one result".to_owned());
        };
        let joined = joined_elements(self.graph, node);
        if joined.len() != pieces.len() || !node.captures.is_empty() || !self.updates_given(node) {
            return Err("a join only names, and what it updates is what it names".to_owned());
        }
        let ty = &self.graph.value(result).ty;
        let mut whole = match base {
            Some(base) if self.graph.value(base).ty == *ty => Some(self.read(base)?),
            Some(base) => return Err(format!("it turns `{}` into {ty}", self.graph.value(base).name)),
            None => None,
        };
        let mut at = 0;
        for (piece, elements) in joined {
            let name = &self.graph.value(piece).name;
            let range = table.ranges.get(&self.read(piece)?);
            let (of, of_type, found) = range.ok_or_else(|| format!("`{name}` is no range of a tensor"))?;
            if *whole.get_or_insert(*of) != *of || *of_type != ty {
                return Err(format!("`{name}` is a range of another tensor"));
            }
            if *found != elements {
                return Err(format!("`{name}` is elements {found:?}, and stands at {elements:?}"));
            }
            if elements.start < at || base.is_none() && elements.start > at {
                return Err(format!("`{name}` is not where the piece before it ends"));
            }
            at = elements.end;
        }
        let count = ty.as_tensor().and_then(|whole| whole.element_count());
        match whole {
            Some(whole) if base.is_some() || Some(at) == count => Ok(whole),
            _ => Err("it leaves elements out".to_owned()),
        }
    }

    /// The node that encoded the value that this node decodes, and the encoded value: its number is this node's result, if
    /// encoding and decoding are the identity on it.
    fn decoded(&self, node: &Node) -> Option<(NodeId, ValueId)> {
        let from =
            half(self.graph, node).filter(|&half| half == Half::Decode).and_then(|_| node.operands[0])?;
        let encoding = self.graph.producer(self.wholes[from.as_u32() as usize])?;
        let node = self.graph.node(encoding);
        let of =
            half(self.graph, node).filter(|&half| half == Half::Encode).and_then(|_| node.operands[0])?;
        is_bounded(self.graph, self.wholes[of.as_u32() as usize]).then_some((encoding, of))
    }

    fn define(&mut self, value: ValueId, number: u32) -> Result<(), String> {
        let slot = &mut self.numbers[value.as_u32() as usize];
        if *slot != NONE {
            return Err(format!("`{}` is defined twice", self.graph.value(value).name));
        }
        *slot = number;
        Ok(())
    }

    fn read(&self, value: ValueId) -> Result<u32, String> {
        let number = self.number(value);
        if number == NONE {
            let undefined = self.graph.def(value) == Def::Nothing;
            let when = if undefined { "nothing defines" } else { "is not computed before" };
            return Err(format!("it reads `{}`, which {when}", self.graph.value(value).name));
        }
        Ok(number)
    }

    fn number(&self, value: ValueId) -> u32 {
        self.numbers[value.as_u32() as usize]
    }

    fn class(&self, node: NodeId) -> Option<u32> {
        Some(self.nodes[node.as_u32() as usize]).filter(|&class| class != NONE)
    }

    /// Whether the node is missing from the other graph: a node that encodes a value which another one decodes may be absent.
    fn is_missing_from(&self, other: &Walk<'_>, node: NodeId) -> bool {
        let missing = |class: u32| !other.classes.contains(&class) && !self.encodings.contains(&class);
        self.class(node).is_some_and(missing)
    }

    /// Whether the node's result is known, and a node of the other graph has the same one.
    fn is_known_in(&self, other: &Walk<'_>, node: NodeId) -> bool {
        let results = &self.graph.node(node).results[..];
        matches!(results, [Some(value)] if other.constants.contains(&self.number(*value)))
    }

    /// Number of nodes with this key.
    fn times(&self, base: u32) -> usize {
        self.graph.order().iter().filter(|n| self.bases[n.as_u32() as usize] == base).count()
    }
}

/// For every node the first of its chain of origins; itself if it recomputes nothing.
fn origins(graph: &Graph, side: Side) -> Result<Vec<NodeId>, Difference> {
    let ticks = graph.ticks();
    let mut origins: Vec<Option<NodeId>> = vec![None; graph.node_capacity()];
    let mut path = Vec::new();
    for &id in graph.order() {
        let mut at = id;
        let origin = loop {
            if let Some(known) = origins[at.as_u32() as usize] {
                break known;
            }
            let malformed = |why: &str| {
                let place = place(graph.node(id));
                Err(Difference::Malformed { side, place, why: why.to_owned() })
            };
            if ticks[at.as_u32() as usize] == u32::MAX {
                return malformed("it recomputes a node that is not in the graph");
            }
            if path.len() > graph.node_capacity() {
                return malformed("it recomputes itself");
            }
            path.push(at);
            match graph.node(at).recomputes {
                Some(next) => at = next,
                None => break at,
            }
        };
        path.drain(..).for_each(|n| origins[n.as_u32() as usize] = Some(origin));
    }
    let itself = |(index, origin): (usize, Option<NodeId>)| origin.unwrap_or(NodeId::from_u32(index as u32));
    Ok(origins.into_iter().enumerate().map(itself).collect())
}

/// Why a node of the original is not in the rewritten graph.
fn lost_node(a: &Walk<'_>, id: NodeId, b: &Walk<'_>) -> Difference {
    let node = a.graph.node(id);
    let named = b.graph.node_named(&node.name).filter(|&n| b.class(n).is_some());
    let counterpart = named.or_else(|| {
        // The node was renamed if its result was not.
        let result = a.graph.value(node.defines().next()?);
        let candidate = b.graph.producer(b.graph.value_named(&result.name)?)?;
        b.class(candidate).filter(|class| !a.classes.contains(class)).map(|_| candidate)
    });
    let Some(counterpart) = counterpart else {
        return Difference::Missing { node: node.name.clone(), op: node.op.clone() };
    };
    let Some(change) = change(a, id, b, counterpart) else {
        return altered(node, times(a, b, a.bases[id.as_u32() as usize]));
    };
    if let Change::Operand { index, .. } = change {
        // A wrong recomputation is the cause; the node that reads it is only affected.
        let read = b.graph.node(counterpart).operands.get(index).copied().flatten();
        let producer = read.and_then(|v| b.graph.producer(uncopied(b.graph, v)));
        if let Some(cause) = producer.and_then(|twin| wrong_twin(b, twin)) {
            return cause;
        }
    }
    altered(node, change)
}

fn altered(node: &Node, change: Change) -> Difference {
    Difference::Node { node: node.name.clone(), op: node.op.clone(), change: Box::new(change) }
}

/// Why a node of the rewritten graph is not in the original, all of whose nodes are in the rewritten one.
fn extra_node(a: &Walk<'_>, b: &Walk<'_>, id: NodeId) -> Difference {
    if let Some(difference) = wrong_twin(b, id) {
        return difference;
    }
    let node = b.graph.node(id);
    let base = b.bases[id.as_u32() as usize];
    if a.times(base) > 0 {
        return altered(node, times(a, b, base));
    }
    Difference::Extra { node: node.name.clone(), op: node.op.clone() }
}

fn times(a: &Walk<'_>, b: &Walk<'_>, base: u32) -> Change {
    Change::Times { original: a.times(base), rewritten: b.times(base) }
}

/// The difference between a node and its origin, if there is one.
fn wrong_twin(walk: &Walk<'_>, id: NodeId) -> Option<Difference> {
    let origin = walk.origins[id.as_u32() as usize];
    if walk.class(id)? == walk.class(origin).unwrap_or(NONE) {
        return None;
    }
    let node = walk.graph.node(id);
    let (name, op) = (node.name.clone(), node.op.clone());
    let change = Box::new(change(walk, origin, walk, id)?);
    Some(Difference::Twin { node: name, op, origin: walk.graph.node(origin).name.clone(), change })
}

/// The first difference between two nodes, if there is one.
fn change(a: &Walk<'_>, original: NodeId, b: &Walk<'_>, rewritten: NodeId) -> Option<Change> {
    let (old, new) = (a.graph.node(original), b.graph.node(rewritten));
    if old.op != new.op {
        return Some(Change::Operator(new.op.clone()));
    }
    let version = |graph: &Graph| graph.opsets.get(old.op.domain()).copied();
    if version(a.graph) != version(b.graph) {
        return Some(Change::Version { original: version(a.graph), rewritten: version(b.graph) });
    }
    for (name, _) in old.attributes.iter().chain(&new.attributes) {
        let (before, after) = (old.attribute(name), new.attribute(name));
        if before != after {
            let name = name.clone();
            let (original, rewritten) = (before.map(brief), after.map(brief));
            return Some(Change::Attribute { name, original, rewritten });
        }
    }
    for index in 0..old.operands.len().max(new.operands.len()) {
        let before = old.operands.get(index).copied();
        let after = new.operands.get(index).copied();
        if before.map(|v| v.map(|v| a.number(v))) != after.map(|v| v.map(|v| b.number(v))) {
            let before = before.flatten();
            let after = after.flatten();
            if let (Some(before), Some(after)) = (before, after)
                && let Some(change) = other_bytes(index, (a.graph, before), (b.graph, after))
            {
                return Some(change);
            }
            let original = before.map(|v| describe(a.graph, v));
            let rewritten = after.map(|v| describe(b.graph, v));
            return Some(Change::Operand { index, original, rewritten });
        }
    }
    for index in 0..old.captures.len().max(new.captures.len()) {
        let key = |walk: &Walk<'_>, v: ValueId| (walk.graph.value(v).name.clone(), walk.number(v));
        let (before, after) = (old.captures.get(index), new.captures.get(index));
        if before.map(|&v| key(a, v)) != after.map(|&v| key(b, v)) {
            let original = before.map(|&v| describe(a.graph, v));
            let rewritten = after.map(|&v| describe(b.graph, v));
            return Some(Change::Capture { original, rewritten });
        }
    }
    for index in 0..old.results.len().max(new.results.len()) {
        let ty = |walk: &Walk<'_>, id: NodeId, node: &Node| {
            (index < node.results.len()).then(|| walk.result_type(id, index).cloned())
        };
        let (before, after) = (ty(a, original, old), ty(b, rewritten, new));
        if before != after {
            return Some(Change::Result { index, original: before.flatten(), rewritten: after.flatten() });
        }
    }
    let (before, after) = (a.updates(old).ok()?, b.updates(new).ok()?);
    if before != after {
        let only = |these: &Walk<'_>, node: &Node, others: &[(u32, Option<usize>)]| {
            let key = |u: &Update| (these.number(u.variable), new_value(node, u));
            node.updates.iter().find(|u| !others.contains(&key(u))).map(|u| {
                let name = &these.graph.value(u.variable).name;
                let result = new_value(node, u);
                result.map_or_else(|| format!("`{name}`"), |r| format!("`{name}` as result {r}"))
            })
        };
        return Some(Change::Update { original: only(a, old, &after), rewritten: only(b, new, &before) });
    }
    let (before, after) = (a.graph.seed(original), b.graph.seed(rewritten));
    (ops::may_draw(old) && before != after).then_some(Change::Seed { original: before, rewritten: after })
}

/// The change of an operand that reads an initializer of the same name with another type or other bytes.
fn other_bytes(index: usize, (a, old): (&Graph, ValueId), (b, new): (&Graph, ValueId)) -> Option<Change> {
    let (old, new) = (uncopied(a, old), uncopied(b, new));
    let (before, after) = (constant(a, old)?, constant(b, new)?);
    let (old, new) = (a.value(old), b.value(new));
    (old.name == new.name).then(|| Change::Initializer {
        index,
        name: old.name.clone(),
        original: format!("{} of {}", old.ty, brief_data(before)),
        rewritten: format!("{} of {}", new.ty, brief_data(after)),
    })
}

/// The value that was copied, through any number of swaps and joins.
fn uncopied(graph: &Graph, mut value: ValueId) -> ValueId {
    for _ in graph.order() {
        let copies = |n: &&Node| n.op.is_swap() || n.op.is_join();
        let copy = graph.producer(value).map(|n| graph.node(n)).filter(copies);
        match copy.and_then(|n| n.operands.iter().copied().flatten().next()) {
            Some(from) => value = from,
            None => break,
        }
    }
    value
}

/// `[relu_1] Relu`.
fn place(node: &Node) -> String {
    format!("node `{}` ({})", node.name, node.op)
}

/// A value and its definition: `h_in`, a copy of `h` of [n1] Relu.
fn describe(graph: &Graph, value: ValueId) -> String {
    let whole = uncopied(graph, value);
    let copied =
        if whole == value { String::new() } else { format!("`{}`, a copy of ", graph.value(value).name) };
    let Def::Result(node, index) = graph.def(whole) else {
        let kind = match graph.def(whole) {
            Def::Input => "input ",
            Def::Initializer(_) => "initializer ",
            _ => "",
        };
        return format!("{copied}{kind}`{}`", graph.value(whole).name);
    };
    let (name, node) = (&graph.value(whole).name, graph.node(node));
    match node.results.len() {
        1 => format!("{copied}`{name}` of {}", place(node)),
        _ => format!("{copied}`{name}`, result {index} of {}", place(node)),
    }
}

fn brief_data(data: &Data) -> String {
    let length = data.len();
    match data {
        Data::External { location, offset, .. } => format!("{length} bytes at {offset} of `{location}`"),
        _ => format!(
            "{length} bytes, digest {:.16}",
            data.digest().map(|digest| digest.to_string()).unwrap_or_default()
        ),
    }
}

/// An attribute's value; of a long list its first elements.
fn brief(attr: &Attr) -> String {
    fn list<T>(values: &[T], show: impl Fn(&T) -> String) -> String {
        const SHOWN: usize = 12;
        let shown: Vec<String> = values.iter().take(SHOWN).map(show).collect();
        let rest = values.len().saturating_sub(SHOWN);
        let more = if rest == 0 { String::new() } else { format!(", and {rest} more") };
        format!("[{}{more}]", shown.join(", "))
    }
    match attr {
        Attr::Int(value) => value.to_string(),
        Attr::Float(value) => format!("{:?}", value.0),
        Attr::String(text) => format!("\"{}\"", text.escape_ascii()),
        Attr::Ints(values) => list(values, i64::to_string),
        Attr::Floats(values) => list(values, |v| format!("{:?}", v.0)),
        Attr::Strings(values) => list(values, |v| format!("\"{}\"", v.escape_ascii())),
        Attr::Tensor(ty, data) => format!("{ty} of {}", brief_data(data)),
        Attr::Opaque(data) => format!("a subgraph of {}", brief_data(data)),
    }
}

#[cfg(test)]
mod tests;
