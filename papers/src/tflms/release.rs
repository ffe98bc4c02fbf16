//! Release edges: the nodes that wait for swap-outs.
//!
//! A storage that is swapped out is still on the device until its copy has completed. If the peak would be exceeded with it,
//! the node that would exceed it, and the swap-ins that start just before that node, wait for the copy. Swap-outs are
//! released oldest first: the oldest is the most likely to have completed.

use std::collections::{BTreeMap, VecDeque};

use lmsc_ir::{Bytes, NodeId, ValueId};

use super::absence::{Candidate, Candidates};
use super::moments::{after, before, ideal, moments};
use super::{Analysis, Encoding, Kept, Swap, SwapPlan, encode};

/// The plan that swaps the chosen candidates, encoded if requested and allowed by the limit: its release edges keep the peak
/// as low as the swaps allow, or within `budget` if that is higher.
pub(super) fn finish(
    analysis: &Analysis<'_>,
    candidates: &Candidates,
    chosen: &[bool],
    encode: bool,
    budget: Option<Bytes>,
) -> SwapPlan {
    let allowed = budget.map_or(0, |b| b.saturating_sub(analysis.memory.resident).0.min(1 << 62) as i64);
    let selected = selected(analysis, candidates, chosen, encode, allowed);
    let swaps = selected.iter().map(|&(candidate, encoded)| swap(analysis, candidate, encoded)).collect();
    let mut plan = SwapPlan { swaps, ..SwapPlan::default() };

    let moments = moments(analysis, selected.iter().copied());
    let limit = moments.iter().copied().max().unwrap_or(0).max(allowed);
    let timeline = Timeline::of(analysis, &selected, moments.len());
    add_releases(&mut plan, analysis, &timeline, &moments, limit);
    sort_releases(&mut plan);
    plan.kept = kept(analysis, candidates, chosen);
    plan
}

/// The chosen candidates in the order of their storages, each with whether it is encoded.
fn selected<'c>(
    analysis: &Analysis<'_>,
    candidates: &'c Candidates,
    chosen: &[bool],
    encode: bool,
    allowed: i64,
) -> Vec<(&'c Candidate, bool)> {
    let all = || candidates.found.iter().zip(chosen).filter(|(_, c)| **c).map(|(candidate, _)| candidate);
    let limit = ideal(analysis, all()).into_iter().max().unwrap_or(0).max(allowed);
    let encoded =
        if encode { encode::choose(analysis, candidates, chosen, limit) } else { vec![false; chosen.len()] };
    let mut selected: Vec<(&Candidate, bool)> = candidates
        .found
        .iter()
        .zip(encoded)
        .zip(chosen)
        .filter_map(|(selected, chosen)| chosen.then_some(selected))
        .collect();
    selected.sort_by_key(|(c, _)| c.storage);
    selected
}

/// The swap of a candidate, without release edges.
fn swap(analysis: &Analysis<'_>, candidate: &Candidate, encoded: bool) -> Swap {
    let after = analysis.graph.order()[candidate.last_early as usize];
    let half = candidate.half.filter(|_| encoded);
    let encoding = half.map(|bytes| Encoding { bytes, after, releases: Vec::new() });
    let root = analysis.memory.storages.get(candidate.storage).root;
    Swap { root, bytes: candidate.bytes, encoding, ins: candidate.ins.clone() }
}

/// A computation between two nodes of the graph.
enum Between {
    /// The encoding of a swap.
    Encoding(usize),
    /// The decoding after a swap-in.
    Decoding(usize, usize),
}

/// For each moment, the computations and copies of the swaps.
struct Timeline {
    between: BTreeMap<usize, Vec<Between>>,
    /// The swap-outs that may be complete from there on.
    leaving: Vec<Vec<usize>>,
    /// The swap-ins that may start just before.
    starting: Vec<Vec<(usize, usize)>>,
}

impl Timeline {
    fn of(analysis: &Analysis<'_>, selected: &[(&Candidate, bool)], moments: usize) -> Timeline {
        let mut between: BTreeMap<usize, Vec<Between>> = BTreeMap::new();
        for (index, (candidate, _)) in selected.iter().enumerate().filter(|(_, (_, encoded))| *encoded) {
            between.entry(after(candidate.last_early)).or_default().push(Between::Encoding(index));
            for (which, swap_in) in candidate.ins.iter().enumerate() {
                let moment = before(analysis.tick(swap_in.uses[0].0));
                between.entry(moment).or_default().push(Between::Decoding(index, which));
            }
        }
        let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); moments + 1];
        let mut starting: Vec<Vec<(usize, usize)>> = vec![Vec::new(); moments + 1];
        // If nothing computes between two nodes, the second one waits.
        let next = |moment: usize| if between.contains_key(&moment) { moment } else { moment + 1 };
        for (index, &(candidate, encoded)) in selected.iter().enumerate() {
            let left = after(candidate.last_early);
            leaving[if encoded { left + 1 } else { next(left) }].push(index);
            for (which, swap_in) in candidate.ins.iter().enumerate() {
                starting[next(after(analysis.tick(swap_in.trigger)))].push((index, which));
            }
        }
        Timeline { between, leaving, starting }
    }
}

/// Adds release edges where the peak would exceed `limit` without them.
fn add_releases(
    plan: &mut SwapPlan,
    analysis: &Analysis<'_>,
    timeline: &Timeline,
    moments: &[i64],
    limit: i64,
) {
    let graph = analysis.graph;
    let mut pending: VecDeque<usize> = VecDeque::new();
    let mut released = vec![false; plan.swaps.len()];
    let mut pending_bytes = 0;
    for (moment, bytes) in moments.iter().enumerate() {
        let node = graph.order().get(moment / 2).copied().filter(|_| moment % 2 == 0);
        let node = node.filter(|&node| !graph.node(node).op.is_swap());
        let between = timeline.between.get(&moment);
        let waits = node.is_some() || between.is_some();
        for &(index, which) in &timeline.starting[moment] {
            // A storage that is swapped in has been swapped out: its swap-in waits for its swap-out.
            if which == 0 && !std::mem::replace(&mut released[index], true) {
                pending_bytes -= plan.swaps[index].link_bytes().0 as i64;
            }
        }
        for &index in &timeline.leaving[moment] {
            pending.push_back(index);
            pending_bytes += plan.swaps[index].link_bytes().0 as i64;
        }
        while bytes + pending_bytes > limit && waits {
            let Some(index) = pending.pop_front() else { break };
            if std::mem::replace(&mut released[index], true) {
                continue;
            }
            pending_bytes -= plan.swaps[index].link_bytes().0 as i64;
            plan.releases.extend(node.map(|node| (index, node)));
            for waiting in between.into_iter().flatten() {
                match *waiting {
                    Between::Encoding(swap) => {
                        let encoding = plan.swaps[swap].encoding.as_mut();
                        encoding.expect("it is encoded").releases.push(index);
                    }
                    Between::Decoding(swap, which) => {
                        plan.swaps[swap].ins[which].decode_releases.push(index);
                    }
                }
            }
            for &(waiting, which) in &timeline.starting[moment] {
                plan.swaps[waiting].ins[which].releases.push(index);
            }
        }
    }
}

fn sort_releases(plan: &mut SwapPlan) {
    plan.releases.sort_unstable();
    for swap in &mut plan.swaps {
        swap.encoding.iter_mut().for_each(|e| e.releases.sort_unstable());
        for swap_in in &mut swap.ins {
            swap_in.releases.sort_unstable();
            swap_in.decode_releases.sort_unstable();
        }
    }
}

/// The roots of the storages that are not swapped, in the order of the storages, each with the reason.
fn kept(analysis: &Analysis<'_>, candidates: &Candidates, chosen: &[bool]) -> Vec<(ValueId, Kept)> {
    let not_needed = candidates.found.iter().zip(chosen).filter(|(_, chosen)| !**chosen);
    let mut kept: Vec<_> = not_needed.map(|(c, _)| (c.storage, Kept::NotNeeded)).collect();
    kept.extend(candidates.kept.iter().cloned());
    kept.sort_by_key(|(storage, _)| *storage);
    let storages = &analysis.memory.storages;
    kept.into_iter().map(|(storage, why)| (storages.get(storage).root, why)).collect()
}

/// The node with the largest need, and its transient bytes, with every candidate swapped out.
pub(super) fn floor(analysis: &Analysis<'_>, candidates: &Candidates) -> Option<(NodeId, i64)> {
    let ideal = ideal(analysis, candidates.found.iter());
    let lowest = ideal.iter().copied().max()?;
    let tick = ideal.iter().position(|&b| b == lowest)?;
    Some((analysis.graph.order()[tick], lowest))
}
