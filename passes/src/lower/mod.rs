//! Lowers a graph to a program: the commands of each stream, their addresses and their waits.
//!
//! Views and Joins become no command; a result that is written in place has its operand's address. Computing nodes
//! run in the graph's order, and so do the copies of each direction. Addresses are those of the graph if it has
//! some, else those that the pass `place` would give it. Waits follow from addresses alone (`waits.rs`): the
//! graph's control edges keep the memory within the budget, and once every byte has its address they add nothing.

mod waits;

use std::collections::BTreeMap;

use cranelift_entity::{PrimaryMap, SecondaryMap};
use lmsc_ir::program::{
    Action, Command, Content, ContentId, Given, Launch, Memory, Output, PlacedTensor, Program, Role, Stream,
    Transfer,
};
use lmsc_ir::{
    Bytes, Def, Graph, Node, NodeId, Place, StorageId, Storages, ValueId, copied_elements, joined_bytes,
    ranges_at_home,
};

use crate::place::Placement;

/// The alignment of every address where the graph has none, in bytes: the width of the processor's vectors.
const ALIGNMENT: u64 = 64;

/// The bytes, rounded up to the next aligned address.
fn aligned(bytes: Bytes) -> Bytes {
    Bytes(bytes.0.saturating_add(ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)
}

/// Options of lowering.
pub struct Lowering<'a> {
    /// The largest size of the arena, which ends at its last address; none: any.
    pub arena: Option<Bytes>,
    /// The bytes that each node needs while it runs, besides its values. Only used for graphs without addresses; a
    /// graph with addresses has workspaces of its own.
    pub workspace: &'a dyn Fn(NodeId) -> Bytes,
}

/// Why a graph has no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// No stream can run the node.
    #[error("node `{node}` ({op}): {problem}")]
    Node {
        /// The node's name.
        node: String,
        /// Its operator.
        op: String,
        /// The reason.
        problem: &'static str,
    },
    /// Some values have addresses, but this one does not.
    #[error("`{value}` has no address, and others have; plan again, or leave all of them out")]
    Unplaced {
        /// The value's name.
        value: String,
    },
    /// The arena is too small.
    #[error("the step needs an arena of {needed} bytes ({}), and there are {arena} ({})", Bytes(*needed), Bytes(*arena))]
    DoesNotFit {
        /// The bytes that the step needs.
        needed: u64,
        /// The bytes that the arena has.
        arena: u64,
    },
}

/// The program of the graph.
///
/// # Errors
/// [`LowerError`] if nodes compute on the host, a Join has pieces of different tensors, addresses are incomplete,
/// or the arena is too small.
pub fn lower(graph: &Graph, how: &Lowering<'_>) -> Result<Program, LowerError> {
    let storages = Storages::of(graph);
    let places = if graph.has_addresses() {
        given_places(graph, &storages)?
    } else {
        found_places(graph, &storages, how.workspace)
    };
    let mut lowerer = Lowerer::new(graph, &storages, &places);
    for &id in graph.order() {
        lowerer.node(id)?;
    }
    let mut program = lowerer.finish();
    let extent = program.extent();
    if let Some(arena) = how.arena.filter(|&arena| extent > arena) {
        return Err(LowerError::DoesNotFit { needed: extent.0, arena: arena.0 });
    }
    // Bytes behind the last address are unused in a budget of any size.
    program.arena = extent;
    waits::share_slots(&mut program);
    waits::add(&mut program);
    Ok(program)
}

/// The addresses of all storages and workspaces on the device, by storage and by node.
#[derive(Default)]
struct Places {
    storages: SecondaryMap<StorageId, Option<u64>>,
    workspaces: BTreeMap<NodeId, (u64, u64)>,
}

/// Addresses for a graph that has none.
fn found_places(graph: &Graph, storages: &Storages, workspace: &dyn Fn(NodeId) -> Bytes) -> Places {
    let placement = Placement::of(graph, storages, workspace, Bytes(ALIGNMENT), None);
    let mut places = Places::default();
    placement.storages().for_each(|(storage, address)| places.storages[storage] = Some(address));
    places.workspaces = placement.workspaces().map(|(id, w)| (id, (w.address, w.bytes.0))).collect();
    places
}

/// The addresses that the graph has.
fn given_places(graph: &Graph, storages: &Storages) -> Result<Places, LowerError> {
    let mut places = Places::default();
    for (id, storage) in storages.iter().filter(|(_, storage)| !storage.on_host) {
        let value = graph.value(storage.root);
        places.storages[id] = match value.place {
            Place::DeviceAt(at) => Some(at),
            _ if storage.bytes == Bytes::ZERO => None,
            _ => return Err(LowerError::Unplaced { value: value.name.to_string() }),
        };
    }
    let workspaces = graph.order().iter().filter_map(|&id| Some((id, graph.node(id).workspace?)));
    places.workspaces = workspaces.map(|(id, w)| (id, (w.address, w.bytes.0))).collect();
    Ok(places)
}

struct Lowerer<'a> {
    graph: &'a Graph,
    storages: &'a Storages,
    places: &'a Places,
    program: Program,
    /// For each storage, its current content, and the first byte of the content that it holds.
    holds: SecondaryMap<StorageId, Option<(ContentId, u64)>>,
    /// By storage of a variable that is swapped out and returns, the storage of the swap-in.
    returned: SecondaryMap<StorageId, Option<StorageId>>,
    /// By storage on the host, its address in the slab.
    slots: SecondaryMap<StorageId, u64>,
    tick: u32,
}

impl<'a> Lowerer<'a> {
    fn new(graph: &'a Graph, storages: &'a Storages, places: &'a Places) -> Lowerer<'a> {
        let turn = Command { action: Action::Turn, waits: Vec::new(), tick: 0 };
        let program = Program {
            name: graph.name.clone(),
            arena: Bytes::ZERO,
            slab: Bytes::ZERO,
            contents: PrimaryMap::new(),
            prelude: Vec::new(),
            given: Vec::new(),
            outputs: Vec::new(),
            streams: [vec![turn], Vec::new(), Vec::new()],
        };
        let mut lowerer = Lowerer {
            graph,
            storages,
            places,
            program,
            holds: SecondaryMap::new(),
            returned: SecondaryMap::new(),
            slots: SecondaryMap::new(),
            tick: 0,
        };
        let at_home = ranges_at_home(graph, storages);
        for (id, storage) in storages.iter().filter(|(id, storage)| storage.on_host && at_home[*id].is_none())
        {
            lowerer.slots[id] = lowerer.program.slab.0;
            lowerer.program.slab += aligned(storage.bytes);
        }
        for (id, _) in storages.iter() {
            if let Some((variable, begin)) = at_home[id] {
                lowerer.slots[id] = lowerer.slots[variable] + begin;
            }
        }
        lowerer.given();
        lowerer
    }

    /// Lists the tensors that are present when a step starts.
    fn given(&mut self) {
        for (id, storage) in self.storages.iter() {
            let role = match self.graph.def(storage.root) {
                Def::Result(..) | Def::Nothing => continue,
                Def::Input => Role::Input,
                Def::Initializer(_) => Role::Constant,
            };
            let data = match self.graph.def(storage.root) {
                Def::Initializer(index) => Some(self.graph.initializers[index].data.clone()),
                _ => None,
            };
            self.new_content(storage.root, id);
            let tensor = self.tensor(storage.root);
            let memory = if storage.on_host { Memory::Slab } else { Memory::Arena };
            self.program.given.push(Given { tensor, memory, data, role });
        }
    }

    /// Records that the storage now holds a new content, named after the value.
    fn new_content(&mut self, value: ValueId, storage: StorageId) -> ContentId {
        let facts = self.graph.value(value);
        let bytes = facts.ty.byte_size().unwrap_or_default();
        let content = self.program.contents.push(Content { name: facts.name.clone(), bytes });
        self.holds[storage] = Some((content, 0));
        content
    }

    /// The value with its current content and address.
    fn tensor(&self, value: ValueId) -> PlacedTensor {
        let storage = self.storages.storage(value);
        let (content, begin) = self.holds[storage].expect("what is read was written");
        let facts = self.graph.value(value);
        let at = match self.storages.get(storage).on_host {
            true => Some(self.slots[storage]),
            // A value that is known before the step has no bytes on the device, and no address; an empty one has 0.
            false if self.storages.get(storage).bytes == Bytes::ZERO => {
                (facts.ty.byte_size() == Some(Bytes::ZERO)).then_some(0)
            }
            false => self.places.storages[storage],
        };
        PlacedTensor { name: facts.name.clone(), ty: facts.ty.clone(), content, begin, at }
    }

    fn refuse<T>(&self, id: NodeId, problem: &'static str) -> Result<T, LowerError> {
        let node = self.graph.node(id);
        Err(LowerError::Node { node: node.name.to_string(), op: node.op.to_string(), problem })
    }

    fn node(&mut self, id: NodeId) -> Result<(), LowerError> {
        self.tick += 1;
        let node = self.graph.node(id);
        if node.op.is_swap() {
            return self.copy(id, node);
        }
        if node.op.is_join() {
            return self.join(id, node);
        }
        if self.graph.runs_on_host(id) {
            return self.refuse(id, "it computes on the host; only copies have values there");
        }
        if let (true, Some(&Some(operand)), &[Some(result)]) =
            (node.op.effects().view, node.operands.first(), &node.results[..])
            && self.storages.storage(operand) == self.storages.storage(result)
        {
            return Ok(());
        }
        let launch = self.launch(id, node);
        if node.op.effects().shape_only {
            self.program.prelude.push(launch);
        } else {
            self.push(Stream::Compute, Action::Launch(Box::new(launch)));
        }
        Ok(())
    }

    fn push(&mut self, stream: Stream, action: Action) {
        self.program.streams[stream as usize].push(Command { action, waits: Vec::new(), tick: self.tick });
    }

    fn launch(&mut self, id: NodeId, node: &Node) -> Launch {
        let operand = |value: &Option<ValueId>| value.map(|value| self.tensor(value));
        let operands: Vec<Option<PlacedTensor>> = node.operands.iter().map(operand).collect();
        let in_place = self.storages.in_place(self.graph, id);
        let last = in_place.iter().map(|pair| pair.1 + 1).max().unwrap_or(0).max(node.results.len());
        let results = (0..last).map(|j| {
            let named = node.results.get(j).copied().flatten();
            // The node writes a variable and does not name its new value.
            let unnamed = || node.operands[in_place.iter().find(|pair| pair.1 == j)?.0];
            let value = named.or_else(unnamed)?;
            self.new_content(value, self.storages.storage(value));
            let tensor = self.tensor(value);
            Some(if named.is_some() { tensor } else { PlacedTensor { name: "".into(), ..tensor } })
        });
        let results = results.collect();
        let workspace = self.places.workspaces.get(&id).map_or(0..0, |&(at, bytes)| at..at + bytes);
        Launch {
            node: node.name.clone(),
            op: node.op.clone(),
            opset: self.graph.opsets.get(node.op.domain()).copied().unwrap_or(i64::MAX),
            attributes: node.attributes.clone(),
            seed: self.graph.seed(id),
            operands,
            results,
            in_place,
            workspace,
        }
    }

    fn copy(&mut self, id: NodeId, node: &Node) -> Result<(), LowerError> {
        let (Some(&Some(operand)), Some(&Some(result))) = (node.operands.first(), node.results.first())
        else {
            return self.refuse(id, "it copies nothing");
        };
        let source = self.tensor(operand);
        let elements = copied_elements(node);
        let skipped = elements.map_or(0, |elements| {
            let bits = source.ty.as_tensor().map_or(0, |tensor| tensor.element.bits());
            (u128::from(elements.start) * u128::from(bits) / 8) as u64
        });
        let Some(from) = source.at else {
            return self.refuse(id, "it copies what types alone decide; leave that where it is");
        };
        let storage = self.storages.storage(result);
        let begin = source.begin + skipped;
        self.holds[storage] = Some((source.content, begin));
        for update in node.updates.iter().filter(|_| node.op.is_swap_in()) {
            self.returned[self.storages.storage(update.variable)] = Some(storage);
        }
        let target = self.tensor(result);
        let (Some(to), bytes @ 1..) = (target.at, target.bytes()) else { return Ok(()) };
        let (content, from, node_name) = (source.content, from + skipped, node.name.clone());
        let (stream, device, host) =
            if node.op.is_swap_out() { (Stream::Out, from, to) } else { (Stream::In, to, from) };
        self.push(stream, Action::Copy(Transfer { node: node_name, content, begin, bytes, device, host }));
        Ok(())
    }

    /// Names the whole of adjacent pieces.
    fn join(&mut self, id: NodeId, node: &Node) -> Result<(), LowerError> {
        let Some(&Some(whole)) = node.results.first() else { return Ok(()) };
        let pieces = joined_bytes(self.graph, node, whole);
        let base = node.operands.first().copied().flatten().map(|base| (base, 0));
        let mut joined = None;
        for (piece, begin) in base.into_iter().chain(pieces) {
            let held = self.holds[self.storages.storage(piece)];
            let start = held.and_then(|(content, first)| Some((content, first.checked_sub(begin)?)));
            if start.is_none() || *joined.get_or_insert(start) != start {
                return self.refuse(id, "it joins pieces of different tensors");
            }
        }
        self.holds[self.storages.storage(whole)] = joined.flatten();
        Ok(())
    }

    fn finish(mut self) -> Program {
        let holds = &self.holds;
        let given = self.storages.iter().filter(|(_, storage)| storage.is_given(self.graph));
        for (given, (storage, _)) in self.program.given.iter_mut().zip(given) {
            // A variable that is only swapped within the step is no variable for the caller.
            let last = holds[self.returned[storage].unwrap_or(storage)].map(|(content, _)| content);
            if let Some(next) = last.filter(|&last| last != given.tensor.content) {
                given.role = Role::Variable(next);
            }
        }
        let output = |&value: &ValueId| {
            let on_host = self.storages.get(self.storages.storage(value)).on_host;
            Output { tensor: self.tensor(value), memory: if on_host { Memory::Slab } else { Memory::Arena } }
        };
        let outputs = self.graph.outputs.iter().map(output).collect();
        self.program.outputs = outputs;
        self.program
    }
}
