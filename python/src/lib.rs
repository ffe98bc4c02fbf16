//! The extension module `lmsc._lmsc`: the library's compiler and session, and the command, for the Python package `lmsc`.
//!
//! It knows bytes, names and JSON; arrays, dictionaries and exceptions with fields are made of them in Python
//! (`python/lmsc`). Long calls run in threads of their own, without the interpreter's lock, while the calling thread looks for
//! signals. A panic becomes an `InternalError`.

#![forbid(unsafe_code)]

mod compiled;
mod errors;
mod problem;
mod session;
mod worker;

use std::ffi::OsString;

use pyo3::prelude::*;

use errors::raised;
use worker::without_lock;

/// Standard output of the command `lmsc` with these arguments.
#[pyfunction]
fn output_of(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<String> {
    let output = without_lock(py, move || lmsc::cli::output_of(named(arguments)))?;
    output.map_err(|error| raised(&error))
}

/// The names of the built-in targets.
#[pyfunction]
fn target_names() -> Vec<String> {
    lmsc::target_names()
}

/// Runs the command `lmsc` with these arguments, and returns its exit code.
#[pyfunction]
fn execute(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    py.detach(|| worker::main(move || lmsc::cli::execute(named(arguments))))
}

/// The arguments behind the program's name.
fn named(arguments: Vec<OsString>) -> impl Iterator<Item = OsString> {
    std::iter::once("lmsc".into()).chain(arguments)
}

/// The extension module.
#[pymodule]
fn _lmsc(module: &Bound<'_, PyModule>) -> PyResult<()> {
    worker::loaded();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    errors::add(module)?;
    module.add_class::<compiled::Compiled>()?;
    module.add_class::<session::Session>()?;
    module.add_function(wrap_pyfunction!(compiled::compile, module)?)?;
    module.add_function(wrap_pyfunction!(output_of, module)?)?;
    module.add_function(wrap_pyfunction!(problem::plan_problem, module)?)?;
    module.add_function(wrap_pyfunction!(target_names, module)?)?;
    module.add_function(wrap_pyfunction!(execute, module)?)?;
    Ok(())
}
