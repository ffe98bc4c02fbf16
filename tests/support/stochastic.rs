//! Networks of stochastic depth, made of residual networks.

use lmsc_ir::{Data, ElementType, Graph, Node, NodeId, Op, Place, TensorType, ValueId};

/// A residual layer: a sum whose first operand is the branch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    /// The sum.
    pub(crate) add: NodeId,
    /// The last node of the branch: a batch normalization.
    pub(crate) last: NodeId,
    /// The gradient of that.
    pub(crate) gradient: NodeId,
}

/// The residual layers of a training graph, in their order: sums of a batch normalization and something else.
pub(crate) fn layers(graph: &Graph) -> Vec<Layer> {
    let is = |id: NodeId, name: &str| graph.node(id).op.name() == name;
    let layer = |&add: &NodeId| {
        let node = graph.node(add);
        let last = graph.producer(*node.operands.first()?.as_ref()?)?;
        // The gradient reads the mean of the batch that the normalization has saved.
        let saved = *graph.node(last).results.get(3)?;
        let of =
            |&id: &NodeId| is(id, "BatchNormalizationGrad") && graph.node(id).operands.get(3) == Some(&saved);
        let gradient = graph.order().iter().copied().find(of)?;
        (is(add, "Add") && is(last, "BatchNormInternal")).then_some(Layer { add, last, gradient })
    };
    graph.order().iter().filter_map(layer).collect()
}

/// The same graph with a gate for each residual layer: ReLU(f(x) + x) becomes ReLU(b · f(x) + x), b being 1 with the
/// probability that `survival` gives for the layer's number, and the gradient of f(x) is multiplied by b, too.
pub(crate) fn stochastic(graph: &Graph, survival: impl Fn(usize) -> f32) -> Graph {
    let mut graph = graph.clone();
    let layers = layers(&graph);
    let old = graph.order().to_vec();
    let mut before: Vec<(NodeId, NodeId)> = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        let scalar = || TensorType::new(ElementType::Float, []);
        let data = Data::Inline(survival(number).to_le_bytes().to_vec().into());
        let chance = graph.add_initializer(format!("survival_{number}"), scalar(), data);
        let mut draw = Node::new(format!("gate_{number}"), Op::new("", "Bernoulli"));
        draw.operands.push(Some(chance));
        let draw = graph.add_node(draw, [Some((format!("open_{number}"), scalar().into(), Place::Device))]);
        let gate = graph.node(draw).results[0].expect("it is asked for");
        before.push((layer.last, draw));
        for (node, name) in [(layer.add, "gated"), (layer.gradient, "gated_gradient")] {
            let value: ValueId = graph.node(node).operands[0].expect("it is added or goes on");
            let ty = graph.value(value).ty.clone();
            let mut times = Node::new(format!("{name}_{number}"), Op::new("", "Mul"));
            times.operands.extend([Some(value), Some(gate)]);
            let times = graph.add_node(times, [Some((format!("{name}_{number}.value"), ty, Place::Device))]);
            let product = graph.node(times).results[0].expect("it is asked for");
            graph.set_operand(node, 0, product);
            before.push((node, times));
        }
    }
    let mut order = Vec::with_capacity(graph.order().len());
    for node in old {
        order.extend(before.iter().filter(|(next, _)| *next == node).map(|(_, new)| *new));
        order.push(node);
    }
    graph.set_order(order);
    graph
}

/// A training step of `depth` residual layers of stochastic depth, ReLU(x · v) · w each: matrices of `width` columns, a row for
/// each of the batch.
pub(crate) fn perceptron(depth: usize, batch: usize, width: usize, survival: impl Fn(usize) -> f32) -> Graph {
    let all = |of: &dyn Fn(usize) -> String| (0..depth).map(of).collect::<String>();
    let (rows, square) = (format!("float[{batch},{width}]"), format!("float[{width},{width}]"));
    let weights = all(&|i| format!(", {square} v{i}, {square} w{i}"));
    let new = all(&|i| format!(", {square} v{i}_new, {square} w{i}_new"));
    let chances = all(&|i| format!("float[] survival{i} = {{{:?}}}, ", survival(i)));
    let forward = all(&|i| {
        format!(
            "[draw{i}] float[] open{i} = Bernoulli(survival{i})
             [wide{i}] {rows} a{i} = MatMul(x{i}, v{i})
             [relu{i}] {rows} h{i} = Relu(a{i})
             [back{i}] {rows} f{i} = MatMul(h{i}, w{i})
             [gate{i}] {rows} z{i} = Mul(f{i}, open{i})
             [sum{i}] {rows} x{} = Add(z{i}, x{i})\n",
            i + 1
        )
    });
    let backward = |i: usize| {
        let (ms, next) = ("com.microsoft", i + 1);
        format!(
            "[gate_grad{i}] {rows} dz{i} = Mul(dx{next}, open{i})
             [w_grad{i}] {square} dw{i} = {ms}.FusedMatMul<transA = 1>(h{i}, dz{i})
             [back_grad{i}] {rows} dh{i} = {ms}.FusedMatMul<transB = 1>(dz{i}, w{i})
             [relu_grad{i}] {rows} da{i} = {ms}.ReluGrad(dh{i}, h{i})
             [v_grad{i}] {square} dv{i} = {ms}.FusedMatMul<transA = 1>(x{i}, da{i})
             [wide_grad{i}] {rows} db{i} = {ms}.FusedMatMul<transB = 1>(da{i}, v{i})
             [sum_grad{i}] {rows} dx{i} = Sum(db{i}, dx{next})
             [v_update{i}] {square} v{i}_new = ai.lmsc.SGDOptimizer(rate, v{i}, dv{i}) after [wide_grad{i}] updates (v{i} as v{i}_new)
             [w_update{i}] {square} w{i}_new = ai.lmsc.SGDOptimizer(rate, w{i}, dw{i}) after [back_grad{i}] updates (w{i} as w{i}_new)\n"
        )
    };
    let backward: String = (0..depth).rev().map(backward).collect();
    let text = format!(
        "<opset: \"\" = 17, \"ai.lmsc\" = 1, \"com.microsoft\" = 1>
         perceptron ({rows} x0, int64[{batch}] labels, float[1] rate{weights}) => (float[] loss{new})
         <{chances}float[] one = {{1.0}}> {{
             {forward}
             [loss] float[] loss, {rows} likely = SoftmaxCrossEntropyLoss<reduction = \"mean\">(x{depth}, labels)
             [loss_grad] {rows} dx{depth} =
                 com.microsoft.SoftmaxCrossEntropyLossGrad<reduction = \"mean\">(one, likely, labels)
             {backward}
         }}"
    );
    let graph = Graph::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    lmsc_ir::verify(&graph).unwrap_or_else(|violations| panic!("{violations}"));
    graph
}
