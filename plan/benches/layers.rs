//! Plans of steps with billions of parameters: makespan, bound, processor time and memory of planning.
//!
//! `cargo bench -p lmsc-plan --bench layers` takes some minutes and prints a table. Each row is a process of its own, so that its
//! processor time and its memory are those of reading the instance and planning it, all in all. It fails if a row misses its goal.
//!
//! - `-- --write` writes the table to `docs/measurements/layers.md`.
//! - `-- WORDS` runs the rows that contain all of the words.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, ExitCode};

use lmsc_ir::{Bytes, Phase};
use lmsc_plan::bound;
use lmsc_plan::instance::Instance;
use lmsc_plan::order::early_updates;
use lmsc_plan::planners::{Request, planner};
use lmsc_plan::problem::{Operator, Problem, TensorId};
use lmsc_plan::schedule::check;
use serde::{Deserialize, Serialize};

const INSTANCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/instances");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/measurements/layers.md");

/// The argument after which a process plans the row of this number, and prints its findings as JSON.
const ROW: &str = "--row=";

/// Memory of a card of 24 GB beside the driver's.
const CARD: u64 = 47 << 29;

/// The change to the instance of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    AsGiven,
    /// All updates at the end, as exporters list them.
    Late,
    /// All updates at the end, then as early as they can run, as `lmsc plan --early-updates` does it.
    LateThenEarly,
    /// This many more copies of the middle one of equal layers: their first operator, their operators and their number.
    Grown(usize, [usize; 3]),
}

struct Row {
    step: &'static str,
    file: &'static str,
    order: Order,
    budget: u64,
    /// The longest makespan, in milliseconds, and the most seconds of processor time and MiB of memory.
    goal: Goal,
}

#[derive(Clone, Copy, Default)]
struct Goal {
    makespan_ms: Option<f64>,
    over_bound: Option<f64>,
    processor_seconds: Option<f64>,
    mib: Option<f64>,
}

/// The findings of a process.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Found {
    operators: usize,
    compute_ms: f64,
    makespan_ms: f64,
    recomputed_ms: f64,
    out_bytes: u64,
    in_bytes: u64,
    bound_ms: f64,
    processor_seconds: f64,
    mib: f64,
}

fn rows() -> Vec<Row> {
    use Order::{AsGiven, Grown, Late, LateThenEarly};
    let (llama, gpt) = ("large/llama8b_f32_4k.json", "large/gpt13b_f32_2k.json");
    let (mixtral, lora) = ("large/mixtral_L4.json", "large/llama8b_L4_lora_bf16.json");
    let (dlrm, vit) = ("large/dlrm_26x4M_sgd.json", "large/vit_h14_b64.json");
    let goal = |makespan_ms, processor_seconds| Goal {
        makespan_ms: Some(makespan_ms),
        processor_seconds: Some(processor_seconds),
        ..Goal::default()
    };
    let only = |makespan_ms| Goal { makespan_ms: Some(makespan_ms), ..Goal::default() };
    let over = |over_bound| Goal { over_bound: Some(over_bound), ..Goal::default() };
    let grown =
        Goal { over_bound: Some(1.04), processor_seconds: Some(12.0), mib: Some(300.0), ..Goal::default() };
    let row = |step, file, order, budget, goal| Row { step, file, order, budget, goal };
    vec![
        row("Llama-3-8B, f32 AdamW, 4k tokens", llama, AsGiven, CARD, goal(8600.0, 10.0)),
        row("the same", llama, LateThenEarly, CARD, goal(8600.0, 10.0)),
        row("the same", llama, Late, CARD, Goal::default()),
        row("GPT-3 13B, f32 AdamW, 2k tokens", gpt, AsGiven, CARD, goal(13_750.0, 10.0)),
        row("Mixtral-like, 4 layers", mixtral, LateThenEarly, 7_569_879_859, goal(274.5, 5.0)),
        row("the same", mixtral, LateThenEarly, 6 << 30, goal(277.0, 5.0)),
        row("the same", mixtral, LateThenEarly, 5 << 30, goal(285.0, 5.0)),
        row("the same", mixtral, Late, 5 << 30, Goal::default()),
        row("Llama-3-8B, 4 layers, LoRA, bf16", lora, LateThenEarly, 7_569_879_859, only(695.5)),
        row("DLRM, 26 tables of 4 M × 64, SGD", dlrm, LateThenEarly, CARD, only(430.0)),
        row("ViT-H/14, batch 64, f32 AdamW", vit, AsGiven, CARD, over(1.02)),
        row("GPT-3 13B with 840 layers", gpt, Grown(800, [53, 48, 39]), CARD, grown),
        row(
            "GPT-2 medium with 2,174 layers",
            "dag_gpt2m_b8_s512.json",
            Grown(2150, [2, 18, 24]),
            60_000_000_000,
            Goal { over_bound: None, ..grown },
        ),
    ]
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let rows = rows();
    if let Some(number) = arguments.iter().find_map(|word| word.strip_prefix(ROW)) {
        let found = one(&rows[number.parse::<usize>().expect("is a number")]);
        let _ = writeln!(std::io::stdout(), "{}", serde_json::to_string(&found).expect("is JSON"));
        return ExitCode::SUCCESS;
    }
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let (mut table, mut missed) = (String::from(HEAD), 0);
    let _ = write!(std::io::stdout(), "{HEAD}");
    for (number, row) in rows.iter().enumerate() {
        let name = format!("{} {} {}", row.step, row.file, row.order());
        if !words.iter().all(|word| name.contains(*word)) {
            continue;
        }
        let (line, misses) = row.line(found(number).as_ref());
        let _ = write!(std::io::stdout(), "{line}");
        (table, missed) = (table + &line, missed + usize::from(misses));
    }
    if arguments.iter().any(|word| word == "--write") {
        write(&table);
    }
    let _ = writeln!(std::io::stdout(), "{missed} rows miss their goals");
    ExitCode::from(u8::from(missed > 0))
}

const HEAD: &str = "\
| step | updates | operators | memory | without limit | plan | recomputed | out, in | bound | over it | goal | processor | peak of planning |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---|---:|---:|
";

/// Puts the table between the marks of the page.
fn write(table: &str) {
    let page = std::fs::read_to_string(PAGE).expect("is in the repository");
    let (before, rest) = page.split_once("<!-- begin -->\n").expect("has marks");
    let (_, after) = rest.split_once("<!-- end -->").expect("has marks");
    let page = format!("{before}<!-- begin -->\n{table}<!-- end -->{after}");
    std::fs::write(PAGE, page).expect("the page can be written");
}

/// The findings of a process of its own for the row; nothing if it has no plan.
fn found(number: usize) -> Option<Found> {
    let program = std::env::current_exe().expect("a program has a file");
    let output = Command::new(program).arg(format!("{ROW}{number}")).output().expect("it runs");
    serde_json::from_slice(&output.stdout).ok()
}

impl Row {
    fn order(&self) -> &'static str {
        match self.order {
            Order::AsGiven => "early, as given",
            Order::Late => "late",
            Order::LateThenEarly => "late, `--early-updates`",
            Order::Grown(..) => "early, grown",
        }
    }

    /// A line of the table, and whether a goal is missed.
    fn line(&self, found: Option<&Found>) -> (String, bool) {
        let (step, order, memory) = (self.step, self.order(), Bytes(self.budget));
        let Some(found) = found else {
            return (format!("| {step} | {order} | | {memory} | | no plan | | | | | | | |\n"), true);
        };
        let over = found.makespan_ms / found.bound_ms;
        let Goal { makespan_ms, over_bound, processor_seconds, mib } = self.goal;
        let goals = [
            (makespan_ms, found.makespan_ms, "ms"),
            (over_bound.map(|over| (over - 1.0) * 100.0), (over - 1.0) * 100.0, "% over"),
            (processor_seconds, found.processor_seconds, "s"),
            (mib, found.mib, "MiB"),
        ];
        let asked = goals.iter().filter_map(|&(goal, has, unit)| Some((goal?, has, unit)));
        let words: Vec<String> = asked
            .clone()
            .map(|(goal, has, unit)| {
                let mark = if has > goal { " **missed**" } else { "" };
                format!("≤ {goal:.6} {unit}{mark}").replace(".000000", "").replace("00000 ", " ")
            })
            .collect();
        let misses = asked.clone().any(|(goal, has, _)| has > goal);
        let line = format!(
            "| {step} | {order} | {} | {memory} | {:.1} ms | {:.1} ms | {:.1} ms | {}, {} | {:.1} ms | {:.2} % | {} | {:.1} s | {:.0} MiB |\n",
            found.operators,
            found.compute_ms,
            found.makespan_ms,
            found.recomputed_ms,
            Bytes(found.out_bytes),
            Bytes(found.in_bytes),
            found.bound_ms,
            (over - 1.0) * 100.0,
            words.join(", "),
            found.processor_seconds,
            found.mib,
        );
        (line, misses)
    }
}

/// Plans the row.
fn one(row: &Row) -> Found {
    let path = format!("{INSTANCES}/{}", row.file);
    let text = std::fs::read_to_string(path).expect("is in the repository");
    let given = Instance::parse(&text).expect("is an instance").problem;
    let problem = match row.order {
        Order::AsGiven => given,
        Order::Late => late(given),
        Order::LateThenEarly => early_updates(&late(given)).problem,
        Order::Grown(extra, run) => grown(&given, extra, run),
    };
    problem.check().expect("is valid");
    let request = Request { recompute: true, ..Request::new(&problem, row.budget) };
    let plan = planner("auto").expect("is a planner").plan(&request).expect("fits");
    check(&plan.problem, &plan.schedule, row.budget).expect("is valid");
    let processor_seconds = processor_seconds();
    let bound = bound::best(&request);
    bound::certify(&problem, row.budget, &bound).expect("is proven");
    let millis = |nanos: u64| nanos as f64 / 1e6;
    let (out_bytes, in_bytes) = plan.schedule.copied_bytes();
    Found {
        operators: problem.ops.len(),
        compute_ms: millis(problem.compute_nanos()),
        makespan_ms: millis(plan.schedule.makespan()),
        recomputed_ms: millis(plan.recompute_nanos()),
        out_bytes,
        in_bytes,
        bound_ms: millis(bound.nanos),
        processor_seconds,
        mib: peak_mib(),
    }
}

/// The processor time of this process.
fn processor_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The most memory of this process, where the system says it.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

/// The problem with all operators of the update phase at the end.
fn late(problem: Problem) -> Problem {
    let (updates, mut ops): (Vec<Operator>, Vec<Operator>) =
        problem.ops.iter().cloned().partition(|op| op.phase == Phase::Update);
    ops.extend(updates);
    Problem { ops, ..problem }
}

/// The layers of a run, for [`grown`]: by operator, its layer and its number among the operators of its phase and layer.
struct Layers<'a> {
    problem: &'a Problem,
    run: [usize; 3],
    turn: usize,
    maker: BTreeMap<TensorId, usize>,
    first: BTreeMap<TensorId, usize>,
    owner: Vec<Option<usize>>,
    place: Vec<usize>,
    of: BTreeMap<(usize, bool), Vec<usize>>,
}

impl<'a> Layers<'a> {
    fn new(problem: &'a Problem, run: [usize; 3]) -> Layers<'a> {
        let turn = problem.ops.iter().position(|op| op.phase == Phase::Backward).expect("is a training step");
        let (mut maker, mut first) = (BTreeMap::new(), BTreeMap::new());
        for (tick, op) in problem.ops.iter().enumerate() {
            maker.extend(op.produces.iter().map(|&tensor| (tensor, tick)));
            op.reads.iter().for_each(|&tensor| _ = first.entry(tensor).or_insert(tick));
        }
        let mut layers = Layers {
            problem,
            run,
            turn,
            maker,
            first,
            owner: Vec::new(),
            place: Vec::new(),
            of: BTreeMap::new(),
        };
        let mut now = None;
        for (tick, op) in problem.ops.iter().enumerate() {
            let owner = if tick < turn {
                layers.of_tick(tick)
            } else {
                // A backward operator belongs to the last layer whose forward tensors it reads; others to that of the one before.
                let read = op.reads.iter().filter_map(|&tensor| layers.of_forward(tensor)).max();
                now = read.or(now);
                now
            };
            layers.owner.push(owner);
            let is_late = tick >= turn;
            let those = owner.map(|owner| layers.of.entry((owner, is_late)).or_default());
            layers.place.push(those.map_or(0, |those| {
                those.push(tick);
                those.len() - 1
            }));
        }
        layers
    }

    fn of_tick(&self, tick: usize) -> Option<usize> {
        let [start, period, count] = self.run;
        (start..start + period * count).contains(&tick).then(|| (tick - start) / period)
    }

    /// The layer of a forward tensor, or of a variable by its first reader.
    fn of_forward(&self, tensor: TensorId) -> Option<usize> {
        let is_small = self.problem.tensors[tensor].bytes < 4096;
        let made = self.maker.get(&tensor).or_else(|| self.first.get(&tensor).filter(|_| !is_small));
        made.filter(|&&tick| tick < self.turn).and_then(|&tick| self.of_tick(tick))
    }

    /// The tensor at the same place of another layer.
    fn twin(&self, tensor: TensorId, layer: usize) -> TensorId {
        let tick = self.maker[&tensor];
        let other = self.of[&(layer, tick >= self.turn)][self.place[tick]];
        let output = self.problem.ops[tick].produces.iter().position(|&made| made == tensor);
        self.problem.ops[other].produces[output.expect("it is made there")]
    }
}

/// The problem in which the layer in the middle of the run stands this many more times.
fn grown(problem: &Problem, extra: usize, run: [usize; 3]) -> Problem {
    let layers = Layers::new(problem, run);
    let middle = run[2] / 2;
    for late in [false, true] {
        let [a, b, c] = [middle - 1, middle, middle + 1].map(|layer| layers.of[&(layer, late)].len());
        assert!(a == b && b == c, "the layers differ: {a}, {b} and {c} operators");
    }
    let mut tensors = problem.tensors.clone();
    let mut copies: BTreeMap<(TensorId, usize), TensorId> = BTreeMap::new();
    let is_own = |tensor: TensorId| match layers.maker.get(&tensor) {
        Some(&tick) => layers.owner[tick] == Some(middle),
        None => layers.of_forward(tensor) == Some(middle),
    };
    let own: BTreeSet<TensorId> = problem.tensors.keys().filter(|&tensor| is_own(tensor)).collect();
    for copy in 1..=extra {
        copies.extend(own.iter().map(|&tensor| ((tensor, copy), tensors.push(problem.tensors[tensor]))));
    }
    let at = |tensor: TensorId, copy: usize| if copy == 0 { tensor } else { copies[&(tensor, copy)] };
    // The tensor that the copy of an operator touches in place of this one; copy 0 is the middle layer itself.
    let touched = |tensor: TensorId, copy: usize| {
        let Some(&tick) = layers.maker.get(&tensor) else {
            return if own.contains(&tensor) { at(tensor, copy) } else { tensor };
        };
        let is_late = tick >= layers.turn;
        match layers.owner[tick] {
            Some(layer) if layer == middle => at(tensor, copy),
            Some(layer) if layer + 1 == middle && copy > 0 => at(layers.twin(tensor, middle), copy - 1),
            Some(layer) if layer == middle + 1 && is_late && copy < extra => {
                at(layers.twin(tensor, middle), copy + 1)
            }
            _ => tensor,
        }
    };
    let renamed = |op: &Operator, to: &dyn Fn(TensorId) -> TensorId| Operator {
        reads: op.reads.iter().map(|&tensor| to(tensor)).collect::<BTreeSet<_>>().into_iter().collect(),
        produces: op.produces.iter().map(|&tensor| to(tensor)).collect(),
        changes: op.changes.iter().map(|&tensor| to(tensor)).collect(),
        ..op.clone()
    };
    // Later layers read the results of the last copy in the forward phase.
    let of_last = |tensor: TensorId| {
        let made = layers.maker.get(&tensor).filter(|&&tick| layers.owner[tick] == Some(middle));
        if made.is_some() { at(tensor, extra) } else { tensor }
    };
    let [early, late] = [false, true].map(|late| &layers.of[&(middle, late)]);
    let mut ops = Vec::new();
    for (tick, op) in problem.ops.iter().enumerate() {
        if tick == late[0] {
            for copy in (1..=extra).rev() {
                ops.extend(late.iter().map(|&tick| renamed(&problem.ops[tick], &|t| touched(t, copy))));
            }
        }
        ops.push(match layers.owner[tick] {
            Some(layer) if layer == middle => renamed(op, &|tensor| touched(tensor, 0)),
            Some(layer) if layer > middle => renamed(op, &of_last),
            _ => op.clone(),
        });
        if early.last() == Some(&tick) {
            for copy in 1..=extra {
                ops.extend(early.iter().map(|&tick| renamed(&problem.ops[tick], &|t| touched(t, copy))));
            }
        }
    }
    Problem { ops, tensors, ..problem.clone() }
}
