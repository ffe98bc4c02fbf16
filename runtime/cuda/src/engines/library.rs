//! cuDNN's own answers: engines for a card that need not be there, and execution plans with a device or without.

use std::ffi::c_void;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::cudnn::sys::{
    cudnnBackendHeurMode_t, cudnnBackendNumericalNote_t as Numerics, cudnnConvolutionMode_t, cudnnDataType_t,
};

use super::{Card, ChannelOrder, ConvolutionQuery, EngineChoice};
use crate::backend::{
    self, Attribute, Backend, BehaviorNote, ConvolutionMode, DataType, Descriptor, Executor, Handle,
    HeuristicsMode, Kind, KnobType, NumericalNote, Pointer,
};
use crate::library::LibraryFacts;
use crate::recipe::{Filter, FloatType, Found};

/// cuDNN without a device.
#[derive(Debug)]
pub struct EngineLibrary {
    api: Arc<Backend>,
    facts: LibraryFacts,
}

/// The device that a plan is for.
pub(in super::super) enum PlanOn<'a> {
    /// A card that need not be there. The plan cannot be executed.
    Card(&'a Card),
    /// The device of this handle.
    Device(&'a Executor),
}

/// The numbers by which a plan knows its tensors: image, weights, positions.
const TENSORS: [i64; 3] = [1, 2, 3];

/// Addresses of tensors are multiples of this number of bytes.
const TENSOR_ALIGNMENT: i64 = 16;

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
        let (api, facts) = backend::open()?;
        Ok(EngineLibrary { api, facts })
    }

    /// Its version, such as `9.19.0`.
    pub fn version(&self) -> &str {
        &self.facts.version
    }

    /// Its version and path.
    pub(in super::super) fn facts(&self) -> &LibraryFacts {
        &self.facts
    }

    /// The library on the device whose context is current in this thread; everything runs on the stream.
    ///
    /// # Errors
    /// The library's message.
    ///
    /// # Safety
    /// The stream lives as long as the result.
    // SAFETY: a declaration; the body hands the promise on.
    pub(in super::super) unsafe fn executor(&self, stream: *mut c_void) -> Result<Executor, String> {
        // SAFETY: as the caller promises.
        unsafe { Executor::new(&self.api, stream) }
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
        let (card, graph) = (self.card(card)?, self.graph(of, None)?);
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
        self.plan(of, &PlanOn::Card(card), choice).map(|(_, bytes)| bytes)
    }

    /// The finalized plan that is made of a choice, and the bytes of workspace that it needs.
    ///
    /// # Errors
    /// The library's message.
    pub(in super::super) fn plan(
        &self,
        of: &ConvolutionQuery,
        on: &PlanOn<'_>,
        choice: &EngineChoice,
    ) -> Result<(Rc<Descriptor>, u64), String> {
        let handle = match on {
            PlanOn::Card(_) => None,
            PlanOn::Device(executor) => Some(executor.handle()),
        };
        let graph = self.graph(of, handle)?;
        let mut engine = Descriptor::new(&self.api, Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR)?
            .naming(Attribute::CUDNN_ATTR_ENGINE_OPERATION_GRAPH, &[&graph])?
            .with(Attribute::CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &[choice.engine])?;
        let mut plan = Descriptor::new(&self.api, Kind::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?;
        match on {
            PlanOn::Card(card) => {
                let card = self.card(card)?;
                engine = engine.naming(Attribute::CUDNN_ATTR_ENGINE_DEVICEPROP, &[&card])?;
                plan = plan.naming(Attribute::CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, &[&card])?;
            }
            PlanOn::Device(executor) => {
                plan = plan.with(Attribute::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, &[executor.handle()])?;
            }
        }
        let configuration = self.configuration(&engine.finalized()?, choice)?;
        let plan = plan
            .naming(Attribute::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, &[&configuration])?
            .finalized()?;
        let bytes: Vec<i64> = plan.get(Attribute::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 1)?;
        let bytes = bytes.first().and_then(|&bytes| u64::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| "the plan does not say how much workspace it needs".to_owned())?;
        Ok((plan, bytes))
    }

    /// The engine with the parameters of a choice.
    fn configuration(
        &self,
        engine: &Rc<Descriptor>,
        choice: &EngineChoice,
    ) -> Result<Rc<Descriptor>, String> {
        let knob = |(of, value): &(u32, i64)| {
            Descriptor::new(&self.api, Kind::CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)?
                .with(Attribute::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, &[KnobType(*of)])?
                .with(Attribute::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, &[*value])?
                .finalized()
        };
        let knobs = choice.knobs.iter().map(knob).collect::<Result<Vec<_>, String>>()?;
        let mut configuration = Descriptor::new(&self.api, Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)?
            .naming(Attribute::CUDNN_ATTR_ENGINECFG_ENGINE, &[engine])?;
        if !knobs.is_empty() {
            let all: Vec<&Rc<Descriptor>> = knobs.iter().collect();
            configuration = configuration.naming(Attribute::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, &all)?;
        }
        configuration.finalized()
    }

    /// The addresses that a plan is executed with: image, weights and positions, and the workspace.
    ///
    /// # Errors
    /// An address that is not a multiple of 16, which engines need; or the library's message.
    pub(in super::super) fn pack(&self, tensors: [u64; 3], workspace: u64) -> Result<Rc<Descriptor>, String> {
        if let Some(at) = tensors.iter().find(|&&at| at % TENSOR_ALIGNMENT as u64 != 0) {
            return Err(format!("a tensor begins at {at:#x}, which is not a multiple of {TENSOR_ALIGNMENT}"));
        }
        Descriptor::new(&self.api, Kind::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?
            .with(Attribute::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &TENSORS)?
            .with(Attribute::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, &tensors.map(Pointer))?
            .with(Attribute::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, &[Pointer(workspace)])?
            .finalized()
    }

    /// The operation, as a graph of one; with the handle where a device executes it.
    fn graph(&self, of: &ConvolutionQuery, handle: Option<Handle>) -> Result<Rc<Descriptor>, String> {
        let Filter { found, image, weights, positions, padding, after, stride, dilation, .. } = &of.filter;
        let elements = DataType::from(match of.stored {
            FloatType::F32 => cudnnDataType_t::CUDNN_DATA_FLOAT,
            FloatType::F16 => cudnnDataType_t::CUDNN_DATA_HALF,
            FloatType::Bf16 => cudnnDataType_t::CUDNN_DATA_BFLOAT16,
        });
        let tensor = |id, extents| self.tensor(id, extents, elements, of.layout);
        let [x, w, y] = TENSORS;
        let (x, w, y) = (tensor(x, image)?, tensor(w, weights)?, tensor(y, positions)?);
        let long = |list: &[i32]| list.iter().map(|&n| i64::from(n)).collect::<Vec<i64>>();
        let (float, padding) = (DataType::from(cudnnDataType_t::CUDNN_DATA_FLOAT), long(padding));
        let mode = ConvolutionMode::from(cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION);
        let window = Descriptor::new(&self.api, Kind::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, &[padding.len() as i64])?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, &[float])?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_CONV_MODE, &[mode])?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, &padding)?
            .with(Attribute::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, &long(after))?
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
        let mut graph = Descriptor::new(&self.api, Kind::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?
            .naming(Attribute::CUDNN_ATTR_OPERATIONGRAPH_OPS, &[&operation.finalized()?])?;
        if let Some(handle) = handle {
            graph = graph.with(Attribute::CUDNN_ATTR_OPERATIONGRAPH_HANDLE, &[handle])?;
        }
        graph.finalized()
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
            .with(Attribute::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, &[TENSOR_ALIGNMENT])?
            .finalized()
    }
}
