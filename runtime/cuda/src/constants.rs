//! Constants of kernels on the device.

use std::collections::BTreeMap;

use lmsc_kernels::kernel::StepContext;

/// Alignment of each constant in bytes.
pub(super) const ALIGNMENT: u64 = 256;

/// Constants of a program, behind the step's number and seed; equal ones are stored once.
pub(super) struct Constants {
    pub(super) bytes: Vec<u8>,
    at: BTreeMap<Vec<u8>, u64>,
}

impl Constants {
    /// No constants, only room for the step's number and seed.
    pub(super) fn new() -> Constants {
        Constants { bytes: vec![0; size_of::<StepContext>()], at: BTreeMap::new() }
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
}
