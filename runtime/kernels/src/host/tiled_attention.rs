//! `ai.lmsc.Attention` and `ai.lmsc.AttentionGrad`: scores are computed by tiles and are never in memory as a whole.
//!
//! Each element of a result is summed over the tiles in order, so its bits depend on the extents alone.
//!
//! # Source
//! Dao et al., *FlashAttention*, arXiv:2205.14135, and Dao, *FlashAttention-2*, arXiv:2307.08691. In place of the logarithm of
//! the sum of exponentials, the largest score of a row and the sum are kept: where a mask of large negative numbers is added
//! to a whole row, the logarithm would vanish beside the score, and the gradient's weights would not add up to one.

use std::mem::take;
use std::ops::Range;

use super::Made;
use super::softmax::{largest, sum};
use crate::element::Number;
use crate::gemm::{self, Extents, Into, Matrix, PIECES};
use crate::kernel::{Io, Kernel};
use crate::math::exp;
use crate::meaning::{ScoreMask, TiledAttention};
use crate::spec::Spec;

/// Queries of a tile, and keys of a tile: 64 KiB of scores, which fit a second-level cache together with packed keys and values of 64
/// elements. With half as many queries, keys are packed twice as often; with twice as many, causal scores compute more for nothing.
const ROWS: usize = 64;
const KEYS: usize = 256;

/// Less work than this number of multiplications is not cut into pieces.
const SMALL: usize = 1 << 18;

/// A range of a head's queries, and the head among all heads of all samples.
#[derive(Clone)]
struct Rows {
    head: usize,
    rows: Range<usize>,
}

/// A range of a group's keys, and the group among all groups of all samples.
#[derive(Clone)]
struct Keys {
    group: usize,
    keys: Range<usize>,
}

/// The rows of a part of a tensor of rows.
fn part(data: &[f32], first: usize, width: usize) -> &[f32] {
    data.get(first * width..).unwrap_or(&[])
}

/// A matrix whose rows are its lanes, and one whose columns are.
fn by_rows(data: &[f32], width: usize) -> Matrix<'_> {
    Matrix { data, lane: width, k: 1 }
}
fn by_columns(data: &[f32], width: usize) -> Matrix<'_> {
    Matrix { data, lane: 1, k: width }
}

impl ScoreMask {
    /// Adds a row of the mask to the scores of some keys of a query.
    fn add(&self, io: &Io<'_>, [batch, head, row]: [usize; 3], keys: Range<usize>, scores: &mut [f32]) {
        let [a, b, c, step] = self.strides;
        let at = batch * a + head * b + row * c;
        let each = scores.iter_mut().zip(keys.map(|key| at + key * step));
        if self.is_truth {
            let counts = io.get::<u8>(self.operand);
            each.filter(|(_, at)| counts[*at] == 0).for_each(|(score, _)| *score = f32::NEG_INFINITY);
        } else {
            let own = io.get::<f32>(self.operand);
            each.for_each(|(score, at)| *score += own[at]);
        }
    }
}

impl TiledAttention {
    /// The group whose keys a head sees.
    fn group(&self, head: usize) -> usize {
        head / self.sharing()
    }

    /// The tiles of keys that these queries see.
    fn key_tiles(&self, rows: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        tiles(0, if self.is_causal { self.keys.min(rows.end) } else { self.keys }, KEYS)
    }

    /// The tiles of queries that see a key from `first` on.
    fn row_tiles(&self, first: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let first = if self.is_causal { (first / ROWS * ROWS).min(self.rows) } else { 0 };
        tiles(first, self.rows, ROWS)
    }

    /// Number of scores of the largest tile.
    fn tile(&self) -> usize {
        self.rows.min(ROWS) * self.keys.min(KEYS)
    }

    /// Workspace of the largest product, in elements.
    fn products(&self) -> usize {
        let (m, n) = (self.rows.min(ROWS), self.keys.min(KEYS));
        let (w, v) = (self.width, self.value_width);
        let all = [(m, n, w), (m, n, v), (m, v, n), (m, w, n), (n, w, m), (n, v, m)];
        all.map(|(m, n, k)| Extents { m, n, k }.serial()).into_iter().max().unwrap_or(0)
    }

    /// Number of items of a piece, if the work is cut into pieces, each of which has a part of the workspace.
    fn each(&self, items: usize) -> usize {
        let all = [self.batch, self.heads, self.rows, self.keys, self.width + self.value_width];
        let work = all.into_iter().fold(1, usize::saturating_mul);
        if work < SMALL { items.max(1) } else { items.div_ceil(PIECES).max(1) }
    }

    /// Writes the scores of a tile, with the mask added; those that do not count are -∞.
    fn scores(
        &self,
        io: &Io<'_>,
        q: usize,
        of: &Rows,
        keys: &Range<usize>,
        out: &mut [f32],
        room: &mut [f32],
    ) {
        let (n, w) = (keys.len(), self.width);
        let query = part(io.get(q), of.head * self.rows + of.rows.start, w);
        let key = part(io.get(q + 1), self.group(of.head) * self.keys + keys.start, w);
        let x = Extents { m: of.rows.len(), n, k: w };
        let into = Into { row: n, alpha: self.scale, add: false };
        gemm::serial(x, &by_rows(query, w), &by_rows(key, w), out, into, room);
        for (row, scores) in of.rows.clone().zip(out.chunks_mut(n)) {
            if let Some(mask) = &self.mask {
                mask.add(io, [of.head / self.heads, of.head % self.heads, row], keys.clone(), scores);
            }
            if self.is_causal && row + 1 < keys.end {
                scores[(row + 1).saturating_sub(keys.start)..].fill(f32::NEG_INFINITY);
            }
        }
    }

    /// Computes the results of some queries, `[y, maxima, sums]`.
    fn forward_rows(&self, io: &Io<'_>, of: &Rows, [y, maxima, sums]: [&mut [f32]; 3], room: &mut [f32]) {
        let (scores, room) = room.split_at_mut(self.tile());
        let (mut most, mut totals) = ([f32::NEG_INFINITY; ROWS], [0.0f64; ROWS]);
        y.fill(0.0);
        for keys in self.key_tiles(&of.rows) {
            let n = keys.len();
            self.scores(io, 0, of, &keys, scores, room);
            let rows = scores.chunks_mut(n).take(of.rows.len()).zip(most.iter_mut().zip(&mut totals));
            for (r, (scores, (most, total))) in rows.enumerate() {
                let before = *most;
                *most = before.larger(largest(scores));
                let shift = shift(*most);
                scores.iter_mut().for_each(|s| *s = exp(*s - shift));
                let factor = exp(before - shift);
                *total = *total * f64::from(factor) + sum(n, |i| scores[i]);
                if factor != 1.0 {
                    row_of(y, r, self.value_width).iter_mut().for_each(|y| *y *= factor);
                }
            }
            if y.is_empty() {
                continue;
            }
            let value = part(io.get(2), self.group(of.head) * self.keys + keys.start, self.value_width);
            let x = Extents { m: of.rows.len(), n: self.value_width, k: n };
            let into = Into { row: self.value_width, alpha: 1.0, add: true };
            gemm::serial(x, &by_rows(scores, n), &by_columns(value, self.value_width), y, into, room);
        }
        for (r, &total) in totals.iter().take(of.rows.len()).enumerate() {
            let by = inverse(total);
            row_of(y, r, self.value_width).iter_mut().for_each(|y| *y *= by);
        }
        maxima.iter_mut().zip(most).for_each(|(out, most)| *out = most);
        sums.iter_mut().zip(totals).for_each(|(out, total)| *out = total as f32);
    }

    /// Writes the weights of a tile, and the gradient of its scores without the factor of the products.
    fn gradients(
        &self,
        io: &Io<'_>,
        of: &Rows,
        keys: &Range<usize>,
        [weights, out]: [&mut [f32]; 2],
        room: &mut [f32],
    ) {
        let (n, v) = (keys.len(), self.value_width);
        self.scores(io, 1, of, keys, weights, room);
        let first = of.head * self.rows + of.rows.start;
        let (dy, y) = (part(io.get(0), first, v), part(io.get(4), first, v));
        let value = part(io.get(3), self.group(of.head) * self.keys + keys.start, v);
        let x = Extents { m: of.rows.len(), n, k: v };
        gemm::serial(x, &by_rows(dy, v), &by_rows(value, v), out, Into::dense(n), room);
        let (maxima, sums) = (&io.get::<f32>(5)[first..], &io.get::<f32>(6)[first..]);
        for (r, (weights, out)) in weights.chunks_mut(n).zip(out.chunks_mut(n)).take(x.m).enumerate() {
            let (dy, y) = (&dy[r * v..][..v], &y[r * v..][..v]);
            let mean = sum(v, |i| dy[i] * y[i]) as f32;
            let (shift, by) = (shift(maxima[r]), inverse(f64::from(sums[r])));
            weights.iter_mut().for_each(|w| *w = exp(*w - shift) * by);
            out.iter_mut().zip(weights).for_each(|(out, w)| *out = *w * (*out - mean));
        }
    }

    /// Adds a tile's contribution to the gradient of its queries.
    fn add_queries(
        &self,
        io: &Io<'_>,
        of: &Rows,
        keys: &Range<usize>,
        scores: &[f32],
        dq: &mut [f32],
        room: &mut [f32],
    ) {
        let (n, w) = (keys.len(), self.width);
        let key = part(io.get(2), self.group(of.head) * self.keys + keys.start, w);
        let x = Extents { m: of.rows.len(), n: w, k: n };
        let into = Into { row: w, alpha: self.scale, add: true };
        gemm::serial(x, &by_rows(scores, n), &by_columns(key, w), dq, into, room);
    }

    /// Adds a tile's contribution to the gradients of its keys and values.
    fn add_keys(
        &self,
        io: &Io<'_>,
        of: &Rows,
        n: usize,
        [weights, scores]: [&[f32]; 2],
        [dk, dv]: [&mut [f32]; 2],
        room: &mut [f32],
    ) {
        let first = of.head * self.rows + of.rows.start;
        let add =
            |from: &[f32], operand: usize, width: usize, alpha: f32, out: &mut [f32], room: &mut [f32]| {
                if !out.is_empty() {
                    let right = part(io.get(operand), first, width);
                    let x = Extents { m: n, n: width, k: of.rows.len() };
                    let into = Into { row: width, alpha, add: true };
                    gemm::serial(x, &by_columns(from, n), &by_columns(right, width), out, into, room);
                }
            };
        add(scores, 1, self.width, self.scale, dk, room);
        add(weights, 0, self.value_width, 1.0, dv, room);
    }

    /// Computes all gradients of a group, `[dq, dk, dv]`, in one pass over its tiles.
    fn gradient_of_group(&self, io: &Io<'_>, group: usize, [dq, dk, dv]: [&mut [f32]; 3], room: &mut [f32]) {
        let (w, v) = (self.width, self.value_width);
        let (weights, rest) = room.split_at_mut(self.tile());
        let (scores, room) = rest.split_at_mut(self.tile());
        [&mut *dq, &mut *dk, &mut *dv].into_iter().for_each(|out| out.fill(0.0));
        for keys in tiles(0, self.keys, KEYS) {
            for (i, rows) in self.heads_and_rows(keys.start) {
                let of = Rows { head: group * self.sharing() + i, rows };
                self.gradients(io, &of, &keys, [weights, scores], room);
                if !dq.is_empty() {
                    let dq = &mut dq[(i * self.rows + of.rows.start) * w..];
                    self.add_queries(io, &of, &keys, scores, dq, room);
                }
                let [dk, dv] = [(&mut *dk, w), (&mut *dv, v)].map(|(out, width)| {
                    out.get_mut(keys.start * width..keys.end * width).unwrap_or_default()
                });
                self.add_keys(io, &of, keys.len(), [weights, scores], [dk, dv], room);
            }
        }
    }

    /// The tiles of queries that see keys from `first` on, by head of a group.
    fn heads_and_rows(&self, first: usize) -> impl Iterator<Item = (usize, Range<usize>)> + use<'_> {
        (0..self.sharing()).flat_map(move |i| self.row_tiles(first).map(move |rows| (i, rows)))
    }

    /// Computes the gradient of some queries.
    fn gradient_of_rows(&self, io: &Io<'_>, of: &Rows, dq: &mut [f32], room: &mut [f32]) {
        let (weights, rest) = room.split_at_mut(self.tile());
        let (scores, room) = rest.split_at_mut(self.tile());
        dq.fill(0.0);
        for keys in self.key_tiles(&of.rows) {
            self.gradients(io, of, &keys, [weights, scores], room);
            self.add_queries(io, of, &keys, scores, dq, room);
        }
    }

    /// Computes the gradients of some keys and their values.
    fn gradient_of_keys(&self, io: &Io<'_>, of: &Keys, [dk, dv]: [&mut [f32]; 2], room: &mut [f32]) {
        let (weights, rest) = room.split_at_mut(self.tile());
        let (scores, room) = rest.split_at_mut(self.tile());
        [&mut *dk, &mut *dv].into_iter().for_each(|out| out.fill(0.0));
        for (i, rows) in self.heads_and_rows(of.keys.start) {
            let rows = Rows { head: of.group * self.sharing() + i, rows };
            self.gradients(io, &rows, &of.keys, [weights, scores], room);
            self.add_keys(io, &rows, of.keys.len(), [weights, scores], [&mut *dk, &mut *dv], room);
        }
    }
}

/// Consecutive ranges of `size`, of which the last may be shorter.
fn tiles(first: usize, end: usize, size: usize) -> impl Iterator<Item = Range<usize>> + use<> {
    (first..end).step_by(size).map(move |start| start..(start + size).min(end))
}

/// The number that is subtracted from scores before they are exponents: the largest one, if any score counts.
fn shift(most: f32) -> f32 {
    if most == f32::NEG_INFINITY { 0.0 } else { most }
}

/// One over a sum; 0 if no score counts.
fn inverse(total: f64) -> f32 {
    if total == 0.0 { 0.0 } else { (1.0 / total) as f32 }
}

/// A row; empty if there are none.
fn row_of(y: &mut [f32], row: usize, width: usize) -> &mut [f32] {
    y.get_mut(row * width..(row + 1) * width).unwrap_or_default()
}

/// The outputs of a piece of work; an unused one is empty.
type Outputs<'a> = [&'a mut [f32]; 3];

/// Work that is cut into items, which are computed apart from one another.
struct Items<'a> {
    /// Number of items that run one after the other.
    each: usize,
    /// Workspace of those, in elements.
    room: usize,
    /// By item, and for the one behind the last, where its part of each output begins.
    place: &'a (dyn Fn(usize) -> [usize; 3] + Sync),
    /// Computes an item.
    run: &'a (dyn Fn(usize, Outputs<'_>, &mut [f32]) + Sync),
}

impl Items<'_> {
    /// Computes the items on all threads.
    fn compute(&self, items: Range<usize>, mut out: Outputs<'_>, rooms: &mut [f32]) {
        if items.len() <= self.each {
            for item in items {
                let [own, rest] = self.split(out, item, item + 1);
                out = rest;
                (self.run)(item, own, rooms);
            }
            return;
        }
        let pieces = items.len().div_ceil(self.each) / 2;
        let middle = items.start + pieces * self.each;
        let [left, right] = self.split(out, items.start, middle);
        let (rooms, others) = rooms.split_at_mut(pieces * self.room);
        rayon::join(
            || self.compute(items.start..middle, left, rooms),
            || self.compute(middle..items.end, right, others),
        );
    }

    /// The outputs of items from `start` to `end`, and those of the rest.
    fn split<'b>(&self, out: Outputs<'b>, start: usize, end: usize) -> [Outputs<'b>; 2] {
        let (start, end) = ((self.place)(start), (self.place)(end));
        let mut rest: Outputs<'b> = [&mut [], &mut [], &mut []];
        let mut left = out;
        for (i, (left, rest)) in left.iter_mut().zip(&mut rest).enumerate() {
            let all = take(left);
            let at = if all.is_empty() { 0 } else { end[i] - start[i] };
            (*left, *rest) = all.split_at_mut(at);
        }
        [left, rest]
    }
}

/// Tiles of the rows of many heads, as items.
#[derive(Clone, Copy)]
struct Cut {
    /// Number of heads.
    heads: usize,
    /// Rows of a head.
    rows: usize,
    /// Rows of a tile.
    size: usize,
}

impl Cut {
    fn tiles(self) -> usize {
        self.rows.div_ceil(self.size)
    }

    fn items(self) -> usize {
        self.heads * self.tiles()
    }

    /// The head and the rows of an item.
    fn item(self, item: usize) -> (usize, Range<usize>) {
        let start = item % self.tiles() * self.size;
        (item / self.tiles(), start..(start + self.size).min(self.rows))
    }

    /// Where an item begins, counted in rows of all heads.
    fn start(self, item: usize) -> usize {
        let tiles = self.tiles().max(1);
        item / tiles * self.rows + item % tiles * self.size
    }
}

/// `ai.lmsc.Attention(Q, K, V, mask → Y, maxima, sums)`.
pub(crate) fn forward(spec: &Spec<'_>) -> Made {
    let a = TiledAttention::forward(spec)?;
    let cut = Cut { heads: a.batch * a.heads, rows: a.rows, size: ROWS };
    let (each, room) = (a.each(cut.items()), a.tile() + a.products());
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let (out, workspace) = ([0, 1, 2].map(|i| io.take::<f32>(i)), io.workspace::<f32>());
        let run = |item: usize, out: Outputs<'_>, room: &mut [f32]| {
            let (head, rows) = cut.item(item);
            a.forward_rows(&io, &Rows { head, rows }, out, room);
        };
        let place = |item: usize| {
            let row = cut.start(item);
            [row * a.value_width, row, row]
        };
        Items { each, room, place: &place, run: &run }.compute(0..cut.items(), out, workspace);
    });
    Ok(kernel.with_workspace::<f32>(room.saturating_mul(cut.items().div_ceil(each))))
}

/// `ai.lmsc.AttentionGrad(dY, Q, K, V, Y, maxima, sums, mask → dQ, dK, dV)`.
///
/// Where there are enough groups, each is computed in one pass with five products a tile. Otherwise, queries and keys are
/// computed apart, with seven. The bits are the same.
pub(crate) fn gradient(spec: &Spec<'_>) -> Made {
    let a = TiledAttention::gradient(spec)?;
    let groups = a.batch * a.groups;
    let room = 2 * a.tile() + a.products();
    let by_group = groups >= PIECES || a.each(groups) >= groups;
    let all = Cut { heads: groups, rows: 1, size: 1 };
    let queries = Cut { heads: a.batch * a.heads, rows: a.rows, size: ROWS };
    let keys = Cut { heads: groups, rows: a.keys, size: KEYS };
    let passes = if by_group { vec![all] } else { vec![queries, keys] };
    let pieces = passes.iter().map(|cut| cut.items().div_ceil(a.each(cut.items()))).max().unwrap_or(0);
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let ([dq, dk, dv], workspace) = ([0, 1, 2].map(|i| io.take::<f32>(i)), io.workspace::<f32>());
        let (w, v) = (a.width, a.value_width);
        if by_group {
            let place =
                |group: usize| [group * a.sharing() * a.rows * w, group * a.keys * w, group * a.keys * v];
            let run =
                |group: usize, out: Outputs<'_>, room: &mut [f32]| a.gradient_of_group(&io, group, out, room);
            let items = Items { each: a.each(groups), room, place: &place, run: &run };
            return items.compute(0..groups, [dq, dk, dv], workspace);
        }
        if !dq.is_empty() {
            let place = |item: usize| [queries.start(item) * w, 0, 0];
            let run = |item: usize, [dq, _, _]: Outputs<'_>, room: &mut [f32]| {
                let (head, rows) = queries.item(item);
                a.gradient_of_rows(&io, &Rows { head, rows }, dq, room);
            };
            let items = Items { each: a.each(queries.items()), room, place: &place, run: &run };
            items.compute(0..queries.items(), [dq, &mut [], &mut []], workspace);
        }
        if !(dk.is_empty() && dv.is_empty()) {
            let place = |item: usize| [keys.start(item) * w, keys.start(item) * v, 0];
            let run = |item: usize, [dk, dv, _]: Outputs<'_>, room: &mut [f32]| {
                let (group, keys) = keys.item(item);
                a.gradient_of_keys(&io, &Keys { group, keys }, [dk, dv], room);
            };
            let items = Items { each: a.each(keys.items()), room, place: &place, run: &run };
            items.compute(0..keys.items(), [dk, dv, &mut []], workspace);
        }
    });
    Ok(kernel.with_workspace::<f32>(room.saturating_mul(pieces)))
}
