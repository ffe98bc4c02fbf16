//! Kernels that fuse those of each model compile, with the compiler that GPUs get them from.
//!
//! Needs NVRTC, but no GPU; says so where it is not found. With `LMSC_REQUIRE_NVRTC` that is a failure.

#[path = "../runtime/cuda/tests/support/nvrtc.rs"]
mod nvrtc;
mod support;

use std::collections::BTreeSet;

use lmsc_cuda::engines::Engines;
use lmsc_cuda::fused;
use lmsc_ir::program::Checked;
use lmsc_passes::{Lowering, lower};
use nvrtc::compiler;
use support::models::{load, models};

const ARCHITECTURES: [&str; 3] = ["sm_80", "sm_90", "sm_100"];

#[test]
fn fused_kernels_of_models_compile() {
    let Some(compiler) = compiler() else { return };
    let texts: BTreeSet<String> = models()
        .iter()
        .filter_map(|path| {
            let graph = load(path);
            let needed = Engines::none().workspaces(&graph);
            let workspace = |node| needed.get(&node).copied().unwrap_or_default();
            let program = lower(&graph, &Lowering { arena: None, workspace: &workspace }).unwrap();
            fused(&Checked::new(program).unwrap()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        })
        .collect();
    assert!(texts.len() > 20, "{} models have kernels that are fused", texts.len());
    // Each architecture takes its turn.
    let turns = texts.iter().zip(ARCHITECTURES.iter().cycle());
    for (text, architecture) in turns.step_by(lmsc_testing::cases(4, 4, 1)) {
        let image = compiler.fused_image(text, architecture).unwrap_or_else(|e| panic!("{e}"));
        assert!(image.starts_with(b"\x7fELF"), "for {architecture} there is no image");
    }
}
