//! `lmsc run` as a user meets it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{Bench, snapshot};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

const STEP: &str = "testdata/models/tiny_resnet18/training_model.onnx \
                    --optimizer testdata/models/tiny_resnet18/optimizer_model.onnx --dim batch=8";
const FORWARD: &str = "testdata/models/tiny_resnet18/forward.onnx";

fn ok(bench: &Bench, arguments: &str) -> String {
    let outcome = bench.run(arguments);
    assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.stderr);
    String::from_utf8(outcome.stdout).unwrap()
}

fn losses(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("step ")).collect()
}

/// Writes a safetensors file of floats.
fn write(path: &Path, tensors: &[(&str, &[usize], &[f32])]) {
    let bytes: Vec<Vec<u8>> =
        tensors.iter().map(|(.., values)| values.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
    let views = tensors
        .iter()
        .zip(&bytes)
        .map(|((name, dims, _), bytes)| (*name, TensorView::new(Dtype::F32, dims.to_vec(), bytes).unwrap()));
    std::fs::write(path, serialize(views, None).unwrap()).unwrap();
}

#[test]
fn a_rewritten_step_trains_to_the_same_bits() {
    let bench = Bench::new();
    let text = ok(&bench, &format!("run {STEP} --params {FORWARD} --steps 4 --save @/a.safetensors"));
    assert!(text.contains("nothing was copied"), "{text}");
    ok(&bench, &format!("{STEP} --target host --budget 1.5MiB -o @/step.onnx"));
    let rewritten = ok(
        &bench,
        &format!("run @/step.onnx --params {FORWARD} --steps 4 --save @/b.safetensors --trace @/t.json"),
    );
    assert_eq!(losses(&text), losses(&rewritten));
    assert_eq!(losses(&text).len(), 4);
    assert!(rewritten.contains("of 1.5 MiB") && rewritten.contains("a step copies"), "{rewritten}");
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    assert!(read("a.safetensors") == read("b.safetensors"));

    ok(&bench, &format!("run @/step.onnx --params {FORWARD} --steps 3 --save @/c.safetensors"));
    let rest = ok(&bench, "run @/step.onnx --resume @/c.safetensors --steps 1 --save @/d.safetensors");
    assert_eq!(losses(&rest), losses(&text)[3..]);
    assert!(read("a.safetensors") == read("d.safetensors"));

    let trace: serde_json::Value = serde_json::from_slice(&read("t.json")).unwrap();
    let rows: std::collections::BTreeSet<u64> =
        trace["traceEvents"].as_array().unwrap().iter().filter_map(|event| event["tid"].as_u64()).collect();
    assert!(rows.is_superset(&[0, 1, 2].into()), "{rows:?}");
}

#[test]
fn the_bytes_in_use_are_those_that_were_planned() {
    let bench = Bench::new();
    ok(&bench, &format!("{STEP} --target host --budget 1.5MiB -o @/step.onnx"));
    let run = "run @/step.onnx --steps 3 --json --copy-bandwidth 100MB";
    let report: serde_json::Value = serde_json::from_str(&ok(&bench, run)).unwrap();
    let number = |key: &str| report[key].as_u64().unwrap();
    assert_eq!(number("peak_in_order"), number("predicted_peak"));
    assert!(number("peak") <= number("predicted_peak") && number("last_address") <= number("budget"));
    // The link has 100 MB a second.
    let copied = number("copied_out").max(number("copied_in")) as f64;
    let longest = report["step_seconds"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).sum::<f64>();
    assert!(longest >= 3.0 * copied / 100e6, "{report}");
}

#[test]
fn chunks_hold_the_same_bits_as_an_arena() {
    let bench = Bench::new();
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    ok(&bench, &format!("{STEP} --target host --budget 1.5MiB -o @/swaps.onnx"));
    ok(&bench, &format!("{STEP} --target host --budget 1.5MiB --ranges -o @/ranges.onnx"));
    let mlp = "testdata/models/tiny_mlp/training_model.onnx \
               --optimizer testdata/models/tiny_mlp/optimizer_model.onnx --dim batch=8";
    for step in [STEP, mlp, "@/swaps.onnx --dim batch=8", "@/ranges.onnx --dim batch=8"] {
        let run = format!("run {step} --steps 3 --save");
        let arena = ok(&bench, &format!("{run} @/a.safetensors"));
        let chunks = ok(&bench, &format!("{run} @/b.safetensors --budget 64MiB --virtual 64KiB"));
        assert_eq!(losses(&arena), losses(&chunks));
        assert!(read("a.safetensors") == read("b.safetensors"), "{step}");
        assert!(chunks.contains("chunks of 64 KiB: at most "), "{chunks}");
    }
    let resume = "run @/swaps.onnx --resume @/b.safetensors --steps 2 --budget 64MiB --virtual 64KiB";
    ok(&bench, &format!("run {STEP} --steps 3 --save @/b.safetensors"));
    ok(&bench, &format!("{resume} --save @/c.safetensors"));
    ok(&bench, &format!("run {STEP} --steps 5 --save @/d.safetensors"));
    assert!(read("c.safetensors") == read("d.safetensors"));
    let outcome = bench.run("run @/swaps.onnx --virtual 64KiB");
    assert!(outcome.code == 1 && outcome.stderr.contains("chunks of 65536 bytes (64 KiB), and there are 24"));
}

#[test]
#[ignore = "slow: `cargo xtask ci test` runs it"]
fn a_plan_in_pages_runs_in_as_many_chunks() {
    let bench = Bench::new();
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    let unet = "testdata/models/tiny_unet2d/training_model.onnx \
                --optimizer testdata/models/tiny_unet2d/optimizer_model.onnx --dim batch=32";
    for (step, batch, budget, ranges) in [(STEP, 8, "3MiB", ""), (unet, 32, "13MiB", "--ranges")] {
        let compile =
            format!("{step} --target host --budget {budget} --pages 64KiB {ranges} -o @/p.onnx --json");
        let report: serde_json::Value = serde_json::from_str(&ok(&bench, &compile)).unwrap();
        assert!(report["bytes_out"].as_u64().is_some_and(|bytes| bytes > 0), "{report}");
        let run = format!("run @/p.onnx --dim batch={batch} --steps 1 --virtual 64KiB --json");
        let chunks = ok(&bench, &format!("{run} --budget {budget} --save @/a.safetensors"));
        let chunks: serde_json::Value = serde_json::from_str(&chunks).unwrap();
        let needed = chunks["virtual"]["chunks"].as_u64().unwrap();
        let outcome = bench.run(&format!("{run} --budget {}", needed * 65_536 - 1));
        assert!(outcome.code == 1 && outcome.stderr.contains("chunks of 65536 bytes"), "{}", outcome.stderr);
        let at_once =
            format!("{step} --target host --budget {budget} --pages 64KiB {ranges} --run --steps 1");
        let told = ok(&bench, &at_once);
        assert!(told.contains(&format!("chunks of 64 KiB: at most {needed} in use")), "{told}");
        ok(&bench, &format!("run {step} --steps 1 --save @/b.safetensors"));
        assert!(read("a.safetensors") == read("b.safetensors"), "{step}");
    }
}

/// Twelve variables take four chunks together, and twelve if each is rounded up.
#[test]
fn variables_whose_new_value_replaces_the_old_one_share_chunks() {
    let bench = Bench::new();
    let variables = |text: &dyn Fn(usize) -> String| (0..12).map(text).collect::<String>();
    let inputs = variables(&|i| format!(", float[5000] w{i}"));
    let updates = variables(&|i| {
        format!(
            "[t{i}] float[5000] t{i} = Exp(w{i}) [u{i}] float[5000] n{i} = Tanh(t{i}) updates (w{i} as n{i})\n"
        )
    });
    bench.write(
        "g.lms",
        format!(
            "g (float[100000] x{inputs}) => (float[] loss) {{
                [h1] float[100000] h1 = Exp(x)
                [h2] float[100000] h2 = Exp(h1)
                [h3] float[100000] h3 = Exp(h2)
                [h4] float[100000] h4 = Exp(h3)
                [b4] float[100000] b4 = Mul(h4, h4)
                [b3] float[100000] b3 = Mul(b4, h3)
                [b2] float[100000] b2 = Mul(b3, h2)
                [b1] float[100000] b1 = Mul(b2, h1)
                [loss] float[] loss = ReduceSum<keepdims = 0>(b1)
                {updates}
            }}"
        ),
    );
    for budget in ["1600KiB", "2MiB"] {
        let run = format!("@/g.lms --target host --budget {budget} --pages 64KiB --run --steps 2");
        let told = ok(&bench, &run);
        assert!(told.contains("chunks of 64 KiB"), "{told}");
    }
}

#[test]
fn bytes_lost_in_chunks_are_reported() {
    let bench = Bench::new();
    bench.write(
        "g.lms",
        "g (float[20000] x) => (float[] z) {
            [a] float[20000] y = Exp(x)
            [b] float[] z = ReduceSum<keepdims = 0>(y)
        }",
    );
    let report = ok(&bench, "run @/g.lms --steps 2 --json --virtual 64KiB");
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    // 80,000 bytes take two chunks and lose 51,072; four bytes lose 65,532. All three are there at once.
    let expected = serde_json::json!({
        "chunk": 65_536,
        "chunks": 2 + 2 + 1,
        "mapped": 2 + 2 + 1,
        "lost": 2 * 51_072 + 65_532,
        "lost_below": 3 * 65_536,
        "lost_in_arena": 0,
    });
    assert_eq!(report["virtual"], expected);
}

#[test]
fn values_are_fed_and_fetched() {
    let bench = Bench::new();
    let graph = "g (float[2] x, float[2] w, float[1] lr) => (float[] loss, float[2] w_new) {
        [mul] float[2] h = Mul(x, w)
        [out] float[2]@host away = ai.lmsc.SwapOut(h)
        [in] float[2] back = ai.lmsc.SwapIn(away)
        [view] float[1,2] v = Unsqueeze<axes = [0]>(back)
        [loss] float[] loss = ReduceSum<keepdims = 0>(h)
        [sgd] float[2] w_new = ai.lmsc.SGDOptimizer(lr, w, h) updates (w as w_new)
    }";
    bench.write("g.lms", graph);
    write(&bench.path("f.safetensors"), &[("x", &[2], &[2.0, 3.0]), ("w", &[2], &[1.0, -1.0])]);
    write(&bench.path("lr.safetensors"), &[("lr", &[1], &[0.5])]);
    let run = "run @/g.lms --steps 2 --params @/f.safetensors --feeds @/lr.safetensors";
    ok(&bench, &format!("{run} --fetch h,away,v,x --out @/o.safetensors"));
    let bytes = std::fs::read(bench.path("o.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let values: BTreeMap<String, (Vec<usize>, Vec<f32>)> = file
        .tensors()
        .into_iter()
        .map(|(name, view)| {
            let floats = view.data().as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
            (name, (view.shape().to_vec(), floats))
        })
        .collect();
    // w = [1, -1] - 0.5 [2, -3] = [0, 0.5] in the second step.
    assert_eq!(values["h"], (vec![2], vec![0.0, 1.5]));
    assert_eq!(values["away"], values["h"]);
    assert_eq!(values["v"], (vec![1, 2], vec![0.0, 1.5]));
    assert_eq!(values["x"], (vec![2], vec![2.0, 3.0]));
}

#[test]
fn names_with_another_prefix_are_explained() {
    let bench = Bench::new();
    let graph = "g (float[2] x, float[2] model.a, float[2] model.b) => (float[2] z) { [n] float[2] z = Sum(x, model.a, model.b) }";
    bench.write("g.lms", graph);
    let explained = |names: [&str; 2], help: &str| {
        write(&bench.path("p.safetensors"), &names.map(|name| (name, &[2][..], &[1.0; 2][..])));
        let outcome = bench.run("run @/g.lms --params @/p.safetensors");
        assert_eq!(outcome.code, 2);
        let found = outcome.stderr.split_once("\nhelp: ").map_or("", |(_, found)| found);
        assert_eq!(found, help, "{outcome:?}");
    };
    explained(["a", "b"], "the step's names begin with `model.`; add that to the names in the file\n");
    let remove = "the names in the file begin with `module.`, those of the step do not; remove it there\n";
    explained(["module.model.a", "module.model.b"], remove);
    // One of them is another tensor's.
    explained(["a", "c"], "");
}

#[test]
fn refusals() {
    let bench = Bench::new();
    let check = |name: &str, arguments: &str, code: i32| {
        let outcome = bench.run(arguments);
        snapshot("cli", name, &bench.show(arguments, &outcome));
        assert_eq!(outcome.code, code);
    };
    // How much workspace kernels need depends on the processor, so these two are no snapshots.
    let outcome = bench.run(&format!("run {STEP} --budget 1MiB"));
    assert!(outcome.code == 1 && outcome.stderr.contains("--target host --budget 1048576"), "{outcome:?}");
    ok(&bench, &format!("{STEP} --budget 1MiB --target v100-pcie -o @/v100.onnx"));
    check("run-another-size", "run @/v100.onnx --dim batch=4", 2);
    let outcome = bench.run("run @/v100.onnx");
    assert!(outcome.code == 2 && outcome.stderr.contains("of workspace here, and the plan gives it"));
    assert!(
        outcome
            .stderr
            .ends_with("help: plan with --target host: its operators need what the kernels here need\n")
    );
    bench.write("p.safetensors", "nothing of the kind");
    check("run-no-safetensors", &format!("run {STEP} --params @/p.safetensors"), 2);
    write(&bench.path("p.safetensors"), &[("fc.weigth", &[2], &[1.0; 2]), ("fc.bias", &[2], &[1.0; 2])]);
    check("run-wrong-tensors", &format!("run {STEP} --params @/p.safetensors"), 2);
    check("run-nothing-to-resume", &format!("run {STEP} --resume @/missing.safetensors"), 2);
    check("run-no-such-value", &format!("run {STEP} --fetch los --out @/o.safetensors"), 2);
    bench
        .write("g.lms", "g (float[2] x) => (float[2] z) { [a] float[2] y = Log(x) [b] float[2] z = Neg(y) }");
    write(&bench.path("x.safetensors"), &[("x", &[2], &[1.0, -1.0])]);
    check("run-chunks-of-no-pages", "run @/g.lms --virtual 1000", 2);
    check("run-too-few-chunks", "run @/g.lms --virtual 64KiB --budget 100KiB", 1);
    check("run-no-such-device", "run @/g.lms --device gpu", 2);
    check("calibrate-replayed", "calibrate @/g.lms --device cuda+graph -o @/p.json", 2);
    check("run-host-does-not-round", "run @/g.lms --precision tf32", 2);
    check("run-host-has-own-kernels-alone", "run @/g.lms --own-kernels", 2);
    check("run-host-needs-no-libraries", "run @/g.lms --require-libraries", 2);
    check("calibrate-host-needs-no-libraries", "calibrate @/g.lms --require-libraries -o @/p.json", 2);
    check("run-no-number", "run @/g.lms --feeds @/x.safetensors --check-numerics", 1);
    let unknown = "<opset: \"\" = 20, \"my.domain\" = 1>
    g (float[2] x) => (float[2] z) {
        [a] float[2] y = Neg(x)
        [b] float[2] z = my.domain.Twist(y)
    }";
    bench.write("u.lms", unknown);
    check("run-no-kernel", "run @/u.lms", 2);
    check("run-not-asked-for", &format!("{STEP} --budget 1.5MiB --steps 3 --save @/s.safetensors"), 2);
    check("run-of-standard-output", &format!("{STEP} --budget 1.5MiB --run -o -"), 2);
    // The arena ends at the last address that is used, so a larger budget takes no more memory.
    ok(&bench, &format!("run {STEP} --budget 64TiB --steps 1"));
}

/// Starts the program under test.
fn start(bench: &Bench, arguments: &str) -> Child {
    let folder = bench.path("");
    let words = arguments.split_whitespace().map(|word| word.replace("@/", folder.to_str().unwrap()));
    let program = env!("CARGO_BIN_EXE_lmsc");
    let mut command = Command::new(if cfg!(target_os = "linux") { "env" } else { program });
    if cfg!(target_os = "linux") {
        // The parent of the tests may ignore signals, as nohup does, and its children inherit that.
        command.args(["--default-signal=HUP,INT,TERM", program]);
    }
    command.args(words).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends the signal of this name.
#[cfg(unix)]
fn signal(name: &str, child: &Child) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Waits until the child has handlers for these signals.
#[cfg(target_os = "linux")]
fn await_handlers(child: &Child) {
    let handles = |status: &str| {
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        // HUP, INT and TERM.
        [1, 2, 15].iter().all(|signal| caught >> (signal - 1) & 1 == 1)
    };
    while !std::fs::read_to_string(format!("/proc/{}/status", child.id()))
        .is_ok_and(|status| handles(&status))
    {
        std::thread::yield_now();
    }
}

/// Exit code and output of the program.
fn end(child: Child) -> (Option<i32>, String) {
    let outcome = child.wait_with_output().unwrap();
    (outcome.status.code(), String::from_utf8(outcome.stderr).unwrap())
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_ends_after_its_step_and_is_saved() {
    let bench = Bench::new();
    let run = format!("run {STEP} --params {FORWARD}");
    let mut child = start(&bench, &format!("{run} --steps 1000000 --save @/a.safetensors"));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("step 1: loss"));
    signal("INT", &child);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let (code, said) = end(child);
    assert_eq!(code, Some(130), "{said}");
    let (_, interrupted) = said.split_once("lmsc: error[LMS0301]: interrupted after ").unwrap();
    let done = interrupted.split(' ').next();
    let done: u64 = done.unwrap_or_else(|| panic!("{said}")).parse().unwrap();
    assert!(said.contains(" of 1000000 steps\nhelp: --resume "), "{said}");
    assert_eq!(1 + rest.iter().filter(|line| line.starts_with("step ")).count() as u64, done);
    assert!(rest.iter().any(|line| line.contains(" ms a step")), "{rest:?}");
    ok(&bench, &format!("{run} --steps {done} --save @/b.safetensors"));
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    assert!(read("a.safetensors") == read("b.safetensors"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_second_signal_ends_at_once() {
    let bench = Bench::new();
    ok(&bench, &format!("{STEP} --target host --budget 1.5MiB -o @/step.onnx"));
    bench.write("a.safetensors", "what was there before");
    // A step would take minutes.
    let run = "run @/step.onnx --copy-bandwidth 1KB --save @/a.safetensors";
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let mut child = start(&bench, run);
        await_handlers(&child);
        while child.try_wait().unwrap().is_none() {
            signal(name, &child);
        }
        // The first may come before the first step has begun, and end the run there, which is saved; the second one may still
        // come before that is told.
        let (ended, _) = end(child);
        let saved = std::fs::read(bench.path("a.safetensors")).unwrap();
        let ended_at_once = ended == Some(code) && saved == b"what was there before";
        assert!(ended_at_once || SafeTensors::deserialize(&saved).is_ok(), "{name}: {ended:?}");
        bench.write("a.safetensors", "what was there before");
        assert_eq!(bench.files(), ["a.safetensors", "step.onnx"]);
    }
}

#[test]
#[cfg(unix)]
fn a_run_that_is_killed_leaves_what_was_saved_before() {
    let bench = Bench::new();
    let run = format!("run {STEP} --params {FORWARD}");
    ok(&bench, &format!("{run} --steps 1 --save @/a.safetensors"));
    let read = || std::fs::read(bench.path("a.safetensors")).unwrap();
    let old = read();
    ok(&bench, &format!("{run} --steps 2 --save @/b.safetensors"));
    let new = std::fs::read(bench.path("b.safetensors")).unwrap();
    // At its beginning, after each step, and ever longer after the last one, when it saves.
    for moment in 0..16u32 {
        let mut child = start(&bench, &format!("{run} --steps 2 --save @/a.safetensors"));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..moment.min(2) {
            assert!(lines.next().unwrap().unwrap().starts_with("step "));
        }
        for _ in 0..(1 << moment) >> 3 {
            std::thread::yield_now();
        }
        signal("KILL", &child);
        end(child);
        assert!([&old, &new].contains(&&read()));
        assert_eq!(bench.files(), ["a.safetensors", "b.safetensors"]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_told() {
    let bench = Bench::new();
    let outcome = bench.run(&format!("run {STEP} --steps 1 --save /dev/full"));
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.ends_with("\nlmsc: error[LMS0201]: cannot write /dev/full: no space left on device\n"),
        "{outcome:?}"
    );
    bench.write("a.safetensors", "what was there before");
    let full = "trap '' XFSZ; ulimit -f 100;";
    let outcome = bench.shell(&format!("{full} lmsc run {STEP} --steps 1 --save @/a.safetensors"));
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("/a.safetensors: file too large"), "{}", outcome.stderr);
    assert_eq!(std::fs::read(bench.path("a.safetensors")).unwrap(), b"what was there before");
    assert_eq!(std::fs::read_dir(bench.path("")).unwrap().count(), 1, "nothing else is left");
}

#[test]
#[cfg(target_os = "linux")]
fn memory_that_the_system_does_not_give_is_told() {
    let bench = Bench::new();
    let layers =
        include_str!("../testdata/passes/swap/fewest-bytes-for-a-budget.lms").replace("4096", "65536");
    bench.write("layers.lms", layers.replace("com.microsoft.MeanGrad", "Relu"));
    let plan = "--budget 284MiB --planner swap-only --target host";
    ok(&bench, &format!("@/layers.lms {plan} -o @/step.lms"));
    for (kilobytes, refused) in [
        (240_000, "the 260 MiB (272629824 bytes) of the device's arena\nhelp: give a smaller --budget\n"),
        (
            380_000,
            "of the host's memory for what leaves the device\nhelp: plan with a smaller --host-budget\n",
        ),
    ] {
        let run = format!("ulimit -v {kilobytes}; lmsc run @/step.lms --steps 1");
        let outcome = bench.shell(&run);
        assert_eq!(outcome.code, 1, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("cannot run here: the system does not give"), "{}", outcome.stderr);
        assert!(outcome.stderr.ends_with(refused), "{}", outcome.stderr);
    }
}

#[test]
fn planning_and_running_is_one_call() {
    let bench = Bench::new();
    ok(&bench, &format!("{STEP} --target host --budget 1.5MiB -o @/step.onnx"));
    let run = format!("run @/step.onnx --params {FORWARD} --steps 3 --save @/a.safetensors");
    let apart = ok(&bench, &run);
    let files = bench.files().len();
    let call = format!("{STEP} --budget 1.5MiB --run --params {FORWARD} --steps 3 --save @/b.safetensors");
    let together = ok(&bench, &call);
    assert_eq!(losses(&apart), losses(&together));
    let copies = |text: &str| text.lines().find(|line| line.starts_with("a step copies")).unwrap().to_owned();
    assert_eq!(copies(&apart), copies(&together));
    assert!(together.contains("proof "), "{together}");
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    assert!(read("a.safetensors") == read("b.safetensors"));
    assert_eq!(bench.files().len(), files + 1);
    let json = ok(&bench, &format!("{STEP} --budget 1.5MiB --run --steps 2 --json -o @/other.onnx"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["run"]["losses"].as_array().unwrap().len(), 2);
    assert_eq!(json["run"]["predicted_peak"], json["after"]["peak"]);
    let page = ok(&bench, &format!("{STEP} --budget 1.5MiB --run --steps 2 --report @/page.html"));
    assert!(page.contains("proof "), "{page}");
    let page = std::fs::read_to_string(bench.path("page.html")).unwrap();
    assert!(page.contains("\"timelines\":[\"simulated\",\"measured\"]"));
    assert!(read("other.onnx") == read("step.onnx"));
}

#[test]
fn a_page_shows_the_step_as_simulated_and_as_measured() {
    let bench = Bench::new();
    ok(&bench, &format!("calibrate {STEP} --steps 3 -o @/p.json"));
    ok(&bench, &format!("{STEP} --target host --budget 1.5MiB -o @/step.onnx"));
    let run = "run @/step.onnx --steps 4 --profile @/p.json --copy-bandwidth 20MB";
    let text = ok(&bench, &format!("{run} --report @/r.html --trace @/t.json"));
    assert!(text.contains("(100 % of it from a profile)"), "{text}");
    let page = std::fs::read_to_string(bench.path("r.html")).unwrap();
    assert!(page.contains("\"timelines\":[\"simulated\",\"measured\"]") && !page.contains("https://"));
    ok(&bench, &format!("{run} --report @/r.json"));
    let data: serde_json::Value =
        serde_json::from_slice(&std::fs::read(bench.path("r.json")).unwrap()).unwrap();
    let steps = data["steps"].as_array().unwrap();
    let names = |lane: u64| -> BTreeSet<&str> {
        let of_lane = steps.iter().filter(|step| step["lane"] == lane);
        of_lane.map(|step| step["name"].as_str().unwrap()).collect()
    };
    for lane in 0..3 {
        assert!(!names(lane).is_empty());
        assert!(names(4 + lane).is_superset(&names(lane)), "lane {lane}");
    }
    // Such a link makes both wait.
    assert!(names(3).iter().chain(&names(7)).all(|name| name.contains(" waits for ")));
    assert!(!names(3).is_empty() && !names(7).is_empty());
    // The bytes in use never exceed the planned ones, in either.
    for curve in ["before", "after"] {
        let points = data["memory"][curve].as_array().unwrap();
        let most = points
            .iter()
            .map(|point| point.as_array().unwrap()[1..].iter().map(|b| b.as_u64().unwrap()).sum::<u64>());
        let most = most.max().unwrap();
        assert!(0 < most && most <= data["budget_bytes"].as_u64().unwrap(), "{curve}: {most}");
    }
    // Stalls in the trace name the copy that is waited for.
    let trace: serde_json::Value =
        serde_json::from_slice(&std::fs::read(bench.path("t.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let copies: BTreeSet<&str> =
        events.iter().filter(|e| e["args"]["bytes"].is_u64()).filter_map(|e| e["name"].as_str()).collect();
    let stalls: Vec<&str> = events
        .iter()
        .filter(|event| event["tid"] == 3 && event["ph"] == "X")
        .map(|event| event["name"].as_str().unwrap().split_once(" waits for ").unwrap().1)
        .collect();
    assert!(
        stalls.iter().any(|cause| copies.contains(cause.trim_end_matches(" of the step before"))),
        "{stalls:?}"
    );
}

#[test]
fn a_measured_profile_is_what_planners_read() {
    let bench = Bench::new();
    let text = ok(&bench, &format!("calibrate {STEP} --steps 2 -o @/p.json"));
    assert!(text.contains("kinds of nodes measured in 2 steps"), "{text}");
    let text = ok(&bench, &format!("{STEP} --target host --profile @/p.json --budget 1.5MiB -o @/step.onnx"));
    assert!(text.contains("profile   100.0 %") || text.contains("profile   100 %"), "{text}");
}

/// A step of plain SGD with a frozen parameter of this number of elements.
fn frozen(elements: usize) -> String {
    format!(
        "g (float[{elements}] x, float[{elements}] w, float[{elements}] frozen, float[1] lr) \
           => (float[] loss, float[{elements}] w_new) {{
            [y] float[{elements}] y = Mul(x, w)
            [z] float[{elements}] z = Mul(y, frozen)
            [loss] float[] loss = ReduceSum<keepdims = 0>(z)
            [sgd] float[{elements}] w_new = ai.lmsc.SGDOptimizer(lr, w, z) updates (w as w_new)
        }}"
    )
}

/// Asserts that the call is refused as the input's fault, for all of these reasons.
fn is_refused(bench: &Bench, arguments: &str, reasons: &[&str]) {
    let outcome = bench.run(arguments);
    assert_eq!(outcome.code, 2, "{arguments}: {outcome:?}");
    for reason in reasons {
        assert!(outcome.stderr.contains(reason), "{arguments}: {}", outcome.stderr);
    }
}

#[test]
fn a_checkpoint_holds_all_that_the_next_step_follows_from() {
    let bench = Bench::new();
    bench.write("g.lms", frozen(4));
    write(
        &bench.path("p.safetensors"),
        &[("w", &[4], &[0.5; 4]), ("frozen", &[4], &[2.0, 3.0, 4.0, 5.0]), ("x", &[4], &[1.0; 4])],
    );
    write(&bench.path("lr.safetensors"), &[("lr", &[1], &[0.25])]);
    let run = "run @/g.lms --params @/p.safetensors --feeds @/lr.safetensors";
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    let whole = ok(&bench, &format!("{run} --steps 4 --save @/a.safetensors"));
    ok(&bench, &format!("{run} --steps 2 --save @/b.safetensors"));
    for (given, again) in [("run @/g.lms", "what is small is in the file"), (run, "and may be given again")] {
        let rest = ok(&bench, &format!("{given} --resume @/b.safetensors --steps 2 --save @/c.safetensors"));
        assert_eq!(losses(&rest), losses(&whole)[2..], "{again}");
        assert!(read("a.safetensors") == read("c.safetensors"), "{again}");
    }
    write(&bench.path("lr.safetensors"), &[("lr", &[1], &[0.5])]);
    is_refused(
        &bench,
        &format!("{run} --resume @/b.safetensors"),
        &["`lr` is given other bytes than it had"],
    );
    is_refused(&bench, "run @/g.lms --resume @/b.safetensors --seed 1", &["has the seed 0"]);
    is_refused(&bench, "run @/g.lms --resume @/b.safetensors --skip-closed", &["without --skip-closed"]);
    // Another run from the same values, with another rate.
    ok(&bench, "run @/g.lms --params @/b.safetensors --feeds @/lr.safetensors --steps 1");

    // Random numbers repeat with the seed of the run.
    ok(&bench, "run @/g.lms --seed 7 --steps 4 --save @/a.safetensors");
    ok(&bench, "run @/g.lms --seed 7 --steps 1 --save @/b.safetensors");
    ok(&bench, "run @/g.lms --resume @/b.safetensors --steps 3 --save @/c.safetensors");
    assert!(read("a.safetensors") == read("c.safetensors"));
    let frozen_alone = [("frozen", &[4][..], &[2.0; 4][..])];
    write(&bench.path("p.safetensors"), &frozen_alone);
    let other = "run @/g.lms --params @/p.safetensors --resume @/b.safetensors";
    is_refused(&bench, other, &["`frozen` is given other bytes than it had"]);
}

#[test]
fn tensors_too_large_for_a_checkpoint_are_given_again() {
    let bench = Bench::new();
    const ELEMENTS: usize = 300_000;
    bench.write("g.lms", frozen(ELEMENTS));
    write(&bench.path("p.safetensors"), &[("frozen", &[ELEMENTS], &[2.0; ELEMENTS])]);
    write(&bench.path("q.safetensors"), &[("frozen", &[ELEMENTS], &[3.0; ELEMENTS])]);
    let (run, read) =
        ("run @/g.lms --params @/p.safetensors", |name| std::fs::read(bench.path(name)).unwrap());
    ok(&bench, &format!("{run} --steps 3 --save @/a.safetensors"));
    ok(&bench, &format!("{run} --steps 2 --save @/b.safetensors"));
    assert!(read("b.safetensors").len() < 5 * ELEMENTS);
    let resume = "--resume @/b.safetensors --steps 1 --save @/c.safetensors";
    is_refused(
        &bench,
        &format!("run @/g.lms {resume}"),
        &["`frozen` was given and is too large for the file"],
    );
    let other = format!("run @/g.lms --params @/q.safetensors {resume}");
    is_refused(&bench, &other, &["`frozen` is given other bytes than it had"]);
    assert!(!bench.path("c.safetensors").exists());
    ok(&bench, &format!("{run} {resume}"));
    assert!(read("a.safetensors") == read("c.safetensors"));
}

#[test]
fn a_run_goes_on_with_the_batch_where_it_stopped() {
    let bench = Bench::new();
    bench.write("g.lms", frozen(2));
    write(&bench.path("d.safetensors"), &[("x", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]);
    write(&bench.path("e.safetensors"), &[("x", &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0])]);
    let (run, read) = ("run @/g.lms --data @/d.safetensors", |name| std::fs::read(bench.path(name)).unwrap());
    ok(&bench, &format!("{run} --steps 7 --save @/a.safetensors"));
    ok(&bench, &format!("{run} --steps 2 --save @/b.safetensors"));
    ok(&bench, &format!("{run} --resume @/b.safetensors --steps 5 --save @/c.safetensors"));
    assert!(read("a.safetensors") == read("c.safetensors"));
    let resume = "--resume @/b.safetensors";
    is_refused(&bench, &format!("run @/g.lms {resume}"), &["`x` came from --data; give the same file again"]);
    let other = format!("run @/g.lms --data @/e.safetensors {resume}");
    is_refused(&bench, &other, &["--data has other batches of `x`"]);
    ok(&bench, "run @/g.lms --steps 2 --save @/b.safetensors");
    is_refused(&bench, &format!("{run} {resume}"), &["`x` is in --data, and was not"]);
}

#[test]
fn an_older_checkpoint_is_resumed_if_nothing_is_missing() {
    let bench = Bench::new();
    bench.write("g.lms", frozen(2));
    let w: Vec<u8> = [1.0f32, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let says = [("lmsc".to_owned(), "{\"steps\":2,\"seed\":0}".to_owned())].into();
    let old = serialize([("w", TensorView::new(Dtype::F32, vec![2], &w).unwrap())], Some(says)).unwrap();
    bench.write("old.safetensors", old);
    let resume = "run @/g.lms --resume @/old.safetensors --steps 1";
    is_refused(
        &bench,
        resume,
        &[
            "it does not say what `frozen` was",
            "it does not say what `lr` was",
            "it does not say what `x` was",
        ],
    );
    let all: [(&str, &[usize], &[f32]); 3] =
        [("x", &[2], &[1.0; 2]), ("frozen", &[2], &[1.0; 2]), ("lr", &[1], &[0.5])];
    write(&bench.path("p.safetensors"), &all);
    assert_eq!(losses(&ok(&bench, &format!("{resume} --params @/p.safetensors"))), ["step 3: loss 3"]);
    let newer = [("lmsc".to_owned(), "{\"format\":99,\"steps\":2,\"seed\":0}".to_owned())].into();
    let newer = serialize([("w", TensorView::new(Dtype::F32, vec![2], &w).unwrap())], Some(newer)).unwrap();
    bench.write("old.safetensors", newer);
    is_refused(&bench, resume, &["it is in format 99"]);
}

#[test]
fn random_values_are_told_once() {
    let bench = Bench::new();
    bench.write("g.lms", frozen(2));
    write(&bench.path("p.safetensors"), &[("w", &[2], &[1.0; 2]), ("frozen", &[2], &[1.0; 2])]);
    let told = |arguments: &str| {
        let outcome = bench.run(arguments);
        let json: serde_json::Value = serde_json::from_slice(&outcome.stdout).unwrap();
        (outcome.stderr, json["drawn"].clone())
    };
    let (said, drawn) = told("run @/g.lms --json --params @/p.safetensors --steps 3");
    assert_eq!(
        said,
        "lmsc: note: 2 inputs are not given: 1 random (`x`), 1 set to 0.001 (`lr`); --params gives them\n"
    );
    assert_eq!(drawn, serde_json::json!(["lr", "x"]));
    write(&bench.path("x.safetensors"), &[("x", &[2], &[1.0; 2])]);
    let (said, _) = told("run @/g.lms --json --params @/p.safetensors --data @/x.safetensors");
    assert_eq!(said, "lmsc: note: 1 input is not given: 1 set to 0.001 (`lr`); --params gives it\n");
    write(&bench.path("lr.safetensors"), &[("lr", &[1], &[0.5])]);
    let all = "--params @/p.safetensors --data @/x.safetensors --feeds @/lr.safetensors";
    let (said, drawn) = told(&format!("run @/g.lms --json {all}"));
    assert_eq!((&*said, drawn), ("", serde_json::json!([])));
}

#[test]
fn parameters_are_taken_from_a_model_whose_sizes_are_not_known() {
    let bench = Bench::new();
    bench.write("g.lms", "g (float[10] \"fc.bias\") => (float[10] y) { [a] float[10] y = Neg(\"fc.bias\") }");
    let outcome = bench.run(&format!("run @/g.lms --steps 1 --params {FORWARD}"));
    assert_eq!((outcome.code, &*outcome.stderr), (0, ""));
}

#[test]
fn a_checkpoint_on_the_way_equals_the_one_at_the_end() {
    let bench = Bench::new();
    let run = format!("run {STEP} --params {FORWARD} --steps 7");
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    let whole = ok(&bench, &format!("{run} --save @/a.safetensors"));
    let often = ok(&bench, &format!("{run} --save @/b.safetensors --save-every 3 --trace @/t.json"));
    assert_eq!(losses(&whole), losses(&often));
    assert!(read("a.safetensors") == read("b.safetensors"));
    let trace: serde_json::Value = serde_json::from_slice(&read("t.json")).unwrap();
    let steps = trace["traceEvents"].as_array().unwrap().iter().filter_map(|e| e["args"]["step"].as_u64());
    assert_eq!(steps.collect::<BTreeSet<u64>>(), (0..7).collect());
    assert_eq!(bench.run(&format!("{run} --save-every 3")).code, 2);
}

#[test]
#[cfg(unix)]
fn a_killed_run_loses_no_more_steps_than_were_asked_for() {
    let bench = Bench::new();
    let run = format!("run {STEP} --params {FORWARD}");
    let every = format!("{run} --steps 1000000 --save @/a.safetensors --save-every 2");
    let mut child = start(&bench, &every);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut last = 0;
    for line in lines.map(Result::unwrap).filter(|line| line.starts_with("step ")) {
        last = line.strip_prefix("step ").unwrap().split(':').next().unwrap().parse().unwrap();
        if last == 7 {
            signal("KILL", &child);
        }
    }
    assert_eq!(end(child).0, None);
    assert_eq!(bench.files(), ["a.safetensors"]);
    let rest = ok(
        &bench,
        "run testdata/models/tiny_resnet18/training_model.onnx \
        --optimizer testdata/models/tiny_resnet18/optimizer_model.onnx --dim batch=8 \
        --resume @/a.safetensors --steps 1 --json",
    );
    let rest: serde_json::Value = serde_json::from_str(&rest).unwrap();
    // A loss may be there before the file is.
    assert!(rest["first_step"].as_u64().unwrap() + 2 > last, "{last}: {rest}");
}

#[test]
#[cfg(target_os = "linux")]
fn the_end_of_the_terminal_ends_a_run_that_does_not_ignore_it() {
    let bench = Bench::new();
    let run = format!("run {STEP} --steps 1000000 --save @/a.safetensors");
    let child = start(&bench, &run);
    await_handlers(&child);
    signal("HUP", &child);
    let (code, said) = end(child);
    assert_eq!(code, Some(130), "{said}");
    assert!(
        said.contains("lmsc: error[LMS0301]: interrupted after ") && bench.path("a.safetensors").exists(),
        "{said}"
    );

    let line =
        format!("trap '' HUP; exec env --default-signal=INT,TERM {} {run}", env!("CARGO_BIN_EXE_lmsc"));
    let line = line.replace('@', bench.path("").to_str().unwrap());
    let mut child = Command::new("sh");
    child.args(["-c", &line]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("step 1: loss"));
    signal("HUP", &child);
    assert!(lines.by_ref().take(100).all(|line| line.unwrap().starts_with("step ")));
    signal("INT", &child);
    lines.for_each(drop);
    assert_eq!(end(child).0, Some(130));
}

/// No thread has so large a stack, so none starts.
const NO_THREADS: &str = "RUST_MIN_STACK=140737488355328";

#[test]
#[cfg(target_os = "linux")]
fn where_no_thread_is_to_be_had_one_does_everything() {
    let bench = Bench::new();
    let plan = format!("{STEP} --target host --budget 1.5MiB");
    ok(&bench, &format!("{plan} -o @/a.onnx"));
    let outcome = bench.shell(&format!("{NO_THREADS} lmsc {plan} -o @/b.onnx"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    assert!(read("a.onnx") == read("b.onnx"));
    let run = format!("run {STEP} --steps 2");
    let expected = ok(&bench, &run);
    let outcome = bench.shell(&format!("{NO_THREADS} lmsc {run}"));
    assert_eq!(outcome.code, 0, "{outcome:?}");
    assert_eq!(losses(std::str::from_utf8(&outcome.stdout).unwrap()), losses(&expected));
    let outcome = bench.shell(&format!("{NO_THREADS} lmsc run @/a.onnx --steps 2"));
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(outcome.stderr.contains("the system does not give the thread that copies (out)"), "{outcome:?}");
    assert!(outcome.stderr.contains("\nhelp: allow the process more threads"), "{outcome:?}");
    let outcome = bench.shell(&format!("{NO_THREADS} lmsc calibrate {STEP} --steps 1 -o @/p.json"));
    assert_eq!(outcome.code, 1, "{outcome:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_model_that_is_cut_off_while_it_runs_does_not_matter() {
    let bench = Bench::new();
    ok(&bench, &format!("{STEP} --target host --budget 1.5MiB -o @/original.onnx"));
    let calls = ["run @/step.onnx", "@/step.onnx --budget 1.5MiB --run"];
    for call in calls {
        std::fs::copy(bench.path("original.onnx"), bench.path("step.onnx")).unwrap();
        let mut child = start(&bench, &format!("{call} --steps 1000000 --report @/r.html"));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        lines.by_ref().find(|line| line.starts_with("step 1: loss")).unwrap();
        std::fs::File::create(bench.path("step.onnx")).unwrap();
        signal("INT", &child);
        assert!(lines.any(|line| line.contains(" ms a step, predicted ")), "{call}");
        let (code, said) = end(child);
        assert_eq!(code, Some(130), "{call}: {said}");
    }
}

#[test]
fn earlier_generations_of_a_checkpoint_are_kept() {
    let bench = Bench::new();
    bench.write("g.lms", frozen(2));
    ok(&bench, "run @/g.lms --steps 1 --save @/one.safetensors");
    ok(&bench, "run @/g.lms --steps 2 --save @/two.safetensors");
    ok(&bench, "run @/g.lms --steps 3 --save @/c.safetensors --save-every 1 --keep 3");
    let read = |name: &str| std::fs::read(bench.path(name)).unwrap();
    assert!(read("c.safetensors.1") == read("two.safetensors"));
    assert!(read("c.safetensors.2") == read("one.safetensors"));
    assert!(!bench.path("c.safetensors.3").exists());
    let mut bytes = read("c.safetensors");
    *bytes.last_mut().unwrap() ^= 1;
    bench.write("c.safetensors", bytes);
    let reasons = ["it is damaged: `", "the checkpoint before it is "];
    is_refused(&bench, "run @/g.lms --resume @/c.safetensors --steps 1", &reasons);
}

#[test]
fn files_that_are_read_or_written_twice_are_refused() {
    let bench = Bench::new();
    bench.write("g.lms", frozen(2));
    write(&bench.path("p.safetensors"), &[("w", &[2], &[1.0; 2])]);
    std::os::unix::fs::symlink(bench.path("g.lms"), bench.path("link")).unwrap();
    for written in [
        "--save @/g.lms",
        "--trace @/g.lms",
        "--save @/link",
        "--params @/p.safetensors --save @/p.safetensors",
    ] {
        is_refused(&bench, &format!("run @/g.lms {written}"), &["would replace"]);
    }
    is_refused(&bench, "run @/g.lms --save @/a --trace @/a", &["--save and --trace would both write"]);
    is_refused(&bench, "run @/g.lms --save @/a --keep 2 --trace @/a.1", &["would both write"]);
    ok(&bench, "run @/g.lms --steps 1 --save @/a");
    ok(&bench, "run @/g.lms --steps 1 --resume @/a --save @/a");
}

#[test]
fn a_given_number_of_the_step_is_not_counted() {
    let bench = Bench::new();
    let text = "g (int64[1] step, float[1] w) => (float[1] loss, float[1] w_new) {\n\
                [c] float[1] s = Cast<to = 1>(step)\n[l] float[1] loss = Add(w, s)\n\
                [u] float[1] w_new = Add(w, s) after [l] updates (w as w_new)\n}\n";
    bench.write("g.lms", text);
    let w = [0.0f32].map(f32::to_le_bytes).concat();
    let step = 1000i64.to_le_bytes();
    let tensors = [
        ("w", TensorView::new(Dtype::F32, vec![1], &w).unwrap()),
        ("step", TensorView::new(Dtype::I64, vec![1], &step).unwrap()),
    ];
    bench.write("p.safetensors", serialize(tensors, None).unwrap());
    let ran = "run @/g.lms --params @/p.safetensors --steps 2 --fetch w_new --out @/o.safetensors --save @/c.safetensors";
    ok(&bench, ran);
    let value = |name: &str| {
        let bytes = std::fs::read(bench.path(name)).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        f32::from_le_bytes(*tensors.tensor("w_new").unwrap().data().first_chunk().unwrap())
    };
    assert_eq!(value("o.safetensors"), 2000.0);
    ok(&bench, "run @/g.lms --resume @/c.safetensors --steps 1 --fetch w_new --out @/o.safetensors");
    assert_eq!(value("o.safetensors"), 3000.0);
}
