//! The best plans that only swap: eviction sets for the moments that exceed the budget, and justification. For whole tensors,
//! the search in `whole.rs` starts from these.

use std::collections::BTreeMap;

use lmsc_bound as bound;
use lmsc_schedule::problem::{Problem, Uses, Window};
use lmsc_schedule::threads::both;
use lmsc_schedule::tuned::Tunable;
use lmsc_schedule::{CLOSE_GAP, DoesNotFit, Granularity, Plan, Request, Schedule};

use crate::ours::justified::{PARALLEL_FROM, SMALLEST_PIECE, schedule};
use crate::ours::mechanisms::{CLEAN, IN_TIME, MERGING, SMALL_LAST};
use crate::ours::split::split;
use crate::ours::swap_set::{Cover, Manner, Sizes};
use crate::ours::variables::staying_or_leaving;
use crate::ours::whole;

/// Number of pieces into which the peak is divided; during the search for recomputation, a tenth of it.
pub const PIECES: Tunable<u64> = Tunable::new(1500);

/// Maximum numbers of adjacent pieces that are merged into one if they are swapped out and in together. The best is taken: over
/// a link with latency, a few large copies may be faster than many small ones. Every third is tried, or all if the plan is far
/// from its bound.
const MERGED: Tunable<[u32; 7]> = Tunable::new([1, 2, 4, 8, 16, 32, 64]);

/// Multiples of the latency: over a link with latency, a tensor counts as small if its copy out takes less than one of these.
/// The last two are tried only if the plan is far from its bound.
const SMALL_TENSORS: Tunable<[u64; 6]> = Tunable::new([8, 20, 40, 80, 160, 400]);

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

/// A plan in which variables may be swapped out is far from its bound if it exceeds the bound by more than this, twice the gap
/// of a plan that is close. Then more sizes of pieces and of small tensors are tried, since all small tensors had better stay
/// resident there, and eviction sets that use prices, and local search.
fn far_gap(bound: u64) -> u64 {
    bound / (CLOSE_GAP.get() / 2)
}

fn is_far(found: &Schedule, bound: u64) -> bool {
    found.makespan() > bound + far_gap(bound)
}

/// The justified schedule of the eviction set that takes windows in this order.
///
/// # Errors
/// [`DoesNotFit`], as for `Cover::new`.
pub fn covered(problem: &Problem, budget: u64, piece: u64, manner: Manner) -> Result<Schedule, DoesNotFit> {
    let uses = problem.uses();
    let cover = Cover::new(problem, &uses, budget, Sizes::of(piece), manner)?;
    schedule(problem, &uses, budget, &cover.absences(1))
}

/// The best of the justified schedules of several eviction sets: two eager ones and some time-aware ones.
///
/// If copies in are slower than copies out, a third eager one runs in reversed time. Over a link with latency, further sets
/// of the best kind take small tensors last, and one takes the largest first; if variables may be swapped out and the best is
/// far from the bound, they are tried again with pieces of more sizes.
///
/// # Errors
/// [`DoesNotFit`], as for `Cover::new`.
pub fn swaps(problem: &Problem, budget: u64, piece: u64) -> Result<Schedule, DoesNotFit> {
    let covers = Covers { problem, uses: problem.uses(), budget, piece };
    let merged: Vec<u32> = MERGED.get().into_iter().step_by(3).collect();
    let mut search = Search::new(&covers, &merged);
    let kind = |manner| Kind { manner, small: 0 };
    let (eager, in_time) = ([kind(Manner::Gone), kind(Manner::Ready)], [kind(Manner::InTime)]);
    let in_time = if IN_TIME.is_on() { &in_time[..] } else { &[] };
    if problem.ops.len() < PARALLEL_FROM {
        search.look_at(&eager)?;
        search.look_at(in_time)?;
    } else {
        let mut beside = Search::new(&covers, &merged);
        let (beside, found) = both(|| beside.look_at(in_time).map(|()| beside), || search.look_at(&eager));
        found?;
        search.join(beside?);
    }
    if CLEAN.is_on() && problem.any_variable_leaves() {
        search.look_at(&[kind(Manner::Clean)])?;
    }
    if covers.cost_to_start() {
        let smaller =
            |bytes: u64| problem.tensors.values().filter(|t| t.swappable && t.bytes < bytes).count();
        let sizes = SMALL_TENSORS.get().map(|times| times.saturating_mul(problem.link.latency_bytes()));
        let (small, less_small) = sizes.split_at(sizes.len() - 2);
        let mut small = small.to_vec();
        small.retain(|&bytes| smaller(bytes) > 0);
        small.dedup_by_key(|bytes| smaller(*bytes));
        let below = |manner| move |small| Kind { manner, small };
        let small = if SMALL_LAST.is_on() { small } else { Vec::new() };
        let kinds: Vec<Kind> = small.into_iter().map(below(search.best().0.manner)).collect();
        search.look_at(&kinds)?;
        let (best, found) = search.best();
        if problem.any_variable_leaves() && is_far(found, bound::swap(problem, budget).nanos) {
            let clean = less_small.iter().copied().map(below(Manner::Clean));
            let again: Vec<Kind> = [*best].into_iter().chain(kinds).chain(clean).collect();
            (search.together, search.known) = (MERGED.get().to_vec(), BTreeMap::new());
            search.look_at(&again)?;
        }
    }
    Ok(search.best.expect("it has looked at some").1)
}

/// How an eviction set is chosen.
#[derive(Clone, Copy)]
struct Kind {
    manner: Manner,
    /// Windows of tensors with fewer bytes are taken last.
    small: u64,
}

/// The parameters shared by eviction sets of one problem.
struct Covers<'a> {
    problem: &'a Problem,
    uses: Uses,
    budget: u64,
    piece: u64,
}

impl Covers<'_> {
    fn cost_to_start(&self) -> bool {
        self.piece < u64::MAX && self.problem.link.latency_nanos > 0
    }
}

/// A search over eviction sets of one problem, kind by kind.
struct Search<'a> {
    covers: &'a Covers<'a>,
    /// Maximum numbers of adjacent pieces that are merged into one; the first is 1.
    together: Vec<u32>,
    /// The paces of eviction sets evaluated so far, by their windows: many are equal.
    known: BTreeMap<Vec<(Window, u32)>, Vec<u64>>,
    /// The fastest schedule, the first of equal ones, and the kind of its eviction set.
    best: Option<(Kind, Schedule)>,
}

impl<'a> Search<'a> {
    fn new(covers: &'a Covers<'a>, together: &[u32]) -> Search<'a> {
        Search { covers, together: together.to_vec(), known: BTreeMap::new(), best: None }
    }

    fn best(&self) -> &(Kind, Schedule) {
        self.best.as_ref().expect("it has looked at some")
    }

    fn is_done(&self) -> bool {
        let nanos = self.covers.problem.compute_nanos();
        self.best.as_ref().is_some_and(|(_, best)| best.makespan() == nanos)
    }

    fn compare(&mut self, kind: Kind, found: Schedule) {
        if self.best.as_ref().is_none_or(|(_, best)| found.makespan() < best.makespan()) {
            self.best = Some((kind, found));
        }
    }

    /// Merges the results of another search.
    fn join(&mut self, other: Search<'a>) {
        self.known.extend(other.known);
        if let Some((kind, found)) = other.best {
            self.compare(kind, found);
        }
    }

    /// Evaluates eviction sets of these kinds, as long as operators wait for copies.
    fn look_at(&mut self, kinds: &[Kind]) -> Result<(), DoesNotFit> {
        for &kind in kinds {
            if self.is_done() {
                break;
            }
            self.look_at_kind(kind)?;
        }
        Ok(())
    }

    /// Evaluates the eviction set of this kind; for a time-aware kind several, each with the pace of the previous schedule.
    fn look_at_kind(&mut self, kind: Kind) -> Result<(), DoesNotFit> {
        let &Covers { problem, ref uses, budget, piece } = self.covers;
        let sizes = Sizes { piece, small: kind.small };
        if !kind.manner.is_in_time() {
            self.look_at_cover(kind, &Cover::new(problem, uses, budget, sizes, kind.manner)?)?;
            return Ok(());
        }
        let mut pace = problem.computing_nanos();
        for _ in 0..PACES.get() {
            let cover = Cover::in_time(problem, uses, budget, sizes, kind.manner, &pace)?;
            let found = self.look_at_cover(kind, &cover)?;
            let before = std::mem::replace(&mut pace, found);
            if self.is_done() || before == pace {
                break;
            }
        }
        Ok(())
    }

    /// Evaluates the eviction set unless it is known, keeps the best schedule, and returns the pace.
    fn look_at_cover(&mut self, kind: Kind, cover: &Cover) -> Result<Vec<u64>, DoesNotFit> {
        let chosen = cover.chosen();
        if let Some(pace) = self.known.get(&chosen) {
            return Ok(pace.clone());
        }
        let found = self.schedule(cover)?;
        let pace = found.pace(self.covers.problem);
        self.known.insert(chosen, pace.clone());
        self.compare(kind, found);
        Ok(pace)
    }

    /// The best schedule of the eviction set over several degrees of merging its pieces.
    fn schedule(&self, cover: &Cover) -> Result<Schedule, DoesNotFit> {
        let &Covers { problem, ref uses, budget, piece } = self.covers;
        let mut best = schedule(problem, uses, budget, &cover.absences(self.together[0]))?;
        let more = if self.covers.cost_to_start() && MERGING.is_on() { &self.together[1..] } else { &[] };
        for &together in more {
            let found = schedule(problem, uses, budget, &cover.absences(together))?;
            let found = split(problem, budget, piece, found);
            if found.makespan() < best.makespan() {
                best = found;
            }
        }
        Ok(best)
    }
}

/// The piece size for which `count` pieces make up the peak.
pub fn piece_bytes(problem: &Problem, count: u64) -> u64 {
    let peak = problem.live_bytes().into_iter().max().unwrap_or(0);
    (peak / count).max(SMALLEST_PIECE.get())
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Phase::{Backward, Forward};
    use lmsc_schedule::check;
    use lmsc_testing::small::{op, problem, produced};

    use super::*;

    #[test]
    fn one_large_copy_goes_before_many_small_ones() {
        // The four small tensors and the large one do not fit together beside the third operator.
        let tensors = [[produced(256); 4].as_slice(), &[produced(1024), produced(2048)]].concat();
        let ops = [
            op(Forward, 100, &[], &[0, 1, 2, 3]),
            op(Forward, 100, &[], &[4]),
            op(Forward, 100, &[], &[5]),
            op(Backward, 100, &[5], &[]),
            op(Backward, 100, &[0, 1, 2, 3, 4], &[]),
        ];
        let mut problem = problem(&tensors, &ops);
        problem.link.in_bytes_per_second = 1_000_000_000;
        problem.link.out_bytes_per_second = 1_000_000_000;
        problem.link.latency_nanos = 100;
        let budget = 1024 + 2048;
        let eager = covered(&problem, budget, 4096, Manner::Gone).unwrap();
        let best = swaps(&problem, budget, 4096).unwrap();
        check(&problem, &best, budget).unwrap();
        // The four small copies take 356 ns each; the large one starts later and takes 1124 ns.
        assert_eq!((eager.pieces.len(), eager.makespan()), (4, 3248));
        assert_eq!((best.pieces.len(), best.makespan()), (1, 2748));
    }
}
