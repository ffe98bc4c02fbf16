//! Operators on short floats with kernels for `f32`: operands are widened to `f32`, and results rounded, once; piece by piece where
//! the operator can be cut.

mod cuts;
mod pieces;

pub use pieces::{ShortPiece, contiguous};

use std::mem::take;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use lmsc_ir::{ElementType, TensorType, Type};

use crate::host::{GRAIN, Made, chunks};
use crate::kernel::{Io, Kernel};
use crate::spec::{Operand, Spec};

/// Alignment in bytes of the rooms.
const ALIGNMENT: usize = 64;

/// A tensor of short floats.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    /// The type of its elements.
    pub element: ElementType,
    /// Number of elements.
    pub elements: usize,
}

impl Short {
    /// A tensor of short floats, or a sequence of such tensors, whose elements follow each other.
    fn of(ty: &Type) -> Option<Short> {
        let (element, elements) = match ty {
            Type::Tensor(tensor) => (tensor.element, tensor.element_count()?),
            Type::Sequence(list) => {
                let element = list.first()?.element;
                let sum = |sum: u64, ty: &TensorType| {
                    sum.checked_add(ty.element_count().filter(|_| ty.element == element)?)
                };
                (element, list.iter().try_fold(0, sum)?)
            }
        };
        let elements = usize::try_from(elements).ok()?;
        matches!(element, ElementType::Float16 | ElementType::Bfloat16).then_some(Short { element, elements })
    }

    /// Bytes of its elements as `f32`.
    fn room(self) -> usize {
        self.elements.saturating_mul(size_of::<f32>()).next_multiple_of(ALIGNMENT)
    }

    fn widen(self, from: &[u8], to: &mut [f32]) {
        chunks(to, GRAIN, 1, &|i, to| self.widen_here(&from[2 * i * GRAIN..][..2 * to.len()], to));
    }

    /// The same on the calling thread.
    fn widen_here(self, from: &[u8], to: &mut [f32]) {
        match self.element {
            // An empty slice need not be aligned.
            _ if to.is_empty() => {}
            ElementType::Float16 => bytemuck::cast_slice::<_, f16>(from).convert_to_f32_slice(to),
            _ => bytemuck::cast_slice::<_, bf16>(from).convert_to_f32_slice(to),
        }
    }

    fn round(self, from: &[f32], to: &mut [u8]) {
        chunks(to, 2 * GRAIN, 1, &|i, to| self.round_here(&from[i * GRAIN..][..to.len() / 2], to));
    }

    fn round_here(self, from: &[f32], to: &mut [u8]) {
        match self.element {
            _ if to.is_empty() => {}
            ElementType::Float16 => bytemuck::cast_slice_mut::<_, f16>(to).convert_from_f32_slice(from),
            _ => bytemuck::cast_slice_mut::<_, bf16>(to).convert_from_f32_slice(from),
        }
    }
}

/// A node with `f32` in place of its short floats.
#[derive(Debug)]
pub struct Wide {
    /// For each operand, the tensor that is widened.
    pub operands: Vec<Option<Short>>,
    /// For each result, the tensor that is rounded.
    pub results: Vec<Option<Short>>,
    types: [Vec<Option<Type>>; 2],
    constants: Vec<Option<Vec<u8>>>,
}

impl Wide {
    /// The wide form of a node; none if it has no short floats.
    pub fn of(spec: &Spec<'_>) -> Option<Wide> {
        let given = |operand: &Option<Operand<'_>>| Short::of(operand.as_ref()?.ty);
        let operands: Vec<_> = spec.operands.iter().map(given).collect();
        // A result that is written in place may be unused.
        let overwritten = |(operand, _): &(usize, usize)| Some(spec.operands.get(*operand)?.as_ref()?.ty);
        let given_at = |result| spec.in_place.iter().find(|pair| pair.1 == result).and_then(overwritten);
        let last = spec.in_place.iter().map(|pair| pair.1 + 1).max().unwrap_or(0);
        let asked_for = |result| spec.results.get(result).copied().flatten();
        let of_result =
            |result| asked_for(result).or_else(|| given_at(result).filter(|ty| Short::of(ty).is_some()));
        let result_types: Vec<Option<&Type>> = (0..last.max(spec.results.len())).map(of_result).collect();
        let results: Vec<_> = result_types.iter().map(|ty| Short::of((*ty)?)).collect();
        let wide = |ty: &Type, short: Option<Short>| match (ty, short) {
            (Type::Tensor(tensor), Some(_)) => {
                Type::Tensor(TensorType::new(ElementType::Float, &*tensor.dims))
            }
            (Type::Sequence(list), Some(_)) => {
                Type::Sequence(list.iter().map(|ty| TensorType::new(ElementType::Float, &*ty.dims)).collect())
            }
            _ => ty.clone(),
        };
        let constant = |(operand, short): (&Option<Operand<'_>>, &Option<Short>)| {
            let (short, bytes) = ((*short)?, operand.as_ref()?.constant?);
            let mut room = vec![0f32; short.elements];
            short.widen(bytes, &mut room);
            Some(room.into_iter().flat_map(f32::to_le_bytes).collect())
        };
        let constants = spec.operands.iter().zip(&operands).map(constant).collect();
        let of_operands = spec.operands.iter().zip(&operands).map(|(o, s)| Some(wide(o.as_ref()?.ty, *s)));
        let of_results = result_types.iter().zip(&results).map(|(ty, s)| Some(wide((*ty)?, *s)));
        let types = [of_operands.collect(), of_results.collect()];
        let is_short = operands.iter().chain(&results).any(Option::is_some);
        is_short.then_some(Wide { operands, results, types, constants })
    }

    /// The node with `f32` in place of short floats; none of the `f32` tensors is written in place.
    pub fn spec<'a>(&'a self, spec: &Spec<'a>) -> Spec<'a> {
        let [operands, results] = &self.types;
        let mut wide = spec.clone();
        for (index, operand) in wide.operands.iter_mut().enumerate() {
            if let (Some(operand), Some(ty)) = (operand, &operands[index]) {
                operand.ty = ty;
                operand.constant = self.constants[index].as_deref().or(operand.constant);
            }
        }
        wide.results = results.iter().map(Option::as_ref).collect();
        wide.in_place.retain(|&(operand, result)| !self.is_short(operand, result));
        wide
    }

    /// Whether the operand or the result is short.
    pub fn is_short(&self, operand: usize, result: usize) -> bool {
        let is = |list: &[Option<Short>], index| matches!(list.get(index), Some(Some(_)));
        is(&self.operands, operand) || is(&self.results, result)
    }
}

/// The kernel of a node, made by `make` for `f32` and wrapped; none if the node has no short floats.
pub(crate) fn widened(spec: &Spec<'_>, make: fn(&Spec<'_>) -> Made) -> Option<Made> {
    let wide = Wide::of(spec)?;
    Some(make(&wide.spec(spec)).map(|kernel| {
        let cut = pieces::piecewise(spec, &wide, &kernel, make, pieces::PIECE);
        cut.unwrap_or_else(|| around(kernel, &wide, &spec.in_place))
    }))
}

fn around(kernel: Kernel, wide: &Wide, in_place: &[(usize, usize)]) -> Kernel {
    // By widened operand: its index, the tensor, and the result whose buffer it is in.
    let operands: Vec<(usize, Short, Option<usize>)> = (wide.operands.iter().enumerate())
        .filter_map(|(index, short)| {
            let result = in_place.iter().find(|pair| pair.0 == index).map(|pair| pair.1);
            Some((index, (*short)?, result))
        })
        .collect();
    let results: Vec<(usize, Short)> =
        (wide.results.iter().enumerate()).filter_map(|(index, short)| Some((index, (*short)?))).collect();
    let shorts = operands.iter().map(|&(_, short, _)| short).chain(results.iter().map(|&(_, short)| short));
    let rooms: usize = shorts.map(Short::room).fold(0, usize::saturating_add);
    let workspace = rooms.saturating_add(kernel.workspace().0 as usize);
    let check = kernel.own_check();
    let run = move |mut io: Io<'_>, step| {
        let (mut left, rest) = io.workspace::<u8>().split_at_mut(rooms);
        let mut room = |short: Short| {
            let (room, others) = take(&mut left).split_at_mut(short.room());
            left = others;
            match short.elements {
                0 => &mut [],
                elements => &mut bytemuck::cast_slice_mut::<_, f32>(room)[..elements],
            }
        };
        let mut given = io.operands().to_vec();
        for &(index, short, in_result) in &operands {
            let wide = room(short);
            match in_result {
                Some(result) => short.widen(io.peek(result), wide),
                None => short.widen(given[index], wide),
            }
            given[index] = bytemuck::cast_slice(wide);
        }
        let mut rounded: Vec<&mut [f32]> = results.iter().map(|&(_, short)| room(short)).collect();
        let (mut wanted, mut short): (Vec<&mut [u8]>, Vec<&mut [u8]>) = (Vec::new(), Vec::new());
        let mut wide = rounded.iter_mut();
        for (index, result) in io.results().iter_mut().enumerate() {
            let result = take(result);
            match results.iter().any(|&(of, _)| of == index).then(|| wide.next()).flatten() {
                Some(wide) => {
                    wanted.push(bytemuck::cast_slice_mut(wide));
                    short.push(result);
                }
                None => wanted.push(result),
            }
        }
        kernel.run(Io::new(&given, &mut wanted, rest), step);
        for ((&(_, of), wide), short) in results.iter().zip(&rounded).zip(short) {
            of.round(wide, short);
        }
    };
    Kernel::random(run).with_workspace::<u8>(workspace).checked_as(check)
}
