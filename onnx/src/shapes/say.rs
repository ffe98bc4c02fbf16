//! Phrases of the rules' messages, and the refusal of invalid axes and extents.

use std::fmt::Display;

use lmsc_ir::{Attr, Type};

use super::{Cx, Refusal, wrong};

impl Cx<'_> {
    /// The operand by position and name: ``operand 1 `w` ``.
    pub(super) fn called(&self, index: usize) -> String {
        match self.operand(index) {
            Some(operand) => format!("operand {index} `{}`", operand.name),
            None => format!("operand {index}"),
        }
    }

    /// The operand by position, name and type: ``operand 1 `w` (float[4,3,3,3])``.
    pub(super) fn typed(&self, index: usize) -> String {
        match self.operand(index).map(|o| o.ty) {
            Some(Type::Tensor(ty)) => format!("{} ({ty})", self.called(index)),
            Some(Type::Sequence(elements)) => {
                format!(
                    "{} (a sequence of {})",
                    self.called(index),
                    lmsc_ir::words::count(elements.len(), "tensor")
                )
            }
            None => self.called(index),
        }
    }

    /// Refuses an operand whose extents differ from these; it may be left out.
    pub(super) fn expect(&self, index: usize, dims: &[u64]) -> Result<(), Refusal> {
        match self.operand(index) {
            Some(operand) if operand.ty.as_tensor().is_none_or(|ty| ty.dims != dims) => wrong(format!(
                "{} does not fit the others; expected the extents {}",
                self.typed(index),
                show(dims)
            )),
            _ => Ok(()),
        }
    }

    /// Refuses an operand that does not have exactly one element; it may be left out.
    pub(super) fn expect_one(&self, index: usize) -> Result<(), Refusal> {
        let one = |ty: &Type| ty.as_tensor().is_some_and(|ty| ty.element_count() == Some(1));
        match self.operand(index) {
            Some(operand) if !one(operand.ty) => wrong(format!("{} has not one element", self.typed(index))),
            _ => Ok(()),
        }
    }

    /// Refuses an operand that does not broadcast to these extents; it may be left out.
    pub(super) fn expect_broadcast(&self, index: usize, dims: &[u64]) -> Result<(), Refusal> {
        let Some(own) = self.maybe(index).map(|ty| &*ty.dims) else { return Ok(()) };
        if super::broadcast(&[dims, own]).is_ok_and(|both| both == dims) {
            Ok(())
        } else {
            wrong(format!("{} does not broadcast to {}", self.typed(index), show(dims)))
        }
    }

    /// The attribute if it is set, or else the operand, as [`Cx::int_list_or_ints`] reads them.
    pub(super) fn attribute_or(&self, name: &str, index: usize) -> String {
        if self.says(name) { format!("attribute `{name}`") } else { self.called(index) }
    }

    /// The axis that the attribute `axis` names, counted from the front of the operand.
    pub(super) fn axis(&self, index: usize) -> Result<usize, Refusal> {
        self.axis_of(self.dims(index)?.len(), &format_args!("operand {index}"))
    }

    /// The same for a tensor of this rank, named `of` in messages.
    pub(super) fn axis_of(&self, rank: usize, of: &dyn Display) -> Result<usize, Refusal> {
        let default = if self.says("axis") { "" } else { ", by default," };
        let source = || format!("attribute `axis`{default}");
        axis(self.int("axis")?, rank, of, source)
    }

    /// The operand's integers as extents; they are required.
    pub(super) fn extents(&self, index: usize) -> Result<Vec<u64>, Refusal> {
        extents(self.need_ints(index)?, || self.called(index))
    }
}

/// The kind of an attribute's value.
pub(super) fn kind(attr: &Attr) -> &'static str {
    match attr {
        Attr::Int(_) => "an integer",
        Attr::Ints(_) => "a list of integers",
        Attr::Float(_) => "a float",
        Attr::Floats(_) => "a list of floats",
        Attr::String(_) => "a string",
        Attr::Strings(_) => "a list of strings",
        Attr::Tensor(..) => "a tensor",
        Attr::Opaque(_) => "a graph, a sparse tensor or a type",
    }
}

/// `[2,3]`; of a long list only the beginning.
pub(super) fn show<T: Display>(values: &[T]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = values.iter().take(SHOWN).map(T::to_string).collect();
    match values.len().saturating_sub(SHOWN) {
        0 => format!("[{}]", shown.join(",")),
        more => format!("[{},… {more} more]", shown.join(",")),
    }
}

/// The axis counted from the front of a tensor of this rank, named `of` in messages; `source` names its origin.
pub(super) fn axis(
    axis: i64,
    rank: usize,
    of: &dyn Display,
    source: impl FnOnce() -> String,
) -> Result<usize, Refusal> {
    let signed = rank as i64;
    if (-signed..signed).contains(&axis) {
        return Ok((if axis < 0 { axis + signed } else { axis }) as usize);
    }
    wrong(match rank {
        0 => format!("{} names axis {axis}, but {of} is a scalar, which has none", source()),
        _ => format!(
            "{} names axis {axis}, but {of} has rank {rank}; write {} to {}",
            source(),
            -signed,
            signed - 1
        ),
    })
}

/// The axes counted from the front, as a mask; a repeated axis is an error.
pub(super) fn axis_mask(
    axes: &[i64],
    rank: usize,
    of: &dyn Display,
    source: impl Fn() -> String,
) -> Result<Vec<bool>, Refusal> {
    let mut mask = vec![false; rank];
    for &a in axes {
        if std::mem::replace(&mut mask[axis(a, rank, of, &source)?], true) {
            return wrong(format!("{} names axis {a} twice", source()));
        }
    }
    Ok(mask)
}

/// The integer as an extent; `source` names its origin.
pub(super) fn extent(value: i64, source: impl FnOnce() -> String) -> Result<u64, Refusal> {
    u64::try_from(value).or_else(|_| wrong(format!("{} holds {value}; extents are at least 0", source())))
}

/// The integers as extents; `source` names their origin.
pub(super) fn extents(values: &[i64], source: impl Fn() -> String) -> Result<Vec<u64>, Refusal> {
    values.iter().map(|&v| extent(v, &source)).collect()
}

/// A computed extent of result 0.
pub(super) fn result_extent(axis: usize, value: i128) -> Result<u64, Refusal> {
    match u64::try_from(value) {
        Ok(value) if i64::try_from(value).is_ok() => Ok(value),
        Ok(value) => too_long(axis, value),
        Err(_) if value < 0 => {
            wrong(format!("result 0 would have extent {value} on axis {axis}; extents are at least 0"))
        }
        Err(_) => too_long(axis, value),
    }
}

fn too_long<T>(axis: usize, value: impl Display) -> Result<T, Refusal> {
    wrong(format!("result 0 would have extent {value} on axis {axis}; extents are less than 2^63"))
}
