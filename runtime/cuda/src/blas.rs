//! Matrix products by cuBLAS, if its library is found. If it is not, own kernels do them: a plan is valid for both.
//!
//! A product's workspace is part of the plan: the library gets that, and nothing else, before each call, and then, by NVIDIA's
//! description, allocates nothing, captured as a graph or not. Its own memory from the time it is opened, namely its code and a
//! workspace that is not used, is outside the arena, like the driver's.

use std::ffi::{c_int, c_longlong, c_void};
use std::ptr::{from_ref, null_mut};

use cudarc::cublas::sys::{
    self, cublasAtomicsMode_t, cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasOperation_t,
    cublasStatus_t, cudaDataType, cudaStream_t,
};
use lmsc_ir::program::Stream;

use super::driver::Gpu;
use super::library::{LibraryFacts, Opened, functions};
use super::precision::Precision;
use super::recipe::{Factor, FloatType, Product};

/// The versions of the library that have all functions called here, the newest first.
const VERSIONS: [u32; 2] = [13, 12];

functions! { Cublas:
    cublasCreate_v2(handle: *mut cublasHandle_t) -> cublasStatus_t;
    cublasDestroy_v2(handle: cublasHandle_t) -> cublasStatus_t;
    cublasGemmEx(handle: cublasHandle_t, turn_a: cublasOperation_t, turn_b: cublasOperation_t, m: c_int, n: c_int,
        k: c_int, alpha: *const c_void, a: *const c_void, of_a: cudaDataType, lda: c_int, b: *const c_void,
        of_b: cudaDataType, ldb: c_int, beta: *const c_void, c: *mut c_void, of_c: cudaDataType, ldc: c_int,
        sums: cublasComputeType_t, algorithm: cublasGemmAlgo_t) -> cublasStatus_t;
    cublasGemmStridedBatchedEx(handle: cublasHandle_t, turn_a: cublasOperation_t, turn_b: cublasOperation_t, m: c_int,
        n: c_int, k: c_int, alpha: *const c_void, a: *const c_void, of_a: cudaDataType, lda: c_int,
        stride_a: c_longlong, b: *const c_void, of_b: cudaDataType, ldb: c_int, stride_b: c_longlong,
        beta: *const c_void, c: *mut c_void, of_c: cudaDataType, ldc: c_int, stride_c: c_longlong, batch: c_int,
        sums: cublasComputeType_t, algorithm: cublasGemmAlgo_t) -> cublasStatus_t;
    cublasGetVersion_v2(handle: cublasHandle_t, version: *mut c_int) -> cublasStatus_t;
    cublasSetAtomicsMode(handle: cublasHandle_t, mode: cublasAtomicsMode_t) -> cublasStatus_t;
    cublasSetStream_v2(handle: cublasHandle_t, stream: cudaStream_t) -> cublasStatus_t;
    cublasSetWorkspace_v2(handle: cublasHandle_t, workspace: *mut c_void, bytes: usize) -> cublasStatus_t;
}

/// Turns a status of the library into a message that names the call.
fn check(what: &str, status: cublasStatus_t) -> Result<(), String> {
    match status {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        status => Err(format!("{what}: {status:?}")),
    }
}

/// The library on a device; its products run on the compute stream.
pub(super) struct Blas {
    api: Cublas,
    handle: cublasHandle_t,
    precision: Precision,
    facts: LibraryFacts,
}

impl Blas {
    /// Opens the library on this device, whose context is current in this thread; `precision` is the precision to which it may
    /// round factors. The newest version that works is used.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn open(gpu: &Gpu, precision: Precision) -> Result<Blas, String> {
        let mut why = None;
        for version in VERSIONS {
            // It depends on this library, which the loader would search for in its own places only.
            _ = Opened::find(&[&format!("libcublasLt.so.{version}")]);
            let Ok(library) = Opened::find(&[&format!("libcublas.so.{version}")]) else { continue };
            match Blas::of(&library, gpu, precision) {
                Ok(blas) => return Ok(blas),
                Err(error) => _ = why.get_or_insert(error),
            }
        }
        Err(why.unwrap_or_else(|| "cuBLAS is not found".to_owned()))
    }

    fn of(library: &Opened, gpu: &Gpu, precision: Precision) -> Result<Blas, String> {
        let path = library.path_of("cublasCreate_v2");
        let api = Cublas::of(library).map_err(|name| format!("{} has no {name}", path.display()))?;
        let facts = LibraryFacts { name: "cuBLAS", version: String::new(), path };
        let mut blas = Blas { api, handle: null_mut(), precision, facts };
        let in_file = |why: String| format!("{why} ({})", blas.facts.path.display());
        // SAFETY: the handle may be written.
        check("cublasCreate", unsafe { blas.api.cublasCreate_v2(&mut blas.handle) }).map_err(in_file)?;
        let stream = gpu.stream(Stream::Compute).cast();
        // SAFETY: handle and stream exist, and the library is closed before the stream.
        check("cublasSetStream", unsafe { blas.api.cublasSetStream_v2(blas.handle, stream) })?;
        let none = cublasAtomicsMode_t::CUBLAS_ATOMICS_NOT_ALLOWED;
        // SAFETY: the handle exists.
        check("cublasSetAtomicsMode", unsafe { blas.api.cublasSetAtomicsMode(blas.handle, none) })?;
        let mut version = 0;
        // SAFETY: the handle exists, and the number may be written.
        check("cublasGetVersion", unsafe { blas.api.cublasGetVersion_v2(blas.handle, &mut version) })?;
        blas.facts.version = format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100);
        Ok(blas)
    }

    /// Its name and version.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.facts.name, self.facts.version)
    }

    /// Its version and path.
    pub(super) fn facts(&self) -> &LibraryFacts {
        &self.facts
    }

    /// Multiplies when the compute stream reaches this point.
    ///
    /// # Safety
    /// The matrices and the workspace are on the device, as large as the product says, and stay allocated until it is done;
    /// nothing else uses the workspace until then.
    pub(super) unsafe fn multiply(&self, product: &Product<u64>) -> Result<(), String> {
        let algorithm = cublasGemmAlgo_t::CUBLAS_GEMM_DFALT;
        let Product { m, n, k, left, right, out, batch, factors, stored, .. } = *product;
        let kind = |float| match float {
            FloatType::F32 => cudaDataType::CUDA_R_32F,
            FloatType::F16 => cudaDataType::CUDA_R_16F,
            FloatType::Bf16 => cudaDataType::CUDA_R_16BF,
        };
        let (factors_are, out_is) = (kind(factors), kind(stored));
        // Products of short floats are exact.
        let sums = match (factors, self.precision) {
            (FloatType::F32, Precision::Tf32) => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            (FloatType::F32, Precision::Bf16) => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_16BF,
            (FloatType::F32, Precision::F16) => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_16F,
            _ => cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let turn = |factor: Factor<u64>| {
            if factor.transposed { cublasOperation_t::CUBLAS_OP_T } else { cublasOperation_t::CUBLAS_OP_N }
        };
        let at = |address: u64| address as *mut c_void;
        let [alpha, beta] = [&product.alpha, &product.beta].map(|number| from_ref(number).cast::<c_void>());
        let (room, bytes) = (at(product.workspace), product.workspace_bytes as usize);
        // SAFETY: as the caller promises. The stream must not be set again: that would reset the workspace.
        check("cublasSetWorkspace", unsafe { self.api.cublasSetWorkspace_v2(self.handle, room, bytes) })?;
        #[rustfmt::skip]
        let done = match batch {
            // SAFETY: as the caller promises; alpha and beta are read before this returns.
            1 => unsafe {
                self.api.cublasGemmEx(
                    self.handle, turn(left), turn(right), m, n, k,
                    alpha, at(left.at), factors_are, left.leading, at(right.at), factors_are, right.leading,
                    beta, at(out.at), out_is, out.leading, sums, algorithm,
                )
            },
            // SAFETY: as above.
            _ => unsafe {
                self.api.cublasGemmStridedBatchedEx(
                    self.handle, turn(left), turn(right), m, n, k,
                    alpha, at(left.at), factors_are, left.leading, left.stride,
                    at(right.at), factors_are, right.leading, right.stride,
                    beta, at(out.at), out_is, out.leading, out.stride, batch, sums, algorithm,
                )
            },
        };
        check(&format!("cublasGemmEx of {batch} × {m} × {n} × {k}"), done)
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it was created, and is not used any more.
            _ = unsafe { self.api.cublasDestroy_v2(self.handle) };
        }
    }
}
