//! The most bytes in use, over all timings of the copies.
//!
//! The progress so far is three numbers, one per line. Given the number of nodes that have computed and the number of
//! swap-ins that have started, the edges determine the swap-outs that have certainly completed, and so the storages that may
//! be resident. A sweep over the computing nodes keeps these bytes for every number of swap-ins that is possible beside them.

use lmsc_ir::{Bytes, Graph, Moves, NodeId, Storages};
use lmsc_schedule::segment_tree::SegmentTree;

use super::lines::{COMPUTE, IN, Lines, OUT};

/// Device bytes that are allocated and freed.
#[derive(Clone, Copy)]
struct Block {
    bytes: i64,
    /// The line and the position of the node that defines it; none if it is resident at the start.
    born: Option<(usize, u32)>,
    /// The numbers of computed nodes and of completed swap-outs after which it is free; none if it is never freed.
    free: Option<(u32, u32)>,
}

/// For each tick, device bytes beyond the resident ones: while the node of that tick computes, or, for a copy, at most between the
/// adjacent computing nodes.
pub(super) fn transient(
    graph: &Graph,
    storages: &Storages,
    lines: &Lines,
    workspace: impl Fn(NodeId) -> Bytes,
) -> Vec<Bytes> {
    let (blocks, unit) = blocks(graph, storages, lines);
    let mut sweep = Sweep::new(lines, &blocks);
    let mut result = Vec::with_capacity(graph.order().len());
    let bytes = |units: i64| Bytes((units as u64).checked_shl(unit).unwrap_or(u64::MAX).min(MOST));
    let mut between = sweep.between();
    let mut fold = true;
    for &id in graph.order() {
        if lines.line(id) != COMPUTE {
            result.push(bytes(between));
            fold = false;
            continue;
        }
        let during = bytes(sweep.during(id)) + workspace(id);
        result.push(if fold { during.max(bytes(between)) } else { during });
        sweep.computed();
        between = sweep.between();
        fold = true;
    }
    // If no copy follows the last computing node, the bytes after it count at that node.
    if let Some(last) = result.last_mut().filter(|_| fold) {
        *last = bytes(between).max(*last);
    }
    result
}

/// More than the total bytes of all values of a valid graph (I5) without copies. Planners count in 64 signed bits.
pub(super) const MOST: u64 = 1 << 61;

/// The blocks, with bytes counted in units of two to the power of the second result. The unit is one byte unless copies of
/// absurd sizes would not fit 64 bits together; then sizes are rounded up.
fn blocks(graph: &Graph, storages: &Storages, lines: &Lines) -> (Vec<Block>, u32) {
    let total: u128 = storages.runs().map(|(_, run)| u128::from(run.bytes.0)).sum();
    let count = storages.runs().count();
    let unit = (0..64).find(|shift| (total >> shift) + count as u128 <= u128::from(MOST)).unwrap_or(64);
    let mut slots: Vec<Option<Block>> = vec![None; count];
    for &id in graph.order() {
        let (line, position) = (lines.line(id), lines.position(id));
        for index in storages.touched(graph, id) {
            let run = storages.run(index);
            let storage = storages.get(run.storage);
            if storage.on_host || storage.is_resident(graph) {
                continue;
            }
            let block = slots[index.as_u32() as usize].get_or_insert(Block {
                bytes: (run.bytes.0 >> unit) as i64 + i64::from(run.bytes.0 & ((1 << unit) - 1) != 0),
                born: (!storage.is_given(graph)).then_some((line, position)),
                free: (storage.moves != Some(Moves::Returns)).then_some((0, 0)),
            });
            if let Some((computed, copied)) = &mut block.free {
                match line {
                    COMPUTE => *computed = position + 1,
                    OUT => *copied = position + 1,
                    _ => {}
                }
            }
        }
    }
    for &output in &graph.outputs {
        for &(_, run) in storages.runs_of(storages.storage(output)) {
            if let Some(block) = &mut slots[run.as_u32() as usize] {
                block.free = None;
            }
        }
    }
    let mut blocks: Vec<Block> = slots.into_iter().flatten().collect();
    // Storages that are swapped in and not used stay to the end.
    let unused =
        |block: &&mut Block| block.born.is_some() && block.free.is_some_and(|(computed, _)| computed == 0);
    blocks.iter_mut().filter(unused).for_each(|block| block.free = None);
    (blocks, unit)
}

struct Sweep<'a> {
    lines: &'a Lines,
    blocks: &'a [Block],
    /// By number of swap-ins that have started, the bytes that they allocated, without those that are certainly free by then.
    tree: SegmentTree,
    /// All other bytes that may be in use.
    base: i64,
    /// Number of nodes that have computed.
    computed: u32,
    /// For each line, the number of copies that have certainly completed.
    copied: [u32; 3],
    /// Number of swap-ins that may have started.
    may_start: u32,
    /// By position in its line, the bytes that a computing node allocates.
    born: Vec<i64>,
    /// By number of computed nodes, the blocks that no later one uses.
    unused: Vec<Vec<usize>>,
    /// By number of swap-outs, the unused blocks that wait until this many have completed.
    waiting: Vec<Vec<usize>>,
}

impl<'a> Sweep<'a> {
    fn new(lines: &'a Lines, blocks: &'a [Block]) -> Sweep<'a> {
        let [ops, outs, ins] = std::array::from_fn(|line| lines.nodes[line].len());
        let (mut base, mut born, mut brought) = (0, vec![0; ops], vec![0i64; ins + 1]);
        let mut unused = vec![Vec::new(); ops + 1];
        for (index, block) in blocks.iter().enumerate() {
            match block.born {
                None => base += block.bytes,
                Some((COMPUTE, position)) => born[position as usize] += block.bytes,
                Some((_, position)) => brought[position as usize + 1] += block.bytes,
            }
            if let Some((computed, _)) = block.free {
                unused[computed as usize].push(index);
            }
        }
        for started in 1..brought.len() {
            brought[started] += brought[started - 1];
        }
        let tree = SegmentTree::new(brought.into_iter());
        let waiting = vec![Vec::new(); outs + 1];
        let (computed, copied, may_start) = Default::default();
        let mut sweep =
            Sweep { lines, blocks, tree, base, computed, copied, may_start, born, unused, waiting };
        sweep.free_unused();
        sweep.advance();
        sweep
    }

    /// The most bytes between the last node that has computed and the next one.
    fn between(&self) -> i64 {
        self.base + self.tree.max(self.copied[IN]..self.may_start + 1)
    }

    /// The most bytes while the next node computes.
    fn during(&mut self, next: NodeId) -> i64 {
        let done = self.lines.done(next);
        while self.copied[OUT] < done[OUT] {
            self.copied[OUT] += 1;
            for index in std::mem::take(&mut self.waiting[self.copied[OUT] as usize]) {
                self.tree.add(self.freeing(self.copied[OUT]), self.blocks[index].bytes);
                self.base -= self.blocks[index].bytes;
            }
        }
        self.copied[IN] = done[IN];
        self.base += self.born[self.computed as usize];
        self.between()
    }

    /// Records that one more node has computed.
    fn computed(&mut self) {
        self.computed += 1;
        self.free_unused();
        self.advance();
    }

    /// Of the blocks that no later node uses, frees those that have been copied, and lets the others wait for their copies.
    fn free_unused(&mut self) {
        for index in std::mem::take(&mut self.unused[self.computed as usize]) {
            let Some((_, copied)) = self.blocks[index].free else { continue };
            if copied <= self.copied[OUT] {
                self.base -= self.blocks[index].bytes;
            } else {
                self.tree.add(self.freeing(copied), -self.blocks[index].bytes);
                self.waiting[copied as usize].push(index);
            }
        }
    }

    /// The numbers of swap-ins of which the last cannot have started before `copied` swap-outs completed.
    fn freeing(&self, copied: u32) -> std::ops::Range<u32> {
        let ins = &self.lines.nodes[IN];
        let first = ins.partition_point(|&copy| self.lines.done(copy)[OUT] < copied);
        first as u32 + 1..ins.len() as u32 + 1
    }

    fn advance(&mut self) {
        let ins = &self.lines.nodes[IN];
        while ins
            .get(self.may_start as usize)
            .is_some_and(|&copy| self.lines.done(copy)[COMPUTE] <= self.computed)
        {
            self.may_start += 1;
        }
    }
}
