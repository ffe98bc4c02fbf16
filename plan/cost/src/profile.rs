//! Measured costs, as a file.
//!
//! ```json
//! {
//!   "format": 1,
//!   "device": "Tesla V100-PCIE-16GB",
//!   "link": {
//!     "duplex": "full",
//!     "out_bytes_per_second": 12200000000,
//!     "in_bytes_per_second": 12100000000,
//!     "out_beside_in_bytes_per_second": 11000000000,
//!     "in_beside_out_bytes_per_second": 10500000000,
//!     "latency_nanos": 9000
//!   },
//!   "entries": [
//!     { "node": "Relu(float[64,64]) -> float[64,64]", "nanos": 5400, "workspace": 0 }
//!   ]
//! }
//! ```
//!
//! `format` is the version of this schema. `link` may be omitted. `node` is a [`signature`](super::signature()), `nanos` the
//! median of repeated runs, `workspace` the bytes that the node needs, or performs best with, beside its operands and
//! results. Unknown keys are refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::target::TargetLink;

/// The version of the schema that is read and written.
pub const FORMAT: u64 = 1;

/// Measured costs of one device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The device, as it names itself.
    pub device: String,
    /// The measured link, if there is one: replaces that of a target.
    pub link: Option<TargetLink>,
    entries: BTreeMap<String, MeasuredCost>,
}

/// The cost of a node, as measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredCost {
    /// The median of its times, in nanoseconds.
    pub nanos: u64,
    /// Bytes of device memory that it needs beside operands and results.
    pub workspace: u64,
}

/// The reason why a text is no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProfileError {
    /// The text is no JSON, or its outermost keys are not those of a profile.
    #[error("{origin}: {message}")]
    Document {
        /// The origin of the text.
        origin: String,
        /// The defect, and its position.
        message: String,
    },
    /// A malformed entry.
    #[error("{origin}: entry {index} ({node}): {message}")]
    Entry {
        /// The origin of the text.
        origin: String,
        /// The index of the entry, from 0.
        index: usize,
        /// Its signature, or the value in its place.
        node: String,
        /// The defect.
        message: String,
    },
}

#[derive(Serialize)]
struct Entry {
    node: String,
    nanos: u64,
    workspace: u64,
}

fn read_link(value: &Value) -> Result<TargetLink, String> {
    let fields = Fields::of(value).map_err(|e| format!("`link`: {e}"))?;
    let read = |fields: &Map<String, Value>| TargetLink::deserialize(fields).map_err(|e| e.to_string());
    read(fields.0).map_err(|message| {
        // Without the wrong field, the message differs.
        let is_wrong = |name: &&String| {
            let others = fields.0.iter().filter(|(other, _)| other != name);
            let others = others.map(|(name, value)| (name.clone(), value.clone())).collect();
            read(&others).err().as_ref() != Some(&message)
        };
        let name = fields.0.keys().find(is_wrong).map(|name| format!(".{name}")).unwrap_or_default();
        format!("`link{name}`: {message}")
    })
}

/// The fields of an object; errors name the field.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn of(value: &'a Value) -> Result<Fields<'a>, String> {
        value.as_object().map(Fields).ok_or_else(|| "expected an object, `{…}`".to_owned())
    }

    /// The value of the field, which must exist and be of this kind.
    fn get<T>(&self, name: &str, kind: &str, read: fn(&'a Value) -> Option<T>) -> Result<T, String> {
        let value = self.0.get(name).ok_or_else(|| format!("`{name}` is missing, expected {kind}"))?;
        read(value).ok_or_else(|| {
            let mut found = value.to_string();
            if let Some((end, _)) = found.char_indices().nth(40) {
                found.replace_range(end.., "…");
            }
            format!("`{name}` is {found}, expected {kind}")
        })
    }

    /// Checks that the object has no other fields.
    fn only(&self, names: &[&str]) -> Result<(), String> {
        match self.0.keys().find(|key| !names.contains(&key.as_str())) {
            Some(key) => Err(format!("there is no field `{key}`; the fields are `{}`", names.join("`, `"))),
            None => Ok(()),
        }
    }
}

impl Profile {
    /// A profile without entries.
    pub fn new(device: impl Into<String>, link: Option<TargetLink>) -> Profile {
        Profile { device: device.into(), link, entries: BTreeMap::new() }
    }

    /// The profile that the text holds.
    ///
    /// # Errors
    /// [`ProfileError`], which begins with `origin` and names the entry.
    pub fn parse(text: &str, origin: &str) -> Result<Profile, ProfileError> {
        let document = |message: String| ProfileError::Document { origin: origin.to_owned(), message };
        // The version first: another one may have other keys.
        let value: Value = serde_json::from_str(text).map_err(|e| document(e.to_string()))?;
        let fields = Fields::of(&value).map_err(document)?;
        let format = fields.get("format", "the version of this schema", Value::as_u64).map_err(document)?;
        if format != FORMAT {
            return Err(document(format!(
                "`format` is {format}, expected {FORMAT}; measure again with this version of lmsc"
            )));
        }
        fields.only(&["format", "device", "link", "entries"]).map_err(document)?;
        let device = fields.get("device", "a text", Value::as_str).map_err(document)?;
        let link = value.get("link").filter(|link| !link.is_null());
        let link = link.map(read_link).transpose().map_err(document)?;
        if let Some(message) = link.and_then(|link| link.contradiction()) {
            return Err(document(message));
        }
        let mut profile = Profile::new(device, link);
        let entries = fields.get("entries", "a list", Value::as_array).map_err(document)?;
        for (index, value) in entries.iter().enumerate() {
            let node = value.get("node").map_or_else(|| "no `node`".to_owned(), ToString::to_string);
            profile.read(value).map_err(|message| ProfileError::Entry {
                origin: origin.to_owned(),
                index,
                node,
                message,
            })?;
        }
        Ok(profile)
    }

    fn read(&mut self, value: &Value) -> Result<(), String> {
        let fields = Fields::of(value)?;
        fields.only(&["node", "nanos", "workspace"])?;
        let node = fields.get("node", "a signature", Value::as_str)?.to_owned();
        let nanos = fields.get("nanos", "whole nanoseconds", Value::as_u64)?;
        let workspace = fields.get("workspace", "a whole number of bytes", Value::as_u64)?;
        if nanos == 0 {
            return Err("`nanos` is 0, expected at least 1: no kernel takes no time".to_owned());
        }
        match self.entries.insert(node, MeasuredCost { nanos, workspace }) {
            Some(_) => {
                Err("it was measured already in an earlier entry; expected one entry for a node".to_owned())
            }
            None => Ok(()),
        }
    }

    /// The measurement for nodes with this [`signature`](super::signature()).
    pub fn get(&self, signature: &str) -> Option<MeasuredCost> {
        self.entries.get(signature).copied()
    }

    /// Adds a measurement, or replaces an earlier one of the same node. A time of zero counts as one nanosecond.
    pub fn insert(&mut self, signature: String, measured: MeasuredCost) {
        let nanos = measured.nanos.max(1);
        self.entries.insert(signature, MeasuredCost { nanos, ..measured });
    }

    /// The text that [`Profile::parse`] reads, entries sorted by signature.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            format: u64,
            device: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            link: Option<TargetLink>,
            entries: Vec<Entry>,
        }
        let entry = |(node, measured): (&String, &MeasuredCost)| Entry {
            node: node.clone(),
            nanos: measured.nanos,
            workspace: measured.workspace,
        };
        let document = Document {
            format: FORMAT,
            device: &self.device,
            link: self.link,
            entries: self.entries.iter().map(entry).collect(),
        };
        serde_json::to_string_pretty(&document).expect("a profile is JSON") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    fn profile() -> Profile {
        let link = Target::built_in("a100-pcie4").unwrap().link;
        let mut profile = Profile::new("A100", Some(link));
        profile.insert("Relu(float[2]) -> float[2]".to_owned(), MeasuredCost { nanos: 0, workspace: 0 });
        profile.insert(
            "Add(float[2], float[2]) -> float[2]".to_owned(),
            MeasuredCost { nanos: 7, workspace: 3 },
        );
        profile
    }

    fn refusal(from: &str, to: &str) -> String {
        let text = profile().to_json();
        assert!(text.contains(from), "{text}");
        Profile::parse(&text.replacen(from, to, 1), "p.json").unwrap_err().to_string()
    }

    #[test]
    fn written_profiles_read_back_equal() {
        let text = profile().to_json();
        assert_eq!(Profile::parse(&text, "").unwrap(), profile());
        assert_eq!(
            profile().get("Relu(float[2]) -> float[2]"),
            Some(MeasuredCost { nanos: 1, workspace: 0 })
        );
        assert!(text.find("Add").unwrap() < text.find("Relu").unwrap(), "sorted: {text}");
        let without_link = Profile { link: None, ..profile() };
        assert_eq!(Profile::parse(&without_link.to_json(), "").unwrap(), without_link);
    }

    #[test]
    fn nonsense_is_refused_with_its_entry() {
        assert_eq!(
            refusal("\"nanos\": 7", "\"nanos\": -7"),
            "p.json: entry 0 (\"Add(float[2], float[2]) -> float[2]\"): `nanos` is -7, expected whole nanoseconds"
        );
        assert_eq!(
            refusal("\"nanos\": 1,", "\"nanos\": 0,"),
            "p.json: entry 1 (\"Relu(float[2]) -> float[2]\"): `nanos` is 0, expected at least 1: no kernel takes no \
             time"
        );
        assert_eq!(
            refusal("Add(float[2], float[2])", "Relu(float[2])"),
            "p.json: entry 1 (\"Relu(float[2]) -> float[2]\"): it was measured already in an earlier entry; expected \
             one entry for a node"
        );
        assert_eq!(
            refusal("\"node\": \"Add(float[2], float[2]) -> float[2]\",", ""),
            "p.json: entry 0 (no `node`): `node` is missing, expected a signature"
        );
        assert!(
            refusal("\"workspace\": 3", "\"workspace\": 3, \"speed\": 1")
                .ends_with("there is no field `speed`; the fields are `node`, `nanos`, `workspace`")
        );
        assert!(
            refusal("\"workspace\": 3", "\"workspace\": \"3\"")
                .ends_with("`workspace` is \"3\", expected a whole number of bytes")
        );
    }

    #[test]
    fn a_document_that_is_no_profile_is_refused() {
        assert_eq!(
            refusal("\"format\": 1", "\"format\": 2"),
            "p.json: `format` is 2, expected 1; measure again with this version of lmsc"
        );
        assert_eq!(
            refusal("\"format\": 1,", ""),
            "p.json: `format` is missing, expected the version of this schema"
        );
        assert_eq!(
            refusal("\"device\": \"A100\"", "\"device\": 5"),
            "p.json: `device` is 5, expected a text"
        );
        assert!(refusal("\"latency_nanos\": 10000", "\"latency_nanos\": -1").starts_with(
            "p.json: `link.latency_nanos`: invalid value: integer `-1`, expected a whole number"
        ));
        assert!(
            refusal("\"in_bytes_per_second\": ", "\"in_bytes_per_second\": -")
                .starts_with("p.json: `link.in_bytes_per_second`: ")
        );
        assert!(refusal("\"duplex\": \"full\"", "\"duplex\": \"half\"").contains("never busy"));
        assert!(Profile::parse("{", "p.json").unwrap_err().to_string().contains("line 1 column 1"));
        assert_eq!(
            Profile::parse("[]", "p.json").unwrap_err().to_string(),
            "p.json: expected an object, `{…}`"
        );
    }
}
