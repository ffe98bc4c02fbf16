//! `lmsc`, the Large Model Support compiler.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(lmsc::cli::execute(std::env::args_os()))
}
