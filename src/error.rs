//! The two families of errors, what the process answers for each, and how they name files.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use lmsc_onnx::file::cannot;

/// Why a command did not do what it was asked for. What to do stands at the end, in lines that begin with `help: `.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The answer is no: exit code 1.
    #[error("{0}")]
    No(String),
    /// The answer is no, since more would have to leave for the host than may: exit code 1.
    #[error("{0}")]
    HostIsFull(String),
    /// The answer is no, in the JSON that was asked for; it belongs on standard output: exit code 1.
    #[error("{0}")]
    NoAsJson(String),
    /// A signal ended it, between two steps: exit code 130, as shells say it of Ctrl-C.
    #[error("{0}")]
    Interrupted(String),
    /// The input or the call is at fault: exit code 2.
    #[error("{0}")]
    Input(String),
    /// A plan that was given does not belong to what it was given for, or is not valid: exit code 2.
    #[error("{0}")]
    Given(String),
    /// lmsc is at fault: exit code 101.
    #[error(
        "{0}\nThis is a bug of lmsc.\nhelp: report it with the model or, smaller, with the text of `lmsc opt MODEL`"
    )]
    Ours(String),
}

impl Error {
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::No(_) | Error::HostIsFull(_) | Error::NoAsJson(_) => 1,
            Error::Input(_) | Error::Given(_) => 2,
            Error::Interrupted(_) => 130,
            Error::Ours(_) => 101,
        }
    }

    /// A fault of the file at this path.
    pub fn in_file(path: &Path, problem: impl Display) -> Error {
        Error::Input(format!("{}: {problem}", called(path)))
    }

    /// The file at this path cannot be read.
    pub fn reading(path: &Path, error: &io::Error) -> Error {
        Error::Input(cannot("read", &called(path), error))
    }

    /// The file at this path cannot be written.
    pub fn writing(path: &Path, error: &io::Error) -> Error {
        match path == Path::new("-") {
            true => Error::Input(cannot("write", "standard output", error)),
            false => Error::Input(cannot("write", &called(path), error)),
        }
    }

    /// A refusal with more to say, before what to do.
    pub(crate) fn with_facts(self, facts: impl Display) -> Error {
        let add = |message: String| match message.split_once("\nhelp: ") {
            Some((message, help)) => format!("{message}\n{facts}\nhelp: {help}"),
            None => format!("{message}\n{facts}"),
        };
        match self {
            Error::No(message) => Error::No(add(message)),
            Error::HostIsFull(message) => Error::HostIsFull(add(message)),
            other => other,
        }
    }

    /// The same with what to do.
    pub(crate) fn with_help(self, help: impl Display) -> Error {
        let add = |message: String| format!("{message}\nhelp: {help}");
        match self {
            Error::No(message) => Error::No(add(message)),
            Error::HostIsFull(message) => Error::HostIsFull(add(message)),
            Error::Input(message) => Error::Input(add(message)),
            Error::Given(message) => Error::Given(add(message)),
            Error::Interrupted(message) => Error::Interrupted(add(message)),
            other => other,
        }
    }
}

/// Says on standard error what is to be known, though it keeps nothing from being done.
pub(crate) fn note(message: impl Display) {
    // A closed standard error is nothing to die of.
    if !crate::term::is_quiet() {
        _ = writeln!(io::stderr(), "{} {message}", crate::term::note());
    }
}

/// What messages call the input at this path.
pub(crate) fn called(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
}

impl From<lmsc_passes::PassError> for Error {
    fn from(error: lmsc_passes::PassError) -> Error {
        use lmsc_passes::PassError;
        match error {
            PassError::DoesNotFit(message) => Error::No(message),
            PassError::HostIsFull(message) => Error::HostIsFull(message),
            PassError::Call(message) => Error::Input(message),
            PassError::Given(message) => Error::Given(message),
            bug @ (PassError::Broke { .. } | PassError::Ours { .. }) => Error::Ours(bug.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_faults_say_so_and_where_to_go() {
        let violations = lmsc_ir::Violations(vec![lmsc_ir::Violation {
            invariant: lmsc_ir::Invariant::I2,
            message: "`b` (Relu) needs `a` (Relu), which comes later".to_owned(),
        }]);
        let broke = lmsc_passes::PassError::Broke { pass: "swap".to_owned(), violations };
        let error = Error::from(broke);
        assert_eq!(
            (error.to_string().as_str(), error.exit_code()),
            (
                "after pass swap the graph is not valid any more:\n  \
                 I2: `b` (Relu) needs `a` (Relu), which comes later\n\
                 help: invariants of every graph:\n  \
                 I2: edges make no cycle, and the nodes stand in an order that follows the edges\n\
                 This is a bug of lmsc.\n\
                 help: report it with the model or, smaller, with the text of `lmsc opt MODEL`",
                101
            )
        );
    }
}
