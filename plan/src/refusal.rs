//! Why a step cannot run within its memory, in words.

use std::collections::HashSet;
use std::fmt;

use lmsc_ir::{Bytes, Graph, NodeId, StorageId, Storages, ValueId};

/// Why no plan of a planner fits a budget: the node with the largest need, and its composition.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The requested budget.
    pub budget: Bytes,
    /// Name of the planner, to complete "the smallest budget that … reaches".
    pub by: String,
    /// The smallest budget that the planner fits.
    pub smallest: Bytes,
    /// The node during which those bytes are needed; none in a graph without nodes.
    pub node: Option<NodeId>,
    /// Inputs and initializers that are resident throughout.
    pub resident: Bytes,
    /// The values that the node reads, without resident storages; each storage once.
    pub operands: Vec<(ValueId, Bytes)>,
    /// The values that the node defines; each storage once.
    pub results: Vec<(ValueId, Bytes)>,
    /// The operator's workspace.
    pub workspace: Bytes,
    /// Other bytes that are live while the node runs.
    pub others: Bytes,
}

impl Refusal {
    /// The refusal of a budget, because a node needs the smallest one at once. `stays` tells which storages are resident.
    pub fn new(
        by: impl Into<String>,
        graph: &Graph,
        storages: &Storages,
        (resident, stays): (Bytes, impl Fn(StorageId) -> bool),
        workspace: Bytes,
        (budget, smallest): (Bytes, Bytes),
        node: Option<NodeId>,
    ) -> Refusal {
        let mut seen = HashSet::new();
        let mut list = |values: &mut dyn Iterator<Item = ValueId>| {
            let mut listed = Vec::new();
            for value in values {
                let storage = storages.storage(value);
                let facts = storages.get(storage);
                if !stays(storage) && !facts.on_host && seen.insert(storage) {
                    listed.push((value, facts.bytes));
                }
            }
            listed
        };
        let operands = list(&mut node.into_iter().flat_map(|n| graph.node(n).reads()));
        let results = list(&mut node.into_iter().flat_map(|n| graph.node(n).defines()));
        let own: Bytes = operands.iter().chain(&results).map(|(_, bytes)| *bytes).sum();
        let others = smallest.saturating_sub(resident).saturating_sub(workspace).saturating_sub(own);
        Refusal { budget, by: by.into(), smallest, node, resident, operands, results, workspace, others }
    }

    /// The smallest budget that the planner reaches when bytes are counted, in words.
    pub fn smallest(&self) -> String {
        let Refusal { by, smallest, .. } = self;
        format!("The smallest budget that {by} reaches is {smallest} ({} bytes).", smallest.0)
    }

    /// The refusal, in words.
    pub fn describe(&self, graph: &Graph) -> String {
        let Some(node) = self.node.map(|node| graph.node(node)) else {
            return format!(
                "does not fit {}: inputs, parameters and state, which are there throughout, need {}",
                self.budget, self.smallest
            );
        };
        let list = |values: &[(ValueId, Bytes)]| {
            let total: Bytes = values.iter().map(|(_, b)| *b).sum();
            let mut text = format!("{total}");
            for (i, (value, bytes)) in values.iter().take(4).enumerate() {
                text +=
                    &format!("{}`{}` {bytes}", if i == 0 { " (" } else { ", " }, graph.value(*value).name);
            }
            match values.len() {
                0 => text,
                n if n > 4 => text + ", …)",
                _ => text + ")",
            }
        };
        format!(
            "does not fit {}: `{}` ({}) needs {} at once\n  \
             resident (inputs, parameters, state): {}\n  \
             its operands: {}\n  \
             its results: {}\n  \
             its workspace: {}\n  \
             live beside it: {}",
            self.budget,
            node.name,
            node.op,
            self.smallest,
            self.resident,
            list(&self.operands),
            list(&self.results),
            self.workspace,
            self.others,
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "does not fit {}; the smallest budget that {} reaches is {}",
            self.budget, self.by, self.smallest
        )
    }
}
