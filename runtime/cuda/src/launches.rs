//! Lists the calls of a step on a device, without having one: kernels, products, convolutions and copies, each with lower bounds
//! of the bytes that it moves and of its operations.
//!
//! Bytes are a lower bound. Elementwise kernels, moves and fills are counted by their elements. For every other kernel each
//! tensor counts once, as if repeated reads hit a cache; gathers and scatters count the rows that they touch. A kernel's
//! workspace is not counted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use lmsc_ir::Type;
use lmsc_ir::program::{Action, Checked, Launch, PlacedTensor, Stream};
use lmsc_runtime::RunError;

use super::engines::{ChannelOrder, EngineChoice, Engines, NoEngine};
use super::fuse::{Fused, distinct, fuse, reached, width};
use super::recipe::{self, AddressBase, Arg, Call, Convolution, Each, FloatType, Product, Recipe};
use super::session::{Places, recipes};

/// The kind of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// A kernel of its own.
    Kernel {
        /// Its name.
        name: String,
        /// Number of blocks.
        blocks: u32,
        /// Number of launches of single operators that it replaces.
        operators: usize,
    },
    /// Matrix products by cuBLAS.
    Product {
        /// Number of products.
        batch: i32,
        /// Rows and columns of the result, and the number of products in the sum of each element.
        extents: [i32; 3],
    },
    /// A convolution, or one of its gradients, by cuDNN.
    Convolution {
        /// The tensor that is computed.
        found: recipe::Found,
        /// Extents of the image, the weights and the positions.
        extents: [Vec<i32>; 3],
        /// Layout of these.
        layout: ChannelOrder,
        /// The engine that fits its workspace; none where the card's engines are not known.
        engine: Option<EngineChoice>,
    },
    /// A copy to the host or from it, by its stream.
    Copy,
}

/// A call of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The stream that it is issued to.
    pub stream: Stream,
    /// The command of the stream; the first one if the call includes those of several commands.
    pub command: u32,
    /// The node whose command that is.
    pub node: String,
    /// The kind of the call.
    pub kind: CallKind,
    /// Minimum number of bytes that it moves.
    pub bytes: u64,
    /// Minimum number of operations; a multiplication and an addition are two.
    pub operations: u64,
    /// Type of the elements of its factors.
    pub factors: FloatType,
    /// Why this own kernel convolves in place of cuDNN.
    pub instead: Option<String>,
}

/// The libraries of the device whose calls are listed.
struct Has<'a> {
    engines: &'a Engines,
    own_kernels: bool,
}

/// The calls of a step of the program on a device that has cuBLAS and cuDNN, whose engines these are, in the program's order; or
/// without the libraries, if `own_kernels` is set.
///
/// # Errors
/// [`RunError::NotReady`].
pub fn launches(program: &Checked, engines: &Engines, own_kernels: bool) -> Result<Vec<Listed>, RunError> {
    let has = Has { engines, own_kernels };
    let (recipes, known) = recipes(program)?;
    let (constants, mut places) = Places::new(program, &recipes, &known);
    places.put(&constants);
    let (fused, _) = fuse(program, places.arena(), &places.elementwise());
    let fused: BTreeMap<u32, Fused> = fused.into_iter().map(|one| (one.commands[0], one)).collect();
    let mut all = Vec::new();
    let mut until = None;
    for &(stream, command, of) in &program.in_order() {
        let node = match &of.action {
            Action::Turn => {
                let name = "next_step".to_owned();
                let kind = CallKind::Kernel { name, blocks: 1, operators: 1 };
                all.push(listed(stream, command, "", kind));
                continue;
            }
            Action::Copy(copy) => {
                let copied = listed(stream, command, &copy.node, CallKind::Copy);
                all.push(Listed { bytes: copy.bytes, ..copied });
                continue;
            }
            Action::Launch(launch) => launch,
        };
        if let Some(one) = fused.get(&command).filter(|_| stream == Stream::Compute) {
            let mut own = Vec::new();
            for recipe in recipes[command as usize].iter() {
                recipe.calls.iter().for_each(|call| of_call((command, node, recipe), call, &has, &mut own));
            }
            own.truncate(own.len() - one.of_first);
            all.append(&mut own);
            let (name, blocks, operators) = (one.kernel.clone(), one.blocks, one.launches);
            let kind = CallKind::Kernel { name, blocks, operators };
            let (bytes, operations) = (one.bytes, one.operations);
            all.push(Listed { bytes, operations, ..listed(stream, command, &node.node, kind) });
            until = Some(one.commands[1]);
        }
        if until.is_some_and(|last| command <= last) {
            continue;
        }
        let Some(recipe) = &recipes[command as usize] else { continue };
        for call in &recipe.calls {
            of_call((command, node, recipe), call, &has, &mut all);
        }
    }
    Ok(all)
}

fn listed(stream: Stream, command: u32, node: &str, kind: CallKind) -> Listed {
    let (node, factors) = (node.to_owned(), FloatType::F32);
    Listed { stream, command, node, kind, bytes: 0, operations: 0, factors, instead: None }
}

/// Adds the entries of a call.
fn of_call(
    (command, launch, recipe): (u32, &Launch, &Recipe),
    call: &Call,
    has: &Has<'_>,
    all: &mut Vec<Listed>,
) {
    let of = |kind| listed(Stream::Compute, command, &launch.node, kind);
    let own_kernels = has.own_kernels;
    // Without the engines of the card it is not known that none fits.
    let engine = match call {
        Call::Convolution { library: Some(it), .. } if !own_kernels => {
            let Range { start, end } = launch.workspace;
            match has.engines.engine(it, recipe.scratch_of(end - start)) {
                Ok(engine) => Ok(Some(engine)),
                Err(NoEngine::Unknown) => Ok(None),
                Err(why) => Err(why.to_string()),
            }
        }
        Call::Convolution { library: None, .. } => Err("its size does not suit the library".to_owned()),
        _ => Ok(None),
    };
    let kernels = match call {
        Call::Products { library, .. } if !own_kernels => {
            all.extend(library.iter().map(|product| {
                let kind =
                    CallKind::Product { batch: product.batch, extents: [product.m, product.n, product.k] };
                let (bytes, operations) = of_product(product);
                Listed { bytes, operations, factors: product.factors, ..of(kind) }
            }));
            call.behind()
        }
        Call::Convolution { library: Some(convolution), .. } if !own_kernels && engine.is_ok() => {
            let engine = engine.clone().unwrap_or_default();
            let filter = &convolution.filter;
            let extents = [&filter.image, &filter.weights, &filter.positions].map(Vec::clone);
            let (found, layout) = (filter.found, convolution.layout);
            let kind = CallKind::Convolution { found, extents, layout, engine };
            let (bytes, operations) = of_convolution(convolution);
            all.extend(call.before().iter().map(|kernel| {
                let (bytes, operations) = of_kernel(launch, kernel);
                Listed { bytes, operations, ..of(kernel_kind(kernel)) }
            }));
            all.push(Listed { bytes, operations, factors: convolution.stored, ..of(kind) });
            call.behind()
        }
        _ => call.kernels(),
    };
    // Own kernels replace the library; the library's operations are attributed to the first of them.
    let mut instead = match call {
        Call::Products { library, .. } if own_kernels => library.iter().map(|it| of_product(it).1).sum(),
        Call::Convolution { library: Some(it), .. } if own_kernels || engine.is_err() => of_convolution(it).1,
        _ => 0,
    };
    let mut why = engine.err().filter(|_| !own_kernels);
    for kernel in kernels {
        let (bytes, operations) = of_kernel(launch, kernel);
        let operations = operations.max(std::mem::take(&mut instead));
        all.push(Listed { bytes, operations, instead: why.take(), ..of(kernel_kind(kernel)) });
    }
}

fn kernel_kind(kernel: &recipe::KernelLaunch) -> CallKind {
    CallKind::Kernel { name: kernel.kernel.clone(), blocks: kernel.blocks, operators: 1 }
}

fn bytes_of(float: FloatType) -> u64 {
    match float {
        FloatType::F32 => 4,
        FloatType::F16 | FloatType::Bf16 => 2,
    }
}

/// Bytes and operations of products of matrices.
fn of_product(it: &Product) -> (u64, u64) {
    let [m, n, k, batch] = [it.m, it.n, it.k, it.batch].map(|extent| extent.max(0) as u64);
    // A factor that all products of a batch share is read once.
    let times = |stride: i64| if stride == 0 { batch.min(1) } else { batch };
    let read = (times(it.left.stride) * m * k + times(it.right.stride) * n * k) * bytes_of(it.factors);
    let passes = if it.beta == 0.0 { 1 } else { 2 };
    let written = batch * m * n * bytes_of(it.stored) * passes;
    (read + written, 2 * batch * m * n * k)
}

/// Bytes and operations of a convolution.
fn of_convolution(it: &Convolution) -> (u64, u64) {
    let count = |extents: &[i32]| extents.iter().map(|&extent| extent.max(0) as u64).product::<u64>();
    let filter = &it.filter;
    let all = [&filter.image, &filter.weights, &filter.positions].map(|extents| count(extents));
    let window = filter.weights.get(1..).map_or(0, count);
    (all.iter().sum::<u64>() * bytes_of(it.stored), 2 * all[2] * window)
}

/// Bytes and operations of a kernel.
fn of_kernel(launch: &Launch, kernel: &recipe::KernelLaunch) -> (u64, u64) {
    if let Some(each) = &kernel.each {
        return of_each(each);
    }
    let width_by_name = || kernel.kernel.rsplit('_').next().map_or(0, width);
    match (&*kernel.kernel, kernel.args.first()) {
        (name, Some(Arg::Words(words))) if name.starts_with("move_") => {
            // The words are: first index in both tensors, number of elements, dimensions, extents, and strides in both.
            let (elements, read) = (words[2], distinct(&words[2..]));
            ((elements + read) * width_by_name(), elements)
        }
        (name, Some(Arg::Words(words))) if name.starts_with("fill_") => {
            (words[0] * width_by_name(), words[0])
        }
        ("copy", Some(Arg::Words(words))) => (2 * words[0], 0),
        _ => of_tensors(launch, kernel),
    }
}

/// Bytes and operations of a function of each element.
fn of_each(each: &Each) -> (u64, u64) {
    let read = each.operands.iter().map(|(element, reach)| reached(reach, each.elements) * width(element));
    let written = each.results.iter().map(|element| each.elements * width(element));
    (read.sum::<u64>() + written.sum::<u64>(), each.elements)
}

/// Prefixes of the names of kernels that add to rows of a table.
const ROWS_WRITTEN: [&str; 6] = ["scatter_", "apply_", "accumulate", "chain", "row_places", "tuple_places"];

/// Bytes of the tensors that a kernel takes, each once, and an operation for each element of the largest.
fn of_tensors(launch: &Launch, kernel: &recipe::KernelLaunch) -> (u64, u64) {
    let named: BTreeSet<(bool, usize)> = kernel
        .args
        .iter()
        .flat_map(Arg::addresses)
        .filter_map(|address| match address.at {
            AddressBase::Operand(index) => Some((false, index)),
            AddressBase::Result(index) => Some((true, index)),
            _ => None,
        })
        .collect();
    let tensor = |&(is_result, index): &(bool, usize)| {
        let list = if is_result { &launch.results } else { &launch.operands };
        list.get(index).and_then(Option::as_ref).map(|tensor| (is_result, tensor))
    };
    let tensors: Vec<(bool, &PlacedTensor)> = named.iter().filter_map(tensor).collect();
    let largest = |of: bool| {
        let bytes = tensors.iter().filter(|(is_result, _)| *is_result == of).map(|(_, it)| it.bytes());
        bytes.max().unwrap_or(0)
    };
    let [operands, results] = [largest(false), largest(true)];
    // Of a table that rows are gathered from, or added to, only those rows are touched.
    let most = match &*kernel.kernel {
        name if name.starts_with("gather") => results,
        name if ROWS_WRITTEN.iter().any(|begins| name.starts_with(begins)) => operands,
        _ => u64::MAX,
    };
    let bytes = tensors.iter().map(|(_, tensor)| tensor.bytes().min(most)).sum();
    let elements = |tensor: &PlacedTensor| match &tensor.ty {
        Type::Tensor(tensor) => tensor.element_count().unwrap_or(0),
        _ => 0,
    };
    (bytes, tensors.iter().map(|(_, tensor)| elements(tensor)).max().unwrap_or(0))
}
