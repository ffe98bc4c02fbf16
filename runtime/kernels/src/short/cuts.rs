//! How the work of an operator is cut into pieces: one rule a family of operators.

use lmsc_ir::domains::{LMSC, MS};
use lmsc_ir::{ElementType, TensorType, Type};

use crate::meaning::count;
use crate::spec::Spec;

/// The part of a tensor that one piece of the work reads or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// Slices along an axis.
    Slices(usize),
    /// Slices along all axes up to this one, taken as one axis.
    Merged(usize),
    /// Elements, ignoring the axes; of a sequence, those of all its tensors.
    Flat,
    /// As [`Part::Merged`], for indices into a tensor with this number of elements in each slice.
    Places(usize, usize),
    /// A result to which each piece adds.
    Sum,
}

/// Work that consists of slices, each of which is computed by itself.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// Number of slices.
    pub(super) slices: usize,
    /// The least number of slices in a piece.
    pub(super) least: usize,
    /// Whether libraries of other devices take short floats themselves.
    pub(super) by_library: bool,
    /// By operand.
    pub(super) operands: Vec<Part>,
    /// By result.
    pub(super) results: Vec<Part>,
}

impl Cut {
    fn by_library(self) -> Cut {
        Cut { by_library: true, ..self }
    }
}

impl Part {
    /// The number of groups of slices that lie apart, of slices, and of elements of a slice in each group; none if the tensor has no
    /// such axis.
    pub(super) fn shape(self, ty: &Type) -> Option<(usize, usize, usize)> {
        let dims = extents(ty);
        let at = |axis: usize| dims.get(axis).copied();
        match self {
            Part::Whole | Part::Sum => None,
            Part::Slices(axis) => {
                Some((count(&dims[..axis.min(dims.len())]), at(axis)?, count(&dims[axis + 1..])))
            }
            Part::Merged(axis) | Part::Places(axis, _) => {
                at(axis)?;
                Some((1, count(&dims[..=axis]), count(&dims[axis + 1..])))
            }
            Part::Flat => Some((1, count(&dims), 1)),
        }
    }

    /// The type of `slices` slices.
    pub(super) fn of(self, ty: &Type, slices: usize) -> Type {
        let slices = slices as u64;
        match (self, ty) {
            (Part::Whole | Part::Sum, ty) => ty.clone(),
            (Part::Flat, Type::Sequence(list)) => {
                let element = list.first().map_or(ElementType::Float, |ty| ty.element);
                Type::Sequence(vec![TensorType::new(element, [slices])])
            }
            (_, Type::Sequence(_)) => ty.clone(),
            (Part::Flat, Type::Tensor(tensor)) => TensorType::new(tensor.element, [slices]).into(),
            (Part::Slices(axis), Type::Tensor(tensor)) => {
                let mut dims = tensor.dims.clone();
                dims[axis] = slices;
                TensorType::new(tensor.element, dims).into()
            }
            (Part::Merged(axis) | Part::Places(axis, _), Type::Tensor(tensor)) => {
                let mut dims = tensor.dims.clone();
                dims[..=axis].fill(1);
                dims[0] = slices;
                TensorType::new(tensor.element, dims).into()
            }
        }
    }
}

/// The extents of a tensor; of a sequence, the number of elements of all its tensors.
fn extents(ty: &Type) -> Vec<usize> {
    let as_usize = |tensor: &TensorType| tensor.dims.iter().map(|&d| d as usize).collect::<Vec<_>>();
    match ty {
        Type::Tensor(tensor) => as_usize(tensor),
        Type::Sequence(list) => vec![list.iter().map(|tensor| count(&as_usize(tensor))).sum()],
    }
}

use Part::{Flat, Merged, Places, Slices, Sum, Whole};

/// How the node is cut, if its operator has a rule and the node fits it.
pub(super) fn cut(spec: &Spec<'_>) -> Option<Cut> {
    let name = spec.op.name();
    match (spec.op.domain(), name.trim_end_matches("_13")) {
        ("" | MS, "Gemm" | "MatMul" | "FusedMatMul" | "TransposeMatMul") => product(spec),
        ("", "Conv" | "ConvTranspose") | (LMSC, "NhwcConv" | "NhwcConvTranspose") => {
            Some(samples(spec, &[Slices(0)], &[Slices(0)]).by_library())
        }
        (MS, "ConvGrad" | "ConvTransposeGrad") | (LMSC, "NhwcConvGrad" | "NhwcConvTransposeGrad") => {
            Some(samples(spec, &[Slices(0), Slices(0)], &[Slices(0), Sum, Sum]).by_library())
        }
        ("", "InstanceNormalization" | "GroupNormalization") => {
            Some(samples(spec, &[Slices(0)], &[Slices(0)]))
        }
        ("", "BatchNormalization") | (MS, "BatchNormInternal") => {
            let channel = [Slices(1), Slices(0), Slices(0), Slices(0), Slices(0)];
            Some(along(spec, 0, 1, &channel, &channel))
        }
        (MS, "BatchNormalizationGrad") => {
            let given = [Slices(1), Slices(1), Slices(0), Slices(0), Slices(0)];
            Some(along(spec, 0, 1, &given, &[Slices(1), Slices(0), Slices(0)]))
        }
        ("", "Softmax" | "LogSoftmax") => rows(spec, |lead| (vec![lead], vec![lead])),
        (MS, "SoftmaxGrad" | "LogSoftmaxGrad") => rows(spec, |lead| (vec![lead, lead], vec![lead])),
        ("" | MS, "LayerNormalization" | "RMSNormalization" | "SimplifiedLayerNormalization") => {
            normalized(spec, 0, |lead| (vec![lead], vec![lead, Flat, Flat]))
        }
        (MS, "LayerNormalizationGrad" | "SimplifiedLayerNormalizationGrad") => {
            normalized(spec, 1, |lead| (vec![lead, lead, Whole, Flat, Flat], vec![lead, Sum, Sum]))
        }
        ("", "MaxPool") => {
            let plane = count(spec.dims(0).ok()?.get(2..)?);
            planes(spec, &[Merged(1)], &[Merged(1), Places(1, plane)])
        }
        ("" | MS, "MaxPoolGrad") => {
            let plane = count(spec.result_dims(0).ok()?.get(2..)?);
            planes(spec, &[Merged(1), Places(1, plane)], &[Merged(1)])
        }
        (LMSC, "NhwcMaxPool") => {
            let places = Places(0, count(spec.dims(0).ok()?.get(1..)?));
            Some(samples(spec, &[Slices(0)], &[Slices(0), places]))
        }
        (LMSC, "NhwcMaxPoolGrad") => {
            let places = Places(0, count(spec.result_dims(0).ok()?.get(1..)?));
            Some(samples(spec, &[Slices(0), places], &[Slices(0)]))
        }
        (LMSC, "NhwcAveragePool" | "NhwcAveragePoolGrad") => Some(samples(spec, &[Slices(0)], &[Slices(0)])),
        ("" | MS, "AveragePool" | "AveragePoolGrad" | "GlobalAveragePool" | "GlobalMaxPool") => {
            planes(spec, &[Merged(1)], &[Merged(1)])
        }
        ("" | MS, "SoftmaxCrossEntropyLoss" | "SoftmaxCrossEntropyLossInternal")
        | (
            "" | MS,
            "NegativeLogLikelihoodLoss"
            | "NegativeLogLikelihoodLossInternal"
            | "NegativeLogLikelihoodLossInternal2",
        ) => {
            // A mean depends on all labels.
            let each = spec.string("reduction").ok()? == "none";
            each.then(|| samples(spec, &[Slices(0), Slices(0)], &[Slices(0), Slices(0)]))
        }
        (MS, "SoftmaxCrossEntropyLossGrad" | "SoftmaxCrossEntropyLossInternalGrad") => {
            let reduction = spec.string("reduction").ok()?;
            let given = if reduction == "none" { Slices(0) } else { Whole };
            (reduction != "mean").then(|| along(spec, 1, 0, &[given, Slices(0), Slices(0)], &[Slices(0)]))
        }
        (LMSC, "AdamWOptimizer") => flat(spec, 2..7, 0..4),
        (MS, "AdamWOptimizer") => flat(spec, 2..6, 1..4),
        (LMSC, "SGDOptimizer") => flat(spec, 1..3, 0..1),
        (MS, "SGDOptimizerV2") => flat(spec, 1..3, 1..2),
        (MS, "InPlaceAccumulatorV2") => flat(spec, 0..2, 1..2),
        (MS, "InPlaceAccumulator" | "GradientAccumulator") => flat(spec, 0..2, 0..1),
        (MS, "DropoutGrad") => flat(spec, 0..2, 0..1),
        (MS, "Scale") => flat(spec, 0..1, 0..1),
        _ => None,
    }
}

/// The parts, followed by whole tensors.
fn padded(parts: &[Part], to: usize) -> Vec<Part> {
    parts.iter().copied().chain(std::iter::repeat(Whole)).take(to).collect()
}

/// Slices along an axis of an operand.
fn along(spec: &Spec<'_>, operand: usize, axis: usize, operands: &[Part], results: &[Part]) -> Cut {
    let slices = spec.dims(operand).ok().and_then(|dims| dims.get(axis).copied()).unwrap_or(0);
    Cut {
        slices,
        least: 1,
        by_library: false,
        operands: padded(operands, spec.operands.len()),
        results: padded(results, spec.results.len().max(results.len())),
    }
}

/// The samples of a batch.
fn samples(spec: &Spec<'_>, operands: &[Part], results: &[Part]) -> Cut {
    along(spec, 0, 0, operands, results)
}

/// The planes of images.
fn planes(spec: &Spec<'_>, operands: &[Part], results: &[Part]) -> Option<Cut> {
    let slices = count(spec.dims(0).ok()?.get(..2)?);
    Some(Cut { slices, ..samples(spec, operands, results) })
}

/// Operands and results by position.
type Parts = (Vec<Part>, Vec<Part>);

/// The slices in front of an axis of an operand.
fn in_front(spec: &Spec<'_>, operand: usize, axis: usize, parts: impl Fn(Part) -> Parts) -> Option<Cut> {
    let dims = spec.dims(operand).ok()?;
    let lead = axis.checked_sub(1)?;
    let (operands, results) = parts(Merged(lead));
    Some(Cut { slices: count(&dims[..axis]), ..samples(spec, &operands, &results) })
}

/// Rows of `Softmax` and its kind.
fn rows(spec: &Spec<'_>, parts: impl Fn(Part) -> Parts) -> Option<Cut> {
    let rows = crate::host::softmax::rows(spec).ok()?;
    let dims = spec.dims(0).ok()?;
    let axis = (0..dims.len()).find(|&axis| count(&dims[..axis]) == rows.outer && axis > 0)?;
    in_front(spec, 0, axis, parts)
}

/// Rows of `LayerNormalization` and its kind.
fn normalized(spec: &Spec<'_>, operand: usize, parts: impl Fn(Part) -> Parts) -> Option<Cut> {
    let rank = spec.dims(operand).ok()?.len();
    let axis = spec.axis(spec.int("axis").ok()?, rank).ok()?;
    // An axis that is counted from the front stays where it is.
    in_front(spec, operand, axis, parts)
}

/// Elements of these operands and results.
fn flat(spec: &Spec<'_>, operands: std::ops::Range<usize>, results: std::ops::Range<usize>) -> Option<Cut> {
    let part = |is_flat: bool| if is_flat { Flat } else { Whole };
    let (_, slices, _) = Flat.shape(spec.operands.get(operands.start)?.as_ref()?.ty)?;
    Some(Cut {
        slices,
        least: 1,
        by_library: false,
        operands: (0..spec.operands.len()).map(|i| part(operands.contains(&i))).collect(),
        results: (0..spec.results.len().max(results.end)).map(|i| part(results.contains(&i))).collect(),
    })
}

/// The least number of rows or columns of a product in a piece: the other operand is packed anew for each.
const LINES: usize = 256;

/// Products by their batch, or by rows or columns of the result, whichever the larger operand has.
fn product(spec: &Spec<'_>) -> Option<Cut> {
    let flag = |name| Some(spec.knows(name) && spec.flag(name).ok()?);
    if flag("transBatchA")? || flag("transBatchB")? {
        return None;
    }
    let (a, b, c) = (spec.dims(0).ok()?, spec.dims(1).ok()?, spec.result_dims(0).ok()?);
    let (left, right) = (flag("transA")?, flag("transB")?);
    let all = |operands: &[Part], result: Part, slices: usize, least: usize| {
        Some(Cut { slices, least, ..samples(spec, operands, &[result]).by_library() })
    };
    let rank = a.len();
    if rank >= 3 && b.len() == rank && a[..rank - 2] == b[..rank - 2] && count(&a[..rank - 2]) > 1 {
        let batch = Merged(rank - 3);
        return all(&[batch, batch], batch, count(&a[..rank - 2]), 1);
    }
    if b.len() != 2 || rank < 2 {
        return None;
    }
    if rank > 2 {
        let lines = Merged(rank - 2);
        return if left { None } else { all(&[lines, Whole], lines, count(&a[..rank - 1]), LINES) };
    }
    // The part of a `Gemm`'s operand that is added, if it has this axis of the result.
    let added = |axis: usize| match spec.operands.get(2).copied().flatten() {
        Some(_) => {
            let dims = spec.dims(2).unwrap_or_default();
            let at = (axis + dims.len()).checked_sub(2);
            at.filter(|&at| dims[at] > 1).map_or(Whole, Slices)
        }
        None => Whole,
    };
    if count(&a) >= count(&b) {
        let rows = Slices(usize::from(left));
        all(&[rows, Whole, added(0)], Slices(0), c[0], LINES)
    } else {
        let columns = Slices(usize::from(!right));
        all(&[Whole, columns, added(1)], Slices(1), c[1], LINES)
    }
}
