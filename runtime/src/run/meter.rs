//! How many bytes of the device are in use while a program runs, told by its commands.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::SeqCst};

use lmsc_ir::program::{Memory, Program, Residency, Stream, Until, residencies};

/// Counts the bytes of the arena between the commands that begin to use them and those that end it.
#[derive(Debug)]
pub(crate) struct Meter {
    residencies: Vec<Residency>,
    /// By stream and command, the residencies that it begins, and those of whose last users it is one, as indices.
    begins: [Vec<Vec<usize>>; 3],
    ends: [Vec<Vec<usize>>; 3],
    /// By residency, how many of its last users have not completed yet.
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

    /// The command starts.
    pub(crate) fn begin(&self, stream: Stream, command: u32) {
        let begun = self.begins[stream as usize][command as usize].iter();
        let bytes = begun.map(|&index| self.device_bytes(index)).sum::<i64>();
        let live = self.live.fetch_add(bytes, SeqCst) + bytes;
        self.peak.fetch_max(live, SeqCst);
    }

    /// The command has completed, and nobody knows it yet; `free` is told what is not in use any more.
    pub(crate) fn end(&self, stream: Stream, command: u32, mut free: impl FnMut(&Residency)) {
        for &index in &self.ends[stream as usize][command as usize] {
            if self.users[index].fetch_sub(1, SeqCst) == 1 {
                self.users[index].store(count(&self.residencies[index]), SeqCst);
                self.live.fetch_sub(self.device_bytes(index), SeqCst);
                free(&self.residencies[index]);
            }
        }
    }

    /// The caller's turn has come: what he got from the step before is not in use any more. `counted`: whether it was this
    /// meter that saw it come.
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

    /// The bytes that are in use now.
    pub(crate) fn live(&self) -> u64 {
        self.live.load(SeqCst) as u64
    }

    /// The most bytes that were in use at once.
    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(SeqCst) as u64
    }
}

fn count(residency: &Residency) -> u32 {
    residency.last.iter().flatten().count() as u32
}
