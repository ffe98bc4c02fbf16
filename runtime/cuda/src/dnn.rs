//! Convolutions by cuDNN, if its library is found. If it is not, or has no algorithm for a convolution, own kernels do it: a plan
//! is valid for both.
//!
//! The algorithm of each convolution is chosen once, before the first step: of those that the library's heuristics propose, the
//! first that is deterministic, needs at most the workspace that the plan gives, and runs. Nothing is timed, so the choice is the
//! same from run to run, and in every plan that gives the same workspace.
//!
//! # Source
//! NVIDIA's description of cuDNN: `cudnnGetConvolutionForwardAlgorithm_v7` and its like answer in the order of the expected
//! time, each with its workspace and whether it is deterministic; "Reproducibility" names those that are not.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::zeroed;
use std::ptr::{from_ref, null_mut};
use std::sync::Arc;

use cudarc::cudnn::sys::{
    self, cudaStream_t, cudnnConvolutionBwdDataAlgo_t, cudnnConvolutionBwdDataAlgoPerf_t,
    cudnnConvolutionBwdFilterAlgo_t, cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionDescriptor_t,
    cudnnConvolutionFwdAlgo_t, cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionMode_t, cudnnDataType_t,
    cudnnDeterminism_t, cudnnFilterDescriptor_t, cudnnHandle_t, cudnnMathType_t, cudnnStatus_t,
    cudnnTensorDescriptor_t, cudnnTensorFormat_t,
};
use lmsc_ir::program::Stream;

use super::driver::Gpu;
use super::library::{LibraryFacts, Opened, functions};
use super::precision::Precision;
use super::recipe::{Convolution, Filter, FloatType, Found};

/// The library, and its first version that has all functions called here under the same names, in one file.
const NAME: &str = "libcudnn.so.9";
const OLDEST: usize = 90_000;

// A later version may lack some of these, which are deprecated.
functions! { Cudnn:
    cudnnConvolutionBackwardData(handle: cudnnHandle_t, alpha: *const c_void, of_w: cudnnFilterDescriptor_t,
        w: *const c_void, of_y: cudnnTensorDescriptor_t, y: *const c_void, of: cudnnConvolutionDescriptor_t,
        algorithm: cudnnConvolutionBwdDataAlgo_t, workspace: *mut c_void, bytes: usize, beta: *const c_void,
        of_x: cudnnTensorDescriptor_t, x: *mut c_void) -> cudnnStatus_t;
    cudnnConvolutionBackwardFilter(handle: cudnnHandle_t, alpha: *const c_void, of_x: cudnnTensorDescriptor_t,
        x: *const c_void, of_y: cudnnTensorDescriptor_t, y: *const c_void, of: cudnnConvolutionDescriptor_t,
        algorithm: cudnnConvolutionBwdFilterAlgo_t, workspace: *mut c_void, bytes: usize, beta: *const c_void,
        of_w: cudnnFilterDescriptor_t, w: *mut c_void) -> cudnnStatus_t;
    cudnnConvolutionForward(handle: cudnnHandle_t, alpha: *const c_void, of_x: cudnnTensorDescriptor_t,
        x: *const c_void, of_w: cudnnFilterDescriptor_t, w: *const c_void, of: cudnnConvolutionDescriptor_t,
        algorithm: cudnnConvolutionFwdAlgo_t, workspace: *mut c_void, bytes: usize, beta: *const c_void,
        of_y: cudnnTensorDescriptor_t, y: *mut c_void) -> cudnnStatus_t;
    cudnnCreate(handle: *mut cudnnHandle_t) -> cudnnStatus_t;
    cudnnCreateConvolutionDescriptor(of: *mut cudnnConvolutionDescriptor_t) -> cudnnStatus_t;
    cudnnCreateFilterDescriptor(of: *mut cudnnFilterDescriptor_t) -> cudnnStatus_t;
    cudnnCreateTensorDescriptor(of: *mut cudnnTensorDescriptor_t) -> cudnnStatus_t;
    cudnnDestroy(handle: cudnnHandle_t) -> cudnnStatus_t;
    cudnnDestroyConvolutionDescriptor(of: cudnnConvolutionDescriptor_t) -> cudnnStatus_t;
    cudnnDestroyFilterDescriptor(of: cudnnFilterDescriptor_t) -> cudnnStatus_t;
    cudnnDestroyTensorDescriptor(of: cudnnTensorDescriptor_t) -> cudnnStatus_t;
    cudnnGetConvolutionBackwardDataAlgorithm_v7(handle: cudnnHandle_t, of_w: cudnnFilterDescriptor_t,
        of_y: cudnnTensorDescriptor_t, of: cudnnConvolutionDescriptor_t, of_x: cudnnTensorDescriptor_t, most: c_int,
        count: *mut c_int, answers: *mut cudnnConvolutionBwdDataAlgoPerf_t) -> cudnnStatus_t;
    cudnnGetConvolutionBackwardDataWorkspaceSize(handle: cudnnHandle_t, of_w: cudnnFilterDescriptor_t,
        of_y: cudnnTensorDescriptor_t, of: cudnnConvolutionDescriptor_t, of_x: cudnnTensorDescriptor_t,
        algorithm: cudnnConvolutionBwdDataAlgo_t, bytes: *mut usize) -> cudnnStatus_t;
    cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle: cudnnHandle_t, of_x: cudnnTensorDescriptor_t,
        of_y: cudnnTensorDescriptor_t, of: cudnnConvolutionDescriptor_t, of_w: cudnnFilterDescriptor_t, most: c_int,
        count: *mut c_int, answers: *mut cudnnConvolutionBwdFilterAlgoPerf_t) -> cudnnStatus_t;
    cudnnGetConvolutionBackwardFilterWorkspaceSize(handle: cudnnHandle_t, of_x: cudnnTensorDescriptor_t,
        of_y: cudnnTensorDescriptor_t, of: cudnnConvolutionDescriptor_t, of_w: cudnnFilterDescriptor_t,
        algorithm: cudnnConvolutionBwdFilterAlgo_t, bytes: *mut usize) -> cudnnStatus_t;
    cudnnGetConvolutionForwardAlgorithm_v7(handle: cudnnHandle_t, of_x: cudnnTensorDescriptor_t,
        of_w: cudnnFilterDescriptor_t, of: cudnnConvolutionDescriptor_t, of_y: cudnnTensorDescriptor_t, most: c_int,
        count: *mut c_int, answers: *mut cudnnConvolutionFwdAlgoPerf_t) -> cudnnStatus_t;
    cudnnGetConvolutionForwardWorkspaceSize(handle: cudnnHandle_t, of_x: cudnnTensorDescriptor_t,
        of_w: cudnnFilterDescriptor_t, of: cudnnConvolutionDescriptor_t, of_y: cudnnTensorDescriptor_t,
        algorithm: cudnnConvolutionFwdAlgo_t, bytes: *mut usize) -> cudnnStatus_t;
    cudnnGetErrorString(status: cudnnStatus_t) -> *const c_char;
    cudnnGetVersion() -> usize;
    cudnnSetConvolutionGroupCount(of: cudnnConvolutionDescriptor_t, groups: c_int) -> cudnnStatus_t;
    cudnnSetConvolutionMathType(of: cudnnConvolutionDescriptor_t, math: cudnnMathType_t) -> cudnnStatus_t;
    cudnnSetConvolutionNdDescriptor(of: cudnnConvolutionDescriptor_t, rank: c_int, padding: *const c_int,
        stride: *const c_int, dilation: *const c_int, mode: cudnnConvolutionMode_t, sums: cudnnDataType_t)
        -> cudnnStatus_t;
    cudnnSetFilterNdDescriptor(of: cudnnFilterDescriptor_t, elements: cudnnDataType_t, format: cudnnTensorFormat_t,
        rank: c_int, extents: *const c_int) -> cudnnStatus_t;
    cudnnSetStream(handle: cudnnHandle_t, stream: cudaStream_t) -> cudnnStatus_t;
    cudnnSetTensorNdDescriptor(of: cudnnTensorDescriptor_t, elements: cudnnDataType_t, rank: c_int,
        extents: *const c_int, strides: *const c_int) -> cudnnStatus_t;
}

/// Maximum number of algorithms in an answer: each with and without tensor cores.
const MOST: usize = 16;

impl Cudnn {
    /// Turns a status of the library into a message that names the call.
    fn check(&self, what: &str, status: cudnnStatus_t) -> Result<(), String> {
        if status == cudnnStatus_t::CUDNN_STATUS_SUCCESS {
            return Ok(());
        }
        // SAFETY: the library's text, which ends with null and stays.
        let text = unsafe { CStr::from_ptr(self.cudnnGetErrorString(status)) };
        Err(format!("{what}: {}", text.to_string_lossy()))
    }
}

/// The library's name of an algorithm.
#[derive(Clone, Copy)]
enum Algorithm {
    Positions(cudnnConvolutionFwdAlgo_t),
    Image(cudnnConvolutionBwdDataAlgo_t),
    Weights(cudnnConvolutionBwdFilterAlgo_t),
}

/// The library's descriptors of a convolution.
struct Descriptors {
    api: Arc<Cudnn>,
    image: cudnnTensorDescriptor_t,
    weights: cudnnFilterDescriptor_t,
    positions: cudnnTensorDescriptor_t,
    convolution: cudnnConvolutionDescriptor_t,
}

impl Descriptors {
    fn new(api: &Arc<Cudnn>, filter: &Filter, stored: FloatType) -> Result<Descriptors, String> {
        let elements = match stored {
            FloatType::F32 => cudnnDataType_t::CUDNN_DATA_FLOAT,
            FloatType::F16 => cudnnDataType_t::CUDNN_DATA_HALF,
            FloatType::Bf16 => cudnnDataType_t::CUDNN_DATA_BFLOAT16,
        };
        let mut all = Descriptors {
            api: Arc::clone(api),
            image: null_mut(),
            weights: null_mut(),
            positions: null_mut(),
            convolution: null_mut(),
        };
        for (tensor, extents) in [(&mut all.image, &filter.image), (&mut all.positions, &filter.positions)] {
            let mut strides = vec![1; extents.len()];
            for d in (1..extents.len()).rev() {
                strides[d - 1] = strides[d] * extents[d];
            }
            let rank = extents.len() as c_int;
            // SAFETY: the descriptor may be written.
            api.check("cudnnCreateTensorDescriptor", unsafe { api.cudnnCreateTensorDescriptor(tensor) })?;
            // SAFETY: the descriptor exists, and both lists have `rank` numbers.
            api.check("cudnnSetTensorNdDescriptor", unsafe {
                api.cudnnSetTensorNdDescriptor(*tensor, elements, rank, extents.as_ptr(), strides.as_ptr())
            })?;
        }
        let (weights, plain) = (&filter.weights, cudnnTensorFormat_t::CUDNN_TENSOR_NCHW);
        // SAFETY: the descriptor may be written.
        api.check("cudnnCreateFilterDescriptor", unsafe {
            api.cudnnCreateFilterDescriptor(&mut all.weights)
        })?;
        // SAFETY: the descriptor exists, and the list has `rank` numbers.
        api.check("cudnnSetFilterNdDescriptor", unsafe {
            let rank = weights.len() as c_int;
            api.cudnnSetFilterNdDescriptor(all.weights, elements, plain, rank, weights.as_ptr())
        })?;
        // SAFETY: the descriptor may be written.
        api.check("cudnnCreateConvolutionDescriptor", unsafe {
            api.cudnnCreateConvolutionDescriptor(&mut all.convolution)
        })?;
        let rank = filter.padding.len() as c_int;
        let [padding, stride, dilation] =
            [&filter.padding, &filter.stride, &filter.dilation].map(|list| list.as_ptr());
        let mode = cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION;
        // SAFETY: the descriptor exists, and each list has `rank` numbers.
        api.check("cudnnSetConvolutionNdDescriptor", unsafe {
            api.cudnnSetConvolutionNdDescriptor(
                all.convolution,
                rank,
                padding,
                stride,
                dilation,
                mode,
                cudnnDataType_t::CUDNN_DATA_FLOAT,
            )
        })?;
        // SAFETY: the descriptor exists.
        api.check("cudnnSetConvolutionGroupCount", unsafe {
            api.cudnnSetConvolutionGroupCount(all.convolution, filter.groups)
        })?;
        Ok(all)
    }

    /// Sets the precision to which factors may be rounded.
    fn set_math(&self, math: cudnnMathType_t) -> Result<(), String> {
        // SAFETY: the descriptor exists.
        self.api.check("cudnnSetConvolutionMathType", unsafe {
            self.api.cudnnSetConvolutionMathType(self.convolution, math)
        })
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: each was created or is null, and is not used any more.
        unsafe {
            for tensor in [self.image, self.positions].into_iter().filter(|tensor| !tensor.is_null()) {
                _ = self.api.cudnnDestroyTensorDescriptor(tensor);
            }
            if !self.weights.is_null() {
                _ = self.api.cudnnDestroyFilterDescriptor(self.weights);
            }
            if !self.convolution.is_null() {
                _ = self.api.cudnnDestroyConvolutionDescriptor(self.convolution);
            }
        }
    }
}

/// The algorithm of convolutions with these extents and this size of workspace.
struct Chosen {
    filter: Filter,
    stored: FloatType,
    room: u64,
    /// The algorithm and its workspace, or why there is none.
    by: Result<(Descriptors, Algorithm, usize), String>,
}

/// A convolution whose algorithm is chosen.
pub(super) struct Ready {
    chosen: usize,
    of: Convolution<u64>,
}

impl Ready {
    /// Bytes of workspace that its algorithm needs.
    pub(super) fn workspace_bytes(&self) -> u64 {
        self.of.workspace_bytes
    }
}

/// The library on a device; its convolutions run on the compute stream.
pub(super) struct Dnn {
    api: Arc<Cudnn>,
    handle: cudnnHandle_t,
    chosen: Vec<Chosen>,
    precision: Precision,
    facts: LibraryFacts,
}

impl Dnn {
    /// Opens the library on this device, whose context is current in this thread; `precision` is the precision to which it may
    /// round factors. It has no rounding to bf16, so bf16 means TF32 here.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn open(gpu: &Gpu, precision: Precision) -> Result<Dnn, String> {
        let library = Opened::find(&[NAME]).map_err(|_| "cuDNN is not found".to_owned())?;
        let path = library.path_of("cudnnCreate");
        let api =
            Cudnn::of(&library).map_err(|name| format!("this cuDNN has no {name} ({})", path.display()))?;
        // SAFETY: the library is open.
        let version = unsafe { api.cudnnGetVersion() };
        if version < OLDEST {
            return Err(format!("this cuDNN is older than version 9 ({version}, {})", path.display()));
        }
        let version = format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100);
        let facts = LibraryFacts { name: "cuDNN", version, path };
        let mut dnn = Dnn { api: Arc::new(api), handle: null_mut(), chosen: Vec::new(), precision, facts };
        // SAFETY: the handle may be written.
        dnn.api.check("cudnnCreate", unsafe { dnn.api.cudnnCreate(&mut dnn.handle) })?;
        let stream = gpu.stream(Stream::Compute).cast();
        // SAFETY: handle and stream exist, and the library is closed before the stream.
        dnn.api.check("cudnnSetStream", unsafe { dnn.api.cudnnSetStream(dnn.handle, stream) })?;
        Ok(dnn)
    }

    /// Its name and version.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.facts.name, self.facts.version)
    }

    /// Its version and path.
    pub(super) fn facts(&self) -> &LibraryFacts {
        &self.facts
    }

    /// The convolution with an algorithm, which has run once with these extents.
    ///
    /// # Errors
    /// Why own kernels must do it.
    ///
    /// # Safety
    /// As for [`Self::convolve`]; the results of the convolution must not be in use yet.
    pub(super) unsafe fn choose(&mut self, of: Convolution<u64>) -> Result<Ready, String> {
        let room = of.workspace_bytes;
        let same = |it: &Chosen| it.filter == of.filter && it.stored == of.stored && it.room == room;
        let known = self.chosen.iter().position(same);
        let chosen = known.unwrap_or_else(|| {
            // SAFETY: as the caller promises.
            let by = unsafe { self.try_out(&of) };
            self.chosen.push(Chosen { filter: of.filter.clone(), stored: of.stored, room, by });
            self.chosen.len() - 1
        });
        let bytes = self.chosen[chosen].by.as_ref().map_err(String::clone)?.2 as u64;
        Ok(Ready { chosen, of: Convolution { workspace_bytes: bytes, ..of } })
    }

    /// The first algorithm that qualifies; otherwise the reason why the last one was rejected.
    unsafe fn try_out(&self, of: &Convolution<u64>) -> Result<(Descriptors, Algorithm, usize), String> {
        const EXACT: cudnnMathType_t = cudnnMathType_t::CUDNN_FMA_MATH;
        const SHORT: cudnnMathType_t = cudnnMathType_t::CUDNN_TENSOR_OP_MATH;
        const TF32: cudnnMathType_t = cudnnMathType_t::CUDNN_DEFAULT_MATH;
        const TO_SHORT: cudnnMathType_t = cudnnMathType_t::CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
        // The permitted kinds of math, the one that rounds least first. Products of short floats are exact.
        let allowed: &[cudnnMathType_t] = match (of.stored, self.precision) {
            (FloatType::F16 | FloatType::Bf16, _) => &[EXACT, TF32, SHORT],
            (FloatType::F32, Precision::F32) => &[EXACT],
            (FloatType::F32, Precision::Tf32 | Precision::Bf16) => &[EXACT, SHORT, TF32],
            (FloatType::F32, Precision::F16) => &[EXACT, SHORT, TF32, TO_SHORT],
        };
        let descriptors = Descriptors::new(&self.api, &of.filter, of.stored)?;
        let mut why = "the library has no deterministic algorithm for one".to_owned();
        // For each kind of math the library proposes only algorithms of that kind, and tensor cores need more workspace: the
        // fastest kind is first, then those that round less.
        let mut candidates = Vec::new();
        for &math in allowed.iter().rev() {
            descriptors.set_math(math)?;
            candidates.extend(self.candidates(of.filter.found, &descriptors)?);
        }
        for (algorithm, math) in candidates {
            if !allowed.contains(&math) {
                continue;
            }
            // The algorithm must be run with the kind of math that it was proposed with.
            descriptors.set_math(math)?;
            let bytes = match self.needed(algorithm, &descriptors) {
                Ok(bytes) if bytes as u64 <= of.workspace_bytes => bytes,
                Ok(bytes) => {
                    why = format!("one needs {bytes} bytes of workspace, and has {}", of.workspace_bytes);
                    continue;
                }
                Err(error) => {
                    why = error;
                    continue;
                }
            };
            // SAFETY: as the caller promises.
            match unsafe { self.run(&descriptors, algorithm, of, bytes) } {
                Ok(()) => return Ok((descriptors, algorithm, bytes)),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// The deterministic algorithms that the heuristics propose, the fastest first, each with its kind of math.
    fn candidates(
        &self,
        found: Found,
        of: &Descriptors,
    ) -> Result<Vec<(Algorithm, cudnnMathType_t)>, String> {
        macro_rules! candidates {
            ($name:ident, $answer:ty, $algorithm:expr, $first:ident, $second:ident, $third:ident) => {{
                // SAFETY: all fields are numbers, or enumerations of numbers that include 0.
                let (mut list, mut count): ([$answer; MOST], c_int) = (unsafe { zeroed() }, 0);
                // SAFETY: handle and descriptors exist, and that many answers may be written.
                self.api.check(stringify!($name), unsafe {
                    self.api.$name(
                        self.handle,
                        of.$first,
                        of.$second,
                        of.convolution,
                        of.$third,
                        MOST as c_int,
                        &mut count,
                        list.as_mut_ptr(),
                    )
                })?;
                let answered = list.iter().take(usize::try_from(count).unwrap_or(0));
                let usable = answered.filter(|answer| {
                    answer.status == cudnnStatus_t::CUDNN_STATUS_SUCCESS
                        && answer.determinism == cudnnDeterminism_t::CUDNN_DETERMINISTIC
                });
                usable.map(|answer| ($algorithm(answer.algo), answer.mathType)).collect()
            }};
        }
        Ok(match found {
            Found::Positions => candidates!(
                cudnnGetConvolutionForwardAlgorithm_v7,
                cudnnConvolutionFwdAlgoPerf_t,
                Algorithm::Positions,
                image,
                weights,
                positions
            ),
            Found::Image => candidates!(
                cudnnGetConvolutionBackwardDataAlgorithm_v7,
                cudnnConvolutionBwdDataAlgoPerf_t,
                Algorithm::Image,
                weights,
                positions,
                image
            ),
            Found::Weights => candidates!(
                cudnnGetConvolutionBackwardFilterAlgorithm_v7,
                cudnnConvolutionBwdFilterAlgoPerf_t,
                Algorithm::Weights,
                image,
                positions,
                weights
            ),
        })
    }

    /// Workspace in bytes that an algorithm needs.
    fn needed(&self, algorithm: Algorithm, of: &Descriptors) -> Result<usize, String> {
        let (handle, mut bytes) = (self.handle, 0);
        let Descriptors { image, weights, positions, convolution, .. } = *of;
        // SAFETY: handle and descriptors exist, and the number may be written.
        let answer = unsafe {
            match algorithm {
                Algorithm::Positions(algorithm) => self.api.cudnnGetConvolutionForwardWorkspaceSize(
                    handle,
                    image,
                    weights,
                    convolution,
                    positions,
                    algorithm,
                    &mut bytes,
                ),
                Algorithm::Image(algorithm) => self.api.cudnnGetConvolutionBackwardDataWorkspaceSize(
                    handle,
                    weights,
                    positions,
                    convolution,
                    image,
                    algorithm,
                    &mut bytes,
                ),
                Algorithm::Weights(algorithm) => self.api.cudnnGetConvolutionBackwardFilterWorkspaceSize(
                    handle,
                    image,
                    positions,
                    convolution,
                    weights,
                    algorithm,
                    &mut bytes,
                ),
            }
        };
        self.api.check("cudnnGetConvolutionWorkspaceSize", answer).map(|()| bytes)
    }

    /// Convolves when the compute stream reaches this point.
    ///
    /// # Safety
    /// The tensors and the workspace are on the device, as large as the convolution says, and stay allocated until it is done;
    /// nothing else uses the workspace until then.
    pub(super) unsafe fn convolve(&self, ready: &Ready) -> Result<(), String> {
        let (descriptors, algorithm, bytes) = self.chosen[ready.chosen].by.as_ref().map_err(String::clone)?;
        // SAFETY: as the caller promises.
        unsafe { self.run(descriptors, *algorithm, &ready.of, *bytes) }
    }

    unsafe fn run(
        &self,
        descriptors: &Descriptors,
        algorithm: Algorithm,
        at: &Convolution<u64>,
        bytes: usize,
    ) -> Result<(), String> {
        let Descriptors { image, weights, positions, convolution, .. } = *descriptors;
        let [x, w, y] = [at.image, at.weights, at.positions].map(|at| at as *mut c_void);
        // An empty workspace may have an address outside the memory, so null is passed.
        let room = if bytes > 0 { at.workspace as *mut c_void } else { null_mut() };
        let [one, zero] = [&1f32, &0f32].map(|number| from_ref(number).cast::<c_void>());
        let handle = self.handle;
        #[rustfmt::skip]
        // SAFETY: as the caller promises; the factors are read before this returns.
        let done = unsafe {
            match algorithm {
                Algorithm::Positions(algorithm) => self.api.cudnnConvolutionForward(
                    handle, one, image, x, weights, w, convolution, algorithm, room, bytes, zero, positions, y,
                ),
                Algorithm::Image(algorithm) => self.api.cudnnConvolutionBackwardData(
                    handle, one, weights, w, positions, y, convolution, algorithm, room, bytes, zero, image, x,
                ),
                Algorithm::Weights(algorithm) => self.api.cudnnConvolutionBackwardFilter(
                    handle, one, image, x, positions, y, convolution, algorithm, room, bytes, zero, weights, w,
                ),
            }
        };
        let Filter { found, image, weights, .. } = &at.filter;
        self.api.check(&format!("{found:?} of a convolution of {image:?} with {weights:?}"), done)
    }
}

impl Drop for Dnn {
    fn drop(&mut self) {
        self.chosen.clear();
        if !self.handle.is_null() {
            // SAFETY: it was created, and is not used any more.
            _ = unsafe { self.api.cudnnDestroy(self.handle) };
        }
    }
}
