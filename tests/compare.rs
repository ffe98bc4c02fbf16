//! `lmsc compare`: a wrong kernel is found at its operator, by one call.

use std::collections::BTreeSet;

use lmsc::Binding;
use lmsc_ir::{ElementType, Graph, Node, NodeId, Op, Place};

use crate::support::Bench;
use crate::support::models::{models, open};

/// Replaces the node's first result by its exponential, for all readers.
fn spoil(graph: &mut Graph, id: NodeId) {
    let value = graph.node(id).results[0].unwrap();
    let (name, ty) = (graph.value(value).name.clone(), graph.value(value).ty.clone());
    let readers: Vec<(NodeId, usize)> = (graph.order().iter())
        .flat_map(|&reader| {
            graph.node(reader).operands.iter().enumerate().map(move |(at, &o)| (reader, at, o))
        })
        .filter(|&(_, _, operand)| operand == Some(value))
        .map(|(reader, at, _)| (reader, at))
        .collect();
    graph.rename(value, format!("{name} as it should be"));
    let mut order = graph.order().to_vec();
    let mut bug = Node::new("bug", Op::new("", "Exp"));
    bug.operands.push(Some(value));
    let bug = graph.add_node(bug, [Some((name, ty, Place::Device))]);
    let wrong = graph.node(bug).results[0].unwrap();
    for (reader, at) in readers {
        graph.set_operand(reader, at, wrong);
    }
    let place = order.iter().position(|&other| other == id).unwrap();
    order.insert(place + 1, bug);
    graph.set_order(order);
}

/// The first node of each operator whose kernel can be made wrong: its result is of floats and no state.
fn candidates(graph: &Graph, known: &mut BTreeSet<String>) -> Vec<NodeId> {
    let is_float = |node: &Node| {
        let first = node.results.first().copied().flatten();
        first
            .and_then(|value| graph.value(value).ty.as_tensor())
            .is_some_and(|ty| ty.element == ElementType::Float)
    };
    let is_state =
        |node: &Node| !node.updates.is_empty() || node.defines().any(|value| graph.outputs.contains(&value));
    let mut found = Vec::new();
    for &id in graph.order() {
        let node = graph.node(id);
        let effects = node.op.effects();
        let is_plain = !effects.view && !effects.random && effects.writes.is_empty();
        if is_plain && is_float(node) && !is_state(node) && known.insert(node.op.to_string()) {
            found.push(id);
        }
    }
    found
}

#[test]
fn a_wrong_kernel_is_named_by_one_call() {
    let bench = Bench::new();
    let mut known = BTreeSet::new();
    let names = ["tiny_mlp", "tiny_cnn", "tiny_gpt2", "tiny_unet2d", "tiny_bert", "tiny_densenet"];
    let all = models();
    for path in names.iter().filter_map(|name| {
        all.iter().find(|path| path.ends_with(name) || path.to_string_lossy().contains(&format!("/{name}/")))
    }) {
        let (model, dims) = open(path);
        drop(model);
        let binding = Binding {
            dims: dims.iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            ..Binding::default()
        };
        let right = lmsc::load(path, &binding).unwrap();
        right.write(bench.path("right.onnx"), &binding).unwrap();
        let equal = bench.run("compare @/right.onnx --steps 1 --json");
        assert_eq!(equal.code, 0, "{}: {}", path.display(), equal.stderr);
        for id in candidates(&right.graph, &mut known) {
            let name = right.graph.node(id).name.to_string();
            let mut wrong = lmsc::load(path, &binding).unwrap();
            spoil(&mut wrong.graph, id);
            wrong.write(bench.path("wrong.onnx"), &binding).unwrap();
            let ran = bench.run("run @/wrong.onnx --steps 1 --fetch all --out @/values.safetensors");
            assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
            let found = bench.run("compare @/right.onnx --steps 1 --with @/values.safetensors");
            assert_eq!(found.code, 1, "{name}: {}", found.stderr);
            assert!(found.stderr.contains(&format!("`{name}` (")), "{name}: {}", found.stderr);
        }
        if known.len() >= lmsc_testing::cases(20, 20, usize::MAX) {
            break;
        }
    }
    assert!(known.len() >= 20, "{known:?}");
}

#[test]
fn a_file_without_results_of_the_model_is_refused() {
    let bench = Bench::new();
    bench.write("step.lms", "g (float[2] x) => (float[2] y) { [n] float[2] y = Relu(x) }");
    bench.write("other.lms", "g (float[2] x) => (float[2] z) { [n] float[2] z = Relu(x) }");
    assert_eq!(bench.run("run @/other.lms --steps 1 --fetch z --out @/z.safetensors").code, 0);
    let refused = bench.run("compare @/step.lms --steps 1 --with @/z.safetensors");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("it has no result of an operator of this model"), "{}", refused.stderr);
}
