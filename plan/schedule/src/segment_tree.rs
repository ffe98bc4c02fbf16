//! Range addition and range maximum over the ticks of a graph.

use std::ops::Range;

/// Numbers indexed by tick, with addition to a range and its maximum in logarithmic time.
///
/// Values added to a subtree are stored at its root, so that both operations go from the leaves up and stop where nothing
/// changes.
#[derive(Clone, Debug)]
pub struct SegmentTree {
    /// The children of node `i` are `2 i` and `2 i + 1`; the second half are the leaves, with at least one unused leaf before
    /// the ticks and one after them.
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// Maximum of the subtree, without the values added above it.
    max: i64,
    /// Added to the whole subtree.
    added: i64,
}

/// The maximum of no number.
const NONE: i64 = i64::MIN / 2;

impl SegmentTree {
    /// The tree over these numbers.
    pub fn new(values: impl ExactSizeIterator<Item = i64>) -> SegmentTree {
        let width = (values.len() + 2).next_power_of_two();
        let mut tree = SegmentTree { nodes: vec![Node { max: NONE, added: 0 }; 2 * width] };
        for (leaf, value) in tree.nodes[width + 1..].iter_mut().zip(values) {
            leaf.max = value;
        }
        (1..width).rev().for_each(|node| _ = tree.pull(node));
        tree
    }

    /// The leaves adjacent to those of the range.
    fn around(&self, range: Range<u32>) -> (usize, usize) {
        let first = self.nodes.len() / 2 + 1;
        (first + range.start as usize - 1, first + range.end as usize)
    }

    /// Recomputes the node's maximum; returns whether it changed.
    fn pull(&mut self, node: usize) -> bool {
        let below = self.nodes[2 * node].max.max(self.nodes[2 * node + 1].max);
        let max = below + self.nodes[node].added;
        std::mem::replace(&mut self.nodes[node].max, max) != max
    }

    fn add_to(&mut self, node: usize, amount: i64) {
        self.nodes[node].max += amount;
        self.nodes[node].added += amount;
    }

    /// Adds to every number of the range.
    pub fn add(&mut self, range: Range<u32>, amount: i64) {
        if range.is_empty() {
            return;
        }
        let (mut left, mut right) = self.around(range);
        while left ^ right != 1 {
            if left % 2 == 0 {
                self.add_to(left + 1, amount);
            }
            if right % 2 == 1 {
                self.add_to(right - 1, amount);
            }
            (left, right) = (left / 2, right / 2);
            self.pull(left);
            self.pull(right);
        }
        while left > 1 {
            left /= 2;
            if !self.pull(left) {
                return;
            }
        }
    }

    /// The largest number of the range; very small for an empty range.
    pub fn max(&self, range: Range<u32>) -> i64 {
        if range.is_empty() {
            return NONE;
        }
        let (mut left, mut right) = self.around(range);
        let (mut of_left, mut of_right) = (NONE, NONE);
        while left ^ right != 1 {
            if left % 2 == 0 {
                of_left = of_left.max(self.nodes[left + 1].max);
            }
            if right % 2 == 1 {
                of_right = of_right.max(self.nodes[right - 1].max);
            }
            (left, right) = (left / 2, right / 2);
            of_left += self.nodes[left].added;
            of_right += self.nodes[right].added;
        }
        let mut max = of_left.max(of_right);
        while left > 1 {
            left /= 2;
            max += self.nodes[left].added;
        }
        max
    }

    /// Whether any number of the range is over the limit.
    pub fn exceeds(&self, range: Range<u32>, limit: i64) -> bool {
        self.max_of_all() > limit && self.max(range) > limit
    }

    /// The largest of all numbers.
    pub fn max_of_all(&self) -> i64 {
        self.nodes[1].max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_plain_array() {
        let mut plain: Vec<i64> = (0..37).map(|i| (i * 7919) % 101).collect();
        let mut tree = SegmentTree::new(plain.iter().copied());
        let mut state = 1u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 16) % below
        };
        for _ in 0..2000 {
            let start = random(37);
            let end = start + 1 + random(37 - start);
            let amount = random(200) as i64 - 100;
            plain[start as usize..end as usize].iter_mut().for_each(|v| *v += amount);
            tree.add(start..end, amount);
            let start = random(37);
            let end = start + 1 + random(37 - start);
            assert_eq!(tree.max(start..end), *plain[start as usize..end as usize].iter().max().unwrap());
            let limit = plain[random(37) as usize];
            let exceeds = plain[start as usize..end as usize].iter().any(|&v| v > limit);
            assert_eq!(tree.exceeds(start..end, limit), exceeds);
            assert_eq!(tree.max_of_all(), *plain.iter().max().unwrap());
        }
    }
}
