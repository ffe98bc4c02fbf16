//! Lanes of operators: the engine that runs a step, and the operators of another lane for which one waits.
//!
//! A lane is an engine of the target that runs operators in their order, beside the other lanes and beside the copies:
//! collectives of several ranks on a lane of their own, say. The order of the operators decides which of them come first:
//! an operator reads its operands as they are at its place in that order, whichever lane changes them.
//!
//! An operator outside [`COMPUTE`] that may not run again is a *reduction*. It starts as soon as its operands are there, and
//! holds them until its *wait*, the first operator of another lane that touches one of its results. So the wait reads these
//! operands, too, and they never leave: [`Problem::check`] makes sure of both.

use cranelift_entity::SecondaryMap;

use crate::Instruction;
use crate::problem::{COMPUTE, Duplex, MOST_LANES, Operator, Problem, ProblemError, TensorId};

/// Maximum number of engines: compute, out, in, and the further lanes of operators, in this order.
pub const ENGINES: usize = MOST_LANES + 2;

/// The number of the engine of copies to the host.
pub(crate) const OUT: usize = 1;

/// The number of the engine of copies to the device, unless it is the same.
pub(crate) const IN: usize = 2;

/// The number of engines of the problem: at least 3, and at most [`ENGINES`].
pub fn engines(problem: &Problem) -> usize {
    problem.lanes.len() + 2
}

/// The number of the engine that runs the step: 0 computes, 1 copies out, 2 copies in, the others are further lanes.
pub fn engine_of(problem: &Problem, instruction: Instruction) -> usize {
    match instruction {
        Instruction::Op(tick) => match problem.ops[tick as usize].lane {
            COMPUTE => 0,
            lane => IN + usize::from(lane),
        },
        Instruction::In(_) if problem.link.duplex == Duplex::Full => IN,
        Instruction::In(_) | Instruction::Out(_) => OUT,
    }
}

/// Whether the engine of this number makes copies.
pub(crate) fn copies(engine: usize) -> bool {
    engine == OUT || engine == IN
}

/// Something for each lane.
pub(crate) type ByLane<T> = [T; MOST_LANES];

/// The first of these ticks, or of the ticks of each lane if there are several.
pub(crate) fn first_of_each(problem: &Problem, ticks: impl Iterator<Item = u32>) -> ByLane<Option<u32>> {
    let mut first: ByLane<Option<u32>> = ByLane::default();
    for tick in ticks {
        let lane = usize::from(problem.ops[tick as usize].lane);
        first[lane] = first[lane].or(Some(tick));
        if !problem.has_lanes() {
            break;
        }
    }
    first
}

/// The last uses of the bytes of a tensor, as operators are seen in their order.
#[derive(Clone, Copy, Default)]
struct LastUses {
    wrote: Option<u32>,
    /// For each lane, the last operator that read the bytes since they were written.
    read: ByLane<Option<u32>>,
}

/// The operators of other lanes for which operators wait.
pub struct Waits<'a> {
    problem: &'a Problem,
    last: SecondaryMap<TensorId, LastUses>,
}

impl<'a> Waits<'a> {
    /// Before the first operator.
    pub fn new(problem: &'a Problem) -> Waits<'a> {
        Waits { problem, last: SecondaryMap::new() }
    }

    /// The ticks for which the operator of this tick waits, beside the one before it on its lane: those that wrote its
    /// operands, and if it changes some, those that read them before. Expects every tick in turn; ascending, each once.
    pub fn of(&mut self, tick: u32) -> Vec<u32> {
        let op = &self.problem.ops[tick as usize];
        let lane_of = |tick: u32| self.problem.ops[tick as usize].lane;
        let mut waits = Vec::new();
        for &tensor in &op.reads {
            let last = &mut self.last[tensor];
            waits.extend(last.wrote);
            if op.changes.contains(&tensor) {
                waits.extend(last.read.into_iter().flatten());
                *last = LastUses { wrote: Some(tick), ..LastUses::default() };
            } else {
                last.read[usize::from(op.lane)] = Some(tick);
            }
        }
        op.produces.iter().for_each(|&tensor| self.last[tensor].wrote = Some(tick));
        waits.retain(|&before| lane_of(before) != op.lane);
        waits.sort_unstable();
        waits.dedup();
        waits
    }
}

impl Problem {
    /// Whether there are lanes of operators beside [`COMPUTE`].
    pub fn has_lanes(&self) -> bool {
        self.lanes.len() > 1
    }

    /// The duration of the step without a memory limit: each operator starts as soon as the one before it on its lane has ended,
    /// and those of other lanes for which it waits. Without lanes, the time of all operators.
    pub fn unlimited_nanos(&self) -> u64 {
        let (mut waits, mut free) = (Waits::new(self), ByLane::<u64>::default());
        let mut ends: Vec<u64> = Vec::with_capacity(self.ops.len());
        for (op, tick) in self.ops.iter().zip(0..) {
            let ready = waits.of(tick).into_iter().map(|before| ends[before as usize]).max().unwrap_or(0);
            let lane = &mut free[usize::from(op.lane)];
            *lane = ready.max(*lane).saturating_add(op.nanos);
            ends.push(*lane);
        }
        free.into_iter().max().unwrap_or(0)
    }

    /// The same operators in the same order, all of them on [`COMPUTE`]. A schedule of this problem is one of the problem.
    /// Operands of reductions stay as they are until the wait: their producers do not run again.
    pub fn on_one_lane(&self) -> Problem {
        let mut problem = self.clone();
        let held: Vec<TensorId> =
            self.ops.iter().filter(|op| op.is_reduction()).flat_map(|op| op.reads.iter().copied()).collect();
        for op in &mut problem.ops {
            let lane = &self.lanes[usize::from(std::mem::replace(&mut op.lane, COMPUTE))];
            op.recomputable &= lane.repeats && !op.produces.iter().any(|tensor| held.contains(tensor));
        }
        problem.lanes.truncate(1);
        problem
    }

    /// The ticks of reductions and of their waits; a reduction whose results nobody reads has none.
    pub fn reductions(&self) -> Vec<(u32, Option<u32>)> {
        let mut reductions = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        if !self.has_lanes() {
            return reductions;
        }
        for (op, tick) in self.ops.iter().zip(0..) {
            open.retain(|&at| {
                let (reduction, wait): &mut (u32, Option<u32>) = &mut reductions[at];
                let reduction = &self.ops[*reduction as usize];
                let mut results = reduction.produces.iter().chain(&reduction.changes);
                let is_wait = op.lane != reduction.lane && results.any(|t| op.reads.contains(t));
                *wait = is_wait.then_some(tick);
                !is_wait
            });
            if op.is_reduction() {
                open.push(reductions.len());
                reductions.push((tick, None));
            }
        }
        reductions
    }

    /// Checks that reductions hold their operands until their waits.
    pub(crate) fn check_reductions(&self) -> Result<(), ProblemError> {
        for (tick, wait) in self.reductions() {
            for &tensor in &self.ops[tick as usize].reads {
                if self.tensors[tensor].swappable {
                    return Err(ProblemError::Leaves { tick: tick as usize, tensor });
                }
                if let Some(wait) = wait.filter(|&wait| !self.ops[wait as usize].reads.contains(&tensor)) {
                    return Err(ProblemError::NotHeld { tick: tick as usize, wait: wait as usize, tensor });
                }
            }
        }
        Ok(())
    }
}

impl Operator {
    /// Whether it runs beside the operators that compute and may not run again.
    pub fn is_reduction(&self) -> bool {
        self.lane != COMPUTE && !self.recomputable
    }
}
