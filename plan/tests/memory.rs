//! The peak of a graph with copies is the maximum over all timings: every state that the edges allow is visited, and its
//! bytes are counted from the nodes that have started and completed.

use std::collections::HashSet;

use lmsc_ir::{Def, Graph, LMSC_DOMAIN, Node, NodeId, Op, Place, StorageId, Storages, ValueId};
use lmsc_plan::MemoryTimeline;
use lmsc_testing::{Rng, Size, Source, training_graph};

/// Adds copies of a storage at random positions, with random control edges; later readers read the copy.
fn swap_something(graph: &mut Graph, rng: &mut Rng) {
    let storages = Storages::of(graph);
    let ticks = graph.ticks();
    let values: Vec<ValueId> = graph.values().map(|(id, _)| id).collect();
    let value = values[rng.below(values.len())];
    let storage = storages.get(storages.storage(value));
    let Some(producer) = graph.producer(value).filter(|_| storage.values[..] == [value]) else { return };
    let readers: Vec<NodeId> = graph.order().to_vec();
    let readers: Vec<NodeId> =
        readers.into_iter().filter(|&n| graph.node(n).operands.contains(&Some(value))).collect();
    let Some(&last) = readers.last().filter(|&&n| !graph.node(n).op.is_swap()) else { return };
    if storage.on_host || graph.node(producer).op.is_swap_in() {
        return;
    }
    let from = ticks[producer.as_u32() as usize] as usize + 1;
    let until = ticks[last.as_u32() as usize] as usize;
    let leaves = from + rng.below(until - from + 1);
    let returns = leaves + rng.below(until - leaves + 1);
    let ty = graph.value(value).ty.clone();
    let mut order = graph.order().to_vec();
    let add = |graph: &mut Graph, op: &str, operand: ValueId, place: Place| {
        let mut node = Node::new(graph.fresh_node_name(op), Op::new(LMSC_DOMAIN, op));
        node.operands.push(Some(operand));
        let name = graph.fresh_value_name("copy");
        let id = graph.add_node(node, [Some((name, ty.clone(), place))]);
        (id, graph.node(id).results[0].unwrap())
    };
    let (out, host) = add(graph, "SwapOut", value, Place::Host);
    let (back, copy) = add(graph, "SwapIn", host, Place::Device);
    for &reader in readers.iter().filter(|&&n| ticks[n.as_u32() as usize] as usize >= returns) {
        for index in 0..graph.node(reader).operands.len() {
            if graph.node(reader).operands[index] == Some(value) {
                graph.set_operand(reader, index, copy);
            }
        }
    }
    order.insert(returns, back);
    order.insert(leaves, out);
    graph.set_order(order);
}

fn graph_with_copies(seed: u64) -> Graph {
    let mut rng = Rng::new(seed);
    let nodes = 5 + rng.below(12);
    let mut graph = training_graph(&mut rng, Size { nodes, tensor_bytes: 1 << 10 });
    for _ in 0..rng.below(7) {
        swap_something(&mut graph, &mut rng);
    }
    let order = graph.order().to_vec();
    for _ in 0..rng.below(10) {
        let later = rng.below(order.len());
        let copies = graph.node(order[later]).op.is_swap();
        let before = order[..later].get(rng.below(later)).copied();
        if let Some(before) = before.filter(|&before| copies || graph.node(before).op.is_swap()) {
            graph.add_after(order[later], before);
        }
    }
    graph
}

/// For each line, the number of nodes that have started, and of those that have completed.
type State = ([usize; 3], [usize; 3]);

/// The largest number of bytes beyond the resident ones in any state that the edges allow.
fn most_bytes(graph: &Graph) -> u64 {
    let storages = Storages::of(graph);
    let line_of = |n: NodeId| match (graph.node(n).op.is_swap_out(), graph.node(n).op.is_swap_in()) {
        (true, _) => 1,
        (_, true) => 2,
        _ => 0,
    };
    let lines: [Vec<NodeId>; 3] =
        std::array::from_fn(|l| graph.order().iter().copied().filter(|&n| line_of(n) == l).collect());
    let mut users: Vec<(StorageId, Vec<NodeId>)> = Vec::new();
    for (id, storage) in storages.iter() {
        if !storage.on_host && matches!(graph.def(storage.root), Def::Result(..)) {
            let touches = |n: &NodeId| {
                let node = graph.node(*n);
                node.reads().chain(node.defines()).any(|v| storages.storage(v) == id)
            };
            users.push((id, graph.order().iter().copied().filter(touches).collect()));
        }
    }
    let kept = |id: StorageId| graph.outputs.iter().any(|&v| storages.storage(v) == id);
    let bytes = |(started, completed): &State| -> u64 {
        let begun = |n: &NodeId| lines[line_of(*n)][..started[line_of(*n)]].contains(n);
        let done = |n: &NodeId| lines[line_of(*n)][..completed[line_of(*n)]].contains(n);
        let live = users
            .iter()
            .filter(|(id, users)| users.iter().any(begun) && (kept(*id) || !users.iter().all(done)));
        live.map(|(id, _)| storages.get(*id).bytes.0).sum()
    };
    let mut seen: HashSet<State> = HashSet::new();
    let mut open = vec![([0; 3], [0; 3])];
    let mut most = 0;
    while let Some(state) = open.pop() {
        if !seen.insert(state) {
            continue;
        }
        most = most.max(bytes(&state));
        let (started, completed) = state;
        for line in 0..3 {
            let mut next = state;
            if started[line] > completed[line] {
                next.1[line] += 1;
                open.push(next);
            } else if let Some(&node) = lines[line].get(started[line]) {
                let done = |p: NodeId| lines[line_of(p)][..completed[line_of(p)]].contains(&p);
                if graph.predecessors(node).all(done) {
                    next.0[line] += 1;
                    open.push(next);
                }
            }
        }
    }
    most
}

#[test]
fn the_peak_is_the_most_that_any_timing_reaches() {
    let mut copies = 0;
    for seed in 0..400 {
        let graph = graph_with_copies(seed);
        lmsc_ir::verify(&graph).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let memory = MemoryTimeline::of(&graph);
        assert_eq!(memory.transient_peak().0, most_bytes(&graph), "seed {seed}\n{}", graph.to_text());
        copies += graph.order().iter().filter(|&&n| graph.node(n).op.is_swap()).count();
    }
    assert!(copies > 400, "only {copies} copies");
}

#[test]
fn sizes_that_no_64_bits_hold_together_are_counted_from_above() {
    let mut text = "g (float[1] x) => (float[1] x) { [a] float[250000000000000000] h = F(x)\n".to_owned();
    for i in 0..6 {
        text += &format!("[o{i}] float[250000000000000000]@host h{i} = ai.lmsc.SwapOut(h)\n");
        text += &format!("[i{i}] float[250000000000000000] k{i} = ai.lmsc.SwapIn(h{i})\n");
    }
    text += "[b] float[1] y = F(k0, k1, k2, k3, k4, k5) }";
    let graph = Graph::parse(&text).unwrap();
    lmsc_ir::verify(&graph).unwrap();
    assert_eq!(MemoryTimeline::of(&graph).peak().0, (1 << 61) + 4);
}
