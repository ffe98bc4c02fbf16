//! Steps of one of several ranks: when parameters are gathered again, and the time that it takes.
//!
//! `cargo bench -p lmsc-plan --bench ranks` takes some minutes and prints a table. It fails if a plan is slower than gathering nothing
//! again or everything.
//!
//! - `-- --write` writes the table to `docs/measurements/ranks.md`.
//! - `-- WORDS` makes the rows that contain all of the words.

use std::io::Write;
use std::process::ExitCode;

use lmsc_ir::{Bytes, Phase};
use lmsc_plan::bound;
use lmsc_plan::cost::comm::{COMM, NETWORKS, Network};
use lmsc_plan::planners::ours::lanes::{never, repeating};
use lmsc_plan::planners::{Request, planner};
use lmsc_plan::problem::{COMPUTE, Operator, Problem, Tensor, TensorId};
use lmsc_plan::ranks::{Ranks, sharded};
use lmsc_plan::schedule::{Absences, Acts, JUSTIFICATION_ROUNDS, Simulator, check, justify};
use lmsc_plan::target::Target;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/measurements/ranks.md");

/// The search effort, in percent: with three, plans of 8B gained nothing.
const EFFORT: u32 = 1;

/// Share of the peak rate that products reach, and of the bandwidth that elementwise operators reach.
const EFFICIENCY: f64 = 0.6;

/// A decoder of Llama's kind.
#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    layers: usize,
    width: u64,
    /// Width of keys and values together.
    kv: u64,
    inner: u64,
    words: u64,
    tokens: u64,
}

const SMALL: Shape =
    Shape { name: "GPT, 4 blocks", layers: 4, width: 1024, kv: 2048, inner: 2048, words: 8192, tokens: 4096 };
const B8: Shape =
    Shape { name: "8B", layers: 32, width: 4096, kv: 2048, inner: 14_336, words: 128_256, tokens: 4096 };
const B70: Shape =
    Shape { name: "70B", layers: 80, width: 8192, kv: 2048, inner: 28_672, words: 128_256, tokens: 4096 };

/// The memory of a rank.
#[derive(Clone, Copy)]
enum Memory {
    /// That of the card.
    Card,
    /// This percentage of the peak of the step that gathers nothing again and moves nothing.
    OfPeak(u64),
}

struct Row {
    shape: Shape,
    ranks: u64,
    network: &'static Network,
    card: &'static str,
    memory: Memory,
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for network in &NETWORKS {
        for ranks in [8, 64, 1024] {
            for percent in [80, 50] {
                let memory = Memory::OfPeak(percent);
                rows.push(Row { shape: SMALL, ranks, network, card: "h100-sxm", memory });
            }
        }
    }
    for shape in [B8, B70] {
        for network in &NETWORKS {
            for ranks in [8, 64] {
                for card in ["rtx4090", "h100-sxm"] {
                    rows.push(Row { shape, ranks, network, card, memory: Memory::Card });
                }
            }
        }
    }
    rows
}

/// The times of a row, in milliseconds; none where it does not fit.
struct Found {
    budget: u64,
    keeps: Option<f64>,
    reshards: Option<f64>,
    greedy: Option<f64>,
    never: Option<f64>,
    always: Option<f64>,
    planned: Option<f64>,
    /// The buckets gathered again in the plan, and all that both phases use.
    again: (usize, usize),
    bound: f64,
    compute: f64,
    comm: f64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let (mut table, mut slower) = (String::from(HEAD), 0);
    let _ = write!(std::io::stdout(), "{HEAD}");
    for row in rows() {
        let name = format!("{} {} {} {}", row.shape.name, row.ranks, row.network.name, row.card);
        if !words.iter().all(|word| name.contains(*word)) {
            continue;
        }
        let found = row.found();
        let line = row.line(&found);
        let _ = write!(std::io::stdout(), "{line}");
        let better = [found.never, found.always].into_iter().flatten().reduce(f64::min);
        let is_slower = better.is_some_and(|better| found.planned.is_none_or(|planned| planned > better));
        (table, slower) = (table + &line, slower + usize::from(is_slower));
        if arguments.iter().any(|word| word == "--write") {
            write(&table);
        }
    }
    let _ = writeln!(std::io::stdout(), "{slower} plans are slower than gathering nothing or all again");
    ExitCode::from(u8::from(slower > 0))
}

const HEAD: &str = "\
| step | ranks | network | card | memory | computes | collectives | FSDP2 keeps | FSDP2 reshards | greedy | never | always | planned | gathered again | bound |
|---|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|
";

/// Puts the table between the marks of the page.
fn write(table: &str) {
    let page = std::fs::read_to_string(PAGE).expect("is in the repository");
    let (before, rest) = page.split_once("<!-- begin -->\n").expect("has marks");
    let (_, after) = rest.split_once("<!-- end -->").expect("has marks");
    std::fs::write(PAGE, format!("{before}<!-- begin -->\n\n{table}\n<!-- end -->{after}"))
        .expect("is written");
}

impl Row {
    fn line(&self, found: &Found) -> String {
        let ms = |time: Option<f64>| time.map_or_else(|| "–".to_owned(), |time| format!("{time:.1}"));
        let memory = match self.memory {
            Memory::Card => Bytes(found.budget).to_string(),
            Memory::OfPeak(percent) => format!("{}, {percent} %", Bytes(found.budget)),
        };
        format!(
            "| {} | {} | {} | {} | {memory} | {:.1} | {:.1} | {} | {} | {} | {} | {} | {} | {} of {} | {:.1} |\n",
            self.shape.name,
            self.ranks,
            self.network.name,
            self.card,
            found.compute,
            found.comm,
            ms(found.keeps),
            ms(found.reshards),
            ms(found.greedy),
            ms(found.never),
            ms(found.always),
            ms(found.planned),
            found.again.0,
            found.again.1,
            found.bound,
        )
    }

    /// The problem of a rank, with or without checkpoints of whole blocks.
    fn problem(&self, checkpoints: bool) -> Problem {
        let one = step(self.shape, Target::built_in(self.card).expect("is built in"), checkpoints);
        one.check().expect("is valid");
        sharded(&one, Ranks { network: self.network, count: self.ranks }).expect("is valid")
    }

    fn found(&self) -> Found {
        let plain = self.problem(false);
        let budget = match self.memory {
            Memory::Card => Target::built_in(self.card).expect("is built in").device_bytes.0,
            Memory::OfPeak(percent) => peak(&plain) * percent / 100,
        };
        let both = [false, true].map(|checkpoints| self.problem(checkpoints));
        let fastest = |of: &dyn Fn(&Problem) -> Problem| {
            both.iter().filter_map(|problem| as_it_is(&of(problem), budget)).min().map(millis)
        };
        let planned = |problem: &Problem| {
            let request = Request { recompute: true, effort: EFFORT, ..Request::new(problem, budget) };
            let plan = planner("auto").expect("is a planner").plan(&request).ok()?;
            check(&plan.problem, &plan.schedule, budget).expect("is valid");
            Some(plan)
        };
        let makespan = |problem: &Problem| planned(problem).map(|plan| millis(plan.schedule.makespan()));
        let plan = planned(&plain);
        let request = Request { recompute: true, ..Request::new(&plain, budget) };
        let bound = bound::best(&request);
        bound::certify(&plain, budget, &bound).expect("is proven");
        let gathers = |problem: &Problem| problem.ops.iter().filter(|op| is_gather(op)).count();
        let all = gathers(&repeating(&plain, |_| true)) - gathers(&plain);
        Found {
            budget,
            keeps: fastest(&never),
            reshards: fastest(&|problem| repeating(problem, |_| true)),
            greedy: fastest(&|problem| greedy(problem, budget)),
            never: makespan(&never(&plain)),
            always: makespan(&repeating(&plain, |_| true)),
            again: (plan.as_ref().map_or(0, |plan| gathers(&plan.problem) - gathers(&plain)), all),
            planned: plan.map(|plan| millis(plan.schedule.makespan())),
            bound: millis(bound.nanos),
            compute: millis(plain.compute_nanos()),
            comm: millis(plain.ops.iter().filter(|op| op.lane == COMM).map(|op| op.nanos).sum()),
        }
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

fn is_gather(op: &Operator) -> bool {
    op.lane == COMM && op.recomputable
}

fn peak(problem: &Problem) -> u64 {
    problem.live_by_moment(&problem.uses()).into_iter().max().unwrap_or(0)
}

/// The time of the step that moves nothing and repeats nothing more, with every collective as early as memory allows.
fn as_it_is(problem: &Problem, budget: u64) -> Option<u64> {
    let acts = Acts::of(problem, &Absences::default());
    let found = justify(&mut Simulator::default(), &acts, &acts.order, budget, JUSTIFICATION_ROUNDS);
    found.ok().map(|(_, times)| times.makespan)
}

/// DeepCompile's rule: of the parameters that would be gathered again, those with the most time a byte stay, as far as nine tenths
/// of the memory leave room beside the peak without them.
fn greedy(problem: &Problem, budget: u64) -> Problem {
    let room = (budget / 10 * 9).saturating_sub(peak(&repeating(problem, |_| true)));
    let mut gathers: Vec<&Operator> = problem.ops.iter().filter(|op| is_gather(op)).collect();
    let bytes = |op: &Operator| problem.tensors[op.produces[0]].bytes;
    gathers.sort_by(|a, b| {
        (u128::from(b.nanos) * u128::from(bytes(a))).cmp(&(u128::from(a.nanos) * u128::from(bytes(b))))
    });
    let mut used = 0;
    let stays: Vec<TensorId> = gathers
        .into_iter()
        .take_while(|op| {
            used += bytes(op);
            used <= room
        })
        .map(|op| op.produces[0])
        .collect();
    repeating(problem, |tensor| !stays.contains(&tensor))
}

/// The tensors of a layer that its backward pass reads.
struct Layer {
    weights: [TensorId; 4],
    input: TensorId,
}

/// The results of the forward operators of a layer.
struct Saved {
    normed: TensorId,
    qkv: TensorId,
    attended: TensorId,
    middle: TensorId,
    normed_again: TensorId,
    gates: TensorId,
    active: TensorId,
}

/// The builder of a step.
struct Step<'a> {
    shape: Shape,
    target: &'a Target,
    problem: Problem,
    phase: Phase,
}

const KINDS: [&str; 6] = ["product", "attention", "pointwise", "embedding", "loss", "AdamW"];

/// The step of one device: forward, backward, and an AdamW update with master weights of each parameter once its gradient is complete. 16
/// bits a number, but for the state. With checkpoints, each layer runs again before its backward pass.
fn step(shape: Shape, target: &Target, checkpoints: bool) -> Problem {
    let problem = Problem {
        kinds: KINDS.map(str::to_owned).to_vec(),
        link: target.link.for_planning(),
        ..Problem::default()
    };
    let mut step = Step { shape, target, problem, phase: Phase::Forward };
    step.run(checkpoints);
    step.problem
}

impl Step<'_> {
    fn tensor(&mut self, bytes: u64, is_variable: bool) -> TensorId {
        let (given, kept) = (is_variable, is_variable);
        self.problem.tensors.push(Tensor { bytes, swappable: bytes >= 1 << 20, given, kept })
    }

    /// A tensor of this number of elements a token.
    fn wide(&mut self, width: u64) -> TensorId {
        self.tensor(2 * self.shape.tokens * width, false)
    }

    fn op(&mut self, kind: u32, flops: u64, reads: &[TensorId], produces: &[TensorId]) {
        let touched = reads.iter().chain(produces).map(|&t| self.problem.tensors[t].bytes).sum::<u64>();
        let compute = &self.target.compute;
        let moving = touched as f64 / (EFFICIENCY * compute.memory_bytes_per_second as f64);
        let working = flops as f64 / (EFFICIENCY * compute.flops_per_second.bfloat16 as f64);
        self.problem.ops.push(Operator {
            kind,
            phase: self.phase,
            nanos: compute.launch_nanos + (moving.max(working) * 1e9) as u64,
            workspace: 0,
            reads: reads.to_vec(),
            produces: produces.to_vec(),
            changes: Vec::new(),
            recomputable: self.phase == Phase::Forward,
            lane: COMPUTE,
        });
    }

    fn run(&mut self, checkpoints: bool) {
        let Shape { layers, width, kv, inner, words, tokens, .. } = self.shape;
        let ids = self.problem.tensors.push(Tensor {
            bytes: 4 * tokens,
            swappable: false,
            given: true,
            kept: false,
        });
        let table = self.tensor(2 * words * width, true);
        let head = self.tensor(2 * words * width, true);
        let mut stream = self.wide(width);
        self.op(3, 0, &[ids, table], &[stream]);
        // An embedding reads the rows of its tokens, not the table.
        let rows = self.problem.ops[0].produces.iter().map(|&t| self.problem.tensors[t].bytes).sum::<u64>();
        self.problem.ops[0].nanos = self.target.compute.launch_nanos
            + 2 * rows * 1_000_000_000 / self.target.compute.memory_bytes_per_second;
        let mut all = Vec::new();
        for _ in 0..layers {
            let shapes = [width * (width + kv), width * width, 2 * width * inner, width * inner];
            let weights = shapes.map(|elements| self.tensor(2 * elements, true));
            let layer = Layer { weights, input: stream };
            let (saved, output) = self.forward(&layer);
            all.push((layer, saved, output));
            stream = output;
        }
        let (logits, loss) = (self.wide(words), self.tensor(4, false));
        self.op(0, 2 * tokens * width * words, &[stream, head], &[logits]);
        self.op(4, 0, &[logits, ids], &[loss]);
        self.phase = Phase::Backward;
        let of_logits = self.wide(words);
        self.op(4, 0, &[logits, ids], &[of_logits]);
        let (mut gradient, of_head) = (self.wide(width), self.tensor(2 * words * width, false));
        self.op(0, 4 * tokens * width * words, &[of_logits, stream, head], &[gradient, of_head]);
        self.update(head, of_head);
        for (layer, saved, _) in all.into_iter().rev() {
            let saved = if checkpoints { self.forward(&layer).0 } else { saved };
            gradient = self.backward(&layer, &saved, gradient);
        }
        let of_table = self.tensor(2 * words * width, false);
        self.op(3, 0, &[ids, gradient], &[of_table]);
        self.update(table, of_table);
    }

    fn forward(&mut self, layer: &Layer) -> (Saved, TensorId) {
        let Shape { width, kv, inner, tokens, .. } = self.shape;
        let [qkv_weight, out_weight, gate_weight, down_weight] = layer.weights;
        let [normed, qkv, attended, middle, normed_again, gates, active, output] =
            [width, width + kv, width, width, width, 2 * inner, inner, width].map(|width| self.wide(width));
        self.op(2, 0, &[layer.input], &[normed]);
        self.op(0, 2 * tokens * width * (width + kv), &[normed, qkv_weight], &[qkv]);
        self.op(1, 2 * tokens * tokens * width, &[qkv], &[attended]);
        self.op(0, 2 * tokens * width * width, &[attended, out_weight, layer.input], &[middle]);
        self.op(2, 0, &[middle], &[normed_again]);
        self.op(0, 4 * tokens * width * inner, &[normed_again, gate_weight], &[gates]);
        self.op(2, 0, &[gates], &[active]);
        self.op(0, 2 * tokens * width * inner, &[active, down_weight, middle], &[output]);
        (Saved { normed, qkv, attended, middle, normed_again, gates, active }, output)
    }

    /// The gradient of the layer's input.
    fn backward(&mut self, layer: &Layer, saved: &Saved, gradient: TensorId) -> TensorId {
        let Shape { width, kv, inner, tokens, .. } = self.shape;
        let [qkv_weight, out_weight, gate_weight, down_weight] = layer.weights;
        let of_weights = layer.weights.map(|weight| self.tensor(self.problem.tensors[weight].bytes, false));
        let [of_active, of_gates, of_normed_again, of_middle] =
            [inner, 2 * inner, width, width].map(|width| self.wide(width));
        let [of_attended, of_qkv, of_normed, of_input] =
            [width, width + kv, width, width].map(|width| self.wide(width));
        let product = |elements: u64| 4 * tokens * elements;
        self.op(
            0,
            product(width * inner),
            &[gradient, saved.active, down_weight],
            &[of_active, of_weights[3]],
        );
        self.update(down_weight, of_weights[3]);
        self.op(2, 0, &[of_active, saved.gates], &[of_gates]);
        self.op(
            0,
            product(2 * width * inner),
            &[of_gates, saved.normed_again, gate_weight],
            &[of_normed_again, of_weights[2]],
        );
        self.update(gate_weight, of_weights[2]);
        self.op(2, 0, &[of_normed_again, saved.middle, gradient], &[of_middle]);
        self.op(
            0,
            product(width * width),
            &[of_middle, saved.attended, out_weight],
            &[of_attended, of_weights[1]],
        );
        self.update(out_weight, of_weights[1]);
        self.op(1, 5 * tokens * tokens * width, &[of_attended, saved.qkv, saved.attended], &[of_qkv]);
        self.op(
            0,
            product(width * (width + kv)),
            &[of_qkv, saved.normed, qkv_weight],
            &[of_normed, of_weights[0]],
        );
        self.update(qkv_weight, of_weights[0]);
        self.op(2, 0, &[of_normed, layer.input, of_middle], &[of_input]);
        of_input
    }

    /// AdamW with a master copy and two moments of 32 bits.
    fn update(&mut self, weight: TensorId, gradient: TensorId) {
        let phase = std::mem::replace(&mut self.phase, Phase::Update);
        let bytes = self.problem.tensors[weight].bytes;
        let state = [2, 2, 2].map(|times| self.tensor(times * bytes, true));
        let reads: Vec<TensorId> = [weight, gradient].into_iter().chain(state).collect();
        self.op(5, 0, &reads, &[]);
        let op = self.problem.ops.last_mut().expect("was pushed");
        op.changes = [weight].into_iter().chain(state).collect();
        op.nanos *= 2;
        self.phase = phase;
    }
}
