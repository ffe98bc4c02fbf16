//! `lmsc run` and `lmsc calibrate`: steps that really run, on the host or a device of CUDA.

mod calibrate;
mod checkpoint;
pub(crate) mod interrupt;
mod launches;
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

use lmsc_cuda::{self as cuda, Group};
use lmsc_ir::program::{Checked, Memory, Program, Role};
use lmsc_ir::{Bytes, Graph, Type, words};
use lmsc_onnx::file::Opened;
use lmsc_onnx::key;
use lmsc_passes::{LowerError, Lowering, PassCx, Workspaces, lower};
use lmsc_plan::{Costs, Target};
use lmsc_runtime::{HostLink, Measurements, RunError, Unready};

use crate::budget::Budget;
use crate::cli::{CompileArgs, Device, RunArgs, RunOptions};
use crate::error::{called, note};
use crate::{Code, Compiled, Error, device, emit, load, targets, view};
pub use calibrate::calibrate;
pub(crate) use calibrate::{LEAST, MOST, link_of};
use checkpoint::{Checkpoint, Origin, Value};
pub use launches::launches;
use report::{Prediction, Report};
use runner::Runner;
pub use session::{Session, TensorData};
pub use synthetic::synthetic;
use tensors::{Files, Tensors};
use watch::{Fetches, Stored, Watcher, steps_input};

/// The number of tensors in a file of the format safetensors, which is at the path.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) with what is wrong with it.
pub fn tensors_in(bytes: &[u8], path: &Path) -> Result<usize, Error> {
    Ok(Tensors::of_bytes(bytes.to_vec().into(), path)?.types().count())
}

/// How many steps run where the user does not say.
const STEPS: u64 = 10;

/// Runs a model's steps, and prints what they came to.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) where the step does not fit, or computes what is no number and that was to be noticed;
/// [`ErrorKind::Interrupted`](crate::ErrorKind) where a signal ended it; the other families as they say.
pub fn run(args: &RunArgs, out: &mut dyn Write) -> Result<(), Error> {
    check_targets(&args.options, args.report.as_deref())?;
    let path = args.input.path();
    let device = args.on.device(&args.options)?;
    let load::Loaded { mut graph, model, warnings, .. } = load::load_to_run(path, &args.input.binding)?;
    not_fixed(&args.options, &model.as_ref().map(lmsc_onnx::fixed_values).unwrap_or_default())?;
    compute_here(&graph);
    let mut files = Files::new(model.as_ref().and_then(|model| model.folder.clone()));
    tensors::inline_small(&mut graph, &mut files)?;
    let pages = model.as_ref().and_then(planned_pages);
    let holds = graph.has_addresses() || pages.is_some();
    let planned = model.as_ref().filter(|_| holds).and_then(planned_budget);
    let planned_for = model.as_ref().and_then(|model| metadata(model, key::TARGET)).map(str::to_owned);
    // The graph has what is still needed of its bytes.
    drop(model);
    let profile = targets::read_profile(args.profile.as_deref())?;
    let cx = crate::of_machine(PassCx { target: predicted_by(device), profile, ..PassCx::default() });
    let cx = crate::with_budgets(cx, &graph, args.budget.or(planned.map(Budget::Bytes)), None)?;
    // Memory in pages keeps the budget that the plan keeps in pages.
    let chunk = args.options.chunk.or(pages.filter(|_| cx.budget.is_some()));
    let options = &RunOptions { chunk, ..args.options.clone() };
    let verbose = crate::term::verbosity() > 0;
    let job = Job { path, graph, files, mapped: &[], cx: &cx, options, device, planned_for, verbose };
    let ran = job.run(args.report.as_deref(), (!args.json).then_some(&mut *out))?;
    if args.json {
        let mut json = ran.report.to_json();
        if !warnings.is_empty() {
            json["warnings"] = warnings.into();
        }
        writeln!(out, "{json:#}").map_err(|e| Error::writing(Path::new("-"), &e))?;
    }
    ran.end
}

/// Runs steps of what was compiled, and prints what they came to; as JSON, what there is to tell of both.
///
/// # Errors
/// As [`run()`].
pub fn run_compiled(args: &CompileArgs, compiled: &Compiled, out: &mut dyn Write) -> Result<(), Error> {
    let cx = compiled.asked();
    not_fixed(&args.options, &compiled.fixed)?;
    let (mut graph, mut files) = (compiled.graph().clone(), Files::new(compiled.folder.clone()));
    tensors::inline_small(&mut graph, &mut files)?;
    let (path, mapped) = (args.input.path(), &compiled.mapped[..]);
    let chunk = args.options.chunk.or(compiled.pages());
    let device = args.on.device(&args.options)?;
    let options = &RunOptions { chunk, ..args.options.clone() };
    let (planned_for, verbose) = (Some(cx.target().name), crate::term::verbosity() > 0);
    let job = Job { path, graph, files, mapped, cx, options, device, planned_for, verbose };
    let mut print =
        |text: &str| out.write_all(text.as_bytes()).map_err(|e| Error::writing(Path::new("-"), &e));
    let page = args.report.as_deref().filter(|file| crate::is_page(file));
    if !args.json {
        print(&compiled.report.to_text(verbose))?;
        return job.run(page, Some(out))?.end;
    }
    let ran = job.run(page, None)?;
    let mut json = serde_json::to_value(&compiled.report).expect("a report is JSON");
    json["run"] = ran.report.to_json();
    print(&format!("{json:#}\n"))?;
    ran.end
}

/// Refuses files that give inputs other values than those for which the step was made.
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

/// Refuses paths that nothing can be written to, before anything is done.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) naming the path.
pub(crate) fn check_targets(options: &RunOptions, report: Option<&Path>) -> Result<(), Error> {
    let targets = [&options.save, &options.out, &options.trace].into_iter().flatten();
    targets.map(|path| &**path).try_for_each(emit::check_target)?;
    report.map_or(Ok(()), |report| emit::check_report(report, &emit::PAGES))
}

/// How much work one thread does at least, in floating-point operations or bytes that it moves: kernels cut theirs into pieces
/// of this size. Twice as much leaves threads idle in layers of 100 units, half as much wakes them for nothing.
const WORK_OF_A_THREAD: u64 = 1 << 16;

/// Starts the threads that the host's kernels of the graph make use of.
pub(crate) fn compute_here(graph: &Graph) {
    let costs = Costs::of(graph, Target::built_in("host").expect("the host is built in"), None);
    let works = graph.order().iter().map(|&node| costs.work(node));
    let most = works.map(|work| work.flops.max(work.moved.0)).max().unwrap_or_default();
    lmsc_kernels::compute_here(most.div_ceil(WORK_OF_A_THREAD).max(1) as usize);
}

/// Steps to run.
struct Job<'a> {
    path: &'a Path,
    /// With the bytes of its initializers, or where they are.
    graph: Graph,
    /// Files beside the model, in which large initializers are.
    files: Files,
    /// Files to whose mapped bytes the graph refers.
    mapped: &'a [Arc<Opened>],
    /// For which budget and machine it is planned.
    cx: &'a PassCx,
    options: &'a RunOptions,
    /// What runs them.
    device: Device,
    /// Whether there is to be told more.
    verbose: bool,
    /// The target for which the graph was planned, if one is known.
    planned_for: Option<String>,
}

/// What they came to.
struct Ran {
    report: Report,
    /// Whether a signal ended them.
    end: Result<(), Error>,
}

impl Job<'_> {
    /// Runs them, with the losses and the report printed to `out` if it is given, and writes what is to be written.
    fn run(mut self, page: Option<&Path>, mut out: Option<&mut dyn Write>) -> Result<Ran, Error> {
        let Job { path, cx, options, .. } = self;
        let bandwidth = options.copy_bandwidth.map(|bytes| bytes.0);
        let program = self.program()?;
        // Before the steps, after which the model's file may be another one.
        let groups = self.groups(&program, page.is_some())?;
        let prediction = Prediction::new(&self.graph, cx, bandwidth, &groups);
        let (mut session, open, [arena, extent]) = self.open(program, bandwidth)?;
        let graph = &self.graph;
        session.set_traces(options.trace.is_some() || page.is_some());
        session.skip_closed(options.skip_closed);
        let Prepared { feed, drawn, checkpoint, variables } = prepare(options, graph, &mut session, &open)?;
        let (first, steps) = (session.steps(), options.steps.unwrap_or(STEPS));
        let reborrowed = out.as_mut().map(|out| &mut **out as &mut dyn Write);
        let signal = interrupt::listen();
        let watch = Watcher::new(options, steps, graph, session.program(), feed, signal, reborrowed)?;
        tell_drawn(&drawn);
        let subject = self.subject();
        let mut steps_and_saves = Steps { subject, options, steps, checkpoint, variables };
        let (measured, watch) = steps_and_saves.run(&mut session, watch)?;
        let Watcher { losses, fetched, fetches, .. } = watch;
        let done = measured.steps.len() as u64;
        let mut report = Report::new(cx, &session, &measured, first, losses, &prediction);
        // In chunks, the session's program has addresses of its own.
        (report.arena, report.extent, report.drawn) = (arena, extent, drawn);
        if let Some(out) = out {
            out.write_all(report.to_text(self.verbose).as_bytes())
                .map_err(|e| Error::writing(Path::new("-"), &e))?;
        }
        steps_and_saves.save(&mut session)?;
        // What is fetched is of the last step, which a signal may have made another one.
        if let (Some(path), Some(fetches), true) = (&options.out, fetches, done == steps) {
            let fetched = all_fetched(&mut session, fetched, &fetches);
            let types = fetched.iter().map(|(name, stored)| (name.clone(), stored.ty.clone())).collect();
            tensors::write(path, &types, None, |name| fetched[name].bytes.clone())?;
        }
        if let Some(path) = &options.trace {
            let trace = trace::trace(session.program(), &measured.events).to_string();
            crate::write_atomically(path, |w| w.write_all(trace.as_bytes()))?;
        }
        if let Some(file) = page {
            let data = page::data(path, graph, &session, &measured, &report, &prediction);
            let is_json = file.extension().is_some_and(|extension| extension == "json");
            let text = if is_json { format!("{data:#}\n") } else { view::page(&data) };
            crate::write_atomically(file, |w| w.write_all(text.as_bytes()))?;
        }
        let end = if done == steps { Ok(()) } else { Err(interrupted(options, done, steps)) };
        Ok(Ran { report, end })
    }

    /// What messages name.
    fn subject(&self) -> Subject<'_> {
        Subject { path: self.path, device: self.device, planned_for: self.planned_for.as_deref() }
    }

    /// The step as a program, which is safe.
    fn program(&self) -> Result<Checked, Error> {
        // In chunks, it is their number that is limited, and the session looks at that.
        let arena = self.cx.whole_budget().filter(|_| self.options.chunk.is_none());
        let program = program(&self.graph, arena, self.device);
        let program = program.map_err(|e| refused(&self.subject(), &self.graph, e))?;
        Checked::new(program).map_err(|flaw| Error::ours(format!("the lowered step is not safe: {flaw}")))
    }

    /// The nodes whose kernels are fused where the step runs; where each is looked at, none are.
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

    /// A session with all bytes that the model has, the inputs of which it has none, and the arena's size and last address.
    /// The graph and its files are not read any more.
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
        let set = |name: &str, bytes: &[u8]| _ = session.set(name, bytes);
        tensors::let_go(&mut self.graph, &mut self.files, set)?;
        check()?;
        Ok((session, open, sizes))
    }
}

/// Inputs and initializers that the model has no bytes of.
type Open = BTreeMap<String, Type>;

fn open_inputs(program: &Program) -> Open {
    let open = program.given.iter().filter(|given| given.data.is_none());
    open.map(|given| (given.tensor.name.to_string(), given.tensor.ty.clone())).collect()
}

/// Says which inputs have values that lmsc chose.
fn tell_drawn(drawn: &[String]) {
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

/// How many steps there are, and what is saved of them.
struct Steps<'a> {
    subject: Subject<'a>,
    options: &'a RunOptions,
    steps: u64,
    checkpoint: Checkpoint,
    variables: BTreeMap<String, Type>,
}

impl Steps<'_> {
    /// Runs the steps, as many at once as there are from one checkpoint to the next.
    fn run<'w>(
        &mut self,
        session: &mut Runner,
        mut watch: Watcher<'w>,
    ) -> Result<(Measurements, Watcher<'w>), Error> {
        let mut measured = Measurements::default();
        loop {
            let left = self.steps - measured.steps.len() as u64;
            let asked = self.options.save_every.unwrap_or(left).min(left);
            let ran = session.run(asked, &mut watch).map_err(|error| match error {
                RunError::Stopped(why) => Error::new(Code::Stopped, why),
                other => not_ready(&self.subject, other),
            });
            let ran = ran.inspect_err(|_| watch.bar.finish_and_clear())?;
            let done = ran.steps.len() as u64;
            measured.append(ran);
            if done > 0 {
                watch.ended(session);
            }
            if done < asked || done == left {
                watch.bar.finish_and_clear();
                return Ok((measured, watch));
            }
            watch.tell_last(session.steps());
            // The run goes on: what was saved before is there, and this may have room later.
            if let Err(error) = self.save(session) {
                note(format!("step {} is not saved: {error}", session.steps()));
            }
        }
    }

    /// Writes what is to be saved, if anything is.
    fn save(&mut self, session: &mut Runner) -> Result<(), Error> {
        match &self.options.save {
            Some(path) => self.checkpoint.save(path, &self.variables, session),
            None => Ok(()),
        }
    }
}

/// What is said where a signal has ended a run.
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
fn metadata<'m>(model: &'m lmsc_onnx::Model, key: &str) -> Option<&'m str> {
    let entry = model.proto.metadata_props.iter().find(|entry| entry.key.as_deref() == Some(key))?;
    entry.value.as_deref()
}

/// The budget for which a file was written.
fn planned_budget(model: &lmsc_onnx::Model) -> Option<Bytes> {
    metadata(model, key::BUDGET)?.parse().ok().map(Bytes)
}

/// The bytes of a page, where a plan of the model is for memory that is mapped in pages.
fn planned_pages(model: &lmsc_onnx::Model) -> Option<Bytes> {
    metadata(model, key::PAGES)?.parse().ok().map(Bytes)
}

/// The target by which steps on the device are predicted. Where there is no such GPU, running them says so.
fn predicted_by(device: Device) -> Option<Target> {
    match device {
        Device::Host => Some(Target::built_in("host").expect("the host is built in").clone()),
        Device::Cuda { ordinal, .. } => device::for_prediction(ordinal),
    }
}

/// What tells the workspaces of the device's kernels.
fn workspaces_of(device: Device) -> Workspaces {
    match device {
        Device::Host => lmsc_runtime::workspaces,
        Device::Cuda { .. } => cuda::workspaces,
    }
}

/// The program of the graph on the device, in an arena of the budget.
fn program(graph: &Graph, budget: Option<Bytes>, device: Device) -> Result<Program, LowerError> {
    let needed = workspaces_of(device)(graph);
    let workspace = |node| needed.get(&node).copied().unwrap_or_default();
    lower(graph, &Lowering { arena: budget, workspace: &workspace })
}

/// What messages about a run name.
#[derive(Clone, Copy)]
struct Subject<'a> {
    path: &'a Path,
    device: Device,
    /// The target for which it was planned, if one is known.
    planned_for: Option<&'a str>,
}

impl Subject<'_> {
    /// The option that plans for the device.
    fn target(&self) -> String {
        format!("--target {}", device::target_of(self.device))
    }
}

fn refused(subject: &Subject<'_>, graph: &Graph, error: LowerError) -> Error {
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

fn not_ready(subject: &Subject<'_>, error: RunError) -> Error {
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
            // Libraries and kernels take some of what is free.
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
        // The run is lost, and nothing that was written before.
        RunError::Copy { .. } => return Error::new(Code::Failed, error.to_string()),
        RunError::Stopped(_) => return Error::new(Code::Stopped, error.to_string()),
        RunError::Chunk { .. } => return Error::new(Code::Option, format!("--virtual: {error}")),
        RunError::Chunks { needed, bytes, .. } => {
            let enough = Bytes(needed.saturating_mul(*bytes));
            return Error::new(Code::MachineMemory, format!("{cannot}: {error}")).with_help(format!(
                "give smaller chunks, or --budget {} ({enough}); or plan with a smaller budget",
                enough.0
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

/// What the caller sets before each step: by input, one batch or several.
type Feed = BTreeMap<String, Vec<bytes::Bytes>>;

/// What a session begins with, besides what is in it.
struct Prepared {
    feed: Feed,
    /// Inputs and initializers whose values lmsc chose.
    drawn: Vec<String>,
    checkpoint: Checkpoint,
    /// What a step changes.
    variables: BTreeMap<String, Type>,
}

/// Gives everything its first value.
fn prepare(args: &RunOptions, graph: &Graph, session: &mut Runner, open: &Open) -> Result<Prepared, Error> {
    let resumed =
        args.resume.as_deref().map(|path| Ok::<_, Error>((path, Tensors::read(path)?))).transpose()?;
    let before = resumed.as_ref().map(|(path, tensors)| checkpoint::says(path, tensors)).transpose()?;
    let seed = seed(args, before.as_ref())?;
    session.set_seed(seed);
    let names = Names::of(session.program());
    if let Some(path) = &args.save {
        tensors::check_types(path, names.variables.iter().map(|(name, ty)| (&**name, ty)))?;
    }
    let checkpoint = Checkpoint::new(seed, session.device(), args.skip_closed);
    let mut first = First { session, names, checkpoint, drawn: BTreeMap::new(), feed: Feed::new() };
    first.draw(open, seed);
    first.give(args.params.as_deref(), false)?;
    first.give(args.feeds.as_deref(), true)?;
    first.batches(args.data.as_deref().filter(|path| *path != Path::new("synthetic")))?;
    // The session counts it.
    if let Some(counter) = steps_input(first.session.program()).filter(|name| !first.feed.contains_key(name))
    {
        first.drawn.remove(&counter);
        first.checkpoint.forget(&counter);
    }
    if let (Some((path, tensors)), Some(before)) = (&resumed, &before) {
        first.resume(path, tensors)?;
        first.session.set_steps(before.steps);
    }
    let First { session: _, names, mut checkpoint, drawn, feed } = first;
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
    Ok(Prepared { feed, drawn: prepared, checkpoint, variables: names.variables })
}

/// The first values of a session, while they are collected.
struct First<'a> {
    session: &'a mut Runner,
    names: Names,
    checkpoint: Checkpoint,
    /// What nothing has given yet.
    drawn: BTreeMap<String, Value>,
    feed: Feed,
}

impl First<'_> {
    /// Random values for all that the model has no bytes of.
    fn draw(&mut self, open: &Open, seed: u64) {
        for (name, ty) in open {
            let bytes = synthetic(name, ty, seed);
            self.session.set(name, &bytes);
            self.drawn.insert(name.clone(), Value::new(Origin::Drawn, &bytes));
        }
    }

    /// The tensors of --params, or of --feeds, whose inputs are fed.
    fn give(&mut self, path: Option<&Path>, is_fed: bool) -> Result<(), Error> {
        let Some(path) = path else { return Ok(()) };
        let many = if is_fed { "inputs and initializers" } else { "parameters and inputs" };
        let tensors = given(path, &self.names.settable, many)?;
        for (name, ty) in tensors.types() {
            let bytes = tensors.bytes(name)?;
            self.session.set(name, &bytes);
            self.drawn.remove(name);
            if !self.names.variables.contains_key(name) {
                self.checkpoint.give(name, ty, &bytes);
            }
            // It stays what it is: at every step the same.
            if is_fed && self.names.inputs.contains_key(name) {
                self.feed.insert(name.to_owned(), vec![bytes]);
            }
        }
        Ok(())
    }

    /// The batches of --data, but of inputs that --feeds gives.
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
            self.checkpoint.says.batches.insert(name.to_owned(), checkpoint::digest(&all));
            // There is at least one, also of an input without bytes.
            let count = all.len().checked_div(size).unwrap_or(1);
            let batches = (0..count).map(|i| all.slice(i * size..(i + 1) * size)).collect();
            self.feed.insert(name.to_owned(), batches);
        }
        Ok(())
    }

    /// The tensors of a checkpoint, but for what is given now, which is compared with what it was.
    fn resume(&mut self, path: &Path, tensors: &Tensors) -> Result<(), Error> {
        fits(path, tensors, &self.names.settable, "variables and inputs", false)?;
        let missing = self.names.variables.keys().filter(|name| !tensors.contains(name));
        lacks(path, &missing.collect::<Vec<_>>())?;
        for (name, ty) in tensors.types() {
            if self.checkpoint.knows(name) {
                continue;
            }
            let bytes = tensors.bytes(name)?;
            self.session.set(name, &bytes);
            self.drawn.remove(name);
            if !self.names.variables.contains_key(name) {
                self.checkpoint.give(name, ty, &bytes);
            }
        }
        Ok(())
    }
}

/// By name, what a step is given.
struct Names {
    /// All of it.
    settable: BTreeMap<String, Type>,
    /// What the caller may set before each step.
    inputs: BTreeMap<String, Type>,
    /// What the step changes.
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

/// The seed of the run, which is that of the run that is resumed.
fn seed(args: &RunOptions, before: Option<&checkpoint::Says>) -> Result<u64, Error> {
    match (args.seed, before.map(|before| before.seed)) {
        (Some(seed), Some(before)) if seed != before => {
            let message = format!("--seed {seed}, and the run that is resumed has the seed {before}");
            Err(Error::new(Code::Option, message).with_help("leave --seed out"))
        }
        (seed, before) => Ok(before.or(seed).unwrap_or(0)),
    }
}

/// The tensors of --params or --feeds in the file at the path.
fn given(path: &Path, settable: &BTreeMap<String, Type>, many: &str) -> Result<Tensors, Error> {
    let is_model = path.extension().is_some_and(|extension| extension == "onnx");
    let mut tensors = if is_model { Tensors::of_model(path)? } else { Tensors::read(path)? };
    if is_model {
        // Of a model's initializers, constants of its own are no parameters here.
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

/// Refuses tensors that are not of these names and types, and lists what is wrong.
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
        } else {
            error
        })
    }
}

/// What was computed, and of what is given what was asked for.
fn all_fetched(
    session: &mut Runner,
    mut fetched: BTreeMap<String, Stored>,
    fetches: &Fetches,
) -> BTreeMap<String, Stored> {
    for (computed, names) in fetches {
        for (name, ty) in names.iter().filter(|(name, _)| !fetched.contains_key(name)).collect::<Vec<_>>() {
            if let Some(bytes) = session.get(computed) {
                fetched.insert(name.clone(), Stored { ty: ty.clone(), bytes: bytes.into() });
            }
        }
    }
    fetched
}
