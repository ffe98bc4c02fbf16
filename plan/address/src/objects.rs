//! The units that get addresses: the blocks of a plan, joined to objects of fixed shape.

use std::ops::Range;

use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};
use lmsc_schedule::problem::{Problem, TensorId};
use lmsc_schedule::{Absences, Act, ActId, Acts, BlockId, Contents, Instruction, Lists};

/// Blocks of one tensor with fixed relative positions, so that each operator that needs several of them finds the tensor
/// contiguous.
///
/// A tensor that is swapped out completely for a while is several objects, which may have different addresses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectId(u32);
entity_impl!(ObjectId, "object");

/// A range of bytes of an object, relative to its base, and the block that occupies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) bytes: (u64, u64),
    pub(super) block: BlockId,
}

/// The owner of an object's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// The operator of the tick, for its workspace.
    Workspace(u32),
    Tensor(TensorId),
}

#[derive(Clone, Debug)]
pub(super) struct Object {
    /// The owner of the bytes.
    pub(super) owner: Owner,
    /// Size in bytes of the whole tensor or workspace.
    pub(super) bytes: u64,
    /// The ranges of the blocks.
    pub(super) rects: Vec<Rect>,
    /// Whether counting its bytes from the other end moves its blocks.
    pub(super) has_mirror: bool,
}

impl Object {
    pub(super) fn tensor(&self) -> Option<TensorId> {
        match self.owner {
            Owner::Workspace(_) => None,
            Owner::Tensor(tensor) => Some(tensor),
        }
    }
}

/// The acts between which a block is allocated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) object: ObjectId,
    /// The first act; all others wait for it.
    pub(super) first: ActId,
    /// The last operator, and the copy out; one of them ends last. Both are `first` if there are none.
    pub(super) last: [ActId; 2],
    /// The block's bytes, as a range of [`Objects::ranges`]; those of one tensor's rest may be several.
    ranges: (u32, u32),
}

/// All objects of a plan.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    pub(super) all: PrimaryMap<ObjectId, Object>,
    pub(super) spans: PrimaryMap<BlockId, Span>,
    ranges: Vec<(u64, u64)>,
    /// For each act, the blocks of which it is the first act, or one of the last.
    pub(super) allocated_by: Lists<ActId, BlockId>,
    pub(super) freed_by: Lists<ActId, BlockId>,
    pub(super) of_tensor: SecondaryMap<TensorId, Vec<ObjectId>>,
}

impl Objects {
    pub(super) fn of(problem: &Problem, absences: &Absences, acts: &Acts) -> Objects {
        let roots = joined(problem, absences, acts);
        let spans = acts_of_blocks(acts);
        let mut moved: SecondaryMap<TensorId, Vec<Range<u64>>> = SecondaryMap::new();
        for (_, facts) in absences.pieces.iter().filter(|(p, _)| !absences.windows[*p].is_empty()) {
            moved[facts.tensor].push(facts.bytes.clone());
        }
        let mut result = Objects {
            all: PrimaryMap::new(),
            spans: PrimaryMap::new(),
            ranges: Vec::new(),
            allocated_by: Lists::default(),
            freed_by: Lists::default(),
            of_tensor: SecondaryMap::new(),
        };
        let mut object_of: SecondaryMap<BlockId, Option<ObjectId>> = SecondaryMap::new();
        let (mut allocated, mut freed) = (Vec::new(), Vec::new());
        for (block, contents) in &acts.block_contents {
            let owner = match *contents {
                Contents::Workspace(tick) => Owner::Workspace(tick),
                Contents::Piece(piece) => Owner::Tensor(absences.pieces[piece].tensor),
                Contents::Rest(tensor) => Owner::Tensor(tensor),
            };
            let object = *object_of[roots[block]].get_or_insert_with(|| {
                let bytes = match owner {
                    Owner::Workspace(tick) => problem.ops[tick as usize].workspace,
                    Owner::Tensor(tensor) => problem.tensors[tensor].bytes,
                };
                let id = result.all.push(Object { owner, bytes, rects: Vec::new(), has_mirror: false });
                if let Owner::Tensor(tensor) = owner {
                    result.of_tensor[tensor].push(id);
                }
                id
            });
            let whole = result.all[object].bytes;
            let begin = result.ranges.len();
            match *contents {
                Contents::Workspace(_) => result.ranges.push((0, whole)),
                Contents::Piece(piece) => {
                    let bytes = &absences.pieces[piece].bytes;
                    result.ranges.push((bytes.start, bytes.end));
                }
                Contents::Rest(tensor) => result.ranges.extend(rest(whole, &mut moved[tensor])),
            }
            let (first, last) = spans[block];
            allocated.push((first, block));
            freed.push((last[0], block));
            freed.extend((last[1] != last[0]).then_some((last[1], block)));
            let rects = result.ranges[begin..].iter().map(|&bytes| Rect { bytes, block });
            result.all[object].rects.extend(rects);
            let ranges = (begin as u32, result.ranges.len() as u32);
            result.spans.push(Span { object, first, last, ranges });
        }
        for object in result.all.values_mut() {
            object.has_mirror = object.rects.iter().any(|r| r.bytes != (0, object.bytes));
        }
        result.allocated_by = Lists::new(acts.len(), &allocated);
        result.freed_by = Lists::new(acts.len(), &freed);
        result
    }

    /// The byte ranges of the block, relative to the base of its object.
    pub(super) fn ranges(&self, block: BlockId) -> &[(u64, u64)] {
        let (begin, end) = self.spans[block].ranges;
        &self.ranges[begin as usize..end as usize]
    }
}

/// For each block, the representative of the blocks joined with it.
fn joined(problem: &Problem, absences: &Absences, acts: &Acts) -> PrimaryMap<BlockId, BlockId> {
    let mut parent: PrimaryMap<BlockId, BlockId> = acts.block_contents.keys().collect();
    fn find(parent: &mut PrimaryMap<BlockId, BlockId>, mut block: BlockId) -> BlockId {
        while parent[block] != block {
            parent[block] = parent[parent[block]];
            block = parent[block];
        }
        block
    }
    // For each tensor, a block that the act holds; and a block held at the start or the end of the step: for a tensor that is given
    // and kept, both are joined, since the next step finds it at that address.
    let mut held: SecondaryMap<TensorId, Option<(ActId, BlockId)>> = SecondaryMap::new();
    let mut at_ends: SecondaryMap<TensorId, Option<BlockId>> = SecondaryMap::new();
    for (act, what) in &acts.what {
        for &block in acts.blocks.of(act) {
            let Some(tensor) = tensor_of(absences, acts.block_contents[block]) else { continue };
            let facts = problem.tensors[tensor];
            let before = held[tensor].replace((act, block)).filter(|&(a, _)| a == act).map(|(_, b)| b);
            let stays = matches!(what, Act::Start | Act::End) && facts.given && facts.kept;
            let other_end = if stays { at_ends[tensor].replace(block) } else { None };
            for other in before.into_iter().chain(other_end) {
                let (one, two) = (find(&mut parent, other), find(&mut parent, block));
                parent[one.max(two)] = one.min(two);
            }
        }
    }
    for block in acts.block_contents.keys() {
        let root = find(&mut parent, block);
        parent[block] = root;
    }
    parent
}

/// For each block, its first and its last acts.
fn acts_of_blocks(acts: &Acts) -> PrimaryMap<BlockId, (ActId, [ActId; 2])> {
    let mut spans: PrimaryMap<BlockId, (Option<ActId>, [Option<ActId>; 2])> =
        acts.block_contents.values().map(|_| Default::default()).collect();
    // Acts are the start, the operators in their order, the copies, and the end.
    for (act, what) in &acts.what {
        for &block in acts.blocks.of(act) {
            let (first, [last, out]) = &mut spans[block];
            match what {
                Act::Do(Instruction::In(_)) => *first = Some(act),
                Act::Do(Instruction::Out(_)) => *out = Some(act),
                _ => {
                    first.get_or_insert(act);
                    *last = Some(act);
                }
            }
        }
    }
    let filled = spans.values().map(|&(first, [last, out])| {
        let first = first.or(out).unwrap_or(acts.order[0]);
        let one = last.or(out).unwrap_or(first);
        (first, [one, out.unwrap_or(one)])
    });
    filled.collect()
}

fn tensor_of(absences: &Absences, contents: Contents) -> Option<TensorId> {
    match contents {
        Contents::Workspace(_) => None,
        Contents::Piece(piece) => Some(absences.pieces[piece].tensor),
        Contents::Rest(tensor) => Some(tensor),
    }
}

/// The ranges of `bytes` bytes outside the moved ranges, which are sorted in place.
fn rest(bytes: u64, moved: &mut [Range<u64>]) -> Vec<(u64, u64)> {
    moved.sort_unstable_by_key(|range| range.start);
    let ends = moved.iter().map(|range| range.end);
    let starts = moved.iter().map(|range| range.start);
    let gaps = std::iter::once(0).chain(ends).zip(starts.chain([bytes]));
    gaps.filter(|(begin, end)| begin < end).collect()
}
