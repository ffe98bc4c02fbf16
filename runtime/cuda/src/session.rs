//! Runs a program on a CUDA device. One thread issues the commands of all three streams, in the program's order.
//!
//! If a command must wait for a command of another stream, it waits for an event on the device, not on the host. Nothing is
//! allocated, freed or waited for within a step. Between steps, the caller's turn waits only if the caller reads something, and
//! the host is at most one step ahead of the device.

mod timing;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use lmsc_ir::program::{
    Action, Checked, Command, ContentId, Launch, Mapping, Memory, Output, PlacedTensor, Program, Role,
    Stream, Transfer, peak_in_order,
};
use lmsc_ir::{Bytes, Data};
use lmsc_kernels::StepContext;
use lmsc_runtime::device::Tensors;
use lmsc_runtime::kernels::{Known, keep_asked_for, prepared};
use lmsc_runtime::{
    self as run, DeviceBytes, DeviceSession, Fragmentation, Measurements, RunError, Settled, StepObserver,
    TimedLaunch, Turn, Unobserved, pages,
};
use rayon::prelude::*;

use super::blas::Blas;
use super::compile::KernelCompiler;
use super::constants::{ALIGNMENT, Constants, StepWords};
use super::dnn::{self, Dnn};
use super::driver::{self, Arena, Event, Function, Gpu, Graph, Module, Pinned, Ready};
use super::engines::StepEngines;
use super::fuse::{Ending, Fused, One, fuse};
use super::library::LibraryFacts;
use super::precision::Precision;
use super::recipe::{self, Address, AddressBase, Arg, Call, Product, Recipe, ValueRange};
use super::{SOURCES, prepare};

/// How a program runs on a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CudaOptions {
    /// The device's number, from 0.
    pub ordinal: u32,
    /// Whether a step is captured once as a graph and replayed, instead of being issued command by command.
    pub graph: bool,
    /// Precision to which cuBLAS and cuDNN may round `f32` factors.
    pub precision: Precision,
    /// Whether own kernels do matrix products and convolutions even where cuBLAS and cuDNN are available.
    pub own_kernels: bool,
    /// Whether to refuse a program in which own kernels would do work that cuBLAS and cuDNN could do.
    pub require_libraries: bool,
    /// Whether elementwise kernels are launched one by one. Otherwise consecutive elementwise kernels are fused, unless each of
    /// them is watched.
    pub single_kernels: bool,
    /// Whether each launch ends before the next is issued, so that an error names the launch that failed.
    pub synchronous: bool,
    /// Size limit in bytes of the device memory for the program and its kernels' constants; none: no limit. If the program runs
    /// in chunks, the limit applies to the constants and all chunks.
    pub budget: Option<u64>,
}

/// A call whose addresses are resolved.
enum Work {
    Kernel(Ready),
    Product(Product<u64>),
    Convolution(Box<dnn::Ready>),
}

impl Work {
    /// Its name in messages.
    fn name(&self) -> String {
        match self {
            Work::Kernel(ready) => format!("the kernel `{}`", ready.kernel()),
            Work::Product(_) => "a product by cuBLAS".to_owned(),
            Work::Convolution(ready) => {
                format!("a convolution by cuDNN's engine {}", ready.engine().engine)
            }
        }
    }
}

/// Counts of the calls of one kind: all of them, and those that own kernels do although the library is open; and the first reason
/// for that.
#[derive(Default)]
struct Tally {
    all: usize,
    own: usize,
    why: String,
    /// The first reason that would not hold with another library or with more workspace.
    mendable: Option<String>,
}

/// Why a library does not do a call.
enum Unfit {
    /// The library can never do it.
    Ever(String),
    /// The library could do it under other circumstances.
    Here(String),
}

impl Tally {
    /// Counts one call. Returns the library's work, or none where the library does not do the call.
    fn add<T>(&mut self, done: Result<T, Unfit>) -> Option<T> {
        self.all += 1;
        let unfit = match done {
            Ok(done) => return Some(done),
            Err(unfit) => unfit,
        };
        let (Unfit::Ever(why) | Unfit::Here(why)) = &unfit;
        if self.own == 0 {
            self.why.clone_from(why);
        }
        self.own += 1;
        if let Unfit::Here(why) = unfit {
            self.mendable.get_or_insert(why);
        }
        None
    }

    fn told(&self, library: String) -> String {
        match self {
            Tally { own: 0, .. } => library,
            Tally { all, own, why, .. } => format!("{library}, {own} of {all} by own kernels: {why}"),
        }
    }
}

/// The libraries that a program may use on a device.
struct Libraries {
    /// cuBLAS, or why it is not used.
    blas: Result<Blas, String>,
    /// cuDNN, or why it is not used; none where the program has no convolution.
    dnn: Option<Result<Dnn, String>>,
    /// Whether the program has matrix products.
    multiplies: bool,
}

impl Libraries {
    fn open(gpu: &Gpu, options: CudaOptions, recipes: &[Option<Recipe>]) -> Libraries {
        let calls = || recipes.iter().flatten().flat_map(|recipe| &recipe.calls);
        let blas = if options.own_kernels {
            Err("cuBLAS is not asked for".to_owned())
        } else {
            Blas::open(gpu, options.precision)
        };
        let dnn = calls().any(|call| matches!(call, Call::Convolution { .. })).then(|| {
            if options.own_kernels {
                Err("cuDNN is not asked for".to_owned())
            } else {
                Dnn::open(gpu, options.precision)
            }
        });
        let multiplies = calls().any(|call| matches!(call, Call::Products { .. }));
        Libraries { blas, dnn, multiplies }
    }

    /// Why a library that the program needs cannot be used.
    fn missing(&self) -> Option<String> {
        let cannot = |library: &str, why: &String| format!("{library} cannot be used: {why}");
        let blas = self.blas.as_ref().err().filter(|_| self.multiplies).map(|why| cannot("cuBLAS", why));
        blas.or_else(|| Some(cannot("cuDNN", self.dnn.as_ref()?.as_ref().err()?)))
    }
}

/// The calls of a step, each by a library or an own kernel.
struct Calls {
    /// By command of the compute stream.
    by_command: Vec<Vec<Work>>,
    /// Bytes of workspace that each command of the compute stream uses.
    workspaces: Vec<u64>,
    /// Counts of the products and of the convolutions that the libraries do.
    tallies: [Tally; 2],
}

/// The fused kernels of a program.
struct Fusion {
    /// By command: the fused kernel that replaces the last calls of this command and all calls of the fused commands behind it,
    /// with the number of calls that this command has before it; none for those other commands.
    kernels: BTreeMap<u32, Option<(usize, Ready)>>,
    /// Number of kernels that a step launches: with fusion, and without.
    launches: [usize; 2],
}

/// The events of a program.
struct Events {
    /// For each stream and command, the events that other commands wait for: two, for alternate steps.
    of_commands: [Vec<Option<[Event; 2]>>; 3],
    /// When the steps began, for the last three.
    turns: [Event; 3],
    forks: [Event; 3],
}

/// The device memory of a program.
struct DeviceMemory {
    /// Where the constants begin: behind the end of the arena's tensors, or, with chunks, in memory of their own.
    constants: u64,
    _constants: Option<driver::Memory>,
    arena: Arena,
}

/// Where the tensors that the caller knows by name are, and the host memory of a program.
struct Slots {
    names: BTreeMap<String, (Memory, PlacedTensor)>,
    /// Where the caller's inputs are staged in the slab, by their address in the arena.
    staged: BTreeMap<u64, u64>,
    /// Where the words of the step are read to, in the slab.
    step: u64,
    slab: Pinned,
}

/// A program on a device, with the values of its variables.
pub struct CudaSession {
    // Fields are dropped in this order, so a field stands before those that it uses.
    graph: Option<Graph>,
    calls: Calls,
    fusion: Fusion,
    /// Whether each command is executed by itself, without fusion.
    is_single: bool,
    libraries: Libraries,
    /// The library that compiled the kernels.
    compiler: LibraryFacts,
    events: Events,
    _modules: Vec<Module>,
    memory: DeviceMemory,
    slots: Slots,
    gpu: Gpu,
    program: Checked,
    known: Known,
    /// For each command that checks indices or labels, their range.
    ranges: BTreeMap<u32, ValueRange>,
    order: Vec<(Stream, u32)>,
    options: CudaOptions,
    steps: u64,
    /// Waits that are skipped, for tests.
    forgotten: Vec<(Stream, u32, usize)>,
    /// The seed of random operators, used together with node and step.
    seed: u64,
    /// Memory that the chunks take, where the program runs in chunks.
    fragmentation: Option<Fragmentation>,
    /// Whether to record the times of each command. Such steps do not overlap.
    traces: bool,
}

impl std::fmt::Debug for CudaSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaSession")
            .field("device", &self.gpu.name)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl Drop for CudaSession {
    fn drop(&mut self) {
        // The library's handles belong to the context of the thread that releases them.
        _ = self.gpu.enter();
    }
}

/// Resolves symbolic addresses.
pub(super) struct Places<'a> {
    program: &'a Program,
    recipes: &'a [Option<Recipe>],
    /// For each command, where the constants of its recipe are.
    of_recipes: Vec<u64>,
    of_known: BTreeMap<ContentId, u64>,
    constants: u64,
    arena: u64,
}

impl<'a> Places<'a> {
    /// Places the constants in their memory; neither memory has an address yet.
    pub(super) fn new(
        program: &'a Program,
        recipes: &'a [Option<Recipe>],
        known: &Known,
    ) -> (Constants, Places<'a>) {
        let mut constants = Constants::new();
        let of_recipe = |recipe: &Option<Recipe>| recipe.as_ref().map_or(0, |r| constants.add(&r.constants));
        let of_recipes = recipes.iter().map(of_recipe).collect();
        let of_known = known.iter().map(|(&content, bytes)| (content, constants.add(bytes.get()))).collect();
        (constants, Places { program, recipes, of_recipes, of_known, constants: 0, arena: 0 })
    }

    /// Assigns stand-in addresses to both memories: the fused kernels do not depend on the addresses.
    pub(super) fn put(&mut self, constants: &Constants) {
        self.constants = ALIGNMENT;
        self.arena = (ALIGNMENT + constants.bytes.len() as u64).next_multiple_of(ALIGNMENT);
    }

    /// Where the arena begins.
    pub(super) fn arena(&self) -> u64 {
        self.arena
    }

    fn tensor(&self, tensor: Option<&Option<PlacedTensor>>) -> u64 {
        let Some(Some(tensor)) = tensor else { return 0 };
        match (tensor.span(), self.of_known.get(&tensor.content)) {
            (Some(span), _) => self.arena + span.start,
            (None, Some(at)) if tensor.bytes() > 0 => self.constants + at + tensor.begin,
            _ => 0,
        }
    }

    /// Resolves an address in the recipe of a command.
    fn address(&self, index: u32, launch: &Launch, recipe: &Recipe, address: &Address) -> u64 {
        let base = match address.at {
            AddressBase::Operand(i) => self.tensor(launch.operands.get(i)),
            AddressBase::Result(i) => self.tensor(launch.results.get(i)),
            AddressBase::Workspace => self.arena + launch.workspace.start,
            AddressBase::Scratch => recipe.scratch_in(self.arena + launch.workspace.start),
            AddressBase::Constants => self.constants + self.of_recipes[index as usize],
            AddressBase::Step => self.constants,
            AddressBase::Nowhere => 0,
        };
        if base == 0 { 0 } else { base + address.offset }
    }

    /// By command of the compute stream, the elementwise launches at its end, or none.
    pub(super) fn elementwise(&self) -> Vec<Option<Ending<'a>>> {
        let mut all: Vec<Option<Ending<'a>>> = self.recipes.iter().map(|_| None).collect();
        for (index, launch) in self.program.launches() {
            let Some(recipe) = &self.recipes[index as usize] else { continue };
            let one = |call: &'a Call| match call {
                Call::Kernel(recipe::KernelLaunch { kernel, args, each: Some(each), .. }) => {
                    let addresses = args.iter().flat_map(Arg::addresses);
                    let addresses: Vec<u64> =
                        addresses.map(|at| self.address(index, launch, recipe, at)).collect();
                    One::new(kernel, each, &addresses)
                }
                _ => None,
            };
            let mut ones: Vec<One<'a>> = recipe.calls.iter().rev().map_while(one).collect();
            ones.reverse();
            let is_behind = ones.len() < recipe.calls.len();
            if !(is_behind && ones.is_empty()) {
                all[index as usize] = Some(Ending { ones, is_behind });
            }
        }
        all
    }
}

/// The recipe of each command of the compute stream, and the contents that are known.
pub(super) fn recipes(program: &Program) -> Result<(Vec<Option<Recipe>>, Known), RunError> {
    let (recipes, mut known) = prepared(program, |spec| {
        let recipe = prepare(spec)?;
        let needed = recipe.needed();
        Ok((recipe, needed))
    })?;
    keep_asked_for(program, &mut known);
    Ok((recipes, known))
}

/// Nodes whose kernels are fused into one launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their names, in order.
    pub nodes: Vec<String>,
    /// Bytes that the launch reads and writes.
    pub moved: Bytes,
}

/// The nodes of the program whose kernels are fused.
///
/// # Errors
/// [`RunError::NotReady`].
pub fn groups(program: &Checked) -> Result<Vec<Group>, RunError> {
    let (recipes, known) = recipes(program)?;
    let (constants, mut places) = Places::new(program, &recipes, &known);
    places.put(&constants);
    let names: BTreeMap<u32, String> =
        program.launches().map(|(index, launch)| (index, launch.node.to_string())).collect();
    let group = |one: Fused| {
        // The first node does not belong to the group if it makes calls before the fused ones: the group holds the nodes that
        // cost nothing by themselves.
        let [first, last] = one.commands;
        let calls = recipes[first as usize].as_ref().map_or(0, |recipe| recipe.calls.len());
        let first = first + u32::from(calls > one.of_first);
        // A node whose own last calls are fused, such as casts of short floats, is none.
        let nodes =
            names.range(first..last.saturating_add(1).max(first)).map(|(_, name)| name.clone()).collect();
        Some(Group { nodes, moved: Bytes(one.bytes) }).filter(|group| !group.nodes.is_empty())
    };
    Ok(fuse(program, places.arena, &places.elementwise()).0.into_iter().filter_map(group).collect())
}

/// Source of the program's fused elementwise kernels, as [`KernelCompiler::fused_image`] takes it; none if nothing is fused.
///
/// # Errors
/// [`RunError::NotReady`].
pub fn fused(program: &Checked) -> Result<Option<String>, RunError> {
    let (recipes, known) = recipes(program)?;
    let (constants, mut places) = Places::new(program, &recipes, &known);
    places.put(&constants);
    Ok(fuse(program, places.arena, &places.elementwise()).1.done())
}

/// End of the tensors in the arena, where constants may begin.
fn end_of_tensors(program: &Program, constants: &Constants) -> u64 {
    program.extent().0.next_multiple_of(constants.alignment())
}

/// Size in bytes of an arena that holds the program and the constants: the program's arena, if it suffices.
fn arena_bytes(program: &Program, constants: &Constants) -> u64 {
    program.arena.0.max(end_of_tensors(program, constants).saturating_add(constants.len()))
}

/// Finds kernels by name: compiles and loads files until one has it.
struct Kernels<'a> {
    gpu: &'a Gpu,
    compiler: &'a KernelCompiler,
    modules: Vec<Module>,
    found: BTreeMap<String, Function>,
    has_rare: bool,
}

impl<'a> Kernels<'a> {
    fn new(gpu: &'a Gpu, compiler: &'a KernelCompiler) -> Kernels<'a> {
        Kernels { gpu, compiler, modules: Vec::new(), found: BTreeMap::new(), has_rare: false }
    }

    fn load(&mut self, rare: bool) -> Result<(), String> {
        let (compiler, architecture) = (self.compiler, &self.gpu.architecture);
        let sources: Vec<_> = SOURCES.iter().filter(|source| !rare || source.has_rare).collect();
        let images = sources.par_iter().map(|source| compiler.image(source, rare, architecture));
        for image in images.collect::<Vec<_>>() {
            self.add(&image.map_err(|e| e.to_string())?)?;
        }
        Ok(())
    }

    /// Loads a compiled image.
    fn add(&mut self, image: &[u8]) -> Result<(), String> {
        let module = Module::new(image).map_err(|why| {
            let (nvrtc, driver) = (self.compiler.facts(), self.gpu.driver());
            format!(
                "{why}: kernels that NVRTC {} has compiled for {}, on a driver of CUDA {}; a driver takes kernels of no newer \
                 NVRTC than its own version",
                nvrtc.version, self.gpu.architecture, driver.version
            )
        })?;
        self.modules.push(module);
        Ok(())
    }

    /// Compiles and loads fused kernels.
    fn load_fused(&mut self, text: &str) -> Result<(), String> {
        let image = self.compiler.fused_image(text, &self.gpu.architecture).map_err(|e| e.to_string())?;
        self.add(&image)
    }

    fn get(&mut self, name: &str) -> Result<Function, String> {
        loop {
            if let Some(&function) = self.found.get(name) {
                return Ok(function);
            }
            for module in &self.modules {
                if let Some(function) = module.function(name)? {
                    self.found.insert(name.to_owned(), function);
                    return Ok(function);
                }
            }
            match (self.modules.is_empty(), self.has_rare) {
                (true, _) => self.load(false)?,
                (false, false) => {
                    self.load(true)?;
                    self.has_rare = true;
                }
                (false, true) => return Err(format!("there is no kernel {name}")),
            }
        }
    }
}

impl DeviceMemory {
    /// Allocates the arena, and copies the constants to their place.
    fn new(
        gpu: &Gpu,
        program: &Program,
        constants: &Constants,
        mapping: Option<&Mapping>,
    ) -> Result<DeviceMemory, String> {
        let (arena, own) = match mapping {
            Some(mapping) => (Arena::Chunks(gpu.mapped(mapping)?), Some(gpu.memory(constants.len())?)),
            None => {
                let all = gpu.memory(arena_bytes(program, constants))?;
                (Arena::Whole(all, end_of_tensors(program, constants)), None)
            }
        };
        let behind = arena.address() + end_of_tensors(program, constants);
        let on_device = own.as_ref().map_or(behind, driver::Memory::address);
        // SAFETY: both have that many bytes, and nothing writes them before the copy is done.
        unsafe {
            let bytes = &constants.bytes;
            gpu.to_device(Stream::Compute, on_device, bytes.as_ptr(), bytes.len() as u64)?;
        }
        gpu.wait_for(Stream::Compute)?;
        Ok(DeviceMemory { constants: on_device, _constants: own, arena })
    }
}

/// A command of the compute stream with its recipe, whose addresses can be resolved.
struct Located<'a> {
    index: u32,
    launch: &'a Launch,
    recipe: &'a Recipe,
    places: &'a Places<'a>,
}

impl Located<'_> {
    fn address(&self, address: &Address) -> u64 {
        self.places.address(self.index, self.launch, self.recipe, address)
    }

    /// The words of a kernel's argument.
    fn words(&self, arg: &Arg) -> Vec<u64> {
        match arg {
            Arg::Address(one) => vec![self.address(one)],
            Arg::Addresses(list) => list.iter().map(|one| self.address(one)).collect(),
            Arg::Words(words) => words.clone(),
            Arg::Command => vec![u64::from(self.index)],
        }
    }

    /// Bytes of scratch that libraries get; a plan may give less than they ask for.
    fn room(&self) -> u64 {
        let workspace = &self.launch.workspace;
        self.recipe.scratch_of(workspace.end - workspace.start)
    }

    /// Products as calls of cuBLAS, and the bytes of scratch that they take.
    fn products(&self, of: &[Product]) -> Result<(Vec<Work>, u64), Unfit> {
        let (room, wanted) =
            (self.room(), of.iter().map(|product| product.workspace_bytes).max().unwrap_or(0));
        if wanted > room {
            return Err(Unfit::Here(format!("one has {room} bytes of workspace, not {wanted}")));
        }
        let work = |product: &Product| Work::Product(product.map(|at| self.address(&at)));
        Ok((of.iter().map(work).collect(), wanted))
    }

    /// A convolution as a call of cuDNN, and the bytes of scratch that it takes.
    fn convolution(
        &self,
        of: Option<&recipe::Convolution>,
        dnn: &mut Dnn,
    ) -> Result<(Vec<Work>, u64), Unfit> {
        let unsuitable = || Unfit::Ever("its size does not suit the library".to_owned());
        let convolution = of.cloned().ok_or_else(unsuitable)?.map(|at| self.address(&at));
        // SAFETY: the recipe says how large its tensors are, and the program where they are. The arena is cleared later, and
        // nothing else runs.
        let ready = unsafe { dnn.choose(convolution, self.room()) }.map_err(Unfit::Here)?;
        let bytes = ready.workspace_bytes();
        Ok((vec![Work::Convolution(Box::new(ready))], bytes))
    }
}

impl Calls {
    /// Chooses a library or an own kernel for each call, and resolves its addresses.
    fn new(
        places: &Places<'_>,
        libraries: &mut Libraries,
        kernels: &mut Kernels<'_>,
    ) -> Result<Calls, String> {
        let commands = places.program.stream(Stream::Compute).len();
        let mut by_command = Vec::new();
        by_command.resize_with(commands, Vec::new);
        let next = kernels.get("next_step")?;
        let next = Ready::new("next_step".into(), 1, next, &[vec![places.constants]]);
        by_command[0].push(Work::Kernel(next));
        let mut calls = Calls { by_command, workspaces: vec![0; commands], tallies: Default::default() };
        for (index, launch) in places.program.launches() {
            if let Some(recipe) = &places.recipes[index as usize] {
                calls.add(&Located { index, launch, recipe, places }, libraries, kernels)?;
            }
        }
        Ok(calls)
    }

    /// Adds the calls of a command.
    fn add(
        &mut self,
        at: &Located<'_>,
        libraries: &mut Libraries,
        kernels: &mut Kernels<'_>,
    ) -> Result<(), String> {
        let mut scratch = at.recipe.scratch.0;
        for call in &at.recipe.calls {
            let by_library = self.by_library(call, at, libraries);
            let mut ready = |launch: &recipe::KernelLaunch| {
                let args: Vec<Vec<u64>> = launch.args.iter().map(|arg| at.words(arg)).collect();
                let function = kernels.get(&launch.kernel)?;
                Ok(Work::Kernel(Ready::new(launch.kernel.clone(), launch.blocks, function, &args)))
            };
            let (before, done, behind) = match by_library {
                Some((done, bytes)) => {
                    scratch = scratch.max(bytes);
                    (call.before(), done, call.behind())
                }
                None => (&[][..], Vec::new(), call.kernels()),
            };
            let before: Vec<Work> = before.iter().map(&mut ready).collect::<Result<_, String>>()?;
            let behind: Vec<Work> = behind.iter().map(ready).collect::<Result<_, String>>()?;
            let work = &mut self.by_command[at.index as usize];
            work.extend(before.into_iter().chain(done).chain(behind));
        }
        self.workspaces[at.index as usize] = at.recipe.workspace_with(Bytes(scratch)).0;
        Ok(())
    }

    /// The library's part of the call, and the bytes of scratch that it takes; none if own kernels do the call.
    fn by_library(
        &mut self,
        call: &Call,
        at: &Located<'_>,
        libraries: &mut Libraries,
    ) -> Option<(Vec<Work>, u64)> {
        let [products, convolutions] = &mut self.tallies;
        match (call, &libraries.blas, &mut libraries.dnn) {
            (Call::Products { library, .. }, Ok(_), _) => products.add(at.products(library)),
            (Call::Convolution { library, .. }, _, Some(Ok(dnn))) => {
                convolutions.add(at.convolution(library.as_deref(), dnn))
            }
            _ => None,
        }
    }

    /// Number of own kernels.
    fn kernels(&self) -> usize {
        let is_kernel = |work: &&Work| matches!(work, Work::Kernel(_));
        self.by_command.iter().flatten().filter(is_kernel).count()
    }
}

impl Fusion {
    /// No fusion: each kernel is launched by itself.
    fn none(calls: &Calls) -> Fusion {
        Fusion { kernels: BTreeMap::new(), launches: [calls.kernels(); 2] }
    }

    /// Fuses consecutive elementwise kernels, and compiles and loads the fused ones.
    fn new(places: &Places<'_>, calls: &Calls, kernels: &mut Kernels<'_>) -> Result<Fusion, String> {
        let mut fusion = Fusion::none(calls);
        let (all, text) = fuse(places.program, places.arena, &places.elementwise());
        if let Some(text) = text.done() {
            kernels.load_fused(&text)?;
        }
        for one in all {
            let [first, last] = one.commands;
            fusion.kernels.extend((first..=last).map(|command| (command, None)));
            let function = kernels.get(&one.kernel)?;
            let before = calls.by_command[first as usize].len() - one.of_first;
            let ready = Ready::new(one.kernel, one.blocks, function, &[one.words]);
            fusion.kernels.insert(first, Some((before, ready)));
            fusion.launches[0] -= one.launches - 1;
        }
        Ok(fusion)
    }
}

impl Events {
    fn new(program: &Program) -> Result<Events, String> {
        let mut of_commands = Stream::ALL.map(|stream| {
            let mut none = Vec::new();
            none.resize_with(program.stream(stream).len(), || None);
            none
        });
        for wait in program.streams.iter().flatten().flat_map(|command| &command.waits) {
            let event = &mut of_commands[wait.stream as usize][wait.command as usize];
            if event.is_none() {
                *event = Some([Event::new(false)?, Event::new(false)?]);
            }
        }
        let three = |times| Ok::<_, String>([Event::new(times)?, Event::new(times)?, Event::new(times)?]);
        Ok(Events { of_commands, turns: three(true)?, forks: three(false)? })
    }
}

impl Slots {
    /// Allocates the slab, with room behind the program's part for the inputs that are staged and the words of the step.
    fn new(program: &Program) -> Result<Slots, String> {
        let (mut names, mut staged, mut slab) = (BTreeMap::new(), BTreeMap::new(), program.slab.0);
        for Output { tensor, memory } in &program.outputs {
            names.insert(tensor.name.to_string(), (*memory, tensor.clone()));
        }
        for given in &program.given {
            names.insert(given.tensor.name.to_string(), (given.memory, given.tensor.clone()));
            if let (Memory::Arena, Role::Input, Some(span)) = (given.memory, given.role, given.tensor.span())
            {
                slab = slab.next_multiple_of(ALIGNMENT);
                staged.insert(span.start, slab);
                slab += span.end - span.start;
            }
        }
        // Results of the prelude follow from shapes: they are known before the first step, and have no address.
        for tensor in program.prelude.iter().flat_map(|launch| launch.results.iter().flatten()) {
            names.entry(tensor.name.to_string()).or_insert_with(|| (Memory::Arena, tensor.clone()));
        }
        let step = slab.next_multiple_of(ALIGNMENT);
        Ok(Slots { names, staged, step, slab: Pinned::new(step + size_of::<StepWords>() as u64)? })
    }
}

impl CudaSession {
    /// The program, ready to run: kernels are compiled and loaded, all memory is allocated, and the model's data is copied to its
    /// place. All other memory is zero.
    ///
    /// # Errors
    /// [`RunError::NotReady`]; [`RunError::NoDevice`]; [`RunError::Device`], with the message of the driver or the compiler.
    pub fn new(
        program: Checked,
        options: CudaOptions,
        compiler: &KernelCompiler,
    ) -> Result<CudaSession, RunError> {
        let gpu = || Gpu::open(options.ordinal).map_err(|e| RunError::NoDevice(e.to_string()));
        CudaSession::ready(gpu, program, options, compiler, None)
    }

    /// The program, ready to run as by [`CudaSession::new`], but in chunks instead of one arena. A chunk has `chunk` bytes, rounded
    /// up to the device's granularity; the chunks are limited by the budget.
    ///
    /// Nothing is mapped or unmapped within a step: a chunk is mapped to all addresses that use it one after the other, and the
    /// next owner of a chunk waits, on the device, for the last use by the previous owner. If tensors are swapped out and in, a
    /// step may need more chunks than are in use at once.
    ///
    /// # Errors
    /// [`RunError::Chunk`], [`RunError::Chunks`], and those of [`CudaSession::new`].
    ///
    /// # Source
    /// OOC §4.
    pub fn in_chunks(
        program: &Checked,
        options: CudaOptions,
        compiler: &KernelCompiler,
        chunk: u64,
        budget: Option<u64>,
    ) -> Result<CudaSession, RunError> {
        if !(1..=pages::LARGEST).contains(&chunk) {
            return Err(RunError::Chunk { bytes: chunk });
        }
        let gpu = Gpu::open(options.ordinal).map_err(|e| RunError::NoDevice(e.to_string()))?;
        let chunk = chunk.next_multiple_of(gpu.granularity().map_err(RunError::Device)?);
        let (recipes, known) = recipes(program)?;
        let constants = Places::new(program, &recipes, &known).0.len();
        let budget = budget.map(|budget| budget.saturating_sub(constants));
        let Settled { program, mapping, fragmentation } = Settled::new(program, chunk, budget)?;
        let mut session = CudaSession::ready(|| Ok(gpu), program, options, compiler, Some(&mapping))?;
        session.fragmentation = Some(fragmentation);
        Ok(session)
    }

    fn ready(
        gpu: impl FnOnce() -> Result<Gpu, RunError>,
        program: Checked,
        options: CudaOptions,
        compiler: &KernelCompiler,
        mapping: Option<&Mapping>,
    ) -> Result<CudaSession, RunError> {
        let (recipes, known) = recipes(&program)?;
        let constants = Places::new(&program, &recipes, &known).0;
        let needed = match mapping {
            Some(mapping) => {
                let last = mapping.chunks.iter().flatten().max();
                let chunks = last.map_or(0, |&last| u64::from(last) + 1);
                Bytes(chunks.saturating_mul(mapping.chunk).saturating_add(constants.len()))
            }
            None => Bytes(arena_bytes(&program, &constants)),
        };
        if let Some(budget) = options.budget.map(Bytes).filter(|&budget| mapping.is_none() && needed > budget)
        {
            return Err(RunError::Budget { needed, budget });
        }
        let gpu = gpu()?;
        let [free, total] = gpu.free().map_err(RunError::Device)?.map(Bytes);
        if needed > free {
            return Err(RunError::DeviceMemory { needed, free, total });
        }
        // The libraries are opened before the arena is allocated, which may leave no memory for them.
        let libraries = Libraries::open(&gpu, options, &recipes);
        let required = options.require_libraries && !options.own_kernels;
        if let Some(why) = libraries.missing().filter(|_| required) {
            return Err(RunError::NoLibrary(why));
        }
        let opened = (gpu, libraries, compiler);
        let session = CudaSession::on(opened, program, options, (&recipes, known), mapping);
        let session = session.map_err(RunError::Device)?;
        match session.lacks() {
            Some(why) if required => Err(RunError::NoLibrary(why)),
            _ => Ok(session),
        }
    }

    fn on(
        (gpu, mut libraries, compiler): (Gpu, Libraries, &KernelCompiler),
        program: Checked,
        options: CudaOptions,
        (recipes, known): (&[Option<Recipe>], Known),
        mapping: Option<&Mapping>,
    ) -> Result<CudaSession, String> {
        let (constants, mut places) = Places::new(&program, recipes, &known);
        let memory = DeviceMemory::new(&gpu, &program, &constants, mapping)?;
        (places.constants, places.arena) = (memory.constants, memory.arena.address());
        let mut kernels = Kernels::new(&gpu, compiler);
        let calls = Calls::new(&places, &mut libraries, &mut kernels)?;
        // With chunks, different addresses may be the same memory.
        let fuses = !options.single_kernels && mapping.is_none();
        let fusion = if fuses { Fusion::new(&places, &calls, &mut kernels)? } else { Fusion::none(&calls) };
        let modules = kernels.modules;
        let ranges = (0..).zip(recipes);
        let ranges = ranges.filter_map(|(index, recipe)| Some((index, recipe.as_ref()?.range.clone()?)));
        let mut session = CudaSession {
            graph: None,
            calls,
            fusion,
            is_single: false,
            libraries,
            compiler: compiler.facts().clone(),
            events: Events::new(&program)?,
            _modules: modules,
            memory,
            slots: Slots::new(&program)?,
            gpu,
            order: program.in_order().iter().map(|&(stream, index, _)| (stream, index)).collect(),
            program,
            known,
            ranges: ranges.collect(),
            options,
            steps: 0,
            forgotten: Vec::new(),
            seed: 0,
            fragmentation: None,
            traces: false,
        };
        session.warm_up()?;
        session.clear()?;
        session.write_data()?;
        Ok(session)
    }

    /// Copies the model's data to its place, and forgets it.
    fn write_data(&mut self) -> Result<(), String> {
        for given in &self.program.given {
            if let Some(Data::Inline(bytes)) = &given.data {
                self.write(given.memory, &given.tensor, bytes)?;
            }
        }
        self.program.forget_data();
        Ok(())
    }

    /// Makes cuBLAS do each of its calls once, on the current contents of the arena; convolutions have run when they were chosen.
    /// A library loads the code of a call at its first use, which must not happen within a step or while a step is captured.
    fn warm_up(&self) -> Result<(), String> {
        let mut theirs =
            self.calls.by_command.iter().flatten().filter(|work| matches!(work, Work::Product(_)));
        theirs.try_for_each(|work| self.work(Stream::Compute, work))
    }

    /// Issues a call to the stream.
    fn work(&self, stream: Stream, work: &Work) -> Result<(), String> {
        match work {
            // SAFETY: the recipe says which arguments its kernels take, and the program where they are; both memories live as
            // long as this session.
            Work::Kernel(ready) => unsafe { self.gpu.launch(stream, ready) },
            // SAFETY: as above, and the program gives the workspace to nothing else meanwhile.
            Work::Product(product) => unsafe {
                self.libraries.blas.as_ref().map_err(String::clone)?.multiply(product)
            },
            Work::Convolution(ready) => match &self.libraries.dnn {
                // SAFETY: as above.
                Some(Ok(dnn)) => unsafe { dnn.convolve(ready) },
                _ => unreachable!("it has chosen how"),
            },
        }
    }

    /// Fills the whole arena with zeros.
    fn clear(&self) -> Result<(), String> {
        for (start, bytes) in self.memory.arena.parts() {
            // SAFETY: the arena has that many bytes from there on, and nothing else runs.
            unsafe { self.gpu.zeros(Stream::Compute, start, bytes)? };
        }
        self.gpu.wait_for(Stream::Compute)
    }

    /// The vendor's name of the device.
    pub fn device_name(&self) -> &str {
        &self.gpu.name
    }

    /// The implementation of matrix products: `cuBLAS 13.1.0`, possibly with the number of products that own kernels do, or `own
    /// kernels`, with the reason.
    pub fn products(&self) -> String {
        match &self.libraries.blas {
            Ok(blas) => self.calls.tallies[0].told(blas.name()),
            Err(why) => format!("own kernels: {why}"),
        }
    }

    /// The implementation of convolutions: `cuDNN 9.19.0`, possibly with the number of convolutions that own kernels do, or `own
    /// kernels`, with the reason; none if the program has no convolutions but those with windows of one pixel, which are
    /// products.
    pub fn convolutions(&self) -> Option<String> {
        Some(match self.libraries.dnn.as_ref()? {
            Ok(dnn) => self.calls.tallies[1].told(dnn.name()),
            Err(why) => format!("own kernels: {why}"),
        })
    }

    /// The libraries that this session uses: the driver, NVRTC, and cuBLAS and cuDNN where they were found.
    pub fn libraries(&self) -> Vec<LibraryFacts> {
        let found = [
            self.libraries.blas.as_ref().ok().map(Blas::facts),
            self.libraries.dnn.as_ref().and_then(|dnn| dnn.as_ref().ok()).map(Dnn::facts),
        ];
        [self.gpu.driver(), &self.compiler].into_iter().chain(found.into_iter().flatten()).cloned().collect()
    }

    /// Work that own kernels do in place of a library, each with the reason.
    pub fn fallbacks(&self) -> Vec<String> {
        if self.options.own_kernels {
            return Vec::new();
        }
        let products = match &self.libraries.blas {
            Err(why) if self.libraries.multiplies => Some(format!("own kernels multiply matrices: {why}")),
            Ok(_) if self.calls.tallies[0].own > 0 => Some(format!("products by {}", self.products())),
            _ => None,
        };
        let convolutions = match &self.libraries.dnn {
            Some(Err(why)) => Some(format!("own kernels convolve: {why}")),
            Some(Ok(dnn)) if self.calls.tallies[1].own > 0 => {
                Some(format!("convolutions by {}", self.calls.tallies[1].told(dnn.name())))
            }
            _ => None,
        };
        [products, convolutions].into_iter().flatten().collect()
    }

    /// Why own kernels do something that an open library could do under other circumstances.
    fn lacks(&self) -> Option<String> {
        let some = |library: String, tally: &Tally| {
            let why = tally.mendable.as_ref()?;
            Some(format!("{library} does not do {} of {}: {why}", tally.own, tally.all))
        };
        let products =
            self.libraries.blas.as_ref().ok().and_then(|blas| some(blas.name(), &self.calls.tallies[0]));
        products.or_else(|| some(self.libraries.dnn.as_ref()?.as_ref().ok()?.name(), &self.calls.tallies[1]))
    }

    /// The engines of cuDNN that convolve; none if the library is not used.
    pub fn engines(&self) -> Option<StepEngines> {
        let dnn = self.libraries.dnn.as_ref()?.as_ref().ok()?;
        let mut by_node = BTreeMap::new();
        for (index, launch) in self.program.launches() {
            let convolution = |work: &Work| match work {
                Work::Convolution(ready) => Some(ready.engine().text()),
                _ => None,
            };
            let engines: Vec<String> =
                self.calls.by_command[index as usize].iter().filter_map(convolution).collect();
            if !engines.is_empty() {
                by_node.insert(launch.node.to_string(), engines);
            }
        }
        let precision = Precision::NAMES[self.options.precision as usize].to_owned();
        Some(StepEngines { version: dnn.facts().version.clone(), precision, by_node })
    }

    /// The device's address of the arena.
    pub fn arena(&self) -> u64 {
        self.memory.arena.address()
    }

    /// Number of own kernels that a step launches, and the number without fusion.
    pub fn launches(&self) -> [usize; 2] {
        self.fusion.launches
    }

    /// Skips a wait of a command from now on, so that a test can show that the wait matters.
    #[doc(hidden)]
    pub fn forget(&mut self, stream: Stream, command: u32, wait: usize) {
        self.forgotten.push((stream, command, wait));
    }

    /// The bytes of a tensor, read when the compute stream has reached this point.
    fn read(&self, memory: Memory, tensor: &PlacedTensor) -> Result<Cow<'_, [u8]>, String> {
        let Some(span) = tensor.span() else {
            return Ok(Cow::Borrowed(self.known.get(&tensor.content).map_or(&[], |bytes| bytes.get())));
        };
        let bytes = span.end - span.start;
        let mut out = vec![0; bytes as usize];
        match memory {
            Memory::Arena => {
                let from = self.memory.arena.address() + span.start;
                // SAFETY: both have that many bytes, and nothing else happens before the copy is done.
                unsafe { self.gpu.to_host(Stream::Compute, out.as_mut_ptr(), from, bytes)? };
                self.gpu.wait_for(Stream::Compute)?;
            }
            Memory::Slab => {
                self.gpu.wait_for(Stream::Compute)?;
                let from = self.slots.slab.at(span.start, bytes);
                // SAFETY: the slab has that many bytes. The program is checked: the compute stream may read only bytes that no
                // copy writes at this point.
                unsafe { std::ptr::copy_nonoverlapping(from, out.as_mut_ptr(), bytes as usize) };
            }
        }
        Ok(Cow::Owned(out))
    }

    /// Sets the bytes of a tensor when the compute stream has reached this point.
    fn write(&self, memory: Memory, tensor: &PlacedTensor, new: &[u8]) -> Result<(), String> {
        let Some(span) = tensor.span() else { return Ok(()) };
        let bytes = span.end - span.start;
        assert_eq!(bytes, new.len() as u64, "a tensor is set as a whole");
        let staged = self.slots.staged.get(&span.start).filter(|_| memory == Memory::Arena);
        match (memory, staged) {
            (Memory::Arena, Some(&room)) => {
                let room = self.slots.slab.at(room, bytes);
                // SAFETY: the slab has that many bytes, and the copy from them in the step before is done: its turn was waited
                // for.
                unsafe {
                    std::ptr::copy_nonoverlapping(new.as_ptr(), room, bytes as usize);
                    self.gpu.to_device(Stream::Compute, self.memory.arena.address() + span.start, room, bytes)
                }
            }
            (Memory::Arena, None) => {
                let to = self.memory.arena.address() + span.start;
                // SAFETY: both have that many bytes, and they are borrowed until the copy is done.
                unsafe { self.gpu.to_device(Stream::Compute, to, new.as_ptr(), bytes)? };
                self.gpu.wait_for(Stream::Compute)
            }
            (Memory::Slab, _) => {
                self.gpu.wait_for(Stream::Compute)?;
                let to = self.slots.slab.at(span.start, bytes);
                // SAFETY: the slab has that many bytes. The program is checked: the compute stream may set only bytes that no
                // copy uses at this point.
                unsafe { std::ptr::copy_nonoverlapping(new.as_ptr(), to, bytes as usize) };
                Ok(())
            }
        }
    }

    /// Sets the bytes of a tensor to those at an address of this device, when the compute stream has reached this point.
    fn write_within(&self, memory: Memory, tensor: &PlacedTensor, from: u64) -> Result<(), String> {
        let Some(span) = tensor.span() else { return Ok(()) };
        let bytes = span.end - span.start;
        let from = self.gpu.checked(from, bytes)?;
        self.gpu.wait_for_default_stream()?;
        match memory {
            // SAFETY: both memories are the device's and have that many bytes, and the program is checked: the compute stream
            // may set only bytes that no copy uses at this point.
            Memory::Arena => unsafe {
                self.gpu.within(Stream::Compute, self.memory.arena.address() + span.start, from, bytes)
            },
            // SAFETY: as above; the slab has that many bytes.
            Memory::Slab => unsafe {
                self.gpu.to_host(Stream::Compute, self.slots.slab.at(span.start, bytes), from, bytes)
            },
        }
    }

    fn drive(&mut self, steps: u64, watch: &mut dyn StepObserver) -> Result<Measurements, RunError> {
        let failed = RunError::Device;
        self.gpu.enter().map_err(failed)?;
        self.begin().map_err(failed)?;
        let mut measured = Measurements { peak: peak_in_order(&self.program), ..Measurements::default() };
        let mut tracer =
            if self.traces { Some(Tracer::new(&self.gpu, &self.program).map_err(failed)?) } else { None };
        let graph = self.options.graph && tracer.is_none();
        self.is_single = !graph && (tracer.is_some() || watch.looks());
        let (mut begun, mut ended) = (0, false);
        for step in 0..steps {
            if step > 0 {
                self.events.turns[((step - 1) % 3) as usize].wait().map_err(failed)?;
            }
            if step > 1 {
                measured.step_ended(self.lasted(step - 1).map_err(failed)?);
            }
            self.wait_for_turn(step, graph).map_err(failed)?;
            let number = self.steps + step;
            let taken = Turn::new(self, &self.program, number, step > 0).taken_by(watch);
            let ends = taken.map_err(|error| self.out_of_range().unwrap_or(error))?;
            self.gpu.record(&self.events.turns[(step % 3) as usize], Stream::Compute).map_err(failed)?;
            begun = step + 1;
            if ends {
                ended = true;
                break;
            }
            if graph {
                self.replay().map_err(failed)?;
                continue;
            }
            for at in 0..self.order.len() {
                let (stream, index) = self.order[at];
                self.issue(stream, index, step, tracer.as_ref(), false).map_err(failed)?;
                if !watch.looks() {
                    continue;
                }
                if let Action::Launch(launch) = &self.program.stream(stream)[index as usize].action {
                    if stream == Stream::Compute && self.ranges.contains_key(&index) {
                        self.fetch_step().and_then(|()| self.gpu.wait_for(stream)).map_err(failed)?;
                        self.out_of_range().map_or(Ok(()), Err)?;
                    }
                    let bytes = |tensor: &PlacedTensor| self.read(Memory::Arena, tensor).map(Cow::into_owned);
                    watch.launched(launch, &bytes).map_err(RunError::Stopped)?;
                }
            }
            if let Some(tracer) = &mut tracer {
                Stream::ALL.iter().try_for_each(|&stream| self.gpu.wait_for(stream)).map_err(failed)?;
                tracer.tell(&self.program, step, &mut measured).map_err(failed)?;
            }
        }
        if begun == steps && !ended {
            // The end of the last step is recorded as a further turn.
            self.gpu.record(&self.events.turns[(steps % 3) as usize], Stream::Compute).map_err(failed)?;
            begun += 1;
        }
        // The turns recorded last bound the steps whose durations are still missing.
        for turn in (measured.steps.len() + 1)..begun {
            self.events.turns[(turn % 3) as usize].wait().map_err(failed)?;
            measured.step_ended(self.lasted(turn).map_err(failed)?);
        }
        Ok(measured)
    }

    /// Duration of the step before this turn.
    fn lasted(&self, turn: u64) -> Result<Duration, String> {
        let [end, begin] = [turn, turn - 1].map(|turn| &self.events.turns[(turn % 3) as usize]);
        Ok(Duration::from_secs_f64(end.seconds_since(begin)?.max(0.0)))
    }

    /// Writes the words of the step before the next one to the device.
    fn begin(&self) -> Result<(), String> {
        let step = StepWords::new(StepContext { number: self.steps.wrapping_sub(1), seed: self.seed });
        let bytes = size_of_val(&step) as u64;
        let room = self.slots.slab.at(self.slots.step, bytes);
        // SAFETY: all three have that many bytes, and nothing else uses the room.
        unsafe {
            std::ptr::copy_nonoverlapping(step.0.as_ptr().cast(), room, bytes as usize);
            self.gpu.to_device(Stream::Compute, self.memory.constants, room, bytes)?;
        }
        self.gpu.wait_for(Stream::Compute)
    }

    /// Copies the words of the step to the host when the compute stream has reached this point, if a kernel may have noted
    /// something there.
    fn fetch_step(&self) -> Result<(), String> {
        if self.ranges.is_empty() {
            return Ok(());
        }
        let bytes = size_of::<StepWords>() as u64;
        let room = self.slots.slab.at(self.slots.step, bytes);
        // SAFETY: both have that many bytes, and nothing reads the room before the copy is done.
        unsafe { self.gpu.to_host(Stream::Compute, room, self.memory.constants, bytes) }
    }

    /// The first index or label of the run that was out of range when the words of the step were fetched last. That copy must be
    /// done.
    fn out_of_range(&self) -> Option<RunError> {
        let mut step = StepWords::default();
        let bytes = size_of_val(&step);
        let room = self.slots.slab.at(self.slots.step, bytes as u64);
        // SAFETY: both have that many bytes, and nothing writes the room now.
        unsafe { std::ptr::copy_nonoverlapping(room, step.0.as_mut_ptr().cast(), bytes) };
        let found = step.out_of_range()?;
        let command = self.program.stream(Stream::Compute).get(found.command as usize)?;
        let (Action::Launch(launch), range) = (&command.action, self.ranges.get(&found.command)?) else {
            return None;
        };
        Some(RunError::Value {
            node: launch.node.to_string(),
            op: launch.op.to_string(),
            step: found.step + 1,
            why: range.refusal(found.dim, found.value),
            // The rest of the step has run.
            keeps_state: false,
        })
    }

    /// Makes the stream wait, on the device, for the waits of the command. A wait for the step before is skipped if there was
    /// none.
    fn obey(&self, stream: Stream, index: u32, step: u64, alone: bool) -> Result<(), String> {
        for (at, wait) in self.program.stream(stream)[index as usize].waits.iter().enumerate() {
            if wait.before && (alone || step == 0) || self.forgotten.contains(&(stream, index, at)) {
                continue;
            }
            let step = step - u64::from(wait.before);
            if let Some(events) = &self.events.of_commands[wait.stream as usize][wait.command as usize] {
                self.gpu.after(stream, &events[(step % 2) as usize])?;
            }
        }
        Ok(())
    }

    /// Makes the compute stream reach the caller's turn. A replayed step has ended with all of its streams.
    fn wait_for_turn(&self, step: u64, graph: bool) -> Result<(), String> {
        if graph { Ok(()) } else { self.obey(Stream::Compute, 0, step, false) }
    }

    /// Issues a command to its stream. For the caller's turn, [`CudaSession::wait_for_turn`] has already obeyed the waits.
    fn issue(
        &self,
        stream: Stream,
        index: u32,
        step: u64,
        tracer: Option<&Tracer>,
        alone: bool,
    ) -> Result<(), String> {
        let command: &Command = &self.program.stream(stream)[index as usize];
        if !command.action.is_turn() {
            self.obey(stream, index, step, alone)?;
        }
        if let Some(tracer) = tracer {
            self.gpu.record(&tracer.events[stream as usize][index as usize][0], stream)?;
        }
        match &command.action {
            Action::Turn | Action::Launch(_) => self.compute(stream, index)?,
            Action::Copy(copy) => self.copy(stream, copy)?,
        }
        if let Some(tracer) = tracer {
            self.gpu.record(&tracer.events[stream as usize][index as usize][1], stream)?;
        }
        match &self.events.of_commands[stream as usize][index as usize] {
            Some(events) => self.gpu.record(&events[(step % 2) as usize], stream),
            None => Ok(()),
        }
    }

    /// Issues the calls of a command to the stream: none if a fused kernel of another command includes them.
    fn compute(&self, stream: Stream, index: u32) -> Result<(), String> {
        match self.fusion.kernels.get(&index).filter(|_| !self.is_single) {
            Some(Some((before, ready))) => {
                let calls = &self.calls.by_command[index as usize][..*before];
                calls.iter().try_for_each(|work| self.work_of(stream, index, work))?;
                // SAFETY: as for the kernels that it replaces.
                let launched = unsafe { self.gpu.launch(stream, ready) };
                let name = || format!("the fused kernel `{}`", ready.kernel());
                self.followed(stream, index, name, launched)
            }
            Some(None) => Ok(()),
            None => {
                let mut calls = self.calls.by_command[index as usize].iter();
                calls.try_for_each(|work| self.work_of(stream, index, work))
            }
        }
    }

    /// Issues a call of a command to the stream.
    fn work_of(&self, stream: Stream, index: u32, work: &Work) -> Result<(), String> {
        self.followed(stream, index, || work.name(), self.work(stream, work))
    }

    /// The result of issuing a call of the command; if each launch is to end before the next, the result of the call itself, with
    /// its name.
    fn followed(
        &self,
        stream: Stream,
        index: u32,
        name: impl FnOnce() -> String,
        issued: Result<(), String>,
    ) -> Result<(), String> {
        if !self.options.synchronous {
            return issued;
        }
        issued.and_then(|()| self.gpu.wait_for(stream)).map_err(|why| {
            let node = match &self.program.stream(stream)[index as usize].action {
                Action::Launch(launch) => format!(" of the node `{}`", launch.node),
                _ => String::new(),
            };
            format!("{}{node} failed: {why}", name())
        })
    }

    fn copy(&self, stream: Stream, copy: &Transfer) -> Result<(), String> {
        let device = self.memory.arena.address() + copy.device;
        let host = self.slots.slab.at(copy.host, copy.bytes);
        // SAFETY: both have that many bytes, and live as long as this session. The program is checked: until the copy is done
        // nothing writes its source, or uses its destination.
        unsafe {
            match stream {
                Stream::In => self.gpu.to_device(stream, device, host, copy.bytes),
                _ => self.gpu.to_host(stream, host, device, copy.bytes),
            }
        }
        .map_err(|why| format!("the copy `{}` ({stream}): {why}", copy.node))
    }

    /// Replays the captured step; captures it first if there is none yet.
    fn replay(&mut self) -> Result<(), String> {
        if self.graph.is_none() {
            self.gpu.begin_graph()?;
            let written = self.write_down();
            // The capture must end even if issuing a command failed.
            let graph = self.gpu.end_graph();
            written?;
            self.graph = Some(graph?);
        }
        match &self.graph {
            Some(graph) => self.gpu.replay(graph),
            None => Ok(()),
        }
    }

    /// Captures a step whose copies begin after it begins and end before it ends. Such steps do not overlap, so no command waits
    /// for the step before.
    fn write_down(&self) -> Result<(), String> {
        self.gpu.record(&self.events.forks[0], Stream::Compute)?;
        for stream in [Stream::Out, Stream::In] {
            self.gpu.after(stream, &self.events.forks[0])?;
        }
        for &(stream, index) in &self.order {
            self.issue(stream, index, 0, None, true)?;
        }
        for (stream, event) in [Stream::Out, Stream::In].into_iter().zip(&self.events.forks[1..]) {
            self.gpu.record(event, stream)?;
            self.gpu.after(Stream::Compute, event)?;
        }
        Ok(())
    }
}

impl DeviceSession for CudaSession {
    fn program(&self) -> &Checked {
        &self.program
    }

    fn device(&self) -> String {
        format!("{} ({})", self.gpu.name, self.gpu.architecture)
    }

    fn fragmentation(&self) -> Option<Fragmentation> {
        self.fragmentation
    }

    fn workspace(&self, command: u32) -> u64 {
        self.calls.workspaces.get(command as usize).copied().unwrap_or(0)
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn set_steps(&mut self, steps: u64) {
        self.steps = steps;
    }

    fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Steps whose commands are recorded do not overlap.
    fn set_traces(&mut self, traces: bool) {
        self.traces = traces;
    }

    fn get(&mut self, name: &str) -> Result<Option<Vec<u8>>, RunError> {
        let Some((memory, tensor)) = self.slots.names.get(name) else { return Ok(None) };
        let read = self.gpu.enter().and_then(|()| self.read(*memory, tensor));
        read.map(|bytes| Some(bytes.into_owned())).map_err(RunError::Device)
    }

    fn set(&mut self, name: &str, bytes: &[u8]) -> Result<bool, RunError> {
        let Some((memory, tensor)) = self.slots.names.get(name) else { return Ok(false) };
        if tensor.bytes() != bytes.len() as u64 {
            return Ok(false);
        }
        // One value may be set several times before a step takes it.
        let done = self.gpu.enter().and_then(|()| self.write(*memory, tensor, bytes));
        done.and_then(|()| self.gpu.wait_for(Stream::Compute)).map_err(RunError::Device)?;
        Ok(true)
    }

    fn set_within(&mut self, name: &str, at: DeviceBytes) -> Result<bool, RunError> {
        let Some((memory, tensor)) = self.slots.names.get(name) else { return Ok(false) };
        if tensor.bytes() != at.bytes {
            return Ok(false);
        }
        // The bytes belong to the caller again when this returns.
        let done = self.gpu.enter().and_then(|()| self.write_within(*memory, tensor, at.address));
        done.and_then(|()| self.gpu.wait_for(Stream::Compute)).map_err(RunError::Device)?;
        Ok(true)
    }

    fn run(&mut self, steps: u64, observer: &mut dyn StepObserver) -> Result<Measurements, RunError> {
        let ran = self.drive(steps, observer);
        let fetched = self.fetch_step();
        // Even after an error, nothing goes on running when this returns.
        let ended = Stream::ALL.iter().try_for_each(|&stream| self.gpu.wait_for(stream));
        let measured = ran?;
        fetched.and(ended).map_err(RunError::Device)?;
        if let Some(error) = self.out_of_range() {
            return Err(error);
        }
        self.steps += measured.steps.len();
        Ok(measured)
    }

    fn time_launches(&mut self, steps: u64) -> Result<(Vec<TimedLaunch>, Vec<Duration>), RunError> {
        // The first step runs with cold memory and caches.
        let ran = self.run(1 + steps, &mut Unobserved)?;
        let timed = self.time(steps)?;
        Ok((timed, ran.steps.after_first().copied().collect()))
    }
}

impl Tensors for CudaSession {
    /// Fails as well if an index or a label was out of range: the results of that step mean nothing.
    fn peek(&self, memory: Memory, tensor: &PlacedTensor) -> Result<Cow<'_, [u8]>, String> {
        self.fetch_step()?;
        let bytes = self.read(memory, tensor)?;
        // Bytes that are known without a step are read without a wait.
        let error = if tensor.span().is_some() { self.out_of_range() } else { None };
        error.map_or(Ok(bytes), |error| Err(error.to_string()))
    }

    fn poke(&self, memory: Memory, tensor: &PlacedTensor, bytes: &[u8]) -> Result<(), String> {
        self.write(memory, tensor, bytes)
    }
}

/// Events at the begin and the end of each command.
struct Tracer {
    start: Event,
    events: [Vec<[Event; 2]>; 3],
}

impl Tracer {
    fn new(gpu: &Gpu, program: &Program) -> Result<Tracer, String> {
        let mut events = [Vec::new(), Vec::new(), Vec::new()];
        for stream in Stream::ALL {
            for _ in program.stream(stream) {
                events[stream as usize].push([Event::new(true)?, Event::new(true)?]);
            }
        }
        let start = Event::new(true)?;
        gpu.record(&start, Stream::Compute)?;
        Ok(Tracer { start, events })
    }

    /// Adds the times of a finished step to `measured`.
    fn tell(&mut self, program: &Program, step: u64, measured: &mut Measurements) -> Result<(), String> {
        // The driver reports times in single precision, so short spans are more exact.
        let first = &self.events[Stream::Compute as usize][0][0];
        let base = first.seconds_since(&self.start)?;
        let at = |event: &Event| {
            let seconds = base + event.seconds_since(first)?;
            Ok::<_, String>(Duration::from_secs_f64(seconds.max(0.0)))
        };
        let mut spans = [Vec::new(), Vec::new(), Vec::new()];
        for (spans, events) in spans.iter_mut().zip(&self.events) {
            for [begin, end] in events {
                spans.push((at(begin)?, at(end)?));
            }
        }
        let ended = |stream: Stream, command: u32| spans[stream as usize][command as usize].1;
        for (stream, command, _) in program.in_order() {
            let (begun, end) = spans[stream as usize][command as usize];
            // It waited since the end of the command before it, if a command that it waits for ended later.
            let since = command.checked_sub(1).map_or(begun, |before| ended(stream, before));
            let waits = &program.stream(stream)[command as usize].waits;
            let waits = waits.iter().filter(|wait| !wait.before);
            let last = waits.map(|&wait| (ended(wait.stream, wait.command), wait)).max();
            let cause = last.filter(|&(end, _)| end > since).map(|(_, wait)| wait);
            let waited = if cause.is_some() { since.min(begun) } else { begun };
            measured.busy[stream as usize] += end.saturating_sub(begun);
            if stream == Stream::Compute {
                measured.stalled += begun.saturating_sub(waited);
            }
            let event = run::Event { stream, command, step, waited, begun, ended: end, cause, live: 0 };
            measured.events.push(event);
        }
        Ok(())
    }
}
