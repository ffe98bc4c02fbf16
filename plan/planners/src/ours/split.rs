//! Splits pieces on the critical path.
//!
//! A large copy pays the latency only once, but it can be swapped in only when there is memory for all of it, and its
//! swap-out frees memory only at its end. So pieces are large except on the critical path.

use lmsc_schedule::problem::Problem;
use lmsc_schedule::tuned::Tunable;
use lmsc_schedule::{Absences, Instruction, PieceId, Schedule, Step};

use crate::ours::justified::schedule;
use crate::ours::mechanisms;
use crate::ours::swap_set::travels_whole;

/// Number of parts into which a round splits a piece.
const PARTS: Tunable<u64> = Tunable::new(4);

/// The schedule, or a shorter one in which pieces of more than `smallest` bytes on the critical path are split. A variable
/// that is resident between steps is copied whole.
pub(super) fn split(problem: &Problem, budget: u64, smallest: u64, mut best: Schedule) -> Schedule {
    let uses = problem.uses();
    let mut absences = Absences::of(problem, &best);
    while mechanisms::SPLIT.is_on() {
        let mut pieces = waits(&best);
        pieces.retain(|&id| {
            let piece = &absences.pieces[id];
            piece.len() > smallest && !travels_whole(problem, piece.tensor, absences.windows[id].iter())
        });
        if pieces.is_empty() {
            break;
        }
        pieces.into_iter().for_each(|piece| absences.split(piece, PARTS.get(), (smallest, problem.grain)));
        match schedule(problem, &uses, budget, &absences) {
            Ok(found) if found.makespan() < best.makespan() => best = found,
            _ => break,
        }
    }
    best
}

/// The pieces on the critical path: copies in that wait for memory, and copies out at whose end another step starts.
fn waits(schedule: &Schedule) -> Vec<PieceId> {
    let steps = &schedule.steps;
    let mut last = [None; 3];
    let before: Vec<Option<usize>> =
        (0..steps.len()).map(|at| last[engine(&steps[at])].replace(at)).collect();
    let mut ends: Vec<usize> = (0..steps.len()).collect();
    ends.sort_by_key(|&at| steps[at].end);
    let mut pieces = Vec::new();
    let mut at = ends.last().copied();
    while let Some(waiting) = at {
        let Step { instruction, start, .. } = steps[waiting];
        at = before[waiting].filter(|&before| steps[before].end == start);
        if at.is_some() {
            continue;
        }
        // The step does not wait for its engine, but for a step that ended at its start, the last user or the producer of a
        // resource.
        let ended = ends[..ends.partition_point(|&at| steps[at].end <= start)].iter().rev().copied();
        at = ended.take_while(|&at| steps[at].end == start).find(|&at| steps[at].start < start);
        pieces.extend(match instruction {
            Instruction::In(piece) => Some(piece),
            _ => None,
        });
        pieces.extend(match at.map(|at| steps[at].instruction) {
            Some(Instruction::Out(piece)) => Some(piece),
            _ => None,
        });
    }
    pieces.sort_unstable();
    pieces.dedup();
    pieces
}

fn engine(step: &Step) -> usize {
    match step.instruction {
        Instruction::Op(_) => 0,
        Instruction::Out(_) => 1,
        Instruction::In(_) => 2,
    }
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Phase::{Backward, Forward};
    use lmsc_schedule::check;
    use lmsc_testing::small::{op, problem, produced};
    use lmsc_testing::{Rng, Source, random};

    use super::*;
    use crate::ours::swap_only;
    use crate::ours::swap_set::Manner;

    #[test]
    fn nothing_waits_for_more_than_it_needs_to_leave() {
        // Tensor 0 is swapped out after the first operator. Beside the second operator, 201 of its 400 bytes may still be
        // resident.
        let tensors = [produced(400), produced(400), produced(200), produced(1)];
        let ops = [
            op(Forward, 100, &[], &[0]),
            op(Forward, 400, &[], &[1]),
            op(Backward, 100, &[1], &[2]),
            op(Backward, 400, &[2], &[3]),
            op(Backward, 100, &[0, 3], &[]),
        ];
        let mut problem = problem(&tensors, &ops);
        problem.link.in_bytes_per_second = 1_000_000_000;
        problem.link.out_bytes_per_second = 1_000_000_000;
        let budget = 601;
        let whole = swap_only::covered(&problem, budget, u64::MAX, Manner::Gone).unwrap();
        let parts = split(&problem, budget, 1, whole.clone());
        check(&problem, &parts, budget).unwrap();
        // Pieces end at multiples of 256 bytes: 144 ns of copying need not be waited for.
        assert_eq!((whole.makespan(), parts.makespan()), (1500, 1356));
    }

    #[test]
    fn schedules_of_split_pieces_are_valid_and_not_longer() {
        let mut shorter = 0;
        for seed in 0..1000 {
            let mut u = Rng::new(seed);
            let ops = 1 + u.below(30);
            let problem = random::problem(&mut u, ops);
            let (floor, live) = (problem.floor().1, problem.live_by_moment(&problem.uses()));
            let peak = live.into_iter().max().unwrap();
            let budget = floor + (peak - floor) * u.below(4) as u64 / 4;
            let whole = swap_only::covered(&problem, budget, u64::MAX, Manner::Gone).unwrap();
            let parts = split(&problem, budget, 1 + peak / 50, whole.clone());
            check(&problem, &parts, budget).unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}"));
            assert!(parts.makespan() <= whole.makespan(), "seed {seed}");
            shorter += usize::from(parts.makespan() < whole.makespan());
        }
        assert!(shorter > 50, "only {shorter}");
    }
}
