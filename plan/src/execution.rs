//! The execution of a graph by its edges: no plan, no budget, no counting of memory.
//!
//! Three engines (compute, copies out, copies in; over a half-duplex link the copies share one) run their nodes in the
//! graph's order. A node starts once its engine is free and its data and control dependences have ended. Shares no code with
//! the planners: if a rewritten graph takes the time that its plan predicted, its edges are complete, and no more is implied.

use lmsc_cost::Cost;
use lmsc_ir::{Graph, Moves, NodeId, Storages};
use lmsc_schedule::problem::{Duplex, Link};

use crate::bridge::only_names;

/// The times of the nodes of a graph.
#[derive(Clone, Debug)]
pub struct Execution {
    /// For each node, its start, in nanoseconds from the start of the step.
    pub start: Vec<u64>,
    /// For each node, its end.
    pub end: Vec<u64>,
    /// The end of the last node.
    pub makespan: u64,
    /// The most device bytes at once: resident storages, values from the start of the node that defines them to the end of
    /// the last node that touches them, and workspaces.
    pub peak: u64,
}

impl Execution {
    /// The execution of the graph, whose order must follow its edges, with the given cost of each node that computes. Nodes
    /// that only name values cost nothing.
    pub fn of(graph: &Graph, link: &Link, cost: impl Fn(NodeId) -> Cost) -> Execution {
        let storages = Storages::of(graph);
        let bytes = |node: NodeId| {
            let copied = graph.node(node).defines().next();
            copied.and_then(|value| graph.value(value).ty.byte_size()).unwrap_or_default().0
        };
        let cost = |id| if only_names(graph, &storages, id) { Cost::default() } else { cost(id) };
        let mut start = vec![0; graph.node_capacity()];
        let mut end = vec![0u64; graph.node_capacity()];
        let mut engines = [0u64; 3];
        let mut makespan = 0;
        for &id in graph.order() {
            let op = &graph.node(id).op;
            let (engine, nanos) = match (op.is_swap_out(), op.is_swap_in()) {
                (true, _) => (1, link.out_nanos(bytes(id))),
                (_, true) if link.duplex == Duplex::Half => (1, link.in_nanos(bytes(id))),
                (_, true) => (2, link.in_nanos(bytes(id))),
                _ => (0, cost(id).nanos),
            };
            let waits = graph.predecessors(id).map(|before| end[before.as_u32() as usize]);
            let at = waits.max().unwrap_or(0).max(engines[engine]);
            let index = id.as_u32() as usize;
            (start[index], end[index]) = (at, at.saturating_add(nanos));
            engines[engine] = end[index];
            makespan = makespan.max(end[index]);
        }
        let peak = peak(graph, &storages, (&start, &end), makespan, cost);
        Execution { start, end, makespan, peak }
    }
}

type Moment = (u64, usize);

fn peak(
    graph: &Graph,
    storages: &Storages,
    (start, end): (&[u64], &[u64]),
    makespan: u64,
    cost: impl Fn(NodeId) -> Cost,
) -> u64 {
    // A moment is a time and, for events of no duration, the position in the order.
    let end_of_step = (makespan, usize::MAX);
    let mut spans: Vec<Option<(Moment, Moment)>> = vec![None; storages.runs().count()];
    let mut held: Vec<(Moment, Moment, u64)> = Vec::new();
    for (tick, &id) in graph.order().iter().enumerate() {
        let (starts, ends) = ((start[id.as_u32() as usize], tick), (end[id.as_u32() as usize], tick));
        for run in storages.touched(graph, id) {
            let span = &mut spans[run.as_u32() as usize];
            let (from, until) = span.unwrap_or((starts, ends));
            *span = Some((from.min(starts), until.max(ends)));
        }
        if !graph.node(id).op.is_swap() {
            held.push((starts, ends, cost(id).workspace));
        }
    }
    for &output in &graph.outputs {
        for &(_, run) in storages.runs_of(storages.storage(output)) {
            if let Some(span) = &mut spans[run.as_u32() as usize] {
                span.1 = end_of_step;
            }
        }
    }
    let mut resident = 0u64;
    for (id, run) in storages.runs().filter(|(_, run)| !storages.get(run.storage).on_host) {
        let storage = storages.get(run.storage);
        match (storage.is_resident(graph), spans[id.as_u32() as usize]) {
            (true, _) => resident = resident.saturating_add(run.bytes.0),
            (false, Some((from, until))) => {
                let from = if storage.is_given(graph) { (0, 0) } else { from };
                let returns = storage.moves == Some(Moves::Returns);
                held.push((from, if returns { end_of_step } else { until }, run.bytes.0));
            }
            (false, None) => {}
        }
    }
    let mut events: Vec<(Moment, bool, u64)> = Vec::with_capacity(2 * held.len());
    for (from, until, bytes) in held {
        events.extend([(from, false, bytes), (until, true, bytes)]);
    }
    events.sort_unstable();
    let (mut now, mut most) = (0u128, 0u128);
    for (_, ends, bytes) in events {
        now = if ends { now - u128::from(bytes) } else { now + u128::from(bytes) };
        most = most.max(now);
    }
    resident.saturating_add(most.min(u128::from(u64::MAX)) as u64)
}
