//! A unit of memory is a storage, not a value: views and in-place results share one.

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{PrimaryMap, entity_impl};
use smallvec::{SmallVec, smallvec};

use crate::ranges::{self, Run, RunId, Runs};
use crate::{Bytes, Def, Graph, NodeId, ValueId};

/// A storage of a [`Storages`] table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorageId(u32);
entity_impl!(StorageId, "s");

/// Bytes that one or more values name.
#[derive(Clone, Debug)]
pub struct Storage {
    /// The value whose definition creates the storage.
    pub root: ValueId,
    /// Every value that names it, the root first, in execution order.
    pub values: SmallVec<[ValueId; 4]>,
    /// Size in bytes. A node that reads only a shape ([`crate::ops::Effects::shape_only`]) has its result at compile time,
    /// because every size is known (invariant I5): that result needs no bytes.
    pub bytes: Bytes,
    /// Whether the bytes are in host memory.
    pub on_host: bool,
    /// Whether it is a variable that is swapped out during the step, or the copy of one that is swapped in to the same place.
    pub moves: Option<Moves>,
}

/// The two storages of a variable that is swapped out during the step and returns to its place: one until it is swapped out, one
/// after it has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// Resident from the start of the step until its last use.
    Leaves,
    /// Swapped in again, and resident at the end of the step.
    Returns,
}

impl Storage {
    /// Whether it is resident for the whole step: given by the caller or the file, and never swapped out.
    pub fn is_resident(&self, graph: &Graph) -> bool {
        self.is_given(graph) && self.moves.is_none()
    }

    /// Whether it is resident at the start of the step: given by the caller or the file.
    pub fn is_given(&self, graph: &Graph) -> bool {
        !matches!(graph.def(self.root), Def::Result(..))
    }
}

/// The storages of a graph, and the storage of each value.
#[derive(Clone, Debug)]
pub struct Storages {
    of: Vec<PackedOption<StorageId>>,
    storages: PrimaryMap<StorageId, Storage>,
    pub(crate) runs: Runs,
}

impl Storages {
    /// The storages of the graph.
    ///
    /// Result 0 of a view operator ([`crate::ops::Effects::view`]) names its operand's storage; the result of an update edge
    /// names its variable's. An exception is a SwapIn: the variable that it returns is at the same place, but is another storage.
    /// Every other value has a storage of its own. Values of removed nodes have none.
    ///
    /// The result of a Join has a storage of its own, too, but its bytes are runs of other storages.
    pub fn of(graph: &Graph) -> Storages {
        let capacity = graph.value_capacity();
        let mut table = Storages {
            of: vec![None.into(); capacity],
            storages: PrimaryMap::with_capacity(capacity),
            runs: Runs::default(),
        };
        let given = graph.inputs.iter().copied().chain(graph.initializers.iter().map(|i| i.value));
        for value in given {
            // An input with a default is in both lists.
            if table.of[value.as_u32() as usize].is_none() {
                table.add(graph, value);
            }
        }
        for &id in graph.order() {
            let node = graph.node(id);
            let view = node.op.effects().view.then(|| node.operands.first().copied().flatten()).flatten();
            for (index, result) in node.results.iter().enumerate() {
                let Some(value) = *result else { continue };
                let written = node.updates.iter().find(|u| u.result == Some(index)).map(|u| u.variable);
                if let Some(variable) = written.filter(|_| node.op.is_swap_in()) {
                    table.add(graph, value);
                    table.moves(variable, Moves::Leaves);
                    table.moves(value, Moves::Returns);
                    continue;
                }
                let shared = written.or(view.filter(|&v| index == 0 && same_bytes(graph, v, value)));
                match shared.and_then(|v| table.of[v.as_u32() as usize].expand()) {
                    Some(storage) => {
                        table.of[value.as_u32() as usize] = storage.into();
                        table.storages[storage].values.push(value);
                    }
                    None => table.add(graph, value),
                }
            }
        }
        table.runs = Runs::of(graph, &table);
        table
    }

    /// Every run: bytes with one live range. A storage is one run, unless ranges of it are copied.
    pub fn runs(&self) -> impl Iterator<Item = (RunId, &Run)> {
        self.runs.all.iter()
    }

    /// The facts of the run.
    pub fn run(&self, run: RunId) -> &Run {
        &self.runs.all[run]
    }

    /// Whether the ranges are too many, so that joins were treated as copies.
    pub(crate) fn has_too_many_runs(&self) -> bool {
        self.runs.too_many
    }

    /// The runs of the storage, with their offsets in it, in that order.
    pub fn runs_of(&self, storage: StorageId) -> &[(u64, RunId)] {
        self.runs.list(storage)
    }

    /// The runs that the node reads or defines; some may be repeated. A SwapOut of a range touches that range, and a Join the
    /// runs of its result.
    pub fn touched<'a>(&'a self, graph: &'a Graph, node: NodeId) -> impl Iterator<Item = RunId> + 'a {
        ranges::touched(graph, self, node)
    }

    /// The storage that the value names.
    ///
    /// # Panics
    /// If the value belongs to a node that was removed.
    pub fn storage(&self, value: ValueId) -> StorageId {
        self.of[value.as_u32() as usize].expand().expect("the value's node is in the order")
    }

    /// `(operand, result)` pairs of the node that share their bytes. An unused result also counts if it is the new value of a
    /// variable that the node writes.
    pub fn in_place(&self, graph: &Graph, id: NodeId) -> Vec<(usize, usize)> {
        let node = graph.node(id);
        let mut pairs = Vec::new();
        for (i, operand) in node.operands.iter().enumerate() {
            let Some(storage) = operand.map(|v| self.storage(v)) else { continue };
            let shares = |value: &Option<ValueId>| value.is_some_and(|v| self.storage(v) == storage);
            let named = node.results.iter().enumerate().filter(|(_, r)| shares(r)).map(|(j, _)| (i, j));
            pairs.extend(named);
            let unnamed = |j: usize| node.results.get(j).copied().flatten().is_none();
            let written = node.updates.iter().any(|u| self.storage(u.variable) == storage);
            let writes = node.op.effects().writes.iter();
            pairs.extend(writes.copied().filter(|&(o, r)| o == i && unnamed(r) && written));
        }
        pairs
    }

    /// The facts of the storage.
    pub fn get(&self, storage: StorageId) -> &Storage {
        &self.storages[storage]
    }

    /// Every storage: first those of the caller, then those of the file, then those of the nodes in execution order.
    pub fn iter(&self) -> impl Iterator<Item = (StorageId, &Storage)> {
        self.storages.iter()
    }

    /// Number of storages.
    pub fn len(&self) -> usize {
        self.storages.len()
    }

    /// Whether there are no storages.
    pub fn is_empty(&self) -> bool {
        self.storages.is_empty()
    }

    fn moves(&mut self, value: ValueId, how: Moves) {
        if let Some(storage) = self.of[value.as_u32() as usize].expand() {
            self.storages[storage].moves = Some(how);
        }
    }

    fn add(&mut self, graph: &Graph, value: ValueId) {
        let slot = &mut self.of[value.as_u32() as usize];
        if slot.is_none() {
            let producer = graph.producer(value);
            let constant = producer.is_some_and(|n| graph.node(n).op.effects().shape_only);
            let bytes = graph.value(value).ty.byte_size().filter(|_| !constant);
            *slot = self
                .storages
                .push(Storage {
                    root: value,
                    values: smallvec![value],
                    bytes: bytes.unwrap_or_default(),
                    on_host: graph.value(value).place.is_host(),
                    moves: None,
                })
                .into();
        }
    }
}

/// Whether one value can be a view of the other: same memory, same number of bytes.
fn same_bytes(graph: &Graph, a: ValueId, b: ValueId) -> bool {
    let (a, b) = (graph.value(a), graph.value(b));
    a.place.is_host() == b.place.is_host() && a.ty.byte_size() == b.ty.byte_size()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_and_updated_variables_share_their_storage() {
        let text = "g (float[2,3] x, int64[1] s, float[6] w, float[] lr) => (float[6] w_new)
            {
               [relu] float[2,3] a = Relu(x)
               [view] float[6] b = Reshape(a, s)
               [twice] float[6] c = Identity(b)
               [host] float[6]@host d = ai.lmsc.SwapOut(c)
               [back] float[6] e = ai.lmsc.SwapIn(d)
               [sgd] float[6] w_new = ai.lmsc.SGDOptimizer(lr, w, e) updates (w as w_new)
            }";
        let graph = Graph::parse(text).unwrap();
        let storages = Storages::of(&graph);
        let storage = |name| storages.storage(graph.value_named(name).unwrap());
        assert_eq!(storage("a"), storage("b"));
        assert_eq!(storage("a"), storage("c"));
        assert_ne!(storage("c"), storage("d"));
        assert_ne!(storage("d"), storage("e"));
        assert_eq!(storage("w"), storage("w_new"));
        assert!(storages.get(storage("d")).on_host);
        assert_eq!(storages.get(storage("a")).bytes, Bytes(24));
        assert_eq!(storages.get(storage("a")).values.len(), 3);
        assert_eq!(storages.len(), 7);
    }
}
