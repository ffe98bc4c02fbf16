//! The pass `layout`: random steps and models of convolutions compute the same values with channels last. `LMSC_REPORT=1` prints the
//! numbers.

use std::path::Path;

use crate::chunk_loss::{distance, report, run, run_beside, worst};
use crate::kernels::{load, read};
use crate::support::models::MODELS;
use lmsc_ir::{Graph, verify};
use lmsc_passes::{PassCx, Pipeline};
use lmsc_testing::{Rng, Size, training_graph};

/// The graph with channels last, and the pass's remarks; none if it changed nothing.
fn last(graph: &Graph) -> Option<(Graph, Vec<String>)> {
    let mut after = graph.clone();
    let ran = Pipeline::parse("layout")
        .unwrap()
        .run(&mut after, &PassCx::default())
        .unwrap_or_else(|e| panic!("{e}\n{}", graph.to_text()));
    let outcome = &ran[0].outcome;
    outcome.changed.then(|| (after, outcome.remarks.clone()))
}

fn count(graph: &Graph, is: impl Fn(&str) -> bool) -> usize {
    graph.order().iter().filter(|&&id| is(graph.node(id).op.name())).count()
}

/// Asserts that all results are equal but for rounding, as far as a step on inputs that differ in their last bits has it.
fn assert_same(graph: &Graph, after: &Graph, classes: usize, what: &str) -> f64 {
    let (before, last) = (run(graph, classes), run(after, classes));
    let error = worst(&before, &last);
    if error.0 < 1e-4 {
        return error.0;
    }
    let beside: Vec<_> = (1..=4).map(|beside| run_beside(graph, classes, beside)).collect();
    for (at, ((name, a), (_, b))) in before.iter().zip(&last).enumerate() {
        let own = beside.iter().map(|other| distance(a, &other[at].1)).fold(0.0, f64::max);
        let off = distance(a, b);
        assert!(off < 1e-4 + 8.0 * own, "{what}: {name} is off by {off}, {own} by itself");
    }
    error.0
}

#[test]
fn random_steps_compute_the_same() {
    let count_of_seeds = if std::env::var_os("LMSC_THOROUGH").is_some() { 3000 } else { 200 };
    let (mut turned, mut off) = (0, Vec::new());
    for seed in 0..count_of_seeds {
        let size = Size { nodes: 10 + (seed % 60) as usize, tensor_bytes: 1 << 14 };
        let graph = training_graph(&mut Rng::new(seed), size);
        let Some((after, _)) = last(&graph) else { continue };
        turned += 1;
        assert!(verify(&after).is_ok(), "seed {seed}");
        let forms = ["Conv", "ConvGrad"];
        assert_eq!(count(&after, |name| forms.contains(&name)), 0, "seed {seed}");
        off.push(assert_same(&graph, &after, 2, &format!("seed {seed}")));
    }
    off.sort_by(f64::total_cmp);
    report(&format!("{turned} of {count_of_seeds} steps, off by {:.1e} at most", off[off.len() - 1]));
    assert!(turned > 30, "{turned} steps have convolutions");
}

#[test]
fn models_compute_the_same_with_transpositions_at_the_ends() {
    // With the most transpositions that each may have.
    for (model, most) in [
        ("tiny_cnn", 4),
        ("tiny_resnet18", 4),
        ("tiny_densenet", 4),
        ("tiny_vgg", 4),
        ("tiny_unet2d", 4),
        ("tiny_unet3d", 4),
    ] {
        let path = Path::new(MODELS).join(model).join("training_model.onnx");
        let recording = read(&path.with_extension("recorded.safetensors"));
        let graph = load(&path, &recording, None);
        let (after, remarks) = last(&graph).unwrap_or_else(|| panic!("{model} has convolutions"));
        let transposes = |graph: &Graph| count(graph, |name| name == "Transpose");
        report(&format!("{model}: {}", remarks[0]));
        let off = assert_same(&graph, &after, 2, model);
        report(&format!("{model}: off by {off:.1e}"));
        assert!(transposes(&after) <= transposes(&graph) + most, "{model}: {}", remarks[0]);
    }
}
