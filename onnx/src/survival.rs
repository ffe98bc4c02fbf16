//! Which swaps are left after another program has optimized a model.

use std::collections::{HashMap, HashSet};

use crate::functions::Ours;
use crate::proto::{ModelProto, NodeProto};
use crate::{LMSC_DOMAIN, copy, key};

/// What became of the swaps of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survival {
    /// Swap-outs of the original.
    pub swap_outs: usize,
    /// Those that are left.
    pub swap_outs_left: usize,
    /// Swap-ins of the original.
    pub swap_ins: usize,
    /// Those that are left.
    pub swap_ins_left: usize,
    /// Names of swaps that are gone, in the original's order.
    pub gone: Vec<String>,
}

impl Survival {
    /// Whether every swap is left.
    pub fn is_whole(&self) -> bool {
        self.gone.is_empty()
    }
}

/// What became of the swaps of `original` in `optimized`.
///
/// A swap is left if the value that it defines is still defined by a node that computes the same operator, and
/// what it reads is still the value that it read: an optimizer that removes a swap either drops the value or
/// reads past it. A swap-out may read another value where nothing computes its own any more: the optimizer has found one
/// that is equal, such as the operand of two transpositions. A copy may be one with that of an equal value, where all that
/// read what it brought back read what the other one brings. Operators are compared without their domain, since the optimizer may have inlined functions: a
/// function whose last node copies is left if such a node defines the value.
pub fn survival(original: &ModelProto, optimized: &ModelProto) -> Survival {
    let empty = Vec::new();
    let nodes = optimized.graph.as_ref().map_or(&empty, |g| &g.node);
    let defined: HashMap<&str, &NodeProto> =
        nodes.iter().flat_map(|n| n.output.iter().map(move |o| (o.as_str(), n))).collect();
    let computed: HashSet<&str> =
        original.graph.iter().flat_map(|g| &g.node).flat_map(|n| &n.output).map(String::as_str).collect();
    let used = used(original);
    let mut result = Survival::default();
    for node in original.graph.iter().flat_map(|g| &g.node) {
        let Some(is_out) = swap_kind(node) else { continue };
        if !node.output.iter().any(|output| used.contains(output.as_str())) {
            continue;
        }
        let called = original.functions.iter().find(|function| {
            let ours = Ours::of_function(function);
            ours.is_some() && ours == Ours::of_node(node)
        });
        let inlined = called.and_then(|function| function.node.last()).filter(|last| copy::is_copy(last));
        let left = node.output.first().and_then(|o| defined.get(o.as_str())).is_some_and(|now| {
            let read = node.input.first().map_or("", String::as_str);
            let replaced = is_out && computed.contains(read) && !defined.contains_key(read);
            now.op_type() == node.op_type() && (now.input.first() == node.input.first() || replaced)
                || inlined.is_some_and(|copy| now.op_type() == copy.op_type())
        });
        let left = left || merged(original, &defined, node, is_out);
        let (all, some) = match is_out {
            true => (&mut result.swap_outs, &mut result.swap_outs_left),
            false => (&mut result.swap_ins, &mut result.swap_ins_left),
        };
        *all += 1;
        *some += usize::from(left);
        if !left {
            result.gone.push(node.name().to_owned());
        }
    }
    result
}

/// Whether the optimizer has made the copy one with that of an equal value: what read its result reads that of another copy
/// of its kind, or, of a swap-out, so does what read those of its swap-ins.
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
        && readers.into_iter().all(|(reader, index)| match is_out {
            true => swap_kind(reader) == Some(false) && merged(original, defined, reader, false),
            false => reader.output.first().is_some_and(|output| {
                defined.get(output.as_str()).and_then(|now| now.input.get(index)).is_some_and(brings)
            }),
        })
}

/// Values that lead to an output or to what computes. A copy that only brings a variable back to its place for the next
/// step leads to neither: runtimes that know of no places leave it out, and nothing is lost.
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

/// Whether the node is a swap, and then whether it is a swap-out.
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
    use crate::proto::{GraphProto, StringStringEntryProto};

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
