//! The table of rules: one row per operator, and the only place to add one.

use std::sync::LazyLock;

use foldhash::HashMap;
use lmsc_ir::domains::{LMSC, MS, ONNX, PREVIEW};
use lmsc_ir::{ElementType, Op};

use super::{
    Rule, conv, elementwise as each, loss, movement, nhwc, normalization as norm, product, quantize, random,
    reduce, rnn, sequence, shape, training,
};

/// `(domain, operator, rule)`; an operator that keeps the type of operand 0 needs no row. Parameters that moved between attribute and operand over the versions are read in both places, so
/// one row serves every version.
#[rustfmt::skip]
static RULES: &[(&str, &str, Rule)] = &[
    // Elementwise, one operand. If shapes may be computed with it, two functions: on integers and on floats.
    (ONNX, "Abs", |cx| each::unary(cx, i64::checked_abs, f64::abs)),
    (ONNX, "Ceil", |cx| each::unary_float(cx, f64::ceil)),
    (ONNX, "Clip", each::clip),
    (ONNX, "Floor", |cx| each::unary_float(cx, f64::floor)),
    (ONNX, "Neg", |cx| each::unary(cx, i64::checked_neg, |f| -f)),
    (ONNX, "Not", |cx| each::unary(cx, |i| Some(i64::from(i == 0)), |f| f)),
    (ONNX, "Reciprocal", |cx| each::unary_float(cx, f64::recip)),
    (ONNX, "Relu", |cx| each::unary(cx, |i| Some(i.max(0)), |f| f.max(0.0))),
    (ONNX, "Round", |cx| each::unary_float(cx, f64::round_ties_even)),
    (ONNX, "Sign", |cx| each::unary(cx, |i| Some(i.signum()), |f| if f == 0.0 { f } else { f.signum() })),
    (ONNX, "Sqrt", |cx| each::unary_float(cx, f64::sqrt)),
    (ONNX, "IsInf", each::predicate),
    (ONNX, "IsNaN", each::predicate),
    (ONNX, "Cast", each::cast),
    (ONNX, "CastLike", |cx| each::cast_to(cx, cx.tensor(1)?.element)),
    (ONNX, "BitCast", each::bit_cast),
    (MS, "FastGelu", |cx| each::biased(cx, 1)),
    (MS, "BiasGelu", |cx| each::biased(cx, 1)),
    (MS, "BiasSplitGelu", each::halve_last),
    (MS, "Scale", each::scale),
    (MS, "BatchScale", training::pass_through),
    (MS, "IsFinite", each::predicate),

    // Elementwise, several operands.
    (ONNX, "Add", |cx| each::binary(cx, i64::checked_add, |a, b| a + b)),
    (ONNX, "Sub", |cx| each::binary(cx, i64::checked_sub, |a, b| a - b)),
    (ONNX, "Mul", |cx| each::binary(cx, i64::checked_mul, |a, b| a * b)),
    (ONNX, "Div", |cx| each::binary(cx, i64::checked_div, |a, b| a / b)),
    (ONNX, "Mod", each::modulo),
    (ONNX, "Pow", each::pow),
    (ONNX, "PRelu", each::broadcasting_to_first),
    (ONNX, "BitShift", |cx| each::binary(cx, |_, _| None, |a, _| a)),
    (ONNX, "BitwiseAnd", |cx| each::binary(cx, |a, b| Some(a & b), |a, _| a)),
    (ONNX, "BitwiseOr", |cx| each::binary(cx, |a, b| Some(a | b), |a, _| a)),
    (ONNX, "BitwiseXor", |cx| each::binary(cx, |a, b| Some(a ^ b), |a, _| a)),
    (ONNX, "And", |cx| each::compare(cx, |a, b| a & b != 0, |_, _| false)),
    (ONNX, "Or", |cx| each::compare(cx, |a, b| a | b != 0, |_, _| false)),
    (ONNX, "Xor", |cx| each::compare(cx, |a, b| a ^ b != 0, |_, _| false)),
    (ONNX, "Equal", |cx| each::compare(cx, i64::eq, f64::eq)),
    (ONNX, "Greater", |cx| each::compare(cx, i64::gt, f64::gt)),
    (ONNX, "GreaterOrEqual", |cx| each::compare(cx, i64::ge, f64::ge)),
    (ONNX, "Less", |cx| each::compare(cx, i64::lt, f64::lt)),
    (ONNX, "LessOrEqual", |cx| each::compare(cx, i64::le, f64::le)),
    (ONNX, "Max", |cx| each::variadic(cx, |a, b| Some(a.max(b)), f64::max)),
    (ONNX, "Min", |cx| each::variadic(cx, |a, b| Some(a.min(b)), f64::min)),
    (ONNX, "Mean", each::broadcasting),
    (ONNX, "Sum", |cx| each::variadic(cx, i64::checked_add, |a, b| a + b)),
    (ONNX, "StringConcat", each::broadcasting),
    (ONNX, "Where", each::select),
    (MS, "ScaledSum", each::broadcasting),

    // Dropout.
    (ONNX, "Dropout", each::dropout),
    (MS, "BiasDropout", each::bias_dropout),
    (MS, "BitmaskBiasDropout", each::bitmask_dropout),
    (MS, "BitmaskDropout", each::bitmask_dropout),
    (MS, "DropoutGrad", each::dropout_gradient),

    // Gradients of elementwise operators.
    (MS, "BiasFastGeluGrad_dX", |cx| each::biased(cx, 2)),
    (MS, "BiasGeluGrad_dX", |cx| each::biased(cx, 2)),
    (MS, "DivGrad", each::div_gradient),
    (MS, "FakeQuant", each::bias_dropout),
    (MS, "FakeQuantGrad", each::gradient),
    (MS, "FastGeluGrad", |cx| each::biased(cx, 2)),
    (MS, "GeluGrad", each::gradient),
    (MS, "LeakyReluGrad", each::gradient),
    (MS, "QuickGeluGrad", each::gradient),
    (MS, "ReluGrad", each::gradient),
    (MS, "SigmoidGrad", each::gradient),
    (MS, "SinGrad", each::gradient),
    (MS, "TanhGrad", each::gradient),

    // Shapes as data.
    (ONNX, "BlackmanWindow", shape::window),
    (ONNX, "Constant", shape::constant),
    (ONNX, "ConstantOfShape", shape::constant_of_shape),
    (ONNX, "Expand", shape::expand),
    (ONNX, "EyeLike", shape::eye_like),
    (ONNX, "Flatten", shape::flatten),
    (ONNX, "HammingWindow", shape::window),
    (ONNX, "HannWindow", shape::window),
    (ONNX, "Identity", shape::identity),
    (ONNX, "Range", shape::range),
    (ONNX, "Reshape", shape::reshape),
    (ONNX, "Shape", shape::shape),
    (ONNX, "Size", shape::size),
    (ONNX, "Squeeze", shape::squeeze),
    (ONNX, "Unsqueeze", shape::unsqueeze),
    (MS, "BroadcastGradientArgs", shape::broadcast_gradient_args),
    (MS, "ExpandDims", movement::expand_dims),
    (LMSC, "Copy", shape::identity),
    (LMSC, "Join", shape::join),
    (LMSC, "SwapIn", shape::copy),
    (LMSC, "SwapOut", shape::copy),

    // Movement.
    (ONNX, "AffineGrid", movement::affine_grid),
    (ONNX, "CenterCropPad", movement::center_crop_pad),
    (ONNX, "Col2Im", movement::col_to_image),
    (ONNX, "Compress", movement::compress),
    (ONNX, "Concat", movement::concat),
    (ONNX, "DepthToSpace", |cx| movement::depth_space(cx, true)),
    (ONNX, "Gather", movement::gather),
    (ONNX, "GatherElements", movement::gather_elements),
    (ONNX, "GatherND", movement::gather_nd),
    (ONNX, "GridSample", movement::grid_sample),
    (ONNX, "MaxRoiPool", movement::max_roi_pool),
    (ONNX, "OneHot", movement::one_hot),
    (ONNX, "Pad", movement::pad),
    (ONNX, "Resize", movement::resize),
    (ONNX, "RoiAlign", movement::roi_align),
    (ONNX, "Scatter", movement::scatter_elements),
    (ONNX, "ScatterElements", movement::scatter_elements),
    (ONNX, "ScatterND", movement::scatter_nd),
    (ONNX, "Slice", movement::slice),
    (ONNX, "SpaceToDepth", |cx| movement::depth_space(cx, false)),
    (ONNX, "Split", movement::split),
    (ONNX, "Tile", movement::tile),
    (ONNX, "Transpose", movement::transpose),
    (ONNX, "Trilu", movement::triangle),
    (ONNX, "Upsample", movement::resize),
    (MS, "ConcatTraining", movement::concat),
    (MS, "GatherElementsGrad", movement::gather_elements_gradient),
    (MS, "GatherGrad", movement::gather_gradient),
    (MS, "GatherNDGrad", movement::gather_nd_gradient),
    (MS, "PadAndUnflatten", movement::unflatten),
    (MS, "ResizeGrad", conv::like_second),
    (MS, "SliceGrad", movement::slice_gradient),
    (MS, "SplitTraining", movement::split),
    (MS, "Trilu", movement::triangle),

    // Products.
    (ONNX, "Attention", product::attention),
    (LMSC, "Attention", product::tiled_attention),
    (LMSC, "AttentionGrad", product::tiled_attention_gradient),
    (ONNX, "Det", product::determinant),
    (ONNX, "Einsum", product::einsum),
    (ONNX, "Gemm", product::gemm),
    (ONNX, "MatMul", product::matmul),
    (ONNX, "MatMulInteger", product::matmul_integer),
    (ONNX, "QLinearMatMul", product::qlinear_matmul),
    (MS, "DynamicQuantizeMatMul", product::matmul_to_float),
    (MS, "FusedGemm", product::gemm),
    (MS, "FusedMatMul", product::fused_matmul),
    (MS, "FusedMatMulActivation", product::fused_matmul),
    (MS, "MatMulIntegerToFloat", product::matmul_to_float),
    (MS, "MatMulNBits", product::matmul_bits),
    (MS, "TransposeMatMul", product::fused_matmul),

    // Convolutions and pooling.
    (ONNX, "AveragePool", conv::pool),
    (ONNX, "AveragePoolGrad", conv::average_pool_gradient),
    (ONNX, "Conv", conv::conv),
    (ONNX, "ConvInteger", conv::conv_integer),
    (ONNX, "ConvTranspose", conv::conv_transpose),
    (ONNX, "DeformConv", conv::deform_conv),
    (ONNX, "GlobalAveragePool", conv::global_pool),
    (ONNX, "GlobalLpPool", conv::global_pool),
    (ONNX, "GlobalMaxPool", conv::global_pool),
    (ONNX, "LpPool", conv::pool),
    (ONNX, "MaxPool", conv::pool),
    (ONNX, "MaxPoolGrad", conv::max_pool_gradient),
    (ONNX, "MaxUnpool", conv::max_unpool),
    (ONNX, "QLinearConv", conv::qlinear_conv),
    (LMSC, "NhwcAveragePool", nhwc::nhwc),
    (LMSC, "NhwcAveragePoolGrad", nhwc::nhwc),
    (LMSC, "NhwcConv", nhwc::nhwc),
    (LMSC, "NhwcConvGrad", nhwc::nhwc),
    (LMSC, "NhwcConvTranspose", nhwc::nhwc),
    (LMSC, "NhwcConvTransposeGrad", nhwc::nhwc),
    (LMSC, "NhwcMaxPool", nhwc::nhwc),
    (LMSC, "NhwcMaxPoolGrad", nhwc::nhwc),
    (MS, "AveragePoolGrad", conv::average_pool_gradient),
    (MS, "ConvGrad", conv::conv_gradient),
    (MS, "ConvTransposeGrad", conv::conv_transpose_gradient),
    (MS, "FusedConv", conv::conv),
    (MS, "MaxPoolGrad", conv::max_pool_gradient),

    // Normalizations.
    (ONNX, "BatchNormalization", norm::batch),
    (ONNX, "GroupNormalization", norm::instance),
    (ONNX, "Hardmax", norm::along_axis),
    (ONNX, "InstanceNormalization", norm::instance),
    (ONNX, "LRN", norm::local),
    (ONNX, "LayerNormalization", norm::layer),
    (ONNX, "LogSoftmax", norm::along_axis),
    (ONNX, "LpNormalization", norm::along_axis),
    (ONNX, "MeanVarianceNormalization", norm::local),
    (ONNX, "SimplifiedLayerNormalization", norm::simplified_layer),
    (ONNX, "Softmax", norm::along_axis),
    (MS, "BatchNormInternal", norm::batch),
    (MS, "BatchNormalizationGrad", norm::batch_gradient),
    (MS, "InvertibleLayerNormalizationGrad", |cx| norm::layer_gradient(cx, &[4])),
    (MS, "LayerNormalization", norm::layer),
    (MS, "LayerNormalizationGrad", |cx| norm::layer_gradient(cx, &[3, 4])),
    (MS, "LogSoftmaxGrad", norm::along_axis_gradient),
    (MS, "LogSoftmaxGrad_13", norm::along_axis_gradient),
    (MS, "SimplifiedLayerNormalization", norm::simplified_layer),
    (MS, "SimplifiedLayerNormalizationGrad", |cx| norm::layer_gradient(cx, &[3])),
    (MS, "SkipLayerNormalization", norm::skip_layer),
    (MS, "SkipSimplifiedLayerNormalization", norm::skip_layer),
    (MS, "SoftmaxGrad", norm::along_axis_gradient),
    (MS, "SoftmaxGrad_13", norm::along_axis_gradient),

    // Reductions.
    (ONNX, "ArgMax", reduce::arg),
    (ONNX, "ArgMin", reduce::arg),
    (ONNX, "CumSum", reduce::cumulative),
    (ONNX, "NonZero", reduce::non_zero),
    (ONNX, "ReduceL1", reduce::reduce),
    (ONNX, "ReduceL2", reduce::reduce),
    (ONNX, "ReduceLogSum", reduce::reduce),
    (ONNX, "ReduceLogSumExp", reduce::reduce),
    (ONNX, "ReduceMax", |cx| reduce::fold_reduce(cx, |v| v.iter().max().copied())),
    (ONNX, "ReduceMean", reduce::reduce),
    (ONNX, "ReduceMin", |cx| reduce::fold_reduce(cx, |v| v.iter().min().copied())),
    (ONNX, "ReduceProd", |cx| reduce::fold_reduce(cx, |v| v.iter().try_fold(1, |a: i64, &b| a.checked_mul(b)))),
    (ONNX, "ReduceSum", |cx| reduce::fold_reduce(cx, |v| v.iter().try_fold(0, |a: i64, &b| a.checked_add(b)))),
    (ONNX, "ReduceSumSquare", reduce::reduce),
    (ONNX, "TopK", reduce::top_k),
    (MS, "ReduceSumTraining", reduce::reduce),

    // Recurrent layers.
    (ONNX, "GRU", |cx| rnn::recurrent(cx, 3)),
    (ONNX, "LSTM", |cx| rnn::recurrent(cx, 4)),
    (ONNX, "RNN", |cx| rnn::recurrent(cx, 1)),
    (MS, "GRUGrad", |cx| rnn::gradient(cx, 3)),
    (MS, "GRUTraining", rnn::gru_training),
    (MS, "LSTMGrad", |cx| rnn::gradient(cx, 4)),
    (MS, "LSTMTraining", rnn::lstm_training),

    // Losses.
    (ONNX, "NegativeLogLikelihoodLoss", loss::negative_log_likelihood),
    (ONNX, "SoftmaxCrossEntropyLoss", loss::cross_entropy),
    (MS, "NegativeLogLikelihoodLossInternal", loss::negative_log_likelihood),
    (MS, "NegativeLogLikelihoodLossInternal2", loss::negative_log_likelihood),
    (MS, "SoftmaxCrossEntropy", loss::last_axis_cross_entropy),
    (MS, "SoftmaxCrossEntropyGrad", conv::like_second),
    (MS, "SoftmaxCrossEntropyLossGrad", loss::cross_entropy_gradient),
    (MS, "SoftmaxCrossEntropyLossInternal", loss::cross_entropy),
    (MS, "SoftmaxCrossEntropyLossInternalGrad", loss::cross_entropy_gradient),
    (MS, "SparseSoftmaxCrossEntropy", loss::last_axis_cross_entropy),
    (MS, "SparseSoftmaxCrossEntropyGrad", conv::like_second),

    // Training.
    (MS, "AdamOptimizer", training::adam_single),
    (MS, "AdamWOptimizer", training::adamw_sequences),
    (MS, "GradientAccumulator", training::accumulate),
    (MS, "Group", training::one_flag),
    (MS, "InPlaceAccumulator", training::accumulate),
    (MS, "InPlaceAccumulatorV2", training::accumulate_in_place),
    (MS, "IsAllFinite", training::one_flag),
    (MS, "MixedPrecisionScale", training::mixed_precision_scale),
    (MS, "PassThrough", training::pass_through),
    (MS, "RecordEvent", training::record_event),
    (MS, "ReduceAllL2", training::norm_of_all),
    (MS, "SGDOptimizer", training::sgd_single),
    (MS, "SGDOptimizerV2", training::sgd_sequences),
    (MS, "YieldOp", training::yield_op),
    (PREVIEW, "Adagrad", |cx| training::preview(cx, 1)),
    (PREVIEW, "Adam", |cx| training::preview(cx, 2)),
    (PREVIEW, "Gradient", training::symbolic_gradient),
    (PREVIEW, "Momentum", |cx| training::preview(cx, 1)),
    (LMSC, "AdamWOptimizer", training::adamw),
    (LMSC, "SGDOptimizer", training::sgd),

    // Sequences.
    (ONNX, "ConcatFromSequence", sequence::concat),
    (ONNX, "SequenceAt", sequence::at),
    (ONNX, "SequenceConstruct", sequence::construct),
    (ONNX, "SequenceEmpty", sequence::empty),
    (ONNX, "SequenceErase", sequence::erase),
    (ONNX, "SequenceInsert", sequence::insert),
    (ONNX, "SequenceLength", sequence::length),
    (ONNX, "SplitToSequence", sequence::split),

    // Random tensors.
    (ONNX, "Bernoulli", random::like),
    (ONNX, "Multinomial", random::multinomial),
    (ONNX, "RandomNormal", random::of_shape),
    (ONNX, "RandomNormalLike", random::like),
    (ONNX, "RandomUniform", random::of_shape),
    (ONNX, "RandomUniformLike", random::like),

    // Quantization.
    (ONNX, "DequantizeLinear", quantize::dequantize),
    (ONNX, "DynamicQuantizeLinear", quantize::dynamic),
    (ONNX, "QuantizeLinear", quantize::quantize),
    (MS, "DequantizeLinear", quantize::dequantize),
    (MS, "QuantizeLinear", quantize::quantize),
    (ONNX, "OptionalHasElement", |_| shape::scalar(ElementType::Bool)),
];

static INDEX: LazyLock<HashMap<(&str, &str), Rule>> =
    LazyLock::new(|| RULES.iter().map(|&(domain, name, rule)| ((domain, name), rule)).collect());

/// The operator's rule, if it has one: its row, or that of an operator whose contract says that it keeps the type.
pub(super) fn rule(op: &Op) -> Option<Rule> {
    let kept = || op.contract().filter(|contract| contract.keeps_type()).map(|_| each::same as Rule);
    INDEX.get(&op.key()).copied().or_else(kept)
}

#[cfg(test)]
mod tests {
    use lmsc_ir::contract::{self, Contract};

    use super::*;

    #[test]
    fn each_contract_has_one_rule() {
        let rows = RULES.iter().map(|&(domain, name, _)| (domain, name));
        let kept = contract::all().iter().filter(|contract| contract.keeps_type());
        let mut rules: Vec<_> = rows.chain(kept.map(Contract::key)).collect();
        rules.sort_unstable();
        assert_eq!(rules, contract::all().iter().map(Contract::key).collect::<Vec<_>>());
    }
}
