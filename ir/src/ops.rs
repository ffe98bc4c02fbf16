//! The compiler's knowledge of operators besides their shapes: which results are views, which operands are written in place,
//! which operators are random, and which read only a shape. One row per operator, in one table.

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

const PLAIN: Effects = Effects {
    view: false,
    shape_only: false,
    random: false,
    writes: &[],
    aside: false,
    phase: None,
    copy: None,
};
const VIEW: Effects = Effects { view: true, ..PLAIN };
const SHAPE_ONLY: Effects = Effects { shape_only: true, ..PLAIN };
const RANDOM: Effects = Effects { random: true, ..PLAIN };
const GRADIENT: Effects = Effects { phase: Some(Phase::Backward), ..PLAIN };
const OPTIMIZER: Effects = Effects { phase: Some(Phase::Update), ..PLAIN };
const OUT: Effects = Effects { copy: Some(Copying::Out), ..PLAIN };
const IN: Effects = Effects { copy: Some(Copying::In), ..PLAIN };

const fn writing(writes: &'static [(usize, usize)]) -> Effects {
    Effects { writes, ..PLAIN }
}

const fn updating(writes: &'static [(usize, usize)]) -> Effects {
    Effects { writes, phase: Some(Phase::Update), ..PLAIN }
}

/// Operators that are not plain functions of their operands. All others are.
#[rustfmt::skip]
const TABLE: &[(&str, &str, Effects)] = &[
    ("", "Identity", VIEW),
    ("", "Reshape", VIEW),
    ("", "Flatten", VIEW),
    ("", "Squeeze", VIEW),
    ("", "Unsqueeze", VIEW),
    ("", "Shape", SHAPE_ONLY),
    ("", "Size", SHAPE_ONLY),
    ("", "Bernoulli", RANDOM),
    ("", "Dropout", RANDOM),
    ("", "Multinomial", RANDOM),
    ("", "RandomNormal", RANDOM),
    ("", "RandomNormalLike", RANDOM),
    ("", "RandomUniform", RANDOM),
    ("", "RandomUniformLike", RANDOM),
    ("", "MaxPoolGrad", GRADIENT),
    ("", "AveragePoolGrad", GRADIENT),
    ("com.microsoft", "BitmaskDropout", RANDOM),
    ("com.microsoft", "BiasDropout", RANDOM),
    ("com.microsoft", "BatchNormInternal", Effects { aside: true, ..writing(&[(3, 1), (4, 2)]) }),
    // The flag of the accumulator is not a value of its variable; the optional second result is.
    ("com.microsoft", "InPlaceAccumulatorV2", updating(&[(0, 1)])),
    ("com.microsoft", "InPlaceAccumulator", updating(&[(0, 0)])),
    ("com.microsoft", "AdamOptimizer", updating(&[(1, 0), (4, 1), (5, 2), (2, 3)])),
    ("com.microsoft", "AdamWOptimizer", OPTIMIZER),
    ("com.microsoft", "SGDOptimizerV2", OPTIMIZER),
    ("com.microsoft", "YieldOp", GRADIENT),
    ("ai.lmsc", "SwapOut", OUT),
    ("ai.lmsc", "SwapIn", IN),
    ("ai.lmsc", "AttentionGrad", GRADIENT),
    ("ai.lmsc", "AdamWOptimizer", updating(&[(2, 0), (4, 1), (5, 2), (6, 3)])),
    ("ai.lmsc", "SGDOptimizer", updating(&[(1, 0)])),
    ("ai.onnx.preview.training", "Adam", OPTIMIZER),
    ("ai.onnx.preview.training", "Adagrad", OPTIMIZER),
    ("ai.onnx.preview.training", "Momentum", OPTIMIZER),
    ("ai.onnx.preview.training", "Gradient", GRADIENT),
];

/// The effects of the operator of this domain and name: its row of the table.
///
/// An operator of the `com.microsoft` domain whose name ends in `Grad` (with or without a suffix such as `_13`)
/// is a gradient operator without being listed.
pub(crate) fn effects_of(domain: &str, name: &str) -> Effects {
    if let Some((_, _, effects)) = TABLE.iter().find(|row| (row.0, row.1) == (domain, name)) {
        return *effects;
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    let gradient = domain == "com.microsoft" && (stem.ends_with("Grad") || stem.ends_with("Grad_dX"));
    if gradient { GRADIENT } else { PLAIN }
}

/// Operators whose results are all zero if one of these operands is zero, for any finite values of the other operands, and the
/// operands that must be absent for that: domain, name, operands, absent operands.
type Vanishing = (&'static str, &'static str, &'static [usize], &'static [usize]);

#[rustfmt::skip]
const VANISHING: &[Vanishing] = &[
    ("", "Mul", &[0, 1], &[]),
    ("", "MatMul", &[0, 1], &[]),
    ("", "Gemm", &[0, 1], &[2]),
    ("", "Conv", &[0, 1], &[2]),
    ("", "Relu", &[0], &[]),
    ("", "Neg", &[0], &[]),
    ("", "Identity", &[0], &[]),
    ("", "Reshape", &[0], &[]),
    ("", "Flatten", &[0], &[]),
    ("", "Squeeze", &[0], &[]),
    ("", "Unsqueeze", &[0], &[]),
    ("", "Transpose", &[0], &[]),
    ("", "Expand", &[0], &[]),
    ("", "ReduceSum", &[0], &[]),
    ("", "ReduceMean", &[0], &[]),
    ("", "MaxPoolGrad", &[0], &[]),
    ("com.microsoft", "FusedMatMul", &[0, 1], &[]),
    ("com.microsoft", "Scale", &[0], &[]),
    ("com.microsoft", "BatchNormalizationGrad", &[0], &[]),
    ("com.microsoft", "ConvGrad", &[0], &[]),
    ("com.microsoft", "DropoutGrad", &[0], &[]),
    ("com.microsoft", "FastGeluGrad", &[0], &[]),
    ("com.microsoft", "GeluGrad", &[0], &[]),
    ("com.microsoft", "LayerNormalizationGrad", &[0], &[]),
    ("com.microsoft", "ReluGrad", &[0], &[]),
];

/// Operators whose results are all zero if all operands are.
const SUMS: &[(&str, &str)] = &[("", "Add"), ("", "Concat"), ("", "Sub"), ("", "Sum")];

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
    let training = || node.attribute("training_mode") == Some(&Attr::Int(1));
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
        for name in ["ConvGrad", "SoftmaxGrad_13", "BiasGeluGrad_dX", "SoftmaxCrossEntropyLossGrad"] {
            assert_eq!(effects_of("com.microsoft", name).phase, Some(Phase::Backward), "{name}");
        }
        assert_eq!(effects_of("com.microsoft", "FusedMatMul").phase, None);
        assert_eq!(effects_of("", "Relu").phase, None);
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
    fn no_operator_has_two_rows() {
        for (i, (domain, name, _)) in TABLE.iter().enumerate() {
            assert!(!TABLE[..i].iter().any(|(d, n, _)| (d, n) == (domain, name)), "{domain} {name}");
        }
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
