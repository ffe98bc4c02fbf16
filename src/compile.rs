//! The stages of the main command: read the model, plan, prove, write and report.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lmsc_ir::equiv::{Difference, Equivalence};
use lmsc_ir::{Bytes, Graph};
use lmsc_onnx::file::Opened;
use lmsc_onnx::{Dims, Model};
use lmsc_passes::{PassCx, Pipeline, Ran, TFLMS};
use lmsc_plan::schedule::Watch;
use lmsc_plan::{Cause, Refusal};

use crate::cli::{CompileArgs, Emit, Form};
use crate::emit::{self, Emitted};
use crate::load::{self, Loaded};
use crate::progress::{Search, Stage};
use crate::proof::Written;
use crate::report::{GraphFacts, MemoryFacts, ProfileFacts, Report, WrittenFacts};
use crate::state::StateFacts;
use crate::{
    Caller, Code, Compiled, Error, Warning, beyond, compiler, differs, external, facts, floors_of, hash,
    is_page, look, machine, no_budget, pages_of, pass_cx, report, run, saved, saved_plan, side_by_side,
    smaller, warning, write_atomically,
};

/// Compiles a model, for the command or for the library.
pub(crate) fn compile_for<'a>(args: &'a CompileArgs, caller: Caller<'a>) -> Result<Compiled, Error> {
    let machine = machine(args.plan.machine.target.as_deref(), args.plan.machine.profile.as_deref())?;
    let mut job = Job::new(args, caller);
    let mut step = job.read()?;
    let planned = job.plan(&mut step, machine)?;
    let proven = job.prove(&mut step, &planned)?;
    job.write(&step, &planned, &proven)?;
    job.report(step, planned, proven)
}

/// One call of the main command.
struct Job<'a> {
    args: &'a CompileArgs,
    is_library: bool,
    nothing_planned: bool,
    /// The bytes of the model, if the library got them.
    bytes: Option<bytes::Bytes>,
    /// The library's watch of the planner's search.
    followed: Option<Arc<Watch>>,
    /// The command's standard output.
    out: Option<&'a mut dyn Write>,
    stage: Stage,
}

/// A training step: as it was read, and as the passes rewrite it.
struct Step {
    original: Graph,
    graph: Graph,
    /// The ONNX file, until it is prepared for writing; `None` for text.
    model: Option<Model>,
    dims: Dims,
    /// Whether the model differs from the file.
    edited: bool,
    warnings: Vec<Warning>,
    folder: Option<PathBuf>,
    mapped: Vec<Arc<Opened>>,
    fixed: Vec<String>,
    /// Whether the step was read from text.
    of_text: bool,
}

/// A step after the passes: their context, and the outcome of each.
struct Planned {
    cx: PassCx,
    ran: Vec<Ran>,
    /// Facts about the graph that was read.
    graph_facts: GraphFacts,
    before: MemoryFacts,
    profile: Option<ProfileFacts>,
}

/// A step that is proven to compute the same as the original, within its budgets.
struct Proven<'a> {
    proof: Equivalence,
    after: MemoryFacts,
    hash: String,
    /// The output file's contents.
    emitted: Option<Emitted>,
    /// The file of `--save-plan` and its contents.
    saved: Option<(&'a Path, String)>,
    /// The plan, for the library.
    plan: Option<String>,
    source: Option<compiler::Source>,
}

impl<'a> Job<'a> {
    fn new(args: &'a CompileArgs, caller: Caller<'a>) -> Job<'a> {
        let nothing_planned = args.plans_nothing();
        match caller {
            Caller::Command { out } => {
                let (out, stage) = (Some(out), Stage::new());
                Job { args, is_library: false, nothing_planned, bytes: None, followed: None, out, stage }
            }
            Caller::Library { bytes, watch: followed } => {
                let stage = Stage::hidden();
                Job { args, is_library: true, nothing_planned, bytes, followed, out: None, stage }
            }
        }
    }

    /// Reads the model.
    fn read(&mut self) -> Result<Step, Error> {
        let args = self.args;
        self.stage.show("reading");
        // Another program may truncate a mapped file, and that must not end the process of a library's user.
        let purpose = if self.is_library { load::Purpose::Run } else { load::Purpose::Rewrite };
        let loaded = load::step(args.input.path(), self.bytes.take(), &args.input.binding, purpose)?;
        let Loaded { graph, model, dims, edited, warnings } = loaded;
        if !self.is_library {
            warning::warn(&warnings)?;
        }
        for output in args.output.iter().chain(&args.report).chain(&args.save_plan).chain(&args.trace_plan) {
            model.iter().try_for_each(|model| external::check_not_data(model, output))?;
        }
        if !self.is_library {
            run::compute_here(&graph);
        }
        Ok(Step {
            folder: model.as_ref().and_then(|model| model.folder.clone()),
            mapped: model.as_ref().map_or_else(Vec::new, |model| model.mapped.clone()),
            fixed: model.as_ref().map(lmsc_onnx::fixed_values).unwrap_or_default(),
            of_text: model.is_none(),
            original: graph.clone(),
            graph,
            model,
            dims,
            edited,
            warnings,
        })
    }

    /// Runs the passes.
    fn plan(&mut self, step: &mut Step, machine: PassCx) -> Result<Planned, Error> {
        let args = self.args;
        let Step { original, graph, .. } = step;
        if !self.is_library && self.nothing_planned && (args.output.is_none() || args.run) {
            return Err(no_budget(&pass_cx(&args.plan, machine, original)?, original));
        }
        self.stage.show("planning");
        let stage = &self.stage;
        let planner = args.plan.search.planner.called().name;
        let keep_plan = args.save_plan.is_some() || self.is_library && planner != TFLMS;
        // ONNX Runtime, XLA and IREE fold copies of constants when they load or compile a model.
        let emit = args.output.as_deref().map(|output| args.emit(output));
        let weights_stay = args.form == Form::Ort || matches!(emit, Some(Emit::MlirXla | Emit::MlirIree));
        // IREE's compiler fuses copies of small tensors into the operators beside them.
        let small_stay = matches!(emit, Some(Emit::MlirIree));
        let search = (!self.is_library).then(|| stage.search(args.trace_plan.is_some()));
        let watch = self.followed.take().or_else(|| search.as_ref().map(Search::watch));
        let cx =
            PassCx { keep_plan, weights_stay, small_stay, watch, ..pass_cx(&args.plan, machine, original)? };
        let passes = if self.nothing_planned { Pipeline::new() } else { Pipeline::of_planner(planner) };
        let passes = args.look.limited(passes);
        let ((graph_facts, before, profile), ran) = side_by_side(
            || {
                let facts = facts(original, &cx);
                stage.above(|| report::first_facts(args.input.path(), &facts.0, &facts.1));
                facts
            },
            || look::run(graph, &passes, &cx, &args.look),
        );
        if let (Some(search), Some(file)) = (&search, &args.trace_plan) {
            search.write_decisions(file)?;
        }
        drop(search);
        let cx = PassCx { watch: None, ..cx };
        let ran = ran.map_err(|e| smaller(floors_of(e, original, &cx), &args.input.binding))?;
        Ok(Planned { cx, ran, graph_facts, before, profile })
    }

    /// Proves the step, and prepares the output.
    fn prove(&self, step: &mut Step, planned: &Planned) -> Result<Proven<'a>, Error> {
        let args = self.args;
        let Planned { cx, ran, .. } = planned;
        self.stage.show("proving");
        // The bytes of the model are read from here on, possibly long after the file was opened.
        let mut files = step.mapped.iter();
        files.try_for_each(|file| file.check()).map_err(|e| Error::new(Code::File, e.to_string()))?;
        let changed = step.edited || ran.iter().any(|r| r.outcome.changed);
        let source = self.is_library.then(|| compiler::Source {
            args: args.clone(),
            model: step.model.clone(),
            dims: step.dims.clone(),
            changed,
        });
        let model = step.model.take();
        let Step { original, graph, dims, .. } = &*step;
        // The output is prepared during the proof and written after it.
        let ((proof, proven_in), (after, hash, emitted)) = side_by_side(
            || look::timed(|| lmsc_ir::equiv::check(original, graph)),
            || {
                let after = cx.memory(graph);
                let hash = hash(graph);
                let emit = |output| {
                    let pages = pages_of(ran);
                    let says = emit::Says::of(graph, cx, (after.peak(), pages), &hash, self.nothing_planned);
                    Emitted::new(args, model, graph, changed, dims, says, output)
                };
                let emitted = args.output.as_deref().map(emit);
                (MemoryFacts::of(graph, &after), hash, emitted)
            },
        );
        look::print_times(&args.look, ran, proven_in);
        let proof = proof.map_err(|difference| unproven(difference, cx))?;
        check_budgets(args, original, &after, cx)?;
        let saved = args.save_plan.as_deref().map(|file| saved(file, ran)).transpose()?;
        let plan = if self.is_library { saved_plan(ran) } else { None };
        Ok(Proven { proof, after, hash, emitted: emitted.transpose()?, saved, plan, source })
    }

    /// Writes the step to its file or to standard output, reads it back, and proves the result.
    fn write(&mut self, step: &Step, planned: &Planned, proven: &Proven<'_>) -> Result<(), Error> {
        let args = self.args;
        let (Some(output), Some(emitted)) = (&args.output, &proven.emitted) else { return Ok(()) };
        let written = Written {
            path: output,
            emit: args.emit(output),
            binding: &args.input.binding,
            original: &step.original,
            result: &step.graph,
            folder: step.folder.as_deref(),
            cx: &planned.cx,
            of_text: step.of_text,
        };
        self.stage.show("writing and reading back");
        match &mut self.out {
            Some(out) if output == Path::new("-") => {
                let bytes = emitted.to_bytes()?;
                written.check_bytes(&bytes)?;
                let write = out.write_all(&bytes).and_then(|()| out.flush());
                // The reader of a pipe may have closed it.
                let is_failure = |e: &std::io::Error| e.kind() != std::io::ErrorKind::BrokenPipe;
                write.err().filter(is_failure).map_or(Ok(()), |e| Err(Error::writing(output, &e)))
            }
            _ => {
                emitted.write(output)?;
                written.read_back()
            }
        }
    }

    /// Collects the report; writes the report and the plan to the files that the options name.
    fn report(self, step: Step, planned: Planned, proven: Proven<'_>) -> Result<Compiled, Error> {
        let args = self.args;
        self.stage.done();
        let Planned { cx, ran, graph_facts, before, profile } = planned;
        let Proven { proof, after, hash, emitted, saved, plan, source } = proven;
        let pages = pages_of(&ran);
        let model = args.input.path().display().to_string();
        let report = report(model, (graph_facts, profile), (before, after), &cx, ran, &proof, hash);
        let state = StateFacts::of(&step.original);
        let written =
            args.output.iter().filter(|_| emitted.is_some()).filter_map(|output| WrittenFacts::of(output));
        let report = Report { warnings: step.warnings, state, written: written.collect(), ..report };
        if let Some(file) = args.report.as_deref().filter(|file| !is_page(file)) {
            let json = serde_json::to_string_pretty(&report).expect("a report is JSON") + "\n";
            write_atomically(file, |w| w.write_all(json.as_bytes()))?;
        }
        if let Some((file, json)) = saved {
            write_atomically(file, |w| w.write_all(json.as_bytes()))?;
        }
        let Step { original, graph, folder, mapped, fixed, .. } = step;
        let graphs = [original, graph];
        Ok(Compiled { report, graphs, folder, mapped, fixed, cx, pages, plan, source, _emitted: emitted })
    }
}

/// The error of a step that computes something else: the fault of a given plan, else a bug of lmsc.
fn unproven(difference: Difference, cx: &PassCx) -> Error {
    match &cx.given {
        Some(given) => {
            let message =
                format!("{}: it is not valid: the rewritten graph differs: {difference}", given.name);
            Error::new(Code::GivenPlan, message).with_help("plan anew, without --plan")
        }
        None => differs(difference),
    }
}

/// Refuses a step whose memory is above the budget of the device or of the host.
fn check_budgets(
    args: &CompileArgs,
    original: &Graph,
    after: &MemoryFacts,
    cx: &PassCx,
) -> Result<(), Error> {
    if let Some(budget) = cx.budget.filter(|budget| after.peak > budget.0) {
        return Err(beyond(args, original, [Bytes(after.peak), budget], cx));
    }
    let (host, host_budget) = (Bytes(after.host_peak), cx.host_budget());
    if host > host_budget {
        let budget = cx.whole_budget().unwrap_or_default();
        let refusal = Refusal::new(Cause::HostPeak { host_budget }, budget, Some(host)).with_help(
            "give a larger --host-budget, or --planner auto, which computes again what has no room there",
        );
        return Err(refusal.into());
    }
    Ok(())
}
