//! The commands of `lmsc`: each takes the arguments of a call and returns the text to print.

mod bench;
mod calibrate;
mod check;
mod compare;
mod compile;
#[cfg(feature = "papers")]
mod env;
mod explain;
mod explain_error;
mod fit;
mod inspect;
mod launches;
mod learning;
mod offsets;
mod opt;
mod passes;
mod plan;
mod reduce;
mod run;
#[cfg(test)]
mod schemas;
mod survival;
mod sweep;
mod verify;

pub use bench::bench;
pub use calibrate::calibrate;
pub use check::check_file;
pub use compare::compare;
pub use compile::compile;
#[cfg(feature = "papers")]
pub use env::env;
pub use explain::explain;
pub use explain_error::{documented_errors, explain_error};
pub use fit::fit;
pub use inspect::inspect;
pub use launches::launches;
pub use offsets::offsets;
pub use opt::opt;
pub use passes::{list_passes, passes_as_json};
pub use plan::plan;
pub use reduce::reduce;
pub use run::{run, run_compiled};
pub use sweep::sweep;
pub use verify::verify;
