//! Refused budgets: the smallest budgets for which there is a plan, and other advice.

use lmsc_ir::{Bytes, Graph};
use lmsc_passes::{AnyPlanner, GraphPlanner, PassCx, question};
use lmsc_plan::service::Space;
use lmsc_plan::{Cause, Floors, Otherwise, Reach, Refusal, Smallest, service};

use crate::context::{before_planning, machine, pass_cx, step_peak};
use crate::job::{Binding, Job};
use crate::known::planner;
use crate::{DEFAULT_PLANNER, Error};

/// The error; if it is a refusal, with the smallest budgets for which there is a plan, by any planner.
pub(crate) fn floors_of(error: Error, original: &Graph, cx: &PassCx) -> Error {
    error.map_refusal(|refusal| {
        let is_of_host = matches!(refusal.cause, Cause::HostIsFull { .. });
        if is_of_host {
            as_it_is(with_constants(refusal, cx), step_peak(original, cx), cx.question.constants)
        } else {
            device_floors(refusal, original, cx)
        }
    })
}

/// The refusal with the smallest device budgets for which there is a plan.
pub(crate) fn device_floors(refusal: Refusal, original: &Graph, cx: &PassCx) -> Refusal {
    let mut nothing = cx.clone();
    nothing.question.budget = Some(Bytes::ZERO);
    let Ok(bridge) = before_planning(&mut original.clone(), &nothing) else {
        // Graphs that planners do not take were refused for another reason.
        return refusal;
    };
    let planner = planner(DEFAULT_PLANNER).expect("it is registered");
    let question = question(&bridge.problem, planner, Bytes::ZERO, cx);
    let floors = service::floors(&question).beside(cx.question.constants);
    let refusal = with_floors(with_constants(refusal, cx), &floors, cx.whole_budget());
    match cx.question.planner.and_then(AnyPlanner::of_graphs).filter(|_| cx.question.space == Space::Arena) {
        Some(planner) if fits_counted(planner, original, cx) => with_room(refusal, planner, original, cx),
        _ => refusal,
    }
}

/// Whether the planner has a plan without addresses.
fn fits_counted(planner: &GraphPlanner, original: &Graph, cx: &PassCx) -> bool {
    let mut cx = cx.clone();
    cx.question.space = Space::Counted;
    (planner.pipeline)().run(&mut original.clone(), &cx).is_ok()
}

/// Factors, in thousandths above the budget, by which a too small arena for a plan of a planner of graphs is enlarged, in this
/// order.
const MORE: [u128; 8] = [10, 20, 40, 80, 150, 300, 600, 1000];

/// The refusal of an arena for addresses, with the first larger arena in which the planner's result has them.
fn with_room(mut refusal: Refusal, planner: &GraphPlanner, original: &Graph, cx: &PassCx) -> Refusal {
    let budget = cx.question.budget.unwrap_or_default().0;
    let all = (planner.pipeline)();
    let mut larger = MORE.iter().map(|more| Bytes((u128::from(budget) * (1000 + more) / 1000) as u64));
    let found = larger.find(|&larger| {
        let mut cx = cx.clone();
        cx.question.budget = Some(larger);
        all.run(&mut original.clone(), &cx).is_ok()
    });
    match found.map(|larger| Bytes(larger.0.saturating_add(cx.question.constants.0))) {
        Some(bytes) => {
            refusal.smallest.push(Smallest { bytes, reach: Reach::Tried });
            refusal.with_help(format!("give --budget {} ({}), in which it fits", bytes.0, bytes.rounded_up()))
        }
        None => refusal,
    }
}

/// The refusal with the budget for which nothing is swapped: the peak of the step and the constants of kernels.
pub(crate) fn as_it_is(mut refusal: Refusal, peak: Bytes, constants: Bytes) -> Refusal {
    refusal.smallest.push(Smallest { bytes: peak + constants, reach: Reach::AsItIs });
    refusal
}

/// The refusal with the share of the budget that the constants of kernels take.
pub(crate) fn with_constants(refusal: Refusal, cx: &PassCx) -> Refusal {
    match cx.whole_budget().filter(|_| cx.question.constants > Bytes::ZERO) {
        Some(budget) => {
            refusal.with_fact(format!("Of {budget} the constants of kernels take {}.", cx.question.constants))
        }
        None => refusal,
    }
}

/// The refusal with the budgets for which there is a plan.
pub(crate) fn with_floors(refusal: Refusal, floors: &Floors, budget: Option<Bytes>) -> Refusal {
    let refusal = refusal.with_floors(floors);
    match budget.and_then(|budget| floors.fitting(budget.0)) {
        Some(options) => refusal.with_help(format!("{options} finds a plan for this budget")),
        None => refusal,
    }
}

/// The error; if it is a refusal, with advice on the sizes of the step.
pub(crate) fn smaller(error: Error, binding: &Binding) -> Error {
    error.map_refusal(|refusal| smaller_step(refusal, binding))
}

/// The refusal with advice to reduce the dimensions that the call sets.
pub(crate) fn smaller_step(refusal: Refusal, binding: &Binding) -> Refusal {
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
pub(crate) fn beyond(job: &Job, original: &Graph, [peak, budget]: [Bytes; 2], cx: &PassCx) -> Error {
    let mut given: Vec<String> = job.planning.fixed().iter().map(ToString::to_string).collect();
    given.extend(job.look.pass_limit.is_some().then(|| "--pass-limit".to_owned()));
    if given.is_empty() {
        return Error::ours(format!("the peak is {peak}, above the budget of {budget}"));
    }
    let given = given.join(" and ");
    let help = format!("leave out {given}, and lmsc finds a plan within the budget");
    let free = job.planning.without_fixed();
    let found = machine(&free.machine).and_then(|machine| {
        let cx = pass_cx(&free, machine, original)?;
        let ran = free.search.called().planner.pipeline().run(&mut original.clone(), &cx);
        Ok(ran.map_err(|error| floors_of(error.into(), original, &cx)))
    });
    let refuse = |otherwise| {
        let cause = Cause::Parameters { given, otherwise };
        Refusal::new(cause, budget, Some(peak)).beside(cx.question.constants)
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
            smaller_step(refusal, &job.input.binding).into()
        }
        Err(other) => other,
    }
}
