//! The time of one kernel: the roofline model, with corrections for the gap of real kernels to it.
//!
//! A kernel takes the time of its arithmetic or of its memory traffic, whichever is longer (Williams, Waterman, Patterson,
//! *Roofline: an insightful visual performance model for multicore architectures*, CACM 52(4), 2009), plus the time to launch
//! it. Neither peak is reached:
//!
//! - Memory streams at [`STREAM`] of its peak, scattered accesses at [`SCATTERED`].
//! - A matrix product computes whole tiles, so extents are rounded up to the next multiple of [`QUANTUM`]; it fills the
//!   device only if it has a piece for every multiprocessor; and then it reaches the share of its class.
//! - Traffic too small to fill the device is hidden by the launch, which takes longer.
//!
//! The shares are assumptions, in parts per thousand: with them the sums over whole steps are close to those of published
//! profiles (`tests/costs.rs`). A measured profile replaces them.

use lmsc_ir::ElementType;

use crate::target::Compute;

/// The share of the memory peak that kernels reach which read and write long runs.
const STREAM: u64 = 800;
/// The share of the memory peak that kernels with indexed accesses reach.
const SCATTERED: u64 = 400;
/// The share of the arithmetic peak that elementwise code reaches: it has few multiply-adds.
const ELEMENTWISE: u64 = 500;
/// The rows and columns of a result are computed in multiples of this many.
const QUANTUM: u64 = 32;
/// A piece of a product that one multiprocessor works on has this many rows and columns, and at least
/// [`PIECE_DEPTH`] terms in each sum.
const PIECE: u64 = 64;
/// See [`PIECE`].
const PIECE_DEPTH: u64 = 256;

/// One launch, or several equal ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    /// Useful floating-point operations; a multiply-add is two.
    pub(super) flops: u64,
    /// Bytes moved between the processor and device memory.
    pub(super) bytes: u64,
    /// Number of equal launches.
    pub(super) times: u64,
    pub(super) form: Form,
}

/// The memory access pattern or product that limits a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Long runs of memory.
    Stream,
    /// Indexed accesses.
    Scattered,
    /// A matrix product, or an operation computed like one.
    Product(Product),
}

/// `batch` products of an `m × k` with a `k × n` matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Product {
    pub(super) batch: u64,
    pub(super) m: u64,
    pub(super) n: u64,
    pub(super) k: u64,
    /// The share of the peak that such products reach if they are large, in parts per thousand.
    pub(super) share: u64,
}

impl Product {
    /// The multiply-adds, each counted as two.
    pub(super) fn flops(&self) -> u64 {
        [self.batch, self.m, self.n, self.k].into_iter().fold(2, u64::saturating_mul)
    }

    /// Number of pieces that can be computed at once.
    fn pieces(&self) -> u64 {
        let (rows, columns) = (self.m.div_ceil(PIECE), self.n.div_ceil(PIECE));
        [rows, columns, self.k / PIECE_DEPTH].into_iter().fold(self.batch, |n, d| n.saturating_mul(d.max(1)))
    }

    /// The operations of all whole tiles that hold `flops` useful ones.
    fn in_whole_tiles(&self, flops: u64) -> u128 {
        let whole = |extent: u64| u128::from(extent.div_ceil(QUANTUM)) * u128::from(QUANTUM);
        let area = u128::from(self.m).saturating_mul(u128::from(self.n)).max(1);
        let whole = u128::from(flops).saturating_mul(whole(self.m)).saturating_mul(whole(self.n)) / area;
        whole.max(u128::from(flops))
    }
}

impl Kernel {
    /// A kernel over long runs of memory.
    pub(super) fn stream(flops: u64, bytes: u64) -> Kernel {
        Kernel { flops, bytes, times: 1, form: Form::Stream }
    }

    /// A kernel with indexed accesses.
    pub(super) fn scattered(bytes: u64) -> Kernel {
        Kernel { flops: 0, bytes, times: 1, form: Form::Scattered }
    }

    /// A matrix product that moves `bytes` bytes.
    pub(super) fn product(product: Product, bytes: u64) -> Kernel {
        Kernel { flops: product.flops(), bytes, times: 1, form: Form::Product(product) }
    }

    /// The total nanoseconds of all launches, at least one each.
    pub(super) fn nanos(&self, compute: &Compute, element: ElementType) -> u64 {
        let arithmetic = self.arithmetic_nanos(compute, element);
        let memory = nanos(
            u128::from(self.bytes),
            share(
                compute.memory_bytes_per_second,
                match self.form {
                    Form::Scattered => SCATTERED,
                    Form::Stream | Form::Product(_) => STREAM,
                },
            ),
        );
        arithmetic.max(memory).saturating_add(compute.launch_nanos).max(1).saturating_mul(self.times)
    }

    fn arithmetic_nanos(&self, compute: &Compute, element: ElementType) -> u64 {
        let flops_per_second = &compute.flops_per_second;
        let Form::Product(product) = self.form else {
            let peak = match element {
                ElementType::Double | ElementType::Complex128 => flops_per_second.float64,
                _ => flops_per_second.float32,
            };
            return nanos(u128::from(self.flops), share(peak, ELEMENTWISE));
        };
        let busy = product.pieces().clamp(1, compute.multiprocessors);
        let peak = share(flops_per_second.of(element), product.share);
        let rate = peak * u128::from(busy) / u128::from(compute.multiprocessors);
        nanos(product.in_whole_tiles(self.flops), rate)
    }
}

/// The given number of thousandths of a rate.
fn share(per_second: u64, thousandths: u64) -> u128 {
    u128::from(per_second) * u128::from(thousandths) / 1000
}

/// The nanoseconds that an amount takes at a rate, rounded up.
fn nanos(amount: u128, per_second: u128) -> u64 {
    let nanos = amount.saturating_mul(1_000_000_000).div_ceil(per_second.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    /// 15.7 TFLOP/s, 900 GB/s, 80 multiprocessors, 5 µs to start.
    fn compute() -> Compute {
        Target::built_in("v100-nvlink2").unwrap().compute.clone()
    }

    fn time(kernel: &Kernel) -> u64 {
        kernel.nanos(&compute(), ElementType::Float)
    }

    /// Below the ridge the memory decides, above it the processor (Williams et al. 2009, figure 1).
    #[test]
    fn the_slower_of_arithmetic_and_memory_decides() {
        // 720 MB at 0.8 · 900 GB/s is 1 ms. The ridge is at 0.5 · 15.7 TFLOP/s · 1 ms = 7.85 GFLOP.
        assert_eq!(time(&Kernel::stream(0, 720_000_000)), 1_005_000);
        assert_eq!(time(&Kernel::stream(7_850_000_000, 720_000_000)), 1_005_000);
        assert_eq!(time(&Kernel::stream(15_700_000_000, 720_000_000)), 2_005_000);
        assert_eq!(time(&Kernel::scattered(720_000_000)), 2_005_000);
    }

    /// 2 · 1024³ at 0.75 · 15.7 TFLOP/s.
    #[test]
    fn a_product_that_fills_the_device_reaches_its_share() {
        let product = Product { batch: 1, m: 1024, n: 1024, k: 1024, share: 750 };
        assert_eq!(product.flops(), 2 << 30);
        assert_eq!(product.pieces(), 16 * 16 * 4);
        let expected = (2.0 * 1024f64.powi(3) / (0.75 * 15.7e12) * 1e9).ceil() as u64;
        assert_eq!(time(&Kernel::product(product, 12 << 20)), 5_000 + expected);
    }

    #[test]
    fn a_product_with_fewer_pieces_than_multiprocessors_leaves_the_others_idle() {
        // Eight pieces of one sum each: a tenth of 80 multiprocessors.
        let product = Product { batch: 1, m: 64, n: 512, k: 256, share: 1000 };
        assert_eq!(product.pieces(), 8);
        let expected = (f64::from(2 * 64 * 512 * 256) / 1.57e12 * 1e9).ceil() as u64;
        assert_eq!(time(&Kernel::product(product, 0)), 5_000 + expected);
        // Long sums are split: 64 · 8 pieces fill the device.
        assert_eq!(Product { k: 64 * 256, ..product }.pieces(), 512);
    }

    #[test]
    fn a_narrow_product_computes_whole_tiles() {
        let product = Product { batch: 1, m: 1 << 16, n: 3, k: 64, share: 700 };
        assert_eq!(product.in_whole_tiles(product.flops()), u128::from(product.flops()) * 32 / 3);
    }

    #[test]
    fn times_saturate_and_are_never_zero() {
        let mut compute = compute();
        let all = Product { batch: u64::MAX, m: u64::MAX, n: u64::MAX, k: u64::MAX, share: 1 };
        compute.multiprocessors = 1 << 16;
        compute.flops_per_second.float32 = 1;
        assert_eq!(Kernel::product(all, u64::MAX).nanos(&compute, ElementType::Float), u64::MAX);
        assert_eq!(Kernel { times: 7, ..Kernel::stream(0, 0) }.nanos(&compute, ElementType::Float), 35_000);
        compute.launch_nanos = 0;
        assert_eq!(Kernel::stream(0, 0).nanos(&compute, ElementType::Float), 1);
        let nothing = Product { batch: 0, m: 0, n: 0, k: 0, share: 1 };
        assert_eq!(Kernel::product(nothing, 0).nanos(&compute, ElementType::Float), 1);
    }

    #[test]
    fn half_precision_multiplies_faster_but_adds_no_faster() {
        let product = Kernel::product(Product { batch: 1, m: 4096, n: 4096, k: 4096, share: 800 }, 0);
        let half = product.nanos(&compute(), ElementType::Float16) - 5_000;
        assert_eq!((time(&product) - 5_000) / half, 7, "125 to 15.7 TFLOP/s");
        let sum = Kernel::stream(1 << 40, 0);
        assert_eq!(sum.nanos(&compute(), ElementType::Float16), time(&sum));
    }
}
