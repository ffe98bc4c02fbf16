//! The rewriting of TFLMS: the storages that are swapped out between their forward and their backward uses, and the triggers
//! of their swap-ins.
//!
//! # Source
//! Le et al., *TFLMS: Large Model Support in TensorFlow by Graph Rewriting*, arXiv:1807.02037. Departures of this module from
//! the paper:
//!
//! * Decisions are about storages, not edges: a view of a swapped tensor is swapped with it, once.
//! * "Randomly get one item" (Algorithms 1 and 2) is the last one in execution order that was found.
//! * The paper has triggers only; its framework freed memory by itself. Here every plan also holds *release*
//!   edges, without which the peak need not fall.
//! * Distances for thresholds and for fusing are counted in the levels that the order has reached (`depths`), not in
//!   the levels at which nodes could run at the earliest.
//! * Where neither strategy finds a trigger, the order gives one.
//! * Two copies of one storage never exist side by side: swap-ins that would overlap are one, fused or not. So
//!   no parameters can raise the peak.
//! * The threshold α applies to edges from the forward to the backward phase; `branch_threshold` to those within
//!   the forward phase. §4.1 says `≥ α`, §5.1 `> branch_threshold`: both are `≥` here.
//! * The encoding that §4.2.1 mentions runs on the device, so that it saves bytes of the link too (`encode`).

mod absence;
mod encode;
mod moments;
mod options;
mod release;
mod trigger;
mod tune;

pub use options::{OPTIONS, bends, is_tuned, swap_limit};
pub use tune::{Tuned, tune};

use std::borrow::Cow;
use std::fmt;

use lmsc_ir::words::count;
use lmsc_ir::{Adjacency, Bytes, Graph, Node, NodeId, Phase, Phases, StorageId, Storages, ValueId};
use smallvec::SmallVec;

use lmsc_plan::{MemoryTimeline, Scope};

/// The name of the planner.
pub const NAME: &str = "tflms";

/// The strategy that finds a trigger (TFLMS §4.3, `ctrld_strategy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// From the source down the forward phase, then across to the backward phase (Algorithm 2); if that finds nothing, direct
    /// order.
    #[default]
    ChainRule,
    /// Back from the target (Algorithm 1).
    DirectOrder,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Strategy::ChainRule => "chain-rule",
            Strategy::DirectOrder => "direct-order",
        })
    }
}

/// The parameters of TFLMS, with the names of its Table 2.
#[derive(Clone, Debug)]
pub struct Params {
    /// α (§4.1): an edge into the backward phase is rewritten if it spans at least this many levels.
    pub threshold: u32,
    /// The minimum distance of a trigger, in levels (σₗ, §4.3).
    pub lb: u32,
    /// The maximum distance of a trigger, in levels (σᵤ, §4.3).
    pub ub: u32,
    /// Maximum number of swapped storages, counted from the start of the graph; `None` for all.
    pub n_tensors: Option<usize>,
    /// The strategy that finds triggers.
    pub ctrld_strategy: Strategy,
    /// Uses of one storage share a swap-in if they are at most this many levels apart (§4.2.3); 0 for none.
    pub fuse_swapins: u32,
    /// Whether long edges within the forward phase are rewritten as well.
    pub swap_branches: bool,
    /// Minimum number of levels that such an edge spans.
    pub branch_threshold: u32,
    /// Whether 64-bit integers that fit 32 bits are copied as 32-bit integers (§4.2.1).
    pub encode: bool,
    /// If not empty, only storages that nodes of these scopes produce are swapped.
    pub incl_scopes: Vec<Scope>,
    /// Storages that nodes of these scopes produce are not swapped.
    pub excl_scopes: Vec<Scope>,
    /// If not empty, only storages that these operators produce are swapped.
    pub incl_types: Vec<String>,
    /// Storages that these operators produce are not swapped.
    pub excl_types: Vec<String>,
    /// If not empty, only storages that can be reached from nodes of these scopes are swapped.
    pub starting_scopes: Vec<Scope>,
    /// If not empty, only storages that can be reached from these nodes are swapped.
    pub starting_op_names: Vec<String>,
    /// Nodes of these scopes belong to the backward phase, regardless of the graph.
    pub optimizer_scopes: Vec<Scope>,
}

/// The defaults of Table 2.
impl Default for Params {
    fn default() -> Params {
        Params {
            threshold: 2,
            lb: 1,
            ub: 10_000,
            n_tensors: None,
            ctrld_strategy: Strategy::ChainRule,
            fuse_swapins: 0,
            swap_branches: false,
            branch_threshold: 0,
            encode: false,
            incl_scopes: Vec::new(),
            excl_scopes: Vec::new(),
            incl_types: Vec::new(),
            excl_types: Vec::new(),
            starting_scopes: Vec::new(),
            starting_op_names: Vec::new(),
            optimizer_scopes: Vec::new(),
        }
    }
}

/// The swapped storages, the times of their swaps, and why the others are not swapped.
#[derive(Clone, Debug, Default)]
pub struct SwapPlan {
    /// The swaps, in execution order of their swap-outs.
    pub swaps: Vec<Swap>,
    /// `(swap, node)`: the node starts after the swap-out of `swaps[swap]` has completed. Sorted.
    pub releases: Vec<(usize, NodeId)>,
    /// Storages that are not swapped although a forward node produces them, with the reason, in execution order.
    pub kept: Vec<(ValueId, Kept)>,
}

/// One storage that is swapped out and in.
#[derive(Clone, Debug)]
pub struct Swap {
    /// The storage, by the value that is its root.
    pub root: ValueId,
    /// Its size.
    pub bytes: Bytes,
    /// Its encoding around the transfer, if it has one.
    pub encoding: Option<Encoding>,
    /// Its swap-ins, in execution order.
    pub ins: SmallVec<[SwapIn; 1]>,
}

/// The `f` of a swap `f⁻¹ ∘ f` (TFLMS §4.2.1): a Cast from int64 to int32 before the swap-out, and one back after every
/// swap-in.
#[derive(Clone, Debug)]
pub struct Encoding {
    /// Size of the encoded copy.
    pub bytes: Bytes,
    /// The storage is encoded after this node, its last user before the swap.
    pub after: NodeId,
    /// Other swap-outs that the encoding waits for, because it needs their memory. Sorted.
    pub releases: Vec<usize>,
}

/// One swap-in of a storage.
#[derive(Clone, Debug)]
pub struct SwapIn {
    /// The copy starts after this node.
    pub trigger: NodeId,
    /// The reads of the copy: nodes and operand positions, in execution order.
    pub uses: SmallVec<[(NodeId, usize); 1]>,
    /// Other swap-outs that the copy waits for, because it needs their memory. Sorted.
    pub releases: Vec<usize>,
    /// Other swap-outs that the decoding waits for, right before the first use. Sorted.
    pub decode_releases: Vec<usize>,
}

impl Swap {
    /// Bytes of one copy over the link.
    pub fn link_bytes(&self) -> Bytes {
        self.encoding.as_ref().map_or(self.bytes, |e| e.bytes)
    }
}

impl SwapPlan {
    /// Bytes that are copied from the device to the host.
    pub fn bytes_out(&self) -> Bytes {
        self.swaps.iter().map(Swap::link_bytes).sum()
    }

    /// Bytes that are copied from the host to the device.
    pub fn bytes_in(&self) -> Bytes {
        self.swaps.iter().map(|s| Bytes(s.link_bytes().0 * s.ins.len() as u64)).sum()
    }
}

/// Why a storage stays on the device. The text completes "kept `name`: …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is returned to the caller.
    Output,
    /// A subgraph reads it.
    Captured(NodeId),
    /// It is a sequence.
    Sequence,
    /// Its elements are strings, of which a tensor only holds references.
    Strings,
    /// It has no bytes.
    Empty,
    /// Ranges of it are swapped already.
    Ranges,
    /// This view of it also reads a variable, which may have changed when the storage is swapped in.
    Variable(NodeId),
    /// It has this many names; each swap-in would have to repeat the views.
    Views(usize),
    /// A view needs it, besides the viewed value, at every position.
    OfView(NodeId),
    /// All its uses are close to its definition.
    NearUses {
        /// The largest distance, in levels.
        levels: u32,
        /// The distance from which an edge is rewritten.
        threshold: u32,
    },
    /// Only the forward phase uses it, and branches are not swapped.
    ForwardOnly,
    /// No node can trigger its swap-in before the use.
    NoTrigger(NodeId),
    /// It is not in the included scopes or types, or in the excluded ones.
    Excluded,
    /// It cannot be reached from the starting nodes.
    NotReached,
    /// `n_tensors` storages closer to the start are swapped already.
    Beyond(usize),
    /// The plan fits the budget without swapping it.
    NotNeeded,
}

impl Kept {
    /// The reason, in words; names and numbers of the case are at the end, in brackets.
    pub fn describe(&self, graph: &Graph) -> Cow<'static, str> {
        let name = |node: &NodeId| &graph.node(*node).name;
        match self {
            Kept::Output => "it is an output of the graph".into(),
            Kept::Captured(node) => format!("a subgraph reads it (that of `{}`)", name(node)).into(),
            Kept::Sequence => "it is a sequence".into(),
            Kept::Strings => "its elements are strings".into(),
            Kept::OfView(node) => format!("a view needs it wherever it is made (`{}`)", name(node)).into(),
            Kept::Empty => "it has no bytes".into(),
            Kept::Ranges => "it leaves in ranges already".into(),
            Kept::Variable(node) => format!("one of its views looks at a variable (`{}`)", name(node)).into(),
            Kept::Views(n) => format!("too many views would have to be repeated ({n})").into(),
            Kept::NearUses { levels: 1, .. } => "used by the next operator".into(),
            Kept::NearUses { levels, threshold } => {
                format!("used again too soon ({levels} levels on; the threshold is {threshold})").into()
            }
            Kept::ForwardOnly => {
                "only the forward phase uses it; swap-branches=true swaps such tensors, too".into()
            }
            Kept::NoTrigger(node) => {
                format!("no node before its late use could start its return (`{}` uses it)", name(node))
                    .into()
            }
            Kept::Excluded => "excluded by scope or type".into(),
            Kept::NotReached => "not reached from the starting nodes".into(),
            Kept::Beyond(n) => format!("n-tensors allows no more than {}", count(*n, "tensor")).into(),
            Kept::NotNeeded => "the budget holds without".into(),
        }
    }
}

/// The facts about a graph that the decisions use, computed once.
pub struct Analysis<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Its phases, with `optimizer_scopes` applied.
    pub phases: Phases,
    /// For each node, its level γ.
    pub levels: Vec<u32>,
    /// For each node, the highest level that the order has reached when it runs. A node that could run early but runs late has the
    /// depth of its neighbours: distances between uses are counted in depths, because the nodes between them in the order
    /// determine how long a tensor stays in memory.
    pub depths: Vec<u32>,
    /// The tick of the deepest forward node, after which the order goes back. Earlier nodes of any phase trigger nothing, such
    /// as a shape that only gradients need.
    pub turn: u32,
    /// For each node, its tick.
    pub ticks: Vec<u32>,
    /// The nodes that start after each node.
    pub successors: Adjacency,
    /// The nodes that complete before each node starts.
    pub predecessors: Adjacency,
    /// Its storages, their live ranges and the bytes at every tick.
    pub memory: MemoryTimeline,
    reads: Reads,
    /// For each node, its rank in a breadth-first walk from the starting nodes; `u32::MAX` if the walk does not reach it.
    rank: Vec<u32>,
    /// For each storage, the node whose subgraph reads it.
    captured: Vec<Option<NodeId>>,
    /// For each storage, whether it is returned to the caller.
    is_output: Vec<bool>,
    /// For each storage, whether the step writes it.
    is_variable: Vec<bool>,
    /// For each node, whether it is a view of a forward node's result: it moves if all its readers read a copy.
    may_move: Vec<bool>,
    /// For each tick, transient bytes if every view that may move were right before its last reader: its other operands, such as
    /// its shape, wait for it.
    transient: Vec<i64>,
    /// For each tick, the node's workspace: part of the transient bytes.
    workspace: Vec<Bytes>,
    /// For each tick, the transient bytes still in use when the next node starts.
    between: Vec<i64>,
}

/// A storage with more names than these is not swapped: each swap-in repeats every view.
pub const MAX_VIEWS: usize = 256;

impl<'a> Analysis<'a> {
    /// Analyses the graph. `workspace` gives the bytes that a node needs besides its values while it runs.
    pub fn new(graph: &'a Graph, params: &Params, workspace: impl Fn(NodeId) -> Bytes) -> Analysis<'a> {
        let is_optimizer = |node: &Node| params.optimizer_scopes.iter().any(|s| s.contains(&node.name));
        let phases = Phases::of(graph, |node| is_optimizer(node).then_some(Phase::Backward));
        let memory = MemoryTimeline::with_workspace(graph, &workspace);
        let successors = graph.successor_lists();
        let levels = lmsc_ir::levels(graph);
        let turn = turn(graph, &phases, &levels);
        let mut is_output = vec![false; memory.storages.len()];
        for &output in &graph.outputs {
            is_output[memory.storages.storage(output).as_u32() as usize] = true;
        }
        let mut is_variable = vec![false; memory.storages.len()];
        for variable in graph.variables() {
            is_variable[memory.storages.storage(variable).as_u32() as usize] = true;
        }
        let mut analysis = Analysis {
            is_variable,
            may_move: may_move(graph, &phases, &memory.storages),
            transient: memory.transient.iter().map(|b| b.0 as i64).collect(),
            between: Vec::new(),
            workspace: graph.order().iter().map(|&node| workspace(node)).collect(),
            rank: absence::breadth_first(graph, &successors, params),
            is_output,
            captured: absence::captures(graph, &memory.storages),
            graph,
            phases,
            turn,
            depths: depths(graph, &levels),
            levels,
            ticks: graph.ticks(),
            successors,
            predecessors: graph.predecessor_lists(),
            reads: Reads::of(graph, &memory.storages),
            memory,
        };
        analysis.wait_for_views();
        analysis
    }

    fn may_move(&self, node: NodeId) -> bool {
        self.may_move[node.as_u32() as usize]
    }

    /// Counts the other operands of views for as long as the views may need them.
    fn wait_for_views(&mut self) {
        let MemoryTimeline { storages, live, .. } = &self.memory;
        // For each value, the tick of its last reader, directly or through views.
        let mut last = vec![0; self.graph.value_capacity()];
        let mut ends: Vec<u32> = live.iter().map(|range| range.end).collect();
        for &id in self.graph.order().iter().rev() {
            let moves = self.may_move(id);
            let tick = match self.graph.node(id).results.first() {
                Some(&Some(view)) if moves => self.tick(id).max(last[view.as_u32() as usize]),
                _ => self.tick(id),
            };
            for value in self.graph.uses(id) {
                let index = value.as_u32() as usize;
                last[index] = tick.max(last[index]);
                if moves {
                    let end = &mut ends[storages.storage(value).as_u32() as usize];
                    *end = (tick + 1).max(*end);
                }
            }
        }
        let mut leaving = vec![0; self.transient.len() + 1];
        for (id, storage) in storages.iter() {
            let given = self.graph.producer(storage.root).is_none();
            let index = id.as_u32() as usize;
            if !given && !storage.on_host {
                let waiting = live[index].end as usize..ends[index] as usize;
                self.transient[waiting].iter_mut().for_each(|bytes| *bytes += storage.bytes.0 as i64);
                leaving[ends[index] as usize] += storage.bytes.0 as i64;
            }
        }
        let work = self.workspace.iter().map(|bytes| bytes.0 as i64);
        let left = leaving[1..].iter().zip(work).map(|(left, work)| left + work);
        self.between = self.transient.iter().zip(left).map(|(bytes, left)| bytes - left).collect();
    }

    fn level(&self, node: NodeId) -> u32 {
        self.levels[node.as_u32() as usize]
    }

    fn depth(&self, node: NodeId) -> u32 {
        self.depths[node.as_u32() as usize]
    }

    fn tick(&self, node: NodeId) -> u32 {
        self.ticks[node.as_u32() as usize]
    }

    fn reads(&self, storage: StorageId) -> &[(NodeId, usize)] {
        self.reads.storage(storage)
    }
}

fn turn(graph: &Graph, phases: &Phases, levels: &[u32]) -> u32 {
    let forward = graph.order().iter().enumerate().filter(|(_, id)| phases.phase(**id) == Phase::Forward);
    let deepest = forward.max_by_key(|(tick, id)| (levels[id.as_u32() as usize], std::cmp::Reverse(*tick)));
    deepest.map_or(0, |(tick, _)| tick as u32)
}

fn depths(graph: &Graph, levels: &[u32]) -> Vec<u32> {
    let mut depths = vec![0; levels.len()];
    let mut deepest = 0;
    for id in graph.order() {
        let index = id.as_u32() as usize;
        deepest = levels[index].max(deepest);
        depths[index] = deepest;
    }
    depths
}

fn may_move(graph: &Graph, phases: &Phases, storages: &Storages) -> Vec<bool> {
    let is_forward = |node: NodeId| phases.phase(node) == Phase::Forward;
    let of_forward = |value: ValueId| {
        let root = storages.get(storages.storage(value)).root;
        root != value && graph.producer(root).is_some_and(is_forward)
    };
    let mut moves = vec![false; graph.node_capacity()];
    for &id in graph.order() {
        moves[id.as_u32() as usize] = graph.node(id).defines().any(of_forward);
    }
    moves
}

/// For every storage the nodes and operand positions that read its bytes, in execution order, in one contiguous list. A view
/// operator reads none, unless nothing reads the view.
struct Reads {
    /// For each storage, the start of its list; it ends where the next one begins.
    begins: Vec<u32>,
    entries: Vec<(NodeId, usize)>,
}

impl Reads {
    fn of(graph: &Graph, storages: &Storages) -> Reads {
        let mut read = vec![false; graph.value_capacity()];
        for &id in graph.order() {
            graph.node(id).reads().for_each(|v| read[v.as_u32() as usize] = true);
        }
        let mut found: Vec<(StorageId, NodeId, usize)> = Vec::with_capacity(2 * graph.order().len());
        let mut begins = vec![0u32; storages.len() + 1];
        for &id in graph.order() {
            let node = graph.node(id);
            let view = node.results.first().copied().flatten().filter(|v| read[v.as_u32() as usize]);
            let view = view.map(|v| storages.storage(v));
            for (index, operand) in node.operands.iter().enumerate() {
                let Some(value) = *operand else { continue };
                let storage = storages.storage(value);
                let passes_on = index == 0 && view == Some(storage);
                if !passes_on || !node.updates.is_empty() {
                    found.push((storage, id, index));
                    begins[storage.as_u32() as usize + 1] += 1;
                }
            }
        }
        for i in 1..begins.len() {
            begins[i] += begins[i - 1];
        }
        let mut ends = begins.clone();
        let mut entries = vec![(NodeId::from_u32(0), 0); found.len()];
        for (storage, node, index) in found {
            let end = &mut ends[storage.as_u32() as usize];
            entries[*end as usize] = (node, index);
            *end += 1;
        }
        Reads { begins, entries }
    }

    fn storage(&self, storage: StorageId) -> &[(NodeId, usize)] {
        let index = storage.as_u32() as usize;
        &self.entries[self.begins[index] as usize..self.begins[index + 1] as usize]
    }
}

/// The plan for the parameters, with release edges that keep the peak as low as the swaps allow, or below `budget` if that is
/// higher.
///
/// # Source
/// TFLMS §4 and §5.1.
pub fn plan(analysis: &Analysis<'_>, params: &Params, budget: Option<Bytes>) -> SwapPlan {
    let candidates = absence::candidates(analysis, params, &mut trigger::Search::new(analysis, params));
    let chosen = vec![true; candidates.found.len()];
    release::finish(analysis, &candidates, &chosen, params.encode, budget)
}
