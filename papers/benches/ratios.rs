//! The gap of plans to their bounds, on the shared instances, relative to the results of an earlier study and to those of
//! this program when `ratios.txt` was last recorded.
//!
//! `cargo bench -p lmsc-papers --bench ratios` takes some minutes and prints a line for each instance, budget, link and
//! planner: makespan, certified bound, their ratio, the ratio to the best makespan of `results.json`, and the planning time;
//! then means. It fails if a makespan or a bound is worse than recorded by more than 10⁻⁶.
//!
//! - `-- --short` runs a part, with less search: the part that CI runs.
//! - `-- --record` writes the results to `ratios.txt`.
//! - `-- --effort=400` plans with an effort of 400 and compares the plans with `ratios.txt`, which it does not change.
//! - `-- WORDS` runs the lines that contain all of the words.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lmsc_papers::planner;
use lmsc_plan::bound;
use lmsc_plan::instance::Instance;
use lmsc_plan::planners::{Granularity, Request};
use lmsc_plan::problem::{Duplex, Problem};
use lmsc_plan::schedule::check;
use serde_json::Value;

const INSTANCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/instances");
const RECORD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/ratios.txt");

/// A number is worse than another if it exceeds it by more than one part in this many.
const TOLERANCE: u128 = 1_000_000;

/// The planners of the papers, which are run on graphs over a full-duplex link.
const PAPERS: [&str; 6] = ["greedy", "vdnn", "autoswap", "window", "lru", "tflms-best"];

/// A request to one planner, and the known results.
struct Run {
    key: Key,
    granularity: Granularity,
    budget: u64,
    /// The best makespan of the study, in nanoseconds.
    best: Option<u64>,
}

/// A line of the record, up to its numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    instance: String,
    share: String,
    duplex: String,
    planner: String,
    effort: u32,
}

/// The result of a run, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    /// None if the planner refuses.
    makespan: Option<u64>,
    bound: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let has = |flag: &str| arguments.iter().any(|word| word == flag);
    // The results of more effort, relative to the recorded ones.
    let effort = arguments.iter().find_map(|word| word.strip_prefix("--effort="));
    let effort: Option<u32> = effort.map(|text| text.parse().expect("--effort= is a number"));
    let words: Vec<&String> = arguments.iter().filter(|word| !word.starts_with("--")).collect();
    let mut runs = runs(has("--short"));
    runs.retain(|run| words.iter().all(|word| run.key.to_string().contains(*word)));
    let recorded = recorded();
    let found = all(&runs, effort);
    let mut out = std::io::stdout().lock();
    let mut worse = 0;
    for (run, (found, took)) in runs.iter().zip(&found) {
        let verdict = verdict(recorded.get(&run.key), found);
        worse += usize::from(verdict.starts_with("WORSE"));
        let numbers = Numbers { found: *found, best: run.best };
        let _ = writeln!(out, "{} {numbers} {:>6} ms  {verdict}", run.key, took.as_millis());
    }
    let _ = writeln!(out, "{}", means(&runs, &found));
    if has("--record") && effort.is_none() {
        let new = runs.iter().map(|run| run.key.clone()).zip(found.iter().map(|(found, _)| *found));
        record(recorded.into_iter().chain(new).collect());
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(out, "{} runs, {worse} worse than recorded", runs.len());
    ExitCode::from(u8::from(worse > 0))
}

/// All runs, or those of CI.
fn runs(short: bool) -> Vec<Run> {
    let results = std::fs::read_to_string(format!("{INSTANCES}/results.json")).expect("is in the repository");
    let results: Value = serde_json::from_str(&results).expect("is JSON");
    let mut runs = Vec::new();
    for row in results["rows"].as_array().expect("has rows") {
        let text = |name: &str| row[name].as_str().expect("is a text").to_owned();
        let nanos = |name: &str| row[name].as_f64().map(|millis| (millis * 1e6).round() as u64);
        let (instance, duplex, share) = (text("instance"), text("duplex"), row["f"].to_string());
        let graph = instance.starts_with("dag");
        let of_ci = if graph {
            duplex == "full" && ["0.05", "0.1", "0.25", "0.5"].contains(&&*share)
        } else {
            instance.contains("_224_b32") && ["0.05", "0.1", "0.5"].contains(&&*share)
        };
        if short && !of_ci {
            continue;
        }
        let mut add = |name: &str, granularity, effort, best: Option<u64>| {
            let (instance, duplex, share) = (instance.clone(), duplex.clone(), share.clone());
            let key = Key { instance, share, duplex, planner: name.to_owned(), effort };
            let budget = row["M"].as_u64().expect("is a number of bytes");
            runs.push(Run { key, granularity, budget, best });
        };
        if row["recompute"] == true {
            add("auto", Granularity::Ranges, if short { 10 } else { 100 }, nanos("best_pieces_ms"));
            continue;
        }
        if row.get("best_pieces_ms").is_some() {
            add("swap-only", Granularity::Ranges, 100, nanos("best_pieces_ms"));
        }
        add("swap-only-whole", Granularity::Whole, if short { 10 } else { 100 }, nanos("best_whole_ms"));
        if graph && duplex == "full" {
            for name in PAPERS.into_iter().filter(|name| !short || *name != "tflms-best") {
                add(name, Granularity::Whole, 100, nanos("best_whole_ms"));
            }
        }
    }
    runs
}

/// The results of all runs, two at a time, and the time of each planner.
fn all(runs: &[Run], effort: Option<u32>) -> Vec<(Found, Duration)> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    let bounds = Bounds::default();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((index, run)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|index| Some((index, runs.get(index)?)))
                {
                    let one = one(run, effort, &bounds);
                    found.lock().expect("no run panics").insert(index, one);
                }
            });
        }
    });
    found.into_inner().expect("no run panics").into_values().collect()
}

/// Certified bounds, by instance, share, link and kind of plan: planners of one kind share them.
type Bounds = Mutex<BTreeMap<(String, String, String, bool, bool), u64>>;

fn one(run: &Run, asked: Option<u32>, bounds: &Bounds) -> (Found, Duration) {
    let Key { instance, share, duplex, planner: name, effort } = run.key.clone();
    let effort = asked.unwrap_or(effort);
    let name = name.trim_end_matches("-whole");
    let problem = problem(&run.key);
    let recompute = name == "auto";
    let granularity = run.granularity;
    let request = Request { granularity, recompute, effort, ..Request::new(&problem, run.budget) };
    let started = Instant::now();
    let plan = planner(name).expect("is a planner").plan(&request).ok();
    let took = started.elapsed();
    if let Some(plan) = &plan {
        check(&plan.problem, &plan.schedule, run.budget).unwrap_or_else(|flaw| panic!("{}: {flaw}", run.key));
    }
    let kind = (instance, share, duplex, recompute, granularity == Granularity::Whole);
    let known = bounds.lock().expect("no run panics").get(&kind).copied();
    let bound = known.unwrap_or_else(|| {
        bound::certify(&problem, run.budget, &bound::best(&request))
            .unwrap_or_else(|error| panic!("{}: {error}", run.key))
    });
    bounds.lock().expect("no run panics").insert(kind, bound);
    (Found { makespan: plan.map(|plan| plan.schedule.makespan()), bound }, took)
}

fn problem(key: &Key) -> Problem {
    let text =
        std::fs::read_to_string(format!("{INSTANCES}/{}", key.instance)).expect("is in the repository");
    let mut problem = Instance::parse(&text).expect("is an instance").problem;
    problem.link.duplex = if key.duplex == "half" { Duplex::Half } else { Duplex::Full };
    problem
}

/// The comparison of a result with the recorded one.
fn verdict(recorded: Option<&Found>, found: &Found) -> String {
    let Some(recorded) = recorded else { return "not recorded".to_owned() };
    let above = |one: u64, other: u64| u128::from(one) * TOLERANCE > u128::from(other) * (TOLERANCE + 1);
    let makespans = [found.makespan, recorded.makespan].map(|makespan| makespan.unwrap_or(u64::MAX >> 1));
    if above(makespans[0], makespans[1]) {
        format!("WORSE: {:?} was recorded", recorded.makespan)
    } else if above(recorded.bound, found.bound) {
        format!("WORSE: a bound of {} was recorded", recorded.bound)
    } else if above(makespans[1], makespans[0]) || above(found.bound, recorded.bound) {
        "better than recorded".to_owned()
    } else {
        String::new()
    }
}

/// For each planner, kind of instance, link and budget: the mean and the largest ratio to the bound and to the best known.
fn means(runs: &[Run], found: &[(Found, Duration)]) -> String {
    let mut groups: BTreeMap<_, Vec<(&Run, Found)>> = BTreeMap::new();
    for (run, (found, _)) in runs.iter().zip(found) {
        let kind = run.key.instance.split('_').next().unwrap_or_default();
        let group = (&run.key.planner, kind, &run.key.duplex, &run.key.share);
        groups.entry(group).or_default().push((run, *found));
    }
    let mut text =
        String::from("\nplanner, instances, link, budget: ratio to the bound, ratio to the best known");
    for ((planner, kind, duplex, share), group) in groups {
        let to = |other: fn(&(&Run, Found)) -> Option<u64>| {
            let ratio = |one: &(&Run, Found)| Some(one.1.makespan? as f64 / other(one)? as f64);
            summary(group.iter().filter_map(ratio).collect())
        };
        let (bound, best) = (to(|(_, found)| Some(found.bound)), to(|(run, _)| run.best));
        text += &format!("\n{planner:14} {kind:5} {duplex} {share:4}: {bound}; {best}");
    }
    text
}

fn summary(ratios: Vec<f64>) -> String {
    if ratios.is_empty() {
        return "none".to_owned();
    }
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    let most = ratios.iter().copied().fold(0.0, f64::max);
    format!("mean {mean:.4} max {most:.4} of {}", ratios.len())
}

impl Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Key { instance, share, duplex, planner, effort } = self;
        write!(f, "{instance} {share} {duplex} {planner} {effort}")
    }
}

struct Numbers {
    found: Found,
    best: Option<u64>,
}

impl Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |nanos: u64| nanos as f64 / 1e6;
        let Found { makespan, bound } = self.found;
        let Some(makespan) = makespan else { return write!(f, "does not fit") };
        let (found, bound) = (millis(makespan), millis(bound));
        write!(f, "{found:.3} ms bound {bound:.3} ms ratio {:.5}", found / bound)?;
        self.best.map_or(Ok(()), |best| write!(f, " to best {:.5}", found / millis(best)))
    }
}

/// The record, by run.
fn recorded() -> BTreeMap<Key, Found> {
    let text = std::fs::read_to_string(RECORD).unwrap_or_default();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [instance, share, duplex, planner, effort, makespan, bound] = words[..] else { return None };
        let [instance, share, duplex, planner] = [instance, share, duplex, planner].map(str::to_owned);
        let key = Key { instance, share, duplex, planner, effort: effort.parse().ok()? };
        Some((key, Found { makespan: makespan.parse().ok(), bound: bound.parse().ok()? }))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

fn record(found: BTreeMap<Key, Found>) {
    let mut text = String::from(
        "# instance, share of the budget, link, planner, effort, makespan and bound in nanoseconds; written by\n\
         # `cargo bench -p lmsc-papers --bench ratios -- --record`\n",
    );
    for (key, Found { makespan, bound }) in found {
        let makespan = makespan.map_or("-".to_owned(), |nanos| nanos.to_string());
        text += &format!("{key} {makespan} {bound}\n");
    }
    std::fs::write(RECORD, text).expect("the record can be written");
}
