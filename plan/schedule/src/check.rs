//! Checks that a schedule is valid, from its times alone.

use cranelift_entity::SecondaryMap;

use super::{Instruction, PieceId, Schedule, Step};
use crate::problem::{Duplex, MOST_LANES, Problem, ProblemError, TensorId};

/// A defect of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Flaw {
    #[error(
        "the steps run other operators than the problem's, each once and in the order of its lane, at step {0}"
    )]
    Order(usize),
    #[error("{what} takes {found} ns; it should take {expected} ns")]
    Duration { what: Instruction, found: u64, expected: u64 },
    #[error("{0} and {1} share an engine and overlap")]
    Engine(Instruction, Instruction),
    #[error("{0} is no range of bytes of its tensor, or shares some with another piece")]
    Piece(PieceId),
    #[error("operator {tick} uses {tensor}, of which some bytes are not on the device then")]
    Absent { tick: u32, tensor: TensorId },
    #[error(
        "operator {tick} uses {tensor} before an operator of another lane has ended that it must wait for"
    )]
    Early { tick: u32, tensor: TensorId },
    #[error(transparent)]
    Held(#[from] ProblemError),
    #[error("{0} copies bytes that are not there, or not yet, or no longer what they were")]
    Copy(Instruction),
    #[error("{0} is a variable, and not in one place between steps, or travels in ranges from the device")]
    Place(TensorId),
    #[error("{0} is not where the end of the step, or the start of the next, needs it")]
    End(TensorId),
    #[error("{found} bytes are allocated at {at} ns; the budget is {budget}")]
    Budget { at: u64, found: u64, budget: u64 },
}

/// The most bytes allocated at once, if the schedule is valid within the budget.
///
/// Independent of how schedules are made: the location of each byte follows from the times of the steps. A range of bytes is
/// allocated from the start of its producer, or of the copy that brings it, to the end of the last step that touches it
/// before the next such copy. Events at the same time happen in the plan's order; an operator of duration zero needs its
/// memory all the same.
///
/// # Errors
/// The first [`Flaw`] found.
pub fn check(problem: &Problem, schedule: &Schedule, budget: u64) -> Result<u64, Flaw> {
    durations(problem, schedule)?;
    check_however_long(problem, schedule, budget)
}

/// [`check`] for a schedule whose steps may take other times than planned.
///
/// # Errors
/// The first [`Flaw`] found.
pub fn check_however_long(problem: &Problem, schedule: &Schedule, budget: u64) -> Result<u64, Flaw> {
    peak(held(problem, schedule)?, budget)
}

/// The allocations over time, if the schedule is valid regardless of the budget and of the durations of its steps: see
/// [`check`].
///
/// # Errors
/// The first [`Flaw`] found.
pub fn held(problem: &Problem, schedule: &Schedule) -> Result<Vec<Held>, Flaw> {
    problem.check_reductions()?;
    let pieces = pieces(problem, schedule)?;
    let ops = operators(problem, schedule)?;
    engines(problem, schedule)?;
    let mut copies: SecondaryMap<PieceId, Vec<Touch>> = SecondaryMap::new();
    for (step, position) in schedule.steps.iter().zip(1..) {
        let (piece, what) = match step.instruction {
            Instruction::Op(_) => continue,
            Instruction::Out(piece) => (piece, What::Out(piece)),
            Instruction::In(piece) => (piece, What::In(piece)),
        };
        copies[piece].push(Touch { start: (step.start, position), end: (step.end, position), what });
    }
    let mut uses: SecondaryMap<TensorId, Vec<Touch>> = SecondaryMap::new();
    let mut memory = Vec::new();
    for ((op, &(start, end)), tick) in problem.ops.iter().zip(&ops).zip(0..) {
        let mut add = |tensor, changes| {
            uses[tensor].push(Touch { start, end, what: What::Use { tick, changes } });
        };
        op.reads.iter().for_each(|&t| add(t, op.changes.contains(&t)));
        op.produces.iter().for_each(|&t| add(t, true));
        memory.push(Held { tensor: None, start, end, bytes: op.workspace });
    }
    let end = (schedule.makespan(), u32::MAX);
    for (tensor, facts) in &problem.tensors {
        let (mut stays, mut on_host) = (facts.bytes, 0);
        for &piece in &pieces[tensor] {
            let touches: Vec<Touch> = uses[tensor].iter().chain(&copies[piece]).copied().collect();
            let bytes = schedule.pieces[piece].len();
            let first = touches.iter().min_by_key(|touch| touch.start);
            match first.map(|touch| touch.what) {
                Some(What::In(_)) => on_host += bytes,
                _ if facts.is_variable() && !copies[piece].is_empty() && bytes < facts.bytes => {
                    return Err(Flaw::Place(tensor));
                }
                _ => {}
            }
            memory.extend(presences(problem, tensor, bytes, touches, end)?);
            stays -= bytes;
        }
        memory.extend(presences(problem, tensor, stays, uses[tensor].clone(), end)?);
        if facts.is_variable() && on_host > 0 && on_host < facts.bytes {
            return Err(Flaw::Place(tensor));
        }
    }
    Ok(memory)
}

/// A time in nanoseconds, and the position in the plan's order among events at that time, from 1; 0 is before all.
pub type EventTime = (u64, u32);

/// A step that needs a range of bytes on the device.
#[derive(Clone, Copy)]
struct Touch {
    start: EventTime,
    end: EventTime,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    In(PieceId),
    Out(PieceId),
    Use { tick: u32, changes: bool },
}

/// Bytes that are allocated for an interval of time.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The tensor; none for the workspace of an operator.
    pub tensor: Option<TensorId>,
    /// Start of the interval.
    pub start: EventTime,
    /// End of the interval.
    pub end: EventTime,
    /// Size in bytes.
    pub bytes: u64,
}

/// For each tensor, its pieces. They must be disjoint ranges of the bytes of swappable tensors.
fn pieces(problem: &Problem, schedule: &Schedule) -> Result<SecondaryMap<TensorId, Vec<PieceId>>, Flaw> {
    let mut pieces: SecondaryMap<TensorId, Vec<PieceId>> = SecondaryMap::new();
    for (id, piece) in &schedule.pieces {
        let known = problem.tensors.get(piece.tensor).filter(|facts| facts.swappable);
        if known.is_none_or(|facts| piece.is_empty() || piece.bytes.end > facts.bytes) {
            return Err(Flaw::Piece(id));
        }
        pieces[piece.tensor].push(id);
    }
    for tensor in problem.tensors.keys() {
        let range = |piece: PieceId| &schedule.pieces[piece].bytes;
        pieces[tensor].sort_by_key(|&p| range(p).start);
        if let Some(pair) = pieces[tensor].windows(2).find(|pair| range(pair[1]).start < range(pair[0]).end) {
            return Err(Flaw::Piece(pair[1]));
        }
    }
    match schedule.steps.iter().find_map(|step| match step.instruction {
        Instruction::Out(p) | Instruction::In(p) if !schedule.pieces.is_valid(p) => Some(p),
        _ => None,
    }) {
        Some(unknown) => Err(Flaw::Piece(unknown)),
        None => Ok(pieces),
    }
}

/// For each tick, the start and the end of its operator.
fn operators(problem: &Problem, schedule: &Schedule) -> Result<Vec<(EventTime, EventTime)>, Flaw> {
    let mut ops: Vec<Option<(EventTime, EventTime)>> = vec![None; problem.ops.len()];
    // For each lane, the tick of its last operator, and the end.
    let mut lanes: [Option<(u32, u64)>; MOST_LANES] = [None; MOST_LANES];
    for (step, position) in schedule.steps.iter().zip(1..) {
        if let Instruction::Op(tick) = step.instruction {
            let wrong = Flaw::Order(position as usize - 1);
            let Some(op) = problem.ops.get(tick as usize) else { return Err(wrong) };
            let last = lanes[usize::from(op.lane)].replace((tick, step.end));
            // Operators of duration zero could be exchanged unnoticed if only times were compared.
            if last.is_some_and(|(before, end)| tick <= before || step.start < end) {
                return Err(wrong);
            }
            ops[tick as usize] = Some(((step.start, position), (step.end, position)));
        }
    }
    let all: Option<Vec<(EventTime, EventTime)>> = ops.into_iter().collect();
    all.ok_or(Flaw::Order(schedule.steps.len()))
}

/// Checks that every step has the expected duration.
fn durations(problem: &Problem, schedule: &Schedule) -> Result<(), Flaw> {
    for step in &schedule.steps {
        let expected = match step.instruction {
            Instruction::Op(tick) => problem.ops.get(tick as usize).map(|op| op.nanos),
            Instruction::Out(p) => schedule.pieces.get(p).map(|piece| problem.link.out_nanos(piece.len())),
            Instruction::In(p) => schedule.pieces.get(p).map(|piece| problem.link.in_nanos(piece.len())),
        };
        let found = step.end.wrapping_sub(step.start);
        // An unknown operator or piece is reported as another flaw.
        if let Some(expected) = expected.filter(|&expected| expected != found) {
            return Err(Flaw::Duration { what: step.instruction, found, expected });
        }
    }
    Ok(())
}

/// Checks that no engine runs two steps at once and that no step ends before it starts.
fn engines(problem: &Problem, schedule: &Schedule) -> Result<(), Flaw> {
    let mut engines: [Vec<Step>; 2] = Default::default();
    for &step in &schedule.steps {
        if step.end < step.start {
            let found = step.end.wrapping_sub(step.start);
            return Err(Flaw::Duration { what: step.instruction, found, expected: 0 });
        }
        match step.instruction {
            Instruction::In(_) if problem.link.duplex == Duplex::Full => engines[1].push(step),
            Instruction::In(_) | Instruction::Out(_) => engines[0].push(step),
            Instruction::Op(_) => {}
        }
    }
    for steps in &mut engines {
        steps.sort_by_key(|step| step.start);
        if let Some(pair) = steps.windows(2).find(|pair| pair[1].start < pair[0].end) {
            return Err(Flaw::Engine(pair[0].instruction, pair[1].instruction));
        }
    }
    Ok(())
}

/// The intervals in which a range of `bytes` bytes of the tensor is allocated; empty for a range of no bytes.
///
/// `end` is the end of the step.
fn presences(
    problem: &Problem,
    tensor: TensorId,
    bytes: u64,
    mut touches: Vec<Touch>,
    end: EventTime,
) -> Result<Vec<Held>, Flaw> {
    let mut presences: Vec<Held> = Vec::new();
    if bytes == 0 {
        return Ok(presences);
    }
    let facts = problem.tensors[tensor];
    touches.sort_by_key(|touch| touch.start);
    let comes_first = touches.first().is_some_and(|touch| matches!(touch.what, What::In(_)));
    let starts_on_host = facts.given && facts.kept && comes_first;
    // Since when the bytes can be read; none while they are not on the device.
    let mut ready: Option<u64> = None;
    if facts.given && !starts_on_host {
        ready = Some(0);
        presences.push(Held { tensor: Some(tensor), start: (0, 0), end: (0, 0), bytes });
    }
    // Since when the host has a valid copy; when the bytes last changed; when their last copy out ends.
    let mut host: Option<u64> = starts_on_host.then_some(0);
    let (mut changed, mut leaving) = (0, 0);
    let mut order = InOrder::default();
    for touch in touches {
        let start = touch.start.0;
        match touch.what {
            What::In(piece) => {
                if host.is_none_or(|since| start < since) {
                    return Err(Flaw::Copy(Instruction::In(piece)));
                }
                ready = Some(touch.end.0);
                presences.push(Held { tensor: Some(tensor), start: touch.start, end: touch.end, bytes });
            }
            What::Out(piece) => {
                if ready.is_none_or(|since| start < since.max(changed)) {
                    return Err(Flaw::Copy(Instruction::Out(piece)));
                }
                (host, leaving) = (Some(touch.end.0), touch.end.0);
            }
            What::Use { tick, changes } => {
                if !order.follows(&touch, tick, changes) {
                    return Err(Flaw::Early { tick, tensor });
                }
                if ready.is_none() && changes && !facts.given {
                    ready = Some(start);
                    presences.push(Held { tensor: Some(tensor), start: touch.start, end: touch.end, bytes });
                }
                if ready.is_none_or(|since| start < since) || (changes && start < leaving) {
                    return Err(Flaw::Absent { tick, tensor });
                }
                if changes {
                    (host, changed) = (None, touch.end.0);
                }
            }
        }
        if let Some(last) = presences.last_mut() {
            last.end = last.end.max(touch.end);
        }
    }
    if facts.kept && !starts_on_host {
        presences.last_mut().ok_or(Flaw::End(tensor))?.end = end;
    } else if facts.kept && host.is_none() {
        return Err(Flaw::End(tensor));
    }
    Ok(presences)
}

/// The uses of a range so far, by the times at which they start.
#[derive(Default)]
struct InOrder {
    /// The last operator that wrote the bytes: its tick, its end, and its position in the plan's order.
    wrote: Option<(u32, EventTime)>,
    /// Of the operators that read them since: the last tick, and the last end.
    read: Option<(u32, EventTime)>,
}

impl InOrder {
    /// Whether the next use finds the bytes as they are at its place in the order of operators, whatever their lanes, and
    /// leaves them to earlier operators for as long as these read them.
    fn follows(&mut self, touch: &Touch, tick: u32, writes: bool) -> bool {
        let is_after = |before: Option<(u32, EventTime)>| {
            before.is_none_or(|(earlier, end)| {
                earlier < tick && end.0 <= touch.start.0 && end.1 < touch.start.1
            })
        };
        let follows = is_after(self.wrote) && (!writes || is_after(self.read));
        if writes {
            *self = InOrder { wrote: Some((tick, touch.end)), read: None };
        } else {
            let (last, end) = self.read.unwrap_or((tick, touch.end));
            self.read = Some((last.max(tick), (end.0.max(touch.end.0), end.1.max(touch.end.1))));
        }
        follows
    }
}

/// The largest sum of bytes at any time.
fn peak(memory: Vec<Held>, budget: u64) -> Result<u64, Flaw> {
    let mut events: Vec<(EventTime, bool, u64)> = Vec::with_capacity(2 * memory.len());
    for Held { start, end, bytes, .. } in memory.into_iter().filter(|held| held.bytes > 0) {
        events.push((start, false, bytes));
        events.push((end, true, bytes));
    }
    events.sort_unstable();
    let (mut now, mut peak) = (0u64, 0);
    for ((at, _), frees, bytes) in events {
        now = if frees { now - bytes } else { now.saturating_add(bytes) };
        peak = peak.max(now);
        if now > budget {
            return Err(Flaw::Budget { at, found: now, budget });
        }
    }
    Ok(peak)
}
