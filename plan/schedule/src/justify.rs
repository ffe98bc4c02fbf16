//! Justification: shifts activities to the right, then to the left, until the makespan no longer improves.

use cranelift_entity::EntityRef;

use super::{ActId, Acts, Direction, Simulator, Stuck, Times};

/// Maximum number of rounds of justification: a limit on the time, since two to four are usual.
pub const JUSTIFICATION_ROUNDS: usize = 8;

/// The order and its times after justification: the makespan is never longer than that of the given order.
///
/// In each round, first every activity starts as late as possible, seen from the end, so that copies in come as late as
/// possible. Then, in the resulting order, every activity starts as early as possible. Further rounds follow in which, in
/// both directions, an activity may also use memory that earlier activities in the order leave free before they start.
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
    improve(acts, &mut best, rounds, |order, way| simulator.fill(acts, order, budget, way));
    let (order, times) = best;
    let order = sorted(acts, &order, &times.start);
    let times = simulator.run(acts, &order, budget, Direction::Forward)?;
    Ok((order, times))
}

/// The first rounds of [`justify`] only, for searches.
///
/// # Errors
/// As for [`justify`].
pub fn justify_in_order(
    simulator: &mut Simulator,
    acts: &Acts,
    order: &[ActId],
    budget: u64,
    rounds: usize,
) -> Result<(Vec<ActId>, Times), Stuck> {
    let mut best = (order.to_vec(), simulator.run(acts, order, budget, Direction::Forward)?);
    improve(acts, &mut best, rounds, |order, way| simulator.run(acts, order, budget, way));
    Ok(best)
}

/// Runs rounds as long as they improve the makespan.
fn improve(
    acts: &Acts,
    best: &mut (Vec<ActId>, Times),
    rounds: usize,
    mut run: impl FnMut(&[ActId], Direction) -> Result<Times, Stuck>,
) {
    for _ in 0..rounds {
        let late = by_end_descending(acts, &best.0, &best.1);
        let Ok(from_the_end) = run(&late, Direction::Backward) else { break };
        let early = by_end_descending(acts, &late, &from_the_end);
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

/// The makespan after one round of [`justify`], or none if it exceeds the limit, or is likely to.
///
/// # Errors
/// As for [`justify`].
pub fn justified_within(
    simulator: &mut Simulator,
    acts: &Acts,
    order: &[ActId],
    budget: u64,
    limit: u64,
) -> Result<Option<u64>, Stuck> {
    if acts.least_nanos() > limit {
        return Ok(None);
    }
    let times = simulator.run(acts, order, budget, Direction::Forward)?;
    let makespan = times.makespan;
    if makespan == acts.least_nanos() {
        return Ok(Some(makespan));
    }
    let known = (makespan <= limit).then_some(makespan);
    let late = by_end_descending(acts, order, &times);
    // The shift to the left afterwards seldom gains more.
    let far = limit.saturating_add(limit / 64);
    let far = if makespan > far { far } else { u64::MAX };
    let Ok(from_the_end) = simulator.run_within(acts, &late, budget, Direction::Backward, far) else {
        return Ok(known);
    };
    let Some(from_the_end) = from_the_end else { return Ok(None) };
    let early = by_end_descending(acts, &late, &from_the_end);
    let left = simulator.run_within(acts, &early, budget, Direction::Forward, known.unwrap_or(limit));
    Ok(left.ok().flatten().map(|left| left.makespan).or(known))
}

/// Sorts by end, the last first; of equal ends, the last in the order first. `Act::Start` and `Act::End` change places.
fn by_end_descending(acts: &Acts, order: &[ActId], times: &Times) -> Vec<ActId> {
    let mut order = sorted(acts, order, &times.end);
    order.reverse();
    order
}

/// Sorts the activities by the given times, stably; the first and the last of the order keep their places. The times of one
/// engine must ascend in the order, as those of a simulation of it do, so that three sorted lists are merged.
fn sorted(acts: &Acts, order: &[ActId], time: &[u64]) -> Vec<ActId> {
    let [first, between @ .., last] = order else { return order.to_vec() };
    if acts.engines > 3 {
        let mut sorted = order.to_vec();
        sorted[1..order.len() - 1].sort_by_key(|act| time[act.index()]);
        return sorted;
    }
    // For each engine, the times and positions of its activities, with a sentinel at the end.
    let mut engines: [Vec<(u64, u32)>; 3] = Default::default();
    engines[0].reserve(order.len());
    for (place, act) in between.iter().enumerate() {
        engines[usize::from(acts.engine[act.index()])].push((time[act.index()], place as u32));
    }
    const END: (u64, u32) = (u64::MAX, u32::MAX);
    engines.iter_mut().for_each(|times| times.push(END));
    debug_assert!(engines.iter().all(|times| times.is_sorted()), "an engine does one after the other");
    let mut rest = engines.each_ref().map(|times| &times[..]);
    let mut sorted = Vec::with_capacity(order.len());
    sorted.push(*first);
    rest.sort_unstable_by_key(|times| times[0]);
    while sorted.len() <= between.len() {
        // Takes the activities of one engine up to the first one of another engine, which then becomes the first list.
        let [one, other, third] = &mut rest;
        while one[0] < other[0] {
            sorted.push(between[one[0].1 as usize]);
            *one = &one[1..];
        }
        std::mem::swap(one, other);
        if other[0] > third[0] {
            std::mem::swap(other, third);
        }
    }
    sorted.push(*last);
    sorted
}

#[cfg(test)]
mod tests {
    use lmsc_ir::rng::Rng;

    use super::*;
    use crate::random;

    #[test]
    fn three_sorted_lists_become_what_a_stable_sort_makes() {
        let mut moved = 0;
        for seed in 0..1000 {
            let problem = random::problem(&mut Rng::new(seed), 12);
            let uses = problem.uses();
            let (budget, peak) =
                (problem.floor().1, problem.live_by_moment(&uses).into_iter().max().unwrap());
            let absences = random::absences(&mut Rng::new(seed), &problem, budget, 1 + peak / 20);
            let acts = Acts::of(&problem, &absences);
            let times = Simulator::default().run(&acts, &acts.order, budget, Direction::Forward).unwrap();
            for time in [&times.start, &times.end] {
                let mut expected = acts.order.clone();
                let last = expected.len() - 1;
                expected[1..last].sort_by_key(|act| time[act.index()]);
                assert_eq!(sorted(&acts, &acts.order, time), expected, "seed {seed}");
                moved += usize::from(expected != acts.order);
            }
        }
        assert!(moved > 500, "{moved}");
    }
}
