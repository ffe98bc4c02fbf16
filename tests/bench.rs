//! `lmsc bench`: planners of other programs beside those of lmsc.

use crate::support::{Bench, Outcome, snapshot};
use serde_json::Value;

const TWO: [&str; 2] =
    ["testdata/instances/tiny_rand7_0.json", "testdata/instances/tiny_chain_densenet121_224_b32_k8.json"];

/// A line of shell that lets lmsc itself plan, as another program would.
fn line(planner: &str, more: &str) -> String {
    let lmsc = env!("CARGO_BIN_EXE_lmsc");
    format!(
        "{lmsc} plan --whole {more} --addresses off --planner {planner} --instance {{}} --budget {{memory}} --schedule {{out}}"
    )
}

fn ranked(bench: &Bench, planners: &[&str], more: &str) -> Outcome {
    let planners = planners.iter().flat_map(|planner| ["--planner", planner]);
    let words: Vec<&str> =
        ["bench"].into_iter().chain(TWO).chain(planners).chain(more.split_whitespace()).collect();
    bench.call(words, b"")
}

/// The answer without times of planning, which differ from run to run.
fn answer(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let mut answer: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let all =
        |value: &mut Value| value.as_array_mut().unwrap().iter_mut().for_each(|it| it["took_ms"] = 0.into());
    all(&mut answer["planners"]);
    answer["cases"].as_array_mut().unwrap().iter_mut().for_each(|case| all(&mut case["results"]));
    answer
}

#[test]
fn a_command_is_ranked_by_the_plans_that_it_writes() {
    let bench = Bench::new();
    let (lru, best) = (line("lru", ""), line("swap-only", ""));
    let more = "--whole --budget 0.9x,0.8x --compare lru,swap-only,auto --json";
    let first = answer(&ranked(&bench, &[&lru, &best], more));
    assert_eq!(first, answer(&ranked(&bench, &[&lru, &best], more)));
    // Both are named by the word before the instance; planners of lmsc keep their names.
    let names = ["lru (2)", "swap-only (2)", "lru", "swap-only", "auto"];
    let cases = first["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let results = case["results"].as_array().unwrap();
        assert!(results.iter().map(|it| it["planner"].as_str().unwrap()).eq(names));
        for (own, other) in [(0, 2), (1, 3)] {
            assert_eq!(results[own]["makespan_ms"], results[other]["makespan_ms"], "{case}");
            assert_eq!(results[own]["peak_bytes"], results[other]["peak_bytes"], "{case}");
        }
        let bound = case["lower_bound_ms"].as_f64().unwrap();
        assert!(results.iter().all(|it| it["makespan_ms"].as_f64().unwrap() >= bound), "{case}");
        assert!(results.iter().any(|it| it["over_best"] == 1.0), "{case}");
    }
    let ranks = first["planners"].as_array().unwrap();
    let scores: Vec<f64> = ranks.iter().map(|rank| rank["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|a, b| a >= b) && scores[0] == 1.0, "{scores:?}");
    assert!(ranks.iter().any(|rank| rank["command"] == lru.as_str()));
}

#[test]
fn a_plan_that_is_not_valid_counts_as_none_and_is_named() {
    let bench = Bench::new();
    let again = bench.write("steps.json", r#"{"format": "lmsc-schedule-1", "steps": []}"#);
    let empty = format!("cp {} {{out}} # empty {{}}", again.display());
    let commands = [
        "echo no idea >&2; exit 3 # fails {} {out}",
        "sleep 9 # late {} {out}",
        "true # silent {} {out}",
        "echo nonsense > {out} # wrong {}",
        &*empty,
        &line("memonger", "--recompute"),
    ];
    let outcome = ranked(&bench, &commands, "--whole --budget 0.8x --compare auto --timeout 0.5 --json");
    let answer = answer(&outcome);
    let told =
        |place: usize| answer["cases"][1]["results"][place]["none"].as_str().unwrap_or("a plan").to_owned();
    let told: Vec<String> = (0..7).map(told).collect();
    assert_eq!(told[0], "exit status: 3: no idea");
    assert_eq!(told[1], "it ran for more than 0.5 s");
    assert_eq!(told[2], "it wrote no plan");
    assert!(told[3].starts_with("not valid: it is not a plan: "), "{}", told[3]);
    assert!(told[4].starts_with("not valid: the steps run other operators"), "{}", told[4]);
    assert_eq!(told[5], "it runs operators again, which --recompute would allow");
    assert_eq!(told[6], "a plan");
    let ranks = answer["planners"].as_array().unwrap();
    assert_eq!((&ranks[0]["planner"], &ranks[0]["score"]), (&"auto".into(), &1.0.into()));
    assert!(ranks[1..].iter().all(|rank| rank["score"].as_f64() < Some(0.6)), "{ranks:?}");
    let text =
        String::from_utf8(ranked(&bench, &commands, "--whole --budget 0.8x --timeout 0.5").stdout).unwrap();
    assert!(text.contains("exit status: 3: no idea") && text.contains("has no plan in 2 cases:"), "{text}");
}

#[test]
fn a_line_of_csv_stands_for_each_planner_and_case() {
    let bench = Bench::new();
    let file = bench.path("r.csv");
    let fails = "echo 'no, \"not\" this' >&2; exit 1 # {} {out}";
    let outcome = ranked(&bench, &[fails], &format!("--budget 0.8x --json --csv {}", file.display()));
    let answer = answer(&outcome);
    let text = std::fs::read_to_string(file).unwrap();
    assert_eq!(text.lines().count(), 1 + 2 * 3, "{text}");
    assert!(text.contains(r#","exit status: 1: no, ""not"" this""#), "{text}");
    let makespan = answer["cases"][0]["results"][1]["makespan_ms"].to_string();
    assert!(text.contains(&format!(",auto,{makespan},")), "{text}");
}

#[test]
fn wrong_calls_of_bench_are_named() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("empty")).unwrap();
    bench.write("no.json", "{}");
    let show = |name: &str, words: &[&str]| {
        let folder = bench.path("");
        let folder = folder.to_str().unwrap().trim_end_matches('/');
        let given = words.iter().map(|word| word.replace('@', folder));
        let outcome = bench.call(["bench".to_owned()].into_iter().chain(given), b"");
        snapshot("cli", name, &bench.show(&format!("bench {}", words.join(" ")), &outcome));
        assert_eq!(outcome.code, 2, "{outcome:?}");
    };
    show("bench-no-place-for-the-plan", &["--planner", "mine {}"]);
    show("bench-no-such-command", &[TWO[0], "--planner", "lmsc-has-no-such-program {} {out}"]);
    show("bench-no-such-planner", &["--planner", "best"]);
    show("bench-no-instance", &["@/no.json"]);
    show("bench-no-instances", &["@/empty"]);
    show("bench-share-of-no-target", &[TWO[0], "--budget", "90%"]);
}

/// A file beside planners: the plan of another program, or one that was saved.
#[test]
fn files_are_compared_beside_planners() {
    let bench = Bench::new();
    let instance = format!("plan --instance {} --whole --budget 0.8x", TWO[1]);
    for (planner, option) in [("lru", "--schedule"), ("swap-only", "--save-plan")] {
        let saved =
            bench.run(&format!("{instance} --addresses off --planner {planner} {option} @/{planner}.json"));
        assert_eq!(saved.code, 0, "{saved:?}");
    }
    let other = bench.run(&format!("plan --instance {} --budget 0.8x --schedule @/other.json", TWO[0]));
    assert_eq!(other.code, 0, "{other:?}");
    let outcome = bench
        .run(&format!("{instance} --compare lru,@/lru.json,swap-only,@/swap-only.json,@/other.json --json"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let answer: Value = serde_json::from_slice(&outcome.stdout).unwrap();
    let makespan = |place: usize| answer["compared"][place]["found"]["makespan_ms"].as_f64();
    assert!(makespan(0).is_some() && makespan(0) == makespan(1), "{answer}");
    assert!(makespan(2).is_some() && makespan(2) == makespan(3), "{answer}");
    assert!(answer["compared"][1]["planner"].as_str().unwrap().ends_with("/lru.json"));
    assert!(answer["compared"][4]["refused"].as_str().unwrap().starts_with("not valid: "), "{answer}");
    let missing = bench.run(&format!("{instance} --compare @/none.json"));
    assert_eq!(missing.code, 2, "{missing:?}");
}
