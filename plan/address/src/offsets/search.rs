//! The exact search: buffers from the bottom up, by several rules in turn.
//!
//! Any layout becomes *canonical* by letting its buffers fall: each then lies at 0 or on top of one that is live at the same
//! time. So a buffer that lies below all its unplaced neighbours lies on placed ones, and the search decides about such a
//! buffer: either it lies there, or another must lift it. The remaining capacity in every section of time shows early that a
//! choice was wrong, and parts with separate lifetimes are solved separately.
//!
//! # Source
//! Moffitt, *MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning*, ASPLOS 2023: canonical
//! layouts, room by section, parts solved separately, the lowest address first by three orders in turns of growing length.
//! Boussemart, Hemery, Lecoutre, Sais, *Boosting systematic search by weighting constraints*, ECAI 2004: sections that
//! overflowed before are decided first.

use std::cmp::Reverse;
use std::ops::Range;

use lmsc_schedule::tuned::{self, Tunable};

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The addresses by buffer.
    Found(Vec<u64>),
    /// No layout exists.
    Impossible,
    /// The steps are used up.
    Exhausted,
}

/// A buffer that is allocated and freed as a whole, in sections of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Its first section, and the one after its last.
    pub(super) begin: u32,
    pub(super) end: u32,
    /// The length of its lifetime.
    pub(super) length: u64,
    pub(super) bytes: u64,
    pub(super) alignment: u64,
}

impl Block {
    fn sections(&self) -> Range<usize> {
        self.begin as usize..self.end as usize
    }

    /// Its sections other than the first.
    fn crossed(&self) -> Range<usize> {
        self.begin as usize + 1..self.end as usize
    }

    fn overlaps(&self, other: &Block) -> bool {
        self.begin < other.end && other.begin < self.end
    }

    /// Its lowest aligned address from this one on.
    fn aligned(&self, address: u64) -> u64 {
        address.checked_next_multiple_of(self.alignment).unwrap_or(u64::MAX)
    }
}

/// The key by which buffers are sorted, the largest first.
#[derive(Clone, Copy, Debug)]
enum Key {
    Length,
    /// Bytes times length.
    Area,
    /// Unplaced bytes in its section with the most of them.
    Total,
    /// Number of overflows of its sections.
    Conflicts,
}

/// The rule that selects the next buffer among those that can be placed.
#[derive(Clone, Copy, Debug)]
struct Rule {
    /// Weights of the remaining room in its fullest section and of its address: the buffer with the smallest sum comes first.
    weights: (u64, u64),
    /// The keys that break ties.
    order: [Key; 3],
}

/// The rules in the order in which they take turns; none is best everywhere.
const RULES: [Rule; 6] = {
    use Key::{Area, Conflicts, Length, Total};
    [
        Rule { weights: (1, 1), order: [Conflicts, Length, Area] },
        Rule { weights: (0, 1), order: [Length, Area, Total] },
        Rule { weights: (1, 4), order: [Conflicts, Length, Area] },
        Rule { weights: (0, 1), order: [Total, Area, Length] },
        Rule { weights: (1, 2), order: [Conflicts, Length, Area] },
        Rule { weights: (0, 1), order: [Total, Length, Area] },
    ]
};

/// Number of placements per buffer that each rule tries in its first turn; it doubles in each later turn.
const FIRST_TURN: Tunable<u64> = Tunable::new(2);

/// Searches for addresses within the capacity with at most `steps` placements of a buffer. `load` is the live bytes by
/// section.
pub(super) fn search(all: &[Block], load: &[u64], capacity: u64, mut steps: u64) -> End {
    let present: Vec<usize> =
        (0..all.len()).filter(|&i| all[i].begin < all[i].end && all[i].bytes > 0).collect();
    let group: Vec<u32> = (0..present.len() as u32).collect();
    let mut search = Search::new(present.iter().map(|&i| all[i]).collect(), load, capacity);
    let mut turn = FIRST_TURN.get().saturating_mul(present.len() as u64);
    loop {
        for rule in RULES {
            let given = turn.min(steps);
            (search.rule, search.steps) = (rule, given);
            let solved = search.solve(&group, 0..load.len());
            // A placement takes about as long as a thousand visits of a neighbour.
            tuned::work(1000 * (given - search.steps) as usize);
            match solved {
                Some(true) => {
                    let mut addresses = vec![0; all.len()];
                    present.iter().zip(search.low).for_each(|(&i, low)| addresses[i] = low);
                    return End::Found(addresses);
                }
                Some(false) => return End::Impossible,
                None if given == steps => return End::Exhausted,
                None => search.undo(0),
            }
            steps -= given;
        }
        turn = turn.saturating_mul(2);
    }
}

struct Search {
    blocks: Vec<Block>,
    /// For each buffer, the buffers that are live at the same time.
    neighbours: Vec<Vec<u32>>,
    /// For each buffer, the previous identical one, if there is one: they are interchangeable, so that one is placed first.
    twin: Vec<Option<u32>>,
    capacity: u64,
    rule: Rule,
    placed: Vec<bool>,
    /// For each buffer, the lowest address that the placed ones leave free; its address, once it is placed.
    low: Vec<u64>,
    /// For each buffer, whether another must lift it above that address.
    lifts: Vec<bool>,
    /// For each buffer, the lowest address that is still possible.
    least: Vec<u64>,
    /// For each section, a lower bound on the end of the unplaced buffers.
    top: Vec<u64>,
    /// For each section, the unplaced bytes.
    left: Vec<u64>,
    /// For each section, the number of unplaced buffers that are also live in the previous one.
    crossing: Vec<u32>,
    /// For each section, the number of overflows.
    conflicts: Vec<u64>,
    trail: Vec<Change>,
    /// Placements left to try in this turn.
    steps: u64,
}

/// A change made by the search, which can be undone.
#[derive(Clone, Copy, Debug)]
enum Change {
    Placed(u32),
    /// Another buffer must lift it.
    PassedOver(u32),
    /// A buffer's previous lowest address, and whether another had to lift it.
    Lifted {
        buffer: u32,
        low: u64,
        lifts: bool,
    },
}

impl Search {
    fn new(blocks: Vec<Block>, load: &[u64], capacity: u64) -> Search {
        let others = |i: usize| (0..blocks.len() as u32).filter(move |&j| j as usize != i);
        let neighbours: Vec<Vec<u32>> = (0..blocks.len())
            .map(|i| others(i).filter(|&j| blocks[i].overlaps(&blocks[j as usize])).collect())
            .collect();
        let like = |i: usize| {
            neighbours[i].iter().copied().rfind(|&j| j < i as u32 && blocks[j as usize] == blocks[i])
        };
        let mut crossing = vec![0; load.len()];
        blocks.iter().flat_map(Block::crossed).for_each(|section| crossing[section] += 1);
        Search {
            twin: (0..blocks.len()).map(like).collect(),
            neighbours,
            capacity,
            rule: RULES[0],
            placed: vec![false; blocks.len()],
            low: vec![0; blocks.len()],
            lifts: vec![false; blocks.len()],
            least: vec![0; blocks.len()],
            top: vec![0; load.len()],
            left: load.to_vec(),
            crossing,
            conflicts: vec![0; load.len()],
            trail: Vec::new(),
            steps: 0,
            blocks,
        }
    }

    /// Whether the unplaced buffers of the group, which are live in these sections only, can be placed; none if the steps are
    /// used up.
    fn solve(&mut self, group: &[u32], sections: Range<usize>) -> Option<bool> {
        let mut parts: Vec<(Vec<u32>, Range<usize>)> = Vec::new();
        let mut begin = sections.start;
        for end in sections.start + 1..=sections.end {
            if end < sections.end && self.crossing[end] > 0 {
                continue;
            }
            let part = begin..end;
            let is_in = |i: &u32| part.contains(&(self.blocks[*i as usize].begin as usize));
            let mut some: Vec<u32> = self.waiting(group).filter(is_in).collect();
            if !some.is_empty() {
                some.sort_by_cached_key(|&i| {
                    (self.rule.order.map(|key| Reverse(self.value(i as usize, key))), i)
                });
                parts.push((some, part));
            }
            begin = end;
        }
        parts.sort_by_key(|(some, _)| some.len());
        let mark = self.trail.len();
        for (some, part) in parts {
            if !self.solve_part(&some, part)? {
                self.undo(mark);
                return Some(false);
            }
        }
        Some(true)
    }

    fn value(&self, i: usize, key: Key) -> u128 {
        let block = &self.blocks[i];
        match key {
            Key::Length => block.length.into(),
            Key::Area => u128::from(block.bytes) * u128::from(block.length),
            Key::Total => self.left[block.sections()].iter().copied().max().unwrap_or(0).into(),
            Key::Conflicts => self.conflicts[block.sections()].iter().copied().map(u128::from).sum(),
        }
    }

    /// The unplaced buffers of the group.
    fn waiting(&self, group: &[u32]) -> impl Iterator<Item = u32> {
        group.iter().copied().filter(|&i| !self.placed[i as usize])
    }

    /// As [`Search::solve`], for a connected group in the rule's order.
    fn solve_part(&mut self, group: &[u32], part: Range<usize>) -> Option<bool> {
        let group: Vec<u32> = self.waiting(group).collect();
        if group.is_empty() {
            return Some(true);
        }
        let mark = self.trail.len();
        while self.is_possible(&group, part.clone())
            && let Some(i) = self.next(&group)
        {
            if self.steps == 0 {
                return None;
            }
            self.steps -= 1;
            let before = self.trail.len();
            self.put(i);
            let splits = self.blocks[i as usize].crossed().any(|section| self.crossing[section] == 0);
            let is_solved = if splits {
                self.solve(&group, part.clone())?
            } else {
                self.solve_part(&group, part.clone())?
            };
            if is_solved {
                return Some(true);
            }
            self.undo(before);
            self.lifts[i as usize] = true;
            self.trail.push(Change::PassedOver(i));
        }
        self.undo(mark);
        Some(false)
    }

    /// The end of the buffer at its lowest address.
    fn end(&self, i: u32) -> u64 {
        self.low[i as usize].saturating_add(self.blocks[i as usize].bytes)
    }

    /// Whether no section overflows as far as can be told: in each, the unplaced buffers lie above their lowest addresses,
    /// one on top of the other.
    fn is_possible(&mut self, group: &[u32], part: Range<usize>) -> bool {
        for &i in group {
            let (at, block) = (i as usize, &self.blocks[i as usize]);
            self.least[at] = self.low[at];
            if self.lifts[at] {
                let ends = self.waiting(&self.neighbours[at]).map(|j| self.end(j));
                let Some(end) = ends.min() else { return false };
                self.least[at] = block.aligned(end.max(self.low[at]));
            }
        }
        let mut by_least = group.to_vec();
        by_least.sort_unstable_by_key(|&i| (self.least[i as usize], i));
        self.top[part.clone()].fill(0);
        for i in by_least {
            let block = &self.blocks[i as usize];
            for top in &mut self.top[block.sections()] {
                *top = self.least[i as usize].max(*top).saturating_add(block.bytes);
            }
        }
        let full = part.into_iter().find(|&section| self.top[section] > self.capacity);
        full.into_iter().for_each(|section| self.conflicts[section] += 1);
        full.is_none()
    }

    /// The buffer to decide about: one that lies below its unplaced neighbours, none of which has room below it.
    fn next(&self, group: &[u32]) -> Option<u32> {
        let mut best: Option<(u64, u32)> = None;
        for &i in group {
            let at = i as usize;
            if self.lifts[at] || self.twin[at].is_some_and(|twin| !self.placed[twin as usize]) {
                continue;
            }
            let full = self.top[self.blocks[at].sections()].iter().max().copied().unwrap_or(0);
            let room = self.capacity.saturating_sub(full);
            let (by_room, by_address) = self.rule.weights;
            let key = room.saturating_mul(by_room).saturating_add(self.low[at].saturating_mul(by_address));
            if best.is_none_or(|best| key < best.0)
                && !self.waiting(&self.neighbours[at]).any(|j| self.end(j) <= self.low[at])
            {
                best = Some((key, i));
            }
        }
        best.map(|(_, i)| i)
    }

    /// Places the buffer and lifts its neighbours.
    fn put(&mut self, i: u32) {
        let (block, top) = (self.blocks[i as usize], self.end(i));
        self.placed[i as usize] = true;
        self.left[block.sections()].iter_mut().for_each(|left| *left -= block.bytes);
        self.crossing[block.crossed()].iter_mut().for_each(|count| *count -= 1);
        self.trail.push(Change::Placed(i));
        for &j in &self.neighbours[i as usize] {
            let at = j as usize;
            if !self.placed[at] && self.low[at] < top {
                self.trail.push(Change::Lifted { buffer: j, low: self.low[at], lifts: self.lifts[at] });
                self.low[at] = self.blocks[at].aligned(top);
                self.lifts[at] = false;
            }
        }
    }

    /// Undoes all changes after the first `mark` ones.
    fn undo(&mut self, mark: usize) {
        for change in self.trail.drain(mark..).rev() {
            match change {
                Change::Placed(i) => {
                    let block = self.blocks[i as usize];
                    self.placed[i as usize] = false;
                    self.left[block.sections()].iter_mut().for_each(|left| *left += block.bytes);
                    self.crossing[block.crossed()].iter_mut().for_each(|count| *count += 1);
                }
                Change::PassedOver(i) => self.lifts[i as usize] = false,
                Change::Lifted { buffer, low, lifts } => {
                    (self.low[buffer as usize], self.lifts[buffer as usize]) = (low, lifts);
                }
            }
        }
    }
}
