//! The table of kernels: one row per operator, and the only place to add one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use lmsc_ir::domains::{LMSC, MS, ONNX, PREVIEW};

use crate::host::{
    Made, attention, bits, cast, conv, elementwise as each, embed, index, loss, movement, nhwc,
    normalization as norm, optimizer, pool, product, quantize, random, reduce, resize, rnn, shape, softmax,
    tiled_attention,
};
use crate::kernel::Kernel;
use crate::short::widened;
use crate::spec::{PrepareError, Spec, SpecError};

/// Makes the kernel of a node, or returns an error.
pub(crate) type Constructor = fn(&Spec<'_>) -> Made;

/// Operands that a constructor allows to be written in place.
#[derive(Clone, Copy, PartialEq)]
enum Writes {
    /// Only those that [`lmsc_ir::ops`] lists for the operator.
    Listed,
    /// Any operand of result 0: each element is read before it is written.
    Elementwise,
}
use Writes::{Elementwise as E, Listed as L};

/// `(domain, operator, operands that may be written in place, constructor)`.
#[rustfmt::skip]
static ROWS: &[(&str, &str, Writes, Constructor)] = &[
    // Elementwise, one operand.
    (ONNX, "Abs", E, each::abs),
    (ONNX, "Acos", E, each::acos),
    (ONNX, "Acosh", E, each::acosh),
    (ONNX, "Asin", E, each::asin),
    (ONNX, "Asinh", E, each::asinh),
    (ONNX, "Atan", E, each::atan),
    (ONNX, "Atanh", E, each::atanh),
    (ONNX, "BitwiseNot", E, bits::not),
    (ONNX, "Ceil", E, each::ceil),
    (ONNX, "Celu", E, each::celu),
    (ONNX, "Clip", E, each::clip),
    (ONNX, "Cos", E, each::cos),
    (ONNX, "Cosh", E, each::cosh),
    (ONNX, "Elu", E, each::elu),
    (ONNX, "Erf", E, each::erf),
    (ONNX, "Exp", E, each::exp),
    (ONNX, "Floor", E, each::floor),
    (ONNX, "Gelu", E, each::onnx_gelu),
    (ONNX, "HardSigmoid", E, each::hard_sigmoid),
    (ONNX, "HardSwish", E, each::hard_swish),
    (ONNX, "LeakyRelu", E, each::leaky_relu),
    (ONNX, "Log", E, each::ln),
    (ONNX, "Mish", E, each::mish),
    (ONNX, "Neg", E, each::neg),
    (ONNX, "Not", E, each::not),
    (ONNX, "Reciprocal", E, each::reciprocal),
    (ONNX, "Relu", E, each::relu),
    (ONNX, "Round", E, each::round),
    (ONNX, "Selu", E, each::selu),
    (ONNX, "Shrink", E, quantize::shrink),
    (ONNX, "Sigmoid", E, each::sigmoid),
    (ONNX, "Sign", E, each::sign),
    (ONNX, "Sin", E, each::sin),
    (ONNX, "Sinh", E, each::sinh),
    (ONNX, "Softplus", E, each::softplus_of),
    (ONNX, "Softsign", E, each::softsign),
    (ONNX, "Sqrt", E, each::root),
    (ONNX, "Swish", E, each::swish),
    (ONNX, "Tan", E, each::tan),
    (ONNX, "Tanh", E, each::tanh),
    (ONNX, "ThresholdedRelu", E, each::thresholded_relu),
    (ONNX, "IsInf", L, each::is_inf),
    (ONNX, "IsNaN", L, each::is_nan),
    (ONNX, "BitCast", E, shape::view),
    (ONNX, "Cast", E, cast::cast),
    (ONNX, "CastLike", E, cast::cast),
    (MS, "Gelu", E, each::exact_gelu),
    (MS, "FastGelu", E, each::fast_gelu_with_bias),
    (MS, "QuickGelu", E, each::quick_gelu),
    (MS, "BiasGelu", E, each::bias_gelu),
    (MS, "Scale", E, each::scale),

    // Elementwise, several operands.
    (ONNX, "Add", E, each::add),
    (ONNX, "Sub", E, each::sub),
    (ONNX, "Mul", E, each::mul),
    (ONNX, "Div", E, each::div),
    (ONNX, "Mod", E, each::remainder),
    (ONNX, "Pow", E, each::power_of),
    (ONNX, "PRelu", E, |s| each::with_slope(s, each::prelu)),
    (ONNX, "BitShift", E, bits::shift),
    (ONNX, "BitwiseAnd", E, bits::and),
    (ONNX, "BitwiseOr", E, bits::or),
    (ONNX, "BitwiseXor", E, bits::xor),
    (ONNX, "And", E, each::and),
    (ONNX, "Or", E, each::or),
    (ONNX, "Xor", E, each::xor),
    (ONNX, "Equal", L, each::equals),
    (ONNX, "Greater", L, each::greater),
    (ONNX, "GreaterOrEqual", L, each::greater_or_equal),
    (ONNX, "Less", L, each::less),
    (ONNX, "LessOrEqual", L, each::less_or_equal),
    (ONNX, "Max", E, each::max),
    (ONNX, "Min", E, each::min),
    (ONNX, "Mean", E, each::mean),
    (ONNX, "Sum", E, each::sum),
    (ONNX, "Where", E, each::select),

    // Gradients of elementwise operators.
    (MS, "BiasFastGeluGrad_dX", E, each::bias_fast_gelu_grad),
    (MS, "BiasGeluGrad_dX", E, each::bias_gelu_grad),
    (MS, "DivGrad", L, each::div_grad),
    (MS, "FastGeluGrad", E, each::fast_gelu_gradient),
    (MS, "GeluGrad", E, each::gelu_grad),
    (MS, "LeakyReluGrad", E, each::leaky_relu_grad),
    (MS, "QuickGeluGrad", E, each::quick_gelu_grad),
    (MS, "ReluGrad", E, each::relu_grad),
    (MS, "SigmoidGrad", E, each::sigmoid_grad),
    (MS, "SinGrad", E, each::sin_grad),
    (MS, "TanhGrad", E, each::tanh_grad),

    // Views, and shapes as data.
    (ONNX, "Identity", E, shape::view),
    (ONNX, "Reshape", E, shape::view),
    (ONNX, "Flatten", E, shape::view),
    (ONNX, "Squeeze", E, shape::view),
    (ONNX, "Unsqueeze", E, shape::view),
    (LMSC, "Copy", L, shape::view),
    (ONNX, "Constant", L, shape::constant),
    (ONNX, "ConstantOfShape", L, shape::constant_of_shape),
    (ONNX, "Expand", L, movement::expand),
    (ONNX, "EyeLike", L, embed::eye),
    (ONNX, "Range", L, shape::range),
    (ONNX, "Shape", L, shape::shape),
    (ONNX, "Size", L, shape::size),
    (MS, "BroadcastGradientArgs", L, shape::broadcast_gradient_args),
    (MS, "PassThrough", E, shape::views),
    (MS, "YieldOp", E, shape::views),
    (MS, "ZeroGradient", L, shape::zeros),
    (MS, "Group", L, shape::flag),
    (LMSC, "SwapIn", L, shape::view),
    (LMSC, "SwapOut", L, shape::view),

    // Movement.
    (ONNX, "Concat", L, movement::concat),
    (ONNX, "DepthToSpace", L, |s| movement::depth_space(s, true)),
    (ONNX, "Gather", L, index::gather),
    (ONNX, "GatherElements", L, index::gather_elements),
    (ONNX, "GatherND", L, index::gather_nd),
    (ONNX, "GridSample", L, embed::grid_sample),
    (ONNX, "OneHot", L, index::one_hot),
    (ONNX, "Pad", L, movement::pad),
    (ONNX, "Resize", L, resize::forward),
    (ONNX, "Scatter", L, index::scatter_elements),
    (ONNX, "ScatterElements", L, index::scatter_elements),
    (ONNX, "ScatterND", L, index::scatter_nd),
    (ONNX, "Slice", L, movement::slice),
    (ONNX, "SpaceToDepth", L, |s| movement::depth_space(s, false)),
    (ONNX, "Split", L, movement::split),
    (ONNX, "Tile", L, movement::tile),
    (ONNX, "Transpose", L, movement::transpose),
    (ONNX, "Trilu", L, movement::triangle),
    (ONNX, "Upsample", L, resize::forward),
    (MS, "ConcatTraining", L, movement::concat),
    (MS, "GatherElementsGrad", L, index::gather_elements_grad),
    (MS, "GatherGrad", L, index::gather_grad),
    (MS, "GatherNDGrad", L, index::gather_nd_grad),
    (MS, "ResizeGrad", L, resize::gradient),
    (MS, "SliceGrad", L, movement::slice_grad),
    (MS, "SplitTraining", L, movement::split),
    (MS, "Trilu", L, movement::triangle),

    // Products, convolutions and pooling.
    (ONNX, "Einsum", L, embed::einsum),
    (ONNX, "Gemm", L, product::gemm),
    (ONNX, "MatMul", L, product::matmul),
    (ONNX, "MatMulInteger", L, quantize::product),
    (MS, "FusedMatMul", L, product::matmul),
    (MS, "TransposeMatMul", L, product::matmul),
    (ONNX, "AveragePool", L, pool::average),
    (ONNX, "AveragePoolGrad", L, pool::average_grad),
    (ONNX, "Conv", L, conv::conv),
    (ONNX, "ConvTranspose", L, conv::conv_transpose),
    (ONNX, "GlobalAveragePool", L, |s| pool::global(s, false)),
    (ONNX, "GlobalMaxPool", L, |s| pool::global(s, true)),
    (ONNX, "MaxPool", L, pool::max),
    (ONNX, "MaxPoolGrad", L, pool::max_grad),
    (MS, "AveragePoolGrad", L, pool::average_grad),
    (LMSC, "NhwcAveragePool", L, |s| nhwc::channels_last(s, pool::average)),
    (LMSC, "NhwcAveragePoolGrad", L, |s| nhwc::channels_last(s, pool::average_grad)),
    (LMSC, "NhwcConv", L, |s| nhwc::channels_last(s, conv::conv)),
    (LMSC, "NhwcConvGrad", L, |s| nhwc::channels_last(s, conv::conv_grad)),
    (LMSC, "NhwcConvTranspose", L, |s| nhwc::channels_last(s, conv::conv_transpose)),
    (LMSC, "NhwcConvTransposeGrad", L, |s| nhwc::channels_last(s, conv::conv_transpose_grad)),
    (LMSC, "NhwcMaxPool", L, |s| nhwc::channels_last(s, pool::max)),
    (LMSC, "NhwcMaxPoolGrad", L, |s| nhwc::channels_last(s, pool::max_grad)),
    (MS, "ConvGrad", L, conv::conv_grad),
    (MS, "ConvTransposeGrad", L, conv::conv_transpose_grad),
    (MS, "MaxPoolGrad", L, pool::max_grad),

    // Attention.
    (ONNX, "Attention", L, attention::attention),
    (LMSC, "Attention", L, tiled_attention::forward),
    (LMSC, "AttentionGrad", L, tiled_attention::gradient),
    (ONNX, "RotaryEmbedding", L, embed::rotary),
    (MS, "RotaryEmbedding", L, embed::rotary),

    // Normalizations.
    (ONNX, "BatchNormalization", L, norm::batch),
    (ONNX, "GroupNormalization", L, norm::group),
    (ONNX, "Hardmax", L, embed::hardmax),
    (ONNX, "InstanceNormalization", L, norm::instance),
    (ONNX, "LayerNormalization", L, |s| norm::layer(s, false)),
    (ONNX, "LogSoftmax", L, |s| softmax::forward(s, true)),
    (ONNX, "LpNormalization", L, embed::lp_normalization),
    (ONNX, "RMSNormalization", L, |s| norm::layer(s, true)),
    (ONNX, "SimplifiedLayerNormalization", L, |s| norm::layer(s, true)),
    (ONNX, "Softmax", L, |s| softmax::forward(s, false)),
    (MS, "BatchNormInternal", L, norm::batch),
    (MS, "BatchNormalizationGrad", L, norm::batch_grad),
    (MS, "LayerNormalization", L, |s| norm::layer(s, false)),
    (MS, "LayerNormalizationGrad", L, |s| norm::layer_grad(s, false)),
    (MS, "LogSoftmaxGrad", L, |s| softmax::gradient(s, true)),
    (MS, "LogSoftmaxGrad_13", L, |s| softmax::gradient(s, true)),
    (MS, "SimplifiedLayerNormalization", L, |s| norm::layer(s, true)),
    (MS, "SimplifiedLayerNormalizationGrad", L, |s| norm::layer_grad(s, true)),
    (MS, "SoftmaxGrad", L, |s| softmax::gradient(s, false)),
    (MS, "SoftmaxGrad_13", L, |s| softmax::gradient(s, false)),

    // Reductions.
    (ONNX, "ArgMax", L, |s| reduce::arg(s, true)),
    (ONNX, "ArgMin", L, |s| reduce::arg(s, false)),
    (ONNX, "CumProd", L, |s| reduce::cumulative(s, true)),
    (ONNX, "CumSum", L, |s| reduce::cumulative(s, false)),
    (ONNX, "ReduceL1", L, reduce::l1),
    (ONNX, "ReduceL2", L, reduce::l2),
    (ONNX, "ReduceLogSum", L, reduce::log_sum),
    (ONNX, "ReduceLogSumExp", L, reduce::log_sum_exp),
    (ONNX, "ReduceMax", L, reduce::max),
    (ONNX, "ReduceMean", L, reduce::mean),
    (ONNX, "ReduceMin", L, reduce::min),
    (ONNX, "ReduceProd", L, reduce::product),
    (ONNX, "ReduceSum", L, reduce::sum),
    (ONNX, "ReduceSumSquare", L, reduce::sum_square),
    (MS, "ReduceSumTraining", L, reduce::sum),
    (ONNX, "TopK", L, reduce::top),

    // Recurrent layers.
    (ONNX, "GRU", L, rnn::gru),
    (ONNX, "LSTM", L, rnn::lstm),
    (MS, "GRUGrad", L, rnn::gru_grad),
    (MS, "GRUTraining", L, rnn::gru),
    (MS, "LSTMGrad", L, rnn::lstm_grad),
    (MS, "LSTMTraining", L, rnn::lstm),

    // Losses.
    (ONNX, "NegativeLogLikelihoodLoss", L, loss::negative_log_likelihood),
    (ONNX, "SoftmaxCrossEntropyLoss", L, loss::cross_entropy),
    (MS, "NegativeLogLikelihoodLossInternal", L, loss::negative_log_likelihood),
    (MS, "NegativeLogLikelihoodLossInternal2", L, loss::negative_log_likelihood),
    (MS, "SoftmaxCrossEntropyLossGrad", L, loss::cross_entropy_grad),
    (MS, "SoftmaxCrossEntropyLossInternal", L, loss::cross_entropy),
    (MS, "SoftmaxCrossEntropyLossInternalGrad", L, loss::cross_entropy_grad),

    // Optimizers.
    (MS, "AdamOptimizer", L, optimizer::adam),
    (MS, "AdamWOptimizer", E, optimizer::adamw),
    (MS, "GradientAccumulator", L, optimizer::accumulate),
    (MS, "InPlaceAccumulator", L, optimizer::accumulate),
    (MS, "InPlaceAccumulatorV2", L, optimizer::accumulate_in_place),
    (MS, "SGDOptimizerV2", E, optimizer::sgd),
    (PREVIEW, "Adagrad", E, |s| optimizer::preview(s, 1)),
    (PREVIEW, "Adam", E, |s| optimizer::preview(s, 2)),
    (PREVIEW, "Momentum", E, |s| optimizer::preview(s, 1)),
    (LMSC, "AdamWOptimizer", L, optimizer::adamw),
    (LMSC, "SGDOptimizer", L, optimizer::sgd),

    // Sequences.
    (ONNX, "SequenceAt", L, shape::sequence_at),
    (ONNX, "SequenceConstruct", L, shape::sequence_construct),
    (ONNX, "SequenceLength", L, shape::sequence_length),

    // Quantization.
    (ONNX, "DequantizeLinear", L, quantize::dequantize),
    (ONNX, "DynamicQuantizeLinear", L, quantize::dynamic),
    (ONNX, "QuantizeLinear", L, quantize::quantize),
    (MS, "DequantizeLinear", L, quantize::dequantize),
    (MS, "QuantizeLinear", L, quantize::quantize),

    // Random operators.
    (ONNX, "Bernoulli", L, random::bernoulli),
    (ONNX, "Dropout", L, random::dropout),
    (ONNX, "RandomNormal", L, random::normal),
    (ONNX, "RandomNormalLike", L, random::normal),
    (ONNX, "RandomUniform", L, random::uniform),
    (ONNX, "RandomUniformLike", L, random::uniform),
    (MS, "DropoutGrad", L, random::dropout_grad),
];

/// Rows by domain and name.
type Index = BTreeMap<(&'static str, &'static str), (Writes, Constructor)>;

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    ROWS.iter().map(|&(domain, name, writes, make)| ((domain, name), (writes, make))).collect()
});

/// The operators that have a kernel, as domain and name, sorted.
pub fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    INDEX.keys().copied()
}

/// The constructor of the operator's kernels.
#[cfg(test)]
pub(crate) fn constructor(op: &lmsc_ir::Op) -> Constructor {
    INDEX[&op.key()].1
}

/// The kernel of a node.
///
/// # Errors
/// [`PrepareError`] if the operator has no kernel, or none for these types, attributes or operands.
pub fn prepare(spec: &Spec<'_>) -> Result<Kernel, PrepareError> {
    Ok(accepted(spec)?.0)
}

/// The kernel of a node, and whether it is a kernel for `f32` wrapped for short floats.
pub fn accepted(spec: &Spec<'_>) -> Result<(Kernel, bool), PrepareError> {
    let (node, op) = (spec.node.to_owned(), spec.op.to_string());
    let Some(&(writes, make)) = INDEX.get(&spec.op.key()) else {
        return Err(PrepareError::NoKernel { node, op });
    };
    let refused = |SpecError(problem)| PrepareError::Refused { node: node.clone(), op: op.clone(), problem };
    spec.expect_addressable().map_err(refused)?;
    let listed = spec.op.effects().writes;
    let made = match spec.in_place.iter().find(|pair| writes == L && !listed.contains(pair)) {
        Some((operand, result)) => Err(SpecError(format!(
            "result {result} is to be written over operand {operand}, which the operator still reads"
        ))),
        None => match make(spec) {
            Ok(kernel) => Ok((kernel, false)),
            Err(refusal) => match widened(spec, make) {
                Some(made) => made.map(|kernel| (kernel, true)),
                None => Err(refusal),
            },
        },
    };
    made.map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_operator_has_two_rows() {
        assert_eq!(INDEX.len(), ROWS.len());
    }
}
