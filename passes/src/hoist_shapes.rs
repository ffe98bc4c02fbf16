use lmsc_ir::{Graph, NodeId};

use crate::{Outcome, Pass, PassCx, PassError};

/// Moves operators that read only a shape right after the producer of their operand.
///
/// Gradient builders read shapes of forward tensors in the backward phase, and a runtime keeps the whole tensor for
/// that. Moving the node frees the tensor. Only the order changes.
pub(crate) struct HoistShapes;

impl Pass for HoistShapes {
    fn name(&self) -> &'static str {
        "hoist-shapes"
    }

    fn summary(&self) -> &'static str {
        "shape queries next to the producer of what they look at, so that they keep no tensor alive"
    }

    fn run(&self, graph: &mut Graph, _cx: &PassCx) -> Result<Outcome, PassError> {
        let ticks = graph.ticks();
        let tick = |id: NodeId| ticks[id.as_u32() as usize];
        let looks = |id: NodeId| graph.node(id).op.effects().shape_only;
        // The number of computing nodes before each tick: a shape query moves only if one of them runs between its
        // producer and the query.
        let copies = |id: NodeId| graph.node(id).op.is_swap() || graph.node(id).op.is_join();
        let computes = |&id: &NodeId| !looks(id) && !copies(id);
        let mut before = Vec::with_capacity(graph.order().len());
        for id in graph.order() {
            let so_far = before.last().copied().unwrap_or(0);
            before.push(so_far + u32::from(computes(id)));
        }
        // The node after which a shape query moves. Shapes of graph inputs are known without their values.
        let target = |id: NodeId| {
            let latest = graph.predecessors(id).map(tick).max().filter(|_| looks(id))?;
            (before[latest as usize] < before[tick(id) as usize]).then_some(latest)
        };
        let keyed = graph.order().iter().map(|&id| match target(id) {
            Some(latest) => (latest, true, id),
            None => (tick(id), false, id),
        });
        let mut order: Vec<(u32, bool, NodeId)> = keyed.collect();
        let moved = order.iter().filter(|(_, moves, _)| *moves).count();
        if moved == 0 {
            return Ok(Outcome::default());
        }
        order.sort_by_key(|&(tick, moves, _)| (tick, moves));
        graph.set_order(order.into_iter().map(|(_, _, id)| id).collect());
        Ok(Outcome {
            changed: true,
            remarks: vec![format!("moved {}", lmsc_ir::words::count(moved, "shape query"))],
            ..Outcome::default()
        })
    }
}
