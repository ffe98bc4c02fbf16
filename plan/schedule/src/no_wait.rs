//! The order in which everything starts as early as possible.

use std::collections::BTreeMap;
use std::ops::Range;

use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

use super::acts::BlockId;
use super::lanes::ENGINES;
use super::{Absences, Act, ActId, Acts, Direction, Instruction, Simulator, Stuck, Times};
use crate::problem::Problem;
use crate::segment_tree::SegmentTree;

/// The order and the times in which every activity that can start does, and none waits for the sake of later ones.
///
/// Operators, copies out and copies in each keep their order of [`Acts::order`]. Of the next activity of each kind, the one
/// that can start first is placed next; of equal starts, operators before copies out before copies in. A copy in is placed
/// once all copies out before it in [`Acts::order`] are placed, if the operators until its use fit beside it and it does not
/// delay the next operator.
///
/// # Errors
/// [`Stuck`] if the absences do not fit the budget.
///
/// # Source
/// OPT Proposition 1, the no-wait policy. The paper does not say what happens when an operator and a copy in
/// compete for memory, which both could have "as early as possible"; here the operator wins.
pub fn no_wait(
    simulator: &mut Simulator,
    problem: &Problem,
    absences: &Absences,
    acts: &Acts,
    budget: u64,
) -> Result<(Vec<ActId>, Times), Stuck> {
    let order = List::new(problem, absences, acts, budget).order()?;
    let times = simulator.run(acts, &order, budget, Direction::Forward)?;
    Ok((order, times))
}

/// One of the three sequences that are merged.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Op,
    Out,
    In,
}

const KINDS: [Kind; 3] = [Kind::Op, Kind::Out, Kind::In];

struct List<'a> {
    acts: &'a Acts,
    absences: &'a Absences,
    budget: u64,
    /// For each kind, the activities not yet placed, the next one last, each with the number of copies out before it in the serial
    /// order.
    queues: [Vec<(ActId, usize)>; 3],
    /// Number of copies out placed.
    outs: usize,
    /// For each moment, the bytes resident then less the budget: see [`Problem::live_by_moment`].
    excess: SegmentTree,
    /// For each act, its end, once it is placed.
    ends: Vec<Option<u64>>,
    left: PrimaryMap<BlockId, u32>,
    block_ends: SecondaryMap<BlockId, u64>,
    /// The bytes that become free at each time.
    frees: BTreeMap<u64, u64>,
    used: u64,
    last_allocation: u64,
    engines: [u64; ENGINES],
    /// For each piece, the number of its copies in that are placed.
    came: SecondaryMap<super::PieceId, usize>,
}

impl<'a> List<'a> {
    fn new(problem: &Problem, absences: &'a Absences, acts: &'a Acts, budget: u64) -> List<'a> {
        let mut queues: [Vec<(ActId, usize)>; 3] = Default::default();
        let mut outs = 0;
        for &act in &acts.order {
            let kind = match acts.what[act] {
                Act::Start | Act::End | Act::Do(Instruction::Op(_)) => Kind::Op,
                Act::Do(Instruction::Out(_)) => Kind::Out,
                Act::Do(Instruction::In(_)) => Kind::In,
            };
            queues[kind as usize].push((act, outs));
            outs += usize::from(kind == Kind::Out);
        }
        queues.iter_mut().for_each(|queue| queue.reverse());
        let live = absences.live_by_moment(problem);
        List {
            acts,
            absences,
            budget,
            queues,
            outs: 0,
            excess: SegmentTree::new(live.iter().map(|&l| l as i64 - budget as i64)),
            ends: vec![None; acts.len()],
            left: acts.block_acts.clone(),
            block_ends: SecondaryMap::new(),
            frees: BTreeMap::new(),
            used: 0,
            last_allocation: 0,
            engines: [0; ENGINES],
            came: SecondaryMap::new(),
        }
    }

    fn order(mut self) -> Result<Vec<ActId>, Stuck> {
        let mut order = Vec::with_capacity(self.acts.len());
        while order.len() < self.acts.len() {
            let mut best: Option<(u64, Kind, ActId)> = None;
            for kind in KINDS {
                let Some(&(act, outs)) = self.queues[kind as usize].last() else { continue };
                if kind == Kind::In && (outs > self.outs || !self.harmless(act)) {
                    continue;
                }
                if let Some(start) = self.start(act, 0).filter(|&s| best.is_none_or(|(t, ..)| s < t)) {
                    best = Some((start, kind, act));
                }
            }
            let Some((start, kind, act)) = best else {
                let next = self.queues.iter().filter_map(|queue| queue.last()).next();
                return Err(Stuck(next.map_or(self.acts.order[0], |&(act, _)| act)));
            };
            self.queues[kind as usize].pop();
            self.place(act, start);
            order.push(act);
        }
        Ok(order)
    }

    /// The start of the activity after those placed, with `more` bytes allocated in addition; none if an activity that is not
    /// yet placed must come first.
    fn start(&self, act: ActId, more: u64) -> Option<u64> {
        let mut at = self.engines[usize::from(self.acts.engine[act.index()])];
        for &before in self.acts.before.of(act) {
            at = at.max(self.ends[before.index()]?);
        }
        let need = self.need(act);
        if need == 0 {
            return Some(at);
        }
        at = at.max(self.last_allocation);
        let mut used = self.used + more;
        for (&time, bytes) in &self.frees {
            if time > at {
                if used + need <= self.budget {
                    break;
                }
                at = time;
            }
            used -= bytes;
        }
        (used + need <= self.budget).then_some(at)
    }

    fn need(&self, act: ActId) -> u64 {
        let new = self.acts.blocks.of(act).iter().filter(|&&b| self.left[b] == self.acts.block_acts[b]);
        new.map(|&b| self.acts.block_bytes[b]).sum()
    }

    /// The moments by which a copy in placed now comes too early, and its bytes.
    fn early(&self, act: ActId) -> (Range<u32>, i64) {
        let Act::Do(Instruction::In(piece)) = self.acts.what[act] else { return (0..0, 0) };
        let until = self.absences.windows[piece][self.came[piece]].until + 1;
        let next = match self.queues[Kind::Op as usize].last().map(|&(act, _)| self.acts.what[act]) {
            Some(Act::Start) => 0,
            Some(Act::Do(Instruction::Op(tick))) => tick + 1,
            _ => until,
        };
        (next.min(until)..until, self.absences.pieces[piece].len() as i64)
    }

    /// Whether the operators until its use fit beside the copy in, and the next operator is not delayed by it.
    fn harmless(&self, act: ActId) -> bool {
        let (early, bytes) = self.early(act);
        if self.excess.max(early) + bytes > 0 {
            return false;
        }
        let Some(&(op, _)) = self.queues[Kind::Op as usize].last() else { return true };
        let alone = self.start(op, 0);
        alone.is_none() || self.start(op, bytes as u64) == alone
    }

    fn place(&mut self, act: ActId, start: u64) {
        let (early, bytes) = self.early(act);
        self.excess.add(early, bytes);
        match self.acts.what[act] {
            Act::Do(Instruction::In(piece)) => self.came[piece] += 1,
            Act::Do(Instruction::Out(_)) => self.outs += 1,
            _ => {}
        }
        let need = self.need(act);
        if need > 0 {
            while let Some((_, bytes)) =
                self.frees.first_entry().filter(|e| *e.key() <= start).map(|e| e.remove_entry())
            {
                self.used -= bytes;
            }
            self.used += need;
            self.last_allocation = start;
        }
        let end = start + self.acts.nanos[act.index()];
        self.engines[usize::from(self.acts.engine[act.index()])] = end;
        self.ends[act.index()] = Some(end);
        for &block in self.acts.blocks.of(act) {
            self.block_ends[block] = self.block_ends[block].max(end);
            self.left[block] -= 1;
            if self.left[block] == 0 {
                *self.frees.entry(self.block_ends[block]).or_default() += self.acts.block_bytes[block];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lmsc_ir::Phase::{Backward, Forward};

    use super::*;
    use crate::problem::Tensor;
    use crate::small::{op, problem, produced};
    use crate::{Piece, Step, check};

    /// Four stages of 10 ns and 10 bytes each; the link transfers one byte per nanosecond.
    fn four_stages() -> Problem {
        let forward = (0..4).map(|i| op(Forward, 10, &[i], &[i + 1]));
        let backward = (0..4).rev().map(|i| op(Backward, 10, &[i, i + 1], &[]));
        let input = Tensor { given: true, ..produced(10) };
        problem(&[&[input], &[produced(10); 4][..]].concat(), &forward.chain(backward).collect::<Vec<_>>())
    }

    /// The activations with these numbers are swapped out.
    fn leaving(problem: &Problem, which: &[usize]) -> Absences {
        let mut absences = Absences::default();
        let windows = problem.windows(&problem.uses());
        for tensor in which {
            let window = windows[*tensor];
            let piece = absences.pieces.push(Piece { tensor: window.tensor, bytes: 0..10 });
            absences.windows[piece].push(window);
        }
        absences
    }

    fn steps(problem: &Problem, absences: &Absences, budget: u64) -> Vec<Step> {
        let acts = Acts::of(problem, absences);
        let (order, times) = no_wait(&mut Simulator::default(), problem, absences, &acts, budget).unwrap();
        let schedule = acts.schedule(absences, &order, &times);
        check(problem, &schedule, budget).unwrap();
        schedule.steps
    }

    #[test]
    fn a_copy_in_starts_when_there_is_memory() {
        let problem = four_stages();
        let steps = steps(&problem, &leaving(&problem, &[0]), 40);
        let copy = steps.iter().find(|step| matches!(step.instruction, Instruction::In(_))).unwrap();
        // B_3, which needs x_1 … x_4, ends at 50; a copy just in time would start after B_2, at 60.
        assert_eq!((copy.start, steps.last().unwrap().end), (50, 80));
    }

    #[test]
    fn operators_wait_for_copies_out() {
        // x_0 and x_1 must both be swapped out before F_3: the second copy ends at 20; F_2 still fits beside F_1.
        let problem = four_stages();
        let steps = steps(&problem, &leaving(&problem, &[0, 1]), 30);
        let start = |tick| steps.iter().find(|s| s.instruction == Instruction::Op(tick)).unwrap().start;
        assert_eq!([0, 1, 2, 3].map(start), [0, 10, 20, 30]);
        // Each copy in uses the memory of an activation whose last reader was the previous operator.
        assert_eq!([4, 5, 6, 7].map(start), [40, 50, 60, 70]);
    }

    #[test]
    fn absences_that_do_not_fit_are_refused() {
        let problem = four_stages();
        let absences = leaving(&problem, &[0]);
        let acts = Acts::of(&problem, &absences);
        assert!(no_wait(&mut Simulator::default(), &problem, &absences, &acts, 39).is_err());
    }
}
