//! Matrix products of `f32`.
//!
//! Blocks of both operands are packed into panels, whose products are computed tile by tile (Goto, van de Geijn, *Anatomy of
//! High-Performance Matrix Multiplication*, TOMS 34(3), 2008). The packed values may be any function of row and column, so a
//! convolution never materializes its columns.
//!
//! Each element is summed in blocks of a fixed number of products, in order, on any thread: the bits do not depend on the number of threads.

mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

use rayon::prelude::*;

/// Rows of a tile.
pub(crate) const MR: usize = 8;
/// Columns of a tile.
pub(crate) const NR: usize = 32;
/// Number of products that are summed before they are added to the result.
const KC: usize = 256;
/// Rows of a block of the left operand: with [`KC`] columns it fits a second-level cache.
const MC: usize = 128;
/// Columns of a block of the right operand.
const NC: usize = 1024;
/// Maximum number of pieces into which the work of one operator is cut. Each has a part of the workspace.
pub(crate) const PIECES: usize = 16;
/// Products with fewer multiplications run on one thread.
const SMALL: usize = 1 << 16;
/// Minimum number of elements that one thread packs.
const PACKED: usize = 1 << 14;

/// A sum of tiles: the product of a panel of the left and a panel of the right operand.
type Tile = [f32; MR * NR];

/// One operand: rows of the left one, or columns of the right one, are its lanes.
pub(crate) trait Side: Sync {
    /// Writes the lanes, side by side, for each `k` in turn: `out[(k - k.start) * W + lane - lanes.start]`.
    ///
    /// If there are fewer than W lanes, the missing ones are 0.
    fn pack<const W: usize>(&self, lanes: Range<usize>, k: Range<usize>, out: &mut [f32]);
}

/// A matrix in memory, or its transpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    pub(crate) data: &'a [f32],
    /// The distance between neighbouring lanes.
    pub lane: usize,
    /// The distance between neighbours along the sum.
    pub k: usize,
}

impl Side for Matrix<'_> {
    fn pack<const W: usize>(&self, lanes: Range<usize>, k: Range<usize>, out: &mut [f32]) {
        let n = lanes.len();
        if self.lane == 1 {
            for (row, k) in out.chunks_exact_mut(W).zip(k) {
                let from = &self.data[k * self.k + lanes.start..][..n];
                if n == W {
                    row.copy_from_slice(&from[..W]);
                } else {
                    row[..n].copy_from_slice(from);
                    row[n..].fill(0.0);
                }
            }
            return;
        }
        if n < W {
            out.fill(0.0);
        }
        if self.k == 1 {
            let length = k.len();
            transpose::<W>(n, length, out, |i| {
                &self.data[(lanes.start + i) * self.lane + k.start..][..length]
            });
            return;
        }
        for (i, lane) in lanes.enumerate() {
            for (row, k) in out.chunks_exact_mut(W).zip(k.clone()) {
                row[i] = self.data[lane * self.lane + k * self.k];
            }
        }
    }
}

/// Writes `n` lanes, each given as a row of `length` elements, side by side: `out[k * W + lane]`; `out` may end after the last
/// element.
pub fn transpose<'a, const W: usize>(
    n: usize,
    length: usize,
    out: &mut [f32],
    row: impl Fn(usize) -> &'a [f32],
) {
    #[cfg(target_arch = "x86_64")]
    if x86::transpose::<W>(n, length, out, &row) {
        return;
    }
    portable::transpose::<W>(n, out, &row);
}

/// The left operand, in blocks of rows.
pub(crate) trait Left: Sync {
    /// The panels of these rows, which begin at a multiple of [`MR`].
    fn panels<'w>(&'w self, rows: Range<usize>, k: Range<usize>, workspace: &'w mut [f32]) -> &'w [f32];
}

impl<S: Side> Left for S {
    fn panels<'w>(&'w self, rows: Range<usize>, k: Range<usize>, workspace: &'w mut [f32]) -> &'w [f32] {
        let size = k.len() * MR;
        let starts = rows.clone().step_by(MR);
        let count = starts.len();
        for (panel, start) in workspace.chunks_exact_mut(size).zip(starts) {
            self.pack::<MR>(start..(start + MR).min(rows.end), k.clone(), panel);
        }
        &workspace[..count * size]
    }
}

/// A left operand that is packed once and used many times.
pub(crate) struct Packed<'a> {
    panels: &'a [f32],
    /// Rows, rounded up to whole panels.
    rows: usize,
}

impl<'a> Packed<'a> {
    /// Number of elements that `rows` × `k` need.
    pub(crate) fn len(rows: usize, k: usize) -> usize {
        rows.next_multiple_of(MR) * k
    }

    /// The panels that [`Packed::fill`] has written for `rows` rows.
    pub(crate) fn of(panels: &'a [f32], rows: usize) -> Packed<'a> {
        Packed { panels, rows: rows.next_multiple_of(MR) }
    }

    /// Packs the rows of the side.
    pub(crate) fn fill(side: &impl Side, rows: usize, k: usize, room: &mut [f32]) {
        let padded = rows.next_multiple_of(MR);
        for start in (0..k).step_by(KC) {
            let block = start..(start + KC).min(k);
            let size = MR * block.len();
            let panels = &mut room[start * padded..block.end * padded];
            panels.par_chunks_exact_mut(size).enumerate().with_min_len((PACKED / size).max(1)).for_each(
                |(i, panel)| {
                    side.pack::<MR>(i * MR..(i * MR + MR).min(rows), block.clone(), panel);
                },
            );
        }
    }
}

impl Left for Packed<'_> {
    fn panels<'w>(&'w self, rows: Range<usize>, k: Range<usize>, _: &'w mut [f32]) -> &'w [f32] {
        let from = k.start * self.rows + rows.start * k.len();
        &self.panels[from..from + rows.len().next_multiple_of(MR) * k.len()]
    }
}

/// Extents of a product: `m` × `k` times `k` × `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Rows of the product.
    pub m: usize,
    /// Columns of the product.
    pub n: usize,
    /// Terms of each sum.
    pub k: usize,
}

impl Extents {
    fn left(&self, rows: usize) -> usize {
        rows.min(MC).next_multiple_of(MR) * self.k.min(KC)
    }

    fn right(&self) -> usize {
        self.n.min(NC).next_multiple_of(NR) * self.k.min(KC)
    }

    /// Number of elements of workspace that [`serial`] needs.
    pub(crate) fn serial(&self) -> usize {
        self.left(self.m) + self.right()
    }

    /// Number of pieces that [`parallel`] makes, and the rows of each.
    fn pieces(&self) -> (usize, usize) {
        let most = self.m.div_ceil(32).clamp(1, PIECES);
        let rows = self.m.div_ceil(most).next_multiple_of(MR).max(MR);
        (self.m.div_ceil(rows).max(1), rows)
    }

    /// Number of elements of workspace that [`parallel`] needs.
    pub(crate) fn parallel(&self) -> usize {
        let (pieces, rows) = self.pieces();
        self.right() + pieces * self.left(rows)
    }

    /// Minimum number of pieces, each of `products` products, that one thread computes.
    pub(crate) fn alone(&self, products: usize) -> usize {
        (SMALL / (self.m * self.n * self.k * products).max(1)).max(1)
    }

    fn is_small(&self) -> bool {
        self.m * self.n * self.k < SMALL
    }
}

/// Destination of a product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Into {
    /// The distance between rows of the result.
    pub row: usize,
    /// Factor of the product.
    pub alpha: f32,
    /// Whether the product is added to the previous values.
    pub add: bool,
}

impl Into {
    /// A dense result with this number of columns, overwritten.
    pub(crate) fn dense(columns: usize) -> Into {
        Into { row: columns, alpha: 1.0, add: false }
    }
}

/// Computes a product on the calling thread.
pub(crate) fn serial(
    x: Extents,
    left: &impl Left,
    right: &impl Side,
    c: &mut [f32],
    into: Into,
    workspace: &mut [f32],
) {
    if is_trivial(x, c, into) {
        return;
    }
    let (for_right, for_left) = workspace.split_at_mut(x.right());
    for columns in blocks(0..x.n, NC) {
        for k in blocks(0..x.k, KC) {
            let size = k.len() * NR;
            let panels = &mut for_right[..columns.len().div_ceil(NR) * size];
            for (i, panel) in panels.chunks_exact_mut(size).enumerate() {
                let start = columns.start + i * NR;
                right.pack::<NR>(start..(start + NR).min(columns.end), k.clone(), panel);
            }
            let into = Into { add: into.add || k.start > 0, ..into };
            for rows in blocks(0..x.m, MC) {
                let a = left.panels(rows.clone(), k.clone(), for_left);
                let c = &mut c[rows.start * into.row + columns.start..];
                block(a, rows.len(), panels, columns.len(), k.len(), c, into);
            }
        }
    }
}

/// Computes a product on all threads.
pub(crate) fn parallel(
    x: Extents,
    left: &impl Left,
    right: &impl Side,
    c: &mut [f32],
    into: Into,
    workspace: &mut [f32],
) {
    if is_trivial(x, c, into) {
        return;
    }
    if x.is_small() {
        return serial(x, left, right, c, into, workspace);
    }
    let (pieces, rows_each) = x.pieces();
    let (for_right, for_left) = workspace.split_at_mut(x.right());
    let left_each = x.left(rows_each);
    for columns in blocks(0..x.n, NC) {
        for k in blocks(0..x.k, KC) {
            let size = k.len() * NR;
            let panels = &mut for_right[..columns.len().div_ceil(NR) * size];
            panels.par_chunks_exact_mut(size).enumerate().with_min_len((PACKED / size).max(1)).for_each(
                |(i, panel)| {
                    let start = columns.start + i * NR;
                    right.pack::<NR>(start..(start + NR).min(columns.end), k.clone(), panel);
                },
            );
            let panels = &*panels;
            let into = Into { add: into.add || k.start > 0, ..into };
            let parts = c.par_chunks_mut(rows_each * into.row).zip(for_left.par_chunks_mut(left_each));
            parts.take(pieces).enumerate().for_each(|(piece, (c, room))| {
                let first = piece * rows_each;
                for rows in blocks(first..(first + rows_each).min(x.m), MC) {
                    let a = left.panels(rows.clone(), k.clone(), room);
                    let c = &mut c[(rows.start - first) * into.row + columns.start..];
                    block(a, rows.len(), panels, columns.len(), k.len(), c, into);
                }
            });
        }
    }
}

/// Whether the product is empty; then the result is zero, or unchanged if it is added to.
fn is_trivial(x: Extents, c: &mut [f32], into: Into) -> bool {
    if x.k == 0 && !into.add {
        c.chunks_mut(into.row.max(1)).take(x.m).for_each(|row| row[..x.n].fill(0.0));
    }
    x.m == 0 || x.n == 0 || x.k == 0
}

fn blocks(range: Range<usize>, size: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range.step_by(size).map(move |start| start..(start + size).min(end))
}

/// Multiplies panels of the left operand with panels of the right one.
fn block(a: &[f32], rows: usize, b: &[f32], columns: usize, k: usize, c: &mut [f32], into: Into) {
    let multiply = tile();
    for (j, b) in b.chunks_exact(k * NR).enumerate() {
        let width = NR.min(columns - j * NR);
        for (i, a) in a.chunks_exact(k * MR).enumerate() {
            let height = MR.min(rows - i * MR);
            let c = &mut c[i * MR * into.row + j * NR..][..(height - 1) * into.row + width];
            multiply(a, b, Corner { c, height, width, into });
        }
    }
}

/// The part of a result that a tile is written to: `height` rows and `width` columns; `c` runs from the first element to the
/// last.
struct Corner<'a> {
    c: &'a mut [f32],
    height: usize,
    width: usize,
    into: Into,
}

impl Corner<'_> {
    fn put(&mut self, tile: &Tile) {
        let Into { row, alpha, add } = self.into;
        for (c, sum) in self.c.chunks_mut(row).zip(tile.chunks_exact(NR)).take(self.height) {
            let (c, sum) = (&mut c[..self.width], &sum[..self.width]);
            if add {
                c.iter_mut().zip(sum).for_each(|(c, s)| *c += alpha * s)
            } else {
                c.iter_mut().zip(sum).for_each(|(c, s)| *c = alpha * s)
            }
        }
    }
}

/// Multiplies one panel with another, `sum[i * NR + j] = Σ a[k * MR + i] · b[k * NR + j]`, and writes the sums to the corner.
type Multiply = fn(&[f32], &[f32], Corner<'_>);

/// The fastest implementation for this processor.
fn tile() -> Multiply {
    #[cfg(target_arch = "x86_64")]
    if let Some(tile) = x86::tile() {
        return tile;
    }
    |a, b, mut corner| corner.put(&portable::tile(a, b))
}

#[cfg(test)]
mod tests;
