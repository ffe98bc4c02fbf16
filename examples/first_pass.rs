//! A pass of one page, outside the tree of lmsc: the tutorial "Your first pass" explains it.
//!
//! ```console
//! $ cargo run --example first_pass
//! ```
#![allow(clippy::print_stdout, reason = "an example prints")]

use lmsc_ir::{Graph, NodeId};
use lmsc_passes::{Outcome, Pass, PassCx, PassError, Pipeline};

/// Moves operators that read parameters alone to right before their first use.
struct LateWeights;

impl Pass for LateWeights {
    fn name(&self) -> &'static str {
        "late-weights"
    }

    fn summary(&self) -> &'static str {
        "operators that read parameters alone run right before their first use"
    }

    fn run(&self, graph: &mut Graph, _cx: &PassCx) -> Result<Outcome, PassError> {
        let ticks = graph.ticks();
        let tick = |node: NodeId| ticks[node.as_u32() as usize];
        let successors = graph.successor_lists();
        // Before which tick a node runs; None where it stays.
        let target = |node: NodeId| {
            let movable = graph.predecessors(node).next().is_none() && !graph.node(node).op.is_swap();
            let first_use = successors.of(node).iter().map(|&user| tick(user)).min();
            first_use.filter(|&use_| movable && use_ > tick(node) + 1)
        };
        let keyed = graph.order().iter().map(|&node| match target(node) {
            Some(first_use) => (first_use, 0, node),
            None => (tick(node), 1, node),
        });
        let mut order: Vec<(u32, u8, NodeId)> = keyed.collect();
        let moved = order.iter().filter(|(_, stays, _)| *stays == 0).count();
        if moved == 0 {
            return Ok(Outcome::default());
        }
        order.sort_by_key(|&(at, stays, _)| (at, stays));
        graph.set_order(order.into_iter().map(|(_, _, node)| node).collect());
        let remarks = vec![format!("moved {}", lmsc_ir::words::count(moved, "operator"))];
        Ok(Outcome { changed: true, remarks, ..Outcome::default() })
    }
}

/// A step whose weights are widened at its start, as mixed precision does it.
const STEP: &str = "\
widened (float[256,512] x, float16[512,512] w1, float16[512,512] w2) => (float[256,512] y)
{
   [cast1] float[512,512] w1_wide = Cast<to = 1>(w1)
   [cast2] float[512,512] w2_wide = Cast<to = 1>(w2)
   [product1] float[256,512] h = MatMul(x, w1_wide)
   [relu] float[256,512] a = Relu(h)
   [product2] float[256,512] y = MatMul(a, w2_wide)
}
";

fn main() {
    let before = Graph::parse(STEP).expect("the text is well formed");
    let mut after = before.clone();
    let cx = PassCx::default();
    // The verifier runs after the pass.
    let ran = Pipeline::new().pass(&LateWeights).run(&mut after, &cx).expect("the pass does not fail");
    lmsc_ir::equiv::check(&before, &after).expect("the pass changes no value");
    println!("{}: {}", ran[0].pass, ran[0].outcome.remarks.join(", "));
    println!("peak {} -> {}", cx.memory(&before).transient_peak(), cx.memory(&after).transient_peak());
    print!("{}", after.to_text());
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_example_runs() {
        super::main();
    }
}
