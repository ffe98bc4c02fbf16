//! A program on the host, ready to run any number of steps, and the interface of its caller.

use std::collections::BTreeMap;
use std::time::Duration;

use lmsc_ir::Data;
use lmsc_ir::program::{Action, Checked, Memory, Output, PlacedTensor, Program, Stream};
use lmsc_kernels::kernel::StepContext;

use super::chunks::{Fragmentation, apart};
use super::drive::{Drive, drive};
use super::host::Host;
use super::kernels::Kernels;
use super::turn::{RunError, StepObserver, Unobserved};
use super::{HostLink, Measurements, pages};

/// A program with its memory on a device, which runs it step after step.
///
/// Values are elements in row-major order, little-endian.
pub trait DeviceSession {
    /// The program. It no longer holds the model's data.
    fn program(&self) -> &Checked;

    /// The name of the device: `host`, or the vendor's name of the GPU with the architecture, such as `NVIDIA H200 (sm_90)`.
    fn device(&self) -> String;

    /// Memory that the chunks take; none if the program runs in one arena.
    fn fragmentation(&self) -> Option<Fragmentation>;

    /// Bytes of workspace that a command of the compute stream uses; a library may need less than a plan gives it.
    fn workspace(&self, command: u32) -> u64;

    /// Number of steps that have been run, before and by this session.
    fn steps(&self) -> u64;

    /// Sets the number of steps that have been run.
    fn set_steps(&mut self, steps: u64);

    /// Sets the seed of random operators, used together with node and step.
    fn set_seed(&mut self, seed: u64);

    /// Sets whether to record the times of each command.
    fn set_traces(&mut self, traces: bool);

    /// Sets whether operators whose results a closed gate multiplies are left out of a step ([`lmsc_ir::program::Gates`]). A device
    /// that always computes them ignores it.
    fn skip_closed(&mut self, _skips: bool) {}

    /// The value of a given tensor or of an output, between runs; none if there is none of this name.
    ///
    /// # Errors
    /// [`RunError::Device`].
    fn get(&mut self, name: &str) -> Result<Option<Vec<u8>>, RunError>;

    /// Sets a given tensor, between runs; false if there is none of this name and size.
    ///
    /// # Errors
    /// [`RunError::Device`].
    fn set(&mut self, name: &str, bytes: &[u8]) -> Result<bool, RunError>;

    /// Sets a given tensor, between runs, to bytes in the memory of the same device, after the work that its default stream already has;
    /// false if there is none of this name and size.
    ///
    /// # Errors
    /// [`RunError::Device`], also if the first or the last byte is not memory of this device.
    fn set_within(&mut self, _name: &str, _at: DeviceBytes) -> Result<bool, RunError> {
        Err(RunError::Device(format!("{} has no memory of its own that others could write", self.device())))
    }

    /// Runs `steps` steps, overlapping, or fewer if the observer ends the run, and waits for the last to end.
    ///
    /// # Errors
    /// [`RunError::Stopped`], with the observer's message; [`RunError::Value`], [`RunError::Device`], [`RunError::Copy`],
    /// [`RunError::NoThread`].
    fn run(&mut self, steps: u64, observer: &mut dyn StepObserver) -> Result<Measurements, RunError>;

    /// Runs one step, whichever thread calls.
    ///
    /// # Errors
    /// As [`DeviceSession::run`].
    fn step(&mut self) -> Result<(), RunError> {
        self.run(1, &mut Unobserved).map(drop)
    }

    /// The duration of each launch of a step, the median over `steps` steps after a first one, and the durations of those steps.
    /// Afterwards the values of variables may be meaningless.
    ///
    /// # Errors
    /// As [`DeviceSession::run`].
    fn time_launches(&mut self, steps: u64) -> Result<(Vec<TimedLaunch>, Vec<Duration>), RunError>;
}

/// Duration of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedLaunch {
    /// The first and the last command of the compute stream whose kernels the launch contains; mostly the same one.
    pub commands: [u32; 2],
    /// Duration of one launch.
    pub time: Duration,
}

/// Bytes in the memory of a device, written there by code outside this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceBytes {
    /// The device's address of the first.
    pub address: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// A program on the host, with the values of its variables.
#[derive(Debug)]
pub struct HostSession {
    host: Host,
    names: BTreeMap<String, (Memory, PlacedTensor)>,
    /// Use of chunks, if the program runs in chunks.
    fragmentation: Option<Fragmentation>,
    /// Whether an earlier run has left outputs.
    has_left: bool,
    /// Number of steps that have been run.
    steps: u64,
    /// The seed of random operators, used together with node and step.
    seed: u64,
    /// Whether to record the times of each command.
    traces: bool,
}

impl HostSession {
    /// The program, ready to run: all memory is allocated, and the model's data is copied to its place; the rest is zero. The
    /// session's own program no longer holds the model's data.
    ///
    /// # Errors
    /// [`RunError::NotReady`], [`RunError::NoMemory`].
    pub fn new(program: Checked, link: HostLink) -> Result<HostSession, RunError> {
        HostSession::on(program, link, None)
    }

    /// The program, ready to run as by [`HostSession::new`], but in chunks of `chunk` bytes instead of one arena: as many as fit the
    /// budget or, without one, as the program needs.
    ///
    /// # Errors
    /// [`RunError::Chunk`], [`RunError::Chunks`], [`RunError::Many`], and those of [`HostSession::new`].
    ///
    /// # Source
    /// OOC §4.
    pub fn in_chunks(
        program: &Checked,
        link: HostLink,
        chunk: u64,
        budget: Option<u64>,
    ) -> Result<HostSession, RunError> {
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
        let session = HostSession::on(program, link, Some((chunk, chunks)))?;
        Ok(HostSession { fragmentation: Some(fragmentation), ..session })
    }

    fn on(program: Checked, link: HostLink, chunks: Option<(u64, u64)>) -> Result<HostSession, RunError> {
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
        // Results of the prelude follow from shapes: they are known before the first step, and have no address.
        for tensor in host.program().prelude.iter().flat_map(|launch| launch.results.iter().flatten()) {
            names.entry(tensor.name.to_string()).or_insert_with(|| (Memory::Arena, tensor.clone()));
        }
        for (memory, span, bytes) in data {
            host.bytes(memory, span).copy_from_slice(&bytes);
        }
        host.forget_data();
        Ok(HostSession {
            host,
            names,
            fragmentation: None,
            has_left: false,
            steps: 0,
            seed: 0,
            traces: false,
        })
    }
}

impl DeviceSession for HostSession {
    fn program(&self) -> &Checked {
        self.host.program()
    }

    fn device(&self) -> String {
        "host".to_owned()
    }

    fn fragmentation(&self) -> Option<Fragmentation> {
        self.fragmentation
    }

    fn workspace(&self, command: u32) -> u64 {
        match &self.host.program().stream(Stream::Compute)[command as usize].action {
            Action::Launch(launch) => launch.workspace.end - launch.workspace.start,
            Action::Copy(_) | Action::Turn => 0,
        }
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    fn set_traces(&mut self, traces: bool) {
        self.traces = traces;
    }

    fn skip_closed(&mut self, skips: bool) {
        self.host.skips_closed = skips;
    }

    fn get(&mut self, name: &str) -> Result<Option<Vec<u8>>, RunError> {
        let Some((memory, tensor)) = self.names.get(name) else { return Ok(None) };
        Ok(Some(match tensor.span() {
            Some(span) => self.host.bytes(*memory, span).to_vec(),
            None => self.host.known(tensor).to_vec(),
        }))
    }

    fn set(&mut self, name: &str, bytes: &[u8]) -> Result<bool, RunError> {
        let Some((memory, tensor)) = self.names.get(name) else { return Ok(false) };
        if tensor.bytes() != bytes.len() as u64 {
            return Ok(false);
        }
        if let Some(span) = tensor.span() {
            self.host.bytes(*memory, span).copy_from_slice(bytes);
        }
        Ok(true)
    }

    fn run(&mut self, steps: u64, observer: &mut dyn StepObserver) -> Result<Measurements, RunError> {
        let start = StepContext { number: self.steps, seed: self.seed };
        let what = Drive { steps, start, has_left: self.has_left, traces: self.traces };
        let measured = drive(&self.host, self.host.program(), what, observer)?;
        self.has_left = true;
        self.steps += measured.steps.len();
        Ok(measured)
    }

    fn step(&mut self) -> Result<(), RunError> {
        lmsc_kernels::on_compute_thread(|| self.run(1, &mut Unobserved)).map(drop)
    }

    fn time_launches(&mut self, steps: u64) -> Result<(Vec<TimedLaunch>, Vec<Duration>), RunError> {
        self.traces = true;
        let ran = self.run(1 + steps, &mut Unobserved)?;
        // From the end of the previous command: the gap between two commands is part of the operators' time. Waits for copies are
        // not.
        let mut times: BTreeMap<u32, Vec<Duration>> = BTreeMap::new();
        let mut before = Duration::ZERO;
        for event in ran.events.iter().filter(|event| event.stream == Stream::Compute) {
            if event.step > 0 {
                let stalled = event.begun.saturating_sub(event.waited);
                times.entry(event.command).or_default().push(event.ended.saturating_sub(before + stalled));
            }
            before = event.ended;
        }
        let launches = times.into_iter().map(|(command, mut times)| {
            times.sort_unstable();
            TimedLaunch { commands: [command; 2], time: times[times.len() / 2] }
        });
        Ok((launches.collect(), ran.steps.after_first().copied().collect()))
    }
}
