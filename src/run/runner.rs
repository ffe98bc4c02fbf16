//! Runs a program on the host or on a CUDA device.

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

/// Facts about a GPU.
pub(super) struct Gpu {
    /// The vendor's name for it.
    pub(super) name: String,
    /// The implementations of matrix products, and of convolutions if there are any.
    pub(super) products: String,
    pub(super) convolutions: Option<String>,
    /// The libraries that the session uses.
    pub(super) libraries: Vec<LibraryFacts>,
}

/// The waits of the compute stream for copies in of the same step, as command and position, those for the largest
/// copies first.
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

/// A watch that does nothing.
struct Unwatched;

impl StepObserver for Unwatched {
    fn turn(&mut self, _turn: &mut Turn<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// Calls the same method of either session.
macro_rules! either {
    ($runner:expr, $session:ident => $body:expr) => {
        match $runner {
            Runner::Host($session) => $body,
            Runner::Cuda($session) => $body,
        }
    };
}

impl Runner {
    /// The program, ready to run; the budget limits the number of chunks, if the session has chunks.
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
                // Without a driver, a compiler is useless, so a missing driver is reported first.
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

    /// The device: `host`, or the vendor's name of a GPU with its architecture.
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

    /// Sets whether operators whose results a closed gate multiplies are skipped; only on the host.
    pub(super) fn skip_closed(&mut self, skips: bool) {
        if let Runner::Host(session) = self {
            session.skip_closed(skips);
        }
    }

    /// Facts about the GPU; `None` on the host.
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

    /// The bytes of its workspace that a launch uses.
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

    /// Runs one step; on the host, on the compute thread.
    pub(super) fn step(&mut self) -> Result<(), RunError> {
        match self {
            Runner::Host(session) => {
                lmsc_kernels::on_compute_thread(|| session.run(1, &mut Unwatched)).map(drop)
            }
            Runner::Cuda(session) => session.run(1, &mut Unwatched).map(drop),
        }
    }
}
