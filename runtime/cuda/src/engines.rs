//! The engines of cuDNN for a convolution on a card that need not be there, and the rule that chooses one of them.
//!
//! Where the library is found, it is asked about the card's description. Where it is not, a table that was recorded from it
//! answers for the convolutions in it (`engines/recorded.txt`, which `scripts/check-engines --record` writes).
//!
//! # Source
//! NVIDIA's description of cuDNN, "Backend API". PyTorch (`aten/src/ATen/native/cudnn/Conv_v8.cpp`) rejects engines by the same notes.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::cudnn::sys::{
    cudnnBackendBehaviorNote_t as Behavior, cudnnBackendHeurMode_t, cudnnBackendNumericalNote_t as Numerics,
    cudnnConvolutionMode_t, cudnnDataType_t,
};

use super::backend::{
    self, Attribute, Backend, BehaviorNote, ConvolutionMode, DataType, Descriptor, HeuristicsMode, Kind,
    KnobType, NumericalNote,
};
use super::precision::Precision;
use super::recipe::{Filter, FloatType, Found};

/// A card, as the library's description of a device has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its name in tables.
    pub name: &'static str,
    /// The vendor's name for it.
    pub device: &'static str,
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
        &[$(Card { name: $name, device: $device, capability: $capability, multiprocessors: $sms, shared: $shared,
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

    /// The library's description of the card. Every key is demanded.
    fn description(&self) -> String {
        let Card { device, capability, multiprocessors, cache, memory, .. } = self;
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
        let Filter { found, image, weights, positions, padding, stride, dilation, groups } = &self.filter;
        let list = |all: &[i32]| all.iter().map(i32::to_string).collect::<Vec<_>>().join(",");
        let found = match found {
            Found::Positions => "positions",
            Found::Image => "image",
            Found::Weights => "weights",
        };
        let layout = match self.layout {
            ChannelOrder::First => "first",
            ChannelOrder::Last => "last",
        };
        let lists = [image, weights, positions, padding, stride, dilation].map(|all| list(all)).join(" ");
        format!("{found} {lists} {groups} {layout} {}", self.precision_name())
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

/// Engines that were recorded from the library.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The library's version.
    pub version: String,
    /// By convolution and card.
    answers: BTreeMap<(String, String), Vec<EngineChoice>>,
}

/// The recorded engines.
pub fn recorded() -> &'static Recorded {
    static READ: std::sync::OnceLock<Recorded> = std::sync::OnceLock::new();
    READ.get_or_init(|| Recorded::parse(include_str!("../engines/recorded.txt")).unwrap_or_default())
}

impl Recorded {
    /// An empty table of a version of the library.
    pub fn new(version: String) -> Recorded {
        Recorded { version, answers: BTreeMap::new() }
    }

    /// Adds an answer.
    pub fn add(&mut self, of: &ConvolutionQuery, card: &Card, choices: Vec<EngineChoice>) {
        self.answers.insert((of.key(), card.name.to_owned()), choices);
    }

    /// The answer for a card; none if the table does not have the convolution.
    pub fn choices(&self, of: &ConvolutionQuery, card: &str) -> Option<Vec<EngineChoice>> {
        self.answers.get(&(of.key(), card.to_owned())).cloned()
    }

    /// The table as text: engines with their parameters, numbered; then each convolution, with a line for all cards that
    /// have the same answer.
    pub fn text(&self) -> String {
        let engine = |it: &EngineChoice| (it.engine, it.tensor_cores, it.knobs.clone());
        let mut engines: Vec<_> = self.answers.values().flatten().map(engine).collect();
        engines.sort();
        engines.dedup();
        let mut out = format!("cudnn {}\n", self.version);
        for (number, tensor_cores, knobs) in &engines {
            let kind = if *tensor_cores { "tensor" } else { "plain" };
            let knobs: String = knobs.iter().map(|(knob, value)| format!(" {knob}={value}")).collect();
            out += &format!("engine {number} {kind}{knobs}\n");
        }
        let mut by_key: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
        for ((key, card), choices) in &self.answers {
            let index = |it: &EngineChoice| engines.binary_search(&engine(it)).unwrap_or(usize::MAX);
            let answer: String =
                choices.iter().map(|it| format!(" {}:{}", index(it), it.workspace)).collect();
            by_key.entry(key).or_default().entry(answer).or_default().push(card);
        }
        for (key, answers) in by_key {
            out += &format!("{key}\n");
            for (answer, cards) in answers {
                out += &format!("= {}{answer}\n", cards.join(","));
            }
        }
        out
    }

    /// The table of a text; none if it is not one.
    pub fn parse(text: &str) -> Option<Recorded> {
        let mut lines = text.lines();
        let mut table = Recorded::new(lines.next()?.strip_prefix("cudnn ")?.to_owned());
        let (mut engines, mut key) = (Vec::new(), None);
        for line in lines {
            if let Some(engine) = line.strip_prefix("engine ") {
                let mut words = engine.split(' ');
                let (engine, tensor_cores) = (words.next()?.parse().ok()?, words.next()? == "tensor");
                let knob = |word: &str| {
                    let (knob, value) = word.split_once('=')?;
                    Some((knob.parse().ok()?, value.parse().ok()?))
                };
                let knobs = words.map(knob).collect::<Option<_>>()?;
                engines.push(EngineChoice { engine, knobs, tensor_cores, workspace: 0 });
            } else if let Some(answer) = line.strip_prefix("= ") {
                let mut words = answer.split(' ');
                let cards = words.next()?;
                let choice = |word: &str| {
                    let (index, workspace) = word.split_once(':')?;
                    let engine = engines.get(index.parse::<usize>().ok()?)?;
                    Some(EngineChoice { workspace: workspace.parse().ok()?, ..engine.clone() })
                };
                let choices: Vec<EngineChoice> = words.map(choice).collect::<Option<_>>()?;
                for card in cards.split(',') {
                    let key: &String = key.as_ref()?;
                    table.answers.insert((key.clone(), card.to_owned()), choices.clone());
                }
            } else {
                key = Some(line.to_owned());
            }
        }
        Some(table)
    }
}

/// cuDNN without a device.
pub struct EngineLibrary {
    api: Arc<Backend>,
    version: usize,
}

/// The first version that answers without a device.
const OLDEST: usize = 90_800;

/// Maximum number of parameters of an engine: more than there are kinds of them.
const MOST_KNOBS: usize = 64;

/// Maximum number of notes of an engine.
const MOST_NOTES: usize = 32;

impl EngineLibrary {
    /// Opens the library, with cuBLAS, which it needs; neither needs a driver.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn open() -> Result<EngineLibrary, String> {
        let (api, version) = backend::open()?;
        let library = EngineLibrary { api, version };
        if version < OLDEST {
            return Err(format!("cuDNN {} does not answer without a device; 9.8 does", library.version()));
        }
        Ok(library)
    }

    /// Its version, such as `9.19.0`.
    pub fn version(&self) -> String {
        let version = self.version;
        format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
    }

    fn card(&self, card: &Card) -> Result<Rc<Descriptor>, String> {
        let new = Descriptor::new(&self.api, Kind::CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)?;
        let text = card.description();
        new.with(Attribute::CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, text.as_bytes())?.finalized()
    }

    /// The engines that qualify, in the order of the expected time, each with less workspace than all before it.
    ///
    /// # Errors
    /// The library's message.
    pub fn choices(&self, of: &ConvolutionQuery, card: &Card) -> Result<Vec<EngineChoice>, String> {
        let (card, graph) = (self.card(card)?, self.graph(of)?);
        let mut all: Vec<EngineChoice> = Vec::new();
        for mode in
            [cudnnBackendHeurMode_t::CUDNN_HEUR_MODE_A, cudnnBackendHeurMode_t::CUDNN_HEUR_MODE_FALLBACK]
        {
            let heuristics = Descriptor::new(&self.api, Kind::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)?
                .naming(Attribute::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, &[&graph])?
                .with(Attribute::CUDNN_ATTR_ENGINEHEUR_MODE, &[HeuristicsMode::from(mode)])?
                .naming(Attribute::CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, &[&card])?;
            // A mode that knows no engine for the operation says that it does not support it.
            let Ok(heuristics) = heuristics.finalized() else { continue };
            let (results, kind) =
                (Attribute::CUDNN_ATTR_ENGINEHEUR_RESULTS, Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
            for configuration in heuristics.get_descriptors(results, kind, heuristics.count(results)?)? {
                let Some(choice) = self.read(&configuration, of)? else { continue };
                if all.iter().all(|before| choice.workspace < before.workspace) {
                    all.push(choice);
                }
            }
        }
        Ok(all)
    }

    /// The configuration's description; none if its engine does not qualify.
    fn read(
        &self,
        configuration: &Descriptor,
        of: &ConvolutionQuery,
    ) -> Result<Option<EngineChoice>, String> {
        let engine = configuration.get_descriptors(
            Attribute::CUDNN_ATTR_ENGINECFG_ENGINE,
            Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR,
            1,
        )?;
        let Some(engine) = engine.first() else { return Ok(None) };
        let numerics: Vec<NumericalNote> =
            engine.get(Attribute::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, MOST_NOTES)?;
        let behavior: Vec<BehaviorNote> =
            engine.get(Attribute::CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, MOST_NOTES)?;
        if !of.permits(&numerics, &behavior) {
            return Ok(None);
        }
        let mut knobs = Vec::new();
        let kind = Kind::CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR;
        // The library does not tell the number of parameters before it is asked for them.
        let choices = Attribute::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES;
        for knob in configuration.get_descriptors(choices, kind, MOST_KNOBS)? {
            let of: Vec<KnobType> = knob.get(Attribute::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, 1)?;
            let value: Vec<i64> = knob.get(Attribute::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, 1)?;
            knobs.extend(of.iter().zip(&value).map(|(of, value)| (of.0, *value)));
        }
        knobs.sort_unstable();
        let number: Vec<i64> = engine.get(Attribute::CUDNN_ATTR_ENGINE_GLOBAL_INDEX, 1)?;
        let bytes: Vec<i64> = configuration.get(Attribute::CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, 1)?;
        let (Some(&engine), Some(&bytes)) = (number.first(), bytes.first()) else { return Ok(None) };
        let tensor_cores =
            numerics.contains(&NumericalNote(Numerics::CUDNN_NUMERICAL_NOTE_TENSOR_CORE as u32));
        let workspace = u64::try_from(bytes).ok();
        Ok(workspace.map(|workspace| EngineChoice { engine, knobs, tensor_cores, workspace }))
    }

    /// Bytes of workspace of the finalized plan that is made of a choice.
    ///
    /// # Errors
    /// The library's message.
    pub fn plan_workspace(
        &self,
        of: &ConvolutionQuery,
        card: &Card,
        choice: &EngineChoice,
    ) -> Result<u64, String> {
        let (card, graph) = (self.card(card)?, self.graph(of)?);
        let engine = Descriptor::new(&self.api, Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR)?
            .naming(Attribute::CUDNN_ATTR_ENGINE_OPERATION_GRAPH, &[&graph])?
            .with(Attribute::CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &[choice.engine])?
            .naming(Attribute::CUDNN_ATTR_ENGINE_DEVICEPROP, &[&card])?
            .finalized()?;
        let knob = |(of, value): &(u32, i64)| {
            Descriptor::new(&self.api, Kind::CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)?
                .with(Attribute::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, &[KnobType(*of)])?
                .with(Attribute::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, &[*value])?
                .finalized()
        };
        let knobs = choice.knobs.iter().map(knob).collect::<Result<Vec<_>, String>>()?;
        let mut configuration = Descriptor::new(&self.api, Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)?
            .naming(Attribute::CUDNN_ATTR_ENGINECFG_ENGINE, &[&engine])?;
        if !knobs.is_empty() {
            let all: Vec<&Rc<Descriptor>> = knobs.iter().collect();
            configuration = configuration.naming(Attribute::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, &all)?;
        }
        let plan = Descriptor::new(&self.api, Kind::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?
            .naming(Attribute::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, &[&configuration.finalized()?])?
            .naming(Attribute::CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, &[&card])?
            .finalized()?;
        let bytes: Vec<i64> = plan.get(Attribute::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1)?;
        let bytes = bytes.first().and_then(|&bytes| u64::try_from(bytes).ok());
        bytes.ok_or_else(|| "the plan does not say how much workspace it needs".to_owned())
    }

    /// The operation, as a graph of one.
    fn graph(&self, of: &ConvolutionQuery) -> Result<Rc<Descriptor>, String> {
        let Filter { found, image, weights, positions, padding, stride, dilation, .. } = &of.filter;
        let elements = DataType::from(match of.stored {
            FloatType::F32 => cudnnDataType_t::CUDNN_DATA_FLOAT,
            FloatType::F16 => cudnnDataType_t::CUDNN_DATA_HALF,
            FloatType::Bf16 => cudnnDataType_t::CUDNN_DATA_BFLOAT16,
        });
        let tensor = |id, extents| self.tensor(id, extents, elements, of.layout);
        let (x, w, y) = (tensor(1, image)?, tensor(2, weights)?, tensor(3, positions)?);
        let long = |list: &[i32]| list.iter().map(|&n| i64::from(n)).collect::<Vec<i64>>();
        let (float, padding) = (DataType::from(cudnnDataType_t::CUDNN_DATA_FLOAT), long(padding));
        let mode = ConvolutionMode::from(cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION);
        let window = Descriptor::new(&self.api, Kind::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, &[padding.len() as i64])?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, &[float])?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_CONV_MODE, &[mode])?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, &padding)?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, &padding)?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_DILATIONS, &long(dilation))?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, &long(stride))?
            .finalized()?;
        macro_rules! operation {
            ($kind:ident, $alpha:ident, $beta:ident, $window:ident, $x:ident, $w:ident, $y:ident) => {
                Descriptor::new(&self.api, Kind::$kind)?
                    .with(Attribute::$alpha, &[1f32])?
                    .with(Attribute::$beta, &[0f32])?
                    .naming(Attribute::$window, &[&window])?
                    .naming(Attribute::$x, &[&x])?
                    .naming(Attribute::$w, &[&w])?
                    .naming(Attribute::$y, &[&y])?
            };
        }
        let operation = match found {
            Found::Positions => operation!(
                CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y
            ),
            Found::Image => operation!(
                CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY
            ),
            Found::Weights => operation!(
                CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY
            ),
        };
        Descriptor::new(&self.api, Kind::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?
            .naming(Attribute::CUDNN_ATTR_OPERATIONGRAPH_OPS, &[&operation.finalized()?])?
            .finalized()
    }

    fn tensor(
        &self,
        id: i64,
        extents: &[i32],
        elements: DataType,
        layout: ChannelOrder,
    ) -> Result<Rc<Descriptor>, String> {
        let extents: Vec<i64> = extents.iter().map(|&n| i64::from(n)).collect();
        // From the fastest dimension to the slowest.
        let mut order: Vec<usize> = (0..extents.len()).rev().collect();
        if layout == ChannelOrder::Last {
            order.retain(|&d| d != 1);
            order.insert(0, 1);
        }
        let (mut strides, mut next) = (vec![1i64; extents.len()], 1i64);
        for d in order {
            strides[d] = next;
            next = next.saturating_mul(extents[d]);
        }
        Descriptor::new(&self.api, Kind::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?
            .with(Attribute::CUDNN_ATTR_TENSOR_DATA_TYPE, &[elements])?
            .with(Attribute::CUDNN_ATTR_TENSOR_DIMENSIONS, &extents)?
            .with(Attribute::CUDNN_ATTR_TENSOR_STRIDES, &strides)?
            .with(Attribute::CUDNN_ATTR_TENSOR_UNIQUE_ID, &[id])?
            .with(Attribute::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, &[256i64])?
            .finalized()
    }
}
