//! Kernels of CUDA devices: each operator as launches of the kernels in `kernels`.
//!
//! A [`Recipe`] is prepared from the same [`Spec`](lmsc_kernels::Spec) as a kernel of the host, and after it: a node that the host
//! refuses is refused here with the same message. A recipe names kernels, blocks and arguments; with addresses, it becomes
//! launches. Matrix products and convolutions exist twice: as kernels, and as calls of cuBLAS and cuDNN that replace the kernels
//! where the libraries are found (`blas`, `dnn`); `engines` chooses how cuDNN does a convolution, with a device or without. The
//! sources are compiled by NVRTC for a device, and by a C++ compiler, through a shim, for tests.
//!
//! `make` has one file per family of operators, `table` one row per operator, `short` turns recipes on `f32` into recipes on
//! short floats.

mod backend;
mod blas;
mod calls;
mod compile;
mod constants;
mod dnn;
mod driver;
pub mod engines;
mod facts;
mod fuse;
mod launches;
mod library;
mod make;
mod measure;
mod precision;
mod recipe;
mod session;
mod short;
mod table;

pub use compile::{CompileError, KernelCompiler};
pub use constants::{OutOfRange, StepWords};
pub use driver::{OpenError, probe};
pub use facts::Facts;
pub use launches::{CallKind, Listed, launches};
pub use library::{LibraryFacts, Missing};
pub use measure::{Copies, Overheads};
pub use precision::Precision;
pub use recipe::{
    Address, AddressBase, Arg, Call, Convolution, Each, Factor, Filter, FloatType, Found, Indexing,
    KernelLaunch, Product, Recipe, SCRATCH_ALIGNMENT, ValueRange,
};
pub use session::{CudaOptions, CudaSession, Group, fused, groups};
pub use table::{operators, prepare};

use lmsc_ir::Bytes;

/// Threads of every block.
pub const BLOCK: u32 = 256;

/// Source in front of every file of kernels.
pub const PRELUDE: &str = include_str!("../kernels/prelude.cuh");

/// A file of kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSource {
    /// Its name, without `.cu`.
    pub name: &'static str,
    /// Its text, without [`PRELUDE`].
    pub text: &'static str,
    /// Whether it has a part of rarely used kernels, which `RARE` selects.
    pub has_rare: bool,
    /// Whether a product and a sum may be contracted into one rounding. Not where kernels are fused, since bits would differ.
    pub contracts: bool,
}

macro_rules! sources {
    ($($name:literal $has_rare:literal $contracts:literal,)*) => {
        &[$(KernelSource {
            name: $name,
            text: include_str!(concat!("../kernels/", $name, ".cu")),
            has_rare: $has_rare,
            contracts: $contracts,
        },)*]
    };
}

/// Every file of kernels.
pub const SOURCES: &[KernelSource] = sources![
    "attention" false true,
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

/// Maximum number of bytes of a device for the constants of the graph's kernels, besides its values and workspaces. Equal
/// constants are stored once, so recomputed nodes add none.
pub fn constants(graph: &lmsc_ir::Graph) -> Bytes {
    let seen = std::cell::RefCell::new(constants::Constants::new());
    let needs = |spec: &lmsc_kernels::Spec<'_>, _: &lmsc_kernels::Kernel| {
        _ = prepare(spec).map(|recipe| seen.borrow_mut().add(&recipe.constants));
        Bytes::ZERO
    };
    lmsc_runtime::kernels::workspaces_by(graph, needs, |known| _ = seen.borrow_mut().add(known));
    Bytes(seen.into_inner().most())
}
