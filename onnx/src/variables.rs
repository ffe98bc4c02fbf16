//! State of a step: which outputs are the next values of which inputs, and the order that in-place updates need.

use std::collections::BTreeMap;

use crate::file::Model;
use foldhash::{HashMap, HashMapExt, HashSet};
use lmsc_ir::{Def, Graph, NodeId, StorageId, Storages, Update, ValueId, reaches, words};

/// Suffixes by which exporters name the next value of an input.
const NEXT: &[&str] = &["_new", "_next", "_updated", ".new", ".next", ".updated", "_out"];

/// Operators that write element by element what they read element by element, so that their result may take the
/// place of an operand.
const ELEMENTWISE: &[&str] =
    &["Add", "Sub", "Mul", "Div", "Where", "Max", "Min", "Sum", "Cast", "Neg", "Sqrt"];

/// Why the state of a step is contradictory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// A pair that the caller named does not exist.
    #[error("the state {input}={output} (--state, or metadata `ai.lmsc.state`): {problem}")]
    NoSuchPair {
        /// The input that was named.
        input: String,
        /// The output that was named.
        output: String,
        /// What is wrong with them.
        problem: String,
    },
    /// Something reads a variable's old value after an operator has overwritten it in place.
    #[error(
        "node `{reader}` reads `{value}` after node `{writer}` has overwritten it in place, so what it reads is not \
         defined\nhelp: read the new value, which node `{writer}` defines, or read the old one before that node"
    )]
    ReadAfterWrite {
        /// The node that reads.
        reader: String,
        /// What it reads.
        value: String,
        /// The node that writes.
        writer: String,
    },
}

/// The pairs of state that the file's metadata states, then those that the caller does.
pub fn state_pairs(model: &Model, stated: &[(String, String)]) -> Vec<(String, String)> {
    let entry = model.proto.metadata_props.iter().find(|p| p.key() == crate::key::STATE);
    let pairs = entry.and_then(|p| serde_json::from_str::<Vec<(String, String)>>(p.value()).ok());
    let mut pairs = pairs.unwrap_or_default();
    pairs.extend(stated.iter().filter(|p| !pairs.contains(p)).cloned().collect::<Vec<_>>());
    pairs
}

/// Adds update edges for state that is carried by an input and an output, and orders what reads the old value of
/// any variable before its update.
///
/// `pairs` are `(input, output)` names that the caller or the file's metadata states; besides these, an output
/// named after an input of the same type with a suffix such as `_new` is its next value. The update is in place
/// where that is safe: the node that computes the next value works element by element, or does not read the old
/// one, and everything else that reads the old value can run before. Elsewhere the output stays a value of its own.
///
/// # Errors
/// [`StateError`] names the values and nodes.
pub fn settle(graph: &mut Graph, pairs: &[(String, String)]) -> Result<(), StateError> {
    let mut found = stated(graph, pairs)?;
    found.extend(by_name(graph, &found));
    if !found.is_empty() {
        in_place(graph, &found);
    }
    order(graph)
}

fn stated(graph: &Graph, pairs: &[(String, String)]) -> Result<Vec<(ValueId, ValueId)>, StateError> {
    let inputs: HashSet<ValueId> = graph.inputs.iter().copied().collect();
    let outputs: HashSet<ValueId> = graph.outputs.iter().copied().collect();
    let mut found = Vec::new();
    for (input, output) in pairs {
        let refuse = |problem: String| StateError::NoSuchPair {
            input: input.clone(),
            output: output.clone(),
            problem,
        };
        let a = graph.value_named(input).filter(|v| inputs.contains(v));
        let b = graph.value_named(output).filter(|v| outputs.contains(v));
        let instead = |name: &str, there_are: &[ValueId], many: &str| {
            words::instead(name, there_are.iter().map(|&v| &*graph.value(v).name), many)
        };
        let a = a.ok_or_else(|| {
            refuse(format!("there is no input `{input}`; {}", instead(input, &graph.inputs, "inputs")))
        })?;
        let b = b.ok_or_else(|| {
            refuse(format!("there is no output `{output}`; {}", instead(output, &graph.outputs, "outputs")))
        })?;
        let (from, to) = (&graph.value(a).ty, &graph.value(b).ty);
        if from != to {
            return Err(refuse(format!("the input is {from}, but the output {to}; expected one type")));
        }
        found.push((a, b));
    }
    Ok(found)
}

fn by_name(graph: &Graph, known: &[(ValueId, ValueId)]) -> Vec<(ValueId, ValueId)> {
    let inputs: HashSet<ValueId> = known.iter().map(|&(input, _)| input).collect();
    let outputs: HashSet<ValueId> = known.iter().map(|&(_, output)| output).collect();
    let mut found = Vec::new();
    for &output in &graph.outputs {
        let name = &graph.value(output).name;
        let input = NEXT.iter().find_map(|suffix| graph.value_named(name.strip_suffix(suffix)?));
        let Some(input) = input.filter(|&v| graph.def(v) == Def::Input) else { continue };
        let same_type = graph.value(input).ty == graph.value(output).ty;
        if same_type && !inputs.contains(&input) && !outputs.contains(&output) {
            found.push((input, output));
        }
    }
    found
}

/// Adds an update edge for every pair for which one is safe.
fn in_place(graph: &mut Graph, pairs: &[(ValueId, ValueId)]) {
    let storages = Storages::of(graph);
    let ticks = graph.ticks();
    let tick = |n: NodeId| ticks[n.as_u32() as usize];
    let last_read = last_reads(graph, &storages);
    let mut written: HashSet<StorageId> =
        graph.variables().into_iter().map(|variable| storages.storage(variable)).collect();
    let mut updates = Vec::new();
    for &(variable, next) in pairs {
        let Def::Result(writer, index) = graph.def(next) else { continue };
        let node = graph.node(writer);
        let storage = storages.storage(variable);
        let reads_old = node.reads().any(|v| storages.storage(v) == storage);
        let elementwise = node.op.domain().is_empty() && ELEMENTWISE.contains(&node.op.name());
        let own = !node.op.effects().view && storages.get(storages.storage(next)).root == next;
        let before = last_read[storage.as_u32() as usize] <= tick(writer);
        // What is on the host is overwritten by copies, and those say so.
        let here = graph.value(variable).place.is_host() == graph.value(next).place.is_host();
        if own && here && before && (elementwise || !reads_old) && written.insert(storage) {
            updates.push((writer, Update { variable, result: Some(index) }));
        }
    }
    for (writer, update) in updates {
        graph.add_update(writer, update);
    }
}

/// By storage, the tick of the last node that reads it; 0 for what nothing reads.
fn last_reads(graph: &Graph, storages: &Storages) -> Vec<u32> {
    let mut last = vec![0; storages.len()];
    for (tick, &id) in graph.order().iter().enumerate() {
        for value in graph.uses(id) {
            last[storages.storage(value).as_u32() as usize] = tick as u32;
        }
    }
    last
}

/// Adds control edges from what reads a variable's old value to what overwrites it.
fn order(graph: &mut Graph) -> Result<(), StateError> {
    let storages = Storages::of(graph);
    let ticks = graph.ticks();
    let tick = |n: NodeId| ticks[n.as_u32() as usize];
    // By storage, its writers in order; a value's version is how many of them came before it.
    let mut writers: BTreeMap<StorageId, Vec<NodeId>> = BTreeMap::new();
    let mut is_written = vec![false; storages.len()];
    let mut version: HashMap<ValueId, usize> = HashMap::new();
    for &id in graph.order() {
        for update in &graph.node(id).updates {
            let storage = storages.storage(update.variable);
            is_written[storage.as_u32() as usize] = true;
            let of_storage = writers.entry(storage).or_default();
            of_storage.push(id);
            if let Some(result) = update.result.and_then(|r| graph.node(id).results.get(r).copied().flatten())
            {
                version.insert(result, of_storage.len());
            }
        }
    }
    let mut pairs: Vec<(NodeId, NodeId)> = Vec::new();
    for &id in graph.order() {
        let node = graph.node(id);
        for value in graph.uses(id) {
            let storage = storages.storage(value);
            // Of most storages the first look tells.
            if !is_written[storage.as_u32() as usize] {
                continue;
            }
            let of_storage = &writers[&storage];
            let old = version.get(&value).copied().unwrap_or(0);
            if node.op.effects().view {
                node.defines().for_each(|view| _ = version.entry(view).or_insert(old));
            }
            let Some(&writer) = of_storage.get(old).filter(|&&w| w != id) else { continue };
            if tick(id) > tick(writer) {
                return Err(StateError::ReadAfterWrite {
                    reader: node.name.to_string(),
                    value: graph.value(value).name.to_string(),
                    writer: graph.node(writer).name.to_string(),
                });
            }
            pairs.push((id, writer));
        }
    }
    for of_storage in writers.values() {
        pairs.extend(of_storage.windows(2).map(|w| (w[0], w[1])));
    }
    let ordered = reaches(graph, &pairs);
    for ((reader, writer), ordered) in pairs.into_iter().zip(ordered) {
        if !ordered {
            graph.add_after(writer, reader);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_the_host_is_overwritten_by_copies_only() {
        let variables = |text: &str| {
            let mut graph = Graph::parse(text).unwrap();
            settle(&mut graph, &[]).unwrap();
            lmsc_ir::verify(&graph).unwrap_or_else(|e| panic!("{e}"));
            graph.variables().len()
        };
        let here = "g (float[4] w, float[4] g) => (float[4] w_new) { [add] float[4] w_new = Add(w, g) }";
        assert_eq!(variables(here), 1);
        let there = "g (float[4]@host w, float[4] g) => (float[4] w_new) {
            [in] float[4] w_in = ai.lmsc.SwapIn(w)
            [add] float[4] w_new = Add(w_in, g)
        }";
        assert_eq!(variables(there), 0);
    }
}
