//! The three lines in which the nodes of a graph run, and the nodes that have certainly completed before or start after each.

use lmsc_ir::{Graph, NodeId};

/// Computing nodes.
pub(super) const COMPUTE: usize = 0;
/// Copies to the host.
pub(super) const OUT: usize = 1;
/// Copies from the host.
pub(super) const IN: usize = 2;

/// The nodes of a graph in their lines. Each line runs in the graph's order; different lines run concurrently, as far as the
/// edges allow.
pub(super) struct Lines {
    /// The nodes of each line, in the order.
    pub(super) nodes: [Vec<NodeId>; 3],
    /// For each node, its line.
    line: Vec<u8>,
    /// For each node, its position in its line.
    position: Vec<u32>,
    /// For each node, the number of nodes of each line that have certainly completed when it starts.
    done: Vec<[u32; 3]>,
    /// For each node, the position of the first computing node that certainly starts after it has completed.
    next: Vec<u32>,
}

impl Lines {
    /// The lines of the graph, whose order must follow its edges.
    pub(super) fn of(graph: &Graph) -> Lines {
        let count = graph.node_capacity();
        let mut lines = Lines {
            nodes: Default::default(),
            line: vec![0; count],
            position: vec![0; count],
            done: vec![[0; 3]; count],
            next: vec![u32::MAX; count],
        };
        let mut so_far = [[0u32; 3]; 3];
        for &id in graph.order() {
            let op = &graph.node(id).op;
            let line = match (op.is_swap_out(), op.is_swap_in()) {
                (true, _) => OUT,
                (_, true) => IN,
                _ => COMPUTE,
            };
            let mut done = so_far[line];
            for before in graph.predecessors(id) {
                let (other, position) = (lines.line(before), lines.position(before));
                done[other] = done[other].max(position + 1);
                let its = lines.done[before.as_u32() as usize];
                done = std::array::from_fn(|l| done[l].max(its[l]));
            }
            let index = id.as_u32() as usize;
            lines.line[index] = line as u8;
            lines.position[index] = lines.nodes[line].len() as u32;
            lines.done[index] = done;
            lines.nodes[line].push(id);
            so_far[line] = done;
            so_far[line][line] += 1;
        }
        lines.look_ahead(graph);
        lines
    }

    fn look_ahead(&mut self, graph: &Graph) {
        let mut next_in_line = [u32::MAX; 3];
        for &id in graph.order().iter().rev() {
            let line = self.line(id);
            let starts = match line {
                COMPUTE => self.position(id),
                _ => self.next(id).min(next_in_line[line]),
            };
            next_in_line[line] = starts;
            if line != COMPUTE {
                self.next[id.as_u32() as usize] = starts;
            }
            for before in graph.predecessors(id) {
                let next = &mut self.next[before.as_u32() as usize];
                *next = starts.min(*next);
            }
        }
    }

    /// The node's line.
    pub(super) fn line(&self, node: NodeId) -> usize {
        self.line[node.as_u32() as usize].into()
    }

    /// The node's position in its line.
    pub(super) fn position(&self, node: NodeId) -> u32 {
        self.position[node.as_u32() as usize]
    }

    /// The number of nodes of each line that have certainly completed when the node starts.
    pub(super) fn done(&self, node: NodeId) -> [u32; 3] {
        self.done[node.as_u32() as usize]
    }

    /// The position, in its line, of the first computing node that certainly starts after the copy has completed; the largest
    /// number if there is none.
    pub(super) fn next(&self, copy: NodeId) -> u32 {
        self.next[copy.as_u32() as usize]
    }
}
