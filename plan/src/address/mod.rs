//! Where every byte of a plan lies, in one arena of a fixed size.
//!
//! Placing a finished plan does not work: the arena would have to be a tenth larger than the bytes that are live at
//! once. So several plans of about the same makespan are tried, whole and in pieces of several sizes, some for a
//! little less than the arena; addresses are promised in a serial order of each plan in which everything is
//! allocated for as short as it can be; and where bytes change hands, the next owner waits for the last user of the
//! one before it. These *address edges* cost time, so what is searched for is the placement with the least makespan.
//! They make any execution safe, however long anything takes: nobody has to count bytes.

mod check;
mod construct;
mod floor;
mod frame;
mod improve;
mod objects;
mod quick;
mod repair;
mod search;
mod seek;
mod serial;
#[cfg(test)]
mod tests;
mod tight;
mod timing;

use crate::planners::{Plan, Request};
use crate::problem::TensorId;
use crate::schedule::Edge;

pub use check::{Misplaced, check};
pub(crate) use floor::{Counted, at_floor, at_peak};
pub use floor::{least, peak};
pub(crate) use search::place_plan_unless;
pub use search::{covers, place, place_plan};

/// Bytes with addresses from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arena {
    /// How many.
    pub bytes: u64,
    /// What the address of every tensor's first byte is a multiple of, at least 1.
    pub alignment: u64,
}

/// What the processor reads at once.
const LEAST_ALIGNMENT: u64 = 16;

impl Arena {
    /// The arena of the request's budget, aligned as its target asks; to less, where the arena is so small that padding
    /// would take much of it.
    pub fn of(request: &Request) -> Arena {
        Arena::with(request.budget, request.alignment)
    }

    /// The arena of these bytes with the least alignment that plans have in any.
    pub(crate) fn aligned_least(bytes: u64) -> Arena {
        Arena { bytes, alignment: LEAST_ALIGNMENT }
    }

    fn with(bytes: u64, alignment: u64) -> Arena {
        let enough = (bytes / 4096).next_power_of_two();
        Arena { bytes, alignment: enough.clamp(LEAST_ALIGNMENT, alignment.max(LEAST_ALIGNMENT)) }
    }
}

/// A plan that lies in an arena.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The plan, its steps in an order and at times that the edges allow.
    pub plan: Plan,
    /// Where everything is whenever it is on the device.
    pub spots: Vec<Spot>,
    /// What steps wait for besides data and the steps before them on their engine. With these edges no timing brings
    /// two things to one address at once. Sorted by the step that waits.
    pub edges: Vec<Edge>,
}

/// The place of a run of bytes, from when it comes to the device until it leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The bytes.
    pub run: Run,
    /// The step that allocates them, by its index; none for what is there at the start.
    pub from: Option<usize>,
    /// The address of the first.
    pub address: u64,
}

/// Bytes that come to the device together and leave together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Run {
    /// What the operator of the tick needs besides its tensors.
    Workspace(u32),
    /// A range of a tensor's bytes.
    Bytes {
        /// Whose bytes.
        tensor: TensorId,
        /// The first, counted from the tensor's first.
        begin: u64,
        /// The one after the last.
        end: u64,
    },
}
