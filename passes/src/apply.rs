//! Turns a plan into a graph: copies, clones of recomputed nodes, and the edges that keep the graph within the
//! plan's memory.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use cranelift_entity::SecondaryMap;
use lmsc_ir::{Bytes, Graph, NodeId, Place, Update, ValueId, Workspace, ops, reaches};
use lmsc_plan::Bridge;
use lmsc_plan::address::{Allocation, Spot};
use lmsc_plan::bridge::is_view;
use lmsc_plan::planners::Plan;
use lmsc_plan::problem::TensorId;
use lmsc_plan::schedule::{Edge, Instruction, PieceId};

use crate::rewrite::{CopyWay, add_again, add_copy, add_join, order_what_computes};

/// The plan does not belong to the graph to which it is applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the plan is not one of this graph: step {step} {what}")]
pub struct Mismatch {
    /// The index of the step in the plan's schedule.
    pub step: usize,
    /// The fault of the step.
    pub what: &'static str,
}

/// Rewrites the graph to carry out the plan, in the plan's order, and returns the node of every step.
///
/// The first run of an operator is its own node, every other run a clone. Every reader reads the bytes that the
/// plan has in place at its step; where it reads them through a view of another copy, the view is made again.
/// `edges` are those of [`lmsc_plan::schedule::edges()`], or others that make the plan's memory safe. A node that
/// overwrites a variable waits for every earlier user of the variable, clones included, even where data no longer
/// orders the two.
///
/// A variable that is on the host when the step ends is a graph input on the host. SwapIns copy it to the device,
/// the node that computes its new value writes the device copy, and a SwapOut writes it back under the name of the
/// output. In ranges, several SwapOuts write it back, and a Join on the host names the whole. A variable that is
/// swapped only within the step returns to its place whole, by a SwapIn that updates it.
///
/// `spots` are the addresses, if the plan has them. Then edges also fix the order of the computing nodes: the next
/// owner of an address waits for the last user of the previous owner even where no data orders the two.
///
/// # Errors
/// [`Mismatch`] if the plan is not one of the bridge's problem, or runs an operator again after an operand of it
/// was changed. The graph is not valid then.
pub fn apply(
    graph: &mut Graph,
    bridge: &Bridge,
    plan: &Plan,
    edges: &[Edge],
    spots: &[Spot],
) -> Result<Vec<NodeId>, Mismatch> {
    let source = graph.clone();
    let mut writer = Writer::new(&source, graph, bridge, plan, Addresses::of(spots));
    for step in 0..plan.schedule.steps.len() {
        writer.step = step;
        let node = match plan.schedule.steps[step].instruction {
            Instruction::Op(tick) => writer.run(tick)?,
            Instruction::Out(piece) => writer.copy_out(piece)?,
            Instruction::In(piece) => writer.copy_in(piece)?,
        };
        writer.steps.push(node);
        writer.order.push(node);
    }
    writer.hand_over()?;
    let Writer { steps, order, overwrites, ran, .. } = writer;
    if ran.contains(&None) {
        return Err(Mismatch { step: steps.len(), what: "is the end, and not every operator has run" });
    }
    graph.set_order(order);
    for edge in edges {
        let (Some(&node), Some(&before)) = (steps.get(edge.step), steps.get(edge.before)) else {
            return Err(Mismatch { step: edge.step, what: "is in an edge, but not in the schedule" });
        };
        if !graph.node(node).reads().any(|value| graph.producer(value) == Some(before)) {
            graph.add_after(node, before);
        }
    }
    let ordered = reaches(graph, &overwrites);
    for (&(reader, writer), _) in overwrites.iter().zip(ordered).filter(|(_, ordered)| !ordered) {
        graph.add_after(writer, reader);
    }
    if !spots.is_empty() {
        order_what_computes(graph);
    }
    Ok(steps)
}

/// Addresses by the step that brings or computes the bytes; `None` for tensors that are present at the start.
#[derive(Default)]
struct Addresses {
    /// The address of a tensor's first byte.
    bases: HashMap<(Option<usize>, TensorId), u64>,
    /// The addresses of workspaces, by step.
    workspaces: HashMap<usize, u64>,
}

impl Addresses {
    fn of(spots: &[Spot]) -> Addresses {
        let mut addresses = Addresses::default();
        for spot in spots {
            match (&spot.run, spot.from) {
                (Allocation::Workspace(_), Some(step)) => _ = addresses.workspaces.insert(step, spot.address),
                (Allocation::Workspace(_), None) => {}
                (&Allocation::Bytes { tensor, begin, .. }, from) => {
                    addresses.bases.insert((from, tensor), spot.address.saturating_sub(begin));
                }
            }
        }
        addresses
    }

    /// The place of the tensor from the step on, `begin` bytes after the first byte of the tensor.
    fn place(&self, from: Option<usize>, tensor: TensorId, begin: u64) -> Place {
        self.bases.get(&(from, tensor)).map_or(Place::Device, |base| Place::DeviceAt(base + begin))
    }
}

/// The current state of a tensor's bytes on the device.
#[derive(Clone, Default)]
struct Presence {
    /// The value to copy out: the result that wrote the current bytes, or the copy that brought all of them back.
    latest: Option<ValueId>,
    /// For a variable that was updated, the value of the source graph that the bytes are.
    version: Option<ValueId>,
    /// The last value that named all bytes: `latest`, a copy that came back, or a join.
    root: Option<ValueId>,
    /// By value of the source graph, its name for the bytes of `root`.
    names: HashMap<ValueId, ValueId>,
    /// Pieces that came back since `root` was named: by first byte, the end and the value.
    returned: BTreeMap<u64, (u64, ValueId)>,
}

struct Writer<'a> {
    source: &'a Graph,
    graph: &'a mut Graph,
    bridge: &'a Bridge,
    plan: &'a Plan,
    addresses: Addresses,
    /// The current step, the nodes of the steps before it, and all nodes in their new order.
    step: usize,
    steps: Vec<NodeId>,
    order: Vec<NodeId>,
    /// By tensor of the plan.
    presences: SecondaryMap<TensorId, Presence>,
    /// For each piece, its copy on the host.
    hosts: SecondaryMap<PieceId, Option<ValueId>>,
    /// By tensor of the plan, the number of its bytes that are on the host between steps.
    host_bytes: SecondaryMap<TensorId, u64>,
    /// For each piece, the steps of its first copy and its last.
    copies: SecondaryMap<PieceId, Option<(usize, usize)>>,
    /// For each piece, the step of its last copy to the host.
    last_out: SecondaryMap<PieceId, Option<usize>>,
    /// By tensor of the source graph, the last step at which a tensor of the plan represented it, and that tensor.
    stands_for: SecondaryMap<TensorId, Option<(usize, TensorId)>>,
    /// By tick of the source graph, the step of the first run.
    ran: Vec<Option<usize>>,
    /// By tensor of the source graph: whether an operator changes it or it is swapped within the step, the step
    /// that changed it last, and the nodes that have used it since.
    is_variable: SecondaryMap<TensorId, bool>,
    changed: SecondaryMap<TensorId, Option<usize>>,
    users: SecondaryMap<TensorId, Vec<NodeId>>,
    /// By piece that is on the host between steps, the copies that brought it to the device.
    brought: SecondaryMap<PieceId, Vec<NodeId>>,
    /// Nodes that use a variable, and the nodes that overwrite the used value.
    overwrites: Vec<(NodeId, NodeId)>,
}

impl<'a> Writer<'a> {
    fn new(
        source: &'a Graph,
        graph: &'a mut Graph,
        bridge: &'a Bridge,
        plan: &'a Plan,
        addresses: Addresses,
    ) -> Writer<'a> {
        let mut copies: SecondaryMap<PieceId, Option<(usize, usize)>> = SecondaryMap::new();
        let mut last_out: SecondaryMap<PieceId, Option<usize>> = SecondaryMap::new();
        let mut hosts: SecondaryMap<PieceId, Option<ValueId>> = SecondaryMap::new();
        let mut host_bytes: SecondaryMap<TensorId, u64> = SecondaryMap::new();
        for (index, step) in plan.schedule.steps.iter().enumerate() {
            let (Instruction::Out(piece) | Instruction::In(piece)) = step.instruction else { continue };
            let tensor = plan.schedule.pieces[piece].tensor;
            let comes_first = copies[piece].is_none() && matches!(step.instruction, Instruction::In(_));
            if comes_first && plan.problem.tensors[tensor].given {
                host_bytes[tensor] += plan.schedule.pieces[piece].len();
                hosts[piece] = Some(bridge.root(plan.tensor_origin[tensor]));
            }
            copies[piece] = Some((copies[piece].map_or(index, |(first, _)| first), index));
            if matches!(step.instruction, Instruction::Out(_)) {
                last_out[piece] = Some(index);
            }
        }
        let mut presences: SecondaryMap<TensorId, Presence> = SecondaryMap::new();
        for (tensor, _) in plan.problem.tensors.iter().filter(|(_, facts)| facts.given) {
            let root = bridge.root(plan.tensor_origin[tensor]);
            if host_bytes[tensor] > 0 {
                graph.set_place(root, Place::Host);
                continue;
            }
            (presences[tensor].latest, presences[tensor].root) = (Some(root), Some(root));
            graph.set_place(root, addresses.place(None, tensor, 0));
        }
        let mut is_variable = SecondaryMap::new();
        let returning = plan.schedule.pieces.values().map(|piece| plan.tensor_origin[piece.tensor]);
        let returning = returning.filter(|&tensor| bridge.problem.tensors[tensor].given);
        let changed = bridge.problem.ops.iter().flat_map(|op| op.changes.iter().copied());
        changed.chain(returning).for_each(|tensor| is_variable[tensor] = true);
        Writer {
            source,
            graph,
            bridge,
            plan,
            addresses,
            step: 0,
            steps: Vec::with_capacity(plan.schedule.steps.len()),
            order: Vec::with_capacity(plan.schedule.steps.len()),
            presences,
            hosts,
            host_bytes,
            copies,
            last_out,
            stands_for: SecondaryMap::new(),
            ran: vec![None; bridge.nodes.len()],
            is_variable,
            changed: SecondaryMap::new(),
            users: SecondaryMap::new(),
            brought: SecondaryMap::new(),
            overwrites: Vec::new(),
        }
    }

    fn mismatch<T>(&self, what: &'static str) -> Result<T, Mismatch> {
        Err(Mismatch { step: self.step, what })
    }

    /// The node of an operator's run.
    fn run(&mut self, tick: u32) -> Result<NodeId, Mismatch> {
        let plan = self.plan;
        let op = &plan.problem.ops[tick as usize];
        let origin = plan.op_origin[tick as usize] as usize;
        let Some(&source) = self.bridge.nodes.get(origin) else {
            return self.mismatch("runs an operator that the graph does not have");
        };
        for tensor in op.touches() {
            self.stands_for[plan.tensor_origin[tensor]] = Some((self.step, tensor));
        }
        let mut operands = Vec::with_capacity(self.source.node(source).operands.len());
        // A clone of a node does not update side operands, such as the running statistics of batch normalization.
        let again = self.ran[origin].is_some();
        let aside = ops::aside(self.source.node(source)).filter(|_| again).unwrap_or_default();
        for (index, &operand) in self.source.node(source).operands.iter().enumerate() {
            let operand = operand.filter(|_| aside.iter().all(|&(written, _)| written != index));
            let looks = |value: &ValueId| self.source.uses(source).all(|used| used != *value);
            operands.push(match operand {
                // The shape of a graph input is known wherever its bytes are.
                Some(value) if looks(&value) => Some(value),
                _ => operand.map(|value| self.read(value)).transpose()?,
            });
        }
        for &value in &self.source.node(source).captures {
            if self.read(value)? != value {
                return self.mismatch("moves what a subgraph reads under its own name");
            }
        }
        let node = match self.ran[origin] {
            None => {
                self.ran[origin] = Some(self.step);
                for (index, operand) in operands.into_iter().enumerate() {
                    if let Some(value) =
                        operand.filter(|_| self.graph.node(source).operands[index] != operand)
                    {
                        self.graph.set_operand(source, index, value);
                    }
                }
                source
            }
            Some(first) => {
                let stale = |&tensor: &TensorId| {
                    self.changed[plan.tensor_origin[tensor]].is_some_and(|change| change >= first)
                };
                if !op.changes.is_empty() || op.reads.iter().any(stale) {
                    return self.mismatch("repeats an operator after what it reads was changed");
                }
                let kept: Vec<ValueId> = aside
                    .iter()
                    .filter_map(|&(_, result)| {
                        self.source.node(source).results.get(result).copied().flatten()
                    })
                    .collect();
                let produced = |value: ValueId| {
                    !kept.contains(&value)
                        && match self.bridge.tensor(value) {
                            Some(tensor) => {
                                self.stands_for[tensor].is_some_and(|(step, _)| step == self.step)
                            }
                            None => true,
                        }
                };
                add_again(self.graph, source, operands, produced)
            }
        };
        for update in self.source.node(source).updates.iter().filter(|_| !again) {
            let Some(origin) = self.bridge.tensor(update.variable) else { continue };
            let tensor = self.standing_for(origin)?;
            let Some(copy) = self.presences[tensor].root else {
                return self.mismatch("updates what is not there");
            };
            self.graph.redirect_updates(node, update.variable, copy);
        }
        for &tensor in &op.changes {
            let origin = plan.tensor_origin[tensor];
            self.changed[origin] = Some(self.step);
            let users = std::mem::take(&mut self.users[origin]);
            self.overwrites.extend(users.into_iter().map(|user| (user, node)));
        }
        let variables = op.reads.iter().map(|&tensor| plan.tensor_origin[tensor]);
        variables.filter(|&tensor| self.is_variable[tensor]).for_each(|tensor| self.users[tensor].push(node));
        self.define(source, node)?;
        if let Some(&address) = self.addresses.workspaces.get(&self.step) {
            self.graph.set_workspace(node, Workspace { address, bytes: Bytes(op.workspace) });
        }
        Ok(node)
    }

    /// Records the results of the node, a run of `source`.
    fn define(&mut self, source: NodeId, node: NodeId) -> Result<(), Mismatch> {
        for (index, value) in self.source.node(source).results.iter().enumerate() {
            let (Some(value), Some(new)) = (*value, self.graph.node(node).results[index]) else { continue };
            let Some(origin) = self.bridge.tensor(value) else { continue };
            let tensor = self.standing_for(origin)?;
            let presence = &mut self.presences[tensor];
            presence.names.insert(value, new);
            if self.source.node(source).updates.iter().any(|update| update.result == Some(index)) {
                (presence.latest, presence.version) = (Some(new), Some(value));
            }
            if self.bridge.root(origin) == value {
                (presence.latest, presence.root) = (Some(new), Some(new));
                self.graph.set_place(new, self.addresses.place(Some(self.step), tensor, 0));
            }
        }
        Ok(())
    }

    /// The tensor of the plan that represents the source graph's tensor in this step.
    fn standing_for(&self, origin: TensorId) -> Result<TensorId, Mismatch> {
        match self.stands_for[origin] {
            Some((step, tensor)) if step == self.step => Ok(tensor),
            _ => self.mismatch("does not touch a tensor that its node reads or defines"),
        }
    }

    /// The operand to read in this step in place of a value of the source graph.
    fn read(&mut self, value: ValueId) -> Result<ValueId, Mismatch> {
        match self.bridge.tensor(value) {
            Some(origin) => {
                let tensor = self.standing_for(origin)?;
                self.name(tensor, value)
            }
            // The value has no bytes, or is on the host.
            None => Ok(value),
        }
    }

    /// The current name of a value of the source graph; makes the views again if the name is missing.
    fn name(&mut self, tensor: TensorId, value: ValueId) -> Result<ValueId, Mismatch> {
        let root = self.bridge.root(self.plan.tensor_origin[tensor]);
        self.join(tensor, root);
        // Follows the views from the value to one that has a name.
        let mut views: Vec<(NodeId, ValueId)> = Vec::new();
        let mut at = value;
        let mut name = loop {
            let presence = &self.presences[tensor];
            let named = if at == root { presence.root } else { presence.names.get(&at).copied() };
            if let Some(name) = named {
                break name;
            }
            let view = self.source.producer(at).filter(|&n| is_view(self.source, &self.bridge.table, n));
            let Some((view, below)) = view.and_then(|n| Some((n, self.source.node(n).operands[0]?))) else {
                return self.mismatch("reads what is not there");
            };
            views.push((view, at));
            at = below;
        };
        for (view, value) in views.into_iter().rev() {
            let mut operands = self.source.node(view).operands.clone();
            operands[0] = Some(name);
            let again = add_again(self.graph, view, operands, |result| result == value);
            self.order.push(again);
            name = self.graph.node(again).defines().next().expect("one result was asked for");
            self.presences[tensor].names.insert(value, name);
        }
        Ok(name)
    }

    /// Joins the pieces that came back, and names the whole tensor.
    fn join(&mut self, tensor: TensorId, root: ValueId) {
        let presence = &mut self.presences[tensor];
        let returned = std::mem::take(&mut presence.returned);
        if returned.is_empty() {
            return;
        }
        let (mut at, mut all) = (0, true);
        for (&begin, &(end, _)) in &returned {
            all &= begin == at;
            at = end;
        }
        all &= at == self.plan.problem.tensors[tensor].bytes;
        let pieces: Vec<(u64, ValueId)> = returned
            .iter()
            .map(|(&begin, &(_, piece))| (elements(self.source, root, begin), piece))
            .collect();
        let base = presence.root.filter(|_| !all);
        let (node, whole) = add_join(self.graph, root, base, &pieces, CopyWay::In);
        if let Some((&begin, &(_, piece))) = returned.first_key_value()
            && let Place::DeviceAt(address) = self.graph.value(piece).place
        {
            self.graph.set_place(whole, Place::DeviceAt(address - begin));
        }
        presence.root = Some(whole);
        presence.names.clear();
        presence.names.extend(presence.version.map(|version| (version, whole)));
        self.order.push(node);
    }

    /// The tensor of the piece, its root in the source graph, and the range of bytes unless it is the whole tensor.
    fn copied_piece(&self, piece: PieceId) -> Result<(TensorId, ValueId, Option<Range<u64>>), Mismatch> {
        let piece = &self.plan.schedule.pieces[piece];
        let facts = &self.plan.problem.tensors[piece.tensor];
        let root = self.bridge.root(self.plan.tensor_origin[piece.tensor]);
        let whole = piece.bytes == (0..facts.bytes);
        let aligned = [piece.bytes.start, piece.bytes.end].into_iter().all(|place| {
            let elements = elements(self.source, root, place);
            place == facts.bytes || byte(self.source, root, elements) == Some(place)
        });
        let is_on_host = self.host_bytes[piece.tensor] == facts.bytes;
        let variable = facts.given && facts.kept && (whole || is_on_host);
        if !facts.swappable || (facts.given || facts.kept) && !variable || !whole && !aligned {
            return self.mismatch("copies what cannot leave, or not whole elements of it");
        }
        Ok((piece.tensor, root, (!whole).then(|| piece.bytes.clone())))
    }

    fn copy_out(&mut self, piece: PieceId) -> Result<NodeId, Mismatch> {
        let (tensor, root, bytes) = self.copied_piece(piece)?;
        let Some(latest) = self.presences[tensor].latest else {
            return self.mismatch("copies what is not there");
        };
        let is_whole = bytes.is_none();
        let range = bytes.map(|b| elements(self.source, root, b.start)..elements(self.source, root, b.end));
        let (node, host) = add_copy(self.graph, CopyWay::Out, latest, root, range);
        self.hosts[piece] = Some(host);
        // The piece may be copied in again afterwards, to be read.
        if self.ends_on_host(piece) && self.last_out[piece] == Some(self.step) {
            if is_whole {
                self.graph.add_update(node, Update { variable: root, result: Some(0) });
            }
            let before = std::mem::take(&mut self.brought[piece]);
            self.overwrites.extend(before.into_iter().map(|copy| (copy, node)));
        }
        Ok(node)
    }

    fn copy_in(&mut self, piece: PieceId) -> Result<NodeId, Mismatch> {
        let (tensor, root, bytes) = self.copied_piece(piece)?;
        let Some(host) = self.hosts[piece] else {
            return self.mismatch("brings back what has not left");
        };
        let is_given = host == root;
        let range = bytes.clone().filter(|_| is_given);
        let range = range.map(|b| elements(self.source, root, b.start)..elements(self.source, root, b.end));
        let (node, copy) = add_copy(self.graph, CopyWay::In, host, root, range);
        let begin = bytes.as_ref().map_or(0, |bytes| bytes.start);
        self.graph.set_place(copy, self.addresses.place(Some(self.step), tensor, begin));
        let presence = &mut self.presences[tensor];
        match bytes {
            Some(bytes) => _ = presence.returned.insert(bytes.start, (bytes.end, copy)),
            None => {
                (presence.latest, presence.root) = (Some(copy), Some(copy));
                presence.names.clear();
                presence.names.extend(presence.version.map(|version| (version, copy)));
            }
        }
        if self.ends_on_host(piece) {
            if is_given {
                self.brought[piece].push(node);
            }
        } else if self.plan.problem.tensors[tensor].given && self.is_last_copy(piece) {
            self.graph.add_update(node, Update { variable: root, result: Some(0) });
            let users = std::mem::take(&mut self.users[self.plan.tensor_origin[tensor]]);
            self.overwrites.extend(users.into_iter().map(|user| (user, node)));
        }
        Ok(node)
    }

    fn is_last_copy(&self, piece: PieceId) -> bool {
        self.copies[piece].is_some_and(|(_, last)| last == self.step)
    }

    /// Whether the piece is on the host when a step ends, as it is when the step starts.
    fn ends_on_host(&self, piece: PieceId) -> bool {
        self.copies[piece].is_some_and(|(first, _)| {
            matches!(self.plan.schedule.steps[first].instruction, Instruction::In(_))
        })
    }

    /// Makes the last copies of variables the graph's outputs, on the host or back in their places, under the names
    /// of the outputs that they replace.
    ///
    /// # Errors
    /// [`Mismatch`] if only some bytes of a changed variable were copied back.
    fn hand_over(&mut self) -> Result<(), Mismatch> {
        let joined = self.join_on_the_host()?;
        for (piece, facts) in &self.plan.schedule.pieces {
            let Presence { version, latest, .. } = self.presences[facts.tensor];
            let returned = latest.filter(|&copy| {
                self.graph.producer(copy).is_some_and(|node| self.graph.node(node).op.is_swap_in())
            });
            let (copy, left) = if self.ends_on_host(piece) {
                (joined[facts.tensor].or(self.hosts[piece]), "device")
            } else {
                (returned, "left")
            };
            let (Some(copy), Some(version)) = (copy, version) else { continue };
            let index = self.source.outputs.iter().position(|&output| output == version);
            let Some(index) = index else { continue };
            self.graph.outputs[index] = copy;
            let name = self.source.value(version).name.clone();
            self.graph.rename(version, self.graph.fresh_value_name(&format!("{name}_{left}")));
            self.graph.rename(copy, name);
        }
        Ok(())
    }

    /// By tensor of the plan that was copied back to the host in ranges, the value that names all ranges there.
    fn join_on_the_host(&mut self) -> Result<SecondaryMap<TensorId, Option<ValueId>>, Mismatch> {
        let mut joined = SecondaryMap::new();
        let mut ranges: BTreeMap<TensorId, BTreeMap<u64, PieceId>> = BTreeMap::new();
        for (piece, facts) in &self.plan.schedule.pieces {
            let is_whole = facts.bytes == (0..self.plan.problem.tensors[facts.tensor].bytes);
            if !is_whole && self.last_out[piece].is_some() && self.ends_on_host(piece) {
                ranges.entry(facts.tensor).or_default().insert(facts.bytes.start, piece);
            }
        }
        for (tensor, pieces) in ranges {
            let root = self.bridge.root(self.plan.tensor_origin[tensor]);
            let bytes: u64 = pieces.values().map(|&piece| self.plan.schedule.pieces[piece].len()).sum();
            let pieces: Option<Vec<(u64, ValueId)>> = pieces
                .iter()
                .map(|(&begin, &piece)| Some((elements(self.source, root, begin), self.hosts[piece]?)))
                .collect();
            let all = bytes == self.plan.problem.tensors[tensor].bytes;
            let Some(pieces) = pieces.filter(|_| all) else {
                return self.mismatch("is the last, and of a variable only some ranges were copied back");
            };
            let (node, whole) = add_join(self.graph, root, None, &pieces, CopyWay::Out);
            self.graph.add_update(node, Update { variable: root, result: Some(0) });
            self.order.push(node);
            joined[tensor] = Some(whole);
        }
        Ok(joined)
    }
}

/// The number of elements of the value before a byte of it; all elements for the byte after the last.
fn elements(graph: &Graph, value: ValueId, byte: u64) -> u64 {
    let Some(tensor) = graph.value(value).ty.as_tensor() else { return 0 };
    let elements = (u128::from(byte) * 8 / u128::from(tensor.element.bits())) as u64;
    elements.min(tensor.element_count().unwrap_or(0))
}

/// The byte at which an element of the value begins, if one does.
fn byte(graph: &Graph, value: ValueId, element: u64) -> Option<u64> {
    let bits = u128::from(element) * u128::from(graph.value(value).ty.as_tensor()?.element.bits());
    (bits % 8 == 0).then_some((bits / 8) as u64)
}
