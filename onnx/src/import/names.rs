//! Resolves names: nodes, metadata and the outer values of subgraphs.

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};
use lmsc_ir::Name;

use super::limits::MOST_DEPTH;
use super::read::sparse_name;
use crate::key;
use crate::proto::{GraphProto, NodeProto};

/// A node's metadata, and other facts that are not its data operands.
#[derive(Default)]
pub(super) struct Extra<'m> {
    /// Nodes that complete before this one starts.
    pub(super) after: Vec<usize>,
    pub(super) recomputes: Option<usize>,
    /// Its seed if it is random.
    pub(super) seed: Option<u64>,
    /// Results that are new values of variables, by their indices, with the variables' numbers.
    pub(super) updates: Vec<(usize, u32)>,
    /// Values that subgraphs read.
    pub(super) captures: Vec<u32>,
    /// `SwapOut`, `SwapIn` or `Copy`, independently of the operator's name.
    pub(super) copy: Option<&'m str>,
    /// Whether the node leaves the operands as they are that its operator overwrites.
    pub(super) is_apart: bool,
    /// Whether the node joins pieces with a base; none if it is not a join.
    pub(super) join: Option<bool>,
}

/// A name for every node: its own, or one made from its operator and position.
pub(super) fn unique_names(nodes: &[NodeProto]) -> Vec<Name> {
    let mut taken: HashSet<&str> = HashSet::with_capacity(nodes.len());
    let own: Vec<bool> = nodes.iter().map(|n| !n.name().is_empty() && taken.insert(n.name())).collect();
    let mut made: HashSet<Name> = HashSet::new();
    let mut next: HashMap<&str, u32> = HashMap::new();
    let mut names = Vec::with_capacity(nodes.len());
    for (i, node) in nodes.iter().enumerate() {
        let name: Name = if own[i] {
            node.name().into()
        } else if node.name().is_empty() {
            let kind = if node.op_type().is_empty() { "node" } else { node.op_type() };
            let base = format!("{kind}_{i}");
            let mut name: Name = base.as_str().into();
            let mut suffix = 1;
            while taken.contains(&*name) || made.contains(&*name) {
                suffix += 1;
                name = format!("{base}_{suffix}").into();
            }
            name
        } else {
            let suffix = next.entry(node.name()).or_insert(1);
            loop {
                *suffix += 1;
                let name: Name = format!("{}_{suffix}", node.name()).into();
                if !taken.contains(&*name) && !made.contains(&*name) {
                    break name;
                }
            }
        };
        if !own[i] {
            made.insert(name.clone());
        }
        names.push(name);
    }
    names
}

/// Reads one metadata entry of ours into `extra`.
pub(super) fn metadata(
    key: &str,
    value: &str,
    by_name: &HashMap<&str, Option<usize>>,
    values: &HashMap<&str, u32>,
    extra: &mut Extra<'_>,
) -> Result<(), (&'static str, String)> {
    let find = |name: &str| match by_name.get(name) {
        Some(&Some(node)) => Ok(node),
        Some(None) => Err(format!("several nodes have the name `{name}`")),
        None => Err(format!("there is no node `{name}`")),
    };
    match key {
        key::AFTER => {
            let names: Vec<String> = serde_json::from_str(value)
                .map_err(|e| (key::AFTER, format!("`{value}` is no JSON array of node names: {e}")))?;
            for name in &names {
                extra.after.push(find(name).map_err(|e| (key::AFTER, e))?);
            }
        }
        key::UPDATES => {
            let pairs: Vec<(usize, String)> = serde_json::from_str(value)
                .map_err(|e| (key::UPDATES, format!("`{value}` is no JSON array of pairs: {e}")))?;
            for (result, name) in &pairs {
                let variable = values.get(&**name).copied();
                let variable =
                    variable.ok_or_else(|| (key::UPDATES, format!("there is no value `{name}`")))?;
                extra.updates.push((*result, variable));
            }
        }
        key::RECOMPUTES => extra.recomputes = Some(find(value).map_err(|e| (key::RECOMPUTES, e))?),
        key::SEED => {
            let seed =
                value.parse().map_err(|_| (key::SEED, format!("`{value}` is no number of 64 bits")))?;
            extra.seed = Some(seed);
        }
        key::KIND => match value {
            "swap_out" => extra.copy = Some("SwapOut"),
            "swap_in" => extra.copy = Some("SwapIn"),
            "copy" => extra.copy = Some("Copy"),
            _ => return Err((key::KIND, format!("`{value}` is neither `swap_out`, `swap_in` nor `copy`"))),
        },
        key::APART => extra.is_apart = true,
        // Other entries are for other readers.
        _ => {}
    }
    Ok(())
}

/// The names that the subgraphs of these nodes define, at any depth.
pub(crate) fn inner_names(nodes: &[NodeProto]) -> Vec<&str> {
    let mut names = Vec::new();
    let mut open: Vec<&GraphProto> = nodes.iter().flat_map(subgraphs).collect();
    while let Some(graph) = open.pop() {
        names.extend(graph.input.iter().map(|v| v.name()));
        names.extend(graph.initializer.iter().map(|t| t.name()));
        names.extend(graph.sparse_initializer.iter().map(sparse_name));
        names.extend(graph.value_info.iter().map(|v| v.name()));
        for node in &graph.node {
            names.push(node.name());
            names.extend(node.output.iter().map(|s| &**s));
            open.extend(subgraphs(node));
        }
    }
    names
}

/// The graphs in the node's attributes.
fn subgraphs(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|a| a.g.as_deref().into_iter().chain(&a.graphs))
}

/// Appends the names that `graph` reads and does not define.
pub(super) fn free_names<'m>(graph: &'m GraphProto, depth: usize, free: &mut Vec<&'m str>) -> Result<(), ()> {
    if depth > MOST_DEPTH {
        return Err(());
    }
    let mut defined: HashSet<&str> = HashSet::new();
    defined.extend(graph.input.iter().map(|v| v.name()));
    defined.extend(graph.initializer.iter().map(|t| t.name()));
    defined.extend(graph.sparse_initializer.iter().map(sparse_name));
    defined.extend(graph.node.iter().flat_map(|n| &n.output).map(|s| &**s));
    let begin = free.len();
    for node in &graph.node {
        free.extend(node.input.iter().map(|s| &**s));
        for inner in subgraphs(node) {
            free_names(inner, depth + 1, free)?;
        }
    }
    free.extend(graph.output.iter().map(|v| v.name()));
    let mut seen = HashSet::new();
    let kept: Vec<&str> = free
        .drain(begin..)
        .filter(|name| !name.is_empty() && !defined.contains(name) && seen.insert(*name))
        .collect();
    free.extend(kept);
    Ok(())
}
