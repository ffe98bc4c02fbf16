//! The planners plan operators on several lanes, too: on one lane first, and with the times of all lanes then.

use lmsc_planners::Request;
use lmsc_schedule::check;
use lmsc_schedule::problem::Problem;
use lmsc_testing::{Rng, Source, random};

#[test]
fn plans_of_all_planners_are_valid_on_several_lanes() {
    let mut plans = 0;
    for planner in lmsc_papers::PLANNERS.iter().filter(|planner| !planner.learns) {
        for seed in 0..40 {
            let mut u = Rng::new(seed);
            let ops = 1 + u.below(25);
            let problem = random::problem_with_lanes(&mut u, ops);
            let (floor, peak) = (problem.floor().1, problem.live_bytes().into_iter().max().unwrap());
            let budget = floor + peak.saturating_sub(floor) * u.below(5) as u64 / 4;
            let request = Request { recompute: seed % 2 == 0, effort: 5, ..Request::new(&problem, budget) };
            let Ok(plan) = planner.plan(&request) else { continue };
            let name = planner.name;
            check(&plan.problem, &plan.schedule, budget)
                .unwrap_or_else(|flaw| panic!("{name} seed {seed}: {flaw}"));
            assert_eq!(plan.problem.lanes, problem.lanes, "{name} seed {seed}");
            let reductions = |problem: &Problem| problem.ops.iter().filter(|op| op.is_reduction()).count();
            assert_eq!(reductions(&plan.problem), reductions(&problem), "{name} seed {seed}");
            plans += 1;
        }
    }
    assert!(plans > 100, "{plans} plans");
}
