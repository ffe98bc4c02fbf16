//! Input that is wrong, damaged or made to do harm: a clear message, exit code 2, and nothing written, in a
//! bounded address space and time ([`Bench`] sees to that).
//!
//! The messages are snapshots under `testdata/errors`; `cargo review` accepts intended changes.

#![allow(clippy::print_stderr, reason = "times are shown with --nocapture")]

use std::fmt::Write;

use crate::support::onnx::{Builder, int};
use crate::support::{Bench, snapshot};
use lmsc_onnx::proto::*;
use prost::Message;

const CNN: &str = "testdata/models/tiny_cnn/static/training_model.onnx";
const DYNAMIC: &str = "testdata/models/tiny_mlp/training_model.onnx";

/// Snapshot of the main job's errors for the models, one after the other; each is refused, and nothing is written.
fn refused(name: &str, models: impl IntoIterator<Item = (&'static str, Vec<u8>)>) {
    let mut all = String::new();
    for (what, bytes) in models {
        let bench = Bench::new();
        bench.write("bad.onnx", bytes);
        let outcome = bench.run("@/bad.onnx --budget 1GiB -o @/out.onnx --report @/out.json");
        let message = bench.anonymous(&outcome.stderr);
        assert_eq!(outcome.code, 2, "{what}: {message}");
        assert!(outcome.stdout.is_empty() && message.starts_with("lmsc: "), "{what}: {message}");
        assert_eq!(bench.files(), ["bad.onnx"], "{what}");
        writeln!(all, "# {what}\n{message}").unwrap();
    }
    snapshot("errors", name, &all);
}

/// Snapshot of the main job's warnings for the models, one after the other; each is compiled.
fn warned(name: &str, models: impl IntoIterator<Item = (&'static str, Vec<u8>)>) {
    let mut all = String::new();
    for (what, bytes) in models {
        let bench = Bench::new();
        bench.write("odd.onnx", bytes);
        let outcome = bench.run("@/odd.onnx --budget 1GiB -o @/out.onnx --json");
        let message = without_inference(&bench.anonymous(&outcome.stderr));
        assert_eq!(outcome.code, 0, "{what}: {message}");
        assert!(message.starts_with("lmsc: warning[LMS04"), "{what}: {message}");
        let report: serde_json::Value = serde_json::from_slice(&outcome.stdout).unwrap();
        for warning in report["warnings"].as_array().unwrap() {
            assert!(outcome.stderr.contains(warning["message"].as_str().unwrap()), "{what}: {warning}");
        }
        // A file of ours has no faults.
        let again = bench.run("inspect @/out.onnx");
        assert_eq!((again.code, without_inference(&again.stderr).as_str()), (0, ""), "{what}");
        writeln!(all, "# {what}\n{message}").unwrap();
    }
    snapshot("errors", name, &all);
}

/// The messages but for that of models that do not train, as most of these are.
fn without_inference(messages: &str) -> String {
    messages.split_inclusive('\n').filter(|line| !line.contains(": no backward pass: ")).collect()
}

/// Models that look bad and are not.
fn accepted(models: impl IntoIterator<Item = (&'static str, Vec<u8>)>) {
    for (what, bytes) in models {
        let bench = Bench::new();
        bench.write("odd.onnx", bytes);
        let outcome = bench.run("@/odd.onnx --budget 16777215TiB -o @/out.onnx");
        assert_eq!(outcome.code, 0, "{what}: {}", outcome.stderr);
        assert_eq!(bench.files(), ["odd.onnx", "out.onnx"], "{what}");
    }
}

/// Snapshot of the calls' errors, one after the other; each is refused.
fn refused_calls(name: &str, bench: &Bench, calls: &[&str]) {
    let before = bench.files();
    let mut all = String::new();
    for call in calls {
        let outcome = bench.run(call);
        assert_eq!(outcome.code, 2, "{call}: {}", outcome.stderr);
        all += &bench.show(call, &outcome);
    }
    assert_eq!(bench.files(), before);
    snapshot("errors", name, &all);
}

#[test]
fn bytes_that_are_no_model() {
    let model = std::fs::read(CNN).unwrap();
    let cut = |at: usize| model[..at].to_vec();
    let mut state = 1u64;
    let mut random = |count: usize| -> Vec<u8> {
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        };
        (0..count).map(|_| next()).collect()
    };
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89".to_vec();
    refused(
        "no-model",
        [
            ("empty", Vec::new()),
            ("one byte", cut(1)),
            ("cut after 10 bytes", cut(10)),
            ("cut in the middle", cut(model.len() / 2)),
            ("cut before the last byte", cut(model.len() - 1)),
            ("100 random bytes", random(100)),
            ("100,000 random bytes", random(100_000)),
            ("zeros", vec![0; 1000]),
            ("a picture", png),
            ("text", b"This is not a model.\n".to_vec()),
            ("a PyTorch checkpoint", b"PK\x03\x04\0\0\x08\x08\0\0archive/data.pkl".to_vec()),
            ("safetensors", b"\x20\0\0\0\0\0\0\0{\"__metadata__\":{}}".to_vec()),
            ("compressed", b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec()),
            ("a pointer of Git LFS", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n".to_vec()),
            ("a web page", b"<!DOCTYPE html>\n<html><title>Not found</title></html>\n".to_vec()),
            ("damaged in the middle", {
                let mut bytes = model.clone();
                bytes[2000..2100].fill(0xff);
                bytes
            }),
            ("a field of a later version", [&model[..], &[0x98, 6, 1]].concat()),
            ("a field of a later version in every node", {
                // Two nodes that hold nothing but field 99.
                let node = [&[0x0a, 3][..], &[0x98, 6, 1]].concat();
                [&[0x08, 8, 0x3a, 10][..], &node, &node].concat()
            }),
            ("a name that is no text", [&model[..], &[0x22, 1, 0xff]].concat()),
            ("two graphs", [&model[..], &[0x3a, 0]].concat()),
            ("no graph", ModelProto { ir_version: Some(8), ..ModelProto::default() }.encode_to_vec()),
        ],
    );
}

#[test]
fn paths_that_are_no_model() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("folder.onnx")).unwrap();
    std::fs::create_dir(bench.path("folder.lms")).unwrap();
    refused_calls(
        "no-file",
        &bench,
        &[
            "inspect @/missing.onnx",
            "inspect @/missing.lms",
            "inspect @/folder.onnx",
            "inspect @/folder.lms",
            "inspect /dev/null",
            "inspect -",
        ],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn graphs_that_are_wrong() {
    let relu = || Builder::new().input("x", &[4]).node("Relu", "x", "y");
    refused(
        "graph",
        [
            (
                "cycle",
                Builder::new()
                    .input("x", &[4])
                    .node("Add", "x b", "a")
                    .node("Relu", "a", "b")
                    .output("b")
                    .bytes(),
            ),
            ("no definition", relu().node("Add", "y nowhere", "z").output("z").bytes()),
            ("output without definition", relu().output("z").bytes()),
            ("two definitions", relu().node("Exp", "x", "y").output("y").bytes()),
            ("input defined again", relu().node("Exp", "y", "x").output("y").bytes()),
            (
                "types that do not mix",
                Builder::new()
                    .input("x", &[4])
                    .typed_input("i", DataType::Int64, &[4])
                    .node("Add", "x i", "y")
                    .output("y")
                    .bytes(),
            ),
            (
                "shapes that do not mix",
                Builder::new().input("x", &[4]).input("y", &[5]).node("Add", "x y", "z").output("z").bytes(),
            ),
            ("unknown element type", {
                let mut model = relu().output("y").model();
                let ty = model.graph.as_mut().unwrap().input[0].r#type.as_mut().unwrap();
                ty.tensor_type.as_mut().unwrap().elem_type = Some(99);
                model.encode_to_vec()
            }),
            (
                "unknown operator",
                Builder::new().input("x", &[4]).node("acme.Frobnicate", "x", "y").output("y").bytes(),
            ),
            ("unknown operators", {
                let node = |b: Builder, i: usize| b.node("acme.Frobnicate", "x", &format!("y{i}"));
                let other = |b: Builder| b.node("acme.Grind", "x", "z");
                other((0..30).fold(Builder::new().input("x", &[4]), node)).output("y0").bytes()
            }),
            ("more axes than any tensor has", {
                let ones = vec![1i64; 65];
                Builder::new()
                    .input("x", &[1])
                    .ints("s", &ones)
                    .node("Reshape", "x s", "y")
                    .output("y")
                    .bytes()
            }),
            ("sequences without end", {
                let builder = Builder::new().input("x", &[4]).node("SequenceEmpty", "", "s0");
                let insert = |b: Builder, i: usize| {
                    b.node("SequenceInsert", &format!("s{i} x"), &format!("s{}", i + 1))
                };
                (0..3000).fold(builder, insert).output("s3000").bytes()
            }),
            ("a cycle of a hundred nodes", {
                let node =
                    |b: Builder, i: usize| b.node("Relu", &format!("v{i}"), &format!("v{}", (i + 1) % 100));
                (0..100).fold(Builder::new(), node).output("v0").bytes()
            }),
            ("no operator", Builder::new().input("x", &[4]).node("", "x", "y").output("y").bytes()),
            (
                "negative extent",
                Builder::new().input("x", &[4, -3]).node("Relu", "x", "y").output("y").bytes(),
            ),
            (
                "extents that overflow",
                Builder::new().input("x", &[1 << 40, 1 << 40]).node("Relu", "x", "y").output("y").bytes(),
            ),
            (
                "sizes that overflow together",
                (0..40)
                    .fold(Builder::new(), |b, i| b.input(&format!("x{i}"), &[1 << 56]))
                    .node("Relu", "x0", "y")
                    .output("y")
                    .bytes(),
            ),
            ("reads what is overwritten", {
                let builder =
                    Builder::new().input("b", &[4]).input("x", &[4]).typed_input("f", DataType::Bool, &[1]);
                let accumulate = "com.microsoft.InPlaceAccumulatorV2";
                builder.node(accumulate, "b x f", "done").node("Relu", "b", "y").output("y").bytes()
            }),
        ],
    );
    accepted([
        (
            "two nodes of one name",
            relu()
                .named("same")
                .node("Exp", "y", "z")
                .named("same")
                .node("Relu", "z", "u")
                .named("same")
                .output("u")
                .bytes(),
        ),
        (
            "nodes in no order",
            Builder::new().input("x", &[4]).node("Exp", "y", "z").node("Relu", "x", "y").output("z").bytes(),
        ),
        ("no nodes", Builder::new().input("x", &[4]).output("x").bytes()),
        ("nothing", Builder::new().bytes()),
    ]);
}

/// Files with a defect that can be ignored: a warning for each, and the work is done.
#[test]
fn files_that_are_used_with_a_warning() {
    let relu = || Builder::new().input("x", &[4]).node("Relu", "x", "y");
    warned(
        "warned",
        [
            ("what the operator computes is not what is declared", {
                let mut builder = relu().output("y");
                builder.graph.value_info.push(crate::support::onnx::info("y", DataType::Float, &[5]));
                builder.bytes()
            }),
            ("an output is not what is declared", {
                let mut builder = Builder::new().input("x", &[4]);
                builder.graph.output.push(crate::support::onnx::info("x", DataType::Float, &[5]));
                builder.bytes()
            }),
            (
                "a swap-in of nothing",
                Builder::new()
                    .input("x", &[4])
                    .node("Relu", "x", "h")
                    .node("ai.lmsc.SwapIn", "h", "y")
                    .output("y")
                    .bytes(),
            ),
            ("recomputes itself", {
                let mut model = relu().named("a").output("y").model();
                let entry = StringStringEntryProto {
                    key: Some("ai.lmsc.recomputes".into()),
                    value: Some("a".into()),
                };
                model.graph.as_mut().unwrap().node[0].metadata_props.push(entry);
                model.encode_to_vec()
            }),
            ("claims to recompute what it does not", {
                let mut model = relu().named("a").node("Relu", "y", "z").named("b").output("z").model();
                let entry = StringStringEntryProto {
                    key: Some("ai.lmsc.recomputes".into()),
                    value: Some("a".into()),
                };
                model.graph.as_mut().unwrap().node[1].metadata_props.push(entry);
                model.encode_to_vec()
            }),
            ("waits for nobody", {
                let mut model = relu().output("y").model();
                let entry = |value: &str| StringStringEntryProto {
                    key: Some("ai.lmsc.after".into()),
                    value: Some(value.into()),
                };
                let kind = StringStringEntryProto {
                    key: Some("ai.lmsc.kind".into()),
                    value: Some("sideways".into()),
                };
                model.graph.as_mut().unwrap().node[0].metadata_props =
                    vec![entry("[\"nobody\"]"), entry("[[[["), kind];
                model.encode_to_vec()
            }),
        ],
    );
}

/// Inputs and constants that no graph can have.
#[test]
fn tensors_that_are_none() {
    let typed = |ty: TypeProto| {
        let mut builder = Builder::new().input("x", &[4]).node("Relu", "x", "y").output("y");
        builder.graph.input[0].r#type = Some(ty);
        builder.bytes()
    };
    let tensor = |elem_type: i32, shape: Option<TensorShapeProto>| {
        let tensor = TensorType { elem_type: Some(elem_type), shape };
        typed(TypeProto { tensor_type: Some(tensor), ..TypeProto::default() })
    };
    let constant = |change: &dyn Fn(&mut TensorProto)| {
        let mut builder = Builder::new().ints("w", &[1, 2]).node("Relu", "w", "y").output("y");
        change(&mut builder.graph.initializer[0]);
        builder.bytes()
    };
    let sparse = |dims: Vec<i64>, code: i32| {
        let values = TensorProto { name: Some("w".into()), data_type: Some(code), ..TensorProto::default() };
        let mut builder = Builder::new().input("x", &[4]).node("Add", "x w", "y").output("y");
        builder.graph.sparse_initializer =
            vec![SparseTensorProto { values: Some(values), dims, ..SparseTensorProto::default() }];
        builder.bytes()
    };
    refused(
        "tensors",
        [
            ("an input of no type", typed(TypeProto::default())),
            ("a map", typed(TypeProto { map_type: Some(Box::default()), ..TypeProto::default() })),
            ("optional", typed(TypeProto { optional_type: Some(Box::default()), ..TypeProto::default() })),
            ("sparse", typed(TypeProto { sparse_tensor_type: Some(Box::default()), ..TypeProto::default() })),
            ("opaque", typed(TypeProto { opaque_type: Some(Box::default()), ..TypeProto::default() })),
            ("of no element type", tensor(0, Some(TensorShapeProto::default()))),
            ("of unknown rank", tensor(1, None)),
            ("of unknown extent", tensor(1, Some(TensorShapeProto { dim: vec![Dimension::default()] }))),
            ("too few bytes", constant(&|t| t.dims = vec![3])),
            ("an extent below zero", constant(&|t| t.dims = vec![-2])),
            ("more bytes than there are", constant(&|t| t.dims = vec![1 << 62])),
            ("elements of no type", constant(&|t| t.data_type = Some(77))),
            ("a segment", constant(&|t| t.segment = Some(Segment::default()))),
            ("half an element", constant(&|t| (t.raw_data, t.int64_data) = (None, vec![vec![0x80].into()]))),
            ("a sparse one of no type", sparse(vec![4], 0)),
            ("a sparse one below zero", sparse(vec![-4], 1)),
            ("an attribute of a caller", {
                let mut model = Builder::new().input("x", &[4]).node("Relu", "x", "y").output("y").model();
                let refers = AttributeProto { ref_attr_name: Some("alpha".into()), ..int("a", 1) };
                model.graph.as_mut().unwrap().node[0].attribute.push(refers);
                model.encode_to_vec()
            }),
            ("an attribute without its tensor", {
                let mut model = Builder::new().node("Constant", "", "y").output("y").model();
                let kind = Some(AttributeType::Tensor as i32);
                let empty =
                    AttributeProto { name: Some("value".into()), r#type: kind, ..AttributeProto::default() };
                model.graph.as_mut().unwrap().node[0].attribute.push(empty);
                model.encode_to_vec()
            }),
        ],
    );
}

#[test]
fn budgets_that_are_odd() {
    let bench = Bench::new();
    bench.write("empty.onnx", Builder::new().input("x", &[4]).output("x").bytes());
    let none = bench.run("@/empty.onnx --budget 1");
    snapshot("errors", "no-nodes-do-not-fit", &bench.show("@/empty.onnx --budget 1", &none));
    assert_eq!(none.code, 1);
    for budget in ["18446744073709551615", "9223372036854775808", "16777215TiB"] {
        let outcome = bench.run(&format!("{CNN} --budget {budget}"));
        assert_eq!(outcome.code, 0, "{outcome:?}");
    }
    for options in [
        "--planner tflms{lb=4294967295}",
        "--planner tflms{ub=0}",
        "--planner tflms{threshold=0}",
        "--planner tflms{n-tensors=0,swap-limit=0}",
        "--planner tflms{fuse-swapins=4294967295}",
        "--planner tflms{swap-branches=true,branch-threshold=0}",
        "--planner tflms{threshold=0,lb=0,swap-branches=true}",
    ] {
        let outcome = bench.run(&format!("{CNN} {options}"));
        assert_eq!(outcome.code, 0, "{options}: {outcome:?}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn shape_arithmetic_costs_nothing() {
    let huge = 1_000_000_000;
    accepted(
        [
            (
                "Range",
                Builder::new()
                    .scalar("a", 0)
                    .scalar("b", huge)
                    .scalar("c", 1)
                    .node("Range", "a b c", "y")
                    .output("y")
                    .bytes(),
            ),
            (
                "ConstantOfShape",
                Builder::new().ints("s", &[huge]).node("ConstantOfShape", "s", "y").output("y").bytes(),
            ),
            (
                "Expand",
                Builder::new()
                    .input("x", &[1])
                    .ints("s", &[huge])
                    .node("Expand", "x s", "y")
                    .output("y")
                    .bytes(),
            ),
            (
                "Tile",
                Builder::new()
                    .ints("x", &[7])
                    .ints("r", &[huge])
                    .node("Tile", "x r", "y")
                    .output("y")
                    .bytes(),
            ),
            (
                "all of them, and then some",
                Builder::new()
                    .ints("s", &[huge])
                    .ints("zero", &[0])
                    .node("ConstantOfShape", "s", "a")
                    .node_with("Cast", "a", "b", &[("to#", &[7])])
                    .node("Add", "b b", "c")
                    .node_with("Concat", "c b", "d", &[("axis#", &[0])])
                    .node("Gather", "d zero", "e")
                    .node("NonZero", "e", "f")
                    .output("e")
                    .bytes(),
            ),
        ]
        .into_iter()
        .filter(|(what, _)| !what.contains("then some")),
    );
    refused(
        "arithmetic",
        [
            (
                "Range without end",
                Builder::new()
                    .scalar("a", 0)
                    .scalar("b", i64::MAX)
                    .scalar("c", 1)
                    .node("Range", "a b c", "y")
                    .output("y")
                    .bytes(),
            ),
            (
                "Range without steps",
                Builder::new()
                    .scalar("a", 0)
                    .scalar("b", 10)
                    .scalar("c", 0)
                    .node("Range", "a b c", "y")
                    .output("y")
                    .bytes(),
            ),
            (
                "Range the long way",
                Builder::new()
                    .scalar("a", i64::MAX)
                    .scalar("b", i64::MIN)
                    .scalar("c", i64::MIN)
                    .node("Range", "a b c", "y")
                    .node("ConstantOfShape", "y", "z")
                    .output("z")
                    .bytes(),
            ),
            (
                "ConstantOfShape",
                Builder::new()
                    .ints("s", &[1 << 40, 1 << 40])
                    .node("ConstantOfShape", "s", "y")
                    .output("y")
                    .bytes(),
            ),
            (
                "ConstantOfShape below zero",
                Builder::new().ints("s", &[-1]).node("ConstantOfShape", "s", "y").output("y").bytes(),
            ),
            (
                "Tile",
                Builder::new()
                    .input("x", &[1 << 40])
                    .ints("r", &[1 << 40])
                    .node("Tile", "x r", "y")
                    .output("y")
                    .bytes(),
            ),
            (
                "Reshape",
                Builder::new()
                    .input("x", &[4])
                    .ints("s", &[i64::MIN, -1])
                    .node("Reshape", "x s", "y")
                    .output("y")
                    .bytes(),
            ),
            (
                "Pad",
                Builder::new()
                    .input("x", &[4])
                    .ints("p", &[i64::MAX, i64::MAX])
                    .node("Pad", "x p", "y")
                    .output("y")
                    .bytes(),
            ),
            (
                "Slice",
                Builder::new()
                    .input("x", &[4])
                    .ints("a", &[i64::MIN])
                    .ints("b", &[i64::MAX])
                    .ints("axes", &[i64::MIN])
                    .ints("steps", &[i64::MIN])
                    .node("Slice", "x a b axes steps", "y")
                    .output("y")
                    .bytes(),
            ),
        ],
    );
}

#[test]
fn attributes_that_are_absurd() {
    let million = vec![3i64; 1_000_000];
    let image = || Builder::new().input("x", &[1, 3, 8, 8]).input("w", &[4, 3, 3, 3]);
    let conv = |list: &[(&str, &[i64])]| image().node_with("Conv", "x w", "y", list).output("y").bytes();
    let pool = |list: &[(&str, &[i64])]| image().node_with("MaxPool", "x", "y", list).output("y").bytes();
    let with = |op: &str, reads: &str, name: &str, value: i64| {
        image().node_with(op, reads, "y", &[(name, &[value])]).output("y").bytes()
    };
    refused(
        "attributes",
        [
            ("a kernel of a million extents", pool(&[("kernel_shape", &million)])),
            ("pads of a million extents", conv(&[("pads", &million)])),
            ("strides of zero", conv(&[("strides", &[0, 0])])),
            ("strides below zero", pool(&[("kernel_shape", &[2, 2]), ("strides", &[i64::MIN, -1])])),
            ("dilations beyond all", conv(&[("dilations", &[i64::MAX, i64::MAX])])),
            ("pads beyond all", conv(&[("pads", &[i64::MAX; 4])])),
            ("pads below all", conv(&[("pads", &[i64::MIN; 4])])),
            ("a kernel beyond all", pool(&[("kernel_shape", &[i64::MAX, 1 << 62])])),
            ("no groups", conv(&[("group#", &[0])])),
            ("Concat far below", with("Concat", "x x", "axis#", i64::MIN)),
            ("Softmax far above", with("Softmax", "x", "axis#", i64::MAX)),
            ("Flatten far below", with("Flatten", "x", "axis#", i64::MIN)),
            (
                "Gather far below",
                image()
                    .ints("i", &[0])
                    .node_with("Gather", "x i", "y", &[("axis#", &[i64::MIN])])
                    .output("y")
                    .bytes(),
            ),
            ("Split into too many", with("Split", "x", "axis#", i64::MIN)),
            (
                "Transpose of axes that are none",
                image()
                    .node_with("Transpose", "x", "y", &[("perm", &[i64::MIN, 0, 0, 9])])
                    .output("y")
                    .bytes(),
            ),
            ("Cast to nothing", with("Cast", "x", "to#", i64::MAX)),
            ("an attribute of no kind", {
                let mut model = image().node("Relu", "x", "y").output("y").model();
                let attribute = AttributeProto { name: Some("a".into()), ..AttributeProto::default() };
                model.graph.as_mut().unwrap().node[0].attribute.push(attribute);
                model.encode_to_vec()
            }),
        ],
    );
}

/// Nodes of which the contracts of their operators say nothing, and versions that are too new. To look at such a model is
/// possible, with a warning for each kind.
#[test]
fn contracts_that_are_broken() {
    let one = || Builder::new().input("x", &[2, 3]);
    let with = |op: &str, reads: &str, ints: &[(&str, &[i64])]| {
        one().node_with(op, reads, "y", ints).named("n").output("y").bytes()
    };
    let importing = |version: i64, ir_version: i64| {
        let mut model = one().node("Relu", "x", "y").output("y").model();
        model.opset_import[0].version = Some(version);
        model.ir_version = Some(ir_version);
        model.encode_to_vec()
    };
    let both = || {
        let mut graph = one();
        for result in ["a", "b", "c"] {
            graph = graph.node_with("Relu", "x", result, &[("slope#", &[1])]);
        }
        let mut model = graph.output("c").model();
        model.opset_import[0].version = Some(1000);
        model.encode_to_vec()
    };
    let models = [
        ("an attribute that nobody knows", with("Relu", "x", &[("slope#", &[1])])),
        ("an attribute of another kind", with("LeakyRelu", "x", &[("alpha#", &[1])])),
        ("an attribute of another version", with("ReduceSum", "x", &[("axes", &[1])])),
        ("an attribute that must be there", with("Cast", "x", &[])),
        ("an operand too few", with("MatMul", "x", &[])),
        ("an operand too many", with("Relu", "x x", &[])),
        ("elements of another type", with("And", "x x", &[])),
        ("a bias of one element", {
            let conv = Builder::new().input("x", &[1, 2, 4, 4]).input("w", &[3, 2, 3, 3]).input("b", &[1]);
            conv.node("Conv", "x w b", "y").output("y").bytes()
        }),
        ("a moment of other extents", {
            let adam = one().input("r", &[]).input("g", &[2, 3]).input("v", &[3]);
            let adam = adam.typed_input("t", DataType::Int64, &[]);
            adam.node("com.microsoft.AdamOptimizer", "r t x g v v", "s").output("s").bytes()
        }),
        ("an operator older than its meaning", {
            let mut model = one().node("Selu", "x", "y").output("y").model();
            model.opset_import[0].version = Some(5);
            model.encode_to_vec()
        }),
        ("a version from the future", importing(1000, 8)),
        ("a format from the future", importing(17, 1000)),
        ("three nodes of one kind, and a version", both()),
    ];
    refused("contracts", models);
    let bench = Bench::new();
    bench.write("odd.onnx", both());
    let looked = bench.run("inspect @/odd.onnx");
    assert_eq!(looked.code, 0, "{}", looked.stderr);
    let text = without_inference(&bench.anonymous(&looked.stderr));
    let warnings: Vec<&str> = text.lines().filter(|line| line.starts_with("lmsc: warning[LMS04")).collect();
    assert_eq!(warnings.len(), 2, "{text}");
    assert!(warnings.iter().all(|warning| warning.ends_with("no other command takes the model")), "{text}");
    assert!(warnings[0].contains("version 1000 of ai.onnx") && warnings[1].contains("`slope`"), "{text}");
}

/// Bytes of `If` nodes in the branches of `If` nodes, as many as `depth`.
fn nested(depth: usize) -> Vec<u8> {
    // Inside out would copy quadratically: the lengths first, then the keys from the outermost in.
    let mut lengths = vec![0usize];
    for _ in 0..3 * depth {
        let inner = lengths[lengths.len() - 1];
        lengths.push(1 + prost::length_delimiter_len(inner) + inner);
    }
    let mut bytes = Vec::new();
    for (level, &length) in lengths.iter().rev().skip(1).enumerate() {
        let number = if level == 0 { 7 } else { [1, 5, 6][(level - 1) % 3] };
        prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut bytes);
        prost::encoding::encode_varint(length as u64, &mut bytes);
    }
    bytes
}

/// A model whose one node holds a subgraph in a subgraph, `depth` deep.
fn subgraphs(depth: usize) -> Vec<u8> {
    let node = |graph: Option<GraphProto>| NodeProto {
        op_type: Some("If".into()),
        input: vec!["c".into()],
        output: vec!["y".into()],
        attribute: graph
            .into_iter()
            .flat_map(|g| {
                let branch = |name: &str| AttributeProto {
                    name: Some(name.into()),
                    g: Some(Box::new(g.clone())),
                    r#type: Some(AttributeType::Graph as i32),
                    ..AttributeProto::default()
                };
                [branch("then_branch")]
            })
            .collect(),
        ..NodeProto::default()
    };
    let mut inner = node(None);
    for _ in 0..depth {
        let output = vec![ValueInfoProto { name: Some("y".into()), ..ValueInfoProto::default() }];
        inner = node(Some(GraphProto { node: vec![inner], output, ..GraphProto::default() }));
    }
    let mut builder = Builder::new().typed_input("c", DataType::Bool, &[]).output("y");
    builder.graph.node.push(inner);
    builder.bytes()
}

#[test]
fn deeply_nested_input_is_refused() {
    refused(
        "nesting",
        [
            ("100,000 subgraphs", nested(100_000)),
            ("40 subgraphs", nested(40)),
            ("31 subgraphs", subgraphs(31)),
            ("10 subgraphs", subgraphs(10)),
        ],
    );
}

#[test]
fn functions_that_call_one_another() {
    let function = |name: &str, calls: &str, times: usize| FunctionProto {
        name: Some(name.into()),
        domain: Some("f".into()),
        input: vec!["x".into()],
        output: vec!["y".into()],
        node: (0..times)
            .map(|i| NodeProto {
                op_type: Some(calls.into()),
                domain: Some(if calls == "Relu" { "" } else { "f" }.into()),
                input: vec!["x".into()],
                output: vec![if i == 0 { "y".into() } else { format!("y{i}") }],
                ..NodeProto::default()
            })
            .collect(),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(17) }],
        ..FunctionProto::default()
    };
    let model = |functions: Vec<FunctionProto>| {
        let graph = Builder::new().input("x", &[4]).node("f.A", "x", "y").output("y");
        ModelProto { functions, ..graph.model() }.encode_to_vec()
    };
    // As many declarations as calls.
    let mut many = function("A", "Relu", 1);
    many.value_info = vec![crate::support::onnx::info("z", DataType::Float, &[4]); 30_000];
    let mut builder = Builder::new().input("x", &[4]).output("y0");
    for i in 0..30_000 {
        builder = builder.node("f.A", "x", &format!("y{i}"));
    }
    let many = ModelProto { functions: vec![many], ..builder.model() }.encode_to_vec();
    refused(
        "functions",
        [
            ("30,000 declarations 30,000 times", many),
            ("itself", model(vec![function("A", "A", 1)])),
            ("an operator without rule", model(vec![function("A", "Frobnicate", 1)])),
            ("a body that is not valid", {
                let mut f = function("A", "Relu", 1);
                f.node[0].op_type = Some("Concat".into());
                model(vec![f])
            }),
            ("100 deep", {
                let name = |i: usize| format!("F{i}");
                let mut all: Vec<_> = (0..100).map(|i| function(&name(i), &name(i + 1), 1)).collect();
                all.extend([function("F100", "Relu", 1), function("A", "F0", 1)]);
                model(all)
            }),
            ("each other", model(vec![function("A", "B", 1), function("B", "A", 1)])),
            (
                "ten times each, ten deep",
                model(
                    (0..10)
                        .map(|i| {
                            let name = |i: usize| ((b'A' + i as u8) as char).to_string();
                            function(&name(i), &if i == 9 { "Relu".into() } else { name(i + 1) }, 10)
                        })
                        .collect(),
                ),
            ),
        ],
    );
}

#[cfg(unix)]
#[test]
fn weights_that_are_elsewhere() {
    let bench = Bench::new();
    let outside = Bench::new();
    outside.write("secret.bin", [0; 64]);
    bench.write("short.bin", [0; 10]);
    bench.write("weights.bin", [0; 16]);
    std::os::unix::fs::symlink(outside.path("secret.bin"), bench.path("link.bin")).unwrap();
    std::fs::create_dir(bench.path("sub")).unwrap();
    let mut calls = Vec::new();
    for (i, location) in [
        "/etc/passwd",
        "../secret.bin",
        "sub/../../secret.bin",
        "C:\\secret.bin",
        "..\\secret.bin",
        "link.bin",
        "missing.bin",
        "short.bin",
        "sub",
        "",
        "/dev/zero",
    ]
    .iter()
    .enumerate()
    {
        let model =
            Builder::new().input("x", &[4]).external("w", &[4], location).node("Add", "x w", "y").output("y");
        bench.write(&format!("{i}.onnx"), model.bytes());
        calls.push(format!("inspect @/{i}.onnx"));
    }
    let mut odd = |name: &str, entries: &[(&str, &str)], count: usize| {
        let mut builder = Builder::new().input("x", &[4]);
        for i in 0..count {
            builder = builder.external(&format!("w{i}"), &[4], "missing.bin");
            let entry = |&(key, value): &(&str, &str)| StringStringEntryProto {
                key: Some(key.into()),
                value: Some(value.into()),
            };
            builder.graph.initializer[i].external_data.extend(entries.iter().map(entry));
        }
        bench.write(name, builder.node("Add", "x w0", "y").output("y").bytes());
        calls.push(format!("inspect @/{name}"));
    };
    odd("twice.onnx", &[("location", "weights.bin")], 1);
    odd("number.onnx", &[("offset", "0x10")], 1);
    odd("length.onnx", &[("length", "1")], 1);
    odd("many.onnx", &[], 200);
    let calls: Vec<&str> = calls.iter().map(|c| &**c).collect();
    refused_calls("external-data", &bench, &calls);

    let good = Builder::new()
        .input("x", &[4])
        .external("w", &[4], "weights.bin")
        .node("Add", "x w", "y")
        .output("y");
    bench.write("good.onnx", good.bytes());
    assert_eq!(bench.run("inspect @/good.onnx").code, 0);
    // The result would refer to weights that are not beside it.
    let elsewhere = bench.run("@/good.onnx --budget 1GiB -o @/sub/out.onnx");
    snapshot(
        "errors",
        "external-data-elsewhere",
        &bench.show("@/good.onnx --budget 1GiB -o @/sub/out.onnx", &elsewhere),
    );
    assert_eq!(elsewhere.code, 2);
    assert_eq!(std::fs::read_dir(bench.path("sub")).unwrap().count(), 0);
}

#[test]
fn dimensions_that_are_not_bound() {
    let bench = Bench::new();
    let calls: Vec<String> = [
        "",
        "--dim batsch=4",
        "--dim batch=4 --dim seq=3",
        "--dim batch=9223372036854775807",
        "--dim batch=99999999999999999999",
        "--dim batch=-1",
        "--dim batch",
        "--dim =3",
        "--dim batch=",
        "--dim batch=4 --dim batch=5",
        "--dim batch=0",
        "--dim batch=4 --shape input=5x16",
        "--shape input",
        "--shape inputs=4x16",
        "--dim batch=4 --value labels=one",
        "--dim batch=4 --value label=1",
        "--dim batch=4 --state input=output",
        "--dim batch=4 --state nothing=output",
        "--dim batch=4 --state labls=onnx::loss::2",
        "--dim batch=4 --state labels=onnx::loss::2",
        "--dim batch=4 --state input",
    ]
    .iter()
    .map(|options| format!("inspect {DYNAMIC} {options}"))
    .collect();
    let calls: Vec<&str> = calls.iter().map(|c| c.trim()).collect();
    refused_calls("dimensions", &bench, &calls);
    let bert = "testdata/models/tiny_bert/training_model.onnx";
    refused_calls("dimensions-of-several-inputs", &bench, &[&format!("inspect {bert}")]);
    // An empty step is wrong; more than any machine can do is not.
    for (extent, code) in [("0", 2), ("99999999999999", 1)] {
        let outcome = bench.run(&format!("{DYNAMIC} --dim batch={extent} --budget 1GiB"));
        assert_eq!(outcome.code, code, "{outcome:?}");
    }
}

#[test]
fn optimizers_that_are_none() {
    let bench = Bench::new();
    bench.write("plain.onnx", Builder::new().input("x", &[4]).node("Relu", "x", "y").output("y").bytes());
    bench.write("empty.onnx", "");
    let mlp = "testdata/models/tiny_mlp/static";
    let accumulate = "com.microsoft.InPlaceAccumulatorV2";
    let inputs = Builder::new().input("p", &[4]).input("g", &[4]).typed_input("f", DataType::Bool, &[1]);
    let odd = inputs.clone().input("q_grad.accumulation.buffer", &[4]);
    bench.write("odd.onnx", odd.node(accumulate, "q_grad.accumulation.buffer g f", "done").bytes());
    let taken = inputs.input("p_grad.accumulation.buffer", &[4]).input("p.exp_avg", &[4]);
    bench.write("taken.onnx", taken.node(accumulate, "p_grad.accumulation.buffer g f", "done").bytes());
    let calls = [
        format!("inspect @/odd.onnx --optimizer {mlp}/optimizer_model.onnx"),
        format!("inspect @/taken.onnx --optimizer {mlp}/optimizer_model.onnx"),
        format!("inspect {CNN} --optimizer {CNN}"),
        format!("inspect {CNN} --optimizer @/missing.onnx"),
        format!("inspect {CNN} --optimizer @/empty.onnx"),
        format!("inspect @/plain.onnx --optimizer {mlp}/optimizer_model.onnx"),
        format!("inspect {mlp}/optimizer_model.onnx"),
        format!("inspect {mlp}/optimizer_model.onnx --optimizer {mlp}/optimizer_model.onnx"),
    ];
    let calls: Vec<&str> = calls.iter().map(|c| &**c).collect();
    refused_calls("optimizers", &bench, &calls);
}

#[test]
fn a_real_graph_that_is_wrong() {
    let bench = Bench::new();
    refused_calls(
        "real-wrong-graph",
        &bench,
        &["inspect testdata/models/tiny_bert_dynseq_bad/training_model.onnx --dim batch=4 --dim seq=16"],
    );
}

#[test]
fn texts_that_are_wrong() {
    let bench = Bench::new();
    let body = |line: &str| format!("g (float[4] x) => (float[4] y)\n{{\n   {line}\n}}\n");
    let deep = format!("[a] float[4] y = Relu<axes = {}1>(x)", "[".repeat(100_000));
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("empty", Vec::new()),
        ("comment", b"// nothing but a comment".to_vec()),
        ("no-brace", b"g (float[4] x) => (float[4] y)\n".to_vec()),
        ("unfinished", body("[a] float[4] y = Relu(x").into()),
        ("no-type", body("[a] y = Relu(x)").into()),
        ("symbol", body("[a] float[batch] y = Relu(x)").into()),
        ("negative", body("[a] float[-4] y = Relu(x)").into()),
        ("too-long", body("[a] float[99999999999999999999] y = Relu(x)").into()),
        ("quote", body("[a] float[4] \"y = Relu(x)").into()),
        ("escape", body("[a] float[4] \"\\q\" = Relu(x)").into()),
        ("not-utf8-name", body("[a] float[4] \"\\xff\" = Relu(x)").into()),
        ("mixed-list", body("[a] float[4] y = Relu<v = [1, \"two\"]>(x)").into()),
        ("empty-list", body("[a] float[4] y = Relu<v = []>(x)").into()),
        ("deep-list", body(&deep).into()),
        ("after-nobody", body("[a] float[4] y = Relu(x) after [b]").into()),
        ("updates-nothing", body("[a] float[4] y = Relu(x) updates (z as y)").into()),
        ("no-such-attribute", body("[a] float[4] y = Relu<slope = 1>(x)").into()),
        ("no-operand", body("[a] float[4] y = Add(x)").into()),
        ("no-such-result", body("[a] float[4] y = Concat<axis = 0>(x, x)").into()),
        ("place", body("[a] float[4]@disk y = Relu(x)").into()),
        ("more", (body("[a] float[4] y = Relu(x)") + "}").into()),
        ("elements", b"g () => () <float[2] w = {1.0}> {}".to_vec()),
        ("undefined", body("[a] float[4] y = Relu(z)").into()),
        ("twice", body("[a] float[4] y = Relu(x)\n   [a] float[4] y = Exp(x)").into()),
        ("cycle", body("[a] float[4] y = Add(x, z)\n   [b] float[4] z = Relu(y)").into()),
        ("order", body("[b] float[4] y = Relu(z)\n   [a] float[4] z = Relu(x)").into()),
        ("host", body("[a] float[4] y = Add(x, h)\n   [b] float[4]@host h = Relu(x)").into()),
        ("sizes", format!("g ({0} x, {0} y, {0} z) => () {{}}", "float[144115188075855871]").into()),
        ("onnx", std::fs::read(CNN).unwrap()),
        ("utf16", "\u{feff}g (float[4] x)".encode_utf16().flat_map(u16::to_le_bytes).collect()),
        ("output-type", b"g (float[4] x) => (float[5] x) {}".to_vec()),
        ("latin1", b"g (float[4] x) => (float[4] y) // \xe9\n{ [a] float[4] y = Relu(x) }".to_vec()),
        ("zeros", b"g (float[4] x) => (float[4] y) \0 { [a] float[4] y = Relu(x) }".to_vec()),
    ];
    for (name, content) in &cases {
        bench.write(&format!("{name}.lms"), content);
    }
    let calls: Vec<String> = cases.iter().map(|(name, _)| format!("opt @/{name}.lms")).collect();
    let calls: Vec<&str> = calls.iter().map(|c| &**c).collect();
    refused_calls("text", &bench, &calls);

    bench.write("good.lms", body("[a] float[4] y = Relu(x)"));
    refused_calls(
        "text-options",
        &bench,
        &[
            "opt @/good.lms --dim batch=4",
            &format!("opt @/good.lms --optimizer {CNN}"),
            "opt @/good.lms --state x=y",
        ],
    );
    // The text form does not hold weights.
    bench.write("weights.lms", "g (float[100] x) => (float[100] y) <float[100] w = bytes(400, 0x1)> { [a] float[100] y = Add(x, w) }");
    bench.write("sequence.lms", "g (seq(float[4], float[2]) x) => (seq(float[4], float[2]) x) {}");
    let calls = ["@/weights.lms --budget 1GiB -o @/out.onnx", "@/sequence.lms --budget 1GiB -o @/out.onnx"];
    refused_calls("text-without-weights", &bench, &calls);
}

#[test]
fn standard_input_that_is_wrong() {
    let bench = Bench::new();
    let mut all = String::new();
    let half = std::fs::read(CNN).unwrap().split_off(1000);
    let cases: &[(&str, &[u8])] = &[
        ("nothing", b""),
        ("text with zeros", b"g (float[4] x) => (float[4] y) \0\0 {}"),
        ("bad text", b"g (float[4] x => (float[4] y) {}"),
        ("text that is not UTF-8", b"g (float[4] \"\xff\") => () {}"),
        ("blanks", b"  \n"),
        ("half a model", &half),
    ];
    for (what, bytes) in cases {
        let outcome = bench.run_with("opt -", bytes);
        assert_eq!(outcome.code, 2, "{what}: {outcome:?}");
        all += &format!("# {what}\n{}", bench.show("opt -", &outcome));
    }
    snapshot("errors", "standard-input", &all);
}

/// Large inputs that are allowed, of every form that makes nested loops long. The harness bounds the memory and
/// time of each call; here each is also held to half a minute on a slow machine.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn large_graphs_take_linear_time() {
    large_graphs("function");
}

#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn large_graphs_take_linear_time_for_onnx_runtime() {
    large_graphs("ort");
}

/// Compiles large graphs into files of this form.
#[expect(clippy::too_many_lines, reason = "a table")]
fn large_graphs(form: &str) {
    let n = lmsc_testing::cases(10_000, 10_000, 30_000);
    let bench = Bench::new();
    let wide = 256i64;
    let mut cases: Vec<(&str, Vec<u8>, &str)> = Vec::new();
    let mut add = |name, builder: Builder, options| cases.push((name, builder.bytes(), options));
    let fixed = "--planner tflms{n-tensors=1000000,threshold=0,lb=0,swap-branches=true}";

    let mut star = Builder::new().input("x", &[wide]).node("Exp", "x", "y");
    for i in 0..n {
        star = star.node("Relu", "y", &format!("y{i}"));
    }
    add("one value read by all", star.clone(), fixed);
    let mut star = star;
    for i in 0..n {
        star = star.output(&format!("y{i}"));
    }
    add("as many outputs", star, fixed);

    let all: String = (0..n).map(|i| format!("x{i} ")).collect();
    let mut inputs = Builder::new();
    for i in 0..n {
        inputs = inputs.input(&format!("x{i}"), &[wide]);
    }
    add("one node with all operands", inputs.node("Sum", &all, "y").output("y"), fixed);

    let mut views = Builder::new().input("x", &[wide]).node("Exp", "x", "v0");
    for i in 0..n {
        views = views.node("Identity", &format!("v{i}"), &format!("v{}", i + 1));
    }
    add("a chain of views", views.output(&format!("v{n}")), fixed);

    // Forward, and back in the opposite order, each gradient reading one early view of a single tensor.
    let mut returns = Builder::new().input("x", &[wide]).node("Exp", "x", "v0");
    for i in 0..n / 2 {
        returns = returns.node("Identity", &format!("v{i}"), &format!("v{}", i + 1));
    }
    returns =
        returns.node("ReduceMean", "v0", "loss").output("loss").node("com.microsoft.ReluGrad", "x v0", "g0");
    for i in 0..n / 2 {
        returns = returns.node("com.microsoft.ReluGrad", &format!("g{i} v{i}"), &format!("g{}", i + 1));
    }
    add(
        "a return for every view",
        returns.output(&format!("g{}", n / 2)),
        "--planner tflms{n-tensors=1000000}",
    );

    // One forward tensor that every node of a long backward chain reads.
    let mut late = Builder::new().input("x", &[wide]).node("Exp", "x", "a").node("Relu", "a", "b");
    late = late.node("ReduceMean", "b", "loss").output("loss").node("com.microsoft.ReluGrad", "x b", "g0");
    for i in 0..n {
        late = late.node("com.microsoft.ReluGrad", &format!("g{i} a"), &format!("g{}", i + 1));
    }
    let late = late.output(&format!("g{n}"));
    add("one tensor for all gradients", late.clone(), "--planner tflms{n-tensors=1000000}");
    add("one tensor for all gradients, tuned", late, "--budget 1");

    // Many tensors, whose gradients are all one level deep.
    let mut flat = Builder::new().input("x", &[wide]);
    for i in 0..n / 2 {
        flat = flat.node("Exp", "x", &format!("a{i}"));
    }
    let firsts: String = (0..n / 2).map(|i| format!("a{i} ")).collect();
    flat = flat.node("Sum", &firsts, "s").node("ReduceMean", "s", "loss").output("loss");
    flat = flat.node("com.microsoft.ReluGrad", "x s", "g").node("com.microsoft.ReluGrad", "g s", "h");
    for i in 0..n / 2 {
        flat = flat
            .node("com.microsoft.ReluGrad", &format!("h a{i}"), &format!("g{i}"))
            .output(&format!("g{i}"));
    }
    add("a flat graph", flat.clone(), "--planner tflms{n-tensors=1000000}");
    add("a flat graph, tuned", flat, "--budget 1");

    // A variable that all read before one writes it, and as many variables.
    let mut variable = Builder::new().input("w", &[wide]);
    for i in 0..n {
        variable = variable.node("Exp", "w", &format!("e{i}"));
    }
    add("readers of a variable", variable.node("Relu", "e0", "w_new").output("w_new"), fixed);
    let mut variables = Builder::new();
    for i in 0..n {
        variables =
            variables.input(&format!("w{i}"), &[wide]).node("Exp", &format!("w{i}"), &format!("w{i}_new"));
        variables = variables.output(&format!("w{i}_new"));
    }
    add("as many variables", variables, fixed);

    let long = "n".repeat(1 << 20);
    let named = Builder::new().input(&long, &[wide]).node("Relu", &long, "y").named(&long).node(
        "Exp",
        "y",
        &(long.clone() + "2"),
    );
    add("names of a megabyte", named.output("y"), fixed);

    let mut unnamed = Builder::new().input("x", &[wide]).node("Relu", "x", "y").named("same");
    for i in 0..n {
        unnamed = unnamed.node("Relu", "x", &format!("y{i}")).named("same");
    }
    add("nodes of one name", unnamed.output("y"), fixed);

    let mut copies = Builder::new().input("x", &[wide]).node("Identity", "x", "v0");
    for i in 0..n {
        copies = copies.node("Identity", &format!("v{i}"), &format!("v{}", i + 1));
    }
    for i in 0..n / 10 {
        copies = copies.node_with(
            "MaxPoolGrad",
            &format!("v{n} v{n}"),
            &format!("p{i}"),
            &[("kernel_shape", &[2])],
        );
        copies.graph.value_info.push(crate::support::onnx::info(&format!("p{i}"), DataType::Float, &[wide]));
    }
    add("producers behind a chain of copies", copies.output("v0"), fixed);

    // Half of the tensors leave for the other half.
    let mut halves = Builder::new().input("x", &[wide]);
    for i in 0..n / 2 {
        halves = halves.node("Exp", "x", &format!("a{i}"));
    }
    halves = halves.node("Sum", &firsts, "s").node("ReduceMean", "s", "loss").output("loss");
    halves = halves.node("com.microsoft.ReluGrad", "x s", "g0");
    for step in 0..2 {
        halves = halves.node("com.microsoft.ReluGrad", &format!("g{step} s"), &format!("h{step}"));
        let mut sum = String::new();
        for i in 0..n / 4 {
            let i = i + step * n / 4;
            halves = halves.node("com.microsoft.ReluGrad", &format!("h{step} a{i}"), &format!("d{i}"));
            sum += &format!("d{i} ");
        }
        halves = halves.node("Sum", &sum, &format!("g{}", step + 1));
    }
    let halves = halves.output("g2");
    add("half of a flat graph", halves.clone(), "--planner tflms{n-tensors=1000000}");
    add("half of a flat graph, tuned", halves, "--budget 1");

    for (name, bytes, options) in cases {
        bench.write("large.onnx", &bytes);
        let outcome = bench.run_linear(&format!("@/large.onnx {options} -o @/out.onnx --form {form}"));
        let message = outcome.stderr.chars().take(500).collect::<String>();
        let expected = if name.contains("copies") { 2 } else { 1 };
        assert!((0..=expected).contains(&outcome.code), "{name}: exit {}: {message}", outcome.code);
    }
}

#[test]
fn large_texts_take_linear_time() {
    const N: usize = 20_000;
    let bench = Bench::new();
    let mut reuse = format!("g (float[1] x) => (float[1] x)\n{{\n[a] int8[{N}]@device:0 a = Big(x)\n");
    for i in 0..N {
        writeln!(reuse, "[u{i}] float[1] u{i} = Use(a)").unwrap();
    }
    let all: Vec<String> = (0..N).map(|i| format!("u{i}")).collect();
    writeln!(reuse, "[all] float[1] all = Sum({})", all.join(", ")).unwrap();
    for i in 0..N {
        writeln!(reuse, "[r{i}] int8[1]@device:{i} r{i} = Small(all)").unwrap();
    }
    let mut swaps = "g (float[1] x) => (float[1] x)\n{\n[a] float[1] a = Exp(x)\n[out] float[1]@host h = ai.lmsc.SwapOut(a)\n".to_owned();
    for i in 0..N {
        writeln!(swaps, "[in{i}] float[1] b{i} = ai.lmsc.SwapIn(h)").unwrap();
    }
    let mut copies = "g (float[1] x) => (float[1] x)\n{\n".to_owned();
    for i in 0..N {
        writeln!(
            copies,
            "[a{i}] float[1] a{i} = Exp(x)\n[out{i}] float[1]@host h{i} = ai.lmsc.SwapOut(a{i})"
        )
        .unwrap();
    }
    copies += "[middle] float[1] m = Exp(x)\n";
    for i in 0..N {
        writeln!(copies, "[in{i}] float[1] b{i} = ai.lmsc.SwapIn(h{i}) after [middle]").unwrap();
    }
    copies += "[end] float[1] e = Exp(m)\n";
    let inputs: Vec<String> = (0..N).map(|i| format!("float[1] w{i}")).collect();
    let results: Vec<String> = (0..N).map(|i| format!("float[1] v{i}")).collect();
    let updates: Vec<String> = (0..N).map(|i| format!("w{i} as v{i}")).collect();
    let updates = format!(
        "g ({}) => (float[1] v0)\n{{\n[a] {} = F(w0) updates ({})\n",
        inputs.join(", "),
        results.join(", "),
        updates.join(", ")
    );
    for (name, text) in [
        ("addresses", reuse),
        ("swap-ins of one tensor", swaps),
        ("copies at one time", copies),
        ("updates of one node", updates),
    ] {
        bench.write("large.lms", text + "}\n");
        let outcome = bench.run_linear("@/large.lms --planner tflms{n-tensors=1000000} -o @/out.lms");
        assert_eq!(outcome.code, 0, "{name}: {:.500}", outcome.stderr);
    }
}

/// A file of ten megabytes that holds as many small things as fit.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn ten_megabytes_of_harm_stay_within_the_memory() {
    let bench = Bench::new();
    let node = NodeProto { input: vec![String::new(); 2], ..NodeProto::default() };
    let nodes = GraphProto { node: vec![node; 1_600_000], ..GraphProto::default() };
    let attributes = NodeProto { attribute: vec![int("", 0); 1_000_000], ..NodeProto::default() };
    let attributes = GraphProto { node: vec![attributes], ..GraphProto::default() };
    let dims = TensorProto { dims: vec![1; 5_000_000], ..TensorProto::default() };
    let dims = GraphProto { initializer: vec![dims], ..GraphProto::default() };
    let empty = GraphProto { node: vec![NodeProto::default(); 5_000_000], ..GraphProto::default() };
    let infos =
        GraphProto { value_info: vec![ValueInfoProto::default(); 5_000_000], ..GraphProto::default() };
    for (name, graph) in [
        ("nodes", nodes),
        ("attributes", attributes),
        ("dims", dims),
        ("empty nodes", empty),
        ("infos", infos),
    ] {
        let bytes = ModelProto { graph: Some(graph), ..ModelProto::default() }.encode_to_vec();
        assert!((9_000_000..21_000_000).contains(&bytes.len()), "{name}: {}", bytes.len());
        bench.write("large.onnx", &bytes);
        let outcome = bench.run("inspect @/large.onnx");
        eprintln!("{name}: {}: {:.200}", outcome.code, outcome.stderr);
        if name == "empty nodes" {
            snapshot("errors", "too-many-messages", &bench.anonymous(&outcome.stderr));
        }
        // A node without results needs no type: a million operators without names are a graph.
        assert!([0, 2].contains(&outcome.code), "{name}: exit {}: {:.500}", outcome.code, outcome.stderr);
    }
}
