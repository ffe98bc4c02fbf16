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
    frees: BinaryHeap<Reverse<(u64, u64)>>,
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
        let count = acts.len();
        let mut times = Times { start: vec![0; count], end: vec![0; count], makespan: 0 };
        self.left.clone_from(&acts.block_acts);
        self.allocated.clear();
        self.ends.clear();
        self.frees.clear();
        let waits = if way == Direction::Forward { &acts.before } else { &acts.after };
        let mut free_at = [0u64; 3];
        let (mut used, mut last_allocation) = (0u64, 0u64);
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
                at = at.max(last_allocation);
                while let Some(&Reverse((time, bytes))) = self.frees.peek() {
                    if time > at {
                        if used + need <= budget {
                            break;
                        }
                        at = time;
                    }
                    used -= bytes;
                    self.frees.pop();
                }
                if used + need > budget {
                    return Err(Stuck(act));
                }
                used += need;
                last_allocation = at;
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
                    self.frees.push(Reverse((self.ends[block], acts.block_bytes[block])));
                }
            }
        }
        Ok(times)
    }
}
