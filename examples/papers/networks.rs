//! Networks that no file has: made of those that there are.

use std::collections::BTreeSet;

use lmsc_ir::program::{GateEffect, Gates};
use lmsc_ir::rng::{Rng, Source};
use lmsc_ir::{Bytes, Graph, NodeId, ValueId};
use lmsc_passes::{Lowering, MachineModel, PassCx, bridge, lower};
use lmsc_plan::Target;
use lmsc_plan::problem::Problem;

use crate::stochastic::stochastic;
use crate::work;

/// VGG-13: VGG-16 without the third convolution of its last three stages.
pub(crate) fn vgg_13(mut graph: Graph) -> Graph {
    for layer in [14, 21, 28] {
        graph = without_layer(&graph, layer);
    }
    graph
}

/// The graph without the convolution `features.N` and its ReLU, which have as many channels in as out.
fn without_layer(graph: &Graph, layer: usize) -> Graph {
    let mut graph = graph.clone();
    let named = |name: String| graph.node_named(&name).unwrap_or_else(|| panic!("there is no {name}"));
    let (convolution, relu) = (
        named(format!("/features/features.{layer}/Conv")),
        named(format!("/features/features.{}/Relu", layer + 1)),
    );
    let (of_convolution, of_relu) = (
        named(format!("/features/features.{layer}/Conv_Grad/ConvGrad_0")),
        named(format!("/features/features.{}/Relu_Grad/ReluGrad_0", layer + 1)),
    );
    let result = |node: NodeId| graph.node(node).results[0].expect("it is asked for");
    let operand = |node: NodeId| graph.node(node).operands[0].expect("it is there");
    // The layer becomes the identity: forward for its operand, backward for the gradient.
    let passes = [(result(relu), operand(convolution)), (result(of_convolution), operand(of_relu))];
    for (old, new) in passes {
        for &node in &graph.order().to_vec() {
            for index in 0..graph.node(node).operands.len() {
                if graph.node(node).operands[index] == Some(old) {
                    graph.set_operand(node, index, new);
                }
            }
        }
    }
    let read_before: BTreeSet<ValueId> = graph.order().iter().flat_map(|&n| graph.node(n).reads()).collect();
    let mut gone: BTreeSet<NodeId> = [convolution, relu, of_convolution, of_relu].into();
    let mut lost: BTreeSet<ValueId> = gone.iter().flat_map(|&n| graph.node(n).defines()).collect();
    for &node in graph.order() {
        if graph.node(node).reads().any(|value| lost.contains(&value)) {
            gone.insert(node);
            lost.extend(graph.node(node).defines());
        }
    }
    let order: Vec<NodeId> = graph.order().iter().copied().filter(|node| !gone.contains(node)).collect();
    graph.set_order(order);
    let read: BTreeSet<ValueId> = graph.order().iter().flat_map(|&n| graph.node(n).reads()).collect();
    graph.inputs.retain(|value| read.contains(value) || !read_before.contains(value));
    graph.outputs.retain(|value| !lost.contains(value));
    // Read again, it has no values but those that are left.
    let text = graph.to_text();
    Graph::parse(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// A network of stochastic depth: its step with every layer, and the effect of the gates on each operator in some steps.
pub(crate) struct Stochastic {
    pub(crate) problem: Problem,
    /// For each step, the effect on the operator of each tick.
    pub(crate) steps: Vec<Vec<GateEffect>>,
}

/// The residual network with layers that are there with a probability that falls from 1 to a half at the last (Huang et al.,
/// their linear decay), and this number of its steps.
pub(crate) fn stochastic_depth(graph: &Graph, target: &Target, steps: usize) -> Stochastic {
    let count = crate::stochastic::layers(graph).len();
    let survival = |layer: usize| 1.0 - 0.5 * (layer + 1) as f32 / count as f32;
    let graph = work::prepared(stochastic(graph, survival), target);
    let cx = PassCx {
        machine: MachineModel { target: Some(target.clone()), ..MachineModel::default() },
        ..PassCx::default()
    };
    let bridge = bridge(&graph, &cx).expect("the models have no swaps");
    let how = Lowering { arena: None, workspace: &|_| Bytes::ZERO };
    let program = lower(&graph, &how).expect("the models run");
    let gates = Gates::of(&program, |_, _| true);
    let names = program.launches().filter(|(index, _)| gates.launches().contains(index));
    let layer_of = names.map(|(_, launch)| launch.node.trim_start_matches("gate_").parse());
    let layer_of: Vec<usize> = layer_of.collect::<Result<_, _>>().expect("gates are numbered");
    assert_eq!(layer_of.len(), count, "each layer has its gate");
    let mut rng = Rng::new(0);
    let mut step = || {
        let mut drawn: Vec<bool> = Vec::new();
        drawn.extend((0..count).map(|layer| rng.below(1 << 20) as f32 / (1 << 20) as f32 >= survival(layer)));
        let closed: Vec<bool> = layer_of.iter().map(|&layer| drawn[layer]).collect();
        let parts = gates.parts(&program, &closed);
        let mut of: Vec<Option<GateEffect>> = vec![None; graph.node_capacity()];
        for (index, launch) in program.launches() {
            let node = graph.node_named(&launch.node).expect("a launch is of a node");
            of[node.as_u32() as usize] = Some(parts.of(lmsc_ir::program::Stream::Compute, index));
        }
        // Views are not launched: a view exists if its operand does.
        let mut there: Vec<bool> = bridge.problem.tensors.values().map(|tensor| tensor.given).collect();
        let part = |(node, op): (&NodeId, &lmsc_plan::problem::Operator)| {
            let reads = op.reads.iter().all(|tensor| there[tensor.as_u32() as usize]);
            let part = of[node.as_u32() as usize].unwrap_or(if reads {
                GateEffect::Runs
            } else {
                GateEffect::Rests
            });
            if part != GateEffect::Rests {
                op.produces.iter().for_each(|tensor| there[tensor.as_u32() as usize] = true);
            }
            part
        };
        bridge.nodes.iter().zip(&bridge.problem.ops).map(part).collect()
    };
    let steps = (0..steps).map(|_| step()).collect();
    Stochastic { problem: bridge.problem, steps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vgg_13_has_ten_convolutions_and_no_layer_of_three() {
        let graph = vgg_13(work::graph("vgg16/training_model.onnx", &[("batch", 1)]));
        lmsc_ir::verify(&graph).unwrap_or_else(|violations| panic!("{violations}"));
        let count = |name: &str| graph.order().iter().filter(|&&n| graph.node(n).op.name() == name).count();
        assert_eq!(["Conv", "ConvGrad", "Relu", "ReluGrad", "MaxPool"].map(count), [10, 10, 12, 12, 5]);
        let inputs = graph.inputs.iter().map(|&value| graph.value(value).name.to_string());
        assert_eq!(inputs.filter(|name| name.contains("features.14.")).count(), 0);
    }

    #[test]
    fn every_step_of_stochastic_depth_is_a_problem() {
        let target = work::target("gtx1080ti");
        let graph = work::graph("tiny_resnet18/training_model.onnx", &[("batch", 4)]);
        let Stochastic { problem, steps } = stochastic_depth(&graph, &target, 8);
        let whole = problem.compute_nanos();
        let times = steps.iter().map(|parts| {
            let left = problem.without(parts);
            assert_eq!((left.check(), parts.len()), (Ok(()), problem.ops.len()));
            left.compute_nanos()
        });
        let times: BTreeSet<u64> = times.collect();
        assert!(
            times.len() > 2 && times.iter().all(|&nanos| whole / 2 < nanos && nanos <= whole),
            "{times:?}"
        );
    }
}
