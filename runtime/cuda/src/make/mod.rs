//! Recipes of operators: one file per family of operators.
//!
//! The host's constructor has accepted the node before, so these constructors refuse only forms that this device lacks.

pub(super) mod attention;
pub(super) mod each;
pub(super) mod index;
pub(super) mod loss;
pub(super) mod movement;
pub(super) mod normalize;
pub(super) mod optimizer;
pub(super) mod pool;
pub(super) mod product;
pub(super) mod random;
pub(super) mod reduce;
pub(super) mod rnn;
pub(super) mod shape;
mod sums;

use lmsc_ir::{ElementType, nhwc};
use lmsc_kernels::spec::{SpecError, refuse};

use super::engines::ChannelOrder;
use super::recipe::Recipe;

/// The result of a constructor of the table.
pub(super) type Made = Result<Recipe, SpecError>;

/// The extents of an image with channels first.
fn image(dims: Vec<usize>, order: ChannelOrder) -> Vec<usize> {
    match order {
        ChannelOrder::First => dims,
        ChannelOrder::Last => nhwc::permuted(&dims, &nhwc::to_first(dims.len())),
    }
}

/// Suffix of the name of a kernel that computes with elements of this type.
fn number(element: ElementType) -> Result<&'static str, SpecError> {
    Ok(match element {
        ElementType::Float => "f32",
        ElementType::Double => "f64",
        ElementType::Int64 => "i64",
        ElementType::Int32 => "i32",
        ElementType::Int8 => "i8",
        ElementType::Uint8 => "u8",
        other => return refuse(format!("CUDA devices have no kernel for elements of type {other}")),
    })
}

/// A kernel's name of this element type.
fn element(element: ElementType) -> Result<&'static str, SpecError> {
    if element == ElementType::Bool { Ok("u8") } else { number(element) }
}

/// A casting kernel's name of this element type.
fn castable(of: ElementType) -> Result<&'static str, SpecError> {
    match of {
        ElementType::Float16 => Ok("f16"),
        ElementType::Bfloat16 => Ok("bf16"),
        of => element(of),
    }
}

/// Suffix of the name of a kernel that moves elements of this type.
fn width(element: ElementType) -> Result<&'static str, SpecError> {
    Ok(match element.bits() {
        8 => "u8",
        16 => "u16",
        32 => "u32",
        64 => "u64",
        _ => return refuse(format!("CUDA devices have no kernel for elements of type {element}")),
    })
}
