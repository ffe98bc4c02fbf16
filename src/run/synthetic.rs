//! Random data for inputs without a file: small numbers, the same for the same name and seed.

use lmsc_ir::rng::{Rng, Source};
use lmsc_ir::{ElementType, TensorType, Type};

/// Bytes for an input of this name and type, chosen so that a training step computes meaningful values: variances
/// of 1, moments of 0, a small learning rate, flags that are set, labels and indices below 2, all other numbers
/// small.
pub fn synthetic(name: &str, ty: &Type, seed: u64) -> Vec<u8> {
    let hash =
        name.bytes().fold(seed ^ 0x9e37_79b9, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let mut rng = Rng::new(hash);
    match ty {
        Type::Tensor(tensor) => one(name, tensor, &mut rng),
        Type::Sequence(list) => list.iter().flat_map(|tensor| one(name, tensor, &mut rng)).collect(),
    }
}

/// The value of every element of a float input with this name; `None` if the elements are random.
pub(crate) fn fixed(name: &str) -> Option<f32> {
    match () {
        () if ends_in(name, &["running_var", "saved_var"]) => Some(1.0),
        () if ends_in(name, &[".exp_avg", ".exp_avg_sq"]) || is_of_optax(name) => Some(0.0),
        () if ends_in(name, &["learning_rate", "lr"]) => Some(1e-3),
        () => None,
    }
}

/// Whether it is called like a moment that an optimizer of optax keeps for a parameter, or like its count: `s[0].mu['w']`.
fn is_of_optax(name: &str) -> bool {
    [".mu", ".nu", ".trace", ".count"]
        .iter()
        .any(|field| name.split(field).skip(1).any(|rest| rest.is_empty() || rest.starts_with(['[', '.'])))
}

fn ends_in(name: &str, ends: &[&str]) -> bool {
    ends.iter().any(|end| name.ends_with(end))
}

fn one(name: &str, ty: &TensorType, rng: &mut Rng) -> Vec<u8> {
    let size = ty.byte_size().unwrap_or_default().0 as usize;
    let is_count = ends_in(name, &["step"]);
    let fixed = fixed(name);
    // 24 bits, as a number between -0.05 and 0.05.
    let mut number = || fixed.unwrap_or_else(|| 0.1 * ((rng.word() >> 40) as f32 / (1 << 24) as f32 - 0.5));
    if fixed == Some(0.0) {
        return vec![0; size];
    }
    match ty.element {
        ElementType::Float => each(size, || number().to_le_bytes()),
        ElementType::Double => each(size, || f64::from(number()).to_le_bytes()),
        // The upper half of a float.
        ElementType::Bfloat16 => each(size, || ((number().to_bits() >> 16) as u16).to_le_bytes()),
        // Between 0.03 and 0.06, of either sign.
        ElementType::Float16 => each(size, || {
            let bits = number().to_bits();
            ((bits >> 31 << 15 | 0x2800 | bits & 0x3ff) as u16).to_le_bytes()
        }),
        ElementType::Bool => vec![1; size],
        ElementType::Int64 | ElementType::Uint64 if is_count => each(size, || 1_u64.to_le_bytes()),
        ElementType::Int64 | ElementType::Uint64 => each(size, || (rng.word() & 1).to_le_bytes()),
        ElementType::Int32 | ElementType::Uint32 => each(size, || ((rng.word() & 1) as u32).to_le_bytes()),
        _ => vec![0; size],
    }
}

/// `size` elements of `WIDTH` bytes each.
fn each<const WIDTH: usize>(size: usize, mut next: impl FnMut() -> [u8; WIDTH]) -> Vec<u8> {
    let mut bytes = vec![0; size];
    bytes.chunks_exact_mut(WIDTH).for_each(|element| element.copy_from_slice(&next()));
    bytes
}
