//! Properties of every environment, on random problems.

use lmsc_ir::Phase::{Backward, Forward};
use lmsc_schedule::problem::{Problem, TensorId};
use lmsc_schedule::{Scheduler, check};
use lmsc_testing::small::{op, problem, produced, steps};
use lmsc_testing::{Rng, Source, random};

use super::*;

/// Plays an episode with random choices; returns the sum of its rewards.
fn play(env: &mut Env, u: &mut Rng) -> i64 {
    let mut sum = 0;
    loop {
        let state = env.state();
        assert!(state.valid.is_sorted());
        if env.over.is_empty() {
            assert!(state.is_terminal());
            return sum;
        }
        assert!(!state.is_terminal(), "something exceeds the limit, but nothing can be chosen");
        sum += env.step(state.valid[u.below(state.valid.len())]).unwrap();
    }
}

fn random_request(seed: u64, problem: &Problem) -> Request<'_> {
    let floor = problem.floor().1;
    let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap();
    let scheduler = if seed.is_multiple_of(3) { Scheduler::Paper } else { Scheduler::Justified };
    let budget = floor + (peak - floor) * (seed % 4) / 4;
    Request { scheduler, recompute: !seed.is_multiple_of(5), ..Request::new(problem, budget) }
}

#[test]
fn every_episode_ends_within_the_limit_and_its_rewards_are_what_its_plan_loses() {
    let (mut removed, mut offloaded) = (0, 0);
    for seed in 0..600 {
        let mut u = Rng::new(seed);
        let problem = random::problem(&mut u, 1 + seed as usize % 40);
        let request = random_request(seed, &problem);
        let mut env = Env::new(&request).unwrap();
        assert_eq!(env.overhead_nanos(), 0);
        let rewards = play(&mut env, &mut u);
        let plan = env.plan().unwrap();
        check(&plan.problem, &plan.schedule, request.budget).unwrap_or_else(|flaw| panic!("{seed}: {flaw}"));
        let overhead = plan.schedule.makespan() - problem.compute_nanos();
        assert_eq!((rewards, env.overhead_nanos()), (-(overhead as i64), overhead), "{seed}");
        // Every operator runs for the first time in its place.
        let mut next = 0;
        plan.op_origin.iter().for_each(|&origin| next += u32::from(origin == next));
        assert_eq!(next, problem.ticks());
        removed += usize::from(plan.op_origin.len() > problem.ops.len());
        offloaded += usize::from(plan.schedule.copied_bytes().1 > 0);
        // The same choices give the same plan again.
        env.reset();
        assert_eq!(play(&mut env, &mut u.clone()), play_again(&request, &u), "{seed}");
    }
    assert!(removed > 50 && offloaded > 200, "{removed} {offloaded}");
}

/// The rewards of a new environment under the same choices.
fn play_again(request: &Request, u: &Rng) -> i64 {
    play(&mut Env::new(request).unwrap(), &mut u.clone())
}

#[test]
fn less_than_the_floor_is_refused() {
    for seed in 0..100 {
        let problem = random::problem(&mut Rng::new(seed), 12);
        if let Some(budget) = problem.floor().1.checked_sub(1) {
            assert!(Env::new(&Request::new(&problem, budget)).is_err());
        }
    }
}

#[test]
fn no_node_stands_for_two_actions_and_every_window_can_be_offloaded() {
    for seed in 0..200 {
        let problem = random::problem(&mut Rng::new(seed), 30);
        let env = Env::new(&Request { recompute: true, ..Request::new(&problem, u64::MAX) }).unwrap();
        let windows = problem.windows(&problem.uses());
        let mut offloads: Vec<Window> = Vec::new();
        for (index, node) in env.nodes().iter().enumerate() {
            let Some(action) = node.action else { continue };
            let variable = node.operation.unwrap().variable;
            assert_eq!(variable, action.window.tensor.as_u32());
            let (candidate, kind) = env.candidate_of(index as u32).unwrap();
            assert_eq!((env.nodes.candidates[candidate].window, kind), (action.window, action.kind));
            offloads.extend((kind == ActionKind::Offload).then_some(action.window));
        }
        offloads.sort_unstable();
        let mut expected = windows;
        expected.sort_unstable();
        assert_eq!(offloads, expected);
        assert_eq!(env.nodes()[NOTHING as usize], OperationNode::default());
        assert!(env.lags().iter().all(|lag| lag.from < lag.to));
    }
}

/// Four forward operators of 10 ns, each of which produces 10 bytes, and four backward ones.
fn chain() -> Problem {
    let ops: Vec<_> = (0..4)
        .map(|i| {
            let reads: &[u32] = if i == 0 { &[] } else { &[i - 1] };
            lmsc_schedule::problem::Operator { recomputable: true, ..op(Forward, 10, reads, &[i]) }
        })
        .chain((0..4).rev().map(|i| op(Backward, 10, &[i], &[])))
        .collect();
    problem(&[produced(10); 4], &ops)
}

/// The node of this action on the tensor.
fn node(env: &Env, kind: ActionKind, tensor: u32) -> u32 {
    let tensor = TensorId::from_u32(tensor);
    let is = |node: &OperationNode| node.action.is_some_and(|a| a.kind == kind && a.window.tensor == tensor);
    env.nodes().iter().position(is).unwrap() as u32
}

#[test]
fn the_agent_stops_where_memory_is_full_and_goes_on_when_the_copy_is_done() {
    let problem = chain();
    let request = Request { recompute: true, scheduler: Scheduler::Paper, ..Request::new(&problem, 30) };
    let mut env = Env::new(&request).unwrap();
    // Nothing can be offloaded before the second operator has begun to read the first tensor; that can be offloaded beside
    // it.
    let [offload, remove] = [ActionKind::Offload, ActionKind::Remove].map(|kind| node(&env, kind, 0));
    let state = env.state();
    assert_eq!(env.nodes()[state.current as usize].nanos, 10);
    let mut valid = vec![NOTHING, offload, remove];
    valid.sort_unstable();
    assert_eq!(state.valid, valid);
    // If nothing is done, the third operator leaves no room for the fourth.
    env.step(NOTHING).unwrap();
    env.step(NOTHING).unwrap();
    let state = env.state();
    assert_eq!(env.nodes()[state.current as usize].operation.unwrap().tick, 3);
    assert!(!state.valid.contains(&NOTHING));
    assert_eq!(env.step(NOTHING), Err(NotValid(NOTHING)));
    // The copy out takes as long as an operator, and the copy in is hidden as well.
    assert_eq!(env.step(offload), Ok(0));
    assert!(env.state().is_terminal());
    let plan = env.plan().unwrap();
    let expected = "op0@0 op1@10 out0@10 op2@20 op3@30 op4@40 in0@50 op5@50 op6@60 op7@70";
    assert_eq!(steps(&plan.schedule), expected);
}

#[test]
fn a_removal_costs_its_operator_and_excludes_the_offload() {
    let problem = chain();
    let request = Request { recompute: true, scheduler: Scheduler::Paper, ..Request::new(&problem, 30) };
    let mut env = Env::new(&request).unwrap();
    let [offload, remove] = [ActionKind::Offload, ActionKind::Remove].map(|kind| node(&env, kind, 0));
    assert_eq!(env.step(remove), Ok(-10));
    assert_eq!(env.step(offload), Err(NotValid(offload)));
    assert_eq!(env.plan().unwrap().op_origin, [0, 1, 2, 3, 4, 5, 6, 0, 7]);
}
