//! The compiler that GPUs get their kernels from.

use lmsc_cuda::KernelCompiler;

/// The compiler, which keeps nothing; none where it is not found, which is said, and a failure with `LMSC_REQUIRE_NVRTC`.
#[allow(clippy::print_stdout, reason = "what is skipped is to be seen")]
pub(crate) fn compiler() -> Option<KernelCompiler> {
    match KernelCompiler::new() {
        Ok(compiler) => Some(compiler.with_cache(None)),
        Err(missing) => {
            assert!(
                std::env::var_os("LMSC_REQUIRE_NVRTC").is_none(),
                "LMSC_REQUIRE_NVRTC is set, and {missing}"
            );
            println!("skipped: {missing}");
            None
        }
    }
}
