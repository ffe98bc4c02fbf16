//! Growth with the number of nodes: reading, every pass, proving, writing. Each should be near-linear. Also the
//! time to plan 4,740 operators, from tight budgets to loose ones.
//!
//! `cargo bench --bench scale`; the columns are medians over the samples, the rows 10², 10³, 10⁴ and 10⁵ nodes, or budgets.

use std::collections::BTreeMap;
use std::io::sink;
use std::path::Path;

use bytes::Bytes;
use clap::Parser;
use divan::Bencher;
use lmsc::cli::Cli;
use lmsc_ir::{Graph, Phase, equiv};
use lmsc_onnx::file::encode_to;
use lmsc_onnx::{Dims, Model, SwapForm, export, import, settle};
use lmsc_papers::tflms;
use lmsc_passes::{PassCx, PlanRequest};
use lmsc_plan::MemoryTimeline;
use lmsc_plan::instance::Instance;
use lmsc_plan::planners::{Granularity, Request, planner};
use lmsc_plan::problem::{Operator, Problem, TensorId};
use lmsc_testing::{Rng, Size, training_graph};

const NODES: &[usize] = &[100, 1_000, 10_000, 100_000];

/// Budgets to plan for, in hundredths of the way from the floor to the peak.
const SHARES: &[u64] = &[5, 25, 50, 75];

fn main() {
    divan::main();
}

fn graph(nodes: usize) -> Graph {
    training_graph(&mut Rng::new(7), Size::nodes(nodes))
}

fn onnx(graph: &Graph) -> Bytes {
    let mut bytes = Vec::new();
    let proto = export(None, graph, SwapForm::Function, &BTreeMap::new()).expect("every byte is at hand");
    encode_to(&proto, &mut bytes).expect("a Vec takes everything");
    bytes.into()
}

/// A budget halfway between the smallest that can be reached and the peak.
fn cx(graph: &Graph) -> PassCx {
    let cx = PassCx::default();
    let params = tflms::Params::default();
    let analysis = tflms::Analysis::new(graph, &params, cx.workspace(graph));
    let smallest = match tflms::tune(&analysis, &params, lmsc_ir::Bytes(0)) {
        Ok(_) => lmsc_ir::Bytes(0),
        Err(no) => no.needed.unwrap_or_default(),
    };
    let budget = smallest.0.midpoint(cx.memory(graph).peak().0);
    let question = PlanRequest { budget: Some(lmsc_ir::Bytes(budget)), ..cx.question };
    PassCx { question, ..cx }
}

fn read(bytes: Bytes) -> Graph {
    let model = Model::from_bytes(bytes, "bench").expect("it was just written");
    let mut graph = import(&model, &Dims::none()).expect("it was just written");
    settle(&mut graph, &Default::default()).expect("the state is sound");
    graph
}

fn compiled(mut graph: Graph, cx: &PassCx) -> Graph {
    let passes = lmsc_papers::pipeline("tflms");
    passes.run(&mut graph, cx).expect("the budget is above the floor");
    graph
}

#[divan::bench(args = NODES)]
fn reading(bencher: Bencher, nodes: usize) {
    let bytes = onnx(&graph(nodes));
    bencher.bench_local(|| read(bytes.clone()));
}

#[divan::bench(args = NODES)]
fn verifying(bencher: Bencher, nodes: usize) {
    let graph = graph(nodes);
    bencher.bench_local(|| lmsc_ir::verify(&graph).is_ok());
}

#[divan::bench(args = NODES)]
fn memory(bencher: Bencher, nodes: usize) {
    let graph = graph(nodes);
    bencher.bench_local(|| MemoryTimeline::of(&graph).peak());
}

#[divan::bench(args = NODES)]
fn hoist_shapes(bencher: Bencher, nodes: usize) {
    pass(bencher, nodes, "hoist-shapes");
}

#[divan::bench(args = NODES)]
fn swap(bencher: Bencher, nodes: usize) {
    pass(bencher, nodes, "swap");
}

fn pass(bencher: Bencher, nodes: usize, name: &str) {
    let graph = graph(nodes);
    let cx = cx(&graph);
    let known = lmsc_papers::passes();
    let pass = known.iter().find(|pass| pass.name() == name).expect("it is registered");
    bencher.with_inputs(|| graph.clone()).bench_local_refs(|graph| pass.run(graph, &cx).is_ok());
}

#[divan::bench(args = NODES)]
fn proving(bencher: Bencher, nodes: usize) {
    let before = graph(nodes);
    let after = compiled(before.clone(), &cx(&before));
    bencher.bench_local(|| equiv::check(&before, &after).is_ok());
}

#[divan::bench(args = NODES)]
fn writing_text(bencher: Bencher, nodes: usize) {
    let graph = graph(nodes);
    bencher.bench_local(|| graph.to_text().len());
}

#[divan::bench(args = NODES)]
fn reading_text(bencher: Bencher, nodes: usize) {
    let text = graph(nodes).to_text();
    bencher.bench_local(|| Graph::parse(&text).is_ok());
}

#[divan::bench(args = NODES)]
fn writing_mlir(bencher: Bencher, nodes: usize) {
    let graph = graph(nodes);
    bencher.bench_local(|| lmsc_mlir::print(&graph).map(|text| text.len()));
}

#[divan::bench(args = SHARES, sample_count = 10)]
fn planning_swaps(bencher: Bencher, share: u64) {
    planning(bencher, share, "swap-only", false);
}

#[divan::bench(args = SHARES, sample_count = 3)]
fn planning_all(bencher: Bencher, share: u64) {
    planning(bencher, share, "auto", true);
}

/// In ranges of bytes, within a budget at this percentage of the way from the floor to the peak.
fn planning(bencher: Bencher, share: u64, name: &str, recompute: bool) {
    let problem = deep();
    let (floor, peak) = (problem.floor().1, problem.live_bytes().into_iter().max().unwrap_or(0));
    let request = Request::new(&problem, floor + (peak - floor) * share / 100);
    let request = Request { granularity: Granularity::Ranges, recompute, ..request };
    let planner = planner(name).expect("it is registered");
    bencher.bench_local(|| planner.plan(&request).is_ok());
}

/// Four ResNets-152 beside each other, the first to run forward the last to run backward: 4,740 operators.
fn deep() -> Problem {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/instances/dag_resnet152_500_b32.json");
    let text = std::fs::read_to_string(path).expect("is in the repository");
    let one = Instance::parse(&text).expect("is an instance").problem;
    let mut all = one.clone();
    let mut copies = vec![one.ops.clone()];
    for _ in 1..4 {
        let tensors: BTreeMap<TensorId, TensorId> =
            one.tensors.iter().map(|(id, tensor)| (id, all.tensors.push(*tensor))).collect();
        let renamed = |ids: &[TensorId]| ids.iter().map(|&id| tensors[&id]).collect();
        copies.push(Vec::from_iter(one.ops.iter().map(|op| Operator {
            reads: renamed(&op.reads),
            produces: renamed(&op.produces),
            changes: renamed(&op.changes),
            ..op.clone()
        })));
    }
    let of = |copy: &Vec<Operator>, forward| {
        Vec::from_iter(copy.iter().filter(|op| (op.phase == Phase::Forward) == forward).cloned())
    };
    let forward = copies.iter().flat_map(|copy| of(copy, true));
    all.ops = forward.chain(copies.iter().rev().flat_map(|copy| of(copy, false))).collect();
    all.check().expect("operators have what they read");
    all
}

/// A chain with a swap for every hundred nodes.
fn chain(nodes: usize) -> Graph {
    let mut text = format!("g (float[64] v0) => (float[64] v{nodes})\n{{\n");
    for i in 0..nodes {
        match i % 100 {
            20 => text += &format!("   [o{i}] float[64]@host h{i} = ai.lmsc.SwapOut(v{i})\n"),
            70 => {
                text +=
                    &format!("   [i{i}] float[64] b{i} = ai.lmsc.SwapIn(h{}) after [n{}]\n", i - 50, i - 5)
            }
            _ => {}
        }
        let other = if i % 100 == 90 { format!("b{}", i - 20) } else { format!("v{i}") };
        text += &format!("   [n{i}] float[64] v{} = Add(v{i}, {other})\n", i + 1);
    }
    Graph::parse(&(text + "}\n")).expect("the text is well-formed")
}

#[divan::bench(args = NODES)]
fn writing_stablehlo(bencher: Bencher, nodes: usize) {
    let graph = chain(nodes);
    bencher.bench_local(|| lmsc_mlir::xla(&graph).expect("additions have a rule").len());
}

#[divan::bench(args = NODES)]
fn reading_mlir(bencher: Bencher, nodes: usize) {
    let text = lmsc_mlir::print(&graph(nodes)).expect("every name is plain");
    bencher.bench_local(|| lmsc_mlir::parse(&text).is_ok());
}

#[divan::bench(args = NODES)]
fn writing(bencher: Bencher, nodes: usize) {
    let graph = graph(nodes);
    let graph = compiled(graph.clone(), &cx(&graph));
    bencher.bench_local(|| onnx(&graph).len());
}

/// The work of the command line from file to file, without its process.
#[divan::bench(args = NODES)]
fn end_to_end(bencher: Bencher, nodes: usize) {
    let graph = graph(nodes);
    let folder = tempfile::tempdir().expect("there is room for files");
    let [model, output] = ["model.onnx", "out.onnx"].map(|name| folder.path().join(name));
    std::fs::write(&model, onnx(&graph)).expect("there is room for files");
    let budget = format!("{}B", cx(&graph).question.budget.expect("there is one").0);
    let args =
        [Path::new("lmsc"), &model, Path::new("--budget"), Path::new(&budget), Path::new("-o"), &output];
    let cli = Cli::parse_from(args);
    bencher.bench_local(|| {
        lmsc::commands::compile(&cli.compile, &mut sink()).expect("the budget is above the floor")
    });
}
