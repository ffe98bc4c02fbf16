//! Attention by tiles, and its gradient.

use lmsc_kernels::meaning::TiledAttention;
use lmsc_kernels::spec::Spec;

use super::Made;
use crate::recipe::{Address, Arg, NOWHERE, Recipe, operand, result};

/// Queries or keys of a block.
const SIDE: usize = 32;

fn words(a: &TiledAttention) -> Arg {
    let extents = [a.heads, a.groups, a.rows, a.keys, a.width, a.value_width, usize::from(a.is_causal)];
    let strides = a.mask.map_or([0; 4], |mask| mask.strides);
    let mut words: Vec<u64> = extents.into_iter().chain(strides).map(|n| n as u64).collect();
    words.push(f64::from(a.scale).to_bits());
    Arg::Words(words)
}

/// The operands in the order of the gradient, of which the forward operator lacks some, and the mask.
fn operands(a: &TiledAttention, list: [Address; 7]) -> Arg {
    let of = |is_truth| {
        a.mask.filter(|mask| mask.is_truth == is_truth).map_or(NOWHERE, |mask| operand(mask.operand))
    };
    Arg::Addresses(list.into_iter().chain([of(false), of(true)]).collect())
}

pub(crate) fn forward(spec: &Spec<'_>) -> Made {
    let a = TiledAttention::forward(spec)?;
    let given = [NOWHERE, operand(0), operand(1), operand(2), NOWHERE, NOWHERE, NOWHERE];
    let args = vec![words(&a), operands(&a, given), result(0).into(), result(1).into(), result(2).into()];
    let mut recipe = Recipe::default();
    recipe.blocks("attention", a.batch * a.heads * a.rows.div_ceil(SIDE), args)?;
    Ok(recipe)
}

pub(crate) fn gradient(spec: &Spec<'_>) -> Made {
    let a = TiledAttention::gradient(spec)?;
    let given = [0, 1, 2, 3, 4, 5, 6].map(operand);
    let mut recipe = Recipe::default();
    if spec.wants(0) {
        let args = vec![words(&a), operands(&a, given), result(0).into()];
        recipe.blocks("attention_queries", a.batch * a.heads * a.rows.div_ceil(SIDE), args)?;
    }
    if spec.wants(1) || spec.wants(2) {
        let args = vec![words(&a), operands(&a, given), result(1).into(), result(2).into()];
        recipe.blocks("attention_keys", a.batch * a.groups * a.keys.div_ceil(SIDE), args)?;
    }
    Ok(recipe)
}
