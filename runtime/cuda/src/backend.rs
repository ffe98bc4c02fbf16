//! cuDNN's backend API, typed: descriptors that free themselves, the few that a convolution takes, and a handle that executes.
//!
//! Since version 9.8 a device can be described in words. Heuristics, notes on engines, workspaces and finalized plans then need
//! neither a GPU nor a driver. Only a handle needs a device.
//!
//! # Source
//! NVIDIA's description of cuDNN, "Backend API" and "Deviceless Ahead-of-time Compilation".

use std::ffi::{c_char, c_void};
use std::ptr::null_mut;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::cudnn::sys::{
    self, cudaStream_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, cudnnBackendDescriptor_t,
    cudnnBackendDescriptorType_t, cudnnBackendHeurMode_t, cudnnConvolutionMode_t, cudnnDataType_t,
    cudnnHandle_t, cudnnStatus_t,
};

use super::library::{LibraryFacts, Opened, functions};

pub(super) use cudarc::cudnn::sys::cudnnBackendAttributeName_t as Attribute;
pub(super) use cudarc::cudnn::sys::cudnnBackendDescriptorType_t as Kind;

functions! { Backend:
    cudnnBackendCreateDescriptor(kind: cudnnBackendDescriptorType_t, made: *mut cudnnBackendDescriptor_t)
        -> cudnnStatus_t;
    cudnnBackendDestroyDescriptor(of: cudnnBackendDescriptor_t) -> cudnnStatus_t;
    cudnnBackendExecute(handle: cudnnHandle_t, plan: cudnnBackendDescriptor_t, pack: cudnnBackendDescriptor_t)
        -> cudnnStatus_t;
    cudnnBackendFinalize(of: cudnnBackendDescriptor_t) -> cudnnStatus_t;
    cudnnBackendGetAttribute(of: cudnnBackendDescriptor_t, name: cudnnBackendAttributeName_t,
        kind: cudnnBackendAttributeType_t, room: i64, count: *mut i64, elements: *mut c_void) -> cudnnStatus_t;
    cudnnBackendSetAttribute(of: cudnnBackendDescriptor_t, name: cudnnBackendAttributeName_t,
        kind: cudnnBackendAttributeType_t, count: i64, elements: *const c_void) -> cudnnStatus_t;
    cudnnCreate(handle: *mut cudnnHandle_t) -> cudnnStatus_t;
    cudnnDestroy(handle: cudnnHandle_t) -> cudnnStatus_t;
    cudnnGetLastErrorString(text: *mut c_char, room: usize) -> ();
    cudnnGetVersion() -> usize;
    cudnnSetStream(handle: cudnnHandle_t, stream: cudaStream_t) -> cudnnStatus_t;
}

impl Backend {
    /// Turns a status into the library's own words for it.
    fn check(&self, what: impl FnOnce() -> String, status: cudnnStatus_t) -> Result<(), String> {
        if status == cudnnStatus_t::CUDNN_STATUS_SUCCESS {
            return Ok(());
        }
        let mut text = [0u8; 1024];
        // SAFETY: that many bytes may be written; the library ends the text with null.
        unsafe { self.cudnnGetLastErrorString(text.as_mut_ptr().cast(), text.len()) };
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        Err(format!("{}: {status:?}: {}", what(), String::from_utf8_lossy(text).trim()))
    }
}

/// The first version that answers about a device that is described.
const OLDEST: usize = 90_800;

/// Opens the library. Its parts ask cuBLAS for its version, by a name that the loader knows once that library is open.
///
/// # Errors
/// Why it cannot be used.
pub(super) fn open() -> Result<(Arc<Backend>, LibraryFacts), String> {
    // A cuDNN needs the one of the same CUDA. Where it is missing, the loader may find it, or cuDNN says that it is missing.
    for name in ["libcublasLt.so.13", "libcublasLt.so.12"] {
        _ = Opened::find(&[name]);
    }
    let library = Opened::find(&["libcudnn.so.9"]).map_err(|_| "cuDNN is not found".to_owned())?;
    let path = library.path_of("cudnnGetVersion");
    let api =
        Backend::of(&library).map_err(|name| format!("this cuDNN has no {name} ({})", path.display()))?;
    // SAFETY: the library is open.
    let version = unsafe { api.cudnnGetVersion() };
    if version < OLDEST {
        return Err(format!("this cuDNN is older than 9.8 ({version}, {})", path.display()));
    }
    let version = format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100);
    Ok((Arc::new(api), LibraryFacts { name: "cuDNN", version, path }))
}

/// The library on the device whose context is current in this thread.
pub(super) struct Executor {
    api: Arc<Backend>,
    handle: cudnnHandle_t,
}

impl Executor {
    /// The library on the device, with a stream of it on which everything runs.
    ///
    /// # Errors
    /// The library's message.
    ///
    /// # Safety
    /// The stream lives as long as this.
    pub(super) unsafe fn new(api: &Arc<Backend>, stream: *mut c_void) -> Result<Executor, String> {
        let mut made = Executor { api: Arc::clone(api), handle: null_mut() };
        // SAFETY: the handle may be written.
        let status = unsafe { api.cudnnCreate(&mut made.handle) };
        api.check(|| "cudnnCreate".to_owned(), status)?;
        // SAFETY: the handle exists, and the stream as the caller promises.
        let status = unsafe { api.cudnnSetStream(made.handle, stream.cast()) };
        api.check(|| "cudnnSetStream".to_owned(), status)?;
        Ok(made)
    }

    /// The handle, as an element of an attribute.
    pub(super) fn handle(&self) -> Handle {
        Handle(self.handle as usize)
    }

    /// Executes a plan when the stream reaches this point.
    ///
    /// # Errors
    /// The library's message.
    ///
    /// # Safety
    /// Both descriptors are finalized, the plan with this handle; the tensors and the workspace of the pack are on the device, as
    /// large as the plan says, and stay allocated until it is done; nothing else uses the workspace until then.
    pub(super) unsafe fn execute(&self, plan: &Descriptor, pack: &Descriptor) -> Result<(), String> {
        // SAFETY: as the caller promises.
        let status = unsafe { self.api.cudnnBackendExecute(self.handle, plan.raw, pack.raw) };
        self.api.check(|| "cudnnBackendExecute".to_owned(), status)
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it was created, and is not used any more.
            _ = unsafe { self.api.cudnnDestroy(self.handle) };
        }
    }
}

/// A type of an attribute's elements.
///
/// # Safety
/// A value is as large as the library's element of the type `KIND`, and every value of that size is valid if it is read.
// SAFETY: a declaration; each implementation says why it keeps the promise.
pub(super) unsafe trait Element: Copy + Default {
    /// The library's name of the type.
    const KIND: cudnnBackendAttributeType_t;
}

/// A number that the library names: an enumeration, which later versions may extend.
macro_rules! names {
    ($($name:ident of $kind:ident: $doc:literal;)*) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(transparent)]
        pub(super) struct $name(pub(super) u32);

        // SAFETY: the library's enumerations are unsigned integers of 32 bits.
        unsafe impl Element for $name {
            const KIND: cudnnBackendAttributeType_t = cudnnBackendAttributeType_t::$kind;
        }
    )*};
}

names! {
    BehaviorNote of CUDNN_TYPE_BEHAVIOR_NOTE: "A property of an engine besides its numbers.";
    ConvolutionMode of CUDNN_TYPE_CONVOLUTION_MODE: "Whether the window is mirrored.";
    DataType of CUDNN_TYPE_DATA_TYPE: "A type of elements.";
    HeuristicsMode of CUDNN_TYPE_HEUR_MODE: "A way to find engines.";
    KnobType of CUDNN_TYPE_KNOB_TYPE: "A parameter of an engine.";
    NumericalNote of CUDNN_TYPE_NUMERICAL_NOTE: "A property of an engine's numbers.";
}

/// An address on the device.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(super) struct Pointer(pub(super) u64);

// SAFETY: an address of 64 bits.
unsafe impl Element for Pointer {
    const KIND: cudnnBackendAttributeType_t = cudnnBackendAttributeType_t::CUDNN_TYPE_VOID_PTR;
}

/// The library's handle of a device.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub(super) struct Handle(usize);

// SAFETY: a handle is a pointer, which is as large.
unsafe impl Element for Handle {
    const KIND: cudnnBackendAttributeType_t = cudnnBackendAttributeType_t::CUDNN_TYPE_HANDLE;
}

impl From<cudnnDataType_t> for DataType {
    fn from(of: cudnnDataType_t) -> DataType {
        DataType(of as u32)
    }
}

impl From<cudnnConvolutionMode_t> for ConvolutionMode {
    fn from(of: cudnnConvolutionMode_t) -> ConvolutionMode {
        ConvolutionMode(of as u32)
    }
}

impl From<cudnnBackendHeurMode_t> for HeuristicsMode {
    fn from(of: cudnnBackendHeurMode_t) -> HeuristicsMode {
        HeuristicsMode(of as u32)
    }
}

// SAFETY: an integer of 64 bits.
unsafe impl Element for i64 {
    const KIND: cudnnBackendAttributeType_t = cudnnBackendAttributeType_t::CUDNN_TYPE_INT64;
}

// SAFETY: a float of 32 bits.
unsafe impl Element for f32 {
    const KIND: cudnnBackendAttributeType_t = cudnnBackendAttributeType_t::CUDNN_TYPE_FLOAT;
}

// SAFETY: a byte of a text.
unsafe impl Element for u8 {
    const KIND: cudnnBackendAttributeType_t = cudnnBackendAttributeType_t::CUDNN_TYPE_CHAR;
}

/// A descriptor of the library, and the descriptors that it names, which live as long.
pub(super) struct Descriptor {
    api: Arc<Backend>,
    raw: cudnnBackendDescriptor_t,
    kind: Kind,
    named: Vec<Rc<Descriptor>>,
}

impl Descriptor {
    /// An empty descriptor.
    pub(super) fn new(api: &Arc<Backend>, kind: Kind) -> Result<Descriptor, String> {
        let mut made = Descriptor { api: Arc::clone(api), raw: null_mut(), kind, named: Vec::new() };
        // SAFETY: the descriptor may be written.
        let status = unsafe { api.cudnnBackendCreateDescriptor(kind, &mut made.raw) };
        api.check(|| format!("{kind:?}"), status)?;
        Ok(made)
    }

    fn set_raw(
        &self,
        name: Attribute,
        kind: cudnnBackendAttributeType_t,
        count: usize,
        elements: *const c_void,
    ) -> Result<(), String> {
        // SAFETY: the descriptor exists, and there are that many elements of this type, of which the library makes copies.
        let status =
            unsafe { self.api.cudnnBackendSetAttribute(self.raw, name, kind, count as i64, elements) };
        self.api.check(|| format!("{name:?}"), status)
    }

    /// The descriptor with these elements of an attribute.
    pub(super) fn with<T: Element>(self, name: Attribute, elements: &[T]) -> Result<Descriptor, String> {
        self.set_raw(name, T::KIND, elements.len(), elements.as_ptr().cast())?;
        Ok(self)
    }

    /// The descriptor with these descriptors as an attribute.
    pub(super) fn naming(mut self, name: Attribute, all: &[&Rc<Descriptor>]) -> Result<Descriptor, String> {
        let raw: Vec<cudnnBackendDescriptor_t> = all.iter().map(|one| one.raw).collect();
        let kind = cudnnBackendAttributeType_t::CUDNN_TYPE_BACKEND_DESCRIPTOR;
        self.set_raw(name, kind, raw.len(), raw.as_ptr().cast())?;
        self.named.extend(all.iter().map(|one| Rc::clone(one)));
        Ok(self)
    }

    /// The finished descriptor.
    pub(super) fn finalized(self) -> Result<Rc<Descriptor>, String> {
        // SAFETY: the descriptor exists.
        let status = unsafe { self.api.cudnnBackendFinalize(self.raw) };
        self.api.check(|| format!("{:?}", self.kind), status)?;
        Ok(Rc::new(self))
    }

    /// Number of elements that were written where there is room for `room`.
    fn get_raw(
        &self,
        name: Attribute,
        kind: cudnnBackendAttributeType_t,
        room: usize,
        elements: *mut c_void,
    ) -> Result<usize, String> {
        let mut count = 0;
        // SAFETY: the descriptor exists, and that many elements of this type may be written.
        let status = unsafe {
            self.api.cudnnBackendGetAttribute(self.raw, name, kind, room as i64, &mut count, elements)
        };
        self.api.check(|| format!("{name:?}"), status)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// At most `most` elements of an attribute.
    pub(super) fn get<T: Element>(&self, name: Attribute, most: usize) -> Result<Vec<T>, String> {
        let mut all = vec![T::default(); most];
        let count = self.get_raw(name, T::KIND, most, all.as_mut_ptr().cast())?;
        all.truncate(count);
        Ok(all)
    }

    /// Number of descriptors that an attribute has, where the library says so before it is asked for them.
    pub(super) fn count(&self, name: Attribute) -> Result<usize, String> {
        self.get_raw(name, cudnnBackendAttributeType_t::CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, null_mut())
    }

    /// At most `most` descriptors of this kind that an attribute has.
    pub(super) fn get_descriptors(
        &self,
        name: Attribute,
        kind: Kind,
        most: usize,
    ) -> Result<Vec<Rc<Descriptor>>, String> {
        let of = cudnnBackendAttributeType_t::CUDNN_TYPE_BACKEND_DESCRIPTOR;
        // The library fills descriptors that the caller has made.
        let made: Vec<Descriptor> =
            (0..most).map(|_| Descriptor::new(&self.api, kind)).collect::<Result<_, _>>()?;
        let mut raw: Vec<cudnnBackendDescriptor_t> = made.iter().map(|one| one.raw).collect();
        let count = if most > 0 { self.get_raw(name, of, most, raw.as_mut_ptr().cast())? } else { 0 };
        Ok(made.into_iter().take(count).map(Rc::new).collect())
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: it was created, and no descriptor that names it is left.
            _ = unsafe { self.api.cudnnBackendDestroyDescriptor(self.raw) };
        }
    }
}
