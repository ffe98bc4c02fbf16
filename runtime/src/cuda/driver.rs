//! The driver's calls, each of which says what went wrong. What they are given belongs to [`Gpu`] or to its caller.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_void};
use std::ptr::{NonNull, null_mut};

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUevent_flags_enum, CUfunction,
    CUgraph, CUgraphExec, CUmemAccess_flags_enum, CUmemAccessDesc, CUmemAllocationGranularity_flags_enum,
    CUmemAllocationHandleType_enum, CUmemAllocationProp, CUmemAllocationProp_st__bindgen_ty_1,
    CUmemAllocationType_enum, CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType_enum, CUmodule,
    CUresult, CUstream, CUstream_flags_enum, CUstreamCaptureMode_enum,
};
use lmsc_ir::program::{Mapping, Stream};

use super::BLOCK;
use super::library::{self, Missing};

/// The names that the driver's library may have.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// The functions that map chunks to addresses; old drivers have none of them.
const MAPPING: [&str; 8] = [
    "cuMemAddressFree",
    "cuMemAddressReserve",
    "cuMemCreate",
    "cuMemGetAllocationGranularity",
    "cuMemMap",
    "cuMemRelease",
    "cuMemSetAccess",
    "cuMemUnmap",
];

/// Why there is no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// There is no driver.
    #[error("no CUDA driver: {0}")]
    Missing(#[from] Missing),
    /// There are not so many devices.
    #[error("there is no CUDA device {ordinal}; the driver knows {count}")]
    NoDevice {
        /// The number that was asked for, from 0.
        ordinal: u32,
        /// How many there are.
        count: u32,
    },
    /// The driver refuses.
    #[error("the CUDA driver refuses: {0}")]
    Driver(String),
}

/// Whether there is a device of this number; the vendor's name for it.
///
/// # Errors
/// [`OpenError`], which says what was looked for and where.
pub fn probe(ordinal: u32) -> Result<String, OpenError> {
    Gpu::open(ordinal).map(|gpu| gpu.name.clone())
}

/// What the driver's answer means, with what was asked.
fn check(what: &str, result: CUresult) -> Result<(), String> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut name = std::ptr::null();
    // SAFETY: the driver writes the address of a constant that ends with null, or null.
    let known =
        unsafe { sys::cuGetErrorName(result, &mut name) } == CUresult::CUDA_SUCCESS && !name.is_null();
    // SAFETY: as above.
    let name = if known { unsafe { CStr::from_ptr(name) }.to_string_lossy() } else { "unknown error".into() };
    Err(format!("{what}: {name}"))
}

/// A device with a context and a stream for each of the program's.
pub(super) struct Gpu {
    device: CUdevice,
    context: CUcontext,
    streams: [CUstream; 3],
    /// What NVRTC compiles for.
    pub(super) architecture: String,
    /// What the vendor calls it.
    pub(super) name: String,
}

impl Gpu {
    /// The device of this number.
    pub(super) fn open(ordinal: u32) -> Result<Gpu, OpenError> {
        library::find(&NAMES)?;
        // SAFETY: it opens libraries by name, of which the one above is known now.
        if !unsafe { sys::is_culib_present() } {
            let names = NAMES.map(str::to_owned).to_vec();
            return Err(Missing { names, searched: Vec::new() }.into());
        }
        let driver = OpenError::Driver;
        // SAFETY: the first call of the driver.
        check("cuInit", unsafe { sys::cuInit(0) }).map_err(driver)?;
        let mut count = 0;
        // SAFETY: the number is there to be written.
        check("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) }).map_err(driver)?;
        let count = u32::try_from(count).unwrap_or(0);
        if ordinal >= count {
            return Err(OpenError::NoDevice { ordinal, count });
        }
        Gpu::of(ordinal as i32).map_err(driver)
    }

    fn of(ordinal: i32) -> Result<Gpu, String> {
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: there is such a device, and the number is there to be written.
        check("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, ordinal) })?;
        let attribute = |which| {
            let mut value = 0;
            // SAFETY: the device is there, and the number is there to be written.
            check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) })?;
            Ok::<i32, String>(value)
        };
        let major = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let mut name = [0u8; 128];
        // SAFETY: there is room for so many bytes, and the driver ends them with null.
        let named = unsafe { sys::cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32, device) };
        check("cuDeviceGetName", named)?;
        let name = CStr::from_bytes_until_nul(&name).map(|name| name.to_string_lossy().into_owned());
        // SAFETY: the device is there, and it is released when this ends.
        check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device) })?;
        let architecture = format!("sm_{major}{minor}");
        let mut gpu =
            Gpu { device, context, streams: [null_mut(); 3], architecture, name: name.unwrap_or_default() };
        gpu.enter()?;
        for stream in &mut gpu.streams {
            let flags = CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
            // SAFETY: the context is this thread's, and the handle is there to be written.
            check("cuStreamCreate", unsafe { sys::cuStreamCreate(stream, flags) })?;
        }
        Ok(gpu)
    }

    /// Makes the context that of this thread.
    pub(super) fn enter(&self) -> Result<(), String> {
        // SAFETY: the context is retained.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    pub(super) fn stream(&self, stream: Stream) -> CUstream {
        self.streams[stream as usize]
    }

    /// Memory of the device.
    pub(super) fn memory(&self, bytes: u64) -> Result<Memory, String> {
        let (mut address, size) = (0, usize::try_from(bytes.max(1)).map_err(|e| e.to_string())?);
        // SAFETY: the address is there to be written.
        check(&format!("cuMemAlloc of {bytes} bytes"), unsafe { sys::cuMemAlloc_v2(&mut address, size) })
            .map_err(|why| match self.free_memory() {
                Ok(Some([free, total])) => format!("{why}; {free} of {total} bytes are free"),
                _ => why,
            })?;
        Ok(Memory(address))
    }

    /// The bytes of the device's memory that nobody has, and all of them; none where the driver does not say.
    pub(super) fn free_memory(&self) -> Result<Option<[u64; 2]>, String> {
        // SAFETY: the library is there, and its function is looked at, not called.
        if unsafe { sys::culib().get::<*const c_void>(b"cuMemGetInfo_v2") }.is_err() {
            return Ok(None);
        }
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both numbers are there to be written.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(Some([free as u64, total as u64]))
    }

    /// An attribute of the device; 0 where the driver does not know it.
    pub(super) fn attribute(&self, which: CUdevice_attribute) -> u32 {
        let mut value = 0;
        // SAFETY: the device is there, and the number is there to be written.
        let asked = unsafe { sys::cuDeviceGetAttribute(&mut value, which, self.device) };
        check("cuDeviceGetAttribute", asked).ok().and_then(|()| u32::try_from(value).ok()).unwrap_or(0)
    }

    /// What chunks are: memory of this device.
    fn chunks(&self) -> CUmemAllocationProp {
        let flags = CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        };
        CUmemAllocationProp {
            type_: CUmemAllocationType_enum::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: CUmemAllocationHandleType_enum(0),
            location: self.location(),
            win32HandleMetaData: null_mut(),
            allocFlags: flags,
        }
    }

    fn location(&self) -> CUmemLocation {
        CUmemLocation { type_: CUmemLocationType_enum::CU_MEM_LOCATION_TYPE_DEVICE, id: self.device }
    }

    /// What the bytes of chunks are multiples of.
    pub(super) fn granularity(&self) -> Result<u64, String> {
        // SAFETY: the library is there, and its functions are looked at, not called.
        let lacks = |name: &&&str| unsafe { sys::culib().get::<*const c_void>(name.as_bytes()) }.is_err();
        if let Some(name) = MAPPING.iter().find(lacks) {
            return Err(format!("this driver cannot map chunks to addresses: it has no {name}"));
        }
        let (mut maps, mut granularity) = (0, 0);
        let which = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
        // SAFETY: the device is there, and the number is there to be written.
        let asked = unsafe { sys::cuDeviceGetAttribute(&mut maps, which, self.device) };
        check("cuDeviceGetAttribute", asked)?;
        if maps == 0 {
            return Err("this device cannot map chunks to addresses".to_owned());
        }
        let least = CUmemAllocationGranularity_flags_enum::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: what chunks are is there to be read, and the number to be written.
        let asked = unsafe { sys::cuMemGetAllocationGranularity(&mut granularity, &self.chunks(), least) };
        check("cuMemGetAllocationGranularity", asked)?;
        match granularity {
            0 => Err("cuMemGetAllocationGranularity: 0".to_owned()),
            bytes => Ok(bytes as u64),
        }
    }

    /// Addresses with chunks of memory behind them, each chunk new. Its bytes are a multiple of [`Gpu::granularity`].
    pub(super) fn mapped(&self, mapping: &Mapping) -> Result<Mapped, String> {
        let size = |bytes: u64| usize::try_from(bytes).map_err(|e| e.to_string());
        let chunk = size(mapping.chunk)?;
        let spots = mapping.chunks.len().max(1);
        let bytes = spots.checked_mul(chunk).ok_or("so many addresses there are not")?;
        let mut mapped = Mapped { start: 0, bytes, chunk, chunks: Vec::new(), at: Vec::new() };
        // SAFETY: the address is there to be written.
        let reserved = unsafe { sys::cuMemAddressReserve(&mut mapped.start, bytes, 0, 0, 0) };
        check(&format!("cuMemAddressReserve of {bytes} bytes"), reserved)?;
        let count = mapping.chunks.iter().flatten().max().map_or(0, |&last| last as usize + 1);
        for number in 1..=count {
            let mut handle = 0;
            // SAFETY: what the chunk is is there to be read, and the handle to be written.
            let made = unsafe { sys::cuMemCreate(&mut handle, chunk, &self.chunks(), 0) };
            check(&format!("cuMemCreate of chunk {number} of {count}, each of {chunk} bytes"), made)?;
            mapped.chunks.push(handle);
        }
        let access = CUmemAccessDesc {
            location: self.location(),
            flags: CUmemAccess_flags_enum::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        for (spot, number) in mapping.chunks.iter().enumerate() {
            let Some(number) = *number else { continue };
            let at = mapped.start + (spot * chunk) as u64;
            let handle = mapped.chunks[number as usize];
            // SAFETY: the addresses are reserved, nothing is mapped to them yet, and the chunk is there.
            check("cuMemMap", unsafe { sys::cuMemMap(at, chunk, 0, handle, 0) })?;
            mapped.at.push((spot, number));
            // SAFETY: the chunk is mapped to these addresses, and what is allowed is there to be read.
            check("cuMemSetAccess", unsafe { sys::cuMemSetAccess(at, chunk, &access, 1) })?;
        }
        Ok(mapped)
    }

    /// Waits until everything in the stream is done.
    pub(super) fn wait_for(&self, stream: Stream) -> Result<(), String> {
        // SAFETY: the stream is there.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.stream(stream)) })
    }

    /// Lets the stream go on only when what was last recorded is done.
    pub(super) fn after(&self, stream: Stream, event: &Event) -> Result<(), String> {
        // SAFETY: stream and event are there.
        check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(self.stream(stream), event.0, 0) })
    }

    /// Records what is in the stream so far.
    pub(super) fn record(&self, event: &Event, stream: Stream) -> Result<(), String> {
        // SAFETY: stream and event are there.
        check("cuEventRecord", unsafe { sys::cuEventRecord(event.0, self.stream(stream)) })
    }

    /// Copies to the device once the stream has come so far.
    ///
    /// # Safety
    /// Both are of memory with so many bytes, which stay there, and the host's are not written until that is done.
    pub(super) unsafe fn to_device(
        &self,
        stream: Stream,
        to: CUdeviceptr,
        from: *const u8,
        bytes: u64,
    ) -> Result<(), String> {
        let stream = self.stream(stream);
        // SAFETY: as the caller promises.
        check("cuMemcpyHtoDAsync", unsafe {
            sys::cuMemcpyHtoDAsync_v2(to, from.cast::<c_void>(), bytes as usize, stream)
        })
    }

    /// Copies to the host once the stream has come so far.
    ///
    /// # Safety
    /// Both are of memory with so many bytes, which stay there, and the host's are not used until that is done.
    pub(super) unsafe fn to_host(
        &self,
        stream: Stream,
        to: *mut u8,
        from: CUdeviceptr,
        bytes: u64,
    ) -> Result<(), String> {
        let stream = self.stream(stream);
        // SAFETY: as the caller promises.
        check("cuMemcpyDtoHAsync", unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.cast::<c_void>(), from, bytes as usize, stream)
        })
    }

    /// Runs a kernel once the stream has come so far.
    ///
    /// # Safety
    /// The kernel takes such arguments, and all that they point to stays there until it is done.
    pub(super) unsafe fn launch(&self, stream: Stream, ready: &Ready) -> Result<(), String> {
        let (stream, args) = (self.stream(stream), ready.pointers.as_ptr().cast_mut());
        // SAFETY: as the caller promises; the driver reads the arguments before it returns.
        let result = unsafe {
            sys::cuLaunchKernel(ready.function, ready.blocks, 1, 1, BLOCK, 1, 1, 0, stream, args, null_mut())
        };
        check(&format!("cuLaunchKernel of {}", ready.kernel), result)
    }

    /// Begins to write down what streams are given, instead of doing it.
    pub(super) fn begin_graph(&self) -> Result<(), String> {
        let mode = CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is there.
        let begun = unsafe { sys::cuStreamBeginCapture_v2(self.stream(Stream::Compute), mode) };
        check("cuStreamBeginCapture", begun)
    }

    /// What was written down since.
    pub(super) fn end_graph(&self) -> Result<Graph, String> {
        let (mut graph, mut exec): (CUgraph, CUgraphExec) = (null_mut(), null_mut());
        // SAFETY: the stream is there, and the handle is there to be written.
        let ended = unsafe { sys::cuStreamEndCapture(self.stream(Stream::Compute), &mut graph) };
        check("cuStreamEndCapture", ended)?;
        // SAFETY: the graph is there, and the handle is there to be written.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0) };
        // SAFETY: the graph is there, and nobody uses it any more.
        _ = unsafe { sys::cuGraphDestroy(graph) };
        check("cuGraphInstantiate", made)?;
        Ok(Graph(exec))
    }

    /// Does what was written down, once what computes has come so far.
    pub(super) fn replay(&self, graph: &Graph) -> Result<(), String> {
        // SAFETY: graph and stream are there, and the memory that it uses belongs to who owns both.
        check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(graph.0, self.stream(Stream::Compute)) })
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        _ = self.enter();
        for &stream in self.streams.iter().filter(|stream| !stream.is_null()) {
            // SAFETY: the stream is there; nothing is in it any more.
            unsafe {
                _ = sys::cuStreamSynchronize(stream);
                _ = sys::cuStreamDestroy_v2(stream);
            }
        }
        // SAFETY: it was retained once.
        _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Memory of the device, which is freed with it. The driver frees it when nothing runs any more.
pub(super) struct Memory(CUdeviceptr);

impl Memory {
    pub(super) fn address(&self) -> CUdeviceptr {
        self.0
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated, and is freed once.
        _ = unsafe { sys::cuMemFree_v2(self.0) };
    }
}

/// Addresses of the device with chunks of memory behind them, which are freed with it.
pub(super) struct Mapped {
    start: CUdeviceptr,
    bytes: usize,
    chunk: usize,
    chunks: Vec<CUmemGenericAllocationHandle>,
    /// Positions in the addresses, counted in chunks, and the chunks that are mapped there.
    at: Vec<(usize, u32)>,
}

impl Mapped {
    fn spot(&self, spot: usize) -> CUdeviceptr {
        self.start + (spot * self.chunk) as u64
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: nothing runs any more when that is back; what was mapped is unmapped once, chunk by chunk, and what was
        // made and reserved is given back once.
        unsafe {
            _ = sys::cuCtxSynchronize();
            for &(spot, _) in &self.at {
                _ = sys::cuMemUnmap(self.spot(spot), self.chunk);
            }
            for &handle in &self.chunks {
                _ = sys::cuMemRelease(handle);
            }
            if self.start != 0 {
                _ = sys::cuMemAddressFree(self.start, self.bytes);
            }
        }
    }
}

/// What a program's arena lies in.
pub(super) enum Arena {
    /// Memory of so many bytes.
    Whole(Memory, u64),
    /// Addresses with chunks behind them.
    Chunks(Mapped),
}

impl Arena {
    pub(super) fn address(&self) -> CUdeviceptr {
        match self {
            Arena::Whole(memory, _) => memory.address(),
            Arena::Chunks(mapped) => mapped.start,
        }
    }

    /// Addresses with how many bytes follow, of all memory that is behind them, each byte once.
    pub(super) fn parts(&self) -> Vec<(CUdeviceptr, u64)> {
        match self {
            Arena::Whole(memory, bytes) => vec![(memory.address(), *bytes)],
            Arena::Chunks(mapped) => {
                let first: BTreeMap<u32, usize> =
                    mapped.at.iter().rev().map(|&(spot, chunk)| (chunk, spot)).collect();
                first.into_values().map(|spot| (mapped.spot(spot), mapped.chunk as u64)).collect()
            }
        }
    }
}

/// Memory of the host that the device copies from and to by itself: plain, so that the processor reads it fast.
pub(super) struct Pinned {
    start: NonNull<u8>,
    layout: Layout,
}

impl Pinned {
    pub(super) fn new(bytes: u64) -> Result<Pinned, String> {
        const PAGE: usize = 4096;
        let size = usize::try_from(bytes.max(1)).map_err(|e| e.to_string())?;
        let layout = Layout::from_size_align(size, PAGE).map_err(|e| e.to_string())?;
        // SAFETY: the layout has at least one byte.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) });
        let start = start.ok_or_else(|| format!("the system does not give {bytes} bytes of host memory"))?;
        // SAFETY: the bytes are there until they are unregistered.
        let registered = unsafe { sys::cuMemHostRegister_v2(start.as_ptr().cast(), size, 0) };
        if let Err(why) = check(&format!("cuMemHostRegister of {bytes} bytes"), registered) {
            // SAFETY: it was allocated with this layout, and is not used.
            unsafe { dealloc(start.as_ptr(), layout) };
            return Err(why);
        }
        Ok(Pinned { start, layout })
    }

    /// Where the byte is.
    ///
    /// # Panics
    /// If so many bytes from there on are not inside.
    pub(super) fn at(&self, offset: u64, bytes: u64) -> *mut u8 {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.layout.size() as u64));
        // SAFETY: it is inside.
        unsafe { self.start.as_ptr().add(offset as usize) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: it was registered, and allocated with this layout; nothing copies any more.
        unsafe {
            _ = sys::cuMemHostUnregister(self.start.as_ptr().cast());
            dealloc(self.start.as_ptr(), self.layout);
        }
    }
}

/// A point in a stream.
pub(super) struct Event(CUevent);

impl Event {
    pub(super) fn new(times: bool) -> Result<Event, String> {
        let flags = match times {
            true => CUevent_flags_enum::CU_EVENT_DEFAULT,
            false => CUevent_flags_enum::CU_EVENT_DISABLE_TIMING,
        };
        let mut event = null_mut();
        // SAFETY: the handle is there to be written.
        check("cuEventCreate", unsafe { sys::cuEventCreate(&mut event, flags as u32) })?;
        Ok(Event(event))
    }

    /// Waits until what was recorded last is done.
    pub(super) fn wait(&self) -> Result<(), String> {
        // SAFETY: the event is there.
        check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.0) })
    }

    /// Seconds from another one to this one. Both have times and are done.
    pub(super) fn seconds_since(&self, other: &Event) -> Result<f64, String> {
        let mut milliseconds = 0.0;
        // SAFETY: both events are there, and the number is there to be written.
        check("cuEventElapsedTime", unsafe {
            sys::cuEventElapsedTime_v2(&mut milliseconds, other.0, self.0)
        })?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it is there; the driver keeps it until nothing waits for it.
        _ = unsafe { sys::cuEventDestroy_v2(self.0) };
    }
}

/// What streams were given, written down.
pub(super) struct Graph(CUgraphExec);

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: it is there, and the driver keeps it until it has run.
        _ = unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

/// Kernels that are on the device.
pub(super) struct Module(CUmodule);

impl Module {
    pub(super) fn new(image: &[u8]) -> Result<Module, String> {
        // What is text ends with null; more than the image is not read.
        let image: Vec<u8> = image.iter().copied().chain([0]).collect();
        let mut module = null_mut();
        // SAFETY: the image is there, and the handle is there to be written.
        check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&mut module, image.as_ptr().cast()) })?;
        Ok(Module(module))
    }

    /// The kernel of this name, if it is here.
    pub(super) fn function(&self, name: &str) -> Result<Option<Function>, String> {
        let Ok(text) = CString::new(name) else { return Ok(None) };
        let mut function = null_mut();
        // SAFETY: module and name are there, and the handle is there to be written.
        match unsafe { sys::cuModuleGetFunction(&mut function, self.0, text.as_ptr()) } {
            CUresult::CUDA_ERROR_NOT_FOUND => Ok(None),
            result => {
                check(&format!("cuModuleGetFunction of {name}"), result).map(|()| Some(Function(function)))
            }
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: it is there, and none of its kernels runs any more.
        _ = unsafe { sys::cuModuleUnload(self.0) };
    }
}

/// A kernel of a module.
#[derive(Clone, Copy)]
pub(super) struct Function(CUfunction);

/// A kernel whose arguments are there.
pub(super) struct Ready {
    kernel: String,
    function: CUfunction,
    blocks: u32,
    /// Addresses of the arguments in `_words`.
    pointers: Vec<*mut c_void>,
    _words: Vec<u64>,
}

impl Ready {
    /// With the words of each argument.
    pub(super) fn new(kernel: String, blocks: u32, function: Function, args: &[Vec<u64>]) -> Ready {
        let mut words: Vec<u64> = args.concat();
        let mut at = 0;
        let mut pointers = Vec::new();
        for arg in args {
            pointers.push(words[at..].as_mut_ptr().cast::<c_void>());
            at += arg.len();
        }
        Ready { kernel, function: function.0, blocks, pointers, _words: words }
    }
}
