//! `lmsc run`, and the main command with `--run`.

use std::io::Write;
use std::path::Path;

use lmsc_ir::words;
use lmsc_onnx::key;
use lmsc_passes::PassCx;
use serde::Serialize;

use crate::budget::Budget;
use crate::cli::args::{CompileArgs, RunArgs};
use crate::compile::Compiled;
use crate::context::{of_machine, with_budgets};
use crate::files::is_page;
use crate::report::Report;
use crate::run::{
    Files, Job, RunFacts, RunOptions, Tensors, check_targets, compute_here, inline_small, is_planned,
    metadata, planned_budget, planned_engines, planned_pages, predicted_by,
};
use crate::{Code, Error, load, targets, term};

/// Runs a model's steps, and prints losses, times and memory.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) if the step does not fit, or if `--check-numerics` finds a value that is not a
/// number; [`ErrorKind::Interrupted`](crate::ErrorKind) if a signal ended the run; other kinds as their documentation says.
pub fn run(args: &RunArgs, out: &mut dyn Write) -> Result<(), Error> {
    let options = args.options.options();
    check_targets(&options, args.report.as_deref())?;
    let path = args.input.path();
    let device = args.on.device(&options)?;
    let binding = args.input.binding.binding();
    let load::Loaded { mut graph, model, warnings, .. } = load::load_to_run(path, &binding)?;
    not_fixed(&options, &model.as_ref().map(lmsc_onnx::fixed_values).unwrap_or_default())?;
    compute_here(&graph);
    let mut files = Files::new(model.as_ref().and_then(|model| model.folder.clone()));
    inline_small(&mut graph, &mut files)?;
    let pages = model.as_ref().and_then(planned_pages);
    let holds = graph.has_addresses() || pages.is_some();
    let planned = model.as_ref().filter(|_| holds).and_then(planned_budget);
    let planned_for = model.as_ref().and_then(|model| metadata(model, key::TARGET)).map(str::to_owned);
    let engines = model.as_ref().and_then(planned_engines);
    // From here on, the graph holds all of the model's bytes that are still needed.
    drop(model);
    let profile = targets::read_profile(args.profile.as_deref())?;
    let cx =
        of_machine(PassCx { target: predicted_by(device), profile, ..PassCx::default() }, device.precision());
    let cx = with_budgets(cx, &graph, args.budget.or(planned.map(Budget::Bytes)), None)?;
    // A plan in pages keeps its budget only in memory that is mapped in pages.
    let chunk = options.chunk.or(pages.filter(|_| cx.budget.is_some()));
    let options = &RunOptions { chunk, ..options };
    let verbose = term::verbosity() > 0;
    let is_planned = is_planned(&graph);
    let job = Job {
        path,
        graph,
        is_planned,
        files,
        mapped: &[],
        cx: &cx,
        options,
        device,
        planned_for,
        engines,
        verbose,
    };
    let ran = job.run(args.report.as_deref(), (!args.json).then_some(&mut *out))?;
    if args.json {
        let json = serde_json::to_string_pretty(&ran.report.answer(&warnings)).expect("a report is JSON");
        writeln!(out, "{}", words::shown(&json)).map_err(|e| Error::writing(Path::new("-"), &e))?;
    }
    ran.end
}

/// The report of a compilation, and that of a run of its result.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CompiledAndRun<'a> {
    #[serde(flatten)]
    report: &'a Report,
    /// With `--run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunFacts>,
}

/// Runs steps of a compiled model, and prints losses, times and memory; as JSON, together with the report of the
/// compilation.
///
/// # Errors
/// As [`run()`].
pub fn run_compiled(args: &CompileArgs, compiled: &Compiled, out: &mut dyn Write) -> Result<(), Error> {
    let cx = compiled.asked();
    let options = args.options.options();
    not_fixed(&options, &compiled.fixed)?;
    let (mut graph, mut files) = (compiled.graph().clone(), Files::new(compiled.folder.clone()));
    inline_small(&mut graph, &mut files)?;
    let (path, mapped) = (args.input.path(), &compiled.mapped[..]);
    let chunk = options.chunk.or(compiled.pages());
    let device = args.on.device(&options)?;
    let options = &RunOptions { chunk, ..options };
    let (planned_for, engines, verbose) = (Some(cx.target().name), None, term::verbosity() > 0);
    let is_planned = is_planned(compiled.original());
    let job =
        Job { path, graph, is_planned, files, mapped, cx, options, device, planned_for, engines, verbose };
    let mut print = |text: &str| {
        out.write_all(words::shown(text).as_bytes()).map_err(|e| Error::writing(Path::new("-"), &e))
    };
    let page = args.report.as_deref().filter(|file| is_page(file));
    if !args.json {
        if !term::is_quiet() {
            print(&compiled.report.to_text(verbose))?;
        }
        return job.run(page, Some(out))?.end;
    }
    let ran = job.run(page, None)?;
    let answer = CompiledAndRun { report: &compiled.report, run: Some(ran.report.answer(&[])) };
    print(&(serde_json::to_string_pretty(&answer).expect("a report is JSON") + "\n"))?;
    ran.end
}

/// Refuses files that set inputs to other values than those that were fixed when the step was made.
fn not_fixed(options: &RunOptions, fixed: &[String]) -> Result<(), Error> {
    if fixed.is_empty() {
        return Ok(());
    }
    let is_read = |path: &&Path| path.is_file() && path.extension().is_none_or(|e| e != "onnx");
    let files = [&options.params, &options.data, &options.feeds].into_iter().flatten().map(|path| &**path);
    for path in files.filter(is_read) {
        let tensors = Tensors::read(path)?;
        if let Some(name) = fixed.iter().find(|name| tensors.contains(name)) {
            let problem = format!("it has `{name}`, which is a constant of the step");
            let help = format!("leave `{name}` out of the file, or give it by --value of the original model");
            return Err(Error::in_file(Code::Values, path, problem).with_help(help));
        }
    }
    Ok(())
}
