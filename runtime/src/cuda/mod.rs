//! Kernels of CUDA devices: what an operator comes to as launches of the kernels in `runtime/kernels`.
//!
//! A [`Recipe`] is prepared from the same [`Spec`](crate::Spec) as a kernel of the host, and after it: what the host
//! refuses is refused here with the same words. It names kernels, blocks and arguments; who has addresses makes launches
//! of it. Products of matrices and convolutions are there twice: as kernels, and as what cuBLAS and cuDNN do in their place
//! where they are found (`blas`, `dnn`). The sources are compiled by NVRTC for a device, and by a C++ compiler, through a shim,
//! for tests.
//!
//! `make` has one file a family of operators, `table` one row an operator, `short` makes recipes on short floats of those on `f32`.

#[cfg(feature = "cuda")]
mod blas;
#[cfg(feature = "cuda")]
mod calls;
#[cfg(feature = "cuda")]
mod compile;
mod constants;
#[cfg(feature = "cuda")]
mod dnn;
#[cfg(feature = "cuda")]
mod driver;
#[cfg(feature = "cuda")]
mod facts;
#[cfg(feature = "cuda")]
mod fuse;
#[cfg(feature = "cuda")]
mod launches;
#[cfg(feature = "cuda")]
mod library;
mod make;
#[cfg(feature = "cuda")]
mod measure;
mod recipe;
#[cfg(feature = "cuda")]
mod session;
mod short;
mod table;

#[cfg(feature = "cuda")]
pub use compile::{CompileError, Compiler};
#[cfg(feature = "cuda")]
pub use driver::{OpenError, probe};
#[cfg(feature = "cuda")]
pub use facts::Facts;
#[cfg(feature = "cuda")]
pub use launches::{Kind, Listed, launches};
#[cfg(feature = "cuda")]
pub use library::{LibraryFacts, Missing};
#[cfg(feature = "cuda")]
pub use measure::{Copies, Costs};
pub use recipe::{
    Address, Arg, At, Call, Convolution, Each, Factor, Filter, Float, Found, Launch, Product, Reach, Recipe,
    SCRATCH_ALIGNMENT,
};
#[cfg(feature = "cuda")]
pub use session::{Group, Options, Precision, Session, Timed, fused, groups};
pub use table::{operators, prepare};

use std::collections::BTreeMap;

use lmsc_ir::Bytes;

/// Threads of every block.
pub const BLOCK: u32 = 256;

/// What stands before every source.
pub const PRELUDE: &str = include_str!("../../kernels/prelude.cuh");

/// A file of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name, without `.cu`.
    pub name: &'static str,
    /// What it says, without [`PRELUDE`].
    pub text: &'static str,
    /// Whether it has a part of rarely used kernels, which `RARE` selects.
    pub has_rare: bool,
    /// Whether products and sums may be rounded as one. Where kernels are fused they may not, lest bits differ.
    pub contracts: bool,
}

macro_rules! sources {
    ($($name:literal $has_rare:literal $contracts:literal,)*) => {
        &[$(Source {
            name: $name,
            text: include_str!(concat!("../../kernels/", $name, ".cu")),
            has_rare: $has_rare,
            contracts: $contracts,
        },)*]
    };
}

/// Every file of kernels.
pub const SOURCES: &[Source] = sources![
    "each" true false,
    "index" true true,
    "move" false true,
    "normalize" false true,
    "optimizer" false false,
    "pool" false true,
    "product" false true,
    "random" false true,
    "reduce" true true,
    "rnn" false true,
];

/// The bytes that are good for each node of the graph besides its values while it runs on a CUDA device; zero where it
/// cannot. With less, own kernels do what libraries would.
pub fn workspaces(graph: &lmsc_ir::Graph) -> BTreeMap<lmsc_ir::NodeId, Bytes> {
    workspaces_of(graph, Recipe::workspace)
}

/// The bytes without which nodes of the graph do not run on a CUDA device: what own kernels need.
pub fn least_workspaces(graph: &lmsc_ir::Graph) -> BTreeMap<lmsc_ir::NodeId, Bytes> {
    workspaces_of(graph, Recipe::needed)
}

fn workspaces_of(
    graph: &lmsc_ir::Graph,
    bytes: impl Fn(&Recipe) -> Bytes,
) -> BTreeMap<lmsc_ir::NodeId, Bytes> {
    let needs = |spec: &crate::Spec<'_>, _: &crate::Kernel| {
        prepare(spec).map_or(Bytes::ZERO, |recipe| bytes(&recipe))
    };
    crate::run::kernels::workspaces_by(graph, needs, |_| {})
}

/// The most bytes of a device that the constants of the graph's kernels take besides its values and workspaces. Equal
/// constants are there once, so nodes that run again add none.
pub fn constants(graph: &lmsc_ir::Graph) -> Bytes {
    let seen = std::cell::RefCell::new(constants::Constants::new());
    let needs = |spec: &crate::Spec<'_>, _: &crate::Kernel| {
        _ = prepare(spec).map(|recipe| seen.borrow_mut().add(&recipe.constants));
        Bytes::ZERO
    };
    crate::run::kernels::workspaces_by(graph, needs, |known| _ = seen.borrow_mut().add(known));
    // The arena ends where the last tensor does, and constants begin at a multiple of this.
    Bytes(seen.into_inner().len() + constants::ALIGNMENT)
}
