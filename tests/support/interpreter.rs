//! A naive interpreter: one buffer for each storage, nodes one after the other in the graph's order.

use std::collections::BTreeMap;
use std::mem::take;

use lmsc_ir::{Data, Def, Graph, NodeId, Storages, Type, ValueId};
use lmsc_kernels::{Io, Kernel, PrepareError, Spec, StepContext, prepare};

/// Values of more bytes are not computed before the step, even where they could be.
const LARGEST_CONSTANT: u64 = 1 << 16;

/// Zeroed bytes that begin at a multiple of 64.
#[derive(Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    pub(crate) fn zeroed(length: usize) -> Buffer {
        let bytes = vec![0; length + 63];
        Buffer { start: bytes.as_ptr().align_offset(64), bytes, length }
    }

    pub(crate) fn get(&self) -> &[u8] {
        &self.bytes[self.start..][..self.length]
    }

    pub(crate) fn get_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..][..self.length]
    }
}

/// A node that is ready to run.
struct Prepared {
    node: NodeId,
    kernel: Kernel,
    operands: Vec<Place>,
    /// Storages of the results; none where a result is not asked for.
    results: Vec<Option<usize>>,
}

/// Where an operand's bytes are.
#[derive(Clone, Copy)]
enum Place {
    /// It is left out, or its bytes are a result's.
    Nowhere,
    Buffer(usize),
    Constant(ValueId),
}

pub(crate) struct Interpreter {
    pub(crate) graph: Graph,
    storages: Storages,
    buffers: Vec<Buffer>,
    constants: BTreeMap<ValueId, Buffer>,
    nodes: Vec<Prepared>,
    workspace: Buffer,
}

fn bytes_of(ty: &Type) -> u64 {
    ty.byte_size().expect("types fit memory").0
}

impl Interpreter {
    /// Prepares every node. Values that follow from shapes and constants alone are computed here.
    pub(crate) fn new(graph: Graph) -> Result<Interpreter, PrepareError> {
        let storages = Storages::of(&graph);
        let mut constants: BTreeMap<ValueId, Buffer> = BTreeMap::new();
        let mut sizes = vec![0u64; storages.len()];
        for (id, storage) in storages.iter() {
            sizes[id.as_u32() as usize] = bytes_of(&graph.value(storage.root).ty);
        }
        let variables: Vec<ValueId> = graph.variables();
        for initializer in &graph.initializers {
            if let Data::Inline(bytes) = &initializer.data
                && !variables.contains(&initializer.value)
                && !graph.inputs.contains(&initializer.value)
            {
                let mut buffer = Buffer::zeroed(bytes.len());
                buffer.get_mut().copy_from_slice(bytes);
                constants.insert(initializer.value, buffer);
            }
        }
        let mut nodes = Vec::new();
        let mut most = 0;
        for &id in graph.order() {
            let node = graph.node(id);
            let spec = Spec::of(&graph, &storages, id, |v| constants.get(&v).map(Buffer::get));
            let kernel = prepare(&spec)?;
            let in_place = spec.in_place.clone();
            let view = node.op.effects().view;
            let known = node.op.effects().shape_only
                || node.operands.iter().flatten().all(|v| constants.contains_key(v));
            let small = node.defines().all(|v| bytes_of(&graph.value(v).ty) <= LARGEST_CONSTANT);
            if known && small && !node.op.effects().random && node.updates.is_empty() {
                let spec = Spec { in_place: Vec::new(), ..spec };
                let kernel = if view { prepare(&spec)? } else { kernel };
                let operands: Vec<&[u8]> = (node.operands.iter())
                    .map(|v| v.and_then(|v| constants.get(&v)).map_or(&[][..], Buffer::get))
                    .collect();
                let size = |v: &Option<ValueId>| v.map_or(0, |v| bytes_of(&graph.value(v).ty) as usize);
                let mut results: Vec<Buffer> = node.results.iter().map(|v| Buffer::zeroed(size(v))).collect();
                let mut slices: Vec<&mut [u8]> = results.iter_mut().map(Buffer::get_mut).collect();
                let mut workspace = Buffer::zeroed(kernel.workspace().0 as usize);
                kernel.run(Io::new(&operands, &mut slices, workspace.get_mut()), StepContext::default());
                constants
                    .extend(node.results.iter().zip(results).filter_map(|(v, buffer)| Some(((*v)?, buffer))));
                continue;
            }
            let place = |i: usize, v: &Option<ValueId>| match v {
                Some(v) if constants.contains_key(v) => Place::Constant(*v),
                Some(v) if in_place.iter().all(|p| p.0 != i) => {
                    Place::Buffer(storages.storage(*v).as_u32() as usize)
                }
                _ => Place::Nowhere,
            };
            let operands = node.operands.iter().enumerate().map(|(i, v)| place(i, v)).collect();
            let last = in_place.iter().map(|p| p.1 + 1).max().unwrap_or(0).max(node.results.len());
            let result = |j: usize| match node.results.get(j).copied().flatten() {
                Some(v) => Some(storages.storage(v).as_u32() as usize),
                // A variable that is written without a name for its new value.
                None => {
                    let operand = in_place.iter().find(|p| p.1 == j)?.0;
                    Some(storages.storage(node.operands[operand]?).as_u32() as usize)
                }
            };
            most = most.max(kernel.workspace().0);
            nodes.push(Prepared { node: id, kernel, operands, results: (0..last).map(result).collect() });
        }
        let mut needed = vec![false; sizes.len()];
        for node in &nodes {
            for place in &node.operands {
                if let Place::Buffer(at) = place {
                    needed[*at] = true;
                }
            }
            node.results.iter().flatten().for_each(|&at| needed[at] = true);
        }
        for &value in graph.inputs.iter().chain(&graph.outputs) {
            needed[storages.storage(value).as_u32() as usize] = true;
        }
        let size = |(i, &needed): (usize, &bool)| Buffer::zeroed(if needed { sizes[i] as usize } else { 0 });
        let mut buffers: Vec<Buffer> = needed.iter().enumerate().map(size).collect();
        for initializer in &graph.initializers {
            let buffer = &mut buffers[storages.storage(initializer.value).as_u32() as usize];
            if let Data::Inline(bytes) = &initializer.data
                && buffer.length > 0
            {
                buffer.get_mut().copy_from_slice(bytes);
            }
        }
        let workspace = Buffer::zeroed(most as usize);
        Ok(Interpreter { graph, storages, buffers, constants, nodes, workspace })
    }

    /// Runs every node once. `after` sees each node with the interpreter when its results are there, and may change them.
    pub(crate) fn run(&mut self, step: StepContext, mut after: impl FnMut(&mut Interpreter, NodeId)) {
        let nodes = take(&mut self.nodes);
        for node in &nodes {
            self.run_node(node, step);
            after(self, node.node);
        }
        self.nodes = nodes;
    }

    fn run_node(&mut self, node: &Prepared, step: StepContext) {
        let mut results: Vec<Buffer> = node
            .results
            .iter()
            .map(|at| at.map(|at| take(&mut self.buffers[at])).unwrap_or_default())
            .collect();
        let operand = |place: &Place| match place {
            Place::Nowhere => &[][..],
            Place::Buffer(at) => self.buffers[*at].get(),
            Place::Constant(value) => self.constants[value].get(),
        };
        let operands: Vec<&[u8]> = node.operands.iter().map(operand).collect();
        let mut slices: Vec<&mut [u8]> = results.iter_mut().map(Buffer::get_mut).collect();
        let room = node.kernel.workspace().0 as usize;
        node.kernel.run(Io::new(&operands, &mut slices, &mut self.workspace.get_mut()[..room]), step);
        for (at, buffer) in node.results.iter().zip(results) {
            if let Some(at) = at {
                self.buffers[*at] = buffer;
            }
        }
    }

    /// The value's bytes.
    pub(crate) fn value(&self, value: ValueId) -> &[u8] {
        match self.constants.get(&value) {
            Some(buffer) => buffer.get(),
            None => self.buffers[self.storages.storage(value).as_u32() as usize].get(),
        }
    }

    /// The bytes of a value that is not constant, to be written.
    pub(crate) fn value_mut(&mut self, value: ValueId) -> &mut [u8] {
        self.buffers[self.storages.storage(value).as_u32() as usize].get_mut()
    }

    /// The graph's inputs.
    pub(crate) fn inputs(&self) -> Vec<ValueId> {
        self.graph.inputs.iter().copied().filter(|&v| self.graph.def(v) == Def::Input).collect()
    }

    /// Bytes of all buffers and the workspace.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (self.buffers.iter().map(|b| b.length).sum(), self.workspace.length)
    }
}
