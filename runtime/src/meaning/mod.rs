//! Semantics of operators: extents, strides and attributes, apart from the loops that compute them.

mod broadcast;
mod product;
mod reduction;
mod rows;
mod strided;
mod window;

pub(crate) use broadcast::Broadcast;
pub(crate) use product::{Gemm, Product};
pub(crate) use reduction::Reduction;
pub(crate) use rows::Rows;
pub(crate) use strided::Strided;
pub(crate) use window::{Spatial, Window};

/// The stride of each dimension of a dense tensor, in elements.
pub(crate) fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for d in (1..dims.len()).rev() {
        strides[d - 1] = strides[d] * dims[d].max(1);
    }
    strides
}

/// The number of elements.
pub(crate) fn count(dims: &[usize]) -> usize {
    dims.iter().product()
}
