//! Every real model imports, and every value in it has the type that it had when the model ran.
//!
//! The models are those of `testdata/models`, and of the folder that `LMSC_CORPUS` names, if it is set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lmsc_ir::{Advice, Graph, Type};
use lmsc_onnx::file::Model;
use lmsc_onnx::import::{Dims, import};
use lmsc_onnx::proto::{DimValue, TypeValue};
use lmsc_onnx::shapes::constants;
use serde_json::Value;

/// The values observed when a model ran.
struct Run {
    /// Types of inputs by name.
    inputs: BTreeMap<String, String>,
    /// Type, and elements where they are known, by name.
    tensors: BTreeMap<String, (String, Option<Vec<i64>>)>,
    /// Whether all elements that are given follow from shapes and constants.
    only_derivable: bool,
}

fn roots() -> Vec<PathBuf> {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/models");
    let others = std::env::var_os("LMSC_CORPUS").map(PathBuf::from);
    std::iter::once(ours).chain(others).filter(|p| p.is_dir()).collect()
}

fn models() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = roots();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "onnx") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// `int64[2] = 4,16` as a type and its elements.
fn parse(text: &str) -> (String, Option<Vec<i64>>) {
    match text.split_once(" = ") {
        None => (text.to_owned(), None),
        Some((ty, elements)) => {
            let element = |e: &str| match e.trim() {
                "true" => 1,
                "false" => 0,
                number => number.parse().unwrap(),
            };
            let elements = elements.split(',').filter(|e| !e.trim().is_empty()).map(element).collect();
            (ty.to_owned(), Some(elements))
        }
    }
}

fn flat(value: &Value, out: &mut Vec<i64>) {
    match value {
        Value::Array(list) => list.iter().for_each(|v| flat(v, out)),
        Value::Bool(b) => out.push(i64::from(*b)),
        other => out.extend(other.as_i64()),
    }
}

/// `{"dtype": "int64", "shape": [2], "small_value": [4, 16]}` as a type and its elements.
fn long_form(value: &Value) -> (String, Option<Vec<i64>>) {
    let shape: Vec<String> = value["shape"].as_array().unwrap().iter().map(|d| d.to_string()).collect();
    let elements = value.get("small_value").map(|v| {
        let mut out = Vec::new();
        flat(v, &mut out);
        out
    });
    (format!("{}[{}]", value["dtype"].as_str().unwrap(), shape.join(",")), elements)
}

fn truth(model: &Path) -> Option<Vec<Run>> {
    let text = std::fs::read_to_string(model.with_extension("shapes.json")).ok()?;
    let json: Value = serde_json::from_str(&text).unwrap();
    let runs = json["runs"].as_array().unwrap();
    if json.get("tensors").is_none() {
        let map = |v: &Value| -> BTreeMap<String, (String, Option<Vec<i64>>)> {
            v.as_object().unwrap().iter().map(|(name, v)| (name.clone(), long_form(v))).collect()
        };
        let run = |r: &Value| Run {
            inputs: map(&r["inputs"]).into_iter().map(|(name, (ty, _))| (name, ty)).collect(),
            tensors: map(&r["tensors"]),
            only_derivable: false,
        };
        return Some(runs.iter().map(run).collect());
    }
    let of_run = |v: &Value, i: usize| {
        let text = v.as_str().or_else(|| v[i].as_str()).unwrap();
        parse(text)
    };
    let map = |section: &str, i: usize| -> BTreeMap<String, (String, Option<Vec<i64>>)> {
        json[section].as_object().unwrap().iter().map(|(name, v)| (name.clone(), of_run(v, i))).collect()
    };
    let run = |i| Run {
        inputs: map("inputs", i).into_iter().map(|(name, (ty, _))| (name, ty)).collect(),
        tensors: map("tensors", i),
        only_derivable: true,
    };
    Some((0..runs.len()).map(run).collect())
}

/// The symbols of the inputs, bound to the extents of the run, or else to small numbers.
fn bindings(model: &Model, run: Option<&Run>) -> Dims {
    let mut dims = Dims::none();
    for input in &model.proto.graph.as_ref().unwrap().input {
        let Some(TypeValue::Tensor(tensor)) = input.r#type.as_ref().and_then(|t| t.value()) else { continue };
        let Some(shape) = &tensor.shape else { continue };
        let seen: Option<Vec<u64>> = run.map(|run| {
            let ty = &run.inputs[input.name()];
            let inside = &ty[ty.find('[').unwrap() + 1..ty.len() - 1];
            inside.split(',').filter(|d| !d.is_empty()).map(|d| d.parse().unwrap()).collect()
        });
        for (i, dim) in shape.dim.iter().enumerate() {
            if let Some(DimValue::Name(name)) = dim.value() {
                // Labels of sequences have one axis of batch times sequence.
                let small = match name {
                    "batch" => 3,
                    "batch_seq" => 24,
                    _ => 8,
                };
                dims.bind(name, seen.as_ref().map_or(small, |seen| seen[i]));
            }
        }
    }
    dims
}

/// The model without its `value_info`, except for `AveragePoolGrad`: the size of the tensor that strided
/// pooling made smaller stands nowhere else.
fn without_value_info(model: &Model) -> Model {
    let mut model = model.clone();
    let graph = model.proto.graph.as_mut().unwrap();
    let kept: Vec<String> = graph
        .node
        .iter()
        .filter(|n| n.op_type() == "AveragePoolGrad")
        .flat_map(|n| n.output.iter().cloned())
        .collect();
    graph.value_info.retain(|v| kept.iter().any(|k| k == v.name()));
    graph.output.iter_mut().for_each(|o| o.r#type = None);
    model
}

/// Why the model is refused, for those that must be.
fn refusal(path: &Path) -> Option<&'static str> {
    let text = path.to_str().unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    match () {
        () if name.starts_with("optimizer_model") => Some("--optimizer"),
        () if text.contains("tiny_bert_dynseq_bad") && name == "training_model.onnx" => Some("GatherGrad"),
        () if text.contains("onnx_preview_training") && text.contains("gradient") => Some("Gradient"),
        () => None,
    }
}

fn type_of(graph: &Graph, name: &str) -> Option<String> {
    match &graph.value(graph.value_named(name)?).ty {
        Type::Tensor(tensor) => Some(tensor.to_string()),
        other => Some(other.to_string()),
    }
}

#[derive(Default, Debug)]
struct Count {
    files: usize,
    refused: usize,
    runs: usize,
    values: usize,
    elements_right: usize,
    elements_unknown: usize,
}

fn compare(path: &Path, graph: &Graph, run: &Run, how: &str, count: &mut Count, faults: &mut Vec<String>) {
    let constants = constants(graph);
    for (name, (ty, elements)) in &run.tensors {
        let Some(found) = type_of(graph, name) else {
            faults.push(format!("{} ({how}): no value `{name}`", path.display()));
            continue;
        };
        if found == *ty {
            count.values += 1;
        } else {
            faults.push(format!("{} ({how}): `{name}` is {found}, but was {ty}", path.display()));
        }
        let constant = &constants[graph.value_named(name).unwrap().as_u32() as usize];
        match (constant.as_ref().and_then(|c| c.as_ints()), elements) {
            (Some(ints), Some(elements)) if ints != &elements[..] => {
                faults.push(format!("{} ({how}): `{name}` holds {ints:?}, not {elements:?}", path.display()));
            }
            (Some(_), Some(_)) => count.elements_right += 1,
            // The short form gives elements only where they follow from shapes and constants.
            (None, Some(_)) if run.only_derivable => {
                faults.push(format!("{} ({how}): the elements of `{name}` are not known", path.display()));
            }
            (None, Some(_)) => count.elements_unknown += 1,
            _ => {}
        }
    }
}

#[test]
fn every_value_has_its_true_type() {
    let mut faults: Vec<String> = Vec::new();
    let (mut with, mut without) = (Count::default(), Count::default());
    for path in models() {
        let model = Model::open(&path).unwrap();
        let truth = truth(&path);
        if let Some(reason) = refusal(&path) {
            match import(&model, &bindings(&model, None)) {
                Err(e) if e.message().to_string().contains(reason) => with.refused += 1,
                Err(e) => faults.push(format!("refused for another reason than {reason}: {e}")),
                Ok(_) => faults.push(format!("{} was not refused", path.display())),
            }
            continue;
        }
        let runs: Vec<Option<Run>> = match truth {
            Some(runs) => runs.into_iter().map(Some).collect(),
            None => vec![None],
        };
        with.files += 1;
        without.files += 1;
        for run in &runs {
            let dims = bindings(&model, run.as_ref());
            let mut graphs = Vec::new();
            let stripped = without_value_info(&model);
            for (model, how, count) in [(&model, "with", &mut with), (&stripped, "without", &mut without)] {
                let graph = match import(model, &dims) {
                    Ok(graph) => graph,
                    Err(e) => {
                        faults.push(format!("({how} value_info) {e}"));
                        continue;
                    }
                };
                if let Some(run) = run {
                    count.runs += 1;
                    compare(&path, &graph, run, how, count, &mut faults);
                }
                graphs.push(graph);
            }
            if let (None, [a, b]) = (run, &graphs[..]) {
                // The file's own types were checked when it was imported; so both results are those of the file.
                for (_, value) in a.values() {
                    let (said, found) = (value.ty.to_string(), type_of(b, &value.name).unwrap_or_default());
                    if said != found {
                        faults.push(format!("{}: `{}` is {found}, not {said}", path.display(), value.name));
                    } else {
                        without.values += 1;
                    }
                }
            }
        }
    }
    println!("with value_info: {with:?}\nwithout value_info: {without:?}");
    let shown: Vec<&str> = faults.iter().take(40).map(|f| &f[..f.len().min(1500)]).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), shown.join("\n"));
}

#[test]
fn mutated_models_never_panic() {
    let small = |p: &PathBuf| std::fs::metadata(p).is_ok_and(|m| m.len() < 60_000);
    let mut state = 1u64;
    let mut roll = |sides: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % sides
    };
    let (mut read, mut imported) = (0, 0);
    for path in models().into_iter().filter(small).step_by(3).take(24) {
        let bytes = std::fs::read(&path).unwrap();
        let dims = bindings(&Model::open(&path).unwrap(), None);
        for _ in 0..150 {
            let mut bytes = bytes.clone();
            for _ in 0..1 + roll(4) {
                let at = roll(bytes.len());
                bytes[at] = match roll(3) {
                    0 => bytes[at].wrapping_add(1),
                    1 => roll(256) as u8,
                    _ => [0, 1, 0x7f, 0xff][roll(4)],
                };
            }
            let Ok(model) = Model::from_bytes(bytes.into(), "mutant") else { continue };
            read += 1;
            match import(&model, &dims) {
                Ok(graph) => {
                    imported += 1;
                    constants(&graph);
                }
                Err(errors) => assert!(!errors.to_string().is_empty()),
            }
        }
    }
    println!("{read} mutants are models, {imported} of them graphs");
    assert!(read > 100);
}
