//! A tensor split at one axis.

/// `outer` × `axis` × `inner` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) outer: usize,
    pub(crate) axis: usize,
    pub(crate) inner: usize,
}

impl Rows {
    /// The tensor split at one axis.
    pub(crate) fn at(dims: &[usize], axis: usize) -> Rows {
        Rows {
            outer: dims[..axis].iter().product(),
            axis: dims[axis],
            inner: dims[axis + 1..].iter().product(),
        }
    }

    /// The tensor with all dimensions from an axis on as one axis.
    pub(crate) fn from(dims: &[usize], axis: usize) -> Rows {
        Rows { outer: dims[..axis].iter().product(), axis: dims[axis..].iter().product(), inner: 1 }
    }
}
