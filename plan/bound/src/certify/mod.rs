//! Checks that a certificate proves its claim.
//!
//! Small and slow on purpose, and without any code of the searches: everything is derived from the problem's operators.

mod lanes;
mod prices;
mod there;
mod trade;

use lmsc_schedule::problem::{Duplex, Problem};
use there::There;
use trade::Trade;

use super::lanes::computing;
use super::{Certificate, CopyInterval, Fact, Proof, StepPlace, Way};

/// The reason why a certificate proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotProven {
    /// The problem has no such place.
    #[error("{0:?} is no place of the problem")]
    Place(StepPlace),
    /// The places of the link are not in order.
    #[error("{0:?} says nothing about copies between these places")]
    Link(CopyInterval),
    /// The fact is at a position where it proves nothing.
    #[error("{0:?} is out of order, or says nothing about this place or these plans")]
    Fact(Fact),
    /// The intervals do not include all cases of the operator.
    #[error("the cases do not cover what can be computed again at operator {0}")]
    Intervals(u32),
    /// The prices are out of order or above their limits.
    #[error("the prices at {0} are out of order, or too high")]
    Prices(u32),
    /// The operator need not wait for the one before it in the chain.
    #[error("operator {0} need not wait for the operator before it in the chain")]
    Chain(u32),
    /// The proven bound is less than the claimed one.
    #[error("the certificate claims {claimed} ns and proves {proven} ns")]
    Less {
        /// Nanoseconds.
        claimed: u64,
        /// Nanoseconds.
        proven: u64,
    },
}

/// The nanoseconds that the certificate claims, if it proves them for this problem and budget.
///
/// # Errors
/// [`NotProven`] gives the defect.
pub fn certify(problem: &Problem, budget: u64, certificate: &Certificate) -> Result<u64, NotProven> {
    let proven = match &certificate.proof {
        Proof::Chain { ticks } => lanes::chain(problem, ticks)?,
        proof if problem.has_lanes() => proven(&computing(problem), budget, proof)?,
        proof => proven(problem, budget, proof)?,
    };
    match certificate.nanos {
        claimed if u128::from(claimed) <= proven => Ok(claimed),
        claimed => Err(NotProven::Less { claimed, proven: proven.try_into().unwrap_or(u64::MAX) }),
    }
}

/// The nanoseconds that the proof shows.
///
/// # Errors
/// [`NotProven`] gives the reason why it shows nothing.
pub(super) fn proven(problem: &Problem, budget: u64, proof: &Proof) -> Result<u128, NotProven> {
    match proof {
        Proof::Paper { at } => paper(problem, budget, *at),
        Proof::Swap { facts } => {
            Reach::of(problem, budget, Plans::Swap, Way::Out, Row::Step, facts)?.until(StepPlace::End)
        }
        Proof::Around { tick, facts } => {
            from(problem, StepPlace::Op(*tick))?;
            let mut reach = Reach::of(problem, budget, Plans::Swap, Way::Out, Row::Around(*tick), facts)?;
            Ok(reach.at(problem.ops.len() + 2))
        }
        Proof::Chain { ticks } => lanes::chain(problem, ticks),
        Proof::Prices { memory, out, back } => prices::proven(problem, budget, memory, out, back),
        Proof::Whole { at, before, after } => {
            let mut starts = Reach::of(problem, budget, Plans::Whole, Way::Out, Row::Step, before)?;
            let mut lasts = Reach::of(problem, budget, Plans::Whole, Way::In, Row::Step, after)?;
            Ok(starts.until(*at)? + lasts.beyond(*at)?)
        }
        Proof::Joint { at, before, after, intervals } => {
            let mut starts = Reach::of(problem, budget, Plans::Joint, Way::Out, Row::Step, before)?;
            let mut lasts = Reach::of(problem, budget, Plans::Joint, Way::In, Row::Step, after)?;
            match *at {
                StepPlace::Op(tick) if !intervals.is_empty() => {
                    from(problem, *at)?;
                    Trade::of(problem, budget, tick, &mut starts, &mut lasts)?.least(intervals)
                }
                _ => Ok(starts.until(*at)? + lasts.beyond(*at)?),
            }
        }
    }
}

fn paper(problem: &Problem, budget: u64, at: Option<StepPlace>) -> Result<u128, NotProven> {
    let Some(at) = at else { return Ok(problem.ops.iter().map(|op| u128::from(op.nanos)).sum()) };
    let there = There::of(problem, budget, at, Plans::Swap, Row::Step)?;
    let out = there.nanos(problem, Way::Out, |_| true);
    let back = there.nanos(problem, Way::In, |_| true);
    Ok(if problem.link.duplex == Duplex::Half { out + back } else { out.max(back) })
}

/// The number of operators that have run before the place.
fn from(problem: &Problem, place: StepPlace) -> Result<usize, NotProven> {
    match place {
        StepPlace::Start => Ok(0),
        StepPlace::Op(tick) if (tick as usize) < problem.ops.len() => Ok(tick as usize),
        StepPlace::Op(_) => Err(NotProven::Place(place)),
        StepPlace::End => Ok(problem.ops.len()),
    }
}

/// The number of operators that have run when the place is over.
fn until(problem: &Problem, place: StepPlace) -> Result<usize, NotProven> {
    from(problem, place).map(|before| before + usize::from(matches!(place, StepPlace::Op(_))))
}

/// The sequence of places that a proof refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    /// The places of a step.
    Step,
    /// The places from the operator of a tick to the same one in the next step.
    Around(u32),
}

impl Row {
    /// The number of places before it in the row.
    fn index(self, problem: &Problem, place: StepPlace) -> Result<usize, NotProven> {
        let in_step = until(problem, place)? + usize::from(place == StepPlace::End);
        Ok(match self {
            Row::Step => in_step,
            Row::Around(tick) => {
                let places = problem.ops.len() + 2;
                (in_step + places - (tick as usize + 1)) % places
            }
        })
    }

    /// The same for a place at which something ends: the row's first place is also its last.
    fn end(self, problem: &Problem, place: StepPlace) -> Result<usize, NotProven> {
        match self {
            Row::Around(tick) if place == StepPlace::Op(tick) => Ok(problem.ops.len() + 2),
            _ => self.index(problem, place),
        }
    }
}

/// The least time between the end of one place of the link and the start of the other.
fn link_nanos(
    problem: &Problem,
    budget: u64,
    link: CopyInterval,
    plans: Plans,
    row: Row,
) -> Result<u128, NotProven> {
    let CopyInterval { way, at, after, before } = link;
    let there = There::of(problem, budget, at, plans, row)?;
    let [first, last] = [row.index(problem, after)?, row.end(problem, before)?];
    let index = |place| row.index(problem, place).expect("a place of the problem");
    match way {
        Way::Out
            if at == before || row == Row::Step && (at, before) == (StepPlace::Start, StepPlace::End) =>
        {
            Ok(there.nanos(problem, way, |release| index(release) >= first))
        }
        Way::In if at == after || row == Row::Step && (at, after) == (StepPlace::End, StepPlace::Start) => {
            // Copies due when the row's first operator runs again are due at the end of the row.
            let due_by = |due| row.end(problem, due).expect("a place of the problem") <= last;
            Ok(there.nanos(problem, way, due_by))
        }
        _ => Err(NotProven::Link(link)),
    }
}

/// A [`Fact::Whole`] of finer resolution than this would take too long to check.
const MOST_STATES: u64 = 1 << 16;

/// The plans that a certificate is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plans {
    /// Plans that only swap.
    Swap,
    /// Plans that only swap whole tensors.
    Whole,
    /// Plans that also recompute: recomputable tensors may be absent at no cost.
    Joint,
}

/// Lower bounds on the time from the start of a step to the start of a place, or from the end of a place to the end of the
/// step.
struct Reach<'a> {
    problem: &'a Problem,
    budget: u64,
    plans: Plans,
    /// [`Way::Out`] for the former, [`Way::In`] for the latter.
    way: Way,
    /// The sequence of places; that of a step if it is seen from its end.
    row: Row,
    /// For each place, counted in the direction: from the start, or from the end.
    nanos: Vec<u128>,
}

impl Reach<'_> {
    /// The bounds that the facts show; the place of each fact must not precede that of the previous one.
    fn of<'a>(
        problem: &'a Problem,
        budget: u64,
        plans: Plans,
        way: Way,
        row: Row,
        facts: &[Fact],
    ) -> Result<Reach<'a>, NotProven> {
        let mut reach = Reach { problem, budget, plans, way, row, nanos: vec![0] };
        for &fact in facts {
            let about = reach.end(match (fact, way) {
                (Fact::Link(link), Way::Out) => link.before,
                (Fact::Link(link), Way::In) => link.after,
                // Tensors absent at the start are copied out before the end; tensors absent at the end are copied in after
                // the start.
                (Fact::Whole { at: StepPlace::Start, .. }, Way::Out) => StepPlace::End,
                (Fact::Whole { at: StepPlace::End, .. }, Way::In) => StepPlace::Start,
                (Fact::Whole { at, .. }, _) => at,
            })?;
            if about + 1 < reach.nanos.len() {
                return Err(NotProven::Fact(fact));
            }
            let shown = match fact {
                Fact::Link(link) => {
                    let from = reach.index(if way == Way::Out { link.after } else { link.before })?;
                    if from >= about {
                        return Err(NotProven::Fact(fact));
                    }
                    reach.at(from) + reach.runs(from) + link_nanos(problem, budget, link, plans, row)?
                }
                Fact::Whole { at, quantum } if plans == Plans::Whole => reach.whole(at, quantum)?,
                Fact::Whole { .. } => return Err(NotProven::Fact(fact)),
            };
            reach.nanos[about] = reach.at(about).max(shown);
        }
        Ok(reach)
    }

    /// The number of places on this side of the place.
    fn index(&self, place: StepPlace) -> Result<usize, NotProven> {
        let index = self.row.index(self.problem, place)?;
        Ok(if self.way == Way::Out { index } else { self.problem.ops.len() + 1 - index })
    }

    /// The same for a place at which something ends.
    fn end(&self, place: StepPlace) -> Result<usize, NotProven> {
        if self.way == Way::Out { self.row.end(self.problem, place) } else { self.index(place) }
    }

    /// The duration of the place with this index.
    fn runs(&self, index: usize) -> u128 {
        let ops = self.problem.ops.len();
        let tick = match (self.row, self.way) {
            (Row::Around(tick), _) => ((tick as usize + 1 + index) % (ops + 2)).checked_sub(1),
            (Row::Step, Way::Out) => index.checked_sub(1),
            (Row::Step, Way::In) => ops.checked_sub(index),
        };
        tick.and_then(|tick| self.problem.ops.get(tick)).map_or(0, |op| u128::from(op.nanos))
    }

    /// The bound for the place with this index, from the facts so far and the operators.
    fn at(&mut self, index: usize) -> u128 {
        while self.nanos.len() <= index {
            let last = self.nanos.len() - 1;
            self.nanos.push(self.nanos[last] + self.runs(last));
        }
        self.nanos[index]
    }

    /// The bound from this side of the step to the other end of the place.
    fn until(&mut self, place: StepPlace) -> Result<u128, NotProven> {
        let index = self.index(place)?;
        Ok(self.at(index) + self.runs(index))
    }

    /// The bound from this side of the step to the place.
    fn beyond(&mut self, place: StepPlace) -> Result<u128, NotProven> {
        self.index(place).map(|index| self.at(index))
    }

    /// The least time in which all tensors but those that fit are copied, as whole tensors, for the best set of these.
    fn whole(&mut self, at: StepPlace, quantum: u64) -> Result<u128, NotProven> {
        let there = There::of(self.problem, self.budget, at, self.plans, self.row)?;
        let mut items = Vec::new();
        for away in &there.away {
            if let Some(limit) = if self.way == Way::Out { away.release } else { away.due } {
                items.push((self.index(limit)?, away.bytes));
            }
        }
        // The latest limit first.
        items.sort_unstable_by_key(|&(index, bytes)| (std::cmp::Reverse(index), bytes));
        let bytes: u64 = items.iter().map(|&(_, bytes)| bytes).sum();
        let (stays, moves, quantum) = (there.fits, bytes.saturating_sub(there.fits), quantum.max(1));
        // By resident or copied quanta, whichever are fewer: the completion time of the copies so far, and their sum.
        let counts_stays = stays < moves;
        let states = if counts_stays { stays / quantum } else { moves.div_ceil(quantum) };
        if states > MOST_STATES {
            return Err(NotProven::Fact(Fact::Whole { at, quantum }));
        }
        let states = states as usize;
        let mut best: Vec<Option<(u128, u128)>> = vec![None; states + 1];
        best[0] = Some((0, 0));
        for (index, bytes) in items {
            let from = self.at(index) + self.runs(index);
            let copy = copy_nanos(self.problem, self.way, bytes, 1);
            let quanta = if counts_stays { bytes / quantum } else { bytes.div_ceil(quantum) };
            let mut next: Vec<Option<(u128, u128)>> = vec![None; states + 1];
            let mut reach = |state: usize, done: u128, sum: u128| {
                let (best_done, best_sum) = next[state].unwrap_or((done, sum));
                next[state] = Some((best_done.min(done), best_sum.min(sum)));
            };
            for (state, &before) in best.iter().enumerate() {
                let Some((done, sum)) = before else { continue };
                let counted = (state as u64).saturating_add(quanta);
                let (to_move, to_stay) = if counts_stays {
                    (Some(state), (counted <= states as u64).then_some(counted as usize))
                } else {
                    (Some(counted.min(states as u64) as usize), Some(state))
                };
                to_move.into_iter().for_each(|to| reach(to, done.max(from + sum + copy), sum + copy));
                to_stay.into_iter().for_each(|to| reach(to, done, sum));
            }
            best = next;
        }
        let least = if counts_stays { best.into_iter().flatten().min() } else { best.pop().flatten() };
        Ok(least.map_or(0, |(done, _)| done))
    }
}

/// The duration of copying this number of bytes in this number of copies.
fn copy_nanos(problem: &Problem, way: Way, bytes: u64, copies: u64) -> u128 {
    let link = problem.link;
    let bytes_per_second = match way {
        Way::Out => link.out_bytes_per_second,
        Way::In => link.in_bytes_per_second,
    };
    u128::from(copies) * u128::from(link.latency_nanos)
        + (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(bytes_per_second.max(1)))
}
