//! Constants of kernels on the device.

use std::collections::BTreeMap;

use lmsc_kernels::kernel::StepContext;

use super::recipe::RANK;

/// The words of the step that kernels read and write, as `Step` of `prelude.cuh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepWords(pub [u64; 4 + RANK]);

/// An index or a label out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// Number of steps before the step.
    pub step: u64,
    /// Position of the launch in the compute stream.
    pub command: u32,
    /// Position of the index in its tuple.
    pub dim: usize,
    /// The greatest of the launch that are out of range in this dimension.
    pub value: i64,
}

impl StepWords {
    /// Number of bits of `first` that have the command.
    const COMMAND: u32 = 24;

    /// The words of a step, before any launch.
    pub fn new(step: StepContext) -> StepWords {
        let mut words = StepWords::default();
        [words.0[0], words.0[1]] = [step.number, step.seed];
        words
    }

    /// An index or a label out of range, of the first launch that met one.
    pub fn out_of_range(&self) -> Option<OutOfRange> {
        let [_, _, first, dims, greatest @ ..] = self.0;
        let dim = dims.trailing_zeros() as usize;
        let &greatest = greatest.get(dim).filter(|_| first != 0)?;
        Some(OutOfRange {
            step: first >> StepWords::COMMAND,
            command: (first & ((1 << StepWords::COMMAND) - 1)) as u32,
            dim,
            value: (greatest ^ 1 << 63) as i64,
        })
    }
}

/// Alignment of each constant in bytes.
pub(super) const ALIGNMENT: u64 = 256;

/// Constants of a program, behind the words of the step; equal ones are stored once.
pub(super) struct Constants {
    pub(super) bytes: Vec<u8>,
    at: BTreeMap<Vec<u8>, u64>,
}

impl Constants {
    /// No constants, only room for the words of the step.
    pub(super) fn new() -> Constants {
        Constants { bytes: vec![0; size_of::<StepWords>()], at: BTreeMap::new() }
    }

    /// Adds these bytes; returns their offset.
    pub(super) fn add(&mut self, bytes: &[u8]) -> u64 {
        if bytes.is_empty() {
            return 0;
        }
        if let Some(&at) = self.at.get(bytes) {
            return at;
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
        let at = self.bytes.len() as u64;
        self.bytes.extend(bytes);
        self.at.insert(bytes.to_vec(), at);
        at
    }

    /// Size in bytes.
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Alignment of their beginning in bytes.
    pub(super) fn alignment(&self) -> u64 {
        if self.at.is_empty() { align_of::<StepWords>() as u64 } else { ALIGNMENT }
    }

    /// Maximum number of bytes that they take behind tensors, wherever these end.
    pub(super) fn most(&self) -> u64 {
        // Words of the step without constants are not aligned as these, so that all but the first have room in the padding.
        let bytes = if self.at.is_empty() { size_of::<StepContext>() as u64 } else { self.len() };
        bytes + ALIGNMENT
    }
}
