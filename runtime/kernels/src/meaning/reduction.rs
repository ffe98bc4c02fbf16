//! The elements that a reduction combines.

/// A reduction over some axes, with neighbouring axes of one kind merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    /// `(extent, is reduced)`, outermost first; no two neighbours are of one kind.
    pub groups: Vec<(usize, bool)>,
}

impl Reduction {
    /// Over the axes for which `reduced` is true.
    pub fn new(dims: &[usize], reduced: &[bool]) -> Reduction {
        let mut groups: Vec<(usize, bool)> = Vec::new();
        for (&d, &r) in dims.iter().zip(reduced).filter(|&(&d, _)| d != 1) {
            match groups.last_mut().filter(|g| g.1 == r) {
                Some(group) => group.0 *= d,
                None => groups.push((d, r)),
            }
        }
        Reduction { groups }
    }

    /// Number of elements that are combined into each result.
    pub fn reduced(&self) -> usize {
        self.groups.iter().filter(|g| g.1).map(|g| g.0).product()
    }

    /// Number of results.
    pub fn kept(&self) -> usize {
        self.groups.iter().filter(|g| !g.1).map(|g| g.0).product()
    }

    /// The innermost group: its extent, and whether it is reduced.
    pub fn inner(&self) -> (usize, bool) {
        self.groups.last().copied().unwrap_or((1, false))
    }

    /// The operand's offset of the `index`-th combination of the groups of one kind, the innermost group excepted if `skip_inner`
    /// is set.
    fn offset(&self, mut index: usize, kind: bool, skip_inner: bool) -> usize {
        let mut stride = 1;
        let mut offset = 0;
        for (i, &(extent, reduced)) in self.groups.iter().enumerate().rev() {
            let inner = skip_inner && i + 1 == self.groups.len();
            if reduced == kind && !inner {
                offset += index % extent.max(1) * stride;
                index /= extent.max(1);
            }
            stride *= extent;
        }
        offset
    }

    /// The operand's offset of the first element of the `index`-th result; if the innermost group is kept, of the `index`-th run
    /// of results.
    pub fn first(&self, index: usize) -> usize {
        self.offset(index, false, !self.inner().1)
    }

    /// Distance of the `index`-th run of a result's elements from its first element.
    pub fn run(&self, index: usize) -> usize {
        self.offset(index, true, self.inner().1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_of_one_kind_merge() {
        let r = Reduction::new(&[2, 3, 1, 4], &[false, true, false, true]);
        assert_eq!(r.groups, [(2, false), (12, true)]);
        assert_eq!((r.reduced(), r.inner()), (12, (12, true)));
        assert_eq!(r.first(1), 12);
    }

    #[test]
    fn runs_are_where_they_should() {
        let r = Reduction::new(&[2, 3, 4], &[true, false, true]);
        assert_eq!((r.first(2), r.run(1)), (8, 12));
        let columns = Reduction::new(&[5, 4], &[true, false]);
        assert_eq!((columns.first(0), columns.run(3), columns.inner()), (0, 12, (4, false)));
    }

    #[test]
    fn everything_and_nothing() {
        assert_eq!(Reduction::new(&[], &[]).reduced(), 1);
        assert_eq!(Reduction::new(&[3, 0], &[false, true]).reduced(), 0);
    }
}
