//! The table of recipes: one row per operator of the host's table that CUDA devices run.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use lmsc_ir::domains::{LMSC, MS, ONNX, PREVIEW};
use lmsc_kernels::short::Wide;
use lmsc_kernels::spec::{PrepareError, Spec, SpecError};

use super::engines::ChannelOrder::{First, Last};
use super::make::{
    Made, attention, each, index, loss, movement, normalize as norm, optimizer, pool, product, random,
    reduce, rnn, shape,
};
use super::recipe::{AddressBase, Recipe};
use super::short;

/// Makes the recipe of a node that the host has a kernel for.
type Constructor = fn(&Spec<'_>) -> Made;

/// `(domain, operator, constructor)`.
#[rustfmt::skip]
static ROWS: &[(&str, &str, Constructor)] = &[
    // Elementwise, one operand.
    (ONNX, "Abs", |s| each::plain(s, "abs", 1)),
    (ONNX, "Acos", |s| each::plain(s, "acos", 1)),
    (ONNX, "Acosh", |s| each::plain(s, "acosh", 1)),
    (ONNX, "Asin", |s| each::plain(s, "asin", 1)),
    (ONNX, "Asinh", |s| each::plain(s, "asinh", 1)),
    (ONNX, "Atan", |s| each::plain(s, "atan", 1)),
    (ONNX, "Atanh", |s| each::plain(s, "atanh", 1)),
    (ONNX, "Ceil", |s| each::plain(s, "ceil", 1)),
    (ONNX, "Celu", |s| each::by_alpha(s, "celu", 1)),
    (ONNX, "Clip", each::clip),
    (ONNX, "Cos", |s| each::plain(s, "cos", 1)),
    (ONNX, "Cosh", |s| each::plain(s, "cosh", 1)),
    (ONNX, "Elu", |s| each::by_alpha(s, "elu", 1)),
    (ONNX, "Erf", |s| each::plain(s, "erf", 1)),
    (ONNX, "Exp", |s| each::plain(s, "exp", 1)),
    (ONNX, "Floor", |s| each::plain(s, "floor", 1)),
    (ONNX, "Gelu", each::onnx_gelu),
    (ONNX, "HardSigmoid", |s| each::by_two(s, "hard_sigmoid", ["alpha", "beta"])),
    (ONNX, "HardSwish", |s| each::plain(s, "hard_swish", 1)),
    (ONNX, "LeakyRelu", |s| each::by_alpha(s, "leaky_relu", 1)),
    (ONNX, "Log", |s| each::plain(s, "ln", 1)),
    (ONNX, "Mish", |s| each::plain(s, "mish", 1)),
    (ONNX, "Neg", |s| each::plain(s, "neg", 1)),
    (ONNX, "Not", |s| each::truths(s, "not", 1)),
    (ONNX, "Reciprocal", |s| each::plain(s, "reciprocal", 1)),
    (ONNX, "Relu", |s| each::plain(s, "relu", 1)),
    (ONNX, "Round", |s| each::plain(s, "round", 1)),
    (ONNX, "Selu", |s| each::by_two(s, "selu", ["alpha", "gamma"])),
    (ONNX, "Sigmoid", |s| each::plain(s, "sigmoid", 1)),
    (ONNX, "Sign", |s| each::plain(s, "sign", 1)),
    (ONNX, "Sin", |s| each::plain(s, "sin", 1)),
    (ONNX, "Sinh", |s| each::plain(s, "sinh", 1)),
    (ONNX, "Softplus", |s| each::plain(s, "softplus", 1)),
    (ONNX, "Softsign", |s| each::plain(s, "softsign", 1)),
    (ONNX, "Sqrt", |s| each::plain(s, "root", 1)),
    (ONNX, "Swish", |s| each::by_alpha(s, "swish", 1)),
    (ONNX, "Tan", |s| each::plain(s, "tan", 1)),
    (ONNX, "Tanh", |s| each::plain(s, "tanh", 1)),
    (ONNX, "ThresholdedRelu", |s| each::by_alpha(s, "thresholded_relu", 1)),
    (ONNX, "IsInf", each::is_inf),
    (ONNX, "IsNaN", |s| each::plain(s, "is_nan", 1)),
    (ONNX, "Cast", each::cast),
    (ONNX, "CastLike", each::cast),
    (MS, "Gelu", |s| each::plain(s, "gelu", 1)),
    (MS, "FastGelu", |s| each::perhaps_biased(s, ["fast_gelu", "bias_fast_gelu"], 1)),
    (MS, "QuickGelu", |s| each::by_alpha(s, "swish", 1)),
    (MS, "BiasGelu", |s| each::plain(s, "bias_gelu", 2)),
    (MS, "Scale", each::scale),

    // Elementwise, several operands.
    (ONNX, "Add", |s| each::plain(s, "add", 2)),
    (ONNX, "Sub", |s| each::plain(s, "sub", 2)),
    (ONNX, "Mul", |s| each::plain(s, "mul", 2)),
    (ONNX, "Div", |s| each::plain(s, "div", 2)),
    (ONNX, "Mod", each::modulo),
    (ONNX, "Pow", each::power),
    (ONNX, "PRelu", |s| lmsc_kernels::host::elementwise::with_slope(s, |s| each::plain(s, "prelu", 2))),
    (ONNX, "And", |s| each::truths(s, "and", 2)),
    (ONNX, "Or", |s| each::truths(s, "or", 2)),
    (ONNX, "Xor", |s| each::truths(s, "xor", 2)),
    (ONNX, "Equal", each::equal),
    (ONNX, "Greater", |s| each::plain(s, "greater", 2)),
    (ONNX, "GreaterOrEqual", |s| each::plain(s, "greater_or_equal", 2)),
    (ONNX, "Less", |s| each::plain(s, "less", 2)),
    (ONNX, "LessOrEqual", |s| each::plain(s, "less_or_equal", 2)),
    (ONNX, "Max", |s| each::fold(s, "max_all")),
    (ONNX, "Min", |s| each::fold(s, "min_all")),
    (ONNX, "Mean", |s| each::fold(s, "mean_all")),
    (ONNX, "Sum", |s| each::fold(s, "sum_all")),
    (ONNX, "Where", each::select),

    // Gradients of elementwise operators.
    (MS, "BiasFastGeluGrad_dX", |s| each::plain(s, "bias_fast_gelu_grad", 3)),
    (MS, "BiasGeluGrad_dX", |s| each::plain(s, "bias_gelu_grad", 3)),
    (MS, "DivGrad", reduce::quotient),
    (MS, "FastGeluGrad", |s| each::perhaps_biased(s, ["fast_gelu_grad", "bias_fast_gelu_grad"], 2)),
    (MS, "GeluGrad", |s| each::plain(s, "gelu_grad", 2)),
    (MS, "LeakyReluGrad", |s| each::by_alpha(s, "leaky_relu_grad", 2)),
    (MS, "QuickGeluGrad", |s| each::by_alpha(s, "quick_gelu_grad", 2)),
    (MS, "ReluGrad", |s| each::plain(s, "relu_grad", 2)),
    (MS, "SigmoidGrad", |s| each::plain(s, "sigmoid_grad", 2)),
    (MS, "SinGrad", |s| each::plain(s, "sin_grad", 2)),
    (MS, "TanhGrad", |s| each::plain(s, "tanh_grad", 2)),

    // Views, and shapes as data.
    (ONNX, "Identity", shape::view),
    (LMSC, "Copy", shape::view),
    (ONNX, "Reshape", shape::view),
    (ONNX, "Flatten", shape::view),
    (ONNX, "Squeeze", shape::view),
    (ONNX, "Unsqueeze", shape::view),
    (ONNX, "Constant", shape::known),
    (ONNX, "ConstantOfShape", shape::constant_of_shape),
    (ONNX, "Expand", movement::expand),
    (ONNX, "Range", shape::range),
    (ONNX, "Shape", shape::known),
    (ONNX, "Size", shape::known),
    (MS, "BroadcastGradientArgs", shape::broadcast_gradient_args),
    (MS, "PassThrough", shape::views),
    (MS, "YieldOp", shape::views),
    (MS, "ZeroGradient", shape::zeros),
    (MS, "Group", shape::known),
    (LMSC, "SwapIn", shape::view),
    (LMSC, "SwapOut", shape::view),

    // Movement.
    (ONNX, "Concat", movement::concat),
    (ONNX, "DepthToSpace", |s| movement::depth_space(s, true)),
    (ONNX, "Gather", index::gather),
    (ONNX, "GatherElements", index::gather_elements),
    (ONNX, "GatherND", index::gather_nd),
    (ONNX, "OneHot", index::one_hot),
    (ONNX, "Pad", movement::pad),
    (ONNX, "Resize", pool::resize),
    (ONNX, "Scatter", index::scatter_elements),
    (ONNX, "ScatterElements", index::scatter_elements),
    (ONNX, "ScatterND", index::scatter_nd),
    (ONNX, "Slice", movement::slice),
    (ONNX, "SpaceToDepth", |s| movement::depth_space(s, false)),
    (ONNX, "Split", movement::split),
    (ONNX, "Tile", movement::tile),
    (ONNX, "Transpose", movement::transpose),
    (ONNX, "Trilu", movement::triangle),
    (ONNX, "Upsample", pool::resize),
    (MS, "ConcatTraining", movement::concat),
    (MS, "GatherElementsGrad", index::gather_elements_grad),
    (MS, "GatherGrad", index::gather_grad),
    (MS, "GatherNDGrad", index::gather_nd_grad),
    (MS, "ResizeGrad", pool::resize_grad),
    (MS, "SliceGrad", movement::slice_grad),
    (MS, "SplitTraining", movement::split),
    (MS, "Trilu", movement::triangle),

    // Products, convolutions and pooling.
    (ONNX, "Gemm", product::gemm),
    (ONNX, "MatMul", product::matmul),
    (MS, "FusedMatMul", product::matmul),
    (MS, "TransposeMatMul", product::matmul),
    (ONNX, "AveragePool", |s| pool::average(s, First)),
    (ONNX, "AveragePoolGrad", |s| pool::average_grad(s, First)),
    (ONNX, "Conv", |s| product::conv(s, First)),
    (ONNX, "ConvTranspose", |s| product::conv_transpose(s, First)),
    (ONNX, "GlobalAveragePool", |s| pool::global(s, false)),
    (ONNX, "GlobalMaxPool", |s| pool::global(s, true)),
    (ONNX, "MaxPool", |s| pool::max(s, First)),
    (ONNX, "MaxPoolGrad", |s| pool::max_grad(s, First)),
    (LMSC, "NhwcAveragePool", |s| pool::average(s, Last)),
    (LMSC, "NhwcAveragePoolGrad", |s| pool::average_grad(s, Last)),
    (LMSC, "NhwcConv", |s| product::conv(s, Last)),
    (LMSC, "NhwcConvGrad", |s| product::conv_grad(s, Last)),
    (LMSC, "NhwcConvTranspose", |s| product::conv_transpose(s, Last)),
    (LMSC, "NhwcConvTransposeGrad", |s| product::conv_transpose_grad(s, Last)),
    (LMSC, "NhwcMaxPool", |s| pool::max(s, Last)),
    (LMSC, "NhwcMaxPoolGrad", |s| pool::max_grad(s, Last)),
    (MS, "AveragePoolGrad", |s| pool::average_grad(s, First)),
    (MS, "ConvGrad", |s| product::conv_grad(s, First)),
    (MS, "ConvTransposeGrad", |s| product::conv_transpose_grad(s, First)),
    (MS, "MaxPoolGrad", |s| pool::max_grad(s, First)),

    // Attention.
    (LMSC, "Attention", attention::forward),
    (LMSC, "AttentionGrad", attention::gradient),

    // Normalizations.
    (ONNX, "BatchNormalization", norm::batch),
    (ONNX, "GroupNormalization", norm::group),
    (ONNX, "InstanceNormalization", norm::instance),
    (ONNX, "LayerNormalization", |s| norm::layer(s, false)),
    (ONNX, "LogSoftmax", |s| norm::softmax(s, true)),
    (ONNX, "RMSNormalization", |s| norm::layer(s, true)),
    (ONNX, "SimplifiedLayerNormalization", |s| norm::layer(s, true)),
    (ONNX, "Softmax", |s| norm::softmax(s, false)),
    (MS, "BatchNormInternal", norm::batch),
    (MS, "BatchNormalizationGrad", norm::batch_grad),
    (MS, "LayerNormalization", |s| norm::layer(s, false)),
    (MS, "LayerNormalizationGrad", |s| norm::layer_grad(s, false)),
    (MS, "LogSoftmaxGrad", |s| norm::softmax_grad(s, true)),
    (MS, "LogSoftmaxGrad_13", |s| norm::softmax_grad(s, true)),
    (MS, "SimplifiedLayerNormalization", |s| norm::layer(s, true)),
    (MS, "SimplifiedLayerNormalizationGrad", |s| norm::layer_grad(s, true)),
    (MS, "SoftmaxGrad", |s| norm::softmax_grad(s, false)),
    (MS, "SoftmaxGrad_13", |s| norm::softmax_grad(s, false)),

    // Reductions.
    (ONNX, "ArgMax", |s| reduce::arg(s, true)),
    (ONNX, "ArgMin", |s| reduce::arg(s, false)),
    (ONNX, "CumSum", reduce::cumulative),
    (ONNX, "TopK", reduce::top),
    (ONNX, "ReduceL1", |s| reduce::reduce(s, "reduce_l1")),
    (ONNX, "ReduceL2", |s| reduce::reduce(s, "reduce_l2")),
    (ONNX, "ReduceLogSum", |s| reduce::reduce(s, "reduce_log_sum")),
    (ONNX, "ReduceLogSumExp", |s| reduce::reduce(s, "reduce_log_sum_exp")),
    (ONNX, "ReduceMax", |s| reduce::reduce(s, "reduce_max")),
    (ONNX, "ReduceMean", |s| reduce::reduce(s, "reduce_mean")),
    (ONNX, "ReduceMin", |s| reduce::reduce(s, "reduce_min")),
    (ONNX, "ReduceProd", |s| reduce::reduce(s, "reduce_product")),
    (ONNX, "ReduceSum", |s| reduce::reduce(s, "reduce_sum")),
    (ONNX, "ReduceSumSquare", |s| reduce::reduce(s, "reduce_sum_square")),
    (MS, "ReduceSumTraining", |s| reduce::reduce(s, "reduce_sum")),

    // Recurrent layers.
    (ONNX, "GRU", rnn::gru),
    (ONNX, "LSTM", rnn::lstm),
    (MS, "GRUGrad", rnn::gru_grad),
    (MS, "GRUTraining", rnn::gru),
    (MS, "LSTMGrad", rnn::lstm_grad),
    (MS, "LSTMTraining", rnn::lstm),

    // Losses.
    (ONNX, "NegativeLogLikelihoodLoss", loss::negative_log_likelihood),
    (ONNX, "SoftmaxCrossEntropyLoss", loss::cross_entropy),
    (MS, "NegativeLogLikelihoodLossInternal", loss::negative_log_likelihood),
    (MS, "NegativeLogLikelihoodLossInternal2", loss::negative_log_likelihood),
    (MS, "SoftmaxCrossEntropyLossGrad", loss::cross_entropy_grad),
    (MS, "SoftmaxCrossEntropyLossInternal", loss::cross_entropy),
    (MS, "SoftmaxCrossEntropyLossInternalGrad", loss::cross_entropy_grad),

    // Optimizers.
    (MS, "AdamOptimizer", optimizer::adam),
    (MS, "AdamWOptimizer", optimizer::adamw),
    (MS, "GradientAccumulator", optimizer::accumulate),
    (MS, "InPlaceAccumulator", optimizer::accumulate),
    (MS, "InPlaceAccumulatorV2", optimizer::accumulate_in_place),
    (MS, "SGDOptimizerV2", optimizer::sgd),
    (PREVIEW, "Adagrad", |s| optimizer::preview(s, "preview_adagrad", 1)),
    (PREVIEW, "Adam", |s| optimizer::preview(s, "preview_adam", 2)),
    (PREVIEW, "Momentum", |s| optimizer::preview(s, "preview_momentum", 1)),
    (LMSC, "AdamWOptimizer", optimizer::adamw),
    (LMSC, "SGDOptimizer", optimizer::sgd),

    // Sequences.
    (ONNX, "SequenceAt", shape::sequence_at),
    (ONNX, "SequenceConstruct", shape::sequence_construct),
    (ONNX, "SequenceLength", shape::known),

    // Random operators.
    (ONNX, "Bernoulli", random::bernoulli),
    (ONNX, "Dropout", random::dropout),
    (ONNX, "RandomNormal", random::normal),
    (ONNX, "RandomNormalLike", random::normal),
    (ONNX, "RandomUniform", random::uniform),
    (ONNX, "RandomUniformLike", random::uniform),
    (MS, "DropoutGrad", random::dropout_grad),
];

static INDEX: LazyLock<BTreeMap<(&'static str, &'static str), Constructor>> =
    LazyLock::new(|| ROWS.iter().map(|&(domain, name, make)| ((domain, name), make)).collect());

/// The operators that have a recipe, as domain and name, sorted.
pub fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    INDEX.keys().copied()
}

/// The recipe of a node.
///
/// # Errors
/// [`PrepareError`] if the host has no kernel for it, or if this device has none for these types or this number of dimensions.
pub fn prepare(spec: &Spec<'_>) -> Result<Recipe, PrepareError> {
    let (_, is_widened) = lmsc_kernels::table::accepted(spec)?;
    let (node, op) = (spec.node.to_owned(), spec.op.to_string());
    let Some(make) = INDEX.get(&spec.op.key()) else {
        return Err(PrepareError::Refused { node, op, problem: "CUDA devices have no kernel for it".into() });
    };
    let widened = || {
        let wide = Wide::of(spec)?;
        if let Some(recipe) = short::in_pieces(spec, *make) {
            return Some(Ok(recipe));
        }
        Some(make(&wide.spec(spec)).map(|recipe| short::widened(recipe, &wide, &spec.in_place)))
    };
    let made = if is_widened {
        widened().unwrap_or_else(|| make(spec))
    } else {
        make(spec).or_else(|refusal| widened().unwrap_or(Err(refusal)))
    };
    let mut recipe = made.map_err(|SpecError(problem)| PrepareError::Refused { node, op, problem })?;
    // An operand that is written in place is in the result's buffer.
    for address in recipe.addresses() {
        if let AddressBase::Operand(operand) = address.at
            && let Some(&(_, result)) = spec.in_place.iter().find(|pair| pair.0 == operand)
        {
            address.at = AddressBase::Result(result);
        }
    }
    Ok(recipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_of_the_host_has_one_row_but_those_that_the_host_alone_runs() {
        const ONNX_ALONE: [&str; 19] = [
            "Attention",
            "BitShift",
            "BitwiseAnd",
            "BitwiseNot",
            "BitwiseOr",
            "BitwiseXor",
            "CumProd",
            "DequantizeLinear",
            "DynamicQuantizeLinear",
            "Einsum",
            "BitCast",
            "EyeLike",
            "GridSample",
            "Hardmax",
            "LpNormalization",
            "MatMulInteger",
            "QuantizeLinear",
            "RotaryEmbedding",
            "Shrink",
        ];
        const MS_ALONE: [&str; 3] = ["DequantizeLinear", "QuantizeLinear", "RotaryEmbedding"];
        assert_eq!(INDEX.len(), ROWS.len());
        assert!(operators().eq(lmsc_kernels::table::operators().filter(|&(domain, name)| {
            !(domain == ONNX && ONNX_ALONE.contains(&name) || domain == MS && MS_ALONE.contains(&name))
        })));
    }
}
