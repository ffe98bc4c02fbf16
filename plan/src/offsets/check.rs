//! Whether a layout is one: shares no code with what finds it.

use std::collections::BTreeMap;

use super::{Buffer, Layout};

/// What is wrong with a layout. Buffers are named by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misplaced {
    /// There are not as many addresses as buffers.
    #[error("there are {addresses} addresses for {buffers} buffers")]
    Count {
        /// How many addresses there are.
        addresses: usize,
        /// How many buffers there are.
        buffers: usize,
    },
    /// It ends above the capacity.
    #[error("buffer {buffer} ends above the capacity")]
    Above {
        /// Which.
        buffer: usize,
    },
    /// It is not where it has to be.
    #[error("buffer {buffer} is not at the address that it was given, or not at a multiple of its alignment")]
    Address {
        /// Which.
        buffer: usize,
    },
    /// Two are at one address at once.
    #[error("buffers {one} and {other} overlap")]
    Overlap {
        /// The one that comes later.
        one: usize,
        /// The other one.
        other: usize,
    },
}

/// The address after the last byte of the layout, if it is one of the buffers in so many bytes.
///
/// Walks through time with a map of the bytes that are taken.
///
/// # Errors
/// The first flaw found.
pub fn check(buffers: &[Buffer], layout: &Layout, capacity: u64) -> Result<u64, Misplaced> {
    if layout.addresses.len() != buffers.len() {
        let (addresses, buffers) = (layout.addresses.len(), buffers.len());
        return Err(Misplaced::Count { addresses, buffers });
    }
    // Moments at which bytes are given back (false) or taken (true), in this order.
    let mut events: Vec<(u64, bool, usize, u64, u64)> = Vec::new();
    let mut top = 0;
    for (buffer, (facts, &address)) in buffers.iter().zip(&layout.addresses).enumerate() {
        if facts.fixed.is_some_and(|fixed| fixed != address)
            || !address.is_multiple_of(facts.alignment.max(1))
        {
            return Err(Misplaced::Address { buffer });
        }
        let (mut at, mut is_present) = (address, false);
        for part in &facts.parts {
            // What is never live takes no bytes.
            let is_live = part.bytes > 0 && part.live.start < part.live.end;
            let end = at.checked_add(part.bytes).filter(|&end| end <= capacity || !is_live);
            let end = end.ok_or(Misplaced::Above { buffer })?;
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
            return Err(Misplaced::Overlap { one: buffer, other });
        }
        taken.insert(begin, (end, buffer));
    }
    Ok(top)
}
