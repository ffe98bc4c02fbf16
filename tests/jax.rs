//! Steps that `jax.export` wrote, with the values that JAX computed: `scripts/check_jax.py --keep testdata/jax` makes them.

use std::path::Path;

use crate::support::Bench;
use half::bf16;
use safetensors::{Dtype, SafeTensors};

const FOLDER: &str = "testdata/jax";

/// The elements of all tensors of the file, in 64 bits.
fn values(bytes: &[u8]) -> Vec<(String, Vec<f64>)> {
    fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks::<N>().0.iter().map(|&chunk| number(chunk)).collect()
    }
    let file = SafeTensors::deserialize(bytes).unwrap();
    let read = |(name, tensor): (String, safetensors::tensor::TensorView<'_>)| {
        let data = tensor.data();
        let numbers = match tensor.dtype() {
            Dtype::F32 => each(data, |b| f32::from_le_bytes(b).into()),
            Dtype::BF16 => each(data, |b| bf16::from_le_bytes(b).into()),
            Dtype::I32 => each(data, |b| i32::from_le_bytes(b).into()),
            Dtype::U32 => each(data, |b| u32::from_le_bytes(b).into()),
            Dtype::BOOL => each(data, |[b]| b.into()),
            other => panic!("{name}: {other:?}"),
        };
        (name, numbers)
    };
    file.tensors().into_iter().map(read).collect()
}

/// The step computes the losses and the state that JAX computed in three steps.
///
/// Adam divides a gradient by its size, so that of one that is nearly 0 the last bits decide: a few elements may differ more.
fn equals_jax(name: &str, tolerance: f64) {
    let bench = Bench::new();
    let ran = bench.run(&format!(
        "run {FOLDER}/{name}.mlir --feeds {FOLDER}/{name}.given.safetensors --steps 3 --save @/after.safetensors"
    ));
    assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
    let right = values(&std::fs::read(Path::new(FOLDER).join(format!("{name}.right.safetensors"))).unwrap());
    let after = values(&std::fs::read(bench.path("after.safetensors")).unwrap());
    let stdout = String::from_utf8(ran.stdout).unwrap();
    let losses: Vec<f64> = stdout
        .lines()
        .filter(|line| line.starts_with("step "))
        .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    for (key, wanted) in &right {
        let found = match after.iter().find(|(other, _)| other == key) {
            Some((_, found)) => found,
            None if key == "losses" => &losses,
            None => panic!("{name}: `{key}` is no state"),
        };
        assert_eq!(found.len(), wanted.len(), "{name}: {key}");
        let off = |(a, b): (&f64, &f64)| {
            let is_near = (a - b).abs() <= tolerance * b.abs().max(1.0);
            !is_near
        };
        let wrong = found.iter().zip(wanted).filter(|&pair| off(pair)).count();
        assert!(wrong * 500 <= wanted.len(), "{name}: {wrong} of {} elements of {key} differ", wanted.len());
    }
}

#[test]
fn exported_steps_are_equal_to_jax() {
    for name in ["mlp", "cnn", "gpt", "gpt-scan"] {
        equals_jax(name, 1e-5);
    }
    // JAX keeps more bits between operators.
    equals_jax("gpt-bf16", 2e-2);
}

#[test]
fn other_forms_of_steps_are_equal_to_jax() {
    for name in ["cnn-forms", "dropout", "lstm", "moe", "index", "functions", "cond", "llama"] {
        equals_jax(name, 1e-5);
    }
}

#[test]
fn a_scanned_network_is_planned_proven_and_read_back() {
    let bench = Bench::new();
    let planned = bench.run(&format!("{FOLDER}/gpt-scan.mlir --budget 0.8x --target host -o @/step.onnx"));
    assert_eq!(planned.code, 0, "{}", planned.stderr);
    for name in ["step.mlir", "step.lms"] {
        let written = bench.run(&format!("{FOLDER}/gpt-scan.mlir --budget 0.8x --target host -o @/{name}"));
        assert_eq!(written.code, 0, "{}", written.stderr);
    }
    let verified = bench.run(&format!("verify {FOLDER}/gpt-scan.mlir @/step.onnx"));
    assert_eq!(verified.code, 0, "{}", verified.stderr);
}

#[test]
fn a_module_is_read_from_standard_input_and_takes_state_of_the_call() {
    let bench = Bench::new();
    let text = std::fs::read(Path::new(FOLDER).join("mlp.mlir")).unwrap();
    let inspected = bench.run_with("inspect -", &text);
    assert_eq!(inspected.code, 0, "{}", inspected.stderr);
    let shown = String::from_utf8(inspected.stdout).unwrap();
    assert!(shown.contains("loss       result[2]"), "{shown}");
    let without = bench.run_with("inspect - --state none", &text);
    assert_eq!(without.code, 0, "{}", without.stderr);
    let shown = (shown, String::from_utf8(without.stdout).unwrap());
    assert!(shown.0.contains("in place by") && !shown.1.contains("in place by"), "no state is left");
}

/// The values of the output `y` of the step in this file, for the inputs that `lmsc run` makes up.
fn output(bench: &Bench, file: &str) -> Vec<u8> {
    let ran = bench.run(&format!("run @/{file} --steps 1 --fetch y --out @/y.safetensors"));
    assert_eq!(ran.code, 0, "{file}: {}", ran.stderr);
    let bytes = std::fs::read(bench.path("y.safetensors")).unwrap();
    SafeTensors::deserialize(&bytes).unwrap().tensor("y").unwrap().data().to_vec()
}

#[test]
fn the_form_for_xla_is_read_back_and_computes_the_same() {
    let cases = [
        ("float[2,6] x", "float[2,6]", "HardSigmoid<alpha = 0.3>(x)"),
        ("float[2,3,4,4] x", "float[2,3,1,1]", "GlobalMaxPool(x)"),
        ("float[2,6] x", "bool[2,6]", "IsNaN(x)"),
        ("float[2,4,5] x", "float[2,7,9]", "Pad<mode = \"reflect\">(x, pads)"),
        ("float[2,4,5] x", "float[2,7,9]", "Pad<mode = \"edge\">(x, pads)"),
        ("float[2,4,5] x", "float[2,7,9]", "Pad<mode = \"wrap\">(x, pads)"),
        ("float[3,3,2] x, int64[4,2] i", "float[4,2]", "GatherND(x, i)"),
        ("float[3,4,2] x, int64[3,2,1] i", "float[3,2,2]", "GatherND<batch_dims = 1>(x, i)"),
        ("float[3,7] x", "float[3,2]", "TopK(x, k)"),
        ("float[7,3] x", "float[2,3]", "TopK<axis = 0, largest = 0>(x, k)"),
        (
            "float[2,3,8,8] x, float[4,3,3,3] w",
            "float[2,4,4,4]",
            "Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w)",
        ),
        ("float[2,6] x", "float[2,6]", "Softmax(x)"),
        ("float[5,3] x, int64[2,2] i", "float[2,2,3]", "Gather(x, i)"),
        ("float[2,3,4] x, float[2,4,5] w", "float[2,3,5]", "MatMul(x, w)"),
    ];
    let bench = Bench::new();
    for (inputs, ty, node) in cases {
        let text = format!(
            "<opset: \"\" = 21>\ng ({inputs}) => ({ty} y)\n<\n   int64[6] pads = {{0, 1, 2, 0, 2, 2}},\n   int64[1] k = {{2}}\n>\n\
             {{\n   [n] {ty} y{} = {node}\n}}\n",
            if node.starts_with("TopK") { ", _" } else { "" }
        );
        bench.write("g.lms", &text);
        let written = bench.run("@/g.lms --emit mlir-xla --force -o @/g.mlir");
        assert_eq!(written.code, 0, "{node}: {}", written.stderr);
        let (here, back) = (output(&bench, "g.lms"), output(&bench, "g.mlir"));
        if ty.starts_with("float") {
            let numbers = |bytes: &[u8]| -> Vec<f32> {
                bytes.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
            };
            let pairs = numbers(&here).into_iter().zip(numbers(&back));
            assert!(
                pairs.clone().all(|(a, b)| (a - b).abs() <= 1e-6),
                "{node}: {:?}",
                pairs.collect::<Vec<_>>()
            );
        } else {
            assert_eq!(here, back, "{node}");
        }
    }
}
