//! Views, constants, shapes as data, and sequences.

use lmsc_ir::TensorType;
use lmsc_kernels::kernel::{Io, StepContext};
use lmsc_kernels::meaning::count;
use lmsc_kernels::spec::{Spec, refuse};

use super::{Made, number, width};
use crate::recipe::{Recipe, operand, result};

fn size(ty: &TensorType) -> usize {
    ty.byte_size().map_or(0, |b| b.0 as usize)
}

/// The result of the host's kernel, which reads no operand, as a constant.
pub(crate) fn known(spec: &Spec<'_>) -> Made {
    let bytes = spec.results.first().copied().flatten().and_then(lmsc_ir::Type::byte_size);
    let mut words = vec![0u64; bytes.map_or(0, |b| b.0 as usize).div_ceil(8)];
    let out = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.map_or(0, |b| b.0 as usize)];
    let Ok(kernel) = lmsc_kernels::table::prepare(spec) else {
        return refuse("the host has no kernel for it");
    };
    kernel.run(Io::new(&[], &mut [&mut *out], &mut []), StepContext::default());
    let mut recipe = Recipe::default();
    let constant = recipe.constant(out.iter().copied());
    recipe.copy(out.len(), constant, result(0));
    Ok(recipe)
}

/// Copies the operand to the result, unless they share their buffer.
pub(crate) fn view(spec: &Spec<'_>) -> Made {
    let mut recipe = Recipe::default();
    if !spec.is_in_place(0, 0) {
        let bytes = spec.results.first().copied().flatten().and_then(lmsc_ir::Type::byte_size);
        recipe.copy(bytes.map_or(0, |b| b.0 as usize), operand(0), result(0));
    }
    Ok(recipe)
}

/// Copies each operand to its result.
pub(crate) fn views(spec: &Spec<'_>) -> Made {
    let mut recipe = Recipe::default();
    for (i, ty) in spec.results.iter().enumerate() {
        if let Some(bytes) = ty.and_then(lmsc_ir::Type::byte_size).filter(|_| !spec.is_in_place(i, i)) {
            recipe.copy(bytes.0 as usize, operand(i), result(i));
        }
    }
    Ok(recipe)
}

pub(crate) fn constant_of_shape(spec: &Spec<'_>) -> Made {
    let mut value = [0; 8];
    if let Some((_, bytes)) = spec.bytes("value")? {
        value[..bytes.len()].copy_from_slice(&bytes);
    }
    let n = count(&spec.result_dims(0)?);
    let mut recipe = Recipe::default();
    let kernel = format!("fill_{}", width(spec.result(0)?.element)?);
    recipe.each(kernel, n, vec![n.into(), u64::from_le_bytes(value).into(), result(0).into()]);
    Ok(recipe)
}

pub(crate) fn zeros(spec: &Spec<'_>) -> Made {
    let bytes = size(spec.result(0)?);
    let mut recipe = Recipe::default();
    recipe.each("fill_u8", bytes, vec![bytes.into(), 0usize.into(), result(0).into()]);
    Ok(recipe)
}

pub(crate) fn range(spec: &Spec<'_>) -> Made {
    let n = count(&spec.result_dims(0)?);
    let mut recipe = Recipe::default();
    let args = vec![n.into(), operand(0).into(), operand(2).into(), result(0).into()];
    recipe.each(format!("range_{}", number(spec.element(0)?)?), n, args);
    Ok(recipe)
}

pub(crate) fn broadcast_gradient_args(spec: &Spec<'_>) -> Made {
    let mut recipe = Recipe::default();
    for own in (0..2).filter(|&own| spec.wants(own)) {
        let (ranks, n) =
            ([own, 1 - own].map(|i| spec.dims(i).map(|d| count(&d))), count(&spec.result_dims(own)?));
        let [own_rank, other_rank] = ranks;
        let args = vec![
            own_rank?.into(),
            other_rank?.into(),
            n.into(),
            operand(own).into(),
            operand(1 - own).into(),
            result(own).into(),
        ];
        recipe.each("broadcast_axes", n.min(1), args);
    }
    Ok(recipe)
}

/// Concatenates the bytes of the elements.
pub(crate) fn sequence_construct(spec: &Spec<'_>) -> Made {
    let mut recipe = Recipe::default();
    let mut to = result(0);
    for i in 0..spec.operands.len() {
        let bytes = size(spec.tensor(i)?);
        recipe.copy(bytes, operand(i), to);
        to = to.plus::<u8>(bytes);
    }
    Ok(recipe)
}

pub(crate) fn sequence_at(spec: &Spec<'_>) -> Made {
    let elements = spec.sequence(0)?;
    let position = spec.constants(1)?.and_then(|list| list.first().copied()).unwrap_or(0);
    let at = spec.axis(position, elements.len())?;
    let from: usize = elements[..at].iter().map(size).sum();
    let mut recipe = Recipe::default();
    recipe.copy(size(&elements[at]), operand(0).plus::<u8>(from), result(0));
    Ok(recipe)
}
