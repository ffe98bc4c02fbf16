//! The device bytes that a graph needs while it runs in its order.
//!
//! Nodes run in three lines: computation, copies to the host, copies from the host. Each line runs in the order; the lines
//! run concurrently as far as the edges allow, regardless of the durations of copies. A SwapIn may hold its memory from the
//! first moment at which its predecessors may all have completed, and the memory that a SwapOut reads is free only once a
//! node has started that an edge orders after the copy. Peaks computed here are therefore guarantees: no timing of the copies
//! can exceed them, and some timing reaches them.

mod lines;
mod transient;

use std::ops::Range;

use lmsc_ir::{Bytes, Graph, Moves, NodeId, StorageId, Storages, ranges_at_home};

use crate::bridge::only_names;
use lines::{COMPUTE, Lines};

/// The live range of every storage of a graph, and the live bytes at every tick.
#[derive(Clone, Debug)]
pub struct MemoryTimeline {
    /// The storages.
    pub storages: Storages,
    /// For each storage, the half-open range of ticks during which it may be live.
    pub live: Vec<Range<u32>>,
    /// Device bytes that are resident throughout: graph inputs and initializers, including variables, that are not swapped.
    pub resident: Bytes,
    /// For each tick, the most device bytes beyond [`MemoryTimeline::resident`] while the node of that tick computes; for a copy, those
    /// between the adjacent computing nodes.
    pub transient: Vec<Bytes>,
    /// The most host bytes at once of swapped values, and of variables that are on the host between steps.
    pub host_peak: Bytes,
}

impl MemoryTimeline {
    /// The memory of the graph, run in its order, without workspaces.
    ///
    /// The order must be topological (invariant I2). Near-linear.
    pub fn of(graph: &Graph) -> MemoryTimeline {
        MemoryTimeline::with_workspace(graph, |_| Bytes::ZERO)
    }

    /// The memory of the graph, run in its order, with the bytes that each computing node needs besides its values while it
    /// runs. Nodes that only name values need none.
    pub fn with_workspace(graph: &Graph, workspace: impl Fn(NodeId) -> Bytes) -> MemoryTimeline {
        let storages = Storages::of(graph);
        let workspace = |id| if only_names(graph, &storages, id) { Bytes::ZERO } else { workspace(id) };
        let lines = Lines::of(graph);
        let live = live_ranges(graph, &storages, &lines);
        let on_device = storages.iter().filter(|(_, storage)| !storage.on_host && storage.is_resident(graph));
        let resident = on_device.map(|(_, storage)| storage.bytes).sum();
        let transient = transient::transient(graph, &storages, &lines, workspace);
        let mut host = vec![0i128; graph.order().len() + 1];
        let at_home = ranges_at_home(graph, &storages);
        for (id, storage) in storages.iter().filter(|(id, storage)| storage.on_host && at_home[*id].is_none())
        {
            let range = &live[id.as_u32() as usize];
            host[range.start as usize] += i128::from(storage.bytes.0);
            host[range.end as usize] -= i128::from(storage.bytes.0);
        }
        let host_peak = running_sums(&host[..graph.order().len()]).max().unwrap_or_default();
        MemoryTimeline { storages, live, resident, transient, host_peak }
    }

    /// The largest number of device bytes at any tick.
    pub fn peak(&self) -> Bytes {
        self.resident + self.transient_peak()
    }

    /// The largest number of device bytes beyond the resident ones.
    pub fn transient_peak(&self) -> Bytes {
        self.transient.iter().copied().max().unwrap_or_default()
    }

    /// The first tick at which the peak is reached, if there are any nodes.
    pub fn peak_tick(&self) -> Option<usize> {
        let peak = self.transient_peak();
        self.transient.iter().position(|&b| b == peak)
    }
}

fn running_sums(deltas: &[i128]) -> impl Iterator<Item = Bytes> + '_ {
    deltas.iter().scan(0i128, |sum, delta| {
        *sum += delta;
        Some(Bytes((*sum).min(transient::MOST.into()) as u64))
    })
}

/// For each storage, the half-open range of ticks during which it may be live: from the first tick at which it may be written to
/// after the last at which it may be read. Inputs, initializers and outputs belong to the caller and live from the start, or
/// to the end; a variable that is swapped out and in has two storages.
fn live_ranges(graph: &Graph, storages: &Storages, lines: &Lines) -> Vec<Range<u32>> {
    let mut live: Vec<Option<Range<u32>>> = vec![None; storages.len()];
    let mut extend = |storage: StorageId, from: u32, to: u32| {
        let range = live[storage.as_u32() as usize].get_or_insert(from..to);
        *range = range.start.min(from)..range.end.max(to);
    };
    let ticks = graph.ticks();
    let tick = |node: NodeId| ticks[node.as_u32() as usize];
    let computing = &lines.nodes[COMPUTE];
    let end = graph.order().len() as u32;
    for (id, storage) in storages.iter() {
        if storage.is_given(graph) {
            extend(id, 0, if storage.moves == Some(Moves::Leaves) { 0 } else { end });
        } else if storage.moves == Some(Moves::Returns) {
            extend(id, end, end);
        }
    }
    for &id in graph.order() {
        let node = graph.node(id);
        let (start, finish) = if lines.line(id) == COMPUTE {
            (tick(id), tick(id) + 1)
        } else {
            let before =
                lines.done(id)[COMPUTE].checked_sub(1).map(|last| tick(computing[last as usize]) + 1);
            let after = computing.get(lines.next(id) as usize).map(|&next| tick(next));
            (before.unwrap_or(0), after.unwrap_or(end))
        };
        for value in node.defines().chain(graph.uses(id)) {
            extend(storages.storage(value), start, finish);
        }
    }
    for &value in &graph.outputs {
        extend(storages.storage(value), end, end);
    }
    live.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four ticks of compute on 4-byte tensors, with one value swapped around `b` and `c`.
    fn swapped(release: &str, trigger: &str) -> MemoryTimeline {
        let text = format!(
            "g (float[1] x) => (float[1] e) {{
                [a] float[1] h = Relu(x)
                [out] float[1]@host h_host = ai.lmsc.SwapOut(h)
                [b] float[1] p = Relu(x)
                [c] float[1] q = Relu(p) {release}
                [d] float[1] r = Relu(q)
                [in] float[1] h_in = ai.lmsc.SwapIn(h_host) {trigger}
                [e] float[1] e = Add(h_in, r)
            }}"
        );
        let graph = Graph::parse(&text).unwrap();
        lmsc_ir::verify(&graph).unwrap();
        MemoryTimeline::of(&graph)
    }

    fn transient(memory: &MemoryTimeline) -> Vec<u64> {
        memory.transient.iter().map(|b| b.0 / 4).collect()
    }

    #[test]
    fn a_value_lives_from_its_definition_to_its_last_use() {
        let text = "g (float[1] x) => (float[1] e) {
            [a] float[1] h = Relu(x)
            [b] float[1] p = Relu(h)
            [dead] float[1] dead = Relu(x)
            [c] float[1] q = Relu(p)
            [d] float[1] e = Add(h, q)
        }";
        let memory = MemoryTimeline::of(&Graph::parse(text).unwrap());
        assert_eq!(memory.resident, Bytes(4));
        assert_eq!(transient(&memory), [1, 2, 3, 3, 3]);
        assert_eq!((memory.peak(), memory.peak_tick()), (Bytes(16), Some(2)));
    }

    #[test]
    fn release_and_trigger_bound_the_absence() {
        // a, out, b, c, d, in, e: the copy is released at c and swapped in after d.
        assert_eq!(transient(&swapped("after [out]", "after [d]")), [1, 1, 2, 2, 2, 2, 3]);
    }

    #[test]
    fn without_a_release_edge_the_copy_may_last_until_it_comes_back() {
        assert_eq!(transient(&swapped("", "after [d]")), [1, 1, 2, 3, 3, 2, 3]);
    }

    #[test]
    fn without_a_trigger_the_swap_in_may_start_at_once() {
        assert_eq!(transient(&swapped("after [out]", "")), [1, 1, 2, 3, 3, 2, 3]);
    }

    /// `p` is swapped out by `c` at the latest, and `h` is swapped in between `b` and `c`.
    fn crossing(wait: &str) -> MemoryTimeline {
        let text = format!(
            "g (float[1] x) => (float[1] e) {{
                [a] float[1] h = Relu(x)
                [out_h] float[1]@host h_host = ai.lmsc.SwapOut(h)
                [p] float[1] p = Relu(x) after [out_h]
                [out_p] float[1]@host p_host = ai.lmsc.SwapOut(p)
                [b] float[1] q = Relu(x)
                [in_h] float[1] h_in = ai.lmsc.SwapIn(h_host) after [b{wait}]
                [c] float[1] r = Add(h_in, q) after [out_p]
                [in_p] float[1] p_in = ai.lmsc.SwapIn(p_host) after [c]
                [e] float[1] e = Add(p_in, r)
            }}"
        );
        MemoryTimeline::of(&Graph::parse(&text).unwrap())
    }

    #[test]
    fn a_result_that_waits_for_a_swap_out_is_never_resident_beside_it() {
        // a, out_h, p, out_p, b, in_h, c, in_p, e.
        assert_eq!(transient(&crossing(", out_p")), [1, 1, 1, 1, 2, 2, 3, 2, 3]);
        assert_eq!(transient(&crossing("")), [1, 1, 1, 1, 2, 3, 3, 2, 3], "both may be there before c");
    }

    #[test]
    fn host_bytes_are_counted() {
        assert_eq!(swapped("after [out]", "after [d]").host_peak, Bytes(4));
    }
}
