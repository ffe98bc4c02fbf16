//! A model learns, with swaps and without: the same losses, bit for bit, and it generalizes to unseen samples.

use std::f32::consts::TAU;
use std::path::Path;

use crate::support::Bench;
use lmsc_ir::rng::{Rng, Source};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

const STEP: &str = "testdata/models/tiny_resnet18/training_model.onnx \
                    --optimizer testdata/models/tiny_resnet18/optimizer_model.onnx";
const FORWARD: &str = "testdata/models/tiny_resnet18/forward.onnx";

const SIZE: usize = 32;
const CLASSES: usize = 10;
const BATCH: usize = 32;
const STEPS: usize = 360;
const UNSEEN: usize = 256;

/// Whether a point, seen from the middle of a shape of radius 1, belongs to the shape of this class.
fn is_inside(class: usize, x: f32, y: f32) -> bool {
    let (across, down, radius) = (x.abs(), y.abs(), x.hypot(y));
    let square = across.max(down);
    match class {
        0 => radius < 1.0,
        1 => (0.6..1.0).contains(&radius),
        2 => square < 0.9,
        3 => (0.55..0.9).contains(&square),
        4 => across.min(down) < 0.3 && square < 1.0,
        5 => (x - y).abs().min((x + y).abs()) < 0.4 && radius < 1.2,
        6 => down < 0.3 && across < 1.1,
        7 => across < 0.3 && down < 1.1,
        8 => down < 0.9 && across < (y + 0.9) / 1.8,
        _ => across + down < 1.0,
    }
}

/// Images of shapes of random places and sizes with noise on them, and their classes.
fn images(seed: u64, count: usize) -> (Vec<f32>, Vec<i64>) {
    let mut rng = Rng::new(seed);
    let mut between =
        |low: f32, high: f32| low + (high - low) * (rng.below(1 << 24) as f32 / (1 << 24) as f32);
    let (mut pixels, mut labels) = (Vec::with_capacity(count * 3 * SIZE * SIZE), Vec::new());
    for _ in 0..count {
        let class = (between(0.0, CLASSES as f32) as usize).min(CLASSES - 1);
        let (x, y, radius) = (between(11.0, 21.0), between(11.0, 21.0), between(6.0, 10.0));
        for _ in 0..3 {
            let light = between(0.7, 1.3);
            for pixel in 0..SIZE * SIZE {
                let (column, row) = ((pixel % SIZE) as f32, (pixel / SIZE) as f32);
                let lit = is_inside(class, (column - x) / radius, (row - y) / radius);
                // Box and Muller's normal deviate.
                let noise = (-2.0 * between(1e-6, 1.0).ln()).sqrt() * (TAU * between(0.0, 1.0)).cos();
                pixels.push(if lit { light } else { 0.0 } + 0.1 * noise);
            }
        }
        labels.push(class as i64);
    }
    (pixels, labels)
}

/// Writes images and labels as a safetensors file, in batches if there is more than one.
fn write(path: &Path, (pixels, labels): &(Vec<f32>, Vec<i64>), batch: usize) {
    let bytes: Vec<u8> = pixels.iter().flat_map(|pixel| pixel.to_le_bytes()).collect();
    let classes: Vec<u8> = labels.iter().flat_map(|label| label.to_le_bytes()).collect();
    let shape = |extents: &[usize]| -> Vec<usize> {
        let batches = labels.len() / batch;
        (batches > 1).then_some(batches).into_iter().chain(extents.iter().copied()).collect()
    };
    let tensors = [
        ("input", TensorView::new(Dtype::F32, shape(&[batch, 3, SIZE, SIZE]), &bytes).unwrap()),
        ("labels", TensorView::new(Dtype::I64, shape(&[batch]), &classes).unwrap()),
    ];
    std::fs::write(path, serialize(tensors, None).unwrap()).unwrap();
}

fn ok(bench: &Bench, arguments: &str) -> String {
    let outcome = bench.run(arguments);
    assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.stderr);
    String::from_utf8(outcome.stdout).unwrap()
}

/// The loss lines of the output.
fn losses(text: &str) -> Vec<String> {
    text.lines().filter(|line| line.starts_with("step ")).map(str::to_owned).collect()
}

#[test]
fn a_swapping_step_learns_as_the_original() {
    let bench = Bench::new();
    write(&bench.path("train.safetensors"), &images(1, STEPS * BATCH), BATCH);
    let rate = 0.01f32.to_le_bytes();
    let rate = [("learning_rate", TensorView::new(Dtype::F32, vec![1], &rate).unwrap())];
    std::fs::write(bench.path("rate.safetensors"), serialize(rate, None).unwrap()).unwrap();
    let training = format!(
        "--params {FORWARD} --data @/train.safetensors --feeds @/rate.safetensors --steps {STEPS} --dim batch={BATCH}"
    );
    let plain = ok(&bench, &format!("run {STEP} {training} --save @/plain.safetensors"));
    let swapping =
        format!("{STEP} {training} --budget 3.1MiB --effort 1 --run --save @/swapping.safetensors");
    let swapping = ok(&bench, &swapping);
    assert!(plain.contains("nothing was copied") && swapping.contains("a step copies"), "{swapping}");
    assert_eq!(losses(&plain).len(), STEPS);
    assert_eq!(losses(&plain), losses(&swapping));
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    assert!(read("plain.safetensors") == read("swapping.safetensors"));

    let unseen = images(2, UNSEEN);
    write(&bench.path("unseen.safetensors"), &unseen, UNSEEN);
    // The scores of a step are those before it learns.
    let look = format!(
        "run {STEP} --dim batch={UNSEEN} --params @/swapping.safetensors --data @/unseen.safetensors --steps 1 \
         --fetch output --out @/scores.safetensors"
    );
    ok(&bench, &look);
    let bytes = read("scores.safetensors");
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let scores: Vec<f32> =
        file.tensor("output").unwrap().data().as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    let best = |scores: &[f32]| (0..CLASSES).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap() as i64;
    let right =
        scores.chunks(CLASSES).zip(&unseen.1).filter(|(scores, label)| best(scores) == **label).count();
    assert!(100 * right > 95 * UNSEEN, "{right} of {UNSEEN} are right");
}
