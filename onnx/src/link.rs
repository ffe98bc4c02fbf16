//! Makes one step from two files: the training graph and the optimizer graph that onnxruntime-training writes separately.
//!
//! Nothing in the files connects them; its API does, by the order of the parameters. Here every parameter with a gradient gets an
//! update node of its own, so that a gradient is free once its parameter is updated.

use std::collections::{HashMap, HashSet};

use lmsc_ir::Advice;
use lmsc_ir::words::count;

use crate::file::Model;
use crate::import::inner_names;
use crate::proto::{GraphProto, NodeProto, TypeProto, ValueInfoProto};
use crate::update::Optimizer;

/// Why two files cannot be linked to one step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// The optimizer graph is not of the form that onnxruntime-training writes.
    #[error(
        "{file} is no optimizer graph: expected one com.microsoft AdamWOptimizer or SGDOptimizerV2 node over \
         sequences, found {found}"
    )]
    NotAnOptimizer {
        /// The optimizer's file.
        file: String,
        /// The nodes found instead.
        found: String,
    },
    /// The training graph has no gradients.
    #[error(
        "{file} has no gradients to optimize: there is no InPlaceAccumulatorV2 node, and no output is named after an \
         input with `_grad` appended"
    )]
    NoGradients {
        /// The training graph's file.
        file: String,
    },
    /// An accumulator's buffer is not named after a parameter.
    #[error(
        "{file}: the gradient buffer `{buffer}` belongs to no parameter; expected a buffer `p_grad.accumulation.buffer` \
         and an input `p`"
    )]
    NoParameter {
        /// The training graph's file.
        file: String,
        /// The buffer's name.
        buffer: String,
    },
    /// A name that the linked step needs is taken.
    #[error("{file}: the name `{name}` is taken, but the step needs it for the optimizer's state")]
    NameTaken {
        /// The training graph's file.
        file: String,
        /// The name.
        name: String,
    },
}

impl Advice for LinkError {
    fn helps(&self) -> Vec<String> {
        let help = match self {
            LinkError::NotAnOptimizer { .. } => {
                "--optimizer takes the optimizer_model.onnx that onnxruntime-training writes beside the training graph"
            }
            LinkError::NoGradients { .. } => {
                "the model that --optimizer belongs to is the training_model.onnx"
            }
            LinkError::NoParameter { .. } => {
                "export the training graph again, with the names that onnxruntime-training gives"
            }
            LinkError::NameTaken { .. } => "give that input or value another name",
        };
        vec![help.to_owned()]
    }
}

const BUFFER_SUFFIX: &str = "_grad.accumulation.buffer";

/// The step that computes gradients with `training` and then applies `optimizer` to them.
///
/// Its inputs are those of the training graph, then the optimizer's scalars, then the moments of each parameter `p` as
/// `p.exp_avg` and `p.exp_avg_sq`. Its outputs are those of the training graph, then the accumulated gradients from which the
/// next step may continue, then for each parameter `p_new` (and `p.exp_avg_new`, `p.exp_avg_sq_new`). Each update is one node of
/// the domain `ai.lmsc`, equivalent to the original operator over sequences of one element, so any runtime that runs the two
/// files runs the step.
///
/// # Errors
/// [`LinkError`] names the file and the missing part.
pub fn link(training: &Model, optimizer: &Model) -> Result<Model, LinkError> {
    let (kind, node, scalars) = optimizer_node(optimizer)?;
    let mut proto = training.proto.clone();
    let mut graph = proto.graph.take().unwrap_or_default();
    let gradients = gradients(training, &mut graph)?;

    let mut taken: HashSet<String> = names(&graph);
    let mut claim = |name: String| {
        let name_taken = || LinkError::NameTaken { file: training.name.clone(), name: name.clone() };
        if taken.insert(name.clone()) { Ok(name) } else { Err(name_taken()) }
    };
    let mut scalar_names = Vec::new();
    for scalar in scalars {
        let name = claim(scalar.name.clone().unwrap_or_default())?;
        scalar_names.push(name);
        graph.input.push(scalar);
    }
    for Gradient { parameter, ty, value } in &gradients {
        let state: Vec<String> = std::iter::once("")
            .chain(kind.moments.iter().copied())
            .map(|s| format!("{parameter}{s}"))
            .collect();
        let mut inputs = scalar_names.clone();
        inputs.extend([state[0].clone(), value.clone()]);
        for moment in &state[1..] {
            inputs.push(claim(moment.clone())?);
            graph.input.push(value_info(moment, ty));
        }
        let mut outputs = Vec::new();
        for name in &state {
            let new = claim(format!("{name}_new"))?;
            graph.output.push(value_info(&new, ty));
            outputs.push(new);
        }
        graph.node.push(NodeProto {
            name: Some(format!("{parameter}.update")),
            op_type: Some(kind.op.to_owned()),
            domain: Some(crate::LMSC_DOMAIN.to_owned()),
            input: inputs,
            output: outputs,
            attribute: node.attribute.clone(),
            ..NodeProto::default()
        });
    }
    proto.graph = Some(graph);
    for (domain, version) in [(crate::LMSC_DOMAIN, 1), (lmsc_ir::domains::MS, 1)] {
        crate::import_opset(&mut proto, domain, version);
    }
    let mapped = [&training.mapped[..], &optimizer.mapped[..]].concat();
    Ok(Model { proto, name: training.name.clone(), folder: training.folder.clone(), mapped })
}

/// A parameter's gradient.
struct Gradient {
    parameter: String,
    ty: Option<TypeProto>,
    /// The value that holds the gradient once it is complete.
    value: String,
}

/// The optimizer's kind, its node, and the graph inputs that are its scalars.
fn optimizer_node(
    optimizer: &Model,
) -> Result<(&'static Optimizer, &NodeProto, Vec<ValueInfoProto>), LinkError> {
    let refuse = |found: String| LinkError::NotAnOptimizer { file: optimizer.name.clone(), found };
    let Some(graph) = &optimizer.proto.graph else { return Err(refuse("no graph".to_owned())) };
    let [node] = &graph.node[..] else { return Err(refuse(count(graph.node.len(), "node"))) };
    let op = node.op_type.as_deref().unwrap_or_default();
    let Some(kind) = Optimizer::over_sequences(node) else { return Err(refuse(format!("`{op}`"))) };
    let inputs: HashMap<&str, &ValueInfoProto> =
        graph.input.iter().map(|i| (i.name.as_deref().unwrap_or_default(), i)).collect();
    let scalars = node.input.iter().take(kind.scalars.len());
    let scalars: Option<Vec<_>> = scalars.map(|name| inputs.get(name.as_str()).map(|&i| i.clone())).collect();
    let scalars = scalars.filter(|s| s.len() == kind.scalars.len());
    let scalars = scalars.ok_or_else(|| refuse(format!("a `{op}` whose first operands are no inputs")))?;
    Ok((kind, node, scalars))
}

/// The gradient of every parameter, in the order of the parameters. Accumulators get their new value as a result.
fn gradients(training: &Model, graph: &mut GraphProto) -> Result<Vec<Gradient>, LinkError> {
    let file = || training.name.clone();
    let rank: HashMap<String, (usize, Option<TypeProto>)> = graph
        .input
        .iter()
        .enumerate()
        .map(|(i, input)| (input.name.clone().unwrap_or_default(), (i, input.r#type.clone())))
        .collect();
    let known = names(graph);
    let mut gradients = Vec::new();
    for node in &mut graph.node {
        if node.domain.as_deref() != Some(lmsc_ir::domains::MS)
            || node.op_type.as_deref() != Some("InPlaceAccumulatorV2")
        {
            continue;
        }
        let buffer = node.input.first().cloned().unwrap_or_default();
        let parameter = buffer.strip_suffix(BUFFER_SUFFIX).and_then(|name| rank.get_key_value(name));
        let Some((parameter, (_, ty))) = parameter else {
            return Err(LinkError::NoParameter { file: file(), buffer });
        };
        let value = match node.output.get(1).filter(|o| !o.is_empty()) {
            Some(value) => value.clone(),
            None => {
                let value = format!("{buffer}_new");
                if known.contains(&value) {
                    return Err(LinkError::NameTaken { file: file(), name: value });
                }
                node.output.resize(2, String::new());
                node.output[1] = value.clone();
                graph.output.push(value_info(&value, ty));
                value
            }
        };
        gradients.push(Gradient { parameter: parameter.clone(), ty: ty.clone(), value });
    }
    if gradients.is_empty() {
        let outputs = graph.output.iter().filter_map(|o| o.name.as_deref());
        for value in outputs {
            if let Some((parameter, (_, ty))) =
                value.strip_suffix("_grad").and_then(|p| rank.get_key_value(p))
            {
                gradients.push(Gradient {
                    parameter: parameter.clone(),
                    ty: ty.clone(),
                    value: value.to_owned(),
                });
            }
        }
    }
    if gradients.is_empty() {
        return Err(LinkError::NoGradients { file: file() });
    }
    gradients.sort_by_key(|g| rank[&g.parameter].0);
    Ok(gradients)
}

fn names(graph: &GraphProto) -> HashSet<String> {
    let given = graph.input.iter().filter_map(|i| i.name.clone());
    let constants = graph.initializer.iter().filter_map(|i| i.name.clone());
    let inner = inner_names(&graph.node).into_iter().map(str::to_owned);
    let computed = graph.node.iter().flat_map(|n| n.output.iter().cloned());
    given.chain(constants).chain(computed).chain(inner).collect()
}

fn value_info(name: &str, ty: &Option<TypeProto>) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.to_owned()), r#type: ty.clone(), ..ValueInfoProto::default() }
}
