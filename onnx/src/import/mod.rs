//! From a model's messages to the graph.
//!
//! - A graph input that is also an initializer is an initializer: its bytes are in the file. Whoever feeds another
//!   value for it must feed one that gives the same shapes.
//! - Extents are numbers: symbols of graph inputs are bound by [`Dims`], everything else follows from the inputs
//!   by [`shapes`](crate::shapes). Other symbols, such as `unk__7`, declare nothing: exporters give one size
//!   several names.
//! - Nodes stay in the file's order if that is a topological one, or else in the topological order that is
//!   nearest to it.

mod bodies;
mod build;
mod dims;
mod error;
mod names;
mod read;
mod resolve;

use std::collections::BTreeSet;

use lmsc_ir::Graph;

use crate::file::Model;
use crate::functions::Ours;
use crate::proto::NodeProto;
use crate::{addresses, key, shapes};

use bodies::Warnings;
use build::Build;
pub use dims::Dims;
use error::{Errors, NEWEST_IR};
pub use error::{ImportError, ImportErrors};
use resolve::Resolved;

/// The graph of the model, with the type of every value.
///
/// # Errors
/// [`ImportErrors`] with every violation that does not follow from another one: symbols that are not bound, values
/// without or with two definitions, cycles, nodes that are not valid, results of unknown type.
pub fn import(model: &Model, dims: &Dims) -> Result<Graph, ImportErrors> {
    read(model, dims, None)
}

/// The same, for who only looks at the model: versions that are too new, and nodes of which the contracts of their operators
/// say nothing, are told beside the graph, each kind once. Nothing may run or rewrite that graph.
///
/// # Errors
/// [`ImportErrors`] with everything else.
pub fn look(model: &Model, dims: &Dims) -> Result<(Graph, Vec<ImportError>), ImportErrors> {
    let warnings = Warnings::default();
    let graph = read(model, dims, Some(&warnings))?;
    Ok((graph, warnings.into_inner().list))
}

fn read(model: &Model, dims: &Dims, warnings: Option<&Warnings>) -> Result<Graph, ImportErrors> {
    let mut errors = Errors::default();
    match warnings {
        Some(warnings) => versions(model, &mut warnings.borrow_mut()),
        None => versions(model, &mut errors),
    }
    for function in &model.proto.functions {
        if Ours::of_function(function).is_some_and(|ours| !ours.is_computed_by(function)) {
            errors.push(ImportError::NoCopy { function: function.name().to_owned() });
        }
    }
    let graph = match &model.proto.graph {
        Some(proto) => {
            let resolved = Resolved::new(model, proto, dims, warnings, &mut errors);
            let order = resolved.order(&mut errors);
            order.map(|order| Build::graph(&resolved, order, &mut errors))
        }
        None => {
            errors.push(ImportError::NoGraph);
            None
        }
    };
    let mut graph = graph;
    let entry = model.proto.metadata_props.iter().find(|p| p.key() == key::ADDRESSES);
    // Names that are missing because something else is wrong are no news.
    if let (Some(graph), Some(entry), true) = (&mut graph, entry, errors.list.is_empty())
        && let Err(reason) = addresses::read(entry.value(), graph)
    {
        errors.push(ImportError::Addresses { reason });
    }
    match graph {
        Some(graph) if errors.list.is_empty() => Ok(graph),
        _ => {
            let (name, dims) = (model.name.clone(), dims.clone());
            Err(ImportErrors { name, errors: errors.list, more: errors.more, dims })
        }
    }
}

/// Refuses versions of the format and of domains that are newer than any that is implemented.
fn versions(model: &Model, errors: &mut Errors) {
    let found = model.proto.ir_version();
    if found > NEWEST_IR {
        errors.push(ImportError::Ir { found });
    }
    let functions = model.proto.functions.iter().flat_map(|function| &function.opset_import);
    let mut told = BTreeSet::new();
    for import in model.proto.opset_import.iter().chain(functions) {
        let domain = match import.domain() {
            "ai.onnx" => "",
            domain => domain,
        };
        let newest = shapes::NEWEST.iter().find(|(name, _)| *name == domain).map_or(i64::MAX, |(_, n)| *n);
        let found = import.version();
        if found > newest && told.insert((domain, found)) {
            errors.push(ImportError::Opset { domain: domain.to_owned(), found, newest });
        }
    }
}

fn domain(node: &NodeProto) -> &str {
    match node.domain() {
        "ai.onnx" => "",
        domain => domain,
    }
}

fn op_name(node: &NodeProto) -> String {
    match domain(node) {
        "" => node.op_type().to_owned(),
        domain => format!("{domain}.{}", node.op_type()),
    }
}
