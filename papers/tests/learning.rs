//! Learning compared with chance: the same number of episodes of the same game on graphs of `testdata/instances`.

use lmsc_papers::dqn::{self, Learning};
use lmsc_plan::instance::Instance;
use lmsc_plan::planners::{Plan, Request, Scheduler};
use lmsc_plan::problem::Problem;
use lmsc_plan::schedule::check;

/// Graphs, and the percentage by which the memory is less than the step's peak.
const GRAPHS: [(&str, u64); 3] =
    [("chain_densenet121_224_b128", 30), ("chain_densenet121_500_b8", 50), ("dag_unet_512_b8", 30)];

const EPISODES: u32 = 24;
const SEEDS: u64 = 2;

fn instance(name: &str) -> Problem {
    let path = format!("{}/../testdata/instances/{name}.json", env!("CARGO_MANIFEST_DIR"));
    Instance::parse(&std::fs::read_to_string(path).unwrap()).unwrap().problem
}

/// The percentage by which the plan takes longer than the operators alone.
fn overhead(plan: &Plan, request: &Request) -> f64 {
    check(&plan.problem, &plan.schedule, request.budget).unwrap();
    let compute = request.problem.compute_nanos() as f64;
    100.0 * (plan.schedule.makespan() as f64 / compute - 1.0)
}

/// The mean overheads of learned plans and of plans found by chance, with `less` percent less memory than the step's peak.
fn learned_and_by_chance(name: &str, less: u64) -> (f64, f64) {
    let problem = instance(name);
    let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap();
    let budget = peak * (100 - less) / 100;
    let (mut learned, mut by_chance) = (0.0, 0.0);
    for seed in 0..SEEDS {
        let learning = Learning { episodes: EPISODES, seed, ..Learning::default() };
        let request =
            Request { recompute: true, scheduler: Scheduler::Paper, ..Request::new(&problem, budget) };
        learned += overhead(&dqn::plan(&request, &learning).unwrap(), &request);
        by_chance += overhead(&dqn::at_random(&request, &learning).unwrap(), &request);
    }
    (learned / SEEDS as f64, by_chance / SEEDS as f64)
}

#[test]
fn learning_beats_as_many_random_episodes() {
    for (name, less) in GRAPHS {
        let (learned, by_chance) = learned_and_by_chance(name, less);
        println!("{name} −{less} %: {learned:.2} % learned, {by_chance:.2} % by chance");
        assert!(1.2 * learned < by_chance, "{name}: {learned} against {by_chance}");
    }
}
