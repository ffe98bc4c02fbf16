//! An operator's implementation on a device: launches whose addresses are still symbolic.

use lmsc_ir::Bytes;
use lmsc_kernels::host::index::no_index;
use lmsc_kernels::host::loss::no_class;
use lmsc_kernels::meaning::Rows;
use lmsc_kernels::spec::{SpecError, refuse};

use super::BLOCK;
use super::engines::ChannelOrder;

/// Maximum number of dimensions in a kernel's arguments.
pub(super) const RANK: usize = 8;

/// Maximum number of blocks of a kernel whose threads loop over further elements.
const MOST_BLOCKS: usize = 4096;

/// The scratch of a recipe begins at a multiple of this number of bytes, as cuBLAS demands.
pub const SCRATCH_ALIGNMENT: u64 = 256;

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressBase {
    /// An operand; null where it is left out or has no bytes.
    Operand(usize),
    /// A result; null where it is unused or has no bytes.
    Result(usize),
    /// The workspace.
    Workspace,
    /// [`Recipe::scratch`], which begins in the workspace at the first multiple of [`SCRATCH_ALIGNMENT`] behind the rooms.
    Scratch,
    /// [`Recipe::constants`], on the device.
    Constants,
    /// The words of the step: [`StepWords`](super::StepWords).
    Step,
    /// Null.
    Nowhere,
}

/// An address: a base and an offset in bytes. An offset from null is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The base.
    pub at: AddressBase,
    /// Offset in bytes.
    pub offset: u64,
}

impl Address {
    /// The address `elements` elements further on.
    pub(super) fn plus<T>(self, elements: usize) -> Address {
        Address { offset: self.offset + (elements * size_of::<T>()) as u64, ..self }
    }
}

pub(super) fn operand(index: usize) -> Address {
    Address { at: AddressBase::Operand(index), offset: 0 }
}

pub(super) fn result(index: usize) -> Address {
    Address { at: AddressBase::Result(index), offset: 0 }
}

pub(super) const NOWHERE: Address = Address { at: AddressBase::Nowhere, offset: 0 };
pub(super) const STEP: Address = Address { at: AddressBase::Step, offset: 0 };

/// The arguments with which a kernel notes an index or a label out of range.
pub(super) fn noting() -> [Arg; 2] {
    [STEP.into(), Arg::Command]
}

/// The values that an operand of indices or labels may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueRange {
    /// Indices, or tuples of them, into dimensions of these extents.
    Indices(Vec<usize>),
    /// Labels of this number of classes.
    Labels(usize),
}

impl ValueRange {
    /// The message about a value out of range, as the host's kernel words it; `dim` is the position of an index in its tuple.
    pub fn refusal(&self, dim: usize, value: i64) -> String {
        match self {
            ValueRange::Indices(extents) => no_index(value, extents.get(dim).copied().unwrap_or(0)),
            ValueRange::Labels(classes) => no_class(value, *classes),
        }
    }
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// An address, of 64 bits.
    Address(Address),
    /// A number or a structure of numbers, all of 64 bits.
    Words(Vec<u64>),
    /// A structure of addresses.
    Addresses(Vec<Address>),
    /// The position of the launch in the compute stream, a number of 64 bits.
    Command,
}

impl Arg {
    /// The addresses in it.
    pub(super) fn addresses(&self) -> &[Address] {
        match self {
            Arg::Address(address) => std::slice::from_ref(address),
            Arg::Addresses(list) => list,
            Arg::Words(_) | Arg::Command => &[],
        }
    }
}

impl From<Address> for Arg {
    fn from(address: Address) -> Arg {
        Arg::Address(address)
    }
}

impl From<usize> for Arg {
    fn from(number: usize) -> Arg {
        Arg::Words(vec![number as u64])
    }
}

impl From<u64> for Arg {
    fn from(number: u64) -> Arg {
        Arg::Words(vec![number])
    }
}

impl From<i64> for Arg {
    fn from(number: i64) -> Arg {
        Arg::Words(vec![number as u64])
    }
}

impl From<bool> for Arg {
    fn from(flag: bool) -> Arg {
        Arg::Words(vec![u64::from(flag)])
    }
}

impl From<f64> for Arg {
    fn from(number: f64) -> Arg {
        Arg::Words(vec![number.to_bits()])
    }
}

impl From<Vec<u64>> for Arg {
    fn from(words: Vec<u64>) -> Arg {
        Arg::Words(words)
    }
}

/// A kernel, the number of its blocks, each of [`BLOCK`] threads, and its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelLaunch {
    /// The kernel's name.
    pub kernel: String,
    /// Number of blocks.
    pub blocks: u32,
    /// Its arguments, in order.
    pub args: Vec<Arg>,
    /// The kernel's function of each element, if the kernel is elementwise.
    pub each: Option<Box<Each>>,
}

/// An elementwise kernel: a function that takes one element of each operand and gives one of each result. The operands are the
/// first addresses among the kernel's arguments, and the results are the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each {
    /// Number of elements of the results.
    pub elements: u64,
    /// Numeric parameters of the function, as bits.
    pub parameters: Vec<u64>,
    /// The type of the parameters, if they and the operands' first elements are combined into one value before the loop over
    /// elements.
    pub made_of: Option<&'static str>,
    /// For each operand, the type of its elements, and which of them is read.
    pub operands: Vec<(&'static str, Indexing)>,
    /// For each result, the type of its elements.
    pub results: Vec<&'static str>,
}

/// Which element of an operand an element of the result is computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// The element of the same index.
    Same,
    /// Always the first.
    First,
    /// The element at strides given by a box of indices, as a kernel takes it.
    Spread(Vec<u64>),
    /// The element of the channel: the divisors that compute the channel, as a kernel takes them.
    Channel(Vec<u64>),
}

/// Storage type of floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FloatType {
    /// 32 bits.
    #[default]
    F32,
    /// 16 bits, of which 5 are the exponent's.
    F16,
    /// 16 bits, of which 8 are the exponent's, as in 32-bit floats.
    Bf16,
}

impl FloatType {
    /// Its name in kernels.
    pub(super) fn name(self) -> &'static str {
        match self {
            FloatType::F32 => "f32",
            FloatType::F16 => "f16",
            FloatType::Bf16 => "bf16",
        }
    }
}

/// A factor of a matrix product, as cuBLAS takes it: column-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor<A = Address> {
    /// Where it is.
    pub at: A,
    /// Whether it is transposed before the multiplication.
    pub transposed: bool,
    /// Distance of its columns in memory, in elements.
    pub leading: i32,
    /// Distance to the next matrix of the batch, in elements.
    pub stride: i64,
}

/// Matrix products, as cuBLAS takes them: out = alpha · left · right + beta · out, `batch` times.
///
/// These matrices are column-major, so a product of row-major matrices is one of these in which left and right are swapped, and
/// each is transposed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product<A = Address> {
    /// Rows of the result.
    pub m: i32,
    /// Columns of the result.
    pub n: i32,
    /// Number of products that are summed for each element of the result.
    pub k: i32,
    /// The factor with `m` rows.
    pub left: Factor<A>,
    /// The factor with `n` columns.
    pub right: Factor<A>,
    /// The result, which is never transposed.
    pub out: Factor<A>,
    /// Type of the elements of `left` and `right`.
    pub factors: FloatType,
    /// Type of the elements of `out`.
    pub stored: FloatType,
    /// Number of products in the batch.
    pub batch: i32,
    /// Factor of each product.
    pub alpha: f32,
    /// Factor of the previous elements of `out`; with 0 they are not read.
    pub beta: f32,
    /// Workspace of the library.
    pub workspace: A,
    /// Size of the workspace in bytes.
    pub workspace_bytes: u64,
}

impl<A> Product<A> {
    /// The same product with other addresses.
    pub fn map<B>(self, address: impl Fn(A) -> B) -> Product<B> {
        let factor = |it: Factor<A>| Factor {
            at: address(it.at),
            transposed: it.transposed,
            leading: it.leading,
            stride: it.stride,
        };
        Product {
            m: self.m,
            n: self.n,
            k: self.k,
            left: factor(self.left),
            right: factor(self.right),
            out: factor(self.out),
            factors: self.factors,
            stored: self.stored,
            batch: self.batch,
            alpha: self.alpha,
            beta: self.beta,
            workspace: address(self.workspace),
            workspace_bytes: self.workspace_bytes,
        }
    }
}

/// Which of the three tensors of a convolution is computed from the other two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The output of a convolution, one element per position of the window.
    Positions,
    /// The image: the gradient of a convolution's input, or a transposed convolution.
    Image,
    /// The gradient of the weights.
    Weights,
}

/// The extents of a convolution, as cuDNN takes them: two or three dimensions, besides samples and channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The tensor that is computed.
    pub found: Found,
    /// Samples, channels, and the image's extents.
    pub image: Vec<i32>,
    /// Channels of the positions, channels of the image in one group, and the window's extents.
    pub weights: Vec<i32>,
    /// Samples, channels, and the number of positions of the window in each dimension.
    pub positions: Vec<i32>,
    /// Padding of the image at the beginning of each dimension.
    pub padding: Vec<i32>,
    /// Padding of the image at the end of each dimension.
    pub after: Vec<i32>,
    /// Distance between positions.
    pub stride: Vec<i32>,
    /// Distance between elements of the window.
    pub dilation: Vec<i32>,
    /// Number of groups of channels.
    pub groups: i32,
}

/// A convolution or one of its gradients, as cuDNN takes it. All its tensors are contiguous, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convolution<A = Address> {
    /// Its extents.
    pub filter: Filter,
    /// Where the image is.
    pub image: A,
    /// Where the weights are.
    pub weights: A,
    /// Where the positions are.
    pub positions: A,
    /// Type of the elements of all three tensors.
    pub stored: FloatType,
    /// Layout of all three tensors.
    pub layout: ChannelOrder,
    /// Workspace of the library, as large as the engine needs that is chosen for the convolution.
    pub workspace: A,
}

impl<A> Convolution<A> {
    /// The same convolution with other addresses.
    pub fn map<B>(self, address: impl Fn(A) -> B) -> Convolution<B> {
        Convolution {
            filter: self.filter,
            image: address(self.image),
            weights: address(self.weights),
            positions: address(self.positions),
            stored: self.stored,
            layout: self.layout,
            workspace: address(self.workspace),
        }
    }
}

/// A step of a recipe.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// A kernel.
    Kernel(KernelLaunch),
    /// Matrix products.
    Products {
        /// The calls of cuBLAS, used where it is available.
        library: Vec<Product>,
        /// Equivalent launches, used where it is not.
        kernels: Vec<KernelLaunch>,
    },
    /// A convolution.
    Convolution {
        /// The call of cuDNN, used where it is available; none if cuDNN cannot do it.
        library: Option<Box<Convolution>>,
        /// Launches before the call of cuDNN.
        before: Vec<KernelLaunch>,
        /// Launches after the call of cuDNN.
        behind: Vec<KernelLaunch>,
        /// Launches equivalent to all of these, used where cuDNN is not.
        kernels: Vec<KernelLaunch>,
    },
}

impl Call {
    /// The kernels that do the call without a library.
    pub fn kernels(&self) -> &[KernelLaunch] {
        match self {
            Call::Kernel(launch) => std::slice::from_ref(launch),
            Call::Products { kernels, .. } | Call::Convolution { kernels, .. } => kernels,
        }
    }

    /// The kernels that run before a library does its part.
    pub fn before(&self) -> &[KernelLaunch] {
        match self {
            Call::Convolution { before, .. } => before,
            _ => &[],
        }
    }

    /// The kernels that run after a library has done its part.
    pub fn behind(&self) -> &[KernelLaunch] {
        match self {
            Call::Convolution { behind, .. } => behind,
            _ => &[],
        }
    }
}

/// An operator on operands and results of fixed types, as a sequence of calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recipe {
    /// The calls, in order.
    pub calls: Vec<Call>,
    /// Bytes of the workspace whose contents are kept from call to call.
    pub rooms: Bytes,
    /// Bytes of the workspace behind the rooms, for kernels that keep nothing there from one product to the next.
    pub scratch: Bytes,
    /// Bytes of scratch that matrix products by a library use at best speed, or need to run at all. Convolutions need the bytes of
    /// their engines, which depend on the card.
    pub library_scratch: Bytes,
    /// Constants that the calls read.
    pub constants: Vec<u8>,
    /// The range of the indices or labels that the calls check.
    pub range: Option<ValueRange>,
}

impl Recipe {
    /// Workspace in bytes with which all calls but convolutions by a library run at best, wherever it begins.
    pub fn workspace(&self) -> Bytes {
        self.workspace_with(self.scratch.max(self.library_scratch))
    }

    /// Workspace in bytes without which the calls cannot run: the kernels' need.
    pub fn needed(&self) -> Bytes {
        self.workspace_with(self.scratch)
    }

    /// Workspace in bytes with `scratch` bytes of scratch.
    pub(crate) fn workspace_with(&self, scratch: Bytes) -> Bytes {
        match scratch {
            Bytes::ZERO => self.rooms,
            Bytes(scratch) => {
                Bytes(self.rooms.0.saturating_add(SCRATCH_ALIGNMENT - 1).saturating_add(scratch))
            }
        }
    }

    /// Bytes of scratch in a workspace of `bytes` bytes, wherever it begins: so that what fits it does not depend on addresses.
    pub fn scratch_of(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.rooms.0.saturating_add(SCRATCH_ALIGNMENT - 1))
    }

    /// Where the scratch begins in a workspace that begins at `workspace`.
    pub fn scratch_in(&self, workspace: u64) -> u64 {
        (workspace + self.rooms.0).next_multiple_of(SCRATCH_ALIGNMENT)
    }

    /// All addresses.
    pub(super) fn addresses(&mut self) -> impl Iterator<Item = &mut Address> {
        fn of_arg(arg: &mut Arg) -> &mut [Address] {
            match arg {
                Arg::Address(address) => std::slice::from_mut(address),
                Arg::Addresses(list) => list,
                Arg::Words(_) | Arg::Command => &mut [],
            }
        }
        fn of_product(p: &mut Product) -> [&mut Address; 4] {
            [&mut p.left.at, &mut p.right.at, &mut p.out.at, &mut p.workspace]
        }
        fn of_convolution(c: &mut Convolution) -> [&mut Address; 4] {
            [&mut c.image, &mut c.weights, &mut c.positions, &mut c.workspace]
        }
        self.calls.iter_mut().flat_map(|call| {
            let (products, convolution, around, kernels) = match call {
                Call::Kernel(launch) => {
                    (&mut [][..], None, [&mut [][..], &mut []], std::slice::from_mut(launch))
                }
                Call::Products { library, kernels } => {
                    (&mut library[..], None, [&mut [][..], &mut []], &mut kernels[..])
                }
                Call::Convolution { library, before, behind, kernels } => {
                    (&mut [][..], library.as_deref_mut(), [&mut before[..], behind], &mut kernels[..])
                }
            };
            let launches = around.into_iter().flatten().chain(kernels);
            let of_kernels = launches.flat_map(|launch| &mut launch.args).flat_map(of_arg);
            let of_libraries = products.iter_mut().flat_map(of_product);
            of_libraries.chain(convolution.into_iter().flat_map(of_convolution)).chain(of_kernels)
        })
    }

    /// Reserves room in the workspace for `elements` elements.
    pub(super) fn room<T>(&mut self, elements: usize) -> Address {
        let offset = self.rooms.0.next_multiple_of(256);
        self.rooms = Bytes(offset.saturating_add((elements as u64).saturating_mul(size_of::<T>() as u64)));
        Address { at: AddressBase::Workspace, offset }
    }

    /// Reserves scratch for `elements` elements, valid until the next reservation.
    pub(super) fn scratch_for<T>(&mut self, elements: usize) -> Address {
        let bytes = (elements as u64).saturating_mul(size_of::<T>() as u64);
        self.scratch = self.scratch.max(Bytes(bytes));
        Address { at: AddressBase::Scratch, offset: 0 }
    }

    /// Reserves `bytes` bytes of a library's scratch.
    pub(super) fn library_scratch_for(&mut self, bytes: u64) -> Address {
        self.library_scratch = self.library_scratch.max(Bytes(bytes));
        Address { at: AddressBase::Scratch, offset: 0 }
    }

    /// Adds products that the library does, if it is available, or else the kernels that `kernels` adds; only those, if the
    /// library cannot do the operator.
    pub(super) fn library_or(
        &mut self,
        library: Option<Vec<Product>>,
        kernels: impl FnOnce(&mut Recipe) -> Result<(), SpecError>,
    ) -> Result<(), SpecError> {
        let Some(library) = library else { return kernels(self) };
        let kernels = self.apart(kernels)?;
        self.calls.push(Call::Products { library, kernels });
        Ok(())
    }

    /// Adds a convolution that the library does, if it is available and can, between the kernels that `before` and `behind` add;
    /// otherwise those that `kernels` adds.
    pub(super) fn convolution_or(
        &mut self,
        library: Option<Convolution>,
        before: impl FnOnce(&mut Recipe) -> Result<(), SpecError>,
        behind: impl FnOnce(&mut Recipe) -> Result<(), SpecError>,
        kernels: impl FnOnce(&mut Recipe) -> Result<(), SpecError>,
    ) -> Result<(), SpecError> {
        let kernels = self.apart(kernels)?;
        let [before, behind] = match library {
            Some(_) => [self.apart(before)?, self.apart(behind)?],
            None => Default::default(),
        };
        // An empty convolution has no launch.
        if !kernels.is_empty() {
            self.calls.push(Call::Convolution { library: library.map(Box::new), before, behind, kernels });
        }
        Ok(())
    }

    /// The launches that the function adds, taken out of the recipe again.
    fn apart(
        &mut self,
        add: impl FnOnce(&mut Recipe) -> Result<(), SpecError>,
    ) -> Result<Vec<KernelLaunch>, SpecError> {
        let before = self.calls.len();
        add(self)?;
        Ok(self.calls.drain(before..).flat_map(|call| call.kernels().to_vec()).collect())
    }

    /// Adds bytes to the constants.
    pub(super) fn constant(&mut self, bytes: impl IntoIterator<Item = u8>) -> Address {
        self.constants.resize(self.constants.len().next_multiple_of(16), 0);
        let offset = self.constants.len() as u64;
        self.constants.extend(bytes);
        Address { at: AddressBase::Constants, offset }
    }

    /// Adds integers to the constants.
    pub(super) fn integers(&mut self, list: impl IntoIterator<Item = usize>) -> Address {
        self.constant(list.into_iter().flat_map(|i| (i as u64).to_le_bytes()))
    }

    /// Launches a kernel in exactly `blocks` blocks; 0 blocks are no launch.
    pub(super) fn blocks(
        &mut self,
        kernel: impl Into<String>,
        blocks: usize,
        args: Vec<Arg>,
    ) -> Result<(), SpecError> {
        let Some(blocks) = u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32) else {
            return refuse(format!("it would need {blocks} blocks of threads"));
        };
        if blocks > 0 {
            self.calls.push(Call::Kernel(KernelLaunch { kernel: kernel.into(), blocks, args, each: None }));
        }
        Ok(())
    }

    /// Launches a kernel that computes this function of each element.
    pub(super) fn elementwise(&mut self, kernel: String, args: Vec<Arg>, each: Each) {
        let elements = each.elements as usize;
        self.elementwise_by(kernel, args, each, elements);
    }

    /// The same, with `threads` threads that share the elements.
    pub(super) fn elementwise_by(&mut self, kernel: String, args: Vec<Arg>, each: Each, threads: usize) {
        self.each(kernel, threads, args);
        if let Some(Call::Kernel(launch)) = self.calls.last_mut().filter(|_| each.elements > 0) {
            launch.each = Some(Box::new(each));
        }
    }

    /// Launches a kernel whose threads share `elements` elements.
    pub(super) fn each(&mut self, kernel: impl Into<String>, elements: usize, args: Vec<Arg>) {
        let blocks = elements.div_ceil(BLOCK as usize).min(MOST_BLOCKS);
        self.blocks(kernel, blocks, args).unwrap_or_else(|_| unreachable!("these are few blocks"));
    }

    /// Sets a byte.
    pub(super) fn flag(&mut self, value: u8, to: Address) {
        let args = vec![1usize.into(), u64::from(value).into(), to.into()];
        let parameters = vec![u64::from(value), 0, 0];
        self.elementwise(
            "fill_u8".into(),
            args,
            Each { elements: 1, parameters, made_of: None, operands: Vec::new(), results: vec!["u8"] },
        );
    }

    /// Launches a kernel whose blocks share `outputs` outputs, each computed by a team of `lanes` threads.
    pub(super) fn teams(&mut self, kernel: impl Into<String>, outputs: usize, lanes: usize, args: Vec<Arg>) {
        self.each(kernel, outputs.saturating_mul(lanes), args);
    }

    /// Copies `bytes` bytes.
    pub(super) fn copy(&mut self, bytes: usize, from: Address, to: Address) {
        self.each("copy", bytes.div_ceil(16), vec![bytes.into(), from.into(), to.into()]);
    }

    /// Fills `elements` elements of four bytes each with zeros.
    pub(super) fn zeros(&mut self, elements: usize, to: Address) {
        self.each("fill_u32", elements, vec![elements.into(), 0usize.into(), to.into()]);
    }
}

/// Number of threads that reduce `values` values: a power of two.
pub(super) fn lanes(values: usize) -> usize {
    values.clamp(1, BLOCK as usize).next_power_of_two()
}

/// The same where neighbouring outputs are neighbours in memory: at most 32, so that neighbours are read together.
pub(super) fn lanes_across(values: usize) -> usize {
    lanes(values).min(32)
}

/// Largest index that [`channel_words`] divides by multiplying.
const SHORT: usize = 1 << 31;

/// A divisor of indices below `all`, as a kernel takes it: the divisor, and the multiplier that replaces the division, with the
/// shift of the product in the high half; 0 where indices are too long.
///
/// # Source
/// Granlund and Montgomery, *Division by Invariant Integers using Multiplication*, PLDI 1994, §4, for 31 bits.
fn divisor(by: usize, all: usize) -> [u64; 2] {
    // Where some extent is 0, another one may be larger than all elements.
    if all.max(by) > SHORT || by == 0 {
        return [by as u64, 0];
    }
    let shift = 31 + u64::from((by as u64).next_power_of_two().trailing_zeros());
    [by as u64, (shift << 32) | ((1 << shift) / by as u64 + 1)]
}

/// The divisors that compute the channel of an element, as a kernel takes them: each channel has `inner` consecutive elements,
/// taken `width` at a time.
pub(super) fn channel_words(rows: Rows, width: usize) -> Vec<u64> {
    let all = rows.outer * rows.axis * rows.inner;
    [divisor(rows.inner / width, all), divisor(rows.axis, all)].concat()
}

/// A box of indices, and strides in each of several tensors, as a kernel takes it.
pub(super) fn spread(dims: &[usize], strides: &[Vec<isize>]) -> Result<Vec<u64>, SpecError> {
    if dims.len() > RANK {
        return refuse(format!(
            "{} dimensions cannot be taken together; this device has kernels for up to {RANK}",
            dims.len()
        ));
    }
    let wide = |list: Vec<u64>| list.into_iter().chain(std::iter::repeat(0)).take(RANK);
    let mut words = vec![dims.iter().product::<usize>() as u64, dims.len() as u64];
    words.extend(wide(dims.iter().map(|&d| d as u64).collect()));
    for strides in strides {
        words.extend(wide(strides.iter().map(|&s| s as u64).collect()));
    }
    Ok(words)
}

/// The same with nonnegative strides.
pub(super) fn spread_forward(dims: &[usize], strides: &[Vec<usize>]) -> Result<Vec<u64>, SpecError> {
    let signed: Vec<Vec<isize>> =
        strides.iter().map(|list| list.iter().map(|&s| s as isize).collect()).collect();
    spread(dims, &signed)
}
