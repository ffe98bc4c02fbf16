//! Thousands of damaged inputs on every run, the same ones on each: nothing panics, and accepted inputs are
//! compiled rightly.
//!
//! `LMSC_FUZZ_SECONDS=300 cargo test --release --test fuzz` looks for longer. A failure prints its seed; run it
//! again with `ARBTEST_SEED=0x… cargo test --test fuzz NAME`.

#![allow(clippy::print_stderr, reason = "how far the cases came is shown with --nocapture")]

mod bodies;
#[expect(dead_code, reason = "programs are only rehearsed")]
#[path = "../support/steps.rs"]
mod steps;

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use arbtest::arbitrary;
use bodies::Reached;
use lmsc_onnx::Model;
use prost::Message;

/// Small graphs of every kind: gradient operators and standard ones, with and without an optimizer, symbolic and
/// static.
const MODELS: &[&str] = &[
    "tiny_mlp/training_model.onnx",
    "tiny_mlp/static/training_model.onnx",
    "tiny_mlp/std/train_adam.onnx",
    "tiny_mlp/step/train_step_adam_legacy.onnx",
    "tiny_mlp_mse/std/train_sgd.onnx",
    "tiny_cnn/training_model.onnx",
    "tiny_cnn/std/train_grad.onnx",
    "tiny_cnn/ortmodule/training_model.onnx",
    "tiny_charlstm/training_model.onnx",
    "tiny_vgg/training_model.onnx",
    "tiny_unet2d/training_model.onnx",
    "tiny_gpt_hand/static/training_model.onnx",
    "tiny_resnet18/std/train_sgd.onnx",
    "onnx_preview_training/test_gradient_of_add/model.onnx",
    "onnx_preview_training/test_momentum_multiple/model.onnx",
];

/// The bytes of the models that there are, and with their optimizers linked.
static CORPUS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/models");
    let mut corpus = Vec::new();
    for name in MODELS {
        let path = folder.join(name);
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let optimizer = path.with_file_name("optimizer_model.onnx");
        if let (true, Ok(optimizer)) = (name.ends_with("training_model.onnx"), Model::open(optimizer)) {
            let model = Model::from_bytes(bytes.clone().into(), *name).unwrap();
            if let Ok(linked) = lmsc_onnx::link(&model, &optimizer) {
                corpus.push(linked.proto.encode_to_vec());
            }
        }
        corpus.push(bytes);
    }
    corpus
});

/// Everything that the text form can say, in a graph that is valid.
const STEP: &str = r#"<opset: "" = 17, "com.microsoft" = 1>
step (float[64,3] x, int64[64] "123", float[3] w, float[3] buffer, float[]@host lr) => (float[64,3]@device:4096 y, float[3] w_new)
<
   float[2,2] c = {1.0, -0.5, 1e-5, inf},
   bool[3] mask = {1, 0, 1},
   float16[1] half = {1.0},
   float[5,5] big = bytes(100, 0x00000000000000000000000000000abc),
   float[1000] far = external("w.bin", 4096, 4000)
>
{
   [/layer1/Conv] float[64,3] h, _ = Conv<pads = [1, 1], alpha = 1.0, mode = "a\"b\x00\xff", none = ints [], t = int64[2] {1, 2}, body = opaque bytes(3, 0x00000000000000000000000000000001)>(x, _, c) captures (mask)
   [view] float[192] v = Reshape(h, mask)
   [out_h] float[64,3]@host h_host = ai.lmsc.SwapOut(h)
   ["a node"] float[64,3]@device:8192 z = Relu(v) after [out_h]
   [in_h] float[64,3] h_in = ai.lmsc.SwapIn(h_host) after ["a node"]
   [n3] float[64,3]@device:4096 y, seq(float[2], int64[]) s = "odd domain!""Conv"(z, h_in)
   [h_again] float[64,3] h2, _ = Conv<pads = [1, 1], alpha = 1.0, mode = "a\"b\x00\xff", none = ints [], t = int64[2] {1, 2}, body = opaque bytes(3, 0x00000000000000000000000000000001)>(x, _, c) captures (mask) after [n3]
   [grad] float[3] g = com.microsoft.ReluGrad(h2, w)
   [sgd] float[3] w_new = ai.lmsc.SGDOptimizer(big, w, g) updates (w as w_new, buffer)
   [none] = Sink(g)
}
"#;

/// Texts of the smaller models, before and after swapping.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut texts = vec![STEP.to_owned()];
    for bytes in CORPUS.iter().filter(|b| b.len() < 50_000) {
        let model = Model::from_bytes(bytes.clone().into(), "corpus").unwrap();
        let dims = lmsc_onnx::Dims::from_iter([("batch", 4)]);
        let imported =
            lmsc_onnx::import(&model, &dims).or_else(|_| lmsc_onnx::import(&model, &lmsc_onnx::Dims::none()));
        let Ok(mut graph) = imported else { continue };
        if lmsc_onnx::settle(&mut graph, &Default::default()).is_err() {
            continue;
        }
        texts.push(graph.to_text());
        let passes = lmsc_passes::Pipeline::parse_with("swap", &lmsc_papers::passes()).unwrap();
        if passes.run(&mut graph, &Default::default()).is_ok() {
            texts.push(graph.to_text());
        }
    }
    texts
});

/// Tries `property` on `cases` cases, the same on every run; or, with `LMSC_FUZZ_SECONDS`, on new ones for that time. Prints how
/// far the cases came.
fn fuzz(
    name: &str,
    cases: usize,
    mut property: impl FnMut(&mut arbitrary::Unstructured<'_>) -> arbitrary::Result<Reached>,
) {
    let mut counts = [0usize; 4];
    let mut count = |u: &mut arbitrary::Unstructured<'_>| {
        counts[property(u)? as usize] += 1;
        Ok(())
    };
    let seconds = std::env::var("LMSC_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok());
    if seconds.is_some() || std::env::var_os("ARBTEST_SEED").is_some() {
        let budget = Duration::from_secs_f64(seconds.unwrap_or_default());
        arbtest::arbtest(count).size_min(64).size_max(1 << 12).budget(budget).run();
    } else {
        for seed in seeds().take(cases) {
            arbtest::arbtest(&mut count).seed(seed).run();
        }
    }
    let [refused, read, valid, done] = counts;
    eprintln!("{name}: {refused} refused, {read} no valid graph, {valid} do not fit, {done} all the way");
    assert!(done > 0 || std::env::var_os("ARBTEST_SEED").is_some(), "{name}: no case came all the way");
}

/// Seeds of cases of 64 to 4159 bytes, the same on every run.
fn seeds() -> impl Iterator<Item = u64> {
    let next =
        |random: &u64| Some(random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    // The low half is the size of the case.
    std::iter::successors(next(&0x1807_02037), next)
        .map(|random| (random >> 32 << 32) | (64 + (random >> 8 & 0xfff)))
}

#[test]
fn damaged_bytes() {
    fuzz("bytes", 9000, |u| {
        let mut bytes = u.choose(&CORPUS)?.clone();
        bodies::mutate_bytes(&mut bytes, u)?;
        let reached = bodies::onnx(&bytes);
        if reached != Reached::Read {
            return Ok(reached);
        }
        let model = Model::from_bytes(bytes.into(), "fuzz").expect("it was just read");
        bodies::model(&model, u)
    });
}

#[test]
fn damaged_graphs() {
    fuzz("graphs", 1600, |u| {
        let mut model =
            Model::from_bytes(u.choose(&CORPUS)?.clone().into(), "fuzz").expect("the corpus is sound");
        bodies::mutate_model(&mut model.proto, u)?;
        bodies::model(&model, u)
    });
}

#[test]
fn sound_graphs() {
    fuzz("sound", 300, |u| {
        let model =
            Model::from_bytes(u.choose(&CORPUS)?.clone().into(), "fuzz").expect("the corpus is sound");
        bodies::model(&model, u)
    });
}

#[test]
fn planned_graphs_run() {
    fuzz("run", 800, |u| {
        let mut model = small_model(u)?;
        if u.ratio(1, 2)? {
            bodies::mutate_model(&mut model.proto, u)?;
        }
        bodies::run(&model, u)
    });
}

#[test]
fn altered_plans_are_told_apart() {
    fuzz("altered", 700, |u| bodies::altered(&small_model(u)?, u));
}

/// A model of the corpus that is quick to run.
fn small_model(u: &mut arbitrary::Unstructured<'_>) -> arbitrary::Result<Model> {
    static SMALL: LazyLock<Vec<&Vec<u8>>> =
        LazyLock::new(|| CORPUS.iter().filter(|bytes| bytes.len() < 20_000).collect());
    Ok(Model::from_bytes((*u.choose(&SMALL)?).clone().into(), "fuzz").expect("the corpus is sound"))
}

/// Files besides models: the ones of `fuzz/corpus`, made worse.
fn damaged_files(target: &str, cases: usize, body: impl Fn(&[u8]) -> Reached) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    fuzz(target, cases, |u| {
        let mut bytes = u.choose(&files)?.clone();
        if u.ratio(7, 8)? {
            bodies::mutate_bytes(&mut bytes, u)?;
        }
        Ok(body(&bytes))
    });
}

#[test]
fn damaged_profiles() {
    damaged_files("profile", 300_000, |bytes| bodies::profile(&String::from_utf8_lossy(bytes)));
}

#[test]
fn damaged_instances() {
    damaged_files("instance", 3000, |bytes| bodies::instance(&String::from_utf8_lossy(bytes)));
}

#[test]
fn damaged_tables() {
    damaged_files("csv", 300_000, |bytes| bodies::csv(&String::from_utf8_lossy(bytes)));
}

#[test]
fn damaged_modules() {
    damaged_files("stablehlo", 3000, |bytes| bodies::stablehlo(&String::from_utf8_lossy(bytes)));
}

#[test]
fn damaged_tensors() {
    damaged_files("safetensors", 400_000, bodies::tensors);
}

#[test]
fn damaged_texts() {
    fuzz("texts", 6000, |u| {
        let mut text = u.choose(&TEXTS)?.clone();
        bodies::mutate_text(&mut text, u)?;
        bodies::text(&text, u)
    });
}

#[test]
fn random_bytes() {
    for (number, seed) in seeds().take(5000).enumerate() {
        // Sizes from 32 bytes to 64 KiB.
        let seed = (seed >> 32 << 32) | (32 << (number % 12));
        let body = |u: &mut arbitrary::Unstructured<'_>| {
            let bytes = u.bytes(u.len())?;
            bodies::onnx(bytes);
            _ = lmsc_ir::Graph::parse(&String::from_utf8_lossy(bytes));
            Ok(())
        };
        arbtest::arbtest(body).seed(seed).run();
    }
}
