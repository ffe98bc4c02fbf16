//! What an operator comes to on a device: launches whose addresses are still roles.

use lmsc_ir::Bytes;

use super::BLOCK;
use crate::spec::{Refusal, refuse};

/// The most dimensions that a kernel's arguments have room for.
pub(super) const RANK: usize = 8;

/// The most blocks of a kernel whose threads go on to further elements.
const MOST_BLOCKS: usize = 4096;

/// What an address is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// An operand; null where it is left out or has no bytes.
    Operand(usize),
    /// A result; null where it is not asked for or has no bytes.
    Result(usize),
    /// The workspace.
    Workspace,
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
pub struct Call {
    /// The kernel's name.
    pub kernel: String,
    /// How many blocks run it.
    pub blocks: u32,
    /// Its arguments, in order.
    pub args: Vec<Arg>,
}

/// An operator on operands and results of fixed types, as launches one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recipe {
    /// What is launched.
    pub calls: Vec<Call>,
    /// Bytes that the launches need besides operands and results.
    pub workspace: Bytes,
    /// What the launches look up.
    pub constants: Vec<u8>,
}

impl Recipe {
    /// Room in the workspace for so many elements.
    pub(super) fn room<T>(&mut self, elements: usize) -> Address {
        let offset = self.workspace.0.next_multiple_of(256);
        self.workspace =
            Bytes(offset.saturating_add((elements as u64).saturating_mul(size_of::<T>() as u64)));
        Address { at: At::Workspace, offset }
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
            self.calls.push(Call { kernel: kernel.into(), blocks, args });
        }
        Ok(())
    }

    /// Launches a kernel whose threads share so many elements.
    pub(super) fn each(&mut self, kernel: impl Into<String>, elements: usize, args: Vec<Arg>) {
        let blocks = elements.div_ceil(BLOCK as usize).min(MOST_BLOCKS);
        self.blocks(kernel, blocks, args).unwrap_or_else(|_| unreachable!("these are few blocks"));
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
