//! Runs a program in one thread, in an order of its streams that is as bad as its waits allow.
//!
//! A command begins and completes at separate times, and others run in between: a copy moves half of its bytes at each. Memory
//! that is no longer in use is overwritten at once with bytes that are NaN, and so is the memory that a kernel is about to write.
//! A missing wait therefore shows in the results. Any program may be run, even a wrong one.

use std::collections::BTreeMap;
use std::ops::Range;

use lmsc_ir::program::{
    Action, GateEffect, GateEffects, Launch, Memory, PlacedTensor, Program, Stream, Transfer,
};
use lmsc_ir::rng::{Rng, Source};
use lmsc_kernels::kernel::{Io, StepContext};

use super::kernels::{AlignedBytes, Kernels, NotReady};
use super::meter::Meter;

/// Fill byte: every floating-point number of such bytes is NaN.
const POISON: u8 = 0xff;

/// A program that is run in bad orders.
#[derive(Debug)]
pub struct Rehearsal {
    program: Program,
    kernels: Kernels,
    memories: [Vec<u8>; 2],
    meter: Meter,
    rng: Rng,
    /// Number of steps that have been run.
    steps: u64,
    /// For each step number, the part of each command that runs, if operators behind closed gates are left out.
    parts: Option<BTreeMap<u64, Option<GateEffects>>>,
}

/// The position of a stream.
#[derive(Clone, Copy, Default)]
struct Position {
    step: u64,
    index: usize,
    /// Whether the command has begun.
    begun: bool,
}

impl Rehearsal {
    /// The program, ready to run in the orders of this seed. Both memories are filled with NaN.
    ///
    /// # Errors
    /// [`NotReady`] with all nodes that have no kernel, or one that needs more workspace than the program gives it.
    pub fn new(program: Program, seed: u64) -> Result<Rehearsal, NotReady> {
        let kernels = Kernels::prepare(&program)?;
        let memory = |bytes: u64| vec![POISON; bytes as usize];
        let mut rehearsal = Rehearsal {
            memories: [memory(program.arena.0), memory(program.slab.0)],
            meter: Meter::new(&program),
            kernels,
            rng: Rng::new(seed),
            steps: 0,
            parts: None,
            program,
        };
        for given in rehearsal.program.given.clone() {
            if let (Some(lmsc_ir::Data::Inline(bytes)), Some(span)) = (&given.data, given.tensor.span()) {
                rehearsal.put(given.memory, span, bytes);
            }
        }
        Ok(rehearsal)
    }

    /// Sets whether operators whose results a closed gate multiplies are left out of a step ([`lmsc_ir::program::Gates`]). Their
    /// results are NaN then.
    pub fn skip_closed(&mut self, skips: bool) {
        self.parts = skips.then(BTreeMap::new);
    }

    /// Sets the given tensor of this name; false if there is none, or it has another size.
    pub fn set(&mut self, name: &str, bytes: &[u8]) -> bool {
        let given = self.program.given.iter().find(|given| *given.tensor.name == *name);
        match given.map(|given| (given.memory, given.tensor.span(), given.tensor.bytes())) {
            Some((memory, Some(span), size)) if size == bytes.len() as u64 => {
                self.put(memory, span, bytes);
                true
            }
            Some((_, None, 0)) => bytes.is_empty(),
            _ => false,
        }
    }

    /// The value of a given tensor or of an output of this name, between runs.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let given = self.program.given.iter().map(|given| (given.memory, &given.tensor));
        let outputs = self.program.outputs.iter().map(|output| (output.memory, &output.tensor));
        let (memory, tensor) = outputs.chain(given).find(|(_, tensor)| *tensor.name == *name)?;
        match tensor.span() {
            Some(span) => Some(self.bytes(memory, span)),
            None => Some(self.kernels.known(tensor.content)),
        }
    }

    /// Maximum number of bytes of the arena in use at once.
    pub fn peak(&self) -> u64 {
        self.meter.peak()
    }

    /// Runs `steps` steps, overlapping, with `seed` for random operators. At the caller's turn, `turn` gets the rehearsal, to set
    /// inputs and read outputs, and the number of the step; before the first step there are no outputs.
    pub fn run(&mut self, steps: u64, seed: u64, mut turn: impl FnMut(&mut Rehearsal, u64)) {
        let mut positions = [Position::default(); 3];
        let lengths = Stream::ALL.map(|stream| self.program.stream(stream).len());
        // One stream is favoured, or held back, until that changes.
        let (mut favoured, mut patience) = (self.rng.below(4), 0);
        loop {
            let can = |stream: &Stream| {
                let at = positions[*stream as usize];
                at.step < steps
                    && lengths[*stream as usize] > 0
                    && (at.begun || self.may_begin(*stream, &positions))
            };
            let ready: Vec<Stream> = Stream::ALL.into_iter().filter(can).collect();
            if ready.is_empty() {
                break;
            }
            if patience == 0 {
                (favoured, patience) = (self.rng.below(6), 1 + self.rng.below(40));
            }
            patience -= 1;
            let chosen = ready.iter().copied().find(|&stream| stream as usize == favoured);
            let behind =
                ready.iter().copied().find(|&stream| favoured > 3 && stream as usize != favoured - 3);
            let stream = chosen.or(behind).unwrap_or_else(|| ready[self.rng.below(ready.len())]);
            let position = positions[stream as usize];
            self.advance(stream, position, seed, &mut turn);
            let position = &mut positions[stream as usize];
            position.begun = !position.begun;
            if !position.begun {
                position.index += 1;
                if position.index == lengths[stream as usize] {
                    (position.index, position.step) = (0, position.step + 1);
                }
            }
        }
        self.steps += steps;
    }

    /// Whether all commands that the stream's next command waits for have completed.
    fn may_begin(&self, stream: Stream, positions: &[Position; 3]) -> bool {
        let at = positions[stream as usize];
        self.program.stream(stream)[at.index].waits.iter().all(|wait| {
            let other = positions[wait.stream as usize];
            match at.step.checked_sub(u64::from(wait.before)) {
                Some(step) => (other.step, other.index) > (step, wait.command as usize),
                None => true,
            }
        })
    }

    /// Executes the first or the second half of a command.
    fn advance(
        &mut self,
        stream: Stream,
        at: Position,
        seed: u64,
        turn: &mut impl FnMut(&mut Rehearsal, u64),
    ) {
        let index = at.index as u32;
        let number = self.steps + at.step;
        if !at.begun {
            self.meter.begin(stream, index);
        }
        let part = self.part(stream, index, StepContext { number, seed });
        match self.program.stream(stream)[at.index].action.clone() {
            Action::Launch(launch) if part != GateEffect::Runs => {
                self.expect(&launch);
                if part == GateEffect::Zero {
                    self.clear(&launch);
                }
            }
            Action::Copy(copy) if part != GateEffect::Runs => {
                let (_, to) = Transfer::direction(stream);
                self.bytes_mut(to, copy.span(to)).fill(POISON);
            }
            Action::Turn if at.begun => {
                turn(self, number);
                if number > 0 {
                    self.free(|meter, free| meter.turn(true, free));
                }
            }
            Action::Launch(launch) if at.begun => self.launch(index, &launch, StepContext { number, seed }),
            Action::Launch(launch) => self.expect(&launch),
            Action::Copy(copy) => self.copy(stream, &copy, at.begun),
            Action::Turn => {}
        }
        if at.begun {
            self.free(|meter, free| meter.end(stream, index, free));
        }
    }

    /// The part of the command that runs in the step.
    fn part(&mut self, stream: Stream, index: u32, step: StepContext) -> GateEffect {
        let Some(parts) = &mut self.parts else { return GateEffect::Runs };
        let found = parts.entry(step.number).or_insert_with(|| self.kernels.parts(&self.program, step));
        found.as_ref().map_or(GateEffect::Runs, |parts| parts.of(stream, index))
    }

    /// Writes zeros in place of the launch's results.
    fn clear(&mut self, launch: &Launch) {
        for span in launch.results.iter().flatten().filter_map(PlacedTensor::span) {
            self.bytes_mut(Memory::Arena, span).fill(0);
        }
    }

    /// Overwrites the memory that the meter says is no longer in use.
    fn free(&mut self, which: impl FnOnce(&Meter, &mut dyn FnMut(&lmsc_ir::program::Residency))) {
        let mut freed = Vec::new();
        which(&self.meter, &mut |residency| freed.push((residency.memory, residency.span.clone())));
        for (memory, span) in freed {
            self.bytes_mut(memory, span).fill(POISON);
        }
    }

    /// Overwrites the results and the workspace of a launch before it runs, except results that are written in place.
    fn expect(&mut self, launch: &Launch) {
        let in_place = |result: usize| launch.in_place.iter().any(|pair| pair.1 == result);
        let results = launch.results.iter().enumerate().filter(|(index, _)| !in_place(*index));
        for span in results.filter_map(|(_, result)| result.as_ref()?.span()) {
            self.bytes_mut(Memory::Arena, span).fill(POISON);
        }
        self.bytes_mut(Memory::Arena, launch.workspace.clone()).fill(POISON);
    }

    fn launch(&mut self, index: u32, launch: &Launch, step: StepContext) {
        let is_written = |i: usize| launch.in_place.iter().any(|pair| pair.0 == i);
        let operand = |(i, tensor): (usize, &Option<PlacedTensor>)| match tensor {
            Some(tensor) if !is_written(i) => match tensor.span() {
                Some(span) => AlignedBytes::copied(self.bytes(Memory::Arena, span)),
                None => AlignedBytes::copied(self.kernels.known(tensor.content)),
            },
            _ => AlignedBytes::default(),
        };
        let operands: Vec<AlignedBytes> = launch.operands.iter().enumerate().map(operand).collect();
        let spans: Vec<Option<Range<u64>>> =
            launch.results.iter().map(|t| t.as_ref().and_then(PlacedTensor::span)).collect();
        let result = |span: &Option<Range<u64>>| match span {
            Some(span) => AlignedBytes::copied(self.bytes(Memory::Arena, span.clone())),
            None => AlignedBytes::default(),
        };
        let mut results: Vec<AlignedBytes> = spans.iter().map(result).collect();
        let mut workspace = AlignedBytes::copied(self.bytes(Memory::Arena, launch.workspace.clone()));
        let slices: Vec<&[u8]> = operands.iter().map(AlignedBytes::get).collect();
        let mut into: Vec<&mut [u8]> = results.iter_mut().map(AlignedBytes::get_mut).collect();
        self.kernels.get(index).run(Io::new(&slices, &mut into, workspace.get_mut()), step);
        for (span, buffer) in spans.into_iter().zip(&results) {
            if let Some(span) = span {
                self.put(Memory::Arena, span, buffer.get());
            }
        }
        self.bytes_mut(Memory::Arena, launch.workspace.clone()).fill(POISON);
    }

    /// Copies the first or the second half.
    fn copy(&mut self, stream: Stream, copy: &Transfer, second: bool) {
        let (from, to) = Transfer::direction(stream);
        let half = |span: Range<u64>| {
            let middle = span.start + (span.end - span.start) / 2;
            if second { middle..span.end } else { span.start..middle }
        };
        let bytes = self.bytes(from, half(copy.span(from))).to_vec();
        if !second {
            self.bytes_mut(to, copy.span(to)).fill(POISON);
        }
        self.put(to, half(copy.span(to)), &bytes);
    }

    fn bytes(&self, memory: Memory, span: Range<u64>) -> &[u8] {
        &self.memories[memory as usize][span.start as usize..span.end as usize]
    }

    fn bytes_mut(&mut self, memory: Memory, span: Range<u64>) -> &mut [u8] {
        &mut self.memories[memory as usize][span.start as usize..span.end as usize]
    }

    fn put(&mut self, memory: Memory, span: Range<u64>, bytes: &[u8]) {
        self.bytes_mut(memory, span).copy_from_slice(bytes);
    }
}
