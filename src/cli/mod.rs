//! The command line: from the arguments to the output and the exit code. Nothing else names clap.

pub(crate) mod args;
mod defaults;
mod execute;
mod files;
mod help;
mod values;

pub use args::*;
pub use execute::{execute, output_of};
