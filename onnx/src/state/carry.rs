//! How each next value is carried to its variable: in place, or by a copy.

use foldhash::{HashMap, HashMapExt, HashSet};
use lmsc_ir::{
    Adjacency, Def, Graph, LMSC_DOMAIN, Node, NodeId, Op, Place, StorageId, Storages, Update, ValueId,
};

use super::given;

/// Operators that read each element before they write it and read no other, so that their result may replace an operand of its
/// type.
const ELEMENTWISE: &[&str] = &[
    "Abs",
    "Add",
    "Cast",
    "Clip",
    "Div",
    "Exp",
    "Log",
    "Max",
    "Min",
    "Mul",
    "Neg",
    "Pow",
    "Reciprocal",
    "Relu",
    "Sigmoid",
    "Sqrt",
    "Sub",
    "Sum",
    "Tanh",
    "Where",
];

/// Gives every pair of a variable and its next value an update edge.
pub(super) fn carry(graph: &mut Graph, pairs: &[(ValueId, ValueId)]) {
    // Pairs that the file's update edges carry already, possibly over the host and back.
    let carried: HashSet<(ValueId, ValueId)> =
        super::carried(graph).into_iter().filter_map(|c| Some((c.input, c.output?))).collect();
    let pairs: Vec<(ValueId, ValueId)> =
        pairs.iter().copied().filter(|pair| !carried.contains(pair)).collect();
    detach_outputs(graph, &pairs);
    let mut plan = Plan::new(graph);
    let mut rest = Vec::new();
    for (variable, next) in pairs {
        let done = plan.storages.storage(next) == plan.storages.storage(variable);
        // An output that is the variable itself is kept without an update.
        if !done && !plan.in_place(graph, variable, next) {
            rest.push(Move { variable, next, source: next });
        }
    }
    let Plan { storages, order, updates, .. } = plan;
    graph.set_order(order);
    for (writer, update) in updates {
        graph.add_update(writer, update);
    }
    copy(graph, &storages, rest);
}

/// Gives an output a storage of its own, by a copy, if it is stored in a variable that is overwritten later in the step: a view of
/// the old value, or the result of an operator that writes the variable in place although its next value is another output.
fn detach_outputs(graph: &mut Graph, pairs: &[(ValueId, ValueId)]) {
    let storages = Storages::of(graph);
    let mut written: HashSet<ValueId> = graph.variables().into_iter().collect();
    let is_other = |&&(v, next): &&(ValueId, ValueId)| storages.storage(next) != storages.storage(v);
    let again: HashSet<StorageId> = pairs
        .iter()
        .filter(is_other)
        .map(|&(v, _)| v)
        .filter(|v| written.contains(v))
        .map(|v| storages.storage(v))
        .collect();
    written.extend(pairs.iter().filter(|&&(v, next)| given(graph, next) != Some(v)).map(|&(v, _)| v));
    let next: HashSet<ValueId> = pairs.iter().map(|&(_, next)| next).collect();
    let is_old = |&output: &ValueId| {
        let computed = graph.producer(output).is_some() && !next.contains(&output);
        let is_view = || given(graph, output).is_some_and(|variable| written.contains(&variable));
        computed && (again.contains(&storages.storage(output)) || is_view())
    };
    let old: Vec<ValueId> = graph.outputs.iter().copied().filter(is_old).collect();
    if old.is_empty() {
        return;
    }
    let ticks = graph.ticks();
    let mut copies = Copies::new(graph);
    for output in old {
        let after = copies.graph.producer(output).map_or(0, |node| ticks[node.as_u32() as usize] + 1);
        copies.add(after, output, Some(output), None);
    }
    copies.insert();
}

/// Decisions about updates in place, and an order of the nodes that follows from them.
struct Plan {
    storages: Storages,
    order: Vec<NodeId>,
    ticks: Vec<u32>,
    successors: Adjacency,
    /// For each node, the nodes that overwrite values that it reads.
    overwriters: HashMap<NodeId, Vec<NodeId>>,
    /// For each storage, the nodes that read it, in no order.
    readers: Vec<Vec<NodeId>>,
    /// Storages of variables that operators of the graph write in place.
    written: HashSet<StorageId>,
    /// Storages that these decisions write, or that have the place of a variable.
    claimed: HashSet<StorageId>,
    updates: Vec<(NodeId, Update)>,
}

impl Plan {
    fn new(graph: &Graph) -> Plan {
        let storages = Storages::of(graph);
        let mut readers = vec![Vec::new(); storages.len()];
        for &id in graph.order() {
            for value in graph.uses(id) {
                let readers = &mut readers[storages.storage(value).as_u32() as usize];
                if readers.last() != Some(&id) {
                    readers.push(id);
                }
            }
        }
        Plan {
            written: graph.variables().into_iter().map(|v| storages.storage(v)).collect(),
            claimed: HashSet::default(),
            order: graph.order().to_vec(),
            ticks: graph.ticks(),
            successors: graph.successor_lists(),
            overwriters: HashMap::new(),
            readers,
            storages,
            updates: Vec::new(),
        }
    }

    fn tick(&self, node: NodeId) -> usize {
        self.ticks[node.as_u32() as usize] as usize
    }

    /// Makes the node that computes the next value write it in place, if that is safe; returns whether it is.
    fn in_place(&mut self, graph: &Graph, variable: ValueId, next: ValueId) -> bool {
        let (old, new) = (self.storages.storage(variable), self.storages.storage(next));
        let root = self.storages.get(new).root;
        let Def::Result(writer, index) = graph.def(root) else { return false };
        let node = graph.node(writer);
        let reads_old = node.reads().any(|v| self.storages.storage(v) == old);
        let elementwise = node.op.domain().is_empty() && ELEMENTWISE.contains(&node.op.name());
        let same_type = graph.value(root).ty == graph.value(variable).ty;
        // Variables on the host are overwritten by copies over the link, which have update edges of their own.
        let here = !graph.value(variable).place.is_host() && !graph.value(root).place.is_host();
        let is_written = |storage| self.written.contains(&storage) || self.claimed.contains(&storage);
        // A copy from an earlier compilation may write the variable after an operator that writes it, too.
        let again = super::is_copy(graph, writer) && !self.claimed.contains(&old);
        let free = (!is_written(old) || again) && !is_written(new);
        // Results that depend on shapes alone are computed only once, before the first step.
        let computes = !node.op.is_swap() && !node.op.is_join() && !node.op.effects().shape_only;
        if !(same_type && here && free && computes && (elementwise || !reads_old)) {
            return false;
        }
        let readers: Vec<NodeId> =
            self.readers[old.as_u32() as usize].iter().copied().filter(|&r| r != writer).collect();
        if !self.run_before(&readers, writer) {
            return false;
        }
        for reader in readers {
            self.overwriters.entry(reader).or_default().push(writer);
        }
        self.claimed.extend([old, new]);
        self.updates.push((writer, Update { variable, result: Some(index) }));
        true
    }

    /// Orders the readers before the writer, if no path leads from the writer to one of them; returns whether none does.
    fn run_before(&mut self, readers: &[NodeId], writer: NodeId) -> bool {
        let first = self.tick(writer);
        let Some(last) = readers.iter().map(|&r| self.tick(r)).max().filter(|&last| last > first) else {
            return true;
        };
        // Every path from the writer to a reader stays between their ticks.
        let mut follows = HashSet::from_iter([writer]);
        let mut open = vec![writer];
        while let Some(node) = open.pop() {
            let overwriters = self.overwriters.get(&node).map_or(&[][..], Vec::as_slice);
            for &after in self.successors.of(node).iter().chain(overwriters) {
                if self.tick(after) <= last && follows.insert(after) {
                    open.push(after);
                }
            }
        }
        if readers.iter().any(|reader| follows.contains(reader)) {
            return false;
        }
        let between = &mut self.order[first..=last];
        let (after, before): (Vec<NodeId>, Vec<NodeId>) =
            between.iter().partition(|id| follows.contains(*id));
        for (slot, id) in between.iter_mut().zip(before.into_iter().chain(after)) {
            *slot = id;
        }
        for (tick, id) in (first..).zip(&self.order[first..=last]) {
            self.ticks[id.as_u32() as usize] = tick as u32;
        }
        true
    }
}

/// A next value that is copied to its variable.
#[derive(Clone, Copy)]
struct Move {
    variable: ValueId,
    /// The output.
    next: ValueId,
    /// The value that is copied.
    source: ValueId,
}

/// Adds a copy to the variable for each of the moves, as soon as no node reads or writes the variable any more.
///
/// If the source of one move is stored in the variable of a second move, the copy of the first comes before that of the second:
/// the source may be the old value of that variable, or a value that a node wrote there in place. Where variables exchange their
/// values, or a node overwrites the old value that is to be copied, that value is saved to a storage of its own first.
fn copy(graph: &mut Graph, storages: &Storages, moves: Vec<Move>) {
    let Uses { last, first_write, end } = Uses::of(graph, storages);
    let mut copies = Copies::new(graph);
    let moved: HashSet<StorageId> = moves.iter().map(|m| storages.storage(m.variable)).collect();
    // For each storage, the number of moves that still read its contents.
    let mut pending: HashMap<StorageId, usize> = HashMap::new();
    let (mut from_old, mut others) = (Vec::new(), Vec::new());
    for mut one in moves {
        let storage = storages.storage(one.source);
        let is_old = given(copies.graph, one.source).is_some();
        match first_write.get(&storage).filter(|_| is_old) {
            Some(&write) => {
                one.source = copies.add(write, one.source, None, None);
                from_old.push((one, None));
            }
            None if is_old || moved.contains(&storage) => {
                *pending.entry(storage).or_default() += 1;
                from_old.push((one, Some(storage)));
            }
            None => others.push(one),
        }
    }
    for m in others {
        if pending.contains_key(&storages.storage(m.variable)) {
            from_old.push((m, None));
            continue;
        }
        let produced =
            copies.graph.producer(m.source).map_or(0, |node| copies.ticks[node.as_u32() as usize] + 1);
        let free = last.get(&storages.storage(m.variable)).map_or(0, |&last| last + 1);
        copies.add(produced.max(free), m.source, Some(m.next), Some(m.variable));
    }
    while !from_old.is_empty() {
        let is_pending =
            |m: &Move| pending.get(&storages.storage(m.variable)).is_some_and(|&count| count > 0);
        let ready = from_old.iter().position(|(m, _)| !is_pending(m));
        let (m, reads) = from_old.remove(ready.unwrap_or(0));
        if let Some(storage) = reads {
            pending.entry(storage).and_modify(|count| *count -= 1);
        }
        match ready {
            Some(_) => _ = copies.add(end, m.source, Some(m.next), Some(m.variable)),
            None => from_old.push((Move { source: copies.add(end, m.source, None, None), ..m }, None)),
        }
    }
    copies.insert();
}

/// When storages are used.
struct Uses {
    /// For each storage, the tick of the last node that reads or overwrites it.
    last: HashMap<StorageId, u32>,
    /// For each storage, the tick of the first node that overwrites it.
    first_write: HashMap<StorageId, u32>,
    /// The tick behind the last node.
    end: u32,
}

impl Uses {
    fn of(graph: &Graph, storages: &Storages) -> Uses {
        let (mut last, mut first_write) = (HashMap::new(), HashMap::new());
        for (tick, &id) in (0..).zip(graph.order()) {
            for value in graph.uses(id) {
                last.insert(storages.storage(value), tick);
            }
            for update in &graph.node(id).updates {
                let storage = storages.storage(update.variable);
                last.insert(storage, tick);
                first_write.entry(storage).or_insert(tick);
            }
        }
        Uses { last, first_write, end: graph.order().len() as u32 }
    }
}

/// Copies that are added to a graph.
struct Copies<'a> {
    graph: &'a mut Graph,
    ticks: Vec<u32>,
    order: Vec<NodeId>,
    /// Values that subgraphs read under their own names.
    captured: HashSet<ValueId>,
    /// The tick of the node before which each copy is inserted, and the copy.
    insertions: Vec<(u32, NodeId)>,
}

impl<'a> Copies<'a> {
    fn new(graph: &'a mut Graph) -> Copies<'a> {
        let captured = graph.order().iter().flat_map(|&id| &graph.node(id).captures).copied().collect();
        let (ticks, order) = (graph.ticks(), graph.order().to_vec());
        Copies { graph, ticks, order, captured, insertions: Vec::new() }
    }

    /// Adds a copy of the source before the node of the tick, and returns its result, which updates the variable.
    ///
    /// The result takes the name of `output` and its place among the graph's outputs, if that can have another name.
    fn add(
        &mut self,
        tick: u32,
        source: ValueId,
        output: Option<ValueId>,
        variable: Option<ValueId>,
    ) -> ValueId {
        let graph = &mut *self.graph;
        let about = graph.value(variable.or(output).unwrap_or(source)).name.clone();
        let renamed = output.filter(|o| graph.producer(*o).is_some() && !self.captured.contains(o));
        let name = match renamed {
            Some(output) => {
                let name = graph.value(output).name.clone();
                graph.rename(output, graph.fresh_value_name(&format!("{name}_value")));
                name
            }
            None => graph.fresh_value_name(&format!("{about}_copy")),
        };
        let node_name = graph.fresh_node_name(&format!("copy_{about}"));
        let ty = graph.value(source).ty.clone();
        let (from, to) = (graph.value(source).place, graph.value(variable.unwrap_or(source)).place);
        // A variable that is on the host between steps is written by a copy over the link.
        let (op, place) = match (from.is_host(), to.is_host()) {
            (false, true) => ("SwapOut", Place::Host),
            (true, false) => ("SwapIn", Place::Device),
            (is_host, _) => ("Copy", if is_host { Place::Host } else { Place::Device }),
        };
        let mut node = Node::new(node_name, Op::new(LMSC_DOMAIN, op));
        node.operands.push(Some(source));
        let id = graph.add_node(node, [Some((name, ty, place))]);
        graph.opsets.entry(LMSC_DOMAIN.to_owned()).or_insert(1);
        let result = graph.node(id).results[0].expect("a copy has a result");
        if let Some(variable) = variable {
            graph.add_update(id, Update { variable, result: Some(0) });
        }
        for value in graph.outputs.iter_mut().filter(|value| Some(**value) == renamed) {
            *value = result;
        }
        self.insertions.push((tick, id));
        result
    }

    /// Inserts the copies into the order.
    fn insert(mut self) {
        // Stable: copies before one node stay in the order in which they were added.
        self.insertions.sort_by_key(|&(tick, _)| tick);
        let mut insertions = self.insertions.into_iter().peekable();
        let mut order = Vec::with_capacity(self.graph.order().len());
        for (tick, id) in (0..).zip(self.order) {
            while let Some((_, copy)) = insertions.next_if(|&(before, _)| before <= tick) {
                order.push(copy);
            }
            order.push(id);
        }
        order.extend(insertions.map(|(_, copy)| copy));
        self.graph.set_order(order);
    }
}
