//! The exceptions: one type for each family of errors, and a base of them.

use lmsc::{Code, Error as Fault, ErrorKind};
use lmsc_ir::Message;
use pyo3::create_exception;
use pyo3::exceptions::{PyBaseException, PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

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
    let error = py.get_type::<Error>();
    error.setattr("code", py.None())?;
    error.setattr("helps", PyTuple::empty(py))?;
    module.add("Error", error)?;
    module.add("InputError", py.get_type::<InputError>())?;
    let refusal = py.get_type::<Refusal>();
    // The facts of a refusal of a budget; None where they are not known.
    for name in ["node", "needed", "budget", "smallest_budget"] {
        refusal.setattr(name, py.None())?;
    }
    module.add("Refusal", refusal)?;
    let internal = py.get_type::<InternalError>();
    internal.setattr("code", Code::Bug.number())?;
    module.add("InternalError", internal)
}

/// The exception for an error of the library.
pub(crate) fn raised(error: &Fault) -> PyErr {
    let message = error.to_string();
    let raised = match error.kind() {
        ErrorKind::Refusal => Refusal::new_err(message),
        ErrorKind::Input => InputError::new_err(message),
        ErrorKind::Interrupted => return PyKeyboardInterrupt::new_err(message),
        ErrorKind::Internal => InternalError::new_err(message),
    };
    match Python::attach(|py| described(raised.value(py), error)) {
        Ok(()) => raised,
        Err(other) => other,
    }
}

/// Gives the exception the error's code and advice, and of a refusal of a budget its facts.
fn described(exception: &Bound<'_, PyBaseException>, error: &Fault) -> PyResult<()> {
    exception.setattr("code", error.code().number())?;
    exception.setattr("helps", PyTuple::new(exception.py(), error.message().helps)?)?;
    let Some(refusal) = error.refusal() else { return Ok(()) };
    exception.setattr("node", refusal.node.as_deref())?;
    exception.setattr("needed", refusal.needed.map(|bytes| bytes.0))?;
    exception.setattr("budget", refusal.budget.0)?;
    exception.setattr("smallest_budget", refusal.smallest_budget().map(|found| found.bytes.0))
}

/// The exception for a panic with this payload.
pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> PyErr {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let why = text.unwrap_or("it does not say why");
    let message = Message::new(format!("lmsc has panicked: {why}")).with_fact("This is a bug of lmsc.");
    InternalError::new_err(message.with_help("report it with the model").to_string())
}
