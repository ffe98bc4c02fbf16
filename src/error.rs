//! The two families of errors, and what the process answers for each.

use std::path::Path;

/// Why a command did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The answer is no: exit code 1.
    #[error("{0}")]
    No(String),
    /// The answer is no, in the JSON that was asked for; it belongs on standard output: exit code 1.
    #[error("{0}")]
    NoAsJson(String),
    /// The input or the call is at fault: exit code 2.
    #[error("{0}")]
    Input(String),
    /// lmsc is at fault: exit code 101.
    #[error(
        "{0}\nThis is a bug of lmsc. Please report it with the model or, smaller, with the text of `lmsc opt MODEL`."
    )]
    Ours(String),
}

impl Error {
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::No(_) | Error::NoAsJson(_) => 1,
            Error::Input(_) => 2,
            Error::Ours(_) => 101,
        }
    }

    /// A fault of the file at this path.
    pub fn in_file(path: &Path, problem: impl std::fmt::Display) -> Error {
        Error::Input(format!("{}: {problem}", path.display()))
    }
}

impl From<lmsc_passes::PassError> for Error {
    fn from(error: lmsc_passes::PassError) -> Error {
        use lmsc_passes::PassError;
        match error {
            PassError::DoesNotFit(message) => Error::No(message),
            PassError::Call(message) => Error::Input(message),
            bug @ (PassError::Broke { .. } | PassError::Ours { .. }) => Error::Ours(bug.to_string()),
        }
    }
}
