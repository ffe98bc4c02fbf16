//! Products of matrices and convolutions.

use super::Made;
use crate::cuda::recipe::{Address, Arg, NOWHERE, Recipe, lanes, operand, result, spread_forward};
use crate::gemm::Extents;
use crate::host::conv::Conv;
use crate::meaning::{Gemm, Product};
use crate::spec::{Refusal, Spec};

/// The side of a tile of a result, and how many products are added up at a time.
const TILE: usize = 64;
const DEEP: usize = 16;

/// With fewer tiles, sums are cut in parts so that there is work for more blocks; none of fewer products than this.
const ENOUGH_TILES: usize = 128;
const SHORTEST: usize = 512;
const MOST_PARTS: usize = 64;

/// In how many parts a sum is cut, and how long each is. The same on every device.
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

/// A matrix: where it is, and how far its rows and columns are apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Matrix {
    pub(super) at: Address,
    pub(super) row: usize,
    pub(super) column: usize,
}

/// What products are written to: how far rows and products are apart, and whether they are added to what is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Into {
    pub(super) at: Address,
    pub(super) row: usize,
    pub(super) size: usize,
    pub(super) alpha: f32,
    pub(super) add: bool,
}

/// Products of matrices, `offsets` elements behind where they are.
pub(super) fn products(
    recipe: &mut Recipe,
    x: Extents,
    [left, right]: [Matrix; 2],
    offsets: &[(usize, usize)],
    into: Into,
) -> Result<(), Refusal> {
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
    let sums = if parts > 1 { recipe.room::<f32>(parts * count * x.m * x.n) } else { into.at };
    let args = vec![Arg::Words(words.clone()), table.into(), left.at.into(), right.at.into(), sums.into()];
    recipe.blocks("product", tiles(x.m, x.n) * count * parts, args)?;
    if parts > 1 {
        let args = vec![Arg::Words(words), count.into(), sums.into(), into.at.into()];
        recipe.each("add_parts", count * x.m * x.n, args);
    }
    Ok(())
}

fn product(recipe: &mut Recipe, product: &Product, add: bool) -> Result<(), Refusal> {
    let matrix = |index: usize, (row, column): (usize, usize)| Matrix { at: operand(index), row, column };
    let x = product.x;
    let into = Into { at: result(0), row: x.n, size: x.m * x.n, alpha: product.alpha, add };
    products(recipe, x, [matrix(0, product.left), matrix(1, product.right)], &product.offsets, into)
}

pub(crate) fn matmul(spec: &Spec<'_>) -> Made {
    let mut recipe = Recipe::default();
    product(&mut recipe, &Product::matmul(spec)?, false)?;
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

fn words(conv: &Conv, parts: usize, length: usize) -> Arg {
    let w = &conv.window;
    let mut words: Vec<u64> =
        [conv.batch, conv.groups, conv.inner, conv.outer, parts, length].map(|n| n as u64).to_vec();
    for list in [w.image, w.positions, w.kernel, w.stride, w.dilation] {
        words.extend(list.map(|n| n as u64));
    }
    words.extend(w.before.map(|n| n as u64));
    Arg::Words(words)
}

/// positions = weights ∗ image + bias
fn forward(
    recipe: &mut Recipe,
    conv: &Conv,
    [image, weights, bias]: [Address; 3],
    out: Address,
) -> Result<(), Refusal> {
    let blocks = tiles(conv.outer, conv.batch * conv.window.positions_len()) * conv.groups;
    let args = vec![words(conv, 1, 0), image.into(), weights.into(), bias.into(), out.into()];
    recipe.blocks("convolve", blocks, args)
}

/// image = weights ∗ᵀ positions + bias
fn back(
    recipe: &mut Recipe,
    conv: &Conv,
    [positions, weights, bias]: [Address; 3],
    out: Address,
) -> Result<(), Refusal> {
    let blocks = tiles(conv.inner, conv.batch * conv.window.image_len()) * conv.groups;
    let args = vec![words(conv, 1, 0), positions.into(), weights.into(), bias.into(), out.into()];
    recipe.blocks("convolve_back", blocks, args)
}

fn weights_grad(
    recipe: &mut Recipe,
    conv: &Conv,
    [positions, image]: [Address; 2],
    out: Address,
) -> Result<(), Refusal> {
    let (m, n) = (conv.outer, conv.inner * conv.window.kernel_len());
    let k = conv.batch * conv.window.positions_len();
    let (parts, length) = parts(tiles(m, n) * conv.groups, k);
    let sums = if parts > 1 { recipe.room::<f32>(parts * conv.groups * m * n) } else { out };
    let args = vec![words(conv, parts, length), positions.into(), image.into(), sums.into()];
    recipe.blocks("convolve_weights", tiles(m, n) * conv.groups * parts, args)?;
    if parts > 1 {
        let all: [usize; 12] = [m, n, k, 0, 0, 0, 0, parts, length, n, m * n, 0];
        let mut words: Vec<u64> = all.map(|n| n as u64).to_vec();
        words.push(1f64.to_bits());
        let args = vec![Arg::Words(words), conv.groups.into(), sums.into(), out.into()];
        recipe.each("add_parts", conv.groups * m * n, args);
    }
    Ok(())
}

fn bias_grad(recipe: &mut Recipe, batch: usize, channels: usize, places: usize, from: Address, out: Address) {
    let lanes = lanes(batch * places);
    let args = vec![lanes.into(), batch.into(), channels.into(), places.into(), from.into(), out.into()];
    recipe.teams("channel_sums", channels, lanes, args);
}

pub(crate) fn conv(spec: &Spec<'_>) -> Made {
    let conv = Conv::new(spec, &spec.dims(0)?, &spec.dims(1)?, &spec.result_dims(0)?)?;
    let mut recipe = Recipe::default();
    forward(&mut recipe, &conv, [0, 1, 2].map(operand), result(0))?;
    Ok(recipe)
}

pub(crate) fn conv_grad(spec: &Spec<'_>) -> Made {
    let conv = Conv::new(spec, &spec.dims(1)?, &spec.dims(2)?, &spec.dims(0)?)?;
    let mut recipe = Recipe::default();
    if spec.wants(0) {
        back(&mut recipe, &conv, [operand(0), operand(2), NOWHERE], result(0))?;
    }
    if spec.wants(1) {
        weights_grad(&mut recipe, &conv, [operand(0), operand(1)], result(1))?;
    }
    if spec.wants(2) {
        let (channels, places) = (conv.groups * conv.outer, conv.window.positions_len());
        bias_grad(&mut recipe, conv.batch, channels, places, operand(0), result(2));
    }
    Ok(recipe)
}

pub(crate) fn conv_transpose(spec: &Spec<'_>) -> Made {
    let conv = Conv::new(spec, &spec.result_dims(0)?, &spec.dims(1)?, &spec.dims(0)?)?;
    let mut recipe = Recipe::default();
    back(&mut recipe, &conv, [0, 1, 2].map(operand), result(0))?;
    Ok(recipe)
}

pub(crate) fn conv_transpose_grad(spec: &Spec<'_>) -> Made {
    let conv = Conv::new(spec, &spec.dims(0)?, &spec.dims(2)?, &spec.dims(1)?)?;
    let mut recipe = Recipe::default();
    if spec.wants(0) {
        forward(&mut recipe, &conv, [operand(0), operand(2), NOWHERE], result(0))?;
    }
    if spec.wants(1) {
        weights_grad(&mut recipe, &conv, [operand(1), operand(0)], result(1))?;
    }
    if spec.wants(2) {
        let (channels, places) = (conv.groups * conv.inner, conv.window.image_len());
        bias_grad(&mut recipe, conv.batch, channels, places, operand(0), result(2));
    }
    Ok(recipe)
}
