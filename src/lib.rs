//! The driver of `lmsc`: reads a model, runs the passes, proves the result, writes it. The algorithms are in other
//! crates.
//!
//! Programs that use the library start with [`Compiler`], which compiles a step; a [`Session`] runs it.

#![forbid(unsafe_code)]

pub mod budget;
mod check;
pub mod cli;
mod codes;
pub mod command;
mod compile;
mod compiler;
mod defaults;
mod device;
mod emit;
mod env;
mod error;
mod excerpt;
mod explain;
mod external;
mod files;
mod fit;
mod help;
mod inspect;
mod learning;
mod load;
mod look;
mod offsets;
mod opt;
mod plan;
mod planner;
mod problem;
mod progress;
mod proof;
mod reduce;
mod report;
pub mod run;
mod state;
mod survival;
mod sweep;
mod targets;
mod term;
mod view;
mod warning;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use budget::{Budget, Goal, smallest_budget};
pub use check::check_file;
pub use cli::{Addresses, Device, Form};
use cli::{BindingArgs, CompileArgs, MachineArgs, PlanArgs};
pub use codes::{Code, documented_errors, explain_error};
use compile::compile_for;
pub use compiler::Compiler;
use emit::Emitted;
pub use emit::write_atomically;
pub use env::env;
pub use error::{Error, ErrorKind};
pub use explain::explain;
pub use fit::fit;
pub use inspect::inspect;
use lmsc_cuda as cuda;
use lmsc_ir::equiv::{Difference, Equivalence};
use lmsc_ir::{Bytes, Digest, Graph, Phases, words};
use lmsc_onnx::file::Opened;
use lmsc_passes::{
    CallOption, CallOptions, GivenPlan, Pass, PassCx, Pipeline, REGISTRY, Ran, TFLMS, question,
};
use lmsc_plan::planners::planner;
pub use lmsc_plan::schedule::{Progress, Watch};
use lmsc_plan::target::Kernels;
use lmsc_plan::tflms::{self, Scope};
use lmsc_plan::threads::both;
use lmsc_plan::{Cause, Floors, Otherwise, Reach, Refusal, Smallest, service};
pub use lmsc_runtime::DeviceBytes;
pub use load::{Loaded, check, load};
pub use offsets::offsets;
pub use opt::opt;
pub use plan::plan;
pub use problem::{ProblemPlan, ProblemQuestion, plan_problem};
use progress::Stage;
pub use proof::verify;
pub use reduce::reduce;
pub use report::Report;
use report::{GraphFacts, KeptFacts, MemoryFacts, PassFacts, ProfileFacts, ProofFacts, SwappedFacts};
pub use run::{InputBytes, Session, TensorData};
pub use sweep::sweep;
pub use targets::{list_targets, target, target_names, targets_as_json};
pub use warning::Warning;

/// The version, with the commit of a release build and the features.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(long_version);
    &VERSION
}

fn long_version() -> String {
    let commit = match env!("LMSC_COMMIT") {
        "" => "a development build".to_owned(),
        commit => format!("commit {commit}"),
    };
    let features = if cfg!(feature = "melior") { "melior" } else { "none" };
    format!("{} ({commit}; features: {features})", env!("CARGO_PKG_VERSION"))
}

/// The planner of calls that name none.
pub const DEFAULT_PLANNER: &str = "auto";

/// A compiled step: its report, its graphs, and the data for writing and running it.
///
/// Dropping it releases large graphs, which takes time; a process that is about to end can forget it instead.
pub struct Compiled {
    /// The report of the compilation.
    pub report: Report,
    /// The graph that was read, and the compiled one.
    graphs: [Graph; 2],
    /// The folder of the model's files.
    folder: Option<PathBuf>,
    /// The files to whose mapped bytes the graphs refer.
    mapped: Vec<Arc<Opened>>,
    /// The inputs that are constants of the step.
    fixed: Vec<String>,
    /// The options of the passes.
    cx: PassCx,
    /// The bytes of a page, where the plan is for memory that is mapped in pages.
    pages: Option<Bytes>,
    /// The plan in the form of `--save-plan`; only for the library, and only if a plan was made.
    plan: Option<String>,
    /// The data for writing the model; only for the library.
    source: Option<compiler::Source>,
    _emitted: Option<Emitted>,
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

/// The caller of a compilation, which decides what is printed and kept.
enum Caller<'a> {
    /// The command: progress and warnings are shown, and a model may go to `out`.
    Command { out: &'a mut dyn Write },
    /// The library: nothing is printed, the model may be bytes, and it is kept for [`Compiled::write`].
    Library { bytes: Option<bytes::Bytes>, watch: Option<Arc<Watch>> },
}

/// Compiles a model: the main command. Prints the model if the output is standard output, and nothing else.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) if the budget cannot be met; other kinds as their documentation says.
pub fn compile(args: &CompileArgs, out: &mut dyn Write) -> Result<Compiled, Error> {
    check_call(args)?;
    compile_for(args, Caller::Command { out })
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

/// Refuses contradictory options, and output files that cannot be written.
fn check_call(args: &CompileArgs) -> Result<(), Error> {
    let planner = args.plan.search.planner.called().name;
    let nothing_planned = args.plans_nothing();
    if args.save_plan.is_some() && nothing_planned {
        let message = "--save-plan: nothing is planned that could be saved".to_owned();
        return Err(Error::new(Code::Option, message).with_help("give --budget, or leave it out"));
    }
    if args.save_plan.is_some() && planner == TFLMS {
        let message = format!("--save-plan: {TFLMS} rewrites the model itself and makes no plan to save");
        return Err(Error::new(Code::Option, message).with_help(
            "leave it out, or choose another --planner; of `lmsc plan`, the planner of that name has plans to save",
        ));
    }
    let given = [args.on.given(), args.options.given()].concat();
    if !given.is_empty() && !args.run {
        let message = format!("nothing is run, but how is said: {}", given.join(", "));
        return Err(Error::new(Code::Option, message).with_help("add --run, or leave these out"));
    }
    if args.run && args.output.as_deref() == Some(Path::new("-")) {
        let message = "the model and what a run prints cannot both go to standard output".to_owned();
        return Err(Error::new(Code::Option, message)
            .with_help("write the model to a file, or run it with `lmsc run -`"));
    }
    for output in args.output.iter() {
        emit::check_form(output, args.emit, &["onnx", "lms", "mlir"])?;
    }
    for target in args.output.iter().chain(&args.save_plan).chain(&args.trace_plan) {
        emit::check_target(target)?;
    }
    args.report.iter().try_for_each(|report| emit::check_report(report, &emit::PAGES))?;
    if let Some(page) = args.report.as_deref().filter(|file| is_page(file) && !args.run) {
        let message = format!("{} is to be a page, and nothing is run that it could show", page.display());
        return Err(Error::new(Code::Option, message).with_help(
            "add --run, draw the plan with `lmsc plan MODEL --report FILE.html`, or name a .json file",
        ));
    }
    run::check_targets(&args.options, None)?;
    if args.run {
        device::check(args.on.device(&args.options)?)?;
    }
    Ok(())
}

/// Whether the report at this path is an HTML page.
pub(crate) fn is_page(report: &Path) -> bool {
    report.extension().is_some_and(|extension| extension == "html")
}

/// Both results; `a` runs on its own thread if kernels may use several threads.
fn side_by_side<A: Send, B>(a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B) -> (A, B) {
    if lmsc_kernels::threads() == 1 { (a(), b()) } else { both(a, b) }
}

/// The error of passes that changed what the graph computes.
fn differs(difference: Difference) -> Error {
    Error::ours(format!("the rewritten graph differs: {difference}"))
}

/// The error; if it is a refusal, with the smallest budgets for which there is a plan, by any planner.
fn floors_of(error: Error, original: &Graph, cx: &PassCx) -> Error {
    error.map_refusal(|refusal| {
        let is_of_host = matches!(refusal.cause, Cause::HostIsFull { .. });
        if is_of_host {
            as_it_is(with_constants(refusal, cx), step_peak(original, cx), cx.constants)
        } else {
            device_floors(refusal, original, cx)
        }
    })
}

/// The refusal with the smallest device budgets for which there is a plan.
fn device_floors(refusal: Refusal, original: &Graph, cx: &PassCx) -> Refusal {
    let nothing = PassCx { budget: Some(Bytes::ZERO), ..cx.clone() };
    let Ok(bridge) = plan::before_planning(&mut original.clone(), &nothing) else {
        // Graphs that planners do not take were refused for another reason.
        return refusal;
    };
    let planner = planner(DEFAULT_PLANNER).expect("it is registered");
    let question = question(&bridge.problem, planner, Bytes::ZERO, cx);
    let floors = service::floors(&question).beside(cx.constants);
    let refusal = with_floors(with_constants(refusal, cx), &floors, cx.whole_budget());
    let is_tflms = cx.planner.is_none();
    if is_tflms && cx.addresses && fits_counted(original, cx) {
        with_room(refusal, original, cx)
    } else {
        refusal
    }
}

/// Whether TFLMS has a plan without addresses.
fn fits_counted(original: &Graph, cx: &PassCx) -> bool {
    let cx = PassCx { addresses: false, ..cx.clone() };
    Pipeline::of_planner(TFLMS).run(&mut original.clone(), &cx).is_ok()
}

/// Factors, in thousandths above the budget, by which a too small arena for a plan of TFLMS is enlarged, in this
/// order.
const MORE: [u128; 8] = [10, 20, 40, 80, 150, 300, 600, 1000];

/// The refusal of an arena for addresses, with the first larger arena for which TFLMS found addresses.
fn with_room(mut refusal: Refusal, original: &Graph, cx: &PassCx) -> Refusal {
    let budget = cx.budget.unwrap_or_default().0;
    let all = Pipeline::of_planner(TFLMS);
    let mut larger = MORE.iter().map(|more| Bytes((u128::from(budget) * (1000 + more) / 1000) as u64));
    let found = larger.find(|&larger| {
        let cx = PassCx { budget: Some(larger), ..cx.clone() };
        all.run(&mut original.clone(), &cx).is_ok()
    });
    match found.map(|larger| Bytes(larger.0.saturating_add(cx.constants.0))) {
        Some(bytes) => {
            refusal.smallest.push(Smallest { bytes, reach: Reach::Tried });
            refusal.with_help(format!("give --budget {} ({}), in which it fits", bytes.0, bytes.rounded_up()))
        }
        None => refusal,
    }
}

/// The refusal with the budget for which nothing is swapped: the peak of the step and the constants of kernels.
fn as_it_is(mut refusal: Refusal, peak: Bytes, constants: Bytes) -> Refusal {
    refusal.smallest.push(Smallest { bytes: peak + constants, reach: Reach::AsItIs });
    refusal
}

/// The refusal with the share of the budget that the constants of kernels take.
fn with_constants(refusal: Refusal, cx: &PassCx) -> Refusal {
    match cx.whole_budget().filter(|_| cx.constants > Bytes::ZERO) {
        Some(budget) => {
            refusal.with_fact(format!("Of {budget} the constants of kernels take {}.", cx.constants))
        }
        None => refusal,
    }
}

/// The refusal with the budgets for which there is a plan.
fn with_floors(refusal: Refusal, floors: &Floors, budget: Option<Bytes>) -> Refusal {
    let refusal = refusal.with_floors(floors);
    match budget.and_then(|budget| floors.fitting(budget.0)) {
        Some(options) => refusal.with_help(format!("{options} finds a plan for this budget")),
        None => refusal,
    }
}

/// The error; if it is a refusal, with advice on the sizes of the step.
fn smaller(error: Error, binding: &BindingArgs) -> Error {
    error.map_refusal(|refusal| smaller_step(refusal, binding))
}

/// The refusal with advice to reduce the dimensions that the call sets.
fn smaller_step(refusal: Refusal, binding: &BindingArgs) -> Refusal {
    let given: Vec<String> =
        binding.dims.iter().map(|(name, value)| format!("--dim {name}={value}")).collect();
    match given.len() {
        0 => refusal,
        1 => refusal.with_help(format!("a smaller value than {} needs less memory", given[0])),
        _ => refusal.with_help(format!("smaller values than {} need less memory", given.join(" "))),
    }
}

/// The error of a peak above the budget. A plan that was found for a budget keeps it, so other options caused this
/// one.
fn beyond(args: &CompileArgs, original: &Graph, [peak, budget]: [Bytes; 2], cx: &PassCx) -> Error {
    let mut given: Vec<String> = args.plan.fixed().iter().map(ToString::to_string).collect();
    given.extend(args.look.pass_limit.is_some().then(|| "--pass-limit".to_owned()));
    if given.is_empty() {
        return Error::ours(format!("the peak is {peak}, above the budget of {budget}"));
    }
    let given = given.join(" and ");
    let help = format!("leave out {given}, and lmsc finds a plan within the budget");
    let free = args.plan.without_fixed();
    let found =
        machine(free.machine.target.as_deref(), free.machine.profile.as_deref()).and_then(|machine| {
            let cx = pass_cx(&free, machine, original)?;
            let ran = Pipeline::of_planner(free.search.planner.called().name).run(&mut original.clone(), &cx);
            Ok(ran.map_err(|error| floors_of(error.into(), original, &cx)))
        });
    let refuse = |otherwise| {
        let cause = Cause::Parameters { given, otherwise };
        Refusal::new(cause, budget, Some(peak)).beside(cx.constants)
    };
    match found {
        Ok(Ok(_)) => refuse(None).with_help(help).into(),
        Ok(Err(other)) => {
            let Some(Refusal { cause, node, smallest, asked, facts, helps, needed, .. }) = other.refusal()
            else {
                return other;
            };
            let otherwise = Otherwise { cause: cause.clone(), needed: needed.unwrap_or_default() };
            let refusal = Refusal {
                node: node.clone(),
                smallest: smallest.clone(),
                asked: *asked,
                facts: facts.clone(),
                helps: helps.clone(),
                ..refuse(Some(Box::new(otherwise)))
            };
            smaller_step(refusal, &args.input.binding).into()
        }
        Err(other) => other,
    }
}

/// The table of passes, with their positions in the default pipeline and their options.
pub fn list_passes() -> String {
    let mut text = String::new();
    for pass in REGISTRY {
        let place = default_place(*pass).map_or("   ".to_owned(), |place| format!("{place}. "));
        text += &format!("{place}{:<27} {}\n", pass.name(), pass.summary());
        for CallOption { name, summary, default } in pass.options() {
            let set = format!("{{{name}={default}}}");
            text += &format!("     {set:<25} {summary}\n");
        }
    }
    text
}

/// The table of passes as JSON.
pub fn passes_as_json() -> String {
    let option = |option: &CallOption| {
        let (default, takes) = (option.default.to_string(), option.takes());
        serde_json::json!({ "name": option.name, "summary": option.summary, "default": default, "takes": takes })
    };
    let json = |pass: &&dyn Pass| {
        let options: Vec<_> = pass.options().iter().map(option).collect();
        let (name, summary, place) = (pass.name(), pass.summary(), default_place(*pass));
        serde_json::json!({ "name": name, "summary": summary, "place": place, "options": options })
    };
    let passes: Vec<_> = REGISTRY.iter().map(json).collect();
    format!("{:#}\n", serde_json::json!({ "format": 1, "passes": passes }))
}

/// The position of the pass in the default pipeline, counted from 1.
fn default_place(pass: &dyn Pass) -> Option<usize> {
    let default = Pipeline::of_planner(DEFAULT_PLANNER);
    default.passes().position(|other| other.name() == pass.name()).map(|index| index + 1)
}

/// The options of the passes that describe the machine: target and profile.
pub(crate) fn machine(target: Option<&str>, profile: Option<&Path>) -> Result<PassCx, Error> {
    let target = target.map(targets::named_target).transpose()?;
    Ok(of_machine(PassCx { target, profile: targets::read_profile(profile)?, ..PassCx::default() }))
}

/// These options of the passes, on the machine of the call.
pub(crate) fn on_machine(cx: PassCx, args: &MachineArgs) -> Result<PassCx, Error> {
    let PassCx { target, profile, workspaces, least_workspaces, .. } =
        machine(args.target.as_deref(), args.profile.as_deref())?;
    Ok(PassCx { target, profile, workspaces, least_workspaces, ..cx })
}

/// The same options, with the workspaces of the target's kernels.
pub(crate) fn of_machine(cx: PassCx) -> PassCx {
    match cx.target().kernels {
        Kernels::None => cx,
        Kernels::Host => PassCx { workspaces: Some(lmsc_runtime::workspaces), least_workspaces: None, ..cx },
        Kernels::Cuda => PassCx {
            workspaces: Some(cuda::workspaces),
            least_workspaces: Some(cuda::least_workspaces),
            ..cx
        },
    }
}

/// The options of the machine and the budgets for a step.
pub(crate) fn with_budgets(
    machine: PassCx,
    graph: &Graph,
    budget: Option<Budget>,
    host_budget: Option<Budget>,
) -> Result<PassCx, Error> {
    let target = machine.target();
    let constants = match target.kernels {
        Kernels::Host | Kernels::None => Bytes::ZERO,
        Kernels::Cuda => cuda::constants(graph),
    };
    let peak = || Bytes(step_peak(graph, &machine.in_arena()).0.saturating_add(constants.0));
    let budget = budget.map(|budget| budget.bytes(target.device_bytes, peak).saturating_sub(constants));
    let of_host = |budget: Budget| budget.of_memory("--host-budget", target.host_bytes);
    Ok(PassCx { budget, constants, host_budget: host_budget.map(of_host).transpose()?, ..machine })
}

/// The budget of a goal: for a bound on time the smallest of several that are tried.
fn budget_for(goal: Goal, graph: &Graph, named: &str, cx: &PassCx) -> Result<Budget, Error> {
    if let Goal::Budget(budget) = goal {
        return Ok(budget);
    }
    let cx = with_budgets(
        PassCx { order: None, given: None, ..cx.clone() },
        graph,
        Some(Budget::Bytes(UNLIMITED)),
        None,
    )?;
    let bridge = plan::before_planning(&mut graph.clone(), &cx)?;
    let planner = planner::called(named)?.of_problems()?;
    let planned = |bytes: u64| service::plan(&question(&bridge.problem, planner, Bytes(bytes), &cx));
    let most = service::peak(&question(&bridge.problem, planner, Bytes::ZERO, &cx));
    let unlimited = planned(most).map_or_else(|_| bridge.problem.compute_nanos(), |plan| plan.nanos());
    let longest = goal.longest(unlimited);
    let least = Floors::of(&bridge.problem).recomputation;
    let bytes =
        smallest_budget(least, most, |bytes| planned(bytes).is_ok_and(|plan| plan.nanos() <= longest));
    Ok(Budget::Bytes(Bytes(bytes.saturating_add(cx.constants.0))))
}

/// A budget so large that nothing has to leave, and the order does not change.
const UNLIMITED: Bytes = Bytes(1 << 60);

/// The smallest budget for which the step is known to need no copies, without the constants of kernels: with
/// addresses, including alignment and gaps.
pub(crate) fn step_peak(graph: &Graph, cx: &PassCx) -> Bytes {
    let counted = cx.memory(graph).peak();
    let as_it_is = PassCx { budget: Some(UNLIMITED), order: None, given: None, ..cx.clone() };
    match plan::before_planning(&mut graph.clone(), &as_it_is) {
        Ok(bridge) => {
            let planner = planner(DEFAULT_PLANNER).expect("it is registered");
            counted.max(Bytes(service::peak(&question(&bridge.problem, planner, Bytes::ZERO, cx))))
        }
        // A step with copies was planned before, and its addresses count as they are.
        Err(_) => counted,
    }
}

/// The options of the passes for this step on this machine.
fn pass_cx(args: &PlanArgs, machine: PassCx, graph: &Graph) -> Result<PassCx, Error> {
    let planner = args.search.planner.called().name;
    if args.search.ranges {
        knows_ranges(planner)?;
    }
    if args.search.pages.is_some() && planner == TFLMS {
        let help = "leave it out, or choose another --planner, for example --planner auto";
        return Err(Error::new(Code::Option, format!("--pages: {TFLMS} knows bytes only")).with_help(help));
    }
    let PassCx { target, profile, workspaces, least_workspaces, .. } = machine;
    let machine = PassCx { target, profile, workspaces, least_workspaces, ..args.pass_cx() };
    let budget = args.budget.map(|goal| budget_for(goal, graph, planner, &machine)).transpose()?;
    let cx = with_budgets(machine, graph, budget, args.machine.host_budget)?;
    match &args.given {
        Some(path) => stated(given_plan(path)?.applied(cx)),
        None => Ok(cx),
    }
}

/// The context, unless it is for a schedule and has no budget: a plan says its own.
pub(crate) fn stated(cx: PassCx) -> Result<PassCx, Error> {
    match &cx.given {
        Some(given) if cx.budget.is_none() => {
            let message = "it is a schedule, which does not say for how many bytes it is";
            Err(Error::in_file(Code::Option, Path::new(&given.name), message)
                .with_help("give the bytes with --budget"))
        }
        _ => Ok(cx),
    }
}

/// The plan in the file. Whether it fits a model or an instance is checked later.
pub(crate) fn given_plan(path: &Path) -> Result<GivenPlan, Error> {
    let help = "give a file that --save-plan has written";
    let text = std::fs::read_to_string(path).map_err(|e| Error::reading(path, &e).with_help(help))?;
    Ok(GivenPlan::new(path.display().to_string(), text)?)
}

/// Refuses planners that copy only whole tensors.
fn knows_ranges(planner: &str) -> Result<(), Error> {
    if lmsc_plan::planners::planner(planner).is_some_and(|p| p.ranges) {
        return Ok(());
    }
    let message = format!("--ranges: the planner {planner} copies whole tensors");
    let help = "leave it out, or choose a --planner that does not, for example --planner swap-only";
    Err(Error::new(Code::Option, message).with_help(help))
}

/// Refuses scopes without a node.
pub(crate) fn known_scopes(graph: &Graph, option: &str, scopes: &[Scope]) -> Result<(), Error> {
    let names = || graph.order().iter().map(|&id| &*graph.node(id).name);
    match scopes.iter().find(|scope| !names().any(|name| scope.contains(name))) {
        None => Ok(()),
        Some(scope) => {
            let scope = scope.to_string();
            let instead = words::instead(&scope, names(), "nodes");
            let message = format!("{option} {scope}: the graph has no node in this scope; {instead}");
            Err(Error::new(Code::Option, message))
        }
    }
}

/// Refuses names of operators and nodes that are not in the graph, in options that choose what is swapped.
fn known_names(graph: &Graph, call: &CallOptions, optimizer_scopes: &[Scope]) -> Result<(), Error> {
    let nodes = || graph.order().iter().map(|&id| graph.node(id));
    let refuse = |option: &str, name: &str, there_are: Vec<String>, many: &str| {
        let instead = words::instead(name, there_are.iter().map(|n| &**n), many);
        Err(Error::new(Code::Option, format!("{option} {name}: the graph has none of this name; {instead}")))
    };
    let tflms = tflms::Params::of(call);
    for (option, names) in [("incl-types", &tflms.incl_types), ("excl-types", &tflms.excl_types)] {
        for name in names {
            if !nodes().any(|n| *name == *n.op.name() || *name == n.op.to_string()) {
                let ops: BTreeSet<String> = nodes().map(|n| n.op.to_string()).collect();
                return refuse(option, name, ops.into_iter().collect(), "operators");
            }
        }
    }
    let scopes = [
        ("incl-scopes", &tflms.incl_scopes[..]),
        ("excl-scopes", &tflms.excl_scopes),
        ("starting-scopes", &tflms.starting_scopes),
        ("--optimizer-scopes", optimizer_scopes),
    ];
    scopes.into_iter().try_for_each(|(option, scopes)| known_scopes(graph, option, scopes))?;
    for name in &tflms.starting_op_names {
        if !nodes().any(|n| *name == *n.name) {
            let there_are = nodes().map(|n| n.name.to_string()).collect();
            return refuse("starting-op-names", name, there_are, "nodes");
        }
    }
    Ok(())
}

/// A hash of the plan: the nodes in order, their operands and results with places, and their control edges.
fn hash(graph: &Graph) -> String {
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
