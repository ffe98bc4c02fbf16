//! Imports a model's messages into the graph.
//!
//! - A graph input that is also an initializer has a default, which a caller may replace: it is among the graph's inputs, and its
//!   bytes are among the initializers. Before IR version 4 every initializer was an input, and none can be replaced. Where extents
//!   depend on a default, they are those of the default ([`deciding`](crate::shapes::deciding)).
//! - Extents are numbers: symbols of graph inputs are bound by [`Dims`], expressions such as `2*n` follow from them, and
//!   everything else follows from the inputs by [rules](crate::shapes). Other symbols, such as `unk__7`, declare
//!   nothing: exporters give one size several names.
//! - Nodes stay in the file's order if that is a topological one, or else in the topological order that is
//!   nearest to it.

mod bodies;
mod build;
mod dims;
mod error;
mod extent;
mod limits;
mod loops;
mod names;
mod read;
mod resolve;
mod sizes;
mod standard;

use std::collections::BTreeSet;

use lmsc_ir::contract::NEWEST;
use lmsc_ir::{Data, Graph, TensorType};

use crate::file::Model;
use crate::functions::Ours;
use crate::proto::{GraphProto, TensorProto};
use crate::{addresses, key};

use bodies::Breaches;
use build::Build;
pub use dims::Dims;
use error::{Errors, NEWEST_IR};
pub use error::{ImportError, ImportErrors};
pub(crate) use names::inner_names;
pub(crate) use read::declaration;
use resolve::Resolved;
pub use sizes::symbolic;
pub(crate) use standard::faults_of_functions;

/// The graph of a model, and the faults of the file that do not prevent its use.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The graph.
    pub graph: Graph,
    /// One sentence per fault, in the order of the file.
    pub warnings: Vec<String>,
}

/// The graph of the model, without the warnings of [`import_warned`].
///
/// # Errors
/// As [`import_warned`].
pub fn import(model: &Model, dims: &Dims) -> Result<Graph, ImportErrors> {
    import_warned(model, dims).map(|imported| imported.graph)
}

/// The graph of the model, with the type of every value.
///
/// # Errors
/// [`ImportErrors`] with every violation that does not follow from another one: symbols that are not bound, values
/// without or with two definitions, cycles, nodes that are not valid, results of unknown type.
pub fn import_warned(model: &Model, dims: &Dims) -> Result<Imported, ImportErrors> {
    import_with(model, dims, None)
}

/// The same, for a caller that only inspects the model: too new versions, and nodes that violate the contracts of their
/// operators, are warnings, each kind once. The graph must not be run or rewritten.
///
/// # Errors
/// [`ImportErrors`] with everything else.
pub fn look(model: &Model, dims: &Dims) -> Result<Imported, ImportErrors> {
    let breaches = Breaches::default();
    let mut imported = import_with(model, dims, Some(&breaches))?;
    imported.warnings.extend(
        breaches.into_inner().list.iter().map(|breach| format!("{breach}; no other command takes the model")),
    );
    Ok(imported)
}

fn import_with(model: &Model, dims: &Dims, breaches: Option<&Breaches>) -> Result<Imported, ImportErrors> {
    let mut errors = Errors::default();
    let mut graph = read(model, dims, Plan::Read, breaches, &mut errors);
    // One entry that no longer matches the file makes all of them suspect.
    if let Some(stale) = std::mem::take(&mut errors.stale).in_words() {
        errors = Errors::default();
        breaches.iter().for_each(|breaches| _ = breaches.take());
        graph = read(model, dims, Plan::Ignored, breaches, &mut errors);
        errors.warnings.insert_first(stale);
    }
    match graph {
        Some(graph) if errors.list.is_empty() => Ok(Imported { graph, warnings: errors.warnings.into_vec() }),
        _ => {
            let (name, dims) = (model.name.clone(), dims.clone());
            Err(ImportErrors { name, errors: errors.list, more: errors.more, dims })
        }
    }
}

/// Whether control edges and addresses are taken from the metadata of lmsc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Read,
    Ignored,
}

/// The graph, as far as it is free of errors.
fn read(
    model: &Model,
    dims: &Dims,
    plan: Plan,
    breaches: Option<&Breaches>,
    errors: &mut Errors,
) -> Option<Graph> {
    match breaches {
        Some(breaches) => versions(model, &mut breaches.borrow_mut()),
        None => versions(model, errors),
    }
    match breaches {
        Some(breaches) => standard::check(model, &mut breaches.borrow_mut()),
        None => standard::check(model, errors),
    }
    for function in &model.proto.functions {
        if Ours::of_function(function).is_some_and(|ours| !ours.is_computed_by(function)) {
            errors.push(ImportError::NoCopy { function: function.name().to_owned() });
        }
    }
    let Some(proto) = &model.proto.graph else {
        errors.push(ImportError::NoGraph);
        return None;
    };
    let resolved = Resolved::new(model, proto, dims, (plan, breaches), errors);
    let order = resolved.order(errors)?;
    let (mut graph, _) = Build::graph(&resolved, order, Constancy::OfDefaults, errors);
    let entry = model.proto.metadata_props.iter().find(|p| p.key() == key::ADDRESSES);
    // Names that are missing because of other errors are not reported.
    if let (Some(entry), Plan::Read, true) = (entry, plan, errors.list.is_empty())
        && let Err(reason) = addresses::read(entry.value(), &mut graph)
    {
        errors.stale.push(format!("metadata `{}` of the model: {reason}", key::ADDRESSES));
    }
    Some(graph)
}

/// Whether the values of inputs in a file are constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Constancy {
    /// They are, because sizes depend on them.
    OfDefaults,
    /// They are not, because a caller may feed other values.
    OfConstants,
}

/// Control flow that is known when a model is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decided {
    /// The condition of an `If`.
    Branch(bool),
    /// The number of iterations of a `Loop`, and the number of nodes of all iterations.
    Iterations { count: usize, nodes: usize },
    /// A `Loop` or a `Scan` of no iteration: the number of values that it would carry, and the types of its other results.
    Skipped { carried: usize, scans: Vec<TensorType> },
}

/// The nodes of the graph whose control flow is known, by their positions in the file.
pub(crate) fn decided(model: &Model, dims: &Dims) -> Vec<(usize, Decided)> {
    let mut errors = Errors::default();
    let Some(proto) = &model.proto.graph else { return Vec::new() };
    let resolved = Resolved::new(model, proto, dims, (Plan::Ignored, None), &mut errors);
    let Some(order) = resolved.order(&mut errors) else { return Vec::new() };
    let (_, mut decided) = Build::graph(&resolved, order, Constancy::OfConstants, &mut errors);
    decided.sort_by_key(|&(node, _)| node);
    decided
}

/// The names that the graph, a subgraph, reads from outside; none if subgraphs are nested too deeply.
pub(crate) fn names_read(graph: &GraphProto) -> Vec<String> {
    let mut free = Vec::new();
    _ = names::free_names(graph, 0, &mut free);
    free.into_iter().map(str::to_owned).collect()
}

/// Refuses versions of the format and of domains that are newer than the implemented ones.
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
        let newest = NEWEST.iter().find(|(name, _)| *name == domain).map_or(i64::MAX, |(_, n)| *n);
        let found = import.version();
        if found > newest && told.insert((domain, found)) {
            errors.push(ImportError::Opset { domain: domain.to_owned(), found, newest });
        }
    }
}

/// The dense initializers of the model's graph, by name: they do not depend on any size.
///
/// # Errors
/// The first error in a tensor.
pub fn initializers(model: &Model) -> Result<Vec<(String, TensorType, Data)>, ImportError> {
    let graph = model.proto.graph.as_ref().ok_or(ImportError::NoGraph)?;
    let read = |(index, tensor): (usize, &TensorProto)| {
        let (ty, data) = read::read_tensor(tensor, &format!("graph.initializer[{index}]"))?;
        Ok((tensor.name().to_owned(), ty, data))
    };
    graph.initializer.iter().enumerate().map(read).collect()
}
