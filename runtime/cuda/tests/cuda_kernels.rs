//! The kernels of CUDA devices on the processor, against those of the host, on many shapes; and the shim that runs them.
//!
//! Needs a C++ compiler; says so where there is none. With `LMSC_SANITIZERS` every kernel runs under the sanitizers for
//! threads and for addresses, too.

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use lmsc_cuda::engines::ChannelOrder;
use lmsc_cuda::{Call, Found, SOURCES};
use lmsc_ir::Op;
use lmsc_kernels::StepContext;
use support::shim::{self, Mode, shim};
use support::{Tensor, cases, float, int64, numbers, run, run_in_place, run_step, tensor, truth};

/// Extents around those of warps, tiles and blocks.
const EXTENTS: [u64; 14] = [0, 1, 2, 3, 7, 31, 33, 64, 65, 127, 255, 256, 257, 1000];

/// Element types with which numbers are computed.
const NUMBERS: [&str; 6] = ["float", "double", "int64", "int32", "int8", "uint8"];

fn dims(list: &[u64]) -> String {
    let list: Vec<String> = list.iter().map(u64::to_string).collect();
    format!("[{}]", list.join(","))
}

fn count(list: &[u64]) -> usize {
    list.iter().product::<u64>() as usize
}

/// Small numbers of any element type, whole ones but for floats; `low` is the least.
fn any(element: &str, extents: &[u64], seed: u32, low: f32) -> Tensor {
    let values = numbers(count(extents), seed).into_iter().map(|x| (x + 1.0) * 4.0 + low);
    let bytes: Vec<u8> = match element {
        "float" => values.flat_map(f32::to_le_bytes).collect(),
        "double" => values.flat_map(|x| f64::from(x).to_le_bytes()).collect(),
        "int64" => values.flat_map(|x| (x as i64).to_le_bytes()).collect(),
        "int32" => values.flat_map(|x| (x as i32).to_le_bytes()).collect(),
        "int16" => values.flat_map(|x| (x as i16).to_le_bytes()).collect(),
        "int8" => values.map(|x| x as i8 as u8).collect(),
        "uint8" => values.map(|x| x.max(0.0) as u8).collect(),
        "bool" => values.map(|x| u8::from(x > low + 4.0)).collect(),
        other => panic!("{other}"),
    };
    tensor(&format!("{element}{}", dims(extents)), bytes)
}

/// Indices below an extent, some from the end.
/// Indices, of which negative ones count from the end.
fn indices(element: &str, extents: &[u64], below: u64, seed: u32) -> Tensor {
    let value = |x: f32| ((x * below as f32) as i64).clamp(-(below as i64), below as i64 - 1);
    integers(element, extents, numbers(count(extents), seed).into_iter().map(value))
}

/// Labels of classes, none of which is negative.
fn labels(element: &str, extents: &[u64], classes: u64, seed: u32) -> Tensor {
    let value = |x: f32| ((x * classes as f32) as i64).rem_euclid(classes as i64);
    integers(element, extents, numbers(count(extents), seed).into_iter().map(value))
}

fn integers(element: &str, extents: &[u64], values: impl Iterator<Item = i64>) -> Tensor {
    let bytes: Vec<u8> = match element {
        "int32" => values.flat_map(|x| (x as i32).to_le_bytes()).collect(),
        _ => values.flat_map(i64::to_le_bytes).collect(),
    };
    tensor(&format!("{element}{}", dims(extents)), bytes)
}

fn floats(extents: &[u64], seed: u32) -> Tensor {
    float(extents, numbers(count(extents), seed))
}

fn list(values: &[i64]) -> Tensor {
    int64(&[values.len() as u64], values)
}

/// Functions of positive numbers, and of numbers from -1 to 1.
const OF_POSITIVE: &[&str] = &["Log", "Sqrt", "Acosh"];
const OF_SMALL: &[&str] = &["Acos", "Asin", "Atanh"];

/// Functions of any number: operators of one operand whose contracts say that they keep its type, and some others.
fn of_one() -> BTreeSet<String> {
    let others =
        ["Ceil", "Floor", "Gelu<approximate = \"tanh\">", "Reciprocal", "Round", "com.microsoft.FastGelu"];
    let kept = lmsc_cuda::operators().map(|(domain, name)| Op::new(domain, name)).filter(|op| {
        let listed = OF_POSITIVE.contains(&op.name()) || OF_SMALL.contains(&op.name());
        op.contract().is_some_and(|contract| contract.keeps_type() && contract.operands.len() == 1) && !listed
    });
    kept.map(|op| op.to_string()).chain(others.map(str::to_owned)).collect()
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn elementwise() {
    let many = |element: &str| -> Vec<Tensor> { (0..40).map(|i| any(element, &[9], i, -4.0)).collect() };
    for (i, n) in EXTENTS.into_iter().enumerate() {
        for op in ["Relu", "Sigmoid"] {
            run(&format!("float[{n}] y"), op, &[floats(&[n], i as u32)]);
        }
        let both = [floats(&[n], 1), floats(&[n], 2)];
        run(&format!("float[{n}] y"), "Sub", &both);
        run(&format!("float[3,{n}] y"), "Mul", &[floats(&[3, n], 1), floats(&[n], 2)]);
        run(&format!("float[{n},3] y"), "Add", &[floats(&[n, 1], 1), floats(&[3], 2)]);
    }
    for element in ["float", "double"] {
        for op in of_one() {
            run(&format!("{element}[33] y"), &op, &[any(element, &[33], 1, -4.0)]);
        }
        for op in OF_POSITIVE {
            run(&format!("{element}[33] y"), op, &[any(element, &[33], 1, 1.0)]);
        }
        for op in OF_SMALL {
            let small = run("float[33] y", "Div", &[floats(&[33], 3), float(&[], vec![1.25])]).remove(0);
            let bytes: Vec<u8> = match element {
                "float" => small.into_iter().flat_map(f32::to_le_bytes).collect(),
                _ => small.into_iter().flat_map(|x| f64::from(x).to_le_bytes()).collect(),
            };
            run(&format!("{element}[33] y"), op, &[tensor(&format!("{element}[33]"), bytes)]);
        }
        for op in ["IsNaN", "IsInf", "IsInf<detect_negative = 0>"] {
            let strange = run(
                "float[4] y",
                "Div",
                &[float(&[4], vec![1.0, -1.0, 0.0, 2.0]), float(&[4], vec![0.0, 0.0, 0.0, 1.0])],
            );
            let bytes: Vec<u8> = match element {
                "float" => strange[0].iter().flat_map(|x| x.to_le_bytes()).collect(),
                _ => strange[0].iter().flat_map(|&x| f64::from(x).to_le_bytes()).collect(),
            };
            run("bool[4] y", op, &[tensor(&format!("{element}[4]"), bytes)]);
        }
        for op in [
            "SigmoidGrad",
            "TanhGrad",
            "SinGrad",
            "GeluGrad",
            "FastGeluGrad",
            "QuickGeluGrad",
            "LeakyReluGrad",
        ] {
            let both = [any(element, &[65], 1, -4.0), any(element, &[65], 2, -4.0)];
            run(&format!("{element}[65] y"), &format!("com.microsoft.{op}"), &both);
        }
        for op in ["BiasGeluGrad_dX", "BiasFastGeluGrad_dX"] {
            let three =
                [any(element, &[5, 7], 1, -4.0), any(element, &[5, 7], 2, -4.0), any(element, &[7], 3, -4.0)];
            run(&format!("{element}[5,7] y"), &format!("com.microsoft.{op}"), &three);
        }
        for op in ["com.microsoft.BiasGelu", "com.microsoft.FastGelu", "PRelu"] {
            let both = [any(element, &[5, 7], 1, -4.0), any(element, &[7], 2, -4.0)];
            run(&format!("{element}[5,7] y"), op, &both);
        }
        let both = [any(element, &[5, 7], 1, -4.0), any(element, &[7], 2, -4.0)];
        run(&format!("{element}[5,7] y"), "Mean", &both);
        run(&format!("{element}[9] y"), "Mean", &many(element));
    }
    for element in NUMBERS {
        for op in ["Abs", "Neg", "Relu", "Sign", "Clip"] {
            run(&format!("{element}[40] y"), op, &[any(element, &[40], 1, -4.0)]);
        }
        let bounded = [any(element, &[40], 1, -4.0), list_of(element, &[-2.0]), list_of(element, &[2.0])];
        if ["float", "int64", "int32"].contains(&element) {
            run(&format!("{element}[40] y"), "Clip", &bounded);
        }
        for op in ["Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Sum"] {
            let both = [any(element, &[5, 1, 7], 1, 1.0), any(element, &[3, 1], 2, 1.0)];
            run(&format!("{element}[5,3,7] y"), op, &both);
        }
        for op in ["Max", "Min", "Sum"] {
            run(&format!("{element}[9] y"), op, &many(element));
        }
        if !["float", "double"].contains(&element) {
            let zeros = [any(element, &[9], 1, -4.0), any(element, &[9], 2, -4.0)];
            run(&format!("{element}[9] y"), "Div", &zeros);
        }
        run(
            &format!("{element}[9] y"),
            "Pow",
            &[
                any(element, &[9], 1, 1.0),
                if element == "int64" { float(&[], vec![2.0]) } else { int64(&[], &[4]) },
            ],
        );
        for op in ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"] {
            run("bool[33] y", op, &[any(element, &[33], 1, -2.0), any(element, &[33], 2, -2.0)]);
        }
        let both = [any(element, &[33], 1, -4.0), any(element, &[33], 2, -4.0)];
        run(&format!("{element}[33] y"), "com.microsoft.ReluGrad", &both);
        for to in NUMBERS.into_iter().chain(["bool"]) {
            run(&format!("{to}[33] y"), &cast(to), &[any(element, &[33], 1, -4.0)]);
        }
        let ends = [0, 18, 2].map(|number| exactly(element, number));
        run(&format!("{element}[9] y"), "Range", &ends);
    }
    for element in ["uint8", "int16", "float", "double"] {
        let three = [any("bool", &[4, 1], 1, 0.0), any(element, &[4, 5], 2, 0.0), any(element, &[5], 3, 0.0)];
        run(&format!("{element}[4,5] y"), "Where", &three);
    }
    for op in ["And", "Or", "Xor", "Equal"] {
        run("bool[33] y", op, &[any("bool", &[33], 1, 0.0), any("bool", &[33], 2, 0.0)]);
    }
    run("bool[33] y", "Not", &[any("bool", &[33], 1, 0.0)]);
    for to in ["float", "uint8"] {
        run(&format!("{to}[33] y"), &cast(to), &[any("bool", &[33], 1, 0.0)]);
    }
    short_floats();
    for element in ["float", "double", "int64", "int32"] {
        for down in [0, 1] {
            let op = format!("com.microsoft.Scale<scale_down = {down}>");
            run("float[33] y", &op, &[floats(&[33], 1), any(element, &[], 2, 2.0)]);
        }
    }
    let spread: Vec<Tensor> = (0..5).map(|i| floats(&[if i % 2 == 0 { 6 } else { 1 }, 11], i)).collect();
    for op in ["Sum", "Max", "Min", "Mean"] {
        run("float[6,11] y", op, &spread);
    }
    run_in_place("Sum", &many("float"), 39).unwrap();
    for written in [0, 1] {
        run_in_place("Sub", &[floats(&[300], 1), floats(&[300], 2)], written).unwrap();
        run_in_place("Sum", &[floats(&[300], 1), floats(&[300], 2)], written).unwrap();
    }
}

/// Two bounds of an element type that constants may have.
/// The `Cast` to an element type, which ONNX numbers.
fn cast(to: &str) -> String {
    let numbered = [
        ("float", 1),
        ("uint8", 2),
        ("int8", 3),
        ("int16", 5),
        ("int32", 6),
        ("int64", 7),
        ("bool", 9),
        ("float16", 10),
        ("double", 11),
        ("bfloat16", 16),
    ];
    let (_, number) = numbered.into_iter().find(|(name, _)| *name == to).unwrap();
    format!("Cast<to = {number}>")
}

/// Casts of all short floats there are, and of numbers on, beside and between them.
fn short_floats() {
    let every: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    for (short, widen) in [
        ("float16", (|bits| half::f16::from_bits(bits).to_f64()) as fn(u16) -> f64),
        ("bfloat16", |bits| half::bf16::from_bits(bits).to_f64()),
    ] {
        for to in NUMBERS.into_iter().chain(["bool", "float16", "bfloat16"]).filter(|to| *to != short) {
            let all = [tensor(&format!("{short}[65536]"), every.clone())];
            run(&format!("{to}[65536] y"), &cast(to), &all);
            let some =
                every.chunks(512).flat_map(|part| part[..2].to_vec()).chain(every[..256].to_vec()).collect();
            run(&format!("{to}[384] y"), &cast(to), &[tensor(&format!("{short}[384]"), some)]);
        }
        for from in NUMBERS {
            run(&format!("{short}[33] y"), &cast(short), &[any(from, &[33], 1, -4.0)]);
        }
        let around = |bits: u16| {
            let (x, next) = (widen(bits), widen(bits.wrapping_add(1)));
            let middle = (x + next) / 2.0;
            [
                x,
                middle,
                middle * (1.0 + 1e-13),
                middle * (1.0 - 1e-13),
                middle * (1.0 + 1e-7),
                next * 0.75 + x * 0.25,
            ]
        };
        let numbers: Vec<f64> = (0..=u16::MAX).flat_map(around).collect();
        let n = numbers.len();
        let doubles = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        run(&format!("{short}[{n}] y"), &cast(short), &[tensor(&format!("double[{n}]"), doubles)]);
        let floats = numbers.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect();
        run(&format!("{short}[{n}] y"), &cast(short), &[tensor(&format!("float[{n}]"), floats)]);
    }
}

fn list_of(element: &str, values: &[f32]) -> Tensor {
    let bytes: Vec<u8> = match element {
        "float" => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        "int64" => values.iter().flat_map(|&x| (x as i64).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|&x| (x as i32).to_le_bytes()).collect(),
    };
    tensor(&format!("{element}[]"), bytes)
}

/// A scalar that is this small number.
fn exactly(element: &str, value: i8) -> Tensor {
    let bytes = match element {
        "float" => f32::from(value).to_le_bytes().to_vec(),
        "double" => f64::from(value).to_le_bytes().to_vec(),
        "int64" => i64::from(value).to_le_bytes().to_vec(),
        "int32" => i32::from(value).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    };
    tensor(&format!("{element}[]"), bytes)
}

fn reductions() {
    let ops = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum", "LogSumExp"];
    for op in ops {
        for element in ["float", "double", "int64", "int32"] {
            let whole = matches!(op, "Sum" | "Mean" | "Max" | "Min" | "Prod");
            if !whole && element.starts_with("int") || op == "LogSumExp" && element != "float" {
                continue;
            }
            let name = format!("Reduce{op}<keepdims = 0>");
            for (axis, rest) in [(0, "3,5"), (1, "4,5"), (2, "4,3")] {
                run(
                    &format!("{element}[{rest}] y"),
                    &name,
                    &[any(element, &[4, 3, 5], 1, 1.0), list(&[axis])],
                );
            }
            run(&format!("{element}[3] y"), &name, &[any(element, &[4, 3, 5], 1, 1.0), list(&[0, 2])]);
        }
    }
    for n in EXTENTS {
        let x = |extents: &[u64]| floats(extents, n as u32);
        run(&format!("float[{n}] y"), "ReduceSum<keepdims = 0>", &[x(&[5, n]), list(&[0])]);
        run("float[5] y", "ReduceSum<keepdims = 0>", &[x(&[5, n]), list(&[1])]);
        run("float[] y", "ReduceMax<keepdims = 0>", &[x(&[1 + n, 2]), list(&[0, 1])]);
        run("float[2] y", "ReduceLogSumExp<keepdims = 0>", &[x(&[1 + n, 2]), list(&[0])]);
    }
    for element in NUMBERS {
        for attributes in ["axis = 1", "axis = 0, select_last_index = 1"] {
            for op in ["ArgMax", "ArgMin"] {
                let to = if attributes.contains("= 0") { "int64[1,5,3] y" } else { "int64[4,1,3] y" };
                run(to, &format!("{op}<{attributes}>"), &[any(element, &[4, 5, 3], 7, -4.0)]);
            }
        }
        for (attributes, dims) in [("axis = 1, largest = 0", "4,2,3"), ("axis = 0", "4,5,3")] {
            let count = if attributes.contains("= 1,") { 2 } else { 4 };
            let both = [any(element, &[4, 5, 3], 7, -4.0), int64(&[1], &[count])];
            run(&format!("{element}[{dims}] y, int64[{dims}] i"), &format!("TopK<{attributes}>"), &both);
        }
        for attributes in ["", "<exclusive = 1>", "<reverse = 1>", "<exclusive = 1, reverse = 1>"] {
            run(
                &format!("{element}[4,5,3] y"),
                &format!("CumSum{attributes}"),
                &[any(element, &[4, 5, 3], 1, -4.0), int64(&[], &[1])],
            );
        }
    }
    for attributes in ["axis = 1", "axis = 1, select_last_index = 1"] {
        // One row without NaN, and rows with it before, between and behind numbers.
        let rows = [1.0, f32::INFINITY, 2.0, f32::NAN, 1.0, 3.0, 5.0, f32::NAN, f32::NAN, 4.0, 9.0, f32::NAN];
        for op in ["ArgMax", "ArgMin"] {
            let rows = [tensor("float[4,3]", rows.iter().flat_map(|x| x.to_le_bytes()).collect())];
            run("int64[4,1] y", &format!("{op}<{attributes}>"), &rows);
        }
    }
    sums_in_slices();
    for (a, b, y) in [
        (&[4, 5][..], &[5][..], "4,5"),
        (&[300], &[1], "300"),
        (&[3, 1], &[1, 70], "3,70"),
        (&[2, 3], &[2, 3], "2,3"),
    ] {
        let out: Vec<u64> = y.split(',').map(|n| n.parse().unwrap()).collect();
        let three = [floats(&out, 1), floats(a, 2), any("float", b, 3, 1.0)];
        let results = format!("float{} da, float{} db", dims(a), dims(b));
        run(&results, "com.microsoft.DivGrad", &three);
    }
}

/// Sums of few outputs, of one slice and of several, with packs of four and of one.
fn sums_in_slices() {
    for (extents, axes, rest) in [
        (&[1101][..], &[0][..], ""),
        (&[64, 32], &[0], "32"),
        (&[1000, 64], &[0], "64"),
        (&[3000, 37], &[0], "37"),
        (&[200, 300], &[0], "300"),
        (&[9000, 5], &[0], "5"),
        (&[3, 20_000], &[1], "3"),
        (&[2, 9001], &[1], "2"),
        (&[40, 3, 500], &[0, 2], "3"),
        (&[50, 7, 49], &[0, 2], "7"),
        (&[2500, 1000], &[0, 1], ""),
    ] {
        for op in ["Sum", "Mean"] {
            let given = [floats(extents, 4), list(axes)];
            run(&format!("float[{rest}] y"), &format!("Reduce{op}<keepdims = 0>"), &given);
        }
    }
}

fn movement() {
    for element in ["uint8", "int16", "float", "double"] {
        let x = |extents: &[u64]| any(element, extents, 5, 0.0);
        let y = |extents: &str| format!("{element}[{extents}] y");
        run(&y("5,3,4"), "Transpose<perm = [2, 0, 1]>", &[x(&[3, 4, 5])]);
        run(&y("65,33"), "Transpose", &[x(&[33, 65])]);
        run(&y("2,3,4"), "Expand", &[x(&[3, 1]), list(&[2, 3, 4])]);
        run(&y("4,9"), "Tile", &[x(&[2, 3]), list(&[2, 3])]);
        run(&y("2,2"), "Slice", &[x(&[2, 3]), list(&[-1]), list(&[-9]), list(&[1]), list(&[-2])]);
        run(&y("2,5"), "Concat<axis = 1>", &[x(&[2, 2]), x(&[2, 0]), x(&[2, 3])]);
        run(&format!("{element}[2,2] a, {element}[2,3] b"), "Split<axis = 1>", &[x(&[2, 5]), list(&[2, 3])]);
        run(&y("3,7"), "Pad", &[x(&[2, 5]), list(&[1, 1, 0, 1]), x(&[])]);
        run(&y("3,7"), "Pad", &[x(&[2, 5]), list(&[1, 1, 0, 1])]);
        for mode in ["reflect", "edge", "wrap"] {
            run(&y("3,9"), &format!("Pad<mode = \"{mode}\">"), &[x(&[2, 5]), list(&[1, 2, 0, 2])]);
        }
        for (upper, k) in [(1, 0), (0, 1), (1, -2), (0, -9), (1, 9)] {
            run(&y("3,4,5"), &format!("Trilu<upper = {upper}>"), &[x(&[3, 4, 5]), int64(&[], &[k])]);
        }
        for mode in ["DCR", "CRD"] {
            run(
                &y("2,2,6,8"),
                &format!("DepthToSpace<blocksize = 2, mode = \"{mode}\">"),
                &[x(&[2, 8, 3, 4])],
            );
        }
        run(&y("2,8,3,4"), "SpaceToDepth<blocksize = 2>", &[x(&[2, 2, 6, 8])]);
        run(&y("2,3"), "Identity", &[x(&[2, 3])]);
        run(&y("2,3"), "com.microsoft.ZeroGradient", &[x(&[2, 3])]);
        run(&y("4,3"), "ConstantOfShape", &[list(&[4, 3])]);
        for index in ["int64", "int32"] {
            let of = |extents: &[u64], below| indices(index, extents, below, 9);
            run(&y("4,2,3,5"), "Gather<axis = 1>", &[x(&[4, 6, 5]), of(&[2, 3], 6)]);
            run(&y("4,2,5"), "GatherElements<axis = 1>", &[x(&[4, 6, 5]), of(&[4, 2, 5], 6)]);
            run(&y("7,5"), "GatherND", &[x(&[4, 4, 5]), of(&[7, 2], 4)]);
            run(&y("3,2,5"), "GatherND<batch_dims = 1>", &[x(&[3, 4, 5]), of(&[3, 2, 1], 4)]);
            run(&y("6,5"), "OneHot", &[of(&[6], 5), int64(&[], &[5]), x(&[2])]);
            run(
                &y("4,6,5"),
                "ScatterElements<axis = 1>",
                &[x(&[4, 6, 5]), of(&[4, 9, 5], 6), any(element, &[4, 9, 5], 8, 0.0)],
            );
            run(&y("6,5"), "ScatterND", &[x(&[6, 5]), of(&[9, 1], 6), any(element, &[9, 5], 8, 0.0)]);
        }
    }
    for element in NUMBERS {
        for reduction in ["add", "mul", "max", "min"] {
            for index in ["int64", "int32"] {
                let (x, of) = (any(element, &[4, 6, 5], 1, -1.0), indices(index, &[4, 9, 5], 6, 9));
                let op = format!("ScatterElements<axis = 1, reduction = \"{reduction}\">");
                run(&format!("{element}[4,6,5] y"), &op, &[x, of, any(element, &[4, 9, 5], 8, -1.0)]);
                let (x, of) = (any(element, &[6, 5], 1, -1.0), indices(index, &[9, 1], 6, 9));
                let op = format!("ScatterND<reduction = \"{reduction}\">");
                run(&format!("{element}[6,5] y"), &op, &[x, of, any(element, &[9, 5], 8, -1.0)]);
            }
        }
    }
    for index in ["int64", "int32"] {
        for picks in [1, 7, 300] {
            let dy = floats(&[2, picks, 3], 1);
            run(
                "float[2,6,3] y",
                "com.microsoft.GatherGrad<axis = 1>",
                &[list(&[2, 6, 3]), indices(index, &[picks], 6, 9), dy],
            );
        }
        // More than one block sorts, and more than two.
        for picks in [300, 1000, 5000] {
            let given = [list(&[40]), indices(index, &[picks], 40, 9), floats(&[picks], 1)];
            run("float[40] y", "com.microsoft.GatherGrad", &given);
        }
        let given = [list(&[3]), indices(index, &[2000], 1, 9), floats(&[2000], 1)];
        run("float[3] y", "com.microsoft.GatherGrad", &given);
        run(
            "float[4,4,5] y",
            "com.microsoft.GatherNDGrad",
            &[list(&[4, 4, 5]), indices(index, &[7, 2], 4, 3), floats(&[7, 5], 1)],
        );
        run(
            "float[4,6,5] y",
            "com.microsoft.GatherElementsGrad<axis = 1>",
            &[floats(&[4, 2, 5], 1), list(&[4, 6, 5]), indices(index, &[4, 2, 5], 6, 3)],
        );
    }
    run(
        "float[2,3] y",
        "com.microsoft.SliceGrad",
        &[floats(&[2, 2], 1), list(&[2, 3]), list(&[-1]), list(&[-9]), list(&[1]), list(&[-2])],
    );
    run(
        "float[2,5] y, int64[2] lengths",
        "com.microsoft.ConcatTraining<axis = 1>",
        &[floats(&[2, 2], 1), floats(&[2, 3], 2)],
    );
    run("int64[2] a, int64[1] b", "com.microsoft.BroadcastGradientArgs", &[list(&[3, 1]), list(&[2, 1, 4])]);
    run("int64[3] y", "Shape", &[floats(&[2, 3, 4], 1)]);
    run("float[2] y", "Constant<value_floats = [1.0, 2.0]>", &[]);
}

fn products() {
    for (m, n, k) in [
        (1, 1, 1),
        (63, 65, 17),
        (64, 64, 16),
        (65, 3, 300),
        (3, 130, 1200),
        (1, 1, 1024),
        (2, 2, 5000),
        (5, 4, 0),
    ] {
        let y = format!("float[{m},{n}] y");
        run(&y, "MatMul", &[floats(&[m, k], 1), floats(&[k, n], 2)]);
        for (a, b) in [(0, 1), (1, 0), (1, 1)] {
            let left = if a == 1 { floats(&[k, m], 1) } else { floats(&[m, k], 1) };
            let right = if b == 1 { floats(&[n, k], 2) } else { floats(&[k, n], 2) };
            let op = format!("Gemm<transA = {a}, transB = {b}, alpha = 0.5, beta = 2.0>");
            run(&y, &op, &[left, right, floats(&[n], 3)]);
        }
    }
    run("float[2,5,3,70] y", "MatMul", &[floats(&[2, 1, 3, 40], 1), floats(&[5, 40, 70], 2)]);
    run(
        "float[3,2,5] y",
        "com.microsoft.FusedMatMul<transA = 1, transB = 1>",
        &[floats(&[3, 900, 2], 1), floats(&[3, 5, 900], 2)],
    );
    // Batches at no regular distance, in few calls of the library and in too many; vectors.
    for (a, b, y) in [
        (&[2, 5, 3, 4][..], &[5, 4, 7][..], "2,5,3,7"),
        (&[3, 1, 3, 4], &[2, 4, 1], "3,2,3,1"),
        (&[40, 1, 2, 3], &[2, 3, 2], "40,2,2,2"),
        (&[4], &[4], ""),
        (&[4], &[3, 4, 2], "3,2"),
        (&[3, 2, 4], &[4], "3,2"),
    ] {
        run(&format!("float[{y}] y"), "MatMul", &[floats(a, 1), floats(b, 2)]);
    }
    run(
        "float[3,4,5] y",
        "com.microsoft.FusedMatMul<transBatchA = 1, transBatchB = 1, transB = 1, alpha = 0.5>",
        &[floats(&[4, 3, 6], 1), floats(&[5, 3, 6], 2)],
    );
    let listed = CONVOLUTIONS.map(|(image, weights, positions, attributes)| {
        (image.to_vec(), weights.to_vec(), positions.to_vec(), attributes.to_owned())
    });
    for (image, weights, positions, attributes) in listed.into_iter().chain((0..24).map(some_convolution)) {
        let (image, weights, positions) = (&image[..], &weights[..], &positions[..]);
        let (x, w, p) = (floats(image, 1), floats(weights, 2), floats(positions, 3));
        let [xs, ws, ps] = [image, weights, positions].map(|list| format!("float{}", dims(list)));
        run(
            &format!("{ps} y"),
            &format!("Conv<{attributes}>"),
            &[x.clone(), w.clone(), floats(&weights[..1], 4)],
        );
        run(&format!("{ps} y"), &format!("Conv<{attributes}>"), &[x.clone(), w.clone()]);
        let results = format!("{xs} dx, {ws} dw, float[{}] db", weights[0]);
        run(&results, &format!("com.microsoft.ConvGrad<{attributes}>"), &[p.clone(), x.clone(), w.clone()]);
        let channels = image[1];
        run(
            &format!("{xs} y"),
            &format!("ConvTranspose<{attributes}>"),
            &[p.clone(), w.clone(), floats(&[channels], 5)],
        );
        let results = format!("{ps} dx, {ws} dw, float[{channels}] db");
        run(&results, &format!("com.microsoft.ConvTransposeGrad<{attributes}>"), &[x, p, w.clone()]);
        // The same with channels last.
        let [image, positions] = [image, positions].map(last);
        let (x, p) = (floats(&image, 1), floats(&positions, 3));
        let [xs, ps] = [&image, &positions].map(|list| format!("float{}", dims(list)));
        let op = |name: &str| format!("ai.lmsc.Nhwc{name}<{attributes}>");
        run(&format!("{ps} y"), &op("Conv"), &[x.clone(), w.clone(), floats(&weights[..1], 4)]);
        run(&format!("{ps} y"), &op("Conv"), &[x.clone(), w.clone()]);
        let results = format!("{xs} dx, {ws} dw, float[{}] db", weights[0]);
        run(&results, &op("ConvGrad"), &[p.clone(), x.clone(), w.clone()]);
        run(&format!("{xs} y"), &op("ConvTranspose"), &[p.clone(), w.clone(), floats(&[channels], 5)]);
        let results = format!("{ps} dx, {ws} dw, float[{channels}] db");
        run(&results, &op("ConvTransposeGrad"), &[x, p, w]);
    }
}

/// The extents with channels last.
fn last(dims: &[u64]) -> Vec<u64> {
    lmsc_ir::nhwc::permuted(dims, &lmsc_ir::nhwc::to_last(dims.len()))
}

/// Extents of image, weights and positions, and attributes.
type Convolution = (&'static [u64], &'static [u64], &'static [u64], &'static str);
const CONVOLUTIONS: [Convolution; 6] = [
    (&[2, 3, 70], &[4, 3, 3], &[2, 4, 35], "strides = [2], pads = [1, 1]"),
    (&[1, 2, 9, 9], &[70, 2, 3, 3], &[1, 70, 9, 9], "pads = [1, 1, 1, 1]"),
    (&[2, 4, 6, 5], &[6, 2, 3, 2], &[2, 6, 4, 4], "group = 2"),
    (
        &[3, 2, 8, 8],
        &[4, 2, 3, 3],
        &[3, 4, 3, 3],
        "strides = [2, 2], pads = [0, 1, 1, 0], dilations = [1, 2]",
    ),
    (&[2, 2, 4, 3, 5], &[3, 2, 2, 2, 2], &[2, 3, 3, 2, 4], "group = 1"),
    (&[40, 3, 8, 8], &[5, 3, 1, 1], &[40, 5, 8, 8], "group = 1"),
];

/// Extents and attributes of one of many convolutions, in one to three dimensions, often with the same padding at both ends.
fn some_convolution(seed: u32) -> (Vec<u64>, Vec<u64>, Vec<u64>, String) {
    let mut drawn = numbers(64, 100 + seed).into_iter();
    let mut draw = |below: u64| ((drawn.next().unwrap() + 1.0) * 0.5 * below as f32) as u64 % below;
    let (rank, groups) = (1 + draw(3) as usize, 1 + draw(2));
    let [batch, inner, outer] = [1 + draw(3), 1 + draw(3), 1 + draw(4)];
    let mut image = vec![batch, groups * inner];
    let mut weights = vec![groups * outer, inner];
    let mut positions = vec![batch, groups * outer];
    let (mut strides, mut dilations, mut before, mut after) = (vec![], vec![], vec![], vec![]);
    for _ in 0..rank {
        let [kernel, stride, dilation, padding] = [1 + draw(3), 1 + draw(2), 1 + draw(2), draw(3)];
        let reach = (kernel - 1) * dilation + 1;
        let [more, uneven] = [draw(6), u64::from(draw(8) == 0)];
        // The window reaches as far beyond the end as before the beginning, or one element more.
        let extent = (reach + more).saturating_sub(2 * padding).max(1);
        image.push(extent);
        weights.push(kernel);
        positions.push((extent + 2 * padding + uneven - reach) / stride + 1);
        strides.push(stride);
        dilations.push(dilation);
        before.push(padding);
        after.push(padding + uneven);
    }
    let list = |values: &[u64]| dims(values);
    let attributes = format!(
        "group = {groups}, strides = {}, dilations = {}, pads = {}",
        list(&strides),
        list(&dilations),
        list(&[before, after].concat())
    );
    (image, weights, positions, attributes)
}

fn pooling() {
    for attributes in [
        "kernel_shape = [2, 2], strides = [2, 2]",
        "kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], dilations = [1, 1]",
    ] {
        let (x, y) =
            (floats(&[2, 3, 7, 5], 1), if attributes.contains("3, 3") { "2,3,4,3" } else { "2,3,3,2" });
        let op = format!("MaxPool<{attributes}>");
        run(&format!("float[{y}] y, int64[{y}] i"), &op, std::slice::from_ref(&x));
        run(&format!("float[{y}] y"), &op, std::slice::from_ref(&x));
        let out: Vec<u64> = y.split(',').map(|n| n.parse().unwrap()).collect();
        let at = support::run_bytes(&format!("float[{y}] y, int64[{y}] i"), &op, std::slice::from_ref(&x))
            .remove(1);
        let given = [floats(&out, 2), tensor(&format!("int64{}", dims(&out)), at)];
        for op in [format!("MaxPoolGrad<{attributes}>"), "MaxPoolGrad".to_owned()] {
            run("float[2,3,7,5] dx", &op, &given);
        }
        for padding in [0, 1] {
            let attributes = format!("{attributes}, count_include_pad = {padding}");
            run(&format!("float[{y}] y"), &format!("AveragePool<{attributes}>"), std::slice::from_ref(&x));
            run("float[2,3,7,5] dx", &format!("AveragePoolGrad<{attributes}>"), &[floats(&out, 2)]);
        }
        // The same with channels last.
        let (x, y, out) = (floats(&[2, 7, 5, 3], 1), dims(&last(&out)), last(&out));
        let op = format!("ai.lmsc.NhwcMaxPool<{attributes}>");
        run(&format!("float{y} y, int64{y} i"), &op, std::slice::from_ref(&x));
        let at =
            support::run_bytes(&format!("float{y} y, int64{y} i"), &op, std::slice::from_ref(&x)).remove(1);
        let given = [floats(&out, 2), tensor(&format!("int64{y}"), at)];
        for op in [format!("ai.lmsc.NhwcMaxPoolGrad<{attributes}>"), "ai.lmsc.NhwcMaxPoolGrad".to_owned()] {
            run("float[2,7,5,3] dx", &op, &given);
        }
        for padding in [0, 1] {
            let op = |name: &str| format!("ai.lmsc.Nhwc{name}<{attributes}, count_include_pad = {padding}>");
            run(&format!("float{y} y"), &op("AveragePool"), std::slice::from_ref(&x));
            run("float[2,7,5,3] dx", &op("AveragePoolGrad"), &[floats(&out, 2)]);
        }
    }
    for n in [1, 5, 300] {
        for op in ["GlobalAveragePool", "GlobalMaxPool"] {
            run("float[2,3,1,1] y", op, &[floats(&[2, 3, n, 2], 1)]);
        }
    }
    let (x, p) = (floats(&[2, 2, 4, 3], 1), floats(&[2, 2, 7, 6], 2));
    let (empty, scales) = (float(&[0], vec![]), float(&[4], vec![1.0, 1.0, 1.75, 2.0]));
    for mode in ["nearest", "linear", "cubic"] {
        let of = format!("<mode = \"{mode}\", coordinate_transformation_mode = \"asymmetric\">");
        run("float[2,2,7,6] y", &format!("Resize{of}"), &[x.clone(), empty.clone(), scales.clone()]);
        let given = [p.clone(), x.clone(), empty.clone(), scales.clone()];
        run("float[2,2,4,3] dx", &format!("com.microsoft.ResizeGrad{of}"), &given);
    }
}

fn normalizations() {
    for n in [1u64, 2, 31, 64, 257] {
        let (x, of) = (floats(&[3, n], 1), [floats(&[n], 2), floats(&[n], 3)]);
        let [scale, bias] = of;
        let results = format!("float[3,{n}] y, float[3,1] m, float[3,1] s");
        let kept = run(&results, "LayerNormalization", &[x.clone(), scale.clone(), bias.clone()]);
        let [m, s] = [1, 2].map(|i| float(&[3, 1], kept[i].clone()));
        run(
            &format!("float[3,{n}] dx, float[{n}] ds, float[{n}] db"),
            "com.microsoft.LayerNormalizationGrad",
            &[floats(&[3, n], 4), x.clone(), scale.clone(), m, s.clone()],
        );
        run(
            &format!("float[3,{n}] y, float[3,1] s"),
            "SimplifiedLayerNormalization",
            &[x.clone(), scale.clone()],
        );
        run(
            &format!("float[3,{n}] dx, float[{n}] ds"),
            "com.microsoft.SimplifiedLayerNormalizationGrad",
            &[floats(&[3, n], 4), x.clone(), scale.clone(), s],
        );
        for op in ["Softmax", "LogSoftmax"] {
            for axis in [0, 1] {
                let y = run(
                    &format!("float[3,{n}] y"),
                    &format!("{op}<axis = {axis}>"),
                    std::slice::from_ref(&x),
                )
                .remove(0);
                let given = [floats(&[3, n], 5), float(&[3, n], y)];
                run(&format!("float[3,{n}] y"), &format!("com.microsoft.{op}Grad_13<axis = {axis}>"), &given);
            }
        }
    }
    layers_in_slices();
    for (batch, channels, plane, about) in [
        (2u64, 3u64, 5u64, -4.0),
        (4, 2, 100, -4.0),
        // Channels that are neighbours in memory, by one and by four, in slices of rows.
        (70, 5, 1, -4.0),
        (1_000, 36, 1, 300.0),
        (1, 1, 1, -4.0),
        (3, 300, 2, -4.0),
        // Of several slices, by four and by one; far from zero, where sums of squares alone would say little.
        (5, 3, 2000, -4.0),
        (4, 2, 4000, 1000.0),
        (40, 2, 49, 300.0),
        (9, 2, 2001, -300.0),
    ] {
        let (x, c) = (any("float", &[batch, channels, plane], 1, about), [channels]);
        let [scale, bias] = [2, 3].map(|seed| any("float", &c, seed, 0.5));
        let [mean, variance] = [4, 5].map(|seed| any("float", &c, seed, 0.5));
        let (xs, cs) = (format!("float[{batch},{channels},{plane}]"), format!("float[{channels}]"));
        let given = [x.clone(), scale.clone(), bias.clone(), mean.clone(), variance.clone()];
        let results = format!("{xs} y, {cs} rm, {cs} rv, {cs} sm, {cs} si");
        let kept = run(&results, "com.microsoft.BatchNormInternal<training_mode = 1>", &given);
        run(&format!("{xs} y"), "BatchNormalization", &given);
        run(&format!("{xs} y, {cs} rm, {cs} rv"), "BatchNormalization<training_mode = 1>", &given);
        let [m, s] = [3, 4].map(|i| float(&c, kept[i].clone()));
        let given = [floats(&[batch, channels, plane], 6), x.clone(), scale.clone(), m, s];
        run(&format!("{xs} dx, {cs} ds, {cs} db"), "com.microsoft.BatchNormalizationGrad", &given);
        run(&format!("{xs} y"), "InstanceNormalization", &[x.clone(), scale.clone(), bias.clone()]);
        run(
            &format!("{xs} y"),
            &format!("GroupNormalization<num_groups = {}>", if channels % 2 == 0 { 2 } else { 1 }),
            &[x, scale, bias],
        );
    }
    losses_in_slices();
    for element in ["int64", "int32"] {
        for (reduction, out) in [("mean", ""), ("sum", ""), ("none", "5,3")] {
            let scores = floats(&[5, 7, 3], 1);
            let labels = labels(element, &[5, 3], 7, 2);
            for weighted in [false, true] {
                let mut given = vec![scores.clone(), labels.clone()];
                given.extend(weighted.then(|| any("float", &[7], 3, 0.5)));
                let attributes = format!("<reduction = \"{reduction}\", ignore_index = 2>");
                let op = format!("SoftmaxCrossEntropyLoss{attributes}");
                let both = run(&format!("float[{out}] loss, float[5,7,3] log"), &op, &given);
                run(&format!("float[{out}] loss"), &op, &given);
                run(&format!("float[{out}] loss"), &format!("NegativeLogLikelihoodLoss{attributes}"), &given);
                let d = if out.is_empty() { floats(&[], 4) } else { floats(&[5, 3], 4) };
                let mut back = vec![d, float(&[5, 7, 3], both[1].clone()), labels.clone()];
                back.extend(weighted.then(|| any("float", &[7], 3, 0.5)));
                run(
                    "float[5,7,3] dx",
                    &format!("com.microsoft.SoftmaxCrossEntropyLossGrad{attributes}"),
                    &back,
                );
            }
        }
    }
}

/// Sums of layer normalization over more rows than one slice has.
fn layers_in_slices() {
    for (rows, n) in [(700u64, 36u64), (200, 33), (65, 260)] {
        let (x, scale) = (floats(&[rows, n], 1), floats(&[n], 2));
        let results = format!("float[{rows},{n}] y, float[{rows},1] m, float[{rows},1] s");
        let kept = run(&results, "LayerNormalization", &[x.clone(), scale.clone(), floats(&[n], 3)]);
        let [m, s] = [1, 2].map(|i| float(&[rows, 1], kept[i].clone()));
        let results = format!("float[{rows},{n}] dx, float[{n}] ds, float[{n}] db");
        run(&results, "com.microsoft.LayerNormalizationGrad", &[floats(&[rows, n], 4), x, scale, m, s]);
    }
}

/// Losses of more labels than one block sums up.
fn losses_in_slices() {
    for (n, places) in [(3000u64, 1u64), (7, 500)] {
        let extents = [n, 5, places];
        let (scores, labels) = (floats(&extents, 1), labels("int64", &[n, places], 5, 2));
        for reduction in ["mean", "sum"] {
            let attributes = format!("<reduction = \"{reduction}\", ignore_index = 2>");
            let given = [scores.clone(), labels.clone(), any("float", &[5], 3, 0.5)];
            let results = format!("float[] loss, float{} log", dims(&extents));
            let op = format!("SoftmaxCrossEntropyLoss{attributes}");
            let log = float(&extents, run(&results, &op, &given).remove(1));
            let back = [floats(&[], 4), log, labels.clone(), given[2].clone()];
            let op = format!("com.microsoft.SoftmaxCrossEntropyLossGrad{attributes}");
            run(&format!("float{} dx", dims(&extents)), &op, &back);
        }
    }
}

fn training() {
    for n in [1u64, 300, 5000] {
        let v = |seed| any("float", &[n], seed, 0.5);
        let (rate, step) = (float(&[], vec![0.01]), int64(&[], &[3]));
        let given = [rate.clone(), step.clone(), v(1), v(2), v(3), v(4)];
        let three = format!("float[{n}] w, float[{n}] m, float[{n}] v");
        for attributes in ["<adam_mode = 0>", "<adam_mode = 1, correct_bias = 0>", "<adam_mode = 1>"] {
            run(&three, &format!("ai.lmsc.AdamWOptimizer{attributes}"), &given);
        }
        run(&format!("float[{n}] w"), "ai.lmsc.SGDOptimizer", &[rate.clone(), v(1), v(2)]);
        let four = format!("int64[] s, float[{n}] m, float[{n}] v, float[{n}] w");
        for mode in [0, 1] {
            let op = format!("com.microsoft.AdamOptimizer<lambda = 0.1, weight_decay_mode = {mode}>");
            run(&four, &op, &given);
        }
        run(&format!("float[{n}] w"), "com.microsoft.GradientAccumulator", &[v(1), v(2)]);
        for overwrite in [false, true] {
            let given = [v(1), v(2), truth(&[], &[overwrite])];
            run(&format!("bool[] f, float[{n}] w"), "com.microsoft.InPlaceAccumulatorV2", &given);
        }
        let preview = "ai.onnx.preview.training";
        run(
            &format!("float[{n}] x, float[{n}] h"),
            &format!("{preview}.Adagrad<norm_coefficient = 0.1>"),
            &[rate.clone(), step.clone(), v(1), v(2), v(3)],
        );
        for mode in ["standard", "nesterov"] {
            run(
                &format!("float[{n}] x, float[{n}] v"),
                &format!(
                    "{preview}.Momentum<mode = \"{mode}\", alpha = 0.9, beta = 0.999, norm_coefficient = 0.0>"
                ),
                &[rate.clone(), step.clone(), v(1), v(2), v(3)],
            );
        }
        run(
            &three,
            &format!("{preview}.Adam<epsilon = 0.1>"),
            &[rate.clone(), step.clone(), v(1), v(2), v(3), v(4)],
        );
        for step in [0, 1 << 40] {
            let y = format!("float[{n}] y");
            let drop = [v(1), float(&[], vec![0.25]), truth(&[], &[true])];
            run_step(&format!("{y}, bool[{n}] mask"), "Dropout", &drop, step);
            run_step(&y, "Dropout", &[v(1)], step);
            run_step(&y, &format!("RandomNormal<shape = [{n}]>"), &[], step);
            run_step(&y, &format!("RandomUniform<shape = [{n}], low = -1.0>"), &[], step);
            run_step(&y, "Bernoulli", &[floats(&[n], 3)], step);
            let back = [v(1), any("bool", &[n], 2, 0.0), float(&[], vec![0.25])];
            run_step(&y, "com.microsoft.DropoutGrad", &back, step);
        }
    }
}

/// Recurrent layers of every kind, whose gradients are compared as well.
fn attention() {
    for (causal, mask) in
        [(0, None), (1, Some(any("bool", &[5, 40], 6, 0.0))), (0, Some(floats(&[2, 4, 5, 1], 7)))]
    {
        let kept = [floats(&[2, 4, 5, 7], 4), floats(&[2, 4, 5], 5), any("float", &[2, 4, 5], 6, 1.0)];
        let [q, k, v] = [floats(&[2, 4, 5, 6], 1), floats(&[2, 2, 40, 6], 2), floats(&[2, 2, 40, 7], 3)];
        let given: Vec<Tensor> = [&q, &k, &v].into_iter().chain(&mask).cloned().collect();
        let op = format!("ai.lmsc.Attention<is_causal = {causal}>");
        run("float[2,4,5,7] y, float[2,4,5] m, float[2,4,5] s", &op, &given);
        let given: Vec<Tensor> =
            [&floats(&[2, 4, 5, 7], 8), &q, &k, &v].into_iter().chain(&kept).chain(&mask).cloned().collect();
        let op = format!("ai.lmsc.AttentionGrad<is_causal = {causal}>");
        run("float[2,4,5,6] dq, float[2,2,40,6] dk, float[2,2,40,7] dv", &op, &given);
    }
}

fn recurrent() {
    let (t, b, i, h) = (3u64, 2u64, 3u64, 5u64);
    for (name, gates, extra) in [("LSTM", 4u64, ""), ("GRU", 3, ", linear_before_reset = 1"), ("GRU", 3, "")]
    {
        for (direction, d) in [("reverse", 1u64), ("bidirectional", 2)] {
            let attributes = format!("<hidden_size = {h}, direction = \"{direction}\"{extra}>");
            let wide = gates * h;
            let mut given = vec![
                floats(&[t, b, i], 1),
                floats(&[d, wide, i], 2),
                floats(&[d, wide, h], 3),
                floats(&[d, 2 * wide], 4),
                Tensor::absent(),
                floats(&[d, b, h], 5),
            ];
            let (y, last) = (format!("float[{t},{d},{b},{h}]"), format!("float[{d},{b},{h}]"));
            let kept = format!("float[{t},{d},{b},{wide}] gates");
            let lstm = name == "LSTM";
            let results = if lstm {
                format!("{y} y, {last} yh, {last} yc, {y} cells, {kept}")
            } else {
                format!("{y} y, {last} yh, {kept}")
            };
            given.extend(lstm.then(|| floats(&[d, b, h], 6)));
            let all = run(&results, &format!("com.microsoft.{name}Training{attributes}"), &given);
            for first in [true, false] {
                let state = |k: usize| if first { given[k].clone() } else { Tensor::absent() };
                let hidden = float(&[t, d, b, h], all[0].clone());
                let dy = floats(&[t, d, b, h], 7);
                let back = if lstm {
                    vec![
                        given[0].clone(),
                        given[1].clone(),
                        given[2].clone(),
                        Tensor::absent(),
                        state(5),
                        state(6),
                        hidden,
                        float(&[t, d, b, h], all[3].clone()),
                        float(&[t, d, b, wide], all[4].clone()),
                        dy,
                        floats(&[d, b, h], 8),
                        floats(&[d, b, h], 9),
                    ]
                } else {
                    vec![
                        given[0].clone(),
                        given[1].clone(),
                        given[2].clone(),
                        given[3].clone(),
                        Tensor::absent(),
                        state(5),
                        hidden,
                        float(&[t, d, b, wide], all[2].clone()),
                        dy,
                        floats(&[d, b, h], 8),
                    ]
                };
                let mut wanted = format!(
                    "float[{t},{b},{i}] dx, float[{d},{wide},{i}] dw, float[{d},{wide},{h}] dr, float[{d},{}] db, {last} dh",
                    2 * wide
                );
                if lstm {
                    wanted += &format!(", {last} dc");
                }
                run(&wanted, &format!("com.microsoft.{name}Grad{attributes}"), &back);
            }
        }
    }
}

/// `scripts/gpu-check` runs every kernel on a real device: the graph of the cases that ran here.
fn the_graph_of_all_is_there(all: &[String]) {
    let (text, kernels) = cases::graph();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/operators.lms");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "{} is of before; INSTA_UPDATE=always writes it anew", path.display());
    let without: Vec<_> = all.iter().filter(|&name| name != "next_step" && !kernels.contains(name)).collect();
    assert!(without.is_empty(), "{without:?}");
}

/// Compared where they run: see `support`.
#[test]
fn every_kernel_agrees_with_the_host() {
    let Some(shim) = shim() else { return };
    for family in
        [elementwise, reductions, movement, products, attention, pooling, normalizations, training, recurrent]
    {
        family();
    }
    let (all, ran) = (shim.kernels(), shim::launched());
    let missing: Vec<&String> =
        all.iter().filter(|name| !ran.contains(*name) && *name != "next_step").collect();
    assert!(missing.is_empty(), "{} of {} kernels did not run: {missing:?}", missing.len(), all.len());
    the_graph_of_all_is_there(&all);
    for name in shim::LIBRARIES {
        assert!(ran.contains(name), "some products and convolutions are the libraries': {name}");
    }
    if std::env::var_os("LMSC_SANITIZERS").is_none() {
        println!("skipped: the sanitizers, without LMSC_SANITIZERS");
        return;
    }
    for sanitizer in ["thread", "address,undefined"] {
        let program = shim::build(
            "sanitized",
            &shim::all_kernels(),
            &["shim.cpp", "main.cpp"],
            Mode::Sanitized(sanitizer),
            &[],
        );
        let program = program.unwrap_or_else(|e| panic!("{e}")).expect("there is a compiler");
        let scenarios = shim::scenarios();
        let covered: BTreeSet<&String> = scenarios.iter().flat_map(|scenario| &scenario.kernels).collect();
        let left_out: Vec<&String> =
            all.iter().filter(|name| ran.contains(*name) && !covered.contains(name)).collect();
        assert!(left_out.is_empty(), "without a small scenario: {left_out:?}");
        let input: Vec<u8> = scenarios.iter().flat_map(|scenario| scenario.input.clone()).collect();
        let (ok, text) = shim::feed(&program, &input);
        assert!(ok, "{sanitizer}:\n{text}");
    }
}

/// The results are compared with those of the host, and the note with the message of the host's check: see `support`. Values far
/// out of range would end the process if memory there was used.
#[test]
fn an_index_or_a_label_out_of_range_is_noted_and_uses_no_memory() {
    let many = |element: &str, extents: &[u64], wrong: i64| {
        let right = (0..count(extents) as i64).map(|i| if i == 2 { wrong } else { i % 2 });
        integers(element, extents, right)
    };
    let f = |extents: &[u64]| floats(extents, 1);
    for (element, wrong) in
        [("int64", 4), ("int64", -5), ("int64", i64::MAX), ("int64", i64::MIN), ("int32", 1 << 30)]
    {
        let i = |extents: &[u64]| many(element, extents, wrong);
        run("float[2,5,3] y", "Gather<axis = 1>", &[f(&[2, 4, 3]), i(&[5])]);
        run("float[2,5,3] y", "GatherElements<axis = 1>", &[f(&[2, 4, 3]), i(&[2, 5, 3])]);
        run("float[3,6] y", "GatherND", &[f(&[4, 4, 6]), i(&[3, 2])]);
        let dy = [list(&[2, 4, 3]), i(&[5]), f(&[2, 5, 3])];
        run("float[2,4,3] y", "com.microsoft.GatherGrad<axis = 1>", &dy);
        let dy = [f(&[2, 5, 3]), list(&[2, 4, 3]), i(&[2, 5, 3])];
        run("float[2,4,3] y", "com.microsoft.GatherElementsGrad<axis = 1>", &dy);
        let dy = [list(&[4, 4, 6]), i(&[3, 2]), f(&[3, 6])];
        run("float[4,4,6] y", "com.microsoft.GatherNDGrad", &dy);
        for reduction in ["none", "add", "max"] {
            let by = format!("reduction = \"{reduction}\"");
            let given = [f(&[2, 4, 3]), i(&[2, 3, 3]), f(&[2, 3, 3])];
            run("float[2,4,3] y", &format!("ScatterElements<axis = 1, {by}>"), &given);
            run("float[4,4,6] y", &format!("ScatterND<{by}>"), &[f(&[4, 4, 6]), i(&[3, 2]), f(&[3, 6])]);
        }
        for reduction in ["none", "sum", "mean"] {
            let by = format!("<reduction = \"{reduction}\", ignore_index = 1>");
            let extents: &[u64] = if reduction == "none" { &[3, 2] } else { &[] };
            let loss = format!("float{} loss", dims(extents));
            let (scores, labels) = (f(&[3, 4, 2]), i(&[3, 2]));
            let given = [scores.clone(), labels.clone(), any("float", &[4], 3, 0.5)];
            run(&loss, &format!("NegativeLogLikelihoodLoss{by}"), &given);
            run(&format!("{loss}, float[3,4,2] log"), &format!("SoftmaxCrossEntropyLoss{by}"), &given);
            let given = [f(extents), scores, labels, given[2].clone()];
            run("float[3,4,2] dx", &format!("com.microsoft.SoftmaxCrossEntropyLossGrad{by}"), &given);
        }
    }
}

/// Results of the recipe if each operand and result begins `by` bytes behind a multiple of 64.
fn displaced(by: usize, results: &str, op: &str, operands: &[Tensor]) -> Option<Vec<Vec<u8>>> {
    let shim = shim()?;
    let recipe = support::recipe(results, op, operands);
    let room = |bytes: &[u8]| {
        let mut room = vec![[0u8; 64]; bytes.len().div_ceil(64) + 2];
        let bytes_of = room.as_flattened_mut();
        let begin = bytes_of.as_ptr().align_offset(64) + by;
        bytes_of[begin..begin + bytes.len()].copy_from_slice(bytes);
        (room, begin)
    };
    let from: Vec<_> = operands.iter().map(|operand| room(&operand.bytes)).collect();
    let sizes = results.split(", ").map(|ty| {
        let extents = ty.trim_start_matches("float[").split(']').next().unwrap();
        4 * extents
            .split(',')
            .filter(|n| !n.is_empty())
            .map(|n| n.parse::<usize>().unwrap())
            .product::<usize>()
    });
    let to: Vec<_> = sizes.map(|bytes| (room(&vec![0; bytes]), bytes)).collect();
    let address = |(room, begin): &(Vec<[u8; 64]>, usize)| room.as_ptr() as u64 + *begin as u64;
    let given: Vec<u64> = from.iter().map(address).collect();
    let wanted: Vec<u64> = to.iter().map(|(room, _)| address(room)).collect();
    shim.run(&recipe, &given, &wanted, StepContext::default(), false);
    Some(to.iter().map(|((room, begin), bytes)| room.as_flattened()[*begin..][..*bytes].to_vec()).collect())
}

/// Slices and packs follow from the extents alone.
#[test]
fn bits_do_not_depend_on_addresses() {
    let channels = |n: u64| [2, 3, 4, 5].map(|seed| any("float", &[n], seed, 0.5));
    let [scale, bias, mean, variance] = channels(2);
    let x = any("float", &[4, 2, 4000], 1, 3.0);
    let dy = floats(&[4, 2, 4000], 6);
    let rows = [floats(&[700, 36], 1), floats(&[700, 36], 2), floats(&[36], 3)];
    let [m, s] = [4, 5].map(|seed| any("float", &[700, 1], seed, 0.5));
    let [dy_rows, x_rows, scale_rows] = rows;
    let wide = "float[4,2,4000] y";
    for (results, op, operands) in [
        (
            format!("{wide}, float[2] rm, float[2] rv, float[2] sm, float[2] si"),
            "com.microsoft.BatchNormInternal<training_mode = 1>",
            vec![x.clone(), scale.clone(), bias, mean.clone(), variance.clone()],
        ),
        (
            format!("{wide}, float[2] ds, float[2] db"),
            "com.microsoft.BatchNormalizationGrad",
            vec![dy, x.clone(), scale, mean, variance],
        ),
        (
            "float[700,36] dx, float[36] ds, float[36] db".to_owned(),
            "com.microsoft.LayerNormalizationGrad",
            vec![dy_rows, x_rows.clone(), scale_rows, m, s],
        ),
        ("float[36] y".to_owned(), "ReduceSum<keepdims = 0, axes = [0]>", vec![x_rows]),
        ("float[2] y".to_owned(), "ReduceSum<keepdims = 0, axes = [0, 2]>", vec![x]),
    ] {
        let Some(first) = displaced(0, &results, op, &operands) else { return };
        for by in [4, 8, 16] {
            assert!(displaced(by, &results, op, &operands).as_ref() == Some(&first), "{op}, {by} bytes on");
        }
    }
}

/// The calls of a convolution of a float image with weights of these extents.
fn convolution(image: &[u64], weights: &[u64], positions: &[u64], attributes: &str, bias: bool) -> Vec<Call> {
    let mut given = vec![floats(image, 1), floats(weights, 2)];
    given.extend(bias.then(|| floats(&weights[..1], 3)));
    let results = format!("float{} y", dims(positions));
    support::recipe(&results, &format!("Conv<{attributes}>"), &given).calls
}

/// Supported convolutions go to the library in its own layout; others run own kernels.
#[test]
fn convolutions_suit_the_library_or_not() {
    let filter = |image: &[u64], weights: &[u64], positions: &[u64], attributes: &str| {
        let [Call::Convolution { library, behind, kernels, .. }] =
            &convolution(image, weights, positions, attributes, true)[..]
        else {
            panic!("{attributes} is one convolution")
        };
        assert!(behind.len() == usize::from(library.is_some()) && kernels.len() == 1);
        library.clone().map(|convolution| convolution.filter)
    };
    // Two dimensions at least, and two paddings that are one.
    let one = filter(&[2, 3, 70], &[4, 3, 3], &[2, 4, 35], "strides = [2], pads = [1, 1]").unwrap();
    assert_eq!((&one.image[..], &one.weights[..]), (&[2, 3, 1, 70][..], &[4, 3, 1, 3][..]));
    assert_eq!((&one.padding[..], &one.stride[1..], one.groups), (&[0, 1][..], &[2][..], 1));
    let two = "strides = [2, 1], dilations = [1, 2], pads = [1, 2, 1, 2], group = 2";
    let two = filter(&[1, 4, 9, 9], &[6, 2, 3, 3], &[1, 6, 5, 9], two).unwrap();
    assert_eq!(
        (&two.positions[..], &two.padding[..], &two.dilation[..]),
        (&[1, 6, 5, 9][..], &[1, 2][..], &[1, 2][..])
    );
    assert_eq!((two.groups, two.found), (2, Found::Positions));
    let three = filter(&[1, 2, 4, 4, 4], &[3, 2, 2, 2, 2], &[1, 3, 5, 5, 5], "pads = [1, 1, 1, 1, 1, 1]");
    assert_eq!(three.unwrap().image.len(), 5);
    // Padding that no window reads is as at the beginning; padding that is read may differ.
    let end =
        filter(&[1, 1, 8, 8], &[1, 1, 3, 3], &[1, 1, 4, 4], "strides = [2, 2], pads = [1, 1, 0, 0]").unwrap();
    assert_eq!((&end.padding[..], &end.after[..]), (&[1, 1][..], &[1, 1][..]));
    let end =
        filter(&[1, 1, 8, 8], &[1, 1, 3, 3], &[1, 1, 4, 4], "strides = [2, 2], pads = [0, 0, 1, 1]").unwrap();
    assert_eq!((&end.padding[..], &end.after[..]), (&[0, 0][..], &[1, 1][..]));
    let end =
        filter(&[1, 1, 9, 9], &[1, 1, 3, 3], &[1, 1, 4, 4], "pads = [0, 0, 3, 3], strides = [3, 3]").unwrap();
    assert_eq!((&end.padding[..], &end.after[..]), (&[0, 0][..], &[3, 3][..]));
    // One pixel is a product, unless there is more to do; nothing is nothing.
    let of = |batch, attributes, bias| {
        let [image, positions] = [[batch, 4, 5, 5], [batch, 6, 5, 5]];
        convolution(&image, &[6, if bias { 4 } else { 2 }, 1, 1], &positions, attributes, bias)
    };
    let pixel = convolution(&[2, 4, 5, 5], &[6, 4, 1, 1], &[2, 6, 5, 5], "group = 1", false);
    assert!(matches!(&pixel[..], [Call::Products { .. }]), "{pixel:?}");
    for (attributes, bias) in [("group = 1", true), ("group = 2", false)] {
        let calls = of(2, attributes, bias);
        assert!(matches!(&calls[..], [Call::Convolution { library: Some(_), .. }]), "{calls:?}");
        assert!(of(0, attributes, bias).is_empty());
    }
}

/// The library takes short floats with channels last as they are; weights in another order are moved in a room.
#[test]
fn weights_of_short_floats_are_moved_for_the_library() {
    let calls = |results: &str, op: &str, operands: [&[u64]; 3]| {
        let zeros = |list: &[u64]| {
            let bytes = vec![0; 2 * list.iter().product::<u64>() as usize];
            tensor(&format!("bfloat16{}", dims(list)), bytes)
        };
        let given = operands.map(zeros);
        support::recipe(results, op, &given[..if op.ends_with("Grad") { 3 } else { 2 }]).calls
    };
    let names = |launches: &[lmsc_cuda::KernelLaunch]| {
        launches.iter().map(|launch| launch.kernel.clone()).collect::<Vec<_>>()
    };
    let (image, positions): (&[u64], &[u64]) = (&[2, 9, 9, 8], &[2, 7, 7, 16]);
    for (op, results, operands) in [
        ("ai.lmsc.NhwcConv", "bfloat16[2,7,7,16] y", [image, &[16, 8, 3, 3], image]),
        (
            "ai.lmsc.NhwcConvGrad",
            "bfloat16[2,9,9,8] dx, bfloat16[16,8,3,3] dw",
            [positions, image, &[16, 8, 3, 3]],
        ),
    ] {
        for call in calls(results, op, operands) {
            let Call::Convolution { library: Some(it), before, behind, .. } = &call else {
                panic!("{op}: {call:?}")
            };
            assert_eq!((it.stored, it.layout), (lmsc_cuda::FloatType::Bf16, ChannelOrder::Last), "{op}");
            let (moved, none) =
                if it.filter.found == Found::Weights { (behind, before) } else { (before, behind) };
            assert_eq!((names(moved), names(none)), (vec!["move_u16".to_owned()], vec![]), "{op}");
        }
    }
    // One pixel is one product of all pixels.
    let pixel = calls("bfloat16[2,9,9,16] y", "ai.lmsc.NhwcConv", [image, &[16, 8, 1, 1], image]);
    let [Call::Products { library, .. }] = &pixel[..] else { panic!("{pixel:?}") };
    assert_eq!((library.len(), library[0].batch, library[0].n), (1, 1, 2 * 81));
}

#[test]
fn the_shim_runs_blocks_warps_and_atomics_and_finds_what_is_planted() {
    let own = format!("{}/tests/shim/self.cu", env!("CARGO_MANIFEST_DIR"));
    let link = ["-shared"];
    let built = shim::build("self.so", std::slice::from_ref(&own), &["shim.cpp"], Mode::Fibers, &link);
    let Some(library) = built.unwrap_or_else(|e| panic!("{e}")) else { return };
    let shim = shim::Shim::open(&library);
    let mut total = [0i64];
    shim.call("count_all", 3, &[vec![1000], vec![total.as_mut_ptr() as u64]]);
    assert_eq!(total[0], 1000);
    let (x, mut out) = (numbers(512, 1), [0f32; 512]);
    shim.call("warp_sums", 2, &[vec![x.as_ptr() as u64], vec![out.as_mut_ptr() as u64]]);
    for (warp, sum) in out.iter().take(16).enumerate() {
        let expected: f32 = x[warp * 32..][..32].iter().sum();
        assert!((sum - expected).abs() < 1e-5, "{warp}");
    }
    shim.call("turn_around", 2, &[vec![x.as_ptr() as u64], vec![out.as_mut_ptr() as u64]]);
    assert!(out[..256].iter().eq(x[..256].iter().rev()) && out[256..].iter().eq(x[256..].iter().rev()));
    for (i, d) in
        [(7i64, 2i64), (1 << 40, 3), (1 << 33, 1 << 32), ((1 << 62) + 5, (1 << 31) + 1), (0, 1 << 40)]
    {
        let mut both = [0i64; 2];
        shim.call("divided", 1, &[vec![i as u64], vec![d as u64], vec![both.as_mut_ptr() as u64]]);
        assert_eq!(both, [i / d, i % d], "{i} / {d}");
    }
    if std::env::var_os("LMSC_SANITIZERS").is_none() {
        println!("skipped: the sanitizers, without LMSC_SANITIZERS");
        return;
    }
    let scenario = |kernel: &str| {
        let mut input = shim::Input::default();
        let (x, out) = (input.buffer(&[0; 1024]), input.buffer(&[0; 1024]));
        let mut args = vec![vec![(x, 0)], vec![(out, 0)]];
        if kernel == "overrun" {
            args.insert(0, vec![(0, 256)]);
        }
        input.call(kernel, 1, &args);
        input.bytes()
    };
    for (sanitizer, clean, planted, said) in [
        ("thread", "turn_around", "turn_around_racing", "data race"),
        ("address", "turn_around", "overrun", "heap-buffer-overflow"),
    ] {
        let built = shim::build(
            "self",
            std::slice::from_ref(&own),
            &["shim.cpp", "main.cpp"],
            Mode::Sanitized(sanitizer),
            &[],
        );
        let program = built.unwrap_or_else(|e| panic!("{e}")).expect("there is a compiler");
        let (ok, text) = shim::feed(&program, &scenario(clean));
        assert!(ok, "{sanitizer}, {clean}:\n{text}");
        let (ok, text) = shim::feed(&program, &scenario(planted));
        assert!(!ok && text.contains(said), "{sanitizer}, {planted}:\n{text}");
    }
}

/// Element counts and indices have 64 bits.
#[test]
fn indices_have_64_bits() {
    for source in SOURCES {
        for (number, line) in source.text.lines().enumerate() {
            let at = format!("{}.cu:{}: {line}", source.name, number + 1);
            for name in ["blockIdx", "gridDim", "threadIdx", "blockDim"] {
                let uses = line.matches(name).count();
                assert_eq!(uses, line.matches(&format!("(i64){name}")).count(), "{at}");
            }
            let words: BTreeSet<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let counts = line.contains("for (int ") || line.contains("<int ") || line.contains(", int d,");
            assert!(!words.contains("int") || counts, "{at}");
            assert!(["long", "unsigned", "size_t", "short"].iter().all(|word| !words.contains(word)), "{at}");
        }
    }
}
