//! Control operations for swap-ins (TFLMS §4.3).

use std::collections::HashSet;

use lmsc_ir::{NodeId, Phase, StorageId};

use super::{Analysis, Params, Strategy};

/// How many nodes the search for a path looks at before it gives up. A trigger is a matter of quality: any node
/// below the target's level keeps the graph acyclic.
const MAX_SEARCHED: usize = 1000;

/// For what a trigger is wanted.
pub(super) struct Wanted {
    /// The storage that comes back.
    pub(super) storage: StorageId,
    /// The node that produced it.
    pub(super) source: NodeId,
    /// The node that reads it.
    pub(super) target: NodeId,
}

/// The node that triggers the return of what `source` produced for `target`, or `None` where the bounds leave no
/// candidate.
///
/// A view of the storage is no candidate: it will read what comes back.
pub(super) fn find(analysis: &Analysis<'_>, params: &Params, wanted: &Wanted) -> Option<NodeId> {
    let direct = || direct_order(analysis, params, wanted);
    match params.ctrld_strategy {
        Strategy::DirectOrder => direct(),
        Strategy::ChainRule => chain_rule(analysis, params, wanted).or_else(direct),
    }
}

impl Wanted {
    fn is_view(&self, analysis: &Analysis<'_>, node: NodeId) -> bool {
        let storages = &analysis.memory.storages;
        analysis.graph.node(node).defines().any(|v| storages.storage(v) == self.storage)
    }
}

/// Algorithm 1: the nodes `lb` to `ub` levels before the target, nearest first.
///
/// The printed test `k ≤ l` with `l = max(γ(f₂)−σᵤ+1, γ(f₁))` makes the upper bound off by two: with σₗ = σᵤ = 1
/// nothing is ever found. Here levels `γ(f₂)−σᵤ … γ(f₂)−σₗ` are searched as the text says. A node of any level
/// has a predecessor of the level before, so the first level searched has a candidate that reaches the target;
/// following predecessors finds one without looking at the rest of the level. Where views are in the way, the
/// walk passes beside them and may end some levels farther back.
fn direct_order(analysis: &Analysis<'_>, params: &Params, wanted: &Wanted) -> Option<NodeId> {
    let last = analysis.level(wanted.target).checked_sub(params.lb)?;
    let mut node = wanted.target;
    while node == wanted.target || analysis.level(node) > last {
        let candidates = analysis.graph.predecessors(node).filter(|&p| !wanted.is_view(analysis, p));
        node = candidates.max_by_key(|&p| (analysis.level(p), analysis.tick(p)))?;
    }
    let distance = analysis.level(wanted.target) - analysis.level(node);
    (analysis.level(node) > analysis.level(wanted.source) && distance <= params.ub).then_some(node)
}

/// Algorithm 2: down the forward phase from the source, breadth first; from a node between `lb` and `ub` levels
/// down, across to the backward nodes that read its results and lead to the target.
///
/// Two misprints are mended: `GET` of line 6 removes the node it returns (or the loop never ends), and line 11
/// asks for reachability, as its comment says, not for an edge.
fn chain_rule(analysis: &Analysis<'_>, params: &Params, wanted: &Wanted) -> Option<NodeId> {
    let &Wanted { source, target, .. } = wanted;
    let between =
        |f: NodeId| analysis.level(source) < analysis.level(f) && analysis.level(f) < analysis.level(target);
    let backward = |f: NodeId| analysis.phases.phase(f) == Phase::Backward;
    let mut seen = HashSet::from([source]);
    let mut current = vec![source];
    let mut depth = 0;
    while !current.is_empty() && depth <= params.ub && params.lb <= params.ub && seen.len() < MAX_SEARCHED {
        let mut next = Vec::new();
        for &s in &current {
            let outgoing = &analysis.successors[s.as_u32() as usize];
            if depth >= params.lb {
                let found = outgoing.iter().rev().copied().find(|&f| {
                    f != target
                        && backward(f)
                        && between(f)
                        && !wanted.is_view(analysis, f)
                        && reaches(analysis, f, target)
                });
                if found.is_some() {
                    return found;
                }
            }
            let forward = outgoing.iter().copied().filter(|&f| analysis.phases.phase(f) == Phase::Forward);
            next.extend(forward.filter(|&f| seen.insert(f)));
        }
        current = next;
        depth += 1;
    }
    None
}

/// Whether a path leads from one node to the other; `false` as well where the search takes too long.
fn reaches(analysis: &Analysis<'_>, from: NodeId, to: NodeId) -> bool {
    let mut seen = HashSet::new();
    let mut stack = vec![to];
    while let Some(node) = stack.pop() {
        if node == from {
            return true;
        }
        let above = analysis.graph.predecessors(node).filter(|&p| analysis.level(p) >= analysis.level(from));
        stack.extend(above.filter(|&p| seen.insert(p)));
        if seen.len() > MAX_SEARCHED {
            return false;
        }
    }
    false
}
