//! The equivalence check on real graphs: the rewritten model passes, and every kind of damage to it is noticed.

use std::path::{Path, PathBuf};

use lmsc_ir::random::{Damage, Rng, damage};
use lmsc_ir::{Graph, equiv};
use lmsc_onnx::{Dims, Model, import, settle, state_pairs};
use lmsc_passes::{DEFAULT_PIPELINE, PassCx, pass_named, run_pipeline};

const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/models");

/// Training graphs of both sources, one of each kind per model.
fn models() -> Vec<PathBuf> {
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
    models
}

/// The graph, its symbolic dimensions bound as in the first run of the recorded shapes.
fn load(path: &Path) -> Graph {
    let mut dims = Dims::none();
    if let Ok(text) = std::fs::read_to_string(path.with_extension("shapes.json")) {
        let shapes: serde_json::Value = serde_json::from_str(&text).unwrap();
        for (name, value) in shapes["runs"][0].as_object().unwrap() {
            dims.bind(name.clone(), value.as_u64().unwrap());
        }
    }
    for (name, value) in [("batch", 4), ("seq", 8), ("batch_seq", 32)] {
        let declared =
            |i: &lmsc_onnx::proto::ValueInfoProto| format!("{i:?}").contains(&format!("\"{name}\""));
        let model = Model::open(path).unwrap();
        if dims.get(name).is_none() && model.proto.graph.unwrap().input.iter().any(declared) {
            dims.bind(name, value);
        }
    }
    let model = Model::open(path).unwrap();
    let mut graph = import(&model, &dims).unwrap_or_else(|e| panic!("{e}"));
    settle(&mut graph, &state_pairs(&model, &[])).unwrap();
    graph
}

#[test]
fn every_kind_of_damage_to_every_model_is_noticed() {
    let models = models();
    assert!(models.len() > 40, "{} models under {MODELS}", models.len());
    for path in models {
        let original = load(&path);
        let mut rewritten = original.clone();
        let passes: Vec<_> = DEFAULT_PIPELINE.iter().filter_map(|name| pass_named(name)).collect();
        let cx = PassCx { tflms_fixed: true, ..PassCx::default() };
        run_pipeline(&mut rewritten, &passes, &cx, &mut |_, _, _| {}).unwrap();
        let proof = equiv::check(&original, &rewritten).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(proof.swaps > 0, "{}: nothing was swapped", path.display());

        let mut rng = Rng::new(11);
        let mut noticed = Vec::new();
        for &kind in Damage::ALL {
            // Damage that leaves the meaning, such as exchanging operands that are equal, is tried again.
            let difference = (0..4)
                .filter_map(|_| damage(&rewritten, kind, &mut rng))
                .find_map(|damaged| equiv::check(&original, &damaged).err());
            if let Some(difference) = difference {
                assert!(!difference.to_string().is_empty());
                noticed.push(kind);
            }
        }
        assert!(noticed.len() >= 15, "{}: only {noticed:?} were noticed", path.display());
    }
}
