//! Plans that lose little where operators or copies take other times than planned.

use lmsc_schedule::Request;
use lmsc_schedule::problem::{Link, Problem};

use crate::saved::{Durations, checked};
use crate::service::{self, Planned, Question, Unplanned};

/// By how much a plan is longer than the best one known, where times are off by some percent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Robustness {
    /// Operators and copies are off by this many percent, in either direction.
    pub percent: u32,
    /// Of the chosen plan: the worst ratio of its makespan to that of the best known plan for the same times, less 1.
    pub loss: f64,
    /// The same of the plan that is fastest in the times of the problem.
    pub loss_of_fastest: f64,
    /// The makespan of the chosen plan in the times of the problem, divided by that of the fastest one, less 1.
    pub cost: f64,
}

/// Of plans for the times of the problem and for times that are off by `percent`, the one that loses least in the worst case: with
/// all operators faster or slower, or the link. A plan keeps its order and its edges when times change, and is timed anew.
///
/// A uniform error of all operators costs much; errors that differ from operator to operator cancel out (`lmsc plan --noise`).
///
/// # Errors
/// [`Unplanned`], if there is no plan for the times of the problem.
pub fn plan(question: &Question<'_>, percent: u32) -> Result<(Planned, Robustness), Unplanned> {
    let question = &Question { robust: None, ..*question };
    let problem = question.request.problem;
    let fastest = service::plan(question)?;
    let others = off(problem, percent.min(MOST));
    let mut candidates = vec![fastest];
    for times in &others {
        let request = Request { problem: times, ..question.request };
        candidates.extend(service::plan(&Question { request, ..*question }).ok().and_then(|planned| {
            let counted_nanos = planned.counted_nanos;
            Some(Planned { counted_nanos, ..in_times(&planned, problem, question)? })
        }));
    }
    // For each candidate, its makespan in each of the times.
    let makespans: Vec<Vec<Option<u64>>> = candidates
        .iter()
        .map(|planned| {
            let mut all = vec![Some(planned.nanos())];
            all.extend(others.iter().map(|times| Some(in_times(planned, times, question)?.nanos())));
            all
        })
        .collect();
    let best: Vec<u64> = (0..=others.len())
        .map(|times| makespans.iter().filter_map(|of| of[times]).min().unwrap_or(u64::MAX).max(1))
        .collect();
    let loss = |candidate: usize| {
        let ratio =
            |(made, best): (&Option<u64>, &u64)| made.map_or(f64::INFINITY, |it| it as f64 / *best as f64);
        makespans[candidate].iter().zip(&best).map(ratio).fold(1.0, f64::max) - 1.0
    };
    let nominal = |candidate: usize| candidates[candidate].nanos();
    let order = |&a: &usize, &b: &usize| loss(a).total_cmp(&loss(b)).then(nominal(a).cmp(&nominal(b)));
    let chosen = (0..candidates.len()).min_by(order).unwrap_or(0);
    let shortest = (0..candidates.len()).min_by_key(|&candidate| nominal(candidate)).unwrap_or(0);
    let robustness = Robustness {
        percent,
        loss: loss(chosen),
        loss_of_fastest: loss(shortest),
        cost: nominal(chosen) as f64 / nominal(shortest).max(1) as f64 - 1.0,
    };
    Ok((candidates.swap_remove(chosen), robustness))
}

/// Times off by more than this are no error of a model.
const MOST: u32 = 90;

/// The problem with all operators faster and slower by this many percent, and with a slower and a faster link.
fn off(problem: &Problem, percent: u32) -> [Problem; 4] {
    let (less, more) = (u64::from(100 - percent), u64::from(100 + percent));
    let operators = |share: u64| {
        let mut other = problem.clone();
        for op in &mut other.ops {
            op.nanos = (u128::from(op.nanos) * u128::from(share) / 100) as u64;
        }
        other
    };
    let link = |share: u64| {
        let rate = |rate: u64| ((u128::from(rate) * u128::from(share) / 100) as u64).max(1);
        let Link { out_bytes_per_second, in_bytes_per_second, .. } = problem.link;
        let mut other = problem.clone();
        other.link = Link {
            out_bytes_per_second: rate(out_bytes_per_second),
            in_bytes_per_second: rate(in_bytes_per_second),
            ..problem.link
        };
        other
    };
    [operators(less), operators(more), link(less), link(more)]
}

/// The plan in the times of this problem, which differs in times alone; none if it is not valid there.
fn in_times(planned: &Planned, problem: &Problem, question: &Question<'_>) -> Option<Planned> {
    let mut plan = planned.plan.clone();
    plan.problem.link = problem.link;
    for (run, &origin) in plan.problem.ops.iter_mut().zip(&plan.op_origin) {
        run.nanos = problem.ops[origin as usize].nanos;
    }
    let Planned { edges, spots, space, .. } = planned.clone();
    let request = Request { problem, ..question.request };
    checked(plan, edges, spots, space, &request, Durations::Anew).ok()
}

#[cfg(test)]
mod tests {
    use lmsc_planners::{Parameters, planner};
    use lmsc_testing::random;

    use super::*;
    use crate::service::Space;

    #[test]
    fn the_chosen_plan_loses_no_more_than_the_fastest() {
        let (mut plans, mut others) = (0, 0);
        for (seed, space) in (0..40).zip([Space::Counted, Space::Arena].into_iter().cycle()) {
            let problem = random::problem(&mut lmsc_testing::Rng::new(seed), 12);
            let budget = (problem.floor().1 + problem.live_bytes().into_iter().max().unwrap()) / 2;
            let request = Request { recompute: true, effort: 5, ..Request::new(&problem, budget) };
            let question = Question {
                planner: planner("auto").unwrap(),
                parameters: Parameters::default(),
                request,
                space,
                or_pages: None,
                or_as_it_is: false,
                host_bytes: u64::MAX,
                robust: Some(20),
            };
            let Ok((planned, found)) = plan(&question, 20) else { continue };
            assert!(found.loss <= found.loss_of_fastest && found.loss >= 0.0, "seed {seed}: {found:?}");
            assert!(found.cost >= 0.0 && found.cost <= found.loss + 1e-9, "seed {seed}: {found:?}");
            assert_eq!(service::plan(&question).unwrap().nanos(), planned.nanos(), "seed {seed}");
            let peak = lmsc_schedule::check(&planned.plan.problem, &planned.plan.schedule, budget).unwrap();
            assert!(peak <= budget && planned.space == space, "seed {seed}");
            plans += 1;
            others += u32::from(found.loss < found.loss_of_fastest);
        }
        assert!(plans > 20 && others > 0, "{plans} plans, {others} other than the fastest");
    }
}
