//! Addresses for a graph that has none: whatever is live at the same time lies apart.

use std::collections::BTreeMap;
use std::ops::Range;

use cranelift_entity::SecondaryMap;
use lmsc_ir::{Bytes, Graph, NodeId, StorageId, Storages, joined_elements};
use lmsc_plan::Memory;
use lmsc_plan::offsets::{Buffer, Effort, pack};

use super::Places;

/// What every address is a multiple of: what vectors of the processor take at once.
const ALIGNMENT: u64 = 64;

/// How much is searched for a small arena, in percent of what `lmsc offsets` does.
const SEARCH: u32 = 1;

/// The bytes, rounded up to where something else can begin.
pub(super) fn aligned(bytes: Bytes) -> Bytes {
    Bytes(bytes.0.saturating_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)
}

/// Something that needs addresses for a while.
struct Object {
    bytes: u64,
    /// From the tick at which it may come to that at which it has certainly gone.
    live: Range<u32>,
}

/// Addresses for all storages on the device and all workspaces.
///
/// Live ranges are those of [`Memory`]: no timing of the copies makes them longer. Tensors that are joined lie side by
/// side, and take the place of the whole as long as any of them is there.
pub(super) fn places(graph: &Graph, storages: &Storages, workspace: &dyn Fn(NodeId) -> Bytes) -> Places {
    let memory = Memory::of(graph);
    let groups = groups(graph, storages);
    let mut objects: Vec<Object> = Vec::new();
    let mut object_of: BTreeMap<StorageId, usize> = BTreeMap::new();
    for (id, storage) in storages.iter().filter(|(_, s)| !s.on_host && s.bytes > Bytes::ZERO) {
        let (group, begin) = groups[id].unwrap_or((id, 0));
        let live = memory.live[id.as_u32() as usize].clone();
        let end = begin + storage.bytes.0;
        let object = *object_of.entry(group).or_insert_with(|| {
            objects.push(Object { bytes: 0, live: live.clone() });
            objects.len() - 1
        });
        let object = &mut objects[object];
        object.bytes = object.bytes.max(end);
        object.live = object.live.start.min(live.start)..object.live.end.max(live.end);
    }
    let mut working = Vec::new();
    for (tick, &id) in (0..).zip(graph.order()) {
        let node = graph.node(id);
        let bytes = if node.op.is_swap() || node.op.is_join() { Bytes::ZERO } else { workspace(id) };
        if bytes > Bytes::ZERO {
            working.push((id, objects.len(), bytes.0));
            objects.push(Object { bytes: bytes.0, live: tick..tick + 1 });
        }
    }
    let offsets = offsets(&objects);
    let mut places = Places::default();
    for (id, _) in storages.iter().filter(|(_, s)| !s.on_host && s.bytes > Bytes::ZERO) {
        let (group, begin) = groups[id].unwrap_or((id, 0));
        places.storages[id] = Some(offsets[object_of[&group]] + begin);
    }
    places.workspaces =
        working.into_iter().map(|(id, object, bytes)| (id, (offsets[object], bytes))).collect();
    places
}

/// By storage, the one that names the group that it is joined to, and where it begins in that one's bytes; none for what
/// is not joined.
fn groups(graph: &Graph, storages: &Storages) -> SecondaryMap<StorageId, Option<(StorageId, u64)>> {
    let mut groups: SecondaryMap<StorageId, Option<(StorageId, u64)>> = SecondaryMap::new();
    let mut members: BTreeMap<StorageId, Vec<StorageId>> = BTreeMap::new();
    for &id in graph.order() {
        let node = graph.node(id);
        // A variable returns to its place, which stays its own.
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
        // The group begins where the whole does.
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
                // A piece that was joined before, with others that lie beside it: all of them move to this group.
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

/// An offset for each object, such that those that are live at the same time lie apart.
fn offsets(objects: &[Object]) -> Vec<u64> {
    let buffer = |object: &Object| {
        let live = object.live.start.into()..object.live.end.into();
        Buffer { alignment: ALIGNMENT, ..Buffer::new(object.bytes, live) }
    };
    let buffers: Vec<Buffer> = objects.iter().map(buffer).collect();
    let layout =
        pack(&buffers, Effort::percent(SEARCH)).expect("all values together have less than 2^60 bytes");
    layout.addresses
}
