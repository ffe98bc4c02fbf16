//! The graph as MLIR text, and back, without LLVM.
//!
//! ```text
//! module attributes {lms.opsets = [{domain = "", version = 17 : i64}], lms.version = 1 : i64} {
//!   func.func @step(%arg0: tensor<4x8xf32> {onnx.name = "x"}) -> (tensor<4x8xf32> {onnx.name = "y"}) {
//!     %0 = "onnx.Relu"(%arg0) {lms.results = ["h"], onnx_node_name = "relu"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
//!     %1:2 = "lms.swap_out"(%0) {lms.results = ["h_host"], onnx_node_name = "out"} : (tensor<4x8xf32>) -> (!lms.host<tensor<4x8xf32>>, !lms.token)
//!     %2 = "lms.wait"(%0, %1#1) : (tensor<4x8xf32>, !lms.token) -> tensor<4x8xf32>
//!     %3 = "onnx.Tanh"(%2) {lms.results = ["y"], onnx_node_name = "tanh"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
//!     return %3 : tensor<4x8xf32>
//!   }
//! }
//! ```
//!
//! Operators are generic operations of onnx-mlir's dialect, on builtin types; those of other domains are `onnx.Custom`.
//! Copies and control edges are operations of the dialect [`lms`](DIALECT). A control edge into a copy is an operand of it;
//! one into an operator is an `lms.wait` on its first operand. One out of a copy is its second result; one out of an operator is
//! an `lms.trigger` of its first result. If there is no operand or no result, the token itself is one.
//!
//! Everything else is in attributes, whose names begin with `lms.`: docs/formats.md lists them. Names are kept there, so that
//! values may be renumbered. [`parse`] reads the output of [`print()`], also after `mlir-opt` has processed it.

mod hlo;
#[cfg(feature = "melior")]
mod llvm;
mod print;
mod read;
mod stablehlo;
mod types;

use lmsc_ir::{Graph, ParseError};

pub use hlo::{HloError, HloStep};
pub use print::PrintError;
pub use stablehlo::StablehloError;

/// The dialect `lms` in IRDL, as `mlir-opt --irdl-file=` takes it.
pub const DIALECT: &str = include_str!("../lms.irdl.mlir");

/// The graph as a module with one function.
///
/// # Errors
/// [`PrintError`] if MLIR cannot express a construct. For a graph that `lmsc_ir::verify` accepts, those are extents and names of
/// attributes that MLIR does not support.
///
/// ```
/// let graph = lmsc_ir::Graph::parse("g (float[2] x) => (float[2] y)\n{\n   [a] float[2] y = Relu(x)\n}\n").unwrap();
/// let text = lmsc_mlir::print(&graph).unwrap();
/// assert_eq!(lmsc_mlir::parse(&text).unwrap().to_text(), graph.to_text());
/// ```
pub fn print(graph: &Graph) -> Result<String, PrintError> {
    print::module(graph)
}

/// The graph as a module of StableHLO with one function `main`, which XLA compiles.
///
/// Arguments are the graph's inputs and its initializers of many elements, results its outputs and the new values of its
/// variables; attributes name them (`onnx.name`, `lms.initializer`, `lms.new_value_of`).
///
/// # Errors
/// [`StablehloError`] if an operator has no rule, or none for its attributes or types.
pub fn xla(graph: &Graph) -> Result<String, StablehloError> {
    stablehlo::module(graph, &stablehlo::Xla)
}

/// The graph as [`xla`] writes it, except for copies and barriers, which are IREE's: it compiles the module for two devices,
/// `dev` and `host`.
///
/// # Errors
/// [`StablehloError`] if an operator has no rule, or none for its attributes or types.
///
/// ```
/// let text = "g (float[2] x) => (float[2] y)\n{\n   [a] float[2] y = Relu(x)\n}\n";
/// let graph = lmsc_ir::Graph::parse(text).unwrap();
/// assert!(lmsc_mlir::iree(&graph).unwrap().contains("stablehlo.maximum"));
/// ```
pub fn iree(graph: &Graph) -> Result<String, StablehloError> {
    stablehlo::module(graph, &stablehlo::Iree)
}

/// The domain and name of every operator that [`xla`] and [`iree`] write; some forms of them they refuse.
pub fn operators() -> impl Iterator<Item = (&'static str, &'static str)> {
    stablehlo::operators()
}

/// The graph that the module describes.
///
/// The graph may break invariants; use `lmsc_ir::verify` to check them.
///
/// # Errors
/// [`ParseError`] with line and column, if the text is not of the form that [`print()`] writes.
pub fn parse(text: &str) -> Result<Graph, ParseError> {
    read::module(text)
}

/// The training step that a module of StableHLO describes, as `jax.export` writes it, in operators of ONNX.
///
/// The graph may break invariants; use `lmsc_ir::verify` to check them. Its state is in [`HloStep::state`]: `lmsc_onnx::settle` writes
/// it into the graph.
///
/// # Errors
/// [`HloError`] with line and column, if the text is no module of StableHLO, or an operator has no translation.
///
/// ```
/// let text = "module @jit_f {
///   func.func public @main(%arg0: tensor<2xf32> loc(\"x\")) -> tensor<2xf32> {
///     %0 = stablehlo.tanh %arg0 : tensor<2xf32>
///     return %0 : tensor<2xf32>
///   }
/// }";
/// assert!(lmsc_mlir::is_stablehlo(text));
/// let graph = lmsc_mlir::step(text).unwrap().graph;
/// assert!(graph.to_text().contains("= Tanh(x)"));
/// ```
pub fn step(text: &str) -> Result<HloStep, HloError> {
    hlo::step(text)
}

/// Whether a text of MLIR is a module of StableHLO, for [`step`], and not of the form that [`print()`] writes, for [`parse`].
pub fn is_stablehlo(text: &str) -> bool {
    hlo::looks_like(text)
}

/// Succeeds if LLVM's own parser and verifier accept the text as a module whose `lms` operations are those of the dialect.
/// Without the feature `melior` LLVM is not called.
///
/// # Errors
/// LLVM's errors, each with its place: line and column, or 0 if LLVM gives none.
pub fn check(text: &str) -> Result<(), Vec<ParseError>> {
    #[cfg(feature = "melior")]
    return llvm::check(text);
    #[cfg(not(feature = "melior"))]
    {
        _ = text;
        Ok(())
    }
}

/// Whether the text, ignoring blanks and comments, begins like a module.
pub fn looks_like(text: &str) -> bool {
    read::looks_like(text)
}

/// Attributes for facts that ONNX's attributes do not cover; the printer and the reader share the names.
mod key {
    pub(crate) const VERSION: &str = "lms.version";
    pub(crate) const OPSETS: &str = "lms.opsets";
    pub(crate) const GRAPH: &str = "lms.graph";

    pub(crate) const NAME: &str = "onnx.name";
    pub(crate) const INITIALIZER: &str = "lms.initializer";
    pub(crate) const DATA: &str = "lms.data";
    pub(crate) const ADDRESS: &str = "lms.address";
    pub(crate) const VARIABLE: &str = "lms.variable";
    pub(crate) const NEW_VALUE_OF: &str = "lms.new_value_of";

    /// Of arguments that a run provides, which determine the drawn numbers.
    pub(crate) const SEED: &str = "lms.seed";
    pub(crate) const STEP: &str = "lms.step";

    pub(crate) const NODE: &str = "onnx_node_name";
    pub(crate) const DOMAIN: &str = "domain_name";
    pub(crate) const FUNCTION: &str = "function_name";
    pub(crate) const RESULTS: &str = "lms.results";
    pub(crate) const ADDRESSES: &str = "lms.addresses";
    pub(crate) const ATTRIBUTES: &str = "lms.attributes";
    pub(crate) const CAPTURES: &str = "lms.captures";
    pub(crate) const UPDATES: &str = "lms.updates";
    pub(crate) const RECOMPUTES: &str = "lms.recomputes";
    pub(crate) const WORKSPACE: &str = "lms.workspace";
    /// Of a random node whose seed is not that of its name.
    pub(crate) const DRAWS_FROM: &str = "lms.draws_from";
}

/// The version of the form.
const VERSION: i64 = 1;
