//! The pass `mixed-precision`, to both short floats: random steps and models compute nearly the same values as before, learn alike,
//! and take much less memory; a step whose gradients overflow is skipped. `LMSC_REPORT=1` prints the numbers.

use std::io::Write;
use std::path::Path;

use crate::kernels::{Recording, feed, floats, load, read, set};
use crate::support::Bench;
use crate::support::interpreter::Interpreter;
use crate::support::models::MODELS;
use lmsc_cuda::Precision;
use lmsc_cuda::engines::{Card, Engines};
use lmsc_ir::rng::Source;
use lmsc_ir::{ElementType, Graph, ValueId};
use lmsc_kernels::StepContext;
use lmsc_passes::{MachineModel, PassCx, PassError, Pipeline, Workspaces};
use lmsc_testing::{Rng, Size, training_graph};

/// The graph after the pass, in bfloat16.
fn mixed(graph: Graph) -> Graph {
    passed("mixed-precision", graph)
}

/// The graph after the pass, in float16.
fn half(graph: Graph) -> Graph {
    passed("mixed-precision{type=f16}", graph)
}

fn passed(pass: &str, mut graph: Graph) -> Graph {
    Pipeline::parse(pass).unwrap().run(&mut graph, &PassCx::default()).unwrap_or_else(|e| panic!("{e}"));
    graph
}

/// The loss scale that steps in float16 begin with.
const FIRST_SCALE: f32 = 65_536.0;

fn report(line: &str) {
    if std::env::var_os("LMSC_REPORT").is_some() {
        _ = writeln!(std::io::stdout(), "{line}");
    }
}

/// Runs a step on numbers that depend on names alone, and returns the float outputs and variables. For a step that its loss scale
/// skips there are none, and its variables have kept their values, but for running statistics, which come from the forward pass.
fn run(graph: &Graph) -> Option<Vec<(String, Vec<f32>)>> {
    let mut interpreter = Interpreter::new(graph.clone()).unwrap_or_else(|e| panic!("{e}"));
    let element = |interpreter: &Interpreter, value: ValueId| {
        interpreter.graph.value(value).ty.as_tensor().map(|tensor| tensor.element)
    };
    for value in interpreter.inputs() {
        let name = interpreter.graph.value(value).name.to_string();
        let mut rng = Rng::new(name.bytes().fold(7, |h, b| h.wrapping_mul(31) ^ u64::from(b)));
        match element(&interpreter, value) {
            Some(ElementType::Float) if name == "loss_scale" => {
                set(&mut interpreter, &name, &FIRST_SCALE.to_le_bytes());
            }
            Some(ElementType::Float) => {
                // Steps and moments are not negative.
                let mut number =
                    || ((rng.below(1 << 12) as f32 / (1 << 12) as f32) * 0.75 + 0.125).to_le_bytes();
                interpreter.value_mut(value).as_chunks_mut().0.iter_mut().for_each(|bytes| *bytes = number());
            }
            Some(ElementType::Int64) => {
                interpreter
                    .value_mut(value)
                    .as_chunks_mut()
                    .0
                    .iter_mut()
                    .for_each(|b| *b = 1i64.to_le_bytes());
            }
            _ => {}
        }
    }
    let variables = |interpreter: &Interpreter| -> Vec<Vec<u8>> {
        let variables = interpreter.graph.variables().into_iter();
        let name = |variable: ValueId| interpreter.graph.value(variable).name.to_string();
        let updated =
            variables.filter(|&v| !name(v).starts_with("loss_scale") && !name(v).contains(".running_"));
        updated.map(|variable| interpreter.value(variable).to_vec()).collect()
    };
    let before = variables(&interpreter);
    interpreter.run(StepContext { number: 1, seed: 0 }, |_, _| {});
    let scale = interpreter.graph.value_named("loss_scale");
    if scale.is_some_and(|scale| floats(interpreter.value(scale))[0] < FIRST_SCALE) {
        assert!(variables(&interpreter) == before, "a step that is skipped changes variables");
        return None;
    }
    let values = interpreter.graph.outputs.iter().copied().chain(interpreter.graph.variables());
    let values = values
        .filter(|&value| element(&interpreter, value) == Some(ElementType::Float))
        .map(|value| (interpreter.graph.value(value).name.to_string(), floats(interpreter.value(value))));
    Some(values.collect())
}

/// The distance of two lists, relative to the length of the first.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let norm = |list: &mut dyn Iterator<Item = f64>| list.map(|x| x * x).sum::<f64>().sqrt();
    let off = norm(&mut a.iter().zip(b).map(|(a, b)| f64::from(a - b)));
    let size = norm(&mut a.iter().map(|&a| f64::from(a)));
    if off == 0.0 { 0.0 } else { off / size.max(1e-6) }
}

#[test]
fn random_steps_compute_nearly_the_same() {
    let count = lmsc_testing::cases(60, 150, 400);
    let (mut errors, mut compared, mut in_float16, mut skipped) = (Vec::new(), 0, 0, 0);
    for seed in 0..count {
        let size = Size { nodes: 10 + (seed % 70) as usize, tensor_bytes: 1 << 16 };
        let graph = training_graph(&mut Rng::new(seed), size);
        let mut after = graph.clone();
        // Some of these steps write variables without a result, so that their updates cannot be skipped.
        let pass = if seed % 2 == 0 { "mixed-precision{type=f16}" } else { "mixed-precision" };
        match Pipeline::parse(pass).unwrap().run(&mut after, &PassCx::default()) {
            Ok(_) => in_float16 += u64::from(seed % 2 == 0),
            Err(PassError::Call(_)) if seed % 2 == 0 => continue,
            Err(error) => panic!("seed {seed}: {error}"),
        }
        let before = run(&graph).expect("the step has no loss scale");
        let Some(after) = run(&after) else {
            skipped += 1;
            continue;
        };
        for (name, before) in &before {
            let after = after.iter().find(|(other, _)| other == name);
            let (_, after) = after.unwrap_or_else(|| panic!("seed {seed}: {name}"));
            compared += 1;
            errors.push((
                distance(before, after),
                format!(
                    "seed {seed}: {name} {:?} {:?}",
                    &before[..before.len().min(4)],
                    &after[..after.len().min(4)]
                ),
            ));
        }
    }
    errors.sort_by(|a, b| b.0.total_cmp(&a.0));
    errors.iter().take(20).for_each(|(error, what)| report(&format!("{error:.2e} {what}")));
    report(&format!("{in_float16} of {count} steps in float16, {skipped} of them skipped"));
    assert!(in_float16 - skipped > count / 10, "{in_float16} of {count} steps, {skipped} of them skipped");
    assert!(compared > 200, "{compared} values were compared");
    let median = errors[errors.len() / 2].0;
    assert!(median < 0.01, "{median}");
    // The rest are gradients that are 0 but for rounding, and Adam's steps from them.
    let most = &errors[errors.len() / 10];
    assert!(most.0 < 0.05, "{most:?}");
}

/// The losses of steps on one batch.
fn losses(path: &Path, recording: &Recording, steps: i64, rewrite: fn(Graph) -> Graph) -> Vec<f32> {
    let graph = rewrite(load(path, recording, Some("optimizer_model.onnx")));
    let mut interpreter = Interpreter::new(graph).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    feed(&mut interpreter, recording);
    set(&mut interpreter, "learning_rate", &1e-3f32.to_le_bytes());
    let phases = lmsc_ir::Phases::of(&interpreter.graph, |_| None);
    let loss = phases.loss.expect("the model has a loss");
    let step = |step: i64| {
        if interpreter.graph.value_named("step").is_some() {
            set(&mut interpreter, "step", &step.to_le_bytes());
        }
        interpreter.run(StepContext { number: step as u64, seed: 0 }, |_, _| {});
        floats(interpreter.value(loss))[0]
    };
    (1..=steps).map(step).collect()
}

#[test]
fn models_learn_alike() {
    let models: &[&str] =
        &["tiny_mlp", "tiny_cnn", "tiny_gpt2", "tiny_bert", "tiny_unet2d", "tiny_densenet", "tiny_mlp_mse"];
    for model in models {
        let path = Path::new(MODELS).join(model).join("training_model.onnx");
        let recording = read(&path.with_extension("recorded.safetensors"));
        let steps = lmsc_testing::cases(12, 12, 50);
        let before = losses(&path, &recording, steps, |graph| graph);
        for (name, rewrite) in [("bfloat16", mixed as fn(Graph) -> Graph), ("float16", half)] {
            let after = losses(&path, &recording, steps, rewrite);
            let off = before.iter().zip(&after).map(|(a, b)| ((a - b) / a).abs()).fold(0.0, f32::max);
            let mean = |list: &[f32]| list.iter().sum::<f32>() / list.len() as f32;
            report(&format!(
                "{model}: {steps} steps, loss {:.4} to {:.4}, in {name} {:.4} to {:.4}; off by at most {:.2} %, by {:.2} % on average",
                before[0],
                before[before.len() - 1],
                after[0],
                after[after.len() - 1],
                off * 100.0,
                (mean(&after) / mean(&before) - 1.0) * 100.0
            ));
            assert!(before[before.len() - 1] < before[0], "{model} does not learn");
            assert!(off < 0.02, "{model} in {name}: {before:?} {after:?}");
        }
    }
}

#[test]
fn a_step_whose_gradients_overflow_is_skipped() {
    let path = Path::new(MODELS).join("tiny_gpt2/training_model.onnx");
    let recording = read(&path.with_extension("recorded.safetensors"));
    let graph = half(load(&path, &recording, Some("optimizer_model.onnx")));
    let mut interpreter = Interpreter::new(graph).unwrap_or_else(|e| panic!("{e}"));
    feed(&mut interpreter, &recording);
    set(&mut interpreter, "learning_rate", &1e-3f32.to_le_bytes());
    let mut variables = interpreter.graph.variables();
    let named = |name: &str| interpreter.graph.value_named(name).unwrap_or_else(|| panic!("{name}"));
    let (scale, steps) = (named("loss_scale"), named("loss_scale.steps"));
    variables.retain(|&variable| variable != scale && variable != steps);
    let all = |interpreter: &Interpreter| -> Vec<Vec<u8>> {
        variables.iter().map(|&variable| interpreter.value(variable).to_vec()).collect()
    };
    let run = |interpreter: &mut Interpreter, number: u64, of: f32, after: i64| {
        interpreter.value_mut(scale).copy_from_slice(&of.to_le_bytes());
        interpreter.value_mut(steps).copy_from_slice(&after.to_le_bytes());
        let before = all(interpreter);
        set(interpreter, "step", &(number as i64).to_le_bytes());
        interpreter.run(StepContext { number, seed: 0 }, |_, _| {});
        let count = i64::from_le_bytes(interpreter.value(steps).try_into().unwrap());
        (all(interpreter) == before, floats(interpreter.value(scale))[0], count)
    };
    // Whether all variables kept their values, the next scale, and the steps since it changed.
    assert_eq!(run(&mut interpreter, 1, 65_536.0, 0), (false, 65_536.0, 1));
    assert_eq!(run(&mut interpreter, 2, 65_536.0, 1_999), (false, 131_072.0, 0));
    assert_eq!(run(&mut interpreter, 3, 1e30, 7), (true, 5e29, 0));
    assert_eq!(run(&mut interpreter, 4, f32::INFINITY, 7), (true, f32::INFINITY, 0));
    assert_eq!(run(&mut interpreter, 5, 1e-30, 7), (false, 1e-30, 8));
}

/// An update whose variable keeps its old value at hand, and the numbers that the pass adds, come back from a file as they were.
#[test]
fn a_step_in_float16_is_written_as_onnx() {
    let bench = Bench::new();
    for (model, dims) in [("tiny_mlp", ""), ("tiny_gpt2", " --dim seq=8"), ("tiny_cnn", "")] {
        let folder = format!("testdata/models/{model}");
        let linked =
            format!("{folder}/static/training_model.onnx --optimizer {folder}/static/optimizer_model.onnx");
        for step in [linked, format!("{folder}/step/train_step_adamw_std.onnx --dim batch=2{dims}")] {
            let pass = "-p mixed-precision{type=f16}";
            assert_eq!(bench.run(&format!("opt {step} {pass} -o @/direct.lms")).code, 0, "{step}");
            let written = bench.run(&format!("opt {step} {pass} -o @/short.onnx"));
            assert_eq!(written.code, 0, "{step}: {}", written.stderr);
            assert_eq!(bench.run("opt @/short.onnx -o @/read.lms").code, 0, "{step}");
            let text = |name: &str| std::fs::read_to_string(bench.path(name)).unwrap();
            assert_eq!(text("direct.lms"), text("read.lms"), "{step}");
            // The scale, and the steps since it changed, are in a checkpoint.
            let run = |arguments: &str| {
                let ran = bench.run(&format!("run @/short.onnx --seed 1 {arguments}"));
                assert_eq!(ran.code, 0, "{step}: {}", ran.stderr);
            };
            run("--steps 3 --save @/at-once");
            run("--steps 2 --save @/first");
            run("--steps 1 --resume @/first --save @/then");
            assert_eq!(
                std::fs::read(bench.path("at-once")).unwrap(),
                std::fs::read(bench.path("then")).unwrap()
            );
        }
    }
}

#[test]
fn peaks_are_about_six_tenths() {
    let models = [
        ("gpt2_small/step/train_step_adamw_std.onnx", &[("batch", 8), ("seq", 1024)][..]),
        ("resnet50/step/train_step_adamw_std.onnx", &[("batch", 64)]),
    ];
    for target in ["host", "a100-pcie4"] {
        let target = lmsc_plan::Target::built_in(target).unwrap();
        for (model, dims) in models {
            let model_file = lmsc_onnx::Model::open(Path::new(MODELS).join(model)).unwrap();
            let mut bound = lmsc_onnx::Dims::none();
            for &(name, extent) in dims {
                bound.bind(name, extent);
            }
            let mut graph = lmsc_onnx::import(&model_file, &bound).unwrap_or_else(|e| panic!("{model}: {e}"));
            lmsc_onnx::settle(&mut graph, &lmsc_onnx::Stated::of(&model_file).unwrap()).unwrap();
            let card = target.card.as_deref().and_then(Card::named).cloned();
            let workspaces = if target.name == "host" {
                Workspaces::new(lmsc_runtime::workspaces)
            } else {
                Workspaces::new(move |graph| {
                    Engines::recorded(card.clone(), Precision::F32).workspaces(graph)
                })
            };
            let cx = PassCx {
                machine: MachineModel {
                    target: Some(target.clone()),
                    workspaces: Some(workspaces),
                    ..MachineModel::default()
                },
                ..PassCx::default()
            };
            let (before, after) = (cx.memory(&graph).peak(), cx.memory(&mixed(graph.clone())).peak());
            let ratio = after.0 as f64 / before.0 as f64;
            report(&format!("{:<12} {model:<46} {before:>12} {after:>12} {ratio:.3}", target.name));
            // On a GPU the sums over rows of some gradients still have rooms of their own.
            let limit = if target.name == "host" { 0.6 } else { 0.63 };
            assert!(ratio <= limit, "{model} on {}: {before}, in bfloat16 {after}", target.name);
        }
    }
}
