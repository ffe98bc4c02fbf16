//! Bounds for problems whose operators run on several lanes.
//!
//! No plan is faster than the longest chain of operators each of which waits for the one before it, for its results or on its
//! lane. And none is faster than the best plan of the operators that compute alone, in the problem that [`computing`] makes:
//! the operators of other lanes take no time, need nothing, and give their results at the latest moment. Every schedule of
//! the problem becomes one of that problem, no longer and with no more memory, if everything else of those operators is left
//! out. So every bound of the latter holds for the former.

use cranelift_entity::SecondaryMap;
use lmsc_schedule::Instruction;
use lmsc_schedule::lanes::engine_of;
use lmsc_schedule::problem::{COMPUTE, MOST_LANES, Operator, Problem, TensorId};

use super::{Certificate, Proof};

/// The better one of the bound for the operators that compute, and of the longest chain.
pub(super) fn with_lanes(problem: &Problem, bound: impl FnOnce(&Problem) -> Certificate) -> Certificate {
    if !problem.has_lanes() {
        return bound(problem);
    }
    let found = bound(&computing(problem));
    let (nanos, ticks) = longest_chain(problem);
    if nanos > found.nanos { Certificate { nanos, proof: Proof::Chain { ticks } } } else { found }
}

/// The problem of the operators that compute, which facts of a certificate refer to where operators run on several lanes.
///
/// Each operator of another lane stands directly before the first one that computes and cannot start before it has ended, or at
/// the end, behind those of its kind with lower ticks. It takes no time, reads nothing and changes nothing.
pub(super) fn computing(problem: &Problem) -> Problem {
    // The first operator that computes and needs the tensor, as far as is known, from the last operator on.
    let mut needed: SecondaryMap<TensorId, u32> = SecondaryMap::with_default(problem.ticks());
    let mut of_lane = [problem.ticks(); MOST_LANES];
    let mut places = vec![0; problem.ops.len()];
    for tick in (0..problem.ticks()).rev() {
        let op = &problem.ops[tick as usize];
        let place = if op.lane == COMPUTE {
            tick
        } else {
            let first = op.produces.iter().map(|&t| needed[t]).min().unwrap_or(problem.ticks());
            let next = &mut of_lane[usize::from(op.lane)];
            *next = first.min(*next);
            *next
        };
        op.reads.iter().for_each(|&t| needed[t] = needed[t].min(place));
        places[tick as usize] = place;
    }
    let mut order: Vec<usize> = (0..problem.ops.len()).collect();
    order.sort_by_key(|&tick| (places[tick], problem.ops[tick].lane == COMPUTE, tick));
    let mut relaxed = problem.clone();
    relaxed.lanes.truncate(1);
    relaxed.ops = order.into_iter().map(|tick| alone(&problem.ops[tick])).collect();
    // Bytes that no operator that computes needs need not be anywhere.
    let mut used: SecondaryMap<TensorId, bool> = SecondaryMap::new();
    relaxed.ops.iter().flat_map(Operator::touches).for_each(|t| used[t] = true);
    problem.ops.iter().filter(|op| op.lane != COMPUTE).flat_map(|op| &op.reads).for_each(|&tensor| {
        let facts = &mut relaxed.tensors[tensor];
        facts.given &= used[tensor];
        facts.kept &= used[tensor];
    });
    relaxed
}

/// The operator as it counts for those that compute.
fn alone(op: &Operator) -> Operator {
    if op.lane == COMPUTE {
        return op.clone();
    }
    let produces = op.produces.clone();
    Operator {
        nanos: 0,
        workspace: 0,
        reads: Vec::new(),
        changes: Vec::new(),
        produces,
        lane: COMPUTE,
        ..*op
    }
}

/// The time of the longest chain of operators, and its ticks: each reads a result of the one before it, or follows it on its
/// lane. Operators that change a tensor need not be waited for by chance of memory: plans that recompute may read a copy.
fn longest_chain(problem: &Problem) -> (u64, Vec<u32>) {
    let mut last: Vec<Option<u32>> = Vec::new();
    let mut wrote: SecondaryMap<TensorId, Option<u32>> = SecondaryMap::new();
    // For each tick, the end of its operator at the earliest, and the operator that it waits for last.
    let mut ends: Vec<(u64, Option<u32>)> = Vec::with_capacity(problem.ops.len());
    for (op, tick) in problem.ops.iter().zip(0..) {
        let engine = engine_of(problem, Instruction::Op(tick));
        last.resize(last.len().max(engine + 1), None);
        let in_line = last[engine].replace(tick);
        let before = in_line.into_iter().chain(op.reads.iter().filter_map(|&t| wrote[t]));
        let latest = before.max_by_key(|&before| (ends[before as usize].0, before));
        ends.push((latest.map_or(0, |latest| ends[latest as usize].0) + op.nanos, latest));
        op.produces.iter().chain(&op.changes).for_each(|&t| wrote[t] = Some(tick));
    }
    let mut at = (0..problem.ticks()).max_by_key(|&tick| ends[tick as usize].0);
    let nanos = at.map_or(0, |tick| ends[tick as usize].0);
    let mut chain = Vec::new();
    while let Some(tick) = at {
        chain.push(tick);
        at = ends[tick as usize].1;
    }
    chain.reverse();
    (nanos, chain)
}
