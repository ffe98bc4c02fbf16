//! Small cases of ONNX's own backend test suite, which `scripts/check-onnx --sample` has written into one file; that script runs
//! all of them.

use std::collections::BTreeMap;

use crate::support::Bench;
use half::{bf16, f16};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

/// Two units in the last place of short floats, as in the script.
const ROUNDING: [(Dtype, f64); 2] = [(Dtype::BF16, 1.0 / 64.0), (Dtype::F16, 1.0 / 512.0)];

/// The elements as numbers; those of 64 bits lose digits, and are compared by their bytes.
fn numbers(view: &TensorView<'_>) -> Option<Vec<f64>> {
    macro_rules! of {
        ($t:ty) => {
            view.data().as_chunks().0.iter().map(|&b| f64::from(<$t>::from_le_bytes(b))).collect()
        };
    }
    Some(match view.dtype() {
        Dtype::F32 => of!(f32),
        Dtype::F64 => of!(f64),
        Dtype::F16 => of!(f16),
        Dtype::BF16 => of!(bf16),
        _ => return None,
    })
}

/// The difference of a result beyond the tolerances, if any.
fn differs(
    found: &TensorView<'_>,
    expected: &TensorView<'_>,
    [relative, absolute]: [f64; 2],
) -> Option<String> {
    if (found.dtype(), found.shape()) != (expected.dtype(), expected.shape()) {
        let of = |view: &TensorView<'_>| format!("{:?}{:?}", view.dtype(), view.shape());
        return Some(format!("{}, not {}", of(found), of(expected)));
    }
    let (Some(a), Some(b)) = (numbers(found), numbers(expected)) else {
        return (found.data() != expected.data()).then(|| "other elements".to_owned());
    };
    let own = ROUNDING.iter().find(|(dtype, _)| *dtype == found.dtype()).map_or(0.0, |(_, own)| *own);
    let relative = relative.max(own);
    let near = |(a, b): (&f64, &f64)| {
        a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= absolute + relative * b.abs()
    };
    let at = a.iter().zip(&b).position(|pair| !near(pair))?;
    Some(format!("element {at} is {}, not {}", a[at], b[at]))
}

#[test]
fn small_cases_of_the_standards_suite_are_right() {
    let bytes = std::fs::read("testdata/onnx_suite.safetensors").unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tolerances: BTreeMap<&String, &String> = header.metadata().as_ref().unwrap().iter().collect();
    assert!(tolerances.len() > 200, "{} cases", tolerances.len());
    let mut tensors: BTreeMap<&str, Vec<(&str, TensorView<'_>)>> = BTreeMap::new();
    for (name, view) in file.iter() {
        let (case, what) = name.split_once(' ').unwrap();
        tensors.entry(case).or_default().push((what, view));
    }
    let bench = Bench::new();
    let mut wrong = Vec::new();
    for (case, tolerance) in tolerances {
        let of_case = &tensors[&**case];
        let part = |role: &str| -> Vec<(String, &TensorView<'_>)> {
            let named = of_case.iter().filter_map(|(what, view)| Some((what.strip_prefix(role)?, view)));
            named.map(|(name, view)| (name.to_owned(), view)).collect()
        };
        let [model, inputs, outputs] = [part("model"), part("in "), part("out ")];
        bench.write("model.onnx", model[0].1.data());
        bench.write("inputs", safetensors::serialize(inputs, None).unwrap());
        let names: Vec<&str> = outputs.iter().map(|(name, _)| &**name).collect();
        let call =
            format!("run @/model.onnx --steps 1 --feeds @/inputs --fetch {} --out @/out", names.join(","));
        let ran = bench.run(&call);
        if ran.code != 0 {
            wrong.push(format!("{case}: exit code {}: {}", ran.code, ran.stderr));
            continue;
        }
        let found = std::fs::read(bench.path("out")).unwrap();
        let found = SafeTensors::deserialize(&found).unwrap();
        let [relative, absolute] = [0, 1].map(|i| tolerance.split(' ').nth(i).unwrap().parse().unwrap());
        for (name, expected) in &outputs {
            if let Some(problem) = differs(&found.tensor(name).unwrap(), expected, [relative, absolute]) {
                wrong.push(format!("{case}: {name}: {problem}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
