//! The table of costs: one row per operator, and the only place to add one.

use std::collections::HashMap;
use std::sync::LazyLock;

use lmsc_ir::domains::{LMSC, MS, ONNX, PREVIEW};
use lmsc_ir::{Graph, Node, Op, Place, Type, nhwc};

use super::rules::{Cost, Cx, Rule};
use super::stream::{self, FUNCTION};
use super::{product, recurrent};

/// `(domain, operator, rule)`; a function of each element that keeps the type needs no row. The number in `stream::once` is the number of operations for each element.
#[rustfmt::skip]
static RULES: &[(&str, &str, Rule)] = &[
    // Elementwise, one operand.
    (ONNX, "Abs", stream::arithmetic),
    (ONNX, "BitwiseNot", stream::arithmetic),
    (ONNX, "Ceil", stream::arithmetic),
    (ONNX, "Clip", stream::arithmetic),
    (ONNX, "Floor", stream::arithmetic),
    (ONNX, "HardSigmoid", stream::arithmetic),
    (ONNX, "HardSwish", stream::arithmetic),
    (ONNX, "LeakyRelu", stream::arithmetic),
    (ONNX, "Neg", stream::arithmetic),
    (ONNX, "Not", stream::arithmetic),
    (ONNX, "Reciprocal", stream::arithmetic),
    (ONNX, "Relu", stream::arithmetic),
    (ONNX, "Round", stream::arithmetic),
    (ONNX, "Shrink", stream::arithmetic),
    (ONNX, "Sign", stream::arithmetic),
    (ONNX, "Softsign", stream::arithmetic),
    (ONNX, "Sqrt", stream::arithmetic),
    (ONNX, "ThresholdedRelu", stream::arithmetic),
    (ONNX, "IsInf", stream::arithmetic),
    (ONNX, "IsNaN", stream::arithmetic),
    (ONNX, "Cast", stream::moved),
    (ONNX, "CastLike", stream::moved),
    (ONNX, "BitCast", stream::moved),
    (MS, "FastGelu", stream::function),
    (MS, "BiasGelu", stream::function),
    (MS, "BiasAdd", stream::arithmetic),
    (MS, "BiasSoftmax", |cx| stream::along_axis(cx, &[0], FUNCTION + 4)),
    (MS, "BiasSplitGelu", stream::function),
    (MS, "Scale", stream::arithmetic),
    (MS, "BatchScale", stream::arithmetic),
    (MS, "IsFinite", stream::arithmetic),

    // Elementwise, several operands.
    (ONNX, "Add", stream::arithmetic),
    (ONNX, "Sub", stream::arithmetic),
    (ONNX, "Mul", stream::arithmetic),
    (ONNX, "Div", stream::arithmetic),
    (ONNX, "Mod", stream::arithmetic),
    (ONNX, "Pow", stream::function),
    (ONNX, "PRelu", stream::arithmetic),
    (ONNX, "BitShift", stream::arithmetic),
    (ONNX, "BitwiseAnd", stream::arithmetic),
    (ONNX, "BitwiseOr", stream::arithmetic),
    (ONNX, "BitwiseXor", stream::arithmetic),
    (ONNX, "And", stream::arithmetic),
    (ONNX, "Or", stream::arithmetic),
    (ONNX, "Xor", stream::arithmetic),
    (ONNX, "Equal", stream::arithmetic),
    (ONNX, "Greater", stream::arithmetic),
    (ONNX, "GreaterOrEqual", stream::arithmetic),
    (ONNX, "Less", stream::arithmetic),
    (ONNX, "LessOrEqual", stream::arithmetic),
    (ONNX, "Max", stream::arithmetic),
    (ONNX, "Min", stream::arithmetic),
    (ONNX, "Mean", stream::arithmetic),
    (ONNX, "Sum", stream::arithmetic),
    (ONNX, "StringConcat", stream::moved),
    (ONNX, "Where", stream::moved),
    (MS, "ScaledSum", stream::arithmetic),

    // Dropout.
    (ONNX, "Dropout", stream::function),
    (MS, "BiasDropout", stream::function),
    (MS, "BitmaskBiasDropout", stream::function),
    (MS, "BitmaskDropout", stream::function),
    (MS, "BitmaskDropoutGrad", |cx| stream::once(cx, 3)),
    (MS, "DropoutGrad", |cx| stream::once(cx, 3)),

    // Gradients of elementwise operators.
    (MS, "BiasFastGeluGrad_dX", stream::function),
    (MS, "BiasGeluGrad_dX", stream::function),
    (MS, "DivGrad", |cx| stream::once(cx, 3)),
    (MS, "FakeQuant", stream::arithmetic),
    (MS, "FakeQuantGrad", |cx| stream::once(cx, 3)),
    (MS, "FastGeluGrad", stream::function),
    (MS, "GeluGrad", stream::function),
    (MS, "LeakyReluGrad", stream::arithmetic),
    (MS, "QuickGeluGrad", stream::function),
    (MS, "ReluGrad", stream::arithmetic),
    (MS, "SigmoidGrad", |cx| stream::once(cx, 3)),
    (MS, "SinGrad", stream::function),
    (MS, "TanhGrad", |cx| stream::once(cx, 3)),

    // Shapes as data.
    (ONNX, "BlackmanWindow", stream::function),
    (ONNX, "Constant", stream::free),
    (ONNX, "ConstantOfShape", stream::moved),
    (ONNX, "Expand", stream::moved),
    (ONNX, "EyeLike", stream::moved),
    (ONNX, "Flatten", stream::free),
    (ONNX, "HammingWindow", stream::function),
    (ONNX, "HannWindow", stream::function),
    (ONNX, "Identity", stream::free),
    (ONNX, "Range", stream::arithmetic),
    (ONNX, "Reshape", stream::free),
    (ONNX, "Shape", stream::free),
    (ONNX, "Size", stream::free),
    (ONNX, "Squeeze", stream::free),
    (ONNX, "Unsqueeze", stream::free),
    (MS, "BroadcastGradientArgs", stream::free),
    (MS, "ExpandDims", stream::free),
    (LMSC, "Copy", stream::moved),
    (LMSC, "Join", stream::free),
    (LMSC, "SwapIn", stream::free),
    (LMSC, "SwapOut", stream::free),

    // Movement.
    (ONNX, "AffineGrid", |cx| stream::once(cx, 8)),
    (ONNX, "CenterCropPad", stream::moved),
    (ONNX, "Col2Im", stream::moved),
    (ONNX, "Compress", stream::gather),
    (ONNX, "Concat", stream::moved),
    (ONNX, "DepthToSpace", stream::moved),
    (ONNX, "Gather", stream::gather),
    (ONNX, "GatherElements", stream::gather),
    (ONNX, "GatherND", stream::gather),
    (ONNX, "GridSample", |cx| stream::once(cx, 8)),
    (ONNX, "MaxRoiPool", |cx| stream::once(cx, 8)),
    (ONNX, "OneHot", stream::moved),
    (ONNX, "Pad", stream::moved),
    (ONNX, "Resize", |cx| stream::once(cx, 8)),
    (ONNX, "ReverseSequence", stream::moved),
    (ONNX, "RoiAlign", |cx| stream::once(cx, 8)),
    (ONNX, "Scatter", stream::scatter),
    (ONNX, "ScatterElements", stream::scatter),
    (ONNX, "ScatterND", stream::scatter),
    (ONNX, "Slice", stream::part),
    (ONNX, "SpaceToDepth", stream::moved),
    (ONNX, "Split", stream::moved),
    (ONNX, "TensorScatter", stream::moved),
    (ONNX, "Tile", stream::moved),
    (ONNX, "Transpose", stream::moved),
    (ONNX, "Trilu", stream::moved),
    (ONNX, "Upsample", |cx| stream::once(cx, 8)),
    (MS, "ConcatTraining", stream::moved),
    (MS, "GatherElementsGrad", |cx| stream::into_zeros(cx, 0, 2)),
    (MS, "GatherGrad", |cx| stream::into_zeros(cx, 2, 1)),
    (MS, "GatherNDGrad", |cx| stream::into_zeros(cx, 2, 1)),
    (MS, "PadAndUnflatten", stream::moved),
    (MS, "ResizeGrad", |cx| stream::once(cx, 8)),
    (MS, "SliceGrad", stream::moved),
    (MS, "SplitTraining", stream::moved),
    (MS, "Trilu", stream::moved),

    // Products.
    (ONNX, "Attention", product::attention),
    (LMSC, "Attention", |cx| product::tiled_attention(cx, 0, 1, 1)),
    // Scores and the gradients of weights twice, for queries and for keys; and the three results.
    (LMSC, "AttentionGrad", |cx| product::tiled_attention(cx, 1, 4, 3)),
    (ONNX, "Det", stream::function),
    (ONNX, "Einsum", product::einsum),
    (ONNX, "Gemm", product::gemm),
    (ONNX, "MatMul", |cx| product::matmul(cx, 0, 1)),
    (ONNX, "MatMulInteger", |cx| product::matmul(cx, 0, 1)),
    (ONNX, "QLinearMatMul", |cx| product::matmul(cx, 0, 3)),
    (MS, "DynamicQuantizeMatMul", |cx| product::matmul(cx, 0, 1)),
    (MS, "FusedGemm", product::gemm),
    (MS, "FusedMatMul", |cx| product::matmul(cx, 0, 1)),
    (MS, "FusedMatMulActivation", |cx| product::matmul(cx, 0, 1)),
    (MS, "MatMulIntegerToFloat", |cx| product::matmul(cx, 0, 1)),
    (MS, "MatMulNBits", product::matmul_bits),
    (MS, "RotaryEmbedding", |cx| stream::once(cx, 3)),
    (MS, "TransposeMatMul", |cx| product::matmul(cx, 0, 1)),
    (ONNX, "RotaryEmbedding", |cx| stream::once(cx, 3)),

    // Convolutions and pooling.
    (ONNX, "AveragePool", stream::pool),
    (ONNX, "AveragePoolGrad", stream::average_pool_gradient),
    (ONNX, "Conv", |cx| product::conv(cx, 1)),
    (ONNX, "ConvInteger", |cx| product::conv(cx, 1)),
    (ONNX, "ConvTranspose", product::conv_transpose),
    (ONNX, "DeformConv", |cx| product::conv(cx, 1)),
    (ONNX, "GlobalAveragePool", stream::arithmetic),
    (ONNX, "GlobalLpPool", stream::arithmetic),
    (ONNX, "GlobalMaxPool", stream::arithmetic),
    (ONNX, "LpPool", stream::pool),
    (ONNX, "MaxPool", stream::pool),
    (ONNX, "MaxPoolGrad", |cx| stream::into_zeros(cx, 0, 1)),
    (ONNX, "MaxUnpool", |cx| stream::into_zeros(cx, 0, 1)),
    (ONNX, "QLinearConv", |cx| product::conv(cx, 3)),
    (LMSC, "NhwcAveragePool", channels_last),
    (LMSC, "NhwcAveragePoolGrad", channels_last),
    (LMSC, "NhwcConv", channels_last),
    (LMSC, "NhwcConvGrad", channels_last),
    (LMSC, "NhwcConvTranspose", channels_last),
    (LMSC, "NhwcConvTransposeGrad", channels_last),
    (LMSC, "NhwcMaxPool", channels_last),
    (LMSC, "NhwcMaxPoolGrad", channels_last),
    (MS, "AveragePoolGrad", stream::average_pool_gradient),
    (MS, "ConvGrad", product::conv_gradient),
    (MS, "ConvTransposeGrad", product::conv_transpose_gradient),
    (MS, "FusedConv", |cx| product::conv(cx, 1)),
    (MS, "MaxPoolGrad", |cx| stream::into_zeros(cx, 0, 1)),

    // Normalizations.
    (ONNX, "BatchNormalization", |cx| stream::batch(cx, cx.is_set("training_mode"))),
    (ONNX, "GroupNormalization", stream::instance),
    (ONNX, "Hardmax", |cx| stream::along_axis(cx, &[0], 3)),
    (ONNX, "InstanceNormalization", stream::instance),
    (ONNX, "LRN", |cx| stream::once(cx, 2 * FUNCTION)),
    (ONNX, "LayerNormalization", stream::layer),
    (ONNX, "LogSoftmax", |cx| stream::along_axis(cx, &[0], FUNCTION + 3)),
    (ONNX, "LpNormalization", |cx| stream::along_axis(cx, &[0], 3)),
    (ONNX, "MeanVarianceNormalization", |cx| stream::batch(cx, true)),
    (ONNX, "RMSNormalization", stream::layer),
    (ONNX, "SimplifiedLayerNormalization", stream::layer),
    (ONNX, "Softmax", |cx| stream::along_axis(cx, &[0], FUNCTION + 3)),
    (MS, "BatchNormInternal", |cx| stream::batch(cx, true)),
    (MS, "BatchNormalizationGrad", stream::batch_gradient),
    (MS, "GroupNorm", |cx| stream::batch(cx, true)),
    (MS, "InvertibleLayerNormalizationGrad", stream::layer_gradient),
    (MS, "LayerNormalization", stream::layer),
    (MS, "LayerNormalizationGrad", stream::layer_gradient),
    (MS, "LogSoftmaxGrad", |cx| stream::along_axis(cx, &[0, 1], FUNCTION + 3)),
    (MS, "LogSoftmaxGrad_13", |cx| stream::along_axis(cx, &[0, 1], FUNCTION + 3)),
    (MS, "SimplifiedLayerNormalization", stream::layer),
    (MS, "SimplifiedLayerNormalizationGrad", stream::layer_gradient),
    (MS, "SkipLayerNormalization", stream::layer),
    (MS, "SkipSimplifiedLayerNormalization", stream::layer),
    (MS, "SoftmaxGrad", |cx| stream::along_axis(cx, &[0, 1], 4)),
    (MS, "SoftmaxGrad_13", |cx| stream::along_axis(cx, &[0, 1], 4)),

    // Reductions.
    (ONNX, "ArgMax", stream::arithmetic),
    (ONNX, "ArgMin", stream::arithmetic),
    (ONNX, "CumProd", stream::arithmetic),
    (ONNX, "CumSum", stream::arithmetic),
    (ONNX, "NonZero", stream::arithmetic),
    (ONNX, "ReduceL1", stream::arithmetic),
    (ONNX, "ReduceL2", |cx| stream::once(cx, 2)),
    (ONNX, "ReduceLogSum", stream::function),
    (ONNX, "ReduceLogSumExp", stream::function),
    (ONNX, "ReduceMax", stream::arithmetic),
    (ONNX, "ReduceMean", stream::arithmetic),
    (ONNX, "ReduceMin", stream::arithmetic),
    (ONNX, "ReduceProd", stream::arithmetic),
    (ONNX, "ReduceSum", stream::arithmetic),
    (ONNX, "ReduceSumSquare", |cx| stream::once(cx, 2)),
    (ONNX, "TopK", stream::function),
    (MS, "ReduceSumTraining", stream::arithmetic),

    // Recurrent layers.
    (ONNX, "GRU", recurrent::forward),
    (ONNX, "LSTM", recurrent::forward),
    (ONNX, "RNN", recurrent::forward),
    (MS, "GRUGrad", recurrent::gradient),
    (MS, "GRUTraining", recurrent::forward),
    (MS, "LSTMGrad", recurrent::gradient),
    (MS, "LSTMTraining", recurrent::forward),

    // Losses.
    (ONNX, "NegativeLogLikelihoodLoss", stream::gather),
    (ONNX, "SoftmaxCrossEntropyLoss", |cx| stream::cross_entropy(cx, 1)),
    (MS, "NegativeLogLikelihoodLossInternal", stream::gather),
    (MS, "NegativeLogLikelihoodLossInternal2", stream::gather),
    (MS, "SoftmaxCrossEntropy", |cx| stream::cross_entropy(cx, -1)),
    (MS, "SoftmaxCrossEntropyGrad", |cx| stream::once(cx, FUNCTION + 3)),
    (MS, "SoftmaxCrossEntropyLossGrad", |cx| stream::once(cx, FUNCTION + 3)),
    (MS, "SoftmaxCrossEntropyLossInternal", |cx| stream::cross_entropy(cx, 1)),
    (MS, "SoftmaxCrossEntropyLossInternalGrad", |cx| stream::once(cx, FUNCTION + 3)),
    (MS, "SparseSoftmaxCrossEntropy", |cx| stream::cross_entropy(cx, -1)),
    (MS, "SparseSoftmaxCrossEntropyGrad", |cx| stream::once(cx, FUNCTION + 3)),

    // Training.
    (MS, "AdamOptimizer", stream::adamw),
    (MS, "AdamWOptimizer", stream::adamw),
    (MS, "GradientAccumulator", stream::accumulate),
    (MS, "Group", stream::free),
    (MS, "InPlaceAccumulator", stream::accumulate),
    (MS, "InPlaceAccumulatorV2", stream::accumulate),
    (MS, "IsAllFinite", stream::arithmetic),
    (MS, "MixedPrecisionScale", stream::arithmetic),
    (MS, "PassThrough", stream::free),
    (MS, "RecordEvent", stream::free),
    (MS, "ReduceAllL2", |cx| stream::once(cx, 2)),
    (MS, "SGDOptimizer", stream::sgd),
    (MS, "SGDOptimizerV2", stream::sgd),
    (MS, "YieldOp", stream::free),
    (MS, "ZeroGradient", stream::moved),
    (PREVIEW, "Adagrad", |cx| stream::once(cx, 14)),
    (PREVIEW, "Adam", |cx| stream::once(cx, 14)),
    (PREVIEW, "Gradient", stream::arithmetic),
    (PREVIEW, "Momentum", |cx| stream::once(cx, 5)),
    (LMSC, "AdamWOptimizer", stream::adamw),
    (LMSC, "SGDOptimizer", stream::sgd),

    // Sequences.
    (ONNX, "ConcatFromSequence", stream::moved),
    (ONNX, "SequenceAt", stream::free),
    (ONNX, "SequenceConstruct", stream::free),
    (ONNX, "SequenceEmpty", stream::free),
    (ONNX, "SequenceErase", stream::free),
    (ONNX, "SequenceInsert", stream::free),
    (ONNX, "SequenceLength", stream::free),
    (ONNX, "SplitToSequence", stream::moved),

    // Random tensors.
    (ONNX, "Bernoulli", stream::function),
    (ONNX, "Multinomial", stream::function),
    (ONNX, "RandomNormal", stream::function),
    (ONNX, "RandomNormalLike", stream::function),
    (ONNX, "RandomUniform", stream::function),
    (ONNX, "RandomUniformLike", stream::function),

    // Quantization.
    (ONNX, "DequantizeLinear", stream::arithmetic),
    (ONNX, "DynamicQuantizeLinear", stream::arithmetic),
    (ONNX, "QuantizeLinear", stream::arithmetic),
    (MS, "DequantizeLinear", stream::arithmetic),
    (MS, "QuantizeLinear", stream::arithmetic),
    (ONNX, "OptionalHasElement", stream::free),
];

static INDEX: LazyLock<HashMap<(&str, &str), Rule>> =
    LazyLock::new(|| RULES.iter().map(|&(domain, name, rule)| ((domain, name), rule)).collect());

/// The cost of an operator on images with channels last: that of the operator with channels first.
fn channels_last(cx: &Cx<'_>) -> Option<Cost> {
    let form = nhwc::of(&cx.node.op)?;
    let turned = |ty: &Type, is_image: bool| if is_image { nhwc::first_type(ty) } else { ty.clone() };
    let mut graph = Graph::new("");
    let mut node = Node::new("n", form.first_op());
    node.attributes = cx.node.attributes.clone();
    for index in 0..cx.node.operands.len() {
        let ty = cx.operand(index).map(|ty| turned(ty, form.operands.contains(&index)));
        node.operands.push(ty.map(|ty| graph.add_input(format!("x{index}"), ty, Place::Device)));
    }
    let results = (0..cx.node.results.len()).map(|index| {
        let ty = cx.result(index).map(|ty| turned(ty, form.results.contains(&index)));
        ty.map(|ty| (format!("y{index}"), ty, Place::Device))
    });
    let id = graph.add_node(node, results.collect::<Vec<_>>());
    rule(&form.first_op())?(&Cx { graph: &graph, node: graph.node(id) })
}

/// The operator's rule, if it has one: its row, or a function of each element for an operator whose contract says that it keeps the
/// type.
pub(super) fn rule(op: &Op) -> Option<Rule> {
    let kept = || op.contract().filter(|contract| contract.keeps_type()).map(|_| stream::function as Rule);
    INDEX.get(&op.key()).copied().or_else(kept)
}

/// The operators of the table.
#[cfg(test)]
pub(super) fn operators() -> Vec<Op> {
    RULES.iter().map(|(domain, name, _)| Op::new(domain, name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_operator_has_two_rows() {
        assert_eq!(INDEX.len(), RULES.len());
    }
}
