use cranelift_entity::EntityRef;

use super::*;
use lmsc_ir::Phase;
use lmsc_ir::rng::{Rng, Source};

use crate::problem::{Lane, Operator, ProblemError, Tensor};
use crate::{random, small};

/// Random problems with budgets from the floor to the peak, where no swaps are needed, and absences that fit each.
fn cases() -> impl Iterator<Item = (u64, Problem, u64, Absences)> {
    cases_of(random::problem)
}

/// The same of problems with several lanes.
fn cases_with_lanes() -> impl Iterator<Item = (u64, Problem, u64, Absences)> {
    cases_of(random::problem_with_lanes)
}

fn cases_of(
    random: impl Fn(&mut Rng, usize) -> Problem,
) -> impl Iterator<Item = (u64, Problem, u64, Absences)> {
    (0..4000u64).map(move |seed| {
        let mut u = Rng::new(seed);
        let ops = 1 + u.below(if seed % 20 == 0 { 60 } else { 12 });
        let problem = random(&mut u, ops);
        let floor = problem.floor().1;
        let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap();
        let budget = floor + (peak - floor) * u.below(5) as u64 / 4;
        let piece = if u.chance(50) { u64::MAX } else { 1 + peak / (1 + u.below(40) as u64) };
        let absences = random::absences(&mut u, &problem, budget, piece);
        (seed, problem, budget, absences)
    })
}

/// A schedule of the absences, not justified in one case of two.
fn schedule(seed: u64, acts: &Acts, absences: &Absences, budget: u64) -> Schedule {
    let mut simulator = Simulator::default();
    let plain = simulator.run(acts, &acts.order, budget, Direction::Forward);
    let plain = plain.unwrap_or_else(|Stuck(act)| panic!("seed {seed}: {:?} is stuck", acts.what[act]));
    match seed % 2 {
        0 => acts.schedule(absences, &acts.order, &plain),
        _ => {
            let (order, times) =
                justify(&mut simulator, acts, &acts.order, budget, JUSTIFICATION_ROUNDS).unwrap();
            assert!(times.makespan <= plain.makespan, "seed {seed}");
            acts.schedule(absences, &order, &times)
        }
    }
}

#[test]
fn schedules_of_random_absences_are_valid_and_the_same_every_time() {
    for (seed, problem, budget, absences) in cases().chain(cases_with_lanes()) {
        let acts = Acts::of(&problem, &absences);
        let schedule = schedule(seed, &acts, &absences, budget);
        let peak = check(&problem, &schedule, budget).unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}"));
        assert!(peak <= budget, "seed {seed}");
        assert_eq!(check(&problem, &schedule, peak), Ok(peak), "seed {seed}");
        assert_eq!(self::schedule(seed, &acts, &absences, budget).steps, schedule.steps, "seed {seed}");
    }
}

#[test]
fn copies_out_may_stand_as_early_as_they_can_start() {
    let mut earlier = 0;
    for (seed, problem, budget, absences) in cases() {
        let acts = Acts::of(&problem, &absences);
        let eager = acts.eager();
        let sorted = |order: &[ActId]| {
            let mut order = order.to_vec();
            order.sort_unstable();
            order
        };
        assert_eq!(sorted(&eager), sorted(&acts.order), "seed {seed}");
        let (order, times) = justify(&mut Simulator::default(), &acts, &eager, budget, JUSTIFICATION_ROUNDS)
            .expect("it can be executed");
        check(&problem, &acts.schedule(&absences, &order, &times), budget)
            .unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}"));
        earlier += usize::from(eager != acts.order);
    }
    assert!(earlier > 0);
}

#[test]
fn the_checked_peak_is_that_of_the_simulated_blocks() {
    for (seed, problem, budget, absences) in cases().chain(cases_with_lanes()) {
        let acts = Acts::of(&problem, &absences);
        let mut simulator = Simulator::default();
        let (order, times) =
            justify(&mut simulator, &acts, &acts.order, budget, JUSTIFICATION_ROUNDS).unwrap();
        // For each block, when and at which position in the order it is allocated and freed.
        let mut blocks: PrimaryMap<_, _> =
            acts.block_bytes.values().map(|&bytes| ((u64::MAX, usize::MAX), (0, 0), bytes)).collect();
        for (position, &act) in order.iter().enumerate() {
            let end = if acts.what[act] == Act::End { times.makespan } else { times.end[act.index()] };
            for &block in acts.blocks.of(act) {
                let (start, last, _) = &mut blocks[block];
                *start = (*start).min((times.start[act.index()], position));
                *last = (*last).max((end, position));
            }
        }
        let at = |moment| {
            let there = blocks.values().filter(|(start, end, _)| *start <= moment && moment <= *end);
            there.map(|(_, _, bytes)| bytes).sum::<u64>()
        };
        let peak = blocks.values().map(|&(start, _, _)| at(start)).max().unwrap_or(0);
        let schedule = acts.schedule(&absences, &order, &times);
        assert_eq!(check(&problem, &schedule, budget), Ok(peak), "seed {seed}");
    }
}

#[test]
fn gaps_are_filled_by_what_can_be_replayed() {
    let mut earlier = 0;
    for (seed, problem, budget, absences) in cases().chain(cases_with_lanes()) {
        let acts = Acts::of(&problem, &absences);
        let mut simulator = Simulator::default();
        let reversed: Vec<ActId> = acts.order.iter().rev().copied().collect();
        for (way, mut order) in [(Direction::Forward, acts.order.clone()), (Direction::Backward, reversed)] {
            let plain = simulator.run(&acts, &order, budget, way).unwrap();
            let filled = simulator.fill(&acts, &order, budget, way).unwrap();
            // The last stands behind operators of other lanes that start later.
            let last = if problem.has_lanes() { order.len() - 1 } else { order.len() };
            let others = order[..last].to_vec();
            let later = |times: &Times, than: &Times| {
                others.iter().any(|act| times.start[act.index()] > than.start[act.index()])
            };
            assert!(!later(&filled, &plain), "seed {seed}, {way:?}");
            earlier += usize::from(filled != plain);
            let between = 1..order.len() - 1;
            order[between].sort_by_key(|act| filled.start[act.index()]);
            let again = simulator.run(&acts, &order, budget, way);
            let again =
                again.unwrap_or_else(|Stuck(act)| panic!("seed {seed}: {:?} is stuck", acts.what[act]));
            assert!(!later(&again, &filled), "seed {seed}, {way:?}");
        }
    }
    assert!(earlier > 500, "only {earlier}");
}

/// The schedule with one of its steps changed, or without it.
fn with(schedule: &Schedule, at: usize, step: Option<Step>) -> Schedule {
    let mut changed = schedule.clone();
    match step {
        Some(step) => changed.steps[at] = step,
        None => drop(changed.steps.remove(at)),
    }
    changed
}

#[test]
fn damaged_schedules_are_refused() {
    let mut tried = [0; 6];
    for (seed, problem, budget, absences) in cases() {
        let acts = Acts::of(&problem, &absences);
        let schedule = schedule(seed, &acts, &absences, budget);
        let mut refused = |kind: usize, damaged: Schedule, budget: u64| {
            tried[kind] += 1;
            let verdict = check(&problem, &damaged, budget);
            assert!(verdict.is_err(), "seed {seed}, damage {kind}: {damaged:?}\nof {schedule:?}");
        };
        let peak = check(&problem, &schedule, budget).unwrap();
        if peak > 0 {
            refused(0, schedule.clone(), peak - 1);
        }
        for (at, &step) in schedule.steps.iter().enumerate() {
            let Step { instruction, start, end } = step;
            let moved = |to: u64| Some(Step { start: to, end: to + (end - start), ..step });
            let earlier = |piece: PieceId| {
                schedule.steps[..at].iter().rev().find(|step| match step.instruction {
                    Instruction::Op(tick) => {
                        let op = &problem.ops[tick as usize];
                        let tensor = schedule.pieces[piece].tensor;
                        op.produces.contains(&tensor) || op.changes.contains(&tensor)
                    }
                    Instruction::Out(other) => other == piece && matches!(instruction, Instruction::In(_)),
                    Instruction::In(_) => false,
                })
            };
            // A copy that starts before its bytes are available.
            if let Instruction::Out(piece) | Instruction::In(piece) = instruction {
                if let Some(before) = earlier(piece).filter(|before| before.end > 0) {
                    refused(1, with(&schedule, at, moved(before.end - 1)), budget);
                }
                // Every copy is needed.
                refused(2, with(&schedule, at, None), budget);
            }
            // A step that is too short.
            if end > start {
                refused(3, with(&schedule, at, Some(Step { end: end - 1, ..step })), budget);
            }
            // A copy out exchanged with its copy in, and an operator with the next one.
            let other =
                schedule.steps[at + 1..].iter().position(|other| match (instruction, other.instruction) {
                    (Instruction::Out(a), Instruction::In(b)) => a == b,
                    (Instruction::Op(_), Instruction::Op(_)) => true,
                    _ => false,
                });
            if let Some(other) = other {
                let mut swapped = schedule.clone();
                swapped.steps[at].instruction = schedule.steps[at + 1 + other].instruction;
                swapped.steps[at + 1 + other].instruction = instruction;
                refused(4, swapped, budget);
            }
            // An operator that starts before the previous one has ended.
            if let (Instruction::Op(_), true) = (instruction, start > 0) {
                let before =
                    schedule.steps[..at].iter().rev().find(|s| matches!(s.instruction, Instruction::Op(_)));
                if let Some(before) = before.filter(|before| before.end > 0) {
                    refused(5, with(&schedule, at, moved(before.end - 1)), budget);
                }
            }
        }
    }
    assert!(tried.iter().all(|&cases| cases > 1000), "{tried:?}");
}

#[test]
fn lanes_run_beside_each_other_and_wait_for_what_they_need() {
    // A gather that the second operator needs, and a reduction of the first result, for which the last operator waits.
    let given = Tensor { given: true, swappable: false, ..small::produced(1) };
    let held = Tensor { swappable: false, ..small::produced(10) };
    let tensors = [given, small::produced(8), held, small::produced(3), small::produced(5)];
    let on_lane = |op: Operator| Operator { lane: 1, ..op };
    let mut problem = Problem { lanes: ["compute", "comm"].map(Lane::new).to_vec(), ..Problem::default() };
    problem.kinds = vec!["op".to_owned()];
    tensors.into_iter().for_each(|tensor| _ = problem.tensors.push(tensor));
    problem.ops = vec![
        small::op(Phase::Forward, 20, &[], &[2]),
        Operator { recomputable: true, ..on_lane(small::op(Phase::Forward, 30, &[0], &[1])) },
        on_lane(small::op(Phase::Forward, 40, &[2], &[3])),
        small::op(Phase::Forward, 50, &[1], &[4]),
        small::op(Phase::Forward, 10, &[2, 3, 4], &[]),
    ];
    assert_eq!(problem.check(), Ok(()));
    let acts = Acts::of(&problem, &Absences::default());
    let run = |budget| {
        let (order, times) = justify(&mut Simulator::default(), &acts, &acts.order, budget, 8).unwrap();
        let schedule = acts.schedule(&Absences::default(), &order, &times);
        (small::steps(&schedule), check(&problem, &schedule, budget).unwrap())
    };
    // The gather starts with the step; the reduction follows it on their lane, beside the operator that reads the gathered.
    let (steps, peak) = run(100);
    assert_eq!((steps.as_str(), peak), ("op1@0 op0@0 op3@30 op2@30 op4@80", 26));
    // The operand of the reduction is held until its wait.
    assert!(Simulator::default().run(&acts, &acts.order, 25, Direction::Forward).is_err());
}

#[test]
fn problems_whose_reductions_do_not_hold_their_operands_are_refused() {
    let mut tried = [0; 2];
    for (seed, problem, budget, absences) in cases_with_lanes() {
        let acts = Acts::of(&problem, &absences);
        let schedule = schedule(seed, &acts, &absences, budget);
        for (reduction, wait) in problem.reductions() {
            for &tensor in &problem.ops[reduction as usize].reads {
                let mut leaves = problem.clone();
                leaves.tensors[tensor].swappable = true;
                assert!(matches!(leaves.check(), Err(ProblemError::Leaves { .. })), "seed {seed}");
                assert!(matches!(check(&leaves, &schedule, budget), Err(Flaw::Held(_))), "seed {seed}");
                tried[0] += 1;
                let Some(wait) = wait else { continue };
                let reduction = &problem.ops[reduction as usize];
                if reduction.produces.iter().chain(&reduction.changes).any(|&result| result == tensor) {
                    continue;
                }
                let mut freed = problem.clone();
                let op = &mut freed.ops[wait as usize];
                op.reads.retain(|&t| t != tensor);
                op.changes.retain(|&t| t != tensor);
                assert!(matches!(freed.check(), Err(ProblemError::NotHeld { .. })), "seed {seed}");
                assert!(matches!(check(&freed, &schedule, budget), Err(Flaw::Held(_))), "seed {seed}");
                tried[1] += 1;
            }
        }
    }
    assert!(tried.iter().all(|&cases| cases > 300), "{tried:?}");
}

#[test]
fn schedules_whose_lanes_are_damaged_are_refused() {
    let mut tried = [0; 4];
    for (seed, problem, budget, absences) in cases_with_lanes() {
        let acts = Acts::of(&problem, &absences);
        let schedule = schedule(seed, &acts, &absences, budget);
        let mut refused = |kind: usize, damaged: Schedule| {
            tried[kind] += 1;
            let verdict = check(&problem, &damaged, budget);
            assert!(verdict.is_err(), "seed {seed}, damage {kind}: {damaged:?}\nof {schedule:?}");
        };
        let places: Vec<(usize, u32)> = (0..)
            .zip(&schedule.steps)
            .filter_map(|(at, step)| match step.instruction {
                Instruction::Op(tick) => Some((at, tick)),
                _ => None,
            })
            .collect();
        let lane = |tick: u32| problem.ops[tick as usize].lane;
        let mut waits = lanes::Waits::new(&problem);
        let waits: Vec<Vec<u32>> = (0..problem.ticks()).map(|tick| waits.of(tick)).collect();
        let place = |tick: u32| places.iter().find(|(_, other)| *other == tick).unwrap().0;
        for &(at, tick) in &places {
            let step = schedule.steps[at];
            if problem.ops[tick as usize].is_reduction() {
                // A reduction that runs once more, or never.
                let mut again = schedule.clone();
                again.steps.push(Step {
                    start: schedule.makespan(),
                    end: schedule.makespan() + step.end - step.start,
                    ..step
                });
                refused(0, again);
                refused(1, with(&schedule, at, None));
            }
            // A reduction that changes places with the next operator of its lane.
            let next = places.iter().find(|(_, other)| *other > tick && lane(*other) == lane(tick));
            if let Some(&(other, _)) = next.filter(|_| lane(tick) > 0) {
                let mut exchanged = schedule.clone();
                exchanged.steps[at].instruction = schedule.steps[other].instruction;
                exchanged.steps[other].instruction = step.instruction;
                refused(2, exchanged);
            }
            // An operator that starts before one of another lane has ended for which it waits.
            for &before in &waits[tick as usize] {
                let before = schedule.steps[place(before)];
                if before.end > before.start {
                    let start = before.end - 1;
                    refused(
                        3,
                        with(&schedule, at, Some(Step { start, end: start + step.end - step.start, ..step })),
                    );
                }
            }
        }
    }
    assert!(tried.iter().all(|&cases| cases > 500), "{tried:?}");
}

#[test]
fn edges_keep_lanes_valid_in_any_timing() {
    let mut other = 0;
    for (seed, problem, budget, absences) in cases_with_lanes().filter(|(seed, ..)| seed % 4 == 0) {
        let acts = Acts::of(&problem, &absences);
        let schedule = schedule(seed / 4, &acts, &absences, budget);
        let edges =
            edges(&problem, &schedule, Room::Counted(budget)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let replay = Replay::new(&problem, &schedule, &edges);
        assert!(replay.run(Noise::default(), 0).makespan() <= schedule.makespan(), "seed {seed}");
        let replayed = replay.run(Noise { operators_percent: 90, contention_percent: 50 }, seed);
        check_however_long(&problem, &replayed, budget).unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}"));
        other += usize::from(replayed.steps != schedule.steps);
        // The same schedule gives the same absences and the same order.
        let again = Acts::of(&problem, &Absences::of(&problem, &schedule));
        let order = again.order_of(&schedule).unwrap_or_else(|| panic!("seed {seed}: other copies"));
        let times = Simulator::default().run(&again, &order, budget, Direction::Forward).unwrap();
        assert_eq!(times.makespan, schedule.makespan(), "seed {seed}");
    }
    assert!(other > 300, "{other}");
}
