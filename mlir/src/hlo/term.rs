//! The values of the interpreter.

use std::rc::Rc;

use lmsc_ir::{TensorType, ValueId};
use smallvec::SmallVec;

/// The bytes of one element, least significant byte first.
pub(super) type Scalar = SmallVec<[u8; 8]>;

/// A tensor.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub(super) ty: TensorType,
    pub(super) is: Is,
}

/// Where the elements of a tensor are.
#[derive(Clone, Debug)]
pub(super) enum Is {
    /// A value of the graph. Its extents broadcast to those of the term, by the rules of ONNX.
    Value(ValueId),
    /// All elements are this one.
    Splat(Scalar),
    /// For each index of axis 0 a tensor with extent 1 there.
    Rows(Rc<Vec<Term>>),
}

impl Term {
    pub(super) fn value(ty: TensorType, value: ValueId) -> Term {
        Term { ty, is: Is::Value(value) }
    }

    pub(super) fn splat(ty: TensorType, scalar: Scalar) -> Term {
        Term { ty, is: Is::Splat(scalar) }
    }

    /// The one element of which the tensor consists.
    pub(super) fn known(&self) -> Option<&Scalar> {
        match &self.is {
            Is::Splat(scalar) => Some(scalar),
            Is::Value(_) | Is::Rows(_) => None,
        }
    }

    /// The integer or truth value that all elements are.
    pub(super) fn integer(&self) -> Option<i64> {
        super::parse::integer(self.ty.element, self.known()?)
    }

    pub(super) fn dims(&self) -> &[u64] {
        &self.ty.dims
    }
}

/// Extents without leading ones: equal ones broadcast equally.
pub(super) fn stripped(dims: &[u64]) -> &[u64] {
    let ones = dims.iter().take_while(|&&d| d == 1).count();
    &dims[ones..]
}

/// The extents with ones before them, up to this rank.
pub(super) fn padded(dims: &[u64], rank: usize) -> Vec<u64> {
    let ones = rank.saturating_sub(dims.len());
    std::iter::repeat_n(1, ones).chain(dims.iter().copied()).collect()
}

/// The extents to which both broadcast.
pub(super) fn joined(a: &[u64], b: &[u64]) -> Option<Vec<u64>> {
    let rank = a.len().max(b.len());
    let both = padded(a, rank).into_iter().zip(padded(b, rank));
    both.map(|pair| match pair {
        (a, b) if a == b => Some(a),
        (1, b) => Some(b),
        (a, 1) => Some(a),
        _ => None,
    })
    .collect()
}
