//! Bindings of symbolic dimensions.

use std::collections::BTreeMap;

use crate::file::Model;
use crate::proto::StringStringEntryProto;

/// What symbolic dimensions are bound to: `--dim NAME=VALUE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dims(BTreeMap<String, u64>);

impl Dims {
    /// No bindings.
    pub fn none() -> Dims {
        Dims::default()
    }

    /// The bindings for which the model was rewritten, as its metadata says; none if it was not, or says nothing.
    pub fn written(model: &Model) -> Dims {
        Dims::in_metadata(&model.proto.metadata_props)
    }

    /// The bindings that a model's metadata states.
    pub(crate) fn in_metadata(metadata: &[StringStringEntryProto]) -> Dims {
        let entry = metadata.iter().find(|p| p.key() == crate::key::DIMS);
        Dims(entry.and_then(|p| serde_json::from_str(p.value()).ok()).unwrap_or_default())
    }

    /// Binds `name`; what comes back is the value it had before.
    pub fn bind(&mut self, name: impl Into<String>, value: u64) -> Option<u64> {
        self.0.insert(name.into(), value)
    }

    /// The value of `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Every binding, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, &value)| (&**name, value))
    }
}

impl<N: Into<String>> FromIterator<(N, u64)> for Dims {
    fn from_iter<I: IntoIterator<Item = (N, u64)>>(bindings: I) -> Dims {
        Dims(bindings.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}
