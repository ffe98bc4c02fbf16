//! Placement of every byte of a plan in one arena of a fixed size.
//!
//! Placing a finished plan does not work: the arena would have to be a tenth larger than the peak of live bytes. So several
//! plans of about the same makespan are tried, with whole tensors and with pieces of several sizes, some for a little less
//! than the arena. Addresses are assigned in a serial order of each plan in which every block is allocated for as short as
//! possible; where bytes change their owner, the next owner waits for the last user of the previous one. These *address
//! edges* cost time, so the search looks for the placement with the smallest makespan. They make any execution safe, for all
//! durations: no byte counting is needed at run time.

#![forbid(unsafe_code)]

mod check;
mod construct;
mod floor;
mod frame;
mod improve;
mod objects;
pub mod offsets;
pub mod pages;
mod quick;
mod repair;
mod search;
mod seek;
mod serial;
#[cfg(test)]
mod tests;
mod tight;
mod timing;

use lmsc_schedule::problem::TensorId;
use lmsc_schedule::{Edge, Plan, Request};

pub use check::{Misplaced, check};
pub use floor::{at_peak, least, least_of, peak, swaps_placed};
pub use search::{AddressSearch, MOST_COMPARED, place};

/// A range of bytes with addresses from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arena {
    /// Size in bytes.
    pub bytes: u64,
    /// Alignment of every tensor's first byte, at least 1.
    pub alignment: u64,
}

/// The number of bytes that the processor reads at once.
const LEAST_ALIGNMENT: u64 = 16;

impl Arena {
    /// The arena of the request's budget, with the alignment of its target; with less, where the arena is so small that
    /// padding would take much of it.
    pub fn of(request: &Request) -> Arena {
        Arena::with(request.budget, request.alignment)
    }

    /// The arena of `bytes` bytes with the smallest alignment that plans have in any arena.
    pub fn aligned_least(bytes: u64) -> Arena {
        Arena { bytes, alignment: LEAST_ALIGNMENT }
    }

    /// The arena of `bytes` bytes with this alignment, or with less where padding would take much of it.
    pub fn with(bytes: u64, alignment: u64) -> Arena {
        let enough = (bytes / 4096).next_power_of_two();
        Arena { bytes, alignment: enough.clamp(LEAST_ALIGNMENT, alignment.max(LEAST_ALIGNMENT)) }
    }
}

/// A plan with addresses in an arena.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The plan; the order and the times of its steps respect the edges.
    pub plan: Plan,
    /// The address of every range of bytes for each time that it is on the device.
    pub spots: Vec<Spot>,
    /// The dependences of steps besides data and the previous steps of their engine. With these edges, no two ranges occupy
    /// one address at the same time in any timing. Sorted by the step that waits.
    pub edges: Vec<Edge>,
}

/// The address of a range of bytes from its allocation to its release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The bytes.
    pub run: Allocation,
    /// The index of the step that allocates it; none for a range that is resident at the start.
    pub from: Option<usize>,
    /// The address of its first byte.
    pub address: u64,
}

/// Bytes that are allocated together and freed together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Allocation {
    /// The workspace of the operator of the tick.
    Workspace(u32),
    /// A range of a tensor's bytes.
    Bytes {
        /// The tensor.
        tensor: TensorId,
        /// The first byte, counted from the start of the tensor.
        begin: u64,
        /// The end, exclusive.
        end: u64,
    },
}

impl std::fmt::Display for Allocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Allocation::Workspace(tick) => write!(f, "the workspace of operator {tick}"),
            Allocation::Bytes { tensor, begin, end } => write!(f, "bytes {begin} to {end} of {tensor}"),
        }
    }
}
