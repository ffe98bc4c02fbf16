use lmsc_ir::{Graph, NodeId, ops};

use crate::{Outcome, Pass, PassCx, PassError};

/// Moves operators that only look at a shape to right after the producer of what they look at.
///
/// Gradient builders read shapes of forward tensors in the backward phase; a runtime keeps the whole tensor for
/// that. Moving the node costs a few bytes and frees the tensor. Only the order changes.
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
        // A node runs right after what it moved to, so its key is the tick of that.
        let target = |id: NodeId| {
            let movable = ops::effects(&graph.node(id).op).shape_only;
            let latest = graph.predecessors(id).map(|p| ticks[p.as_u32() as usize]).max();
            if movable { latest.map_or(0, |tick| tick + 1) } else { ticks[id.as_u32() as usize] }
        };
        let mut order: Vec<(u32, bool, NodeId)> = graph
            .order()
            .iter()
            .map(|&id| (target(id), !ops::effects(&graph.node(id).op).shape_only, id))
            .collect();
        let moved =
            order.iter().zip(graph.order()).filter(|((to, _, id), _)| *to < ticks[id.as_u32() as usize]);
        let moved = moved.count();
        if moved == 0 {
            return Ok(Outcome::default());
        }
        // Stable, and a hoisted node comes before the node whose place it takes.
        order.sort_by_key(|&(tick, stays, _)| (tick, stays));
        graph.set_order(order.into_iter().map(|(_, _, id)| id).collect());
        Ok(Outcome {
            changed: true,
            remarks: vec![format!("moved {moved} shape queries")],
            ..Outcome::default()
        })
    }
}
