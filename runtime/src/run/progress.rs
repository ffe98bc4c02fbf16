//! How far the streams are, and waiting for them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use lmsc_ir::program::Stream;

/// By stream, how many of its commands have completed; the streams' threads wait for each other here.
#[derive(Debug)]
pub(super) struct Progress {
    completed: [AtomicU64; 3],
    /// How many steps there are.
    end: AtomicU64,
    stopped: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

/// The others have stopped or were told to, or there are no more steps.
pub(super) struct Stopped;

impl Progress {
    /// Nothing has completed, of so many steps.
    pub(super) fn new(steps: u64) -> Progress {
        Progress {
            completed: Default::default(),
            end: steps.into(),
            stopped: false.into(),
            lock: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// How many steps there are.
    pub(super) fn end(&self) -> u64 {
        self.end.load(SeqCst)
    }

    /// There are only so many steps: what later ones wait for does not come.
    pub(super) fn end_at(&self, steps: u64) {
        self.end.store(steps, SeqCst);
        self.tell();
    }

    /// So many commands of the stream have completed.
    pub(super) fn complete(&self, stream: Stream, count: u64) {
        self.completed[stream as usize].store(count, SeqCst);
        self.tell();
    }

    /// Waits, in this step, until so many commands of the stream have completed; whether they had not yet.
    pub(super) fn wait(&self, stream: Stream, count: u64, step: u64) -> Result<bool, Stopped> {
        let has = || self.completed[stream as usize].load(SeqCst) >= count;
        let (mut guard, mut waited) = (None::<MutexGuard<'_, ()>>, false);
        loop {
            if self.is_stopped() {
                return Err(Stopped);
            }
            if has() {
                return Ok(waited);
            }
            if step >= self.end() {
                return Err(Stopped);
            }
            guard = Some(match guard {
                None => self.lock.lock().unwrap_or_else(PoisonError::into_inner),
                Some(guard) => {
                    waited = true;
                    self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
                }
            });
        }
    }

    /// Makes every stream stop.
    pub(super) fn stop(&self) {
        self.stopped.store(true, SeqCst);
        self.tell();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(SeqCst)
    }

    /// Whoever has looked and is about to wait holds the lock.
    fn tell(&self) {
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

/// Makes every stream stop if this one panics.
pub(super) struct StopOnPanic<'a>(pub(super) &'a Progress);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
