//! Operators that move elements.

use lmsc_kernels::host::movement::{self as host, Mapped, Padding};
use lmsc_kernels::meaning::{Strided, count};
use lmsc_kernels::spec::{Spec, SpecError};

use super::{Made, width};
use crate::recipe::{Address, Arg, Recipe, operand, result, spread, spread_forward};

/// Moves elements of this width according to the plan.
pub(super) fn moves(
    recipe: &mut Recipe,
    width: &str,
    plan: &Strided,
    from: Address,
    to: Address,
) -> Result<(), SpecError> {
    let mut words = vec![plan.from as u64, plan.to as u64];
    words.extend(spread(&plan.dims, &[plan.source.clone(), plan.target.clone()])?);
    recipe.each(format!("move_{width}"), plan.len(), vec![Arg::Words(words), from.into(), to.into()]);
    Ok(())
}

fn one(spec: &Spec<'_>, plan: &Strided) -> Made {
    let mut recipe = Recipe::default();
    moves(&mut recipe, width(spec.element(0)?)?, plan, operand(0), result(0))?;
    Ok(recipe)
}

pub(crate) fn transpose(spec: &Spec<'_>) -> Made {
    one(spec, &host::transposed(spec)?)
}

pub(crate) fn expand(spec: &Spec<'_>) -> Made {
    one(spec, &host::expanded(spec)?)
}

pub(crate) fn tile(spec: &Spec<'_>) -> Made {
    one(spec, &host::tiled(spec)?)
}

pub(crate) fn slice(spec: &Spec<'_>) -> Made {
    one(spec, &host::sliced(spec)?)
}

pub(crate) fn depth_space(spec: &Spec<'_>, to_space: bool) -> Made {
    one(spec, &host::rearranged(spec, to_space)?)
}

pub(crate) fn slice_grad(spec: &Spec<'_>) -> Made {
    let (width, n) = (width(spec.element(0)?)?, count(&spec.result_dims(0)?));
    let mut recipe = Recipe::default();
    recipe.each(format!("fill_{width}"), n, vec![n.into(), 0usize.into(), result(0).into()]);
    moves(&mut recipe, width, &host::slice_returned(spec)?, operand(0), result(0))?;
    Ok(recipe)
}

pub(crate) fn concat(spec: &Spec<'_>) -> Made {
    let (plans, lengths) = host::joined(spec)?;
    let width = width(spec.result(0)?.element)?;
    let mut recipe = Recipe::default();
    for (i, plan) in plans.iter().enumerate() {
        moves(&mut recipe, width, plan, operand(i), result(0))?;
    }
    if spec.wants(1) {
        let bytes = lengths.len() * 8;
        let lengths = recipe.integers(lengths.into_iter().map(|length| length as usize));
        recipe.copy(bytes, lengths, result(1));
    }
    Ok(recipe)
}

pub(crate) fn split(spec: &Spec<'_>) -> Made {
    let width = width(spec.element(0)?)?;
    let mut recipe = Recipe::default();
    for (i, plan) in host::parted(spec)?.iter().enumerate() {
        if let Some(plan) = plan {
            moves(&mut recipe, width, plan, operand(0), result(i))?;
        }
    }
    Ok(recipe)
}

/// The most entries of a table that a recipe has on the device. Twice as many would take 32 MiB of the host for each node
/// that is looked at.
const LARGEST_TABLE: usize = 1 << 20;

/// Refuses a table with an entry for each index of these extents if it is too large.
pub(super) fn holds_table(extents: &[usize]) -> Result<(), SpecError> {
    match extents.iter().try_fold(0usize, |sum, &extent| sum.checked_add(extent)) {
        Some(entries) if entries <= LARGEST_TABLE => Ok(()),
        _ => lmsc_kernels::spec::refuse(format!("its extents are together more than {LARGEST_TABLE}")),
    }
}

/// Moves the elements of `n` parts by the map: `from` elements of the operand and `to` elements of the result each.
pub(super) fn maps(
    recipe: &mut Recipe,
    width: &str,
    map: &Mapped,
    n: usize,
    from: usize,
) -> Result<(), SpecError> {
    let mut lists = vec![(0..n).collect()];
    lists.extend(map.maps.iter().cloned());
    let mut strides = vec![from];
    strides.extend(&map.strides);
    let dims: Vec<usize> = lists.iter().map(Vec::len).collect();
    let mut words = Vec::new();
    let mut first = 0;
    for list in &lists {
        words.push(first as u64);
        first += list.len();
    }
    words.resize(crate::recipe::RANK, 0);
    words.truncate(crate::recipe::RANK);
    words.extend(spread_forward(&dims, &[strides])?);
    let table = recipe.integers(lists.into_iter().flatten());
    let args = vec![Arg::Words(words), table.into(), operand(0).into(), result(0).into()];
    recipe.each(format!("map_{width}"), count(&dims), args);
    Ok(())
}

pub(crate) fn pad(spec: &Spec<'_>) -> Made {
    let (width, n) = (width(spec.element(0)?)?, count(&spec.result_dims(0)?));
    let mut recipe = Recipe::default();
    match host::padding(spec)? {
        Padding::Repeated(repeated) => {
            holds_table(repeated.extents())?;
            maps(&mut recipe, width, &repeated.map(), 1, 0)?;
        }
        Padding::Constant { plan, by_attribute, has_value } => {
            if has_value {
                let args = vec![n.into(), operand(2).into(), result(0).into()];
                recipe.each(format!("fill_from_{width}"), n, args);
            } else {
                let value = usize::try_from(by_attribute.to_bits()).unwrap_or(0);
                recipe.each(format!("fill_{width}"), n, vec![n.into(), value.into(), result(0).into()]);
            }
            moves(&mut recipe, width, &plan, operand(0), result(0))?;
        }
    }
    Ok(recipe)
}

pub(crate) fn triangle(spec: &Spec<'_>) -> Made {
    let dims = spec.dims(0)?;
    let n = count(&dims);
    let [.., rows, columns] = dims[..] else { return lmsc_kernels::spec::refuse("operand 0 is no matrix") };
    let upper = spec.flag("upper")?;
    let k = spec.constants(1)?.and_then(|k| k.first().copied()).unwrap_or(0);
    // Beyond the matrix all diagonals are equivalent.
    let k = k.clamp(-(rows as i64) - 1, columns as i64);
    let args = vec![
        n.into(),
        rows.into(),
        columns.into(),
        upper.into(),
        k.into(),
        operand(0).into(),
        result(0).into(),
    ];
    let mut recipe = Recipe::default();
    recipe.each(format!("triangle_{}", width(spec.element(0)?)?), n, args);
    Ok(recipe)
}
