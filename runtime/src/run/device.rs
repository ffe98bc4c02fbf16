//! The operations of a device that the loop that runs programs needs.

use std::borrow::Cow;

use lmsc_ir::program::{Memory, Parts, Residency, Stream, Tensor, Transfer};

use crate::kernel::Step;

/// A device that has a program's memory and kernels.
///
/// The loop calls it from one thread for each stream, and makes every command wait for its waits first.
pub(crate) trait Device {
    /// Provides memory at the addresses that the command begins to use, and waits until there is some; false if the run ends
    /// before.
    fn arrive(&self, stream: Stream, command: u32, is_over: &dyn Fn() -> bool) -> bool;

    /// Called when nothing uses these addresses any more.
    fn leave(&self, residency: &Residency);

    /// The part of each command that runs in the step; none if all of them run.
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

    /// Reads a tensor; called from the compute thread.
    fn peek(&self, memory: Memory, tensor: &Tensor) -> Cow<'_, [u8]>;

    /// Sets a tensor; called from the compute thread.
    ///
    /// # Panics
    /// If the tensor has another number of bytes.
    fn poke(&self, memory: Memory, tensor: &Tensor, bytes: &[u8]);
}
