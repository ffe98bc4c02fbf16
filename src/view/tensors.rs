//! One row per tensor of a plan: its copies and recomputations, the reasons, and the budget or link that would
//! change them.

use lmsc_ir::Bytes;
use lmsc_plan::planners::Plan;
use lmsc_plan::problem::{Problem, Tensor, TensorId};
use lmsc_plan::schedule::Instruction;
use serde::Serialize;

use super::stalls::{Stall, rate_for};
use super::{Names, ms};

/// The decision about a tensor.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TensorRow {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) decision: String,
    pub(crate) reason: String,
    /// The start of its first swap-out.
    pub(crate) out_ms: Option<f64>,
    /// The end of its last swap-in.
    pub(crate) in_ms: Option<f64>,
    /// The least slack between a swap-in and the use for which it is made.
    pub(crate) slack_ms: Option<f64>,
    /// The time that operators wait for its copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits_ms: Option<f64>,
    /// The smallest of the tried budgets from which on it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stays_from_bytes: Option<u64>,
    /// The link bandwidth that hides its copies, if nothing else changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hidden_at_bytes_per_second: Option<u64>,
    /// A summary of the three fields before, in words.
    pub(crate) changes: String,
}

/// Larger budgets, each with the tensors of the problem that the planner then swaps or recomputes.
pub(crate) type Ladder = Vec<(u64, Vec<bool>)>;

/// By tensor of the problem, whether the plan copies or recomputes it.
pub(crate) fn touched(problem: &Problem, plan: &Plan) -> Vec<bool> {
    let mut touched = vec![false; problem.tensors.len()];
    let mut seen = vec![false; problem.tensors.len()];
    let of = |tensor: TensorId| plan.tensor_origin[tensor].as_u32() as usize;
    plan.schedule.pieces.values().for_each(|piece| touched[of(piece.tensor)] = true);
    for &tensor in plan.problem.ops.iter().flat_map(|op| &op.produces) {
        touched[of(tensor)] |= std::mem::replace(&mut seen[of(tensor)], true);
    }
    touched
}

/// The waits of operators that one tensor causes.
#[derive(Clone, Copy, Default)]
struct Waiting {
    nanos: u64,
    /// The largest bandwidth that any of its waits needs; 0 if none is known.
    rate: u64,
    never: bool,
}

fn waiting(problem: &Problem, plan: &Plan, stalls: &[Stall]) -> Vec<Waiting> {
    let mut waiting = vec![Waiting::default(); problem.tensors.len()];
    for stall in stalls {
        let Some(step) = stall.copy.map(|copy| plan.schedule.steps[copy]) else { continue };
        let (Instruction::Out(piece) | Instruction::In(piece)) = step.instruction else { continue };
        let tensor = plan.tensor_origin[plan.schedule.pieces[piece].tensor];
        let waits = &mut waiting[tensor.as_u32() as usize];
        waits.nanos += stall.end - stall.start;
        match rate_for(plan, stall) {
            Some(rate) => waits.rate = waits.rate.max(rate),
            None => waits.never = true,
        }
    }
    waiting
}

/// The budget and the link that would change the decision, and its cost, in words.
fn changes(kept: bool, waits: &Waiting, slack: Option<u64>, stays_from: Option<u64>) -> String {
    let mut parts = Vec::new();
    parts.extend(stays_from.map(|bytes| format!("stays from {}", Bytes(bytes))));
    if waits.nanos > 0 {
        let cost = format!("costs {:.3} ms", ms(waits.nanos));
        parts.push(if waits.never {
            format!("{cost}: its copy begins too late for any link")
        } else {
            format!("{cost}: {:.1} GB/s would hide it", waits.rate as f64 / 1e9)
        });
    } else if let Some(slack) = slack {
        parts.push(format!("hidden, {:.3} ms to spare", ms(slack)));
    }
    if parts.is_empty() && !kept {
        parts.push("no budget tried would let it stay".to_owned());
    }
    parts.join("; ")
}

/// The copies and recomputations of a tensor in a plan.
#[derive(Default, Clone)]
struct Moves {
    /// The start of its first swap-out.
    out: Option<u64>,
    /// The end of its last swap-in.
    back: Option<u64>,
    /// The least slack between a swap-in and the use for which it is made.
    slack: Option<u64>,
    /// Bytes that are copied out.
    moved: u64,
    /// Number of swap-ins.
    times: u32,
    /// Number of recomputations.
    again: u32,
}

/// By tensor of the problem, its moves in the plan.
fn moves(problem: &Problem, plan: &Plan) -> Vec<Moves> {
    let mut all = vec![Moves::default(); problem.tensors.len()];
    let of = |tensor: TensorId| plan.tensor_origin[tensor].as_u32() as usize;
    let uses = plan.problem.uses();
    let mut starts = vec![0; plan.problem.ops.len()];
    for step in &plan.schedule.steps {
        if let Instruction::Op(tick) = step.instruction {
            starts[tick as usize] = step.start;
        }
    }
    for step in &plan.schedule.steps {
        match step.instruction {
            Instruction::Op(_) => {}
            Instruction::Out(piece) => {
                let piece = &plan.schedule.pieces[piece];
                let moves = &mut all[of(piece.tensor)];
                moves.out = Some(moves.out.map_or(step.start, |out| out.min(step.start)));
                moves.moved += piece.len();
            }
            Instruction::In(piece) => {
                let tensor = plan.schedule.pieces[piece].tensor;
                let moves = &mut all[of(tensor)];
                moves.times += 1;
                moves.back = Some(moves.back.map_or(step.end, |back| back.max(step.end)));
                let used = uses.of(tensor).iter().map(|&t| starts[t as usize]).find(|&s| s >= step.end);
                let slack = used.map(|used| used - step.end);
                moves.slack = [moves.slack, slack].into_iter().flatten().min();
            }
        }
    }
    let mut seen = vec![false; problem.tensors.len()];
    for op in &plan.problem.ops {
        for &tensor in &op.produces {
            if std::mem::replace(&mut seen[of(tensor)], true) {
                all[of(tensor)].again += 1;
            }
        }
    }
    all
}

impl Moves {
    /// The decision about a tensor of `bytes` bytes and the reason; `stays` gives the reason for a tensor that does
    /// not move.
    fn decision(&self, bytes: u64, stays: impl FnOnce() -> String) -> (String, String) {
        match self {
            Moves { moved: 0, again: 0, times: 0, .. } => ("kept".to_owned(), stays()),
            Moves { moved, again: 0, .. } if *moved >= bytes => {
                ("swapped".to_owned(), "the step does not fit without".to_owned())
            }
            Moves { moved, again: 0, .. } => {
                let share = 100.0 * *moved as f64 / bytes as f64;
                (format!("swapped {share:.0} %"), "the rest of it fits".to_owned())
            }
            Moves { again, moved: 0, .. } => {
                (format!("computed {} times", again + 1), "cheaper than copying it".to_owned())
            }
            Moves { again, .. } => {
                (format!("computed {} times, swapped", again + 1), "both, at different times".to_owned())
            }
        }
    }
}

/// The rows of all tensors. `ladder` goes from small budgets to large ones, if the call requests it.
pub(crate) fn tensors(
    problem: &Problem,
    plan: &Plan,
    names: &dyn Names,
    stalls: &[Stall],
    ladder: Option<&Ladder>,
) -> Vec<TensorRow> {
    let all = moves(problem, plan);
    let waiting = waiting(problem, plan, stalls);
    let mut windows = vec![0; problem.tensors.len()];
    problem.windows(&problem.uses()).iter().for_each(|w| windows[w.tensor.as_u32() as usize] += 1);
    let row = |(tensor, facts): (TensorId, &Tensor)| {
        let index = tensor.as_u32() as usize;
        let (moves, waits) = (&all[index], &waiting[index]);
        let (decision, reason) = moves.decision(facts.bytes, || {
            names.stays(tensor).unwrap_or_else(|| match windows[index] {
                0 => "used by the next operator throughout".to_owned(),
                _ => "the budget holds without".to_owned(),
            })
        });
        let kept = decision == "kept";
        let stays = |rung: &&(u64, Vec<bool>)| !rung.1[index];
        let stays_from = ladder
            .filter(|_| !kept)
            .and_then(|ladder| ladder.iter().rev().take_while(stays).last().map(|rung| rung.0));
        TensorRow {
            name: names.tensor(tensor),
            bytes: facts.bytes,
            changes: if kept || ladder.is_none() && waits.nanos == 0 && moves.slack.is_none() {
                String::new()
            } else {
                changes(kept, waits, moves.slack, stays_from)
            },
            decision,
            reason,
            out_ms: moves.out.map(ms),
            in_ms: moves.back.map(ms),
            slack_ms: moves.slack.map(ms),
            waits_ms: (waits.nanos > 0).then(|| ms(waits.nanos)),
            stays_from_bytes: stays_from,
            hidden_at_bytes_per_second: (waits.nanos > 0 && !waits.never).then_some(waits.rate),
        }
    };
    problem.tensors.iter().map(row).collect()
}
