//! Modules of StableHLO that are read: every `testdata/jax/forms/<case>.mlir` as the `.snap` beside it says, the state that modules
//! declare, and texts that are refused, quickly.

use std::path::Path;
use std::time::Duration;

use crate::clock::processor_time;
use lmsc_mlir::{HloError, HloStep, step};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/jax/forms");

#[test]
fn modules_become_the_graphs_of_their_snapshots() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path(Path::new(CASES));
    let files = std::fs::read_dir(CASES).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "mlir")).collect();
    cases.sort();
    assert!(cases.len() >= 5, "the cases are under {CASES}");
    for case in cases {
        let text = std::fs::read_to_string(&case).unwrap();
        assert!(lmsc_mlir::is_stablehlo(&text) && lmsc_mlir::looks_like(&text));
        let HloStep { graph, state, notices } =
            step(&text).unwrap_or_else(|e| panic!("{}: {e}", case.display()));
        lmsc_ir::verify(&graph).unwrap_or_else(|e| panic!("{}: {e}", case.display()));
        assert_eq!(step(&text).unwrap().graph.to_text(), graph.to_text(), "the same text, the same graph");
        let state: String = state.iter().map(|(input, output)| format!("{input} <- {output}\n")).collect();
        settings.set_input_file(&case);
        let stem = case.file_stem().unwrap().to_str().unwrap();
        let shown = format!("{state}{}{}", notices.join("\n"), graph.to_text());
        settings.bind(|| insta::assert_snapshot!(stem, shown));
    }
}

/// A module whose `main` takes `%arg0` and `%arg1`, has these operations, and returns nothing else than `%r`.
fn module(ty: &str, operations: &str, result: &str) -> String {
    format!(
        "module @jit_f {{\n  func.func public @main(%arg0: {ty} loc(\"x\"), %arg1: {ty} loc(\"y\")) -> {result} {{\n\
         {operations}\n    return %r : {result}\n  }}\n}}\n"
    )
}

#[test]
fn the_generic_form_says_the_same_as_the_pretty_one() {
    let pairs = [
        (
            "%r = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>",
            "%r = \"stablehlo.broadcast_in_dim\"(%arg0) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<2x4xf32>",
            "tensor<2x4xf32>",
        ),
        (
            "%r = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>",
            "%r = \"stablehlo.dot_general\"(%arg0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>",
            "tensor<f32>",
        ),
        (
            "%r = stablehlo.compare GT, %arg0, %arg1, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
            "%r = \"stablehlo.compare\"(%arg0, %arg1) <{comparison_direction = #stablehlo<comparison_direction GT>, compare_type = #stablehlo<comparison_type FLOAT>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
            "tensor<4xi1>",
        ),
        (
            "%r = stablehlo.slice %arg0 [1:4:2] : (tensor<4xf32>) -> tensor<2xf32>",
            "%r = \"stablehlo.slice\"(%arg0) {start_indices = array<i64: 1>, limit_indices = array<i64: 4>, strides = dense<2> : tensor<1xi64>} : (tensor<4xf32>) -> tensor<2xf32>",
            "tensor<2xf32>",
        ),
        (
            "%c = stablehlo.constant dense<0.0> : tensor<f32>\n%r = stablehlo.reduce(%arg0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>",
            "%c = \"stablehlo.constant\"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>\n%r = \"stablehlo.reduce\"(%arg0, %c) <{dimensions = array<i64: 0>}> ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%s = \"stablehlo.add\"(%b, %a) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n\"stablehlo.return\"(%s) : (tensor<f32>) -> ()\n}) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>",
            "tensor<f32>",
        ),
    ];
    for (pretty, generic, result) in pairs {
        let [pretty, generic] = [pretty, generic].map(|operations| {
            let text = module("tensor<4xf32>", operations, result);
            step(&text).unwrap_or_else(|e| panic!("{e}:\n{text}")).graph.to_text()
        });
        assert_eq!(pretty, generic);
    }
}

/// A step of two parameters of one type that returns them in this order.
fn swapped(arguments: [&str; 2], results: [&str; 2]) -> HloStep {
    let [a, b] = arguments;
    let [c, d] = results;
    let text = format!(
        "module @s {{ func.func @main(%0: tensor<2xf32> {{tf.aliasing_output = 0 : i32}} loc(\"{a}\"), %1: tensor<2xf32> \
         {{tf.aliasing_output = 1 : i32}} loc(\"{b}\")) -> (tensor<2xf32> {{jax.result_info = \"{c}\"}}, tensor<2xf32> \
         {{jax.result_info = \"{d}\"}}) {{\n %2 = stablehlo.sine %0 : tensor<2xf32>\n %3 = stablehlo.cosine %1 : tensor<2xf32>\n \
         return %2, %3 : tensor<2xf32>, tensor<2xf32> }} }}"
    );
    step(&text).unwrap()
}

#[test]
fn the_next_value_of_a_leaf_has_its_path_even_where_its_memory_goes_elsewhere() {
    let same = swapped(["p['w']", "s.mu['w']"], ["result[0]['w']", "result[1].mu['w']"]);
    assert_eq!(same.notices, Vec::<String>::new());
    assert_eq!(same.state[0], ("p['w']".to_owned(), "result[0]['w']".to_owned()));
    let other = swapped(["p['w']", "s.mu['w']"], ["result[0].mu['w']", "result[1]['w']"]);
    assert_eq!(other.notices.len(), 2, "{:?}", other.notices);
    let pairs = [("p['w']", "result[1]['w']"), ("s.mu['w']", "result[0].mu['w']")];
    assert_eq!(other.state, pairs.map(|(a, b)| (a.to_owned(), b.to_owned())));
    let nameless = swapped(["a", "b"], ["result[0]", "result[1]"]);
    assert_eq!(nameless.state[0], ("a".to_owned(), "result[0]".to_owned()), "as the module says");
}

#[test]
fn operations_without_a_translation_are_refused_with_their_place_and_advice() {
    let cases = [
        "%r = stablehlo.custom_call @cublas(%arg0) : (tensor<4xf32>) -> tensor<4xf32>",
        "%r = stablehlo.fft %arg0, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<4xf32>",
        "%r = \"stablehlo.all_reduce\"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>",
        "%r = chlo.lgamma %arg0 : tensor<4xf32> -> tensor<4xf32>",
        "%r = stablehlo.dot_genral %arg0, %arg1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>",
        "%c = stablehlo.constant dense_resource<weights> : tensor<4xf32>",
        "%r = stablehlo.add %arg0, %arg2 : tensor<4xf32>",
        "%r = stablehlo.add %arg0, %arg1 : tensor<5xf32>",
        "%r = stablehlo.transpose %arg0, dims = [1] : (tensor<4xf32>) -> tensor<4xf32>",
        "%r = func.call @nowhere(%arg0) : (tensor<4xf32>) -> tensor<4xf32>",
        "%r = stablehlo.slice %arg0 [1:9] : (tensor<4xf32>) -> tensor<8xf32>",
        "%r = stablehlo.reshape %arg0 : (tensor<4xf32>) -> tensor<?xf32>",
        "%r = stablehlo.subtract %arg0 : tensor<4xf32>",
    ];
    let mut said = Vec::new();
    for operations in cases {
        let error = step(&module("tensor<4xf32>", operations, "tensor<4xf32>")).unwrap_err();
        let kind = if matches!(error, HloError::Unsupported(_)) { "unsupported" } else { "malformed" };
        said.push(format!("{kind} {error}"));
    }
    insta::assert_snapshot!(said.join("\n"));
}

/// The message of a text that is refused within a second.
fn refused(text: &str) -> String {
    let before = processor_time();
    let error = step(text).expect_err("it is refused").to_string();
    let took = processor_time() - before;
    assert!(took < Duration::from_secs(20), "{took:?}: {error}");
    error
}

#[test]
fn hostile_modules_are_refused_in_time() {
    // Calls that double, loops without an end, and recursion.
    let mut doubling = String::from(
        "module @m {\n func.func @main(%0: tensor<f32>) -> tensor<f32> {\n %1 = call @f0(%0) : (tensor<f32>) -> tensor<f32>\n return %1 : tensor<f32> }\n",
    );
    for i in 0..40 {
        let next = format!("@f{}", i + 1);
        doubling += &format!(
            "func.func private @f{i}(%0: tensor<f32>) -> tensor<f32> {{\n %1 = call {next}(%0) : (tensor<f32>) -> tensor<f32>\n %2 = call {next}(%1) : (tensor<f32>) -> tensor<f32>\n return %2 : tensor<f32> }}\n"
        );
    }
    doubling += "func.func private @f40(%0: tensor<f32>) -> tensor<f32> { return %0 : tensor<f32> }\n}\n";
    assert!(refused(&doubling).contains("more than 1048576 operations"));
    let recursion = "module @m { func.func @main(%0: tensor<f32>) -> tensor<f32> { %1 = call @main(%0) : (tensor<f32>) -> tensor<f32>\n return %1 : tensor<f32> } }";
    assert!(refused(recursion).contains("recursion"));
    let endless = "module @m { func.func @main(%0: tensor<f32>) -> tensor<f32> { %c = stablehlo.constant dense<true> : tensor<i1>\n %1 = stablehlo.while(%i = %0) : tensor<f32> cond { stablehlo.return %c : tensor<i1> } do { stablehlo.return %i : tensor<f32> }\n return %1 : tensor<f32> } }";
    assert!(refused(endless).contains("fewer turns"));
    let of_data = endless
        .replace("dense<true> : tensor<i1>", "dense<0.0> : tensor<f32>")
        .replace("return %c : tensor<i1>", "return %i : tensor<f32>");
    assert!(refused(&of_data).contains("depends on data"));
    // Nesting and sizes.
    let deep = |open: &str, close: &str| {
        format!(
            "module @m {{ func.func @main(%0: tensor<f32>) -> tensor<f32> {{ {}{} return %0 : tensor<f32> }} }}",
            open.repeat(100_000),
            close.repeat(100_000)
        )
    };
    assert!(refused(&deep("\"stablehlo.x\"() ({ ", "}) : () -> ()")).contains("nested too deep"));
    assert!(refused(&deep("\"stablehlo.x\"() {a = [", "]} : () -> ()")).len() < 500);
    assert!(
        refused(&format!("module @m attributes {{a = {}", "[".repeat(1_000_000))).contains("nested too deep")
    );
    let _ = refused(&"#loc = loc(".repeat(100_000));
    let _ = refused(
        "module @m { func.func @main(%0: tensor<9223372036854775807x9223372036854775807xf32>) { return } }",
    );
    let wide = "module @m { func.func @main(%0: tensor<1xf32>) -> tensor<1000000000000xf32> { %1 = stablehlo.iota dim = 0 : tensor<1000000000000xf32>\n return %1 : tensor<1000000000000xf32> } }";
    let before = processor_time();
    assert!(step(wide).is_ok(), "it is counted by an operator");
    assert!(processor_time() - before < Duration::from_secs(1));
    let cycle = "#loc1 = loc(#loc2)\n#loc2 = loc(#loc1)\nmodule @m { func.func @main(%0: tensor<f32> loc(#loc1)) -> tensor<f32> { %1 = stablehlo.sine %0 : tensor<f32> loc(#loc2)\n return %1 : tensor<f32> } }";
    assert!(step(cycle).is_ok());
}
