//! Everything that the next step follows from: what `--save` writes, and `--resume` demands.
//!
//! The file holds the variables, and small tensors that were given. Of what is large and stays the same, of random values,
//! batches and the model's own constants it has digests: they must be there again, or the run is not the same.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use lmsc_ir::{Graph, TensorType, Type};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::runner::Runner;
use super::tensors::{self, Tensors};
use crate::{Code, Error};

/// Given tensors that no step changes are saved up to this size. Each `--save-every` writes them again, so of a larger one
/// there is the digest.
const LARGEST_SAVED: u64 = 1 << 20;

/// The format that is written. The first one had `steps` and `seed` alone.
const FORMAT: u32 = 2;

/// Where the value of an input or initializer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Origin {
    /// The caller gave it.
    Given,
    /// It follows from its name and the seed.
    Drawn,
    /// It is in the model.
    Model,
}

/// What a value was that no step changes.
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

/// The digest of bytes, as files have it.
pub(super) fn digest(bytes: &[u8]) -> String {
    hexadecimal(xxh3_128(bytes))
}

fn hexadecimal(digest: u128) -> String {
    format!("{digest:032x}")
}

/// What a file of `--save` says besides its tensors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Says {
    #[serde(default = "first_format")]
    format: u32,
    pub(super) steps: u64,
    pub(super) seed: u64,
    /// What ran the steps.
    #[serde(default)]
    pub(super) device: String,
    #[serde(default)]
    pub(super) skip_closed: bool,
    /// By input of `--data`, the digest of all batches.
    #[serde(default)]
    pub(super) batches: BTreeMap<String, String>,
    /// By input or initializer that no step changes.
    #[serde(default)]
    pub(super) values: BTreeMap<String, Value>,
}

fn first_format() -> u32 {
    1
}

/// What a run saves.
pub(super) struct Checkpoint {
    pub(super) says: Says,
    /// Small tensors that were given.
    pub(super) small: BTreeMap<String, (TensorType, Bytes)>,
}

impl Checkpoint {
    /// That of a run on this device before its first step.
    pub(super) fn new(seed: u64, device: String, skip_closed: bool) -> Checkpoint {
        let (batches, values) = (BTreeMap::new(), BTreeMap::new());
        let says = Says { format: FORMAT, steps: 0, seed, device, skip_closed, batches, values };
        Checkpoint { says, small: BTreeMap::new() }
    }

    /// Says that an input or initializer is given these bytes, which no step changes.
    pub(super) fn give(&mut self, name: &str, ty: &TensorType, bytes: &Bytes) {
        self.says.values.insert(name.to_owned(), Value::new(Origin::Given, bytes));
        if bytes.len() as u64 <= LARGEST_SAVED {
            self.small.insert(name.to_owned(), (ty.clone(), bytes.clone()));
        }
    }

    /// Says nothing of an input any more, which changes from step to step.
    pub(super) fn forget(&mut self, name: &str) {
        self.says.values.remove(name);
        self.small.remove(name);
    }

    /// Whether it is said what the input or initializer is.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.says.values.contains_key(name) || self.says.batches.contains_key(name)
    }

    /// Says what the model's constants are, but for those that are known from elsewhere.
    pub(super) fn add_constants(&mut self, graph: &Graph, variables: &BTreeMap<String, Type>) {
        for initializer in &graph.initializers {
            let name = graph.value(initializer.value).name.to_string();
            if let (false, Some(digest)) = (variables.contains_key(&name), initializer.data.digest()) {
                let constant = Value { from: Origin::Model, xxh3: hexadecimal(digest) };
                self.says.values.entry(name).or_insert(constant);
            }
        }
    }

    /// Writes it after so many steps, with the variables as the session has them.
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
            Some((_, bytes)) => bytes.clone(),
            None => session.get(name).unwrap_or_default().into(),
        })
    }
}

/// What the file that is resumed says besides its tensors.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) where it says nothing, or in a format that is newer than this program.
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
    /// Refuses to go on from `before` with what is there now, if the next step would not be the next one of that run.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) naming everything that is missing or not what it was.
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
            // In the first format, what was given is not written down; who gives it again knows what it was.
            let is_known = is.from == Origin::Model || before.format == 1 && is.from == Origin::Given;
            if !is_known && !before.batches.contains_key(name) {
                wrong.push(format!("it does not say what `{name}` was; give it with --params or --data"));
            }
        }
        refuse(&wrong, path)
    }

    /// Refuses to go on from `before` where a constant of the model, or a value that was given, is another one now. Values that
    /// are not there any more are left to the caller.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind) naming everything that is not what it was.
    pub(super) fn follows_constants(&self, before: &Says, path: &Path) -> Result<(), Error> {
        let is_there = |name: &&String| self.values.contains_key(*name);
        let known = before.values.iter().filter(|(name, _)| is_there(name));
        let wrong: Vec<String> = known.filter_map(|(name, was)| self.change(name, was)).collect();
        refuse(&wrong, path)
    }

    /// What is wrong with a value, which was another one before.
    fn change(&self, name: &str, was: &Value) -> Option<String> {
        let Some(is) = self.values.get(name) else {
            return match (was.from, self.batches.contains_key(name)) {
                // Another plan of the model may do without it.
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

/// Refuses to go on, if anything is wrong.
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
