//! `lmsc run` and `lmsc calibrate`: steps that really run, on the host or a device of CUDA.

mod calibrate;
mod interrupt;
mod page;
mod report;
mod runner;
mod synthetic;
mod tensors;
mod trace;
mod watch;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use lmsc_ir::program::{Checked, Memory, Program, Role, Tensor};
use lmsc_ir::{Bytes, Graph, Type, words};
use lmsc_onnx::Dims;
use lmsc_passes::{LowerError, Lowering, PassCx, Workspaces, lower};
use lmsc_plan::Target;
use lmsc_runtime::{Link, RunError, Unready};

use crate::cli::{CompileArgs, Device, RunArgs, RunOptions};
use crate::error::called;
use crate::{Compiled, Error, emit, load, targets, view};
pub use calibrate::calibrate;
use report::{Prediction, Report};
use runner::Runner;
pub use synthetic::synthetic;
use tensors::{Stored, Tensors};
use watch::{Fetches, Watcher};

/// The number of tensors in a file of the format safetensors, which is at the path.
///
/// # Errors
/// [`Error::Input`] with what is wrong with it.
pub fn tensors_in(bytes: &[u8], path: &Path) -> Result<usize, Error> {
    Ok(Tensors::of_bytes(bytes, path)?.by_name.len())
}

/// How many steps run where the user does not say.
const STEPS: u64 = 10;

/// Runs a model's steps, and prints what they came to.
///
/// # Errors
/// [`Error::No`] where the step does not fit, or computes what is no number and that was to be noticed;
/// [`Error::Interrupted`] where a signal ended it; the other families as they say.
pub fn run(args: &RunArgs, out: &mut dyn Write) -> Result<(), Error> {
    check_targets(&args.options, args.report.as_deref())?;
    let path = args.input.path();
    let device = args.device()?;
    let load::Loaded { mut graph, model, dims, .. } = load(path, &args.input.binding)?;
    tensors::inline(&mut graph, model.as_ref().and_then(|model| model.folder.as_deref()))?;
    let planned = model.as_ref().filter(|_| graph.has_addresses()).and_then(planned_budget);
    let cx = PassCx {
        budget: args.budget.or(planned),
        target: Some(Target::built_in("host").expect("the host is built in").clone()),
        profile: targets::read_profile(args.profile.as_deref())?,
        workspaces: Some(workspaces_of(device)),
        ..PassCx::default()
    };
    let options = &args.options;
    let job = Job { path, graph: &graph, cx: &cx, options, device, dims: &dims };
    let ran = job.run(args.report.as_deref(), (!args.json).then_some(&mut *out))?;
    if args.json {
        writeln!(out, "{:#}", ran.report.to_json()).map_err(|e| Error::writing(Path::new("-"), &e))?;
    }
    ran.end
}

/// Runs steps of what was compiled, and prints what they came to; as JSON, what there is to tell of both.
///
/// # Errors
/// As [`run()`].
pub fn run_compiled(args: &CompileArgs, compiled: &Compiled, out: &mut dyn Write) -> Result<(), Error> {
    let cx = crate::pass_cx(&args.plan)?;
    let mut graph = compiled.graph().clone();
    tensors::inline(&mut graph, compiled.folder.as_deref())?;
    let (path, dims) = (args.input.path(), &compiled.dims);
    let chunk = args.options.chunk.or(args.plan.pages);
    let (options, device) = (&RunOptions { chunk, ..args.options.clone() }, Device::Host);
    let job = Job { path, graph: &graph, cx: &cx, options, device, dims };
    let mut print =
        |text: &str| out.write_all(text.as_bytes()).map_err(|e| Error::writing(Path::new("-"), &e));
    let page = args.report.as_deref().filter(|file| crate::is_page(file));
    if !args.json {
        print(&compiled.report.to_text(args.verbose))?;
        return job.run(page, Some(out))?.end;
    }
    let ran = job.run(page, None)?;
    let mut json = serde_json::to_value(&compiled.report).expect("a report is JSON");
    json["run"] = ran.report.to_json();
    print(&format!("{json:#}\n"))?;
    ran.end
}

/// Refuses paths that nothing can be written to, before anything is done.
///
/// # Errors
/// [`Error::Input`] naming the path.
pub(crate) fn check_targets(options: &RunOptions, report: Option<&Path>) -> Result<(), Error> {
    let targets = [&options.save, &options.out, &options.trace].into_iter().flatten();
    targets.map(|path| &**path).chain(report).try_for_each(emit::check_target)
}

/// Steps to run.
struct Job<'a> {
    path: &'a Path,
    /// With the bytes of its initializers.
    graph: &'a Graph,
    /// For which budget and machine it is planned.
    cx: &'a PassCx,
    options: &'a RunOptions,
    /// What runs them.
    device: Device,
    dims: &'a Dims,
}

/// What they came to.
struct Ran {
    report: Report,
    /// Whether a signal ended them.
    end: Result<(), Error>,
}

impl Job<'_> {
    /// Runs them, with the losses and the report printed to `out` if it is given, and writes what is to be written.
    fn run(&self, page: Option<&Path>, mut out: Option<&mut dyn Write>) -> Result<Ran, Error> {
        let Job { path, graph, cx, options, .. } = *self;
        let steps = options.steps.unwrap_or(STEPS);
        let program = program(graph, cx.budget, self.device).map_err(|e| refused(path, graph, e))?;
        let program = Checked::new(program)
            .map_err(|flaw| Error::Ours(format!("the lowered step is not safe: {flaw}")))?;
        let bandwidth = options.copy_bandwidth.map(|bytes| bytes.0);
        let link = Link { out_bytes_per_second: bandwidth, in_bytes_per_second: bandwidth, latency_nanos: 0 };
        let (arena, extent) = (program.arena, program.extent());
        let budget = cx.budget.map(|budget| budget.0);
        let session = Runner::new(program, self.device, options, link, budget);
        let mut session = session.map_err(|e| not_ready(path, e))?;
        session.set_traces(options.trace.is_some() || page.is_some());
        session.skip_closed(options.skip_closed);
        let feed = prepare(options, self.dims, &mut session)?;
        let first = session.steps();
        let signal = interrupt::listen();
        let reborrowed = out.as_mut().map(|out| &mut **out as &mut dyn Write);
        let mut watch = Watcher::new(options, steps, graph, session.program(), feed, signal, reborrowed)?;
        let ran = session.run(steps, &mut watch);
        let Watcher { losses, loss, fetched, fetches, bar, .. } = watch;
        bar.finish_and_clear();
        let measured = ran.map_err(|error| match error {
            RunError::Stopped(why) => Error::No(why),
            other => not_ready(path, other),
        })?;
        let done = measured.steps.len() as u64;
        let last = loss.as_deref().filter(|_| done > 0).and_then(|loss| session.get(loss));
        let losses: Vec<f32> = losses.into_iter().chain(last.as_deref().and_then(watch::float)).collect();
        let prediction = Prediction::new(graph, cx, bandwidth);
        let mut report = Report::new(graph, cx, &session, &measured, first, losses, &prediction);
        // In chunks, the session's program has addresses of its own.
        (report.arena, report.extent) = (arena, extent);
        if let Some(out) = out {
            out.write_all(report.to_text().as_bytes()).map_err(|e| Error::writing(Path::new("-"), &e))?;
        }
        if let Some(path) = &options.save {
            Tensors::write(path, &variables(&mut session), Some((session.steps(), session.seed())))?;
        }
        // What is fetched is of the last step, which a signal may have made another one.
        if let (Some(path), Some(fetches), true) = (&options.out, fetches, done == steps) {
            Tensors::write(path, &all_fetched(&mut session, fetched, &fetches), None)?;
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
}

/// What is said where a signal has ended a run.
fn interrupted(options: &RunOptions, done: u64, steps: u64) -> Error {
    let mut message = format!("interrupted after {done} of {}", words::count(steps as usize, "step"));
    if options.out.is_some() {
        message += "; what was to be fetched is of the last step, and is not written";
    }
    match &options.save {
        Some(path) => {
            Error::Interrupted(message).with_help(format!("--resume {} goes on from here", path.display()))
        }
        None => Error::Interrupted(message),
    }
}

/// The budget for which a file was written.
fn planned_budget(model: &lmsc_onnx::Model) -> Option<Bytes> {
    let entry =
        model.proto.metadata_props.iter().find(|entry| entry.key.as_deref() == Some("ai.lmsc.budget"))?;
    entry.value.as_deref()?.parse().ok().map(Bytes)
}

/// What tells the workspaces of the device's kernels.
fn workspaces_of(device: Device) -> Workspaces {
    match device {
        Device::Host => lmsc_runtime::workspaces,
        Device::Cuda { .. } => lmsc_runtime::cuda::workspaces,
    }
}

/// The program of the graph on the device, in an arena of the budget.
fn program(graph: &Graph, budget: Option<Bytes>, device: Device) -> Result<Program, LowerError> {
    let needed = workspaces_of(device)(graph);
    let workspace = |node| needed.get(&node).copied().unwrap_or_default();
    lower(graph, &Lowering { arena: budget, workspace: &workspace })
}

fn refused(path: &Path, graph: &Graph, error: LowerError) -> Error {
    let is_rewritten = graph.has_addresses() || graph.order().iter().any(|&n| graph.node(n).op.is_swap());
    let message = format!("{}: {error}", called(path));
    match error {
        LowerError::DoesNotFit { .. } if is_rewritten => {
            Error::No(message).with_help("plan the original again, with --target host and this budget")
        }
        LowerError::DoesNotFit { arena, .. } => Error::No(message).with_help(format!(
            "plan it for less memory first: lmsc {} --target host --budget {arena} -o FILE",
            path.display()
        )),
        LowerError::Unplaced { .. } | LowerError::Node { .. } => Error::Input(message),
    }
}

fn not_ready(path: &Path, error: RunError) -> Error {
    let not_ready = match &error {
        RunError::NotReady(not_ready) => not_ready,
        RunError::NoMemory { memory, .. } => {
            let help = match memory {
                Memory::Arena => "give a smaller --budget",
                Memory::Slab => "plan with a smaller --host-budget",
            };
            return Error::No(format!("{} cannot run here: {error}", called(path))).with_help(help);
        }
        RunError::Device(_) => {
            return Error::No(format!("{} fails on the CUDA device: {error}", called(path)));
        }
        RunError::NoDevice(_) => {
            return Error::No(format!("{} cannot run on a CUDA device: {error}", called(path))).with_help(
                "name the folders of CUDA's libraries in LMSC_CUDA_PATH, or run on the host, without --device",
            );
        }
        // The run is lost, and nothing that was written before.
        RunError::Copy { .. } | RunError::Stopped(_) => return Error::No(error.to_string()),
        RunError::Chunk { .. } => return Error::Input(format!("--virtual: {error}")),
        RunError::Chunks { needed, bytes, .. } => {
            let enough = Bytes(needed.saturating_mul(*bytes));
            return Error::No(format!("{} cannot run here: {error}", called(path))).with_help(format!(
                "give smaller chunks, or --budget {} ({enough}); or plan with a smaller budget",
                enough.0
            ));
        }
        RunError::Many { .. } => {
            return Error::No(format!("{} cannot run here: {error}", called(path)))
                .with_help("give larger chunks");
        }
    };
    let message = format!("{} cannot run here:\n{error}", called(path));
    match not_ready.0.iter().any(|one| matches!(one, Unready::Workspace { .. })) {
        true => Error::Input(message)
            .with_help("plan with --target host: its operators need what the kernels here need"),
        false => Error::Input(message),
    }
}

/// What the caller sets before each step: by input, one batch or several.
type Feed = BTreeMap<String, Vec<Vec<u8>>>;

/// Gives everything its first value; what differs from step to step comes back.
fn prepare(args: &RunOptions, dims: &Dims, session: &mut Runner) -> Result<Feed, Error> {
    let (mut settable, mut inputs, mut state) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let mut open = Vec::new();
    for given in &session.program().given {
        let (name, ty) = (given.tensor.name.to_string(), given.tensor.ty.clone());
        match given.role {
            Role::Input => _ = inputs.insert(name.clone(), ty.clone()),
            Role::Variable(_) => _ = state.insert(name.clone(), ty.clone()),
            Role::Constant => {}
        }
        if given.data.is_none() {
            open.push((name.clone(), ty.clone()));
        }
        settable.insert(name, ty);
    }
    let seed = args.seed.unwrap_or(0);
    session.set_seed(seed);
    for (name, ty) in open {
        session.set(&name, &synthetic(&name, &ty, seed));
    }
    let set = |session: &mut Runner, tensors: &BTreeMap<String, Stored>| {
        for (name, stored) in tensors {
            session.set(name, &stored.bytes);
        }
    };
    if let Some(path) = &args.params {
        let is_model = path.extension().is_some_and(|extension| extension == "onnx");
        let mut tensors = match is_model {
            true => Tensors::of_model(path, dims)?,
            false => Tensors::read(path)?,
        };
        if is_model {
            // Of a model's initializers, constants of its own are no parameters here.
            tensors.by_name.retain(|name, _| settable.contains_key(name));
            if tensors.by_name.is_empty() {
                return Err(Error::in_file(path, "none of its initializers is a parameter of the step"));
            }
        }
        fits(path, &tensors.by_name, &settable, "parameters and inputs", false)?;
        set(session, &tensors.by_name);
    }
    if let Some(path) = &args.resume {
        let tensors = Tensors::read(path)?;
        fits(path, &tensors.by_name, &state, "variables", false)?;
        let missing: Vec<&String> =
            state.keys().filter(|name| !tensors.by_name.contains_key(*name)).collect();
        if let Some(first) = missing.first() {
            let count = words::count(missing.len(), "variable");
            let message = format!("it lacks {count} of the step, `{first}` first");
            return Err(
                Error::in_file(path, message).with_help("give a file that --save wrote for this step")
            );
        }
        let Some((steps, seed)) = tensors.state else {
            let help = "give a file that --save wrote; parameters alone are given with --params";
            return Err(Error::in_file(path, "it does not say how many steps were run").with_help(help));
        };
        set(session, &tensors.by_name);
        session.set_steps(steps);
        session.set_seed(args.seed.unwrap_or(seed));
    }
    let mut feed = Feed::new();
    if let Some(path) = args.data.as_deref().filter(|path| *path != Path::new("synthetic")) {
        let tensors = Tensors::read(path)?;
        fits(path, &tensors.by_name, &inputs, "inputs", true)?;
        for (name, stored) in tensors.by_name {
            let size = inputs[&name].byte_size().unwrap_or_default().0.max(1) as usize;
            feed.insert(name, stored.bytes.chunks(size).map(<[u8]>::to_vec).collect());
        }
    }
    if let Some(path) = &args.feeds {
        let tensors = Tensors::read(path)?;
        fits(path, &tensors.by_name, &settable, "inputs and initializers", false)?;
        for (name, stored) in &tensors.by_name {
            session.set(name, &stored.bytes);
            // It stays what it is: at every step the same.
            if inputs.contains_key(name) {
                feed.insert(name.clone(), vec![stored.bytes.clone()]);
            }
        }
    }
    Ok(feed)
}

/// Refuses tensors that are not of these names and types, and lists what is wrong.
fn fits(
    path: &Path,
    tensors: &BTreeMap<String, Stored>,
    expected: &BTreeMap<String, Type>,
    many: &str,
    batches: bool,
) -> Result<(), Error> {
    let wrong = tensors::mismatches(tensors, expected, many, batches);
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Error::in_file(path, format!("not what the step takes:\n  {}", wrong.join("\n  ")))),
    }
}

/// What the step keeps from one to the next.
fn variables(session: &mut Runner) -> BTreeMap<String, Stored> {
    let given = session.program().given.iter().filter(|given| matches!(given.role, Role::Variable(_)));
    let names: Vec<Tensor> = given.map(|given| given.tensor.clone()).collect();
    names.iter().filter_map(|tensor| Some((tensor.name.to_string(), stored(session, tensor)?))).collect()
}

fn stored(session: &mut Runner, tensor: &Tensor) -> Option<Stored> {
    let ty = tensor.ty.as_tensor()?.clone();
    Some(Stored { ty, bytes: session.get(&tensor.name)? })
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
                fetched.insert(name.clone(), Stored { ty: ty.clone(), bytes });
            }
        }
    }
    fetched
}
