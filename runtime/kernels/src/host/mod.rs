//! Kernels of the host: one file per family of operators.

pub(crate) mod attention;
pub(crate) mod bits;
pub(crate) mod cast;
pub mod conv;
pub(crate) mod each;
pub mod elementwise;
pub(crate) mod embed;
pub mod index;
pub mod loss;
pub mod movement;
pub mod nhwc;
pub mod normalization;
pub mod optimizer;
pub mod pool;
pub(crate) mod product;
pub(crate) mod quantize;
pub mod random;
pub mod reduce;
pub mod resize;
pub mod rnn;
pub(crate) mod shape;
pub mod softmax;
pub(crate) mod tiled_attention;

use rayon::prelude::*;

use crate::kernel::Kernel;
use crate::spec::SpecError;

/// The result of a constructor of the table.
pub(crate) type Made = Result<Kernel, SpecError>;

/// Minimum number of elements that one thread works on, if each costs little.
pub(crate) const GRAIN: usize = 1 << 14;

/// Calls `f` with each chunk of `size` elements and its number, on all threads; each takes at least `least` chunks.
///
/// The function is not a type parameter, so that the code that distributes the work is compiled once for each element type.
pub(crate) fn chunks<T: Send>(
    out: &mut [T],
    size: usize,
    least: usize,
    f: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let size = size.max(1);
    if out.len() <= size {
        return if out.is_empty() {
        } else {
            f(0, out)
        };
    }
    out.par_chunks_mut(size).enumerate().with_min_len(least.max(1)).for_each(|(i, out)| f(i, out));
}

/// Minimum number of chunks of `size` cheap elements that one thread takes.
pub(crate) fn least(size: usize) -> usize {
    (GRAIN / size.max(1)).max(1)
}
