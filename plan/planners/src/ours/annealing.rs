//! Shared by the searches that use simulated annealing.

use lmsc_ir::rng::{Rng, Source};
use lmsc_schedule::tuned::Tunable;

/// Divisors of the makespan, or of the time of all operators, that give the initial temperatures of walks. The cost of one more
/// recomputed operator lies within this range.
pub(super) const TEMPERATURES: Tunable<[u64; 4]> = Tunable::new([100, 300, 1000, 4000]);

/// The temperature at a step: it falls linearly to zero.
pub(super) fn cooled(hottest: u64, step: usize, steps: usize) -> u64 {
    (u128::from(hottest) * (steps - step) as u128 / steps as u128) as u64
}

/// The accepted increase at this temperature: exponentially distributed with this mean.
pub(super) fn uphill(heat: u64, rng: &mut Rng) -> u64 {
    ((u128::from(heat) * u128::from(exponential(rng.word()))) >> 20) as u64
}

/// An exponentially distributed number of mean 1, in units of 2⁻²⁰, from a uniform word.
///
/// In integers, because the last bits of a logarithm differ between machines. -log₂ of the word as a fraction is the number
/// of leading zeros plus one, minus the logarithm of the remaining mantissa, which is approximated linearly.
fn exponential(word: u64) -> u64 {
    const LN_2: u64 = 726_817;
    let zeros = u64::from(word.leading_zeros());
    let rest = word.checked_shl(zeros as u32 + 1).unwrap_or(0) >> 44;
    ((((zeros + 1) << 20) - rest) * LN_2) >> 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_numbers_have_mean_and_variance_one() {
        let mut rng = Rng::new(7);
        let numbers: Vec<f64> =
            (0..100_000).map(|_| exponential(rng.word()) as f64 / (1 << 20) as f64).collect();
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / numbers.len() as f64;
        assert!((mean - 1.0).abs() < 0.06 && (variance - 1.0).abs() < 0.06, "{mean} {variance}");
        assert_eq!(exponential(u64::MAX), 0);
        assert!(exponential(0) > 44 << 20);
    }
}
