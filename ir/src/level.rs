//! Topological levels (TFLMS, Definition 2).

use crate::Graph;

/// For every node, by index, its level γ: the length of the longest path that leads to it from the variables.
///
/// Graph inputs and initializers have level 0, so a node that reads nothing else has level 1. Nodes of one level
/// do not depend on each other. Data and control edges count, update edges do not.
///
/// # Source
/// TFLMS, Definition 2.
///
/// ```
/// let text = "g (float[2] x) => (float[2] z) {
///     [a] float[2] y = Relu(x)
///     [b] float[2] z = Add(x, y)
///     [c] float[2] u = Relu(x) after [b]
/// }";
/// let graph = lmsc_ir::Graph::parse(text).unwrap();
/// assert_eq!(lmsc_ir::levels(&graph), [1, 2, 3]);
/// ```
pub fn levels(graph: &Graph) -> Vec<u32> {
    let mut levels = vec![0; graph.node_capacity()];
    for &node in graph.order() {
        let before = graph.predecessors(node).map(|p| levels[p.as_u32() as usize]).max();
        levels[node.as_u32() as usize] = 1 + before.unwrap_or(0);
    }
    levels
}
