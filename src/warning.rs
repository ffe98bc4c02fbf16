//! Warnings: faults that can be done without, with the codes that errors have.

use std::fmt::{self, Display};
use std::io::Write;

use lmsc_ir::words;
use serde::Serialize;

use crate::{Code, Error, term};

/// A fault of a file that does not prevent its use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Warning {
    #[serde(serialize_with = "number")]
    #[cfg_attr(test, schemars(with = "String"))]
    code: Code,
    message: String,
}

fn number<S: serde::Serializer>(code: &Code, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(code.number())
}

impl Warning {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Warning {
        Warning { code, message: message.into() }
    }

    /// The stable code, which `lmsc explain-error` explains.
    pub fn code(&self) -> Code {
        self.code
    }

    /// The sentence.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Prints warnings to standard error.
///
/// # Errors
/// With `--deny warnings`, the warnings as an error with the code of the first.
pub(crate) fn warn(warnings: &[Warning]) -> Result<(), Error> {
    if let (Some(first), true) = (warnings.first(), term::denies_warnings()) {
        let messages: Vec<&str> = warnings.iter().map(Warning::message).collect();
        return Err(Error::new(first.code, messages.join("\n"))
            .with_help("it is a warning, which --deny warnings makes an error"));
    }
    let mut err = std::io::stderr().lock();
    for warning in warnings.iter().filter(|_| !term::is_quiet()) {
        // A closed standard error does not stop the command.
        let message = words::shown(&warning.message);
        _ = writeln!(err, "{} {message}", term::warning(warning.code.number()));
    }
    Ok(())
}
