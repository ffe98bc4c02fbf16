//! Bounds on the instances under `testdata/instances`, compared with known results.

use lmsc_plan::bound::{self, Certificate};
use lmsc_plan::instance::Instance;
use lmsc_plan::problem::{Duplex, Problem};
use serde_json::Value;

/// Every row of the results whose instance is of the kind, with its problem.
fn rows(kind: &str) -> Vec<(Value, Problem)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/instances");
    let read = |name: &str| std::fs::read_to_string(format!("{folder}/{name}")).unwrap();
    let results: Value = serde_json::from_str(&read("results.json")).unwrap();
    let rows = results["rows"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["instance"].as_str().unwrap().starts_with(kind)).map(|row| {
        let mut problem = Instance::parse(&read(row["instance"].as_str().unwrap())).unwrap().problem;
        problem.link.duplex = if row["duplex"] == "half" { Duplex::Half } else { Duplex::Full };
        (row.clone(), problem)
    });
    rows.collect()
}

/// Checks that the bound is proven, no less than the known one, and no more than any time found.
fn check(row: &Value, problem: &Problem, certificate: &Certificate, known: &str, found: &[&str]) {
    let budget = row["M"].as_u64().unwrap();
    assert_eq!(bound::certify(problem, budget, certificate), Ok(certificate.nanos), "{row}");
    let millis = certificate.nanos as f64 / 1e6;
    let rounding = 2e-6;
    assert!(millis >= row[known].as_f64().unwrap() - rounding, "{millis} ms: {row}");
    for found in found.iter().filter_map(|found| row[*found].as_f64()) {
        assert!(millis <= found + rounding, "{millis} ms: {row}");
    }
}

#[test]
fn bounds_on_swapping_are_as_high_as_known_and_no_higher_than_any_plan() {
    let mut count = 0;
    for (row, problem) in ["dag", "chain", "tiny"].into_iter().flat_map(rows) {
        if row["recompute"] == true {
            continue;
        }
        let budget = row["M"].as_u64().unwrap();
        let found = ["best_pieces_ms", "best_whole_ms"];
        check(&row, &problem, &bound::paper(&problem, budget), "lb_paper_ms", &found);
        check(&row, &problem, &bound::swap(&problem, budget), "lb_swap_ms", &found);
        count += 1;
    }
    assert!(count > 1000, "{count}");
}

#[test]
fn bounds_on_swapping_whole_tensors_are_as_high_as_known_and_no_higher_than_any_plan() {
    let (mut count, mut tight) = (0, 0);
    for (row, problem) in rows("tiny") {
        if row["lb_swap_whole_ms"].is_null() {
            continue;
        }
        let certificate = bound::whole(&problem, row["M"].as_u64().unwrap());
        check(&row, &problem, &certificate, "lb_swap_whole_ms", &["best_whole_ms"]);
        count += 1;
        tight += usize::from(
            (certificate.nanos as f64 / 1e6 - row["best_whole_ms"].as_f64().unwrap()).abs() < 1e-5,
        );
    }
    assert!(count > 400 && tight * 2 > count, "{tight} of {count}");
}

#[test]
fn bounds_on_recomputation_are_as_high_as_known_and_no_higher_than_any_plan() {
    let mut count = 0;
    for (row, problem) in rows("dag") {
        if row["lb_joint_ms"].is_null() {
            continue;
        }
        let certificate = bound::joint(&problem, row["M"].as_u64().unwrap());
        check(&row, &problem, &certificate, "lb_joint_ms", &["best_pieces_ms", "best_whole_ms"]);
        count += 1;
    }
    assert!(count > 50, "{count}");
}
