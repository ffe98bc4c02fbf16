//! The checkpoint that `--save` writes and `--resume` reads: everything that determines the next step.
//!
//! The file holds the variables, and small tensors that the call gave. For large constants, random values, batches
//! and the model's own constants it holds digests: these values must be the same again, or the resumed run would
//! differ.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use lmsc_ir::{Graph, TensorType, Type};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::runner::Runner;
use super::tensors::{self, Tensors};
use crate::{Code, Error};

/// The largest given constant that a checkpoint holds. Each `--save-every` writes these tensors again, so that a
/// larger one is represented by its digest.
const LARGEST_SAVED: u64 = 1 << 20;

/// The version of the written format. The first version had only `steps` and `seed`.
const FORMAT: u32 = 2;

/// The source of an input's or initializer's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Origin {
    /// The caller gave it.
    Given,
    /// The name and the seed determine it.
    Drawn,
    /// It is in the model.
    Model,
}

/// The source and digest of a value that no step changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Value {
    pub(super) from: Origin,
    /// XXH3-128 of its bytes, in hexadecimal digits.
    pub(super) xxh3: String,
}

impl Value {
    pub(super) fn new(from: Origin, bytes: &[u8]) -> Value {
        Value { from, xxh3: digest(bytes) }
    }
}

/// The digest of bytes, as in files.
pub(super) fn digest(bytes: &[u8]) -> String {
    hexadecimal(xxh3_128(bytes))
}

fn hexadecimal(digest: u128) -> String {
    format!("{digest:032x}")
}

/// The metadata of a file of `--save`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Says {
    #[serde(default = "first_format")]
    format: u32,
    pub(super) steps: u64,
    pub(super) seed: u64,
    /// The device that ran the steps.
    #[serde(default)]
    pub(super) device: String,
    #[serde(default)]
    pub(super) skip_closed: bool,
    /// By input of `--data`, the digest of all batches.
    #[serde(default)]
    pub(super) batches: BTreeMap<String, String>,
    /// The values that no step changes, by input or initializer.
    #[serde(default)]
    pub(super) values: BTreeMap<String, Value>,
}

fn first_format() -> u32 {
    1
}

/// The data of a checkpoint, apart from the variables.
pub(super) struct Checkpoint {
    pub(super) says: Says,
    /// Small tensors that the call gave.
    pub(super) small: BTreeMap<String, (TensorType, Bytes)>,
}

impl Checkpoint {
    /// The checkpoint of a run on this device, before its first step.
    pub(super) fn new(seed: u64, device: String, skip_closed: bool) -> Checkpoint {
        let (batches, values) = (BTreeMap::new(), BTreeMap::new());
        let says = Says { format: FORMAT, steps: 0, seed, device, skip_closed, batches, values };
        Checkpoint { says, small: BTreeMap::new() }
    }

    /// Records that an input or initializer has these bytes, which no step changes.
    pub(super) fn give(&mut self, name: &str, ty: &TensorType, bytes: &Bytes) {
        self.says.values.insert(name.to_owned(), Value::new(Origin::Given, bytes));
        if bytes.len() as u64 <= LARGEST_SAVED {
            self.small.insert(name.to_owned(), (ty.clone(), bytes.clone()));
        }
    }

    /// Removes the record of an input that changes from step to step.
    pub(super) fn forget(&mut self, name: &str) {
        self.says.values.remove(name);
        self.small.remove(name);
    }

    /// Whether there is a record of the input or initializer.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.says.values.contains_key(name) || self.says.batches.contains_key(name)
    }

    /// Records the digests of the model's constants, unless there is a record already.
    pub(super) fn add_constants(&mut self, graph: &Graph, variables: &BTreeMap<String, Type>) {
        for initializer in &graph.initializers {
            let name = graph.value(initializer.value).name.to_string();
            if let (false, Some(digest)) = (variables.contains_key(&name), initializer.data.digest()) {
                let constant = Value { from: Origin::Model, xxh3: hexadecimal(digest) };
                self.says.values.entry(name).or_insert(constant);
            }
        }
    }

    /// Writes the checkpoint after the steps so far, with the session's variables.
    pub(super) fn save(
        &mut self,
        path: &Path,
        variables: &BTreeMap<String, Type>,
        session: &mut Runner,
    ) -> Result<(), Error> {
        self.says.steps = session.steps();
        let says = serde_json::to_string(&self.says).expect("it is JSON");
        let variables =
            variables.iter().filter_map(|(name, ty)| Some((name.clone(), ty.as_tensor()?.clone())));
        let small = self.small.iter().map(|(name, (ty, _))| (name.clone(), ty.clone()));
        let types = variables.chain(small).collect();
        tensors::write(path, &types, Some(says), |name| match self.small.get(name) {
            Some((_, bytes)) => Ok(bytes.clone()),
            None => session
                .session()
                .get(name)
                .map(|bytes| bytes.unwrap_or_default().into())
                .map_err(std::io::Error::other),
        })
    }
}

/// The metadata of the file that is resumed.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) if there are none, or if their format is newer than this program.
pub(super) fn says(path: &Path, tensors: &Tensors) -> Result<Says, Error> {
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
    /// Refuses to resume `before` if the next step would not be the next one of that run.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) with everything that is missing or different.
    pub(super) fn follows(&self, before: &Says, path: &Path) -> Result<(), Error> {
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
                Some(is) if is != was => wrong.push(format!("--data has other batches of `{name}`")),
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
    pub(super) fn follows_constants(&self, before: &Says, path: &Path) -> Result<(), Error> {
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
        if is.xxh3 == was.xxh3 {
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
