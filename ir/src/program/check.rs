//! Checks that a program computes its results in any timing of its streams.
//!
//! Two steps are run, one after the other, in some order that the waits allow. For every address the checker tracks which bytes
//! it holds, which command wrote them, and which commands have read them since; for every command, from the waits alone, how far
//! each stream certainly is when it starts. A reader must find the expected bytes, written by a command that has certainly
//! completed. A writer must be certain that the previous writer and all readers have completed. Then all orders that the waits
//! allow give the same results, and since the second step starts like any later one, this holds for all steps.
//!
//! # Source
//! Mattern, *Virtual Time and Global States of Distributed Systems*, 1989, for the clocks; the readers and the last
//! writer of each address as in Flanagan, Freund, *FastTrack*, PLDI 2009.

use std::collections::HashMap;
use std::ops::{Deref, Range};

use super::{
    Action, Command, ContentId, Launch, Mapping, Memory, PlacedTensor, Program, Role, Spans, Stream,
    Transfer, Wait,
};

/// A program that [`check()`] accepts.
#[derive(Clone, Debug)]
pub struct Checked(Program);

impl Checked {
    /// The program, checked.
    ///
    /// # Errors
    /// The flaw that [`check()`] finds.
    pub fn new(program: Program) -> Result<Checked, ProgramFlaw> {
        check(&program)?;
        Ok(Checked(program))
    }

    /// The program, checked with the memory that is mapped to the addresses of its arena.
    ///
    /// # Errors
    /// The flaw that [`check()`] finds with the addresses of that memory; also a launch two of whose addresses are the same
    /// memory.
    pub fn mapped(program: Program, mapping: &Mapping) -> Result<Checked, ProgramFlaw> {
        check_with(&program, Some(mapping))?;
        Ok(Checked(program))
    }

    /// Drops the model's data, which may be as large as the whole program's memory: after it has been copied to its place, it is
    /// not needed.
    pub fn forget_data(&mut self) {
        self.0.given.iter_mut().for_each(|given| given.data = None);
    }
}

impl Deref for Checked {
    type Target = Program;
    fn deref(&self) -> &Program {
        &self.0
    }
}

/// Why a program must not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramFlaw {
    /// A stream is malformed.
    #[error("{command}: {what}")]
    Malformed {
        /// The command.
        command: String,
        /// The error.
        what: &'static str,
    },
    /// Commands wait for each other in a cycle.
    #[error("{command} waits for what waits for it")]
    Deadlock {
        /// The first command that never starts.
        command: String,
    },
    /// A command reads other bytes than it should.
    #[error("{command} reads `{content}` where something else is")]
    Stale {
        /// The command.
        command: String,
        /// The content that it should read.
        content: String,
    },
    /// A command uses addresses that another one may still use.
    #[error("{command} does not wait for {other}, which uses the same addresses")]
    Race {
        /// The command.
        command: String,
        /// The other one.
        other: String,
    },
    /// At the end of a step, a content that must persist is not in its place.
    #[error("`{content}` is not where it must be when a step ends")]
    Lost {
        /// The content.
        content: String,
    },
}

/// Succeeds if the program gives the same results in every timing and never reads or overwrites wrong bytes.
///
/// Near-linear in the commands. Shares no code with lowering except the map of addresses.
///
/// # Errors
/// The first flaw in some order that the waits allow.
pub fn check(program: &Program) -> Result<(), ProgramFlaw> {
    check_with(program, None)
}

fn check_with(program: &Program, mapping: Option<&Mapping>) -> Result<(), ProgramFlaw> {
    let mut checker = Checker::new(program, mapping)?;
    checker.run()?;
    checker.end()
}

/// A content as of a step: given contents are those that the step before left.
type Version = (usize, ContentId);

/// Number of commands of each stream that have certainly completed, all steps together.
type Clock = [u32; 3];

/// The bytes at an address.
#[derive(Clone)]
struct Held {
    /// None for bytes that must not be read.
    version: Option<Version>,
    /// The address that the content's first byte would have.
    base: i128,
    /// The writer, as its stream and the number of commands up to it; none for bytes given at the start.
    writer: Option<(usize, u32)>,
    /// For each stream, the number of commands up to the last that read it since.
    readers: Clock,
}

struct Checker<'a> {
    program: &'a Program,
    /// The memory behind the arena's addresses, unless the addresses are the memory's own.
    mapping: Option<&'a Mapping>,
    variables: HashMap<ContentId, Role>,
    memories: [Spans<Held>; 2],
    /// By stream and command of both steps, the commands that have certainly completed when it has.
    clocks: [Vec<Clock>; 3],
}

/// The command being checked.
#[derive(Clone, Copy)]
struct At {
    stream: Stream,
    step: usize,
    index: usize,
    clock: Clock,
}

const STEPS: usize = 2;

impl<'a> Checker<'a> {
    fn new(program: &'a Program, mapping: Option<&'a Mapping>) -> Result<Checker<'a>, ProgramFlaw> {
        let compute = program.stream(Stream::Compute);
        let malformed = |stream: Stream, index: usize, what| {
            Err(ProgramFlaw::Malformed { command: name(program, stream, index), what })
        };
        if !matches!(compute.first(), Some(Command { action: Action::Turn, .. })) {
            return malformed(Stream::Compute, 0, "the caller's turn does not come first");
        }
        for stream in Stream::ALL {
            for (index, command) in program.stream(stream).iter().enumerate() {
                let fits = match (&command.action, stream) {
                    (Action::Turn, Stream::Compute) => index == 0,
                    (Action::Launch(_), Stream::Compute) => true,
                    (Action::Copy(_), Stream::Out | Stream::In) => true,
                    _ => false,
                };
                if !fits {
                    return malformed(stream, index, "it is in the wrong stream");
                }
                let there = |wait: &Wait| (wait.command as usize) < program.stream(wait.stream).len();
                if !command.waits.iter().all(there) {
                    return malformed(stream, index, "it waits for a command that there is not");
                }
            }
        }
        let variables = program.given.iter().map(|given| (given.tensor.content, given.role)).collect();
        let mut checker = Checker {
            program,
            mapping,
            variables,
            memories: Default::default(),
            clocks: Stream::ALL.map(|stream| Vec::with_capacity(STEPS * program.stream(stream).len())),
        };
        for given in program.given.iter().filter(|given| given.role != Role::Input) {
            let version = (0, given.tensor.content);
            let Some(span) = given.tensor.span() else { continue };
            let Some(places) = checker.places(given.memory, span, given.tensor.begin) else {
                return Err(ProgramFlaw::Lost {
                    content: program.contents[given.tensor.content].name.to_string(),
                });
            };
            for (span, base) in places {
                let held = Held { version: Some(version), base, writer: None, readers: [0; 3] };
                checker.memories[given.memory as usize].put(span, held);
            }
        }
        Ok(checker)
    }

    /// The memory behind a tensor's addresses, in pieces, each with the address that the content's first byte would have; the
    /// tensor starts at byte `begin` of the content. None if an address has no memory.
    fn places(&self, memory: Memory, span: Range<u64>, begin: u64) -> Option<Vec<(Range<u64>, i128)>> {
        let base = |at: u64, begin: u64| i128::from(at) - i128::from(begin);
        match self.mapping.filter(|_| memory == Memory::Arena) {
            None => Some(vec![(span.clone(), base(span.start, begin))]),
            Some(mapping) => {
                let pieces = mapping.pieces(span)?.into_iter();
                Some(pieces.map(|(ahead, at)| (at.clone(), base(at.start, begin + ahead))).collect())
            }
        }
    }

    /// The same for addresses that a command uses.
    fn used(
        &self,
        at: At,
        memory: Memory,
        span: Range<u64>,
        begin: u64,
    ) -> Result<Vec<(Range<u64>, i128)>, ProgramFlaw> {
        self.inside(at, memory, &span)?;
        self.places(memory, span, begin).ok_or_else(|| {
            let command = name(self.program, at.stream, at.index);
            ProgramFlaw::Malformed { command, what: "it uses addresses to which nothing is mapped" }
        })
    }

    /// The version of the content in this step.
    fn version(&self, step: usize, content: ContentId) -> Version {
        match self.variables.get(&content) {
            Some(Role::Constant) => (0, content),
            Some(Role::Variable(_)) if step == 0 => (0, content),
            // The content of a variable at the start of a step is the one at the end of the step before.
            Some(&Role::Variable(next)) if next != content => (step - 1, next),
            Some(Role::Variable(_)) => (0, content),
            _ => (step, content),
        }
    }

    /// Runs all commands of both steps.
    fn run(&mut self) -> Result<(), ProgramFlaw> {
        let program = self.program;
        let lengths = Stream::ALL.map(|stream| program.stream(stream).len());
        loop {
            let mut moved = false;
            for stream in Stream::ALL {
                while let Some(at) = self.next(stream, lengths) {
                    self.execute(at)?;
                    let mut clock = at.clock;
                    clock[stream as usize] = self.clocks[stream as usize].len() as u32 + 1;
                    self.clocks[stream as usize].push(clock);
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        for stream in Stream::ALL {
            let done = self.clocks[stream as usize].len();
            if done < STEPS * lengths[stream as usize] {
                let command = name(program, stream, done % lengths[stream as usize]);
                return Err(ProgramFlaw::Deadlock { command });
            }
        }
        Ok(())
    }

    /// The next command of the stream, if all commands that it waits for have completed.
    fn next(&self, stream: Stream, lengths: [usize; 3]) -> Option<At> {
        let own = &self.clocks[stream as usize];
        let length = lengths[stream as usize];
        if own.len() == STEPS * length {
            return None;
        }
        let (step, index) = (own.len() / length, own.len() % length);
        let mut clock = own.last().copied().unwrap_or_default();
        for wait in &self.program.stream(stream)[index].waits {
            let other = wait.stream as usize;
            let step = match (wait.before, step) {
                (false, step) => step,
                (true, 0) => continue,
                (true, step) => step - 1,
            };
            let known = self.clocks[other].get(step * lengths[other] + wait.command as usize)?;
            for (mine, theirs) in clock.iter_mut().zip(known) {
                *mine = (*mine).max(*theirs);
            }
        }
        Some(At { stream, step, index, clock })
    }

    fn execute(&mut self, at: At) -> Result<(), ProgramFlaw> {
        let program = self.program;
        match &program.stream(at.stream)[at.index].action {
            Action::Turn => {
                if let Some(before) = at.step.checked_sub(1) {
                    for output in &program.outputs {
                        self.read(at, before, output.memory, &output.tensor)?;
                    }
                }
                for given in program.given.iter().filter(|given| given.role == Role::Input) {
                    self.write(at, given.memory, &given.tensor)?;
                }
                Ok(())
            }
            Action::Launch(launch) => self.launch(at, launch),
            Action::Copy(transfer) => self.copy(at, transfer),
        }
    }

    fn launch(&mut self, at: At, launch: &Launch) -> Result<(), ProgramFlaw> {
        self.apart(at, launch)?;
        if self.mapping.is_some_and(|mapping| !mapping.keeps_apart(launch)) {
            let command = name(self.program, at.stream, at.index);
            return Err(ProgramFlaw::Malformed { command, what: "two of its addresses are the same memory" });
        }
        for operand in launch.operands.iter().flatten() {
            self.read(at, at.step, Memory::Arena, operand)?;
        }
        if !launch.workspace.is_empty() {
            self.replace(at, Memory::Arena, launch.workspace.clone(), None, 0)?;
        }
        for result in launch.results.iter().flatten() {
            self.write(at, Memory::Arena, result)?;
        }
        Ok(())
    }

    /// Checks that the memory a kernel writes overlaps nothing else that it uses, except as declared in place.
    fn apart(&self, at: At, launch: &Launch) -> Result<(), ProgramFlaw> {
        let malformed =
            |what| Err(ProgramFlaw::Malformed { command: name(self.program, at.stream, at.index), what });
        let span = |tensor: &Option<PlacedTensor>| tensor.as_ref().and_then(PlacedTensor::span);
        let overlap = |a: &Range<u64>, b: &Range<u64>| a.start < b.end && b.start < a.end;
        let mut written: Vec<(Option<usize>, Range<u64>)> = Vec::new();
        let workspace = Some((None, launch.workspace.clone())).filter(|(_, span)| !span.is_empty());
        let results = launch.results.iter().enumerate().filter_map(|(j, r)| Some((Some(j), span(r)?)));
        for (result, span) in results.chain(workspace) {
            if written.iter().any(|(_, other)| overlap(other, &span)) {
                return malformed("it writes the same addresses twice");
            }
            written.push((result, span));
        }
        for (index, operand) in launch.operands.iter().enumerate() {
            let Some(operand) = span(operand) else { continue };
            for (result, span) in written.iter().filter(|(_, span)| overlap(span, &operand)) {
                let meant = result.is_some_and(|j| launch.in_place.contains(&(index, j)));
                if !meant || *span != operand {
                    return malformed("it overwrites an operand that it still reads");
                }
            }
        }
        let size = |tensor: Option<&Option<PlacedTensor>>| {
            tensor.and_then(Option::as_ref).map(|t| (t.at, t.bytes()))
        };
        for &(operand, result) in &launch.in_place {
            if size(launch.operands.get(operand)) != size(launch.results.get(result)) {
                return malformed("what it writes in place is not one of its results");
            }
        }
        Ok(())
    }

    fn copy(&mut self, at: At, transfer: &Transfer) -> Result<(), ProgramFlaw> {
        let (from, to) = Transfer::direction(at.stream);
        let version = self.version(at.step, transfer.content);
        let end = transfer.begin.checked_add(transfer.bytes);
        if end.is_none_or(|end| end > self.program.contents[transfer.content].bytes.0) {
            let command = name(self.program, at.stream, at.index);
            return Err(ProgramFlaw::Malformed { command, what: "it copies more than there is" });
        }
        self.find(at, from, transfer.span(from), version, transfer.begin)?;
        self.replace(at, to, transfer.span(to), Some(version), transfer.begin)
    }

    fn read(
        &mut self,
        at: At,
        step: usize,
        memory: Memory,
        tensor: &PlacedTensor,
    ) -> Result<(), ProgramFlaw> {
        let Some(span) = tensor.span() else { return Ok(()) };
        let version = self.version(step, tensor.content);
        self.find(at, memory, span, version, tensor.begin)
    }

    fn write(&mut self, at: At, memory: Memory, tensor: &PlacedTensor) -> Result<(), ProgramFlaw> {
        let Some(span) = tensor.span() else { return Ok(()) };
        self.replace(at, memory, span, Some((at.step, tensor.content)), tensor.begin)
    }

    /// Checks that the command reads the version, from its byte `begin` on.
    fn find(
        &mut self,
        at: At,
        memory: Memory,
        span: Range<u64>,
        version: Version,
        begin: u64,
    ) -> Result<(), ProgramFlaw> {
        let places = self.used(at, memory, span, begin)?;
        let program = self.program;
        let stale = || ProgramFlaw::Stale {
            command: name(program, at.stream, at.index),
            content: program.contents[version.1].name.to_string(),
        };
        for (span, base) in places {
            if !self.memories[memory as usize].covers(span.clone()) {
                return Err(stale());
            }
            for (_, held) in self.memories[memory as usize].over(span) {
                if held.version != Some(version) || held.base != base {
                    return Err(stale());
                }
                known(program, at, held.writer)?;
                held.readers[at.stream as usize] =
                    (at.step * program.stream(at.stream).len() + at.index) as u32 + 1;
            }
        }
        Ok(())
    }

    /// Records that the command writes the version, from its byte `begin` on, or bytes that must not be read.
    fn replace(
        &mut self,
        at: At,
        memory: Memory,
        span: Range<u64>,
        version: Option<Version>,
        begin: u64,
    ) -> Result<(), ProgramFlaw> {
        let program = self.program;
        for (span, base) in self.used(at, memory, span, begin)? {
            for (_, held) in self.memories[memory as usize].over(span.clone()) {
                known(program, at, held.writer)?;
                for (stream, &count) in held.readers.iter().enumerate().filter(|(_, count)| **count > 0) {
                    known(program, at, Some((stream, count)))?;
                }
            }
            let own = (at.step * program.stream(at.stream).len() + at.index) as u32 + 1;
            let held = Held { version, base, writer: Some((at.stream as usize, own)), readers: [0; 3] };
            self.memories[memory as usize].put(span, held);
        }
        Ok(())
    }

    /// Checks that the addresses are inside the memory.
    fn inside(&self, at: At, memory: Memory, span: &Range<u64>) -> Result<(), ProgramFlaw> {
        let bytes = if memory == Memory::Arena { self.program.arena } else { self.program.slab };
        if span.end <= bytes.0 {
            return Ok(());
        }
        let command = name(self.program, at.stream, at.index);
        Err(ProgramFlaw::Malformed { command, what: "it uses addresses beyond the last" })
    }

    /// Checks that all persistent contents are in their place at the end of the last step.
    fn end(&mut self) -> Result<(), ProgramFlaw> {
        let program = self.program;
        let stays = program.given.iter().map(|given| {
            let version = match given.role {
                Role::Input => (STEPS - 1, given.tensor.content),
                Role::Constant => (0, given.tensor.content),
                Role::Variable(_) => self.version(STEPS, given.tensor.content),
            };
            (given.memory, &given.tensor, version)
        });
        let outputs = program
            .outputs
            .iter()
            .map(|output| (output.memory, &output.tensor, self.version(STEPS - 1, output.tensor.content)));
        let all: Vec<_> = stays.chain(outputs).collect();
        for (memory, tensor, version) in all {
            let Some(span) = tensor.span() else { continue };
            let places = self.places(memory, span, tensor.begin);
            let memory = &mut self.memories[memory as usize];
            let is_there = |(span, base): (Range<u64>, i128)| {
                memory.covers(span.clone())
                    && memory.over(span).all(|(_, held)| held.version == Some(version) && held.base == base)
            };
            if !places.is_some_and(|places| places.into_iter().all(is_there)) {
                return Err(ProgramFlaw::Lost { content: program.contents[tensor.content].name.to_string() });
            }
        }
        Ok(())
    }
}

/// Checks that the other command has certainly completed when this one starts.
fn known(program: &Program, at: At, other: Option<(usize, u32)>) -> Result<(), ProgramFlaw> {
    let Some((stream, count)) = other else { return Ok(()) };
    if stream == at.stream as usize || at.clock[stream] >= count {
        return Ok(());
    }
    let stream = Stream::ALL[stream];
    let index = (count as usize - 1) % program.stream(stream).len();
    Err(ProgramFlaw::Race {
        command: name(program, at.stream, at.index),
        other: name(program, stream, index),
    })
}

/// The name of a command in messages.
fn name(program: &Program, stream: Stream, index: usize) -> String {
    match program.stream(stream).get(index).map(|command| &command.action) {
        Some(Action::Launch(launch)) => format!("{stream} {index} (`{}`)", launch.node),
        Some(Action::Copy(transfer)) => format!("{stream} {index} (`{}`)", transfer.node),
        _ => format!("{stream} {index}"),
    }
}
