//! Recovers the absences and the order from a schedule.

use cranelift_entity::{EntityRef, SecondaryMap};

use super::{Absences, Act, ActId, Acts, Instruction, PieceId, Schedule};
use crate::problem::{Problem, TensorId, Window};

impl Absences {
    /// The absences of a valid schedule of the problem: each copy in ends one.
    pub fn of(problem: &Problem, schedule: &Schedule) -> Absences {
        let uses = problem.uses();
        let mut windows: SecondaryMap<PieceId, Vec<Window>> = SecondaryMap::new();
        let mut seen: SecondaryMap<PieceId, bool> = SecondaryMap::new();
        let mut tick = 0;
        // With several lanes, the number of operators so far that use each tensor: those before a copy in precede those after it.
        let mut used: SecondaryMap<TensorId, usize> = SecondaryMap::new();
        for step in &schedule.steps {
            let (piece, comes) = match step.instruction {
                Instruction::Op(t) => {
                    tick = t + 1;
                    if problem.has_lanes() {
                        problem.ops[t as usize].touches().for_each(|tensor| used[tensor] += 1);
                    }
                    continue;
                }
                Instruction::Out(piece) => (piece, false),
                Instruction::In(piece) => (piece, true),
            };
            let first_copy = !std::mem::replace(&mut seen[piece], true);
            if !comes {
                continue;
            }
            let tensor = schedule.pieces[piece].tensor;
            let facts = problem.tensors[tensor];
            let uses = uses.of(tensor);
            let next = if problem.has_lanes() { used[tensor] } else { uses.partition_point(|&u| u < tick) };
            let until = uses.get(next).copied().unwrap_or(problem.ticks());
            let before =
                if first_copy && facts.given && facts.kept { uses.last() } else { uses[..next].last() };
            windows[piece].push(Window { tensor, from: before.map_or(0, |&u| u + 1), until });
        }
        Absences { pieces: schedule.pieces.clone(), windows }
    }
}

impl Acts {
    /// The activities in the order of the schedule; these must be the activities of its [`Absences`].
    ///
    /// None if the schedule has other copies, such as a copy out of bytes that the host already has.
    pub fn order_of(&self, schedule: &Schedule) -> Option<Vec<ActId>> {
        let mut copies: [SecondaryMap<PieceId, Vec<ActId>>; 2] = Default::default();
        for (act, what) in self.what.iter().rev() {
            match *what {
                Act::Do(Instruction::Out(piece)) => copies[0][piece].push(act),
                Act::Do(Instruction::In(piece)) => copies[1][piece].push(act),
                _ => {}
            }
        }
        // The activities are the start, the operators by tick, the copies of each piece in their order, and the end.
        let mut order = Vec::with_capacity(self.len());
        order.push(ActId::new(0));
        for step in &schedule.steps {
            order.push(match step.instruction {
                Instruction::Op(tick) => ActId::new(tick as usize + 1),
                Instruction::Out(piece) => copies[0][piece].pop()?,
                Instruction::In(piece) => copies[1][piece].pop()?,
            });
        }
        order.push(ActId::new(self.len() - 1));
        (order.len() == self.len()).then_some(order)
    }
}
