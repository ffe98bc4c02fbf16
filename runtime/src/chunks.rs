//! Virtual addressing: every tensor has addresses of its own, and chunks of memory are mapped to them while it is in use.
//!
//! An alternative to addresses in an arena, for comparison. Chunks need not be contiguous, so no memory is lost between tensors;
//! only the rest of each tensor's last chunk is lost.
//!
//! # Source
//! OOC §4. A request for s bytes takes k chunks of C bytes, (k - 1) C < s <= k C, of which k C - s < C are not used
//! (eq. 1), so with at most n tensors at once less than n C are (eq. 2).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

use lmsc_ir::Bytes;
use lmsc_ir::program::{
    Action, Checked, Clock, Mapping, Memory, Order, PlacedTensor, Program, Residency, Role, Spans, Stream,
    Until, residencies,
};

use super::RunError;

/// Use of chunks of one size if one thread runs all streams in the program's order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// Bytes of a chunk.
    pub chunk: u64,
    /// Maximum number of chunks in use at once.
    pub chunks: u64,
    /// Number of chunks that are needed: if addresses keep their chunks from step to step, possibly more than are in use at once.
    pub mapped: u64,
    /// Maximum number of bytes that are lost at once: part of a chunk in use, but of no tensor (OOC eq. 1, summed).
    pub lost: u64,
    /// Maximum number of tensors and workspaces in use at once: n of eq. 2.
    pub tensors: u64,
}

impl Fragmentation {
    /// The chunk use of a program whose addresses are from [`apart`].
    pub(super) fn of(program: &Program, chunk: u64) -> Fragmentation {
        let tick = |(stream, index): (Stream, u32)| program.stream(stream)[index as usize].tick;
        // For each tick, the residencies that end after it and those that begin at it: at the same tick, beginnings come first.
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
        most.mapped = most.chunks;
        most
    }

    /// Upper bound of the bytes lost at once (OOC eq. 2).
    pub fn bound(&self) -> u64 {
        self.tensors * self.chunk
    }
}

/// Alignment in bytes of tensors that do not begin with a chunk; plans in pages rely on it.
const ALIGNMENT: u64 = 256;

/// The chunks that a residency overlaps, by position in the virtual addresses.
pub(super) fn over(residency: &Residency, chunk: u64) -> Range<u64> {
    residency.span.start / chunk..residency.span.end.div_ceil(chunk)
}

/// The same program with virtual addresses: each tensor begins with a chunk of its own, except given tensors that are never
/// copied. These are packed together, as plans in pages count them, so that many small variables take few chunks.
///
/// Tensors that are used as one, such as the pieces of a Join, stay contiguous, and a variable that was swapped out returns to
/// its place. Waits do not change: they suffice, since fewer tensors share an address than before.
///
/// # Panics
/// If the program is not one that [`check()`](lmsc_ir::program::check()) accepts.
pub(super) fn apart(mut program: Program, chunk: u64) -> Program {
    let given = program.given.iter().filter(|given| given.memory == Memory::Arena);
    let given_count = given.filter(|given| given.tensor.span().is_some()).count();
    let mut spans: Vec<Range<u64>> = Vec::new();
    let mut groups: Vec<usize> = Vec::new();
    let mut there: Spans<usize> = Spans::default();
    // By use of an address, in the order of `visit`, the index of the tensor that it belongs to.
    let mut whose: Vec<usize> = Vec::new();
    let together = |there: &mut Spans<usize>, groups: &mut Vec<usize>, span| {
        let all: Vec<usize> = there.over(span).map(|(_, &mut index)| root(groups, index)).collect();
        let first = all.first().copied()?;
        all.into_iter().for_each(|other| groups[other] = first);
        Some(first)
    };
    let mut copied: Vec<usize> = Vec::new();
    visit(&mut program, &mut |Use { begins, copies }, at, bytes| {
        let span = *at..*at + bytes;
        if begins {
            there.put(span.clone(), spans.len());
            whose.push(spans.len());
            groups.push(spans.len());
            spans.push(span);
        } else {
            whose.push(together(&mut there, &mut groups, span).expect("what is used is there"));
        }
        copied.extend(whose.last().filter(|_| copies));
    });
    // Given tensors come first; the next step is given the tensors that are at these addresses at the end of this one.
    let given = program.given.iter().filter(|given| given.memory == Memory::Arena);
    for (index, span) in given.filter_map(|given| given.tensor.span()).enumerate() {
        let last = together(&mut there, &mut groups, span).expect("what is given is there");
        let first = root(&groups, index);
        groups[last] = first;
    }
    // For each group, its range of addresses.
    let mut extents: BTreeMap<usize, Range<u64>> = BTreeMap::new();
    for (index, span) in spans.iter().enumerate() {
        let extent = extents.entry(root(&groups, index)).or_insert_with(|| span.clone());
        *extent = extent.start.min(span.start)..extent.end.max(span.end);
    }
    // This includes variables whose new value replaces the old one, although they need no memory in between.
    let mut packed: BTreeSet<usize> = (0..given_count).map(|index| root(&groups, index)).collect();
    copied.iter().for_each(|&index| _ = packed.remove(&root(&groups, index)));
    let (staying, others): (Vec<_>, Vec<_>) =
        extents.into_iter().partition(|(group, _)| packed.contains(group));
    let mut end = 0;
    let mut bases: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for (extents, unit) in [(staying, ALIGNMENT), (others, chunk)] {
        end = u64::next_multiple_of(end, unit);
        for (group, extent) in extents {
            bases.insert(group, (extent.start, end));
            end += (extent.end - extent.start).next_multiple_of(unit);
        }
    }
    end = end.next_multiple_of(chunk);
    let mut uses = whose.into_iter();
    visit(&mut program, &mut |_, at, _| {
        let (was, is) = bases[&root(&groups, uses.next().expect("they are visited as before"))];
        *at = *at - was + is;
    });
    program.arena = Bytes(end);
    program
}

/// A program whose addresses keep their chunks from step to step, as on a device of CUDA.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The program with virtual addresses, checked together with the chunks behind them.
    pub program: Checked,
    /// The chunk behind each address range.
    pub mapping: Mapping,
    /// Use of chunks.
    pub fragmentation: Fragmentation,
}

impl Settled {
    /// The program with virtual addresses and chunks of `chunk` bytes for them, limited by the budget.
    ///
    /// The next owner of a chunk waits for the uses by the previous owner: such waits are added to those of the program.
    ///
    /// # Errors
    /// [`RunError::Chunks`].
    pub fn new(program: &Checked, chunk: u64, budget: Option<u64>) -> Result<Settled, RunError> {
        let mut program = apart(Program::clone(program), chunk);
        let mut fragmentation = Fragmentation::of(&program, chunk);
        let mapping = settle(&mut program, chunk);
        fragmentation.mapped = mapping.chunks.iter().flatten().max().map_or(0, |&last| u64::from(last) + 1);
        let (needed, bytes) = (fragmentation.mapped, chunk);
        let chunks = budget.map_or(needed, |budget| budget / chunk);
        if needed > chunks {
            return Err(RunError::Chunks { needed, chunks, bytes });
        }
        let program =
            Checked::mapped(program, &mapping).expect("who takes over a chunk waits for who had it");
        Ok(Settled { program, mapping, fragmentation })
    }
}

/// A time for which an address range of a chunk's size needs a chunk: positions in the program's order; positions of the next
/// step follow those of this one.
struct Tenancy {
    time: Range<u32>,
    /// The residencies during this time.
    all: Vec<usize>,
}

/// Assigns a chunk to each of the program's virtual address ranges, which keeps it from step to step, and adds the waits that
/// commands need because of that.
///
/// Ranges that are in use when a step begins have chunks of their own. Each of the others takes a chunk that is free for the
/// whole time: the one that is taken again soonest, then the one that has been free longest.
fn settle(program: &mut Program, chunk: u64) -> Mapping {
    let mut positions = Stream::ALL.map(|stream| vec![0; program.stream(stream).len()]);
    let mut count = 0;
    for (stream, index, _) in program.in_order() {
        (positions[stream as usize][index as usize], count) = (count, count + 1);
    }
    let position = |(stream, index): (Stream, u32)| positions[stream as usize][index as usize];
    let residencies = residencies(program);
    let mut here: Vec<Vec<usize>> = vec![Vec::new(); (program.arena.0 / chunk) as usize];
    for (index, residency) in residencies.iter().enumerate().filter(|(_, r)| r.memory == Memory::Arena) {
        over(residency, chunk).for_each(|spot| here[spot as usize].push(index));
    }
    let time = |residency: &Residency| {
        let begin = residency.from.map_or(count, position);
        let first = if residency.from.is_none() { count } else { 0 };
        let used = lasts(residency).map(|at| first + position(at) + 1).max().unwrap_or(0);
        let end = match (residency.until, residency.from) {
            (Until::Used, _) => used,
            (Until::Turn, _) => count + 1,
            (Until::Next, Some(_)) => count,
            (Until::Next, None) => 2 * count,
        };
        begin..end.max(begin + 1)
    };
    let spots: Vec<Vec<Tenancy>> = here
        .into_iter()
        .map(|all| tenancies(all.into_iter().map(|index| (time(&residencies[index]), index)), count))
        .collect();
    let mut packed = Packed { count, ..Packed::default() };
    packed.pack(&spots);

    // For each command, the number of commands of each stream that it must follow, in this step and in the step before.
    let mut after: BTreeMap<(Stream, u32), [Clock; 2]> = BTreeMap::new();
    let inputs: BTreeSet<usize> = (0..)
        .zip(program.given.iter().filter(|given| given.tensor.span().is_some()))
        .filter(|(_, given)| given.role == Role::Input)
        .map(|(index, _)| index)
        .collect();
    for taken in packed.taken.iter_mut() {
        taken.sort_unstable();
        if taken.iter().all(|&(_, spot, _)| spot == taken[0].1) {
            continue;
        }
        for (at, &(_, spot, tenancy)) in taken.iter().enumerate() {
            let (_, other, before) = taken[(at + taken.len() - 1) % taken.len()];
            let mut users = Vec::new();
            for &index in &spots[other][before].all {
                users.extend(lasts(&residencies[index]));
                if inputs.contains(&index) || residencies[index].until == Until::Turn {
                    users.push((Stream::Compute, 0));
                }
            }
            for from in spots[spot][tenancy].all.iter().filter_map(|&index| residencies[index].from) {
                let after = after.entry(from).or_default();
                for &user in &users {
                    let is_before = position(user) >= position(from);
                    let most = &mut after[usize::from(is_before)][user.0 as usize];
                    *most = (*most).max(user.1 + 1);
                }
            }
        }
    }
    let lengths = Stream::ALL.map(|stream| program.stream(stream).len() as u32);
    let order = Order::new(program, &mut |stream, index, command, step| {
        let mut clock = Clock::default();
        let mut follow = |other: usize, count: u32, before: bool| {
            if let Some(step) = (step as u32).checked_sub(before.into()).filter(|_| count > 0) {
                clock[other] = clock[other].max(step * lengths[other] + count);
            }
        };
        command.waits.iter().for_each(|wait| follow(wait.stream as usize, wait.command + 1, wait.before));
        if let Some(after) = after.get(&(stream, index)) {
            for (before, counts) in [false, true].into_iter().zip(after) {
                (0..).zip(counts).for_each(|(other, &count)| follow(other, count, before));
            }
        }
        clock
    });
    order.apply(program);
    Mapping { chunk, chunks: packed.chunks }
}

/// The last commands that use it, one per stream.
fn lasts(residency: &Residency) -> impl Iterator<Item = (Stream, u32)> + '_ {
    Stream::ALL.into_iter().filter_map(|stream| Some((stream, residency.last[stream as usize]?)))
}

/// Merges uses of the same addresses into times without a pause, in a step of `count` commands.
fn tenancies(uses: impl Iterator<Item = (Range<u32>, usize)>, count: u32) -> Vec<Tenancy> {
    let mut uses: Vec<_> = uses.collect();
    uses.sort_unstable_by_key(|(time, index)| (time.start, *index));
    let mut all: Vec<Tenancy> = Vec::new();
    for (time, index) in uses {
        match all.last_mut().filter(|last| time.start <= last.time.end) {
            Some(last) => {
                last.time.end = last.time.end.max(time.end);
                last.all.push(index);
            }
            None => all.push(Tenancy { time, all: vec![index] }),
        }
    }
    // The last one may continue in the next step until the first one.
    while all.len() > 1 && all[0].time.start + count <= all[all.len() - 1].time.end {
        let first = all.remove(0);
        let last = all.last_mut().expect("there was more than one");
        last.time.end = last.time.end.max(first.time.end + count);
        last.all.extend(first.all);
    }
    all
}

/// The chunk that each address range keeps.
#[derive(Default)]
struct Packed {
    /// Number of commands of a step.
    count: u32,
    chunks: Vec<Option<u32>>,
    /// For each chunk, its tenancies: begin, address range, and index of the tenancy.
    taken: Vec<Vec<(u32, usize, usize)>>,
    /// For each chunk, the positions of a step during which fixed tenancies occupy it, sorted.
    fixed: Vec<Vec<Range<u32>>>,
}

impl Packed {
    fn pack(&mut self, spots: &[Vec<Tenancy>]) {
        self.chunks = vec![None; spots.len()];
        let stays = |spot: &&usize| spots[**spot].iter().any(|tenancy| tenancy.time.end > self.count);
        let (stay, others): (Vec<usize>, Vec<usize>) =
            (0..spots.len()).filter(|&spot| !spots[spot].is_empty()).partition(|spot| stays(&spot));
        for spot in stay {
            let chunk = self.new_chunk();
            self.fix(chunk, spot, &spots[spot]);
        }
        let (mut once, mut often): (Vec<usize>, Vec<usize>) =
            others.into_iter().partition(|&spot| spots[spot].len() == 1);
        often.sort_by_key(|&spot| spots[spot][0].time.start);
        for spot in often {
            let fits = |chunk: &usize| {
                spots[spot].iter().all(|tenancy| {
                    let is_apart = |fixed: &Range<u32>| {
                        tenancy.time.end <= fixed.start || fixed.end <= tenancy.time.start
                    };
                    self.fixed[*chunk].iter().all(is_apart)
                })
            };
            let chunk = (0..self.fixed.len()).find(fits).unwrap_or_else(|| self.new_chunk());
            self.fix(chunk, spot, &spots[spot]);
        }
        once.sort_by_key(|&spot| spots[spot][0].time.start);
        self.pack_once(&once, spots);
    }

    fn new_chunk(&mut self) -> usize {
        self.taken.push(Vec::new());
        self.fixed.push(Vec::new());
        self.taken.len() - 1
    }

    /// Assigns the chunk to the address range.
    fn take(&mut self, chunk: usize, spot: usize, tenancies: &[Tenancy]) {
        self.chunks[spot] = Some(chunk as u32);
        let taken = tenancies.iter().enumerate().map(|(index, tenancy)| (tenancy.time.start, spot, index));
        self.taken[chunk].extend(taken);
    }

    /// The same, and records its times in `fixed`, so that later ranges avoid them.
    fn fix(&mut self, chunk: usize, spot: usize, tenancies: &[Tenancy]) {
        self.take(chunk, spot, tenancies);
        for Tenancy { time, .. } in tenancies {
            let fixed = &mut self.fixed[chunk];
            fixed.push(time.start.min(self.count)..time.end.min(self.count));
            fixed.push(0..time.end.saturating_sub(self.count));
        }
        self.fixed[chunk].retain(|time| !time.is_empty());
        self.fixed[chunk].sort_unstable_by_key(|time| time.start);
    }

    /// Assigns chunks to address ranges that are in use once in a step, in the order in which their uses begin.
    fn pack_once(&mut self, once: &[usize], spots: &[Vec<Tenancy>]) {
        // For each chunk, the index of its next fixed time; and that time.
        let mut next = vec![0; self.fixed.len()];
        let coming =
            |fixed: &[Vec<Range<u32>>], next: &[usize], chunk: usize| fixed[chunk].get(next[chunk]).cloned();
        // Free chunks: until when and since when they are free; taken chunks: until when they are taken.
        let mut free: BTreeSet<(u32, u32, usize)> = BTreeSet::new();
        let mut busy: BinaryHeap<Reverse<(u32, usize)>> = BinaryHeap::new();
        (0..self.fixed.len()).for_each(|chunk| busy.push(Reverse((0, chunk))));
        for &spot in once {
            let time = &spots[spot][0].time;
            loop {
                if let Some(&Reverse((end, chunk))) = busy.peek().filter(|busy| busy.0.0 <= time.start) {
                    busy.pop();
                    let until = coming(&self.fixed, &next, chunk).map_or(u32::MAX, |time| time.start);
                    free.insert((until, end, chunk));
                } else if let Some(&entry) = free.first().filter(|(until, ..)| *until <= time.start) {
                    free.remove(&entry);
                    let chunk = entry.2;
                    let fixed = coming(&self.fixed, &next, chunk).expect("it is free until then");
                    next[chunk] += 1;
                    busy.push(Reverse((fixed.end, chunk)));
                } else {
                    break;
                }
            }
            let chunk = match free.range((time.end, 0, 0)..).next().copied() {
                Some(entry) => {
                    free.remove(&entry);
                    entry.2
                }
                None => {
                    next.push(0);
                    self.new_chunk()
                }
            };
            busy.push(Reverse((time.end, chunk)));
            self.take(chunk, spot, &spots[spot]);
        }
    }
}

/// The representative of the group.
fn root(groups: &[usize], mut index: usize) -> usize {
    while groups[index] != index {
        index = groups[index];
    }
    index
}

/// A use of addresses: whether a tensor begins there, and whether a copy between the memories uses them.
struct Use {
    begins: bool,
    copies: bool,
}

/// Visits all addresses in the arena in the program's order: whether a tensor begins there, the address, and the size in bytes.
fn visit(program: &mut Program, see: &mut dyn FnMut(Use, &mut u64, u64)) {
    let tensor = |tensor: &mut PlacedTensor, begins: bool, see: &mut dyn FnMut(Use, &mut u64, u64)| {
        let bytes = tensor.bytes();
        if let Some(at) = tensor.at.as_mut().filter(|_| bytes > 0) {
            see(Use { begins, copies: false }, at, bytes);
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
                    see(Use { begins: true, copies: false }, &mut at, bytes);
                }
                launch.workspace = at..at + bytes;
            }
            Action::Copy(copy) => {
                let begins = stream == Stream::In;
                see(Use { begins, copies: true }, &mut copy.device, copy.bytes);
            }
        }
    }
    for output in program.outputs.iter_mut().filter(|output| output.memory == Memory::Arena) {
        tensor(&mut output.tensor, false, see);
    }
}
