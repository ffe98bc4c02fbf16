//! The graph that the agent sees: operations, the actions that they stand for, and time lags (DQN §4.2, §4.4, §4.9).

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Problem, TensorId, Uses, Window};

use lmsc_planners::ours::remat::Rematerializer;
use lmsc_planners::trace::{Operation, operations};

/// The kind of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActionKind {
    /// The tensor is copied to the host, and swapped in before its next use (H⁰).
    Offload,
    /// The tensor is dropped, and recomputed before its next use (H¹).
    Remove,
}

/// The effect of choosing a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeAction {
    /// The kind of the action.
    pub kind: ActionKind,
    /// The tensor, and the uses between which it is absent.
    pub window: Window,
}

/// A node: the start of the step, which stands for doing nothing, or an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationNode {
    /// Its operation; none at the start of the step.
    pub operation: Option<Operation>,
    /// Its time without a memory limit, in nanoseconds.
    pub nanos: u64,
    /// The time of copying the variable to the host and back.
    pub transfer_nanos: u64,
    /// The time of the operator that computes the variable, if it may be recomputed.
    pub recompute_nanos: u64,
    /// The time until the variable is used again, in this step or the next.
    pub revisit_nanos: u64,
    /// The action that it stands for.
    pub action: Option<NodeAction>,
}

/// An edge between nodes that follow one another, in time or on one variable, and the time lag between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// The earlier node.
    pub from: u32,
    /// The later one.
    pub to: u32,
    /// The time between them.
    pub nanos: u64,
}

/// A window with the nodes that stand for its actions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) window: Window,
    /// The node from which on the window can be chosen: the last access before it, or the start of the step.
    pub(super) opens: u32,
    /// By [`ActionKind`], the node.
    pub(super) nodes: [Option<u32>; 2],
}

/// Nodes, edges and candidates of a problem.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    pub(super) all: Vec<OperationNode>,
    pub(super) lags: Vec<Lag>,
    /// By tensor, then by tick.
    pub(super) candidates: Vec<Candidate>,
    /// By tick, and once more for the end of the step, its first node.
    pub(super) first_of: Vec<u32>,
}

impl Nodes {
    /// The nodes of the problem; with candidates for removal if operators may be recomputed.
    pub(super) fn of(problem: &Problem, remat: &Rematerializer, recompute: bool) -> Nodes {
        let uses = problem.uses();
        let mut all = vec![OperationNode::default()];
        let mut of_variable: Vec<Vec<u32>> = Vec::new();
        let mut first_of = Vec::with_capacity(problem.ops.len() + 1);
        for operation in operations(problem) {
            while first_of.len() <= operation.tick as usize {
                first_of.push(all.len() as u32);
            }
            let variable = operation.variable as usize;
            of_variable.resize(of_variable.len().max(variable + 1), Vec::new());
            of_variable[variable].push(all.len() as u32);
            all.push(OperationNode {
                operation: Some(operation),
                nanos: operation.nanos,
                ..OperationNode::default()
            });
        }
        first_of.resize(problem.ops.len() + 1, all.len() as u32);
        let mut nodes = Nodes { lags: lags(&all, &of_variable), all, candidates: Vec::new(), first_of };
        nodes.measure(problem, remat, &uses);
        nodes.assign(problem, remat, &uses, &of_variable, recompute);
        nodes
    }

    fn measure(&mut self, problem: &Problem, remat: &Rematerializer, uses: &Uses) {
        let mut begins: Vec<u64> = vec![0];
        begins.extend(problem.ops.iter().scan(0, |now, op| {
            *now += op.nanos;
            Some(*now)
        }));
        let step = problem.compute_nanos();
        let mut again: SecondaryMap<TensorId, u64> = SecondaryMap::new();
        for window in remat.windows() {
            let producer = remat.producer(window.tensor);
            again[window.tensor] = producer.map_or(0, |tick| problem.ops[tick as usize].nanos);
        }
        for node in &mut self.all {
            let Some(operation) = node.operation else { continue };
            let tensor = TensorId::from_u32(operation.variable);
            if problem.tensors.is_valid(tensor) {
                let bytes = operation.bytes;
                let uses = uses.of(tensor);
                let next = uses.get(uses.partition_point(|&use_| use_ <= operation.tick));
                let first = uses.first().copied().unwrap_or(0);
                node.transfer_nanos = problem.link.out_nanos(bytes) + problem.link.in_nanos(bytes);
                node.recompute_nanos = again[tensor];
                let next = next.map_or(begins[first as usize] + step, |&next| begins[next as usize]);
                node.revisit_nanos = next.saturating_sub(operation.nanos);
            }
        }
    }

    /// Assigns to each window of each tensor the nodes that stand for offloading and removing it.
    ///
    /// A tensor is offloaded from its last access before the window ("we can begin to copy X₀ into CPU memory while reading
    /// X₀", §4.9), and if there is none, from the nearest of its nodes that is free. It is removed from the nearest one that
    /// is then free: no node stands for two actions. If none is left, it is not removed.
    fn assign(
        &mut self,
        problem: &Problem,
        remat: &Rematerializer,
        uses: &Uses,
        of_variable: &[Vec<u32>],
        recompute: bool,
    ) {
        let mut removable = if recompute { remat.windows() } else { Vec::new() };
        removable.retain(|window| !problem.tensors[window.tensor].kept);
        let offloadable = problem.windows(uses);
        let mut windows: Vec<Window> = offloadable.iter().chain(&removable).copied().collect();
        windows.sort_unstable();
        windows.dedup();
        let is_among = |window: &Window, sorted: &[Window]| sorted.binary_search(window).is_ok();
        let sorted = |mut windows: Vec<Window>| {
            windows.sort_unstable();
            windows
        };
        let (offloadable, removable) = (sorted(offloadable), sorted(removable));
        for group in windows.chunk_by(|one, other| one.tensor == other.tensor) {
            let own: &[u32] = of_variable.get(group[0].tensor.as_u32() as usize).map_or(&[], |own| own);
            let last_before = |window: &Window| {
                own.iter().copied().rfind(|&node| {
                    self.all[node as usize].operation.is_some_and(|o| o.is_access() && o.tick < window.from)
                })
            };
            let mut candidates: Vec<Candidate> = group
                .iter()
                .map(|window| {
                    let last = last_before(window);
                    let offload = last.filter(|_| is_among(window, &offloadable));
                    Candidate { window: *window, opens: last.unwrap_or(0), nodes: [offload, None] }
                })
                .collect();
            let mut free: Vec<u32> = own.to_vec();
            free.retain(|node| candidates.iter().all(|c| c.nodes[0] != Some(*node)));
            let mut nearest = |node: u32| -> Option<u32> {
                let at = (0..free.len()).min_by_key(|&at| (free[at].abs_diff(node), at))?;
                Some(free.remove(at))
            };
            for candidate in &mut candidates {
                if candidate.nodes[0].is_none() && is_among(&candidate.window, &offloadable) {
                    candidate.nodes[0] = nearest(candidate.opens);
                }
            }
            for candidate in &mut candidates {
                if is_among(&candidate.window, &removable) {
                    candidate.nodes[1] = nearest(candidate.opens);
                }
            }
            for candidate in &candidates {
                for (kind, node) in [ActionKind::Offload, ActionKind::Remove].into_iter().zip(candidate.nodes)
                {
                    if let Some(node) = node {
                        self.all[node as usize].action = Some(NodeAction { kind, window: candidate.window });
                    }
                }
            }
            self.candidates.append(&mut candidates);
        }
    }
}

/// Edges between nodes that are adjacent in time, and between those of one variable; each pair once.
fn lags(all: &[OperationNode], of_variable: &[Vec<u32>]) -> Vec<Lag> {
    let in_time = (1..all.len() as u32).map(|to| (to - 1, to));
    let of_one = of_variable.iter().flat_map(|own| own.windows(2).map(|pair| (pair[0], pair[1])));
    let mut pairs: Vec<(u32, u32)> = in_time.chain(of_one).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let lag =
        |(from, to): (u32, u32)| Lag { from, to, nanos: all[to as usize].nanos - all[from as usize].nanos };
    pairs.into_iter().map(lag).collect()
}
