//! The pass `layout`: random steps and models of convolutions compute the same values with channels last. `LMSC_REPORT=1` prints the
//! numbers.

use std::path::Path;

use crate::chunk_loss::{report, run};
use crate::expand::opt;
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

/// Asserts that all results have the same bits: the host sums in an order that depends on no layout, or in double precision.
fn assert_same(graph: &Graph, after: &Graph, name: &str) {
    for ((result, a), (other, b)) in run(graph, 2).into_iter().zip(run(after, 2)) {
        let same = a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits()));
        assert!(result == other && same, "{name}: {result} and {other}");
    }
}

#[test]
fn random_steps_compute_the_same() {
    let count_of_seeds = if std::env::var_os("LMSC_THOROUGH").is_some() { 3000 } else { 200 };
    let mut turned = 0;
    for seed in 0..count_of_seeds {
        let size = Size { nodes: 10 + (seed % 60) as usize, tensor_bytes: 1 << 14 };
        let graph = training_graph(&mut Rng::new(seed), size);
        let Some((after, _)) = last(&graph) else { continue };
        turned += 1;
        assert!(verify(&after).is_ok(), "seed {seed}");
        let forms = ["Conv", "ConvGrad"];
        assert_eq!(count(&after, |name| forms.contains(&name)), 0, "seed {seed}");
        assert_same(&graph, &after, &format!("seed {seed}"));
    }
    report(&format!("{turned} of {count_of_seeds} steps"));
    assert!(turned > 30, "{turned} steps have convolutions");
}

#[test]
fn models_compute_the_same_with_transpositions_at_the_ends() {
    // With the number of transpositions that each gets, views not counted.
    for (model, ends) in [
        ("tiny_cnn", 3),
        ("tiny_resnet18", 1),
        ("tiny_densenet", 3),
        ("tiny_vgg", 3),
        ("tiny_unet2d", 3),
        ("tiny_unet3d", 2),
    ] {
        let path = Path::new(MODELS).join(model).join("training_model.onnx");
        let recording = read(&path.with_extension("recorded.safetensors"));
        let graph = load(&path, &recording, None);
        let (after, remarks) = last(&graph).unwrap_or_else(|| panic!("{model} has convolutions"));
        let transposes = |graph: &Graph| count(graph, |name| name == "Transpose");
        report(&format!("{model}: {}", remarks[0]));
        assert_same(&graph, &after, model);
        assert_eq!(transposes(&after), transposes(&graph) + ends, "{model}: {}", remarks[0]);
    }
}

#[test]
fn steps_with_channels_last_are_written_as_onnx() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("step.onnx");
    let file = file.to_str().unwrap();
    let model = "testdata/models/tiny_unet2d/training_model.onnx";
    let call = ["lmsc", "opt", model, "-p", "mixed-precision,layout", "--dim", "batch=2"];
    let text = opt(&call);
    assert_eq!(opt(&[&call[..], &["-o", file]].concat()), "");
    assert!(opt(&["lmsc", "opt", file]) == text);
    assert!(text.contains("bfloat16[2,32,32,8]") && text.contains("ai.lmsc.NhwcConvTransposeGrad"), "{text}");
}
