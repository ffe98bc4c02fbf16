//! The cost model on real graphs: operations against published counts, times against published and independent ones,
//! and every operator of every model known.

use std::path::Path;

use crate::support::models::{MODELS, load, load_with, models};
use lmsc_ir::{Graph, Op, Phase, Phases};
use lmsc_onnx::Dims;
use lmsc_plan::Target;
use lmsc_plan::cost::{Costs, MeasuredCost, Profile, is_known, signature};

/// `testdata/models/<name>/training_model.onnx` at these dimensions.
fn training(name: &str, dims: &[(&str, u64)]) -> Graph {
    let mut bound = Dims::none();
    dims.iter().for_each(|&(name, value)| _ = bound.bind(name, value));
    load_with(&Path::new(MODELS).join(name).join("training_model.onnx"), &bound)
}

fn milliseconds(graph: &Graph, target: &str) -> f64 {
    Costs::of(graph, Target::built_in(target).unwrap(), None).total_nanos() as f64 / 1e6
}

/// The operations of nodes that are matrix products or convolutions.
fn product_flops(graph: &Graph, counts: impl Fn(Phase) -> bool) -> f64 {
    let costs = Costs::of(graph, Target::built_in("host").unwrap(), None);
    let phases = Phases::of(graph, |_| None);
    let is_product = |op: &Op| ["Gemm", "MatMul", "Conv"].iter().any(|name| op.name().contains(name));
    let nodes = graph.order().iter().filter(|&&n| is_product(&graph.node(n).op) && counts(phases.phase(n)));
    nodes.map(|&n| costs.work(n).flops as f64).sum()
}

#[track_caller]
fn within(what: &str, found: f64, expected: f64, factor: f64) {
    let ratio = found / expected;
    assert!(ratio < factor && ratio > 1.0 / factor, "{what}: {found:.4}, not {expected:.4}: {ratio:.3}");
}

/// Multiply-adds of one image's forward pass, in units of 10⁹, from the table "All available classification weights" of
/// torchvision's documentation (column GFLOPS).
#[test]
fn operations_are_those_that_torchvision_counts() {
    for (name, published) in [("resnet18", 1.81), ("resnet50", 4.09), ("vgg16", 15.47), ("densenet121", 2.83)]
    {
        let flops = product_flops(&training(name, &[("batch", 16)]), |phase| phase == Phase::Forward);
        within(name, flops / 2.0 / 16.0 / 1e9, published, 1.003);
    }
}

/// Six operations for each weight of a matrix and each token (Kaplan et al., *Scaling laws for neural language models*,
/// arXiv:2001.08361, §2.1), and attention's products: forward 2·2·s²·d in each of 12 layers, backward twice that.
#[test]
fn operations_of_gpt2_are_those_that_its_size_says() {
    let (batch, length, width, layers) = (8.0, 1024.0, 768.0, 12.0);
    let weights = layers * 12.0 * width * width + 50257.0 * width;
    let attention = 3.0 * 4.0 * length * length * width * layers * batch;
    let graph = training("gpt2_small", &[("batch", 8), ("seq", 1024)]);
    let found = product_flops(&graph, |_| true);
    within("gpt2_small", found, 6.0 * weights * batch * length + attention, 1.001);
}

/// A step of each network in a synthetic profile of a V100 which others made, with one share of the peak for each kind of
/// layer: 15.7 TFLOP/s, 0.8 · 900 GB/s, 5 µs for a kernel. Ours knows more operators, such as attention's masks.
#[test]
fn steps_take_as_long_as_in_an_independent_profile() {
    for (name, dims, expected) in [
        ("resnet50", &[("batch", 64)][..], 261.0),
        ("resnet50", &[("batch", 256)], 1037.0),
        ("vgg16", &[("batch", 64)], 609.0),
        ("densenet121", &[("batch", 64)], 233.0),
        ("gpt2_small", &[("batch", 8), ("seq", 1024)], 734.0),
    ] {
        let graph = training(name, dims);
        within(&format!("{name} {dims:?}"), milliseconds(&graph, "v100-nvlink2"), expected, 1.10);
        // The card for PCI Express is clocked lower: 14 TFLOP/s.
        within(&format!("{name} {dims:?}"), milliseconds(&graph, "v100-pcie"), expected, 1.20);
    }
}

/// TFLMS trains ResNet-50 at 235, 255 and 258 images per second where it need not swap (OOC, table 1, first row).
#[test]
fn resnet50_on_the_machine_of_tflms_takes_what_was_measured() {
    for (batch, images_per_second) in [(64, 235.0), (128, 255.0), (190, 258.0)] {
        let measured = batch as f64 / images_per_second * 1e3;
        let found = milliseconds(&training("resnet50", &[("batch", batch)]), "p100-nvlink");
        // Slower than measured: cuDNN computes windows of 3·3 with fewer multiplications (Winograd).
        within(&format!("batch {batch}"), found, measured, 1.4);
    }
}

#[test]
fn faster_targets_are_faster() {
    let graph = training("resnet50", &[("batch", 64)]);
    let by_speed =
        ["host", "p100-nvlink", "v100-pcie", "v100-nvlink2", "a100-pcie4", "h100-pcie5", "h200-pcie5"];
    let times = by_speed.map(|target| milliseconds(&graph, target));
    assert!(times.windows(2).all(|pair| pair[0] > pair[1]), "{times:?}");
}

#[test]
fn every_operator_with_a_shape_has_a_cost() {
    let operators = lmsc_onnx::shapes::operators();
    let unknown: Vec<_> =
        operators.iter().filter(|(domain, name)| !is_known(&Op::new(domain, name))).collect();
    assert!(unknown.is_empty(), "add a row to plan/cost/src/table.rs for each of {unknown:?}");
}

#[test]
fn no_node_of_a_real_graph_is_guessed() {
    for path in models() {
        let costs = Costs::of(&load(&path), Target::built_in("v100-pcie").unwrap(), None);
        assert!(costs.guessed().is_empty(), "{}: {:?}", path.display(), costs.guessed());
        assert!(costs.coverage().nodes > 10 && costs.total_nanos() > 0, "{}", path.display());
    }
}

/// A profile filled with the model's times gives the model's times: a signature contains everything that the model reads.
#[test]
fn signatures_tell_apart_what_costs_differently() {
    let target = Target::built_in("v100-pcie").unwrap();
    for path in models() {
        let graph = load(&path);
        let modelled = Costs::of(&graph, target, None);
        let mut profile = Profile::new("model", None);
        for &node in graph.order().iter().filter(|&&n| modelled.nanos(n) > 0) {
            let measured =
                MeasuredCost { nanos: modelled.nanos(node), workspace: modelled.workspace(node).0 };
            profile.insert(signature(&graph, graph.node(node)), measured);
        }
        let profile = Profile::parse(&profile.to_json(), "model").unwrap();
        let costs = Costs::of(&graph, target, Some(&profile));
        let coverage = costs.coverage();
        assert_eq!(coverage.measured_nodes, coverage.nodes, "{}", path.display());
        for &node in graph.order() {
            assert_eq!(
                costs.nanos(node),
                modelled.nanos(node),
                "{}: {}",
                path.display(),
                graph.node(node).name
            );
            assert_eq!(costs.workspace(node), modelled.workspace(node));
        }
    }
}
