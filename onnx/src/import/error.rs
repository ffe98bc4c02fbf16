//! Why a model cannot be imported.

use std::borrow::Cow;
use std::fmt;

use lmsc_ir::Advice;

use super::Dims;
use super::limits::{MOST_DEPTH, MOST_SEQUENCE_ELEMENTS};
use super::read::extent_text;
use crate::file::ExternalError;
use crate::shapes::{self, ShapeError};

/// The newest version of ONNX's format whose messages are known.
pub(super) const NEWEST_IR: i64 = 14;

/// A reason why a model cannot be imported. The advice is at the end of the message of [`ImportErrors`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The model has no graph.
    #[error("it holds no graph")]
    NoGraph,
    /// The model imports a domain in a version newer than any that is implemented.
    #[error(
        "it imports version {found} of {}, and lmsc knows versions up to {newest}",
        shapes::spelled(domain)
    )]
    Opset {
        /// The domain.
        domain: String,
        /// The version.
        found: i64,
        /// The newest that is implemented.
        newest: i64,
    },
    /// The model is written in a version of the format newer than any that is implemented.
    #[error("it has IR version {found}, and lmsc knows versions up to {NEWEST_IR}")]
    Ir {
        /// The version.
        found: i64,
    },
    /// A symbolic extent of inputs is not bound.
    #[error("dimension `{symbol}` has no value: {}", listed(inputs, *more, "input"))]
    UnboundDim {
        /// The dimension's name.
        symbol: String,
        /// The first inputs that have it, with their types.
        inputs: Vec<String>,
        /// Number of further inputs that have it.
        more: usize,
    },
    /// An extent of an input is neither a number nor a name.
    #[error("input `{input}`: its extent {axis} {}", unknown(*found))]
    UnknownDim {
        /// The input.
        input: String,
        /// The axis.
        axis: usize,
        /// The extents of the input; none for those that are not known.
        extents: Vec<Option<u64>>,
        /// The negative number given for it, if any.
        found: Option<i64>,
    },
    /// A binding of a symbol that no input has.
    #[error("--dim {symbol}: no input has a dimension of this name; {instead}")]
    NoSuchDim {
        /// The name given.
        symbol: String,
        /// The existing names.
        instead: String,
    },
    /// An option names an input that the graph does not have.
    #[error("{option} {input}: there is no input of this name; {instead}")]
    NoSuchInput {
        /// The option.
        option: &'static str,
        /// The name given.
        input: String,
        /// The existing names.
        instead: String,
    },
    /// Two statements about sizes contradict each other.
    #[error("{first} contradicts {second}")]
    ContradictingSizes {
        /// One of the statements, with the values from which it follows.
        first: String,
        /// The other one.
        second: String,
    },
    /// With the given sizes nothing is computed.
    #[error("the step is empty: no input of a symbolic size has an element, such as {input}")]
    EmptyStep {
        /// The first such input, with its type.
        input: String,
    },
    /// An input is not a tensor of known rank.
    #[error("input `{input}`: {what}")]
    Input {
        /// The input.
        input: String,
        /// The error.
        what: String,
        /// The advice.
        help: &'static str,
    },
    /// A constant's bytes do not match its type.
    #[error("{place} `{tensor}`: {reason}")]
    Tensor {
        /// The kind of object that holds the tensor.
        place: String,
        /// Its name.
        tensor: String,
        /// The error.
        reason: String,
    },
    /// A constant's bytes are in a file that cannot be referred to.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// A value is defined twice (I1).
    #[error("value `{value}` is defined twice, by {first} and by {second}")]
    DefinedTwice {
        /// The value.
        value: String,
        /// The first definition.
        first: String,
        /// The second one.
        second: String,
    },
    /// A value is read but never defined (I1).
    #[error("value `{value}`, which {reader} reads, is defined by no input, initializer or node")]
    Undefined {
        /// The value.
        value: String,
        /// The reader.
        reader: String,
    },
    /// Data and control edges make a cycle (I2).
    #[error("nodes wait for one another in a cycle: {nodes}")]
    Cycle {
        /// The nodes, the first one repeated.
        nodes: String,
    },
    /// A node has no operator.
    #[error("node `{node}` has no operator (its op_type is empty)")]
    NoOperator {
        /// The node.
        node: String,
    },
    /// An attribute cannot be read.
    #[error("node `{node}` ({op}), attribute `{attribute}`: {reason}")]
    Attribute {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// The attribute.
        attribute: String,
        /// The error.
        reason: String,
    },
    /// The seed of a node is not a number.
    #[error("node `{node}` ({op}), metadata `ai.lmsc.seed`: {reason}")]
    Seed {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// The error.
        reason: String,
    },
    /// A function of lmsc's own domain is not as lmsc writes it.
    #[error("function `ai.lmsc::{function}` does not compute what lmsc means by this name")]
    NoCopy {
        /// The function.
        function: String,
    },
    /// A function of lmsc's own domain is called incorrectly.
    #[error("node `{node}` ({op}): {}", call(*operands, attributes))]
    Call {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
        /// Maximum number of operands.
        operands: usize,
        /// Its attributes.
        attributes: &'static [&'static str],
    },
    /// Subgraphs are nested too deeply.
    #[error("node `{node}` ({op}): its subgraphs stand more than {} deep in one another", MOST_DEPTH)]
    TooDeep {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
    },
    /// Sequences have too many elements.
    #[error(
        "node `{node}` ({op}): up to here all sequences together hold more than {} tensors, the most that lmsc takes",
        MOST_SEQUENCE_ELEMENTS
    )]
    TooManyElements {
        /// The node.
        node: String,
        /// Its operator.
        op: String,
    },
    /// The model breaks a rule of ONNX's standard, or uses a part of it that is not implemented.
    #[error("{what}")]
    Standard {
        /// The rule, and where it is broken.
        what: String,
        /// The advice.
        help: &'static str,
    },
    /// The type of a result is not known.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

fn unknown(found: Option<i64>) -> String {
    match found {
        Some(found) => format!("is {found}; extents are at least 0"),
        None => "has neither a number nor a name".to_owned(),
    }
}

fn listed(shown: &[String], more: usize, noun: &str) -> String {
    let shown = shown.join(", ");
    if more > 0 {
        format!("{shown} and {}", lmsc_ir::words::count(more, &format!("more {noun}")))
    } else {
        shown
    }
}

/// The reasons why a model cannot be imported.
#[derive(Debug, thiserror::Error)]
#[error("{name} cannot be imported:{}", Listed(self))]
pub struct ImportErrors {
    /// The model.
    pub name: String,
    /// At least one; no more than [`ImportErrors::MOST`].
    pub errors: Vec<ImportError>,
    /// Number of further errors.
    pub more: usize,
    /// The bindings of symbolic dimensions with which the model was read.
    pub dims: Dims,
}

impl ImportErrors {
    /// Maximum number of errors that are kept.
    pub const MOST: usize = 20;

    fn advice(&self, error: &ImportError) -> Option<Cow<'static, str>> {
        use ShapeError::{Contract, Invalid, TooLarge, Unknown};
        Some(match error {
            ImportError::NoGraph
            | ImportError::Tensor { .. }
            | ImportError::Attribute { .. }
            | ImportError::NoOperator { .. } => "export the model again".into(),
            ImportError::Opset { .. } | ImportError::Ir { .. } => shapes::CONVERT.into(),
            ImportError::Shape(Contract { help, .. }) => (*help).into(),
            ImportError::UnboundDim { .. } => self.example().into(),
            ImportError::UnknownDim { input, extents, .. } => {
                let extent = |known: &Option<u64>| known.map_or("32".to_owned(), |known| known.to_string());
                let extents = extents.iter().map(extent).collect::<Vec<_>>().join("x");
                format!("give the extents of the input, for example --shape {}={extents}", quoted(input)).into()
            }
            ImportError::NoSuchDim { .. } | ImportError::NoSuchInput { .. } => return None,
            ImportError::ContradictingSizes { .. } => {
                "give sizes that go together; those that follow from others can be left out".into()
            }
            ImportError::EmptyStep { .. } => "give sizes of at least 1".into(),
            ImportError::Input { help, .. } | ImportError::Standard { help, .. } => (*help).into(),
            ImportError::External(error) => error.problem.help().into(),
            ImportError::DefinedTwice { .. } => "a value has one definition (I1): give each its own name".into(),
            ImportError::Undefined { .. } => {
                "every value has a definition (I1): if the model was cut out of a larger one, make such values inputs"
                    .into()
            }
            ImportError::Cycle { .. } => "a graph has no cycles (I2): export the model again".into(),
            ImportError::Seed { .. } => "let lmsc write the file again, or remove the entry".into(),
            ImportError::NoCopy { .. } | ImportError::Call { .. } => "let lmsc write the file again".into(),
            ImportError::TooDeep { .. } => "export the model with fewer branches and loops inside one another".into(),
            ImportError::TooManyElements { .. } => "export the model with shorter sequences".into(),
            ImportError::Shape(Invalid { op, .. }) if &**op == "If" => {
                "the branch is not valid: correct it; or, where an input decides that it is never taken, give that input \
                 its value, for example --value rate=16000"
                    .into()
            }
            ImportError::Shape(Invalid { .. } | TooLarge { .. }) => match self.bindings() {
                None => "the graph is not valid: correct it, or export the model again".into(),
                Some(dims) => format!(
                    "the graph is not valid with {dims}: give sizes that go together, or export the model again"
                )
                .into(),
            },
            ImportError::Shape(Unknown { .. }) => format!(
                "add a value_info entry with element type and every extent for {}, for example with \
                 onnx.helper.make_tensor_value_info and graph.value_info.append",
                self.untyped()
            )
            .into(),
        })
    }

    /// The results of unknown type; if there is only one, by its name.
    fn untyped(&self) -> String {
        let mut all = self.errors.iter().filter_map(|error| match error {
            ImportError::Shape(ShapeError::Unknown { result, more, .. }) => Some((result, *more)),
            _ => None,
        });
        match (all.next(), all.next()) {
            (Some((result, 0)), None) => format!("`{result}`"),
            _ => "each such result".to_owned(),
        }
    }

    /// An example of options that give a value to each unbound name.
    fn example(&self) -> String {
        let symbols = self.errors.iter().filter_map(|error| match error {
            ImportError::UnboundDim { symbol, .. } => Some(format!("--dim {}=32", quoted(symbol))),
            _ => None,
        });
        format!("give sizes, for example {}", symbols.collect::<Vec<_>>().join(" "))
    }

    /// The bindings in the form of options.
    fn bindings(&self) -> Option<String> {
        let dims = self.dims.iter().map(|(n, v)| format!("--dim {}={v}", quoted(n)));
        let shapes = self.dims.shapes().map(|(n, v)| format!("--shape {}={}", quoted(n), extent_text(v)));
        let dims: Vec<String> = dims.chain(shapes).collect();
        (!dims.is_empty()).then(|| dims.join(" "))
    }
}

impl Advice for ImportErrors {
    fn helps(&self) -> Vec<String> {
        let mut helps = Vec::new();
        for error in &self.errors {
            let advice = self.advice(error).map(Cow::into_owned);
            helps.extend(advice.filter(|advice| !helps.contains(advice)));
        }
        helps
    }
}

/// How a function of ours is called.
fn call(operands: usize, attributes: &[&str]) -> String {
    let attributes = attributes.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
    let attributes = if attributes.is_empty() { "no attributes".to_owned() } else { attributes };
    format!("the operator takes {} and {attributes}", lmsc_ir::words::count(operands, "operand"))
}

/// The name, quoted for a shell if necessary.
fn quoted(name: &str) -> String {
    if name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b)) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    }
}

struct Listed<'a>(&'a ImportErrors);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.0.errors {
            write!(f, "\n  {error}")?;
        }
        if self.0.more > 0 {
            write!(f, "\n  and {} more", self.0.more)?;
        }
        Ok(())
    }
}

/// Collects errors.
#[derive(Default)]
pub(super) struct Errors {
    pub(super) list: Vec<ImportError>,
    pub(super) more: usize,
    pub(super) warnings: Warnings,
    pub(super) stale: Stale,
}

/// Entries of lmsc's own metadata that do not fit the file.
#[derive(Default)]
pub(super) struct Stale {
    first: Option<String>,
    more: usize,
}

impl Stale {
    /// Keeps the first reason and counts the others.
    pub(super) fn push(&mut self, reason: String) {
        match self.first {
            None => self.first = Some(reason),
            Some(_) => self.more += 1,
        }
    }

    /// The same for an entry of a node.
    pub(super) fn push_of_node(&mut self, node: &str, op: &str, key: &str, reason: &str) {
        self.push(format!("node `{node}` ({op}), metadata `{key}`: {reason}"));
    }

    /// The warning, if there is any such entry.
    pub(super) fn in_words(self) -> Option<String> {
        let first = self.first?;
        let more = match self.more {
            0 => String::new(),
            1 => " (and 1 more entry like it)".to_owned(),
            more => format!(" (and {more} more entries like it)"),
        };
        Some(format!(
            "{first}{more}; another program has rewritten the file, so its control edges and addresses are not used: \
             it holds no memory bound until it is planned again"
        ))
    }
}

/// Faults that do not prevent using the file.
#[derive(Default)]
pub(super) struct Warnings {
    list: Vec<String>,
    more: usize,
}

impl Warnings {
    /// Keeps the warning, or counts it if there are [`ImportErrors::MOST`] already.
    pub(super) fn push(&mut self, warning: String) {
        if self.list.len() < ImportErrors::MOST {
            self.list.push(warning);
        } else {
            self.more += 1;
        }
    }

    /// Puts a warning before the others.
    pub(super) fn insert_first(&mut self, warning: String) {
        self.list.insert(0, warning);
    }

    /// The warnings; the last one gives the number of those that were not kept.
    pub(super) fn into_vec(self) -> Vec<String> {
        let mut list = self.list;
        if self.more > 0 {
            list.push(format!("and {}", lmsc_ir::words::count(self.more, "more warning")));
        }
        list
    }
}

impl Errors {
    /// Keeps the error. The same error about further nodes of the same operator is only counted.
    pub(super) fn push(&mut self, error: impl Into<ImportError>) {
        let error = error.into();
        if let ImportError::Shape(ShapeError::Unknown { op, reason, .. }) = &error {
            let alike = self.list.iter_mut().find_map(|known| match known {
                ImportError::Shape(ShapeError::Unknown { op: o, reason: r, more, .. }) => {
                    (o == op && r == reason).then_some(more)
                }
                _ => None,
            });
            if let Some(more) = alike {
                *more += 1;
                return;
            }
        }
        let told = |known: &ImportError| match (known, &error) {
            (
                ImportError::Shape(ShapeError::Contract { op: o, reason: r, .. }),
                ImportError::Shape(ShapeError::Contract { op, reason, .. }),
            ) => o == op && r == reason,
            _ => false,
        };
        if self.list.len() < ImportErrors::MOST && !self.list.iter().any(told) {
            self.list.push(error);
        } else {
            self.more += 1;
        }
    }
}
