//! Measures the cost of copies between the host and a device, and other costs of a step or of its start.

use std::time::{Duration, Instant};

use lmsc_ir::program::Stream;
use lmsc_runtime::RunError;

use super::driver::{Event, Gpu, Memory, Module, Pinned, Ready};
use super::{KernelCompiler, SOURCES};

/// Memory of a device and pinned memory of the host, to time copies from one to the other.
pub struct Copies {
    // Fields are dropped in this order, so a field stands before those that it uses.
    begins: Event,
    ends: Event,
    /// Both have room for the outgoing bytes, followed by room for the incoming ones.
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
    /// Allocates room for copies of at most `most` bytes, each way, on the device of this number.
    ///
    /// # Errors
    /// [`RunError::NoDevice`]; [`RunError::Device`], if it refuses the memory.
    pub fn new(ordinal: u32, most: u64) -> Result<Copies, RunError> {
        let gpu = Gpu::open(ordinal).map_err(|error| RunError::NoDevice(error.to_string()))?;
        Copies::on(gpu, most).map_err(RunError::Device)
    }

    fn on(gpu: Gpu, most: u64) -> Result<Copies, String> {
        let (device, host) = (gpu.memory(2 * most)?, Pinned::new(2 * most)?);
        Ok(Copies { begins: Event::new(true)?, ends: Event::new(true)?, device, host, most, gpu })
    }

    /// Duration of a copy of `bytes` bytes in the direction of the stream, from when the stream begins it; with `beside`, while
    /// copies of the same size go the other way.
    ///
    /// # Errors
    /// [`RunError::Device`], with the driver's message.
    ///
    /// # Panics
    /// If `bytes` exceeds the room.
    pub fn time(&self, way: Stream, bytes: u64, beside: bool) -> Result<Duration, RunError> {
        let given = self.give(way, bytes, beside);
        // Even after an error, no copy goes on when this returns.
        let done = Stream::ALL.iter().try_for_each(|&stream| self.gpu.wait_for(stream));
        let seconds = given.and(done).and_then(|()| self.ends.seconds_since(&self.begins));
        seconds.map(|seconds| Duration::from_secs_f64(seconds.max(0.0))).map_err(RunError::Device)
    }

    fn give(&self, way: Stream, bytes: u64, beside: bool) -> Result<(), String> {
        self.gpu.enter()?;
        let other = if way == Stream::In { Stream::Out } else { Stream::In };
        // The other direction is busy before this copy begins, and until it has ended.
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
        // SAFETY: both have that many bytes behind `at`, which only copies of this direction use, and they live until all streams
        // were waited for.
        unsafe {
            match way {
                Stream::In => self.gpu.to_device(way, device, host, bytes),
                _ => self.gpu.to_host(way, host, device, bytes),
            }
        }
    }
}

/// A device's overheads, besides the work itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overheads {
    /// Time from an empty kernel to the next one: the device's share of it, or the host's if that is longer.
    pub launch: Duration,
    /// Time from one stream to another that waits for it.
    pub wait: Duration,
    /// Time to allocate a GiB of the device's memory.
    pub device_memory: Duration,
    /// Time to allocate a GiB of pinned memory, with all pages allocated.
    pub pinned_memory: Duration,
}

impl Overheads {
    /// Number of repetitions of an operation that is too short to be timed alone.
    const MANY: u32 = 100;
    /// Bytes of the memory that is allocated, at most the size of the timed copies.
    pub const BYTES: u64 = 1 << 26;

    /// The overheads of the device of this number: medians of five.
    ///
    /// # Errors
    /// [`RunError::NoDevice`]; [`RunError::Device`], with the message of the driver or the compiler.
    pub fn measure(ordinal: u32, compiler: &KernelCompiler) -> Result<Overheads, RunError> {
        let gpu = Gpu::open(ordinal).map_err(|error| RunError::NoDevice(error.to_string()))?;
        Overheads::of(&gpu, compiler).map_err(RunError::Device)
    }

    fn of(gpu: &Gpu, compiler: &KernelCompiler) -> Result<Overheads, String> {
        let source = SOURCES.iter().find(|source| source.name == "move").ok_or("its source is missing")?;
        let image = compiler.image(source, false, &gpu.architecture).map_err(|error| error.to_string())?;
        let module = Module::new(&image)?;
        let function = module.function("next_step")?.ok_or("there is no kernel next_step")?;
        let word = gpu.memory(8)?;
        let kernel = Ready::new("next_step".to_owned(), 1, function, &[vec![word.address()]]);
        let [begins, ends] = [Event::new(true)?, Event::new(true)?];
        let [there, back] = [Event::new(false)?, Event::new(false)?];
        let each = |give: &dyn Fn() -> Result<(), String>, of: u32| {
            typical(|| {
                gpu.record(&begins, Stream::Compute)?;
                let given = (0..Overheads::MANY).try_for_each(|_| give());
                gpu.record(&ends, Stream::Compute)?;
                // Even after an error, nothing goes on running when this returns.
                Stream::ALL.iter().try_for_each(|&stream| gpu.wait_for(stream))?;
                given?;
                Ok(Duration::from_secs_f64(ends.seconds_since(&begins)?.max(0.0)) / Overheads::MANY / of)
            })
        };
        // SAFETY: the kernel takes the address of a word, which stays until all streams were waited for.
        let launch = each(&|| unsafe { gpu.launch(Stream::Compute, &kernel) }, 1)?;
        let and_back = || {
            gpu.record(&there, Stream::Compute)?;
            gpu.after(Stream::In, &there)?;
            gpu.record(&back, Stream::In)?;
            gpu.after(Stream::Compute, &back)
        };
        let wait = each(&and_back, 2)?;
        let per_gib = ((1 << 30) / Overheads::BYTES) as u32;
        let device_memory = typical(|| {
            let since = Instant::now();
            gpu.memory(Overheads::BYTES).map(|_memory| since.elapsed() * per_gib)
        })?;
        let pinned_memory = typical(|| {
            let since = Instant::now();
            Pinned::new(Overheads::BYTES).map(|_memory| since.elapsed() * per_gib)
        })?;
        Ok(Overheads { launch, wait, device_memory, pinned_memory })
    }
}

/// The median of five, after one that is discarded.
fn typical(mut time: impl FnMut() -> Result<Duration, String>) -> Result<Duration, String> {
    time()?;
    let mut times = [Duration::ZERO; 5];
    for took in &mut times {
        *took = time()?;
    }
    times.sort_unstable();
    Ok(times[2])
}
