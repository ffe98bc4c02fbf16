//! Growth with the number of nodes: reading, every pass, proving, writing. Near-linear is what we ask of each.
//!
//! `cargo bench --bench scale`; the columns are medians over the samples, the rows 10², 10³, 10⁴ and 10⁵ nodes.

use std::collections::BTreeMap;
use std::io::sink;
use std::path::Path;

use bytes::Bytes;
use clap::Parser;
use divan::Bencher;
use lmsc::cli::Cli;
use lmsc_ir::random::{Rng, Size, training_graph};
use lmsc_ir::{Graph, equiv};
use lmsc_onnx::file::encode_to;
use lmsc_onnx::{Dims, Form, Model, export, import, settle};
use lmsc_passes::{PassCx, TFLMS, pass_named, pipeline, run_pipeline};
use lmsc_plan::{Memory, tflms};

const NODES: &[usize] = &[100, 1_000, 10_000, 100_000];

fn main() {
    divan::main();
}

fn graph(nodes: usize) -> Graph {
    training_graph(&mut Rng::new(7), Size::nodes(nodes))
}

fn onnx(graph: &Graph) -> Bytes {
    let mut bytes = Vec::new();
    let proto = export(None, graph, Form::Function, &BTreeMap::new()).expect("every byte is at hand");
    encode_to(&proto, &mut bytes).expect("a Vec takes everything");
    bytes.into()
}

/// A budget halfway between the smallest that can be reached and the peak.
fn cx(graph: &Graph) -> PassCx {
    let cx = PassCx::default();
    let analysis = tflms::Analysis::new(graph, &cx.tflms, cx.workspace(graph));
    let smallest = match tflms::tune(&analysis, &cx.tflms, lmsc_ir::Bytes(0)) {
        Ok(_) => lmsc_ir::Bytes(0),
        Err(no) => no.smallest,
    };
    let budget = smallest.0.midpoint(cx.memory(graph).peak().0);
    PassCx { budget: Some(lmsc_ir::Bytes(budget)), ..cx }
}

fn read(bytes: Bytes) -> Graph {
    let model = Model::from_bytes(bytes, "bench").expect("it was just written");
    let mut graph = import(&model, &Dims::none()).expect("it was just written");
    settle(&mut graph, &[]).expect("the state is sound");
    graph
}

fn compiled(mut graph: Graph, cx: &PassCx) -> Graph {
    let passes: Vec<_> = pipeline(TFLMS).iter().filter_map(|name| pass_named(name)).collect();
    run_pipeline(&mut graph, &passes, cx, &mut |_, _, _| {}).expect("the budget is above the floor");
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
    bencher.bench_local(|| Memory::of(&graph).peak());
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
    let pass = pass_named(name).expect("it is registered");
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

/// From file to file: what the command line does, without the process.
#[divan::bench(args = NODES)]
fn end_to_end(bencher: Bencher, nodes: usize) {
    let graph = graph(nodes);
    let folder = tempfile::tempdir().expect("there is room for files");
    let [model, output] = ["model.onnx", "out.onnx"].map(|name| folder.path().join(name));
    std::fs::write(&model, onnx(&graph)).expect("there is room for files");
    let budget = format!("{}B", cx(&graph).budget.expect("there is one").0);
    let args =
        [Path::new("lmsc"), &model, Path::new("--budget"), Path::new(&budget), Path::new("-o"), &output];
    let cli = Cli::parse_from(args);
    bencher.bench_local(|| lmsc::compile(&cli.compile, &mut sink()).expect("the budget is above the floor"));
}
