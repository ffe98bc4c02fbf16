use cranelift_entity::SecondaryMap;
use lmsc_ir::Phase;
use lmsc_planners::ours::swap_only;
use lmsc_schedule::problem::{Duplex, Operator, Problem, TensorId};
use lmsc_schedule::{Granularity, Request, check};
use lmsc_testing::small::{op, problem, produced};
use lmsc_testing::{Rng, Source, exact, random};

use super::*;

/// Random problems of at most `ops` operators, and budgets from below the floor for swapping up to the peak.
fn small(count: u64, ops: usize) -> impl Iterator<Item = (u64, Problem, u64)> {
    let problems = (0..count).map(move |seed| {
        let mut u = Rng::new(seed);
        let ops = 1 + u.below(ops);
        let problem = random::problem(&mut u, ops);
        let floor = problem.floor().1;
        let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap();
        let budget = match u.below(9) {
            0 => floor - floor / 4,
            step => floor + (peak - floor) * (step as u64 - 1) / 8,
        };
        (seed, problem, budget)
    });
    problems.filter(|(_, problem, _)| (1..=6).contains(&problem.windows(&problem.uses()).len()))
}

/// The smallest makespans found of plans that only swap: whole tensors, then also ranges.
fn fastest(problem: &Problem, budget: u64) -> Option<(u64, u64)> {
    let request = Request::new(problem, budget);
    let whole = match problem.windows(&problem.uses()).len() {
        ..=6 => exact::plan(&request).ok()?,
        _ => swap_only::plan(&Request { granularity: Granularity::Whole, effort: 0, ..request }).ok()?,
    };
    let ranges = swap_only::plan(&request).ok()?;
    for plan in [&whole, &ranges] {
        check(&plan.problem, &plan.schedule, budget).unwrap();
    }
    let whole = whole.schedule.makespan();
    Some((whole, whole.min(ranges.schedule.makespan())))
}

/// The problem with repeated operators, each (second) before an operator (first), in order.
///
/// The results of such an operator replace its outputs from there on. None if an input has changed.
fn with_again(problem: &Problem, again: &[(usize, usize)]) -> Option<Problem> {
    let mut result = Problem { ops: Vec::new(), kinds: problem.kinds.clone(), ..problem.clone() };
    let mut now: SecondaryMap<TensorId, Option<TensorId>> = SecondaryMap::new();
    let mut changed: SecondaryMap<TensorId, bool> = SecondaryMap::new();
    for (tick, op) in problem.ops.iter().enumerate() {
        let current = |now: &SecondaryMap<TensorId, Option<TensorId>>, t: TensorId| now[t].unwrap_or(t);
        for &(_, repeated) in again.iter().filter(|(before, _)| *before == tick) {
            let op = &problem.ops[repeated];
            if op.reads_again().any(|t| changed[t]) {
                return None;
            }
            let reads: Vec<TensorId> = op.reads_again().map(|t| current(&now, t)).collect();
            let mut produces = Vec::new();
            for &tensor in &op.produces {
                let mut facts = problem.tensors[tensor];
                facts.kept &= !changed[tensor];
                if facts.kept {
                    result.tensors[current(&now, tensor)].kept = false;
                }
                let new = result.tensors.push(facts);
                produces.push(new);
                if !changed[tensor] {
                    now[tensor] = Some(new);
                }
            }
            result.ops.push(lmsc_schedule::problem::Operator { reads, produces, changes: Vec::new(), ..*op });
        }
        let rename = |tensors: &[TensorId]| tensors.iter().map(|&t| current(&now, t)).collect();
        let (reads, changes) = (rename(&op.reads), rename(&op.changes));
        op.changes.iter().for_each(|&t| changed[t] = true);
        let produces = op.produces.clone();
        result.ops.push(lmsc_schedule::problem::Operator { reads, produces, changes, ..*op });
    }
    assert_eq!(result.check(), Ok(()));
    Some(result)
}

/// Every choice of at most two repeated operators, the second after the first where both are at one place.
fn choices(problem: &Problem) -> Vec<Vec<(usize, usize)>> {
    let ops = problem.ops.len();
    let one = (1..ops).flat_map(|before| (0..before).map(move |repeated| (before, repeated)));
    let one: Vec<_> = one.filter(|&(_, repeated)| problem.ops[repeated].recomputable).collect();
    let two = one.iter().flat_map(|&a| one.iter().filter(move |b| b.0 >= a.0).map(move |&b| vec![a, b]));
    [vec![]].into_iter().chain(one.iter().map(|&a| vec![a])).chain(two).collect()
}

#[test]
fn no_bound_on_swapping_exceeds_what_is_possible() {
    let (mut tight, mut cases, mut more_around, mut more_prices) = (0, 0, 0, 0);
    for (seed, problem, budget) in small(6000, 8) {
        let Some((best_whole, best)) = fastest(&problem, budget) else { continue };
        let (paper, swap, whole) = (paper(&problem, budget), swap(&problem, budget), whole(&problem, budget));
        assert!(paper.nanos <= swap.nanos && swap.nanos <= whole.nanos, "seed {seed}");
        for (certificate, possible) in [(&paper, best), (&swap, best), (&whole, best_whole)] {
            assert!(
                certificate.nanos <= possible,
                "seed {seed}: {certificate:?}, but {possible} is possible"
            );
            assert_eq!(certify(&problem, budget, certificate), Ok(certificate.nanos), "seed {seed}");
        }
        for tick in 0..problem.ticks() {
            let around = super::swap::around(&problem, budget, tick);
            assert!(around.nanos <= best, "seed {seed}: {around:?}, but {best} is possible");
            assert_eq!(certify(&problem, budget, &around), Ok(around.nanos), "seed {seed}");
            more_around += usize::from(around.nanos > swap.nanos);
        }
        let prices = super::prices::search(&problem, budget, &swap.proof);
        assert!(prices.nanos <= best, "seed {seed}: {prices:?}, but {best} is possible");
        assert_eq!(certify(&problem, budget, &prices), Ok(prices.nanos), "seed {seed}");
        more_prices += usize::from(prices.nanos > swap.nanos + swap.nanos / 200);
        cases += 1;
        tight += usize::from(whole.nanos == best_whole);
    }
    assert!(cases > 2000 && tight * 5 > cases * 3, "{tight} of {cases} tight");
    assert!(more_around > 20 && more_prices > 100, "{more_around} {more_prices}");
}

#[test]
fn no_bound_on_recomputation_exceeds_what_is_possible() {
    let tried = lmsc_testing::cases(250, 700, 2000);
    let (mut tight, mut cases, mut helps) = (0, 0, 0);
    for (seed, problem, budget) in small(tried, 6) {
        let without = fastest(&problem, budget).map_or(u64::MAX, |(_, best)| best);
        let rewritten = choices(&problem).into_iter().filter_map(|again| with_again(&problem, &again));
        let best = rewritten.filter_map(|problem| Some(fastest(&problem, budget)?.1)).min();
        let Some(best) = best else { continue };
        let bound = joint(&problem, budget);
        assert!(bound.nanos <= best, "seed {seed}: {bound:?}, but {best} is possible");
        assert_eq!(certify(&problem, budget, &bound), Ok(bound.nanos), "seed {seed}");
        cases += 1;
        tight += u64::from(bound.nanos == best);
        helps += u64::from(best < without);
    }
    assert!(
        cases * 5 > tried * 2 && helps * 20 > tried && tight * 5 > cases * 2,
        "{tight} of {cases} tight, {helps} helped"
    );
}

/// The certificate with a random change.
fn damaged(certificate: &Certificate, u: &mut Rng, ops: usize) -> Certificate {
    let mut damaged = certificate.clone();
    damaged.nanos += damaged.nanos / [4, 20, 100, 1000][u.below(4)] + 1;
    for _ in 0..1 + u.below(3) {
        damage(&mut damaged.proof, u, ops);
    }
    damaged
}

fn damage(proof: &mut Proof, u: &mut Rng, ops: usize) {
    let another = match u.below(ops + 3) {
        0 => StepPlace::Start,
        1 => StepPlace::End,
        tick => StepPlace::Op(tick as u32 - 2),
    };
    let place = |place: &mut StepPlace| *place = another;
    let (facts, which) = match proof {
        Proof::Paper { at } => return at.iter_mut().for_each(place),
        Proof::Chain { ticks } => return ticks.push(u.below(ops + 1) as u32),
        Proof::Prices { memory, out, back } => {
            let prices = [memory, out, back].into_iter().nth(u.below(3)).expect("one of three");
            if prices.is_empty() || u.chance(10) {
                return prices.push(Price { at: 2 * ops as u32, price: 1 << (24 + u.below(9)) });
            }
            let (index, other) = (u.below(prices.len()), u.below(prices.len()));
            return match u.below(6) {
                0 => drop(prices.remove(index)),
                1 => prices[index].price = prices[index].price.saturating_mul(2),
                2 => prices[index].price += prices[index].price / 16 + 1,
                3 => prices[index].price -= prices[index].price / 4,
                4 => prices[index].at = (prices[index].at + u.below(5) as u32).saturating_sub(2),
                _ => prices.swap(index, other),
            };
        }
        Proof::Swap { facts } => (facts, 1 + u.below(4)),
        Proof::Around { tick, facts } => match u.below(5) {
            0 => return *tick = u.below(ops + 1) as u32,
            which => (facts, which),
        },
        Proof::Whole { at, before, after } => match u.below(3) {
            0 => return place(at),
            side => (if side == 1 { before } else { after }, 1 + u.below(4)),
        },
        Proof::Joint { at, before, after, intervals } => match u.below(5) {
            0 => return place(at),
            1 | 2 if !intervals.is_empty() => {
                let index = u.below(intervals.len());
                let interval = &mut intervals[index];
                return match u.below(5) {
                    0 => drop(intervals.remove(index)),
                    1 => interval.recomputed += 1 + u.below(1000) as u64,
                    2 => interval.recomputed = interval.recomputed.saturating_sub(1 + u.below(1000) as u64),
                    3 => interval.price = interval.price.saturating_mul(2),
                    _ => interval.price /= 2,
                };
            }
            side => (if side % 2 == 1 { before } else { after }, 1 + u.below(4)),
        },
    };
    if facts.is_empty() {
        return;
    }
    let (index, other) = (u.below(facts.len()), u.below(facts.len()));
    match which {
        2 => facts.swap(index, other),
        3 => drop(facts.remove(index)),
        4 => facts[index] = Fact::Whole { at: another, quantum: 1 + u.below(100) as u64 },
        _ => match &mut facts[index] {
            Fact::Link(link) => match u.below(4) {
                0 => link.way = if link.way == Way::Out { Way::In } else { Way::Out },
                1 => place(&mut link.at),
                2 => place(&mut link.after),
                _ => place(&mut link.before),
            },
            Fact::Whole { at, quantum } => match u.below(3) {
                0 => place(at),
                1 => *quantum = quantum.saturating_mul(2),
                _ => *quantum /= 2,
            },
        },
    }
}

#[test]
fn no_damage_makes_a_certificate_prove_more_than_is_possible() {
    let tried = lmsc_testing::cases(190, 500, 1500);
    let mut refused = [0; 2];
    for (seed, problem, budget) in small(tried, 6) {
        let mut u = Rng::new(seed);
        let Some((best_whole, best)) = fastest(&problem, budget) else { continue };
        let rewritten = choices(&problem).into_iter().filter_map(|again| with_again(&problem, &again));
        let best_joint = rewritten.filter_map(|problem| Some(fastest(&problem, budget)?.1)).min().unwrap();
        let certificates = [
            (paper(&problem, budget), best),
            (swap(&problem, budget), best),
            (super::swap::around(&problem, budget, u.below(problem.ops.len()) as u32), best),
            (super::prices::search(&problem, budget, &Proof::Paper { at: None }), best),
            (whole(&problem, budget), best_whole),
            (joint(&problem, budget), best_joint),
        ];
        for (certificate, possible) in &certificates {
            let above = Certificate { nanos: possible + 1, ..certificate.clone() };
            assert!(certify(&problem, budget, &above).is_err(), "seed {seed}: {above:?}");
            for _ in 0..20 {
                let damaged = damaged(certificate, &mut u, problem.ops.len());
                match certify(&problem, budget, &damaged) {
                    Ok(nanos) => assert!(nanos <= *possible, "seed {seed}: {possible} beats {damaged:?}"),
                    Err(NotProven::Less { .. }) => refused[0] += 1,
                    Err(_) => refused[1] += 1,
                }
            }
        }
    }
    assert!(3 * refused[0] > 20 * tried && 3 * refused[1] > 2 * tried, "{refused:?}");
}

#[test]
fn prices_know_that_what_stays_before_an_operator_stays_after_it() {
    // X and Y have 10 bytes; a byte takes 10 ns. At operator 3 one of them fits. X is produced just before it and used late,
    // Y is produced early and used just after it: X is swapped out in a pause of 100 ns, or Y is swapped in in one, or half
    // of each. Links require 10 of the 20 bytes before it, which can be Y's, and 10 after it, which can be X's.
    let tensors = [produced(10), produced(10)];
    let ops = [
        op(Phase::Forward, 0, &[], &[1]),
        op(Phase::Forward, 100, &[], &[]),
        op(Phase::Forward, 0, &[], &[0]),
        Operator { workspace: 15, ..op(Phase::Forward, 0, &[], &[]) },
        op(Phase::Forward, 0, &[1], &[]),
        op(Phase::Forward, 100, &[], &[]),
        op(Phase::Forward, 0, &[0], &[]),
    ];
    let mut problem = problem(&tensors, &ops);
    problem.link.out_bytes_per_second = 100_000_000;
    problem.link.in_bytes_per_second = 100_000_000;
    let budget = 25;
    let links = swap(&problem, budget);
    assert_eq!(links.nanos, 200);
    let found = super::prices::search(&problem, budget, &links.proof);
    assert!((299..=300).contains(&found.nanos), "{found:?}");
    assert_eq!(certify(&problem, budget, &found), Ok(found.nanos));
    assert_eq!(fastest(&problem, budget), Some((300, 300)));
    // By hand: the price of a byte at operator 3 is the time to copy it, and so is the time of the pauses beside it.
    let price = |at, price| Price { at, price };
    let [one, byte] = [1 << 32, 10 << 32];
    let by_hand = Proof::Prices {
        memory: vec![price(7, byte)],
        out: vec![price(6, one), price(7, 0)],
        back: vec![price(7, one), price(9, 0)],
    };
    assert_eq!(certify::proven(&problem, budget, &by_hand), Ok(300));
}

#[test]
fn prices_out_of_order_or_too_high_are_refused() {
    let mut problem = problem(&[produced(10)], &[op(Phase::Forward, 5, &[], &[0])]);
    let price = |at, price| Price { at, price };
    let (one, half) = (1 << 32, 1 << 31);
    let proven = |problem: &Problem, memory: &[Price], out: &[Price], back: &[Price]| {
        let [memory, out, back] = [memory, out, back].map(<[Price]>::to_vec);
        certify::proven(problem, 10, &Proof::Prices { memory, out, back })
    };
    assert_eq!(proven(&problem, &[price(0, 0), price(3, 0)], &[price(0, half)], &[price(2, half)]), Ok(2));
    let refused = [
        (vec![price(4, 1)], vec![], vec![], 4),
        (vec![price(2, 1), price(2, 1)], vec![], vec![], 2),
        (vec![], vec![price(3, 1)], vec![], 3),
        (vec![], vec![price(1, 1), price(0, 1)], vec![], 0),
        (vec![], vec![price(1, one + 1)], vec![], 1),
        (vec![], vec![price(1, half)], vec![price(2, half + 1)], 2),
        (vec![price(1, u64::MAX), price(2, u64::MAX)], vec![], vec![], 0),
    ];
    problem.tensors[TensorId::from_u32(0)].bytes = 1 << 59;
    for (memory, out, back, at) in refused {
        assert_eq!(proven(&problem, &memory, &out, &back), Err(NotProven::Prices(at)));
    }
    problem.link.duplex = Duplex::Half;
    assert_eq!(proven(&problem, &[], &[], &[price(1, half)]), Err(NotProven::Prices(1)));
}

#[test]
fn prices_of_larger_problems_exceed_no_plan() {
    let (mut cases, mut more) = (0, 0);
    for seed in 0..100 {
        let mut u = Rng::new(seed);
        let ops = 10 + u.below(40);
        let problem = random::problem(&mut u, ops);
        let floor = problem.floor().1;
        let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap();
        let budget = floor + (peak - floor) * u.below(8) as u64 / 8;
        let links = swap(&problem, budget);
        let found = super::prices::search(&problem, budget, &links.proof);
        assert_eq!(certify(&problem, budget, &found), Ok(found.nanos), "seed {seed}");
        for granularity in [Granularity::Ranges, Granularity::Whole] {
            let request = Request { granularity, effort: 2, ..Request::new(&problem, budget) };
            let Ok(plan) = swap_only::plan(&request) else { continue };
            check(&plan.problem, &plan.schedule, budget).unwrap();
            let makespan = plan.schedule.makespan();
            assert!(found.nanos <= makespan, "seed {seed}: {found:?}, but {makespan} is possible");
            cases += 1;
        }
        more += usize::from(found.nanos > links.nanos);
    }
    assert!(cases > 130 && more > 10, "{more} of {cases}");
}

/// Random prices, in their order and within their limits.
fn any_prices(u: &mut Rng, problem: &Problem) -> Proof {
    const ONE: u64 = 1 << 32;
    let stretches = 2 * problem.ops.len() as u32 + 1;
    let (rate, half) = (problem.link.out_bytes_per_second, problem.link.duplex == Duplex::Half);
    let byte = (u128::from(ONE) * 1_000_000_000 / u128::from(rate)) as u64;
    let at = |u: &mut Rng, count: u32| (0..count).filter(|_| u.chance(20)).collect::<Vec<u32>>();
    let memory = at(u, stretches + 1).into_iter().map(|at| Price { at, price: byte / 2 * u.below(5) as u64 });
    let memory = memory.collect();
    let [mut out, mut back] = [vec![], vec![]];
    for at in at(u, stretches) {
        let share = u.below(3) as u64;
        out.push(Price { at, price: ONE / 2 * share });
        if !half {
            back.push(Price { at, price: ONE / 2 * (2 - share) });
        }
    }
    Proof::Prices { memory, out, back }
}

#[test]
fn no_prices_prove_more_than_is_possible() {
    let (mut cases, mut more) = (0, 0);
    for (seed, problem, budget) in small(3000, 8) {
        let mut u = Rng::new(seed);
        let Some((_, best)) = fastest(&problem, budget) else { continue };
        for _ in 0..40 {
            let proof = any_prices(&mut u, &problem);
            let proven = certify::proven(&problem, budget, &proof).unwrap();
            assert!(proven <= u128::from(best), "seed {seed}: {best} beats {proven} by {proof:?}");
            cases += 1;
            more += usize::from(proven > u128::from(problem.compute_nanos()));
        }
    }
    assert!(cases > 40_000 && more > 500, "{more} of {cases}");
}
