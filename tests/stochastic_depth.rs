//! Layers that a random gate closes are left out of a step: it runs under the plan of the whole graph, in the
//! same arena, and computes the results of the step without these layers (DQN §5).

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::Bench;
use crate::support::models::MODELS;
use crate::support::steps::{Left, Values, execute, lowered, range, rehearse, rewritten};
use crate::support::stochastic::{Layer, layers, perceptron, stochastic};
use lmsc::Binding;
use lmsc::run::synthetic;
use lmsc_ir::program::{GateEffect, Gates, Program, Role, Stream, check};
use lmsc_ir::{Data, Graph, NodeId, ValueId, ops};

const PLANNERS: [&str; 7] = ["auto", "swap-only", "tflms", "lru", "window", "memonger", "dqn"];

/// A step of the tiny ResNet-18 on a batch of this size, with its updates.
fn resnet(batch: u64) -> Graph {
    let folder = Path::new(MODELS).join("tiny_resnet18");
    let optimizer = Some(folder.join("optimizer_model_sgd.onnx"));
    let dims = vec![("batch".to_owned(), batch)];
    let binding = Binding { dims, optimizer, ..Binding::default() };
    lmsc::load(&folder.join("training_model.onnx"), &binding).unwrap().graph
}

/// The graph without these residual layers: readers of a sum read its shortcut, the shortcut's gradient is the
/// whole gradient, and the weights of the branch have gradients of zero.
fn without(graph: &Graph, layers: &[Layer]) -> Graph {
    let mut graph = graph.clone();
    let mut order = graph.order().to_vec();
    let result = |graph: &Graph, node: NodeId, index: usize| graph.node(node).results[index].unwrap();
    let readers = |graph: &Graph, value: ValueId| -> Vec<(NodeId, usize)> {
        let order = graph.order().iter();
        let of = |&node: &NodeId| {
            let operands = graph.node(node).operands.iter().enumerate();
            operands.filter(|(_, o)| **o == Some(value)).map(move |(index, _)| (node, index)).collect()
        };
        order.map(of).collect::<Vec<Vec<_>>>().concat()
    };
    for layer in layers {
        let (sum, shortcut) = (result(&graph, layer.add, 0), graph.node(layer.add).operands[1].unwrap());
        for (node, index) in readers(&graph, sum) {
            graph.set_operand(node, index, shortcut);
        }
        // The successors of the branch's gradient are zero, except sums with other gradients.
        let mut zero: Vec<NodeId> = vec![layer.gradient];
        while let Some(node) = zero.pop() {
            order.retain(|&other| other != node);
            for value in graph.node(node).defines().collect::<Vec<_>>() {
                for (reader, index) in readers(&graph, value) {
                    let facts = graph.node(reader);
                    match facts.op.name() {
                        "BatchNormalizationGrad" | "ConvGrad" | "ReluGrad" | "Identity" => zero.push(reader),
                        "Sum" => {
                            assert_eq!(facts.operands.len(), 2);
                            let (other, sum) =
                                (facts.operands[1 - index].unwrap(), result(&graph, reader, 0));
                            for (next, at) in readers(&graph, sum) {
                                graph.set_operand(next, at, other);
                            }
                            order.retain(|&node| node != reader);
                        }
                        "InPlaceAccumulatorV2" => {
                            let ty = graph.value(value).ty.clone();
                            let data = Data::Inline(vec![0; ty.byte_size().unwrap().0 as usize].into());
                            let name = graph.fresh_value_name("zero");
                            let none = graph.add_initializer(name, ty, data);
                            graph.set_operand(reader, index, none);
                        }
                        other => panic!("{other} of a gradient"),
                    }
                }
            }
        }
    }
    graph.set_order(order);
    // Remove nodes whose results nothing reads any more.
    loop {
        let read: BTreeSet<ValueId> = graph.order().iter().flat_map(|&n| graph.node(n).reads()).collect();
        let unread = |&node: &NodeId| {
            let facts = graph.node(node);
            let aside = ops::aside(facts).unwrap_or_default();
            let mut own =
                facts.results.iter().enumerate().filter(|(at, _)| !aside.iter().any(|w| w.1 == *at));
            let updates = facts.updates.len() == aside.len();
            updates
                && own
                    .all(|(_, value)| value.is_none_or(|v| !read.contains(&v) && !graph.outputs.contains(&v)))
        };
        let Some(gone) = graph.order().iter().copied().find(unread) else { break };
        let updates = graph.node(gone).updates.clone();
        for (variable, index) in updates.iter().filter_map(|update| Some((update.variable, update.result?))) {
            let new = result(&graph, gone, index);
            graph.outputs.iter_mut().filter(|output| **output == new).for_each(|output| *output = variable);
        }
        let order = graph.order().iter().copied().filter(|&node| node != gone).collect();
        graph.set_order(order);
    }
    lmsc_ir::verify(&graph).unwrap();
    graph
}

/// Whether both are the same numbers; zeros may have either sign.
fn same(ours: &[u8], theirs: &[u8]) -> bool {
    let number = |b: &[u8; 4]| f32::from_le_bytes(*b);
    let (ours, theirs) = (ours.as_chunks::<4>(), theirs.as_chunks::<4>());
    ours.1 == theirs.1 && ours.0.iter().map(number).eq(theirs.0.iter().map(number))
}

/// The first value that both have and that differs, but for those of some names.
fn difference(ours: &Left<Vec<u8>>, theirs: &Left<Vec<u8>>, except: impl Fn(&str) -> bool) -> Option<String> {
    let of = |left: &Left<Vec<u8>>| -> Vec<Values<Vec<u8>>> {
        left.outputs.iter().chain([&left.given]).cloned().collect()
    };
    of(ours).iter().zip(&of(theirs)).find_map(|(ours, theirs)| {
        let differs = |(name, bytes): &(&String, &Vec<u8>)| {
            !except(name) && theirs.get(*name).is_some_and(|other| !same(bytes, other))
        };
        ours.iter().find(differs).map(|(name, _)| name.clone())
    })
}

/// How many commands of a kind there are in a step in which these gates are closed.
fn count(program: &Program, closed: &[bool], part: GateEffect) -> [usize; 3] {
    let parts = Gates::of(program, |_, _| true).parts(program, closed);
    Stream::ALL.map(|stream| {
        (0..program.stream(stream).len() as u32).filter(|&index| parts.of(stream, index) == part).count()
    })
}

#[test]
fn a_step_without_closed_layers_is_that_of_the_graph_without_them() {
    let graph = resnet(4);
    let all = layers(&graph);
    assert_eq!(all.len(), 4);
    for open in 0..16u32 {
        let is_open = |number: usize| open & (1 << number) != 0;
        let gated = lowered(&stochastic(&graph, |number| f32::from(u8::from(is_open(number)))), None);
        let closed: Vec<Layer> =
            all.iter().enumerate().filter(|(number, _)| !is_open(*number)).map(|(_, layer)| *layer).collect();
        let reduced = lowered(&without(&graph, &closed), None);
        let (expected, found) =
            (rehearse(&reduced, 0, false, <[u8]>::to_vec).0, rehearse(&gated, 0, true, <[u8]>::to_vec).0);
        // Statistics of removed layers are not variables; they keep their values.
        let is_input = |program: &Program, name: &str| {
            program.given.iter().any(|given| *given.tensor.name == *name && given.role == Role::Input)
        };
        let stays = |name: &str| is_input(&reduced, name) && !is_input(&gated, name);
        assert_eq!(difference(&expected, &found, stays), None, "{open:b}");
        let still = gated.given.iter().filter(|given| stays(&given.tensor.name));
        let still = still.map(|g| (&*g.tensor.name, synthetic(&g.tensor.name, &g.tensor.ty, 1)));
        let still: Vec<(&str, Vec<u8>)> = still.collect();
        assert!(still.iter().all(|(name, bytes)| found.given[*name] == *bytes), "{open:b}");
        assert_eq!(still.len(), 4 * closed.len());
        let shut: Vec<bool> = (0..4).map(|number| !is_open(number)).collect();
        // Two convolutions and normalizations, a ReLU, the gate without readers, and backwards the ReLU and the product
        // with the gate, on which only zeros depend; these are the product and the gradients of weights.
        assert_eq!(count(&gated, &shut, GateEffect::Rests)[0], 8 * closed.len(), "{open:b}");
        assert_eq!(count(&gated, &shut, GateEffect::Zero)[0], 5 * closed.len(), "{open:b}");
    }
}

#[test]
fn multiplying_by_zero_gives_the_same_but_for_running_statistics() {
    let graph = stochastic(&resnet(4), |_| 0.5);
    let program = lowered(&graph, None);
    let (multiplied, skipped) =
        (rehearse(&program, 0, false, <[u8]>::to_vec).0, rehearse(&program, 0, true, <[u8]>::to_vec).0);
    let first = difference(&multiplied, &skipped, |_| false).expect("some gate is closed");
    assert!(is_statistic(&first), "{first}");
    assert_eq!(difference(&multiplied, &skipped, is_statistic), None);
}

#[test]
fn the_plan_of_the_whole_graph_holds_for_every_step() {
    // From the first layer to the last they are there less often, as in the paper.
    let survival = |layer: usize| 1.0 - 0.5 * (layer + 1) as f32 / 8.0;
    let networks =
        [perceptron(8, 256, 16, survival), stochastic(&resnet(4), |layer| survival(2 * layer + 1))];
    let (mut runs, mut copies, mut rest, mut again, mut stay) = (0, 0, 0, 0, 0);
    for graph in networks {
        let (floor, peak) = range(&graph);
        let original = lowered(&graph, None);
        let (expected, _) = rehearse(&original, 0, true, <[u8]>::to_vec);
        let (executed, _) = execute(original.clone(), true, <[u8]>::to_vec);
        assert_eq!(expected.difference(&executed), None);
        // Where nothing is written aside, leaving a layer out is multiplying it by 0; then its weights stay.
        let multiplied = rehearse(&original, 0, false, <[u8]>::to_vec).0;
        assert_eq!(difference(&multiplied, &expected, is_statistic), None);
        let pairs = expected.outputs.iter().zip(&expected.outputs[1..]);
        let still = pairs.flat_map(|(one, next)| one.iter().filter(|(name, bytes)| next[*name] == **bytes));
        stay += still.filter(|(name, _)| name.ends_with("_new")).count();
        for (planner, share) in PLANNERS.iter().flat_map(|p| [0, 40].map(|share| (*p, share))) {
            let budget = floor + (peak - floor) * share / 100;
            let Some((rewritten, budget)) = rewritten(&graph, planner, true, budget) else { continue };
            let program = lowered(&rewritten, Some(budget));
            let what = format!("{}, {planner}, {budget}", graph.name);
            check(&program).unwrap_or_else(|e| panic!("{what}: {e}"));
            for seed in 0..2 {
                let (found, needed) = rehearse(&program, seed, true, <[u8]>::to_vec);
                assert!(needed <= budget.0, "{what}");
                assert_eq!(expected.difference(&found), None, "{what}");
            }
            let (executed, measured) = execute(program.clone(), true, <[u8]>::to_vec);
            assert_eq!(expected.difference(&executed), None, "{what}, executed");
            assert!(measured <= budget.0, "{what}");
            let shut = vec![true; Gates::of(&program, |_, _| true).launches().len()];
            copies += program.stream(Stream::Out).len();
            rest += count(&program, &shut, GateEffect::Rests)[1];
            let resting =
                count(&program, &shut, GateEffect::Rests)[0] + count(&program, &shut, GateEffect::Zero)[0];
            again += usize::from(program.launches().count() > original.launches().count() && resting > 0);
            runs += 1;
        }
    }
    let found =
        format!("{runs} runs, {copies} copies, {rest} rest, {again} compute again, {stay} weights stay");
    println!("{found}");
    assert!(runs > 20 && rest > 40 && again > 1 && stay > 8, "{found}");
}

#[test]
fn the_command_line_leaves_closed_layers_out() {
    let bench = Bench::new();
    bench.write("net.lms", perceptron(4, 8, 4, |_| 0.5).to_text());
    let losses = |more: &str| {
        let outcome = bench.run(&format!("run @/net.lms --steps 6 --seed 3 {more}"));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let text = String::from_utf8(outcome.stdout).unwrap();
        text.lines().filter(|line| line.starts_with("step ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let whole = losses("");
    assert_eq!(whole.len(), 6);
    assert_eq!(whole, losses("--skip-closed"));
    assert_eq!(bench.run("run @/net.lms --skip-closed --fetch x1 --out @/x").code, 2);
}

/// Whether the value is one that a normalization writes aside.
fn is_statistic(name: &str) -> bool {
    name.contains("running") || name.contains("BatchNormalization_output")
}
