//! The pass. It knows `lmsc-ir` and `lmsc-passes` alone.

use lmsc_ir::{Graph, Node, NodeId, Op, ValueId};
use lmsc_passes::{CallOption, Outcome, Pass, PassCx, PassError};

const APART: CallOption = CallOption::count(
    "apart",
    "number of nodes between two readers from which the value is computed again",
    4,
);

/// Repeats the cast of an input or an initializer directly before its late readers, so that its result is not resident until then.
///
/// Only casts of values that no node updates are repeated: a repeated one would have to be ordered before the update.
pub struct WidenAgain;

impl Pass for WidenAgain {
    fn name(&self) -> &'static str {
        "widen-again"
    }

    fn summary(&self) -> &'static str {
        "casts of weights that are repeated for late readers, so that their results are not held"
    }

    fn options(&self) -> &[CallOption] {
        &[APART]
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        let variables = graph.variables();
        let is_given =
            |graph: &Graph, value: ValueId| graph.producer(value).is_none() && !variables.contains(&value);
        let mut order = Vec::with_capacity(graph.order().len());
        let mut repeated = 0;
        // For each value, the tick of its last reader so far.
        let mut last_read = vec![None; graph.value_capacity()];
        for (tick, id) in graph.order().to_vec().into_iter().enumerate() {
            for index in 0..graph.node(id).operands.len() {
                let Some(value) = graph.node(id).operands[index] else { continue };
                let before: Option<usize> = last_read[value.as_u32() as usize].replace(tick);
                let is_late = before.is_some_and(|before| (tick - before) as u64 > cx.count(&APART));
                let origin = graph.producer(value).filter(|_| is_late);
                let Some(origin) = origin.filter(|&origin| is_cast(graph, origin)) else { continue };
                let Some(from) = graph.node(origin).operands[0].filter(|&from| is_given(graph, from)) else {
                    continue;
                };
                let (again, result) = repeat(graph, origin, from);
                graph.set_operand(id, index, result);
                order.push(again);
                repeated += 1;
            }
            order.push(id);
        }
        if repeated == 0 {
            return Ok(Outcome::default());
        }
        graph.set_order(order);
        let remarks = vec![format!("repeated {}", lmsc_ir::words::count(repeated, "cast"))];
        Ok(Outcome { changed: true, remarks, ..Outcome::default() })
    }
}

fn is_cast(graph: &Graph, node: NodeId) -> bool {
    let node = graph.node(node);
    node.op.key() == ("", "Cast") && node.recomputes.is_none() && node.after.is_empty()
}

/// Adds a second cast of `from`, and its result. It is marked as a recomputation of the first cast, which the equivalence check proves.
fn repeat(graph: &mut Graph, origin: NodeId, from: ValueId) -> (NodeId, ValueId) {
    let first = graph.node(origin);
    let mut again = Node::new(graph.fresh_node_name(&format!("{}_again", first.name)), Op::new("", "Cast"));
    again.attributes = first.attributes.clone();
    again.operands.push(Some(from));
    again.recomputes = Some(origin);
    let value = graph.value(first.results[0].expect("a cast has a result")).clone();
    let name = graph.fresh_value_name(&format!("{}_again", value.name));
    let again = graph.add_node(again, [Some((name, value.ty, value.place))]);
    (again, graph.node(again).results[0].expect("it was just given"))
}
