//! Semantics of operators: extents, strides and attributes, apart from the loops that compute them.

mod broadcast;
mod product;
mod reduction;
mod rows;
mod strided;
mod window;

pub use broadcast::Broadcast;
pub use product::{BatchedProduct, Gemm};
pub use reduction::Reduction;
pub use rows::Rows;
pub use strided::Strided;
pub use window::{SlidingWindow, Spatial};

/// The stride of each dimension of a dense tensor, in elements.
pub fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d].max(1);
    }
    strides
}

/// The number of elements.
pub fn count(dims: &[usize]) -> usize {
    dims.iter().product()
}
