//! `lmsc run` and `lmsc calibrate`: steps that really run, on the host.

mod calibrate;
mod synthetic;
mod tensors;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;
use lmsc_ir::program::{Action, Checked, Launch, Program, Role, Stream, Tensor, peak_in_order};
use lmsc_ir::{Bytes, ElementType, Graph, Name, Phases, Storages, Type, words};
use lmsc_passes::{LowerError, Lowering, PassCx, lower};
use lmsc_runtime::{Fragmentation, Link, Measured, RunError, Session, Turn, Unready, Watch, workspaces};
use serde_json::json;

use crate::cli::RunArgs;
use crate::error::called;
use crate::{Error, emit, load};
pub use calibrate::calibrate;
pub use synthetic::synthetic;
use tensors::{Stored, Tensors};

/// Runs a model's steps, and prints what they came to.
///
/// # Errors
/// [`Error::No`] where the step does not fit, or computes what is no number and that was to be noticed; the other
/// families as they say.
pub fn run(args: &RunArgs, out: &mut dyn Write) -> Result<(), Error> {
    for target in args.save.iter().chain(&args.out).chain(&args.trace) {
        emit::check_target(target)?;
    }
    let path = args.input.path();
    let load::Loaded { mut graph, model, .. } = load(path, &args.input.binding)?;
    tensors::inline(&mut graph, model.as_ref().and_then(|model| model.folder.as_deref()))?;
    let planned = model.as_ref().filter(|_| graph.has_addresses()).and_then(planned_budget);
    let budget = args.budget.or(planned);
    let program = program(&graph, budget).map_err(|e| refused(path, &graph, e))?;
    let program =
        Checked::new(program).map_err(|flaw| Error::Ours(format!("the lowered step is not safe: {flaw}")))?;
    let link = Link {
        out_bytes_per_second: args.copy_bandwidth.map(|bytes| bytes.0),
        in_bytes_per_second: args.copy_bandwidth.map(|bytes| bytes.0),
        latency_nanos: 0,
    };
    let (arena, extent) = (program.arena, program.extent());
    let session = match args.chunk {
        Some(chunk) => Session::in_chunks(&program, link, chunk.0, budget.map(|budget| budget.0)),
        None => Session::new(program, link),
    };
    let mut session = session.map_err(|e| not_ready(path, e))?;
    session.traces = args.trace.is_some();
    let feed = prepare(args, &mut session)?;
    let first = session.steps();
    let mut watch = Watcher::new(args, &graph, session.program(), feed, out)?;
    let ran = session.run(args.steps, &mut watch);
    let Watcher { losses, loss, fetched, fetches, bar, .. } = watch;
    bar.finish_and_clear();
    let measured = ran.map_err(|error| match error {
        RunError::Stopped(why) => Error::No(why),
        other => not_ready(path, other),
    })?;
    let last = loss.as_deref().and_then(|loss| session.get(loss)).and_then(|bytes| float(&bytes));
    let losses: Vec<f32> = losses.into_iter().chain(last).collect();
    let report = Report { arena, extent, ..Report::new(&graph, &session, &measured, first, losses, budget) };
    if args.json {
        writeln!(out, "{:#}", report.to_json())
    } else {
        out.write_all(report.to_text().as_bytes())
    }
    .map_err(|e| Error::writing(Path::new("-"), &e))?;
    if let Some(path) = &args.save {
        Tensors::write(path, &variables(&mut session), Some((session.steps(), session.seed)))?;
    }
    if let (Some(path), Some(fetches)) = (&args.out, fetches) {
        let fetched = all_fetched(&mut session, fetched, &fetches);
        Tensors::write(path, &fetched, None)?;
    }
    if let Some(path) = &args.trace {
        let trace = trace::trace(session.program(), &measured.events).to_string();
        crate::write_atomically(path, |w| w.write_all(trace.as_bytes()))?;
    }
    Ok(())
}

/// The budget for which a file was written.
fn planned_budget(model: &lmsc_onnx::Model) -> Option<Bytes> {
    let entry =
        model.proto.metadata_props.iter().find(|entry| entry.key.as_deref() == Some("ai.lmsc.budget"))?;
    entry.value.as_deref()?.parse().ok().map(Bytes)
}

/// The program of the graph on the host, in an arena of the budget.
fn program(graph: &Graph, budget: Option<Bytes>) -> Result<Program, LowerError> {
    let needed = workspaces(graph);
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
    let message = format!("{} cannot run here:\n{error}", called(path));
    match error {
        RunError::Chunk { .. } => return Error::Input(format!("--virtual: {error}")),
        RunError::Chunks { needed, bytes, .. } => {
            let enough = Bytes(needed.saturating_mul(bytes));
            return Error::No(message).with_help(format!(
                "give smaller chunks, or --budget {} ({enough}); or plan with a smaller budget",
                enough.0
            ));
        }
        RunError::Many { .. } => return Error::No(message).with_help("give larger chunks"),
        _ => {}
    }
    let RunError::NotReady(not_ready) = &error else { return Error::No(message) };
    match not_ready.0.iter().any(|one| matches!(one, Unready::Workspace { .. })) {
        true => Error::Input(message)
            .with_help("plan with --target host: its operators need what the kernels here need"),
        false => Error::Input(message),
    }
}

/// What the caller sets before each step: by input, one batch or several.
type Feed = BTreeMap<String, Vec<Vec<u8>>>;

/// Gives everything its first value; what differs from step to step comes back.
fn prepare(args: &RunArgs, session: &mut Session) -> Result<Feed, Error> {
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
    session.seed = args.seed.unwrap_or(0);
    for (name, ty) in open {
        session.set(&name, &synthetic(&name, &ty, session.seed));
    }
    let set = |session: &mut Session, tensors: &BTreeMap<String, Stored>| {
        for (name, stored) in tensors {
            session.set(name, &stored.bytes);
        }
    };
    if let Some(path) = &args.params {
        let is_model = path.extension().is_some_and(|extension| extension == "onnx");
        let mut tensors = match is_model {
            true => Tensors::of_model(path, &args.input.binding)?,
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
        session.seed = args.seed.unwrap_or(seed);
    }
    let mut feed = Feed::new();
    if args.data != Path::new("synthetic") {
        let tensors = Tensors::read(&args.data)?;
        fits(&args.data, &tensors.by_name, &inputs, "inputs", true)?;
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
fn variables(session: &mut Session) -> BTreeMap<String, Stored> {
    let given = session.program().given.iter().filter(|given| matches!(given.role, Role::Variable(_)));
    let names: Vec<Tensor> = given.map(|given| given.tensor.clone()).collect();
    names.iter().filter_map(|tensor| Some((tensor.name.to_string(), stored(session, tensor)?))).collect()
}

fn stored(session: &mut Session, tensor: &Tensor) -> Option<Stored> {
    let ty = tensor.ty.as_tensor()?.clone();
    Some(Stored { ty, bytes: session.get(&tensor.name)? })
}

/// What is to be fetched: a value's name, by the name under which the program computes it.
type Fetches = BTreeMap<Name, Vec<(String, lmsc_ir::TensorType)>>;

/// Sees a run from within: gives data, keeps losses, looks for what is no number, fetches values of the last step.
struct Watcher<'a> {
    out: &'a mut dyn Write,
    prints: bool,
    feed: Feed,
    steps_input: Option<String>,
    loss: Option<Name>,
    losses: Vec<f32>,
    checks: bool,
    fetches: Option<Fetches>,
    fetched: BTreeMap<String, Stored>,
    /// How many steps there are, and how many have begun.
    steps: u64,
    begun: u64,
    bar: ProgressBar,
}

impl<'a> Watcher<'a> {
    fn new(
        args: &RunArgs,
        graph: &Graph,
        program: &Program,
        feed: Feed,
        out: &'a mut dyn Write,
    ) -> Result<Watcher<'a>, Error> {
        let loss = Phases::of(graph, |_| None).loss.map(|loss| graph.value(loss).name.clone());
        let is_count = |given: &&lmsc_ir::program::Given| {
            let tensor = given.tensor.ty.as_tensor();
            given.role == Role::Input
                && &*given.tensor.name == "step"
                && tensor.is_some_and(|t| t.element == ElementType::Int64 && t.element_count() == Some(1))
        };
        let steps_input = program.given.iter().find(is_count).map(|given| given.tensor.name.to_string());
        let hidden = args.json || !std::io::IsTerminal::is_terminal(&std::io::stderr());
        Ok(Watcher {
            out,
            prints: !args.json,
            steps_input: steps_input.filter(|name| !feed.contains_key(name)),
            feed,
            loss,
            losses: Vec::new(),
            checks: args.check_numerics,
            fetches: args.fetch.as_deref().map(|names| fetches(names, graph, program)).transpose()?,
            fetched: BTreeMap::new(),
            steps: args.steps,
            begun: 0,
            bar: if hidden { ProgressBar::hidden() } else { ProgressBar::new(args.steps) },
        })
    }
}

impl Watch for Watcher<'_> {
    fn turn(&mut self, turn: &mut Turn<'_>) -> Result<(), String> {
        let loss = self.loss.as_ref().and_then(|loss| turn.output(loss)).and_then(float);
        if let Some(loss) = loss {
            self.losses.push(loss);
            if self.prints {
                // Who reads may have seen enough.
                _ = writeln!(self.out, "step {}: loss {loss}", turn.number);
            }
        }
        for (name, batches) in &self.feed {
            turn.set(name, &batches[(turn.number % batches.len() as u64) as usize]);
        }
        if let Some(name) = &self.steps_input {
            turn.set(name, &(turn.number as i64 + 1).to_le_bytes());
        }
        self.bar.set_position(self.begun);
        self.begun += 1;
        Ok(())
    }

    fn launched(&mut self, launch: &Launch, bytes: &dyn Fn(&Tensor) -> Vec<u8>) -> Result<(), String> {
        if self.checks {
            for tensor in launch.results.iter().flatten() {
                if let Some(index) = no_number(&tensor.ty, &bytes(tensor)) {
                    return Err(format!(
                        "node `{}` ({}): element {index} of `{}` is no number, the first in step {}",
                        launch.node, launch.op, tensor.name, self.begun
                    ));
                }
            }
        }
        if let (Some(fetches), true) = (&self.fetches, self.begun == self.steps) {
            for tensor in launch.results.iter().flatten() {
                for (name, ty) in fetches.get(&tensor.name).into_iter().flatten() {
                    let stored = Stored { ty: ty.clone(), bytes: bytes(tensor) };
                    self.fetched.insert(name.clone(), stored);
                }
            }
        }
        Ok(())
    }
}

/// The first element that is no number, or an infinite one.
fn no_number(ty: &Type, bytes: &[u8]) -> Option<usize> {
    match ty.as_tensor()?.element {
        ElementType::Float => bytes.as_chunks().0.iter().position(|&b| !f32::from_le_bytes(b).is_finite()),
        ElementType::Double => bytes.as_chunks().0.iter().position(|&b| !f64::from_le_bytes(b).is_finite()),
        ElementType::Bfloat16 => {
            bytes.as_chunks().0.iter().position(|&b| u16::from_le_bytes(b) & 0x7f80 == 0x7f80)
        }
        ElementType::Float16 => {
            bytes.as_chunks().0.iter().position(|&b| u16::from_le_bytes(b) & 0x7c00 == 0x7c00)
        }
        _ => None,
    }
}

fn float(bytes: &[u8]) -> Option<f32> {
    bytes.first_chunk().map(|&bytes| f32::from_le_bytes(bytes))
}

/// By the name under which the program computes it, what is asked for: values, views of them, or all.
fn fetches(names: &[String], graph: &Graph, program: &Program) -> Result<Fetches, Error> {
    let storages = Storages::of(graph);
    let results = program.launches().flat_map(|(_, launch)| launch.results.iter().flatten());
    let given = program.given.iter().map(|given| &given.tensor);
    let there: BTreeSet<&Name> = results.chain(given).map(|tensor| &tensor.name).collect();
    let mut found = Fetches::new();
    let mut add = |name: &str| {
        let value = graph.value_named(name)?;
        let ty = graph.value(value).ty.as_tensor()?.clone();
        let storage = storages.get(storages.storage(value));
        let own = &graph.value(value).name;
        let root = &graph.value(storage.root).name;
        let computed = [own, root].into_iter().find(|name| there.contains(name))?;
        found.entry(computed.clone()).or_default().push((name.to_owned(), ty));
        Some(())
    };
    if names.iter().any(|name| name == "all") {
        there.iter().filter(|name| !name.is_empty()).for_each(|name| _ = add(name));
        return Ok(found);
    }
    let wrong: Vec<String> = names
        .iter()
        .filter(|name| add(name).is_none())
        .map(|name| {
            let instead = words::instead(name, there.iter().map(|name| &***name), "values");
            format!("--fetch {name}: no node computes this value on the device; {instead}")
        })
        .collect();
    if wrong.is_empty() { Ok(found) } else { Err(Error::Input(wrong.join("\n"))) }
}

/// What was computed, and of what is given what was asked for.
fn all_fetched(
    session: &mut Session,
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

/// What there is to tell about a run.
struct Report {
    losses: Vec<f32>,
    first: u64,
    steps: Vec<Duration>,
    /// The most bytes of the device in use at once, as measured; what the plan allows; and the device's.
    peak: Bytes,
    predicted: Bytes,
    in_order: Bytes,
    arena: Bytes,
    extent: Bytes,
    slab: Bytes,
    budget: Option<Bytes>,
    /// What chunks come to, where it runs in chunks.
    virtual_: Option<Fragmentation>,
    /// In a step, to the host and back.
    copied: [Bytes; 2],
    copies: [usize; 2],
    /// How much of the time of all copies passed while something computed, in percent.
    hidden: Option<f64>,
}

impl Report {
    fn new(
        graph: &Graph,
        session: &Session,
        measured: &Measured,
        first: u64,
        losses: Vec<f32>,
        budget: Option<Bytes>,
    ) -> Report {
        let program = session.program();
        let cx = PassCx { workspaces: Some(workspaces), ..PassCx::default() };
        let copying = measured.busy[Stream::Out as usize] + measured.busy[Stream::In as usize];
        let exposed = measured.stalled.as_secs_f64() / copying.as_secs_f64();
        let copies = |stream| {
            let is_copy = |command: &&lmsc_ir::program::Command| matches!(command.action, Action::Copy(_));
            program.stream(stream).iter().filter(is_copy).count()
        };
        Report {
            losses,
            first,
            steps: measured.steps.clone(),
            peak: Bytes(measured.peak),
            predicted: cx.memory(graph).peak(),
            in_order: Bytes(peak_in_order(program)),
            arena: program.arena,
            extent: program.extent(),
            slab: program.slab,
            budget,
            virtual_: session.fragmentation,
            copied: [program.copied(Stream::Out), program.copied(Stream::In)],
            copies: [copies(Stream::Out), copies(Stream::In)],
            hidden: (copying > Duration::ZERO).then(|| 100.0 * (1.0 - exposed).clamp(0.0, 1.0)),
        }
    }

    /// The median of the steps' times but the first, in which memory is still cold.
    fn step_time(&self) -> Option<Duration> {
        let mut times = self.steps.get(1..).filter(|rest| !rest.is_empty()).unwrap_or(&self.steps).to_vec();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    }

    /// Bytes of the arena below its last address that are in nothing when most of it is in use.
    fn lost_in_arena(&self) -> Bytes {
        Bytes(self.extent.0.saturating_sub(self.in_order.0))
    }

    fn to_json(&self) -> serde_json::Value {
        let chunks = self.virtual_.map(|it| {
            json!({
                "chunk": it.chunk,
                "chunks": it.chunks,
                "lost": it.lost,
                "lost_below": it.bound(),
                "lost_in_arena": self.lost_in_arena().0,
            })
        });
        json!({
            "first_step": self.first + 1,
            "losses": self.losses,
            "step_seconds": self.steps.iter().map(Duration::as_secs_f64).collect::<Vec<_>>(),
            "peak": self.peak.0,
            "predicted_peak": self.predicted.0,
            "peak_in_order": self.in_order.0,
            "arena": self.arena.0,
            "last_address": self.extent.0,
            "slab": self.slab.0,
            "budget": self.budget.map(|budget| budget.0),
            "copied_out": self.copied[0].0,
            "copied_in": self.copied[1].0,
            "copies_out": self.copies[0],
            "copies_in": self.copies[1],
            "hidden_percent": self.hidden,
            "virtual": chunks,
        })
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        if let Some(loss) = self.losses.last().filter(|_| self.losses.len() == self.steps.len()) {
            text += &format!("step {}: loss {loss}\n", self.first + self.steps.len() as u64);
        }
        if let Some(time) = self.step_time() {
            text += &format!("{:.3} ms a step\n", time.as_secs_f64() * 1e3);
        }
        let of = self.budget.map(|budget| format!(" of {budget}")).unwrap_or_default();
        text += &format!(
            "device: at most {} ({} bytes) in use, predicted {}; addresses up to {}{of}\n",
            self.peak, self.peak.0, self.predicted, self.extent
        );
        if let Some(it) = self.virtual_ {
            let (chunk, all) = (Bytes(it.chunk), Bytes(it.chunk.saturating_mul(it.chunks)));
            text += &format!(
                "chunks of {chunk}: at most {} in use, {all}, of which at most {} are lost, below {} (OOC eq. 2); \
                 an arena loses {}\n",
                it.chunks,
                Bytes(it.lost),
                Bytes(it.bound()),
                self.lost_in_arena(),
            );
        }
        if self.copies == [0, 0] {
            return text + "nothing was copied\n";
        }
        text += &format!(
            "a step copies {} out in {} and {} in in {}, through {} of the host\n",
            self.copied[0],
            words::count(self.copies[0], "copy"),
            self.copied[1],
            words::count(self.copies[1], "copy"),
            self.slab
        );
        if let Some(hidden) = self.hidden {
            text += &format!("{hidden:.0} % of the copying was hidden\n");
        }
        text
    }
}
