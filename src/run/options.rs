//! The options of a run.

use std::path::PathBuf;

use lmsc_ir::Bytes;

use crate::device::needs_gpu;
use crate::job::Device;
use crate::{Code, Error};

/// The number of steps, the files that a run reads and writes, and how the steps run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Number of steps; 10 without it.
    pub steps: Option<u64>,
    /// Bytes of a chunk of virtual memory, in place of one arena.
    pub chunk: Option<Bytes>,
    /// Initial parameters and other inputs by name.
    pub params: Option<PathBuf>,
    /// Batches by input; `synthetic` for random numbers.
    pub data: Option<PathBuf>,
    /// Seed of random numbers.
    pub seed: Option<u64>,
    /// The file of the checkpoint.
    pub save: Option<PathBuf>,
    /// Number of steps between two checkpoints.
    pub save_every: Option<u64>,
    /// Number of generations of the checkpoint.
    pub keep: Option<u64>,
    /// The checkpoint with which the run goes on.
    pub resume: Option<PathBuf>,
    /// Values of inputs that are the same in every step.
    pub feeds: Option<PathBuf>,
    /// Names of values of the last step to write.
    pub fetch: Option<Vec<String>>,
    /// The file for these values.
    pub out: Option<PathBuf>,
    /// Whether the first result that is NaN or infinite ends the run.
    pub check_numerics: bool,
    /// Whether layers of stochastic depth are skipped while their gate is 0.
    pub skip_closed: bool,
    /// The file of the trace.
    pub trace: Option<PathBuf>,
    /// Bytes per second of the link, each way; unlimited without it.
    pub copy_bandwidth: Option<Bytes>,
    /// Whether a GPU without cuBLAS and cuDNN is refused.
    pub require_libraries: bool,
    /// Whether a GPU finishes each launch before the next is given to it, so that the launch that fails is named.
    pub synchronous: bool,
    /// Number of swap-ins for which the compute stream of a GPU does not wait; the result is then wrong.
    pub without_waits: Option<usize>,
}

impl RunOptions {
    /// Refuses options that the device does not support.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) naming the option.
    pub fn suits(&self, device: Device) -> Result<(), Error> {
        let Device::Cuda { graph, .. } = device else {
            let of_gpus = [
                ("--require-libraries", self.require_libraries),
                ("--synchronous", self.synchronous),
                ("--without-waits", self.without_waits.is_some()),
            ];
            let given = of_gpus.iter().find(|(_, given)| *given);
            return given.map_or(Ok(()), |(name, _)| Err(needs_gpu(name)));
        };
        let needs_host =
            [("--copy-bandwidth", self.copy_bandwidth.is_some()), ("--skip-closed", self.skip_closed)];
        let within = [
            ("--check-numerics", self.check_numerics),
            ("--fetch", self.fetch.is_some()),
            ("--synchronous", self.synchronous),
        ];
        if let Some((name, _)) = needs_host.iter().find(|(_, given)| *given) {
            return Err(Error::new(
                Code::Option,
                format!("{name} is of the host alone; leave it out with --device cuda"),
            ));
        }
        match within.iter().find(|(_, given)| *given && graph) {
            Some((name, _)) => Err(Error::new(
                Code::Option,
                format!("{name} looks into a step, which is replayed as a whole; leave out `+graph`"),
            )),
            None => Ok(()),
        }
    }

    /// The names of the given options.
    pub fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--steps", self.steps.is_some()),
            ("--params", self.params.is_some()),
            ("--data", self.data.is_some()),
            ("--seed", self.seed.is_some()),
            ("--save", self.save.is_some()),
            ("--save-every", self.save_every.is_some()),
            ("--keep", self.keep.is_some()),
            ("--resume", self.resume.is_some()),
            ("--feeds", self.feeds.is_some()),
            ("--fetch", self.fetch.is_some()),
            ("--out", self.out.is_some()),
            ("--check-numerics", self.check_numerics),
            ("--skip-closed", self.skip_closed),
            ("--trace", self.trace.is_some()),
            ("--copy-bandwidth", self.copy_bandwidth.is_some()),
            ("--require-libraries", self.require_libraries),
            ("--synchronous", self.synchronous),
            ("--without-waits", self.without_waits.is_some()),
        ];
        all.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}
