//! Threads in which Rust code runs while Python waits.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::{InputError, InternalError, panicked};

/// How often a waiting thread looks for signals. A person does not notice half of it, and twice as much feels stuck.
const LOOK: Duration = Duration::from_millis(50);

/// The stack of a thread that plans or compiles: that of a program's first thread on Linux.
const STACK: usize = 8 << 20;

type Panic = Box<dyn Any + Send>;

/// The process that has loaded the module.
static LOADED_BY: OnceLock<u32> = OnceLock::new();

/// Notes the process. A child that is forked from it has none of its threads.
pub(crate) fn loaded() {
    _ = LOADED_BY.set(process::id());
}

/// In a forked child, threads for the kernels that the calling thread runs, which last as long as the value.
fn threads_of_a_child() -> Option<rayon::ThreadPool> {
    let is_child = LOADED_BY.get().is_some_and(|first| *first != process::id());
    is_child.then(|| rayon::ThreadPoolBuilder::new().use_current_thread().build().ok()).flatten()
}

fn new_thread<R: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> R + Send + 'static,
) -> PyResult<thread::JoinHandle<R>> {
    let run = move || {
        let _pool = threads_of_a_child();
        run()
    };
    let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(run);
    thread.map_err(|why| InternalError::new_err(format!("the system does not give a thread: {why}")))
}

/// The result of `run`, which has a thread of its own. After Ctrl-C the caller goes on at once; the thread ends by itself.
///
/// # Errors
/// `KeyboardInterrupt`, or the exception of another signal handler; `InternalError` for a panic.
pub(crate) fn without_lock<R: Send + 'static>(
    py: Python<'_>,
    run: impl FnOnce() -> R + Send + 'static,
) -> PyResult<R> {
    without_lock_but(py, run, |_| Ok(()))
}

/// As [`without_lock`]; `look` is called again and again meanwhile, with the lock.
///
/// # Errors
/// Those of [`without_lock`], and that of `look`, after which it is not called again.
pub(crate) fn without_lock_but<R: Send + 'static>(
    py: Python<'_>,
    run: impl FnOnce() -> R + Send + 'static,
    mut look: impl FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<R> {
    let (send, receive) = channel();
    new_thread("lmsc", move || send.send(catch_unwind(AssertUnwindSafe(run))))?;
    waited(py, receive, Some(&mut look))
}

/// Called while something is waited for.
type Look<'a> = &'a mut dyn FnMut(Python<'_>) -> PyResult<()>;

/// The command, in a thread that is called `main`, as the first thread of a program is: kernels then compute on it.
///
/// # Errors
/// `InternalError` for a panic.
pub(crate) fn main<R: Send + 'static>(run: impl FnOnce() -> R + Send + 'static) -> PyResult<R> {
    new_thread("main", run)?.join().map_err(|panic| panicked(&*panic))
}

/// The value that is sent, or the panic of its sender. With `look` a signal, or its error, ends the wait; without, signals are looked for
/// when the work has ended.
fn waited<R: Send>(
    py: Python<'_>,
    mut receive: Receiver<Result<R, Panic>>,
    mut look: Option<Look<'_>>,
) -> PyResult<R> {
    loop {
        let received;
        (receive, received) = py.detach(move || {
            let received = receive.recv_timeout(LOOK);
            (receive, received)
        });
        match received {
            Ok(result) => {
                let result = result.map_err(|panic| panicked(&*panic))?;
                py.check_signals()?;
                return Ok(result);
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(look) = &mut look {
                    py.check_signals()?;
                    look(py)?;
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(InternalError::new_err("a thread of lmsc has ended"));
            }
        }
    }
}

/// Something to do with the value that a worker has.
type Job<T> = Box<dyn FnOnce(&mut T) + Send>;

/// A thread that has a value which stays in it. It ends when the worker is dropped, and has dropped the value then.
pub(crate) struct Worker<T> {
    /// None while it is dropped.
    jobs: Option<Sender<Job<T>>>,
    thread: Option<thread::JoinHandle<()>>,
    /// The process that has the thread.
    process: u32,
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        if self.process != process::id() {
            // The thread is not in this process, and may have held locks of the channel when it was forked.
            std::mem::forget((self.jobs.take(), self.thread.take()));
            return;
        }
        // Without a sender the thread ends.
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

impl<T: 'static> Worker<T> {
    /// A worker whose value `make` makes, in its thread, with the result of `told` for the value.
    ///
    /// # Errors
    /// The error of `make`; otherwise as [`without_lock`].
    pub(crate) fn new<E: Send + 'static, F: Send + 'static>(
        py: Python<'_>,
        make: impl FnOnce() -> Result<T, E> + Send + 'static,
        told: impl FnOnce(&mut T) -> F + Send + 'static,
    ) -> PyResult<Result<(Worker<T>, F), E>> {
        let (jobs, taken) = channel::<Job<T>>();
        let (send, receive) = channel();
        let run = move || {
            let mut kept = None;
            let made = catch_unwind(AssertUnwindSafe(|| make().map(|value| told(kept.insert(value)))));
            // Where nobody waits any more, nobody has sent a job either.
            _ = send.send(made);
            let Some(mut value) = kept else { return };
            taken.into_iter().for_each(|job| job(&mut value));
        };
        let thread = new_thread("lmsc session", run)?;
        let made = waited(py, receive, Some(&mut |_| Ok(())))?;
        Ok(made
            .map(|facts| (Worker { jobs: Some(jobs), thread: Some(thread), process: process::id() }, facts)))
    }

    /// The result of `run` for the value, in its thread. A signal is looked for when it has ended.
    ///
    /// # Errors
    /// As [`without_lock`].
    pub(crate) fn call<R: Send + 'static>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> PyResult<R> {
        if self.process != process::id() {
            let message =
                "the session belongs to the process that this one was forked from; open another session here";
            return Err(InputError::new_err(message));
        }
        let (send, receive) = channel();
        let job = move |value: &mut T| _ = send.send(catch_unwind(AssertUnwindSafe(|| run(value))));
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(Box::new(job)).is_ok());
        if !sent {
            return Err(InternalError::new_err("the session has ended"));
        }
        waited(py, receive, None)
    }
}
