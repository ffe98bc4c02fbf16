//! Plans of planners by name, checked, for tests.

use lmsc_schedule::{DoesNotFit, Request, Room, Schedule, check, edges};

use crate::options::Options;
use crate::{lru, tflms_chain, window};

/// The schedule of the planner of this name, after checking it and computing its edges.
pub(crate) fn run(name: &str, request: &Request) -> Result<Schedule, DoesNotFit> {
    run_with(name, request, Options::default())
}

/// The same with parameters of the planner.
pub(crate) fn run_with(name: &str, request: &Request, options: Options) -> Result<Schedule, DoesNotFit> {
    let plan = match name {
        "window" => window::plan(request, &options)?,
        "lru" => lru::plan(request)?,
        "tflms-chain" => tflms_chain::plan(request, &options)?,
        "tflms-best" => tflms_chain::plan_best(request, &options)?,
        _ => panic!("{name} is no policy"),
    };
    let schedule = plan.schedule;
    if let Err(flaw) = check(request.problem, &schedule, request.budget) {
        panic!("{name} {:?}: {flaw}\n{:#?}", request.scheduler, request.problem);
    }
    assert!(schedule.makespan() >= request.problem.compute_nanos());
    edges(request.problem, &schedule, Room::Counted(request.budget))
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    Ok(schedule)
}
