//! Replays of the plans of all planners, with noise and with skipped layers.

use lmsc_ir::program::GateEffect;
use lmsc_planners::{Planner, Request};
use lmsc_schedule::problem::{Operator, Problem, TensorId};
use lmsc_schedule::{Noise, Replay, Room, Schedule, check, check_however_long, edges};
use lmsc_testing::{Rng, Source, random};

/// A planner of problems, drawn from all.
fn any(u: &mut Rng) -> &'static Planner {
    let all: Vec<_> = lmsc_papers::ALL.iter().filter_map(|planner| planner.of_problems()).collect();
    all[u.below(all.len())]
}

/// A plan of a random problem, and its budget.
fn planned(seed: u64) -> Option<(Problem, Schedule, u64)> {
    let mut u = Rng::new(seed);
    let ops = 1 + u.below(if seed.is_multiple_of(20) { 60 } else { 14 });
    let problem = random::problem(&mut u, ops);
    let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap();
    let floor = problem.floor().1;
    let budget = floor + (peak - floor) * u.below(5) as u64 / 4;
    let planner = any(&mut u);
    let request = Request { recompute: u.chance(50), effort: 1, ..Request::new(&problem, budget) };
    let plan = planner.plan(&request).ok()?;
    Some((plan.problem, plan.schedule, budget))
}

fn noise(operators_percent: u32, contention_percent: u32) -> Noise {
    Noise { operators_percent, contention_percent }
}

#[test]
fn without_noise_nothing_is_later_than_planned() {
    let mut same = 0;
    for seed in 0..600 {
        let Some((problem, schedule, budget)) = planned(seed) else { continue };
        let edges = edges(&problem, &schedule, Room::Counted(budget)).unwrap();
        let replayed = Replay::new(&problem, &schedule, &edges).run(Noise::default(), seed);
        let later = replayed.steps.iter().zip(&schedule.steps).find(|(now, then)| now.start > then.start);
        assert_eq!(later, None, "{seed}");
        same += usize::from(replayed.steps == schedule.steps);
    }
    assert!(same > 500, "only {same}");
}

#[test]
fn no_noise_takes_a_plan_beyond_its_budget() {
    let (mut replays, mut broken) = (0, 0);
    for seed in 0..1500 {
        let Some((problem, schedule, budget)) = planned(seed) else { continue };
        let edges = edges(&problem, &schedule, Room::Counted(budget)).unwrap();
        for noise in [noise(10, 0), noise(10, 20), noise(100, 99)] {
            let several = |replay: Replay<'_>| replay.several(noise, 3, budget);
            let replayed = several(Replay::new(&problem, &schedule, &edges));
            let replayed = replayed.unwrap_or_else(|flaw| panic!("{seed}: {flaw}"));
            assert!(replayed.mean <= replayed.most && replayed.peak <= budget, "{seed}");
            replays += 3;
            // Data dependences and the order of the engines alone do not suffice.
            broken += usize::from(several(Replay::new(&problem, &schedule, &[])).is_err());
        }
    }
    assert!(replays > 5000, "only {replays}");
    assert!(broken > 500, "only {broken} break without their edges");
}

/// The state of each operator if the results of some, drawn at random, are zero.
fn parts(problem: &Problem, u: &mut Rng) -> Vec<GateEffect> {
    let can = |op: &Operator| op.changes.is_empty() && !op.produces.is_empty();
    let draw = |op: &Operator| if can(op) && u.chance(20) { GateEffect::Zero } else { GateEffect::Runs };
    let mut parts: Vec<GateEffect> = problem.ops.iter().map(draw).collect();
    let mut needed: Vec<bool> = problem.tensors.values().map(|tensor| tensor.kept).collect();
    for (op, part) in problem.ops.iter().zip(&mut parts).rev() {
        let is_needed = |t: &TensorId| needed[t.as_u32() as usize];
        if can(op) && !op.produces.iter().any(is_needed) {
            *part = GateEffect::Rests;
        } else if *part == GateEffect::Runs {
            op.reads.iter().for_each(|t| needed[t.as_u32() as usize] = true);
        }
    }
    parts
}

#[test]
fn a_step_without_some_layers_stays_within_the_budget_of_its_plan() {
    let (mut rest, mut copies, mut again) = (0, 0, 0);
    for seed in 0..1000 {
        let mut u = Rng::new(seed);
        let ops = 1 + u.below(40);
        let source = random::problem(&mut u, ops);
        let peak = source.live_by_moment(&source.uses()).into_iter().max().unwrap();
        let floor = source.floor().1;
        let budget = floor + (peak - floor) * u.below(4) as u64 / 4;
        let planner = any(&mut u);
        let request = Request { recompute: u.chance(50), effort: 1, ..Request::new(&source, budget) };
        let Ok(plan) = planner.plan(&request) else { continue };
        let of_source = parts(&source, &mut u);
        let parts: Vec<GateEffect> = plan.op_origin.iter().map(|&tick| of_source[tick as usize]).collect();
        let edges = edges(&plan.problem, &plan.schedule, Room::Counted(budget)).unwrap();
        let replay = Replay::new(&plan.problem, &plan.schedule, &edges);
        for noise in [noise(0, 0), noise(30, 0), noise(100, 50)] {
            let (problem, schedule) = replay.without(&parts, noise, seed);
            // Every operator that runs finds the tensors that it reads, and nothing exceeds the budget.
            check_however_long(&problem, &schedule, budget).unwrap_or_else(|flaw| panic!("{seed}: {flaw}"));
            assert_eq!(problem.check(), Ok(()), "{seed}");
            if noise.operators_percent == 0 {
                check(&problem, &schedule, budget).unwrap();
                assert!(schedule.makespan() <= plan.schedule.makespan(), "{seed}");
            }
        }
        let (_, schedule) = replay.without(&parts, noise(0, 0), seed);
        rest += usize::from(parts.contains(&GateEffect::Rests));
        copies += usize::from(schedule.steps.len() < plan.schedule.steps.len());
        again += usize::from(plan.op_origin.len() > source.ops.len());
        // If no layer is skipped, the result is the plain replay.
        let whole = vec![GateEffect::Runs; parts.len()];
        let (problem, schedule) = replay.without(&whole, noise(10, 0), seed);
        assert_eq!(schedule.steps, replay.run(noise(10, 0), seed).steps);
        assert_eq!(problem.ops, plan.problem.ops);
    }
    assert!(rest > 400 && copies > 50 && again > 25, "{rest} {copies} {again}");
}
