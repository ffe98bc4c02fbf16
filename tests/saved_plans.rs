//! Plans, schedules, certificates and instances as files: valid files are carried out and checked, all others
//! are refused.

use crate::support::{Bench, Outcome, snapshot};
use serde_json::Value;

const VGG: &str = "testdata/models/tiny_vgg/training_model.onnx --dim batch=4";
const RESNET: &str = "--instance testdata/instances/dag_resnet50_224_b64.json";

/// The exit code and the JSON that is printed.
fn asked(bench: &Bench, arguments: &str) -> (i32, Value) {
    let outcome = bench.run(arguments);
    (outcome.code, serde_json::from_slice(&outcome.stdout).unwrap_or_default())
}

/// Whichever command made a plan, and whichever carries it out, the rewritten model is the same: by its hash and by its text.
#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn a_saved_plan_is_carried_out_as_it_was_made() {
    let bench = Bench::new();
    let (mut plans, mut refusals, mut moved) = (0, 0, 0);
    for (model, sizes) in
        [("resnet18", "--dim batch=16"), ("vgg16", "--dim batch=8"), ("tiny_gpt_hand/static", "")]
    {
        let model = format!("testdata/models/{model}/training_model.onnx {sizes}");
        for planner in ["auto", "swap-only", "memonger", "lru"] {
            for (share, space) in [
                ("0.85x", ""),
                ("0.6x", ""),
                ("0.6x", "--addresses off"),
                ("0.6x", "--pages 128KiB"),
                ("0.85x", "--pages 128KiB"),
                ("1.5x", "--addresses off"),
            ] {
                let question = format!("{model} --planner {planner} --effort 1 --budget {share} {space}");
                let (code, compiled) =
                    asked(&bench, &format!("{question} --json -o @/x.lms --save-plan @/x.json"));
                let (plan_code, planned) =
                    asked(&bench, &format!("plan {question} --json --save-plan @/y.json"));
                assert_eq!(code, plan_code, "{question}");
                if code != 0 {
                    refusals += 1;
                    continue;
                }
                let [text, saved] = ["x.lms", "x.json"].map(|file| std::fs::read(bench.path(file)).unwrap());
                // Where nothing needs to move, `lmsc MODEL` asks no planner.
                let moves = compiled["passes"].as_array().unwrap().iter().any(|pass| pass["changed"] == true);
                assert!(!moves || saved == std::fs::read(bench.path("y.json")).unwrap(), "{question}");
                let given = format!("{model} --plan @/x.json");
                let (_, again) = asked(&bench, &format!("{given} --json -o @/z.lms --save-plan @/z.json"));
                let (_, shown) = asked(&bench, &format!("plan {given} --json"));
                let (_, checked) = asked(&bench, &format!("check @/x.json {model} --json"));
                let hash = &compiled["hash"];
                assert_eq!([&again["hash"], &shown["hash"], &checked["hash"]], [hash; 3], "{question}");
                assert_eq!(text, std::fs::read(bench.path("z.lms")).unwrap(), "{question}");
                assert_eq!(saved, std::fs::read(bench.path("z.json")).unwrap(), "{question}");
                assert_eq!(checked["peak_bytes"], shown["peak_bytes"], "{question}");
                if moves {
                    assert_eq!(shown["makespan_ms"], planned["makespan_ms"], "{question}");
                    assert_eq!(shown["planner"], planner, "{question}");
                }
                plans += 1;
                moved += usize::from(compiled["bytes_out"].as_u64() > Some(0));
            }
        }
    }
    assert!(plans > 30 && moved > 10, "{plans} plans, {moved} of which move something, {refusals} refusals");
}

#[test]
fn a_plan_of_something_else_is_refused() {
    let bench = Bench::new();
    let saved = bench.run(&format!("{VGG} --budget 0.8x --effort 1 --save-plan @/p.json"));
    assert_eq!(saved.code, 0, "{saved:?}");
    let text = std::fs::read_to_string(bench.path("p.json")).unwrap();
    bench.write("short.json", &text[..text.len() / 2]);
    bench.write("moved.json", text.replacen("\"address\":0}", "\"address\":256}", 1));
    bench.write("other.json", text.replacen("lmsc-plan-1", "lmsc-plan-9", 1));
    bench.write("planner.json", text.replacen("\"planner\":\"auto\"", "\"planner\":\"best\"", 1));
    bench.write("bytes.json", b"\xff\xfe");
    let show = |name: &str, arguments: &str| {
        let outcome = bench.run(arguments);
        snapshot("cli", &format!("plan-file-{name}"), &bench.show(arguments, &outcome));
        assert_eq!(outcome.code, 2, "{outcome:?}");
        assert_eq!(outcome.stdout, b"", "{outcome:?}");
    };
    show(
        "of-another-model",
        "testdata/models/tiny_resnet18/training_model.onnx --dim batch=4 --plan @/p.json",
    );
    show("of-other-sizes", "testdata/models/tiny_vgg/training_model.onnx --dim batch=8 --plan @/p.json");
    show("of-another-budget", &format!("{VGG} --budget 0.7x --plan @/p.json"));
    show("of-a-model-for-an-instance", &format!("plan {RESNET} --plan @/p.json"));
    show("cut-short", &format!("{VGG} --plan @/short.json"));
    show("changed", &format!("explain {VGG} --plan @/moved.json --tensor input"));
    show("of-another-format", &format!("{VGG} --plan @/other.json"));
    // A plan for another target takes the times of this one, and is the same plan.
    let arguments = format!("plan {VGG} --target v100-pcie --plan @/p.json");
    let retimed = bench.run(&arguments);
    assert_eq!(retimed.code, 0, "{retimed:?}");
    assert!(
        String::from_utf8_lossy(&retimed.stdout).contains("ms in the times for which it was made"),
        "{retimed:?}"
    );
    // A plan by any planner is carried out.
    let foreign = bench.run(&format!("{VGG} --plan @/planner.json"));
    let hash = |outcome: &Outcome| String::from_utf8_lossy(&outcome.stdout).lines().last().map(str::to_owned);
    assert_eq!((foreign.code, hash(&foreign)), (0, hash(&saved)), "{foreign:?}");
    show("not-text", &format!("{VGG} --plan @/bytes.json"));
    show("missing", &format!("{VGG} --plan @/none.json"));
    show("beside-a-planner", &format!("{VGG} --plan @/p.json --planner auto"));
    show("beside-effort", &format!("plan {VGG} --plan @/p.json --effort 5"));
    show("beside-a-parameter", &format!("plan {VGG} --plan @/p.json --planner tflms-chain{{ahead=3}}"));
    show("beside-weights", &format!("plan {VGG} --plan @/p.json --weights w.safetensors"));
    show(
        "beside-parameters-of-tflms",
        &format!("explain {VGG} --plan @/p.json --tensor input --planner tflms{{lb=3}}"),
    );
    show("of-tflms", &format!("{VGG} --budget 0.8x --planner tflms --save-plan @/t.json"));
    show("of-nothing", &format!("{VGG} -o @/x.lms --save-plan @/t.json"));
    show("over-itself", &format!("{VGG} --plan @/p.json --save-plan @/p.json"));
    show("to-no-folder", &format!("plan {VGG} --budget 0.8x --save-plan @/none/p.json"));
    assert_eq!(std::fs::read_to_string(bench.path("p.json")).unwrap(), text);
    assert!(!bench.files().contains(&"t.json".to_owned()) && !bench.files().contains(&"x.lms".to_owned()));
}

/// Nothing is planned: the budgets with which the tensor would stay, which only planning finds, are not told.
#[test]
fn a_tensor_is_explained_by_a_saved_plan() {
    let bench = Bench::new();
    let model = "testdata/models/resnet18/training_model.onnx --dim batch=16";
    let question = format!("{model} --budget 0.7x --effort 1 --planner swap-only");
    let (code, compiled) = asked(&bench, &format!("{question} --save-plan @/p.json --json"));
    assert_eq!(code, 0);
    let tensor = compiled["swapped"][0]["value"].as_str().unwrap();
    let story = |question: &str| asked(&bench, &format!("explain {question} --tensor {tensor} --json")).1;
    let planned = story(&question);
    let mut given = story(&format!("{model} --plan @/p.json"));
    assert!(planned["changes"]["leaves_with"].is_u64() && given["changes"]["leaves_with"].is_null());
    for key in ["stays_with", "leaves_with"] {
        given["changes"][key] = planned["changes"][key].clone();
    }
    assert_eq!(given, planned);
    let text = bench.run(&format!("explain {model} --tensor {tensor} --plan @/p.json"));
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("planner swap-only") && !text.contains("\nbudget"), "{text}");
}

/// With --run it runs, in an arena or in pages as it says itself.
#[test]
fn a_saved_plan_is_run() {
    let bench = Bench::new();
    let mlp = "testdata/models/tiny_mlp/training_model.onnx --dim batch=64 --target host";
    for how in ["--budget 0.9x", "--budget 8MiB --pages 64KiB"] {
        let saved = bench.run(&format!("plan {mlp} {how} --save-plan @/p.json"));
        assert_eq!(saved.code, 0, "{saved:?}");
        let (code, ran) = asked(&bench, &format!("{mlp} --plan @/p.json --run --steps 2 --json"));
        assert_eq!((code, ran["run"]["losses"].as_array().map(Vec::len)), (0, Some(2)), "{ran}");
        assert_eq!(ran["run"]["virtual"].is_null(), !how.contains("pages"), "{ran}");
    }
}

#[test]
fn plans_schedules_and_certificates_are_checked() {
    let bench = Bench::new();
    let files = "--save-plan @/p.json --schedule @/s.json --certificate @/c.json";
    let show = |name: &str, arguments: &str, code: i32| {
        let outcome = bench.run(arguments);
        snapshot("cli", &format!("check-{name}"), &bench.show(arguments, &outcome));
        assert_eq!(outcome.code, code, "{outcome:?}");
    };
    let planned = bench.run(&format!("plan {RESNET} --memory 1.8GB --recompute --effort 1 {files}"));
    assert_eq!(planned.code, 0, "{planned:?}");
    show("plan", &format!("check @/p.json {RESNET}"), 0);
    show("schedule", &format!("check @/s.json {RESNET} --memory 1.8GB"), 0);
    show("certificate", &format!("check @/c.json {RESNET} --memory 1.8GB"), 0);
    show("plan-json", &format!("check @/p.json {RESNET} --json"), 0);
    show("schedule-not-valid", &format!("check @/s.json {RESNET} --memory 1.7GB"), 1);
    show("certificate-not-valid", &format!("check @/c.json {RESNET} --memory 2GB"), 1);
    show("of-another-instance", "check @/p.json --instance testdata/instances/dag_vgg16_224_b64.json", 1);
    show("not-valid-json", &format!("check @/c.json {RESNET} --memory 2GB --json"), 1);
    show("no-memory", &format!("check @/s.json {RESNET}"), 2);
    show("an-instance", &format!("check testdata/instances/dag_resnet50_224_b64.json {RESNET}"), 2);
    show("no-json", &format!("check CHANGELOG.md {RESNET}"), 2);

    let planned = bench.run(&format!("plan {VGG} --memory 0.8x --effort 1 {files}"));
    assert_eq!(planned.code, 0, "{planned:?}");
    show("plan-of-a-model", &format!("check @/p.json {VGG}"), 0);
    show("schedule-of-a-model", &format!("check @/s.json {VGG} --memory 0.8x"), 0);
    show("certificate-of-a-model", &format!("check @/c.json {VGG} --memory 0.8x"), 0);
    // A schedule is carried out as the plan is.
    let hash = |arguments: &str| {
        let outcome = bench.run(arguments);
        let text = String::from_utf8(outcome.stdout.clone()).unwrap();
        text.lines()
            .find(|line| line.starts_with("hash "))
            .unwrap_or_else(|| panic!("{outcome:?}"))
            .to_owned()
    };
    let made = hash(&format!("{VGG} --plan @/p.json"));
    assert_eq!(hash(&format!("{VGG} --plan @/s.json --budget 0.8x")), made);
    assert_eq!(hash(&format!("plan {VGG} --plan @/s.json --memory 0.8x")), made);
    assert_eq!(bench.run(&format!("{VGG} --plan @/s.json")).code, 2);
    let other = "testdata/models/tiny_resnet18/training_model.onnx --dim batch=4";
    show("schedule-of-another-model", &format!("check @/s.json {other} --memory 0.8x"), 1);

    // The last step begins a nanosecond too early.
    let text = std::fs::read_to_string(bench.path("s.json")).unwrap();
    let mut early: Value = serde_json::from_str(&text).unwrap();
    let step = early["steps"].as_array_mut().unwrap().last_mut().unwrap();
    for key in ["start_ns", "end_ns"] {
        step[key] = (step[key].as_u64().unwrap() - 1).into();
    }
    bench.write("s.json", early.to_string());
    show("schedule-too-early", &format!("check @/s.json {VGG} --memory 0.8x"), 1);
}

/// No file makes it panic, run out of memory or take long.
#[test]
fn hostile_files_are_refused() {
    let bench = Bench::new();
    let plan = r#"{"format":"lmsc-plan-1","planner":"auto","budget_bytes":18446744073709551615,"space":"#;
    let schedule = r#"{"format":"lmsc-schedule-1","steps":[{"do":"op","op":0,"start_ns":18446744073709551615,"end_ns":0}]}"#;
    let files = [
        String::new(),
        "null".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        "[".repeat(100_000),
        r#"{"a":"#.repeat(100_000),
        r#"{"format":3}"#.to_owned(),
        r#"{"format":"lmsc-plan-1"}"#.to_owned(),
        format!("{plan}\"arena\"}}"),
        format!("{plan}{{\"page_bytes\":0}}}}"),
        format!(r#"{plan}{{"page_bytes":3}},"counted_ns":1,"about":{{}}}}"#),
        schedule.to_owned(),
        schedule.replace("\"op\":0,", "\"op\":4294967295,"),
        schedule.replace("\"op\":0", "\"tensor\":7,\"bytes\":[9,1]").replace("\"op\"", "\"out\""),
        r#"{"nanos":1,"proof":{}}"#.to_owned(),
        r#"{"nanos":18446744073709551615,"proof":{"paper":{"at":{"op":4294967295}}}}"#.to_owned(),
        r#"{"nanos":-1,"proof":{"swap":{"facts":[]}}}"#.to_owned(),
    ];
    for (number, file) in files.iter().enumerate() {
        bench.write("f.json", file);
        let start: String = file.chars().take(60).collect();
        let checked = bench.run_linear(&format!("check @/f.json {RESNET} --memory 1.8GB"));
        assert!([1, 2].contains(&checked.code), "{number} {start}: {checked:?}");
        assert!(checked.stderr.starts_with("lmsc: "), "{number} {start}: {checked:?}");
        for given in [format!("{VGG} --plan @/f.json"), format!("plan {RESNET} --plan @/f.json")] {
            let refused = bench.run_linear(&given);
            assert_eq!(refused.code, 2, "{number} {start}: {refused:?}");
            assert!(refused.stderr.contains("help: "), "{number} {start}: {refused:?}");
        }
    }
}

/// The instance that is written of a model is the same problem: planned alike, it has the same plan. Planners move whole tensors of
/// models and may run operators again; of an instance that must be asked for.
#[test]
fn an_instance_of_a_model_has_the_same_plan() {
    let bench = Bench::new();
    for model in ["resnet18/training_model.onnx --dim batch=16", "tiny_gpt_hand/static/training_model.onnx"] {
        let model = format!("testdata/models/{model} --target host");
        for planner in ["swap-only", "lru", "auto"] {
            let how = format!("--planner {planner} --addresses off --effort 1 --json");
            let (code, planned) =
                asked(&bench, &format!("plan {model} --memory 0.6x {how} --emit-instance @/i.json"));
            assert_eq!(code, 0, "{model} {planner}");
            let memory = planned["memory_bytes"].as_u64().unwrap();
            let instance = format!("plan --instance @/i.json --memory {memory} --whole --recompute {how}");
            let (code, again) = asked(&bench, &instance);
            assert_eq!(code, 0, "{instance}");
            assert!(
                planned["swapped_bytes"].as_u64() > Some(0) || planned["recompute_ms"].as_f64() > Some(0.0)
            );
            for key in ["makespan_ms", "lower_bound_ms", "peak_bytes", "swapped_bytes", "recompute_ms"] {
                assert_eq!(again[key], planned[key], "{instance}: {key}");
            }
        }
    }
    // It is there even where there is no plan.
    let (code, _) = asked(&bench, &format!("plan {VGG} --memory 1KiB --emit-instance @/none.json"));
    assert!(code == 1 && bench.path("none.json").exists());
    // An instance is written as it was planned: here with the updates of a step in another order.
    let late = "testdata/instances/large/mixtral_L4.json";
    let early = format!("plan --instance {late} --recompute --addresses off --memory 7569879859 --json");
    let (code, planned) = asked(&bench, &format!("{early} --early-updates --emit-instance @/e.json"));
    assert!(code == 0 && planned["updates"].as_str().unwrap().contains("operators run earlier"), "{planned}");
    assert_eq!(planned["makespan_ms"], planned["compute_ms"]);
    let (code, again) = asked(&bench, &early.replace(late, "@/e.json"));
    assert_eq!((code, &again["makespan_ms"]), (0, &planned["makespan_ms"]));
}
