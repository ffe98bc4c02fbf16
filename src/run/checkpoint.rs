//! The checkpoint that `--save` writes and `--resume` reads: everything that determines the next step.
//!
//! The file holds the variables, and small tensors that the call gave. For large constants, random values, batches
//! and the model's own constants it holds digests: these values must be the same again, or the resumed run would
//! differ.
//!
//! Each tensor of the file has a digest in the metadata, and the header, which holds the metadata, has one, too: no byte
//! of the file can change without a word.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use lmsc_ir::{Digest, Graph, TensorType, Type};
use serde::{Deserialize, Serialize};

use super::runner::Runner;
use super::tensors::{self, Tensors};
use crate::{Code, Error};

/// The largest given constant that a checkpoint holds. Each `--save-every` writes these tensors again, so that a
/// larger one is represented by its digest.
const LARGEST_SAVED: u64 = 1 << 20;

/// The version of the written format. The first version had only `steps` and `seed`; the second had no digests of its
/// tensors, and others of values.
const FORMAT: u32 = 3;

/// The source of an input's or initializer's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Origin {
    /// The caller gave it.
    Given,
    /// The name and the seed determine it.
    Drawn,
    /// It is in the model.
    Model,
}

/// The source and digest of a value that no step changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Value {
    pub(crate) from: Origin,
    /// The digest of its bytes. In the second format it is XXH3, which is not compared.
    #[serde(alias = "xxh3", with = "as_text")]
    blake3: Digest,
}

impl Value {
    pub(crate) fn new(from: Origin, bytes: &[u8]) -> Value {
        Value { from, blake3: Digest::of(bytes) }
    }
}

/// Digests in JSON: texts of hexadecimal digits.
mod as_text {
    use lmsc_ir::Digest;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(crate) fn serialize<S: Serializer>(digest: &Digest, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(digest)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Digest, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

/// A digest in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Stated(#[serde(with = "as_text")] Digest);

impl Stated {
    pub(crate) fn of(bytes: &[u8]) -> Stated {
        Stated(Digest::of(bytes))
    }
}

/// The metadata of a file of `--save`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Says {
    /// The digest of the file's bytes before the tensors, with zeros in its own place. It is the first field, so that no
    /// name stands before it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    whole: String,
    #[serde(default = "first_format")]
    format: u32,
    pub(crate) steps: u64,
    pub(crate) seed: u64,
    /// The device that ran the steps.
    #[serde(default)]
    pub(crate) device: String,
    #[serde(default)]
    pub(crate) skip_closed: bool,
    /// By input of `--data`, the digest of all batches.
    #[serde(default)]
    pub(crate) batches: BTreeMap<String, Stated>,
    /// The values that no step changes, by input or initializer.
    #[serde(default)]
    pub(crate) values: BTreeMap<String, Value>,
    /// The digests of the tensors in the file.
    #[serde(default)]
    tensors: BTreeMap<String, Stated>,
}

/// The text before the digest of the header: the field's name, in JSON within JSON.
const BEFORE_WHOLE: &[u8] = br#"\"whole\":\""#;

/// Digits of the digest of the header.
const DIGITS: usize = 64;

/// The place of the header's digest in the file's first bytes.
fn place_of_whole(first: &[u8]) -> Option<std::ops::Range<usize>> {
    let begin =
        first.windows(BEFORE_WHOLE.len()).position(|bytes| bytes == BEFORE_WHOLE)? + BEFORE_WHOLE.len();
    (begin + DIGITS <= first.len()).then_some(begin..begin + DIGITS)
}

/// The digest of a file's bytes before its tensors, with zeros in the place of the digest itself.
fn digest_of_header(first: &[u8]) -> Option<Digest> {
    let mut first = first.to_vec();
    let place = place_of_whole(&first)?;
    first[place].fill(b'0');
    Some(Digest::of(&first))
}

/// Writes the digest of a file's bytes before its tensors into its place among them.
pub(crate) fn seal(first: &mut [u8]) {
    if let (Some(place), Some(digest)) = (place_of_whole(first), digest_of_header(first)) {
        first[place].copy_from_slice(digest.to_string().as_bytes());
    }
}

/// The digests of the tensors of a file that `lmsc` saved; empty if it is of an earlier format, which had none, or of a
/// later one. `first` are the file's bytes before the tensors, and `says` is the text of its metadata.
///
/// # Errors
/// A sentence, if the header is not as it was saved.
pub(crate) fn digests(first: &[u8], says: &str) -> Result<BTreeMap<String, Digest>, String> {
    let damaged = || "it is damaged: its header is not as it was saved".to_owned();
    let any: serde_json::Value = serde_json::from_str(says).map_err(|_| damaged())?;
    if any.get("format").and_then(serde_json::Value::as_u64).is_some_and(|format| format > FORMAT.into()) {
        return Ok(BTreeMap::new());
    }
    let says: Says = serde_json::from_value(any).map_err(|_| damaged())?;
    if says.format < 3 && says.whole.is_empty() {
        return Ok(BTreeMap::new());
    }
    match digest_of_header(first) {
        Some(digest) if digest.to_string() == says.whole => {
            Ok(says.tensors.into_iter().map(|(name, Stated(digest))| (name, digest)).collect())
        }
        _ => Err(damaged()),
    }
}

fn first_format() -> u32 {
    1
}

/// The data of a checkpoint, apart from the variables.
pub(crate) struct Checkpoint {
    pub(crate) says: Says,
    /// Small tensors that the call gave.
    pub(crate) small: BTreeMap<String, (TensorType, Bytes)>,
}

impl Checkpoint {
    /// The checkpoint of a run on this device, before its first step.
    pub(crate) fn new(seed: u64, device: String, skip_closed: bool) -> Checkpoint {
        let says = Says {
            whole: "0".repeat(DIGITS),
            format: FORMAT,
            steps: 0,
            seed,
            device,
            skip_closed,
            batches: BTreeMap::new(),
            values: BTreeMap::new(),
            tensors: BTreeMap::new(),
        };
        Checkpoint { says, small: BTreeMap::new() }
    }

    /// Records that an input or initializer has these bytes, which no step changes.
    pub(crate) fn give(&mut self, name: &str, ty: &TensorType, bytes: &Bytes) {
        self.says.values.insert(name.to_owned(), Value::new(Origin::Given, bytes));
        if bytes.len() as u64 <= LARGEST_SAVED {
            self.small.insert(name.to_owned(), (ty.clone(), bytes.clone()));
        }
    }

    /// Removes the record of an input that changes from step to step.
    pub(crate) fn forget(&mut self, name: &str) {
        self.says.values.remove(name);
        self.small.remove(name);
    }

    /// Whether there is a record of the input or initializer.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.says.values.contains_key(name) || self.says.batches.contains_key(name)
    }

    /// Records the digests of the model's constants, unless there is a record already.
    pub(crate) fn add_constants(&mut self, graph: &Graph, variables: &BTreeMap<String, Type>) {
        for initializer in &graph.initializers {
            let name = graph.value(initializer.value).name.to_string();
            if let (false, Some(blake3)) = (variables.contains_key(&name), initializer.data.digest()) {
                let constant = Value { from: Origin::Model, blake3 };
                self.says.values.entry(name).or_insert(constant);
            }
        }
    }

    /// Writes the checkpoint after the steps so far, with the session's variables. Of the files that were there before,
    /// `keep - 1` stay, with a number behind their names.
    pub(crate) fn save(
        &mut self,
        path: &Path,
        keep: u64,
        variables: &BTreeMap<String, Type>,
        session: &mut Runner,
    ) -> Result<(), Error> {
        self.says.steps = session.steps();
        let variables =
            variables.iter().filter_map(|(name, ty)| Some((name.clone(), ty.as_tensor()?.clone())));
        let small = self.small.iter().map(|(name, (ty, _))| (name.clone(), ty.clone()));
        let types: BTreeMap<String, TensorType> = variables.chain(small).collect();
        let small = std::mem::take(&mut self.small);
        let bytes = |name: &str| match small.get(name) {
            Some((_, bytes)) => Ok(bytes.clone()),
            None => session
                .session()
                .get(name)
                .map(|bytes| bytes.unwrap_or_default().into())
                .map_err(std::io::Error::other),
        };
        let written = self.write(path, keep, &types, bytes);
        self.small = small;
        written
    }

    /// Writes the checkpoint with these tensors.
    pub(crate) fn write(
        &mut self,
        path: &Path,
        keep: u64,
        types: &BTreeMap<String, TensorType>,
        mut bytes: impl FnMut(&str) -> std::io::Result<Bytes>,
    ) -> Result<(), Error> {
        let digest = |name: &String| Ok((name.clone(), Stated::of(&bytes(name)?)));
        let digests: std::io::Result<_> = types.keys().map(digest).collect();
        self.says.tensors = digests.map_err(|e| Error::writing(path, &e))?;
        let says = serde_json::to_string(&self.says).expect("it is JSON");
        tensors::write(path, types, Some(says), keep, bytes)
    }
}

/// The metadata of the file that is resumed.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) if there are none, or if their format is newer than this program.
pub(crate) fn says(path: &Path, tensors: &Tensors) -> Result<Says, Error> {
    let Some(says) = tensors.says.as_deref().and_then(|text| serde_json::from_str::<Says>(text).ok()) else {
        let help = "give a file that --save wrote; parameters alone are given with --params";
        return Err(
            Error::in_file(Code::Malformed, path, "it does not say how many steps were run").with_help(help)
        );
    };
    if says.format > FORMAT {
        let message =
            format!("it is in format {}, and this version of lmsc reads up to {FORMAT}", says.format);
        return Err(Error::in_file(Code::Malformed, path, message)
            .with_help("resume it with the version that saved it"));
    }
    Ok(says)
}

impl Says {
    /// The faults of a file of an earlier format.
    pub(crate) fn warning(&self) -> Option<&'static str> {
        let old = "an earlier version saved it, with no digests that prove anything: neither damage to its tensors nor other \
                   constants and batches are noticed";
        (self.format < FORMAT).then_some(old)
    }

    /// Refuses to resume `before` if the next step would not be the next one of that run.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) with everything that is missing or different.
    pub(crate) fn follows(&self, before: &Says, path: &Path) -> Result<(), Error> {
        let mut wrong = Vec::new();
        if before.format > 1 && before.skip_closed != self.skip_closed {
            let word = if before.skip_closed { "with" } else { "without" };
            wrong.push(format!("it was saved by a run {word} --skip-closed"));
        }
        for (name, was) in &before.values {
            wrong.extend(self.change(name, was));
        }
        for (name, was) in &before.batches {
            match self.batches.get(name) {
                None => wrong.push(format!("`{name}` came from --data; give the same file again")),
                Some(Stated(is)) if differ(*is, was.0) => {
                    wrong.push(format!("--data has other batches of `{name}`"))
                }
                Some(_) => {}
            }
        }
        for (name, is) in self.values.iter().filter(|(name, _)| !before.values.contains_key(*name)) {
            // The first format has no record of given values; a user who gives one again is trusted.
            let is_known = is.from == Origin::Model || before.format == 1 && is.from == Origin::Given;
            if !is_known && !before.batches.contains_key(name) {
                wrong.push(format!("it does not say what `{name}` was; give it with --params or --data"));
            }
        }
        refuse(&wrong, path)
    }

    /// Refuses to resume `before` if a constant of the model, or a given value, is different now. Values without a
    /// record now are left to the caller.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) with everything that is different.
    pub(crate) fn follows_constants(&self, before: &Says, path: &Path) -> Result<(), Error> {
        let is_there = |name: &&String| self.values.contains_key(*name);
        let known = before.values.iter().filter(|(name, _)| is_there(name));
        let wrong: Vec<String> = known.filter_map(|(name, was)| self.change(name, was)).collect();
        refuse(&wrong, path)
    }

    /// The fault of a value that is missing or different now, if it is one.
    fn change(&self, name: &str, was: &Value) -> Option<String> {
        let Some(is) = self.values.get(name) else {
            return match (was.from, self.batches.contains_key(name)) {
                // Another plan of the model may not need it.
                (Origin::Model, _) => None,
                (_, true) => Some(format!("`{name}` is in --data, and was not")),
                (_, false) => Some(format!("the step has no `{name}`")),
            };
        };
        if !differ(is.blake3, was.blake3) {
            return None;
        }
        Some(match (was.from, is.from) {
            (_, Origin::Given) => format!("`{name}` is given other bytes than it had"),
            (Origin::Given, _) => {
                format!("`{name}` was given and is too large for the file; give it again, with --params")
            }
            (Origin::Model, Origin::Model) => format!("the model has other bytes of `{name}`"),
            (_, Origin::Drawn | Origin::Model) => format!("`{name}` had other random values"),
        })
    }
}

/// Whether the digests are of different bytes. Those of earlier versions are not compared, of which a warning tells.
fn differ(is: Digest, was: Digest) -> bool {
    was.is_proof() && is != was
}

/// The error of the faults, if there are any.
fn refuse(wrong: &[String], path: &Path) -> Result<(), Error> {
    if wrong.is_empty() {
        return Ok(());
    }
    let message = format!("the run cannot go on as if it had not stopped:\n  {}", wrong.join("\n  "));
    let help = format!(
        "give what that run was given; or begin another from its variables: --params {}",
        path.display()
    );
    Err(Error::in_file(Code::Malformed, path, message).with_help(help))
}
