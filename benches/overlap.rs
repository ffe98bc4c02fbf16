//! How much of the copying is hidden on this machine, where it takes as long as computing.
//!
//! `cargo bench --bench overlap` runs a user's commands: `lmsc calibrate`, plans with `swap-only`, and `lmsc
//! run` of gradients, with the bandwidth for which all copies of the step, one after the other, take as long as
//! its operators, or a tenth less. Of five budgets it takes the tightest for which the simulated exposed time
//! of the plan is less than 5 % of the step, and prints the measured share beside it. It fails where computing
//! waits for copies in 15 % of a step or more.

#![allow(clippy::print_stdout, reason = "its answer is what it prints")]

use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;

/// A folder of `testdata/models` and the size of a step, which takes about a second.
const MODEL: &str = "resnet18";
const SIZE: &str = "batch=8";

/// Limits of the exposed time, in percent of a step: simulated, and measured.
const SIMULATED: f64 = 5.0;
const MEASURED: f64 = 15.0;

/// Steps that are run.
const STEPS: &str = "8";

fn main() -> ExitCode {
    lmsc_kernels::compute_here(usize::MAX);
    let case = Case::new();
    let Some(planned) = case.tightest() else {
        println!("no budget leaves less than {SIMULATED} % of a step exposed");
        return ExitCode::FAILURE;
    };
    if case.run(&planned) < MEASURED { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A model, and a folder for the files made from it.
struct Case {
    read: Vec<String>,
    folder: tempfile::TempDir,
}

/// A plan whose copies take as long as computing.
struct Planned {
    budget: u64,
    bandwidth: u64,
    /// Of the step, in percent.
    exposed: f64,
}

impl Case {
    fn new() -> Case {
        let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/models").join(MODEL);
        let model = model.join("training_model.onnx").display().to_string();
        let read = vec![model, "--dim".to_owned(), SIZE.to_owned()];
        let case = Case { read, folder: tempfile::tempdir().expect("a folder") };
        case.lmsc(&["calibrate"], &["-o", &case.path("profile.json")]);
        case
    }

    fn path(&self, file: &str) -> String {
        self.folder.path().join(file).display().to_string()
    }

    /// Standard output of the command.
    fn lmsc(&self, command: &[&str], arguments: &[&str]) -> String {
        let mut lmsc = Command::new(env!("CARGO_BIN_EXE_lmsc"));
        let out = lmsc.args(command).args(&self.read).args(arguments).output().expect("it starts");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).expect("it prints text")
    }

    fn json(&self, command: &[&str], arguments: &[&str]) -> Value {
        serde_json::from_str(&self.lmsc(command, arguments)).expect("it prints JSON")
    }

    /// The plan for the tightest budget that exposes little, by a profile with its link.
    fn tightest(&self) -> Option<Planned> {
        let peak = self.json(&["inspect"], &["--json"])["memory"]["peak"].as_u64().expect("bytes");
        (5..10).find_map(|tenths| self.planned(peak / 10 * tenths))
    }

    /// The plan for the budget over a link for which its copies take as long as its operators, if it exposes little.
    fn planned(&self, budget: u64) -> Option<Planned> {
        let text = std::fs::read_to_string(self.path("profile.json")).expect("the profile");
        let mut profile: Value = serde_json::from_str(&text).expect("it is JSON");
        // The swap set depends on the link, and the link on the swap set: iterate.
        for _ in 0..8 {
            std::fs::write(self.path("link.json"), profile.to_string()).expect("it is written");
            let plan = self.plan(budget)?;
            let copied = plan["swapped_bytes"].as_u64()? + plan["returned_bytes"].as_u64()?;
            let compute = plan["compute_ms"].as_f64()?;
            let exposed = 100.0 * (1.0 - compute / plan["makespan_ms"].as_f64()?);
            let as_long = copied as f64 / compute * 1e3;
            let link = profile["link"].as_object_mut()?;
            let bandwidth = link["out_bytes_per_second"].as_u64()?;
            let takes_as_long = copied > 0 && (0.98..1.12).contains(&(bandwidth as f64 / as_long));
            if takes_as_long && exposed < SIMULATED {
                return Some(Planned { budget, bandwidth, exposed });
            }
            let rates = link.iter_mut().filter(|(key, _)| key.ends_with("per_second"));
            rates.for_each(|(_, rate)| *rate = ((as_long * 1.05) as u64).into());
        }
        None
    }

    fn plan(&self, budget: u64) -> Option<Value> {
        let mut lmsc = Command::new(env!("CARGO_BIN_EXE_lmsc"));
        let (profile, budget) = (self.path("link.json"), budget.to_string());
        lmsc.arg("plan").args(&self.read).args(["--json", "--planner", "swap-only", "--target", "host"]);
        let out = lmsc.args(["--profile", &profile, "--budget", &budget]).output().expect("it starts");
        serde_json::from_slice(&out.stdout).ok()
    }

    /// Runs it, prints a line, and says how much of a step computing waited, in percent.
    fn run(&self, planned: &Planned) -> f64 {
        let (profile, model) = (self.path("link.json"), self.path("model.onnx"));
        let budget = planned.budget.to_string();
        let how = ["--planner", "swap-only", "--target", "host", "--profile", &profile, "--budget", &budget];
        self.lmsc(&[], &[&how[..], &["-o", &model]].concat());
        let mut lmsc = Command::new(env!("CARGO_BIN_EXE_lmsc"));
        lmsc.args(["run", &model, "--json", "--steps", STEPS, "--profile", &profile]);
        let out =
            lmsc.args(["--copy-bandwidth", &planned.bandwidth.to_string()]).output().expect("it starts");
        let ran: Value = serde_json::from_slice(&out.stdout).expect("it prints JSON");
        let number = |key: &str| ran[key].as_f64().expect("a number");
        let mut steps: Vec<f64> =
            ran["step_seconds"].as_array().expect("steps").iter().filter_map(Value::as_f64).collect();
        steps[1..].sort_by(f64::total_cmp);
        let step = steps[1 + steps.len() / 2];
        let measured = 100.0 * number("stalled_seconds") / step;
        println!(
            "{MODEL} {SIZE}, {:.0} MiB: {:.0} MiB each way at {:.0} MB/s; exposed {:.1} % simulated, {measured:.1} % measured; \
             {:.0} ms a step simulated, {:.0} ms measured",
            planned.budget as f64 / 1048576.0,
            number("copied_out") / 1048576.0,
            planned.bandwidth as f64 / 1e6,
            planned.exposed,
            1e3 * number("predicted_step_seconds"),
            1e3 * step,
        );
        measured
    }
}
