//! The caller's turn between two steps of a run, and the errors that end a run.

use std::borrow::Cow;
use std::cell::RefCell;

use lmsc_ir::Bytes;
use lmsc_ir::program::{Given, Launch, Memory, PlacedTensor, Program, Role, Stream};

use super::device::Tensors;
use super::kernels::NotReady;
use super::pages;

/// Why a run did not start, or ended early.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Nodes have no kernel, or too little workspace.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// The system refuses the memory.
    #[error("the system does not give the {bytes} ({} bytes) of the {}", bytes.0, called(*.memory))]
    NoMemory {
        /// The memory that was requested.
        memory: Memory,
        /// Size in bytes.
        bytes: Bytes,
    },
    /// The system refuses a thread.
    #[error("the system does not give the thread that copies ({stream}): {why}")]
    NoThread {
        /// The thread's stream.
        stream: Stream,
        /// The system's message.
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
        /// The device's message.
        why: String,
    },
    /// An operator is not defined for a value: an index or a label is out of range.
    #[error("node `{node}` ({op}), step {step}: {why}")]
    Value {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// The step, from 1 in all runs together.
        step: u64,
        /// The value.
        why: String,
        /// Whether all variables have the values that they had before the step.
        keeps_state: bool,
    },
    /// Chunks do not consist of whole pages.
    #[error(
        "chunks of {bytes} bytes; they are multiples of {}, up to {}",
        Bytes(pages::LEAST),
        Bytes(pages::LARGEST)
    )]
    Chunk {
        /// Requested size in bytes.
        bytes: u64,
    },
    /// The system cannot map this number of chunks.
    #[error("{chunks} chunks; the system maps no more than {} of them", pages::MOST)]
    Many {
        /// Requested number.
        chunks: u64,
    },
    /// There are too few chunks.
    #[error("the step needs {needed} chunks of {bytes} bytes ({}), and there are {chunks}", Bytes(*bytes))]
    Chunks {
        /// Number of chunks that the step needs.
        needed: u64,
        /// Number of chunks available.
        chunks: u64,
        /// Bytes of a chunk.
        bytes: u64,
    },
    /// The step and the constants of its kernels exceed the budget.
    #[error("the step needs {needed} ({} bytes) with the constants of its kernels, and may use {budget} ({} bytes)", needed.0, budget.0)]
    Budget {
        /// Size in bytes that they need.
        needed: Bytes,
        /// Size in bytes that they may use.
        budget: Bytes,
    },
    /// The device has too little free memory.
    #[error(
        "the step needs {needed} ({} bytes) of the device's memory, of which {free} ({} bytes) are free: {total} less \
         what others use",
        needed.0, free.0
    )]
    DeviceMemory {
        /// Size in bytes that the step needs.
        needed: Bytes,
        /// Size in bytes that is free.
        free: Bytes,
        /// Size in bytes of the device's memory.
        total: Bytes,
    },
    /// There is no such device, or a library that it needs is not found.
    #[error("{0}")]
    NoDevice(String),
    /// Own kernels would do work that a library could do, which the options forbid.
    #[error("{0}")]
    NoLibrary(String),
    /// The device fails.
    #[error("{0}")]
    Device(String),
    /// The watch ended the run.
    #[error("{0}")]
    Stopped(String),
}

fn called(memory: Memory) -> &'static str {
    match memory {
        Memory::Arena => "device's arena",
        Memory::Slab => "host's memory for what leaves the device",
    }
}

/// Callbacks during a run. All of them are called from the compute thread.
pub trait StepObserver {
    /// Called at the caller's turn, before each step. `Err` aborts the run; [`Turn::end`] ends it.
    ///
    /// # Errors
    /// Why the run ends.
    fn turn(&mut self, turn: &mut Turn<'_>) -> Result<(), String>;

    /// Called when a kernel has run; `bytes` reads its operands and results, which a device may fail to do.
    ///
    /// # Errors
    /// Why the run ends.
    fn launched(
        &mut self,
        _launch: &Launch,
        _bytes: &dyn Fn(&PlacedTensor) -> Result<Vec<u8>, String>,
    ) -> Result<(), String> {
        Ok(())
    }

    /// Whether [`launched`](StepObserver::launched) is needed: a device then runs kernels one by one, and reports each.
    fn looks(&self) -> bool {
        false
    }
}

/// Access to inputs and outputs before a step.
pub struct Turn<'a> {
    device: &'a dyn Tensors,
    program: &'a Program,
    ends: bool,
    /// The first failure of the device.
    failed: RefCell<Option<String>>,
    /// Number of steps before this one, in all runs together.
    pub number: u64,
    /// Whether this run had a step before, whose outputs can be read.
    pub has_outputs: bool,
}

impl<'a> Turn<'a> {
    /// The turn before a step of the program on the device.
    pub fn new(device: &'a dyn Tensors, program: &'a Program, number: u64, has_outputs: bool) -> Turn<'a> {
        Turn { device, program, ends: false, failed: RefCell::default(), number, has_outputs }
    }

    /// Gives the turn to the watch; returns whether it ends the run.
    ///
    /// # Errors
    /// [`RunError::Device`] if the device failed meanwhile, else [`RunError::Stopped`].
    pub fn taken_by(mut self, watch: &mut dyn StepObserver) -> Result<bool, RunError> {
        let taken = watch.turn(&mut self);
        match self.failed.into_inner() {
            Some(failure) => Err(RunError::Device(failure)),
            None => taken.map(|()| self.ends).map_err(RunError::Stopped),
        }
    }

    /// Ends the run after the step before, as if no further steps had been requested.
    pub fn end(&mut self) {
        self.ends = true;
    }

    /// An output of the step before; none as well if the device fails, which ends the run after the turn.
    pub fn output(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let output = self.program.outputs.iter().find(|output| *output.tensor.name == *name)?;
        let read = self.has_outputs.then(|| self.device.peek(output.memory, &output.tensor));
        read?.map_err(|failure| self.fail(failure)).ok()
    }

    /// An input, an initializer or a variable, as the step will read it; none as well if the device fails, which ends the run after the
    /// turn.
    pub fn given(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let given = self.program.given.iter().find(|given| *given.tensor.name == *name)?;
        self.device.peek(given.memory, &given.tensor).map_err(|failure| self.fail(failure)).ok()
    }

    fn fail(&self, failure: String) {
        self.failed.borrow_mut().get_or_insert(failure);
    }

    /// Sets an input of this step; false if there is no input of this name and size.
    pub fn set(&mut self, name: &str, bytes: &[u8]) -> bool {
        let is_meant = |given: &&Given| given.role == Role::Input && *given.tensor.name == *name;
        let given = self.program.given.iter().find(is_meant);
        let given = given.filter(|given| given.tensor.bytes() == bytes.len() as u64);
        let Some(given) = given else { return false };
        if let Err(failure) = self.device.poke(given.memory, &given.tensor, bytes) {
            self.fail(failure);
        }
        true
    }
}

/// An observer that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl StepObserver for Unobserved {
    fn turn(&mut self, _turn: &mut Turn<'_>) -> Result<(), String> {
        Ok(())
    }
}
