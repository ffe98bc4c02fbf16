//! Inputs that are constants of a step: `--value NAME=VALUE`.

use std::collections::BTreeMap;

use lmsc_ir::{ElementType, words};

use crate::file::Model;
use crate::proto::{DimValue, Dimension, TensorProto, TypeProto, TypeValue};
use crate::shapes::element_type;
use crate::{Dims, key, metadata_of, set_metadata};

/// Why an input cannot have the value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--value {input}={value}: {problem}")]
pub struct ValueError {
    /// The input that was named.
    pub input: String,
    /// The value that was given.
    pub value: String,
    /// The error.
    pub problem: String,
}

/// Makes inputs constant: each gets its value, elements separated by commas, as its default in the file, and is recorded in the
/// model's metadata.
///
/// # Errors
/// [`ValueError`] names the input.
pub fn set_values(model: &mut Model, values: &[(String, String)], dims: &Dims) -> Result<(), ValueError> {
    let written = metadata_of(&model.proto.metadata_props, key::VALUES);
    let mut written: BTreeMap<String, String> =
        written.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    for (input, value) in values {
        let refuse = |problem: String| ValueError { input: input.clone(), value: value.clone(), problem };
        if let Some(before) = written.get(input).filter(|before| *before != value) {
            let problem = format!("{input}={before} is given, too, or the file was rewritten for it");
            return Err(refuse(problem));
        }
        let graph = model.proto.graph.get_or_insert_default();
        let Some(declared) = graph.input.iter().find(|i| i.name() == input) else {
            let instead = words::instead(input, graph.input.iter().map(|i| i.name()), "inputs");
            return Err(refuse(format!("there is no input of this name; {instead}")));
        };
        let Some(TypeValue::Tensor(ty)) = declared.r#type.as_ref().and_then(TypeProto::value) else {
            return Err(refuse("the input is no tensor".to_owned()));
        };
        let texts: Vec<&str> = value.split(',').map(str::trim).collect();
        let extent = |dim: &Dimension| match dim.value()? {
            DimValue::Extent(extent) => u64::try_from(extent).ok(),
            DimValue::Name(name) => dims.get(name),
        };
        let declared_dims = ty.shape.as_ref().map(|shape| shape.dim.iter().map(extent).collect::<Vec<_>>());
        let extents = match (dims.shape(input), declared_dims.as_deref()) {
            (Some(extents), _) => Some(extents.to_vec()),
            // A list has as many elements as are given.
            (None, Some([None])) => Some(vec![texts.len() as u64]),
            (None, Some(extents)) => extents.iter().copied().collect(),
            (None, None) => None,
        };
        let Some(extents) = extents else {
            return Err(refuse("the extents of the input are not known; give them with --shape".to_owned()));
        };
        let count = extents.iter().try_fold(1_u64, |n, &d| n.checked_mul(d));
        if count != Some(texts.len() as u64) {
            let given = words::count(texts.len(), "element");
            let shown = extents.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            return Err(refuse(format!("the value has {given}, but the input has extents [{shown}]")));
        }
        let element = element_type(ty.elem_type().into());
        let parsed = texts.iter().map(|text| element.and_then(|element| bytes_of(element, text)));
        let Some(bytes) = parsed.collect::<Option<Vec<_>>>() else {
            let name = element.map_or("?", ElementType::name);
            return Err(refuse(format!(
                "it is not a value of type {name}, such as 1, with commas between elements"
            )));
        };
        let tensor = TensorProto {
            name: Some(input.clone()),
            dims: extents.iter().map(|&d| d as i64).collect(),
            data_type: ty.elem_type,
            raw_data: Some(bytes.concat().into()),
            ..TensorProto::default()
        };
        graph.initializer.retain(|other| other.name() != input);
        graph.initializer.push(tensor);
        written.insert(input.clone(), value.clone());
    }
    if !values.is_empty() {
        let text = serde_json::json!(written).to_string();
        set_metadata(&mut model.proto.metadata_props, key::VALUES, Some(text));
    }
    Ok(())
}

/// The inputs that are constants of the step, from the model's metadata.
pub fn fixed_values(model: &Model) -> Vec<String> {
    let written = metadata_of(&model.proto.metadata_props, key::VALUES);
    let written: Option<BTreeMap<String, String>> = written.and_then(|text| serde_json::from_str(text).ok());
    written.unwrap_or_default().into_keys().collect()
}

/// The element in the layout of `raw_data`.
fn bytes_of(element: ElementType, text: &str) -> Option<Vec<u8>> {
    use ElementType::*;
    Some(match element {
        Float => text.parse::<f32>().ok()?.to_le_bytes().to_vec(),
        Double => text.parse::<f64>().ok()?.to_le_bytes().to_vec(),
        Float16 => half::f16::from_f32(text.parse().ok()?).to_le_bytes().to_vec(),
        Bfloat16 => half::bf16::from_f32(text.parse().ok()?).to_le_bytes().to_vec(),
        Int8 => text.parse::<i8>().ok()?.to_le_bytes().to_vec(),
        Int16 => text.parse::<i16>().ok()?.to_le_bytes().to_vec(),
        Int32 => text.parse::<i32>().ok()?.to_le_bytes().to_vec(),
        Int64 => text.parse::<i64>().ok()?.to_le_bytes().to_vec(),
        Uint8 => text.parse::<u8>().ok()?.to_le_bytes().to_vec(),
        Uint16 => text.parse::<u16>().ok()?.to_le_bytes().to_vec(),
        Uint32 => text.parse::<u32>().ok()?.to_le_bytes().to_vec(),
        Uint64 => text.parse::<u64>().ok()?.to_le_bytes().to_vec(),
        Bool => match text {
            "true" | "1" => vec![1],
            "false" | "0" => vec![0],
            _ => return None,
        },
        _ => return None,
    })
}
