//! The table of rules: one row per operator, and the only place to add one.

use std::sync::LazyLock;

use foldhash::HashMap;
use lmsc_ir::{ElementType, Op};

use super::{
    Contract, Rule, conv, elementwise as each, loss, movement, normalization as norm, product, quantize,
    random, reduce, rnn, sequence, shape, training,
};

const ONNX: &str = "";
const MS: &str = "com.microsoft";
const PREVIEW: &str = "ai.onnx.preview.training";
const LMSC: &str = "ai.lmsc";

/// `(domain, operator, rule, contract)`; [`contract`](super::contract) documents the syntax of contracts. Parameters that moved
/// between attribute and operand over the versions are read in both places, so one row serves every version.
#[rustfmt::skip]
static RULES: &[(&str, &str, Rule, &str)] = &[
    // Elementwise, one operand. If shapes may be computed with it, two functions: on integers and on floats.
    (ONNX, "Abs", |cx| each::unary(cx, i64::checked_abs, f64::abs), "1 X -> Y"),
    (ONNX, "Acos", each::same, "7 input -> output"),
    (ONNX, "Acosh", each::same, "9 input -> output"),
    (ONNX, "Asin", each::same, "7 input -> output"),
    (ONNX, "Asinh", each::same, "9 input -> output"),
    (ONNX, "Atan", each::same, "7 input -> output"),
    (ONNX, "Atanh", each::same, "9 input -> output"),
    (ONNX, "BitwiseNot", each::same, "18 X -> Y"),
    (ONNX, "Ceil", |cx| each::unary_float(cx, f64::ceil), "1 X -> Y"),
    (ONNX, "Celu", each::same, "12 X -> Y | alpha:float"),
    (ONNX, "Clip", each::clip, "1 input:T min?:T@11.. max?:T@11.. -> output | max:float@..10 min:float@..10"),
    (ONNX, "Cos", each::same, "7 input -> output"),
    (ONNX, "Cosh", each::same, "9 input -> output"),
    (ONNX, "Elu", each::same, "1 X -> Y | alpha:float"),
    (ONNX, "Erf", each::same, "9 input -> output"),
    (ONNX, "Exp", each::same, "1 input -> output"),
    (ONNX, "Floor", |cx| each::unary_float(cx, f64::floor), "1 X -> Y"),
    (ONNX, "Gelu", each::same, "20 X -> Y | approximate:string"),
    (ONNX, "HardSigmoid", each::same, "1 X -> Y | alpha:float beta:float"),
    (ONNX, "HardSwish", each::same, "14 X -> Y"),
    (ONNX, "LeakyRelu", each::same, "1 X -> Y | alpha:float"),
    (ONNX, "Log", each::same, "1 input -> output"),
    (ONNX, "Mish", each::same, "18 X -> Y"),
    (ONNX, "Neg", |cx| each::unary(cx, i64::checked_neg, |f| -f), "1 X -> Y"),
    (ONNX, "Not", |cx| each::unary(cx, |i| Some(i64::from(i == 0)), |f| f), "1 X:bool -> Y"),
    (ONNX, "Reciprocal", |cx| each::unary_float(cx, f64::recip), "1 X -> Y"),
    (ONNX, "Relu", |cx| each::unary(cx, |i| Some(i.max(0)), |f| f.max(0.0)), "1 X -> Y"),
    (ONNX, "Round", |cx| each::unary_float(cx, f64::round_ties_even), "11 X -> Y"),
    (ONNX, "Selu", each::same, "6 X -> Y | alpha:float gamma:float"),
    (ONNX, "Shrink", each::same, "9 input -> output | bias:float lambd:float"),
    (ONNX, "Sigmoid", each::same, "1 X -> Y"),
    (ONNX, "Sign", |cx| each::unary(cx, |i| Some(i.signum()), |f| if f == 0.0 { f } else { f.signum() }), "9 input -> output"),
    (ONNX, "Sin", each::same, "7 input -> output"),
    (ONNX, "Sinh", each::same, "9 input -> output"),
    (ONNX, "Softplus", each::same, "1 X -> Y"),
    (ONNX, "Softsign", each::same, "1 input -> output"),
    (ONNX, "Sqrt", |cx| each::unary_float(cx, f64::sqrt), "1 X -> Y"),
    (ONNX, "Swish", each::same, "24 X -> Y | alpha:float"),
    (ONNX, "Tan", each::same, "7 input -> output"),
    (ONNX, "Tanh", each::same, "1 input -> output"),
    (ONNX, "ThresholdedRelu", each::same, "10 X -> Y | alpha:float"),
    (ONNX, "IsInf", each::predicate, "10 X -> Y | detect_negative:int detect_positive:int"),
    (ONNX, "IsNaN", each::predicate, "9 X -> Y"),
    (ONNX, "Cast", each::cast, "6 input -> output | round_mode:string@24.. saturate:int@19.. to!:int"),
    (ONNX, "CastLike", |cx| each::cast_to(cx, cx.tensor(1)?.element), "15 input target_type -> output | round_mode:string@24.. saturate:int@19.."),
    (ONNX, "BitCast", each::bit_cast, "26 input -> output | to!:int"),
    (MS, "Gelu", each::same, "1 X -> Y"),
    (MS, "FastGelu", |cx| each::biased(cx, 1), "1 X:T bias?:T -> Y"),
    (MS, "QuickGelu", each::same, "1 X -> Y | alpha:float"),
    (MS, "BiasGelu", |cx| each::biased(cx, 1), "1 X:T bias:T -> Y"),
    (MS, "BiasAdd", each::same, "1 X:T bias:T skip:T -> Y"),
    (MS, "BiasSoftmax", each::same, "1 data:T bias:T -> Y | axis:int broadcast_axis:int is_inner_broadcast:int softmax_axis:int"),
    (MS, "BiasSplitGelu", each::halve_last, "1 X:T bias:T -> Y"),
    (MS, "Scale", each::scale, "1 X scale -> Y | scale_down:int"),
    (MS, "BatchScale", training::pass_through, "1 X -> Y0? Y1? Y2? | scale0:float scale1:float scale2:float"),
    (MS, "IsFinite", each::predicate, "1 X -> Y"),

    // Elementwise, several operands.
    (ONNX, "Add", |cx| each::binary(cx, i64::checked_add, |a, b| a + b), "1 A:T B:T -> C | axis:int@..6 broadcast:int@..6"),
    (ONNX, "Sub", |cx| each::binary(cx, i64::checked_sub, |a, b| a - b), "1 A:T B:T -> C | axis:int@..6 broadcast:int@..6"),
    (ONNX, "Mul", |cx| each::binary(cx, i64::checked_mul, |a, b| a * b), "1 A:T B:T -> C | axis:int@..6 broadcast:int@..6"),
    (ONNX, "Div", |cx| each::binary(cx, i64::checked_div, |a, b| a / b), "1 A:T B:T -> C | axis:int@..6 broadcast:int@..6"),
    (ONNX, "Mod", each::modulo, "10 A:T B:T -> C | fmod:int"),
    (ONNX, "Pow", each::pow, "1 X Y -> Z | axis:int@..6 broadcast:int@..6"),
    (ONNX, "PRelu", each::broadcasting_to_first, "1 X:T slope:T -> Y"),
    (ONNX, "BitShift", |cx| each::binary(cx, |_, _| None, |a, _| a), "11 X:T Y:T -> Z | direction!:string"),
    (ONNX, "BitwiseAnd", |cx| each::binary(cx, |a, b| Some(a & b), |a, _| a), "18 A:T B:T -> C"),
    (ONNX, "BitwiseOr", |cx| each::binary(cx, |a, b| Some(a | b), |a, _| a), "18 A:T B:T -> C"),
    (ONNX, "BitwiseXor", |cx| each::binary(cx, |a, b| Some(a ^ b), |a, _| a), "18 A:T B:T -> C"),
    (ONNX, "And", |cx| each::compare(cx, |a, b| a & b != 0, |_, _| false), "1 A:bool B:bool -> C | axis:int@..6 broadcast:int@..6"),
    (ONNX, "Or", |cx| each::compare(cx, |a, b| a | b != 0, |_, _| false), "1 A:bool B:bool -> C | axis:int@..6 broadcast:int@..6"),
    (ONNX, "Xor", |cx| each::compare(cx, |a, b| a ^ b != 0, |_, _| false), "1 A:bool B:bool -> C | axis:int@..6 broadcast:int@..6"),
    (ONNX, "Equal", |cx| each::compare(cx, i64::eq, f64::eq), "1 A:T B:T -> C | axis:int@..6 broadcast:int@..6"),
    (ONNX, "Greater", |cx| each::compare(cx, i64::gt, f64::gt), "1 A:T B:T -> C | axis:int@..6 broadcast:int@..6"),
    (ONNX, "GreaterOrEqual", |cx| each::compare(cx, i64::ge, f64::ge), "12 A:T B:T -> C"),
    (ONNX, "Less", |cx| each::compare(cx, i64::lt, f64::lt), "1 A:T B:T -> C | axis:int@..6 broadcast:int@..6"),
    (ONNX, "LessOrEqual", |cx| each::compare(cx, i64::le, f64::le), "12 A:T B:T -> C"),
    (ONNX, "Max", |cx| each::variadic(cx, |a, b| Some(a.max(b)), f64::max), "1 data_0+:T -> max"),
    (ONNX, "Min", |cx| each::variadic(cx, |a, b| Some(a.min(b)), f64::min), "1 data_0+:T -> min"),
    (ONNX, "Mean", each::broadcasting, "1 data_0+:T -> mean"),
    (ONNX, "Sum", |cx| each::variadic(cx, i64::checked_add, |a, b| a + b), "1 data_0+:T -> sum"),
    (ONNX, "StringConcat", each::broadcasting, "20 X:string Y:string -> Z"),
    (ONNX, "Where", each::select, "9 condition:bool X:T Y:T -> output"),
    (MS, "ScaledSum", each::broadcasting, "1 X0:T X1:T X2?:T -> Y | scale_0:float scale_1:float scale_2:float"),

    // Dropout.
    (ONNX, "Dropout", each::dropout, "1 data ratio?@12.. training_mode?:bool@12.. -> output mask? | is_test:int@..6 ratio:float@..11 seed:int@12.."),
    (MS, "BiasDropout", each::bias_dropout, "1 data:T bias:T residual?:T ratio? training_mode?:bool -> output mask? | seed:int"),
    (MS, "BitmaskBiasDropout", each::bitmask_dropout, "1 data:T bias:T residual?:T ratio? training_mode?:bool -> output mask? | seed:int"),
    (MS, "BitmaskDropout", each::bitmask_dropout, "1 data ratio? training_mode?:bool -> output mask? | seed:int"),
    (MS, "BitmaskDropoutGrad", each::same, "1 dY mask:uint32 ratio? training_mode?:bool -> dX | seed:int"),
    (MS, "DropoutGrad", each::dropout_gradient, "1 dY mask:bool ratio? training_mode?:bool -> dX | seed:int"),

    // Gradients of elementwise operators.
    (MS, "BiasFastGeluGrad_dX", |cx| each::biased(cx, 2), "1 dY:T X:T bias:T -> dX"),
    (MS, "BiasGeluGrad_dX", |cx| each::biased(cx, 2), "1 dY:T X:T bias:T -> dX"),
    (MS, "DivGrad", each::div_gradient, "1 dY:T A:T B:T -> dA? dB?"),
    (MS, "FakeQuant", each::bias_dropout, "1 X:T scale:T zero_point:T -> Y mask | quant_max:int quant_min:int"),
    (MS, "FakeQuantGrad", each::gradient, "1 dY mask:bool -> dX"),
    (MS, "FastGeluGrad", |cx| each::biased(cx, 2), "1 dY:T X:T bias?:T -> dX"),
    (MS, "GeluGrad", each::gradient, "1 dY:T X:T -> dX"),
    (MS, "LeakyReluGrad", each::gradient, "1 dY:T Y:T -> dX | alpha:float"),
    (MS, "QuickGeluGrad", each::gradient, "1 dY:T X:T -> dX | alpha:float"),
    (MS, "ReluGrad", each::gradient, "1 dY:T X:T -> dX"),
    (MS, "SigmoidGrad", each::gradient, "1 dY:T Y:T -> dX"),
    (MS, "SinGrad", each::gradient, "1 dY:T X:T -> dX"),
    (MS, "TanhGrad", each::gradient, "1 dY:T Y:T -> dX"),

    // Shapes as data.
    (ONNX, "BlackmanWindow", shape::window, "17 size:index -> output | output_datatype:int periodic:int"),
    (ONNX, "Constant", shape::constant, "1 -> output | sparse_value:sparse@11.. value:tensor value_float:float@12.. value_floats:floats@12.. value_int:int@12.. value_ints:ints@12.. value_string:string@12.. value_strings:strings@12.."),
    (ONNX, "ConstantOfShape", shape::constant_of_shape, "9 input:int64 -> output | value:tensor"),
    (ONNX, "Expand", shape::expand, "8 input shape:int64 -> output"),
    (ONNX, "EyeLike", shape::eye_like, "9 input -> output | dtype:int k:int"),
    (ONNX, "Flatten", shape::flatten, "1 input -> output | axis:int"),
    (ONNX, "HammingWindow", shape::window, "17 size:index -> output | output_datatype:int periodic:int"),
    (ONNX, "HannWindow", shape::window, "17 size:index -> output | output_datatype:int periodic:int"),
    (ONNX, "Identity", shape::identity, "1 input -> output"),
    (ONNX, "Range", shape::range, "11 start:T limit:T delta:T -> output | stash_type:int@27.."),
    (ONNX, "Reshape", shape::reshape, "1 data shape:int64@5.. -> reshaped | allowzero:int@14.. shape:ints@..4"),
    (ONNX, "Shape", shape::shape, "1 data -> shape | end:int@15.. start:int@15.."),
    (ONNX, "Size", shape::size, "1 data -> size"),
    (ONNX, "Squeeze", shape::squeeze, "1 data axes?:int64@13.. -> squeezed | axes:ints@..12"),
    (ONNX, "Unsqueeze", shape::unsqueeze, "1 data axes:int64@13.. -> expanded | axes!:ints@..12"),
    (MS, "BroadcastGradientArgs", shape::broadcast_gradient_args, "1 a_shape:int64 b_shape:int64 -> a_axes? b_axes?"),
    (MS, "ExpandDims", movement::expand_dims, "1 X axis:index -> Y"),
    (LMSC, "Copy", shape::identity, "1 x -> y"),
    (LMSC, "Join", shape::join, "1 stayed? pieces+ -> whole | begins:ints dims:ints"),
    (LMSC, "SwapIn", shape::copy, "1 x -> y | begin:int end:int"),
    (LMSC, "SwapOut", shape::copy, "1 x -> y | begin:int end:int"),

    // Movement.
    (ONNX, "AffineGrid", movement::affine_grid, "20 theta size:int64 -> grid | align_corners:int"),
    (ONNX, "CenterCropPad", movement::center_crop_pad, "18 input_data shape:index -> output_data | axes:ints"),
    (ONNX, "Col2Im", movement::col_to_image, "18 input image_shape:int64 block_shape:int64 -> output | dilations:ints pads:ints strides:ints"),
    (ONNX, "Compress", movement::compress, "9 input condition:bool -> output | axis:int"),
    (ONNX, "Concat", movement::concat, "1 inputs+:T -> concat_result | axis:int"),
    (ONNX, "DepthToSpace", |cx| movement::depth_space(cx, true), "1 input -> output | blocksize!:int mode:string@11.."),
    (ONNX, "Gather", movement::gather, "1 data indices:index -> output | axis:int"),
    (ONNX, "GatherElements", movement::gather_elements, "11 data indices:index -> output | axis:int"),
    (ONNX, "GatherND", movement::gather_nd, "1 data indices:index -> output | batch_dims:int"),
    (ONNX, "GridSample", movement::grid_sample, "16 X grid -> Y | align_corners:int mode:string padding_mode:string"),
    (ONNX, "MaxRoiPool", movement::max_roi_pool, "1 X:T rois:T -> Y | pooled_shape!:ints spatial_scale:float"),
    (ONNX, "OneHot", movement::one_hot, "9 indices depth values -> output | axis:int"),
    (ONNX, "Pad", movement::pad, "2 data:T pads:int64@11.. constant_value?:T@11.. axes?:index@18.. -> output | mode:string pads!:ints@..10 value:float@..10"),
    (ONNX, "Resize", movement::resize, "10 X roi? scales?:float@11.. sizes?:int64@11.. -> Y | antialias:int@18.. axes:ints@18.. coordinate_transformation_mode:string@11.. cubic_coeff_a:float@11.. exclude_outside:int@11.. extrapolation_value:float@11.. keep_aspect_ratio_policy:string@18.. mode:string nearest_mode:string@11.."),
    (ONNX, "ReverseSequence", each::same, "10 input sequence_lens:int64 -> Y | batch_axis:int time_axis:int"),
    (ONNX, "RoiAlign", movement::roi_align, "10 X:T1 rois:T1 batch_indices:int64 -> Y | coordinate_transformation_mode:string@16.. mode:string output_height:int output_width:int sampling_ratio:int spatial_scale:float"),
    (ONNX, "Scatter", movement::scatter_elements, "9 data:T indices:index updates:T -> output | axis:int"),
    (ONNX, "ScatterElements", movement::scatter_elements, "11 data:T indices:index updates:T -> output | axis:int reduction:string@16.."),
    (ONNX, "ScatterND", movement::scatter_nd, "11 data:T indices:index updates:T -> output | reduction:string@16.."),
    (ONNX, "Slice", movement::slice, "1 data starts:index@10.. ends:index@10.. axes?:index@10.. steps?:index@10.. -> output | axes:ints@..9 ends!:ints@..9 starts!:ints@..9"),
    (ONNX, "SpaceToDepth", |cx| movement::depth_space(cx, false), "1 input -> output | blocksize!:int mode:string@28.."),
    (ONNX, "Split", movement::split, "2 input split?:int64@13.. -> outputs+ | axis:int num_outputs:int@18.. split:ints@..12"),
    (ONNX, "TensorScatter", each::same, "24 past_cache:T update:T write_indices?:int64 -> present_cache | axis:int mode:string"),
    (ONNX, "Tile", movement::tile, "6 input repeats:int64 -> output"),
    (ONNX, "Transpose", movement::transpose, "1 data -> transposed | perm:ints"),
    (ONNX, "Trilu", movement::triangle, "14 input k?:int64 -> output | upper:int"),
    (ONNX, "Upsample", movement::resize, "7 X scales:float@9.. -> Y | mode:string scales!:floats@..8"),
    (MS, "ConcatTraining", movement::concat, "1 inputs+:T -> output lengths? | axis:int"),
    (MS, "GatherElementsGrad", movement::gather_elements_gradient, "1 dY shape:int64 indices:index -> dX | axis:int"),
    (MS, "GatherGrad", movement::gather_gradient, "1 shape:int64 indices:index dY -> dX | axis:int"),
    (MS, "GatherNDGrad", movement::gather_nd_gradient, "1 shape:int64 indices:index dY -> dX | batch_dims:int"),
    (MS, "PadAndUnflatten", movement::unflatten, "1 input indices:int64 unflatten_dims:int64 -> output full_shape?"),
    (MS, "ResizeGrad", conv::like_second, "1 dY:T X:T roi? scales?:float sizes?:int64 -> dX | antialias:int axes:ints coordinate_transformation_mode:string cubic_coeff_a:float exclude_outside:int extrapolation_value:float keep_aspect_ratio_policy:string mode:string nearest_mode:string"),
    (MS, "SliceGrad", movement::slice_gradient, "1 dY shape:int64 starts:I ends:I axes?:I steps?:I -> dX"),
    (MS, "SplitTraining", movement::split, "1 input split:int64 -> outputs+ | axis:int num_outputs:int"),
    (MS, "Trilu", movement::triangle, "1 X k?:int64 -> Y | upper:int"),

    // Products.
    (ONNX, "Attention", product::attention, "23 Q:T1 K:T1 V:T2 attn_mask? past_key?:T1 past_value?:T2 nonpad_kv_seqlen?:int64@24.. -> Y present_key? present_value? qk_matmul_output? | is_causal:int kv_num_heads:int left_window_size:int@25.. q_num_heads:int qk_matmul_output_mode:int right_window_size:int@25.. scale:float softcap:float softmax_precision:int"),
    (LMSC, "Attention", product::tiled_attention, "1 Q:T K:T V:T mask?:bool|float|float16|bfloat16 -> Y maxima? sums? | is_causal:int scale:float"),
    (LMSC, "AttentionGrad", product::tiled_attention_gradient, "1 dY:T Q:T K:T V:T Y:T maxima:float sums:float mask?:bool|float|float16|bfloat16 -> dQ? dK? dV? | is_causal:int scale:float"),
    (ONNX, "Det", product::determinant, "11 X -> Y"),
    (ONNX, "Einsum", product::einsum, "12 Inputs+:T -> Output | equation!:string"),
    (ONNX, "Gemm", product::gemm, "1 A:T B:T C?:T -> Y | alpha:float beta:float broadcast:int@..6 transA:int transB:int"),
    (ONNX, "MatMul", product::matmul, "1 A:T B:T -> Y"),
    (ONNX, "MatMulInteger", product::matmul_integer, "10 A:T1 B:T2 a_zero_point?:T1 b_zero_point?:T2 -> Y"),
    (ONNX, "QLinearMatMul", product::qlinear_matmul, "10 a:T1 a_scale:TS a_zero_point:T1 b:T2 b_scale:TS b_zero_point:T2 y_scale:TS y_zero_point -> y"),
    (MS, "DynamicQuantizeMatMul", product::matmul_to_float, "1 A:float B b_scale:float b_zero_point? bias?:float -> Y"),
    (MS, "FusedGemm", product::gemm, "1 A:T B:T C?:T -> Y | activation:string activation_alpha:float activation_beta:float activation_gamma:float alpha:float beta:float transA:int transB:int"),
    (MS, "FusedMatMul", product::fused_matmul, "1 A:T B:T -> Y | alpha:float transA:int transB:int transBatchA:int transBatchB:int"),
    (MS, "FusedMatMulActivation", product::fused_matmul, "1 A:T B:T -> Y | activation:string activation_alpha:float activation_beta:float activation_gamma:float activation_axis:int alpha:float transA:int transB:int transBatchA:int transBatchB:int"),
    (MS, "MatMulIntegerToFloat", product::matmul_to_float, "1 A B a_scale:T b_scale:T a_zero_point? b_zero_point? bias?:T -> Y"),
    (MS, "MatMulNBits", product::matmul_bits, "1 A:T B scales:T zero_points? g_idx? bias?:T -> Y | K!:int N!:int accuracy_level:int bits:int block_size!:int weight_prepacked:int"),
    (MS, "RotaryEmbedding", each::same, "1 input:T position_ids:int64 cos_cache:T sin_cache:T -> output | interleaved:int is_packed_batching:int num_heads:int rotary_embedding_dim:int scale:float"),
    (MS, "TransposeMatMul", product::fused_matmul, "1 A:T B:T -> Y | alpha:float transA:int transB:int"),
    (ONNX, "RotaryEmbedding", each::same, "23 X:T cos_cache:T sin_cache:T position_ids?:int64 -> Y | interleaved:int num_heads:int rotary_embedding_dim:int"),

    // Convolutions and pooling.
    (ONNX, "AveragePool", conv::pool, "1 X -> Y | auto_pad:string ceil_mode:int@10.. count_include_pad:int@7.. dilations:ints@19.. kernel_shape!:ints pads:ints strides:ints"),
    (ONNX, "AveragePoolGrad", conv::average_pool_gradient, "1 dY -> dX | auto_pad:string ceil_mode:int count_include_pad:int dilations:ints kernel_shape:ints pads:ints storage_order:int strides:ints"),
    (ONNX, "Conv", conv::conv, "1 X:T W:T B?:T -> Y | auto_pad:string dilations:ints group:int kernel_shape:ints pads:ints strides:ints"),
    (ONNX, "ConvInteger", conv::conv_integer, "10 x:T1 w:T2 x_zero_point?:T1 w_zero_point?:T2 -> y | auto_pad:string dilations:ints group:int kernel_shape:ints pads:ints strides:ints"),
    (ONNX, "ConvTranspose", conv::conv_transpose, "1 X:T W:T B?:T -> Y | auto_pad:string dilations:ints group:int kernel_shape:ints output_padding:ints output_shape:ints pads:ints strides:ints"),
    (ONNX, "DeformConv", conv::deform_conv, "19 X:T W:T offset:T B?:T mask?:T -> Y | dilations:ints group:int kernel_shape:ints offset_group:int pads:ints strides:ints"),
    (ONNX, "GlobalAveragePool", conv::global_pool, "1 X -> Y"),
    (ONNX, "GlobalLpPool", conv::global_pool, "2 X -> Y | p:int"),
    (ONNX, "GlobalMaxPool", conv::global_pool, "1 X -> Y"),
    (ONNX, "LpPool", conv::pool, "2 X -> Y | auto_pad:string ceil_mode:int@18.. dilations:ints@18.. kernel_shape!:ints p:int pads:ints strides:ints"),
    (ONNX, "MaxPool", conv::pool, "1 X -> Y Indices?@8.. | auto_pad:string ceil_mode:int@10.. dilations:ints@10.. kernel_shape!:ints pads:ints storage_order:int@8.. strides:ints"),
    (ONNX, "MaxPoolGrad", conv::max_pool_gradient, "1 dY Indices:int64 -> dX | auto_pad:string ceil_mode:int count_include_pad:int dilations:ints kernel_shape:ints pads:ints storage_order:int strides:ints"),
    (ONNX, "MaxUnpool", conv::max_unpool, "9 X I:int64 output_shape?:int64 -> output | kernel_shape!:ints pads:ints strides:ints"),
    (ONNX, "QLinearConv", conv::qlinear_conv, "10 x:T1 x_scale:float x_zero_point:T1 w:T2 w_scale:float w_zero_point:T2 y_scale:float y_zero_point B?:int32 -> y | auto_pad:string dilations:ints group:int kernel_shape:ints pads:ints strides:ints"),
    (MS, "AveragePoolGrad", conv::average_pool_gradient, "1 dY -> dX | auto_pad:string ceil_mode:int count_include_pad:int dilations:ints kernel_shape:ints pads:ints storage_order:int strides:ints"),
    (MS, "ConvGrad", conv::conv_gradient, "1 dY:T X:T W:T -> dX? dW? dB? | auto_pad:string dilations:ints group:int kernel_shape:ints pads:ints strides:ints"),
    (MS, "ConvTransposeGrad", conv::conv_transpose_gradient, "1 dY:T X:T W:T -> dX? dW? dB? | auto_pad:string dilations:ints group:int kernel_shape:ints pads:ints strides:ints output_padding:ints output_shape:ints"),
    (MS, "FusedConv", conv::conv, "1 X:T W:T B?:T Z?:T -> Y | activation:string activation_params:floats auto_pad:string dilations:ints group:int kernel_shape:ints pads:ints strides:ints"),
    (MS, "MaxPoolGrad", conv::max_pool_gradient, "1 dY Indices:int64 -> dX | auto_pad:string ceil_mode:int count_include_pad:int dilations:ints kernel_shape:ints pads:ints storage_order:int strides:ints"),

    // Normalizations.
    (ONNX, "BatchNormalization", norm::batch, "1 X scale:T1 B:T1 input_mean:T2 input_var:T2 -> Y mean? var? saved_mean?@..13 saved_var?@..13 | epsilon:float is_test:int@..6 momentum:float spatial:int@..8 training_mode:int@14.."),
    (ONNX, "GroupNormalization", norm::instance, "18 X:T scale:T bias:T -> Y | epsilon:float num_groups!:int stash_type:int@21.."),
    (ONNX, "Hardmax", norm::along_axis, "1 input -> output | axis:int"),
    (ONNX, "InstanceNormalization", norm::instance, "1 input:T scale:T B:T -> output | epsilon:float"),
    (ONNX, "LRN", norm::local, "1 X -> Y | alpha:float beta:float bias:float size!:int"),
    (ONNX, "LayerNormalization", norm::layer, "1 X Scale:V B?:V -> Y Mean? InvStdDev? | axis:int epsilon:float stash_type:int"),
    (ONNX, "LogSoftmax", norm::along_axis, "1 input -> output | axis:int"),
    (ONNX, "LpNormalization", norm::along_axis, "1 input -> output | axis:int p:int"),
    (ONNX, "MeanVarianceNormalization", norm::local, "9 X -> Y | axes:ints"),
    (ONNX, "RMSNormalization", each::same, "23 X scale -> Y | axis:int epsilon:float stash_type:int"),
    (ONNX, "SimplifiedLayerNormalization", norm::simplified_layer, "1 X scale -> Y inv_std? | axis:int epsilon:float stash_type:int"),
    (ONNX, "Softmax", norm::along_axis, "1 input -> output | axis:int"),
    (MS, "BatchNormInternal", norm::batch, "1 X scale:T1 B:T1 input_mean?:T2 input_var?:T2 -> Y running_mean? running_var? saved_mean? saved_inv_std? | epsilon:float momentum:float training_mode:int"),
    (MS, "BatchNormalizationGrad", norm::batch_gradient, "1 dY:T X:T scale mean:T2 inv_std:T2 -> dX dscale? dB? | epsilon:float"),
    (MS, "GroupNorm", each::same, "1 X gamma:M beta:M -> Y | activation!:int channels_last:int epsilon:float groups!:int"),
    (MS, "InvertibleLayerNormalizationGrad", |cx| norm::layer_gradient(cx, &[4]), "1 dY Y scale:V bias:V inv_std -> dX dscale? dB? | axis:int epsilon:float stash_type:int"),
    (MS, "LayerNormalization", norm::layer, "1 X Scale:V B?:V -> Y Mean? InvStdDev? | axis:int epsilon:float stash_type:int"),
    (MS, "LayerNormalizationGrad", |cx| norm::layer_gradient(cx, &[3, 4]), "1 dY X scale mean:U inv_std:U -> dX dscale? dB? | axis:int epsilon:float stash_type:int"),
    (MS, "LogSoftmaxGrad", norm::along_axis_gradient, "1 dY:T Y:T -> dX | axis:int"),
    (MS, "LogSoftmaxGrad_13", norm::along_axis_gradient, "1 dY:T Y:T -> dX | axis:int"),
    (MS, "SimplifiedLayerNormalization", norm::simplified_layer, "1 X scale -> Y inv_std? | axis:int epsilon:float stash_type:int"),
    (MS, "SimplifiedLayerNormalizationGrad", |cx| norm::layer_gradient(cx, &[3]), "1 dY X scale inv_std -> dX dscale? | axis:int epsilon:float stash_type:int"),
    (MS, "SkipLayerNormalization", norm::skip_layer, "1 input:T skip:T gamma:T beta?:T bias?:T -> output mean? inv_std? sum? | epsilon:float"),
    (MS, "SkipSimplifiedLayerNormalization", norm::skip_layer, "1 input:T skip:T gamma:T bias?:T -> output mean? inv_std? sum? | epsilon:float"),
    (MS, "SoftmaxGrad", norm::along_axis_gradient, "1 dY:T Y:T -> dX | axis:int"),
    (MS, "SoftmaxGrad_13", norm::along_axis_gradient, "1 dY:T Y:T -> dX | axis:int"),

    // Reductions.
    (ONNX, "ArgMax", reduce::arg, "1 data -> reduced | axis:int keepdims:int select_last_index:int@12.."),
    (ONNX, "ArgMin", reduce::arg, "1 data -> reduced | axis:int keepdims:int select_last_index:int@12.."),
    (ONNX, "CumProd", each::same, "26 x axis:index -> y | exclusive:int reverse:int"),
    (ONNX, "CumSum", reduce::cumulative, "11 x axis:index -> y | exclusive:int reverse:int"),
    (ONNX, "NonZero", reduce::non_zero, "9 X -> Y"),
    (ONNX, "ReduceL1", reduce::reduce, "1 data axes?:int64@18.. -> reduced | axes:ints@..17 keepdims:int noop_with_empty_axes:int@18.."),
    (ONNX, "ReduceL2", reduce::reduce, "1 data axes?:int64@18.. -> reduced | axes:ints@..17 keepdims:int noop_with_empty_axes:int@18.."),
    (ONNX, "ReduceLogSum", reduce::reduce, "1 data axes?:int64@18.. -> reduced | axes:ints@..17 keepdims:int noop_with_empty_axes:int@18.."),
    (ONNX, "ReduceLogSumExp", reduce::reduce, "1 data axes?:int64@18.. -> reduced | axes:ints@..17 keepdims:int noop_with_empty_axes:int@18.."),
    (ONNX, "ReduceMax", |cx| reduce::fold_reduce(cx, |v| v.iter().max().copied()), "1 data axes?:int64@18.. -> reduced | axes:ints@..17 keepdims:int noop_with_empty_axes:int@18.."),
    (ONNX, "ReduceMean", reduce::reduce, "1 data axes?:int64@18.. -> reduced | axes:ints@..17 keepdims:int noop_with_empty_axes:int@18.."),
    (ONNX, "ReduceMin", |cx| reduce::fold_reduce(cx, |v| v.iter().min().copied()), "1 data axes?:int64@18.. -> reduced | axes:ints@..17 keepdims:int noop_with_empty_axes:int@18.."),
    (ONNX, "ReduceProd", |cx| reduce::fold_reduce(cx, |v| v.iter().try_fold(1, |a: i64, &b| a.checked_mul(b))), "1 data axes?:int64@18.. -> reduced | axes:ints@..17 keepdims:int noop_with_empty_axes:int@18.."),
    (ONNX, "ReduceSum", |cx| reduce::fold_reduce(cx, |v| v.iter().try_fold(0, |a: i64, &b| a.checked_add(b))), "1 data axes?:int64@13.. -> reduced | axes:ints@..12 keepdims:int noop_with_empty_axes:int@13.."),
    (ONNX, "ReduceSumSquare", reduce::reduce, "1 data axes?:int64@18.. -> reduced | axes:ints@..17 keepdims:int noop_with_empty_axes:int@18.."),
    (ONNX, "TopK", reduce::top_k, "1 X k:int64@10.. -> Values Indices | axis:int k!:int@..9 largest:int@11.. sorted:int@11.."),
    (MS, "ReduceSumTraining", reduce::reduce, "1 data axes:int64 -> reduced | keepdims:int noop_with_empty_axes:int"),

    // Recurrent layers.
    (ONNX, "GRU", |cx| rnn::recurrent(cx, 3), "7 X:T W:T R:T B?:T sequence_lens?:int32 initial_h?:T -> Y? Y_h? | activation_alpha:floats activation_beta:floats activations:strings clip:float direction:string hidden_size:int layout:int@14.. linear_before_reset:int"),
    (ONNX, "LSTM", |cx| rnn::recurrent(cx, 4), "7 X:T W:T R:T B?:T sequence_lens?:int32 initial_h?:T initial_c?:T P?:T -> Y? Y_h? Y_c? | activation_alpha:floats activation_beta:floats activations:strings clip:float direction:string hidden_size:int input_forget:int layout:int@14.."),
    (ONNX, "RNN", |cx| rnn::recurrent(cx, 1), "7 X:T W:T R:T B?:T sequence_lens?:int32 initial_h?:T -> Y? Y_h? | activation_alpha:floats activation_beta:floats activations:strings clip:float direction:string hidden_size:int layout:int@14.."),
    (MS, "GRUGrad", |cx| rnn::gradient(cx, 3), "1 X:T W:T R:T B?:T sequence_lens?:int32 initial_h?:T H_all:T gates:T dY?:T dY_h?:T -> dX? dW? dR? dB? dH? | activation_alpha:floats activation_beta:floats activations:strings clip:float direction:string hidden_size:int linear_before_reset:int"),
    (MS, "GRUTraining", rnn::gru_training, "1 X:T W:T R:T B?:T sequence_lens?:int32 initial_h?:T -> Y? Y_h? gates? | activation_alpha:floats activation_beta:floats activations:strings clip:float direction:string hidden_size:int linear_before_reset:int"),
    (MS, "LSTMGrad", |cx| rnn::gradient(cx, 4), "1 X:T W:T R:T sequence_lens?:int32 initial_h?:T initial_c?:T H_all:T C_all:T gates:T dY?:T dY_h?:T dY_c?:T -> dX? dW? dR? dB? dH? dC? | activation_alpha:floats activation_beta:floats activations:strings clip:float direction:string hidden_size:int input_forget:int"),
    (MS, "LSTMTraining", rnn::lstm_training, "1 X:T W:T R:T B?:T sequence_lens?:int32 initial_h?:T initial_c?:T P?:T -> Y? Y_h? Y_c? C_all? gates? | activation_alpha:floats activation_beta:floats activations:strings clip:float direction:string hidden_size:int input_forget:int"),

    // Losses.
    (ONNX, "NegativeLogLikelihoodLoss", loss::negative_log_likelihood, "12 input:T target:index weight?:T -> loss | ignore_index:int reduction:string"),
    (ONNX, "SoftmaxCrossEntropyLoss", loss::cross_entropy, "12 scores:T labels:index weights?:T -> output log_prob? | ignore_index:int reduction:string"),
    (MS, "NegativeLogLikelihoodLossInternal", loss::negative_log_likelihood, "1 input:T target:index weight?:T ignore_index?:int64 -> loss | reduction:string"),
    (MS, "NegativeLogLikelihoodLossInternal2", loss::negative_log_likelihood, "1 input:T target:index weight?:T ignore_index?:int64 -> loss | reduction:string"),
    (MS, "SoftmaxCrossEntropy", loss::last_axis_cross_entropy, "1 scores:T labels:T -> loss log_prob? | reduction:string"),
    (MS, "SoftmaxCrossEntropyGrad", conv::like_second, "1 dY:T log_prob:T labels:T -> dX | reduction:string"),
    (MS, "SoftmaxCrossEntropyLossGrad", loss::cross_entropy_gradient, "1 dY log_prob:T labels:index weights?:T bias? -> dX | ignore_index:int output_type:int reduction:string"),
    (MS, "SoftmaxCrossEntropyLossInternal", loss::cross_entropy, "1 scores:T labels:index weights?:T ignore_index?:int64 -> loss log_prob? | output_type:int reduction:string"),
    (MS, "SoftmaxCrossEntropyLossInternalGrad", loss::cross_entropy_gradient, "1 dY log_prob:T labels:index weights?:T ignore_index?:int64 bias? -> dX | output_type:int reduction:string"),
    (MS, "SparseSoftmaxCrossEntropy", loss::last_axis_cross_entropy, "1 scores:T labels:index weights?:T -> loss log_prob? | reduction:string"),
    (MS, "SparseSoftmaxCrossEntropyGrad", conv::like_second, "1 dY:T log_prob:T labels:index weights?:T -> dX | reduction:string"),

    // Training.
    (MS, "AdamOptimizer", training::adam_single, "1 rate step:int64 weights gradients moment_1:M moment_2:M mixed_precision_weights? loss_scale? gradient_norm? update_signal?:bool -> step moment_1 moment_2 weights? gradients? mixed_precision_weights? | alpha:float beta:float do_bias_correction:int epsilon:float lambda:float max_norm_clip:float weight_decay_mode:int"),
    (MS, "AdamWOptimizer", training::adamw_sequences, "1 rate:float step:int64 weights gradients moments_1 moments_2 update_signal?:bool -> updated weights? moments_1? moments_2? | adam_mode:int alpha:float beta:float correct_bias:int epsilon:float weight_decay:float"),
    (MS, "GradientAccumulator", training::accumulate, "1 sum value update_signal?:bool -> sum"),
    (MS, "Group", training::one_flag, "1 inputs+ -> done"),
    (MS, "InPlaceAccumulator", training::accumulate, "1 sum value update_signal?:bool -> sum"),
    (MS, "InPlaceAccumulatorV2", training::accumulate_in_place, "1 buffer value overwrite?:bool -> updated buffer?"),
    (MS, "IsAllFinite", training::one_flag, "1 inputs+ -> output | isinf_only:int isnan_only:int"),
    (MS, "MixedPrecisionScale", training::mixed_precision_scale, "1 scale X+ -> Y+ | fuse_outputs:int to!:int"),
    (MS, "PassThrough", training::pass_through, "1 inputs+ -> outputs+"),
    (MS, "RecordEvent", training::record_event, "1 event:int64 inputs+ -> outputs*"),
    (MS, "ReduceAllL2", training::norm_of_all, "1 X+ -> Y | ignore_mask:int"),
    (MS, "SGDOptimizer", training::sgd_single, "1 rate weights gradients -> weights? gradients?"),
    (MS, "SGDOptimizerV2", training::sgd_sequences, "1 rate:float weights gradients update_signal?:bool -> updated weights?"),
    (MS, "YieldOp", training::yield_op, "1 outputs+ -> gradients* | full_shape_outputs:ints non_differentiable_outputs:ints"),
    (MS, "ZeroGradient", each::same, "1 gradient signal -> zero"),
    (PREVIEW, "Adagrad", |cx| training::preview(cx, 1), "1 R T:int64 inputs+ -> outputs+ | decay_factor:float epsilon:float norm_coefficient:float"),
    (PREVIEW, "Adam", |cx| training::preview(cx, 2), "1 R T:int64 inputs+ -> outputs+ | alpha:float beta:float epsilon:float norm_coefficient:float norm_coefficient_post:float"),
    (PREVIEW, "Gradient", training::symbolic_gradient, "1 Inputs+ -> Outputs+ | xs!:strings y!:string zs:strings"),
    (PREVIEW, "Momentum", |cx| training::preview(cx, 1), "1 R T:int64 inputs+ -> outputs+ | alpha!:float beta!:float mode!:string norm_coefficient!:float"),
    (LMSC, "AdamWOptimizer", training::adamw, "1 rate:float step:int64 weight gradient moment_1 moment_2 short_weight? -> weight? moment_1? moment_2? short_weight? | adam_mode:int alpha:float beta:float correct_bias:int epsilon:float weight_decay:float"),
    (LMSC, "SGDOptimizer", training::sgd, "1 rate:float weight gradient -> weight?"),

    // Sequences.
    (ONNX, "ConcatFromSequence", sequence::concat, "11 input_sequence -> concat_result | axis!:int new_axis:int"),
    (ONNX, "SequenceAt", sequence::at, "11 input_sequence position:index -> tensor"),
    (ONNX, "SequenceConstruct", sequence::construct, "11 inputs+:T -> output_sequence"),
    (ONNX, "SequenceEmpty", sequence::empty, "11 -> output | dtype:int"),
    (ONNX, "SequenceErase", sequence::erase, "11 input_sequence position?:index -> output_sequence"),
    (ONNX, "SequenceInsert", sequence::insert, "11 input_sequence tensor position?:index -> output_sequence"),
    (ONNX, "SequenceLength", sequence::length, "11 input_sequence -> length"),
    (ONNX, "SplitToSequence", sequence::split, "11 input split?:index -> output_sequence | axis:int keepdims:int"),

    // Random tensors.
    (ONNX, "Bernoulli", random::like, "15 input -> output | dtype:int seed:float"),
    (ONNX, "Multinomial", random::multinomial, "7 input -> output | dtype:int sample_size:int seed:float"),
    (ONNX, "RandomNormal", random::of_shape, "1 -> output | dtype:int mean:float scale:float seed:float shape!:ints"),
    (ONNX, "RandomNormalLike", random::like, "1 input -> output | dtype:int mean:float scale:float seed:float"),
    (ONNX, "RandomUniform", random::of_shape, "1 -> output | dtype:int high:float low:float seed:float shape!:ints"),
    (ONNX, "RandomUniformLike", random::like, "1 input -> output | dtype:int high:float low:float seed:float"),

    // Quantization.
    (ONNX, "DequantizeLinear", quantize::dequantize, "10 x:T1 x_scale x_zero_point?:T1 -> y | axis:int@13.. block_size:int@21.. output_dtype:int@23.."),
    (ONNX, "DynamicQuantizeLinear", quantize::dynamic, "11 x:float -> y y_scale y_zero_point"),
    (ONNX, "QuantizeLinear", quantize::quantize, "10 x y_scale y_zero_point? -> y | axis:int@13.. block_size:int@21.. output_dtype:int@21.. precision:int@23.. saturate:int@19.."),
    (MS, "DequantizeLinear", quantize::dequantize, "1 x:T1 x_scale x_zero_point?:T1 -> y | axis:int block_size:int"),
    (MS, "QuantizeLinear", quantize::quantize, "1 x:T1 y_scale:T1 y_zero_point? -> y | axis:int block_size:int saturate:int"),
    (ONNX, "OptionalHasElement", |_| shape::scalar(ElementType::Bool), "15 input? -> output"),
];

/// An operator's row.
pub(super) struct Row {
    pub(super) rule: Rule,
    pub(super) contract: Contract,
}

static INDEX: LazyLock<HashMap<(&str, &str), Row>> = LazyLock::new(|| {
    let row = |&(domain, name, rule, contract): &(&'static str, &'static str, Rule, &'static str)| {
        let contract = Contract::parse(contract).expect("a test reads every contract");
        ((domain, name), Row { rule, contract })
    };
    RULES.iter().map(row).collect()
});

/// The operator's row, if it has one.
pub(super) fn row(op: &Op) -> Option<&Row> {
    INDEX.get(&op.key())
}

/// The operators of the table with their contracts, sorted.
pub(super) fn operators() -> Vec<(&'static str, &'static str, &'static str)> {
    let mut operators: Vec<_> =
        RULES.iter().map(|&(domain, name, _, contract)| (domain, name, contract)).collect();
    operators.sort_unstable();
    operators
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_operator_has_two_rows_and_every_contract_can_be_read() {
        for (domain, name, contract) in operators() {
            assert!(Contract::parse(contract).is_some(), "{domain}.{name}: {contract}");
        }
        assert_eq!(INDEX.len(), RULES.len());
    }
}
