//! Tiles and transpositions with the vector instructions of x86-64 processors, detected at run time.
//!
//! Compilers do not keep a whole tile in registers: with AVX-512 this one is four times as fast as the portable one.

use std::arch::x86_64::*;
use std::sync::LazyLock;

use super::{Corner, Into, MR, Multiply, NR, Tile};

/// The best tile for this processor, if it has fused multiplication.
pub(super) fn tile() -> Option<Multiply> {
    static TILE: LazyLock<Option<Multiply>> = LazyLock::new(|| tiles().first().copied());
    *TILE
}

/// The tiles that this processor can compute, the best first.
pub(super) fn tiles() -> Vec<Multiply> {
    let mut tiles: Vec<Multiply> = Vec::new();
    if has_avx512() {
        // SAFETY: the processor has AVX-512F, the only demand of the function.
        tiles.push(|a, b, corner| unsafe { tile_avx512(a, b, corner) });
    }
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has AVX2 and FMA, the only demands of the function.
        tiles.push(|a, b, mut corner| corner.put(&unsafe { tile_avx2(a, b) }));
    }
    tiles
}

fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
}

/// Eight rows of two vectors: sixteen sums in registers, written directly to the result.
#[target_feature(enable = "avx512f")]
fn tile_avx512(a: &[f32], b: &[f32], corner: Corner<'_>) {
    let mut sums = [[_mm512_setzero_ps(); 2]; MR];
    for (a, b) in a.as_chunks::<MR>().0.iter().zip(b.as_chunks::<NR>().0) {
        // SAFETY: `b` has 32 elements, two vectors; loads need no alignment.
        let b = unsafe { [_mm512_loadu_ps(b.as_ptr()), _mm512_loadu_ps(b.as_ptr().add(16))] };
        for (sums, &a) in sums.iter_mut().zip(a) {
            let a = _mm512_set1_ps(a);
            sums[0] = _mm512_fmadd_ps(a, b[0], sums[0]);
            sums[1] = _mm512_fmadd_ps(a, b[1], sums[1]);
        }
    }
    let Corner { c, height, width, into: Into { row, alpha, add } } = corner;
    let alpha = _mm512_set1_ps(alpha);
    for (sums, c) in sums.iter().zip(c.chunks_mut(row)).take(height) {
        for (sum, c) in sums.iter().zip(c[..width].chunks_mut(16)) {
            let mask = u16::MAX >> (16 - c.len());
            // SAFETY: only those of the vector's elements are read and written that `c` has.
            unsafe {
                let mut sum = _mm512_mul_ps(alpha, *sum);
                if add {
                    sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, c.as_ptr()), sum);
                }
                _mm512_mask_storeu_ps(c.as_mut_ptr(), mask, sum);
            }
        }
    }
}

/// Four rows of two vectors at a time: eight sums in registers.
#[target_feature(enable = "avx2,fma")]
fn tile_avx2(a: &[f32], b: &[f32]) -> Tile {
    let mut sum: Tile = [0.0; MR * NR];
    const ROWS: usize = 4;
    const PART: usize = 16;
    for part in 0..NR / PART {
        for group in 0..MR / ROWS {
            let mut sums = [[_mm256_setzero_ps(); 2]; ROWS];
            for (a, b) in a.as_chunks::<MR>().0.iter().zip(b.as_chunks::<NR>().0) {
                let b = &b[part * PART..][..PART];
                // SAFETY: `b` has 16 elements, two vectors; loads need no alignment.
                let b = unsafe { [_mm256_loadu_ps(b.as_ptr()), _mm256_loadu_ps(b.as_ptr().add(8))] };
                for (sums, &a) in sums.iter_mut().zip(&a[group * ROWS..]) {
                    let a = _mm256_set1_ps(a);
                    sums[0] = _mm256_fmadd_ps(a, b[0], sums[0]);
                    sums[1] = _mm256_fmadd_ps(a, b[1], sums[1]);
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                let out = &mut sum[(group * ROWS + r) * NR + part * PART..][..PART];
                // SAFETY: `out` has 16 elements, two vectors; stores need no alignment.
                unsafe {
                    _mm256_storeu_ps(out.as_mut_ptr(), sums[0]);
                    _mm256_storeu_ps(out.as_mut_ptr().add(8), sums[1]);
                }
            }
        }
    }
    sum
}

/// Writes `n` rows side by side, as [`super::transpose`]; false where this processor has no AVX-512.
pub(super) fn transpose<'a, const W: usize>(
    n: usize,
    length: usize,
    out: &mut [f32],
    row: &impl Fn(usize) -> &'a [f32],
) -> bool {
    if !has_avx512() {
        return false;
    }
    let whole = length / 16 * 16;
    for first in (0..n).step_by(8) {
        let count = (n - first).min(8);
        // Missing rows are written as rows of zeros, in places that hold zeros anyway.
        let rows: [&[f32]; 8] = std::array::from_fn(|i| if i < count { row(first + i) } else { &[] });
        if count == 8 {
            for k in (0..whole).step_by(16) {
                let block: [&[f32; 16]; 8] =
                    std::array::from_fn(|i| rows[i][k..k + 16].try_into().expect("sixteen elements"));
                // SAFETY: the processor has AVX-512F, the only demand of the function.
                unsafe { transpose_8x16::<W>(block, &mut out[k * W + first..]) };
            }
        }
        let done = if count == 8 { whole } else { 0 };
        for (i, row) in rows[..count].iter().enumerate() {
            for k in done..length {
                out[k * W + first + i] = row[k];
            }
        }
    }
    true
}

/// Writes element k of row i to `out[k * W + i]`.
#[target_feature(enable = "avx512f")]
fn transpose_8x16<const W: usize>(rows: [&[f32; 16]; 8], out: &mut [f32]) {
    // SAFETY: each row has 16 elements, one vector; loads need no alignment.
    let v: [__m512; 8] = std::array::from_fn(|i| unsafe { _mm512_loadu_ps(rows[i].as_ptr()) });
    let pairs: [__m512; 8] = std::array::from_fn(|i| {
        let (a, b) = (v[i / 2 * 2], v[i / 2 * 2 + 1]);
        if i % 2 == 0 { _mm512_unpacklo_ps(a, b) } else { _mm512_unpackhi_ps(a, b) }
    });
    // `quads[4 * h + e]` holds, in each 128-bit lane l, element 4l + e of rows 4h to 4h + 3.
    let quads: [__m512; 8] = std::array::from_fn(|i| {
        let (h, e) = (i / 4, i % 4);
        let (a, b) = (pairs[4 * h + e / 2], pairs[4 * h + 2 + e / 2]);
        if e % 2 == 0 {
            _mm512_shuffle_ps::<0b01_00_01_00>(a, b)
        } else {
            _mm512_shuffle_ps::<0b11_10_11_10>(a, b)
        }
    });
    let mut put = |lane: usize, e: usize, low: __m128, high: __m128| {
        let to = &mut out[(4 * lane + e) * W..][..8];
        // SAFETY: `to` has eight elements, two short vectors; stores need no alignment.
        unsafe {
            _mm_storeu_ps(to.as_mut_ptr(), low);
            _mm_storeu_ps(to.as_mut_ptr().add(4), high);
        }
    };
    for e in 0..4 {
        let (low, high) = (quads[e], quads[4 + e]);
        put(0, e, _mm512_extractf32x4_ps::<0>(low), _mm512_extractf32x4_ps::<0>(high));
        put(1, e, _mm512_extractf32x4_ps::<1>(low), _mm512_extractf32x4_ps::<1>(high));
        put(2, e, _mm512_extractf32x4_ps::<2>(low), _mm512_extractf32x4_ps::<2>(high));
        put(3, e, _mm512_extractf32x4_ps::<3>(low), _mm512_extractf32x4_ps::<3>(high));
    }
}
