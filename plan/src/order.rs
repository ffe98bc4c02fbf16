//! In which order to run what the edges leave free, so that less is live at once.
//!
//! Exporters list gradients of weights, sums of gradients and updates long after what they read is there, and
//! masks and shapes long before anything reads them. Moving such nodes costs no time and often more memory than
//! swapping saves.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lmsc_ir::{Adjacency, Bytes, Def, Graph, NodeId, StorageId, Storages};

/// The order with the lowest peak of a few: the graph's own; nodes that free more than they bring moved forward
/// to where they can first run; nodes that bring more than they free moved back to where they are first needed;
/// and both. Of equal peaks, the one with fewer bytes live over all ticks, the graph's own first.
///
/// Nodes that draw random numbers keep their order among themselves. A graph with copies in it keeps its own, and
/// so does one whose peak is not above `enough`. `workspace` is what a node needs besides its values while it runs.
pub fn lower_peak(graph: &Graph, enough: Option<Bytes>, workspace: impl Fn(NodeId) -> Bytes) -> Vec<NodeId> {
    let own = graph.order().to_vec();
    if own.iter().any(|&n| graph.node(n).op.is_swap()) {
        return own;
    }
    let storages = Storages::of(graph);
    let touches = Touches::of(graph, &storages);
    let edges = Edges { before: graph.predecessor_lists(), after: graph.successor_lists() };
    let listing = |order: &[NodeId], way: Way, moves: bool| {
        Listing::new(graph, &storages, &touches, &edges, order, way, moves).run(&workspace)
    };
    let backward = |order: &Listed| {
        let reversed: Vec<NodeId> = order.nodes.iter().rev().copied().collect();
        let mut listed = listing(&reversed, Way::Backward, true);
        listed.nodes.reverse();
        listed
    };
    let own = listing(&own, Way::Forward, false);
    if enough.is_some_and(|enough| own.peak <= enough) {
        return own.nodes;
    }
    let early = listing(&own.nodes, Way::Forward, true);
    let late = backward(&own);
    let both = listing(&late.nodes, Way::Forward, true);
    let late = listing(&late.nodes, Way::Forward, false);
    // Of equals the first.
    let best = [own, early, late, both].into_iter().min_by_key(|listed| (listed.peak, listed.area));
    best.map(|listed| listed.nodes).unwrap_or_default()
}

/// An order, the most bytes live at once in it, and the sum of the bytes live over all its ticks.
struct Listed {
    nodes: Vec<NodeId>,
    peak: Bytes,
    area: u128,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Forward,
    Backward,
}

struct Edges {
    before: Adjacency,
    after: Adjacency,
}

/// By node, the storages that it reads or defines, each once.
struct Touches {
    lists: Vec<(u32, u32)>,
    storages: Vec<StorageId>,
}

impl Touches {
    fn of(graph: &Graph, storages: &Storages) -> Touches {
        let mut touches = Touches { lists: vec![(0, 0); graph.node_capacity()], storages: Vec::new() };
        let mut last = vec![u32::MAX; storages.len()];
        for &id in graph.order() {
            let start = touches.storages.len() as u32;
            let node = graph.node(id);
            for storage in graph.uses(id).chain(node.defines()).map(|v| storages.storage(v)) {
                if std::mem::replace(&mut last[storage.as_u32() as usize], id.as_u32()) != id.as_u32() {
                    touches.storages.push(storage);
                }
            }
            touches.lists[number(id)] = (start, touches.storages.len() as u32);
        }
        touches
    }

    fn of_node(&self, node: NodeId) -> &[StorageId] {
        let (start, end) = self.lists[number(node)];
        &self.storages[start as usize..end as usize]
    }
}

/// List scheduling over a given order, in which whatever gains memory at once goes first.
struct Listing<'a> {
    graph: &'a Graph,
    storages: &'a Storages,
    touches: &'a Touches,
    order: &'a [NodeId],
    /// Whether nodes may leave their places.
    moves: bool,
    after: &'a Adjacency,
    /// By node, how many nodes must still run before it.
    waits: Vec<u32>,
    /// By node, its place in the given order.
    place: Vec<u32>,
    done: Vec<bool>,
    /// By storage, how many nodes have still to touch it, and the sum of their numbers: where one is left, its
    /// number.
    left: Vec<(u32, u64)>,
    /// By storage, whether it is there already, and whether it stays whatever happens.
    there: Vec<bool>,
    stays: Vec<bool>,
    gains: BinaryHeap<Reverse<(u32, NodeId)>>,
    live: Bytes,
    listed: Listed,
}

impl<'a> Listing<'a> {
    fn new(
        graph: &'a Graph,
        storages: &'a Storages,
        touches: &'a Touches,
        edges: &'a Edges,
        order: &'a [NodeId],
        way: Way,
        moves: bool,
    ) -> Listing<'a> {
        let after = match way {
            Way::Forward => &edges.after,
            Way::Backward => &edges.before,
        };
        let mut waits = vec![0; graph.node_capacity()];
        let mut place = vec![0; graph.node_capacity()];
        let mut left = vec![(0, 0); storages.len()];
        for (index, &node) in order.iter().enumerate() {
            after.of(node).iter().for_each(|&next| waits[number(next)] += 1);
            place[number(node)] = index as u32;
            for storage in touches.of_node(node) {
                let (count, sum) = &mut left[storage.as_u32() as usize];
                *count += 1;
                *sum += u64::from(node.as_u32());
            }
        }
        let given = |storage: &lmsc_ir::Storage| !matches!(graph.def(storage.root), Def::Result(..));
        let mut there: Vec<bool> = storages.iter().map(|(_, storage)| given(storage)).collect();
        let mut stays = there.clone();
        // The caller's results are there when all is done: seen from the end, at once.
        for &value in &graph.outputs {
            let end = if way == Way::Backward { &mut there } else { &mut stays };
            end[storages.storage(value).as_u32() as usize] = true;
        }
        let there_now = storages.iter().zip(&there).filter(|(_, there)| **there);
        let live = there_now.map(|((_, storage), _)| storage.bytes).sum();
        let nodes = Vec::with_capacity(order.len());
        Listing {
            graph,
            storages,
            touches,
            order,
            moves,
            after,
            waits,
            place,
            done: vec![false; graph.node_capacity()],
            left,
            there,
            stays,
            gains: BinaryHeap::new(),
            live,
            listed: Listed { nodes, peak: Bytes::ZERO, area: 0 },
        }
    }

    fn run(mut self, workspace: &dyn Fn(NodeId) -> Bytes) -> Listed {
        self.order.iter().for_each(|&node| self.consider(node));
        for &node in self.order {
            while let Some(Reverse((_, gaining))) = self.gains.pop() {
                let (brought, freed) = self.change(gaining);
                if !self.done[number(gaining)] && freed > brought {
                    self.take(gaining, workspace(gaining));
                }
            }
            if !self.done[number(node)] {
                self.take(node, workspace(node));
            }
        }
        self.listed
    }

    fn take(&mut self, node: NodeId, workspace: Bytes) {
        let (brought, freed) = self.change(node);
        self.live += brought;
        self.listed.peak = self.listed.peak.max(self.live + workspace);
        self.listed.area += u128::from(self.live.0);
        self.live = self.live.saturating_sub(freed);
        self.listed.nodes.push(node);
        self.done[number(node)] = true;
        for storage in self.touches.of_node(node) {
            let index = storage.as_u32() as usize;
            self.there[index] = true;
            self.left[index].0 -= 1;
            self.left[index].1 -= u64::from(node.as_u32());
            if self.left[index].0 == 1 {
                self.consider(NodeId::from_u32(self.left[index].1 as u32));
            }
        }
        for &next in self.after.of(node) {
            self.waits[number(next)] -= 1;
            self.consider(next);
        }
    }

    /// Puts the node where it is looked at before the next in the order, if it can run and is free to move.
    fn consider(&mut self, node: NodeId) {
        let moves = self.moves && !self.graph.node(node).op.effects().random;
        if moves && self.waits[number(node)] == 0 && !self.done[number(node)] {
            self.gains.push(Reverse((self.place[number(node)], node)));
        }
    }

    /// The bytes that the node brings, and those that are free after it.
    fn change(&self, node: NodeId) -> (Bytes, Bytes) {
        let (mut brought, mut freed) = (Bytes::ZERO, Bytes::ZERO);
        for &storage in self.touches.of_node(node) {
            let index = storage.as_u32() as usize;
            let bytes = self.storages.get(storage).bytes;
            if !self.there[index] {
                brought += bytes;
            }
            if self.left[index].0 == 1 && !self.stays[index] {
                freed += bytes;
            }
        }
        (brought, freed)
    }
}

fn number(node: NodeId) -> usize {
    node.as_u32() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(text: &str) -> Vec<String> {
        let graph = Graph::parse(text).unwrap();
        lmsc_ir::verify(&graph).unwrap();
        let order = lower_peak(&graph, None, |_| Bytes::ZERO);
        let mut moved = graph.clone();
        moved.set_order(order.clone());
        lmsc_ir::verify(&moved).unwrap();
        order.into_iter().map(|n| graph.node(n).name.to_string()).collect()
    }

    #[test]
    fn what_frees_memory_runs_as_soon_as_it_can() {
        // `sum` frees eight elements for one; the exporter listed it last.
        let text = "g (float[8] x) => (float[] s, float[8] z) {
            [a] float[8] a = Relu(x)
            [b] float[8] b = Exp(x)
            [c] float[8] c = Exp(b)
            [z] float[8] z = Exp(c)
            [sum] float[] s = ReduceSum<keepdims = 0>(a)
        }";
        assert_eq!(order(text), ["a", "sum", "b", "c", "z"]);
    }

    #[test]
    fn what_brings_memory_runs_as_late_as_it_can() {
        let text = "g (float[8] x, float[] s) => (float[8] z) {
            [wide] float[8] wide = Expand(s, x)
            [b] float[8] b = Exp(x)
            [c] float[8] c = Exp(b)
            [z] float[8] z = Add(c, wide)
        }";
        assert_eq!(order(text), ["b", "c", "wide", "z"]);
    }

    #[test]
    fn an_operand_named_twice_is_waited_for_once() {
        let text = "g (float[8] x) => (float[8] z, float[] s) {
            [a] float[8] a = Relu(x)
            [c] float[8] c = Exp(x)
            [z] float[8] z = Exp(c)
            [b] float[8] b = Mul(a, a)
            [s] float[] s = ReduceSum<keepdims = 0>(b)
        }";
        assert_eq!(order(text), ["c", "z", "a", "b", "s"]);
    }

    #[test]
    fn random_nodes_keep_their_order() {
        let text = "g (float[8] x) => (float[] s, float[8] z, float[] t) {
            [a] float[8] a = Relu(x)
            [z] float[8] z = RandomNormalLike(x)
            [t] float[] t = RandomUniform<shape = ints []>()
            [sum] float[] s = ReduceSum<keepdims = 0>(a)
        }";
        let order = order(text);
        let at = |name: &str| order.iter().position(|n| n == name);
        assert!(at("z") < at("t"));
    }
}
