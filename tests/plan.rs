//! `lmsc plan` on the instances under `testdata/instances`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::support::models::{models, open};
use crate::support::{Bench, one_in, snapshot};
use lmsc_plan::bound::{Certificate, certify};
use lmsc_plan::instance::Instance;
use serde_json::Value;

const RESNET: &str = "--instance testdata/instances/dag_resnet50_224_b64.json";

/// The printed report, without the fields that differ from run to run.
fn answer(arguments: &str) -> Value {
    let outcome = Bench::new().run(&format!("plan {arguments} --json"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let mut value: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    assert!(value["planning_ms"].take().is_number());
    value
}

#[test]
fn the_answer_is_the_same_on_every_run() {
    let arguments = format!("{RESNET} --memory 1.8GB --recompute --effort 1");
    let first = answer(&arguments);
    assert_eq!(first, answer(&arguments));
    snapshot("cli", "plan-json", &serde_json::to_string_pretty(&first).unwrap());
}

#[test]
fn recomputation_is_only_used_where_allowed() {
    let arguments = format!("{RESNET} --memory 1.8GB --effort 1 --addresses off");
    let (without, with) = (answer(&arguments), answer(&format!("{arguments} --recompute")));
    assert_eq!(without["recompute_ms"], 0.0);
    assert!(with["recompute_ms"].as_f64().unwrap() > 0.0);
    assert!(with["makespan_ms"].as_f64() < without["makespan_ms"].as_f64());
}

#[test]
fn parameters_and_the_scheduler_reach_the_planners() {
    let makespan = |arguments: &str| {
        answer(&format!("{RESNET} --memory 1.8GB --addresses off {arguments}"))["makespan_ms"]
            .as_f64()
            .unwrap()
    };
    let papers = |arguments: &str| makespan(&format!("--scheduler paper --planner {arguments}"));
    assert!(makespan("--planner window") < papers("window"));
    assert!(papers("window") < papers("window{bytes=10MB}"));
    assert_ne!(papers("tflms-chain{branch-threshold=3}"), papers("tflms-chain{branch-threshold=3,ahead=9}"));
}

#[test]
fn learned_weights_are_written_and_read_as_initial_ones() {
    let bench = Bench::new();
    let trace = "plan --instance testdata/traces/kmeans.jsonl --memory 118MiB --recompute --addresses off";
    let makespan = |arguments: &str| -> f64 {
        let outcome = bench.run(&format!("{trace} {arguments} --json"));
        assert_eq!(outcome.code, 0, "{outcome:?}");
        serde_json::from_slice::<Value>(&outcome.stdout).unwrap()["makespan_ms"].as_f64().unwrap()
    };
    let learned = makespan("--planner dqn{episodes=30,seed=2} --save-weights @/w.safetensors");
    assert_eq!(learned, makespan("--planner dqn{episodes=30,seed=2} --save-weights @/same.safetensors"));
    let written = std::fs::read(bench.path("w.safetensors")).unwrap();
    assert_eq!(written, std::fs::read(bench.path("same.safetensors")).unwrap());
    // A single episode is the choice of the network alone.
    let chosen =
        makespan("--planner dqn{episodes=1} --weights @/w.safetensors --save-weights @/next.safetensors");
    assert!(learned <= chosen && chosen < makespan("--planner dqn{episodes=1}"), "{chosen}");
    assert_ne!(written, std::fs::read(bench.path("next.safetensors")).unwrap());

    bench.write("empty.safetensors", b"\x02\0\0\0\0\0\0\0{}");
    for (name, file) in [("empty", "empty.safetensors"), ("other", "none.safetensors")] {
        let arguments = format!("{trace} --planner dqn --weights @/{file}");
        let outcome = bench.run(&arguments);
        snapshot("cli", &format!("plan-weights-{name}"), &bench.show(&arguments, &outcome));
        assert_eq!(outcome.code, 2);
    }
}

#[test]
fn noise_is_replayed_within_the_budget() {
    let arguments = format!("{RESNET} --memory 1.8GB --planner swap-only --addresses off");
    let without = answer(&arguments);
    assert!(without["replayed"].is_null());
    let with = answer(&format!("{arguments} --noise 10 --contention 20"));
    let (planned, replayed) = (with["makespan_ms"].as_f64().unwrap(), &with["replayed"]);
    let (mean, most) = (replayed["mean_ms"].as_f64().unwrap(), replayed["most_ms"].as_f64().unwrap());
    assert!(mean <= most && (0.99..1.01).contains(&(mean / planned)), "{with}");
    assert!(replayed["peak_bytes"].as_u64().unwrap() <= 1_800_000_000);
    let text = Bench::new().run(&format!("plan {arguments} --noise 10"));
    assert!(String::from_utf8(text.stdout).unwrap().contains("\nnoise     +0."));
}

#[test]
fn a_robust_plan_loses_less_where_times_are_off_and_says_its_cost() {
    let arguments = format!("{RESNET} --memory 1.8GB --planner swap-only --whole --effort 5 --addresses off");
    let without = answer(&arguments);
    assert!(without["robust"].is_null());
    let with = answer(&format!("{arguments} --robust 20%"));
    assert_eq!(with, answer(&format!("{arguments} --robust 20")));
    let percent = |name: &str| with["robust"][name].as_f64().unwrap();
    assert_eq!(percent("off_percent"), 20.0);
    assert!(percent("loss_percent") <= percent("fastest_loss_percent"), "{with}");
    assert!(percent("cost_percent") <= percent("loss_percent"), "{with}");
    let [fast, robust] = [&without, &with].map(|answer| answer["makespan_ms"].as_f64().unwrap());
    assert!(robust <= fast * (1.0 + percent("cost_percent") / 100.0) + 1e-3, "{fast} {robust}");
    let wrong = Bench::new().run(&format!("plan {arguments} --robust 120%"));
    assert!(wrong.code == 2 && wrong.stderr.contains("`120%` is no share from 1% to 90%"), "{wrong:?}");
}

#[test]
fn the_bound_is_of_the_plans_allowed_and_its_proof_stands_alone() {
    let bench = Bench::new();
    let text = std::fs::read_to_string("testdata/instances/dag_resnet50_224_b64.json").unwrap();
    let problem = Instance::parse(&text).unwrap().problem;
    let mut bounds = Vec::new();
    for kind in ["", "--whole", "--recompute"] {
        let arguments =
            format!("plan {RESNET} --memory 1.8GB {kind} --effort 1 --certificate @/c.json --json");
        let outcome = bench.run(&arguments);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let found: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        let proof: Certificate =
            serde_json::from_slice(&std::fs::read(bench.path("c.json")).unwrap()).unwrap();
        let nanos = certify(&problem, 1_800_000_000, &proof).unwrap();
        let bound = found["lower_bound_ms"].as_f64().unwrap();
        assert_eq!(nanos as f64 / 1e6, bound);
        assert!(bound <= found["makespan_ms"].as_f64().unwrap() && found["over_bound"].as_f64() < Some(1.05));
        let above = Certificate { nanos: nanos + nanos / 100, ..proof };
        assert!(certify(&problem, 1_800_000_000, &above).is_err());
        bounds.push(bound);
    }
    assert!(bounds[0] <= bounds[1] && bounds[2] < bounds[0], "{bounds:?}");
}

#[test]
fn planners_are_shown_beside_one_another_and_the_bound() {
    let bench = Bench::new();
    let compare =
        format!("plan {RESNET} --memory 1.8GB --planner swap-only --compare greedy,memonger,swap-only");
    let outcome = bench.run(&compare);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let text = String::from_utf8(outcome.stdout).unwrap();
    let ratios = |name: &str| -> Vec<f64> {
        let row = text.lines().find(|line| line.starts_with(name) && !line.starts_with("planner")).unwrap();
        row.split_whitespace().skip(1).take(3).map(|number| number.parse().unwrap()).collect()
    };
    let bound: f64 = text
        .lines()
        .find_map(|line| line.strip_prefix("bound ")?.split_whitespace().next()?.parse().ok())
        .unwrap();
    let [optimal, greedy] = ["swap-only", "greedy"].map(ratios);
    assert!((optimal[0] / bound - optimal[2]).abs() < 1e-3 && optimal[2] < 1.01);
    assert!(greedy[2] >= optimal[2] && (greedy[0] / bound - greedy[2]).abs() < 1e-3);
}

#[test]
fn the_schedule_names_operators_and_bytes_of_the_instance() {
    let bench = Bench::new();
    let arguments =
        format!("{RESNET} --memory 1.8GB --planner swap-only --addresses off --schedule @/s.json");
    let outcome = bench.run(&format!("plan {arguments}"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let text = std::fs::read_to_string(bench.path("s.json")).unwrap();
    let schedule: Value = serde_json::from_str(&text).unwrap();
    let steps = schedule["steps"].as_array().unwrap();
    let ops: Vec<u64> = steps.iter().filter_map(|s| s["op"].as_u64()).collect();
    assert!(ops.iter().copied().eq(0..403));
    let moved = |what: &str| -> u64 {
        let copies = steps.iter().filter(|s| s["do"] == what);
        copies.map(|s| s["bytes"][1].as_u64().unwrap() - s["bytes"][0].as_u64().unwrap()).sum()
    };
    assert_eq!(moved("out"), moved("in"));
    assert!(moved("out") > 3_000_000_000);
}

#[test]
fn a_report_for_programs_has_all_that_the_page_shows() {
    let bench = Bench::new();
    let call = |rest: &str| bench.run(&format!("plan {rest} --effort 5 --addresses off --json"));
    let instance = format!("{RESNET} --memory 1.8GB --planner swap-only --whole");
    let model =
        "testdata/models/resnet18/training_model.onnx --dim batch=32 --memory 450MiB --planner swap-only";
    for arguments in [&*instance, model] {
        let outcome = call(&format!("{arguments} --report @/r.json --trace @/t.json"));
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let answer: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        let report = std::fs::read_to_string(bench.path("r.json")).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        for (key, value) in answer.as_object().unwrap() {
            assert_eq!(&report[key], value, "{key}");
        }
        let waits: f64 = report["waits"].as_object().unwrap().values().map(|ms| ms.as_f64().unwrap()).sum();
        assert!((waits - report["exposed_ms"].as_f64().unwrap()).abs() < 1e-3 && waits > 0.0);
        let stalls = report["steps"].as_array().unwrap().iter().filter(|step| step["lane"] == 3);
        let lengths = stalls.map(|stall| stall["end"].as_f64().unwrap() - stall["start"].as_f64().unwrap());
        assert!((lengths.sum::<f64>() - waits).abs() < 1e-3);
        let tensors = report["tensors"].as_array().unwrap();
        let moved = || tensors.iter().filter(|tensor| tensor["decision"] == "swapped");
        assert!(moved().count() > 3);
        assert!(moved().any(|t| t["stays_from_bytes"].as_u64() > report["memory_bytes"].as_u64()));
        assert!(
            moved().any(|t| t["hidden_at_bytes_per_second"].is_u64() && t["waits_ms"].as_f64() > Some(0.0))
        );
        assert!(moved().all(|t| !t["changes"].as_str().unwrap().is_empty()));
        let page = call(&format!("{arguments} --report @/p.html"));
        assert_eq!(page.code, 0);
        let page = std::fs::read_to_string(bench.path("p.html")).unwrap();
        assert!(page.contains("what would change it") && page.contains("\"cause\":\"copy_out\""));
        assert!(page.contains(r#""made_by":"lmsc "#) && page.contains(r#""command":"lmsc plan "#));
        let trace: Value = serde_json::from_slice(&std::fs::read(bench.path("t.json")).unwrap()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let steps = report["steps"].as_array().unwrap().len();
        assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), steps);
        // An arrow leads from a copy out to a later copy in.
        let ends = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
        let (from, to) = (ends("s"), ends("f"));
        assert!(from.len() == to.len() && !from.is_empty());
        for (from, to) in from.iter().zip(&to) {
            assert_eq!(from["id"], to["id"]);
            assert_eq!((&from["tid"], &to["tid"]), (&1.into(), &2.into()));
            assert!(from["ts"].as_f64() < to["ts"].as_f64());
        }
    }
}

#[test]
fn a_placed_schedule_carries_addresses_inside_the_arena() {
    const VGG: &str = "--instance testdata/instances/dag_vgg16_224_b64.json --memory 3GB";
    let bench = Bench::new();
    let outcome = bench
        .run(&format!("plan {VGG} --planner swap-only --addresses on --effort 1 --schedule @/s.json --json"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let answer: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    assert_eq!(answer["arena_bytes"], 3_000_000_000u64);
    let text = std::fs::read_to_string(bench.path("s.json")).unwrap();
    let schedule: Value = serde_json::from_str(&text).unwrap();
    let steps = schedule["steps"].as_array().unwrap();
    let last = steps.iter().filter_map(|s| s["end_ns"].as_u64()).max().unwrap();
    assert_eq!(answer["makespan_ms"].as_f64().unwrap(), last as f64 / 1e6);
    let comes = |step: usize| steps[step]["do"] != "out";
    let spots = schedule["spots"].as_array().unwrap();
    for spot in spots {
        let address = spot["address"].as_u64().unwrap();
        let bytes = spot["bytes"].as_array().map_or(0, |b| b[1].as_u64().unwrap() - b[0].as_u64().unwrap());
        assert!(address + bytes <= 3_000_000_000, "{spot}");
        assert!(spot["from_step"].as_u64().is_none_or(|step| comes(step as usize)), "{spot}");
    }
    for step in (0..steps.len()).filter(|&step| steps[step]["do"] == "in") {
        assert!(spots.iter().any(|spot| spot["from_step"] == step), "{step}");
    }
    let pages = bench.run(&format!("plan {VGG} --planner swap-only --pages 2MiB --schedule @/p.json --json"));
    assert_eq!(pages.code, 0, "{pages:?}");
    let paged: Value = serde_json::from_slice(&pages.stdout).unwrap();
    let text = std::fs::read_to_string(bench.path("p.json")).unwrap();
    let schedule: Value = serde_json::from_str(&text).unwrap();
    let steps = schedule["steps"].as_array().unwrap();
    let last = steps.iter().filter_map(|s| s["end_ns"].as_u64()).max().unwrap();
    assert_eq!(paged["makespan_ms"].as_f64().unwrap(), last as f64 / 1e6);
    assert!(paged["peak_bytes"].as_u64().unwrap() <= 3_000_000_000 >> 21 << 21);
    assert!(
        steps.iter().filter(|s| s["do"] == "in").all(|s| s["bytes"][0].as_u64().unwrap() % (2 << 20) == 0)
    );
    let without = bench.run(&format!("plan {VGG} --planner swap-only --addresses off"));
    assert!(!String::from_utf8(without.stdout).unwrap().contains("held by"));
}

#[test]
fn wrong_calls_are_named() {
    let show = |name: &str, arguments: &str, code: i32| {
        let bench = Bench::new();
        bench.write("no.json", r#"{"format": "lmsc-planner-dag-1", "name": "no"}"#);
        let outcome = bench.run(arguments);
        snapshot("cli", name, &bench.show(arguments, &outcome));
        assert_eq!(outcome.code, code, "{outcome:?}");
    };
    show("plan-does-not-fit", &format!("plan {RESNET} --memory 100MiB"), 1);
    show(
        "plan-model-does-not-fit",
        "plan testdata/models/tiny_mlp/training_model.onnx --dim batch=4096 --memory 100KiB",
        1,
    );
    show("plan-pages-do-not-fit", &format!("plan {RESNET} --memory 900MB --pages 512MiB"), 1);
    show("plan-no-such-planner", &format!("plan {RESNET} --memory 1GiB --planner best"), 2);
    show(
        "plan-parameters-of-another-planner",
        &format!("plan {RESNET} --memory 1GiB --planner auto{{ahead=3}}"),
        2,
    );
    show(
        "plan-weights-of-another-planner",
        &format!("plan {RESNET} --memory 1GiB --weights w.safetensors"),
        2,
    );
    let ranges = "testdata/models/tiny_mlp/training_model.onnx --dim batch=4096 --ranges --planner lru";
    show("plan-ranges-of-another-planner", &format!("plan {ranges} --memory 4MiB"), 2);
    show("sweep-ranges-of-another-planner", &format!("sweep {ranges} --budget 4MiB"), 2);
    show("plan-no-instance", "plan --instance @/no.json --memory 1GiB", 2);
}

#[test]
fn a_model_is_planned_in_ranges_where_asked_for() {
    let model =
        "testdata/models/vgg16/training_model.onnx --dim batch=64 --planner swap-only --addresses off";
    let plan = |rest: &str| answer(&format!("{model} --memory 3200MiB {rest}"));
    let (whole, ranges) = (plan(""), plan("--ranges"));
    assert!(ranges["makespan_ms"].as_f64() < whole["makespan_ms"].as_f64());
    assert_ne!(ranges["swapped_bytes"], whole["swapped_bytes"]);
    let sweep = |rest: &str| {
        let outcome = Bench::new().run(&format!("sweep {model} --budget 3200MiB --json {rest}"));
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let found: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        found["sizes"][0]["points"][0]["plan"].clone()
    };
    for (swept, planned) in [(sweep(""), &whole), (sweep("--ranges"), &ranges)] {
        for key in ["makespan_ms", "lower_bound_ms", "swapped_bytes"] {
            assert_eq!(swept[key], planned[key], "{key}");
        }
    }
}

#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn time_never_rises_with_memory() {
    let bench = Bench::new();
    let model = "testdata/models/resnet50/training_model.onnx";
    let questions = [("auto", 16), ("swap-only", 32), ("auto", 32), ("swap-only", 16)];
    for (planner, batch) in &questions[..lmsc_testing::cases(2, 2, 4)] {
        let arguments = format!(
            "sweep {model} --dim batch={batch} --budget 400MiB..3GiB --steps 50 --effort 1 --planner {planner} --addresses off --json"
        );
        let outcome = bench.run(&arguments);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let found: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        let [size] = &found["sizes"].as_array().unwrap()[..] else { panic!("{found}") };
        let (mut last, mut fitting) = (f64::MAX, 0);
        for point in size["points"].as_array().unwrap() {
            if let Some(makespan) = point["plan"]["makespan_ms"].as_f64() {
                let bound = point["plan"]["lower_bound_ms"].as_f64().unwrap();
                assert!(bound <= makespan && makespan <= last, "{planner}: {point}");
                assert!(point["plan"]["peak_bytes"].as_u64() <= point["budget_bytes"].as_u64());
                (last, fitting) = (makespan, fitting + 1);
            }
        }
        assert!(fitting >= 25 && last == size["compute_ms"].as_f64().unwrap(), "{planner}: {size}");
    }
    let page = bench.run(&format!(
        "sweep {model} --dim batch=2 --budget 1GiB..2GiB --steps 3 --addresses off --report @/p.html"
    ));
    assert_eq!(page.code, 0);
    assert!(std::fs::read_to_string(bench.path("p.html")).unwrap().contains("no plan is faster"));
    let below = format!("sweep {model} --dim batch=2 --budget 1KiB..2KiB --steps 2");
    let none = bench.run(&below);
    snapshot("cli", "sweep-does-not-fit", &bench.show(&below, &none));
    assert_eq!(none.code, 1);
}

/// Whichever command is asked, the same question has the same answer: the hash of the model as the plan rewrites it. At each of
/// five budgets each model meets other planners, until all have had their turn.
#[test]
fn the_same_question_has_the_same_answer_from_every_command() {
    let bench = Bench::new();
    let asked = |arguments: &str| {
        let outcome = bench.run(arguments);
        (outcome.code, serde_json::from_slice::<Value>(&outcome.stdout).unwrap_or_default())
    };
    // The graph's planner TFLMS has no plan of a problem, so that `plan` does not make it.
    let of_problems = lmsc_papers::ALL.iter().filter_map(|planner| planner.of_problems());
    let planners: Vec<_> = of_problems.map(|planner| planner.name).collect();
    let is_small = |path: &PathBuf| std::fs::metadata(path).unwrap().len() < LARGEST;
    let (mut plans, mut refusals, mut turn) = (0, BTreeMap::new(), 0);
    for path in models().into_iter().filter(is_small).step_by(one_in()) {
        let (_, dims) = open(&path);
        let sizes: String = dims.iter().map(|(name, value)| format!(" --dim {name}={value}")).collect();
        let model = format!("{}{sizes}", path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display());
        let peak = asked(&format!("inspect {model} --json")).1["memory"]["peak"].as_u64().unwrap();
        let (_, refusal) = asked(&format!("plan {model} --budget 1 --json"));
        let Some(floor) = refusal["error"]["smallest_budget"].as_u64() else { continue };
        let at = |share: u64| (floor + (peak - floor) * share / 100).to_string();
        let budgets =
            [("0.9x".to_owned(), ""), (at(60), ""), (at(35), "--addresses off"), (at(15), ""), (at(5), "")];
        for (budget, more) in budgets {
            let planner = planners[turn % planners.len()];
            turn += 1;
            let question = format!("{model} --effort 1 --planner {planner} --budget {budget} {more}");
            let (code, compiled) = asked(&format!("{question} --json -o @/x.lms"));
            let (plan_code, planned) = asked(&format!("plan {question} --json"));
            let (sweep_code, swept) = asked(&format!("sweep {question} --steps 1 --json"));
            assert_eq!([plan_code, sweep_code], [code, code], "{question}");
            assert!(code < 2, "{question}");
            if code != 0 {
                *refusals.entry(planner).or_insert(0) += 1;
                continue;
            }
            let swept = &swept["sizes"][0]["points"][0]["plan"]["hash"];
            assert_eq!([&planned["hash"], swept], [&compiled["hash"]; 2], "{question}");
            plans += 1;
        }
    }
    let refused = refusals.values().sum::<usize>();
    assert!(
        turn >= planners.len() && plans > turn / 3 && refused > 10 / one_in(),
        "{plans} of {turn}: {refusals:?}"
    );
}

/// Larger files are planned by other tests.
const LARGEST: u64 = 1 << 19;
