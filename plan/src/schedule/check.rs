//! Whether a schedule is valid, from its times alone.

use cranelift_entity::SecondaryMap;

use super::{Instruction, PieceId, Schedule, Step};
use crate::problem::{Duplex, Problem, TensorId};

/// What is wrong with a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum Flaw {
    #[error("the steps run other operators than the problem's, each once and in its order, at step {0}")]
    Order(usize),
    #[error("{what:?} takes {found} ns; it should take {expected} ns")]
    Duration { what: Instruction, found: u64, expected: u64 },
    #[error("{0:?} and {1:?} share an engine and overlap")]
    Engine(Instruction, Instruction),
    #[error("{0} is no range of bytes of its tensor, or shares some with another piece")]
    Piece(PieceId),
    #[error("operator {tick} uses {tensor}, of which some bytes are not on the device then")]
    Absent { tick: u32, tensor: TensorId },
    #[error("{0:?} copies bytes that are not there, or not yet, or no longer what they were")]
    Copy(Instruction),
    #[error("{0} is not where the end of the step, or the start of the next, needs it")]
    End(TensorId),
    #[error("{found} bytes are allocated at {at} ns; the budget is {budget}")]
    Budget { at: u64, found: u64, budget: u64 },
}

/// The most bytes allocated at once, if the schedule is valid within the budget.
///
/// Knows nothing of how schedules are made: where each byte is follows from the steps' times. A run of bytes is
/// allocated from the start of its producer, or of the copy that brings it, to the end of what last touches it
/// before the next such copy.
///
/// # Errors
/// The first [`Flaw`] found.
pub fn check(problem: &Problem, schedule: &Schedule, budget: u64) -> Result<u64, Flaw> {
    let ops = operators(problem, schedule)?;
    engines(problem, schedule)?;
    let mut copies: SecondaryMap<PieceId, Vec<Step>> = SecondaryMap::new();
    for step in &schedule.steps {
        if let Instruction::Out(piece) | Instruction::In(piece) = step.instruction {
            copies[piece].push(*step);
        }
    }
    let mut pieces: SecondaryMap<TensorId, Vec<PieceId>> = SecondaryMap::new();
    for (id, piece) in &schedule.pieces {
        let known = problem.tensors.is_valid(piece.tensor);
        if !known || piece.is_empty() || piece.bytes.end > problem.tensors[piece.tensor].bytes {
            return Err(Flaw::Piece(id));
        }
        pieces[piece.tensor].push(id);
    }
    let mut touches: SecondaryMap<TensorId, Vec<Touch>> = SecondaryMap::new();
    for (tick, op) in problem.ops.iter().enumerate() {
        let Step { start, end, .. } = ops[tick];
        let mut touch = |tensor: TensorId, changes: bool| {
            touches[tensor].push(Touch { start, end, what: What::Use { tick: tick as u32, changes } });
        };
        op.reads.iter().for_each(|&t| touch(t, op.changes.contains(&t)));
        op.produces.iter().for_each(|&t| touch(t, true));
    }
    let mut memory = Vec::new();
    for (tick, op) in problem.ops.iter().enumerate() {
        memory.push((ops[tick].start, ops[tick].end, op.workspace));
    }
    let makespan = schedule.makespan();
    for tensor in problem.tensors.keys() {
        let mut at = 0;
        pieces[tensor].sort_by_key(|&p| schedule.pieces[p].bytes.start);
        for &piece in &pieces[tensor] {
            let bytes = &schedule.pieces[piece].bytes;
            if bytes.start < at {
                return Err(Flaw::Piece(piece));
            }
            at = bytes.end;
            let presences = presences(problem, tensor, &touches[tensor], &copies[piece], makespan)?;
            memory.extend(presences.into_iter().map(|(start, end)| (start, end, bytes.end - bytes.start)));
        }
        let whole = presences(problem, tensor, &touches[tensor], &[], makespan)?;
        let moved: u64 = pieces[tensor].iter().map(|&p| schedule.pieces[p].len()).sum();
        memory.extend(whole.into_iter().map(|(s, e)| (s, e, problem.tensors[tensor].bytes - moved)));
    }
    peak(memory, budget)
}

/// Something that needs a run of bytes on the device.
#[derive(Clone, Copy)]
struct Touch {
    start: u64,
    end: u64,
    what: What,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    In,
    Out,
    Use { tick: u32, changes: bool },
}

/// The step of every operator, by tick.
fn operators(problem: &Problem, schedule: &Schedule) -> Result<Vec<Step>, Flaw> {
    let mut ops = Vec::with_capacity(problem.ops.len());
    for (index, step) in schedule.steps.iter().enumerate() {
        if let Instruction::Op(tick) = step.instruction {
            if tick as usize != ops.len() || tick as usize >= problem.ops.len() {
                return Err(Flaw::Order(index));
            }
            ops.push(*step);
        }
    }
    if ops.len() < problem.ops.len() { Err(Flaw::Order(schedule.steps.len())) } else { Ok(ops) }
}

/// Every step takes as long as it should, and no engine does two things at once.
fn engines(problem: &Problem, schedule: &Schedule) -> Result<(), Flaw> {
    let mut engines: [Vec<Step>; 3] = Default::default();
    for &step in &schedule.steps {
        let (engine, expected) = match step.instruction {
            Instruction::Op(tick) => (0, problem.ops[tick as usize].nanos),
            Instruction::Out(piece) => (1, problem.link.out_nanos(schedule.pieces[piece].len())),
            Instruction::In(piece) => {
                let engine = if problem.link.duplex == Duplex::Half { 1 } else { 2 };
                (engine, problem.link.in_nanos(schedule.pieces[piece].len()))
            }
        };
        let found = step.end.wrapping_sub(step.start);
        if found != expected {
            return Err(Flaw::Duration { what: step.instruction, found, expected });
        }
        engines[engine].push(step);
    }
    for steps in &mut engines {
        steps.sort_by_key(|step| (step.start, step.end));
        for pair in steps.windows(2) {
            if pair[1].start < pair[0].end {
                return Err(Flaw::Engine(pair[0].instruction, pair[1].instruction));
            }
        }
    }
    // Operators of no duration could otherwise trade places unseen.
    let ops: Vec<Step> =
        schedule.steps.iter().filter(|s| matches!(s.instruction, Instruction::Op(_))).copied().collect();
    match ops.windows(2).find(|pair| pair[1].start < pair[0].end) {
        Some(pair) => Err(Flaw::Engine(pair[0].instruction, pair[1].instruction)),
        None => Ok(()),
    }
}

/// When a run of bytes of the tensor is allocated, as half-open ranges of time.
fn presences(
    problem: &Problem,
    tensor: TensorId,
    uses: &[Touch],
    copies: &[Step],
    makespan: u64,
) -> Result<Vec<(u64, u64)>, Flaw> {
    let facts = problem.tensors[tensor];
    let mut touches = uses.to_vec();
    touches.extend(copies.iter().map(|step| {
        let what = if matches!(step.instruction, Instruction::In(_)) { What::In } else { What::Out };
        Touch { start: step.start, end: step.end, what }
    }));
    // What takes no time goes first; a copy in before the use that it serves.
    touches.sort_by_key(|t| (t.start, t.end, t.what != What::In));
    let starts_on_host = facts.given && facts.kept && touches.first().is_some_and(|t| t.what == What::In);
    let flaw = |touch: &Touch| match touch.what {
        What::Use { tick, .. } => Flaw::Absent { tick, tensor },
        _ => {
            let same = |s: &&Step| s.start == touch.start && s.end == touch.end;
            Flaw::Copy(copies.iter().find(same).map_or(Instruction::Op(0), |s| s.instruction))
        }
    };
    let mut presences: Vec<(u64, u64)> = Vec::new();
    // From when the current presence's bytes can be read; none while there is no presence.
    let mut ready = (facts.given && !starts_on_host).then_some(0);
    presences.extend(ready.map(|_| (0, 0)));
    // From when the host has them as they are now, and when they last changed.
    let mut host: Option<u64> = starts_on_host.then_some(0);
    let (mut changed, mut leaving) = (0, 0);
    for touch in &touches {
        match touch.what {
            What::In => {
                if host.is_none_or(|since| touch.start < since) {
                    return Err(flaw(touch));
                }
                // What touched the bytes before must not do so any longer once they are elsewhere.
                ready = Some(touch.end);
                presences.push((touch.start, touch.end));
                continue;
            }
            What::Out => {
                if ready.is_none_or(|since| touch.start < since.max(changed)) {
                    return Err(flaw(touch));
                }
                host = Some(touch.end);
                leaving = touch.end;
            }
            What::Use { changes, .. } => {
                if ready.is_none() && changes && !starts_on_host && presences.is_empty() {
                    ready = Some(touch.start);
                    presences.push((touch.start, touch.start));
                }
                if ready.is_none_or(|since| touch.start < since) || (changes && touch.start < leaving) {
                    return Err(flaw(touch));
                }
                if changes {
                    host = None;
                    changed = touch.end;
                }
            }
        }
        if let Some(last) = presences.last_mut() {
            last.1 = last.1.max(touch.end);
        }
    }
    if facts.kept {
        if starts_on_host {
            host.map(|_| ()).ok_or(Flaw::End(tensor))?;
        } else if let Some(last) = presences.last_mut() {
            last.1 = makespan;
        } else {
            return Err(Flaw::End(tensor));
        }
    }
    Ok(presences)
}

/// The largest sum of bytes over time.
fn peak(memory: Vec<(u64, u64, u64)>, budget: u64) -> Result<u64, Flaw> {
    let mut events: Vec<(u64, bool, u64)> = Vec::with_capacity(2 * memory.len());
    for (start, end, bytes) in memory.into_iter().filter(|&(start, end, bytes)| start < end && bytes > 0) {
        events.push((start, true, bytes));
        events.push((end, false, bytes));
    }
    events.sort_unstable();
    let (mut now, mut peak) = (0, 0);
    for (at, allocates, bytes) in events {
        now = if allocates { now + bytes } else { now - bytes };
        peak = peak.max(now);
        if now > budget {
            return Err(Flaw::Budget { at, found: now, budget });
        }
    }
    Ok(peak)
}
