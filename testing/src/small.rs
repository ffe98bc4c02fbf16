//! Small problems for tests of planners.

use lmsc_ir::Phase;

use lmsc_schedule::problem::{Operator, Problem, Tensor, TensorId};
use lmsc_schedule::{Instruction, Schedule};

/// The schedule's steps in the plan's order with the times at which they start: `op0@0 out0@5 …`, copies by tensor.
pub fn steps(schedule: &Schedule) -> String {
    let number = |piece| schedule.pieces[piece].tensor.as_u32();
    let texts = schedule.steps.iter().map(|step| match step.instruction {
        Instruction::Op(tick) => format!("op{tick}@{}", step.start),
        Instruction::Out(piece) => format!("out{}@{}", number(piece), step.start),
        Instruction::In(piece) => format!("in{}@{}", number(piece), step.start),
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// A problem over a full-duplex link of one byte per nanosecond, with all tensors swappable.
pub fn problem(tensors: &[Tensor], ops: &[Operator]) -> Problem {
    let mut problem = Problem { ops: ops.to_vec(), kinds: vec!["op".to_owned()], ..Problem::default() };
    tensors.iter().for_each(|&tensor| {
        problem.tensors.push(tensor);
    });
    problem.check().unwrap();
    problem
}

/// A tensor that an operator produces.
pub fn produced(bytes: u64) -> Tensor {
    Tensor { bytes, swappable: true, given: false, kept: false }
}

/// A variable.
pub fn variable(bytes: u64) -> Tensor {
    Tensor { bytes, swappable: true, given: true, kept: true }
}

/// An operator that reads and produces tensors, by number.
pub fn op(phase: Phase, nanos: u64, reads: &[u32], produces: &[u32]) -> Operator {
    let ids = |numbers: &[u32]| numbers.iter().map(|&n| TensorId::from_u32(n)).collect();
    Operator {
        kind: 0,
        phase,
        nanos,
        workspace: 0,
        reads: ids(reads),
        produces: ids(produces),
        changes: Vec::new(),
        recomputable: false,
        lane: 0,
    }
}
