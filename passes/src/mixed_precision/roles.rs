//! The treatment of short floats by each operator: one row an operator.

use lmsc_ir::domains::{LMSC, MS, ONNX};
use lmsc_ir::{Node, Op};

/// Operands or results of an operator, by position.
#[derive(Clone, Copy, Debug)]
pub(super) enum Positions {
    /// All that are floats.
    All,
    /// These.
    These(&'static [usize]),
}

impl Positions {
    pub(super) fn contain(self, index: usize) -> bool {
        match self {
            Positions::All => true,
            Positions::These(list) => list.contains(&index),
        }
    }
}

/// When an operator is computed on short floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Always: products and convolutions.
    Product,
    /// If one of its operands is short.
    Follows,
    /// As [`Role::Follows`] in the backward phase, where it sums gradients; in the forward phase never, where it computes
    /// statistics.
    Sum,
    /// It reads a table of the model's parameters: its result is cast, not the table.
    Table,
    /// A loss over classes: its scores are short, and the loss is summed in `float`.
    Loss,
    /// The gradient of such a loss. That of the loss itself stays `float`, and a mean becomes a sum of gradients that are divided
    /// beforehand: rows are then computed by themselves.
    LossGradient,
    /// It updates `float` variables; its gradient may be short.
    Update,
}

/// The row of an operator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) role: Role,
    /// Operands that are short; the others keep their types.
    pub(super) operands: Positions,
    /// Results that are short.
    pub(super) results: Positions,
}

use Positions::{All, These};
use Role::{Follows, Loss, LossGradient, Product, Sum, Table, Update};

const FIRST: Positions = These(&[0]);
const NONE: Positions = These(&[]);

/// Domain, names, role, operands, results. An operator without a row stays in `float`.
#[rustfmt::skip]
const ROWS: &[(&str, &[&str], Role, Positions, Positions)] = &[
    (ONNX, &["Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"], Product, All, All),
    (MS, &["ConvGrad", "ConvTransposeGrad", "FusedMatMul", "TransposeMatMul"], Product, All, All),
    (LMSC, &["NhwcConv", "NhwcConvGrad", "NhwcConvTranspose", "NhwcConvTransposeGrad"], Product, All, All),

    // Elementwise.
    (ONNX, &[
        "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor", "Gelu",
        "HardSigmoid", "HardSwish", "LeakyRelu", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin",
        "Sinh", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Add", "Sub", "Mul", "Div", "Mod", "PRelu",
        "Max", "Min", "Mean", "Sum", "Where", "Clip",
    ], Follows, All, All),
    (ONNX, &["Pow"], Follows, FIRST, All),
    (ONNX, &["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"], Follows, All, NONE),
    (ONNX, &["IsInf", "IsNaN", "Shape", "Size", "ArgMax", "ArgMin", "Cast"], Follows, FIRST, NONE),
    (ONNX, &["TopK"], Follows, FIRST, FIRST),
    (MS, &["BiasGelu", "FastGelu", "Gelu", "QuickGelu"], Follows, All, All),
    (MS, &["Scale"], Follows, FIRST, All),
    (MS, &[
        "BiasFastGeluGrad_dX", "BiasGeluGrad_dX", "DivGrad", "FastGeluGrad", "GeluGrad", "LeakyReluGrad", "QuickGeluGrad", "ReluGrad",
        "SigmoidGrad", "SinGrad", "TanhGrad",
    ], Follows, All, All),
    (ONNX, &["Dropout"], Follows, FIRST, FIRST),
    (MS, &["DropoutGrad"], Follows, FIRST, FIRST),

    // Movement.
    (ONNX, &[
        "Concat", "DepthToSpace", "Expand", "Flatten", "GatherElements", "GatherND", "Identity", "Pad", "Reshape", "Slice",
        "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze",
    ], Follows, All, All),
    (ONNX, &["Gather"], Table, FIRST, FIRST),
    (ONNX, &["Resize", "Upsample"], Follows, FIRST, FIRST),
    (ONNX, &["Scatter", "ScatterElements", "ScatterND"], Follows, All, All),
    (MS, &[
        "ConcatTraining", "GatherElementsGrad", "GatherGrad", "GatherNDGrad", "SliceGrad", "SplitTraining", "Trilu",
    ], Follows, All, All),
    (MS, &["ResizeGrad"], Follows, These(&[0, 1]), All),

    // Pooling.
    (ONNX, &[
        "AveragePool", "AveragePoolGrad", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "MaxPoolGrad",
    ], Follows, All, All),
    (MS, &["AveragePoolGrad", "MaxPoolGrad"], Follows, All, All),
    (LMSC, &["NhwcAveragePool", "NhwcAveragePoolGrad", "NhwcMaxPool", "NhwcMaxPoolGrad"], Follows, All, All),

    // Normalizations: their statistics stay in `float`.
    (ONNX, &["Softmax", "LogSoftmax"], Follows, All, All),
    (MS, &["LogSoftmaxGrad", "LogSoftmaxGrad_13", "SoftmaxGrad", "SoftmaxGrad_13"], Follows, All, All),
    (ONNX, &["GroupNormalization", "InstanceNormalization"], Follows, All, All),
    (ONNX, &["LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"], Follows, These(&[0, 1, 2]), FIRST),
    (MS, &["LayerNormalization", "SimplifiedLayerNormalization"], Follows, These(&[0, 1, 2]), FIRST),
    (MS, &["LayerNormalizationGrad", "SimplifiedLayerNormalizationGrad"], Follows, These(&[0, 1, 2]), All),
    (ONNX, &["BatchNormalization"], Follows, FIRST, FIRST),
    (MS, &["BatchNormInternal"], Follows, FIRST, FIRST),
    (MS, &["BatchNormalizationGrad"], Follows, These(&[0, 1]), FIRST),

    // Reductions. The largest element is no sum.
    (ONNX, &["ReduceMax", "ReduceMin"], Follows, FIRST, All),
    (ONNX, &[
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare",
    ], Sum, FIRST, All),
    (MS, &["ReduceSumTraining"], Sum, FIRST, All),

    // Losses.
    (ONNX, &["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"], Loss, FIRST, These(&[1])),
    (MS, &[
        "NegativeLogLikelihoodLossInternal", "NegativeLogLikelihoodLossInternal2", "SoftmaxCrossEntropyLossInternal",
    ], Loss, FIRST, These(&[1])),
    (MS, &["SoftmaxCrossEntropyLossGrad", "SoftmaxCrossEntropyLossInternalGrad"], LossGradient, These(&[1, 3, 4, 5]), FIRST),

    // Updates, with the place of the gradient.
    (MS, &["AdamOptimizer", "AdamWOptimizer"], Update, These(&[3]), NONE),
    (MS, &["SGDOptimizerV2"], Update, These(&[2]), NONE),
    (MS, &["GradientAccumulator", "InPlaceAccumulator", "InPlaceAccumulatorV2"], Update, These(&[1]), NONE),
    (LMSC, &["AdamWOptimizer"], Update, These(&[3]), NONE),
    (LMSC, &["SGDOptimizer"], Update, These(&[2]), NONE),
];

/// The row of the operator, if it has one.
pub(super) fn row(op: &Op) -> Option<Row> {
    let (domain, name) = op.key();
    let found = ROWS.iter().find(|(of, names, ..)| *of == domain && names.contains(&name))?;
    let &(_, _, role, operands, results) = found;
    Some(Row { role, operands, results })
}

/// Operators whose results leave the range of `float16` for operands well within it.
const GROWING: &[&str] = &["Acos", "Asin", "Cosh", "Exp", "Log", "Pow", "Reciprocal", "Sinh", "Tan"];

/// Whether the node's results may leave the range of `float16`, whose largest number is 65,504: as those of [`GROWING`], or a square.
pub(super) fn has_narrow_range(node: &Node) -> bool {
    let is_square = node.op.name() == "Mul" && matches!(node.operands[..], [a, b] if a == b);
    node.op.domain() == ONNX && (is_square || GROWING.contains(&node.op.name()))
}
