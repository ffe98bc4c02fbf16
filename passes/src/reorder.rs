use lmsc_ir::{Bytes, Graph, NodeId};
use lmsc_plan::problem::Problem;
use lmsc_plan::{order, service};

use crate::{AnyPlanner, Outcome, Pass, PassCx, PassError, bridge, question};

/// Moves nodes that free memory forward and nodes that bring memory back, where the budget is below the peak.
///
/// Only the order changes. Candidates are the orders of [`order::with_less_memory`]. The planner's estimate picks
/// among them, where it has one: an early product frees its operands sooner, a late one leaves copies more
/// computation to overlap, and only the planner can weigh these. Without an estimate, the first candidate is taken.
/// If swapping alone fits none of them, the candidate with the smallest memory floor is taken, so the smallest
/// budgets in a refusal are those of that order.
pub(crate) struct Reorder;

/// In graphs with more nodes than this, the first order is taken without an estimate.
const MOST_NODES: usize = 20_000;

impl Pass for Reorder {
    fn name(&self) -> &'static str {
        "reorder"
    }

    fn summary(&self) -> &'static str {
        "gradients and updates right after what they read, where that saves memory, or time for the planner"
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        if let Some(order) = &cx.question.order {
            return order.reorder(graph);
        }
        let costs = cx.costs(graph);
        let mut orders = order::with_less_memory(graph, cx.question.budget, |node| costs.cost(node));
        // Without other orders there is no reason to move anything.
        let waiting = (orders.len() > 1).then(|| order::updates_waiting(graph)).flatten();
        let waiting =
            waiting.map(|waiting| waiting.text(&format!("`{}`", graph.node(waiting.operator).name)));
        let mut remarks: Vec<String> = waiting.into_iter().collect();
        let order = orders.swap_remove(fastest(graph, &orders, cx));
        let moved = order.iter().zip(graph.order()).filter(|(new, old)| new != old).count();
        if moved == 0 {
            return Ok(Outcome { remarks, ..Outcome::default() });
        }
        graph.set_order(order);
        remarks.insert(0, format!("moved {moved} of {} nodes", graph.order().len()));
        Ok(Outcome { changed: true, remarks, ..Outcome::default() })
    }
}

/// The index of the order with the smallest estimate of the planner's time; of equals, the first. If swapping alone
/// fits none of them, the index of the order with the smallest memory floor.
fn fastest(graph: &Graph, orders: &[Vec<NodeId>], cx: &PassCx) -> usize {
    let planner = cx.question.planner.and_then(AnyPlanner::of_problems);
    let (Some(budget), Some(planner)) = (cx.question.budget, planner) else { return 0 };
    let Some(estimate) = planner.glance else { return 0 };
    if orders.len() == 1 || graph.order().len() > MOST_NODES {
        return 0;
    }
    let mut graph = graph.clone();
    let problems = orders.iter().map(|order| {
        graph.set_order(order.clone());
        bridge(&graph, cx).map(|bridge| bridge.problem)
    });
    let Ok(problems) = problems.collect::<Result<Vec<_>, _>>() else { return 0 };
    let floor = |problem: &Problem| service::least(&question(problem, planner, budget, cx));
    let floors: Vec<u64> = problems.iter().map(floor).collect();
    let (least, lowest) =
        floors.iter().enumerate().map(|(index, &floor)| (floor, index)).min().unwrap_or_default();
    if budget.0 < least {
        return lowest;
    }
    let time = |problem: &Problem| {
        // The estimate ignores the limit of the host's memory.
        let leaving: u64 = problem.tensors.values().filter(|t| t.swappable).map(|t| t.bytes).sum();
        let request = question(problem, planner, budget, cx).request;
        if Bytes(leaving) <= cx.host_budget() { estimate(&request) } else { None }
    };
    let fitting = problems.iter().enumerate().filter(|&(index, _)| floors[index] <= budget.0);
    let times = fitting.filter_map(|(index, problem)| Some((time(problem)?, index)));
    match times.min() {
        Some((_, index)) => index,
        None if floors[0] <= budget.0 => 0,
        None => lowest,
    }
}

#[cfg(test)]
mod tests {
    use lmsc_plan::planners;

    use super::*;
    use crate::PlanRequest;

    /// `dy` can be freed only after `bias` and `sum` have read it; while it is live, `wide` needs 6 KiB.
    const STEP: &str = "g (float[4,64] x) => (float[4] b, float[4] s, float[4,64] z) {
        [dy] float[4,64] dy = Relu(x)
        [dx] float[4,64] dx = Exp(dy)
        [wide] float[12,64] wide = Concat<axis = 0>(dx, dx, dx)
        [z] float[4,64] z = Slice(wide)
        [turned] float[64,4] turned = Transpose(dy)
        [sum] float[4] s = ReduceSum<keepdims = 0>(turned)
        [bias] float[4] b = ReduceSum<keepdims = 0>(dy)
    }";

    fn order(planner: &str, budget: Option<u64>) -> Vec<String> {
        let mut graph = Graph::parse(STEP).unwrap();
        let planner = planners::planner(planner).map(AnyPlanner::from);
        let cx = PassCx {
            question: PlanRequest { planner, budget: budget.map(Bytes), ..PlanRequest::default() },
            ..PassCx::default()
        };
        Reorder.run(&mut graph, &cx).unwrap();
        graph.order().iter().map(|&node| graph.node(node).name.to_string()).collect()
    }

    #[test]
    fn the_fastest_order_for_the_planner_is_taken() {
        let own = ["dy", "dx", "wide", "z", "turned", "sum", "bias"];
        let moved = ["dy", "bias", "dx", "turned", "sum", "wide", "z"];
        for ours in ["auto", "swap-only"] {
            assert_eq!(order(ours, Some(5500)), moved);
            // Neither a budget above the peak nor one in which nothing fits is a reason to move anything.
            assert_eq!(order(ours, None), own);
            assert_eq!(order(ours, Some(6144)), own);
            assert_eq!(order(ours, Some(100)), own);
        }
        assert_eq!(order("lru", Some(5500)), own);
    }
}
