//! Operators on images with channels last, as the ones with channels first between two transpositions: the same bits.

use std::mem::take;

use lmsc_ir::nhwc;
use lmsc_ir::{ElementType, Type};
use rayon::prelude::*;

use super::Made;
use crate::kernel::{Io, Kernel};
use crate::spec::{Operand, Spec, SpecError, refuse};

/// Alignment in bytes of the rooms.
const ALIGNMENT: usize = 64;

/// A tensor of images: their number, channels, elements of a channel, and bytes of an element.
#[derive(Clone, Copy, Debug)]
struct Images {
    count: usize,
    channels: usize,
    plane: usize,
    width: usize,
}

impl Images {
    fn of(ty: &Type) -> Result<Images, SpecError> {
        let Type::Tensor(ty) = ty else { return refuse("an image is a sequence; expected a tensor") };
        let dims: Vec<usize> = ty.dims.iter().map(|&dim| dim as usize).collect();
        let [count, space @ .., channels] = &dims[..] else {
            return refuse("an image has fewer than two dimensions");
        };
        let width = match ty.element {
            ElementType::Float => 4,
            ElementType::Int64 => 8,
            other => return refuse(format!("images of {other} are not turned here")),
        };
        Ok(Images { count: *count, channels: *channels, plane: space.iter().product(), width })
    }

    fn bytes(self) -> usize {
        self.count * self.channels * self.plane * self.width
    }

    fn room(self) -> usize {
        self.bytes().next_multiple_of(ALIGNMENT)
    }

    /// Turns `[N, C, …]` into `[N, …, C]`, or back.
    fn turn(self, from: &[u8], to: &mut [u8], to_last: bool) {
        let (rows, columns) = if to_last { (self.channels, self.plane) } else { (self.plane, self.channels) };
        let (size, width) = (rows * columns * self.width, self.width);
        if size == 0 {
            return;
        }
        to.par_chunks_mut(size).zip(from.par_chunks(size)).for_each(|(to, from)| {
            for (column, to) in to.chunks_mut(rows * width).enumerate() {
                for (row, to) in to.chunks_mut(width).enumerate() {
                    to.copy_from_slice(&from[(row * columns + column) * width..][..width]);
                }
            }
        });
    }
}

/// The kernel that `make` makes for channels first, between transpositions of the images in the workspace.
pub(crate) fn channels_last(spec: &Spec<'_>, make: fn(&Spec<'_>) -> Made) -> Made {
    let Some(form) = nhwc::of(spec.op) else { return refuse("the operator has no form with channels last") };
    let op = form.first_op();
    let turned = |list: Vec<Option<&Type>>, images: &[usize]| -> Vec<Option<Type>> {
        let turned = |(index, ty): (usize, Option<&Type>)| {
            ty.map(|ty| if images.contains(&index) { nhwc::first_type(ty) } else { ty.clone() })
        };
        list.into_iter().enumerate().map(turned).collect()
    };
    let given: Vec<Option<&Type>> = spec.operands.iter().map(|operand| operand.map(|it| it.ty)).collect();
    let images = |list: &[Option<&Type>], of: &[usize]| -> Result<Vec<(usize, Images)>, SpecError> {
        let there = of.iter().filter_map(|&index| Some((index, (*list.get(index)?)?)));
        there.map(|(index, ty)| Ok((index, Images::of(ty)?))).collect()
    };
    let (ins, outs) = (images(&given, form.operands)?, images(&spec.results, form.results)?);
    let (operands, results) =
        (turned(given.clone(), form.operands), turned(spec.results.clone(), form.results));
    let first = Spec {
        op: &op,
        opset: i64::MAX,
        operands: (operands.iter().zip(&spec.operands).enumerate())
            .map(|(index, (ty, operand))| {
                let constant = operand.and_then(|it| it.constant).filter(|_| !form.operands.contains(&index));
                ty.as_ref().map(|ty| Operand { ty, constant })
            })
            .collect(),
        results: results.iter().map(Option::as_ref).collect(),
        ..spec.clone()
    };
    let kernel = make(&first)?;
    let rooms: usize = ins.iter().chain(&outs).map(|(_, images)| images.room()).sum();
    let workspace = rooms.saturating_add(kernel.workspace().0 as usize);
    let run = move |mut io: Io<'_>, step| {
        let (mut left, rest) = io.workspace::<u8>().split_at_mut(rooms);
        let mut room = |images: Images| {
            let (room, others) = take(&mut left).split_at_mut(images.room());
            left = others;
            &mut room[..images.bytes()]
        };
        let mut given = io.operands().to_vec();
        for &(index, images) in &ins {
            let turned = room(images);
            images.turn(given[index], turned, false);
            given[index] = turned;
        }
        let mut turned: Vec<&mut [u8]> = outs.iter().map(|&(_, images)| room(images)).collect();
        let (mut wanted, mut last): (Vec<&mut [u8]>, Vec<&mut [u8]>) = (Vec::new(), Vec::new());
        let mut rooms = turned.iter_mut();
        for (index, result) in io.results().iter_mut().enumerate() {
            let result = take(result);
            match outs.iter().any(|&(of, _)| of == index).then(|| rooms.next()).flatten() {
                Some(room) => {
                    wanted.push(room);
                    last.push(result);
                }
                None => wanted.push(result),
            }
        }
        kernel.run(Io::new(&given, &mut wanted, rest), step);
        for ((&(_, images), turned), last) in outs.iter().zip(&turned).zip(last) {
            images.turn(turned, last, true);
        }
    };
    Ok(Kernel::random(run).with_workspace::<u8>(workspace))
}
