//! Normalizations and softmax.

use super::Made;
use crate::cuda::recipe::{Arg, NOWHERE, Recipe, lanes, lanes_across, operand, result};
use crate::host::normalization::{channels, trains};
use crate::host::softmax;
use crate::meaning::{Rows, count};
use crate::spec::{Spec, refuse};

/// Four floats of a channel.
type Coefficients = [f32; 4];

pub(super) fn rows_words(rows: Rows) -> Vec<u64> {
    [rows.outer, rows.axis, rows.inner].map(|n| n as u64).to_vec()
}

pub(crate) fn batch(spec: &Spec<'_>) -> Made {
    let rows = channels(spec, 0)?;
    let epsilon = f64::from(spec.float("epsilon", 1e-5)?);
    let momentum = f64::from(spec.float("momentum", 0.9)?);
    let training = trains(spec)?;
    let saves = spec.op.name() == "BatchNormInternal";
    if !saves && (spec.wants(3) || spec.wants(4)) {
        return refuse("results 3 and 4, statistics of the batch, are not supported on CUDA");
    }
    let lanes = lanes(rows.outer * rows.inner);
    let mut recipe = Recipe::default();
    let of = recipe.room::<Coefficients>(rows.axis);
    let mut words = rows_words(rows);
    words.extend([lanes as u64, u64::from(training), epsilon.to_bits(), momentum.to_bits()]);
    let saved = |i: usize| if saves { result(i) } else { NOWHERE };
    let args = vec![
        Arg::Words(words),
        operand(0).into(),
        operand(3).into(),
        operand(4).into(),
        of.into(),
        result(1).into(),
        result(2).into(),
        saved(3).into(),
        saved(4).into(),
    ];
    recipe.teams("batch_statistics", rows.axis, lanes, args);
    let args = vec![
        Arg::Words(rows_words(rows)),
        operand(0).into(),
        operand(1).into(),
        operand(2).into(),
        of.into(),
        result(0).into(),
    ];
    recipe.each("batch_apply", rows.outer * rows.axis * rows.inner, args);
    Ok(recipe)
}

pub(crate) fn batch_grad(spec: &Spec<'_>) -> Made {
    let rows = channels(spec, 1)?;
    let lanes = lanes(rows.outer * rows.inner);
    let mut recipe = Recipe::default();
    let of = recipe.room::<Coefficients>(rows.axis);
    let operands = (0..5).map(|i| Arg::from(operand(i)));
    let mut args = vec![Arg::Words(rows_words(rows)), lanes.into()];
    args.extend(operands.clone());
    args.extend([of.into(), result(1).into(), result(2).into()]);
    recipe.teams("batch_sums", rows.axis, lanes, args);
    if spec.wants(0) {
        let mut args = vec![Arg::Words(rows_words(rows))];
        args.extend(operands);
        args.extend([of.into(), result(0).into()]);
        recipe.each("batch_grad", rows.outer * rows.axis * rows.inner, args);
    }
    Ok(recipe)
}

pub(crate) fn layer(spec: &Spec<'_>, simplified: bool) -> Made {
    let dims = spec.dims(0)?;
    let rows = Rows::from(&dims, spec.axis(spec.int("axis", -1)?, dims.len())?);
    let epsilon = f64::from(spec.float("epsilon", 1e-5)?);
    let bias = if simplified { NOWHERE } else { operand(2) };
    let [means, inverses] = if simplified { [NOWHERE, result(1)] } else { [result(1), result(2)] };
    let lanes = lanes(rows.axis);
    let mut recipe = Recipe::default();
    // Rows without elements have nothing to normalize, and no statistics.
    if rows.axis > 0 {
        let args = vec![
            Arg::Words(rows_words(rows)),
            lanes.into(),
            simplified.into(),
            epsilon.into(),
            operand(0).into(),
            operand(1).into(),
            bias.into(),
            result(0).into(),
            means.into(),
            inverses.into(),
        ];
        recipe.teams("layer", rows.outer, lanes, args);
    }
    Ok(recipe)
}

pub(crate) fn layer_grad(spec: &Spec<'_>, simplified: bool) -> Made {
    let dims = spec.dims(1)?;
    let rows = Rows::from(&dims, spec.axis(spec.int("axis", -1)?, dims.len())?);
    let [means, inverses] = if simplified { [NOWHERE, operand(3)] } else { [operand(3), operand(4)] };
    let mut recipe = Recipe::default();
    let (along, down) = (lanes(rows.axis), lanes_across(rows.outer));
    if spec.wants(0) {
        let args = vec![
            Arg::Words(rows_words(rows)),
            along.into(),
            operand(0).into(),
            operand(1).into(),
            operand(2).into(),
            means.into(),
            inverses.into(),
            result(0).into(),
        ];
        recipe.teams("layer_grad", rows.outer, along, args);
    }
    let of_bias = if simplified { NOWHERE } else { result(2) };
    if spec.wants(1) || spec.wants(2) {
        let args = vec![
            Arg::Words(rows_words(rows)),
            down.into(),
            operand(0).into(),
            operand(1).into(),
            means.into(),
            inverses.into(),
            result(1).into(),
            of_bias.into(),
        ];
        recipe.teams("layer_sums", rows.axis, down, args);
    }
    Ok(recipe)
}

pub(crate) fn instance(spec: &Spec<'_>) -> Made {
    let rows = channels(spec, 0)?;
    grouped(spec, rows, rows.axis, rows.inner)
}

pub(crate) fn group(spec: &Spec<'_>) -> Made {
    let rows = channels(spec, 0)?;
    let groups = spec.int("num_groups", 1)?.max(1) as usize;
    grouped(spec, rows, groups, rows.axis / groups * rows.inner)
}

fn grouped(spec: &Spec<'_>, rows: Rows, groups: usize, size: usize) -> Made {
    let epsilon = f64::from(spec.float("epsilon", 1e-5)?);
    let factors = count(&spec.dims(1)?);
    let per = (rows.axis / factors.max(1)).max(1);
    let mut recipe = Recipe::default();
    if size > 0 {
        let (all, lanes) = (rows.outer * groups, lanes(size));
        let mut words: Vec<u64> = [all, groups, size, rows.inner, per, lanes].map(|n| n as u64).to_vec();
        words.push(epsilon.to_bits());
        let args = vec![
            Arg::Words(words),
            operand(0).into(),
            operand(1).into(),
            operand(2).into(),
            result(0).into(),
        ];
        recipe.teams("grouped", all, lanes, args);
    }
    Ok(recipe)
}

/// How many lanes work on a row, and whether neighbouring rows are neighbours in memory.
pub(super) fn along(rows: Rows) -> (usize, bool) {
    match rows.inner {
        1 => (lanes(rows.axis), false),
        _ => (lanes_across(rows.axis), true),
    }
}

/// Softmax of rows, or its logarithm.
pub(super) fn rows_softmax(
    recipe: &mut Recipe,
    rows: Rows,
    log: bool,
    from: crate::cuda::Address,
    to: crate::cuda::Address,
) {
    let (lanes, across) = along(rows);
    let args =
        vec![Arg::Words(rows_words(rows)), lanes.into(), across.into(), log.into(), from.into(), to.into()];
    let outputs = if rows.axis > 0 { rows.outer * rows.inner } else { 0 };
    recipe.teams("softmax", outputs, lanes, args);
}

pub(crate) fn softmax(spec: &Spec<'_>, log: bool) -> Made {
    let mut recipe = Recipe::default();
    rows_softmax(&mut recipe, softmax::rows(spec)?, log, operand(0), result(0));
    Ok(recipe)
}

pub(crate) fn softmax_grad(spec: &Spec<'_>, log: bool) -> Made {
    let rows = softmax::rows(spec)?;
    let (lanes, across) = along(rows);
    let args = vec![
        Arg::Words(rows_words(rows)),
        lanes.into(),
        across.into(),
        log.into(),
        operand(0).into(),
        operand(1).into(),
        result(0).into(),
    ];
    let mut recipe = Recipe::default();
    recipe.teams("softmax_grad", if rows.axis > 0 { rows.outer * rows.inner } else { 0 }, lanes, args);
    Ok(recipe)
}
