//! Products of matrices by cuBLAS, where its library is found. Where it is not, own kernels do them: a plan holds for both.
//!
//! What a product needs besides its matrices is part of the plan: the library is given that, and nothing else, before each
//! call, and then, by NVIDIA's description, allocates nothing, written down as a graph or not. What it holds for itself from
//! the time it is opened, its code and a workspace that is not used, lies outside the arena, as what the driver holds does.

use std::ffi::c_void;
use std::ptr::{from_ref, null_mut};

use cudarc::cublas::sys::{
    self, cublasAtomicsMode_t, cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasOperation_t,
    cublasStatus_t, cudaDataType,
};
use lmsc_ir::program::Stream;

use super::driver::Gpu;
use super::library;
use super::recipe::{Factor, Float, Product};
use super::session::Precision;

/// The versions of the library that have all that is called here, the newest first.
const VERSIONS: [u32; 2] = [13, 12];

/// What the library's answer means, with what was asked.
fn check(what: &str, status: cublasStatus_t) -> Result<(), String> {
    match status {
        cublasStatus_t::CUBLAS_STATUS_SUCCESS => Ok(()),
        status => Err(format!("{what}: {status:?}")),
    }
}

/// The library on a device, whose products are behind what computes.
pub(super) struct Blas {
    handle: cublasHandle_t,
    precision: Precision,
    version: i32,
}

impl Blas {
    /// The library on this device, whose context is that of this thread; it may round what it multiplies to this.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(super) fn open(gpu: &Gpu, precision: Precision) -> Result<Blas, String> {
        let is_found = VERSIONS.iter().any(|version| {
            // Asked for by the other one, it would be looked for in the loader's places alone.
            _ = library::find(&[&format!("libcublasLt.so.{version}")]);
            library::find(&[&format!("libcublas.so.{version}")]).is_ok()
        });
        // SAFETY: it opens libraries by name, of which one is known now.
        if !is_found || !unsafe { sys::is_culib_present() } {
            return Err("cuBLAS is not found".to_owned());
        }
        let mut blas = Blas { handle: null_mut(), precision, version: 0 };
        // SAFETY: the handle is there to be written.
        check("cublasCreate", unsafe { sys::cublasCreate_v2(&mut blas.handle) })?;
        let stream = gpu.stream(Stream::Compute).cast();
        // SAFETY: handle and stream are there, and the library goes before the stream does.
        check("cublasSetStream", unsafe { sys::cublasSetStream_v2(blas.handle, stream) })?;
        let none = cublasAtomicsMode_t::CUBLAS_ATOMICS_NOT_ALLOWED;
        // SAFETY: the handle is there.
        check("cublasSetAtomicsMode", unsafe { sys::cublasSetAtomicsMode(blas.handle, none) })?;
        // SAFETY: the handle is there, and the number is there to be written.
        check("cublasGetVersion", unsafe { sys::cublasGetVersion_v2(blas.handle, &mut blas.version) })?;
        Ok(blas)
    }

    /// Its name and version.
    pub(super) fn name(&self) -> String {
        format!("cuBLAS {}.{}.{}", self.version / 10_000, self.version / 100 % 100, self.version % 100)
    }

    /// Multiplies once what computes has come so far.
    ///
    /// # Safety
    /// The matrices and the workspace are on the device, as large as the product says, and stay there until it is done;
    /// the workspace is nobody else's until then.
    pub(super) unsafe fn multiply(&self, product: &Product<u64>) -> Result<(), String> {
        let algorithm = cublasGemmAlgo_t::CUBLAS_GEMM_DFALT;
        let Product { m, n, k, left, right, out, batch, factors, stored, .. } = *product;
        let kind = |float| match float {
            Float::F32 => cudaDataType::CUDA_R_32F,
            Float::F16 => cudaDataType::CUDA_R_16F,
            Float::Bf16 => cudaDataType::CUDA_R_16BF,
        };
        let (factors_are, out_is) = (kind(factors), kind(stored));
        // Products of short floats are exact.
        let sums = match (factors, self.precision) {
            (Float::F32, Precision::Tf32) => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            (Float::F32, Precision::Bf16) => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_16BF,
            (Float::F32, Precision::F16) => cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_16F,
            _ => cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let turn = |factor: Factor<u64>| match factor.transposed {
            true => cublasOperation_t::CUBLAS_OP_T,
            false => cublasOperation_t::CUBLAS_OP_N,
        };
        let at = |address: u64| address as *mut c_void;
        let [alpha, beta] = [&product.alpha, &product.beta].map(|number| from_ref(number).cast::<c_void>());
        let (room, bytes) = (at(product.workspace), product.workspace_bytes as usize);
        // SAFETY: as the caller promises. The stream stays the one that was set: to set one would take this away again.
        check("cublasSetWorkspace", unsafe { sys::cublasSetWorkspace_v2(self.handle, room, bytes) })?;
        #[rustfmt::skip]
        let done = match batch {
            // SAFETY: as the caller promises; alpha and beta are read before this returns.
            1 => unsafe {
                sys::cublasGemmEx(
                    self.handle, turn(left), turn(right), m, n, k,
                    alpha, at(left.at), factors_are, left.leading, at(right.at), factors_are, right.leading,
                    beta, at(out.at), out_is, out.leading, sums, algorithm,
                )
            },
            // SAFETY: as above.
            _ => unsafe {
                sys::cublasGemmStridedBatchedEx(
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
            // SAFETY: it was created, and nothing is asked of it any more.
            _ = unsafe { sys::cublasDestroy_v2(self.handle) };
        }
    }
}
