//! Runs a program on the host or on a CUDA device.

use std::cmp::Reverse;

use lmsc_cuda::engines::StepEngines;
use lmsc_cuda::{self as cuda, KernelCompiler, LibraryFacts};
use lmsc_ir::program::{Action, Checked, Program, Stream};
use lmsc_runtime::{
    DeviceBytes, DeviceSession, Fragmentation, HostLink, HostSession, Measurements, RunError, StepObserver,
};

use super::RunOptions;
use crate::job::Device;
use crate::{Code, Error, Warning};

/// A program on the device that was asked for.
pub(crate) struct Runner {
    session: Box<dyn DeviceSession>,
    gpu: Option<Gpu>,
}

/// Facts about a GPU.
#[derive(Clone)]
pub(crate) struct Gpu {
    /// The vendor's name for it.
    pub(crate) name: String,
    /// The implementations of matrix products, and of convolutions if there are any.
    pub(crate) products: String,
    pub(crate) convolutions: Option<String>,
    /// The libraries that the session uses.
    pub(crate) libraries: Vec<LibraryFacts>,
    /// Sentences about libraries for which own kernels stand in.
    fallbacks: Vec<String>,
    /// The engines of convolutions, if cuDNN convolves.
    engines: Option<StepEngines>,
}

/// The sentence about convolutions that run by other engines than planned; none if there are none.
fn other_engines(planned: &StepEngines, found: &StepEngines) -> Option<String> {
    let [all, different] = planned.compared(found);
    let instead = |what: &str, planned: &str, found: &str| {
        (planned != found).then(|| format!("{what}{found} in place of {planned}"))
    };
    let reasons = [
        instead("cuDNN ", &planned.version, &found.version),
        instead("the precision ", &planned.precision, &found.precision),
    ];
    let reasons: Vec<String> = reasons.into_iter().flatten().collect();
    let why = if reasons.is_empty() { "another card".to_owned() } else { reasons.join(", ") };
    if different > 0 {
        return Some(format!("{different} of {all} convolutions run by other engines than planned: {why}"));
    }
    (planned.version != found.version)
        .then(|| format!("convolutions run by engines of the same number as planned, but by {why}"))
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

/// The error of a value that could not be copied to the device, or from it.
fn not_copied(error: &RunError) -> Error {
    Error::new(Code::Failed, format!("a value cannot be copied: {error}"))
}

/// The session on a GPU.
fn on_gpu(
    program: Checked,
    options: cuda::CudaOptions,
    run: &RunOptions,
) -> Result<cuda::CudaSession, RunError> {
    let compiler = KernelCompiler::new().map_err(|missing| RunError::NoDevice(missing.to_string()));
    // Without a driver, a compiler is useless, so a missing driver is reported first.
    cuda::probe(options.ordinal).map_err(|error| RunError::NoDevice(error.to_string()))?;
    let compiler = compiler?;
    let mut session = match run.chunk {
        Some(chunk) => cuda::CudaSession::in_chunks(&program, options, &compiler, chunk.0, options.budget)?,
        None => cuda::CudaSession::new(program, options, &compiler)?,
    };
    if let Some(count) = run.without_waits {
        let waits = waits_for_copies(session.program());
        if count > waits.len() {
            let why = format!("--without-waits {count}: computing waits for {} copies", waits.len());
            return Err(RunError::Stopped(why));
        }
        for &(command, wait) in &waits[..count] {
            session.forget(Stream::Compute, command, wait);
        }
    }
    Ok(session)
}

impl Runner {
    /// The program, ready to run; the budget limits the number of chunks, if the session has chunks.
    pub(crate) fn new(
        program: Checked,
        device: Device,
        options: &RunOptions,
        link: HostLink,
        budget: Option<u64>,
    ) -> Result<Runner, RunError> {
        let Device::Cuda { ordinal, graph, precision, own_kernels } = device else {
            let session = match options.chunk {
                Some(chunk) => HostSession::in_chunks(&program, link, chunk.0, budget)?,
                None => HostSession::new(program, link)?,
            };
            return Ok(Runner { session: Box::new(session), gpu: None });
        };
        let (require_libraries, single_kernels) = (options.require_libraries, false);
        let with = cuda::CudaOptions {
            ordinal,
            graph,
            precision,
            own_kernels,
            require_libraries,
            single_kernels,
            synchronous: options.synchronous,
            budget,
        };
        let session = on_gpu(program, with, options)?;
        let gpu = Gpu {
            name: session.device_name().to_owned(),
            fallbacks: session.fallbacks(),
            engines: session.engines(),
            products: session.products(),
            convolutions: session.convolutions(),
            libraries: session.libraries(),
        };
        Ok(Runner { session: Box::new(session), gpu: Some(gpu) })
    }

    /// The session.
    pub(crate) fn session(&mut self) -> &mut dyn DeviceSession {
        &mut *self.session
    }

    pub(crate) fn program(&self) -> &Checked {
        self.session.program()
    }

    pub(crate) fn device(&self) -> String {
        self.session.device()
    }

    pub(crate) fn steps(&self) -> u64 {
        self.session.steps()
    }

    /// Warnings about libraries for which own kernels stand in, and about other engines than those that are planned.
    pub(crate) fn warnings(&self, planned: Option<&StepEngines>) -> Vec<Warning> {
        let fallbacks = self.gpu.iter().flat_map(|gpu| &gpu.fallbacks);
        let fallbacks = fallbacks.map(|fallback| Warning::new(Code::OwnKernels, fallback.clone()));
        let found = self.gpu.as_ref().and_then(|gpu| gpu.engines.as_ref());
        let other = planned.zip(found).and_then(|(planned, found)| other_engines(planned, found));
        fallbacks.chain(other.map(|other| Warning::new(Code::OtherEngines, other))).collect()
    }

    /// The facts about the GPU; none on the host.
    pub(crate) fn gpu(&self) -> Option<Gpu> {
        self.gpu.clone()
    }

    pub(crate) fn workspace(&self, command: u32) -> u64 {
        self.session.workspace(command)
    }

    pub(crate) fn fragmentation(&self) -> Option<Fragmentation> {
        self.session.fragmentation()
    }

    /// The value of a tensor; none if there is none of this name.
    ///
    /// # Errors
    /// [`Code::Failed`] if the device fails.
    pub(crate) fn get(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        self.session.get(name).map_err(|error| not_copied(&error))
    }

    /// Sets a tensor; false if there is none of this name and size.
    ///
    /// # Errors
    /// [`Code::Failed`] if the device fails.
    pub(crate) fn set(&mut self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        self.session.set(name, bytes).map_err(|error| not_copied(&error))
    }

    /// Sets a tensor to bytes in the memory of the device; false if there is none of this name and size.
    ///
    /// # Errors
    /// [`Code::Failed`] if the device fails, or if the bytes are not there.
    pub(crate) fn set_within(&mut self, name: &str, at: DeviceBytes) -> Result<bool, Error> {
        self.session.set_within(name, at).map_err(|error| not_copied(&error))
    }

    pub(crate) fn run(
        &mut self,
        steps: u64,
        observer: &mut dyn StepObserver,
    ) -> Result<Measurements, RunError> {
        self.session.run(steps, observer)
    }

    /// Runs one step, whichever thread calls.
    pub(crate) fn step(&mut self) -> Result<(), RunError> {
        self.session.step()
    }
}
