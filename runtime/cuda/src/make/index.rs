//! Gathering and scattering by indices that are computed data.

use lmsc_kernels::host::index::{IndexedElements, Tuples, batch_dims};
use lmsc_kernels::meaning::{Rows, count, strides};
use lmsc_kernels::spec::{Spec, SpecError, refuse};

use super::{Made, number, width};
use crate::BLOCK;
use crate::recipe::{Address, Arg, RANK, Recipe, ValueRange, noting, operand, result, spread_forward};

/// A recipe without calls, for indices into these extents.
fn indexing(extents: Vec<usize>) -> Recipe {
    Recipe { range: Some(ValueRange::Indices(extents)), ..Recipe::default() }
}

fn rows_words(rows: Rows) -> Arg {
    Arg::Words([rows.outer, rows.axis, rows.inner].map(|n| n as u64).to_vec())
}

pub(crate) fn gather(spec: &Spec<'_>) -> Made {
    let dims = spec.dims(0)?;
    let rows = Rows::at(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    let picks = count(&spec.dims(1)?);
    let kernel = format!("gather_{}_{}", width(spec.element(0)?)?, number(spec.element(1)?)?);
    let [step, command] = noting();
    let tensors = [operand(0), operand(1), result(0)].map(Arg::from);
    let args = [rows_words(rows), picks.into(), step, command].into_iter().chain(tensors).collect();
    let mut recipe = indexing(vec![rows.axis]);
    recipe.each(kernel, rows.outer * picks * rows.inner, args);
    Ok(recipe)
}

pub(crate) fn gather_elements(spec: &Spec<'_>) -> Made {
    let plan = IndexedElements::new(spec, &spec.dims(0)?, 1)?;
    let kernel = format!("gather_elements_{}_{}", width(spec.element(0)?)?, number(spec.element(1)?)?);
    let [step, command] = noting();
    let args = vec![
        Arg::Words(spread_forward(&plan.dims, std::slice::from_ref(&plan.strides))?),
        plan.axis.0.into(),
        plan.axis.1.into(),
        step,
        command,
        operand(0).into(),
        operand(1).into(),
        result(0).into(),
    ];
    let mut recipe = indexing(vec![plan.axis.0]);
    recipe.each(kernel, count(&plan.dims), args);
    Ok(recipe)
}

pub(crate) fn one_hot(spec: &Spec<'_>) -> Made {
    let dims = spec.result_dims(0)?;
    let rows = Rows::at(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    let kernel = format!("one_hot_{}_{}", width(spec.element(2)?)?, number(spec.element(0)?)?);
    let args = vec![rows_words(rows), operand(0).into(), operand(2).into(), result(0).into()];
    let mut recipe = Recipe::default();
    recipe.each(kernel, count(&dims), args);
    Ok(recipe)
}

fn tuples_words(plan: &Tuples) -> Result<Arg, SpecError> {
    if plan.indexed.len() > RANK {
        return refuse(format!("tuples of more than {RANK} indices"));
    }
    let mut words = vec![plan.indexed.len() as u64, plan.batch.0.max(1) as u64, plan.batch.1 as u64];
    words.push(plan.inner as u64);
    for part in [|pair: &(usize, usize)| pair.0, |pair: &(usize, usize)| pair.1] {
        words.extend(plan.indexed.iter().map(part).map(|n| n as u64).chain(std::iter::repeat(0)).take(RANK));
    }
    Ok(Arg::Words(words))
}

fn tuples(indices: &[usize]) -> usize {
    count(&indices[..indices.len().saturating_sub(1)])
}

pub(crate) fn gather_nd(spec: &Spec<'_>) -> Made {
    let plan = Tuples::new(&spec.dims(0)?, &spec.dims(1)?, batch_dims(spec)?)?;
    let n = tuples(&spec.dims(1)?);
    let kernel = format!("gather_nd_{}_{}", width(spec.element(0)?)?, number(spec.element(1)?)?);
    let [step, command] = noting();
    let tensors = [operand(0), operand(1), result(0)].map(Arg::from);
    let args = [tuples_words(&plan)?, n.into(), step, command].into_iter().chain(tensors).collect();
    let mut recipe = indexing(plan.extents());
    recipe.each(kernel, n * plan.inner, args);
    Ok(recipe)
}

/// The reduction of updates, as the kernel's name has it.
fn reduction(spec: &Spec<'_>) -> Result<String, SpecError> {
    let name = if spec.knows("reduction") { spec.string("reduction")? } else { "none".into() };
    Ok(match &*name {
        "none" => format!("none_{}", width(spec.element(0)?)?),
        name => format!("{name}_{}", number(spec.element(0)?)?),
    })
}

/// Applies updates to result 0; `places` adds a kernel that writes their places. Updates of one place are applied one after
/// another: they are sorted by their places.
fn apply(
    recipe: &mut Recipe,
    reduction: &str,
    [updates, inner]: [usize; 2],
    from: usize,
    places: impl FnOnce(&mut Recipe, Address),
) {
    let [mut sorted, mut order, mut other, mut other_order] = [(); 4].map(|()| recipe.room::<i64>(updates));
    places(recipe, other);
    recipe.each("sort_runs", updates, vec![updates.into(), other.into(), sorted.into(), order.into()]);
    let mut length = BLOCK as usize;
    while length < updates {
        let args = vec![updates.into(), length.into(), sorted.into(), order.into()];
        let args = args.into_iter().chain([other.into(), other_order.into()]).collect();
        recipe.each("merge_runs", updates, args);
        (sorted, other) = (other, sorted);
        (order, other_order) = (other_order, order);
        length *= 2;
    }
    let lengths = other;
    recipe.each("segments", updates, vec![updates.into(), sorted.into(), lengths.into()]);
    let args = vec![
        updates.into(),
        inner.into(),
        sorted.into(),
        order.into(),
        lengths.into(),
        operand(from).into(),
        result(0).into(),
    ];
    recipe.each(format!("apply_{reduction}"), updates * inner, args);
}

pub(crate) fn gather_grad(spec: &Spec<'_>) -> Made {
    let dims = spec.result_dims(0)?;
    let rows = Rows::at(&dims, spec.axis(spec.int("axis")?, dims.len())?);
    let picks = count(&spec.dims(1)?);
    let index = number(spec.element(1)?)?;
    let mut recipe = indexing(vec![rows.axis]);
    recipe.zeros(count(&dims), result(0));
    let updates = rows.outer * picks;
    apply(&mut recipe, "add_f32", [updates, rows.inner], 2, |recipe, places| {
        let [step, command] = noting();
        let args = vec![rows_words(rows), picks.into(), step, command, operand(1).into(), places.into()];
        recipe.each(format!("row_places_{index}"), updates, args);
    });
    Ok(recipe)
}

/// Applies the updates of operand 2 to the places of result 0 given by the tuples of operand 1.
fn by_tuples(spec: &Spec<'_>, recipe: &mut Recipe, plan: &Tuples, reduction: &str) -> Result<(), SpecError> {
    let updates = tuples(&spec.dims(1)?);
    let (index, words) = (number(spec.element(1)?)?, tuples_words(plan)?);
    apply(recipe, reduction, [updates, plan.inner], 2, |recipe, places| {
        let [step, command] = noting();
        let args = vec![words, updates.into(), step, command, operand(1).into(), places.into()];
        recipe.each(format!("tuple_places_{index}"), updates, args);
    });
    Ok(())
}

pub(crate) fn gather_nd_grad(spec: &Spec<'_>) -> Made {
    let dims = spec.result_dims(0)?;
    let plan = Tuples::new(&dims, &spec.dims(1)?, batch_dims(spec)?)?;
    let mut recipe = indexing(plan.extents());
    recipe.zeros(count(&dims), result(0));
    by_tuples(spec, &mut recipe, &plan, "add_f32")?;
    Ok(recipe)
}

pub(crate) fn scatter_nd(spec: &Spec<'_>) -> Made {
    let plan = Tuples::new(&spec.dims(0)?, &spec.dims(1)?, 0)?;
    let mut recipe = indexing(plan.extents());
    recipe.copy(bytes(spec, 0)?, operand(0), result(0));
    by_tuples(spec, &mut recipe, &plan, &reduction(spec)?)?;
    Ok(recipe)
}

fn bytes(spec: &Spec<'_>, operand: usize) -> Result<usize, SpecError> {
    Ok(spec.tensor(operand)?.byte_size().map_or(0, |b| b.0 as usize))
}

/// Applies the updates of an operand to the places given by the indices of another one, along an axis of `dims`.
fn lines(
    spec: &Spec<'_>,
    recipe: &mut Recipe,
    dims: &[usize],
    [indices, updates]: [usize; 2],
    reduction: &str,
) -> Result<(), SpecError> {
    let plan = IndexedElements::new(spec, dims, indices)?;
    let axis = spec.axis(spec.int("axis")?, dims.len())?;
    let own = strides(&plan.dims);
    let others = |list: &[usize]| -> Vec<usize> {
        list.iter().enumerate().filter(|(d, _)| *d != axis).map(|(_, &n)| n).collect()
    };
    let of = others(&plan.dims);
    let n = count(&of);
    let head = [plan.dims[axis], own[axis], plan.axis.0, plan.axis.1];
    let mut words: Vec<u64> = head.map(|n| n as u64).to_vec();
    words.extend(spread_forward(&of, &[others(&own), others(&plan.strides)])?);
    recipe.range = Some(ValueRange::Indices(vec![plan.axis.0]));
    let [step, command] = noting();
    let tensors = [operand(indices), operand(updates), result(0)].map(Arg::from);
    let args = [Arg::Words(words), step, command].into_iter().chain(tensors).collect();
    recipe.each(format!("scatter_{reduction}_{}", number(spec.element(indices)?)?), n, args);
    Ok(())
}

pub(crate) fn gather_elements_grad(spec: &Spec<'_>) -> Made {
    let dims = spec.result_dims(0)?;
    let mut recipe = Recipe::default();
    recipe.zeros(count(&dims), result(0));
    lines(spec, &mut recipe, &dims, [2, 0], "add_f32")?;
    Ok(recipe)
}

pub(crate) fn scatter_elements(spec: &Spec<'_>) -> Made {
    let mut recipe = Recipe::default();
    recipe.copy(bytes(spec, 0)?, operand(0), result(0));
    lines(spec, &mut recipe, &spec.dims(0)?, [1, 2], &reduction(spec)?)?;
    Ok(recipe)
}
