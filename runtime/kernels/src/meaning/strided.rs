//! Operators that move elements: a box of elements between two tensors, each with its own strides.

/// For each index of `dims`, an element at `from` + index · `source` goes to `to` + index · `target`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strided {
    /// Extents of the box.
    pub dims: Vec<usize>,
    /// Strides of the source.
    pub source: Vec<isize>,
    /// Strides of the target.
    pub target: Vec<isize>,
    /// The first element of the source.
    pub from: usize,
    /// The first element of the target.
    pub to: usize,
}

impl Strided {
    /// Drops dimensions of extent 1 and merges neighbours where both strides allow it.
    pub fn new(dims: &[usize], source: &[isize], target: &[isize], from: usize, to: usize) -> Strided {
        let mut merged = Strided { dims: Vec::new(), source: Vec::new(), target: Vec::new(), from, to };
        for d in (0..dims.len()).rev().filter(|&d| dims[d] != 1) {
            let last = merged.dims.len().wrapping_sub(1);
            let joins = merged.dims.last().is_some_and(|&inner| {
                source[d] == merged.source[last] * inner as isize
                    && target[d] == merged.target[last] * inner as isize
            });
            if joins {
                merged.dims[last] *= dims[d];
            } else {
                merged.dims.push(dims[d]);
                merged.source.push(source[d]);
                merged.target.push(target[d]);
            }
        }
        merged.dims.reverse();
        merged.source.reverse();
        merged.target.reverse();
        merged
    }

    /// Number of elements.
    #[expect(clippy::len_without_is_empty, reason = "a count, not a collection")]
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether all source elements are below `sources`, and all target elements below `targets`.
    pub fn is_within(&self, sources: usize, targets: usize) -> bool {
        let reach = |strides: &[isize], from: usize, count: usize| {
            let mut ends = [from as i128; 2];
            for (&d, &stride) in self.dims.iter().zip(strides) {
                ends[usize::from(stride > 0)] += (d as i128 - 1) * stride as i128;
            }
            ends[0] >= 0 && ends[1] < count as i128
        };
        self.len() == 0 || reach(&self.source, self.from, sources) && reach(&self.target, self.to, targets)
    }

    /// Whether all elements move as one contiguous piece.
    pub fn is_one_piece(&self) -> bool {
        self.dims.is_empty() || (self.dims.len() == 1 && self.source[0] == 1 && self.target[0] == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_merge() {
        let s = Strided::new(&[2, 3, 4], &[12, 4, 1], &[24, 4, 1], 0, 0);
        assert_eq!((&s.dims[..], &s.source[..], &s.target[..]), (&[2, 12][..], &[12, 1][..], &[24, 1][..]));
        assert!(Strided::new(&[2, 1, 3], &[3, 9, 1], &[3, 3, 1], 0, 0).is_one_piece());
    }

    #[test]
    fn moved_ranges_stay_within_the_tensor() {
        let back = Strided::new(&[2, 3], &[3, -1], &[3, 1], 2, 0);
        assert!(back.is_within(6, 6) && !back.is_within(5, 6) && !back.is_within(6, 5));
        assert!(!Strided { from: 1, ..back.clone() }.is_within(6, 6));
        assert!(Strided::new(&[0, 3], &[3, 1], &[3, 1], 9, 9).is_within(0, 0));
    }
}
