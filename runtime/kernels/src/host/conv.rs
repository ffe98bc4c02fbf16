//! Convolutions, transposed convolutions and their gradients, as matrix products whose columns are read from the image when
//! panels are packed.

use std::ops::Range;

use rayon::prelude::*;

use super::{Made, least};
use crate::gemm::{self, Extents, Into, Matrix, PIECES, Packed, Side, transpose};
use crate::kernel::{Io, Kernel};
use crate::meaning::{SlidingWindow, Spatial, count};
use crate::spec::{Spec, SpecError, refuse};

/// Maximum number of lanes of a panel, and of products of a sum that are packed at a time.
const LANES: usize = gemm::NR;
const SUM: usize = 256;

/// A convolution between an image and the positions of its window. The forward convolution computes positions; a transposed one
/// computes the image.
#[derive(Clone, Copy, Debug)]
pub struct Conv {
    /// Number of images.
    pub batch: usize,
    /// Number of groups of channels, each with weights of its own.
    pub groups: usize,
    /// Channels of the image, of one group.
    pub inner: usize,
    /// Channels of the positions, of one group.
    pub outer: usize,
    /// The window that slides over the image.
    pub window: SlidingWindow,
}

impl Conv {
    /// From extents of image, weights and positions.
    pub fn new(
        spec: &Spec<'_>,
        image: &[usize],
        weights: &[usize],
        positions: &[usize],
    ) -> Result<Conv, SpecError> {
        let (
            &[batch, inner, ref image_dims @ ..],
            &[outer, of_group, ref kernel @ ..],
            &[n, channels, ref places @ ..],
        ) = (image, weights, positions)
        else {
            return refuse("an operand has fewer than two dimensions");
        };
        let Ok(groups @ 1..) = usize::try_from(spec.int("group")?) else {
            return refuse("attribute `group` is not positive");
        };
        let fits = inner == of_group * groups && outer == channels && n == batch && outer % groups == 0;
        if !fits {
            return refuse(format!(
                "image {image:?}, weights {weights:?} and positions {positions:?} do not fit one another in {groups} groups"
            ));
        }
        let window = SlidingWindow::new(spec, image_dims, places, kernel)?;
        Ok(Conv { batch, groups, inner: of_group, outer: outer / groups, window })
    }

    /// Number of weights for one channel of the positions.
    fn taps(&self) -> usize {
        self.inner * self.window.kernel_len()
    }

    /// Elements of the weights of one group.
    fn weights(&self) -> usize {
        self.outer * self.taps()
    }

    /// Elements of a sample of the image, and of the positions.
    fn sample(&self) -> (usize, usize) {
        let image = self.groups * self.inner * self.window.image_len();
        (image, self.groups * self.outer * self.window.positions_len())
    }

    /// positions = weights ∗ image, of one group.
    fn forward_extents(&self) -> Extents {
        Extents { m: self.outer, n: self.window.positions_len(), k: self.taps() }
    }

    /// Whether samples have so few positions that all samples are computed as one product.
    fn is_merged(&self) -> bool {
        self.groups == 1 && self.batch > 1 && self.window.positions_len() < LANES
    }

    fn merged_extents(&self) -> Extents {
        Extents { m: self.batch * self.window.positions_len(), n: self.outer, k: self.taps() }
    }

    fn forward_workspace(&self) -> usize {
        let x = self.merged_extents();
        if self.is_merged() {
            x.m * x.n + x.parallel()
        } else {
            self.products_workspace(self.forward_extents())
        }
    }

    /// positions = weights ∗ image + bias.
    fn forward(&self, image: &[f32], weights: &[f32], bias: &[f32], out: &mut [f32], workspace: &mut [f32]) {
        let (sample, _) = self.sample();
        let size = self.inner * self.window.image_len();
        let (places, taps) = (self.window.positions_len(), self.taps());
        if self.is_merged() {
            return self.merged(image, weights, bias, out, workspace);
        }
        let left = |g: usize| Matrix { data: &weights[g * self.weights()..], lane: taps, k: 1 };
        let image = |n: usize, g: usize| &image[n * sample + g * size..][..size];
        let x = self.forward_extents();
        if self.window.is_pointwise() {
            let right = |n, g| Matrix { data: image(n, g), lane: 1, k: places };
            self.products(x, left, right, bias, out, workspace);
        } else {
            let right = |n, g| Columns { data: image(n, g), sample: size, window: self.window };
            self.products(x, left, right, bias, out, workspace);
        }
    }

    /// The forward pass as one product over all samples, transposed: its rows are samples and positions.
    fn merged(&self, image: &[f32], weights: &[f32], bias: &[f32], out: &mut [f32], workspace: &mut [f32]) {
        let x = self.merged_extents();
        let (places, taps) = (self.window.positions_len(), self.taps());
        let (sample, _) = self.sample();
        let (rows, rest) = workspace.split_at_mut(x.m * x.n);
        let right = Matrix { data: weights, lane: taps, k: 1 };
        let whole = self.window.image == self.window.kernel && places == 1 && self.window.dilation == [1; 3];
        if whole && self.window.before == [0; 3] {
            let left = Matrix { data: image, lane: sample, k: 1 };
            gemm::parallel(x, &left, &right, rows, Into::dense(x.n), rest);
        } else {
            let left = Columns { data: image, sample, window: self.window };
            gemm::parallel(x, &left, &right, rows, Into::dense(x.n), rest);
        }
        for (out, rows) in out.chunks_mut((x.n * places).max(1)).zip(rows.chunks((x.n * places).max(1))) {
            for (c, out) in out.chunks_mut(places.max(1)).enumerate() {
                let shift = bias.get(c).copied().unwrap_or(0.0);
                out.iter_mut().enumerate().for_each(|(p, out)| *out = rows[p * x.n + c] + shift);
            }
        }
    }

    fn products_workspace(&self, x: Extents) -> usize {
        let each = if self.batch == 1 { x.parallel() } else { self.batch.min(PIECES) * x.serial() };
        self.groups * Packed::len(x.m, x.k) + each
    }

    /// Computes, for each sample and group, the product of the group's left operand and a right one.
    fn products<L: Side, R: Side>(
        &self,
        x: Extents,
        left: impl Fn(usize) -> L,
        right: impl Fn(usize, usize) -> R + Sync,
        bias: &[f32],
        out: &mut [f32],
        workspace: &mut [f32],
    ) {
        let size = x.m * x.n;
        if size == 0 || self.batch == 0 {
            return;
        }
        let panels = Packed::len(x.m, x.k);
        let (packed, rest) = workspace.split_at_mut(self.groups * panels);
        for g in (0..self.groups).filter(|_| x.k > 0) {
            Packed::fill(&left(g), x.m, x.k, &mut packed[g * panels..][..panels]);
        }
        let packed = &*packed;
        let into = Into { add: !bias.is_empty(), ..Into::dense(x.n) };
        let one = |n: usize, out: &mut [f32], room: &mut [f32]| {
            for (g, out) in out.chunks_mut(size).enumerate() {
                if !bias.is_empty() {
                    let bias = &bias[g * x.m..][..x.m];
                    out.chunks_mut(x.n).zip(bias).for_each(|(row, &bias)| row.fill(bias));
                }
                let left = Packed::of(&packed[g * panels..][..panels], x.m);
                match self.batch {
                    1 => gemm::parallel(x, &left, &right(n, g), out, into, room),
                    _ => gemm::serial(x, &left, &right(n, g), out, into, room),
                }
            }
        };
        if self.batch == 1 {
            return one(0, out, rest);
        }
        if x.serial() == 0 {
            out.chunks_mut(self.groups * size).enumerate().for_each(|(n, out)| one(n, out, &mut []));
            return;
        }
        let samples = self.batch.div_ceil(PIECES);
        let pieces = out.par_chunks_mut(samples * self.groups * size).zip(rest.par_chunks_mut(x.serial()));
        pieces.enumerate().with_min_len(x.alone(samples * self.groups)).for_each(|(piece, (out, room))| {
            for (i, out) in out.chunks_mut(self.groups * size).enumerate() {
                one(piece * samples + i, out, room);
            }
        });
    }

    /// The window by which the gradient of the image is a convolution of the positions: with a stride of 1.
    fn turned(&self) -> Option<SlidingWindow> {
        self.window.turned().filter(|_| !self.window.is_pointwise())
    }

    fn image_extents(&self) -> Extents {
        match self.turned() {
            Some(window) => {
                let k = self.outer * self.window.kernel_len();
                Extents { m: self.inner, n: window.positions_len(), k }
            }
            None => Extents { m: self.taps(), n: self.window.positions_len(), k: self.outer },
        }
    }

    /// Number of samples whose columns are materialized at a time.
    fn scattering(&self) -> usize {
        self.batch.clamp(1, 4)
    }

    fn image_workspace(&self) -> usize {
        let x = self.image_extents();
        if self.window.is_pointwise() || self.turned().is_some() {
            return self.products_workspace(x);
        }
        self.groups * Packed::len(x.m, x.k) + self.scattering() * (x.m * x.n + x.serial())
    }

    /// image = weights ∗ᵀ positions + bias: the gradient of a convolution, or a transposed one.
    fn image(
        &self,
        positions: &[f32],
        weights: &[f32],
        bias: &[f32],
        out: &mut [f32],
        workspace: &mut [f32],
    ) {
        let x = self.image_extents();
        let (size, sample) = self.sample();
        let places = self.window.positions_len();
        let part = self.outer * places;
        let positions = |n: usize, g: usize| &positions[n * sample + g * part..][..part];
        let taps = self.taps();
        let weights = |g: usize| &weights[g * self.weights()..][..self.weights()];
        let left = |g: usize| Matrix { data: weights(g), lane: 1, k: taps };
        if self.window.is_pointwise() {
            let right = |n, g| Matrix { data: positions(n, g), lane: 1, k: places };
            return self.products(x, left, right, bias, out, workspace);
        }
        if let Some(window) = self.turned() {
            let left = |g| Turned { data: weights(g), inner: self.inner, taps: self.window.kernel_len() };
            let right = |n, g| Columns { data: positions(n, g), sample: part, window };
            return self.products(x, left, right, bias, out, workspace);
        }
        let panels = Packed::len(x.m, x.k);
        let (packed, rest) = workspace.split_at_mut(self.groups * panels);
        for g in (0..self.groups).filter(|_| x.k > 0) {
            Packed::fill(&left(g), x.m, x.k, &mut packed[g * panels..][..panels]);
        }
        let packed = &*packed;
        if size == 0 || self.batch == 0 {
            return;
        }
        let samples = self.batch.div_ceil(self.scattering());
        let room = (x.m * x.n + x.serial()).max(1);
        let plane = self.window.image_len();
        // Without positions there is no workspace, but the biases must be written.
        if x.m * x.n == 0 {
            let channels = self.groups * self.inner;
            let planes = out.chunks_mut(plane).enumerate();
            return planes.for_each(|(i, out)| out.fill(bias.get(i % channels).copied().unwrap_or(0.0)));
        }
        let pieces = out.par_chunks_mut(samples * size).zip(rest.par_chunks_mut(room));
        pieces.enumerate().with_min_len(x.alone(samples * self.groups)).for_each(|(piece, (out, room))| {
            let (columns, room) = room.split_at_mut(x.m * x.n);
            for (i, out) in out.chunks_mut(size).enumerate() {
                for (g, out) in out.chunks_mut(size / self.groups).enumerate() {
                    let left = Packed::of(&packed[g * panels..][..panels], x.m);
                    let right = Matrix { data: positions(piece * samples + i, g), lane: 1, k: places };
                    gemm::serial(x, &left, &right, columns, Into::dense(x.n), room);
                    for (c, out) in out.chunks_mut(plane).enumerate() {
                        out.fill(bias.get(g * self.inner + c).copied().unwrap_or(0.0));
                        let taps = self.window.kernel_len() * places;
                        scatter(&self.window, &columns[c * taps..][..taps], out);
                    }
                }
            }
        });
    }

    /// The sum over samples and positions, for one group.
    fn weights_extents(&self) -> Extents {
        Extents { m: self.outer, n: self.taps(), k: self.batch * self.window.positions_len() }
    }

    fn weights_workspace(&self) -> usize {
        self.weights_extents().parallel()
    }

    /// The gradient of the weights.
    fn weights_grad(&self, positions: &[f32], image: &[f32], out: &mut [f32], workspace: &mut [f32]) {
        let x = self.weights_extents();
        let (image_size, size) = self.sample();
        for (g, out) in out.chunks_mut(self.weights().max(1)).enumerate() {
            let places = self.window.positions_len();
            let left = Pixels {
                data: positions.get(g * self.outer * places..).unwrap_or(&[]),
                sample: size,
                lane: places,
            };
            let image = image.get(g * self.inner * self.window.image_len()..).unwrap_or(&[]);
            if self.window.is_pointwise() {
                let right = Pixels { data: image, sample: image_size, lane: places };
                gemm::parallel(x, &left, &right, out, Into::dense(x.n), workspace);
            } else {
                let right = Taps { data: image, sample: image_size, window: self.window };
                gemm::parallel(x, &left, &right, out, Into::dense(x.n), workspace);
            }
        }
    }
}

/// Plane, row and column of an index, the outermost first.
fn place(index: usize, dims: Spatial) -> Spatial {
    [index / (dims[1] * dims[2]), index / dims[2] % dims[1], index % dims[2]]
}

/// The element under a tap of the window, along one dimension: none outside of the image.
fn meet(window: &SlidingWindow, d: usize, position: usize, tap: usize) -> Option<usize> {
    let at = (position * window.stride[d] + tap * window.dilation[d]) as isize - window.before[d];
    usize::try_from(at).ok().filter(|&at| at < window.image[d])
}

/// The range of those of `n` neighbouring positions from `first` on whose tap is inside the image along the innermost dimension,
/// and the element under the first of them.
fn meeting(window: &SlidingWindow, first: usize, n: usize, tap: usize) -> (Range<usize>, usize) {
    let stride = window.stride[2];
    let start = (first * stride + tap * window.dilation[2]) as isize - window.before[2];
    // Divisions take longer than the elements of a short row.
    let steps = |room: isize| match (usize::try_from(room).unwrap_or(0), stride) {
        (room, 1) => room,
        (room, 2) => room.div_ceil(2),
        (room, stride) => room.div_ceil(stride),
    };
    let low = steps(-start);
    let high = steps(window.image[2] as isize - start).min(n);
    if high <= low { (0..0, 0) } else { (low..high, (start + (low * stride) as isize) as usize) }
}

/// Copies a row. Rows of images are short, and a call to copy one takes longer than its elements: two pieces of fixed length that
/// overlap do not need it.
#[inline(always)]
fn copy_row(from: &[f32], to: &mut [f32]) {
    #[inline(always)]
    fn ends<const N: usize>(from: &[f32], to: &mut [f32]) {
        to[..N].copy_from_slice(&from[..N]);
        let last = to.len() - N;
        to[last..].copy_from_slice(&from[last..]);
    }
    let from = &from[..to.len()];
    match to.len() {
        0..4 => to.iter_mut().zip(from).for_each(|(to, from)| *to = *from),
        4..8 => ends::<4>(from, to),
        8..16 => ends::<8>(from, to),
        16..=32 => ends::<16>(from, to),
        _ => to.copy_from_slice(from),
    }
}

/// Copies every `stride`-th element, starting with the first.
#[inline(always)]
fn gather(from: &[f32], stride: usize, to: &mut [f32]) {
    if stride == 1 {
        return copy_row(from, to);
    }
    let Some((last, others)) = to.split_last_mut() else { return };
    match stride {
        2 => others.iter_mut().zip(from.as_chunks::<2>().0).for_each(|(to, from)| *to = from[0]),
        _ => others.iter_mut().zip(from.chunks_exact(stride)).for_each(|(to, from)| *to = from[0]),
    }
    *last = from[others.len() * stride];
}

/// Adds `columns`, by tap and position, to the elements of one plane that they were read from.
fn scatter(window: &SlidingWindow, columns: &[f32], plane: &mut [f32]) {
    let [_, height, width] = window.image;
    let [depths, rows, across] = window.positions;
    for (tap, column) in columns.chunks_exact(window.positions_len()).enumerate() {
        let tap = place(tap, window.kernel);
        for d in 0..depths {
            let Some(z) = meet(window, 0, d, tap[0]) else { continue };
            for r in 0..rows {
                let Some(y) = meet(window, 1, r, tap[1]) else { continue };
                let (which, first) = meeting(window, 0, across, tap[2]);
                let from = &column[(d * rows + r) * across..][which];
                let to = &mut plane[(z * height + y) * width..][..width];
                match window.stride[2] {
                    1 => to[first..].iter_mut().zip(from).for_each(|(t, f)| *t += f),
                    s => to[first.min(width)..].iter_mut().step_by(s).zip(from).for_each(|(t, f)| *t += f),
                }
            }
        }
    }
}

/// The columns of images: lanes are samples and positions, the sum runs over channels and taps.
struct Columns<'a> {
    data: &'a [f32],
    /// Elements of a sample.
    sample: usize,
    window: SlidingWindow,
}

/// For each tap along the innermost dimension, the result of [`meeting`] for the same positions; kernels are seldom wider.
struct Meetings<'a> {
    window: &'a SlidingWindow,
    first: usize,
    n: usize,
    known: [(usize, usize, usize); 8],
}

impl<'a> Meetings<'a> {
    fn new(window: &'a SlidingWindow, first: usize, n: usize) -> Self {
        let mut meetings = Meetings { window, first, n, known: Default::default() };
        for tap in 0..window.kernel[2].min(meetings.known.len()) {
            meetings.known[tap] = meetings.find(tap);
        }
        meetings
    }

    fn find(&self, tap: usize) -> (usize, usize, usize) {
        let (which, first) = meeting(self.window, self.first, self.n, tap);
        (which.start, which.end, first)
    }

    /// The first position inside the image, the end of those positions, and the element under the first one.
    fn of(&self, tap: usize) -> (usize, usize, usize) {
        self.known.get(tap).copied().unwrap_or_else(|| self.find(tap))
    }
}

impl Side for Columns<'_> {
    fn pack<const W: usize>(&self, lanes: Range<usize>, k: Range<usize>, out: &mut [f32]) {
        let w = &self.window;
        let (places, taps, plane) = (w.positions_len(), w.kernel_len(), w.image_len());
        if lanes.len() < W {
            out.fill(0.0);
        }
        // Neighbouring positions of one row at a time.
        let mut at = lanes.start;
        while at < lanes.end {
            let here = place(at % places, w.positions);
            let length = (w.positions[2] - here[2]).min(lanes.end - at);
            let meetings = Meetings::new(w, here[2], length);
            let lane = at - lanes.start;
            let sample = at / places * self.sample;
            let mut channel = k.start / taps;
            let [mut depth, mut row, mut tap] = place(k.start % taps, w.kernel);
            let mut panel = out.chunks_exact_mut(W).take(k.len());
            let mut rest = k.len();
            while rest > 0 {
                let (z, y) = (meet(w, 0, here[0], depth), meet(w, 1, here[1], row));
                let from =
                    z.zip(y).map(|(z, y)| sample + channel * plane + (z * w.image[1] + y) * w.image[2]);
                let columns = tap..w.kernel[2].min(tap + rest);
                rest -= columns.len();
                for (tap, out) in columns.zip(&mut panel) {
                    let out = &mut out[lane..][..length];
                    let Some(from) = from else {
                        out.fill(0.0);
                        continue;
                    };
                    let (low, high, first) = meetings.of(tap);
                    for out in &mut out[..low] {
                        *out = 0.0;
                    }
                    for out in &mut out[high..] {
                        *out = 0.0;
                    }
                    gather(self.data.get(from + first..).unwrap_or(&[]), w.stride[2], &mut out[low..high]);
                }
                (tap, row) = (0, row + 1);
                if row == w.kernel[1] {
                    (row, depth) = (0, depth + 1);
                }
                if depth == w.kernel[0] {
                    (depth, channel) = (0, channel + 1);
                }
            }
            at += length;
        }
    }
}

/// Reversed weights: lanes are channels of the image, the sum runs over channels of the positions and taps.
struct Turned<'a> {
    data: &'a [f32],
    inner: usize,
    taps: usize,
}

impl Side for Turned<'_> {
    fn pack<const W: usize>(&self, lanes: Range<usize>, k: Range<usize>, out: &mut [f32]) {
        let (mut outer, mut tap) = (k.start / self.taps, k.start % self.taps);
        for out in out.chunks_exact_mut(W).take(k.len()) {
            let from = &self.data[outer * self.inner * self.taps + self.taps - 1 - tap..];
            let (out, rest) = out.split_at_mut(lanes.len());
            out.iter_mut().zip(lanes.clone()).for_each(|(out, lane)| *out = from[lane * self.taps]);
            rest.fill(0.0);
            tap += 1;
            if tap == self.taps {
                (outer, tap) = (outer + 1, 0);
            }
        }
    }
}

/// Packs lanes, each written by `row` as a row first.
fn pack_rows<const W: usize>(
    lanes: Range<usize>,
    k: Range<usize>,
    out: &mut [f32],
    row: impl Fn(usize, &mut [f32]),
) {
    match k.len() {
        ..=32 => pack_rows_in::<W, 32>(lanes, k, out, row),
        _ => pack_rows_in::<W, SUM>(lanes, k, out, row),
    }
}

/// The same, with rows of `ROOM` elements.
fn pack_rows_in<const W: usize, const ROOM: usize>(
    lanes: Range<usize>,
    k: Range<usize>,
    out: &mut [f32],
    row: impl Fn(usize, &mut [f32]),
) {
    // Lanes are handled in groups, so that rows fit a first-level cache.
    const GROUP: usize = 8;
    let length = k.len();
    if lanes.len() < W {
        out.fill(0.0);
    }
    let mut rows = [[0.0f32; ROOM]; GROUP];
    for first in lanes.clone().step_by(GROUP) {
        let n = GROUP.min(lanes.end - first);
        rows.iter_mut().take(n).enumerate().for_each(|(i, room)| row(first + i, &mut room[..length]));
        transpose::<W>(n, length, &mut out[first - lanes.start..], |i| &rows[i][..length]);
    }
}

/// Planes of samples: lanes are channels, the sum runs over samples and their elements.
struct Pixels<'a> {
    data: &'a [f32],
    sample: usize,
    /// Elements of a plane.
    lane: usize,
}

impl Side for Pixels<'_> {
    fn pack<const W: usize>(&self, lanes: Range<usize>, k: Range<usize>, out: &mut [f32]) {
        let (n, at) = (k.start / self.lane, k.start % self.lane);
        if at + k.len() <= self.lane {
            let data = &self.data[n * self.sample + at..];
            return Matrix { data, lane: self.lane, k: 1 }.pack::<W>(lanes, 0..k.len(), out);
        }
        pack_rows::<W>(lanes, k.clone(), out, |lane, room| {
            let (mut n, mut at, mut rest) = (n, at, room);
            while !rest.is_empty() {
                let length = (self.lane - at).min(rest.len());
                let (now, later) = rest.split_at_mut(length);
                now.copy_from_slice(&self.data[n * self.sample + lane * self.lane + at..][..length]);
                (n, at, rest) = (n + 1, 0, later);
            }
        });
    }
}

/// The rows of the columns of images: lanes are channels and taps, the sum runs over samples and positions.
struct Taps<'a> {
    data: &'a [f32],
    sample: usize,
    window: SlidingWindow,
}

impl Side for Taps<'_> {
    fn pack<const W: usize>(&self, lanes: Range<usize>, k: Range<usize>, out: &mut [f32]) {
        let w = &self.window;
        let (places, taps, plane) = (w.positions_len(), w.kernel_len(), w.image_len());
        pack_rows::<W>(lanes, k.clone(), out, |lane, room| {
            let (channel, tap) = (lane / taps, place(lane % taps, w.kernel));
            let (mut sample, mut rest) = (k.start / places, room);
            let mut next = place(k.start % places, w.positions);
            let whole = meeting(w, 0, w.positions[2], tap[2]);
            while !rest.is_empty() {
                let (here, of) = (next, sample);
                let length = (w.positions[2] - here[2]).min(rest.len());
                let (now, later) = rest.split_at_mut(length);
                rest = later;
                next = [here[0], here[1] + 1, 0];
                if next[1] == w.positions[1] {
                    next = [here[0] + 1, 0, 0];
                }
                if next[0] == w.positions[0] {
                    (next, sample) = ([0; 3], sample + 1);
                }
                let (Some(z), Some(y)) = (meet(w, 0, here[0], tap[0]), meet(w, 1, here[1], tap[1])) else {
                    now.fill(0.0);
                    continue;
                };
                let is_whole = length == w.positions[2];
                let (which, first) =
                    if is_whole { whole.clone() } else { meeting(w, here[2], length, tap[2]) };
                let row = of * self.sample + channel * plane + (z * w.image[1] + y) * w.image[2] + first;
                now[..which.start].fill(0.0);
                now[which.end..].fill(0.0);
                gather(self.data.get(row..).unwrap_or(&[]), w.stride[2], &mut now[which]);
            }
        });
    }
}

/// The sum of each channel over samples and places: the gradient of a bias.
fn bias_grad(x: &[f32], channels: usize, places: usize, out: &mut [f32]) {
    let all = out.par_iter_mut().enumerate();
    all.with_min_len(least(x.len() / channels.max(1))).for_each(|(c, out)| {
        let planes = x.chunks_exact((channels * places).max(1)).map(|x| &x[c * places..][..places]);
        *out = planes.map(|x| super::softmax::sum(x.len(), |i| x[i])).sum::<f64>() as f32;
    });
}

/// `Conv(X, W, B → Y)`.
pub fn conv(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..3)?;
    let conv = Conv::new(spec, &spec.dims(0)?, &spec.dims(1)?, &spec.result_dims(0)?)?;
    spec.expect_count(2, conv.groups * conv.outer)?;
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        conv.forward(io.get(0), io.get(1), io.get(2), io.take(0), io.workspace());
    });
    Ok(kernel.with_workspace::<f32>(conv.forward_workspace()))
}

/// Refuses results whose types differ from those of X, W, and a bias of `channels` channels.
fn expect_gradients(spec: &Spec<'_>, channels: usize) -> Result<(), SpecError> {
    spec.expect_float_result(0, count(&spec.dims(1)?))?;
    spec.expect_float_result(1, count(&spec.dims(2)?))?;
    spec.expect_float_result(2, channels)
}

/// `ConvGrad(dY, X, W → dX, dW, dB)`, each if it is used.
pub(crate) fn conv_grad(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..3)?;
    let conv = Conv::new(spec, &spec.dims(1)?, &spec.dims(2)?, &spec.dims(0)?)?;
    expect_gradients(spec, conv.groups * conv.outer)?;
    let wants = [0, 1, 2].map(|i| spec.wants(i));
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let (dy, x, w) = (io.get(0), io.get(1), io.get(2));
        let workspace = io.workspace();
        if wants[0] {
            conv.image(dy, w, &[], io.take(0), workspace);
        }
        if wants[1] {
            conv.weights_grad(dy, x, io.take(1), workspace);
        }
        bias_grad(dy, conv.groups * conv.outer, conv.window.positions_len(), io.take(2));
    });
    let image = if wants[0] { conv.image_workspace() } else { 0 };
    let weights = if wants[1] { conv.weights_workspace() } else { 0 };
    Ok(kernel.with_workspace::<f32>(image.max(weights)))
}

/// `ConvTranspose(X, W, B → Y)`.
pub(crate) fn conv_transpose(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..3)?;
    let conv = Conv::new(spec, &spec.result_dims(0)?, &spec.dims(1)?, &spec.dims(0)?)?;
    spec.expect_count(2, conv.groups * conv.inner)?;
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        conv.image(io.get(0), io.get(1), io.get(2), io.take(0), io.workspace());
    });
    Ok(kernel.with_workspace::<f32>(conv.image_workspace()))
}

/// `ConvTransposeGrad(dY, X, W → dX, dW, dB)`: dX is a convolution of dY.
pub(crate) fn conv_transpose_grad(spec: &Spec<'_>) -> Made {
    spec.expect_floats(0..3)?;
    let conv = Conv::new(spec, &spec.dims(0)?, &spec.dims(2)?, &spec.dims(1)?)?;
    expect_gradients(spec, conv.groups * conv.inner)?;
    let wants = [0, 1, 2].map(|i| spec.wants(i));
    let kernel = Kernel::new(move |mut io: Io<'_>| {
        let (dy, x, w) = (io.get(0), io.get(1), io.get(2));
        let workspace = io.workspace();
        if wants[0] {
            conv.forward(dy, w, &[], io.take(0), workspace);
        }
        if wants[1] {
            conv.weights_grad(x, dy, io.take(1), workspace);
        }
        bias_grad(dy, conv.groups * conv.inner, conv.window.image_len(), io.take(2));
    });
    let forward = if wants[0] { conv.forward_workspace() } else { 0 };
    let weights = if wants[1] { conv.weights_workspace() } else { 0 };
    Ok(kernel.with_workspace::<f32>(forward.max(weights)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_every_length_are_copied() {
        let from: Vec<f32> = (0..100).map(|i| i as f32).collect();
        for stride in 1..4 {
            for n in 0..33 {
                let mut to = vec![-1.0; n + 1];
                gather(&from[3..], stride, &mut to[..n]);
                let expected: Vec<f32> = (0..n).map(|i| from[3 + i * stride]).chain([-1.0]).collect();
                assert_eq!(to, expected, "{n} elements, stride {stride}");
            }
        }
    }

    #[test]
    fn reversed_weights_are_packed_from_any_place_on() {
        let (outer, inner, taps) = (5, 11, 6);
        let data: Vec<f32> = (0..outer * inner * taps).map(|i| i as f32).collect();
        let side = Turned { data: &data, inner, taps };
        for (lanes, k) in [(0..8, 0..30), (8..11, 0..30), (0..8, 7..20), (3..11, 29..30)] {
            let mut out = vec![-1.0; 8 * k.len()];
            side.pack::<8>(lanes.clone(), k.clone(), &mut out);
            for (out, k) in out.chunks(8).zip(k) {
                let at = |lane: usize| data[(k / taps * inner + lane) * taps + taps - 1 - k % taps];
                let expected: Vec<f32> = (0..8).map(|i| lanes.clone().nth(i).map_or(0.0, at)).collect();
                assert_eq!(out, expected);
            }
        }
    }
}
