//! The pass `expand-training-ops`: each operator by itself computes the values of its expansion.
//! tests/kernels.rs has whole steps, and operators without a rule.

use crate::support::interpreter::Interpreter;
use clap::Parser;
use lmsc::cli::{Cli, CliCommand};
use lmsc_ir::{ElementType, Graph, ValueId};
use lmsc_kernels::StepContext;
use lmsc_passes::{PassCx, Pipeline};

/// Relative to the largest element.
const ALLOWED: f32 = 2e-5;

/// Inputs, outputs and a node, which has a rule. Integers are labels and indices below 4, or a number of steps.
const CASES: &[(&str, &str, &str)] = &[
    ("float[3,5] dy, float[3,5] y", "float[3,5] dx", "com.microsoft.ReluGrad(dy, y)"),
    ("float[3,5] dy, float[3,5] y", "float[3,5] dx", "com.microsoft.TanhGrad(dy, y)"),
    ("float[3,5] dy, float[3,5] y", "float[3,5] dx", "com.microsoft.SigmoidGrad(dy, y)"),
    ("float[3,5] x", "float[3,5] y", "com.microsoft.Gelu(x)"),
    ("float[3,5] dy, float[3,5] x", "float[3,5] dx", "com.microsoft.GeluGrad(dy, x)"),
    ("float[3,5] x, float[5] b", "float[3,5] y", "com.microsoft.FastGelu(x, b)"),
    ("float[3,5] x", "float[3,5] y", "com.microsoft.FastGelu(x)"),
    ("float[3,5] dy, float[3,5] x", "float[3,5] dx", "com.microsoft.FastGeluGrad(dy, x)"),
    ("float[3,5] dy, float[3,5] y", "float[3,5] dx", "com.microsoft.SoftmaxGrad_13<axis = 0>(dy, y)"),
    ("float[3,5,2] dy, float[3,5,2] y", "float[3,5,2] dx", "com.microsoft.SoftmaxGrad_13<axis = -2>(dy, y)"),
    ("float[3,5] dy, float[3,5] y", "float[3,5] dx", "com.microsoft.LogSoftmaxGrad_13(dy, y)"),
    (
        "float[2,5,3] a, float[2,5,4] b",
        "float[2,3,4] y",
        "com.microsoft.FusedMatMul<transA = 1, alpha = 0.5>(a, b)",
    ),
    ("float[2,3,5] a, float[4,5] b", "float[2,3,4] y", "com.microsoft.FusedMatMul<transB = 1>(a, b)"),
    (
        "float[3,5] a, float[3,2] b",
        "float[3,7] y, int64[2] n",
        "com.microsoft.ConcatTraining<axis = -1>(a, b)",
    ),
    ("float[6,2] dy, bool[6,2] m, float[] r", "float[6,2] dx", "com.microsoft.DropoutGrad(dy, m, r)"),
    ("float[6,2] dy, bool[6,2] m", "float[6,2] dx", "com.microsoft.DropoutGrad(dy, m)"),
    ("float[6,2] x, int64[1] n", "float[6,2] y", "com.microsoft.Scale<scale_down = 1>(x, n)"),
    ("float[6,2] x, float[] n", "float[6,2] y", "com.microsoft.Scale(x, n)"),
    ("int64[2] s, int64[3,2] i, float[3,2,5] dy", "float[4,5] dx", "com.microsoft.GatherGrad(s, i, dy)"),
    (
        "int64[2] s, int32[6] i, float[6,5] dy",
        "float[4,5] dx",
        "com.microsoft.GatherGrad<axis = 0>(s, i, dy)",
    ),
    ("float[1,1,2,2] dy, int64[1,1,2,2] i", "float[1,1,2,2] dx", "MaxPoolGrad(dy, i)"),
    (
        "float[] d, float[6,4] l, int64[6] y",
        "float[6,4] dx",
        "com.microsoft.SoftmaxCrossEntropyLossGrad(d, l, y)",
    ),
    (
        "float[] d, float[6,4,3] l, int32[6,3] y",
        "float[6,4,3] dx",
        "com.microsoft.SoftmaxCrossEntropyLossGrad<reduction = \"sum\">(d, l, y)",
    ),
    (
        "float[6,3] d, float[6,4,3] l, int64[6,3] y",
        "float[6,4,3] dx",
        "com.microsoft.SoftmaxCrossEntropyLossGrad<reduction = \"none\", ignore_index = 1>(d, l, y)",
    ),
    (
        "float[] d, float[6,4] l, int64[6] y",
        "float[6,4] dx",
        "com.microsoft.SoftmaxCrossEntropyLossGrad<ignore_index = 2>(d, l, y)",
    ),
    (
        "float[2,8,5,7] dy, float[2,3,9,13] x, float[8,3,3,3] w",
        "float[2,3,9,13] dx, float[8,3,3,3] dw, float[8] db",
        "com.microsoft.ConvGrad<strides = [2, 2], pads = [1, 1, 1, 1]>(dy, x, w)",
    ),
    // Elements that the strides leave over are cut off.
    (
        "float[2,6,4,4] dy, float[2,4,10,9] x, float[6,2,3,2] w",
        "float[2,4,10,9] dx, float[6,2,3,2] dw, float[6] db",
        "com.microsoft.ConvGrad<group = 2, strides = [2, 2]>(dy, x, w)",
    ),
    (
        "float[2,4,5] dy, float[2,4,11] x, float[4,1,3] w",
        "float[2,4,11] dx, float[4,1,3] dw, float[4] db",
        "com.microsoft.ConvGrad<group = 4, dilations = [2], strides = [2], pads = [1, 1]>(dy, x, w)",
    ),
    (
        "float[1,2,2,3,4] dy, float[1,3,3,4,5] x, float[2,3,2,2,2] w",
        "float[1,3,3,4,5] dx, float[2,3,2,2,2] dw, _",
        "com.microsoft.ConvGrad(dy, x, w)",
    ),
    (
        "float[2,3,9,13] dy, float[2,8,5,7] x, float[8,3,3,3] w",
        "float[2,8,5,7] dx, float[8,3,3,3] dw, float[3] db",
        "com.microsoft.ConvTransposeGrad<strides = [2, 2], pads = [1, 1, 1, 1]>(dy, x, w)",
    ),
    (
        "float[1,6,5,5,6] dy, float[1,4,4,2,3] x, float[4,3,2,2,2] w",
        "float[1,4,4,2,3] dx, float[4,3,2,2,2] dw, float[6] db",
        "com.microsoft.ConvTransposeGrad<group = 2, strides = [1, 3, 2]>(dy, x, w)",
    ),
    (
        "float[2,3,3,4] dy",
        "float[2,3,6,8] dx",
        "AveragePoolGrad<kernel_shape = [2, 2], strides = [2, 2]>(dy)",
    ),
    (
        "float[2,3,4,3] dy",
        "float[2,3,7,5] dx",
        "AveragePoolGrad<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(dy)",
    ),
    (
        "float[2,3,4,3] dy",
        "float[2,3,7,5] dx",
        "com.microsoft.AveragePoolGrad<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], count_include_pad = 1>(dy)",
    ),
    (
        "float[5,2,3] x, float[1,16,3] w, float[1,16,4] r, float[1,32] b, float[1,2,4] h, float[1,2,4] c",
        "float[5,1,2,4] y, float[1,2,4] yh, float[1,2,4] yc, float[5,1,2,4] cells, float[5,1,2,16] gates",
        "com.microsoft.LSTMTraining<hidden_size = 4>(x, w, r, b, _, h, c)",
    ),
    (
        "float[3,2,3] x, float[2,16,3] w, float[2,16,4] r",
        "float[3,2,2,4] y, _, float[2,2,4] yc, float[3,2,2,4] cells, float[3,2,2,16] gates",
        "com.microsoft.LSTMTraining<direction = \"bidirectional\", hidden_size = 4>(x, w, r)",
    ),
    (
        "float[5,2,3] x, float[1,16,3] w, float[1,16,4] r, float[1,2,4] h, float[1,2,4] c, float[5,1,2,4] y, float[5,1,2,4] cells, float[5,1,2,16] gates, float[5,1,2,4] dy",
        "float[5,2,3] dx, float[1,16,3] dw, float[1,16,4] dr, float[1,32] db, float[1,2,4] dh, float[1,2,4] dc",
        "com.microsoft.LSTMGrad<direction = \"reverse\", hidden_size = 4>(x, w, r, _, h, c, y, cells, gates, dy)",
    ),
    (
        "float[3,2,3] x, float[2,16,3] w, float[2,16,4] r, float[3,2,2,4] y, float[3,2,2,4] cells, float[3,2,2,16] gates, float[2,2,4] h, float[2,2,4] c",
        "float[3,2,3] dx, float[2,16,3] dw, float[2,16,4] dr, float[2,32] db",
        "com.microsoft.LSTMGrad<direction = \"bidirectional\", hidden_size = 4>(x, w, r, _, _, _, y, cells, gates, _, h, c)",
    ),
    (
        "float[2,3,5] dy, float[2,3,5] x, float[5] s, float[2,3,1] m, float[2,3,1] i",
        "float[2,3,5] dx, float[5] ds, float[5] db",
        "com.microsoft.LayerNormalizationGrad(dy, x, s, m, i)",
    ),
    (
        "float[2,3,5] dy, float[2,3,5] x, float[3,5] s, float[2,1,1] m, float[2,1,1] i",
        "float[2,3,5] dx, float[3,5] ds, float[3,5] db",
        "com.microsoft.LayerNormalizationGrad<axis = 1>(dy, x, s, m, i)",
    ),
    (
        "float[2,3,5,4] dy, float[2,3,5,4] x, float[3] s, float[3] m, float[3] i",
        "float[2,3,5,4] dx, float[3] ds, float[3] db",
        "com.microsoft.BatchNormalizationGrad(dy, x, s, m, i)",
    ),
    (
        "float[2,3,5,4] x, float[3] s, float[3] b, float[3] m, float[3] v",
        "float[2,3,5,4] y, float[3] m_new, float[3] v_new, float[3] mean, float[3] i",
        "com.microsoft.BatchNormInternal<momentum = 0.7, epsilon = 1e-3, training_mode = 1>(x, s, b, m, v) updates (m as m_new, v as v_new)",
    ),
    (
        "float[4,3] b, float[4,3] g, bool[1] r",
        "bool[1] f, float[4,3] b_new",
        "com.microsoft.InPlaceAccumulatorV2(b, g, r) updates (b as b_new)",
    ),
    (
        "float[4,3] b, float[4,3] g",
        "bool[1] f, float[4,3] b_new",
        "com.microsoft.InPlaceAccumulatorV2(b, g) updates (b as b_new)",
    ),
    (
        "float[2,3,5,4] q, float[2,3,6,4] k, float[2,3,6,7] x",
        "float[2,3,5,7] y, float[2,3,5] m, float[2,3,5] s",
        "ai.lmsc.Attention(q, k, x)",
    ),
    (
        "float[2,6,5,4] q, float[2,3,5,4] k, float[2,3,5,7] x, bool[6,1,5] mask",
        "float[2,6,5,7] y, float[2,6,5] m, float[2,6,5] s",
        "ai.lmsc.Attention<is_causal = 1, scale = 1.5>(q, k, x, mask)",
    ),
    (
        "float[2,6,5,4] q, float[2,3,6,4] k, float[2,3,6,7] x, float[2,1,5,6] mask",
        "float[2,6,5,7] y",
        "ai.lmsc.Attention(q, k, x, mask)",
    ),
    (
        "float[2,3,5,7] dy, float[2,3,5,4] q, float[2,3,6,4] k, float[2,3,6,7] x, float[2,3,5,7] y, float[2,3,5] m, float[2,3,5] r",
        "float[2,3,5,4] dq, float[2,3,6,4] dk, float[2,3,6,7] dv",
        "ai.lmsc.AttentionGrad(dy, q, k, x, y, m, r)",
    ),
    (
        "float[2,6,5,7] dy, float[2,6,5,4] q, float[2,3,6,4] k, float[2,3,6,7] x, float[2,6,5,7] y, float[2,6,5] m, float[2,6,5] r, float[6,5,6] mask",
        "float[2,6,5,4] dq, float[2,3,6,4] dk, float[2,3,6,7] dv",
        "ai.lmsc.AttentionGrad<is_causal = 1, scale = 0.3>(dy, q, k, x, y, m, r, mask)",
    ),
    (
        "float[2,9,13,4] x, float[8,2,3,3] w, float[8] b",
        "float[2,5,7,8] y",
        "ai.lmsc.NhwcConv<group = 2, strides = [2, 2], pads = [1, 1, 1, 1]>(x, w, b)",
    ),
    (
        "float[2,5,7,8] dy, float[2,9,13,3] x, float[8,3,3,3] w",
        "float[2,9,13,3] dx, float[8,3,3,3] dw, float[8] db",
        "ai.lmsc.NhwcConvGrad<strides = [2, 2], pads = [1, 1, 1, 1]>(dy, x, w)",
    ),
    ("float[2,11,4] x, float[4,3,3] w", "float[2,23,3] y", "ai.lmsc.NhwcConvTranspose<strides = [2]>(x, w)"),
    (
        "float[1,5,5,6,6] dy, float[1,4,2,3,4] x, float[4,3,2,2,2] w",
        "float[1,4,2,3,4] dx, _, float[6] db",
        "ai.lmsc.NhwcConvTransposeGrad<group = 2, strides = [1, 3, 2]>(dy, x, w)",
    ),
    (
        "float[2,4,6,3] x",
        "float[2,2,3,3] y, int64[2,2,3,3] at",
        "ai.lmsc.NhwcMaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)",
    ),
    (
        "float[1,2,2,1] dy, int64[1,2,2,1] i",
        "float[1,2,2,1] dx",
        "ai.lmsc.NhwcMaxPoolGrad<kernel_shape = [1, 1]>(dy, i)",
    ),
    (
        "float[2,5,6,3] x",
        "float[2,2,3,3] y",
        "ai.lmsc.NhwcAveragePool<kernel_shape = [2, 2], strides = [2, 2]>(x)",
    ),
    (
        "float[2,4,3,3] dy",
        "float[2,7,5,3] dx",
        "ai.lmsc.NhwcAveragePoolGrad<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(dy)",
    ),
    (
        "float[1] r, float[4,3] w, float[4,3] g",
        "float[4,3] w_new",
        "ai.lmsc.SGDOptimizer(r, w, g) updates (w as w_new)",
    ),
    (
        "float[1] r, int64[1] n, float[4] w, float[4] g, float[4] m, float[4] v",
        "float[4] w_new, float[4] m_new, float[4] v_new",
        "ai.lmsc.AdamWOptimizer(r, n, w, g, m, v) updates (w as w_new, m as m_new, v as v_new)",
    ),
    (
        "float[1] r, int64[1] n, float[4] w, float[4] g, float[4] m, float[4] v",
        "float[4] w_new, float[4] m_new, float[4] v_new",
        "ai.lmsc.AdamWOptimizer<adam_mode = 1, weight_decay = 0.1>(r, n, w, g, m, v) updates (w as w_new, m as m_new, v as v_new)",
    ),
    (
        "float[1] r, int64[1] n, float[4] w, float[4] g, float[4] m, float[4] v",
        "float[4] w_new, float[4] m_new, float[4] v_new",
        "ai.lmsc.AdamWOptimizer<correct_bias = 0>(r, n, w, g, m, v) updates (w as w_new, m as m_new, v as v_new)",
    ),
];

/// Values of an input: floats of both signs, or above 0 for variances and rates; labels that differ.
fn values(graph: &Graph, value: ValueId) -> Vec<u8> {
    let ty = graph.value(value).ty.as_tensor().unwrap();
    let count = ty.element_count().unwrap();
    let positive = ["v", "i", "r", "n"].contains(&&*graph.value(value).name);
    let seed = graph.value(value).name.bytes().map(u64::from).sum::<u64>();
    let number = |i: u64| (i + 1).wrapping_mul(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let of = |i: u64| match ty.element {
        ElementType::Float => {
            let share = number(i) as f32 / (1u32 << 24) as f32;
            (if positive { 0.1 + 0.5 * share } else { 2.0 * share - 1.0 }).to_le_bytes().to_vec()
        }
        ElementType::Int64 => (1 + number(i) % 3).to_le_bytes().to_vec(),
        ElementType::Int32 => (1 + number(i) as u32 % 3).to_le_bytes().to_vec(),
        ElementType::Bool => vec![(number(i) % 2) as u8],
        other => panic!("no values of {other}"),
    };
    (0..count).flat_map(of).collect()
}

/// The outputs after a step, by name.
fn run(graph: Graph) -> Vec<(String, ElementType, Vec<u8>)> {
    let mut interpreter = Interpreter::new(graph).unwrap();
    for value in interpreter.inputs() {
        let bytes = values(&interpreter.graph, value);
        interpreter.value_mut(value).copy_from_slice(&bytes);
    }
    interpreter.run(StepContext { number: 1, seed: 0 }, |_, _| {});
    let outputs = interpreter.graph.outputs.iter().map(|&output| {
        let value = interpreter.graph.value(output);
        (value.name.to_string(), value.ty.as_tensor().unwrap().element, interpreter.value(output).to_vec())
    });
    outputs.collect()
}

#[test]
fn every_operator_computes_what_its_expansion_computes() {
    for (inputs, results, call) in CASES {
        let outputs: Vec<&str> = results.split(", ").filter(|result| *result != "_").collect();
        let text = format!(
            "<opset: \"\" = 17, \"com.microsoft\" = 1>\ng ({inputs}) => ({}) {{ [n] {results} = {call} }}",
            outputs.join(", ")
        );
        let graph = lmsc_ir::Graph::parse(&text).unwrap_or_else(|e| panic!("{e} in {text}"));
        lmsc_ir::verify(&graph).unwrap_or_else(|e| panic!("{e} in {text}"));
        let mut expanded = graph.clone();
        let expand = Pipeline::parse("expand-training-ops").unwrap();
        expand.run(&mut expanded, &PassCx::default()).unwrap();
        let standard = |graph: &Graph| graph.order().iter().all(|&id| graph.node(id).op.domain().is_empty());
        assert!(standard(&expanded), "{call}: {}", expanded.to_text());
        assert!(expanded.to_text() != graph.to_text(), "{call}");
        for ((name, element, one), (other_name, _, other)) in run(graph).into_iter().zip(run(expanded)) {
            assert_eq!((&name, one.len()), (&other_name, other.len()), "{call}");
            if element != ElementType::Float {
                assert_eq!(one, other, "{call}: {name}");
                continue;
            }
            let floats = |bytes: &[u8]| -> Vec<f32> {
                bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
            };
            let (one, other) = (floats(&one), floats(&other));
            let largest = one.iter().fold(0.0f32, |m, x| m.max(x.abs()));
            let apart = one.iter().zip(&other).fold(0.0f32, |m, (a, b)| m.max((a - b).abs()));
            assert!(largest > 0.0 && apart <= ALLOWED * largest, "{call}: {name}: {one:?} {other:?}");
        }
    }
}

#[test]
fn expanded_operators_are_written_as_onnx() {
    let model = "testdata/models/tiny_unet2d/training_model.onnx";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("step.onnx");
    let expand = ["lmsc", "opt", model, "-p", "expand-training-ops", "--dim", "batch=2"];
    let output = ["-o", file.to_str().unwrap()];
    let text = opt(&expand);
    assert!(opt(&[&expand[..], &["-o", "-"]].concat()) == text);
    assert_eq!(opt(&[&expand[..], &output].concat()), "");
    // The file says for which sizes it is.
    assert!(opt(&["lmsc", "opt", output[1]]) == text);
    assert!(!text.contains("= com.microsoft."));
}

/// Standard output of the command.
pub(crate) fn opt(words: &[&str]) -> String {
    let Some(CliCommand::Opt(args)) = Cli::try_parse_from(words).unwrap().command else {
        panic!("{words:?}")
    };
    lmsc::commands::opt(&args).unwrap_or_else(|error| panic!("{words:?}: {error}"))
}
