//! Plans in pages of all planners.

use lmsc_plan::pages::{SMALLEST, Unpaged, check, in_pages, plan};
use lmsc_planners::Request;
use lmsc_testing::{Rng, Source, random};

const PAGE: u64 = SMALLEST;

#[test]
fn plans_of_all_planners_need_no_more_pages_than_there_are() {
    let (mut found, mut ranges) = (0, 0);
    for planner in lmsc_papers::ALL.iter().filter_map(|planner| planner.of_problems()).filter(|p| !p.learns) {
        for seed in 0..60 {
            let mut u = Rng::new(seed);
            let ops = 1 + u.below(25);
            let problem = random::problem(&mut u, ops);
            let rounded = in_pages(&problem, PAGE);
            let (floor, live) = (rounded.floor().1, rounded.live_by_moment(&rounded.uses()));
            let peak = live.into_iter().max().unwrap();
            let budget = floor + (peak - floor) * u.below(4) as u64 / 4 + u.below(2 * PAGE as usize) as u64;
            let request = Request { recompute: u.chance(50), effort: 5, ..Request::new(&problem, budget) };
            let paged = match plan(|request| planner.plan(request), &request, PAGE) {
                Ok(paged) => paged,
                Err(Unpaged::DoesNotFit(_)) => continue,
                Err(Unpaged::NotInOrder(flaw)) => panic!("{} seed {seed}: {flaw}", planner.name),
            };
            let most = check(&paged, budget).unwrap_or_else(|e| panic!("{} {seed}: {e}", planner.name));
            assert!(most <= budget / PAGE * PAGE, "{} seed {seed}", planner.name);
            found += 1;
            ranges += paged.plan.schedule.pieces.values().filter(|piece| piece.bytes.start > 0).count();
        }
    }
    assert!(found > 300 && ranges > 300, "{found} plans, {ranges} ranges");
}
