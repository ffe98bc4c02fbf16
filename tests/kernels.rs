//! Kernels on whole training steps, compared with recordings of onnxruntime: loss, every gradient, running
//! statistics, parameters after the optimizer.
//!
//! The repository holds recordings of small models (`testdata/models/make/record.py`). With `LMSC_RECORDINGS` naming a
//! folder of models and recordings in the layout of `testdata/models`, all of those are run too. `LMSC_REPORT=1`
//! prints the worst error of each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::support::interpreter::Interpreter;
use crate::support::models::MODELS;
use lmsc_ir::{Graph, NodeId, Op};
use lmsc_kernels::StepContext;
use lmsc_onnx::proto::{DimValue, TypeValue};
use lmsc_onnx::{Dims, Model, Stated, link, settle};
use lmsc_passes::{PassCx, PassError, Pipeline};

/// The largest error that is allowed, relative to the tensor's largest element.
const ALLOWED: f64 = 1e-4;

/// Gradients that are 0 but for rounding, because the operators behind them are invariant to scale: compared
/// with a hundredth of the largest gradient.
const VANISHING: &[&str] = &["features.norm0.weight"];

/// Adam divides the gradient by its own size: if gradients are rounding errors, so are its steps. Its results
/// are compared with a tenth of the largest parameter.
const DIVIDES: &[&str] = &["adamw1", "adamw3"];

/// A tensor of a recording.
pub(crate) struct Recorded {
    dims: Vec<u64>,
    is_float: bool,
    bytes: Vec<u8>,
}

impl Recorded {
    fn floats(&self) -> Vec<f32> {
        floats(&self.bytes)
    }
}

pub(crate) fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
}

/// The tensors of a recording, by role, then by name.
pub(crate) type Recording = BTreeMap<String, BTreeMap<String, Recorded>>;

/// Reads a safetensors file.
pub(crate) fn read(path: &Path) -> Recording {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (length, rest) = bytes.split_first_chunk().expect("a header");
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    let header: serde_json::Value = serde_json::from_slice(header).unwrap();
    let mut recording = Recording::new();
    for (name, tensor) in header.as_object().unwrap() {
        let (role, name) = name.split_once('/').expect("a role");
        let numbers = |key: &str| {
            tensor[key].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect::<Vec<_>>()
        };
        let span = numbers("data_offsets");
        let recorded = Recorded {
            dims: numbers("shape"),
            is_float: tensor["dtype"] == "F32",
            bytes: data[span[0] as usize..span[1] as usize].to_vec(),
        };
        recording.entry(role.to_owned()).or_default().insert(name.to_owned(), recorded);
    }
    recording
}

/// The recorded tensor of this role and name.
fn find<'a>(recording: &'a Recording, role: &str, name: &str) -> Option<&'a Recorded> {
    recording.get(role)?.get(name)
}

/// A rewriting of a graph before it runs.
type Rewrite = fn(Graph) -> Graph;

/// The graph, with dimensions as in the recording; with the optimizer beside it, if one is named.
pub(crate) fn load(path: &Path, recording: &Recording, optimizer: Option<&str>) -> Graph {
    let mut model = Model::open(path).unwrap();
    if let Some(name) = optimizer {
        model = link(&model, &Model::open(path.with_file_name(name)).unwrap()).unwrap();
    }
    let mut dims = Dims::none();
    for input in &model.proto.graph.as_ref().unwrap().input {
        let Some(recorded) = find(recording, "feed", input.name()) else { continue };
        let Some(TypeValue::Tensor(declared)) = input.r#type.as_ref().and_then(|t| t.value()) else {
            continue;
        };
        let declared = declared.shape.iter().flat_map(|shape| &shape.dim);
        for (dim, &extent) in declared.zip(&recorded.dims) {
            if let Some(DimValue::Name(name)) = dim.value() {
                dims.bind(name, extent);
            }
        }
    }
    let mut graph = lmsc_onnx::import(&model, &dims).unwrap_or_else(|e| panic!("{e}"));
    settle(&mut graph, &Stated::of(&model).unwrap()).unwrap();
    graph
}

/// The worst error of a comparison, and whose it is.
#[derive(Debug, Default)]
struct Worst {
    error: f64,
    what: String,
    compared: usize,
    /// Whether the graph itself holds the steps of Adam.
    adam: bool,
}

impl Worst {
    /// Compares with the recorded tensor. Errors count relative to its largest element, or to a thousandth of the
    /// largest element of its role where that is larger: gradients that are 0 but for rounding are compared with those
    /// that they are rounding errors of.
    fn compare(&mut self, role: &str, name: &str, found: &[u8], recording: &Recording) {
        let expected = find(recording, role, name).unwrap();
        assert_eq!(found.len(), expected.bytes.len(), "{role} {name}");
        self.compared += 1;
        if !expected.is_float {
            if found != expected.bytes {
                *self = Worst { error: f64::INFINITY, what: format!("{role} {name}"), ..*self };
            }
            return;
        }
        let largest = |list: &[f32]| list.iter().fold(0.0f64, |m, x| m.max(f64::from(x.abs())));
        let of_role =
            recording[role].values().filter(|r| r.is_float).map(|r| largest(&r.floats())).fold(0.0, f64::max);
        let expected = expected.floats();
        let vanishes = VANISHING.iter().any(|v| name.starts_with(v));
        let divides = DIVIDES.contains(&role) || self.adam && name.ends_with("_new");
        let floor = if divides {
            1e-1
        } else if vanishes {
            1e-2
        } else {
            1e-3
        };
        let scale = largest(&expected).max(floor * of_role).max(f64::MIN_POSITIVE);
        let differences = floats(found).into_iter().zip(expected).map(|(a, b)| f64::from((a - b).abs()));
        let error =
            differences.map(|d| if d.is_nan() { f64::INFINITY } else { d }).fold(0.0, f64::max) / scale;
        if error > self.error {
            (self.error, self.what) = (error, format!("{role} {name}"));
        }
    }
}

/// Feeds the recorded tensors; the rest stays 0.
pub(crate) fn feed(interpreter: &mut Interpreter, recording: &Recording) {
    for value in interpreter.inputs() {
        let name = interpreter.graph.value(value).name.clone();
        if let Some(recorded) = find(recording, "feed", &name) {
            interpreter.value_mut(value).copy_from_slice(&recorded.bytes);
        }
    }
}

pub(crate) fn set(interpreter: &mut Interpreter, name: &str, bytes: &[u8]) {
    let value = interpreter.graph.value_named(name).unwrap_or_else(|| panic!("no value {name}"));
    interpreter.value_mut(value).copy_from_slice(bytes);
}

/// Runs the graph once and compares all recorded tensors. Masks that were drawn at random are taken from the recording.
fn run_once(path: &Path, recording: &Recording, rewrite: Rewrite) -> Worst {
    let graph = rewrite(load(path, recording, None));
    let mut interpreter = Interpreter::new(graph).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    feed(&mut interpreter, recording);
    let mut worst = Worst { adam: path.ends_with("train_adam.onnx"), ..Worst::default() };
    let mut draws = false;
    interpreter.run(StepContext::default(), |interpreter, node| {
        let node = interpreter.graph.node(node);
        let random = node.op.effects().random;
        let results: Vec<_> = node.defines().collect();
        for value in results {
            let name = interpreter.graph.value(value).name.clone();
            let Some(recorded) = find(recording, "value", &name) else { continue };
            if random {
                interpreter.value_mut(value).copy_from_slice(&recorded.bytes);
            } else if is_recorded_after(interpreter, value) {
                worst.compare("value", &name, interpreter.value(value), recording);
            }
        }
        draws |= random;
    });
    // Outputs were recorded in another run, which drew other masks.
    if draws {
        return worst;
    }
    let by_name = |name: &str| interpreter.graph.value_named(name);
    for (role, suffix) in [("result", ""), ("grad", ".accumulation.buffer"), ("state", "")] {
        for name in recording.get(role).into_iter().flat_map(BTreeMap::keys) {
            let value = by_name(&format!("{name}{suffix}")).or_else(|| by_name(name));
            // Values that only a rewritten graph had are not in this one.
            if let Some(value) = value {
                worst.compare(role, name, interpreter.value(value), recording);
            }
        }
    }
    worst
}

/// Whether the recorded value is that at the end of its node: not one that shares its bytes with a variable.
fn is_recorded_after(interpreter: &Interpreter, value: lmsc_ir::ValueId) -> bool {
    let producer: Option<NodeId> = interpreter.graph.producer(value);
    producer.is_some_and(|n| interpreter.graph.node(n).updates.is_empty())
}

/// Runs three steps with an optimizer and compares parameters after the first and the third.
fn train(path: &Path, recording: &Recording, (optimizer, file): (&str, &str), rewrite: Rewrite) -> Worst {
    let graph = rewrite(load(path, recording, Some(file)));
    let mut interpreter = Interpreter::new(graph).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut worst = Worst::default();
    let is_random = |&n: &NodeId| interpreter.graph.node(n).op.effects().random;
    if interpreter.graph.order().iter().any(is_random) {
        return worst;
    }
    feed(&mut interpreter, recording);
    set(&mut interpreter, "learning_rate", &1e-3f32.to_le_bytes());
    for step in 1..=3i64 {
        if interpreter.graph.value_named("step").is_some() {
            set(&mut interpreter, "step", &step.to_le_bytes());
        }
        interpreter.run(StepContext { number: step as u64, seed: 0 }, |_, _| {});
        let role = format!("{optimizer}{step}");
        for name in recording.get(&role).into_iter().flat_map(BTreeMap::keys) {
            let value = interpreter.graph.value_named(name).unwrap();
            worst.compare(&role, name, interpreter.value(value), recording);
        }
    }
    worst
}

/// Recordings under the folder, by path.
fn recordings(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(".recorded.safetensors") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Runs every recording under the folder: how many tensors were compared, and for each run a line and whether it is too
/// far off.
fn check(root: &Path, rewrite: Rewrite) -> (usize, Vec<(String, bool)>) {
    let mut lines = Vec::new();
    let mut count = 0;
    for path in recordings(root).into_iter().filter(|p| !p.to_string_lossy().contains("dynseq_bad")) {
        let recording = read(&path);
        let place = path.strip_prefix(root).unwrap();
        let name = place.to_string_lossy().replace(".recorded.safetensors", "");
        let graph = Path::new(MODELS).join(format!("{name}.onnx"));
        if !graph.exists() {
            continue;
        }
        let mut runs = vec![("step", run_once(&graph, &recording, rewrite))];
        for (optimizer, file) in [("adamw", "optimizer_model.onnx"), ("sgd", "optimizer_model_sgd.onnx")] {
            if recording.contains_key(&format!("{optimizer}1")) {
                runs.push((optimizer, train(&graph, &recording, (optimizer, file), rewrite)));
            }
        }
        for (what, worst) in runs {
            let line = format!("{name} {what}: {:.1e} at {} of {}", worst.error, worst.what, worst.compared);
            lines.push((line, worst.error > ALLOWED));
            count += worst.compared;
        }
    }
    (count, lines)
}

#[test]
fn steps_compute_what_onnxruntime_recorded() {
    let (count, mut lines) = check(Path::new(MODELS), |graph| graph);
    assert!(count > 300, "{count} tensors were compared");
    if let Some(folder) = std::env::var_os("LMSC_RECORDINGS") {
        lines.extend(check(Path::new(&folder), |graph| graph).1);
    }
    if std::env::var_os("LMSC_REPORT").is_some() {
        lines.iter().for_each(|(line, _)| println!("{line}"));
    }
    let failures: Vec<String> = lines.into_iter().filter(|l| l.1).map(|l| l.0).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The graph in operators of ONNX, as far as there are rules; as it is if its operators are too old for them.
fn expanded(mut graph: Graph) -> Graph {
    let expand = Pipeline::parse("expand-training-ops").unwrap();
    match expand.run(&mut graph, &PassCx::default()) {
        Ok(_) => {}
        Err(PassError::Call(_)) => assert!(graph.opsets[""] < 13),
        Err(other) => panic!("{other}"),
    }
    graph
}

#[test]
fn expanded_steps_compute_what_onnxruntime_recorded() {
    let (count, lines) = check(Path::new(MODELS), expanded);
    assert!(count > 300, "{count} tensors were compared");
    if std::env::var_os("LMSC_REPORT").is_some() {
        lines.iter().for_each(|(line, _)| println!("{line}"));
    }
    let failures: Vec<String> = lines.into_iter().filter(|l| l.1).map(|l| l.0).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// After expansion, all operators of the models are ONNX's.
#[test]
fn every_operator_of_the_models_has_an_expansion() {
    let mut left = BTreeSet::new();
    for path in
        crate::support::models::models().into_iter().filter(|path| path.ends_with("training_model.onnx"))
    {
        let optimizer = path.with_file_name("optimizer_model.onnx");
        let mut model = Model::open(&path).unwrap();
        if let Ok(optimizer) = Model::open(&optimizer) {
            model = link(&model, &optimizer).unwrap();
        }
        let (_, dims) = crate::support::models::open(&path);
        let graph = expanded(crate::support::models::import(&model, &dims));
        let foreign = |op: &&Op| !op.domain().is_empty() || op.effects().phase.is_some();
        let ops = graph.order().iter().map(|&id| &graph.node(id).op);
        left.extend(ops.filter(foreign).map(|op| format!("{op} of {}", path.display())));
    }
    assert!(left.is_empty(), "{left:?}");
}

/// Every node of every model, in every form that the repository holds, has a kernel.
#[test]
fn every_operator_of_every_model_has_a_kernel() {
    let mut models = crate::support::models::models();
    for extra in [
        "step/train_step_adamw_std.onnx",
        "step/train_step_sgd_std.onnx",
        "step/train_step_adam_legacy.onnx",
        "ortmodule/training_model.onnx",
        "std/train_grad_dropout.onnx",
        "opset14/training_model.onnx",
    ] {
        let folders = std::fs::read_dir(MODELS).unwrap().map(|e| e.unwrap().path().join(extra));
        models.extend(folders.filter(|p| p.exists() && !p.to_string_lossy().contains("dynseq_bad")));
    }
    let mut missing = Vec::new();
    for path in models {
        if let Err(error) = Interpreter::new(crate::support::models::load(&path)) {
            missing.push(format!("{}: {error}", path.display()));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}
