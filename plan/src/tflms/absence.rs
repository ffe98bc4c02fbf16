//! The ticks during which each storage can be swapped out.

use std::collections::VecDeque;
use std::ops::Range;

use lmsc_ir::{Adjacency, Bytes, Def, ElementType, Graph, NodeId, Phase, StorageId, Storages, Type};
use smallvec::{SmallVec, smallvec};

use super::{Analysis, Kept, MAX_VIEWS, Params, SwapIn, encode, trigger};

/// A storage that can be swapped.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) storage: StorageId,
    pub(super) bytes: Bytes,
    /// Its encoded size, if it can be encoded.
    pub(super) half: Option<Bytes>,
    /// The last tick at which the original is used.
    pub(super) last_early: u32,
    pub(super) ins: SmallVec<[SwapIn; 1]>,
    /// Ticks during which no copy is on the device, if the swap-out is released as early as possible.
    pub(super) away: SmallVec<[Range<u32>; 2]>,
}

/// The storages that the parameters allow to be swapped, in the order in which `n_tensors` counts them.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidates {
    pub(super) found: Vec<Candidate>,
    pub(super) kept: Vec<(StorageId, Kept)>,
}

pub(super) fn candidates(
    analysis: &Analysis<'_>,
    params: &Params,
    search: &mut trigger::Search<'_, '_>,
) -> Candidates {
    search.set_params(params);
    let storages = &analysis.memory.storages;
    let mut produced: Vec<(u32, StorageId, NodeId)> = Vec::new();
    for (id, storage) in storages.iter() {
        if let Def::Result(node, _) = analysis.graph.def(storage.root) {
            let forward = analysis.phases.phase(node) == Phase::Forward;
            if forward && !storage.on_host && !analysis.graph.node(node).op.is_swap() {
                produced.push((analysis.rank[node.as_u32() as usize], id, node));
            }
        }
    }
    produced.sort_by_key(|&(rank, id, _)| (rank, id));

    let mut result = Candidates::default();
    for (rank, id, producer) in produced {
        let verdict = if rank == u32::MAX {
            Err(Kept::NotReached)
        } else if params.n_tensors.is_some_and(|n| result.found.len() >= n) {
            Err(Kept::Beyond(result.found.len()))
        } else if let Some(node) = analysis.captured[id.as_u32() as usize] {
            Err(Kept::Captured(node))
        } else {
            candidate(analysis, params, search, id, producer)
        };
        match verdict {
            Ok(candidate) => result.found.push(candidate),
            Err(kept) => result.kept.push((id, kept)),
        }
    }
    result
}

pub(super) fn breadth_first(graph: &Graph, successors: &Adjacency, params: &Params) -> Vec<u32> {
    let anywhere = params.starting_scopes.is_empty() && params.starting_op_names.is_empty();
    let starts = |id: NodeId| {
        let name = &*graph.node(id).name;
        let named = params.starting_op_names.iter().any(|n| n == name);
        match anywhere {
            true => graph.predecessors(id).next().is_none(),
            false => named || params.starting_scopes.iter().any(|s| s.contains(name)),
        }
    };
    let mut rank = vec![u32::MAX; graph.node_capacity()];
    let mut queue: VecDeque<NodeId> = graph.order().iter().copied().filter(|&id| starts(id)).collect();
    let mut visited = 0;
    while let Some(node) = queue.pop_front() {
        let slot = &mut rank[node.as_u32() as usize];
        if *slot == u32::MAX {
            *slot = visited;
            visited += 1;
            queue.extend(successors.of(node));
        }
    }
    rank
}

pub(super) fn captures(graph: &Graph, storages: &Storages) -> Vec<Option<NodeId>> {
    let mut captured = vec![None; storages.len()];
    for &id in graph.order() {
        for &value in &graph.node(id).captures {
            captured[storages.storage(value).as_u32() as usize] = Some(id);
        }
    }
    captured
}

/// Decides about one storage that a forward node produces.
fn candidate(
    analysis: &Analysis<'_>,
    params: &Params,
    search: &mut trigger::Search<'_, '_>,
    id: StorageId,
    producer: NodeId,
) -> Result<Candidate, Kept> {
    let graph = analysis.graph;
    let storage = analysis.memory.storages.get(id);
    match &graph.value(storage.root).ty {
        Type::Sequence(_) => return Err(Kept::Sequence),
        Type::Tensor(tensor) if tensor.element == ElementType::String => return Err(Kept::Strings),
        Type::Tensor(_) => {}
    }
    if storage.bytes == Bytes::ZERO {
        return Err(Kept::Empty);
    }
    if graph.node(producer).op.is_join() || analysis.memory.storages.runs_of(id).len() > 1 {
        return Err(Kept::Ranges);
    }
    let of_view = |&&(node, operand): &&(NodeId, usize)| operand > 0 && analysis.may_move(node);
    if let Some(&(view, _)) = analysis.reads(id).iter().find(of_view) {
        return Err(Kept::OfView(view));
    }
    if !admitted(graph, params, producer) {
        return Err(Kept::Excluded);
    }
    if storage.values.len() > MAX_VIEWS {
        return Err(Kept::Views(storage.values.len()));
    }
    for view in storage.values[1..].iter().filter_map(|&v| graph.producer(v)) {
        let others = graph.node(view).operands.iter().skip(1).flatten();
        let mut storages = others.map(|&v| analysis.memory.storages.storage(v));
        if storages.any(|s| analysis.is_variable[s.as_u32() as usize]) {
            return Err(Kept::Variable(view));
        }
    }
    if analysis.is_output[id.as_u32() as usize] {
        return Err(Kept::Output);
    }

    // The uses that may read a swapped-in copy (§4.1, §5.1).
    let span = |node: NodeId| analysis.depth(node).saturating_sub(analysis.depth(producer));
    let is_late = |node: NodeId| match analysis.phases.phase(node) {
        Phase::Forward => params.swap_branches && span(node) >= params.branch_threshold.max(2),
        Phase::Backward | Phase::Update => span(node) >= params.threshold,
    };
    let reads = analysis.reads(id);
    let early = reads.iter().filter(|(n, _)| !is_late(*n)).map(|(n, _)| analysis.tick(*n));
    let mut last_early = early.max().unwrap_or(0).max(analysis.tick(producer));

    let mut ins: SmallVec<[SwapIn; 1]> = SmallVec::new();
    let mut away: SmallVec<[Range<u32>; 2]> = SmallVec::new();
    let mut without_trigger = None;
    let late = reads.partition_point(|(n, _)| analysis.tick(*n) <= last_early);
    for &(node, operand) in &reads[late..] {
        let last = ins.last().and_then(|i| i.uses.last());
        if let Some(&(previous, _)) = last
            && (previous == node
                || analysis.depth(node).abs_diff(analysis.depth(previous)) <= params.fuse_swapins
                    && params.fuse_swapins > 0)
        {
            ins.last_mut().expect("it was just looked at").uses.push((node, operand));
            continue;
        }
        let present_until = last.map_or(last_early, |&(n, _)| analysis.tick(n));
        let wanted = trigger::Wanted { storage: id, source: producer, target: node };
        let found = search.find(&wanted).filter(|&t| analysis.tick(t) > present_until);
        let trigger = match ins.is_empty() {
            true => found.or_else(|| search.in_order(&wanted, present_until)),
            false => found,
        };
        match (trigger, ins.last_mut()) {
            (Some(trigger), _) => {
                away.push(present_until + 1..analysis.tick(trigger) + 1);
                let (releases, decode_releases) = Default::default();
                ins.push(SwapIn { trigger, uses: smallvec![(node, operand)], releases, decode_releases });
            }
            // The current copy stays.
            (None, Some(present)) => present.uses.push((node, operand)),
            (None, None) => {
                without_trigger = Some(node);
                last_early = analysis.tick(node);
            }
        }
    }
    if !ins.is_empty() {
        let half = encode::half(graph, storage.root);
        return Ok(Candidate { storage: id, bytes: storage.bytes, half, last_early, ins, away });
    }
    let farthest = |of_forward: bool| {
        let of_phase = |n: NodeId| (analysis.phases.phase(n) == Phase::Forward) == of_forward;
        reads.iter().filter(|(n, _)| of_phase(*n)).map(|(n, _)| span(*n)).max().unwrap_or(0)
    };
    Err(match without_trigger {
        Some(node) => Kept::NoTrigger(node),
        None if farthest(true) > farthest(false) && farthest(true) > 1 => Kept::ForwardOnly,
        None => {
            Kept::NearUses { levels: farthest(true).max(farthest(false)).max(1), threshold: params.threshold }
        }
    })
}

/// Whether scopes and types allow the node's results to be swapped.
fn admitted(graph: &Graph, params: &Params, producer: NodeId) -> bool {
    let node = graph.node(producer);
    let in_scope = |scopes: &[super::Scope]| scopes.iter().any(|s| s.contains(&node.name));
    let of_type = |types: &[String]| types.iter().any(|t| *t == node.op.name() || *t == node.op.to_string());
    (params.incl_scopes.is_empty() || in_scope(&params.incl_scopes))
        && (params.incl_types.is_empty() || of_type(&params.incl_types))
        && !in_scope(&params.excl_scopes)
        && !of_type(&params.excl_types)
}
