//! Reads tensors, attributes and declarations of the file into the graph's form.

use bytes::Bytes;
use lmsc_ir::{Attr, Data, Float, TensorType};
use prost::Message;

use super::ImportError;
use crate::file::external_location;
use crate::proto::{
    AttributeProto, AttributeType, DimValue, Dimension, SparseTensorProto, TensorProto, TypeProto, TypeValue,
    ValueInfoProto,
};
use crate::shapes::{self, Declared};

/// The name of a sparse initializer, which its values carry.
pub(super) fn sparse_name(sparse: &SparseTensorProto) -> &str {
    sparse.values.as_ref().map_or("", |v| v.name())
}

/// The numbers in a declaration, with the sizes of names; `None` if it is not about a tensor.
pub(crate) fn declaration(info: &ValueInfoProto, size: &dyn Fn(&str) -> Option<u64>) -> Option<Declared> {
    let Some(TypeValue::Tensor(tensor)) = info.r#type.as_ref().and_then(TypeProto::value) else {
        return None;
    };
    let extent = |dim: &Dimension| match dim.value()? {
        // Some writers use -1 for unknown extents.
        DimValue::Extent(extent) => u64::try_from(extent).ok(),
        DimValue::Name(name) => size(name),
    };
    Some(Declared {
        element: shapes::element_type(tensor.elem_type().into()),
        dims: tensor.shape.as_ref().map(|s| s.dim.iter().map(extent).collect()),
    })
}

/// Merges two declarations of one value; `None` if they contradict each other.
pub(super) fn merge(before: Declared, later: Declared) -> Option<Declared> {
    let either = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => Some(a.or(b)),
    };
    let dims = match (before.dims, later.dims) {
        (Some(a), Some(b)) if a.len() == b.len() => {
            Some(a.into_iter().zip(b).map(|(a, b)| either(a, b)).collect::<Option<_>>()?)
        }
        (Some(_), Some(_)) => return None,
        (a, b) => a.or(b),
    };
    match (before.element, later.element) {
        (Some(a), Some(b)) if a != b => None,
        (a, b) => Some(Declared { element: a.or(b), dims }),
    }
}

/// The message about an element type that ONNX does not number.
pub(super) fn unknown_element(code: i32) -> String {
    match code {
        0 => "it does not say what its elements are".to_owned(),
        code => format!(
            "its elements are of type {code}, which is none that lmsc knows; {}",
            shapes::ELEMENT_TYPES
        ),
    }
}

/// The extents, or a message about an invalid one.
fn extents(dims: &[i64]) -> Result<Vec<u64>, String> {
    let extent = |(axis, &d): (usize, &i64)| {
        u64::try_from(d).map_err(|_| format!("its extent {axis} is {d}; extents are at least 0"))
    };
    dims.iter().enumerate().map(extent).collect()
}

/// The type and the bytes of a tensor of the file.
pub(super) fn read_tensor(tensor: &TensorProto, place: &str) -> Result<(TensorType, Data), ImportError> {
    let wrong = |reason: String| ImportError::Tensor {
        place: place.to_owned(),
        tensor: tensor.name().to_owned(),
        reason,
    };
    let code = tensor.data_type();
    let element = shapes::element_type(code.into()).ok_or_else(|| wrong(unknown_element(code)))?;
    let ty = TensorType::new(element, extents(&tensor.dims).map_err(wrong)?);
    if let Some(why) = shapes::impossible(&ty.clone().into()) {
        return Err(wrong(format!("it is {ty}, which {why}")));
    }
    let size = ty.byte_size().unwrap_or_default();
    if tensor.segment.is_some() {
        return Err(wrong(
            "it is one segment of a tensor, and lmsc does not put segments together".to_owned(),
        ));
    }
    if let Some(external) = external_location(tensor)? {
        let (location, offset) = (external.location, external.offset);
        let length = external.length.unwrap_or(size.0);
        return Ok((ty, Data::External { location, offset, length }));
    }
    if element == lmsc_ir::ElementType::String {
        // Strings have no dense layout: the encoded message is used as the bytes.
        return Ok((ty, Data::Inline(tensor.encode_to_vec().into())));
    }
    let bytes = match &tensor.raw_data {
        Some(raw) => raw.clone(),
        None => {
            check_range(tensor, element).map_err(wrong)?;
            typed_bytes(tensor, element)
                .map_err(|e| wrong(format!("its `{}` ends inside an element", e.field)))?
        }
    };
    let is_odd = element == lmsc_ir::ElementType::Bool && bytes.iter().any(|&byte| byte > 1);
    // Every byte but 0 is true.
    let bytes = if is_odd { bytes.iter().map(|&byte| u8::from(byte != 0)).collect() } else { bytes };
    if bytes.len() as u64 != size.0 {
        let found = lmsc_ir::words::count(bytes.len(), "byte");
        return Err(wrong(format!("it holds {found}, but {ty} has {}", size.0)));
    }
    Ok((ty, Data::Inline(bytes)))
}

/// The type of a sparse tensor when it is made dense.
pub(super) fn sparse_type(sparse: &SparseTensorProto) -> Result<TensorType, String> {
    let code = sparse.values.as_ref().map_or(0, |values| values.data_type());
    let element = shapes::element_type(code.into()).ok_or_else(|| unknown_element(code))?;
    let ty = TensorType::new(element, extents(&sparse.dims)?);
    match shapes::impossible(&ty.clone().into()) {
        Some(why) => Err(format!("it is {ty}, which {why}")),
        None => Ok(ty),
    }
}

/// The message about an input that is not a tensor, and the advice.
pub(super) fn no_tensor(ty: Option<TypeValue<'_>>) -> (&'static str, &'static str) {
    let tensors = "export the model with tensors as inputs; lmsc knows no others";
    match ty {
        Some(TypeValue::Sequence(_)) => (
            "it is a sequence, and the file does not say what it holds",
            "sequences are inputs of optimizer graphs: compile the training graph, with this file as --optimizer",
        ),
        Some(TypeValue::Map(_)) => ("it is a map", tensors),
        Some(TypeValue::Optional(_)) => ("it is optional", "export the model with the input, or without it"),
        Some(TypeValue::SparseTensor(_)) => ("it is a sparse tensor", "export the model with dense inputs"),
        Some(TypeValue::Opaque(_)) => ("it is of an opaque type", tensors),
        Some(TypeValue::Tensor(_)) | None => {
            ("it has no type", "export the model with the types of its inputs")
        }
    }
}

/// The input with its type as the file has it: ``input `x` float[batch,16]``.
pub(super) fn typed_input(input: &ValueInfoProto) -> String {
    let Some(TypeValue::Tensor(tensor)) = input.r#type.as_ref().and_then(TypeProto::value) else {
        return format!("input `{}`", input.name());
    };
    let extent = |dim: &Dimension| match dim.value() {
        Some(DimValue::Extent(extent)) => extent.to_string(),
        Some(DimValue::Name(name)) => name.to_owned(),
        None => "?".to_owned(),
    };
    let dims: Vec<String> = tensor.shape.iter().flat_map(|s| &s.dim).map(extent).collect();
    let element = shapes::element_type(tensor.elem_type().into()).map_or("?", |e| e.name());
    format!("input `{}` {element}[{}]", input.name(), dims.join(","))
}

/// Extents as options state them: `2x3`.
pub(super) fn extent_text(extents: &[u64]) -> String {
    extents.iter().map(u64::to_string).collect::<Vec<_>>().join("x")
}

/// Refuses numbers of the typed fields that the element type cannot hold.
fn check_range(tensor: &TensorProto, element: lmsc_ir::ElementType) -> Result<(), String> {
    use lmsc_ir::ElementType::*;
    let (least, most) = match element {
        Int8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Uint8 | Bool => (0, i64::from(u8::MAX)),
        Uint16 => (0, i64::from(u16::MAX)),
        // Bits of floats; other writers extend their sign.
        Float16 | Bfloat16 => (i64::from(i16::MIN), i64::from(u16::MAX)),
        Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Uint32 => (0, i64::from(u32::MAX)),
        _ => return Ok(()),
    };
    let fields = if element == Uint32 { &tensor.uint64_data } else { &tensor.int32_data };
    // A field that ends inside an element is refused elsewhere.
    let Ok(numbers) = tensor.wide(fields) else { return Ok(()) };
    match numbers.into_iter().find(|number| !(least..=most).contains(number)) {
        Some(number) => {
            Err(format!("its element {number} is no {element}: it is not within {least} and {most}"))
        }
        None => Ok(()),
    }
}

/// Larger sparse tensors are not made dense.
const MOST_DENSE_BYTES: u64 = 1 << 27;

/// The dense tensor that the sparse one stands for, in the layout of `raw_data`.
pub(super) fn dense(sparse: &SparseTensorProto) -> Result<(TensorType, Bytes), String> {
    let ty = sparse_type(sparse)?;
    let size = ty.byte_size().map_or(u64::MAX, |size| size.0);
    if ty.element.bits() % 8 != 0 || ty.element == lmsc_ir::ElementType::String {
        return Err(format!("it is sparse, and lmsc makes no dense tensor of {}", ty.element));
    }
    if size > MOST_DENSE_BYTES {
        return Err(format!("it is sparse, and {ty}: lmsc takes at most 128 MiB as a dense tensor"));
    }
    let (Some(values), Some(indices)) = (&sparse.values, &sparse.indices) else {
        return Err("it is sparse, and has no values or no indices".to_owned());
    };
    let read = |tensor: &TensorProto| match read_tensor(tensor, "sparse tensor") {
        Ok((ty, lmsc_ir::Data::Inline(bytes))) => Ok((ty, bytes)),
        Ok(_) => {
            Err("it is sparse, and its bytes are in another file; lmsc reads only those in the model"
                .to_owned())
        }
        Err(error) => Err(error.to_string()),
    };
    let ((value_type, values), (index_type, indices)) = (read(values)?, read(indices)?);
    let count = values.len() / (ty.element.bits() / 8) as usize;
    let rank = ty.dims.len();
    let is_linear = index_type.dims == [count as u64];
    if value_type.dims.len() != 1
        || index_type.element != lmsc_ir::ElementType::Int64
        || !is_linear && index_type.dims != [count as u64, rank as u64]
    {
        return Err(format!(
            "it is sparse, and its indices, {index_type}, do not go with its values, {value_type}"
        ));
    }
    let width = (ty.element.bits() / 8) as usize;
    let mut bytes = vec![0; size as usize];
    let indices: Vec<i64> = indices.as_chunks().0.iter().map(|&b| i64::from_le_bytes(b)).collect();
    let total = ty.element_count().unwrap_or(0);
    for (i, value) in values.chunks_exact(width).enumerate() {
        let at = if is_linear {
            u64::try_from(indices[i]).ok().filter(|&at| at < total)
        } else {
            let place = indices[i * rank..(i + 1) * rank].iter().zip(&ty.dims);
            place.into_iter().try_fold(0, |at: u64, (&index, &extent)| {
                let index = u64::try_from(index).ok().filter(|&index| index < extent)?;
                Some(at * extent + index)
            })
        };
        let at = at.ok_or_else(|| format!("it is sparse, and index {i} is outside of {ty}"))? as usize;
        bytes[at * width..(at + 1) * width].copy_from_slice(value);
    }
    Ok((ty, bytes.into()))
}

/// The elements of the typed fields in the layout of `raw_data`.
fn typed_bytes(
    tensor: &TensorProto,
    element: lmsc_ir::ElementType,
) -> Result<Bytes, crate::proto::PackedError> {
    use lmsc_ir::ElementType::*;
    let joined = |chunks: &[Bytes]| match chunks {
        [one] => one.clone(),
        many => many.concat().into(),
    };
    Ok(match element {
        // These fields hold little-endian elements already.
        Float | Complex64 => joined(&tensor.float_data),
        Double | Complex128 => joined(&tensor.double_data),
        Int64 => tensor.int64s()?.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Uint64 => tensor.uint64s()?.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Uint32 => tensor.uint64s()?.iter().flat_map(|v| (*v as u32).to_le_bytes()).collect(),
        Int32 => tensor.int32s()?.iter().flat_map(|v| v.to_le_bytes()).collect(),
        Int16 | Uint16 | Float16 | Bfloat16 => {
            tensor.int32s()?.iter().flat_map(|v| (*v as u16).to_le_bytes()).collect()
        }
        _ => tensor.int32s()?.iter().map(|v| *v as u8).collect(),
    })
}

/// The attribute's value. A value without a form of its own in the graph is the encoded [`AttributeProto`].
pub(super) fn read_attribute(attribute: &AttributeProto) -> Result<Attr, String> {
    if !attribute.ref_attr_name().is_empty() {
        let name = attribute.ref_attr_name();
        return Err(format!(
            "it refers to attribute `{name}` of a caller, which only nodes in functions have"
        ));
    }
    let floats = |list: &[f32]| list.iter().map(|&f| Float(f)).collect();
    let opaque = || Attr::Opaque(Data::Inline(attribute.encode_to_vec().into()));
    Ok(match attribute_kind(attribute) {
        Some(AttributeType::Float) => Attr::Float(Float(attribute.f())),
        Some(AttributeType::Int) => Attr::Int(attribute.i()),
        Some(AttributeType::String) => Attr::String(attribute.s.clone().unwrap_or_default()),
        Some(AttributeType::Floats) => Attr::Floats(floats(&attribute.floats)),
        Some(AttributeType::Ints) => Attr::Ints(attribute.ints.clone()),
        Some(AttributeType::Strings) => Attr::Strings(attribute.strings.clone()),
        Some(AttributeType::Tensor) => match &attribute.t {
            Some(tensor) => {
                let (ty, data) = read_tensor(tensor, "tensor").map_err(|e| e.to_string())?;
                if ty.element == lmsc_ir::ElementType::String { opaque() } else { Attr::Tensor(ty, data) }
            }
            None => return Err("it should hold a tensor, and holds none".to_owned()),
        },
        Some(AttributeType::Undefined) | None => {
            return Err("it holds no value, and no type says which kind".to_owned());
        }
        Some(_) => opaque(),
    })
}

/// The kind of the attribute; if the file does not state it, it follows from the field that is set.
fn attribute_kind(attribute: &AttributeProto) -> Option<AttributeType> {
    if let Some(kind) = attribute.attribute_type().filter(|&k| k != AttributeType::Undefined) {
        return Some(kind);
    }
    let present = [
        (attribute.f.is_some(), AttributeType::Float),
        (attribute.i.is_some(), AttributeType::Int),
        (attribute.s.is_some(), AttributeType::String),
        (attribute.t.is_some(), AttributeType::Tensor),
        (attribute.g.is_some(), AttributeType::Graph),
        (!attribute.floats.is_empty(), AttributeType::Floats),
        (!attribute.ints.is_empty(), AttributeType::Ints),
        (!attribute.strings.is_empty(), AttributeType::Strings),
        (!attribute.tensors.is_empty(), AttributeType::Tensors),
        (!attribute.graphs.is_empty(), AttributeType::Graphs),
    ];
    present.into_iter().find(|(there, _)| *there).map(|(_, kind)| kind)
}
