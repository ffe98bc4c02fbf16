//! Swaps and addresses chosen together, operator by operator, for arenas in which finished plans find no room.
//!
//! Before an operator runs, each of its tensors that is not in memory gets the smallest gap that is large enough. If no gap is, a
//! window of adjacent tensors is swapped out: the one whose copies cost least, relative to the time until the tensors are used again.
//! If the operator's own tensors block every window, everything is swapped out and the operator's tensors are placed side by side.
//! So the search succeeds whenever the tensors of each operator fit beside those that cannot be swapped.
//!
//! # Source
//! The window of adjacent residents is that of Kirisame et al., *Dynamic Tensor Rematerialization*, ICLR 2021, as its
//! implementations with contiguous eviction use it; the cost is Belady's rule, weighted by copies.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::ops::Range;

use cranelift_entity::SecondaryMap;
use lmsc_schedule::problem::{Operator, Problem, Tensor, TensorId, Uses};
use lmsc_schedule::{Instruction, Piece, PieceId, Plan, Schedule, Step};

use super::Arena;
use super::frame::{Frame, Place, Places};
use super::improve::Placement;
use super::objects::{ObjectId, Owner};
use super::timing::Timing;
use crate::offsets::{self, Buffer, Effort};

/// A plan of the same operators with swaps of whole tensors, placed in the arena.
///
/// # Errors
/// The bytes of an arena that has room, if this one has not.
pub(super) fn tight(plan: &Plan, arena: Arena) -> Result<(Plan, Frame, Placement), u64> {
    let ground = Ground::of(&plan.problem, arena)?;
    let mut cache = Cache::new(&plan.problem, arena, &ground);
    cache.run()?;
    let Cache { schedule, bases, workspaces, .. } = cache;
    let plan = Plan { schedule, ..plan.clone() };
    let frame = Frame::new(&plan, arena.bytes, arena).ok_or(ground.least)?;
    let places = places(&frame, &ground, &bases, &workspaces).ok_or(ground.least)?;
    let mut timing = Timing::nominal(&frame);
    let placement = Placement::of(&frame, &mut timing, places);
    Ok((plan, frame, placement))
}

/// The plan without copies, placed in the arena.
///
/// # Errors
/// The bytes of an arena that has room, if no layout was found in this one.
pub(super) fn unmoved(problem: &Problem, arena: Arena) -> Result<(Plan, Frame, Placement), u64> {
    let uses = problem.uses();
    let aligned = |bytes: u64| bytes.next_multiple_of(arena.alignment);
    let stay = problem.tensors.values().filter(|facts| facts.is_variable());
    let always: u64 = stay.map(|facts| aligned(facts.bytes)).sum();
    let (mut owners, mut buffers) = (Vec::new(), Vec::new());
    let mut add = |owner: Owner, bytes: u64, live: Range<u64>| {
        owners.push(owner);
        buffers.push(Buffer { alignment: arena.alignment, ..Buffer::new(aligned(bytes), live) });
    };
    for (tensor, facts) in problem.tensors.iter().filter(|(_, facts)| !facts.is_variable()) {
        add(Owner::Tensor(tensor), facts.bytes, moments(problem, tensor, &uses));
    }
    for (op, tick) in problem.ops.iter().zip(0u32..).filter(|(op, _)| op.workspace > 0) {
        add(Owner::Workspace(tick), op.workspace, u64::from(tick) + 1..u64::from(tick) + 2);
    }
    let room = arena.bytes.saturating_sub(always);
    // Some hundredths of a second.
    let Effort { looks, placements } = Effort::percent(1);
    let layout =
        match offsets::place(&buffers, room, Effort { looks: 10 * looks, placements: placements / 2 }) {
            Ok(layout) => layout,
            Err(no) => return Err(always + no.found.map_or(u64::MAX / 2, |layout| layout.bytes)),
        };
    let least = always + layout.bytes;
    if least > arena.bytes {
        return Err(least);
    }
    let plan = Plan::without_copies(problem);
    let frame = Frame::new(&plan, arena.bytes, arena).ok_or(least)?;
    let addresses: HashMap<Owner, u64> = owners.into_iter().zip(layout.addresses).collect();
    let mut places = frame.nowhere();
    for &object in &frame.movable {
        let address = addresses.get(&frame.objects.all[object].owner).ok_or(least)?;
        places[object] = Some(Place { base: always + address, mirrored: false });
    }
    let placement = Placement::of(&frame, &mut Timing::nominal(&frame), places);
    Ok((plan, frame, placement))
}

/// The moments at which the tensor is live if it is never swapped out: see [`Problem::live_by_moment`].
fn moments(problem: &Problem, tensor: TensorId, uses: &Uses) -> Range<u64> {
    let (facts, live) = (problem.tensors[tensor], problem.live_range(tensor, uses));
    let from = if facts.given { 0 } else { u64::from(live.start) + 1 };
    let until = if facts.kept { u64::from(problem.ticks()) + 2 } else { u64::from(live.end) + 1 };
    from..until
}

/// The tensors that are never swapped out. They are placed at the bottom of the arena.
struct Ground {
    /// By tensor that is never swapped out and not always live, its address.
    addresses: SecondaryMap<TensorId, Option<u64>>,
    /// For each tensor, whether it may be swapped out.
    leaves: SecondaryMap<TensorId, bool>,
    /// For each moment, the address above all of these tensors: see [`Problem::live_by_moment`].
    heights: Vec<u64>,
    /// The smallest arena that has room.
    least: u64,
}

impl Ground {
    fn of(problem: &Problem, arena: Arena) -> Result<Ground, u64> {
        let uses = problem.uses();
        let aligned = |bytes: u64| bytes.next_multiple_of(arena.alignment);
        let mut leaves = SecondaryMap::with_capacity(problem.tensors.len());
        for (tensor, facts) in &problem.tensors {
            leaves[tensor] = facts.swappable && !uses.of(tensor).is_empty();
        }
        let stays = |class: fn(&Tensor) -> bool| {
            let tensors = problem.tensors.iter().filter(|&(tensor, _)| !leaves[tensor]);
            tensors.filter(move |&(_, facts)| class(facts))
        };
        let mut always: u64 = stays(Tensor::is_variable).map(|(_, facts)| aligned(facts.bytes)).sum();
        let (staying, buffers): (Vec<TensorId>, Vec<Buffer>) = stays(|facts| !facts.is_variable())
            .map(|(tensor, facts)| {
                let live = problem.live_range(tensor, &uses);
                let from = if facts.given { 0 } else { u64::from(live.start) + 1 };
                let until = if facts.kept { u64::from(problem.ticks()) + 2 } else { u64::from(live.end) + 1 };
                let buffer = Buffer::new(aligned(facts.bytes), from..until);
                (tensor, Buffer { alignment: arena.alignment, ..buffer })
            })
            .unzip();
        let touched = touched(problem, &leaves, aligned);
        let layouts = [
            offsets::pack(&buffers, Effort::percent(1)).map(|layout| layout.addresses),
            Some(rising(&buffers)),
        ];
        let with_heights = layouts.into_iter().flatten().map(|addresses| {
            let heights = heights(&buffers, &addresses, touched.len());
            let least =
                heights.iter().zip(&touched).map(|(height, touched)| height + touched).max().unwrap_or(0);
            (least, addresses, heights)
        });
        let (least, addresses, heights) = with_heights.min_by_key(|layout| layout.0).ok_or(u64::MAX)?;
        let least = always + least;
        if least > arena.bytes {
            return Err(least);
        }
        // A resident variable costs no copies. Up to half of the remaining memory is used for that.
        let mut spare = (arena.bytes - least) / 2;
        for (tensor, facts) in problem.tensors.iter().filter(|(_, facts)| facts.is_variable_that_leaves()) {
            if leaves[tensor] && aligned(facts.bytes) <= spare {
                spare -= aligned(facts.bytes);
                always += aligned(facts.bytes);
                leaves[tensor] = false;
            }
        }
        let mut by_tensor = SecondaryMap::with_capacity(problem.tensors.len());
        for (tensor, address) in staying.into_iter().zip(addresses) {
            by_tensor[tensor] = Some(always + address);
        }
        let heights = heights.into_iter().map(|height| always + height).collect();
        Ok(Ground { addresses: by_tensor, leaves, heights, least })
    }
}

/// For each moment, the bytes of workspace and of swappable tensors that must be resident.
fn touched(
    problem: &Problem,
    leaves: &SecondaryMap<TensorId, bool>,
    aligned: impl Fn(u64) -> u64,
) -> Vec<u64> {
    let of_class = |given: bool, kept: bool| -> u64 {
        let tensors = problem.tensors.iter().filter(|&(tensor, _)| leaves[tensor]);
        let tensors = tensors.filter(|(_, facts)| facts.given == given && facts.kept == kept);
        tensors.map(|(_, facts)| aligned(facts.bytes)).sum()
    };
    let of_op = |op: &Operator| {
        let tensors = op.touches().filter(|&tensor| leaves[tensor]);
        tensors.map(|tensor| aligned(problem.tensors[tensor].bytes)).sum::<u64>() + aligned(op.workspace)
    };
    let ends = (of_class(true, false), of_class(false, true));
    [ends.0].into_iter().chain(problem.ops.iter().map(of_op)).chain([ends.1]).collect()
}

/// Addresses of buffers, each as low as possible beside the buffers that are live when it is allocated.
fn rising(buffers: &[Buffer]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..buffers.len()).filter(|&index| buffers[index].bytes() > 0).collect();
    let live = |index: usize| &buffers[index].parts[0].live;
    order.sort_by_key(|&index| (live(index).start, Reverse(live(index).end), index));
    let mut addresses = vec![0; buffers.len()];
    let mut free = FreeRanges::default();
    free.add(0, u64::MAX);
    // The live buffers, with the moments at which they are freed.
    let mut there: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    for index in order {
        while let Some(&Reverse((until, other))) = there.peek()
            && until <= live(index).start
        {
            there.pop();
            free.add(addresses[other], buffers[other].bytes());
        }
        addresses[index] = free.take(buffers[index].bytes());
        there.push(Reverse((live(index).end, index)));
    }
    addresses
}

/// Free ranges of bytes, of which the lowest one that is large enough is found without a look at all of them.
struct FreeRanges {
    /// For each address, the size of the range.
    sizes: BTreeMap<u64, u64>,
    /// For each class of sizes, the addresses.
    classes: Vec<BTreeSet<u64>>,
}

impl Default for FreeRanges {
    fn default() -> FreeRanges {
        FreeRanges { sizes: BTreeMap::new(), classes: vec![BTreeSet::new(); FreeRanges::class(u64::MAX) + 1] }
    }
}

impl FreeRanges {
    /// The class of a size, which is not 0: four to each power of two. All sizes of a higher class are larger.
    fn class(size: u64) -> usize {
        let log = size.ilog2();
        let quarter = (u128::from(size) << 2 >> log) as usize & 3;
        4 * log as usize + quarter
    }

    fn insert(&mut self, address: u64, size: u64) {
        if size > 0 {
            self.sizes.insert(address, size);
            self.classes[FreeRanges::class(size)].insert(address);
        }
    }

    fn remove(&mut self, address: u64, size: u64) {
        self.sizes.remove(&address);
        self.classes[FreeRanges::class(size)].remove(&address);
    }

    /// Adds a range that is not free.
    fn add(&mut self, mut address: u64, mut size: u64) {
        if let Some(&above) = self.sizes.get(&(address.saturating_add(size))) {
            self.remove(address + size, above);
            size += above;
        }
        if let Some((&below, &its)) = self.sizes.range(..address).next_back()
            && below + its == address
        {
            self.remove(below, its);
            (address, size) = (below, its + size);
        }
        self.insert(address, size);
    }

    /// Takes bytes, not none, at the lowest address at which they are free; the end of all ranges is out of reach.
    fn take(&mut self, bytes: u64) -> u64 {
        let class = FreeRanges::class(bytes);
        let larger = self.classes[class + 1..].iter().filter_map(BTreeSet::first).min().copied();
        let lower = self.classes[class].range(..larger.unwrap_or(u64::MAX));
        let address = lower.copied().find(|address| self.sizes[address] >= bytes).or(larger).unwrap_or(0);
        let size = self.sizes.get(&address).copied().unwrap_or(bytes);
        self.remove(address, size);
        self.insert(address.saturating_add(bytes), size.saturating_sub(bytes));
        address
    }
}

/// For each moment, for `moments` moments, the address above all live buffers.
fn heights(buffers: &[Buffer], addresses: &[u64], moments: usize) -> Vec<u64> {
    let mut comes: Vec<(u64, u64, u64)> = buffers
        .iter()
        .zip(addresses)
        .map(|(buffer, address)| {
            let live = &buffer.parts[0].live;
            (live.start, live.end, address + buffer.bytes())
        })
        .collect();
    comes.sort_unstable();
    let mut comes = comes.into_iter().peekable();
    let mut there: BinaryHeap<(u64, u64)> = BinaryHeap::new();
    (0..moments as u64)
        .map(|moment| {
            while let Some((_, until, top)) = comes.next_if(|&(from, ..)| from <= moment) {
                there.push((top, until));
            }
            while there.peek().is_some_and(|&(_, until)| until <= moment) {
                there.pop();
            }
            there.peek().map_or(0, |&(top, _)| top)
        })
        .collect()
}

/// A tensor or the workspace of the current operator at an address.
#[derive(Clone, Copy)]
struct Resident {
    tensor: Option<TensorId>,
    bytes: u64,
}

/// The memory above the unswapped tensors while operators run one after the other.
struct Cache<'a> {
    problem: &'a Problem,
    uses: Uses,
    ground: &'a Ground,
    arena: Arena,
    by_address: BTreeMap<u64, Resident>,
    /// The size and the address of each range between two neighbours of `by_address`, below the first from `floor` on, and above the
    /// last.
    gaps: BTreeSet<(u64, u64)>,
    /// For each tensor, its address while it is resident.
    at: SecondaryMap<TensorId, Option<u64>>,
    /// For each tensor, whether the host lacks a valid copy.
    dirty: SecondaryMap<TensorId, bool>,
    /// For each tensor, its addresses, one for each time that it is allocated.
    bases: SecondaryMap<TensorId, Vec<u64>>,
    /// For each tick, the address of its workspace.
    workspaces: Vec<u64>,
    /// The address above all live tensors that are never swapped out.
    floor: u64,
    pieces: SecondaryMap<TensorId, Option<PieceId>>,
    schedule: Schedule,
    now: u64,
}

impl<'a> Cache<'a> {
    fn new(problem: &'a Problem, arena: Arena, ground: &'a Ground) -> Cache<'a> {
        Cache {
            problem,
            uses: problem.uses(),
            ground,
            arena,
            by_address: BTreeMap::new(),
            gaps: BTreeSet::from([(arena.bytes, 0)]),
            at: SecondaryMap::with_capacity(problem.tensors.len()),
            dirty: SecondaryMap::with_capacity(problem.tensors.len()),
            bases: SecondaryMap::with_capacity(problem.tensors.len()),
            workspaces: Vec::with_capacity(problem.ops.len()),
            floor: 0,
            pieces: SecondaryMap::with_capacity(problem.tensors.len()),
            schedule: Schedule::default(),
            now: 0,
        }
    }

    /// Runs all operators.
    ///
    /// # Errors
    /// As for [`tight`].
    fn run(&mut self) -> Result<(), u64> {
        let problem = self.problem;
        let of_class = |given: bool, kept: bool| {
            let tensors = problem.tensors.iter();
            tensors
                .filter(move |(_, facts)| facts.given == given && facts.kept == kept)
                .map(|(tensor, _)| tensor)
        };
        // Tensors that are given but no variables are resident at the start, without a host copy.
        let given: Vec<TensorId> = of_class(true, false).filter(|&t| self.ground.leaves[t]).collect();
        self.rise(self.ground.heights[0]);
        self.demand(0, &given, &given, 0)?;
        given.iter().for_each(|&tensor| self.dirty[tensor] = true);
        for (op, tick) in problem.ops.iter().zip(0u32..) {
            let touched: Vec<TensorId> = op.touches().filter(|&t| self.ground.leaves[t]).collect();
            self.rise(self.ground.heights[tick as usize + 1]);
            let workspace = self.demand(tick, &touched, &op.produces, op.workspace)?;
            self.workspaces.push(workspace);
            self.step(Instruction::Op(tick), op.nanos);
            if op.workspace > 0 {
                self.take(workspace);
            }
            op.produces.iter().chain(&op.changes).for_each(|&tensor| self.dirty[tensor] = true);
            for tensor in touched {
                if self.uses.of(tensor).last() == Some(&tick) {
                    let facts = self.problem.tensors[tensor];
                    match (facts.given, facts.kept) {
                        // A variable is on the host between steps.
                        (true, true) => self.evict(tensor),
                        (_, false) => self.forget(tensor),
                        (false, true) => {}
                    }
                }
            }
        }
        let results: Vec<TensorId> = of_class(false, true).filter(|&t| self.ground.leaves[t]).collect();
        self.rise(self.ground.heights[problem.ops.len() + 1]);
        self.demand(problem.ticks(), &results, &[], 0)?;
        Ok(())
    }

    /// Sets the end of the memory for tensors that are never swapped out, and swaps out all tensors below it.
    fn rise(&mut self, floor: u64) {
        let first = self.by_address.keys().next().copied().unwrap_or(self.arena.bytes);
        self.gaps.remove(&(first.saturating_sub(self.floor), self.floor));
        self.gaps.insert((first.saturating_sub(floor), floor));
        self.floor = floor;
        let below: Vec<TensorId> =
            self.by_address.range(..floor).filter_map(|(_, below)| below.tensor).collect();
        below.into_iter().for_each(|tensor| self.evict(tensor));
    }

    /// Gives an address to each of the touched tensors and to the workspace, and returns that of the workspace. A tensor that
    /// is not in memory is copied from the host, unless it is one of `fresh`, which the operator produces.
    fn demand(
        &mut self,
        tick: u32,
        touched: &[TensorId],
        fresh: &[TensorId],
        workspace: u64,
    ) -> Result<u64, u64> {
        let absent = |cache: &Cache| -> Vec<Resident> {
            let tensors = touched.iter().filter(|&&tensor| cache.at[tensor].is_none());
            let tensors =
                tensors.map(|&t| Resident { tensor: Some(t), bytes: cache.problem.tensors[t].bytes });
            let workspace = Resident { tensor: None, bytes: workspace };
            let mut all: Vec<Resident> = tensors.chain((workspace.bytes > 0).then_some(workspace)).collect();
            all.sort_by_key(|resident| (Reverse(resident.bytes), resident.tensor));
            all
        };
        let comes = absent(self);
        let mut placed = self.place_all(tick, touched, &comes);
        if placed.is_none() {
            touched.iter().for_each(|&tensor| self.evict(tensor));
            let others: Vec<TensorId> =
                self.by_address.values().filter_map(|resident| resident.tensor).collect();
            others.into_iter().for_each(|tensor| self.evict(tensor));
            let comes = absent(self);
            placed = self.place_all(tick, touched, &comes);
        }
        let placed = placed.ok_or(self.ground.least.max(self.arena.bytes + 1))?;
        let mut address_of_workspace = 0;
        for (resident, address) in placed {
            match resident.tensor {
                None => address_of_workspace = address,
                Some(tensor) => {
                    self.bases[tensor].push(address);
                    if !fresh.contains(&tensor) {
                        self.copy(tensor, Instruction::In);
                    }
                }
            }
        }
        Ok(address_of_workspace)
    }

    /// Places all of these and returns their addresses. If one of them has no room, returns none and places nothing; tensors that
    /// were swapped out to make room stay out.
    fn place_all(
        &mut self,
        tick: u32,
        touched: &[TensorId],
        comes: &[Resident],
    ) -> Option<Vec<(Resident, u64)>> {
        let mut placed = Vec::with_capacity(comes.len());
        for &resident in comes {
            let address = self.gap(resident.bytes).or_else(|| {
                let (address, leaving) = self.window(tick, touched, resident.bytes)?;
                leaving.into_iter().for_each(|tensor| self.evict(tensor));
                Some(address)
            });
            let Some(address) = address else {
                for (resident, address) in placed {
                    self.take(address);
                    let Resident { tensor, .. } = resident;
                    tensor.into_iter().for_each(|tensor| self.at[tensor] = None);
                }
                return None;
            };
            self.put(address, resident);
            resident.tensor.into_iter().for_each(|tensor| self.at[tensor] = Some(address));
            placed.push((resident, address));
        }
        Some(placed)
    }

    /// The highest aligned address in the smallest gap that holds `bytes`. Of gaps of the same size, the lowest one is taken.
    fn gap(&self, bytes: u64) -> Option<u64> {
        let highest = |&(size, from): &(u64, u64)| {
            let highest = (from + size - bytes) / self.arena.alignment * self.arena.alignment;
            Some(highest).filter(|&highest| highest >= from)
        };
        self.gaps.range((bytes, 0)..).find_map(highest)
    }

    /// The gap in which this address lies, as if no resident were there.
    fn around(&self, address: u64) -> (u64, u64) {
        let below = self.by_address.range(..address).next_back();
        let above = self.by_address.range(address + 1..).next();
        let from = below.map_or(self.floor, |(&base, resident)| self.end(base, resident.bytes));
        (from, above.map_or(self.arena.bytes, |(&base, _)| base))
    }

    fn put(&mut self, address: u64, resident: Resident) {
        let ((from, until), end) = (self.around(address), self.end(address, resident.bytes));
        self.gaps.remove(&(until.saturating_sub(from), from));
        self.gaps.insert((address.saturating_sub(from), from));
        self.gaps.insert((until.saturating_sub(end), end));
        self.by_address.insert(address, resident);
    }

    fn take(&mut self, address: u64) {
        let Some(resident) = self.by_address.remove(&address) else { return };
        let ((from, until), end) = (self.around(address), self.end(address, resident.bytes));
        self.gaps.remove(&(address.saturating_sub(from), from));
        self.gaps.remove(&(until.saturating_sub(end), end));
        self.gaps.insert((until.saturating_sub(from), from));
    }

    /// The first aligned address after `bytes` at `base`.
    fn end(&self, base: u64, bytes: u64) -> u64 {
        (base + bytes).next_multiple_of(self.arena.alignment)
    }

    /// The cheapest window of adjacent tensors, none of which this operator touches, that is at least `bytes` long with its gaps; and
    /// the highest aligned address in it for that many bytes.
    fn window(&self, tick: u32, touched: &[TensorId], bytes: u64) -> Option<(u64, Vec<TensorId>)> {
        struct Slot {
            /// The end of the previous slot.
            from: u64,
            tensor: TensorId,
            cost: u128,
        }
        let mut best: Option<(u128, u64, Vec<TensorId>)> = None;
        let mut slots: VecDeque<Slot> = VecDeque::new();
        let (mut cost, mut from) = (0u128, self.floor);
        let mut try_until = |slots: &mut VecDeque<Slot>, cost: &mut u128, until: u64| {
            while slots.front().is_some_and(|slot| until.saturating_sub(slot.from) >= bytes) {
                if best.as_ref().is_none_or(|(least, ..)| *cost < *least) {
                    let leaving = slots.iter().map(|slot| slot.tensor).collect();
                    let highest = (until - bytes) / self.arena.alignment * self.arena.alignment;
                    best = Some((*cost, highest, leaving));
                }
                *cost -= slots.pop_front().expect("it has a front").cost;
            }
        };
        for (&base, resident) in &self.by_address {
            // The gap before this resident belongs to the slots before it.
            try_until(&mut slots, &mut cost, base);
            match resident.tensor.filter(|tensor| !touched.contains(tensor)) {
                Some(tensor) => {
                    let own = self.cost(tick, tensor);
                    cost += own;
                    slots.push_back(Slot { from, tensor, cost: own });
                }
                None => {
                    slots.clear();
                    cost = 0;
                }
            }
            from = self.end(base, resident.bytes);
        }
        try_until(&mut slots, &mut cost, self.arena.bytes);
        best.map(|(_, address, leaving)| (address, leaving))
    }

    /// The cost of swapping the tensor out: the time of its copies divided by the time until its next use.
    fn cost(&self, tick: u32, tensor: TensorId) -> u128 {
        let bytes = self.problem.tensors[tensor].bytes;
        let link = self.problem.link;
        let out = if self.dirty[tensor] { link.out_nanos(bytes) } else { 0 };
        let uses = self.uses.of(tensor);
        let next =
            uses.get(uses.partition_point(|&use_| use_ < tick)).copied().unwrap_or(self.problem.ticks());
        (u128::from(out + link.in_nanos(bytes)) << 20) / u128::from(next.saturating_sub(tick) + 1)
    }

    /// Swaps out the tensor, with a copy if the host lacks a valid one.
    fn evict(&mut self, tensor: TensorId) {
        if self.at[tensor].is_some() {
            if std::mem::replace(&mut self.dirty[tensor], false) {
                self.copy(tensor, Instruction::Out);
            }
            self.forget(tensor);
        }
    }

    fn forget(&mut self, tensor: TensorId) {
        if let Some(address) = self.at[tensor].take() {
            self.take(address);
        }
    }

    fn copy(&mut self, tensor: TensorId, direction: fn(PieceId) -> Instruction) {
        let bytes = self.problem.tensors[tensor].bytes;
        let pieces = &mut self.schedule.pieces;
        let piece =
            *self.pieces[tensor].get_or_insert_with(|| pieces.push(Piece { tensor, bytes: 0..bytes }));
        let instruction = direction(piece);
        let nanos = match instruction {
            Instruction::Out(_) => self.problem.link.out_nanos(bytes),
            _ => self.problem.link.in_nanos(bytes),
        };
        self.step(instruction, nanos);
    }

    fn step(&mut self, instruction: Instruction, nanos: u64) {
        let start = self.now;
        self.now += nanos;
        self.schedule.steps.push(Step { instruction, start, end: self.now });
    }
}

/// The places of the frame's objects; none if the frame has an object that the cache did not place.
fn places(
    frame: &Frame,
    ground: &Ground,
    bases: &SecondaryMap<TensorId, Vec<u64>>,
    workspaces: &[u64],
) -> Option<Places> {
    let mut places = frame.nowhere();
    let mut place = |object: ObjectId, base: u64| places[object] = Some(Place { base, mirrored: false });
    let is_movable = |object: ObjectId| frame.movable.binary_search(&object).is_ok();
    for (object, facts) in frame.objects.all.iter().filter(|&(object, _)| is_movable(object)) {
        match facts.owner {
            Owner::Workspace(tick) => place(object, *workspaces.get(tick as usize)?),
            Owner::Tensor(tensor) if !ground.leaves[tensor] => place(object, ground.addresses[tensor]?),
            Owner::Tensor(_) => {}
        }
    }
    for tensor in frame.objects.all.values().filter_map(|facts| facts.tensor()) {
        if ground.leaves[tensor] {
            let mut objects = frame.objects.of_tensor[tensor].clone();
            objects.sort_by_key(|&object| frame.extents[object]);
            if objects.len() != bases[tensor].len() {
                return None;
            }
            objects.iter().zip(&bases[tensor]).for_each(|(&object, &base)| place(object, base));
        }
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use lmsc_ir::rng::{Rng, Source};

    use super::*;

    /// The definition of [`rising`]: all live buffers are compared.
    fn compared(buffers: &[Buffer]) -> Vec<u64> {
        let live = |index: usize| buffers[index].parts[0].live.clone();
        let mut order: Vec<usize> = (0..buffers.len()).collect();
        order.sort_by_key(|&index| (live(index).start, Reverse(live(index).end), index));
        let mut placed: Vec<(u64, u64, u64)> = Vec::new();
        let mut addresses = vec![0; buffers.len()];
        for index in order {
            let bytes = buffers[index].bytes();
            placed.retain(|&(_, _, until)| until > live(index).start);
            placed.sort_unstable();
            let mut address = 0;
            for &(base, end, _) in &placed {
                if base - address >= bytes {
                    break;
                }
                address = end;
            }
            placed.push((address, address + bytes, live(index).end));
            addresses[index] = address;
        }
        addresses
    }

    #[test]
    fn the_lowest_free_range_is_that_of_a_comparison_with_all() {
        for seed in 0..300 {
            let u = &mut Rng::new(seed);
            let buffer = |_| {
                let from = u.below(40) as u64;
                Buffer::new(1 + u.below(60) as u64, from..from + 1 + u.below(15) as u64)
            };
            let buffers: Vec<Buffer> = (0..1 + seed % 80).map(buffer).collect();
            assert_eq!(rising(&buffers), compared(&buffers), "seed {seed}");
        }
    }
}
