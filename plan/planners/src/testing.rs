//! Plans of planners by name, checked, for tests.

use lmsc_schedule::{Room, Schedule, check, edges};

use crate::{DoesNotFit, Options, Parameters, Request, planner};

/// The schedule of the planner of this name, after checking it and computing its edges.
pub(crate) fn run(name: &str, request: &Request) -> Result<Schedule, DoesNotFit> {
    run_with(name, request, Options::default())
}

/// The same with parameters of the planner.
pub(crate) fn run_with(name: &str, request: &Request, options: Options) -> Result<Schedule, DoesNotFit> {
    let parameters = Parameters { options, ..Parameters::default() };
    let schedule = (planner(name).unwrap().run)(request, &parameters)?.schedule;
    if let Err(flaw) = check(request.problem, &schedule, request.budget) {
        panic!("{name} {:?}: {flaw}\n{:#?}", request.scheduler, request.problem);
    }
    assert!(schedule.makespan() >= request.problem.compute_nanos());
    edges(request.problem, &schedule, Room::Counted(request.budget))
        .unwrap_or_else(|e| panic!("{name}: {e}"));
    Ok(schedule)
}
