//! The messages of ONNX, up to IR version 14, declared by hand.
//!
//! Each message is declared once, in the words of the ONNX definition; from that come the struct that `prost` reads and writes
//! and the [`Schema`] by which [`wire`](crate::wire) walks raw bytes.
//!
//! - Presence is kept: every singular field is an `Option`, and absent fields are not written.
//! - `bytes` are [`Bytes`]: slices of the mapped file, never copies.
//! - The packed numbers of [`TensorProto`] stay as they lie in the file, one [`Bytes`] per chunk; `floats`,
//!   `int32s`, `int64s`, `doubles` and `uint64s` read them.
//! - The members of a `oneof` are plain fields, so that every message is written in the order of its field
//!   numbers, as other writers do; [`wire::check`](crate::wire::check) refuses two members at once.

use bytes::Bytes;
use prost::encoding::{decode_varint, encode_varint};

use crate::wire::{Described, Field, FieldKind, Label, Schema};

/// Declares a message in the words of the ONNX definition.
///
/// Labels: `optional`, `repeated`, `oneof` (optional, excludes the others of its message) and `packed` (numbers
/// kept as raw chunks). `boxed` keeps a message from containing itself, or from making its owner large.
macro_rules! message {
    ($(#[$doc:meta])* $name:ident { $($body:tt)* }) => {
        message! { @ [$(#[$doc])* $name] [] [] $($body)* }
    };

    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* optional string $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [string, optional] [Option<String>] [Optional Text] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* optional bytes $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [bytes = "bytes", optional] [Option<Bytes>] [Optional Bytes] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* optional int32 $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [int32, optional] [Option<i32>] [Optional Int32] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* optional int64 $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [int64, optional] [Option<i64>] [Optional Varint] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* optional float $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [float, optional] [Option<f32>] [Optional Fixed32] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* optional boxed $m:ident $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [message, optional, boxed] [Option<Box<$m>>]
                   [Optional Message($m::schema)] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* optional $m:ident $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [message, optional] [Option<$m>]
                   [Optional Message($m::schema)] $($r)* }
    };

    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* oneof string $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [string, optional] [Option<String>] [OneOf Text] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* oneof int64 $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [int64, optional] [Option<i64>] [OneOf Varint] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* oneof boxed $m:ident $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [message, optional, boxed] [Option<Box<$m>>]
                   [OneOf Message($m::schema)] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* oneof $m:ident $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [message, optional] [Option<$m>]
                   [OneOf Message($m::schema)] $($r)* }
    };

    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* repeated string $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [string, repeated] [Vec<String>] [Repeated Text] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* repeated bytes $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [bytes = "bytes", repeated] [Vec<Bytes>] [Repeated Bytes] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* repeated int64 $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [int64, repeated, packed = "false"] [Vec<i64>] [Repeated Varint] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* repeated float $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [float, repeated, packed = "false"] [Vec<f32>] [Repeated Fixed32] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* repeated $m:ident $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [message, repeated] [Vec<$m>]
                   [Repeated Message($m::schema)] $($r)* }
    };

    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* packed float $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [bytes = "bytes", repeated] [Vec<Bytes>] [Packed Fixed32] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* packed double $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [bytes = "bytes", repeated] [Vec<Bytes>] [Packed Fixed64] $($r)* }
    };
    (@ $h:tt $f:tt $s:tt $(#[$d:meta])* packed $integer:ident $i:ident = $n:tt; $($r:tt)*) => {
        message! { + $h $f $s [$(#[$d])*] $i $n [bytes = "bytes", repeated] [Vec<Bytes>] [Packed Varint] $($r)* }
    };

    (+ $h:tt [$($f:tt)*] [$($s:tt)*] [$(#[$d:meta])*] $i:ident $n:tt [$($attr:tt)*] [$ty:ty]
     [$label:ident $($kind:tt)*] $($r:tt)*) => {
        message! { @ $h
            [$($f)*
                $(#[$d])*
                #[doc = concat!("Field ", stringify!($n), ".")]
                #[prost($($attr)*, tag = $n)]
                pub $i: $ty,
            ]
            [$($s)* Field { number: $n, ident: stringify!($i), label: Label::$label, kind: FieldKind::$($kind)* },]
            $($r)*
        }
    };

    (@ [$(#[$doc:meta])* $name:ident] [$($f:tt)*] [$($s:tt)*]) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, prost::Message)]
        pub struct $name { $($f)* }

        impl Described for $name {
            fn schema() -> &'static Schema {
                static SCHEMA: Schema =
                    Schema { name: stringify!($name), fields: &[$($s)*], size: size_of::<$name>() };
                &SCHEMA
            }
        }
    };
}

message! {
    /// A file: one graph, the functions it calls and the operator sets it uses.
    ModelProto {
        optional int64 ir_version = 1;
        optional string producer_name = 2;
        optional string producer_version = 3;
        optional string domain = 4;
        optional int64 model_version = 5;
        optional string doc_string = 6;
        optional GraphProto graph = 7;
        repeated OperatorSetIdProto opset_import = 8;
        repeated StringStringEntryProto metadata_props = 14;
        repeated TrainingInfoProto training_info = 20;
        repeated FunctionProto functions = 25;
        /// Device configurations that nodes refer to (IR 11).
        repeated DeviceConfigurationProto configuration = 26;
    }
}

message! {
    /// A graph: nodes in topological order over named values.
    GraphProto {
        repeated NodeProto node = 1;
        optional string name = 2;
        repeated TensorProto initializer = 5;
        optional string doc_string = 10;
        repeated ValueInfoProto input = 11;
        repeated ValueInfoProto output = 12;
        repeated ValueInfoProto value_info = 13;
        repeated TensorAnnotation quantization_annotation = 14;
        repeated SparseTensorProto sparse_initializer = 15;
        repeated StringStringEntryProto metadata_props = 16;
    }
}

message! {
    /// One application of an operator or a function.
    NodeProto {
        /// Names of the operands; an empty name is an optional operand left out.
        repeated string input = 1;
        /// Names of the results; an empty name is an optional result left out.
        repeated string output = 2;
        optional string name = 3;
        optional string op_type = 4;
        repeated AttributeProto attribute = 5;
        optional string doc_string = 6;
        optional string domain = 7;
        /// Which of several functions of one name is meant (IR 10).
        optional string overload = 8;
        repeated StringStringEntryProto metadata_props = 9;
        /// Where and in which pieces the node runs (IR 11).
        repeated NodeDeviceConfigurationProto device_configurations = 10;
    }
}

message! {
    /// A named constant of a node; [`AttributeType`] says which field holds it.
    AttributeProto {
        optional string name = 1;
        optional float f = 2;
        optional int64 i = 3;
        optional bytes s = 4;
        optional boxed TensorProto t = 5;
        optional boxed GraphProto g = 6;
        repeated float floats = 7;
        repeated int64 ints = 8;
        repeated bytes strings = 9;
        repeated TensorProto tensors = 10;
        repeated GraphProto graphs = 11;
        optional string doc_string = 13;
        optional boxed TypeProto tp = 14;
        repeated TypeProto type_protos = 15;
        /// An [`AttributeType`].
        optional int32 r#type = 20;
        /// Inside a function: the attribute of the caller whose value this one takes.
        optional string ref_attr_name = 21;
        optional boxed SparseTensorProto sparse_tensor = 22;
        repeated SparseTensorProto sparse_tensors = 23;
    }
}

message! {
    /// A tensor; its elements stand in `raw_data`, in one of the typed fields, or in another file.
    TensorProto {
        repeated int64 dims = 1;
        /// A [`DataType`].
        optional int32 data_type = 2;
        optional Segment segment = 3;
        /// Read by [`TensorProto::floats`].
        packed float float_data = 4;
        /// Read by [`TensorProto::int32s`].
        packed int32 int32_data = 5;
        repeated bytes string_data = 6;
        /// Read by [`TensorProto::int64s`].
        packed int64 int64_data = 7;
        optional string name = 8;
        /// The elements, little-endian, row-major.
        optional bytes raw_data = 9;
        /// Read by [`TensorProto::doubles`].
        packed double double_data = 10;
        /// Read by [`TensorProto::uint64s`].
        packed uint64 uint64_data = 11;
        optional string doc_string = 12;
        /// `location`, `offset`, `length` of the elements in another file: see
        /// [`external_location`](crate::file::external_location).
        repeated StringStringEntryProto external_data = 13;
        /// A [`DataLocation`].
        optional int32 data_location = 14;
        repeated StringStringEntryProto metadata_props = 16;
    }
}

message! {
    /// The part of a chunked tensor that a [`TensorProto`] holds.
    Segment {
        optional int64 begin = 1;
        optional int64 end = 2;
    }
}

message! {
    /// A tensor given by its non-zero elements and their positions.
    SparseTensorProto {
        optional TensorProto values = 1;
        optional TensorProto indices = 2;
        repeated int64 dims = 3;
    }
}

message! {
    /// A value's name and type.
    ValueInfoProto {
        optional string name = 1;
        optional TypeProto r#type = 2;
        optional string doc_string = 3;
        repeated StringStringEntryProto metadata_props = 4;
    }
}

message! {
    /// The type of a value; [`TypeProto::value`] says which kind it is.
    TypeProto {
        oneof TensorType tensor_type = 1;
        oneof boxed SequenceType sequence_type = 4;
        oneof boxed MapType map_type = 5;
        optional string denotation = 6;
        oneof boxed OpaqueType opaque_type = 7;
        oneof boxed SparseTensorType sparse_tensor_type = 8;
        oneof boxed OptionalType optional_type = 9;
    }
}

message! {
    /// A dense tensor's element type and shape.
    TensorType {
        /// A [`DataType`].
        optional int32 elem_type = 1;
        optional TensorShapeProto shape = 2;
    }
}

message! {
    /// A sequence's element type.
    SequenceType {
        optional boxed TypeProto elem_type = 1;
    }
}

message! {
    /// A map's key and value types.
    MapType {
        /// A [`DataType`].
        optional int32 key_type = 1;
        optional boxed TypeProto value_type = 2;
    }
}

message! {
    /// The type of a value that may be absent.
    OptionalType {
        optional boxed TypeProto elem_type = 1;
    }
}

message! {
    /// A sparse tensor's element type and shape.
    SparseTensorType {
        /// A [`DataType`].
        optional int32 elem_type = 1;
        optional TensorShapeProto shape = 2;
    }
}

message! {
    /// A type known by name only.
    OpaqueType {
        optional string domain = 1;
        optional string name = 2;
    }
}

message! {
    /// The dimensions of a tensor, outermost first.
    TensorShapeProto {
        repeated Dimension dim = 1;
    }
}

message! {
    /// A number, a name, or nothing known; [`Dimension::value`] says which.
    Dimension {
        oneof int64 dim_value = 1;
        oneof string dim_param = 2;
        optional string denotation = 3;
    }
}

message! {
    /// An operator set and its version.
    OperatorSetIdProto {
        optional string domain = 1;
        optional int64 version = 2;
    }
}

message! {
    /// A key and its value.
    StringStringEntryProto {
        optional string key = 1;
        optional string value = 2;
    }
}

message! {
    /// An operator defined inside the model by a graph of others.
    FunctionProto {
        optional string name = 1;
        repeated string input = 4;
        repeated string output = 5;
        repeated string attribute = 6;
        repeated NodeProto node = 7;
        optional string doc_string = 8;
        repeated OperatorSetIdProto opset_import = 9;
        optional string domain = 10;
        repeated AttributeProto attribute_proto = 11;
        repeated ValueInfoProto value_info = 12;
        optional string overload = 13;
        repeated StringStringEntryProto metadata_props = 14;
    }
}

message! {
    /// The quantization parameters of a tensor.
    TensorAnnotation {
        optional string tensor_name = 1;
        repeated StringStringEntryProto quant_parameter_tensor_names = 2;
    }
}

message! {
    /// ONNX's own form of a training step: an initialization and an algorithm, and their bindings.
    TrainingInfoProto {
        optional GraphProto initialization = 1;
        optional GraphProto algorithm = 2;
        repeated StringStringEntryProto initialization_binding = 3;
        repeated StringStringEntryProto update_binding = 4;
    }
}

message! {
    /// A named set of devices (IR 11).
    DeviceConfigurationProto {
        optional string name = 1;
        optional int32 num_devices = 2;
        repeated string device = 3;
    }
}

message! {
    /// How a node is placed under one device configuration (IR 11).
    NodeDeviceConfigurationProto {
        optional string configuration_id = 1;
        repeated ShardingSpecProto sharding_spec = 2;
        optional int32 pipeline_stage = 3;
    }
}

message! {
    /// How a tensor is divided over devices (IR 11).
    ShardingSpecProto {
        optional string tensor_name = 1;
        repeated int64 device = 2;
        repeated IntIntListEntryProto index_to_device_group_map = 3;
        repeated ShardedDimProto sharded_dim = 4;
    }
}

message! {
    /// A device group's index and its devices (IR 11).
    IntIntListEntryProto {
        optional int64 key = 1;
        repeated int64 value = 2;
    }
}

message! {
    /// How one axis is divided (IR 11).
    ShardedDimProto {
        optional int64 axis = 1;
        repeated SimpleShardedDimProto simple_sharding = 2;
    }
}

message! {
    /// An extent and into how many shards it is divided (IR 11).
    SimpleShardedDimProto {
        oneof int64 dim_value = 1;
        oneof string dim_param = 2;
        optional int64 num_shards = 3;
    }
}

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum DataType {
    Undefined = 0,
    Float = 1,
    Uint8 = 2,
    Int8 = 3,
    Uint16 = 4,
    Int16 = 5,
    Int32 = 6,
    Int64 = 7,
    String = 8,
    Bool = 9,
    Float16 = 10,
    Double = 11,
    Uint32 = 12,
    Uint64 = 13,
    Complex64 = 14,
    Complex128 = 15,
    Bfloat16 = 16,
    Float8e4m3fn = 17,
    Float8e4m3fnuz = 18,
    Float8e5m2 = 19,
    Float8e5m2fnuz = 20,
    Uint4 = 21,
    Int4 = 22,
    Float4e2m1 = 23,
    Float8e8m0 = 24,
    Uint2 = 25,
    Int2 = 26,
    Float6e2m3 = 27,
    Float6e3m2 = 28,
}

impl DataType {
    /// Bits of one element, or `None` for strings and the undefined type, which have no fixed size.
    pub const fn bits(self) -> Option<u64> {
        use DataType::*;
        Some(match self {
            Undefined | String => return None,
            Uint2 | Int2 => 2,
            Uint4 | Int4 | Float4e2m1 => 4,
            Float6e2m3 | Float6e3m2 => 6,
            Uint8 | Int8 | Bool | Float8e4m3fn | Float8e4m3fnuz | Float8e5m2 | Float8e5m2fnuz
            | Float8e8m0 => 8,
            Uint16 | Int16 | Float16 | Bfloat16 => 16,
            Float | Int32 | Uint32 => 32,
            Int64 | Uint64 | Double | Complex64 => 64,
            Complex128 => 128,
        })
    }
}

/// Which field of an [`AttributeProto`] holds its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
#[allow(missing_docs)]
pub enum AttributeType {
    Undefined = 0,
    Float = 1,
    Int = 2,
    String = 3,
    Tensor = 4,
    Graph = 5,
    Floats = 6,
    Ints = 7,
    Strings = 8,
    Tensors = 9,
    Graphs = 10,
    SparseTensor = 11,
    SparseTensors = 12,
    TypeProto = 13,
    TypeProtos = 14,
}

/// Where a tensor's elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum DataLocation {
    /// In the tensor itself.
    Default = 0,
    /// In another file, which `external_data` names.
    External = 1,
}

/// The kind of a [`TypeProto`] and its description.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum TypeValue<'a> {
    Tensor(&'a TensorType),
    Sequence(&'a SequenceType),
    Map(&'a MapType),
    Opaque(&'a OpaqueType),
    SparseTensor(&'a SparseTensorType),
    Optional(&'a OptionalType),
}

impl TypeProto {
    /// The one kind that is set, if any.
    pub fn value(&self) -> Option<TypeValue<'_>> {
        None.or_else(|| self.tensor_type.as_ref().map(TypeValue::Tensor))
            .or_else(|| self.sequence_type.as_deref().map(TypeValue::Sequence))
            .or_else(|| self.map_type.as_deref().map(TypeValue::Map))
            .or_else(|| self.opaque_type.as_deref().map(TypeValue::Opaque))
            .or_else(|| self.sparse_tensor_type.as_deref().map(TypeValue::SparseTensor))
            .or_else(|| self.optional_type.as_deref().map(TypeValue::Optional))
    }
}

/// The known extent of a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimValue<'a> {
    /// Its extent.
    Extent(i64),
    /// The name under which it is bound later.
    Name(&'a str),
}

impl Dimension {
    /// Its extent or its name, or `None` when nothing is known: some exporters write -1 then.
    pub fn value(&self) -> Option<DimValue<'_>> {
        let extent = self.dim_value.filter(|&extent| extent != -1);
        extent.map(DimValue::Extent).or_else(|| self.dim_param.as_deref().map(DimValue::Name))
    }
}

impl AttributeProto {
    /// Which field holds the value; `None` when the file does not say, or says a number that ONNX does not know.
    pub(crate) fn attribute_type(&self) -> Option<AttributeType> {
        AttributeType::try_from(self.r#type?).ok()
    }
}

/// A chunk of packed numbers that is not a whole number of elements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` of tensor `{tensor}` ends inside an element")]
pub struct PackedError {
    /// The tensor's name.
    pub tensor: String,
    /// The field that holds the chunk.
    pub field: &'static str,
}

impl TensorProto {
    /// The type of the elements; `None` when the file does not say, or says a number that ONNX does not know.
    pub fn element_type(&self) -> Option<DataType> {
        DataType::try_from(self.data_type?).ok()
    }

    /// Whether the elements are in another file.
    pub(crate) fn is_external(&self) -> bool {
        self.data_location == Some(DataLocation::External as i32)
    }

    /// Bytes that the elements occupy as `raw_data`, or `None` when type or shape do not fix them.
    pub(crate) fn payload_bytes(&self) -> Option<u64> {
        let bits = self.element_type()?.bits()?;
        let elements = self.dims.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::try_from(d).ok()?))?;
        Some(elements.checked_mul(bits)?.div_ceil(8))
    }

    /// The numbers of `float_data`.
    ///
    /// # Errors
    /// [`PackedError`] if a chunk ends inside an element; so for its four siblings.
    pub fn floats(&self) -> Result<Vec<f32>, PackedError> {
        self.fixed("float_data", &self.float_data, f32::from_le_bytes)
    }

    /// The numbers of `double_data`.
    pub fn doubles(&self) -> Result<Vec<f64>, PackedError> {
        self.fixed("double_data", &self.double_data, f64::from_le_bytes)
    }

    /// The numbers of `int32_data`.
    pub fn int32s(&self) -> Result<Vec<i32>, PackedError> {
        self.varints("int32_data", &self.int32_data, |v| v as i32)
    }

    /// The numbers of `int64_data`.
    pub fn int64s(&self) -> Result<Vec<i64>, PackedError> {
        self.varints("int64_data", &self.int64_data, |v| v as i64)
    }

    /// The numbers of `uint64_data`.
    pub fn uint64s(&self) -> Result<Vec<u64>, PackedError> {
        self.varints("uint64_data", &self.uint64_data, |v| v)
    }

    /// The numbers of a field of integers, in 64 bits.
    pub(crate) fn wide(&self, chunks: &[Bytes]) -> Result<Vec<i64>, PackedError> {
        self.varints("int32_data", chunks, |v| v as i64)
    }

    fn fixed<T, const N: usize>(
        &self,
        field: &'static str,
        chunks: &[Bytes],
        read: fn([u8; N]) -> T,
    ) -> Result<Vec<T>, PackedError> {
        let mut out = Vec::with_capacity(chunks.iter().map(|c| c.len() / N).sum());
        for chunk in chunks {
            let (elements, rest) = chunk.as_chunks::<N>();
            if !rest.is_empty() {
                return Err(PackedError { tensor: self.name().to_owned(), field });
            }
            out.extend(elements.iter().map(|&e| read(e)));
        }
        Ok(out)
    }

    fn varints<T>(
        &self,
        field: &'static str,
        chunks: &[Bytes],
        read: fn(u64) -> T,
    ) -> Result<Vec<T>, PackedError> {
        let mut out = Vec::new();
        for chunk in chunks {
            let mut rest = &chunk[..];
            while !rest.is_empty() {
                let value = decode_varint(&mut rest)
                    .map_err(|_| PackedError { tensor: self.name().to_owned(), field })?;
                out.push(read(value));
            }
        }
        Ok(out)
    }
}

/// The chunk for `float_data` that holds these numbers.
pub fn pack_floats(values: &[f32]) -> Bytes {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// The chunk for `double_data` that holds these numbers.
pub fn pack_doubles(values: &[f64]) -> Bytes {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// The chunk for `int32_data` that holds these numbers.
pub fn pack_int32s(values: &[i32]) -> Bytes {
    pack(values.iter().map(|&v| v as i64 as u64))
}

/// The chunk for `int64_data` that holds these numbers.
pub fn pack_int64s(values: &[i64]) -> Bytes {
    pack(values.iter().map(|&v| v as u64))
}

/// The chunk for `uint64_data` that holds these numbers.
pub fn pack_uint64s(values: &[u64]) -> Bytes {
    pack(values.iter().copied())
}

fn pack(values: impl Iterator<Item = u64>) -> Bytes {
    let mut out = Vec::new();
    values.for_each(|v| encode_varint(v, &mut out));
    out.into()
}
