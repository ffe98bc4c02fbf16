//! State of a step: which output is the next value of which input, and how that value is carried to the next step.
//!
//! A pair of an input and an output can be state however the output is computed. [`Stated`] has the pairs of the file's metadata,
//! of the caller, and of names. [`settle`] writes them into the graph as update edges, in place or by a copy (`carry.rs`).
//! [`carried`] reads them from a graph again.

mod carry;
mod order;
mod pairs;

use lmsc_ir::{Advice, Bytes, Def, Graph, LMSC_DOMAIN, NodeId, Storages, ValueId};

use crate::file::Model;
use crate::key;

pub use pairs::Notice;
pub(crate) use pairs::STRONG;

/// Statements about the state of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// Inputs and the outputs that are their next values.
    pub pairs: Vec<(String, String)>,
    /// Names of inputs and outputs that belong to no pair.
    pub not: Vec<String>,
    /// Whether names also make pairs: `w` and `w_new`.
    pub by_name: bool,
}

/// Without statements, only names make pairs.
impl Default for Stated {
    fn default() -> Stated {
        Stated { pairs: Vec::new(), not: Vec::new(), by_name: true }
    }
}

impl Stated {
    /// The statements in the file's metadata. A file that lists its state ([`key::STATE`]) lists all of it, so names do not make
    /// pairs then.
    ///
    /// # Errors
    /// [`StateError::Metadata`] if the entry is not a list of pairs.
    pub fn of(model: &Model) -> Result<Stated, StateError> {
        let Some(entry) = model.proto.metadata_props.iter().find(|p| p.key() == key::STATE) else {
            return Ok(Stated::default());
        };
        let pairs = parse_pairs(entry.value()).map_err(|reason| StateError::Metadata { reason })?;
        Ok(Stated { pairs, by_name: false, ..Stated::default() })
    }
}

/// The pairs of inputs and outputs in a JSON text: an array of pairs, or an object.
///
/// # Errors
/// The error in the text.
///
/// ```
/// let pairs = vec![("w".to_owned(), "q".to_owned())];
/// assert_eq!(lmsc_onnx::parse_pairs(r#"[["w", "q"]]"#), Ok(pairs.clone()));
/// assert_eq!(lmsc_onnx::parse_pairs(r#"{"w": "q"}"#), Ok(pairs));
/// ```
pub fn parse_pairs(json: &str) -> Result<Vec<(String, String)>, String> {
    let expected = "expected an array of pairs [INPUT, OUTPUT], or an object of both";
    let value: serde_json::Value = serde_json::from_str(json).map_err(|e| format!("{e}; {expected}"))?;
    let name = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let pairs: Option<Vec<(String, String)>> = match &value {
        serde_json::Value::Array(pairs) => pairs
            .iter()
            .map(|pair| match pair.as_array().map(Vec::as_slice) {
                Some([input, output]) => Some((name(input)?, name(output)?)),
                _ => None,
            })
            .collect(),
        serde_json::Value::Object(pairs) => {
            pairs.iter().map(|(input, output)| Some((input.clone(), name(output)?))).collect()
        }
        _ => None,
    };
    pairs.ok_or_else(|| expected.to_owned())
}

/// Why the state of a step is contradictory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The file's list of state cannot be read.
    #[error("metadata `ai.lmsc.state`: {reason}")]
    Metadata {
        /// The error.
        reason: String,
    },
    /// A pair that the caller or the file names does not exist, or cannot be state.
    #[error("the state {input}={output} (--state, or metadata `ai.lmsc.state`): {problem}")]
    NoSuchPair {
        /// The input that was named.
        input: String,
        /// The output that was named.
        output: String,
        /// The error.
        problem: String,
    },
    /// A name that is declared as no state is neither an input nor an output, or an operator writes it.
    #[error("--no-state {name}: {problem}")]
    NotState {
        /// The name.
        name: String,
        /// The error.
        problem: String,
    },
    /// A node reads a variable's old value after an operator has overwritten it in place.
    #[error(
        "node `{reader}` reads `{value}` after node `{writer}` has overwritten it in place, so what it reads is not \
         defined"
    )]
    ReadAfterWrite {
        /// The node that reads.
        reader: String,
        /// The value.
        value: String,
        /// The node that writes.
        writer: String,
    },
}

impl Advice for StateError {
    fn helps(&self) -> Vec<String> {
        match self {
            StateError::ReadAfterWrite { writer, .. } => vec![format!(
                "read the new value, which node `{writer}` defines, or read the old one before that node"
            )],
            StateError::Metadata { .. } | StateError::NoSuchPair { .. } | StateError::NotState { .. } => {
                Vec::new()
            }
        }
    }
}

/// Writes the state of the step into the graph, and returns notices for the caller.
///
/// Every pair gets an update edge. The node that computes the new value writes it in place if that is safe: it works element by
/// element or does not read the old value, and every node that reads the old value can run before it. Otherwise the new value has
/// a place of its own, and an `ai.lmsc.Copy` copies it to the variable after the last read of the old value. The choice depends
/// on edges alone, not on the order of the nodes.
///
/// Control edges order all reads of a variable's old value before the node that overwrites it.
///
/// # Errors
/// [`StateError`] names the values and nodes.
pub fn settle(graph: &mut Graph, stated: &Stated) -> Result<Vec<Notice>, StateError> {
    let (found, notices) = pairs::find(graph, stated)?;
    if !found.is_empty() || !graph.variables().is_empty() {
        carry::carry(graph, &found);
    }
    order::order(graph)?;
    Ok(notices)
}

/// How a variable gets its new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The node writes it in place.
    InPlace(NodeId),
    /// The node, an `ai.lmsc.Copy`, copies it from the place where it was computed.
    Copied(NodeId),
}

/// A variable: a value kept from step to step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The value before the step: a graph input or an initializer.
    pub input: ValueId,
    /// The output that holds the value after the step, if there is one.
    pub output: Option<ValueId>,
    /// How it is written last in the step.
    pub how: How,
    /// Its size.
    pub bytes: Bytes,
}

/// The variables of the graph, in order of their inputs.
pub fn carried(graph: &Graph) -> Vec<Carried> {
    let variables = graph.variables();
    if variables.is_empty() {
        return Vec::new();
    }
    let storages = Storages::of(graph);
    let mut output = vec![None; storages.len()];
    let mut is_output = vec![false; graph.value_capacity()];
    // A value of an earlier version is not an output (invariant I4).
    for &value in graph.outputs.iter().rev() {
        if !matches!(graph.def(value), Def::Input | Def::Initializer(_)) {
            output[storages.storage(value).as_u32() as usize] = Some(value);
            is_output[value.as_u32() as usize] = true;
        }
    }
    let mut of = vec![None; storages.len()];
    for (index, &variable) in variables.iter().enumerate() {
        of[storages.storage(variable).as_u32() as usize] = Some(index);
    }
    let mut last: Vec<Option<(NodeId, Option<ValueId>)>> = vec![None; variables.len()];
    for &id in graph.order() {
        let node = graph.node(id);
        for update in &node.updates {
            // A copy between device and host is written in place of the variable of which it is a copy.
            let mut variable = update.variable;
            while let Some(copy) = graph.producer(variable).map(|n| graph.node(n)) {
                let Some(source) = copy.reads().next() else { break };
                variable = source;
            }
            if let Some(index) = of[storages.storage(variable).as_u32() as usize] {
                let result = update.result.and_then(|r| node.results.get(r).copied().flatten());
                let writes = !node.op.is_swap() && !node.op.is_join();
                let before = last[index].map(|(node, _)| node);
                last[index] = Some((if writes { id } else { before.unwrap_or(id) }, result));
            }
        }
    }
    let entry = |(&input, last): (&ValueId, Option<(NodeId, Option<ValueId>)>)| {
        let (node, result) = last?;
        let how = if is_copy(graph, node) { How::Copied(node) } else { How::InPlace(node) };
        let storage = |value| storages.storage(value).as_u32() as usize;
        let own = result.filter(|r| is_output[r.as_u32() as usize]);
        let output = own.or(result.and_then(|r| output[storage(r)])).or(output[storage(input)]);
        let bytes = graph.value(input).ty.byte_size().unwrap_or_default();
        Some(Carried { input, output, how, bytes })
    };
    variables.iter().zip(last).filter_map(entry).collect()
}

/// The pairs of the graph's state, as [`key::STATE`] lists them.
pub(crate) fn entry(graph: &Graph) -> String {
    let name = |value: ValueId| graph.value(value).name.to_string();
    let pair = |c: Carried| Some((name(c.input), name(c.output?)));
    let pairs: Vec<(String, String)> = carried(graph).into_iter().filter_map(pair).collect();
    serde_json::to_string(&pairs).expect("names are JSON")
}

/// Whether the node is a copy that gives a value a place of its own.
pub(crate) fn is_copy(graph: &Graph, node: NodeId) -> bool {
    graph.node(node).op.key() == (LMSC_DOMAIN, "Copy")
}

/// The graph input or initializer that the value is, or is a view of.
pub(crate) fn given(graph: &Graph, mut value: ValueId) -> Option<ValueId> {
    while let Some(producer) = graph.producer(value) {
        let node = graph.node(producer);
        if !node.op.effects().view || node.results.first() != Some(&Some(value)) {
            return None;
        }
        value = node.operands.first().copied().flatten()?;
    }
    Some(value)
}

#[cfg(test)]
mod tests;
