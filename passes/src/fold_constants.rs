use foldhash::{HashMap, HashMapExt};
use lmsc_ir::{
    Attr, Bytes, Constants, Graph, Node, NodeId, Op, StorageId, Storages, ValueId, reaches, words,
};

use crate::clean_up::{captured, not_planned};
use crate::{CallOption, Outcome, Pass, PassCx, PassError, PassKind};

const LIMIT: CallOption =
    CallOption::bytes("limit", "size of the largest constant that is made, at most 255 bytes", MOST);

/// Files have larger constants as initializers.
const MOST: Bytes = Bytes(255);

/// Replaces nodes whose results are integers that [`Constants`] computes, such as arithmetic on shapes, by `Constant` nodes.
///
/// Nodes with control edges stay, and so do nodes whose results subgraphs read, because subgraphs refer to values by name.
/// `remove-dead-nodes` removes the nodes whose results only folded nodes read.
pub(crate) struct FoldConstants;

impl Pass for FoldConstants {
    fn name(&self) -> &'static str {
        "fold-constants"
    }

    fn summary(&self) -> &'static str {
        "constants in place of integers that are computed of constants and shapes"
    }

    fn kind(&self) -> PassKind {
        PassKind::CleanUp
    }

    fn options(&self) -> &[CallOption] {
        &[LIMIT]
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        not_planned(self.name(), graph)?;
        let constants = Constants::of(graph);
        let captured = captured(graph);
        let mut has_edges = vec![false; graph.node_capacity()];
        for &id in graph.order() {
            let after = &graph.node(id).after;
            has_edges[id.as_u32() as usize] |= !after.is_empty();
            after.iter().for_each(|before| has_edges[before.as_u32() as usize] = true);
        }
        let mut order = graph.order().to_vec();
        let mut instead: HashMap<ValueId, ValueId> = HashMap::new();
        for slot in &mut order {
            let node = graph.node(*slot);
            let &[Some(result)] = &node.results[..] else { continue };
            let known = constants.get(result).filter(|data| Bytes(data.len()) <= cx.bytes(&LIMIT).min(MOST));
            let stays = node.op.key() == ("", "Constant")
                || has_edges[slot.as_u32() as usize]
                || captured.contains(&result);
            let (Some(data), Some(ty)) = (known.filter(|_| !stays), graph.value(result).ty.as_tensor())
            else {
                continue;
            };
            let attribute = ("value".into(), Attr::Tensor(ty.clone(), data.clone()));
            let mut constant =
                Node::new(graph.fresh_node_name(&format!("{}/Constant", node.name)), Op::new("", "Constant"));
            constant.attributes.push(attribute);
            let value = graph.value(result).clone();
            let was = graph.fresh_value_name(&format!("{}_was", value.name));
            graph.rename(result, was);
            *slot = graph.add_node(constant, [Some((value.name, value.ty, value.place))]);
            instead.extend(graph.node(*slot).defines().map(|new| (result, new)));
        }
        if instead.is_empty() {
            return Ok(Outcome::default());
        }
        for &id in &order {
            for index in 0..graph.node(id).operands.len() {
                let operand = graph.node(id).operands[index];
                if let Some(&new) = operand.and_then(|old| instead.get(&old)) {
                    graph.set_operand(id, index, new);
                }
            }
        }
        for output in &mut graph.outputs {
            *output = instead.get(output).copied().unwrap_or(*output);
        }
        graph.set_order(order);
        order_readers(graph);
        let remarks = vec![format!("folded {}", words::count(instead.len(), "node"))];
        Ok(Outcome { changed: true, remarks, ..Outcome::default() })
    }
}

/// Orders the readers of a variable's value before the node that overwrites it, where only a folded node did so.
pub(crate) fn order_readers(graph: &mut Graph) {
    let storages = Storages::of(graph);
    let ticks = graph.ticks();
    let mut writers: HashMap<StorageId, Vec<NodeId>> = HashMap::new();
    for &id in graph.order() {
        for update in &graph.node(id).updates {
            writers.entry(storages.storage(update.variable)).or_default().push(id);
        }
    }
    let mut pairs = Vec::new();
    for &reader in graph.order() {
        for value in graph.uses(reader) {
            let of_value = writers.get(&storages.storage(value)).into_iter().flatten();
            let later = |writer: &&NodeId| ticks[reader.as_u32() as usize] < ticks[writer.as_u32() as usize];
            pairs.extend(of_value.filter(later).map(|&writer| (reader, writer)));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    for (&(reader, writer), is_ordered) in pairs.iter().zip(reaches(graph, &pairs)) {
        if !is_ordered {
            graph.add_after(writer, reader);
        }
    }
}
