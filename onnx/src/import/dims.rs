//! Sizes of inputs that a file leaves open.

use std::collections::BTreeMap;

use super::extent::Extent;
use crate::file::Model;
use crate::proto::{DimValue, StringStringEntryProto, TypeProto, TypeValue};
use crate::{key, metadata_of};

/// Sizes that the caller gives: values of symbolic dimensions (`--dim NAME=VALUE`) and extents of inputs
/// (`--shape INPUT=2x3`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dims {
    symbols: BTreeMap<String, u64>,
    shapes: BTreeMap<String, Vec<u64>>,
}

impl Dims {
    /// No sizes.
    pub fn none() -> Dims {
        Dims::default()
    }

    /// The sizes for which the model was rewritten, from its metadata; none if it was not, or has no metadata. Names that the
    /// model no longer has are left out.
    pub fn written(model: &Model) -> Dims {
        let mut dims = Dims::in_metadata(&model.proto.metadata_props);
        let inputs = model.proto.graph.iter().flat_map(|graph| &graph.input);
        let shapes =
            inputs.clone().filter_map(|input| match input.r#type.as_ref().and_then(TypeProto::value)? {
                TypeValue::Tensor(tensor) => tensor.shape.as_ref(),
                _ => None,
            });
        let names = shapes.flat_map(|shape| &shape.dim).filter_map(|dim| match dim.value() {
            Some(DimValue::Name(name)) => Some(name),
            _ => None,
        });
        let names: Vec<&str> = names.collect();
        let has =
            |of: &str, name: &str| Extent::parse(of).is_some_and(|extent| extent.names().contains(name));
        dims.symbols.retain(|name, _| names.iter().any(|n| n == name || has(n, name)));
        dims.shapes.retain(|name, _| inputs.clone().any(|input| input.name() == name));
        dims
    }

    /// The sizes in a model's metadata.
    pub(crate) fn in_metadata(metadata: &[StringStringEntryProto]) -> Dims {
        let entry = |key| metadata_of(metadata, key);
        Dims {
            symbols: entry(key::DIMS).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
            shapes: entry(key::SHAPES).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        }
    }

    /// Binds `name`; returns its previous value.
    pub fn bind(&mut self, name: impl Into<String>, value: u64) -> Option<u64> {
        self.symbols.insert(name.into(), value)
    }

    /// Sets the extents of the input; returns the previous ones.
    pub fn bind_shape(&mut self, input: impl Into<String>, extents: Vec<u64>) -> Option<Vec<u64>> {
        self.shapes.insert(input.into(), extents)
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.symbols.get(name).copied()
    }

    /// The extents of the input.
    pub fn shape(&self, input: &str) -> Option<&[u64]> {
        self.shapes.get(input).map(Vec::as_slice)
    }

    /// Every binding, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.symbols.iter().map(|(name, &value)| (&**name, value))
    }

    /// The given extents of inputs, by name.
    pub fn shapes(&self) -> impl Iterator<Item = (&str, &[u64])> {
        self.shapes.iter().map(|(name, extents)| (&**name, &**extents))
    }
}

impl<N: Into<String>> FromIterator<(N, u64)> for Dims {
    fn from_iter<I: IntoIterator<Item = (N, u64)>>(bindings: I) -> Dims {
        let symbols = bindings.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Dims { symbols, shapes: BTreeMap::new() }
    }
}
