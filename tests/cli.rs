//! The command line as a user meets it: its output, its files, its exit codes.
//!
//! `insta` rather than `trycmd`: most cases need pipes, files that they make, or a look at the written files.
//! Snapshots are under `testdata/cli`; `cargo review` accepts intended changes.

use std::path::Path;

use crate::support::{Bench, snapshot};

const CNN: &str = "testdata/models/tiny_cnn/static/training_model.onnx";
const CNN_STEP: &str = "testdata/models/tiny_cnn/static/training_model.onnx \
                        --optimizer testdata/models/tiny_cnn/static/optimizer_model.onnx";
const UNET: &str = "testdata/models/tiny_unet2d/static/training_model.onnx";
const FOUR_LAYERS: &str = "@/four-layers.lms";

/// A training step in the text form that swapping brings within 30 MiB, including the workspaces of products on a GPU.
const FOUR_LAYERS_TEXT: &str = include_str!("../testdata/passes/swap/fewest-bytes-for-a-budget.lms");

/// Runs the command and compares its output with the snapshot of this name.
fn check(name: &str, arguments: &str, code: i32) {
    let bench = Bench::new();
    bench.write("four-layers.lms", FOUR_LAYERS_TEXT);
    let outcome = bench.run(arguments);
    snapshot("cli", name, &bench.show(arguments, &outcome));
    assert_eq!(outcome.code, code, "{outcome:?}");
    assert_eq!(bench.files(), ["four-layers.lms"]);
}

#[test]
fn help() {
    check("help", "--help", 0);
    check("help-short", "-h", 0);
    for command in [
        "bench",
        "check",
        "env",
        "explain",
        "explain-error",
        "fit",
        "inspect",
        "launches",
        "offsets",
        "opt",
        "plan",
        "reduce",
        "sweep",
        "run",
        "calibrate",
        "passes",
        "targets",
        "verify",
        "completions",
        "man",
    ] {
        check(&format!("help-{command}"), &format!("{command} --help"), 0);
    }
    check("help-planner", "--help-planner tflms", 0);
    check("help-planner-dqn", "plan --help-planner dqn", 0);
    check("help-planner-none", "--help-planner=tfmls", 2);
    let version = Bench::new().run("-V");
    assert_eq!(version.stdout, concat!("lmsc ", env!("CARGO_PKG_VERSION"), "\n").as_bytes());
    let version = String::from_utf8(Bench::new().run("--version").stdout).unwrap();
    let begin = concat!("lmsc ", env!("CARGO_PKG_VERSION"), " (");
    assert!(version.starts_with(begin) && version.contains("; features: "), "{version}");
    let short = String::from_utf8(Bench::new().run("-h").stdout).unwrap();
    assert!(short.lines().count() <= 60, "{} lines", short.lines().count());
    let brief = Bench::new().run("").stderr;
    assert_eq!(brief.lines().count(), 12, "{brief}");
}

/// A page for each command, as `man` reads it.
#[test]
fn manual_pages() {
    let bench = Bench::new();
    let written = bench.run("man @/man");
    assert_eq!(written.code, 0, "{written:?}");
    let pages = String::from_utf8(written.stdout).unwrap();
    assert!(pages.lines().count() > 10, "{pages}");
    for page in pages.lines() {
        let text = std::fs::read_to_string(page).unwrap();
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{page}");
    }
    assert!(std::fs::read_to_string(bench.path("man/lmsc-fit.1")).unwrap().contains("rtx4090"));
}

/// How much is said, before a command or after it.
#[test]
fn quiet_verbose_and_colored() {
    let bench = Bench::new();
    let call = format!("{CNN} --planner tflms{{n-tensors=1}} -o @/out.onnx");
    let quiet = bench.run(&format!("{call} -q"));
    assert_eq!((quiet.code, &*quiet.stdout, &*quiet.stderr), (0, &b""[..], ""));
    assert_eq!(bench.run(&format!("-q inspect {CNN}")).stderr, "");
    let ran = bench.run(&format!("{CNN} --budget 1MiB --run --steps 1 -q"));
    assert!(ran.stderr.is_empty() && ran.stdout.starts_with(b"step 1"), "{ran:?}");
    assert!(bench.run(&format!("{call} -q --budget 1KiB")).stderr.starts_with("lmsc: "));
    let stages = bench.run(&format!("{call} -vv"));
    assert!(
        stages.stderr.contains(" s: planning\n") && stages.stderr.contains(" s: proving\n"),
        "{stages:?}"
    );
    let wrote = String::from_utf8(stages.stdout).unwrap();
    let size = lmsc_ir::Bytes(std::fs::metadata(bench.path("out.onnx")).unwrap().len());
    let last = wrote.lines().next_back().map(|line| bench.anonymous(line));
    assert_eq!(last, Some(format!("wrote     @/out.onnx, {size}")));
    let colored = bench.run(&format!("{call} --color always"));
    assert!(colored.stderr.starts_with("lmsc: \x1b[1;33mwarning[LMS0402]:\x1b[0m "), "{colored:?}");
    assert!(bench.run("--color always --bugdet").stderr.contains("\x1b["));
    assert!(!bench.run("--color never --bugdet").stderr.contains("\x1b["));
}

#[test]
fn calls_that_are_wrong() {
    check("nothing", "", 2);
    check("no-budget", CNN, 2);
    check("no-such-option", &format!("{CNN} --bugdet 1GiB"), 2);
    check("budget-is-no-number", &format!("{CNN} --budget lots"), 2);
    check("no-such-planner", &format!("{CNN} --budget 1MiB --planner best"), 2);
    check("parameters-of-another-planner", &format!("{CNN} --budget 1MiB --planner swap-only{{lb=3}}"), 2);
    check(
        "ranges-of-another-planner",
        &format!("{CNN} --budget 1MiB --ranges --planner tflms{{n-tensors=3}}"),
        2,
    );
    check("no-such-command", "inspct model.onnx", 2);
    check("two-models", &format!("{CNN} other.onnx --budget 1GiB"), 2);
    check("no-such-operator", &format!("{FOUR_LAYERS} --planner tflms{{n-tensors=1,incl-types=Rela}}"), 2);
    check("no-such-operator-of-a-pass", &format!("opt {FOUR_LAYERS} -p swap{{incl-types=Rela}}"), 2);
    check(
        "no-such-node",
        &format!("{FOUR_LAYERS} --planner tflms{{n-tensors=1,starting-op-names=relu5}}"),
        2,
    );
    check(
        "no-such-target-file",
        &format!("{FOUR_LAYERS} --budget 30MiB --planner swap-only --target @/no.toml"),
        2,
    );
    check("budget-is-negative", &format!("{CNN} --budget -5GiB"), 2);
    check("no-such-command-alone", "verfy", 2);
    check("no-such-command-nor-file", "frobnicate", 2);
    check("empty-batch", "testdata/models/tiny_mlp/training_model.onnx --dim batch=0 --budget 1GiB", 2);
    check("output-of-no-form", &format!("{CNN} --budget 1GiB -o @/x.pt"), 2);
    check("output-without-suffix", &format!("{CNN} --budget 1GiB -o @/out"), 2);
    check("sweep-report-of-no-form", &format!("sweep {CNN} --budget 1GiB --report @/x.csv"), 2);
    check("plan-report-of-no-form", &format!("plan {CNN} --memory 1GiB --report @/x.pdf"), 2);
    check("no-such-pass", &format!("opt {FOUR_LAYERS} -p swap,swop"), 2);
    check("no-such-pass-to-print-after", &format!("opt {FOUR_LAYERS} -p swap --print-after swop"), 2);
}

#[test]
fn errors_are_explained() {
    check("explain-error-list", "explain-error", 0);
    check("explain-error", "explain-error LMS0101", 0);
    check("explain-error-in-small-letters", "explain-error lms0206", 0);
    check("explain-error-no-such-code", "explain-error LMS011", 2);
}

#[test]
fn errors_as_json() {
    check("json-does-not-fit", &format!("{FOUR_LAYERS} --budget 9MiB --json"), 1);
    check(
        "json-host-is-full",
        &format!("{FOUR_LAYERS} --budget 26MiB --host-budget 2MiB --planner swap-only --json"),
        1,
    );
    check(
        "json-of-an-instance",
        "plan --instance testdata/instances/dag_resnet50_224_b64.json --memory 1MiB --json",
        1,
    );
    check("json-no-file", "inspect no.onnx --json", 2);
    check("json-no-such-option", &format!("plan {FOUR_LAYERS} --memory 9MiB --nothing --json"), 2);
}

/// `INSTA_UPDATE=always cargo test --test all cli::` writes it anew.
#[test]
fn the_documented_errors_are_those_of_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/errors.md");
    let text = lmsc::commands::documented_errors();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|how| how == "always") {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == text, "docs/errors.md is of before; INSTA_UPDATE=always writes it anew");
}

/// A call with the smallest budget that a refusal tells, as it is printed, is not refused.
#[test]
fn the_smallest_budget_holds_as_it_is_printed() {
    for options in [
        "",
        "--ranges",
        "--planner swap-only",
        "--planner tflms",
        "--addresses off",
        "--planner lru --addresses off",
    ] {
        let bench = Bench::new();
        bench.write("four-layers.lms", FOUR_LAYERS_TEXT);
        let refused = bench.run(&format!("{FOUR_LAYERS} --budget 9MiB --json {options}"));
        assert_eq!(refused.code, 1, "{options}: {refused:?}");
        let told: serde_json::Value = serde_json::from_slice(&refused.stdout).unwrap();
        let bytes = told["error"]["smallest_budget"].as_u64().unwrap();
        let printed = lmsc_ir::Bytes(bytes).rounded_up();
        assert!(refused.stderr.contains(&format!("{printed} ({bytes} bytes)")), "{options}: {refused:?}");
        let smallest = told["error"]["smallest"].as_array().unwrap();
        let option =
            smallest.iter().find(|found| found["bytes"] == bytes).unwrap()["option"].as_str().unwrap();
        for budget in [bytes.to_string(), printed.replace(' ', "")] {
            let addresses = if options.contains("off") { "--addresses off" } else { "" };
            let held = bench.run(&format!("{FOUR_LAYERS} --budget {budget} {option} {addresses}"));
            assert_eq!(held.code, 0, "{options}: {budget} {option}: {held:?}");
        }
    }
}

#[test]
fn passes() {
    check("passes", "passes", 0);
    check("passes-json", "passes --json", 0);
}

#[test]
fn launches() {
    check("launches", &format!("launches {CNN_STEP}"), 0);
    check(
        "launches-own-kernels",
        &format!("launches {CNN_STEP} --own-kernels --summary --target v100-pcie"),
        0,
    );
    let bench = Bench::new();
    let swapped = "g (float[4,8] x, float[8,8] w) => (float[4,8] y, float[4,8] z)
{
  [out] float[4,8]@host away = ai.lmsc.SwapOut(x)
  [a] float[4,8] h = MatMul(x, w)
  [b] float[4,8] k = Exp(h)
  [c] float[4,8] y = Softmax(k)
  [in] float[4,8] back = ai.lmsc.SwapIn(away) after [a]
  [d] float[4,8] z = MatMul(back, w)
}
";
    bench.write("swapped.lms", swapped);
    let arguments = "launches @/swapped.lms --json";
    let outcome = bench.run(arguments);
    snapshot("cli", "launches-json", &bench.show(arguments, &outcome));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    check("launches-no-such-target", &format!("launches {FOUR_LAYERS} --target h1000"), 2);
}

#[test]
fn offsets() {
    let bench = Bench::new();
    bench.write("buffers.csv", "id,lower,upper,size\na,0,3,4\nb,3,9,4\nc,0,9,4\nd,9,21,4\ne,0,21,4\n");
    bench.write("stairs.csv", "id,lower,upper,size,alignment,offset\na,0,9,4,1,0\na,0,5,6,1,\nb,5,9,6,2,\n");
    bench.write("wrong.csv", "id,lower,upper,size\na,0,3,4\nb,3,nine,4\n");
    bench.write("overlap.csv", "id,lower,upper,size,offset\na,0,3,4,0\nb,2,9,4,2\n");
    let cases = [
        ("placed", "@/buffers.csv --capacity 12", 0),
        ("written", "@/buffers.csv --capacity 12 -o -", 0),
        ("json", "@/stairs.csv --capacity 10 --json", 0),
        ("stairs", "@/stairs.csv --capacity 10 -o -", 0),
        ("does-not-fit", "@/buffers.csv --capacity 11", 1),
        ("does-not-fit-json", "@/buffers.csv --capacity 11 --json", 1),
        ("overlap", "@/overlap.csv --capacity 1KiB", 1),
        ("wrong-line", "@/wrong.csv --capacity 12", 2),
        ("no-such-file", "@/none.csv --capacity 12", 2),
    ];
    for (name, arguments, code) in cases {
        let arguments = format!("offsets {arguments}");
        let outcome = bench.run(&arguments);
        snapshot("cli", &format!("offsets-{name}"), &bench.show(&arguments, &outcome));
        assert_eq!(outcome.code, code, "{outcome:?}");
    }
}

#[test]
fn env() {
    let bench = Bench::new();
    let kmeans = "env --instance testdata/traces/kmeans.jsonl";
    bench.write(
        "twice.jsonl",
        include_str!("../testdata/traces/kmeans.jsonl").replace(r#""free""#, r#""malloc""#),
    );
    let asked = "{\"do\": \"reset\"}\n{\"do\": \"step\", \"node\": 0}\nnothing\n{\"do\": \"plan\"}\n";
    let cases = [
        ("kmeans", format!("{kmeans} --memory 118MiB --recompute"), 0),
        ("does-not-fit", format!("{kmeans} --memory 100MiB"), 1),
        (
            "trace",
            "env --instance testdata/instances/tiny_rand6_0.json --memory 1GiB --trace -".to_owned(),
            0,
        ),
        ("wrong-trace", "env --instance @/twice.jsonl --memory 1GiB".to_owned(), 2),
    ];
    for (name, arguments, code) in cases {
        let outcome = bench.run_with(&arguments, asked.as_bytes());
        snapshot("cli", &format!("env-{name}"), &bench.show(&arguments, &outcome));
        assert_eq!(outcome.code, code, "{outcome:?}");
    }
}

/// An episode in which the last of the valid nodes is chosen over and over.
#[test]
fn an_environment_is_played_to_its_end_from_outside() {
    let bench = Bench::new();
    let arguments = "env --instance testdata/traces/kmeans.jsonl --memory 118MiB --recompute";
    let mut asked = "{\"do\":\"reset\"}\n".to_owned();
    let lines = |asked: &str| -> Vec<serde_json::Value> {
        let outcome = bench.run_with(arguments, asked.as_bytes());
        let text = String::from_utf8(outcome.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let mut rewards = 0;
    let end = loop {
        let state = lines(&asked).pop().unwrap();
        rewards += state["reward_ns"].as_i64().unwrap();
        let Some(node) = state["valid"].as_array().unwrap().last() else { break state };
        asked += &format!("{{\"do\":\"step\",\"node\":{node}}}\n");
    };
    assert_eq!((end["terminal"].as_bool(), end["overhead_ns"].as_i64()), (Some(true), Some(-rewards)));
    asked += "{\"do\":\"plan\"}\n";
    let lines = lines(&asked);
    let steps = lines.last().unwrap()["steps"].as_array().unwrap();
    let makespan = steps.iter().map(|step| step["end_ns"].as_i64().unwrap()).max();
    assert_eq!(makespan, Some(lines[0]["compute_ns"].as_i64().unwrap() - rewards));
}

#[test]
fn targets() {
    check("targets", "targets", 0);
    check("targets-one", "targets v100-pcie", 0);
    check("targets-unknown", "targets v101", 2);
    check("targets-several", "targets h100", 2);
    check("targets-json", "targets T4 --json", 0);
    let bench = Bench::new();
    for name in ["RTX-4090", "4090", "geforce_rtx_4090"] {
        assert_eq!(
            bench.run(&format!("targets {name}")).stdout,
            bench.run("targets rtx4090").stdout,
            "{name}"
        );
    }
    let json = bench.run("targets --json");
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["targets"].as_array().unwrap().len(), lmsc_plan::target::BUILT_IN.len());
}

/// The first output of an exporter: the forward pass alone.
#[test]
fn inference_is_told_apart() {
    let forward = "testdata/models/tiny_mlp/forward.onnx --dim batch=8";
    check("inference", &format!("{forward} --budget 1MiB"), 0);
    check("inference-inspect", &format!("inspect {forward}"), 0);
    let planned = Bench::new().run(&format!("plan {forward} --memory 1MiB"));
    assert!(
        planned.code == 0 && planned.stderr.contains("no backward pass: this is inference"),
        "{planned:?}"
    );
    // To run it is nothing wrong.
    let run = Bench::new().run(&format!("run {forward} --steps 1"));
    assert!(run.code == 0 && !run.stderr.contains("warning"), "{run:?}");
}

#[test]
fn explain() {
    let within = format!("explain {FOUR_LAYERS} --budget 30MiB");
    check("explain", &format!("{within} --planner tflms --tensor a1"), 0);
    check("explain-json", &format!("{within} --planner tflms --tensor a1 --json"), 0);
    check("explain-stays", &format!("{within} --planner tflms --tensor a4"), 0);
    check("explain-given", &format!("{within} --tensor x"), 0);
    check("explain-again", &format!("explain {FOUR_LAYERS} --budget 24MiB --tensor a2"), 0);
    let state = "testdata/passes/plan/parameters-live-on-the-host-between-steps.lms";
    check("explain-variable", &format!("explain {state} --budget 13MiB --planner swap-only --tensor m1"), 0);
    check(
        "explain-ranges",
        &format!("explain {FOUR_LAYERS} --budget 24MiB --planner swap-only --ranges --tensor a1"),
        0,
    );
    check("explain-fixed", &format!("{within} --planner tflms{{n-tensors=2}} --tensor a1"), 0);
    check("explain-no-such-tensor", &format!("{within} --tensor a11"), 2);
    check("explain-part-of-a-name", &format!("explain {UNET} --budget 1MiB --tensor relu"), 2);
    check("explain-no-budget", &format!("explain {FOUR_LAYERS} --tensor a1"), 2);
    check("explain-does-not-fit", &format!("explain {FOUR_LAYERS} --budget 1MiB --tensor a1"), 1);
}

#[test]
fn inspect() {
    check("inspect", &format!("inspect {CNN}"), 0);
    check("inspect-json", &format!("inspect {CNN} --json --largest 2"), 0);
    check("inspect-text-form", &format!("inspect {FOUR_LAYERS} --largest 3"), 0);
}

/// Which cards a step fits, and with which batches.
#[test]
fn fit() {
    let mlp = "fit testdata/models/tiny_mlp/training_model.onnx --optimizer testdata/models/tiny_mlp/optimizer_model.onnx";
    check("fit", &format!("{mlp} --gpu rtx4090,t4 --budget 300KiB"), 0);
    check("fit-batches", &format!("{mlp} --gpu t4 --budget 300KiB --dim batch --batch 8,512,4096 --json"), 0);
    check("fit-nothing", &format!("{mlp} --gpu t4 --budget 10KiB"), 1);
    check("fit-fixed-sizes", &format!("fit {CNN_STEP}"), 0);
    check("fit-text-form", &format!("fit {FOUR_LAYERS} --gpu h100-sxm --budget 30MiB"), 0);
    check("fit-inference", "fit testdata/models/tiny_mlp/forward.onnx --gpu 4090 --batch 8", 0);
    check("fit-no-such-card", &format!("{mlp} --gpu h100"), 2);
    check("fit-two-batches", &format!("{mlp} --dim batch --dim sequence"), 2);
    check("fit-batch-of-nothing", &format!("fit {CNN_STEP} --batch 8"), 2);
    check("fit-share-of-the-peak", &format!("{mlp} --budget 0.5x"), 2);
    let bench = Bench::new();
    let json = bench.run(&format!("{mlp} --gpu t4 --budget 300KiB --json --report @/fit.html"));
    let found: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let (card, points) = (&found["cards"][0], found["cards"][0]["points"].as_array().unwrap());
    let largest =
        points.iter().filter(|point| point["fits"] != "no").filter_map(|point| point["batch"].as_u64()).max();
    assert_eq!(card["largest"].as_u64(), largest);
    assert!(card["refused"].as_u64() > largest, "{card}");
    let page = std::fs::read_to_string(bench.path("fit.html")).unwrap();
    assert!(page.contains("t4: largest batch") && page.starts_with("<!"), "{}", &page[..200]);
    // The main job agrees on the largest batch.
    let model = mlp.strip_prefix("fit ").unwrap();
    let call = |batch: u64| {
        bench.run(&format!("{model} --target t4 --budget 300KiB --effort 10 --dim batch={batch}")).code
    };
    assert_eq!((call(largest.unwrap()), call(card["refused"].as_u64().unwrap())), (0, 1));
}

#[test]
fn the_main_job() {
    check("compile", &format!("{UNET} --budget 1MiB"), 0);
    check("compile-fixed", &format!("{CNN_STEP} --planner tflms{{n-tensors=3}}"), 0);
    check("compile-verbose", &format!("{CNN} --planner tflms{{n-tensors=1}} -v"), 0);
    check("compile-json", &format!("{CNN} --planner tflms{{n-tensors=1}} --json"), 0);
    check("compile-text-form", &format!("{FOUR_LAYERS} --budget 30MiB"), 0);
    check("compile-tflms", &format!("{FOUR_LAYERS} --budget 30MiB --planner tflms"), 0);
    check("compile-fits-already", &format!("{CNN_STEP} --budget 1GiB"), 0);
    check("compile-planner", &format!("{FOUR_LAYERS} --budget 30MiB --planner swap-only"), 0);
    check("compile-planner-does-not-fit", &format!("{FOUR_LAYERS} --budget 9MiB --planner swap-only"), 1);
    check("compile-does-not-fit", &format!("{UNET} --budget 400KiB"), 1);
    check("compile-host-budget", &format!("{FOUR_LAYERS} --budget 30MiB --host-budget 2MiB"), 0);
    let swapping = format!("{FOUR_LAYERS} --budget 26MiB --planner swap-only --host-budget 2MiB");
    check("compile-host-budget-does-not-fit", &swapping, 1);
    check(
        "compile-no-addresses",
        "testdata/models/tiny_mlp/training_model.onnx --dim batch=4 --planner lru --budget 30400",
        1,
    );
    check("compile-pages", &format!("{FOUR_LAYERS} --budget 30MiB --pages 64KiB"), 0);
    check("compile-pages-do-not-fit", &format!("{FOUR_LAYERS} --budget 30MiB --pages 16MiB"), 1);
    check("compile-no-pages", &format!("{FOUR_LAYERS} --budget 30MiB --pages 10KB"), 2);
    check(
        "compile-pages-of-tflms",
        &format!("{FOUR_LAYERS} --budget 30MiB --pages 64KiB --planner tflms{{n-tensors=1}}"),
        2,
    );
    check(
        "compile-parameters-do-not-fit",
        &format!("{UNET} --budget 500KiB --planner tflms{{n-tensors=1}}"),
        1,
    );
    check(
        "compile-other-parameters-fit",
        &format!("{FOUR_LAYERS} --budget 30MiB --planner tflms{{n-tensors=0,lb=2}}"),
        1,
    );
    check("compile-pass-limit", &format!("{FOUR_LAYERS} --budget 30MiB --pass-limit 1"), 1);
    check("compile-another-planner-fits", &format!("{FOUR_LAYERS} --budget 22MiB --planner memonger"), 1);
    let dynamic = "testdata/models/tiny_mlp/training_model.onnx --dim batch=4096";
    check("compile-dimension-does-not-fit", &format!("{dynamic} --budget 100KiB"), 1);
}

#[test]
fn passes_one_by_one() {
    check("opt-no-passes", &format!("opt {FOUR_LAYERS}"), 0);
    check("opt-swap", &format!("opt {FOUR_LAYERS} -p swap --budget 30MiB"), 0);
    check(
        "opt-print-after",
        &format!("opt {FOUR_LAYERS} -p hoist-shapes,swap --budget 30MiB --print-after swap"),
        0,
    );
    check(
        "opt-print-after-all",
        &format!("opt {FOUR_LAYERS} -p hoist-shapes,swap --budget 30MiB --print-after-all"),
        0,
    );
    check(
        "opt-print-changed",
        &format!("opt {FOUR_LAYERS} -p hoist-shapes,swap{{n-tensors=1}} --print-changed"),
        0,
    );
    check(
        "opt-pass-limit",
        &format!("opt {FOUR_LAYERS} -p hoist-shapes,swap --budget 30MiB --pass-limit 0"),
        0,
    );
    let gradients = "testdata/passes/expand-training-ops/an-operator-that-is-not-asked-for-stays.lms";
    check(
        "opt-option",
        &format!("opt {gradients} -p expand-training-ops{{gradients=false,optimizers=false}}"),
        0,
    );
    check("opt-no-such-option", &format!("opt {gradients} -p expand-training-ops{{optimisers=false}}"), 2);
    check("opt-wrong-value", &format!("opt {gradients} -p expand-training-ops{{optimizers=3}}"), 2);
    check("opt-wrong-form", &format!("opt {gradients} -p expand-training-ops{{optimizers"), 2);
    check(
        "opt-cleaned-after-planning",
        &format!("opt {FOUR_LAYERS} -p swap,remove-dead-nodes --budget 30MiB"),
        2,
    );
    check("opt-swap-limit", &format!("opt {FOUR_LAYERS} -p swap{{swap-limit=1}}"), 0);
    check("compile-swap-limit", &format!("{FOUR_LAYERS} --planner tflms{{n-tensors=9,swap-limit=1}}"), 0);
}

#[test]
fn times_are_a_table() {
    let bench = Bench::new();
    bench.write("four-layers.lms", FOUR_LAYERS_TEXT);
    for (arguments, rows) in [
        (
            format!("opt {FOUR_LAYERS} -p hoist-shapes,swap{{n-tensors=1}} --timing"),
            &["pass", "1. hoist-shapes", "2. swap", "all passes", "equivalence check"][..],
        ),
        (
            format!("{FOUR_LAYERS} --budget 30MiB --timing -q"),
            &["pass", "1. hoist-shapes", "2. reorder", "3. plan", "all passes", "equivalence check"],
        ),
    ] {
        let outcome = bench.run(&arguments);
        assert_eq!(outcome.code, 0, "{outcome:?}");
        let text = outcome.stderr;
        let names: Vec<&str> = text.lines().map(|line| line.split("  ").next().unwrap()).collect();
        assert_eq!(names, rows, "{text}");
        let changed_nothing = text.lines().nth(1).unwrap();
        assert!(changed_nothing.ends_with(" ms            -"), "{text}");
        assert!(text.lines().last().unwrap().ends_with(" ms"), "{text}");
    }
}

#[test]
fn the_report_goes_to_a_file_as_well() {
    let bench = Bench::new();
    let report = bench.run(&format!("{CNN} --planner tflms{{n-tensors=1}} --report @/report.json"));
    assert_eq!(report.code, 0, "{report:?}");
    let json = bench.run(&format!("{CNN} --planner tflms{{n-tensors=1}} --json"));
    assert_eq!(std::fs::read(bench.path("report.json")).unwrap(), json.stdout);
    assert_eq!(bench.files(), ["report.json"]);
}

#[test]
fn verify() {
    let bench = Bench::new();
    let show = |name: &str, arguments: &str, code: i32| {
        let outcome = bench.run(arguments);
        snapshot("cli", name, &bench.show(arguments, &outcome));
        assert_eq!(outcome.code, code, "{outcome:?}");
    };
    for form in ["function", "ort"] {
        let written =
            bench.run(&format!("{CNN} --planner tflms{{n-tensors=3}} --form {form} -o @/{form}.onnx"));
        assert_eq!(written.code, 0, "{written:?}");
        show(&format!("verify-{form}"), &format!("verify {CNN} @/{form}.onnx"), 0);
    }
    show("verify-json", &format!("verify {CNN} @/ort.onnx --json"), 0);
    let mlp = "testdata/models/tiny_mlp/static/training_model.onnx";
    let dead = "testdata/passes/remove-dead-nodes/a-chain-that-nothing-reads-goes.lms";
    let written = bench.run(&format!("opt {dead} -p remove-dead-nodes -o @/cleaned.lms"));
    assert_eq!(written.code, 0, "{written:?}");
    show("verify-cleaned", &format!("verify {dead} @/cleaned.lms --cleaned"), 0);
    show("verify-not-cleaned", &format!("verify {dead} @/cleaned.lms"), 1);
    show("verify-different", &format!("verify {CNN} {mlp}"), 1);
    show("verify-different-json", &format!("verify {CNN} {mlp} --json"), 1);
    show("verify-missing", &format!("verify {CNN} @/missing.onnx"), 2);
    show("survives", "verify --survives @/ort.onnx @/ort.onnx", 0);
    show("survives-json", "verify --survives @/ort.onnx @/ort.onnx --json", 0);
    show("survives-not", &format!("verify --survives @/function.onnx {CNN}"), 1);
    show("survives-not-ort", &format!("verify --survives @/ort.onnx {CNN}"), 1);
    show("survives-not-json", &format!("verify --survives @/ort.onnx {CNN} --json"), 1);
    show("survives-nothing", &format!("verify --survives {CNN} {CNN}"), 2);
}

/// A file that another program has rewritten: the values are the same, the bound on memory is lost.
#[test]
fn a_file_without_its_edges_has_lost_its_bound() {
    let bench = Bench::new();
    let lose = |from: &str, to: &str, of_nodes: &[&str], of_model: &[&str]| {
        let mut model = lmsc_onnx::Model::open(bench.path(from)).unwrap();
        let nodes = &mut model.proto.graph.as_mut().unwrap().node;
        nodes.iter_mut().for_each(|node| node.metadata_props.retain(|p| !of_nodes.contains(&p.key())));
        model.proto.metadata_props.retain(|p| !of_model.contains(&p.key()));
        lmsc_onnx::file::save(&model.proto, bench.path(to)).unwrap();
    };
    let (after, addresses) = (&[lmsc_onnx::key::AFTER], lmsc_onnx::key::ADDRESSES);
    let stated = [lmsc_onnx::key::PEAK, lmsc_onnx::key::BUDGET, lmsc_onnx::key::WORKSPACES, addresses];
    for form in ["function", "ort"] {
        let mut all = String::new();
        let mut show = |what: &str, arguments: &str, code: i32| {
            let outcome = bench.run(arguments);
            all += &format!("# {what}\n{}", bench.show(arguments, &outcome));
            assert_eq!(outcome.code, code, "{what}: {outcome:?}");
        };
        for (plan, options) in [("placed", ""), ("counted", " --addresses off")] {
            let written =
                bench.run(&format!("{CNN} --budget 230KiB --form {form} -o @/{plan}.onnx{options}"));
            assert_eq!(written.code, 0, "{written:?}");
            show(plan, &format!("verify {CNN} @/{plan}.onnx"), 0);
            lose(&format!("{plan}.onnx"), "edges.onnx", after, &[]);
            show("without edges", &format!("verify {CNN} @/edges.onnx"), 1);
            lose("edges.onnx", "edges-and-addresses.onnx", &[], &[addresses]);
            show("without addresses, too", &format!("verify {CNN} @/edges-and-addresses.onnx"), 1);
            show("as JSON", &format!("verify {CNN} @/edges-and-addresses.onnx --json"), 1);
            lose("edges.onnx", "nothing-stated.onnx", &[], &stated);
            show("nothing is stated", &format!("verify {CNN} @/nothing-stated.onnx"), 0);
            show("but was", &format!("verify @/{plan}.onnx @/nothing-stated.onnx"), 1);
        }
        snapshot("cli", &format!("verify-bound-{form}"), &all);
    }
}

/// A plan of a plan states its own bound, and one that no pass changes keeps it.
#[test]
fn bounds_are_those_of_the_last_plan() {
    let bench = Bench::new();
    assert_eq!(bench.run(&format!("{CNN} --budget 230KiB -o @/a.onnx")).code, 0);
    let stated = |name: &str| {
        let model = lmsc_onnx::Model::open(bench.path(name)).unwrap();
        let of = |p: &lmsc_onnx::proto::StringStringEntryProto| (p.key().to_owned(), p.value().to_owned());
        let all: Vec<_> = model.proto.metadata_props.iter().map(of).collect();
        let get = |key: &str| all.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone());
        (get(lmsc_onnx::key::BUDGET), get(lmsc_onnx::key::PEAK), get(lmsc_onnx::key::HASH))
    };
    let planned = stated("a.onnx");
    assert_eq!(planned.0.as_deref(), Some("235520"));
    assert_eq!(bench.run("opt @/a.onnx -o @/same.onnx").code, 0);
    assert_eq!(stated("same.onnx"), planned);
    let swapped = bench.run(&format!("opt {CNN} -p swap{{n-tensors=1}} -o @/b.onnx"));
    assert_eq!((swapped.code, stated("b.onnx")), (0, (None, None, None)), "{swapped:?}");
}

/// Every kind of difference, each from one change to a text.
#[test]
fn differences() {
    let text = "<opset: \"\" = 17>\n\
        g (float[4] x, float[4] b) => (float[4] y, float[4] z)\n\
        <float[4] w = {1.0, 2.0, 3.0, 4.0}>\n\
        {\n\
        [mul] float[4] h = Mul(x, w)\n\
        [soft] float[4] s = Softmax<axis = 0>(h)\n\
        [drop] float[4] y = Dropout(s)\n\
        [sub] float[4] z = Sub(s, h)\n\
        [acc] bool[1] f, float[4] b2 = com.microsoft.InPlaceAccumulatorV2(b, s) updates (b as b2)\n\
        }\n";
    let bench = Bench::new();
    bench.write("was.lms", text);
    let mut all = String::new();
    for (what, from, to) in [
        ("an output less", ", float[4] z)", ")"),
        ("an input of another name", "(float[4] x,", "(float[4] x1,"),
        ("an input of another type", "float[4] b)", "float[2,2] b)"),
        ("another operator", "Mul(x", "Div(x"),
        ("another version", "= 17", "= 18"),
        ("another attribute", "axis = 0", "axis = -1"),
        ("an attribute less", "<axis = 0>", ""),
        ("another operand", "Sub(s, h)", "Sub(s, x)"),
        ("other weights", "4.0}", "5.0}"),
        ("another seed", "[drop]", "[drop2]"),
        ("another variable", "(b, s) updates (b as b2)", "(x, s) updates (x as b2)"),
        ("a node less", "[sub] float[4] z = Sub(s, h)", "[sub] float[4] z = Identity(s)"),
        ("a node more", "[sub]", "[more] float[4] q = Exp(x)\n[sub]"),
        (
            "an update more",
            "}\n",
            "[acc2] bool[1] f2, float[4] b3 = com.microsoft.InPlaceAccumulatorV2(b2, s) updates (b as b3)\n}\n",
        ),
    ] {
        assert!(text.contains(from), "{what}");
        let at = if from == "}\n" { text.rfind(from) } else { text.find(from) }.unwrap();
        let changed = format!("{}{to}{}", &text[..at], &text[at + from.len()..]);
        let renamed = if to.contains("x1") { changed.replace("Mul(x,", "Mul(x1,") } else { changed };
        bench.write("is.lms", renamed);
        let outcome = bench.run("verify @/was.lms @/is.lms");
        all += &format!("# {what}\nexit {}: {}", outcome.code, bench.anonymous(&outcome.stderr));
        assert!([1, 2].contains(&outcome.code), "{what}: {outcome:?}");
    }
    snapshot("cli", "verify-differences", &all);
}

/// Targets from files that are none.
#[test]
fn targets_that_are_wrong() {
    let bench = Bench::new();
    bench.write("four-layers.lms", FOUR_LAYERS_TEXT);
    let good = bench.run("targets v100-pcie").stdout;
    let good = String::from_utf8(good).unwrap();
    bench.write("key.toml", good.replace("duplex = \"full\"", "duplex = \"both\""));
    bench.write("link.toml", good.replace("duplex = \"full\"", "duplex = \"half\""));
    let mut all = String::new();
    for target in ["key", "link"] {
        let call = format!("{FOUR_LAYERS} --budget 30MiB --planner swap-only --target @/{target}.toml");
        let outcome = bench.run(&call);
        assert_eq!(outcome.code, 2, "{outcome:?}");
        all += &bench.show(&call, &outcome);
    }
    snapshot("cli", "targets-wrong", &all);
}

#[test]
fn an_unchanged_model_is_written_byte_for_byte() {
    let bench = Bench::new();
    let original = std::fs::read(CNN).unwrap();
    let written = bench.run(&format!("{CNN} --budget 1GiB --addresses off -o @/out.onnx"));
    assert_eq!(written.code, 0, "{written:?}");
    assert!(std::fs::read(bench.path("out.onnx")).unwrap() == original);
    let piped = bench.run(&format!("{CNN} --budget 1GiB --addresses off -o -"));
    assert!(piped.stdout == original);
    assert!(piped.stderr.contains("nothing; the graph is unchanged"), "{}", piped.stderr);
    // Twice the same is the same.
    let once = bench.run(&format!("{UNET} --budget 1MiB -o -"));
    assert!(once.stdout == bench.run(&format!("{UNET} --budget 1MiB -o -")).stdout);
    // Planned a second time, it stays as it is, addresses and all.
    let again = bench.run_with("- --budget 1MiB -o -", &once.stdout);
    assert!(again.stdout == once.stdout, "{}", again.stderr);
}

#[test]
fn pipes() {
    let bench = Bench::new();
    let model = std::fs::read(CNN).unwrap();
    let lms = bench.run_with("- --planner tflms{n-tensors=3} -o - --emit lms", &model);
    assert_eq!(lms.code, 0, "{lms:?}");
    assert!(lms.stdout.starts_with(b"<opset: ") && lms.stderr.contains("\nmodel     -\n"), "{lms:?}");
    let onnx = bench.run_with("- --planner tflms{n-tensors=3} -o -", &model);
    bench.write("out.onnx", &onnx.stdout);
    bench.write("out.lms", &lms.stdout);
    // Text and ONNX are told apart by how they begin.
    let from_text = bench.run_with("opt -", &lms.stdout);
    let from_onnx = bench.run_with("opt -", &onnx.stdout);
    assert_eq!((from_text.code, from_onnx.code), (0, 0), "{from_text:?}{from_onnx:?}");
    assert!(from_text.stdout == lms.stdout);
    let equal = bench.run(&format!("verify {CNN} @/out.onnx"));
    assert_eq!(equal.code, 0, "{equal:?}");
    let chained = bench.shell(&format!(
        "lmsc {CNN} --planner tflms{{n-tensors=3}} -o - 2>/dev/null | lmsc inspect - --json"
    ));
    assert!(chained.stdout.starts_with(b"{") && chained.code == 0, "{chained:?}");
}

#[test]
fn the_text_form_in_and_out() {
    let bench = Bench::new();
    bench.write("four-layers.lms", FOUR_LAYERS_TEXT);
    let written = bench.run("@/four-layers.lms --budget 26MiB -o @/out.lms");
    assert_eq!(written.code, 0, "{written:?}");
    let printed = bench.run("opt @/four-layers.lms -p hoist-shapes,reorder,plan --budget 26MiB");
    assert!(std::fs::read(bench.path("out.lms")).unwrap() == printed.stdout);
    let opt = bench.run("opt @/out.lms -o @/again.lms");
    assert_eq!((opt.code, &*opt.stdout), (0, &b""[..]));
    assert!(std::fs::read(bench.path("again.lms")).unwrap() == printed.stdout);
    // Text that names its operator set versions can be written as ONNX without loss.
    let versioned =
        FOUR_LAYERS_TEXT.replace("layers (float", "<opset: \"\" = 17, \"com.microsoft\" = 1>\nlayers (float");
    bench.write("four-layers.lms", &versioned);
    let denied = bench.run("@/four-layers.lms --budget 26MiB -o @/denied.onnx");
    assert_eq!(denied.code, 2, "{denied:?}");
    assert!(denied.stderr.contains("`loss` is float[1,1]"), "the rule of ReduceMean: {denied:?}");
    bench.write("sound.lms", versioned.replace("ReduceMean(", "ReduceMean<keepdims = 0>("));
    bench.write("four-layers.lms", FOUR_LAYERS_TEXT);
    let onnx = bench.run("@/sound.lms --budget 26MiB -o @/out.onnx");
    assert_eq!(onnx.code, 0, "{onnx:?}");
    assert_eq!(bench.run("verify @/four-layers.lms @/out.lms").code, 0);
    assert_eq!(bench.files(), ["again.lms", "four-layers.lms", "out.lms", "out.onnx", "sound.lms"]);
}

#[test]
fn who_stops_reading_is_no_error() {
    let bench = Bench::new();
    for arguments in
        ["--help", "completions bash", &format!("plan {UNET} --budget 1MiB"), &format!("opt {UNET}")]
    {
        let head = bench.shell(&format!("(lmsc {arguments}; echo \"exit $?\" >&2) | head -1 > /dev/null"));
        assert_eq!(head.stderr, "exit 0\n", "lmsc {arguments}");
        let none = bench.shell(&format!("(lmsc {arguments}; echo \"exit $?\" >&2) | true"));
        assert_eq!(none.stderr, "exit 0\n", "lmsc {arguments}");
    }
    let model =
        bench.shell(&format!("(lmsc {UNET} --budget 1MiB -o - 2>/dev/null; echo \"exit $?\" >&2) | true"));
    assert!(["exit 0\n", "exit 2\n"].contains(&&*model.stderr), "{model:?}");
}

#[test]
fn completions() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = bench.run(&format!("completions {shell}"));
        assert_eq!(script.code, 0);
        let script = String::from_utf8(script.stdout).unwrap();
        let known = if ["bash", "zsh", "fish"].contains(&shell) { 3 } else { 1 };
        assert!(
            ["budget", "rtx4090", "memonger"][..known].iter().all(|word| script.contains(word)),
            "{shell}"
        );
    }
    check("completions-unknown-shell", "completions tcsh", 2);
}

#[test]
fn nothing_is_written_in_part() {
    let bench = Bench::new();
    let original = std::fs::read(CNN).unwrap();
    bench.write("model.onnx", &original);
    let show = |name: &str, arguments: &str, code: i32| {
        let outcome = bench.run(arguments);
        snapshot("cli", name, &bench.show(arguments, &outcome));
        assert_eq!(outcome.code, code, "{outcome:?}");
    };
    show("output-folder-missing", &format!("{CNN} --budget 1GiB -o @/no/out.onnx"), 2);
    show("output-is-a-folder", &format!("{CNN} --budget 1GiB -o @"), 2);
    show("report-folder-missing", &format!("{CNN} --budget 1GiB --report @/no/report.json"), 2);
    show("report-page-of-no-run", &format!("{CNN} --budget 1GiB --report @/page.html"), 2);
    show("output-of-what-does-not-fit", &format!("{UNET} --budget 1KiB -o @/out.onnx"), 1);
    assert_eq!(bench.files(), ["model.onnx"]);

    // Over the input, whose bytes are mapped while they are written.
    let over = bench.run("@/model.onnx --planner tflms{n-tensors=3} -o @/model.onnx --force");
    assert_eq!(over.code, 0, "{over:?}");
    assert_eq!(bench.run(&format!("verify {CNN} @/model.onnx")).code, 0);
    assert!(std::fs::read(bench.path("model.onnx")).unwrap() != original);
    assert_eq!(bench.files(), ["model.onnx"]);
}

/// An input is not overwritten under any name; with `--force` it is.
#[test]
fn an_input_file_is_not_replaced() {
    let bench = Bench::new();
    let original = std::fs::read(CNN).unwrap();
    bench.write("model.onnx", &original);
    bench.write(
        "optimizer.onnx",
        std::fs::read("testdata/models/tiny_cnn/static/optimizer_model.onnx").unwrap(),
    );
    std::fs::hard_link(bench.path("model.onnx"), bench.path("hard.onnx")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(bench.path("model.onnx"), bench.path("soft.onnx")).unwrap();
    let files = bench.files();
    for call in [
        "@/model.onnx --budget 1GiB -o @/model.onnx",
        "@/model.onnx --budget 1GiB -o @/./hard.onnx",
        "@/soft.onnx --budget 1GiB -o @/model.onnx",
        "@/model.onnx --optimizer @/optimizer.onnx --budget 1GiB -o @/optimizer.onnx",
        "@/model.onnx --budget 1GiB --report @/model.onnx",
        "opt @/model.onnx -o @/model.onnx",
        "calibrate @/model.onnx -o @/model.onnx",
    ] {
        let outcome = bench.run(call);
        assert_eq!(outcome.code, 2, "{call}: {outcome:?}");
        assert!(outcome.stderr.contains("which is read"), "{call}: {outcome:?}");
    }
    assert!(std::fs::read(bench.path("model.onnx")).unwrap() == original);
    assert_eq!(bench.files(), files);
    assert_eq!(bench.run("opt @/model.onnx -o @/model.onnx --force").code, 0);
    assert_eq!(bench.run(&format!("verify {CNN} @/model.onnx")).code, 0);
}

/// Without a budget the model is written as it is, and that is said.
#[test]
fn without_a_budget_the_model_is_written_as_it_is() {
    let bench = Bench::new();
    let outcome = bench.run(&format!("{CNN} -o @/out.onnx"));
    let text = String::from_utf8(outcome.stdout).unwrap();
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(text.contains("none: without --budget the model is written as it is"), "{text}");
    assert!(std::fs::read(bench.path("out.onnx")).unwrap() == std::fs::read(CNN).unwrap());
}

/// A model whose weights are in a file in another folder than the result.
#[test]
fn data_in_other_files_is_found_from_where_the_result_is() {
    let bench = Bench::new();
    let model = crate::support::onnx::Builder::new()
        .input("x", &[4])
        .external("w", &[4], "data/weights.bin")
        .node("Add", "x w", "h")
        .node("Exp", "h", "y")
        .output("y");
    for folder in ["deep", "deep/data", "other"] {
        std::fs::create_dir(bench.path(folder)).unwrap();
    }
    bench.write("deep/model.onnx", model.bytes());
    bench.write("deep/data/weights.bin", [7_u8; 16]);
    let runs = |file: &str| bench.run(&format!("run {file} --steps 1")).code;
    assert_eq!(runs("@/deep/model.onnx"), 0);
    // Within the folder of the result, the reference is another one.
    assert_eq!(bench.run("@/deep/model.onnx --budget 1GiB -o @/out.onnx").code, 0);
    assert_eq!(runs("@/out.onnx"), 0);
    assert_eq!(bench.run("opt @/deep/model.onnx -o @/deep/data/out.onnx").code, 0);
    assert_eq!(runs("@/deep/data/out.onnx"), 0);
    // Outside of it, it is copied, or nothing is written.
    let call = "@/deep/model.onnx --budget 1GiB -o @/other/out.onnx";
    let outcome = bench.run(call);
    assert_eq!(outcome.code, 2, "{outcome:?}");
    assert!(outcome.stderr.contains("add --copy-data"), "{outcome:?}");
    assert_eq!(std::fs::read_dir(bench.path("other")).unwrap().count(), 0);
    for _ in 0..2 {
        assert_eq!(bench.run(&format!("{call} --copy-data")).code, 0);
        assert_eq!(runs("@/other/out.onnx"), 0);
    }
    assert_eq!(std::fs::read(bench.path("other/data/weights.bin")).unwrap(), [7; 16]);
    // Another file is not replaced, and no link followed out of the folder.
    bench.write("other/data/weights.bin", [8_u8; 16]);
    let outcome = bench.run(&format!("{call} --copy-data"));
    assert!(outcome.code == 2 && outcome.stderr.contains("a file with other bytes is there"), "{outcome:?}");
    #[cfg(unix)]
    {
        std::fs::remove_dir_all(bench.path("other/data")).unwrap();
        std::fs::create_dir(bench.path("away")).unwrap();
        std::os::unix::fs::symlink(bench.path("away"), bench.path("other/data")).unwrap();
        let outcome = bench.run(&format!("{call} --copy-data"));
        assert!(outcome.code == 2 && outcome.stderr.contains("out of the folder"), "{outcome:?}");
        assert_eq!(std::fs::read_dir(bench.path("away")).unwrap().count(), 0);
    }
    // The data itself is not written over.
    for call in ["opt @/deep/model.onnx", "@/deep/model.onnx --budget 1GiB --emit onnx"] {
        let outcome = bench.run(&format!("{call} -o @/deep/data/weights.bin --force"));
        assert!(outcome.code == 2 && outcome.stderr.contains("it holds the model's weights"), "{outcome:?}");
        assert_eq!(std::fs::read(bench.path("deep/data/weights.bin")).unwrap(), [7; 16]);
    }
}

/// Sizes and values that a file was written for are read back.
#[test]
fn sizes_and_values_are_written_and_read_back() {
    let bench = Bench::new();
    let mut graph = crate::support::onnx::Builder::new()
        .input("x", &[2, -1])
        .typed_input("rate", lmsc_onnx::proto::DataType::Int64, &[])
        .scalar("fast", 16000)
        .node("Equal", "rate fast", "is_fast")
        .node("Where", "is_fast x x", "h")
        .node("Exp", "h", "y")
        .output("y");
    graph.graph.output[0].name = Some("y".to_owned());
    bench.write("open.onnx", graph.bytes());
    let call = "@/open.onnx --shape x=2x3 --value rate=16000 --budget 1GiB -o @/out.onnx";
    assert_eq!(bench.run(call).code, 0, "{:?}", bench.run(call));
    let outcome = bench.run("run @/out.onnx --steps 1");
    let drawn = "lmsc: note: 1 input is not given: 1 random (`x`); --params gives it\n";
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, drawn), "{outcome:?}");
    assert_eq!(bench.run("verify @/open.onnx @/out.onnx --shape x=2x3 --value rate=16000").code, 0);
    let tensor = r#"{"rate":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}"#;
    let header = (tensor.len() as u64).to_le_bytes();
    let feeds = [&header[..], tensor.as_bytes(), &8000_i64.to_le_bytes()].concat();
    bench.write("feeds.safetensors", feeds);
    let fed = bench.run("run @/out.onnx --steps 1 --feeds @/feeds.safetensors");
    assert!(fed.code == 2 && fed.stderr.contains("`rate`, which is a constant of the step"), "{fed:?}");
    let other = bench.run("inspect @/out.onnx --value rate=8000");
    assert!(other.code == 2 && other.stderr.contains("rate=16000 is given, too"), "{other:?}");
    let other = bench.run("inspect @/out.onnx --shape x=2x4");
    assert!(other.code == 2 && other.stderr.contains("its addresses are those for"), "{other:?}");
}

/// A folder without write permission holds nothing afterwards. Root may write everywhere and is not stopped.
#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_written_to() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new();
    let folder = bench.path("locked");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o555)).unwrap();
    let stopped = std::fs::write(folder.join("probe"), "").is_err();
    _ = std::fs::remove_file(folder.join("probe"));
    let outcome = bench.run(&format!("{CNN} --budget 1GiB -o @/locked/out.onnx"));
    let left = std::fs::read_dir(&folder).unwrap().count();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    if stopped {
        assert_eq!((outcome.code, left), (2, 0), "{outcome:?}");
        assert!(
            bench
                .anonymous(&outcome.stderr)
                .starts_with("lmsc: error[LMS0201]: cannot write @/locked/out.onnx: "),
            "{outcome:?}"
        );
    } else {
        assert_eq!((outcome.code, left), (0, 1), "{outcome:?}");
    }
}

#[test]
fn control_characters_of_names_never_reach_a_terminal() {
    let bench = Bench::new();
    let text = "g (float[2] \"x\u{1b}[31m\u{9b}\") => (float[2] \"y\u{202e}\") {\n\
                [\"n\u{1b}]0;title\u{7}\"] float[2] \"y\u{202e}\" = Relu(\"x\u{1b}[31m\u{9b}\")\n}\n";
    bench.write("g.lms", text);
    for command in [
        "inspect @/g.lms",
        "@/g.lms --target host --budget 0.9x -v",
        "launches @/g.lms",
        "inspect @/g.lms --json",
    ] {
        let outcome = bench.run(command);
        let said = format!("{}{}", outcome.stderr, String::from_utf8_lossy(&outcome.stdout));
        let hidden = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!said.contains(hidden), "{command}: {said:?}");
    }
    bench.write("g.lms", "g (float[2] \"x\\nproof: equal\") => (float[2] y) {\n[n] float[2] y = Relu(\"x\\nproof: equal\")\n}\n");
    let outcome = bench.run("inspect @/g.lms");
    assert!(outcome.code == 2 && !outcome.stderr.contains("\nproof"), "{outcome:?}");
}
