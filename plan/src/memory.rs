//! How many bytes of the device a graph needs while it runs in its order.
//!
//! The compute nodes run one after the other, as the order says. Copies run beside them, so a copy counts for as
//! long as the edges let it last, not for as long as it would take: a SwapIn holds its memory from the first
//! moment at which its predecessors may all have completed, and what a SwapOut reads is free only once a compute
//! node has started that an edge orders after the copy. Peaks computed here are therefore guarantees: no timing
//! of the copies can exceed them.

use std::ops::Range;

use lmsc_ir::{Bytes, Def, Graph, NodeId, StorageId, Storages, ValueId};

/// When every storage of a graph is live, and how many bytes that makes at every tick.
#[derive(Clone, Debug)]
pub struct Memory {
    /// What occupies memory.
    pub storages: Storages,
    /// By storage, the half-open range of ticks during which it is live.
    pub live: Vec<Range<u32>>,
    /// Device bytes that are there throughout: graph inputs and initializers, the variables among them.
    pub resident: Bytes,
    /// By tick, device bytes beyond [`Memory::resident`] while the node of that tick runs.
    pub transient: Vec<Bytes>,
    /// Most host bytes that swapped values occupy at once.
    pub host_peak: Bytes,
}

impl Memory {
    /// The memory of the graph, run in its order.
    ///
    /// The order must be topological (invariant I2). Near-linear.
    pub fn of(graph: &Graph) -> Memory {
        let storages = Storages::of(graph);
        let live = live_ranges(graph, &storages);
        let ticks = graph.order().len();
        let mut resident = Bytes::ZERO;
        let mut device = vec![0i128; ticks + 1];
        let mut host = vec![0i128; ticks + 1];
        for (id, storage) in storages.iter() {
            let range = &live[id.as_u32() as usize];
            let given = !matches!(graph.def(storage.root), Def::Result(..));
            if given && !storage.on_host {
                resident += storage.bytes;
            } else if !given {
                let deltas = if storage.on_host { &mut host } else { &mut device };
                deltas[range.start as usize] += i128::from(storage.bytes.0);
                deltas[range.end as usize] -= i128::from(storage.bytes.0);
            }
        }
        let transient: Vec<Bytes> = running_sums(&device[..ticks]).collect();
        let host_peak = running_sums(&host[..ticks]).max().unwrap_or_default();
        Memory { storages, live, resident, transient, host_peak }
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

    /// The ticks during which the value's storage is live.
    pub fn live_range(&self, value: ValueId) -> Range<u32> {
        self.live[self.storages.storage(value).as_u32() as usize].clone()
    }
}

/// More than all values of a valid graph have together (I5), copies apart. Planners count in 64 signed bits.
const MOST: i128 = 1 << 61;

fn running_sums(deltas: &[i128]) -> impl Iterator<Item = Bytes> + '_ {
    deltas.iter().scan(0i128, |sum, delta| {
        *sum += delta;
        Some(Bytes((*sum).min(MOST) as u64))
    })
}

/// By storage, the half-open range of ticks during which it is live: from the first tick at which it may be
/// written to after the last at which it may be read. Inputs, initializers and outputs are the caller's and live
/// from the start, or to the end.
fn live_ranges(graph: &Graph, storages: &Storages) -> Vec<Range<u32>> {
    let copies = Copies::of(graph);
    let mut live: Vec<Option<Range<u32>>> = vec![None; storages.len()];
    let mut extend = |storage: StorageId, from: u32, to: u32| {
        let range = live[storage.as_u32() as usize].get_or_insert(from..to);
        *range = range.start.min(from)..range.end.max(to);
    };
    let end = graph.order().len() as u32;
    for (id, storage) in storages.iter() {
        if !matches!(graph.def(storage.root), Def::Result(..)) {
            extend(id, 0, end);
        }
    }
    for (tick, &id) in graph.order().iter().enumerate() {
        let node = graph.node(id);
        let (start, finish) = match node.op.is_swap() {
            true => (copies.start[id.as_u32() as usize], copies.finish[id.as_u32() as usize]),
            false => (tick as u32, tick as u32 + 1),
        };
        for value in node.defines() {
            extend(storages.storage(value), start, finish);
        }
        for value in node.reads() {
            extend(storages.storage(value), start, finish);
        }
    }
    for &value in &graph.outputs {
        extend(storages.storage(value), end, end);
    }
    live.into_iter().map(Option::unwrap_or_default).collect()
}

/// Between which ticks the edges let each copy happen. Indexed by node; meaningless for compute nodes.
struct Copies {
    /// The first tick at which the copy may start.
    start: Vec<u32>,
    /// The first tick at which it is certainly complete.
    finish: Vec<u32>,
}

impl Copies {
    fn of(graph: &Graph) -> Copies {
        let index = |n: NodeId| n.as_u32() as usize;
        let end = graph.order().len() as u32;
        let ticks = graph.ticks();
        let mut start = vec![0; graph.node_capacity()];
        let mut finish = vec![end; graph.node_capacity()];
        let is_copy = |n: NodeId| graph.node(n).op.is_swap();
        for &id in graph.order().iter().filter(|&&n| is_copy(n)) {
            let earliest = graph
                .predecessors(id)
                .map(|p| if is_copy(p) { start[index(p)] } else { ticks[index(p)] + 1 });
            start[index(id)] = earliest.max().unwrap_or(0);
        }
        // In reverse, so that a copy that another one waits for is certain no later than that one is.
        for &id in graph.order().iter().rev() {
            let certain = if is_copy(id) { finish[index(id)] } else { ticks[index(id)] };
            for before in graph.predecessors(id).filter(|&p| is_copy(p)) {
                finish[index(before)] = finish[index(before)].min(certain);
            }
        }
        // Where a SwapIn may start in the very gap before the node that waits for a SwapOut, and does not itself
        // wait for it, the two can be there together: the SwapOut counts one tick longer.
        // By tick, the swap-ins that may start there; by swap-out, those of them at its own tick that wait for it.
        let mut starting = vec![0u32; graph.order().len() + 1];
        let mut waiting = vec![0u32; graph.node_capacity()];
        for &id in graph.order().iter().filter(|&&n| graph.node(n).op.is_swap_in()) {
            let at = start[index(id)];
            starting[at as usize] += 1;
            let mut outs: Vec<NodeId> = graph
                .predecessors(id)
                .filter(|&p| graph.node(p).op.is_swap_out() && finish[index(p)] == at)
                .collect();
            outs.sort_unstable();
            outs.dedup();
            outs.into_iter().for_each(|out| waiting[index(out)] += 1);
        }
        for &id in graph.order().iter().filter(|&&n| graph.node(n).op.is_swap_out()) {
            let at = finish[index(id)];
            if at < end && waiting[index(id)] < starting[at as usize] {
                finish[index(id)] = at + 1;
            }
        }
        // What comes back has left: its swap-in starts after its swap-out, so one of the two copies is there.
        for &id in graph.order().iter().filter(|&&n| graph.node(n).op.is_swap_in()) {
            for out in graph
                .predecessors(id)
                .filter(|&p| graph.node(p).op.is_swap_out() && copies_what(graph, p, id))
            {
                finish[index(out)] = finish[index(out)].min(start[index(id)]);
            }
        }
        Copies { start, finish }
    }
}

/// Whether the SwapIn brings back what the SwapOut took away.
fn copies_what(graph: &Graph, swap_out: NodeId, swap_in: NodeId) -> bool {
    let host = graph.node(swap_out).results.first().copied().flatten();
    host.is_some() && graph.node(swap_in).operands.first().copied().flatten() == host
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four ticks of compute on 4-byte tensors, with one value swapped around `b` and `c`.
    fn swapped(release: &str, trigger: &str) -> Memory {
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
        Memory::of(&graph)
    }

    fn transient(memory: &Memory) -> Vec<u64> {
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
        let memory = Memory::of(&Graph::parse(text).unwrap());
        assert_eq!(memory.resident, Bytes(4));
        assert_eq!(transient(&memory), [1, 2, 3, 3, 3]);
        assert_eq!((memory.peak(), memory.peak_tick()), (Bytes(16), Some(2)));
    }

    #[test]
    fn release_and_trigger_bound_the_absence() {
        // a, out, b, c, d, in, e: the copy is released at c and comes back after d.
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

    #[test]
    fn host_bytes_are_counted() {
        assert_eq!(swapped("after [out]", "after [d]").host_peak, Bytes(4));
    }
}
