//! The kernels of a program, and the values that are known before its first step.

use std::collections::BTreeMap;
use std::fmt;

use lmsc_ir::program::{Action, ContentId, GateEffects, Gates, Launch, PlacedTensor, Program, Role, Stream};
use lmsc_ir::{Bytes, Data, Type};
use lmsc_kernels::kernel::{Io, Kernel, StepContext};
use lmsc_kernels::spec::{Operand, PrepareError, Spec};
use lmsc_kernels::table::prepare;

/// Contents of more bytes are neither read nor computed before the step, even where that is possible.
const LARGEST_CONSTANT: u64 = 1 << 16;

/// The most bytes of values that are computed before the step to find workspaces: a limit on the memory for graphs in which each of
/// many nodes computes a large constant. Arithmetic on shapes of a hundred thousand nodes computes about a tenth of it.
const MOST_KNOWN: u64 = 1 << 24;

/// Why a program cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unready {
    /// A node has no kernel.
    #[error(transparent)]
    Kernel(#[from] PrepareError),
    /// A kernel needs more workspace than the plan gave it.
    #[error("node `{node}` ({op}) needs {needed} bytes of workspace here, and the plan gives it {planned}")]
    Workspace {
        /// The node's name.
        node: String,
        /// Its operator.
        op: String,
        /// Bytes that the kernel needs.
        needed: u64,
        /// Bytes that it has.
        planned: u64,
    },
    /// A node of the prelude, which depends on types alone, has an operand that is not known before the step.
    #[error("node `{node}`: an operand of what is computed before the step is not there before the step")]
    Unknown {
        /// The node's name.
        node: String,
    },
}

/// All reasons why a program cannot run, found before it runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct NotReady(pub Vec<Unready>);

/// One line for each reason, up to a maximum.
impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 10;
        for (index, one) in self.0.iter().take(SHOWN).enumerate() {
            write!(f, "{}  {one}", if index == 0 { "" } else { "\n" })?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

/// Bytes aligned for any element type.
#[derive(Clone, Debug, Default)]
pub struct AlignedBytes {
    words: Vec<u64>,
    length: usize,
}

impl AlignedBytes {
    pub(crate) fn filled(length: usize, with: u8) -> AlignedBytes {
        AlignedBytes { words: vec![u64::from_ne_bytes([with; 8]); length.div_ceil(8)], length }
    }

    pub(crate) fn copied(bytes: &[u8]) -> AlignedBytes {
        let mut buffer = AlignedBytes::filled(bytes.len(), 0);
        buffer.get_mut().copy_from_slice(bytes);
        buffer
    }

    /// The bytes.
    pub fn get(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.length]
    }

    pub(crate) fn get_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.length]
    }
}

/// A program's kernels, ready to run.
#[derive(Debug)]
pub(crate) struct Kernels {
    /// By position in the compute stream; none for the caller's turn.
    of: Vec<Option<Kernel>>,
    /// Contents that have no address.
    known: BTreeMap<ContentId, AlignedBytes>,
    gates: Gates,
    /// For each gate, the operands of the launch that draws it, and the size of its result in bytes.
    drawn_from: Vec<(Vec<AlignedBytes>, usize)>,
}

/// For each content, values that are the same at every step: constants, and results that depend on types and small constants alone.
pub type Known = BTreeMap<ContentId, AlignedBytes>;

/// The values known before the first step, and the nodes whose results should be known but are not.
fn known_before(program: &Program) -> (Known, Vec<Unready>) {
    let (mut known, mut wrong) = (Known::new(), Vec::new());
    for given in program.given.iter().filter(|given| given.role == Role::Constant) {
        // A weight is never an operand that a kernel must know before it runs.
        if let Some(Data::Inline(bytes)) = given.data.as_ref().filter(|data| data.len() <= LARGEST_CONSTANT) {
            known.insert(given.tensor.content, AlignedBytes::copied(bytes));
        }
    }
    for launch in &program.prelude {
        match prepare(&spec(launch, &known)) {
            Ok(kernel) if is_known(launch, &known) || launch.op.effects().shape_only => {
                evaluate(&kernel, launch, &mut known);
            }
            Ok(_) => wrong.push(Unready::Unknown { node: launch.node.to_string() }),
            Err(error) => wrong.push(error.into()),
        }
    }
    (known, wrong)
}

/// The result of `make` for each launch of the compute stream, by position, with all known values; or all errors.
///
/// Small results of constants are computed on the way, for launches that must know some operand before they run.
pub fn prepared<T>(
    program: &Program,
    make: impl Fn(&Spec<'_>) -> Result<(T, Bytes), PrepareError>,
) -> Result<(Vec<Option<T>>, Known), NotReady> {
    let (mut known, mut wrong) = known_before(program);
    let mut of: Vec<Option<T>> = Vec::new();
    of.resize_with(program.stream(Stream::Compute).len(), || None);
    for (index, launch) in program.launches() {
        let (made, needed) = match make(&spec(launch, &known)) {
            Ok(made) => made,
            Err(error) => {
                wrong.push(error.into());
                continue;
            }
        };
        let planned = launch.workspace.end - launch.workspace.start;
        if needed.0 > planned {
            wrong.push(Unready::Workspace {
                node: launch.node.to_string(),
                op: launch.op.to_string(),
                needed: needed.0,
                planned,
            });
        }
        let small = |tensor: &PlacedTensor| tensor.bytes() <= LARGEST_CONSTANT;
        let is_function = launch.in_place.is_empty() && !launch.op.effects().random;
        if is_function
            && launch.results.iter().flatten().all(small)
            && is_known(launch, &known)
            && let Ok(kernel) = prepare(&spec(launch, &known))
        {
            evaluate(&kernel, launch, &mut known);
        }
        of[index as usize] = Some(made);
    }
    if wrong.is_empty() { Ok((of, known)) } else { Err(NotReady(wrong)) }
}

/// Drops the contents that only kernels needed: values without an address are still read.
pub fn keep_asked_for(program: &Program, known: &mut Known) {
    let prelude = program.prelude.iter().flat_map(|launch| launch.results.iter().flatten());
    let kept: Vec<ContentId> = prelude.map(|tensor| tensor.content).collect();
    known.retain(|content, _| kept.contains(content));
}

impl Kernels {
    /// The kernels of the program's launches.
    ///
    /// # Errors
    /// All nodes that have no kernel, or one that needs more workspace than the program gives it.
    pub(crate) fn prepare(program: &Program) -> Result<Kernels, NotReady> {
        let (of, mut known) = prepared(program, |spec| {
            let kernel = prepare(spec)?;
            let needed = kernel.workspace();
            Ok((kernel, needed))
        })?;
        let gates = Gates::of(program, |_, launch| is_known(launch, &known));
        let drawn_from = gates.launches().iter().map(|&index| drawn_from(program, index, &known)).collect();
        keep_asked_for(program, &mut known);
        Ok(Kernels { of, known, gates, drawn_from })
    }

    /// The part of each command of the program that runs in a step, if operators whose results closed gates multiply are left
    /// out; none if all commands run.
    pub(crate) fn parts(&self, program: &Program, step: StepContext) -> Option<GateEffects> {
        let closed = |(&index, (operands, bytes)): (&u32, &(Vec<AlignedBytes>, usize))| {
            let operands: Vec<&[u8]> = operands.iter().map(AlignedBytes::get).collect();
            let mut results = [AlignedBytes::filled(*bytes, 0)];
            run(self.get(index), &operands, &mut results, step);
            results[0].get().iter().all(|&byte| byte == 0)
        };
        let closed: Vec<bool> = self.gates.launches().iter().zip(&self.drawn_from).map(closed).collect();
        closed.contains(&true).then(|| self.gates.parts(program, &closed))
    }

    /// The kernel of the launch at this position in the compute stream.
    pub(crate) fn get(&self, index: u32) -> &Kernel {
        self.of[index as usize].as_ref().expect("launches have kernels")
    }

    /// The bytes of a value without an address.
    pub(crate) fn known(&self, content: ContentId) -> &[u8] {
        self.known.get(&content).map_or(&[], AlignedBytes::get)
    }
}

/// Workspace in bytes of each node of the graph while its kernel of the host runs; zero for a node that has no kernel.
pub fn workspaces(graph: &lmsc_ir::Graph) -> BTreeMap<lmsc_ir::NodeId, Bytes> {
    workspaces_by(graph, |_, kernel| kernel.workspace(), |_| {})
}

/// The same on another device: `needs` computes a node's workspace, or its parts, and `is_known` gets each value computed before
/// the first step.
pub fn workspaces_by<T>(
    graph: &lmsc_ir::Graph,
    mut needs: impl FnMut(&Spec<'_>, &Kernel) -> T,
    mut is_known: impl FnMut(&[u8]),
) -> BTreeMap<lmsc_ir::NodeId, T> {
    let storages = lmsc_ir::Storages::of(graph);
    let mut known: BTreeMap<lmsc_ir::ValueId, AlignedBytes> = BTreeMap::new();
    let variables = graph.variables();
    for initializer in &graph.initializers {
        if let (Data::Inline(bytes), Err(_)) =
            (&initializer.data, variables.binary_search(&initializer.value))
            && initializer.data.len() <= LARGEST_CONSTANT
        {
            known.insert(initializer.value, AlignedBytes::copied(bytes));
        }
    }
    let (mut found, mut room) = (BTreeMap::new(), MOST_KNOWN);
    for &id in graph.order() {
        let node = graph.node(id);
        if node.op.is_join() || node.op.is_swap() {
            if let (Some(&Some(from)), Some(&Some(to))) = (node.operands.first(), node.results.first())
                && let Some(bytes) = known.get(&from).filter(|_| node.attributes.is_empty()).cloned()
            {
                known.insert(to, bytes);
            }
            continue;
        }
        let spec = Spec::of(graph, &storages, id, |value| known.get(&value).map(AlignedBytes::get));
        let view = spec.in_place.contains(&(0, 0)) && node.op.effects().view;
        let spec = Spec { in_place: if view { Vec::new() } else { spec.in_place }, ..spec };
        let Ok(kernel) = prepare(&spec) else { continue };
        let needed = needs(&spec, &kernel);
        let size = |ty: Option<&Type>| ty.and_then(Type::byte_size).unwrap_or_default();
        let bytes: u64 = spec.results.iter().map(|ty| size(*ty).0).fold(0, u64::saturating_add);
        let small = spec.results.iter().all(|ty| size(*ty).0 <= LARGEST_CONSTANT) && bytes <= room;
        let constant = spec.operands.iter().flatten().all(|operand| operand.constant.is_some());
        let known_before = node.op.effects().shape_only || constant;
        if known_before && small && !node.op.effects().random && node.updates.is_empty() {
            let operands: Vec<&[u8]> =
                spec.operands.iter().map(|o| o.and_then(|o| o.constant).unwrap_or(&[])).collect();
            let mut results: Vec<AlignedBytes> =
                spec.results.iter().map(|ty| AlignedBytes::filled(size(*ty).0 as usize, 0)).collect();
            run(&kernel, &operands, &mut results, StepContext::default());
            drop(operands);
            room -= bytes;
            results.iter().for_each(|result| is_known(result.get()));
            known.extend(node.results.iter().zip(results).filter_map(|(v, buffer)| Some(((*v)?, buffer))));
        }
        if !view {
            found.insert(id, needed);
        }
    }
    found
}

/// The operands of the launch at this position, and the size of its result in bytes.
fn drawn_from(
    program: &Program,
    index: u32,
    known: &BTreeMap<ContentId, AlignedBytes>,
) -> (Vec<AlignedBytes>, usize) {
    let Action::Launch(launch) = &program.stream(Stream::Compute)[index as usize].action else {
        return (Vec::new(), 0);
    };
    let operand = |tensor: &Option<PlacedTensor>| {
        AlignedBytes::copied(tensor.as_ref().and_then(|tensor| constant(tensor, known)).unwrap_or(&[]))
    };
    let bytes = launch.results.first().and_then(Option::as_ref).map_or(0, PlacedTensor::bytes);
    (launch.operands.iter().map(operand).collect(), bytes as usize)
}

fn run(kernel: &Kernel, operands: &[&[u8]], results: &mut [AlignedBytes], step: StepContext) {
    let mut slices: Vec<&mut [u8]> = results.iter_mut().map(AlignedBytes::get_mut).collect();
    let mut workspace = AlignedBytes::filled(kernel.workspace().0 as usize, 0);
    kernel.run(Io::new(operands, &mut slices, workspace.get_mut()), step);
}

/// The specification from which the launch's kernel is prepared.
fn spec<'a>(launch: &'a Launch, known: &'a BTreeMap<ContentId, AlignedBytes>) -> Spec<'a> {
    let operand = |tensor: &'a PlacedTensor| Operand { ty: &tensor.ty, constant: constant(tensor, known) };
    let named = |tensor: &'a PlacedTensor| (!tensor.name.is_empty()).then_some(&tensor.ty);
    Spec {
        node: &launch.node,
        op: &launch.op,
        opset: launch.opset,
        attributes: &launch.attributes,
        operands: launch.operands.iter().map(|tensor| tensor.as_ref().map(operand)).collect(),
        results: launch.results.iter().map(|tensor| tensor.as_ref().and_then(named)).collect(),
        in_place: launch.in_place.clone(),
        seed: launch.seed,
    }
}

fn constant<'a>(tensor: &PlacedTensor, known: &'a BTreeMap<ContentId, AlignedBytes>) -> Option<&'a [u8]> {
    let (begin, bytes) = (tensor.begin as usize, tensor.bytes() as usize);
    known.get(&tensor.content)?.get().get(begin..begin + bytes)
}

fn is_known(launch: &Launch, known: &BTreeMap<ContentId, AlignedBytes>) -> bool {
    launch.operands.iter().flatten().all(|tensor| constant(tensor, known).is_some())
}

/// Computes the launch once and adds its results to the known values; they are the same at every step.
fn evaluate(kernel: &Kernel, launch: &Launch, known: &mut BTreeMap<ContentId, AlignedBytes>) {
    let bytes = |t: &Option<PlacedTensor>| t.as_ref().and_then(|t| constant(t, known)).unwrap_or(&[]);
    let operands: Vec<&[u8]> = launch.operands.iter().map(bytes).collect();
    let size = |t: &Option<PlacedTensor>| t.as_ref().map_or(0, |t| t.bytes() as usize);
    let mut results: Vec<AlignedBytes> =
        launch.results.iter().map(|t| AlignedBytes::filled(size(t), 0)).collect();
    run(kernel, &operands, &mut results, StepContext::default());
    drop(operands);
    let contents = launch.results.iter().map(|t| t.as_ref().map(|t| t.content));
    known.extend(contents.zip(results).filter_map(|(content, buffer)| Some((content?, buffer))));
}
