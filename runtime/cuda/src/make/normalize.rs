//! Normalizations and softmax.

use lmsc_kernels::host::normalization::{channels, trains};
use lmsc_kernels::host::softmax;
use lmsc_kernels::meaning::{Rows, count};
use lmsc_kernels::spec::{Spec, refuse};

use super::{Made, sums};
use crate::recipe::{
    Address, Arg, Each, Indexing, NOWHERE, Recipe, channel_words, lanes, lanes_across, operand, result,
};

/// Four coefficients of a channel.
type Coefficients = [f32; 4];
/// A slice's mean, and the sum of squared deviations from it.
type Moments = [f64; 2];

pub(super) fn rows_words(rows: Rows) -> Vec<u64> {
    [rows.outer, rows.axis, rows.inner].map(|n| n as u64).to_vec()
}

/// Launches the elementwise part of a normalization: `whole` operands have the result's elements, the operands behind them one
/// element of this type for each channel.
fn by_channel(
    recipe: &mut Recipe,
    kernel: &str,
    rows: Rows,
    [whole, of_channels]: [&[Address]; 2],
    element: &'static str,
    out: Address,
) {
    let n = rows.outer * rows.axis * rows.inner;
    let width = sums::width(rows.inner);
    let mut args = vec![(n / width).into(), width.into(), Arg::Words(channel_words(rows, width))];
    args.extend(whole.iter().chain(of_channels).chain([&out]).map(|&at| Arg::from(at)));
    let mut operands = vec![("f32", Indexing::Same); whole.len()];
    let reach = Indexing::Channel(channel_words(rows, 1));
    operands.extend(of_channels.iter().map(|_| (element, reach.clone())));
    let each =
        Each { elements: n as u64, parameters: Vec::new(), made_of: None, operands, results: vec!["f32"] };
    recipe.elementwise_by(kernel.to_owned(), args, each, n / width);
}

pub(crate) fn batch(spec: &Spec<'_>) -> Made {
    let rows = channels(spec, 0)?;
    let epsilon = f64::from(spec.float("epsilon")?);
    let momentum = f64::from(spec.float("momentum")?);
    let training = trains(spec)?;
    let saves = spec.op.name() == "BatchNormInternal";
    if !saves && (spec.wants(3) || spec.wants(4)) {
        return refuse("results 3 and 4, statistics of the batch, are not supported on CUDA");
    }
    let slices = sums::Slices::new(rows);
    let mut recipe = Recipe::default();
    // Results if they are used, else rooms: nothing reuses their memory while later launches are fused with the last one.
    let mut kept = |i: usize| if saves && spec.wants(i) { result(i) } else { recipe.room::<f32>(rows.axis) };
    let [mean, inverse] = [kept(3), kept(4)];
    let parts = if training { recipe.room::<Moments>(slices.all()) } else { NOWHERE };
    if training {
        slices.launch(&mut recipe, ["batch_moments", "batch_column_moments"], &[operand(0), parts]);
    }
    let (mut words, lanes) = slices.parts();
    let lanes = if training { lanes } else { 1 };
    words.extend([lanes as u64, u64::from(training), epsilon.to_bits(), momentum.to_bits()]);
    let mut args = vec![Arg::Words(words)];
    args.extend([parts, operand(3), operand(4), result(1), result(2), mean, inverse].map(Arg::from));
    recipe.teams("batch_statistics", rows.axis, lanes, args);
    let of_channels = [mean, inverse, operand(1), operand(2)];
    by_channel(&mut recipe, "batch_apply_f32", rows, [&[operand(0)], &of_channels], "f32", result(0));
    Ok(recipe)
}

pub(crate) fn batch_grad(spec: &Spec<'_>) -> Made {
    let rows = channels(spec, 1)?;
    let slices = sums::Slices::new(rows);
    let mut recipe = Recipe::default();
    let of = recipe.room::<Coefficients>(rows.axis);
    let parts = recipe.room::<[f64; 2]>(slices.all());
    let [dy, x, scale, mean, inverse] = [0, 1, 2, 3, 4].map(operand);
    slices.launch(&mut recipe, ["batch_products", "batch_column_products"], &[dy, x, mean, parts]);
    let (words, lanes) = slices.parts();
    let mut args = vec![Arg::Words(words), lanes.into(), parts.into()];
    args.extend([scale, mean, inverse, of, result(1), result(2)].map(Arg::from));
    recipe.teams("batch_sums", rows.axis, lanes, args);
    if spec.wants(0) {
        by_channel(&mut recipe, "batch_grad_f32", rows, [&[dy, x], &[of]], "Coefficients", result(0));
    }
    Ok(recipe)
}

pub(crate) fn layer(spec: &Spec<'_>, simplified: bool) -> Made {
    let dims = spec.dims(0)?;
    let rows = Rows::from(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    let epsilon = f64::from(spec.float("epsilon")?);
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
    let rows = Rows::from(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    let [means, inverses] = if simplified { [NOWHERE, operand(3)] } else { [operand(3), operand(4)] };
    let mut recipe = Recipe::default();
    let along = lanes(rows.axis);
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
        let columns = sums::Columns::new(rows.outer, rows.axis);
        let parts = recipe.room::<[f64; 2]>(columns.all());
        let args = [operand(0), operand(1), means, inverses, parts].map(Arg::from);
        let args = [Arg::Words(columns.words())].into_iter().chain(args).collect();
        columns.launch(&mut recipe, "layer_columns", args);
        let lanes = columns.lanes();
        let args =
            vec![Arg::Words(columns.words()), lanes.into(), parts.into(), result(1).into(), of_bias.into()];
        recipe.teams("layer_sums", rows.axis, lanes, args);
    }
    Ok(recipe)
}

pub(crate) fn instance(spec: &Spec<'_>) -> Made {
    let rows = channels(spec, 0)?;
    grouped(spec, rows, rows.axis, rows.inner)
}

pub(crate) fn group(spec: &Spec<'_>) -> Made {
    let rows = channels(spec, 0)?;
    let groups = spec.int("num_groups")?.max(1) as usize;
    grouped(spec, rows, groups, rows.axis / groups * rows.inner)
}

fn grouped(spec: &Spec<'_>, rows: Rows, groups: usize, size: usize) -> Made {
    let epsilon = f64::from(spec.float("epsilon")?);
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

/// Number of lanes that work on a row, and whether neighbouring rows are neighbours in memory.
pub(super) fn along(rows: Rows) -> (usize, bool) {
    match rows.inner {
        1 => (lanes(rows.axis), false),
        _ => (lanes_across(rows.axis), true),
    }
}

/// Softmax of rows, or its logarithm.
pub(super) fn rows_softmax(recipe: &mut Recipe, rows: Rows, log: bool, from: Address, to: Address) {
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
