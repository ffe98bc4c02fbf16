//! Which elements come together in a reduction.

/// A reduction over some axes, with neighbouring axes of one kind merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    /// `(extent, is reduced)`, outermost first; no two neighbours are of one kind.
    pub(crate) groups: Vec<(usize, bool)>,
}

impl Reduction {
    /// Over the axes for which `reduced` is true.
    pub(crate) fn new(dims: &[usize], reduced: &[bool]) -> Reduction {
        let mut groups: Vec<(usize, bool)> = Vec::new();
        for (&d, &r) in dims.iter().zip(reduced).filter(|&(&d, _)| d != 1) {
            match groups.last_mut().filter(|g| g.1 == r) {
                Some(group) => group.0 *= d,
                None => groups.push((d, r)),
            }
        }
        Reduction { groups }
    }

    /// How many elements come together in each.
    pub(crate) fn reduced(&self) -> usize {
        self.groups.iter().filter(|g| g.1).map(|g| g.0).product()
    }

    /// How many results there are.
    pub(crate) fn kept(&self) -> usize {
        self.groups.iter().filter(|g| !g.1).map(|g| g.0).product()
    }

    /// The innermost run: how many neighbours, and whether they come together.
    pub(crate) fn inner(&self) -> (usize, bool) {
        self.groups.last().copied().unwrap_or((1, false))
    }

    /// Where the elements of a result lie, or of which results an element is.
    ///
    /// Of the groups of one kind, the innermost run excepted: the operand's offset of the `index`-th combination.
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

    /// The operand's offset of the `index`-th result's first element; where the innermost run is kept, of the
    /// `index`-th run of results.
    pub(crate) fn first(&self, index: usize) -> usize {
        self.offset(index, false, !self.inner().1)
    }

    /// How far from its first element the `index`-th run of a result lies.
    pub(crate) fn run(&self, index: usize) -> usize {
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
