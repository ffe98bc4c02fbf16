//! The engines of cuDNN for a convolution on a card that need not be there, and the rule that chooses one of them.
//!
//! Where the library is found, it is asked about the card's description. Where it is not, a table that was recorded from it
//! answers for the convolutions in it (`engines/recorded.txt`, which `scripts/check-engines --record` writes).
//!
//! # Source
//! NVIDIA's description of cuDNN, "Backend API". PyTorch (`aten/src/ATen/native/cudnn/Conv_v8.cpp`) rejects engines by the same notes.

mod library;
mod rule;
mod table;

use std::borrow::Cow;

use cudarc::cudnn::sys::{cudnnBackendBehaviorNote_t as Behavior, cudnnBackendNumericalNote_t as Numerics};
use cudarc::driver::sys::CUdevice_attribute as DeviceAttribute;

use super::backend::{BehaviorNote, NumericalNote};
use super::driver::Gpu;
use super::precision::Precision;
use super::recipe::{Filter, FloatType, Found};

pub use library::EngineLibrary;
pub(super) use library::PlanOn;
pub use rule::{Engines, NoEngine, StepEngines};
pub use table::{Recorded, recorded};

/// A card, as the library's description of a device has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its name in tables; empty if it is in none.
    pub name: &'static str,
    /// The vendor's name for it.
    pub device: Cow<'static, str>,
    /// Its compute capability, times 100: 900 is 9.0.
    pub capability: u32,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Largest shared memory of a block, in bytes, and the part of it that the system takes.
    pub shared: [u32; 2],
    /// Largest number of blocks, and of threads, of a multiprocessor.
    pub resident: [u32; 2],
    /// Highest clocks of multiprocessors and memory, in kHz.
    pub clocks: [u32; 2],
    /// Bytes of its cache of level 2.
    pub cache: u32,
    /// Bytes of its memory.
    pub memory: u64,
}

macro_rules! cards {
    ($($name:literal $device:literal $capability:literal $sms:literal $shared:tt $resident:tt $clocks:tt $cache:literal
        $memory:literal;)*) => {
        &[$(Card { name: $name, device: Cow::Borrowed($device), capability: $capability, multiprocessors: $sms, shared: $shared,
            resident: $resident, clocks: $clocks, cache: $cache, memory: $memory },)*]
    };
}

/// The cards whose engines are recorded.
///
/// # Source
/// CUDA C++ Programming Guide, "Compute Capabilities", for limits of a multiprocessor; NVIDIA's data sheet of each for the others.
/// Clocks and bytes of memory change no choice of the library.
#[rustfmt::skip]
pub const CARDS: &[Card] = cards! {
    "t4" "Tesla T4" 750 40 [65_536, 0] [16, 1024] [1_590_000, 5_001_000] 4_194_304 15_600_000_000;
    "a100" "NVIDIA A100-SXM4-80GB" 800 108 [166_912, 1024] [32, 2048] [1_410_000, 1_593_000] 41_943_040 85_000_000_000;
    "rtx3060" "NVIDIA GeForce RTX 3060" 860 28 [101_376, 1024] [16, 1536] [1_777_000, 7_501_000] 2_359_296 12_500_000_000;
    "rtx4090" "NVIDIA GeForce RTX 4090" 890 128 [101_376, 1024] [24, 1536] [2_520_000, 10_501_000] 75_497_472 25_000_000_000;
    "h100" "NVIDIA H100 80GB HBM3" 900 132 [232_448, 1024] [32, 2048] [1_980_000, 2_619_000] 52_428_800 85_000_000_000;
    "h200" "NVIDIA H200" 900 132 [232_448, 1024] [32, 2048] [1_980_000, 3_201_000] 62_914_560 150_109_880_320;
    "b200" "NVIDIA B200" 1000 148 [232_448, 1024] [32, 2048] [1_965_000, 3_996_000] 132_644_864 190_000_000_000;
    "rtx5090" "NVIDIA GeForce RTX 5090" 1200 170 [101_376, 1024] [24, 1536] [2_407_000, 14_001_000] 100_663_296 33_000_000_000;
};

impl Card {
    /// The card of this name.
    pub fn named(name: &str) -> Option<&'static Card> {
        CARDS.iter().find(|card| card.name == name)
    }

    /// The card that a device is, by its own attributes.
    pub(super) fn of_device(gpu: &Gpu) -> Result<Card, String> {
        let of = |which| gpu.attribute(which);
        let capability = 100 * of(DeviceAttribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
            + 10 * of(DeviceAttribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
        let multiprocessors = of(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
        let known =
            CARDS.iter().find(|card| card.capability == capability && card.device == gpu.name.as_str());
        Ok(Card {
            name: known.map_or("", |card| card.name),
            device: Cow::Owned(gpu.name.clone()),
            capability,
            multiprocessors,
            shared: [
                of(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
                of(DeviceAttribute::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK),
            ],
            resident: [
                of(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
                of(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
            ],
            clocks: [
                of(DeviceAttribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
                of(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
            ],
            cache: of(DeviceAttribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
            memory: gpu.free()?[1],
        })
    }

    /// The library's description of the card. Every key is demanded.
    fn description(&self) -> String {
        let Card { device, capability, multiprocessors, cache, memory, .. } = self;
        // A name chooses nothing; in JSON, quotes and backslashes would need escapes.
        let device = device.replace(|c: char| c.is_control() || c == '"' || c == '\\', " ");
        let ([shared, reserved], [blocks, threads], [clock, memory_clock]) =
            (self.shared, self.resident, self.clocks);
        format!(
            "{{\"deviceVer\":{capability},\"driverVer\":13000,\"cudaDeviceId\":0,\
             \"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\
             \"multiProcessorCount\":{multiprocessors},\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,\
             \"maxSharedMemoryPerBlockOptin\":{shared},\"reservedSharedMemoryPerBlock\":{reserved},\
             \"maxRegistersPerSM\":65536,\"maxCtasPerSM\":{blocks},\"maxThreadsPerBlock\":1024,\
             \"maxThreadsPerSM\":{threads},\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,\
             \"smClockRateKHz\":{clock},\"memClockRateKHz\":{memory_clock},\"l2CacheSize\":{cache},\
             \"deviceName\":\"{device}\",\"totalGlobalMem\":{memory}}}"
        )
    }
}

/// The order of a tensor's elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChannelOrder {
    /// A channel's elements lie together, as ONNX has them.
    First,
    /// A position's channels lie together.
    Last,
}

impl ChannelOrder {
    /// The letters of the axes in their order, of images of two dimensions.
    pub fn name(self) -> &'static str {
        match self {
            ChannelOrder::First => "nchw",
            ChannelOrder::Last => "nhwc",
        }
    }
}

/// A convolution for which an engine is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvolutionQuery {
    /// Its extents.
    pub filter: Filter,
    /// Type of the elements of all three tensors.
    pub stored: FloatType,
    /// Layout of all three tensors.
    pub layout: ChannelOrder,
    /// Precision to which `f32` factors may be rounded.
    pub precision: Precision,
}

impl ConvolutionQuery {
    /// The name that tables have for the precision.
    fn precision_name(&self) -> &'static str {
        match (self.stored, self.precision) {
            (FloatType::Bf16, _) => "bf16",
            (FloatType::F16, _) => "f16",
            (FloatType::F32, Precision::F32) => "f32",
            // Convolutions have no rounding to bf16.
            (FloatType::F32, Precision::Tf32 | Precision::Bf16) => "tf32",
            (FloatType::F32, Precision::F16) => "to-f16",
        }
    }

    /// Its key in tables.
    fn key(&self) -> String {
        let Filter { found, image, weights, positions, padding, after, stride, dilation, groups } =
            &self.filter;
        let list = |all: &[i32]| all.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
        let padded = if padding == after { list(padding) } else { list(padding) + "/" + &list(after) };
        let found = match found {
            Found::Positions => "positions",
            Found::Image => "image",
            Found::Weights => "weights",
        };
        let layout = match self.layout {
            ChannelOrder::First => "first",
            ChannelOrder::Last => "last",
        };
        let [image, weights, positions] = [image, weights, positions].map(|all| list(all));
        let [stride, dilation] = [stride, dilation].map(|all| list(all));
        let precision = self.precision_name();
        format!(
            "{found} {image} {weights} {positions} {padded} {stride} {dilation} {groups} {layout} {precision}"
        )
    }

    /// Whether an engine with these notes computes to the same bits in every run, and rounds no more than it may. Engines that are
    /// compiled when they are first used need a compiler that may not be there.
    fn permits(&self, numerics: &[NumericalNote], behavior: &[BehaviorNote]) -> bool {
        let has = |note: Numerics| numerics.contains(&NumericalNote(note as u32));
        let compiles = BehaviorNote(Behavior::CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION as u32);
        if behavior.contains(&compiles) || has(Numerics::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) {
            return false;
        }
        let is_f32 = self.stored == FloatType::F32;
        let rounds = has(Numerics::CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
        let converts = has(Numerics::CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
        match self.precision {
            _ if !is_f32 => !converts,
            Precision::F32 => !rounds && !converts,
            Precision::Tf32 | Precision::Bf16 => !converts,
            Precision::F16 => true,
        }
    }
}

/// An engine with its parameters, and the memory that it needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineChoice {
    /// The library's number of the engine.
    pub engine: i64,
    /// Its parameters: the library's numbers of them and their values, by number.
    pub knobs: Vec<(u32, i64)>,
    /// Whether it multiplies on tensor cores.
    pub tensor_cores: bool,
    /// Bytes of workspace.
    pub workspace: u64,
}

impl EngineChoice {
    /// The engine and its parameters, such as `67 2=0 3=1`.
    pub fn text(&self) -> String {
        let knobs = self.knobs.iter().map(|(knob, value)| format!(" {knob}={value}"));
        format!("{}{}", self.engine, knobs.collect::<String>())
    }
}

/// The engines that qualify, in the order of the expected time, each with less workspace than all before it. The answer depends on
/// its arguments and the library's version alone: none if there is no library, and the table does not have the convolution.
///
/// # Errors
/// The library's message.
pub fn choose(
    of: &ConvolutionQuery,
    card: &Card,
    library: Option<&EngineLibrary>,
) -> Result<Option<Vec<EngineChoice>>, String> {
    match library {
        Some(library) => library.choices(of, card).map(Some),
        None => Ok(recorded().choices(of, card.name)),
    }
}

/// The rule: the first engine, which is the fastest, that needs at most `room` bytes of workspace.
pub fn chosen(choices: &[EngineChoice], room: u64) -> Option<&EngineChoice> {
    choices.iter().find(|choice| choice.workspace <= room)
}
