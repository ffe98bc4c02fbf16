//! Counts the bytes of the device in use while a program runs, from its commands.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicI64, AtomicU32};

use lmsc_ir::program::{Memory, Program, Residency, Stream, Until, residencies};

/// Counts the bytes of the arena between the commands that begin to use them and those that end the use.
#[derive(Debug)]
pub(crate) struct Meter {
    residencies: Vec<Residency>,
    /// For each stream and command, the residencies that it begins, and those of which it is one of the last users, as indices.
    begins: [Vec<Vec<usize>>; 3],
    ends: [Vec<Vec<usize>>; 3],
    /// For each residency, the number of its last users that have not completed yet.
    users: Vec<AtomicU32>,
    live: AtomicI64,
    peak: AtomicI64,
}

impl Meter {
    pub(crate) fn new(program: &Program) -> Meter {
        let residencies = residencies(program);
        let empty = || Stream::ALL.map(|stream| vec![Vec::new(); program.stream(stream).len()]);
        let (mut begins, mut ends) = (empty(), empty());
        let mut live = 0;
        for (index, residency) in residencies.iter().enumerate() {
            match residency.from {
                Some((stream, command)) => begins[stream as usize][command as usize].push(index),
                None if residency.memory == Memory::Arena => live += residency.bytes() as i64,
                None => {}
            }
            if residency.until == Until::Used {
                for (stream, last) in residency.last.iter().enumerate() {
                    last.iter().for_each(|&command| ends[stream][command as usize].push(index));
                }
            }
        }
        let users = residencies.iter().map(|r| AtomicU32::new(count(r))).collect();
        Meter { residencies, begins, ends, users, live: live.into(), peak: live.into() }
    }

    /// Called when the command starts.
    pub(crate) fn begin(&self, stream: Stream, command: u32) {
        let begun = self.begins[stream as usize][command as usize].iter();
        let bytes = begun.map(|&index| self.device_bytes(index)).sum::<i64>();
        let live = self.live.fetch_add(bytes, SeqCst) + bytes;
        self.peak.fetch_max(live, SeqCst);
    }

    /// Called when the command has completed, before other streams learn of it; `free` gets the residencies that have ended.
    pub(crate) fn end(&self, stream: Stream, command: u32, mut free: impl FnMut(&Residency)) {
        for &index in &self.ends[stream as usize][command as usize] {
            if self.users[index].fetch_sub(1, SeqCst) == 1 {
                self.users[index].store(count(&self.residencies[index]), SeqCst);
                self.live.fetch_sub(self.device_bytes(index), SeqCst);
                free(&self.residencies[index]);
            }
        }
    }

    /// Called at the caller's turn: the outputs of the step before are no longer in use. `counted`: whether this meter counted
    /// their beginning.
    pub(crate) fn turn(&self, counted: bool, mut free: impl FnMut(&Residency)) {
        for residency in self.residencies.iter().filter(|r| r.until == Until::Turn) {
            if residency.memory == Memory::Arena && counted {
                self.live.fetch_sub(residency.bytes() as i64, SeqCst);
            }
            free(residency);
        }
    }

    fn device_bytes(&self, index: usize) -> i64 {
        let residency = &self.residencies[index];
        if residency.memory == Memory::Arena { residency.bytes() as i64 } else { 0 }
    }

    /// Number of bytes in use now.
    pub(crate) fn live(&self) -> u64 {
        self.live.load(SeqCst) as u64
    }

    /// Maximum number of bytes in use at once.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(SeqCst) as u64
    }
}

fn count(residency: &Residency) -> u32 {
    residency.last.iter().flatten().count() as u32
}
