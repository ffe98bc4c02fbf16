//! What executes. So far the kernels of the host: one for every operator of a training step, forward, gradient and
//! optimizer.
//!
//! A kernel is [prepared](prepare) once, from the operator, its attributes, the types of its operands and results, and
//! what is constant among its operands. All that can be wrong is found then. It [runs](Kernel::run) any number of
//! times, on bytes; it allocates nothing, and computes the same bits on any number of threads.
//!
//! `meaning` says what an operator means: extents, strides, attributes. `host` has the loops. `table` has one row an
//! operator.
//!
//! Knows no file format, no pass and no planner.

mod element;
mod gemm;
mod host;
mod kernel;
mod math;
mod meaning;
mod spec;
mod table;

pub use kernel::{Io, Kernel, Step};
pub use spec::{Operand, PrepareError, Spec};
pub use table::{operators, prepare};
