//! A plan as one total order of operators and copies, its cost, and the rules that make it valid.
//!
//! A plan chooses [`Window`]s during which pieces of tensors are swapped out ([`Absences`]). These fix the copies and their
//! dependences ([`Acts`]); a total order of all activities fixes the rest: each engine (compute, out, in, and further [`lanes`] of
//! operators) executes its activities in that order, memory is allocated in that order, and every activity starts as early as possible
//! ([`Simulator`]). Every schedule can be expressed this way: sort its steps by the times at which they allocate, and replay.
//! [`check`] shares no code with any of this.

#![forbid(unsafe_code)]

mod acts;
mod check;
mod edges;
mod justify;
pub mod lanes;
mod no_wait;
pub mod problem;
mod recover;
mod replay;
mod request;
pub mod segment_tree;
mod simulate;
#[cfg(test)]
mod tests;
pub mod threads;
pub mod tuned;
mod watch;

// A dependency on `lmsc-testing` would bring a second copy of this crate, with other types: its sources are compiled here, too.
#[cfg(test)]
extern crate self as lmsc_schedule;
#[cfg(test)]
#[path = "../../../testing/src/random.rs"]
pub mod random;
#[cfg(test)]
#[path = "../../../testing/src/small.rs"]
pub mod small;

use std::ops::Range;

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};

use crate::problem::{Problem, TensorId, Window};
use crate::tuned::Tunable;

pub use acts::{Act, ActId, Acts, BlockId, Contents, Lists, Times, last_before};
pub use check::{EventTime, Flaw, Held, check, check_however_long, held};
pub use edges::{Edge, NotInOrder, Room, edges};
pub use justify::{JUSTIFICATION_ROUNDS, justified_within, justify, justify_in_order};
pub use no_wait::no_wait;
pub use replay::{Noise, Replay, Replayed};
pub use request::{DoesNotFit, Granularity, Plan, Request, Scheduler};
pub use simulate::{Direction, Simulator, Stuck};
pub use watch::{Decision, Progress, Watch};

/// A makespan is close to its bound, or to that of a plan without addresses, if it exceeds it by at most one part in this many:
/// then a longer search could gain little.
pub const CLOSE_GAP: Tunable<u64> = Tunable::new(200);

/// A round of a search gains little if it shortens the makespan by less than one part in this many.
pub const LITTLE_GAIN: Tunable<u64> = Tunable::new(1000);

/// A search by rounds ends after this number of consecutive rounds that gain nothing, or little.
pub const IDLE_ROUNDS: Tunable<u32> = Tunable::new(2);

/// A piece of a tensor in a plan.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PieceId(u32);
entity_impl!(PieceId, "p");

/// A range of a tensor's bytes that is copied as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The tensor.
    pub tensor: TensorId,
    /// Its bytes, half-open.
    pub bytes: Range<u64>,
}

impl Piece {
    /// Size in bytes.
    pub fn len(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    /// Whether the piece has no bytes; never true.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

/// Which pieces are swapped out during which windows.
#[derive(Clone, Debug, Default)]
pub struct Absences {
    /// Disjoint ranges of tensors. A tensor that is never swapped has none.
    pub pieces: PrimaryMap<PieceId, Piece>,
    /// For each piece, its windows: disjoint, sorted by [`Window::until`], so that a window that wraps comes first.
    pub windows: SecondaryMap<PieceId, Vec<Window>>,
}

impl Absences {
    /// Splits a piece into at most `parts` pieces, each but the last of at least `smallest` bytes, at multiples of the grain.
    pub fn split(&mut self, piece: PieceId, parts: u64, (smallest, grain): (u64, u64)) {
        let Range { start, end } = self.pieces[piece].bytes;
        let size = (end - start).div_ceil(parts).max(smallest).next_multiple_of(grain);
        let mut from = start + size;
        if from >= end {
            return;
        }
        self.pieces[piece].bytes.end = from;
        let (tensor, windows) = (self.pieces[piece].tensor, self.windows[piece].clone());
        while from < end {
            let bytes = from..(from + size).min(end);
            from = bytes.end;
            let part = self.pieces.push(Piece { tensor, bytes });
            self.windows[part] = windows.clone();
        }
    }

    /// For each moment, the live bytes: see [`Problem::live_by_moment`].
    pub fn live_by_moment(&self, problem: &Problem) -> Vec<u64> {
        let mut live = problem.live_by_moment(&problem.uses());
        let mut away = vec![0i64; live.len() + 1];
        for (piece, facts) in &self.pieces {
            for range in self.windows[piece].iter().flat_map(|w| w.moments(problem.ticks())) {
                away[range.start as usize] += facts.len() as i64;
                away[range.end as usize] -= facts.len() as i64;
            }
        }
        let mut now = 0;
        for (live, away) in live.iter_mut().zip(away) {
            now += away;
            *live -= now as u64;
        }
        live
    }
}

/// An activity of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Instruction {
    /// Runs the operator of the tick.
    Op(u32),
    /// Copies the piece to the host.
    Out(PieceId),
    /// Copies the piece to the device.
    In(PieceId),
}

impl std::fmt::Display for Instruction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Instruction::Op(tick) => write!(f, "operator {tick}"),
            Instruction::Out(piece) => write!(f, "the copy of {piece} to the host"),
            Instruction::In(piece) => write!(f, "the copy of {piece} to the device"),
        }
    }
}

/// A plan with times: the result of a [`Simulator`] for [`Absences`] and an order.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// The ranges that are copied.
    pub pieces: PrimaryMap<PieceId, Piece>,
    /// Every operator once and every copy, in the plan's order.
    pub steps: Vec<Step>,
}

/// One instruction of a [`Schedule`] and when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The operator or copy.
    pub instruction: Instruction,
    /// Start time, in nanoseconds from the start of the step.
    pub start: u64,
    /// End time, exclusive.
    pub end: u64,
}

impl Schedule {
    /// The end of the last step, in nanoseconds.
    pub fn makespan(&self) -> u64 {
        self.steps.iter().map(|step| step.end).max().unwrap_or(0)
    }

    /// For each tick, the nanoseconds from the start of its operator to the start of the next one; the first interval begins with
    /// the step, the last ends with it. Those of other lanes than [`COMPUTE`](problem::COMPUTE) take none of that time.
    pub fn pace(&self, problem: &Problem) -> Vec<u64> {
        let computes = |tick: u32| problem.ops[tick as usize].lane == problem::COMPUTE;
        let of_operators = self.steps.iter().filter_map(|step| match step.instruction {
            Instruction::Op(tick) if computes(tick) => Some((tick, step.start)),
            _ => None,
        });
        let mut pace = vec![0; problem.ops.len()];
        let (mut last, mut before) = (None, 0);
        for (tick, start) in of_operators {
            if let Some(last) = last.replace(tick) {
                pace[last as usize] = start - std::mem::replace(&mut before, start);
            }
        }
        if let Some(last) = last {
            pace[last as usize] = self.makespan() - before;
        }
        pace
    }

    /// Bytes copied to the host, and bytes copied from it.
    pub fn copied_bytes(&self) -> (u64, u64) {
        self.steps.iter().fold((0, 0), |(out, back), step| match step.instruction {
            Instruction::Op(_) => (out, back),
            Instruction::Out(piece) => (out + self.pieces[piece].len(), back),
            Instruction::In(piece) => (out, back + self.pieces[piece].len()),
        })
    }
}
