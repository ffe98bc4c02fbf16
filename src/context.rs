//! The context of the passes for one call: the machine, the budgets, the planner.

use std::path::Path;
use std::sync::Arc;

use lmsc_cuda::{self as cuda, Precision};
use lmsc_ir::{Bytes, Graph};
use lmsc_passes::{
    AnyPlanner, GivenPlan, MachineModel, PassCx, Pipeline, PlanRequest, Workspaces, bridge, question,
};
use lmsc_plan::target::Kernels;
use lmsc_plan::{Bridge, Floors, service};

use crate::budget::{Budget, Goal, smallest_budget};
use crate::job::{Look, Machine, Planning};
use crate::known::{PLANNERS, planner};
use crate::planner::PlannerCall;
use crate::{Code, DEFAULT_PLANNER, Error, device, look, targets};

/// The machine of a call: its target, its profile, and the workspaces of its kernels.
pub(crate) fn machine(machine: &Machine) -> Result<MachineModel, Error> {
    let target = machine.target.as_deref().map(targets::named_target).transpose()?;
    let profile = targets::read_profile(machine.profile.as_deref())?;
    Ok(with_kernels(MachineModel { target, profile, ..MachineModel::default() }, machine.precision))
}

/// The machine of this target and profile, with the workspaces of the target's kernels, and on a GPU of the engines that convolve.
pub(crate) fn with_kernels(machine: MachineModel, precision: Precision) -> MachineModel {
    let target = machine.target();
    match target.kernels {
        Kernels::None => machine,
        Kernels::Host => MachineModel {
            workspaces: Some(Workspaces::new(lmsc_runtime::workspaces)),
            least_workspaces: None,
            ..machine
        },
        Kernels::Cuda => {
            let engines = device::engines_of(target.card.as_deref(), precision);
            let least = Arc::clone(&engines);
            MachineModel {
                workspaces: Some(Workspaces::new(move |graph| engines.workspaces(graph))),
                least_workspaces: Some(Workspaces::new(move |graph| least.least_workspaces(graph))),
                ..machine
            }
        }
    }
}

/// The context of passes that plan nothing, or for the default planner, on the machine that measures and runs a step.
pub(crate) fn cx_of(machine: MachineModel, precision: Precision) -> PassCx {
    PassCx { machine: with_kernels(machine, precision), ..PassCx::default() }
}

/// The context with the budgets for a step.
pub(crate) fn with_budgets(
    cx: PassCx,
    graph: &Graph,
    budget: Option<Budget>,
    host_budget: Option<Budget>,
) -> Result<PassCx, Error> {
    let target = cx.target();
    let constants = match target.kernels {
        Kernels::Host | Kernels::None => Bytes::ZERO,
        Kernels::Cuda => cuda::constants(graph),
    };
    let peak = || Bytes(step_peak(graph, &cx.in_arena()).0.saturating_add(constants.0));
    let budget = budget.map(|budget| budget.bytes(target.device_bytes, peak).saturating_sub(constants));
    let of_host = |budget: Budget| budget.of_memory("--host-budget", target.host_bytes);
    let host_budget = host_budget.map(of_host).transpose()?;
    Ok(PassCx { question: PlanRequest { budget, constants, host_budget, ..cx.question }, ..cx })
}

/// The budget of a goal: for a bound on time the smallest of several that are tried.
pub(crate) fn budget_for(
    goal: Goal,
    graph: &Graph,
    call: &PlannerCall,
    cx: &PassCx,
) -> Result<Budget, Error> {
    if let Goal::Budget(budget) = goal {
        return Ok(budget);
    }
    let cx = with_budgets(without_given(cx), graph, Some(Budget::Bytes(UNLIMITED)), None)?;
    let bridge = before_planning(&mut graph.clone(), &cx)?;
    let planner = call.of_problems()?;
    let planned = |bytes: u64| service::plan(&question(&bridge.problem, planner, Bytes(bytes), &cx));
    let most = service::peak(&question(&bridge.problem, planner, Bytes::ZERO, &cx));
    let unlimited = planned(most).map_or_else(|_| bridge.problem.compute_nanos(), |plan| plan.nanos());
    let longest = goal.longest(unlimited);
    let least = Floors::of(&bridge.problem).recomputation;
    let bytes =
        smallest_budget(least, most, |bytes| planned(bytes).is_ok_and(|plan| plan.nanos() <= longest));
    Ok(Budget::Bytes(Bytes(bytes.saturating_add(cx.question.constants.0))))
}

/// The context in which no order and no plan is given.
fn without_given(cx: &PassCx) -> PassCx {
    let mut cx = cx.clone();
    (cx.question.order, cx.question.given) = (None, None);
    cx
}

/// A budget so large that nothing has to leave, and the order does not change.
pub(crate) const UNLIMITED: Bytes = Bytes(1 << 60);

/// The smallest budget for which the step is known to need no copies, without the constants of kernels: with
/// addresses, including alignment and gaps.
pub(crate) fn step_peak(graph: &Graph, cx: &PassCx) -> Bytes {
    let counted = cx.memory(graph).peak();
    let mut as_it_is = without_given(cx);
    as_it_is.question.budget = Some(UNLIMITED);
    match before_planning(&mut graph.clone(), &as_it_is) {
        Ok(bridge) => {
            let planner = planner(DEFAULT_PLANNER).expect("it is registered");
            counted.max(Bytes(service::peak(&question(&bridge.problem, planner, Bytes::ZERO, cx))))
        }
        // A step with copies was planned before, and its addresses count as they are.
        Err(_) => counted,
    }
}

/// The options of the passes for this step on this machine.
pub(crate) fn pass_cx(planning: &Planning, machine: MachineModel, graph: &Graph) -> Result<PassCx, Error> {
    let call = planning.search.called();
    if planning.search.ranges {
        knows_ranges(call.planner)?;
    }
    if planning.search.pages.is_some() && call.planner.of_graphs().is_some() {
        let help = "leave it out, or choose another --planner, for example --planner auto";
        return Err(
            Error::new(Code::Option, format!("--pages: {} knows bytes only", call.name())).with_help(help)
        );
    }
    let machine = PassCx { machine, ..planning.pass_cx() };
    let budget = planning.budget.map(|goal| budget_for(goal, graph, &call, &machine)).transpose()?;
    let cx = with_budgets(machine, graph, budget, planning.machine.host_budget)?;
    match &planning.given {
        Some(path) => stated(given_plan(path)?.applied(cx)),
        None => Ok(cx),
    }
}

/// The context, unless it is for a schedule and has no budget: a plan says its own.
pub(crate) fn stated(cx: PassCx) -> Result<PassCx, Error> {
    match &cx.question.given {
        Some(given) if cx.question.budget.is_none() => {
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
    Ok(GivenPlan::new(path.display().to_string(), text, PLANNERS)?)
}

/// Refuses planners that copy only whole tensors.
pub(crate) fn knows_ranges(planner: AnyPlanner) -> Result<(), Error> {
    if planner.of_problems().is_some_and(|planner| planner.ranges) {
        return Ok(());
    }
    let message = format!("--ranges: the planner {} copies whole tensors", planner.name());
    let help = "leave it out, or choose a --planner that does not, for example --planner swap-only";
    Err(Error::new(Code::Option, message).with_help(help))
}

/// Runs the passes before the planner, and returns the problem that the planner gets.
pub(crate) fn before_planning(graph: &mut Graph, cx: &PassCx) -> Result<Bridge, Error> {
    look::run(graph, &Pipeline::before_planning(), cx, &Look::default())?;
    Ok(bridge(graph, cx)?)
}
