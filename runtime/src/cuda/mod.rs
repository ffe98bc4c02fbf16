//! Kernels of CUDA devices: what an operator comes to as launches of the kernels in `runtime/kernels`.
//!
//! A [`Recipe`] is prepared from the same [`Spec`](crate::Spec) as a kernel of the host, and after it: what the host
//! refuses is refused here with the same words. It names kernels, blocks and arguments; who has addresses makes launches
//! of it. The sources are compiled by NVRTC for a device, and by a C++ compiler, through a shim, for tests.
//!
//! `make` has one file a family of operators, `table` one row an operator.

mod make;
mod recipe;
mod table;

pub use recipe::{Address, Arg, At, Call, Recipe};
pub use table::{operators, prepare};

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
}

macro_rules! sources {
    ($($name:literal $has_rare:literal,)*) => {
        &[$(Source { name: $name, text: include_str!(concat!("../../kernels/", $name, ".cu")), has_rare: $has_rare },)*]
    };
}

/// Every file of kernels.
pub const SOURCES: &[Source] = sources![
    "each" true,
    "index" true,
    "move" false,
    "normalize" false,
    "optimizer" false,
    "pool" false,
    "product" false,
    "random" false,
    "reduce" true,
    "rnn" false,
];
