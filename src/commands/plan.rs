//! `lmsc plan`: plans a problem with one planner, and compares planners.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lmsc_ir::Bytes;
use lmsc_passes::{GivenPlan, PassCx, PlanRequest, carry_out, question};
use lmsc_plan::bound::{self, Certificate};
use lmsc_plan::instance::{self, Instance};
use lmsc_plan::planners::{
    DoesNotFit, Episode, Granularity, Parameters, Plan, Planner, Request, Scheduler, Training,
};
use lmsc_plan::problem::{Duplex, Link, Problem};
use lmsc_plan::robust::{self, Robustness};
use lmsc_plan::saved::{Durations, Saved, schedule};
use lmsc_plan::schedule::{Noise, Replay};
use lmsc_plan::service::{self, Planned, Question, Space, Unplanned};
use lmsc_plan::{Cause, Needs, Reach, Refusal, order};
use serde::Serialize;

use super::learning::{self, Listener, weights};
use crate::budget::Budget;
use crate::cli::args::{DuplexArg, PlanCommandArgs, SchedulerArg, TaskArgs};
use crate::context::{before_planning, given_plan, knows_ranges, machine, stated, with_budgets};
use crate::files::{check_report, check_target, write_atomically};
use crate::load::{load_quietly, told_if_inference};
use crate::planner::{Other, PlannerCall, others};
use crate::progress::{Search, Stage};
use crate::refusals::{as_it_is, smaller_step, with_floors};
use crate::report::ProfileFacts;
use crate::view::{self, Ladder, Names, Numbers, OfModel};
use crate::{Code, Error, Loaded, Warning};

/// The plan of one planner, in numbers. Times are milliseconds.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Found {
    /// The planner, or the file of a plan that is compared.
    planner: String,
    /// The end of the last step.
    makespan_ms: f64,
    /// No plan of this kind is faster: one that swaps ranges, one that swaps whole tensors, or one that also
    /// recomputes.
    lower_bound_ms: f64,
    /// The makespan divided by the bound.
    over_bound: f64,
    /// The most bytes allocated at once.
    peak_bytes: u64,
    /// The time that the planner took.
    planning_ms: f64,
    /// Bytes copied to the host.
    swapped_bytes: u64,
    /// Bytes copied back.
    returned_bytes: u64,
    /// The time of recomputed operators.
    recompute_ms: f64,
    /// The time during which no operator runs.
    exposed_ms: f64,
}

/// The result of `lmsc plan`, as JSON.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Answer {
    /// Version of this format.
    format: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The share of the times that was measured, if there was a profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<ProfileFacts>,
    memory_bytes: u64,
    /// The time of all operators, each run once: the time of a step without a memory limit.
    compute_ms: f64,
    /// The file of a given plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    /// Its makespan in the times for which it was made, if the model has others now.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_makespan_ms: Option<f64>,
    #[serde(flatten)]
    found: Found,
    /// The makespan of the plan that only counts bytes, if the call requests addresses or pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    counted_makespan_ms: Option<f64>,
    /// Bytes of the arena in which everything has an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    arena_bytes: Option<u64>,
    /// Bytes of a page, for memory that is mapped in pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    page_bytes: Option<u64>,
    /// A hash of the model after the plan rewrote it: the hash that `lmsc MODEL` prints for the same question.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// With `--early-updates`: the number of operators that moved, and the operator for which the others wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    updates: Option<String>,
    /// Of a model: the most device bytes at once, without the plan and with it. As `lmsc MODEL` reports them, they hold for the order
    /// of the nodes and for any duration of the operators. `peak_bytes` holds for the planned times only.
    #[serde(skip_serializing_if = "Option::is_none")]
    model_peak_bytes: Option<[u64; 2]>,
    /// Number of samples of a step of a model, where its sizes say it.
    #[serde(skip)]
    samples: Option<u64>,
    /// With `--robust`.
    #[serde(skip_serializing_if = "Option::is_none")]
    robust: Option<RobustFacts>,
    /// The replays of the plan under noise, with `--noise` or `--contention`.
    #[serde(skip_serializing_if = "Option::is_none")]
    replayed: Option<ReplayedFacts>,
    /// The other planners, with `--compare`; a planner without a plan has a reason instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    compared: Vec<Compared>,
    /// Faults of the file that do not prevent its use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Warning>,
}

/// The step times of the plan when operators and copies take other times than planned, over [`REPLAYS`] replays.
/// Times are milliseconds.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ReplayedFacts {
    noise_percent: u32,
    contention_percent: u32,
    mean_ms: f64,
    most_ms: f64,
    peak_bytes: u64,
}

/// The report on a model that a plan rewrote.
pub(crate) struct Rewritten {
    pub(crate) hash: String,
    /// The most device bytes at once, before and after.
    peaks: [u64; 2],
}

/// With `--robust`: how much longer the plan is than the best one known, where operators or the link are off.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RobustFacts {
    /// Operators or the link are slower or faster by this many percent.
    off_percent: u32,
    /// The excess in the worst case, in percent.
    loss_percent: f64,
    /// The same of the plan that is fastest in the stated times.
    fastest_loss_percent: f64,
    /// The excess over that plan in the stated times, in percent.
    cost_percent: f64,
}

/// Number of replays of a plan.
const REPLAYS: u32 = 20;

/// A planner that is compared with the main one.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Compared {
    /// The planner, or the file.
    planner: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<Found>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// The plan, for the page.
    #[serde(skip)]
    plan: Option<Plan>,
}

/// Plans a model or an instance; returns the numbers of the plan as text or JSON.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) if the step does not fit; [`ErrorKind::Input`](crate::ErrorKind) for a faulty file or name.
pub fn plan(args: &PlanCommandArgs) -> Result<String, Error> {
    check_call(args)?;
    let weights = weights(&args.weights)?;
    let call = args.search.planner.called();
    let given = args.given.as_deref().map(given_plan).transpose()?;
    let planner = given.as_ref().map_or_else(|| call.of_problems(), |given| Ok(given.planner))?;
    let stage = Stage::new();
    stage.show("planning");
    // A planner that learns shows its own progress bar.
    let search = (!planner.learns).then(|| stage.search(args.trace_plan.is_some()));
    let mut asked = args.search.search().pass_cx();
    asked.question.planner = Some(planner.into());
    asked.question.scheduler = scheduler(args.scheduler);
    asked.consumer.watch = search.as_ref().map(Search::watch);
    let mut task = Task::of(&args.task, args.memory, asked, given)?;
    if let Some(duplex) = args.duplex {
        task.set_duplex(duplex);
    }
    let updates = if args.early_updates { task.take_early_updates(planner, args) } else { None };
    let problem = task.problem();
    if let Some(file) = &args.emit_instance {
        let json = instance::to_json(problem, task.name());
        write_atomically(file, |w| w.write_all(json.as_bytes()))?;
    }
    let question = task.question(planner, args.whole, args.recompute);
    let training = Training { weights: weights.as_deref(), watch: None };
    let question = Question { parameters: Parameters { training, ..question.parameters }, ..question };
    let listener = Listener::new(problem.compute_nanos());
    let watch = |episode: &Episode| listener.hear(episode);
    let training = Training { watch: Some(&watch), ..training };
    let watched = Question { parameters: Parameters { training, ..question.parameters }, ..question };
    let answer = answered(&watched, task.given())?;
    if let (Some(search), Some(file)) = (&search, &args.trace_plan) {
        search.write_decisions(file)?;
    }
    drop(search);
    stage.done();
    // The plans below are not part of the watched search.
    let question = Question { request: Request { watch: None, ..question.request }, ..question };
    let Answered { planned, robust, planning_ms, saved_nanos } =
        answer.map_err(|why| no_plan(args, &task, &question, &why))?;
    // A bound on plans of whole tensors does not hold for plans with ranges.
    let granularity =
        if has_ranges(&planned.plan) { Granularity::Ranges } else { question.request.granularity };
    let bounds = Bounds::of(&Request { granularity, ..question.request });
    let found = Found::of(planner.name, &planned, planning_ms, &bounds)?;
    write_files(args, &task, &question, &planned, &bounds)?;
    let replayed = replayed(args, &question, &planned)?;
    let compared = compared(args, &task, &question, &bounds)?;
    if let (Some(weights), Some(file)) = (listener.weights(), &args.weights.save_weights) {
        learning::write(file, &weights)?;
    }
    let is_model = args.task.model.is_some();
    let rewritten = task.rewritten(&question, &planned)?;
    let answer = Answer {
        format: 2,
        instance: (!is_model).then(|| task.name().to_owned()),
        model: is_model.then(|| task.name().to_owned()),
        profile: task.profile(),
        memory_bytes: task.memory().0,
        compute_ms: millis(problem.compute_nanos()),
        plan: task.given().map(|given| given.name.clone()),
        saved_makespan_ms: saved_nanos.map(millis),
        found,
        counted_makespan_ms: (planned.space != Space::Counted).then(|| millis(planned.counted_nanos)),
        arena_bytes: (planned.space == Space::Arena).then(|| task.memory().0),
        page_bytes: if let Space::Pages(page) = planned.space { Some(page) } else { None },
        samples: super::sweep::samples(&args.task.binding.dims),
        updates,
        model_peak_bytes: rewritten.as_ref().map(|it| it.peaks),
        hash: rewritten.map(|it| it.hash),
        robust: robust.map(RobustFacts::of),
        replayed,
        compared,
        warnings: task.warnings().to_vec(),
    };
    answer.write_views(args, &task, &question, &planned.plan)?;
    if args.json {
        Ok(serde_json::to_string_pretty(&answer).expect("an answer is JSON") + "\n")
    } else {
        Ok(answer.to_text())
    }
}

/// Refuses contradictory options, and output files that cannot be written.
fn check_call(args: &PlanCommandArgs) -> Result<(), Error> {
    let call = args.search.planner.called();
    let learns = |call: &PlannerCall| call.planner.of_problems().is_some_and(|planner| planner.learns);
    let others = others(&args.compare)?;
    if let Some(option) = args.weights.given() {
        if args.given.is_some() {
            let message = format!("{option} belongs to --planner dqn, and --plan is carried out as it is");
            return Err(Error::new(Code::Option, message).with_help("leave out one of the two"));
        }
        if !learns(&call) && !others.iter().any(|other| matches!(other, Other::Planner(call) if learns(call)))
        {
            let message = format!("{option} belongs to --planner dqn, not to {}", call.name());
            return Err(Error::new(Code::Option, message).with_help("leave it out, or choose that planner"));
        }
    }
    if args.search.ranges {
        knows_ranges(call.of_problems()?.into())?;
    }
    args.report.iter().try_for_each(|path| check_report(path, &["html", "svg", "json"]))?;
    let files = [&args.save_plan, &args.trace_plan, &args.emit_instance, &args.weights.save_weights];
    files.into_iter().flatten().try_for_each(|path| check_target(path))?;
    Ok(())
}

/// Writes the plan, its schedule and the certificate of the bound to the files that the options name.
fn write_files(
    args: &PlanCommandArgs,
    task: &Task,
    question: &Question<'_>,
    planned: &Planned,
    bounds: &Bounds,
) -> Result<(), Error> {
    let write = |file: &Path, text: String| write_atomically(file, |w| w.write_all(text.as_bytes()));
    if let Some(file) = &args.save_plan {
        write(file, task.saved(question, planned.clone()).to_json())?;
    }
    // Numbers of operators refer to the planned order, so the file lists the nodes in that order.
    let named = |mut json: serde_json::Value| {
        let nodes = task.nodes();
        if !nodes.is_empty() {
            json["nodes"] = nodes.into();
        }
        json
    };
    if let Some(file) = &args.schedule {
        let placed = (planned.space == Space::Arena).then_some((&planned.spots[..], &planned.edges[..]));
        write(file, named(schedule::to_json(&planned.plan, placed)).to_string() + "\n")?;
    }
    if let Some(file) = &args.certificate {
        let certificate = serde_json::to_value(bounds.on(&planned.plan)?).expect("a certificate is JSON");
        let json = serde_json::to_string_pretty(&named(certificate)).expect("a certificate is JSON");
        write(file, json + "\n")?;
    }
    Ok(())
}

/// Whether the plan copies a range of a tensor separately.
pub(crate) fn has_ranges(plan: &Plan) -> bool {
    plan.schedule.pieces.values().any(|piece| piece.len() < plan.problem.tensors[piece.tensor].bytes)
}

pub(crate) fn scheduler(arg: SchedulerArg) -> Scheduler {
    match arg {
        SchedulerArg::Paper => Scheduler::Paper,
        SchedulerArg::Justified => Scheduler::Justified,
    }
}

/// The problem to plan.
pub(crate) enum Task {
    /// An instance without a model, with the options of the call.
    Instance(Box<Instance>, Box<PassCx>),
    /// A model.
    Model {
        name: String,
        model: Box<OfModel>,
        profile: Option<ProfileFacts>,
        warnings: Vec<Warning>,
        /// The options of the call, with the machine and the budgets.
        cx: Box<PassCx>,
    },
}

impl Task {
    /// The task of the arguments. The model is in the order that suits the planner, or in that of a given plan.
    pub(crate) fn of(
        args: &TaskArgs,
        memory: Option<Budget>,
        asked: PassCx,
        given: Option<GivenPlan>,
    ) -> Result<Task, Error> {
        let applied = |cx: PassCx| match given.clone() {
            Some(given) => given.applied(cx),
            None => cx,
        };
        if let Some(path) = &args.instance {
            let text = std::fs::read_to_string(path).map_err(|e| Error::reading(path, &e))?;
            let instance = Instance::parse(&text).map_err(|e| Error::in_file(Code::Malformed, path, e))?;
            let budget = memory.map(|memory| of_instance(memory, &instance.problem)).transpose()?;
            let question = PlanRequest { budget, ..asked.question };
            let cx = stated(applied(PassCx { question, ..asked }))?;
            return Ok(Task::Instance(Box::new(instance), Box::new(cx)));
        }
        let path = args.model.as_deref().expect("one of the two is required");
        let machine = machine(&args.machine.machine())?;
        let loaded = load_quietly(path, &args.binding.binding())?;
        let Loaded { mut graph, warnings, .. } = told_if_inference(path, loaded)?;
        let cx = PassCx { machine, ..asked };
        let cx = stated(applied(with_budgets(cx, &graph, memory, args.machine.host_budget)?))?;
        let profile = ProfileFacts::of(&cx, &graph);
        let bridge = before_planning(&mut graph, &cx)?;
        let name = path.display().to_string();
        let (model, cx) = (Box::new(OfModel { graph, bridge }), Box::new(cx));
        Ok(Task::Model { name, model, profile, warnings, cx })
    }

    fn cx(&self) -> &PassCx {
        match self {
            Task::Instance(_, cx) | Task::Model { cx, .. } => cx,
        }
    }

    /// The bytes for values and workspaces.
    pub(crate) fn value_bytes(&self) -> Bytes {
        self.cx().question.budget.unwrap_or_default()
    }

    /// The bytes of the constants of kernels.
    fn constants(&self) -> Bytes {
        self.cx().question.constants
    }

    /// The question for the planner. An instance has no machine, so its host memory is unlimited; its operators may
    /// be recomputed if `recompute` is set, and its tensors are copied in ranges unless `whole` is set.
    pub(crate) fn question(&self, planner: &'static Planner, whole: bool, recompute: bool) -> Question<'_> {
        let asked = question(self.problem(), planner, self.value_bytes(), self.cx());
        match self {
            Task::Model { .. } => asked,
            Task::Instance(..) => {
                let granularity = if whole { Granularity::Whole } else { Granularity::Ranges };
                let alignment = Request::new(self.problem(), 0).alignment;
                let request = Request { granularity, recompute, alignment, ..asked.request };
                Question { request, host_bytes: u64::MAX, ..asked }
            }
        }
    }

    /// The model after the plan rewrote it; `None` for an instance.
    pub(crate) fn rewritten(
        &self,
        question: &Question<'_>,
        planned: &Planned,
    ) -> Result<Option<Rewritten>, Error> {
        let Task::Model { model, cx, .. } = self else { return Ok(None) };
        let mut graph = model.graph.clone();
        let outcome = carry_out(&mut graph, &model.bridge, question, planned, cx);
        match &cx.question.given {
            Some(given) => given.carried_out(outcome)?,
            None => outcome?,
        };
        let peaks = [&model.graph, &graph].map(|graph| cx.memory(graph).peak().0);
        Ok(Some(Rewritten { hash: crate::compile::hash(&graph), peaks }))
    }

    /// The given plan, if there is one.
    pub(crate) fn given(&self) -> Option<&GivenPlan> {
        self.cx().question.given.as_deref()
    }

    /// The plan with the question, to be written to a file.
    fn saved(&self, question: &Question<'_>, planned: Planned) -> Saved {
        match self {
            Task::Instance(..) => Saved::of(question, planned, Vec::new(), None),
            Task::Model { model, cx, .. } => {
                lmsc_passes::saved(&model.graph, &model.bridge, question, planned, cx)
            }
        }
    }

    /// The names of a model's nodes in the planned order.
    fn nodes(&self) -> Vec<String> {
        match self {
            Task::Instance(..) => Vec::new(),
            Task::Model { model, .. } => {
                let names = model.bridge.nodes.iter();
                names.map(|&node| model.graph.node(node).name.to_string()).collect()
            }
        }
    }

    /// Takes the order of an instance in which updates run as soon as they can, if the planner's estimate is less for it; says what
    /// it did.
    fn take_early_updates(&mut self, planner: &'static Planner, args: &PlanCommandArgs) -> Option<String> {
        let early = order::early_updates(self.problem());
        let waiting = early.waiting.map(|waiting| waiting.text(&self.op(waiting.operator)));
        let estimate = |problem: &Problem| {
            let request = self.question(planner, args.whole, args.recompute).request;
            planner.glance.map(|glance| glance(&Request { problem, ..request }).unwrap_or(u64::MAX))
        };
        let (now, then) = (estimate(self.problem()), estimate(&early.problem));
        let is_better = early.moved > 0 && now.zip(then).is_none_or(|(now, then)| then < now);
        let all = early.problem.ops.len();
        let moved = if is_better {
            format!("{} of {all} operators run earlier", early.moved)
        } else {
            "no operator runs earlier".to_owned()
        };
        if let (Task::Instance(instance, _), true) = (&mut *self, is_better) {
            instance.problem = early.problem;
        }
        Some([Some(moved), waiting].into_iter().flatten().collect::<Vec<_>>().join("; "))
    }

    /// Sets whether copies in the two directions overlap.
    pub(crate) fn set_duplex(&mut self, duplex: DuplexArg) {
        self.link().duplex = match duplex {
            DuplexArg::Half => Duplex::Half,
            DuplexArg::Full => Duplex::Full,
        };
    }

    /// The whole budget, constants of kernels included.
    pub(crate) fn memory(&self) -> Bytes {
        Bytes(self.value_bytes().0.saturating_add(self.constants().0))
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Task::Instance(instance, _) => &instance.name,
            Task::Model { name, .. } => name,
        }
    }

    fn warnings(&self) -> &[Warning] {
        match self {
            Task::Instance(..) => &[],
            Task::Model { warnings, .. } => warnings,
        }
    }

    fn profile(&self) -> Option<ProfileFacts> {
        match self {
            Task::Instance(..) => None,
            Task::Model { profile, .. } => profile.clone(),
        }
    }

    pub(crate) fn problem(&self) -> &Problem {
        match self {
            Task::Instance(instance, _) => &instance.problem,
            Task::Model { model, .. } => &model.bridge.problem,
        }
    }

    fn link(&mut self) -> &mut Link {
        match self {
            Task::Instance(instance, _) => &mut instance.problem.link,
            Task::Model { model, .. } => &mut model.bridge.problem.link,
        }
    }

    /// The name of the node, or of the operator of an instance.
    fn op_name(&self, tick: u32) -> String {
        match self {
            Task::Instance(..) => self.op(tick),
            Task::Model { model, .. } => model.graph.node(model.bridge.nodes[tick as usize]).name.to_string(),
        }
    }

    /// The name with the operator.
    fn op(&self, tick: u32) -> String {
        match self {
            Task::Instance(instance, _) => {
                let op = &instance.problem.ops[tick as usize];
                format!("operator {tick} ({})", instance.problem.kinds[op.kind as usize])
            }
            Task::Model { model, .. } => {
                let node = model.graph.node(model.bridge.nodes[tick as usize]);
                format!("`{}` ({})", node.name, node.op)
            }
        }
    }
}

/// The bytes of a budget for an instance.
pub(crate) fn of_instance(budget: Budget, problem: &Problem) -> Result<Bytes, Error> {
    if let Budget::OfMemory(_) = budget {
        let message = format!("--budget {budget}: an instance has no target whose memory this is a share of");
        return Err(Error::new(Code::Option, message)
            .with_help("give bytes, such as 16GiB, or a share of the instance's own peak, such as 0.7x"));
    }
    let peak = || Bytes(problem.live_by_moment(&problem.uses()).into_iter().max().unwrap_or(0));
    Ok(budget.bytes(Bytes::ZERO, peak))
}

/// The error of a task without a plan, with the smallest budgets for which there is one.
fn no_plan(args: &PlanCommandArgs, task: &Task, question: &Question<'_>, why: &Unplanned) -> Error {
    let refusal = match refusal(question.planner, task, why) {
        Ok(refusal) => refusal,
        Err(flaw) => return Error::ours(flaw),
    };
    if let Unplanned::NoAddresses(_) = why {
        return refusal.with_help("give it more memory, or plan with --addresses off").into();
    }
    let pages = if let Space::Pages(page) = question.space { Some(Bytes(page)) } else { None };
    let asked = Some(Reach::of(question.planner.name, question.request.granularity == Granularity::Ranges));
    let refusal = Refusal { pages, asked, ..refusal };
    if let Unplanned::HostIsFull(_, host, moved) = why {
        let peak = Bytes(service::peak(question));
        return as_it_is(refusal, peak, task.constants()).of_host(Bytes(*host), Bytes(*moved)).into();
    }
    let floors = service::floors(question).beside(task.constants());
    match task {
        Task::Instance(..) => with_floors(refusal, &floors, None).into(),
        Task::Model { .. } => {
            smaller_step(with_floors(refusal, &floors, Some(task.memory())), &args.task.binding.binding())
                .into()
        }
    }
}

/// The reason why the planner has no plan for the task; `Err` is a bug of the planner.
fn refusal(planner: &Planner, task: &Task, why: &Unplanned) -> Result<Refusal, String> {
    let refused = |cause| Ok(Refusal::new(cause, task.memory(), None));
    match why {
        Unplanned::Ours { planner, flaw } => Err(format!("planner {planner}: {flaw}")),
        Unplanned::NoAddresses(_) => refused(Cause::NoAddresses { planner: None }),
        Unplanned::DoesNotFit(no) | Unplanned::HostIsFull(no, ..) => {
            if no.needed <= no.budget {
                refused(Cause::NoPlan { planner: planner.name })
            } else {
                Ok(too_much(task, no))
            }
        }
    }
}

/// The refusal of a task because one operator needs more than the budget.
pub(crate) fn too_much(task: &Task, refused: &DoesNotFit) -> Refusal {
    let subject = task.op(refused.tick);
    let cause = Cause::Operator(Box::new(Needs { subject, parts: None }));
    let refusal = Refusal::new(cause, Bytes(refused.budget), Some(Bytes(refused.needed)));
    Refusal { node: Some(task.op_name(refused.tick)), ..refusal }.beside(task.constants())
}

/// Bounds on the plans that a request allows, each computed on first use.
struct Bounds<'a> {
    request: Request<'a>,
    allowed: OnceCell<Certificate>,
    recomputing: OnceCell<Certificate>,
}

impl<'a> Bounds<'a> {
    fn of(request: &Request<'a>) -> Bounds<'a> {
        Bounds { request: *request, allowed: OnceCell::new(), recomputing: OnceCell::new() }
    }

    /// The bound for the plan, certified. Some planners recompute even if the request does not ask for it.
    fn on(&self, plan: &Plan) -> Result<&Certificate, Error> {
        let recompute = self.request.recompute || plan.recompute_nanos() > 0;
        let cell = if recompute == self.request.recompute { &self.allowed } else { &self.recomputing };
        let bound = cell.get_or_init(|| bound::best(&Request { recompute, ..self.request }));
        bound::certify(self.request.problem, self.request.budget, bound)
            .map_err(|flaw| Error::ours(format!("bound: {flaw}")))?;
        Ok(bound)
    }
}

/// A plan, the time that it took to make, in milliseconds, and its makespan in the times for which it was made, if those are others.
struct Answered {
    planned: Planned,
    robust: Option<Robustness>,
    planning_ms: f64,
    saved_nanos: Option<u64>,
}

/// The given plan, or else the plan of the planning service; the inner `Err` is the reason for no plan.
fn answered(
    question: &Question<'_>,
    given: Option<&GivenPlan>,
) -> Result<Result<Answered, Unplanned>, Error> {
    let began = Instant::now();
    let mut saved_nanos = None;
    let mut robustness = None;
    let planned = match given {
        Some(given) => {
            let saved = given.answer(question, Durations::Anew)?;
            saved_nanos = Some(saved.saved_nanos).filter(|&nanos| nanos != saved.planned.nanos());
            saved.planned
        }
        None => match planned_by(question, &mut robustness) {
            Ok(planned) => planned,
            Err(Unplanned::Ours { planner, flaw }) => {
                return Err(Error::ours(format!("planner {planner}: {flaw}")));
            }
            Err(why) => return Ok(Err(why)),
        },
    };
    let planning_ms = began.elapsed().as_secs_f64() * 1e3;
    Ok(Ok(Answered { planned, robust: robustness, planning_ms, saved_nanos }))
}

/// The plan of the service, and how robust it is, if the question is for that and the step does not fit as it is.
fn planned_by(question: &Question<'_>, robustness: &mut Option<Robustness>) -> Result<Planned, Unplanned> {
    match question.robust.filter(|_| service::nothing_moves(question).is_none()) {
        None => service::plan(question),
        Some(percent) => robust::plan(question, percent).map(|(planned, found)| {
            *robustness = Some(found);
            planned
        }),
    }
}

impl RobustFacts {
    fn of(found: Robustness) -> RobustFacts {
        let percent = |share: f64| (share * 1e6).round() / 1e4;
        RobustFacts {
            off_percent: found.percent,
            loss_percent: percent(found.loss),
            fastest_loss_percent: percent(found.loss_of_fastest),
            cost_percent: percent(found.cost),
        }
    }
}

impl Found {
    /// The numbers of the planner's plan, with its bound.
    fn of(planner: &str, planned: &Planned, planning_ms: f64, bounds: &Bounds) -> Result<Found, Error> {
        let plan = &planned.plan;
        let (swapped_bytes, returned_bytes) = plan.schedule.copied_bytes();
        let makespan = plan.schedule.makespan();
        let bound = bounds.on(plan)?.nanos;
        if bound > makespan {
            return Err(Error::ours(format!("planner {planner}: {makespan} ns, below the bound {bound}")));
        }
        Ok(Found {
            planner: planner.to_owned(),
            makespan_ms: millis(makespan),
            lower_bound_ms: millis(bound),
            over_bound: (makespan as f64 / bound.max(1) as f64 * 1e6).round() / 1e6,
            peak_bytes: planned.peak,
            planning_ms: (planning_ms * 1e3).round() / 1e3,
            swapped_bytes,
            returned_bytes,
            recompute_ms: millis(plan.recompute_nanos()),
            exposed_ms: millis(makespan - plan.problem.compute_nanos()),
        })
    }
}

/// Number of larger budgets that are tried to find the budget from which a tensor stays.
const RUNGS: u64 = 8;

/// The tensors that the planner moves at larger budgets, up to the one that needs no plan. All of these searches
/// together have as much effort as the plan.
fn ladder(question: &Question<'_>, plan: &Plan) -> Ladder {
    let Question { planner, parameters, request, .. } = question;
    let problem = request.problem;
    let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap_or(0);
    let more = peak.saturating_sub(request.budget);
    if view::touched(problem, plan).iter().all(|touched| !touched) {
        return Ladder::new();
    }
    let effort = request.effort.div_ceil(RUNGS as u32);
    let rung = |step: u64| {
        let budget = request.budget + (u128::from(more) * u128::from(step) / u128::from(RUNGS)) as u64;
        let plan = planner.with(*parameters).plan(&Request { budget, effort, ..*request });
        let touched = plan.map_or_else(|_| vec![true; problem.tensors.len()], |p| view::touched(problem, &p));
        (budget, touched)
    };
    (1..=RUNGS).map(rung).collect()
}

/// Replays the plan, if the call requests it.
fn replayed(
    args: &PlanCommandArgs,
    question: &Question<'_>,
    planned: &Planned,
) -> Result<Option<ReplayedFacts>, Error> {
    if args.noise.is_none() && args.contention.is_none() {
        return Ok(None);
    }
    let noise = Noise {
        operators_percent: args.noise.unwrap_or(0),
        contention_percent: args.contention.unwrap_or(0),
    };
    let ours = |what: String| Error::ours(format!("planner {}: {what}", question.planner.name));
    let replay = Replay::new(&planned.plan.problem, &planned.plan.schedule, &planned.edges);
    let replayed =
        replay.several(noise, REPLAYS, question.request.budget).map_err(|flaw| ours(flaw.to_string()))?;
    Ok(Some(ReplayedFacts {
        noise_percent: noise.operators_percent,
        contention_percent: noise.contention_percent,
        mean_ms: millis(replayed.mean),
        most_ms: millis(replayed.most),
        peak_bytes: replayed.peak,
    }))
}

/// The plans of the other planners, with bytes counted and no addresses, and those of the files.
fn compared(
    args: &PlanCommandArgs,
    task: &Task,
    question: &Question<'_>,
    bounds: &Bounds,
) -> Result<Vec<Compared>, Error> {
    let question =
        Question { space: Space::Counted, or_pages: None, or_as_it_is: false, robust: None, ..*question };
    let planned_by = |call: &PlannerCall| -> Result<Compared, Error> {
        let planner = call.of_problems()?;
        let parameters = Parameters { options: Some(&call.options), ..question.parameters };
        Ok(match answered(&Question { planner, parameters, ..question }, None)? {
            Ok(answered) => Compared::found(planner.name, answered, bounds)?,
            Err(refused) => {
                let why = refusal(planner, task, &refused);
                let why = why.map_or_else(|flaw| flaw, |refusal| refusal.message().text);
                Compared::refused(planner.name, why)
            }
        })
    };
    let of_file = |path: &PathBuf| -> Result<Compared, Error> {
        let given = given_plan(path)?;
        if !given.head.nodes.is_empty() && given.head.nodes != task.nodes() {
            let why = "it has the nodes in another order than this plan, or is of another model";
            return Ok(Compared::refused(&given.name, why.to_owned()));
        }
        match answered(&Question { planner: given.planner, ..question }, Some(&given)) {
            Ok(Ok(answered)) => Compared::found(&given.name, answered, bounds),
            Ok(Err(why)) => Ok(Compared::refused(&given.name, why.to_string())),
            Err(error) => match error.fault() {
                Some(fault) => Ok(Compared::refused(&given.name, format!("not valid: {fault}"))),
                None => Err(error),
            },
        }
    };
    let one = |other: &Other| match other {
        Other::Planner(call) => planned_by(call),
        Other::File(path) => of_file(path),
    };
    others(&args.compare)?.iter().map(one).collect()
}

impl Compared {
    fn found(planner: &str, answered: Answered, bounds: &Bounds) -> Result<Compared, Error> {
        let Answered { planned, planning_ms, .. } = answered;
        let found = Some(Found::of(planner, &planned, planning_ms, bounds)?);
        Ok(Compared { planner: planner.to_owned(), found, refused: None, plan: Some(planned.plan) })
    }

    fn refused(planner: &str, why: String) -> Compared {
        Compared { planner: planner.to_owned(), found: None, refused: Some(why), plan: None }
    }
}

impl Answer {
    /// Writes the page or the report, and the trace, if the call requests them.
    fn write_views(
        &self,
        args: &PlanCommandArgs,
        task: &Task,
        question: &Question<'_>,
        plan: &Plan,
    ) -> Result<(), Error> {
        if args.report.is_none() && args.trace.is_none() {
            return Ok(());
        }
        let ours = |flaw| Error::ours(format!("planner {}: {flaw}", self.found.planner));
        let problem = task.problem();
        let ladder = args.report.as_ref().map(|_| ladder(question, plan));
        let numbers = Numbers(problem);
        let names: &dyn Names = match task {
            Task::Instance(..) => &numbers,
            Task::Model { model, .. } => &**model,
        };
        let mut data = view::plan_data(problem, plan, names, ladder.as_ref()).map_err(ours)?;
        if let Some(file) = &args.trace {
            write_atomically(file, |w| w.write_all(view::trace(&data).as_bytes()))?;
        }
        let Some(file) = &args.report else { return Ok(()) };
        let found = &self.found;
        let text = match file.extension().and_then(OsStr::to_str) {
            Some("json") => {
                let mut report = serde_json::to_value(self).expect("an answer is JSON");
                let facts = report.as_object_mut().zip(data.as_object_mut());
                facts.into_iter().for_each(|(report, data)| report.append(data));
                serde_json::to_string(&report).expect("a value is JSON") + "\n"
            }
            Some("svg") => {
                let [before, _] = self.peaks(problem);
                let more = percent(found.makespan_ms / self.compute_ms);
                let title = format!(
                    "A step of {before} in {}: {more} more time, as modelled",
                    Bytes(self.memory_bytes)
                );
                view::picture(&data, &title, self.memory_bytes)
            }
            _ => {
                data["title"] = format!("{} within {}", task.name(), Bytes(self.memory_bytes)).into();
                data["subtitle"] =
                    format!("planner {}, {} operators", found.planner, problem.ops.len()).into();
                data["facts"] = self.tiles(problem, &data["waits"]).into();
                data["budget_bytes"] = self.memory_bytes.into();
                if !self.compared.is_empty() {
                    data["compared"] = self.rows_of_planners().into();
                    let others = self.compared.iter().filter_map(|c| Some((&*c.planner, c.plan.as_ref()?)));
                    let own = self.name_on_page();
                    let plans: Vec<_> = std::iter::once((&*own, plan)).chain(others).collect();
                    data["side_by_side"] = view::side_by_side(&plans, names).map_err(ours)?;
                }
                view::page(&data)
            }
        };
        write_atomically(file, |w| w.write_all(text.as_bytes()))
    }

    /// The most bytes at once without the plan and with it.
    fn peaks(&self, problem: &Problem) -> [Bytes; 2] {
        let counted = || [problem.live_bytes().into_iter().max().unwrap_or_default(), self.found.peak_bytes];
        self.model_peak_bytes.unwrap_or_else(counted).map(Bytes)
    }

    /// The tiles at the head of the page, each a label and a value, the most important first.
    fn tiles(&self, problem: &Problem, waits: &serde_json::Value) -> Vec<serde_json::Value> {
        let found = &self.found;
        let fact = |label: &str, value: String| serde_json::json!([label, value]);
        let waits = |cause: &str| waits[cause].as_f64().unwrap_or_default();
        let more = |ms: f64| format!("+{}", percent(ms / self.compute_ms));
        let [before, after] = self.peaks(problem);
        let mut facts = vec![
            fact("peak without and with the plan", format!("{before} → {after}")),
            fact("time beyond unlimited memory", more(found.makespan_ms)),
            fact("no plan below", more(found.lower_bound_ms)),
            fact("step, modelled", format!("{:.2} ms", found.makespan_ms)),
        ];
        if let Some(samples) = self.samples {
            let rate = samples as f64 * 1e3 / found.makespan_ms.max(f64::MIN_POSITIVE);
            facts.push(fact("samples/s, modelled", format!("{rate:.1}")));
        }
        facts.extend([
            fact("computed again", format!("{:.2} ms", found.recompute_ms)),
            fact("copied out", Bytes(found.swapped_bytes).to_string()),
            fact("copied in", Bytes(found.returned_bytes).to_string()),
        ]);
        for (label, waits) in [
            ("exposed", found.exposed_ms),
            ("waits for copies in", waits("copy_in_ms")),
            ("waits for copies out", waits("copy_out_ms")),
            ("waits for memory", waits("memory_ms")),
        ] {
            facts.extend((waits > 0.0).then(|| fact(label, format!("{waits:.2} ms"))));
        }
        facts
    }

    /// The planner's name where the page shows its plan beside those of others.
    fn name_on_page(&self) -> String {
        format!("{}, this plan", self.found.planner)
    }

    /// The page's table of planners, with the main one first.
    fn rows_of_planners(&self) -> Vec<serde_json::Value> {
        let row = |compared: &Compared| match &compared.found {
            Some(found) => serde_json::to_value(found).expect("an answer is JSON"),
            None => serde_json::json!({ "planner": compared.planner, "refused": compared.refused }),
        };
        let mut own = serde_json::to_value(&self.found).expect("an answer is JSON");
        own["planner"] = self.name_on_page().into();
        std::iter::once(own).chain(self.compared.iter().map(row)).collect()
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        let found = &self.found;
        for (label, name) in [("instance", &self.instance), ("model", &self.model)] {
            _ = name.as_ref().map(|name| writeln!(text, "{label:<9} {name}"));
        }
        _ = self.profile.as_ref().map(|profile| writeln!(text, "profile   {}", profile.to_text()));
        _ = writeln!(text, "memory    {}", Bytes(self.memory_bytes));
        _ = self.updates.as_ref().map(|updates| writeln!(text, "updates   {updates}"));
        _ = writeln!(text, "compute   {:.3} ms if memory were no limit", self.compute_ms);
        _ = match &self.plan {
            Some(file) => writeln!(text, "plan      {file}, by the planner {}", found.planner),
            None => writeln!(text, "planner   {} in {:.1} ms", found.planner, found.planning_ms),
        };
        if let Some(saved) = self.saved_makespan_ms {
            _ = writeln!(
                text,
                "saved     {saved:.3} ms in the times for which it was made; below are those of this call"
            );
        }
        _ = writeln!(
            text,
            "makespan  {:.3} ms: {:.3} ms recomputed, {:.3} ms exposed",
            found.makespan_ms, found.recompute_ms, found.exposed_ms
        );
        let (bound, over) = (found.lower_bound_ms, percent(found.over_bound));
        _ = writeln!(text, "bound     {bound:.3} ms at the least; this plan takes {over} more");
        _ = match self.model_peak_bytes {
            Some([before, after]) => {
                writeln!(text, "peak      {}, and {} without the plan", Bytes(after), Bytes(before))
            }
            None => writeln!(text, "peak      {}", Bytes(found.peak_bytes)),
        };
        let held = match (self.arena_bytes, self.page_bytes) {
            (Some(arena), _) => Some(format!("addresses in an arena of {}", Bytes(arena))),
            (None, Some(page)) => Some(format!("pages of {}", Bytes(page))),
            (None, None) => None,
        };
        if let (Some(held), Some(counted)) = (held, self.counted_makespan_ms) {
            let cost = found.makespan_ms - counted;
            _ = writeln!(text, "held by   {held}, which cost {cost:.3} ms beside counting bytes");
        }
        _ = self.hash.as_ref().map(|hash| writeln!(text, "hash      {hash}"));
        let (out, back) = (Bytes(found.swapped_bytes), Bytes(found.returned_bytes));
        _ = writeln!(text, "copied    {out} out, {back} in");
        if let Some(robust) = &self.robust {
            _ = writeln!(
                text,
                "robust    {:.2} % longer at most than the best plan known, where times are off by {} %; the fastest plan {:.2} %; \
                 as stated, {:.2} % longer than that one",
                robust.loss_percent, robust.off_percent, robust.fastest_loss_percent, robust.cost_percent
            );
        }
        if let Some(replayed) = &self.replayed {
            let longer = |ms: f64| 100.0 * (ms / found.makespan_ms.max(f64::MIN_POSITIVE) - 1.0);
            _ = writeln!(
                text,
                "noise     {:+.2} % of the makespan on average, {:+.2} % at most; peak {}",
                longer(replayed.mean_ms),
                longer(replayed.most_ms),
                Bytes(replayed.peak_bytes)
            );
        }
        if !self.compared.is_empty() {
            let counted = if self.counted_makespan_ms.is_some() {
                "\nwhere bytes are counted, without addresses:"
            } else {
                ""
            };
            _ = writeln!(
                text,
                "{counted}\n{:<12} {:>12} {:>8} {:>8} {:>12} {:>12} {:>10}",
                "planner", "makespan ms", "× ours", "× bound", "recomputed", "out", "took ms"
            );
        }
        for Compared { planner, found, refused, .. } in &self.compared {
            _ = match (found, refused) {
                (Some(f), _) => writeln!(
                    text,
                    "{planner:<12} {:>12.3} {:>8.4} {:>8.4} {:>12.3} {:>12} {:>10.1}",
                    f.makespan_ms,
                    f.makespan_ms / self.counted_makespan_ms.unwrap_or(self.found.makespan_ms),
                    f.over_bound,
                    f.recompute_ms,
                    Bytes(f.swapped_bytes).to_string(),
                    f.planning_ms
                ),
                (None, refused) => {
                    writeln!(text, "{planner:<12} {}", refused.as_deref().unwrap_or_default())
                }
            };
        }
        text
    }
}

/// The excess of a ratio over 1, in percent.
fn percent(ratio: f64) -> String {
    format!("{:.2} %", (ratio - 1.0) * 100.0)
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}
