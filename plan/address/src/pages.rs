//! Plans for memory that is mapped in pages of one size: the alternative to an arena with addresses.
//!
//! Pages need not be adjacent, so any free ones will do, and counting them is enough. The unused rest of each tensor's last
//! page is lost. The plan accounts for it: it is made for tensors of whole pages, whose ranges are copied in whole pages.
//!
//! # Source
//! OOC §4: virtual addressing, with chunks for pages.

use std::ops::Range;

use lmsc_schedule::problem::{Problem, Tensor, TensorId};
use lmsc_schedule::{
    self as schedule, DoesNotFit, Edge, Flaw, Instruction, Noise, NotInOrder, Plan, Replay, Request, Room,
    Schedule,
};

/// All page sizes are multiples of the smallest. With sizes above the largest, sums would not fit in 64 bits.
pub const SMALLEST: u64 = 1 << 16;
/// See [`SMALLEST`].
pub const LARGEST: u64 = 1 << 30;

/// Whether pages may have this size.
pub fn is_size(bytes: u64) -> bool {
    bytes.is_multiple_of(SMALLEST) && (SMALLEST..=LARGEST).contains(&bytes)
}

/// A variable is small if it takes less than one part in this many of a page.
const SMALL: u64 = 8;

/// Alignment of variables that share pages, as the runtime lays them out.
const ALIGNMENT: u64 = 256;

/// A plan that needs no more than the budget's pages.
#[derive(Clone, Debug)]
pub struct Paged {
    /// The plan, with tensors of their own sizes.
    pub plan: Plan,
    /// The dependences of steps besides data and the previous steps of their engine. With these edges, no timing needs more
    /// pages than there are.
    pub edges: Vec<Edge>,
    /// Bytes of a page.
    pub page: u64,
}

/// Why there is no plan in pages.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum Unpaged {
    /// The planner has no plan.
    #[error(transparent)]
    DoesNotFit(#[from] DoesNotFit),
    /// The planner's plan has times that its steps do not respect.
    #[error("the plan in pages is not in order: {0}")]
    NotInOrder(#[from] NotInOrder),
}

/// The plan of a planner, `run`, if everything takes whole pages of `page` bytes, from [`SMALLEST`] to [`LARGEST`].
///
/// # Errors
/// [`Unpaged::DoesNotFit`], in bytes of whole pages; [`Unpaged::NotInOrder`] is a bug of the planner.
pub fn plan(
    run: impl FnOnce(&Request) -> Result<Plan, DoesNotFit>,
    request: &Request,
    page: u64,
) -> Result<Paged, Unpaged> {
    let rounded = in_pages(request.problem, page);
    let plan = run(&Request { problem: &rounded, ..*request })?;
    let edges = schedule::edges(&plan.problem, &plan.schedule, Room::Counted(request.budget))?;
    let plan = exact(request.problem, plan);
    let schedule = Replay::new(&plan.problem, &plan.schedule, &edges).run(Noise::default(), 0);
    Ok(Paged { plan: Plan { schedule, ..plan }, edges, page })
}

/// The most bytes of pages in use at once, if the plan is valid within `budget` bytes of pages.
///
/// # Errors
/// The first [`Flaw`] found; [`Flaw::Piece`] for ranges that share a page.
pub fn check(paged: &Paged, budget: u64) -> Result<u64, Flaw> {
    let Plan { problem, schedule, .. } = &paged.plan;
    schedule::check(problem, schedule, budget)?;
    pages_in_use(problem, schedule, paged.page, budget)
}

/// Edges that keep the plan within the budget of pages in any timing: `edges`, and more only where they do not suffice.
///
/// # Errors
/// [`Flaw::Piece`] for ranges that share a page; [`Unordered`] for a plan that is not valid within the budget, or whose edges
/// go back in time.
pub fn edges(plan: &Plan, edges: &[Edge], page: u64, budget: u64) -> Result<Vec<Edge>, Unordered> {
    let rounded = rounded(&plan.problem, &plan.schedule, page)?;
    Ok(schedule::edges(&in_pages(&plan.problem, page), &rounded, Room::Within(edges, budget))?)
}

/// Why a plan has no edges in pages.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Unordered {
    /// Its ranges are no whole pages.
    #[error(transparent)]
    Flaw(#[from] Flaw),
    /// Its steps are not in order.
    #[error(transparent)]
    NotInOrder(#[from] NotInOrder),
}

/// [`check`] for a schedule whose steps may take other times than planned.
fn pages_in_use(problem: &Problem, schedule: &Schedule, page: u64, budget: u64) -> Result<u64, Flaw> {
    schedule::check_however_long(&in_pages(problem, page), &rounded(problem, schedule, page)?, budget)
}

/// The schedule with ranges that end at whole pages.
fn rounded(problem: &Problem, schedule: &Schedule, page: u64) -> Result<Schedule, Flaw> {
    let mut rounded = schedule.clone();
    for (id, piece) in &mut rounded.pieces {
        let Range { start, end } = piece.bytes;
        let is_last = end == problem.tensors[piece.tensor].bytes;
        if !start.is_multiple_of(page) || !(is_last || end.is_multiple_of(page)) {
            return Err(Flaw::Piece(id));
        }
        piece.bytes.end = end.next_multiple_of(page);
    }
    Ok(rounded)
}

/// The problem in which everything takes whole pages.
///
/// Resident variables share pages, so small variables stay resident: most of a page of their own would be lost. The bytes
/// that they lose together are added to the last one.
pub fn in_pages(problem: &Problem, page: u64) -> Problem {
    let mut problem = Problem { grain: page, ..problem.clone() };
    let mut staying = 0;
    let mut last = None;
    for (tensor, facts) in &mut problem.tensors {
        facts.swappable &= !(facts.is_variable() && facts.bytes < page / SMALL);
        if facts.is_variable() && !facts.swappable {
            facts.bytes = facts.bytes.next_multiple_of(ALIGNMENT);
            staying += facts.bytes;
            last = Some(tensor);
        } else {
            facts.bytes = facts.bytes.next_multiple_of(page);
        }
    }
    if let Some(last) = last {
        problem.tensors[last].bytes += staying.next_multiple_of(page) - staying;
    }
    problem.ops.iter_mut().for_each(|op| op.workspace = op.workspace.next_multiple_of(page));
    problem
}

/// The plan for a problem in pages, with the sizes of the original problem: copies may be shorter.
fn exact(problem: &Problem, mut plan: Plan) -> Plan {
    for (facts, &origin) in plan.problem.tensors.values_mut().zip(plan.tensor_origin.values()) {
        let Tensor { bytes, swappable, .. } = problem.tensors[origin];
        (facts.bytes, facts.swappable) = (bytes, swappable);
    }
    let bytes = |tensor: TensorId| plan.problem.tensors[tensor].bytes;
    for (op, &origin) in plan.problem.ops.iter_mut().zip(&plan.op_origin) {
        op.workspace = problem.ops[origin as usize].workspace;
    }
    let Schedule { pieces, steps } = &mut plan.schedule;
    pieces.values_mut().for_each(|piece| piece.bytes.end = piece.bytes.end.min(bytes(piece.tensor)));
    for step in steps {
        step.end = match step.instruction {
            Instruction::Op(_) => step.end,
            Instruction::Out(piece) => step.start + problem.link.out_nanos(pieces[piece].len()),
            Instruction::In(piece) => step.start + problem.link.in_nanos(pieces[piece].len()),
        };
    }
    plan.problem.grain = problem.grain;
    plan
}

#[cfg(test)]
mod tests {
    use lmsc_planners::{Planner, planner};
    use lmsc_testing::{Rng, Source, random};

    use super::*;

    const PAGE: u64 = SMALLEST;

    /// The planner's plan for a random problem and budget, and the budget.
    fn paged(planner: &Planner, seed: u64) -> Option<(Paged, u64)> {
        let mut u = Rng::new(seed);
        let ops = 1 + u.below(25);
        let problem = random::problem(&mut u, ops);
        let rounded = in_pages(&problem, PAGE);
        let (floor, live) = (rounded.floor().1, rounded.live_by_moment(&rounded.uses()));
        let peak = live.into_iter().max().unwrap();
        let budget = floor + (peak - floor) * u.below(4) as u64 / 4 + u.below(2 * PAGE as usize) as u64;
        let request = Request { recompute: u.chance(50), effort: 5, ..Request::new(&problem, budget) };
        match plan(|request| planner.plan(request), &request, PAGE) {
            Ok(paged) => Some((paged, budget)),
            Err(Unpaged::DoesNotFit(_)) => None,
            Err(Unpaged::NotInOrder(flaw)) => panic!("{} seed {seed}: {flaw}", planner.name),
        }
    }

    #[test]
    fn edges_hold_the_pages_in_any_timing() {
        let auto = planner("auto").unwrap();
        for seed in 0..60 {
            let Some((paged, budget)) = paged(auto, seed) else { continue };
            let Plan { problem, schedule, .. } = &paged.plan;
            let noise = Noise { operators_percent: 90, contention_percent: 50 };
            let replayed = Replay::new(problem, schedule, &paged.edges).run(noise, seed);
            pages_in_use(problem, &replayed, PAGE, budget).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        }
    }

    #[test]
    fn a_page_too_many_is_found() {
        let auto = planner("auto").unwrap();
        let mut found = 0;
        for seed in 0..60 {
            let Some((paged, budget)) = paged(auto, seed) else { continue };
            let most = check(&paged, budget).unwrap();
            assert!(matches!(check(&paged, most - 1), Err(Flaw::Budget { .. })), "seed {seed}");
            // A swapped range that shares a page with a resident one does not free the page.
            let mut shifted = paged.plan.schedule.clone();
            let Some(piece) = shifted.pieces.values_mut().find(|p| p.bytes.start > 0) else { continue };
            piece.bytes.start += 1;
            let found_out = pages_in_use(&paged.plan.problem, &shifted, PAGE, budget);
            assert!(matches!(found_out, Err(Flaw::Piece(_))), "seed {seed}");
            found += 1;
        }
        assert!(found > 0);
    }
}
