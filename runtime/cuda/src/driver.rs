//! The driver's calls; each returns a message when it fails. Their arguments belong to [`Gpu`] or to its caller.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_void};
use std::path::PathBuf;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUevent_flags_enum, CUfunction, CUgraph,
    CUgraphExec, CUmemAccess_flags_enum, CUmemAccessDesc, CUmemAllocationGranularity_flags_enum,
    CUmemAllocationHandleType_enum, CUmemAllocationProp, CUmemAllocationProp_st__bindgen_ty_1,
    CUmemAllocationType_enum, CUmemGenericAllocationHandle, CUmemLocation, CUmemLocationType_enum,
    CUmemorytype_enum, CUmodule, CUpointer_attribute_enum, CUresult, CUstream, CUstream_flags_enum,
    CUstreamCaptureMode_enum,
};
use lmsc_ir::Bytes;
use lmsc_ir::program::{Mapping, Stream};
use rayon::prelude::*;

use super::BLOCK;
use super::calls::{Cuda, Foreign, Mappings};
use super::library::{LibraryFacts, Missing, Opened};

/// Possible names of the driver's library.
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// An open driver.
struct Driver {
    cuda: Cuda,
    /// Milliseconds between two events. Since CUDA 12.8 the function has another name.
    // SAFETY: a type; the calling code keeps the contract of the vendor's description.
    elapsed: unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult,
    /// The functions that map chunks, or the name of a missing one.
    mappings: Result<Mappings, &'static str>,
    /// The functions that copy device memory of other parts of the program, or the name of a missing one.
    foreign: Result<Foreign, &'static str>,
    facts: LibraryFacts,
}

/// The driver of this process, once it is open.
static DRIVER: OnceLock<Driver> = OnceLock::new();

/// The driver, which [`Gpu::open`] has opened.
fn driver() -> &'static Driver {
    DRIVER.get().expect("whatever calls the driver has a device")
}

/// The driver's functions that map chunks, which [`Gpu::granularity`] has checked.
fn mappings() -> &'static Mappings {
    driver().mappings.as_ref().expect("it is asked for the granularity of chunks first")
}

/// The driver's functions that copy device memory of other parts of the program.
fn foreign() -> Result<&'static Foreign, String> {
    driver().foreign.as_ref().map_err(|name| format!("the driver has no {name}"))
}

impl Driver {
    /// The driver, opened by the first call that finds it.
    fn open() -> Result<&'static Driver, OpenError> {
        if let Some(driver) = DRIVER.get() {
            return Ok(driver);
        }
        let driver = Driver::of(&Opened::find(&NAMES)?)?;
        Ok(DRIVER.get_or_init(|| driver))
    }

    fn of(library: &Opened) -> Result<Driver, OpenError> {
        let path = library.path_of("cuInit");
        let old = |lacks| OpenError::Old { path: path.clone(), lacks };
        let cuda = Cuda::of(library).map_err(old)?;
        // SAFETY: by the vendor's description both are of this type, and so is the older one in its bindings.
        let elapsed = unsafe {
            let newer = library.function("cuEventElapsedTime_v2");
            newer.or_else(|_| library.function("cuEventElapsedTime"))
        };
        let mut version = 0;
        // SAFETY: the number may be written, and this may be called before the first call.
        _ = unsafe { cuda.cuDriverGetVersion(&mut version) };
        let version = format!("{}.{}", version / 1000, version / 10 % 100);
        let elapsed = elapsed.map_err(old)?;
        let facts = LibraryFacts { name: "CUDA driver", version, path };
        Ok(Driver { cuda, elapsed, mappings: Mappings::of(library), foreign: Foreign::of(library), facts })
    }
}

/// Why there is no device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// There is no driver.
    #[error("no CUDA driver: {0}")]
    Missing(#[from] Missing),
    /// There is no device of this number.
    #[error("there is no CUDA device {ordinal}; the driver knows {count}")]
    NoDevice {
        /// The requested number, from 0.
        ordinal: u32,
        /// Number of devices.
        count: u32,
    },
    /// The driver lacks a required function.
    #[error("the CUDA driver in {} is too old: it has no {lacks}; install one of CUDA 12 or later", .path.display())]
    Old {
        /// The library.
        path: PathBuf,
        /// The function's name.
        lacks: &'static str,
    },
    /// The driver refuses.
    #[error("the CUDA driver refuses: {0}")]
    Driver(String),
}

/// Whether there is a device of this number; the vendor's name for it.
///
/// # Errors
/// [`OpenError`], which says which libraries were tried and where.
pub fn probe(ordinal: u32) -> Result<String, OpenError> {
    Gpu::open(ordinal).map(|gpu| gpu.name.clone())
}

/// Turns an error code of the driver into a message that names the call.
fn check(what: &str, result: CUresult) -> Result<(), String> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut name = std::ptr::null();
    // SAFETY: the driver writes the address of a constant that ends with null, or null.
    let known = unsafe { driver().cuda.cuGetErrorName(result, &mut name) } == CUresult::CUDA_SUCCESS
        && !name.is_null();
    // SAFETY: as above.
    let name = if known { unsafe { CStr::from_ptr(name) }.to_string_lossy() } else { "unknown error".into() };
    Err(format!("{what}: {name}{}", lost(result)))
}

/// The consequence of an error after which the process can use the device no more; nothing for other errors.
///
/// # Source
/// CUDA Driver API, `CUresult`: "This leaves the process in an inconsistent state and any further CUDA work will return the same
/// error. To continue using CUDA, the process must be terminated and relaunched."
fn lost(error: CUresult) -> &'static str {
    match error {
        CUresult::CUDA_ERROR_LAUNCH_TIMEOUT => {
            "; the system ends kernels that run long on a card with a display: this process can use the device no more, so start \
             it again, with smaller operators or without the time limit"
        }
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        | CUresult::CUDA_ERROR_ASSERT
        | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
        | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
        | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUresult::CUDA_ERROR_INVALID_PC
        | CUresult::CUDA_ERROR_LAUNCH_FAILED => {
            "; this process can use the device no more, so start it again; --synchronous names the kernel that fails"
        }
        _ => "",
    }
}

/// A device with a context and a stream for each stream of the program.
pub(super) struct Gpu {
    device: CUdevice,
    context: CUcontext,
    streams: [CUstream; 3],
    /// The architecture that NVRTC compiles for.
    pub(super) architecture: String,
    /// The vendor's name.
    pub(super) name: String,
}

impl Gpu {
    /// The device of this number.
    pub(super) fn open(ordinal: u32) -> Result<Gpu, OpenError> {
        let cuda = &Driver::open()?.cuda;
        let refused = OpenError::Driver;
        // SAFETY: the first call of the driver.
        check("cuInit", unsafe { cuda.cuInit(0) }).map_err(refused)?;
        let mut count = 0;
        // SAFETY: the number may be written.
        check("cuDeviceGetCount", unsafe { cuda.cuDeviceGetCount(&mut count) }).map_err(refused)?;
        let count = u32::try_from(count).unwrap_or(0);
        if ordinal >= count {
            return Err(OpenError::NoDevice { ordinal, count });
        }
        Gpu::of(ordinal as i32).map_err(OpenError::Driver)
    }

    fn of(ordinal: i32) -> Result<Gpu, String> {
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: there is such a device, and the number may be written.
        check("cuDeviceGet", unsafe { driver().cuda.cuDeviceGet(&mut device, ordinal) })?;
        let attribute = |which| {
            let mut value = 0;
            // SAFETY: the device exists, and the number may be written.
            check("cuDeviceGetAttribute", unsafe {
                driver().cuda.cuDeviceGetAttribute(&mut value, which, device)
            })?;
            Ok::<i32, String>(value)
        };
        let major = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        let mut name = [0u8; 128];
        // SAFETY: the buffer has that many bytes, and the driver ends the name with null.
        let named =
            unsafe { driver().cuda.cuDeviceGetName(name.as_mut_ptr().cast(), name.len() as i32, device) };
        check("cuDeviceGetName", named)?;
        let name = CStr::from_bytes_until_nul(&name).map(|name| name.to_string_lossy().into_owned());
        // SAFETY: the device exists, and it is released when this ends.
        check("cuDevicePrimaryCtxRetain", unsafe {
            driver().cuda.cuDevicePrimaryCtxRetain(&mut context, device)
        })?;
        let architecture = format!("sm_{major}{minor}");
        let mut gpu =
            Gpu { device, context, streams: [null_mut(); 3], architecture, name: name.unwrap_or_default() };
        gpu.enter()?;
        for stream in &mut gpu.streams {
            let flags = CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
            // SAFETY: the context is this thread's, and the handle may be written.
            check("cuStreamCreate", unsafe { driver().cuda.cuStreamCreate(stream, flags) })?;
        }
        Ok(gpu)
    }

    /// Makes the context current in this thread.
    pub(super) fn enter(&self) -> Result<(), String> {
        // SAFETY: the context is retained.
        check("cuCtxSetCurrent", unsafe { driver().cuda.cuCtxSetCurrent(self.context) })
    }

    pub(super) fn stream(&self, stream: Stream) -> CUstream {
        self.streams[stream as usize]
    }

    /// Facts about the driver: version and path.
    pub(super) fn driver(&self) -> &'static LibraryFacts {
        &driver().facts
    }

    /// Sets `bytes` bytes of the device's memory to zero when the stream reaches this point.
    ///
    /// # Safety
    /// The memory has that many bytes, which stay allocated, and nothing else uses them until that is done.
    pub(super) unsafe fn zeros(&self, stream: Stream, at: CUdeviceptr, bytes: u64) -> Result<(), String> {
        // SAFETY: as the caller promises.
        check("cuMemsetD8Async", unsafe {
            driver().cuda.cuMemsetD8Async(at, 0, bytes as usize, self.stream(stream))
        })
    }

    /// Allocates memory of the device.
    pub(super) fn memory(&self, bytes: u64) -> Result<Memory, String> {
        let (mut address, size) = (0, usize::try_from(bytes.max(1)).map_err(|e| e.to_string())?);
        // SAFETY: the address may be written.
        let given = unsafe { driver().cuda.cuMemAlloc_v2(&mut address, size) };
        check(&format!("cuMemAlloc of {bytes} bytes"), given).map_err(|why| self.with_free(why))?;
        Ok(Memory(address))
    }

    /// Bytes of the device's memory: free, and in total.
    pub(super) fn free(&self) -> Result<[u64; 2], String> {
        let (mut free, mut all) = (0, 0);
        // SAFETY: both numbers may be written.
        check("cuMemGetInfo", unsafe { driver().cuda.cuMemGetInfo_v2(&mut free, &mut all) })?;
        Ok([free as u64, all as u64])
    }

    /// Adds the amount of free memory to the reason of a refusal.
    fn with_free(&self, why: String) -> String {
        match self.free() {
            Ok([free, all]) => format!("{why}; {free} bytes ({}) of {} are free", Bytes(free), Bytes(all)),
            Err(_) => why,
        }
    }

    /// An attribute of the device; 0 where the driver does not know it.
    pub(super) fn attribute(&self, which: CUdevice_attribute) -> u32 {
        let mut value = 0;
        // SAFETY: the device exists, and the number may be written.
        let asked = unsafe { driver().cuda.cuDeviceGetAttribute(&mut value, which, self.device) };
        check("cuDeviceGetAttribute", asked).ok().and_then(|()| u32::try_from(value).ok()).unwrap_or(0)
    }

    /// Allocation properties of chunks: memory of this device.
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

    /// Granularity of chunk sizes, in bytes.
    pub(super) fn granularity(&self) -> Result<u64, String> {
        if let Err(name) = driver().mappings {
            return Err(format!("this driver cannot map chunks to addresses: it has no {name}"));
        }
        let (mut maps, mut granularity) = (0, 0);
        let which = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
        // SAFETY: the device exists, and the number may be written.
        let asked = unsafe { driver().cuda.cuDeviceGetAttribute(&mut maps, which, self.device) };
        check("cuDeviceGetAttribute", asked)?;
        if maps == 0 {
            return Err("this device cannot map chunks to addresses".to_owned());
        }
        let least = CUmemAllocationGranularity_flags_enum::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        // SAFETY: the properties may be read, and the number may be written.
        let asked =
            unsafe { mappings().cuMemGetAllocationGranularity(&mut granularity, &self.chunks(), least) };
        check("cuMemGetAllocationGranularity", asked)?;
        match granularity {
            0 => Err("cuMemGetAllocationGranularity: 0".to_owned()),
            bytes => Ok(bytes as u64),
        }
    }

    /// Reserves addresses and maps chunks of new memory to them. A chunk's bytes are a multiple of [`Gpu::granularity`].
    pub(super) fn mapped(&self, mapping: &Mapping) -> Result<Mapped, String> {
        let size = |bytes: u64| usize::try_from(bytes).map_err(|e| e.to_string());
        let chunk = size(mapping.chunk)?;
        let spots = mapping.chunks.len().max(1);
        let bytes = spots.checked_mul(chunk).ok_or("so many addresses there are not")?;
        let mut mapped = Mapped { start: 0, bytes, chunk, chunks: Vec::new(), at: Vec::new() };
        // SAFETY: the address may be written.
        let reserved = unsafe { mappings().cuMemAddressReserve(&mut mapped.start, bytes, 0, 0, 0) };
        check(&format!("cuMemAddressReserve of {bytes} bytes"), reserved)?;
        let count = mapping.chunks.iter().flatten().max().map_or(0, |&last| last as usize + 1);
        for number in 1..=count {
            let mut handle = 0;
            // SAFETY: the properties may be read, and the handle may be written.
            let made = unsafe { mappings().cuMemCreate(&mut handle, chunk, &self.chunks(), 0) };
            check(&format!("cuMemCreate of chunk {number} of {count}, each of {chunk} bytes"), made)
                .map_err(|why| self.with_free(why))?;
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
            // SAFETY: the addresses are reserved, nothing is mapped to them yet, and the chunk exists.
            check("cuMemMap", unsafe { mappings().cuMemMap(at, chunk, 0, handle, 0) })?;
            mapped.at.push((spot, number));
            // SAFETY: the chunk is mapped to these addresses, and the access description may be read.
            check("cuMemSetAccess", unsafe { mappings().cuMemSetAccess(at, chunk, &access, 1) })?;
        }
        Ok(mapped)
    }

    /// Waits until everything in the stream is done.
    pub(super) fn wait_for(&self, stream: Stream) -> Result<(), String> {
        // SAFETY: the stream exists.
        check("cuStreamSynchronize", unsafe { driver().cuda.cuStreamSynchronize(self.stream(stream)) })
    }

    /// Makes the stream wait until the work that was last recorded in the event is done.
    pub(super) fn after(&self, stream: Stream, event: &Event) -> Result<(), String> {
        // SAFETY: stream and event exist.
        check("cuStreamWaitEvent", unsafe {
            driver().cuda.cuStreamWaitEvent(self.stream(stream), event.0, 0)
        })
    }

    /// Records the work in the stream so far.
    pub(super) fn record(&self, event: &Event, stream: Stream) -> Result<(), String> {
        // SAFETY: stream and event exist.
        check("cuEventRecord", unsafe { driver().cuda.cuEventRecord(event.0, self.stream(stream)) })
    }

    /// Copies to the device when the stream reaches this point.
    ///
    /// # Safety
    /// Both memories have that many bytes, which stay allocated, and the host's are not written until the copy is done.
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
            driver().cuda.cuMemcpyHtoDAsync_v2(to, from.cast::<c_void>(), bytes as usize, stream)
        })
    }

    /// Copies to the host when the stream reaches this point.
    ///
    /// # Safety
    /// Both memories have that many bytes, which stay allocated, and the host's are not used until the copy is done.
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
            driver().cuda.cuMemcpyDtoHAsync_v2(to.cast::<c_void>(), from, bytes as usize, stream)
        })
    }

    /// The address, if the first and the last of these bytes are memory of this device.
    pub(super) fn checked(&self, at: CUdeviceptr, bytes: u64) -> Result<CUdeviceptr, String> {
        let foreign = foreign()?;
        let attribute = |at, which| {
            let mut value: u32 = 0;
            // SAFETY: both attributes are numbers of this size, which may be written; the driver judges any address.
            let asked =
                unsafe { foreign.cuPointerGetAttribute((&raw mut value).cast::<c_void>(), which, at) };
            (asked == CUresult::CUDA_SUCCESS).then_some(value)
        };
        let is_here = |at| {
            attribute(at, CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
                == Some(CUmemorytype_enum::CU_MEMORYTYPE_DEVICE as u32)
                && attribute(at, CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
                    == u32::try_from(self.device).ok()
        };
        let last = at.checked_add(bytes.saturating_sub(1));
        match last.filter(|&last| bytes == 0 || is_here(at) && is_here(last)) {
            Some(_) => Ok(at),
            None => Err(format!("the {bytes} bytes at {at:#x} are not memory of this device")),
        }
    }

    /// Waits for the work in the context's default stream.
    pub(super) fn wait_for_default_stream(&self) -> Result<(), String> {
        // SAFETY: null is the default stream.
        check("cuStreamSynchronize", unsafe { driver().cuda.cuStreamSynchronize(null_mut()) })
    }

    /// Copies within the device when the stream reaches this point.
    ///
    /// # Safety
    /// Both memories have that many bytes, which stay allocated, and those copied are not written until the copy is done.
    pub(super) unsafe fn within(
        &self,
        stream: Stream,
        to: CUdeviceptr,
        from: CUdeviceptr,
        bytes: u64,
    ) -> Result<(), String> {
        let (foreign, stream) = (foreign()?, self.stream(stream));
        // SAFETY: as the caller promises.
        check("cuMemcpyDtoDAsync", unsafe { foreign.cuMemcpyDtoDAsync_v2(to, from, bytes as usize, stream) })
    }

    /// Runs a kernel when the stream reaches this point.
    ///
    /// # Safety
    /// The kernel takes such arguments, and all memory that they point to stays allocated until it is done.
    pub(super) unsafe fn launch(&self, stream: Stream, ready: &Ready) -> Result<(), String> {
        let (stream, args) = (self.stream(stream), ready.pointers.as_ptr().cast_mut());
        // SAFETY: as the caller promises; the driver reads the arguments before it returns.
        let result = unsafe {
            driver().cuda.cuLaunchKernel(
                ready.function,
                ready.blocks,
                1,
                1,
                BLOCK,
                1,
                1,
                0,
                stream,
                args,
                null_mut(),
            )
        };
        check(&format!("cuLaunchKernel of {}", ready.kernel), result)
    }

    /// Begins to capture the streams' work instead of executing it.
    pub(super) fn begin_graph(&self) -> Result<(), String> {
        let mode = CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream exists.
        let begun = unsafe { driver().cuda.cuStreamBeginCapture_v2(self.stream(Stream::Compute), mode) };
        check("cuStreamBeginCapture", begun)
    }

    /// The work captured since [`Gpu::begin_graph`].
    pub(super) fn end_graph(&self) -> Result<Graph, String> {
        let (mut graph, mut exec): (CUgraph, CUgraphExec) = (null_mut(), null_mut());
        // SAFETY: the stream exists, and the handle may be written.
        let ended = unsafe { driver().cuda.cuStreamEndCapture(self.stream(Stream::Compute), &mut graph) };
        check("cuStreamEndCapture", ended)?;
        // SAFETY: the graph exists, and the handle may be written.
        let made = unsafe { driver().cuda.cuGraphInstantiateWithFlags(&mut exec, graph, 0) };
        // SAFETY: the graph exists, and nothing uses it any more.
        _ = unsafe { driver().cuda.cuGraphDestroy(graph) };
        check("cuGraphInstantiate", made)?;
        Ok(Graph(exec))
    }

    /// Executes the captured work when the compute stream reaches this point.
    pub(super) fn replay(&self, graph: &Graph) -> Result<(), String> {
        // SAFETY: graph and stream exist, and the memory that they use belongs to the owner of both.
        check("cuGraphLaunch", unsafe { driver().cuda.cuGraphLaunch(graph.0, self.stream(Stream::Compute)) })
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        _ = self.enter();
        for &stream in self.streams.iter().filter(|stream| !stream.is_null()) {
            // SAFETY: the stream exists; no work is left in it.
            unsafe {
                _ = driver().cuda.cuStreamSynchronize(stream);
                _ = driver().cuda.cuStreamDestroy_v2(stream);
            }
        }
        // SAFETY: it was retained once.
        _ = unsafe { driver().cuda.cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// Memory of the device, freed on drop. The driver frees it when nothing runs any more.
pub(super) struct Memory(CUdeviceptr);

impl Memory {
    pub(super) fn address(&self) -> CUdeviceptr {
        self.0
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated, and is freed once.
        _ = unsafe { driver().cuda.cuMemFree_v2(self.0) };
    }
}

/// Addresses of the device with chunks of memory mapped to them; both are freed on drop.
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
        // SAFETY: nothing runs any more after the synchronization; each mapped chunk is unmapped once, and each chunk and the
        // reserved addresses are released once.
        unsafe {
            _ = driver().cuda.cuCtxSynchronize();
            for &(spot, _) in &self.at {
                _ = mappings().cuMemUnmap(self.spot(spot), self.chunk);
            }
            for &handle in &self.chunks {
                _ = mappings().cuMemRelease(handle);
            }
            if self.start != 0 {
                _ = mappings().cuMemAddressFree(self.start, self.bytes);
            }
        }
    }
}

/// The memory of a program's arena.
pub(super) enum Arena {
    /// One piece of memory, and the bytes of it that hold tensors.
    Whole(Memory, u64),
    /// Addresses with chunks mapped to them.
    Chunks(Mapped),
}

impl Arena {
    pub(super) fn address(&self) -> CUdeviceptr {
        match self {
            Arena::Whole(memory, _) => memory.address(),
            Arena::Chunks(mapped) => mapped.start,
        }
    }

    /// The address and size in bytes of each part of the memory, each byte once.
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

/// Host memory that the device reads and writes directly; write-back cached, so that the processor reads it fast.
pub(super) struct Pinned {
    start: NonNull<u8>,
    size: usize,
    /// Whether the driver allocated it; otherwise it is memory of this process that was registered.
    is_drivers: bool,
}

/// Bytes that a thread touches at once: 8192 small pages or 16 large ones. With half as many the threads fetch work more often;
/// with twice as many a slab of 512 MiB leaves some of 16 threads idle.
const PIECE: usize = 32 << 20;

impl Pinned {
    /// Zeros that the device copies from and to: memory of this process registered with the driver or, if it refuses, memory that
    /// the driver allocates.
    pub(super) fn new(bytes: u64) -> Result<Pinned, String> {
        let size = usize::try_from(bytes.max(1)).map_err(|e| e.to_string())?;
        Pinned::registered(size).or_else(|refused| {
            Pinned::of_driver(size).map_err(|why| format!("{why}; before that, {refused}"))
        })
    }

    fn registered(size: usize) -> Result<Pinned, String> {
        /// The smallest page size of all systems; a larger page is registered even if only a part of it is given.
        const PAGE: usize = 4096;
        let start =
            map(size).ok_or_else(|| format!("the system does not give {size} bytes of host memory"))?;
        let at = start.as_ptr().cast::<c_void>();
        let register = |bytes: usize| {
            // SAFETY: the bytes stay mapped until they are unregistered.
            let answer = unsafe { driver().cuda.cuMemHostRegister_v2(at, bytes, 0) };
            check(&format!("cuMemHostRegister of {bytes} bytes"), answer)
        };
        // Tests whether the driver registers memory at all before all pages are touched.
        let registered = register(size.min(PAGE)).and_then(|()| {
            // SAFETY: it was registered just now, and nothing copies yet.
            _ = unsafe { driver().cuda.cuMemHostUnregister(at) };
            // All threads touch the pages; the driver would do so in one thread.
            // SAFETY: that many bytes are mapped, and nothing else refers to them.
            let all = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), size) };
            all.par_chunks_mut(PIECE)
                .for_each(|piece| piece.iter_mut().step_by(PAGE).for_each(|byte| *byte = 0));
            register(size)
        });
        match registered {
            Ok(()) => Ok(Pinned { start, size, is_drivers: false }),
            Err(why) => {
                // SAFETY: it was mapped with this size, and is not used.
                unsafe { libc::munmap(at, size) };
                Err(why)
            }
        }
    }

    fn of_driver(size: usize) -> Result<Pinned, String> {
        let mut at = null_mut();
        // SAFETY: the address may be written.
        let answer = unsafe { driver().cuda.cuMemHostAlloc(&mut at, size, 0) };
        check(&format!("cuMemHostAlloc of {size} bytes"), answer)?;
        let start = NonNull::new(at.cast()).ok_or("cuMemHostAlloc: null")?;
        let pinned = Pinned { start, size, is_drivers: true };
        // SAFETY: that many bytes are allocated, and nothing else refers to them.
        let all = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), size) };
        // Fresh pages of the system are zero already, so they are only read.
        all.par_chunks_mut(PIECE).for_each(|piece| {
            if piece.iter().any(|&byte| byte != 0) {
                piece.fill(0);
            }
        });
        Ok(pinned)
    }

    /// Pointer to the byte at `offset`.
    ///
    /// # Panics
    /// If the `bytes` bytes from there on are not all inside.
    pub(super) fn at(&self, offset: u64, bytes: u64) -> *mut u8 {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= self.size as u64));
        // SAFETY: it is inside.
        unsafe { self.start.as_ptr().add(offset as usize) }
    }
}

/// Maps `size` bytes of zeros, whose pages are allocated when they are touched.
fn map(size: usize) -> Option<NonNull<u8>> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: new memory, which nothing refers to.
    let at = unsafe { libc::mmap(null_mut(), size, access, kind, -1, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the memory is mapped. Large pages are fewer to touch and to pin; a system without them returns an error, which is
    // ignored.
    _ = unsafe { libc::madvise(at, size, libc::MADV_HUGEPAGE) };
    NonNull::new(at.cast())
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let at = self.start.as_ptr().cast::<c_void>();
        // SAFETY: it is the driver's, or was registered and mapped with this size; nothing copies any more.
        unsafe {
            if self.is_drivers {
                _ = driver().cuda.cuMemFreeHost(at);
            } else {
                _ = driver().cuda.cuMemHostUnregister(at);
                libc::munmap(at, self.size);
            }
        }
    }
}

/// A point in a stream.
pub(super) struct Event(CUevent);

impl Event {
    pub(super) fn new(times: bool) -> Result<Event, String> {
        let flags = if times {
            CUevent_flags_enum::CU_EVENT_DEFAULT
        } else {
            CUevent_flags_enum::CU_EVENT_DISABLE_TIMING
        };
        let mut event = null_mut();
        // SAFETY: the handle may be written.
        check("cuEventCreate", unsafe { driver().cuda.cuEventCreate(&mut event, flags as u32) })?;
        Ok(Event(event))
    }

    /// Waits until the work that was recorded last is done.
    pub(super) fn wait(&self) -> Result<(), String> {
        // SAFETY: the event exists.
        check("cuEventSynchronize", unsafe { driver().cuda.cuEventSynchronize(self.0) })
    }

    /// Seconds from another event to this one. Both record times and are done.
    pub(super) fn seconds_since(&self, other: &Event) -> Result<f64, String> {
        let mut milliseconds = 0.0;
        // SAFETY: both events exist, and the number may be written.
        check("cuEventElapsedTime", unsafe { (driver().elapsed)(&mut milliseconds, other.0, self.0) })?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: it exists; the driver keeps it until nothing waits for it.
        _ = unsafe { driver().cuda.cuEventDestroy_v2(self.0) };
    }
}

/// Captured work of the streams.
pub(super) struct Graph(CUgraphExec);

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: it exists, and the driver keeps it until it has run.
        _ = unsafe { driver().cuda.cuGraphExecDestroy(self.0) };
    }
}

/// Kernels that are loaded on the device.
pub(super) struct Module(CUmodule);

impl Module {
    pub(super) fn new(image: &[u8]) -> Result<Module, String> {
        // A text image ends with null; bytes behind the image are not read.
        let image: Vec<u8> = image.iter().copied().chain([0]).collect();
        let mut module = null_mut();
        // SAFETY: the image is in memory, and the handle may be written.
        check("cuModuleLoadData", unsafe {
            driver().cuda.cuModuleLoadData(&mut module, image.as_ptr().cast())
        })?;
        Ok(Module(module))
    }

    /// The kernel of this name, if it is in this module.
    pub(super) fn function(&self, name: &str) -> Result<Option<Function>, String> {
        let Ok(text) = CString::new(name) else { return Ok(None) };
        let mut function = null_mut();
        // SAFETY: module and name exist, and the handle may be written.
        match unsafe { driver().cuda.cuModuleGetFunction(&mut function, self.0, text.as_ptr()) } {
            CUresult::CUDA_ERROR_NOT_FOUND => Ok(None),
            result => {
                check(&format!("cuModuleGetFunction of {name}"), result).map(|()| Some(Function(function)))
            }
        }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: it exists, and none of its kernels runs any more.
        _ = unsafe { driver().cuda.cuModuleUnload(self.0) };
    }
}

/// A kernel of a module.
#[derive(Clone, Copy)]
pub(super) struct Function(CUfunction);

/// A kernel with its arguments.
pub(super) struct Ready {
    kernel: String,
    function: CUfunction,
    blocks: u32,
    /// Addresses of the arguments in `_words`.
    pointers: Vec<*mut c_void>,
    _words: Vec<u64>,
}

impl Ready {
    /// The kernel's name.
    pub(super) fn kernel(&self) -> &str {
        &self.kernel
    }

    /// A kernel with the words of each argument.
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
