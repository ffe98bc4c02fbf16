//! The exact search: buffers from the bottom up, with restarts.
//!
//! Any layout becomes *canonical* by letting its buffers fall: each then lies at 0 or on top of one that is live at
//! the same time. So a buffer that lies below all its neighbours that are left lies on those that are placed, and the
//! search decides about such a one: either it lies there, or another has yet to lift it. What is left of the capacity
//! in every section of time tells early that a choice was wrong, and what is live at different times is solved apart.

use std::cmp::Reverse;

use lmsc_ir::rng::{Rng, Source};

/// What a search ends with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Addresses by buffer.
    Found(Vec<u64>),
    /// There are none.
    Impossible,
    /// The steps are used up.
    Exhausted,
}

/// A buffer that comes and goes as a whole, in sections of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Block {
    /// Its first section, and the one after its last.
    pub(super) begin: u32,
    pub(super) end: u32,
    /// How long it is live.
    pub(super) length: u64,
    pub(super) bytes: u64,
    pub(super) alignment: u64,
}

impl Block {
    fn sections(&self) -> std::ops::Range<usize> {
        self.begin as usize..self.end as usize
    }

    fn overlaps(&self, other: &Block) -> bool {
        self.begin < other.end && other.begin < self.end
    }
}

/// What buffers are sorted by, the largest first.
#[derive(Clone, Copy, Debug)]
enum Key {
    /// Bytes of the fullest section.
    Total,
    Length,
    /// Bytes times length.
    Area,
    Sections,
    /// Bytes times sections.
    SectionArea,
    /// How often a section of it was too full, at most and altogether.
    Conflict,
    Conflicts,
}

/// Which of the buffers that could be placed comes first, where they are equal by [`Mix`]; no order is best everywhere.
const ORDERS: [[Key; 3]; 8] = {
    use Key::*;
    [
        [Length, Area, Total],
        [Total, Area, Length],
        [Total, Length, Area],
        [Sections, SectionArea, Total],
        [Total, SectionArea, Sections],
        [Conflicts, Area, Length],
        [Conflict, Length, Area],
        [Total, Sections, SectionArea],
    ]
};

/// How much the bytes that are left in a buffer's fullest section and its address count: where both are small, it is
/// placed first.
type Mix = (u64, u64);

const MIXES: [Mix; 5] = [(2, 1), (1, 1), (2, 1), (1, 4), (1, 2)];

/// Every other run goes by conflicts alone, with this mix and so much noise.
const BY_CONFLICTS: [usize; 2] = [5, 6];
const MIX_BY_CONFLICTS: Mix = (2, 1);
const NOISE_BY_CONFLICTS: usize = 100;

/// How many placements the shortest runs try. Runs are as long as Luby's sequence says, in these units.
///
/// # Source
/// Luby, Sinclair, Zuckerman, *Optimal speedup of Las Vegas algorithms*, Information Processing Letters 47(4), 1993.
const RUN: u64 = 500;

/// So many runs take the orders as they are; later ones change what buffers are sorted by, by at most so many percent.
const PLAIN_RUNS: u64 = 16;
const NOISE: usize = 50;

/// How many percent of the conflicts are remembered from run to run.
const REMEMBERED: u64 = 80;

/// Searches for addresses below the capacity with so many placements of a buffer. `load` is the bytes that are live, by
/// section.
pub(super) fn search(all: &[Block], load: &[u64], capacity: u64, mut steps: u64) -> End {
    let present: Vec<usize> =
        (0..all.len()).filter(|&i| all[i].begin < all[i].end && all[i].bytes > 0).collect();
    let blocks: Vec<Block> = present.iter().map(|&i| all[i]).collect();
    let group: Vec<u32> = (0..blocks.len() as u32).collect();
    let mut conflicts = vec![0u64; load.len()];
    for run in 0u64.. {
        let most = (RUN * luby(run + 1)).min(steps);
        if most == 0 {
            break;
        }
        let mut search = Search::new(&blocks, load, (capacity, most), run, conflicts);
        match search.solve(&group) {
            Some(true) => {
                let mut addresses = vec![0; all.len()];
                search.index.iter().zip(&search.low).for_each(|(&i, &low)| addresses[present[i]] = low);
                return End::Found(addresses);
            }
            Some(false) => return End::Impossible,
            None => {}
        }
        steps -= most;
        conflicts = search.conflicts;
        conflicts.iter_mut().for_each(|count| *count = *count * REMEMBERED / 100);
    }
    End::Exhausted
}

/// Luby's sequence from 1 on: 1 1 2 1 1 2 4 …
fn luby(mut at: u64) -> u64 {
    loop {
        let bits = 64 - at.leading_zeros();
        if at == (1 << bits) - 1 {
            return 1 << (bits - 1);
        }
        at -= (1 << (bits - 1)) - 1;
    }
}

struct Search {
    /// In the order of preference.
    blocks: Vec<Block>,
    mix: Mix,
    /// By buffer, its index outside.
    index: Vec<usize>,
    /// By buffer, those that are live at the same time.
    neighbours: Vec<Vec<u32>>,
    /// By buffer, the one before it that is its like, if there is one: they are interchangeable, so that one goes first.
    twin: Vec<Option<u32>>,
    capacity: u64,
    placed: Vec<bool>,
    /// By buffer, the lowest address that those placed leave it; where it lies, once it is placed.
    low: Vec<u64>,
    /// By buffer, whether another has yet to lift it above that address.
    lifts: Vec<bool>,
    /// By buffer, the lowest address that is still possible.
    least: Vec<u64>,
    /// By section, where the buffers that are left end at least.
    top: Vec<u64>,
    /// By section, how often it was too full.
    conflicts: Vec<u64>,
    trail: Vec<Change>,
    /// Placements left to try.
    steps: u64,
}

/// What the search has done, to be taken back.
#[derive(Clone, Copy, Debug)]
enum Change {
    Placed(u32),
    /// Another buffer must lift it.
    PassedOver(u32),
    /// A buffer's lowest address, and whether another had to lift it, as they were.
    Lifted {
        buffer: u32,
        low: u64,
        lifts: bool,
    },
}

impl Search {
    fn new(
        all: &[Block],
        load: &[u64],
        (capacity, steps): (u64, u64),
        run: u64,
        conflicts: Vec<u64>,
    ) -> Search {
        let (half, by_conflicts) = ((run / 2) as usize, run % 2 == 1);
        let (order, mix, noise) = match by_conflicts {
            true => (ORDERS[BY_CONFLICTS[half % 2]], MIX_BY_CONFLICTS, NOISE_BY_CONFLICTS),
            false => (ORDERS[half % ORDERS.len()], MIXES[half % MIXES.len()], NOISE),
        };
        let most = |of: &[u64], block: &Block| of[block.sections()].iter().copied().max().unwrap_or(0);
        let value = |block: &Block, key: Key| match key {
            Key::Total => most(load, block).into(),
            Key::Length => block.length.into(),
            Key::Area => u128::from(block.bytes) * u128::from(block.length),
            Key::Sections => (block.end - block.begin).into(),
            Key::SectionArea => u128::from(block.bytes) * u128::from(block.end - block.begin),
            Key::Conflict => most(&conflicts, block).into(),
            Key::Conflicts => {
                conflicts[block.sections()].iter().map(|&count| u128::from(count)).sum::<u128>()
            }
        };
        let mut random = Rng::new(run);
        let most_noise = if run < PLAIN_RUNS { 0 } else { noise };
        let noise: Vec<u128> = all.iter().map(|_| 100 + random.below(most_noise + 1) as u128).collect();
        let mut index: Vec<usize> = (0..all.len()).collect();
        index.sort_by_cached_key(|&i| {
            let key = order.map(|key| Reverse(value(&all[i], key).saturating_mul(noise[i])));
            (key, all[i], i)
        });
        let blocks: Vec<Block> = index.iter().map(|&i| all[i]).collect();
        let others = |i: usize| (0..blocks.len() as u32).filter(move |&j| j as usize != i);
        let neighbours: Vec<Vec<u32>> = (0..blocks.len())
            .map(|i| others(i).filter(|&j| blocks[i].overlaps(&blocks[j as usize])).collect())
            .collect();
        let like = |i: usize| {
            neighbours[i].iter().copied().rfind(|&j| j < i as u32 && blocks[j as usize] == blocks[i])
        };
        Search {
            mix,
            index,
            twin: (0..blocks.len()).map(like).collect(),
            neighbours,
            capacity,
            placed: vec![false; blocks.len()],
            low: vec![0; blocks.len()],
            lifts: vec![false; blocks.len()],
            least: vec![0; blocks.len()],
            top: vec![0; load.len()],
            conflicts,
            trail: Vec::new(),
            steps,
            blocks,
        }
    }

    /// Whether the buffers, none of which is placed, can be placed; none if the steps are used up.
    fn solve(&mut self, all: &[u32]) -> Option<bool> {
        let mut by_begin: Vec<u32> = all.to_vec();
        by_begin.sort_unstable_by_key(|&i| (self.blocks[i as usize].begin, i));
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut end = 0;
        for i in by_begin {
            let block = &self.blocks[i as usize];
            match groups.last_mut().filter(|_| block.begin < end) {
                Some(group) => group.push(i),
                None => groups.push(vec![i]),
            }
            end = end.max(block.end);
        }
        if !groups.iter().all(|group| self.is_possible(group)) {
            return Some(false);
        }
        groups.sort_by_key(Vec::len);
        let mark = self.trail.len();
        for mut group in groups {
            group.sort_unstable();
            if !self.solve_group(&group)? {
                self.undo(mark);
                return Some(false);
            }
        }
        Some(true)
    }

    /// Whether no section has to run over, as far as it can be told: in each, what is left lies above its lowest
    /// addresses, one on top of the other.
    fn is_possible(&mut self, group: &[u32]) -> bool {
        let (mut first, mut end) = (u32::MAX, 0);
        for &i in group {
            let block = self.blocks[i as usize];
            (first, end) = (first.min(block.begin), end.max(block.end));
            let low = self.low[i as usize];
            self.least[i as usize] = if self.lifts[i as usize] {
                let above =
                    self.neighbours[i as usize].iter().map(|&j| j as usize).filter(|&j| !self.placed[j]);
                let Some(top) = above.map(|j| self.low[j] + self.blocks[j].bytes).min() else { return false };
                top.max(low).next_multiple_of(block.alignment)
            } else {
                low
            };
        }
        let mut by_least = group.to_vec();
        by_least.sort_unstable_by_key(|&i| (self.least[i as usize], i));
        self.top[first as usize..end as usize].fill(0);
        for i in by_least {
            let block = self.blocks[i as usize];
            for top in &mut self.top[block.sections()] {
                *top = self.least[i as usize].max(*top) + block.bytes;
            }
        }
        let full = (first as usize..end as usize).find(|&section| self.top[section] > self.capacity);
        full.into_iter().for_each(|section| self.conflicts[section] += 1);
        full.is_none()
    }

    /// As [`Search::solve`], for buffers that hang together and may be possible.
    fn solve_group(&mut self, group: &[u32]) -> Option<bool> {
        let mark = self.trail.len();
        while let Some(i) = self.next(group) {
            if self.steps == 0 {
                return None;
            }
            self.steps -= 1;
            let before = self.trail.len();
            self.put(i);
            let others: Vec<u32> = group.iter().copied().filter(|&j| j != i).collect();
            if self.solve(&others)? {
                return Some(true);
            }
            self.undo(before);
            self.lifts[i as usize] = true;
            self.trail.push(Change::PassedOver(i));
            if !self.is_possible(group) {
                break;
            }
        }
        self.undo(mark);
        Some(false)
    }

    /// The buffer to decide about: below those of its neighbours that are not placed, of which none has room below it.
    fn next(&self, group: &[u32]) -> Option<u32> {
        let mut best: Option<((u64, u64, u32), u32)> = None;
        for &i in group {
            let at = i as usize;
            if self.lifts[at] || self.twin[at].is_some_and(|twin| !self.placed[twin as usize]) {
                continue;
            }
            let low = self.low[at];
            let above = low.saturating_mul(self.mix.1);
            if best.is_some_and(|((key, ..), _)| key < above) {
                continue;
            }
            let full = self.top[self.blocks[at].sections()].iter().max().copied().unwrap_or(0);
            let left = self.capacity.saturating_sub(full);
            let key = (left.saturating_mul(self.mix.0).saturating_add(above), low, i);
            let has_room = |&j: &u32| {
                !self.placed[j as usize] && self.low[j as usize] + self.blocks[j as usize].bytes <= low
            };
            if best.is_none_or(|best| key < best.0) && !self.neighbours[at].iter().any(has_room) {
                best = Some((key, i));
            }
        }
        best.map(|(_, i)| i)
    }

    /// Places the buffer and lifts its neighbours.
    fn put(&mut self, i: u32) {
        let top = self.low[i as usize] + self.blocks[i as usize].bytes;
        self.placed[i as usize] = true;
        self.trail.push(Change::Placed(i));
        for &j in &self.neighbours[i as usize] {
            let at = j as usize;
            if !self.placed[at] && self.low[at] < top {
                self.trail.push(Change::Lifted { buffer: j, low: self.low[at], lifts: self.lifts[at] });
                self.low[at] = top.next_multiple_of(self.blocks[at].alignment);
                self.lifts[at] = false;
            }
        }
    }

    /// Takes back all changes but the first so many.
    fn undo(&mut self, mark: usize) {
        for change in self.trail.drain(mark..).rev() {
            match change {
                Change::Placed(i) => self.placed[i as usize] = false,
                Change::PassedOver(i) => self.lifts[i as usize] = false,
                Change::Lifted { buffer, low, lifts } => {
                    (self.low[buffer as usize], self.lifts[buffer as usize]) = (low, lifts);
                }
            }
        }
    }
}
