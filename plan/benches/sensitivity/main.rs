//! Effect of half and double of each tuning constant ([`Tunable`](lmsc_plan::schedule::tuned::Tunable)) on
//! plans, addresses and bounds, and of plans without each mechanism of the search
//! ([`Mechanism`](lmsc_plan::schedule::tuned::Mechanism)).
//!
//! `cargo bench -p lmsc-plan --bench sensitivity --features sensitivity` takes about half an hour and prints
//! `docs/measurements/constants.md`: for each constant, how much worse the results become if it is halved and if it is doubled,
//! and how much more work they take. A case judges the constants that it reads. A constant of a crate that cases of its own kind read
//! is judged by these alone: that of a bound by bounds, that of a placement by placements.
//!
//! - `-- --write` writes the file.
//! - `-- --mechanisms` prints `docs/measurements/mechanisms.md` instead, in some minutes; `--write` writes it.
//! - `-- WORDS` tries the constants whose paths and names contain one of the words.

#![allow(clippy::print_stdout, reason = "the benchmark prints a table")]

mod mechanisms;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use lmsc_ir::{Bytes, Phase};
use lmsc_plan::address::{self, Arena};
use lmsc_plan::cost::Cost;
use lmsc_plan::instance::Instance;
use lmsc_plan::offsets::{self, Effort, Table};
use lmsc_plan::planners::{Granularity, Parameters, Request, planner};
use lmsc_plan::problem::{COMPUTE, Operator, Problem, Tensor, TensorId};
use lmsc_plan::schedule::tuned::{DefinedAt, observed, with, worked};
use lmsc_plan::service::{self, Question, Space};
use lmsc_plan::{Floors, MemoryTimeline, bound, order, placing};
use lmsc_testing::{Rng, Size, training_graph};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A computation whose result constants change: nanoseconds or bytes, less is better unless it is a bound; none if there is none.
struct Case {
    name: String,
    /// The folders of the constants that it judges first.
    of: &'static [&'static str],
    run: Box<dyn Fn() -> Option<u64>>,
}

/// A constant in the sources.
struct Constant {
    path: String,
    line: u32,
    name: String,
    value: String,
    /// The first sentence of its documentation.
    summary: String,
}

/// Effect of another value: relative loss of the results, on average and at most, and the work in relation to
/// the default.
struct Effect {
    mean: f64,
    worst: f64,
    work: f64,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let writes = arguments.iter().any(|word| word == "--write");
    if arguments.iter().any(|word| word == "--mechanisms") {
        return mechanisms::measure(writes);
    }
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let mut constants = constants();
    let is_asked = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(*word));
    constants.retain(|constant| is_asked(&format!("{}:{}", constant.path, constant.name)));
    let mut cases = cases();
    let judges = |folder: &&str| constants.iter().any(|constant| constant.path.starts_with(*folder));
    cases.retain(|case| case.of.is_empty() || case.of.iter().any(judges));
    let usual: Vec<Usual> = cases.iter().map(Usual::of).collect();
    let mut sections: BTreeMap<&str, String> = BTreeMap::new();
    for constant in &constants {
        let place = |usual: &Usual| {
            let is_it = |place: &DefinedAt| place.line() == constant.line && place.file() == constant.path;
            usual.read.iter().copied().find(is_it)
        };
        let judges = cases.iter().zip(&usual).filter_map(|(case, usual)| Some((case, usual, place(usual)?)));
        let mut judges: Vec<(&Case, &Usual, DefinedAt)> = judges.collect();
        let own = |case: &Case| case.of.iter().any(|folder| constant.path.starts_with(folder));
        if judges.iter().any(|(case, ..)| own(case)) {
            judges.retain(|(case, ..)| own(case));
        }
        let Constant { name, value, summary, .. } = constant;
        let mut row = format!("| `{name}` | {value} | {summary} | {} |", judges.len());
        for doubled in [false, true] {
            let effect = |(case, usual, place): &(&Case, &Usual, DefinedAt)| {
                worked();
                let found = with(place, doubled, &case.run);
                (worse(case, usual.result, found), worked(), usual.work)
            };
            let _ = write!(row, " {} |", Effect::of(&judges.iter().map(effect).collect::<Vec<_>>()));
        }
        note(&format!("{} {row}", constant.path));
        let section = sections.entry(&constant.path).or_default();
        section.push_str(&row);
        section.push('\n');
    }
    let text = document(&cases, &sections);
    if writes {
        fs::write(format!("{ROOT}/docs/measurements/constants.md"), text).expect("it can be written");
    } else {
        println!("{text}");
    }
}

/// A case with all constants as they are: its result, the constants that it reads, and the work that it takes.
struct Usual {
    result: Option<u64>,
    read: Vec<DefinedAt>,
    work: u64,
}

impl Usual {
    fn of(case: &Case) -> Usual {
        // The first run of a placement makes the plan, too.
        let (_, read) = observed(&case.run);
        worked();
        let before = Instant::now();
        let result = (case.run)();
        let work = worked();
        note(&format!("{}: {result:?}, {work} steps, {:.2} s", case.name, before.elapsed().as_secs_f64()));
        Usual { result, read, work }
    }
}

fn document(cases: &[Case], sections: &BTreeMap<&str, String>) -> String {
    let names: Vec<&str> = cases.iter().map(|case| &*case.name).collect();
    let mut text = format!(
        "# Tuning constants\n\n\
         A *tuning constant* of a planner is a number that was chosen because it makes plans better or planning quicker; any other\n\
         would give valid plans, too. In the sources it is a `Tunable`, and `cargo xtask tidy` allows 66. Not among them are numbers that\n\
         papers give, what was measured of machines (`plan/cost`), units, sentinels, the precision of sums, and limits on time that are\n\
         hardly reached: of those that were tried, neither half nor double changed a result. The odds of random moves are part of the move.\n\n\
         Each constant was halved and doubled (of an array, each number; 1 was not halved), alone. By case, the result is compared\n\
         with that of the constant as it is: the makespan of a plan, the makespan of a plan with addresses, the bytes of a layout or of\n\
         a floor, the most live bytes of an order, or a bound. *+1.0 %* means worse by one percent: longer, larger, or a lower bound.\n\
         The cells hold the mean over the cases that read the constant, the worst case, and the work in relation to the usual one.\n\
         Work is counted: activities simulated, operators rewritten, windows and places compared, steps of inner loops. Results\n\
         are the same on every machine; work is so within a percent, since threads may evaluate one choice at once. Searches are random\n\
         walks: a change of a few tenths of a percent either way is luck.\n\n\
         Written by `cargo bench -p lmsc-plan --bench sensitivity --features sensitivity -- --write`, in about half an hour.\n\n\
         Cases: {}.\n",
        names.join("; ")
    );
    for (path, rows) in sections {
        let _ = write!(
            text,
            "\n## {path}\n\n| constant | value | is | cases | half: mean, worst, work | double: mean, worst, work |\n\
             |---|---|---|---:|---|---|\n{rows}"
        );
    }
    text
}

impl Effect {
    /// The effect over cases, each with its change, its work, and its usual work.
    fn of(cases: &[(f64, u64, u64)]) -> Effect {
        let count = cases.len() as f64;
        let mean = cases.iter().map(|case| case.0).sum::<f64>() / count;
        let worst = cases.iter().map(|case| case.0).fold(f64::MIN, f64::max);
        let work =
            cases.iter().map(|&(_, work, usual)| work.max(1) as f64 / usual.max(1) as f64).sum::<f64>()
                / count;
        Effect { mean, worst, work }
    }
}

impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = |part: f64| match (part * 1000.0).round() / 10.0 {
            0.0 => "0".to_owned(),
            percent if percent.is_infinite() => "none found".to_owned(),
            percent => format!("{percent:+.1} %"),
        };
        if self.mean.is_nan() {
            return write!(f, "not read");
        }
        write!(f, "{}, {}, {:.2}×", percent(self.mean), percent(self.worst), self.work)
    }
}

/// By how much the result is worse, as a part of the usual one.
fn worse(case: &Case, usual: Option<u64>, found: Option<u64>) -> f64 {
    match (usual, found) {
        (Some(usual), Some(found)) if case.of == ["plan/bound/"] => usual as f64 / found as f64 - 1.0,
        (Some(usual), Some(found)) => found as f64 / usual as f64 - 1.0,
        (Some(_), None) => f64::INFINITY,
        (None, _) => 0.0,
    }
}

fn note(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Every constant in the sources of the planning crates, by path and line.
fn constants() -> Vec<Constant> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["plan/src", "plan/address/src", "plan/bound/src", "plan/planners/src", "plan/schedule/src"]
            .map(|folder| Path::new(ROOT).join(folder))
            .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in
            folder.read_dir().expect("it can be read").map(|entry| entry.expect("it can be read").path())
        {
            if entry.is_dir() { folders.push(entry) } else { files.push(entry) }
        }
    }
    // That of the type itself has examples only.
    files.retain(|file| !file.ends_with("tuned.rs"));
    files.sort();
    files.iter().flat_map(|file| constants_of(file)).collect()
}

fn constants_of(file: &Path) -> Vec<Constant> {
    let text = fs::read_to_string(file).expect("it is a text");
    let lines: Vec<&str> =
        text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines().collect();
    let path = file.strip_prefix(ROOT).expect("it is below the root").to_string_lossy().replace('\\', "/");
    let constant = |at: usize| {
        let (first, _) = (0..=at).rev().find_map(|line| Some((line, lines[line].split_once("const ")?)))?;
        let whole: Vec<&str> = lines[first..].iter().copied().take_while(|line| !line.is_empty()).collect();
        let whole = whole.join(" ");
        let (name, _) = whole.split_once("const ")?.1.split_once(": Tunable<")?;
        let (value, _) = whole.split_once("Tunable::new(")?.1.split_once(");")?;
        let docs =
            lines[..first].iter().rev().map_while(|line| line.strip_prefix("/// ")).collect::<Vec<_>>();
        let docs = docs.into_iter().rev().collect::<Vec<_>>().join(" ");
        let summary = docs.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned();
        let (path, line) = (path.clone(), at as u32 + 1);
        Some(Constant { path, line, name: name.to_owned(), value: value.to_owned(), summary })
    };
    (0..lines.len()).filter(|&at| lines[at].contains("Tunable::new(")).filter_map(constant).collect()
}

fn cases() -> Vec<Case> {
    [plans(), bounds(), placements(), layouts(), questions()].into_iter().flatten().collect()
}

/// Plans of the shared instances, at shares of the way from the floor to the peak, and of a long step.
fn plans() -> Vec<Case> {
    let of = &["plan/planners/", "plan/schedule/"][..];
    let auto = [
        ("dag_gpt2s_b8_s1024", 25, 10),
        ("dag_vgg16_1000_b4", 10, 10),
        ("dag_unet_512_b8", 25, 10),
        ("dag_resnet50_224_b64", 10, 1),
        ("a step of 12 layers with weights", 25, 1),
        ("a chain of 2,500 operators", 50, 1),
    ];
    let swap_only = [
        ("dag_gpt2s_b8_s1024", 10, 10),
        ("dag_unet_512_b8", 25, 10),
        ("chain_densenet121_224_b32", 10, 10),
        ("a step of 12 layers with weights", 10, 10),
        ("a step of 12 layers with weights", 50, 10),
    ];
    let mut cases: Vec<Case> = Vec::new();
    let mut add = |name: &str, share: u64, granularity, recompute, effort: u32| {
        let problem = problem(name);
        let budget = budget(&problem, share);
        let planner = planner(if recompute { "auto" } else { "swap-only" }).expect("it is registered");
        let whole = if granularity == Granularity::Whole { " with whole tensors" } else { "" };
        cases.push(Case {
            name: format!("`{}`{whole} at {share} % of {name}, effort {effort}", planner.name),
            of,
            run: Box::new(move || {
                let request = Request { granularity, recompute, effort, ..Request::new(&problem, budget) };
                Some(planner.plan(&request).ok()?.schedule.makespan())
            }),
        });
    };
    for (name, share, effort) in auto {
        add(name, share, Granularity::Ranges, true, effort);
    }
    for (name, share, effort) in swap_only {
        add(name, share, Granularity::Whole, false, effort);
        add(name, share, Granularity::Ranges, false, effort);
    }
    let problem = instance("dag_unet_512_b8");
    let budget = budget(&problem, 25);
    cases.push(Case {
        name: "the estimate for an order of unet".to_owned(),
        of: &[],
        run: Box::new(move || {
            let request = Request { recompute: true, ..Request::new(&problem, budget) };
            planner("auto").expect("it is registered").glance.expect("it has one")(&request)
        }),
    });
    cases
}

fn bounds() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut add =
        |kind: &str, name: &'static str, share: u64, prove: fn(&Problem, u64) -> bound::Certificate| {
            let problem = problem(name);
            let budget = budget(&problem, share);
            let run = Box::new(move || Some(prove(&problem, budget).nanos));
            cases.push(Case {
                name: format!("the bound {kind} at {share} % of {name}"),
                of: &["plan/bound/"],
                run,
            });
        };
    for (name, share) in [
        ("dag_gpt2s_b8_s1024", 25),
        ("dag_vgg16_1000_b4", 10),
        ("dag_resnet152_500_b32", 5),
        ("a step of 12 layers with weights", 25),
        ("a step of 30 layers with weights", 10),
    ] {
        add("on recomputation", name, share, bound::joint);
        add("on whole tensors", name, share, bound::whole);
        add("from prices", name, share, bound::prices);
    }
    cases
}

/// Plans with addresses, made of a plan that does not change, and floors.
fn placements() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut add = |recompute, name: &str, share: u64, granularity, effort: u32| {
        let problem = problem(name);
        let budget = budget(&problem, share);
        let planner = planner(if recompute { "auto" } else { "swap-only" }).expect("it is registered");
        let plan = OnceLock::new();
        let whole = if granularity == Granularity::Whole { " with whole tensors" } else { "" };
        cases.push(Case {
            name: format!("addresses of `{}`{whole} at {share} % of {name}, effort {effort}", planner.name),
            of: &["plan/address/", "plan/src/"],
            run: Box::new(move || {
                let request = Request { recompute, granularity, effort, ..Request::new(&problem, budget) };
                let plan = plan.get_or_init(|| planner.plan(&request).expect("it fits"));
                let placed = placing::place_plan(&planner.with(Parameters::default()), &request, plan)?;
                address::check(&placed, Arena::of(&request)).expect("it is valid");
                Some(placed.plan.schedule.makespan())
            }),
        });
    };
    for (recompute, name, share) in [
        (true, "dag_vgg16_1000_b4", 10),
        (false, "dag_vgg16_224_b64", 10),
        (false, "dag_unet_512_b8", 10),
        (false, "dag_resnet50_224_b64", 50),
    ] {
        add(recompute, name, share, Granularity::Ranges, 10);
    }
    add(true, "dag_unet_512_b8", 10, Granularity::Whole, 10);
    add(true, "a chain of 2,500 operators", 50, Granularity::Ranges, 1);
    for name in ["dag_vgg16_1000_b4", "dag_unet_512_b8", "a step of 12 layers with weights"] {
        let problem = problem(name);
        cases.push(Case {
            name: format!("the floor of {name}"),
            of: &["plan/src/"],
            run: Box::new(move || Some(Floors::in_arena(&problem, 256).ranges)),
        });
    }
    cases
}

/// Layouts of buffers: of MiniMalloc's benchmarks, each in as many bytes as are live at once.
fn layouts() -> Vec<Case> {
    let of = |name: &str| {
        let text =
            fs::read_to_string(format!("{ROOT}/testdata/offsets/{name}.1048576.csv")).expect("it is there");
        let buffers = Table::parse(&text).expect("it is a table").buffers;
        let (load, _) = offsets::load(&buffers);
        let run = move || match offsets::place(&buffers, load, Effort::percent(5)) {
            Ok(layout) => Some(layout.bytes),
            Err(no) => no.found.map(|layout| layout.bytes),
        };
        Case {
            name: format!("the layout of MiniMalloc's {name}"),
            of: &["plan/address/src/offsets/"],
            run: Box::new(run),
        }
    };
    ["A", "C", "E", "G", "I", "K"].map(of).into()
}

/// Orders of graphs, and the plan of a short step.
fn questions() -> Vec<Case> {
    let orders = |seed: u64| {
        let graph = training_graph(&mut Rng::new(seed), Size::nodes(400));
        let run = move || {
            let orders = order::with_less_memory(&graph, Some(Bytes(0)), |_| Cost { nanos: 1, workspace: 0 });
            let peak = |order| {
                let mut moved = graph.clone();
                moved.set_order(order);
                MemoryTimeline::of(&moved).peak().0
            };
            orders.into_iter().map(peak).min()
        };
        Case {
            name: format!("the peak of a reordered random step {seed}"),
            of: &["plan/src/"],
            run: Box::new(run),
        }
    };
    let mut problem = instance("dag_unet_512_b8");
    let faster = 10;
    problem.ops.iter_mut().for_each(|op| op.nanos /= faster);
    problem.link.in_bytes_per_second *= faster;
    problem.link.out_bytes_per_second *= faster;
    let budget = budget(&problem, 25);
    let short = Case {
        name: "the plan of a short step".to_owned(),
        of: &["plan/src/"],
        run: Box::new(move || {
            let question = Question {
                planner: planner("auto").expect("it is registered"),
                parameters: Parameters::default(),
                request: Request { recompute: true, ..Request::new(&problem, budget) },
                space: Space::Counted,
                or_pages: None,
                or_as_it_is: false,
                robust: None,
                host_bytes: u64::MAX,
            };
            Some(service::plan(&question).ok()?.plan.schedule.makespan())
        }),
    };
    (0..6).map(orders).chain([short]).collect()
}

fn instance(name: &str) -> Problem {
    let text = fs::read_to_string(format!("{ROOT}/testdata/instances/{name}.json"))
        .expect("it is in the repository");
    Instance::parse(&text).expect("it is an instance").problem
}

/// The budget that is this many percent of the way from the smallest one to the peak.
fn budget(problem: &Problem, percent: u64) -> u64 {
    let (floor, peak) =
        (problem.floor().1, problem.live_by_moment(&problem.uses()).into_iter().max().unwrap_or(0));
    floor + (peak - floor) / 100 * percent
}

/// The instance of the name, or a step that is made here.
fn problem(name: &str) -> Problem {
    match name {
        "a chain of 2,500 operators" => layered(1250, false),
        "a step of 12 layers with weights" => layered(12, true),
        "a step of 30 layers with weights" => layered(30, true),
        _ => instance(name),
    }
}

/// A step of this many layers, forward and backward, over a link with latency; on request each with a weight and a moment of
/// it, which the step updates. As in many networks, activations shrink and weights grow with the depth.
fn layered(layers: u64, has_weights: bool) -> Problem {
    let mut problem = Problem { kinds: ["F", "B", "U"].map(str::to_owned).into(), ..Problem::default() };
    problem.link.in_bytes_per_second = 12_000_000_000;
    problem.link.out_bytes_per_second = 12_000_000_000;
    problem.link.latency_nanos = if has_weights { 10_000 } else { 0 };
    let mut tensor = |bytes: u64, is_variable: bool| {
        problem.tensors.push(Tensor { bytes, swappable: true, given: is_variable, kept: is_variable })
    };
    let stage = |layer: u64| layer * 5 / layers;
    let activations: Vec<TensorId> =
        (0..layers).map(|layer| tensor(((1 + layer % 3) << 26) >> stage(layer), false)).collect();
    let gradients: Vec<TensorId> =
        (0..layers).map(|layer| tensor(((1 + layer % 3) << 26) >> stage(layer), false)).collect();
    let mut weighed = |bytes: fn(u64) -> u64, is_variable: bool| -> Vec<TensorId> {
        let count = if has_weights { layers } else { 0 };
        (0..count).map(|layer| tensor(bytes(layer * 5 / layers), is_variable)).collect()
    };
    let weights = weighed(|stage| (1 << 20) << (3 * stage / 2), true);
    let moments = weighed(|stage| (2 << 20) << (3 * stage / 2), true);
    let changes = weighed(|stage| (1 << 20) << (3 * stage / 2), false);
    let mut op =
        |phase, nanos: u64, reads: Vec<TensorId>, produces: Vec<TensorId>, changes: Vec<TensorId>| {
            let (kind, recomputable) = (phase as u32, phase == Phase::Forward);
            problem.ops.push(Operator {
                kind,
                phase,
                nanos,
                workspace: 0,
                recomputable,
                reads,
                produces,
                changes,
                lane: COMPUTE,
            });
        };
    let of = |tensors: &[TensorId], layer: usize| tensors.get(layer).copied().into_iter();
    for layer in 0..layers as usize {
        let before = layer.checked_sub(1).into_iter().flat_map(|before| of(&activations, before));
        let reads = before.chain(of(&weights, layer)).collect();
        let nanos = 1_000_000 + 1_000_000 * (layer as u64 % 4);
        op(Phase::Forward, nanos, reads, vec![activations[layer]], Vec::new());
    }
    for layer in (0..layers as usize).rev() {
        let reads =
            of(&gradients, layer + 1).chain(of(&activations, layer)).chain(of(&weights, layer)).collect();
        let produces = of(&gradients, layer).chain(of(&changes, layer)).collect();
        op(Phase::Backward, 4_000_000, reads, produces, Vec::new());
    }
    for (layer, &change) in changes.iter().enumerate() {
        let changed = vec![weights[layer], moments[layer]];
        op(Phase::Update, 100_000, [changed.clone(), vec![change]].concat(), Vec::new(), changed);
    }
    problem
}
