//! The target `auto`: a GPU of this machine, with its own facts and a measured link.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lmsc_cuda::engines::{Card, Engines};
use lmsc_cuda::{Facts, OpenError, Precision};
use lmsc_ir::Bytes;
use lmsc_plan::Target;
use lmsc_plan::problem::Duplex;
use lmsc_plan::target::{CudaFacts, Kernels};

use crate::error::note;
use crate::job::Device;
use crate::link::{LEAST, MOST, link_of};
use crate::{Code, Error};

/// The card of a target that is a GPU of this machine, in front of its number.
const CARD: &str = "cuda:";

/// The engines that convolve on the device, known once for all steps of this process; none of a device that is not there.
pub(crate) fn engines(device: Device) -> Arc<Engines> {
    match device {
        Device::Cuda { ordinal, precision, own_kernels: false, .. } => {
            engines_of(Some(&format!("{CARD}{ordinal}")), precision)
        }
        Device::Host | Device::Cuda { .. } => engines_of(None, Precision::F32),
    }
}

/// The engines of a target's card, in this precision.
pub(crate) fn engines_of(card: Option<&str>, precision: Precision) -> Arc<Engines> {
    type Key = (Option<String>, &'static str);
    static KNOWN: LazyLock<Mutex<BTreeMap<Key, Arc<Engines>>>> = LazyLock::new(Mutex::default);
    let make = || match card.map(|card| (card, card.strip_prefix(CARD).map(str::parse))) {
        Some((_, Some(Ok(ordinal)))) => {
            Engines::of_ordinal(ordinal, precision).unwrap_or_else(|_| Engines::none())
        }
        Some((name, _)) => Engines::of_card(Card::named(name).cloned(), precision),
        None => Engines::none(),
    };
    let key = (card.map(str::to_owned), Precision::NAMES[precision as usize]);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(known.entry(key).or_insert_with(|| Arc::new(make())))
}

/// The name of the target for this machine's GPU.
pub(crate) const AUTO: &str = "auto";

/// The error for an option that has no meaning on the host.
pub(crate) fn needs_gpu(option: &str) -> Error {
    let message = format!("{option} is of GPUs alone, and the step runs on the host");
    Error::new(Code::Option, message).with_help("add --device cuda, or leave it out")
}

/// The name of a device's target on the command line.
pub(crate) fn target_of(device: Device) -> String {
    match device {
        Device::Host => "host".to_owned(),
        Device::Cuda { ordinal: 0, .. } => AUTO.to_owned(),
        Device::Cuda { ordinal, .. } => format!("{AUTO}:{ordinal}"),
    }
}

/// The number of the GPU that the target names; `None` for other targets.
pub(crate) fn ordinal(name: &str) -> Option<Result<u32, Error>> {
    let rest = name.strip_prefix(AUTO)?;
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some(Ok(0)),
        None => None,
        Some(number) => Some(number.parse().map_err(|_| {
            Error::new(
                Code::Option,
                format!("--target {name}: expected `{AUTO}`, or `{AUTO}:N` with the number of a GPU"),
            )
        })),
    }
}

/// The GPU of this number as a target: its free memory, its processor by its clocks, its measured link. The first
/// call prints the facts.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) if there is no such GPU, with advice.
pub(crate) fn target(ordinal: u32) -> Result<Target, Error> {
    // The free memory changes, so that a process reads it once.
    static KNOWN: LazyLock<Mutex<Vec<(u32, Target)>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, target)) = known.iter().find(|(number, _)| *number == ordinal) {
        return Ok(target.clone());
    }
    let facts = Facts::of(ordinal).map_err(|error| no_gpu(&error))?;
    let device = Device::cuda(ordinal);
    // A quarter of the free memory for each direction leaves memory for other programs.
    let [free, _] = facts.memory;
    let most = (free / 4).clamp(LEAST, MOST);
    let link = link_of(device, most).map_err(|error| {
        Error::new(
            Code::Missing,
            format!("--target {AUTO}: the link of {} cannot be measured: {error}", facts.name),
        )
        .with_help("give a target by its name; `lmsc targets` lists them")
    })?;
    let target = described(ordinal, &facts, link);
    note(found(&facts, &target));
    known.push((ordinal, target.clone()));
    Ok(target)
}

/// The GPU of this number as a target for predictions, if there is such a GPU.
pub(crate) fn for_prediction(ordinal: u32) -> Option<Target> {
    target(ordinal).ok()
}

/// Refuses a device that does not exist, before the long work starts.
///
/// # Errors
/// [`ErrorKind::Refusal`](crate::ErrorKind) with advice.
pub(crate) fn check(device: Device) -> Result<(), Error> {
    match device {
        Device::Host => Ok(()),
        Device::Cuda { ordinal, .. } => lmsc_cuda::probe(ordinal).map(drop).map_err(|error| no_gpu(&error)),
    }
}

/// The error for a missing GPU.
fn no_gpu(error: &OpenError) -> Error {
    let help = match error {
        OpenError::Missing(_) => {
            "name the machine by its target, such as --target h100-sxm (`lmsc targets` lists them), or install NVIDIA's driver"
        }
        OpenError::NoDevice { count: 0, .. } => {
            "name the machine by its target, such as --target h100-sxm (`lmsc targets` lists them), or make a GPU visible \
             (CUDA_VISIBLE_DEVICES, the container's devices)"
        }
        OpenError::NoDevice { .. } => "give the number of one that there is, from 0",
        OpenError::Old { .. } | OpenError::Driver(_) => {
            "see what `nvidia-smi` says, or name the machine by its target, such as --target h100-sxm"
        }
    };
    Error::new(Code::Missing, format!("there is no GPU to ask: {error}")).with_help(help)
}

fn described(ordinal: u32, facts: &Facts, link: lmsc_plan::target::TargetLink) -> Target {
    let cuda = CudaFacts {
        name: facts.name.clone(),
        capability: facts.capability,
        multiprocessors: facts.multiprocessors,
        clock_khz: facts.clock_khz,
        memory_clock_khz: facts.memory_clock_khz,
        bus_bits: facts.bus_bits,
    };
    Target {
        name: facts.name.clone(),
        description: "a GPU of this machine, its link as measured".to_owned(),
        kernels: Kernels::Cuda,
        card: Some(format!("{CARD}{ordinal}")),
        device_bytes: Bytes(facts.memory[0].max(1)),
        host_bytes: available_on_host(),
        alignment_bytes: Bytes(256),
        page_bytes: Bytes(2 << 20),
        link,
        compute: cuda.compute(),
    }
}

/// The bytes of this machine's memory that are available; 16 GiB if the system does not report them.
fn available_on_host() -> Bytes {
    const ASSUMED: Bytes = Bytes(16 << 30);
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return ASSUMED };
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib =
        line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|kib| kib.trim().parse::<u64>().ok());
    kib.map_or(ASSUMED, |kib| Bytes(kib.saturating_mul(1024).max(1)))
}

fn found(facts: &Facts, target: &Target) -> String {
    let gigas = |rate: u64| format!("{:.1} GB/s", rate as f64 / 1e9);
    let (link, compute) = (&target.link, &target.compute);
    let both = match (link.duplex, link.out_beside_in_bytes_per_second, link.in_beside_out_bytes_per_second) {
        (Duplex::Full, Some(out), Some(into)) => format!(", at once {} and {}", gigas(out), gigas(into)),
        _ => String::new(),
    };
    let [free, total] = facts.memory.map(Bytes);
    format!(
        "{AUTO}: {} (compute capability {}.{}), {free} of {total} free, {} multiprocessors at {} MHz, memory at {}; copies: {} out, \
         {} in{both}; {:.1} µs besides",
        facts.name,
        facts.capability.0,
        facts.capability.1,
        facts.multiprocessors,
        facts.clock_khz / 1000,
        gigas(compute.memory_bytes_per_second),
        gigas(link.out_bytes_per_second),
        gigas(link.in_bytes_per_second),
        link.latency_nanos as f64 / 1e3
    )
}
