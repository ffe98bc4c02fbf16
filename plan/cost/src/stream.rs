//! Operators limited by their memory traffic: elementwise work, movement, normalizations, optimizers.
//!
//! Bytes are counted as in a good kernel: each operand once, each result once, except where noted. The counts of operations
//! are rough; they only matter if they exceed ten per byte.

use super::kernel::Kernel;
use super::rules::{Cost, Cx, axis, count, elements};

/// Operations of a function such as `exp`, `tanh` or `erf`, and of drawing a random number (assumed).
pub(super) const FUNCTION: u64 = 10;

/// The longest row, in bytes, that a block of threads keeps on the chip between two passes over it (assumed: a
/// third of the 96 KiB of shared memory of a V100's multiprocessor).
const ROW_ON_CHIP: u64 = 32 << 10;

/// Nothing runs on the device.
pub(super) fn free(_: &Cx<'_>) -> Option<Cost> {
    Some(Cost::default())
}

/// Everything is moved once, with `flops` operations for each element of the largest tensor.
pub(super) fn once(cx: &Cx<'_>, flops: u64) -> Option<Cost> {
    Some(Kernel::stream(cx.largest().saturating_mul(flops), cx.moved()).into())
}

/// Everything is moved once.
pub(super) fn moved(cx: &Cx<'_>) -> Option<Cost> {
    once(cx, 0)
}

/// The same, with an operation for each element: sums, products, comparisons.
pub(super) fn arithmetic(cx: &Cx<'_>) -> Option<Cost> {
    once(cx, 1)
}

/// The same, with a [`FUNCTION`] of each element.
pub(super) fn function(cx: &Cx<'_>) -> Option<Cost> {
    once(cx, FUNCTION)
}

/// The written bytes are read from operand 0, the rest of which is not touched: `Slice`.
pub(super) fn part(cx: &Cx<'_>) -> Option<Cost> {
    Some(Kernel::stream(0, cx.written(0).saturating_mul(2)).into())
}

/// The same with indexed accesses: `Gather(data, indices)`.
pub(super) fn gather(cx: &Cx<'_>) -> Option<Cost> {
    Some(Kernel::scattered(cx.written(0).saturating_mul(2).saturating_add(cx.read(1))).into())
}

/// Result 0 is filled with zeros; then operand `updates` is added at the positions in operand `indices`.
pub(super) fn into_zeros(cx: &Cx<'_>, updates: usize, indices: usize) -> Option<Cost> {
    Some(vec![Kernel::stream(0, cx.written(0)), add_scattered(cx, updates, indices)].into())
}

/// `Scatter…(data, indices, updates)`: a copy of the data, and the updates in it.
pub(super) fn scatter(cx: &Cx<'_>) -> Option<Cost> {
    let copy = Kernel::stream(0, cx.read(0).saturating_add(cx.written(0)));
    Some(vec![copy, add_scattered(cx, 2, 1)].into())
}

/// Each update is read; its sum is read and written.
fn add_scattered(cx: &Cx<'_>, updates: usize, indices: usize) -> Kernel {
    Kernel::scattered(cx.read(updates).saturating_mul(3).saturating_add(cx.read(indices)))
}

/// `MaxPool`, `AveragePool`, …: an operation for each element of each window.
pub(super) fn pool(cx: &Cx<'_>) -> Option<Cost> {
    let windows = elements(cx.result(0)?);
    Some(Kernel::stream(windows.saturating_mul(cx.volume("kernel_shape")), cx.moved()).into())
}

/// `AveragePoolGrad(dY)`: an operation for each element of each window.
pub(super) fn average_pool_gradient(cx: &Cx<'_>) -> Option<Cost> {
    let windows = elements(cx.operand(0)?);
    Some(Kernel::stream(windows.saturating_mul(cx.volume("kernel_shape")), cx.moved()).into())
}

/// Kernels that need a sum over a whole row of operands `large` before they can write the row, such as `Softmax` (Milakov,
/// Gimelshein, *Online normalizer calculation for softmax*, arXiv:1805.02867: one pass to normalise, one to write). A row
/// that is too long for the chip is read in both.
fn by_rows(cx: &Cx<'_>, large: &[usize], row: u64, flops: u64) -> Kernel {
    let large_bytes = large.iter().map(|&i| cx.read(i)).fold(0, u64::saturating_add);
    let rows = cx.operand(large[0]).map_or(0, elements) / row.max(1);
    let again = if large_bytes / rows.max(1) > ROW_ON_CHIP { large_bytes } else { 0 };
    Kernel::stream(cx.largest().saturating_mul(flops), cx.moved().saturating_add(again))
}

/// Rows along `axis`: `Softmax`, and with two large operands its gradient.
pub(super) fn along_axis(cx: &Cx<'_>, large: &[usize], flops: u64) -> Option<Cost> {
    let dims = &cx.tensor(large[0])?.dims;
    let row = axis(dims, cx.int("axis")?).map_or(1, |axis| dims[axis]);
    Some(by_rows(cx, large, row, flops).into())
}

/// Rows from `axis` to the last: `LayerNormalization`.
pub(super) fn layer(cx: &Cx<'_>) -> Option<Cost> {
    Some(by_rows(cx, &[0], layer_row(cx, 0)?, 8).into())
}

/// `LayerNormalizationGrad(dY, X, scale, mean, inv_std)`: rows for dX; the gradients of scale and bias are sums over
/// columns, in a kernel of their own.
pub(super) fn layer_gradient(cx: &Cx<'_>) -> Option<Cost> {
    let rows = by_rows(cx, &[0, 1], layer_row(cx, 1)?, 12);
    let columns = Kernel::stream(cx.largest().saturating_mul(4), cx.read(0).saturating_add(cx.read(1)));
    Some(vec![rows, columns].into())
}

fn layer_row(cx: &Cx<'_>, operand: usize) -> Option<u64> {
    let dims = &cx.tensor(operand)?.dims;
    // Forms without the attribute have rows along the last axis.
    let first = if cx.knows("axis") { cx.int("axis")? } else { -1 };
    Some(axis(dims, first).map_or(1, |axis| count(&dims[axis..])))
}

/// Planes of one channel of one image: `InstanceNormalization`, and larger ones `GroupNormalization`.
pub(super) fn instance(cx: &Cx<'_>) -> Option<Cost> {
    let dims = &cx.tensor(0)?.dims;
    let plane = count(dims.get(2..)?);
    let groups = if cx.knows("num_groups") { cx.int("num_groups")?.unsigned_abs() } else { 0 };
    let planes = dims[1].checked_div(groups).unwrap_or(1);
    Some(by_rows(cx, &[0], plane.saturating_mul(planes), 8).into())
}

/// Batch normalization in training: a channel's statistics need all of X, which is then read again. With given
/// statistics it is elementwise.
pub(super) fn batch(cx: &Cx<'_>, training: bool) -> Option<Cost> {
    if !training {
        return once(cx, 2);
    }
    let bytes = cx.moved().saturating_add(cx.read(0));
    Some(Kernel::stream(cx.largest().saturating_mul(7), bytes).into())
}

/// `BatchNormalizationGrad(dY, X, scale, …)`: two sums over each channel, then dX; dY and X are read in both.
pub(super) fn batch_gradient(cx: &Cx<'_>) -> Option<Cost> {
    let bytes = cx.moved().saturating_add(cx.read(0)).saturating_add(cx.read(1));
    Some(Kernel::stream(cx.largest().saturating_mul(9), bytes).into())
}

/// `SoftmaxCrossEntropyLoss(scores, labels)`: rows along the class axis, and a sum over their losses.
pub(super) fn cross_entropy(cx: &Cx<'_>, class_axis: i64) -> Option<Cost> {
    let dims = &cx.tensor(0)?.dims;
    let row = axis(dims, class_axis).map_or(1, |axis| dims[axis]);
    Some(by_rows(cx, &[0], row, 2 * FUNCTION).into())
}

/// `buffer += gradient`, in place.
pub(super) fn accumulate(cx: &Cx<'_>) -> Option<Cost> {
    let bytes = cx.read(0).saturating_mul(2).saturating_add(cx.read(1));
    Some(Kernel::stream(elements(cx.operand(0)?), bytes).into())
}

/// `(lr, step, w, g, m, v)`, tensors or sequences: w, m and v are read and written, g is read.
pub(super) fn adamw(cx: &Cx<'_>) -> Option<Cost> {
    let bytes = [2, 2, 3, 4, 4, 5, 5].iter().map(|&i| cx.read(i)).fold(0, u64::saturating_add);
    Some(Kernel::stream(elements(cx.operand(2)?).saturating_mul(14), bytes).into())
}

/// `(lr, w, g)`, tensors or sequences: w is read and written, g is read.
pub(super) fn sgd(cx: &Cx<'_>) -> Option<Cost> {
    let bytes = [1, 1, 2].iter().map(|&i| cx.read(i)).fold(0, u64::saturating_add);
    Some(Kernel::stream(elements(cx.operand(1)?).saturating_mul(2), bytes).into())
}
