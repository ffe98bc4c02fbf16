//! The exceptions: one type for each family of errors, and a base of them.

use lmsc::Error as Fault;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

create_exception!(lmsc, Error, PyException, "What lmsc raises; the families derive from it.");
create_exception!(
    lmsc,
    InputError,
    Error,
    "The model, a file or an argument is at fault; the message names it."
);
create_exception!(
    lmsc,
    Refusal,
    Error,
    "The answer is no: the step does not fit, two models differ, or a device fails or is missing."
);
create_exception!(lmsc, InternalError, Error, "lmsc is at fault: please report it, with the model.");

/// Adds the types to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("InputError", py.get_type::<InputError>())?;
    let refusal = py.get_type::<Refusal>();
    // What a refusal of a budget knows besides its message; None where it does not.
    for name in ["node", "needed", "budget", "smallest_budget"] {
        refusal.setattr(name, py.None())?;
    }
    module.add("Refusal", refusal)?;
    module.add("InternalError", py.get_type::<InternalError>())
}

/// The exception for an error of the library.
pub(crate) fn raised(error: &Fault) -> PyErr {
    let message = error.to_string();
    match error {
        Fault::No(_) | Fault::HostIsFull(_) | Fault::NoAsJson(_) => Refusal::new_err(message),
        Fault::Input(_) | Fault::Given(_) => InputError::new_err(message),
        Fault::Interrupted(_) => PyKeyboardInterrupt::new_err(message),
        Fault::Ours(_) => InternalError::new_err(message),
    }
}

/// The exception for a panic with this payload.
pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> PyErr {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let why = text.unwrap_or("it does not say why");
    InternalError::new_err(format!(
        "lmsc has panicked: {why}\nThis is a bug of lmsc.\nhelp: report it with the model"
    ))
}
