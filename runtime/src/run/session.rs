//! Running a program step after step: a thread for each stream, and a loop about a screen long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lmsc_ir::program::{Action, Checked, Given, Launch, Memory, Output, Program, Role, Stream, Tensor, Wait};
use lmsc_ir::{Bytes, Data};

use super::chunks::{Fragmentation, apart};
use super::device::Device;
use super::host::Host;
use super::kernels::{Kernels, NotReady};
use super::meter::Meter;
use super::progress::{Progress, StopOnPanic, Stopped};
use super::{Event, Link, Measured, pages};
use crate::kernel::Step;

/// Why a run did not start, or ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Nodes have no kernel, or no room.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// The system does not give the memory.
    #[error("the system does not give {bytes} bytes of memory")]
    NoMemory {
        /// How many were asked for.
        bytes: u64,
    },
    /// Chunks are not of whole pages.
    #[error(
        "chunks of {bytes} bytes; they are multiples of {}, up to {}",
        Bytes(pages::LEAST),
        Bytes(pages::LARGEST)
    )]
    Chunk {
        /// How many bytes were asked for.
        bytes: u64,
    },
    /// The system does not map so many chunks.
    #[error("{chunks} chunks; the system maps no more than {} of them", pages::MOST)]
    Many {
        /// How many were asked for.
        chunks: u64,
    },
    /// There are too few chunks.
    #[error("the step needs {needed} chunks of {bytes} bytes ({}), and there are {chunks}", Bytes(*bytes))]
    Chunks {
        /// How many it needs.
        needed: u64,
        /// How many there are.
        chunks: u64,
        /// Bytes of a chunk.
        bytes: u64,
    },
    /// Who watches wants no more.
    #[error("{0}")]
    Stopped(String),
}

/// Somebody who sees a run from within. All of it happens in the thread that computes.
pub trait Watch {
    /// It is the caller's turn, before each step. `Err` ends the run before this step.
    ///
    /// # Errors
    /// Why the run ends.
    fn turn(&mut self, turn: &mut Turn<'_>) -> Result<(), String>;

    /// A kernel has run; `bytes` are those of its operands and results.
    ///
    /// # Errors
    /// Why the run ends.
    fn launched(&mut self, _launch: &Launch, _bytes: &dyn Fn(&Tensor) -> Vec<u8>) -> Result<(), String> {
        Ok(())
    }
}

/// What the caller may do before a step.
pub struct Turn<'a> {
    device: &'a dyn Device,
    program: &'a Program,
    /// How many steps came before, in all runs together.
    pub number: u64,
    /// Whether there was a step before in this run, whose outputs can be read.
    pub has_outputs: bool,
}

impl Turn<'_> {
    /// An output of the step before.
    pub fn output(&self, name: &str) -> Option<&[u8]> {
        let output = self.program.outputs.iter().find(|output| *output.tensor.name == *name)?;
        self.has_outputs.then(|| self.device.peek(output.memory, &output.tensor))
    }

    /// Sets an input of this step; false where there is none of this name and size that a step does not write itself.
    pub fn set(&mut self, name: &str, bytes: &[u8]) -> bool {
        let is_meant = |given: &&Given| given.role == Role::Input && *given.tensor.name == *name;
        let given = self.program.given.iter().find(is_meant);
        let given = given.filter(|given| given.tensor.bytes() == bytes.len() as u64);
        given.inspect(|given| self.device.poke(given.memory, &given.tensor, bytes)).is_some()
    }
}

/// A program on the host, with what its variables hold.
#[derive(Debug)]
pub struct Session {
    host: Host,
    meter: Meter,
    names: BTreeMap<String, (Memory, Tensor)>,
    /// What chunks come to, where it runs in chunks.
    pub fragmentation: Option<Fragmentation>,
    /// How many steps have been run.
    steps: u64,
    /// Whether a run before has left outputs.
    has_left: bool,
    /// What random operators draw from, besides node and step.
    pub seed: u64,
    /// Whether to tell what each command did and when.
    pub traces: bool,
}

impl Session {
    /// The program, ready to run: everything is allocated, and what the model has is where it belongs; the rest is zero.
    ///
    /// # Errors
    /// [`RunError::NotReady`], [`RunError::NoMemory`].
    pub fn new(program: Checked, link: Link) -> Result<Session, RunError> {
        Session::on(program, link, None)
    }

    /// The program, ready to run as [`Session::new`] makes it, in chunks of so many bytes instead of one arena: as many as
    /// there are in the budget, or as it needs.
    ///
    /// # Errors
    /// [`RunError::Chunk`], [`RunError::Chunks`], [`RunError::Many`], and those of [`Session::new`].
    ///
    /// # Source
    /// OOC §4.
    pub fn in_chunks(
        program: &Checked,
        link: Link,
        chunk: u64,
        budget: Option<u64>,
    ) -> Result<Session, RunError> {
        if !(pages::LEAST..=pages::LARGEST).contains(&chunk) || !chunk.is_multiple_of(pages::LEAST) {
            return Err(RunError::Chunk { bytes: chunk });
        }
        let program = apart(Program::clone(program), chunk);
        let fragmentation = Fragmentation::of(&program, chunk);
        let (needed, bytes) = (fragmentation.chunks, chunk);
        let chunks = budget.map_or(needed, |budget| budget / chunk);
        if needed > chunks {
            return Err(RunError::Chunks { needed, chunks, bytes });
        }
        if needed > pages::MOST {
            return Err(RunError::Many { chunks: needed });
        }
        let program = Checked::new(program).expect("less shares an address than before");
        let session = Session::on(program, link, Some((chunk, chunks)))?;
        Ok(Session { fragmentation: Some(fragmentation), ..session })
    }

    fn on(program: Checked, link: Link, chunks: Option<(u64, u64)>) -> Result<Session, RunError> {
        let kernels = Kernels::prepare(&program)?;
        let meter = Meter::new(&program);
        let mut host =
            Host::new(program, kernels, link, chunks).map_err(|bytes| RunError::NoMemory { bytes })?;
        let mut names = BTreeMap::new();
        for Output { tensor, memory } in &host.program().outputs {
            names.insert(tensor.name.to_string(), (*memory, tensor.clone()));
        }
        let mut data = Vec::new();
        for given in &host.program().given {
            names.insert(given.tensor.name.to_string(), (given.memory, given.tensor.clone()));
            if let (Some(Data::Inline(bytes)), Some(span)) = (&given.data, given.tensor.span()) {
                data.push((given.memory, span, bytes.clone()));
            }
        }
        for (memory, span, bytes) in data {
            host.bytes(memory, span).copy_from_slice(&bytes);
        }
        Ok(Session {
            host,
            meter,
            names,
            fragmentation: None,
            steps: 0,
            has_left: false,
            seed: 0,
            traces: false,
        })
    }

    /// The program.
    pub fn program(&self) -> &Checked {
        self.host.program()
    }

    /// How many steps have been run, before and by this session.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Says that so many steps have been run.
    pub fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    /// What is given or what the caller gets, of this name, between runs.
    pub fn get(&mut self, name: &str) -> Option<Vec<u8>> {
        let (memory, tensor) = self.names.get(name)?;
        Some(match tensor.span() {
            Some(span) => self.host.bytes(*memory, span).to_vec(),
            None => self.host.known(tensor).to_vec(),
        })
    }

    /// Sets what is given, between runs; false where there is nothing of this name and size.
    pub fn set(&mut self, name: &str, bytes: &[u8]) -> bool {
        let Some((memory, tensor)) = self.names.get(name) else { return false };
        if tensor.bytes() != bytes.len() as u64 {
            return false;
        }
        if let Some(span) = tensor.span() {
            self.host.bytes(*memory, span).copy_from_slice(bytes);
        }
        true
    }

    /// Runs so many steps, one into the other, and waits for the last to end.
    ///
    /// # Errors
    /// [`RunError::Stopped`], with what the watch says.
    pub fn run(&mut self, steps: u64, watch: &mut dyn Watch) -> Result<Measured, RunError> {
        let progress = Progress::default();
        let start = Instant::now();
        let lane = |stream: Stream| Lane {
            device: &self.host,
            program: self.host.program(),
            meter: &self.meter,
            progress: &progress,
            start,
            stream,
            step: Step { number: self.steps, seed: self.seed },
            has_left: self.has_left,
            traces: self.traces,
            measured: Measured::default(),
        };
        let (mut measured, why) = std::thread::scope(|scope| {
            let copying = [Stream::Out, Stream::In].map(|stream| {
                let mut lane = lane(stream);
                scope.spawn(move || {
                    _ = lane.drive(steps, &mut Silent);
                    lane.measured
                })
            });
            let mut lane = lane(Stream::Compute);
            let why = lane.drive(steps, watch).err().flatten();
            if why.is_some() {
                progress.stop();
            }
            let mut measured = lane.measured;
            for thread in copying {
                let other = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                measured.events.extend(other.events);
                measured.busy.iter_mut().zip(other.busy).for_each(|(all, one)| *all += one);
            }
            (measured, why)
        });
        self.steps += steps;
        self.has_left = true;
        measured.peak = self.meter.peak();
        match why {
            Some(why) => Err(RunError::Stopped(why)),
            None => Ok(measured),
        }
    }
}

/// Nobody watches.
struct Silent;

impl Watch for Silent {
    fn turn(&mut self, _: &mut Turn<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// A stream and the thread that runs it.
struct Lane<'a, D> {
    device: &'a D,
    program: &'a Program,
    meter: &'a Meter,
    progress: &'a Progress,
    start: Instant,
    stream: Stream,
    step: Step,
    has_left: bool,
    traces: bool,
    measured: Measured,
}

impl<D: Device> Lane<'_, D> {
    /// Runs the stream's commands, so many steps. Whoever does not come to the end says why, if it is his own doing.
    fn drive(&mut self, steps: u64, watch: &mut dyn Watch) -> Result<(), Option<String>> {
        let _guard = StopOnPanic(self.progress);
        let (program, stream) = (self.program, self.stream);
        let commands = program.stream(stream);
        let mut turned = self.start.elapsed();
        for step in 0..steps {
            for (index, command) in (0..).zip(commands) {
                let waited = self.start.elapsed();
                let cause = self.wait(&command.waits, step).map_err(|Stopped| None)?;
                let begun = self.start.elapsed();
                if !self.device.arrive(stream, index, &|| self.progress.is_stopped()) {
                    return Err(None);
                }
                self.meter.begin(stream, index);
                let live = self.meter.live();
                match &command.action {
                    Action::Turn => {
                        self.turn(step, watch)?;
                        let now = self.start.elapsed();
                        self.measured.steps.extend((step > 0).then(|| now.saturating_sub(turned)));
                        turned = now;
                    }
                    Action::Launch(launch) => {
                        self.device.launch(index, Step { number: self.step.number + step, ..self.step });
                        let bytes = |tensor: &Tensor| self.device.peek(Memory::Arena, tensor).to_vec();
                        watch.launched(launch, &bytes)?;
                    }
                    Action::Copy(copy) => self.device.copy(stream, copy),
                }
                let ended = self.start.elapsed();
                self.measured.busy[stream as usize] += ended.saturating_sub(begun);
                self.measured.stalled += begun.saturating_sub(waited);
                if self.traces {
                    let event = Event { stream, command: index, step, waited, begun, ended, cause, live };
                    self.measured.events.push(event);
                }
                self.meter.end(stream, index, |residency| self.device.leave(residency));
                self.progress.complete(stream, step * commands.len() as u64 + u64::from(index) + 1);
            }
        }
        self.measured.steps.push(self.start.elapsed().saturating_sub(turned));
        Ok(())
    }

    /// Waits for all of these; the stream that took longest, if one took any time.
    fn wait(&self, waits: &[Wait], step: u64) -> Result<Option<Stream>, Stopped> {
        let mut longest = (Duration::ZERO, None);
        for wait in waits {
            let Some(of) = step.checked_sub(u64::from(wait.before)) else { continue };
            let since = Instant::now();
            let length = self.program.stream(wait.stream).len() as u64;
            self.progress.wait(wait.stream, of * length + u64::from(wait.command) + 1)?;
            longest = longest.max((since.elapsed(), Some(wait.stream)));
        }
        if self.progress.is_stopped() { Err(Stopped) } else { Ok(longest.1) }
    }

    fn turn(&self, step: u64, watch: &mut dyn Watch) -> Result<(), String> {
        let number = self.step.number + step;
        let (device, program) = (self.device as &dyn Device, self.program);
        watch.turn(&mut Turn { device, program, number, has_outputs: step > 0 })?;
        if step > 0 || self.has_left {
            self.meter.turn(|residency| self.device.leave(residency));
        }
        Ok(())
    }
}
