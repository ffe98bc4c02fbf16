//! The best plans that only swap: eviction sets for the moments that exceed the budget, and justification. For whole tensors,
//! the search in `whole.rs` starts from these.

use lmsc_schedule::problem::{Problem, Uses};
use lmsc_schedule::threads::both;
use lmsc_schedule::tuned::Tunable;
use lmsc_schedule::{DoesNotFit, Granularity, Plan, Request, Schedule};

use crate::ours::justified::{PARALLEL_FROM, SMALLEST_PIECE, schedule};
use crate::ours::mechanisms::{IN_TIME, SIZES};
use crate::ours::split::split;
use crate::ours::swap_set::{Cover, Manner};
use crate::ours::variables::staying_or_leaving;
use crate::ours::whole;

/// Number of pieces into which the peak is divided; during the search for recomputation, a tenth of it.
pub const PIECES: Tunable<u64> = Tunable::new(1500);

/// Sizes of pieces that are tried over a link with latency, in halves of the usual one: a few large copies may be faster than many
/// small ones.
const OTHER_SIZES: Tunable<[u64; 7]> = Tunable::new([1, 3, 4, 5, 7, 10, 20]);

/// Number of time-aware eviction sets made of one kind, each with the pace of the previous schedule.
const PACES: Tunable<usize> = Tunable::new(4);

/// The plan that only swaps.
///
/// # Errors
/// [`DoesNotFit`] if the tensors of an operator together with the unswappable ones exceed the budget.
pub fn plan(request: &Request) -> Result<Plan, DoesNotFit> {
    let plan = staying_or_leaving(&Request { recompute: false, ..*request }, swapping)?;
    Ok(in_ranges(request, plan))
}

/// The makespan of the plan that is found first; nothing if there is none.
pub fn glance(request: &Request) -> Option<u64> {
    plan(&Request { effort: 0, watch: None, ..*request }).ok().map(|plan| plan.schedule.makespan())
}

/// The plan; if ranges are allowed, with the pieces on the critical path split.
pub(super) fn in_ranges(request: &Request, plan: Plan) -> Plan {
    match request.granularity {
        Granularity::Whole => plan,
        Granularity::Ranges => {
            let smallest = piece_bytes(request.problem, PIECES.get());
            let schedule = split(&plan.problem, request.budget, smallest, plan.schedule);
            Plan { schedule, ..plan }
        }
    }
}

fn swapping(request: &Request) -> Result<Plan, DoesNotFit> {
    let Request { problem, budget, .. } = *request;
    let schedule = match request.granularity {
        Granularity::Whole => whole::schedule(problem, request, swaps(problem, budget, u64::MAX)?),
        Granularity::Ranges => swaps(problem, budget, piece_bytes(problem, PIECES.get()))?,
    };
    Ok(Plan::without_recomputation(problem, schedule))
}

/// The justified schedule of the eviction set that takes windows in this order.
///
/// # Errors
/// [`DoesNotFit`], as for `Cover::new`.
pub fn covered(problem: &Problem, budget: u64, piece: u64, manner: Manner) -> Result<Schedule, DoesNotFit> {
    let uses = problem.uses();
    let cover = Cover::new(problem, &uses, budget, piece, manner)?;
    schedule(problem, &uses, budget, &cover.absences())
}

/// The best of the justified schedules of several eviction sets: two eager ones and some time-aware ones.
///
/// Over a link with latency, further sets of the best kind have pieces of other sizes.
///
/// # Errors
/// [`DoesNotFit`], as for `Cover::new`.
pub fn swaps(problem: &Problem, budget: u64, piece: u64) -> Result<Schedule, DoesNotFit> {
    let uses = &problem.uses();
    let mut search = Search { problem, uses, budget, best: None };
    let kind = |manner| Kind { manner, piece };
    let (eager, in_time) = ([kind(Manner::Gone), kind(Manner::Ready)], [kind(Manner::InTime)]);
    let in_time = if IN_TIME.is_on() { &in_time[..] } else { &[] };
    if problem.ops.len() < PARALLEL_FROM {
        search.look_at(&eager)?;
        search.look_at(in_time)?;
    } else {
        let mut beside = Search { problem, uses, budget, best: None };
        let (beside, found) = both(|| beside.look_at(in_time).map(|()| beside), || search.look_at(&eager));
        found?;
        beside?.best.into_iter().for_each(|(kind, found)| search.compare(kind, found));
    }
    if piece < u64::MAX && problem.link.latency_nanos > 0 && SIZES.is_on() {
        let manner = search.best.as_ref().expect("it has looked at some").0.manner;
        let other = |halves: u64| Kind { manner, piece: piece * halves / 2 };
        search.look_at(&OTHER_SIZES.get().map(other))?;
    }
    Ok(search.best.expect("it has looked at some").1)
}

/// How an eviction set is chosen.
#[derive(Clone, Copy)]
struct Kind {
    manner: Manner,
    /// Maximum size of a copied range.
    piece: u64,
}

/// A search over eviction sets of one problem, kind by kind.
struct Search<'a> {
    problem: &'a Problem,
    uses: &'a Uses,
    budget: u64,
    /// The fastest schedule, the first of equal ones, and the kind of its eviction set.
    best: Option<(Kind, Schedule)>,
}

impl Search<'_> {
    fn compare(&mut self, kind: Kind, found: Schedule) {
        if self.best.as_ref().is_none_or(|(_, best)| found.makespan() < best.makespan()) {
            self.best = Some((kind, found));
        }
    }

    /// Evaluates eviction sets of these kinds, as long as operators wait for copies; of a time-aware kind several, each with the pace of
    /// the previous schedule.
    fn look_at(&mut self, kinds: &[Kind]) -> Result<(), DoesNotFit> {
        let &mut Search { problem, uses, budget, .. } = self;
        for &kind in kinds {
            let Kind { manner, piece } = kind;
            let mut pace = problem.computing_nanos();
            for _ in 0..if manner == Manner::InTime { PACES.get() } else { 1 } {
                if self.best.as_ref().is_some_and(|(_, best)| best.makespan() == problem.compute_nanos()) {
                    return Ok(());
                }
                let cover = if manner == Manner::InTime {
                    Cover::in_time(problem, uses, budget, piece, &pace)?
                } else {
                    Cover::new(problem, uses, budget, piece, manner)?
                };
                let found = schedule(problem, uses, budget, &cover.absences())?;
                let before = std::mem::replace(&mut pace, found.pace(problem));
                self.compare(kind, found);
                if before == pace {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The piece size for which `count` pieces make up the peak.
pub fn piece_bytes(problem: &Problem, count: u64) -> u64 {
    let peak = problem.live_bytes().into_iter().max().unwrap_or(0);
    (peak / count).max(SMALLEST_PIECE.get())
}
