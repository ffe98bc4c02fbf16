//! The spans that contain a moment, in an order of theirs, with the sum and the maximum of the bytes of the first ones.

/// A complete binary tree whose leaves are spans in an order; one that does not contain the moment has no bytes.
pub(super) struct Present {
    /// Node 1 is the root, nodes 2i and 2i + 1 are below node i; the second half are the leaves.
    nodes: Vec<Node>,
}

/// The bytes of some neighbouring spans.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Node {
    pub(super) bytes: u64,
    pub(super) largest: u64,
}

impl Node {
    fn and(self, next: Node) -> Node {
        Node { bytes: self.bytes + next.bytes, largest: self.largest.max(next.largest) }
    }
}

impl Present {
    /// A tree for this number of spans, none of which is there.
    pub(super) fn none_of(spans: usize) -> Present {
        Present { nodes: vec![Node::default(); 2 * spans.next_power_of_two()] }
    }

    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }

    /// Sets the bytes of the span at a place in the order: 0 if it is not there.
    pub(super) fn set(&mut self, place: usize, bytes: u64) {
        let mut node = self.leaves() + place;
        self.nodes[node] = Node { bytes, largest: bytes };
        while node > 1 {
            node /= 2;
            self.nodes[node] = self.nodes[2 * node].and(self.nodes[2 * node + 1]);
        }
    }

    /// All spans that are there.
    pub(super) fn all(&self) -> Node {
        self.nodes[1]
    }

    /// The first place at which the spans up to it have more than this number of bytes.
    pub(super) fn first_above(&self, bytes: u64) -> Option<usize> {
        if self.all().bytes <= bytes {
            return None;
        }
        let (mut node, mut before) = (1, 0);
        while node < self.leaves() {
            node *= 2;
            if before + self.nodes[node].bytes <= bytes {
                before += self.nodes[node].bytes;
                node += 1;
            }
        }
        Some(node - self.leaves())
    }

    /// The spans before a place that are there.
    pub(super) fn before(&self, place: usize) -> Node {
        if place == self.leaves() {
            return self.all();
        }
        let (mut node, mut sum) = (self.leaves() + place, Node::default());
        // Each left sibling on the way to the root.
        while node > 1 {
            if node % 2 == 1 {
                sum = self.nodes[node - 1].and(sum);
            }
            node /= 2;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_places_are_those_of_a_list() {
        let mut state = 1u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % n
        };
        for spans in [1, 2, 5, 16, 33] {
            let (mut tree, mut list) = (Present::none_of(spans), vec![0; spans]);
            for _ in 0..200 {
                let (place, bytes) = (below(spans), below(4) as u64);
                tree.set(place, bytes);
                list[place] = bytes;
                let sum = |end: usize| Node {
                    bytes: list[..end].iter().sum(),
                    largest: list[..end].iter().copied().max().unwrap_or(0),
                };
                let end = below(spans + 1);
                assert_eq!(tree.before(end), sum(end));
                assert_eq!(tree.all(), sum(spans));
                let above = below(8) as u64;
                let place = (0..spans).find(|&place| sum(place + 1).bytes > above);
                assert_eq!(tree.first_above(above), place);
            }
        }
    }
}
