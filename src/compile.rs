//! Compiles a step in stages: read the model, plan, prove, write and report.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lmsc_ir::equiv::{Difference, Equivalence};
use lmsc_ir::{Bytes, Digest, Graph, Phases};
use lmsc_onnx::file::Opened;
use lmsc_onnx::{Dims, Model};
use lmsc_passes::{PassCx, Pipeline, Ran, TFLMS};
use lmsc_plan::schedule::Watch;
use lmsc_plan::{Cause, Refusal};

use crate::context::{machine, pass_cx, step_peak};
use crate::emit::{self, Emitted};
use crate::files::{is_page, write_atomically};
use crate::job::{Emit, Form, Job};
use crate::load::{self, Loaded};
use crate::progress::{Search, Stage};
use crate::proof::{Written, side_by_side};
use crate::refusals::{beyond, floors_of, smaller};
use crate::report::{
    self, GraphFacts, KeptFacts, MemoryFacts, PassFacts, ProfileFacts, ProofFacts, Report, SwappedFacts,
    WrittenFacts,
};
use crate::state::StateFacts;
use crate::{Code, Error, Warning, external, look, run, warning};

/// A compiled step: its report, its graphs, and the data for writing and running it.
///
/// Dropping it releases large graphs, which takes time; a process that is about to end can forget it instead.
pub struct Compiled {
    /// The report of the compilation.
    pub report: Report,
    /// The graph that was read, and the compiled one.
    pub(crate) graphs: [Graph; 2],
    /// The folder of the model's files.
    pub(crate) folder: Option<PathBuf>,
    /// The files to whose mapped bytes the graphs refer.
    pub(crate) mapped: Vec<Arc<Opened>>,
    /// The inputs that are constants of the step.
    pub(crate) fixed: Vec<String>,
    /// The options of the passes.
    pub(crate) cx: PassCx,
    /// The bytes of a page, where the plan is for memory that is mapped in pages.
    pub(crate) pages: Option<Bytes>,
    /// The plan in the form of `--save-plan`; only for the library, and only if a plan was made.
    pub(crate) plan: Option<String>,
    /// The data for writing the model; only for the library.
    pub(crate) source: Option<Source>,
    pub(crate) _emitted: Option<Emitted>,
}

impl Compiled {
    /// The options of the passes.
    pub(crate) fn asked(&self) -> &PassCx {
        &self.cx
    }

    /// The bytes of a page, where the plan is for memory that is mapped in pages.
    pub(crate) fn pages(&self) -> Option<Bytes> {
        self.pages
    }

    /// The graph that was read.
    pub(crate) fn original(&self) -> &Graph {
        &self.graphs[0]
    }

    /// The compiled graph.
    pub fn graph(&self) -> &Graph {
        &self.graphs[1]
    }
}

/// The data for writing a compiled step to a file.
pub(crate) struct Source {
    /// The options of the compilation.
    pub(crate) job: Job,
    /// The file that was read; `None` for text.
    pub(crate) model: Option<Model>,
    /// The values of symbolic dimensions.
    pub(crate) dims: Dims,
    /// Whether the step differs from that file.
    pub(crate) changed: bool,
}

/// The caller of a compilation, which decides the output and the kept data.
pub(crate) enum Caller<'a> {
    /// The command: progress and warnings are shown, and a model may go to `out`. It may run the step afterwards.
    Command { out: &'a mut dyn Write, runs: bool },
    /// The library: nothing is printed, the model may be bytes, and it is kept for [`Compiled::write`].
    Library { bytes: Option<bytes::Bytes>, watch: Option<Arc<Watch>> },
}

/// Compiles a model, for the command or for the library.
pub(crate) fn compile_for<'a>(job: &'a Job, caller: Caller<'a>) -> Result<Compiled, Error> {
    let machine = machine(&job.planning.machine)?;
    let mut compilation = Compilation::new(job, caller);
    let mut step = compilation.read()?;
    let planned = compilation.plan(&mut step, machine)?;
    let proven = compilation.prove(&mut step, &planned)?;
    compilation.write(&step, &planned, &proven)?;
    compilation.report(step, planned, proven)
}

/// A job while it is done.
struct Compilation<'a> {
    job: &'a Job,
    is_library: bool,
    nothing_planned: bool,
    /// The bytes of the model, if the library got them.
    bytes: Option<bytes::Bytes>,
    /// The library's watch of the planner's search.
    followed: Option<Arc<Watch>>,
    /// The command's standard output.
    out: Option<&'a mut dyn Write>,
    /// Whether the command runs the step afterwards.
    runs: bool,
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
    source: Option<Source>,
}

impl<'a> Compilation<'a> {
    fn new(job: &'a Job, caller: Caller<'a>) -> Compilation<'a> {
        let nothing_planned = job.planning.plans_nothing();
        match caller {
            Caller::Command { out, runs } => {
                let (out, stage) = (Some(out), Stage::new());
                let (bytes, followed) = (None, None);
                Compilation { job, is_library: false, nothing_planned, bytes, followed, out, runs, stage }
            }
            Caller::Library { bytes, watch: followed } => {
                let stage = Stage::hidden();
                let (out, runs) = (None, false);
                Compilation { job, is_library: true, nothing_planned, bytes, followed, out, runs, stage }
            }
        }
    }

    /// Reads the model.
    fn read(&mut self) -> Result<Step, Error> {
        let job = self.job;
        self.stage.show("reading");
        // Another program may truncate a mapped file, and that must not end the process of a library's user.
        let purpose = if self.is_library { load::Purpose::Run } else { load::Purpose::Rewrite };
        let loaded = load::step(&job.input.path, self.bytes.take(), &job.input.binding, purpose)?;
        let Loaded { graph, model, dims, edited, warnings } = loaded;
        if !self.is_library {
            warning::warn(&warnings)?;
        }
        for output in job.output.iter().chain(&job.report).chain(&job.save_plan).chain(&job.trace_plan) {
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
        let job = self.job;
        let Step { original, graph, .. } = step;
        if !self.is_library && self.nothing_planned && (job.output.is_none() || self.runs) {
            return Err(no_budget(&pass_cx(&job.planning, machine, original)?, original));
        }
        self.stage.show("planning");
        let stage = &self.stage;
        let planner = job.planning.search.called().name;
        let keep_plan = job.save_plan.is_some() || self.is_library && planner != TFLMS;
        // ONNX Runtime, XLA and IREE fold copies of constants when they load or compile a model.
        let emit = job.output.as_deref().map(|output| job.emit(output));
        let weights_stay = job.form == Form::Ort || matches!(emit, Some(Emit::MlirXla | Emit::MlirIree));
        // IREE's compiler fuses copies of small tensors into the operators beside them.
        let small_stay = matches!(emit, Some(Emit::MlirIree));
        let search = (!self.is_library).then(|| stage.search(job.trace_plan.is_some()));
        let watch = self.followed.take().or_else(|| search.as_ref().map(Search::watch));
        let cx = PassCx {
            keep_plan,
            weights_stay,
            small_stay,
            watch,
            ..pass_cx(&job.planning, machine, original)?
        };
        let passes = if self.nothing_planned { Pipeline::new() } else { Pipeline::of_planner(planner) };
        let passes = job.look.limited(passes);
        let ((graph_facts, before, profile), ran) = side_by_side(
            || {
                let facts = facts(original, &cx);
                stage.above(|| report::first_facts(&job.input.path, &facts.0, &facts.1));
                facts
            },
            || look::run(graph, &passes, &cx, &job.look),
        );
        if let (Some(search), Some(file)) = (&search, &job.trace_plan) {
            search.write_decisions(file)?;
        }
        drop(search);
        let cx = PassCx { watch: None, ..cx };
        let ran = ran.map_err(|e| smaller(floors_of(e, original, &cx), &job.input.binding))?;
        Ok(Planned { cx, ran, graph_facts, before, profile })
    }

    /// Proves the step, and prepares the output.
    fn prove(&self, step: &mut Step, planned: &Planned) -> Result<Proven<'a>, Error> {
        let job = self.job;
        let Planned { cx, ran, .. } = planned;
        self.stage.show("proving");
        // The bytes of the model are read from here on, possibly long after the file was opened.
        let mut files = step.mapped.iter();
        files.try_for_each(|file| file.check()).map_err(|e| Error::new(Code::File, e.to_string()))?;
        let changed = step.edited || ran.iter().any(|r| r.outcome.changed);
        let source = self.is_library.then(|| Source {
            job: job.clone(),
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
                    let precision = (!self.nothing_planned).then_some(job.planning.machine.precision);
                    let says = emit::Says::of(graph, cx, (after.peak(), pages), &hash, precision);
                    Emitted::new(job, model, graph, changed, dims, says, output)
                };
                let emitted = job.output.as_deref().map(emit);
                (MemoryFacts::of(graph, &after), hash, emitted)
            },
        );
        look::print_times(&job.look, ran, proven_in);
        let proof = proof.map_err(|difference| unproven(difference, cx))?;
        check_budgets(job, original, &after, cx)?;
        let saved = job.save_plan.as_deref().map(|file| saved(file, ran)).transpose()?;
        let plan = if self.is_library { saved_plan(ran) } else { None };
        Ok(Proven { proof, after, hash, emitted: emitted.transpose()?, saved, plan, source })
    }

    /// Writes the step to its file or to standard output, reads it back, and proves the result.
    fn write(&mut self, step: &Step, planned: &Planned, proven: &Proven<'_>) -> Result<(), Error> {
        let job = self.job;
        let (Some(output), Some(emitted)) = (&job.output, &proven.emitted) else { return Ok(()) };
        let written = Written {
            path: output,
            emit: job.emit(output),
            binding: &job.input.binding,
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
        let job = self.job;
        self.stage.done();
        let Planned { cx, ran, graph_facts, before, profile } = planned;
        let Proven { proof, after, hash, emitted, saved, plan, source } = proven;
        let pages = pages_of(&ran);
        let model = job.input.path.display().to_string();
        let report = report(model, (graph_facts, profile), (before, after), &cx, ran, &proof, hash);
        let state = StateFacts::of(&step.original);
        let written =
            job.output.iter().filter(|_| emitted.is_some()).filter_map(|output| WrittenFacts::of(output));
        let report = Report { warnings: step.warnings, state, written: written.collect(), ..report };
        if let Some(file) = job.report.as_deref().filter(|file| !is_page(file)) {
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
fn check_budgets(job: &Job, original: &Graph, after: &MemoryFacts, cx: &PassCx) -> Result<(), Error> {
    if let Some(budget) = cx.budget.filter(|budget| after.peak > budget.0) {
        return Err(beyond(job, original, [Bytes(after.peak), budget], cx));
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

/// The bytes of a page, where the passes planned for memory that is mapped in pages.
fn pages_of(ran: &[Ran]) -> Option<Bytes> {
    ran.iter().find_map(|ran| ran.outcome.pages)
}

/// The plan that the passes made, as JSON.
fn saved_plan(ran: &[Ran]) -> Option<String> {
    ran.iter().rev().find_map(|ran| ran.outcome.plan.as_ref()).map(|plan| plan.to_json())
}

/// The plan that the passes made, with the file to which it is written.
fn saved<'a>(file: &'a Path, ran: &[Ran]) -> Result<(&'a Path, String), Error> {
    let plan = saved_plan(ran).ok_or_else(|| {
        let message = "--save-plan: nothing was planned that could be saved".to_owned();
        Error::new(Code::Option, message)
            .with_help("leave it out, or give the model as it was before lmsc rewrote it")
    })?;
    Ok((file, plan))
}

/// The error of a call without a budget; it names the step's peak.
fn no_budget(cx: &PassCx, graph: &Graph) -> Error {
    let peak = Bytes(step_peak(graph, &cx.in_arena()).0.saturating_add(cx.constants.0));
    let message = format!(
        "nothing says how much device memory the step may use; as it is, it needs {peak} ({} bytes)",
        peak.0
    );
    Error::new(Code::Option, message).with_help(
        "give --budget: bytes, such as --budget 16GiB, or a share of that peak, such as --budget 0.7x; \
         `lmsc fit MODEL` tells which cards it fits",
    )
}

/// The error of passes that changed the graph's results.
pub(crate) fn differs(difference: Difference) -> Error {
    Error::ours(format!("the rewritten graph differs: {difference}"))
}

/// A hash of the plan: the nodes in order, their operands and results with places, and their control edges.
pub(crate) fn hash(graph: &Graph) -> String {
    let mut names = Vec::new();
    for &id in graph.order() {
        let node = graph.node(id);
        let values = node.operands.iter().chain(&node.results).flatten();
        let after = node.after.iter().map(|&before| &graph.node(before).name);
        for name in [&node.name].into_iter().chain(values.map(|&v| &graph.value(v).name)).chain(after) {
            names.extend_from_slice(name.as_bytes());
            names.push(0);
        }
        for &value in node.results.iter().flatten() {
            names.extend_from_slice(graph.value(value).place.to_string().as_bytes());
        }
        names.push(1);
    }
    Digest::of(&names).to_string()
}

/// The facts about the graph that was read, for the report.
fn facts(original: &Graph, cx: &PassCx) -> (GraphFacts, MemoryFacts, Option<ProfileFacts>) {
    let memory = cx.memory(original);
    let phases = Phases::of(original, |node| cx.scope(node));
    let graph = GraphFacts::of(original, &phases, &memory);
    // The peak that `lmsc inspect` prints.
    let peak = step_peak(original, &cx.in_arena()).0;
    let memory = MemoryFacts { peak, ..MemoryFacts::of(original, &memory) };
    (graph, memory, ProfileFacts::of(cx, original))
}

/// Collects the report.
fn report(
    model: String,
    (graph, profile): (GraphFacts, Option<ProfileFacts>),
    (before, after): (MemoryFacts, MemoryFacts),
    cx: &PassCx,
    ran: Vec<Ran>,
    proof: &Equivalence,
    hash: String,
) -> Report {
    let swaps = || ran.iter().flat_map(|r| &r.outcome.swaps);
    Report {
        format: 1,
        model,
        graph,
        profile,
        budget: cx.whole_budget().map(|b| b.0),
        constants: cx.constants.0,
        state: Vec::new(),
        before,
        after,
        bytes_out: swaps().map(|s| s.bytes_out).sum::<Bytes>().0,
        bytes_in: swaps().map(|s| s.bytes_in).sum::<Bytes>().0,
        swapped: swaps().map(SwappedFacts::from).collect(),
        passes: ran.iter().map(PassFacts::from).collect(),
        kept: ran.into_iter().flat_map(|r| r.outcome.kept).map(KeptFacts::from).collect(),
        proof: ProofFacts::from(proof),
        hash,
        written: Vec::new(),
        warnings: Vec::new(),
    }
}
