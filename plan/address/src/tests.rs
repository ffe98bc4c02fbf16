use cranelift_entity::EntityRef;
use lmsc_ir::Phase::{Backward, Forward};
use lmsc_planners::ours::swap_only;
use lmsc_schedule::problem::Problem;
use lmsc_schedule::{Absences, Act, Acts, Instruction, Noise, Replay, Schedule, Step};
use lmsc_testing::small::{op, problem, produced};
use lmsc_testing::{Rng, Source, random};

use super::*;

/// A random problem, and an arena from the smallest that its operators need to one where nothing must be swapped.
fn case(seed: u64) -> (Problem, Arena) {
    let mut u = Rng::new(seed);
    let ops = 1 + u.below(if seed.is_multiple_of(10) { 60 } else { 12 });
    let problem = random::problem(&mut u, ops);
    let floor = problem.floor().1;
    let peak = problem.live_by_moment(&problem.uses()).into_iter().max().unwrap();
    let bytes = floor + (peak - floor) * u.below(5) as u64 / 4;
    // Where tensors have few bytes, only some of them fit beside each other with an alignment of 256.
    let alignment = if bytes < 1 << 20 || u.chance(50) { 1 } else { 256 };
    (problem, Arena { bytes, alignment })
}

fn placed(problem: &Problem, arena: Arena) -> Option<Placed> {
    place(arena, 1, |budget| {
        let peak = problem.live_bytes().into_iter().max().unwrap_or(0);
        let schedules = [u64::MAX, peak / 20 + 1].map(|piece| swap_only::swaps(problem, budget, piece));
        let plan = |schedule| Plan::without_recomputation(problem, schedule);
        schedules.into_iter().filter_map(|schedule| Some(plan(schedule.ok()?))).collect()
    })
}

/// Placements of plans that swap.
fn swapping() -> impl Iterator<Item = (u64, Placed, Arena)> {
    (0..200u64).filter_map(|seed| {
        let (problem, arena) = case(seed);
        let placed = placed(&problem, arena)?;
        (!placed.plan.schedule.pieces.is_empty()).then_some((seed, placed, arena))
    })
}

#[test]
fn random_plans_lie_in_their_arenas() {
    // By alignment: number of placements found, and number of cases.
    let mut found = std::collections::BTreeMap::from([(1, (0, 0)), (256, (0, 0))]);
    for seed in 0..400 {
        let (problem, arena) = case(seed);
        let (found, all) = found.get_mut(&arena.alignment).unwrap();
        *all += 1;
        let Some(placed) = placed(&problem, arena) else { continue };
        *found += 1;
        let top = check(&placed, arena).unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}"));
        assert!(top <= arena.bytes, "seed {seed}");
        assert_eq!(check(&placed, Arena { bytes: top, ..arena }), Ok(top), "seed {seed}");
        let Some(smaller) = top.checked_sub(1) else { continue };
        let smaller = check(&placed, Arena { bytes: smaller, ..arena });
        assert!(matches!(smaller, Err(Misplaced::Outside { .. } | Misplaced::Schedule(_))), "seed {seed}");
    }
    // Some of the others have no placement: unswappable tensors lie in the way, and the smallest arenas have no bytes to
    // spare for alignment.
    let enough = |percent: u32| move |&(found, all): &(u32, u32)| found * 100 >= all * percent;
    assert!(found.get(&1).is_some_and(enough(97)) && found.get(&256).is_some_and(enough(55)), "{found:?}");
}

#[test]
fn the_same_plan_lies_at_the_same_addresses_every_time() {
    for seed in 0..60 {
        let (problem, arena) = case(seed);
        let (one, other) = (placed(&problem, arena), placed(&problem, arena));
        assert_eq!(one.is_some(), other.is_some(), "seed {seed}");
        let (Some(one), Some(other)) = (one, other) else { continue };
        assert_eq!(one.spots, other.spots, "seed {seed}");
        assert_eq!(one.edges, other.edges, "seed {seed}");
        assert_eq!(one.plan.schedule.steps, other.plan.schedule.steps, "seed {seed}");
    }
}

#[test]
fn a_schedule_that_waits_for_edges_alone_takes_its_stated_time() {
    for (seed, placed, _) in swapping() {
        let Placed { plan, edges, .. } = &placed;
        let replayed = Replay::new(&plan.problem, &plan.schedule, edges).run(Noise::default(), 0);
        assert_eq!(replayed.steps, plan.schedule.steps, "seed {seed}");
    }
}

/// The interval in which a spot is occupied, from the times of the steps alone.
fn times(problem: &Problem, schedule: &Schedule, spots: &[Spot], spot: &Spot) -> (u64, u64) {
    let from = spot.from.map_or(0, |step| schedule.steps[step].start);
    let (tensor, begin) = match spot.run {
        Allocation::Workspace(_) => return (from, schedule.steps[spot.from.unwrap()].end),
        Allocation::Bytes { tensor, begin, .. } => (tensor, begin),
    };
    let later = spots.iter().filter(|other| other.run == spot.run && other.from > spot.from);
    let next = later.filter_map(|other| other.from).min();
    let touches = |step: &Step| match step.instruction {
        Instruction::Op(tick) => problem.ops[tick as usize].touches().any(|t| t == tensor),
        Instruction::In(piece) | Instruction::Out(piece) => {
            let piece = &schedule.pieces[piece];
            piece.tensor == tensor && piece.bytes.start == begin
        }
    };
    let range = spot.from.unwrap_or(0)..next.unwrap_or(schedule.steps.len());
    let ends = schedule.steps[range].iter().filter(|step| touches(step)).map(|step| step.end);
    (from, ends.max().unwrap_or(from))
}

/// Whether two spots share an address at one time.
fn collides(placed: &Placed, schedule: &Schedule) -> bool {
    let problem = &placed.plan.problem;
    let bytes = |spot: &Spot| match spot.run {
        Allocation::Workspace(tick) => problem.ops[tick as usize].workspace,
        Allocation::Bytes { begin, end, .. } => end - begin,
    };
    let spots = placed
        .spots
        .iter()
        .map(|s| (s.address, s.address + bytes(s), times(problem, schedule, &placed.spots, s)));
    let spots: Vec<_> = spots.collect();
    spots.iter().enumerate().any(|(index, one)| {
        spots[index + 1..].iter().any(|other| {
            let (x, y) = (one.2, other.2);
            one.0 < other.1 && other.0 < one.1 && x.0 < y.1 && y.0 < x.1
        })
    })
}

#[test]
fn nothing_collides_however_long_operators_take_and_an_edge_less_is_found() {
    let noise = Noise { operators_percent: 90, contention_percent: 50 };
    let (mut needed, mut collided) = (0, 0);
    for (seed, mut placed, arena) in swapping() {
        for index in 0..=placed.edges.len() {
            let all = placed.edges.clone();
            if index < all.len() {
                placed.edges.remove(index);
            }
            let accepted = check(&placed, arena).is_ok();
            assert!(accepted || index < all.len(), "seed {seed}");
            needed += usize::from(!accepted);
            let runs = if index < all.len() { 2 } else { 10 };
            for run in 0..runs {
                let Placed { plan, edges, .. } = &placed;
                let replayed = Replay::new(&plan.problem, &plan.schedule, edges).run(noise, run);
                let collides = collides(&placed, &replayed);
                assert!(!(accepted && collides), "seed {seed}, without {:?}", all.get(index));
                collided += usize::from(collides);
            }
            placed.edges = all;
        }
    }
    assert!(needed > 100 && collided > 10, "{needed} edges needed, {collided} collisions without them");
}

#[test]
fn an_address_outside_its_range_is_refused() {
    for (seed, placed, arena) in swapping().take(60) {
        for index in 0..placed.spots.len() {
            let changed = |change: &dyn Fn(&mut Vec<Spot>)| {
                let mut placed = placed.clone();
                change(&mut placed.spots);
                check(&placed, arena).err()
            };
            let spot = &placed.spots[index];
            let lost = changed(&|spots| _ = spots.remove(index));
            let nowhere = Some(Misplaced::Nowhere { run: spot.run.clone(), from: spot.from });
            assert_eq!(lost, nowhere, "seed {seed}");
            assert!(changed(&|spots| spots.push(spots[index].clone())).is_some(), "seed {seed}");
            let outside = changed(&|spots| spots[index].address = arena.bytes);
            assert!(
                matches!(
                    outside,
                    Some(Misplaced::Outside { .. } | Misplaced::Torn { .. } | Misplaced::Moved(_))
                ),
                "seed {seed}: {outside:?}"
            );
            if let Allocation::Bytes { begin, end, tensor } = spot.run {
                let shorter = Allocation::Bytes { tensor, begin, end: end - 1 };
                assert_eq!(changed(&|spots| spots[index].run = shorter.clone()), nowhere, "seed {seed}");
            }
            // At the address of a range that is resident at the same moment.
            let schedule = &placed.plan.schedule;
            let now = |s: &Spot| times(&placed.plan.problem, schedule, &placed.spots, s);
            let together = placed.spots.iter().find(|other| {
                let (x, y) = (now(spot), now(other));
                other.run != spot.run && x.0.max(y.0) < x.1.min(y.1)
            });
            if let Some(other) = together {
                let there = changed(&|spots| spots[index].address = other.address);
                assert!(there.is_some(), "seed {seed}: {:?} on {:?}", spot.run, other.run);
            }
        }
    }
}

#[test]
fn steps_that_do_not_wait_for_their_edges_are_refused() {
    for (seed, placed, arena) in swapping().take(60) {
        for (index, edge) in placed.edges.iter().enumerate() {
            let mut changed = placed.clone();
            changed.edges[index] = Edge { step: edge.before, before: edge.step };
            changed.edges.sort_unstable();
            assert!(matches!(check(&changed, arena), Err(Misplaced::Edge(_))), "seed {seed}: {edge:?}");
        }
    }
}

#[test]
fn a_placement_has_just_the_copies_of_its_plan() {
    for (seed, placed, _) in swapping().take(60) {
        let plan = &placed.plan;
        let absences = Absences::of(&plan.problem, &plan.schedule);
        let acts = Acts::of(&plan.problem, &absences);
        let order = acts.order_of(&plan.schedule).unwrap_or_else(|| panic!("seed {seed}"));
        let instructions: Vec<_> = order[1..order.len() - 1].iter().map(|&act| acts.what[act]).collect();
        let steps: Vec<_> = plan.schedule.steps.iter().map(|step| Act::Do(step.instruction)).collect();
        assert_eq!(instructions, steps, "seed {seed}");
        assert_eq!(order.last().map(|act| act.index()), Some(acts.len() - 1), "seed {seed}");
    }
}

#[test]
fn so_many_objects_that_they_are_not_compared_are_placed_quickly() {
    let mut found = 0;
    for seed in 0..3 {
        let problem = random::problem(&mut Rng::new(seed), 6000);
        let (floor, peak) = (problem.floor().1, problem.live_bytes().into_iter().max().unwrap());
        let arena = Arena { bytes: floor + (peak - floor) / 10 * 9, alignment: 16 };
        let Some(placed) = placed(&problem, arena) else { continue };
        assert!(placed.spots.len() > 3000, "seed {seed}: {} spots", placed.spots.len());
        check(&placed, arena).unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}"));
        found += 1;
    }
    assert!(found > 0);
}

#[test]
fn swaps_chosen_with_addresses_need_no_more_than_what_operators_touch() {
    let (mut same, mut all) = (0, 0);
    for seed in 0..600 {
        let mut u = Rng::new(seed);
        let ops = 1 + u.below(if seed.is_multiple_of(10) { 60 } else { 12 });
        let problem = random::problem(&mut u, ops);
        let plan = Plan::without_recomputation(&problem, Schedule::default());
        let alignment = if u.chance(50) { 1 } else { 256 };
        let nothing = Arena { bytes: 0, alignment };
        let least = tight::tight(&plan, nothing).err().unwrap_or(0);
        // No plan that fits needs less.
        assert!(least >= problem.floor().1, "seed {seed}");
        all += 1;
        same += u32::from(alignment == 1 && least == problem.floor().1);
        for bytes in [least, least + least / 7] {
            let arena = Arena { bytes, alignment };
            let (plan, frame, placement) =
                tight::tight(&plan, arena).unwrap_or_else(|e| panic!("seed {seed}: {e} {least}"));
            assert!(placement.left.is_empty(), "seed {seed}");
            let placed = search::emit(plan, &frame, &placement).unwrap_or_else(|| panic!("seed {seed}"));
            check(&placed, arena).unwrap_or_else(|flaw| panic!("seed {seed}: {flaw}"));
        }
    }
    assert!(same > 100, "{same} of {all}");
}

/// Each of many operators produces a mebibyte that is live until its own backward operator runs.
#[test]
fn addresses_in_a_long_chain_of_equal_tensors_cost_nothing() {
    let layers = 2000u32;
    let forward = (0..layers).map(|tick| {
        let reads: &[u32] = if tick == 0 { &[] } else { &[tick - 1] };
        op(Forward, 50_000, reads, &[tick])
    });
    let backward = (0..layers).rev().map(|tick| op(Backward, 50_000, &[tick], &[]));
    let ops: Vec<_> = forward.chain(backward).collect();
    let problem = problem(&vec![produced(1 << 20); layers as usize], &ops);
    let arena = Arena { bytes: u64::from(layers) << 19, alignment: 256 };
    let plan =
        Plan::without_recomputation(&problem, swap_only::swaps(&problem, arena.bytes, u64::MAX).unwrap());
    let placed = place(arena, 1, |budget| {
        let schedule = swap_only::swaps(&problem, budget, u64::MAX);
        schedule.ok().into_iter().map(|schedule| Plan::without_recomputation(&problem, schedule)).collect()
    });
    let placed = placed.unwrap();
    check(&placed, arena).unwrap();
    assert!(!placed.plan.schedule.pieces.is_empty());
    assert_eq!(placed.plan.schedule.makespan(), plan.schedule.makespan());
}
