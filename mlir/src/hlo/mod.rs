//! StableHLO as `jax.export` writes it, read into the graph.
//!
//! `parse.rs` reads the text; `import.rs` runs through its functions as an interpreter whose values are tensors of the graph
//! ([`term`]): calls are inlined, loops with known counts unrolled, and integers that are known, such as a loop's counter, are
//! computed at once. `rules` has the operators: each becomes operators of ONNX that compute the same.
//!
//! A broadcast is no node by itself: the value stays small until an operator needs it whole. A buffer to which a loop adds a row
//! in each turn is the list of these rows. So a scanned network becomes the graph of the network without scan.

mod fold;
mod import;
mod parse;
mod rules;
mod state;
mod term;

use lmsc_ir::{Graph, ParseError};

/// A training step that was read from StableHLO.
#[derive(Debug)]
pub struct HloStep {
    /// The graph, without its state.
    pub graph: Graph,
    /// Inputs and the outputs that are their next values.
    pub state: Vec<(String, String)>,
    /// Facts about the state that the caller should know, one sentence each.
    pub notices: Vec<String>,
}

/// Why a text of StableHLO is not read.
#[derive(Debug, thiserror::Error)]
pub enum HloError {
    /// The text is wrong.
    #[error("{0}")]
    Malformed(ParseError),
    /// The text is right, and lmsc has no translation for a part of it.
    #[error("{0}")]
    Unsupported(ParseError),
}

impl HloError {
    /// The place and the sentence.
    pub fn place(&self) -> &ParseError {
        match self {
            HloError::Malformed(error) | HloError::Unsupported(error) => error,
        }
    }
}

pub(crate) fn step(text: &str) -> Result<HloStep, HloError> {
    let module = parse::module(text).map_err(HloError::Malformed)?;
    import::step(&module).map_err(|fault| {
        let before = &text.as_bytes()[..fault.at.min(text.len())];
        let line = 1 + before.iter().filter(|&&c| c == b'\n').count();
        let column = 1 + before.iter().rev().take_while(|&&c| c != b'\n').count();
        let error = ParseError { line, column, message: fault.message };
        if fault.is_unsupported { HloError::Unsupported(error) } else { HloError::Malformed(error) }
    })
}

/// Whether the text is a module of StableHLO, and not of the form that lmsc writes itself: the first operation decides.
pub(crate) fn looks_like(text: &str) -> bool {
    const OURS: &[&str] = &["\"onnx.", "\"lms.", "lms.version"];
    const THEIRS: &[&str] = &["stablehlo.", "chlo.", "vhlo.", "mhlo.", "module @"];
    let first = |marks: &[&str]| marks.iter().filter_map(|mark| text.find(mark)).min();
    match (first(OURS), first(THEIRS)) {
        (_, None) => text.trim_start().starts_with("#loc"),
        (None, Some(_)) => true,
        (Some(ours), Some(theirs)) => theirs < ours,
    }
}
