//! Plans of problems without a model. Other compilers state their graphs as instances, get a plan here, and run it themselves.

use std::sync::Arc;

use lmsc_ir::Bytes;
use lmsc_plan::instance::Instance;
use lmsc_plan::planners::{Granularity, Parameters, Request};
use lmsc_plan::problem::Problem;
use lmsc_plan::saved::Saved;
use lmsc_plan::schedule::Watch;
use lmsc_plan::service::{self, Planned, Question, Space, Unplanned};
use lmsc_plan::{Cause, Floors, Needs, Reach, Refusal, Smallest};
use serde::Serialize;
use serde_json::Value;

use crate::budget::{Goal, smallest_budget};
use crate::planner::called;
use crate::{Code, DEFAULT_PLANNER, Error};

/// The question about a problem.
#[derive(Clone, Debug)]
pub struct ProblemQuestion {
    /// The memory that the step may use.
    pub goal: Goal,
    /// The peak of the step as it is, resident bytes included, where the problem states its operators in another order: a budget such
    /// as `0.6x` is a share of it.
    pub as_it_is: Option<Bytes>,
    /// Bytes of the budget that the problem does not contain: parameters and inputs that others hold throughout.
    pub resident: Bytes,
    /// The memory of which a budget in percent is a share.
    pub device: Bytes,
    /// Bytes of the host that may be occupied.
    pub host: Bytes,
    /// Search effort in percent.
    pub effort: u32,
}

/// The answer: a plan in which bytes are counted, checked. All bytes include the resident ones.
#[derive(Clone, Debug, Serialize)]
pub struct ProblemPlan {
    /// The budget.
    pub budget_bytes: u64,
    /// The peak of the step as it is.
    pub as_it_is_bytes: u64,
    /// The most bytes at once under the plan.
    pub peak_bytes: u64,
    /// The time of the problem as it is, without a memory limit: lanes of operators run beside each other.
    pub as_it_is_ns: u64,
    /// The time of the plan.
    pub makespan_ns: u64,
    /// The time of the operators that run again.
    pub again_ns: u64,
    /// Bytes that are copied to the host.
    pub out_bytes: u64,
    /// The plan, as `--save-plan` writes it.
    pub plan: Value,
}

/// A plan of the problem in the text of an instance, which copies whole tensors and runs operators again.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) for a text that is no instance; [`ErrorKind::Refusal`](crate::ErrorKind), with the smallest
/// budget that has a plan, for a budget that has none.
pub fn plan_problem(text: &str, asked: &ProblemQuestion, watch: &Arc<Watch>) -> Result<ProblemPlan, Error> {
    let instance =
        Instance::parse(text).map_err(|why| Error::new(Code::Malformed, format!("the instance: {why}")))?;
    let problem = &instance.problem;
    let resident = asked.resident;
    let as_it_is = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap_or(0);
    let peak = || asked.as_it_is.unwrap_or(Bytes(as_it_is.saturating_add(resident.0)));
    let least = Floors::of(problem).recomputation;
    let question = |bytes: u64| -> Result<Question<'_>, Error> {
        let request = Request {
            granularity: Granularity::Whole,
            recompute: true,
            effort: asked.effort,
            watch: Some(watch),
            ..Request::new(problem, bytes)
        };
        Ok(Question {
            planner: called(DEFAULT_PLANNER)?.of_problems()?,
            parameters: Parameters::default(),
            request,
            space: Space::Counted,
            or_pages: None,
            or_as_it_is: false,
            robust: None,
            host_bytes: asked.host.0,
        })
    };
    let budget = match asked.goal {
        Goal::Budget(budget) => budget.bytes(asked.device, peak),
        Goal::Smallest => Bytes(least.saturating_add(resident.0)),
        Goal::Slower(_) => {
            let longest = asked.goal.longest(problem.unlimited_nanos());
            let asking = question(0)?;
            let keeps = |budget: u64| {
                let request = Request { budget, ..asking.request };
                service::plan(&Question { request, ..asking }).is_ok_and(|planned| planned.nanos() <= longest)
            };
            Bytes(smallest_budget(least, as_it_is, keeps).saturating_add(resident.0))
        }
    };
    let question = question(budget.0.saturating_sub(resident.0))?;
    // Resident bytes may take more than the budget although the problem needs nothing.
    let planned = if budget < resident { None } else { Some(service::plan(&question)) };
    match planned {
        Some(Ok(planned)) => Ok(answer(&question, planned, budget, resident, peak())),
        Some(Err(Unplanned::Ours { planner, flaw })) => {
            Err(Error::ours(format!("planner {planner}: {flaw}")))
        }
        Some(Err(why)) => Err(refusal(&instance, &why, budget, resident).into()),
        None => {
            let refusal = Refusal::new(Cause::Resident, budget, Some(resident));
            Err(with_smallest(refusal, problem, resident).into())
        }
    }
}

fn answer(
    question: &Question<'_>,
    planned: Planned,
    budget: Bytes,
    resident: Bytes,
    as_it_is: Bytes,
) -> ProblemPlan {
    let plan = &planned.plan;
    let (as_it_is_ns, makespan_ns) = (question.request.problem.unlimited_nanos(), planned.nanos());
    let (again_ns, (out_bytes, _)) = (plan.recompute_nanos(), plan.schedule.copied_bytes());
    let peak_bytes = planned.peak.saturating_add(resident.0);
    let saved = Saved::of(question, planned, Vec::new(), None).to_json();
    ProblemPlan {
        budget_bytes: budget.0,
        as_it_is_bytes: as_it_is.0,
        peak_bytes,
        as_it_is_ns,
        makespan_ns,
        again_ns,
        out_bytes,
        plan: serde_json::from_str(&saved).expect("a plan is JSON"),
    }
}

fn refusal(instance: &Instance, why: &Unplanned, budget: Bytes, resident: Bytes) -> Refusal {
    let problem = &instance.problem;
    let (no, host) = match why {
        Unplanned::DoesNotFit(no) => (Some(no), None),
        Unplanned::HostIsFull(no, host, moved) => (Some(no), Some((Bytes(*host), Bytes(*moved)))),
        _ => (None, None),
    };
    let refusal = match no.filter(|no| no.needed > no.budget) {
        Some(no) => {
            let op = &problem.ops[no.tick as usize];
            let subject = format!("operator {} ({})", no.tick, problem.kinds[op.kind as usize]);
            let needed = Some(Bytes(no.needed.saturating_add(resident.0)));
            let refusal = Refusal::new(
                Cause::Operator(Needs { subject: subject.clone(), parts: None }.into()),
                budget,
                needed,
            );
            Refusal { node: Some(subject), ..refusal }
        }
        None => Refusal::new(Cause::NoPlan { planner: DEFAULT_PLANNER }, budget, None),
    };
    match host {
        Some((host, moved)) => refusal.of_host(host, moved),
        None => with_smallest(refusal, problem, resident),
    }
}

/// The refusal with the smallest budget for which there is a plan.
fn with_smallest(mut refusal: Refusal, problem: &Problem, resident: Bytes) -> Refusal {
    let bytes = Bytes(Floors::of(problem).recomputation.saturating_add(resident.0));
    refusal.smallest.push(Smallest { bytes, reach: Reach::Tried });
    let advice = format!("the smallest budget that has a plan is {} ({} bytes)", bytes.rounded_up(), bytes.0);
    refusal.with_help(advice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// Four layers whose results of 1000 bytes the backward pass reads: without a plan 4000 bytes and the gradients.
    fn instance() -> String {
        let forward = (0..4).map(|i| {
            let reads = if i == 0 { String::new() } else { format!("{}", i - 1) };
            format!("[0, 0, 1.0, 0, [{reads}], [{i}], 1]")
        });
        let backward = (0..4).rev().map(|i| {
            let reads = if i == 3 { format!("{i}") } else { format!("{i}, {}", 7 - i - 1) };
            format!("[0, 1, 1.0, 0, [{reads}], [{}], 0]", 7 - i)
        });
        let ops: Vec<String> = forward.chain(backward).collect();
        format!(
            r#"{{"format": "lmsc-planner-dag-1", "name": "four", "bw_d2h": 1e9, "bw_h2d": 1e9, "kinds": ["layer"],
                "tensor_bytes": [1000, 1000, 1000, 1000, 10, 10, 10, 10], "swappable": [0, 1, 2], "given": [],
                "ops": [{}]}}"#,
            ops.join(", ")
        )
    }

    fn asked(goal: &str) -> Result<ProblemPlan, Error> {
        asked_of(&instance(), goal, None)
    }

    fn asked_of(instance: &str, goal: &str, as_it_is: Option<Bytes>) -> Result<ProblemPlan, Error> {
        let question = ProblemQuestion {
            goal: goal.parse().unwrap(),
            as_it_is,
            resident: Bytes(500),
            device: Bytes(10_000),
            host: Bytes(1 << 30),
            effort: 20,
        };
        plan_problem(instance, &question, &Arc::default())
    }

    /// Two layers, each of which reads a gathered tensor, and the reduction of the second one's result, for which nobody waits.
    const WITH_LANES: &str = r#"{
        "format": "lmsc-planner-dag-2", "name": "lanes", "bw_d2h": 1e9, "bw_h2d": 1e9, "kinds": ["gather", "layer", "reduce"],
        "tensor_bytes": [1000, 1000, 10, 10, 10], "swappable": [], "given": [], "lanes": [{"name": "comm"}],
        "on_lane": [[0, 1], [1, 1], [4, 1]],
        "ops": [[0, 0, 3.0, 0, [], [0], 1], [0, 0, 3.0, 0, [], [1], 1],
                [1, 0, 4.0, 0, [0], [2], 0], [1, 0, 4.0, 0, [1, 2], [3], 0], [2, 0, 5.0, 0, [3], [4], 0]]}"#;

    #[test]
    fn lanes_run_beside_each_other_in_the_time_of_a_step_as_it_is() {
        // Gathers end at 3 and 6 us, layers at 7 and 11, the reduction at 16; one lane would take 19, the layers alone 8.
        let still = asked_of(WITH_LANES, "0% slower", None).unwrap();
        assert_eq!((still.as_it_is_ns, still.makespan_ns), (16_000, 16_000));
        let slower = asked_of(WITH_LANES, "19% slower", None).unwrap();
        assert!(slower.makespan_ns <= 19_040 && slower.budget_bytes <= still.budget_bytes, "{slower:?}");
    }

    #[test]
    fn a_share_is_one_of_the_given_peak_of_the_step() {
        let half = asked_of(&instance(), "0.5x", Some(Bytes(8000))).unwrap();
        assert_eq!((half.budget_bytes, half.as_it_is_bytes), (4000, 8000));
    }

    #[test]
    fn resident_bytes_are_part_of_the_budget_and_of_the_peak() {
        let fits = asked("4510").unwrap();
        assert_eq!((fits.as_it_is_bytes, fits.peak_bytes, fits.out_bytes), (4510, 4510, 0));
        assert_eq!(fits.plan["space"], "counted");
        let tight = asked("3600").unwrap();
        assert!(tight.peak_bytes <= 3600 && tight.out_bytes + tight.again_ns > 0, "{tight:?}");
        assert_eq!(asked("36%").unwrap().budget_bytes, 3600);
        assert_eq!(asked("0.9x").unwrap().budget_bytes, 4059);
    }

    #[test]
    fn the_smallest_budget_is_the_one_that_a_refusal_names() {
        let smallest = asked("smallest").unwrap();
        let refused = asked(&(smallest.budget_bytes - 1).to_string()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refusal);
        let named = refused.refusal().and_then(Refusal::smallest_budget).unwrap();
        assert_eq!(named.bytes.0, smallest.budget_bytes);
        let below = asked("499").unwrap_err();
        assert_eq!(
            below.refusal().and_then(Refusal::smallest_budget).unwrap().bytes.0,
            smallest.budget_bytes
        );
    }

    #[test]
    fn a_slower_plan_takes_fewer_bytes_and_keeps_to_its_time() {
        let (still, slower, smallest) =
            (asked("0% slower").unwrap(), asked("60% slower").unwrap(), asked("smallest").unwrap());
        assert!(
            still.makespan_ns <= still.as_it_is_ns && still.budget_bytes <= still.as_it_is_bytes,
            "{still:?}"
        );
        assert!(slower.makespan_ns <= slower.as_it_is_ns * 8 / 5, "{slower:?}");
        assert!(slower.budget_bytes <= still.budget_bytes && slower.budget_bytes >= smallest.budget_bytes);
        assert_eq!(asked("100000% slower").unwrap().budget_bytes, smallest.budget_bytes);
    }

    #[test]
    fn a_text_that_is_no_instance_is_the_callers_fault() {
        let question = ProblemQuestion {
            goal: Goal::Smallest,
            as_it_is: None,
            resident: Bytes(0),
            device: Bytes(0),
            host: Bytes(0),
            effort: 0,
        };
        let error = plan_problem("{}", &question, &Arc::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
    }
}
