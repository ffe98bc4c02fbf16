//! Release edges: which nodes wait for which swap-outs.
//!
//! A storage that is swapped out is still on the device until its copy has completed. Wherever the peak would be
//! exceeded with it, the node that would exceed it, and the swap-ins that start just before that node, wait for
//! the copy. Swap-outs are released oldest first: the oldest is the likeliest to have completed.

use std::collections::VecDeque;

use lmsc_ir::{Bytes, NodeId};

use super::absence::{Candidate, Candidates};
use super::{Analysis, Kept, Swap, SwapPlan};

/// By tick, transient bytes with the chosen storages away as long as they can be.
pub(super) fn ideal<'c>(analysis: &Analysis<'_>, chosen: impl Iterator<Item = &'c Candidate>) -> Vec<i64> {
    let transient = &analysis.transient;
    let mut deltas = vec![0i64; transient.len() + 1];
    for candidate in chosen {
        for range in &candidate.away {
            deltas[range.start as usize] -= candidate.bytes.0 as i64;
            deltas[range.end as usize] += candidate.bytes.0 as i64;
        }
    }
    let mut away = 0;
    let reduce = |(bytes, delta): (&i64, &i64)| {
        away += delta;
        bytes + away
    };
    transient.iter().zip(&deltas).map(reduce).collect()
}

/// The plan that swaps the chosen candidates: its release edges keep the peak at the lowest that the swaps allow,
/// or within `budget` where that is higher.
pub(super) fn finish(
    analysis: &Analysis<'_>,
    candidates: &Candidates,
    chosen: &[bool],
    budget: Option<Bytes>,
) -> SwapPlan {
    let graph = analysis.graph;
    let storages = &analysis.memory.storages;
    let mut selected: Vec<&Candidate> =
        candidates.found.iter().zip(chosen).filter(|(_, c)| **c).map(|(candidate, _)| candidate).collect();
    selected.sort_by_key(|c| c.storage);
    let swap =
        |c: &&Candidate| Swap { root: storages.get(c.storage).root, bytes: c.bytes, ins: c.ins.clone() };
    let mut plan = SwapPlan { swaps: selected.iter().map(swap).collect(), ..SwapPlan::default() };

    let ideal = ideal(analysis, selected.iter().copied());
    let lowest = ideal.iter().copied().max().unwrap_or(0);
    let allowed = budget.map_or(0, |b| b.saturating_sub(analysis.memory.resident).0.min(1 << 62) as i64);
    let limit = lowest.max(allowed);

    // By tick: the swap-outs that may be complete from there on, and the swap-ins that may start just before.
    let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); graph.order().len() + 1];
    let mut starting: Vec<Vec<(usize, usize)>> = vec![Vec::new(); graph.order().len() + 1];
    for (index, candidate) in selected.iter().enumerate() {
        leaving[candidate.last_early as usize + 1].push(index);
        for (which, swap_in) in candidate.ins.iter().enumerate() {
            starting[analysis.tick(swap_in.trigger) as usize + 1].push((index, which));
        }
    }
    let mut pending: VecDeque<usize> = VecDeque::new();
    let mut released = vec![false; selected.len()];
    let mut pending_bytes = 0;
    for (tick, &node) in graph.order().iter().enumerate() {
        for &(index, which) in &starting[tick] {
            // What comes back has left: its swap-in waits for its swap-out.
            if which == 0 && !std::mem::replace(&mut released[index], true) {
                pending_bytes -= selected[index].bytes.0 as i64;
            }
        }
        for &index in &leaving[tick] {
            pending.push_back(index);
            pending_bytes += selected[index].bytes.0 as i64;
        }
        while ideal[tick] + pending_bytes > limit && !graph.node(node).op.is_swap() {
            let Some(index) = pending.pop_front() else { break };
            if !std::mem::replace(&mut released[index], true) {
                pending_bytes -= selected[index].bytes.0 as i64;
                plan.releases.push((index, node));
                for &(waiting, which) in &starting[tick] {
                    plan.swaps[waiting].ins[which].releases.push(index);
                }
            }
        }
    }
    plan.releases.sort_unstable();
    for swap_in in plan.swaps.iter_mut().flat_map(|s| &mut s.ins) {
        swap_in.releases.sort_unstable();
    }
    let not_needed = candidates.found.iter().zip(chosen).filter(|(_, chosen)| !**chosen);
    let mut kept: Vec<_> = not_needed.map(|(c, _)| (c.storage, Kept::NotNeeded)).collect();
    kept.extend(candidates.kept.iter().cloned());
    kept.sort_by_key(|(storage, _)| *storage);
    plan.kept = kept.into_iter().map(|(storage, why)| (storages.get(storage).root, why)).collect();
    plan
}

/// The tick at which the storage's uses peak, and the bytes there, with every candidate away.
pub(super) fn floor(analysis: &Analysis<'_>, candidates: &Candidates) -> Option<(NodeId, i64)> {
    let ideal = ideal(analysis, candidates.found.iter());
    let lowest = ideal.iter().copied().max()?;
    let tick = ideal.iter().position(|&b| b == lowest)?;
    Some((analysis.graph.order()[tick], lowest))
}
