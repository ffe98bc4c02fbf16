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

use lmsc_ir::{Data, Graph, TensorType};

use crate::file::Model;
use crate::functions::Ours;
use crate::proto::{NodeProto, TensorProto};
use crate::{addresses, key};

use build::Build;
pub use dims::Dims;
use error::Errors;
pub use error::{ImportError, ImportErrors};
use resolve::Resolved;

/// The graph of the model, with the type of every value.
///
/// # Errors
/// [`ImportErrors`] with every violation that does not follow from another one: symbols that are not bound, values
/// without or with two definitions, cycles, nodes that are not valid, results of unknown type.
pub fn import(model: &Model, dims: &Dims) -> Result<Graph, ImportErrors> {
    let mut errors = Errors::default();
    for function in &model.proto.functions {
        if Ours::of_function(function).is_some_and(|ours| !ours.is_computed_by(function)) {
            errors.push(ImportError::NoCopy { function: function.name().to_owned() });
        }
    }
    let graph = match &model.proto.graph {
        Some(proto) => {
            let resolved = Resolved::new(model, proto, dims, &mut errors);
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

/// The dense initializers of the model's graph, by name: no size needs to be known for them.
///
/// # Errors
/// The first that is no tensor.
pub fn initializers(model: &Model) -> Result<Vec<(String, TensorType, Data)>, ImportError> {
    let graph = model.proto.graph.as_ref().ok_or(ImportError::NoGraph)?;
    let read = |(index, tensor): (usize, &TensorProto)| {
        let (ty, data) = read::read_tensor(tensor, &format!("graph.initializer[{index}]"))?;
        Ok((tensor.name().to_owned(), ty, data))
    };
    graph.initializer.iter().enumerate().map(read).collect()
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
