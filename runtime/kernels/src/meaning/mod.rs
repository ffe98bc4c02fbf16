//! Semantics of operators: extents, strides and attributes, apart from the loops that compute them.

mod attention;
mod broadcast;
mod product;
mod reduction;
mod rows;
mod strided;
mod window;

pub use attention::{ScoreMask, TiledAttention};
pub use broadcast::Broadcast;
pub use product::{BatchedProduct, Gemm};
pub use reduction::Reduction;
pub use rows::Rows;
pub use strided::Strided;
pub use window::{SlidingWindow, Spatial};

/// The stride of each dimension of a dense tensor, in elements.
pub fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; dims.len()];
    for d in (1..dims.len()).rev() {
        // Only a tensor without elements has extents whose product is too large.
        strides[d - 1] = strides[d].saturating_mul(dims[d].max(1));
    }
    strides
}

/// The number of elements.
pub fn count(dims: &[usize]) -> usize {
    if dims.contains(&0) { 0 } else { dims.iter().product() }
}
