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
    fn root(self) -> Self;
    fn is_not_a_number(self) -> bool;

    fn sigmoid(self) -> Self {
        Self::ONE / (Self::ONE + Real::exp(-self))
    }
}

impl Real for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }

    fn exp(self) -> f32 {
        exp(self)
    }

    fn ln(self) -> f32 {
        f32::ln(self)
    }

    fn tanh(self) -> f32 {
        tanh(self)
    }

    fn erf(self) -> f32 {
        erf(self)
    }

    fn root(self) -> f32 {
        self.sqrt()
    }

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

    fn root(self) -> f64 {
        self.sqrt()
    }

    fn is_not_a_number(self) -> bool {
        self.is_nan()
    }
}

/// e to the power x, within two units of the last place.
///
/// x = n ln 2 + r with |r| ≤ ln 2 / 2, where e to the power r is Taylor's polynomial of degree 7, whose remainder is below 2⁻²⁷.
/// 2 to the power n is computed as two factors, so that subnormal results are correct.
#[inline]
pub(crate) fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Adding and subtracting 1.5 · 2²³ rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let clamped = if x < -104.0 { -104.0 } else { x };
    let clamped = if clamped > 89.0 { 89.0 } else { clamped };
    let n = (clamped * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
    let mut p = 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    // NaN becomes some integer here, but `p` stays NaN.
    let n = (n + ROUND).to_bits() as i32 - ROUND.to_bits() as i32;
    let half = n >> 1;
    let power = |n: i32| f32::from_bits(((n + 127) << 23) as u32);
    p * power(half) * power(n - half)
}

/// The hyperbolic tangent, within a few units of the last place.
///
/// Near 0 the continued fraction of Lambert (DLMF 4.39.1), cut off after its fifth denominator; elsewhere
/// 1 - 2 / (exp(2|x|) + 1).
#[inline]
pub(crate) fn tanh(x: f32) -> f32 {
    let square = x * x;
    let near = x * (10_395.0 + square * (1260.0 + square * 21.0))
        / (10_395.0 + square * (4725.0 + square * (210.0 + square)));
    let far = 1.0 - 2.0 / (exp(2.0 * x.abs()) + 1.0);
    if x.abs() < 0.6 { near } else { far.copysign(x) }
}

/// The error function: absolute error below 3·10⁻⁷, relative error below 10⁻⁶.
///
/// Below 1 its Maclaurin series (DLMF 7.6.1); elsewhere the approximation 7.1.26 of Abramowitz and Stegun.
#[inline]
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
    let z = x.abs();
    let square = x * x;
    let mut near = SERIES[8];
    for &c in SERIES[..8].iter().rev() {
        near = near * square + c;
    }
    near = near * z * std::f32::consts::FRAC_2_SQRT_PI;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let poly = ((((1.061_405_4 * t - 1.453_152) * t + 1.421_413_8) * t - 0.284_496_74) * t + 0.254_829_6) * t;
    let far = 1.0 - poly * exp(-square);
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
        }
    }

    #[test]
    fn extremes_are_those_of_the_standard() {
        assert_eq!((exp(f32::INFINITY), exp(f32::NEG_INFINITY)), (f32::INFINITY, 0.0));
        assert_eq!((exp(100.0), exp(-200.0), exp(0.0)), (f32::INFINITY, 0.0, 1.0));
        assert_eq!((tanh(f32::INFINITY), tanh(-1e9)), (1.0, -1.0));
        assert_eq!((erf(f32::INFINITY), erf(-50.0), erf(0.0)), (1.0, -1.0, 0.0));
        assert!(exp(f32::NAN).is_nan() && tanh(f32::NAN).is_nan() && erf(f32::NAN).is_nan());
    }
}
