//! Copies moved in the order of a schedule, one at a time, as long as that does not take longer.
//!
//! A cover says what leaves, and justification when, each copy as early or as late as it may in an order that both keep. What
//! they cannot see is that another order would do better: that a variable had better come before an activation has left, or
//! an operator wait early, where the link has something to do, and not late.

use lmsc_ir::rng::{Rng, Source};

use crate::problem::Problem;
use crate::schedule::{
    Absences, ActId, Acts, Direction, ROUNDS, Schedule, Simulator, justify, justify_in_order,
};

/// So many activities are simulated for each percent of effort, of however many orders that is.
const WORK: u64 = 80_000;

/// A copy moves so many places at most.
const REACH: usize = 64;

/// The schedule, or a shorter one of the same copies.
pub(super) fn nudged(problem: &Problem, budget: u64, effort: u32, best: Schedule) -> Schedule {
    let absences = Absences::of(problem, &best);
    let acts = Acts::of(problem, &absences);
    let Some(mut order) = acts.order_of(&best) else { return best };
    let mut simulator = Simulator::default();
    let Ok(mut times) = simulator.run(&acts, &order, budget, Direction::Forward) else { return best };
    let mut rng = Rng::new(0);
    for _ in 0..WORK * u64::from(effort) / acts.len() as u64 {
        let from = 1 + rng.below(order.len() - 2);
        if !acts.is_copy(order[from]) {
            continue;
        }
        let moved = move_in(&acts, &order, from, &mut rng);
        let Ok(found) = justify_in_order(&mut simulator, &acts, &moved, budget, 1) else { continue };
        if found.1.makespan <= times.makespan {
            (order, times) = found;
        }
    }
    match justify(&mut simulator, &acts, &order, budget, ROUNDS) {
        Ok((order, times)) if times.makespan < best.makespan() => acts.schedule(&absences, &order, &times),
        _ => best,
    }
}

/// The order with the activity at this place in another one, after what it waits for and before what waits for it.
fn move_in(acts: &Acts, order: &[ActId], from: usize, rng: &mut Rng) -> Vec<ActId> {
    let act = order[from];
    let reach = 1 + rng.below(REACH);
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
    use super::*;
    use crate::planners::cover::Manner;
    use crate::planners::optimal::covered;
    use crate::random;
    use crate::schedule::check;

    #[test]
    fn what_is_nudged_is_a_plan_and_no_slower() {
        let (mut cases, mut faster) = (0, 0);
        for seed in 0..200 {
            let mut u = Rng::new(seed);
            let ops = 8 + u.below(24);
            let problem = random::problem(&mut u, ops);
            let (floor, peak) = (problem.floor().1, problem.live_bytes().into_iter().max().unwrap());
            let budget = floor + (peak - floor) * u.below(6) as u64 / 8;
            let Ok(before) = covered(&problem, budget, 1 + peak / 20, Manner::Ready) else { continue };
            let after = nudged(&problem, budget, 2, before.clone());
            check(&problem, &after, budget).unwrap_or_else(|flaw| panic!("seed {seed}: {flaw:?}"));
            assert!(after.makespan() <= before.makespan(), "seed {seed}");
            let again = nudged(&problem, budget, 2, before.clone());
            assert_eq!(again.steps, after.steps, "seed {seed}");
            cases += 1;
            faster += usize::from(after.makespan() < before.makespan());
        }
        assert!(cases > 100 && faster > 20, "{faster} of {cases}");
    }
}
