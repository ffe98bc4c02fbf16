//! A layout in nearly linear time, for too many buffers to compare with one another.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::search::Block;

/// For each block, its address: the lowest stretch of time is filled with the block of the longest lifetime that fits it.
///
/// # Source
/// Sekiyama, Imai, Negishi, Kawachiya, *Profile-guided memory optimization for deep neural networks*,
/// arXiv:1804.10001, the best-fit heuristic.
pub(super) fn stack(blocks: &[Block], sections: u32) -> Vec<u64> {
    let mut waiting = Waiting::new(blocks);
    let mut addresses = vec![0; blocks.len()];
    // For each first section, the end and the height of the stretch; and the stretches by height.
    let mut stretches = BTreeMap::from([(0u32, (sections, 0u64))]);
    let mut lowest = BTreeSet::from([(0u64, 0u32)]);
    let mut left = blocks.len();
    while left > 0 {
        let Some((height, begin)) = lowest.pop_first() else { break };
        let (end, _) = stretches.remove(&begin).expect("it is in both");
        let Some(index) = waiting.longest(begin, end) else {
            // Nothing fits: the stretch is raised to the lower of its neighbours.
            let before = stretches.range(..begin).next_back().map(|(&b, &(_, height))| (height, b));
            let after = stretches.get(&end).map(|&(_, height)| (height, end));
            let Some(&(to, _)) = before.iter().chain(&after).min() else { break };
            let (mut from, mut until) = (begin, end);
            if let Some((_, b)) = before.filter(|b| b.0 == to) {
                (from, _) = (b, stretches.remove(&b));
                lowest.remove(&(to, b));
            }
            if let Some((_, e)) = after.filter(|a| a.0 == to) {
                until = stretches.remove(&e).expect("it was just there").0;
                lowest.remove(&(to, e));
            }
            stretches.insert(from, (until, to));
            lowest.insert((to, from));
            continue;
        };
        let block = blocks[index];
        addresses[index] = height.next_multiple_of(block.alignment);
        left -= 1;
        let top = addresses[index] + block.bytes;
        for (from, until, at) in
            [(begin, block.begin, height), (block.begin, block.end, top), (block.end, end, height)]
        {
            if from < until {
                stretches.insert(from, (until, at));
                lowest.insert((at, from));
            }
        }
    }
    addresses
}

/// Blocks without an address, as a tree over their first sections.
struct Waiting<'a> {
    blocks: &'a [Block],
    /// Blocks by their first sections.
    order: Vec<usize>,
    /// By node of the tree, the first end and the largest number of sections in its subtree.
    nodes: Vec<(u32, u32)>,
    leaves: usize,
}

const NONE: (u32, u32) = (u32::MAX, 0);

impl Waiting<'_> {
    fn new(blocks: &[Block]) -> Waiting<'_> {
        let mut order: Vec<usize> = (0..blocks.len()).collect();
        order.sort_by_key(|&i| (blocks[i].begin, Reverse((blocks[i].end, blocks[i].bytes)), i));
        let leaves = blocks.len().next_power_of_two();
        let mut nodes = vec![NONE; 2 * leaves];
        for (at, &index) in order.iter().enumerate() {
            nodes[leaves + at] = (blocks[index].end, blocks[index].end - blocks[index].begin);
        }
        let mut waiting = Waiting { blocks, order, nodes, leaves };
        (1..leaves).rev().for_each(|node| waiting.join(node));
        waiting
    }

    fn join(&mut self, node: usize) {
        let (a, b) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
        self.nodes[node] = (a.0.min(b.0), a.1.max(b.1));
    }

    /// Takes the block with the longest lifetime within these sections.
    fn longest(&mut self, begin: u32, end: u32) -> Option<usize> {
        let first = self.order.partition_point(|&i| self.blocks[i].begin < begin);
        let last = self.order.partition_point(|&i| self.blocks[i].begin < end);
        let mut best = (0, None);
        self.look(1, 0..self.leaves, &(first..last), end, &mut best);
        let at = best.1?;
        let mut node = self.leaves + at;
        self.nodes[node] = NONE;
        while node > 1 {
            node /= 2;
            self.join(node);
        }
        Some(self.order[at])
    }

    fn look(
        &self,
        node: usize,
        range: std::ops::Range<usize>,
        wanted: &std::ops::Range<usize>,
        end: u32,
        best: &mut (u32, Option<usize>),
    ) {
        let (first_end, most) = self.nodes[node];
        if range.end <= wanted.start || wanted.end <= range.start || first_end > end || most <= best.0 {
            return;
        }
        if node >= self.leaves {
            *best = (most, Some(range.start));
            return;
        }
        let middle = range.start.midpoint(range.end);
        self.look(2 * node, range.start..middle, wanted, end, best);
        self.look(2 * node + 1, middle..range.end, wanted, end, best);
    }
}
