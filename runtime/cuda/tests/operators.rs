//! Operators one by one, where no recorded step covers them: gradients against finite differences and adjoint
//! identities, forward operators against their definition, and the edges of each.

mod support;

use support::{Tensor, dot, float, gradient_check, int64, numbers, run, run_in_place, run_step, truth};

/// Forward operator, its gradient operator `(dY, kept) → dX`, and which value is kept: operand or result.
#[test]
fn elementwise_gradients_are_slopes() {
    let pairs = [
        ("Relu", "ReluGrad", "y"),
        ("Relu", "ReluGrad", "x"),
        ("LeakyRelu<alpha = 0.1>", "LeakyReluGrad<alpha = 0.1>", "y"),
        ("Sigmoid", "SigmoidGrad", "y"),
        ("Tanh", "TanhGrad", "y"),
        ("Sin", "SinGrad", "x"),
        ("com.microsoft.Gelu", "GeluGrad", "x"),
        ("com.microsoft.FastGelu", "FastGeluGrad", "x"),
        ("com.microsoft.QuickGelu", "QuickGeluGrad", "x"),
        ("Softmax<axis = 1>", "SoftmaxGrad_13<axis = 1>", "y"),
        ("Softmax<axis = -1>", "SoftmaxGrad_13<axis = -1>", "y"),
        ("LogSoftmax<axis = 0>", "LogSoftmaxGrad_13<axis = 0>", "y"),
        ("LogSoftmax<axis = -1>", "LogSoftmaxGrad_13<axis = -1>", "y"),
    ];
    for (forward, backward, kept) in pairs {
        let x = float(&[3, 4, 2], numbers(24, 1));
        let f = |operands: &[Tensor]| run("float[3,4,2] y", forward, operands).remove(0);
        let y = f(std::slice::from_ref(&x));
        let dy = float(&[3, 4, 2], numbers(24, 2));
        let second = if kept == "y" { float(&[3, 4, 2], y) } else { x.clone() };
        let dx = run("float[3,4,2] dx", &format!("com.microsoft.{backward}"), &[dy.clone(), second]);
        gradient_check(forward, &[x], &dy.floats(), &f, &[(0, &dx[0])]);
    }
}

#[test]
fn biased_gelus_have_the_gradients_of_their_sums() {
    let (x, bias) = (float(&[3, 4], numbers(12, 1)), float(&[4], numbers(4, 5)));
    let dy = float(&[3, 4], numbers(12, 2));
    for (forward, backward) in [("BiasGelu", "BiasGeluGrad_dX"), ("FastGelu", "BiasFastGeluGrad_dX")] {
        let f = |o: &[Tensor]| run("float[3,4] y", &format!("com.microsoft.{forward}"), o).remove(0);
        let operands = [dy.clone(), x.clone(), bias.clone()];
        let dx = run("float[3,4] dx", &format!("com.microsoft.{backward}"), &operands).remove(0);
        gradient_check(forward, &[x.clone(), bias.clone()], &dy.floats(), &f, &[(0, &dx)]);
    }
}

#[test]
fn quotients_have_gradients_of_both_operands() {
    let (a, b) = (float(&[2, 3], numbers(6, 1)), float(&[3], vec![1.5, -2.0, 0.7]));
    let dy = float(&[2, 3], numbers(6, 2));
    let f = |o: &[Tensor]| run("float[2,3] y", "Div", o).remove(0);
    let both =
        run("float[2,3] da, float[3] db", "com.microsoft.DivGrad", &[dy.clone(), a.clone(), b.clone()]);
    gradient_check("Div", &[a, b], &dy.floats(), &f, &[(0, &both[0]), (1, &both[1])]);
}

/// Channels that are neighbours in memory, as of images with channels last, are summed by slices of rows.
#[test]
fn batch_normalization_of_rows_is_that_of_its_definition() {
    for (rows, channels) in [(1, 3), (3, 5), (300, 8), (700, 4), (1_000, 130), (2_049, 129)] {
        let place = |row: usize, channel: usize| row * channels + channel;
        let at: Vec<f32> = numbers(rows * channels, 1).into_iter().map(|x| 3.0 + x).collect();
        let dy = numbers(rows * channels, 2);
        let scale: Vec<f32> = numbers(channels, 3);
        let dims = [rows as u64, channels as u64];
        let of_channel = |values: Vec<f32>| float(&[channels as u64], values);
        let bias = of_channel(numbers(channels, 4));
        let (mean, variance) = (of_channel(vec![0.5; channels]), of_channel(vec![2.0; channels]));
        let operands = [float(&dims, at.clone()), of_channel(scale.clone()), bias.clone(), mean, variance];
        let c = channels;
        let results =
            format!("float[{rows},{c}] y, float[{c}] rm, float[{c}] rv, float[{c}] sm, float[{c}] si");
        let op = "com.microsoft.BatchNormInternal<training_mode = 1>";
        let y = run(&results, op, &operands);
        let kept = [of_channel(y[3].clone()), of_channel(y[4].clone())];
        let given = [&[float(&dims, dy.clone())], &operands[..2], &kept].concat();
        let results = format!("float[{rows},{c}] dx, float[{c}] ds, float[{c}] db");
        let d = run(&results, "com.microsoft.BatchNormalizationGrad", &given);

        let near = |found: f32, expected: f64, what: &str| {
            let off = (f64::from(found) - expected).abs();
            assert!(off < 2e-5 * expected.abs().max(1.0), "{rows} × {channels}: {what} {found} {expected}");
        };
        let n = rows as f64;
        for channel in 0..channels {
            let sum = |f: &dyn Fn(usize) -> f64| (0..rows).map(|row| f(place(row, channel))).sum::<f64>();
            let mean = sum(&|i| f64::from(at[i])) / n;
            let variance = sum(&|i| (f64::from(at[i]) - mean).powi(2)) / n;
            let inverse = 1.0 / (variance + 1e-5).sqrt();
            let normal = |i: usize| (f64::from(at[i]) - mean) * inverse;
            let of_bias = sum(&|i| f64::from(dy[i]));
            let of_scale = sum(&|i| f64::from(dy[i]) * normal(i));
            near(y[1][channel], 0.9 * 0.5 + 0.1 * mean, "running mean");
            near(y[2][channel], 0.9 * 2.0 + 0.1 * variance, "running variance");
            near(y[3][channel], mean, "mean");
            // Rounding counts as often as a channel is stretched: one row has no spread, and its deviation is ε's alone.
            let stretch = inverse.max(1.0);
            let near_stretched =
                |found: f32, expected, what: &str| near(found / stretch as f32, expected / stretch, what);
            near_stretched(y[4][channel], inverse, "1/σ");
            near(d[1][channel] / n as f32, of_scale / n, "gradient of the scale");
            near(d[2][channel] / n as f32, of_bias / n, "gradient of the bias");
            let scale = f64::from(scale[channel]);
            for i in (0..rows).map(|row| place(row, channel)) {
                near_stretched(y[0][i], normal(i) * scale + f64::from(bias.floats()[channel]), "result");
                let slope = f64::from(dy[i]) - of_bias / n - normal(i) * of_scale / n;
                near_stretched(d[0][i], scale * inverse * slope, "gradient");
            }
        }
    }
}

#[test]
fn normalizations_have_gradients_of_all_operands() {
    let (x, scale, bias) =
        (float(&[3, 5], numbers(15, 1)), float(&[5], numbers(5, 2)), float(&[5], numbers(5, 3)));
    let dy = float(&[3, 5], numbers(15, 4));
    let f = |o: &[Tensor]| run("float[3,5] y, float[3,1] m, float[3,1] s", "LayerNormalization", o).remove(0);
    let operands = [x.clone(), scale.clone(), bias.clone()];
    let kept = run("float[3,5] y, float[3,1] m, float[3,1] s", "LayerNormalization", &operands);
    let [m, s] = [1, 2].map(|i| float(&[3, 1], kept[i].clone()));
    let given = [dy.clone(), x.clone(), scale.clone(), m, s];
    let d = run("float[3,5] dx, float[5] ds, float[5] db", "com.microsoft.LayerNormalizationGrad", &given);
    gradient_check("LayerNormalization", &operands, &dy.floats(), &f, &[(0, &d[0]), (1, &d[1]), (2, &d[2])]);

    let simple = "SimplifiedLayerNormalization";
    let f = |o: &[Tensor]| run("float[3,5] y, float[3,1] s", simple, o).remove(0);
    let operands = [x.clone(), scale.clone()];
    let s = float(&[3, 1], run("float[3,5] y, float[3,1] s", simple, &operands).remove(1));
    let given = [dy.clone(), x.clone(), scale.clone(), s];
    let d = run("float[3,5] dx, float[5] ds", &format!("com.microsoft.{simple}Grad"), &given);
    gradient_check(simple, &operands, &dy.floats(), &f, &[(0, &d[0]), (1, &d[1])]);
}

#[test]
fn statistics_are_written_only_where_they_are_asked_for() {
    let operands = [float(&[20, 3], numbers(60, 1)), float(&[3], vec![1.0; 3]), float(&[3], vec![0.0; 3])];
    let all = run("float[20,3] y, float[20,1] m, float[20,1] s", "LayerNormalization", &operands);
    let last = run("float[20,3] y, _, float[20,1] s", "LayerNormalization", &operands);
    assert_eq!((&all[0], &all[2]), (&last[0], &last[2]));
    let first = run("float[20,3] y, float[20,1] m", "LayerNormalization", &operands);
    assert_eq!(all[1], first[1]);
}

/// Losses with weights, ignored labels, positions behind the classes and every reduction.
#[test]
fn cross_entropy_has_the_gradient_of_its_scores() {
    let scores = float(&[2, 3, 2], numbers(12, 1));
    let labels = int64(&[2, 2], &[0, 2, -1, 1]);
    let weights = float(&[3], vec![0.5, 1.5, 2.0]);
    for (reduction, dims, n) in [("mean", "", 1), ("sum", "", 1), ("none", "2,2", 4)] {
        for weighted in [false, true] {
            let attributes = format!("<reduction = \"{reduction}\", ignore_index = -1>");
            let mut operands = vec![scores.clone(), labels.clone()];
            operands.extend(weighted.then(|| weights.clone()));
            let results = format!("float[{dims}] loss, float[2,3,2] log");
            let op = format!("SoftmaxCrossEntropyLoss{attributes}");
            let f = |o: &[Tensor]| run(&results, &op, o).remove(0);
            let both = run(&results, &op, &operands);
            let without = run(&format!("float[{dims}] loss"), &op, &operands);
            let close = both[0].iter().zip(&without[0]).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(close, "{op}: {both:?} {without:?}");
            let dloss = float(if n == 1 { &[] } else { &[2, 2] }, numbers(n, 3));
            let mut given = vec![dloss.clone(), float(&[2, 3, 2], both[1].clone()), labels.clone()];
            given.extend(weighted.then(|| weights.clone()));
            let op = format!("com.microsoft.SoftmaxCrossEntropyLossGrad{attributes}");
            let dx = run("float[2,3,2] dx", &op, &given).remove(0);
            gradient_check(&op, &operands, &dloss.floats(), &f, &[(0, &dx)]);
        }
    }
}

/// Extents of image, weights and positions, and attributes.
type Convolution = (&'static [u64], &'static [u64], &'static [u64], &'static str);

const CONVOLUTIONS: &[Convolution] = &[
    (&[2, 3, 7], &[4, 3, 3], &[2, 4, 4], "strides = [2], pads = [1, 1]"),
    (&[1, 2, 5, 6], &[3, 2, 3, 3], &[1, 3, 5, 6], "pads = [1, 1, 1, 1]"),
    (&[2, 4, 6, 5], &[6, 2, 3, 2], &[2, 6, 4, 4], "group = 2"),
    (
        &[3, 2, 8, 8],
        &[4, 2, 3, 3],
        &[3, 4, 3, 3],
        "strides = [2, 2], pads = [0, 1, 1, 0], dilations = [1, 2]",
    ),
    (&[2, 2, 4, 3, 5], &[3, 2, 2, 2, 2], &[2, 3, 3, 2, 4], ""),
    (&[2, 2, 4, 4, 4], &[2, 2, 2, 2, 2], &[2, 2, 2, 2, 2], "strides = [2, 2, 2]"),
    (&[2, 5, 9, 7], &[8, 5, 1, 1], &[2, 8, 9, 7], ""),
    (&[2, 5, 9, 7], &[8, 5, 1, 1], &[2, 8, 5, 4], "strides = [2, 2]"),
    (&[20, 2, 6, 6], &[3, 2, 5, 5], &[20, 3, 6, 6], "auto_pad = \"SAME_UPPER\""),
    (&[2, 6, 6, 6], &[6, 1, 3, 3], &[2, 6, 4, 4], "group = 6, auto_pad = \"VALID\""),
    (&[3, 2, 4, 4], &[5, 2, 4, 4], &[3, 5, 1, 1], ""),
    (&[3, 2, 40, 40], &[5, 2, 3, 3], &[3, 5, 40, 40], "pads = [1, 1, 1, 1]"),
];

fn typed(dims: &[u64], name: &str) -> String {
    let dims: Vec<String> = dims.iter().map(u64::to_string).collect();
    format!("float[{}] {name}", dims.join(","))
}

fn random(dims: &[u64], seed: u32) -> Tensor {
    float(dims, numbers(dims.iter().product::<u64>() as usize, seed))
}

/// The convolution is linear in image and weights, so ⟨conv(x, w), p⟩ = ⟨x, dX⟩ = ⟨w, dW⟩ for any p.
#[test]
fn convolution_gradients_are_adjoint() {
    for &(image, weights, positions, attributes) in CONVOLUTIONS {
        let (x, w, p) = (random(image, 1), random(weights, 2), random(positions, 3));
        let bias = random(&weights[..1], 4);
        let op = format!("Conv<{attributes}>").replace("<>", "");
        let y = run(&typed(positions, "y"), &op, &[x.clone(), w.clone()]).remove(0);
        let results =
            format!("{}, {}, {}", typed(image, "dx"), typed(weights, "dw"), typed(&weights[..1], "db"));
        let gradient = format!("com.microsoft.ConvGrad<{attributes}>").replace("<>", "");
        let d = run(&results, &gradient, &[p.clone(), x.clone(), w.clone()]);
        let product = dot(&y, &p.floats());
        for (name, other) in [("dX", dot(&x.floats(), &d[0])), ("dW", dot(&w.floats(), &d[1]))] {
            assert!((product - other).abs() < 1e-3, "{op} {image:?}: {name} {product} {other}");
        }
        // A bias adds one to each of its channel's positions.
        let biased = run(&typed(positions, "y"), &op, &[x.clone(), w.clone(), bias.clone()]).remove(0);
        let (with, without) = (dot(&biased, &p.floats()), product + dot(&bias.floats(), &d[2]));
        assert!((with - without).abs() < 1e-3, "{op} {image:?}: bias {with} {without}");
    }
}

/// A transposed convolution is the adjoint of the convolution with the same weights.
#[test]
fn transposed_convolutions_are_adjoint() {
    for &(image, weights, positions, attributes) in CONVOLUTIONS.iter().filter(|c| !c.3.contains("SAME")) {
        let (x, w, p) = (random(image, 1), random(weights, 2), random(positions, 3));
        let op = |name: &str| format!("{name}<{attributes}>").replace("<>", "");
        let y = run(&typed(positions, "y"), &op("Conv"), &[x.clone(), w.clone()]).remove(0);
        let back = run(&typed(image, "y"), &op("ConvTranspose"), &[p.clone(), w.clone()]).remove(0);
        let (one, other) = (dot(&y, &p.floats()), dot(&x.floats(), &back));
        assert!((one - other).abs() < 1e-3, "{attributes} {image:?}: {one} {other}");
        let results = format!("{}, {}", typed(positions, "dx"), typed(weights, "dw"));
        let d = run(&results, &op("com.microsoft.ConvTransposeGrad"), &[x.clone(), p.clone(), w.clone()]);
        for third in [dot(&p.floats(), &d[0]), dot(&w.floats(), &d[1])] {
            assert!((one - third).abs() < 1e-3, "{attributes} {image:?}: gradient {one} {third}");
        }
    }
}

/// The definition, for two dimensions in groups.
#[test]
fn convolutions_are_those_of_the_definition() {
    let (x, w) = (random(&[2, 4, 5, 6], 1), random(&[6, 2, 3, 2], 2));
    let op = "Conv<group = 2, strides = [2, 1], pads = [1, 0, 1, 1], dilations = [1, 2]>";
    let y = run("float[2,6,3,5] y", op, &[x.clone(), w.clone()]).remove(0);
    let (x, w) = (x.floats(), w.floats());
    for (i, y) in y.iter().enumerate() {
        let (n, o, r, c) = (i / 90, i / 15 % 6, i / 5 % 3, i % 5);
        let mut sum = 0.0;
        for (channel, a, b) in (0..2).flat_map(|k| (0..3).flat_map(move |a| (0..2).map(move |b| (k, a, b)))) {
            let (row, column) = (r * 2 + a, c + 2 * b);
            if (1..=5).contains(&row) && column < 6 {
                let group = o / 3;
                sum += x[((n * 4 + group * 2 + channel) * 5 + row - 1) * 6 + column]
                    * w[((o * 2 + channel) * 3 + a) * 2 + b];
            }
        }
        assert!((y - sum).abs() < 1e-5, "{i}: {y} {sum}");
    }
}

/// Pooling by averages and resizing are linear: their gradients are adjoint.
#[test]
fn linear_operators_have_adjoint_gradients() {
    let pools = [
        ("kernel_shape = [2, 2], strides = [2, 2]", "3,2"),
        ("kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], count_include_pad = 1", "3,3"),
        ("kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]", "3,3"),
        ("kernel_shape = [3, 2], strides = [2, 2], ceil_mode = 1", "3,3"),
    ];
    let x = random(&[2, 3, 6, 5], 1);
    for (attributes, extents) in pools {
        let count: u64 = extents.split(',').map(|n| n.parse::<u64>().unwrap()).product();
        let dims: Vec<u64> =
            [2, 3].into_iter().chain(extents.split(',').map(|n| n.parse().unwrap())).collect();
        let p = random(&dims, 2);
        let y = run(&typed(&dims, "y"), &format!("AveragePool<{attributes}>"), std::slice::from_ref(&x))
            .remove(0);
        let dx =
            run("float[2,3,6,5] dx", &format!("AveragePoolGrad<{attributes}>"), std::slice::from_ref(&p))
                .remove(0);
        let (one, other) = (dot(&y, &p.floats()), dot(&x.floats(), &dx));
        assert!((one - other).abs() < 1e-4 && count > 0, "{attributes}: {one} {other}");
    }
    let x = random(&[2, 1, 4, 3], 1);
    let p = random(&[2, 1, 7, 6], 2);
    let scales = float(&[4], vec![1.0, 1.0, 1.75, 2.0]);
    let empty = float(&[0], vec![]);
    for mode in ["nearest", "linear", "cubic"] {
        for place in ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] {
            let attributes = format!("mode = \"{mode}\", coordinate_transformation_mode = \"{place}\"");
            let forward = [x.clone(), empty.clone(), scales.clone()];
            let y = run("float[2,1,7,6] y", &format!("Resize<{attributes}>"), &forward).remove(0);
            let given = [p.clone(), x.clone(), empty.clone(), scales.clone()];
            let dx = run("float[2,1,4,3] dx", &format!("com.microsoft.ResizeGrad<{attributes}>"), &given)
                .remove(0);
            let (one, other) = (dot(&y, &p.floats()), dot(&x.floats(), &dx));
            assert!((one - other).abs() < 1e-4, "{attributes}: {one} {other}");
        }
    }
}

#[test]
fn resizing_by_two_repeats_or_interpolates() {
    let x = float(&[1, 1, 1, 3], vec![1.0, 2.0, 4.0]);
    let given = [x, float(&[0], vec![]), float(&[4], vec![1.0, 1.0, 1.0, 2.0])];
    let nearest = "Resize<coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\">";
    assert_eq!(run("float[1,1,1,6] y", nearest, &given)[0], [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]);
    assert_eq!(
        run("float[1,1,1,6] y", "Resize<mode = \"linear\">", &given)[0],
        [1.0, 1.25, 1.75, 2.5, 3.5, 4.0]
    );
}

#[test]
fn the_largest_element_of_a_window_gets_its_gradient() {
    let x = float(&[1, 2, 2, 3], vec![1.0, 5.0, 2.0, 0.0, 3.0, 9.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0]);
    let graph = run("float[1,2,1,2] y, int64[1,2,1,2] i", "MaxPool<kernel_shape = [2, 2]>", &[x]);
    assert_eq!(graph[0], [5.0, 9.0, -1.0, -2.0]);
    let indices = int64(&[1, 2, 1, 2], &[1, 5, 6, 7]);
    let dx =
        run("float[1,2,2,3] dx", "MaxPoolGrad", &[float(&[1, 2, 1, 2], vec![1.0, 2.0, 3.0, 4.0]), indices]);
    assert_eq!(dx[0], [0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0]);
}

/// Recurrent layers in every direction, with first states, and the gradients of all of their operands.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn recurrent_layers_have_gradients_of_all_operands() {
    let (t, b, i, h) = (3, 2, 3, 2);
    let variants = [("LSTM", 4, ""), ("GRU", 3, ", linear_before_reset = 1"), ("GRU", 3, "")];
    for (name, gates, extra) in variants {
        for (direction, d) in [("forward", 1), ("reverse", 1), ("bidirectional", 2)] {
            let attributes = format!("<hidden_size = {h}, direction = \"{direction}\"{extra}>");
            let x = random(&[t, b, i], 1);
            let (w, r) = (random(&[d, gates * h, i], 2), random(&[d, gates * h, h], 3));
            let (bias, h0, c0) =
                (random(&[d, 2 * gates * h], 4), random(&[d, b, h], 5), random(&[d, b, h], 6));
            let lstm = name == "LSTM";
            let kept = if lstm {
                format!(
                    "float[{d},{b},{h}] yc, float[{t},{d},{b},{h}] cells, float[{t},{d},{b},{}] gates",
                    gates * h
                )
            } else {
                format!("float[{t},{d},{b},{}] gates", gates * h)
            };
            let results = format!("float[{t},{d},{b},{h}] y, float[{d},{b},{h}] yh, {kept}");
            let mut operands = vec![x, w, r, bias, Tensor::absent(), h0];
            operands.extend(lstm.then_some(c0));
            let op = format!("com.microsoft.{name}Training{attributes}");
            let f = |o: &[Tensor]| {
                run(&results, &op, o).into_iter().take(if lstm { 3 } else { 2 }).flatten().collect()
            };
            let all = run(&results, &op, &operands);
            let outputs: usize = all.iter().take(if lstm { 3 } else { 2 }).map(Vec::len).sum();
            let weights = numbers(outputs, 7);
            let (steps, last) = ((t * d * b * h) as usize, (d * b * h) as usize);
            let dy = float(&[t, d, b, h], weights[..steps].to_vec());
            let dyh = float(&[d, b, h], weights[steps..steps + last].to_vec());
            let y = float(&[t, d, b, h], all[0].clone());
            let gates_kept = float(&[t, d, b, gates * h], all[if lstm { 4 } else { 2 }].clone());
            let o = |k: usize| operands[k].clone();
            let given = if lstm {
                let cells = float(&[t, d, b, h], all[3].clone());
                let dyc = float(&[d, b, h], weights[steps + last..].to_vec());
                vec![o(0), o(1), o(2), Tensor::absent(), o(5), o(6), y, cells, gates_kept, dy, dyh, dyc]
            } else {
                vec![o(0), o(1), o(2), o(3), Tensor::absent(), o(5), y, gates_kept, dy, dyh]
            };
            let wide = gates * h;
            let mut wanted = format!(
                "float[{t},{b},{i}] dx, float[{d},{wide},{i}] dw, float[{d},{wide},{h}] dr, float[{d},{}] db, float[{d},{b},{h}] dh0",
                2 * wide
            );
            if lstm {
                wanted += &format!(", float[{d},{b},{h}] dc0");
            }
            let g = run(&wanted, &format!("com.microsoft.{name}Grad{attributes}"), &given);
            let mut checked = vec![(0, &g[0]), (1, &g[1]), (2, &g[2]), (3, &g[3]), (5, &g[4])];
            checked.extend(lstm.then(|| (6, &g[5])));
            gradient_check(&op, &operands, &weights, &f, &checked);
        }
    }
}

#[test]
fn gathering_and_scattering_take_indices_from_the_end() {
    let data = float(&[3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let last = int64(&[2], &[-1, 0]);
    assert_eq!(run("float[2,2] y", "Gather", &[data.clone(), last.clone()])[0], [5.0, 6.0, 1.0, 2.0]);
    assert_eq!(
        run("float[3,2] y", "Gather<axis = 1>", &[data.clone(), last.clone()])[0],
        [2.0, 1.0, 4.0, 3.0, 6.0, 5.0]
    );
    let shape = int64(&[2], &[3, 2]);
    let twice = int64(&[3], &[1, -2, 0]);
    let dy = float(&[3, 2], vec![1.0, 2.0, 10.0, 20.0, 5.0, 6.0]);
    let summed = run("float[3,2] y", "com.microsoft.GatherGrad", &[shape.clone(), twice, dy])[0].clone();
    assert_eq!(summed, [5.0, 6.0, 11.0, 22.0, 0.0, 0.0]);
    let tuples = int64(&[2, 2], &[0, 1, -1, 0]);
    assert_eq!(run("float[2] y", "GatherND", &[data.clone(), tuples.clone()])[0], [2.0, 5.0]);
    let two = float(&[2], vec![7.0, 8.0]);
    let nd = run("float[3,2] y", "com.microsoft.GatherNDGrad", &[shape.clone(), tuples.clone(), two.clone()]);
    assert_eq!(nd[0], [0.0, 7.0, 0.0, 0.0, 8.0, 0.0]);
    let scattered =
        run("float[3,2] y", "ScatterND<reduction = \"add\">", &[data.clone(), tuples, two.clone()]);
    assert_eq!(scattered[0], [1.0, 9.0, 3.0, 4.0, 13.0, 6.0]);
    let elements = int64(&[1, 2], &[-1, -1]);
    assert_eq!(run("float[1,2] y", "GatherElements", &[data.clone(), elements.clone()])[0], [5.0, 6.0]);
    let ones = float(&[1, 2], vec![7.0, 8.0]);
    let set = run("float[3,2] y", "ScatterElements", &[data.clone(), elements.clone(), ones.clone()]);
    assert_eq!(set[0], [1.0, 2.0, 3.0, 4.0, 7.0, 8.0]);
    let grad = run("float[3,2] y", "com.microsoft.GatherElementsGrad", &[ones, shape, elements]);
    assert_eq!(grad[0], [0.0, 0.0, 0.0, 0.0, 7.0, 8.0]);
    let hot = run("float[2,3] y", "OneHot", &[last, int64(&[], &[3]), float(&[2], vec![0.0, 1.0])]);
    assert_eq!(hot[0], [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn movement_follows_the_definition() {
    let x = float(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let one = |results: &str, op: &str, rest: &[Tensor]| {
        let operands: Vec<Tensor> = std::iter::once(x.clone()).chain(rest.iter().cloned()).collect();
        run(results, op, &operands).remove(0)
    };
    assert_eq!(one("float[3,2] y", "Transpose", &[]), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let list = |list: &[i64]| int64(&[list.len() as u64], list);
    let backward = [list(&[-1]), list(&[-9]), list(&[1]), list(&[-2])];
    assert_eq!(one("float[2,2] y", "Slice", &backward), [3.0, 1.0, 6.0, 4.0]);
    let shape = list(&[2, 3]);
    let dy = float(&[2, 2], vec![1.0, 2.0, 3.0, 4.0]);
    let given: Vec<Tensor> = [dy, shape].into_iter().chain(backward).collect();
    let spread = run("float[2,3] y", "com.microsoft.SliceGrad", &given).remove(0);
    assert_eq!(spread, [2.0, 0.0, 1.0, 4.0, 0.0, 3.0]);
    assert_eq!(one("float[2,6] y", "Tile", &[list(&[1, 2])])[..6], [1.0, 2.0, 3.0, 1.0, 2.0, 3.0]);
    assert_eq!(one("float[2,2,3] y", "Expand", &[list(&[2, 1, 1])])[6..], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let seven = float(&[], vec![7.0]);
    assert_eq!(one("float[2,4] y", "Pad", &[list(&[0, -1, 0, 2]), seven])[..4], [2.0, 3.0, 7.0, 7.0]);
    assert_eq!(
        one("float[2,7] y", "Pad<mode = \"reflect\">", &[list(&[0, 2, 0, 2])])[..7],
        [3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0]
    );
    assert_eq!(
        one("float[2,5] y", "Pad<mode = \"edge\">", &[list(&[0, 1, 0, 1])])[..5],
        [1.0, 1.0, 2.0, 3.0, 3.0]
    );
    assert_eq!(
        one("float[2,5] y", "Pad<mode = \"wrap\">", &[list(&[0, 1, 0, 1])])[..5],
        [3.0, 1.0, 2.0, 3.0, 1.0]
    );
    assert_eq!(one("float[2,3] y", "Trilu", &[]), [1.0, 2.0, 3.0, 0.0, 5.0, 6.0]);
    assert_eq!(one("float[2,3] y", "Trilu<upper = 0>", &[int64(&[], &[1])]), [1.0, 2.0, 0.0, 4.0, 5.0, 6.0]);
    let parts = run("float[2,1] a, float[2,2] b", "Split<axis = -1>", &[x.clone(), list(&[1, 2])]);
    assert_eq!((&parts[0][..], &parts[1][..]), (&[1.0, 4.0][..], &[2.0, 3.0, 5.0, 6.0][..]));
    let joined = [float(&[2, 1], parts[0].clone()), float(&[2, 0], vec![]), float(&[2, 2], parts[1].clone())];
    assert_eq!(run("float[2,3] y", "Concat<axis = 1>", &joined)[0], x.floats());
    assert_eq!(
        one("float[2,3] y", "CumSum<exclusive = 1, reverse = 1>", &[int64(&[], &[1])]),
        [5.0, 3.0, 0.0, 11.0, 6.0, 0.0]
    );
}

#[test]
fn reductions_follow_the_definition() {
    let x = float(&[2, 3], vec![1.0, -2.0, 3.0, 4.0, 5.0, -6.0]);
    let of = |op: &str, results: &str, axes: &[i64]| {
        run(results, op, &[x.clone(), int64(&[axes.len() as u64], axes)]).remove(0)
    };
    assert_eq!(of("ReduceSum", "float[1,3] y", &[0]), [5.0, 3.0, -3.0]);
    assert_eq!(of("ReduceSum<keepdims = 0>", "float[2] y", &[-1]), [2.0, 3.0]);
    assert_eq!(of("ReduceSum", "float[1,1] y", &[]), [5.0]);
    assert_eq!(of("ReduceSum<noop_with_empty_axes = 1>", "float[2,3] y", &[]), x.floats());
    assert_eq!(of("ReduceMean", "float[2,1] y", &[1]), [2.0 / 3.0, 1.0]);
    assert_eq!(of("ReduceMax", "float[1,3] y", &[0]), [4.0, 5.0, 3.0]);
    assert_eq!(of("ReduceMin", "float[2,1] y", &[1]), [-2.0, -6.0]);
    assert_eq!(of("ReduceProd", "float[2,1] y", &[1]), [-6.0, -120.0]);
    assert_eq!(of("ReduceL1", "float[2,1] y", &[1]), [6.0, 15.0]);
    assert_eq!(of("ReduceSumSquare", "float[2,1] y", &[1]), [14.0, 77.0]);
    assert_eq!(of("ReduceL2", "float[2,1] y", &[1]), [14f32.sqrt(), 77f32.sqrt()]);
    let log = of("ReduceLogSumExp", "float[1,3] y", &[0]);
    let exact = |a: f64, b: f64| (a.exp() + b.exp()).ln() as f32;
    assert!(
        log.iter()
            .zip([exact(1.0, 4.0), exact(-2.0, 5.0), exact(3.0, -6.0)])
            .all(|(a, b)| (a - b).abs() < 1e-6)
    );
    let nothing = run("float[2,1] y", "ReduceSum", &[float(&[2, 0], vec![]), int64(&[1], &[1])]);
    assert_eq!(nothing[0], [0.0, 0.0]);
}

#[test]
fn products_of_nothing_are_nothing() {
    let (a, b) = (float(&[2, 0], vec![]), float(&[0, 3], vec![]));
    assert_eq!(run("float[2,3] y", "MatMul", &[a.clone(), b.clone()])[0], [0.0; 6]);
    let c = float(&[3], vec![1.0, 2.0, 3.0]);
    assert_eq!(run("float[2,3] y", "Gemm<beta = 2.0>", &[a, b, c])[0], [2.0, 4.0, 6.0, 2.0, 4.0, 6.0]);
    let empty = float(&[0, 3], vec![]);
    for op in ["Relu", "Softmax"] {
        assert!(run("float[0,3] y", op, std::slice::from_ref(&empty))[0].is_empty());
    }
    assert!(run("float[0,3] y", "Add", &[empty.clone(), float(&[3], vec![0.0; 3])])[0].is_empty());
}

#[test]
fn batches_of_products_broadcast_and_transpose() {
    let (a, b) = (random(&[2, 1, 3, 4], 1), random(&[5, 4, 2], 2));
    let y = run("float[2,5,3,2] y", "MatMul", &[a.clone(), b.clone()]).remove(0);
    let (x, w) = (a.floats(), b.floats());
    for (at, y) in y.iter().enumerate() {
        let (n, g, i, j) = (at / 30, at / 6 % 5, at / 2 % 3, at % 2);
        let sum: f32 = (0..4).map(|k| x[(n * 3 + i) * 4 + k] * w[(g * 4 + k) * 2 + j]).sum();
        assert!((y - sum).abs() < 1e-5, "{at}");
    }
    let vector = random(&[4], 3);
    let row = run("float[2,1,3] y", "MatMul", &[a.clone(), vector.clone()]).remove(0);
    let column = run("float[5,2] y", "MatMul", &[vector, b.clone()]).remove(0);
    assert_eq!((row.len(), column.len()), (6, 10));
    let op = "com.microsoft.FusedMatMul<transA = 1, transB = 1, alpha = 0.5>";
    let (s, t) = (random(&[3, 4, 2], 4), random(&[3, 5, 4], 5));
    let fused = run("float[3,2,5] y", op, &[s.clone(), t.clone()]).remove(0);
    let (s, t) = (s.floats(), t.floats());
    for (at, y) in fused.iter().enumerate() {
        let (n, i, j) = (at / 10, at / 5 % 2, at % 5);
        let sum: f32 = (0..4).map(|k| s[(n * 4 + k) * 2 + i] * t[(n * 5 + j) * 4 + k]).sum();
        assert!((y - 0.5 * sum).abs() < 1e-5, "{at}");
    }
}

#[test]
fn a_node_draws_the_same_in_the_same_step_only() {
    let x = float(&[1000], vec![1.0; 1000]);
    let operands = [x, float(&[], vec![0.25]), truth(&[], &[true])];
    let draw = |step| run_step("float[1000] y, bool[1000] mask", "Dropout", &operands, step).remove(0);
    assert_eq!(draw(3), draw(3));
    assert_ne!(draw(3), draw(4));
    let kept = draw(3).iter().filter(|&&y| y != 0.0).count();
    assert!((700..800).contains(&kept), "{kept} of 1000 are kept");
    assert!(draw(3).iter().all(|&y| y == 0.0 || (y - 4.0 / 3.0).abs() < 1e-6));
    let normal = run("float[10000] y", "RandomNormal<shape = [10000]>", &[]).remove(0);
    let mean: f32 = normal.iter().sum::<f32>() / 1e4;
    let variance: f32 = normal.iter().map(|x| x * x).sum::<f32>() / 1e4;
    assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    let ignored = [float(&[2], vec![3.0, 4.0]), truth(&[2], &[false, true]), float(&[], vec![0.0])];
    assert_eq!(
        run("float[2] y", "com.microsoft.DropoutGrad", &ignored)[0],
        [3.0, 4.0],
        "a ratio of 0 ignores the mask"
    );
}

#[test]
fn elementwise_operators_write_over_any_operand() {
    let (a, b) = (float(&[3], vec![1.0, 2.0, 3.0]), float(&[3], vec![10.0, 20.0, 30.0]));
    for written in [0, 1] {
        let found = run_in_place("Sub", &[a.clone(), b.clone()], written).unwrap();
        assert_eq!(found, [-9.0, -18.0, -27.0], "over operand {written}");
        assert_eq!(run_in_place("Sum", &[a.clone(), b.clone()], written).unwrap(), [11.0, 22.0, 33.0]);
        let choice = [truth(&[3], &[true, false, true]), a.clone(), b.clone()];
        assert_eq!(run_in_place("Where", &choice, written + 1).unwrap(), [1.0, 20.0, 3.0]);
    }
    let error = run_in_place("Softmax", &[a], 0).unwrap_err();
    assert!(error.contains("written over operand 0"), "{error}");
}

#[test]
fn integers_and_truth_values_have_kernels_too() {
    let (a, b) = (int64(&[3], &[7, -7, i64::MAX]), int64(&[3], &[2, 2, 1]));
    assert_eq!(support::run_int64("int64[3] y", "Div", &[a.clone(), b.clone()]), [3, -3, i64::MAX]);
    assert_eq!(support::run_int64("int64[3] y", "Mod", &[a.clone(), b.clone()])[..2], [1, 1]);
    assert_eq!(support::run_int64("int64[3] y", "Add", &[a.clone(), b])[2], i64::MIN, "sums wrap");
    assert_eq!(
        support::run_int64("int64[3] y", "Cast<to = 7>", &[float(&[3], vec![1.9, -1.9, 0.0])]),
        [1, -1, 0]
    );
    let axes = support::run_int64(
        "int64[2] y",
        "ArgMax<axis = 1, keepdims = 0>",
        &[float(&[2, 2], vec![1.0, 2.0, 4.0, 3.0])],
    );
    assert_eq!(axes, [1, 0]);
    let x = float(&[2, 5], vec![3.0, f32::NAN, 1.0, 3.0, 2.0, 0.0, -1.0, 7.0, -1.0, 7.0]);
    for (attributes, expected) in [("", [1, 0, 3, 2, 4, 0]), ("<largest = 0>", [2, 4, 0, 1, 3, 0])] {
        let both = [x.clone(), int64(&[1], &[3])];
        let op = format!("TopK{attributes}");
        let indices = support::run_bytes("float[2,3] y, int64[2,3] i", &op, &both).swap_remove(1);
        let found: Vec<i64> = indices.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect();
        assert_eq!(found, expected, "equal ones by index; NaN counts as larger than all");
    }
    assert_eq!(
        support::run_int64("int64[3] y", "Range", &[int64(&[], &[5]), int64(&[], &[0]), int64(&[], &[-2])]),
        [5, 3, 1]
    );
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let (x, w) = (random(&[5, 16, 20, 20], 1), random(&[24, 16, 3, 3], 2));
    let p = random(&[5, 24, 20, 20], 3);
    let rows = random(&[300, 700], 4);
    let all = || {
        let mut bits = Vec::new();
        let same = "<pads = [1, 1, 1, 1]>";
        bits.extend(run("float[5,24,20,20] y", &format!("Conv{same}"), &[x.clone(), w.clone()]));
        let results = "float[5,16,20,20] dx, float[24,16,3,3] dw, float[24] db";
        let op = format!("com.microsoft.ConvGrad{same}");
        bits.extend(run(results, &op, &[p.clone(), x.clone(), w.clone()]));
        bits.extend(run("float[300,300] y", "Gemm<transB = 1>", &[rows.clone(), rows.clone()]));
        bits.extend(run("float[1,700] y", "ReduceSum", &[rows.clone(), int64(&[1], &[0])]));
        bits.extend(run("float[1,1] y", "ReduceMean", std::slice::from_ref(&rows)));
        bits.extend(run("float[300,700] y", "Softmax", std::slice::from_ref(&rows)));
        bits
    };
    let with = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(all);
    let one = with(1);
    for threads in [2, 3, 7] {
        assert!(one == with(threads), "{threads} threads");
    }
}

#[test]
fn an_operator_without_kernel_is_refused_by_name() {
    let x = float(&[2, 3], vec![0.0; 6]);
    let refused = |results: &str, op: &str, operands: &[Tensor]| support::refusal(results, op, operands);
    let error = refused("float[2,3] y", "Det", std::slice::from_ref(&x));
    assert!(error.contains("no kernel for Det"), "{error}");
    let error = refused("float[2,3] y", "Softmax<axis = 2>", std::slice::from_ref(&x));
    assert!(error.contains("(Softmax): axis 2 is out of range"), "{error}");
    let error = refused("int64[2,3] y", "MatMul", &[int64(&[2, 1], &[1, 2]), int64(&[1, 3], &[1, 2, 3])]);
    assert!(error.contains("operand 0 is int64; this kernel takes float"), "{error}");
    let error = refused("float[2,3] y", "Pad<mode = \"sideways\">", &[x, int64(&[4], &[0; 4])]);
    assert!(error.contains("`sideways`"), "{error}");
}

/// Each operator of which the compiler knows when its results are zero: they are, from operands with a zero where one is enough,
/// or zeros everywhere, and numbers otherwise.
#[test]
fn results_that_are_declared_zero_are_zero() {
    let ms = "com.microsoft";
    let image: &[&[u64]] = &[&[1, 2, 4, 4]];
    let same = || (String::new(), "float[3,4] y".to_owned(), vec![random(&[3, 4], 2)]);
    let two = |dims: [&[u64]; 2]| vec![random(dims[0], 2), random(dims[1], 3)];
    let gradient = |more: Vec<Tensor>| [vec![random(&[3, 4], 2)], more].concat();
    // The operator's attributes, results and operands.
    let case = |domain: &str, name: &str| -> (String, String, Vec<Tensor>) {
        let say = |attributes: &str, results: &str, operands: Vec<Tensor>| {
            (attributes.to_owned(), results.to_owned(), operands)
        };
        let dims = |list: &[i64]| int64(&[list.len() as u64], list);
        match (domain, name) {
            ("", "Mul" | "Add" | "Sub" | "Sum") => say("", "float[3,4] y", two([&[3, 4], &[4]])),
            ("", "Concat") => say("<axis = 0>", "float[6,4] y", two([&[3, 4], &[3, 4]])),
            ("", "MatMul" | "Gemm") | (_, "FusedMatMul") => say("", "float[3,2] y", two([&[3, 4], &[4, 2]])),
            ("", "Conv") => say("", "float[1,3,2,2] y", two([image[0], &[3, 2, 3, 3]])),
            ("", "Relu" | "Neg" | "Identity") => same(),
            ("", "Reshape") => say("", "float[4,3] y", gradient(vec![dims(&[4, 3])])),
            ("", "Flatten") => say("", "float[3,4] y", gradient(Vec::new())),
            ("", "Squeeze") => say("", "float[4] y", vec![random(&[1, 4], 2), dims(&[0])]),
            ("", "Unsqueeze") => say("", "float[1,3,4] y", gradient(vec![dims(&[0])])),
            ("", "Transpose") => say("<perm = [1, 0]>", "float[4,3] y", gradient(Vec::new())),
            ("", "Expand") => say("", "float[2,3,4] y", gradient(vec![dims(&[2, 3, 4])])),
            ("", "ReduceSum") => say("<keepdims = 0>", "float[4] y", gradient(vec![dims(&[0])])),
            ("", "ReduceMean") => say("<axes = [0], keepdims = 0>", "float[4] y", gradient(Vec::new())),
            ("", "MaxPoolGrad") => {
                let dy = float(&[1, 2, 1, 2], numbers(4, 2));
                say("", "float[1,2,2,3] y", vec![dy, int64(&[1, 2, 1, 2], &[1, 5, 6, 7])])
            }
            (_, "Scale") => say("", "float[3,4] y", gradient(vec![float(&[1], vec![0.5])])),
            (_, "BatchNormalizationGrad") => {
                let channels = |seed| random(&[2], seed);
                let operands =
                    vec![random(image[0], 2), random(image[0], 3), channels(4), channels(5), channels(6)];
                say("<epsilon = 1e-5>", "float[1,2,4,4] x, float[2] s, float[2] b", operands)
            }
            (_, "ConvGrad") => {
                let operands = vec![random(&[1, 3, 2, 2], 2), random(image[0], 3), random(&[3, 2, 3, 3], 4)];
                say("", "float[1,2,4,4] x, float[3,2,3,3] w, float[3] b", operands)
            }
            (_, "DropoutGrad") => {
                say("", "float[3,4] y", gradient(vec![truth(&[3, 4], &[true; 12]), float(&[], vec![0.5])]))
            }
            (_, "FastGeluGrad" | "GeluGrad" | "ReluGrad") => {
                say("", "float[3,4] y", gradient(vec![random(&[3, 4], 3)]))
            }
            (_, "LayerNormalizationGrad") => {
                let more = vec![random(&[3, 4], 3), random(&[4], 4), random(&[3, 1], 5), random(&[3, 1], 6)];
                say("", "float[3,4] x, float[4] s, float[4] b", gradient(more))
            }
            other => panic!("no case of {other:?}"),
        }
    };
    for (domain, name, with) in lmsc_ir::ops::vanishing() {
        let (attributes, results, operands) = case(domain, name);
        let op = format!("{}{name}{attributes}", if domain == ms { "com.microsoft." } else { "" });
        let is_zero = |operands: &[Tensor]| {
            run(&results, &op, operands).iter().all(|result| result.iter().all(|&number| number == 0.0))
        };
        assert!(!is_zero(&operands), "{op}: of no zeros");
        let every: Vec<usize> = (0..operands.len()).collect();
        let sets: Vec<Vec<usize>> = match with {
            Some(with) => with.iter().map(|&operand| vec![operand]).collect(),
            None => vec![every],
        };
        for set in sets {
            let mut zeros = operands.clone();
            set.iter().for_each(|&operand| zeros[operand] = zeros[operand].zeros());
            assert!(is_zero(&zeros), "{op}: {set:?}");
            let of: Vec<Option<bool>> = (0..operands.len()).map(|i| Some(set.contains(&i))).collect();
            assert!(lmsc_ir::ops::vanishes(&lmsc_ir::Op::new(domain, name), &of), "{op}: {set:?}");
        }
    }
}

/// Where remainders have signs: ONNX's reference on the same numbers.
#[test]
fn remainders_have_the_sign_of_the_divisor_or_of_the_dividend() {
    const INF: f32 = f32::INFINITY;
    let a = float(&[8], vec![-3.0, 3.0, -1.0, 1.0, 0.0, -0.0, 1.0, 5.5]);
    let b = float(&[8], vec![INF, INF, -INF, -INF, -2.0, 2.0, 0.0, -2.0]);
    let bits = |op: &str| -> Vec<String> {
        run("float[8] y", op, &[a.clone(), b.clone()])[0].iter().map(|x| format!("{x:?}")).collect()
    };
    assert_eq!(bits("Mod"), ["inf", "3.0", "-1.0", "-inf", "-0.0", "0.0", "NaN", "-0.5"]);
    assert_eq!(bits("Mod<fmod = 1>"), ["-3.0", "3.0", "-1.0", "1.0", "0.0", "-0.0", "NaN", "1.5"]);
    let (a, b) = (int64(&[4], &[i64::MAX, i64::MIN, -7, 7]), int64(&[4], &[10, -1, 3, -3]));
    assert_eq!(support::run_int64("int64[4] y", "Mod", &[a.clone(), b.clone()]), [7, 0, 2, -2]);
    assert_eq!(support::run_int64("int64[4] y", "Mod<fmod = 1>", &[a, b]), [7, 0, -1, 1]);
}

#[test]
fn integers_of_64_bits_keep_their_digits() {
    let (base, exponent) = (int64(&[3], &[3, -3, 2]), int64(&[3], &[39, 39, 62]));
    let power = 4_052_555_153_018_976_267;
    assert_eq!(support::run_int64("int64[3] y", "Pow", &[base, exponent]), [power, -power, 1 << 62]);
    let large = int64(&[2], &[i64::MAX, i64::MIN]);
    let bounds = [int64(&[], &[-(1 << 50)]), int64(&[], &[(1 << 50) + 1])];
    let given = [large, bounds[0].clone(), bounds[1].clone()];
    assert_eq!(support::run_int64("int64[2] y", "Clip", &given), [(1 << 50) + 1, -(1 << 50)]);
}

/// ONNX puts one element more than windows reach behind them, and has no place for more of them.
#[test]
fn a_transposed_convolution_has_the_extents_that_it_is_asked_for() {
    let (x, w) = (float(&[1, 1, 3], vec![1.0, 2.0, 3.0]), float(&[1, 1, 3], vec![1.0, 2.0, 3.0]));
    let transposed = |extent: u64, more: &str| {
        let op = format!("ConvTranspose<strides = [2], output_shape = [{extent}]{more}>");
        run(&format!("float[1,1,{extent}] y"), &op, &[x.clone(), w.clone()]).remove(0)
    };
    let full = [1.0, 2.0, 5.0, 4.0, 9.0, 6.0, 9.0, 0.0];
    assert_eq!(transposed(8, ""), full);
    assert_eq!(transposed(7, ""), full[..7]);
    assert_eq!(transposed(6, ""), full[1..7]);
    assert_eq!(transposed(6, ", auto_pad = \"VALID\""), full[1..7]);
    assert_eq!(transposed(6, ", auto_pad = \"SAME_UPPER\""), full[..6]);
    let op = "ConvTranspose<strides = [2], output_shape = [9]>";
    let refusal = support::refusal("float[1,1,9] y", op, &[x, w]);
    assert!(refusal.contains("2 elements more along spatial axis 0 than the windows reach"), "{refusal}");
}

#[test]
fn resizing_goes_by_one_scale_where_the_aspect_is_kept() {
    let x = float(&[1, 1, 2, 4], (0..8).map(|i| i as f32).collect());
    let attributes = "mode = \"linear\", coordinate_transformation_mode = \"asymmetric\", axes = [2, 3]";
    let by_sizes = |sizes: &[i64], policy: &str, results: &str| {
        let op = format!("Resize<{attributes}, keep_aspect_ratio_policy = \"{policy}\">");
        run(results, &op, &[x.clone(), Tensor::absent(), Tensor::absent(), int64(&[2], sizes)]).remove(0)
    };
    let scales = [x.clone(), Tensor::absent(), float(&[2], vec![1.75, 1.75])];
    let expected = run("float[1,1,4,7] y", &format!("Resize<{attributes}>"), &scales).remove(0);
    assert_eq!(by_sizes(&[5, 7], "not_larger", "float[1,1,4,7] y"), expected);
    let scales = [x.clone(), Tensor::absent(), float(&[2], vec![2.5, 2.5])];
    let expected = run("float[1,1,5,10] y", &format!("Resize<{attributes}>"), &scales).remove(0);
    assert_eq!(by_sizes(&[5, 7], "not_smaller", "float[1,1,5,10] y"), expected);
}

#[test]
fn resizing_knows_what_lies_outside_and_what_versions_round() {
    let x = float(&[1, 1, 1, 4], vec![1.0, 2.0, 3.0, 4.0]);
    let scaled = |op: &str, scale: f32, extent: u64| {
        let scales = float(&[4], vec![1.0, 1.0, 1.0, scale]);
        let given = if op.starts_with("Upsample") {
            vec![x.clone(), scales]
        } else {
            vec![x.clone(), Tensor::absent(), scales]
        };
        run(&format!("float[1,1,1,{extent}] y"), op, &given).remove(0)
    };
    // Leaving elements out, the first versions took the one behind: of places 0 and 1.67 those of 0 and 2.
    assert_eq!(scaled("Upsample<mode = \"nearest\">", 0.6, 2), [1.0, 3.0]);
    assert_eq!(scaled("Upsample<mode = \"nearest\">", 1.5, 6), [1.0, 1.0, 2.0, 3.0, 3.0, 4.0]);
    let cubic = scaled("Resize<mode = \"cubic\", exclude_outside = 1>", 2.0, 8);
    // At 0.25 - 0.5 = -0.25 there are weights for -2 to 1, of which those of 0 and 1 are left.
    let [near, far] = [0.878_906_25f32, -0.105_468_75];
    assert!((cubic[0] - (near + 2.0 * far) / (near + far)).abs() < 1e-6, "{cubic:?}");
    let given = [x.clone(), Tensor::absent(), float(&[4], vec![1.0, 1.0, 1.0, 0.6])];
    let op = "Resize<mode = \"linear\", coordinate_transformation_mode = \"align_corners\">";
    let refusal = support::refusal("float[1,1,1,2] y", op, &given);
    assert!(refusal.contains("makes no whole number of 4 elements; give `sizes`"), "{refusal}");
}

#[test]
fn automatic_padding_of_pools_with_gaps_is_refused() {
    for attributes in ["dilations = [2]", "strides = [3]"] {
        let kernel = if attributes.starts_with('s') { 1 } else { 2 };
        let op = format!("MaxPool<kernel_shape = [{kernel}], auto_pad = \"SAME_UPPER\", {attributes}>");
        let extent = if kernel == 1 { 2 } else { 6 };
        let x = float(&[1, 1, 6], numbers(6, 1));
        let refusal = support::refusal(&format!("float[1,1,{extent}] y"), &op, &[x]);
        assert!(refusal.contains("give `pads`"), "{refusal}");
    }
}

/// Two heads that share one of the keys, of which one is past, computed by the definition.
#[test]
fn attention_follows_the_definition() {
    let ones = float(&[1, 2, 3, 4], vec![1.0; 24]);
    assert_eq!(run("float[1,2,3,4] y", "Attention", &[ones.clone(), ones.clone(), ones])[0], [1.0; 24]);

    let (q, k, v) = (random(&[1, 2, 3, 4], 1), random(&[1, 1, 2, 4], 2), random(&[1, 1, 2, 2], 3));
    let (past_k, past_v) = (random(&[1, 1, 1, 4], 4), random(&[1, 1, 1, 2], 5));
    let mask = float(&[3, 3], vec![0.5, 0.0, 0.0, 0.0, -0.5, 0.0, f32::NEG_INFINITY, 0.0, 1.0]);
    let results = "float[1,2,3,2] y, float[1,1,3,4] keys, float[1,1,3,2] values, float[1,2,3,3] weights";
    let op = "Attention<is_causal = 1, qk_matmul_output_mode = 3, softcap = 2.0>";
    let operands = [q.clone(), k.clone(), v.clone(), mask.clone(), past_k.clone(), past_v.clone()];
    let found = run(results, op, &operands);
    let joined = |past: &Tensor, new: &Tensor| [past.floats(), new.floats()].concat();
    let (keys, values) = (joined(&past_k, &k), joined(&past_v, &v));
    assert_eq!((&found[1], &found[2]), (&keys, &values));
    let mask = mask.floats();
    for (row, query) in q.floats().chunks(4).enumerate() {
        let score = |key: usize| {
            let product = dot(query, &keys[4 * key..][..4]) / 2.0;
            // The first key came before the first query.
            let counts = key <= row % 3 + 1;
            let bias = if counts { f64::from(mask[row % 3 * 3 + key]) } else { f64::NEG_INFINITY };
            (2.0 * (product / 2.0).tanh() + bias).exp()
        };
        let total: f64 = (0..3).map(score).sum();
        for key in 0..3 {
            assert!((f64::from(found[3][3 * row + key]) - score(key) / total).abs() < 1e-5, "row {row}");
        }
        for column in 0..2 {
            let sum: f64 = (0..3).map(|key| score(key) / total * f64::from(values[2 * key + column])).sum();
            assert!((f64::from(found[0][2 * row + column]) - sum).abs() < 1e-5, "row {row}");
        }
    }
}

#[test]
fn a_query_without_keys_gives_nothing() {
    let (q, kv) = (random(&[1, 1, 2, 2], 1), random(&[1, 1, 2, 2], 2));
    let mask = truth(&[2, 2], &[false, false, true, false]);
    let found = run("float[1,1,2,2] y", "Attention", &[q, kv.clone(), kv.clone(), mask]);
    assert_eq!(found[0], [0.0, 0.0, kv.floats()[0], kv.floats()[1]]);
}

#[test]
fn masks_of_the_first_dropouts_are_of_the_type_of_their_data() {
    let x = float(&[3], vec![1.0, 2.0, 3.0]);
    let found = run("float[3] y, float[3] mask", "Dropout<ratio = 0.5>", &[x]);
    assert_eq!(found, [vec![1.0, 2.0, 3.0], vec![1.0; 3]]);
}

#[test]
fn the_standards_normalization_by_the_root_of_squares_is_the_other_one() {
    let given = [random(&[2, 3, 4], 1), random(&[3, 4], 2)];
    let by = |name: &str| run("float[2,3,4] y", &format!("{name}<axis = 1, epsilon = 0.1>"), &given);
    assert_eq!(by("RMSNormalization"), by("SimplifiedLayerNormalization"));
}
