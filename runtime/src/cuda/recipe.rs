//! What an operator comes to on a device: launches whose addresses are still roles.

use lmsc_ir::Bytes;

use super::BLOCK;
use crate::meaning::Rows;
use crate::spec::{Refusal, refuse};

/// The most dimensions that a kernel's arguments have room for.
pub(super) const RANK: usize = 8;

/// The most blocks of a kernel whose threads go on to further elements.
const MOST_BLOCKS: usize = 4096;

/// Where the scratch of a recipe begins: at a multiple of so many bytes, as cuBLAS demands.
pub const SCRATCH_ALIGNMENT: u64 = 256;

/// What an address is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// An operand; null where it is left out or has no bytes.
    Operand(usize),
    /// A result; null where it is not asked for or has no bytes.
    Result(usize),
    /// The workspace.
    Workspace,
    /// [`Recipe::scratch`], which begins in the workspace at the first multiple of [`SCRATCH_ALIGNMENT`] behind the rooms.
    Scratch,
    /// [`Recipe::constants`], on the device.
    Constants,
    /// The number of the step and the seed of the run, as two words of 64 bits.
    Step,
    /// Null.
    Nowhere,
}

/// An address, in bytes behind what it is of. Behind null there is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// What it is of.
    pub at: At,
    /// How many bytes behind.
    pub offset: u64,
}

impl Address {
    /// So many elements further on.
    pub(super) fn plus<T>(self, elements: usize) -> Address {
        Address { offset: self.offset + (elements * size_of::<T>()) as u64, ..self }
    }
}

pub(super) fn operand(index: usize) -> Address {
    Address { at: At::Operand(index), offset: 0 }
}

pub(super) fn result(index: usize) -> Address {
    Address { at: At::Result(index), offset: 0 }
}

pub(super) const NOWHERE: Address = Address { at: At::Nowhere, offset: 0 };
pub(super) const STEP: Address = Address { at: At::Step, offset: 0 };

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// An address, of 64 bits.
    Address(Address),
    /// A number or a structure of numbers, all of 64 bits.
    Words(Vec<u64>),
    /// A structure of addresses.
    Addresses(Vec<Address>),
}

impl Arg {
    /// The addresses in it.
    pub(super) fn addresses(&self) -> &[Address] {
        match self {
            Arg::Address(address) => std::slice::from_ref(address),
            Arg::Addresses(list) => list,
            Arg::Words(_) => &[],
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

/// A kernel, in so many blocks of [`BLOCK`] threads, with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The kernel's name.
    pub kernel: String,
    /// How many blocks run it.
    pub blocks: u32,
    /// Its arguments, in order.
    pub args: Vec<Arg>,
    /// What it does to each element, where that is all it does.
    pub each: Option<Box<Each>>,
}

/// What a kernel does to each element: a function of one element of each operand, which gives one of each result. The
/// operands are the first addresses among the kernel's arguments, and the results are the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each {
    /// How many elements the results have.
    pub elements: u64,
    /// Numbers that the function takes, by their bits.
    pub parameters: Vec<u64>,
    /// What the numbers are, where something is made of them and of the operands' first elements before all elements.
    pub made_of: Option<&'static str>,
    /// By operand, what its elements are, and which of them it is.
    pub operands: Vec<(&'static str, Reach)>,
    /// By result, what its elements are.
    pub results: Vec<&'static str>,
}

/// Which of an operand's elements an element of the result is computed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// That of the same number.
    Same,
    /// The first, always.
    First,
    /// One that a box of indices tells, as a kernel takes it.
    Spread(Vec<u64>),
    /// That of the element's channel: the divisors that tell it, as a kernel takes them.
    Channel(Vec<u64>),
}

/// What floats are stored as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Float {
    /// 32 bits.
    #[default]
    F32,
    /// 16 bits, of which 5 are the exponent's.
    F16,
    /// 16 bits, of which 8 are the exponent's, as of those with 32.
    Bf16,
}

impl Float {
    /// What kernels call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Float::F32 => "f32",
            Float::F16 => "f16",
            Float::Bf16 => "bf16",
        }
    }
}

/// A matrix that is multiplied, as cuBLAS takes it: its columns are one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor<A = Address> {
    /// Where it is.
    pub at: A,
    /// Whether it is transposed before it is multiplied.
    pub transposed: bool,
    /// How many elements its columns are apart, as they are in memory.
    pub leading: i32,
    /// How many elements the next one of a batch is away.
    pub stride: i64,
}

/// Products of matrices, as cuBLAS takes them: out = alpha · left · right + beta · out, `batch` times.
///
/// Their matrices have their columns one behind the other, so a product of others is one of these in which left and right
/// are swapped, and each is transposed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Product<A = Address> {
    /// Rows of the result.
    pub m: i32,
    /// Columns of the result.
    pub n: i32,
    /// How many products each of its elements is the sum of.
    pub k: i32,
    /// What has `m` rows.
    pub left: Factor<A>,
    /// What has `n` columns.
    pub right: Factor<A>,
    /// The result, which is never transposed.
    pub out: Factor<A>,
    /// What elements of `left` and `right` are.
    pub factors: Float,
    /// What elements of `out` are.
    pub stored: Float,
    /// How many there are.
    pub batch: i32,
    /// What each is multiplied by.
    pub alpha: f32,
    /// What the elements that are there are multiplied by; with 0 they are not read.
    pub beta: f32,
    /// Where the library may write besides.
    pub workspace: A,
    /// How many bytes it may write there.
    pub workspace_bytes: u64,
}

impl<A> Product<A> {
    /// The same with other addresses.
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
    /// What the windows come to: a convolution.
    Positions,
    /// The image: the gradient of what is convolved, or a transposed convolution.
    Image,
    /// The gradient of the weights.
    Weights,
}

/// The extents of a convolution, as cuDNN takes them: of two dimensions or three, besides samples and channels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// What is computed.
    pub found: Found,
    /// Samples, channels, and the image's extents.
    pub image: Vec<i32>,
    /// Channels of the positions, channels of the image in one group, and the window's extents.
    pub weights: Vec<i32>,
    /// Samples, channels, and how many positions the window has.
    pub positions: Vec<i32>,
    /// How far the window reaches out of the image, at either end.
    pub padding: Vec<i32>,
    /// How far positions are apart.
    pub stride: Vec<i32>,
    /// How far elements of the window are apart.
    pub dilation: Vec<i32>,
    /// In how many groups the channels are.
    pub groups: i32,
}

/// A convolution or one of its gradients, as cuDNN takes it. All its elements lie one behind the other.
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
    /// What elements of all three are.
    pub stored: Float,
    /// Where the library may write besides.
    pub workspace: A,
    /// How many bytes it may write there.
    pub workspace_bytes: u64,
}

impl<A> Convolution<A> {
    /// The same with other addresses.
    pub fn map<B>(self, address: impl Fn(A) -> B) -> Convolution<B> {
        Convolution {
            filter: self.filter,
            image: address(self.image),
            weights: address(self.weights),
            positions: address(self.positions),
            stored: self.stored,
            workspace: address(self.workspace),
            workspace_bytes: self.workspace_bytes,
        }
    }
}

/// What a recipe has done.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// A kernel.
    Kernel(Launch),
    /// Products of matrices.
    Products {
        /// What cuBLAS does, where it is.
        library: Vec<Product>,
        /// What comes to the same, where it is not.
        kernels: Vec<Launch>,
    },
    /// A convolution.
    Convolution {
        /// What cuDNN does, where it is; none where it cannot.
        library: Option<Box<Convolution>>,
        /// What is done after that.
        behind: Vec<Launch>,
        /// What comes to the same as both, where it is not.
        kernels: Vec<Launch>,
    },
}

impl Call {
    /// The kernels that do it without a library.
    pub fn kernels(&self) -> &[Launch] {
        match self {
            Call::Kernel(launch) => std::slice::from_ref(launch),
            Call::Products { kernels, .. } | Call::Convolution { kernels, .. } => kernels,
        }
    }

    /// The kernels that go on where a library has done its part.
    pub fn behind(&self) -> &[Launch] {
        match self {
            Call::Convolution { behind, .. } => behind,
            _ => &[],
        }
    }
}

/// An operator on operands and results of fixed types, as calls one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recipe {
    /// What is done.
    pub calls: Vec<Call>,
    /// Bytes of the workspace that are kept from call to call.
    pub rooms: Bytes,
    /// Bytes of the workspace behind them in which kernels keep nothing from one product to the next.
    pub scratch: Bytes,
    /// Bytes there with which libraries do their best, or at all.
    pub library_scratch: Bytes,
    /// What the calls look up.
    pub constants: Vec<u8>,
}

impl Recipe {
    /// Bytes that are good for the calls besides operands and results, wherever they begin.
    pub fn workspace(&self) -> Bytes {
        self.workspace_with(self.scratch.max(self.library_scratch))
    }

    /// Bytes without which there are no calls: what kernels need.
    pub fn needed(&self) -> Bytes {
        self.workspace_with(self.scratch)
    }

    /// Bytes with so much scratch.
    pub fn workspace_with(&self, scratch: Bytes) -> Bytes {
        match scratch {
            Bytes::ZERO => self.rooms,
            Bytes(scratch) => {
                Bytes(self.rooms.0.saturating_add(SCRATCH_ALIGNMENT - 1).saturating_add(scratch))
            }
        }
    }

    /// Where the scratch is in a workspace that begins here.
    pub fn scratch_in(&self, workspace: u64) -> u64 {
        (workspace + self.rooms.0).next_multiple_of(SCRATCH_ALIGNMENT)
    }

    /// All addresses.
    pub(super) fn addresses(&mut self) -> impl Iterator<Item = &mut Address> {
        fn of_arg(arg: &mut Arg) -> &mut [Address] {
            match arg {
                Arg::Address(address) => std::slice::from_mut(address),
                Arg::Addresses(list) => list,
                Arg::Words(_) => &mut [],
            }
        }
        fn of_product(p: &mut Product) -> [&mut Address; 4] {
            [&mut p.left.at, &mut p.right.at, &mut p.out.at, &mut p.workspace]
        }
        fn of_convolution(c: &mut Convolution) -> [&mut Address; 4] {
            [&mut c.image, &mut c.weights, &mut c.positions, &mut c.workspace]
        }
        self.calls.iter_mut().flat_map(|call| {
            let (products, convolution, behind, kernels) = match call {
                Call::Kernel(launch) => (&mut [][..], None, &mut [][..], std::slice::from_mut(launch)),
                Call::Products { library, kernels } => {
                    (&mut library[..], None, &mut [][..], &mut kernels[..])
                }
                Call::Convolution { library, behind, kernels } => {
                    (&mut [][..], library.as_deref_mut(), &mut behind[..], &mut kernels[..])
                }
            };
            let launches = behind.iter_mut().chain(kernels);
            let of_kernels = launches.flat_map(|launch| &mut launch.args).flat_map(of_arg);
            let of_libraries = products.iter_mut().flat_map(of_product);
            of_libraries.chain(convolution.into_iter().flat_map(of_convolution)).chain(of_kernels)
        })
    }

    /// Room in the workspace for so many elements.
    pub(super) fn room<T>(&mut self, elements: usize) -> Address {
        let offset = self.rooms.0.next_multiple_of(256);
        self.rooms = Bytes(offset.saturating_add((elements as u64).saturating_mul(size_of::<T>() as u64)));
        Address { at: At::Workspace, offset }
    }

    /// Room for so many elements until the next one asks for it.
    pub(super) fn scratch_for<T>(&mut self, elements: usize) -> Address {
        let bytes = (elements as u64).saturating_mul(size_of::<T>() as u64);
        self.scratch = self.scratch.max(Bytes(bytes));
        Address { at: At::Scratch, offset: 0 }
    }

    /// Scratch of a library, so many bytes of it.
    pub(super) fn library_scratch_for(&mut self, bytes: u64) -> Address {
        self.library_scratch = self.library_scratch.max(Bytes(bytes));
        Address { at: At::Scratch, offset: 0 }
    }

    /// Has the library do what it can, if it is there; otherwise what `kernels` adds is done, as it is where the library
    /// can do nothing.
    pub(super) fn library_or(
        &mut self,
        library: Option<Vec<Product>>,
        kernels: impl FnOnce(&mut Recipe) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let Some(library) = library else { return kernels(self) };
        let kernels = self.apart(kernels)?;
        self.calls.push(Call::Products { library, kernels });
        Ok(())
    }

    /// Has the library convolve, if it is there and can, and then does what `behind` adds; otherwise what `kernels` adds.
    pub(super) fn convolution_or(
        &mut self,
        library: Option<Convolution>,
        behind: impl FnOnce(&mut Recipe) -> Result<(), Refusal>,
        kernels: impl FnOnce(&mut Recipe) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let kernels = self.apart(kernels)?;
        let behind = if library.is_some() { self.apart(behind)? } else { Vec::new() };
        // Where there is nothing to convolve, there is no launch.
        if !kernels.is_empty() {
            self.calls.push(Call::Convolution { library: library.map(Box::new), behind, kernels });
        }
        Ok(())
    }

    /// What the function adds, as it is no part of the recipe yet.
    fn apart(
        &mut self,
        add: impl FnOnce(&mut Recipe) -> Result<(), Refusal>,
    ) -> Result<Vec<Launch>, Refusal> {
        let before = self.calls.len();
        add(self)?;
        Ok(self.calls.drain(before..).flat_map(|call| call.kernels().to_vec()).collect())
    }

    /// Bytes among the constants.
    pub(super) fn constant(&mut self, bytes: impl IntoIterator<Item = u8>) -> Address {
        self.constants.resize(self.constants.len().next_multiple_of(16), 0);
        let offset = self.constants.len() as u64;
        self.constants.extend(bytes);
        Address { at: At::Constants, offset }
    }

    /// Integers among the constants.
    pub(super) fn integers(&mut self, list: impl IntoIterator<Item = usize>) -> Address {
        self.constant(list.into_iter().flat_map(|i| (i as u64).to_le_bytes()))
    }

    /// Launches a kernel in exactly so many blocks; none is no launch.
    pub(super) fn blocks(
        &mut self,
        kernel: impl Into<String>,
        blocks: usize,
        args: Vec<Arg>,
    ) -> Result<(), Refusal> {
        let Some(blocks) = u32::try_from(blocks).ok().filter(|&blocks| blocks <= i32::MAX as u32) else {
            return refuse(format!("it would need {blocks} blocks of threads"));
        };
        if blocks > 0 {
            self.calls.push(Call::Kernel(Launch { kernel: kernel.into(), blocks, args, each: None }));
        }
        Ok(())
    }

    /// Launches a kernel that does this to each element.
    pub(super) fn elementwise(&mut self, kernel: String, args: Vec<Arg>, each: Each) {
        let elements = each.elements as usize;
        self.elementwise_by(kernel, args, each, elements);
    }

    /// The same where so many threads share the elements.
    pub(super) fn elementwise_by(&mut self, kernel: String, args: Vec<Arg>, each: Each, threads: usize) {
        self.each(kernel, threads, args);
        if let Some(Call::Kernel(launch)) = self.calls.last_mut().filter(|_| each.elements > 0) {
            launch.each = Some(Box::new(each));
        }
    }

    /// Launches a kernel whose threads share so many elements.
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

    /// Launches a kernel whose blocks share so many outputs, each of a team of `lanes` threads.
    pub(super) fn teams(&mut self, kernel: impl Into<String>, outputs: usize, lanes: usize, args: Vec<Arg>) {
        self.each(kernel, outputs.saturating_mul(lanes), args);
    }

    /// Copies so many bytes.
    pub(super) fn copy(&mut self, bytes: usize, from: Address, to: Address) {
        self.each("copy", bytes.div_ceil(16), vec![bytes.into(), from.into(), to.into()]);
    }

    /// Fills so many elements of four bytes with zeros.
    pub(super) fn zeros(&mut self, elements: usize, to: Address) {
        self.each("fill_u32", elements, vec![elements.into(), 0usize.into(), to.into()]);
    }
}

/// How many threads fold so many values: a power of two.
pub(super) fn lanes(values: usize) -> usize {
    values.clamp(1, BLOCK as usize).next_power_of_two()
}

/// The same where neighbouring outputs are neighbours in memory: so few that these are read together.
pub(super) fn lanes_across(values: usize) -> usize {
    lanes(values).min(32)
}

/// The longest index that [`channel_words`] divides by multiplying.
const SHORT: usize = 1 << 31;

/// A number that indices below `all` are divided by, as a kernel takes it: itself, and what they are multiplied by instead,
/// with how far the product is shifted in the high half; 0 where indices are too long.
///
/// # Source
/// Granlund and Montgomery, *Division by Invariant Integers using Multiplication*, PLDI 1994, §4, for 31 bits.
fn divisor(by: usize, all: usize) -> [u64; 2] {
    if all > SHORT || by == 0 {
        return [by as u64, 0];
    }
    let shift = 31 + u64::from((by as u64).next_power_of_two().trailing_zeros());
    [by as u64, (shift << 32) | ((1 << shift) / by as u64 + 1)]
}

/// What tells the channel of an element, where each has `inner` neighbours, taken so many at a time, as a kernel takes it.
pub(super) fn channel_words(rows: Rows, width: usize) -> Vec<u64> {
    let all = rows.outer * rows.axis * rows.inner;
    [divisor(rows.inner / width, all), divisor(rows.axis, all)].concat()
}

/// A box of indices, and strides in each of several tensors, as a kernel takes it.
pub(super) fn spread(dims: &[usize], strides: &[Vec<isize>]) -> Result<Vec<u64>, Refusal> {
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

/// The same with strides that go forward.
pub(super) fn spread_forward(dims: &[usize], strides: &[Vec<usize>]) -> Result<Vec<u64>, Refusal> {
    let signed: Vec<Vec<isize>> =
        strides.iter().map(|list| list.iter().map(|&s| s as isize).collect()).collect();
    spread(dims, &signed)
}
