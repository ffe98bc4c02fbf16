//! Each rule against an example computed by hand, and the use of profiles.

use lmsc_ir::{Bytes, Graph};

use super::kernel::Kernel;
use super::*;

/// The graph of one node, with inputs of these names and types.
fn graph(inputs: &str, node: &str) -> Graph {
    Graph::parse(&format!("g ({inputs}) => () {{ [n] {node} }}")).unwrap_or_else(|e| panic!("{node}: {e}"))
}

/// The cost by the operator's row of the table.
fn cost(inputs: &str, node: &str) -> rules::Cost {
    let graph = graph(inputs, node);
    let modelled = model(&graph, graph.node(graph.order()[0]));
    assert!(!modelled.guessed, "{node}");
    modelled.cost
}

/// Operations, bytes and launches of each kernel.
fn kernels(inputs: &str, node: &str) -> Vec<(u64, u64, u64)> {
    let facts = |kernel: &Kernel| (kernel.flops, kernel.bytes, kernel.times);
    cost(inputs, node).kernels.iter().map(facts).collect()
}

/// Microseconds on 15.7 TFLOP/s, 900 GB/s and 5 µs to start.
fn micros(inputs: &str, node: &str) -> f64 {
    let graph = graph(inputs, node);
    let costs = Costs::of(&graph, Target::built_in("v100-nvlink2").unwrap(), None);
    costs.nanos(graph.order()[0]) as f64 / 1e3
}

#[test]
fn elementwise_operators_move_operands_and_results_once() {
    assert_eq!(kernels("float[10,100] x", "float[10,100] y = Relu(x)"), [(1000, 8000, 1)]);
    assert_eq!(kernels("float16[10,100] x", "float16[10,100] y = Relu(x)"), [(1000, 4000, 1)]);
    let add = kernels("float[10,100] a, float[100] b", "float[10,100] y = Add(a, b)");
    assert_eq!(add, [(1000, 4000 + 400 + 4000, 1)]);
    let gradient = kernels("float[100] dy, float[100] x", "float[100] dx = com.microsoft.GeluGrad(dy, x)");
    assert_eq!(gradient, [(1000, 1200, 1)]);
    // The mask has a byte for each element.
    assert_eq!(kernels("float[100] x", "float[100] y, bool[100] m = Dropout(x)"), [(1000, 900, 1)]);
    assert_eq!(kernels("float[10,100] x", "float[10] y = ReduceSum(x)"), [(1000, 4040, 1)]);
}

#[test]
fn movement_touches_what_it_needs() {
    assert_eq!(kernels("float[64,64] x", "float[64,64] y = Transpose(x)"), [(0, 2 * 16384, 1)]);
    let slice = kernels("float[1000,8] x, int64[1] s, int64[1] e", "float[10,8] y = Slice(x, s, e)");
    assert_eq!(slice, [(0, 2 * 320, 1)], "not all of x");
    let gather = kernels("float[50000,8] w, int64[4] i", "float[4,8] y = Gather(w, i)");
    assert_eq!(gather, [(0, 2 * 128 + 32, 1)], "not all of the table");
    let gradient = "float[50,8] dw = com.microsoft.GatherGrad(s, i, dy)";
    // Zeros; then each row of dY is read, its sum is read and written.
    let expected = [(0, 1600, 1), (0, 3 * 128 + 32, 1)];
    assert_eq!(kernels("int64[2] s, int64[4] i, float[4,8] dy", gradient), expected);
    let scatter = "float[50,8] y = ScatterND<reduction = \"add\">(x, i, u)";
    assert_eq!(
        kernels("float[50,8] x, int64[4,1] i, float[4,8] u", scatter),
        [(0, 3200, 1), (0, 3 * 128 + 32, 1)]
    );
}

#[test]
fn a_convolution_is_a_product() {
    let inputs = "float[2,3,8,8] x, float[4,3,3,3] w";
    // 2·4·6·6 results of 27 multiply-adds each.
    assert_eq!(kernels(inputs, "float[2,4,6,6] y = Conv(x, w)"), [(2 * 288 * 27, 4 * (384 + 108 + 288), 1)]);
    // Two groups: each result sums over two of four channels.
    let grouped = "float[1,8,4,4] y = Conv<group = 2>(x, w)";
    assert_eq!(
        kernels("float[1,4,4,4] x, float[8,2,1,1] w", grouped),
        [(2 * 128 * 2, 4 * (64 + 16 + 128), 1)]
    );
    // Each of 36 inputs adds to windows of 2·2 in two channels.
    let transposed = "float[1,2,6,6] y = ConvTranspose<strides = [2, 2]>(x, w)";
    assert_eq!(
        kernels("float[1,4,3,3] x, float[4,2,2,2] w", transposed),
        [(2 * 36 * 8, 4 * (36 + 32 + 72), 1)]
    );
    // Three dimensions.
    let volume = "float[1,2,2,2,2] y = Conv(x, w)";
    assert_eq!(
        kernels("float[1,1,4,4,4] x, float[2,1,3,3,3] w", volume),
        [(2 * 16 * 27, 4 * (64 + 54 + 16), 1)]
    );
}

#[test]
fn a_convolutions_gradients_are_one_kernel_each() {
    let inputs = "float[2,4,6,6] dy, float[2,3,8,8] x, float[4,3,3,3] w";
    let flops = 2 * 288 * 27;
    let dx = (flops, 4 * (288 + 108 + 384), 1);
    let dw = (flops, 4 * (288 + 384 + 108), 1);
    let db = (288, 4 * (288 + 4), 1);
    let all = "float[2,3,8,8] dx, float[4,3,3,3] dw, float[4] db = com.microsoft.ConvGrad(dy, x, w)";
    assert_eq!(kernels(inputs, all), [dx, dw, db]);
    let first = "_, float[4,3,3,3] dw = com.microsoft.ConvGrad(dy, x, w)";
    assert_eq!(kernels(inputs, first), [dw], "nobody asks for the gradient of the images");
    let transposed = "float[1,4,3,3] dx, float[4,2,2,2] dw = com.microsoft.ConvTransposeGrad(dy, x, w)";
    assert_eq!(
        kernels("float[1,2,6,6] dy, float[1,4,3,3] x, float[4,2,2,2] w", transposed),
        [(576, 4 * (72 + 32 + 36), 1), (576, 4 * (72 + 36 + 32), 1)]
    );
}

#[test]
fn windows_of_more_than_one_element_need_workspace() {
    let of = |inputs, node| cost(inputs, node).workspace;
    let windowed = of("float[2,3,8,8] x, float[4,3,3,3] w", "float[2,4,6,6] y = Conv(x, w)");
    assert_eq!(windowed, 4 * 384 / 4, "a quarter of x, the larger");
    let gradient = "_, float[4,3,3,3] dw = com.microsoft.ConvGrad(dy, x, w)";
    assert_eq!(of("float[2,4,6,6] dy, float[2,3,8,8] x, float[4,3,3,3] w", gradient), windowed);
    assert_eq!(of("float[2,3,8,8] x, float[4,3,1,1] w", "float[2,4,8,8] y = Conv(x, w)"), 0);
    assert_eq!(of("float[8] x", "float[8] y = Relu(x)"), 0);
}

/// Single kernels of ResNet-50 at a batch of 64, as in another model of the same device: shares of 0.70, 0.55 and 0.25 of
/// 15.7 TFLOP/s, a twentieth and a tenth more for gradients, 0.8 of 900 GB/s, 5 µs.
#[test]
fn kernels_of_resnet50_take_as_long_as_in_an_independent_model() {
    let near = |found: f64, expected: f64| {
        assert!((found / expected - 1.0).abs() < 0.005, "{found} µs, not {expected}");
    };
    let image = "float[64,64,56,56]";
    let windowed =
        |result: &str| micros(&format!("{image} x, float[64,64,3,3] w"), &format!("{image} y = {result}"));
    near(windowed("Conv(x, w)"), 1351.45);
    let dy = |node: &str| micros(&format!("{image} dy, {image} x, float[64,64,3,3] w"), node);
    near(dy(&format!("{image} dx = com.microsoft.ConvGrad(dy, x, w)")), 1418.77);
    near(dy("_, float[64,64,3,3] dw = com.microsoft.ConvGrad(dy, x, w)"), 1486.1);
    let pointwise = "float[64,256,56,56] y = Conv(x, w)";
    near(micros(&format!("{image} x, float[256,64,1,1] w"), pointwise), 766.63);
    let first = "float[64,64,112,112] y = Conv(x, w)";
    near(micros("float[64,3,224,224] x, float[64,3,7,7] w", first), 3853.61);

    let large = "float[64,256,56,56]";
    near(micros(&format!("{large} x"), &format!("{large} y = Relu(x)")), 575.89);
    near(micros(&format!("{large} a, {large} b"), &format!("{large} y = Add(a, b)")), 861.34);
    let channels = "float[256] s, float[256] b, float[256] m, float[256] v";
    let normalized = format!("{large} y, _, _, float[256] sm, float[256] sv");
    near(
        micros(
            &format!("{large} x, {channels}"),
            &format!("{normalized} = com.microsoft.BatchNormInternal(x, s, b, m, v)"),
        ),
        861.34,
    );
    near(
        micros(
            &format!("{large} dy, {large} x, float[256] s, float[256] m, float[256] v"),
            &format!(
                "{large} dx, float[256] ds, float[256] db = com.microsoft.BatchNormalizationGrad(dy, x, s, m, v)"
            ),
        ),
        1432.23,
    );
}

#[test]
fn products_count_two_operations_for_each_multiply_add() {
    let gemm = "float[2,5] y = Gemm<transB = 1>(a, b, c)";
    assert_eq!(
        kernels("float[2,3] a, float[5,3] b, float[5] c", gemm),
        [(2 * 2 * 3 * 5, 4 * (6 + 15 + 5 + 10), 1)]
    );
    let gemm = "float[2,5] y = Gemm<transA = 1>(a, b)";
    assert_eq!(kernels("float[3,2] a, float[3,5] b", gemm)[0].0, 60);
    let batched = "float[7,2,5] y = MatMul(a, b)";
    assert_eq!(kernels("float[7,2,3] a, float[7,3,5] b", batched)[0].0, 7 * 60);
    let rows = "float[7,2,5] y = MatMul(a, b)";
    assert_eq!(kernels("float[7,2,3] a, float[3,5] b", rows)[0].0, 7 * 60);
    let fused = "float[7,2,5] y = com.microsoft.FusedMatMul<transA = 1, transB = 1>(a, b)";
    assert_eq!(kernels("float[7,3,2] a, float[7,5,3] b", fused)[0].0, 7 * 60);
    let across = "float[7,2,5] y = com.microsoft.FusedMatMul<transA = 1, transBatchA = 1>(a, b)";
    assert_eq!(kernels("float[3,7,2] a, float[7,3,5] b", across)[0].0, 7 * 60);
    assert_eq!(kernels("float[3] a, float[3] b", "float[] y = MatMul(a, b)")[0].0, 6);
    let contraction = "float[2,4,5,6] y = Einsum<equation = \"bhqd, bhkd -> bhqk\">(q, k)";
    assert_eq!(kernels("float[2,4,5,8] q, float[2,4,6,8] k", contraction)[0].0, 2 * 8 * 5 * 6 * 8);
    // Two products of 8 · (5 × 8) with (8 × 6) and (5 × 6) with (6 × 8).
    let attention = "float[2,4,5,8] y = Attention(q, k, v)";
    assert_eq!(
        kernels("float[2,4,5,8] q, float[2,4,6,8] k, float[2,4,6,8] v", attention)[0].0,
        2 * (2 * 8 * 5 * 6 * 8)
    );
    let operands = "float[2,4,5,8] q, float[2,2,6,8] k, float[2,2,6,3] v";
    let tiled = "float[2,4,5,3] y = ai.lmsc.Attention(q, k, v)";
    assert_eq!(kernels(operands, tiled)[0].0, 2 * 8 * 5 * 6 * (8 + 3));
    // Queries see 1 to 5 of 6 keys.
    let causal = "float[2,4,5,3] y = ai.lmsc.Attention<is_causal = 1>(q, k, v)";
    assert_eq!(kernels(operands, causal)[0].0, 2 * 8 * (1 + 2 + 3 + 4 + 5) * (8 + 3));
    let rest = "float[2,4,5,3] dy, float[2,4,5,3] y, float[2,4,5] m, float[2,4,5] s";
    let gradient = "float[2,4,5,8] dq = ai.lmsc.AttentionGrad(dy, q, k, v, y, m, s)";
    assert_eq!(kernels(&format!("{operands}, {rest}"), gradient)[0].0, 2 * 8 * 5 * 6 * (4 * 8 + 3 * 3));
}

#[test]
fn channels_last_cost_what_channels_first_cost() {
    let gradient = |op: &str, dy: &str, x: &str| {
        let node =
            format!("float[{x}] dx, float[8,3,3,3] dw, float[8] db = {op}<pads = [1, 1, 1, 1]>(dy, x, w)");
        kernels(&format!("float[{dy}] dy, float[{x}] x, float[8,3,3,3] w"), &node)
    };
    let first = gradient("com.microsoft.ConvGrad", "2,8,5,7", "2,3,5,7");
    assert_eq!(first, gradient("ai.lmsc.NhwcConvGrad", "2,5,7,8", "2,5,7,3"));
    let pool = |op: &str, x: &str, y: &str| {
        let node = format!("float[{y}] y, int64[{y}] at = {op}<kernel_shape = [2, 2], strides = [2, 2]>(x)");
        kernels(&format!("float[{x}] x"), &node)
    };
    assert_eq!(pool("MaxPool", "2,3,4,6", "2,3,2,3"), pool("ai.lmsc.NhwcMaxPool", "2,4,6,3", "2,2,3,3"));
}

#[test]
fn weights_on_the_right_make_one_large_product() {
    let form = |inputs, node| match cost(inputs, node).kernels[0].form {
        kernel::Form::Product(product) => (product.batch, product.m, product.n, product.k, product.share),
        form => panic!("{form:?}"),
    };
    let node = "float[8,128,64] y = MatMul(a, b)";
    assert_eq!(form("float[8,128,32] a, float[32,64] b", node), (1, 1024, 64, 32, 750));
    assert_eq!(form("float[8,128,32] a, float[8,32,64] b", node), (8, 128, 64, 32, 600));
    // The gradient of the weights sums over all positions of all images.
    let gradient = "_, float[32,16,3,3] dw = com.microsoft.ConvGrad(dy, x, w)";
    let inputs = "float[2,32,8,8] dy, float[2,16,8,8] x, float[32,16,3,3] w";
    assert_eq!(form(inputs, gradient), (1, 144, 32, 128, 636));
    // With stride 2, a quarter of the window reaches each element of the input.
    let gradient = "float[2,16,8,8] dx = com.microsoft.ConvGrad(dy, x, w)";
    let inputs = "float[2,32,4,4] dy, float[2,16,8,8] x, float[32,16,2,2] w";
    assert_eq!(form(inputs, gradient), (1, 128, 16, 32, 666));
}

#[test]
fn a_row_is_read_again_only_where_the_chip_cannot_keep_it() {
    let softmax = |row: u64| {
        let ty = format!("float[4,{row}]");
        kernels(&format!("{ty} x"), &format!("{ty} y = Softmax(x)"))[0].1 / (16 * row)
    };
    assert_eq!((softmax(8 << 10), softmax((8 << 10) + 1)), (2, 3));
    let gradient = "float[4,100] dx = com.microsoft.SoftmaxGrad_13<axis = -1>(dy, y)";
    assert_eq!(kernels("float[4,100] dy, float[4,100] y", gradient), [(1600, 4800, 1)]);
    let layer = "float[4,100] y, float[4,1] m, float[4,1] v = LayerNormalization(x, s, b)";
    let moved = 4 * (400 + 100 + 100 + 400 + 4 + 4);
    assert_eq!(kernels("float[4,100] x, float[100] s, float[100] b", layer), [(3200, moved, 1)]);
    let gradient = "float[4,100] dx, float[100] ds, float[100] db = \
                    com.microsoft.LayerNormalizationGrad(dy, x, s, m, v)";
    assert_eq!(
        kernels("float[4,100] dy, float[4,100] x, float[100] s, float[4,1] m, float[4,1] v", gradient),
        [(4800, moved + 4 * (400 + 100), 1), (1600, 4 * 800, 1)]
    );
    // 50000 classes: the scores are read twice.
    let loss = "float[] loss, float[2,50000] p = SoftmaxCrossEntropyLoss(x, l)";
    let inputs = "float[2,50000] x, int64[2] l";
    assert_eq!(kernels(inputs, loss), [(2_000_000, 3 * 400_000 + 16 + 4, 1)]);
}

#[test]
fn pooling_has_an_operation_for_each_element_of_a_window() {
    let pool = "float[1,2,4,4] y, int64[1,2,4,4] i = MaxPool<kernel_shape = [2, 2]>(x)";
    assert_eq!(kernels("float[1,2,8,8] x", pool), [(32 * 4, 4 * 128 + 12 * 32, 1)]);
    let gradient = "float[1,2,8,8] dx = MaxPoolGrad(dy, i)";
    assert_eq!(
        kernels("float[1,2,4,4] dy, int64[1,2,4,4] i", gradient),
        [(0, 512, 1), (0, 3 * 128 + 256, 1)]
    );
    let gradient = "float[1,2,8,8] dx = AveragePoolGrad<kernel_shape = [2, 2]>(dy)";
    assert_eq!(kernels("float[1,2,4,4] dy", gradient), [(128, 128 + 512, 1)]);
}

#[test]
fn recurrent_layers_run_a_kernel_for_each_step() {
    // T = 5, N = 2, I = 3, H = 4, four gates.
    let inputs = "float[5,2,3] x, float[1,16,3] w, float[1,16,4] r, float[1,32] b";
    let input = (2 * 10 * 16 * 3, 4 * (30 + 48 + 160), 1);
    let step = (2 * 2 * 16 * 4, 4 * (8 + 64 + 32), 5);
    let gates = (2 * 16 * 10, 4 * 2 * (16 + 12), 5);
    assert_eq!(kernels(inputs, "float[5,1,2,4] y = LSTM<hidden_size = 4>(x, w, r, b)"), [input, step, gates]);
    let gradient = "float[5,2,3] dx, float[1,16,3] dw, float[1,16,4] dr = com.microsoft.LSTMGrad(x, w, r)";
    let (dx, dw) = ((960, 4 * (160 + 48 + 30), 1), (960, 4 * (160 + 30 + 48), 1));
    let dr = (2 * 16 * 4 * 10, 4 * (160 + 40 + 64), 1);
    let step = (256, 4 * (32 + 64 + 8), 5);
    assert_eq!(
        kernels("float[5,2,3] x, float[1,16,3] w, float[1,16,4] r", gradient),
        [gates, step, dx, dw, dr]
    );
}

#[test]
fn optimizers_move_parameters_gradients_and_moments() {
    let adamw = "float[100] w2, float[100] m2, float[100] v2 = ai.lmsc.AdamWOptimizer(lr, t, w, g, m, v) \
                 updates (w as w2, m as m2, v as v2)";
    let inputs = "float[1] lr, int64[1] t, float[100] w, float[100] g, float[100] m, float[100] v";
    assert_eq!(kernels(inputs, adamw), [(1400, 7 * 400, 1)]);
    let sgd = "float[100] w2 = ai.lmsc.SGDOptimizer(lr, w, g) updates (w as w2)";
    assert_eq!(kernels("float[1] lr, float[100] w, float[100] g", sgd), [(200, 3 * 400, 1)]);
    let sequences = "bool[1] f = com.microsoft.SGDOptimizerV2(lr, w, g)";
    let inputs = "float[1] lr, seq(float[100], float[50]) w, seq(float[100], float[50]) g";
    assert_eq!(kernels(inputs, sequences), [(300, 3 * 600, 1)]);
    let accumulator = "bool[1] f = com.microsoft.InPlaceAccumulatorV2(b, g, o) updates (b)";
    assert_eq!(kernels("float[100] b, float[100] g, bool[1] o", accumulator), [(100, 3 * 400, 1)]);
}

/// The graph's nodes that cost nothing.
fn idle(text: &str) -> Vec<String> {
    let graph = Graph::parse(text).unwrap();
    let costs = Costs::of(&graph, Target::built_in("host").unwrap(), None);
    let nodes = graph.order().iter().filter(|&&n| costs.nanos(n) == 0);
    nodes.map(|&n| graph.node(n).name.to_string()).collect()
}

#[test]
fn views_shapes_and_copies_cost_nothing() {
    let text = "g (float[4,8] x, int64[1] s) => () {
        [view] float[32] a = Reshape(x, s)
        [relu] float[32] b = Relu(a)
        [out] float[32]@host c = ai.lmsc.SwapOut(b)
        [host] float[32]@host d = Relu(c)
        [in] float[32] e = ai.lmsc.SwapIn(d)
        [shape] int64[2] f = Shape(x)
        [add] float[32] g = Add(b, e)
    }";
    assert_eq!(idle(text), ["view", "out", "host", "in", "shape"]);
}

#[test]
fn results_of_shapes_alone_cost_nothing() {
    let text = "g (float[4,8] x, int64[2] given) => ()
        <int64[1] zero = {0}, float[1] w = {0}>
        {
            [shape] int64[2] s = Shape(x)
            [one] int64[1] n = Gather(s, zero)
            [two] int64[2] t = Concat<axis = 0>(n, n)
            [zeros] float[4,4] z = ConstantOfShape(t)
            [large] float[64,64] l = ConstantOfShape(t)
            [tile] float[64,64] m = Mul(l, zero)
            [other] int64[2] u = Add(t, given)
            [random] float[4] r = RandomUniform<shape = [4]>()
            [variable] float[1] v = Relu(w)
            [update] float[1] w2 = Add(w, v) updates (w as w2)
        }";
    assert_eq!(idle(text), ["shape", "one", "two", "zeros"]);
}

#[test]
fn an_unknown_operator_is_guessed_and_named() {
    let text = "g (float[1000] x, float[7] odd) => () {
        [a] float[1000] y = org.example.Frobnicate(x)
        [b] float[1000] z = org.example.Frobnicate(y)
        [c] float[7] w = Conv(odd, odd)
        [d] float[1000] v = Relu(z)
    }";
    let graph = Graph::parse(text).unwrap();
    let costs = Costs::of(&graph, Target::built_in("v100-pcie").unwrap(), None);
    let guessed: Vec<String> = costs.guessed().iter().map(|(op, n)| format!("{n} {op}")).collect();
    assert_eq!(guessed, ["1 Conv", "2 org.example.Frobnicate"], "the convolution's operands are no images");
    assert_eq!(costs.work(graph.order()[0]), Work { flops: 0, moved: Bytes(8000) });
    assert_eq!(costs.nanos(graph.order()[0]), costs.nanos(graph.order()[3]));
}

#[test]
fn no_operands_make_a_rule_panic() {
    let mut state = 7u64;
    let mut draw = move |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let mut compute = Target::built_in("v100-pcie").unwrap().compute.clone();
    compute.memory_bytes_per_second = 1;
    let elements = [ElementType::Float, ElementType::Bool, ElementType::Int4, ElementType::Complex128];
    for (round, op) in table::operators().iter().cycle().take(40_000).enumerate() {
        let mut graph = Graph::new("g");
        let mut ty = || {
            let extents = [0, 1, 2, 3, 64, 1 << 33, u64::MAX];
            let mut tensor = || {
                let dims: Vec<u64> = (0..draw(6)).map(|_| extents[draw(extents.len())]).collect();
                lmsc_ir::TensorType::new(elements[draw(elements.len())], dims)
            };
            if round % 16 == 15 { Type::Sequence(vec![tensor(), tensor()]) } else { tensor().into() }
        };
        let operands: Vec<_> =
            (0..6).map(|i| Some(graph.add_input(format!("x{i}"), ty(), Default::default()))).collect();
        let results: Vec<_> = (0..3).map(|i| Some((format!("y{i}"), ty(), Default::default()))).collect();
        let mut node = Node::new("n", op.clone());
        for name in ["axis", "transA", "transBatchA", "layout", "num_groups", "training_mode"] {
            let value = [i64::MIN, -1, 0, 1, 2, i64::MAX][draw(6)];
            node.attributes.push((name.into(), value.into()));
        }
        node.attributes.push(("kernel_shape".into(), vec![i64::MIN, 3, i64::MAX].into()));
        node.attributes.push(("equation".into(), ["ij,jk->ik", "i,i->", "->", "é"][draw(4)].into()));
        node.operands = operands[..draw(7)].iter().copied().collect();
        let id = graph.add_node(node, results[..draw(4)].to_vec());
        let node = graph.node(id);
        let modelled = model(&graph, node);
        let nanos = modelled.node_cost(&compute, element(&graph, node)).nanos;
        let runs = modelled.cost.kernels.iter().any(|kernel| kernel.times > 0);
        assert_eq!(nanos > 0, runs, "{}", signature(&graph, node));
    }
}

#[test]
fn a_measured_time_takes_the_models_place() {
    let text = "g (float[1000] x) => () {
        [a] float[1000] y = Relu(x)
        [b] float[1000] z = Tanh(y)
        [c] float[1000] w = Relu(z)
        [d] float[10,100] v = Reshape(w, w)
    }";
    let graph = Graph::parse(text).unwrap();
    let target = Target::built_in("v100-pcie").unwrap();
    let mut profile = Profile::new("V100", None);
    let &[a, b, c, d] = graph.order() else { unreachable!("four nodes") };
    profile.insert(signature(&graph, graph.node(a)), MeasuredCost { nanos: 9_000, workspace: 64 });
    // The measured time of a view is not used.
    profile.insert(signature(&graph, graph.node(d)), MeasuredCost { nanos: 9_000, workspace: 64 });
    let costs = Costs::of(&graph, target, Some(&profile));
    let model = Costs::of(&graph, target, None);
    assert_eq!((costs.nanos(a), costs.nanos(c), costs.nanos(d)), (9_000, 9_000, 0));
    assert_eq!(costs.nanos(b), model.nanos(b));
    assert_eq!((costs.workspace(a), model.workspace(a)), (Bytes(64), Bytes(0)));
    assert_eq!(costs.work(a), model.work(a));
    let nanos = 18_000 + model.nanos(b);
    let expected = Coverage { nodes: 3, measured_nodes: 2, nanos, measured_nanos: 18_000 };
    assert_eq!(costs.coverage(), expected);
    assert_eq!(costs.total_nanos(), nanos);
    assert_eq!(model.coverage().measured_nodes, 0);
}

#[test]
fn a_signature_says_what_decides_the_time_and_no_more() {
    let of = |inputs: &str, node: &str| {
        let graph = graph(inputs, node);
        signature(&graph, graph.node(graph.order()[0]))
    };
    let inputs = "float[2,3,8,8] x, float[4,3,3,3] w";
    let conv = "float[2,4,8,8] y = Conv<strides = [1, 1], pads = [1, 1, 1, 1]>(x, w)";
    assert_eq!(
        of(inputs, conv),
        "Conv(float[2,3,8,8], float[4,3,3,3]) -> float[2,4,8,8] {pads = [1, 1, 1, 1], strides = [1, 1]}"
    );
    let renamed = "float[2,4,8,8] other = Conv<pads = [1, 1, 1, 1], strides = [1, 1]>(x, w)";
    assert_eq!(of(inputs, renamed), of(inputs, conv), "neither names nor the order of attributes");
    let gradient = "_, float[4,3,3,3] dw = com.microsoft.ConvGrad(dy, x, w)";
    assert_eq!(
        of(&format!("float[2,4,6,6] dy, {inputs}"), gradient),
        "com.microsoft.ConvGrad(float[2,4,6,6], float[2,3,8,8], float[4,3,3,3]) -> _, float[4,3,3,3]"
    );
    assert_eq!(
        of(
            "float[1] lr, seq(float[2], float[3]) w, seq(float[2], float[3]) g",
            "bool[1] f = com.microsoft.SGDOptimizerV2(lr, w, g)"
        ),
        "com.microsoft.SGDOptimizerV2(float[1], seq(float[2], float[3]), seq(float[2], float[3])) -> bool[1]"
    );
    let constant = "float[2] y = Constant<value = float[2] {1.0, 2.0}, mode = \"a\\\"b\">()";
    assert_eq!(of("", constant), "Constant() -> float[2] {mode = \"a\\\"b\", value = float[2] {1.0, 2.0}}");
}
