use cranelift_entity::EntityRef;

use super::*;
use lmsc_ir::rng::{Rng, Source};

use crate::random;

/// Random problems with budgets from the floor to the peak, where no swaps are needed, and absences that fit each.
fn cases() -> impl Iterator<Item = (u64, Problem, u64, Absences)> {
    (0..4000u64).map(|seed| {
        let mut u = Rng::new(seed);
        let ops = 1 + u.below(if seed % 20 == 0 { 60 } else { 12 });
        let problem = random::problem(&mut u, ops);
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
    for (seed, problem, budget, absences) in cases() {
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
    for (seed, problem, budget, absences) in cases() {
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
    for (seed, problem, budget, absences) in cases() {
        let acts = Acts::of(&problem, &absences);
        let mut simulator = Simulator::default();
        let reversed: Vec<ActId> = acts.order.iter().rev().copied().collect();
        for (way, mut order) in [(Direction::Forward, acts.order.clone()), (Direction::Backward, reversed)] {
            let plain = simulator.run(&acts, &order, budget, way).unwrap();
            let filled = simulator.fill(&acts, &order, budget, way).unwrap();
            let later = |times: &Times, than: &Times| times.start.iter().zip(&than.start).any(|(a, b)| a > b);
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
