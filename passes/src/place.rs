//! Gives addresses to a graph that has none: storages whose live ranges overlap do not overlap in the arena.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cranelift_entity::SecondaryMap;
use lmsc_ir::program::Spans;
use lmsc_ir::{Bytes, Graph, NodeId, Place, StorageId, Storages, Workspace, joined_elements, reaches};
use lmsc_plan::offsets::{Buffer, Effort, pack, place};
use lmsc_plan::service::Space;
use lmsc_plan::{Cause, MemoryTimeline, Refusal};

use crate::rewrite::order_what_computes;
use crate::{AnyPlanner, Outcome, Pass, PassCx, PassError};

/// Gives everything an address, in an arena of the budget's size.
///
/// The first user of an address waits by an edge for the last user of its previous owner, and every computing node
/// for the computing node before it. Addresses are held for the live ranges that the peak counts: these edges make
/// none longer, as they say no more than the order of the copies.
pub(crate) struct GiveAddresses;

impl Pass for GiveAddresses {
    fn name(&self) -> &'static str {
        "place"
    }

    fn summary(&self) -> &'static str {
        "an address in an arena of the budget's size for everything, and the edges that make them safe"
    }

    fn run(&self, graph: &mut Graph, cx: &PassCx) -> Result<Outcome, PassError> {
        let Some(budget) =
            cx.question.budget.filter(|_| cx.question.space == Space::Arena && !graph.has_addresses())
        else {
            return Ok(Outcome::default());
        };
        // With fixed parameters of TFLMS the peak may exceed the budget for all addresses.
        if cx.memory(graph).peak() > budget {
            return Ok(Outcome::default());
        }
        let storages = Storages::of(graph);
        let placement = Placement::of(graph, &storages, &cx.workspace(graph), cx.alignment(), Some(budget));
        let needed = placement.extent();
        if needed > budget {
            let refusal = Refusal::new(Cause::Arena, budget, Some(needed))
                .with_help("plan with --addresses off, which counts bytes");
            return Err(cx.refused(refusal, cx.question.planner.map_or("none", AnyPlanner::name)));
        }
        placement.write(graph, &storages);
        let spare = Bytes(budget.0 - needed.0);
        let remarks = vec![format!("addresses up to {needed}, {spare} to spare")];
        Ok(Outcome { changed: true, remarks, ..Outcome::default() })
    }
}

/// The size of the arena for the graph, by a short search for addresses within the budget.
pub fn extent(graph: &Graph, budget: Bytes, cx: &PassCx) -> Bytes {
    let storages = Storages::of(graph);
    Placement::of(graph, &storages, &cx.workspace(graph), cx.alignment(), Some(budget)).extent()
}

/// How much is searched for the smallest arena, in percent of the search of `lmsc offsets`.
const SEARCH: u32 = 1;

/// How much is searched for an arena of a given size; a failure is cheap, as a plan for less memory can replace the
/// graph.
const QUICK: Effort = Effort { looks: 200_000, placements: 0 };

/// Bytes that need one address during a live range.
struct Object {
    what: What,
    bytes: u64,
    /// Half-open, in ticks, over all timings of the copies.
    live: Range<u32>,
}

enum What {
    /// Storages with their offsets in the object: one storage, or several that are joined.
    Storages(Vec<(StorageId, u64)>),
    Workspace(NodeId),
}

/// The addresses of all storages and workspaces on the device.
pub(crate) struct Placement {
    objects: Vec<Object>,
    /// For each object, the address of its first byte.
    addresses: Vec<u64>,
}

impl Placement {
    /// Addresses for all storages on the device and all workspaces. The arena has `arena` bytes, or more if the
    /// search finds no addresses within them; without `arena`, the arena is as small as the search can make it.
    ///
    /// Live ranges are those of [`MemoryTimeline`]: no timing of the copies makes them longer. Joined tensors are adjacent
    /// and occupy the whole's bytes while any of them is live.
    pub(crate) fn of(
        graph: &Graph,
        storages: &Storages,
        workspace: &dyn Fn(NodeId) -> Bytes,
        alignment: Bytes,
        arena: Option<Bytes>,
    ) -> Placement {
        let (objects, buffers) = objects(graph, storages, workspace, alignment);
        let layout = match arena {
            Some(arena) => place(&buffers, arena.0, QUICK).or_else(|no| no.found.ok_or(())).ok(),
            None => pack(&buffers, Effort::percent(SEARCH)),
        };
        let layout = layout.expect("no two buffers have fixed addresses that overlap");
        Placement { objects, addresses: layout.addresses }
    }

    /// The size of the arena that the addresses need.
    pub(crate) fn extent(&self) -> Bytes {
        let ends = self.objects.iter().zip(&self.addresses).map(|(object, address)| address + object.bytes);
        Bytes(ends.max().unwrap_or(0))
    }

    /// The address of every storage that has one.
    pub(crate) fn storages(&self) -> impl Iterator<Item = (StorageId, u64)> + '_ {
        self.objects.iter().zip(&self.addresses).flat_map(|(object, &address)| {
            let list: &[(StorageId, u64)] = match &object.what {
                What::Storages(list) => list,
                What::Workspace(_) => &[],
            };
            list.iter().map(move |&(storage, begin)| (storage, address + begin))
        })
    }

    /// The address and size of every workspace.
    pub(crate) fn workspaces(&self) -> impl Iterator<Item = (NodeId, Workspace)> + '_ {
        self.objects.iter().zip(&self.addresses).filter_map(|(object, &address)| match object.what {
            What::Workspace(node) => Some((node, Workspace { address, bytes: Bytes(object.bytes) })),
            What::Storages(_) => None,
        })
    }

    /// Writes the addresses into their graph, with the edges that make them safe.
    fn write(&self, graph: &mut Graph, storages: &Storages) {
        for (storage, address) in self.storages() {
            graph.set_place(storages.get(storage).root, Place::DeviceAt(address));
        }
        for (node, workspace) in self.workspaces() {
            graph.set_workspace(node, workspace);
        }
        order_what_computes(graph);
        let takes_over = self.takes_over(graph, storages);
        for (&(before, node), ordered) in takes_over.iter().zip(reaches(graph, &takes_over)) {
            if !ordered {
                graph.add_after(node, before);
            }
        }
    }

    /// Pairs of nodes: a last user of an address, and a node that brings the next owner's bytes there.
    fn takes_over(&self, graph: &Graph, storages: &Storages) -> Vec<(NodeId, NodeId)> {
        let mut object_of: SecondaryMap<StorageId, Option<usize>> = SecondaryMap::new();
        // For each object, the nodes that bring it and the last node that uses it; all copies, as no edges order copies
        // among each other.
        let mut brought: Vec<Vec<NodeId>> = vec![Vec::new(); self.objects.len()];
        let mut last: Vec<Option<NodeId>> = vec![None; self.objects.len()];
        let mut copies: Vec<Vec<NodeId>> = vec![Vec::new(); self.objects.len()];
        for (index, object) in self.objects.iter().enumerate() {
            match &object.what {
                What::Workspace(node) => {
                    brought[index].push(*node);
                    last[index] = Some(*node);
                }
                What::Storages(list) => list.iter().for_each(|&(storage, _)| {
                    object_of[storage] = Some(index);
                    brought[index].extend(graph.producer(storages.get(storage).root));
                }),
            }
        }
        for &id in graph.order() {
            let touched = graph.uses(id).chain(graph.node(id).defines());
            let objects: BTreeSet<usize> =
                touched.filter_map(|value| object_of[storages.storage(value)]).collect();
            for object in objects {
                if graph.node(id).op.is_swap() { copies[object].push(id) } else { last[object] = Some(id) }
            }
        }
        let mut coming: Vec<usize> = (0..self.objects.len()).collect();
        coming.sort_by_key(|&object| self.objects[object].live.start);
        let mut owners: Spans<usize> = Spans::default();
        let mut pairs = Vec::new();
        for next in coming {
            let span = self.addresses[next]..self.addresses[next] + self.objects[next].bytes;
            let before: BTreeSet<usize> = owners.over(span.clone()).map(|(_, owner)| *owner).collect();
            for owner in before {
                let users = copies[owner].iter().copied().chain(last[owner]);
                pairs.extend(users.flat_map(|user| brought[next].iter().map(move |&node| (user, node))));
            }
            owners.put(span, next);
        }
        pairs
    }
}

/// The objects that need addresses, and the corresponding buffers.
fn objects(
    graph: &Graph,
    storages: &Storages,
    workspace: &dyn Fn(NodeId) -> Bytes,
    alignment: Bytes,
) -> (Vec<Object>, Vec<Buffer>) {
    let memory = MemoryTimeline::of(graph);
    let groups = groups(graph, storages);
    let mut objects: Vec<Object> = Vec::new();
    let mut object_of: BTreeMap<StorageId, usize> = BTreeMap::new();
    for (id, storage) in storages.iter().filter(|(_, s)| !s.on_host && s.bytes > Bytes::ZERO) {
        let (group, begin) = groups[id].unwrap_or((id, 0));
        let live = memory.live[id.as_u32() as usize].clone();
        let object = *object_of.entry(group).or_insert_with(|| {
            objects.push(Object { what: What::Storages(Vec::new()), bytes: 0, live: live.clone() });
            objects.len() - 1
        });
        let object = &mut objects[object];
        object.bytes = object.bytes.max(begin + storage.bytes.0);
        object.live = object.live.start.min(live.start)..object.live.end.max(live.end);
        if let What::Storages(list) = &mut object.what {
            list.push((id, begin));
        }
    }
    for (tick, &id) in (0..).zip(graph.order()) {
        let node = graph.node(id);
        let bytes = if node.op.is_swap() || node.op.is_join() { Bytes::ZERO } else { workspace(id) };
        if bytes > Bytes::ZERO {
            objects.push(Object { what: What::Workspace(id), bytes: bytes.0, live: tick..tick + 1 });
        }
    }
    let buffer = |object: &Object| {
        let live = object.live.start.into()..object.live.end.into();
        let bytes = object.bytes.checked_next_multiple_of(alignment.0).unwrap_or(object.bytes);
        Buffer { alignment: alignment.0, ..Buffer::new(bytes, live) }
    };
    let buffers: Vec<Buffer> = objects.iter().map(buffer).collect();
    (objects, buffers)
}

/// For each storage, the root storage of the group to which it is joined, and its offset in the group's bytes; `None` for
/// a storage that is not joined.
fn groups(graph: &Graph, storages: &Storages) -> SecondaryMap<StorageId, Option<(StorageId, u64)>> {
    let mut groups: SecondaryMap<StorageId, Option<(StorageId, u64)>> = SecondaryMap::new();
    let mut members: BTreeMap<StorageId, Vec<StorageId>> = BTreeMap::new();
    for &id in graph.order() {
        let node = graph.node(id);
        // A swap-in of a variable returns it to the variable's own address.
        if let (true, [update], &[Some(result)]) =
            (node.op.is_swap_in(), &node.updates[..], &node.results[..])
        {
            let variable = storages.storage(update.variable);
            groups[variable] = Some((variable, 0));
            groups[storages.storage(result)] = Some((variable, 0));
            continue;
        }
        let (true, Some(&Some(whole))) = (node.op.is_join(), node.results.first()) else { continue };
        let bits = graph.value(whole).ty.as_tensor().map_or(0, |tensor| tensor.element.bits());
        let root = storages.storage(whole);
        // The group begins at the first byte of the whole.
        let base = node.operands.first().copied().flatten().map(|base| storages.storage(base));
        let (group, first) = base.and_then(|base| groups[base]).unwrap_or((base.unwrap_or(root), 0));
        let pieces = joined_elements(graph, node).into_iter().map(|(piece, elements)| {
            (storages.storage(piece), (u128::from(elements.start) * u128::from(bits) / 8) as u64)
        });
        for (part, begin) in base.into_iter().map(|base| (base, 0)).chain(pieces).chain([(root, 0)]) {
            match groups[part] {
                None => {
                    groups[part] = Some((group, first + begin));
                    members.entry(group).or_default().push(part);
                }
                // The piece was joined before, to another group: all members of that group move to this one.
                Some((other, at)) if other != group => {
                    for moved in members.remove(&other).unwrap_or_default() {
                        let was = groups[moved].map_or(0, |(_, was)| was);
                        groups[moved] = Some((group, (first + begin + was).saturating_sub(at)));
                        members.entry(group).or_default().push(moved);
                    }
                }
                Some(_) => {}
            }
        }
    }
    groups
}
