//! Graphs as MLIR: every model, planned or not, is read back as it was; and the command line.

use std::path::Path;

use crate::support::models::{load, models};
use crate::support::{Bench, snapshot};
use lmsc_ir::{Bytes, Graph};
use lmsc_passes::{PassCx, PassError, PlanRequest};

const FOUR_LAYERS: &str = include_str!("../testdata/passes/swap/fewest-bytes-for-a-budget.lms");
const CNN: &str = "testdata/models/tiny_cnn/static/training_model.onnx";

/// The graph is printed alike twice, and the text reads back as the graph.
fn read_back(graph: &Graph, what: &str) {
    let text = lmsc_mlir::print(graph).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(lmsc_mlir::print(graph).as_ref(), Ok(&text), "{what}");
    let read = lmsc_mlir::parse(&text).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(read.to_text() == graph.to_text(), "{what}: {}", read.to_text());
    lmsc_mlir::check(&text).unwrap_or_else(|found| panic!("{what}: {found:?}"));
}

/// The graph, planned for the budget by this planner; `None` where it does not fit.
fn planned(graph: &Graph, planner: &str, budget: Bytes, ranges: bool) -> Option<Graph> {
    let mut graph = graph.clone();
    let passes = lmsc_papers::pipeline(planner);
    let cx = PassCx {
        question: PlanRequest {
            budget: Some(budget),
            planner: lmsc_papers::ALL.named(planner),
            ranges,
            effort: Some(1),
            ..PlanRequest::default()
        },
        ..PassCx::default()
    };
    match passes.run(&mut graph, &cx) {
        Ok(_) => Some(graph),
        Err(PassError::Refused(_) | PassError::Call(_)) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn every_model_is_read_back() {
    let (mut swapped, mut joined, mut again) = (0, 0, 0);
    for path in models() {
        let graph = load(&path);
        read_back(&graph, &path.display().to_string());
        let peak = PassCx::default().memory(&graph).peak().0;
        for (planner, ranges) in [("auto", false), ("swap-only", true), ("tflms", false)] {
            let Some(graph) = planned(&graph, planner, Bytes(peak / 20 * 17), ranges) else { continue };
            read_back(&graph, &format!("{} by {planner}", path.display()));
            let any = |holds: &dyn Fn(&lmsc_ir::Node) -> bool| {
                usize::from(graph.order().iter().any(|&node| holds(graph.node(node))))
            };
            swapped += any(&|node| node.op.is_swap_in());
            joined += any(&|node| node.op.is_join());
            again += any(&|node| node.recomputes.is_some());
        }
    }
    let found = format!("{swapped} with swaps, {joined} with ranges, {again} with recomputed nodes");
    assert!(swapped > 100 && joined > 3 && again > 20, "{found}");
}

/// Every model goes to XLA and to IREE, planned or not.
#[test]
fn models_are_written_in_stablehlo() {
    let root = Path::new(crate::support::models::MODELS);
    type Print = fn(&Graph) -> Result<String, lmsc_mlir::StablehloError>;
    let forms: [(Print, &str); 2] =
        [(lmsc_mlir::xla, "_xla_buffer_placement"), (lmsc_mlir::iree, "\"flow.tensor.transfer\"")];
    // Optimizers over sequences are written once a model and its optimizer are linked.
    for path in models().into_iter().filter(|path| !path.ends_with("train_step_adamw_seq.onnx")) {
        let name = path.strip_prefix(root).unwrap().display();
        let graph = load(&path);
        let peak = PassCx::default().memory(&graph).peak().0;
        let plans = [("auto", false), ("swap-only", true)].into_iter();
        let plans = plans.filter_map(|(by, ranges)| planned(&graph, by, Bytes(peak / 20 * 17), ranges));
        let graphs: Vec<Graph> = std::iter::once(graph.clone()).chain(plans).collect();
        for (i, graph) in graphs.iter().enumerate() {
            let swaps = graph.order().iter().filter(|&&node| graph.node(node).op.is_swap()).count();
            for (print, copy) in forms {
                let text = print(graph).unwrap_or_else(|e| panic!("{name}, {i}: {e}"));
                assert_eq!(text.matches(copy).count(), swaps, "{name}, {i}");
                assert_eq!(print(graph), Ok(text), "{name}, {i}");
            }
        }
    }
}

#[test]
fn mlir_in_and_out() {
    let bench = Bench::new();
    bench.write("was.lms", FOUR_LAYERS);
    let run = |arguments: &str| {
        let outcome = bench.run(arguments);
        assert_eq!(outcome.code, 0, "{arguments}: {outcome:?}");
        outcome.stdout
    };
    let file = |name: &str| std::fs::read(bench.path(name)).unwrap();
    run("@/was.lms --budget 26MiB -o @/step.mlir");
    run("@/was.lms --budget 26MiB -o @/step.lms");
    assert!(run("opt @/step.mlir") == file("step.lms"));
    assert!(run("@/was.lms --budget 26MiB -o - --emit mlir") == file("step.mlir"));
    run("opt @/step.lms -o @/again.mlir");
    assert!(file("again.mlir") == file("step.mlir"));
    assert_eq!(run("verify @/was.lms @/step.mlir"), run("verify @/was.lms @/step.lms"));
    let piped = bench.run_with("opt -", &file("step.mlir"));
    assert!(piped.stdout == file("step.lms"), "{piped:?}");
    // The plan does not depend on the text form of the input.
    run("opt @/was.lms -o @/was.mlir");
    for planner in ["auto", "swap-only", "tflms"] {
        let passes =
            if planner == "tflms" { "hoist-shapes,reorder,swap,place" } else { "hoist-shapes,reorder,plan" };
        let planned =
            |file: &str| run(&format!("opt @/{file} -p {passes} --planner {planner} --budget 26MiB"));
        assert!(planned("was.mlir") == planned("was.lms"), "{planner}");
    }
    // A model whose constants are small is whole in MLIR.
    run(&format!("{CNN} --planner tflms{{n-tensors=2}} -o @/cnn.mlir"));
    run("@/cnn.mlir --budget 1GiB -o @/cnn.onnx");
    // The file states a bound on memory besides.
    let onnx = run(&format!("verify {CNN} @/cnn.onnx"));
    assert!(onnx.starts_with(&run(&format!("verify {CNN} @/cnn.mlir"))));
    // Sizes and an optimizer are of the file that was rewritten; the text has them.
    let folder = "testdata/models/tiny_cnn";
    let step =
        format!("{folder}/training_model.onnx --optimizer {folder}/optimizer_model.onnx --dim batch=2");
    let proofs = ["onnx", "mlir", "lms"].map(|name| {
        run(&format!("{step} --planner tflms{{n-tensors=2}} -o @/step.{name}"));
        run(&format!("verify {step} @/step.{name}"))
    });
    assert!(proofs[1].starts_with(b"equal"), "{proofs:?}");
    assert!(proofs[0].starts_with(&proofs[1]) && proofs[1] == proofs[2], "{proofs:?}");
}

#[test]
fn mlir_that_is_wrong() {
    let bench = Bench::new();
    bench.write("was.lms", FOUR_LAYERS);
    assert_eq!(bench.run("opt @/was.lms -o @/good.mlir").code, 0);
    let good = std::fs::read_to_string(bench.path("good.mlir")).unwrap();
    let line = good.lines().position(|line| line.contains("\"onnx.Relu\"")).unwrap();
    let mut lines: Vec<String> = good.lines().map(str::to_owned).collect();
    lines[line] = lines[line].replacen("\"onnx.Relu\"(%", "\"onnx.Relu\"(%no", 1);
    bench.write("name.mlir", lines.join("\n"));
    bench.write("empty.mlir", " \n");
    bench.write("lms.mlir", FOUR_LAYERS);
    bench.write("twice.mlir", good.replace("\"h2\"", "\"a1\""));
    bench.write(
        "reserved.lms",
        "g (float[4] x) => (float[4] y) { [a] float[4] y = com.example.Warp<\"lms.x\" = 1>(x) }",
    );
    bench.write("foreign.lms", "g (float[4] x) => (float[4] y) { [a] float[4] y = com.example.Warp(x) }");
    let calls = [
        "opt @/name.mlir",
        "opt @/empty.mlir",
        "opt @/lms.mlir",
        "opt @/twice.mlir",
        "opt @/good.mlir --state x=y",
        "opt @/reserved.lms -o @/reserved.mlir",
        "@/reserved.lms --budget 1MiB -o @/reserved.mlir",
        "opt @/no.mlir",
        "@/foreign.lms --budget 1MiB -o @/foreign.mlir --emit mlir-xla",
        "@/foreign.lms --budget 1MiB -o @/foreign.mlir --emit mlir-iree",
    ];
    let mut all = String::new();
    for call in calls {
        let outcome = bench.run(call);
        assert_eq!(outcome.code, 2, "{outcome:?}");
        all += &bench.show(call, &outcome);
    }
    snapshot("cli", "mlir-wrong", &all);
    for refused in ["reserved.mlir", "foreign.mlir"] {
        assert!(!bench.files().contains(&refused.to_owned()));
    }
}
