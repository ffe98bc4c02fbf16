//! What a plan costs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use cranelift_entity::{EntityRef, SecondaryMap};

use super::acts::{ActId, Acts, BlockId};

/// Which way time runs.
///
/// The rules are symmetric: seen from the end, what frees memory allocates it, what is copied in is copied out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the start.
    Forward,
    /// From the end.
    Backward,
}

/// When every activity starts and ends, by act, in nanoseconds from where time begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// When it starts.
    pub start: Vec<u64>,
    /// When it ends.
    pub end: Vec<u64>,
    /// The largest end.
    pub makespan: u64,
}

/// The activity for whose memory nothing is left to wait: the order does not fit the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck(pub ActId);

/// Working memory of [`Simulator::run`], kept between runs.
#[derive(Debug, Default)]
pub struct Simulator {
    /// By block, how many of its activities have not run yet.
    left: SecondaryMap<BlockId, u32>,
    /// By block, when it was allocated, and the largest end of its activities.
    allocated: SecondaryMap<BlockId, u64>,
    ends: SecondaryMap<BlockId, u64>,
    memory: Memory,
}

impl Simulator {
    /// The times of the activities, each engine's and every allocation in this order, each as early as may be.
    ///
    /// An activity waits for its engine, for what it must follow, for the memory of its blocks that are already
    /// allocated, and, if it allocates, for earlier allocations and for memory. Near-linear.
    ///
    /// # Errors
    /// [`Stuck`] at the first activity whose memory never becomes free.
    pub fn run(&mut self, acts: &Acts, order: &[ActId], budget: u64, way: Direction) -> Result<Times, Stuck> {
        self.execute::<false>(acts, order, budget, way)
    }

    /// The same where an allocation need not wait for those before it in the order, if there is memory for it from its
    /// time on beside all of them: nothing is later than in [`Simulator::run`].
    ///
    /// Sorted by their starts, [`Simulator::run`] has the activities start as early.
    ///
    /// # Errors
    /// [`Stuck`] as there.
    pub(crate) fn fill(
        &mut self,
        acts: &Acts,
        order: &[ActId],
        budget: u64,
        way: Direction,
    ) -> Result<Times, Stuck> {
        self.execute::<true>(acts, order, budget, way)
    }

    fn execute<const FILL: bool>(
        &mut self,
        acts: &Acts,
        order: &[ActId],
        budget: u64,
        way: Direction,
    ) -> Result<Times, Stuck> {
        let count = acts.len();
        let mut times = Times { start: vec![0; count], end: vec![0; count], makespan: 0 };
        self.left.clone_from(&acts.block_acts);
        self.allocated.clear();
        self.ends.clear();
        self.memory.clear();
        let waits = if way == Direction::Forward { &acts.before } else { &acts.after };
        let mut free_at = [0u64; 3];
        for &act in order {
            let engine = &mut free_at[acts.engine[act.index()] as usize];
            let mut at = *engine;
            for before in waits.of(act) {
                at = at.max(times.end[before.index()]);
            }
            let mut need = 0;
            for &block in acts.blocks.of(act) {
                if self.left[block] == acts.block_acts[block] {
                    need += acts.block_bytes[block];
                } else {
                    at = at.max(self.allocated[block]);
                }
            }
            if need > 0 {
                at = self.memory.allocate::<FILL>(at, need, budget).ok_or(Stuck(act))?;
            }
            let end = at + acts.nanos[act.index()];
            *engine = end;
            times.start[act.index()] = at;
            times.end[act.index()] = end;
            times.makespan = times.makespan.max(end);
            for &block in acts.blocks.of(act) {
                if self.left[block] == acts.block_acts[block] {
                    self.allocated[block] = at;
                    self.ends[block] = end;
                } else {
                    self.ends[block] = self.ends[block].max(end);
                }
                self.left[block] -= 1;
                if self.left[block] == 0 {
                    self.memory.free::<FILL>(self.ends[block], acts.block_bytes[block]);
                }
            }
        }
        Ok(times)
    }
}

/// What is allocated when.
#[derive(Debug, Default)]
struct Memory {
    /// The time of the last allocation, and the bytes in use from then on without what is freed later.
    last: u64,
    used: u64,
    /// What is freed after that.
    frees: BinaryHeap<Reverse<(u64, u64)>>,
    /// Before that, ascending: a time, and the bytes in use from then to the next. What is in use for no time has two with the
    /// same, which others must fit beside to come before it. Only kept where gaps are filled.
    before: Vec<(u64, u64)>,
}

impl Memory {
    fn clear(&mut self) {
        (self.last, self.used) = (0, 0);
        self.frees.clear();
        self.before.clear();
    }

    /// The first time at which there are so many bytes, not before `at`; they are taken from then on.
    fn allocate<const FILL: bool>(&mut self, at: u64, need: u64, budget: u64) -> Option<u64> {
        if FILL && at < self.last && self.used + need <= budget {
            return Some(self.fill(at, need, budget));
        }
        let mut at = at.max(self.last);
        while let Some(&Reverse((time, bytes))) = self.frees.peek() {
            if time > at {
                if self.used + need <= budget {
                    break;
                }
                at = time;
            }
            if FILL {
                self.before.push((self.last, self.used));
                self.last = self.last.max(time);
            }
            self.used -= bytes;
            self.frees.pop();
        }
        if self.used + need > budget {
            return None;
        }
        if FILL && at > self.last {
            self.before.push((self.last, self.used));
        }
        self.used += need;
        self.last = at;
        Some(at)
    }

    /// Takes the bytes before the last allocation, as early as there are so many from then on.
    fn fill(&mut self, at: u64, need: u64, budget: u64) -> u64 {
        self.used += need;
        let mut start = self.last;
        for (time, used) in self.before.iter_mut().rev() {
            if *used + need > budget {
                break;
            }
            (start, *used) = (*time, *used + need);
            if start <= at {
                break;
            }
        }
        if start < at {
            // From `at` on only: what holds before it stands once more.
            let place = self.before.partition_point(|&(time, _)| time <= start);
            let used = self.before[place - 1].1;
            self.before[place - 1].1 = used - need;
            self.before.insert(place, (at, used));
        }
        start.max(at)
    }

    fn free<const FILL: bool>(&mut self, at: u64, bytes: u64) {
        if !FILL || at >= self.last {
            self.frees.push(Reverse((at, bytes)));
            return;
        }
        self.used -= bytes;
        let place = self.before.partition_point(|&(time, _)| time <= at);
        self.before[place..].iter_mut().for_each(|(_, used)| *used -= bytes);
        let used = self.before[place - 1].1;
        self.before.insert(place, (at, used - bytes));
    }
}
