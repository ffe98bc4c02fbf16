//! Pushing activities to the right, then to the left, until nothing gains.

use cranelift_entity::EntityRef;

use super::{ActId, Acts, Direction, Simulator, Stuck, Times};

/// Rounds after which nothing gains any more; two to four are usual.
pub const ROUNDS: usize = 8;

/// The order and its times after justification: never a longer makespan than the order given.
///
/// A round: seen from the end, everything as late as it may start: copies in come as late as possible. Then, in the order
/// that this gave, everything as early as it may. Then rounds in which, both ways, an activity also uses memory that those
/// before it in the order leave over before they start.
///
/// # Errors
/// [`Stuck`] if the order given does not fit the budget.
///
/// # Source
/// Forward-backward improvement of resource-constrained project schedules: Li and Willis, *An iterative scheduling
/// technique for resource-constrained project scheduling*, EJOR 56(3), 1992.
pub fn justify(
    simulator: &mut Simulator,
    acts: &Acts,
    order: &[ActId],
    budget: u64,
    rounds: usize,
) -> Result<(Vec<ActId>, Times), Stuck> {
    let mut best = justify_in_order(simulator, acts, order, budget, rounds)?;
    improve(&mut best, rounds, |order, way| simulator.fill(acts, order, budget, way));
    let (mut order, times) = best;
    let between = 1..order.len().saturating_sub(1).max(1);
    order[between].sort_by_key(|act| times.start[act.index()]);
    let times = simulator.run(acts, &order, budget, Direction::Forward)?;
    Ok((order, times))
}

/// [`justify`] with its first rounds only, for searches.
///
/// # Errors
/// As there.
pub(crate) fn justify_in_order(
    simulator: &mut Simulator,
    acts: &Acts,
    order: &[ActId],
    budget: u64,
    rounds: usize,
) -> Result<(Vec<ActId>, Times), Stuck> {
    let mut best = (order.to_vec(), simulator.run(acts, order, budget, Direction::Forward)?);
    improve(&mut best, rounds, |order, way| simulator.run(acts, order, budget, way));
    Ok(best)
}

/// Rounds as long as they gain.
fn improve(
    best: &mut (Vec<ActId>, Times),
    rounds: usize,
    mut run: impl FnMut(&[ActId], Direction) -> Result<Times, Stuck>,
) {
    for _ in 0..rounds {
        let late = by_end_descending(&best.0, &best.1);
        let Ok(from_the_end) = run(&late, Direction::Backward) else { break };
        let early = by_end_descending(&late, &from_the_end);
        let Ok(times) = run(&early, Direction::Forward) else { break };
        let gained = times.makespan < best.1.makespan;
        if times.makespan <= best.1.makespan {
            *best = (early, times);
        }
        if !gained {
            break;
        }
    }
}

/// The makespan after one round of [`justify`], or none if it is far above a limit.
///
/// # Errors
/// As of [`justify`].
pub(crate) fn justified_within(
    simulator: &mut Simulator,
    acts: &Acts,
    order: &[ActId],
    budget: u64,
    limit: u64,
) -> Result<Option<u64>, Stuck> {
    let times = simulator.run(acts, order, budget, Direction::Forward)?;
    let late = by_end_descending(order, &times);
    let Ok(from_the_end) = simulator.run(acts, &late, budget, Direction::Backward) else {
        return Ok(Some(times.makespan));
    };
    // Pushing to the left afterwards seldom gains as much.
    if times.makespan.min(from_the_end.makespan) > limit.saturating_add(limit / 64) {
        return Ok(None);
    }
    let early = by_end_descending(&late, &from_the_end);
    let left = simulator.run(acts, &early, budget, Direction::Forward);
    Ok(Some(left.map_or(times.makespan, |left| left.makespan.min(times.makespan))))
}

/// The last to end first; of several at once, the last in the order first. What is before everything and after
/// everything trade places.
fn by_end_descending(order: &[ActId], times: &Times) -> Vec<ActId> {
    let mut reversed: Vec<ActId> = order.iter().rev().copied().collect();
    let between = 1..reversed.len().saturating_sub(1).max(1);
    reversed[between].sort_by_key(|act| std::cmp::Reverse(times.end[act.index()]));
    reversed
}
