//! Random operators.

use lmsc_kernels::host::random::{has_wide_mask, seed};
use lmsc_kernels::meaning::count;
use lmsc_kernels::spec::{Spec, refuse};

use super::Made;
use crate::recipe::{Recipe, STEP, operand, result};

/// Number of groups of four elements, one group per thread.
fn fours(n: usize) -> usize {
    n.div_ceil(4)
}

pub(crate) fn dropout(spec: &Spec<'_>) -> Made {
    if has_wide_mask(spec)? {
        return refuse("result 1, the mask, is float: CUDA devices have no kernel for it");
    }
    // The host's kernel takes short floats, too.
    spec.expect_floats([0])?;
    let n = count(&spec.dims(0)?);
    if spec.wants(1) {
        spec.expect_result(1, lmsc_ir::ElementType::Bool)?;
    }
    let mut args = vec![n.into(), seed(spec)?.into(), STEP.into()];
    args.extend((0..3).map(|i| operand(i).into()));
    args.extend((0..2).map(|i| result(i).into()));
    let mut recipe = Recipe::default();
    recipe.each("dropout", fours(n), args);
    Ok(recipe)
}

pub(crate) fn dropout_grad(spec: &Spec<'_>) -> Made {
    let n = count(&spec.dims(0)?);
    let mut args = vec![n.into()];
    args.extend((0..3).map(|i| operand(i).into()));
    args.push(result(0).into());
    let mut recipe = Recipe::default();
    recipe.each("dropout_grad", n, args);
    Ok(recipe)
}

/// A kernel that draws random numbers from the step, the seed and two parameters.
fn drawn(spec: &Spec<'_>, kernel: &str, numbers: [f32; 2]) -> Made {
    let n = count(&spec.result_dims(0)?);
    let mut args = vec![n.into(), seed(spec)?.into()];
    args.extend(numbers.map(|x| f64::from(x).into()));
    args.extend([STEP.into(), result(0).into()]);
    let mut recipe = Recipe::default();
    recipe.each(kernel, fours(n), args);
    Ok(recipe)
}

pub(crate) fn uniform(spec: &Spec<'_>) -> Made {
    drawn(spec, "uniform", [spec.float("low")?, spec.float("high")?])
}

pub(crate) fn normal(spec: &Spec<'_>) -> Made {
    drawn(spec, "gaussian", [spec.float("mean")?, spec.float("scale")?])
}

pub(crate) fn bernoulli(spec: &Spec<'_>) -> Made {
    let n = count(&spec.result_dims(0)?);
    let args = vec![n.into(), seed(spec)?.into(), STEP.into(), operand(0).into(), result(0).into()];
    let mut recipe = Recipe::default();
    recipe.each("bernoulli", fours(n), args);
    Ok(recipe)
}
