//! Virtual addressing: every tensor has addresses of its own, and chunks of memory are mapped to them while it is in use.
//!
//! The alternative to addresses in an arena, for comparison. No chunk has to lie beside another, so nothing is lost between
//! tensors; what is lost is the rest of each tensor's last chunk.
//!
//! # Source
//! OOC §4. A request for s bytes takes k chunks of C bytes, (k - 1) C < s <= k C, of which k C - s < C are not used
//! (eq. 1), so with at most n tensors at once less than n C are (eq. 2).

use std::collections::BTreeMap;
use std::ops::Range;

use lmsc_ir::Bytes;
use lmsc_ir::program::{Action, Memory, Program, Residency, Spans, Stream, Tensor, Until, residencies};

/// What chunks of one size come to when one runs all streams by himself, in the program's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// Bytes of a chunk.
    pub chunk: u64,
    /// The most chunks that are in use at once.
    pub chunks: u64,
    /// The most bytes that are lost at once: of chunks in use, but of no tensor (OOC eq. 1, summed).
    pub lost: u64,
    /// The most tensors and workspaces that are in use at once: n of eq. 2.
    pub tensors: u64,
}

impl Fragmentation {
    /// What a program with addresses of [`apart`] comes to.
    pub(super) fn of(program: &Program, chunk: u64) -> Fragmentation {
        let tick = |(stream, index): (Stream, u32)| program.stream(stream)[index as usize].tick;
        // By tick, what goes after it and what comes with it: at the same tick, what comes is first.
        let mut events: Vec<(u32, bool, usize)> = Vec::new();
        let all = residencies(program);
        for (index, residency) in all.iter().enumerate().filter(|(_, r)| r.memory == Memory::Arena) {
            events.push((residency.from.map_or(0, tick), false, index));
            let uses = Stream::ALL.into_iter().filter_map(|s| Some(tick((s, residency.last[s as usize]?))));
            let last = uses.max().filter(|_| residency.until == Until::Used);
            events.extend(last.map(|last| (last, true, index)));
        }
        events.sort_unstable();
        let mut users: BTreeMap<u64, u32> = BTreeMap::new();
        let mut most = Fragmentation { chunk, ..Fragmentation::default() };
        let (mut live, mut tensors) = (0, 0);
        for (_, goes, index) in events {
            let residency = &all[index];
            if goes {
                (live, tensors) = (live - residency.bytes(), tensors - 1);
            } else {
                (live, tensors) = (live + residency.bytes(), tensors + 1);
            }
            for chunk in over(residency, chunk) {
                let count = users.entry(chunk).or_default();
                *count = if goes { *count - 1 } else { *count + 1 };
                if *count == 0 {
                    users.remove(&chunk);
                }
            }
            let chunks = users.len() as u64;
            most.chunks = most.chunks.max(chunks);
            most.lost = most.lost.max(chunks * chunk - live);
            most.tensors = most.tensors.max(tensors);
        }
        most
    }

    /// More bytes than can be lost at once (OOC eq. 2).
    pub fn bound(&self) -> u64 {
        self.tensors * self.chunk
    }
}

/// The chunks that a residency lies in, by position in the virtual addresses.
pub(super) fn over(residency: &Residency, chunk: u64) -> Range<u64> {
    residency.span.start / chunk..residency.span.end.div_ceil(chunk)
}

/// The same program, with virtual addresses: each tensor begins with a chunk of its own.
///
/// Tensors that are used as one, such as the pieces of a Join, stay beside each other, and a variable that was away returns
/// to its place. Waits stay as they are: they are enough, since less shares an address than before.
///
/// # Panics
/// If the program is not one that [`check()`](lmsc_ir::program::check()) accepts.
pub(super) fn apart(mut program: Program, chunk: u64) -> Program {
    let mut spans: Vec<Range<u64>> = Vec::new();
    let mut groups: Vec<usize> = Vec::new();
    let mut there: Spans<usize> = Spans::default();
    // By use of an address, in the order of `visit`, whose it is.
    let mut whose: Vec<usize> = Vec::new();
    let together = |there: &mut Spans<usize>, groups: &mut Vec<usize>, span| {
        let all: Vec<usize> = there.over(span).map(|(_, &mut index)| root(groups, index)).collect();
        let first = all.first().copied()?;
        all.into_iter().for_each(|other| groups[other] = first);
        Some(first)
    };
    visit(&mut program, &mut |begins, at, bytes| {
        let span = *at..*at + bytes;
        if begins {
            there.put(span.clone(), spans.len());
            whose.push(spans.len());
            groups.push(spans.len());
            spans.push(span);
        } else {
            whose.push(together(&mut there, &mut groups, span).expect("what is used is there"));
        }
    });
    // What is given comes first; the next step is given what is at its addresses now.
    let given = program.given.iter().filter(|given| given.memory == Memory::Arena);
    for (index, span) in given.filter_map(|given| given.tensor.span()).enumerate() {
        let last = together(&mut there, &mut groups, span).expect("what is given is there");
        let first = root(&groups, index);
        groups[last] = first;
    }
    // By group, its first address and that after its last.
    let mut extents: BTreeMap<usize, Range<u64>> = BTreeMap::new();
    for (index, span) in spans.iter().enumerate() {
        let extent = extents.entry(root(&groups, index)).or_insert_with(|| span.clone());
        *extent = extent.start.min(span.start)..extent.end.max(span.end);
    }
    let mut end = 0;
    let mut bases: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for (group, extent) in extents {
        bases.insert(group, (extent.start, end));
        end += (extent.end - extent.start).next_multiple_of(chunk);
    }
    let mut uses = whose.into_iter();
    visit(&mut program, &mut |_, at, _| {
        let (was, is) = bases[&root(&groups, uses.next().expect("they are visited as before"))];
        *at = *at - was + is;
    });
    program.arena = Bytes(end);
    program
}

/// The one that stands for the group.
fn root(groups: &[usize], mut index: usize) -> usize {
    while groups[index] != index {
        index = groups[index];
    }
    index
}

/// Shows all addresses in the arena in the program's order: whether something begins there, the address and the bytes.
fn visit(program: &mut Program, see: &mut dyn FnMut(bool, &mut u64, u64)) {
    let tensor = |tensor: &mut Tensor, begins: bool, see: &mut dyn FnMut(bool, &mut u64, u64)| {
        let bytes = tensor.bytes();
        if let Some(at) = tensor.at.as_mut().filter(|_| bytes > 0) {
            see(begins, at, bytes);
        }
    };
    for given in program.given.iter_mut().filter(|given| given.memory == Memory::Arena) {
        tensor(&mut given.tensor, true, see);
    }
    let order: Vec<(Stream, u32)> =
        program.in_order().iter().map(|&(stream, index, _)| (stream, index)).collect();
    for (stream, index) in order {
        match &mut program.streams[stream as usize][index as usize].action {
            Action::Turn => {}
            Action::Launch(launch) => {
                launch.operands.iter_mut().flatten().for_each(|operand| tensor(operand, false, see));
                for (index, result) in launch.results.iter_mut().enumerate() {
                    let begins = !launch.in_place.iter().any(|pair| pair.1 == index);
                    result.iter_mut().for_each(|result| tensor(result, begins, see));
                }
                let (mut at, bytes) = (launch.workspace.start, launch.workspace.end - launch.workspace.start);
                if bytes > 0 {
                    see(true, &mut at, bytes);
                }
                launch.workspace = at..at + bytes;
            }
            Action::Copy(copy) => see(stream == Stream::In, &mut copy.device, copy.bytes),
        }
    }
    for output in program.outputs.iter_mut().filter(|output| output.memory == Memory::Arena) {
        tensor(&mut output.tensor, false, see);
    }
}
