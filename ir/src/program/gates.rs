//! The parts of a step that may be left out when a random number is 0: layers of stochastic depth.
//!
//! A *gate* is the one-element result of a random operator; it is *closed* in a step in which it is 0. A value that is multiplied
//! by a closed gate becomes zero, and so do values that vanish with it ([`ops::vanishes`]): gradients of the multiplied value,
//! and of its weights. Such results are filled with zeros instead of being computed. Operators that were only needed for them are
//! not run, and values without a reader are not copied. All other commands run as usual, at their addresses and after their
//! waits, and all their operands are present. The guarantees of the program, that every timing is correct and that it stays
//! inside its arena, therefore hold for each such step.
//!
//! State that an operator of a closed layer writes aside, such as the running statistics of a batch normalization, does not
//! change: the layer does not exist in this step. This is the only difference from a step that multiplies by 0, as long as all
//! numbers are finite.
//!
//! # Source
//! Huang, Sun, Liu, Sedra, Weinberger, *Deep Networks with Stochastic Depth*, ECCV 2016, eq. 2: a layer is ReLU(b · f(x) + x),
//! where b is drawn anew in each step. DQN §5 plans such networks as if every layer ran.

use std::collections::BTreeSet;

use super::{Action, ContentId, Launch, PlacedTensor, Program, Role, Stream};
use crate::{TensorType, ops};

/// How much of a command runs in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateEffect {
    /// It runs as usual.
    Runs,
    /// All results are zero, and are written without being computed; operands need not be present.
    Zero,
    /// Its results are not needed: it does nothing.
    Rests,
}

/// The gates of a program.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    launches: Vec<u32>,
    /// Launches whose results are needed for no state of the gates.
    idle: BTreeSet<u32>,
}

/// How much of each command runs in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateEffects([Vec<GateEffect>; 3]);

impl GateEffects {
    /// The part of the command of this stream at this position.
    pub fn of(&self, stream: Stream, command: u32) -> GateEffect {
        self.0[stream as usize][command as usize]
    }
}

impl Gates {
    /// The gates of the program for which `is_gate` returns true: their values must be computable before the step.
    pub fn of(program: &Program, is_gate: impl Fn(u32, &Launch) -> bool) -> Gates {
        let launches = program.launches().filter(|(index, launch)| {
            let [Some(Some(result))] = [launch.results.first()] else { return false };
            let elements = result.ty.as_tensor().and_then(TensorType::element_count);
            launch.op.effects().random
                && launch.results.len() == 1
                && elements == Some(1)
                && is_gate(*index, launch)
        });
        let mut gates = Gates { launches: launches.map(|(index, _)| index).collect(), idle: BTreeSet::new() };
        if !gates.launches.is_empty() {
            let parts = gates.parts(program, &vec![false; gates.launches.len()]);
            let rests = program
                .launches()
                .filter(|(index, _)| parts.of(Stream::Compute, *index) == GateEffect::Rests);
            gates.idle = rests.map(|(index, _)| index).collect();
        }
        gates
    }

    /// The positions in the compute stream of the launches that draw the gates.
    pub fn launches(&self) -> &[u32] {
        &self.launches
    }

    /// The parts of all commands in a step in which these gates are closed, in the order of [`Gates::launches`].
    pub fn parts(&self, program: &Program, closed: &[bool]) -> GateEffects {
        let mut parts = Stream::ALL.map(|stream| vec![GateEffect::Runs; program.stream(stream).len()]);
        let results = |launch: &'_ Launch| -> Vec<ContentId> {
            launch.results.iter().flatten().map(|result| result.content).collect()
        };
        let shut = self.launches.iter().zip(closed).filter(|(_, closed)| **closed).map(|(&index, _)| index);
        let shut: BTreeSet<u32> = shut.collect();
        let mut zero: BTreeSet<ContentId> = BTreeSet::new();
        for (index, launch) in program.launches() {
            let is_zero = |operand: &PlacedTensor| zero.contains(&operand.content);
            let operands: Vec<Option<bool>> =
                launch.operands.iter().map(|operand| operand.as_ref().map(is_zero)).collect();
            let vanishes = ops::vanishes(&launch.op, &operands);
            if vanishes {
                parts[Stream::Compute as usize][index as usize] = GateEffect::Zero;
            }
            if vanishes || shut.contains(&index) {
                zero.extend(results(launch));
            }
        }
        // Contents that persist between steps are always needed.
        let next = |role: Role| if let Role::Variable(next) = role { Some(next) } else { None };
        let given = program.given.iter().flat_map(|given| [Some(given.tensor.content), next(given.role)]);
        let mut needed: BTreeSet<ContentId> = given.flatten().collect();
        needed.extend(program.outputs.iter().map(|output| output.tensor.content));
        let launches: Vec<(u32, &Launch)> = program.launches().collect();
        for (index, launch) in launches.into_iter().rev() {
            let part = &mut parts[Stream::Compute as usize][index as usize];
            let effects = launch.op.effects();
            let writes = effects.writes;
            let written = |result: usize| writes.iter().any(|pair| pair.1 == result);
            let own = launch.results.iter().enumerate().filter(|(result, _)| !written(*result));
            let mut own = own.filter_map(|(_, tensor)| tensor.as_ref());
            let may_rest = (writes.is_empty() || effects.aside) && !self.idle.contains(&index);
            if may_rest && !own.any(|result| needed.contains(&result.content)) {
                *part = GateEffect::Rests;
                // The state that it would have written aside keeps its old value.
                for &(operand, result) in writes {
                    let of = |tensors: &[Option<PlacedTensor>], at: usize| {
                        Some(tensors.get(at)?.as_ref()?.content)
                    };
                    let stays = of(&launch.results, result).filter(|content| needed.contains(content));
                    needed.extend(stays.and_then(|_| of(&launch.operands, operand)));
                }
            } else if *part == GateEffect::Runs {
                needed.extend(launch.operands.iter().flatten().map(|operand| operand.content));
            }
        }
        for stream in [Stream::Out, Stream::In] {
            for (part, command) in parts[stream as usize].iter_mut().zip(program.stream(stream)) {
                if let Action::Copy(copy) = &command.action
                    && !needed.contains(&copy.content)
                {
                    *part = GateEffect::Rests;
                }
            }
        }
        GateEffects(parts)
    }
}
