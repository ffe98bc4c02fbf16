//! Types of values: element type, extents, and the memory that holds the value.

use std::fmt;
use std::str::FromStr;

use crate::Bytes;

macro_rules! element_types {
    ($($variant:ident $name:literal $bits:literal),* $(,)?) => {
        /// The type of a tensor's elements. Names are those of ONNX's textual syntax.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ElementType { $(#[doc = concat!("`", $name, "`, ", $bits, " bits.")] $variant),* }

        impl ElementType {
            /// Every element type, in declaration order.
            pub const ALL: &[ElementType] = &[$(ElementType::$variant),*];

            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self { $(ElementType::$variant => $name),* }
            }

            /// The size of one element, in bits. A string counts as a 16-byte reference.
            pub fn bits(self) -> u64 {
                match self { $(ElementType::$variant => $bits),* }
            }
        }
    };
}

element_types! {
    Float "float" 32, Double "double" 64, Float16 "float16" 16, Bfloat16 "bfloat16" 16,
    Int8 "int8" 8, Int16 "int16" 16, Int32 "int32" 32, Int64 "int64" 64,
    Uint8 "uint8" 8, Uint16 "uint16" 16, Uint32 "uint32" 32, Uint64 "uint64" 64,
    Bool "bool" 8, String "string" 128, Complex64 "complex64" 64, Complex128 "complex128" 128,
    Float8e4m3fn "float8e4m3fn" 8, Float8e4m3fnuz "float8e4m3fnuz" 8,
    Float8e5m2 "float8e5m2" 8, Float8e5m2fnuz "float8e5m2fnuz" 8, Float8e8m0 "float8e8m0" 8,
    Float4e2m1 "float4e2m1" 4, Int4 "int4" 4, Uint4 "uint4" 4, Int2 "int2" 2, Uint2 "uint2" 2,
}

impl ElementType {
    /// Whether elements are real floating-point numbers.
    pub fn is_float(self) -> bool {
        use ElementType::*;
        matches!(
            self,
            Float
                | Double
                | Float16
                | Bfloat16
                | Float8e4m3fn
                | Float8e4m3fnuz
                | Float8e5m2
                | Float8e5m2fnuz
                | Float8e8m0
                | Float4e2m1
        )
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ElementType {
    type Err = ();
    fn from_str(name: &str) -> Result<ElementType, ()> {
        ElementType::ALL.iter().copied().find(|t| t.name() == name).ok_or(())
    }
}

/// A dense tensor's element type and extents. Every extent is known (invariant I5).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// The element type.
    pub element: ElementType,
    /// Extents, outermost first; empty for a scalar.
    pub dims: Vec<u64>,
}

impl TensorType {
    /// The type with these extents.
    pub fn new(element: ElementType, dims: impl Into<Vec<u64>>) -> TensorType {
        TensorType { element, dims: dims.into() }
    }

    /// The number of elements, or `None` if it does not fit 64 bits.
    pub fn element_count(&self) -> Option<u64> {
        if self.dims.contains(&0) {
            return Some(0);
        }
        self.dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d))
    }

    /// Size of the elements in bytes, sub-byte elements packed, or `None` if it is 2^60 or more.
    pub fn byte_size(&self) -> Option<Bytes> {
        let bits = self.element_count()?.checked_mul(self.element.bits())?;
        Some(Bytes(bits.div_ceil(8))).filter(|b| b.0 < 1 << 60)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.element)?;
        for (i, dim) in self.dims.iter().enumerate() {
            write!(f, "{}{dim}", if i == 0 { "" } else { "," })?;
        }
        f.write_str("]")
    }
}

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// A dense tensor.
    Tensor(TensorType),
    /// A sequence with the type of each element.
    Sequence(Vec<TensorType>),
}

impl Type {
    /// The tensor type, if this is a tensor.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(tensor) => Some(tensor),
            Type::Sequence(_) => None,
        }
    }

    /// Size in bytes of a value of this type, or `None` if it is 2^60 or more.
    pub fn byte_size(&self) -> Option<Bytes> {
        match self {
            Type::Tensor(tensor) => tensor.byte_size(),
            Type::Sequence(elements) => {
                let total = elements.iter().try_fold(0u64, |n, e| n.checked_add(e.byte_size()?.0))?;
                Some(Bytes(total)).filter(|b| b.0 < 1 << 60)
            }
        }
    }
}

impl From<TensorType> for Type {
    fn from(tensor: TensorType) -> Type {
        Type::Tensor(tensor)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Tensor(tensor) => tensor.fmt(f),
            Type::Sequence(elements) => {
                f.write_str("seq(")?;
                for (i, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if i == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
        }
    }
}

/// The memory that holds a value's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// In device memory, at an address that is not decided yet.
    #[default]
    Device,
    /// In device memory, at this offset of the arena.
    DeviceAt(u64),
    /// In host memory.
    Host,
}

impl Place {
    /// Whether the bytes are in host memory.
    pub fn is_host(self) -> bool {
        self == Place::Host
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Device => Ok(()),
            Place::DeviceAt(offset) => write!(f, "@device:{offset}"),
            Place::Host => f.write_str("@host"),
        }
    }
}
