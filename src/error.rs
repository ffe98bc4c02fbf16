//! The error of a command: a code, a message in its parts, and the numbers of a refused budget.

use std::fmt::{self, Display};
use std::io::{self, Write};
use std::path::Path;

use lmsc_ir::{Advice, Message, words};
use lmsc_onnx::file::cannot;
use lmsc_passes::PassError;
use lmsc_plan::Refusal;
use serde::Serialize;

use crate::codes::{Code, ErrorKind};

/// The error of a command. Its `Display` is the message of [`Error::message`].
#[derive(Debug)]
pub struct Error(Box<Parts>);

#[derive(Debug)]
struct Parts {
    code: Code,
    what: What,
    /// With `--json`, the negative answer, which belongs on standard output.
    answer: Option<String>,
    /// For a given plan that is not carried out: the fault, without the file's name.
    fault: Option<String>,
}

#[derive(Debug)]
enum What {
    Message(Message),
    Refusal(Refusal),
}

/// An error as JSON.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ErrorAnswer<'a> {
    /// Version of this format.
    format: u32,
    error: ErrorFacts<'a>,
}

/// An error in its parts.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ErrorFacts<'a> {
    /// Its code, as `LMS0101`.
    code: &'static str,
    /// The kind that decides the exit status.
    kind: &'static str,
    message: String,
    /// Of a refused budget: the node at which it does not suffice.
    node: Option<&'a str>,
    /// The bytes that the node needs.
    needed: Option<u64>,
    budget: Option<u64>,
    /// The smallest budget that any of the ways below reaches.
    smallest_budget: Option<u64>,
    smallest: Vec<BudgetFacts>,
    /// Further sentences.
    facts: Vec<String>,
    /// Advice.
    helps: Vec<String>,
}

/// The smallest budget of one kind of plan.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BudgetFacts {
    bytes: u64,
    /// The options that make such plans, if the call needs others.
    option: Option<String>,
}

impl Error {
    /// An error with this code and message.
    pub(crate) fn new(code: Code, message: impl Into<Message>) -> Error {
        Error(Box::new(Parts { code, what: What::Message(message.into()), answer: None, fault: None }))
    }

    /// A fault of lmsc.
    pub(crate) fn ours(message: impl Into<Message>) -> Error {
        let help = "report it with the model or, smaller, with the text of `lmsc opt MODEL`";
        Error::new(Code::Bug, message.into().with_fact("This is a bug of lmsc.").with_help(help))
    }

    /// The error of a negative answer, with the answer as JSON.
    pub(crate) fn with_answer(mut self, answer: String) -> Error {
        self.0.answer = Some(answer);
        self
    }

    /// A fault of the file at this path.
    pub(crate) fn in_file(code: Code, path: &Path, problem: impl Display) -> Error {
        Error::new(code, format!("{}: {problem}", called(path)))
    }

    /// A fault of the file at this path, with the library's advice.
    pub(crate) fn of_file(code: Code, path: &Path, problem: &impl Advice) -> Error {
        let message = problem.message();
        Error::new(code, Message { text: format!("{}: {}", called(path), message.text), ..message })
    }

    /// The file at this path cannot be read.
    pub(crate) fn reading(path: &Path, error: &io::Error) -> Error {
        Error::new(Code::File, cannot("read", &called(path), error))
    }

    /// The file at this path cannot be written.
    pub(crate) fn writing(path: &Path, error: &io::Error) -> Error {
        if path == Path::new("-") {
            Error::new(Code::File, cannot("write", "standard output", error))
        } else {
            Error::new(Code::File, cannot("write", &called(path), error))
        }
    }

    /// The stable code, which `lmsc explain-error` explains.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The family.
    pub fn kind(&self) -> ErrorKind {
        self.0.code.kind()
    }

    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        match self.kind() {
            ErrorKind::Refusal => 1,
            ErrorKind::Input => 2,
            ErrorKind::Interrupted => 130,
            ErrorKind::Internal => 101,
        }
    }

    /// The message: text, further facts, and advice.
    pub fn message(&self) -> Message {
        match &self.0.what {
            What::Message(message) => message.clone(),
            What::Refusal(refusal) => refusal.message(),
        }
    }

    /// The numbers of a refused budget.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &self.0.what {
            What::Refusal(refusal) => Some(refusal),
            What::Message(_) => None,
        }
    }

    /// The negative answer as JSON, if the call requested JSON.
    pub(crate) fn answer(&self) -> Option<&str> {
        self.0.answer.as_deref()
    }

    /// For a given plan that is not carried out: the fault, without the file's name.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.0.fault.as_deref()
    }

    /// The error as JSON, in the format that docs/formats.md describes.
    pub fn to_json(&self) -> String {
        let Message { text, facts, helps } = self.message();
        let refusal = self.refusal();
        let smallest = refusal.iter().flat_map(|refusal| &refusal.smallest);
        let smallest =
            smallest.map(|found| BudgetFacts { bytes: found.bytes.0, option: found.reach.options() });
        let error = ErrorFacts {
            code: self.code().number(),
            kind: self.kind().name(),
            message: text,
            node: refusal.and_then(|refusal| refusal.node.as_deref()),
            needed: refusal.and_then(|refusal| refusal.needed).map(|bytes| bytes.0),
            budget: refusal.map(|refusal| refusal.budget.0),
            smallest_budget: refusal.and_then(Refusal::smallest_budget).map(|found| found.bytes.0),
            smallest: smallest.collect(),
            facts,
            helps,
        };
        serde_json::to_string_pretty(&ErrorAnswer { format: 1, error }).expect("it is JSON")
    }

    /// The error with its refusal changed; other errors stay as they are.
    pub(crate) fn map_refusal(mut self, change: impl FnOnce(Refusal) -> Refusal) -> Error {
        if let What::Refusal(refusal) = self.0.what {
            self.0.what = What::Refusal(change(refusal));
        }
        self
    }

    /// The error with further advice.
    pub(crate) fn with_help(mut self, help: impl Display) -> Error {
        match &mut self.0.what {
            What::Message(message) => message.helps.push(help.to_string()),
            What::Refusal(refusal) => refusal.helps.push(help.to_string()),
        }
        self
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&words::shown(&self.message().to_string()))
    }
}

impl std::error::Error for Error {}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        let code = Code::of(&refusal.cause);
        Error(Box::new(Parts { code, what: What::Refusal(refusal), answer: None, fault: None }))
    }
}

impl From<PassError> for Error {
    fn from(error: PassError) -> Error {
        match error {
            PassError::Refused(refusal) => Error::from(*refusal),
            PassError::Call(message) => Error::new(Code::Option, message),
            PassError::Given(not_given) => {
                if not_given.is_unreadable {
                    return Error::new(Code::Malformed, not_given.message);
                }
                let mut error = Error::new(Code::GivenPlan, not_given.message);
                error.0.fault = Some(not_given.fault);
                error
            }
            PassError::Broke { ref violations, .. } => {
                let helps = violations.helps();
                Error::ours(Message { helps, ..Message::new(error.to_string()) })
            }
            PassError::Ours { .. } => Error::ours(error.to_string()),
        }
    }
}

/// Prints a note to standard error; the command goes on.
pub(crate) fn note(message: impl Display) {
    // A closed standard error does not stop the command.
    if !crate::term::is_quiet() {
        _ = writeln!(io::stderr(), "{} {}", crate::term::note(), words::shown(&message.to_string()));
    }
}

/// The name of the input at this path in messages.
pub(crate) fn called(path: &Path) -> String {
    if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() }
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
        let broke = PassError::Broke { pass: "swap".to_owned(), violations };
        let error = Error::from(broke);
        assert_eq!(
            (error.to_string().as_str(), error.exit_code()),
            (
                "after pass swap the graph is not valid any more:\n  \
                 I2: `b` (Relu) needs `a` (Relu), which comes later\n\
                 This is a bug of lmsc.\n\
                 help: invariants of every graph:\n  \
                 I2: edges make no cycle, and the nodes stand in an order that follows the edges\n\
                 help: report it with the model or, smaller, with the text of `lmsc opt MODEL`",
                101
            )
        );
    }
}
