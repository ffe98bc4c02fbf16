//! Constants for the computation of shapes.

use std::sync::Arc;

use half::{bf16, f16};
use lmsc_ir::{Data, ElementType, TensorType};

/// The elements of a small tensor, row-major. Its extents are those of its type.
///
/// Large tensors are never constants here: at most [`Const::MOST_INTS`] integers or [`Const::MOST_FLOATS`] floats, so neither
/// time nor memory depends on the contents of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Const {
    /// Integers and Booleans, exactly.
    Ints(Arc<[i64]>),
    /// Floats, rounded to their element type.
    Floats(Arc<[f64]>),
}

impl Const {
    /// Maximum number of integers of a constant.
    pub const MOST_INTS: u64 = 4096;
    /// Maximum number of floats of a constant: scales, ranges and fill values, no weights.
    pub const MOST_FLOATS: u64 = 256;

    /// Whether a tensor of this type may be a constant.
    pub fn may_be(ty: &TensorType) -> bool {
        let most = match ty.element {
            t if integer_range(t).is_some() => Const::MOST_INTS,
            ElementType::Float | ElementType::Double | ElementType::Float16 | ElementType::Bfloat16 => {
                Const::MOST_FLOATS
            }
            _ => return false,
        };
        ty.element_count().is_some_and(|n| n <= most)
    }

    /// The elements in `data`, unless they are too many, not available, or fewer than the type says.
    pub fn decode(ty: &TensorType, data: &Data) -> Option<Const> {
        let Data::Inline(bytes) = data else { return None };
        if !Const::may_be(ty) || ty.byte_size()?.0 != bytes.len() as u64 {
            return None;
        }
        macro_rules! ints {
            ($t:ty) => {{
                let chunks = bytes.as_chunks::<{ size_of::<$t>() }>().0;
                Const::ints(ty.element, chunks.iter().map(|c| i64::try_from(<$t>::from_le_bytes(*c)).ok()))
            }};
        }
        macro_rules! floats {
            ($t:ty) => {{
                let chunks = bytes.as_chunks::<{ size_of::<$t>() }>().0;
                Const::floats(ty.element, chunks.iter().map(|c| f64::from(<$t>::from_le_bytes(*c))))
            }};
        }
        match ty.element {
            ElementType::Bool => Const::ints(ty.element, bytes.iter().map(|&b| Some(i64::from(b != 0)))),
            ElementType::Int8 => ints!(i8),
            ElementType::Int16 => ints!(i16),
            ElementType::Int32 => ints!(i32),
            ElementType::Int64 => ints!(i64),
            ElementType::Uint8 => ints!(u8),
            ElementType::Uint16 => ints!(u16),
            ElementType::Uint32 => ints!(u32),
            ElementType::Uint64 => ints!(u64),
            ElementType::Float => floats!(f32),
            ElementType::Double => floats!(f64),
            ElementType::Float16 => floats!(f16),
            ElementType::Bfloat16 => floats!(bf16),
            _ => None,
        }
    }

    /// These integers, or `None` if one is missing or out of range for the element type.
    pub fn ints(element: ElementType, values: impl IntoIterator<Item = Option<i64>>) -> Option<Const> {
        let (least, most) = integer_range(element)?;
        let checked = values.into_iter().map(|v| v.filter(|v| (least..=most).contains(v)));
        checked.collect::<Option<Vec<i64>>>().map(|v| Const::Ints(v.into()))
    }

    /// These floats, rounded to the element type.
    pub fn floats(element: ElementType, values: impl IntoIterator<Item = f64>) -> Option<Const> {
        let round = |v: f64| match element {
            ElementType::Double => Some(v),
            ElementType::Float => Some(f64::from(v as f32)),
            ElementType::Float16 => Some(f64::from(f16::from_f64(v))),
            ElementType::Bfloat16 => Some(f64::from(bf16::from_f64(v))),
            _ => None,
        };
        values.into_iter().map(round).collect::<Option<Vec<f64>>>().map(|v| Const::Floats(v.into()))
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        match self {
            Const::Ints(v) => v.len(),
            Const::Floats(v) => v.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The integers, if these are integers.
    pub fn as_ints(&self) -> Option<&[i64]> {
        match self {
            Const::Ints(v) => Some(v),
            Const::Floats(_) => None,
        }
    }

    /// Every element as a float.
    pub(super) fn to_f64(&self) -> Vec<f64> {
        match self {
            Const::Ints(v) => v.iter().map(|&i| i as f64).collect(),
            Const::Floats(v) => v.to_vec(),
        }
    }

    /// The elements at these positions, or `None` if there is no such element.
    pub(super) fn select(&self, positions: impl IntoIterator<Item = usize>) -> Option<Const> {
        let positions = positions.into_iter();
        Some(match self {
            Const::Ints(v) => Const::Ints(positions.map(|i| v.get(i).copied()).collect::<Option<_>>()?),
            Const::Floats(v) => Const::Floats(positions.map(|i| v.get(i).copied()).collect::<Option<_>>()?),
        })
    }

    /// The elements cast to another element type, as by `Cast`.
    pub(super) fn cast(&self, to: ElementType) -> Option<Const> {
        if to == ElementType::Bool {
            let is_true: Vec<bool> = match self {
                Const::Ints(v) => v.iter().map(|&i| i != 0).collect(),
                Const::Floats(v) => v.iter().map(|&f| f != 0.0).collect(),
            };
            return Const::ints(to, is_true.into_iter().map(|b| Some(i64::from(b))));
        }
        match self {
            Const::Ints(v) if integer_range(to).is_some() => Const::ints(to, v.iter().map(|&i| Some(i))),
            Const::Floats(v) if integer_range(to).is_some() => {
                // The conversion of a float outside the range is not the same everywhere.
                let exact = |f: f64| (f.abs() < 9e15).then_some(f.trunc() as i64);
                Const::ints(to, v.iter().map(|&f| exact(f)))
            }
            _ if self.len() as u64 > Const::MOST_FLOATS => None,
            Const::Ints(v) if v.iter().any(|i| i.unsigned_abs() > 1 << 53) => None,
            _ => Const::floats(to, self.to_f64()),
        }
    }
}

/// The least and the largest value of an integer type; for unsigned 64-bit integers, the largest is that of `i64`.
pub(super) fn integer_range(element: ElementType) -> Option<(i64, i64)> {
    Some(match element {
        ElementType::Bool => (0, 1),
        ElementType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        ElementType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        ElementType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        ElementType::Int64 => (i64::MIN, i64::MAX),
        ElementType::Uint8 => (0, u8::MAX.into()),
        ElementType::Uint16 => (0, u16::MAX.into()),
        ElementType::Uint32 => (0, u32::MAX.into()),
        ElementType::Uint64 => (0, i64::MAX),
        _ => return None,
    })
}

/// For every element of a tensor of extents `to`, row-major, the position of the element of a tensor of extents
/// `from` that it reads when `from` is broadcast to `to`.
pub(super) fn broadcast_positions(from: &[u64], to: &[u64]) -> Vec<usize> {
    let strides = strides(from);
    let lead = to.len() - from.len();
    let step = |axis: usize| match axis.checked_sub(lead) {
        Some(a) if from[a] != 1 => strides[a],
        _ => 0,
    };
    let steps: Vec<usize> = (0..to.len()).map(step).collect();
    positions(to, &steps, 0)
}

/// Row-major strides, in elements. Only for tensors that may be constants.
pub(super) fn strides(dims: &[u64]) -> Vec<usize> {
    let mut strides = vec![1usize; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(dims[axis] as usize);
    }
    strides
}

/// `offset + Σ index·step` for every index of a tensor of these extents, row-major; nothing if these are more than a constant may
/// have.
pub(super) fn positions(dims: &[u64], steps: &[usize], offset: usize) -> Vec<usize> {
    let ty = TensorType::new(ElementType::Bool, dims);
    if !Const::may_be(&ty) || ty.element_count() == Some(0) {
        return Vec::new();
    }
    let mut positions = vec![offset];
    for (&dim, &step) in dims.iter().zip(steps) {
        let mut wider = Vec::with_capacity(positions.len().saturating_mul(dim as usize).min(1 << 13));
        for position in positions {
            // Wrapping: a step may represent a negative number.
            wider.extend((0..dim as usize).map(|i| position.wrapping_add(i.wrapping_mul(step))));
        }
        positions = wider;
    }
    positions
}
