//! The pass `chunk-loss`: random steps and models compute the same values as before, gradients but for rounding.
//! `LMSC_REPORT=1` prints the numbers.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::kernels::{floats, load, read};
use crate::support::interpreter::Interpreter;
use crate::support::models::MODELS;
use lmsc_ir::rng::Source;
use lmsc_ir::{ElementType, Graph, ValueId};
use lmsc_kernels::StepContext;
use lmsc_passes::{PassCx, Pipeline};
use lmsc_testing::{Rng, Size, training_graph};

pub(crate) fn report(line: &str) {
    if std::env::var_os("LMSC_REPORT").is_some() {
        _ = writeln!(std::io::stdout(), "{line}");
    }
}

/// The graph whose chunks have at most `rows` rows, and the remarks of the pass; none if it changed nothing.
fn chunked(graph: &Graph, rows: usize) -> Option<(Graph, Vec<String>)> {
    let mut after = graph.clone();
    let ran = Pipeline::parse(&format!("chunk-loss{{rows={rows}}}"))
        .unwrap()
        .run(&mut after, &PassCx::default())
        .unwrap_or_else(|e| panic!("{e}"));
    let outcome = &ran[0].outcome;
    outcome.changed.then(|| (after, outcome.remarks.clone()))
}

/// The float outputs and variables after a step on numbers that depend on names alone. Labels are below `classes`.
pub(crate) fn run(graph: &Graph, classes: usize) -> Vec<(String, Vec<f32>)> {
    run_beside(graph, classes, 0)
}

/// The same on numbers that differ in their last bits, in another way for each `beside` but 0.
fn run_beside(graph: &Graph, classes: usize, beside: u64) -> Vec<(String, Vec<f32>)> {
    let mut bits = Rng::new(beside);
    let mut interpreter = Interpreter::new(graph.clone()).unwrap_or_else(|e| panic!("{e}"));
    let element = |interpreter: &Interpreter, value: ValueId| {
        interpreter.graph.value(value).ty.as_tensor().map(|tensor| tensor.element)
    };
    for value in interpreter.inputs() {
        let name = interpreter.graph.value(value).name.to_string();
        let mut rng = Rng::new(name.bytes().fold(7, |h, b| h.wrapping_mul(31) ^ u64::from(b)));
        match element(&interpreter, value) {
            Some(ElementType::Float) => {
                let mut number = || {
                    let number = (rng.below(1 << 12) as f32 / (1 << 12) as f32) * 0.75 + 0.125;
                    let last = if beside > 0 { bits.below(5) as u32 } else { 0 };
                    f32::from_bits(number.to_bits() + last).to_le_bytes()
                };
                interpreter.value_mut(value).as_chunks_mut().0.iter_mut().for_each(|bytes| *bytes = number());
            }
            Some(ElementType::Int64) => {
                let mut number = || (rng.below(classes.max(1)) as i64).to_le_bytes();
                interpreter.value_mut(value).as_chunks_mut().0.iter_mut().for_each(|b| *b = number());
            }
            _ => {}
        }
    }
    interpreter.run(StepContext { number: 1, seed: 0 }, |_, _| {});
    results(&interpreter)
}

/// The float outputs and variables.
fn results(interpreter: &Interpreter) -> Vec<(String, Vec<f32>)> {
    let values = interpreter.graph.outputs.iter().copied().chain(interpreter.graph.variables());
    let is_float = |value: &ValueId| {
        interpreter.graph.value(*value).ty.as_tensor().is_some_and(|ty| ty.element == ElementType::Float)
    };
    values
        .filter(is_float)
        .map(|value| (interpreter.graph.value(value).name.to_string(), floats(interpreter.value(value))))
        .collect()
}

/// The distance of two lists, relative to the length of the first.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let norm = |list: &mut dyn Iterator<Item = f64>| list.map(|x| x * x).sum::<f64>().sqrt();
    let off = norm(&mut a.iter().zip(b).map(|(a, b)| f64::from(a - b)));
    let size = norm(&mut a.iter().map(|&a| f64::from(a)));
    if off == 0.0 { 0.0 } else { off / size.max(1e-6) }
}

/// The largest distance among the results.
fn worst(before: &[(String, Vec<f32>)], after: &[(String, Vec<f32>)]) -> (f64, String) {
    assert!(before.iter().map(|it| &it.0).eq(after.iter().map(|it| &it.0)), "names");
    let each = before.iter().zip(after).map(|((name, a), (_, b))| (distance(a, b), name.clone()));
    each.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
}

#[test]
fn random_steps_compute_the_same() {
    let count = lmsc_testing::cases(150, 600, 2000);
    let (mut cut, mut most, mut whole) = (0, (0.0, String::new()), 0);
    // Steps whose terms cancel: rounding is all that is left, and the last bits of inputs change as much.
    let mut sensitive = 0;
    for seed in 0..count {
        let mut rng = Rng::new(seed);
        let size = Size { nodes: 10 + (seed % 50) as usize, tensor_bytes: 1 << 14 };
        let graph = training_graph(&mut rng, size);
        let rows = 1 + rng.below(5);
        let Some((after, _)) = chunked(&graph, rows) else {
            whole += 1;
            continue;
        };
        cut += 1;
        let (before, chunks) = (run(&graph, 2), run(&after, 2));
        let error = worst(&before, &chunks);
        if error.0 >= 1e-4 {
            sensitive += 1;
            let beside: Vec<_> = (1..=4).map(|beside| run_beside(&graph, 2, beside)).collect();
            for (at, ((name, a), (_, b))) in before.iter().zip(&chunks).enumerate() {
                let own = beside.iter().map(|other| distance(a, &other[at].1)).fold(0.0, f64::max);
                let off = distance(a, b);
                assert!(
                    off < 1e-4 + 8.0 * own,
                    "seed {seed}, {rows} rows: {name} is off by {off}, {own} by itself"
                );
            }
        } else if error.0 > most.0 {
            most = (error.0, format!("seed {seed}, {rows} rows: {}", error.1));
        }
    }
    report(&format!(
        "{cut} steps in chunks, {whole} whole; {sensitive} sensitive to rounding, the others off by at most {:.1e}, {}",
        most.0, most.1
    ));
    assert!(cut > 30, "{cut} steps have chunks");
    assert!(sensitive * 50 <= cut, "{sensitive} of {cut} steps are sensitive to rounding");
}

/// Training graphs with a recording.
fn models() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::from(MODELS)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "onnx")
                && path.with_extension("recorded.safetensors").exists()
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Training graphs in every form that the models have, each with a recording that has its extents.
pub(crate) fn files() -> Vec<(PathBuf, PathBuf)> {
    let mut found = Vec::new();
    for recorded in models() {
        let folder = recorded.parent().unwrap();
        found.push((recorded.clone(), recorded.clone()));
        for form in ["static", "opset14", "step", "std", "ortmodule"] {
            let Ok(entries) = std::fs::read_dir(folder.join(form)) else { continue };
            let paths = entries.map(|entry| entry.unwrap().path());
            let graphs = paths.filter(|path| {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                name.ends_with(".onnx") && name.starts_with("train")
            });
            found.extend(graphs.map(|path| (path, recorded.clone())));
        }
    }
    found.sort();
    found
}

#[test]
fn models_compute_the_same() {
    let mut cut = 0;
    for (path, recorded) in files() {
        let recording = read(&recorded.with_extension("recorded.safetensors"));
        let graph = load(&path, &recording, None);
        let name = path.strip_prefix(MODELS).unwrap_or(Path::new("")).display().to_string();
        if graph.opsets.get("").copied().unwrap_or_default() < 13 {
            continue;
        }
        for rows in [1, 3] {
            let Some((after, remarks)) = chunked(&graph, rows) else {
                report(&format!("{name}: whole"));
                continue;
            };
            cut += 1;
            let (error, value) = worst(&run(&graph, 2), &run(&after, 2));
            report(&format!("{name}, {rows} rows: {remarks:?}, off by at most {error:.1e} ({value})"));
            // Adam divides small gradients by their own size.
            let allowed = if name.contains("adam") { 1e-3 } else { 2e-5 };
            assert!(error < allowed, "{name}, {rows} rows: {value} is off by {error}");
        }
    }
    assert!(cut > 20, "{cut}");
}

/// On the host a product sums blocks of 256 terms in order, so sums over chunks of such rows have the same bits.
#[test]
fn gradients_have_the_same_bits_in_chunks_of_256_rows() {
    let text = "<opset: \"\" = 17, \"com.microsoft\" = 1>
        loss (float[600,24] x, float[24,50] w, int64[600] labels) => (float[] loss, float[600,24] dx, float[24,50] dw, float[50] db)
        < float[] rate = {1.0}, int64[1] rows = {0} > {
            [scores] float[600,50] scores = MatMul(x, w)
            [loss] float[] loss, float[600,50] log = SoftmaxCrossEntropyLoss<ignore_index = 1>(scores, labels)
            [ds] float[600,50] ds = com.microsoft.SoftmaxCrossEntropyLossGrad<ignore_index = 1>(rate, log, labels)
            [dx] float[600,24] dx = com.microsoft.FusedMatMul<transB = 1>(ds, w)
            [dw] float[24,50] dw = com.microsoft.FusedMatMul<transA = 1>(x, ds)
            [db] float[50] db = ReduceSum<keepdims = 0>(ds, rows)
        }";
    let graph = Graph::parse(text).unwrap();
    let (after, _) = chunked(&graph, 256).expect("it has chunks");
    let (before, after) = (run(&graph, 50), run(&after, 50));
    for ((name, a), (_, b)) in before.iter().zip(&after) {
        match &**name {
            "dx" | "dw" => assert!(a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}"),
            _ => assert!(distance(a, b) < 1e-6, "{name}: {}", distance(a, b)),
        }
    }
}
