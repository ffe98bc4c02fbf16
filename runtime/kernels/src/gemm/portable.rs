//! Tiles and transpositions without processor-specific instructions.

use super::{MR, NR, Tile};

/// The product of two panels.
pub(super) fn tile(a: &[f32], b: &[f32]) -> Tile {
    let mut sum: Tile = [0.0; MR * NR];
    // A quarter of the columns at a time, so that sums stay in registers.
    const PART: usize = 8;
    for part in 0..NR / PART {
        for half in 0..2 {
            const ROWS: usize = MR / 2;
            let mut sums = [[0.0f32; PART]; ROWS];
            for (a, b) in a.as_chunks::<MR>().0.iter().zip(b.as_chunks::<NR>().0) {
                for (sums, &a) in sums.iter_mut().zip(&a[half * ROWS..]) {
                    for (sum, &b) in sums.iter_mut().zip(&b[part * PART..]) {
                        *sum += a * b;
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                sum[(half * ROWS + r) * NR + part * PART..][..PART].copy_from_slice(sums);
            }
        }
    }
    sum
}

/// Writes `n` rows side by side, as [`super::transpose`].
pub(super) fn transpose<'a, const W: usize>(n: usize, out: &mut [f32], row: &impl Fn(usize) -> &'a [f32]) {
    for i in 0..n {
        // The last chunk may be short, where other lanes follow.
        for (out, &value) in out.chunks_mut(W).zip(row(i)) {
            out[i] = value;
        }
    }
}
