use std::hash::{Hash, Hasher};

use foldhash::{HashMap, HashMapExt, HashSet};
use lmsc_ir::{Attr, Graph, Name, Node, NodeId, Op, Phase, Phases, StorageId, Storages, ValueId, words};

use crate::clean_up::{captured, is_function, not_planned};
use crate::{CallOption, Outcome, Pass, PassCx, PassError, PassKind};

const ACROSS_PHASES: CallOption = CallOption::flag(
    "across-phases",
    "whether a node also stands for an equal one of a later phase, and its result is held until then",
    false,
);

/// Merges nodes that compute the same: the same operator with the same attributes on the same operands.
///
/// By default, a node of the backward phase that repeats one of the forward phase is not merged: a model with
/// activation checkpointing repeats nodes so that the results are not held between the phases.
///
/// Random nodes, nodes with subgraphs and nodes that write are not merged. Neither are nodes whose results share
/// memory with a written variable, are outputs, or are read by subgraphs, which refer to values by name; nor nodes
/// with control edges of their own, on which other nodes may rely.
pub(crate) struct MergeCommonSubexpressions;

impl Pass for MergeCommonSubexpressions {
    fn name(&self) -> &'static str {
        "merge-common-subexpressions"
    }

    fn summary(&self) -> &'static str {
        "one node for all that compute the same of the same"
    }

    fn kind(&self) -> PassKind {
        PassKind::CleanUp
    }

    fn options(&self) -> &[CallOption] {
        &[ACROSS_PHASES]
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        not_planned(self.name(), graph)?;
        let merging = Merging::of(graph, cx);
        let mut first_of: HashMap<Key, Vec<NodeId>> = HashMap::new();
        let mut instead: HashMap<ValueId, ValueId> = HashMap::new();
        let mut merged: HashMap<NodeId, NodeId> = HashMap::new();
        for id in graph.order().to_vec() {
            for index in 0..graph.node(id).operands.len() {
                let operand = graph.node(id).operands[index];
                if let Some(&first) = operand.and_then(|operand| instead.get(&operand)) {
                    graph.set_operand(id, index, first);
                }
            }
            let Some(key) = merging.key(graph, id) else { continue };
            let alike = first_of.entry(key).or_default();
            let first = alike.iter().copied().find(|&first| same(graph, first, id));
            match first.filter(|_| merging.may_be_merged(graph, id)) {
                Some(first) => {
                    let results = |id: NodeId| graph.node(id).results.iter().copied();
                    instead
                        .extend(results(id).zip(results(first)).filter_map(|(old, new)| Some((old?, new?))));
                    merged.insert(id, first);
                }
                None => alike.push(id),
            }
        }
        if merged.is_empty() {
            return Ok(Outcome::default());
        }
        let order: Vec<NodeId> =
            graph.order().iter().copied().filter(|id| !merged.contains_key(id)).collect();
        for &id in &order {
            for before in graph.node(id).after.clone() {
                if let Some(&first) = merged.get(&before) {
                    graph.redirect_after(id, before, &[first]);
                }
            }
        }
        graph.set_order(order);
        let remarks = vec![format!("merged {}", words::count(merged.len(), "node"))];
        Ok(Outcome { changed: true, remarks, ..Outcome::default() })
    }
}

/// The properties that merged nodes share. The last one is a hash of the attributes.
type Key = (Op, Vec<Option<ValueId>>, Option<Phase>, u64);

/// Facts about the graph before the pass changes it.
struct Merging {
    storages: Storages,
    /// Storages that a node writes.
    written: HashSet<StorageId>,
    /// Values whose names must not change.
    named: HashSet<ValueId>,
    /// The phases, if merged nodes must belong to the same one.
    phases: Option<Phases>,
}

impl Merging {
    fn of(graph: &Graph, cx: &PassCx) -> Merging {
        let storages = Storages::of(graph);
        let written = graph.order().iter().flat_map(|&id| {
            let node = graph.node(id);
            let operands = node.op.effects().writes.iter().map(|&(operand, _)| operand);
            let operands = operands.filter_map(|index| node.operands.get(index).copied().flatten());
            node.updates.iter().map(|update| update.variable).chain(operands)
        });
        let written = written.map(|value| storages.storage(value)).collect();
        let mut named = captured(graph);
        named.extend(&graph.outputs);
        let phases = (!cx.flag(&ACROSS_PHASES)).then(|| Phases::of(graph, |node| cx.scope(node)));
        Merging { storages, written, named, phases }
    }

    /// The key of the node, if it may be merged; only nodes of the same key are merged.
    fn key(&self, graph: &Graph, id: NodeId) -> Option<Key> {
        let node = graph.node(id);
        let is_written = |value: ValueId| self.written.contains(&self.storages.storage(value));
        if !is_function(node) || node.defines().any(is_written) {
            return None;
        }
        let phase = self.phases.as_ref().map(|phases| phases.phase(id));
        Some((node.op.clone(), node.operands.to_vec(), phase, hash(&node.attributes)))
    }

    /// Whether another node may replace this one.
    fn may_be_merged(&self, graph: &Graph, id: NodeId) -> bool {
        let node = graph.node(id);
        node.after.is_empty() && !node.defines().any(|value| self.named.contains(&value))
    }
}

/// Whether `first`, a node of the same key, has all results of `other`.
fn same(graph: &Graph, first: NodeId, other: NodeId) -> bool {
    let (first, other) = (graph.node(first), graph.node(other));
    let has = |(index, result): (usize, &Option<ValueId>)| match result {
        Some(wanted) => first.results.get(index).copied().flatten().is_some_and(|found| {
            let (found, wanted) = (graph.value(found), graph.value(*wanted));
            found.ty == wanted.ty && found.place == wanted.place
        }),
        None => true,
    };
    same_attributes(first, other) && other.results.iter().enumerate().all(has)
}

fn same_attributes(a: &Node, b: &Node) -> bool {
    let has = |(name, value): &(Name, Attr)| b.attribute(name) == Some(value);
    a.attributes.len() == b.attributes.len() && a.attributes.iter().all(has)
}

/// A hash that does not depend on the order of the attributes; of long lists it includes only the lengths.
fn hash(attributes: &[(Name, Attr)]) -> u64 {
    let of = |(name, attr): &(Name, Attr)| {
        let mut hasher = std::hash::DefaultHasher::new();
        name.hash(&mut hasher);
        match attr {
            Attr::Int(value) => value.hash(&mut hasher),
            Attr::Float(value) => value.0.to_bits().hash(&mut hasher),
            Attr::String(text) => text.hash(&mut hasher),
            Attr::Ints(values) => values.hash(&mut hasher),
            Attr::Floats(values) => values.len().hash(&mut hasher),
            Attr::Strings(values) => values.len().hash(&mut hasher),
            Attr::Tensor(ty, data) => (ty, data.digest()).hash(&mut hasher),
            Attr::Opaque(data) => data.digest().hash(&mut hasher),
        }
        hasher.finish()
    };
    attributes.iter().map(of).fold(0, u64::wrapping_add)
}
