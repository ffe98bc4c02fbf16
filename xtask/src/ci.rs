//! `cargo xtask ci`: what CI runs, in its order, stopping at the first step that fails.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::{manifest, tidy};

/// The release of cargo-deny that CI installs where none is.
const CARGO_DENY: &str = "cargo-deny@0.20.2";

/// Features that need more than a Rust toolchain, LLVM and CUDA, or many crates that nothing else does.
const FOREIGN_FEATURES: &[&str] = &["melior", "cuda", "candle"];

/// Whether plans or bounds have become worse than `plan/benches/ratios.txt` says. No time is compared: what was built to be
/// tested does, which `--workspace` makes the same.
const RATIOS: [&str; 8] = ["bench", "--profile", "dev", "--workspace", "--bench", "ratios", "--", "--short"];

/// A step of CI.
pub(crate) struct Step {
    /// What `cargo xtask ci <name>` takes.
    pub(crate) name: &'static str,
    run: fn(&mut Run) -> Outcome,
}

/// The steps, in order: what fails fastest first.
pub(crate) const STEPS: [Step; 19] = [
    Step { name: "fmt", run: |run| run.cargo(&["fmt", "--all", "--check"], &[]) },
    Step { name: "tidy", run: tidy },
    Step { name: "clippy", run: clippy },
    // Doc tests are a step of their own below, so that each failure is told by its step's name.
    Step { name: "test", run: test },
    Step { name: "doc-test", run: |run| run.test(&["--doc"]) },
    Step { name: "doc", run: doc },
    Step { name: "ratios", run: |run| run.cargo(&RATIOS, &[]) },
    Step { name: "deny", run: deny },
    Step { name: "candle", run: candle },
    Step { name: "kernels", run: kernels },
    Step { name: "fuzz", run: |run| run.script("fuzz") },
    Step { name: "nvrtc", run: |run| run.script("check-nvrtc") },
    Step { name: "gpu-check", run: gpu_check },
    Step { name: "mlir", run: |run| run.script("check-mlir") },
    Step { name: "xla", run: |run| run.script("check-xla") },
    Step { name: "iree", run: |run| run.script("check-iree") },
    Step { name: "ort", run: |run| run.script("check-ort") },
    Step { name: "onnx", run: |run| run.script("check-onnx") },
    Step { name: "survival", run: |run| run.script("check-survival") },
];

enum Outcome {
    Ok,
    Failed,
}

impl From<bool> for Outcome {
    fn from(ok: bool) -> Outcome {
        if ok { Outcome::Ok } else { Outcome::Failed }
    }
}

/// One run of CI: where, and the tests counted so far.
struct Run<'a> {
    root: &'a Path,
    tests: Tests,
    /// The program that the step `test` has built, once it has.
    program: Option<PathBuf>,
}

#[derive(Default, Debug, PartialEq)]
struct Tests {
    passed: usize,
    failed: usize,
    ignored: usize,
}

/// Runs the steps named in `only`, or all of them.
///
/// The last line printed has the form of `cargo test`'s own summary and sums all tests; a step that fails without a
/// failing test counts as one failure.
pub(crate) fn run(root: &Path, only: &[&str]) -> ExitCode {
    if let Some(unknown) = only.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        eprintln!("ci: no step `{unknown}`, the steps are: {}", STEPS.map(|step| step.name).join(", "));
        return ExitCode::from(2);
    }
    let started = Instant::now();
    let mut run = Run { root, tests: Tests::default(), program: None };
    let mut failed = None;
    for step in STEPS.iter().filter(|step| only.is_empty() || only.contains(&step.name)) {
        println!("==> {}", step.name);
        let step_started = Instant::now();
        let outcome = (step.run)(&mut run);
        let seconds = step_started.elapsed().as_secs_f64();
        match outcome {
            Outcome::Ok => println!("==> {}: ok, {seconds:.1} s", step.name),
            Outcome::Failed => {
                println!("==> {}: FAILED, {seconds:.1} s; `cargo xtask ci {0}` runs it alone", step.name);
                failed = Some(step.name);
                break;
            }
        }
    }
    let Tests { passed, ignored, failed: failed_tests } = run.tests;
    let (verdict, failures) = match failed {
        None => ("ok", 0),
        Some(_) => ("FAILED", failed_tests.max(1)),
    };
    println!(
        "\ntest result: {verdict}. {passed} passed; {failures} failed; {ignored} ignored; 0 measured; 0 filtered out; finished in {:.2}s",
        started.elapsed().as_secs_f64()
    );
    ExitCode::from(u8::from(failed.is_some()))
}

impl Run<'_> {
    fn command(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
        let mut command = Command::new(cargo());
        command.current_dir(self.root).args(arguments).envs(environment.iter().copied());
        print_command("cargo", arguments);
        command
    }

    fn cargo(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
        succeeds(&mut self.command(arguments, environment)).into()
    }

    /// Runs tests of the whole workspace.
    fn test(&mut self, targets: &[&str]) -> Outcome {
        let arguments = [&["test", "--workspace", "--no-fail-fast"], targets].concat();
        // Snapshots that differ fail, and nothing is written beside them. What needs a C++ compiler has one, and runs whole.
        self.counted(self.command(&arguments, &[("INSTA_UPDATE", "no"), ("LMSC_REQUIRE_CXX", "1")]))
    }

    /// Runs a script, which may run tests.
    fn script(&mut self, name: &str) -> Outcome {
        self.script_with(name, &[])
    }

    fn script_with(&mut self, name: &str, arguments: &[&str]) -> Outcome {
        let path = format!("scripts/{name}");
        print_command(&path, arguments);
        let mut command = Command::new(self.root.join(path));
        command.args(arguments).current_dir(self.root).env("INSTA_UPDATE", "no").env("CARGO", cargo());
        // Otherwise it builds one, with other features of the same packages.
        command.envs(self.program.iter().map(|program| ("LMSC", program)));
        self.counted(command)
    }

    /// Runs a command, shows its output as it comes and counts the tests in it.
    fn counted(&mut self, mut command: Command) -> Outcome {
        let mut child = match command.stdout(Stdio::piped()).spawn() {
            Ok(child) => child,
            Err(error) => {
                println!("cannot start: {error}");
                return Outcome::Failed;
            }
        };
        let output = BufReader::new(child.stdout.take().expect("is piped"));
        let mut stdout = std::io::stdout().lock();
        for line in output.split(b'\n').map_while(Result::ok) {
            // A closed terminal is no reason to stop testing.
            let _ = stdout.write_all(&line).and_then(|()| stdout.write_all(b"\n"));
            self.tests.add(&String::from_utf8_lossy(&line));
        }
        let status = child.wait();
        if let Ok(status) = &status
            && status.code().is_none()
        {
            println!("{status}");
        }
        status.is_ok_and(|status| status.success()).into()
    }
}

impl Tests {
    /// Adds the counts of a line, if it is a summary of `cargo test`.
    fn add(&mut self, line: &str) {
        if !line.starts_with("test result: ") {
            return;
        }
        let words: Vec<&str> = line.split([' ', ';']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<usize>() else { continue };
            match pair[1] {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

fn test(run: &mut Run) -> Outcome {
    let outcome = run.test(&["--lib", "--bins", "--tests", "--examples"]);
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let program = run.root.join(target).join("debug/lmsc");
    run.program = program.exists().then_some(program);
    outcome
}

fn tidy(run: &mut Run) -> Outcome {
    let messages = tidy::check(&tidy::Tree::read(run.root));
    for message in &messages {
        println!("{message}");
    }
    messages.is_empty().into()
}

fn clippy(run: &mut Run) -> Outcome {
    let features = native_features(run.root).join(",");
    let mut arguments = vec!["clippy", "--workspace", "--all-targets"];
    if !features.is_empty() {
        arguments.extend(["--features", &features]);
    }
    run.cargo(&[&arguments[..], &["--", "-D", "warnings"]].concat(), &[])
}

/// Every feature of every member that needs nothing but a Rust toolchain, as `package/feature`.
fn native_features(root: &Path) -> Vec<String> {
    let read =
        |folder: &str| std::fs::read_to_string(root.join(folder).join("Cargo.toml")).unwrap_or_default();
    let mut features = Vec::new();
    for folder in std::iter::once(".".to_owned()).chain(manifest::list(&read("."), "workspace", "members")) {
        let text = read(&folder);
        let Some(package) = manifest::string(&text, "package", "name") else { continue };
        let keys = manifest::keys(&text, "features").into_iter();
        let native = keys.filter(|key| key != "default" && !FOREIGN_FEATURES.contains(&key.as_str()));
        features.extend(native.map(|feature| format!("{package}/{feature}")));
    }
    features
}

fn doc(run: &mut Run) -> Outcome {
    run.cargo(&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Licences, bans and sources. Advisories change while the code does not, so they are no part of a test.
fn deny(run: &mut Run) -> Outcome {
    let mut version = Command::new(cargo());
    version.current_dir(run.root).args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !succeeds(&mut version) {
        // Its speed is irrelevant, the time to build it is not.
        let fast = [("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"), ("CARGO_PROFILE_RELEASE_LTO", "off")];
        let mut install = run.command(&["install", "--locked", CARGO_DENY], &fast);
        // In its own folder: the workspace's target folder may be cached and need not hold it.
        install.env_remove("CARGO_TARGET_DIR");
        if !succeeds(&mut install) {
            return Outcome::Failed;
        }
    }
    run.cargo(&["deny", "check", "licenses", "bans", "sources"], &[])
}

/// The planner `dqn` with the network that the feature `candle` puts in its place; a step of its own for the crates it needs.
/// What is learned in many episodes the step `test` says: that depends on no network's crate.
fn candle(run: &mut Run) -> Outcome {
    let tests = ["test", "--package", "lmsc-plan", "--features", "candle", "--lib", "planners::dqn"];
    run.counted(run.command(&[&tests[..], &["--", "--skip", "what_is_learned"]].concat(), &[]))
}

/// The kernels of CUDA devices on the processor, under sanitizers; without them, and their device, they are part of `test`.
fn kernels(run: &mut Run) -> Outcome {
    let needed = [("LMSC_REQUIRE_CXX", "1"), ("LMSC_SANITIZERS", "1")];
    // As `test` built it.
    run.cargo(&["test", "--workspace", "--test", "cuda_kernels"], &needed)
}

/// What is run on a GPU, over a driver that computes nothing: mistakes of scripts cost minutes of a GPU otherwise.
fn gpu_check(run: &mut Run) -> Outcome {
    run.script_with("gpu-check", &["rehearse"])
}

/// The cargo that runs this program.
fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn print_command(program: &str, arguments: &[&str]) {
    let line: Vec<&str> = std::iter::once(program).chain(arguments.iter().copied()).collect();
    println!("$ {}", line.join(" "));
}

/// Runs a command to its end, its output shown.
fn succeeds(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            println!("cannot start: {error}");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_summed() {
        let mut tests = Tests::default();
        tests.add(
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.02s",
        );
        tests.add(
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1s",
        );
        tests.add("running 12 passed tests");
        assert_eq!(tests, Tests { passed: 4, failed: 2, ignored: 1 });
    }

    #[test]
    fn foreign_features_are_left_out() {
        let features = native_features(crate::root());
        assert!(!features.iter().any(|f| f.ends_with("/melior") || f.ends_with("/cuda")), "{features:?}");
    }
}
