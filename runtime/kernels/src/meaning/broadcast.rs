//! Multidirectional broadcasting, as ONNX and numpy define it.

use crate::spec::{SpecError, refuse};

/// Maps each element of a result to its element in each operand.
#[derive(Clone, Debug)]
pub struct Broadcast {
    /// Extents of the result, with dimensions merged where every operand allows it.
    pub dims: Vec<usize>,
    /// For each operand, its stride along each merged dimension; 0 where it is broadcast.
    pub strides: Vec<Vec<usize>>,
}

impl Broadcast {
    /// Operands of these extents, broadcast to `result`.
    pub fn new(operands: &[Vec<usize>], result: &[usize]) -> Result<Broadcast, SpecError> {
        let mut strides: Vec<Vec<usize>> = Vec::new();
        for (i, dims) in operands.iter().enumerate() {
            let lead = result.len().checked_sub(dims.len());
            let fits =
                lead.is_some_and(|lead| dims.iter().zip(&result[lead..]).all(|(&d, &r)| d == r || d == 1));
            let Some(lead) = lead.filter(|_| fits) else {
                return refuse(format!(
                    "operand {i} has extents {dims:?}, which do not broadcast to {result:?}"
                ));
            };
            let own = super::strides(dims);
            let mut wide = vec![0; lead];
            wide.extend(dims.iter().zip(own).map(|(&d, s)| if d == 1 { 0 } else { s }));
            strides.push(wide);
        }
        let mut merged = Broadcast { dims: Vec::new(), strides: vec![Vec::new(); operands.len()] };
        for d in (0..result.len()).rev().filter(|&d| result[d] != 1) {
            let joins = merged.dims.last().is_some_and(|&inner| {
                inner.checked_mul(result[d]).is_some()
                    && strides
                        .iter()
                        .zip(&merged.strides)
                        .all(|(s, m)| s[d] == m.last().unwrap_or(&0) * inner)
            });
            match merged.dims.last_mut().filter(|_| joins) {
                Some(inner) => *inner *= result[d],
                None => {
                    merged.dims.push(result[d]);
                    merged.strides.iter_mut().zip(&strides).for_each(|(m, s)| m.push(s[d]));
                }
            }
        }
        merged.dims.reverse();
        merged.strides.iter_mut().for_each(|s| s.reverse());
        Ok(merged)
    }

    /// Number of elements of the result.
    #[expect(clippy::len_without_is_empty, reason = "a count, not a collection")]
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether the operand has the result's elements, in the same order.
    pub fn is_whole(&self, operand: usize) -> bool {
        match &self.strides[operand][..] {
            [] => true,
            [stride] => *stride == 1,
            _ => false,
        }
    }

    /// Whether the operand is a single element, broadcast.
    pub fn is_scalar(&self, operand: usize) -> bool {
        self.strides[operand].iter().all(|&s| s == 0)
    }

    /// Calls `run(first, stride, length)` for runs of the operand's elements, in order, that correspond to `length` elements of
    /// the result from `start` on. The stride is 0 or 1.
    #[inline]
    pub fn walk(
        &self,
        operand: usize,
        start: usize,
        length: usize,
        mut run: impl FnMut(usize, usize, usize),
    ) {
        let strides = &self.strides[operand];
        let Some((&inner, outer)) = self.dims.split_last() else {
            return run(0, 0, length);
        };
        let step = strides[outer.len()];
        let (mut row, mut at, mut left) = (start / inner.max(1), start % inner.max(1), length);
        while left > 0 {
            let mut base = 0;
            let mut rest = row;
            for d in (0..outer.len()).rev() {
                base += rest % outer[d] * strides[d];
                rest /= outer[d];
            }
            let now = (inner - at).min(left);
            run(base + at * step, step, now);
            (row, at, left) = (row + 1, 0, left - now);
        }
    }

    /// The operand's offset for each element of the result.
    pub fn offsets(&self, operand: usize) -> Vec<usize> {
        let mut offsets = Vec::with_capacity(self.len());
        self.walk(operand, 0, self.len(), |first, step, n| offsets.extend((0..n).map(|i| first + i * step)));
        offsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_merge_where_every_operand_allows_it() {
        let b = Broadcast::new(&[vec![2, 3, 4], vec![3, 4], vec![]], &[2, 3, 4]).unwrap();
        assert_eq!(b.dims, [2, 12]);
        assert_eq!(b.strides, [vec![12, 1], vec![0, 1], vec![0, 0]]);
        let same = Broadcast::new(&[vec![2, 1, 3], vec![2, 1, 3]], &[2, 1, 3]).unwrap();
        assert!(same.is_whole(0) && same.is_whole(1) && same.dims == [6]);
    }

    #[test]
    fn every_element_is_found() {
        let b = Broadcast::new(&[vec![2, 1, 3], vec![4, 1]], &[2, 4, 3]).unwrap();
        let of = |operand| b.offsets(operand);
        assert_eq!(of(0)[..6], [0, 1, 2, 0, 1, 2]);
        assert_eq!(of(0)[12..15], [3, 4, 5]);
        assert_eq!(of(1)[..12], [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
        let mut part = Vec::new();
        b.walk(1, 4, 3, |first, step, n| part.extend((0..n).map(|i| first + i * step)));
        assert_eq!(part, [1, 1, 2]);
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        assert!(Broadcast::new(&[vec![2]], &[3]).is_err());
        assert!(Broadcast::new(&[vec![1, 3]], &[3]).is_err());
    }

    #[test]
    fn nothing_and_one() {
        let empty = Broadcast::new(&[vec![0, 3], vec![3]], &[0, 3]).unwrap();
        assert_eq!((empty.len(), empty.offsets(1).len()), (0, 0));
        let one = Broadcast::new(&[vec![], vec![1, 1]], &[1, 1]).unwrap();
        assert!(one.is_whole(0) && one.is_scalar(1) && one.len() == 1);
    }
}
