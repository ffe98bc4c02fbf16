//! Shared by the experiments: problems from models and instances, planners run on them, and work on all processors.

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lmsc::Binding;
use lmsc_ir::{Bytes, Graph};
use lmsc_papers::dqn::{self, Learning};
use lmsc_passes::{MachineModel, PassCx, Pipeline, PlanRequest, bridge};
use lmsc_plan::instance::Instance;
use lmsc_plan::planners::{Granularity, Plan, Request, Scheduler};
use lmsc_plan::problem::{Duplex, Problem};
use lmsc_plan::{Target, bound, schedule};

/// How much of an experiment to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// All of it.
    Full,
    /// As little as shows that it runs.
    Smoke,
}

impl Scale {
    /// All of these, or the first few.
    pub(crate) fn some<T>(self, all: &[T], few: usize) -> &[T] {
        if self == Scale::Full { all } else { &all[..few.min(all.len())] }
    }

    /// The effort of a planner that searches.
    pub(crate) fn effort(self) -> u32 {
        if self == Scale::Full { 20 } else { 1 }
    }
}

/// Reports progress on standard error; ignores a closed one.
pub(crate) fn say(text: &str) {
    _ = writeln!(std::io::stderr(), "{text}");
}

/// The built-in target of this name.
pub(crate) fn target(name: &str) -> Target {
    Target::built_in(name).expect("the experiments name targets that are there").clone()
}

/// The step of a model of `testdata/models` with these sizes, with the SGD update where the folder has one.
pub(crate) fn graph(model: &str, dims: &[(&str, u64)]) -> Graph {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/models").join(model);
    let optimizer = path.with_file_name("optimizer_model_sgd.onnx");
    let optimizer = optimizer.exists().then_some(optimizer);
    let dims = dims.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    let binding = Binding { dims, optimizer, ..Binding::default() };
    lmsc::load(&path, &binding).unwrap_or_else(|error| panic!("{model}: {error}")).graph
}

/// The graph after the passes that come before a planner, with nodes where they hold the least memory.
pub(crate) fn prepared(graph: Graph, target: &Target) -> Graph {
    passed(
        graph,
        &PassCx {
            machine: MachineModel { target: Some(target.clone()), ..MachineModel::default() },
            ..PassCx::default()
        },
    )
}

fn passed(mut graph: Graph, cx: &PassCx) -> Graph {
    let passes = Pipeline::parse("hoist-shapes,reorder").unwrap();
    passes.run(&mut graph, cx).expect("both change only the order");
    graph
}

/// The planning problem of a model.
pub(crate) fn model(model: &str, dims: &[(&str, u64)], target: &Target) -> Problem {
    of_graph(graph(model, dims), target)
}

/// The planning problem of a graph.
pub(crate) fn of_graph(graph: Graph, target: &Target) -> Problem {
    let cx = PassCx {
        machine: MachineModel { target: Some(target.clone()), ..MachineModel::default() },
        ..PassCx::default()
    };
    bridge(&prepared(graph, target), &cx).expect("the models have no swaps").problem
}

/// The problem of an iteration that `testdata/traces` has recorded.
pub(crate) fn trace(name: &str) -> Problem {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/traces/{name}.jsonl"));
    let text = std::fs::read_to_string(path).expect("the experiments name traces that are there");
    Instance::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}")).problem
}

/// The problem of an instance of `testdata/instances`.
pub(crate) fn instance(name: &str) -> Problem {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/instances/{name}.json"));
    let text = std::fs::read_to_string(path).expect("the experiments name instances that are there");
    Instance::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}")).problem
}

/// The most bytes that are live at once if nothing leaves.
pub(crate) fn peak(problem: &Problem) -> u64 {
    problem.live_by_moment(&problem.uses()).into_iter().max().unwrap_or(0)
}

/// The problem with copies that never overlap, as OPT's.
pub(crate) fn half_duplex(mut problem: Problem) -> Problem {
    problem.link.duplex = Duplex::Half;
    problem
}

/// Figures of a planner's plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) makespan: u64,
    pub(crate) recomputed: u64,
    pub(crate) out: u64,
}

impl Found {
    pub(crate) fn of(plan: &Plan) -> Found {
        let (out, _) = plan.schedule.copied_bytes();
        Found { makespan: plan.schedule.makespan(), recomputed: plan.recompute_nanos(), out }
    }
}

/// The CSV columns of a planner's result in a case.
pub(crate) const FOUND: [&str; 6] =
    ["compute_ms", "bound_ms", "planner", "makespan_ms", "recomputed_ms", "out_bytes"];

/// The cells under [`FOUND`]; empty where there is no plan or no bound.
pub(crate) fn cells(compute: u64, bound: Option<u64>, way: &Way, found: Option<Found>) -> [String; 6] {
    let text = |value: Option<u64>| value.map(|n| format!("{:.3}", ms(n))).unwrap_or_default();
    [
        format!("{:.3}", ms(compute)),
        text(bound),
        way.label.replace(", ", "-"),
        text(found.map(|f| f.makespan)),
        text(found.map(|f| f.recomputed)),
        found.map(|f| f.out.to_string()).unwrap_or_default(),
    ]
}

/// How a planner is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Label in tables.
    pub(crate) label: &'static str,
    planner: &'static str,
    granularity: Granularity,
    recompute: bool,
    scheduler: Scheduler,
}

impl Way {
    /// A planner of a paper, with that paper's order of copies.
    pub(crate) const fn paper(planner: &'static str) -> Way {
        Way {
            label: planner,
            planner,
            granularity: Granularity::Whole,
            recompute: false,
            scheduler: Scheduler::Paper,
        }
    }

    /// The planner's swap set, with its copies ordered by our scheduler.
    pub(crate) const fn justified(label: &'static str, planner: &'static str) -> Way {
        Way { label, scheduler: Scheduler::Justified, ..Way::paper(planner) }
    }

    /// `dqn`, which may compute again, with its paper's rule of prefetching.
    pub(crate) const DQN: Way = Way { recompute: true, ..Way::paper("dqn") };

    /// The best of as many episodes of its game in which every choice is random.
    pub(crate) const RANDOM: Way = Way { recompute: true, ..Way::paper("random") };

    /// The problem of a graph, in the order in which the planner is asked within the budget.
    pub(crate) fn problem(&self, graph: &Graph, target: &Target, budget: u64) -> Problem {
        let cx = PassCx {
            question: PlanRequest {
                planner: lmsc_papers::ALL.named(self.planner),
                ranges: self.granularity == Granularity::Ranges,
                budget: Some(Bytes(budget)),
                ..PlanRequest::default()
            },
            machine: MachineModel { target: Some(target.clone()), ..MachineModel::default() },
            ..PassCx::default()
        };
        bridge(&passed(graph.clone(), &cx), &cx).expect("the models have no swaps").problem
    }

    fn request<'a>(&self, problem: &'a Problem, budget: u64) -> Request<'a> {
        Request {
            granularity: self.granularity,
            recompute: self.recompute,
            scheduler: self.scheduler,
            ..Request::new(problem, budget)
        }
    }

    /// `swap-only`: swapping of whole tensors.
    pub(crate) const OPTIMAL: Way = Way::justified("swap-only", "swap-only");

    /// `swap-only`: swapping of ranges.
    pub(crate) const RANGES: Way =
        Way { granularity: Granularity::Ranges, ..Way::justified("swap-only, ranges", "swap-only") };

    /// `auto`: swapping of whole tensors, and recomputation.
    pub(crate) const AUTO: Way = Way { recompute: true, ..Way::justified("auto", "auto") };

    /// `auto`: swapping of ranges, and recomputation.
    pub(crate) const AUTO_RANGES: Way =
        Way { recompute: true, granularity: Granularity::Ranges, ..Way::justified("auto, ranges", "auto") };

    /// Figures of the planner's plan within the budget. The plan is checked, and compared with the lower bound.
    pub(crate) fn find(&self, problem: &Problem, budget: u64, scale: Scale) -> Option<Found> {
        Some(Found::of(&self.plan(problem, budget, scale, Learning::default())?))
    }

    /// The plan that the planner finds within the budget, checked.
    pub(crate) fn plan(
        &self,
        problem: &Problem,
        budget: u64,
        scale: Scale,
        learning: Learning<'_>,
    ) -> Option<Plan> {
        let request = Request { effort: scale.effort(), ..self.request(problem, budget) };
        let plan = match self.planner {
            "random" => dqn::at_random(&request, &learning).ok()?,
            "dqn" => dqn::plan(&request, &learning).ok()?,
            name => {
                let planner =
                    lmsc_papers::planner(name).expect("the experiments name planners that are there");
                planner.plan(&request).ok()?
            }
        };
        schedule::check(&plan.problem, &plan.schedule, budget)
            .unwrap_or_else(|flaw| panic!("{}: {flaw}", self.label));
        Some(plan)
    }
}

/// A time that no plan beats, which may recompute or only swaps; checked.
pub(crate) fn bound(problem: &Problem, budget: u64, recompute: bool) -> u64 {
    let certificate = bound::best(&Request { recompute, ..Request::new(problem, budget) });
    bound::certify(problem, budget, &certificate).expect("a bound is proven")
}

/// Results of `one` for each item, in their order, computed by all processors.
pub(crate) fn each<T: Sync, R: Send>(all: &[T], one: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<R>>> = all.iter().map(|_| Mutex::new(None)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((item, result)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    all.get(index).zip(results.get(index))
                } {
                    *result.lock().expect("nobody panics with it") = Some(one(item));
                }
            });
        }
    });
    results
        .into_iter()
        .map(|result| result.into_inner().expect("nobody panics with it").expect("each was done"))
        .collect()
}

/// In GiB, for tables.
pub(crate) fn gib(bytes: u64) -> String {
    format!("{:.2}", Bytes(bytes).0 as f64 / f64::from(1 << 30))
}

/// In milliseconds.
pub(crate) fn ms(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}
