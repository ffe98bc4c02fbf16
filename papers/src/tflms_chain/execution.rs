//! The times of swaps and the memory that they need, where nothing waits for memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cranelift_entity::{PrimaryMap, SecondaryMap};
use lmsc_schedule::problem::{Duplex, Problem, TensorId, Uses};
use lmsc_schedule::{Instruction, Piece, PieceId, Schedule, Step};

use super::{Cost, Swap};

/// A start and an end, in nanoseconds.
type Span = (u64, u64);

/// The times of all operators and copies, and their memory.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    /// For each tick, the time of its operator.
    ops: Vec<Span>,
    /// For each swap, the time of its copy out.
    outs: Vec<Span>,
    /// For each swap and gap, the time of the copy in.
    ins: Vec<Vec<Span>>,
    pub(super) cost: Cost,
}

impl Execution {
    /// The execution of these swaps: copied out when produced, copied in when the operator `ahead` before the use has ended.
    ///
    /// Copies of one engine run in the order in which they become ready.
    pub(super) fn of(problem: &Problem, uses: &Uses, swaps: &[Swap], ahead: u32) -> Execution {
        let mut leaves: Vec<(u32, u32)> = Vec::with_capacity(swaps.len());
        let (mut triggers, mut returns) = (Vec::with_capacity(swaps.len()), Vec::with_capacity(swaps.len()));
        let mut copies = Copies::new(problem, swaps);
        for (index, swap) in (0..).zip(swaps) {
            match swap.produced {
                Some(tick) => leaves.push((tick, index)),
                None => copies.ready[0].push(Reverse((0, Copy::Out(index)))),
            }
            for (gap, &(used, until)) in (0..).zip(&swap.gaps) {
                triggers.push((used.max(until.saturating_sub(ahead)), index, gap));
                returns.push((until, index, gap));
            }
        }
        leaves.sort_unstable();
        triggers.sort_unstable();
        returns.sort_unstable();
        let mut leaves = leaves.into_iter().peekable();
        let mut triggers = triggers.into_iter().peekable();
        let mut returns = returns.into_iter().peekable();
        let mut ops = Vec::with_capacity(problem.ops.len());
        let mut now = 0;
        for (tick, op) in (0..).zip(&problem.ops) {
            let mut start = now;
            while let Some((_, swap, gap)) = returns.next_if(|r| r.0 == tick) {
                start = start.max(copies.arrival(swap, gap));
            }
            now = start + op.nanos;
            ops.push((start, now));
            while let Some((_, swap)) = leaves.next_if(|l| l.0 == tick) {
                copies.ready[0].push(Reverse((now, Copy::Out(swap))));
            }
            while let Some((_, swap, gap)) = triggers.next_if(|t| t.0 == tick) {
                copies.trigger(swap, gap, now);
            }
        }
        while copies.next() {}
        let Copies { outs, ins, free, .. } = copies;
        let makespan = now.max(free[0]).max(free[1]);
        let mut execution = Execution { ops, outs, ins, cost: Cost { makespan, peak: 0, peak_tick: 0 } };
        execution.count(problem, uses, swaps);
        execution
    }

    /// Finds the peak, and the operator that runs or ran last at that time.
    fn count(&mut self, problem: &Problem, uses: &Uses, swaps: &[Swap]) {
        // The starts and ends of steps: times, and the position in the order among events at the same time.
        let mut ops = vec![Places::default(); self.ops.len()];
        let mut outs = vec![Places::default(); self.outs.len()];
        let mut ins: Vec<Vec<Places>> =
            self.ins.iter().map(|ins| vec![Places::default(); ins.len()]).collect();
        for ((what, (start, end)), place) in self.order().into_iter().zip(1..) {
            let places = match what {
                Act::Op(tick) => &mut ops[tick as usize],
                Act::Copy(Copy::Out(swap)) => &mut outs[swap as usize],
                Act::Copy(Copy::In(swap, gap)) => &mut ins[swap as usize][gap as usize],
            };
            *places = ((start, place), (end, place));
        }
        let mut swap_of: SecondaryMap<TensorId, Option<usize>> =
            SecondaryMap::with_capacity(problem.tensors.len());
        swaps.iter().enumerate().for_each(|(index, swap)| swap_of[swap.tensor] = Some(index));
        // For each tick, the bytes needed from the start of its operator, and those needed until its end.
        let mut comes: Vec<u64> = problem.ops.iter().map(|op| op.workspace).collect();
        let mut goes = comes.clone();
        let mut now = 0;
        let mut events: Vec<(Place, bool, u64)> = Vec::with_capacity(2 * self.ops.len() + 4 * swaps.len());
        for (tensor, facts) in &problem.tensors {
            let uses = uses.of(tensor);
            match uses.first() {
                _ if facts.given => now += facts.bytes,
                Some(&first) => comes[first as usize] += facts.bytes,
                None => continue,
            }
            if uses.is_empty() && !facts.kept {
                events.push(((0, 0), true, facts.bytes));
            }
            if let Some(index) = swap_of[tensor] {
                for (gap, (&(used, _), &(back, _))) in swaps[index].gaps.iter().zip(&ins[index]).enumerate() {
                    let out = if gap == 0 { outs[index].1 } else { (0, 0) };
                    events.push((ops[used as usize].1.max(out), true, facts.bytes));
                    events.push((back, false, facts.bytes));
                }
            }
            if let Some(&last) = uses.last().filter(|_| !facts.kept) {
                goes[last as usize] += facts.bytes;
            }
        }
        for (&(start, end), (&comes, &goes)) in ops.iter().zip(comes.iter().zip(&goes)) {
            events.extend([(start, false, comes), (end, true, goes)]);
        }
        events.sort_unstable();
        let (mut peak, mut when) = (now, 0);
        for ((at, _), goes, bytes) in events {
            now = if goes { now - bytes } else { now + bytes };
            if now > peak {
                (peak, when) = (now, at);
            }
        }
        let tick = self.ops.partition_point(|&(start, _)| start <= when).saturating_sub(1);
        (self.cost.peak, self.cost.peak_tick) = (peak, tick as u32);
    }

    /// All operators and copies, sorted by start.
    fn order(&self) -> Vec<(Act, Span)> {
        let mut order: Vec<(Act, Span)> =
            (0..).zip(&self.ops).map(|(tick, &span)| (Act::Op(tick), span)).collect();
        order.extend((0..).zip(&self.outs).map(|(swap, &span)| (Act::Copy(Copy::Out(swap)), span)));
        for (swap, ins) in (0..).zip(&self.ins) {
            order.extend((0..).zip(ins).map(|(gap, &span)| (Act::Copy(Copy::In(swap, gap)), span)));
        }
        order.sort_by_key(|&(_, span)| span);
        order
    }

    /// The schedule of these times, in their order.
    pub(super) fn schedule(&self, problem: &Problem, swaps: &[Swap]) -> Schedule {
        let whole = |swap: &Swap| Piece { tensor: swap.tensor, bytes: 0..problem.tensors[swap.tensor].bytes };
        let pieces: PrimaryMap<PieceId, Piece> = swaps.iter().map(whole).collect();
        let step = |(what, (start, end)): (Act, Span)| {
            let instruction = match what {
                Act::Op(tick) => Instruction::Op(tick),
                Act::Copy(Copy::Out(swap)) => Instruction::Out(PieceId::from_u32(swap)),
                Act::Copy(Copy::In(swap, _)) => Instruction::In(PieceId::from_u32(swap)),
            };
            Step { instruction, start, end }
        };
        Schedule { pieces, steps: self.order().into_iter().map(step).collect() }
    }
}

/// A time in nanoseconds, and a position in the order, from 1; 0 is before all.
type Place = (u64, u32);

/// The start and the end of a step.
type Places = (Place, Place);

/// An operator or a copy.
#[derive(Clone, Copy, Debug)]
enum Act {
    Op(u32),
    Copy(Copy),
}

/// A copy of a swap: out, or in after one of its gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Copy {
    Out(u32),
    In(u32, u32),
}

/// The copies while operators run one after the other.
struct Copies<'a> {
    problem: &'a Problem,
    swaps: &'a [Swap],
    /// For each engine, out and in, when it is free. If the link is half duplex, the first engine runs all copies.
    free: [u64; 2],
    /// For each engine, the copies that wait only for the engine, by the time at which they became ready.
    ready: [BinaryHeap<Reverse<(u64, Copy)>>; 2],
    /// For each swap, the gap whose end was triggered before the copy out was done, and the time of the trigger.
    triggered: Vec<Option<(u64, u32)>>,
    outs: Vec<Span>,
    ins: Vec<Vec<Span>>,
}

/// A copy that has not been scheduled.
const LATER: Span = (u64::MAX, u64::MAX);

impl<'a> Copies<'a> {
    fn new(problem: &'a Problem, swaps: &'a [Swap]) -> Copies<'a> {
        Copies {
            problem,
            swaps,
            free: [0; 2],
            ready: Default::default(),
            triggered: vec![None; swaps.len()],
            outs: vec![LATER; swaps.len()],
            ins: swaps.iter().map(|swap| vec![LATER; swap.gaps.len()]).collect(),
        }
    }

    fn in_engine(&self) -> usize {
        usize::from(self.problem.link.duplex == Duplex::Full)
    }

    /// Allows the copy in after a gap to start from now on, once the copy out is done.
    fn trigger(&mut self, swap: u32, gap: u32, now: u64) {
        match self.outs[swap as usize] {
            LATER => self.triggered[swap as usize] = Some((now, gap)),
            (_, end) => self.ready[self.in_engine()].push(Reverse((now.max(end), Copy::In(swap, gap)))),
        }
    }

    /// The end of the copy in after a gap that was triggered.
    fn arrival(&mut self, swap: u32, gap: u32) -> u64 {
        while self.ins[swap as usize][gap as usize] == LATER && self.next() {}
        self.ins[swap as usize][gap as usize].1
    }

    /// Runs the copy that can start first; false if there is none.
    fn next(&mut self) -> bool {
        let start = |engine: usize| {
            let Reverse((ready, _)) = self.ready[engine].peek()?;
            Some((self.free[engine].max(*ready), engine))
        };
        let Some((start, engine)) = start(0).into_iter().chain(start(1)).min() else { return false };
        let Some(Reverse((_, copy))) = self.ready[engine].pop() else { return false };
        let (Copy::Out(swap) | Copy::In(swap, _)) = copy;
        let index = swap as usize;
        let bytes = self.problem.tensors[self.swaps[index].tensor].bytes;
        let end = match copy {
            Copy::Out(_) => {
                let end = start + self.problem.link.out_nanos(bytes);
                self.outs[index] = (start, end);
                if let Some((when, gap)) = self.triggered[index].take() {
                    self.trigger(swap, gap, when);
                }
                end
            }
            Copy::In(_, gap) => {
                let end = start + self.problem.link.in_nanos(bytes);
                self.ins[index][gap as usize] = (start, end);
                end
            }
        };
        self.free[engine] = end;
        true
    }
}
