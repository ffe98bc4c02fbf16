//! Planning where operators run on several lanes.
//!
//! The planners of this project know lanes: their plans are simulated with them. Other planners see one lane, on which the
//! operators run one after the other; their plan then gets the times that it takes with its lanes.
//!
//! Whether operators of other lanes run again, such as gathers of parameters, is a choice for each of them. Other
//! programs offer two choices to the user: none of them, and all. Each is planned for itself, too, and the best of the three plans is taken.

use lmsc_ir::Phase;
use lmsc_schedule::problem::{COMPUTE, Problem, TensorId};
use lmsc_schedule::{
    Absences, Acts, Direction, DoesNotFit, JUSTIFICATION_ROUNDS, Plan, Request, Schedule, Scheduler,
    Simulator, justify,
};

use crate::ours::remat::{Dead, Dropped, Rematerializer, Rewritten};

/// The plan of a planner, `run`, for a problem of several lanes; `knows` tells whether the planner simulates them.
pub(crate) fn plan(
    request: &Request<'_>,
    knows: bool,
    run: impl Fn(&Request<'_>) -> Result<Plan, DoesNotFit>,
) -> Result<Plan, DoesNotFit> {
    let problem = request.problem;
    if !knows {
        let one_lane = problem.on_one_lane();
        return run(&Request { problem: &one_lane, ..*request }).map(|plan| beside_each_other(request, plan));
    }
    let mut best = run(request);
    if !request.recompute || problem.lanes[1..].iter().all(|lane| !lane.repeats) {
        return best;
    }
    let mut compare = |found: Result<Plan, DoesNotFit>| match (&best, found) {
        (Ok(known), Ok(found)) if found.schedule.makespan() < known.schedule.makespan() => best = Ok(found),
        (Err(_), Ok(found)) => best = Ok(found),
        _ => {}
    };
    compare(run(&Request { problem: &never(problem), ..*request }).map(|plan| restored(problem, plan)));
    if let Some(again) = always(problem, |_| true) {
        let found = run(&Request { problem: &again.problem, ..*request });
        compare(found.map(|plan| restored(problem, of_source(&again, plan))));
    }
    best
}

/// The problem whose lanes but the first repeat nothing.
pub fn never(problem: &Problem) -> Problem {
    let mut never = problem.clone();
    never.lanes[1..].iter_mut().for_each(|lane| lane.repeats = false);
    never
}

/// The problem in which those results of other lanes that both phases use are made again for the backward phase if `again` says so,
/// and nothing else is made again on these lanes; none if none is.
fn always(problem: &Problem, again: impl Fn(TensorId) -> bool) -> Option<Rewritten> {
    let remat = Rematerializer::new(problem);
    let turn = problem.ops.iter().position(|op| op.phase == Phase::Backward).unwrap_or(problem.ops.len());
    let mut windows = remat.windows();
    windows.retain(|window| {
        let producer = remat.producer(window.tensor);
        (window.from..=window.until).contains(&(turn as u32))
            && producer.is_some_and(|tick| problem.ops[tick as usize].lane != COMPUTE)
            && again(window.tensor)
    });
    let dropped: Vec<Dropped> = windows.into_iter().map(Dropped::new).collect();
    if dropped.is_empty() {
        return None;
    }
    let mut rewritten = remat.rewrite(&dropped, Dead::default())?;
    rewritten.problem = never(&rewritten.problem);
    Some(rewritten)
}

/// The problem in which those results of other lanes that both phases use are made again for the backward phase if `again` says
/// so, and nothing else is made again on these lanes.
pub fn repeating(problem: &Problem, again: impl Fn(TensorId) -> bool) -> Problem {
    always(problem, again).map_or_else(|| never(problem), |again| again.problem)
}

/// The plan of the rewritten problem as one of its source.
fn of_source(again: &Rewritten, mut plan: Plan) -> Plan {
    plan.op_origin.iter_mut().for_each(|origin| *origin = again.op_origin[*origin as usize]);
    plan.tensor_origin.values_mut().for_each(|origin| *origin = again.tensor_origin[*origin]);
    plan
}

/// The plan with the lanes of the problem, and the operators that may run again in it.
fn restored(problem: &Problem, mut plan: Plan) -> Plan {
    plan.problem.lanes.clone_from(&problem.lanes);
    for (op, &origin) in plan.problem.ops.iter_mut().zip(&plan.op_origin) {
        let source = &problem.ops[origin as usize];
        (op.lane, op.recomputable) = (source.lane, source.recomputable);
    }
    plan
}

/// The plan of a problem on one lane with the times of its lanes, if they are shorter.
fn beside_each_other(request: &Request<'_>, plan: Plan) -> Plan {
    let mut plan = restored(request.problem, plan);
    if let Some(shorter) = timed(request, &plan) {
        plan.schedule = shorter;
    }
    plan
}

fn timed(request: &Request<'_>, plan: &Plan) -> Option<Schedule> {
    let absences = Absences::of(&plan.problem, &plan.schedule);
    let acts = Acts::of(&plan.problem, &absences);
    let order = acts.order_of(&plan.schedule)?;
    let mut simulator = Simulator::default();
    let (order, times) = match request.scheduler {
        Scheduler::Justified => {
            justify(&mut simulator, &acts, &order, request.budget, JUSTIFICATION_ROUNDS).ok()?
        }
        Scheduler::Paper => {
            let times = simulator.run(&acts, &order, request.budget, Direction::Forward).ok()?;
            (order, times)
        }
    };
    (times.makespan < plan.schedule.makespan()).then(|| acts.schedule(&absences, &order, &times))
}

#[cfg(test)]
mod tests {
    use lmsc_bound as bound;
    use lmsc_schedule::{Noise, Replay, Room, check, check_however_long, edges};
    use lmsc_testing::{Rng, Source, random};

    use super::*;
    use crate::PLANNERS;

    /// A random problem of several lanes, and a budget from its floor to its peak.
    fn case(seed: u64) -> (Problem, u64) {
        let mut u = Rng::new(seed);
        let ops = 1 + u.below(25);
        let problem = random::problem_with_lanes(&mut u, ops);
        let floor = problem.floor().1;
        let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap();
        let budget = floor + (peak - floor) * u.below(5) as u64 / 4;
        (problem, budget)
    }

    /// Whether each reduction runs once, in the order of the problem.
    fn reduces_once_in_order(problem: &Problem, plan: &Plan) -> bool {
        let is = |origin: &&u32| problem.ops[**origin as usize].is_reduction();
        let run: Vec<u32> = plan.op_origin.iter().filter(is).copied().collect();
        let all = (0..problem.ticks()).filter(|tick| is(&tick)).collect::<Vec<u32>>();
        run == all
    }

    #[test]
    fn plans_of_all_planners_are_valid_on_several_lanes() {
        let (mut plans, mut again, mut beside) = (0, 0, 0);
        for planner in PLANNERS.iter().filter(|planner| !planner.learns) {
            for seed in 0..100 {
                let (problem, budget) = case(seed);
                let request =
                    Request { recompute: seed % 2 == 0, effort: 5, ..Request::new(&problem, budget) };
                let Ok(plan) = planner.plan(&request) else { continue };
                let name = planner.name;
                check(&plan.problem, &plan.schedule, budget)
                    .unwrap_or_else(|flaw| panic!("{name} seed {seed}: {flaw}"));
                assert!(reduces_once_in_order(&problem, &plan), "{name} seed {seed}");
                assert_eq!(plan.problem.lanes, problem.lanes, "{name} seed {seed}");
                for (op, &origin) in plan.problem.ops.iter().zip(&plan.op_origin) {
                    assert_eq!(op.lane, problem.ops[origin as usize].lane, "{name} seed {seed}");
                }
                let edges = edges(&plan.problem, &plan.schedule, Room::Counted(budget))
                    .unwrap_or_else(|flaw| panic!("{name} seed {seed}: {flaw}"));
                let noise = Noise { operators_percent: 90, contention_percent: 50 };
                let replayed = Replay::new(&plan.problem, &plan.schedule, &edges).run(noise, seed);
                check_however_long(&plan.problem, &replayed, budget)
                    .unwrap_or_else(|flaw| panic!("{name} seed {seed}: {flaw}"));
                plans += 1;
                again += usize::from(plan.op_origin.len() > problem.ops.len());
                let serial: u64 = plan.problem.ops.iter().map(|op| op.nanos).sum();
                beside += usize::from(plan.schedule.makespan() < serial);
            }
        }
        assert!(plans > 150 && again > 5 && beside > 30, "{plans} plans, {again} repeat, {beside} overlap");
    }

    #[test]
    fn no_plan_on_several_lanes_beats_a_bound() {
        let (mut more, mut tight) = (0, 0);
        for seed in 0..50 {
            let (problem, budget) = case(seed);
            for recompute in [false, true] {
                let request = Request { recompute, effort: 1, ..Request::new(&problem, budget) };
                let Ok(plan) = PLANNERS[0].plan(&request) else { continue };
                let nanos = plan.schedule.makespan();
                let bounds = [bound::best(&request), bound::quick(&request), bound::joint(&problem, budget)];
                for found in &bounds {
                    assert!(found.nanos <= nanos, "seed {seed}: {found:?}, but {nanos} is possible");
                    assert_eq!(bound::certify(&problem, budget, found), Ok(found.nanos), "seed {seed}");
                    let greater = bound::Certificate { nanos: found.nanos + 1, ..found.clone() };
                    assert!(bound::certify(&problem, budget, &greater).is_err(), "seed {seed}: {found:?}");
                }
                tight += usize::from(bounds[0].nanos == nanos);
                more += usize::from(bounds[0].nanos > problem.compute_nanos());
            }
        }
        assert!(more > 15 && tight > 15, "{more} {tight}");
    }

    #[test]
    fn a_chain_whose_operators_need_not_wait_proves_nothing() {
        let mut refused = 0;
        for seed in 0..300 {
            let (problem, budget) = case(seed);
            let found = bound::swap(&problem, u64::MAX / 2);
            let bound::Proof::Chain { ticks } = &found.proof else { continue };
            for tick in 0..problem.ticks() {
                let mut longer = ticks.clone();
                longer.push(tick);
                longer.sort_unstable();
                let nanos = found.nanos + problem.ops[tick as usize].nanos.max(1);
                let damaged = bound::Certificate { nanos, proof: bound::Proof::Chain { ticks: longer } };
                assert!(bound::certify(&problem, budget, &damaged).is_err(), "seed {seed}");
                refused += 1;
            }
        }
        assert!(refused > 1000, "{refused}");
    }

    #[test]
    fn the_plan_is_no_slower_than_repeating_nothing_or_all_on_other_lanes() {
        for seed in 0..8 {
            let (problem, budget) = case(seed);
            let plan = |problem: &Problem| {
                let request = Request { recompute: true, effort: 5, ..Request::new(problem, budget) };
                PLANNERS[0].plan(&request).map_or(u64::MAX, |plan| plan.schedule.makespan())
            };
            let (never, always) = (plan(&never(&problem)), plan(&repeating(&problem, |_| true)));
            let planned = plan(&problem);
            assert!(planned <= never.min(always), "seed {seed}: {planned}, not {never} or {always}");
        }
    }
}
