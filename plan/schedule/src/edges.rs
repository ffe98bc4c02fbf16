//! The edges that make any execution of a schedule safe and its execution in nominal time the schedule itself.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cranelift_entity::{EntityRef, SecondaryMap};

use super::lanes::{ByLane, ENGINES, copies, engine_of};
use super::{Instruction, Schedule, Step};
use crate::problem::{Operator, Problem, TensorId};

/// A dependence between two steps, by their indices in [`Schedule::steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Edge {
    /// The step that waits.
    pub step: usize,
    /// The step that it waits for; an earlier one.
    pub before: usize,
}

/// The rule that keeps the steps within their memory.
#[derive(Clone, Copy, Debug)]
pub enum Room<'a> {
    /// At most this many bytes may be allocated at once, at any addresses.
    Counted(u64),
    /// Edges that are known to suffice, such as those from the last users of an address to its next owner.
    Given(&'a [Edge]),
    /// These edges, and others only where these do not keep the bytes allocated at once within the limit in every timing.
    Within(&'a [Edge], u64),
}

/// A schedule that exceeds its budget, does not allocate in its order, or has edges that go back in time, at the step with
/// this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {0} of the schedule starts before what it must wait for has ended")]
pub struct NotInOrder(pub usize);

/// The edges of a schedule beyond data dependences and the order of operators: the order of each copy engine, the last use of
/// a tensor before its swap-in, and memory.
///
/// Where memory is counted, it is counted in the order of the steps. A step that allocates waits for everything that the
/// previous allocating step waits for, so that it starts no earlier, and for enough frees, the earliest first, to have room
/// in any timing: blocks whose end it does not wait for count as allocated. In nominal time all of these steps have ended by
/// then, so no edge delays anything. Edges that others imply are omitted, except for the order of copies. Given edges are all
/// kept.
///
/// Sorted by the step that waits.
///
/// # Errors
/// [`NotInOrder`] for a schedule that is not valid within the budget, or not with the edges.
pub fn edges(problem: &Problem, schedule: &Schedule, room: Room<'_>) -> Result<Vec<Edge>, NotInOrder> {
    if problem.has_lanes() {
        found::<ENGINES>(problem, schedule, room)
    } else {
        found::<3>(problem, schedule, room)
    }
}

/// [`edges`] of a problem of at most `N` engines.
fn found<const N: usize>(
    problem: &Problem,
    schedule: &Schedule,
    room: Room<'_>,
) -> Result<Vec<Edge>, NotInOrder> {
    let needs = Needs::of(problem, schedule);
    let mut walk = Walk::<N>::new(problem, schedule);
    let mut memory = Memory::default();
    let mut last_allocation: Option<usize> = None;
    let mut blocks = needs.blocks.iter().peekable();
    while let Some(block) = blocks.next_if(|block| block.from.is_none()) {
        memory.allocate(block, &walk);
    }
    let (given, budget) = match room {
        Room::Counted(budget) => (&[][..], Some(budget)),
        Room::Given(given) => (given, None),
        Room::Within(given, budget) => (given, Some(budget)),
    };
    let mut given = given.to_vec();
    given.sort_unstable();
    let mut given = given.into_iter().peekable();
    for step in 0..schedule.steps.len() {
        let mut knows = walk.in_line(step);
        needs.data[step].iter().for_each(|&before| walk.learn(&mut knows, before));
        while let Some(edge) = given.next_if(|edge| edge.step == step) {
            if edge.before >= step || schedule.steps[edge.before].end > schedule.steps[step].start {
                return Err(NotInOrder(step));
            }
            walk.learn(&mut knows, edge.before);
            walk.edges.push(edge);
        }
        let known = knows;
        let mut wanted: Vec<usize> = needs.last_use[step].into_iter().flatten().collect();
        let mut allocates = false;
        while let Some(block) = blocks.next_if(|block| block.from == Some(step)) {
            memory.allocate(block, &walk);
            allocates = true;
        }
        if let Some(budget) = budget.filter(|_| allocates) {
            wanted.extend(last_allocation.into_iter().flat_map(|last| walk.waited_for(last)));
            wanted.iter().for_each(|&before| walk.learn(&mut knows, before));
            memory.make_room(&walk, step, budget, &mut knows, &mut wanted)?;
            last_allocation = Some(step);
        }
        walk.wait(step, known, wanted, &needs.data[step])?;
    }
    walk.edges.sort_unstable();
    walk.edges.dedup();
    Ok(walk.edges)
}

/// The blocks that are allocated, as far as the steps so far can be certain.
#[derive(Default)]
struct Memory<'a> {
    used: u64,
    /// Blocks that are freed later, the earliest first; the number breaks ties.
    later: BinaryHeap<Reverse<(u64, usize)>>,
    blocks: Vec<&'a Block>,
    /// Blocks that are free by that time in nominal time, but not certainly.
    open: Vec<&'a Block>,
}

impl<'a> Memory<'a> {
    fn allocate<const N: usize>(&mut self, block: &'a Block, walk: &Walk<'_, N>) {
        self.used += block.bytes;
        if !block.stays {
            let free = block.acts.iter().map(|&act| walk.steps[act].end).max();
            self.later.push(Reverse((free.unwrap_or(0), self.blocks.len())));
            self.blocks.push(block);
        }
    }

    /// Makes the step wait for frees, the earliest first, until the blocks that are not certainly free fit the budget.
    fn make_room<const N: usize>(
        &mut self,
        walk: &Walk<'_, N>,
        step: usize,
        budget: u64,
        knows: &mut Known<N>,
        wanted: &mut Vec<usize>,
    ) -> Result<(), NotInOrder> {
        if self.used <= budget {
            return Ok(());
        }
        while let Some(&Reverse((free, block))) = self.later.peek() {
            if free > walk.steps[step].start {
                break;
            }
            self.open.push(self.blocks[block]);
            self.later.pop();
        }
        loop {
            self.open.retain(|block| {
                let freed = block.acts.iter().all(|&act| walk.is_known(knows, act));
                self.used -= if freed { block.bytes } else { 0 };
                !freed
            });
            if self.used <= budget {
                return Ok(());
            }
            let earliest = self.open.iter().find(|block| block.acts.iter().all(|&act| act < step));
            let block = earliest.ok_or(NotInOrder(step))?;
            for &act in &block.acts {
                wanted.push(act);
                walk.learn(knows, act);
            }
        }
    }
}

/// For each engine, the number of steps that have certainly ended.
type Known<const N: usize> = [u32; N];

/// The steps by engine, and the steps known to have ended when each starts.
struct Walk<'a, const N: usize> {
    steps: &'a [Step],
    /// For each engine, its steps.
    engines: [Vec<usize>; N],
    /// For each step, its engine and its position in that engine's order.
    place: Vec<(usize, u32)>,
    /// For each step so far, the steps known to have ended when it starts.
    known: Vec<Known<N>>,
    edges: Vec<Edge>,
}

impl<'a, const N: usize> Walk<'a, N> {
    fn new(problem: &Problem, schedule: &'a Schedule) -> Walk<'a, N> {
        let mut engines = [const { Vec::new() }; N];
        let place = |(index, step): (usize, &Step)| {
            let engine = engine_of(problem, step.instruction);
            engines[engine].push(index);
            (engine, engines[engine].len() as u32 - 1)
        };
        let place = schedule.steps.iter().enumerate().map(place).collect();
        Walk { steps: &schedule.steps, engines, place, known: Vec::new(), edges: Vec::new() }
    }

    /// The steps known to have ended through the previous step of the same engine.
    fn in_line(&self, step: usize) -> Known<N> {
        let mut knows = [0; N];
        if let Some(before) = self.before_in_line(step) {
            self.learn(&mut knows, before);
        }
        knows
    }

    fn before_in_line(&self, step: usize) -> Option<usize> {
        let (engine, position) = self.place[step];
        position.checked_sub(1).map(|before| self.engines[engine][before as usize])
    }

    /// Adds the steps that are known to have ended once `before` has ended.
    fn learn(&self, knows: &mut Known<N>, before: usize) {
        let (engine, position) = self.place[before];
        for (now, then) in knows.iter_mut().zip(self.known[before]) {
            *now = then.max(*now);
        }
        knows[engine] = knows[engine].max(position + 1);
    }

    fn is_known(&self, knows: &Known<N>, step: usize) -> bool {
        let (engine, position) = self.place[step];
        knows[engine] > position
    }

    /// For each engine, the last step that an earlier step has waited for.
    fn waited_for(&self, step: usize) -> impl Iterator<Item = usize> {
        let last = |(steps, known): (&Vec<usize>, u32)| known.checked_sub(1).map(|last| steps[last as usize]);
        self.engines.iter().zip(self.known[step]).filter_map(last)
    }

    /// Makes the step wait for the wanted steps that are not known to have ended, and a copy for the previous one of its
    /// engine.
    fn wait(
        &mut self,
        step: usize,
        mut knows: Known<N>,
        mut wanted: Vec<usize>,
        data: &[usize],
    ) -> Result<(), NotInOrder> {
        if wanted.iter().any(|&before| self.steps[before].end > self.steps[step].start) {
            return Err(NotInOrder(step));
        }
        // Later steps are more likely to imply others.
        wanted.sort_unstable_by(|a, b| b.cmp(a));
        for before in wanted {
            if !self.is_known(&knows, before) {
                self.edges.push(Edge { step, before });
                self.learn(&mut knows, before);
            }
        }
        let queue =
            self.before_in_line(step).filter(|before| copies(self.place[step].0) && !data.contains(before));
        self.edges.extend(queue.map(|before| Edge { step, before }));
        self.known.push(knows);
        Ok(())
    }
}

/// Bytes that are allocated together and freed together.
struct Block {
    bytes: u64,
    /// The step that allocates the block; none for a block that is resident at the start.
    from: Option<usize>,
    /// The steps after which the block is free: the last operator of each lane that uses it, and the copies.
    acts: Vec<usize>,
    /// Whether the block stays allocated after the last step.
    stays: bool,
}

/// For each step, the steps that it needs to have ended for its data, without the operators before an operator on its lane.
pub(super) fn data(problem: &Problem, schedule: &Schedule) -> Vec<Vec<usize>> {
    Needs::of(problem, schedule).data
}

/// The data and memory needs of the steps of a schedule.
struct Needs {
    /// By allocation.
    blocks: Vec<Block>,
    /// For each step, the steps that it needs to have ended for its data, without the operators before an operator on its lane.
    data: Vec<Vec<usize>>,
    /// For each copy in, the last operator of each lane that used the bytes before.
    last_use: Vec<ByLane<Option<usize>>>,
}

/// Bytes of one tensor that are resident or swapped out together: a piece, or the bytes in no piece.
#[derive(Clone, Copy, Default)]
struct Run {
    bytes: u64,
    /// The current block.
    block: Option<usize>,
    /// The copy in that brought the bytes.
    came: Option<usize>,
    /// By lane, the last operator that used them.
    used: ByLane<Option<usize>>,
    /// The last operator that wrote them, its lane, and their last copy out.
    written: Option<usize>,
    written_on: u8,
    left: Option<usize>,
}

impl Needs {
    fn of(problem: &Problem, schedule: &Schedule) -> Needs {
        let count = schedule.steps.len();
        let mut needs = Needs {
            blocks: Vec::new(),
            data: vec![Vec::new(); count],
            last_use: vec![ByLane::default(); count],
        };
        let mut runs: Vec<Run> = Vec::with_capacity(schedule.pieces.len() + problem.tensors.len());
        let mut of_tensor: SecondaryMap<TensorId, Vec<usize>> = SecondaryMap::new();
        for piece in schedule.pieces.values() {
            of_tensor[piece.tensor].push(runs.len());
            runs.push(Run { bytes: piece.len(), ..Run::default() });
        }
        for (tensor, facts) in &problem.tensors {
            let rest = facts.bytes - of_tensor[tensor].iter().map(|&run| runs[run].bytes).sum::<u64>();
            of_tensor[tensor].push(runs.len());
            runs.push(Run { bytes: rest, ..Run::default() });
        }
        let mut wraps = vec![false; runs.len()];
        let mut moved = vec![false; runs.len()];
        for step in &schedule.steps {
            if let Instruction::In(piece) | Instruction::Out(piece) = step.instruction {
                let facts = problem.tensors[schedule.pieces[piece].tensor];
                let first = !std::mem::replace(&mut moved[piece.index()], true);
                let comes = matches!(step.instruction, Instruction::In(_));
                wraps[piece.index()] |= first && comes && facts.given && facts.kept;
            }
        }
        for tensor in problem.tensors.keys().filter(|&tensor| problem.tensors[tensor].given) {
            for &run in of_tensor[tensor].iter().filter(|&&run| !wraps[run]) {
                needs.allocate(&mut runs[run], None);
            }
        }
        for (index, step) in schedule.steps.iter().enumerate() {
            match step.instruction {
                Instruction::Op(tick) => needs.op(index, &problem.ops[tick as usize], &of_tensor, &mut runs),
                Instruction::Out(piece) => {
                    let run = &mut runs[piece.index()];
                    needs.data[index].extend(run.written.into_iter().chain(run.came));
                    if let Some(block) = run.block {
                        needs.blocks[block].acts.push(index);
                    }
                    run.left = Some(index);
                }
                Instruction::In(piece) => {
                    let run = &mut runs[piece.index()];
                    needs.data[index].extend(run.left);
                    needs.last_use[index] = run.used;
                    needs.allocate(run, Some(index));
                    run.came = Some(index);
                }
            }
        }
        for (tensor, _) in problem.tensors.iter().filter(|(_, facts)| facts.kept) {
            for &run in of_tensor[tensor].iter().filter(|&&run| !wraps[run]) {
                if let Some(block) = runs[run].block {
                    needs.blocks[block].stays = true;
                }
            }
        }
        needs
    }

    fn allocate(&mut self, run: &mut Run, from: Option<usize>) {
        if run.bytes > 0 {
            run.block = Some(self.blocks.len());
            self.blocks.push(Block {
                bytes: run.bytes,
                from,
                acts: from.into_iter().collect(),
                stays: false,
            });
        }
    }

    fn op(
        &mut self,
        step: usize,
        op: &Operator,
        of_tensor: &SecondaryMap<TensorId, Vec<usize>>,
        runs: &mut [Run],
    ) {
        if op.workspace > 0 {
            self.blocks.push(Block { bytes: op.workspace, from: Some(step), acts: vec![step], stays: false });
        }
        for tensor in op.touches() {
            let produced = op.produces.contains(&tensor);
            for &run in &of_tensor[tensor] {
                let run = &mut runs[run];
                if produced {
                    self.allocate(run, Some(step));
                }
                let Some(block) = run.block else { continue };
                let acts = &mut self.blocks[block].acts;
                let writes = produced || op.changes.contains(&tensor);
                let data = &mut self.data[step];
                data.extend(run.came);
                data.extend(run.written.filter(|_| run.written_on != op.lane));
                for (used, lane) in run.used.iter().zip(0..) {
                    data.extend(used.filter(|_| writes && lane != op.lane));
                }
                let used = &mut run.used[usize::from(op.lane)];
                acts.retain(|act| Some(*act) != *used);
                acts.push(step);
                *used = Some(step);
                if writes {
                    (run.written, run.written_on) = (Some(step), op.lane);
                }
            }
        }
    }
}
