//! The runtime: the kernels of the host, one for every operator of a training step (forward, gradient and optimizer), and the
//! code that runs a program with them.
//!
//! A [`Session`] runs a checked [`Program`](lmsc_ir::program::Program) on three threads, one per stream, step after step without
//! a pause; a [`Rehearsal`] runs any program in one thread, in orders as bad as its waits allow.
//!
//! A kernel is [prepared](prepare) once, from the operator, its attributes, the types of its operands and results, and its
//! constant operands. All errors are found then. It [runs](Kernel::run) any number of times, on bytes; it allocates no tensor,
//! and computes the same bits on any number of threads.
//!
//! `meaning` has the semantics of operators: extents, strides, attributes. `host` has the loops. `table` has one row per
//! operator.
//!
//! Knows no file format, no pass and no planner. Which commands may run concurrently it knows from the program alone.

pub mod cuda;
mod element;
mod gemm;
mod host;
mod kernel;
mod math;
mod meaning;
mod run;
mod short;
mod spec;
mod table;

pub use kernel::{Io, Kernel, Step};
pub use run::{
    Event, Fragmentation, Kernels, Link, Measured, NotReady, Rehearsal, RunError, Session, Settled, Turn,
    Unready, Watch, workspaces,
};
pub use spec::{Operand, PrepareError, Spec};
pub use table::{operators, prepare};

/// Makes the calling thread one of the threads on which the host's kernels compute, and starts the others: in all at most one for
/// each processor, and at most `most`. If the system gives fewer threads, kernels compute on fewer.
///
/// A kernel that the calling thread runs then begins at once and is not handed to another thread, which takes as long as a small
/// kernel. Call it from the main thread of a program; it does nothing on another thread, or if kernels have run before.
///
/// ```
/// lmsc_runtime::compute_here(usize::MAX);
/// ```
pub fn compute_here(most: usize) {
    if std::thread::current().name() != Some("main") {
        return;
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    // A thread pool that fails to start one of its threads cannot be built again, so the threads are started before it.
    let mut started = Vec::new();
    for _ in 1..processors.min(most) {
        let (give, given) = std::sync::mpsc::channel::<rayon::ThreadBuilder>();
        let compute = move || given.recv().map_or((), rayon::ThreadBuilder::run);
        match std::thread::Builder::new().name("compute".to_owned()).spawn(compute) {
            Ok(_) => started.push(give),
            Err(_) => break,
        }
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1 + started.len()).use_current_thread();
    let hand_over = |thread| {
        let give = started.pop().ok_or(std::io::ErrorKind::WouldBlock)?;
        give.send(thread).map_err(|_| std::io::ErrorKind::BrokenPipe.into())
    };
    _ = pool.spawn_handler(hand_over).build_global();
}

/// Runs `what` on one of the threads on which the host's kernels compute, and waits for it. Each kernel that it runs begins at
/// once; from any other thread it would be handed over, which takes as long as a small kernel.
///
/// ```
/// assert_eq!(lmsc_runtime::on_compute_thread(|| 1 + 1), 2);
/// ```
pub fn on_compute_thread<R: Send>(what: impl FnOnce() -> R + Send) -> R {
    rayon::scope(|_| what())
}

/// Number of threads on which the host's kernels compute; if it is one, only the thread that called [`compute_here`] may run
/// them.
pub fn threads() -> usize {
    rayon::current_num_threads()
}
