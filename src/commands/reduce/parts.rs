//! The parts of a graph, and the graph that a selection of them makes.

use std::collections::{BTreeMap, BTreeSet};

use lmsc_ir::{Def, Graph, Node, NodeId, TensorType, Type, Update, ValueId, ops};

/// The parts of a graph that are still there.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) nodes: Vec<NodeId>,
    pub(super) outputs: Vec<ValueId>,
    /// Control edges.
    pub(super) edges: Vec<(NodeId, NodeId)>,
    /// Inputs and initializers that stay even without readers.
    pub(super) given: Vec<ValueId>,
    /// By extent of the whole graph, the smaller extent that replaces it.
    pub(super) resized: BTreeMap<u64, u64>,
}

impl Parts {
    /// All parts of the graph.
    pub(super) fn all(whole: &Graph) -> Parts {
        let edges = |&id: &NodeId| whole.node(id).after.iter().map(move |&before| (before, id));
        let data = whole.initializers.iter().map(|initializer| initializer.value);
        let given: BTreeSet<ValueId> = whole.inputs.iter().copied().chain(data).collect();
        Parts {
            nodes: whole.order().to_vec(),
            outputs: whole.outputs.clone(),
            edges: whole.order().iter().flat_map(edges).collect(),
            given: given.into_iter().collect(),
            resized: BTreeMap::new(),
        }
    }

    /// The extents above 1 of needed values, largest first: each in the whole graph, and now.
    pub(super) fn extents(&self, whole: &Graph) -> Vec<(u64, u64)> {
        let mut extents = BTreeSet::new();
        for value in self.needed(whole) {
            each_tensor(&whole.value(value).ty, |ty| extents.extend(ty.dims.iter().copied()));
        }
        let now = |extent: u64| (extent, self.resized.get(&extent).copied().unwrap_or(extent));
        extents.into_iter().rev().map(now).filter(|&(_, now)| now > 1).collect()
    }

    /// The values in the graph of these parts, in the order of their ids.
    fn needed(&self, whole: &Graph) -> BTreeSet<ValueId> {
        let mut needed: BTreeSet<ValueId> = self.outputs.iter().chain(&self.given).copied().collect();
        for &id in &self.nodes {
            let node = whole.node(id);
            needed.extend(node.reads().chain(node.defines()));
            needed.extend(node.updates.iter().map(|update| update.variable));
        }
        needed
    }

    /// The graph of these parts. Results of removed nodes become inputs if they have readers.
    pub(super) fn graph(&self, whole: &Graph) -> Graph {
        let mut graph = Graph::new(whole.name.clone());
        graph.opsets = whole.opsets.clone();
        let needed = self.needed(whole);
        let kept: BTreeSet<NodeId> = self.nodes.iter().copied().collect();
        let mut values: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        let is_data = |value: ValueId| matches!(whole.def(value), Def::Initializer(_));
        for &value in whole.inputs.iter().filter(|value| needed.contains(value) && !is_data(**value)) {
            let new = self.input(&mut graph, whole, value);
            values.insert(value, new);
        }
        for initializer in whole.initializers.iter().filter(|it| needed.contains(&it.value)) {
            let value = whole.value(initializer.value);
            let data = initializer.data.clone();
            let new = graph.add_initializer(value.name.clone(), value.ty.clone(), data);
            graph.set_place(new, value.place);
            if whole.inputs.contains(&initializer.value) {
                graph.inputs.push(new);
            }
            values.insert(initializer.value, new);
        }
        for &value in &needed {
            if whole.producer(value).is_some_and(|producer| !kept.contains(&producer)) {
                let new = self.input(&mut graph, whole, value);
                values.insert(value, new);
            }
        }
        let mut nodes: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for &id in &self.nodes {
            let new = self.node(&mut graph, whole, id, (&values, &nodes));
            let results = whole.node(id).results.iter().zip(&graph.node(new).results);
            values.extend(results.filter_map(|(old, new)| Some(((*old)?, (*new)?))));
            nodes.insert(id, new);
        }
        for (before, after) in &self.edges {
            if let (Some(&before), Some(&after)) = (nodes.get(before), nodes.get(after)) {
                graph.add_after(after, before);
            }
        }
        graph.outputs = self.outputs.iter().filter_map(|output| values.get(output)).copied().collect();
        graph
    }

    /// Adds the value as an input.
    fn input(&self, graph: &mut Graph, whole: &Graph, value: ValueId) -> ValueId {
        let value = whole.value(value);
        graph.add_input(value.name.clone(), self.resized(&value.ty), value.place)
    }

    /// Adds the node; its operands and predecessors have already been added.
    fn node(
        &self,
        graph: &mut Graph,
        whole: &Graph,
        id: NodeId,
        (values, nodes): (&BTreeMap<ValueId, ValueId>, &BTreeMap<NodeId, NodeId>),
    ) -> NodeId {
        let old = whole.node(id);
        let now = |value: ValueId| values[&value];
        let node = Node {
            operands: old.operands.iter().map(|operand| operand.map(now)).collect(),
            captures: old.captures.iter().copied().map(now).collect(),
            after: Default::default(),
            updates: old.updates.iter().map(|it| Update { variable: now(it.variable), ..*it }).collect(),
            recomputes: old.recomputes.and_then(|origin| nodes.get(&origin)).copied(),
            ..old.clone()
        };
        let result = |value: ValueId| {
            let value = whole.value(value);
            (value.name.clone(), self.resized(&value.ty), value.place)
        };
        let new = graph.add_node(node, old.results.iter().map(|value| value.map(result)).collect::<Vec<_>>());
        // The seed of a recomputed random node may come from its origin, which may have been removed.
        if old.recomputes.is_some() && ops::may_draw(old) {
            graph.set_seed(new, whole.seed(id));
        }
        new
    }

    fn resized(&self, ty: &Type) -> Type {
        let tensor = |ty: &TensorType| {
            let dims = ty.dims.iter().map(|dim| self.resized.get(dim).copied().unwrap_or(*dim));
            TensorType::new(ty.element, dims.collect::<Vec<_>>())
        };
        match ty {
            Type::Tensor(ty) => Type::Tensor(tensor(ty)),
            Type::Sequence(elements) => Type::Sequence(elements.iter().map(tensor).collect()),
        }
    }
}

fn each_tensor(ty: &Type, mut of: impl FnMut(&TensorType)) {
    match ty {
        Type::Tensor(ty) => of(ty),
        Type::Sequence(elements) => elements.iter().for_each(of),
    }
}
