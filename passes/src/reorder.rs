use lmsc_ir::Graph;
use lmsc_plan::order;

use crate::{Outcome, Pass, PassCx, PassError};

/// Moves nodes that free memory forward and nodes that bring memory back, where that lowers the peak
/// and the budget is below it.
///
/// Only the order changes; which of the orders that the edges allow is [`order::lower_peak`]'s to decide.
pub(crate) struct Reorder;

impl Pass for Reorder {
    fn name(&self) -> &'static str {
        "reorder"
    }

    fn summary(&self) -> &'static str {
        "gradients and updates right after what they read, where that lowers the peak"
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        let order = order::lower_peak(graph, cx.budget, cx.workspace(graph));
        let moved = order.iter().zip(graph.order()).filter(|(new, old)| new != old).count();
        if moved == 0 {
            return Ok(Outcome::default());
        }
        graph.set_order(order);
        let remarks = vec![format!("moved {moved} of {} nodes", graph.order().len())];
        Ok(Outcome { changed: true, remarks, ..Outcome::default() })
    }
}
