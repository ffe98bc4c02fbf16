//! `--profile`: measured costs in place of the target's model.

use crate::support::{Bench, snapshot};
use serde_json::{Value, json};

/// A training step in the text form that swapping brings within 26 MiB.
const FOUR_LAYERS: &str = include_str!("../testdata/passes/swap/fewest-bytes-for-a-budget.lms");

/// The Relus take a millisecond each, and the link carries a gigabyte in a second.
fn profile() -> Value {
    json!({
        "format": 1,
        "device": "a card",
        "link": { "duplex": "half", "out_bytes_per_second": 1_000_000_000, "in_bytes_per_second": 1_000_000_000,
                  "latency_nanos": 0 },
        "entries": [
            { "node": "Relu(float[4096,256]) -> float[4096,256]", "nanos": 1_000_000, "workspace": 0 },
            { "node": "Relu(float[1,256]) -> float[1,256]", "nanos": 1, "workspace": 0 },
        ]
    })
}

fn bench(profile: &Value) -> Bench {
    let bench = Bench::new();
    bench.write("step.lms", FOUR_LAYERS);
    bench.write("p.json", profile.to_string());
    bench
}

fn check(name: &str, profile: &Value, arguments: &str, code: i32) {
    let bench = bench(profile);
    let outcome = bench.run(arguments);
    snapshot("cli", name, &bench.show(arguments, &outcome));
    assert_eq!(outcome.code, code, "{outcome:?}");
}

#[test]
fn every_command_says_how_much_was_measured() {
    let within = "@/step.lms --budget 26MiB --planner swap-only --profile @/p.json";
    check("profile", &profile(), within, 0);
    check("profile-explain", &profile(), &format!("explain {within} --tensor x"), 0);
    let sweep = "sweep @/step.lms --budget 26MiB --planner swap-only --profile @/p.json";
    check("profile-sweep", &profile(), sweep, 0);
    let other = json!({ "format": 1, "device": "a card", "entries": [] });
    check("profile-of-another-model", &other, within, 0);
}

#[test]
fn plans_use_measured_times() {
    let bench = bench(&profile());
    let answer = |arguments: &str| -> Value {
        let outcome = bench.run(&format!("plan @/step.lms --planner swap-only --json {arguments}"));
        assert_eq!(outcome.code, 0, "{outcome:?}");
        serde_json::from_slice(&outcome.stdout).unwrap()
    };
    let roomy = answer("--memory 1GiB");
    let measured = answer("--memory 1GiB --profile @/p.json");
    let facts = &measured["profile"];
    assert_eq!((&facts["measured_nodes"], &facts["measured_ms"]), (&json!(4), &json!(4.0)));
    let others = measured["compute_ms"].as_f64().unwrap() - 4.0;
    assert!(others > 0.0 && others < roomy["compute_ms"].as_f64().unwrap());
    // 4 MiB take 4.19 ms over the measured link, whichever target is named.
    let tight = answer("--memory 21MiB --profile @/p.json --target h100-pcie5");
    let copied = tight["swapped_bytes"].as_f64().unwrap() + tight["returned_bytes"].as_f64().unwrap();
    assert!(copied > 0.0 && tight["makespan_ms"].as_f64().unwrap() >= copied / 1e6);
}

#[test]
fn a_profile_that_is_wrong_is_named_with_its_entry_and_field() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut profile = profile();
        change(&mut profile);
        profile
    };
    let call = "@/step.lms --budget 26MiB --profile @/p.json";
    check("profile-entry", &with(&|p| p["entries"][1]["nanos"] = json!("2 ms")), call, 2);
    check("profile-field", &with(&|p| p["entries"][0]["time"] = json!(5)), call, 2);
    check("profile-link", &with(&|p| p["link"]["latency_nanos"] = json!(-1)), call, 2);
    check("profile-format", &with(&|p| p["format"] = json!(2)), call, 2);
    check("profile-missing", &profile(), "@/step.lms --budget 26MiB --profile @/q.json", 2);
    let instance = "plan --instance testdata/instances/tiny_rand6_0.json --memory 1GiB --profile @/p.json";
    check("profile-of-an-instance", &profile(), instance, 2);
}
