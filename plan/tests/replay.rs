//! The loss of plans on the shared instances if times differ from the planned ones.

use lmsc_plan::instance::Instance;
use lmsc_plan::planners::{self, Request};
use lmsc_plan::problem::Duplex;
use lmsc_plan::schedule::{Noise, Replay, Room, edges};
use serde_json::Value;

/// For each instance and budget, the mean time with noise over the time planned, for graphs over a full-duplex link.
fn ratios(planner: &str, recompute: bool, noise: Noise) -> Vec<(String, f64)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/instances");
    let read = |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
    let results: Value = serde_json::from_str(&read("results.json")).unwrap();
    let mut ratios = Vec::new();
    for row in results["rows"].as_array().unwrap() {
        let file = row["instance"].as_str().unwrap();
        if !file.starts_with("dag_") || row["duplex"] != "full" || row["recompute"] != recompute {
            continue;
        }
        let mut problem = Instance::parse(&read(file)).unwrap().problem;
        problem.link.duplex = Duplex::Full;
        let budget = row["M"].as_u64().unwrap();
        let request = Request { recompute, effort: 1, ..Request::new(&problem, budget) };
        let plan = planners::planner(planner).unwrap().plan(&request).unwrap();
        let edges = edges(&plan.problem, &plan.schedule, Room::Counted(budget)).unwrap();
        // Also checks that no replay exceeds the budget.
        let replayed = Replay::new(&plan.problem, &plan.schedule, &edges).several(noise, 10, budget).unwrap();
        let ratio = replayed.mean as f64 / plan.schedule.makespan() as f64;
        ratios.push((format!("{file} {}", row["f"]), ratio));
    }
    ratios
}

fn mean(ratios: &[(String, f64)]) -> f64 {
    ratios.iter().map(|(_, ratio)| ratio).sum::<f64>() / ratios.len() as f64
}

#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn a_tenth_of_noise_in_operators_costs_less_than_a_hundredth_of_the_time() {
    for (planner, recompute) in [("swap-only", false), ("auto", true)] {
        let ratios = ratios(planner, recompute, Noise { operators_percent: 10, contention_percent: 0 });
        assert!(ratios.len() >= 60, "{}", ratios.len());
        for (row, ratio) in &ratios {
            assert!(*ratio <= 1.01, "{planner} {row}: {ratio}");
        }
        assert!(mean(&ratios) <= 1.003, "{planner}: {}", mean(&ratios));
    }
}

#[test]
fn copies_seldom_go_in_both_directions() {
    // A training step fills the memory once: copies out come before that, copies in after.
    let ratios = ratios("swap-only", false, Noise { operators_percent: 0, contention_percent: 50 });
    for (row, ratio) in &ratios {
        assert!(*ratio <= 1.04, "{row}: {ratio}");
    }
    assert!(mean(&ratios) <= 1.003, "{}", mean(&ratios));
}
