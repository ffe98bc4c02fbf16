//! Why a model is no graph.

use std::fmt;

use super::bodies::MOST_DEPTH;
use crate::file::ExternalError;
use crate::shapes::ShapeError;

/// One reason why a model is no graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The model has no graph.
    #[error("the model holds no graph; export it again")]
    NoGraph,
    /// A symbolic extent of an input is not bound.
    #[error(
        "input `{input}`: extent {axis} is `{symbol}`, which has no value; bind it, for example with --dim {symbol}=32"
    )]
    UnboundDim {
        /// The input.
        input: String,
        /// The axis.
        axis: usize,
        /// The dimension's name.
        symbol: String,
    },
    /// An extent of an input has neither a number nor a name.
    #[error(
        "input `{input}`: extent {axis} is not known; give it a number or a name when exporting (a name can be bound with --dim)"
    )]
    UnknownDim {
        /// The input.
        input: String,
        /// The axis.
        axis: usize,
    },
    /// A binding of a symbol that no input has.
    #[error("--dim {symbol}: no input has a dimension of this name; {}", symbols(there_are))]
    NoSuchDim {
        /// The name given.
        symbol: String,
        /// The names there are.
        there_are: Vec<String>,
    },
    /// An input is not a tensor of known rank.
    #[error("input `{input}` is {what}")]
    Input {
        /// The input.
        input: String,
        /// What it is, and what to do.
        what: String,
    },
    /// A constant's bytes are not what its type says.
    #[error("{place} `{tensor}`: {reason}; export the model again")]
    Tensor {
        /// What kind of thing holds the tensor.
        place: String,
        /// Its name.
        tensor: String,
        /// What is wrong.
        reason: String,
    },
    /// A constant's bytes are in a file that cannot be referred to.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// A value is defined twice (I1).
    #[error("value `{value}` is defined twice, by {first} and by {second}; a value has one definition (I1)")]
    DefinedTwice {
        /// The value.
        value: String,
        /// The first definition.
        first: String,
        /// The second one.
        second: String,
    },
    /// A value is read but never defined (I1).
    #[error(
        "value `{value}`, which {reader} reads, is defined by no input, initializer or node (I1); \
         if it was cut out of a larger model, make it a graph input"
    )]
    Undefined {
        /// The value.
        value: String,
        /// Who reads it.
        reader: String,
    },
    /// Data and control edges make a cycle (I2).
    #[error("nodes depend on one another in a cycle (I2): {}", nodes.join(" -> "))]
    Cycle {
        /// The nodes, first one repeated.
        nodes: Vec<String>,
    },
    /// An attribute cannot be read.
    #[error("node `{node}` ({op}), attribute `{attribute}`: {reason}; export the model again")]
    Attribute {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// The attribute.
        attribute: String,
        /// What is wrong.
        reason: String,
    },
    /// Metadata of ours is not as we write it.
    #[error(
        "node `{node}` ({op}), metadata `{key}`: {reason}; let lmsc write the file again, or remove the entry"
    )]
    Metadata {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// The metadata's key.
        key: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A function of ours is not as we write it.
    #[error(
        "function `ai.lmsc::{function}` computes more than a copy of its operand; let lmsc write the file again"
    )]
    NoCopy {
        /// The function.
        function: String,
    },
    /// Subgraphs stand in subgraphs too deeply.
    #[error("node `{node}` ({op}): subgraphs stand more than {} deep in one another", MOST_DEPTH)]
    TooDeep {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
    },
    /// Sequences hold too much.
    #[error(
        "node `{node}` ({op}): the graph's sequences hold more than four million tensors; are they needed?"
    )]
    TooManyElements {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
    },
    /// The type of a result is not known.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// What the file says about an output is not what the value is.
    #[error("output `{output}` is {found}, but the file declares {declared}; correct the output's type")]
    Output {
        /// The output.
        output: String,
        /// Its type.
        found: String,
        /// The declaration.
        declared: String,
    },
}

fn symbols(names: &[String]) -> String {
    match names {
        [] => "the inputs have no symbolic dimensions".to_owned(),
        names => format!("the inputs have {}", names.join(", ")),
    }
}

/// Every reason found why a model is no graph.
#[derive(Debug, thiserror::Error)]
#[error("{name} cannot be imported:{}", Listed(self))]
pub struct ImportErrors {
    /// The model.
    pub name: String,
    /// At least one; no more than [`ImportErrors::MOST`].
    pub errors: Vec<ImportError>,
    /// How many more there are.
    pub more: usize,
}

impl ImportErrors {
    /// The number of errors that are kept.
    pub const MOST: usize = 20;
}

struct Listed<'a>(&'a ImportErrors);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.0.errors {
            write!(f, "\n{error}")?;
        }
        match self.0.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// Errors as they are found.
#[derive(Default)]
pub(super) struct Errors {
    pub(super) list: Vec<ImportError>,
    pub(super) more: usize,
}

impl Errors {
    pub(super) fn push(&mut self, error: impl Into<ImportError>) {
        if self.list.len() < ImportErrors::MOST {
            self.list.push(error.into());
        } else {
            self.more += 1;
        }
    }
}
