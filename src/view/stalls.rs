//! The waits of the compute engine, and the link bandwidth that would avoid each.

use lmsc_plan::planners::Plan;
use lmsc_plan::problem::{COMPUTE, TensorId};
use lmsc_plan::schedule::{Instruction, PieceId, Step};
use serde::Serialize;

/// A time during which no operator runs.
#[derive(Clone, Debug)]
pub(crate) struct Stall {
    /// The end of the previous operator, in nanoseconds.
    pub(crate) start: u64,
    /// The start of the next operator, or the end of the step.
    pub(crate) end: u64,
    /// The waiting operator, a tick of the plan's problem; `None` if the step waits for its last copies.
    pub(crate) tick: Option<u32>,
    pub(crate) cause: Cause,
    /// The copy that ends the stall, as an index of the steps; `None` if none does.
    pub(crate) copy: Option<usize>,
}

/// The event that ends a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cause {
    /// A copy to the device: of an operand, or the next one, for which memory is reserved before the operator's.
    CopyIn,
    /// A copy to the host, which frees memory.
    CopyOut,
    /// An operator of another lane, whose result the operator reads.
    OtherLane,
    /// Another allocation that precedes the operator's in the plan's order.
    Memory,
}

/// The nanoseconds of all stalls, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) copy_in: u64,
    pub(crate) copy_out: u64,
    pub(crate) memory: u64,
}

impl Waits {
    pub(crate) fn of(stalls: &[Stall]) -> Waits {
        let sum = |cause| stalls.iter().filter(|s| s.cause == cause).map(|s| s.end - s.start).sum();
        Waits { copy_in: sum(Cause::CopyIn), copy_out: sum(Cause::CopyOut), memory: sum(Cause::Memory) }
    }
}

/// Every stall of the plan, in order of time.
pub(crate) fn stalls(plan: &Plan) -> Vec<Stall> {
    let steps = &plan.schedule.steps;
    let mut ends: Vec<(u64, usize, PieceId, bool)> = steps
        .iter()
        .enumerate()
        .filter_map(|(index, step)| match step.instruction {
            Instruction::Op(_) => None,
            Instruction::Out(piece) => Some((step.end, index, piece, false)),
            Instruction::In(piece) => Some((step.end, index, piece, true)),
        })
        .collect();
    ends.sort_unstable_by_key(|&(end, index, ..)| (end, index));
    let ending_at = |time: u64| {
        let from = ends.partition_point(|e| e.0 < time);
        ends[from..].iter().take_while(move |e| e.0 == time)
    };
    let mut stalls = Vec::new();
    let mut free = 0;
    for step in steps {
        let Instruction::Op(tick) = step.instruction else { continue };
        let op = &plan.problem.ops[tick as usize];
        if op.lane != COMPUTE {
            continue;
        }
        if step.start > free {
            let reads = &op.reads;
            let read = ending_at(step.start)
                .find(|&&(_, _, piece, is_in)| is_in && reads.contains(&plan.schedule.pieces[piece].tensor));
            let left = ending_at(step.start).find(|(.., is_in)| !is_in);
            // Memory is allocated in the plan's order: an operator behind a copy in waits until that copy begins.
            let next = ending_at(step.start).find(|(.., is_in)| *is_in);
            let (cause, copy) = match (read, left, next) {
                (Some(copy), ..) => (Cause::CopyIn, Some(copy.1)),
                (None, Some(copy), _) => (Cause::CopyOut, Some(copy.1)),
                (None, None, Some(copy)) => (Cause::CopyIn, Some(copy.1)),
                (None, None, None) if waits_for_lane(plan, step.start, reads) => (Cause::OtherLane, None),
                (None, None, None) => (Cause::Memory, None),
            };
            stalls.push(Stall { start: free, end: step.start, tick: Some(tick), cause, copy });
        }
        free = step.end;
    }
    let end = plan.schedule.makespan();
    if let Some(&(_, copy, _, is_in)) = ending_at(end).last().filter(|_| end > free) {
        let cause = if is_in { Cause::CopyIn } else { Cause::CopyOut };
        stalls.push(Stall { start: free, end, tick: None, cause, copy: Some(copy) });
    }
    stalls
}

/// Whether an operator of another lane ends at the time that produces one of the operands.
fn waits_for_lane(plan: &Plan, time: u64, reads: &[TensorId]) -> bool {
    plan.problem.has_lanes()
        && plan.schedule.steps.iter().filter(|step| step.end == time).any(|step| match step.instruction {
            Instruction::Op(tick) => {
                let op = &plan.problem.ops[tick as usize];
                op.lane != COMPUTE && op.produces.iter().any(|tensor| reads.contains(tensor))
            }
            _ => false,
        })
}

/// The bandwidth, in bytes per second, at which a copy of this size and start would end before the stall begins, if
/// nothing else changes. `None` if the copy starts too late for any bandwidth.
pub(crate) fn hiding_rate(bytes: u64, copy_start: u64, stall_start: u64, latency: u64) -> Option<u64> {
    let nanos = stall_start.checked_sub(copy_start)?.checked_sub(latency).filter(|&nanos| nanos > 0)?;
    u64::try_from((u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(nanos))).ok()
}

/// [`hiding_rate`] of the copy that ends a stall.
pub(crate) fn rate_for(plan: &Plan, stall: &Stall) -> Option<u64> {
    let step: &Step = plan.schedule.steps.get(stall.copy?)?;
    let (Instruction::Out(piece) | Instruction::In(piece)) = step.instruction else { return None };
    let latency = plan.problem.link.latency_nanos;
    hiding_rate(plan.schedule.pieces[piece].len(), step.start, stall.start, latency)
}

#[cfg(test)]
mod tests {
    use lmsc_plan::instance::Instance;
    use lmsc_plan::planners::{Granularity, Request, planner};

    use super::*;

    #[test]
    fn only_operators_that_compute_wait_and_may_wait_for_another_lane() {
        let text = r#"{"format": "lmsc-planner-dag-2", "name": "two", "bw_d2h": 1e9, "bw_h2d": 1e9, "kinds": ["op", "gather"],
            "tensor_bytes": [8, 64, 8], "given": [0], "kept": [0, 2], "lanes": [{"name": "comm"}], "on_lane": [[0, 1]],
            "ops": [[1, 0, 5, 0, [0], [1], 1], [0, 0, 2, 0, [], [], 0], [0, 0, 4, 0, [1], [2], 0]]}"#;
        let problem = Instance::parse(text).unwrap().problem;
        let plan = planner("auto").unwrap().plan(&Request::new(&problem, 100)).unwrap();
        let stalls: Vec<_> = stalls(&plan).iter().map(|s| (s.start, s.end, s.tick, s.cause)).collect();
        assert_eq!(stalls, [(2000, 5000, Some(2), Cause::OtherLane)]);
    }

    #[test]
    fn stalls_are_all_the_time_in_which_no_operator_runs() {
        let mut waited_for_room = false;
        for name in ["dag_resnet50_224_b64", "dag_vgg16_224_b64"] {
            let path = format!("{}/testdata/instances/{name}.json", env!("CARGO_MANIFEST_DIR"));
            let problem = Instance::parse(&std::fs::read_to_string(path).unwrap()).unwrap().problem;
            let peak = problem.live_bytes().into_iter().max().unwrap();
            let request = Request {
                granularity: Granularity::Whole,
                ..Request::new(&problem, peak.midpoint(problem.floor().1))
            };
            let plan = planner("swap-only").unwrap().plan(&request).unwrap();
            let stalls = stalls(&plan);
            let exposed = plan.schedule.makespan() - plan.problem.compute_nanos();
            let waits = Waits::of(&stalls);
            assert_eq!(waits.copy_in + waits.copy_out + waits.memory, exposed);
            assert!(exposed > 0 && waits.copy_in > 0, "{waits:?}");
            waited_for_room |= waits.copy_out > 0;
            for stall in &stalls {
                let Some(rate) = rate_for(&plan, stall) else { continue };
                assert!(rate > problem.link.in_bytes_per_second, "{stall:?} is hidden already");
            }
        }
        assert!(waited_for_room);
    }

    #[test]
    fn a_copy_is_hidden_by_a_link_that_is_fast_enough() {
        assert_eq!(hiding_rate(1000, 0, 1000, 0), Some(1_000_000_000));
        assert_eq!(hiding_rate(1000, 500, 1500, 500), Some(2_000_000_000));
        assert_eq!(hiding_rate(1000, 500, 400, 0), None);
        assert_eq!(hiding_rate(1000, 0, 10, 10), None);
    }
}
