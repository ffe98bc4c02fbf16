//! Control operations for swap-ins (TFLMS §4.3).

use foldhash::{HashMap, HashMapExt};
use lmsc_ir::{NodeId, Phase, StorageId, ValueId};

use super::{Analysis, Params, Strategy};

/// Maximum number of nodes that a search visits. A trigger only affects quality: any node below the target's level keeps the
/// graph acyclic.
const MAX_SEARCHED: usize = 200;

/// Maximum number of edges that the searches with one set of bounds visit together: limits the time for adversarial graphs,
/// far above the needs of networks' graphs.
const MAX_EDGES: usize = 1 << 28;

/// The purpose of a trigger.
pub(super) struct Wanted {
    /// The storage that is swapped in.
    pub(super) storage: StorageId,
    /// The node that produced it.
    pub(super) source: NodeId,
    /// The node that reads it.
    pub(super) target: NodeId,
}

/// Finds triggers; keeps the marks of its walks and its results between searches.
pub(super) struct Search<'a, 'g> {
    analysis: &'a Analysis<'g>,
    bounds: Bounds,
    /// For each storage and target, the result within the bounds. Parameters that differ otherwise reuse it.
    found: HashMap<(StorageId, NodeId), Option<NodeId>>,
    /// The walk that visited a node last. Two walks are active at once: down from the source, and back from the target.
    down: Marks,
    back: Marks,
    /// Nodes that the walk down has reached, level by level.
    queue: Vec<NodeId>,
    /// Nodes that the walk back has not visited yet.
    stack: Vec<NodeId>,
    /// The rest of [`MAX_EDGES`].
    edges: usize,
}

/// The parameters that a search depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bounds {
    strategy: Strategy,
    lb: u32,
    ub: u32,
}

impl Bounds {
    fn of(params: &Params) -> Bounds {
        Bounds { strategy: params.ctrld_strategy, lb: params.lb, ub: params.ub }
    }
}

struct Marks {
    seen: Vec<u32>,
    walk: u32,
    count: usize,
}

impl Marks {
    fn new(capacity: usize) -> Marks {
        Marks { seen: vec![0; capacity], walk: 0, count: 0 }
    }

    fn restart(&mut self) {
        self.walk += 1;
        self.count = 0;
    }

    /// Whether the node is new to this walk.
    fn mark(&mut self, node: NodeId) -> bool {
        let new = std::mem::replace(&mut self.seen[node.as_u32() as usize], self.walk) != self.walk;
        self.count += usize::from(new);
        new
    }
}

impl<'a, 'g> Search<'a, 'g> {
    pub(super) fn new(analysis: &'a Analysis<'g>, params: &Params) -> Search<'a, 'g> {
        let marks = || Marks::new(analysis.graph.node_capacity());
        Search {
            analysis,
            bounds: Bounds::of(params),
            found: HashMap::new(),
            down: marks(),
            back: marks(),
            queue: Vec::new(),
            stack: Vec::new(),
            edges: MAX_EDGES,
        }
    }

    /// Uses these parameters from now on.
    pub(super) fn set_params(&mut self, params: &Params) {
        let bounds = Bounds::of(params);
        if bounds != self.bounds {
            self.bounds = bounds;
            self.found.clear();
            self.edges = MAX_EDGES;
        }
    }

    /// The node that triggers the swap-in of the result of `source` for `target`, or `None` if the bounds leave no candidate.
    ///
    /// A view of the storage is no candidate: it will read the swapped-in copy. Nor is a view of another storage that may be
    /// swapped: it may move behind a swap-in of that one, which in turn may wait for a view of this one.
    pub(super) fn find(&mut self, wanted: &Wanted) -> Option<NodeId> {
        let key = (wanted.storage, wanted.target);
        if let Some(&found) = self.found.get(&key) {
            return found;
        }
        let found = match self.bounds.strategy {
            Strategy::DirectOrder => self.direct_order(wanted),
            Strategy::ChainRule => self.chain_rule(wanted).or_else(|| self.direct_order(wanted)),
        };
        self.found.insert(key, found);
        found
    }

    /// The list, if the limit allows visiting all of it.
    fn spend<'l>(&mut self, list: &'l [NodeId]) -> Option<&'l [NodeId]> {
        self.edges = self.edges.checked_sub(list.len())?;
        Some(list)
    }

    fn is_view(&self, wanted: &Wanted, node: NodeId) -> bool {
        let storages = &self.analysis.memory.storages;
        let node = self.analysis.graph.node(node);
        let storage = |v: Option<&Option<ValueId>>| v.copied().flatten().map(|v| storages.storage(v));
        let result = storage(node.results.first());
        let view = result.is_some() && node.updates.is_empty() && result == storage(node.operands.first());
        view || node.defines().any(|v| storages.storage(v) == wanted.storage)
    }

    /// The node that runs `lb` ticks before the target, or the nearest before it, but after tick `after`.
    ///
    /// The paper does not use an order. If neither of its strategies finds a node between the early uses and the target, as
    /// for a mask that is computed late in the order though it could be computed at once, the order has one.
    pub(super) fn in_order(&self, wanted: &Wanted, after: u32) -> Option<NodeId> {
        let (analysis, lb) = (self.analysis, self.bounds.lb.max(1));
        if lb > self.bounds.ub {
            return None;
        }
        let latest = analysis.tick(wanted.target).checked_sub(lb)?;
        let fits = |&id: &NodeId| {
            let copies = analysis.graph.node(id).op.is_swap();
            !copies && !analysis.may_move(id) && !self.is_view(wanted, id)
        };
        let between = analysis.graph.order().get(after as usize + 1..=latest as usize)?;
        between.iter().rev().take(MAX_SEARCHED).copied().find(fits)
    }

    /// Algorithm 1: the nodes `lb` to `ub` levels before the target, nearest first.
    ///
    /// The printed test `k ≤ l` with `l = max(γ(f₂)−σᵤ+1, γ(f₁))` makes the upper bound off by two: with σₗ = σᵤ = 1 nothing
    /// is ever found. Here levels `γ(f₂)−σᵤ … γ(f₂)−σₗ` are searched, as the text says. A node of any level has a predecessor
    /// of the level before, so the first level searched has a candidate that reaches the target; following predecessors finds
    /// one without visiting the rest of the level. If views are in the way, the walk goes around those of the storage and
    /// through others, and may end some levels farther back.
    fn direct_order(&mut self, wanted: &Wanted) -> Option<NodeId> {
        let analysis = self.analysis;
        let last = analysis.level(wanted.target).checked_sub(self.bounds.lb)?;
        let mut node = wanted.target;
        while node == wanted.target || analysis.level(node) > last || analysis.may_move(node) {
            let before = self.spend(analysis.predecessors.of(node))?.iter().copied();
            let candidates = before.filter(|&p| !self.is_view(wanted, p));
            node = candidates.max_by_key(|&p| (analysis.level(p), analysis.tick(p)))?;
        }
        let distance = analysis.level(wanted.target) - analysis.level(node);
        let between = analysis.level(node) > analysis.level(wanted.source);
        (between && distance <= self.bounds.ub).then_some(node)
    }

    /// Algorithm 2: down the forward phase from the source, breadth first; from a node between `lb` and `ub`
    /// levels down, across to the backward nodes that read its results and lead to the target.
    ///
    /// Two misprints are corrected: `GET` of line 6 removes the node it returns (or the loop never ends), and line 11 tests
    /// reachability, as its comment says, not an edge.
    fn chain_rule(&mut self, wanted: &Wanted) -> Option<NodeId> {
        let analysis = self.analysis;
        let &Wanted { source, target, .. } = wanted;
        let (low, high) = (analysis.level(source), analysis.level(target));
        let phase = |f: NodeId| analysis.phases.phase(f);
        self.down.restart();
        self.down.mark(source);
        self.queue.clear();
        self.queue.push(source);
        let mut current = 0..1;
        let mut depth = 0;
        while !current.is_empty() && depth <= self.bounds.ub && self.down.count < MAX_SEARCHED {
            for i in current.clone() {
                let outgoing = self.spend(analysis.successors.of(self.queue[i]))?;
                if depth >= self.bounds.lb {
                    let fits = |f: NodeId| {
                        let level = analysis.level(f);
                        phase(f) == Phase::Backward
                            && low < level
                            && level < high
                            && analysis.tick(f) > analysis.turn
                    };
                    let fitting = outgoing.iter().rev().copied().filter(|&f| fits(f));
                    for f in fitting {
                        if !self.is_view(wanted, f) && !analysis.may_move(f) && self.reaches(f, target) {
                            return Some(f);
                        }
                    }
                }
                let forward = outgoing.iter().copied().filter(|&f| phase(f) == Phase::Forward);
                self.queue.extend(forward.filter(|&f| self.down.mark(f)));
            }
            current = current.end..self.queue.len();
            depth += 1;
        }
        None
    }

    /// Whether a path leads from one node to the other; also `false` if the search takes too long.
    fn reaches(&mut self, from: NodeId, to: NodeId) -> bool {
        let analysis = self.analysis;
        let lowest = analysis.level(from);
        self.back.restart();
        self.stack.clear();
        self.stack.push(to);
        while let Some(node) = self.stack.pop() {
            if node == from {
                return true;
            }
            let Some(before) = self.spend(analysis.predecessors.of(node)) else { return false };
            for &p in before {
                if analysis.level(p) >= lowest && self.back.mark(p) {
                    self.stack.push(p);
                }
            }
            if self.back.count > MAX_SEARCHED {
                return false;
            }
        }
        false
    }
}
