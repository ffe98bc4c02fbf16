use lmsc_planners::{Parameters, planner};
use lmsc_testing::Source;
use lmsc_testing::random::problem;

use super::*;
use crate::service;

fn problem_of(seed: u64) -> Problem {
    problem(&mut lmsc_testing::Rng::new(seed), 12)
}

/// A plan of a random problem, with a budget between the floor and the peak.
fn saved(seed: u64, space: Space) -> Option<(Problem, Saved)> {
    let problem = problem_of(seed);
    let counted = match space {
        Space::Pages(page) => pages::in_pages(&problem, page),
        Space::Counted | Space::Arena => problem.clone(),
    };
    let budget = (counted.floor().1 + counted.live_bytes().into_iter().max().unwrap()) / 2;
    let request = Request { recompute: true, effort: 5, ..Request::new(&problem, budget) };
    let name = ["auto", "swap-only"][seed as usize % 2];
    let question = Question {
        planner: planner(name).unwrap(),
        parameters: Parameters::default(),
        request,
        space,
        or_pages: None,
        or_as_it_is: false,
        robust: None,
        host_bytes: u64::MAX,
    };
    let planned = service::plan(&question).ok()?;
    Some((problem.clone(), Saved::of(&question, planned, Vec::new(), Some("a".to_owned()))))
}

const SMALLEST: u64 = pages::SMALLEST;

const SPACES: [Space; 3] = [Space::Counted, Space::Arena, Space::Pages(SMALLEST)];

#[test]
fn written_plans_read_back_equal() {
    let mut read = 0;
    for seed in 0..40 {
        for space in SPACES {
            let Some((problem, saved)) = saved(seed, space) else { continue };
            let text = saved.to_json();
            let again = Saved::parse(&text, &problem, 256, Durations::AsSaved)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert_eq!(again.to_json(), text, "seed {seed}");
            assert_eq!(again.planned.peak, saved.planned.peak, "seed {seed}");
            assert_eq!(again.head, Head::parse(&text).unwrap());
            read += 1;
        }
    }
    assert!(read > 60, "only {read} plans");
}

#[test]
fn a_plan_of_another_problem_is_refused() {
    let (_, saved) = (0..).find_map(|seed| saved(seed, Space::Arena)).unwrap();
    let text = saved.to_json();
    let mut refused = 0;
    for seed in 1000..1100 {
        let other = problem_of(seed);
        refused += usize::from(Saved::parse(&text, &other, 256, Durations::AsSaved).is_err());
    }
    assert_eq!(refused, 100);
}

/// Reading a damaged plan never panics: it is refused, or the checkers accept the plan that was read.
#[test]
fn damaged_plans_are_refused_or_valid() {
    let mut random = lmsc_testing::Rng::new(7);
    let (mut refused, mut read) = (0, 0);
    for seed in 0..60 {
        let Some((problem, saved)) = saved(seed, SPACES[seed as usize % 3]) else { continue };
        let text = saved.to_json();
        let digits: Vec<usize> =
            text.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at).collect();
        for _ in 0..20 {
            let mut damaged = text.clone().into_bytes();
            damaged[digits[random.below(digits.len())]] = b'0' + random.below(10) as u8;
            match Saved::parse(&String::from_utf8(damaged).unwrap(), &problem, 256, Durations::AsSaved) {
                Ok(saved) => {
                    let Planned { plan, .. } = &saved.planned;
                    check(&plan.problem, &plan.schedule, saved.head.budget.unwrap()).unwrap();
                    read += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 80 && read > 8, "{refused} refused, {read} read");
}

/// The same for plans in which list entries are removed, doubled or exchanged.
#[test]
fn plans_with_damaged_lists_are_refused_or_valid() {
    let mut random = lmsc_testing::Rng::new(8);
    let (mut refused, mut read) = (0, 0);
    for seed in 0..60 {
        let Some((problem, saved)) = saved(seed, SPACES[seed as usize % 3]) else { continue };
        let whole: serde_json::Value = serde_json::from_str(&saved.to_json()).unwrap();
        for key in ["ops", "tensors", "pieces", "steps", "edges", "spots"] {
            for _ in 0..4 {
                let mut damaged = whole.clone();
                let Some(list) = damaged[key].as_array_mut().filter(|list| !list.is_empty()) else {
                    continue;
                };
                let (one, other) = (random.below(list.len()), random.below(list.len()));
                match random.below(3) {
                    0 => _ = list.remove(one),
                    1 => list.insert(other, list[one].clone()),
                    _ => list.swap(one, other),
                }
                match Saved::parse(&damaged.to_string(), &problem, 256, Durations::AsSaved) {
                    Ok(Saved { head, planned, .. }) => {
                        check(&planned.plan.problem, &planned.plan.schedule, head.budget.unwrap()).unwrap();
                        read += 1;
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(refused > 200 && read > 10, "{refused} refused, {read} read");
}

/// A plan without its edges gets others that suffice in every timing, and the same plan with its own edges keeps those.
#[test]
fn missing_edges_are_found_again() {
    let mut completed = 0;
    for seed in 0..40 {
        for space in [Space::Counted, Space::Pages(SMALLEST)] {
            let Some((problem, saved)) = saved(seed, space) else { continue };
            let mut text: serde_json::Value = serde_json::from_str(&saved.to_json()).unwrap();
            let edges = text["edges"].take();
            text["edges"] = serde_json::json!([]);
            let found =
                Saved::parse(&text.to_string(), &problem, 256, Durations::AsSaved).unwrap().planned.edges;
            assert_eq!(found.is_empty(), edges.as_array().is_none_or(Vec::is_empty), "seed {seed}");
            completed += usize::from(!found.is_empty());
        }
    }
    assert!(completed > 10, "{completed}");
}

#[test]
fn an_operator_that_may_not_run_again_is_found() {
    let mut found = 0;
    for seed in 0..80 {
        let Some((mut problem, saved)) = saved(seed, Space::Counted) else { continue };
        let origins = &saved.planned.plan.op_origin;
        let again = origins.iter().enumerate().find(|(at, op)| origins[..*at].contains(op));
        let Some((_, &again)) = again else { continue };
        problem.ops[again as usize].recomputable = false;
        let refused = Saved::parse(&saved.to_json(), &problem, 256, Durations::AsSaved).unwrap_err();
        assert!(matches!(refused, SavedError::Again(op) if op == again), "{refused}");
        found += 1;
    }
    assert!(found > 3, "{found}");
}

#[test]
fn a_plan_for_other_times_says_for_which_target() {
    let (mut problem, saved) = (0..).find_map(|seed| saved(seed, Space::Arena)).unwrap();
    let refused = |problem: &Problem| {
        Saved::parse(&saved.to_json(), problem, 256, Durations::AsSaved).unwrap_err().to_string()
    };
    // The sum is the same, but not the parts.
    let (one, other) = (problem.ops[0].nanos, problem.ops[1].nanos);
    (problem.ops[0].nanos, problem.ops[1].nanos) = (one + other, 0);
    assert!(refused(&problem).starts_with("it was made for other times (target `a`): operator 0 takes"));
    problem.ops[1].nanos = 1;
    assert!(refused(&problem).contains("it belongs to another target or profile"));
}

#[test]
fn a_plan_takes_the_times_of_another_target_where_asked() {
    let (mut retimed, mut faster) = (0, 0);
    for seed in 0..16 {
        for space in [Space::Counted, Space::Arena] {
            let Some((problem, saved)) = saved(seed, space) else { continue };
            let text = saved.to_json();
            let same = Saved::parse(&text, &problem, 256, Durations::Anew).unwrap();
            assert_eq!(same.planned.plan.schedule.steps, saved.planned.plan.schedule.steps);
            let mut other = problem.clone();
            for (number, op) in (0u64..).zip(&mut other.ops) {
                op.nanos = op.nanos * (1 + (number + seed) % 5) / 2;
            }
            other.link.in_bytes_per_second *= 2;
            let found = Saved::parse(&text, &other, 256, Durations::Anew)
                .unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert_eq!(found.saved_nanos, saved.planned.nanos());
            assert!(found.planned.peak <= saved.head.budget.unwrap());
            // As a plan of the other times it is valid without a change.
            let again = Saved { about: About::of(&other), ..found };
            Saved::parse(&again.to_json(), &other, 256, Durations::AsSaved).unwrap();
            retimed += 1;
            faster += usize::from(again.planned.nanos() < again.saved_nanos);
        }
    }
    assert!(retimed > 8 && 0 < faster, "{faster} of {retimed}");
}

#[test]
fn a_schedule_is_the_plan_that_it_was_written_from() {
    let (mut read, mut repeats) = (0, 0);
    for seed in 0..40 {
        for space in [Space::Counted, Space::Arena] {
            let Some((problem, saved)) = saved(seed, space) else { continue };
            let Planned { plan, spots, edges, peak, .. } = &saved.planned;
            let placed = (space == Space::Arena).then_some((&spots[..], &edges[..]));
            let text = schedule::to_json(plan, placed).to_string();
            let request = Request::new(&problem, saved.head.budget.unwrap());
            let again = schedule::parse(&text, &request).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert_eq!(schedule::to_json(&again.plan, placed).to_string(), text, "seed {seed}");
            assert_eq!((again.peak, again.nanos()), (*peak, saved.planned.nanos()), "seed {seed}");
            let tight = Request { budget: peak - 1, ..request };
            assert!(schedule::parse(&text, &tight).is_err(), "seed {seed}");
            read += 1;
            repeats += usize::from(plan.op_origin.len() > problem.ops.len());
        }
    }
    assert!(read > 40 && repeats > 3, "{read} read, {repeats} repeat operators");
}
