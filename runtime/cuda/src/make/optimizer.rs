//! Optimizers and gradient accumulators.

use lmsc_kernels::host::optimizer::AdamW;
use lmsc_kernels::spec::{Spec, SpecError};

use super::Made;
use crate::recipe::{Address, Arg, Each, Indexing, NOWHERE, Recipe, operand, result};

/// Number of floats of an operand, tensor or sequence.
fn floats(spec: &Spec<'_>, index: usize) -> usize {
    let bytes = spec.operands.get(index).and_then(|o| o.as_ref()).and_then(|o| o.ty.byte_size());
    bytes.map_or(0, |bytes| bytes.0 as usize / size_of::<f32>())
}

/// An elementwise function of `n` floats.
fn each(n: usize, operands: Vec<Indexing>) -> Each {
    let operands = operands.into_iter().map(|reach| ("f32", reach)).collect();
    Each { elements: n as u64, parameters: Vec::new(), made_of: None, operands, results: vec!["f32"] }
}

/// Sets a flag to true.
fn flag(recipe: &mut Recipe, spec: &Spec<'_>, index: usize) {
    if spec.wants(index) {
        recipe.flag(1, result(index));
    }
}

fn adam_words(n: usize, flags: [bool; 2], numbers: [f32; 4]) -> Vec<u64> {
    let mut words = vec![n as u64];
    words.extend(flags.map(u64::from));
    words.extend(numbers.map(|x| f64::from(x).to_bits()));
    words
}

pub(crate) fn adamw(spec: &Spec<'_>) -> Made {
    let a = AdamW::new(spec)?;
    let lead = usize::from(spec.op.domain() != lmsc_ir::LMSC_DOMAIN);
    let n = floats(spec, 2);
    let mut recipe = Recipe::default();
    if spec.wants(lead) || spec.is_in_place(2, lead) {
        let words = adam_words(n, [a.corrects, a.decays_first], [a.alpha, a.beta, a.epsilon, a.decay]);
        let mut each = each(n, vec![Indexing::First, Indexing::First]);
        each.operands[1].0 = "i64";
        each.operands.extend(vec![("f32", Indexing::Same); 4]);
        (each.parameters, each.made_of, each.results) = (words.clone(), Some("Adam"), vec!["f32"; 3]);
        let mut args = vec![Arg::Words(words)];
        args.extend([0, 1, 3, 2, 4, 5].map(|i| operand(i).into()));
        args.extend((lead..lead + 3).map(|i| result(i).into()));
        recipe.elementwise("adamw".into(), args, each);
        // The weight in another precision.
        if lead == 0 && spec.has(6) {
            recipe.copy(n * size_of::<f32>(), result(0), result(3));
        }
    }
    if lead == 1 {
        flag(&mut recipe, spec, 0);
    }
    Ok(recipe)
}

pub(crate) fn adam(spec: &Spec<'_>) -> Made {
    let n = floats(spec, 2);
    let corrects = spec.flag("do_bias_correction")?;
    let decays_behind = spec.int("weight_decay_mode")? != 0;
    let numbers = [spec.float("alpha")?, spec.float("beta")?, spec.float("epsilon")?, spec.float("lambda")?];
    let mut recipe = Recipe::default();
    let mut args = vec![Arg::Words(adam_words(n, [corrects, !decays_behind], numbers))];
    args.extend([0, 1, 3, 2, 4, 5].map(|i| operand(i).into()));
    args.extend([3, 1, 2].map(|i| result(i).into()));
    recipe.each("adam", n, args);
    // Behind the kernels that read the step: it may be incremented in place.
    if spec.wants(0) || spec.is_in_place(1, 0) {
        recipe.each("count_on", 1, vec![operand(1).into(), result(0).into()]);
    }
    Ok(recipe)
}

pub(crate) fn sgd(spec: &Spec<'_>) -> Made {
    let sequences = spec.op.name() == "SGDOptimizerV2";
    let (n, to) = (floats(spec, 1), usize::from(sequences));
    let mut recipe = Recipe::default();
    if spec.wants(to) || spec.is_in_place(1, to) {
        let args = vec![n.into(), operand(0).into(), operand(1).into(), operand(2).into(), result(to).into()];
        recipe.elementwise(
            "sgd".into(),
            args,
            each(n, vec![Indexing::First, Indexing::Same, Indexing::Same]),
        );
    }
    if sequences {
        flag(&mut recipe, spec, 0);
    }
    Ok(recipe)
}

fn accumulation(recipe: &mut Recipe, spec: &Spec<'_>, overwrite: Address, to: usize) {
    if spec.wants(to) || spec.is_in_place(0, to) {
        let n = floats(spec, 1);
        let args = vec![n.into(), operand(0).into(), operand(1).into(), overwrite.into(), result(to).into()];
        let mut each = each(n, vec![Indexing::Same, Indexing::Same]);
        each.operands.extend((overwrite != NOWHERE).then_some(("u8", Indexing::First)));
        recipe.elementwise("accumulate".into(), args, each);
    }
}

pub(crate) fn accumulate_in_place(spec: &Spec<'_>) -> Made {
    let mut recipe = Recipe::default();
    accumulation(&mut recipe, spec, operand(2), 1);
    flag(&mut recipe, spec, 0);
    Ok(recipe)
}

pub(crate) fn accumulate(spec: &Spec<'_>) -> Made {
    let mut recipe = Recipe::default();
    accumulation(&mut recipe, spec, NOWHERE, 0);
    Ok(recipe)
}

/// ONNX's own optimizers `(rate, count, X…, G…, states…)`, whose results are X… and each state.
pub(crate) fn preview(spec: &Spec<'_>, kernel: &str, states: usize) -> Result<Recipe, SpecError> {
    let tensors = spec.operands.len().saturating_sub(2) / (states + 2);
    // Each of the operators has some of these.
    let float = |name| if spec.knows(name) { spec.float(name) } else { Ok(0.0) };
    let nesterov = spec.knows("mode") && spec.string("mode")? == "nesterov";
    let numbers = [
        float("alpha")?,
        float("beta")?,
        float("epsilon")?,
        float("norm_coefficient")?,
        float("decay_factor")?,
        float("norm_coefficient_post")?,
    ];
    let mut recipe = Recipe::default();
    for i in 0..tensors {
        let n = floats(spec, 2 + i);
        let mut words = vec![n as u64, u64::from(nesterov)];
        words.extend(numbers.map(|x| f64::from(x).to_bits()));
        let state = |k: usize| 2 + if k == 0 { i } else { (k + 1) * tensors + i };
        let mut args = vec![Arg::Words(words), operand(0).into(), operand(1).into()];
        args.push(operand(2 + tensors + i).into());
        args.extend((0..=states).map(|k| operand(state(k)).into()));
        args.extend((0..=states).map(|k| result(k * tensors + i).into()));
        recipe.each(kernel, n, args);
    }
    Ok(recipe)
}
