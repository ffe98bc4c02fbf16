//! Reachability and levels beside petgraph's, which walks the same graph through its visit traits.
//!
//! `cargo bench -p lmsc-testing --bench order`; the columns are medians over the samples. On two cores, for 1,000 and
//! 10,000 nodes, levels take 3.1 and 2.1 times as long with petgraph's order, and reachability of 2,000 pairs 58 and 546 times as long
//! with its search for each pair. So `lmsc-ir` has its own.

use std::iter::Copied;
use std::slice::Iter;

use divan::Bencher;
use divan::counter::ItemsCount;
use lmsc_ir::{Graph, NodeId};
use lmsc_testing::{Rng, Size, training_graph};
use petgraph::Direction;
use petgraph::algo::{DfsSpace, has_path_connecting, toposort};
use petgraph::visit::{
    GraphBase, IntoNeighbors, IntoNeighborsDirected, IntoNodeIdentifiers, VisitMap, Visitable,
};

const NODES: [usize; 2] = [1_000, 10_000];

fn main() {
    divan::main();
}

/// A graph as petgraph sees it: its nodes by tick, with the nodes that read their results.
struct View {
    graph: Graph,
    after: Vec<Vec<NodeId>>,
    before: Vec<Vec<NodeId>>,
}

impl View {
    fn new(nodes: usize) -> View {
        let graph = training_graph(&mut Rng::new(7), Size::nodes(nodes));
        let mut after = vec![Vec::new(); graph.node_capacity()];
        let mut before = after.clone();
        for &node in graph.order() {
            for from in graph.predecessors(node) {
                after[from.as_u32() as usize].push(node);
                before[node.as_u32() as usize].push(from);
            }
        }
        View { graph, after, before }
    }

    /// The first 2,000 pairs of nodes, the second 64 operators behind the first.
    fn pairs(&self) -> Vec<(NodeId, NodeId)> {
        let order = self.graph.order();
        order.iter().copied().zip(order.iter().copied().skip(64)).take(2_000).collect()
    }
}

/// The nodes that a walk has visited.
struct Visited(Vec<bool>);

impl VisitMap<NodeId> for Visited {
    fn visit(&mut self, node: NodeId) -> bool {
        !std::mem::replace(&mut self.0[node.as_u32() as usize], true)
    }

    fn is_visited(&self, node: &NodeId) -> bool {
        self.0[node.as_u32() as usize]
    }

    fn unvisit(&mut self, node: NodeId) -> bool {
        std::mem::replace(&mut self.0[node.as_u32() as usize], false)
    }
}

impl GraphBase for View {
    type NodeId = NodeId;
    type EdgeId = (NodeId, NodeId);
}

impl Visitable for View {
    type Map = Visited;

    fn visit_map(&self) -> Visited {
        Visited(vec![false; self.graph.node_capacity()])
    }

    fn reset_map(&self, map: &mut Visited) {
        map.0.fill(false);
    }
}

impl<'a> IntoNeighbors for &'a View {
    type Neighbors = Copied<Iter<'a, NodeId>>;

    fn neighbors(self, node: NodeId) -> Self::Neighbors {
        self.after[node.as_u32() as usize].iter().copied()
    }
}

impl<'a> IntoNeighborsDirected for &'a View {
    type NeighborsDirected = Copied<Iter<'a, NodeId>>;

    fn neighbors_directed(self, node: NodeId, direction: Direction) -> Self::NeighborsDirected {
        let lists = if direction == Direction::Outgoing { &self.after } else { &self.before };
        lists[node.as_u32() as usize].iter().copied()
    }
}

impl<'a> IntoNodeIdentifiers for &'a View {
    type NodeIdentifiers = Copied<Iter<'a, NodeId>>;

    fn node_identifiers(self) -> Self::NodeIdentifiers {
        self.graph.order().iter().copied()
    }
}

/// Levels along the order that a graph always has.
#[divan::bench(args = NODES)]
fn levels_ours(bencher: Bencher, nodes: usize) {
    let view = View::new(nodes);
    bencher.counter(ItemsCount::new(nodes)).bench(|| lmsc_ir::levels(&view.graph));
}

/// Levels along petgraph's order.
#[divan::bench(args = NODES)]
fn levels_petgraph(bencher: Bencher, nodes: usize) {
    let view = View::new(nodes);
    bencher.counter(ItemsCount::new(nodes)).bench(|| {
        let mut levels = vec![0u32; view.graph.node_capacity()];
        for node in toposort(&view, None).expect("a graph has no cycle") {
            let before =
                view.before[node.as_u32() as usize].iter().map(|p| levels[p.as_u32() as usize]).max();
            levels[node.as_u32() as usize] = 1 + before.unwrap_or(0);
        }
        levels
    });
}

#[divan::bench(args = NODES)]
fn reaches_ours(bencher: Bencher, nodes: usize) {
    let view = View::new(nodes);
    let pairs = view.pairs();
    bencher.counter(ItemsCount::new(pairs.len())).bench(|| lmsc_ir::reaches(&view.graph, &pairs));
}

#[divan::bench(args = NODES)]
fn reaches_petgraph(bencher: Bencher, nodes: usize) {
    let view = View::new(nodes);
    let pairs = view.pairs();
    let mut space = DfsSpace::new(&view);
    let mut reaches = |&(from, to): &(NodeId, NodeId)| has_path_connecting(&view, from, to, Some(&mut space));
    bencher
        .counter(ItemsCount::new(pairs.len()))
        .bench_local(|| pairs.iter().map(&mut reaches).collect::<Vec<bool>>());
}
