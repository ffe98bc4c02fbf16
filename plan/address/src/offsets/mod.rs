//! Placement of buffers with given lifetimes: nothing is moved in time, only addresses are chosen.
//!
//! Buffers that are always live are placed at the bottom (`ground`). Packing the rest into an arena is NP-hard, so there are
//! three stages, and the search ends when no better answer is possible: a best fit in nearly linear time (`stack`), first fit
//! in several orders, the best of which is improved a buffer at a time (`construct`), and an exact search (`search`). All
//! effort is counted in steps; the same buffers get the same addresses on every machine.
//!
//! # Source
//! Moffitt, *MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning*, ASPLOS 2023.

mod check;
mod construct;
mod csv;
mod ground;
mod search;
mod sections;
mod stack;
#[cfg(test)]
mod tests;

use std::ops::Range;

use lmsc_schedule::tuned::Tunable;

use smallvec::{SmallVec, smallvec};

pub use check::{LayoutFlaw, check};
use construct::Field;
pub use csv::{Malformed, Table, Wrong};
use ground::Ground;
use search::{Block, End, search};
use sections::Sections;
use stack::stack;

/// A range of bytes that needs one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its ranges of bytes, one above the other from its first byte on. A buffer that is allocated and freed as a whole has
    /// one; a buffer with a *staircase* lifetime has several.
    pub parts: SmallVec<[Part; 1]>,
    /// Its alignment, at least 1.
    pub alignment: u64,
    /// Its address, if that is fixed.
    pub fixed: Option<u64>,
}

/// Bytes that are allocated and freed together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Size in bytes.
    pub bytes: u64,
    /// The lifetime, half-open.
    pub live: Range<u64>,
}

impl Buffer {
    /// A buffer of `bytes` bytes that is allocated and freed as a whole.
    pub fn new(bytes: u64, live: Range<u64>) -> Buffer {
        Buffer { parts: smallvec![Part { bytes, live }], alignment: 1, fixed: None }
    }

    /// Total size in bytes.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| part.bytes.saturating_add(sum))
    }

    /// Its parts that need addresses, each with its offset in the buffer.
    fn present(&self) -> impl Iterator<Item = (u64, &Part)> {
        let begins = self.parts.iter().scan(0u64, |at, part| {
            let begin = *at;
            *at = at.saturating_add(part.bytes);
            Some((begin, part))
        });
        begins.filter(|(_, part)| part.bytes > 0 && !part.live.is_empty())
    }
}

/// The addresses of buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// For each buffer, its address.
    pub addresses: Vec<u64>,
    /// The address after the last byte of all.
    pub bytes: u64,
}

/// The reason why buffers cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the buffers do not fit {capacity} bytes; {load} bytes are live at {at}")]
pub struct NoLayout {
    /// The bytes available.
    pub capacity: u64,
    /// The most bytes that are live at once: a lower bound on every layout.
    pub load: u64,
    /// The first moment at which they are live.
    pub at: u64,
    /// Whether no layout within the capacity exists; otherwise none was found.
    pub proven: bool,
    /// The smallest layout found; none if buffers with fixed addresses overlap.
    pub found: Option<Layout>,
}

/// The maximum effort of the search: visits of neighbours while an order of the buffers is improved, and placements of a
/// buffer in the exact search. A visit takes some nanoseconds, a placement tens of microseconds for hundreds of buffers.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of visits of a neighbour.
    pub looks: u64,
    /// Number of placements of a buffer.
    pub placements: u64,
}

/// Visits of neighbours and placements of a buffer for each percent of the usual effort.
const EFFORT: Tunable<[u64; 2]> = Tunable::new([200_000, 40_000]);

impl Effort {
    /// The given percentage of the usual effort.
    pub fn percent(percent: u32) -> Effort {
        let [looks, placements] = EFFORT.get().map(|steps| steps * u64::from(percent));
        Effort { looks, placements }
    }
}

/// Maximum number of buffers for the exact search: a limit on the time before its first placement.
const MOST_SEARCHED: usize = 1_000;

/// Number of bisection steps between the load and the smallest layout if a layout does not fit.
const BISECTIONS: u32 = 6;

/// The most bytes that are live at once, and the first moment of that. A lower bound on every layout.
pub fn load(buffers: &[Buffer]) -> (u64, u64) {
    let sections = Sections::of(buffers);
    fullest(&sections, &sections.load(buffers))
}

fn fullest(sections: &Sections, load: &[u64]) -> (u64, u64) {
    let most = load.iter().copied().max().unwrap_or(0);
    let at = load.iter().position(|&bytes| bytes == most);
    (most, at.map_or(0, |section| sections.starts[section]))
}

/// A layout of the buffers within `capacity` bytes.
///
/// # Errors
/// [`NoLayout`], with the smallest layout found.
pub fn place(buffers: &[Buffer], capacity: u64, effort: Effort) -> Result<Layout, NoLayout> {
    let Some(ground) = Ground::of(buffers) else { return place_rest(buffers, capacity, effort) };
    let Some(room) = capacity.checked_sub(ground.bytes) else {
        let ((load, at), found) = (load(buffers), pack(buffers, effort));
        return Err(NoLayout { capacity, load, at, proven: true, found });
    };
    let placed = place_rest(&ground.rest(buffers), room, effort);
    placed.map(|layout| ground.under(layout)).map_err(|no| {
        let ((load, at), found) = (load(buffers), no.found.map(|layout| ground.under(layout)));
        NoLayout { capacity, load, at, found, ..no }
    })
}

fn place_rest(buffers: &[Buffer], capacity: u64, effort: Effort) -> Result<Layout, NoLayout> {
    let sections = Sections::of(buffers);
    let loads = sections.load(buffers);
    let (load, at) = fullest(&sections, &loads);
    let enough = capacity.max(load);
    let mut best = quick(buffers, &sections, &loads, enough, effort);
    let fits = |best: &Option<Layout>| best.as_ref().is_some_and(|best| best.bytes <= capacity);
    let mut proven = load > capacity;
    if let Some(blocks) = blocks(buffers, &sections)
        && !fits(&best)
    {
        if !proven {
            match search(&blocks, &loads, capacity, effort.placements) {
                End::Found(addresses) => best = Some(Layout::of(buffers, addresses)),
                End::Impossible => proven = true,
                End::Exhausted => {}
            }
        }
        if !fits(&best) {
            shrink(buffers, (&blocks, &loads), enough, effort, &mut best);
        }
    }
    match best {
        Some(best) if best.bytes <= capacity => Ok(best),
        found => Err(NoLayout { capacity, load, at, proven, found }),
    }
}

/// The smallest layout found; none if buffers with fixed addresses overlap.
pub fn pack(buffers: &[Buffer], effort: Effort) -> Option<Layout> {
    match Ground::of(buffers) {
        Some(ground) => Some(ground.under(pack_rest(&ground.rest(buffers), effort)?)),
        None => pack_rest(buffers, effort),
    }
}

fn pack_rest(buffers: &[Buffer], effort: Effort) -> Option<Layout> {
    let sections = Sections::of(buffers);
    let loads = sections.load(buffers);
    let (load, _) = fullest(&sections, &loads);
    let mut best = quick(buffers, &sections, &loads, load, effort);
    if let Some(blocks) = blocks(buffers, &sections) {
        shrink(buffers, (&blocks, &loads), load, effort, &mut best);
    }
    best
}

/// The smallest layout found without the exact search, or one no larger than `enough`.
fn quick(
    buffers: &[Buffer],
    sections: &Sections,
    loads: &[u64],
    enough: u64,
    effort: Effort,
) -> Option<Layout> {
    let stacked = || {
        let whole: Option<Vec<Block>> = buffers.iter().map(|buffer| hull(buffer, sections)).collect();
        Some(Layout::of(buffers, stack(&whole?, sections.len() as u32)))
    };
    let best = stacked();
    if best.as_ref().is_some_and(|best| best.bytes <= enough) {
        return best;
    }
    match Field::of(buffers, sections, loads) {
        Some(mut field) => {
            let found = field.search(enough, effort.looks)?;
            Some(best.filter(|best| best.bytes <= found.bytes).unwrap_or(found))
        }
        None => best,
    }
}

/// Shrinks the layout: the exact search with a part of the effort, for sizes between `least` and its own.
fn shrink(
    buffers: &[Buffer],
    (blocks, loads): (&[Block], &[u64]),
    least: u64,
    effort: Effort,
    best: &mut Option<Layout>,
) {
    let Some(best) = best else { return };
    let mut below = least;
    for _ in 0..BISECTIONS {
        if best.bytes <= below {
            return;
        }
        let capacity = below + (best.bytes - below) / 2;
        match search(blocks, loads, capacity, effort.placements / 10) {
            End::Found(addresses) => *best = Layout::of(buffers, addresses),
            _ => below = capacity + 1,
        }
    }
}

/// The buffers for the exact search; none if it does not apply: it supports neither fixed addresses nor parts.
fn blocks(buffers: &[Buffer], sections: &Sections) -> Option<Vec<Block>> {
    let is_plain = |buffer: &Buffer| buffer.fixed.is_none() && buffer.parts.len() <= 1;
    let plain = buffers.len() <= MOST_SEARCHED && buffers.iter().all(is_plain);
    plain.then(|| buffers.iter().map(|buffer| hull(buffer, sections)).collect())?
}

/// The buffer as if all of it were live as long as any part; none if its address is fixed.
fn hull(buffer: &Buffer, sections: &Sections) -> Option<Block> {
    let begin = buffer.present().map(|(_, part)| part.live.start).min().unwrap_or(0);
    let end = buffer.present().map(|(_, part)| part.live.end).max().unwrap_or(0);
    let block = Block {
        begin: sections.at(begin),
        end: sections.at(end),
        length: end - begin,
        bytes: buffer.bytes(),
        alignment: buffer.alignment,
    };
    buffer.fixed.is_none().then_some(block)
}

impl Layout {
    fn of(buffers: &[Buffer], addresses: Vec<u64>) -> Layout {
        let tops = buffers.iter().zip(&addresses).filter(|(buffer, _)| buffer.present().next().is_some());
        let bytes = tops.map(|(buffer, &address)| address.saturating_add(buffer.bytes())).max().unwrap_or(0);
        Layout { addresses, bytes }
    }
}
