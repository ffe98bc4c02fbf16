//! Smallest budgets on small training graphs: a refusal states one, and this benchmark plans for it and measures the processor time.
//!
//! `cargo bench --bench floors` prints a table in Markdown, which stands in `bench/floors.md`: for each graph the peak, the smallest
//! budget that the refusal of 1 byte states, and the processor time of planning with addresses for exactly that budget, for 1 % more,
//! and for half of the way to the peak. It fails where a plan is refused, or takes more than [`SECONDS`].

#![allow(clippy::print_stdout, reason = "the benchmark prints a table")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use lmsc::Compiler;
use lmsc::budget::Budget;
use lmsc_ir::Bytes;
use rustix::time::{ClockId, clock_gettime};

/// The most processor time that a plan may take.
const SECONDS: f64 = 2.0;

/// A training graph: its file, and the optimizer beside it, if that is a part of the step.
struct Case {
    model: PathBuf,
    optimizer: Option<PathBuf>,
}

impl Case {
    fn compiler(&self) -> Compiler {
        let compiler = Compiler::new(&self.model);
        match &self.optimizer {
            Some(optimizer) => compiler.optimizer(optimizer),
            None => compiler,
        }
    }

    fn name(&self) -> String {
        let folder = self.model.ancestors().nth(2).and_then(Path::file_name).unwrap_or_default();
        let with = if self.optimizer.is_some() { ", with optimizer" } else { "" };
        format!("{}{with}", folder.display())
    }
}

/// The graphs of `testdata/models/tiny_*/static`, by name, each as gradients alone and as a whole step.
fn cases() -> Vec<Case> {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/models");
    let entries =
        models.read_dir().expect("there are models").map(|entry| entry.expect("it can be read").path());
    let mut folders: Vec<PathBuf> =
        entries.map(|folder| folder.join("static")).filter(|f| f.is_dir()).collect();
    folders.sort();
    let of = |folder: PathBuf| {
        let model = folder.join("training_model.onnx");
        let optimizer = folder.join("optimizer_model.onnx");
        let whole = optimizer.is_file().then(|| Case { model: model.clone(), optimizer: Some(optimizer) });
        [Some(Case { model, optimizer: None }), whole].into_iter().flatten()
    };
    folders.into_iter().filter(|folder| folder.to_string_lossy().contains("tiny_")).flat_map(of).collect()
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).expect("below a billion"))
}

/// Seconds of planning for the budget; none if there is no plan.
fn planned(case: &Case, bytes: u64) -> Option<f64> {
    let start = processor_time();
    let compiled = case.compiler().budget(Budget::Bytes(Bytes(bytes)).into()).compile();
    let seconds = (processor_time() - start).as_secs_f64();
    compiled.ok().map(|_| seconds)
}

fn main() -> ExitCode {
    println!("| step | peak | smallest budget | of the peak | at it, s | 1 % above, s | halfway, s |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let (mut plans, mut refused, mut slowest) = (0, 0, 0.0f64);
    for case in cases() {
        let refusal = case
            .compiler()
            .budget(Budget::Bytes(Bytes(1)).into())
            .compile()
            .err()
            .expect("a byte is too small");
        let smallest = refusal.refusal().and_then(lmsc_plan::Refusal::smallest_budget);
        let smallest = smallest.unwrap_or_else(|| panic!("{}: {refusal}", case.name())).bytes.0;
        let peak = case.compiler().compile().expect("it can be read").report.before.peak;
        let budgets = [smallest, smallest + smallest / 100, smallest.midpoint(peak)];
        let seconds = budgets.map(|budget| planned(&case, budget));
        plans += seconds.len();
        refused += seconds.iter().filter(|plan| plan.is_none()).count();
        slowest = seconds.iter().flatten().copied().fold(slowest, f64::max);
        let cells = seconds.map(|plan| plan.map_or_else(|| "refused".to_owned(), |s| format!("{s:.2}")));
        println!(
            "| {} | {} | {} | {:.2} | {} |",
            case.name(),
            Bytes(peak),
            Bytes(smallest),
            smallest as f64 / peak as f64,
            cells.join(" | ")
        );
    }
    println!("\n{plans} plans, {refused} refused, the slowest in {slowest:.2} s of processor time");
    ExitCode::from(u8::from(refused > 0 || slowest > SECONDS))
}
