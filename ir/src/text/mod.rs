//! The text form (`.lms`): ONNX's textual syntax plus result types, places, and the edges that ONNX lacks.
//!
//! ```text
//! <opset: "" = 17, "com.microsoft" = 1>
//! step (float[64,256] x, float[256,256] w) => (float[64,256] y)
//! <float[] one = {1.0}>
//! {
//!    [n1] float[64,256] h = Gemm<transB = 1>(x, w)
//!    [out_h] float[64,256]@host h_host = ai.lmsc.SwapOut(h)
//!    [n2] float[64,256] y = Relu(h) after [out_h]
//! }
//! ```
//!
//! A node's line ends with those of the following that apply: `captures (values)`, `updates (variable as result, variable)`,
//! `recomputes [node]`, `workspace BYTES@device:OFFSET`, `seed NUMBER` (for a random node whose seed is not that of its name) and
//! `after [nodes]`. An operand or result that is left out is `_`. A name that is not made of letters, digits and `_ / . : -`, or
//! is a number, is written in quotes. Comments run from `//` to the end of the line.
//!
//! Parsing a printed text and printing it again gives the same text. Tensors of more than sixteen elements are written as their
//! size and digest, so a text holds everything that passes read, but not the weights.

mod lex;
mod parse;
mod print;

pub use lex::ParseError;
pub use print::PrintOptions;

use crate::Graph;

impl Graph {
    /// The graph's text form, one node per line.
    pub fn to_text(&self) -> String {
        print::graph(self)
    }

    /// The text form for people: long signatures are wrapped, and the layout may elide items of lists and add comments.
    pub fn to_readable(&self, layout: &PrintOptions) -> String {
        print::readable(self, layout)
    }

    /// The graph that the text describes.
    ///
    /// The text may break the graph's invariants; use [`crate::verify`] to check them.
    ///
    /// # Errors
    /// [`ParseError`] with line and column, if the text does not follow the grammar.
    ///
    /// ```
    /// let text = "g (float[2] x) => (float[2] y)\n{\n   [a] float[2] y = Relu(x)\n}\n";
    /// assert_eq!(lmsc_ir::Graph::parse(text).unwrap().to_text(), text);
    /// ```
    pub fn parse(text: &str) -> Result<Graph, ParseError> {
        parse::graph(text)
    }
}

/// Words that may follow a node's operands, and the placeholder; an equal name is quoted.
const RESERVED: &[&str] = &["after", "captures", "recomputes", "updates", "as", "_"];

/// Whether the character may stand in a name without quotes.
fn is_name_char(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'/' | b'.' | b':' | b'-')
}

/// Whether a name needs no quotes.
fn is_bare(name: &str) -> bool {
    let first = name.as_bytes().first();
    first.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, b'_' | b'/'))
        && name.bytes().all(is_name_char)
        && !name.contains("//")
        && !RESERVED.contains(&name)
}

#[cfg(test)]
mod tests;
