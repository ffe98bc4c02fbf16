//! Chooses among the orders that the edges allow, to reduce the live bytes.
//!
//! Exporters list gradients of weights, sums of gradients and updates long after their inputs exist, and masks and shapes
//! long before their first readers. Moving such nodes costs no time and often frees more memory than swapping saves.
//!
//! Updates that run as soon as their gradients are complete free these, and copy state both ways beside the backward pass.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use cranelift_entity::SecondaryMap;
use lmsc_cost::Cost;
use lmsc_ir::{Adjacency, Bytes, Def, Graph, NodeId, Phase, Phases, StorageId, Storages};
use lmsc_schedule::problem::{Problem, TensorId};
use lmsc_schedule::tuned::{self, Tunable};

/// Maximum number of nodes that move together.
const MOVED_TOGETHER: Tunable<usize> = Tunable::new(8);

/// Maximum number of followers, dependences and touched storages of a node that are considered when the next node
/// to move is chosen.
const FOLLOWERS: usize = 32;

/// A node has a negligible cost if it allocates less than one part in this many of its share of the bytes that it
/// and others free together.
const NEGLIGIBLE_SHARE: u64 = 16;

/// The graph's own order if its peak is at most `enough`, or else orders that need less memory, each once; which of them is
/// best depends on the planner.
///
/// The first is the one of a few orders with the lowest peak: the graph's own; nodes that free more than they allocate moved
/// forward to their first possible place; nodes that allocate more than they free moved back to their first use; and both. Of
/// equal peaks, it is the one with fewer bytes live over all ticks, the graph's own first.
///
/// If `enough` is given, there are further orders. In these, a few consecutive nodes move together if together they free more
/// than they allocate and the graph's own peak is not exceeded meanwhile: of a weight's gradient that is transposed,
/// multiplied and added to its buffer, only the last node frees memory. And a node that allocates next to nothing runs as
/// soon as it can, if it must run before something large is freed: the gradients of a bias and of a weight read the same
/// tensor.
///
/// The last of these has the updates as early as they can run.
///
/// Nodes that draw random numbers keep their relative order. A graph with copies keeps its order. `cost` returns the duration
/// and the workspace of a node.
pub fn with_less_memory(
    graph: &Graph,
    enough: Option<Bytes>,
    cost: impl Fn(NodeId) -> Cost,
) -> Vec<Vec<NodeId>> {
    let own = graph.order().to_vec();
    if own.iter().any(|&n| graph.node(n).op.is_swap()) {
        return vec![own];
    }
    let storages = Storages::of(graph);
    let touches = Touches::of(graph, &storages);
    let edges = Edges { before: graph.predecessor_lists(), after: graph.successor_lists() };
    let listing = |order: &[NodeId], way: Way, moves: Moves| {
        Listing::new(graph, &storages, &touches, &edges, order, way, moves).run(&cost)
    };
    let own = listing(&own, Way::Forward, Moves::None);
    if enough.is_some_and(|enough| own.peak <= enough) {
        return vec![own.nodes];
    }
    let (nodes, peak) = (own.nodes.clone(), own.peak);
    let early = |moves: Moves| listing(&nodes, Way::Forward, moves);
    let late = |moves: Moves| {
        let reversed: Vec<NodeId> = nodes.iter().rev().copied().collect();
        let mut late = listing(&reversed, Way::Backward, moves).nodes;
        late.reverse();
        late
    };
    let late_alone = late(Moves::Alone);
    let alone = [
        early(Moves::Alone),
        listing(&late_alone, Way::Forward, Moves::None),
        listing(&late_alone, Way::Forward, Moves::Alone),
    ];
    // Of equal ones the first.
    let lowest = alone.into_iter().fold(own, |lowest, listed| {
        let rank = |listed: &Listed| (listed.peak, listed.area);
        if rank(&listed) < rank(&lowest) { listed } else { lowest }
    });
    let mut orders = vec![lowest.nodes];
    if enough.is_some() {
        // The same for every budget below the peak, so that a plan for one budget also fits a larger one.
        let together = Moves::Together(peak);
        for order in [early(together).nodes, listing(&late(together), Way::Forward, together).nodes] {
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
        let early = with_early_updates(graph, &orders[0]);
        if !orders.contains(&early) {
            orders.push(early);
        }
    }
    orders
}

/// The order in which each update runs as soon as the nodes before it have run. Only nodes of the update phase move.
fn with_early_updates(graph: &Graph, order: &[NodeId]) -> Vec<NodeId> {
    let early = early_in_graph(graph, order, &Phases::of(graph, |_| None));
    sorted_by_place(&early.places).into_iter().map(|at| order[at as usize]).collect()
}

/// The node for which most updates of the graph wait, if there is one.
pub fn updates_waiting(graph: &Graph) -> Option<Waiting<NodeId>> {
    let phases = Phases::of(graph, |_| None);
    let order = graph.order();
    let kinds: Vec<(Phase, bool)> =
        order.iter().map(|&node| (phases.phase(node), !graph.node(node).updates.is_empty())).collect();
    let found = early_in_graph(graph, order, &phases).waiting(&kinds)?;
    Some(Waiting { operator: order[found.operator as usize], updates: found.updates, all: found.all })
}

/// The places of the nodes if updates run as soon as they can.
fn early_in_graph(graph: &Graph, order: &[NodeId], phases: &Phases) -> Early {
    let before = graph.predecessor_lists();
    let mut place = vec![0; graph.node_capacity()];
    order.iter().enumerate().for_each(|(at, &node)| place[number(node)] = at as u32);
    let moves = |node: NodeId| phases.phase(node) == Phase::Update && !graph.node(node).op.effects().random;
    let waits =
        |at: usize| before.of(order[at]).iter().map(|&node| place[number(node)]).collect::<Vec<u32>>();
    Early::of(order.len(), |at| moves(order[at]).then(|| waits(at)))
}

/// A problem whose updates run as soon as they can.
#[derive(Clone, Debug)]
pub struct EarlyUpdates {
    /// The problem in the new order.
    pub problem: Problem,
    /// For each tick, the tick of the given problem.
    pub origin: Vec<u32>,
    /// The number of operators that move.
    pub moved: usize,
    /// If most updates wait for one operator, that operator by its tick in the given problem.
    pub waiting: Option<Waiting<u32>>,
}

/// Updates that wait for one operator at the end of the backward phase, such as a norm of all gradients: they cannot run early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting<T> {
    /// The operator.
    pub operator: T,
    /// The number of the updates that wait for it.
    pub updates: usize,
    /// The number of all updates.
    pub all: usize,
}

impl<T> Waiting<T> {
    /// A sentence about it, in which the operator has this name.
    pub fn text(&self, name: &str) -> String {
        let Waiting { updates, all, .. } = self;
        format!(
            "{updates} of {all} updates wait for {name}, so none of these runs before the backward phase is over"
        )
    }
}

/// The problem in which each operator of the update phase runs as soon as it can: after every earlier operator that defines or
/// changes its tensors, and after every earlier one that uses a tensor that it changes. So each operator reads the same values.
pub fn early_updates(problem: &Problem) -> EarlyUpdates {
    let mut changed: SecondaryMap<TensorId, Option<u32>> = SecondaryMap::new();
    let mut touched: SecondaryMap<TensorId, Vec<u32>> = SecondaryMap::new();
    let early = Early::of(problem.ops.len(), |tick| {
        let op = &problem.ops[tick];
        let mut waits: Vec<u32> = op.reads.iter().filter_map(|&tensor| changed[tensor]).collect();
        op.changes.iter().for_each(|&tensor| waits.append(&mut touched[tensor]));
        op.touches().for_each(|tensor| touched[tensor].push(tick as u32));
        op.produces.iter().chain(&op.changes).for_each(|&tensor| changed[tensor] = Some(tick as u32));
        // On several lanes they stay where they wait for reductions.
        (op.phase == Phase::Update && !problem.has_lanes()).then_some(waits)
    });
    let origin = sorted_by_place(&early.places);
    let moved = early.places.iter().enumerate().filter(|&(tick, &place)| place != tick as u32).count();
    let ops = origin.iter().map(|&tick| problem.ops[tick as usize].clone()).collect();
    let kinds: Vec<(Phase, bool)> = problem.ops.iter().map(|op| (op.phase, !op.changes.is_empty())).collect();
    let waiting = early.waiting(&kinds);
    EarlyUpdates { problem: Problem { ops, ..problem.clone() }, origin, moved, waiting }
}

/// The last of this number of parts of the backward phase is late for an update.
const LATE_SHARE: usize = 10;

/// Number of the updates that are looked at for the operator for which they wait.
const LOOKED_AT: usize = 64;

/// Where the items of an order run if some of them run as soon as they can.
struct Early {
    /// By position, the position after which the item runs: its own, or for an item that moves, the last of the places of the items
    /// that it waits for.
    places: Vec<u32>,
    /// By position, the items that it waits for; none for an item that does not move.
    waits: Vec<Vec<u32>>,
}

impl Early {
    /// `waits` returns the items that an item waits for by position, or nothing for an item that does not move.
    fn of(items: usize, mut waits: impl FnMut(usize) -> Option<Vec<u32>>) -> Early {
        let mut early = Early { places: Vec::with_capacity(items), waits: Vec::with_capacity(items) };
        for at in 0..items {
            let found = waits(at);
            let last = |waits: &Vec<u32>| waits.iter().map(|&before| early.places[before as usize]).max();
            let place = found.as_ref().map_or(at as u32, |waits| last(waits).unwrap_or(0));
            early.places.push(place);
            early.waits.push(found.unwrap_or_default());
        }
        early
    }

    /// The operator for which most updates wait although nearly all of the backward phase is over: the last for which all of them do.
    /// By position, operators have a phase, and change tensors or not.
    fn waiting(&self, kinds: &[(Phase, bool)]) -> Option<Waiting<u32>> {
        let is_backward = |&(phase, _): &(Phase, bool)| phase == Phase::Backward;
        let first = kinds.iter().position(is_backward)?;
        let last = kinds.iter().rposition(is_backward)?;
        let late = last - (last - first) / LATE_SHARE;
        let mut by_place: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut all = 0;
        for (at, &place) in
            self.places.iter().enumerate().filter(|&(at, _)| kinds[at] == (Phase::Update, true))
        {
            all += 1;
            if place as usize >= late {
                by_place.entry(place).or_default().push(at as u32);
            }
        }
        let (place, updates) = by_place.into_iter().max_by_key(|(at, found)| (found.len(), Reverse(*at)))?;
        if updates.len() < 2 || 2 * updates.len() <= all {
            return None;
        }
        let some = updates.iter().step_by(updates.len().div_ceil(LOOKED_AT));
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for &update in some.clone() {
            self.awaited(update, place).into_iter().for_each(|at| *counts.entry(at).or_default() += 1);
        }
        let by_all = counts.into_iter().rev().find(|&(_, count)| count == some.len());
        let operator = by_all.map_or(place, |(at, _)| at);
        Some(Waiting { operator, updates: updates.len(), all })
    }

    /// The items of this place that the item waits for, directly or not.
    fn awaited(&self, item: u32, place: u32) -> BTreeSet<u32> {
        let (mut found, mut left) = (BTreeSet::new(), vec![item]);
        while let Some(at) = left.pop() {
            let here =
                self.waits[at as usize].iter().filter(|&&before| self.places[before as usize] == place);
            left.extend(here.filter(|&&before| found.insert(before)));
        }
        found
    }
}

/// The positions in the order of their places; at one place, the item that does not move comes first.
fn sorted_by_place(places: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..places.len() as u32).collect();
    order.sort_by_key(|&at| (places[at as usize], places[at as usize] != at, at));
    order
}

/// An order, the most bytes live at once in it, and the sum of the bytes live over all its ticks.
struct Listed {
    nodes: Vec<NodeId>,
    peak: Bytes,
    area: u128,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Forward,
    Backward,
}

/// The nodes that may be moved.
#[derive(Clone, Copy)]
enum Moves {
    None,
    /// Nodes that gain by themselves.
    Alone,
    /// Also a few nodes together, if the live bytes stay within this limit meanwhile.
    Together(Bytes),
}

struct Edges {
    before: Adjacency,
    after: Adjacency,
}

/// For each node, the storages that it reads or defines, each once.
struct Touches {
    lists: Vec<(u32, u32)>,
    storages: Vec<StorageId>,
}

impl Touches {
    fn of(graph: &Graph, storages: &Storages) -> Touches {
        let mut touches = Touches { lists: vec![(0, 0); graph.node_capacity()], storages: Vec::new() };
        let mut last = vec![u32::MAX; storages.len()];
        for &id in graph.order() {
            let start = touches.storages.len() as u32;
            let node = graph.node(id);
            for storage in graph.uses(id).chain(node.defines()).map(|v| storages.storage(v)) {
                if std::mem::replace(&mut last[storage.as_u32() as usize], id.as_u32()) != id.as_u32() {
                    touches.storages.push(storage);
                }
            }
            touches.lists[number(id)] = (start, touches.storages.len() as u32);
        }
        touches
    }

    fn of_node(&self, node: NodeId) -> &[StorageId] {
        let (start, end) = self.lists[number(node)];
        &self.storages[start as usize..end as usize]
    }
}

/// List scheduling over a given order, in which nodes that free memory at once go first.
struct Listing<'a> {
    graph: &'a Graph,
    storages: &'a Storages,
    touches: &'a Touches,
    order: &'a [NodeId],
    moves: Moves,
    before: &'a Adjacency,
    after: &'a Adjacency,
    /// For each node, the number of nodes that must still run before it.
    waits: Vec<u32>,
    /// For each node, its position in the given order.
    place: Vec<u32>,
    done: Vec<bool>,
    /// For each storage, the number of nodes that must still touch it, and the sum of their numbers: if one is left, this is its
    /// number.
    left: Vec<(u32, u64)>,
    /// For each storage, whether it is allocated already, and whether it is never freed.
    there: Vec<bool>,
    stays: Vec<bool>,
    /// Nodes to consider by themselves, then together with their followers.
    gains: BinaryHeap<Reverse<(u32, NodeId)>>,
    /// For each node, whether it is in `gains`: 10⁵ operands of a node may all wait for it.
    is_queued: Vec<bool>,
    groups: BinaryHeap<Reverse<(u32, NodeId)>>,
    live: Bytes,
    listed: Listed,
}

impl<'a> Listing<'a> {
    fn new(
        graph: &'a Graph,
        storages: &'a Storages,
        touches: &'a Touches,
        edges: &'a Edges,
        order: &'a [NodeId],
        way: Way,
        moves: Moves,
    ) -> Listing<'a> {
        let (before, after) = match way {
            Way::Forward => (&edges.before, &edges.after),
            Way::Backward => (&edges.after, &edges.before),
        };
        let mut waits = vec![0; graph.node_capacity()];
        let mut place = vec![0; graph.node_capacity()];
        let mut left = vec![(0, 0); storages.len()];
        for (index, &node) in order.iter().enumerate() {
            after.of(node).iter().for_each(|&next| waits[number(next)] += 1);
            place[number(node)] = index as u32;
            for storage in touches.of_node(node) {
                let (count, sum) = &mut left[storage.as_u32() as usize];
                *count += 1;
                *sum += u64::from(node.as_u32());
            }
        }
        let given = |storage: &lmsc_ir::Storage| !matches!(graph.def(storage.root), Def::Result(..));
        let mut there: Vec<bool> = storages.iter().map(|(_, storage)| given(storage)).collect();
        let mut stays = there.clone();
        // Outputs exist at the end: in reversed order, from the start.
        for &value in &graph.outputs {
            let end = if way == Way::Backward { &mut there } else { &mut stays };
            end[storages.storage(value).as_u32() as usize] = true;
        }
        let there_now = storages.iter().zip(&there).filter(|(_, there)| **there);
        let live = there_now.map(|((_, storage), _)| storage.bytes).sum();
        let nodes = Vec::with_capacity(order.len());
        Listing {
            graph,
            storages,
            touches,
            order,
            moves,
            before,
            after,
            waits,
            place,
            done: vec![false; graph.node_capacity()],
            left,
            there,
            stays,
            gains: BinaryHeap::new(),
            is_queued: vec![false; graph.node_capacity()],
            groups: BinaryHeap::new(),
            live,
            listed: Listed { nodes, peak: Bytes::ZERO, area: 0 },
        }
    }

    fn run(mut self, cost: &dyn Fn(NodeId) -> Cost) -> Listed {
        self.order.iter().for_each(|&node| self.consider(node));
        for &node in self.order {
            while let Some(gaining) = self.next_gaining(cost) {
                gaining.into_iter().for_each(|gaining| self.take(gaining, cost(gaining)));
            }
            if !self.done[number(node)] {
                self.take(node, cost(node));
            }
        }
        self.listed
    }

    fn take(&mut self, node: NodeId, cost: Cost) {
        let (brought, freed) = self.change(node, &[]);
        self.live += brought;
        let needed = self.live + Bytes(cost.workspace);
        self.listed.peak = self.listed.peak.max(needed);
        self.listed.area += u128::from(self.live.0);
        self.live = self.live.saturating_sub(freed);
        self.listed.nodes.push(node);
        self.done[number(node)] = true;
        for storage in self.touches.of_node(node) {
            let index = storage.as_u32() as usize;
            self.there[index] = true;
            self.left[index].0 -= 1;
            self.left[index].1 -= u64::from(node.as_u32());
            if self.left[index].0 == 1 {
                self.consider(NodeId::from_u32(self.left[index].1 as u32));
            }
        }
        for &next in self.after.of(node) {
            self.waits[number(next)] -= 1;
            self.consider(next);
        }
    }

    /// Queues the node, or the only node that it waits for, to be considered before the next one in the order, if it can run
    /// and may move.
    fn consider(&mut self, mut node: NodeId) {
        let depth = match self.moves {
            Moves::None => return,
            Moves::Alone => 1,
            Moves::Together(_) => MOVED_TOGETHER.get(),
        };
        for _ in 0..depth {
            if self.done[number(node)] || self.graph.node(node).op.effects().random {
                return;
            }
            match self.waits[number(node)] {
                0 => {
                    if !std::mem::replace(&mut self.is_queued[number(node)], true) {
                        self.gains.push(Reverse((self.place[number(node)], node)));
                    }
                    return;
                }
                1 => {
                    let mut awaited = self.before.of(node).iter().take(FOLLOWERS);
                    let Some(&one) = awaited.find(|before| !self.done[number(**before)]) else { return };
                    node = one;
                }
                _ => return,
            }
        }
    }

    /// The next node that gains by itself; if there is none, the next group that gains together.
    fn next_gaining(&mut self, cost: &dyn Fn(NodeId) -> Cost) -> Option<Vec<NodeId>> {
        while let Some(Reverse((place, node))) = self.gains.pop() {
            self.is_queued[number(node)] = false;
            if self.done[number(node)] {
                continue;
            }
            if self.gains_alone(node) {
                return Some(vec![node]);
            }
            if self.is_small(node) {
                self.groups.push(Reverse((place, node)));
            }
        }
        let Moves::Together(most) = self.moves else { return None };
        while let Some(Reverse((_, first))) = self.groups.pop() {
            let gaining = if self.done[number(first)] { Vec::new() } else { self.gaining(first, most, cost) };
            if !gaining.is_empty() {
                return Some(gaining);
            }
        }
        None
    }

    /// Whether the node frees more than it allocates, or allocates next to nothing.
    fn gains_alone(&self, node: NodeId) -> bool {
        let (brought, freed) = self.change(node, &[]);
        let is_little = || brought.0.saturating_mul(NEGLIGIBLE_SHARE) <= self.share(node);
        freed > brought || matches!(self.moves, Moves::Together(_)) && is_little()
    }

    /// The node's share of the allocated storages that it touches: of each, the bytes divided by the number of nodes that
    /// must still touch it.
    fn share(&self, node: NodeId) -> u64 {
        let shares = self.touches.of_node(node).iter().map(|&storage| {
            let index = storage.as_u32() as usize;
            if self.there[index] && !self.stays[index] {
                self.storages.get(storage).bytes.0 / u64::from(self.left[index].0.max(1))
            } else {
                0
            }
        });
        shares.sum()
    }

    /// The node and its followers, if together they free more than they allocate and at most `most` bytes are live meanwhile;
    /// else nothing.
    fn gaining(&self, first: NodeId, most: Bytes, cost: &dyn Fn(NodeId) -> Cost) -> Vec<NodeId> {
        let mut some = Vec::new();
        let (mut live, mut gain, mut gaining) = (self.live, 0, 0);
        let mut next = Some(first);
        while let Some(node) = next {
            let (brought, freed) = self.change(node, &some);
            tuned::work(1);
            if live + brought + Bytes(cost(node).workspace) > most {
                break;
            }
            live = (live + brought).saturating_sub(freed);
            some.push(node);
            if self.live.saturating_sub(live).0 > gain {
                (gain, gaining) = (self.live.saturating_sub(live).0, some.len());
            }
            next = self.follower(&some).filter(|_| some.len() < MOVED_TOGETHER.get());
        }
        some.truncate(gaining);
        some
    }

    /// Whether the effect of the node after others is cheap to compute.
    fn is_small(&self, node: NodeId) -> bool {
        self.before.of(node).len().max(self.touches.of_node(node).len()) <= FOLLOWERS
    }

    /// The node that can run after these and not without them with the largest net gain; of equal ones the first in the
    /// order.
    fn follower(&self, some: &[NodeId]) -> Option<NodeId> {
        let after = some.iter().flat_map(|&node| self.after.of(node).iter().take(FOLLOWERS).copied());
        let is_ready = |node: NodeId| {
            // A node may occur twice among the predecessors; it is waited for once.
            let met = some.iter().filter(|one| self.before.of(node).contains(one)).count();
            self.waits[number(node)] as usize == met
        };
        let can_run = |node: &NodeId| {
            let is_small = self.is_small(*node) && !self.graph.node(*node).op.effects().random;
            is_small && !some.contains(node) && is_ready(*node)
        };
        after.filter(can_run).min_by_key(|&node| {
            let (brought, freed) = self.change(node, some);
            (i128::from(brought.0) - i128::from(freed.0), self.place[number(node)])
        })
    }

    /// The bytes that the node allocates after some others, and the bytes that are free after it.
    fn change(&self, node: NodeId, others: &[NodeId]) -> (Bytes, Bytes) {
        let (mut brought, mut freed) = (Bytes::ZERO, Bytes::ZERO);
        for &storage in self.touches.of_node(node) {
            let index = storage.as_u32() as usize;
            let bytes = self.storages.get(storage).bytes;
            let touched =
                others.iter().filter(|&&other| self.touches.of_node(other).contains(&storage)).count();
            if !self.there[index] && touched == 0 {
                brought += bytes;
            }
            if self.left[index].0 as usize == 1 + touched && !self.stays[index] {
                freed += bytes;
            }
        }
        (brought, freed)
    }
}

fn number(node: NodeId) -> usize {
    node.as_u32() as usize
}

#[cfg(test)]
mod tests {
    use lmsc_schedule::problem::{COMPUTE, Operator, Tensor};
    use lmsc_testing::{Rng, Size, training_graph};

    use super::*;

    fn order(text: &str) -> Vec<String> {
        listed(text, None)
    }

    fn within(text: &str, enough: u64) -> Vec<String> {
        listed(text, Some(Bytes(enough)))
    }

    fn listed(text: &str, enough: Option<Bytes>) -> Vec<String> {
        let graph = Graph::parse(text).unwrap();
        lmsc_ir::verify(&graph).unwrap();
        let orders = with_less_memory(&graph, enough, |_| Cost { nanos: 1, workspace: 0 });
        for order in &orders {
            let mut moved = graph.clone();
            moved.set_order(order.clone());
            lmsc_ir::verify(&moved).unwrap();
        }
        let last = orders.into_iter().next_back().unwrap();
        last.into_iter().map(|n| graph.node(n).name.to_string()).collect()
    }

    #[test]
    fn a_node_that_frees_memory_runs_as_early_as_possible() {
        // `sum` frees eight elements for one; the exporter listed it last.
        let text = "g (float[8] x) => (float[] s, float[8] z) {
            [a] float[8] a = Relu(x)
            [b] float[8] b = Exp(x)
            [c] float[8] c = Exp(b)
            [z] float[8] z = Exp(c)
            [sum] float[] s = ReduceSum<keepdims = 0>(a)
        }";
        assert_eq!(order(text), ["a", "sum", "b", "c", "z"]);
    }

    #[test]
    fn nodes_that_free_memory_together_move_together() {
        // `turned` allocates as much as it frees; only `sum` then frees that.
        let text = "g (float[4,8] x) => (float[4] s, float[4,8] z) {
            [dy] float[4,8] dy = Relu(x)
            [dx] float[4,8] dx = Exp(dy)
            [wide] float[12,8] wide = Concat<axis = 0>(dx, dx, dx)
            [z] float[4,8] z = Slice(wide)
            [turned] float[8,4] turned = Transpose(dy)
            [sum] float[4] s = ReduceSum<keepdims = 0>(turned)
        }";
        assert_eq!(order(text), ["dy", "dx", "wide", "z", "turned", "sum"]);
        assert_eq!(within(text, 300), ["dy", "dx", "turned", "sum", "wide", "z"]);
    }

    #[test]
    fn a_move_of_little_gain_does_not_block_others() {
        // `dy` is freed only when `bias` and `turned` have read it; neither frees anything itself.
        let text = "g (float[4,64] x) => (float[4] b, float[4] s, float[4,64] z) {
            [dy] float[4,64] dy = Relu(x)
            [dx] float[4,64] dx = Exp(dy)
            [wide] float[12,64] wide = Concat<axis = 0>(dx, dx, dx)
            [z] float[4,64] z = Slice(wide)
            [turned] float[64,4] turned = Transpose(dy)
            [sum] float[4] s = ReduceSum<keepdims = 0>(turned)
            [bias] float[4] b = ReduceSum<keepdims = 0>(dy)
        }";
        assert_eq!(order(text), ["dy", "dx", "wide", "z", "turned", "sum", "bias"]);
        assert_eq!(within(text, 300), ["dy", "bias", "dx", "turned", "sum", "wide", "z"]);
    }

    #[test]
    fn every_budget_below_the_peak_has_the_same_orders() {
        let (mut moved, mut several) = (0, 0);
        for seed in 0..200 {
            let graph = training_graph(&mut Rng::new(seed), Size::nodes(40));
            let cost = |_| Cost { nanos: 1, workspace: 0 };
            let all = |enough: u64| with_less_memory(&graph, Some(Bytes(enough)), cost);
            let storages = Storages::of(&graph);
            let edges = Edges { before: graph.predecessor_lists(), after: graph.successor_lists() };
            let touches = Touches::of(&graph, &storages);
            let own = graph.order().to_vec();
            let listing = Listing::new(&graph, &storages, &touches, &edges, &own, Way::Forward, Moves::None);
            let peak = listing.run(&cost).peak.0;
            let orders = all(0);
            for enough in [peak / 3, peak / 2, peak - peak / 10, peak - 1] {
                assert_eq!(all(enough), orders, "seed {seed}, {enough} of {peak}");
            }
            moved += usize::from(orders.iter().any(|order| *order != own));
            several += usize::from(orders.len() > 1);
            assert_eq!(all(peak), [own], "seed {seed}");
        }
        assert!(moved > 20 && several > 20, "{moved} moved, {several} in several orders");
    }

    #[test]
    fn nodes_that_move_together_wait_for_all_operands() {
        // `both` has two operands of `pair`, and waits for `late`.
        let text = "g (float[64] x, float[128] y) => (float[1] s, float[64] z) {
            [a] float[128] a = Relu(y)
            [wide] float[640] wide = Concat<axis = 0>(x, x, x, x, x, x, x, x, x, x)
            [z] float[64] z = Slice(wide)
            [late] float[64] late = Exp(z)
            [pair] float[64] p, float[64] q = Split<num_outputs = 2>(a)
            [both] float[64] b = Sum(p, q, late)
            [sum] float[1] s = ReduceSum<keepdims = 1>(b)
        }";
        within(text, 300);
    }

    #[test]
    fn a_node_that_takes_memory_runs_as_late_as_possible() {
        let text = "g (float[8] x, float[] s) => (float[8] z) {
            [wide] float[8] wide = Expand(s, x)
            [b] float[8] b = Exp(x)
            [c] float[8] c = Exp(b)
            [z] float[8] z = Add(c, wide)
        }";
        assert_eq!(order(text), ["b", "c", "wide", "z"]);
    }

    #[test]
    fn an_operand_named_twice_is_waited_for_once() {
        let text = "g (float[8] x) => (float[8] z, float[] s) {
            [a] float[8] a = Relu(x)
            [c] float[8] c = Exp(x)
            [z] float[8] z = Exp(c)
            [b] float[8] b = Mul(a, a)
            [s] float[] s = ReduceSum<keepdims = 0>(b)
        }";
        assert_eq!(order(text), ["c", "z", "a", "b", "s"]);
    }

    #[test]
    fn random_nodes_keep_their_order() {
        let text = "g (float[8] x) => (float[] s, float[8] z, float[] t) {
            [a] float[8] a = Relu(x)
            [z] float[8] z = RandomNormalLike(x)
            [t] float[] t = RandomUniform<shape = ints []>()
            [sum] float[] s = ReduceSum<keepdims = 0>(a)
        }";
        let order = order(text);
        let at = |name: &str| order.iter().position(|n| n == name);
        assert!(at("z") < at("t"));
    }

    #[test]
    fn updates_run_once_their_gradients_are_complete() {
        let tensor = |given| Tensor { bytes: 8, swappable: true, given, kept: given };
        let mut problem = Problem { kinds: vec!["op".to_owned()], ..Problem::default() };
        let [w, v, dw, dv] = [true, true, false, false].map(|given| problem.tensors.push(tensor(given)));
        let op = |phase, reads: &[TensorId], produces: &[TensorId], changes: &[TensorId]| Operator {
            kind: 0,
            phase,
            nanos: 1,
            workspace: 0,
            reads: reads.to_vec(),
            produces: produces.to_vec(),
            changes: changes.to_vec(),
            recomputable: false,
            lane: COMPUTE,
        };
        problem.ops = vec![
            op(Phase::Forward, &[w, v], &[], &[]),
            op(Phase::Backward, &[v], &[dv], &[]),
            // Reads the variable that the update of tick 3 changes.
            op(Phase::Backward, &[w, dv], &[dw], &[]),
            op(Phase::Update, &[v, dv], &[], &[v]),
            op(Phase::Update, &[w, dw], &[], &[w]),
        ];
        let early = early_updates(&problem);
        assert_eq!(early.problem.check(), Ok(()));
        assert_eq!((early.origin, early.moved), (vec![0, 1, 3, 2, 4], 2));
        assert_eq!(early.waiting, None);

        // A norm of all gradients is awaited by both.
        let norm = problem.tensors.push(tensor(false));
        problem.ops.insert(3, op(Phase::Update, &[dw, dv], &[norm], &[]));
        problem.ops[4].reads.push(norm);
        problem.ops[5].reads.push(norm);
        let waiting = early_updates(&problem).waiting;
        assert_eq!(waiting, Some(Waiting { operator: 3, updates: 2, all: 2 }));
    }
}
