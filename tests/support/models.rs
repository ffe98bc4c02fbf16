//! The training graphs under `testdata/models`.

use std::path::{Path, PathBuf};

use lmsc_ir::Graph;
use lmsc_onnx::{Dims, Model, Stated, settle};

pub(crate) const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/models");

/// Training graphs of both sources, one of each kind per model.
pub(crate) fn models() -> Vec<PathBuf> {
    let folders = std::fs::read_dir(MODELS).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.flat_map(|folder| {
        [
            "training_model.onnx",
            "std/train_grad.onnx",
            "std/train_adam.onnx",
            "step/train_step_adamw_seq.onnx",
        ]
        .map(|file| folder.join(file))
    });
    let bad = |path: &Path| path.to_string_lossy().contains("dynseq_bad");
    let mut models: Vec<PathBuf> = files.filter(|path| path.exists() && !bad(path)).collect();
    models.sort();
    assert!(models.len() > 40, "{} models under {MODELS}", models.len());
    models
}

/// The model, and values for its symbolic dimensions as in the first run of the recorded shapes.
pub(crate) fn open(path: &Path) -> (Model, Dims) {
    let mut dims = Dims::none();
    if let Ok(text) = std::fs::read_to_string(path.with_extension("shapes.json")) {
        let shapes: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (name, value) in shapes["runs"][0].as_object().unwrap() {
            dims.bind(name.clone(), value.as_u64().unwrap());
        }
    }
    let model = Model::open(path).unwrap();
    let inputs = format!("{:?}", model.proto.graph.as_ref().unwrap().input);
    for (name, value) in [("batch", 4), ("seq", 8), ("batch_seq", 32)] {
        if dims.get(name).is_none() && inputs.contains(&format!("\"{name}\"")) {
            dims.bind(name, value);
        }
    }
    (model, dims)
}

/// The graph of the model.
pub(crate) fn import(model: &Model, dims: &Dims) -> Graph {
    let mut graph = lmsc_onnx::import(model, dims).unwrap_or_else(|e| panic!("{e}"));
    settle(&mut graph, &Stated::of(model).unwrap()).unwrap();
    graph
}

/// The graph, its symbolic dimensions bound as by [`open`].
pub(crate) fn load(path: &Path) -> Graph {
    let (model, dims) = open(path);
    import(&model, &dims)
}

/// The graph with these dimensions.
pub(crate) fn load_with(path: &Path, dims: &Dims) -> Graph {
    import(&Model::open(path).unwrap(), dims)
}

/// The text of a graph, all its floats short but statistics of layer normalizations, which stay long in such a graph.
pub(crate) fn of_short_floats(text: &str, short: &str) -> String {
    let stays = |before: &str, after: &str| {
        let name =
            after.split([',', ' ', '=', ')']).nth(1 + after.split(']').next().unwrap().matches(',').count());
        before.ends_with(|c: char| c.is_alphanumeric())
            || name.is_some_and(|name| {
                ["_mean", "_invstd"].iter().any(|end| name.ends_with(&format!("output_0{end}")))
            })
    };
    let mut parts = text.split("float[");
    let mut all = parts.next().unwrap().to_owned();
    for part in parts {
        let float = if stays(&all, part) { "float" } else { short };
        all += &format!("{float}[{part}");
    }
    let number = if short == "float16" { 10 } else { 16 };
    all.replace("Cast<to = 1>", &format!("Cast<to = {number}>"))
}
