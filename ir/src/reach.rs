//! Reachability over data and control edges, for many pairs at once.

use crate::{Graph, NodeId};

/// Words of the mask that one sweep carries for each node.
const WORDS: usize = 4;
/// How many sources one sweep follows.
const SOURCES: usize = 64 * WORDS;

/// For every pair `(from, to)`, whether a path of data and control edges leads from the one to the other. A node
/// reaches itself.
///
/// Exact, in one sweep over the order for every 256 different sources. The order must be topological.
///
/// ```
/// let text = "g (float[2] x) => (float[2] z) {
///     [a] float[2] y = Relu(x)
///     [b] float[2] z = Relu(y)
///     [c] float[2] u = Relu(x)
/// }";
/// let graph = lmsc_ir::Graph::parse(text).unwrap();
/// let [a, b, c] = ["a", "b", "c"].map(|name| graph.node_named(name).unwrap());
/// assert_eq!(lmsc_ir::reaches(&graph, &[(a, b), (b, a), (a, c)]), [true, false, false]);
/// ```
pub fn reaches(graph: &Graph, pairs: &[(NodeId, NodeId)]) -> Vec<bool> {
    if pairs.is_empty() {
        return Vec::new();
    }
    let before = ticks_before(graph);
    let ticks = graph.ticks();
    let tick = |node: NodeId| ticks[node.as_u32() as usize] as usize;
    let mut by_source: Vec<usize> = (0..pairs.len()).collect();
    by_source.sort_by_key(|&i| tick(pairs[i].0));

    let mut answers = vec![false; pairs.len()];
    let mut masks = vec![[0u64; WORDS]; graph.order().len()];
    let mut rest = &by_source[..];
    while let Some(&first) = rest.first() {
        // Take pairs until their sources fill the mask.
        let start = tick(pairs[first].0);
        let (mut bits, mut taken, mut last_source, mut end) = (0, 0, usize::MAX, start);
        for &i in rest {
            let source = tick(pairs[i].0);
            if source != last_source {
                if bits == SOURCES {
                    break;
                }
                (bits, last_source) = (bits + 1, source);
            }
            end = end.max(tick(pairs[i].1));
            taken += 1;
        }
        let (batch, later) = rest.split_at(taken);
        rest = later;

        // The mask of the node at `start + k` stands at `k`; bit b is set where source b reaches the node.
        let masks = &mut masks[..=end - start];
        masks.fill([0; WORDS]);
        let (mut bit, mut last_source) = (0, usize::MAX);
        let mut bit_of = Vec::with_capacity(batch.len());
        for &i in batch {
            let source = tick(pairs[i].0);
            if source != last_source {
                (bit, last_source) = (if last_source == usize::MAX { 0 } else { bit + 1 }, source);
                masks[source - start][bit / 64] |= 1 << (bit % 64);
            }
            bit_of.push(bit);
        }
        for k in 0..masks.len() {
            let mut mask = masks[k];
            for &from in before.of(start + k) {
                let from = (from as usize).wrapping_sub(start);
                if from < k {
                    for (word, more) in mask.iter_mut().zip(masks[from]) {
                        *word |= more;
                    }
                }
            }
            masks[k] = mask;
        }
        for (&i, bit) in batch.iter().zip(bit_of) {
            let target = tick(pairs[i].1).checked_sub(start);
            answers[i] = target.is_some_and(|k| masks[k][bit / 64] >> (bit % 64) & 1 == 1);
        }
    }
    answers
}

/// By tick, the ticks of the predecessors.
struct TicksBefore {
    starts: Vec<u32>,
    ticks: Vec<u32>,
}

impl TicksBefore {
    fn of(&self, tick: usize) -> &[u32] {
        &self.ticks[self.starts[tick] as usize..self.starts[tick + 1] as usize]
    }
}

fn ticks_before(graph: &Graph) -> TicksBefore {
    let tick_of = graph.ticks();
    let mut before = TicksBefore { starts: vec![0], ticks: Vec::with_capacity(2 * graph.order().len()) };
    for &node in graph.order() {
        before.ticks.extend(graph.predecessors(node).map(|p| tick_of[p.as_u32() as usize]));
        before.starts.push(before.ticks.len() as u32);
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 600 sources in a comb: tooth i hangs on spine node i and nothing else.
    #[test]
    fn more_sources_than_one_mask_holds() {
        let mut text = "g (float[1] x) => (float[1] s0) {\n[s0] float[1] s0 = Relu(x)\n".to_owned();
        for i in 1..600 {
            text += &format!("[s{i}] float[1] s{i} = Relu(s{})\n[t{i}] float[1] t{i} = Relu(s{i})\n", i - 1);
        }
        let graph = Graph::parse(&(text + "}")).unwrap();
        let node = |name: String| graph.node_named(&name).unwrap();
        let mut pairs = Vec::new();
        let mut expected = Vec::new();
        for i in (1..600).rev() {
            for j in [1, 77, 300, 599] {
                pairs.extend([
                    (node(format!("s{i}")), node(format!("t{j}"))),
                    (node(format!("t{i}")), node(format!("s{j}"))),
                ]);
                expected.extend([i <= j, false]);
            }
        }
        assert_eq!(reaches(&graph, &pairs), expected);
    }
}
