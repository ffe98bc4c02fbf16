//! Computes the makespan of a plan.

use std::collections::VecDeque;

use cranelift_entity::{EntityRef, PrimaryMap};

use super::acts::{ActId, Acts, BlockId, Times};
use super::lanes::ENGINES;
use crate::tuned;

/// The direction of time.
///
/// The rules are symmetric: seen from the end, freeing memory becomes allocating it and a copy in becomes a copy out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the start.
    Forward,
    /// From the end.
    Backward,
}

/// The activity whose memory never becomes free: the order does not fit the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck(pub ActId);

/// Working memory of [`Simulator::run`], kept between runs.
#[derive(Debug, Default)]
pub struct Simulator {
    blocks: PrimaryMap<BlockId, Block>,
    memory: Memory,
}

/// The state of a block.
#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: u64,
    /// Number of its activities that have not run yet.
    left: u32,
    /// Whether the block is allocated, since when, and the largest end of its activities so far.
    is_there: bool,
    allocated: u64,
    end: u64,
    /// The engine of the activity with that end.
    engine: u8,
}

impl Simulator {
    /// The times of the activities if each engine and all allocations follow this order and each activity starts as early as
    /// possible.
    ///
    /// An activity waits for its engine, for the activities that it depends on, for the allocation of its blocks that other
    /// activities have allocated, and, if it allocates, for earlier allocations and for memory. Near-linear.
    ///
    /// # Errors
    /// [`Stuck`] at the first activity whose memory never becomes free.
    pub fn run(&mut self, acts: &Acts, order: &[ActId], budget: u64, way: Direction) -> Result<Times, Stuck> {
        self.execute::<false>(acts, order, budget, way, u64::MAX).map(Option::unwrap_or_default)
    }

    /// [`Simulator::run`], or none if the makespan exceeds the limit: the run ends once the remaining activities take too long.
    ///
    /// # Errors
    /// [`Stuck`], as for [`Simulator::run`], if the run gets there.
    pub fn run_within(
        &mut self,
        acts: &Acts,
        order: &[ActId],
        budget: u64,
        way: Direction,
        limit: u64,
    ) -> Result<Option<Times>, Stuck> {
        self.execute::<false>(acts, order, budget, way, limit)
    }

    /// Like [`Simulator::run`], but an allocation need not wait for earlier ones in the order if from its time on there is
    /// memory for it beside all of them: no activity starts later than in [`Simulator::run`].
    ///
    /// With the activities sorted by these starts, [`Simulator::run`] starts each at least as early.
    ///
    /// # Errors
    /// [`Stuck`], as for [`Simulator::run`].
    pub fn fill(
        &mut self,
        acts: &Acts,
        order: &[ActId],
        budget: u64,
        way: Direction,
    ) -> Result<Times, Stuck> {
        self.execute::<true>(acts, order, budget, way, u64::MAX).map(Option::unwrap_or_default)
    }

    fn execute<const FILL: bool>(
        &mut self,
        acts: &Acts,
        order: &[ActId],
        budget: u64,
        way: Direction,
        limit: u64,
    ) -> Result<Option<Times>, Stuck> {
        let count = acts.len();
        tuned::work(count);
        let mut times = Times { start: vec![0; count], end: vec![0; count], makespan: 0 };
        self.blocks.clear();
        self.blocks.extend(
            acts.block_bytes.values().zip(acts.block_acts.values()).map(|(&bytes, &left)| Block {
                bytes,
                left,
                is_there: false,
                allocated: 0,
                end: 0,
                engine: 0,
            }),
        );
        self.memory.clear(acts.engines);
        let waits = if way == Direction::Forward { &acts.before } else { &acts.after };
        let mut free_at = [0u64; ENGINES];
        // For each engine, the time of its activities that have not run yet.
        let mut left = acts.engine_nanos;
        for &act in order {
            let engine = acts.engine[act.index()];
            let mut at = free_at[usize::from(engine)];
            for before in waits.of(act) {
                at = at.max(times.end[before.index()]);
            }
            let mut need = 0;
            for &block in acts.blocks.of(act) {
                let block = &self.blocks[block];
                if block.is_there {
                    at = at.max(block.allocated);
                } else {
                    need += block.bytes;
                }
            }
            if need > 0 {
                at = self.memory.allocate::<FILL>(at, need, budget).ok_or(Stuck(act))?;
            }
            let nanos = acts.nanos[act.index()];
            let end = at + nanos;
            left[usize::from(engine)] -= nanos;
            if end + left[usize::from(engine)] > limit {
                return Ok(None);
            }
            free_at[usize::from(engine)] = end;
            times.start[act.index()] = at;
            times.end[act.index()] = end;
            times.makespan = times.makespan.max(end);
            for &block in acts.blocks.of(act) {
                let block = &mut self.blocks[block];
                if !block.is_there {
                    (block.is_there, block.allocated) = (true, at);
                }
                if end >= block.end {
                    (block.end, block.engine) = (end, engine);
                }
                block.left -= 1;
                if block.left == 0 {
                    self.memory.free::<FILL>(block.end, block.bytes, block.engine);
                }
            }
        }
        Ok(Some(times))
    }
}

/// The memory in use over time.
#[derive(Debug, Default)]
struct Memory {
    /// The time of the last allocation, and the bytes in use from then on, less the frees that come later.
    last: u64,
    used: u64,
    /// The later frees.
    frees: Frees,
    /// Before the last allocation, ascending: a time, and the change of the bytes in use at that time. Bytes in use for no
    /// time have two entries of the same time; an allocation placed before them must fit beside them. Only kept where gaps
    /// are filled.
    before: Vec<(u64, i64)>,
    /// The bytes in use from the last of these entries on.
    before_last: u64,
}

impl Memory {
    fn clear(&mut self, engines: usize) {
        (self.last, self.used) = (0, 0);
        self.frees.clear(engines);
        self.before.clear();
        self.before_last = 0;
    }

    /// Records the bytes in use since the last allocation.
    fn remember(&mut self) {
        self.before.push((self.last, self.used as i64 - self.before_last as i64));
        self.before_last = self.used;
    }

    /// Allocates `need` bytes at the first time, not before `at`, at which they are free.
    fn allocate<const FILL: bool>(&mut self, at: u64, need: u64, budget: u64) -> Option<u64> {
        if FILL && at < self.last && self.used + need <= budget {
            return Some(self.fill(at, need, budget));
        }
        let mut at = at.max(self.last);
        while let Some((engine, (time, bytes))) = self.frees.first() {
            if time > at {
                if self.used + need <= budget {
                    break;
                }
                at = time;
            }
            if FILL {
                self.remember();
                self.last = self.last.max(time);
            }
            self.used -= bytes;
            self.frees.of_engine[engine].pop_front();
        }
        if self.used + need > budget {
            return None;
        }
        if FILL && at > self.last {
            self.remember();
        }
        self.used += need;
        self.last = at;
        Some(at)
    }

    /// Allocates the bytes before the last allocation, at the earliest time from which they stay free.
    fn fill(&mut self, at: u64, need: u64, budget: u64) -> u64 {
        self.used += need;
        // The first entry from which on the bytes fit.
        let (mut first, mut used) = (self.before.len(), self.before_last);
        while first > 0 && used + need <= budget {
            first -= 1;
            let (time, more) = self.before[first];
            if time <= at {
                break;
            }
            used = (used as i64 - more) as u64;
        }
        let Some((time, more)) = self.before.get_mut(first) else { return self.last };
        self.before_last += need;
        if *time >= at {
            *more += need as i64;
            return *time;
        }
        // Only from `at` on.
        self.before.insert(first + 1, (at, need as i64));
        at
    }

    /// Frees the bytes at that time, the end of an activity of the engine.
    fn free<const FILL: bool>(&mut self, at: u64, bytes: u64, engine: u8) {
        if !FILL || at >= self.last {
            self.frees.push(at, bytes, engine);
            return;
        }
        self.used -= bytes;
        self.before_last -= bytes;
        let place = self.before.partition_point(|&(time, _)| time <= at);
        self.before.insert(place, (at, -(bytes as i64)));
    }
}

/// The times at which bytes become free, and how many then.
#[derive(Debug, Default)]
struct Frees {
    /// Lists for each engine, ascending. Since an engine's activities end one after another, nearly all frees come last in their queue.
    of_engine: Vec<VecDeque<(u64, u64)>>,
}

impl Frees {
    fn clear(&mut self, engines: usize) {
        self.of_engine.resize(engines, VecDeque::new());
        self.of_engine.iter_mut().for_each(VecDeque::clear);
    }

    /// The first free, and its engine.
    fn first(&self) -> Option<(usize, (u64, u64))> {
        let firsts = self.of_engine.iter().enumerate();
        firsts
            .filter_map(|(engine, queue)| Some((engine, *queue.front()?)))
            .min_by_key(|(_, (time, _))| *time)
    }

    fn push(&mut self, time: u64, bytes: u64, engine: u8) {
        let queue = &mut self.of_engine[usize::from(engine)];
        let later = queue.iter().rev().take_while(|(other, _)| *other > time).count();
        let place = queue.len() - later;
        match queue.get_mut(place.wrapping_sub(1)) {
            Some((other, together)) if *other == time => *together += bytes,
            _ => queue.insert(place, (time, bytes)),
        }
    }
}
