//! Runs programs: three concurrent streams on the host's processor, or all of them in one thread in bad orders.
//!
//! A [`DeviceSession`] is a program on a device. A [`HostSession`] runs a checked [`Program`](lmsc_ir::program::Program) on three threads, one per stream, step after step without
//! a pause; a [`Rehearsal`] runs any program in one thread, in orders as bad as its waits allow. Kernels are those of `lmsc-kernels`;
//! `lmsc-cuda` runs programs on a GPU.
//!
//! Knows no file format, no pass and no planner. Which commands may run concurrently it knows from the program alone.

mod chunks;
pub mod device;
mod drive;
mod host;
pub mod kernels;
mod meter;
pub mod pages;
mod progress;
mod recent;
mod rehearse;
mod session;
mod turn;

use std::time::Duration;

use lmsc_ir::program::{Stream, Wait};

pub use chunks::{Fragmentation, Settled};
pub use kernels::{NotReady, Unready, workspaces};
pub use recent::Recent;
pub use rehearse::Rehearsal;
pub use session::{DeviceBytes, DeviceSession, HostSession, TimedLaunch};
pub use turn::{RunError, StepObserver, Turn, Unobserved};

/// Bandwidth between the two memories of the host, each direction by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostLink {
    /// Bytes per second to the slab; none: unlimited.
    pub out_bytes_per_second: Option<u64>,
    /// Bytes per second to the arena; none: unlimited.
    pub in_bytes_per_second: Option<u64>,
    /// Latency of each copy.
    pub latency_nanos: u64,
}

impl HostLink {
    /// Minimum duration of a copy of `bytes` bytes in the direction of the stream.
    fn nanos(&self, stream: Stream, bytes: u64) -> u64 {
        let speed = if stream == Stream::In { self.in_bytes_per_second } else { self.out_bytes_per_second };
        let nanos = speed.map_or(0, |speed| u128::from(bytes) * 1_000_000_000 / u128::from(speed.max(1)));
        self.latency_nanos.saturating_add(nanos.min(u64::MAX.into()) as u64)
    }
}

/// Measurements of a run.
#[derive(Clone, Debug, Default)]
pub struct Measurements {
    /// Maximum number of bytes of the arena in use at once.
    pub peak: u64,
    /// Duration of each step, from one turn of the caller to the next.
    pub steps: Recent<Duration>,
    /// Duration of all steps.
    pub lasted: Duration,
    /// For each stream, the total duration of its commands; on a CUDA device, only if it was requested.
    pub busy: [Duration; 3],
    /// Time that the compute stream waited for copies; on a CUDA device, only if the times of each command were requested.
    pub stalled: Duration,
    /// The times of each command, if they were requested.
    pub events: Vec<Event>,
}

impl Measurements {
    /// Notes that a step ended, and its duration.
    pub fn step_ended(&mut self, lasted: Duration) {
        self.steps.push(lasted);
        self.lasted += lasted;
    }

    /// Appends a run that followed this one.
    pub fn append(&mut self, next: Measurements) {
        let (steps, since) = (self.steps.len(), self.lasted);
        self.peak = self.peak.max(next.peak);
        self.steps.append(next.steps);
        self.lasted += next.lasted;
        self.busy.iter_mut().zip(next.busy).for_each(|(all, one)| *all += one);
        self.stalled += next.stalled;
        self.events.extend(next.events.into_iter().map(|event| Event {
            step: event.step + steps,
            waited: event.waited + since,
            begun: event.begun + since,
            ended: event.ended + since,
            ..event
        }));
    }
}

/// A command that has run.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Its stream.
    pub stream: Stream,
    /// Its position in it.
    pub command: u32,
    /// The step, from 0 in this run.
    pub step: u64,
    /// When it began to wait, from the start of the run.
    pub waited: Duration,
    /// When it began.
    pub begun: Duration,
    /// When it had ended.
    pub ended: Duration,
    /// The wait that lasted longest, if it waited.
    pub cause: Option<Wait>,
    /// Bytes of the arena in use when it began.
    pub live: u64,
}
