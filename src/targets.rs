//! `lmsc targets`, and profiles measured on a target.

use std::path::Path;
use std::sync::Arc;

use lmsc_plan::Target;
use lmsc_plan::cost::Profile;
use lmsc_plan::target::{BUILT_IN, Kernels};
use serde::Serialize;

use crate::{Code, Error, device};

/// A table of the built-in targets: device memory, link, peak in single precision, and description.
pub fn list_targets() -> String {
    let line = |target: &Target| {
        let link = target.link;
        format!(
            "{:<13} {:>10}  {:>5} GB/s out, {:>5} GB/s in  {:>5} TFLOP/s  {}\n",
            target.name,
            target.device_bytes.to_string(),
            in_units(link.out_bytes_per_second, 1e9),
            in_units(link.in_bytes_per_second, 1e9),
            in_units(target.compute.flops_per_second.float32, 1e12),
            target.description,
        )
    };
    Target::all_built_in().iter().map(line).collect()
}

/// Targets, as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TargetList {
    /// Version of this format.
    format: u32,
    targets: Vec<TargetFacts>,
}

/// A target. Bytes are plain numbers.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TargetFacts {
    name: String,
    description: String,
    /// The device whose kernels run the step.
    #[cfg_attr(test, schemars(with = "String"))]
    kernels: Kernels,
    device_bytes: u64,
    host_bytes: u64,
    alignment_bytes: u64,
    page_bytes: u64,
    /// The link between device and host, as targets in TOML have it.
    link: serde_json::Value,
    compute: ComputeFacts,
}

/// The speed of a device.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ComputeFacts {
    multiprocessors: u64,
    memory_bytes_per_second: u64,
    launch_nanos: u64,
    flops_per_second: Flops,
}

/// Peak operations per second by type.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Flops {
    float64: u64,
    float32: u64,
    float16: u64,
    bfloat16: u64,
}

/// The built-in targets as JSON; with a name, only that target.
///
/// # Errors
/// As [`target`].
pub fn targets_as_json(name: Option<&str>) -> Result<String, Error> {
    let facts = |target: &Target| {
        let Target { link, compute, .. } = target;
        let flops = &compute.flops_per_second;
        TargetFacts {
            name: target.name.clone(),
            description: target.description.clone(),
            kernels: target.kernels,
            device_bytes: target.device_bytes.0,
            host_bytes: target.host_bytes.0,
            alignment_bytes: target.alignment_bytes.0,
            page_bytes: target.page_bytes.0,
            link: serde_json::to_value(link).expect("a link is JSON"),
            compute: ComputeFacts {
                multiprocessors: compute.multiprocessors,
                memory_bytes_per_second: compute.memory_bytes_per_second,
                launch_nanos: compute.launch_nanos,
                flops_per_second: Flops {
                    float64: flops.float64,
                    float32: flops.float32,
                    float16: flops.float16,
                    bfloat16: flops.bfloat16,
                },
            },
        }
    };
    let targets: Vec<_> = match name {
        Some(name) => vec![facts(&named_target(name)?)],
        None => Target::all_built_in().iter().map(facts).collect(),
    };
    Ok(serde_json::to_string_pretty(&TargetList { format: 1, targets }).expect("an answer is JSON") + "\n")
}

/// The names of the built-in targets.
pub fn target_names() -> Vec<String> {
    Target::all_built_in().iter().map(|target| target.name.clone()).collect()
}

/// The TOML of a built-in target, comments included, or of a GPU of this machine.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) with the names of the targets.
pub fn target(name: &str) -> Result<String, Error> {
    if device::ordinal(name).is_some() {
        return named_target(name).map(|target| target.to_toml());
    }
    let found = Target::built_in(name).map_err(|error| Error::new(Code::Option, error.to_string()))?;
    let text = BUILT_IN.iter().find(|(name, _)| *name == found.name).map(|(_, text)| *text);
    Ok(text.expect("a built-in target has a text").to_owned())
}

/// The target of this name, of the file at this path, or of a GPU of this machine.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) with the names of the targets, or with the fault of the file.
pub(crate) fn named_target(name: &str) -> Result<Target, Error> {
    if let Some(ordinal) = device::ordinal(name) {
        return device::target(ordinal?);
    }
    if !name.ends_with(".toml") {
        return Target::built_in(name).cloned().map_err(|error| Error::new(Code::Option, error.to_string()));
    }
    let text = std::fs::read_to_string(name).map_err(|e| Error::reading(Path::new(name), &e))?;
    Target::parse(&text, name).map_err(|error| Error::new(Code::Malformed, error.to_string()))
}

/// The profile in the file at this path, if a path is given.
///
/// # Errors
/// [`ErrorKind::Input`](crate::ErrorKind) with the fault of the file.
pub(crate) fn read_profile(path: Option<&Path>) -> Result<Option<Arc<Profile>>, Error> {
    let Some(path) = path else { return Ok(None) };
    let text = std::fs::read_to_string(path).map_err(|e| Error::reading(path, &e))?;
    let profile = Profile::parse(&text, &path.display().to_string());
    profile
        .map(|profile| Some(Arc::new(profile)))
        .map_err(|error| Error::new(Code::Malformed, error.to_string()))
}

/// The rate in this unit, with at most two digits after the point and no trailing zeros.
fn in_units(rate: u64, unit: f64) -> String {
    ((rate as f64 / unit * 100.0).round() / 100.0).to_string()
}
