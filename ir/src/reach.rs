//! Reachability over data and control edges, for many pairs at once.

use crate::{Graph, NodeId};

/// Words of the mask that one sweep carries for each node.
const WORDS: usize = 4;
/// Number of sources that one sweep follows.
const SOURCES: usize = 64 * WORDS;

/// For every pair `(from, to)`, whether a path of data and control edges leads from one to the other. A node reaches itself.
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
            // A pair's source may come after every target.
            end = end.max(source).max(tick(pairs[i].1));
            taken += 1;
        }
        let (batch, later) = rest.split_at(taken);
        rest = later;

        // The mask of the node at `start + k` is at index `k`; bit b is set if source b reaches the node.
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
        before.spread(masks, start);
        for (&i, bit) in batch.iter().zip(bit_of) {
            let target = tick(pairs[i].1).checked_sub(start);
            answers[i] = target.is_some_and(|k| masks[k][bit / 64] >> (bit % 64) & 1 == 1);
        }
    }
    answers
}

/// Nodes that must all reach each of some others.
pub(crate) struct Group {
    /// The sources, in execution order.
    pub(crate) sources: Vec<NodeId>,
    /// The targets; a node does not reach itself here.
    pub(crate) targets: Vec<NodeId>,
}

/// For every group and every target, by their positions, the first source from which no path leads there, if there
/// is one.
///
/// The same as calling [`reaches`] for all pairs, without building the pairs.
pub(crate) fn unreached(graph: &Graph, groups: &[Group]) -> Vec<(usize, usize, NodeId)> {
    let before = ticks_before(graph);
    let ticks = graph.ticks();
    let tick = |node: NodeId| ticks[node.as_u32() as usize] as usize;
    let last_target: Vec<Option<usize>> =
        groups.iter().map(|g| g.targets.iter().map(|&t| tick(t)).max()).collect();
    let mut sources: Vec<(usize, usize)> = Vec::new();
    for (index, group) in groups.iter().enumerate().filter(|(index, _)| last_target[*index].is_some()) {
        sources.extend(group.sources.iter().map(|&s| (tick(s), index)));
    }
    sources.sort_unstable();
    sources.dedup();

    let mut found = Vec::new();
    let mut told: Vec<Vec<bool>> = groups.iter().map(|g| vec![false; g.targets.len()]).collect();
    let mut masks = vec![[0u64; WORDS]; graph.order().len()];
    let mut rest = &sources[..];
    while let Some(&(start, _)) = rest.first() {
        let mut batch: Vec<usize> = Vec::with_capacity(SOURCES);
        let mut members: Vec<(usize, usize)> = Vec::new();
        let mut end = start;
        for &(source, group) in rest {
            if batch.last() != Some(&source) {
                if batch.len() == SOURCES {
                    break;
                }
                batch.push(source);
            }
            members.push((group, batch.len() - 1));
            end = end.max(source).max(last_target[group].unwrap_or(0));
        }
        rest = &rest[members.len()..];

        let masks = &mut masks[..=end - start];
        masks.fill([0; WORDS]);
        for (bit, source) in batch.iter().enumerate() {
            masks[source - start][bit / 64] |= 1 << (bit % 64);
        }
        before.spread(masks, start);
        members.sort_unstable();
        for of_group in members.chunk_by(|a, b| a.0 == b.0) {
            let group = of_group[0].0;
            let mut wanted = [0u64; WORDS];
            of_group.iter().for_each(|&(_, bit)| wanted[bit / 64] |= 1 << (bit % 64));
            for (index, &target) in groups[group].targets.iter().enumerate() {
                let reached = tick(target).checked_sub(start).map_or([0; WORDS], |k| masks[k]);
                let all = wanted.iter().zip(reached).all(|(wanted, reached)| wanted & !reached == 0);
                let itself = batch.binary_search(&tick(target)).ok();
                if told[group][index]
                    || all && itself.is_none_or(|bit| wanted[bit / 64] >> (bit % 64) & 1 == 0)
                {
                    continue;
                }
                let misses = |bit: usize| reached[bit / 64] >> (bit % 64) & 1 == 0 || itself == Some(bit);
                if let Some(&(_, bit)) = of_group.iter().find(|&&(_, bit)| misses(bit)) {
                    told[group][index] = true;
                    found.push((group, index, graph.order()[batch[bit]]));
                }
            }
        }
    }
    found
}

/// For each tick, the ticks of the predecessors.
struct TicksBefore {
    starts: Vec<u32>,
    ticks: Vec<u32>,
}

impl TicksBefore {
    fn of(&self, tick: usize) -> &[u32] {
        &self.ticks[self.starts[tick] as usize..self.starts[tick + 1] as usize]
    }

    /// Adds to the mask of every tick those of its predecessors; the first mask is that of tick `start`.
    fn spread(&self, masks: &mut [[u64; WORDS]], start: usize) {
        for k in 0..masks.len() {
            let mut mask = masks[k];
            for &from in self.of(start + k) {
                let from = (from as usize).wrapping_sub(start);
                if from < k {
                    for (word, more) in mask.iter_mut().zip(masks[from]) {
                        *word |= more;
                    }
                }
            }
            masks[k] = mask;
        }
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

    /// 600 sources in a comb: tooth i depends on spine node i and nothing else.
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

    #[test]
    fn a_source_may_come_after_every_target() {
        let text = "g (float[1] x) => (float[1] c) {
            [a] float[1] a = F(x) [b] float[1] b = F(a) [c] float[1] c = F(b) }";
        let graph = Graph::parse(text).unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| graph.node_named(name).unwrap());
        assert_eq!(reaches(&graph, &[(b, a), (c, a), (a, b)]), [false, false, true]);
    }

    #[test]
    fn groups_tell_what_their_pairs_do() {
        let mut text = "g (float[1] x) => (float[1] v0) {\n[v0] float[1] v0 = F(x)\n".to_owned();
        for i in 1..700 {
            text += &format!("[v{i}] float[1] v{i} = F(v{}, v{})\n", (i * 7) % i, (i * i + 3) % i);
        }
        let graph = Graph::parse(&(text + "}")).unwrap();
        let nodes = graph.order();
        let every =
            |from: usize, step: usize| nodes.iter().copied().skip(from).step_by(step).collect::<Vec<_>>();
        let group = |sources, targets| Group { sources, targets };
        let groups = [
            group(every(0, 1), every(650, 1)),
            group(every(0, 300), every(0, 2)),
            group(every(5, 31), every(1, 97)),
            group(vec![nodes[0]], nodes[1..].to_vec()),
            group(vec![nodes[3]], Vec::new()),
            group(vec![nodes[9]], vec![nodes[9]]),
        ];
        let mut expected = Vec::new();
        for (g, group) in groups.iter().enumerate() {
            for (t, &target) in group.targets.iter().enumerate() {
                let pairs: Vec<_> = group.sources.iter().map(|&s| (s, target)).collect();
                let answers = reaches(&graph, &pairs);
                let first = pairs.iter().zip(answers).find(|((s, t), reached)| !reached || s == t);
                expected.extend(first.map(|((s, _), _)| (g, t, *s)));
            }
        }
        let mut found = unreached(&graph, &groups);
        found.sort();
        assert_eq!(found, expected);
        assert!(found.len() > 100 && !found.iter().any(|f| f.0 == 3));
    }
}
