//! A kernel that is ready to run, and its arguments.

use std::fmt;
use std::mem::take;
use std::sync::Arc;

use bytemuck::Pod;
use lmsc_ir::Bytes;

/// The values that differ from one step of the training to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepContext {
    /// Number of steps before this one.
    pub number: u64,
    /// The seed of the whole run.
    pub seed: u64,
}

/// The bytes that one run of a kernel reads and writes.
///
/// Every slice is aligned for its elements and is as long as the type of its operand or result says. An omitted operand or result
/// is empty, and so is an operand that is written in place: its bytes are those of the result.
#[derive(Debug)]
pub struct Io<'a> {
    operands: &'a [&'a [u8]],
    results: &'a mut [&'a mut [u8]],
    workspace: &'a mut [u8],
}

impl<'a> Io<'a> {
    /// Operands and results by position, and a workspace of at least [`Kernel::workspace`] bytes.
    pub fn new(operands: &'a [&'a [u8]], results: &'a mut [&'a mut [u8]], workspace: &'a mut [u8]) -> Io<'a> {
        Io { operands, results, workspace }
    }

    /// The operand's elements; empty if it is left out.
    pub fn get<T: Pod>(&self, index: usize) -> &'a [T] {
        self.operands.get(index).map_or(&[], |bytes| elements(bytes))
    }

    /// The result's elements, once; empty if it is unused.
    pub fn take<T: Pod>(&mut self, index: usize) -> &'a mut [T] {
        self.results.get_mut(index).map_or(&mut [], |bytes| match take(bytes) {
            [] => &mut [],
            bytes => bytemuck::cast_slice_mut(bytes),
        })
    }

    /// All operands' bytes.
    pub fn operands(&self) -> &'a [&'a [u8]] {
        self.operands
    }

    /// All results' bytes, except those that were taken.
    pub fn results(&mut self) -> &mut [&'a mut [u8]] {
        self.results
    }

    /// The current bytes of a result: those of an operand that is written in place.
    pub fn peek(&self, result: usize) -> &[u8] {
        self.results.get(result).map_or(&[], |bytes| bytes)
    }

    /// The workspace, once.
    pub fn workspace<T: Pod>(&mut self) -> &'a mut [T] {
        match take(&mut self.workspace) {
            [] => &mut [],
            bytes => {
                let whole = bytes.len() / size_of::<T>() * size_of::<T>();
                bytemuck::cast_slice_mut(&mut bytes[..whole])
            }
        }
    }
}

/// Bytes as elements. An empty slice need not be aligned.
fn elements<T: Pod>(bytes: &[u8]) -> &[T] {
    if bytes.is_empty() { &[] } else { bytemuck::cast_slice(bytes) }
}

type Run = dyn Fn(Io<'_>, StepContext) + Send + Sync;
type Check = dyn Fn(&[&[u8]]) -> Result<(), String> + Send + Sync;

/// An operator on operands and results of fixed types, ready to run.
pub struct Kernel {
    workspace: usize,
    run: Box<Run>,
    check: Option<Arc<Check>>,
}

impl Kernel {
    /// A kernel that calls `run`.
    pub fn new(run: impl Fn(Io<'_>) + Send + Sync + 'static) -> Kernel {
        Kernel::random(move |io, _| run(io))
    }

    /// A kernel that calls `run`, which depends on the step.
    pub fn random(run: impl Fn(Io<'_>, StepContext) + Send + Sync + 'static) -> Kernel {
        Kernel { workspace: 0, run: Box::new(run), check: None }
    }

    /// The same kernel with a workspace of `elements` elements.
    pub fn with_workspace<T>(self, elements: usize) -> Kernel {
        Kernel { workspace: elements.saturating_mul(size_of::<T>()), ..self }
    }

    /// The same kernel with a check of its operands' values, which [`Kernel::check`] calls.
    pub fn checked(self, check: impl Fn(&[&[u8]]) -> Result<(), String> + Send + Sync + 'static) -> Kernel {
        Kernel { check: Some(Arc::new(check)), ..self }
    }

    /// The same kernel with the check of another one.
    pub(crate) fn checked_as(self, other: Option<Arc<Check>>) -> Kernel {
        Kernel { check: other, ..self }
    }

    /// The check of its operands' values.
    pub(crate) fn own_check(&self) -> Option<Arc<Check>> {
        self.check.clone()
    }

    /// Whether the operator is defined for these operands: indices and labels are in range. It reads only the operands that hold
    /// them, none of which is written in place.
    ///
    /// # Errors
    /// The first value that is out of range.
    pub fn check(&self, operands: &[&[u8]]) -> Result<(), String> {
        self.check.as_ref().map_or(Ok(()), |check| check(operands))
    }

    /// Size of the memory that a run needs besides operands and results. It does not depend on the number of threads.
    pub fn workspace(&self) -> Bytes {
        Bytes(self.workspace as u64)
    }

    /// Runs the operator once.
    ///
    /// # Panics
    /// If a slice is shorter than its type says, or not aligned.
    pub fn run(&self, io: Io<'_>, step: StepContext) {
        (self.run)(io, step);
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("workspace", &self.workspace()).finish_non_exhaustive()
    }
}
