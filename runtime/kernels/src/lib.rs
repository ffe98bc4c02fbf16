//! The kernels of the host, one for every operator of a training step: forward, gradient and optimizer.
//!
//! A kernel is [prepared](prepare) once, from the operator, its attributes, the types of its operands and results, and its
//! constant operands. All errors are found then. It [runs](Kernel::run) any number of times, on bytes; it allocates no tensor,
//! and computes the same bits on any number of threads.
//!
//! | module | has |
//! |---|---|
//! | [`spec`] | the description from which a kernel is prepared |
//! | [`meaning`] | the semantics of operators, which all devices share: extents, strides, attributes |
//! | [`host`], [`gemm`] | the loops |
//! | [`table`] | one row per operator |
//!
//! ```
//! use lmsc_ir::{Graph, Storages};
//! use lmsc_kernels::{Io, Spec, StepContext, prepare};
//!
//! let graph = Graph::parse("g (float[2] x) => (float[2] y) { [a] float[2] y = Relu(x) }")?;
//! let spec = Spec::of(&graph, &Storages::of(&graph), graph.order()[0], |_| None);
//! let kernel = prepare(&spec).expect("the host has one");
//! let (x, mut y) = ([-1.0_f32, 2.0], [0.0_f32; 2]);
//! let bytes = x.map(f32::to_le_bytes).concat();
//! let mut result = [0; 8];
//! kernel.run(Io::new(&[&bytes], &mut [&mut result], &mut []), StepContext::default());
//! y.iter_mut().zip(result.chunks_exact(4)).for_each(|(y, b)| *y = f32::from_le_bytes(b.try_into().unwrap()));
//! assert_eq!(y, [0.0, 2.0]);
//! # Ok::<(), lmsc_ir::ParseError>(())
//! ```

mod element;
pub mod gemm;
pub mod host;
pub mod kernel;
mod math;
pub mod meaning;
pub mod short;
pub mod spec;
pub mod table;
mod vector;

pub use kernel::{Io, Kernel, StepContext};
pub use spec::{Operand, PrepareError, Spec};
pub use table::{operators, prepare};

/// Makes the calling thread one of the threads on which the host's kernels compute, and starts the others: in all at most one for
/// each processor, and at most `most`. If the system gives fewer threads, kernels compute on fewer.
///
/// A kernel that the calling thread runs then begins at once and is not handed to another thread, which takes as long as a small
/// kernel. Call it from the main thread of a program; it does nothing on another thread, or if kernels have run before.
///
/// ```
/// lmsc_kernels::compute_here(usize::MAX);
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
/// assert_eq!(lmsc_kernels::on_compute_thread(|| 1 + 1), 2);
/// ```
pub fn on_compute_thread<R: Send>(what: impl FnOnce() -> R + Send) -> R {
    rayon::scope(|_| what())
}

/// Number of threads on which the host's kernels compute; if it is one, only the thread that called [`compute_here`] may run
/// them.
pub fn threads() -> usize {
    rayon::current_num_threads()
}
