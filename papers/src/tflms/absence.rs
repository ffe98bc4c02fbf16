//! The ticks during which each storage can be swapped out.

use std::collections::VecDeque;
use std::ops::Range;

use lmsc_ir::{Adjacency, Bytes, Def, ElementType, Graph, NodeId, Phase, StorageId, Storages, Type, ValueId};
use smallvec::{SmallVec, smallvec};

use super::{Analysis, Kept, MAX_VIEWS, Params, SwapIn, trigger};

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
        if anywhere {
            graph.predecessors(id).next().is_none()
        } else {
            named || params.starting_scopes.iter().any(|s| s.contains(name))
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
    may_be_swapped(analysis, params, id, producer)?;
    let reads = Reads::of(analysis, params, id, producer);
    let mut absence = Absence { last_early: reads.last_early(), ..Absence::default() };
    for &used in reads.late(absence.last_early) {
        absence.add(&reads, search, used);
    }
    let Absence { last_early, ins, away, without_trigger } = absence;
    if !ins.is_empty() {
        let storage = analysis.memory.storages.get(id);
        let half = half(analysis.graph, storage.root);
        return Ok(Candidate { storage: id, bytes: storage.bytes, half, last_early, ins, away });
    }
    let (forward, backward) = (reads.farthest(true), reads.farthest(false));
    Err(match without_trigger {
        Some(node) => Kept::NoTrigger(node),
        None if forward > backward && forward > 1 => Kept::ForwardOnly,
        None => Kept::NearUses { levels: forward.max(backward).max(1), threshold: params.threshold },
    })
}

/// Refuses storages that cannot be swapped for any uses.
fn may_be_swapped(
    analysis: &Analysis<'_>,
    params: &Params,
    id: StorageId,
    producer: NodeId,
) -> Result<(), Kept> {
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
    Ok(())
}

/// The size of the value as 32-bit integers, if it is of 64-bit integers whose definition guarantees that they fit.
///
/// Only the sizes of operands matter: an index along an axis is less than its extent, one into the whole tensor less than the
/// number of its elements.
pub(super) fn half(graph: &Graph, value: ValueId) -> Option<Bytes> {
    let ty = graph.value(value).ty.as_tensor().filter(|t| t.element == ElementType::Int64)?;
    let Def::Result(node, index) = graph.def(value) else { return None };
    let node = graph.node(node);
    let of = graph.value(node.operands.first().copied().flatten()?).ty.as_tensor()?;
    let fits = |count: u64| count <= 1 << 31;
    let bounded = match (node.op.domain(), node.op.name(), index) {
        ("", "MaxPool", 1) => of.element_count().is_some_and(fits),
        ("", "ArgMax" | "ArgMin" | "NonZero", 0) | ("", "TopK", 1) => of.dims.iter().copied().all(fits),
        _ => false,
    };
    ty.byte_size().filter(|_| bounded).map(|bytes| Bytes(bytes.0 / 2))
}

/// The uses of a storage.
struct Reads<'a> {
    analysis: &'a Analysis<'a>,
    params: &'a Params,
    storage: StorageId,
    producer: NodeId,
    all: &'a [(NodeId, usize)],
}

impl<'a> Reads<'a> {
    fn of(analysis: &'a Analysis<'_>, params: &'a Params, storage: StorageId, producer: NodeId) -> Reads<'a> {
        Reads { analysis, params, storage, producer, all: analysis.reads(storage) }
    }

    /// Levels from the producer to the node.
    fn span(&self, node: NodeId) -> u32 {
        self.analysis.depth(node).saturating_sub(self.analysis.depth(self.producer))
    }

    /// Whether a use by the node may read a swapped-in copy (§4.1, §5.1).
    fn is_late(&self, node: NodeId) -> bool {
        let params = self.params;
        match self.analysis.phases.phase(node) {
            Phase::Forward => params.swap_branches && self.span(node) >= params.branch_threshold.max(2),
            Phase::Backward | Phase::Update => self.span(node) >= params.threshold,
        }
    }

    /// The tick of the last use that must read the original, or of the producer.
    fn last_early(&self) -> u32 {
        let early = self.all.iter().filter(|(n, _)| !self.is_late(*n)).map(|(n, _)| self.analysis.tick(*n));
        early.max().unwrap_or(0).max(self.analysis.tick(self.producer))
    }

    /// The uses after that tick.
    fn late(&self, last_early: u32) -> &'a [(NodeId, usize)] {
        &self.all[self.all.partition_point(|(n, _)| self.analysis.tick(*n) <= last_early)..]
    }

    /// Levels to the farthest use in the forward phase, or in the others.
    fn farthest(&self, of_forward: bool) -> u32 {
        let of_phase = |n: NodeId| (self.analysis.phases.phase(n) == Phase::Forward) == of_forward;
        self.all.iter().filter(|(n, _)| of_phase(*n)).map(|(n, _)| self.span(*n)).max().unwrap_or(0)
    }
}

/// The swap-ins of a storage so far, and when it can be away.
#[derive(Default)]
struct Absence {
    last_early: u32,
    ins: SmallVec<[SwapIn; 1]>,
    away: SmallVec<[Range<u32>; 2]>,
    /// The last use for which no trigger was found.
    without_trigger: Option<NodeId>,
}

impl Absence {
    /// Adds a late use: it reads the current copy, or another one that is swapped in for it.
    fn add(
        &mut self,
        reads: &Reads<'_>,
        search: &mut trigger::Search<'_, '_>,
        (node, operand): (NodeId, usize),
    ) {
        let (analysis, params) = (reads.analysis, reads.params);
        let last = self.ins.last().and_then(|i| i.uses.last());
        if let Some(&(previous, _)) = last
            && (previous == node
                || analysis.depth(node).abs_diff(analysis.depth(previous)) <= params.fuse_swapins
                    && params.fuse_swapins > 0)
        {
            self.ins.last_mut().expect("it was just looked at").uses.push((node, operand));
            return;
        }
        let present_until = last.map_or(self.last_early, |&(n, _)| analysis.tick(n));
        let wanted = trigger::Wanted { storage: reads.storage, source: reads.producer, target: node };
        let found = search.find(&wanted).filter(|&t| analysis.tick(t) > present_until);
        let trigger = if self.ins.is_empty() {
            found.or_else(|| search.in_order(&wanted, present_until))
        } else {
            found
        };
        match (trigger, self.ins.last_mut()) {
            (Some(trigger), _) => {
                self.away.push(present_until + 1..analysis.tick(trigger) + 1);
                let (releases, decode_releases) = Default::default();
                self.ins.push(SwapIn {
                    trigger,
                    uses: smallvec![(node, operand)],
                    releases,
                    decode_releases,
                });
            }
            // The current copy stays.
            (None, Some(present)) => present.uses.push((node, operand)),
            (None, None) => {
                self.without_trigger = Some(node);
                self.last_early = analysis.tick(node);
            }
        }
    }
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
