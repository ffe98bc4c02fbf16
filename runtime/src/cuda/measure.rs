//! Copies between the host and a device, timed by the device.

use std::time::Duration;

use lmsc_ir::program::Stream;

use super::driver::{Event, Gpu, Memory, Pinned};
use crate::run::RunError;

/// Memory of a device and pinned memory of the host, to time copies from one to the other.
pub struct Copies {
    // What uses others goes before them when this ends.
    begins: Event,
    ends: Event,
    /// Both have room for what leaves, and behind it for what comes.
    device: Memory,
    host: Pinned,
    most: u64,
    gpu: Gpu,
}

impl std::fmt::Debug for Copies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copies").field("device", &self.gpu.name).finish_non_exhaustive()
    }
}

impl Copies {
    /// Room for copies of so many bytes at most, each way, on the device of this number.
    ///
    /// # Errors
    /// [`RunError::NoDevice`]; [`RunError::Device`], where it does not give the memory.
    pub fn new(ordinal: u32, most: u64) -> Result<Copies, RunError> {
        let gpu = Gpu::open(ordinal).map_err(|error| RunError::NoDevice(error.to_string()))?;
        Copies::on(gpu, most).map_err(RunError::Device)
    }

    fn on(gpu: Gpu, most: u64) -> Result<Copies, String> {
        let (device, host) = (gpu.memory(2 * most)?, Pinned::new(2 * most)?);
        Ok(Copies { begins: Event::new(true)?, ends: Event::new(true)?, device, host, most, gpu })
    }

    /// How long a copy of so many bytes takes in the direction of the stream, from when the stream begins it; with
    /// `beside`, while copies of as many bytes go the other way.
    ///
    /// # Errors
    /// [`RunError::Device`], with what the driver says.
    ///
    /// # Panics
    /// If these are more bytes than there is room for.
    pub fn time(&self, way: Stream, bytes: u64, beside: bool) -> Result<Duration, RunError> {
        let given = self.give(way, bytes, beside);
        // Whatever has happened, nothing is copied behind the caller's back.
        let done = Stream::ALL.iter().try_for_each(|&stream| self.gpu.wait_for(stream));
        let seconds = given.and(done).and_then(|()| self.ends.seconds_since(&self.begins));
        seconds.map(|seconds| Duration::from_secs_f64(seconds.max(0.0))).map_err(RunError::Device)
    }

    fn give(&self, way: Stream, bytes: u64, beside: bool) -> Result<(), String> {
        self.gpu.enter()?;
        let other = if way == Stream::In { Stream::Out } else { Stream::In };
        // The other way is busy before this begins, and until it has ended.
        let [before, behind] = if beside { [1, 2] } else { [0, 0] };
        (0..before).try_for_each(|_| self.copy(other, bytes))?;
        self.gpu.record(&self.begins, way)?;
        self.copy(way, bytes)?;
        self.gpu.record(&self.ends, way)?;
        (0..behind).try_for_each(|_| self.copy(other, bytes))
    }

    fn copy(&self, way: Stream, bytes: u64) -> Result<(), String> {
        assert!(bytes <= self.most, "there is no room for so many bytes");
        let at = if way == Stream::In { self.most } else { 0 };
        let (device, host) = (self.device.address() + at, self.host.at(at, bytes));
        // SAFETY: both have so many bytes behind `at`, which copies of this way alone use, and stay until all streams
        // were waited for.
        unsafe {
            match way {
                Stream::In => self.gpu.to_device(way, device, host, bytes),
                _ => self.gpu.to_host(way, host, device, bytes),
            }
        }
    }
}
