//! The state of a step, as reports show it.

use lmsc_ir::words::count;
use lmsc_ir::{Bytes, Graph, Phase, Phases, Storages, ValueId};
use lmsc_onnx::{Carried, How};
use serde::Serialize;

/// A variable: an input that is kept from step to step.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StateFacts {
    /// The input's name.
    pub input: String,
    /// The name of the output that is its next value, if there is one.
    pub output: Option<String>,
    /// The node that writes the next value.
    pub node: String,
    /// Whether that node copies the next value from another storage; otherwise it computes the value in place.
    pub copied: bool,
    /// The size of the variable.
    pub bytes: u64,
}

impl StateFacts {
    /// The variables of the graph, in order of its inputs.
    pub fn of(graph: &Graph) -> Vec<StateFacts> {
        let fact = |c: Carried| {
            let (node, copied) = match c.how {
                How::InPlace(node) => (node, false),
                How::Copied(node) => (node, true),
            };
            let name = |value: ValueId| graph.value(value).name.to_string();
            StateFacts {
                input: name(c.input),
                output: c.output.map(name),
                node: graph.node(node).name.to_string(),
                copied,
                bytes: c.bytes.0,
            }
        };
        lmsc_onnx::carried(graph).into_iter().map(fact).collect()
    }

    /// The input, the output, and how the value is carried to the next step, in a line.
    fn to_text(&self) -> String {
        let output = self.output.as_ref().map_or_else(|| "no output".to_owned(), |o| format!("`{o}`"));
        let how = if self.copied { "copied by" } else { "in place by" };
        let bytes = Bytes(self.bytes).to_string();
        format!("{bytes:>10}  `{}` <- {output}, {how} `{}`", self.input, self.node)
    }
}

/// The number and bytes of the variables, and the number of those that are copied.
pub(crate) fn summary(state: &[StateFacts]) -> String {
    let sum = |copied: bool| -> Bytes {
        state.iter().filter(|s| s.copied || !copied).map(|s| Bytes(s.bytes)).sum()
    };
    let all = format!("{} of {}", state.len(), sum(false));
    match state.iter().filter(|s| s.copied).count() {
        0 => all,
        copies => format!("{all}, {copies} of them ({}) by a copy", sum(true)),
    }
}

/// Number of variables that the table of `lmsc inspect` shows.
const SHOWN: usize = 12;

/// The variables, one per line; copied ones first, as they cost memory and time.
pub(crate) fn table(state: &[StateFacts]) -> Vec<String> {
    let (copied, in_place): (Vec<&StateFacts>, Vec<&StateFacts>) = state.iter().partition(|s| s.copied);
    let mut lines: Vec<String> =
        copied.into_iter().chain(in_place).take(SHOWN).map(StateFacts::to_text).collect();
    if let more @ 1.. = state.len().saturating_sub(SHOWN) {
        lines.push(format!("and {more} more; --json lists them"));
    }
    lines
}

/// The warning for a graph that does not train: it has no backward pass.
pub(crate) fn is_inference(graph: &Graph) -> Option<String> {
    let is_inference = !graph.order().is_empty() && !Phases::of(graph, |_| None).trains();
    is_inference.then(|| "no backward pass: this is inference, not a training step".to_owned())
}

/// The warning for a graph that trains but learns nothing: no parameter that the forward pass reads gets a new
/// value.
pub(crate) fn learns_nothing(graph: &Graph) -> Option<String> {
    let phases = Phases::of(graph, |_| None);
    if !phases.trains() {
        return None;
    }
    let storages = Storages::of(graph);
    let mut read = vec![false; storages.len()];
    let mut written = vec![false; storages.len()];
    for &id in graph.order() {
        let forward = phases.phase(id) == Phase::Forward;
        for value in graph.uses(id).filter(|_| forward) {
            read[storages.storage(value).as_u32() as usize] = true;
        }
        for update in graph.node(id).updates.iter().filter(|_| !forward) {
            written[storages.storage(update.variable).as_u32() as usize] = true;
        }
    }
    if read.iter().zip(&written).any(|(read, written)| *read && *written) {
        return None;
    }
    let kept = match graph.variables().len() {
        0 => "nothing is kept from step to step".to_owned(),
        some => format!("the step keeps {}, but no parameter", count(some, "variable")),
    };
    Some(format!("nothing is learned: {kept}"))
}
