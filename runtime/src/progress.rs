//! The progress of the streams, and waiting for it.

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use lmsc_ir::program::Stream;

/// For each stream, the number of its commands that have completed; the streams' threads wait for each other here.
#[derive(Debug)]
pub(super) struct Progress {
    completed: [AtomicU64; 3],
    /// Number of steps.
    end: AtomicU64,
    stopped: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

/// The run was stopped, or there are no more steps.
pub(super) struct Stopped;

impl Progress {
    /// Progress at the start of a run of `steps` steps.
    pub(super) fn new(steps: u64) -> Progress {
        Progress {
            completed: Default::default(),
            end: steps.into(),
            stopped: false.into(),
            lock: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Number of steps.
    pub(super) fn end(&self) -> u64 {
        self.end.load(SeqCst)
    }

    /// Limits the run to `steps` steps: waits in later ones return [`Stopped`].
    pub(super) fn end_at(&self, steps: u64) {
        self.end.store(steps, SeqCst);
        self.tell();
    }

    /// Records that `count` commands of the stream have completed.
    pub(super) fn complete(&self, stream: Stream, count: u64) {
        self.completed[stream as usize].store(count, SeqCst);
        self.tell();
    }

    /// Waits, in this step, until `count` commands of the stream have completed; returns whether it had to wait.
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

    /// Wakes all waiting threads. A thread between its check and its wait holds the lock.
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
