//! Buffers that are always live.

use super::{Buffer, Layout};

/// Buffers that are always live: they are placed at the bottom, one on top of the other. In any layout, such a buffer can be
/// moved to the bottom and the buffers below it up by its bytes, so nothing is lost, and the rest is a smaller problem.
pub(super) struct Ground {
    /// For each buffer, its address if it is one of them.
    addresses: Vec<Option<u64>>,
    pub(super) bytes: u64,
}

impl Ground {
    /// The buffers that are always live; none if there are none, or if some addresses are fixed.
    pub(super) fn of(buffers: &[Buffer]) -> Option<Ground> {
        if buffers.iter().any(|buffer| buffer.fixed.is_some()) {
            return None;
        }
        let alignment = buffers.iter().map(|buffer| buffer.alignment).max()?;
        let parts = || buffers.iter().flat_map(Buffer::present).map(|(_, part)| &part.live);
        let always = parts().map(|live| live.start).min()?..parts().map(|live| live.end).max()?;
        let mut bytes = 0u64;
        let address = |buffer: &Buffer| {
            let [part] = &buffer.parts[..] else { return None };
            // Moving buffers up or down by this number of bytes keeps them aligned.
            let moves_all = part.bytes > 0 && part.bytes.is_multiple_of(alignment);
            let (lies, address) = (part.live == always && moves_all, bytes);
            bytes = if lies { bytes.saturating_add(part.bytes) } else { bytes };
            lies.then_some(address)
        };
        let addresses: Vec<Option<u64>> = buffers.iter().map(address).collect();
        // Buffers that move up must stay aligned, each to its own alignment.
        let divides = |buffer: &Buffer| alignment.is_multiple_of(buffer.alignment);
        (bytes > 0 && buffers.iter().all(divides)).then_some(Ground { addresses, bytes })
    }

    /// The other buffers.
    pub(super) fn rest(&self, buffers: &[Buffer]) -> Vec<Buffer> {
        let rest = buffers.iter().zip(&self.addresses).filter(|(_, address)| address.is_none());
        rest.map(|(buffer, _)| buffer.clone()).collect()
    }

    /// The layout of all buffers, with the others above.
    pub(super) fn under(&self, rest: Layout) -> Layout {
        let mut above = rest.addresses.into_iter().map(|address| self.bytes.saturating_add(address));
        let one = |address: &Option<u64>| address.or_else(|| above.next()).expect("the rest is the others");
        Layout {
            addresses: self.addresses.iter().map(one).collect(),
            bytes: self.bytes.saturating_add(rest.bytes),
        }
    }
}
