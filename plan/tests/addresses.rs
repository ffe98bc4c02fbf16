//! The cost of addresses on the shared instances: time beyond that of a plan whose bytes are only counted.

use lmsc_plan::address::{self, Arena};
use lmsc_plan::instance::Instance;
use lmsc_plan::placing;
use lmsc_plan::planners::ours::swap_only;
use lmsc_plan::planners::{Granularity, Plan, Request};
use lmsc_plan::problem::Duplex;
use serde_json::Value;

/// For each instance and budget, as a fraction of the bytes that swapping can free, the makespan with addresses relative to that of
/// the better of whole tensors and ranges without, in ten thousandths.
fn losses(file: &str, fractions: &[f64], effort: u32) -> Vec<(String, u64)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/instances");
    let read = |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).unwrap();
    let results: Value = serde_json::from_str(&read("results.json")).unwrap();
    let mut problem = Instance::parse(&read(file)).unwrap().problem;
    problem.link.duplex = Duplex::Full;
    let rows = results["rows"].as_array().unwrap().iter().filter(|row| {
        let fraction = row["f"].as_f64().unwrap();
        let full = row["duplex"] == "full" && row["recompute"] == false;
        row["instance"] == file && full && fractions.contains(&fraction)
    });
    let loss = |row: &Value| {
        let budget = row["M"].as_u64().unwrap();
        let plan = |granularity| -> Plan {
            swap_only::plan(&Request { granularity, effort: 0, ..Request::new(&problem, budget) }).unwrap()
        };
        let (whole, ranges) = (plan(Granularity::Whole), plan(Granularity::Ranges));
        let without = whole.schedule.makespan().min(ranges.schedule.makespan());
        let arena = Arena::of(&Request::new(&problem, budget));
        let placed = address::place(arena, effort, placing::covers(ranges, Granularity::Ranges)).unwrap();
        assert!(address::check(&placed, arena).unwrap() <= budget);
        (format!("{file} {}", row["f"]), placed.plan.schedule.makespan() * 10_000 / without)
    };
    rows.map(loss).collect()
}

#[test]
fn addresses_cost_little() {
    let cases: [(&str, &[f64]); 4] = [
        ("dag_gpt2s_b8_s1024.json", &[0.05, 0.1, 0.25, 0.5]),
        ("dag_unet_512_b8.json", &[0.25, 0.5]),
        ("dag_vgg16_224_b64.json", &[0.25, 0.5]),
        ("dag_vgg16_1000_b4.json", &[0.5]),
    ];
    let losses: Vec<_> = cases.into_iter().flat_map(|(file, fractions)| losses(file, fractions, 1)).collect();
    assert_eq!(losses.len(), 9);
    for (case, loss) in &losses {
        assert!(*loss <= 10_200, "{case}: {loss}");
    }
    let mean = losses.iter().map(|(_, loss)| loss).sum::<u64>() / losses.len() as u64;
    assert!(mean <= 10_030, "{mean}: {losses:?}");
}
