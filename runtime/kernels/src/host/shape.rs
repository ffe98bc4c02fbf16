//! Views, constants, shapes as data, and sequences.

use lmsc_ir::TensorType;

use super::Made;
use crate::element::{Number, Stored, dispatch};
use crate::kernel::{Io, Kernel};
use crate::spec::{Spec, SpecError, refuse};

/// A kernel that writes known bytes.
fn known(spec: &Spec<'_>, bytes: Vec<u8>) -> Made {
    let result = spec.result(0)?;
    if size_of(result) != bytes.len() {
        return refuse(format!("result 0 is {result}; expected {} bytes", bytes.len()));
    }
    Ok(Kernel::new(move |mut io: Io<'_>| io.take::<u8>(0).copy_from_slice(&bytes)))
}

fn bytes_of(integers: &[i64]) -> Vec<u8> {
    integers.iter().flat_map(|i| i.to_le_bytes()).collect()
}

/// Refuses a result whose size differs from that of its operand.
fn expect_bytes(spec: &Spec<'_>, index: usize) -> Result<(), SpecError> {
    let operand = spec.operands.get(index).copied().flatten().map(|o| o.ty);
    let result = spec.results.get(index).copied().flatten();
    match (operand, result) {
        (Some(a), Some(b)) if a.byte_size() == b.byte_size() => Ok(()),
        (Some(a), Some(b)) => refuse(format!("result {index} is {b}, and operand {index} is {a}")),
        (None, Some(_)) => refuse(format!("operand {index} is missing")),
        (_, None) => Ok(()),
    }
}

/// Copies the operand's bytes; does nothing if the result shares its buffer.
pub(crate) fn view(spec: &Spec<'_>) -> Made {
    expect_bytes(spec, 0)?;
    if spec.is_in_place(0, 0) {
        return Ok(Kernel::new(|_| {}));
    }
    Ok(Kernel::new(|mut io: Io<'_>| super::movement::copy(io.get::<u8>(0), io.take(0))))
}

/// `PassThrough` and similar operators: each result is its operand.
pub(crate) fn views(spec: &Spec<'_>) -> Made {
    if spec.knows("non_differentiable_outputs")
        && spec.ints("non_differentiable_outputs")?.is_some_and(|list| !list.is_empty())
    {
        return refuse("attribute `non_differentiable_outputs` is not empty, which is not supported");
    }
    let pairs: Vec<bool> =
        (0..spec.results.len()).map(|i| spec.wants(i) && !spec.is_in_place(i, i)).collect();
    (0..spec.results.len()).try_for_each(|i| expect_bytes(spec, i))?;
    Ok(Kernel::new(move |mut io: Io<'_>| {
        for i in (0..pairs.len()).filter(|&i| pairs[i]) {
            super::movement::copy(io.get::<u8>(i), io.take(i));
        }
    }))
}

/// `Shape`, of the dimensions from `start` to `end`.
pub(crate) fn shape(spec: &Spec<'_>) -> Made {
    let dims = &spec.tensor(0)?.dims;
    let rank = dims.len() as i64;
    let place = |i: i64| (if i < 0 { i + rank } else { i }).clamp(0, rank) as usize;
    let (start, end) = (place(spec.int("start")?), place(spec.int_if_any("end")?.unwrap_or(rank)));
    let part: Vec<i64> = dims.get(start..end).unwrap_or_default().iter().map(|&d| d as i64).collect();
    known(spec, bytes_of(&part))
}

/// `Size`.
pub(crate) fn size(spec: &Spec<'_>) -> Made {
    known(spec, bytes_of(&[spec.dims(0)?.iter().product::<usize>() as i64]))
}

/// `Constant`, in any of its numeric attributes.
pub(crate) fn constant(spec: &Spec<'_>) -> Made {
    let bytes = if let Some((_, bytes)) = spec.bytes("value")? {
        bytes
    } else if let Some(list) = spec.floats("value_floats")? {
        list.iter().flat_map(|f| f.to_le_bytes()).collect()
    } else if let Some(list) = spec.ints("value_ints")? {
        bytes_of(list)
    } else if let Some(int) = spec.int_if_any("value_int")? {
        bytes_of(&[int])
    } else if let Some(float) = spec.float_if_any("value_float")? {
        float.to_le_bytes().to_vec()
    } else {
        return refuse("the constant is none of numbers in a dense tensor");
    };
    known(spec, bytes)
}

/// `ConstantOfShape`: zeros of type float, or the element in `value`.
pub(crate) fn constant_of_shape(spec: &Spec<'_>) -> Made {
    let value = spec.bytes("value")?.map(|(_, bytes)| bytes);
    dispatch!(width spec.result(0)?.element, T => {
        let value: T = match &value {
            None => 0,
            Some(bytes) => match bytes[..].try_into() {
                Ok(bytes) => T::from_le_bytes(bytes),
                Err(_) => return refuse("attribute `value` is not one element of the result's type"),
            },
        };
        Ok(Kernel::new(move |mut io: Io<'_>| super::movement::fill(io.take::<T>(0), value)))
    })
}

/// `Range(start, limit, delta)`: the number of elements is the result's.
pub(crate) fn range(spec: &Spec<'_>) -> Made {
    for index in 0..3 {
        spec.expect(index, spec.element(0)?)?;
        spec.expect_count(index, 1)?;
    }
    spec.expect_result(0, spec.element(0)?)?;
    if spec.int("stash_type")? != 1 {
        return refuse("attribute `stash_type` is not 1, 32-bit floats");
    }
    fn run<T: Stored<Math = M>, M: Number>(mut io: Io<'_>) {
        let (start, delta) = (io.get::<T>(0)[0].read(), io.get::<T>(2)[0].read());
        for (i, out) in io.take::<T>(0).iter_mut().enumerate() {
            *out = T::write(start.plus(M::of_f64(i as f64).times(delta)));
        }
    }
    dispatch!(number spec.element(0)?, T => Ok(Kernel::new(run::<T, <T as Stored>::Math>)))
}

/// `BroadcastGradientArgs(shape a, shape b)`: the axes along which the gradients of a and b are summed, last first.
pub(crate) fn broadcast_gradient_args(spec: &Spec<'_>) -> Made {
    (0..2).try_for_each(|i| spec.expect(i, lmsc_ir::ElementType::Int64))?;
    if spec.dims(0)?.len() != 1 || spec.dims(1)?.len() != 1 {
        return refuse("operands 0 and 1, shapes, are not both lists");
    }
    Ok(Kernel::new(|mut io: Io<'_>| {
        let shapes = [io.get::<i64>(0), io.get::<i64>(1)];
        let rank = shapes[0].len().max(shapes[1].len());
        let extent = |shape: &[i64], d: usize| (d + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
        for (operand, shape) in shapes.into_iter().enumerate() {
            let other = shapes[1 - operand];
            let repeated =
                |&d: &usize| extent(shape, d) == 1 && (extent(other, d) != 1 || d + shape.len() < rank);
            let axes = (0..rank).rev().filter(repeated);
            io.take::<i64>(operand).iter_mut().zip(axes).for_each(|(out, axis)| *out = axis as i64);
        }
    }))
}

fn size_of(ty: &TensorType) -> usize {
    ty.byte_size().map_or(0, |b| b.0 as usize)
}

/// `SequenceConstruct`: the elements one behind the other.
pub(crate) fn sequence_construct(spec: &Spec<'_>) -> Made {
    let sizes: Vec<usize> =
        (0..spec.operands.len()).map(|i| spec.tensor(i).map(size_of)).collect::<Result<_, SpecError>>()?;
    let whole =
        spec.results.first().copied().flatten().and_then(|ty| ty.byte_size()).map(|bytes| bytes.0 as usize);
    if whole != Some(sizes.iter().sum()) {
        return refuse("result 0 is not a sequence of the operands");
    }
    Ok(Kernel::new(move |mut io: Io<'_>| {
        let mut rest = io.take::<u8>(0);
        for (i, &size) in sizes.iter().enumerate() {
            let (out, tail) = rest.split_at_mut(size);
            super::movement::copy(io.get::<u8>(i), out);
            rest = tail;
        }
    }))
}

/// `SequenceAt(sequence, position)`.
pub(crate) fn sequence_at(spec: &Spec<'_>) -> Made {
    let elements = spec.sequence(0)?;
    let Some(&[position]) = spec.constants(1)?.as_deref() else {
        return refuse("operand 1 is not one integer");
    };
    let at = spec.axis(position, elements.len())?;
    let start: usize = elements[..at].iter().map(size_of).sum();
    let end = start + size_of(&elements[at]);
    if spec.result(0)? != &elements[at] {
        return refuse(format!("result 0 is {}; expected {}", spec.result(0)?, elements[at]));
    }
    Ok(Kernel::new(move |mut io: Io<'_>| super::movement::copy(&io.get::<u8>(0)[start..end], io.take(0))))
}

/// `SequenceLength`.
pub(crate) fn sequence_length(spec: &Spec<'_>) -> Made {
    known(spec, bytes_of(&[spec.sequence(0)?.len() as i64]))
}

/// A flag that is always true, such as the result of `Group`.
pub(crate) fn flag(spec: &Spec<'_>) -> Made {
    known(spec, vec![1])
}

/// `ZeroGradient(x)`: zeros.
pub(crate) fn zeros(_: &Spec<'_>) -> Made {
    Ok(Kernel::new(|mut io: Io<'_>| super::movement::fill(io.take::<u8>(0), 0)))
}
