//! The [`Problem`] of a graph, and the maps from ticks and tensors back to nodes and storages.
//!
//! Every node is an operator, in the graph's order, and every storage with bytes on the device is a tensor. The bytes live at
//! a tick are the same on both sides: inputs, parameters and state are resident throughout, and count.

use std::collections::{BTreeMap, HashMap};

use cranelift_entity::{PrimaryMap, SecondaryMap};
use lmsc_cost::Cost;
use lmsc_ir::{
    Advice, Bytes, Def, Graph, Node, NodeId, Phase, Phases, Storage, StorageId, Storages, Type, ValueId, ops,
};
use lmsc_schedule::problem::{COMPUTE, Link, Operator, Problem, ProblemError, Tensor, TensorId};

/// A graph as a problem.
#[derive(Clone, Debug)]
pub struct Bridge {
    /// The problem for planners.
    pub problem: Problem,
    /// By tick of the problem, the node.
    pub nodes: Vec<NodeId>,
    /// By tensor of the problem, the storage.
    pub storages: PrimaryMap<TensorId, StorageId>,
    /// The storages of the graph.
    pub table: Storages,
    /// For each tensor, the reason why it may not be swapped out; `None` if it may.
    pub stays: PrimaryMap<TensorId, Option<Stays>>,
    tensors: Vec<Option<TensorId>>,
}

/// The inputs of a [`Bridge`] that are not part of the graph.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The link between device and host.
    pub link: Link,
    /// Tensors with fewer bytes stay resident: their copies would be mostly latency.
    pub smallest: Bytes,
    /// Whether constants of the file stay resident, too, large ones included.
    pub weights_stay: bool,
}

impl Terms {
    /// The terms of a link for a graph that needs `peak` bytes; tensors may be swapped out from a size of 1 MiB, or of a
    /// thousandth of these bytes if that is less.
    pub fn new(link: Link, peak: Bytes) -> Terms {
        Terms { link, smallest: Bytes((peak.0 / 1000).min(1 << 20)), weights_stay: false }
    }
}

/// Why a tensor stays on the device. The text completes "kept `name`: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stays {
    /// It is overwritten during the step, and its new value is no output of the graph: if a copy of it were overwritten
    /// instead, the new value would be lost.
    Overwritten,
    /// It is a constant of the file, and either small, so that it may be a parameter of an operator, or weights stay
    /// resident.
    Constant,
    /// It is returned to the caller.
    Output,
    /// A subgraph of the node reads it, under its own name.
    Captured(NodeId),
    /// It is a sequence.
    Sequence,
    /// This view of it reads values that may no longer exist when the view is made again.
    View(NodeId),
    /// It has this many names; each swap-in would have to make its views again.
    Names(usize),
    /// It is smaller than the size from which tensors may be swapped out.
    Small,
}

impl Stays {
    /// The reason, in words; names and numbers of the case are at the end, in brackets.
    pub fn describe(&self, graph: &Graph) -> String {
        match self {
            Stays::Overwritten => "it is overwritten in place, and its new value is no output".to_owned(),
            Stays::Constant => "it is a constant of the file".to_owned(),
            Stays::Output => "it is an output of the graph".to_owned(),
            Stays::Captured(node) => format!("a subgraph reads it (that of `{}`)", graph.node(*node).name),
            Stays::Sequence => "it is a sequence".to_owned(),
            Stays::View(node) => {
                format!("one of its views reads values that may be gone later (`{}`)", graph.node(*node).name)
            }
            Stays::Names(count) => format!("too many views would have to be repeated ({count})"),
            Stays::Small => "it is too small to be worth a copy".to_owned(),
        }
    }

    /// Whether the tensor has a single presence in a step under every plan: its values keep their names.
    fn pins(&self) -> bool {
        *self != Stays::Small
    }
}

/// Initializers of at least this size are weights, which may be on the host. Smaller ones may be parameters of operators.
const WEIGHT: Bytes = Bytes(256);

/// A storage with more names than these stays resident: each swap-in makes its views again.
const MOST_NAMES: usize = 256;

/// Why a graph cannot be turned into a problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BridgeError {
    /// It contains swaps already.
    #[error("node `{0}` copies between device and host already, and planners begin without swaps")]
    Swaps(String),
    /// Its sizes or times are out of range.
    #[error(transparent)]
    Problem(#[from] ProblemError),
}

impl Advice for BridgeError {
    fn helps(&self) -> Vec<String> {
        match self {
            BridgeError::Swaps(_) => vec!["give the graph as it was before lmsc rewrote it".to_owned()],
            BridgeError::Problem(_) => Vec::new(),
        }
    }
}

impl Bridge {
    /// The problem of the graph.
    ///
    /// A view costs nothing: its `cost` is ignored. A node is recomputable if it is a function of its operands, or random
    /// with its own seed, and writes nothing; but not if it defines a storage that keeps its name ([`Bridge::stays`]).
    ///
    /// # Errors
    /// [`BridgeError`], if the graph has swaps, or if the sums of its sizes or times are out of range.
    pub fn of(
        graph: &Graph,
        phases: &Phases,
        terms: &Terms,
        cost: impl Fn(NodeId) -> Cost,
    ) -> Result<Bridge, BridgeError> {
        if let Some(&swap) =
            graph.order().iter().find(|&&n| graph.node(n).op.is_swap() || graph.node(n).op.is_join())
        {
            return Err(BridgeError::Swaps(graph.node(swap).name.to_string()));
        }
        let table = Storages::of(graph);
        let mut bridge = Bridge {
            problem: Problem { link: terms.link, ..Problem::default() },
            nodes: graph.order().to_vec(),
            storages: PrimaryMap::new(),
            stays: PrimaryMap::new(),
            tensors: vec![None; table.len()],
            table,
        };
        bridge.add_tensors(graph, terms);
        let mut kinds = HashMap::new();
        let mut read_by: SecondaryMap<TensorId, usize> = SecondaryMap::with_default(usize::MAX);
        for (tick, &id) in graph.order().iter().enumerate() {
            let node = graph.node(id);
            let kind = *kinds.entry(&node.op).or_insert_with(|| {
                bridge.problem.kinds.push(node.op.to_string());
                bridge.problem.kinds.len() as u32 - 1
            });
            let op = bridge.op(graph, id, (kind, phases.phase(id)), cost(id), |tensor| {
                std::mem::replace(&mut read_by[tensor], tick) != tick
            });
            bridge.problem.ops.push(op);
        }
        bridge.problem.check()?;
        Ok(bridge)
    }

    /// The tensor of the value's bytes, if it has bytes on the device.
    pub fn tensor(&self, value: ValueId) -> Option<TensorId> {
        self.tensor_of(self.table.storage(value))
    }

    /// The tensor of the storage, if it has bytes on the device.
    pub fn tensor_of(&self, storage: StorageId) -> Option<TensorId> {
        self.tensors[storage.as_u32() as usize]
    }

    /// The value whose definition creates the tensor.
    pub fn root(&self, tensor: TensorId) -> ValueId {
        self.table.get(self.storages[tensor]).root
    }

    fn add_tensors(&mut self, graph: &Graph, terms: &Terms) {
        let mut output = vec![false; self.table.len()];
        for &value in &graph.outputs {
            output[self.table.storage(value).as_u32() as usize] = true;
        }
        let movable = self.movable(graph);
        let mut written = vec![false; self.table.len()];
        for value in graph.variables() {
            written[self.table.storage(value).as_u32() as usize] = true;
        }
        let mut captured = vec![None; self.table.len()];
        for &id in graph.order() {
            for &value in &graph.node(id).captures {
                captured[self.table.storage(value).as_u32() as usize] = Some(id);
            }
        }
        for (id, storage) in self.table.iter().filter(|(_, s)| !s.on_host && s.bytes > Bytes::ZERO) {
            let index = id.as_u32() as usize;
            let given = storage.is_given(graph);
            let stays = match () {
                () if given && !movable[index] => Some(Stays::Overwritten),
                () if matches!(graph.def(storage.root), Def::Initializer(_))
                    && (terms.weights_stay || storage.bytes < WEIGHT) =>
                {
                    Some(Stays::Constant)
                }
                () if output[index] && !given => Some(Stays::Output),
                () if storage.values.len() > MOST_NAMES => Some(Stays::Names(storage.values.len())),
                () if matches!(graph.value(storage.root).ty, Type::Sequence(_)) => Some(Stays::Sequence),
                () => captured[index]
                    .map(Stays::Captured)
                    .or_else(|| self.bound_view(graph, storage, &written).map(Stays::View))
                    .or((storage.bytes < terms.smallest).then_some(Stays::Small)),
            };
            self.tensors[index] = Some(self.problem.tensors.push(Tensor {
                bytes: storage.bytes.0,
                swappable: stays.is_none(),
                given,
                kept: given || output[index],
            }));
            self.storages.push(id);
            self.stays.push(stays);
        }
    }

    /// For each given storage, whether a copy of it may be overwritten instead: an output is its final value, no output is an
    /// earlier value, and the nodes that overwrite it read it.
    fn movable(&self, graph: &Graph) -> Vec<bool> {
        let mut movable = vec![true; self.table.len()];
        let mut latest: BTreeMap<StorageId, ValueId> = BTreeMap::new();
        let index = |storage: StorageId| storage.as_u32() as usize;
        for &id in graph.order() {
            let node = graph.node(id);
            for update in &node.updates {
                let storage = self.table.storage(update.variable);
                movable[index(storage)] &= node.reads().any(|value| self.table.storage(value) == storage);
                match update.result.and_then(|result| node.results.get(result).copied().flatten()) {
                    Some(new) => _ = latest.insert(storage, new),
                    None => movable[index(storage)] = false,
                }
            }
        }
        for (storage, new) in &latest {
            movable[index(*storage)] &= graph.outputs.contains(new);
        }
        for output in &graph.outputs {
            let storage = self.table.storage(*output);
            movable[index(storage)] &= latest.get(&storage) == Some(output);
        }
        movable
    }

    /// A view of the storage that cannot be made again at any time: besides the viewed value, it reads one that does not keep
    /// its value throughout the step.
    fn bound_view(&self, graph: &Graph, storage: &Storage, written: &[bool]) -> Option<NodeId> {
        let views = storage.values[1..].iter().filter_map(|&value| graph.producer(value));
        views.filter(|&view| is_view(graph, &self.table, view)).find(|&view| {
            let mut others = graph.node(view).operands.iter().skip(1).flatten();
            others.any(|&value| {
                let id = self.table.storage(value);
                let other = self.table.get(id);
                let given = !matches!(graph.def(other.root), Def::Result(..));
                let lasts = given && !written[id.as_u32() as usize];
                !(lasts || other.bytes == Bytes::ZERO)
            })
        })
    }

    fn op(
        &self,
        graph: &Graph,
        id: NodeId,
        (kind, phase): (u32, Phase),
        cost: Cost,
        mut is_new: impl FnMut(TensorId) -> bool,
    ) -> Operator {
        let node = graph.node(id);
        let produced = |&tensor: &TensorId| graph.producer(self.root(tensor)) == Some(id);
        let cost = if only_names(graph, &self.table, id) { Cost::default() } else { cost };
        let mut produces: Vec<TensorId> = node.defines().filter_map(|v| self.tensor(v)).collect();
        produces.retain(produced);
        let changed = node.updates.iter().map(|update| update.variable);
        let mut changes: Vec<TensorId> = changed.clone().filter_map(|v| self.tensor(v)).collect();
        changes.sort_unstable();
        changes.dedup();
        let touched = graph.uses(id).chain(changed).chain(node.defines()).filter_map(|v| self.tensor(v));
        let reads = touched.filter(|tensor| !produced(tensor) && is_new(*tensor)).collect();
        let may_repeat =
            may_repeat(node) && produces.iter().all(|&t| !self.stays[t].is_some_and(|stays| stays.pins()));
        Operator {
            kind,
            phase,
            nanos: cost.nanos,
            workspace: cost.workspace,
            reads,
            produces,
            changes,
            recomputable: may_repeat,
            lane: COMPUTE,
        }
    }
}

/// Whether the node only gives another name to its first operand.
pub fn is_view(graph: &Graph, table: &Storages, node: NodeId) -> bool {
    let node = graph.node(node);
    let first = |values: &[Option<ValueId>]| values.first().copied().flatten().map(|v| table.storage(v));
    node.op.effects().view
        && node.updates.is_empty()
        && first(&node.results).is_some_and(|storage| first(&node.operands) == Some(storage))
}

/// Whether the node costs nothing because it only names existing values: a view, or a Join.
pub(crate) fn only_names(graph: &Graph, table: &Storages, node: NodeId) -> bool {
    graph.node(node).op.is_join() || is_view(graph, table, node)
}

/// Whether the node, run again on the same operands, gives the same results and changes nothing, apart from the operands that
/// it writes aside.
fn may_repeat(node: &Node) -> bool {
    let effects = node.op.effects();
    let written = |variable| {
        let aside = ops::aside(node).unwrap_or_default();
        aside.iter().any(|&(operand, _)| node.operands.get(operand) == Some(&Some(variable)))
    };
    let aside = ops::aside(node).is_some()
        && !effects.random
        && node.captures.is_empty()
        && node.updates.iter().all(|update| written(update.variable));
    let pure = (ops::is_pure(node) || aside) && effects.phase != Some(Phase::Update);
    let seeded = effects.random
        && node.attribute("seed").is_some()
        && effects.writes.is_empty()
        && node.updates.is_empty()
        && node.captures.is_empty();
    let subgraph = node.attributes.iter().any(|(_, a)| matches!(a, lmsc_ir::Attr::Opaque(_)));
    (pure || seeded) && !subgraph
}
