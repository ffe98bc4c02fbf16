//! `MatMul`, `FusedMatMul`, `Gemm`.

use rayon::prelude::*;

use super::Made;
use crate::gemm::{self, Into, Matrix, PIECES};
use crate::kernel::{Io, Kernel};
use crate::meaning::{BatchedProduct, Gemm};
use crate::spec::Spec;

/// Products of a batch with fewer multiplications each are computed in parallel.
const EACH_ALONE: usize = 1 << 22;

impl BatchedProduct {
    fn is_batch(&self) -> bool {
        let x = self.x;
        self.offsets.len() > 1 && (self.offsets.len() >= PIECES || x.m * x.n * x.k < EACH_ALONE)
    }

    fn workspace(&self) -> usize {
        if self.is_batch() { self.x.serial() * PIECES.min(self.offsets.len()) } else { self.x.parallel() }
    }

    fn run(&self, a: &[f32], b: &[f32], c: &mut [f32], workspace: &mut [f32], add: bool) {
        let x = self.x;
        let size = x.m * x.n;
        if size == 0 {
            return;
        }
        let into = Into { add, alpha: self.alpha, row: x.n };
        let sides = |(left, right): (usize, usize)| {
            (
                Matrix { data: a.get(left..).unwrap_or(&[]), lane: self.left.0, k: self.left.1 },
                Matrix { data: b.get(right..).unwrap_or(&[]), lane: self.right.1, k: self.right.0 },
            )
        };
        if !self.is_batch() {
            for (c, &offsets) in c.chunks_mut(size).zip(&self.offsets) {
                let (a, b) = sides(offsets);
                gemm::parallel(x, &a, &b, c, into, workspace);
            }
            return;
        }
        let each = self.offsets.len().div_ceil(PIECES);
        let rooms = workspace.par_chunks_mut(x.serial().max(1));
        let pieces = c.par_chunks_mut(each * size).zip(self.offsets.par_chunks(each));
        // Without products to sum there is no workspace, but zeros must be written.
        if x.serial() == 0 {
            c.fill(if add { return } else { 0.0 });
            return;
        }
        pieces.zip(rooms).with_min_len(x.alone(each)).for_each(|((c, offsets), room)| {
            for (c, &offsets) in c.chunks_mut(size).zip(offsets) {
                let (a, b) = sides(offsets);
                gemm::serial(x, &a, &b, c, into, room);
            }
        });
    }
}

/// `MatMul`, `FusedMatMul`.
pub(crate) fn matmul(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..2)?;
    let product = BatchedProduct::matmul(spec)?;
    let workspace = product.workspace();
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let (a, b, c) = (io.get(0), io.get(1), io.take(0));
        product.run(a, b, c, io.workspace(), false);
    });
    Ok(kernel.with_workspace::<f32>(workspace))
}

/// `Gemm`.
pub(crate) fn gemm(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..3)?;
    let Gemm { product, beta, c: addend } = Gemm::of(spec)?;
    let workspace = product.workspace();
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let (a, b, c) = (io.get(0), io.get(1), io.take::<f32>(0));
        if let Some(addend) = &addend {
            let given = io.get::<f32>(2);
            super::each::parts(c, |start, c| {
                let mut at = 0;
                addend.walk(0, start, c.len(), |first, step, n| {
                    let c = &mut c[at..at + n];
                    match step {
                        0 => c.fill(beta * given[first]),
                        _ => c.iter_mut().zip(&given[first..]).for_each(|(c, g)| *c = beta * g),
                    }
                    at += n;
                });
            });
        }
        product.run(a, b, c, io.workspace(), addend.is_some());
    });
    Ok(kernel.with_workspace::<f32>(workspace))
}
