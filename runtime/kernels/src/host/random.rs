//! Random operators. The numbers that a node draws depend on its seed, the run's seed and the step, so a recomputed node draws
//! the same.

use super::{Made, each};
use crate::element::{Stored, dispatch};
use crate::kernel::{Io, Kernel, StepContext};
use crate::meaning::count;
use crate::spec::{Number, Spec, SpecError, refuse};

/// A source of random words by their index: Philox4x32-10.
///
/// # Source
/// Salmon, Moraes, Dror, Shaw, *Parallel Random Numbers: As Easy as 1, 2, 3*, SC 2011.
#[derive(Clone, Copy)]
struct Philox {
    key: [u32; 2],
    step: u64,
}

impl Philox {
    fn new(node: u64, step: StepContext) -> Philox {
        // The two seeds are mixed as SplitMix64 mixes its state.
        let mut z = node ^ step.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        Philox { key: [z as u32, (z >> 32) as u32], step: step.number }
    }

    /// The words with indices from 4 · `index` on.
    fn block(self, index: u64) -> [u32; 4] {
        let mut c = [index as u32, (index >> 32) as u32, self.step as u32, (self.step >> 32) as u32];
        let mut key = self.key;
        for _ in 0..10 {
            let a = u64::from(c[0]) * 0xd251_1f53;
            let b = u64::from(c[2]) * 0xcd9e_8d57;
            c = [(b >> 32) as u32 ^ c[1] ^ key[0], b as u32, (a >> 32) as u32 ^ c[3] ^ key[1], a as u32];
            key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
        }
        c
    }

    /// Calls `f` with the index of each element and a number in [0, 1); `start` is a multiple of 4.
    fn uniform(self, start: usize, length: usize, mut f: impl FnMut(usize, f32)) {
        for i in (0..length).step_by(4) {
            let words = self.block(((start + i) / 4) as u64);
            words.iter().take(length - i).enumerate().for_each(|(k, &w)| f(i + k, unit(w)));
        }
    }
}

/// A number in [0, 1) with 24 bits.
fn unit(word: u32) -> f32 {
    (word >> 8) as f32 / (1 << 24) as f32
}

/// The node's seed, combined with that of its attribute.
pub fn seed(spec: &Spec<'_>) -> Result<u64, SpecError> {
    // The seed of `Dropout` is an integer, that of the others a float.
    Ok(spec.seed
        ^ match spec.number("seed")? {
            None => 0,
            Some(Number::Int(seed)) => seed as u64,
            Some(Number::Float(seed)) => u64::from(seed.to_bits()),
        })
}

/// Refuses an operand that is not a scalar `float`, the ratio of dropped elements.
fn ratio(spec: &Spec<'_>, operand: usize) -> Result<(), SpecError> {
    spec.expect_count(operand, 1)?;
    spec.expect_floats([operand])
}

/// Whether the mask has the data's type, as before version 10, which had no operand that says whether it trains.
pub fn has_wide_mask(spec: &Spec<'_>) -> Result<bool, SpecError> {
    match spec.results.get(1).copied().flatten().and_then(|ty| ty.as_tensor()).map(|ty| ty.element) {
        None | Some(lmsc_ir::ElementType::Bool) => Ok(false),
        Some(lmsc_ir::ElementType::Float) if !spec.has(2) => Ok(true),
        Some(other) => refuse(format!("result 1, the mask, is {other}; this kernel makes bool")),
    }
}

/// `Dropout(x, ratio, training → y, mask)`.
pub(crate) fn dropout(spec: &Spec<'_>) -> Made {
    ratio(spec, 1)?;
    if spec.has(2) {
        spec.expect(2, lmsc_ir::ElementType::Bool)?;
        spec.expect_count(2, 1)?;
    }
    spec.expect_like(0, 0)?;
    spec.expect_result_count(1, count(&spec.dims(0)?))?;
    let old = spec.op.domain().is_empty() && spec.opset < 12;
    if old && spec.opset < 7 && !spec.flag("is_test")? {
        return refuse(
            "attribute `is_test` is 0, its default before version 7, which means training; this kernel drops from \
             version 12 on",
        );
    }
    let wide_mask = has_wide_mask(spec)?;
    let seed = seed(spec)?;
    dispatch!(@ spec.element(0)?, T, Ok(Kernel::random(move |mut io: Io<'_>, step| {
        let x = io.get::<T>(0);
        let ratio = io.get::<f32>(1).first().copied().unwrap_or(0.5);
        let training = io.get::<u8>(2).first().is_some_and(|&t| t != 0);
        let (y, mask) = (io.take::<T>(0), io.take::<u8>(1));
        if !training || ratio == 0.0 {
            super::movement::copy(x, y);
            return if wide_mask {
                super::movement::fill(bytemuck::cast_slice_mut::<u8, f32>(mask), 1.0)
            } else {
                super::movement::fill(mask, 1)
            };
        }
        let source = Philox::new(seed, step);
        let scale = 1.0 / (1.0 - ratio);
        each::parts(y, |start, y| {
            let x = &x[start..];
            source.uniform(start, y.len(), |i, u| y[i] = T::write(if u >= ratio { x[i].read() * scale } else { 0.0 }));
        });
        each::parts(mask, |start, mask| {
            source.uniform(start, mask.len(), |i, u| mask[i] = u8::from(u >= ratio));
        });
    })), [Float f32, Float16 half::f16, Bfloat16 half::bf16])
}

/// `DropoutGrad(dY, mask, ratio)`. With a ratio of 0 the mask is ignored.
pub(crate) fn dropout_grad(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0])?;
    spec.expect(1, lmsc_ir::ElementType::Bool)?;
    ratio(spec, 2)?;
    spec.expect_dims(1, &spec.dims(0)?)?;
    spec.expect_like(0, 0)?;
    Ok(Kernel::new(|mut io: Io<'_>| {
        let (dy, mask) = (io.get::<f32>(0), io.get::<u8>(1));
        let ratio = io.get::<f32>(2).first().copied().unwrap_or(0.5);
        if ratio == 0.0 {
            return super::movement::copy(dy, io.take(0));
        }
        let scale = 1.0 / (1.0 - ratio);
        each::parts(io.take::<f32>(0), |start, dx| {
            let each = dx.iter_mut().zip(&dy[start..]).zip(&mask[start..]);
            each.for_each(|((dx, dy), &kept)| *dx = if kept != 0 { dy * scale } else { 0.0 });
        });
    }))
}

/// `RandomUniform` and `RandomUniformLike`.
pub(crate) fn uniform(spec: &Spec<'_>) -> Made {
    expect_float_result(spec)?;
    let (low, high, seed) = (spec.float("low")?, spec.float("high")?, seed(spec)?);
    Ok(Kernel::random(move |mut io: Io<'_>, step| {
        let source = Philox::new(seed, step);
        each::parts(io.take::<f32>(0), |start, out| {
            source.uniform(start, out.len(), |i, u| out[i] = low + (high - low) * u);
        });
    }))
}

/// `RandomNormal` and `RandomNormalLike` (Box, Muller, *A Note on the Generation of Random Normal Deviates*, 1958).
pub(crate) fn normal(spec: &Spec<'_>) -> Made {
    expect_float_result(spec)?;
    let (mean, scale, seed) = (spec.float("mean")?, spec.float("scale")?, seed(spec)?);
    Ok(Kernel::random(move |mut io: Io<'_>, step| {
        let source = Philox::new(seed, step);
        each::parts(io.take::<f32>(0), |start, out| {
            for (i, out) in out.chunks_mut(2).enumerate() {
                let words = source.block(((start / 2 + i) / 2) as u64);
                let [a, b] = if i % 2 == 0 { [words[0], words[1]] } else { [words[2], words[3]] };
                let radius = (-2.0 * f64::from(1.0 - unit(a)).ln()).sqrt();
                let angle = std::f64::consts::TAU * f64::from(unit(b));
                for (out, z) in out.iter_mut().zip([radius * angle.cos(), radius * angle.sin()]) {
                    *out = (f64::from(mean) + f64::from(scale) * z) as f32;
                }
            }
        });
    }))
}

fn expect_float_result(spec: &Spec<'_>) -> Result<(), SpecError> {
    match spec.result(0)?.element {
        lmsc_ir::ElementType::Float => Ok(()),
        other => refuse(format!("result 0 is {other}; this kernel makes float")),
    }
}

/// `Bernoulli(p)`: 1 with probability p.
pub(crate) fn bernoulli(spec: &Spec<'_>) -> Made {
    spec.expect_floats([0])?;
    expect_float_result(spec)?;
    spec.expect_result_count(0, count(&spec.dims(0)?))?;
    let seed = seed(spec)?;
    Ok(Kernel::random(move |mut io: Io<'_>, step| {
        let p = io.get::<f32>(0);
        let source = Philox::new(seed, step);
        each::parts(io.take::<f32>(0), |start, out| {
            source.uniform(start, out.len(), |i, u| out[i] = f32::from(u8::from(u < p[start + i])));
        });
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of the paper's reference implementation.
    #[test]
    fn words_are_those_of_the_reference() {
        let zero = Philox { key: [0; 2], step: 0 };
        assert_eq!(zero.block(0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = Philox { key: [u32::MAX; 2], step: u64::MAX };
        assert_eq!(ones.block(u64::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }
}
