//! Finds the swaps, recomputed nodes and functions that are left after another program has optimized a model.
//!
//! Optimizers rename values, fuse operators, inline functions and drop metadata. So everything is searched twice: by the name of
//! the value that it defines, and by structure ([`Structure`]), which ignores names but falls back on them behind fused
//! operators.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use lmsc_ir::Data;
use prost::Message;

use crate::functions::Ours;
use crate::proto::{FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto};
use crate::{LMSC_DOMAIN, copy, key};

/// The swaps, recomputed nodes and functions of a model, and how many survived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survival {
    /// Swap-outs of the original.
    pub swap_outs: usize,
    /// Swap-outs that are left.
    pub swap_outs_left: usize,
    /// Swap-ins of the original.
    pub swap_ins: usize,
    /// Swap-ins that are left.
    pub swap_ins_left: usize,
    /// Recomputed nodes of the original.
    pub recomputed: usize,
    /// Recomputed nodes that are left.
    pub recomputed_left: usize,
    /// Model-local functions that nodes of the original call.
    pub functions: usize,
    /// Functions that are still called and still defined. A function that was inlined is not lost: its nodes exist.
    pub functions_left: usize,
    /// Names of lost nodes, swaps first, in the original's order; then functions that are called and not defined.
    pub gone: Vec<String>,
}

impl Survival {
    /// Whether every swap and every recomputed node is left, and no function is missing.
    pub fn is_whole(&self) -> bool {
        self.gone.is_empty()
    }
}

/// Which swaps, recomputed nodes and functions of `original` survived in `optimized`.
///
/// A swap is left if the value that it defines is still defined by a node with the same operator, and that node still reads the
/// same value: an optimizer that removes a swap either drops the value or reads past it. A swap-out may read another value if its
/// old operand is not computed any more: the optimizer has found an equal value, such as the operand of two transpositions. A
/// copy may be merged with that of an equal value, if all readers of its swapped-in value read the other one instead. Operators
/// are compared without their domain, since the optimizer may have inlined functions: a function whose last node is a copy is
/// left if such a node defines the value. A call of a function that is not defined computes nothing.
///
/// A swap whose names are lost is left if there are as many copies of the same tensor. Recomputed nodes are left if as many nodes
/// compute the same: an optimizer that finds them equal merges them.
pub fn survival(original: &ModelProto, optimized: &ModelProto) -> Survival {
    let mut result = Survival::default();
    let mut table = HashMap::new();
    let before = Structure::of(original, &mut table, None);
    let after = Structure::of(optimized, &mut table, Some(&before));
    swaps(original, optimized, (&before, &after), &mut result);
    recomputed(original, optimized, (&before, &after), &mut result);
    functions(original, optimized, &mut result);
    result
}

fn nodes(model: &ModelProto) -> impl Iterator<Item = &NodeProto> {
    model.graph.iter().flat_map(|g| &g.node)
}

fn swaps(
    original: &ModelProto,
    optimized: &ModelProto,
    (before, after): (&Structure<'_>, &Structure<'_>),
    result: &mut Survival,
) {
    let defined: HashMap<&str, &NodeProto> =
        nodes(optimized).flat_map(|n| n.output.iter().map(move |o| (o.as_str(), n))).collect();
    let computed: HashSet<&str> = nodes(original).flat_map(|n| &n.output).map(String::as_str).collect();
    let used = used(original);
    let mut copies = after.copies.clone();
    for (key, count) in &before.other_copies {
        copies.entry(*key).and_modify(|copies| *copies = copies.saturating_sub(*count));
    }
    let mut swaps = Vec::new();
    for (index, node) in nodes(original).enumerate() {
        let Some(is_out) = swap_kind(node) else { continue };
        if !node.output.iter().any(|output| used.contains(output.as_str())) {
            continue;
        }
        let called = original.functions.iter().find(|function| {
            let ours = Ours::of_function(function);
            ours.is_some() && ours == Ours::of_node(node)
        });
        let inlined = called.and_then(|function| function.node.last()).filter(|last| copy::is_copy(last));
        let now = node.output.first().and_then(|o| defined.get(o.as_str()));
        let left = now.filter(|now| !is_undefined_call(optimized, now)).is_some_and(|now| {
            let read = node.input.first().map_or("", String::as_str);
            let replaced = is_out && computed.contains(read) && !defined.contains_key(read);
            now.op_type() == node.op_type() && (now.input.first() == node.input.first() || replaced)
                || inlined.is_some_and(|copy| now.op_type() == copy.op_type())
        });
        let left = left || merged(original, &defined, node, is_out);
        let key = before.nodes[index];
        if left {
            copies.entry(key).and_modify(|copies| *copies = copies.saturating_sub(1));
        }
        swaps.push((node, is_out, key, left));
    }
    for (node, is_out, key, by_name) in swaps {
        let left = by_name
            || copies.get_mut(&key).is_some_and(|copies| {
                let any = *copies > 0;
                *copies = copies.saturating_sub(1);
                any
            });
        let (all, some) = if is_out {
            (&mut result.swap_outs, &mut result.swap_outs_left)
        } else {
            (&mut result.swap_ins, &mut result.swap_ins_left)
        };
        *all += 1;
        *some += usize::from(left);
        if !left {
            result.gone.push(node.name().to_owned());
        }
    }
}

/// The nodes of a model that compute the same.
#[derive(Default)]
struct Alike<'m> {
    /// Number of them that still have their names.
    named: usize,
    /// The recomputed nodes among them, with their positions.
    again: Vec<(usize, &'m NodeProto)>,
}

fn recomputed(
    original: &ModelProto,
    optimized: &ModelProto,
    (before, after): (&Structure<'_>, &Structure<'_>),
    result: &mut Survival,
) {
    let count = |structure: &Structure<'_>| {
        let mut counts: HashMap<u32, usize> = HashMap::new();
        structure.nodes.iter().for_each(|&class| *counts.entry(class).or_default() += 1);
        counts
    };
    let (all, left) = (count(before), count(after));
    let defined: HashSet<&str> = nodes(optimized).flat_map(|n| &n.output).map(String::as_str).collect();
    let is_named = |node: &NodeProto| node.output.iter().any(|o| defined.contains(o.as_str()));
    let mut classes: BTreeMap<u32, Alike<'_>> = BTreeMap::new();
    for (index, node) in nodes(original).enumerate() {
        let Alike { named, again } = classes.entry(before.nodes[index]).or_default();
        *named += usize::from(is_named(node));
        if node.metadata_props.iter().any(|p| p.key() == key::RECOMPUTES) {
            again.push((index, node));
        }
    }
    let mut gone = Vec::new();
    for (class, Alike { named, mut again }) in classes {
        let there = named.max(left.get(&class).copied().unwrap_or(0));
        let lost = all[&class].saturating_sub(there).min(again.len());
        result.recomputed += again.len();
        result.recomputed_left += again.len() - lost;
        again.sort_by_key(|&(index, node)| (is_named(node), index));
        gone.extend(again.into_iter().take(lost));
    }
    gone.sort_by_key(|&(index, _)| index);
    result.gone.extend(gone.into_iter().map(|(_, node)| node.name().to_owned()));
}

/// The domain, the name and the overload of a function.
type Called<'m> = (&'m str, &'m str, &'m str);

fn call(node: &NodeProto) -> Called<'_> {
    (node.domain(), node.op_type(), node.overload())
}

fn definition<'m>(model: &'m ModelProto, called: Called<'_>) -> Option<&'m FunctionProto> {
    model.functions.iter().find(|f| (f.domain(), f.name(), f.overload()) == called)
}

/// Identifies a function independently of its name: by its operands, results and operators.
fn shape(function: &FunctionProto) -> String {
    let ops = function.node.iter().map(|n| format!(" {}::{}", n.domain(), n.op_type()));
    format!("{} to {}:{}", function.input.len(), function.output.len(), ops.collect::<String>())
}

/// Whether the node's function is defined and takes its operands: a program may have dropped unused operands.
fn is_defined(model: &ModelProto, node: &NodeProto) -> bool {
    definition(model, call(node)).is_some_and(|function| node.input.len() <= function.input.len())
}

fn functions(original: &ModelProto, optimized: &ModelProto, result: &mut Survival) {
    let calls = |model| nodes(model).map(call).collect::<BTreeSet<Called<'_>>>();
    let still_called = calls(optimized);
    let undefined: HashSet<Called<'_>> =
        nodes(optimized).filter(|n| !is_defined(optimized, n)).map(call).collect();
    let is_still_called = |f: &&FunctionProto| still_called.contains(&(f.domain(), f.name(), f.overload()));
    let others: HashSet<_> = optimized.functions.iter().filter(is_still_called).map(shape).collect();
    for called in calls(original) {
        let Some(function) = definition(original, called) else { continue };
        result.functions += 1;
        let is_called = still_called.contains(&called);
        // The function may have been renamed.
        let is_there = is_called && !undefined.contains(&called);
        if is_there || !is_called && others.contains(&shape(function)) {
            result.functions_left += 1;
        } else if is_called {
            result.gone.push(format!(
                "function {}::{}, which is called and not defined for that",
                called.0, called.1
            ));
        }
    }
}

/// Whether the node calls a function of ours that the model does not define.
fn is_undefined_call(model: &ModelProto, node: &NodeProto) -> bool {
    Ours::of_node(node).is_some() && !is_defined(model, node)
}

/// A model without names: the computations of its nodes, with copies of whole tensors erased.
struct Structure<'m> {
    /// For each value, the number of its contents, and the number of copies between it and the node that computed them.
    values: HashMap<&'m str, (u32, u32)>,
    /// For each node, the number of its computation; for a copy, that of its operand and the copy's index.
    nodes: Vec<u32>,
    /// For each result, the number of the node that defines it.
    producers: HashMap<&'m str, u32>,
    inputs: Vec<&'m str>,
    /// The shapes of functions, which do not depend on names.
    functions: HashMap<Called<'m>, String>,
    /// Number of copies, by their numbers.
    copies: BTreeMap<u32, usize>,
    /// Number of copies that are not swaps, by their numbers.
    other_copies: BTreeMap<u32, usize>,
}

/// The number of every key. Equal keys have equal numbers, in both models.
type Table = HashMap<Vec<u8>, u32>;

fn number(table: &mut Table, key: Vec<u8>) -> u32 {
    let fresh = table.len() as u32;
    *table.entry(key).or_insert(fresh)
}

impl<'m> Structure<'m> {
    /// The structure of the model. If it computes something that `original` does not, such as a fused operator, the results are
    /// identified by their names in the original.
    fn of(model: &'m ModelProto, table: &mut Table, original: Option<&Structure<'_>>) -> Structure<'m> {
        let mut structure = Structure {
            values: HashMap::new(),
            nodes: Vec::new(),
            producers: HashMap::new(),
            inputs: Vec::new(),
            functions: (model.functions.iter())
                .map(|f| ((f.domain(), f.name(), f.overload()), shape(f)))
                .collect(),
            copies: BTreeMap::new(),
            other_copies: BTreeMap::new(),
        };
        if let Some(graph) = &model.graph {
            structure.leaves(graph, table, original);
            for node in &graph.node {
                structure.node(model, node, table, original);
            }
        }
        structure
    }

    fn leaves(&mut self, graph: &'m GraphProto, table: &mut Table, original: Option<&Structure<'_>>) {
        for tensor in &graph.initializer {
            self.values.insert(tensor.name(), (number(table, constant(tensor)), 0));
        }
        self.inputs = graph.input.iter().map(|i| i.name()).filter(|n| !self.values.contains_key(n)).collect();
        for (index, &name) in self.inputs.iter().enumerate() {
            // An input is identified by its name in the original, or else by its position.
            let named = original.and_then(|o| o.inputs.iter().position(|input| *input == name));
            let key = format!("input {}", named.unwrap_or(index));
            self.values.insert(name, (number(table, key.into_bytes()), 0));
        }
    }

    fn node(
        &mut self,
        model: &ModelProto,
        node: &'m NodeProto,
        table: &mut Table,
        original: Option<&Structure<'_>>,
    ) {
        let swap = swap_kind(node).is_some() && !is_undefined_call(model, node);
        let is_copy = swap || copy::is_copy(node) && node.op_type() != "Identity";
        let is_whole = node.attribute.iter().all(|a| !matches!(a.name(), "begin" | "end"));
        if is_copy
            && is_whole
            && let ([from, ..], [to, ..]) = (&node.input[..], &node.output[..])
        {
            let (of, copies) = self.value(from, table);
            let key = number(table, format!("copy {copies} of {of}").into_bytes());
            self.values.insert(to, (of, copies + 1));
            self.count(key, swap);
            return;
        }
        let known = table.len();
        let key = self.key(node, table);
        let mut computes = number(table, key);
        if computes as usize >= known
            && let Some(original) = original
        {
            let named = node.output.iter().find_map(|o| original.producers.get(o.as_str()));
            computes = named.copied().unwrap_or(computes);
        }
        for (index, result) in node.output.iter().enumerate().filter(|(_, result)| !result.is_empty()) {
            let same_name = original.filter(|_| computes as usize >= known);
            let same_name = same_name.and_then(|o| o.values.get(result.as_str()));
            let of = same_name.filter(|(_, copies)| *copies == 0).map(|&(of, _)| of);
            let of = of.unwrap_or_else(|| number(table, format!("{index} of {computes}").into_bytes()));
            self.values.insert(result, (of, 0));
            if !is_copy {
                self.producers.insert(result, computes);
            }
        }
        if is_copy {
            self.count(computes, swap);
        } else {
            self.nodes.push(computes);
        }
    }

    fn count(&mut self, key: u32, swap: bool) {
        self.nodes.push(key);
        *self.copies.entry(key).or_default() += 1;
        *self.other_copies.entry(key).or_default() += usize::from(!swap);
    }

    /// The identity of the value of this name; an undefined value differs from all others.
    fn value(&self, name: &str, table: &mut Table) -> (u32, u32) {
        let named = || (number(table, format!("named {name}").into_bytes()), 0);
        self.values.get(name).copied().unwrap_or_else(named)
    }

    /// The computation of the node, without names.
    fn key(&self, node: &NodeProto, table: &mut Table) -> Vec<u8> {
        let domain = if node.domain() == "ai.onnx" { "" } else { node.domain() };
        let op = || format!("{domain}::{}:{}(", node.op_type(), node.overload());
        let mut key = self.functions.get(&call(node)).cloned().unwrap_or_else(op).into_bytes();
        for operand in &node.input {
            let of = if operand.is_empty() { u32::MAX } else { self.value(operand, table).0 };
            key.extend(of.to_le_bytes());
        }
        let mut attributes: Vec<Vec<u8>> = node.attribute.iter().map(Message::encode_to_vec).collect();
        attributes.sort();
        key.extend(attributes.concat());
        key
    }
}

/// The key of an initializer: its type and its elements.
fn constant(tensor: &TensorProto) -> Vec<u8> {
    let raw = tensor.raw_data.clone().map(|bytes| Data::Inline(bytes).digest());
    let rest = TensorProto { name: None, doc_string: None, raw_data: None, ..tensor.clone() };
    let mut key = b"constant ".to_vec();
    key.extend(raw.flatten().map(|digest| digest.to_string()).unwrap_or_default().into_bytes());
    key.extend(rest.encode_to_vec());
    key
}

/// Whether the optimizer has merged the copy with that of an equal value: the readers of its result read that of another copy of
/// its kind, or, for a swap-out, the readers of its swap-ins do.
fn merged(
    original: &ModelProto,
    defined: &HashMap<&str, &NodeProto>,
    node: &NodeProto,
    is_out: bool,
) -> bool {
    let Some(result) = node.output.first().filter(|result| !defined.contains_key(result.as_str())) else {
        return false;
    };
    let nodes = || original.graph.iter().flat_map(|g| &g.node);
    let brings = |value: &String| {
        let brought = nodes().any(|n| swap_kind(n) == Some(false) && n.output.first() == Some(value));
        brought && defined.get(value.as_str()).is_some_and(|now| now.op_type() == node.op_type())
    };
    let readers = nodes().flat_map(|n| (0..n.input.len()).map(move |i| (n, i)));
    let readers: Vec<(&NodeProto, usize)> = readers.filter(|&(n, i)| n.input[i] == *result).collect();
    !readers.is_empty()
        && readers.into_iter().all(|(reader, index)| {
            if is_out {
                swap_kind(reader) == Some(false) && merged(original, defined, reader, false)
            } else {
                reader.output.first().is_some_and(|output| {
                    defined.get(output.as_str()).and_then(|now| now.input.get(index)).is_some_and(brings)
                })
            }
        })
}

/// Values that lead to an output or to a node other than a copy. A copy that only returns a variable to its place for the next
/// step leads to neither: runtimes that ignore places drop it, and nothing is lost.
fn used(model: &ModelProto) -> HashSet<&str> {
    let graph = model.graph.iter();
    let mut used: HashSet<&str> = graph.clone().flat_map(|g| &g.output).map(|output| output.name()).collect();
    for node in graph.flat_map(|g| g.node.iter().rev()) {
        if swap_kind(node).is_none() || node.output.iter().any(|output| used.contains(output.as_str())) {
            used.extend(node.input.iter().map(String::as_str));
        }
    }
    used
}

/// Whether the node is a swap, and if so, whether it is a swap-out.
fn swap_kind(node: &NodeProto) -> Option<bool> {
    let stated = node.metadata_props.iter().find(|p| p.key() == key::KIND).map(|p| p.value());
    match (stated, node.domain() == LMSC_DOMAIN, node.op_type()) {
        (Some("swap_out"), ..) | (_, true, "SwapOut" | "SwapOutRange") => Some(true),
        (Some("swap_in"), ..) | (_, true, "SwapIn") => Some(false),
        (_, true, _) if matches!(Ours::of_node(node), Some(Ours::SwapInRange { .. })) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{StringStringEntryProto, ValueInfoProto};

    /// Nodes as `name: Op(operand) -> result`; `out` and `in` are swaps.
    fn model(nodes: &[&str]) -> ModelProto {
        let node = |text: &&str| {
            let (name, call) = text.split_once(": ").unwrap();
            let (call, result) = call.split_once(" -> ").unwrap();
            let (op, operand) = call.trim_end_matches(')').split_once('(').unwrap();
            let kind = ["out", "in"].contains(&name).then(|| format!("swap_{name}"));
            let entry = |kind| StringStringEntryProto { key: Some(key::KIND.to_owned()), value: Some(kind) };
            NodeProto {
                name: Some(name.to_owned()),
                op_type: Some(op.to_owned()),
                input: vec![operand.to_owned()],
                output: vec![result.to_owned()],
                metadata_props: kind.map(entry).into_iter().collect(),
                ..NodeProto::default()
            }
        };
        let graph = GraphProto { node: nodes.iter().map(node).collect(), ..GraphProto::default() };
        ModelProto { graph: Some(graph), ..ModelProto::default() }
    }

    fn prefixed(mut model: ModelProto) -> ModelProto {
        let graph = model.graph.as_mut().unwrap();
        for node in &mut graph.node {
            for name in node.input.iter_mut().chain(&mut node.output).chain(&mut node.name) {
                *name = format!("p/{name}");
            }
            node.metadata_props.clear();
        }
        for name in graph.input.iter_mut().chain(&mut graph.output).flat_map(|info| &mut info.name) {
            *name = format!("p/{name}");
        }
        model
    }

    fn with_input(mut model: ModelProto, name: &str) -> ModelProto {
        let info = ValueInfoProto { name: Some(name.to_owned()), ..ValueInfoProto::default() };
        model.graph.as_mut().unwrap().input.push(info);
        model
    }

    #[test]
    fn names_may_be_others() {
        let with = |nodes: &[&str]| with_input(model(nodes), "a");
        let (own, rest) = ("own: Max(a) -> x", "use: Relu(d) -> y");
        let original = with(&[own, "out: Max(a) -> h", "in: Max(h) -> d", rest]);
        let gone = |nodes: &[&str]| survival(&original, &prefixed(with(nodes))).gone;
        assert!(gone(&[own, "out: Max(a) -> h", "in: Sum(h) -> d", rest]).is_empty());
        assert_eq!(gone(&[own, "use: Relu(a) -> y"]), ["out", "in"], "the model's own copy is no swap");
        assert_eq!(gone(&[own, "out: Max(a) -> d", rest]), ["in"]);
        // Behind fused operators, names identify the values.
        let original =
            with(&["m: MatMul(a) -> b", "n: Add(b) -> c", "out: Max(c) -> h", "in: Max(h) -> d", rest]);
        let fused = with(&["g: Gemm(a) -> c", "copy: Sum(c) -> i", "copy: Sum(i) -> e", "use: Relu(e) -> y"]);
        assert!(survival(&original, &fused).gone.is_empty());
    }

    fn again(mut model: ModelProto, name: &str) -> ModelProto {
        let nodes = &mut model.graph.as_mut().unwrap().node;
        for node in nodes.iter_mut().filter(|n| n.name() == name) {
            crate::set_metadata(&mut node.metadata_props, key::RECOMPUTES, Some("its origin".to_owned()));
        }
        model
    }

    #[test]
    fn a_recomputed_node_merged_with_its_origin_counts_as_lost() {
        let (one, two) = ("one: Relu(a) -> b", "two: Relu(a) -> c");
        let with = |nodes: &[&str]| with_input(model(nodes), "a");
        let original = again(with(&[one, two, "use: Add(b) -> y", "use: Mul(c) -> z"]), "two");
        let left = |nodes: &[&str]| {
            let other = with(nodes);
            let found = [survival(&original, &other), survival(&original, &prefixed(other))];
            assert_eq!(found[0], found[1], "by name and by structure");
            (found[0].recomputed_left, found[0].gone.clone())
        };
        assert_eq!(left(&[one, two, "use: Add(b) -> y", "use: Mul(c) -> z"]), (1, vec![]));
        assert_eq!(left(&[one, "use: Add(b) -> y", "use: Mul(b) -> z"]), (0, vec!["two".to_owned()]));
    }

    #[test]
    fn a_function_that_is_called_must_be_there() {
        let call = |name: &str, read: &str, result: &str| NodeProto {
            name: Some(name.to_owned()),
            op_type: Some(name.to_owned()),
            domain: Some(LMSC_DOMAIN.to_owned()),
            input: vec![read.to_owned()],
            output: vec![result.to_owned()],
            ..NodeProto::default()
        };
        let mut original = model(&["use: Relu(d) -> y"]);
        original
            .graph
            .as_mut()
            .unwrap()
            .node
            .splice(0..0, [call("SwapOut", "a", "h"), call("SwapIn", "h", "d")]);
        let written =
            [Ours::SwapOut, Ours::SwapIn].map(|ours| ours.function(crate::SwapForm::Function, &original));
        original.functions = written.into();
        let left = |optimized: &ModelProto| {
            let found = survival(&original, optimized);
            (found.swap_outs_left, found.swap_ins_left, found.functions_left, found.gone)
        };
        assert_eq!(left(&original), (1, 1, 2, vec![]));
        let mut dropped = original.clone();
        dropped.functions.remove(0);
        let function = |name: &str| {
            let gone = format!("function ai.lmsc::{name}, which is called and not defined for that");
            vec![name.to_owned(), gone]
        };
        assert_eq!(left(&dropped), (0, 1, 1, function("SwapOut")));
        let mut fewer = original.clone();
        fewer.functions[1].input.clear();
        assert_eq!(left(&fewer), (1, 0, 1, function("SwapIn")));
        let mut renamed = prefixed(original.clone());
        renamed.graph.as_mut().unwrap().node[..2]
            .iter_mut()
            .for_each(|n| n.op_type.as_mut().unwrap().push('_'));
        renamed.functions.iter_mut().for_each(|f| f.name.as_mut().unwrap().push('_'));
        assert_eq!(left(&renamed).2, 2);
        let inlined = model(&["i: Identity(a) -> h", "j: Identity(h) -> d", "use: Relu(d) -> y"]);
        assert_eq!(left(&inlined), (1, 1, 0, vec![]));
    }

    #[test]
    fn a_swap_out_may_read_an_equal_value_if_its_own_is_gone() {
        let (t1, t2) = ("t1: Transpose(a) -> b", "t2: Transpose(b) -> c");
        let rest = ["in: Max(h) -> d", "use: Relu(d) -> y"];
        let with = |nodes: &[&str]| model(&[nodes, &rest].concat());
        let original = with(&[t1, t2, "out: Max(c) -> h"]);
        let gone = |nodes: &[&str]| survival(&original, &with(nodes)).gone;
        assert!(gone(&[t1, t2, "out: Max(c) -> h"]).is_empty());
        assert!(gone(&["out: Max(a) -> h"]).is_empty());
        assert_eq!(gone(&[t1, t2, "out: Max(a) -> h"]), ["out"], "it reads past what is there");
        assert_eq!(gone(&["out: Relu(a) -> h"]), ["out"], "it is no copy");
        let past = model(&["out: Max(a) -> h", "in: Max(a) -> d", "use: Relu(d) -> y"]);
        assert_eq!(survival(&original, &past).gone, ["in"], "what comes back has left");
    }

    #[test]
    fn copies_of_equal_values_may_become_one() {
        let (one, two) = (["out: Max(a) -> h", "in: Max(h) -> d"], ["out: Max(b) -> i", "in: Max(i) -> e"]);
        let original = model(&[&one[..], &two, &["use: Relu(d) -> y", "use: Relu(e) -> z"]].concat());
        let gone = |reads: [&str; 2]| {
            let uses = reads.map(|read| format!("use: Relu({read}) -> "));
            let uses = [uses[0].clone() + "y", uses[1].clone() + "z"];
            survival(&original, &model(&[&one[..], &[&uses[0], &uses[1]]].concat())).gone
        };
        assert!(gone(["d", "d"]).is_empty());
        assert_eq!(gone(["d", "b"]), ["out", "in"], "it is read past what was to bring it back");
        assert_eq!(gone(["d", "h"]), ["out", "in"], "what is on the host did not come back");
    }
}
