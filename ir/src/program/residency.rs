//! When addresses are in use.

use std::ops::Range;

use super::{Action, Memory, PlacedTensor, Program, Spans, Stream, Transfer};

/// Addresses that are in use from the start of one command until others have completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Residency {
    /// The memory.
    pub memory: Memory,
    /// The addresses.
    pub span: Range<u64>,
    /// The command that writes them first; none for a given tensor.
    pub from: Option<(Stream, u32)>,
    /// For each stream, the last command that uses them, if any; the caller's turn uses the outputs of the step before.
    pub last: [Option<u32>; 3],
    /// When their use ends.
    pub until: Until,
}

/// When the use of addresses ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When the last commands that use them have completed.
    Used,
    /// After the caller's next turn: the caller gets their contents.
    Turn,
    /// Never: their contents are given to the next step.
    Next,
}

impl Residency {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.span.end - self.span.start
    }
}

/// The residencies of all addresses in one step.
///
/// A tensor that is written in place stays in use. The program must be one that [`check()`](super::check()) accepts.
pub fn residencies(program: &Program) -> Vec<Residency> {
    let mut walk = Walk::default();
    for given in &program.given {
        if let Some(span) = given.tensor.span() {
            walk.begin(given.memory, span, None);
        }
    }
    for (stream, index, command) in program.in_order() {
        let at = (stream, index);
        match &command.action {
            // The caller reads the outputs of the step before, which may be at the addresses of this step's variables.
            Action::Turn => {
                for output in &program.outputs {
                    walk.read(output.memory, output.tensor.span(), at);
                }
            }
            Action::Launch(launch) => {
                for operand in launch.operands.iter().flatten() {
                    walk.read(Memory::Arena, operand.span(), at);
                }
                for (result, tensor) in launch.results.iter().enumerate() {
                    let Some(span) = tensor.as_ref().and_then(PlacedTensor::span) else { continue };
                    if launch.in_place.iter().any(|pair| pair.1 == result) {
                        walk.read(Memory::Arena, Some(span), at)
                    } else {
                        walk.begin(Memory::Arena, span, Some(at))
                    }
                }
                if !launch.workspace.is_empty() {
                    walk.begin(Memory::Arena, launch.workspace.clone(), Some(at));
                }
            }
            Action::Copy(transfer) => {
                let (from, to) = Transfer::direction(stream);
                walk.read(from, Some(transfer.span(from)), at);
                walk.begin(to, transfer.span(to), Some(at));
            }
        }
    }
    let outputs = program.outputs.iter().map(|output| (output.memory, output.tensor.span(), Until::Turn));
    let given = program.given.iter().map(|given| (given.memory, given.tensor.span(), Until::Next));
    for (memory, span, until) in outputs.chain(given) {
        for (_, &mut index) in walk.memories[memory as usize].over(span.unwrap_or_default()) {
            walk.all[index].until = until;
        }
    }
    walk.all
}

/// Maximum number of bytes of the arena in use at once if a single thread runs all streams, in the program's order.
pub fn peak_in_order(program: &Program) -> u64 {
    let mut grows: [Vec<u64>; 3] = Stream::ALL.map(|stream| vec![0; program.stream(stream).len()]);
    let mut frees = grows.clone();
    let tick = |(stream, index): (Stream, u32)| program.stream(stream)[index as usize].tick;
    let mut live = 0;
    for residency in residencies(program).iter().filter(|r| r.memory == Memory::Arena) {
        match residency.from {
            None => live += residency.bytes(),
            Some((stream, index)) => grows[stream as usize][index as usize] += residency.bytes(),
        }
        let uses = Stream::ALL.into_iter().filter_map(|s| Some((s, residency.last[s as usize]?)));
        let last = uses.max_by_key(|&at| tick(at)).filter(|_| residency.until == Until::Used);
        if let Some((stream, index)) = last {
            frees[stream as usize][index as usize] += residency.bytes();
        }
    }
    let mut peak = live;
    for (stream, index, _) in program.in_order() {
        live += grows[stream as usize][index as usize];
        peak = peak.max(live);
        live -= frees[stream as usize][index as usize];
    }
    peak
}

#[derive(Default)]
struct Walk {
    all: Vec<Residency>,
    /// For each address, the index of its residency.
    memories: [Spans<usize>; 2],
}

impl Walk {
    fn begin(&mut self, memory: Memory, span: Range<u64>, from: Option<(Stream, u32)>) {
        let mut last = [None; 3];
        if let Some((stream, index)) = from {
            last[stream as usize] = Some(index);
        }
        self.memories[memory as usize].put(span.clone(), self.all.len());
        self.all.push(Residency { memory, span, from, last, until: Until::Used });
    }

    fn read(&mut self, memory: Memory, span: Option<Range<u64>>, (stream, index): (Stream, u32)) {
        for (_, &mut residency) in self.memories[memory as usize].over(span.unwrap_or_default()) {
            self.all[residency].last[stream as usize] = Some(index);
        }
    }
}
