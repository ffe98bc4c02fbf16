//! Matrix products: `MatMul`, `FusedMatMul`, `Gemm`.

use super::{Broadcast, count, strides};
use crate::gemm::Extents;
use crate::spec::{Spec, SpecError, refuse};

/// The most products of a batch: each has an entry in a table, which has at most 64 MiB.
const MOST_PRODUCTS: usize = 1 << 22;

/// A batch of products of matrices in two tensors.
#[derive(Clone, Debug)]
pub struct BatchedProduct {
    /// Extents of each product.
    pub x: Extents,
    /// Distances between rows and between columns of a matrix on the left.
    pub left: (usize, usize),
    /// The same on the right.
    pub right: (usize, usize),
    /// For each product, the offsets of its two matrices.
    pub offsets: Vec<(usize, usize)>,
    /// Factor of the products.
    pub alpha: f32,
}

/// One operand: extents of its batch and its matrix, with strides.
struct Side {
    batch: Vec<usize>,
    strides: Vec<usize>,
    rows: (usize, usize),
    columns: (usize, usize),
}

impl Side {
    fn new(dims: &[usize], transposed: bool, batch_transposed: bool) -> Side {
        let mut axes: Vec<(usize, usize)> = dims.iter().copied().zip(strides(dims)).collect();
        let columns = axes.pop().unwrap_or((1, 1));
        // Batch-transposed operands have their rows in front of the batch.
        let rows =
            if batch_transposed && !axes.is_empty() { axes.remove(0) } else { axes.pop().unwrap_or((1, 0)) };
        let (rows, columns) = if transposed { (columns, rows) } else { (rows, columns) };
        let (batch, strides) = axes.into_iter().unzip();
        Side { batch, strides, rows, columns }
    }
}

impl BatchedProduct {
    /// `MatMul` and its variants, with `transA` and similar attributes if they are given.
    pub fn matmul(spec: &Spec<'_>) -> Result<BatchedProduct, SpecError> {
        let (a, b) = (spec.dims(0)?, spec.dims(1)?);
        let flag = |name| Ok(spec.knows(name) && spec.flag(name)?);
        // A vector is a row on the left and a column on the right; neither can be transposed.
        let (wide_a, trans_a) =
            if a.len() == 1 { (vec![1, a[0]], false) } else { (a.clone(), flag("transA")?) };
        let (wide_b, trans_b) =
            if b.len() == 1 { (vec![b[0], 1], false) } else { (b.clone(), flag("transB")?) };
        let mut left = Side::new(&wide_a, trans_a, flag("transBatchA")?);
        let right = Side::new(&wide_b, trans_b, flag("transBatchB")?);
        if left.columns.0 != right.rows.0 {
            return refuse(format!("operands {a:?} and {b:?} do not fit: inner extents differ"));
        }
        // One matrix on the right: a dense batch of rows on the left is one tall matrix.
        let dense = left
            .batch
            .iter()
            .zip(&left.strides)
            .rev()
            .try_fold(left.rows, |(n, s), (&d, &stride)| (stride == n * s).then_some((n * d, s)));
        if let Some(rows) = dense.filter(|_| count(&right.batch) == 1) {
            left = Side { batch: Vec::new(), strides: Vec::new(), rows, columns: left.columns };
        }
        let rank = left.batch.len().max(right.batch.len());
        let extent = |batch: &[usize], d: usize| (d + batch.len()).checked_sub(rank).map_or(1, |i| batch[i]);
        let batch: Vec<usize> = (0..rank)
            .map(|d| match (extent(&left.batch, d), extent(&right.batch, d)) {
                (1, b) => b,
                (a, _) => a,
            })
            .collect();
        let index = Broadcast::new(&[left.batch.clone(), right.batch.clone()], &batch)?;
        if batch.iter().try_fold(1, |all: usize, &d| all.checked_mul(d)).is_none_or(|all| all > MOST_PRODUCTS)
        {
            return refuse(format!(
                "operands {a:?} and {b:?} are a batch of more than {MOST_PRODUCTS} products"
            ));
        }
        let lies = |side: &Side, operand: usize| -> Vec<usize> {
            let dense = strides(&side.batch);
            let place = |mut index: usize| {
                let mut offset = 0;
                for (d, s) in dense.iter().zip(&side.strides) {
                    offset += index / d * s;
                    index %= d;
                }
                offset
            };
            index.offsets(operand).into_iter().map(place).collect()
        };
        let offsets = lies(&left, 0).into_iter().zip(lies(&right, 1)).collect();
        Ok(BatchedProduct {
            x: Extents { m: left.rows.0, n: right.columns.0, k: left.columns.0 },
            left: (left.rows.1, left.columns.1),
            right: (right.rows.1, right.columns.1),
            offsets,
            alpha: if spec.knows("alpha") { spec.float("alpha")? } else { 1.0 },
        })
    }
}

/// `alpha · A′ B′ + beta · C`.
#[derive(Clone, Debug)]
pub struct Gemm {
    /// The product.
    pub product: BatchedProduct,
    /// Factor of the operand that is added.
    pub beta: f32,
    /// How C is broadcast to the result, if there is a C and `beta` is not 0.
    pub c: Option<Broadcast>,
}

impl Gemm {
    /// The operator `Gemm`.
    pub fn of(spec: &Spec<'_>) -> Result<Gemm, SpecError> {
        let (a, b) = (spec.dims(0)?, spec.dims(1)?);
        if a.len() != 2 || b.len() != 2 {
            return refuse(format!("operands {a:?} and {b:?} are not both matrices"));
        }
        let product = BatchedProduct::matmul(spec)?;
        let beta = spec.float("beta")?;
        let c = if spec.has(2) && beta != 0.0 {
            Some(Broadcast::new(&[spec.dims(2)?], &[product.x.m, product.x.n])?)
        } else {
            None
        };
        Ok(Gemm { product, beta, c })
    }
}
