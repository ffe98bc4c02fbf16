//! How far the streams are, and waiting for them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use lmsc_ir::program::Stream;

/// By stream, how many of its commands have completed; the streams' threads wait for each other here.
#[derive(Debug, Default)]
pub(super) struct Progress {
    completed: [AtomicU64; 3],
    stopped: AtomicBool,
    lock: Mutex<()>,
    changed: Condvar,
}

/// The others have stopped, or were told to.
pub(super) struct Stopped;

impl Progress {
    /// So many commands of the stream have completed.
    pub(super) fn complete(&self, stream: Stream, count: u64) {
        self.completed[stream as usize].store(count, SeqCst);
        self.tell();
    }

    /// Waits until so many commands of the stream have completed.
    pub(super) fn wait(&self, stream: Stream, count: u64) -> Result<(), Stopped> {
        let has = || self.completed[stream as usize].load(SeqCst) >= count;
        let mut guard = None::<MutexGuard<'_, ()>>;
        loop {
            if self.stopped.load(SeqCst) {
                return Err(Stopped);
            }
            if has() {
                return Ok(());
            }
            guard = Some(match guard {
                None => self.lock.lock().unwrap_or_else(PoisonError::into_inner),
                Some(guard) => self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner),
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
