//! More memory is never slower.

use lmsc_ir::rng::Rng;
use lmsc_plan::planners::{Parameters, Request, planner};
use lmsc_plan::problem::Problem;
use lmsc_plan::schedule::check;
use lmsc_plan::service::{self, Question, Space};
use lmsc_testing::random::problem;

/// The number of budgets at which the time is longer than at a smaller one, of those at which there is a plan.
fn rises(problem: &Problem, space: Space) -> (usize, usize) {
    let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap_or(0);
    let (mut last, mut rises, mut plans) = (u64::MAX, 0, 0);
    // From 0.3 to 0.95 of the peak.
    for step in 6..20 {
        let budget = (u128::from(peak) * step / 20) as u64;
        let request = Request { recompute: true, effort: 5, ..Request::new(problem, budget) };
        let question = Question {
            planner: planner("auto").expect("is a planner"),
            parameters: Parameters::default(),
            request,
            space,
            or_pages: None,
            or_as_it_is: false,
            host_bytes: u64::MAX,
        };
        let Ok(planned) = service::plan(&question) else { continue };
        check(&planned.plan.problem, &planned.plan.schedule, budget).expect("is valid");
        rises += usize::from(planned.nanos() > last);
        (last, plans) = (planned.nanos(), plans + 1);
    }
    (rises, plans)
}

#[test]
fn a_larger_budget_is_never_slower_than_a_smaller_one() {
    let is_thorough = std::env::var_os("LMSC_THOROUGH").is_some();
    let (seeds, operators) = if is_thorough { (40, 60) } else { (6, 24) };
    let mut plans = 0;
    for seed in 0..seeds {
        let problem = problem(&mut Rng::new(seed), operators);
        for space in [Space::Counted, Space::Arena] {
            let (rises, found) = rises(&problem, space);
            assert_eq!(rises, 0, "seed {seed}, {space:?}");
            plans += found;
        }
    }
    assert!(plans > seeds as usize * 6, "{plans}");
}
