//! A program on the device that was asked for.

use std::cmp::Reverse;

use lmsc_cuda::{self as cuda, KernelCompiler, LibraryFacts};
use lmsc_ir::program::{Action, Checked, Launch, Program, Stream};
use lmsc_runtime::{Fragmentation, HostLink, HostSession, Measurements, RunError, StepObserver, Turn};

use crate::cli::{Device, RunOptions};
use crate::load;

/// A session on the host, or on a device of CUDA.
pub(super) enum Runner {
    Host(Box<HostSession>),
    Cuda(Box<cuda::CudaSession>),
}

/// What there is to say of a GPU.
pub(super) struct Gpu {
    /// The vendor's name for it.
    pub(super) name: String,
    /// What multiplies matrices, and what convolves, if anything is to be convolved.
    pub(super) products: String,
    pub(super) convolutions: Option<String>,
    /// The libraries that it uses.
    pub(super) libraries: Vec<LibraryFacts>,
}

/// The waits of computing for copies back in the same step, as command and position, those for the largest copies first.
fn waits_for_copies(program: &Program) -> Vec<(u32, usize)> {
    let mut found: Vec<(u64, u32, usize)> = Vec::new();
    for (index, command) in (0u32..).zip(program.stream(Stream::Compute)) {
        for (at, wait) in command.waits.iter().enumerate() {
            let of = &program.stream(wait.stream)[wait.command as usize].action;
            if let (Stream::In, false, Action::Copy(copy)) = (wait.stream, wait.before, of) {
                found.push((copy.bytes, index, at));
            }
        }
    }
    found.sort_by_key(|&(bytes, ..)| Reverse(bytes));
    found.into_iter().map(|(_, command, wait)| (command, wait)).collect()
}

/// Looks at nothing within a step.
struct Unwatched;

impl StepObserver for Unwatched {
    fn turn(&mut self, _turn: &mut Turn<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// Calls the same method of either.
macro_rules! either {
    ($runner:expr, $session:ident => $body:expr) => {
        match $runner {
            Runner::Host($session) => $body,
            Runner::Cuda($session) => $body,
        }
    };
}

impl Runner {
    /// The program, ready to run; the budget bounds chunks, where it runs in some.
    pub(super) fn new(
        program: Checked,
        device: Device,
        options: &RunOptions,
        link: HostLink,
        budget: Option<u64>,
    ) -> Result<Runner, RunError> {
        Ok(match (device, options.chunk) {
            (Device::Cuda { ordinal, graph, precision, own_kernels }, chunk) => {
                let compiler =
                    KernelCompiler::new().map_err(|missing| RunError::NoDevice(missing.to_string()));
                // Without a driver a compiler is of no use, so what is said of the driver goes first.
                cuda::probe(ordinal).map_err(|error| RunError::NoDevice(error.to_string()))?;
                let (require_libraries, without_waits) = (options.require_libraries, options.without_waits);
                let single_kernels = false;
                let options = cuda::CudaOptions {
                    ordinal,
                    graph,
                    precision,
                    own_kernels,
                    require_libraries,
                    single_kernels,
                    budget,
                };
                let compiler = compiler?;
                let mut session = match chunk {
                    Some(chunk) => {
                        cuda::CudaSession::in_chunks(&program, options, &compiler, chunk.0, budget)?
                    }
                    None => cuda::CudaSession::new(program, options, &compiler)?,
                };
                load::warn(&session.fallbacks());
                if let Some(count) = without_waits {
                    let waits = waits_for_copies(session.program());
                    if count > waits.len() {
                        let all = waits.len();
                        let why = format!("--without-waits {count}: computing waits for {all} copies");
                        return Err(RunError::Stopped(why));
                    }
                    for &(command, wait) in &waits[..count] {
                        session.forget(Stream::Compute, command, wait);
                    }
                }
                Runner::Cuda(Box::new(session))
            }
            (Device::Host, Some(chunk)) => {
                Runner::Host(Box::new(HostSession::in_chunks(&program, link, chunk.0, budget)?))
            }
            (Device::Host, None) => Runner::Host(Box::new(HostSession::new(program, link)?)),
        })
    }

    pub(super) fn program(&self) -> &Checked {
        either!(self, session => session.program())
    }

    /// What runs it: the host, or a device as its vendor calls it, with its architecture.
    pub(super) fn device(&self) -> String {
        match self {
            Runner::Host(_) => "host".to_owned(),
            Runner::Cuda(session) => format!("{} ({})", session.device(), session.architecture()),
        }
    }

    pub(super) fn steps(&self) -> u64 {
        either!(self, session => session.steps())
    }

    pub(super) fn set_steps(&mut self, steps: u64) {
        either!(self, session => session.set_steps(steps));
    }

    pub(super) fn set_seed(&mut self, seed: u64) {
        either!(self, session => session.seed = seed);
    }

    pub(super) fn set_traces(&mut self, traces: bool) {
        either!(self, session => session.traces = traces);
    }

    /// Says whether what a closed gate multiplies is left out: on the host.
    pub(super) fn skip_closed(&mut self, skips: bool) {
        if let Runner::Host(session) = self {
            session.skip_closed(skips);
        }
    }

    /// The GPU, if it is one.
    pub(super) fn gpu(&self) -> Option<Gpu> {
        match self {
            Runner::Host(_) => None,
            Runner::Cuda(session) => Some(Gpu {
                name: session.device().to_owned(),
                products: session.products(),
                convolutions: session.convolutions(),
                libraries: session.libraries(),
            }),
        }
    }

    /// The bytes of workspace with which a launch does what it does, of those that it has.
    pub(super) fn workspace(&self, index: u32, launch: &Launch) -> u64 {
        match self {
            Runner::Host(_) => launch.workspace.end - launch.workspace.start,
            Runner::Cuda(session) => session.workspace(index),
        }
    }

    pub(super) fn fragmentation(&self) -> Option<Fragmentation> {
        either!(self, session => session.fragmentation)
    }

    pub(super) fn get(&mut self, name: &str) -> Option<Vec<u8>> {
        either!(self, session => session.get(name))
    }

    pub(super) fn set(&mut self, name: &str, bytes: &[u8]) -> bool {
        either!(self, session => session.set(name, bytes))
    }

    pub(super) fn run(&mut self, steps: u64, watch: &mut dyn StepObserver) -> Result<Measurements, RunError> {
        either!(self, session => session.run(steps, watch))
    }

    /// Runs one step; on the host, on a thread that computes, whichever thread calls.
    pub(super) fn step(&mut self) -> Result<(), RunError> {
        match self {
            Runner::Host(session) => {
                lmsc_kernels::on_compute_thread(|| session.run(1, &mut Unwatched)).map(drop)
            }
            Runner::Cuda(session) => session.run(1, &mut Unwatched).map(drop),
        }
    }
}
