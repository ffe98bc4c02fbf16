//! The context of the passes for one call: the machine, the budgets, the planner.

use std::path::Path;
use std::sync::Arc;

use lmsc_cuda::{self as cuda, Precision};
use lmsc_ir::{Bytes, Graph};
use lmsc_passes::{GivenPlan, PassCx, Pipeline, TFLMS, Workspaces, bridge, question};
use lmsc_plan::planners::planner;
use lmsc_plan::target::Kernels;
use lmsc_plan::{Bridge, Floors, service};

use crate::budget::{Budget, Goal, smallest_budget};
use crate::job::{Look, Machine, Planning};
use crate::{Code, DEFAULT_PLANNER, Error, device, look, planner as planners, targets};

/// The options of the passes that describe the machine: target and profile.
pub(crate) fn machine(machine: &Machine) -> Result<PassCx, Error> {
    let target = machine.target.as_deref().map(targets::named_target).transpose()?;
    let profile = targets::read_profile(machine.profile.as_deref())?;
    Ok(of_machine(PassCx { target, profile, ..PassCx::default() }, machine.precision))
}

/// These options of the passes, on the machine of the call.
pub(crate) fn on_machine(cx: PassCx, on: &Machine) -> Result<PassCx, Error> {
    let PassCx { target, profile, workspaces, least_workspaces, .. } = machine(on)?;
    Ok(PassCx { target, profile, workspaces, least_workspaces, ..cx })
}

/// The same options, with the workspaces of the target's kernels, and on a GPU of the engines that convolve.
pub(crate) fn of_machine(cx: PassCx, precision: Precision) -> PassCx {
    let target = cx.target();
    match target.kernels {
        Kernels::None => cx,
        Kernels::Host => PassCx {
            workspaces: Some(Workspaces::new(lmsc_runtime::workspaces)),
            least_workspaces: None,
            ..cx
        },
        Kernels::Cuda => {
            let engines = device::engines_of(target.card.as_deref(), precision);
            let least = Arc::clone(&engines);
            PassCx {
                workspaces: Some(Workspaces::new(move |graph| engines.workspaces(graph))),
                least_workspaces: Some(Workspaces::new(move |graph| least.least_workspaces(graph))),
                ..cx
            }
        }
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
pub(crate) fn budget_for(goal: Goal, graph: &Graph, named: &str, cx: &PassCx) -> Result<Budget, Error> {
    if let Goal::Budget(budget) = goal {
        return Ok(budget);
    }
    let cx = with_budgets(
        PassCx { order: None, given: None, ..cx.clone() },
        graph,
        Some(Budget::Bytes(UNLIMITED)),
        None,
    )?;
    let bridge = before_planning(&mut graph.clone(), &cx)?;
    let planner = planners::called(named)?.of_problems()?;
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
pub(crate) const UNLIMITED: Bytes = Bytes(1 << 60);

/// The smallest budget for which the step is known to need no copies, without the constants of kernels: with
/// addresses, including alignment and gaps.
pub(crate) fn step_peak(graph: &Graph, cx: &PassCx) -> Bytes {
    let counted = cx.memory(graph).peak();
    let as_it_is = PassCx { budget: Some(UNLIMITED), order: None, given: None, ..cx.clone() };
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
pub(crate) fn pass_cx(planning: &Planning, machine: PassCx, graph: &Graph) -> Result<PassCx, Error> {
    let planner = planning.search.called().name;
    if planning.search.ranges {
        knows_ranges(planner)?;
    }
    if planning.search.pages.is_some() && planner == TFLMS {
        let help = "leave it out, or choose another --planner, for example --planner auto";
        return Err(Error::new(Code::Option, format!("--pages: {TFLMS} knows bytes only")).with_help(help));
    }
    let PassCx { target, profile, workspaces, least_workspaces, .. } = machine;
    let machine = PassCx { target, profile, workspaces, least_workspaces, ..planning.pass_cx() };
    let budget = planning.budget.map(|goal| budget_for(goal, graph, planner, &machine)).transpose()?;
    let cx = with_budgets(machine, graph, budget, planning.machine.host_budget)?;
    match &planning.given {
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
pub(crate) fn knows_ranges(planner: &str) -> Result<(), Error> {
    if lmsc_plan::planners::planner(planner).is_some_and(|p| p.ranges) {
        return Ok(());
    }
    let message = format!("--ranges: the planner {planner} copies whole tensors");
    let help = "leave it out, or choose a --planner that does not, for example --planner swap-only";
    Err(Error::new(Code::Option, message).with_help(help))
}

/// Runs the passes before the planner, and returns the problem that the planner gets.
pub(crate) fn before_planning(graph: &mut Graph, cx: &PassCx) -> Result<Bridge, Error> {
    let all = Pipeline::of_planner(DEFAULT_PLANNER);
    let count = all.passes().len() - 1;
    look::run(graph, &all.first(count), cx, &Look::default())?;
    Ok(bridge(graph, cx)?)
}
