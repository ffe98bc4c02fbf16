//! The compiler's knowledge of operators besides their shapes: which results are views, which operands are written in place,
//! which operators are random, and which read only a shape. Effects are a part of an operator's [contract](crate::contract).

use crate::contract::{ANY_VERSION, Contract};
use crate::domains::{MS, ONNX};
use crate::{Attr, Node, Op, Phase, ValueId};

/// An operator's effects on memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Result 0 shares the storage of operand 0.
    pub view: bool,
    /// Only the shape of operand 0 is used: its bytes are not read.
    pub shape_only: bool,
    /// The results depend on more than operands and attributes, so the node may be neither merged nor repeated.
    pub random: bool,
    /// `(operand, result)`: the operand's storage is written; the result, if it is used, is its new value.
    pub writes: &'static [(usize, usize)],
    /// In training mode, the other results do not depend on the written operands: see [`aside`].
    pub aside: bool,
    /// The operator occurs in this phase only.
    pub phase: Option<Phase>,
    /// The operator copies its operand over the link.
    pub copy: Option<Copying>,
}

/// The direction of a copy over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copying {
    /// From the device to the host.
    Out,
    /// From the host to the device.
    In,
}

pub(crate) const PLAIN: Effects = Effects {
    view: false,
    shape_only: false,
    random: false,
    writes: &[],
    aside: false,
    phase: None,
    copy: None,
};
pub(crate) const VIEW: Effects = Effects { view: true, ..PLAIN };
pub(crate) const SHAPE_ONLY: Effects = Effects { shape_only: true, ..PLAIN };
pub(crate) const RANDOM: Effects = Effects { random: true, ..PLAIN };
pub(crate) const GRADIENT: Effects = Effects { phase: Some(Phase::Backward), ..PLAIN };
pub(crate) const OPTIMIZER: Effects = Effects { phase: Some(Phase::Update), ..PLAIN };
pub(crate) const OUT: Effects = Effects { copy: Some(Copying::Out), ..PLAIN };
pub(crate) const IN: Effects = Effects { copy: Some(Copying::In), ..PLAIN };

pub(crate) const fn writing(writes: &'static [(usize, usize)]) -> Effects {
    Effects { writes, ..PLAIN }
}

pub(crate) const fn updating(writes: &'static [(usize, usize)]) -> Effects {
    Effects { writes, phase: Some(Phase::Update), ..PLAIN }
}

/// The effects of the operator of this domain and name: those of its contract.
///
/// Without one, an operator of the `com.microsoft` domain whose name ends in `Grad` (with or without a suffix such as `_13`)
/// is a gradient operator.
pub(crate) fn effects_of(domain: &str, name: &str, contract: Option<&Contract>) -> Effects {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    match contract {
        Some(contract) => contract.effects,
        None if domain == MS && (stem.ends_with("Grad") || stem.ends_with("Grad_dX")) => GRADIENT,
        None => PLAIN,
    }
}

/// Operators whose results are all zero if one of these operands is zero, for any finite values of the other operands, and the
/// operands that must be absent for that: domain, name, operands, absent operands.
type Vanishing = (&'static str, &'static str, &'static [usize], &'static [usize]);

#[rustfmt::skip]
const VANISHING: &[Vanishing] = &[
    (ONNX, "Mul", &[0, 1], &[]),
    (ONNX, "MatMul", &[0, 1], &[]),
    (ONNX, "Gemm", &[0, 1], &[2]),
    (ONNX, "Conv", &[0, 1], &[2]),
    (ONNX, "Relu", &[0], &[]),
    (ONNX, "Neg", &[0], &[]),
    (ONNX, "Identity", &[0], &[]),
    (ONNX, "Reshape", &[0], &[]),
    (ONNX, "Flatten", &[0], &[]),
    (ONNX, "Squeeze", &[0], &[]),
    (ONNX, "Unsqueeze", &[0], &[]),
    (ONNX, "Transpose", &[0], &[]),
    (ONNX, "Expand", &[0], &[]),
    (ONNX, "ReduceSum", &[0], &[]),
    (ONNX, "ReduceMean", &[0], &[]),
    (ONNX, "MaxPoolGrad", &[0], &[]),
    (MS, "FusedMatMul", &[0, 1], &[]),
    (MS, "Scale", &[0], &[]),
    (MS, "BatchNormalizationGrad", &[0], &[]),
    (MS, "ConvGrad", &[0], &[]),
    (MS, "DropoutGrad", &[0], &[]),
    (MS, "FastGeluGrad", &[0], &[]),
    (MS, "GeluGrad", &[0], &[]),
    (MS, "LayerNormalizationGrad", &[0], &[]),
    (MS, "ReluGrad", &[0], &[]),
];

/// Operators whose results are all zero if all operands are.
const SUMS: &[(&str, &str)] = &[(ONNX, "Add"), (ONNX, "Concat"), (ONNX, "Sub"), (ONNX, "Sum")];

/// The operators that [`vanishes`] knows, each with the operands of which a single zero one suffices, or none if all must be
/// zero.
pub fn vanishing() -> impl Iterator<Item = (&'static str, &'static str, Option<&'static [usize]>)> {
    let sums = SUMS.iter().map(|&(domain, name)| (domain, name, None));
    VANISHING.iter().map(|&(domain, name, with, _)| (domain, name, Some(with))).chain(sums)
}

/// Whether all results of the operator are zero, given for each operand whether it is zero; `None` if the operand is left out.
/// False if the operator or an operand is not known to be zero.
pub fn vanishes(op: &Op, zero: &[Option<bool>]) -> bool {
    let is = |&(domain, name): &(&str, &str)| (domain, name) == op.key();
    if SUMS.iter().any(is) {
        return zero.iter().any(Option::is_some) && zero.iter().flatten().all(|&zero| zero);
    }
    let Some((_, _, with, without)) = VANISHING.iter().find(|row| (row.0, row.1) == op.key()) else {
        return false;
    };
    let operand = |index: &usize| zero.get(*index).copied().flatten();
    with.iter().any(|index| operand(index) == Some(true)) && without.iter().all(|i| operand(i).is_none())
}

/// The operands and results that the node writes aside, as in [`Effects::writes`]: nothing else that it computes depends on them.
/// Without them the node is a function of the other operands.
///
/// An example is batch normalization: in training it normalizes by the statistics of the batch, and only updates the running
/// ones.
pub fn aside(node: &Node) -> Option<&'static [(usize, usize)]> {
    let effects = node.op.effects();
    // One default holds for all versions.
    let training =
        || node.op.attribute(ANY_VERSION, &node.attributes, "training_mode") == Some(&Attr::Int(1));
    (effects.aside && training()).then_some(effects.writes)
}

/// Whether the node may hold a subgraph, whose effects are unknown.
pub fn has_subgraph(node: &Node) -> bool {
    !node.captures.is_empty() || node.attributes.iter().any(|(_, a)| matches!(a, Attr::Opaque(_)))
}

/// Whether extents of the node's results may depend on elements that are floats. Those of other operators of ONNX depend on
/// integers and truth values alone; nothing is known about operators of other domains.
pub(crate) fn makes_extents_of_floats(node: &Node) -> bool {
    let by_name = matches!(
        node.op.name(),
        "NonMaxSuppression" | "NonZero" | "Range" | "Resize" | "Unique" | "Upsample"
    );
    has_subgraph(node) || !node.op.domain().is_empty() || by_name
}

/// Whether the node may draw random numbers, from its seed ([`crate::Graph::seed`]).
pub fn may_draw(node: &Node) -> bool {
    node.op.effects().random || has_subgraph(node)
}

/// Whether the node, run again on the same operands, gives the same results and changes nothing else.
pub fn is_pure(node: &Node) -> bool {
    let effects = node.op.effects();
    let is_there = |values: &[Option<ValueId>], index: usize| values.get(index).copied().flatten().is_some();
    let left_out = |&(operand, result): &(usize, usize)| {
        !is_there(&node.operands, operand) && !is_there(&node.results, result)
    };
    let writes = || !aside(node).is_some_and(|aside| aside.iter().all(left_out));
    !effects.random
        && (effects.writes.is_empty() || !writes())
        && node.updates.is_empty()
        && node.captures.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradient_operators_are_known_by_name() {
        let phase = |domain: &str, name: &str| Op::new(domain, name).effects().phase;
        for name in
            ["ConvGrad", "SoftmaxGrad_13", "BiasGeluGrad_dX", "OtherGrad", "OtherGrad_13", "OtherGrad_dX"]
        {
            assert_eq!(phase(MS, name), Some(Phase::Backward), "{name}");
        }
        assert_eq!(phase(MS, "FusedMatMul"), None);
        assert_eq!(phase(ONNX, "Relu"), None);
    }

    #[test]
    fn an_operator_with_side_writes_is_pure_without_them() {
        let text = |mode: u8, operands: &str, results: &str| {
            let g = format!(
                "g (float[2,3] x, float[3] s, float[3] m) => (float[2,3] y) {{
                    [n] float[2,3] y{results} =
                        com.microsoft.BatchNormInternal<training_mode = {mode}>(x, s, s{operands})
                }}"
            );
            let graph = crate::Graph::parse(&g).unwrap();
            is_pure(graph.node(graph.order()[0]))
        };
        assert!(text(1, "", "") && text(1, ", _, _", ", _, _"));
        assert!(!text(0, "", ""), "by the running statistics");
        assert!(!text(1, ", m", "") && !text(1, "", ", float[3] n"));
    }

    #[test]
    fn no_operator_vanishes_by_two_rows() {
        let names: Vec<_> = vanishing().map(|(domain, name, _)| (domain, name)).collect();
        assert!((0..names.len()).all(|i| !names[..i].contains(&names[i])));
    }

    #[test]
    fn zero_results_follow_from_the_operands_that_matter() {
        let gemm = Op::new("", "Gemm");
        assert!(vanishes(&gemm, &[Some(false), Some(true)]));
        assert!(!vanishes(&gemm, &[Some(true), Some(false), Some(true)]), "a bias is added");
        let sum = Op::new("", "Sum");
        assert!(vanishes(&sum, &[Some(true), None, Some(true)]));
        assert!(!vanishes(&sum, &[Some(true), Some(false)]) && !vanishes(&sum, &[None]));
        assert!(!vanishes(&Op::new("", "Exp"), &[Some(true)]));
    }
}
