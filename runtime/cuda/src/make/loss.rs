//! Losses over classes.

use lmsc_kernels::host::loss::{Loss, Total};
use lmsc_kernels::meaning::Rows;
use lmsc_kernels::spec::{Spec, SpecError};

use super::normalize::{rows_softmax, rows_words};
use super::{Made, sums};
use crate::recipe::{Address, Arg, NOWHERE, Recipe, ValueRange, noting, operand, result};

/// A recipe without calls, for labels of the classes.
fn labelled(loss: &Loss) -> Recipe {
    Recipe { range: Some(ValueRange::Labels(loss.classes)), ..Recipe::default() }
}

fn rows(loss: &Loss) -> Rows {
    Rows { outer: loss.batch, axis: loss.classes, inner: loss.positions }
}

fn total_word(loss: &Loss) -> u64 {
    match loss.total {
        Total::Each => 0,
        Total::Sum => 1,
        Total::Mean => 2,
    }
}

fn words(loss: &Loss) -> Arg {
    let mut words = rows_words(rows(loss));
    words.extend([total_word(loss), u64::from(loss.ignored.is_some()), loss.ignored.unwrap_or(0) as u64]);
    Arg::Words(words)
}

fn index(loss: &Loss) -> &'static str {
    if loss.narrow { "i32" } else { "i64" }
}

fn weights(loss: &Loss) -> Address {
    loss.weights.map_or(NOWHERE, operand)
}

/// The loss of all labels, from log-probabilities, and the sum of the weights of the labels that count.
fn summed(
    recipe: &mut Recipe,
    loss: &Loss,
    log: Address,
    out: Address,
    weight: Address,
) -> Result<(), SpecError> {
    let (slices, length) = sums::slices(loss.batch * loss.positions);
    let parts = recipe.room::<[f64; 2]>(slices);
    let [step, command] = noting();
    let args = vec![
        words(loss),
        length.into(),
        step,
        command,
        log.into(),
        operand(loss.labels).into(),
        weights(loss).into(),
        parts.into(),
    ];
    recipe.blocks(format!("loss_slices_{}", index(loss)), slices, args)?;
    let args = vec![slices.into(), total_word(loss).into(), parts.into(), out.into(), weight.into()];
    recipe.each("loss_total", 1, args);
    Ok(())
}

/// The loss, from log-probabilities.
fn total(recipe: &mut Recipe, loss: &Loss, log: Address) -> Result<(), SpecError> {
    if loss.total != Total::Each {
        return summed(recipe, loss, log, result(0), NOWHERE);
    }
    let [step, command] = noting();
    let tensors = [log, operand(loss.labels), weights(loss), result(0)].map(Arg::from);
    let args = [words(loss), step, command].into_iter().chain(tensors).collect();
    recipe.each(format!("loss_each_{}", index(loss)), loss.batch * loss.positions, args);
    Ok(())
}

pub(crate) fn cross_entropy(spec: &Spec<'_>) -> Made {
    let loss = Loss::new(spec, 0)?;
    let mut recipe = labelled(&loss);
    let n = loss.batch * loss.classes * loss.positions;
    let log = if spec.wants(1) { result(1) } else { recipe.room::<f32>(n) };
    rows_softmax(&mut recipe, rows(&loss), true, operand(0), log);
    if spec.wants(0) {
        total(&mut recipe, &loss, log)?;
    }
    Ok(recipe)
}

pub(crate) fn negative_log_likelihood(spec: &Spec<'_>) -> Made {
    let loss = Loss::new(spec, 0)?;
    let mut recipe = labelled(&loss);
    total(&mut recipe, &loss, operand(0))?;
    Ok(recipe)
}

pub(crate) fn cross_entropy_grad(spec: &Spec<'_>) -> Made {
    let loss = Loss::new(spec, 1)?;
    let mut recipe = labelled(&loss);
    let weight = recipe.room::<f64>(1);
    let (labels, of_classes) = (operand(loss.labels), weights(&loss));
    if loss.total == Total::Mean {
        summed(&mut recipe, &loss, NOWHERE, NOWHERE, weight)?;
    }
    let [step, command] = noting();
    let args = vec![
        words(&loss),
        step,
        command,
        operand(0).into(),
        operand(1).into(),
        labels.into(),
        of_classes.into(),
        weight.into(),
        result(0).into(),
    ];
    let n = loss.batch * loss.classes * loss.positions;
    recipe.each(format!("loss_grad_{}", index(&loss)), n, args);
    Ok(recipe)
}
