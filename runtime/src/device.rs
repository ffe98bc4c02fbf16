//! The operations of a device that a caller's turn, and the loop that runs programs on the host, need.

use std::borrow::Cow;

use lmsc_ir::program::{GateEffects, Memory, PlacedTensor, Residency, Stream, Transfer};
use lmsc_kernels::kernel::StepContext;

/// A device whose tensors can be read and set at the caller's turn, from the compute thread.
pub trait Tensors {
    /// Reads a tensor.
    ///
    /// # Errors
    /// The device's failure.
    fn peek(&self, memory: Memory, tensor: &PlacedTensor) -> Result<Cow<'_, [u8]>, String>;

    /// Sets a tensor.
    ///
    /// # Errors
    /// The device's failure.
    ///
    /// # Panics
    /// If the tensor has another number of bytes.
    fn poke(&self, memory: Memory, tensor: &PlacedTensor, bytes: &[u8]) -> Result<(), String>;
}

/// A device that has a program's memory and kernels, for the loop that runs programs on the host.
///
/// The loop calls it from one thread for each stream, and makes every command wait for its waits first.
pub(crate) trait Device: Tensors {
    /// Provides memory at the addresses that the command begins to use, and waits until there is some; false if the run ends
    /// before.
    fn arrive(&self, stream: Stream, command: u32, is_over: &dyn Fn() -> bool) -> bool;

    /// Called when nothing uses these addresses any more.
    fn leave(&self, residency: &Residency);

    /// The part of each command that runs in the step; none if all of them run.
    fn parts(&self, _step: StepContext) -> Option<GateEffects> {
        None
    }

    /// Runs the kernel of the launch at this position of the compute stream.
    ///
    /// # Errors
    /// The value of an operand that the operator is not defined for; nothing has been written then.
    fn launch(&self, index: u32, step: StepContext) -> Result<(), String>;

    /// Copies bytes in the direction of the stream.
    ///
    /// # Errors
    /// Why it could not.
    fn copy(&self, stream: Stream, copy: &Transfer) -> Result<(), String>;
}
