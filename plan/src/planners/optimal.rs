//! Swapping only, as well as it can be done: covers of the ticks that do not fit, and justification. Where tensors
//! travel whole, that is where `whole.rs` begins to search.

use super::cover::{Cover, Manner};
use super::split::split;
use super::variables::staying_or_leaving;
use super::{DoesNotFit, Granularity, Plan, Request, whole};
use crate::problem::{Problem, Uses};
use crate::schedule::{Absences, ActId, Acts, ROUNDS, Schedule, Simulator, Stuck, justify};

/// A piece is at least this large, so that a copy's latency is small beside it.
const SMALLEST_PIECE: u64 = 1 << 20;

/// So many pieces make the peak.
pub const PIECES: u64 = 1500;

/// So many pieces travel as one, too, if they leave and come together, and the best is taken: over a link with latency few
/// large copies may beat many small ones.
const TOGETHER: [u32; 3] = [1, 8, 64];

/// With so many operators, what does not depend on each other is done at the same time.
const AT_ONCE: usize = 1000;

/// Covers in time that are made of one kind, each at the pace of the schedule before.
const PACES: usize = 4;

/// The plan that swaps and does nothing else.
///
/// # Errors
/// [`DoesNotFit`] if an operator's own tensors, with what may not leave, exceed the budget.
pub fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    let plan = staying_or_leaving(&Request { recompute: false, ..*request }, swapping)?;
    Ok(in_ranges(request, plan))
}

/// What a step takes in the plan that is found first; nothing if there is none.
pub fn glance(request: &Request) -> Option<u64> {
    plan(&Request { effort: 0, ..*request }).ok().map(|plan| plan.schedule.makespan())
}

/// The plan, if ranges may travel with pieces split for which others wait.
pub(super) fn in_ranges(request: &Request, plan: Plan) -> Plan {
    match request.granularity {
        Granularity::Whole => plan,
        Granularity::Ranges => {
            let smallest = piece_bytes(request.problem, PIECES);
            let schedule = split(&plan.problem, request.budget, smallest, plan.schedule);
            Plan { schedule, ..plan }
        }
    }
}

fn swapping(request: &Request) -> Result<Plan, DoesNotFit> {
    let Request { problem, budget, effort, .. } = *request;
    let schedule = match request.granularity {
        Granularity::Whole => whole::schedule(problem, budget, effort, swaps(problem, budget, u64::MAX)?),
        Granularity::Ranges => swaps(problem, budget, piece_bytes(problem, PIECES))?,
    };
    Ok(Plan::without_recomputation(problem, schedule))
}

/// The justified schedule of the cover that takes windows in this manner.
///
/// # Errors
/// [`DoesNotFit`] as of the cover.
pub(crate) fn covered(
    problem: &Problem,
    budget: u64,
    piece: u64,
    manner: Manner,
) -> Result<Schedule, DoesNotFit> {
    let uses = problem.uses();
    schedule(problem, &uses, budget, &Cover::new(problem, &uses, budget, piece, manner)?.absences(1))
}

/// The best of the justified schedules of covers: two eager ones, and some in time.
///
/// # Errors
/// [`DoesNotFit`] as of the cover.
pub fn swaps(problem: &Problem, budget: u64, piece: u64) -> Result<Schedule, DoesNotFit> {
    let uses = problem.uses();
    let costs_to_start = piece < u64::MAX && problem.link.latency_nanos > 0;
    let together = if costs_to_start { &TOGETHER } else { &TOGETHER[..1] };
    let schedules = |cover: &Cover| -> Result<Schedule, DoesNotFit> {
        let mut best: Option<Schedule> = None;
        for &together in together {
            let coarse = schedule(problem, &uses, budget, &cover.absences(together))?;
            let found = if together == 1 { coarse } else { split(problem, budget, piece, coarse) };
            if best.as_ref().is_none_or(|best| found.makespan() < best.makespan()) {
                best = Some(found);
            }
        }
        Ok(best.expect("there are some"))
    };
    let is_best = |found: &Schedule| found.makespan() == problem.compute_nanos();
    let better = |best: Option<Schedule>, found: Schedule| match best {
        Some(best) if best.makespan() <= found.makespan() => best,
        _ => found,
    };
    let eager = || -> Result<Schedule, DoesNotFit> {
        let best = schedules(&Cover::new(problem, &uses, budget, piece, Manner::Gone)?)?;
        if is_best(&best) {
            return Ok(best);
        }
        let other = schedules(&Cover::new(problem, &uses, budget, piece, Manner::Ready)?)?;
        Ok(better(Some(best), other))
    };
    let nominal: Vec<u64> = problem.ops.iter().map(|op| op.nanos).collect();
    let in_time = |clean_first: bool| -> Result<Schedule, DoesNotFit> {
        let mut pace = nominal.clone();
        let mut best: Option<Schedule> = None;
        for _ in 0..PACES {
            let found = schedules(&Cover::in_time(problem, &uses, budget, piece, &pace, clean_first)?)?;
            let before = std::mem::replace(&mut pace, found.pace());
            let better = better(best.take(), found);
            let is_last = is_best(&better) || before == pace;
            best = Some(better);
            if is_last {
                break;
            }
        }
        Ok(best.expect("there is a first pace"))
    };
    let (mut best, found) = match problem.ops.len() < AT_ONCE {
        true => {
            let best = eager()?;
            if is_best(&best) {
                return Ok(best);
            }
            (best, in_time(false)?)
        }
        false => std::thread::scope(|scope| {
            let found = scope.spawn(|| in_time(false));
            let best = eager()?;
            Ok((best, found.join().expect("planning does not panic")?))
        })?,
    };
    best = better(Some(best), found);
    let some_leave = problem.tensors.values().any(|t| t.is_variable() && t.swappable);
    if some_leave && !is_best(&best) {
        best = better(Some(best), in_time(true)?);
    }
    Ok(best)
}

/// The size of pieces of which so many make the peak.
pub fn piece_bytes(problem: &Problem, count: u64) -> u64 {
    let peak = problem.live_bytes().into_iter().max().unwrap_or(0);
    (peak / count).max(SMALLEST_PIECE)
}

/// The better of the justified schedules of both orders of these absences.
///
/// What fits at every moment can be executed one after the other, so a cover's activities are never stuck.
pub(super) fn schedule(
    problem: &Problem,
    uses: &Uses,
    budget: u64,
    absences: &Absences,
) -> Result<Schedule, DoesNotFit> {
    let acts = Acts::of_uses(problem, uses, absences);
    let justified = |order: &[ActId]| {
        justify(&mut Simulator::default(), &acts, order, budget, ROUNDS).map_err(|_: Stuck| {
            let (tick, needed) = problem.floor();
            DoesNotFit { tick, needed, budget }
        })
    };
    let (eager, own) = match problem.ops.len() < AT_ONCE {
        true => {
            let eager = justified(&acts.eager())?;
            let is_best = eager.1.makespan == problem.compute_nanos();
            (eager, if is_best { None } else { Some(justified(&acts.order)?) })
        }
        false => std::thread::scope(|scope| {
            let own = scope.spawn(|| justified(&acts.order));
            let eager = justified(&acts.eager())?;
            Ok((eager, Some(own.join().expect("a simulation does not panic")?)))
        })?,
    };
    let best = match own {
        Some(own) if own.1.makespan < eager.1.makespan => own,
        _ => eager,
    };
    let (order, times) = best;
    Ok(acts.schedule(absences, &order, &times))
}
