//! Expands training operators of onnxruntime and of lmsc into operators of ONNX.

mod attention;
mod builder;
mod recurrent;
mod rules;

use std::collections::{BTreeMap, BTreeSet};

use builder::{Builder, Constants};
use lmsc_ir::{Graph, NodeId, Op, Phase, StorageId, Storages, Update, ValueId, nhwc, reaches, words};

use crate::clean_up::{not_older, not_planned};
use crate::{CallOption, Outcome, Pass, PassCx, PassError, PassKind};

/// Expansions pass the axes of reductions as an operand, which ONNX's operators take since this version.
const OPSET: i64 = 13;

const GRADIENTS: CallOption = CallOption::flag(
    "gradients",
    "whether operators that occur in the backward phase alone are expanded",
    true,
);
const OPTIMIZERS: CallOption =
    CallOption::flag("optimizers", "whether operators that update variables are expanded", true);

/// Replaces gradient and optimizer operators that only onnxruntime-training has by standard operators that compute
/// the same.
///
/// A node without a rule, or whose attributes or types its rule does not take, stays and is counted in a remark.
/// The graph must not be planned yet.
pub(crate) struct ExpandTrainingOps;

impl Pass for ExpandTrainingOps {
    fn name(&self) -> &'static str {
        "expand-training-ops"
    }

    fn summary(&self) -> &'static str {
        "gradient and optimizer operators of onnxruntime as standard ones, for runtimes that lack them"
    }

    fn kind(&self) -> PassKind {
        PassKind::Operators
    }

    fn options(&self) -> &[CallOption] {
        &[GRADIENTS, OPTIMIZERS]
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        not_older(self.name(), graph, OPSET)?;
        not_planned(self.name(), graph)?;
        let mut counts = Counts::default();
        // Gradients with channels last become those with channels first, which are expanded in their turn.
        while round(graph, cx, &mut counts) {}
        let changed = !counts.expanded.is_empty();
        let remarks = [remark("expanded", &counts.expanded), remark("left", &counts.left)].concat();
        Ok(Outcome { changed, remarks, ..Outcome::default() })
    }
}

/// Nodes by operator.
#[derive(Default)]
struct Counts {
    expanded: BTreeMap<String, usize>,
    left: BTreeMap<String, usize>,
}

/// Expands each node that has a rule, and returns whether the rules added nodes that may have one.
fn round(graph: &mut Graph, cx: &PassCx, counts: &mut Counts) -> bool {
    let captured: BTreeSet<ValueId> =
        graph.order().iter().flat_map(|&id| &graph.node(id).captures).copied().collect();
    let mut constants = Constants::default();
    let mut order = Vec::with_capacity(graph.order().len());
    let mut given: BTreeMap<ValueId, ValueId> = BTreeMap::new();
    let mut parts: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    let mut again = false;
    counts.left.clear();
    let is_asked_for = |op: &Op| match op.effects().phase {
        Some(Phase::Backward) => cx.flag(&GRADIENTS),
        Some(Phase::Update) => cx.flag(&OPTIMIZERS),
        _ => true,
    };
    for id in graph.order().to_vec() {
        let op = graph.node(id).op.clone();
        let Some(rule) = rules::rule(op.key()).filter(|_| is_asked_for(&op)) else {
            if !op.domain().is_empty() || op.effects().phase.is_some() {
                *counts.left.entry(op.to_string()).or_default() += 1;
            }
            order.push(id);
            continue;
        };
        let by_name = graph.node(id).defines().any(|value| captured.contains(&value));
        let mut builder = Builder::new(graph, &mut constants, id);
        match (!by_name).then(|| rule(&mut builder)).flatten() {
            Some(()) => {
                let built = builder.finish();
                for before in graph.node(id).after.clone() {
                    built.nodes.iter().for_each(|&node| graph.add_after(node, before));
                }
                order.extend(&built.nodes);
                parts.insert(id, built.nodes);
                for update in graph.node(id).updates.clone() {
                    let Update { variable, result } = update;
                    let index = result.or_else(|| rules::written(graph, id, variable));
                    let new = index.and_then(|index| built.results.get(&index)).copied();
                    let producer = new.and_then(|new| graph.producer(new));
                    let producer = producer.expect("a rule gives what is written");
                    graph.add_update(producer, Update { variable, result: Some(0) });
                }
                for (index, result) in graph.node(id).results.clone().into_iter().enumerate() {
                    if let (Some(old), Some(&new)) = (result, built.results.get(&index)) {
                        given.insert(old, new);
                    }
                }
                *counts.expanded.entry(op.to_string()).or_default() += 1;
                again |= nhwc::of(&op).is_some();
            }
            None => {
                builder.forget();
                *counts.left.entry(op.to_string()).or_default() += 1;
                order.push(id);
            }
        }
    }
    if parts.is_empty() {
        return false;
    }
    graph.set_order(order.clone());
    for node in order {
        for index in 0..graph.node(node).operands.len() {
            let operand = graph.node(node).operands[index];
            if let Some(&new) = operand.and_then(|old| given.get(&old)) {
                graph.set_operand(node, index, new);
            }
        }
        for before in graph.node(node).after.clone() {
            if let Some(parts) = parts.get(&before) {
                graph.redirect_after(node, before, parts);
            }
        }
    }
    for output in &mut graph.outputs {
        *output = given.get(output).copied().unwrap_or(*output);
    }
    for (&old, &new) in &given {
        let name = graph.value(old).name.clone();
        let other = graph.fresh_value_name(&format!("{name}_was"));
        graph.rename(old, other);
        graph.rename(new, name);
    }
    give_updates(graph, parts.into_values().flatten());
    order_updates(graph);
    again
}

/// Makes the new values of variables that these nodes compute graph outputs: operators of ONNX write nothing in
/// place.
fn give_updates(graph: &mut Graph, nodes: impl Iterator<Item = NodeId>) {
    let updates =
        |id: NodeId| graph.node(id).updates.iter().map(move |update| (id, *update)).collect::<Vec<_>>();
    for (id, Update { variable, result }) in nodes.flat_map(updates).collect::<Vec<_>>() {
        let new = result.and_then(|index| graph.node(id).results.get(index).copied().flatten());
        let Some(new) = new.filter(|new| !graph.outputs.contains(new)) else { continue };
        let name = graph.fresh_value_name(&format!("{}_new", graph.value(variable).name));
        graph.rename(new, name);
        graph.outputs.push(new);
    }
}

/// Adds edges so that a node that writes a variable waits for all readers of its old value: an expanded node that
/// read and wrote it may now be several nodes.
fn order_updates(graph: &mut Graph) {
    let storages = Storages::of(graph);
    let mut readers: BTreeMap<StorageId, Vec<NodeId>> = BTreeMap::new();
    let mut pairs = Vec::new();
    for &id in graph.order() {
        let node = graph.node(id);
        for update in &node.updates {
            let before = readers.get(&storages.storage(update.variable));
            pairs.extend(before.into_iter().flatten().map(|&reader| (reader, id)));
        }
        for value in graph.uses(id) {
            readers.entry(storages.storage(value)).or_default().push(id);
        }
    }
    for (&(reader, id), ordered) in pairs.iter().zip(reaches(graph, &pairs)) {
        if !ordered {
            graph.add_after(id, reader);
        }
    }
}

/// The remark that counts nodes by operator; empty if there are none.
fn remark(what: &str, counts: &BTreeMap<String, usize>) -> Vec<String> {
    let list: Vec<String> = counts.iter().map(|(op, count)| format!("{count} {op}")).collect();
    let total = words::count(counts.values().sum(), "node");
    if list.is_empty() { Vec::new() } else { vec![format!("{what} {total}: {}", list.join(", "))] }
}
