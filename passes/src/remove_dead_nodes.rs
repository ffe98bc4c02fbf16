use lmsc_ir::{Graph, NodeId, words};

use crate::clean_up::{is_function, not_planned};
use crate::{Outcome, Pass, PassCx, PassError, PassKind};

/// Removes nodes on whose results no output and no variable depends.
///
/// Nodes with effects other than their results stay: those that update variables, draw random numbers or hold
/// subgraphs. A node that waited for a removed node waits for the predecessors of the removed node.
pub(crate) struct RemoveDeadNodes;

impl Pass for RemoveDeadNodes {
    fn name(&self) -> &'static str {
        "remove-dead-nodes"
    }

    fn summary(&self) -> &'static str {
        "only nodes on which an output, a variable or another effect depends"
    }

    fn kind(&self) -> PassKind {
        PassKind::CleanUp
    }

    fn run(&self, graph: &mut Graph, _cx: &PassCx) -> Result<Outcome, PassError> {
        not_planned(self.name(), graph)?;
        let needed = needed(graph);
        let is_needed = |id: NodeId| needed[id.as_u32() as usize];
        let removed = graph.order().iter().filter(|&&id| !is_needed(id)).count();
        if removed == 0 {
            return Ok(Outcome::default());
        }
        // For each removed node, its closest predecessors that stay.
        let mut behind: Vec<Vec<NodeId>> = vec![Vec::new(); graph.node_capacity()];
        let (stay, go): (Vec<NodeId>, Vec<NodeId>) = graph.order().iter().partition(|&&id| is_needed(id));
        let waits_for_removed = stay.iter().any(|&id| graph.node(id).after.iter().any(|&it| !is_needed(it)));
        for id in go.into_iter().filter(|_| waits_for_removed) {
            let before = |before: NodeId| {
                if is_needed(before) { vec![before] } else { behind[before.as_u32() as usize].clone() }
            };
            let mut all: Vec<NodeId> = graph.predecessors(id).flat_map(before).collect();
            all.sort_unstable();
            all.dedup();
            behind[id.as_u32() as usize] = all;
        }
        for &id in &stay {
            for before in graph.node(id).after.clone() {
                if !is_needed(before) {
                    graph.redirect_after(id, before, &behind[before.as_u32() as usize]);
                }
            }
        }
        graph.set_order(stay);
        let remarks = vec![format!("removed {}", words::count(removed, "node"))];
        Ok(Outcome { changed: true, remarks, ..Outcome::default() })
    }
}

/// For each node, whether an output or a variable depends on it, or it has an effect other than its results.
fn needed(graph: &Graph) -> Vec<bool> {
    let mut needed = vec![false; graph.node_capacity()];
    let mut open: Vec<NodeId> = graph.outputs.iter().filter_map(|&output| graph.producer(output)).collect();
    open.extend(graph.order().iter().filter(|&&id| !is_function(graph.node(id))));
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut needed[id.as_u32() as usize], true) {
            open.extend(graph.node(id).reads().filter_map(|value| graph.producer(value)));
        }
    }
    needed
}
