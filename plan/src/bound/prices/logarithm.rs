//! Exponentials and logarithms that are the same bits on every machine.
//!
//! The standard library's are the system's. These are of additions, products and quotients alone, and right to some twelve
//! digits.

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// By `n`, `1 / n!`.
const OF_FACTORIALS: [f64; 12] = {
    let mut terms = [1.0; 12];
    let mut n = 1;
    while n < terms.len() {
        terms[n] = terms[n - 1] / n as f64;
        n += 1;
    }
    terms
};

/// By `n`, `1 / (2·n + 1)`.
const OF_ODD: [f64; 11] = {
    let mut terms = [1.0; 11];
    let mut n = 1;
    while n < terms.len() {
        terms[n] = 1.0 / (2 * n + 1) as f64;
        n += 1;
    }
    terms
};

/// `exp(x)`; 0 where that is next to nothing, and no more than about `1e300`.
pub(super) fn exp(x: f64) -> f64 {
    if x < -690.0 {
        return 0.0;
    }
    let halvings = (x.min(690.0) * LOG2_E).round();
    let rest = x.min(690.0) - halvings * LN_2;
    // Taylor's series, of at most half of ln 2.
    let series = OF_FACTORIALS.iter().rev().fold(0.0, |sum, term| sum * rest + term);
    series * f64::from_bits(((1023 + halvings as i64) as u64) << 52)
}

/// `ln(x)` of a positive number.
pub(super) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut doublings = (bits >> 52) as f64 - 1023.0;
    let mut rest = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if rest > SQRT_2 {
        (rest, doublings) = (rest / 2.0, doublings + 1.0);
    }
    doublings * LN_2 + ln_of_one_and(rest - 1.0)
}

/// `ln(1 + x)` for `x` from -1/3 to 1.
fn ln_of_one_and(x: f64) -> f64 {
    // ln(1 + x) = 2·artanh(z) = 2·(z + z³/3 + z⁵/5 + …), of at most a third.
    let z = x / (2.0 + x);
    let square = z * z;
    2.0 * z * OF_ODD.iter().rev().fold(0.0, |sum, term| sum * square + term)
}

/// The logarithm of the sum of what two numbers are logarithms of.
pub(super) fn add(a: f64, b: f64) -> f64 {
    let (more, less) = if a > b { (a, b - a) } else { (b, a - b) };
    if less < -30.0 { more } else { more + ln_of_one_and(exp(less)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_the_system_to_eleven_digits() {
        for step in -6900..6900 {
            let x = f64::from(step) / 10.0 + 0.01;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-11, "{x}");
            let y = x.abs();
            assert!((ln(y) - y.ln()).abs() < 1e-11 * (1.0 + y.ln().abs()), "{y}");
            assert!((add(x, 0.5) - (x.max(0.5) + (-(x - 0.5).abs()).exp().ln_1p())).abs() < 1e-11, "{x}");
        }
    }
}
