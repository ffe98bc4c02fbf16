//! Runs steps on the host or on a CUDA device.

mod checkpoint;
mod compare;
mod fixed;
mod options;
mod page;
mod report;
mod runner;
mod session;
mod synthetic;
mod tensors;
mod trace;
mod watch;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use lmsc_cuda::engines::StepEngines;
use lmsc_cuda::{self as cuda, Group};
use lmsc_ir::program::{Checked, Memory, Program, Role};
use lmsc_ir::{Bytes, Graph, NodeId, Type, words};
use lmsc_onnx::file::Opened;
use lmsc_onnx::key;
use lmsc_passes::{LowerError, Lowering, PassCx, lower};
use lmsc_plan::{Costs, Target};
use lmsc_runtime::{HostLink, Measurements, RunError, Unready};
use serde::Deserialize;

use crate::error::{called, note};
use crate::files::{PAGES, check_report, check_target, write_atomically};
use crate::job::Device;
use crate::{Code, Error, Warning, device, interrupt, view, warning};
use checkpoint::{Checkpoint, Origin, Stated, Value};
pub(crate) use compare::{Comparison, Values, Wrong, case, compare, values_of};
use fixed::Fixed;
pub use options::RunOptions;
pub(crate) use report::RunFacts;
use report::{Prediction, Report};
pub(crate) use runner::Runner;
pub use session::{InputBytes, Session, TensorData};
pub use synthetic::synthetic;
pub(crate) use tensors::generation;
pub(crate) use tensors::{Files, Tensors, inline_small, let_go, write};
use watch::{Fetches, Stored, Watcher, steps_input};

/// The number of tensors in a safetensors file; `path` is its name in messages.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) with the fault of the file.
pub fn tensors_in(bytes: &[u8], path: &Path) -> Result<usize, Error> {
    Ok(Tensors::of_bytes(bytes.to_vec().into(), path)?.types().count())
}

/// Number of steps if the call sets none.
const STEPS: u64 = 10;

/// Refuses output paths that cannot be written, before the run starts.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) with the path.
pub(crate) fn check_targets(options: &RunOptions, report: Option<&Path>) -> Result<(), Error> {
    let targets = [&options.save, &options.out, &options.trace].into_iter().flatten();
    targets.map(|path| &**path).try_for_each(check_target)?;
    report.map_or(Ok(()), |report| check_report(report, &PAGES))
}

/// The least work of one thread, in floating-point operations or bytes moved: kernels split their work into parts
/// of this size. Twice as much leaves threads idle in layers of 100 units; half as much wakes threads without a
/// gain.
const WORK_OF_A_THREAD: u64 = 1 << 16;

/// Starts the threads that the host kernels of the graph can use.
pub(crate) fn compute_here(graph: &Graph) {
    let costs = Costs::of(graph, Target::built_in("host").expect("the host is built in"), None);
    let works = graph.order().iter().map(|&node| costs.work(node));
    let most = works.map(|work| work.flops.max(work.moved.0)).max().unwrap_or_default();
    lmsc_kernels::compute_here(most.div_ceil(WORK_OF_A_THREAD).max(1) as usize);
}

/// Steps to run.
pub(crate) struct Job<'a> {
    pub(crate) path: &'a Path,
    /// The graph, with the bytes of its initializers or their files.
    pub(crate) graph: Graph,
    /// Whether the file had copies, addresses or edges of its own.
    pub(crate) is_planned: bool,
    /// The files beside the model, with large initializers.
    pub(crate) files: Files,
    /// Files to whose mapped bytes the graph refers.
    pub(crate) mapped: &'a [Arc<Opened>],
    /// The budget and the machine for which the graph is planned.
    pub(crate) cx: &'a PassCx,
    pub(crate) options: &'a RunOptions,
    /// The device that runs the steps.
    pub(crate) device: Device,
    /// Whether to print more.
    pub(crate) verbose: bool,
    /// The target for which the graph was planned, if one is known.
    pub(crate) planned_for: Option<String>,
    /// The engines of convolutions for which the graph was planned, if they are known.
    pub(crate) engines: Option<StepEngines>,
}

/// The result of a run.
pub(crate) struct Ran {
    pub(crate) report: Report,
    /// The error of a run that a signal ended.
    pub(crate) end: Result<(), Error>,
}

impl Job<'_> {
    /// Runs the steps. Prints losses and the report to `out` if it is given, and writes the files that the options
    /// name.
    pub(crate) fn run(mut self, page: Option<&Path>, mut out: Option<&mut dyn Write>) -> Result<Ran, Error> {
        let Job { path, cx, options, .. } = self;
        let bandwidth = options.copy_bandwidth.map(|bytes| bytes.0);
        let program = self.program()?;
        // Before the steps run, as the model's file may change meanwhile.
        let groups = self.groups(&program, page.is_some())?;
        let prediction = Prediction::new(&self.graph, cx, bandwidth, &groups);
        let (mut session, open, [arena, extent]) = self.open(program, bandwidth)?;
        let graph = &self.graph;
        session.session().set_traces(options.trace.is_some() || page.is_some());
        session.session().skip_closed(options.skip_closed);
        let Prepared { feed, counter, drawn, checkpoint, variables } =
            prepare(options, graph, &mut session, &open)?;
        let (first, steps) = (session.steps(), options.steps.unwrap_or(STEPS));
        let reborrowed = out.as_mut().map(|out| &mut **out as &mut dyn Write);
        let signal = interrupt::listen();
        let watch =
            Watcher::new(options, steps, graph, session.program(), (feed, counter), signal, reborrowed)?;
        note_drawn(&drawn);
        let subject = self.subject();
        let mut steps_and_saves = Steps { subject, options, steps, checkpoint, variables };
        let (measured, watch) = steps_and_saves.run(&mut session, watch)?;
        let Watcher { losses, fetched, fetches, .. } = watch;
        let done = measured.steps.len();
        let mut report = Report::new(cx, &session, &measured, first, losses, &prediction);
        // With chunks, the session's program has other addresses than the planned one.
        (report.arena, report.extent, report.drawn) = (arena, extent, drawn);
        if let Some(out) = out {
            out.write_all(words::shown(&report.to_text(self.verbose)).as_bytes())
                .map_err(|e| Error::writing(Path::new("-"), &e))?;
        }
        steps_and_saves.save(&mut session)?;
        // Fetched values are those of the last step; they are not written if a signal ended the run before it.
        if let (Some(path), Some(fetches), true) = (&options.out, fetches, done == steps) {
            let fetched = all_fetched(&mut session, fetched, &fetches)?;
            let types = fetched.iter().map(|(name, stored)| (name.clone(), stored.ty.clone())).collect();
            tensors::write(path, &types, None, 1, |name| Ok(fetched[name].bytes.clone()))?;
        }
        if let Some(path) = &options.trace {
            let trace = trace::trace(session.program(), &measured.events).to_string();
            write_atomically(path, |w| w.write_all(trace.as_bytes()))?;
        }
        if let Some(file) = page {
            let data = page::data(path, graph, &session, &measured, &report, &prediction);
            let is_json = file.extension().is_some_and(|extension| extension == "json");
            let text = if is_json { format!("{data:#}\n") } else { view::page(&data) };
            write_atomically(file, |w| w.write_all(text.as_bytes()))?;
        }
        let end = if done == steps { Ok(()) } else { Err(interrupted(options, done, steps)) };
        Ok(Ran { report, end })
    }

    /// The names for messages.
    fn subject(&self) -> Subject<'_> {
        Subject { path: self.path, device: self.device, planned_for: self.planned_for.as_deref() }
    }

    /// The step as a program that passed the safety check.
    fn program(&self) -> Result<Checked, Error> {
        // With chunks, their number is limited instead, and the session checks it.
        let arena = self.cx.whole_budget().filter(|_| self.options.chunk.is_none());
        let program = program(&self.graph, arena, self.device);
        let program = program.map_err(|e| refused(&self.subject(), &self.graph, e))?;
        checked(program, self.path, self.is_planned)
    }

    /// The groups of nodes whose kernels are fused; empty if the run traces or checks single nodes.
    fn groups(&self, program: &Checked, traces: bool) -> Result<Vec<Group>, Error> {
        let RunOptions { trace, check_numerics, chunk, .. } = self.options;
        let single = traces || trace.is_some() || *check_numerics || chunk.is_some();
        match self.device {
            Device::Cuda { .. } if !single => {
                cuda::groups(program).map_err(|e| not_ready(&self.subject(), e))
            }
            _ => Ok(Vec::new()),
        }
    }

    /// A session with all bytes of the model, the inputs for which the model has no bytes, and the size and the
    /// extent of the arena. The graph and its files are not read any more.
    fn open(
        &mut self,
        program: Checked,
        bandwidth: Option<u64>,
    ) -> Result<(Runner, Open, [Bytes; 2]), Error> {
        let Job { cx, options, device, .. } = *self;
        let changed = |e: std::io::Error| Error::new(Code::File, e.to_string());
        let check = || self.mapped.iter().try_for_each(|file| file.check()).map_err(changed);
        let link =
            HostLink { out_bytes_per_second: bandwidth, in_bytes_per_second: bandwidth, latency_nanos: 0 };
        let (sizes, open) = ([program.arena, program.extent()], open_inputs(&program));
        check()?;
        let session = Runner::new(program, device, options, link, cx.whole_budget().map(|budget| budget.0));
        let mut session = session.map_err(|e| not_ready(&self.subject(), e))?;
        warning::warn(&session.warnings(self.engines.as_ref()))?;
        let set = |name: &str, bytes: &[u8]| session.set(name, bytes);
        tensors::let_go(&mut self.graph, &mut self.files, set)?;
        check()?;
        Ok((session, open, sizes))
    }
}

/// Inputs and initializers for which the model has no bytes.
type Open = BTreeMap<String, Type>;

pub(crate) fn open_inputs(program: &Program) -> Open {
    let open = program.given.iter().filter(|given| given.data.is_none());
    open.map(|given| (given.tensor.name.to_string(), given.tensor.ty.clone())).collect()
}

/// Prints the names of the inputs whose values lmsc chose.
fn note_drawn(drawn: &[String]) {
    const SHOWN: usize = 4;
    if drawn.is_empty() {
        return;
    }
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in drawn {
        let group = synthetic::fixed(name).map_or("random".to_owned(), |value| format!("set to {value}"));
        groups.entry(group).or_default().push(name);
    }
    let group = |(group, names): (String, Vec<&str>)| {
        let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
        let more = match names.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{} {group} ({}{more})", names.len(), shown.join(", "))
    };
    let groups: Vec<String> = groups.into_iter().map(group).collect();
    let (verb, them) = if drawn.len() == 1 { ("is", "it") } else { ("are", "them") };
    let count = words::count(drawn.len(), "input");
    note(format!("{count} {verb} not given: {}; --params gives {them}", groups.join(", ")));
}

/// The number of steps, and the data for checkpoints.
struct Steps<'a> {
    subject: Subject<'a>,
    options: &'a RunOptions,
    steps: u64,
    checkpoint: Checkpoint,
    variables: BTreeMap<String, Type>,
}

impl Steps<'_> {
    /// Runs the steps, without a stop from one checkpoint to the next.
    fn run<'w>(
        &mut self,
        session: &mut Runner,
        mut watch: Watcher<'w>,
    ) -> Result<(Measurements, Watcher<'w>), Error> {
        let mut measured = Measurements::default();
        loop {
            let left = self.steps - measured.steps.len();
            let asked = self.options.save_every.unwrap_or(left).min(left);
            let ran = session.run(asked, &mut watch).map_err(|error| match error {
                RunError::Stopped(why) => Error::new(Code::Stopped, why),
                other => not_ready(&self.subject, other),
            });
            let ran = ran.inspect_err(|_| watch.bar.finish_and_clear())?;
            let done = ran.steps.len();
            measured.append(ran);
            if done > 0 {
                watch.ended(session)?;
            }
            if done < asked || done == left {
                watch.bar.finish_and_clear();
                return Ok((measured, watch));
            }
            watch.tell_last(session.steps());
            // The run goes on: the checkpoint before is still there, and the next one may succeed.
            if let Err(error) = self.save(session) {
                note(format!("step {} is not saved: {error}", session.steps()));
            }
        }
    }

    /// Writes a checkpoint, if the call requests one.
    fn save(&mut self, session: &mut Runner) -> Result<(), Error> {
        match &self.options.save {
            Some(path) => {
                self.checkpoint.save(path, self.options.keep.unwrap_or(1), &self.variables, session)
            }
            None => Ok(()),
        }
    }
}

/// The error of a run that a signal ended.
fn interrupted(options: &RunOptions, done: u64, steps: u64) -> Error {
    let mut message = format!("interrupted after {done} of {}", words::count(steps as usize, "step"));
    if options.out.is_some() {
        message += "; what was to be fetched is of the last step, and is not written";
    }
    match &options.save {
        Some(path) => Error::new(Code::Interrupted, message)
            .with_help(format!("--resume {} goes on from here", path.display())),
        None => Error::new(Code::Interrupted, message),
    }
}

/// An entry of the model's metadata.
pub(crate) fn metadata<'m>(model: &'m lmsc_onnx::Model, key: &str) -> Option<&'m str> {
    let entry = model.proto.metadata_props.iter().find(|entry| entry.key.as_deref() == Some(key))?;
    entry.value.as_deref()
}

/// The engines of convolutions for which a file was written.
pub(crate) fn planned_engines(model: &lmsc_onnx::Model) -> Option<StepEngines> {
    #[derive(Deserialize)]
    struct Stated {
        cudnn: String,
        precision: String,
        engines: BTreeMap<String, Vec<String>>,
    }
    let Stated { cudnn, precision, engines } = serde_json::from_str(metadata(model, key::ENGINES)?).ok()?;
    Some(StepEngines { version: cudnn, precision, by_node: engines })
}

/// The budget for which a file was written.
pub(crate) fn planned_budget(model: &lmsc_onnx::Model) -> Option<Bytes> {
    metadata(model, key::BUDGET)?.parse().ok().map(Bytes)
}

/// The bytes of a page, where a plan of the model is for memory that is mapped in pages.
pub(crate) fn planned_pages(model: &lmsc_onnx::Model) -> Option<Bytes> {
    metadata(model, key::PAGES)?.parse().ok().map(Bytes)
}

/// The target for predictions of steps on the device. If there is no such GPU, the run itself reports it.
pub(crate) fn predicted_by(device: Device) -> Option<Target> {
    match device {
        Device::Host => Some(Target::built_in("host").expect("the host is built in").clone()),
        Device::Cuda { ordinal, .. } => device::for_prediction(ordinal),
    }
}

/// The program of the graph on the device, in an arena within the budget.
pub(crate) fn program(graph: &Graph, budget: Option<Bytes>, device: Device) -> Result<Program, LowerError> {
    let needed = match device {
        Device::Host => lmsc_runtime::workspaces(graph),
        Device::Cuda { .. } => device::engines(device).workspaces(graph),
    };
    lowered(graph, budget, &needed)
}

/// The program of the graph whose nodes have these workspaces, in an arena within the budget.
pub(crate) fn lowered(
    graph: &Graph,
    budget: Option<Bytes>,
    needed: &BTreeMap<NodeId, Bytes>,
) -> Result<Program, LowerError> {
    let workspace = |node| needed.get(&node).copied().unwrap_or_default();
    lower(graph, &Lowering { arena: budget, workspace: &workspace })
}

/// Whether the graph of a file has copies, addresses or edges, from which its program's order follows.
pub(crate) fn is_planned(graph: &Graph) -> bool {
    let has_edges = |&id: &NodeId| graph.node(id).op.is_swap() || !graph.node(id).after.is_empty();
    graph.has_addresses() || graph.order().iter().any(has_edges)
}

/// The program, if it passes the safety check. If the file was planned before, its edges may allow a race.
pub(crate) fn checked(program: Program, path: &Path, is_planned: bool) -> Result<Checked, Error> {
    Checked::new(program).map_err(|flaw| {
        if is_planned {
            Error::in_file(Code::Model, path, format!("its edges do not keep its plan: {flaw}"))
                .with_help("take the file as lmsc wrote it, or plan the original again")
        } else {
            Error::ours(format!("the lowered step is not safe: {flaw}"))
        }
    })
}

/// The names that messages about a run contain.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) path: &'a Path,
    pub(crate) device: Device,
    /// The target for which the step was planned, if it is known.
    pub(crate) planned_for: Option<&'a str>,
}

impl Subject<'_> {
    /// The option that selects the device as the target of a plan.
    fn target(&self) -> String {
        format!("--target {}", device::target_of(self.device))
    }
}

pub(crate) fn refused(subject: &Subject<'_>, graph: &Graph, error: LowerError) -> Error {
    let is_rewritten = graph.has_addresses() || graph.order().iter().any(|&n| graph.node(n).op.is_swap());
    let (message, target) = (format!("{}: {error}", called(subject.path)), subject.target());
    match error {
        LowerError::DoesNotFit { .. } if is_rewritten => Error::new(Code::MachineMemory, message)
            .with_help(format!("plan the original again, with {target} and this budget")),
        LowerError::DoesNotFit { arena, .. } => Error::new(Code::MachineMemory, message).with_help(format!(
            "plan it for less memory first: lmsc {} {target} --budget {arena} -o FILE",
            subject.path.display()
        )),
        LowerError::Unplaced { .. } | LowerError::Node { .. } => Error::new(Code::Unsupported, message),
    }
}

pub(crate) fn not_ready(subject: &Subject<'_>, error: RunError) -> Error {
    let (path, cannot) = (subject.path, format!("{} cannot run here", called(subject.path)));
    let not_ready = match &error {
        RunError::NotReady(not_ready) => not_ready,
        RunError::NoMemory { memory, .. } => {
            let help = match memory {
                Memory::Arena => "give a smaller --budget",
                Memory::Slab => "plan with a smaller --host-budget",
            };
            return Error::new(Code::MachineMemory, format!("{cannot}: {error}")).with_help(help);
        }
        RunError::Budget { .. } => {
            let help = format!("plan the original again, with {} and this budget", subject.target());
            return Error::new(Code::MachineMemory, format!("{cannot}: {error}")).with_help(help);
        }
        RunError::DeviceMemory { free, .. } => {
            // Libraries and kernels use some of the free memory.
            let help = format!(
                "free memory of the device, or plan the original for less: {} --budget 90%, or --budget {}",
                subject.target(),
                Bytes(free.0 / 10 * 9)
            );
            return Error::new(Code::MachineMemory, format!("{cannot}: {error}")).with_help(help);
        }
        RunError::Device(_) => {
            return Error::new(Code::Failed, format!("{} fails on the CUDA device: {error}", called(path)));
        }
        RunError::NoDevice(_) => {
            return Error::new(Code::Missing, format!("{} cannot run on a CUDA device: {error}", called(path))).with_help(
                "name the folders of CUDA's libraries in LMSC_CUDA_PATH, or run on the host, without --device",
            );
        }
        RunError::NoLibrary(why) => {
            return Error::new(Code::Missing, format!("{} does not run by --require-libraries: {why}", called(path))).with_help(
                "install cuBLAS and cuDNN (Python's packages will do), name their folders in LMSC_CUDA_PATH, or leave out \
                 --require-libraries",
            );
        }
        RunError::NoThread { .. } => {
            return Error::new(Code::Missing, format!("{cannot}: {error}"))
                .with_help("allow the process more threads (ulimit -u, or the container's limit of pids)");
        }
        // The run is lost, but not the files written before.
        RunError::Value { .. } => {
            return Error::new(Code::Values, format!("{}: {error}", called(path))).with_help(
                "look at the data: no index may be outside of the tensor, no label outside of the classes",
            );
        }
        RunError::Copy { .. } => return Error::new(Code::Failed, error.to_string()),
        RunError::Stopped(_) => return Error::new(Code::Stopped, error.to_string()),
        RunError::Chunk { .. } => return Error::new(Code::Option, format!("--virtual: {error}")),
        RunError::Chunks { needed, bytes, .. } => {
            let larger = Bytes(needed.saturating_mul(*bytes));
            return Error::new(Code::MachineMemory, format!("{cannot}: {error}")).with_help(format!(
                "give smaller chunks, or --budget {} ({larger}); or plan with a smaller budget",
                larger.0
            ));
        }
        RunError::Many { .. } => {
            return Error::new(Code::MachineMemory, format!("{cannot}: {error}"))
                .with_help("give larger chunks");
        }
    };
    let message = format!("{cannot}:\n{error}");
    if not_ready.0.iter().any(|one| matches!(one, Unready::Workspace { .. })) {
        let planned = subject.planned_for.map(|target| format!("\nit was planned for the target `{target}`"));
        let others = match subject.device {
            Device::Host => "",
            Device::Cuda { .. } => ", or another target of CUDA (`lmsc targets` lists them)",
        };
        Error::new(Code::Unsupported, message + &planned.unwrap_or_default()).with_help(format!(
            "plan with {}{others}: its operators need what the kernels here need",
            subject.target()
        ))
    } else {
        Error::new(Code::Unsupported, message)
    }
}

/// The inputs of each step, by name: one batch or several.
type Feed = BTreeMap<String, Vec<bytes::Bytes>>;

/// The initial data of a session.
struct Prepared {
    feed: Feed,
    /// The input that the session sets to the number of the step.
    counter: Option<String>,
    /// Inputs and initializers whose values lmsc chose.
    drawn: Vec<String>,
    checkpoint: Checkpoint,
    /// The tensors that a step changes.
    variables: BTreeMap<String, Type>,
}

/// Sets every input and initializer to its first value.
fn prepare(args: &RunOptions, graph: &Graph, session: &mut Runner, open: &Open) -> Result<Prepared, Error> {
    let resumed =
        args.resume.as_deref().map(|path| Ok::<_, Error>((path, Tensors::read(path)?))).transpose()?;
    let before = resumed.as_ref().map(|(path, tensors)| checkpoint::says(path, tensors)).transpose()?;
    if let (Some((path, _)), Some(warning)) = (&resumed, before.as_ref().and_then(|before| before.warning()))
    {
        let message = format!("{}: {warning}", called(path));
        warning::warn(&[Warning::new(Code::OldCheckpoint, message)])?;
    }
    let seed = seed(args, before.as_ref())?;
    session.session().set_seed(seed);
    let names = Names::of(session.program());
    if let Some(path) = &args.save {
        tensors::check_types(path, names.variables.iter().map(|(name, ty)| (&**name, ty)))?;
    }
    let checkpoint = Checkpoint::new(seed, session.device(), args.skip_closed);
    let fixed = Fixed::of(graph);
    let mut first = First { fixed, session, names, checkpoint, drawn: BTreeMap::new(), feed: Feed::new() };
    first.draw(open, seed)?;
    first.give(args.params.as_deref(), false)?;
    first.give(args.feeds.as_deref(), true)?;
    first.batches(args.data.as_deref().filter(|path| *path != Path::new("synthetic")))?;
    // The session counts the steps, unless the call gives their number, or gave it to the run that goes on.
    let is_open = |name: &String| {
        let was_given = resumed.as_ref().is_some_and(|(_, tensors)| tensors.contains(name));
        first.drawn.contains_key(name) && !was_given
    };
    let counter = steps_input(first.session.program()).filter(is_open);
    if let Some(counter) = &counter {
        first.drawn.remove(counter);
        first.checkpoint.forget(counter);
    }
    if let (Some((path, tensors)), Some(before)) = (&resumed, &before) {
        first.resume(path, tensors)?;
        first.session.session().set_steps(before.steps);
    }
    let First { fixed: _, session: _, names, mut checkpoint, drawn, feed } = first;
    let prepared = drawn.keys().cloned().collect();
    let stay = drawn.into_iter().filter(|(name, _)| !names.variables.contains_key(name));
    checkpoint.says.values.extend(stay);
    if args.save.is_some() || args.resume.is_some() {
        checkpoint.add_constants(graph, &names.variables);
    }
    if let (Some((path, _)), Some(before)) = (&resumed, &before) {
        checkpoint.says.follows(before, path)?;
        if !before.device.is_empty() && before.device != checkpoint.says.device {
            note(format!(
                "{} was saved by a run on {}; on another device, the same steps may have other bits",
                path.display(),
                before.device
            ));
        }
    }
    Ok(Prepared { feed, counter, drawn: prepared, checkpoint, variables: names.variables })
}

/// The first values of a session, while they are collected.
struct First<'a> {
    fixed: Fixed,
    session: &'a mut Runner,
    names: Names,
    checkpoint: Checkpoint,
    /// Inputs and initializers whose values are still random.
    drawn: BTreeMap<String, Value>,
    feed: Feed,
}

impl First<'_> {
    /// Sets random values for all inputs and initializers for which the model has no bytes.
    fn draw(&mut self, open: &Open, seed: u64) -> Result<(), Error> {
        for (name, ty) in open {
            let bytes = synthetic(name, ty, seed);
            self.session.set(name, &bytes)?;
            self.drawn.insert(name.clone(), Value::new(Origin::Drawn, &bytes));
        }
        Ok(())
    }

    /// Sets the tensors of --params, or those of --feeds, which are fed to every step.
    fn give(&mut self, path: Option<&Path>, is_fed: bool) -> Result<(), Error> {
        let Some(path) = path else { return Ok(()) };
        let many = if is_fed { "inputs and initializers" } else { "parameters and inputs" };
        let tensors = given(path, &self.names.settable, many)?;
        for (name, ty) in tensors.types() {
            let bytes = tensors.bytes(name)?;
            self.fixed.check(name, &bytes)?;
            self.session.set(name, &bytes)?;
            self.drawn.remove(name);
            if !self.names.variables.contains_key(name) {
                self.checkpoint.give(name, ty, &bytes);
            }
            // The same value is fed to every step.
            if is_fed && self.names.inputs.contains_key(name) {
                self.feed.insert(name.to_owned(), vec![bytes]);
            }
        }
        Ok(())
    }

    /// Sets the batches of --data, except for inputs in --feeds.
    fn batches(&mut self, path: Option<&Path>) -> Result<(), Error> {
        let Some(path) = path else { return Ok(()) };
        let tensors = Tensors::read(path)?;
        fits(path, &tensors, &self.names.inputs, "inputs", true)?;
        for (name, _) in
            tensors.types().filter(|(name, _)| !self.feed.contains_key(*name)).collect::<Vec<_>>()
        {
            let all = tensors.bytes(name)?;
            let size = self.names.inputs[name].byte_size().unwrap_or_default().0 as usize;
            self.drawn.remove(name);
            self.checkpoint.forget(name);
            self.checkpoint.says.batches.insert(name.to_owned(), Stated::of(&all));
            // There is at least one batch, also for an input without bytes.
            let count = all.len().checked_div(size).unwrap_or(1);
            let batches = (0..count).map(|i| all.slice(i * size..(i + 1) * size)).collect();
            self.feed.insert(name.to_owned(), batches);
        }
        Ok(())
    }

    /// Sets the tensors of a checkpoint, except those that the call gives; these are compared with the checkpoint's
    /// values.
    fn resume(&mut self, path: &Path, tensors: &Tensors) -> Result<(), Error> {
        fits(path, tensors, &self.names.settable, "variables and inputs", false)?;
        let missing = self.names.variables.keys().filter(|name| !tensors.contains(name));
        lacks(path, &missing.collect::<Vec<_>>())?;
        tensors.check()?;
        for (name, ty) in tensors.types() {
            if self.checkpoint.knows(name) {
                continue;
            }
            let bytes = tensors.bytes(name)?;
            self.session.set(name, &bytes)?;
            self.drawn.remove(name);
            if !self.names.variables.contains_key(name) {
                self.checkpoint.give(name, ty, &bytes);
            }
        }
        Ok(())
    }
}

/// The types of a step's tensors, by name.
struct Names {
    /// All inputs, initializers and variables.
    settable: BTreeMap<String, Type>,
    /// The inputs that the caller may set before each step.
    inputs: BTreeMap<String, Type>,
    /// The tensors that the step changes.
    variables: BTreeMap<String, Type>,
}

impl Names {
    fn of(program: &Program) -> Names {
        let of = |is: fn(Role) -> bool| {
            let given = program.given.iter().filter(|given| is(given.role));
            given.map(|given| (given.tensor.name.to_string(), given.tensor.ty.clone())).collect()
        };
        Names {
            settable: of(|_| true),
            inputs: of(|role| role == Role::Input),
            variables: of(|role| matches!(role, Role::Variable(_))),
        }
    }
}

/// The seed of the run; a resumed run keeps its seed.
fn seed(args: &RunOptions, before: Option<&checkpoint::Says>) -> Result<u64, Error> {
    match (args.seed, before.map(|before| before.seed)) {
        (Some(seed), Some(before)) if seed != before => {
            let message = format!("--seed {seed}, and the run that is resumed has the seed {before}");
            Err(Error::new(Code::Option, message).with_help("leave --seed out"))
        }
        (seed, before) => Ok(before.or(seed).unwrap_or(0)),
    }
}

/// The tensors of --params or --feeds in the file at this path.
fn given(path: &Path, settable: &BTreeMap<String, Type>, many: &str) -> Result<Tensors, Error> {
    let is_model = path.extension().is_some_and(|extension| extension == "onnx");
    let mut tensors = if is_model { Tensors::of_model(path)? } else { Tensors::read(path)? };
    if is_model {
        // A model's initializers include constants, which are not parameters.
        tensors.retain(|name| settable.contains_key(name));
        if tensors.types().next().is_none() {
            return Err(Error::in_file(
                Code::Values,
                path,
                "none of its initializers is a parameter of the step",
            ));
        }
    }
    fits(path, &tensors, settable, many, false)?;
    Ok(tensors)
}

/// Refuses a file that lacks variables.
fn lacks(path: &Path, missing: &[&String]) -> Result<(), Error> {
    let Some(first) = missing.first() else { return Ok(()) };
    let count = words::count(missing.len(), "variable");
    let message = format!("it lacks {count} of the step, `{first}` first");
    Err(Error::in_file(Code::Values, path, message).with_help("give a file that --save wrote for this step"))
}

/// Refuses tensors with other names or types, and lists the faults.
fn fits(
    path: &Path,
    tensors: &Tensors,
    expected: &BTreeMap<String, Type>,
    many: &str,
    batches: bool,
) -> Result<(), Error> {
    let wrong = tensors::mismatches(tensors.types(), expected, many, batches);
    if wrong.is_empty() {
        Ok(())
    } else {
        let error =
            Error::in_file(Code::Values, path, format!("not what the step takes:\n  {}", wrong.join("\n  ")));
        Err(if tensors.says.is_some() && batches {
            error.with_help("it is what --save wrote; give it with --resume")
        } else if let Some(help) = other_prefix(tensors.types().map(|(name, _)| name), expected) {
            error.with_help(help)
        } else {
            error
        })
    }
}

/// The remedy for names that are the step's but for a prefix, such as that of a module around the model.
fn other_prefix<'a>(
    names: impl Iterator<Item = &'a str>,
    expected: &BTreeMap<String, Type>,
) -> Option<String> {
    let unknown: Vec<&str> = names.filter(|name| !expected.contains_key(*name)).collect();
    let first = *unknown.first()?;
    let ends = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('.'));
    let lacks = expected.keys().find(|name| ends(name, first));
    if let Some(prefix) = lacks.and_then(|name| name.strip_suffix(first))
        && unknown.iter().all(|name| expected.contains_key(&format!("{prefix}{name}")))
    {
        return Some(format!("the step's names begin with `{prefix}`; add that to the names in the file"));
    }
    let has = expected.keys().find(|name| ends(first, name))?;
    let prefix = first.strip_suffix(&**has)?;
    let is_known = |name: &&str| name.strip_prefix(prefix).is_some_and(|rest| expected.contains_key(rest));
    unknown.iter().all(is_known).then(|| {
        format!("the names in the file begin with `{prefix}`, those of the step do not; remove it there")
    })
}

/// The values in `fetched`, with those that the session holds at the end, such as graph inputs.
fn all_fetched(
    session: &mut Runner,
    mut fetched: BTreeMap<String, Stored>,
    fetches: &Fetches,
) -> Result<BTreeMap<String, Stored>, Error> {
    for (computed, names) in fetches {
        for (name, ty) in names.iter().filter(|(name, _)| !fetched.contains_key(name)).collect::<Vec<_>>() {
            if let Some(bytes) = session.get(computed)? {
                fetched.insert(name.clone(), Stored { ty: ty.clone(), bytes: bytes.into() });
            }
        }
    }
    Ok(fetched)
}
