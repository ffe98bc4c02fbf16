//! Range addition and range maximum over the ticks of a graph.

use std::ops::Range;

/// Numbers indexed by tick, with addition to a range and its maximum in logarithmic time.
#[derive(Clone, Debug)]
pub(crate) struct SegmentTree {
    /// A power of two, at least the number of ticks.
    width: usize,
    /// Maximum of the node's subtree, without what was added above it.
    max: Vec<i64>,
    /// Added to the whole subtree.
    added: Vec<i64>,
}

impl SegmentTree {
    /// The tree over these numbers.
    pub(crate) fn new(values: impl ExactSizeIterator<Item = i64>) -> SegmentTree {
        let width = values.len().max(1).next_power_of_two();
        let mut max = vec![i64::MIN / 2; 2 * width];
        for (slot, value) in max[width..].iter_mut().zip(values) {
            *slot = value;
        }
        for node in (1..width).rev() {
            max[node] = max[2 * node].max(max[2 * node + 1]);
        }
        SegmentTree { width, added: vec![0; 2 * width], max }
    }

    /// Adds to every number of the range.
    pub(crate) fn add(&mut self, range: Range<u32>, amount: i64) {
        if !range.is_empty() {
            self.add_below(1, 0..self.width as u32, &range, amount);
        }
    }

    /// The largest number of the range; very small for an empty one.
    pub(crate) fn max(&self, range: Range<u32>) -> i64 {
        if range.is_empty() { i64::MIN / 2 } else { self.max_below(1, 0..self.width as u32, &range) }
    }

    /// Whether any number of the range is over the limit.
    pub(crate) fn exceeds(&self, range: Range<u32>, limit: i64) -> bool {
        !range.is_empty() && self.exceeds_below(1, 0..self.width as u32, &range, limit)
    }

    /// The largest number of all.
    pub(crate) fn max_of_all(&self) -> i64 {
        self.max[1]
    }

    fn add_below(&mut self, node: usize, covers: Range<u32>, range: &Range<u32>, amount: i64) {
        if range.start <= covers.start && covers.end <= range.end {
            self.max[node] += amount;
            self.added[node] += amount;
            return;
        }
        let middle = covers.start.midpoint(covers.end);
        if range.start < middle {
            self.add_below(2 * node, covers.start..middle, range, amount);
        }
        if range.end > middle {
            self.add_below(2 * node + 1, middle..covers.end, range, amount);
        }
        self.max[node] = self.max[2 * node].max(self.max[2 * node + 1]) + self.added[node];
    }

    fn max_below(&self, node: usize, covers: Range<u32>, range: &Range<u32>) -> i64 {
        if range.start <= covers.start && covers.end <= range.end {
            return self.max[node];
        }
        let middle = covers.start.midpoint(covers.end);
        let mut max = i64::MIN / 2;
        if range.start < middle {
            max = max.max(self.max_below(2 * node, covers.start..middle, range));
        }
        if range.end > middle {
            max = max.max(self.max_below(2 * node + 1, middle..covers.end, range));
        }
        max + self.added[node]
    }

    /// Looks only where something is over the limit: among ticks that are not, at none of them.
    fn exceeds_below(&self, node: usize, covers: Range<u32>, range: &Range<u32>, limit: i64) -> bool {
        if self.max[node] <= limit || (range.start <= covers.start && covers.end <= range.end) {
            return self.max[node] > limit;
        }
        let middle = covers.start.midpoint(covers.end);
        let limit = limit - self.added[node];
        range.start < middle && self.exceeds_below(2 * node, covers.start..middle, range, limit)
            || range.end > middle && self.exceeds_below(2 * node + 1, middle..covers.end, range, limit)
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
