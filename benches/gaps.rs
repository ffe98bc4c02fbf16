//! How far from their bounds the plans of training graphs are, from tight budgets to loose ones.
//!
//! `cargo bench --bench gaps` prints the table of `bench/gaps.md`, in Markdown: a line for each graph of full
//! size under `testdata/models`, at a usual batch, as gradients alone and with the optimizer; for `swap-only`
//! with ranges of bytes, also with variables that stay on the device, and for `auto`. A cell is the makespan
//! divided by the certified bound, at budgets from the floor (0) to the peak of the unchanged step (1).
//!
//! `-- WORDS` prints the lines that have all of the words.

#![allow(clippy::print_stdout, reason = "its answer is what it prints")]

use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lmsc_onnx::{Dims, Model, Stated, import, link, settle};
use lmsc_passes::{PassCx, Pipeline, PlanRequest};
use lmsc_plan::bound;
use lmsc_plan::planners::{Granularity, Request, planner};
use lmsc_plan::problem::Problem;
use lmsc_plan::schedule::check;

/// Folders of `testdata/models` and the size of a step.
const CASES: [(&str, &[(&str, u64)]); 7] = [
    ("resnet18", &[("batch", 128)]),
    ("resnet50", &[("batch", 64)]),
    ("densenet121", &[("batch", 64)]),
    ("vgg16", &[("batch", 64)]),
    ("bert_base", &[("batch", 32)]),
    ("gpt2_small", &[("batch", 8), ("seq", 512)]),
    ("unet3d", &[("batch", 2)]),
];

/// A planner and its options.
struct Asked {
    name: &'static str,
    recompute: bool,
    variables_leave: bool,
}

static ASKED: [Asked; 3] = [
    Asked { name: "swap-only", recompute: false, variables_leave: true },
    Asked { name: "swap-only", recompute: false, variables_leave: false },
    Asked { name: "auto", recompute: true, variables_leave: true },
];

impl std::fmt::Display for Asked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let variables = if self.variables_leave { "" } else { ", variables stay" };
        write!(f, "{}{variables}", self.name)
    }
}

/// Budgets, in hundredths of the way from the floor to the peak.
const SHARES: [u64; 7] = [2, 5, 10, 25, 50, 75, 90];

/// Search effort of `auto`, in percent of its default.
const EFFORT: u32 = 30;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let lines = CASES.iter().flat_map(|case| [false, true].map(|updates| (case, updates)));
    let lines = lines.flat_map(|line| ASKED.iter().map(move |asked| (line, asked)));
    let mut lines: Vec<_> = lines
        .map(|((&(folder, dims), updates), asked)| Line { folder, dims, updates, asked, ratios: Vec::new() })
        .filter(|line| words.iter().all(|word| line.to_string().contains(&**word)))
        .collect();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let ratios = line.find();
                    found.lock().expect("nobody panics").push((line.to_string(), ratios));
                }
            });
        }
    });
    for (name, ratios) in found.into_inner().expect("nobody panics") {
        lines
            .iter_mut()
            .filter(|line| line.to_string() == name)
            .for_each(|line| line.ratios = ratios.clone());
    }
    let shares: String =
        SHARES.iter().map(|share| format!(" {}.{:02} |", share / 100, share % 100)).collect();
    println!("| step | planner |{shares}\n|---|---|{}", "---|".repeat(SHARES.len()));
    for line in &lines {
        println!("{line}{}", cells(&line.ratios));
    }
    for asked in &ASKED {
        let is_of = |line: &&Line| std::ptr::eq(line.asked, asked);
        let of: Vec<&Vec<f64>> = lines.iter().filter(is_of).map(|line| &line.ratios).collect();
        if of.is_empty() {
            continue;
        }
        let column = |share: usize| of.iter().filter_map(move |ratios| ratios.get(share).copied());
        let mean = |share| column(share).sum::<f64>() / column(share).count().max(1) as f64;
        let most = |share| column(share).fold(1.0, f64::max);
        println!("| mean | {asked} |{}", cells(&(0..SHARES.len()).map(mean).collect::<Vec<_>>()));
        println!("| at most | {asked} |{}", cells(&(0..SHARES.len()).map(most).collect::<Vec<_>>()));
    }
}

/// A graph and how it is planned.
struct Line {
    folder: &'static str,
    dims: &'static [(&'static str, u64)],
    /// Whether the optimizer belongs to the step.
    updates: bool,
    asked: &'static Asked,
    /// For each share, the makespan divided by the bound.
    ratios: Vec<f64>,
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dims = self.dims.iter().fold(String::new(), |mut text, (name, value)| {
            let _ = write!(text, " {name} {value}");
            text
        });
        let updates = if self.updates { " with AdamW" } else { "" };
        write!(f, "| {}{dims}{updates} | {} |", self.folder, self.asked)
    }
}

fn cells(ratios: &[f64]) -> String {
    ratios.iter().map(|ratio| format!(" {ratio:.4} |")).collect()
}

impl Line {
    fn find(&self) -> Vec<f64> {
        let graph = self.graph();
        let smallest = self.problem(&graph, 0);
        let floor = smallest.floor().1;
        let peak = smallest.live_bytes().into_iter().max().unwrap_or(0);
        let budgets = SHARES.map(|share| floor + (peak - floor) * share / 100);
        budgets.map(|budget| self.ratio(&self.problem(&graph, budget), budget)).to_vec()
    }

    /// The planner's problem within the budget. Both decide on the order.
    fn problem(&self, graph: &lmsc_ir::Graph, budget: u64) -> Problem {
        let (planner, budget) = (lmsc_papers::ALL.named(self.asked.name), Some(lmsc_ir::Bytes(budget)));
        let cx = PassCx {
            question: PlanRequest { planner, ranges: true, budget, ..PlanRequest::default() },
            ..PassCx::default()
        };
        let before = Pipeline::parse("hoist-shapes,reorder").unwrap();
        let mut graph = graph.clone();
        before.run(&mut graph, &cx).unwrap_or_else(|error| panic!("{self}: {error}"));
        let mut problem = lmsc_passes::bridge(&graph, &cx).expect("it has no swaps").problem;
        if !self.asked.variables_leave {
            let variables = problem.tensors.values_mut().filter(|tensor| tensor.is_variable());
            variables.for_each(|variable| variable.swappable = false);
        }
        problem
    }

    fn graph(&self) -> lmsc_ir::Graph {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/models").join(self.folder);
        let mut model = Model::open(folder.join("training_model.onnx")).expect("a model");
        if self.updates {
            let optimizer = Model::open(folder.join("optimizer_model.onnx")).expect("an optimizer");
            model = link(&model, &optimizer).expect("a step");
        }
        let dims: Dims = self.dims.iter().copied().collect();
        let mut graph = import(&model, &dims).unwrap_or_else(|error| panic!("{self}: {error}"));
        settle(&mut graph, &Stated::of(&model).unwrap()).expect("a step");
        graph
    }

    fn ratio(&self, problem: &Problem, budget: u64) -> f64 {
        let Asked { name, recompute, .. } = *self.asked;
        let asked = Request { granularity: Granularity::Ranges, recompute, ..Request::new(problem, budget) };
        let effort = if recompute { EFFORT } else { asked.effort };
        let request = Request { effort, ..asked };
        let planner = planner(name).expect("is a planner");
        let plan = planner.plan(&request).unwrap_or_else(|no| panic!("{self} at {budget}: {no}"));
        check(&plan.problem, &plan.schedule, budget).unwrap_or_else(|flaw| panic!("{self}: {flaw:?}"));
        let bound = bound::best(&request);
        bound::certify(problem, budget, &bound).unwrap_or_else(|flaw| panic!("{self}: {flaw}"));
        plan.schedule.makespan() as f64 / bound.nanos.max(1) as f64
    }
}
