//! Checks layouts; shares no code with the search for them.

use std::collections::BTreeMap;

use super::{Buffer, Layout};

/// A defect of a layout. Buffers are named by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutFlaw {
    /// The number of addresses differs from the number of buffers.
    #[error("there are {addresses} addresses for {buffers} buffers")]
    Count {
        /// Number of addresses.
        addresses: usize,
        /// Number of buffers.
        buffers: usize,
    },
    /// A buffer ends above the capacity.
    #[error("buffer {buffer} ends above the capacity")]
    Above {
        /// The buffer.
        buffer: usize,
    },
    /// A buffer is not at its fixed address, or not aligned.
    #[error("buffer {buffer} is not at the address that it was given, or not at a multiple of its alignment")]
    Address {
        /// The buffer.
        buffer: usize,
    },
    /// Two buffers share an address at the same time.
    #[error("buffers {one} and {other} overlap")]
    Overlap {
        /// The buffer that is allocated later.
        one: usize,
        /// The other buffer.
        other: usize,
    },
}

/// The address after the last byte of the layout, if it is a layout of the buffers within `capacity` bytes.
///
/// Walks through time with a map of the bytes in use.
///
/// # Errors
/// The first flaw found.
pub fn check(buffers: &[Buffer], layout: &Layout, capacity: u64) -> Result<u64, LayoutFlaw> {
    if layout.addresses.len() != buffers.len() {
        let (addresses, buffers) = (layout.addresses.len(), buffers.len());
        return Err(LayoutFlaw::Count { addresses, buffers });
    }
    // The moments at which bytes are freed (false) or allocated (true), in this order.
    let mut events: Vec<(u64, bool, usize, u64, u64)> = Vec::new();
    let mut top = 0;
    for (buffer, (facts, &address)) in buffers.iter().zip(&layout.addresses).enumerate() {
        if facts.fixed.is_some_and(|fixed| fixed != address)
            || !address.is_multiple_of(facts.alignment.max(1))
        {
            return Err(LayoutFlaw::Address { buffer });
        }
        let (mut at, mut is_present) = (address, false);
        for part in &facts.parts {
            // A part that is never live needs no bytes.
            let is_live = part.bytes > 0 && part.live.start < part.live.end;
            let end = at.checked_add(part.bytes).filter(|&end| end <= capacity || !is_live);
            let end = end.ok_or(LayoutFlaw::Above { buffer })?;
            if is_live {
                events.extend([
                    (part.live.start, true, buffer, at, end),
                    (part.live.end, false, buffer, at, end),
                ]);
                is_present = true;
            }
            at = end;
        }
        top = if is_present { at.max(top) } else { top };
    }
    events.sort_unstable();
    let mut taken: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (_, comes, buffer, begin, end) in events {
        if !comes {
            taken.remove(&begin);
            continue;
        }
        let below = taken.range(..end).next_back().filter(|&(_, &(its_end, _))| its_end > begin);
        if let Some((_, &(_, other))) = below {
            return Err(LayoutFlaw::Overlap { one: buffer, other });
        }
        taken.insert(begin, (end, buffer));
    }
    Ok(top)
}
