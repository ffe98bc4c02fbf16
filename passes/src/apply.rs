//! A plan becomes a graph: copies, clones of what runs again, and the edges that keep it within its memory.

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

use crate::rewrite::{Way, add_again, add_copy, add_join, order_what_computes};

/// A plan that is not one of the graph that it is applied to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the plan is not one of this graph: step {step} {what}")]
pub struct Mismatch {
    /// The index of the step in the plan's schedule.
    pub step: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

/// Rewrites the graph to do what the plan says, in the plan's order; what comes back is the node of every step.
///
/// An operator's first run is its node, any other a clone of it. Every reader reads the bytes that are there at its
/// turn; where it reads them through a view that was made of others, the view is made again. `edges` are those of
/// [`lmsc_plan::schedule::edges()`], or others that make the plan's memory safe. What overwrites a variable waits for
/// what used it before, clones and what no longer leads there by data.
///
/// A variable that is away when the step ends is a graph input on the host. SwapIns bring it, what computes its new
/// value writes the copy, and a SwapOut writes it back under the name of the output; in ranges, SwapOuts do, and a Join
/// on the host names what they wrote. One that only leaves in between returns to where it was, by a SwapIn that updates
/// it, whole.
///
/// `spots` says where everything lies, if that is decided. Then the order of what computes stands in edges, too: who
/// takes over an address waits for its last user even where nothing else puts one before the other.
///
/// # Errors
/// [`Mismatch`], and the graph is in pieces, if the plan is not one of the bridge's problem, or runs an operator
/// again after something that it reads was changed.
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

/// Where things lie from the step on that brings them; none for what is there at the start.
#[derive(Default)]
struct Addresses {
    /// Of a tensor's first byte.
    bases: HashMap<(Option<usize>, TensorId), u64>,
    /// Of workspaces, by step.
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

    /// The place of the tensor from the step on, `begin` bytes after its first.
    fn place(&self, from: Option<usize>, tensor: TensorId, begin: u64) -> Place {
        self.bases.get(&(from, tensor)).map_or(Place::Device, |base| Place::DeviceAt(base + begin))
    }
}

/// The bytes of a tensor as they are on the device now.
#[derive(Clone, Default)]
struct Presence {
    /// What to copy out: the value that had them as they are now first, or brought all of them back.
    latest: Option<ValueId>,
    /// Of a variable that was updated, the value of the source that they are.
    version: Option<ValueId>,
    /// The value that named all of them last: that one, a copy that came back, or what was joined.
    root: Option<ValueId>,
    /// By value of the source, its name for what `root` names.
    names: HashMap<ValueId, ValueId>,
    /// Pieces that came back since, by the byte at which they begin, with that at which they end.
    came: BTreeMap<u64, (u64, ValueId)>,
}

struct Writer<'a> {
    source: &'a Graph,
    graph: &'a mut Graph,
    bridge: &'a Bridge,
    plan: &'a Plan,
    addresses: Addresses,
    /// The step that is being written, the nodes of those before it, and all nodes in their new order.
    step: usize,
    steps: Vec<NodeId>,
    order: Vec<NodeId>,
    /// By tensor of the plan.
    presences: SecondaryMap<TensorId, Presence>,
    /// By piece, its copy on the host.
    hosts: SecondaryMap<PieceId, Option<ValueId>>,
    /// By tensor of the plan, how many of its bytes are on the host between steps.
    away: SecondaryMap<TensorId, u64>,
    /// By piece, the steps of its first copy and its last.
    copies: SecondaryMap<PieceId, Option<(usize, usize)>>,
    /// By piece, the step of its last copy to the host.
    last_out: SecondaryMap<PieceId, Option<usize>>,
    /// By tensor of the source, the step at which a tensor of the plan stood for it, and that tensor.
    stands_for: SecondaryMap<TensorId, Option<(usize, TensorId)>>,
    /// By tick of the source, the step of the first run.
    ran: Vec<Option<usize>>,
    /// By tensor of the source, whether an operator changes it or it leaves and returns, which step changed it last,
    /// and the nodes that have used it since.
    is_variable: SecondaryMap<TensorId, bool>,
    changed: SecondaryMap<TensorId, Option<usize>>,
    users: SecondaryMap<TensorId, Vec<NodeId>>,
    /// By piece of what is on the host between steps, the copies that brought it from there.
    brought: SecondaryMap<PieceId, Vec<NodeId>>,
    /// Nodes that use a variable, and the nodes that overwrite what they used.
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
        let mut away: SecondaryMap<TensorId, u64> = SecondaryMap::new();
        for (index, step) in plan.schedule.steps.iter().enumerate() {
            let (Instruction::Out(piece) | Instruction::In(piece)) = step.instruction else { continue };
            let tensor = plan.schedule.pieces[piece].tensor;
            let comes_first = copies[piece].is_none() && matches!(step.instruction, Instruction::In(_));
            if comes_first && plan.problem.tensors[tensor].given {
                away[tensor] += plan.schedule.pieces[piece].len();
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
            if away[tensor] > 0 {
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
            away,
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
        // Run again, a node does without what it writes aside.
        let again = self.ran[origin].is_some();
        let aside = ops::aside(self.source.node(source)).filter(|_| again).unwrap_or_default();
        for (index, &operand) in self.source.node(source).operands.iter().enumerate() {
            let operand = operand.filter(|_| aside.iter().all(|&(written, _)| written != index));
            let looks = |value: &ValueId| self.source.uses(source).all(|used| used != *value);
            operands.push(match operand {
                // The shape of what the caller gives is known, wherever it is.
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

    /// Records what the node, a run of `source`, defines.
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

    /// The tensor of the plan that this step touches as the source's tensor.
    fn standing_for(&self, origin: TensorId) -> Result<TensorId, Mismatch> {
        match self.stands_for[origin] {
            Some((step, tensor)) if step == self.step => Ok(tensor),
            _ => self.mismatch("does not touch a tensor that its node reads or defines"),
        }
    }

    /// What to read now for a value of the source.
    fn read(&mut self, value: ValueId) -> Result<ValueId, Mismatch> {
        match self.bridge.tensor(value) {
            Some(origin) => {
                let tensor = self.standing_for(origin)?;
                self.name(tensor, value)
            }
            // It has no bytes, or is on the host.
            None => Ok(value),
        }
    }

    /// The value of the source, of the bytes that are there now; a view of them is made if there is none.
    fn name(&mut self, tensor: TensorId, value: ValueId) -> Result<ValueId, Mismatch> {
        let root = self.bridge.root(self.plan.tensor_origin[tensor]);
        self.join(tensor, root);
        // From the value down to one that has a name.
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

    /// Names the whole of a tensor of which pieces came back.
    fn join(&mut self, tensor: TensorId, root: ValueId) {
        let presence = &mut self.presences[tensor];
        let came = std::mem::take(&mut presence.came);
        if came.is_empty() {
            return;
        }
        let (mut at, mut all) = (0, true);
        for (&begin, &(end, _)) in &came {
            all &= begin == at;
            at = end;
        }
        all &= at == self.plan.problem.tensors[tensor].bytes;
        let pieces: Vec<(u64, ValueId)> =
            came.iter().map(|(&begin, &(_, piece))| (elements(self.source, root, begin), piece)).collect();
        let stayed = presence.root.filter(|_| !all);
        let (node, whole) = add_join(self.graph, root, stayed, &pieces, Way::In);
        if let Some((&begin, &(_, piece))) = came.first_key_value()
            && let Place::DeviceAt(address) = self.graph.value(piece).place
        {
            self.graph.set_place(whole, Place::DeviceAt(address - begin));
        }
        presence.root = Some(whole);
        presence.names.clear();
        presence.names.extend(presence.version.map(|version| (version, whole)));
        self.order.push(node);
    }

    /// The tensor that travels, its value in the source, and the bytes if they are not all.
    fn traveller(&self, piece: PieceId) -> Result<(TensorId, ValueId, Option<Range<u64>>), Mismatch> {
        let piece = &self.plan.schedule.pieces[piece];
        let facts = &self.plan.problem.tensors[piece.tensor];
        let root = self.bridge.root(self.plan.tensor_origin[piece.tensor]);
        let whole = piece.bytes == (0..facts.bytes);
        let aligned = [piece.bytes.start, piece.bytes.end].into_iter().all(|place| {
            let elements = elements(self.source, root, place);
            place == facts.bytes || byte(self.source, root, elements) == Some(place)
        });
        let is_on_host = self.away[piece.tensor] == facts.bytes;
        let variable = facts.given && facts.kept && (whole || is_on_host);
        if !facts.swappable || (facts.given || facts.kept) && !variable || !whole && !aligned {
            return self.mismatch("copies what cannot leave, or not whole elements of it");
        }
        Ok((piece.tensor, root, (!whole).then(|| piece.bytes.clone())))
    }

    fn copy_out(&mut self, piece: PieceId) -> Result<NodeId, Mismatch> {
        let (tensor, root, bytes) = self.traveller(piece)?;
        let Some(latest) = self.presences[tensor].latest else {
            return self.mismatch("copies what is not there");
        };
        let is_whole = bytes.is_none();
        let range = bytes.map(|b| elements(self.source, root, b.start)..elements(self.source, root, b.end));
        let (node, host) = add_copy(self.graph, Way::Out, latest, root, range);
        self.hosts[piece] = Some(host);
        // It may come in once more, to be read.
        if self.is_away_at_the_end(piece) && self.last_out[piece] == Some(self.step) {
            if is_whole {
                self.graph.add_update(node, Update { variable: root, result: Some(0) });
            }
            let before = std::mem::take(&mut self.brought[piece]);
            self.overwrites.extend(before.into_iter().map(|copy| (copy, node)));
        }
        Ok(node)
    }

    fn copy_in(&mut self, piece: PieceId) -> Result<NodeId, Mismatch> {
        let (tensor, root, bytes) = self.traveller(piece)?;
        let Some(host) = self.hosts[piece] else {
            return self.mismatch("brings back what has not left");
        };
        let is_given = host == root;
        let range = bytes.clone().filter(|_| is_given);
        let range = range.map(|b| elements(self.source, root, b.start)..elements(self.source, root, b.end));
        let (node, copy) = add_copy(self.graph, Way::In, host, root, range);
        let begin = bytes.as_ref().map_or(0, |bytes| bytes.start);
        self.graph.set_place(copy, self.addresses.place(Some(self.step), tensor, begin));
        let presence = &mut self.presences[tensor];
        match bytes {
            Some(bytes) => _ = presence.came.insert(bytes.start, (bytes.end, copy)),
            None => {
                (presence.latest, presence.root) = (Some(copy), Some(copy));
                presence.names.clear();
                presence.names.extend(presence.version.map(|version| (version, copy)));
            }
        }
        if self.is_away_at_the_end(piece) {
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

    /// Whether the next step finds the piece on the host, as this one does.
    fn is_away_at_the_end(&self, piece: PieceId) -> bool {
        self.copies[piece].is_some_and(|(first, _)| {
            matches!(self.plan.schedule.steps[first].instruction, Instruction::In(_))
        })
    }

    /// Makes outputs of the copies that hold what variables are at the end, on the host or returned to their places,
    /// under the names of what was copied.
    ///
    /// # Errors
    /// [`Mismatch`] if of what an operator changed some of the bytes were not copied back.
    fn hand_over(&mut self) -> Result<(), Mismatch> {
        let homes = self.join_on_the_host()?;
        for (piece, facts) in &self.plan.schedule.pieces {
            let Presence { version, latest, .. } = self.presences[facts.tensor];
            let returned = latest.filter(|&copy| {
                self.graph.producer(copy).is_some_and(|node| self.graph.node(node).op.is_swap_in())
            });
            let (copy, left) = if self.is_away_at_the_end(piece) {
                (homes[facts.tensor].or(self.hosts[piece]), "device")
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

    /// By tensor of the plan that went back to the host in ranges, the value that names all of them there.
    fn join_on_the_host(&mut self) -> Result<SecondaryMap<TensorId, Option<ValueId>>, Mismatch> {
        let mut homes = SecondaryMap::new();
        let mut ranges: BTreeMap<TensorId, BTreeMap<u64, PieceId>> = BTreeMap::new();
        for (piece, facts) in &self.plan.schedule.pieces {
            let is_whole = facts.bytes == (0..self.plan.problem.tensors[facts.tensor].bytes);
            if !is_whole && self.last_out[piece].is_some() && self.is_away_at_the_end(piece) {
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
            let (node, home) = add_join(self.graph, root, None, &pieces, Way::Out);
            self.graph.add_update(node, Update { variable: root, result: Some(0) });
            self.order.push(node);
            homes[tensor] = Some(home);
        }
        Ok(homes)
    }
}

/// How many elements of the value come before a byte of it; all for the byte after the last.
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
