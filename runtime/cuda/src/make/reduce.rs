//! Reductions, and the gradient of a quotient.

use lmsc_ir::ElementType;
use lmsc_kernels::host::reduce as host;
use lmsc_kernels::meaning::{Broadcast, Reduction, Rows, count, strides};
use lmsc_kernels::spec::{Spec, SpecError};

use super::{Made, number, sums};
use crate::recipe::{Arg, Recipe, lanes, lanes_across, operand, result, spread_forward};

/// The extents of some dimensions, and their strides in several tensors.
type Dims = (Vec<usize>, Vec<Vec<usize>>);

/// The kept and the folded dimensions.
fn apart(plan: &Reduction) -> [Dims; 2] {
    let all: Vec<usize> = plan.groups.iter().map(|group| group.0).collect();
    let own = strides(&all);
    [false, true].map(|kind| {
        let of = plan.groups.iter().zip(&own).filter(|(group, _)| group.1 == kind);
        let (dims, strides) = of.map(|(group, &stride)| (group.0, stride)).unzip();
        (dims, vec![strides])
    })
}

/// The words that kernels begin with: number of outputs, number of values of each, lanes, and both boxes of indices.
fn head([kept, folded]: &[Dims; 2], inner_is_folded: bool) -> Result<(Vec<u64>, usize, usize), SpecError> {
    let (outputs, values) = (count(&kept.0), count(&folded.0));
    let lanes = if inner_is_folded { lanes(values) } else { lanes_across(values) };
    let mut words = vec![outputs as u64, values as u64, lanes as u64, u64::from(!inner_is_folded)];
    words.extend(spread_forward(&kept.0, &kept.1)?);
    words.extend(spread_forward(&folded.0, &folded.1)?);
    Ok((words, outputs, lanes))
}

/// Minimum number of values of an output that a block sums by itself, and of an output of many columns that it sums together. For
/// fewer, a team of threads is as fast.
const MANY: usize = 512;
const MANY_ROWS: usize = 64;

/// Minimum number of columns that are summed together: with fewer, threads would be idle.
const MANY_COLUMNS: usize = 32;

/// A sum of many values each, in two stages; false if the reduction has another form.
fn in_slices(
    recipe: &mut Recipe,
    spec: &Spec<'_>,
    plan: &Reduction,
    kernel: &str,
) -> Result<bool, SpecError> {
    let factor = match kernel {
        "reduce_sum" => 1.0,
        "reduce_mean" => 1.0 / plan.reduced() as f64,
        _ => return Ok(false),
    };
    if spec.element(0)? != ElementType::Float || plan.kept() == 0 {
        return Ok(false);
    }
    let many = plan.reduced() >= MANY;
    let rows = match plan.groups[..] {
        [(rows, true), (columns, false)] if columns >= MANY_COLUMNS && rows >= MANY_ROWS => {
            sums::of_columns(recipe, [rows, columns], factor, operand(0), result(0));
            return Ok(true);
        }
        [(inner, true)] if many => Rows { outer: 1, axis: 1, inner },
        [(axis, false), (inner, true)] if many => Rows { outer: 1, axis, inner },
        [(outer, true), (axis, false)] if many => Rows { outer, axis, inner: 1 },
        [(outer, true), (axis, false), (inner, true)] if many => Rows { outer, axis, inner },
        _ => return Ok(false),
    };
    sums::of_channels(recipe, rows, factor, operand(0), result(0));
    Ok(true)
}

pub(crate) fn reduce(spec: &Spec<'_>, kernel: &str) -> Made {
    let plan = host::reduction(spec)?;
    let mut recipe = Recipe::default();
    if in_slices(&mut recipe, spec, &plan, kernel)? {
        return Ok(recipe);
    }
    let (words, outputs, lanes) = head(&apart(&plan), plan.inner().1)?;
    let kernel = format!("{kernel}_{}", number(spec.element(0)?)?);
    recipe.teams(kernel, outputs, lanes, vec![Arg::Words(words), operand(0).into(), result(0).into()]);
    Ok(recipe)
}

fn rows_words(rows: Rows) -> Arg {
    Arg::Words([rows.outer, rows.axis, rows.inner].map(|n| n as u64).to_vec())
}

pub(crate) fn arg(spec: &Spec<'_>, largest: bool) -> Made {
    let dims = spec.dims(0)?;
    let rows = Rows::at(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    let last = spec.flag("select_last_index")?;
    let args = vec![rows_words(rows), largest.into(), last.into(), operand(0).into(), result(0).into()];
    let mut recipe = Recipe::default();
    recipe.each(format!("arg_{}", number(spec.element(0)?)?), rows.outer * rows.inner, args);
    Ok(recipe)
}

pub(crate) fn top(spec: &Spec<'_>) -> Made {
    let (rows, count) = host::chosen(spec)?;
    let largest = spec.flag("largest")?;
    let args = vec![
        rows_words(rows),
        count.into(),
        largest.into(),
        operand(0).into(),
        result(0).into(),
        result(1).into(),
    ];
    let mut recipe = Recipe::default();
    recipe.each(format!("top_{}", number(spec.element(0)?)?), rows.outer * rows.inner, args);
    Ok(recipe)
}

pub(crate) fn cumulative(spec: &Spec<'_>) -> Made {
    let dims = spec.dims(0)?;
    let axis = spec.constants(1)?.and_then(|axis| axis.first().copied()).unwrap_or(0);
    let rows = Rows::at(&dims, spec.axis(axis, dims.len())?);
    let (exclusive, reverse) = (spec.flag("exclusive")?, spec.flag("reverse")?);
    let args = vec![rows_words(rows), exclusive.into(), reverse.into(), operand(0).into(), result(0).into()];
    let mut recipe = Recipe::default();
    recipe.each(format!("cumulate_{}", number(spec.element(0)?)?), rows.outer * rows.inner, args);
    Ok(recipe)
}

/// `DivGrad(dY, A, B → dA, dB)`: each sums over the dimensions that were broadcast.
pub(crate) fn quotient(spec: &Spec<'_>) -> Made {
    let plan = Broadcast::new(&[spec.dims(1)?, spec.dims(2)?], &spec.dims(0)?)?;
    let dense = strides(&plan.dims);
    let mut recipe = Recipe::default();
    for (own, kernel) in [(0, "div_grad_above"), (1, "div_grad_below")] {
        let outputs = if spec.wants(own) { count(&spec.result_dims(own)?) } else { 0 };
        if outputs == 0 {
            continue;
        }
        let part = |repeated: bool| {
            let of = (0..plan.dims.len()).filter(|&d| (plan.strides[own][d] == 0) == repeated);
            let of: Vec<usize> = of.collect();
            let at = |list: &[usize]| of.iter().map(|&d| list[d]).collect::<Vec<usize>>();
            (at(&plan.dims), vec![at(&dense), at(&plan.strides[1 - own])])
        };
        let inner_is_folded = plan.strides[own].last() == Some(&0);
        let (words, outputs, lanes) = head(&[part(false), part(true)], inner_is_folded)?;
        let args = vec![
            Arg::Words(words),
            operand(0).into(),
            operand(1 + own).into(),
            operand(2 - own).into(),
            result(own).into(),
        ];
        recipe.teams(kernel, outputs, lanes, args);
    }
    Ok(recipe)
}
