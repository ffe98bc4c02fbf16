use lmsc_ir::Graph;
use lmsc_plan::order;

use crate::{Outcome, Pass, PassCx, PassError};

/// Moves nodes that free memory forward and nodes that bring memory back, where the budget is below the peak and less memory is
/// needed then.
///
/// Only the order changes; which of the orders that the edges allow is [`order::least_memory`]'s to decide.
pub(crate) struct Reorder;

impl Pass for Reorder {
    fn name(&self) -> &'static str {
        "reorder"
    }

    fn summary(&self) -> &'static str {
        "gradients and updates right after what they read, where less memory is needed then"
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        let costs = cx.costs(graph);
        let order = order::least_memory(graph, cx.budget, |node| costs.cost(node));
        let moved = order.iter().zip(graph.order()).filter(|(new, old)| new != old).count();
        if moved == 0 {
            return Ok(Outcome::default());
        }
        graph.set_order(order);
        let remarks = vec![format!("moved {moved} of {} nodes", graph.order().len())];
        Ok(Outcome { changed: true, remarks, ..Outcome::default() })
    }
}
