use lmsc_ir::{Bytes, Graph, NodeId};
use lmsc_plan::order;
use lmsc_plan::planners::{Request, auto};

use crate::{Outcome, Pass, PassCx, PassError, bridge};

/// Moves nodes that free memory forward and nodes that bring memory back, where the budget is below the peak.
///
/// Only the order changes. Of the orders that [`order::with_less_memory`] finds, it takes the one in which a planner's
/// glance finds the fastest step within the budget: whether a product is better made early, where it frees what it reads, or late,
/// where copies need something to hide behind, is for a planner to tell.
pub(crate) struct Reorder;

/// In graphs of more nodes than this, planners are not asked.
const MOST_NODES: usize = 20_000;

impl Pass for Reorder {
    fn name(&self) -> &'static str {
        "reorder"
    }

    fn summary(&self) -> &'static str {
        "gradients and updates right after what they read, where that is better within the budget"
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        let costs = cx.costs(graph);
        let mut orders = order::with_less_memory(graph, cx.budget, |node| costs.cost(node));
        let fastest = match cx.budget {
            Some(budget) if orders.len() > 1 && graph.order().len() <= MOST_NODES => {
                let time = |index: &usize| makespan(graph, &orders[*index], budget, cx);
                // Of equals the first.
                (0..orders.len()).min_by_key(time).unwrap_or(0)
            }
            _ => 0,
        };
        let order = orders.swap_remove(fastest);
        let moved = order.iter().zip(graph.order()).filter(|(new, old)| new != old).count();
        if moved == 0 {
            return Ok(Outcome::default());
        }
        graph.set_order(order);
        let remarks = vec![format!("moved {moved} of {} nodes", graph.order().len())];
        Ok(Outcome { changed: true, remarks, ..Outcome::default() })
    }
}

/// How long the step takes in this order, at a glance; the most there is where nothing that is looked at fits.
fn makespan(graph: &Graph, order: &[NodeId], budget: Bytes, cx: &PassCx) -> u64 {
    let mut graph = graph.clone();
    graph.set_order(order.to_vec());
    let found = bridge(&graph, cx).ok().and_then(|bridge| {
        auto::glance(&Request { recompute: true, ..Request::new(&bridge.problem, budget.0) })
    });
    found.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only when `bias` and `sum` have read it can `dy` go; with it, `wide` needs 6 KiB.
    const STEP: &str = "g (float[4,64] x) => (float[4] b, float[4] s, float[4,64] z) {
        [dy] float[4,64] dy = Relu(x)
        [dx] float[4,64] dx = Exp(dy)
        [wide] float[12,64] wide = Concat<axis = 0>(dx, dx, dx)
        [z] float[4,64] z = Slice(wide)
        [turned] float[64,4] turned = Transpose(dy)
        [sum] float[4] s = ReduceSum<keepdims = 0>(turned)
        [bias] float[4] b = ReduceSum<keepdims = 0>(dy)
    }";

    fn order(budget: Option<u64>) -> Vec<String> {
        let mut graph = Graph::parse(STEP).unwrap();
        let cx = PassCx { budget: budget.map(Bytes), ..PassCx::default() };
        Reorder.run(&mut graph, &cx).unwrap();
        graph.order().iter().map(|&node| graph.node(node).name.to_string()).collect()
    }

    #[test]
    fn the_fastest_order_within_the_budget_is_taken() {
        let own = ["dy", "dx", "wide", "z", "turned", "sum", "bias"];
        let moved = ["dy", "bias", "dx", "turned", "sum", "wide", "z"];
        // Neither a budget above the peak nor one in which nothing fits is a reason to move anything.
        assert_eq!(order(None), own);
        assert_eq!(order(Some(6144)), own);
        assert_eq!(order(Some(5500)), moved);
        assert_eq!(order(Some(100)), own);
    }
}
