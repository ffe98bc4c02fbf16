//! What executes: the kernels of the host, one for every operator of a training step, forward, gradient and optimizer;
//! and what runs a program with them.
//!
//! A [`Session`] runs a checked [`Program`](lmsc_ir::program::Program) on three threads, one a stream, step after step
//! without a pause; a [`Rehearsal`] runs any program in one thread, in orders as bad as its waits allow.
//!
//! A kernel is [prepared](prepare) once, from the operator, its attributes, the types of its operands and results, and
//! what is constant among its operands. All that can be wrong is found then. It [runs](Kernel::run) any number of
//! times, on bytes; it allocates no tensor, and computes the same bits on any number of threads.
//!
//! `meaning` says what an operator means: extents, strides, attributes. `host` has the loops. `table` has one row an
//! operator.
//!
//! Knows no file format, no pass and no planner. Of what may run and wait for what it knows the program alone.

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

/// Makes the calling thread one of those that the host's kernels compute on, and starts the others: in all at most one for
/// each processor, and at most `most`. Where the system gives fewer threads, kernels compute on fewer.
///
/// A kernel that it runs is begun at once then, not handed to another thread, which takes as long as a small kernel does.
/// For a program's first thread, which lives as long as the program; does nothing on another, or where kernels have run
/// before.
///
/// ```
/// lmsc_runtime::compute_here(usize::MAX);
/// ```
pub fn compute_here(most: usize) {
    if std::thread::current().name() != Some("main") {
        return;
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    // A pool that cannot start one of its threads cannot be made again, so its threads are there before it.
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

/// Runs `what` on one of the threads that the host's kernels compute on, and waits for it. Each kernel that it runs is begun at
/// once there; from any other thread it would be handed over, which takes as long as a small kernel does.
///
/// ```
/// assert_eq!(lmsc_runtime::on_compute_thread(|| 1 + 1), 2);
/// ```
pub fn on_compute_thread<R: Send>(what: impl FnOnce() -> R + Send) -> R {
    rayon::scope(|_| what())
}

/// On how many threads the host's kernels compute; where it is one, only the thread that called [`compute_here`] may run
/// them.
pub fn threads() -> usize {
    rayon::current_num_threads()
}
