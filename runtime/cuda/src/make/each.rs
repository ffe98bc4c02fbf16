//! Elementwise operators.

use lmsc_ir::ElementType;
use lmsc_kernels::host::elementwise as host;
use lmsc_kernels::meaning::{Broadcast, count};
use lmsc_kernels::spec::{Spec, SpecError, refuse};

use super::{Made, castable, element, number, width};
use crate::recipe::{Arg, Each, Indexing, NOWHERE, Recipe, operand, result, spread_forward};

/// Maximum number of operands of a kernel that folds broadcast operands, and of one whose operands have the result's shape.
const MANY: usize = 16;
const MOST: usize = 256;

fn broadcast(spec: &Spec<'_>, operands: usize) -> Result<Broadcast, SpecError> {
    let dims = (0..operands).map(|i| spec.dims(i)).collect::<Result<Vec<_>, _>>()?;
    Broadcast::new(&dims, &spec.result_dims(0)?)
}

/// Parameters of a function as bits; empty if all are 0.
fn numbers(parameters: [f64; 3]) -> Vec<u64> {
    let bits = parameters.map(f64::to_bits);
    if bits == [0; 3] { Vec::new() } else { bits.to_vec() }
}

/// The function of each element, with operands of these types, which are broadcast.
fn each(
    plan: &Broadcast,
    operands: &[&'static str],
    parameters: [f64; 3],
    result: &'static str,
) -> Result<Each, SpecError> {
    let reach = |(i, &element): (usize, &&'static str)| {
        Ok((
            element,
            match () {
                () if plan.is_whole(i) => Indexing::Same,
                () if plan.is_scalar(i) => Indexing::First,
                () => Indexing::Spread(spread_forward(&plan.dims, &plan.strides[i..=i])?),
            },
        ))
    };
    let operands = operands.iter().enumerate().map(reach).collect::<Result<_, _>>()?;
    let parameters = numbers(parameters);
    Ok(Each { elements: plan.len() as u64, parameters, made_of: None, operands, results: vec![result] })
}

/// The kernel of this name, on `operands` broadcast operands, with parameters.
fn of(spec: &Spec<'_>, kernel: String, operands: usize, parameters: [f64; 3]) -> Made {
    let plan = broadcast(spec, operands)?;
    let types = vec![element(spec.element(0)?)?; operands];
    let each = each(&plan, &types, parameters, element(spec.result(0)?.element)?)?;
    let mut args = vec![
        Arg::Words(spread_forward(&plan.dims, &plan.strides)?),
        Arg::Words(parameters.map(f64::to_bits).to_vec()),
    ];
    args.extend((0..operands).map(|i| operand(i).into()));
    args.push(result(0).into());
    let mut recipe = Recipe::default();
    recipe.elementwise(kernel, args, each);
    Ok(recipe)
}

fn typed(spec: &Spec<'_>, kernel: &str) -> Result<String, SpecError> {
    Ok(format!("{kernel}_{}", number(spec.element(0)?)?))
}

/// A kernel without parameters.
pub(crate) fn plain(spec: &Spec<'_>, kernel: &str, operands: usize) -> Made {
    of(spec, typed(spec, kernel)?, operands, [0.0; 3])
}

/// A kernel on truth values.
pub(crate) fn truths(spec: &Spec<'_>, kernel: &str, operands: usize) -> Made {
    of(spec, format!("{kernel}_u8"), operands, [0.0; 3])
}

/// A kernel with the attribute `alpha` as parameter.
pub(crate) fn by_alpha(spec: &Spec<'_>, kernel: &str, operands: usize) -> Made {
    of(spec, typed(spec, kernel)?, operands, host::alpha(spec)?)
}

/// A kernel of one operand, with the attribute `alpha` and another one.
pub(crate) fn by_two(spec: &Spec<'_>, kernel: &str, names: [&str; 2]) -> Made {
    of(spec, typed(spec, kernel)?, 1, host::floats(spec, names)?)
}

/// A kernel with a bias behind its operands, if the node has one.
pub(crate) fn perhaps_biased(spec: &Spec<'_>, [without, with]: [&str; 2], operands: usize) -> Made {
    if spec.has(operands) { plain(spec, with, operands + 1) } else { plain(spec, without, operands) }
}

pub(crate) fn onnx_gelu(spec: &Spec<'_>) -> Made {
    match &*spec.string("approximate")? {
        "tanh" => plain(spec, "fast_gelu", 1),
        _ => plain(spec, "gelu", 1),
    }
}

pub(crate) fn clip(spec: &Spec<'_>) -> Made {
    of(spec, typed(spec, "clip")?, 1, host::bounds(spec)?)
}

pub(crate) fn is_inf(spec: &Spec<'_>) -> Made {
    of(spec, typed(spec, "is_inf")?, 1, host::infinities(spec)?)
}

pub(crate) fn modulo(spec: &Spec<'_>) -> Made {
    of(spec, typed(spec, "mod")?, 2, [spec.int("fmod")? as f64, 0.0, 0.0])
}

pub(crate) fn power(spec: &Spec<'_>) -> Made {
    if spec.element(0)? == spec.element(1)? {
        plain(spec, "pow", 2)
    } else {
        of(spec, typed(spec, "pow_by")?, 1, [host::exponent(spec)?, 0.0, 0.0])
    }
}

pub(crate) fn equal(spec: &Spec<'_>) -> Made {
    match spec.element(0)? {
        ElementType::Bool => truths(spec, "same", 2),
        _ => plain(spec, "equal", 2),
    }
}

/// Folds all operands.
pub(crate) fn fold(spec: &Spec<'_>, kernel: &str) -> Made {
    let operands = spec.operands.len();
    let mut plan = broadcast(spec, operands)?;
    let whole = (0..operands).all(|i| plan.is_whole(i));
    let most = if whole { MOST } else { MANY };
    if operands > most {
        let which = if whole { "" } else { " that are broadcast" };
        return refuse(format!("{operands} operands{which}; CUDA devices have a kernel for up to {most}"));
    }
    let number = number(spec.element(0)?)?;
    let each = each(&plan, &vec![number; operands], [0.0; 3], number)?;
    let mut addresses: Vec<_> = (0..operands).map(operand).collect();
    let (kernel, shape) = if whole {
        addresses.resize(MOST, NOWHERE);
        (format!("{kernel}_whole"), plan.len().into())
    } else {
        plan.strides.resize(MANY, vec![0; plan.dims.len()]);
        addresses.resize(MANY, NOWHERE);
        (kernel.to_owned(), Arg::Words(spread_forward(&plan.dims, &plan.strides)?))
    };
    let args = vec![shape, operands.into(), Arg::Addresses(addresses), result(0).into()];
    let mut recipe = Recipe::default();
    recipe.elementwise(typed(spec, &kernel)?, args, each);
    Ok(recipe)
}

pub(crate) fn select(spec: &Spec<'_>) -> Made {
    let plan = broadcast(spec, 3)?;
    let moved = width(spec.element(1)?)?;
    let each = each(&plan, &["u8", moved, moved], [0.0; 3], moved)?;
    let mut args = vec![Arg::Words(spread_forward(&plan.dims, &plan.strides)?)];
    args.extend((0..3).map(|i| operand(i).into()));
    args.push(result(0).into());
    let mut recipe = Recipe::default();
    recipe.elementwise(format!("where_{moved}"), args, each);
    Ok(recipe)
}

pub(crate) fn scale(spec: &Spec<'_>) -> Made {
    let n = count(&spec.dims(0)?);
    let parameters = [f64::from(u8::from(spec.flag("scale_down")?)), 0.0, 0.0];
    let words = Arg::Words(parameters.map(f64::to_bits).to_vec());
    let by = number(spec.element(1)?)?;
    let operands = vec![("f32", Indexing::Same), (by, Indexing::First)];
    let parameters = numbers(parameters);
    let each = Each { elements: n as u64, parameters, made_of: None, operands, results: vec!["f32"] };
    let args = vec![words, n.into(), operand(0).into(), operand(1).into(), result(0).into()];
    let mut recipe = Recipe::default();
    recipe.elementwise(format!("scale_{by}"), args, each);
    Ok(recipe)
}

pub(crate) fn cast(spec: &Spec<'_>) -> Made {
    let (from, to) = (spec.element(0)?, spec.result(0)?.element);
    if from == to {
        return super::shape::view(spec);
    }
    let (read, written) = (castable(from)?, castable(to)?);
    let kernel = match to {
        ElementType::Bool => format!("truth_{read}"),
        _ => format!("cast_{read}_{written}"),
    };
    let n = count(&spec.dims(0)?);
    let operands = vec![(read, Indexing::Same)];
    let each =
        Each { elements: n as u64, parameters: Vec::new(), made_of: None, operands, results: vec![written] };
    let mut recipe = Recipe::default();
    recipe.elementwise(kernel, vec![n.into(), operand(0).into(), result(0).into()], each);
    Ok(recipe)
}
