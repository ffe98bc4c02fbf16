//! Training steps on the host's kernels: seconds a step, and which operators they go to.
//!
//! `cargo bench --bench steps -- MODEL.onnx [--optimizer OPT.onnx] [--dim NAME=VALUE]… [--steps N]`; run by
//! `scripts/compare_steps.py`, which runs the same step in onnxruntime-training. Buffers are reused from step to step.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its answer is what it prints")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lmsc_ir::{ElementType, Type};
use lmsc_kernels::StepContext;
use lmsc_onnx::{Dims, Model, Stated, link, settle};

#[path = "../tests/support/interpreter.rs"]
mod interpreter;

use interpreter::Interpreter;

fn main() {
    lmsc_kernels::compute_here(usize::MAX);
    let mut arguments = std::env::args().skip(1);
    let (mut model, mut optimizer, mut dims, mut steps) = (None, None, Dims::none(), 3);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().expect("a value");
        match &*argument {
            "--bench" => {}
            "--optimizer" => optimizer = Some(value()),
            "--steps" => steps = value().parse().expect("a number"),
            "--dim" => {
                let value = value();
                let (name, extent) = value.split_once('=').expect("NAME=VALUE");
                dims.bind(name, extent.parse().expect("a number"));
            }
            _ => model = Some(PathBuf::from(argument)),
        }
    }
    let Some(model) = model else { return };
    let mut model = Model::open(&model).expect("a model");
    if let Some(optimizer) = optimizer {
        model = link(&model, &Model::open(PathBuf::from(optimizer)).expect("an optimizer")).expect("a step");
    }
    let mut graph = lmsc_onnx::import(&model, &dims).unwrap_or_else(|e| panic!("{e}"));
    settle(&mut graph, &Stated::of(&model).unwrap()).expect("a step");
    let mut interpreter = Interpreter::new(graph).unwrap_or_else(|e| panic!("{e}"));
    fill(&mut interpreter);
    let (bytes, workspace) = interpreter.bytes();
    let mut best = Duration::MAX;
    let mut profile: BTreeMap<String, (Duration, usize)> = BTreeMap::new();
    for number in 0..=steps {
        let mut last = Instant::now();
        let start = last;
        profile.clear();
        interpreter.run(StepContext { number, seed: 0 }, |interpreter, node| {
            let now = Instant::now();
            let entry = profile.entry(interpreter.graph.node(node).op.to_string()).or_default();
            *entry = (entry.0 + (now - last), entry.1 + 1);
            last = now;
        });
        // The first step touches the memory.
        if number > 0 {
            best = best.min(start.elapsed());
            eprintln!("step {:.4}", start.elapsed().as_secs_f64());
        }
    }
    let mut profile: Vec<_> = profile.into_iter().collect();
    profile.sort_by_key(|(_, (time, _))| std::cmp::Reverse(*time));
    for (op, (time, count)) in profile.iter().take(25) {
        eprintln!("{:9.2} ms {count:5} {op}", time.as_secs_f64() * 1e3);
    }
    // Times of a step that computes no numbers would say nothing.
    for number in scalars(&interpreter) {
        assert!(number.is_finite(), "the last step's loss is {number}");
        eprintln!("loss {number}");
    }
    eprintln!("{} MiB of buffers, {} MiB of workspace", bytes >> 20, workspace >> 20);
    println!("{:.6}", best.as_secs_f64());
}

/// The outputs of one number, such as the loss.
fn scalars(interpreter: &Interpreter) -> Vec<f32> {
    let graph = &interpreter.graph;
    let is_number = |ty: &Type| {
        let tensor = ty.as_tensor().filter(|t| t.element == ElementType::Float);
        tensor.is_some_and(|t| t.element_count() == Some(1))
    };
    let numbers = graph.outputs.iter().filter(|&&output| is_number(&graph.value(output).ty));
    let read = |&output| f32::from_le_bytes(interpreter.value(output).try_into().expect("four bytes"));
    numbers.map(read).collect()
}

/// Small numbers in every input, labels and indices of 0, gradients that are overwritten.
fn fill(interpreter: &mut Interpreter) {
    let mut state = 1u32;
    for value in interpreter.inputs() {
        let name = interpreter.graph.value(value).name.clone();
        let Type::Tensor(ty) = interpreter.graph.value(value).ty.clone() else { continue };
        let bytes = interpreter.value_mut(value);
        match ty.element {
            ElementType::Float => {
                let variance = name.ends_with("running_var");
                let moment = name.ends_with(".exp_avg") || name.ends_with(".exp_avg_sq");
                for out in bytes.as_chunks_mut().0 {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let random = (state >> 8) as f32 / (1 << 24) as f32 - 0.5;
                    let number = if variance {
                        1.0
                    } else if moment {
                        0.0
                    } else {
                        0.1 * random
                    };
                    *out = number.to_le_bytes();
                }
            }
            ElementType::Bool => bytes.fill(1),
            _ if &*name == "step" => bytes.copy_from_slice(&1i64.to_le_bytes()),
            _ => {}
        }
    }
}
