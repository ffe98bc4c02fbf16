//! The functions of CUDA's driver that are used.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_void};

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec,
    CUmemAccessDesc, CUmemAllocationGranularity_flags, CUmemAllocationProp, CUmemGenericAllocationHandle,
    CUmodule, CUpointer_attribute, CUresult, CUstream, CUstreamCaptureMode,
};

use super::library::functions;

functions! { Cuda:
    cuCtxSetCurrent(context: CUcontext) -> CUresult;
    cuCtxSynchronize() -> CUresult;
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int) -> CUresult;
    cuDeviceGetAttribute(value: *mut c_int, which: CUdevice_attribute, device: CUdevice) -> CUresult;
    cuDeviceGetCount(count: *mut c_int) -> CUresult;
    cuDeviceGetName(name: *mut c_char, bytes: c_int, device: CUdevice) -> CUresult;
    cuDevicePrimaryCtxRelease_v2(device: CUdevice) -> CUresult;
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) -> CUresult;
    cuDriverGetVersion(driver_version: *mut c_int) -> CUresult;
    cuEventCreate(event: *mut CUevent, flags: c_uint) -> CUresult;
    cuEventDestroy_v2(event: CUevent) -> CUresult;
    cuEventRecord(event: CUevent, stream: CUstream) -> CUresult;
    cuEventSynchronize(event: CUevent) -> CUresult;
    cuGetErrorName(error: CUresult, name: *mut *const c_char) -> CUresult;
    cuGraphDestroy(graph: CUgraph) -> CUresult;
    cuGraphExecDestroy(exec: CUgraphExec) -> CUresult;
    cuGraphInstantiateWithFlags(pexec: *mut CUgraphExec, graph: CUgraph, flags: c_ulonglong) -> CUresult;
    cuGraphLaunch(exec: CUgraphExec, stream: CUstream) -> CUresult;
    cuInit(flags: c_uint) -> CUresult;
    cuLaunchKernel(function: CUfunction, grid_dim_x: c_uint, grid_dim_y: c_uint, grid_dim_z: c_uint,
        block_dim_x: c_uint, block_dim_y: c_uint, block_dim_z: c_uint, shared_mem_bytes: c_uint, stream: CUstream,
        kernel_params: *mut *mut c_void, extra: *mut *mut c_void) -> CUresult;
    cuMemAlloc_v2(at: *mut CUdeviceptr, bytes: usize) -> CUresult;
    cuMemFreeHost(at: *mut c_void) -> CUresult;
    cuMemFree_v2(at: CUdeviceptr) -> CUresult;
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> CUresult;
    cuMemHostAlloc(at: *mut *mut c_void, bytes: usize, flags: c_uint) -> CUresult;
    cuMemHostRegister_v2(at: *mut c_void, bytes: usize, flags: c_uint) -> CUresult;
    cuMemHostUnregister(at: *mut c_void) -> CUresult;
    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult;
    cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream) -> CUresult;
    cuMemsetD8Async(to: CUdeviceptr, byte: c_uchar, bytes: usize, stream: CUstream) -> CUresult;
    cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char) -> CUresult;
    cuModuleLoadData(module: *mut CUmodule, image: *const c_void) -> CUresult;
    cuModuleUnload(module: CUmodule) -> CUresult;
    cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode) -> CUresult;
    cuStreamCreate(pstream: *mut CUstream, flags: c_uint) -> CUresult;
    cuStreamDestroy_v2(stream: CUstream) -> CUresult;
    cuStreamEndCapture(stream: CUstream, pgraph: *mut CUgraph) -> CUresult;
    cuStreamSynchronize(stream: CUstream) -> CUresult;
    cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint) -> CUresult;
}

// These map chunks to addresses; old drivers lack them.
functions! { Mappings:
    cuMemAddressFree(at: CUdeviceptr, bytes: usize) -> CUresult;
    cuMemAddressReserve(at: *mut CUdeviceptr, bytes: usize, alignment: usize, near: CUdeviceptr,
        flags: c_ulonglong) -> CUresult;
    cuMemCreate(handle: *mut CUmemGenericAllocationHandle, bytes: usize, of: *const CUmemAllocationProp,
        flags: c_ulonglong) -> CUresult;
    cuMemGetAllocationGranularity(granularity: *mut usize, of: *const CUmemAllocationProp,
        option: CUmemAllocationGranularity_flags) -> CUresult;
    cuMemMap(at: CUdeviceptr, bytes: usize, offset: usize, handle: CUmemGenericAllocationHandle,
        flags: c_ulonglong) -> CUresult;
    cuMemRelease(handle: CUmemGenericAllocationHandle) -> CUresult;
    cuMemSetAccess(at: CUdeviceptr, bytes: usize, access: *const CUmemAccessDesc, count: usize) -> CUresult;
    cuMemUnmap(at: CUdeviceptr, bytes: usize) -> CUresult;
}

// These copy device memory of other parts of the program; stand-ins for a driver may lack them.
functions! { Foreign:
    cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) -> CUresult;
    cuPointerGetAttribute(value: *mut c_void, which: CUpointer_attribute, at: CUdeviceptr) -> CUresult;
}
