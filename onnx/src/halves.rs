//! Removes copies to the host whose copies back another program has removed, and the reverse.
//!
//! An optimizer may remove some of the copies that lmsc wrote. Without its counterpart, a copy would have a node on the
//! device read from the host. Such copies are removed, too: they compute their operand. The control edges and addresses of
//! the file were made for all of them, so they are removed as well.

use foldhash::{HashMap, HashSet};
use lmsc_ir::Op;

use crate::file::Model;
use crate::functions::Ours;
use crate::proto::{GraphProto, NodeProto};
use crate::update::Uses;
use crate::{copy, key, set_metadata};

/// Removes copies without their counterparts, and then all control edges and addresses. Returns the warning, if there were any.
pub fn drop_half_swaps(model: &mut Model) -> Option<String> {
    let graph = model.proto.graph.as_mut()?;
    let kinds: Vec<Option<Kind>> = graph.node.iter().map(Kind::of).collect();
    if kinds.iter().all(Option::is_none) {
        return None;
    }
    let halves = halves(graph, &kinds);
    let first = *halves.first()?;
    let warning = format!(
        "the copy of `{}` {} has no counterpart any more ({} such in all): another program has removed it, so none of them is a \
         copy, and the file's control edges and addresses are not used: it holds no memory bound until it is planned again",
        graph.node[first].input[0],
        if kinds[first] == Some(Kind::Out) { "to the host" } else { "from the host" },
        halves.len(),
    );
    splice(graph, &halves);
    for node in &mut graph.node {
        set_metadata(&mut node.metadata_props, key::AFTER, None);
    }
    set_metadata(&mut model.proto.metadata_props, key::ADDRESSES, None);
    Some(warning)
}

/// The direction of a copy of a whole tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Out,
    In,
}

impl Kind {
    fn of(node: &NodeProto) -> Option<Kind> {
        match Ours::of_node(node) {
            Some(Ours::SwapOut) if node.input.len() == 1 => return Some(Kind::Out),
            Some(Ours::SwapIn) if !node.input.is_empty() => return Some(Kind::In),
            Some(_) => return None,
            None => {}
        }
        let entry = node.metadata_props.iter().find(|entry| entry.key() == key::KIND)?;
        match entry.value() {
            "swap_out" if copy::is_copy(node) => Some(Kind::Out),
            "swap_in" if copy::is_copy(node) => Some(Kind::In),
            _ => None,
        }
    }
}

/// The copies whose operand or result is in the wrong memory, in the order of the file.
fn halves(graph: &GraphProto, kinds: &[Option<Kind>]) -> Vec<usize> {
    let uses = Uses::of(graph);
    let producers: HashMap<&str, usize> = graph
        .node
        .iter()
        .enumerate()
        .flat_map(|(i, node)| node.output.iter().map(move |name| (name.as_str(), i)))
        .collect();
    let mut is_half = vec![false; kinds.len()];
    loop {
        let copies = |node: usize, kind: Kind| kinds[node] == Some(kind) && !is_half[node];
        // Copies of ranges are checked when the graph is read.
        let of_ranges = |node: usize| kinds[node].is_none() && Ours::of_node(&graph.node[node]).is_some();
        // A node that only reads the shape of a tensor on the host needs no copy of it.
        let asks_shape = |node: &NodeProto| Op::new(node.domain(), node.op_type()).effects().shape_only;
        let brings = |&reader: &Option<usize>| {
            reader.is_none_or(|r| copies(r, Kind::In) || of_ranges(r) || asks_shape(&graph.node[r]))
        };
        let is_alone = |i: usize| match kinds[i] {
            Some(Kind::Out) => !uses.readers(&graph.node[i].output[0]).iter().all(brings),
            Some(Kind::In) => {
                let operand = graph.node[i].input[0].as_str();
                match producers.get(operand) {
                    Some(&producer) => !copies(producer, Kind::Out) && !of_ranges(producer),
                    None => !uses.readers(operand).iter().all(brings),
                }
            }
            None => false,
        };
        let found: Vec<usize> = (0..kinds.len()).filter(|&i| !is_half[i] && is_alone(i)).collect();
        if found.is_empty() {
            break;
        }
        found.into_iter().for_each(|i| is_half[i] = true);
    }
    (0..kinds.len()).filter(|&i| is_half[i]).collect()
}

/// Removes the copies; their readers read the operands instead. A copy that defines an output of the graph, or a value that a
/// subgraph reads, becomes an `Identity`.
fn splice(graph: &mut GraphProto, halves: &[usize]) {
    let mut named: HashSet<String> = graph.output.iter().map(|output| output.name().to_owned()).collect();
    for attribute in graph.node.iter().flat_map(|node| &node.attribute) {
        for inner in attribute.g.as_deref().into_iter().chain(&attribute.graphs) {
            named.extend(crate::import::names_read(inner));
        }
    }
    let mut instead: HashMap<String, String> = HashMap::default();
    let mut removed: HashSet<usize> = HashSet::default();
    for &i in halves {
        let node = &mut graph.node[i];
        if named.contains(&node.output[0]) {
            node.op_type = Some("Identity".to_owned());
            node.domain = None;
            node.input.truncate(1);
            node.attribute.clear();
            set_metadata(&mut node.metadata_props, key::KIND, None);
        } else {
            instead.insert(node.output[0].clone(), node.input[0].clone());
            removed.insert(i);
        }
    }
    let mut index = 0;
    graph.node.retain(|_| {
        index += 1;
        !removed.contains(&(index - 1))
    });
    for input in graph.node.iter_mut().flat_map(|node| &mut node.input) {
        // A chain has at most as many copies as there are.
        for _ in 0..=halves.len() {
            match instead.get(input.as_str()) {
                Some(operand) => input.clone_from(operand),
                None => break,
            }
        }
    }
}
