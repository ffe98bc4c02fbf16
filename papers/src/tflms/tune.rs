//! Parameters for a budget (TFLMS §5.2), found by simulating memory.

use lmsc_ir::{Bytes, NodeId};
use lmsc_schedule::segment_tree::SegmentTree;

use super::absence::{Candidate, Candidates, candidates};
use super::moments::ideal;
use super::release::{finish, floor};
use super::trigger::Search;
use super::{Analysis, Params, Strategy, SwapPlan, encode};
use lmsc_plan::Refusal;

/// A plan within the budget and the parameters that led to it.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The plan.
    pub plan: SwapPlan,
    /// The parameters; `n_tensors` is the number of swaps.
    pub params: Params,
}

/// The plan that keeps the peak within the budget and copies the fewest bytes over the link, among those that the parameters
/// of TFLMS can express.
///
/// §5.2 begins with all tensors and the latest swap-ins (`lb` = 1) and removes tensors while the step still runs; here every
/// removal is simulated. Both strategies are tried, without and with branches, and fused swap-ins if they save bytes; last,
/// `lb` is raised as far as the budget allows with the same bytes, so that copies have time to finish. The scopes, types,
/// starting nodes and α of `base` always apply. With encoding, this is done twice, with and without regard to it, and the
/// result without is then encoded: so it never costs more bytes than plain copies.
///
/// # Errors
/// [`Refusal`] with the node that sets the floor and the smallest budget that this function accepts.
pub fn tune(analysis: &Analysis<'_>, base: &Params, budget: Bytes) -> Result<Tuned, Box<Refusal>> {
    // No graph has this many bytes (I5), and half of the numbers are none here.
    let limit = budget.0.min(1 << 62) as i64 - analysis.memory.resident.0 as i64;
    let triggers = &mut Search::new(analysis, base);
    if analysis.memory.transient_peak().0 as i64 <= limit {
        let all = candidates(analysis, base, triggers);
        let nothing = vec![false; all.found.len()];
        let plan = finish(analysis, &all, &nothing, base.encode, Some(budget));
        return Ok(Tuned { plan, params: base.clone() });
    }
    let plain = search(analysis, &Params { encode: false, ..base.clone() }, triggers, limit);
    let mut best = plain.map_err(|lowest| Box::new(refusal(analysis, budget, lowest)))?;
    if base.encode {
        best.params.encode = true;
        best.bytes = Some(link_bytes(analysis, &best.candidates, &best.chosen, true, limit));
        best = match search(analysis, base, triggers, limit) {
            Ok(aware) => best.or(aware),
            Err(_) => best,
        };
    }
    let plan = finish(analysis, &best.candidates, &best.chosen, best.params.encode, Some(budget));
    let params = Params { n_tensors: Some(plan.swaps.len()), ..best.params };
    Ok(Tuned { plan, params })
}

/// The best of the sets of parameters within the limit, or the node that sets the floor and the bytes there.
fn search(
    analysis: &Analysis<'_>,
    base: &Params,
    triggers: &mut Search<'_, '_>,
    limit: i64,
) -> Result<Attempt, Option<(i64, NodeId)>> {
    let mut best: Option<Attempt> = None;
    let mut lowest: Option<(i64, NodeId)> = None;
    for (ctrld_strategy, swap_branches) in [
        (Strategy::ChainRule, false),
        (Strategy::DirectOrder, false),
        (Strategy::ChainRule, true),
        (Strategy::DirectOrder, true),
    ] {
        if best.as_ref().is_some_and(|b| swap_branches || b.is_least()) {
            break;
        }
        let params =
            Params { ctrld_strategy, swap_branches: swap_branches || base.swap_branches, ..base.clone() };
        let attempt = Attempt::new(analysis, params, triggers, limit);
        if let Some((node, bytes)) = floor(analysis, &attempt.candidates)
            && lowest.is_none_or(|(other, _)| bytes < other)
        {
            lowest = Some((bytes, node));
        }
        best = match best {
            Some(best) => Some(best.or(attempt)),
            None => attempt.bytes.is_some().then_some(attempt),
        };
    }
    let mut best = best.ok_or(lowest)?;
    if best.returns_twice() {
        for fuse_swapins in [4, 16, 64] {
            let params = Params { fuse_swapins, ..best.params.clone() };
            best = best.or(Attempt::new(analysis, params, triggers, limit));
        }
    }
    for lb in [4, 16].into_iter().filter(|&lb| lb > base.lb) {
        let attempt = Attempt::new(analysis, Params { lb, ..best.params.clone() }, triggers, limit);
        if attempt.bytes.is_none_or(|bytes| Some(bytes) > best.bytes) {
            break;
        }
        best = attempt;
    }
    Ok(best)
}

/// The fewest bytes over the link that fit the limit, or slightly more: the bytes over the limit at the peak are copied twice
/// under any choice, with half of their size if they are encoded.
fn least(analysis: &Analysis<'_>, candidates: &Candidates, encode: bool, limit: i64) -> u64 {
    let over = (analysis.memory.transient_peak().0 as i64).saturating_sub(limit).max(0) as u64;
    let encodable = candidates.found.iter().filter(|c| encode && c.half.is_some());
    let encodable = encodable.fold(0u64, |sum, c| c.bytes.0.saturating_add(sum));
    let least = over.saturating_mul(2).saturating_sub(over.min(encodable));
    least.saturating_add(least / 50)
}

/// The result of one set of parameters.
struct Attempt {
    params: Params,
    candidates: Candidates,
    chosen: Vec<bool>,
    /// Bytes over the link, both ways; `None` if the budget is exceeded.
    bytes: Option<u64>,
    /// With at most this many bytes, no further search is needed.
    least: u64,
}

impl Attempt {
    fn new(analysis: &Analysis<'_>, params: Params, triggers: &mut Search<'_, '_>, limit: i64) -> Attempt {
        let candidates = candidates(analysis, &params, triggers);
        let pruned = |mut selection: Selection| {
            selection.prune(&candidates, params.encode, limit);
            let fits = selection.transient.max_of_all().max(0) <= limit;
            let bytes =
                fits.then(|| link_bytes(analysis, &candidates, &selection.chosen, params.encode, limit));
            (bytes, selection.chosen)
        };
        let least = least(analysis, &candidates, params.encode, limit);
        let (mut bytes, mut chosen) = pruned(Selection::eager(analysis, &candidates, limit));
        if bytes.is_none_or(|bytes| bytes > least) {
            let other = pruned(Selection::all(analysis, &candidates));
            if other.0.is_some_and(|other| bytes.is_none_or(|bytes| other < bytes)) {
                (bytes, chosen) = other;
            }
        }
        Attempt { params, candidates, chosen, bytes, least }
    }

    fn is_least(&self) -> bool {
        self.bytes.is_some_and(|bytes| bytes <= self.least)
    }

    /// Whether any storage is swapped in more than once, so that fusing swap-ins can save bytes.
    fn returns_twice(&self) -> bool {
        self.candidates.found.iter().zip(&self.chosen).any(|(c, chosen)| *chosen && c.ins.len() > 1)
    }

    /// The attempt that fits with fewer bytes; this one if they are equal, or if none fits.
    fn or(self, other: Attempt) -> Attempt {
        let cost = |a: &Attempt| a.bytes.unwrap_or(u64::MAX);
        if cost(&other) < cost(&self) { other } else { self }
    }
}

/// A choice of candidates and the bytes that remain on the device with it.
struct Selection {
    chosen: Vec<bool>,
    transient: SegmentTree,
}

impl Selection {
    /// In the order of `n_tensors`, the candidates that are swapped out at a tick that is still over the limit.
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

    /// Removes candidates that are not needed for the limit, the most expensive first.
    fn prune(&mut self, candidates: &Candidates, encode: bool, limit: i64) {
        let mut by_cost: Vec<usize> = (0..self.chosen.len()).filter(|&i| self.chosen[i]).collect();
        by_cost.sort_by_key(|&i| std::cmp::Reverse((cost(&candidates.found[i], encode), i)));
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
}

/// Bytes over the link, both ways, of the chosen candidates.
fn link_bytes(
    analysis: &Analysis<'_>,
    candidates: &Candidates,
    chosen: &[bool],
    encode: bool,
    limit: i64,
) -> u64 {
    let encoded =
        if encode { encode::choose(analysis, candidates, chosen, limit) } else { vec![false; chosen.len()] };
    let swaps = candidates.found.iter().zip(encoded).zip(chosen).filter(|(_, chosen)| **chosen);
    swaps.fold(0, |sum, ((candidate, encoded), _)| cost(candidate, encoded).saturating_add(sum))
}

/// Bytes over the link, both ways, of one candidate, encoded if requested and possible.
fn cost(candidate: &Candidate, encode: bool) -> u64 {
    let bytes = candidate.half.filter(|_| encode).unwrap_or(candidate.bytes);
    bytes.0.saturating_mul(1 + candidate.ins.len() as u64)
}

/// The refusal, if this node needs these bytes with everything else swapped out; without a node in a graph without nodes.
fn refusal(analysis: &Analysis<'_>, budget: Bytes, floor: Option<(i64, NodeId)>) -> Refusal {
    let (transient, node) = floor.map_or((0, None), |(bytes, node)| (bytes, Some(node)));
    let smallest = analysis.memory.resident + Bytes(transient.max(0) as u64);
    let memory = &analysis.memory;
    let workspace = node.map_or(Bytes::ZERO, |node| analysis.workspace[analysis.tick(node) as usize]);
    let resident = |storage| memory.storages.get(storage).is_resident(analysis.graph);
    let resident = (memory.resident, resident);
    Refusal::of_node(analysis.graph, &memory.storages, resident, workspace, (budget, smallest), node)
}
