//! `cargo xtask ci`: the steps of CI in their order, and the table of their times.

mod job;
mod options;
mod schedule;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use job::{Job, Tests, cargo};

use crate::{manifest, tidy};
pub(crate) use options::Options;
use schedule::Report;

/// The release of cargo-deny that CI installs where none is.
const CARGO_DENY: &str = "cargo-deny@0.20.2";

/// Features that need more than a Rust toolchain: LLVM.
const FOREIGN_FEATURES: &[&str] = &["melior"];

/// The packages that every step builds: with others, or fewer, cargo would build some of them again with other features.
const BUILT: &str = "--workspace";

/// Whether plans or bounds have become worse than `papers/benches/ratios.txt` says. No time is compared: the test build suffices.
const RATIOS: [&str; 7] = ["bench", "--profile", "dev", BUILT, "--bench=ratios", "--", "--short"];

/// All tests but those in documentation, which are a step of their own, so that the name of a failed step says which failed.
/// The step runs the slow ones, too, which `cargo test` leaves out. `--tests` has the libraries, too, but for the extension module
/// of Python, whose manifest says that it has none: `--lib` would link a program that may lack symbols of the interpreter.
const TESTS: [&str; 3] = ["--bins", "--tests", "--examples"];

/// The value of `LMSC_THOROUGH` for the gate; for `all`, tests whose cases take many minutes try each of them.
const GATED: &str = "1";

/// A step of CI.
pub(crate) struct Step {
    /// The name that `cargo xtask ci <name>` takes.
    pub(crate) name: &'static str,
    needs: Needs,
    /// Whether the step succeeds.
    run: fn(&mut Job<'_>) -> bool,
}

/// The things that a step shares with others, which order steps that run as parallel jobs.
#[derive(Clone, Copy)]
enum Needs {
    Nothing,
    /// Cargo builds in the workspace's target folder, which it locks: such steps run one after another.
    Folder,
    /// The programs that the step `build` builds: the step runs after it.
    Program,
    ProgramAndFolder,
}

impl Needs {
    fn builds(self) -> bool {
        matches!(self, Needs::Folder | Needs::ProgramAndFolder)
    }

    fn runs_program(self) -> bool {
        matches!(self, Needs::Program | Needs::ProgramAndFolder)
    }
}

const fn step(name: &'static str, needs: Needs, run: fn(&mut Job<'_>) -> bool) -> Step {
    Step { name, needs, run }
}

/// The steps, the fastest failures first. `.github/workflows/ci.yml` lists the first [`GATE`], which `cargo xtask tidy` checks.
pub(crate) const STEPS: [Step; 34] = [
    step("fmt", Needs::Nothing, |job| job.cargo(&["fmt", "--all", "--check"], &[])),
    step("tidy", Needs::Nothing, tidy),
    step("clippy", Needs::Folder, clippy),
    step("build", Needs::Folder, |job| job.test(&[&TESTS[..], &["--no-run"]].concat(), GATED)),
    // The folder is not locked while tests run, so other steps build meanwhile.
    step("test", Needs::Program, |job| job.test(&[&TESTS[..], &["--", "--include-ignored"]].concat(), GATED)),
    // It takes about as long as `test`: beside that, it ends before the short steps are done.
    step("python", Needs::Folder, |job| job.script("check-python", &[])),
    step("doc-test", Needs::Folder, |job| job.test(&["--doc"], GATED)),
    step("doc", Needs::Folder, doc),
    step("ratios", Needs::Folder, |job| job.cargo(&RATIOS, &[])),
    step("deny", Needs::Nothing, deny),
    step("kernels", Needs::Folder, kernels),
    step("nvrtc", Needs::Folder, |job| job.script("check-nvrtc", &[])),
    step("gpu-check", Needs::Program, gpu_check),
    step("mlir", Needs::ProgramAndFolder, |job| job.script("check-mlir", &[])),
    // Other programs see a model or two here, and the rest where they are named.
    step("xla", Needs::Program, |job| job.script("check-xla", &["tiny_mlp", "tiny_gpt2"])),
    step("iree", Needs::Program, |job| job.script("check-iree", &["tiny_mlp"])),
    step("ort", Needs::Program, |job| job.script("check-ort", &[])),
    step("onnx", Needs::Program, |job| job.script("check-onnx", &[])),
    step("survival", Needs::Program, |job| job.script("check-survival", &[])),
    step("docs", Needs::Program, |job| job.script("check-docs", &[]) && job.script("check-release", &[])),
    // It builds nothing; but as the step `mlir` it may install Debian's packages, one at a time.
    step("pages", Needs::ProgramAndFolder, |job| job.script("check-pages", &[])),
    // Experiments, and the long forms of tests whose short forms the step `test` runs; they run where they are named.
    step("test-all", Needs::Program, |job| {
        job.test(&[&TESTS[..], &["--", "--include-ignored"]].concat(), "all")
    }),
    step("nvrtc-all", Needs::Folder, |job| job.script("check-nvrtc", &["--all"])),
    step("xla-all", Needs::Program, |job| job.script("check-xla", &[])),
    step("iree-all", Needs::Program, |job| job.script("check-iree", &[])),
    step("ort-all", Needs::Program, |job| job.script("check-ort", &["--tiny"])),
    step("onnx-all", Needs::Program, |job| job.script("check-onnx", &["--there-and-back"])),
    step("jax", Needs::Program, |job| job.script("check-jax", &[])),
    step("python-all", Needs::ProgramAndFolder, |job| job.script("check-python-all", &[])),
    step("python-thorough", Needs::Folder, |job| job.script("check-python-thorough", &[])),
    step("advisories", Needs::Nothing, |job| cargo_deny(job, &["advisories"])),
    step("reproducible", Needs::Nothing, |job| job.script("check-reproducible", &[])),
    step("recipe", Needs::Nothing, |job| job.script("check-recipe", &[])),
    // It builds in a folder of its own.
    step("fuzz", Needs::Nothing, |job| job.script("fuzz", &[])),
];

/// The number of steps that run without being named. Those after them take longer than a change can wait for.
pub(crate) const GATE: usize = 21;

/// Steps that wait for the weekly run, unless a change touches the files that they check.
const WATCHED: [(&str, &[&str]); 6] = [
    ("nvrtc-all", &["runtime/cuda/kernels/"]),
    ("xla-all", &["mlir/", "passes/src/lower", "src/emit.rs"]),
    ("iree-all", &["mlir/", "passes/src/lower", "src/emit.rs"]),
    ("ort-all", &["onnx/", "passes/src/lower", "src/emit.rs"]),
    ("onnx-all", &["onnx/", "ir/src/text", "mlir/src/read"]),
    ("reproducible", &["scripts/release", "build.rs"]),
];

/// Runs the steps and prints the table of their times.
///
/// The last line printed has the form of `cargo test`'s own summary and sums all tests; a step that fails without a
/// failing test counts as one failure.
pub(crate) fn run(root: &Path, options: &Options) -> ExitCode {
    let started = Instant::now();
    let mut options = options.clone();
    if let Some(revision) = &options.since {
        let Some(files) = changed_since(root, revision) else {
            eprintln!(
                "xtask: git tells no files that changed since `{revision}`: name a revision that this clone has"
            );
            return ExitCode::FAILURE;
        };
        options.steps.extend(watched(&files));
        options.steps.sort_unstable();
        options.steps.dedup();
        if options.steps.is_empty() {
            println!("No step beside the gate checks what changed since {revision}.");
            return ExitCode::SUCCESS;
        }
    }
    let reports = schedule::run(root, &STEPS, &options);
    let seconds = started.elapsed().as_secs_f64();
    let Tests { passed, failed, ignored } = total(&reports);
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    let rows: Vec<_> = reports.into_iter().map(|report| report.row).collect();
    println!("\n{}", table::table(&rows, seconds));
    println!(
        "test result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out; finished in {seconds:.2}s"
    );
    ExitCode::from(u8::from(failed > 0))
}

/// The files that differ from those of a revision, or that it lacks. None if git fails.
fn changed_since(root: &Path, revision: &str) -> Option<Vec<String>> {
    let arguments = ["diff", "--name-only", "--no-renames", "--end-of-options", revision];
    let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.lines().map(str::to_owned).collect())
}

/// The indices of the steps of [`WATCHED`] that check one of the files.
fn watched(files: &[String]) -> Vec<usize> {
    let touches = |folders: &[&str]| files.iter().any(|f| folders.iter().any(|folder| f.starts_with(folder)));
    let chosen = WATCHED.iter().filter(|(_, folders)| touches(folders));
    chosen.filter_map(|(name, _)| STEPS.iter().position(|step| step.name == *name)).collect()
}

/// The sum over all steps. A step that fails has at least one failure, one that succeeds none.
fn total(reports: &[Report]) -> Tests {
    let mut total = Tests::default();
    for Report { row, tests } in reports {
        total.passed += tests.passed;
        total.ignored += tests.ignored;
        total.failed += match row.ended {
            Some(ended) if !ended.ok => tests.failed.max(1),
            _ => 0,
        };
    }
    total
}

/// The workspace's target folder.
fn target(root: &Path) -> PathBuf {
    root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The program that the step `build` builds, if it is there.
fn built_program(root: &Path) -> Option<PathBuf> {
    let program = target(root).join("debug/lmsc");
    program.exists().then_some(program)
}

fn tidy(job: &mut Job<'_>) -> bool {
    let messages = tidy::check(&tidy::Tree::read(job.root));
    for message in &messages {
        job.say(message);
    }
    messages.is_empty()
}

fn clippy(job: &mut Job<'_>) -> bool {
    let features = native_features(job.root);
    job.cargo(&["clippy", BUILT, "--all-targets", &features, "--", "-D", "warnings"], &[])
}

/// The option that turns on every feature of every member that needs nothing but a Rust toolchain. Clippy and rustdoc get the same,
/// so that they check third-party crates once.
fn native_features(root: &Path) -> String {
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
    format!("--features={}", features.join(","))
}

fn doc(job: &mut Job<'_>) -> bool {
    let features = native_features(job.root);
    job.cargo(&["doc", BUILT, "--no-deps", &features], &[("RUSTDOCFLAGS", "-D warnings")])
}

/// Licences, bans and sources. Advisories change while the code does not, so they are a step that no change waits for.
fn deny(job: &mut Job<'_>) -> bool {
    cargo_deny(job, &["licenses", "bans", "sources"])
}

/// Checks of cargo-deny, which is installed where there is none.
fn cargo_deny(job: &mut Job<'_>, checks: &[&str]) -> bool {
    let mut version = Command::new(cargo());
    version.current_dir(job.root).args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !version.status().is_ok_and(|status| status.success()) {
        // Its speed is irrelevant, the time to build it is not.
        let fast = [("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0"), ("CARGO_PROFILE_RELEASE_LTO", "off")];
        let mut install = job.command(&["install", "--locked", CARGO_DENY], &fast);
        // In its own folder: the workspace's target folder may be cached and need not hold it.
        install.env_remove("CARGO_TARGET_DIR");
        if !job.succeeds(install) {
            return false;
        }
    }
    job.cargo(&[&["deny", "check", "--hide-inclusion-graph"], checks].concat(), &[])
}

/// The kernels of CUDA devices on the processor, under sanitizers; without them, and their device, they are part of `test`.
fn kernels(job: &mut Job<'_>) -> bool {
    let needed = [("LMSC_REQUIRE_CXX", "1"), ("LMSC_SANITIZERS", "1")];
    job.cargo(&["test", BUILT, "--test", "cuda_kernels"], &needed)
}

/// The scripts for a GPU, over a driver that computes nothing: mistakes of scripts cost minutes of a GPU otherwise.
fn gpu_check(job: &mut Job<'_>) -> bool {
    job.script("gpu-check", &["rehearse"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_fails_without_a_failing_test_is_one_failure() {
        let report = |ok, failed| Report {
            row: table::Row { step: "x", ended: Some(table::Ended { seconds: 1.0, ok }) },
            tests: Tests { passed: 2, failed, ignored: 1 },
        };
        let skipped = Report { row: table::Row { step: "y", ended: None }, tests: Tests::default() };
        let total = total(&[report(true, 0), report(false, 0), report(false, 3), skipped]);
        assert_eq!(total, Tests { passed: 6, failed: 4, ignored: 3 });
    }

    #[test]
    fn long_forms_run_where_their_folders_change() {
        let names = |files: &[&str]| -> Vec<_> {
            let files: Vec<_> = files.iter().map(|&f| f.to_owned()).collect();
            watched(&files).into_iter().map(|at| STEPS[at].name).collect()
        };
        assert_eq!(names(&["README.md", "plan/src/lib.rs"]), [""; 0]);
        assert_eq!(names(&["mlir/src/lib.rs"]), ["xla-all", "iree-all"]);
        assert_eq!(
            names(&["onnx/src/lib.rs", "src/emit.rs"]),
            ["xla-all", "iree-all", "ort-all", "onnx-all"]
        );
        for (name, folders) in WATCHED {
            assert!(STEPS[GATE..].iter().any(|step| step.name == name), "{name}");
            for folder in folders {
                assert!(crate::root().join(folder).exists(), "{folder}");
            }
        }
    }

    #[test]
    fn the_gate_ends_with_the_documentation() {
        assert_eq!(STEPS[GATE - 1].name, "pages");
    }

    #[test]
    fn foreign_features_are_left_out() {
        let features = native_features(crate::root());
        assert!(features.contains("/sensitivity") && !features.contains("melior"), "{features}");
    }
}
