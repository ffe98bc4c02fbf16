//! A program on the host, ready to run any number of steps, and what its caller sees of them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use lmsc_ir::program::{Checked, Given, Launch, Memory, Output, Program, Role, Stream, Tensor};
use lmsc_ir::{Bytes, Data};

use super::chunks::{Fragmentation, apart};
use super::device::Device;
use super::drive::{Drive, drive};
use super::host::Host;
use super::kernels::{Kernels, NotReady};
use super::{Link, Measured, pages};
use crate::kernel::Step;

/// Why a run did not start, or ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Nodes have no kernel, or no room.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// The system does not give the memory.
    #[error("the system does not give the {bytes} ({} bytes) of the {}", bytes.0, called(*.memory))]
    NoMemory {
        /// For which memory.
        memory: Memory,
        /// How many bytes were asked for.
        bytes: Bytes,
    },
    /// The system does not give a thread.
    #[error("the system does not give the thread that copies ({stream}): {why}")]
    NoThread {
        /// The stream that it was for.
        stream: Stream,
        /// What the system says.
        why: String,
    },
    /// The device could not copy.
    #[error("the copy `{node}` ({stream}) failed in step {step}: {why}")]
    Copy {
        /// The node that copies.
        node: String,
        /// Its stream.
        stream: Stream,
        /// The step, from 1 in all runs together.
        step: u64,
        /// What the device says.
        why: String,
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
    /// The step and the constants of its kernels do not fit what they may use.
    #[error("the step needs {needed} ({} bytes) with the constants of its kernels, and may use {budget} ({} bytes)", needed.0, budget.0)]
    Budget {
        /// How many bytes they need.
        needed: Bytes,
        /// How many they may use.
        budget: Bytes,
    },
    /// The device has too little memory that is free.
    #[error(
        "the step needs {needed} ({} bytes) of the device's memory, of which {free} ({} bytes) are free: {total} less \
         what others use",
        needed.0, free.0
    )]
    DeviceMemory {
        /// How many bytes it needs.
        needed: Bytes,
        /// How many are free.
        free: Bytes,
        /// How many the device has.
        total: Bytes,
    },
    /// There is no such device, or what it needs is not found.
    #[error("{0}")]
    NoDevice(String),
    /// Own kernels would do what a library could, and they may not.
    #[error("{0}")]
    NoLibrary(String),
    /// The device fails.
    #[error("{0}")]
    Device(String),
    /// Who watches wants no more.
    #[error("{0}")]
    Stopped(String),
}

fn called(memory: Memory) -> &'static str {
    match memory {
        Memory::Arena => "device's arena",
        Memory::Slab => "host's memory for what leaves the device",
    }
}

/// Somebody who sees a run from within. All of it happens in the thread that computes.
pub trait Watch {
    /// It is the caller's turn, before each step. `Err` gives the run up; [`Turn::end`] ends it.
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

    /// Whether [`launched`](Watch::launched) is of interest: a device then runs kernels one by one, and tells of each.
    fn looks(&self) -> bool {
        false
    }
}

/// What the caller may do before a step.
pub struct Turn<'a> {
    pub(crate) device: &'a dyn Device,
    pub(crate) program: &'a Program,
    pub(crate) ends: bool,
    /// How many steps came before, in all runs together.
    pub number: u64,
    /// Whether there was a step before in this run, whose outputs can be read.
    pub has_outputs: bool,
}

impl Turn<'_> {
    /// Ends the run with the step before, as if no more had been asked for.
    pub fn end(&mut self) {
        self.ends = true;
    }

    /// An output of the step before.
    pub fn output(&self, name: &str) -> Option<Cow<'_, [u8]>> {
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
    names: BTreeMap<String, (Memory, Tensor)>,
    /// What chunks come to, where it runs in chunks.
    pub fragmentation: Option<Fragmentation>,
    /// Whether a run before has left outputs.
    has_left: bool,
    /// How many steps have been run.
    steps: u64,
    /// What random operators draw from, besides node and step.
    pub seed: u64,
    /// Whether to tell what each command did and when.
    pub traces: bool,
}

impl Session {
    /// The program, ready to run: everything is allocated, and what the model has is where it belongs; the rest is zero.
    /// The session's own program holds none of the model's bytes any more.
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
        let mut host = Host::new(program, kernels, link, chunks)
            .map_err(|(memory, bytes)| RunError::NoMemory { memory, bytes })?;
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
        // What follows from shapes is known before the first step, and at no address.
        for tensor in host.program().prelude.iter().flat_map(|launch| launch.results.iter().flatten()) {
            names.entry(tensor.name.to_string()).or_insert_with(|| (Memory::Arena, tensor.clone()));
        }
        for (memory, span, bytes) in data {
            host.bytes(memory, span).copy_from_slice(&bytes);
        }
        host.forget_data();
        Ok(Session { host, names, fragmentation: None, has_left: false, steps: 0, seed: 0, traces: false })
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

    /// Says whether what a closed gate multiplies is left out of a step ([`lmsc_ir::program::Gates`]). Otherwise it is computed,
    /// and multiplied by 0.
    pub fn skip_closed(&mut self, skips: bool) {
        self.host.skips_closed = skips;
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

    /// Runs so many steps, one into the other, or fewer if the watch ends the run, and waits for the last to end.
    ///
    /// # Errors
    /// [`RunError::Stopped`], with what the watch says; [`RunError::Copy`]; [`RunError::NoThread`].
    pub fn run(&mut self, steps: u64, watch: &mut dyn Watch) -> Result<Measured, RunError> {
        let start = Step { number: self.steps, seed: self.seed };
        let what = Drive { steps, start, has_left: self.has_left, traces: self.traces };
        let measured = drive(&self.host, self.host.program(), what, watch)?;
        self.has_left = true;
        self.steps += measured.steps.len() as u64;
        Ok(measured)
    }
}
