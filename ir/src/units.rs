//! Units that are types: a number of bytes is a [`Bytes`], not a `u64`.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

/// A number of bytes. Additions saturate.
///
/// Written in binary units (`20.25 MiB`); read with binary (`KiB`, `MiB`, `GiB`, `TiB`) or decimal
/// (`kB`, `MB`, `GB`, `TB`) units, or none.
///
/// ```
/// use lmsc_ir::Bytes;
/// assert_eq!("16GiB".parse::<Bytes>().unwrap(), Bytes(16 << 30));
/// assert_eq!("1.5 MB".parse::<Bytes>().unwrap(), Bytes(1_500_000));
/// assert_eq!(Bytes(20 * 1048576 + 262144).to_string(), "20.25 MiB");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// The difference, or zero if `other` is larger.
    pub fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl Bytes {
    /// The number in the largest unit of which it has one, with at most two digits after the point, which may be rounded up.
    fn in_words(self, up: bool) -> String {
        const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
        let mut unit = 0;
        let mut scaled = self.0 as f64;
        while scaled >= 1024.0 && unit + 1 < UNITS.len() {
            scaled /= 1024.0;
            unit += 1;
        }
        let scaled = if up { (scaled * 100.0).ceil() / 100.0 } else { scaled };
        let digits = format!("{scaled:.2}");
        let digits = match digits.split_once('.') {
            Some((whole, "00")) => whole,
            _ => digits.strip_suffix('0').unwrap_or(&digits),
        };
        format!("{digits} {}", UNITS[unit])
    }

    /// The number as a limit that holds as it is printed: where two digits after the point do not say it, it is rounded up.
    ///
    /// ```
    /// use lmsc_ir::Bytes;
    /// assert_eq!(Bytes(1_583_632).to_string(), "1.51 MiB");
    /// assert_eq!(Bytes(1_583_632).rounded_up(), "1.52 MiB");
    /// ```
    pub fn rounded_up(self) -> String {
        self.in_words(true)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.in_words(false))
    }
}

/// Why a text is not a number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a number of bytes; write for example 16GiB, 512MiB, 1.5GB or 1048576")]
pub struct ParseBytesError(String);

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Bytes, ParseBytesError> {
        let error = || ParseBytesError(text.to_owned());
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let scale: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "ki" | "kib" => 1 << 10,
            "m" | "mi" | "mib" => 1 << 20,
            "g" | "gi" | "gib" => 1 << 30,
            "t" | "ti" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(error()),
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(scale).map(Bytes).ok_or_else(error);
        }
        let scaled = number.parse::<f64>().map_err(|_| error())? * scale as f64;
        if scaled.is_finite() && scaled < u64::MAX as f64 {
            Ok(Bytes(scaled.round() as u64))
        } else {
            Err(error())
        }
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0 - other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        self.0 -= other.0;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_short_and_exact_where_it_can_be() {
        let text = |n| Bytes(n).to_string();
        assert_eq!(text(0), "0 B");
        assert_eq!(text(1023), "1023 B");
        assert_eq!(text(1536), "1.5 KiB");
        assert_eq!(text(1 << 40), "1 TiB");
        assert_eq!(text(u64::MAX), "16777216 TiB");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "GiB", "-1", "1e9", "12 parsec", "99999999999TiB", "1.2.3", "nan"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
