//! The cost of addresses on the shared instances of graphs: makespans with addresses in one arena, and in pages, relative to
//! those of the same planner with the sum of live bytes as the only limit.
//!
//! `cargo bench -p lmsc-plan --bench addresses` takes some minutes and prints a table for `bench/addresses.md`. It fails if
//! the best of them costs more than allowed: 0.3 percent on average, two at most.
//!
//! - `-- WORDS` runs the lines that have all of the words.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lmsc_plan::address::{self, Arena};
use lmsc_plan::instance::Instance;
use lmsc_plan::planners::{Parameters, Request, planner};
use lmsc_plan::problem::Duplex;
use lmsc_plan::{pages, placing, schedule};
use serde_json::Value;

const INSTANCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/instances");

/// Planners, whether they recompute, and their search effort.
const PLANNERS: [(&str, bool, u32); 2] = [("swap-only", false, 100), ("auto", true, 30)];

/// Shares of the range from the floor to the peak.
const SHARES: [f64; 4] = [0.05, 0.1, 0.25, 0.5];

/// Bytes of a page: the smallest that this project's runtime maps on a processor, and that of CUDA.
const PAGES: [u64; 2] = [pages::SMALLEST, 1 << 21];

/// The allowed cost of addresses, in percent: on average, and at most.
const MAY_COST: (f64, f64) = (0.3, 2.0);

struct Run {
    instance: String,
    share: f64,
    budget: u64,
    planner: (&'static str, bool, u32),
}

/// Makespans in nanoseconds.
struct Found {
    counted: u64,
    /// None if no addresses were found.
    arena: Option<u64>,
    paged: [u64; 2],
}

impl Found {
    /// The costs in an arena and in pages, in percent to two places.
    fn costs(&self) -> [f64; 3] {
        // Adding zero turns negative zero into zero.
        let cost = |nanos: u64| (nanos as f64 / self.counted as f64 * 1e4 - 1e4).round() / 100.0 + 0.0;
        let [small, large] = self.paged.map(cost);
        [self.arena.map_or(f64::INFINITY, cost), small, large]
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let mut runs = runs();
    runs.retain(|run| {
        let name = format!("{} {} {}", run.instance, run.share, run.planner.0);
        words.iter().all(|word| name.contains(word))
    });
    let found = all(&runs);
    let mut out = std::io::stdout().lock();
    let title = "| planner | instance | budget | counted, ms | arena | pages of 64 KiB | of 2 MiB | best |";
    let _ = writeln!(out, "{title}\n|---|---|---:|---:|---:|---:|---:|---:|");
    for (run, found) in runs.iter().zip(&found) {
        let ([arena, small, large], counted) = (found.costs(), found.counted as f64 / 1e6);
        let (name, best) = (run.planner.0, arena.min(small).min(large));
        let of = format!("| {name} | {} | {} | {counted:.3} |", run.instance, run.share);
        let _ = writeln!(out, "{of} {arena:.2} % | {small:.2} % | {large:.2} % | {best:.2} % |");
    }
    let _ = writeln!(out, "\n| planner | way | cost on average | at most |\n|---|---|---:|---:|");
    let mut too_much = false;
    for (name, ..) in PLANNERS {
        let of_planner = runs.iter().zip(&found).filter(|(run, _)| run.planner.0 == name);
        let costs: Vec<[f64; 4]> = of_planner
            .map(|(_, found)| found.costs())
            .map(|[arena, small, large]| [arena, small, large, arena.min(large)])
            .collect();
        let ways = ["arena", "pages of 64 KiB", "pages of 2 MiB", "best of arena and pages of 2 MiB"];
        for (at, way) in ways.into_iter().enumerate().filter(|_| !costs.is_empty()) {
            let mean = costs.iter().map(|costs| costs[at]).sum::<f64>() / costs.len() as f64;
            let most = costs.iter().map(|costs| costs[at]).fold(f64::MIN, f64::max);
            let _ = writeln!(out, "| {name} | {way} | {mean:.2} % | {most:.2} % |");
            too_much |= at == 3 && (mean > MAY_COST.0 || most > MAY_COST.1);
        }
    }
    ExitCode::from(u8::from(too_much))
}

/// Every graph at every budget, with every planner.
fn runs() -> Vec<Run> {
    let results = std::fs::read_to_string(format!("{INSTANCES}/results.json")).expect("is in the repository");
    let results: Value = serde_json::from_str(&results).expect("is JSON");
    let mut budgets = BTreeMap::new();
    for row in results["rows"].as_array().expect("has rows") {
        let instance = row["instance"].as_str().expect("is a text");
        let share = row["f"].as_f64().and_then(|f| SHARES.iter().position(|&share| share == f));
        if let (true, "full", Some(share)) =
            (instance.starts_with("dag"), row["duplex"].as_str().unwrap(), share)
        {
            budgets.insert((instance.to_owned(), share), row["M"].as_u64().expect("is a number of bytes"));
        }
    }
    let one = |planner| {
        let of = move |((instance, share), &budget): (&(String, usize), &u64)| Run {
            instance: instance.clone(),
            share: SHARES[*share],
            budget,
            planner,
        };
        budgets.iter().map(of).collect::<Vec<_>>()
    };
    PLANNERS.into_iter().flat_map(one).collect()
}

/// The results of all runs, two at a time.
fn all(runs: &[Run]) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((index, run)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|index| Some((index, runs.get(index)?)))
                {
                    let one = one(run);
                    found.lock().expect("nobody panics").insert(index, one);
                }
            });
        }
    });
    found.into_inner().expect("nobody panics").into_values().collect()
}

fn one(run: &Run) -> Found {
    let text = std::fs::read_to_string(format!("{INSTANCES}/{}", run.instance)).expect("is there");
    let mut problem = Instance::parse(&text).expect("is an instance").problem;
    problem.link.duplex = Duplex::Full;
    let (name, recompute, effort) = run.planner;
    let planner = planner(name).expect("is one of ours");
    let request = Request { recompute, effort, ..Request::new(&problem, run.budget) };
    let plan = planner.plan(&request).expect("fits");
    schedule::check(&plan.problem, &plan.schedule, run.budget).expect("is valid");
    let arena = placing::place_plan(&planner.with(Parameters::default()), &request, &plan).map(|placed| {
        address::check(&placed, Arena::of(&request)).expect("is valid");
        placed.plan.schedule.makespan()
    });
    let paged = PAGES.map(|page| {
        let paged = pages::plan(|request| planner.plan(request), &request, page).expect("fits");
        pages::check(&paged, run.budget).expect("is valid");
        paged.plan.schedule.makespan()
    });
    Found { counted: plan.schedule.makespan(), arena, paged }
}
