//! Forward, backward, update: the phases of a step, derived from the graph itself.

use std::fmt;

use crate::{ElementType, Graph, LMSC_DOMAIN, Node, NodeId, Type, ValueId};

/// A part of a training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Computes the loss.
    Forward,
    /// Computes gradients of the loss.
    Backward,
    /// Writes variables: accumulates gradients, updates parameters and moments.
    Update,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Update => "update",
        })
    }
}

/// The phase of every node.
#[derive(Clone, Debug)]
pub struct Phases {
    of: Vec<Phase>,
    /// The loss, if the graph computes one and trains on it.
    pub loss: Option<ValueId>,
}

impl Phases {
    /// The phases of the graph's nodes.
    ///
    /// The *loss* is the first output that is a single floating-point number, or if there are several the first that depends on a
    /// variable and is no variable's new value; if a `YieldOp` hands out the model's results and
    /// takes in their gradients, its operands count as the loss. All nodes that the loss depends on are forward. Of the other
    /// nodes, those that write variables are update, together with the elementwise arithmetic that only they read and all nodes
    /// that follow them; nodes that lead to gradients, or follow from them, are backward; and the rest (a metric, a dead end) is
    /// forward. A graph without gradient operators, updates or gradients among its outputs is inference: all nodes are forward.
    ///
    /// `scope` may determine the phase of a node by its name, like TFLMS's `optimizer_scopes`.
    pub fn of(graph: &Graph, scope: impl Fn(&Node) -> Option<Phase>) -> Phases {
        let mut phases = Phases { of: vec![Phase::Forward; graph.node_capacity()], loss: None };
        phases.find(graph);
        for &id in graph.order() {
            if let Some(phase) = scope(graph.node(id)) {
                phases.of[id.as_u32() as usize] = phase;
            }
        }
        phases
    }

    /// The node's phase.
    pub fn phase(&self, node: NodeId) -> Phase {
        self.of[node.as_u32() as usize]
    }

    /// Whether any node is backward: the graph trains.
    pub fn trains(&self) -> bool {
        self.of.contains(&Phase::Backward)
    }

    /// Number of nodes of the order in the phase.
    pub fn count(&self, graph: &Graph, phase: Phase) -> usize {
        graph.order().iter().filter(|&&n| self.phase(n) == phase).count()
    }

    fn find(&mut self, graph: &Graph) {
        let mut roots: Vec<NodeId> = Vec::new();
        for &id in graph.order() {
            if graph.node(id).op.key() == (crate::domains::MS, "YieldOp") {
                roots.extend(graph.node(id).reads().filter_map(|v| graph.producer(v)));
            }
        }
        let loss = loss_of(graph);
        if roots.is_empty() {
            roots.extend(loss.and_then(|v| graph.producer(v)));
        }
        let forward = ancestors(graph, &roots);
        let is_forward = |id: NodeId| forward[id.as_u32() as usize];

        let mut sinks: Vec<NodeId> = Vec::new();
        let parameters = parameter_types(graph, &forward);
        let gradients = graph.outputs.iter().filter(|&&v| parameters.contains(&&graph.value(v).ty));
        sinks.extend(gradients.filter_map(|&v| graph.producer(v)).filter(|&n| !is_forward(n)));
        for &id in graph.order() {
            let node = graph.node(id);
            // Inference also carries state by copies.
            let carries = roots.is_empty() && node.op.key() == (LMSC_DOMAIN, "Copy");
            let gradient = node.op.effects().phase.is_some() || writes(node) && !carries;
            if gradient && !is_forward(id) {
                sinks.push(id);
            }
        }
        if sinks.is_empty() {
            return;
        }
        self.loss = loss;
        let leads_to_gradient = ancestors(graph, &sinks);
        for &id in graph.order() {
            let index = id.as_u32() as usize;
            let follows = || graph.predecessors(id).any(|p| self.phase(p) != Phase::Forward);
            if !is_forward(id) && (leads_to_gradient[index] || follows()) {
                self.of[index] = Phase::Backward;
            }
        }
        self.find_update(graph);
    }

    /// Moves nodes from backward to update.
    fn find_update(&mut self, graph: &Graph) {
        let successors = graph.successor_lists();
        for &id in graph.order() {
            let node = graph.node(id);
            let mut producers = node.reads().filter_map(|value| graph.producer(value));
            let follows = producers.any(|p| self.phase(p) == Phase::Update);
            let updates = writes(node) || node.op.effects().phase == Some(Phase::Update);
            if self.phase(id) == Phase::Backward && (updates || follows) {
                self.of[id.as_u32() as usize] = Phase::Update;
            }
        }
        for &id in graph.order().iter().rev() {
            let next = successors.of(id);
            let only_for_update = !next.is_empty() && next.iter().all(|&n| self.phase(n) == Phase::Update);
            if self.phase(id) == Phase::Backward && only_for_update && is_update_arithmetic(graph.node(id)) {
                self.of[id.as_u32() as usize] = Phase::Update;
            }
        }
    }
}

/// Whether the node computes the value that it writes into a variable; a copy only moves it.
fn writes(node: &Node) -> bool {
    !node.updates.is_empty() && !node.op.is_swap()
}

/// Operators that occur in optimizers composed of standard operators.
fn is_update_arithmetic(node: &Node) -> bool {
    const NAMES: &[&str] =
        &["Add", "Sub", "Mul", "Div", "Sqrt", "Pow", "Neg", "Reciprocal", "SequenceConstruct"];
    node.op.domain().is_empty() && NAMES.contains(&node.op.name())
}

/// The output that is the loss, if there is one.
fn loss_of(graph: &Graph) -> Option<ValueId> {
    let mut scalars = graph.outputs.iter().copied().filter(|&v| is_scalar_float(graph, v));
    let first = scalars.next()?;
    if scalars.next().is_none() {
        return Some(first);
    }
    let variables = graph.variables();
    let writers: Vec<&Node> = graph.order().iter().map(|&id| graph.node(id)).filter(|n| writes(n)).collect();
    let is_written = |value: ValueId| {
        writers.iter().any(|node| {
            let copies = node.op.key() == (LMSC_DOMAIN, "Copy") && node.reads().any(|read| read == value);
            let result = |r: Option<usize>| r.and_then(|r| node.results.get(r).copied().flatten());
            copies || node.updates.iter().any(|update| result(update.result) == Some(value))
        })
    };
    let depends = |value: ValueId| {
        let of = graph.producer(value).map_or_else(Vec::new, |node| ancestors(graph, &[node]));
        let mut nodes = graph.order().iter().filter(|n| of.get(n.as_u32() as usize) == Some(&true));
        nodes.any(|&n| graph.node(n).reads().any(|read| variables.binary_search(&read).is_ok()))
    };
    let scalars = graph.outputs.iter().copied().filter(|&v| is_scalar_float(graph, v));
    scalars.filter(|&v| !is_written(v)).find(|&v| depends(v)).or(Some(first))
}

fn is_scalar_float(graph: &Graph, value: ValueId) -> bool {
    let tensor = graph.value(value).ty.as_tensor();
    tensor.is_some_and(|t| t.element.is_float() && t.element_count() == Some(1))
}

/// Types of the floating-point inputs and initializers that the loss depends on.
fn parameter_types<'a>(graph: &'a Graph, forward: &[bool]) -> std::collections::HashSet<&'a Type> {
    let nodes = graph.order().iter().filter(|n| forward[n.as_u32() as usize]);
    let given = nodes.flat_map(|&n| graph.node(n).reads()).filter(|&v| graph.producer(v).is_none());
    let types = given.map(|v| &graph.value(v).ty);
    types
        .filter(|t| t.as_tensor().is_some_and(|t| t.element != ElementType::Bool && t.element.is_float()))
        .collect()
}

/// For each node index, whether one of the nodes depends on its results; true for the nodes themselves. Control edges do not count:
/// plans add some from updates to forward nodes.
fn ancestors(graph: &Graph, of: &[NodeId]) -> Vec<bool> {
    let mut found = vec![false; graph.node_capacity()];
    let mut stack = of.to_vec();
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut found[node.as_u32() as usize], true) {
            stack.extend(graph.node(node).reads().filter_map(|value| graph.producer(value)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(text: &str) -> String {
        let graph = Graph::parse(text).unwrap();
        let phases = Phases::of(&graph, |_| None);
        let letter = |n: &NodeId| phases.phase(*n).to_string().remove(0);
        graph.order().iter().map(letter).collect()
    }

    #[test]
    fn gradient_operators_and_accumulators() {
        let text = "g (float[4,3] x, int64[4] labels, float[3,3] w, float[3,3] buffer, bool[1] reset)
            => (float[] loss, bool[1] flag) <float[] one = {1.0}> {
            [fc] float[4,3] y = MatMul(x, w)
            [loss] float[] loss, float[4,3] log_prob = SoftmaxCrossEntropyLoss(y, labels)
            [best] int64[4] best = ArgMax(y)
            [dy] float[4,3] dy = com.microsoft.SoftmaxCrossEntropyLossGrad(one, log_prob, labels)
            [dw] float[3,3] dw = com.microsoft.FusedMatMul<transA = 1>(x, dy)
            [acc] bool[1] flag = com.microsoft.InPlaceAccumulatorV2(buffer, dw, reset) updates (buffer)
        }";
        assert_eq!(phases(text), "fffbbu");
    }

    #[test]
    fn standard_operators_with_gradients_as_outputs() {
        let text = "g (float[4,3] x, float[3,3] w) => (float[] loss, float[3,3] grad) <float[1] k = {0.5}> {
            [fc] float[4,3] y = MatMul(x, w)
            [sq] float[4,3] z = Mul(y, y)
            [loss] float[] loss = ReduceMean(z)
            [dy] float[4,3] dy = Mul(y, k)
            [xt] float[3,4] xt = Transpose(x)
            [dw] float[3,3] grad = MatMul(xt, dy)
        }";
        assert_eq!(phases(text), "fffbbb");
    }

    #[test]
    fn standard_optimizer_arithmetic_is_update() {
        let text = "g (float[4,3] x, float[3,3] w, float[] lr) => (float[] loss, float[3,3] w_new) {
            [fc] float[4,3] y = MatMul(x, w)
            [loss] float[] loss = ReduceMean(y)
            [xt] float[3,4] xt = Transpose(x)
            [dw] float[3,3] grad = MatMul(xt, y)
            [step] float[3,3] step = Mul(lr, grad)
            [sub] float[3,3] w_new = Sub(w, step) updates (w as w_new)
        }";
        assert_eq!(phases(text), "ffbbuu");
    }

    #[test]
    fn inference_is_forward_throughout() {
        let text = "g (float[4,3] x, float[3,3] w) => (float[4,3] y, float[] mean) {
            [fc] float[4,3] y = MatMul(x, w)
            [mean] float[] mean = ReduceMean(y)
            [dead] float[4,3] z = Relu(y)
        }";
        assert_eq!(phases(text), "fff");
    }

    #[test]
    fn control_edges_and_carried_state_are_no_gradients() {
        let statistics = "g (float[4] x, float[4] m) => (float[] loss, float[4] m_new) {
            [n] float[4] n = Neg(m)
            [copy] float[4] m_new = ai.lmsc.Copy(n) updates (m as m_new)
            [loss] float[] loss = ReduceMean<keepdims = 0>(x) after [copy]
        }";
        assert_eq!(phases(statistics), "uuf");
        let hidden = "g (float[4] x, float[4] h) => (float[4] h_new) {
            [n] float[4] n = Add(x, h)
            [copy] float[4] h_new = ai.lmsc.Copy(n) updates (h as h_new)
        }";
        assert_eq!(phases(hidden), "ff");
    }

    #[test]
    fn a_yield_stands_for_the_loss() {
        let text = "g (float[4,3] x, float[3,3] w) => (float[3,3] grad) {
            [fc] float[4,3] y = MatMul(x, w)
            [yield] float[4,3] dy = com.microsoft.YieldOp(y)
            [xt] float[3,4] xt = Transpose(x)
            [dw] float[3,3] grad = MatMul(xt, dy)
        }";
        assert_eq!(phases(text), "fbbb");
    }
}
