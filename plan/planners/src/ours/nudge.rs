//! Local search: moves copies in the order of a schedule, one at a time, as long as the makespan does not grow, and halves
//! the pieces on the critical path.
//!
//! An eviction set determines the swapped pieces, and justification their times: each copy as early or as late as possible in
//! an order that both keep. Neither finds a better order, such as one in which a variable is swapped in before an activation
//! is swapped out, or in which an operator waits early, while the link is busy, and not late.

use lmsc_ir::rng::{Rng, Source};
use lmsc_schedule::problem::Problem;
use lmsc_schedule::tuned::Tunable;
use lmsc_schedule::{
    Absences, ActId, Acts, Direction, IDLE_ROUNDS, Instruction, JUSTIFICATION_ROUNDS, Piece, Request,
    Schedule, Simulator, Step, Times, justify, justify_times,
};

use crate::ours::justified::SMALLEST_PIECE;
use crate::ours::split::waits;
use crate::ours::swap_set::travels_whole;

/// Maximum number of rounds of local search, each with more and smaller pieces: a limit on the time, since half and double gave
/// the same plans.
const LOCAL_SEARCH_ROUNDS: u64 = 12;

/// Maximum number of activities simulated per round, for each percent of effort: of a long order, fewer changes are
/// tried. A limit on the time: half and double gave the same plans.
const SIMULATED_ACTIVITIES: u64 = 80_000;

/// Changes tried per round, at most, for each percent of effort: one part in this many of all pairs of an activity
/// and a position. In a short order, the changes that help are found soon.
const PAIRS_SHARE: Tunable<u64> = Tunable::new(800);

/// Maximum number of positions by which a copy moves.
const REACH: Tunable<usize> = Tunable::new(64);

/// The schedule or a shorter one; the search stops at a makespan of `enough`.
///
/// The two halves of a piece are then moved independently.
pub(super) fn nudged(problem: &Problem, request: &Request, enough: u64, schedule: Schedule) -> Schedule {
    let Request { budget, effort, .. } = *request;
    let mut best = schedule.clone();
    let (mut halved, mut in_vain) = (schedule, 0);
    for seed in 0..LOCAL_SEARCH_ROUNDS {
        if best.makespan() <= enough || in_vain == IDLE_ROUNDS.get() || request.is_ended() {
            break;
        }
        let Some(walk) = Walk::new(problem, budget, &halved) else { break };
        let found = walk.nudged(seed, effort, enough);
        in_vain += 1;
        if found.makespan() < best.makespan() {
            best.clone_from(&found);
            in_vain = 0;
        }
        halved = halves(problem, &found);
    }
    best
}

/// The schedule with every piece on the critical path split in two, the halves copied one after the other.
fn halves(problem: &Problem, schedule: &Schedule) -> Schedule {
    let mut halved = schedule.clone();
    let absences = Absences::of(problem, schedule);
    for id in waits(schedule) {
        let Piece { tensor, ref bytes } = halved.pieces[id];
        let (start, end) = (bytes.start, bytes.end);
        let middle = start.midpoint(end) / problem.grain * problem.grain;
        let smallest = SMALLEST_PIECE.get().max(2 * problem.grain - 1);
        if end - start <= smallest || travels_whole(problem, tensor, absences.windows[id].iter()) {
            continue;
        }
        halved.pieces[id].bytes = start..middle;
        let other = halved.pieces.push(Piece { tensor, bytes: middle..end });
        let both = |step: Step| {
            let also = match step.instruction {
                Instruction::Out(piece) if piece == id => Some(Instruction::Out(other)),
                Instruction::In(piece) if piece == id => Some(Instruction::In(other)),
                _ => None,
            };
            [step].into_iter().chain(also.map(|instruction| Step { instruction, ..step }))
        };
        halved.steps = halved.steps.into_iter().flat_map(both).collect();
    }
    halved
}

/// Local search over orders of the same copies.
struct Walk {
    budget: u64,
    absences: Absences,
    acts: Acts,
    order: Vec<ActId>,
    times: Times,
    simulator: Simulator,
}

impl Walk {
    /// A search that starts from the order of a schedule; none if that order does not fit.
    fn new(problem: &Problem, budget: u64, schedule: &Schedule) -> Option<Walk> {
        let absences = Absences::of(problem, schedule);
        let acts = Acts::of(problem, &absences);
        let mut simulator = Simulator::default();
        let order = acts.order_of(schedule)?;
        let (order, times) = justify(&mut simulator, &acts, &order, budget, JUSTIFICATION_ROUNDS).ok()?;
        Some(Walk { budget, absences, acts, order, times, simulator })
    }

    /// The schedule found by moving copies as long as the makespan does not grow.
    fn nudged(mut self, seed: u64, effort: u32, enough: u64) -> Schedule {
        let mut rng = Rng::new(seed);
        let (count, percent) = (self.acts.len() as u64, u64::from(effort));
        let changes = (percent * SIMULATED_ACTIVITIES / count)
            .min(percent.saturating_mul(count * count) / PAIRS_SHARE.get());
        for _ in 0..changes {
            if self.times.makespan <= enough {
                break;
            }
            let from = 1 + rng.below(self.order.len() - 2);
            if self.acts.is_copy(self.order[from]) {
                self.try_order(move_in(&self.acts, &self.order, from, &mut rng));
            }
        }
        let Walk { budget, absences, acts, order, times, mut simulator } = self;
        let (order, times) = match justify(&mut simulator, &acts, &order, budget, JUSTIFICATION_ROUNDS) {
            Ok(found) if found.1.makespan < times.makespan => found,
            _ => (order, times),
        };
        acts.schedule(&absences, &order, &times)
    }

    /// Accepts the order, justified, if that changes the times and does not lengthen the makespan.
    fn try_order(&mut self, order: Vec<ActId>) {
        let Walk { budget, acts, times, simulator, .. } = self;
        let Ok(found) = simulator.run(acts, &order, *budget, Direction::Forward) else { return };
        if found == *times {
            return;
        }
        let found = justify_times(simulator, acts, (order, found), *budget, 1);
        if found.1.makespan <= times.makespan {
            (self.order, self.times) = found;
        }
    }
}

/// The order with the activity at `from` moved to another position, after the activities that it waits for and before those
/// that wait for it.
fn move_in(acts: &Acts, order: &[ActId], from: usize, rng: &mut Rng) -> Vec<ActId> {
    let act = order[from];
    let reach = 1 + rng.below(REACH.get());
    let least = from.saturating_sub(reach).max(1);
    let most = (from + reach).min(order.len() - 2);
    let after = (least..from).rev().find(|&at| acts.waits_for(act, order[at])).map_or(least, |at| at + 1);
    let before = (from + 1..=most).find(|&at| acts.waits_for(order[at], act)).map_or(most, |at| at - 1);
    let mut moved = order.to_vec();
    moved.remove(from);
    moved.insert(after + rng.below(before - after + 1), act);
    moved
}

#[cfg(test)]
mod tests {
    use lmsc_schedule::check;
    use lmsc_testing::random;

    use super::*;
    use crate::ours::swap_only::covered;
    use crate::ours::swap_set::Manner;

    #[test]
    fn nudged_schedules_are_valid_and_no_slower() {
        let (mut cases, mut faster) = (0, 0);
        for seed in 0..200 {
            let mut u = Rng::new(seed);
            let ops = 8 + u.below(24);
            let problem = random::problem(&mut u, ops);
            let (floor, peak) = (problem.floor().1, problem.live_bytes().into_iter().max().unwrap());
            let budget = floor + (peak - floor) * u.below(6) as u64 / 8;
            let Ok(before) = covered(&problem, budget, 1 + peak / 20, Manner::Ready) else { continue };
            let after = nudged(&problem, &Request::new(&problem, budget), 0, before.clone());
            check(&problem, &after, budget).unwrap_or_else(|flaw| panic!("seed {seed}: {flaw:?}"));
            assert!(after.makespan() <= before.makespan(), "seed {seed}");
            let again = nudged(&problem, &Request::new(&problem, budget), 0, before.clone());
            assert_eq!(again.steps, after.steps, "seed {seed}");
            cases += 1;
            faster += usize::from(after.makespan() < before.makespan());
        }
        assert!(cases > 100 && faster > 20, "{faster} of {cases}");
    }
}
