//! Matrix products and convolutions.

use lmsc_kernels::gemm::Extents;
use lmsc_kernels::host::conv::Conv;
use lmsc_kernels::meaning::{BatchedProduct, Gemm, Rows, Strided};
use lmsc_kernels::spec::{Spec, SpecError};

use super::movement::moves;
use super::{Made, image, sums};
use crate::engines::ChannelOrder;
use crate::recipe::{
    self, Address, AddressBase, Arg, Convolution, Factor, Filter, FloatType, Found, NOWHERE, Recipe, operand,
    result, spread_forward,
};

/// The side of a tile of a result, and the number of products that are added up at a time.
const TILE: usize = 64;
const DEEP: usize = 16;

/// With fewer tiles, sums are cut into parts, so that there is work for more blocks; no part has fewer products than this.
const ENOUGH_TILES: usize = 128;
const SHORTEST: usize = 512;
const MOST_PARTS: usize = 64;

/// Number of parts into which a sum is cut, and their length. The same on every device.
fn parts(tiles: usize, k: usize) -> (usize, usize) {
    let wanted = (2 * ENOUGH_TILES).div_ceil(tiles.max(1)).min(k / SHORTEST).min(MOST_PARTS);
    if tiles >= ENOUGH_TILES || wanted < 2 {
        return (1, k);
    }
    let length = k.div_ceil(wanted).next_multiple_of(DEEP);
    (k.div_ceil(length), length)
}

fn tiles(m: usize, n: usize) -> usize {
    m.div_ceil(TILE) * n.div_ceil(TILE)
}

/// A matrix: its address, and the distances of its rows and of its columns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix {
    pub(super) at: Address,
    pub(super) row: usize,
    pub(super) column: usize,
}

/// Destination of products: distances of rows and of products, and whether the products are added to the previous values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Into {
    pub(super) at: Address,
    pub(super) row: usize,
    pub(super) size: usize,
    pub(super) alpha: f32,
    pub(super) add: bool,
}

/// Maximum number of library calls; a kernel does the products in one launch if more were needed. And the maximum number of
/// products of one call.
const MOST_CALLS: usize = 32;
const MOST_PRODUCTS: usize = 65_535;

/// Workspace in bytes in which the library may keep partial sums: room for as many results as a sum has parts of a certain
/// length, between the minimum with which it never fails and NVIDIA's recommendation for its largest devices.
///
/// It is the same on every device, so a plan is valid on each; and if a product has this workspace in every plan, it is computed
/// in the same way, to the same bits.
///
/// # Source
/// `cublasSetWorkspace` in NVIDIA's description of cuBLAS: 16 KiB at least, 4 MiB up to Ampere, 32 MiB from Hopper on.
fn library_workspace(x: Extents, count: usize) -> u64 {
    const SHORTEST_PART: u64 = 128;
    let results =
        [x.m, x.n, count, size_of::<f32>()].iter().fold(1u64, |all, &n| all.saturating_mul(n as u64));
    results.saturating_mul(x.k as u64 / SHORTEST_PART).clamp(16 << 10, 32 << 20)
}

/// A matrix for the library, with the extents and distances of its rows and columns; none if neither rows nor columns are
/// contiguous in memory.
fn factor(
    at: Address,
    [rows, columns]: [usize; 2],
    [row, column]: [usize; 2],
    stride: usize,
) -> Option<Factor> {
    // With one row, or one column, distances do not matter.
    let dense = |rows: usize, columns: usize, row: usize, column: usize| {
        let leading = if columns == 1 { rows } else { column };
        ((row == 1 || rows == 1) && leading >= rows).then_some(leading)
    };
    let plain = dense(rows, columns, row, column).map(|leading| (false, leading));
    let (transposed, leading) =
        plain.or_else(|| dense(columns, rows, column, row).map(|leading| (true, leading)))?;
    Some(Factor { at, transposed, leading: leading.try_into().ok()?, stride: stride.try_into().ok()? })
}

/// The same products as library calls; none if the library cannot do them, or only in too many calls.
fn by_library(
    recipe: &mut Recipe,
    x: Extents,
    [left, right]: [Matrix; 2],
    offsets: &[(usize, usize)],
    into: Into,
) -> Option<Vec<recipe::Product>> {
    let [m, n, k] = [x.m, x.n, x.k].map(|n| i32::try_from(n).ok().filter(|&n| n > 0));
    let (m, n, k) = (m?, n?, k?);
    let (mut calls, mut done) = (Vec::new(), 0);
    while let [(a, b), rest @ ..] = &offsets[done..] {
        // As many products as have the same distances as the first two.
        let step = rest.first().and_then(|next| Some((next.0.checked_sub(*a)?, next.1.checked_sub(*b)?)));
        let (da, db) = step.unwrap_or((0, 0));
        let goes_on = |(i, next): &(usize, &(usize, usize))| **next == (a + (i + 1) * da, b + (i + 1) * db);
        let more = rest.iter().enumerate().take_while(goes_on).take(MOST_PRODUCTS - 1).count();
        let count = if step.is_some() { 1 + more } else { 1 };
        // The library's matrices are column-major, ours row-major: each is taken for its transpose, and the transpose of a
        // product is the product of the transposes in reverse order.
        let out = factor(into.at.plus::<f32>(done * into.size), [x.n, x.m], [1, into.row], into.size)?;
        let workspace_bytes = library_workspace(x, count);
        calls.push(recipe::Product {
            m: n,
            n: m,
            k,
            left: factor(right.at.plus::<f32>(*b), [x.n, x.k], [right.column, right.row], db)?,
            right: factor(left.at.plus::<f32>(*a), [x.k, x.m], [left.column, left.row], da)?,
            out: Some(out).filter(|out| !out.transposed)?,
            factors: FloatType::F32,
            stored: FloatType::F32,
            batch: count as i32,
            alpha: into.alpha,
            beta: f32::from(u8::from(into.add)),
            workspace: recipe.library_scratch_for(workspace_bytes),
            workspace_bytes,
        });
        done += count;
    }
    (1..=MOST_CALLS).contains(&calls.len()).then_some(calls)
}

/// Matrix products; each reads its factors at a pair of `offsets`, in elements.
pub(super) fn products(
    recipe: &mut Recipe,
    x: Extents,
    matrices: [Matrix; 2],
    offsets: &[(usize, usize)],
    into: Into,
) -> Result<(), SpecError> {
    let library = by_library(recipe, x, matrices, offsets, into);
    recipe.library_or(library, |recipe| by_kernels(recipe, x, matrices, offsets, into))
}

fn by_kernels(
    recipe: &mut Recipe,
    x: Extents,
    [left, right]: [Matrix; 2],
    offsets: &[(usize, usize)],
    into: Into,
) -> Result<(), SpecError> {
    let count = offsets.len();
    let (parts, length) = parts(tiles(x.m, x.n) * count, x.k);
    let mut words: Vec<u64> = [x.m, x.n, x.k, left.row, left.column, right.row, right.column, parts, length]
        .map(|n| n as u64)
        .to_vec();
    words.extend([into.row as u64, into.size as u64, u64::from(into.add), f64::from(into.alpha).to_bits()]);
    let table = match offsets {
        [] | [(0, 0)] => NOWHERE,
        list => recipe.integers(list.iter().flat_map(|&(a, b)| [a, b])),
    };
    let sums = if parts > 1 { recipe.scratch_for::<f32>(parts * count * x.m * x.n) } else { into.at };
    let args = vec![Arg::Words(words.clone()), table.into(), left.at.into(), right.at.into(), sums.into()];
    recipe.blocks("product", tiles(x.m, x.n) * count * parts, args)?;
    if parts > 1 {
        let args = vec![Arg::Words(words), count.into(), sums.into(), into.at.into()];
        recipe.each("add_parts", count * x.m * x.n, args);
    }
    Ok(())
}

fn product(recipe: &mut Recipe, product: &BatchedProduct, add: bool) -> Result<(), SpecError> {
    let matrix = |index: usize, (row, column): (usize, usize)| Matrix { at: operand(index), row, column };
    let x = product.x;
    let into = Into { at: result(0), row: x.n, size: x.m * x.n, alpha: product.alpha, add };
    products(recipe, x, [matrix(0, product.left), matrix(1, product.right)], &product.offsets, into)
}

pub(crate) fn matmul(spec: &Spec<'_>) -> Made {
    let mut recipe = Recipe::default();
    product(&mut recipe, &BatchedProduct::matmul(spec)?, false)?;
    Ok(recipe)
}

pub(crate) fn gemm(spec: &Spec<'_>) -> Made {
    let gemm = Gemm::of(spec)?;
    let mut recipe = Recipe::default();
    if let Some(plan) = &gemm.c {
        let args = vec![
            Arg::Words(spread_forward(&plan.dims, &plan.strides)?),
            f64::from(gemm.beta).into(),
            operand(2).into(),
            result(0).into(),
        ];
        recipe.each("addend", plan.len(), args);
    }
    product(&mut recipe, &gemm.product, gemm.c.is_some())?;
    Ok(recipe)
}

fn words(conv: &Conv, order: ChannelOrder, parts: usize, length: usize) -> Arg {
    let w = &conv.window;
    let last = usize::from(order == ChannelOrder::Last);
    let mut words: Vec<u64> =
        [conv.batch, conv.groups, conv.inner, conv.outer, parts, length, last].map(|n| n as u64).to_vec();
    for list in [w.image, w.positions, w.kernel, w.stride, w.dilation] {
        words.extend(list.map(|n| n as u64));
    }
    words.extend(w.before.map(|n| n as u64));
    Arg::Words(words)
}

/// A convolution with a window of one pixel, as a product of weights, with distances `row` and `column`, and each sample of `k`
/// channels, giving `m` channels; with channels last, as one product of all pixels. For the library only: the kernels do all
/// samples together.
fn pointwise(
    recipe: &mut Recipe,
    conv: &Conv,
    order: ChannelOrder,
    [m, k]: [usize; 2],
    [weights, samples, bias, out]: [Address; 4],
    [row, column]: [usize; 2],
) -> Option<Vec<recipe::Product>> {
    let n = conv.window.image_len();
    let is_in_calls = conv.batch <= MOST_CALLS * MOST_PRODUCTS;
    if !conv.window.is_pointwise() || conv.groups > 1 || bias != NOWHERE || !is_in_calls {
        return None;
    }
    if order == ChannelOrder::Last {
        let pixels = conv.batch.checked_mul(n)?;
        let matrices =
            [Matrix { at: samples, row: k, column: 1 }, Matrix { at: weights, row: column, column: row }];
        let into = Into { at: out, row: m, size: pixels.checked_mul(m)?, alpha: 1.0, add: false };
        return by_library(recipe, Extents { m: pixels, n: m, k }, matrices, &[(0, 0)], into);
    }
    let matrices = [Matrix { at: weights, row, column }, Matrix { at: samples, row: n, column: 1 }];
    let offsets: Vec<(usize, usize)> = (0..conv.batch).map(|sample| (0, sample * k * n)).collect();
    let into = Into { at: out, row: n, size: m * n, alpha: 1.0, add: false };
    by_library(recipe, Extents { m, n, k }, matrices, &offsets, into)
}

/// The padding at the end of a dimension: as at the beginning if there are as many positions then, otherwise the least with
/// which there are; none if there are fewer positions even without.
fn padding_after(
    image: usize,
    before: usize,
    reach: usize,
    stride: usize,
    positions: usize,
) -> Option<usize> {
    let positions_with = |after: usize| {
        let padded = image.checked_add(before)?.checked_add(after)?;
        Some(padded.checked_sub(reach)? / stride + 1)
    };
    let last = positions.checked_sub(1)?.checked_mul(stride)?.checked_add(reach)?;
    let least = last.saturating_sub(image.checked_add(before)?);
    [before, least].into_iter().find(|&after| positions_with(after) == Some(positions))
}

/// The extents for the library; none if it cannot take them, because it counts in 32 bits. None also for an empty convolution.
fn filter(conv: &Conv, found: Found) -> Option<Filter> {
    let w = &conv.window;
    // The library needs at least two dimensions.
    let first = usize::from(w.image[0] == 1 && w.kernel[0] == 1 && w.positions[0] == 1 && w.before[0] == 0);
    let count = |n: usize| i32::try_from(n).ok().filter(|&n| n > 0);
    let some = |list: &[usize]| list.iter().map(|&n| count(n)).collect::<Option<Vec<i32>>>();
    let tensor = |outer: usize, inner: usize, space: [usize; 3]| {
        let all = some(&[&[outer, inner], &space[first..]].concat())?;
        // The number of elements must fit 32 bits.
        all.iter().try_fold(1i32, |all, &n| all.checked_mul(n))?;
        Some(all)
    };
    let padded = |d: usize| {
        let reach = (w.kernel[d].max(1) - 1).checked_mul(w.dilation[d])?.checked_add(1)?;
        let before = usize::try_from(w.before[d]).ok()?;
        let after = padding_after(w.image[d], before, reach, w.stride[d], w.positions[d])?;
        Some((i32::try_from(before).ok()?, i32::try_from(after).ok()?))
    };
    let (padding, after) = (first..3).map(padded).collect::<Option<(Vec<i32>, Vec<i32>)>>()?;
    Some(Filter {
        found,
        image: tensor(conv.batch, conv.groups * conv.inner, w.image)?,
        weights: tensor(conv.groups * conv.outer, conv.inner, w.kernel)?,
        positions: tensor(conv.batch, conv.groups * conv.outer, w.positions)?,
        padding,
        after,
        stride: some(&w.stride[first..])?,
        dilation: some(&w.dilation[first..])?,
        groups: count(conv.groups)?,
    })
}

/// The convolution for the library, if the library can take it.
fn convolution(
    conv: &Conv,
    layout: ChannelOrder,
    found: Found,
    [image, weights, positions]: [Address; 3],
) -> Option<Convolution> {
    let (filter, stored) = (filter(conv, found)?, FloatType::F32);
    let workspace = Address { at: AddressBase::Scratch, offset: 0 };
    Some(Convolution { filter, image, weights, positions, stored, layout, workspace })
}

/// The room for weights with channels last, where the library wants them so and they are not so anyway.
fn weights_room(recipe: &mut Recipe, conv: &Conv, order: ChannelOrder) -> Option<Address> {
    let (taps, inner) = (conv.window.kernel_len(), conv.inner);
    let differs = order == ChannelOrder::Last && taps > 1 && inner > 1;
    differs.then(|| recipe.room::<f32>(conv.groups * conv.outer * inner * taps))
}

/// Moves weights `[outer, inner, …]` to `[outer, …, inner]`, or back.
fn turn_weights(
    recipe: &mut Recipe,
    conv: &Conv,
    to_last: bool,
    from: Address,
    to: Address,
) -> Result<(), SpecError> {
    let (taps, inner) = (conv.window.kernel_len(), conv.inner);
    let (dims, each) = ([conv.groups * conv.outer, taps, inner], (inner * taps) as isize);
    let (first, last) = ([each, 1, taps as isize], [each, inner as isize, 1]);
    let (source, target) = if to_last { (first, last) } else { (last, first) };
    moves(recipe, "u32", &Strided::new(&dims, &source, &target, 0, 0), from, to)
}

/// Adds the bias of each channel to its `places` elements.
fn add_bias(
    recipe: &mut Recipe,
    order: ChannelOrder,
    [samples, channels, places]: [usize; 3],
    bias: Address,
    out: Address,
) {
    if bias != NOWHERE {
        let [samples, places] = match order {
            ChannelOrder::First => [samples, places],
            ChannelOrder::Last => [samples * places, 1],
        };
        let args = vec![samples.into(), channels.into(), places.into(), bias.into(), out.into()];
        recipe.each("add_bias", samples * channels * places, args);
    }
}

/// The bias of a convolution, if it has one.
fn bias(spec: &Spec<'_>) -> Address {
    if spec.has(2) { operand(2) } else { NOWHERE }
}

/// positions = weights ∗ image + bias
fn forward(
    recipe: &mut Recipe,
    conv: &Conv,
    order: ChannelOrder,
    [image, weights, bias]: [Address; 3],
    out: Address,
) -> Result<(), SpecError> {
    let (m, k) = (conv.outer, conv.inner);
    let places = conv.window.positions_len();
    let blocks = tiles(conv.outer, conv.batch * places) * conv.groups;
    let args = vec![words(conv, order, 1, 0), image.into(), weights.into(), bias.into(), out.into()];
    let kernels = |recipe: &mut Recipe| recipe.blocks("convolve", blocks, args);
    if let Some(products) = pointwise(recipe, conv, order, [m, k], [weights, image, bias, out], [k, 1]) {
        return recipe.library_or(Some(products), kernels);
    }
    let turned = weights_room(recipe, conv, order);
    let library = convolution(conv, order, Found::Positions, [image, turned.unwrap_or(weights), out]);
    let channels = conv.groups * conv.outer;
    let behind = |recipe: &mut Recipe| {
        add_bias(recipe, order, [conv.batch, channels, places], bias, out);
        Ok(())
    };
    let before = |recipe: &mut Recipe| match turned {
        Some(turned) => turn_weights(recipe, conv, true, weights, turned),
        None => Ok(()),
    };
    recipe.convolution_or(library, before, behind, kernels)
}

/// image = weights ∗ᵀ positions + bias
fn back(
    recipe: &mut Recipe,
    conv: &Conv,
    order: ChannelOrder,
    [positions, weights, bias]: [Address; 3],
    out: Address,
) -> Result<(), SpecError> {
    let (m, k) = (conv.inner, conv.outer);
    let pixels = conv.window.image_len();
    let blocks = tiles(conv.inner, conv.batch * pixels) * conv.groups;
    let args = vec![words(conv, order, 1, 0), positions.into(), weights.into(), bias.into(), out.into()];
    let kernels = |recipe: &mut Recipe| recipe.blocks("convolve_back", blocks, args);
    if let Some(products) = pointwise(recipe, conv, order, [m, k], [weights, positions, bias, out], [1, m]) {
        return recipe.library_or(Some(products), kernels);
    }
    let turned = weights_room(recipe, conv, order);
    let library = convolution(conv, order, Found::Image, [out, turned.unwrap_or(weights), positions]);
    let channels = conv.groups * conv.inner;
    let behind = |recipe: &mut Recipe| {
        add_bias(recipe, order, [conv.batch, channels, pixels], bias, out);
        Ok(())
    };
    let before = |recipe: &mut Recipe| match turned {
        Some(turned) => turn_weights(recipe, conv, true, weights, turned),
        None => Ok(()),
    };
    recipe.convolution_or(library, before, behind, kernels)
}

fn weights_grad(
    recipe: &mut Recipe,
    conv: &Conv,
    order: ChannelOrder,
    [positions, image]: [Address; 2],
    out: Address,
) -> Result<(), SpecError> {
    let (m, n) = (conv.outer, conv.inner * conv.window.kernel_len());
    let k = conv.batch * conv.window.positions_len();
    let (parts, length) = parts(tiles(m, n) * conv.groups, k);
    let sums = if parts > 1 { recipe.scratch_for::<f32>(parts * conv.groups * m * n) } else { out };
    let turned = weights_room(recipe, conv, order);
    let library = convolution(conv, order, Found::Weights, [image, turned.unwrap_or(out), positions]);
    let behind = |recipe: &mut Recipe| match turned {
        Some(turned) => turn_weights(recipe, conv, false, turned, out),
        None => Ok(()),
    };
    let kernels = |recipe: &mut Recipe| {
        let args = vec![words(conv, order, parts, length), positions.into(), image.into(), sums.into()];
        recipe.blocks("convolve_weights", tiles(m, n) * conv.groups * parts, args)?;
        if parts > 1 {
            let all: [usize; 12] = [m, n, k, 0, 0, 0, 0, parts, length, n, m * n, 0];
            let mut words: Vec<u64> = all.map(|n| n as u64).to_vec();
            words.push(1f64.to_bits());
            let args = vec![Arg::Words(words), conv.groups.into(), sums.into(), out.into()];
            recipe.each("add_parts", conv.groups * m * n, args);
        }
        Ok(())
    };
    recipe.convolution_or(library, |_| Ok(()), behind, kernels)
}

/// The sum of each channel.
fn channel_sums(recipe: &mut Recipe, order: ChannelOrder, rows: Rows, from: Address, out: Address) {
    match order {
        ChannelOrder::First => sums::of_channels(recipe, rows, 1.0, from, out),
        ChannelOrder::Last => sums::of_columns(recipe, [rows.outer * rows.inner, rows.axis], 1.0, from, out),
    }
}

pub(crate) fn conv(spec: &Spec<'_>, order: ChannelOrder) -> Made {
    let (image, positions) = (image(spec.dims(0)?, order), image(spec.result_dims(0)?, order));
    let conv = Conv::new(spec, &image, &spec.dims(1)?, &positions)?;
    let mut recipe = Recipe::default();
    forward(&mut recipe, &conv, order, [operand(0), operand(1), bias(spec)], result(0))?;
    Ok(recipe)
}

pub(crate) fn conv_grad(spec: &Spec<'_>, order: ChannelOrder) -> Made {
    let (image, positions) = (image(spec.dims(1)?, order), image(spec.dims(0)?, order));
    let conv = Conv::new(spec, &image, &spec.dims(2)?, &positions)?;
    let mut recipe = Recipe::default();
    if spec.wants(0) {
        back(&mut recipe, &conv, order, [operand(0), operand(2), NOWHERE], result(0))?;
    }
    if spec.wants(1) {
        weights_grad(&mut recipe, &conv, order, [operand(0), operand(1)], result(1))?;
    }
    if spec.wants(2) {
        let (channels, places) = (conv.groups * conv.outer, conv.window.positions_len());
        let rows = Rows { outer: conv.batch, axis: channels, inner: places };
        channel_sums(&mut recipe, order, rows, operand(0), result(2));
    }
    Ok(recipe)
}

pub(crate) fn conv_transpose(spec: &Spec<'_>, order: ChannelOrder) -> Made {
    let (image, positions) = (image(spec.result_dims(0)?, order), image(spec.dims(0)?, order));
    let conv = Conv::new(spec, &image, &spec.dims(1)?, &positions)?;
    let mut recipe = Recipe::default();
    back(&mut recipe, &conv, order, [operand(0), operand(1), bias(spec)], result(0))?;
    Ok(recipe)
}

pub(crate) fn conv_transpose_grad(spec: &Spec<'_>, order: ChannelOrder) -> Made {
    let (image, positions) = (image(spec.dims(0)?, order), image(spec.dims(1)?, order));
    let conv = Conv::new(spec, &image, &spec.dims(2)?, &positions)?;
    let mut recipe = Recipe::default();
    if spec.wants(0) {
        forward(&mut recipe, &conv, order, [operand(0), operand(2), NOWHERE], result(0))?;
    }
    if spec.wants(1) {
        weights_grad(&mut recipe, &conv, order, [operand(1), operand(0)], result(1))?;
    }
    if spec.wants(2) {
        let (channels, places) = (conv.groups * conv.inner, conv.window.image_len());
        let rows = Rows { outer: conv.batch, axis: channels, inner: places };
        channel_sums(&mut recipe, order, rows, operand(0), result(2));
    }
    Ok(recipe)
}
