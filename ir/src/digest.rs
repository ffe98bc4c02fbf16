//! Digests, by which bytes that are not at hand are told apart.

use std::fmt;
use std::str::FromStr;

/// A digest of bytes. Two of different functions are never equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Digest {
    /// BLAKE3: nobody can make two contents with one digest.
    Blake3([u8; 32]),
    /// XXH3-128, of files that earlier versions wrote: two contents with one digest are made in a minute, so it proves nothing.
    Xxh3(u128),
}

impl Digest {
    /// The digest of the bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest::Blake3(*blake3::hash(bytes).as_bytes())
    }

    /// Whether equal digests prove equal bytes.
    pub fn is_proof(self) -> bool {
        matches!(self, Digest::Blake3(_))
    }
}

/// Digits in hexadecimal: 64 of BLAKE3, 32 of XXH3.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Digest::Blake3(bytes) => bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Digest::Xxh3(number) => write!(f, "{number:032x}"),
        }
    }
}

/// Text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a digest has 64 hexadecimal digits, or 32 in files of earlier versions")]
pub struct NoDigest;

impl FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Digest, NoDigest> {
        if !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(NoDigest);
        }
        match text.len() {
            64 => {
                let mut bytes = [0; 32];
                for (index, byte) in bytes.iter_mut().enumerate() {
                    *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| NoDigest)?;
                }
                Ok(Digest::Blake3(bytes))
            }
            1..=32 => Ok(Digest::Xxh3(u128::from_str_radix(text, 16).map_err(|_| NoDigest)?)),
            _ => Err(NoDigest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_was_written() {
        for digest in [Digest::of(b""), Digest::of(b"abc"), Digest::Xxh3(7)] {
            assert_eq!(digest.to_string().parse(), Ok(digest));
        }
        // The first test vector of BLAKE3.
        let empty = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262";
        assert_eq!(Digest::of(b"").to_string(), empty);
        for wrong in ["", "+1", "0x1", &"0".repeat(33), &"0".repeat(63), &"g".repeat(64)] {
            assert_eq!(wrong.parse::<Digest>(), Err(NoDigest), "{wrong}");
        }
    }
}
