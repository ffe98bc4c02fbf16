//! Which swaps are left after another program has optimized a model.

use std::collections::HashMap;

use crate::functions::{COPY, Ours};
use crate::proto::{ModelProto, NodeProto};
use crate::{LMSC_DOMAIN, key};

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
/// reads past it. Operators are compared without their domain, since the optimizer may have inlined functions: a
/// function whose last node copies is left if such a node defines the value.
pub fn survival(original: &ModelProto, optimized: &ModelProto) -> Survival {
    let empty = Vec::new();
    let nodes = optimized.graph.as_ref().map_or(&empty, |g| &g.node);
    let defined: HashMap<&str, &NodeProto> =
        nodes.iter().flat_map(|n| n.output.iter().map(move |o| (o.as_str(), n))).collect();
    let mut result = Survival::default();
    for node in original.graph.iter().flat_map(|g| &g.node) {
        let Some(is_out) = swap_kind(node) else { continue };
        let inlined = original.functions.iter().any(|function| {
            let last = function.node.last().map(|n| n.op_type());
            let ours = Ours::of_function(function);
            ours.is_some() && ours == Ours::of_node(node) && last == Some(COPY)
        });
        let left = node.output.first().and_then(|o| defined.get(o.as_str())).is_some_and(|now| {
            now.op_type() == node.op_type() && now.input.first() == node.input.first()
                || inlined && now.op_type() == COPY
        });
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

/// Whether the node is a swap, and then whether it is a swap-out.
fn swap_kind(node: &NodeProto) -> Option<bool> {
    let stated = node.metadata_props.iter().find(|p| p.key() == key::KIND).map(|p| p.value());
    match (stated, node.domain() == LMSC_DOMAIN, node.op_type()) {
        (Some("swap_out"), ..) | (_, true, "SwapOut" | "SwapOutRange") => Some(true),
        (Some("swap_in"), ..) | (_, true, "SwapIn") => Some(false),
        _ => None,
    }
}
