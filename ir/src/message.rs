//! A message in parts, with the one place that joins them.

use std::fmt;

/// A message in parts: the fault, further facts about it, and advice. Its `Display` joins them.
///
/// ```
/// let message = lmsc_ir::Message::new("a.onnx is empty").with_help("export the model again");
/// assert_eq!(message.to_string(), "a.onnx is empty\nhelp: export the model again");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The fault; it may have several lines.
    pub text: String,
    /// Further facts, whole sentences.
    pub facts: Vec<String>,
    /// The remedies, each for itself.
    pub helps: Vec<String>,
}

impl Message {
    /// The fault alone.
    pub fn new(text: impl Into<String>) -> Message {
        Message { text: text.into(), ..Message::default() }
    }

    /// The same with a further fact.
    #[must_use]
    pub fn with_fact(mut self, fact: impl fmt::Display) -> Message {
        self.facts.push(fact.to_string());
        self
    }

    /// The same with an advice, after those that it has.
    #[must_use]
    pub fn with_help(mut self, help: impl fmt::Display) -> Message {
        self.helps.push(help.to_string());
        self
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.facts.iter().try_for_each(|fact| write!(f, "\n{fact}"))?;
        self.helps.iter().try_for_each(|help| write!(f, "\nhelp: {help}"))
    }
}

impl From<String> for Message {
    fn from(text: String) -> Message {
        Message::new(text)
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Message {
        Message::new(text)
    }
}

/// An error whose `Display` states the fault, with remedies.
pub trait Advice: fmt::Display {
    /// The remedies, each once.
    fn helps(&self) -> Vec<String>;

    /// The error as a message.
    fn message(&self) -> Message {
        Message { text: self.to_string(), facts: Vec::new(), helps: self.helps() }
    }
}
