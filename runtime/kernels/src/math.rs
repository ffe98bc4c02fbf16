//! Functions of one real number, for `f32` in a form that compilers turn into vector instructions.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// `f32` or `f64`, with the functions that operators use.
pub(crate) trait Real:
    crate::element::Number
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The constant, rounded.
    fn of(value: f64) -> Self;
    fn exp(self) -> Self;
    fn ln(self) -> Self;
    fn tanh(self) -> Self;
    fn erf(self) -> Self;
    fn sigmoid(self) -> Self;
    /// The distribution function of the normal distribution, and exp(-x²/2).
    fn normal(self) -> (Self, Self);
    fn root(self) -> Self;
    fn is_not_a_number(self) -> bool;
}

impl Real for f32 {
    #[inline(always)]
    fn of(value: f64) -> f32 {
        value as f32
    }

    #[inline(always)]
    fn exp(self) -> f32 {
        exp(self)
    }

    #[inline(always)]
    fn ln(self) -> f32 {
        ln(self)
    }

    #[inline(always)]
    fn tanh(self) -> f32 {
        tanh(self)
    }

    #[inline(always)]
    fn erf(self) -> f32 {
        erf(self)
    }

    #[inline(always)]
    fn sigmoid(self) -> f32 {
        sigmoid(self)
    }

    #[inline(always)]
    fn normal(self) -> (f32, f32) {
        normal(self)
    }

    #[inline(always)]
    fn root(self) -> f32 {
        self.sqrt()
    }

    #[inline(always)]
    fn is_not_a_number(self) -> bool {
        self.is_nan()
    }
}

impl Real for f64 {
    fn of(value: f64) -> f64 {
        value
    }

    fn exp(self) -> f64 {
        f64::exp(self)
    }

    fn ln(self) -> f64 {
        f64::ln(self)
    }

    fn tanh(self) -> f64 {
        f64::tanh(self)
    }

    fn erf(self) -> f64 {
        libm::erf(self)
    }

    fn sigmoid(self) -> f64 {
        1.0 / (1.0 + f64::exp(-self))
    }

    fn normal(self) -> (f64, f64) {
        (0.5 * libm::erfc(-self * std::f64::consts::FRAC_1_SQRT_2), f64::exp(self * self * -0.5))
    }

    fn root(self) -> f64 {
        self.sqrt()
    }

    fn is_not_a_number(self) -> bool {
        self.is_nan()
    }
}

/// The polynomial with these coefficients, the constant one first.
#[inline(always)]
fn polynomial<const N: usize>(x: f32, coefficients: [f32; N]) -> f32 {
    let mut sum = coefficients[N - 1];
    for &c in coefficients[..N - 1].iter().rev() {
        sum = sum * x + c;
    }
    sum
}

/// Adding and subtracting 1.5 · 2²³ rounds to the nearest integer.
const ROUND: f32 = 12_582_912.0;

/// ln 2 in two parts, of which the first has few digits, so that its multiples are exact.
const LN2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// (eʳ - 1 - r) / r² for |r| ≤ ln 2 / 2. Fitted, as the other coefficients of this file, by iteratively reweighted least squares
/// against values of 40 digits; the relative error of eʳ is 3·10⁻⁹.
const EXP: [f32; 5] = [0.499_999_94, 0.166_665_21, 0.041_668_39, 0.008_368_745, 0.001_381_454];

/// The same, with the least relative error of eʳ - 1: 1.3·10⁻⁸.
const EXP_MINUS_1: [f32; 5] = [0.499_999_97, 0.166_665_43, 0.041_667_2, 0.008_366_547, 0.001_388_251];

/// (ln(1 + f) - f + f²/2) / f³ for 1 + f from √½ to √2: the relative error of the logarithm is 6·10⁻⁹.
const LN: [f32; 8] = [
    0.333_333_3,
    -0.250_008_23,
    0.200_012_31,
    -0.166_232_51,
    0.142_015_64,
    -0.131_610_93,
    0.127_635,
    -0.076_344_38,
];

/// Φ(-t) exp(t²/2) / u, in powers of 2u - 1 for u = 1 / (1 + 0.3 t), 0 ≤ t ≤ 15: relative error 3.5·10⁻⁹.
const TAIL: [f32; 10] = [
    0.221_970_62,
    0.164_579_48,
    0.086_549_71,
    0.027_760_336,
    0.001_816_032,
    -0.002_423_492,
    -0.000_569_693_7,
    0.000_280_603_9,
    0.000_076_686_32,
    -0.000_040_283_21,
];

/// The integer nearest to x / ln 2.
#[inline(always)]
fn powers_of_2(x: f32) -> f32 {
    (x * std::f32::consts::LOG2_E + ROUND) - ROUND
}

/// x - n ln 2.
#[inline(always)]
fn reduced(x: f32, n: f32) -> f32 {
    (x - n * LN2[0]) - n * LN2[1]
}

/// The integer n, and of NaN some integer.
#[inline(always)]
fn integer(n: f32) -> i32 {
    (n + ROUND).to_bits() as i32 - ROUND.to_bits() as i32
}

/// 2 to the power n.
#[inline(always)]
fn power_of_2(n: i32) -> f32 {
    f32::from_bits(((n + 127) << 23) as u32)
}

/// p · 2ⁿ, by two factors, so that subnormal results are correct. It is NaN if p is.
#[inline(always)]
fn scaled(p: f32, n: f32) -> f32 {
    let n = integer(n);
    let half = n >> 1;
    p * power_of_2(half) * power_of_2(n - half)
}

/// eʳ for |r| ≤ ln 2 / 2.
#[inline(always)]
fn exp_reduced(r: f32) -> f32 {
    1.0 + (r + r * r * polynomial(r, EXP))
}

/// e to the power x, within one unit of the last place.
///
/// x = n ln 2 + r with |r| ≤ ln 2 / 2.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let clamped = if x < -104.0 { -104.0 } else { x };
    let clamped = if clamped > 89.0 { 89.0 } else { clamped };
    let n = powers_of_2(clamped);
    scaled(exp_reduced(reduced(clamped, n)), n)
}

/// The hyperbolic tangent, within 2.3 units of the last place: e / (e + 2) with e = exp(2|x|) - 1.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let t = 2.0 * x.abs();
    // From here on the result is 1.
    let t = if t > 18.5 { 18.5 } else { t };
    let n = powers_of_2(t);
    let r = reduced(t, n);
    let scale = power_of_2(integer(n));
    let e = scale * (r + r * r * polynomial(r, EXP_MINUS_1)) + (scale - 1.0);
    (e / (e + 2.0)).copysign(x)
}

/// 1 / (1 + exp(-x)), within 2.3 units of the last place, where it is not subnormal.
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    (if x < 0.0 { e } else { 1.0 }) / (1.0 + e)
}

/// The natural logarithm, within one unit of the last place.
///
/// x = 2ᵏ (1 + f), with 1 + f from √½ to √2.
#[inline(always)]
fn ln(x: f32) -> f32 {
    const ROOT_OF_HALF: i32 = 0x3f35_04f3;
    let is_subnormal = x < f32::MIN_POSITIVE;
    let normal = if is_subnormal { x * 8_388_608.0 } else { x };
    let bits = normal.to_bits() as i32;
    let k = bits.wrapping_sub(ROOT_OF_HALF) >> 23;
    let f = f32::from_bits(bits.wrapping_sub(k << 23) as u32) - 1.0;
    let k = k as f32 + if is_subnormal { -23.0 } else { 0.0 };
    let square = f * f;
    let rest = square * f * polynomial(f, LN) + k * LN2[1] - 0.5 * square;
    let value = (f + rest) + k * LN2[0];
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x == 0.0 { f32::NEG_INFINITY } else { value };
    if x >= 0.0 { value } else { f32::NAN }
}

/// The distribution function of the normal distribution at x, within four units of the last place, and exp(-x²/2).
#[inline(always)]
fn normal(x: f32) -> (f32, f32) {
    let t = x.abs();
    // From here on both tails are 0.
    let t = if t > 15.0 { 15.0 } else { t };
    // t² in two parts, of which the first is exact: the square of the first twelve digits of t.
    let high = f32::from_bits(t.to_bits() & 0xffff_f000);
    let low = (t + high) * (t - high) * 0.5;
    let exponent = high * high * -0.5;
    let n = powers_of_2(exponent - low);
    let e = scaled(exp_reduced(reduced(exponent, n) - low), n);
    let u = 1.0 / (1.0 + 0.3 * t);
    let tail = e * (u * polynomial(2.0 * u - 1.0, TAIL));
    (if x < 0.0 { tail } else { 1.0 - tail }, e)
}

/// The error function: absolute error below 3·10⁻⁷, relative error below 10⁻⁶.
///
/// Below 1 its Maclaurin series (DLMF 7.6.1); elsewhere the approximation 7.1.26 of Abramowitz and Stegun.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    const SERIES: [f32; 9] = [
        1.0,
        -1.0 / 3.0,
        1.0 / 10.0,
        -1.0 / 42.0,
        1.0 / 216.0,
        -1.0 / 1320.0,
        1.0 / 9360.0,
        -1.0 / 75_600.0,
        1.0 / 685_440.0,
    ];
    const FAR: [f32; 5] = [0.254_829_6, -0.284_496_74, 1.421_413_8, -1.453_152, 1.061_405_4];
    let z = x.abs();
    let square = x * x;
    let near = polynomial(square, SERIES) * z * std::f32::consts::FRAC_2_SQRT_PI;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let far = 1.0 - polynomial(t, FAR) * t * exp(-square);
    (if z < 1.0 { near } else { far }).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep() -> impl Iterator<Item = f32> {
        (-20_000..20_000).map(|i| i as f32 * 0.005).chain([1e-30, -1e-30, 0.0, -0.0, 1e-4, 0.59, 0.61])
    }

    #[test]
    fn functions_are_close_to_those_in_double() {
        for x in sweep() {
            let close = |name: &str, found: f32, exact: f64, relative: f64, absolute: f64| {
                let error = (f64::from(found) - exact).abs();
                assert!(error <= relative * exact.abs() + absolute, "{name}({x}) = {found}, not {exact}");
            };
            let wide = f64::from(x);
            if x < 88.7 {
                close("exp", exp(x), wide.exp(), 3e-7, 1.5e-45);
            }
            close("tanh", tanh(x), wide.tanh(), 4e-7, 0.0);
            close("erf", erf(x), libm::erf(wide), 1e-6, 0.0);
            close("sigmoid", x.sigmoid(), 1.0 / (1.0 + (-wide).exp()), 4e-7, 1e-38);
            if x > 0.0 {
                close("ln", ln(x), wide.ln(), 1e-7, 0.0);
                close("ln", ln(1.0 + x * 1e-3), f64::from(1.0 + x * 1e-3).ln(), 1e-7, 0.0);
            }
            let (below, density) = normal(x);
            close("normal", below, 0.5 * libm::erfc(-wide * std::f64::consts::FRAC_1_SQRT_2), 5e-7, 3e-45);
            close("density", density, (wide * wide * -0.5).exp(), 3e-7, 3e-45);
        }
    }

    #[test]
    fn extremes_are_those_of_the_standard() {
        assert_eq!((exp(f32::INFINITY), exp(f32::NEG_INFINITY)), (f32::INFINITY, 0.0));
        assert_eq!((exp(100.0), exp(-200.0), exp(0.0)), (f32::INFINITY, 0.0, 1.0));
        assert_eq!((tanh(f32::INFINITY), tanh(-1e9)), (1.0, -1.0));
        assert_eq!((erf(f32::INFINITY), erf(-50.0), erf(0.0)), (1.0, -1.0, 0.0));
        assert_eq!(
            (ln(0.0), ln(-0.0), ln(f32::INFINITY), ln(1.0)),
            (f32::NEG_INFINITY, f32::NEG_INFINITY, f32::INFINITY, 0.0)
        );
        assert_eq!(ln(1e-42), f64::from(1e-42_f32).ln() as f32, "of a subnormal number");
        assert_eq!(
            (normal(f32::INFINITY), normal(f32::NEG_INFINITY), normal(0.0)),
            ((1.0, 0.0), (0.0, 0.0), (0.5, 1.0))
        );
        assert_eq!(
            (f32::INFINITY.sigmoid(), f32::NEG_INFINITY.sigmoid(), 0.0_f32.sigmoid()),
            (1.0, 0.0, 0.5)
        );
        assert!(exp(f32::NAN).is_nan() && tanh(f32::NAN).is_nan() && erf(f32::NAN).is_nan());
        assert!(ln(f32::NAN).is_nan() && ln(-1.0).is_nan() && ln(f32::NEG_INFINITY).is_nan());
        assert!(f32::NAN.sigmoid().is_nan() && normal(f32::NAN).0.is_nan());
    }
}
