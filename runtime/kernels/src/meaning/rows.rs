//! A tensor split at one axis.

/// `outer` × `axis` × `inner` elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Elements in front of the axis.
    pub outer: usize,
    /// Extent of the axis.
    pub axis: usize,
    /// Elements behind the axis.
    pub inner: usize,
}

impl Rows {
    /// The tensor split at one axis.
    pub fn at(dims: &[usize], axis: usize) -> Rows {
        Rows {
            outer: dims[..axis].iter().product(),
            axis: dims[axis],
            inner: dims[axis + 1..].iter().product(),
        }
    }

    /// The tensor with all dimensions from an axis on as one axis.
    pub fn from(dims: &[usize], axis: usize) -> Rows {
        Rows { outer: dims[..axis].iter().product(), axis: dims[axis..].iter().product(), inner: 1 }
    }
}
