//! Parameters for a budget (TFLMS §5.2), found by simulating memory.

use std::fmt;

use lmsc_ir::{Bytes, Graph, NodeId, ValueId};

use super::absence::{Candidates, candidates};
use super::release::{finish, floor, ideal};
use super::trigger::Search;
use super::{Analysis, Params, Strategy, SwapPlan};
use crate::segment_tree::SegmentTree;

/// A plan within the budget and the parameters that led to it.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The plan.
    pub plan: SwapPlan,
    /// The parameters; `n_tensors` is the number of swaps.
    pub params: Params,
}

/// Why no parameters of this method reach the budget.
#[derive(Clone, Debug)]
pub struct DoesNotFit {
    /// What was asked for.
    pub budget: Bytes,
    /// The smallest budget that the method reaches.
    pub smallest: Bytes,
    /// The node during which those bytes are needed; none in a graph without nodes.
    pub node: Option<NodeId>,
    /// Inputs and initializers, there throughout.
    pub resident: Bytes,
    /// What the node reads, beyond resident storages; each storage once.
    pub operands: Vec<(ValueId, Bytes)>,
    /// What the node defines; each storage once.
    pub results: Vec<(ValueId, Bytes)>,
    /// Scratch memory of the operator.
    pub workspace: Bytes,
    /// What else is live while the node runs.
    pub others: Bytes,
}

impl DoesNotFit {
    /// The refusal, in words.
    pub fn describe(&self, graph: &Graph) -> String {
        let node = match self.node.map(|node| graph.node(node)) {
            Some(node) => format!("`{}` ({})", node.name, node.op),
            None => "what is there throughout".to_owned(),
        };
        let list = |values: &[(ValueId, Bytes)]| {
            let total: Bytes = values.iter().map(|(_, b)| *b).sum();
            let mut text = format!("{total}");
            for (i, (value, bytes)) in values.iter().take(4).enumerate() {
                text +=
                    &format!("{}`{}` {bytes}", if i == 0 { " (" } else { ", " }, graph.value(*value).name);
            }
            match values.len() {
                0 => text,
                n if n > 4 => text + ", …)",
                _ => text + ")",
            }
        };
        format!(
            "does not fit {}: {node} needs {} at once\n  \
             resident (inputs, parameters, state): {}\n  \
             its operands: {}\n  \
             its results: {}\n  \
             its workspace: {}\n  \
             live beside it: {}\n\
             The smallest budget that swapping whole tensors reaches is {} ({} bytes).",
            self.budget,
            self.smallest,
            self.resident,
            list(&self.operands),
            list(&self.results),
            self.workspace,
            self.others,
            self.smallest,
            self.smallest.0,
        )
    }
}

impl fmt::Display for DoesNotFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "does not fit {}; the smallest budget that swapping whole tensors reaches is {}",
            self.budget, self.smallest
        )
    }
}

/// The plan that keeps the peak within the budget and sends the fewest bytes over the link, among those that the
/// parameters of TFLMS can express.
///
/// §5.2 begins with all tensors and the latest swap-ins (`lb` = 1) and takes tensors away while the step still
/// runs; here every take is simulated. Both strategies are tried, without and with branches, and fused swap-ins
/// where they save bytes; last, `lb` is raised as far as the budget allows with the same bytes, so that copies
/// have time to finish. What `base` says of scopes, types, starting nodes and α holds throughout.
///
/// # Errors
/// [`DoesNotFit`] with the node that sets the floor and the smallest budget that this function accepts.
pub fn tune(analysis: &Analysis<'_>, base: &Params, budget: Bytes) -> Result<Tuned, Box<DoesNotFit>> {
    // No graph has as many bytes (I5), and half of the numbers are none here.
    let limit = budget.0.min(1 << 62) as i64 - analysis.memory.resident.0 as i64;
    let search = &mut Search::new(analysis, base);
    if analysis.memory.transient_peak().0 as i64 <= limit {
        let all = candidates(analysis, base, search);
        let nothing = vec![false; all.found.len()];
        return Ok(Tuned { plan: finish(analysis, &all, &nothing, Some(budget)), params: base.clone() });
    }
    let mut best: Option<Attempt> = None;
    let mut lowest: Option<(i64, NodeId)> = None;
    for (ctrld_strategy, swap_branches) in [
        (Strategy::ChainRule, false),
        (Strategy::DirectOrder, false),
        (Strategy::ChainRule, true),
        (Strategy::DirectOrder, true),
    ] {
        let good = best.as_ref().is_some_and(|b| swap_branches || is_least(analysis, limit, b.bytes));
        if good {
            break;
        }
        let params =
            Params { ctrld_strategy, swap_branches: swap_branches || base.swap_branches, ..base.clone() };
        let attempt = Attempt::new(analysis, params, search, limit);
        if let Some((node, bytes)) = floor(analysis, &attempt.candidates)
            && lowest.is_none_or(|(other, _)| bytes < other)
        {
            lowest = Some((bytes, node));
        }
        best = Attempt::better(best, attempt);
    }
    let Some(mut best) = best else {
        let (bytes, node) = lowest.map_or((0, None), |(bytes, node)| (bytes, Some(node)));
        return Err(Box::new(does_not_fit(analysis, budget, node, bytes)));
    };
    if best.returns_twice() {
        for fuse_swapins in [4, 16, 64] {
            let params = Params { fuse_swapins, ..best.params.clone() };
            let fused = Attempt::new(analysis, params, search, limit);
            best = Attempt::better(Some(best), fused).expect("one of them fits");
        }
    }
    for lb in [4, 16].into_iter().filter(|&lb| lb > base.lb) {
        let attempt = Attempt::new(analysis, Params { lb, ..best.params.clone() }, search, limit);
        if attempt.bytes.is_none_or(|bytes| Some(bytes) > best.bytes) {
            break;
        }
        best = attempt;
    }
    let plan = finish(analysis, &best.candidates, &best.chosen, Some(budget));
    let params = Params { n_tensors: Some(plan.swaps.len()), ..best.params };
    Ok(Tuned { plan, params })
}

/// Whether these bytes over the link are the fewest, or as good as: what is over the limit at the peak crosses it
/// twice, whatever is chosen.
fn is_least(analysis: &Analysis<'_>, limit: i64, bytes: Option<u64>) -> bool {
    let over = (analysis.memory.transient_peak().0 as i64).saturating_sub(limit).max(0) as u64;
    let least = over.saturating_mul(2);
    bytes.is_some_and(|bytes| bytes <= least.saturating_add(least / 50))
}

/// What one set of parameters comes to.
struct Attempt {
    params: Params,
    candidates: Candidates,
    chosen: Vec<bool>,
    /// Bytes over the link, both ways; `None` where the budget is exceeded.
    bytes: Option<u64>,
}

impl Attempt {
    fn new(analysis: &Analysis<'_>, params: Params, search: &mut Search<'_, '_>, limit: i64) -> Attempt {
        let candidates = candidates(analysis, &params, search);
        let pruned = |mut selection: Selection| {
            selection.prune(&candidates, limit);
            (selection.bytes(&candidates, limit), selection.chosen)
        };
        let (mut bytes, mut chosen) = pruned(Selection::eager(analysis, &candidates, limit));
        if !is_least(analysis, limit, bytes) {
            let other = pruned(Selection::all(analysis, &candidates));
            if other.0.is_some_and(|other| bytes.is_none_or(|bytes| other < bytes)) {
                (bytes, chosen) = other;
            }
        }
        Attempt { params, candidates, chosen, bytes }
    }

    /// Whether any storage comes back more than once, so that fusing swap-ins can save bytes.
    fn returns_twice(&self) -> bool {
        self.candidates.found.iter().zip(&self.chosen).any(|(c, chosen)| *chosen && c.ins.len() > 1)
    }

    /// The one that fits with fewer bytes; the first where they are equal; neither where none fits.
    fn better(first: Option<Attempt>, second: Attempt) -> Option<Attempt> {
        let cost = |a: &Attempt| a.bytes.unwrap_or(u64::MAX);
        match first {
            Some(first) if cost(&first) <= cost(&second) => Some(first),
            first => second.bytes.is_some().then_some(second).or(first),
        }
    }
}

/// A choice of candidates and the bytes that remain on the device with it.
struct Selection {
    chosen: Vec<bool>,
    transient: SegmentTree,
}

impl Selection {
    /// In the order of `n_tensors`, what covers a tick that is still over the limit.
    fn eager(analysis: &Analysis<'_>, candidates: &Candidates, limit: i64) -> Selection {
        let bytes = analysis.transient.iter().copied();
        let mut selection =
            Selection { chosen: vec![false; candidates.found.len()], transient: SegmentTree::new(bytes) };
        for (index, candidate) in candidates.found.iter().enumerate() {
            let helps = candidate.away.iter().any(|range| selection.transient.exceeds(range.clone(), limit));
            if helps {
                selection.set(candidates, index, true);
            }
        }
        selection
    }

    fn all(analysis: &Analysis<'_>, candidates: &Candidates) -> Selection {
        let bytes = ideal(analysis, candidates.found.iter());
        Selection {
            chosen: vec![true; candidates.found.len()],
            transient: SegmentTree::new(bytes.into_iter()),
        }
    }

    /// Takes away what the limit holds without, the most expensive first.
    fn prune(&mut self, candidates: &Candidates, limit: i64) {
        let mut by_cost: Vec<usize> = (0..self.chosen.len()).filter(|&i| self.chosen[i]).collect();
        by_cost.sort_by_key(|&i| std::cmp::Reverse((cost(&candidates.found[i]), i)));
        for index in by_cost {
            let candidate = &candidates.found[index];
            let room = limit - candidate.bytes.0 as i64;
            if !candidate.away.iter().any(|range| self.transient.exceeds(range.clone(), room)) {
                self.set(candidates, index, false);
            }
        }
    }

    fn set(&mut self, candidates: &Candidates, index: usize, chosen: bool) {
        let candidate = &candidates.found[index];
        let sign = if chosen { -1 } else { 1 };
        for range in &candidate.away {
            self.transient.add(range.clone(), sign * candidate.bytes.0 as i64);
        }
        self.chosen[index] = chosen;
    }

    fn bytes(&self, candidates: &Candidates, limit: i64) -> Option<u64> {
        let chosen = candidates.found.iter().zip(&self.chosen).filter(|(_, c)| **c);
        (self.transient.max_of_all().max(0) <= limit)
            .then(|| chosen.fold(0, |sum, (candidate, _)| cost(candidate).saturating_add(sum)))
    }
}

/// Bytes over the link, both ways.
fn cost(candidate: &super::absence::Candidate) -> u64 {
    candidate.bytes.0.saturating_mul(1 + candidate.ins.len() as u64)
}

fn does_not_fit(analysis: &Analysis<'_>, budget: Bytes, node: Option<NodeId>, transient: i64) -> DoesNotFit {
    let graph = analysis.graph;
    let storages = &analysis.memory.storages;
    let mut seen = std::collections::HashSet::new();
    let mut list = |values: &mut dyn Iterator<Item = ValueId>| {
        let mut listed = Vec::new();
        for value in values {
            let storage = storages.storage(value);
            let root = storages.get(storage).root;
            if graph.producer(root).is_some() && !storages.get(storage).on_host && seen.insert(storage) {
                listed.push((value, storages.get(storage).bytes));
            }
        }
        listed
    };
    let operands = list(&mut node.into_iter().flat_map(|n| graph.node(n).reads()));
    let results = list(&mut node.into_iter().flat_map(|n| graph.node(n).defines()));
    let own: Bytes = operands.iter().chain(&results).map(|(_, b)| *b).sum();
    let transient = Bytes(transient.max(0) as u64);
    DoesNotFit {
        budget,
        smallest: analysis.memory.resident + transient,
        node,
        resident: analysis.memory.resident,
        operands,
        results,
        workspace: Bytes::ZERO,
        others: transient.saturating_sub(own),
    }
}
