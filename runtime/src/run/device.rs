//! What a device does for the loop that runs programs on it.

use std::borrow::Cow;

use lmsc_ir::program::{Memory, Parts, Residency, Stream, Tensor, Transfer};

use crate::kernel::Step;

/// A device that has a program's memory and kernels.
///
/// The loop calls it from one thread for each stream, and lets every command wait for what it must.
pub(crate) trait Device {
    /// Has memory at the addresses that the command begins to use, and waits until there is some; false if the run is over
    /// before.
    fn arrive(&self, stream: Stream, command: u32, is_over: &dyn Fn() -> bool) -> bool;

    /// Nobody uses these addresses any more.
    fn leave(&self, residency: &Residency);

    /// What becomes of each command in the step; none where all of them run.
    fn parts(&self, _step: Step) -> Option<Parts> {
        None
    }

    /// Runs the kernel of the launch at this position of the compute stream.
    fn launch(&self, index: u32, step: Step);

    /// Copies bytes in the direction of the stream.
    ///
    /// # Errors
    /// Why it could not.
    fn copy(&self, stream: Stream, copy: &Transfer) -> Result<(), String>;

    /// What is there now, for him who computes.
    fn peek(&self, memory: Memory, tensor: &Tensor) -> Cow<'_, [u8]>;

    /// Sets what is there, for him who computes.
    ///
    /// # Panics
    /// If the tensor has another number of bytes.
    fn poke(&self, memory: Memory, tensor: &Tensor, bytes: &[u8]);
}
