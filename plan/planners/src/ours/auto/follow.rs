//! Reports of the search's progress to its observer.

use std::sync::atomic::{AtomicU64, Ordering};

use lmsc_schedule::{Decision, Plan, Request, Watch};

/// The part of a search that a request is: where variables may leave, the first half is made with variables that stay.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    WithoutVariables,
    WithVariables,
}

/// A search that is followed, or not.
pub(super) struct Follow<'a> {
    watch: Option<&'a Watch>,
    part: Part,
    /// Number of operators of the problem.
    operators: usize,
    /// The percentages of the usual number of evaluations: of the whole search, before this round, and of this round.
    all: u32,
    spent: u32,
    round: u32,
    /// Number of evaluations, and their number before this round.
    evaluated: AtomicU64,
    before: u64,
}

impl<'a> Follow<'a> {
    pub(super) fn new(request: &Request<'a>, part: Part) -> Follow<'a> {
        let all = request.effort.max(1);
        Follow {
            watch: request.watch,
            part,
            operators: request.problem.ops.len(),
            all,
            spent: 0,
            round: 0,
            evaluated: AtomicU64::new(0),
            before: 0,
        }
    }

    /// Whether someone ended the search; then no more choices are evaluated.
    pub(super) fn is_ended(&self) -> bool {
        self.watch.is_some_and(Watch::is_ended)
    }

    /// Begins a round that ends at this percentage of the usual number of evaluations.
    pub(super) fn begin(&mut self, percent: u32) {
        self.spent += self.round;
        self.round = percent - self.spent;
        self.before = *self.evaluated.get_mut();
    }

    /// Notes an evaluation.
    pub(super) fn evaluated(&self) {
        let Some(watch) = self.watch else { return };
        let number = self.evaluated.fetch_add(1, Ordering::Relaxed) + 1;
        // A round takes about as many evaluations for a percent as those before it.
        let of_round = (number - self.before) * u64::from(self.spent) * 1000 / self.before.max(1);
        self.done(watch, u64::from(self.spent) * 1000 + of_round.min(u64::from(self.round) * 990));
    }

    /// Notes the end of a round: the best plan, and a bound on all plans of this part.
    pub(super) fn end(&self, best: &Plan, bound_nanos: impl FnOnce() -> u64) {
        let Some(watch) = self.watch else { return };
        let bound_nanos = bound_nanos();
        let best_nanos = best.schedule.makespan();
        watch.decided(|| Decision::Round {
            variables_stay: self.part == Part::WithoutVariables,
            percent: self.spent + self.round,
            best_nanos,
            bound_nanos,
            recomputed: best.problem.ops.len() - self.operators,
            swapped_bytes: best.schedule.copied_bytes().0,
        });
        // A bound on plans whose variables stay is none on all plans.
        if self.part != Part::WithoutVariables {
            watch.proved(bound_nanos);
        }
        watch.found(best_nanos);
        self.done(watch, u64::from(self.spent + self.round) * 1000);
    }

    /// Notes that these thousandths of a percent of the usual number of evaluations are made.
    fn done(&self, watch: &Watch, thousandths: u64) {
        let done = (thousandths / u64::from(self.all)).min(1000) as u32;
        watch.done(match self.part {
            Part::Whole => done,
            Part::WithoutVariables => done / 2,
            Part::WithVariables => 500 + done / 2,
        });
    }
}
