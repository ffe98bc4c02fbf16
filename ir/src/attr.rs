//! Attributes of nodes and bytes of initializers.
//!
//! The graph never copies tensors: [`Data`] is a slice of the mapped input, or a reference to a file.

use crate::{Digest, TensorType};

/// Bytes that the graph refers to but does not read.
#[derive(Clone, Debug)]
pub enum Data {
    /// A slice of the mapped input, in the layout of ONNX's `raw_data` (little endian, dense).
    Inline(bytes::Bytes),
    /// A range of another file, beside the model.
    External {
        /// File name relative to the model's folder.
        location: String,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// Only the number of bytes and their digest are known: the graph came from text.
    Digest {
        /// Number of bytes.
        length: u64,
        /// Digest of the bytes.
        digest: Digest,
    },
}

impl Data {
    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Data::Inline(bytes) => bytes.len() as u64,
            Data::External { length, .. } | Data::Digest { length, .. } => *length,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The digest of the bytes, or `None` for a range of another file.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Data::Inline(bytes) => Some(Digest::of(bytes)),
            Data::External { .. } => None,
            Data::Digest { digest, .. } => Some(*digest),
        }
    }
}

/// Equal when the bytes are: by content where both are at hand, else by digest; a range of a file equals the
/// same range of the same file.
impl PartialEq for Data {
    fn eq(&self, other: &Data) -> bool {
        match (self, other) {
            (Data::Inline(a), Data::Inline(b)) => a == b,
            (
                Data::External { location: a, offset: b, length: c },
                Data::External { location: d, offset: e, length: f },
            ) => (a, b, c) == (d, e, f),
            (Data::External { .. }, _) | (_, Data::External { .. }) => false,
            _ => self.len() == other.len() && self.digest() == other.digest(),
        }
    }
}

/// An attribute's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Attr {
    /// One integer.
    Int(i64),
    /// One float; compared and printed bit by bit.
    Float(Float),
    /// One string; ONNX does not say in which encoding.
    String(bytes::Bytes),
    /// Integers.
    Ints(Vec<i64>),
    /// Floats.
    Floats(Vec<Float>),
    /// Strings.
    Strings(Vec<bytes::Bytes>),
    /// A dense tensor.
    Tensor(TensorType, Data),
    /// A subgraph, sparse tensor, type or list of such, in the encoding of the file that it came from.
    Opaque(Data),
}

/// A 32-bit float that equals another when its bits do.
#[derive(Clone, Copy, Debug)]
pub struct Float(pub f32);

impl PartialEq for Float {
    fn eq(&self, other: &Float) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl From<i64> for Attr {
    fn from(value: i64) -> Attr {
        Attr::Int(value)
    }
}

impl From<f32> for Attr {
    fn from(value: f32) -> Attr {
        Attr::Float(Float(value))
    }
}

impl From<&str> for Attr {
    fn from(value: &str) -> Attr {
        Attr::String(bytes::Bytes::copy_from_slice(value.as_bytes()))
    }
}

impl From<Vec<i64>> for Attr {
    fn from(value: Vec<i64>) -> Attr {
        Attr::Ints(value)
    }
}
