//! Operators on images with channels last: `ai.lmsc.NhwcConv` and those like it.
//!
//! Such an operator is the one with channels first between transpositions of its images, `[N, C, …]` and `[N, …, C]`. All else is the
//! same: weights keep their order of axes, attributes their meaning, and the numbers in the indices of `NhwcMaxPool` count as those
//! of `MaxPool` do.

use crate::domains::{LMSC, MS, ONNX};
use crate::{ElementType, Op, TensorType, Type};

/// The form of an operator with channels last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nhwc {
    /// The name, in the domain of lmsc.
    pub name: &'static str,
    /// Domain and name of the operator with channels first.
    pub first: (&'static str, &'static str),
    /// The operands that are images.
    pub operands: &'static [usize],
    /// The results that are images.
    pub results: &'static [usize],
}

/// A gradient that two domains have stands once for each; the last is the one of which the meaning is taken.
const FORMS: &[Nhwc] = &[
    form("NhwcAveragePool", (ONNX, "AveragePool"), &[0], &[0]),
    form("NhwcAveragePoolGrad", (MS, "AveragePoolGrad"), &[0], &[0]),
    form("NhwcAveragePoolGrad", (ONNX, "AveragePoolGrad"), &[0], &[0]),
    form("NhwcConv", (ONNX, "Conv"), &[0], &[0]),
    form("NhwcConvGrad", (MS, "ConvGrad"), &[0, 1], &[0]),
    form("NhwcConvTranspose", (ONNX, "ConvTranspose"), &[0], &[0]),
    form("NhwcConvTransposeGrad", (MS, "ConvTransposeGrad"), &[0, 1], &[0]),
    form("NhwcMaxPool", (ONNX, "MaxPool"), &[0], &[0, 1]),
    form("NhwcMaxPoolGrad", (MS, "MaxPoolGrad"), &[0, 1], &[0]),
    form("NhwcMaxPoolGrad", (ONNX, "MaxPoolGrad"), &[0, 1], &[0]),
];

const fn form(
    name: &'static str,
    first: (&'static str, &'static str),
    operands: &'static [usize],
    results: &'static [usize],
) -> Nhwc {
    Nhwc { name, first, operands, results }
}

impl Nhwc {
    /// The operator with channels last.
    pub fn op(&self) -> Op {
        Op::new(LMSC, self.name)
    }

    /// The operator with channels first.
    pub fn first_op(&self) -> Op {
        Op::new(self.first.0, self.first.1)
    }
}

/// The form with channels last of an operator with channels first.
pub fn last(op: &Op) -> Option<&'static Nhwc> {
    FORMS.iter().find(|form| form.first == op.key())
}

/// The form of an operator with channels last.
pub fn of(op: &Op) -> Option<&'static Nhwc> {
    FORMS.iter().rev().find(|form| op.key() == (LMSC, form.name))
}

/// The permutation that brings the axes of `[N, C, …]` into the order `[N, …, C]`.
pub fn to_last(rank: usize) -> Vec<usize> {
    (0..rank.min(1)).chain(2..rank).chain((rank > 1).then_some(1)).collect()
}

/// The permutation that brings the axes of `[N, …, C]` into the order `[N, C, …]`.
pub fn to_first(rank: usize) -> Vec<usize> {
    (0..rank.min(1)).chain((rank > 1).then(|| rank - 1)).chain(1..rank.max(2) - 1).collect()
}

/// The extents in the order of the permutation.
pub fn permuted<T: Copy>(dims: &[T], permutation: &[usize]) -> Vec<T> {
    permutation.iter().map(|&axis| dims[axis]).collect()
}

/// The type of an image with channels last, with channels first; other types than tensors stay.
pub fn first_type(ty: &Type) -> Type {
    let turned = |ty: &TensorType, element: ElementType| {
        TensorType::new(element, permuted(&ty.dims, &to_first(ty.dims.len())))
    };
    match ty {
        Type::Tensor(tensor) => Type::Tensor(turned(tensor, tensor.element)),
        Type::Sequence(_) => ty.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_are_inverse() {
        for rank in 0..7 {
            let dims: Vec<usize> = (10..10 + rank).collect();
            assert_eq!(permuted(&permuted(&dims, &to_last(rank)), &to_first(rank)), dims);
        }
        assert_eq!(permuted(&["n", "c", "h", "w"], &to_last(4)), ["n", "h", "w", "c"]);
    }

    #[test]
    fn forms_have_the_attributes_of_their_operators() {
        for form in FORMS {
            let (first, last) = (form.first_op(), form.op());
            let names = |op: &Op| -> Vec<_> {
                let contract = op.contract().expect("both have contracts");
                let names = contract.attributes.iter().map(|a| (a.name, a.default.clone()));
                names.chain(contract.operands.iter().map(|p| (p.name, None))).collect()
            };
            assert_eq!(names(&first), names(&last), "{last}");
            assert!(of(&last).is_some_and(|of| of.results == form.results));
        }
    }
}
